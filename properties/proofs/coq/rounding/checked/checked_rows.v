(** A row of a problem, what a kernel claims, and the bound that was allowed: where [check] says true, no kernel of the
    class errs by more than was allowed. *)
From Coq Require Import Reals List Lra Lia Psatz Permutation ZArith Bool.
From Interval Require Import Interval.Interval.
From Attest.Rounding Require Import basics scores score_variants merge bound documented divided_first intervals
  evaluation.
Import ListNotations.
Open Scope R_scope.

Lemma Forall2_map_same {S T} (P : S -> T -> Prop) (f : T -> S) m : (forall x, In x m -> P (f x) x) ->
  Forall2 P (map f m) m.
Proof. induction m; simpl; intros H; constructor; auto. Qed.

Lemma Forall2_impl {S T} (P P' : S -> T -> Prop) l m : Forall2 P l m -> (forall i x, P i x -> P' i x) -> Forall2 P' l m.
Proof. intros H F. induction H; constructor; auto. Qed.
Lemma Forall2_right {S T} (P : S -> T -> Prop) l m x : Forall2 P l m -> In x m -> exists i, P i x.
Proof. intros H. induction H; simpl; [tauto|]. intros [<-|I]; eauto. Qed.
Lemma Forall2_in {S T} (P : S -> T -> Prop) l m : Forall2 P l m -> Forall2 (fun i j => P i j /\ In j m) l m.
Proof.
  intros H. enough (Q : forall all, (forall j, In j m -> In j all) -> Forall2 (fun i j => P i j /\ In j all) l m)
    by (apply Q; auto).
  induction H; intros all A; constructor; simpl in *; auto.
Qed.

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
  a_divisions : nat; a_out : F; a_lam_out : F;
  a_bias : F; a_lam_bias : F;      (* the bias by itself *)
  a_l2e : nat;                     (* roundings of log2(e), where exponents are of base 2 *)
  a_reference : F; a_lam_reference : F;  (* a reference that is multiplied by what the scores are, and rounded apart *)
  a_additions : option nat;        (* of a term of a sum, where so many are declared *)
  a_exact : bool }.                (* products of q and k are exact, whatever order they are summed in *)
(** A visible key: itself, its bias, its value in one column. *)
Definition visible := (list F * F * F)%type.
(** What the problem has, what was allowed, and numbers that may be any: what the errors of the scale and of log2(e) are
    relative to. Then which scores are exact but for the scale, key by key; none where the list ends. *)
Record row := Row { r_tau : F; r_q : list F; r_keys : list visible; r_allowed : F; r_centre : F; r_middle : F;
  r_exact : list bool }.

