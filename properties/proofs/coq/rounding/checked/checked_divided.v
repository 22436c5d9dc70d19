(** Rows of kernels that may divide each weight by the sum of the weights before it meets its value: where
    [check_divided] says true, none that does, and none that divides the sum of the values, errs by more than was
    allowed. *)
From Coq Require Import Reals List Lra Lia Psatz ZArith Bool.
From Interval Require Import Interval.Interval.
From Attest.Rounding Require Import basics merge bound documented divided_first intervals evaluation checked_rows.
Import ListNotations.
Open Scope R_scope.

Module CheckedDivided (I : IntervalOps).
Module Rows := CheckedRows I.
Import Rows Rows.E Rows.E.V.

(** How such a kernel comes to its answer: scores as any other's, and nothing is rescaled. *)
Definition answers_divided (c : arithmetic) (x : row) (oh : R) := exists sh t o,
  Rabs t <= th_tau c /\ (forall j, In j (J x) -> scored c x t j (sh j)) /\
  divides_first _ sh value (arith_of c x) (a_divisions c) (J x) o /\
  near (number (a_out c)) (number (a_lam_out c)) o oh.

Section Check.
Variable prec : I.precision.
Variable c : arithmetic.
Variable x : row.
Local Notation add := (add prec).
Local Notation mul := (mul prec).
Local Notation one := (one prec).
Local Notation two := (of_Z prec 2).
(** Weights are stored as they are, or where nothing is seen of what a division loses by underflow. *)
Definition narrow : bool :=
  let w := exactly (a_weight c) in let lost := exactly (a_lam_weight c) in
  (not_below_zero (I.neg w) && not_below_zero (I.neg lost)) ||
  le prec (mul (exactly (a_lam_sum c)) (add two (mul two w))) (mul w lost).
Definition claims_divided (ks : list scored_key) : claims :=
  let by_division := power_less_one prec (exactly (a_sum c)) (a_divisions c) in
  let w := exactly (a_weight c) in let all := claims_of prec c true ks in
  Claims (i_u all) (i_lam all) (i_thE all) (i_xl all) (i_xr all) (i_T all) (i_gap all) I.zero I.zero
    (i_eps all) (i_lame all)
    (add (add by_division w) (mul by_division w))
    (add (exactly (a_lam_weight c)) (mul (add one w) (exactly (a_lam_sum c)))) (i_upd all) (i_lampd all) None true.
Definition check_first : bool :=
  sane_row prec c x && natural c && Nat.eqb (a_rescalings c) 0 && Nat.leb 1 (a_divisions c) &&
  Nat.leb (a_divisions c) 3 && narrow &&
  (let ks := scored_keys prec c x in let keys := without_own ks in
   I.upper_bounded (scores_of prec keys) &&
   allows prec c x (claims_divided ks) keys (reference_of keys) (top_of prec keys)
     (2 * length (r_keys x) - 1) (a_divisions c) (exactly (a_out c)) (exactly (a_lam_out c))).
Definition check_divided : bool := check_first && check prec c x.
End Check.

Lemma narrow_h prec c x : narrow prec c = true -> sane (arith_of c x) ->
  (up (arith_of c x) = 0 /\ lamp (arith_of c x) = 0) \/
  lam (arith_of c x) * (2 + 2 * up (arith_of c x)) <= up (arith_of c x) * lamp (arith_of c x).
Proof.
  unfold narrow. rewrite orb_true_iff, andb_true_iff. intros [[H1 H2]|H] OK.
  - left. assert (Z1 := not_below_zero_h _ _ H1 (neg_h _ _ (exactly_h _))).
    assert (Z2 := not_below_zero_h _ _ H2 (neg_h _ _ (exactly_h _))).
    assert (P1 := s_up _ OK). assert (P2 := s_lamp _ OK). simpl in *. lra.
  - right. apply (le_h prec _ _ _ _ H); simpl.
    + apply mul_h; [apply exactly_h|]. apply add_h; [apply of_Z_h|]. apply mul_h; [apply of_Z_h|apply exactly_h].
    + apply mul_h; apply exactly_h.
Qed.
Lemma claims_divided_h prec c x :
  claims_h (as_divided (arith_of c x) (a_divisions c)) (claims_divided prec c (scored_keys prec c x)).
Proof.
  destruct (claims_of_h prec c x true). assert (W := exactly_h (a_weight c)).
  assert (D := power_less_one_h prec _ _ (a_divisions c) (exactly_h (a_sum c))).
  constructor; auto; unfold claims_divided, as_divided; cbn [i_up i_lamp up lamp u lam arith_of arith_as].
  - set (q := (1 + number (a_sum c)) ^ a_divisions c) in *.
    replace (q * (1 + number (a_weight c)) - 1) with (q - 1 + number (a_weight c) + (q - 1) * number (a_weight c))
      by ring.
    repeat (apply add_h || apply mul_h || assumption).
  - apply add_h; [apply exactly_h|]. apply mul_h; [|apply exactly_h]. apply add_h; [apply one_h|apply exactly_h].
Qed.

(** No kernel of either class errs by more than was allowed of the row. *)
Lemma checked_divided_row prec c x oh : check_divided prec c x = true -> answers c x oh \/ answers_divided c x oh ->
  Rabs (oh - exact _ (s_of x) value (J x)) <= number (r_allowed x).
Proof.
  unfold check_divided, check_first. rewrite !andb_true_iff, Nat.eqb_eq, !Nat.leb_le.
  intros (((((((Hr & _) & R0) & D1) & D3) & N) & Htop & Ha) & Last) [Oh|(sh & t & o & Ht & Hsc & Ho & Hoh)];
    [apply (checked_row prec c); auto|].
  destruct (sane_row_h _ _ _ Hr) as (Hs & Tau & _ & Ln & NJ). destruct (sane_are prec c x Hs true) as [P OK].
  assert (KH := keys_within prec c x Hs Tau Htop). set (d := a_divisions c) in *.
  set (B := as_divided (arith_of c x) d).
  set (top := top_of prec (keys_of prec c x)) in *.
  assert (Key : Forall2 (key_h _ (s_of x) value (a_score c x) B (number top)) (keys_of prec c x) (J x)).
  { apply (Forall2_impl _ _ _ _ KH). intros k j (H1 & H2 & H3 & H4 & H5). repeat split; auto. simpl. lra. }
  assert (Top : forall j, In j (J x) -> s_of x j + a_score c x j <= number top).
  { intros j Hj. destruct (Forall2_right _ _ _ j KH Hj) as (k & _ & _ & _ & _ & H). exact H. }
  destruct (allows_h prec c x B _ (a_score c x) _ _ _ _ _ (number (a_out c)) (number (a_lam_out c)) _ _ Ha
    (as_divided_sane (arith_of c x) OK d) NJ (claims_divided_h prec c x) Key (exactly_h _) (exactly_h _)) as [Low Le].
  rewrite R0 in *. eapply Rle_trans; [|apply Le]. change (number (a_weight c)) with (up (arith_of c x)) in *.
  apply (divided_first_documented _ (s_of x) sh value (arith_of c x) OK eq_refl d (conj D1 D3) (narrow_h prec c x N OK)
    (a_score c x) (J x) (number top) _
    ltac:(unfold J; rewrite combine_length, seq_length, Nat.min_id; apply le_n) NJ
    (t * number (r_centre x)) (number (a_out c)) (number (a_lam_out c)) o oh); auto.
  - apply (scored_within prec c x Hs Tau Ln); auto.
  - apply P.
Qed.
End CheckedDivided.
