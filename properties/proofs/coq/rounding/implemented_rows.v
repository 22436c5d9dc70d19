(** Rows held to the tolerance of core/bound: scores from q, k and a bias as it counts their errors, and programs. *)
From Coq Require Import Reals List Lra Lia Psatz Permutation ZArith.
From Flocq Require Import Core.
From Attest.Rounding Require Import basics scores merge bound documented kernels implemented.
From Attest.Rounding Require row.
Import ListNotations.
Open Scope R_scope.

Section Scores.
(** As Profile: q.k, the constant that it is scaled by, the scaled product, the bias by itself, the sum with it. *)
Variables u_s lam_s th_tau th_scale lam_scale u_bc lam_bc th_bias lam_bias : R.
Variable tau : R.
Hypothesis Claims : 0 <= u_s /\ 0 <= lam_s /\ 0 <= th_scale /\ 0 <= u_bc /\ 0 <= th_bias /\ 0 <= tau.

(** key_terms.cc, score_error: gs, and the coefficients after the scale; nothing stored, divided or prescaled. *)
Definition gs n_s := pw u_s n_s.
Definition tt := 1 + th_tau.
Definition after := 1 + th_bias.
Definition before := tt * (1 + th_scale).
Definition on_size n_s := after * before * gs n_s.
Definition on_t := after * (tt * th_scale) + th_bias * th_tau.
Definition on_s := th_bias.
Definition on_b := after * u_bc.
Definition constant n_s :=
  after * (before * ((1 + gs n_s) * (2 * INR n_s * lam_s * tau)) + lam_scale + lam_bc) + lam_bias.
(** key_loops.inc, score_errors: a and tm, of a score t + b whose products have the sizes X. *)
Definition a_of_key (n_s : nat) (X t b : R) :=
  constant n_s + on_size n_s * (tau * X) + on_t * Rabs t + on_s * Rabs (t + b) + on_b * Rabs b.
Definition tm (g_mean t : R) := th_tau * Rabs (t - g_mean).

