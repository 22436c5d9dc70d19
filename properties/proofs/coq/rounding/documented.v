(** The bound in the form of error-bounds.md 1.1 and 1.2 (sums of any order, to nearest, refined), for every kernel
    whose two sums are [sums]: no count of a particular kernel is left in it but R, the rescalings of a weight. *)
From Coq Require Import Reals List Lra Lia Psatz Permutation.
From Attest.Rounding Require Import basics merge bound.
Import ListNotations.
Open Scope R_scope.

Section Documented.
Variable K : Type.
Variables s sh vv : K -> R.
Variable A : arith.
Hypothesis OK : sane A.
Hypothesis RN : nearest A = true.
Variable a : K -> R.
Variable J : list K.
Variable Mp : R.
Variable r : nat.
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
Definition acc := Rmin (pw cN * size)
  ((1 + gc) * ((1 + 2 * INR r) * u A * size + (1 + gc) * Sum (fun j => Rmin (u A * size) (pp j * Rabs (vv j))) J)).
Definition Nd := up A * size + (1 + up A) * acc.
Definition UD0 := Rmin (pw cD) ((1 + gc) * (2 * INR r * u A + (1 + gc) * Sum (fun j => Rmin (u A) (pp j)) J)).
Definition UDd := UD0 + upd A + UD0 * upd A.
(** Underflow: ours, with operations counted as n (2 + R). *)
Definition kk := (n - 1 + r)%nat.
Definition cc := (n * (2 + r))%nat.
Definition LNd := F A r * lostJ K A J r vv (w_o A) (lam_o A) kk cc.
Definition LDd := F A r * lostJ K A J r (one K) (w_l A) (lam_l A) kk cc.
(** 1.7.24: a lower bound of the denominator that stays positive. *)
Definition low_d := Rmax (1 - UDd) ((1 - upd A) * (1 - u A) ^ cD) - LDd.
Definition pre_d := spread + (Nd + LNd + (Rabs exact + spread) * (UDd + LDd)) / low_d.
Definition documented (Uf lamf : R) := (1 + Uf) * pre_d + Uf * Rabs exact + lamf.

Lemma sums_counts v w0 lamw ts m y k r' c : sums K sh A v w0 lamw ts m y k r' c ->
  (1 <= length ts /\ k <= length ts - 1 + r' /\ c + 1 <= length ts * (2 + r'))%nat.
Proof. induction 1; simpl; try rewrite app_length; try (unfold rescaled; rewrite map_length); nia. Qed.

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

(** Any sum: p is the error of a weight as it enters, e its roundings on the way in, k <= n - 1 + R. *)
Lemma by_sum_le w0 p e k v X : J <> [] -> 0 <= X -> 0 <= p -> w0 = (1 + p) * (1 + u A) ^ e -> (e <= 1)%nat ->
  (k <= kk)%nat ->
  by_sum K s A a J Mp r w0 k (big v X) v X <=
    p * X + (1 + p) * Rmin (pw (n + e + 2 * r) * X)
      ((1 + gc) * ((INR e + 2 * INR r) * u A * X + (1 + gc) * Sum (fun j => Rmin (u A * X) (pp j * Rabs (v j))) J)).
