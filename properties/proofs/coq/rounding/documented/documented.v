(** The bound in the form of error-bounds.md 1.1 and 1.2 (sums of any order or of a declared depth; to nearest and then
    refined, or not), for every kernel whose two sums are [sums_by]: no count of a particular kernel is left in it but
    R, the rescalings of a weight, and the operations that may underflow ([sums_by_counts]: n (2 + R) are always
    enough). *)
From Coq Require Import Reals List Lra Lia Psatz Permutation.
From Attest.Rounding Require Import basics merge bound.
Import ListNotations.
Open Scope R_scope.

Section Documented.
Variable K : Type.
Variables s sh vv : K -> R.
Variable A : arith.
Hypothesis OK : sane A.
Variable xk : K -> R.
Hypothesis Hxk : forall j, xk j <= xl A + off A.
Variables a a0 : K -> R.
Hypothesis Hab : forall j, (1 + thE A) * a0 j + xk j <= (1 + thE A) * a j + xl A.
Variable J : list K.
Variable Mp : R.
Variable r : nat.
Variable ops : nat.  (* operations on a sum *)
Local Notation n := (length J).
Local Notation pp := (pp K s A a J Mp r).
Local Notation size := (size K s vv A a J Mp r).
Local Notation spread := (spread K s vv A a J Mp r).
Local Notation exact := (exact K s vv J).

(** As there: pw(u, c), cN, cD, g, the refined sum and the plain one, N, UD. *)
Definition pw (c : nat) := (1 + u A) ^ c - 1.
Definition cN := (n + 1 + 2 * r)%nat.
Definition cD := (n + 2 * r)%nat.
Definition gc := pw cN.
(** h there: the declared depth, or n. *)
Definition h := match additions A with Some d => Nat.min d n | None => n end.
(** Sums that do not round to nearest have no refined form. *)
Definition refined (x y : R) := if nearest A then Rmin x y else x.
Definition acc := refined (pw (h + 1 + 2 * r) * size)
  ((1 + gc) * ((1 + 2 * INR r) * u A * size + (1 + gc) * Sum (fun j => Rmin (u A * size) (pp j * Rabs (vv j))) J)).
Definition Nd := up A * size + (1 + up A) * acc.
Definition UD0 := refined (pw (h + 2 * r)) ((1 + gc) * (2 * INR r * u A + (1 + gc) *
  Sum (fun j => Rmin (u A) (pp j)) J)).
Definition UDd := UD0 + upd A + UD0 * upd A.
(** Underflow, in a sum of weights times v where storing a weight may lose lamp': key by key no more than there is. What
    stands beside the document's (2 + R) lame and 2 pp: lamp' where that is less, as it is where none is stored; the
    sixteenth of a weight, by all rescalings but one; what two underflows of a key make of each other; and [grown],
    which is 1 but for rounding (and for gap). *)
