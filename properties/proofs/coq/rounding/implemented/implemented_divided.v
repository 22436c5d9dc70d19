(** Weights that are divided by their sum first: what core/bound computes for a kernel that claims that it may do so
    (norm_first) is at least what divided_first.v proves of one that does, and what is proved of one that divides
    last. *)
From Coq Require Import Reals List Lra Lia Psatz Permutation.
From Attest.Rounding Require Import basics merge bound documented divided_first implemented.
Import ListNotations.
Open Scope R_scope.

(** What is claimed of a kernel's arithmetic as its Profile has it, set_sums: with C46 in lam_p, so in lampd where
    rounded weights are summed, too. *)
Definition as_profile (A : arith) (summed : bool) : arith :=
  let lam_p := lamp A + (1 + up A) * lam A in {| u := u A; lam := lam A; thE := thE A; xl := xl A; xr := xr A; T := T A;
  gap := gap A; off := 0; last := 0; eps := eps A; lame := lame A; up := up A; lamp := lam_p;
  upd := if summed then up A else 0; lampd := if summed then lam_p else 0; nearest := nearest A;
  additions := None |}.
(** The same before weights are divided. *)
Definition summing_more (A : arith) (summed : bool) : arith := {| u := u A; lam := lam A; thE := thE A; xl := xl A;
  xr := xr A; T := T A; gap := gap A; off := 0; last := 0; eps := eps A; lame := lame A; up := up A;
  lamp := lamp A; upd := if summed then up A else 0; lampd := if summed then lamp A + (1 + up A) * lam A else 0;
  nearest := nearest A; additions := None |}.
(** row_bound.cc, Accumulation: norm_first, with c_div roundings. *)
Definition dividing (c_div : nat) : family := Family c_div false 0 0 0 0 0 0.

Section Divided.
Variable K : Type.
Variables s vv : K -> R.
Variable A : arith.       (* its weights: as they are stored *)
Variable summed : bool.   (* weights_in_denominator *)
Hypothesis OK : sane A.
Hypothesis Covered : in_any_order A.
Hypothesis Up_d : upd A = if summed then up A else 0.
Hypothesis Lamp_d : lampd A = if summed then lamp A else 0.
Variable c_div : nat.
Hypothesis Divisions : (1 <= c_div <= 3)%nat.
(** machine_checked.cc, division_is_unseen. *)
Hypothesis Narrow : (up A = 0 /\ lamp A = 0) \/ lam A * (2 + 2 * up A) <= up A * lamp A.
Hypothesis Lame : lam A <= lame A.
Variable a : K -> R.
Variable J : list K.
Variables u_o lam_o : R.
Hypothesis Out : 0 <= u_o /\ 0 <= lam_o.
Local Notation n := (length J).
Local Notation ops := (2 * n + 2 * 0)%nat.
Local Notation P := (as_profile A summed).
Local Notation first := (as_divided (summing_more A summed) c_div).
Local Notation M := (M K s (natural a) J).
Local Notation more := (dividing c_div).

Lemma lam_p_more : 0 <= (1 + up A) * lam A.
Proof. assert (Q := s_up A OK). assert (L := s_lam A OK). apply Rmult_le_pos; lra. Qed.
Lemma profile_sane : sane P.
Proof.
  assert (Q := lam_p_more). assert (Q1 := s_upd1 A OK). destruct OK.
  constructor; simpl; auto; try lra; destruct summed; lra.
Qed.
Lemma profile_in_any_order : in_any_order P.
Proof. destruct Covered as (G & _ & _ & _ & N). unfold in_any_order. simpl. auto. Qed.
Lemma profile_covered : covered P (natural a).
Proof. apply natural_covered; [apply profile_in_any_order|exact Lame]. Qed.

(** ** The bound *)
Local Notation denominator := (denominator K s P (natural a) more J 0).
Local Notation allowed := (allowed K s vv P (natural a) more J 0 c_div u_o lam_o).
Hypothesis Denominator : 0 < denominator.

Section Row.
Hypothesis NJ : J <> [].
Hypothesis Not_negative : forall j, In j J -> 0 <= a j.
Lemma profile_conditions : upd P <= up P /\ lampd P <= lamp P.
Proof.
  assert (Q := lam_p_more). assert (U := s_up A OK). assert (L := s_lamp A OK). simpl. destruct summed; lra.
Qed.
Lemma last_is : last P <= at_last K s P (natural a) J.
Proof. rewrite (proj2 (no_residual K s P a a J)). apply Rle_refl. Qed.
Lemma low_pos : 0 < low_d K s P a J M 0 ops.
Proof.
  assert (OP := profile_sane). assert (C := profile_covered). destruct profile_conditions as [C1 C2].
  eapply Rlt_le_trans; [apply Denominator|].
  apply (denominator_le K s P (natural a) usual J 0 OP NJ P a M ops (room P)); auto using covered_alike, room_ge1,
    grown_le, last_is, gain_le, usual_ops; try (simpl; lra); [|apply C].
  intros j. apply natural_E_is. apply C.
