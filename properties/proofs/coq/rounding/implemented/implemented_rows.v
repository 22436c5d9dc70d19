(** Rows held to the tolerance of core/bound: scores from q, k and a bias as it counts their errors, and programs. *)
From Coq Require Import Reals List Lra Lia Psatz Permutation ZArith.
From Flocq Require Import Core.
From Attest.Rounding Require Import basics scores score_variants merge bound documented kernels implemented.
From Attest.Rounding Require row.
Import ListNotations.
Open Scope R_scope.

Section Scores.
(** As Profile: q.k, the constant that it is scaled by, the scaled product, the bias by itself, the sum with it; and
    log2(e), where exponents are of base 2 (else 0). *)
Variables u_s lam_s th_tau th_scale lam_scale u_bc lam_bc th_bias lam_bias th_l2e : R.
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
Definition tm (g_mean s_mean t b : R) :=
  th_tau * (1 + th_l2e) * Rabs (t - g_mean) + th_l2e * Rabs (t + b - s_mean).

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

Lemma scored_within d products b sh : Rabs d <= th_tau -> scored d products b sh ->
  let t := tau * dot products in
  Rabs (sh - (t + b + d * t)) <= a_of_key (length products) (Sum Rabs products) t b.
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
  replace (sh - (t + b + d * t)) with ((sh - (t + bh + d * t)) + (bh - b)) by ring.
  eapply Rle_trans; [apply Rabs_triang|].
  assert (Eq : a_of_key n_s X t b = (1 + th_bias) * ((1 + th_tau) * ((1 + th_scale) * (tau * e1) + th_scale * Rabs t) +
    lam_scale) + th_bias * (Rabs (t + b) + th_tau * Rabs t) + lam_bias + (1 + th_bias) * (u_bc * Rabs b + lam_bc)).
  { unfold a_of_key, constant, on_size, on_t, on_s, on_b, before, after, tt, gs, pw, e1. ring. }
  rewrite Eq. lra.
Qed.

(** From q, k, a bias and values to the output: every kernel of the class. *)
Section Row.
Variable K : Type.
Variable products : K -> list R.
Variables bias vv : K -> R.
Variable A : arith.
Hypothesis OK : sane A.
Hypothesis Up_d : upd A <= up A.
Hypothesis Lamp_d : lampd A <= lamp A.
Variable J : list K.
Variables r c_div : nat.
Variables u_o lam_o : R.
Hypothesis Out : 0 <= u_o /\ 0 <= lam_o.
Definition t j := tau * dot (products j).
Definition s j := t j + bias j.
Definition a j := a_of_key (length (products j)) (Sum Rabs (products j)) (t j) (bias j).
(** What core/bound has of the keys' errors; the means are any numbers. Where the scale is folded into the exponents of
    base 2, u_ref is what references are rounded by. *)
Variables g_mean s_mean : R.
Definition a_with g_mean s_mean j := a j * (1 + th_l2e) + tm g_mean s_mean (t j) (bias j).
Definition of_row (folded : bool) (u_ref : R) : errors K := {|
  err := a_with g_mean s_mean; whole := a_with 0 0; c_m := if folded then 1 else 0; u_e := u_ref |}.

(** Of natural exponents it is a_j + tm_j. *)
Lemma without_log2e j : th_l2e = 0 -> a_with g_mean s_mean j = a j + th_tau * Rabs (t j - g_mean).
Proof. intros Z. unfold a_with, tm. rewrite Z. ring. Qed.

Lemma row_within d dl made g_m s_m : Rabs d <= th_tau -> Rabs dl <= th_l2e ->
  (forall j, In j J -> scored d (products j) (bias j) (made j)) -> forall j, In j J ->
  Rabs ((1 + dl) * made j - (s j + (d * (1 + dl) * g_m + dl * s_m))) <= a_with g_m s_m j.
Proof.
  intros Hd Hl Hs j Hj. assert (H := scored_within d _ _ _ Hd (Hs j Hj)). unfold a_with, tm.
  assert (Q := constants_are_common (s j) (t j) (made j) (a j) d dl th_tau th_l2e g_m s_m H Hd Hl). unfold s in *. lra.
Qed.

Theorem implemented_row folded u_ref oh : let e := of_row folded u_ref in covered A e -> 0 <= u_ref ->
  (exists made d dl, Rabs d <= th_tau /\ Rabs dl <= th_l2e /\
    (forall j, In j J -> scored d (products j) (bias j) (made j)) /\
    answers K vv A J r c_div u_o lam_o e (fun j => (1 + dl) * made j) oh) ->
  0 < denominator K s A e usual J r ->
  Rabs (oh - exact K s vv J) <= allowed K s vv A e usual J r c_div u_o lam_o.
