(** The tolerance as core/bound computes it, term by term, and that it is at least the proved one (documented.v): of
    natural exponents, a maximum that is taken or lags, sums of any order to nearest, weights of any format. The names
    are those of the C++; what it rounds up, and keys whose weight no double holds, are real numbers here. *)
From Coq Require Import Reals List Lra Lia Psatz Permutation.
From Attest.Rounding Require Import basics merge bound documented.
Import ListNotations.
Open Scope R_scope.

(** error_bound.h: pw, join. *)
Definition pw (u : R) (count : nat) := (1 + u) ^ count - 1.
Definition join (a b : R) := a + b + a * b.

(** No more is said here: no reference above the scores, no folded scale, any order, to nearest. *)
Definition covered (A : arith) := gap A = 0 /\ off A = 0 /\ last A = 0 /\ additions A = None /\ nearest A = true.

Section Implemented.
Variable K : Type.
Variables s vv : K -> R.
Variable A : arith.    (* as Profile: u_a, lam_a, thE, lam_exponent (xl, xr), lazy (T), eps_exp, lam_e, u_p, lam_p *)
Variable a : K -> R.   (* a_j and tm_j of key_loops.inc, score_errors: their sum is all that enters *)
Variable J : list K.
Variable r : nat.      (* rescalings *)
Local Notation n := (length J).
Local Notation R_ := (INR r).
Local Notation u_a := (u A).
Local Notation lam_a := (lam A).
Local Notation o := (exact K s vv J).

(** ** key_terms.cc *)

(** key_loops.inc, score_range: M. *)
Definition M := match J with [] => 0 | j :: l => fold_right (fun i x => Rmax (s i + a i) x) (s j + a j) l end.
(** set_exponent_constants: rest. *)
Definition of_exp := eps A / (1 - eps A).
Definition rest := of_exp * (1 + R_) + xl A + R_ * xr A.
(** key_loops.inc, errors: D, E. *)
Definition D j := (M - s j) + a j + 2 * T A.
Definition E j := a j + thE A * D j + rest.
(** key_loops.inc, normalise: la. least_log_sum: z. weights_by_exponents: ph, pp. *)
Definition la j := s j - ln (total K s J).
Definition z := ln (Sum (fun j => exp (la j - E j)) J).
Definition ph j := exp (la j - z) * (exp (E j) - 1).
Definition pp j := Rmin 1 (exp (la j + E j - z)).
(** WeightSums: denominators, big. *)
Definition is_big j := if Rlt_dec u_a (pp j) then true else false.
Definition least_weights := Sum (fun j => Rmin (pp j) u_a) J.
Definition big := Sum (fun j => if is_big j then 1 else 0) J.

(** find_denominator: lam_weight as it is written there, and as it is proved to be enough. What follows is of any. *)
Definition lam_weight_written := lame A * (2 + R_ * exp (T A)).
Definition lam_weight_enough := lame A * (2 + R_ * exp (T A + thE A * T A)).
Variable lam_weight : R.
(** What a key loses in the sum of weights beside all that: nothing as it is written. *)
Definition lam_more_enough := Rmin (lampd A) lam_a.
Variable lam_more : R.

(** find_denominator: lam_twice, sum_error. *)
Definition lam_twice := R_ * (17 + 16 * R_) * lame A * (lamp A + lam_weight + lame A).
Definition weight_roundings := (n + 2 * r)%nat.
Definition chain := pw u_a (n + 1 + 2 * r).
Definition sum_error :=
  Rmin (pw u_a weight_roundings) ((1 + chain) * (2 * R_ * u_a + (1 + chain) * least_weights)).
(** underflow_factor. *)
Definition underflow_depth := (n + r)%nat.
Definition factor_grown :=
  exp (2 * (thE A * T A + rest)) * (1 + pw u_a underflow_depth) * (1 + up A) * (1 + pw (lame A) r).
Definition factor := 2 * factor_grown.
Definition rescaling_operations := 2 * R_.
Definition LD :=
  factor * (INR n * (lam_weight + lam_twice) + (INR n + rescaling_operations) * lam_a + INR n * (lampd A + lam_more)).
(** denominator_of. *)
Definition UD := join sum_error (upd A).
Definition denominator := Rmax (1 - UD) ((1 - u_a) ^ weight_roundings * (1 - upd A)) - LD.

(** ** row_bound.cc *)

(** Finish: Uf, lam, and what it makes of an error before. *)
Section Finish.
Variable c_div : nat.
Variables u_o lam_o : R.
Definition Uf := join (pw u_a c_div) u_o.
Definition lam_finish := (1 + Uf) * (INR c_div * lam_a + lam_o).
Definition finished before size := (1 + Uf) * before + Uf * size + lam_finish.

(** column_of: the largest value and distance, A+. bound_scores: S. *)
Definition most_value := most K J (fun j => Rabs (vv j)).
Definition apart := most K J (fun j => Rabs (vv j - o)).
Definition A_plus := Rmin (Sum (fun j => pp j * Rabs (vv j)) J) most_value.
Definition of_scores := Rmin (Sum (fun j => ph j * Rabs (vv j - o)) J) apart.
(** Accumulation: plain, local, merges. accumulation_error. *)
Definition plain := pw u_a (n + 1 + 2 * r).
Definition local := (1 + 2 * R_) * u_a.
Definition merges := (1 + chain) * big * u_a.
Definition A_small := Sum (fun j => if is_big j then 0 else pp j * Rabs (vv j)) J.
Definition accumulation_error :=
  Rmin (plain * A_plus) ((1 + chain) * (local * A_plus + (1 + chain) * (merges * A_plus + A_small))).
