(** The tolerance as core/bound computes it, term by term, and that it is at least the proved one (documented.v): of
    exponents that are natural or of base 2, with a scale folded into them or not, a maximum that is taken or lags, sums
    of any order or a declared depth, to nearest or truncated, weights of any format. The names are those of the C++;
    what it rounds up, and keys whose weight no double holds, are real numbers here. What other kernels have beside is a
    [family]: implemented_divided.v has weights that are divided first, implemented_shift.v nothing that is subtracted,
    implemented_merged.v parts that are merged through log-sum-exps. *)
From Coq Require Import Reals List Lra Lia Psatz Permutation.
From Attest.Rounding Require Import basics merge bound documented divided_first.
Import ListNotations.
Open Scope R_scope.

(** error_bound.h: pw, join. *)
Definition pw (u : R) (count : nat) := (1 + u) ^ count - 1.
Definition join (a b : R) := a + b + a * b.

(** What core/bound has of the errors of keys. *)
Record errors (K : Type) := {
  err : K -> R;          (* a_j (1 + th_l2e) + tm_j of key_loops.inc, errors: how far a score is off, up to a shift *)
  whole : K -> R;        (* ap_j of whole_error: how far a score is off, constants included *)
  c_m : R; u_e : R }.    (* 1 where references are rounded apart, as a folded scale makes it, else 0; by how much *)
Arguments err {K}. Arguments whole {K}. Arguments c_m {K}. Arguments u_e {K}.
(** Natural exponents: a is a_j + tm_j, ap as above where it matters. *)
Definition natural_whole {K : Type} (a ap : K -> R) : errors K := {| err := a; whole := ap; c_m := 0; u_e := 0 |}.
Notation natural a := (natural_whole a a).

(** What the bound has beside for some kernels, by the names of Profile and KeyConstants. *)
Record family := Family {
  norm_first : nat;        (* c_div where weights are divided first, else 0 *)
  fixed_shift : bool;      (* the exponent may be formed without a reference *)
  below : R;               (* then max(0, -bottom): how far all scores are below 0 *)
  on_Q : R; on_D : R;      (* lse_on_Q, lse_on_D: what E has beside in units of Q and of D *)
  on_all : R;              (* and of all keys *)
  merge : R;               (* merge, where the logarithm of the sum errs by itself *)
  merge_operations : R }.  (* and the operations of merging *)
Definition usual : family := Family 0 false 0 0 0 0 0 0.

(** No more is said here: no reference above the scores; D2; and what a sum loses by underflow at a time is no more than
    lam_e, or 3 lam_e where it is truncated: there is room then in the 2 of the factor. *)
Definition covered {K : Type} (A : arith) (e : errors K) :=
  gap A = 0 /\ off A <= c_m e / 2 /\ (lame A + lam A) * twice A <= 4 * lame A.
(** Natural exponents, sums to nearest in any order: all that is said of the families. *)
Definition in_any_order (A : arith) :=
  gap A = 0 /\ off A = 0 /\ last A = 0 /\ additions A = None /\ nearest A = true.
Lemma natural_covered {K : Type} A (a ap : K -> R) :
  in_any_order A -> lam A <= lame A -> covered A (natural_whole a ap).
Proof. intros (G & O & _ & _ & N) L. unfold covered, twice. rewrite G, O, N. simpl. lra. Qed.