(** Without what the bias errs by itself it is score_error's, as checked_rows.v has it. *)
Lemma a_of_key_is n_s X t b : u_bc = 0 -> lam_bc = 0 ->
  let e1 := ((1 + u_s) ^ n_s - 1) * X + (1 + u_s) ^ n_s * (2 * INR n_s * lam_s) in
  a_of_key n_s X t b = (1 + th_bias) * ((1 + th_tau) * ((1 + th_scale) * (tau * e1) + th_scale * Rabs t) + lam_scale) +
    th_bias * (Rabs (t + b) + th_tau * Rabs t) + lam_bias.
Proof.
  intros Hu Hl e1. unfold e1, a_of_key, constant, on_size, on_t, on_s, on_b, before, after, tt, gs, pw.
  rewrite Hu, Hl. ring.
Qed.

(** A kernel's score of a key: q.k in any order, fused or not; a scale that is wrong by the factor 1 + d for all keys; a
    bias that is converted. *)
Definition scored (d : R) (products : list R) (b sh : R) := exists xh k c th bh,
  summed u_s lam_s products xh k c /\ near th_scale lam_scale (tau * (1 + d) * xh) th /\ near u_bc lam_bc b bh /\
  near th_bias lam_bias (th + bh) sh.
Definition dot (products : list R) := Sum (fun x => x) products.

Lemma scored_within d products b sh g_mean : Rabs d <= th_tau -> scored d products b sh ->
  let t := tau * dot products in
  Rabs (sh - (t + b + d * g_mean)) <= a_of_key (length products) (Sum Rabs products) t b + tm g_mean t.
Proof.
  destruct Claims as (U & L & Ps & Pb & Pt & Ptau). intros Hd (xh & k & c & th & bh & H1 & H2 & H3 & H4) t.
  assert (Dt := dot_error u_s lam_s U L _ _ _ _ H1). fold (dot products) in Dt. set (n_s := length products) in *.
  set (X := Sum Rabs products) in *.
  set (e1 := ((1 + u_s) ^ n_s - 1) * X + (1 + u_s) ^ n_s * (2 * INR n_s * lam_s)) in *.
  assert (E0 : 0 <= e1) by (eapply Rle_trans; [apply Rabs_pos|apply Dt]).
  assert (Sc := score_error tau d th_tau th_scale lam_scale th_bias lam_bias e1 (dot products) xh bh t (t + bh) th sh
    Ptau Ps Pt E0 Hd Dt eq_refl eq_refl H2 H4).
  unfold near in H3.
  assert (B1 : Rabs (t + bh) <= Rabs (t + b) + (u_bc * Rabs b + lam_bc)).
  { replace (t + bh) with ((t + b) + (bh - b)) by ring. eapply Rle_trans; [apply Rabs_triang|]. lra. }
  assert (B2 := Rmult_le_compat_l th_bias _ _ Pt B1).
  replace (sh - (t + b + d * g_mean)) with ((sh - (t + bh + d * t)) + ((bh - b) + d * (t - g_mean))) by ring.
  eapply Rle_trans; [apply Rabs_triang|].
  assert (B3 : Rabs (bh - b + d * (t - g_mean)) <= u_bc * Rabs b + lam_bc + tm g_mean t).
  { eapply Rle_trans; [apply Rabs_triang|]. rewrite (Rabs_mult d). unfold tm.
    assert (Rabs d * Rabs (t - g_mean) <= th_tau * Rabs (t - g_mean)) by (apply Rmult_le_compat_r; auto using Rabs_pos).
    lra. }
  assert (Q : a_of_key n_s X t b = (1 + th_bias) * ((1 + th_tau) * ((1 + th_scale) * (tau * e1) + th_scale * Rabs t) +
    lam_scale) + th_bias * (Rabs (t + b) + th_tau * Rabs t) + lam_bias + (1 + th_bias) * (u_bc * Rabs b + lam_bc)).
  { unfold a_of_key, constant, on_size, on_t, on_s, on_b, before, after, tt, gs, pw, e1. ring. }
  rewrite Q. lra.
Qed.

(** From q, k, a bias and values to the output: every kernel of the class. *)
Section Row.
Variable K : Type.
Variable products : K -> list R.
Variables bias vv : K -> R.
Variable A : arith.
Hypothesis OK : sane A.
Hypothesis Nearest : nearest A = true.
Hypothesis Covered : covered A.
Hypothesis Up_d : upd A <= up A.
Hypothesis Lamp_d : lampd A <= lamp A.
Hypothesis Lame : lam A <= lame A.
Variable J : list K.
Variables r c_div : nat.
Variables u_o lam_o g_mean : R.
Hypothesis Out : 0 <= u_o /\ 0 <= lam_o.
Definition t j := tau * dot (products j).
Definition s j := t j + bias j.
Definition a j := a_of_key (length (products j)) (Sum Rabs (products j)) (t j) (bias j) + tm g_mean (t j).

Theorem implemented_row oh : (exists sh d, Rabs d <= th_tau /\
    (forall j, In j J -> scored d (products j) (bias j) (sh j)) /\ returns K vv A J r c_div u_o lam_o sh oh) ->
  0 < denominator K s A a J r (lam_weight_enough A r) (lam_more_enough A) ->
  Rabs (oh - exact K s vv J) <= allowed K s vv A a J r (lam_weight_enough A r) (lam_more_enough A) c_div u_o lam_o.
Proof.
  intros (sh & d & Hd & Hs & Hr). apply implemented_tolerance with sh; auto. exists (d * g_mean). intros j Hj.
  apply scored_within; auto.
Qed.
End Row.
End Scores.

(** Programs over Flocq's formats, which store no weights: as the bound is written. *)
Section Online.
Variables emin prec : Z.
Context {Hprec : Prec_gt_0 prec}.
Variable K : Type.
Variables sh vv : K -> R.
Variable fexp : R -> R.
Variables epsE lamE : R.
Hypothesis HepsE : 0 <= epsE < 1.
Hypothesis HlamE : 0 <= lamE.
Hypothesis exp_good : forall x, x <= 0 -> 0 <= fexp x /\ rounded epsE lamE (exp x) (fexp x).
Hypothesis exp_inF : forall x, inF emin prec (fexp x).
Hypothesis sh_inF : forall j, inF emin prec (sh j).
Variables s a : K -> R.
Local Notation A := (kernels.A emin prec epsE lamE).

Hypothesis Eta : eta emin <= lamE.
Theorem online_as_written b bs :
  Forall (fun b => Permutation (leaves K (fst b)) (leaves K (snd b))) (b :: bs) ->
  let J := keys_of K (b :: bs) in let R_ := length (b :: bs) in
  scores_within K s a J sh -> 0 < denominator K s A a J R_ (lam_weight_written A R_) 0 ->
  Rabs (finish emin prec (online emin prec K sh vv fexp b bs) - exact K s vv J) <=
    allowed K s vv A a J R_ (lam_weight_written A R_) 0 1 0 0.
Proof.
  intros F J R_ Hs Hd. assert (Pe := eta_pos emin). set (st := online emin prec K sh vv fexp b bs).
  set (h := fold_right (fun c x => Nat.max (Nat.max (depth K (fst c)) (depth K (snd c))) x) 0%nat (b :: bs)).
  assert (D : Forall (fun b => depth K (fst b) <= h /\ depth K (snd b) <= h)%nat (b :: bs)).
  { unfold h. generalize (b :: bs). intros l. induction l as [|c l IH]; constructor; simpl; [lia|].
    eapply Forall_impl; [|apply IH]. intros c'. simpl. lia. }
  destruct (good_online emin prec K sh vv fexp epsE lamE HepsE HlamE exp_good exp_inF sh_inF b bs h F D)
    as (kl & cl & ko & co & G & _ & Cn). fold J in Cn, G. fold st in G.
  destruct G as [(tl & to_ & Pm & Pp & SL & SO) (i & Ii & Ei) _ _].
  apply (as_written_tolerance K s vv A (A_sane emin prec epsE lamE HepsE HlamE) eq_refl
    (conj eq_refl (conj eq_refl (conj eq_refl (conj eq_refl eq_refl)))) (Rle_refl _)
    (Rle_refl _) a J R_ 1 0 0 (conj (Rle_refl _) (Rle_refl _)) sh); auto.
  - simpl. ring.
  - destruct st as [[m l] o] eqn:Est. simpl in *.
    exists tl, to_, m, l, o, kl, (length bs), cl, ko, (length bs), co, (kernels.rnd emin prec (o / l)).
    unfold R_. simpl length. do 4 (split; [first [assumption | lia]|]). split; [lia|]. split; [assumption|].
    split; [lia|]. split; [lia|]. split; [exists i; split; auto; lra|]. split.
    + exists (o / l). split; [reflexivity|apply rnd_near; auto].
    + unfold near. rewrite Rminus_eq_0, Rabs_R0. lra.
Qed.
End Online.

(** binary32, an exponential to within one unit in the last place: nothing is left to be asked of rows of up to 2^20
    keys in up to 1000 blocks. *)
Section Binary32.
Definition eps32 := / 2 ^ 23.
Definition lame32 := / 2 ^ 149.
Local Notation A := (kernels.A (-149) 24 eps32 lame32).

Lemma powers : uf 24 = / 2 ^ 24 /\ eta (-149) = / 2 ^ 150.
Proof. unfold uf, eta. simpl bpow. split; [|]; field_simplify; lra. Qed.
Lemma exp_below_two x : 0 <= x <= / 2 -> exp x <= 1 + 2 * x.
Proof.
  intros H. assert (Q := exp_ge_1 (- x)). rewrite exp_Ropp in Q. assert (P := exp_pos x).
  assert (Q1 := Rmult_le_compat_l _ _ _ (Rlt_le _ _ P) Q). rewrite Rinv_r in Q1 by lra.
  assert (0 <= x * (1 - 2 * x)) by (apply Rmult_le_pos; lra).
  apply Rmult_le_reg_r with (1 + - x); [lra|]. lra.
Qed.
Lemma power_le_exp u k : 0 <= u -> (1 + u) ^ k <= exp (INR k * u).
Proof.
  intros H. induction k as [|k IH]; [simpl; rewrite Rmult_0_l, exp_0; lra|].
  rewrite S_INR, Rmult_plus_distr_r, exp_plus, Rmult_1_l. simpl. rewrite Rmult_comm.
  apply Rmult_le_compat; [apply Rfunctions.pow_le; lra|lra|auto|]. apply exp_ge_1.
Qed.
Lemma power_below_one u k : 0 <= u <= 1 -> 1 - INR k * u <= (1 - u) ^ k.
Proof.
  intros H. induction k as [|k IH]; [simpl; lra|]. rewrite S_INR. simpl pow. assert (I := pos_INR k).
  assert ((1 - u) * (1 - INR k * u) <= (1 - u) * (1 - u) ^ k) by (apply Rmult_le_compat_l; lra).
  assert (0 <= INR k * u * u) by (repeat apply Rmult_le_pos; lra). lra.
Qed.
Lemma small_rest R_ : (R_ <= 1000)%nat -> 0 <= rest A R_ <= 1001 * / 2 ^ 22.
Proof.
  intros H. apply le_INR in H. replace (INR 1000) with 1000 in H by (simpl; lra). assert (I := pos_INR R_).
  unfold rest, of_exp. simpl eps. simpl xl. simpl xr. unfold eps32.
  assert (Q : / 2 ^ 23 / (1 - / 2 ^ 23) <= / 2 ^ 22).
  { apply Rmult_le_reg_r with (1 - / 2 ^ 23); [lra|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra. lra. }
  assert (Q0 : 0 <= / 2 ^ 23 / (1 - / 2 ^ 23)) by (apply Rmult_le_pos; [lra|left; apply Rinv_0_lt_compat; lra]).
  set (e := / 2 ^ 23 / (1 - / 2 ^ 23)) in *. clearbody e.
  assert (e * (1 + INR R_) <= / 2 ^ 22 * 1001) by (apply Rmult_le_compat; lra).
  assert (0 <= e * (1 + INR R_)) by (apply Rmult_le_pos; lra). lra.
Qed.
Lemma least_number : 0 < lame32 /\ lame32 <= / 2 ^ 50 /\ eta (-149) = lame32 * / 2.
Proof.
  destruct powers as [_ Pe]. rewrite Pe. unfold lame32. assert (Q : forall k, 0 < 2 ^ k) by (intros; apply pow_lt; lra).
  repeat split; [apply Rinv_0_lt_compat, Q|apply Rinv_le_contravar; [apply Q|apply Rle_pow; [lra|lia]]|].
  rewrite <- Rinv_mult. f_equal. change 150%nat with (149 + 1)%nat. rewrite pow_add, pow_1. auto.
Qed.
Lemma denominator_binary32 K s a (J : list K) R_ : (length J <= 2 ^ 20)%nat -> (R_ <= 1000)%nat ->
  0 < denominator K s A a J R_ (lam_weight_written A R_) 0.
Proof.
  intros Hn H. destruct powers as [Pu _]. destruct least_number as (L0 & L1 & Pe).
  assert (Q := small_rest R_ H). apply le_INR in H.
  replace (INR 1000) with 1000 in H by (simpl; lra). assert (I := pos_INR R_).
  assert (Hn' := le_INR _ _ Hn). rewrite pow_INR in Hn'. replace (INR 2) with 2 in Hn' by (simpl; lra).
  assert (In := pos_INR (length J)).
  (* what is lost *)
  assert (Lw : lam_weight_written A R_ <= 1002 * lame32).
  { unfold lam_weight_written. simpl lame. simpl T. rewrite exp_0.
    assert (lame32 * (2 + INR R_ * 1) <= lame32 * 1002) by (apply Rmult_le_compat_l; lra). lra. }
  assert (Lw0 : 0 <= lam_weight_written A R_).
  { unfold lam_weight_written. simpl lame. simpl T. rewrite exp_0. apply Rmult_le_pos; lra. }
  assert (Lt : 0 <= lam_twice A R_ (lam_weight_written A R_) <= lame32).
  { unfold lam_twice. simpl lame. simpl lamp. rewrite Rplus_0_l.
    assert (T0 : 0 <= 17 + 16 * INR R_ <= 16017) by lra.
    assert (T1 : 0 <= INR R_ * (17 + 16 * INR R_) <= 1000 * 16017)
      by (split; [apply Rmult_le_pos; lra|apply Rmult_le_compat; lra]).
    set (x := INR R_ * (17 + 16 * INR R_)) in *. set (y := lam_weight_written A R_ + lame32).
    assert (T2 : 0 <= y <= 1003 * lame32) by (unfold y; lra). clearbody x y.
    assert (T3 : 0 <= x * y <= 1000 * 16017 * (1003 * lame32))
      by (split; [apply Rmult_le_pos; lra|apply Rmult_le_compat; lra]).
    replace (x * lame32 * y) with (x * y * lame32) by ring.
    assert (T4 := Rmult_le_compat_r lame32 (x * y) 1 ltac:(lra) ltac:(lra)).
    split; [apply Rmult_le_pos; lra|]. lra. }
  assert (Fa : 0 <= factor K A J R_ <= 16).
  { unfold factor, factor_grown. simpl thE. simpl T. simpl up. simpl lame. simpl u. rewrite Rmult_0_r, Rplus_0_l, Pu.
    assert (U0 : 0 <= / 2 ^ 24) by lra. assert (L2 : 0 <= lame32) by lra.
    assert (P1 := power_le_exp _ (underflow_depth K J R_) U0). assert (P2 := power_le_exp _ R_ L2).
    assert (O1 := pow_ge1 _ (underflow_depth K J R_) U0). assert (O2 := pow_ge1 _ R_ L2).
    assert (D1 : INR (underflow_depth K J R_) * / 2 ^ 24 <= / 2).
    { unfold underflow_depth. rewrite plus_INR. lra. }
    assert (D0 : 0 <= INR (underflow_depth K J R_) * / 2 ^ 24) by (apply Rmult_le_pos; [apply pos_INR|lra]).
    assert (D2 : 0 <= INR R_ * lame32 <= / 2).
    { split; [apply Rmult_le_pos; lra|]. assert (INR R_ * lame32 <= 1000 * lame32) by (apply Rmult_le_compat_r; lra).
      lra. }
    assert (X1 := exp_below_two _ (conj D0 D1)). assert (X2 := exp_below_two _ D2).
    assert (X3 := exp_below_two (2 * rest A R_) ltac:(lra)). assert (X4 := exp_ge1 (2 * rest A R_) ltac:(lra)).
    unfold pw. set (e := exp (2 * rest A R_)) in *. set (p := (1 + / 2 ^ 24) ^ underflow_depth K J R_) in *.
    set (q := (1 + lame32) ^ R_) in *. clearbody e p q.
    replace (2 * (e * (1 + (p - 1)) * (1 + 0) * (1 + (q - 1)))) with (2 * (e * (p * q))) by ring.
    assert (0 <= p * q <= 2 * 2) by (split; [apply Rmult_le_pos; lra|apply Rmult_le_compat; lra]).
    assert (0 <= e * (p * q) <= 2 * (2 * 2)) by (split; [apply Rmult_le_pos; lra|apply Rmult_le_compat; lra]). lra. }
  assert (Ld : LD K A J R_ (lam_weight_written A R_) 0 <= / 2).
  { unfold LD, rescaling_operations. simpl lam. simpl lampd. rewrite Pe. set (n := INR (length J)) in *.
    set (w := lam_weight_written A R_ + lam_twice A R_ (lam_weight_written A R_)) in *.
    assert (W : 0 <= w <= 1003 * lame32) by (unfold w; lra).
    assert (N1 : 0 <= n * w <= 2 ^ 20 * (1003 * lame32))
      by (split; [apply Rmult_le_pos; lra|apply Rmult_le_compat; lra]).
    set (y := n * w + (n + 2 * INR R_) * (lame32 * / 2) + n * (0 + 0)).
    assert (Y : 0 <= y <= / 2 ^ 10).
    { unfold y. assert (0 <= (n + 2 * INR R_) * (lame32 * / 2)) by (apply Rmult_le_pos; lra).
      assert ((n + 2 * INR R_) * (lame32 * / 2) <= 2 ^ 21 * (lame32 * / 2)) by (apply Rmult_le_compat_r; lra). lra. }
    assert (factor K A J R_ * y <= 16 * / 2 ^ 10) by (apply Rmult_le_compat; lra). lra. }
  unfold denominator. simpl u. simpl upd. rewrite Pu.
  assert (B := power_below_one (/ 2 ^ 24) (weight_roundings K J R_) ltac:(lra)).
  assert (C : INR (weight_roundings K J R_) <= 2 ^ 20 + 2000).
  { unfold weight_roundings. rewrite plus_INR, mult_INR. simpl (INR 2). lra. }
  assert (M := Rmax_r (1 - UD K s A a J R_) ((1 - / 2 ^ 24) ^ weight_roundings K J R_ * (1 - 0))).
  lra.
Qed.

(** Every such row, with what the bound of core/bound is as it is written. *)
Theorem online_as_written_binary32 K (sh vv : K -> R) fexp s a b bs :
  (forall x, x <= 0 -> 0 <= fexp x /\ rounded eps32 lame32 (exp x) (fexp x)) -> (forall x, inF (-149) 24 (fexp x)) ->
  (forall j, inF (-149) 24 (sh j)) ->
  Forall (fun b => Permutation (leaves K (fst b)) (leaves K (snd b))) (b :: bs) ->
  let J := keys_of K (b :: bs) in let R_ := length (b :: bs) in
  (length J <= 2 ^ 20)%nat -> (R_ <= 1000)%nat -> scores_within K s a J sh ->
  Rabs (finish (-149) 24 (online (-149) 24 K sh vv fexp b bs) - exact K s vv J) <=
    allowed K s vv A a J R_ (lam_weight_written A R_) 0 1 0 0.
Proof.
  intros He Hf Hs F J R_ Hn Hr Ha. destruct least_number as (L0 & _ & Pe).
  apply (@online_as_written (-149) 24 eq_refl K sh vv fexp eps32 lame32); auto; [unfold eps32; lra|lra|lra|
    apply denominator_binary32; auto].
Qed.
(** There is such an exponential: e^x rounded. *)
Lemma exponential_32 x : 0 <= row.rnd32 (exp x) /\ rounded eps32 lame32 (exp x) (row.rnd32 (exp x)).
Proof.
  destruct (row.exponential_binary32 x) as (_ & [P Q] & _). split; auto. destruct least_number as (L0 & _ & Pe).
  destruct powers as [Pu _]. unfold rounded in *. rewrite Pu, Pe in Q. assert (E := exp_pos x).
  rewrite (Rabs_pos_eq (exp x)) in * by lra.
  assert (Rmin (lame32 * / 2) (exp x) <= Rmin lame32 (exp x)) by (apply Rle_min_compat; lra).
  assert (/ 2 ^ 24 * exp x <= eps32 * exp x) by (apply Rmult_le_compat_r; [|unfold eps32]; lra). lra.
Qed.
End Binary32.