(** RowPass: lam_keys, LN, per_lost. lost_weights: what a key loses at the most. underflow_sums. *)
Definition abs_sum := Sum (fun j => Rabs (vv j)) J.
Definition lam_keys := Rmin (lamp A) 1 + lam_weight + lam_twice.
Definition stored j := Rmin (lamp A) (pp j).
Definition cap j := stored j + Rmin lam_weight ((1 + / 16) * pp j + stored j).
Definition lost := Rmin (lam_keys * abs_sum) (Sum (fun j => Rabs (vv j) * cap j) J + lam_twice * abs_sum).
Definition LN := factor * ((2 * INR n + rescaling_operations) * lam_a).
Definition per_lost := (1 + Uf) * / denominator * factor.
(** bound_answer: N, B. *)
Definition of_values := up A * A_plus + (1 + up A) * accumulation_error.
Definition allowed :=
  finished (of_scores + (of_values + LN + (Rabs o + of_scores) * (UD + LD)) * / denominator) (Rabs o) + per_lost * lost.
End Finish.

(** ** What of it is the proved tolerance by another name *)
Hypothesis OK : sane A.
Hypothesis NJ : J <> [].

Lemma M_ge j : In j J -> s j + a j <= M.
Proof.
  unfold M. destruct J as [|i l]; [intros []|]. clear NJ.
  assert (Q : forall l, s i + a i <= fold_right (fun i x => Rmax (s i + a i) x) (s i + a i) l /\
    forall j, In j l -> s j + a j <= fold_right (fun i x => Rmax (s i + a i) x) (s i + a i) l).
  { clear l. induction l as [|k l [I1 I2]]; simpl; [split; [lra|tauto]|]. split.
    - eapply Rle_trans; [apply I1|apply Rmax_r].
    - intros j' [->|H]; [apply Rmax_l|]. eapply Rle_trans; [apply I2; auto|apply Rmax_r]. }
  destruct (Q l) as [Q1 Q2]. intros [<-|H]; auto.
Qed.
Lemma rest_is : rest = X A r.
Proof. unfold rest, of_exp, X, eps1. ring. Qed.
Hypothesis Covered : covered A.
Lemma E_is j : E j = bound.E K s A a M r j.
Proof. unfold E, D, bound.E, bound.D. rewrite rest_is, (proj1 Covered). ring. Qed.
Lemma h_is : h K A J = n.
Proof. unfold h. destruct Covered as (_ & _ & _ & -> & _). auto. Qed.
Lemma hk_is : hk K A J r = kk K J r.
Proof. unfold hk, kk. destruct Covered as (_ & _ & _ & -> & _). auto. Qed.
Lemma refined_is x y : refined A x y = Rmin x y.
Proof. unfold refined. destruct Covered as (_ & _ & _ & _ & ->). auto. Qed.
Lemma twice_is : twice A = 2.
Proof. unfold twice. destruct Covered as (_ & _ & _ & _ & ->). auto. Qed.
Lemma exp_la j : exp (la j) = alpha K s J j.
Proof.
  unfold la, alpha. rewrite exp_minus, exp_ln; auto. apply total_pos; auto.
Qed.
Lemma exp_z : exp z = Zm K s A a J M r /\ 0 < exp z.
Proof.
  split; [|apply exp_pos]. unfold z. rewrite exp_ln.
  - apply Sum_ext. intros j _. unfold Rminus. rewrite exp_plus, exp_la, E_is. auto.
  - apply Sum_pos; auto. intros. apply exp_pos.
Qed.
Lemma ph_is j : ph j = bound.ph K s A a J M r j.
Proof.
  destruct exp_z as [Q P]. unfold ph, bound.ph. rewrite exp_minus, exp_la, E_is, <- Q. field. lra.
Qed.
Lemma pp_is j : pp j = bound.pp K s A a J M r j.
Proof.
  destruct exp_z as [Q P]. unfold pp, bound.pp. rewrite exp_minus, exp_plus, exp_la, E_is, <- Q. auto.
Qed.
Lemma of_scores_is : of_scores = spread K s vv A a J M r.
Proof. unfold of_scores, spread, apart. f_equal. apply Sum_ext. intros. rewrite ph_is. auto. Qed.
Lemma A_plus_is : A_plus = size K s vv A a J M r.
Proof. unfold A_plus, size, most_value. f_equal. apply Sum_ext. intros. rewrite pp_is. auto. Qed.
Lemma sum_error_is : sum_error = UD0 K s A a J M r.
Proof.
  unfold sum_error, UD0, least_weights. rewrite refined_is, h_is,
    (Sum_ext _ (fun j => Rmin (u A) (bound.pp K s A a J M r j)))
    by (intros; rewrite pp_is; apply Rmin_comm). auto.
Qed.
Lemma UD_is : UD = UDd K s A a J M r.
Proof. unfold UD, UDd, join. rewrite sum_error_is. auto. Qed.

(** ** What is larger than there *)
Lemma pp_pos j : 0 <= pp j.
Proof. apply Rmin_glb; [lra|left; apply exp_pos]. Qed.
Lemma chain_pos : 0 <= chain.
Proof. unfold chain, pw. assert (Q := pow_ge1 (u A) (n + 1 + 2 * r) (s_u A OK)). lra. Qed.
Lemma A_plus_pos : 0 <= A_plus.
Proof. rewrite A_plus_is. apply size_pos'; auto. Qed.

(** The partition by weights is no better than the best. *)
Lemma accumulation_le : acc K s vv A a J M r <= accumulation_error.
Proof.
  assert (C := chain_pos). assert (U0 := s_u A OK). assert (P := A_plus_pos). unfold acc, accumulation_error.
  rewrite <- A_plus_is. fold (pw (u A) (n + 1 + 2 * r)).
  rewrite refined_is, h_is. change (documented.gc K A J r) with chain.
  change (documented.pw A (n + 1 + 2 * r)) with plain.
  apply Rle_min_compat; [lra|]. apply Rmult_le_compat_l; [lra|]. unfold local. apply Rplus_le_compat_l.
  apply Rmult_le_compat_l; [lra|].
  assert (Q : Sum (fun j => Rmin (u_a * A_plus) (bound.pp K s A a J M r j * Rabs (vv j))) J <=
    big * (u_a * A_plus) + A_small).
  { unfold big, A_small. rewrite (Rmult_comm _ (u_a * A_plus)), <- Sum_scal, <- Sum_plus. apply Sum_le. intros j _.
    rewrite <- pp_is. destruct (is_big j); [assert (Q := Rmin_l (u_a * A_plus) (pp j * Rabs (vv j)))|
      assert (Q := Rmin_r (u_a * A_plus) (pp j * Rabs (vv j)))]; lra. }
  assert (B0 : 0 <= big) by (apply Sum_nonneg; intros; destruct (is_big x); lra).
  assert (0 <= big * (u_a * A_plus)) by (repeat apply Rmult_le_pos; auto).
  assert (0 <= chain * (big * (u_a * A_plus))) by (apply Rmult_le_pos; auto). unfold merges. lra.
Qed.
Lemma of_values_le : 0 <= Nd K s vv A a J M r <= of_values.
Proof.
  assert (Q := accumulation_le). assert (P := A_plus_pos).
  assert (Ac : 0 <= acc K s vv A a J M r).
  { assert (C := chain_pos). assert (U0 := s_u A OK). assert (Ir := pos_INR r). unfold acc. rewrite <- A_plus_is.
    rewrite refined_is, h_is. change (documented.gc K A J r) with chain.
    change (documented.pw A (n + 1 + 2 * r)) with chain.
    assert (U1 : 0 <= u_a * A_plus) by (apply Rmult_le_pos; auto).
    apply Rmin_glb; [apply Rmult_le_pos; auto|]. apply Rmult_le_pos; [lra|].
    apply Rplus_le_le_0_compat; [repeat apply Rmult_le_pos; lra|]. apply Rmult_le_pos; [lra|]. apply Sum_nonneg.
    intros j _. apply Rmin_glb; auto. rewrite <- pp_is. apply Rmult_le_pos; [apply pp_pos|apply Rabs_pos]. }
  assert (U := s_up A OK). unfold Nd, of_values. rewrite <- A_plus_is.
  assert (0 <= up A * A_plus) by (apply Rmult_le_pos; auto).
  assert (0 <= (1 + up A) * acc K s vv A a J M r) by (apply Rmult_le_pos; lra).
  assert ((1 + up A) * acc K s vv A a J M r <= (1 + up A) * accumulation_error) by (apply Rmult_le_compat_l; lra). lra.
Qed.

(** P40: all that a loss grows by, and room for what a weight grows by before it is rescaled. *)
Definition room := exp (of_exp + xl A).
Lemma room_ge1 : 1 <= room.
Proof. assert (Q := eps1_pos A OK). assert (X0 := s_xl A OK). apply exp_ge1. unfold of_exp. fold (eps1 A). lra. Qed.
Lemma grown_le w0 k : 1 <= w0 <= (1 + up A) * (1 + u_a) ^ k -> (k <= 1)%nat ->
  2 * (room * grown K A J r w0) <= factor.
Proof.
  intros [W1 W2] Hk. assert (Rm := room_ge1). unfold grown, factor, factor_grown, pw. rewrite hk_is.
  apply Rmult_le_compat_l; [lra|].
  replace (1 + ((1 + u_a) ^ underflow_depth - 1)) with ((1 + u_a) ^ underflow_depth) by ring.
  replace (1 + ((1 + lame A) ^ r - 1)) with ((1 + lame A) ^ r) by ring.
  assert (U0 := s_u A OK). assert (Nn : (1 <= n)%nat) by (destruct J; simpl; [congruence|lia]).
  assert (Up := s_up A OK). assert (L0 := s_lame A OK). assert (E1 := eps1_pos A OK).
  assert (Xr := s_xr A OK). assert (Xl := s_xl A OK). assert (F1 := F_ge1 A OK r).
  assert (Gr : g A ^ r <= exp (R_ * (xr A + eps1 A)) * (1 + lame A) ^ r).
  { replace (exp (R_ * (xr A + eps1 A))) with (exp (xr A + eps1 A) ^ r).
    - rewrite <- Rpow_mult_distr. apply pow_incr. split; [assert (Q := g_ge1 A OK); lra|]. unfold g.
      assert (Q : 1 <= exp (xr A + eps1 A)) by (apply exp_ge1; lra).
      assert (lame A <= exp (xr A + eps1 A) * lame A) by (apply le_times; auto). lra.
    - clear. generalize (xr A + eps1 A). intros y. induction r as [|k IH]; [simpl; rewrite Rmult_0_l, exp_0; auto|].
      rewrite S_INR, Rmult_plus_distr_r, exp_plus, Rmult_1_l, <- IH. simpl. ring. }
  assert (Ex : room * F A r * exp (R_ * (xr A + eps1 A)) <= exp (2 * (thE A * T A + rest))).
  { unfold F, room. rewrite <- !exp_plus. apply exp_mono. destruct Covered as (-> & _ & -> & _). rewrite rest_is.
    unfold X, of_exp. fold (eps1 A). lra. }
  assert (Wk : w0 * (1 + u_a) ^ kk K J r <= (1 + up A) * (1 + u_a) ^ underflow_depth).
  { assert (Pk := pow_ge1 u_a (kk K J r) U0).
    apply Rle_trans with ((1 + up A) * (1 + u_a) ^ k * (1 + u_a) ^ kk K J r); [apply Rmult_le_compat_r; lra|].
    rewrite Rmult_assoc, <- pow_add. apply Rmult_le_compat_l; [lra|]. apply pow_mono; auto.
    unfold kk, underflow_depth. lia. }
  assert (Gp : 1 <= g A ^ r) by (apply pow_R1_Rle, g_ge1; auto).
  assert (Wp : 1 <= w0 * (1 + u_a) ^ kk K J r) by (apply times_ge1; auto; apply pow_ge1; auto).
  replace (room * (F A r * w0 * (1 + u_a) ^ kk K J r * g A ^ r)) with
    (room * F A r * g A ^ r * (w0 * (1 + u_a) ^ kk K J r)) by ring.
  assert (RF : 1 <= room * F A r) by (apply times_ge1; auto).
  replace (exp (2 * (thE A * T A + rest)) * (1 + u_a) ^ underflow_depth * (1 + up A) * (1 + lame A) ^ r) with
    (exp (2 * (thE A * T A + rest)) * (1 + lame A) ^ r * ((1 + up A) * (1 + u_a) ^ underflow_depth)) by ring.
  apply Rmult_le_compat; try lra; [apply Rmult_le_pos; lra|].
  apply Rle_trans with (room * F A r * (exp (R_ * (xr A + eps1 A)) * (1 + lame A) ^ r));
    [apply Rmult_le_compat_l; lra|].
  rewrite <- Rmult_assoc. apply Rmult_le_compat_r; auto. apply pow_le. lra.
Qed.

(** True of every profile: weights are rounded in the sum of weights as they are beside the values, or not at all. *)
Hypothesis Up_d : upd A <= up A.
Hypothesis Lamp_d : lampd A <= lamp A.
(** What lam_weight and lam_more must be. *)
Hypothesis Weight_enough : by_exp_d A r (lamp A) <= room * lam_weight.
Hypothesis More_enough : by_exp_d A r (lampd A) + lam_a <= room * (lam_weight + lam_more).

Lemma by_exp_pos l : 0 <= l -> 0 <= by_exp_d A r l.
Proof.
  intros H. assert (L := s_lame A OK). assert (Gp := gain_pos A 0). assert (Ir := pos_INR r). unfold by_exp_d.
  assert (0 <= R_ * gain A 0) by (apply Rmult_le_pos; lra). assert (Q := Rmin_pos l (lame A) H L).
  assert (0 <= lame A * (1 + R_ * gain A 0)) by (apply Rmult_le_pos; lra). lra.
Qed.
Lemma twice_le l : 0 <= l <= lamp A -> 0 <= twice_d A r l <= room * lam_twice.
Proof.
  intros [L1 L2]. assert (L := s_lame A OK). assert (Ir := pos_INR r). assert (B := by_exp_pos l L1).
  assert (Rm := room_ge1).
  assert (Bm : by_exp_d A r l <= by_exp_d A r (lamp A)).
  { unfold by_exp_d. apply Rplus_le_compat_l. apply Rle_min_compat; lra. }
  assert (Q : 0 <= R_ * (lame A * (17 + 16 * R_))) by (repeat apply Rmult_le_pos; lra). unfold twice_d, lam_twice.
  assert (Q1 := Rmult_le_pos _ _ Q (Rplus_le_le_0_compat _ _ L1 B)).
  assert (Lm : lamp A <= room * lamp A) by (apply le_times; auto; lra).
  assert (Le : lame A <= room * lame A) by (apply le_times; auto).
  assert (Q2 := Rmult_le_compat_l _ (l + by_exp_d A r l) (room * (lamp A + lam_weight + lame A)) Q ltac:(lra)). lra.
Qed.
(** What underflow takes is as little in units of room. *)
Lemma min_room x y c : 0 <= y -> x <= room * c -> Rmin x y <= room * Rmin c y.
Proof.
  intros Py H. assert (Rm := room_ge1). assert (Le : y <= room * y) by (apply le_times; auto).
  destruct (Rle_dec c y) as [Q|Q]; [rewrite (Rmin_left c y) by auto|rewrite (Rmin_right c y) by lra].
  - eapply Rle_trans; [apply Rmin_l|auto].
  - eapply Rle_trans; [apply Rmin_r|auto].
Qed.
Lemma grown_pos w0 : 0 <= w0 -> 0 <= grown K A J r w0.
Proof.
  intros W. unfold grown. rewrite hk_is. assert (F1 := F_ge1 A OK r). assert (P1 := pow_ge1 u_a (kk K J r) (s_u A OK)).
  assert (P2 : 1 <= g A ^ r) by (apply pow_R1_Rle, g_ge1; auto). repeat apply Rmult_le_pos; lra.
Qed.
Lemma loss_d_pos l j : 0 <= l <= lamp A -> 0 <= loss_d K s A a J M r l j.
Proof.
  intros Hl. assert (Tw := twice_le l Hl). unfold loss_d. rewrite <- pp_is. assert (Pj := pp_pos j).
  assert (M1 := Rmin_pos l (pp j) ltac:(lra) Pj). assert (B := by_exp_pos l ltac:(lra)).
  assert (M2 := Rmin_pos (by_exp_d A r l) ((1 + / 16) * pp j + Rmin l (pp j)) B ltac:(lra)). lra.
Qed.

(** All that is lost, with the operations on a sum, in units of room. *)
Lemma lost_le w0 k V Y : 0 <= w0 -> 1 <= w0 <= (1 + up A) * (1 + u_a) ^ k -> (k <= 1)%nat -> 0 <= V <= room * Y ->
  0 <= grown K A J r w0 * (2 * V) <= factor * Y.
Proof.
  intros W0 W Hk [V0 Hv]. assert (G := grown_le w0 k W Hk). assert (Gp := grown_pos w0 W0). assert (Rm := room_ge1).
  assert (Y0 : 0 <= Y) by (apply Rmult_le_reg_l with room; lra).
  assert (Q := Rmult_le_compat_l _ _ _ Gp Hv). assert (Q1 := Rmult_le_compat_r _ _ _ Y0 G).
  assert (Q2 := Rmult_le_pos _ _ Gp V0). lra.
Qed.
Lemma LN_le : 0 <= LNd K s vv A a J M r (2 * n + 2 * r) <= factor * lost + LN.
Proof.
  assert (Wo : 1 <= w_o A).
  { assert (P := s_up A OK). assert (U := s_u A OK). unfold w_o. apply times_ge1; lra. }
  assert (L0 := s_lam A OK). assert (Lp := s_lamp A OK). assert (Rm := room_ge1).
  set (V := Sum (fun j => Rabs (vv j) * loss_d K s A a J M r (lamp A) j) J).
  assert (Tw := twice_le (lamp A) ltac:(lra)).
  assert (V1 : V <= room * (Sum (fun j => Rabs (vv j) * cap j) J + lam_twice * abs_sum)).
  { unfold abs_sum. rewrite <- Sum_scal, <- Sum_plus, <- Sum_scal. apply Sum_le. intros j _. unfold loss_d.
    rewrite <- pp_is. fold (stored j). assert (Pj := pp_pos j).
    assert (St : 0 <= stored j) by (apply Rmin_pos; auto).
    assert (Sr : stored j <= room * stored j) by (apply le_times; auto).
    assert (Q := min_room _ ((1 + / 16) * pp j + stored j) _ ltac:(lra) Weight_enough).
    assert (Q1 := Rmult_le_compat_l _ (stored j + Rmin (by_exp_d A r (lamp A)) ((1 + / 16) * pp j + stored j) +
      twice_d A r (lamp A)) (room * (cap j + lam_twice)) (Rabs_pos (vv j)) ltac:(unfold cap; lra)). lra. }
  assert (V2 : V <= room * (lam_keys * abs_sum)).
  { unfold abs_sum. rewrite <- !Sum_scal. apply Sum_le. intros j _. unfold loss_d. rewrite <- pp_is.
    assert (Q0 : Rmin (lamp A) (pp j) <= Rmin (lamp A) 1) by (apply Rle_min_compat; [lra|apply Rmin_l]).
    assert (Q1 : Rmin (lamp A) 1 <= room * Rmin (lamp A) 1) by (apply le_times; auto; apply Rmin_glb; lra).
    assert (Q : Rmin (by_exp_d A r (lamp A)) ((1 + / 16) * pp j + Rmin (lamp A) (pp j)) <= by_exp_d A r (lamp A))
      by apply Rmin_l.
    replace (room * (lam_keys * Rabs (vv j))) with (Rabs (vv j) * (room * lam_keys)) by ring.
    apply Rmult_le_compat_l; [apply Rabs_pos|]. unfold lam_keys. lra. }
  assert (V0 : 0 <= V).
  { apply Sum_nonneg. intros j _. apply Rmult_le_pos; [apply Rabs_pos|]. apply loss_d_pos. lra. }
  assert (Vl : V <= room * lost).
  { unfold lost, Rmin. destruct (Rle_dec _ _); auto. }
  unfold LNd, lost_d, LN. rewrite twice_is. fold V. rewrite plus_INR, !mult_INR. simpl (INR 2).
  unfold rescaling_operations.
  set (ops := 2 * INR n + 2 * R_). assert (On : 0 <= ops) by (assert (I1 := pos_INR n); assert (I2 := pos_INR r);
    unfold ops; lra).
  assert (Ol : 0 <= ops * lam_a) by (apply Rmult_le_pos; auto).
  assert (Or : ops * lam_a <= room * (ops * lam_a)) by (apply le_times; auto).
  assert (Q := lost_le (w_o A) 1 (V + ops * lam_a) (lost + ops * lam_a) ltac:(lra)
    ltac:(unfold w_o in *; split; [auto|simpl; lra]) ltac:(lia) ltac:(lra)). unfold ops in *. lra.
Qed.

Lemma LD_le : 0 <= LDd K s A a J M r (2 * n + 2 * r) <= LD.
Proof.
  assert (Ud := s_upd A OK). assert (L0 := s_lam A OK). assert (Lp := s_lampd A OK). assert (Rm := room_ge1).
  assert (Tw := twice_le (lampd A) ltac:(lra)). assert (Lr : lampd A <= room * lampd A) by (apply le_times; auto).
  set (V := Sum (fun j => Rabs (one K j) * loss_d K s A a J M r (lampd A) j) J).
  assert (V1 : V <= INR n * (room * (lam_weight + lam_twice + lampd A + lam_more) - lam_a)).
  { unfold V. rewrite <- Sum_const. apply Sum_le. intros j _. unfold one, loss_d. rewrite Rabs_R1, Rmult_1_l.
    set (p := bound.pp K s A a J M r j). assert (Q := Rmin_l (lampd A) p).
    assert (Q1 := Rmin_l (by_exp_d A r (lampd A)) ((1 + / 16) * p + Rmin (lampd A) p)). lra. }
  assert (V0 : 0 <= V).
  { apply Sum_nonneg. intros j _. apply Rmult_le_pos; [apply Rabs_pos|]. apply loss_d_pos. lra. }
  unfold LDd, lost_d, LD. rewrite twice_is. fold V. rewrite plus_INR, !mult_INR. simpl (INR 2).
  unfold rescaling_operations.
  assert (On : 0 <= (INR n + 2 * R_) * lam_a).
  { assert (I1 := pos_INR n). assert (I2 := pos_INR r). apply Rmult_le_pos; lra. }
  assert (Or : (INR n + 2 * R_) * lam_a <= room * ((INR n + 2 * R_) * lam_a)) by (apply le_times; auto).
  assert (Nl : 0 <= INR n * lam_a) by (apply Rmult_le_pos; auto using pos_INR).
  apply (lost_le (w_l A) 0 (V + (2 * INR n + 2 * R_) * lam_a)); [unfold w_l; lra|unfold w_l; simpl; lra|lia|].
  split; [lra|]. rewrite <- Rmult_plus_distr_l in *. lra.
Qed.
Lemma denominator_le : denominator <= low_d K s A a J M r (2 * n + 2 * r).
Proof.
  assert (Q := LD_le). unfold denominator, low_d. rewrite UD_is, h_is. unfold weight_roundings.
  change (n + 2 * r)%nat with (cD K J r). rewrite (Rmult_comm ((1 - u_a) ^ cD K J r)). lra.
Qed.

(** ** The bound *)
Hypothesis Not_negative : forall j, In j J -> 0 <= a j.
Lemma of_scores_pos : 0 <= of_scores.
Proof.
  apply Rmin_glb; [|apply most_pos]. apply Sum_nonneg. intros j Hj. apply Rmult_le_pos; [|apply Rabs_pos].
  apply Rmult_le_pos; [left; apply exp_pos|]. assert (1 <= exp (E j)); [|lra]. apply exp_ge1. unfold E, D.
  assert (P := Not_negative j Hj). assert (Q := M_ge j Hj). assert (T0 := s_T A OK). assert (Th := s_thE A OK).
  assert (X0 := X_pos A OK r). rewrite <- rest_is in X0.
  assert (0 <= thE A * (M - s j + a j + 2 * T A)) by (apply Rmult_le_pos; lra). lra.
Qed.
Lemma UD_pos : 0 <= UD.
Proof.
  assert (C := chain_pos). assert (U0 := s_u A OK). assert (Ud := s_upd A OK). assert (Ir := pos_INR r).
  assert (0 <= sum_error).
  { unfold sum_error. assert (Q := pow_ge1 u_a weight_roundings U0). apply Rmin_glb; [unfold pw; lra|].
    assert (0 <= least_weights) by (apply Sum_nonneg; intros; apply Rmin_glb; auto; apply pp_pos).
    apply Rmult_le_pos; [lra|]. apply Rplus_le_le_0_compat; repeat apply Rmult_le_pos; lra. }
  unfold UD, join. assert (0 <= sum_error * upd A) by (apply Rmult_le_pos; auto). lra.
Qed.

Variable c_div : nat.
Variables u_o lam_o : R.
Hypothesis Out : 0 <= u_o.
Lemma Uf_pos : 0 <= Uf c_div u_o.
Proof.
  assert (Q := pow_ge1 (u A) c_div (s_u A OK)). unfold Uf, join, pw.
  assert (0 <= ((1 + u A) ^ c_div - 1) * u_o) by (apply Rmult_le_pos; lra). lra.
Qed.

(** What was allowed is at least what is proved. *)
Theorem implemented_bound lamf : 0 < denominator -> lamf <= lam_finish c_div u_o lam_o ->
  documented K s vv A a J M r (2 * n + 2 * r) (Uf c_div u_o) lamf <= allowed c_div u_o lam_o.
Proof.
  intros Hd Hl. assert (P := Uf_pos). assert (S0 := of_scores_pos). assert (U0 := UD_pos).
  assert (Dl := denominator_le). assert (Nl := of_values_le). assert (Ln := LN_le). assert (Ll := LD_le).
  assert (O := Rabs_pos o).
  unfold allowed, finished, per_lost, documented, pre_d, Rdiv. rewrite <- of_scores_is, <- UD_is.
  set (f := Uf c_div u_o) in *.
  set (low := low_d K s A a J M r (2 * n + 2 * r)) in *. set (ld := LDd K s A a J M r (2 * n + 2 * r)) in *.
  set (ln := LNd K s vv A a J M r (2 * n + 2 * r)) in *. set (nd := Nd K s vv A a J M r) in *.
  assert (I1 : / low <= / denominator) by (apply Rinv_le_contravar; auto).
  assert (I2 : 0 < / low) by (apply Rinv_0_lt_compat; lra).
  assert (Sum1 : (Rabs o + of_scores) * (UD + ld) <= (Rabs o + of_scores) * (UD + LD))
    by (apply Rmult_le_compat_l; lra).
  assert (Pos : 0 <= (Rabs o + of_scores) * (UD + ld)) by (apply Rmult_le_pos; lra).
  assert (Q : (nd + ln + (Rabs o + of_scores) * (UD + ld)) * / low <=
    (of_values + (factor * lost + LN) + (Rabs o + of_scores) * (UD + LD)) * / denominator)
    by (apply Rmult_le_compat; lra).
  assert (Q1 := Rmult_le_compat_l (1 + f) _ _ ltac:(lra) Q). lra.
Qed.
End Implemented.

(** ** Kernels *)
(** Divided by the sum of weights with so many roundings, then stored. *)
Fixpoint divided (u lam : R) (count : nat) (x y : R) : Prop :=
  match count with
  | O => y = x
  | Datatypes.S more => exists between, divided u lam more x between /\ near u lam between y
  end.
Lemma divided_near u lam count x y : 0 <= u -> 0 <= lam -> divided u lam count x y ->
  near (pw u count) ((1 + pw u count) * (INR count * lam)) x y.
Proof.
  intros Hu Hl. revert y. induction count as [|k IH]; intros y H.
  - simpl in H. subst. unfold near, pw. simpl. rewrite Rminus_eq_0, Rabs_R0. lra.
  - destruct H as (between & H1 & H2). eapply near_weaken; [apply (near_trans _ _ _ _ _ _ _ Hu (IH _ H1) H2)| |].
    + unfold pw. simpl. right. ring.
    + rewrite S_INR. unfold pw. simpl pow. assert (G := pow_ge1 u k Hu).
      assert (1 <= (1 + u) * (1 + u) ^ k) by (apply times_ge1; lra).
      assert (lam <= ((1 + u) * (1 + u) ^ k) * lam) by (apply le_times; auto). lra.
Qed.

Section Kernels.
Variable K : Type.
Variables s vv : K -> R.
Variable A : arith.
Hypothesis OK : sane A.
Hypothesis Nearest : nearest A = true.
Hypothesis Covered : covered A.
Hypothesis Up_d : upd A <= up A.
Hypothesis Lamp_d : lampd A <= lamp A.
Variable a : K -> R.
Variable J : list K.
Variable r : nat.
Variable c_div : nat.
Variables u_o lam_o : R.
Hypothesis Out : 0 <= u_o /\ 0 <= lam_o.
Local Notation n := (length J).

(** oh is what a kernel returns that has the scores sh: two sums over the same keys in any orders, relative to a
    reference that no score is below by more than 0, with no more operations than are counted; their quotient. *)
Definition returns (sh : K -> R) (oh : R) := exists tl to_ m l o kl rl cl ko ro co quotient,
  Permutation (map fst to_) J /\ Permutation tl to_ /\
  sums K sh A (one K) (w_l A) (lampd A) tl m l kl rl cl /\ (rl <= r)%nat /\ (cl <= 2 * n + 2 * r)%nat /\
  sums K sh A vv (w_o A) ((1 + u A) * lamp A) to_ m o ko ro co /\ (ro <= r)%nat /\ (co <= 2 * n + 2 * r)%nat /\
  (exists i, In i J /\ m <= sh i) /\
  divided (u A) (lam A) c_div (o / l) quotient /\ near u_o lam_o quotient oh.
(** Its scores err by at most a, but for what is common to all of them. *)
Definition scores_within (sh : K -> R) := exists common, forall j, In j J -> Rabs (sh j - (s j + common)) <= a j.

Lemma finish_near x quotient oh : divided (u A) (lam A) c_div x quotient -> near u_o lam_o quotient oh ->
  near (Uf A c_div u_o) (lam_finish A c_div u_o lam_o) x oh.
Proof.
  intros H1 H2. assert (Q := divided_near _ _ _ _ _ (s_u A OK) (s_lam A OK) H1). destruct Out as [O1 O2].
  eapply near_weaken; [apply (near_trans _ _ _ _ _ _ _ O1 Q H2)| |]; unfold lam_finish, Uf, join.
  - right. ring.
  - set (p := pw (u A) c_div). assert (P : 0 <= p) by (assert (G := pow_ge1 (u A) c_div (s_u A OK)); unfold p, pw; lra).
    assert (0 <= p * u_o) by (apply Rmult_le_pos; auto).
    assert (lam_o <= (1 + (p + u_o + p * u_o)) * lam_o) by (apply le_times; lra). lra.
Qed.

(** Any absolute terms that are enough. *)
Lemma tolerance_of_enough lam_weight lam_more sh oh :
  by_exp_d A r (lamp A) <= room A * lam_weight -> by_exp_d A r (lampd A) + lam A <= room A * (lam_weight + lam_more) ->
  scores_within sh -> returns sh oh -> 0 < denominator K s A a J r lam_weight lam_more ->
  Rabs (oh - exact K s vv J) <= allowed K s vv A a J r lam_weight lam_more c_div u_o lam_o.
Proof.
  intros W1 W2 (common & Hs) (tl & to_ & m & l & o & kl & rl & cl & ko & ro & co & quotient & M1 & Hp & HL & Hrl & Hcl &
    HO & Hro & Hco & (i & Ii & Hi) & Hq & Hoh) Hd.
  assert (NJ : J <> []) by (intros Q; rewrite Q in Ii; destruct Ii).
  assert (Pa : forall j, In j J -> 0 <= a j) by (intros j Hj; eapply Rle_trans; [apply Rabs_pos|apply (Hs j Hj)]).
  eapply Rle_trans;
    [|apply (implemented_bound K s vv A a J r lam_weight lam_more OK NJ Covered Up_d Lamp_d W1 W2 Pa c_div u_o lam_o
      ltac:(lra) (lam_finish A c_div u_o lam_o) Hd ltac:(lra))].
  assert (Dl := denominator_le K s A a J r lam_weight lam_more OK NJ Covered Up_d Lamp_d W1 W2).
  assert (Sh : forall k, shallow A r k) by (intros; unfold shallow; destruct Covered as (_ & _ & _ & -> & _); auto).
  apply (documented_bound K s sh vv A OK Nearest a J (M K s a J) r (2 * n + 2 * r) tl to_ m l o common _ _ oh
    kl rl cl ko ro co); auto.
  - intros j Hj. apply M_ge; auto.
  - exists i. split; auto. rewrite (proj1 Covered). lra.
  - lra.
  - apply (Uf_pos A OK); tauto.
  - apply finish_near with quotient; auto.
Qed.

Lemma gain_is : gain A 0 = exp (T A + thE A * T A) * room A.
Proof.
  unfold gain, room, X, of_exp. fold (eps1 A). destruct Covered as (_ & -> & _). rewrite <- exp_plus. f_equal.
  simpl INR. ring.
Qed.
Lemma lam_weight_is_enough : by_exp_d A r (lamp A) <= room A * lam_weight_enough A r.
Proof.
  unfold by_exp_d, lam_weight_enough. rewrite gain_is. assert (Rm := room_ge1 A OK). assert (L := s_lame A OK).
  assert (L1 := Rmin_r (lamp A) (lame A)). assert (2 * lame A <= room A * (2 * lame A)) by (apply le_times; lra). lra.
Qed.
Lemma lam_more_is_enough : lam A <= lame A ->
  by_exp_d A r (lampd A) + lam A <= room A * (lam_weight_enough A r + lam_more_enough A).
Proof.
  intros Le. unfold by_exp_d, lam_more_enough, lam_weight_enough. rewrite gain_is.
  assert (L0 := s_lam A OK). assert (Lp := s_lampd A OK). assert (Rm := room_ge1 A OK).
  assert (L3 : Rmin (lampd A) (lame A) + lam A <= lame A + Rmin (lampd A) (lam A)).
  { unfold Rmin. destruct (Rle_dec (lampd A) (lame A)), (Rle_dec (lampd A) (lam A)); lra. }
  assert (M0 := Rmin_pos (lampd A) (lam A) Lp L0).
  assert (2 * lame A + Rmin (lampd A) (lam A) <= room A * (2 * lame A + Rmin (lampd A) (lam A)))
    by (apply le_times; lra). lra.
Qed.

(** The bound of core/bound, with lam_weight and LD as they are proved to be enough, of every kernel of the class. *)
Theorem implemented_tolerance sh oh : lam A <= lame A -> scores_within sh -> returns sh oh ->
  0 < denominator K s A a J r (lam_weight_enough A r) (lam_more_enough A) ->
  Rabs (oh - exact K s vv J) <= allowed K s vv A a J r (lam_weight_enough A r) (lam_more_enough A) c_div u_o lam_o.
Proof.
  intros Le. apply tolerance_of_enough; [apply lam_weight_is_enough|apply lam_more_is_enough; auto].
Qed.

(** As it is written, of kernels whose maximum does not lag and that sum weights as they are. *)
Theorem as_written_tolerance sh oh : lam A <= lame A -> thE A * T A = 0 -> lampd A = 0 -> scores_within sh ->
  returns sh oh -> 0 < denominator K s A a J r (lam_weight_written A r) 0 ->
  Rabs (oh - exact K s vv J) <= allowed K s vv A a J r (lam_weight_written A r) 0 c_div u_o lam_o.
Proof.
  intros Le No_lag No. assert (E : lam_weight_written A r = lam_weight_enough A r).
  { unfold lam_weight_written, lam_weight_enough. rewrite No_lag, Rplus_0_r. auto. }
  assert (E1 : 0 = lam_more_enough A).
  { unfold lam_more_enough. rewrite No, Rmin_left; auto. apply (s_lam A OK). }
  intros H1 H2. assert (Q := implemented_tolerance sh oh Le H1 H2). rewrite <- E, <- E1 in Q. auto.
Qed.
End Kernels.
