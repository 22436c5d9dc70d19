(** Several heads with projections: what is wrong with the projected q, k and v, the row that a head answers for, and
    the projection of the heads' outputs. *)
From Coq Require Import Reals List Lra Lia Psatz Permutation ZArith.
From Flocq Require Import Core.
From Attest.Rounding Require Import basics scores score_variants merge bound kernels.
Import ListNotations.
Open Scope R_scope.

(** ** A linear map of numbers that are off by dx, with a bias, in any order, then stored: q, k and v of the inputs (dx
    = 0) and the result of the heads' outputs. *)
Section Linear.
Variables u lam u_st lam_st : R.
Hypothesis Hu : 0 <= u.
Hypothesis Hlam : 0 <= lam.
Hypothesis Hst : 0 <= u_st.
Variable C : Type.
Variables x xh dx w : C -> R.
Hypothesis Hx : forall c, Rabs (xh c - x c) <= dx c.
Variable cs : list C.
Variable bias : R.
Definition linear (x : C -> R) := Sum (fun c => x c * w c) cs + bias.
Definition linear_size := Sum (fun c => (Rabs (x c) + dx c) * Rabs (w c)) cs + Rabs bias.
Definition through := Sum (fun c => dx c * Rabs (w c)) cs.
(** dY of error-bounds.md 1.5, d + 1 terms. *)
Definition linear_error :=
  let g := (1 + u) ^ S (length cs) - 1 in
  through + g * linear_size + (1 + g) * (2 * INR (S (length cs)) * lam).
Definition stored_error := linear_error + u_st * (Rabs (linear x) + linear_error) + lam_st.

Theorem projection_error l y n c z : summed u lam l y n c ->
  Permutation l (bias :: map (fun c => xh c * w c) cs) -> near u_st lam_st y z -> Rabs (z - linear x) <= stored_error.
Proof.
  intros H Hp N. unfold stored_error. apply rounded_again with y; auto. unfold linear_error.
  apply (dot_error u lam Hu Hlam) in H.
  rewrite (Permutation_length Hp), !(fun f => Sum_perm f _ _ Hp) in H. simpl length in H. rewrite map_length in H.
  simpl in H. rewrite !Sum_map in H. change (match length cs with 0%nat => 1 | S _ => INR (length cs) + 1 end) with
    (INR (S (length cs))) in H. change ((1 + u) * (1 + u) ^ length cs) with ((1 + u) ^ S (length cs)) in H.
  assert (G := scores.pow_ge1 u Hu (S (length cs))). set (p := (1 + u) ^ S (length cs)) in *.
  assert (Size : Rabs bias + Sum (fun c => Rabs (xh c * w c)) cs <= linear_size).
  { unfold linear_size. rewrite Rplus_comm. apply Rplus_le_compat_r. apply Sum_le. intros i _. rewrite Rabs_mult.
    apply Rmult_le_compat_r; [apply Rabs_pos|]. replace (xh i) with (x i + (xh i - x i)) by ring.
    eapply Rle_trans; [apply Rabs_triang|]. assert (Q := Hx i). lra. }
  assert (Thr : Rabs (bias + Sum (fun c => xh c * w c) cs - linear x) <= through).
  { unfold linear, through. replace (bias + Sum (fun c => xh c * w c) cs - (Sum (fun c => x c * w c) cs + bias)) with
      (Sum (fun c => xh c * w c) cs - Sum (fun c => x c * w c) cs) by ring. rewrite <- Sum_minus.
    eapply Rle_trans; [apply Sum_abs|]. apply Sum_le. intros i _.
    replace (xh i * w i - x i * w i) with ((xh i - x i) * w i) by ring. rewrite Rabs_mult.
    apply Rmult_le_compat_r; [apply Rabs_pos|apply Hx]. }
  assert (T1 := Rmult_le_compat_l (p - 1) _ _ ltac:(lra) Size).
  set (S1 := bias + Sum (fun c => xh c * w c) cs) in *. set (A1 := Rabs bias + Sum (fun c => Rabs (xh c * w c)) cs) in
    *.
  replace (y - linear x) with ((y - S1) + (S1 - linear x)) by ring. eapply Rle_trans; [apply Rabs_triang|].
  replace (1 + (p - 1)) with p by ring. lra.
Qed.
End Linear.

(** ** Scores of q and k that are off by dq and dk. *)
Section Operands.
Variable K : Type.
Variables q qh dq : nat -> R.
Variables k kh dk : K -> nat -> R.
Variable b : K -> R.
Variable cs : list nat.
Variable tau : R.
Hypothesis Htau : 0 < tau.
Hypothesis Hq : forall c, Rabs (qh c - q c) <= dq c.
Hypothesis Hk : forall j c, Rabs (kh j c - k j c) <= dk j c.
Variable kbar : nat -> R.   (* any key: the weighted mean is the best *)
Definition score_of (q : nat -> R) (k : K -> nat -> R) j := tau * Sum (fun c => q c * k j c) cs + b j.
(** ain_j of error-bounds.md 1.5, and the shift that is common to all keys (1.7.23). *)
Definition from_operands j :=
  tau * Sum (fun c => dq c * Rabs (k j c - kbar c) + Rabs (q c) * dk j c + dq c * dk j c) cs.
Definition common_shift := tau * Sum (fun c => (qh c - q c) * kbar c) cs.
Definition shift_size := tau * Sum (fun c => dq c * Rabs (kbar c)) cs.

Theorem scores_of_operands j : Rabs (score_of qh kh j - (score_of q k j + common_shift)) <= from_operands j.
Proof.
  unfold score_of, common_shift, from_operands.
  replace (tau * Sum (fun c => qh c * kh j c) cs + b j - (tau * Sum (fun c => q c * k j c) cs + b j + tau * Sum (fun c
    =>
    (qh c - q c) * kbar c) cs)) with (tau * (Sum (fun c => qh c * kh j c) cs - Sum (fun c => q c * k j c) cs - Sum
      (fun c
    => (qh c - q c) * kbar c) cs)) by ring.
  rewrite <- !Sum_minus, Rabs_mult, (Rabs_pos_eq tau) by lra. apply Rmult_le_compat_l; [lra|].
  eapply Rle_trans; [apply Sum_abs|]. apply Sum_le. intros c _.
  replace (qh c * kh j c - q c * k j c - (qh c - q c) * kbar c) with
    ((qh c - q c) * (k j c - kbar c) + (q c + (qh c - q c)) * (kh j c - k j c)) by ring.
  assert (Q := Hq c). assert (Q2 := Hk j c). assert (P1 := Rabs_pos (qh c - q c)). assert (P2 := Rabs_pos (kh j c - k
    j c)).
  eapply Rle_trans; [apply Rabs_triang|]. rewrite !Rabs_mult.
  assert (T1 : Rabs (qh c - q c) * Rabs (k j c - kbar c) <= dq c * Rabs (k j c - kbar c))
    by (apply Rmult_le_compat_r; auto using Rabs_pos).
  assert (T2 : Rabs (q c + (qh c - q c)) * Rabs (kh j c - k j c) <= (Rabs (q c) + dq c) * dk j c).
  { apply Rmult_le_compat; auto using Rabs_pos. eapply Rle_trans; [apply Rabs_triang|]. lra. } lra.
Qed.

Lemma shift_is_small : Rabs common_shift <= shift_size.
Proof.
  unfold common_shift, shift_size. rewrite Rabs_mult, (Rabs_pos_eq tau) by lra. apply Rmult_le_compat_l; [lra|].
  eapply Rle_trans; [apply Sum_abs|]. apply Sum_le. intros c _. rewrite Rabs_mult.
  apply Rmult_le_compat_r; [apply Rabs_pos|apply Hq].
Qed.

(** X_j, |t_j|, |s_j| of the perturbed row in the terms of the exact one. *)
Lemma perturbed_products j : Sum (fun c => Rabs (qh c * kh j c)) cs <=
  Sum (fun c => (Rabs (q c) + dq c) * (Rabs (k j c) + dk j c)) cs.
Proof.
  apply Sum_le. intros c _. rewrite Rabs_mult. apply Rmult_le_compat; try apply Rabs_pos.
  - replace (qh c) with (q c + (qh c - q c)) by ring. eapply Rle_trans; [apply Rabs_triang|]. assert (Q := Hq c). lra.
  - replace (kh j c) with (k j c + (kh j c - k j c)) by ring. eapply Rle_trans; [apply Rabs_triang|].
    assert (Q := Hk j c). lra.
Qed.
Lemma perturbed_score_size j : Rabs (score_of qh kh j) <= Rabs (score_of q k j) + from_operands j + shift_size.
Proof.
  assert (Q := scores_of_operands j). assert (Q2 := shift_is_small).
  replace (score_of qh kh j) with ((score_of qh kh j - (score_of q k j + common_shift)) + (score_of q k j +
    common_shift))
    by ring.
  eapply Rle_trans; [apply Rabs_triang|]. assert (Q3 := Rabs_triang (score_of q k j) common_shift). lra.
Qed.

(** A kernel that answers for the perturbed row is off by that much more. *)
Lemma scores_for_the_exact_row sh a Cs j : Rabs (sh j - (score_of qh kh j + Cs)) <= a j ->
  Rabs (sh j - (score_of q k j + (common_shift + Cs))) <= a j + from_operands j.
Proof.
  intros H. replace (sh j - (score_of q k j + (common_shift + Cs))) with
    ((sh j - (score_of qh kh j + Cs)) + (score_of qh kh j - (score_of q k j + common_shift))) by ring.
  eapply Rle_trans; [apply Rabs_triang|]. assert (Q := scores_of_operands j). lra.
Qed.
End Operands.

(** ** Values that are off by dv: the kernel's sums are of vh, the answer is that of v. *)
Section Values.
Variable K : Type.
Variables s sh v vh dv : K -> R.
Hypothesis Hv : forall j, Rabs (vh j - v j) <= dv j.
Variable A : arith.
Hypothesis OK : sane A.
Variable a : K -> R.
Variable J : list K.
Variable Mp : R.
Variables kl cl ko co r : nat.
Variables bigl bigo : K -> bool.
Local Notation exact := (exact K s v J).
Local Notation pp := (pp K s A a J Mp r).
Local Notation most := (most K J).
Local Notation spread := (spread K s v A a J Mp r).
Local Notation low := (low K s A a J Mp kl cl r bigl).
Local Notation UD := (UD K s A a J Mp kl r bigl).
Local Notation LD := (LD K s A a J Mp kl cl r).

(** |v| + dv takes the place of |v|, and the mean of dv is added to the spread. *)
Definition at_most j := Rabs (v j) + dv j.
Definition spread_in := spread + Rmin (Sum (fun j => pp j * dv j) J) (most dv).
Definition EN_in := EN K s at_most A a J Mp ko co r bigo.
Definition pre_in := spread_in + (EN_in + (Rabs exact + spread_in) * (UD + LD)) / low.
Definition tolerance_in (Uf lamf : R) := (1 + Uf) * pre_in + Uf * Rabs exact + lamf.

Lemma dv_pos j : 0 <= dv j.
Proof. eapply Rle_trans; [apply Rabs_pos|apply Hv]. Qed.
Lemma vh_at_most j : Rabs (vh j) <= at_most j.
Proof.
  replace (vh j) with (v j + (vh j - v j)) by ring. eapply Rle_trans; [apply Rabs_triang|]. unfold at_most.
  assert (Q := Hv j). lra.
Qed.
Lemma at_most_abs j : Rabs (at_most j) = at_most j.
Proof. apply Rabs_pos_eq. unfold at_most. assert (Q := dv_pos j). assert (Q2 := Rabs_pos (v j)). lra. Qed.

Lemma pp_pos j : J <> [] -> 0 <= pp j.
Proof.
  intros NJ. unfold bound.pp. apply Rmin_glb; [lra|]. apply Rmult_le_pos.
  - apply Rmult_le_pos; left; [apply alpha_pos; auto|apply exp_pos].
  - left. apply Rinv_0_lt_compat. unfold Zm. apply Sum_pos; auto. intros.
    apply Rmult_lt_0_compat; [apply alpha_pos; auto|apply exp_pos].
Qed.
Lemma by_sum_larger w0 n big X1 : 1 <= w0 -> J <> [] ->
  by_sum K s A a J Mp r w0 n big vh X1 <= by_sum K s A a J Mp r w0 n big at_most X1.
Proof.
  intros W0 NJ. unfold by_sum. destruct (nearest A); [|lra]. apply Rle_min_compat; [lra|]. unfold refined_error.
  apply Rplus_le_compat_l. assert (P0 := P_ge A OK w0 W0 n). apply Rmult_le_compat_l; [lra|]. unfold small. apply
    Sum_le.
  intros j _. destruct (big j); [lra|].
  apply Rmult_le_compat_l; [apply pp_pos; auto|rewrite at_most_abs; apply vh_at_most].
Qed.
Lemma lost_larger w0 lamw n c : 0 <= w0 -> 0 <= lamw -> J <> [] ->
  lostJ K s A a J Mp r vh w0 lamw n c <= lostJ K s A a J Mp r at_most w0 lamw n c.
Proof.
  intros W0 L0 NJ. unfold lostJ. assert (G := arithmetic.pow_ge1 (u A) n (s_u A OK)).
  assert (Gr : 1 <= g A ^ r) by (apply pow_R1_Rle, g_ge1; auto).
  assert (T2 := twice_ge1 A). apply Rmult_le_compat_l; [lra|]. apply Rmult_le_compat_l; [apply Rmult_le_pos; lra|].
  apply Rplus_le_compat_r.
  apply Sum_le. intros j _. apply Rmult_le_compat_r; [|rewrite at_most_abs; apply vh_at_most].
  apply loss_pos; auto using part_pos, pp_pos.
Qed.

Theorem attention_of_perturbed_values tl to_ m l o Cs Uf lamf oh rl ro :
  J <> [] ->
  Permutation (map fst to_) J -> Permutation tl to_ ->
  sums K sh A (one K) (w_l A) (lampd A) tl m l kl rl cl -> (rl <= r)%nat ->
  sums K sh A vh (w_o A) ((1 + u A) * lamp A) to_ m o ko ro co -> (ro <= r)%nat ->
  (forall j, In j J -> Rabs (sh j - (s j + Cs)) <= a j) ->
  (forall j, In j J -> s j + a j <= Mp) ->
  (exists i, In i J /\ m <= sh i + gap A) ->
  0 < low ->
  0 <= Uf -> near Uf lamf (o / l) oh ->
  Rabs (oh - exact) <= tolerance_in Uf lamf.
Proof.
  intros NJ M Hp HL Hrl HO Hro Ha HM Hi Hd HUf Hoh.
  assert (Wo : 1 <= w_o A) by (assert (Q1 := s_up A OK); assert (Q2 := s_u A OK); unfold w_o; nra).
  assert (Lo : 0 <= (1 + u A) * lamp A) by (assert (Q1 := s_lamp A OK); assert (Q2 := s_u A OK); apply Rmult_le_pos;
    lra).
  assert (Ml : Permutation (map fst tl) J) by (eapply Permutation_trans; [apply Permutation_map; apply Hp|auto]).
  assert (Hm := reference_at_most K s sh A a J Mp Cs Ha m HM Hi).
  assert (Fkl := terms_known K sh A OK r _ _ _ _ _ _ _ _ _ (wl_ge1 A OK) (s_lampd A OK) HL Hrl).
  assert (Fk := terms_known K sh A OK r _ _ _ _ _ _ _ _ _ Wo Lo HO Hro).
  set (w := weight K sh m). set (W := Sum w tl).
  assert (HF : 1 <= W * F A r) by (apply (sum_at_least K sh A OK J r NJ tl m Ml Fkl Hi)).
  assert (EWo : Sum w to_ = W) by (unfold W; symmetry; apply Sum_perm; auto).
  destruct (weights_error K s sh A OK a J Mp kl cl r bigl Cs NJ Ha tl m l rl Ml Hm HL Hrl HF) as (PW & HL' & Hlow).
  change (0 < W) in PW. change (Rabs (l - W) <= W * (UD + LD)) in HL'. change (W * low <= l) in Hlow.
  assert (Share : forall t, In t to_ -> w t <= W * pp (fst t)).
  { rewrite <- EWo. apply (weight_share K s sh A OK a J Mp r Cs NJ Ha to_ m M Hm Fk). }
  assert (wp : forall t, 0 < w t) by (intros; apply exp_pos).
  (* the exact sum of the perturbed weights times vh, beside that of v *)
  set (N := Sum (fun t => w t * vh (fst t)) to_). set (N0 := Sum (fun t => w t * v (fst t)) to_).
  assert (HS0 : Rabs (N0 / W - exact) <= spread).
  { rewrite <- EWo. apply (mean_of_weights K s sh v A OK a J Mp r Cs NJ Ha to_ m M Hm Fk). }
  assert (HS1 : Rabs ((N - N0) / W) <= Rmin (Sum (fun j => pp j * dv j) J) (most dv)).
  { assert (B : Rabs ((N - N0) / W) <= Sum (fun t => w t * dv (fst t)) to_ / W).
    { unfold Rdiv. rewrite Rabs_mult, (Rabs_pos_eq (/ W)) by (left; apply Rinv_0_lt_compat; auto).
      apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat; auto|]. unfold N, N0. rewrite <- Sum_minus.
      eapply Rle_trans; [apply Sum_abs|]. apply Sum_le. intros t _.
      replace (w t * vh (fst t) - w t * v (fst t)) with (w t * (vh (fst t) - v (fst t))) by ring.
      rewrite Rabs_mult, (Rabs_pos_eq (w t)) by (left; auto). apply Rmult_le_compat_l; [left; auto|apply Hv]. }
    eapply Rle_trans; [apply B|]. apply Rmin_glb.
    - rewrite <- (over_terms K J to_ (fun j => pp j * dv j)) by auto.
      apply Rmult_le_reg_r with W; auto. unfold Rdiv. rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra.
      rewrite Rmult_comm, <- Sum_scal. apply Sum_le. intros t It. rewrite <- Rmult_assoc.
      apply Rmult_le_compat_r; [apply dv_pos|]. apply Share. auto.
    - assert (Q := mean_le K J to_ w dv M wp). rewrite EWo in Q. apply Q. auto. }
  assert (HS : Rabs (N / W - exact) <= spread_in).
  { replace (N / W - exact) with ((N0 / W - exact) + (N - N0) / W) by (field; lra).
    eapply Rle_trans; [apply Rabs_triang|]. unfold spread_in. lra. }
  (* sizes *)
  set (size := bound.size K s at_most A a J Mp r).
  assert (HA : Sum (fun t => w t * Rabs (vh (fst t))) to_ <= W * size).
  { assert (HA0 : Sum (fun t => w t * Rabs (vh (fst t))) to_ <= Sum (fun t => w t * Rabs (at_most (fst t))) to_).
    { apply Sum_le. intros t _. apply Rmult_le_compat_l; [left; auto|]. rewrite at_most_abs. apply vh_at_most. }
    eapply Rle_trans; [apply HA0|]. rewrite <- EWo.
    apply (sizes_le K s sh at_most A OK a J Mp r Cs NJ Ha to_ m M Hm Fk). }
  assert (HO' : Rabs (o - N) <= W * EN_in).
  { assert (Q := channel_bound K s sh A OK a J Mp r to_ m o vh (w_o A) _ ko ro co bigo W size Wo Lo Hro M HO PW HF
    Share HA).
    fold w in Q. fold N in Q. eapply Rle_trans; [apply Q|]. apply Rmult_le_compat_l; [lra|]. unfold EN_in, EN. fold
      size.
    assert (Fp : 0 < F A r) by apply exp_pos.
    assert (Q1 := by_sum_larger (w_o A) ko bigo size Wo NJ).
    assert (Q2 := lost_larger (w_o A) ((1 + u A) * lamp A) ko co ltac:(lra) Lo NJ).
    assert (Q3 := Rmult_le_compat_l _ _ _ (Rlt_le _ _ Fp) Q2). unfold lam_o. lra. }
  assert (PU : 0 <= UD + LD).
  { assert (0 <= W * (UD + LD)) by (eapply Rle_trans; [apply Rabs_pos|apply HL']).
    apply Rmult_le_reg_l with W; auto. lra. }
  assert (Q := quotient N W o l exact spread_in EN_in (UD + LD) low PW HS PU Hd HO' HL' Hlow). fold pre_in in Q.
  unfold near in Hoh. unfold tolerance_in.
  assert (Aol : Rabs (o / l) <= pre_in + Rabs exact).
  { replace (o / l) with ((o / l - exact) + exact) by lra. eapply Rle_trans; [apply Rabs_triang|]. lra. }
  replace (oh - exact) with ((oh - o / l) + (o / l - exact)) by lra. eapply Rle_trans; [apply Rabs_triang|].
  assert (Uf * Rabs (o / l) <= Uf * (pre_in + Rabs exact)) by (apply Rmult_le_compat_l; auto). lra.
Qed.
End Values.