Proof.
  intros e Cv Pu (made & d & dl & Hd & Hl & Hs & Ha). assert (W := row_within d dl made).
  apply implemented_tolerance with (fun j => (1 + dl) * made j); auto.
  - simpl. destruct folded; lra.
  - exists (d * (1 + dl) * g_mean + dl * s_mean). intros j Hj. apply (W g_mean s_mean Hd Hl Hs j Hj).
  - right. intros j Hj. assert (Q := W 0 0 Hd Hl Hs j Hj).
    replace (s j + (d * (1 + dl) * 0 + dl * 0)) with (s j) in Q by ring. exact Q.
Qed.
End Row.
End Scores.

(** Sums of a declared depth, of kernels that keep to it. *)
Definition with_additions (A : arith) (d : option nat) : arith := {| u := u A; lam := lam A; thE := thE A; xl := xl A;
  xr := xr A; T := T A; gap := gap A; off := off A; last := last A; eps := eps A; lame := lame A; up := up A;
  lamp := lamp A; upd := upd A; lampd := lampd A; nearest := nearest A; additions := d |}.
Lemma with_additions_sane A d : sane A -> sane (with_additions A d).
Proof. intros []. constructor; simpl; auto. Qed.
Lemma sums_with_additions K sh A d xk v w0 lamw ts m y k r c :
  sums_by K sh A xk v w0 lamw ts m y k r c -> sums_by K sh (with_additions A d) xk v w0 lamw ts m y k r c.
Proof. intros H. apply (sums_by_more K sh A (with_additions A d) xk v w0 lamw lamw); auto. lra. Qed.

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
(** In any order, or no block in more than h additions of a term: h and one for each block are declared. *)
Lemma online_within d h b bs :
  Forall (fun b => Permutation (leaves K (fst b)) (leaves K (snd b))) (b :: bs) ->
  Forall (fun b => depth K (fst b) <= h /\ depth K (snd b) <= h)%nat (b :: bs) ->
  d = None \/ d = Some (h + length (b :: bs))%nat ->
  let J := keys_of K (b :: bs) in let R_ := length (b :: bs) in let Ad := with_additions A d in
  scores_within K s J a sh -> 0 < denominator K s Ad (natural a) usual J R_ ->
  Rabs (finish emin prec (online emin prec K sh vv fexp b bs) - exact K s vv J) <=
    allowed K s vv Ad (natural a) usual J R_ 1 0 0.
Proof.
  intros F D Deep J R_ Ad Hs Hd. assert (Pe := eta_pos emin). set (st := online emin prec K sh vv fexp b bs).
  destruct (good_online emin prec K sh vv fexp epsE lamE HepsE HlamE exp_good exp_inF sh_inF b bs h F D)
    as (kl & cl & ko & co & G & Ck & Cn). fold J in Cn, G. fold st in G.
  destruct G as [(tl & to_ & Pm & Pp & SL & SO) (i & Ii & Ei) _ _].
  assert (Cv : covered Ad (natural a)).
  { split; [auto|]. split; [simpl; lra|]. unfold twice. simpl. lra. }
  assert (Sh : forall k, (k <= h + 2 * length bs)%nat -> shallow Ad R_ k).
  { intros k Hk. unfold shallow, R_, Ad. cbn [with_additions additions].
    destruct Deep as [E|E]; rewrite E; simpl; [auto|lia]. }
  apply (as_written_tolerance K s vv Ad (with_additions_sane A d (A_sane emin prec epsE lamE HepsE HlamE)) (Rle_refl _)
    (Rle_refl _) J R_ 1 0 0 (conj (Rle_refl _) (Rle_refl _)) a sh); auto.
  - destruct st as [[m l] o] eqn:Est. simpl in *.
    exists tl, to_, m, l, o, kl, (length bs), cl, ko, (length bs), co, (kernels.rnd emin prec (o / l)).
    do 2 (split; [assumption|]). split; [apply (sums_with_additions K sh A); assumption|].
    unfold R_. simpl length. split; [lia|]. split; [lia|]. split; [apply Sh; lia|].
    split; [apply (sums_with_additions K sh A); assumption|]. split; [lia|]. split; [lia|].
    split; [apply Sh; lia|]. split; [exists i; split; auto; lra|]. split.
    + exists (o / l). split; [reflexivity|apply rnd_near; auto].
    + unfold near. rewrite Rminus_eq_0, Rabs_R0. lra.
Qed.
Theorem online_as_written b bs :
  Forall (fun b => Permutation (leaves K (fst b)) (leaves K (snd b))) (b :: bs) ->
  let J := keys_of K (b :: bs) in let R_ := length (b :: bs) in
  scores_within K s J a sh -> 0 < denominator K s A (natural a) usual J R_ ->
  Rabs (finish emin prec (online emin prec K sh vv fexp b bs) - exact K s vv J) <=
    allowed K s vv A (natural a) usual J R_ 1 0 0.
