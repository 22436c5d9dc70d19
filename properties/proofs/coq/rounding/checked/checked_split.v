(** checked_rows.v for parts that are merged through their log-sum-exps (split decoding): any partition of the keys into
    parts. *)
From Coq Require Import Reals List Lra Lia Psatz Permutation ZArith Bool.
From Interval Require Import Interval.Interval.
From Attest.Rounding Require Import basics merge bound documented divided_first any_reference merged_parts intervals
  evaluation checked_rows.
Import ListNotations.
Open Scope R_scope.

Module CheckedSplit (I : IntervalOps).
Module Rows := CheckedRows I.
Import Rows Rows.E Rows.E.V.
Local Notation F := I.F.type.

(** What is claimed of the parts and of the merge, which has the formats of the scores and of the sums; and what a
    logarithm errs by: relative above 1, absolute below. *)
Record split_claims := Split { of_parts : arithmetic; of_log : F }.

Section Meaning.
Variable c : split_claims.
Variable x : row.
Local Notation a := (of_parts c).
Local Notation J := (J x).
Local Notation "# f" := (number f) (at level 0).
(** How a kernel comes to its answer: whatever the parts are, each key is in one. *)
Definition of_parts_of (oh : R)
  (ends : (nat * visible -> R) -> list nat -> (nat -> list (nat * visible)) -> (nat -> handed) -> R -> Prop) :=
  exists sh d parts keys part h mean, Rabs d <= th_tau a /\ (forall j, In j J -> scored a x d j (sh j)) /\
  Permutation (flat_map keys parts) J /\ (forall p j, In p parts -> In j (keys p) -> part j = p) /\
  ends sh parts keys h mean /\ near #(a_out a) #(a_lam_out a) mean oh.
