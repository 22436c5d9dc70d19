(** Kernels that subtract nothing from the scores: what core/bound computes for a claim of no maximum, or of none that
    is stated, is at least what is proved of one that subtracts nothing, and of one that subtracts a maximum. *)
From Coq Require Import Reals List Lra Lia Psatz Permutation.
From Attest.Rounding Require Import basics merge bound documented divided_first implemented.
Import ListNotations.
Open Scope R_scope.

Section Shift.
Variable K : Type.
Variables s vv : K -> R.
Variable A : arith.
Variables a ap : K -> R.        (* ap: with what all scores share (key_loops.inc, whole_error) *)
Variable J : list K.
Variable least_weight : R.      (* Profile: least_weight *)
Variable c_div : nat.
Variables u_o lam_o : R.
Local Notation n := (length J).
Local Notation e := (natural_whole a ap).
Local Notation M := (M K s e J).
Local Notation bottom := (bottom K s e J).
Local Notation no_residual := (no_residual K s A a ap J).

(** key_terms.cc, weights_stay_in_range: D6, beyond which a row of a kernel that takes no maximum is not judged. *)
Definition in_domain := ln least_weight + 1 <= bottom.
(** underflow_factor: what multiplies it there; errors: what D is at least. *)
Definition of_shift := if Rle_dec (ln least_weight + 1) bottom then Rmax 0 (- bottom) else 0.
Definition shifting : family := Family 0 true of_shift 0 0 0 0 0.

(** Exponents are the scores, but for what an underflow takes of them. *)
Definition with_nothing (top : R) : arith := {| u := u A; lam := lam A; thE := 0; xl := xl A; xr := xr A; T := top;
  gap := of_shift; off := 0; last := 0; eps := eps A; lame := lame A; up := up A; lamp := lamp A; upd := upd A;
  lampd := lampd A; nearest := nearest A; additions := additions A |}.
(** Two sums of such weights over the same keys in any orders, or of the depth that is declared, their quotient, stored.
    *)
Definition subtracts_nothing (sh : K -> R) (oh : R) := exists top tl to_ l o kl cl ko co quotient,
  0 <= top /\ J <> [] /\ Permutation (map fst to_) J /\ Permutation tl to_ /\
  sums K sh (with_nothing top) (one K) (w_l A) (lampd A) tl 0 l kl 0 cl /\ (cl <= 2 * n)%nat /\ shallow A 0 kl /\
  sums K sh (with_nothing top) vv (w_o A) ((1 + u A) * lamp A) to_ 0 o ko 0 co /\ (co <= 2 * n)%nat /\ shallow A 0 ko /\
  divided (u A) (lam A) c_div (o / l) quotient /\ near u_o lam_o quotient oh.
(** A kernel that may take no maximum. *)
Definition may_subtract_nothing (sh : K -> R) (oh : R) :=
  returns K vv A J 0 c_div u_o lam_o sh oh \/ (in_domain /\ subtracts_nothing sh oh).
(** Errors of scores: but for what is common to all, and with it. *)
Definition scores_within_whole (sh : K -> R) :=
  scores_within K s J a sh /\ forall j, In j J -> Rabs (sh j - s j) <= ap j.

Hypothesis OK : sane A.
Hypothesis Covered : covered A e.
Hypothesis Last : last A = 0.
Hypothesis Up_d : upd A <= up A.
Hypothesis Lamp_d : lampd A <= lamp A.
Hypothesis Out : 0 <= u_o /\ 0 <= lam_o.
Local Notation ops := (2 * n + 2 * 0)%nat.
Local Notation E := (E K s A e shifting J 0).
Local Notation allowed := (allowed K s vv A e shifting J 0 c_div u_o lam_o).
Hypothesis Denominator : 0 < denominator K s A e shifting J 0.