Proof.
  intros F J R_.
  set (h := fold_right (fun c x => Nat.max (Nat.max (depth K (fst c)) (depth K (snd c))) x) 0%nat (b :: bs)).
  apply (online_within None h b bs F); auto.
  unfold h. generalize (b :: bs). intros l. induction l as [|c l IH]; constructor; simpl; [lia|].
  eapply Forall_impl; [|apply IH]. intros c'. simpl. lia.
Qed.
Theorem online_of_depth h b bs :
  Forall (fun b => Permutation (leaves K (fst b)) (leaves K (snd b))) (b :: bs) ->
  Forall (fun b => depth K (fst b) <= h /\ depth K (snd b) <= h)%nat (b :: bs) ->
  let J := keys_of K (b :: bs) in let R_ := length (b :: bs) in let Ad := with_additions A (Some (h + R_)%nat) in
  scores_within K s J a sh -> 0 < denominator K s Ad (natural a) usual J R_ ->
  Rabs (finish emin prec (online emin prec K sh vv fexp b bs) - exact K s vv J) <=
    allowed K s vv Ad (natural a) usual J R_ 1 0 0.
Proof. intros F D. apply (online_within _ h b bs F D). auto. Qed.
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
Lemma small_rest R_ : (R_ <= 1000)%nat -> 0 <= rest A usual R_ <= 1001 * / 2 ^ 22.
Proof.
  intros H. apply le_INR in H. replace (INR 1000) with 1000 in H by (simpl; lra). assert (I := pos_INR R_).
  unfold rest, of_exp. simpl on_all. simpl eps. simpl xl. simpl xr. unfold eps32.
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
  0 < denominator K s A (natural a) usual J R_.