Definition kk := (n - 1 + r)%nat.
Definition hk := (match additions A with Some d => Nat.min d (n - 1) | None => n - 1 end + r)%nat.
Definition by_exp_d (lamp' : R) := lame A * (1 + INR r * gain A 0) + Rmin lamp' (lame A).
Definition twice_d (lamp' : R) := INR r * (lame A * (17 + 16 * INR r) * (lamp' + by_exp_d lamp')).
Definition loss_d (lamp' : R) j :=
  Rmin lamp' (pp j) + Rmin (by_exp_d lamp') ((1 + / 16) * pp j + Rmin lamp' (pp j)) + twice_d lamp'.
Definition grown (w0 : R) := F A r * w0 * (1 + u A) ^ hk * g A ^ r.
Definition lost_d (v : K -> R) (w0 lamp' : R) :=
  grown w0 * (twice A * (Sum (fun j => Rabs (v j) * loss_d lamp' j) J + INR ops * lam A)).
Definition LNd := lost_d vv (w_o A) (lamp A).
Definition LDd := lost_d (one K) (w_l A) (lampd A).
(** 1.7.24: a lower bound of the denominator that stays positive. *)
Definition low_d := Rmax (1 - UDd) ((1 - upd A) * (1 - u A) ^ (h + 2 * r)) - LDd.
Definition pre_d := spread + (Nd + LNd + (Rabs exact + spread) * (UDd + LDd)) / low_d.
Definition documented (Uf lamf : R) := (1 + Uf) * pre_d + Uf * Rabs exact + lamf.

Lemma sums_by_counts v w0 lamw ts m y k r' c : sums_by K sh A xk v w0 lamw ts m y k r' c ->
  (1 <= length ts /\ k <= length ts - 1 + r' /\ c + 1 <= length ts * (2 + r'))%nat.
Proof. induction 1; simpl; try rewrite app_length; try (unfold rescaled; rewrite map_length); nia. Qed.

(** No term passes more additions than were declared. *)
Definition shallow (k : nat) := match additions A with Some d => (k <= d + r)%nat | None => True end.
Lemma shallow_counts v w0 lamw ts m y k r' c : sums_by K sh A xk v w0 lamw ts m y k r' c ->
  length ts = n -> (r' <= r)%nat -> shallow k -> (k <= hk)%nat.
Proof.
  intros H N Hr S. destruct (sums_by_counts _ _ _ _ _ _ _ _ _ H) as (_ & Q & _). rewrite N in Q.
  unfold shallow, hk in *.
  destruct (additions A); lia.
Qed.
Lemma h_le : (h <= n)%nat.
Proof. unfold h. destruct (additions A); lia. Qed.
Lemma hk_le : (hk <= h + r)%nat /\ (hk <= kk)%nat.
Proof. unfold hk, h, kk. destruct (additions A); lia. Qed.

Lemma pw_mono c c' : (c <= c')%nat -> pw c <= pw c'.
Proof. intros. unfold pw. assert (Q := pow_mono (u A) c c' (s_u A OK) H). lra. Qed.
Lemma pw_pos c : 0 <= pw c.
Proof. unfold pw. assert (Q := pow_ge1 (u A) c (s_u A OK)). lra. Qed.

Lemma alpha_ne j : J <> [] -> 0 < alpha K s J j.
Proof. intros. apply alpha_pos; auto. Qed.
Lemma pp_pos j : J <> [] -> 0 <= pp j.
Proof.
  intros N. unfold bound.pp. apply Rmin_glb; [lra|]. apply Rmult_le_pos.
  - apply Rmult_le_pos; left; [apply alpha_pos; auto|apply exp_pos].
  - left. apply Rinv_0_lt_compat. unfold Zm. apply Sum_pos; auto. intros.
  apply Rmult_lt_0_compat; [apply alpha_pos; auto|apply exp_pos].
Qed.
Lemma most_pos f : 0 <= most K J f.
Proof. unfold most. induction J; simpl; [lra|]. eapply Rle_trans; [apply IHl|apply Rmax_r]. Qed.
Lemma size_pos' : J <> [] -> 0 <= size.
Proof.
  intros. apply Rmin_glb; [|apply most_pos]. apply Sum_nonneg. intros.
  apply Rmult_le_pos; [apply pp_pos; auto|apply Rabs_pos].
Qed.
(** The partition that makes the refined sum least. *)
Definition big (v : K -> R) (X : R) j := if Rlt_dec (u A * X) (pp j * Rabs (v j)) then true else false.
Lemma partition v X : count K J (big v X) * (u A * X) + small K s A a J Mp r (big v X) v =
  Sum (fun j => Rmin (u A * X) (pp j * Rabs (v j))) J.
Proof.
  unfold count, small. rewrite Rmult_comm, <- Sum_scal, <- Sum_plus. apply Sum_ext. intros j _. unfold big, Rmin.
  destruct (Rlt_dec _ _), (Rle_dec _ _); lra.
Qed.
Lemma count_pos b : 0 <= count K J b.
Proof. apply Sum_nonneg. intros. destruct (b x); lra. Qed.
Lemma small_pos' b v : J <> [] -> 0 <= small K s A a J Mp r b v.
Proof. intros. apply Sum_nonneg. intros. destruct (b x); [lra|].
apply Rmult_le_pos; [apply pp_pos; auto|apply Rabs_pos]. Qed.

(** Any sum: p is the error of a weight as it enters, e its roundings on the way in, k <= n - 1 + R, or h + R. *)
Lemma by_sum_le w0 p e k v X : J <> [] -> 0 <= X -> 0 <= p -> w0 = (1 + p) * (1 + u A) ^ e -> (e <= 1)%nat ->
  (k <= hk)%nat ->
  by_sum K s A a J Mp r w0 k (big v X) v X <=
    p * X + (1 + p) * refined (pw (h + e + 2 * r) * X)
      ((1 + gc) * ((INR e + 2 * INR r) * u A * X + (1 + gc) * Sum (fun j => Rmin (u A * X) (pp j * Rabs (v j))) J)).
Proof.
  intros NJ PX Pp Ew He Hk. assert (U0 := s_u A OK). unfold by_sum, refined, refined_error, P.
  assert (Ew' : w0 * (1 + u A) ^ k = (1 + p) * (1 + u A) ^ (e + k)) by (rewrite Ew, pow_add; ring).
  rewrite Ew'. assert (Hn := h_le). destruct hk_le as [Hh _].
  assert (B1 : (1 + u A) ^ (e + k) <= 1 + pw (h + e + 2 * r)).
  { unfold pw. assert (Q := pow_mono (u A) (e + k) (h + e + 2 * r) U0 ltac:(lia)). lra. }
  assert (B2 : 1 + pw (h + e + 2 * r) <= 1 + gc).
  { assert (Q := pw_mono (h + e + 2 * r) cN ltac:(unfold cN; lia)). unfold gc. lra. }
  assert (B3 : 1 <= (1 + u A) ^ (e + k)) by (apply pow_ge1; auto).
  assert (Be : (1 + u A) ^ e = 1 + INR e * u A).
  { destruct e as [|[|]]; simpl; try lra. lia. }
  set (Q := (1 + u A) ^ (e + k)) in *. set (gg := 1 + gc) in *.
  destruct (nearest A); [|assert (0 <= (1 + p) * X) by (apply Rmult_le_pos; lra);
    assert (Q * ((1 + p) * X) <= (1 + pw (h + e + 2 * r)) * ((1 + p) * X)) by (apply Rmult_le_compat_r; auto); lra].
  rewrite Rmult_comm with (r1 := 1 + p) (r2 := Rmin _ _).
  assert (Rd : forall x y, Rmin x y * (1 + p) = Rmin (x * (1 + p)) (y * (1 + p))).
  { intros x y. unfold Rmin. destruct (Rle_dec x y) as [H1|H1], (Rle_dec (x * (1 + p)) (y * (1 + p))) as [H2|H2];
    auto; exfalso.
    - apply H2. apply Rmult_le_compat_r; lra.
    - apply H1. apply Rmult_le_reg_r with (1 + p); lra. }
  rewrite Rd. assert (Rp : forall x y z, x + Rmin y z = Rmin (x + y) (x + z)).
  { intros x y z. unfold Rmin. destruct (Rle_dec y z), (Rle_dec (x + y) (x + z)); lra. }
  rewrite Rp. apply Rle_min_compat.
  - assert ((1 + p) * Q * X <= (1 + p) * (1 + pw (h + e + 2 * r)) * X)
      by (apply Rmult_le_compat_r; auto; apply Rmult_le_compat_l; lra). lra.
  - rewrite <- (partition v X). assert (Cp := count_pos (big v X)). assert (Sp := small_pos' (big v X) v NJ).
    assert (Ir := pos_INR r). assert (Ie := pos_INR e).
    set (b := count K J (big v X)) in *. set (sm := small K s A a J Mp r (big v X) v) in *.
    assert (Mb : Rmax 0 (b - 1) <= b) by (apply Rmax_lub; lra). assert (Mb0 := Rmax_l 0 (b - 1)).
    assert (G1 : 1 <= gg) by lra. assert (GQ : Q <= gg) by lra. clearbody Q gg b sm.
    rewrite Ew, Be. assert (uX : 0 <= u A * X) by (apply Rmult_le_pos; auto).
    (* roundings of big terms and of rescalings *)
    assert (T1 : u A * ((1 + p) * Q) * (Rmax 0 (b - 1) + INR r) * X <= (1 + p) * (gg * ((2 * INR r) * (u A * X) + gg *
      (b * (u A * X))))).
    { replace (u A * ((1 + p) * Q) * (Rmax 0 (b - 1) + INR r) * X) with ((1 + p) * (Q * ((Rmax 0 (b - 1) + INR r) * (u
      A * X)))) by ring.
      apply Rmult_le_compat_l; [lra|].
      assert (Y1 : (Rmax 0 (b - 1) + INR r) * (u A * X) <= 2 * INR r * (u A * X) + gg * (b * (u A * X))).
      { assert (0 <= b * (u A * X)) by (apply Rmult_le_pos; auto).
      assert (1 * (b * (u A * X)) <= gg * (b * (u A * X))) by (apply Rmult_le_compat_r; auto).
        assert (Rmax 0 (b - 1) * (u A * X) <= b * (u A * X)) by (apply Rmult_le_compat_r; auto).
        assert (0 <= INR r * (u A * X)) by (apply Rmult_le_pos; auto). lra. }
      apply Rmult_le_compat; auto; [lra|]. apply Rmult_le_pos; lra. }
    assert (T2 : (2 * ((1 + p) * Q) - (1 + p) * (1 + INR e * u A)) * sm <= (1 + p) * (gg * (gg * sm))).
    { assert (2 * Q - (1 + INR e * u A) <= gg * gg).
      { assert (0 <= INR e * u A) by (apply Rmult_le_pos; auto).
      assert (0 <= (gg - 1) * (gg - 1)) by (apply Rmult_le_pos; lra). lra. }
      replace ((2 * ((1 + p) * Q) - (1 + p) * (1 + INR e * u A)) * sm) with ((1 + p) * ((2 * Q - (1 + INR e * u A)) *
        sm)) by ring.
      apply Rmult_le_compat_l; [lra|]. rewrite <- Rmult_assoc. apply Rmult_le_compat_r; auto. }
    assert (T3 : ((1 + p) * (1 + INR e * u A) - 1) * X <= p * X + (1 + p) * (gg * (INR e * (u A * X)))).
    { assert (0 <= INR e * (u A * X)) by (apply Rmult_le_pos; auto).
      assert (1 * (INR e * (u A * X)) <= gg * (INR e * (u A * X))) by (apply Rmult_le_compat_r; auto).
      assert ((1 + p) * (INR e * (u A * X)) <= (1 + p) * (gg * (INR e * (u A * X)))) by (apply Rmult_le_compat_l;
        lra). lra. }
    lra.
Qed.

Lemma loss_le w0 lamw lamp' j : J <> [] -> 1 <= w0 -> 0 <= lamp' -> 0 <= lamw <= w0 * lamp' ->
  loss A (part r) w0 lamw r (pp j) <= w0 * loss_d lamp' j.
Proof.
  intros NJ W L [L1 L2]. assert (Pj := pp_pos j NJ). set (x := pp j) in *. assert (E0 := s_lame A OK).
  assert (Gp := gain_pos A 0). assert (Ir := pos_INR r).
  assert (Sc : forall x1 b c, x1 <= w0 * b -> Rmin x1 (w0 * c) <= w0 * Rmin b c).
  { intros x1 b c Hxb.
    destruct (Rle_dec b c) as [Q|Q]; [rewrite (Rmin_left b c) by auto|rewrite (Rmin_right b c) by lra].
    - eapply Rle_trans; [apply Rmin_l|auto].
    - apply Rmin_r. }
  assert (M1 := Sc lamw lamp' x L2). assert (M0 := Sc lamw lamp' (lame A) L2).
  assert (Be : by_exp A w0 lamw r <= w0 * by_exp_d lamp') by (unfold by_exp, lam0, by_exp_d; lra).
  assert (Be0 : 0 <= by_exp_d lamp').
  { unfold by_exp_d. apply Rplus_le_le_0_compat; [|apply Rmin_pos; auto]. apply Rmult_le_pos; auto.
    apply Rplus_le_le_0_compat; [lra|apply Rmult_le_pos; lra]. }
  assert (Rp : INR r * part r <= / 16).
  { unfold part. rewrite Rinv_mult.
    assert (INR r * / (1 + INR r) <= 1); [|lra].
    apply Rmult_le_reg_r with (1 + INR r); [lra|]. rewrite Rmult_assoc, Rinv_l by lra. lra. }
  assert (Px : 0 <= w0 * x) by (apply Rmult_le_pos; lra).
  assert (M2 : Rmin (by_exp A w0 lamw r) ((1 + INR r * part r) * (w0 * x) + Rmin lamw (w0 * x)) <=
               w0 * Rmin (by_exp_d lamp') ((1 + / 16) * x + Rmin lamp' x)).
  { eapply Rle_trans; [|apply Sc; apply Be]. apply Rle_min_compat; [lra|].
    assert ((1 + INR r * part r) * (w0 * x) <= (1 + / 16) * (w0 * x)) by (apply Rmult_le_compat_r; lra). lra. }
  assert (M3 : twice_lost A (part r) w0 lamw r <= w0 * twice_d lamp').
  { unfold twice_lost, twice_d. replace (1 + / part r) with (17 + 16 * INR r)
      by (unfold part; rewrite Rinv_inv; lra).
    assert (Q := Rmult_le_compat_l (INR r * (lame A * (17 + 16 * INR r))) (lamw + by_exp A w0 lamw r)
      (w0 * (lamp' + by_exp_d lamp'))).
    assert (Q1 : 0 <= INR r * (lame A * (17 + 16 * INR r))) by (repeat apply Rmult_le_pos; lra).
    specialize (Q Q1 ltac:(lra)). lra. }
  unfold loss, loss_d. fold x. lra.
Qed.

Lemma lost_le_d v w0 lamw lamp' k c : J <> [] -> 1 <= w0 -> 0 <= lamp' -> 0 <= lamw <= w0 * lamp' ->
  (k <= hk)%nat -> (c <= ops)%nat ->
  0 <= F A r * lostJ K s A a J Mp r v w0 lamw k c <= lost_d v w0 lamp'.
Proof.
  intros NJ W L [L1 L2] Hk Hc. assert (U0 := s_u A OK). assert (Qk := pow_mono (u A) _ _ U0 Hk).
  assert (G := pow_ge1 (u A) k U0). assert (Gr : 1 <= g A ^ r) by (apply pow_R1_Rle, g_ge1; auto).
  assert (Ic := le_INR _ _ Hc). assert (Ip := pos_INR c). assert (Lam := s_lam A OK). assert (F1 := F_ge1 A OK r).
  assert (V0 : 0 <= Sum (fun j => Rabs (v j) * loss A (part r) w0 lamw r (pp j)) J).
  { apply Sum_nonneg. intros. apply Rmult_le_pos; [apply Rabs_pos|].
    apply loss_pos; auto using part_pos, pp_pos; lra. }
  assert (V1 : Sum (fun j => Rabs (v j) * loss A (part r) w0 lamw r (pp j)) J <=
    w0 * Sum (fun j => Rabs (v j) * loss_d lamp' j) J).
  { rewrite <- Sum_scal. apply Sum_le. intros j _.
    assert (Q := Rmult_le_compat_l _ _ _ (Rabs_pos (v j)) (loss_le w0 lamw lamp' j NJ W L (conj L1 L2))). lra. }
  unfold lostJ, lost_d, grown. set (V := Sum (fun j => Rabs (v j) * loss A (part r) w0 lamw r (pp j)) J) in *.
  set (V' := Sum (fun j => Rabs (v j) * loss_d lamp' j) J) in *.
  assert (Cl : INR c * lam A <= w0 * (INR ops * lam A)).
  { assert (INR c * lam A <= INR ops * lam A) by (apply Rmult_le_compat_r; auto).
    assert (INR ops * lam A <= w0 * (INR ops * lam A)) by (apply le_times; auto; apply Rmult_le_pos; lra). lra. }
  assert (C0 : 0 <= INR c * lam A) by (apply Rmult_le_pos; auto).
  set (G1 := (1 + u A) ^ k) in *. set (G2 := (1 + u A) ^ hk) in *. set (Gg := g A ^ r) in *. set (FF := F A r) in *.
  assert (GG : 0 <= G1 * Gg <= G2 * Gg).
  { split; [apply Rmult_le_pos; lra|apply Rmult_le_compat_r; lra]. }
  split.
  - assert (T2 := twice_ge1 A). apply Rmult_le_pos; [lra|]. apply Rmult_le_pos; [lra|]. apply Rmult_le_pos; lra.
  - assert (Q : G1 * Gg * (V + INR c * lam A) <= G2 * Gg * (w0 * (V' + INR ops * lam A)))
      by (apply Rmult_le_compat; lra).
    assert (Q2 := Rmult_le_compat_l FF _ _ ltac:(lra) Q). assert (T2 := twice_ge1 A).
    assert (Q3 := Rmult_le_compat_l (twice A) _ _ ltac:(lra) Q2). lra.
Qed.

(** What the two sums err by, in that form. *)
Lemma numerator_by ko co : J <> [] -> (ko <= hk)%nat -> (co <= ops)%nat ->
  EN K s vv A a J Mp ko co r (big vv size) <= Nd + LNd.
Proof.
  intros NJ Ko Co. assert (Wo := wo_ge1 A OK). assert (L0 := lamw_o_pos A OK). assert (Q1 := s_lamp A OK).
  assert (Q2 := s_up A OK). assert (PX := size_pos' NJ). unfold EN, Nd, LNd. apply Rplus_le_compat.
  - assert (Q := by_sum_le (w_o A) (up A) 1 ko vv size NJ PX (s_up A OK)
      ltac:(unfold w_o; simpl; ring) (le_n _) Ko).
    eapply Rle_trans; [apply Q|]. unfold acc. simpl (INR 1). apply Req_le. reflexivity.
  - assert (Lo : 0 <= lam_o A <= (w_o A) * lamp A).
    { unfold lam_o, w_o. assert (0 <= up A * ((1 + u A) * lamp A)) by (apply Rmult_le_pos; lra). lra. }
    apply (lost_le_d vv (w_o A) (lam_o A) (lamp A) ko co NJ Wo Q1 Lo Ko Co).
Qed.

Lemma denominator_by kl cl : J <> [] -> (kl <= hk)%nat -> (cl <= ops)%nat ->
  let b := big (one K) 1 in
  UD K s A a J Mp kl r b + LD K s A a J Mp kl cl r <= UDd + LDd /\ low_d <= low K s A a J Mp kl cl r b.
Proof.
  intros NJ Kl Cl b. assert (Wl := wl_ge1 A OK).
  assert (HUD : UD K s A a J Mp kl r b <= UDd).
  { assert (Sum1 : Sum (fun j => Rmin (u A * 1) (pp j * Rabs (one K j))) J = Sum (fun j => Rmin (u A) (pp j)) J).
    { apply Sum_ext. intros. unfold one. rewrite Rabs_R1, !Rmult_1_r. auto. }
    unfold UD. assert (Q := by_sum_le (w_l A) (upd A) 0 kl (one K) 1 NJ ltac:(lra) (s_upd A OK)
      ltac:(unfold w_l; simpl; ring) ltac:(lia) Kl).
    rewrite Sum1 in Q. eapply Rle_trans; [apply Q|]. unfold UDd, UD0. simpl (INR 0).
    rewrite Nat.add_0_r, !Rmult_1_r, Rplus_0_l. lra. }
  assert (HLD : LD K s A a J Mp kl cl r <= LDd).
  { assert (Ll : 0 <= lam_l A <= (w_l A) * lampd A).
    { assert (Q1 := s_lampd A OK). assert (Q2 := s_upd A OK). unfold lam_l, w_l.
      assert (0 <= upd A * lampd A) by (apply Rmult_le_pos; auto). lra. }
    apply (lost_le_d (one K) (w_l A) (lam_l A) (lampd A) kl cl NJ Wl (s_lampd A OK) Ll Kl Cl). }
  split; [apply Rplus_le_compat; auto|]. unfold low_d, low. apply Rplus_le_compat; [|lra]. apply Rmax_lub.
  - eapply Rle_trans; [|apply Rmax_l]. lra.
  - eapply Rle_trans; [|apply Rmax_r]. unfold w_l. replace (2 - (1 + upd A)) with (1 - upd A) by ring.
    assert (P1 := s_upd1 A OK). assert (P2 := s_u1 A OK). assert (P3 := s_u A OK). apply Rmult_le_compat_l; [lra|].
    destruct hk_le as [Hh _]. set (cd := (h + 2 * r)%nat). assert (Le : (kl <= cd)%nat) by (unfold cd; lia).
    replace ((1 - u A) ^ cd) with ((1 - u A) ^ kl * (1 - u A) ^ (cd - kl))
      by (rewrite <- pow_add; f_equal; lia).
    assert (Le1 : (1 - u A) ^ (cd - kl) <= 1 ^ (cd - kl)) by (apply pow_incr; lra). rewrite pow1 in Le1.
    assert (Q2 : 0 <= (1 - u A) ^ kl) by (apply pow_le; lra).
    assert ((1 - u A) ^ kl * (1 - u A) ^ (cd - kl) <= (1 - u A) ^ kl * 1) by (apply Rmult_le_compat_l; auto). lra.
Qed.

(** A kernel whose sum of weights is at least 1 / F, for whatever reason. *)
Lemma documented_of_sums_by tl to_ m l o Cs Uf lamf oh kl rl cl ko ro co :
  J <> [] ->
  Permutation (map fst to_) J -> Permutation tl to_ ->
  sums_by K sh A xk (one K) (w_l A) (lampd A) tl m l kl rl cl -> (rl <= r)%nat ->
  sums_by K sh A xk vv (w_o A) ((1 + u A) * lamp A) to_ m o ko ro co -> (ro <= r)%nat ->
  (cl <= ops)%nat -> (co <= ops)%nat -> shallow kl -> shallow ko ->
  (forall j, In j J -> Rabs (sh j - (s j + Cs)) <= a0 j) ->
  m <= Mp + gap A + Cs -> 1 <= Sum (weight K sh m) tl * F A r ->
  0 < low_d ->
  0 <= Uf -> near Uf lamf (o / l) oh ->
  Rabs (oh - exact) <= documented Uf lamf.
Proof.
  intros NJ M Hp HL Hrl HO Hro Hcl Hco Sl So Ha Hm HF Hd HUf Hoh.
  assert (Ml : Permutation (map fst tl) J) by (eapply Permutation_trans; [apply Permutation_map; apply Hp|auto]).
  assert (No : length to_ = n) by (rewrite <- (map_length fst), (Permutation_length M); auto).
  assert (Nl : length tl = n) by (rewrite (Permutation_length Hp); auto).
  assert (Kl := shallow_counts _ _ _ _ _ _ _ _ _ HL Nl Hrl Sl).
  assert (Ko := shallow_counts _ _ _ _ _ _ _ _ _ HO No Hro So).
  set (bl := big (one K) 1). set (bo := big vv size).
  destruct (weights_error_by K s sh A OK xk Hxk a a0 Hab J Mp kl cl r bl Cs NJ Ha tl m l rl Ml Hm HL Hrl HF)
    as (PW & HD & Hl).
  destruct (denominator_by kl cl NJ) as [D1 D2]; auto. fold bl in D1, D2.
  rewrite (Sum_perm _ _ _ Hp) in HF, PW, HD, Hl. set (W := Sum (weight K sh m) to_) in *.
  assert (PD : 0 <= UD K s A a J Mp kl r bl + LD K s A a J Mp kl cl r).
  { apply Rmult_le_reg_l with W; auto. rewrite Rmult_0_r. eapply Rle_trans; [apply Rabs_pos|apply HD]. }
  unfold documented, pre_d.
  apply (mean_error_by K s sh vv A OK xk Hxk a a0 Hab J Mp ko co r bo Cs NJ Ha to_ m o ro l (Nd + LNd) (UDd + LDd)
    low_d);    auto.
  - apply numerator_by; auto.
  - lra.
  - fold W. eapply Rle_trans; [apply HD|]. apply Rmult_le_compat_l; lra.
  - fold W. eapply Rle_trans; [|apply Hl]. apply Rmult_le_compat_l; lra.
Qed.

(** The claim of error-bounds.md for every kernel of the class. *)
Theorem documented_bound_by : largest_off K sh A xk J -> forall tl to_ m l o Cs Uf lamf oh kl rl cl ko ro co,
  J <> [] ->
  Permutation (map fst to_) J -> Permutation tl to_ ->
  sums_by K sh A xk (one K) (w_l A) (lampd A) tl m l kl rl cl -> (rl <= r)%nat ->
  sums_by K sh A xk vv (w_o A) ((1 + u A) * lamp A) to_ m o ko ro co -> (ro <= r)%nat ->
  (cl <= ops)%nat -> (co <= ops)%nat -> shallow kl -> shallow ko ->
  (forall j, In j J -> Rabs (sh j - (s j + Cs)) <= a0 j) ->
  (forall j, In j J -> s j + a0 j <= Mp) ->
  (exists i, In i J /\ m <= sh i + gap A) ->
  0 < low_d ->
  0 <= Uf -> near Uf lamf (o / l) oh ->
  Rabs (oh - exact) <= documented Uf lamf.
Proof.
  intros HLi tl to_ m l o Cs Uf lamf oh kl rl cl ko ro co NJ M Hp HL Hrl HO Hro Hcl Hco Sl So Ha HM Hi Hd HUf Hoh.
  assert (Ml : Permutation (map fst tl) J) by (eapply Permutation_trans; [apply Permutation_map; apply Hp|auto]).
  assert (Fk := terms_known_by K sh A OK xk Hxk r _ _ _ _ _ _ _ _ _ (wl_ge1 A OK) (s_lampd A OK) HL Hrl).
  apply (documented_of_sums_by tl to_ m l o Cs Uf lamf oh kl rl cl ko ro co); auto.
  - apply (reference_at_most K s sh A a0 J Mp Cs Ha m HM Hi).
  - apply (sum_at_least_by K sh A OK xk J r NJ tl m Ml Fk HLi Hi).
Qed.
End Documented.
(** In any order there is nothing to ask of a depth. *)
Global Hint Extern 0 (shallow _ _ _) => exact Logic.I : core.

(** Where no exponent errs by anything of its own. *)
Definition sums_counts K sh A := sums_by_counts K sh A (plain K A).
Definition numerator_documented K s vv A OK (_ : nearest A = true) := numerator_by K s vv A OK.
Definition denominator_documented K s A OK (_ : nearest A = true) := denominator_by K s A OK.
Definition documented_of_sums K s sh vv A OK (_ : nearest A = true) a :=
  documented_of_sums_by K s sh vv A OK (plain K A) (plain_off K A OK) a a (plain_errors K A a).
Definition documented_bound K s sh vv A OK (_ : nearest A = true) a J Mp r ops :=
  documented_bound_by K s sh vv A OK (plain K A) (plain_off K A OK) a a (plain_errors K A a) J Mp r ops
    (plain_largest K sh A OK J).