Section Row.
Hypothesis NJ : J <> [].
Hypothesis Not_negative : forall j, In j J -> 0 <= a j.
Lemma of_shift_pos : 0 <= of_shift.
Proof. unfold of_shift. destruct (Rle_dec _ _); [apply Rmax_l|lra]. Qed.
Lemma D_pos j : In j J -> (M - s j) + a j + 2 * T A <= D K s A e shifting J j /\ 0 <= (M - s j) + a j + 2 * T A.
Proof.
  intros Ij. unfold D. simpl. split; [apply Rmax_l|]. assert (Q := M_ge K s e J j Ij). simpl in Q.
  assert (P := Not_negative j Ij). assert (T0 := s_T A OK). lra.
Qed.
Lemma shifting_rest : rest A shifting 0 = X A 0.
Proof. rewrite <- rest_is. unfold rest. simpl. ring. Qed.
Lemma E_pos j : In j J -> 0 <= E j.
Proof.
  intros Ij. destruct (D_pos j Ij). assert (P := Not_negative j Ij). assert (X0 := X_pos A OK 0).
  assert (Th := s_thE A OK). unfold implemented.E. rewrite shifting_rest, (proj1 no_residual).
  simpl on_Q. simpl on_D. simpl err.
  assert (0 <= thE A * D K s A e shifting J j) by (apply Rmult_le_pos; lra). lra.
Qed.
Lemma conditions : merge (shifting) = 0 /\ 0 <= merge_operations shifting /\
  INR ops <= 2 * INR n + rescaling_operations shifting 0.
Proof.
  unfold rescaling_operations. simpl merge_operations. simpl merge. split; auto. split; [lra|].
  rewrite plus_INR, !mult_INR. simpl (INR 2). simpl (INR 0). lra.
Qed.

(** Of any arithmetic and errors of which E is made, as those of sums are no others. *)
Lemma shifting_allowed B b Mp room : sane B -> alike A B -> (forall j, E j = bound.E K s B b Mp 0 j) -> 1 <= room ->
  enough_factor K s A e shifting J 0 B room ->
  0 < low_d K s B b J Mp 0 ops /\
  documented K s vv B b J Mp 0 ops (Uf A c_div u_o) (lam_finish A c_div u_o lam_o) <= allowed.
Proof.
  intros OB Al Ex Rm Fa. destruct conditions as (C1 & C2 & C3). assert (Lose := proj2 (proj2 Covered)).
  assert (Me : 0 <= merge shifting) by (rewrite C1; lra). assert (F := Uf_pos A OK c_div u_o (proj1 Out)).
  assert (Ga : enough_gain K A e 0 B room) by (unfold enough_gain; simpl (INR 0); lra). split.
  - eapply Rlt_le_trans; [apply Denominator|].
    apply (denominator_le K s A e shifting J 0 OK NJ B b Mp ops room OB Al Ex Rm Fa Up_d Lamp_d Ga Lose Me C2 C3).
  - rewrite <- divided_last. unfold documented_of. rewrite <- (Rmult_1_l (LNd K s vv B b J Mp 0 ops)).
    replace (up B) with (up A) by (destruct Al as (_ & (-> & _) & _); auto).
    apply (allowed_at_least K s vv A e shifting J 0 OK NJ B b Mp ops room); auto using E_pos; lra.
Qed.

(** One that subtracts a maximum. *)
Definition b_of_maximum j := (E j - thE A * (M - s j + 2 * T A) - X A 0) / (1 + thE A).
Lemma maximum_E j : E j = bound.E K s A b_of_maximum M 0 j.
Proof.
  unfold bound.E, bound.D. rewrite (proj1 Covered). assert (Th := s_thE A OK).
  replace (b_of_maximum j + thE A * (M + 0 - (s j - b_of_maximum j) + 2 * T A) + X A 0) with
    ((1 + thE A) * b_of_maximum j + thE A * (M - s j + 2 * T A) + X A 0) by ring.
  unfold b_of_maximum. field. lra.