Proof.
  intros Hn H. destruct powers as [Pu _]. destruct least_number as (L0 & L1 & Pe).
  assert (Q := small_rest R_ H). apply le_INR in H.
  replace (INR 1000) with 1000 in H by (simpl; lra). assert (I := pos_INR R_).
  assert (Hn' := le_INR _ _ Hn). rewrite pow_INR in Hn'. replace (INR 2) with 2 in Hn' by (simpl; lra).
  assert (In := pos_INR (length J)).
  assert (Ud : underflow_depth K A J R_ = (length J + R_)%nat)
    by (unfold underflow_depth, sum_depth; simpl; lia).
  assert (Wr : weight_roundings K A J R_ = (length J + 2 * R_)%nat) by reflexivity.
  (* what is lost *)
  assert (Lw : 0 <= lam_weight K A (natural a) R_ <= 1002 * lame32).
  { unfold lam_weight. simpl lame. simpl T. simpl c_m.
    replace ((1 + thE A) * 0 + 0 / 2) with 0 by lra. rewrite exp_0. split; [apply Rmult_le_pos; lra|].
    assert (lame32 * (2 + INR R_ * 1) <= lame32 * 1002) by (apply Rmult_le_compat_l; lra). lra. }
  assert (Lt : 0 <= lam_twice K A (natural a) R_ <= lame32).
  { unfold lam_twice. simpl lame. simpl lamp. rewrite Rplus_0_l.
    assert (T0 : 0 <= 17 + 16 * INR R_ <= 16017) by lra.
    assert (T1 : 0 <= INR R_ * (17 + 16 * INR R_) <= 1000 * 16017)
      by (split; [apply Rmult_le_pos; lra|apply Rmult_le_compat; lra]).
    set (x := INR R_ * (17 + 16 * INR R_)) in *. set (y := lam_weight K A (natural a) R_ + lame32).
    assert (T2 : 0 <= y <= 1003 * lame32) by (unfold y; lra). clearbody x y.
    assert (T3 : 0 <= x * y <= 1000 * 16017 * (1003 * lame32))
      by (split; [apply Rmult_le_pos; lra|apply Rmult_le_compat; lra]).
    replace (x * lame32 * y) with (x * y * lame32) by ring.
    assert (T4 := Rmult_le_compat_r lame32 (x * y) 1 ltac:(lra) ltac:(lra)).
    split; [apply Rmult_le_pos; lra|]. lra. }
  assert (Fa : 0 <= factor K s A (natural a) usual J R_ <= 16).
  { unfold factor, factor_grown. rewrite Ud. simpl thE. simpl T. simpl up. simpl lame. simpl u. simpl below.
    rewrite (proj2 (no_residual K s A a a J)), Rmult_0_r, Rplus_0_l, Rplus_0_r, exp_0, Rmult_1_r, Pu.
    assert (U0 : 0 <= / 2 ^ 24) by lra. assert (L2 : 0 <= lame32) by lra.
    assert (P1 := power_le_exp _ ((length J + R_)) U0). assert (P2 := power_le_exp _ R_ L2).
    assert (O1 := pow_ge1 _ ((length J + R_)) U0). assert (O2 := pow_ge1 _ R_ L2).
    assert (D1 : INR ((length J + R_)) * / 2 ^ 24 <= / 2).
    { rewrite plus_INR. lra. }
    assert (D0 : 0 <= INR ((length J + R_)) * / 2 ^ 24) by (apply Rmult_le_pos; [apply pos_INR|lra]).
    assert (D2 : 0 <= INR R_ * lame32 <= / 2).
    { split; [apply Rmult_le_pos; lra|]. assert (INR R_ * lame32 <= 1000 * lame32) by (apply Rmult_le_compat_r; lra).
      lra. }
    assert (X1 := exp_below_two _ (conj D0 D1)). assert (X2 := exp_below_two _ D2).
    assert (X3 := exp_below_two (2 * rest A usual R_) ltac:(lra)).
    assert (X4 := exp_ge1 (2 * rest A usual R_) ltac:(lra)).
    unfold pw. set (e := exp (2 * rest A usual R_)) in *. set (p := (1 + / 2 ^ 24) ^ (length J + R_)) in *.
    set (q := (1 + lame32) ^ R_) in *. clearbody e p q.
    replace (2 * (e * (1 + (p - 1)) * (1 + 0) * (1 + (q - 1)))) with (2 * (e * (p * q))) by ring.
    assert (0 <= p * q <= 2 * 2) by (split; [apply Rmult_le_pos; lra|apply Rmult_le_compat; lra]).
    assert (0 <= e * (p * q) <= 2 * (2 * 2)) by (split; [apply Rmult_le_pos; lra|apply Rmult_le_compat; lra]). lra. }
  assert (Ld : LD K s A (natural a) usual J R_ <= / 2).
  { unfold LD, rescaling_operations, lam_rounded. simpl merge_operations. rewrite Rplus_0_r. simpl lam. simpl lampd.
    rewrite Rmin_left, Pe by (rewrite Pe; lra). set (n := INR (length J)) in *.
    set (w := lam_weight K A (natural a) R_ + lam_twice K A (natural a) R_) in *.
    assert (W : 0 <= w <= 1003 * lame32) by (unfold w; lra).
    assert (N1 : 0 <= n * w <= 2 ^ 20 * (1003 * lame32))
      by (split; [apply Rmult_le_pos; lra|apply Rmult_le_compat; lra]).
    set (y := n * w + (n + 2 * INR R_) * (lame32 * / 2) + n * (0 + 0)).
    assert (Y : 0 <= y <= / 2 ^ 10).
    { unfold y. assert (0 <= (n + 2 * INR R_) * (lame32 * / 2)) by (apply Rmult_le_pos; lra).
      assert ((n + 2 * INR R_) * (lame32 * / 2) <= 2 ^ 21 * (lame32 * / 2)) by (apply Rmult_le_compat_r; lra). lra. }
    assert (factor K s A (natural a) usual J R_ * y <= 16 * / 2 ^ 10) by (apply Rmult_le_compat; lra). lra. }
  unfold denominator, lowest. simpl merge. rewrite Ropp_0, exp_0, Rmult_1_r, Wr. simpl u. simpl upd. rewrite Pu.
  assert (B := power_below_one (/ 2 ^ 24) ((length J + 2 * R_)) ltac:(lra)).
  assert (C : INR ((length J + 2 * R_)) <= 2 ^ 20 + 2000).
  { rewrite plus_INR, mult_INR. simpl (INR 2). lra. }
  assert (M := Rmax_r (1 - UD_of_sum K s A (natural a) usual J R_) ((1 - / 2 ^ 24) ^ (length J + 2 * R_) * (1 - 0))).
  lra.
Qed.

(** Every such row, with what the bound of core/bound is as it is written. *)
Theorem online_as_written_binary32 K (sh vv : K -> R) fexp s a b bs :
  (forall x, x <= 0 -> 0 <= fexp x /\ rounded eps32 lame32 (exp x) (fexp x)) -> (forall x, inF (-149) 24 (fexp x)) ->
  (forall j, inF (-149) 24 (sh j)) ->
  Forall (fun b => Permutation (leaves K (fst b)) (leaves K (snd b))) (b :: bs) ->
  let J := keys_of K (b :: bs) in let R_ := length (b :: bs) in
  (length J <= 2 ^ 20)%nat -> (R_ <= 1000)%nat -> scores_within K s J a sh ->
  Rabs (finish (-149) 24 (online (-149) 24 K sh vv fexp b bs) - exact K s vv J) <=
    allowed K s vv A (natural a) usual J R_ 1 0 0.
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