Section Meaning.
Variable c : arithmetic.
Variable x : row.
Local Notation K := (nat * visible)%type (only parsing).
Local Notation "# f" := (number f) (at level 0).
Definition u_s := #(a_u c).
Definition th_tau := (1 + u_s) ^ a_tau c * (1 + #(a_tau_more c)) - 1.
Definition th_l2e := (1 + u_s) ^ a_l2e c - 1.
Definition products (j : K) := map (fun p => #(fst p) * #(snd p)) (combine (r_q x) (fst (fst (snd j)))).
Definition bias (j : K) := #(snd (fst (snd j))).
Definition value (j : K) := #(snd (snd j)).
Definition dot (j : K) := Sum (fun p => p) (products j).
Definition t_of (j : K) := #(r_tau x) * dot j.
Definition s_of (j : K) := t_of j + bias j.
Definition dk := length (r_q x).
Definition dot_error_of (j : K) := if a_exact c then 0 else
  ((1 + u_s) ^ dk - 1) * Sum Rabs (products j) + (1 + u_s) ^ dk * (2 * INR dk * #(a_lam c)).
(** The score but for its constants, with them up to a shift, and with them. *)
Definition exact_key (j : K) := nth (fst j) (r_exact x) false.
Definition a_made (j : K) := if exact_key j then 0 else
  (1 + #(a_biased c)) *
    ((1 + th_tau) * ((1 + #(a_scaled c)) * (#(r_tau x) * dot_error_of j) + #(a_scaled c) * Rabs (t_of j)) +
     #(a_lam_scaled c) + (#(a_bias c) * Rabs (bias j) + #(a_lam_bias c))) +
  #(a_biased c) * (Rabs (s_of j) + th_tau * Rabs (t_of j)) + #(a_lam_biased c).
Definition a_with (centre middle : R) (j : K) :=
  a_made j * (1 + th_l2e) + th_tau * (1 + th_l2e) * Rabs (t_of j - centre) + th_l2e * Rabs (s_of j - middle).
Definition a_score := a_with #(r_centre x) #(r_middle x).
Definition a_whole := a_with 0 0.
Definition J : list K := combine (seq 0 (length (r_keys x))) (r_keys x).
(** A reference lies between a score that it is subtracted from, but for what it may lag, and the largest of all: its
    size where that score is the key's, and where it is the largest. *)
Definition most_score := most K J (fun j => s_of j + a_whole j).
Definition least_score :=
  match J with
  | [] => 0
  | j :: l => fold_right (fun i y => Rmax (s_of i - a_whole i) y) (s_of j - a_whole j) l
  end.
Definition size_of_reference (j : K) := Rmax (Rabs (s_of j) + a_whole j + #(a_lazy c)) most_score.
Definition size_of_last := Rmax most_score (#(a_lazy c) - least_score).
Definition by_reference (size : R) := #(a_reference c) * size + #(a_lam_reference c).
Definition own_of j := by_reference (size_of_reference j).
Definition a_of j := a_score j + own_of j.
Definition thE_of := (1 + u_s) ^ a_exponent c - 1.
Definition arith_as (to_nearest : bool) : arith := {| u := #(a_sum c); lam := #(a_lam_sum c); thE := thE_of;
  xl := #(a_lam_exponent c); xr := #(a_lam_exponent c); T := #(a_lazy c); gap := 0;
  off := (1 + thE_of) * most K J own_of; last := (1 + thE_of) * by_reference size_of_last;
  eps := #(a_eps c); lame := #(a_lam_exp c);
  up := #(a_weight c); lamp := #(a_lam_weight c);
  upd := if a_in_denominator c then #(a_weight c) else 0; lampd := if a_in_denominator c then #(a_lam_weight c) else 0;
  nearest := to_nearest; additions := a_additions c |}.
Definition arith_of := arith_as true.
(** Operations on a sum that may underflow. *)
Definition operations := (2 * length (r_keys x) + 2 * a_rescalings c)%nat.
Definition Uf := (1 + #(a_sum c)) ^ a_divisions c * (1 + #(a_out c)) - 1.
Definition lamf :=
  INR (a_divisions c) * #(a_lam_sum c) * (1 + #(a_sum c)) ^ a_divisions c * (1 + #(a_out c)) + #(a_lam_out c).

(** How a kernel comes to its score of a key, with a scale that is wrong by the factor 1 + d for all keys. Of exponents
    of base 2 it is what they are once log2(e) is taken out of them: all errors are relative, and what underflows only
    grows smaller. *)
Definition multiplied (j : K) (xh : R) :=
  if a_exact c then xh = dot j else exists k ops, summed u_s #(a_lam c) (products j) xh k ops.
Definition scored (d : R) (j : K) (sh : R) :=
  if exact_key j then sh = (1 + d) * t_of j + bias j else exists xh th bh,
  multiplied j xh /\
  near #(a_scaled c) #(a_lam_scaled c) (#(r_tau x) * (1 + d) * xh) th /\
  near #(a_bias c) #(a_lam_bias c) (bias j) bh /\
  near #(a_biased c) #(a_lam_biased c) (th + bh) sh.
(** What it subtracts from the score of each key: a reference that a score is no further above than it may lag, and that
    is no larger than all, once it is rounded. *)
Definition referred (sh reference rounded : K -> R) := forall j, In j J ->
  near #(a_reference c) #(a_lam_reference c) (reference j) (rounded j) /\
  sh j <= reference j + #(a_lazy c) /\ exists i, In i J /\ reference j <= sh i.
(** An exponent is the difference of the score and the rounded reference, up to the claims: what that is off beside a
    difference of the two. *)
Definition off_by (reference rounded : K -> R) (j : K) :=
  #(a_lam_exponent c) + (1 + thE_of) * Rabs (rounded j - reference j).
(** How it comes to its answer, with a log2(e) that is wrong by the factor 1 + dl. *)
Definition answers (oh : R) := exists made d dl reference rounded tl to_ m l o kl rl cl ko ro co quotient,
  Rabs d <= th_tau /\ Rabs dl <= th_l2e /\ (forall j, In j J -> scored d j (made j)) /\
  let sh := fun j => (1 + dl) * made j in referred sh reference rounded /\
  Permutation (map fst to_) J /\ Permutation tl to_ /\
  sums_by K sh arith_of (off_by reference rounded) (bound.one K) (w_l arith_of) (lampd arith_of) tl m l kl rl cl /\
  (rl <= a_rescalings c)%nat /\ (cl <= operations)%nat /\ shallow arith_of (a_rescalings c) kl /\
  sums_by K sh arith_of (off_by reference rounded) value (w_o arith_of) ((1 + u arith_of) * lamp arith_of)
    to_ m o ko ro co /\
  (ro <= a_rescalings c)%nat /\ (co <= operations)%nat /\ shallow arith_of (a_rescalings c) ko /\
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
Definition i_l2e := power_less_one prec (exactly (a_u c)) (a_l2e c).
Definition i_thE := power_less_one prec (exactly (a_u c)) (a_exponent c).

(** The score of a key and its errors; gs and low are of the dot product. *)
Record scored_key := Scored { k_score : I.type; k_up_to_shift : I.type; k_whole : I.type; k_value : I.type }.
Definition key_of (th l2e gs low : I.type) (j : nat * visible) : scored_key :=
  let v := snd j in
  let ps := map (fun p => mul (exactly (fst p)) (exactly (snd p))) (combine (r_q x) (fst (fst v))) in
  let tau := exactly (r_tau x) in
  let t := mul tau (total prec (fun p => p) ps) in
  let b := exactly (snd (fst v)) in
  let s := add t b in
  let e1 := if a_exact c then I.zero else add (mul gs (total prec I.abs ps)) low in
  let scaled := exactly (a_scaled c) in let biased := exactly (a_biased c) in
  let at_ := I.abs t in
  let scaled_error := add (mul (add one th) (add (mul (add one scaled) (mul tau e1)) (mul scaled at_)))
    (exactly (a_lam_scaled c)) in
  let converted := add (mul (exactly (a_bias c)) (I.abs b)) (exactly (a_lam_bias c)) in
  let made := if exact_key x j then I.zero else
    add (add (mul (add one biased) (add scaled_error converted)) (mul biased (add (I.abs s) (mul th at_))))
    (exactly (a_lam_biased c)) in
  let with_constants t s := add (add (mul made (add one l2e)) (mul (mul th (add one l2e)) (I.abs t)))
    (mul l2e (I.abs s)) in
  Scored s (with_constants (sub t (exactly (r_centre x))) (sub s (exactly (r_middle x)))) (with_constants t s)
    (exactly (snd v)).
Definition i_by_reference (size : I.type) := add (mul (exactly (a_reference c)) size) (exactly (a_lam_reference c)).
Definition i_own (most_score : I.type) k :=
  i_by_reference (larger prec (add (add (I.abs (k_score k)) (k_whole k)) (exactly (a_lazy c))) most_score).
Definition i_most_score (ks : list scored_key) := largest prec (fun k => add (k_score k) (k_whole k)) ks.
Definition i_least_score (ks : list scored_key) :=
  match ks with
  | [] => I.zero
  | k :: l => fold_right (fun k y => above prec (sub (k_score k) (k_whole k)) y) (sub (k_score k) (k_whole k)) l
  end.
Definition claims_of (to_nearest : bool) (ks : list scored_key) : claims :=
  let no := I.zero in let most_score := i_most_score ks in
  Claims (exactly (a_sum c)) (exactly (a_lam_sum c)) i_thE (exactly (a_lam_exponent c))
    (exactly (a_lam_exponent c)) (exactly (a_lazy c)) no (mul (add one i_thE) (largest prec (i_own most_score) ks))
    (mul (add one i_thE) (i_by_reference (larger prec most_score (sub (exactly (a_lazy c)) (i_least_score ks)))))
    (exactly (a_eps c)) (exactly (a_lam_exp c))
    (exactly (a_weight c)) (exactly (a_lam_weight c)) (if a_in_denominator c then exactly (a_weight c) else no)
    (if a_in_denominator c then exactly (a_lam_weight c) else no) (a_additions c) to_nearest.
Definition not_negative f := not_below_zero (exactly f).
Definition sane_claims :=
  forallb not_negative [a_u c; a_lam c; a_tau_more c; a_scaled c; a_lam_scaled c; a_biased c; a_lam_biased c;
    a_lam_exponent c; a_lazy c; a_eps c; a_lam_exp c; a_weight c; a_lam_weight c; a_sum c; a_lam_sum c; a_out c;
    a_lam_out c; a_bias c; a_lam_bias c; a_reference c; a_lam_reference c] &&
  lt prec (exactly (a_eps c)) one && le prec (exactly (a_sum c)) one && le prec (exactly (a_weight c)) one &&
  le prec i_thE one.
Definition i_Uf :=
  sub (mul (add one (power_less_one prec (exactly (a_sum c)) (a_divisions c))) (add one (exactly (a_out c)))) one.
Definition i_lamf :=
  add (mul (mul (mul (of_Z prec (Z.of_nat (a_divisions c))) (exactly (a_lam_sum c)))
    (add one (power_less_one prec (exactly (a_sum c)) (a_divisions c)))) (add one (exactly (a_out c))))
    (exactly (a_lam_out c)).
Definition scored_keys :=
  let th := i_scale_error in
  let gs := power_less_one prec (exactly (a_u c)) (length (r_q x)) in
  let low := mul (add one gs) (mul (mul (of_Z prec 2) (of_Z prec (Z.of_nat (length (r_q x))))) (exactly (a_lam c))) in
  map (key_of th i_l2e gs low) (J x).
Definition without_own (ks : list scored_key) : list key :=
  map (fun k => Key (k_score k) (k_up_to_shift k) (k_value k)) ks.
Definition keys_of : list key := without_own scored_keys.
(** With what is its own of each exponent. *)
Definition with_own (ks : list scored_key) : list key :=
  let most_score := i_most_score ks in
  map (fun k => Key (k_score k) (add (k_up_to_shift k) (i_own most_score k)) (k_value k)) ks.
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
(** Exponents are natural, with no scale folded into them, and sums in any order: what else there may be is judged by
    [check] alone, and not by its kin. *)
Definition natural : bool :=
  not_below_zero (I.neg (exactly (a_reference c))) && not_below_zero (I.neg (exactly (a_lam_reference c))) &&
  Nat.eqb (a_l2e c) 0 && match a_additions c with None => true | Some _ => false end.
(** Was as much allowed as kernels of such claims may err by? d, Uf and lamf: how weights are divided before they meet
    values, and what is done to a sum afterwards. *)
Definition allows (of_sums : claims) (keys : list key) (reference top : F) (ops d : nat) (Uf lamf : I.type) : bool :=
  let t := tolerance_of prec of_sums (a_rescalings c) ops d (exactly (a_weight c)) (exactly reference) (exactly top)
     keys Uf lamf in
  fst t && le prec (snd t) (exactly (r_allowed x)).
Definition enough (to_nearest : bool) (ks : list scored_key) (keys : list key) : bool :=
  allows (claims_of to_nearest ks) (with_own ks) (reference_of keys) (top_of keys) (operations c x) 0 i_Uf i_lamf.
(** Sums to nearest are sums of any kind as well, and the bound of these may be the smaller one: it counts once what
    underflows. *)
Definition check : bool :=
  sane_row &&
  (let ks := scored_keys in let keys := without_own ks in
   I.upper_bounded (scores_of keys) && if enough true ks keys then true else enough false ks keys).
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
Variable to_nearest : bool.
Local Notation A := (arith_as c x to_nearest).
Local Notation J := (J x).
Local Notation K := (nat * visible)%type (only parsing).

Ltac arith := repeat (assumption || apply exactly_h || apply add_h || apply sub_h || apply mul_h || apply abs_h ||
  apply of_Z_h || apply one_h || apply of_nat_h || apply zero_h).

Lemma not_negative_h f : not_negative f = true -> 0 <= #f.
Proof. intros H. apply (not_below_zero_h _ _ H), exactly_h. Qed.
Record sane_h : Prop := {
  p_u : 0 <= #(a_u c); p_lam : 0 <= #(a_lam c); p_more : 0 <= #(a_tau_more c); p_scaled : 0 <= #(a_scaled c);
  p_biased : 0 <= #(a_biased c); p_sum : 0 <= #(a_sum c); p_lam_sum : 0 <= #(a_lam_sum c); p_out : 0 <= #(a_out c);
  p_lam_scaled : 0 <= #(a_lam_scaled c); p_lam_biased : 0 <= #(a_lam_biased c); p_bias : 0 <= #(a_bias c);
  p_lam_bias : 0 <= #(a_lam_bias c); p_reference : 0 <= #(a_reference c);
  p_lam_reference : 0 <= #(a_lam_reference c); p_lazy : 0 <= #(a_lazy c); p_thE : 0 <= thE_of c <= 1 }.
Lemma claims_are : sane_h /\ (forall A, u A = #(a_sum c) -> lam A = #(a_lam_sum c) -> thE A = thE_of c ->
  xl A = #(a_lam_exponent c) -> xr A = #(a_lam_exponent c) -> T A = #(a_lazy c) -> gap A = 0 -> 0 <= off A ->
  0 <= last A -> eps A = #(a_eps c) -> lame A = #(a_lam_exp c) -> up A = #(a_weight c) -> lamp A = #(a_lam_weight c) ->
  upd A = (if a_in_denominator c then #(a_weight c) else 0) ->
  lampd A = (if a_in_denominator c then #(a_lam_weight c) else 0) -> sane A).
Proof.
  unfold sane_claims in Sane. rewrite !andb_true_iff, forallb_forall in Sane.
  destruct Sane as ((((N & Le) & Ls) & Lw) & Lt).
  assert (Q : forall f, In f [a_u c; a_lam c; a_tau_more c; a_scaled c; a_lam_scaled c; a_biased c; a_lam_biased c;
    a_lam_exponent c; a_lazy c; a_eps c; a_lam_exp c; a_weight c; a_lam_weight c; a_sum c; a_lam_sum c; a_out c;
    a_lam_out c; a_bias c; a_lam_bias c; a_reference c; a_lam_reference c] -> 0 <= #f)
    by (intros; apply not_negative_h; auto).
  assert (Le' := lt_h prec _ _ _ _ Le (exactly_h _) (one_h prec)).
  assert (Ls' := le_h prec _ _ _ _ Ls (exactly_h _) (one_h prec)).
  assert (Lw' := le_h prec _ _ _ _ Lw (exactly_h _) (one_h prec)).
  assert (Lt' := le_h prec _ _ _ _ Lt (power_less_one_h prec _ _ (a_exponent c) (exactly_h (a_u c))) (one_h prec)).
  assert (U := Q (a_u c) ltac:(simpl; tauto)).
  assert (E : 1 <= (1 + #(a_u c)) ^ a_exponent c) by (apply pow_R1_Rle; lra).
  assert (Th : 0 <= thE_of c <= 1) by (unfold thE_of, u_s; lra).
  split; [constructor; auto; apply Q; simpl; tauto|].
  intros A E1 E2 E3 E4 E5 E6 E7 E8 E9 E10 E11 E12 E13 E14 E15.
  constructor; rewrite ?E1, ?E2, ?E3, ?E4, ?E5, ?E6, ?E7, ?E10, ?E11, ?E12, ?E13, ?E14, ?E15; auto;
    try (apply Q; simpl; tauto); try lra; try (split; [apply Q; simpl; tauto|auto]); destruct (a_in_denominator c);
    try lra; apply Q; simpl; tauto.
Qed.
Lemma power_pos k : 1 <= (1 + u_s c) ^ k.
Proof. destruct claims_are as [[] _]. apply pow_R1_Rle. unfold u_s. lra. Qed.
Lemma th_tau_pos : 0 <= th_tau c.
Proof.
  destruct claims_are as [[] _]. unfold th_tau. assert (E := power_pos (a_tau c)).
  assert (1 <= (1 + u_s c) ^ a_tau c * (1 + #(a_tau_more c))) by (apply times_ge1; lra). lra.
Qed.
Lemma th_l2e_pos : 0 <= th_l2e c.
Proof. assert (E := power_pos (a_l2e c)). unfold th_l2e. lra. Qed.
Lemma th_tau_h : encloses (i_scale_error prec c) (th_tau c).
Proof.
  unfold i_scale_error, th_tau, u_s. apply sub_h; [|apply one_h]. apply mul_h; [|arith].
  replace ((1 + #(a_u c)) ^ a_tau c) with (1 + ((1 + #(a_u c)) ^ a_tau c - 1)) by ring.
  apply add_h; [apply one_h|]. apply power_less_one_h, exactly_h.
Qed.
Lemma th_l2e_h : encloses (i_l2e prec c) (th_l2e c).
Proof. apply power_less_one_h, exactly_h. Qed.
Lemma thE_h : encloses (i_thE prec c) (thE_of c).
Proof. apply power_less_one_h, exactly_h. Qed.
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
  destruct claims_are as [[] _]. unfold dot_error_of. destruct (a_exact c); [lra|]. assert (E := power_pos (dk x)).
  assert (I := pos_INR (dk x)).
  assert (0 <= Sum Rabs (products x j)) by (apply Sum_nonneg; intros; apply Rabs_pos).
  apply Rplus_le_le_0_compat; repeat apply Rmult_le_pos; lra.
Qed.
Lemma made_pos j : 0 <= a_made c x j.
Proof.
  destruct claims_are as [[] _]. assert (T := th_tau_pos). assert (D := dot_error_pos j).
  assert (Tp := not_negative_h _ Tau). unfold a_made.
  destruct (exact_key x j); [lra|].
  assert (A1 := Rabs_pos (t_of x j)). assert (A2 := Rabs_pos (s_of x j)). assert (A3 := Rabs_pos (bias j)).
  repeat apply Rplus_le_le_0_compat; repeat apply Rmult_le_pos; try lra;
    repeat apply Rplus_le_le_0_compat; repeat apply Rmult_le_pos; try lra;
    repeat apply Rplus_le_le_0_compat; repeat apply Rmult_le_pos; try lra.
Qed.
Lemma with_pos centre middle j : 0 <= a_with c x centre middle j.
Proof.
  assert (T := th_tau_pos). assert (L := th_l2e_pos). assert (M := made_pos j). unfold a_with.
  assert (A1 := Rabs_pos (t_of x j - centre)). assert (A2 := Rabs_pos (s_of x j - middle)).
  repeat apply Rplus_le_le_0_compat; repeat apply Rmult_le_pos; lra.
Qed.
Lemma score_pos j : 0 <= a_score c x j.
Proof. apply with_pos. Qed.
Lemma most_score_pos : 0 <= most_score c x.
Proof. apply most_pos. Qed.
Lemma by_reference_mono y z : 0 <= y <= z -> 0 <= by_reference c y <= by_reference c z.
Proof.
  destruct claims_are as [[] _]. intros H. unfold by_reference.
  assert (0 <= #(a_reference c) * y) by (apply Rmult_le_pos; lra).
  assert (#(a_reference c) * y <= #(a_reference c) * z) by (apply Rmult_le_compat_l; lra). lra.
Qed.
Lemma size_pos j : 0 <= size_of_reference c x j.
Proof. eapply Rle_trans; [apply most_score_pos|apply Rmax_r]. Qed.
Lemma own_pos j : 0 <= own_of c x j.
Proof. assert (P := size_pos j). apply (by_reference_mono _ (size_of_reference c x j)). lra. Qed.
Lemma a_pos j : 0 <= a_of c x j.
Proof. assert (P := with_pos #(r_centre x) #(r_middle x) j). assert (O := own_pos j). unfold a_of, a_score. lra. Qed.
Lemma A_sane : sane A.
Proof.
  destruct claims_are as [P Q]. apply Q; auto; destruct P; simpl.
  - apply Rmult_le_pos; [lra|apply most_pos].
  - apply Rmult_le_pos; [lra|]. apply (by_reference_mono _ (size_of_last c x)). split; [|lra].
    eapply Rle_trans; [apply most_score_pos|apply Rmax_l].
Qed.
Lemma sane_are : sane_h /\ sane A.
Proof. split; [apply claims_are|apply A_sane]. Qed.

(** ** Enclosed *)
Definition scored_h (k : scored_key) (j : K) := encloses (k_score k) (s_of x j) /\
  encloses (k_up_to_shift k) (a_score c x j) /\ encloses (k_whole k) (a_whole c x j) /\ encloses (k_value k) (value j).
Lemma key_of_h th l2e gs low j : encloses th (th_tau c) -> encloses l2e (th_l2e c) ->
  encloses gs ((1 + u_s c) ^ dk x - 1) -> encloses low ((1 + u_s c) ^ dk x * (2 * INR (dk x) * #(a_lam c))) ->
  scored_h (key_of prec c x th l2e gs low j) j.
Proof.
  destruct j as [i v]. intros Hth Hl Hgs Hlow. unfold key_of, scored_h. simpl (snd (i, v)). cbv zeta.
  cbn [k_score k_up_to_shift k_whole k_value].
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
  assert (Ee : encloses (if a_exact c then I.zero else add prec (mul prec gs (total prec I.abs ps)) low)
    (dot_error_of c x (i, v))) by (unfold dot_error_of; destruct (a_exact c); arith).
  set (ie := if a_exact c then I.zero else _) in *.
  assert (Bb : encloses (exactly (snd (fst v))) (bias (i, v))) by apply exactly_h.
  set (ib := exactly (snd (fst v))) in *.
  match goal with |- context [mul prec ?m (add prec (one prec) l2e)] =>
    assert (Ma : encloses m (a_made c x (i, v))) by (unfold a_made; destruct (exact_key x (i, v)); arith);
    set (im := m) in * end.
  repeat split; auto; [| |apply exactly_h].
  - unfold a_score, a_with. arith.
  - replace (a_whole c x (i, v)) with (a_made c x (i, v) * (1 + th_l2e c) + th_tau c * (1 + th_l2e c) *
      Rabs (t_of x (i, v)) + th_l2e c * Rabs (s_of x (i, v))) by (unfold a_whole, a_with; rewrite !Rminus_0_r; auto).
    arith.
Qed.
Local Notation ks := (scored_keys prec c x).
Lemma scored_keys_h : Forall2 scored_h ks J.
Proof.
  unfold scored_keys. apply Forall2_map_same. intros j _.
  assert (G : encloses (power_less_one prec (exactly (a_u c)) (length (r_q x))) ((1 + u_s c) ^ dk x - 1))
    by (apply power_less_one_h, exactly_h).
  apply key_of_h; auto; [apply th_tau_h|apply th_l2e_h|]. apply mul_h; [|arith].
  replace ((1 + u_s c) ^ dk x) with (1 + ((1 + u_s c) ^ dk x - 1)) by ring. apply add_h; auto. apply one_h.
Qed.
Lemma most_score_h : encloses (i_most_score prec ks) (most_score c x).
Proof.
  apply (largest_h prec scored_h); [apply scored_keys_h|]. intros k j (H1 & _ & H3 & _). arith.
Qed.
Lemma least_score_h : encloses (i_least_score prec ks) (least_score c x).
Proof.
  unfold i_least_score, least_score. assert (H := scored_keys_h). destruct H as [|k j l m Hk H]; [apply zero_h|].
  assert (One : forall k j, scored_h k j -> encloses (sub prec (k_score k) (k_whole k)) (s_of x j - a_whole c x j))
    by (intros k' j' (H1 & _ & H3 & _); arith).
  induction H; simpl; [auto|]. apply above_h; auto.
Qed.
Lemma by_reference_h i size : encloses i size -> encloses (i_by_reference prec c i) (by_reference c size).
Proof. intros. unfold i_by_reference, by_reference. arith. Qed.
Lemma own_h k j : scored_h k j -> encloses (i_own prec c (i_most_score prec ks) k) (own_of c x j).
Proof.
  intros (H1 & _ & H3 & _). apply by_reference_h, larger_h; [arith|apply most_score_h].
Qed.
Lemma claims_of_h : claims_h A (claims_of prec c to_nearest ks).
Proof.
  assert (Th := thE_h). assert (O := most_score_h). assert (L := least_score_h).
  constructor; unfold claims_of, arith_as; cbn [i_u i_lam i_thE i_xl i_xr i_T i_gap i_off i_last i_eps i_lame i_up
    i_lamp i_upd i_lampd i_additions i_nearest u lam thE xl xr T gap off last eps lame up lamp upd lampd additions
    nearest];
    try apply exactly_h; try apply zero_h;
    try (destruct (a_in_denominator c); [apply exactly_h|apply zero_h]); auto.
  - apply mul_h; [arith|]. apply (largest_h prec scored_h); [apply scored_keys_h|]. apply own_h.
  - apply mul_h; [arith|]. apply by_reference_h, larger_h; [auto|arith].
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

(** ** What the claims make of scores and references *)
Lemma least_at_most y : (forall j, In j J -> s_of x j - a_whole c x j <= y) -> least_score c x <= y.
Proof.
  unfold least_score. assert (N := J_some). destruct J as [|k l]; [congruence|]. intros H.
  assert (H0 := H k (or_introl eq_refl)). assert (Hl : forall j, In j l -> s_of x j - a_whole c x j <= y)
    by (intros; apply H; simpl; auto). clear H N.
  induction l as [|i l IH]; simpl; [auto|]. apply Rmax_lub; [apply Hl; simpl; auto|]. apply IH. intros.
  apply Hl. simpl. auto.
Qed.
Section Kernel.
Variables made reference rounded : K -> R.
Variables d dl : R.
Hypothesis Hd : Rabs d <= th_tau c.
Hypothesis Hdl : Rabs dl <= th_l2e c.
Hypothesis Hmade : forall j, In j J -> scored c x d j (made j).
Local Notation sh := (fun j => (1 + dl) * made j).
Hypothesis Href : referred c x sh reference rounded.

Lemma score_within centre middle j : In j J ->
  Rabs (sh j - (s_of x j + (d * (1 + dl) * centre + dl * middle))) <= a_with c x centre middle j.
Proof.
  intros Hj. destruct claims_are as [[] _]. assert (Hm := Hmade j Hj).
  apply constants_are_common with (g := t_of x j); auto. unfold scored, a_made in *. destruct (exact_key x j).
  { rewrite Hm. unfold s_of. replace (_ - _) with 0 by ring. rewrite Rabs_R0. lra. }
  destruct Hm as (xh & th & bh & S1 & S2 & S3 & S4).
  assert (Dt : Rabs (xh - dot x j) <= dot_error_of c x j).
  { unfold multiplied, dot_error_of in *. destruct (a_exact c).
    - rewrite S1, Rminus_eq_0, Rabs_R0. lra.
    - destruct S1 as (k & ops & S1). assert (Dt := dot_error _ _ p_u0 p_lam0 _ _ _ _ S1).
      rewrite (products_length j Hj) in Dt. exact Dt. }
  apply (scaled_then_biased d (th_tau c) #(a_scaled c) #(a_lam_scaled c) #(a_biased c) #(a_lam_biased c) #(a_bias c)
    #(a_lam_bias c) p_scaled0 p_biased0 Hd (bias j) (t_of x j) (s_of x j) bh S3 (#(r_tau x) * (1 + d) * xh)
    (#(r_tau x) * dot_error_of c x j) th (made j) eq_refl); auto.
  destruct (not_negative_h _ Tau) as [Tp|T0].
  - apply (scaled #(r_tau x) d (th_tau c) Tp Hd (dot x j) (t_of x j) eq_refl). exact Dt.
  - unfold t_of. rewrite <- T0, !Rmult_0_l, !Rmult_0_r, Rminus_0_r, Rabs_R0. lra.
Qed.
Lemma score_whole j : In j J -> Rabs (sh j - s_of x j) <= a_whole c x j.
Proof.
  intros Hj. assert (Q := score_within 0 0 j Hj).
  replace (s_of x j + (d * (1 + dl) * 0 + dl * 0)) with (s_of x j) in Q by ring. exact Q.
Qed.
Lemma score_at_most i : In i J -> sh i <= most_score c x.
Proof.
  intros Hi. assert (Q := Rabs_bounds _ _ (score_whole i Hi)).
  assert (M := most_ge K J (fun j => s_of x j + a_whole c x j) i Hi). unfold most_score. lra.
Qed.
Lemma reference_within j : In j J -> Rabs (rounded j - reference j) <= own_of c x j.
Proof.
  intros Hj. destruct claims_are as [[] _]. destruct (Href j Hj) as (N & Low & i & Ii & High).
  assert (Q := Rabs_bounds _ _ (score_whole j Hj)). assert (M := score_at_most i Ii). assert (MP := most_score_pos).
  assert (S : Rabs (reference j) <= size_of_reference c x j).
  { unfold size_of_reference. assert (R1 := Rmax_l (Rabs (s_of x j) + a_whole c x j + #(a_lazy c)) (most_score c x)).
    assert (R2 := Rmax_r (Rabs (s_of x j) + a_whole c x j + #(a_lazy c)) (most_score c x)).
    assert (Sp := Rle_abs (- s_of x j)). rewrite Rabs_Ropp in Sp. apply Rabs_le_iff. lra. }
  assert (By := by_reference_mono _ _ (conj (Rabs_pos (reference j)) S)). unfold near in N.
  unfold own_of, by_reference in *.
  lra.
Qed.
Lemma last_within i : In i J -> (forall j, In j J -> sh j <= sh i) ->
  Rabs (rounded i - reference i) <= by_reference c (size_of_last c x).
Proof.
  intros Hi Most. destruct claims_are as [[] _]. destruct (Href i Hi) as (N & Low & i' & Ii & High).
  assert (M := score_at_most i Hi). assert (M' := Most i' Ii). simpl in M'.
  assert (L : least_score c x <= sh i).
  { apply least_at_most. intros j Hj. assert (Q := Rabs_bounds _ _ (score_whole j Hj)). assert (Mj := Most j Hj).
    simpl in Mj. lra. }
  assert (S : Rabs (reference i) <= size_of_last c x).
  { unfold size_of_last. assert (R1 := Rmax_l (most_score c x) (#(a_lazy c) - least_score c x)).
    assert (R2 := Rmax_r (most_score c x) (#(a_lazy c) - least_score c x)). apply Rabs_le_iff. lra. }
  assert (By := by_reference_mono _ _ (conj (Rabs_pos (reference i)) S)). unfold near in N. unfold by_reference in *.
  lra.
Qed.
(** What is asked of the exponents, of keys that are none as well. *)
Definition asked_of j := Rmin (off_by c reference rounded j)
  (Rmin (#(a_lam_exponent c) + (1 + thE_of c) * own_of c x j) (xl A + off A)).
Lemma asked_is j : In j J -> off_by c reference rounded j <= asked_of j.
Proof.
  intros Hj. destruct claims_are as [[] _]. assert (W := reference_within j Hj).
  assert (M := most_ge K J (own_of c x) j Hj). unfold asked_of.
  assert (Q : off_by c reference rounded j <= #(a_lam_exponent c) + (1 + thE_of c) * own_of c x j)
    by (apply Rplus_le_compat_l, Rmult_le_compat_l; lra).
  assert (Q2 : (1 + thE_of c) * own_of c x j <= (1 + thE_of c) * most K J (own_of c x))
    by (apply Rmult_le_compat_l; lra).
  apply Rmin_glb; [lra|]. apply Rmin_glb; [auto|]. simpl. lra.
Qed.
End Kernel.
(** How wrong a score is that is made so, but for what all scores share; without log2(e). *)
Lemma scored_within sh d : Rabs d <= th_tau c -> (forall j, In j J -> scored c x d j (sh j)) -> forall j, In j J ->
  Rabs (sh j - (s_of x j + d * #(r_centre x))) <= a_score c x j.
Proof.
  intros Hd Hs j Hj. assert (L := th_l2e_pos).
  assert (Q := score_within sh d 0 Hd ltac:(rewrite Rabs_R0; auto) Hs #(r_centre x) #(r_middle x) j Hj).
  replace (sh j - (s_of x j + d * #(r_centre x)))
    with ((1 + 0) * sh j - (s_of x j + (d * (1 + 0) * #(r_centre x) + 0 * #(r_middle x)))) by ring. exact Q.
Qed.
(** What the evaluator says of a row's keys. *)
Lemma scores_at_most k t e : I.upper_bounded (scores_of prec (keys_of prec c x)) = true -> In k (keys_of prec c x) ->
  encloses (k_s k) t -> encloses (k_a k) e -> t + e <= number (top_of prec (keys_of prec c x)).
Proof.
  intros B Hi Ht He. apply (upper_h _ _ B). unfold scores_of.
  assert (I1 : In (add prec (k_s k) (k_a k)) (map (fun k => add prec (k_s k) (k_a k)) (keys_of prec c x)))
    by (apply (in_map (fun k => add prec (k_s k) (k_a k))); auto).
  destruct (map _ _) as [|first others]; [contradiction|]. apply (hull_h others first _ _ I1). apply add_h; auto.
Qed.
Lemma keys_within : I.upper_bounded (scores_of prec (keys_of prec c x)) = true ->
  Forall2 (fun k j => encloses (k_s k) (s_of x j) /\ encloses (k_a k) (a_score c x j) /\ encloses (k_v k) (value j) /\
    0 <= a_score c x j /\ s_of x j + a_score c x j <= number (top_of prec (keys_of prec c x))) (keys_of prec c x) J.
Proof.
  intros B. assert (Top := fun k t e => scores_at_most k t e B).
  assert (KH : Forall2 (fun k j => encloses (k_s k) (s_of x j) /\ encloses (k_a k) (a_score c x j) /\
    encloses (k_v k) (value j)) (keys_of prec c x) J).
  { apply (Forall2_map_left scored_h); [apply scored_keys_h|]. intros k j (H1 & H2 & _ & H4). auto. }
  revert Top. generalize (number (top_of prec (keys_of prec c x))). intros top Top. clear B.
  induction KH; constructor.
  - destruct H as (H1 & H2 & H3). repeat split; auto; [apply score_pos|]. apply (Top x0); simpl; auto.
  - apply IHKH. intros k t e Hk. apply Top. simpl. auto.
Qed.
Lemma Uf_pos : 0 <= Uf c.
Proof.
  destruct claims_are as [[] _]. unfold Uf.
  assert (E : 1 <= (1 + #(a_sum c)) ^ a_divisions c) by (apply pow_R1_Rle; lra).
  assert (1 <= (1 + #(a_sum c)) ^ a_divisions c * (1 + #(a_out c))) by (apply times_ge1; lra). lra.
Qed.
Lemma finish_near mean quotient oh : rounded_times #(a_sum c) #(a_lam_sum c) (a_divisions c) mean quotient ->
  near #(a_out c) #(a_lam_out c) quotient oh -> near (Uf c) (lamf c) mean oh.
Proof.
  intros Hq Hoh. destruct claims_are as [[] _].
  assert (Q := near_trans _ _ _ _ _ _ _ p_out0 (rounded_times_near _ _ _ _ _ p_sum0 p_lam_sum0 Hq) Hoh).
  eapply near_weaken; [apply Q| |]; unfold Uf, lamf; right; ring.
Qed.
Lemma any_rounding K sh xk v w0 lamw ts m y k r n : sums_by K sh (arith_of c x) xk v w0 lamw ts m y k r n ->
  sums_by K sh A xk v w0 lamw ts m y k r n.
Proof.
  unfold arith_of. destruct to_nearest; auto. set (B := arith_as c x true). set (A0 := arith_as c x false).
  induction 1 as [j m e p y HT He Hp Hy|ts1 ts2 m y1 y2 y k1 r1 c1 k2 r2 c2 H1 IH1 H2 IH2 N|
    ts m y k r n m' z p y' H IH Hm Hz Hp N].
  - apply (sums_by_key K sh A0 xk v w0 lamw j m e p y); auto.
  - apply (sums_by_add K sh A0 xk v w0 lamw ts1 ts2 m y1 y2 y); auto. split; [apply N|discriminate].
  - apply (sums_by_rescale K sh A0 xk v w0 lamw ts m y k r n m' z p y'); auto.
Qed.
End Proof.

(** What [sane_row] says, and [allows] of the tolerance of any such arithmetic and keys. *)
Lemma sane_row_h prec c x : sane_row prec c x = true -> sane_claims prec c = true /\ not_negative (r_tau x) = true /\
  r_keys x <> [] /\ (forall v, In v (r_keys x) -> length (fst (fst v)) = length (r_q x)) /\ J x <> [].
Proof.
  unfold sane_row. rewrite !andb_true_iff, !forallb_forall. intros (((Hs & Ht) & Hk) & Hl).
  assert (Nk : r_keys x <> []) by (destruct (r_keys x); congruence).
  assert (Ln : forall v, In v (r_keys x) -> length (fst (fst v)) = length (r_q x)).
  { intros v Hv. apply Nat.eqb_eq, (Hl v Hv). }
  repeat (split; auto). apply J_some; auto.
Qed.
Lemma any_order c : natural c = true -> a_additions c = None.
Proof. unfold natural. rewrite !andb_true_iff. intros [_ H]. destruct (a_additions c); congruence. Qed.
Lemma allows_h prec c x B of_sums a keys reference top ops d Uf lamf iUf ilamf :
  allows prec c x of_sums keys reference top ops d iUf ilamf = true ->
  sane B -> J x <> [] -> claims_h B of_sums -> Forall2 (key_h _ (s_of x) value a B (number top)) keys (J x) ->
  encloses iUf Uf -> encloses ilamf lamf ->
  0 < low_d _ (s_of x) B a (J x) (number top) (a_rescalings c) ops /\
  documented_of _ (s_of x) value B a (J x) (number top) (a_rescalings c) ops d (number (a_weight c)) Uf lamf <=
    number (r_allowed x).
Proof.
  unfold allows. rewrite andb_true_iff. intros (Hb & Hle) OB NJ HC Key HU Hlam.
  destruct (tolerance_enclosed prec _ (s_of x) value a B OB (J x) NJ (number top) (number reference)
    (a_rescalings c) ops d (number (a_weight c)) of_sums (exactly reference) (exactly top) (exactly (a_weight c))
    (exactly_h _) (exactly_h _) (exactly_h _) HC keys Key Uf lamf iUf ilamf HU Hlam Hb) as [Low Tol].
  split; auto. apply (le_h prec _ _ _ _ Hle Tol (exactly_h _)).
Qed.

(** No kernel of the class errs by more than was allowed of the row. *)
Lemma checked_row prec c x oh : check prec c x = true -> answers c x oh ->
  Rabs (oh - exact _ (s_of x) value (J x)) <= number (r_allowed x).
Proof.
  unfold check. rewrite !andb_true_iff. intros (Hr & Htop & He) Ha.
  destruct (sane_row_h _ _ _ Hr) as (Hs & Ht & Nk & Ln & NJ).
  set (ks := scored_keys prec c x) in *. set (keys := without_own ks) in *.
  assert (near : exists near, enough prec c x near ks keys = true)
    by (destruct (enough prec c x true _) eqn:E; eauto). clear He. destruct near as (near & He).
  unfold enough in He. set (top := top_of prec keys) in *.
  destruct (claims_are prec c Hs) as [P _]. assert (OK := A_sane prec c x Hs near).
  assert (KH := scored_keys_h prec c x).
  assert (Top_j : forall j, In j (J x) -> s_of x j + a_score c x j <= number top).
  { intros j Hj. destruct (Forall2_right _ _ _ j (keys_within prec c x Hs Ht Htop) Hj) as (k & _ & _ & _ & _ & H).
    exact H. }
  assert (Key : Forall2 (key_h _ (s_of x) value (a_of c x) (arith_as c x near) (number top)) (with_own prec c ks)
    (J x)).
  { unfold with_own. apply (Forall2_map_left (fun k j => scored_h c x k j /\ In j (J x))).
    - apply Forall2_in. exact KH.
    - intros k j [Hk' Hj]. assert (Ow := own_h prec c x k j Hk'). destruct Hk' as (H1 & H2 & H3 & H4).
      assert (A0 := a_pos prec c x Hs Ht j). assert (A1 := Top_j j Hj). assert (A2 := score_pos prec c x Hs Ht j).
      repeat split; cbn [k_s k_a k_v]; auto; [unfold a_of; apply add_h; auto|]. unfold a_of, a_score in *. simpl. lra. }
  destruct (allows_h prec c x (arith_as c x near) _ (a_of c x) _ _ _ _ _ (Uf c) (lamf c) _ _ He OK NJ
    (claims_of_h prec c x near) Key (Uf_h prec c) (lamf_h prec c)) as [Low Le].
  eapply Rle_trans; [|apply Le]. change (number (a_weight c)) with (up (arith_as c x near)). rewrite divided_last.
  destruct Ha as (made & d & dl & reference & rounded & tl & to_ & m & l & o & kl & rl & cl & ko & ro & co & quotient &
    Hd & Hdl & Hsc & Href & M & Hp & HL & Hrl & Hcl & Sl & HO & Hro & Hco & So & (i & Ii & Hi) & Hq & Hoh).
  assert (Pd := P). destruct Pd.
  set (asked := asked_of c x near reference rounded).
  assert (Asked : forall j, In j (J x) -> off_by c reference rounded j <= asked j)
    by (intros j Hj; apply (asked_is prec c x Hs Ht Ln near made reference rounded d dl); auto).
  assert (Ml : Permutation (map fst tl) (J x))
    by (eapply Permutation_trans; [apply Permutation_map; apply Hp|auto]).
  apply (documented_bound_by _ (s_of x) (fun j => (1 + dl) * made j) value (arith_as c x near) OK asked)
    with (a0 := a_score c x) (tl := tl) (to_ := to_) (m := m) (l := l) (o := o)
      (Cs := d * (1 + dl) * number (r_centre x) + dl * number (r_middle x)) (kl := kl) (rl := rl) (cl := cl) (ko := ko)
      (ro := ro) (co := co); auto.
  - intros j. eapply Rle_trans; [apply Rmin_r|apply Rmin_r].
  - intros j. assert (Q : asked j <= number (a_lam_exponent c) + (1 + thE_of c) * own_of c x j)
      by (eapply Rle_trans; [apply Rmin_r|apply Rmin_l]). unfold a_of. simpl. lra.
  - intros j Hj Most. eapply Rle_trans; [apply Rmin_l|]. unfold off_by. simpl.
    assert (Q := last_within prec c x Hs Ht Nk Ln made reference rounded d dl Hd Hdl Hsc Href j Hj Most).
    apply Rplus_le_compat_l, Rmult_le_compat_l; lra.
  - apply (sums_by_keys _ _ _ (off_by c reference rounded)); [apply any_rounding; auto|]. intros t It. apply Asked.
    eapply Permutation_in; [apply Ml|]. apply in_map. auto.
  - apply (sums_by_keys _ _ _ (off_by c reference rounded)); [apply any_rounding; auto|]. intros t It. apply Asked.
    eapply Permutation_in; [apply M|]. apply in_map. auto.
  - intros j Hj. apply (score_within prec c x Hs Ht Ln made d dl); auto.
  - exists i. split; auto. simpl. lra.
  - apply (Uf_pos prec c Hs).
  - apply (finish_near prec c Hs) with quotient; auto.
Qed.
End CheckedRows.
