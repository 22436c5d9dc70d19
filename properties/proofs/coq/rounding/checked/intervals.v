(** Numbers between two numbers: what the evaluator of evaluation.v computes with, each operation with its proof. *)
From Coq Require Import Reals List Lra Lia Psatz ZArith.
From Interval Require Import Xreal Basic Sig Interval.Interval.
From Attest.Rounding Require Import basics.
Import ListNotations.
Open Scope R_scope.

(** e^-x between two of its polynomials. *)
Lemma by_slope (f f' : R -> R) :
  (forall x, derivable_pt_lim f x (f' x)) -> f 0 = 0 -> (forall x, 0 <= x -> 0 <= f' x) ->
  forall x, 0 <= x -> 0 <= f x.
Proof.
  intros D Z P x [Px| <-]; [|lra].
  destruct (MVT_cor2 f f' 0 x Px) as (c & E & H); [auto|]. rewrite Z in E.
  assert (Q := P c ltac:(lra)). assert (0 <= f' c * (x - 0)) by (apply Rmult_le_pos; lra). lra.
Qed.
Lemma exp_minus_deriv x : derivable_pt_lim (fun y => exp (- y)) x (- exp (- x)).
Proof.
  replace (- exp (- x)) with (exp (- x) * - (1)) by ring.
  apply (derivable_pt_lim_comp Ropp exp); [|apply derivable_pt_lim_exp].
  apply (derivable_pt_lim_opp id), derivable_pt_lim_id.
Qed.
Lemma exp_minus_square x : 0 <= x -> exp (- x) <= 1 - x + x * x / 2.
Proof.
  intros P. enough (0 <= 1 - x + x * x / 2 - exp (- x)) by lra. revert x P.
  apply (by_slope _ (fun x => -1 + x + exp (- x))); intros.
  - replace (-1 + x + exp (- x)) with ((0 - 1 + (1 * x + x * 1) * / 2) - - exp (- x)) by field.
    apply derivable_pt_lim_minus; [|apply exp_minus_deriv].
    apply derivable_pt_lim_plus.
    + apply derivable_pt_lim_minus; [apply derivable_pt_lim_const|apply derivable_pt_lim_id].
    + apply (derivable_pt_lim_ext (fun y => / 2 * (y * y))).
      { intros. unfold Rdiv. ring. }
      replace ((1 * x + x * 1) * / 2) with (/ 2 * (1 * x + x * 1)) by ring.
      apply (derivable_pt_lim_scal (fun y => y * y)).
      apply (derivable_pt_lim_mult (fun y => y) (fun y => y)); apply derivable_pt_lim_id.
  - rewrite Ropp_0, exp_0. lra.
  - assert (H1 := exp_ge_1 (- x)). lra.
Qed.
Lemma exp_minus_cube x : 0 <= x -> 1 - x + x * x / 2 - x * x * x / 6 <= exp (- x).
Proof.
  intros P. enough (0 <= exp (- x) - (1 - x + x * x / 2 - x * x * x / 6)) by lra. revert x P.
  apply (by_slope _ (fun x => 1 - x + x * x / 2 - exp (- x))); intros.
  - replace (1 - x + x * x / 2 - exp (- x))
      with (- exp (- x) - (0 - 1 + (/ 2 * (1 * x + x * 1)) - / 6 * ((1 * x + x * 1) * x + x * x * 1))) by field.
    apply derivable_pt_lim_minus; [apply exp_minus_deriv|].
    assert (Sq : derivable_pt_lim (fun y => y * y) x (1 * x + x * 1))
      by (apply (derivable_pt_lim_mult (fun y => y) (fun y => y)); apply derivable_pt_lim_id).
    apply derivable_pt_lim_minus; [apply derivable_pt_lim_plus;
      [apply derivable_pt_lim_minus; [apply derivable_pt_lim_const|apply derivable_pt_lim_id]|]|].
    + apply (derivable_pt_lim_ext (fun y => / 2 * (y * y))); [intros; unfold Rdiv; ring|].
      apply (derivable_pt_lim_scal (fun y => y * y)). auto.
    + apply (derivable_pt_lim_ext (fun y => / 6 * (y * y * y))); [intros; unfold Rdiv; ring|].
      apply (derivable_pt_lim_scal (fun y => y * y * y)).
      apply (derivable_pt_lim_mult (fun y => y * y) (fun y => y)); auto. apply derivable_pt_lim_id.
  - rewrite Ropp_0, exp_0. lra.
  - assert (Q := exp_minus_square x H). lra.
Qed.
(** e^x - 1 from above, without the cancellation. *)
Lemma expm1_above x : 0 <= x -> exp x - 1 <= exp x * (x - x * x / 2 + x * x * x / 6).
Proof.
  intros P. assert (Q := exp_minus_cube x P). assert (E := exp_pos x).
  assert (Q2 : exp x * (1 - x + x * x / 2 - x * x * x / 6) <= exp x * exp (- x)) by (apply Rmult_le_compat_l; lra).
  rewrite <- exp_plus, Rplus_opp_r, exp_0 in Q2. lra.
Qed.

Module Intervals (I : IntervalOps).
Section Operations.
Variable prec : I.precision.

Definition encloses (i : I.type) (x : R) := contains (I.convert i) (Xreal x).
(** The real number that a float is; of a NaN, which encloses everything, some number. *)
Definition number (f : I.F.type) := proj_val (I.F.convert f).
Definition exactly (f : I.F.type) := I.singleton f.
Definition of_Z (z : Z) := I.fromZ prec z.
Definition add i j := I.add prec i j.
Definition sub i j := I.sub prec i j.
Definition mul i j := I.mul prec i j.
Definition div i j := I.div prec i j.
Definition one := of_Z 1.
Definition expo i := I.exp prec i.
Definition logarithm i := I.ln prec i.

Lemma exactly_h f : encloses (exactly f) (number f).
Proof. apply I.singleton_correct. Qed.
Lemma of_Z_h z : encloses (of_Z z) (IZR z).
Proof. apply I.fromZ_correct. Qed.
Lemma of_nat_h n : encloses (of_Z (Z.of_nat n)) (INR n).
Proof. rewrite INR_IZR_INZ. apply of_Z_h. Qed.
Lemma zero_h : encloses I.zero 0.
Proof. unfold encloses. rewrite I.zero_correct. simpl. lra. Qed.
Lemma one_h : encloses one 1.
Proof. apply of_Z_h. Qed.
Lemma add_h i j x y : encloses i x -> encloses j y -> encloses (add i j) (x + y).
Proof. intros H1 H2. apply (I.add_correct prec i j (Xreal x) (Xreal y)); auto. Qed.
Lemma sub_h i j x y : encloses i x -> encloses j y -> encloses (sub i j) (x - y).
Proof. intros H1 H2. apply (I.sub_correct prec i j (Xreal x) (Xreal y)); auto. Qed.
Lemma mul_h i j x y : encloses i x -> encloses j y -> encloses (mul i j) (x * y).
Proof. intros H1 H2. apply (I.mul_correct prec i j (Xreal x) (Xreal y)); auto. Qed.
Lemma div_h i j x y : y <> 0 -> encloses i x -> encloses j y -> encloses (div i j) (x / y).
Proof.
  intros N H1 H2. assert (Q := I.div_correct prec i j (Xreal x) (Xreal y) H1 H2). unfold encloses.
  replace (Xreal (x / y)) with (Xdiv (Xreal x) (Xreal y)); auto. simpl. unfold Xdiv'.
  destruct (is_zero_spec y); auto. congruence.
Qed.
Lemma expo_h i x : encloses i x -> encloses (expo i) (exp x).
Proof. intros H. apply (I.exp_correct prec i (Xreal x)); auto. Qed.
Lemma logarithm_h i x : 0 < x -> encloses i x -> encloses (logarithm i) (ln x).
Proof.
  intros P H. assert (Q := I.ln_correct prec i (Xreal x) H). unfold encloses.
  replace (Xreal (ln x)) with (Xln (Xreal x)); auto. simpl. unfold Xln'. destruct (is_positive_spec x); auto. lra.
Qed.
Lemma abs_h i x : encloses i x -> encloses (I.abs i) (Rabs x).
Proof. intros H. apply (I.abs_correct i (Xreal x)); auto. Qed.
Lemma neg_h i x : encloses i x -> encloses (I.neg i) (- x).
Proof. intros H. apply (I.neg_correct i (Xreal x)); auto. Qed.

(** Comparisons: true is proved, false says nothing. *)
Definition le i j := match I.sign_large (sub i j) with Xlt | Xeq => true | _ => false end.
Definition lt i j := match I.sign_strict (sub i j) with Xlt => true | _ => false end.
Lemma le_h i j x y : le i j = true -> encloses i x -> encloses j y -> x <= y.
Proof.
  unfold le. intros L H1 H2. assert (Q := I.sign_large_correct (sub i j)). assert (D := sub_h _ _ _ _ H1 H2).
  destruct (I.sign_large (sub i j)); try discriminate.
  - apply Q in D. injection D. lra.
  - apply Q in D. simpl in D. lra.
Qed.
Lemma lt_h i j x y : lt i j = true -> encloses i x -> encloses j y -> x < y.
Proof.
  unfold lt. intros L H1 H2. assert (Q := I.sign_strict_correct (sub i j)). assert (D := sub_h _ _ _ _ H1 H2).
  destruct (I.sign_strict (sub i j)); try discriminate. apply Q in D. simpl in D. lra.
Qed.

Definition not_below_zero i := match I.sign_large i with Xgt | Xeq => true | _ => false end.
Lemma not_below_zero_h i x : not_below_zero i = true -> encloses i x -> 0 <= x.
Proof.
  unfold not_below_zero. intros L H. assert (Q := I.sign_large_correct i).
  destruct (I.sign_large i); try discriminate; apply Q in H; [injection H; lra|]. simpl in H. lra.
Qed.
(** The upper end of what encloses all of them. *)
Definition hull (first : I.type) (others : list I.type) := fold_left I.join others first.
Lemma hull_h others : forall first i x, In i (first :: others) -> encloses i x -> encloses (hull first others) x.
Proof.
  unfold hull. induction others as [|j l IH]; simpl; intros first i x [->|I1] H; auto.
  - tauto.
  - apply (IH _ (I.join i j)); simpl; auto. apply I.join_correct. auto.
  - destruct I1 as [->|I1]; [|apply (IH _ i); simpl; auto].
    apply (IH _ (I.join first i)); simpl; auto. apply I.join_correct. auto.
Qed.
Lemma upper_h i x : I.upper_bounded i = true -> encloses i x -> x <= number (I.upper i).
Proof.
  intros B H. destruct (I.upper_bounded_correct i B) as [E P].
  assert (N : not_empty (I.convert i)) by (exists x; auto). apply P in N. unfold encloses in H. rewrite N in H.
  simpl in H. destruct H as [_ H]. rewrite E in H. auto.
Qed.

(** Only upper ends count of what a bound grows with, only lower ones of what it is divided by: of a minimum or a
    maximum the better operand does, and a choice between two is right however it is made. *)
Definition lower_than (f g : I.F.type) := le (exactly f) (exactly g).
Definition from_zero i := I.meet (I.upper_extent I.zero) i.
Lemma from_zero_h i x : 0 <= x -> encloses i x -> encloses (from_zero i) x.
Proof.
  intros P H. apply I.meet_correct; auto. apply (I.upper_extent_correct I.zero x 0); auto. apply zero_h.
Qed.
Definition below i j := from_zero (I.lower_extent
  (if (negb (I.upper_bounded j) || lower_than (I.upper i) (I.upper j))%bool then i else j)).
Lemma below_h i j x y : 0 <= x -> 0 <= y -> encloses i x -> encloses j y -> encloses (below i j) (Rmin x y).
Proof.
  intros Px Py H1 H2. apply from_zero_h; [apply Rmin_glb; auto|].
  destruct (_ || _)%bool; eapply I.lower_extent_correct; eauto; [apply Rmin_l|apply Rmin_r].
Qed.
Definition above i j := I.upper_extent
  (if (negb (I.lower_bounded i) || lower_than (I.lower i) (I.lower j))%bool then j else i).
Lemma above_h i j x y : encloses i x -> encloses j y -> encloses (above i j) (Rmax x y).
Proof.
  intros H1 H2. unfold above.
  destruct (_ || _)%bool; eapply I.upper_extent_correct; eauto; [apply Rmax_r|apply Rmax_l].
Qed.
(** Both ends of a maximum. *)
Definition larger i j := I.meet (I.join i j) (above i j).
Lemma larger_h i j x y : encloses i x -> encloses j y -> encloses (larger i j) (Rmax x y).
Proof.
  intros H1 H2. apply I.meet_correct; [|apply above_h; auto]. apply I.join_correct. unfold Rmax.
  destruct (Rle_dec x y); auto.
Qed.

(** e^x, of an x that is far from 0, or may be, as something that takes no time to compute and to add up. *)
Definition far := of_Z 2000.
Definition expo_near i :=
  if lt i (I.neg far) then from_zero (I.lower_extent (expo (I.neg far)))
  else if lt far i then I.upper_extent (expo far)
  else if (lt (I.neg (mul (of_Z 2) far)) i && lt i (mul (of_Z 2) far))%bool then expo i else I.upper_extent I.zero.
Lemma expo_near_h i x : encloses i x -> encloses (expo_near i) (exp x).
Proof.
  intros H. assert (Fh : encloses far 2000) by apply of_Z_h. assert (Nh := neg_h _ _ Fh). assert (P := exp_pos x).
  unfold expo_near.
  destruct (lt i (I.neg far)) eqn:L;
    [|destruct (lt far i) eqn:L2; [|destruct (_ && _)%bool; [apply expo_h; auto|]]].
  - apply from_zero_h; [lra|]. apply (I.lower_extent_correct _ _ (exp (- (2000)))); [apply expo_h; auto|].
    apply exp_mono. assert (Q := lt_h _ _ _ _ L H Nh). lra.
  - apply (I.upper_extent_correct _ _ (exp 2000)); [apply expo_h; auto|].
    apply exp_mono. assert (Q := lt_h _ _ _ _ L2 Fh H). lra.
  - apply (I.upper_extent_correct _ _ 0); [apply zero_h|lra].
Qed.

(** e^x - 1 of a small x >= 0; e is e^x. *)
Definition expm1 i e :=
  from_zero (I.lower_extent (mul e (mul i (add (sub one (div i (of_Z 2))) (div (mul i i) (of_Z 6)))))).
Lemma expm1_h i e x : 0 <= x -> encloses i x -> encloses e (exp x) -> encloses (expm1 i e) (exp x - 1).
Proof.
  intros P H1 H2. assert (E := exp_ge1 x P). unfold expm1. apply from_zero_h; [lra|].
  apply (I.lower_extent_correct _ _ (exp x * (x * (1 - x / 2 + x * x / 6)))).
  - apply mul_h; auto. apply mul_h; auto. apply add_h.
    + apply sub_h; [apply one_h|]. apply div_h; [lra|auto|apply of_Z_h].
    + apply div_h; [lra|apply mul_h; auto|apply of_Z_h].
  - eapply Rle_trans; [apply expm1_above; auto|]. right. field.
Qed.

(** (1 + x)^n - 1, without the cancellation. *)
Fixpoint power_less_one_pos i (n : positive) :=
  match n with
  | xH => i
  | xO n => let p := power_less_one_pos i n in mul p (add (of_Z 2) p)
  | xI n => let p := power_less_one_pos i n in let p2 := mul p (add (of_Z 2) p) in add (mul p2 (add one i)) i
  end.
Lemma power_less_one_pos_h i x n : encloses i x -> encloses (power_less_one_pos i n) ((1 + x) ^ Pos.to_nat n - 1).
Proof.
  intros H. induction n as [n IH|n IH|]; simpl power_less_one_pos.
  - rewrite Pos2Nat.inj_xI. replace ((1 + x) ^ S (2 * Pos.to_nat n) - 1)
      with (((1 + x) ^ Pos.to_nat n - 1) * (2 + ((1 + x) ^ Pos.to_nat n - 1)) * (1 + x) + x)
      by (simpl pow; replace (Pos.to_nat n + (Pos.to_nat n + 0))%nat with (Pos.to_nat n + Pos.to_nat n)%nat by lia;
        rewrite pow_add; ring).
    repeat (apply add_h || apply mul_h || apply of_Z_h || apply one_h || auto).
  - rewrite Pos2Nat.inj_xO. replace ((1 + x) ^ (2 * Pos.to_nat n) - 1)
      with (((1 + x) ^ Pos.to_nat n - 1) * (2 + ((1 + x) ^ Pos.to_nat n - 1)))
      by (replace (2 * Pos.to_nat n)%nat with (Pos.to_nat n + Pos.to_nat n)%nat by lia; rewrite pow_add; ring).
    repeat (apply add_h || apply mul_h || apply of_Z_h || auto).
  - simpl. replace ((1 + x) * 1 - 1) with x by ring. auto.
Qed.
Definition power_less_one i (n : nat) :=
  match N.of_nat n with N0 => I.zero | Npos p => power_less_one_pos i p end.
Lemma power_less_one_h i x n : encloses i x -> encloses (power_less_one i n) ((1 + x) ^ n - 1).
Proof.
  intros H. unfold power_less_one. destruct (N.of_nat n) eqn:E.
  - replace n with 0%nat by lia. simpl. replace (1 - 1) with 0 by ring. apply zero_h.
  - replace n with (Pos.to_nat p) by lia. apply power_less_one_pos_h; auto.
Qed.
Definition power i n := add one (power_less_one (sub i one) n).
Lemma power_h i x n : encloses i x -> encloses (power i n) (x ^ n).
Proof.
  intros H. replace (x ^ n) with (1 + ((1 + (x - 1)) ^ n - 1)).
  - apply add_h; [apply one_h|]. apply power_less_one_h, sub_h; auto. apply one_h.
  - replace (1 + (x - 1)) with x by ring. ring.
Qed.

(** Sums over lists that belong to each other. *)
Section Lists.
Context {S T : Type}.
Variable belongs : S -> T -> Prop.
Definition total (f : S -> I.type) (l : list S) := fold_left (fun acc x => add acc (f x)) l I.zero.
Lemma total_h f g l m : Forall2 belongs l m -> (forall i x, belongs i x -> encloses (f i) (g x)) ->
  encloses (total f l) (Sum g m).
Proof.
  intros H F. unfold total.
  enough (Q : forall i x, encloses i x -> encloses (fold_left (fun acc y => add acc (f y)) l i) (x + Sum g m))
    by (replace (Sum g m) with (0 + Sum g m) by ring; apply Q, zero_h).
  induction H; simpl; intros i a Hi; [rewrite Rplus_0_r; auto|].
  rewrite <- Rplus_assoc. apply IHForall2. apply add_h; auto.
Qed.
Definition largest (f : S -> I.type) (l : list S) := fold_right (fun x acc => larger (f x) acc) I.zero l.
Lemma largest_h f g l m : Forall2 belongs l m -> (forall i x, belongs i x -> encloses (f i) (g x)) ->
  encloses (largest f l) (fold_right (fun j x => Rmax (g j) x) 0 m).
Proof. intros H F. induction H; simpl; [apply zero_h|]. apply larger_h; auto. Qed.
End Lists.
End Operations.
End Intervals.