(** Divided by the sum of the parts' weights. *)
Definition divided sh parts keys h mean := exists L O,
  merged _ sh value (arith_of a x) (a_rescalings a) (a_divisions a) #(of_log c) (u_s a) #(a_lam_exponent a)
    parts keys h L O /\ rounded_times #(a_sum a) #(a_lam_sum a) (a_divisions a) (O / L) mean.
(** Or weighted relative to the log-sum-exp of all. *)
Definition undivided sh parts keys h mean :=
  merged_undivided _ sh value (arith_of a x) (a_rescalings a) (a_divisions a) #(of_log c) (u_s a) #(a_lam_exponent a)
    parts keys h mean.
Definition answers (oh : R) := of_parts_of oh divided \/ of_parts_of oh undivided.
End Meaning.

Section Check.
Variable prec : I.precision.
Variable c : split_claims.
Variable x : row.
Local Notation a := (of_parts c).
Local Notation add := (add prec).
Local Notation sub := (sub prec).
Local Notation mul := (mul prec).
Local Notation div := (div prec).
Local Notation one := (one prec).
Local Notation count k := (of_Z prec (Z.of_nat k)).
(** A division by a part's sum, and the part's weight. *)
Definition rescalings := (a_rescalings a + 1 + a_divisions a)%nat.
Definition operations := ((3 + a_divisions a) * length (r_keys x))%nat.
Definition with_room (k : claims) (room : F) : claims :=
  Claims (i_u k) (i_lam k) (i_thE k) (i_xl k) (i_xr k) (i_T k) (exactly room) (i_off k) (i_last k) (i_eps k) (i_lame k)
    (i_up k) (i_lamp k) (i_upd k) (i_lampd k) (i_additions k) (i_nearest k).
(** The logarithm of a sum of weights. *)
Definition i_log := add (add (logarithm prec (count (length (r_keys x)))) one) (exactly (a_lazy a)).
Definition i_lse_err (log q : I.type) :=
  add (add (mul (exactly (a_u a)) (add q (mul (add one (exactly (of_log c))) log))) (exactly (a_lam_exponent a)))
    (mul (exactly (of_log c)) log).
(** The common error of the scores by that of the scale. *)
Definition i_common := mul (i_scale_error prec a) (I.abs (exactly (r_centre x))).
(** No reference of a part of that key is larger in size. *)
Definition i_size_from (top : F) (k : key) :=
  add (larger prec (add (add (I.abs (k_s k)) (k_a k)) i_common) (add (exactly top) i_common)) (exactly (a_lazy a)).
Definition merged_key (log e1 : I.type) (top : F) (k : key) :=
  Key (k_s k) (add (k_a k) (add (i_lse_err log (i_size_from top k)) e1)) (k_v k).
(** What is computed of the keys once. *)
Record known := Known { p_keys : list key; p_claims : claims; p_log : I.type; p_e1 : I.type; p_top : F;
  p_lost : I.type; p_grown : I.type; p_gain : I.type; p_least : I.type; p_room : I.type }.
Definition prepared : known :=
  let ks := scored_keys prec a x in let keys := without_own ks in let claims := claims_of prec a true ks in
  let lost := i_most_lost prec claims rescalings keys operations in
  let grown := i_grown_sum prec claims rescalings keys in
  let least := sub (sub one (exactly (a_eps a))) lost in
  Known keys claims i_log (i_eps1 prec claims) (top_of prec keys) lost grown (i_gain_of_all prec claims rescalings)
    least (sub (div grown least) one).
(** That it may be used. *)
Definition sound (p : known) : bool :=
  let n := count (length (p_keys p)) in
  natural a && sane_claims prec a && not_negative (of_log c) && le prec (exactly (a_u a)) one &&
  Nat.leb 1 (a_divisions a) && not_negative (r_tau x) && match r_keys x with [] => false | _ => true end &&
  forallb (fun v : visible => Nat.eqb (length (fst (fst v))) (length (r_q x))) (r_keys x) &&
  I.upper_bounded (scores_of prec (p_keys p)) && I.upper_bounded (p_room p) && lt prec I.zero (p_least p) &&
  le prec (p_e1 p) (p_log p) &&
  le prec (add (mul (p_grown p) (mul n (p_gain p))) (p_lost p)) (mul n (expo prec (add one (exactly (a_lazy a))))).
Definition evaluated_with (p : known) (room : F) (whole : I.type) :=
  evaluate prec (with_room (p_claims p) room) rescalings operations 0 (exactly (a_weight a))
    (exactly (reference_of (p_keys p))) whole
    (map (merged_key (p_log p) (p_e1 p) (p_top p)) (p_keys p)).
Definition i_size_of_top (p : known) := add (I.abs (exactly (p_top p))) i_common.
Definition within (t : bool * I.type) : bool := fst t && le prec (snd t) (exactly (r_allowed x)).
Definition check_divided (p : known) : bool :=
  let whole := add (add (exactly (p_top p)) (p_log p)) (i_lse_err (p_log p) (i_size_of_top p)) in
  let e := evaluated_with p (I.upper (p_room p)) whole in
  within (finished prec e (v_off e) (v_least e) (i_Uf prec a) (i_lamf prec a)).

(** Without the last division, as merged_parts.v has it; what is negligible is rounded up to a number. *)
Definition i_exponent := power_less_one prec (exactly (a_u a)) (a_exponent a).
(** The interval that ends first. *)
Definition smaller (i j : I.type) := if lower_than prec (I.upper i) (I.upper j) then i else j.
Definition smallest (l : list I.type) := match l with [] => I.zero | i :: l => fold_left smaller l i end.
Record undivided_known := Undivided { n_grown : F; n_part : F; n_kappa : F; n_room : F }.
Definition i_Qt (p : known) :=
  larger prec (i_size_of_top p) (smallest (map (i_size_from (p_top p)) (p_keys p))).
Definition i_ln_n := logarithm prec (count (length (r_keys x))).
Definition i_size_of_M (p : known) (qt : I.type) := add (add qt (i_lse_err (p_log p) qt)) (p_e1 p).
(** By their size, and by how many parts there may be. *)
Definition i_of_sizes (size : I.type) :=
  add (mul (exactly (a_u a)) size) (mul (mul (of_Z prec 2) i_exponent) i_ln_n).
Definition i_of_log (p : known) :=
  let relative := mul (exactly (of_log c)) (p_log p) in
  add (add (exactly (a_lam_exponent a)) relative)
    (mul (exactly (a_u a)) (add (mul (of_Z prec 2) (p_e1 p)) relative)).
Definition i_total_err (p : known) (size : I.type) :=
  add (mul (exactly (a_u a)) (add size (p_log p))) (i_of_log p).
Definition i_x0 (p : known) := add (p_e1 p) (exactly (a_lam_exponent a)).
Definition i_kappa (p : known) (part room : F) :=
  div (add (add (exactly room) (i_x0 p)) (mul i_exponent (add (add (exactly part) (p_log p)) (p_e1 p))))
    (sub one i_exponent).
Definition i_far (p : known) :=
  add (mul i_exponent (add (p_log p) (exactly (a_lazy a)))) (i_X prec (p_claims p) rescalings).
Definition i_spare (p : known) (grown room : F) :=
  add (add (add (exactly room) (i_far p)) (exactly grown)) (mul (of_Z prec 2) (p_e1 p)).
Definition i_merge_err (p : known) (size : I.type) (grown part kappa room : F) :=
  add (add (add (mul (of_Z prec 2) (i_x0 p)) (i_of_sizes size))
    (add (i_of_log p) (mul (exactly (of_log c)) (i_spare p grown room))))
    (mul i_exponent (add (add (add (mul (of_Z prec 2) (exactly kappa))
      (add (mul (exactly (a_u a)) (p_log p)) (i_total_err p size))) (mul (of_Z prec 2) (exactly part))) (p_e1 p))).
Definition i_top_total (p : known) (qt size : I.type) (grown room : F) :=
  add (add (add (add (add (add (add (exactly (a_lazy a)) (exactly (p_top p))) (i_lse_err (p_log p) qt)) i_ln_n)
    (i_far p)) (exactly room)) (exactly grown))
    (add (mul (exactly (a_u a)) (p_log p)) (i_total_err p size)).
Definition i_kept (p : known) :=
  mul (sub one (i_upd (p_claims p))) (power prec (sub one (i_u (p_claims p))) (length (p_keys p) - 1 + rescalings)).
Definition i_part (p : known) :=
  sub (div (add one (div (p_lost p) (sub one (exactly (a_eps a))))) (i_kept p)) one.
Definition check_undivided (p : known) : bool :=
  let qt := i_Qt p in let grown := I.upper (sub (add (mul (p_grown p) (p_gain p)) (p_lost p)) one) in
  let part := I.upper (i_part p) in let size := i_size_of_M p qt in
  (* the least room that is large enough, or nearly so: underflow is larger by its exponential *)
  let guess := I.upper (mul (add one (div one (of_Z prec 65536)))
    (add (mul (of_Z prec 4) (p_room p)) (add (i_of_sizes size) (add (i_of_log p) (mul (of_Z prec 2) (i_x0 p)))))) in
  let kappa := I.upper (i_kappa p part guess) in
  let me := i_merge_err p size grown part kappa guess in
  let e := evaluated_with p guess (i_top_total p qt size grown guess) in
  let off := add (v_off e) (mul (add one (v_off e)) (sub (expo prec me) one)) in
  I.upper_bounded (sub (add (mul (p_grown p) (p_gain p)) (p_lost p)) one) && I.upper_bounded (i_part p) &&
  I.upper_bounded (i_kappa p part guess) && Nat.leb 1 (a_exponent a) &&
  le prec (exactly (a_u a)) (exactly (of_log c)) && lt prec i_exponent one &&
  lt prec I.zero (i_kept p) && le prec (exactly grown) (add one (exactly (a_lazy a))) &&
  le prec (p_room p) (exactly guess) && le prec (add one off) (expo prec (exactly guess)) &&
  within (finished prec e off (div (v_least e) (expo prec me)) (exactly (a_out a)) (exactly (a_lam_out a))).
Definition check : bool := let p := prepared in sound p && check_divided p && check_undivided p.
End Check.

Section Proof.
Variable prec : I.precision.
Variable c : split_claims.
Variable x : row.
Local Notation a := (of_parts c).
Local Notation A := (arith_of a x).
Local Notation J := (J x).
Local Notation "# f" := (number f) (at level 0).
Hypothesis Sane : sane_claims prec a = true.
Hypothesis Tau : not_negative (r_tau x) = true.
Hypothesis Log : not_negative (of_log c) = true.
Hypothesis Unit : le prec (exactly (a_u a)) (one prec) = true.
Hypothesis Some_key : r_keys x <> [].
Hypothesis Lengths : forall v, In v (r_keys x) -> length (fst (fst v)) = length (r_q x).
Local Notation keys := (keys_of prec a x).
Local Notation claims := (claims_of prec a true (scored_keys prec a x)).
Hypothesis Top : I.upper_bounded (scores_of prec keys) = true.
Local Notation top := (top_of prec keys).
Local Notation n := (length J).

Ltac arith := repeat (assumption || apply exactly_h || apply add_h || apply sub_h || apply mul_h || apply abs_h ||
  apply of_Z_h || apply one_h || apply of_nat_h || apply zero_h || apply expo_h).

Definition log_n := ln (INR n) + 1 + T A.
Definition common := th_tau a * Rabs #(r_centre x).
Definition size_from j := Rmax (Rabs (s_of x j) + a_score a x j + common) (#top + common) + T A.
Definition size_of_top := Rabs #top + common.
Local Notation err := (lse_err #(of_log c) (u_s a) #(a_lam_exponent a) log_n).
Local Notation more := (a_merged _ A #(of_log c) (u_s a) #(a_lam_exponent a) (a_score a x) size_from log_n).

Lemma rows_length : length (r_keys x) = n.
Proof. unfold Rows.J. rewrite combine_length, seq_length, Nat.min_id. auto. Qed.
Lemma n_ge1 : 1 <= INR n.
Proof.
  apply (le_INR 1). rewrite <- rows_length. destruct (r_keys x); [congruence|simpl; lia].
Qed.
Lemma log_n_ge1 : 1 <= log_n.
Proof.
  destruct (sane_are prec a x Sane true) as [_ OK]. assert (N := n_ge1). assert (T0 := s_T A OK).
  assert (0 <= ln (INR n)); [|unfold log_n; lra].
  rewrite <- ln_1. destruct N as [N|N]; [left; apply ln_increasing; lra|rewrite <- N; lra].
Qed.
Lemma log_h : encloses (i_log prec c x) log_n.
Proof.
  assert (N := n_ge1). unfold i_log, log_n. apply add_h; [|arith]. apply add_h; [|arith]. rewrite rows_length.
  apply logarithm_h; [lra|arith].
Qed.
Lemma common_pos : 0 <= common.
Proof. apply Rmult_le_pos; [apply (th_tau_pos prec a Sane)|apply Rabs_pos]. Qed.
Lemma common_h : encloses (i_common prec c x) common.
Proof. unfold i_common, common. assert (Q := th_tau_h prec a). arith. Qed.
Lemma err_h q i : encloses i q -> encloses (i_lse_err prec c (i_log prec c x) i) (err q).
Proof. intros H. assert (Q := log_h). unfold i_lse_err, lse_err, u_s. arith. Qed.
Lemma err_pos q : 0 <= q -> 0 <= err q.
Proof.
  intros Q. destruct (sane_are prec a x Sane true) as [[] OK]. assert (L := log_n_ge1).
  assert (Lg := not_negative_h _ Log). assert (X0 := s_xl A OK). simpl in X0. unfold lse_err, u_s.
  assert (0 <= #(of_log c) * log_n) by (apply Rmult_le_pos; lra).
  assert (0 <= #(a_u a) * (q + (1 + #(of_log c)) * log_n)); [|lra].
  apply Rmult_le_pos; auto. lra.
Qed.
Lemma size_from_pos j : 0 <= size_from j.
Proof.
  destruct (sane_are prec a x Sane true) as [_ OK]. assert (C0 := common_pos). assert (T0 := s_T A OK).
  assert (P := score_pos prec a x Sane Tau j). assert (S0 := Rabs_pos (s_of x j)). unfold size_from.
  assert (M := Rmax_l (Rabs (s_of x j) + a_score a x j + common) (#top + common)). lra.
Qed.

(** The keys with what the merge makes of their scores. *)
Lemma merged_keys_h room whole : #top <= whole + #room ->
  Forall2 (key_h _ (s_of x) value more (with_gap A #room) whole)
    (map (merged_key prec c x (i_log prec c x) (i_eps1 prec claims) top) keys) J.
Proof.
  intros R0. destruct (sane_are prec a x Sane true) as [_ OK].
  apply (Forall2_map_left _ _ _ _ _ (keys_within prec a x Sane Tau Top)).
  intros k j (H1 & H2 & H3 & H4 & H5). unfold key_h, merged_key. cbn [k_s k_a k_v].
  assert (Sj : encloses (i_size_from prec c x top k) (size_from j)).
  { assert (C0 := common_h). unfold i_size_from, size_from. apply add_h; [|arith]. apply larger_h; arith. }
  assert (E1 := eps1_h prec A OK claims (claims_of_h prec a x true)). assert (Er := err_h _ _ Sj).
  assert (P1 := eps1_pos A OK). assert (P2 := err_pos _ (size_from_pos j)). assert (L := log_n_ge1).
  split; [auto|]. split; [unfold a_merged; arith|]. split; [auto|]. unfold a_merged. simpl gap. lra.
Qed.
(** References are between scores. *)
Lemma reference_within d sh i j m : Rabs d <= th_tau a -> (forall j, In j J -> scored a x d j (sh j)) ->
  In i J -> In j J -> sh j - T A <= m <= sh i -> Rabs m <= size_from j.
Proof.
  intros Hd Hs Ii Ij Hm.
  assert (Within := fun j Hj => Rabs_bounds _ _ (scored_within prec a x Sane Tau Lengths sh d Hd Hs j Hj)).
  assert (Cs : Rabs (d * #(r_centre x)) <= common).
  { unfold common. rewrite Rabs_mult. apply Rmult_le_compat_r; auto. apply Rabs_pos. }
  apply Rabs_bounds in Cs. assert (Wi := Within i Ii). assert (Wj := Within j Ij).
  destruct (Forall2_right _ _ _ i (keys_within prec a x Sane Tau Top) Ii) as (k & _ & _ & _ & _ & Ti).
  destruct (sane_are prec a x Sane true) as [_ OK]. assert (T0 := s_T A OK). unfold size_from.
  set (b := Rabs (s_of x j) + a_score a x j + common). assert (M1 := Rmax_l b (#top + common)).
  assert (M2 := Rmax_r b (#top + common)). assert (Sj := Rabs_bounds _ _ (Rle_refl (Rabs (s_of x j)))).
  apply Rabs_le_iff. unfold b in *. lra.
Qed.
Lemma most_lost_pos r ops : 0 <= most_lost A n r ops.
Proof.
  destruct (sane_are prec a x Sane true) as [_ OK].
  assert (Q := lost_most nat (fun _ => 0) A [] 0 0 0 0 n r ops OK ltac:(simpl; lia) ltac:(lia) ltac:(lia) ltac:(lia)).
  lra.
Qed.
End Proof.

Section Sound.
Variable prec : I.precision.
Variable c : split_claims.
Variable x : row.
Local Notation a := (of_parts c).
Local Notation A := (arith_of a x).
Local Notation J := (J x).
Local Notation "# f" := (number f) (at level 0).
Local Notation p := (prepared prec c x).
Hypothesis Sound : sound prec c x p = true.
Local Notation K := (nat * visible)%type (only parsing).
Local Notation n := (length J).
Local Notation r := (a_rescalings a + 1 + a_divisions a)%nat.
Local Notation ops := (merge_ops K (a_divisions a) J).
Local Notation G := (P A (w_l A) (kk K J r)).
Local Notation ML := (most_lost A n r ops).

Ltac arith := repeat (assumption || apply exactly_h || apply add_h || apply sub_h || apply mul_h || apply abs_h ||
  apply of_Z_h || apply one_h || apply of_nat_h || apply zero_h || apply expo_h).

(** What is asked before anything is computed. *)
Record asked : Prop := {
  f_sane : sane_claims prec a = true; f_log : not_negative (of_log c) = true;
  f_unit : le prec (exactly (a_u a)) (one prec) = true; f_divisions : (1 <= a_divisions a)%nat;
  f_tau : not_negative (r_tau x) = true; f_keys : r_keys x <> [];
  f_lengths : forall v, In v (r_keys x) -> length (fst (fst v)) = length (r_q x);
  f_top : I.upper_bounded (scores_of prec (keys_of prec a x)) = true; f_any : a_additions a = None }.
Lemma asked_is : asked.
Proof.
  assert (H := Sound). unfold sound in H. rewrite !andb_true_iff, !forallb_forall in H.
  destruct H as ((((((((((((Hn & Hs) & Hg) & Hu) & Hd) & Ht) & Hk) & Hl) & Htop) & _) & _) & _) & _).
  constructor; auto; [apply Nat.leb_le; auto|destruct (r_keys x); congruence| |apply any_order; auto].
  intros v Hv. apply Nat.eqb_eq, (Hl v Hv).
Qed.
Lemma A_sane : sane A.
Proof. apply (sane_are prec a x (f_sane asked_is) true). Qed.
Lemma some : J <> [].
Proof. apply (J_some x (f_keys asked_is) (f_lengths asked_is)). Qed.
Lemma keys_are : Forall2 (key_h _ (s_of x) value (a_score a x) A #(top_of prec (keys_of prec a x)))
  (keys_of prec a x) J.
Proof.
  destruct asked_is. apply (Forall2_impl _ _ _ _ (keys_within prec a x f_sane0 f_tau0 f_top0)).
  intros k j (H1 & H2 & H3 & H4 & H5). repeat split; auto. simpl. lra.
Qed.
Lemma operations_are : operations c x = ops.
Proof. unfold operations, merge_ops. rewrite rows_length. auto. Qed.
Lemma log_is : encloses (p_log p) (log_n c x).
Proof. destruct asked_is. apply log_h; auto. Qed.
Lemma log_ge1 : 1 <= log_n c x.
Proof. destruct asked_is. apply (log_n_ge1 prec); auto. Qed.
Lemma e1_is : encloses (p_e1 p) (eps1 A).
Proof. apply (eps1_h prec A A_sane), claims_of_h. Qed.
Lemma lost_is : encloses (p_lost p) ML.
Proof.
  rewrite <- operations_are. apply (most_lost_h prec _ _ _ _ _ A_sane _ _ _ _ _ (claims_of_h prec a x true) _ keys_are).
Qed.
Lemma grown_is : encloses (p_grown p) G.
Proof. apply (grown_sum_h prec _ _ _ _ _ _ _ (rescalings c) _ (claims_of_h prec a x true) _ keys_are). Qed.
Lemma gain_is : encloses (p_gain p) (gain A r).
Proof. apply (gain_of_all_h prec _ A_sane (rescalings c)), claims_of_h. Qed.
Lemma least_is : encloses (p_least p) (1 - eps A - ML).
Proof. assert (L := lost_is). simpl p_least. apply sub_h; auto. apply sub_h; [apply one_h|apply exactly_h]. Qed.
Lemma length_is : length (keys_of prec a x) = n.
Proof. apply (length_h _ _ _ _ _ _ _ _ keys_are). Qed.
(** What is asked of it. *)
Lemma least_pos : 0 < 1 - eps A - ML.
Proof.
  assert (H' := Sound). unfold sound in H'. rewrite !andb_true_iff in H'. destruct H' as (((_ & H) & _) & _).
  apply (lt_h prec _ _ _ _ H (zero_h) least_is).
Qed.
Lemma e1_le : eps1 A <= log_n c x.
Proof.
  assert (H' := Sound). unfold sound in H'. rewrite !andb_true_iff in H'. destruct H' as ((_ & H) & _).
  apply (le_h prec _ _ _ _ H e1_is log_is).
Qed.
Lemma n_positive : 1 <= INR n.
Proof. destruct asked_is. apply n_ge1; auto. Qed.
Lemma sum_at_most : G * (INR n * gain A r) + ML <= exp (log_n c x).
Proof.
  assert (H' := Sound). unfold sound in H'. rewrite !andb_true_iff in H'. destruct H' as (_ & H).
  assert (N := n_positive).
  unfold log_n. rewrite Rplus_assoc, exp_plus, exp_ln by lra. assert (L := lost_is). assert (Gr := grown_is).
  assert (Ga := gain_is). apply (le_h prec _ _ _ _ H); change (p_keys p) with (keys_of prec a x); rewrite length_is.
  - apply add_h; auto. apply mul_h; auto. apply mul_h; auto. apply of_nat_h.
  - apply mul_h; [apply of_nat_h|]. apply expo_h, add_h; [apply one_h|apply exactly_h].
Qed.
Lemma ML_pos : 0 <= ML.
Proof. destruct asked_is. apply (most_lost_pos prec c x); auto. Qed.
Lemma G_ge1 : 1 <= G.
Proof.
  assert (Pg := P_ge _ A_sane _ (wl_ge1 _ A_sane) (kk K J r)). assert (W1 := wl_ge1 _ A_sane). lra.
Qed.
Lemma room_is : encloses (p_room p) (G / (1 - eps A - ML) - 1).
Proof.
  assert (L := least_pos). assert (Gr := grown_is). assert (Le := least_is).
  change (p_room p) with (sub prec (div prec (p_grown p) (p_least p)) (one prec)).
  apply sub_h; [|apply one_h]. apply div_h; auto. lra.
Qed.
Lemma room_pos : 0 <= G / (1 - eps A - ML) - 1.
Proof.
  assert (L := least_pos). assert (M0 := ML_pos). assert (E := s_eps _ A_sane). assert (G1 := G_ge1).
  assert (Inv : 1 <= / (1 - eps A - ML)) by (rewrite <- Rinv_1; apply Rinv_le_contravar; lra).
  assert (1 <= G / (1 - eps A - ML)) by (unfold Rdiv; apply times_ge1; lra). lra.
Qed.
(** Of a room that is no less. *)
Lemma room_enough room : G / (1 - eps A - ML) - 1 <= room -> G <= exp room * (1 - eps A - ML).
Proof.
  intros H. assert (L := least_pos). assert (Q := exp_ge_1 room).
  assert (G / (1 - eps A - ML) * (1 - eps A - ML) = G) by (field; lra).
  assert (G / (1 - eps A - ML) * (1 - eps A - ML) <= exp room * (1 - eps A - ML)) by (apply Rmult_le_compat_r; lra).
  lra.
Qed.
Local Notation err := (lse_err #(of_log c) (u_s a) #(a_lam_exponent a) (log_n c x)).
Local Notation more :=
  (a_merged K A #(of_log c) (u_s a) #(a_lam_exponent a) (a_score a x) (size_from prec c x) (log_n c x)).
Lemma err_is q i : encloses i q -> encloses (i_lse_err prec c (p_log p) i) (err q).
Proof. destruct asked_is. apply err_h; auto. Qed.
Lemma size_of_top_is : encloses (i_size_of_top prec c x p) (size_of_top prec c x).
Proof.
  unfold i_size_of_top, size_of_top. apply add_h; [apply abs_h, exactly_h|apply common_h].
Qed.
Lemma unit_is : 0 <= u_s a <= 1.
Proof.
  destruct asked_is. destruct (sane_are prec a x f_sane0 true) as [[] _].
  split; auto. apply (le_h prec _ _ _ _ f_unit0 (exactly_h _) (one_h prec)).
Qed.
(** The evaluator, of any room and any bound of the references. *)
Lemma evaluated_is room whole iw : 0 <= #room -> encloses iw whole ->
  #(top_of prec (keys_of prec a x)) <= whole + #room ->
  let e := evaluated_with prec c x p room iw in
  encloses (v_exact e) (exact K (s_of x) value J) /\
  encloses (v_spread e) (spread K (s_of x) value (roomy A #room) more J whole r) /\
  encloses (v_numerator e) (Nd K (s_of x) value (roomy A #room) more J whole r +
    LNd K (s_of x) value (roomy A #room) more J whole r ops) /\
  encloses (v_off e)
    (UDd K (s_of x) (roomy A #room) more J whole r + LDd K (s_of x) (roomy A #room) more J whole r ops) /\
  encloses (v_least e) (low_d K (s_of x) (roomy A #room) more J whole r ops).
Proof.
  intros R0 Hw Ht. rewrite <- operations_are. destruct asked_is.
  assert (CRoom : claims_h (with_gap A #room) (with_room (claims_of prec a true (scored_keys prec a x)) room)).
  { destruct (claims_of_h prec a x true). constructor; simpl; auto. apply exactly_h. }
  destruct (evaluated_h prec K _ _ _ _ (with_gap_sane _ _ A_sane R0) J some whole _ (rescalings c)
    (operations c x) 0%nat (up A) _ _ _ _ (exactly_h (a_weight a))
    (exactly_h (reference_of (keys_of prec a x))) Hw CRoom _
    (merged_keys_h prec c x f_sane0 f_tau0 f_log0 f_keys0 f_lengths0 f_top0 room whole Ht))
    as (H1 & H2 & H3 & H4 & H5).
  split; [exact H1|]. split; [exact H2|]. split; [|split; [exact H4|exact H5]].
  replace (Nd K _ _ _ _ _ _ _) with (Nd_of K (s_of x) (roomy A #room) more J whole r 0 (up A) value
    (size K (s_of x) value (roomy A #room) more J whole r)); [exact H3|].
  unfold Nd_of, Nd, acc_of, acc. simpl (INR 0). rewrite Rplus_0_r. reflexivity.
Qed.
Lemma within_h t v : within prec x t = true -> encloses (snd t) v -> v <= #(r_allowed x).
Proof.
  unfold within. rewrite andb_true_iff. intros [_ H] Hv. apply (le_h prec _ _ _ _ H Hv (exactly_h _)).
Qed.

(** The interval that was chosen is one of them. *)
Lemma smallest_in l : l <> [] -> In (smallest prec l) l.
Proof.
  intros N. destruct l as [|i l]; [congruence|]. simpl smallest.
  enough (Q : forall l j, In (fold_left (smaller prec) l j) (j :: l)) by apply Q.
  clear. induction l as [|k l IH]; intros j; simpl; [auto|]. destruct (IH (smaller prec j k)) as [H|H].
  - unfold smaller in *. destruct (lower_than _ _ _); rewrite <- H; auto.
  - auto.
Qed.
Lemma size_from_is k j : encloses (k_s k) (s_of x j) -> encloses (k_a k) (a_score a x j) ->
  encloses (i_size_from prec c x (p_top p) k) (size_from prec c x j).
Proof.
  intros H1 H2. assert (C0 := common_h prec c x). unfold i_size_from, size_from. apply add_h; [|apply exactly_h].
  apply larger_h; arith.
Qed.
Lemma some_size : exists i, In i J /\ encloses (smallest prec (map (i_size_from prec c x (p_top p)) (p_keys p)))
  (size_from prec c x i).
Proof.
  assert (F : Forall2 (fun i j => encloses i (size_from prec c x j))
    (map (i_size_from prec c x (p_top p)) (p_keys p)) J).
  { apply (Forall2_map_left _ _ _ _ _ keys_are). intros k j (H1 & H2 & _). apply size_from_is; auto. }
  assert (N : map (i_size_from prec c x (p_top p)) (p_keys p) <> []).
  { intros E. rewrite E in F. inversion F as [Q|]. assert (S0 := some). congruence. }
  assert (I1 := smallest_in _ N). revert I1.
  generalize (smallest prec (map (i_size_from prec c x (p_top p)) (p_keys p))).
  intros i I1. clear N. induction F as [|i0 j0 l0 m0 H F IH]; [destruct I1|]. destruct I1 as [<-|I1].
  - exists j0. split; [left|]; auto.
  - destruct (IH I1) as (i1 & I2 & H2). exists i1. split; [right|]; auto.
Qed.

Section Kernel.
Variables (oh d mean : R) (sh : K -> R) (parts : list nat) (of_part : nat -> list K) (part : K -> nat)
  (h : nat -> handed).
Hypothesis Dd : Rabs d <= th_tau a.
Hypothesis Scored : forall j, In j J -> scored a x d j (sh j).
Hypothesis Partition : Permutation (flat_map of_part parts) J.
Hypothesis Part : forall q j, In q parts -> In j (of_part q) -> part j = q.
Local Notation Cs := (d * #(r_centre x)).
Local Notation top := #(top_of prec (keys_of prec a x)).
Lemma scores_off j : In j J -> Rabs (sh j - (s_of x j + Cs)) <= a_score a x j.
Proof. intros Hj. destruct asked_is. apply (scored_within prec a x); auto. Qed.
Lemma scores_below j : In j J -> s_of x j + a_score a x j <= top.
Proof.
  intros Hj. destruct asked_is. destruct (Forall2_right _ _ _ j (keys_within prec a x f_sane0 f_tau0 f_top0) Hj)
    as (k & _ & _ & _ & _ & H). auto.
Qed.
Lemma sizes_are i j m : In i J -> In j J -> sh j - T A <= m <= sh i -> Rabs m <= size_from prec c x j.
Proof.
  intros Ii Ij H. destruct asked_is. apply (reference_within prec c x) with (d := d) (sh := sh) (i := i); auto.
Qed.
Lemma top_size : Rabs (top + Cs) <= size_of_top prec c x.
Proof.
  unfold size_of_top. eapply Rle_trans; [apply Rabs_triang|]. apply Rplus_le_compat_l. unfold common.
  rewrite Rabs_mult. apply Rmult_le_compat_r; auto. apply Rabs_pos.
Qed.

Lemma divided_within : divided c x sh parts of_part h mean -> near #(a_out a) #(a_lam_out a) mean oh ->
  check_divided prec c x p = true -> Rabs (oh - exact K (s_of x) value J) <= #(r_allowed x).
Proof.
  intros (L & O & (M & w & y & order & Parts & Largest & AO) & Hq) Hoh Check. unfold check_divided in Check.
  set (room := I.upper (p_room p)) in *.
  assert (Bounded : I.upper_bounded (p_room p) = true).
  { assert (H := Sound). unfold sound in H. rewrite !andb_true_iff in H. tauto. }
  assert (Rm := upper_h _ _ Bounded room_is). fold room in Rm. assert (R0 := room_pos).
  assert (Top := top_size). assert (Lg := log_ge1). destruct asked_is.
  assert (Er : 0 <= err (size_of_top prec c x)).
  { apply (err_pos prec c x); auto. eapply Rle_trans; [apply Rabs_pos|apply Top]. }
  set (whole := top_merged #(of_log c) (u_s a) #(a_lam_exponent a) top (size_of_top prec c x) (log_n c x)).
  assert (Whole : encloses (add prec (add prec (exactly (p_top p)) (p_log p)) (i_lse_err prec c (p_log p)
    (i_size_of_top prec c x p))) whole).
  { apply add_h; [apply add_h; [apply exactly_h|apply log_is]|apply err_is, size_of_top_is]. }
  destruct (evaluated_is room whole _ ltac:(lra) Whole ltac:(unfold whole, top_merged; lra))
    as (H1 & H2 & H3 & H4 & H5).
  set (e := evaluated_with _ _ _ _ _ _) in *.
  assert (First : fst (finished prec e (v_off e) (v_least e) (i_Uf prec a) (i_lamf prec a)) = true)
    by (unfold within in Check; rewrite andb_true_iff in Check; tauto).
  destruct (finished_h prec K (s_of x) value more (roomy A #room) J whole r e _ _ _ _ _ _ _ _ _ H1 H2 H3 H4 H5
    (Uf_h prec a) (lamf_h prec a) First) as [Low Tol].
  eapply Rle_trans; [|apply (within_h _ _ Check Tol)].
  apply (merged_within _ (s_of x) sh value A (a_rescalings a) (a_divisions a) #(of_log c) (u_s a) #(a_lam_exponent a)
    A_sane eq_refl f_any0 (not_negative_h _ f_log0) unit_is f_divisions0) with (keys := of_part) (part := part) (h := h)
    (parts := parts) (Cs := Cs) (M := M) (w := w) (y := y) (order := order) (L := L) (O := O); auto.
  - apply scores_off.
  - apply scores_below.
  - apply sizes_are.
  - apply e1_le.
  - apply sum_at_most.
  - lra.
  - apply room_enough. auto.
  - intros q Iq. destruct (Parts q Iq) as (S1 & S2 & _). auto.
  - apply some.
  - intros q Iq. apply (Parts q Iq).
  - apply (Uf_pos prec a f_sane0).
  - apply (finish_near prec a f_sane0 (O / L) mean); auto.
Qed.

Lemma undivided_is_within : undivided c x sh parts of_part h mean -> near #(a_out a) #(a_lam_out a) mean oh ->
  check_undivided prec c x p = true -> Rabs (oh - exact K (s_of x) value J) <= #(r_allowed x).
Proof.
  intros (M & total & L & w & w' & y & order & Parts & Largest & Total & Above & AO) Hoh Check.
  unfold check_undivided in Check. rewrite !andb_true_iff in Check.
  destruct Check as ((((((((((Bg & Bp) & Bk) & Ex) & Better) & Thi) & Kept) & Gr) & Roo) & Off) & Fin).
  destruct some_size as (i0 & Ii0 & Small). apply Nat.leb_le in Ex.
  set (qt := i_Qt prec c x p) in *. set (grown := I.upper (sub prec (add prec _ _) _)) in *.
  set (part_ := I.upper (i_part prec c p)) in *. set (size := i_size_of_M prec c p qt) in *.
  set (guess := I.upper (mul prec _ _)) in *. set (kappa := I.upper (i_kappa _ _ _ _ _)) in *.
  set (me := i_merge_err _ _ _ _ _ _ _ _ _) in *. set (e := evaluated_with _ _ _ _ _ _) in *.
  set (off := add prec (v_off e) _) in *.
  destruct (asked_is) as [Fs Fg Fu Fd Ft Fk Fl Fto Fa].
  assert (Lg := log_is). assert (Lg1 := log_ge1). assert (E1h := e1_is). assert (Lo := lost_is).
  assert (Grh := grown_is). assert (Gah := gain_is). assert (Un := unit_is). assert (N1 := n_positive).
  assert (M0 := ML_pos). assert (G1 := G_ge1).
  assert (Eps := s_eps _ A_sane). assert (E0 := eps1_pos _ A_sane). assert (Lp := least_pos). assert (Rp := room_pos).
  assert (T0 := s_T _ A_sane). assert (Xr := s_xr _ A_sane). assert (Gl := not_negative_h _ Fg).
  (* the exponents' relative error *)
  assert (Th : encloses (i_exponent prec c) (thE A)) by apply power_less_one_h, exactly_h.
  assert (Th1 := lt_h prec _ _ _ _ Thi Th (one_h prec)). assert (Tu : u_s a <= thE A).
  { simpl. unfold thE_of, u_s. destruct (a_exponent a) as [|k]; [lia|]. simpl pow.
    assert (1 <= (1 + #(a_u a)) ^ k) by (apply pow_R1_Rle; unfold u_s in Un; lra).
    assert ((1 + #(a_u a)) * 1 <= (1 + #(a_u a)) * (1 + #(a_u a)) ^ k)
      by (apply Rmult_le_compat_l; unfold u_s in Un; lra).
    lra. }
  (* the sizes *)
  set (Qt := Rmax (size_of_top prec c x) (size_from prec c x i0)).
  assert (Qh : encloses qt Qt) by (apply larger_h; [apply size_of_top_is|auto]).
  assert (Q1 : size_of_top prec c x <= Qt) by apply Rmax_l. assert (Q2 : size_from prec c x i0 <= Qt) by apply Rmax_r.
  assert (Top := top_size). assert (Qt0 := Rle_trans _ _ _ (Rabs_pos _) (Rle_trans _ _ _ Top Q1)).
  assert (Erh := err_is Qt qt Qh). assert (Er0 := err_pos prec c x Fs Fg Fk Fl Qt Qt0).
  assert (Gro : G * gain A r + ML - 1 <= #grown).
  { apply (upper_h _ _ Bg). apply sub_h; [|apply one_h]. apply add_h; auto. apply mul_h; auto. }
  assert (Gr1 : 1 <= G * gain A r).
  { apply times_ge1; auto. apply exp_ge1. assert (X0 := X_pos _ A_sane r). assert (Te := s_thE _ A_sane).
    assert (O0 := s_off _ A_sane). assert (0 <= thE A * T A) by (apply Rmult_le_pos; lra). lra. }
  assert (GrL := le_h prec _ _ _ _ Gr (exactly_h _) (add_h prec _ _ _ _ (one_h prec) (exactly_h _))).
  assert (Kh : encloses (i_kept prec c p) ((1 - upd A) * (1 - u A) ^ kk K J r)).
  { unfold i_kept. change (length (p_keys p)) with (length (keys_of prec a x)). rewrite length_is.
    destruct (claims_of_h prec a x true). apply mul_h; [apply sub_h; [apply one_h|auto]|]. apply power_h, sub_h; auto.
    apply one_h. }
  assert (Kp := lt_h prec _ _ _ _ Kept zero_h Kh). set (kept := (1 - upd A) * (1 - u A) ^ kk K J r) in *.
  assert (Ph : (1 + ML / (1 - eps A)) / kept - 1 <= #part_).
  { apply (upper_h _ _ Bp). unfold i_part. apply sub_h; [|apply one_h]. apply div_h; [lra| |auto].
    apply add_h; [apply one_h|]. apply div_h; [lra|auto|]. apply sub_h; [apply one_h|apply exactly_h]. }
  assert (K1 : kept <= 1).
  { assert (U0 := s_u _ A_sane). assert (U1 := s_u1 _ A_sane). assert (D0 := s_upd _ A_sane).
    assert (D1 := s_upd1 _ A_sane). assert (Pw : (1 - u A) ^ kk K J r <= 1 ^ kk K J r) by (apply pow_incr; lra).
    rewrite pow1 in Pw. assert (0 <= (1 - u A) ^ kk K J r) by (apply pow_le; lra).
    apply Rle_trans with (1 * 1); [apply Rmult_le_compat; lra|lra]. }
  assert (MLe : 0 <= ML / (1 - eps A)) by (apply Rmult_le_pos; [auto|left; apply Rinv_0_lt_compat; lra]).
  assert (Pb : 0 <= #part_).
  { assert (1 <= / kept) by (rewrite <- Rinv_1; apply Rinv_le_contravar; lra).
    assert (1 <= (1 + ML / (1 - eps A)) / kept) by (unfold Rdiv at 1; apply times_ge1; lra). lra. }
  assert (Hb : 1 + ML / (1 - eps A) <= exp #part_ * kept).
  { assert (Q := exp_ge_1 #part_). assert ((1 + ML / (1 - eps A)) / kept * kept = 1 + ML / (1 - eps A)) by (field; lra).
    assert ((1 + ML / (1 - eps A)) / kept * kept <= exp #part_ * kept) by (apply Rmult_le_compat_r; lra). lra. }
  assert (Rm := le_h prec _ _ _ _ Roo room_is (exactly_h _)).
  (* what the merge errs by *)
  set (x0 := eps1 A + xr A). assert (Xh : encloses (i_x0 prec c p) x0) by (apply add_h; [auto|apply exactly_h]).
  set (sz := size_of_M A #(of_log c) (u_s a) #(a_lam_exponent a) Qt (log_n c x)).
  assert (Sh : encloses size sz) by (unfold size, i_size_of_M, sz, size_of_M; arith).
  assert (Lnh : encloses (i_ln_n prec x) (ln (INR n))).
  { unfold i_ln_n. rewrite rows_length. apply logarithm_h; [lra|apply of_nat_h]. }
  assert (Szh : encloses (i_of_sizes prec c x size) (u_s a * sz + 2 * thE A * ln (INR n)))
    by (unfold i_of_sizes, u_s; arith).
  assert (Ofh : encloses (i_of_log prec c p)
    (merged_parts.of_log A #(of_log c) (u_s a) #(a_lam_exponent a) (log_n c x)))
    by (unfold i_of_log, merged_parts.of_log, u_s; arith).
  assert (Hx := X_h prec _ A_sane (rescalings c) _ (claims_of_h prec a x true)).
  assert (Far : encloses (i_far prec c p) (thE A * (log_n c x + T A) + X A r)) by (unfold i_far; arith).
  assert (Sph : encloses (i_spare prec c p grown guess) (spare A (a_rescalings a) (a_divisions a) (log_n c x) #guess
    #grown)) by (unfold i_spare, spare; arith).
  assert (Teh : encloses (i_total_err prec c p size)
    (total_err A #(of_log c) (u_s a) #(a_lam_exponent a) Qt (log_n c x)))
    by (unfold i_total_err, total_err, u_s; fold sz; arith).
  assert (Kah : (#guess + x0 + thE A * (#part_ + log_n c x + eps1 A)) / (1 - thE A) <= #kappa).
  { apply (upper_h _ _ Bk). unfold i_kappa. apply div_h; [lra| |apply sub_h; [apply one_h|auto]]. arith. }
  set (mr := merge_err K A (a_rescalings a) (a_divisions a) #(of_log c) (u_s a) #(a_lam_exponent a) J Qt (log_n c x)
    #guess #part_ #grown #kappa).
  assert (Mh : encloses me mr) by (unfold me, i_merge_err, mr, merge_err; fold x0 sz; unfold u_s in *; arith).
  assert (Emh := expo_h prec _ _ Mh).
  (* the evaluator *)
  set (whole := top_total K A (a_rescalings a) (a_divisions a) #(of_log c) (u_s a) #(a_lam_exponent a) J
    #(top_of prec (keys_of prec a x)) Qt (log_n c x) #guess #grown).
  assert (Whole : encloses (i_top_total prec c x p qt size grown guess) whole)
    by (unfold i_top_total, whole, top_total; unfold u_s in *; arith).
  assert (Ln0 : 0 <= ln (INR n)).
  { rewrite <- ln_1. destruct N1 as [N1|N1]; [left; apply ln_increasing; lra|rewrite <- N1; lra]. }
  assert (Gp : 0 <= #grown) by lra. assert (R0 : 0 <= #guess) by lra.
  assert (Xp := X_pos _ A_sane r). assert (Te := s_thE _ A_sane).
  assert (Lgp : 0 <= #(of_log c) * log_n c x) by (apply Rmult_le_pos; lra).
  assert (Ol : 0 <= merged_parts.of_log A #(of_log c) (u_s a) #(a_lam_exponent a) (log_n c x)).
  { unfold merged_parts.of_log.
    assert (0 <= u_s a * (2 * eps1 A + #(of_log c) * log_n c x)) by (apply Rmult_le_pos; lra).
    simpl in Xr. lra. }
  assert (Sz0 : 0 <= sz) by (unfold sz, size_of_M; lra).
  assert (Te0 : 0 <= total_err A #(of_log c) (u_s a) #(a_lam_exponent a) Qt (log_n c x)).
  { unfold total_err. fold sz. assert (0 <= u_s a * (sz + log_n c x)) by (apply Rmult_le_pos; lra). lra. }
  assert (P1 : 0 <= thE A * (log_n c x + T A)) by (apply Rmult_le_pos; lra).
  assert (P2 : 0 <= u_s a * log_n c x) by (apply Rmult_le_pos; lra).
  destruct (evaluated_is guess whole _ R0 Whole ltac:(unfold whole, top_total; lra)) as (H1 & H2 & H3 & H4 & H5).
  fold e in H1, H2, H3, H4, H5.
  set (UL := UDd K _ _ _ J whole r + LDd K _ _ _ J whole r ops) in *.
  assert (Oh : encloses off ((1 + UL) * exp mr - 1)).
  { replace ((1 + UL) * exp mr - 1) with (UL + (1 + UL) * (exp mr - 1)) by ring. unfold off. arith. }
  assert (Hsmall : (1 + UL) * exp mr <= exp #guess).
  { assert (Q := le_h prec _ _ _ _ Off (add_h prec _ _ _ _ (one_h prec) Oh) (expo_h prec _ _ (exactly_h _))). lra. }
  assert (Leh : encloses (div prec (v_least e) (expo prec me)) (low_d K (s_of x) (roomy A #guess) more J whole r ops *
    exp (- mr))).
  { rewrite exp_Ropp. apply div_h; auto. assert (Q := exp_pos mr). lra. }
  assert (First := Fin). unfold within in First. rewrite andb_true_iff in First. destruct First as [First _].
  destruct (finished_h prec K (s_of x) value more (roomy A #guess) J whole r e _ _ _ _ _ _ _ _ _ H1 H2 H3 Oh Leh
    (exactly_h (a_out a)) (exactly_h (a_lam_out a)) First) as [Low Tol].
  eapply Rle_trans; [|apply (within_h _ _ Fin Tol)].
  assert (Out : 0 <= #(a_out a)) by (destruct (sane_are prec a x Fs true) as [[] _]; auto).
  apply (undivided_within _ (s_of x) sh value A (a_rescalings a) (a_divisions a) #(of_log c) (u_s a)
    #(a_lam_exponent a) A_sane eq_refl Fa Gl Un Fd of_part part h parts Part J Partition (a_score a x)
    (size_from prec c x) Cs #(top_of prec (keys_of prec a x)) Qt (log_n c x) scores_off scores_below sizes_are)
    with (M := M) (total := total)
    (L := L) (O := mean) (order := order) (w := w) (w2 := w') (y2 := y) (kappa := #kappa) (b := #part_)
    (grown := #grown); auto.
  - lra.
  - apply e1_le.
  - apply sum_at_most.
  - apply room_enough. auto.
  - intros q Iq. destruct (Parts q Iq) as (S1 & S2 & _). auto.
  - exists i0. split; auto.
  - assert (Q := exp_ge_1 #grown). lra.
  - simpl (T A) in GrL. unfold log_n. simpl (T A). lra.
  - unfold log_n. lra.
  - apply (le_h prec _ _ _ _ Better (exactly_h _) (exactly_h _)).
  - apply some.
  - fold x0. assert (Q := Rmult_le_compat_r (1 - thE A) _ _ ltac:(lra) Kah).
    unfold Rdiv in Q. rewrite Rmult_assoc, Rinv_l, Rmult_1_r in Q by lra. lra.
  - assert (Q := exp_pos (- mr)). apply Rmult_lt_reg_r with (exp (- mr)); [auto|]. rewrite Rmult_0_l. exact Low.
  - intros q Iq. apply (Parts q Iq).
  - intros q Iq. apply (Parts q Iq).
Qed.
End Kernel.
End Sound.

(** No kernel of the class errs by more than was allowed of the row. *)
Lemma checked_row prec c x oh : check prec c x = true -> answers c x oh ->
  Rabs (oh - exact _ (s_of x) value (J x)) <= number (r_allowed x).
Proof.
  unfold check. rewrite !andb_true_iff. intros ((Sound & Divided) & Undivided).
  intros [(sh & d & parts & keys & part & h & mean & Dd & Sc & Pk & Pp & Ends & Hoh) |
          (sh & d & parts & keys & part & h & mean & Dd & Sc & Pk & Pp & Ends & Hoh)].
  - apply (divided_within prec c x Sound oh d mean sh parts keys part h); auto.
  - apply (undivided_is_within prec c x Sound oh d mean sh parts keys part h); auto.
Qed.
End CheckedSplit.
