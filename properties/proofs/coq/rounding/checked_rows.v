(** A row of a problem, what a kernel claims, and the bound that was allowed: where [check] says true, no kernel of the
    class errs by more than was allowed. *)
From Coq Require Import Reals List Lra Lia Psatz Permutation ZArith Bool.
From Interval Require Import Interval.Interval.
From Attest.Rounding Require Import basics scores merge bound documented divided_first intervals evaluation.
Import ListNotations.
Open Scope R_scope.

Lemma Forall2_combine {S T} (P : S -> T -> Prop) l m b : Forall2 P l m ->
  Forall2 (fun i (j : nat * T) => P i (snd j)) l (combine (seq b (length m)) m).
Proof. intros H. revert b. induction H; simpl; constructor; auto. Qed.
Lemma Forall2_map_same {S T} (P : S -> T -> Prop) (f : T -> S) m : (forall x, In x m -> P (f x) x) ->
  Forall2 P (map f m) m.
Proof. induction m; simpl; intros H; constructor; auto. Qed.

Lemma Forall2_impl {S T} (P P' : S -> T -> Prop) l m : Forall2 P l m -> (forall i x, P i x -> P' i x) -> Forall2 P' l m.
Proof. intros H F. induction H; constructor; auto. Qed.
Lemma Forall2_right {S T} (P : S -> T -> Prop) l m x : Forall2 P l m -> In x m -> exists i, P i x.
Proof. intros H. induction H; simpl; [tauto|]. intros [<-|I]; eauto. Qed.

Module CheckedRows (I : IntervalOps).
Module E := Evaluation I.
Import E E.V.
Local Notation F := I.F.type.