Qed.
Lemma maximum_b j : In j J -> a j <= b_of_maximum j.
Proof.
  intros Ij. unfold b_of_maximum. assert (Th := s_thE A OK). apply Rmult_le_reg_r with (1 + thE A); [lra|].
  unfold Rdiv. rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra. unfold implemented.E.
  rewrite shifting_rest, (proj1 no_residual). simpl on_Q. simpl on_D. simpl err. destruct (D_pos j Ij) as [D1 _].
  assert (Q := Rmult_le_compat_l (thE A) _ _ (proj1 Th) D1). lra.
Qed.
Lemma factor_more f : 0 <= f -> f <= factor K s A e usual J 0 -> f <= factor K s A e shifting J 0.
Proof.
  intros P H. eapply Rle_trans; [apply H|]. unfold factor, factor_grown.
  rewrite shifting_rest, rest_is, (proj2 no_residual), Rplus_0_r.
  simpl below. rewrite exp_0, Rmult_1_r. rewrite <- (Rmult_1_r (2 * _)) at 1. apply Rmult_le_compat_l.
  - assert (P1 := pow_ge1 (u A) (underflow_depth K A J 0) (s_u A OK)). assert (Up := s_up A OK).
    assert (P2 := pow_ge1 (lame A) 0 (s_lame A OK)). assert (Ex := exp_pos (2 * (thE A * T A + X A 0))). unfold pw.
    apply Rmult_le_pos; [lra|]. repeat (apply Rmult_le_pos; [|lra]). lra.
  - apply exp_ge1, of_shift_pos.
Qed.
Lemma of_maximum sh oh : scores_within K s J a sh -> returns K vv A J 0 c_div u_o lam_o sh oh ->
  Rabs (oh - exact K s vv J) <= allowed.
Proof.
  intros (Cs & Ha) (tl & to_ & m & l & o & kl & rl & cl & ko & ro & co & quotient & M1 & Hp & HL & Hrl & Hcl & Sl &
    HO & Hro & Hco & So & (i & Ii & Hi) & Hq & Hoh).
  assert (Fa : enough_factor K s A e shifting J 0 A (room A)).
  { assert (Al : last A <= at_last K s A e J) by (rewrite (proj2 no_residual), Last; lra).
    intros w0 k W Hk. assert (G := grown_le K s A e J 0 OK NJ Covered Al w0 k W Hk). apply factor_more; auto.
    assert (Rm := room_ge1 A OK). assert (Gp := grown_pos K J 0 A OK w0 ltac:(lra)).
    assert (0 <= room A * grown K A J 0 w0) by (apply Rmult_le_pos; lra). lra. }
  destruct (shifting_allowed A b_of_maximum M (room A) OK (covered_alike A) maximum_E (room_ge1 A OK) Fa) as [Low Al].
  eapply Rle_trans; [|apply Al].
  assert (Ml : Permutation (map fst tl) J) by (eapply Permutation_trans; [apply Permutation_map, Hp|auto]).
  assert (Fk := terms_known K sh A OK 0 _ _ _ _ _ _ _ _ _ (wl_ge1 A OK) (s_lampd A OK) HL Hrl).
  apply (documented_of_sums_by K s sh vv A OK (merge.plain K A) (plain_off K A OK) b_of_maximum b_of_maximum
    (plain_errors K A b_of_maximum) J M 0 ops tl to_ m l o Cs (Uf A c_div u_o)
    (lam_finish A c_div u_o lam_o) oh kl rl cl ko ro co NJ M1 Hp HL Hrl HO Hro); auto.
  - intros j Ij. eapply Rle_trans; [apply (Ha j Ij)|apply maximum_b; auto].
  - assert (A1 := Rabs_bounds _ _ (Ha i Ii)). assert (B1 := M_ge K s e J i Ii). rewrite (proj1 Covered).
    simpl in B1. lra.
  - apply (sum_at_least K sh A OK J 0 NJ tl m Ml Fk). exists i. split; auto. rewrite (proj1 Covered). lra.
  - apply (Uf_pos A OK); tauto.
  - apply (finish_near A OK c_div u_o lam_o Out _ quotient); auto.