Qed.
Lemma dividing_le x Uf1 lamf : 0 <= Uf1 -> 1 <= x -> (1 + Uf1) * x <= 1 + Uf P c_div u_o ->
  lamf <= lam_finish P c_div u_o lam_o ->
  let Sp := spread K s vv P a J M 0 in
  (1 + Uf1) * (Sp + (Nd_of K s P a J M 0 c_div (up A) vv (size K s vv P a J M 0) +
    x * LNd K s vv P a J M 0 ops + (Rabs (exact K s vv J) + Sp) *
      (UDd K s P a J M 0 + LDd K s P a J M 0 ops)) / low_d K s P a J M 0 ops) +
    Uf1 * Rabs (exact K s vv J) + lamf <= allowed.
Proof.
  assert (OP := profile_sane). assert (C := profile_covered). destruct profile_conditions as [C1 C2].
  apply (allowed_at_least K s vv P (natural a) more J 0 OP NJ P a M ops (room P)); auto; try (simpl; lra).
  - apply covered_alike; auto.
  - exact (fun j => natural_E_is K s P a a J 0 j (proj1 C)).
  - exact (usual_E_pos K s P (natural a) J 0 OP Not_negative (nothing_folded K a a)).
  - apply room_ge1; auto.
  - exact (grown_le K s P (natural a) J 0 OP NJ C last_is).
  - apply gain_le. auto.
  - apply C.
  - exact (usual_ops K J 0).
Qed.

(** As [divided_first_documented] has it: a division is a rounding of what it divides. *)
Lemma divided_bound : documented_of K s vv first a J M 0 ops c_div (up A) u_o lam_o <= allowed.
Proof.
  unfold documented_of. cbv zeta.
  assert (L : LNd K s vv first a J M 0 ops = (1 + u A) ^ c_div * LNd K s vv P a J M 0 ops).
  { unfold LNd, lost_d.
    assert (W : documented.grown K first J 0 (w_o first) =
      (1 + u A) ^ c_div * documented.grown K P J 0 (w_o P)).
    { unfold documented.grown, w_o. change (F first 0) with (F P 0).
      change (hk K first J 0) with (hk K P J 0). simpl. ring. }
    rewrite W, Rmult_assoc. reflexivity. }
  rewrite L. apply (dividing_le ((1 + u A) ^ c_div) u_o lam_o); [tauto| | |].
  - apply pow_ge1, (s_u A OK).
  - unfold Uf, join, pw. simpl (u P). right. ring.
  - assert (F := Uf_pos P profile_sane c_div u_o (proj1 Out)). unfold lam_finish. assert (L0 := s_lam A OK).
    simpl (lam P). assert (0 <= INR c_div * lam A) by (apply Rmult_le_pos; auto using pos_INR).
    assert (0 <= Uf P c_div u_o * (INR c_div * lam A + lam_o)) by (apply Rmult_le_pos; lra). lra.
