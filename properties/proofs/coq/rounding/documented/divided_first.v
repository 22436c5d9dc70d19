(** The bound of error-bounds.md 1.1 and 1.2 with norm_first (1.7.17), of every kernel that divides each weight by the
    sum of the weights before it meets its value: one reference, a sum of weights in any order, a division or a product
    with a reciprocal, weights stored in a format of their own or not, a sum of products in any order. *)
From Coq Require Import Reals List Lra Lia Psatz Permutation.
From Attest.Rounding Require Import basics merge bound stored_weights documented.
Import ListNotations.
Open Scope R_scope.

(** ** The bound, of weights that are divided with d roundings first; 0: of those that are not. *)
Section Bound.
Variable K : Type.
Variables s vv : K -> R.
Variable A : arith.
Variable a : K -> R.
Variable J : list K.
Variable Mp : R.
Variables r ops d : nat.
Variable of_weights : R.   (* rounding of a weight as it is stored *)
Local Notation n := (length J).
Local Notation gc := (documented.gc K A J r).
(** Of any sum whose terms add up to X. *)
Definition acc_of (v : K -> R) (X : R) := refined A (pw A (h K A J + Nat.max 1 d + 2 * r) * X)
  ((1 + gc) * ((1 + INR d + 2 * INR r) * u A * X +
    (1 + gc) * Sum (fun j => Rmin (u A * X) (pp K s A a J Mp r j * Rabs (v j))) J)).
Definition Nd_of (v : K -> R) (X : R) := of_weights * X + (1 + of_weights) * acc_of v X.
Definition documented_of (Uf lamf : R) :=
  let Sp := spread K s vv A a J Mp r in
  (1 + Uf) * (Sp + (Nd_of vv (size K s vv A a J Mp r) + LNd K s vv A a J Mp r ops +
    (Rabs (exact K s vv J) + Sp) * (UDd K s A a J Mp r + LDd K s A a J Mp r ops)) / low_d K s A a J Mp r ops) +
    Uf * Rabs (exact K s vv J) + lamf.
End Bound.
Lemma divided_last K s vv A a J Mp r ops Uf lamf :
  documented_of K s vv A a J Mp r ops 0 (up A) Uf lamf = documented K s vv A a J Mp r ops Uf lamf.
Proof.
  unfold documented_of, documented, pre_d, Nd_of, Nd, acc_of, acc. simpl (INR 0). rewrite Rplus_0_r. reflexivity.
Qed.

(** ** A sum of n products, each of a value and a weight that was rounded d times before. *)
Section Products.
Variable K : Type.
Variable s : K -> R.
Variable A : arith.
Hypothesis OK : sane A.
Hypothesis RN : nearest A = true.
Hypothesis Any : additions A = None.
Variable a : K -> R.
Variable J : list K.
Hypothesis NJ : J <> [].
Variable Mp : R.
Variable d : nat.
Hypothesis Hd : (d <= 3)%nat.
Local Notation n := (length J).
Local Notation pp := (pp K s A a J Mp 0).
Definition acc_first (v : K -> R) (X : R) := Rmin (pw A (n + d) * X)
  ((1 + pw A (n + 1)) * ((1 + INR d) * u A * X +
    (1 + pw A (n + 1)) * Sum (fun j => Rmin (u A * X) (pp j * Rabs (v j))) J)).

Lemma power_first : (1 + u A) ^ S d - 1 <= (1 + INR d) * u A * (1 + u A) ^ 2.
Proof.
  destruct OK. set (x := u A) in *. clearbody x.
  assert (X2 : 0 <= x * x) by (apply Rmult_le_pos; lra). assert (X3 : 0 <= x * (x * x)) by (apply Rmult_le_pos; lra).
  assert (X4 : x * (x * (x * x)) <= 1 * (x * (x * x))) by (apply Rmult_le_compat_r; lra).
  assert (X5 : x * (x * x) <= 1 * (x * x)) by (apply Rmult_le_compat_r; lra).
  assert (Sq : x * (1 + x) ^ 2 = x + 2 * (x * x) + x * (x * x)) by (simpl; ring).
  rewrite (Rmult_assoc (1 + INR d)), Sq.
  destruct d as [|[|[|[|c]]]]; [| | | |lia].
  - replace ((1 + x) ^ 1 - 1) with x by (simpl; ring). simpl. lra.
  - replace ((1 + x) ^ 2 - 1) with (2 * x + x * x) by (simpl; ring). simpl. lra.
  - replace ((1 + x) ^ 3 - 1) with (3 * x + 3 * (x * x) + x * (x * x)) by (simpl; ring). simpl. lra.
  - replace ((1 + x) ^ 4 - 1) with (4 * x + 6 * (x * x) + 4 * (x * (x * x)) + x * (x * (x * x))) by (simpl; ring).
    simpl. lra.
Qed.
(** 1 + p is what storing makes of a weight. *)
Lemma by_sum_first p k v X : 0 <= X -> 0 <= p -> (k <= n - 1)%nat ->
  by_sum K s A a J Mp 0 ((1 + p) * (1 + u A) ^ S d) k (big K s A a J Mp 0 v X) v X <=
    p * X + (1 + p) * acc_first v X.