Qed.

(** One that subtracts nothing: the largest weight may be as small as its score is below 0. *)
Section Nothing.
Variable top : R.
Hypothesis Top : 0 <= top.
Local Notation B := (with_nothing top).
Definition b_of_nothing j := E j - X A 0.
Lemma nothing_sane : sane B.
Proof. assert (P := of_shift_pos). destruct OK. constructor; simpl; auto; lra. Qed.
Lemma nothing_E Mp j : E j = bound.E K s B b_of_nothing Mp 0 j.
Proof. unfold bound.E, b_of_nothing. change (X B 0) with (X A 0). simpl (thE B). ring. Qed.
Lemma nothing_b j : In j J -> a j <= b_of_nothing j.
Proof.
  intros Ij. destruct (D_pos j Ij). assert (Th := s_thE A OK). unfold b_of_nothing, implemented.E.
  rewrite shifting_rest, (proj1 no_residual). simpl on_Q. simpl on_D. simpl err.
  assert (0 <= thE A * D K s A e shifting J j) by (apply Rmult_le_pos; lra). lra.
Qed.
Lemma nothing_factor : enough_factor K s A e shifting J 0 B 1.
Proof.
  intros w0 k [W1 W2] Hk. rewrite Rmult_1_l. unfold grown, factor, factor_grown, pw.
  change (hk K B J 0) with (hk K A J 0). rewrite shifting_rest, (proj2 no_residual), Rplus_0_r.
  simpl (u B). simpl (g B ^ 0). simpl ((1 + lame A) ^ 0). simpl below.
  assert (Fe : F B 0 = exp (X A 0) * exp of_shift).
  { unfold F. rewrite <- exp_plus. f_equal. change (X B 0) with (X A 0). simpl. ring. }
  rewrite Fe. assert (U0 := s_u A OK). assert (Up := s_up A OK). assert (X0 := X_pos A OK 0). assert (T0 := s_T A OK).
  assert (Th := s_thE A OK). assert (0 <= thE A * T A) by (apply Rmult_le_pos; lra).
  assert (Ex : exp (X A 0) <= exp (2 * (thE A * T A + X A 0))) by (apply exp_mono; lra).
  assert (Es := exp_pos of_shift). assert (E1 := exp_pos (X A 0)).
  assert (Wk : w0 * (1 + u A) ^ hk K A J 0 <= (1 + up A) * (1 + u A) ^ underflow_depth K A J 0).
  { assert (Pk := pow_ge1 (u A) (hk K A J 0) U0).
    apply Rle_trans with ((1 + up A) * (1 + u A) ^ k * (1 + u A) ^ hk K A J 0); [apply Rmult_le_compat_r; lra|].
    rewrite Rmult_assoc, <- pow_add. apply Rmult_le_compat_l; [lra|]. apply pow_mono; auto.
    apply depth_counts; auto. }
  assert (Wp : 0 <= w0 * (1 + u A) ^ hk K A J 0) by (apply Rmult_le_pos; [lra|apply Rfunctions.pow_le; lra]).
  set (big := exp (2 * (thE A * T A + X A 0))) in *. set (c := (1 + up A) * (1 + u A) ^ underflow_depth K A J 0) in *.
  assert (Q : exp (X A 0) * (w0 * (1 + u A) ^ hk K A J 0) <= big * c) by (apply Rmult_le_compat; lra).
  assert (Q1 := Rmult_le_compat_r (exp of_shift) _ _ (Rlt_le _ _ Es) Q). unfold c in *. lra.
Qed.
Lemma of_nothing sh oh l o tl to_ kl cl ko co quotient : in_domain -> scores_within_whole sh ->
  Permutation (map fst to_) J -> Permutation tl to_ ->
  sums K sh B (one K) (w_l A) (lampd A) tl 0 l kl 0 cl -> (cl <= 2 * n)%nat -> shallow A 0 kl ->
  sums K sh B vv (w_o A) ((1 + u A) * lamp A) to_ 0 o ko 0 co -> (co <= 2 * n)%nat -> shallow A 0 ko ->
  divided (u A) (lam A) c_div (o / l) quotient -> near u_o lam_o quotient oh ->
  Rabs (oh - exact K s vv J) <= allowed.