Proof.
  intros NJ PX Pp Ew He Hk. assert (U0 := s_u A OK). unfold by_sum. rewrite RN. unfold refined_error, P.
  assert (Ew' : w0 * (1 + u A) ^ k = (1 + p) * (1 + u A) ^ (e + k)) by (rewrite Ew, pow_add; ring).
  rewrite Ew'. assert (Nn : (1 <= n)%nat) by (destruct J; simpl; [congruence|lia]). unfold kk in Hk.
  assert (B1 : (1 + u A) ^ (e + k) <= 1 + pw (n + e + 2 * r)).
  { unfold pw. assert (Q := pow_mono (u A) (e + k) (n + e + 2 * r) U0 ltac:(lia)). lra. }
  assert (B2 : 1 + pw (n + e + 2 * r) <= 1 + gc).
  { assert (Q := pw_mono (n + e + 2 * r) cN ltac:(unfold cN; lia)). unfold gc. lra. }
  assert (B3 : 1 <= (1 + u A) ^ (e + k)) by (apply pow_ge1; auto).
  assert (Be : (1 + u A) ^ e = 1 + INR e * u A).
  { destruct e as [|[|]]; simpl; try lra. lia. }
  set (Q := (1 + u A) ^ (e + k)) in *. set (gg := 1 + gc) in *.
  rewrite Rmult_comm with (r1 := 1 + p) (r2 := Rmin _ _).
  assert (Rd : forall x y, Rmin x y * (1 + p) = Rmin (x * (1 + p)) (y * (1 + p))).
  { intros x y. unfold Rmin. destruct (Rle_dec x y) as [H1|H1], (Rle_dec (x * (1 + p)) (y * (1 + p))) as [H2|H2];
    auto; exfalso.
    - apply H2. apply Rmult_le_compat_r; lra.
    - apply H1. apply Rmult_le_reg_r with (1 + p); lra. }
  rewrite Rd. assert (Rp : forall x y z, x + Rmin y z = Rmin (x + y) (x + z)).
  { intros x y z. unfold Rmin. destruct (Rle_dec y z), (Rle_dec (x + y) (x + z)); lra. }
  rewrite Rp. apply Rle_min_compat.
  - assert ((1 + p) * Q * X <= (1 + p) * (1 + pw (n + e + 2 * r)) * X)
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

Lemma lostJ_mono v w0 l0 k k' c c' : 0 <= w0 -> 0 <= l0 -> (k <= k')%nat -> (c <= c')%nat ->
  lostJ K A J r v w0 l0 k c <= lostJ K A J r v w0 l0 k' c'.
Proof.
  intros W0 L0 Hk Hc. unfold lostJ. assert (U0 := s_u A OK). assert (Q := pow_mono (u A) _ _ U0 Hk).
  assert (G := pow_ge1 (u A) k U0).
  assert (Gr : 1 <= g A ^ r) by (apply pow_R1_Rle, g_ge1; auto). assert (Ic := le_INR _ _ Hc). assert (Ip := pos_INR c).
  assert (Ir := pos_INR r). assert (L1 := s_lam A OK). assert (L2 := s_lame A OK). assert (Gp := gain_pos A r).
  assert (V : 0 <= Sum (fun j => Rabs (v j)) J) by (apply Sum_nonneg; intros; apply Rabs_pos).
  assert (V2 : 0 <= Sum (fun j => Rabs (v j)) J * (l0 + INR r * (lame A * (w0 * gain A r)))).
  { apply Rmult_le_pos; auto. apply Rplus_le_le_0_compat; auto. repeat apply Rmult_le_pos; lra. }
  apply Rmult_le_compat_l; [lra|]. apply Rmult_le_compat.
  - apply Rmult_le_pos; lra.
  - apply Rplus_le_le_0_compat; auto. apply Rmult_le_pos; auto.
  - apply Rmult_le_compat_r; lra.
  - apply Rplus_le_compat_l. apply Rmult_le_compat_r; auto.
Qed.

(** The claim of error-bounds.md for every kernel of the class. *)
Theorem documented_bound tl to_ m l o Cs Uf lamf oh kl rl cl ko ro co :
  J <> [] ->
  Permutation (map fst to_) J -> Permutation tl to_ ->
  sums K sh A (one K) (w_l A) (lampd A) tl m l kl rl cl -> (rl <= r)%nat ->
  sums K sh A vv (w_o A) ((1 + u A) * lamp A) to_ m o ko ro co -> (ro <= r)%nat ->
  (forall j, In j J -> Rabs (sh j - (s j + Cs)) <= a j) ->
  (forall j, In j J -> s j + a j <= Mp) ->
  (exists i, In i J /\ m <= sh i + gap A) ->
  0 < low_d ->
  0 <= Uf -> near Uf lamf (o / l) oh ->
  Rabs (oh - exact) <= documented Uf lamf.
Proof.
  intros NJ M Hp HL Hrl HO Hro Ha HM Hi Hd HUf Hoh.
  assert (No : length to_ = n) by (rewrite <- (map_length fst), (Permutation_length M); auto).
  assert (Nl : length tl = n) by (rewrite (Permutation_length Hp); auto).
  destruct (sums_counts _ _ _ _ _ _ _ _ _ HL) as (_ & Kl & Cl).
  destruct (sums_counts _ _ _ _ _ _ _ _ _ HO) as (_ & Ko & Co).
  rewrite Nl in *. rewrite No in *.
  assert (U0 := s_u A OK). assert (PX := size_pos' NJ).
  assert (Wl : 0 <= w_l A) by (assert (Q := s_upd A OK); unfold w_l; lra).
  assert (Wo : 0 <= w_o A) by (assert (Q := s_up A OK); unfold w_o; apply Rmult_le_pos; lra).
  assert (Ll : 0 <= lam_l A).
  { unfold lam_l, lam0. assert (Q := s_lame A OK). assert (Q2 := s_lampd A OK).
  assert (0 <= w_l A * lame A) by (apply Rmult_le_pos; auto). lra. }
  assert (Lo : 0 <= lam_o A).
  { unfold lam_o, lam0. assert (Q := s_lame A OK). assert (Q2 := s_lamp A OK).
  assert (0 <= w_o A * lame A) by (apply Rmult_le_pos; auto).
    assert (0 <= (1 + u A) * lamp A) by (apply Rmult_le_pos; lra). lra. }
  assert (Fp : 0 < F A r) by apply exp_pos.
  assert (HEN : EN K s vv A a J Mp ko co r (big vv size) <= Nd + LNd).
  { unfold EN, Nd, LNd. apply Rplus_le_compat.
    - assert (Q := by_sum_le (w_o A) (up A) 1 ko vv size NJ PX (s_up A OK) ltac:(unfold w_o; simpl;
      ring) (le_n _) ltac:(unfold kk; lia)).
      eapply Rle_trans; [apply Q|]. unfold acc. simpl (INR 1). apply Req_le. reflexivity.
    - apply Rmult_le_compat_l; [lra|]. apply lostJ_mono; auto; unfold kk, cc; nia. }
  assert (Sum1 : Sum (fun j => Rmin (u A * 1) (pp j * Rabs (one K j))) J = Sum (fun j => Rmin (u A) (pp j)) J).
  { apply Sum_ext. intros. unfold one. rewrite Rabs_R1, !Rmult_1_r. auto. }
  assert (HUD : UD K s A a J Mp kl r (big (one K) 1) <= UDd).
  { unfold UD.
    assert (Q := by_sum_le (w_l A) (upd A) 0 kl (one K) 1 NJ ltac:(lra) (s_upd A OK) ltac:(unfold w_l; simpl;
      ring) ltac:(lia) ltac:(unfold kk; lia)).
    rewrite Sum1 in Q. eapply Rle_trans; [apply Q|]. unfold UDd, UD0, cD. simpl (INR 0).
    rewrite Nat.add_0_r, !Rmult_1_r, Rplus_0_l. lra. }
  assert (HLD : LD K A J kl cl r <= LDd).
  { unfold LD, LDd. apply Rmult_le_compat_l; [lra|]. apply lostJ_mono; auto; unfold kk, cc; nia. }
  assert (Hlow : low_d <= low K s A a J Mp kl cl r (big (one K) 1)).
  { unfold low_d, low. apply Rplus_le_compat; [|lra]. apply Rmax_lub.
    - eapply Rle_trans; [|apply Rmax_l]. lra.
    - eapply Rle_trans; [|apply Rmax_r]. unfold w_l. replace (2 - (1 + upd A)) with (1 - upd A) by ring.
      assert (P1 := s_upd1 A OK). assert (P2 := s_u1 A OK). apply Rmult_le_compat_l; [lra|].
      assert (Le : (kl <= cD)%nat) by (unfold cD; lia).
      replace ((1 - u A) ^ cD) with ((1 - u A) ^ kl * (1 - u A) ^ (cD - kl)) by (rewrite <- pow_add; f_equal; lia).
      assert (Le1 : (1 - u A) ^ (cD - kl) <= 1 ^ (cD - kl)) by (apply pow_incr; lra). rewrite pow1 in Le1.
      assert (Q2 : 0 <= (1 - u A) ^ kl) by (apply pow_le; lra).
      assert ((1 - u A) ^ kl * (1 - u A) ^ (cD - kl) <= (1 - u A) ^ kl * 1) by (apply Rmult_le_compat_l; auto). lra. }
  eapply Rle_trans.
  - apply (attention_error K s sh vv A OK a J Mp kl cl ko co r (big (one K) 1) (big vv size) tl to_ m l o Cs Uf lamf
    oh rl ro); auto. lra.
  - unfold tolerance, documented. apply Rplus_le_compat_r, Rplus_le_compat_r, Rmult_le_compat_l; [lra|].
    unfold pre, pre_d. apply Rplus_le_compat_l.
    assert (Sp : 0 <= spread).
    { destruct Hi as (i & Ii & _). apply Rmin_glb; [|apply most_pos]. apply Sum_nonneg. intros j Ij.
    apply Rmult_le_pos; [|apply Rabs_pos].
      unfold ph. assert (Zp : 0 < Zm K s A a J Mp r).
      { unfold Zm. apply Sum_pos; auto. intros. apply Rmult_lt_0_compat; [apply alpha_pos; auto|apply exp_pos]. }
      apply Rmult_le_pos; [|left; apply Rinv_0_lt_compat; auto]. apply Rmult_le_pos; [left; apply alpha_pos; auto|].
      assert (1 <= exp (E K s A a Mp r j)); [|lra]. apply exp_ge1. unfold E, D.
      assert (A1 : 0 <= a j) by (eapply Rle_trans; [apply Rabs_pos|apply (Ha j Ij)]). assert (M1 := HM j Ij).
      assert (T0 := s_T A OK). assert (TE := s_thE A OK). assert (X0 := X_pos A OK r).
      assert (G0 := s_gap A OK). assert (0 <= thE A * (Mp + gap A - (s j - a j) + 2 * T A)) by (apply Rmult_le_pos;
        lra). lra. }
    assert (Rp := Rabs_pos exact).
    set (y1 := UD K s A a J Mp kl r (big (one K) 1) + LD K A J kl cl r) in *. set (y2 := UDd + LDd) in *.
    assert (y12 : y1 <= y2) by (unfold y1, y2; lra).
    assert (N0 : 0 <= EN K s vv A a J Mp ko co r (big vv size) + (Rabs exact + spread) * y1 \/ EN K s vv A a J Mp ko
      co r (big vv size) + (Rabs exact + spread) * y1 < 0) by lra.
    assert (Le : EN K s vv A a J Mp ko co r (big vv size) + (Rabs exact + spread) * y1 <= Nd + LNd + (Rabs exact +
      spread) * y2).
    { assert ((Rabs exact + spread) * y1 <= (Rabs exact + spread) * y2) by (apply Rmult_le_compat_l; lra). lra. }
    set (d1 := low K s A a J Mp kl cl r (big (one K) 1)) in *.
    assert (I2 : 0 < / low_d) by (apply Rinv_0_lt_compat; lra). assert (I1 : 0 < / d1) by (apply Rinv_0_lt_compat; lra).
    assert (I12 : / d1 <= / low_d) by (apply Rinv_le_contravar; lra).
    unfold Rdiv. destruct N0 as [N0|N0].
    + apply Rmult_le_compat; lra.
    + eapply Rle_trans with 0.
      * apply Ropp_le_cancel. rewrite Ropp_0, Ropp_mult_distr_l. apply Rmult_le_pos; lra.
      * apply Rmult_le_pos; [|lra]. unfold Nd, LNd.
        assert (0 <= acc).
        { unfold acc. assert (P1 := pw_pos cN). assert (Ir := pos_INR r). fold gc in *.
          assert (0 <= Sum (fun j => Rmin (u A * size) (pp j * Rabs (vv j))) J).
          { apply Sum_nonneg. intros. apply Rmin_glb; apply Rmult_le_pos; auto; [apply pp_pos; auto|apply Rabs_pos]. }
          apply Rmin_glb; [apply Rmult_le_pos; auto|]. apply Rmult_le_pos; [lra|].
          apply Rplus_le_le_0_compat; apply Rmult_le_pos; try lra.
          apply Rmult_le_pos; lra. }
        assert (P2 := s_up A OK). assert (0 <= up A * size) by (apply Rmult_le_pos; auto).
        assert (0 <= (1 + up A) * acc) by (apply Rmult_le_pos; lra).
        assert (0 <= lostJ K A J r vv (w_o A) (lam_o A) kk cc).
        { unfold lostJ. assert (Gr : 1 <= g A ^ r) by (apply pow_R1_Rle, g_ge1; auto).
        assert (G := pow_ge1 (u A) kk U0).
          assert (Q := pos_INR cc). assert (Ir := pos_INR r). assert (L1 := s_lam A OK). assert (L2 := s_lame A OK).
          assert (Gp := gain_pos A r).
          assert (V : 0 <= Sum (fun j => Rabs (vv j)) J) by (apply Sum_nonneg; intros; apply Rabs_pos).
          apply Rmult_le_pos; [lra|]. apply Rmult_le_pos; [apply Rmult_le_pos; lra|].
          apply Rplus_le_le_0_compat; apply Rmult_le_pos; auto.
          apply Rplus_le_le_0_compat; auto. repeat apply Rmult_le_pos; lra. }
        assert (0 <= F A r * lostJ K A J r vv (w_o A) (lam_o A) kk cc) by (apply Rmult_le_pos; lra).
        assert (0 <= (Rabs exact + spread) * y2); [|lra].
        apply Rmult_le_pos; [lra|]. unfold y2, UDd.
        assert (0 <= UD0).
        { unfold UD0. assert (P1 := pw_pos cD). assert (P3 := pw_pos cN). fold gc in *. assert (Ir := pos_INR r).
          assert (0 <= Sum (fun j => Rmin (u A) (pp j)) J) by (apply Sum_nonneg; intros; apply Rmin_glb; auto;
            apply pp_pos; auto).
          apply Rmin_glb; auto. apply Rmult_le_pos; [lra|]. apply Rplus_le_le_0_compat; apply Rmult_le_pos; try lra. }
        assert (P5 := s_upd A OK). assert (0 <= UD0 * upd A) by (apply Rmult_le_pos; auto).
        assert (0 <= LDd); [|lra]. unfold LDd. apply Rmult_le_pos; [lra|].
        unfold lostJ. assert (Gr : 1 <= g A ^ r) by (apply pow_R1_Rle, g_ge1; auto). assert (G := pow_ge1 (u A) kk U0).
        assert (Q := pos_INR cc). assert (Ir := pos_INR r). assert (L1 := s_lam A OK). assert (L2 := s_lame A OK).
        assert (Gp := gain_pos A r).
        assert (V : 0 <= Sum (fun j => Rabs (one K j)) J) by (apply Sum_nonneg; intros; apply Rabs_pos).
        apply Rmult_le_pos; [lra|]. apply Rmult_le_pos; [apply Rmult_le_pos; lra|].
        apply Rplus_le_le_0_compat; apply Rmult_le_pos; auto.
        apply Rplus_le_le_0_compat; auto. repeat apply Rmult_le_pos; lra.
Qed.
End Documented.