Proof.
  intros PX Pp Hk. assert (U0 := s_u A OK).
  assert (Nn : (1 <= n)%nat) by (clear - NJ; destruct J; simpl; [congruence|lia]).
  unfold by_sum, acc_first, pw. rewrite RN. unfold refined_error, P. simpl (INR 0).
  replace (1 + ((1 + u A) ^ (n + 1) - 1)) with ((1 + u A) ^ (n + 1)) by ring.
  assert (Rd : forall x y, (1 + p) * Rmin x y = Rmin ((1 + p) * x) ((1 + p) * y)).
  { intros x y. unfold Rmin. destruct (Rle_dec x y) as [H1|H1], (Rle_dec ((1 + p) * x) ((1 + p) * y)) as [H2|H2];
      auto; exfalso; [apply H2, Rmult_le_compat_l|apply H1, Rmult_le_reg_l with (1 + p)]; lra. }
  assert (Rp : forall x y z, x + Rmin y z = Rmin (x + y) (x + z)).
  { intros x y z. unfold Rmin. destruct (Rle_dec y z), (Rle_dec (x + y) (x + z)); lra. }
  rewrite Rd, Rp, <- (partition K s A a J Mp 0 v X).
  assert (Cp := count_pos K J (big K s A a J Mp 0 v X)).
  assert (Sp := small_pos' K s A a J Mp 0 (big K s A a J Mp 0 v X) v NJ).
  set (b := count K J _) in *. set (sm := small K s A a J Mp 0 _ v) in *.
  assert (uX : 0 <= u A * X) by (apply Rmult_le_pos; lra). assert (Id := pos_INR d).
  set (gg := (1 + u A) ^ (n + 1)). assert (G1 : 1 <= gg) by (apply pow_ge1; auto).
  assert (G2 : (1 + u A) ^ 2 <= gg) by (apply pow_mono; auto; lia).
  assert (Gg : gg * gg = (1 + u A) ^ (n + 1 + (n + 1))) by (unfold gg; rewrite <- pow_add; auto).
  rewrite !(Rmult_assoc (1 + p)), <- pow_add.
  set (Q := (1 + u A) ^ (S d + k)). assert (Q0 : 0 <= Q) by (apply pow_le; lra).
  assert (Qn : Q <= (1 + u A) ^ (n + d)) by (apply pow_mono; auto; lia).
  assert (Qg : Q <= gg * gg) by (rewrite Gg; apply pow_mono; auto; lia).
  apply Rle_min_compat.
  - assert ((1 + p) * Q * X <= (1 + p) * (1 + u A) ^ (n + d) * X)
      by (apply Rmult_le_compat_r; auto; apply Rmult_le_compat_l; lra). lra.
  - assert (Mb : Rmax 0 (b - 1) <= b) by (apply Rmax_lub; lra). assert (Mb0 := Rmax_l 0 (b - 1)).
    assert (T1 : ((1 + u A) ^ S d - 1) * X <= gg * ((1 + INR d) * u A * X)).
    { assert (Pf := power_first).
      assert (((1 + u A) ^ S d - 1) * X <= (1 + INR d) * u A * (1 + u A) ^ 2 * X) by (apply Rmult_le_compat_r; auto).
      assert (C0 : 0 <= (1 + INR d) * (u A * X)) by (apply Rmult_le_pos; lra).
      assert ((1 + u A) ^ 2 * ((1 + INR d) * (u A * X)) <= gg * ((1 + INR d) * (u A * X)))
          by (apply Rmult_le_compat_r; auto).
      lra. }
    assert (T2 : u A * Q * (Rmax 0 (b - 1) + 0) * X <= gg * gg * (b * (u A * X))).
    { rewrite Rplus_0_r. replace (u A * Q * Rmax 0 (b - 1) * X) with (Q * (Rmax 0 (b - 1) * (u A * X))) by ring.
      apply Rmult_le_compat; auto; [apply Rmult_le_pos; auto|apply Rmult_le_compat_r; auto]. }
    assert (T3 : (2 * Q - (1 + u A) ^ S d) * sm <= gg * gg * sm).
    { apply Rmult_le_compat_r; auto. rewrite Gg. apply Rle_trans with ((1 + u A) ^ (S d + (k + k))).
      - unfold Q. rewrite !pow_add. set (w := (1 + u A) ^ S d). set (y := (1 + u A) ^ k).
        assert (W0 : 0 <= w) by (apply pow_le; lra).
        assert (0 <= (y - 1) * (y - 1)) by (replace ((y - 1) * (y - 1)) with (Rsqr (y - 1)) by (unfold Rsqr; ring);
          apply Rle_0_sqr).
        assert (w * (2 * y - 1) <= w * (y * y)) by (apply Rmult_le_compat_l; lra). lra.
      - apply pow_mono; auto; lia. }
    set (w1 := (1 + u A) ^ S d) in *.
    replace (((1 + p) * w1 - 1 + u A * ((1 + p) * Q) * (Rmax 0 (b - 1) + 0)) * X + (2 * ((1 + p) * Q) - (1 + p) * w1) *
      sm) with (p * X + (1 + p) * ((w1 - 1) * X + u A * Q * (Rmax 0 (b - 1) + 0) * X + (2 * Q - w1) * sm)) by ring.
    apply Rplus_le_compat_l, Rmult_le_compat_l; lra.
Qed.
(** In the bound's words. *)
Lemma products_first p k v X : 0 <= X -> 0 <= p -> (k <= n - 1)%nat ->
  by_sum K s A a J Mp 0 ((1 + p) * (1 + u A) ^ S d) k (big K s A a J Mp 0 v X) v X <= Nd_of K s A a J Mp 0 d p v X.
Proof.
  intros PX Pp Hk. eapply Rle_trans; [apply by_sum_first; auto|]. unfold Nd_of. apply Rplus_le_compat_l.
  apply Rmult_le_compat_l; [lra|]. unfold acc_of, acc_first, refined, h, gc, cN. rewrite RN, Any.
  simpl (INR 0).
  replace (n + 1 + 2 * 0)%nat with (n + 1)%nat by lia. rewrite Rmult_0_r, Rplus_0_r.
  apply Rle_min_compat; [|lra]. apply Rmult_le_compat_r; auto. apply pw_mono; auto. lia.
Qed.
End Products.

Section DividedFirst.
Variable K : Type.
Variables s sh vv : K -> R.
Variable A : arith.        (* its weights: as they are stored *)
Hypothesis OK : sane A.
Hypothesis RN : nearest A = true.
Variable d : nat.          (* roundings of a division *)
Hypothesis Hd : (1 <= d <= 3)%nat.
(** Weights are not stored in a format of their own, or in one so narrow that nothing that is lost before is seen. *)
Hypothesis Narrow : (up A = 0 /\ lamp A = 0) \/ lam A * (2 + 2 * up A) <= up A * lamp A.

(** ** The class *)
(** What a sum makes of the keys l, in any order, where a term enters it as [leaf] says. *)
Inductive added (leaf : K -> R -> Prop) : list K -> R -> Prop :=
| added_one j y : leaf j y -> added leaf [j] y
| added_two l1 l2 y1 y2 y : added leaf l1 y1 -> added leaf l2 y2 -> adds A y1 y2 y -> added leaf (l1 ++ l2) y.
(** The weight w that meets a value, of an exponential p: divided by the sum l, or multiplied by a reciprocal of it that
    is no subnormal number, then stored, where what is too small becomes 0. *)
Definition divided_weight (p l w : R) := exists x y,
  near ((1 + u A) ^ (d - 1) - 1) 0 (p / l) x /\ rounded (u A) (lam A) x y /\
  rounded (up A) (lamp A) y w /\ (Rabs y < lamp A -> w = 0).
(** An answer from the scores sh. *)
Definition divides_first (J : list K) (o : R) := exists m e p w l first_order order,
  (exists i, In i J /\ m <= sh i + gap A) /\
  (forall j, In j J -> sh j - m <= T A /\ Rabs (e j - (sh j - m)) <= thE A * Rabs (sh j - m) + xl A /\
    exponential A (e j) (p j)) /\
  Permutation first_order J /\ added (fun j y => rounded (upd A) (lampd A) (p j) y) first_order l /\
  (forall j, In j J -> divided_weight (p j) l (w j)) /\
  Permutation order J /\ added (fun j y => near (u A) (lam A) (w j * vv j) y) order o.

(** ** Its arithmetic: what a division makes of a weight counts as if it were stored so. *)
Definition as_divided : arith := {| u := u A; lam := lam A; thE := thE A; xl := xl A; xr := xr A; T := T A;
  gap := gap A; off := 0; last := 0; eps := eps A; lame := lame A; up := (1 + u A) ^ d * (1 + up A) - 1;
  lamp := lamp A + (1 + up A) * lam A; upd := upd A; lampd := lampd A; nearest := nearest A; additions := None |}.
Local Notation B := as_divided.
Lemma as_divided_sane : sane B.
Proof.
  destruct OK. assert (P := pow_ge1 (u A) d s_u). assert (1 <= (1 + u A) ^ d * (1 + up A)) by (apply times_ge1; lra).
  assert (0 <= (1 + up A) * lam A) by (apply Rmult_le_pos; lra). constructor; simpl; auto; lra.
Qed.

Lemma divided_weight_near p l w : 0 <= p -> 0 < l -> divided_weight p l w ->
  Rabs (w - p / l) <= up B * (p / l) + Rmin (lamp B) ((1 + up B) * (p / l)).
Proof.
  intros Pp Pl (x & y & Hx & Hy & Hw & Hz). destruct OK. simpl up. simpl lamp.
  assert (Q0 : 0 <= p / l) by (apply Rmult_le_pos; auto; left; apply Rinv_0_lt_compat; auto).
  set (q := p / l) in *. clearbody q. unfold near, rounded in *. rewrite (Rabs_pos_eq q) in Hx by auto.
  assert (Ed : (1 + u A) ^ d = (1 + u A) ^ (d - 1) * (1 + u A)).
  { replace d with (S (d - 1)) at 1 by lia. simpl. ring. }
  assert (P := pow_ge1 (u A) (d - 1) s_u). rewrite Ed. set (v := (1 + u A) ^ (d - 1)) in *. clearbody v.
  assert (Ax : Rabs x <= v * q).
  { replace x with ((x - q) + q) by ring. eapply Rle_trans; [apply Rabs_triang|]. rewrite (Rabs_pos_eq q); lra. }
  assert (M1 := Rmin_l (lam A) (Rabs x)). assert (M2 := Rmin_r (lam A) (Rabs x)).
  assert (Hux : u A * Rabs x <= u A * (v * q)) by (apply Rmult_le_compat_l; auto).
  set (z := Rmin (lam A) (Rabs x)) in *. clearbody z.
  assert (Vq : q <= v * q) by (apply le_times; auto). assert (Uq : 0 <= u A * (v * q)) by (apply Rmult_le_pos; lra).
  set (f := v * (1 + u A)) in *.
  assert (Dy : Rabs (y - q) <= (f - 1) * q + z).
  { replace (y - q) with ((y - x) + (x - q)) by ring. eapply Rle_trans; [apply Rabs_triang|]. unfold f. lra. }
  assert (Zf : z <= f * q) by (unfold f; lra). assert (Fq : q <= f * q) by (unfold f; lra).
  clearbody f. clear Hx Hy Hux Ax M2.
  assert (Ay : Rabs y <= f * q + z).
  { replace y with ((y - q) + q) by ring. eapply Rle_trans; [apply Rabs_triang|]. rewrite (Rabs_pos_eq q); lra. }
  assert (Uf : 0 <= up A * (f * q)) by (apply Rmult_le_pos; lra).
  assert (Ul : 0 <= up A * lam A) by (apply Rmult_le_pos; auto).
  destruct Narrow as [[U0 L0]|N].
  - rewrite U0, L0 in *. assert (Rmin 0 (Rabs y) <= 0) by apply Rmin_l.
    assert (Rabs (w - q) <= (f - 1) * q + z).
    { replace (w - q) with ((w - y) + (y - q)) by ring. eapply Rle_trans; [apply Rabs_triang|]. lra. }
    assert (z <= Rmin (0 + (1 + 0) * lam A) ((1 + (f * (1 + 0) - 1)) * q)) by (apply Rmin_glb; lra). lra.
  - destruct (Rlt_dec (Rabs y) (lamp A)) as [S|S].
    + rewrite (Hz S), Rminus_0_l, Rabs_Ropp, (Rabs_pos_eq q) by auto.
      assert (q <= Rabs y + Rabs (y - q)).
      { replace q with (y - (y - q)) at 1 by ring. unfold Rminus at 1. rewrite <- (Rabs_Ropp (y - q)).
        rewrite <- (Rabs_pos_eq (y + - (y - q))) by lra. apply Rabs_triang. }
      unfold Rmin. destruct (Rle_dec _ _); lra.
    + assert (M3 := Rmin_l (lamp A) (Rabs y)). assert (M4 := Rmin_r (lamp A) (Rabs y)).
      assert (Uy : up A * Rabs y <= up A * (f * q + z)) by (apply Rmult_le_compat_l; auto).
      assert (Uz : up A * z <= up A * lam A) by (apply Rmult_le_compat_l; auto).
      assert (Dw : Rabs (w - q) <= (f * (1 + up A) - 1) * q + ((1 + up A) * z + lamp A)).
      { replace (w - q) with ((w - y) + (y - q)) by ring. eapply Rle_trans; [apply Rabs_triang|]. lra. }
      assert (Us : up A * (lamp A - lam A) <= up A * (f * q)) by (apply Rmult_le_compat_l; lra).
      assert ((1 + up A) * z + lamp A <=
        Rmin (lamp A + (1 + up A) * lam A) ((1 + (f * (1 + up A) - 1)) * q)) by (apply Rmin_glb; lra). lra.
Qed.

(** Such a sum is a derivation of [sums] wherever its terms are. *)
Lemma added_sums Q v w0 lamw (term : K -> K * R) m leaf l y :
  u Q = u A -> lam Q = lam A -> nearest Q = nearest A -> added leaf l y ->
  (forall j z, In j l -> leaf j z -> sums K sh Q v w0 lamw [term j] m z 0 0 1) ->
  exists k c, sums K sh Q v w0 lamw (map term l) m y k 0 c /\ (c + 1 <= 2 * length l)%nat.
Proof.
  intros E1 E2 E3. induction 1 as [j y Hl|l1 l2 y1 y2 y H1 IH1 H2 IH2 N]; intros Hk.
  - exists 0%nat, 1%nat. split; [apply Hk; simpl; auto|auto].
  - destruct IH1 as (k1 & c1 & S1 & C1); [intros; apply Hk; auto; apply in_or_app; auto|].
    destruct IH2 as (k2 & c2 & S2 & C2); [intros; apply Hk; auto; apply in_or_app; auto|].
    exists (S (Nat.max k1 k2)), (S (c1 + c2)). rewrite map_app, app_length. split; [|lia].
    apply (sums_add K sh Q v w0 lamw _ _ m y1 y2 y k1 0 c1 k2 0 c2); auto.
    unfold adds in *. rewrite E1, E2, E3. exact N.
Qed.

(** ** The bound *)
Variable a : K -> R.
Variable J : list K.
Variable Mp : R.
Variable ops : nat.
Hypothesis Hops : (2 * length J - 1 <= ops)%nat.
Hypothesis NJ : J <> [].
Local Notation n := (length J).
Local Notation pp := (pp K s B a J Mp 0).
Local Notation size := (size K s vv B a J Mp 0).
Local Notation F := (F B 0).

Lemma n_ge1 : (1 <= n)%nat.
Proof. clear - NJ. destruct J; simpl; [congruence|lia]. Qed.

(** What underflow takes of a weight that is divided by l, where 1 / l is at most g. *)
Lemma loss_divided Q w0 lamw x q l g : lame Q = lame A / l -> 0 < l -> 1 <= g -> / l <= g -> 0 <= w0 -> 0 <= lamw ->
  0 <= q -> 0 <= x <= g * q ->
  loss Q (part 0) w0 lamw 0 x <= g * loss B (part 0) w0 lamw 0 q.
Proof.
  intros El Pl G1 Il W0 L0 Pq [Px Hx]. assert (E0 := s_lame A OK). assert (I0 := Rinv_0_lt_compat l Pl).
  assert (Sc : forall b c y z, 0 <= b -> b <= g * c -> y <= g * z -> Rmin b y <= g * Rmin c z).
  { intros b c y z P1 H1 H2.
    destruct (Rle_dec c z); [rewrite (Rmin_left c z)|rewrite (Rmin_right c z)]; try lra;
      [eapply Rle_trans; [apply Rmin_l|auto]|eapply Rle_trans; [apply Rmin_r|auto]]. }
  unfold loss, by_exp, twice_lost, lam0. simpl (INR 0). change (lame B) with (lame A). rewrite El.
  rewrite !Rmult_0_l, !Rplus_0_r, !Rmult_1_l.
  assert (Wx : w0 * x <= g * (w0 * q)).
  { replace (g * (w0 * q)) with (w0 * (g * q)) by ring. apply Rmult_le_compat_l; auto. }
  assert (Ll : lamw <= g * lamw) by (apply le_times; auto).
  assert (Le : w0 * (lame A / l) <= g * (w0 * lame A)).
  { replace (w0 * (lame A / l)) with (w0 * lame A * / l) by (unfold Rdiv; ring). rewrite Rmult_comm.
    apply Rmult_le_compat_r; auto. apply Rmult_le_pos; auto. }
  assert (Le0 : 0 <= w0 * (lame A / l)) by (apply Rmult_le_pos; auto; apply Rmult_le_pos; lra).
  assert (M1 := Sc lamw lamw _ _ L0 Ll Wx). assert (M2 := Sc lamw lamw _ _ L0 Ll Le).
  assert (M3 := Rmin_pos lamw (w0 * (lame A / l)) L0 Le0).
  assert (M4 := Sc (w0 * (lame A / l) + Rmin lamw (w0 * (lame A / l))) (w0 * lame A + Rmin lamw (w0 * lame A))
    (w0 * x + Rmin lamw (w0 * x)) (w0 * q + Rmin lamw (w0 * q)) ltac:(lra) ltac:(lra) ltac:(lra)). lra.
Qed.
Lemma split_divided Q e p l : eps Q = eps A -> 0 < l -> split Q (e - ln l) (p / l) = split A e p.
Proof.
  intros E Pl. unfold split. rewrite E. do 4 f_equal. rewrite exp_minus, exp_ln by auto. assert (P := exp_pos e).
  field. lra.
Qed.

(** [divides_first] with all that it says of one row. *)
Theorem divided_first_documented Cs Uf lamf o oh : divides_first J o ->
  (forall j, In j J -> Rabs (sh j - (s j + Cs)) <= a j) ->
  (forall j, In j J -> s j + a j <= Mp) ->
  0 < low_d K s B a J Mp 0 ops ->
  0 <= Uf -> near Uf lamf o oh ->
  Rabs (oh - exact K s vv J) <= documented_of K s vv B a J Mp 0 ops d (up A) Uf lamf.
Proof.
  intros (m & e & p & w & l & ol & oo & Hi & He & Pl & Hl & Hw & Po & Ho) Ha HM Hlow HUf Hoh.
  assert (OB := as_divided_sane). assert (Nn := n_ge1). assert (U0 := s_u A OK).
  set (term := fun j => (j, e j - (sh j - m) + split B (e j) (p j))).
  assert (Mt : forall t, map fst (map term t) = t) by (intros; rewrite map_map; apply map_id).
  assert (Il : forall j, In j ol -> In j J) by (intros j; apply Permutation_in; auto).
  assert (Io : forall j, In j oo -> In j J) by (intros j; apply Permutation_in; auto).
  (* the sum of weights *)
  destruct (added_sums B (one K) (w_l B) (lampd B) term m _ ol l eq_refl eq_refl eq_refl Hl) as (kl & cl & SL & Cl).
  { intros j z Ij Hz. destruct (He j (Il j Ij)) as (H1 & H2 & H3). apply (sums_key K sh B _ _ _ j m (e j) (p j)); auto.
    unfold one. apply (stored_in_denominator B OB); [apply H3|exact Hz]. }
  destruct (sums_counts _ _ _ _ _ _ _ _ _ _ _ _ SL) as (_ & Kl & _). rewrite map_length in Kl.
  rewrite (Permutation_length Pl) in *. assert (Ml : Permutation (map fst (map term ol)) J) by (rewrite Mt; auto).
  assert (Mo : Permutation (map fst (map term oo)) J) by (rewrite Mt; auto).
  assert (Pt : Permutation (map term ol) (map term oo))
    by (apply Permutation_map; eapply Permutation_trans; [apply Pl|apply Permutation_sym; auto]).
  assert (Hm := reference_at_most K s sh B a J Mp Cs Ha m HM Hi).
  assert (Fk := terms_known K sh B OB 0 _ _ _ _ _ _ _ _ _ (wl_ge1 B OB) (s_lampd B OB) SL (le_n _)).
  assert (HF := sum_at_least K sh B OB J 0 NJ _ m Ml Fk Hi).
  set (bl := big K s B a J Mp 0 (one K) 1).
  destruct (weights_error K s sh B OB a J Mp kl cl 0 bl Cs NJ Ha _ m l 0 Ml Hm SL (le_n _) HF) as (PW & HD & HL).
  destruct (denominator_documented K s B OB RN a J Mp 0 ops kl cl NJ) as [D1 D2]; [unfold hk; simpl; lia|lia|].
  fold bl in D1, D2.
  assert (FkO : forall t, In t (map term oo) -> known K sh B m 0 t)
    by (intros t It; apply Fk, (Permutation_in _ (Permutation_sym Pt)); auto).
  assert (HS := mean_of_weights K s sh vv B OB a J Mp 0 Cs NJ Ha _ m Mo Hm FkO).
  assert (HZ := sizes_le K s sh vv B OB a J Mp 0 Cs NJ Ha _ m Mo Hm FkO).
  assert (HP := weight_share K s sh B OB a J Mp 0 Cs NJ Ha _ m Mo Hm FkO).
  rewrite (Sum_perm _ _ _ Pt) in HF, PW, HD, HL. set (W := Sum (weight K sh m) (map term oo)) in *.
  set (lowd := low_d K s B a J Mp 0 ops) in *. set (DD := UDd K s B a J Mp 0 + LDd K s B a J Mp 0 ops) in *.
  assert (Wlow : W * lowd <= l) by (eapply Rle_trans; [apply Rmult_le_compat_l; [lra|apply D2]|auto]).
  assert (HDD : Rabs (l - W) <= W * DD) by (eapply Rle_trans; [apply HD|apply Rmult_le_compat_l; lra]).
  assert (L0 : 0 < l) by (assert (0 < W * lowd) by (apply Rmult_lt_0_compat; lra); lra).
  assert (F1 := F_ge1 B OB 0). set (FF := F) in *.
  assert (Low1 : lowd <= 1).
  { unfold lowd, low_d. assert (HU : 0 <= UDd K s B a J Mp 0).
    { assert (0 <= UD0 K s B a J Mp 0); [|unfold UDd; assert (Q := s_upd B OB);
        assert (0 <= UD0 K s B a J Mp 0 * upd B) by (apply Rmult_le_pos; auto); lra].
      assert (G := pw_pos B OB (cN K J 0)). fold (gc K B J 0) in G.
      unfold UD0, refined. change (nearest B) with (nearest A). rewrite RN. apply Rmin_glb; [apply pw_pos; auto|].
      apply Rmult_le_pos; [lra|]. simpl (INR 0). simpl (u B).
      assert (0 <= (1 + gc K B J 0) * Sum (fun j => Rmin (u A) (pp j)) J); [|lra]. apply Rmult_le_pos; [lra|].
      apply Sum_nonneg. intros. apply Rmin_glb; auto. apply pp_pos; auto. }
    assert (HLD : 0 <= LDd K s B a J Mp 0 ops).
    { assert (Q1 := s_upd A OK). assert (Q2 := s_lampd A OK).
      assert (Ll : 0 <= lam_l B <= w_l B * lampd B).
      { unfold lam_l, w_l. simpl. assert (0 <= upd A * lampd A) by (apply Rmult_le_pos; auto). lra. }
      destruct (lost_le_d K s B OB a J Mp 0 ops (one K) (w_l B) (lam_l B) (lampd B) kl cl NJ (wl_ge1 B OB)
        (s_lampd B OB) Ll ltac:(unfold hk; simpl; lia) ltac:(lia)). unfold LDd. lra. }
    assert ((1 - upd B) * (1 - u B) ^ (h K B J + 2 * 0) <= 1 * 1).
    { assert (Q1 := s_upd B OB). assert (Q2 := s_upd1 B OB). assert (Q3 := s_u B OB). assert (Q4 := s_u1 B OB).
      assert ((1 - u B) ^ (h K B J + 2 * 0) <= 1 ^ (h K B J + 2 * 0)) by (apply pow_incr; lra). rewrite pow1 in *.
      apply Rmult_le_compat; try lra. apply pow_le. lra. }
    assert (Rmax (1 - UDd K s B a J Mp 0) ((1 - upd B) * (1 - u B) ^ (h K B J + 2 * 0)) <= 1)
      by (apply Rmax_lub; lra). lra. }
  assert (IW : W / l <= / lowd).
  { apply Rmult_le_reg_r with (l * lowd); [apply Rmult_lt_0_compat; auto|]. unfold Rdiv.
    replace (W * / l * (l * lowd)) with (W * lowd) by (field; lra).
    replace (/ lowd * (l * lowd)) with l by (field; lra). auto. }
  assert (I1 : 1 <= / lowd) by (rewrite <- Rinv_1; apply Rinv_le_contravar; lra).
  set (il := / lowd) in *.
  assert (Ill : / l <= il * FF).
  { assert (Q0 : 0 < / l) by (apply Rinv_0_lt_compat; auto).
    assert (/ l * 1 <= / l * (W * FF)) by (apply Rmult_le_compat_l; lra).
    assert (W / l * FF <= il * FF) by (apply Rmult_le_compat_r; lra). unfold Rdiv in *. lra. }
  (* weights relative to m + ln l *)
  set (q := m + ln l).
  set (TT := Sum (fun j => Rabs (sh j - q)) J). set (XL := Sum (fun j => Rabs (e j - ln l - (sh j - q))) J).
  assert (TT0 : 0 <= TT) by (apply Sum_nonneg; intros; apply Rabs_pos).
  assert (XL0 : 0 <= XL) by (apply Sum_nonneg; intros; apply Rabs_pos).
  set (Q := {| u := u A; lam := lam A; thE := 0; xl := XL; xr := 0; T := TT; gap := 0; off := 0; last := 0;
    eps := eps A; lame := lame A / l; up := up B; lamp := lamp B; upd := 0; lampd := 0; nearest := nearest A;
    additions := None |}).
  assert (OQ : sane Q).
  { destruct OB. simpl in *. assert (0 < / l) by (apply Rinv_0_lt_compat; auto).
    assert (0 <= lame A / l) by (apply Rmult_le_pos; lra). constructor; simpl; auto; lra. }
  assert (Lo0 := lamw_o_pos B OB). assert (Wo := wo_ge1 B OB).
  destruct (added_sums Q vv (w_o B) ((1 + u B) * lamp B) term q _ oo o eq_refl eq_refl eq_refl Ho)
    as (ko & co & SO & Co).
  { intros j z Ij Hz. assert (Ij' := Io j Ij). destruct (He j Ij') as (H1 & H2 & H3).
    assert (Et : term j = (j, e j - ln l - (sh j - q) + split Q (e j - ln l) (p j / l))).
    { unfold term. f_equal. rewrite (split_divided Q) by auto. change (split B) with (split A). unfold q. ring. }
    rewrite Et. apply (sums_key K sh Q vv (w_o B) _ j q (e j - ln l) (p j / l)).
    - eapply Rle_trans; [apply Rle_abs|]. apply (Sum_In_le (fun j => Rabs (sh j - q)) J j); auto.
      intros. apply Rabs_pos.
    - simpl thE. simpl xl. rewrite Rmult_0_l, Rplus_0_l.
      apply (Sum_In_le (fun j => Rabs (e j - ln l - (sh j - q))) J j); auto. intros. apply Rabs_pos.
    - destruct H3 as [N0 N]. unfold exponential, rounded in *. simpl (eps Q). simpl (lame Q).
      rewrite exp_minus, exp_ln by auto. assert (Ex := exp_pos (e j)). assert (I0 := Rinv_0_lt_compat l L0).
      split; [apply Rmult_le_pos; lra|].
      replace (p j / l - exp (e j) / l) with ((p j - exp (e j)) * / l) by (field; lra).
      rewrite (Rabs_pos_eq (exp (e j))) in N by lra.
      rewrite Rabs_mult, (Rabs_pos_eq (/ l)), (Rabs_pos_eq (exp (e j) / l)) by (try lra; apply Rmult_le_pos; lra).
      assert (Q1 := Rmult_le_compat_r (/ l) _ _ ltac:(lra) N).
      assert (Rmin (lame A) (exp (e j)) * / l <= Rmin (lame A / l) (exp (e j) / l)).
      { apply Rmin_glb; unfold Rdiv; apply Rmult_le_compat_r; try lra; [apply Rmin_l|apply Rmin_r]. }
      unfold Rdiv in *. lra.
    - destruct H3 as [N0 _]. apply (rounded_weight Q OQ (p j / l) (w j)).
      + apply Rmult_le_pos; auto. left. apply Rinv_0_lt_compat. auto.
      + apply (divided_weight_near (p j) l (w j)); auto.
      + exact Hz. }
  destruct (sums_counts _ _ _ _ _ _ _ _ _ _ _ _ SO) as (_ & Ko & _). rewrite map_length in Ko.
  rewrite (Permutation_length Po) in *.
  set (bo := big K s B a J Mp 0 vv size).
  assert (SE := sums_error K sh Q OQ (part 0) (part_pos 0) vv (w_o B) _ Wo Lo0 RN bo _ _ _ _ _ _ SO).
  assert (Wq : forall t, weight K sh q t = weight K sh m t * / l).
  { intros t. unfold weight, q. replace (sh (fst t) - (m + ln l) + snd t) with (sh (fst t) - m + snd t - ln l) by ring.
    rewrite exp_minus, exp_ln by auto. auto. }
  assert (I0 : 0 < / l) by (apply Rinv_0_lt_compat; auto).
  assert (Share : forall t, In t (map term oo) -> 0 <= weight K sh q t <= il * pp (fst t)).
  { intros t It. rewrite Wq. assert (P0 := weight_pos K sh m t). split; [apply Rmult_le_pos; lra|].
    assert (weight K sh m t * / l <= W * pp (fst t) * / l) by (apply Rmult_le_compat_r; [lra|auto]).
    assert (W / l * pp (fst t) <= il * pp (fst t)) by (apply Rmult_le_compat_r; auto; apply pp_pos; auto).
    unfold Rdiv in *. lra. }
  assert (Size : size_sum K sh vv q (map term oo) <= il * size).
  { unfold size_sum. rewrite (Sum_ext _ (fun t => / l * (weight K sh m t * Rabs (vv (fst t)))))
      by (intros; rewrite Wq; ring). rewrite Sum_scal.
    assert (/ l * Sum (fun t => weight K sh m t * Rabs (vv (fst t))) (map term oo) <= / l * (W * size))
      by (apply Rmult_le_compat_l; lra).
    assert (W / l * size <= il * size) by (apply Rmult_le_compat_r; auto; apply size_pos'; auto).
    unfold Rdiv in *. lra. }
  assert (Exact : exact_sum K sh vv q (map term oo) =
    W / l * (Sum (fun t => weight K sh m t * vv (fst t)) (map term oo) / W)).
  { unfold exact_sum. rewrite (Sum_ext _ (fun t => / l * (weight K sh m t * vv (fst t))))
      by (intros; rewrite Wq; ring). rewrite Sum_scal. field. split; lra. }
  rewrite Exact in SE. set (o' := Sum (fun t => weight K sh m t * vv (fst t)) (map term oo) / W) in *.
  (* what rounding makes of it *)
  assert (Sz0 := size_pos' K s vv B a J Mp 0 NJ). assert (Up0 := s_up A OK).
  assert (Ew : w_o B = (1 + up A) * (1 + u A) ^ S d) by (unfold w_o; simpl; ring).
  assert (By : Rmin ((P Q (w_o B) ko - 1) * size_sum K sh vv q (map term oo))
      (refined_error Q (w_o B) ko 0 (bigs K bo (map term oo)) (size_sum K sh vv q (map term oo))
        (small_sum K sh vv bo q (map term oo))) <= il * Nd_of K s B a J Mp 0 d (up A) vv size).
  { assert (Bs := products_first K s B OB RN eq_refl a J NJ Mp d ltac:(lia) (up A) ko vv size Sz0 Up0 ltac:(lia)).
    change (u B) with (u A) in Bs. rewrite <- Ew in Bs. fold bo in Bs.
    eapply Rle_trans; [|apply Rmult_le_compat_l; [lra|apply Bs]]. unfold by_sum. change (nearest B) with (nearest A).
    rewrite RN. change (P B) with (P Q). change (refined_error B) with (refined_error Q).
    assert (P0 := P_ge Q OQ (w_o B) Wo ko).
    assert (Pl1 : (P Q (w_o B) ko - 1) * size_sum K sh vv q (map term oo) <= il * ((P Q (w_o B) ko - 1) * size)).
    { replace (il * ((P Q (w_o B) ko - 1) * size)) with ((P Q (w_o B) ko - 1) * (il * size)) by ring.
      apply Rmult_le_compat_l; lra. }
    assert (Rf : refined_error Q (w_o B) ko 0 (bigs K bo (map term oo)) (size_sum K sh vv q (map term oo))
        (small_sum K sh vv bo q (map term oo)) <=
      il * refined_error Q (w_o B) ko 0 (count K J bo) size (small K s B a J Mp 0 bo vv)).
    { unfold refined_error, bigs, count. rewrite (over_terms K J (map term oo) (fun j => if bo j then 1 else 0) Mo).
      set (b := Rmax 0 (Sum (fun j => if bo j then 1 else 0) J - 1)). assert (b0 : 0 <= b) by apply Rmax_l.
      assert (Sm : small_sum K sh vv bo q (map term oo) <= il * small K s B a J Mp 0 bo vv).
      { unfold small_sum, small. rewrite <- (over_terms K J (map term oo) (fun j => if bo j then 0 else pp j *
          Rabs (vv j)) Mo), <- Sum_scal. apply Sum_le. intros t It. destruct (bo (fst t)); [lra|].
        rewrite <- Rmult_assoc. apply Rmult_le_compat_r; [apply Rabs_pos|apply Share; auto]. }
      assert (uP : 0 <= u Q * P Q (w_o B) ko) by (apply Rmult_le_pos; [auto|lra]).
      assert (Co1 : 0 <= w_o B - 1 + u Q * P Q (w_o B) ko * (b + INR 0)).
      { assert (0 <= u Q * P Q (w_o B) ko * (b + INR 0)) by (apply Rmult_le_pos; [exact uP|simpl; lra]). lra. }
      assert (C1 := Rmult_le_compat_l _ _ _ Co1 Size).
      assert (C2 := Rmult_le_compat_l (2 * P Q (w_o B) ko - w_o B) _ _ ltac:(lra) Sm). lra. }
    eapply Rle_trans; [apply Rle_min_compat; [apply Pl1|apply Rf]|]. right. symmetry.
    unfold Rmin. destruct (Rle_dec _ _) as [x|x], (Rle_dec _ _) as [y|y]; auto; exfalso;
      [apply y; apply Rmult_le_compat_l; lra|apply x; apply Rmult_le_reg_l with il; lra]. }
  (* and underflow *)
  assert (Lost : 2 * lost K sh Q (part 0) vv (w_o B) ((1 + u B) * lamp B) (map term oo) q ko 0 co <=
    il * LNd K s vv B a J Mp 0 ops).
  { assert (Lo : 0 <= lam_o B <= w_o B * lamp B).
    { unfold lam_o, w_o. assert (Q1 := s_up B OB). assert (Q2 := s_lamp B OB). assert (Q3 := s_u B OB).
      assert (0 <= up B * ((1 + u B) * lamp B)) by (apply Rmult_le_pos; auto). unfold lam_o in Lo0. lra. }
    destruct (lost_le_d K s B OB a J Mp 0 ops vv (w_o B) (lam_o B) (lamp B) ko co NJ Wo (s_lamp B OB) Lo
      ltac:(unfold hk; simpl; lia) ltac:(lia)) as [_ LL].
    eapply Rle_trans; [|apply Rmult_le_compat_l; [lra|apply LL]]. fold FF. unfold lost, lostJ, twice.
    change (nearest B) with (nearest A). rewrite RN. simpl (g Q ^ 0). simpl (g B ^ 0). simpl (u B).
    change (u Q) with (u A). rewrite !Rmult_1_r.
    assert (G := pow_ge1 (u A) ko U0). set (gk := (1 + u A) ^ ko) in *.
    set (V := losses K sh Q (part 0) vv (w_o B) ((1 + u A) * lamp B) (map term oo) q 0).
    set (V' := Sum (fun j => Rabs (vv j) * loss B (part 0) (w_o B) (lam_o B) 0 (pp j)) J).
    assert (Each : V <= il * FF * V').
    { unfold V, V'.
      rewrite <- (over_terms K J (map term oo) (fun j => Rabs (vv j) * loss B (part 0) (w_o B) (lam_o B) 0 (pp j)) Mo),
        <- Sum_scal. unfold losses. apply Sum_le. intros t It.
      assert (Ht := Share t It). assert (Pp := pp_pos K s B a J Mp 0 (fst t) NJ).
      assert (IF : 1 <= il * FF) by (apply times_ge1; auto).
      assert (il * pp (fst t) <= il * FF * pp (fst t)).
      { apply Rmult_le_compat_r; auto. rewrite <- (Rmult_1_r il) at 1. apply Rmult_le_compat_l; lra. }
      assert (Q1 := loss_divided Q (w_o B) (lam_o B) (weight K sh q t) (pp (fst t)) l (il * FF) eq_refl L0 IF Ill
        ltac:(lra) (proj1 Lo) Pp ltac:(lra)).
      assert (Q2 := Rmult_le_compat_l (Rabs (vv (fst t))) _ _ (Rabs_pos _) Q1). unfold lam_o in *. simpl (u B) in *.
      lra. }
    assert (Cn : 0 <= INR co * lam A) by (apply Rmult_le_pos; [apply pos_INR|apply (s_lam A OK)]).
    assert (IF : 1 <= il * FF) by (apply times_ge1; auto).
    assert (Cm : INR co * lam A <= il * FF * (INR co * lam A)) by (apply le_times; auto).
    simpl (lam Q). simpl (lam B).
    assert (gk * (V + INR co * lam A) <= gk * (il * FF * (V' + INR co * lam A))) by (apply Rmult_le_compat_l; lra).
    lra. }
  (* all of it *)
  unfold documented_of. fold lowd. fold DD. set (Sp := spread K s vv B a J Mp 0) in *.
  set (N := Nd_of K s B a J Mp 0 d (up A) vv size) in *. set (LN := LNd K s vv B a J Mp 0 ops) in *.
  set (ex := exact K s vv J) in *.
  assert (Ao : Rabs o' <= Rabs ex + Sp).
  { replace o' with ((o' - ex) + ex) by ring. eapply Rle_trans; [apply Rabs_triang|]. lra. }
  assert (Dd : Rabs (W / l - 1) <= il * DD).
  { replace (W / l - 1) with (- ((l - W) * / l)) by (field; lra).
    rewrite Rabs_Ropp, Rabs_mult, (Rabs_pos_eq (/ l)) by lra.
    assert (Rabs (l - W) * / l <= W * DD * / l) by (apply Rmult_le_compat_r; lra).
    assert (D0 : 0 <= DD) by (apply Rmult_le_reg_l with W; auto; rewrite Rmult_0_r;
      eapply Rle_trans; [apply Rabs_pos|apply HDD]).
    assert (W / l * DD <= il * DD) by (apply Rmult_le_compat_r; auto). unfold Rdiv in *. lra. }
  assert (Eo : Rabs (o - ex) <= Sp + (N + LN + (Rabs ex + Sp) * DD) / lowd).
  { unfold Rdiv. fold il. replace (o - ex) with ((o - W / l * o') + (W / l - 1) * o' + (o' - ex)) by ring.
    eapply Rle_trans; [apply Rabs_triang|]. apply Rle_trans with ((il * N + il * LN + il * DD * (Rabs ex + Sp)) + Sp);
      [|lra]. apply Rplus_le_compat; [|exact HS].
    eapply Rle_trans; [apply Rabs_triang|]. apply Rplus_le_compat; [lra|]. rewrite Rabs_mult.
    apply Rmult_le_compat; auto using Rabs_pos. }
  set (pre := Sp + (N + LN + (Rabs ex + Sp) * DD) / lowd) in *. unfold near in Hoh.
  assert (Aoo : Rabs o <= pre + Rabs ex).
  { replace o with ((o - ex) + ex) by ring. eapply Rle_trans; [apply Rabs_triang|]. lra. }
  replace (oh - ex) with ((oh - o) + (o - ex)) by ring. eapply Rle_trans; [apply Rabs_triang|].
  assert (Uf * Rabs o <= Uf * (pre + Rabs ex)) by (apply Rmult_le_compat_l; auto). lra.
Qed.
End DividedFirst.