Section Greatest.
Variable K : Type.
Variable J : list K.
Definition greatest (f : K -> R) := match J with [] => 0 | j :: l => fold_right (fun i x => Rmax (f i) x) (f j) l end.
Lemma greatest_ge f j : In j J -> f j <= greatest f.
Proof.
  unfold greatest. destruct J as [|i l]; [intros []|].
  assert (H : forall l, f i <= fold_right (fun i x => Rmax (f i) x) (f i) l /\
    forall j, In j l -> f j <= fold_right (fun i x => Rmax (f i) x) (f i) l).
  { clear l. induction l as [|k l [I1 I2]]; simpl; [split; [lra|tauto]|]. split.
    - eapply Rle_trans; [apply I1|apply Rmax_r].
    - intros j' [->|H]; [apply Rmax_l|]. eapply Rle_trans; [apply I2; auto|apply Rmax_r]. }
  destruct (H l) as [H1 H2]. intros [<-|H3]; auto.
Qed.
(** It is one of them. *)
Lemma greatest_is f : J <> [] -> exists i, In i J /\ greatest f = f i.
Proof.
  intros NJ. unfold greatest. destruct J as [|i l]; [congruence|]. clear NJ.
  induction l as [|k l (i' & I1 & I2)]; simpl; [exists i; auto|]. unfold Rmax at 1. destruct (Rle_dec _ _).
  - exists i'. split; auto. simpl in I1. tauto.
  - exists k. auto.
Qed.
End Greatest.

Section Implemented.
Variable K : Type.
Variables s vv : K -> R.
Variable A : arith.    (* as Profile: u_a, lam_a, thE, lam_exponent (xl, xr), lazy (T), eps_exp, lam_e, u_p, lam_p *)
Variable e : errors K.
Variable more : family.
Variable J : list K.
Variable r : nat.      (* rescalings *)
Local Notation n := (length J).
Local Notation R_ := (INR r).
Local Notation u_a := (u A).
Local Notation lam_a := (lam A).
Local Notation o := (exact K s vv J).

(** ** key_terms.cc *)

(** key_loops.inc, score_range: M, top, bottom. find_score_errors: Mabs. *)
Definition M := greatest K J (fun j => s j + err e j).
Definition top := greatest K J (fun j => s j + whole e j).
Definition bottom := greatest K J (fun j => s j - whole e j).
Definition Mabs := Rmax (Rabs top) (Rabs bottom).
(** set_exponent_constants: rest, residual. *)
Definition of_exp := eps A / (1 - eps A).
Definition rest := of_exp * (1 + R_) + xl A + R_ * xr A + on_all more.
Definition residual := c_m e * u_e e * (1 + thE A).
(** key_loops.inc, errors: D, Q, E. *)
Definition D j :=
  let d := (M - s j) + err e j + 2 * T A in if fixed_shift more then Rmax d (Rabs (s j) + whole e j) else d.
Definition Q j := Rmax (Rabs (s j) + whole e j) Mabs + T A.
Definition E j := err e j + thE A * D j + (residual + on_Q more) * Q j + on_D more * D j + rest.
(** key_loops.inc, normalise: la. least_log_sum: z. weights_by_exponents: ph, pp. *)
Definition la j := s j - ln (total K s J).
Definition z := ln (Sum (fun j => exp (la j - E j)) J).
Definition ph j := exp (la j - z) * (exp (E j) - 1).
Definition pp j := Rmin 1 (exp (la j + E j - z)).
(** WeightSums: denominators, big. *)
Definition is_big j := if Rlt_dec u_a (pp j) then true else false.
Definition least_weights := Sum (fun j => Rmin (pp j) u_a) J.
Definition big := Sum (fun j => if is_big j then 1 else 0) J.

(** accumulation_depth: h. *)
Definition sum_depth := match additions A with Some d => Nat.min d n | None => n end.
(** find_denominator: lam_weight, lam_twice, sum_error; what a key loses where rounded weights are summed. *)
Definition lam_weight := lame A * (2 + R_ * exp ((1 + thE A) * T A + c_m e / 2)).
Definition lam_twice := R_ * (17 + 16 * R_) * lame A * (lamp A + lam_weight + lame A).
Definition lam_rounded := lampd A + Rmin (lampd A) lam_a.
Definition weight_roundings := (sum_depth + 2 * r)%nat.
Definition chain := pw u_a (n + 1 + 2 * r).
Definition sum_error :=
  refined A (pw u_a weight_roundings) ((1 + chain) * (2 * R_ * u_a + (1 + chain) * least_weights)).
(** underflow_factor. *)
Definition underflow_depth := (Nat.min (sum_depth + 1) n + r)%nat.
Definition at_last := residual * (Mabs + T A).
Definition factor_grown :=
  exp (2 * (thE A * T A + rest) + at_last) * (1 + pw u_a underflow_depth) * (1 + up A) * (1 + pw (lame A) r).
Definition factor := 2 * factor_grown * exp (below more).
(** error_bound.h, Profile. *)
Definition rescaling_operations := 2 * R_ + merge_operations more.
Definition LD :=
  factor * (INR n * (lam_weight + lam_twice) + (INR n + rescaling_operations) * lam_a + INR n * lam_rounded).
(** denominator_of. *)
Definition UD_of_sum := join sum_error (upd A).
Definition lowest := Rmax (1 - UD_of_sum) ((1 - u_a) ^ weight_roundings * (1 - upd A)).
Definition UD := join UD_of_sum (exp (merge more) - 1).
Definition denominator := lowest * exp (- merge more) - LD.

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
Definition by_norm := match additions A with Some _ => norm_first more | None => norm_first more - 1 end%nat.
Definition plain := pw u_a (sum_depth + 1 + 2 * r + by_norm).
Definition local := (1 + 2 * R_ + INR (norm_first more)) * u_a.
Definition merges := (1 + chain) * big * u_a.
Definition A_small := Sum (fun j => if is_big j then 0 else pp j * Rabs (vv j)) J.
Definition accumulation_error :=
  refined A (plain * A_plus) ((1 + chain) * (local * A_plus + (1 + chain) * (merges * A_plus + A_small))).
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

(** ** It is at least the proved tolerance *)
Hypothesis OK : sane A.
Hypothesis NJ : J <> [].

Lemma M_ge j : In j J -> s j + err e j <= M.
Proof. apply (greatest_ge K J (fun j => s j + err e j)). Qed.
Lemma Mabs_pos : 0 <= Mabs.
Proof. eapply Rle_trans; [apply Rabs_pos|apply Rmax_l]. Qed.
Lemma Q_pos j : Mabs + T A <= Q j /\ 0 <= Q j.
Proof.
  assert (H := Rmax_r (Rabs (s j) + whole e j) Mabs). assert (H1 := Mabs_pos). assert (H2 := s_T A OK). unfold Q. lra.
Qed.
Lemma pp_pos j : 0 <= pp j.
Proof. apply Rmin_glb; [lra|left; apply exp_pos]. Qed.
Lemma chain_pos : 0 <= chain.
Proof. unfold chain, pw. assert (H := pow_ge1 (u A) (n + 1 + 2 * r) (s_u A OK)). lra. Qed.
Lemma refined_le x y x' y' : x <= x' -> y <= y' -> refined A x y <= refined A x' y'.
Proof. unfold refined. destruct (nearest A); auto. apply Rle_min_compat. Qed.
Lemma refined_pos x y : 0 <= x -> 0 <= y -> 0 <= refined A x y.
Proof. unfold refined. destruct (nearest A); auto. intros. apply Rmin_pos; auto. Qed.

(** The arithmetic, the errors of scores and the largest score of which a tolerance is proved: with the same E it is of
    the same sums, and beside them only what is asked here. *)
Section At_least.
Variable B : arith.
Variable b : K -> R.
Variable Mp : R.
Variable ops : nat.
Variable room : R.     (* in what a weight is larger before it is rescaled *)
Hypothesis OKB : sane B.
Definition alike := (u B = u A /\ lam B = lam A /\ lame B = lame A) /\
  (up B = up A /\ lamp B = lamp A /\ upd B = upd A /\ lampd B = lampd A) /\
  nearest B = nearest A /\ additions B = additions A.
Hypothesis Alike : alike.
Hypothesis E_is : forall j, E j = bound.E K s B b Mp r j.
Hypothesis E_pos : forall j, In j J -> 0 <= E j.
Hypothesis Room : 1 <= room.
(** P40: all that a loss grows by. *)
Definition enough_factor := forall w0 k, 1 <= w0 <= (1 + up A) * (1 + u_a) ^ k -> (k <= 1)%nat ->
  2 * (room * grown K B J r w0) <= factor.
Hypothesis Factor_enough : enough_factor.
(** True of every profile: weights are rounded in the sum of weights as they are beside the values, or not at all. *)
Hypothesis Up_d : upd A <= up A.
Hypothesis Lamp_d : lampd A <= lamp A.
(** What a weight grows by, and what sums lose at a time. *)
Definition enough_gain := R_ * gain B 0 <= R_ * (exp ((1 + thE A) * T A + c_m e / 2) * room).
Hypothesis Gain_enough : enough_gain.
Hypothesis Sums_lose : (lame A + lam_a) * twice A <= 4 * lame A.
Hypothesis Merge_pos : 0 <= merge more.
Hypothesis Merging : 0 <= merge_operations more.
Hypothesis Ops : INR ops <= 2 * INR n + rescaling_operations.

Lemma h_is : h K B J = sum_depth.
Proof. unfold h. destruct Alike as (_ & _ & _ & ->). auto. Qed.
Lemma refined_is x y : refined B x y = refined A x y.
Proof. unfold refined. destruct Alike as (_ & _ & -> & _). auto. Qed.
Lemma twice_is : twice B = twice A.
Proof. unfold twice. destruct Alike as (_ & _ & -> & _). auto. Qed.
Lemma pw_is c : documented.pw B c = pw u_a c.
Proof. unfold documented.pw, pw. destruct Alike as ((-> & _) & _). auto. Qed.
Lemma gc_is : gc K B J r = chain.
Proof. apply pw_is. Qed.
Lemma exp_la j : exp (la j) = alpha K s J j.
Proof.
  unfold la, alpha. rewrite exp_minus, exp_ln; auto. apply total_pos; auto.
Qed.
Lemma exp_z : exp z = Zm K s B b J Mp r /\ 0 < exp z.
Proof.
  split; [|apply exp_pos]. unfold z. rewrite exp_ln.
  - apply Sum_ext. intros j _. unfold Rminus. rewrite exp_plus, exp_la, E_is. auto.
  - apply Sum_pos; auto. intros. apply exp_pos.
Qed.
Lemma ph_is j : ph j = bound.ph K s B b J Mp r j.
Proof.
  destruct exp_z as [Q P]. unfold ph, bound.ph. rewrite exp_minus, exp_la, E_is, <- Q. field. lra.
Qed.
Lemma pp_is j : pp j = bound.pp K s B b J Mp r j.
Proof.
  destruct exp_z as [Q P]. unfold pp, bound.pp. rewrite exp_minus, exp_plus, exp_la, E_is, <- Q. auto.
Qed.
Lemma of_scores_is : of_scores = spread K s vv B b J Mp r.
Proof. unfold of_scores, spread, apart. f_equal. apply Sum_ext. intros. rewrite ph_is. auto. Qed.
Lemma A_plus_is : A_plus = size K s vv B b J Mp r.
Proof. unfold A_plus, size, most_value. f_equal. apply Sum_ext. intros. rewrite pp_is. auto. Qed.
Lemma A_plus_pos : 0 <= A_plus.
Proof. rewrite A_plus_is. apply size_pos'; auto. Qed.
Lemma UD_of_sum_is : UD_of_sum = UDd K s B b J Mp r.
Proof.
  assert (Q : sum_error = UD0 K s B b J Mp r).
  { unfold sum_error, UD0, least_weights. rewrite refined_is, h_is, pw_is, gc_is.
    destruct Alike as ((-> & _) & _). rewrite (Sum_ext _ (fun j => Rmin u_a (bound.pp K s B b J Mp r j)))
      by (intros; rewrite pp_is; apply Rmin_comm). auto. }
  unfold UD_of_sum, UDd, join. rewrite Q. destruct Alike as (_ & (_ & _ & -> & _) & _). auto.
Qed.

(** The partition by weights is no better than the best. *)
Lemma accumulation_le : 0 <= acc_of K s B b J Mp r (norm_first more) vv A_plus <= accumulation_error.
Proof.
  assert (C := chain_pos). assert (U0 := s_u A OK). assert (P := A_plus_pos). unfold acc_of, accumulation_error.
  rewrite refined_is, h_is, pw_is, gc_is. destruct Alike as ((-> & _) & _).
  assert (Pm : pw u_a (sum_depth + Nat.max 1 (norm_first more) + 2 * r) <= plain).
  { apply Rplus_le_compat_r, pow_mono; auto. unfold by_norm. destruct (additions A); lia. }
  set (plain1 := pw u_a (sum_depth + Nat.max 1 (norm_first more) + 2 * r)) in *.
  replace (1 + INR (norm_first more) + 2 * INR r) with (1 + 2 * R_ + INR (norm_first more)) by ring.
  fold local. assert (Ir := pos_INR r). assert (If := pos_INR (norm_first more)).
  assert (P0 : 0 <= plain1)
    by (unfold plain1, pw; assert (H := pow_ge1 u_a (sum_depth + Nat.max 1 (norm_first more) + 2 * r) U0); lra).
  assert (L0 : 0 <= local) by (apply Rmult_le_pos; lra).
  assert (U1 : 0 <= u_a * A_plus) by (apply Rmult_le_pos; auto).
  split.
  - apply refined_pos; [apply Rmult_le_pos; auto|]. apply Rmult_le_pos; [lra|].
    apply Rplus_le_le_0_compat; [apply Rmult_le_pos; auto|]. apply Rmult_le_pos; [lra|]. apply Sum_nonneg.
    intros j _. apply Rmin_glb; auto. rewrite <- pp_is. apply Rmult_le_pos; [apply pp_pos|apply Rabs_pos].
  - apply refined_le; [apply Rmult_le_compat_r; auto|]. apply Rmult_le_compat_l; [lra|]. apply Rplus_le_compat_l.
    apply Rmult_le_compat_l; [lra|].
    assert (Q : Sum (fun j => Rmin (u_a * A_plus) (bound.pp K s B b J Mp r j * Rabs (vv j))) J <=
      big * (u_a * A_plus) + A_small).
    { unfold big, A_small. rewrite (Rmult_comm _ (u_a * A_plus)), <- Sum_scal, <- Sum_plus. apply Sum_le. intros j _.
      rewrite <- pp_is. destruct (is_big j); [assert (Q := Rmin_l (u_a * A_plus) (pp j * Rabs (vv j)))|
        assert (Q := Rmin_r (u_a * A_plus) (pp j * Rabs (vv j)))]; lra. }
    assert (B0 : 0 <= big) by (apply Sum_nonneg; intros; destruct (is_big x); lra).
    assert (0 <= big * (u_a * A_plus)) by (repeat apply Rmult_le_pos; auto).
    assert (0 <= chain * (big * (u_a * A_plus))) by (apply Rmult_le_pos; auto). unfold merges. lra.
Qed.
Lemma of_values_le : 0 <= Nd_of K s B b J Mp r (norm_first more) (up A) vv A_plus <= of_values.
Proof.
  destruct accumulation_le as [Ac Q]. assert (P := A_plus_pos). assert (U := s_up A OK). unfold Nd_of, of_values.
  set (x := acc_of K s B b J Mp r (norm_first more) vv A_plus) in *.
  assert (0 <= up A * A_plus) by (apply Rmult_le_pos; auto).
  assert (0 <= (1 + up A) * x) by (apply Rmult_le_pos; lra).
  assert ((1 + up A) * x <= (1 + up A) * accumulation_error) by (apply Rmult_le_compat_l; lra). lra.
Qed.

Lemma by_exp_pos l : 0 <= l -> 0 <= by_exp_d B r l.
Proof.
  intros H. assert (L := s_lame B OKB). assert (Gp := gain_pos B 0). assert (Ir := pos_INR r). unfold by_exp_d.
  assert (0 <= R_ * gain B 0) by (apply Rmult_le_pos; lra). assert (Q := Rmin_pos l (lame B) H L).
  assert (0 <= lame B * (1 + R_ * gain B 0)) by (apply Rmult_le_pos; lra). lra.
Qed.
(** What lam_weight and lam_rounded are enough for. *)
Lemma by_exp_le l : by_exp_d B r l <=
  lame A * (1 + R_ * (exp ((1 + thE A) * T A + c_m e / 2) * room)) + Rmin l (lame A).
Proof.
  unfold by_exp_d. replace (lame B) with (lame A) by (destruct Alike as ((_ & _ & ->) & _); auto).
  assert (L := s_lame A OK). assert (H := Gain_enough). unfold enough_gain in H.
  apply Rplus_le_compat_r, Rmult_le_compat_l; lra.
Qed.
Lemma Weight_enough l : by_exp_d B r l <= room * lam_weight.
Proof.
  eapply Rle_trans; [apply by_exp_le|]. unfold lam_weight. assert (L := s_lame A OK). assert (L1 := Rmin_r l (lame A)).
  assert (2 * lame A <= room * (2 * lame A)) by (apply le_times; lra). lra.
Qed.
Lemma twice_bounds : 1 <= twice A <= 2.
Proof. unfold twice. destruct (nearest A); lra. Qed.
Lemma More_enough : twice A * (by_exp_d B r (lampd A) + lam_a) <= 2 * (room * (lam_weight + Rmin (lampd A) lam_a)).
Proof.
  assert (L := s_lame A OK). assert (L0 := s_lam A OK). assert (Lp := s_lampd A OK). assert (Ir := pos_INR r).
  assert (By := by_exp_le (lampd A)). assert (T1 := twice_bounds). unfold lam_weight.
  set (gain_ := exp ((1 + thE A) * T A + c_m e / 2)) in *. assert (Gp : 0 < gain_) by apply exp_pos.
  assert (M0 := Rmin_pos (lampd A) lam_a Lp L0).
  assert (Z : 0 <= lame A * (R_ * (gain_ * room))) by (repeat apply Rmult_le_pos; lra).
  assert (Once : twice A * (lame A + lam_a + Rmin (lampd A) (lame A)) <= 2 * (2 * lame A + Rmin (lampd A) lam_a)).
  { destruct (Rle_dec lam_a (lame A)) as [Le|Gt].
    - apply Rmult_le_compat; try lra; [assert (M1 := Rmin_pos (lampd A) (lame A) Lp L); lra|].
      unfold Rmin. destruct (Rle_dec (lampd A) (lame A)), (Rle_dec (lampd A) lam_a); lra.
    - assert (Mm : Rmin (lampd A) (lame A) <= Rmin (lampd A) lam_a) by (apply Rle_min_compat; lra).
      assert (Mp' := Rmin_pos (lampd A) (lame A) Lp L).
      assert (twice A * Rmin (lampd A) (lame A) <= 2 * Rmin (lampd A) lam_a) by (apply Rmult_le_compat; lra). lra. }
  assert (Tz : twice A * (lame A * (R_ * (gain_ * room))) <= 2 * (lame A * (R_ * (gain_ * room))))
    by (apply Rmult_le_compat_r; lra).
  assert (Tb := Rmult_le_compat_l (twice A) _ _ ltac:(lra) By).
  assert (Hr : 2 * (2 * lame A + Rmin (lampd A) lam_a) <= room * (2 * (2 * lame A + Rmin (lampd A) lam_a)))
    by (apply le_times; lra).
  lra.
Qed.
Lemma twice_le l : 0 <= l <= lamp A -> 0 <= twice_d B r l <= room * lam_twice.
Proof.
  intros [L1 L2]. assert (L := s_lame A OK). assert (Ir := pos_INR r). assert (P := by_exp_pos l L1).
  assert (Bm : by_exp_d B r l <= by_exp_d B r (lamp A)).
  { unfold by_exp_d. apply Rplus_le_compat_l. apply Rle_min_compat; lra. }
  assert (Q : 0 <= R_ * (lame A * (17 + 16 * R_))) by (repeat apply Rmult_le_pos; lra). unfold twice_d, lam_twice.
  replace (lame B) with (lame A) by (destruct Alike as ((_ & _ & ->) & _); auto).
  assert (Q1 := Rmult_le_pos _ _ Q (Rplus_le_le_0_compat _ _ L1 P)).
  assert (Lm : lamp A <= room * lamp A) by (apply le_times; auto; lra).
  assert (Le : lame A <= room * lame A) by (apply le_times; auto). assert (We := Weight_enough (lamp A)).
  assert (Q2 := Rmult_le_compat_l _ (l + by_exp_d B r l) (room * (lamp A + lam_weight + lame A)) Q ltac:(lra)). lra.
Qed.
(** What underflow takes is as little in units of room. *)
Lemma min_room x y c : 0 <= y -> x <= room * c -> Rmin x y <= room * Rmin c y.
Proof.
  intros Py H. assert (Le : y <= room * y) by (apply le_times; auto).
  destruct (Rle_dec c y) as [Q|Q]; [rewrite (Rmin_left c y) by auto|rewrite (Rmin_right c y) by lra].
  - eapply Rle_trans; [apply Rmin_l|auto].
  - eapply Rle_trans; [apply Rmin_r|auto].
Qed.
Lemma grown_pos w0 : 0 <= w0 -> 0 <= grown K B J r w0.
Proof.
  intros W. unfold grown. assert (F1 := F_ge1 B OKB r). assert (P1 := pow_ge1 (u B) (hk K B J r) (s_u B OKB)).
  assert (P2 : 1 <= g B ^ r) by (apply pow_R1_Rle, g_ge1; auto). repeat apply Rmult_le_pos; lra.
Qed.
Lemma loss_d_pos l j : 0 <= l <= lamp A -> 0 <= loss_d K s B b J Mp r l j.
Proof.
  intros Hl. assert (Tw := twice_le l Hl). unfold loss_d. rewrite <- pp_is. assert (Pj := pp_pos j).
  assert (M1 := Rmin_pos l (pp j) ltac:(lra) Pj). assert (P := by_exp_pos l ltac:(lra)).
  assert (M2 := Rmin_pos (by_exp_d B r l) ((1 + / 16) * pp j + Rmin l (pp j)) P ltac:(lra)). lra.
Qed.

(** All that is lost, with the operations on a sum, in units of room. *)
Lemma lost_le w0 k V Y : 0 <= w0 -> 1 <= w0 <= (1 + up A) * (1 + u_a) ^ k -> (k <= 1)%nat -> 0 <= V ->
  twice A * V <= 2 * (room * Y) -> 0 <= grown K B J r w0 * (twice A * V) <= factor * Y.
Proof.
  intros W0 W Hk V0 Hv. assert (G := Factor_enough w0 k W Hk). assert (Gp := grown_pos w0 W0).
  assert (T1 := twice_bounds). assert (Tv : 0 <= twice A * V) by (apply Rmult_le_pos; lra).
  assert (Y0 : 0 <= Y) by (apply Rmult_le_reg_l with room; lra).
  assert (H := Rmult_le_compat_l _ _ _ Gp Hv). assert (H1 := Rmult_le_compat_r _ _ _ Y0 G).
  assert (H2 := Rmult_le_pos _ _ Gp Tv). lra.
Qed.
Lemma ops_le : 0 <= INR ops * lam_a <= (2 * INR n + rescaling_operations) * lam_a.
Proof.
  assert (L0 := s_lam A OK). split; [apply Rmult_le_pos; auto using pos_INR|apply Rmult_le_compat_r; auto].
Qed.
Lemma LN_le : 0 <= LNd K s vv B b J Mp r ops <= factor * lost + LN.
Proof.
  assert (Wo : 1 <= w_o A).
  { assert (P := s_up A OK). assert (U := s_u A OK). unfold w_o. apply times_ge1; lra. }
  assert (L0 := s_lam A OK). assert (Lp := s_lamp A OK). assert (Ol := ops_le).
  set (V := Sum (fun j => Rabs (vv j) * loss_d K s B b J Mp r (lamp A) j) J).
  assert (Tw := twice_le (lamp A) ltac:(lra)).
  assert (V1 : V <= room * (Sum (fun j => Rabs (vv j) * cap j) J + lam_twice * abs_sum)).
  { unfold abs_sum. rewrite <- Sum_scal, <- Sum_plus, <- Sum_scal. apply Sum_le. intros j _. unfold loss_d.
    rewrite <- pp_is. fold (stored j). assert (Pj := pp_pos j).
    assert (St : 0 <= stored j) by (apply Rmin_pos; auto).
    assert (Sr : stored j <= room * stored j) by (apply le_times; auto).
    assert (Q := min_room _ ((1 + / 16) * pp j + stored j) _ ltac:(lra) (Weight_enough (lamp A))).
    assert (Q1 := Rmult_le_compat_l _ (stored j + Rmin (by_exp_d B r (lamp A)) ((1 + / 16) * pp j + stored j) +
      twice_d B r (lamp A)) (room * (cap j + lam_twice)) (Rabs_pos (vv j)) ltac:(unfold cap; lra)). lra. }
  assert (V2 : V <= room * (lam_keys * abs_sum)).
  { unfold abs_sum. rewrite <- !Sum_scal. apply Sum_le. intros j _. unfold loss_d. rewrite <- pp_is.
    assert (Q0 : Rmin (lamp A) (pp j) <= Rmin (lamp A) 1) by (apply Rle_min_compat; [lra|apply Rmin_l]).
    assert (Q1 : Rmin (lamp A) 1 <= room * Rmin (lamp A) 1) by (apply le_times; auto; apply Rmin_glb; lra).
    assert (Q : Rmin (by_exp_d B r (lamp A)) ((1 + / 16) * pp j + Rmin (lamp A) (pp j)) <= by_exp_d B r (lamp A))
      by apply Rmin_l.
    replace (room * (lam_keys * Rabs (vv j))) with (Rabs (vv j) * (room * lam_keys)) by ring.
    apply Rmult_le_compat_l; [apply Rabs_pos|]. assert (We := Weight_enough (lamp A)). unfold lam_keys. lra. }
  assert (V0 : 0 <= V).
  { apply Sum_nonneg. intros j _. apply Rmult_le_pos; [apply Rabs_pos|]. apply loss_d_pos. lra. }
  assert (Vl : V <= room * lost).
  { unfold lost, Rmin. destruct (Rle_dec _ _); auto. }
  unfold LNd, lost_d, LN. rewrite twice_is.
  replace (w_o B) with (w_o A) by (unfold w_o; destruct Alike as ((-> & _) & (-> & _) & _); auto).
  replace (lamp B) with (lamp A) by (destruct Alike as (_ & (_ & -> & _) & _); auto).
  replace (lam B) with lam_a by (destruct Alike as ((_ & -> & _) & _); auto). fold V.
  set (all := (2 * INR n + rescaling_operations) * lam_a) in *.
  assert (Or : all <= room * all) by (apply le_times; auto; lra).
  assert (T1 := twice_bounds). assert (V0' : 0 <= V + INR ops * lam_a) by lra.
  assert (Y : twice A * (V + INR ops * lam_a) <= 2 * (room * (lost + all)))
    by (apply Rmult_le_compat; lra).
  assert (Q := lost_le (w_o A) 1 (V + INR ops * lam_a) (lost + all) ltac:(lra)
    ltac:(unfold w_o in *; split; [auto|simpl; lra]) ltac:(lia) V0' Y). lra.
Qed.

Lemma LD_le : 0 <= LDd K s B b J Mp r ops <= LD.
Proof.
  assert (Ud := s_upd A OK). assert (L0 := s_lam A OK). assert (Lp := s_lampd A OK). assert (Ol := ops_le).
  assert (Tw := twice_le (lampd A) ltac:(lra)). assert (Lr : lampd A <= room * lampd A) by (apply le_times; auto).
  set (V := Sum (fun j => Rabs (one K j) * loss_d K s B b J Mp r (lampd A) j) J).
  assert (T1 := twice_bounds). set (Y1 := room * (lam_weight + lam_twice + lam_rounded)).
  assert (V1 : twice A * V <= INR n * (2 * Y1 - twice A * lam_a)).
  { unfold V. rewrite <- Sum_scal, <- Sum_const. apply Sum_le. intros j _. unfold one, loss_d.
    rewrite Rabs_R1, Rmult_1_l. set (p := bound.pp K s B b J Mp r j). assert (Q := Rmin_l (lampd A) p).
    assert (Q1 := Rmin_l (by_exp_d B r (lampd A)) ((1 + / 16) * p + Rmin (lampd A) p)).
    assert (Q2 : twice A * (Rmin (lampd A) p + twice_d B r (lampd A)) <= 2 * (room * (lampd A + lam_twice))).
    { assert (Pp : 0 <= p) by (unfold p; rewrite <- pp_is; apply pp_pos). assert (Q3 := Rmin_pos (lampd A) p Lp Pp).
      apply Rmult_le_compat; lra. }
    assert (Q3 := Rmult_le_compat_l (twice A) _ _ ltac:(lra) Q1). assert (Me := More_enough).
    unfold Y1, lam_rounded. lra. }
  assert (V0 : 0 <= V).
  { apply Sum_nonneg. intros j _. apply Rmult_le_pos; [apply Rabs_pos|]. apply loss_d_pos. lra. }
  unfold LDd, lost_d, LD. rewrite twice_is.
  replace (w_l B) with (w_l A) by (unfold w_l; destruct Alike as (_ & (_ & _ & -> & _) & _); auto).
  replace (lampd B) with (lampd A) by (destruct Alike as (_ & (_ & _ & _ & ->) & _); auto).
  replace (lam B) with lam_a by (destruct Alike as ((_ & -> & _) & _); auto). fold V.
  assert (Nl : 0 <= INR n * lam_a) by (apply Rmult_le_pos; auto using pos_INR).
  assert (X0 : 0 <= (INR n + rescaling_operations) * lam_a).
  { assert (I1 := pos_INR n). assert (I2 := pos_INR r). unfold rescaling_operations. apply Rmult_le_pos; lra. }
  set (x := (INR n + rescaling_operations) * lam_a) in *.
  assert (X1 : INR ops * lam_a <= x + INR n * lam_a) by (unfold x; lra).
  assert (X2 : x <= room * x) by (apply le_times; auto).
  apply (lost_le (w_l A) 0 (V + INR ops * lam_a)); [unfold w_l; lra|unfold w_l; simpl; lra|lia|lra|].
  assert (Tx := Rmult_le_compat_l (twice A) _ _ ltac:(lra) X1).
  assert (Xr : twice A * x <= 2 * (room * x)) by (apply Rmult_le_compat; lra). unfold Y1 in V1. lra.
Qed.
Lemma lowest_pos : 0 <= lowest.
Proof.
  unfold lowest. assert (U0 := s_u1 A OK). assert (U1 := s_upd1 A OK).
  assert (Q : 0 <= (1 - u_a) ^ weight_roundings * (1 - upd A)) by (apply Rmult_le_pos; [apply pow_le|]; lra).
  eapply Rle_trans; [apply Q|apply Rmax_r].
Qed.
(** Where the logarithm of the sum errs by so much, and by no more than is counted. *)
Lemma denominator_le_merged by_merge : 0 <= by_merge <= merge more ->
  denominator <= low_d K s B b J Mp r ops * exp (- by_merge).
Proof.
  intros Hm.
  assert (Q := LD_le). unfold denominator, low_d. rewrite <- UD_of_sum_is, h_is.
  replace (1 - upd B) with (1 - upd A) by (destruct Alike as (_ & (_ & _ & -> & _) & _); auto).
  replace (u B) with u_a by (destruct Alike as ((-> & _) & _); auto). fold weight_roundings.
  rewrite (Rmult_comm (1 - upd A)). fold lowest. assert (P := lowest_pos). set (ld := LDd K s B b J Mp r ops) in *.
  assert (exp (- by_merge) <= 1) by (apply exp_le1; lra).
  assert (exp (- merge more) <= exp (- by_merge)) by (apply exp_mono; lra).
  assert (lowest * exp (- merge more) <= lowest * exp (- by_merge)) by (apply Rmult_le_compat_l; auto).
  assert (ld * exp (- by_merge) <= ld * 1) by (apply Rmult_le_compat_l; lra). lra.
Qed.
Lemma denominator_le : denominator <= low_d K s B b J Mp r ops.
Proof.
  assert (Q := denominator_le_merged 0 ltac:(lra)). rewrite Ropp_0, exp_0, Rmult_1_r in Q. auto.
Qed.

Lemma of_scores_pos : 0 <= of_scores.
Proof.
  apply Rmin_glb; [|apply most_pos]. apply Sum_nonneg. intros j Hj. apply Rmult_le_pos; [|apply Rabs_pos].
  apply Rmult_le_pos; [left; apply exp_pos|]. assert (1 <= exp (E j)) by (apply exp_ge1; auto). lra.
Qed.
Lemma UD_of_sum_pos : 0 <= UD_of_sum.
Proof.
  assert (C := chain_pos). assert (U0 := s_u A OK). assert (Ud := s_upd A OK). assert (Ir := pos_INR r).
  assert (0 <= sum_error).
  { unfold sum_error. assert (Q := pow_ge1 u_a weight_roundings U0). apply refined_pos; [unfold pw; lra|].
    assert (0 <= least_weights) by (apply Sum_nonneg; intros; apply Rmin_glb; auto; apply pp_pos).
    apply Rmult_le_pos; [lra|]. apply Rplus_le_le_0_compat; repeat apply Rmult_le_pos; lra. }
  unfold UD_of_sum, join. assert (0 <= sum_error * upd A) by (apply Rmult_le_pos; auto). lra.
Qed.
Lemma UD_le by_merge : 0 <= by_merge <= merge more -> 0 <= exp by_merge - 1 + UDd K s B b J Mp r <= UD.
Proof.
  intros Hm. assert (P := UD_of_sum_pos). rewrite <- UD_of_sum_is. unfold UD, join.
  assert (1 <= exp by_merge) by (apply exp_ge1; lra). assert (exp by_merge <= exp (merge more)) by (apply exp_mono;
    lra).
  assert (0 <= UD_of_sum * (exp (merge more) - 1)) by (apply Rmult_le_pos; lra). lra.
Qed.

Variable c_div : nat.
Variables u_o lam_o : R.
Hypothesis Out : 0 <= u_o.
Lemma Uf_pos : 0 <= Uf c_div u_o.
Proof.
  assert (Q := pow_ge1 (u A) c_div (s_u A OK)). unfold Uf, join, pw.
  assert (0 <= ((1 + u A) ^ c_div - 1) * u_o) by (apply Rmult_le_pos; lra). lra.
Qed.

(** What was allowed is at least what is proved, where losses grow by so much after the last of what Uf counts. *)
Lemma allowed_at_least_merged by_merge by_division Uf1 lamf : 0 < denominator -> 0 <= by_merge <= merge more ->
  0 <= Uf1 -> 1 <= by_division ->
  (1 + Uf1) * by_division <= 1 + Uf c_div u_o -> lamf <= lam_finish c_div u_o lam_o ->
  let Sp := spread K s vv B b J Mp r in
  (1 + Uf1) * (Sp + (Nd_of K s B b J Mp r (norm_first more) (up A) vv (size K s vv B b J Mp r) +
    by_division * LNd K s vv B b J Mp r ops +
    (Rabs o + Sp) * (exp by_merge - 1 + UDd K s B b J Mp r + LDd K s B b J Mp r ops)) /
    (low_d K s B b J Mp r ops * exp (- by_merge))) + Uf1 * Rabs o + lamf <= allowed c_div u_o lam_o.
Proof.
  intros Hd Hm P Hb Hu Hl Sp. assert (S0 := of_scores_pos). assert (U0 := UD_le by_merge Hm).
  assert (Dl := denominator_le_merged by_merge Hm). assert (Nl := of_values_le). assert (Ln := LN_le). assert (Ll :=
    LD_le).
  assert (O := Rabs_pos o).
  unfold allowed, finished, per_lost, Rdiv, Sp. rewrite <- of_scores_is, <- A_plus_is.
  set (f := Uf c_div u_o) in *.
  set (low := low_d K s B b J Mp r ops * exp (- by_merge)) in *. set (ld := LDd K s B b J Mp r ops) in *.
  set (ln := LNd K s vv B b J Mp r ops) in *.
  set (nd := Nd_of K s B b J Mp r (norm_first more) (up A) vv A_plus) in *.
  set (ud := exp by_merge - 1 + UDd K s B b J Mp r) in *.
  assert (Hf : Uf1 <= f) by (assert (1 + Uf1 <= (1 + Uf1) * by_division) by (rewrite Rmult_comm; apply le_times; lra);
    lra).
  assert (I1 : / low <= / denominator) by (apply Rinv_le_contravar; auto).
  assert (I2 : 0 < / low) by (apply Rinv_0_lt_compat; lra).
  assert (Sum1 : (Rabs o + of_scores) * (ud + ld) <= (Rabs o + of_scores) * (UD + LD))
    by (apply Rmult_le_compat_l; lra).
  assert (Pos : 0 <= (Rabs o + of_scores) * (ud + ld)) by (apply Rmult_le_pos; lra).
  set (rounding := nd + (Rabs o + of_scores) * (ud + ld)).
  set (rounding' := of_values + (Rabs o + of_scores) * (UD + LD)).
  set (loss := factor * lost + LN).
  assert (Q1 : rounding * / low <= rounding' * / denominator)
    by (apply Rmult_le_compat; unfold rounding, rounding'; lra).
  assert (Q2 : ln * / low <= loss * / denominator) by (apply Rmult_le_compat; unfold loss; lra).
  assert (Q1p : 0 <= rounding * / low) by (apply Rmult_le_pos; unfold rounding; lra).
  assert (Q2p : 0 <= ln * / low) by (apply Rmult_le_pos; lra).
  assert (Q3 : (1 + Uf1) * (of_scores + rounding * / low) <= (1 + f) * (of_scores + rounding' * / denominator))
    by (apply Rmult_le_compat; lra).
  assert (Q4 : (1 + Uf1) * by_division * (ln * / low) <= (1 + f) * (loss * / denominator))
    by (apply Rmult_le_compat; [apply Rmult_le_pos|..]; lra).
  assert (Q5 : Uf1 * Rabs o <= f * Rabs o) by (apply Rmult_le_compat_r; auto).
  replace ((1 + Uf1) * (of_scores + (nd + by_division * ln + (Rabs o + of_scores) * (ud + ld)) * / low)) with
    ((1 + Uf1) * (of_scores + rounding * / low) + (1 + Uf1) * by_division * (ln * / low)) by (unfold rounding; ring).
  replace ((1 + f) * (of_scores + (of_values + LN + (Rabs o + of_scores) * (UD + LD)) * / denominator) + f * Rabs o +
      lam_finish c_div u_o lam_o + (1 + f) * / denominator * factor * lost) with
    ((1 + f) * (of_scores + rounding' * / denominator) + (1 + f) * (loss * / denominator) + f * Rabs o +
      lam_finish c_div u_o lam_o) by (unfold rounding', loss; ring). lra.
Qed.
Lemma allowed_at_least by_division Uf1 lamf : 0 < denominator -> 0 <= Uf1 -> 1 <= by_division ->
  (1 + Uf1) * by_division <= 1 + Uf c_div u_o -> lamf <= lam_finish c_div u_o lam_o ->
  let Sp := spread K s vv B b J Mp r in
  (1 + Uf1) * (Sp + (Nd_of K s B b J Mp r (norm_first more) (up A) vv (size K s vv B b J Mp r) +
    by_division * LNd K s vv B b J Mp r ops + (Rabs o + Sp) * (UDd K s B b J Mp r + LDd K s B b J Mp r ops)) /
    low_d K s B b J Mp r ops) + Uf1 * Rabs o + lamf <= allowed c_div u_o lam_o.
Proof.
  intros Hd P Hb Hu Hl. assert (Q := allowed_at_least_merged 0 by_division Uf1 lamf Hd ltac:(lra) P Hb Hu Hl).
  rewrite Ropp_0, exp_0, Rmult_1_r, Rminus_eq_0, Rplus_0_l in Q. exact Q.
Qed.
End At_least.
End Implemented.

(** ** Kernels that have nothing beside *)
Section Usual.
Variable K : Type.
Variables s vv : K -> R.
Variable A : arith.
Variable e : errors K.
Variable J : list K.
Variable r : nat.
Local Notation n := (length J).
Local Notation M := (M K s e J).
Hypothesis OK : sane A.
Hypothesis NJ : J <> [].
Hypothesis Covered : covered A e.

(** What documented.v has as the error of a score: what is its own of an exponent counts as one. *)
Definition with_own j := err e j + c_m e * u_e e * Q K s A e J j.
Lemma covered_alike : alike A A.
Proof. unfold alike. auto 10. Qed.
Lemma rest_is : rest A usual r = X A r.
Proof. unfold rest, of_exp, X, eps1. simpl. ring. Qed.
Lemma usual_E_is j : E K s A e usual J r j = bound.E K s A with_own M r j.
Proof.
  unfold E, D, bound.E, bound.D, with_own, residual. rewrite rest_is, (proj1 Covered). simpl. ring.
Qed.
Hypothesis Not_negative : forall j, In j J -> 0 <= err e j.
Hypothesis Folded : 0 <= c_m e * u_e e.
Lemma residual_pos : 0 <= residual K A e.
Proof. assert (Th := s_thE A OK). apply Rmult_le_pos; lra. Qed.
Lemma usual_E_pos j : In j J -> 0 <= E K s A e usual J r j.
Proof.
  intros Hj. unfold E, D. simpl. assert (P := Not_negative j Hj). assert (Mg := M_ge K s e J j Hj).
  assert (T0 := s_T A OK). assert (Th := s_thE A OK). assert (X0 := X_pos A OK r). rewrite <- rest_is in X0.
  assert (0 <= residual K A e * Q K s A e J j)
    by (apply Rmult_le_pos; [apply residual_pos|apply (Q_pos K s A e J OK)]).
  assert (0 <= thE A * (M - s j + err e j + 2 * T A)) by (apply Rmult_le_pos; lra). lra.
Qed.

(** Room for what a weight grows by before it is rescaled. *)
Definition room := exp (of_exp A + xl A).
Lemma room_ge1 : 1 <= room.
Proof. assert (H := eps1_pos A OK). assert (X0 := s_xl A OK). apply exp_ge1. unfold of_exp. fold (eps1 A). lra. Qed.
(** No more roundings than are counted, one before the sum among them. *)
Lemma depth_counts k : (k <= 1)%nat -> (k + hk K A J r <= underflow_depth K A J r)%nat.
Proof.
  intros Hk. assert (Nn : (1 <= n)%nat) by (clear - NJ; destruct J; simpl; [congruence|lia]).
  unfold hk, underflow_depth, sum_depth. destruct (additions A); lia.
Qed.
(** The last exponent may be off by what at_last is. *)
Hypothesis Last : last A <= at_last K s A e J.
Lemma grown_le : enough_factor K s A e usual J r A room.
Proof.
  intros w0 k [W1 W2] Hk. assert (Rm := room_ge1). unfold grown, factor, factor_grown, pw. set (hh := hk K A J r).
  simpl below. rewrite exp_0, Rmult_1_r. apply Rmult_le_compat_l; [lra|].
  set (deep := underflow_depth K A J r).
  replace (1 + ((1 + u A) ^ deep - 1)) with ((1 + u A) ^ deep) by ring.
  replace (1 + ((1 + lame A) ^ r - 1)) with ((1 + lame A) ^ r) by ring.
  assert (U0 := s_u A OK). assert (Up := s_up A OK). assert (L0 := s_lame A OK). assert (E1 := eps1_pos A OK).
  assert (Xr := s_xr A OK). assert (Xl := s_xl A OK). assert (F1 := F_ge1 A OK r).
  assert (Gr : g A ^ r <= exp (INR r * (xr A + eps1 A)) * (1 + lame A) ^ r).
  { replace (exp (INR r * (xr A + eps1 A))) with (exp (xr A + eps1 A) ^ r).
    - rewrite <- Rpow_mult_distr. apply pow_incr. split; [assert (H := g_ge1 A OK); lra|]. unfold g.
      assert (H : 1 <= exp (xr A + eps1 A)) by (apply exp_ge1; lra).
      assert (lame A <= exp (xr A + eps1 A) * lame A) by (apply le_times; auto). lra.
    - clear. generalize (xr A + eps1 A). intros y. induction r as [|k IH]; [simpl; rewrite Rmult_0_l, exp_0; auto|].
      rewrite S_INR, Rmult_plus_distr_r, exp_plus, Rmult_1_l, <- IH. simpl. ring. }
  set (common := exp (2 * (thE A * T A + rest A usual r) + at_last K s A e J)).
  assert (Ex : room * F A r * exp (INR r * (xr A + eps1 A)) <= common).
  { unfold F, room, common. rewrite <- !exp_plus. apply exp_mono. rewrite (proj1 Covered), rest_is. unfold X, of_exp.
    fold (eps1 A). lra. }
  assert (Wk : w0 * (1 + u A) ^ hh <= (1 + up A) * (1 + u A) ^ deep).
  { assert (Pk := pow_ge1 (u A) hh U0).
    apply Rle_trans with ((1 + up A) * (1 + u A) ^ k * (1 + u A) ^ hh); [apply Rmult_le_compat_r; lra|].
    rewrite Rmult_assoc, <- pow_add. apply Rmult_le_compat_l; [lra|]. apply pow_mono; auto. apply depth_counts. auto. }
  assert (Gp : 1 <= g A ^ r) by (apply pow_R1_Rle, g_ge1; auto).
  assert (Wp : 1 <= w0 * (1 + u A) ^ hh) by (apply times_ge1; auto; apply pow_ge1; auto).
  replace (room * (F A r * w0 * (1 + u A) ^ hh * g A ^ r)) with (room * F A r * g A ^ r * (w0 * (1 + u A) ^ hh))
    by ring.
  assert (RF : 1 <= room * F A r) by (apply times_ge1; auto).
  replace (common * (1 + u A) ^ deep * (1 + up A) * (1 + lame A) ^ r) with
    (common * (1 + lame A) ^ r * ((1 + up A) * (1 + u A) ^ deep)) by ring.
  apply Rmult_le_compat; try lra; [apply Rmult_le_pos; lra|].
  apply Rle_trans with (room * F A r * (exp (INR r * (xr A + eps1 A)) * (1 + lame A) ^ r));
    [apply Rmult_le_compat_l; lra|].
  rewrite <- Rmult_assoc. apply Rmult_le_compat_r; auto. apply pow_le. lra.
Qed.
Lemma gain_le : enough_gain K A e r A room.
Proof.
  apply Rmult_le_compat_l; [apply pos_INR|]. unfold gain, room, X, of_exp. fold (eps1 A). rewrite <- exp_plus.
  apply exp_mono. destruct Covered as (_ & H & _). simpl INR. lra.
Qed.
Lemma usual_ops : INR (2 * n + 2 * r) <= 2 * INR n + rescaling_operations usual r.
Proof. unfold rescaling_operations. simpl merge_operations. rewrite plus_INR, !mult_INR. simpl (INR 2). lra. Qed.

Hypothesis Up_d : upd A <= up A.
Hypothesis Lamp_d : lampd A <= lamp A.
Lemma usual_denominator_le : denominator K s A e usual J r <= low_d K s A with_own J M r (2 * n + 2 * r).
Proof.
  apply (denominator_le K s A e usual J r OK NJ A with_own M (2 * n + 2 * r) room); auto using
    covered_alike, usual_E_is, room_ge1, grown_le, gain_le, usual_ops; try apply Covered; apply Rle_refl.
Qed.

Variable c_div : nat.
Variables u_o lam_o : R.
Hypothesis Out : 0 <= u_o.
(** What was allowed is at least what is proved. *)
Theorem implemented_bound lamf : 0 < denominator K s A e usual J r -> lamf <= lam_finish A c_div u_o lam_o ->
  documented K s vv A with_own J M r (2 * n + 2 * r) (Uf A c_div u_o) lamf <=
    allowed K s vv A e usual J r c_div u_o lam_o.
Proof.
  intros Hd Hl. assert (P := Uf_pos A OK c_div u_o Out). rewrite <- divided_last. unfold documented_of.
  rewrite <- (Rmult_1_l (LNd K s vv A with_own J M r (2 * n + 2 * r))).
  apply (allowed_at_least K s vv A e usual J r OK NJ A with_own M (2 * n + 2 * r) room); auto using
    covered_alike, usual_E_is, usual_E_pos, room_ge1, grown_le, gain_le, usual_ops, Rle_refl; try apply Covered. lra.
Qed.
End Usual.

(** Natural exponents have nothing of their own. *)
Section Natural.
Variable K : Type.
Variables s vv : K -> R.
Variable A : arith.
Variables a ap : K -> R.
Variable J : list K.
Variable r : nat.
Local Notation e := (natural_whole a ap).
Lemma nothing_folded : 0 <= c_m e * u_e e.
Proof. simpl. lra. Qed.
Lemma no_residual : residual K A e = 0 /\ at_last K s A e J = 0.
Proof. unfold at_last, residual. simpl. rewrite !Rmult_0_l. auto. Qed.
Lemma natural_E_is j : gap A = 0 -> E K s A e usual J r j = bound.E K s A a (M K s e J) r j.
Proof. intros G. unfold E, D, bound.E, bound.D, residual. rewrite rest_is, G. simpl. ring. Qed.
End Natural.

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

(** What a term may lose it may lose in a sum that allows more, of any depth and order. *)
Lemma sums_by_more K sh A Q xk v w0 lamw lamw' ts m y k r c : u Q = u A -> lam Q = lam A -> thE Q = thE A ->
  xr Q = xr A -> T Q = T A -> eps Q = eps A -> lame Q = lame A -> nearest Q = nearest A -> lamw <= lamw' ->
  sums_by K sh A xk v w0 lamw ts m y k r c -> sums_by K sh Q xk v w0 lamw' ts m y k r c.
Proof.
  intros E1 E2 E3 E5 E6 E7 E8 E9 L.
  assert (S : forall e p, split Q e p = split A e p) by (intros; unfold split; rewrite E7; auto).
  assert (X : forall e p, exponential A e p -> exponential Q e p)
    by (intros e p; unfold exponential; rewrite E7, E8; auto).
  induction 1 as [j m e p y HT He Hp Hy | ts1 ts2 m y1 y2 y k1 r1 c1 k2 r2 c2 H1 IH1 H2 IH2 N
                 | ts m y k r c m' z p y' H IH Hm Hz Hp N].
  - rewrite <- S. rewrite <- E3 in He. apply (sums_by_key K sh Q xk v w0 lamw' j m e p y); rewrite ?E6, ?E2; auto.
    eapply Rle_trans; [apply Hy|]. apply Rplus_le_compat_r, Rmult_le_compat_r; [apply Rabs_pos|].
    apply Rplus_le_compat_l, Rle_min_compat; lra.
  - apply (sums_by_add K sh Q xk v w0 lamw' ts1 ts2 m y1 y2 y); auto. unfold adds in *. rewrite E1, E2, E9. exact N.
  - apply (sums_by_rescale K sh Q xk v w0 lamw' ts m y k r c m' z p y'); auto; unfold eps1, near in *;
      rewrite ?E1, ?E2, ?E3, ?E5, ?E7, ?E8; auto.
Qed.
Lemma sums_more K sh A Q v w0 lamw lamw' ts m y k r c : u Q = u A -> lam Q = lam A -> thE Q = thE A -> xl Q = xl A ->
  xr Q = xr A -> T Q = T A -> eps Q = eps A -> lame Q = lame A -> nearest Q = nearest A -> lamw <= lamw' ->
  sums K sh A v w0 lamw ts m y k r c -> sums K sh Q v w0 lamw' ts m y k r c.
Proof.
  intros E1 E2 E3 E4 E5 E6 E7 E8 E9 L H. apply (sums_by_more K sh A Q (merge.plain K Q) v w0 lamw lamw'); auto.
  unfold merge.plain. rewrite E4. exact H.
Qed.
(** The same claims, but for what the last exponent may be off by. *)
Definition with_last (A : arith) (x : R) : arith := {| u := u A; lam := lam A; thE := thE A; xl := xl A; xr := xr A;
  T := T A; gap := gap A; off := off A; last := x; eps := eps A; lame := lame A; up := up A; lamp := lamp A;
  upd := upd A; lampd := lampd A; nearest := nearest A; additions := additions A |}.
Lemma with_last_sane A x : sane A -> 0 <= x -> sane (with_last A x).
Proof. intros [] H. constructor; simpl; auto. Qed.

(** A block of keys that vanish, whatever its exponents err by against a reference of its own: once a factor of exactly
    0 has made 0 of its sum, it is as if each of them had met the reference m' that the block is rescaled to. So D2 need
    not be asked of what a block of nothing but huge masks has subtracted. *)
Lemma vanished_block K sh A xk xk' v w0 lamw m' ts m y k r c : sane A -> 1 <= w0 -> 0 <= lamw ->
  sums_by K sh A xk v w0 lamw ts m y k r c ->
  (forall t, In t ts -> 0 <= xk' (fst t) /\ sh (fst t) - m' <= T A /\
    exponential A (sh (fst t) - m') 0) ->
  exists k' c', (k' <= k /\ c' <= c)%nat /\
    sums_by K sh A xk' v w0 lamw (map (fun t => (fst t, split A (sh (fst t) - m') 0)) ts) m' 0 k' 0 c'.
Proof.
  intros OK W L. assert (Lam := s_lam A OK).
  induction 1 as [j m e p y HT He Hp Hy|ts1 ts2 m y1 y2 y k1 r1 c1 k2 r2 c2 H1 IH1 H2 IH2 N|
    ts m y k r c z0 z p y' H IH]; intros V.
  - destruct (V _ (or_introl eq_refl)) as (V1 & V2 & V3). simpl in V1, V2, V3. simpl map.
    exists 0%nat, 1%nat. split; [lia|].
    replace (split A (sh j - m') 0) with (sh j - m' - (sh j - m') + split A (sh j - m') 0) by ring.
    apply sums_by_key; auto.
    + replace (sh j - m' - (sh j - m')) with 0 by ring. rewrite Rabs_R0.
      assert (0 <= thE A * Rabs (sh j - m')) by (apply Rmult_le_pos; [apply (s_thE A OK)|apply Rabs_pos]). lra.
    + rewrite Rmult_0_l, Rminus_0_r, Rabs_R0, !Rmult_0_r, Rmin_right by auto. rewrite Rplus_0_r, Rmult_0_l. lra.
  - destruct IH1 as (k1' & c1' & B1 & S1); [intros; apply V, in_or_app; auto|].
    destruct IH2 as (k2' & c2' & B2 & S2); [intros; apply V, in_or_app; auto|].
    exists (S (Nat.max k1' k2')), (S (c1' + c2')). split; [lia|]. rewrite map_app.
    apply (sums_by_add K sh A xk' v w0 lamw _ _ m' 0 0 0 k1' 0 c1' k2' 0 c2'); auto.
    unfold adds, near. rewrite Rplus_0_l, Rminus_0_r, Rabs_R0, Rmin_left by lra. lra.
  - destruct IH as (k' & c' & B & S'); [|exists k', c'; split; [lia|]].
    + intros t I1. apply (V (fst t, snd t + z)). unfold rescaled. apply (in_map (fun t => (fst t, snd t + z))). auto.
    + unfold rescaled. rewrite map_map. exact S'.
Qed.

Section Kernels.
Variable K : Type.
Variables s vv : K -> R.
Variable A : arith.
Hypothesis OK : sane A.
Hypothesis Up_d : upd A <= up A.
Hypothesis Lamp_d : lampd A <= lamp A.
Variable J : list K.
Variable r : nat.
Variable c_div : nat.
Variables u_o lam_o : R.
Hypothesis Out : 0 <= u_o /\ 0 <= lam_o.
Local Notation n := (length J).

(** oh is what a kernel returns that has the scores sh, and whose exponent of a key is off by xk beside thE: two sums
    over the same keys in any orders, or of the depth that is declared, relative to a reference that no score is below
    by more than 0, with no more operations than are counted; their quotient. *)
Definition returns_by (xk sh : K -> R) (oh : R) := exists tl to_ m l o kl rl cl ko ro co quotient,
  Permutation (map fst to_) J /\ Permutation tl to_ /\
  sums_by K sh A xk (one K) (w_l A) (lampd A) tl m l kl rl cl /\ (rl <= r)%nat /\ (cl <= 2 * n + 2 * r)%nat /\
  shallow A r kl /\
  sums_by K sh A xk vv (w_o A) ((1 + u A) * lamp A) to_ m o ko ro co /\ (ro <= r)%nat /\ (co <= 2 * n + 2 * r)%nat /\
  shallow A r ko /\
  (exists i, In i J /\ m <= sh i) /\
  divided (u A) (lam A) c_div (o / l) quotient /\ near u_o lam_o quotient oh.
(** No exponent errs by anything of its own. *)
Definition returns := returns_by (merge.plain K A).
(** Its scores err by at most a, but for what is common to all of them. *)
Definition scores_within (a sh : K -> R) := exists common, forall j, In j J -> Rabs (sh j - (s j + common)) <= a j.

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

Section Tolerance.
Variable e : errors K.
Hypothesis Covered : covered A e.
Hypothesis Folded : 0 <= c_m e * u_e e.
Local Notation own j := (residual K A e * Q K s A e J j).

(** What a kernel subtracts from the score of each key: a reference that no score is further above than it may lag, and
    that is no larger than all. With a folded scale it is rounded apart, and the exponent off by what that takes, which
    is no more than D2 lets it be. *)
Definition apart_by (reference : K -> R) (j : K) := (1 + thE A) * (c_m e * u_e e * Rabs (reference j)).
Definition refers (sh reference : K -> R) := forall j, In j J ->
  sh j <= reference j + T A /\ (exists i, In i J /\ reference j <= sh i) /\ apart_by reference j <= off A.
Definition off_by (reference : K -> R) (j : K) := xl A + apart_by reference j.
Definition answers (sh : K -> R) (oh : R) :=
  exists reference, refers sh reference /\ returns_by (off_by reference) sh oh.
Definition whole_within (sh : K -> R) := forall j, In j J -> Rabs (sh j - s j) <= whole e j.

Section References.
Variables sh reference : K -> R.
Hypothesis Whole : whole_within sh.
Hypothesis Refers : refers sh reference.
Lemma score_at_top i : In i J -> sh i <= top K s e J.
Proof.
  intros Hi. assert (H := Rabs_bounds _ _ (Whole i Hi)).
  assert (G := greatest_ge K J (fun j => s j + whole e j) i Hi). unfold top. simpl in G. lra.
Qed.
Lemma top_within : Rabs (top K s e J) <= Mabs K s e J /\ Rabs (bottom K s e J) <= Mabs K s e J.
Proof. split; [apply Rmax_l|apply Rmax_r]. Qed.
Lemma reference_within j : In j J -> Rabs (reference j) <= Q K s A e J j.
Proof.
  intros Hj. destruct (Refers j Hj) as (Low & (i & Ii & High) & _). assert (H := Rabs_bounds _ _ (Whole j Hj)).
  assert (Hi := score_at_top i Ii). destruct top_within as [Tp _]. apply Rabs_bounds in Tp.
  assert (T0 := s_T A OK). unfold Q. assert (R1 := Rmax_l (Rabs (s j) + whole e j) (Mabs K s e J)).
  assert (R2 := Rmax_r (Rabs (s j) + whole e j) (Mabs K s e J)).
  assert (Sp := Rle_abs (- s j)). rewrite Rabs_Ropp in Sp. apply Rabs_le_iff. lra.
Qed.
Lemma last_reference i : J <> [] -> In i J -> (forall j, In j J -> sh j <= sh i) ->
  Rabs (reference i) <= Mabs K s e J + T A.
Proof.
  intros NJ Hi Most. destruct (Refers i Hi) as (Low & (i' & Ii & High) & _). assert (Hi' := score_at_top i' Ii).
  destruct top_within as [Tp Bt]. apply Rabs_bounds in Tp. apply Rabs_bounds in Bt. assert (T0 := s_T A OK).
  destruct (greatest_is K J (fun j => s j - whole e j) NJ) as (j & Ij & Ej). fold (bottom K s e J) in Ej.
  assert (H := Rabs_bounds _ _ (Whole j Ij)). assert (Mj := Most j Ij). simpl in Ej. apply Rabs_le_iff. lra.
Qed.
End References.

(** The bound of core/bound, of every kernel of the class. *)
Theorem implemented_tolerance sh oh : scores_within (err e) sh -> c_m e = 0 \/ whole_within sh -> answers sh oh ->
  0 < denominator K s A e usual J r ->
  Rabs (oh - exact K s vv J) <= allowed K s vv A e usual J r c_div u_o lam_o.
Proof.
  intros (common & Hs) Wh (reference & Ref & tl & to_ & m & l & o & kl & rl & cl & ko & ro & co &
    quotient & M1 & Hp & HL & Hrl & Hcl & Sl & HO & Hro & Hco & So & (i & Ii & Hi) & Hq & Hoh) Hd.
  assert (NJ : J <> []) by (intros Q; rewrite Q in Ii; destruct Ii).
  assert (Pe : forall j, In j J -> 0 <= err e j) by (intros j Hj; eapply Rle_trans; [apply Rabs_pos|apply (Hs j Hj)]).
  assert (TE := s_thE A OK). assert (G0 : gap A = 0) by apply Covered.
  assert (L0 : 0 <= at_last K s A e J).
  { apply Rmult_le_pos; [apply (residual_pos K A e OK Folded)|]. assert (H := Mabs_pos K s e J).
    assert (H1 := s_T A OK). lra. }
  set (A1 := with_last A (at_last K s A e J)). assert (O1 : sane A1) by (apply with_last_sane; auto).
  assert (C1 : covered A1 e) by exact Covered.
  assert (Dl := usual_denominator_le K s A1 e J r O1 NJ C1 (Rle_refl _) Up_d Lamp_d).
  change (denominator K s A1 e usual J r) with (denominator K s A e usual J r) in Dl.
  eapply Rle_trans; [|apply (implemented_bound K s vv A1 e J r O1 NJ C1 Pe Folded (Rle_refl _) Up_d Lamp_d
    c_div u_o lam_o ltac:(lra) (lam_finish A c_div u_o lam_o) Hd (Rle_refl _))].
  assert (Rd : residual K A e = (1 + thE A) * (c_m e * u_e e)) by (unfold residual; ring).
  (* what is asked of the exponents, of keys that are none as well *)
  assert (At : forall j x, Rabs (reference j) <= x -> apart_by reference j <= residual K A e * x).
  { intros j x H. assert (H1 := Rmult_le_compat_l _ _ _ Folded H).
    assert (H2 := Rmult_le_compat_l (1 + thE A) _ _ ltac:(lra) H1). unfold apart_by. rewrite Rd. lra. }
  assert (At_j : forall j, In j J -> apart_by reference j <= own j).
  { intros j Hj. destruct Wh as [Z|Wh]; [|apply At, (reference_within sh); auto].
    unfold apart_by. rewrite Rd, Z. right. ring. }
  set (asked := fun j => xl A + Rmin (apart_by reference j) (Rmin (off A) (own j))).
  assert (Asked : forall j, In j J -> off_by reference j <= asked j).
  { intros j Hj. destruct (Ref j Hj) as (_ & _ & D2). assert (Aj := At_j j Hj). unfold off_by, asked.
    apply Rplus_le_compat_l. apply Rmin_glb; [lra|]. apply Rmin_glb; lra. }
  assert (Ml : Permutation (map fst tl) J)
    by (eapply Permutation_trans; [apply Permutation_map; apply Hp|auto]).
  assert (To_A1 : forall v w0 lamw ts m y k r' c, sums_by K sh A (off_by reference) v w0 lamw ts m y k r' c ->
    (forall t, In t ts -> off_by reference (fst t) <= asked (fst t)) ->
    sums_by K sh A1 asked v w0 lamw ts m y k r' c).
  { intros v w0 lamw ts m' y k r' c H It. apply (sums_by_more K sh A A1 asked v w0 lamw lamw); auto; [lra|].
    apply (sums_by_keys _ _ _ (off_by reference)); auto. }
  apply (documented_bound_by K s sh vv A1 O1 asked) with (a0 := err e) (tl := tl) (to_ := to_) (m := m) (l := l)
    (o := o) (Cs := common) (kl := kl) (rl := rl) (cl := cl) (ko := ko) (ro := ro) (co := co); auto.
  - intros j. apply Rplus_le_compat_l. eapply Rle_trans; [apply Rmin_r|apply Rmin_l].
  - intros j. assert (H : asked j <= xl A + own j)
      by (apply Rplus_le_compat_l; eapply Rle_trans; [apply Rmin_r|apply Rmin_r]).
    unfold with_own. rewrite Rd in H. simpl (thE A1). simpl (xl A1). change (Q K s A1 e J j) with (Q K s A e J j). lra.
  - intros j Hj Most. apply Rplus_le_compat_l. eapply Rle_trans; [apply Rmin_l|].
    destruct Wh as [Z|Wh]; [unfold apart_by; rewrite Z; simpl; lra|]. apply At, (last_reference sh); auto.
  - apply To_A1; auto. intros t It. apply Asked. eapply Permutation_in; [apply Ml|]. apply in_map. auto.
  - apply To_A1; auto. intros t It. apply Asked. eapply Permutation_in; [apply M1|]. apply in_map. auto.
  - intros j Hj. apply M_ge; auto.
  - exists i. split; auto. simpl. rewrite G0. lra.
  - lra.
  - apply (Uf_pos A OK); tauto.
  - apply finish_near with quotient; auto.
Qed.
End Tolerance.

(** Where no exponent errs by anything of its own, any reference will do. *)
Lemma answers_of_returns e sh oh : c_m e = 0 -> returns sh oh -> answers e sh oh.
Proof.
  intros Z H. assert (NJ : J <> []).
  { destruct H as (tl & to_ & m & l & o & kl & rl & cl & ko & ro & co & quotient & H). intros E. subst.
    decompose [and] H. destruct H10 as (i & [] & _). }
  destruct (largest_score K sh J NJ) as (i & Ii & Most). exists (fun _ => sh i). split.
  - intros j Hj. assert (Q := Most j Hj). assert (T0 := s_T A OK). split; [lra|]. split; [exists i; split; [auto|lra]|].
    assert (O0 := s_off A OK). unfold apart_by. rewrite Z. lra.
  - destruct H as (tl & to_ & m & l & o & kl & rl & cl & ko & ro & co & quotient & M1 & Hp & HL & Hrl & Hcl & Sl & HO &
      Hro & Hco & So & Hi & Hq & Hoh).
    assert (P : forall t : K * R, merge.plain K A (fst t) <= off_by e (fun _ => sh i) (fst t))
      by (intros; unfold off_by, apart_by, merge.plain; rewrite Z; lra).
    exists tl, to_, m, l, o, kl, rl, cl, ko, ro, co, quotient.
    refine (conj M1 (conj Hp (conj _ (conj Hrl (conj Hcl (conj Sl (conj _ (conj Hro (conj Hco (conj So (conj Hi
      (conj Hq Hoh)))))))))))); apply (sums_by_keys _ _ _ (merge.plain K A)); auto.
Qed.
(** Of natural exponents, relative to any reference. *)
Theorem as_written_tolerance a sh oh : covered A (natural a) -> scores_within a sh -> returns sh oh ->
  0 < denominator K s A (natural a) usual J r ->
  Rabs (oh - exact K s vv J) <= allowed K s vv A (natural a) usual J r c_div u_o lam_o.
Proof.
  intros Cv H1 H2. apply (implemented_tolerance (natural a) Cv (nothing_folded K a a) sh oh); auto.
  apply (answers_of_returns (natural a)); auto.
Qed.

(** Every such kernel is within the proved tolerance. *)
Lemma returns_documented a sh oh : in_any_order A -> scores_within a sh -> returns sh oh ->
  0 < low_d K s A a J (M K s (natural a) J) r (2 * n + 2 * r) -> J <> [] /\ (forall j, In j J -> 0 <= a j) /\
  Rabs (oh - exact K s vv J) <= documented K s vv A a J (M K s (natural a) J) r (2 * n + 2 * r) (Uf A c_div u_o)
    (lam_finish A c_div u_o lam_o).
Proof.
  intros (Ga & _ & _ & _ & Ne) (common & Hs) (tl & to_ & m & l & o & kl & rl & cl & ko & ro & co & quotient & M1 & Hp &
    HL & Hrl & Hcl & Sl & HO & Hro & Hco & So & (i & Ii & Hi) & Hq & Hoh) Hd.
  assert (NJ : J <> []) by (intros Q; rewrite Q in Ii; destruct Ii).
  assert (Pa : forall j, In j J -> 0 <= a j) by (intros j Hj; eapply Rle_trans; [apply Rabs_pos|apply (Hs j Hj)]).
  split; auto. split; auto.
  apply (documented_bound K s sh vv A OK Ne a J (M K s (natural a) J) r (2 * n + 2 * r) tl to_ m l o common _ _ oh
    kl rl cl ko ro co); auto.
  - intros j Hj. apply (M_ge K s (natural a)); auto.
  - exists i. split; auto. rewrite Ga. lra.
  - apply (Uf_pos A OK); tauto.
  - apply finish_near with quotient; auto.
Qed.
End Kernels.