Proof.
  intros Hin ((Cs & Ha) & Hw) M1 Hp HL Hcl Sl HO Hco So Hq Hoh.
  assert (OB := nothing_sane). assert (Al : alike A B) by (unfold alike; simpl; auto 10).
  destruct (shifting_allowed B b_of_nothing (- Cs) 1 OB Al (nothing_E (- Cs)) (Rle_refl 1) nothing_factor) as [Low Le].
  eapply Rle_trans; [|apply Le].
  assert (Ml : Permutation (map fst tl) J) by (eapply Permutation_trans; [apply Permutation_map, Hp|auto]).
  assert (Fk := terms_known K sh B OB 0 _ _ _ _ _ _ _ _ _ (wl_ge1 B OB) (s_lampd B OB) HL (le_n 0)).
  assert (P := of_shift_pos).
  apply (documented_of_sums_by K s sh vv B OB (merge.plain K B) (plain_off K B OB) b_of_nothing b_of_nothing
    (plain_errors K B b_of_nothing) J (- Cs) 0 ops tl to_ 0 l o Cs (Uf A c_div u_o)
    (lam_finish A c_div u_o lam_o) oh kl 0 cl ko 0 co NJ M1 Hp HL (le_n 0) HO (le_n 0)); auto; try lia.
  - intros j Ij. eapply Rle_trans; [apply (Ha j Ij)|apply nothing_b; auto].
  - simpl gap. lra.
  - apply (sum_at_least K sh B OB J 0 NJ tl 0 Ml Fk).
    destruct (greatest_is K J (fun j => s j - ap j) NJ) as (i & Ii & Ei).
    change (greatest K J (fun j => s j - ap j)) with bottom in Ei. simpl in Ei. exists i. split; auto.
    assert (W3 := Rabs_bounds _ _ (Hw i Ii)). simpl gap. unfold of_shift, in_domain in *.
    destruct (Rle_dec _ _); [|lra]. assert (Q := Rmax_r 0 (- bottom)). lra.
  - apply (Uf_pos A OK); tauto.
  - apply (finish_near A OK c_div u_o lam_o Out _ quotient); auto.
Qed.
End Nothing.
End Row.

Theorem nothing_subtracted_tolerance sh oh : scores_within_whole sh -> may_subtract_nothing sh oh ->
  Rabs (oh - exact K s vv J) <= allowed.
Proof.
  intros Hs [Hr|(Hin & top & tl & to_ & l & o & kl & cl & ko & co & q & Pt & NJ & M1 & Hp & HL & Hcl & Sl & HO &
    Hco & So & Hq & Hoh)].
  - assert (NJ : J <> []).
    { destruct Hr as (tl & to_ & m & l & o & kl & rl & cl & ko & ro & co & q & _ & _ & _ & _ & _ & _ & _ & _ & _ & _ &
        (i & Ii & _) & _). intros Q. rewrite Q in Ii. destruct Ii. }
    destruct Hs as ((Cs & Ha) & Hw).
    assert (Pa : forall j, In j J -> 0 <= a j) by (intros j Hj; eapply Rle_trans; [apply Rabs_pos|apply (Ha j Hj)]).
    apply (of_maximum NJ Pa sh oh); auto. exists Cs. auto.
  - assert (Pa : forall j, In j J -> 0 <= a j).
    { destruct Hs as ((Cs & Ha) & _). intros j Hj. eapply Rle_trans; [apply Rabs_pos|apply (Ha j Hj)]. }
    apply (of_nothing NJ Pa top Pt sh oh l o tl to_ kl cl ko co q); auto.
Qed.
End Shift.