Qed.
(** Of those that divide last: nothing that norm_first adds makes it less. *)
Lemma last_bound : documented K s vv P a J M 0 ops (Uf P c_div u_o) (lam_finish P c_div u_o lam_o) <= allowed.
Proof.
  assert (F := Uf_pos P profile_sane c_div u_o (proj1 Out)). assert (U0 := s_u A OK). assert (Pu := s_up A OK).
  eapply Rle_trans; [|apply (dividing_le 1 (Uf P c_div u_o) (lam_finish P c_div u_o lam_o) F); lra].
  rewrite <- divided_last. unfold documented_of. rewrite Rmult_1_l. cbv zeta.
  assert (Il := Rinv_0_lt_compat _ low_pos). set (X := size K s vv P a J M 0).
  assert (X0 : 0 <= X) by (apply size_pos'; auto).
  assert (C0 := pw_pos P profile_sane (cN K J 0)). fold (gc K P J 0) in C0.
  assert (Ac : acc_of K s P a J M 0 0 vv X <= acc_of K s P a J M 0 c_div vv X).
  { unfold acc_of, refined. assert (Ne : nearest P = true) by apply Covered. rewrite Ne. apply Rle_min_compat.
    - apply Rmult_le_compat_r; auto. apply pw_mono; [apply profile_sane|lia].
    - apply Rmult_le_compat_l; [lra|]. apply Rplus_le_compat_r. apply Rmult_le_compat_r; auto.
      apply Rmult_le_compat_r; auto. assert (I := pos_INR c_div). simpl. lra. }
  assert (Nd : Nd_of K s P a J M 0 0 (up A) vv X <= Nd_of K s P a J M 0 c_div (up A) vv X).
  { unfold Nd_of. apply Rplus_le_compat_l, Rmult_le_compat_l; lra. }
  apply Rplus_le_compat_r, Rplus_le_compat_r, Rmult_le_compat_l; [lra|]. apply Rplus_le_compat_l.
  apply Rmult_le_compat_r; [lra|]. simpl (up P). lra.
Qed.
End Row.

(** ** Kernels *)
(** Such a kernel divides last, or each weight first. *)
Definition may_divide_first (sh : K -> R) (oh : R) := returns K vv A J 0 c_div u_o lam_o sh oh \/
  exists o, divides_first K sh vv A c_div J o /\ near u_o lam_o o oh.

Lemma returns_as_profile sh oh : returns K vv A J 0 c_div u_o lam_o sh oh -> returns K vv P J 0 c_div u_o lam_o sh oh.
Proof.
  intros (tl & to_ & m & l & o & kl & rl & cl & ko & ro & co & quotient & M1 & Hp & HL & Hrl & Hcl & Sl &
    HO & Hro & Hco & So & Hi & Hq & Hoh).
  exists tl, to_, m, l, o, kl, rl, cl, ko, ro, co, quotient. assert (L := lam_p_more). assert (U := s_u A OK).
  assert (Wl : w_l P = w_l A) by (unfold w_l; rewrite Up_d; auto).
  assert (L1 : lampd A <= lampd P) by (simpl; destruct summed; lra).
  assert (L2 : (1 + u A) * lamp A <= (1 + u P) * lamp P) by (simpl; apply Rmult_le_compat_l; lra).
  assert (SL := sums_more K sh A P (one K) (w_l A) (lampd A) (lampd P) tl m l kl rl cl eq_refl eq_refl eq_refl eq_refl
    eq_refl eq_refl eq_refl eq_refl eq_refl L1 HL).
  assert (SO := sums_more K sh A P vv (w_o A) _ _ to_ m o ko ro co eq_refl eq_refl eq_refl eq_refl
    eq_refl eq_refl eq_refl eq_refl eq_refl L2 HO).
  unfold returns, returns_by. rewrite Wl. auto 20.
Qed.
(** A sum of weights that allows more. *)
Lemma divides_as_profile sh o : divides_first K sh vv A c_div J o ->
  divides_first K sh vv (summing_more A summed) c_div J o.
Proof.
  intros (m & e & p & w & l & ol & oo & H1 & H2 & H3 & H4 & H5 & H6 & H7).
  assert (More : forall (leaf leaf' : K -> R -> Prop) l y, (forall j y, leaf j y -> leaf' j y) ->
    added K A leaf l y -> added K (summing_more A summed) leaf' l y).
  { intros leaf leaf' l' y' Le. induction 1 as [j y Hy|l1 l2 y1 y2 y A1 I1 A2 I2 Ad].
    - apply added_one. auto.
    - apply (added_two _ _ _ l1 l2 y1 y2 y); auto. }
  exists m, e, p, w, l, ol, oo. split; [exact H1|]. split; [exact H2|]. split; [exact H3|]. split.
  - refine (More _ _ _ _ _ H4). intros j y Hy. unfold rounded in *. eapply Rle_trans; [apply Hy|].
    apply Rplus_le_compat; [simpl; rewrite <- Up_d; lra|]. apply Rle_min_compat; [|lra].
    assert (Q := lam_p_more). simpl. rewrite Lamp_d. destruct summed; lra.
  - split; [exact H5|]. split; [exact H6|]. refine (More _ _ _ _ _ H7). auto.
Qed.

Theorem divided_first_tolerance sh oh : scores_within K s J a sh -> may_divide_first sh oh ->
  Rabs (oh - exact K s vv J) <= allowed.
Proof.
  assert (OP := profile_sane). assert (C := profile_covered). assert (Ne : nearest A = true) by apply Covered.
  intros Hs [Hr|(o & Ho & Hoh)].
  - apply returns_as_profile in Hr.
    assert (NJ : J <> []).
    { destruct Hr as (tl & to_ & m & l & o & kl & rl & cl & ko & ro & co & q & _ & _ & _ & _ & _ & _ & _ & _ & _ & _ &
        (i & Ii & _) & _). intros Q. rewrite Q in Ii. destruct Ii. }
    destruct (returns_documented K s vv P OP J 0 c_div u_o lam_o Out a sh oh profile_in_any_order Hs Hr (low_pos NJ))
      as (_ & Pa & B).
    eapply Rle_trans; [apply B|]. apply last_bound; auto.
  - apply divides_as_profile in Ho.
    assert (NJ : J <> []).
    { destruct Ho as (m & e & p & w & l & ol & oo & (i & Ii & _) & _). intros Q. rewrite Q in Ii. destruct Ii. }
    destruct Hs as (common & Hs).
    assert (Pa : forall j, In j J -> 0 <= a j) by (intros j Hj; eapply Rle_trans; [apply Rabs_pos|apply (Hs j Hj)]).
    eapply Rle_trans; [|apply (divided_bound NJ Pa)].
    assert (OS : sane (summing_more A summed)).
    { assert (Q := lam_p_more). assert (Q1 := s_upd1 A OK). destruct OK.
      constructor; simpl; auto; try lra; destruct summed; lra. }
    apply (divided_first_documented K s sh vv (summing_more A summed) OS Ne c_div Divisions Narrow a J M ops
      ltac:(lia) NJ common u_o lam_o o oh Ho Hs); auto.
    + intros j Hj. apply (M_ge K s (natural a)); auto.
    + exact (low_pos NJ).
    + tauto.
Qed.
End Divided.