(** The claims of a kernel, each an exact number. *)
Record arithmetic := Arithmetic {
  a_u : F; a_lam : F;              (* products and sums of q.k *)
  a_tau : nat; a_tau_more : F;     (* roundings of the scale's constant, and what else it is wrong by *)
  a_scaled : F; a_lam_scaled : F;  (* the scaled product *)
  a_biased : F; a_lam_biased : F;  (* the sum with the bias *)
  a_exponent : nat;                (* roundings of an exponent *)
  a_lam_exponent : F; a_lazy : F; a_eps : F; a_lam_exp : F;
  a_weight : F; a_lam_weight : F; a_in_denominator : bool;
  a_sum : F; a_lam_sum : F; a_rescalings : nat;
  a_divisions : nat; a_out : F; a_lam_out : F }.
(** A visible key: itself, its bias, its value in one column. *)
Definition visible := (list F * F * F)%type.
(** What the problem has, what was allowed, and a number that may be any: what the scale's error is relative to. *)
Record row := Row { r_tau : F; r_q : list F; r_keys : list visible; r_allowed : F; r_centre : F }.

Section Meaning.
Variable c : arithmetic.
Variable x : row.
Local Notation K := (nat * visible)%type (only parsing).
Local Notation "# f" := (number f) (at level 0).
Definition u_s := #(a_u c).
Definition th_tau := (1 + u_s) ^ a_tau c * (1 + #(a_tau_more c)) - 1.
Definition products (j : K) := map (fun p => #(fst p) * #(snd p)) (combine (r_q x) (fst (fst (snd j)))).
Definition bias (j : K) := #(snd (fst (snd j))).
Definition value (j : K) := #(snd (snd j)).
Definition dot (j : K) := Sum (fun p => p) (products j).
Definition t_of (j : K) := #(r_tau x) * dot j.
Definition s_of (j : K) := t_of j + bias j.
Definition dk := length (r_q x).
Definition dot_error_of (j : K) :=
  ((1 + u_s) ^ dk - 1) * Sum Rabs (products j) + (1 + u_s) ^ dk * (2 * INR dk * #(a_lam c)).
Definition a_of (j : K) :=
  (1 + #(a_biased c)) *
    ((1 + th_tau) * ((1 + #(a_scaled c)) * (#(r_tau x) * dot_error_of j) + #(a_scaled c) * Rabs (t_of j)) +
     #(a_lam_scaled c)) + #(a_biased c) * (Rabs (s_of j) + th_tau * Rabs (t_of j)) + #(a_lam_biased c) +
  th_tau * Rabs (t_of j - #(r_centre x)).
Definition arith_of : arith := {| u := #(a_sum c); lam := #(a_lam_sum c); thE := (1 + u_s) ^ a_exponent c - 1;
  xl := #(a_lam_exponent c); xr := #(a_lam_exponent c); T := #(a_lazy c); gap := 0;
  eps := #(a_eps c); lame := #(a_lam_exp c);
  up := #(a_weight c); lamp := #(a_lam_weight c);
  upd := if a_in_denominator c then #(a_weight c) else 0; lampd := if a_in_denominator c then #(a_lam_weight c) else 0;
  nearest := true |}.
Definition J : list K := combine (seq 0 (length (r_keys x))) (r_keys x).
(** Operations on a sum that may underflow. *)
Definition operations := (2 * length (r_keys x) + 2 * a_rescalings c)%nat.
Definition Uf := (1 + #(a_sum c)) ^ a_divisions c * (1 + #(a_out c)) - 1.
Definition lamf :=
  INR (a_divisions c) * #(a_lam_sum c) * (1 + #(a_sum c)) ^ a_divisions c * (1 + #(a_out c)) + #(a_lam_out c).

(** How a kernel comes to its score of a key, with a scale that is wrong by the factor 1 + d for all keys. *)
Definition scored (d : R) (j : K) (sh : R) := exists xh th k ops,
  summed u_s #(a_lam c) (products j) xh k ops /\
  near #(a_scaled c) #(a_lam_scaled c) (#(r_tau x) * (1 + d) * xh) th /\
  near #(a_biased c) #(a_lam_biased c) (th + bias j) sh.
(** How it comes to its answer. *)
Definition answers (oh : R) := exists sh d tl to_ m l o kl rl cl ko ro co quotient,
  Rabs d <= th_tau /\ (forall j, In j J -> scored d j (sh j)) /\
  Permutation (map fst to_) J /\ Permutation tl to_ /\
  sums K sh arith_of (bound.one K) (w_l arith_of) (lampd arith_of) tl m l kl rl cl /\
  (rl <= a_rescalings c)%nat /\ (cl <= operations)%nat /\
  sums K sh arith_of value (w_o arith_of) ((1 + u arith_of) * lamp arith_of) to_ m o ko ro co /\
  (ro <= a_rescalings c)%nat /\ (co <= operations)%nat /\
  (exists i, In i J /\ m <= sh i) /\
  rounded_times #(a_sum c) #(a_lam_sum c) (a_divisions c) (o / l) quotient /\
  near #(a_out c) #(a_lam_out c) quotient oh.
End Meaning.

Section Check.
Variable prec : I.precision.
Variable c : arithmetic.
Variable x : row.
Local Notation add := (add prec).
Local Notation sub := (sub prec).
Local Notation mul := (mul prec).
Local Notation one := (one prec).
Definition i_scale_error :=
  sub (mul (add one (power_less_one prec (exactly (a_u c)) (a_tau c))) (add one (exactly (a_tau_more c)))) one.

(** The score of a key and its error; gs and low are of the dot product. *)
Definition key_of (th gs low : I.type) (v : visible) : key :=
  let ps := map (fun p => mul (exactly (fst p)) (exactly (snd p))) (combine (r_q x) (fst (fst v))) in
  let tau := exactly (r_tau x) in
  let t := mul tau (total prec (fun p => p) ps) in
  let s := add t (exactly (snd (fst v))) in
  let e1 := add (mul gs (total prec I.abs ps)) low in
  let scaled := exactly (a_scaled c) in let biased := exactly (a_biased c) in
  let at_ := I.abs t in
  let scaled_error := add (mul (add one th) (add (mul (add one scaled) (mul tau e1)) (mul scaled at_)))
    (exactly (a_lam_scaled c)) in
  let a := add (add (add (mul (add one biased) scaled_error) (mul biased (add (I.abs s) (mul th at_))))
      (exactly (a_lam_biased c)))
    (mul th (I.abs (sub t (exactly (r_centre x))))) in
  Key s a (exactly (snd v)).
Definition claims_of : claims :=
  let u := exactly (a_u c) in let no := I.zero in
  Claims (exactly (a_sum c)) (exactly (a_lam_sum c)) (power_less_one prec u (a_exponent c)) (exactly (a_lam_exponent c))
    (exactly (a_lam_exponent c)) (exactly (a_lazy c)) no (exactly (a_eps c)) (exactly (a_lam_exp c))
    (exactly (a_weight c)) (exactly (a_lam_weight c)) (if a_in_denominator c then exactly (a_weight c) else no)
    (if a_in_denominator c then exactly (a_lam_weight c) else no).
Definition not_negative f := not_below_zero (exactly f).
Definition sane_claims :=
  forallb not_negative [a_u c; a_lam c; a_tau_more c; a_scaled c; a_lam_scaled c; a_biased c; a_lam_biased c;
    a_lam_exponent c; a_lazy c; a_eps c; a_lam_exp c; a_weight c; a_lam_weight c; a_sum c; a_lam_sum c; a_out c;
    a_lam_out c] &&
  lt prec (exactly (a_eps c)) one && le prec (exactly (a_sum c)) one && le prec (exactly (a_weight c)) one &&
  le prec (power_less_one prec (exactly (a_u c)) (a_exponent c)) one.
Definition i_Uf :=
  sub (mul (add one (power_less_one prec (exactly (a_sum c)) (a_divisions c))) (add one (exactly (a_out c)))) one.
Definition i_lamf :=
  add (mul (mul (mul (of_Z prec (Z.of_nat (a_divisions c))) (exactly (a_lam_sum c)))
    (add one (power_less_one prec (exactly (a_sum c)) (a_divisions c)))) (add one (exactly (a_out c))))
    (exactly (a_lam_out c)).
Definition keys_of :=
  let th := i_scale_error in
  let gs := power_less_one prec (exactly (a_u c)) (length (r_q x)) in
  let low := mul (add one gs) (mul (mul (of_Z prec 2) (of_Z prec (Z.of_nat (length (r_q x))))) (exactly (a_lam c))) in
  map (key_of th gs low) (r_keys x).
(** No score is larger, and no score with its error. *)
Definition scores_of (keys : list key) : I.type :=
  match map (fun k => add (k_s k) (k_a k)) keys with [] => I.zero | first :: others => hull first others end.
Definition top_of (keys : list key) : F := I.upper (scores_of keys).
(** What the weights are relative to: as near the largest score as can be told. *)
Definition reference_of (keys : list key) : F :=
  match map k_s keys with [] => I.upper I.zero | first :: others => I.upper (hull first others) end.
Definition sane_row : bool :=
  sane_claims && not_negative (r_tau x) &&
  match r_keys x with [] => false | _ => true end &&
  forallb (fun v : visible => Nat.eqb (length (fst (fst v))) (length (r_q x))) (r_keys x).
(** Was as much allowed as kernels of such claims may err by? d, Uf and lamf: how weights are divided before they meet
    values, and what is done to a sum afterwards. *)
Definition allows (of_sums : claims) (ops d : nat) (Uf lamf : I.type) : bool :=
  let keys := keys_of in
  let top := exactly (top_of keys) in
  I.upper_bounded (scores_of keys) &&
  (let t := tolerance_of prec of_sums (a_rescalings c) ops d (exactly (a_weight c)) (exactly (reference_of keys)) top
     keys Uf lamf in
   fst t && le prec (snd t) (exactly (r_allowed x))).
Definition check : bool := sane_row && allows claims_of (operations c x) 0 i_Uf i_lamf.
End Check.

Section Proof.
Variable prec : I.precision.
Variable c : arithmetic.
Variable x : row.
Local Notation "# f" := (number f) (at level 0).
Hypothesis Sane : sane_claims prec c = true.
Hypothesis Tau : not_negative (r_tau x) = true.
Hypothesis Some_key : r_keys x <> [].
Hypothesis Lengths : forall v, In v (r_keys x) -> length (fst (fst v)) = length (r_q x).
Local Notation A := (arith_of c).
Local Notation J := (J x).

Ltac arith := repeat (assumption || apply exactly_h || apply add_h || apply sub_h || apply mul_h || apply abs_h ||
  apply of_Z_h || apply one_h || apply of_nat_h || apply zero_h).

Lemma not_negative_h f : not_negative f = true -> 0 <= #f.
Proof. intros H. apply (not_below_zero_h _ _ H), exactly_h. Qed.
Record sane_h : Prop := {
  p_u : 0 <= #(a_u c); p_lam : 0 <= #(a_lam c); p_more : 0 <= #(a_tau_more c); p_scaled : 0 <= #(a_scaled c);
  p_biased : 0 <= #(a_biased c); p_sum : 0 <= #(a_sum c); p_lam_sum : 0 <= #(a_lam_sum c); p_out : 0 <= #(a_out c);
  p_lam_scaled : 0 <= #(a_lam_scaled c); p_lam_biased : 0 <= #(a_lam_biased c) }.
Lemma sane_are : sane_h /\ sane A.
Proof.
  unfold sane_claims in Sane. rewrite !andb_true_iff, forallb_forall in Sane.
  destruct Sane as ((((N & Le) & Ls) & Lw) & Lt).
  assert (Q : forall f, In f [a_u c; a_lam c; a_tau_more c; a_scaled c; a_lam_scaled c; a_biased c; a_lam_biased c;
    a_lam_exponent c; a_lazy c; a_eps c; a_lam_exp c; a_weight c; a_lam_weight c; a_sum c; a_lam_sum c; a_out c;
    a_lam_out c] -> 0 <= #f) by (intros; apply not_negative_h; auto).
  assert (Le' := lt_h prec _ _ _ _ Le (exactly_h _) (one_h prec)).
  assert (Ls' := le_h prec _ _ _ _ Ls (exactly_h _) (one_h prec)).
  assert (Lw' := le_h prec _ _ _ _ Lw (exactly_h _) (one_h prec)).
  assert (Lt' := le_h prec _ _ _ _ Lt (power_less_one_h prec _ _ (a_exponent c) (exactly_h (a_u c))) (one_h prec)).
  assert (U := Q (a_u c) ltac:(simpl; tauto)).
  assert (E : 1 <= (1 + #(a_u c)) ^ a_exponent c) by (apply pow_R1_Rle; lra).
  split; constructor; unfold arith_of; simpl; try (apply Q; simpl; tauto); try lra;
    try (unfold u_s; lra); try (split; [apply Q; simpl; tauto|auto]); destruct (a_in_denominator c);
    try lra; apply Q; simpl; tauto.
Qed.
Lemma th_tau_pos : 0 <= th_tau c.
Proof.
  destruct sane_are as [[] _]. unfold th_tau, u_s.
  assert (E : 1 <= (1 + #(a_u c)) ^ a_tau c) by (apply pow_R1_Rle; lra).
  assert (1 <= (1 + #(a_u c)) ^ a_tau c * (1 + #(a_tau_more c))) by (apply times_ge1; lra). lra.
Qed.
Lemma th_tau_h : encloses (i_scale_error prec c) (th_tau c).
Proof.
  unfold i_scale_error, th_tau, u_s. apply sub_h; [|apply one_h]. apply mul_h; [|arith].
  replace ((1 + #(a_u c)) ^ a_tau c) with (1 + ((1 + #(a_u c)) ^ a_tau c - 1)) by ring.
  apply add_h; [apply one_h|]. apply power_less_one_h, exactly_h.
Qed.
Lemma J_in j : In j J -> In (snd j) (r_keys x).
Proof. destruct j as [i v]. intros H. apply in_combine_r in H. auto. Qed.
Lemma J_some : J <> [].
Proof. unfold CheckedRows.J. destruct (r_keys x); simpl; congruence. Qed.
Lemma products_length j : In j J -> length (products x j) = dk x.
Proof.
  intros H. apply J_in, Lengths in H. unfold products, dk. rewrite map_length, combine_length, H. apply Nat.min_id.
Qed.
Lemma dot_error_pos j : 0 <= dot_error_of c x j.
Proof.
  destruct sane_are as [[] _]. unfold dot_error_of, u_s.
  assert (E : 1 <= (1 + #(a_u c)) ^ dk x) by (apply pow_R1_Rle; lra). assert (I := pos_INR (dk x)).
  assert (0 <= Sum Rabs (products x j)) by (apply Sum_nonneg; intros; apply Rabs_pos).
  apply Rplus_le_le_0_compat; repeat apply Rmult_le_pos; lra.
Qed.
Lemma a_pos j : 0 <= a_of c x j.
Proof.
  destruct sane_are as [[] _]. assert (T := th_tau_pos). assert (D := dot_error_pos j).
  assert (Tp := not_negative_h _ Tau). unfold a_of. assert (A1 := Rabs_pos (t_of x j)).
  assert (A2 := Rabs_pos (s_of x j)). assert (A3 := Rabs_pos (t_of x j - #(r_centre x))).
  repeat apply Rplus_le_le_0_compat; repeat apply Rmult_le_pos; try lra;
    repeat apply Rplus_le_le_0_compat; repeat apply Rmult_le_pos; try lra;
    repeat apply Rplus_le_le_0_compat; repeat apply Rmult_le_pos; try lra.
Qed.
Lemma key_of_h th gs low v i : encloses th (th_tau c) -> encloses gs ((1 + u_s c) ^ dk x - 1) ->
  encloses low ((1 + u_s c) ^ dk x * (2 * INR (dk x) * #(a_lam c))) ->
  let k := key_of prec c x th gs low v in
  encloses (k_s k) (s_of x (i, v)) /\ encloses (k_a k) (a_of c x (i, v)) /\ encloses (k_v k) (value (i, v)).
Proof.
  intros Hth Hgs Hlow. unfold key_of. simpl k_s. simpl k_a. simpl k_v.
  set (ps := map _ _).
  assert (P : Forall2 encloses ps (products x (i, v))).
  { unfold ps, products. simpl. generalize (combine (r_q x) (fst (fst v))). intros l.
    induction l; simpl; constructor; auto. arith. }
  assert (D : encloses (total prec (fun p => p) ps) (dot x (i, v))) by (apply (total_h prec encloses); auto).
  assert (X : encloses (total prec I.abs ps) (Sum Rabs (products x (i, v)))).
  { apply (total_h prec encloses); auto. intros. apply abs_h. auto. }
  assert (Tt : encloses (mul prec (exactly (r_tau x)) (total prec (fun p => p) ps)) (t_of x (i, v)))
    by (unfold t_of; arith).
  set (it := mul prec (exactly (r_tau x)) _) in *.
  assert (Ss : encloses (add prec it (exactly (snd (fst v)))) (s_of x (i, v))) by (unfold s_of, bias; simpl; arith).
  set (is_ := add prec it _) in *.
  assert (Ee : encloses (add prec (mul prec gs (total prec I.abs ps)) low) (dot_error_of c x (i, v)))
    by (unfold dot_error_of; arith).
  set (ie := add prec (mul prec gs _) low) in *.
  repeat split; auto; [|apply exactly_h]. unfold a_of. arith.
Qed.
Lemma keys_of_h : Forall2
  (fun k j => encloses (k_s k) (s_of x j) /\ encloses (k_a k) (a_of c x j) /\ encloses (k_v k) (value j))
  (keys_of prec c x) J.
Proof.
  unfold CheckedRows.J. set (l := keys_of prec c x).
  enough (Q : Forall2 (fun k v => forall i, encloses (k_s k) (s_of x (i, v)) /\ encloses (k_a k) (a_of c x (i, v)) /\
    encloses (k_v k) (value (i, v))) l (r_keys x)).
  { apply (Forall2_combine _ _ _ 0) in Q. revert Q. generalize (combine (seq 0 (length (r_keys x))) (r_keys x)).
    intros m Q. induction Q; constructor; auto. destruct y. apply H. }
  unfold l, keys_of. apply Forall2_map_same. intros v Hv i.
  assert (G : encloses (power_less_one prec (exactly (a_u c)) (length (r_q x))) ((1 + u_s c) ^ dk x - 1))
    by (apply power_less_one_h, exactly_h).
  apply key_of_h; auto; [apply th_tau_h|]. apply mul_h; [|arith].
  replace ((1 + u_s c) ^ dk x) with (1 + ((1 + u_s c) ^ dk x - 1)) by ring. apply add_h; auto. apply one_h.
Qed.
Lemma claims_of_h : claims_h A (claims_of prec c).
Proof.
  constructor; unfold claims_of, arith_of; cbn [i_u i_lam i_thE i_xl i_xr i_T i_gap i_eps i_lame i_up i_lamp i_upd
    i_lampd u lam thE xl xr T gap eps lame up lamp upd lampd]; try apply exactly_h; try apply zero_h;
    try (destruct (a_in_denominator c); [apply exactly_h|apply zero_h]).
  apply power_less_one_h, exactly_h.
Qed.
Lemma Uf_h : encloses (i_Uf prec c) (Uf c).
Proof.
  unfold i_Uf, Uf. apply sub_h; [|apply one_h]. apply mul_h; [|arith].
  replace ((1 + #(a_sum c)) ^ a_divisions c) with (1 + ((1 + #(a_sum c)) ^ a_divisions c - 1)) by ring.
  apply add_h; [apply one_h|]. apply power_less_one_h, exactly_h.
Qed.
Lemma lamf_h : encloses (i_lamf prec c) (lamf c).
Proof.
  unfold i_lamf, lamf. apply add_h; [|arith]. apply mul_h; [|arith]. apply mul_h; [arith|].
  replace ((1 + #(a_sum c)) ^ a_divisions c) with (1 + ((1 + #(a_sum c)) ^ a_divisions c - 1)) by ring.
  apply add_h; [apply one_h|]. apply power_less_one_h, exactly_h.
Qed.
(** How wrong a score is, but for what all scores share. *)
Lemma score_within sh d j : In j J -> Rabs d <= th_tau c -> scored c x d j (sh j) ->
  Rabs (sh j - (s_of x j + d * #(r_centre x))) <= a_of c x j.
Proof.
  intros Hj Hd (xh & th & k & ops & S1 & S2 & S3). destruct sane_are as [[] _].
  assert (Dt := dot_error _ _ p_u0 p_lam0 _ _ _ _ S1). rewrite (products_length j Hj) in Dt.
  assert (Sc := score_error #(r_tau x) d (th_tau c) #(a_scaled c) #(a_lam_scaled c) #(a_biased c) #(a_lam_biased c)
    (dot_error_of c x j) (dot x j) xh (bias j) (t_of x j) (s_of x j) th (sh j) (not_negative_h _ Tau) p_scaled0
    p_biased0 (dot_error_pos j) Hd Dt eq_refl eq_refl S2 S3).
  unfold a_of. set (B := _ + #(a_lam_biased c)) in *.
  replace (sh j - (s_of x j + d * #(r_centre x)))
    with ((sh j - (s_of x j + d * t_of x j)) + d * (t_of x j - #(r_centre x))) by ring.
  eapply Rle_trans; [apply Rabs_triang|]. rewrite (Rabs_mult d).
  assert (Rabs d * Rabs (t_of x j - #(r_centre x)) <= th_tau c * Rabs (t_of x j - #(r_centre x)))
    by (apply Rmult_le_compat_r; auto using Rabs_pos). lra.
Qed.
(** What the evaluator says of a row's keys, and what the class of scores. *)
Lemma scores_at_most k t e : I.upper_bounded (scores_of prec (keys_of prec c x)) = true -> In k (keys_of prec c x) ->
  encloses (k_s k) t -> encloses (k_a k) e -> t + e <= number (top_of prec (keys_of prec c x)).
Proof.
  intros B Hi Ht He. apply (upper_h _ _ B). unfold scores_of.
  assert (I1 : In (add prec (k_s k) (k_a k)) (map (fun k => add prec (k_s k) (k_a k)) (keys_of prec c x)))
    by (apply (in_map (fun k => add prec (k_s k) (k_a k))); auto).
  destruct (map _ _) as [|first others]; [contradiction|]. apply (hull_h others first _ _ I1). apply add_h; auto.
Qed.
Lemma keys_within : I.upper_bounded (scores_of prec (keys_of prec c x)) = true ->
  Forall2 (fun k j => encloses (k_s k) (s_of x j) /\ encloses (k_a k) (a_of c x j) /\ encloses (k_v k) (value j) /\
    0 <= a_of c x j /\ s_of x j + a_of c x j <= number (top_of prec (keys_of prec c x))) (keys_of prec c x) J.
Proof.
  intros B. assert (Top := fun k t e => scores_at_most k t e B). assert (KH := keys_of_h).
  revert Top. generalize (number (top_of prec (keys_of prec c x))). intros top Top. clear B.
  induction KH; constructor.
  - destruct H as (H1 & H2 & H3). repeat split; auto; [apply a_pos|]. apply (Top x0); simpl; auto.
  - apply IHKH. intros k t e Hk. apply Top. simpl. auto.
Qed.
Lemma Uf_pos : 0 <= Uf c.
Proof.
  destruct sane_are as [[] _]. unfold Uf.
  assert (E : 1 <= (1 + #(a_sum c)) ^ a_divisions c) by (apply pow_R1_Rle; lra).
  assert (1 <= (1 + #(a_sum c)) ^ a_divisions c * (1 + #(a_out c))) by (apply times_ge1; lra). lra.
Qed.
Lemma finish_near mean quotient oh : rounded_times #(a_sum c) #(a_lam_sum c) (a_divisions c) mean quotient ->
  near #(a_out c) #(a_lam_out c) quotient oh -> near (Uf c) (lamf c) mean oh.
Proof.
  intros Hq Hoh. destruct sane_are as [[] _].
  assert (Q := near_trans _ _ _ _ _ _ _ p_out0 (rounded_times_near _ _ _ _ _ p_sum0 p_lam_sum0 Hq) Hoh).
  eapply near_weaken; [apply Q| |]; unfold Uf, lamf; right; ring.
Qed.
End Proof.

(** What [allows] says of the tolerance of any such arithmetic. *)
Lemma allows_h prec c x B of_sums ops d Uf lamf iUf ilamf : sane_row prec c x = true ->
  allows prec c x of_sums ops d iUf ilamf = true ->
  sane B -> nearest B = true -> claims_h B of_sums -> encloses iUf Uf -> encloses ilamf lamf ->
  sane_h c /\ sane (arith_of c) /\ J x <> [] /\
  (forall sh t j, In j (J x) -> Rabs t <= th_tau c -> scored c x t j (sh j) ->
    Rabs (sh j - (s_of x j + t * number (r_centre x))) <= a_of c x j) /\
  exists Mp, (forall j, In j (J x) -> s_of x j + a_of c x j <= Mp) /\
    0 < low_d _ (s_of x) B (a_of c x) (J x) Mp (a_rescalings c) ops /\
    documented_of _ (s_of x) value B (a_of c x) (J x) Mp (a_rescalings c) ops d (number (a_weight c)) Uf lamf <=
      number (r_allowed x).
Proof.
  unfold sane_row, allows. rewrite !andb_true_iff, !forallb_forall. intros (((Hs & Ht) & Hk) & Hl) (Htop & Hb & Hle)
    OB RN HC HU Hlam.
  assert (Nk : r_keys x <> []) by (destruct (r_keys x); congruence).
  assert (Ln : forall v, In v (r_keys x) -> length (fst (fst v)) = length (r_q x)).
  { intros v Hv. apply Nat.eqb_eq, (Hl v Hv). }
  destruct (sane_are prec c Hs) as [P OK]. assert (NJ := J_some x Nk Ln).
  assert (KH := keys_within prec c x Hs Ht Htop).
  set (top := top_of prec (keys_of prec c x)) in *. set (reference := reference_of (keys_of prec c x)) in *.
  clearbody top.
  assert (Key : Forall2 (key_h _ (s_of x) value (a_of c x) B (number top)) (keys_of prec c x) (J x)).
  { assert (G0 := s_gap B OB). apply (Forall2_impl _ _ _ _ KH). intros k j (H1 & H2 & H3 & H4 & H5).
    repeat split; auto. lra. }
  destruct (tolerance_enclosed prec _ (s_of x) value (a_of c x) B OB (J x) NJ (number top) (number reference)
    (a_rescalings c) ops d (number (a_weight c)) of_sums (exactly reference) (exactly top) (exactly (a_weight c))
    (exactly_h _) (exactly_h _) (exactly_h _) HC (keys_of prec c x) Key Uf lamf iUf ilamf HU Hlam Hb) as [Low Tol].
  repeat (split; auto); [intros; apply (score_within prec); auto|].
  exists (number top). split; [|split; auto; apply (le_h prec _ _ _ _ Hle Tol (exactly_h _))].
  intros j Hj. destruct (Forall2_right _ _ _ j KH Hj) as (k & _ & _ & _ & _ & H). auto.
Qed.

(** No kernel of the class errs by more than was allowed of the row. *)
Lemma checked_row prec c x oh : check prec c x = true -> answers c x oh ->
  Rabs (oh - exact _ (s_of x) value (J x)) <= number (r_allowed x).
Proof.
  unfold check. rewrite andb_true_iff. intros (Hr & Ha) (sh & d & tl & to_ & m & l & o & kl & rl & cl & ko & ro & co &
    quotient & Hd & Hsc & M & Hp & HL & Hrl & Hcl & HO & Hro & Hco & (i & Ii & Hi) & Hq & Hoh).
  assert (Hs : sane_claims prec c = true) by (unfold sane_row in Hr; rewrite !andb_true_iff in Hr; tauto).
  destruct (allows_h prec c x (arith_of c) _ _ _ (Uf c) (lamf c) _ _ Hr Ha (proj2 (sane_are prec c Hs)) eq_refl
    (claims_of_h prec c) (Uf_h prec c) (lamf_h prec c)) as ([] & OK & NJ & Sc & Mp & Top & Low & Le).
  eapply Rle_trans; [|apply Le]. change (number (a_weight c)) with (up (arith_of c)). rewrite divided_last.
  apply (documented_bound _ (s_of x) sh value (arith_of c) OK eq_refl (a_of c x) (J x) Mp (a_rescalings c)
    (operations c x) tl to_ m l o (d * number (r_centre x)) (Uf c) (lamf c) oh kl rl cl ko ro co); auto.
  - exists i. split; auto. simpl. lra.
  - unfold Uf. assert (E : 1 <= (1 + number (a_sum c)) ^ a_divisions c) by (apply pow_R1_Rle; lra).
    assert (1 <= (1 + number (a_sum c)) ^ a_divisions c * (1 + number (a_out c))) by (apply times_ge1; lra). lra.
  - assert (Q := near_trans _ _ _ _ _ _ _ p_out0 (rounded_times_near _ _ _ _ _ p_sum0 p_lam_sum0 Hq) Hoh).
    eapply near_weaken; [apply Q| |]; unfold Uf, lamf; right; ring.
Qed.
End CheckedRows.
