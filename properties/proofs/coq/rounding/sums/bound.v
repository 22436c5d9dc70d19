(** The tolerance of one element of one row: quotient lemma and main theorem. *)
From Coq Require Import Reals List Lra Lia Psatz Permutation.
From Attest.Rounding Require Import basics merge.
Import ListNotations.
Open Scope R_scope.

(** P4: what errors eta of the exponents do to a weighted mean; only centred values enter. *)
Lemma centred {I} (l : list I) (al v eta E : I -> R) o :
  l <> [] -> (forall x, In x l -> 0 < al x) -> (forall x, In x l -> Rabs (eta x) <= E x) ->
  Sum (fun x => al x * (v x - o)) l = 0 ->
  let W := Sum (fun x => al x * exp (eta x)) l in
  let Z := Sum (fun x => al x * exp (- E x)) l in
  0 < Z /\ Z <= W /\
  Rabs (Sum (fun x => al x * exp (eta x) * v x) l / W - o) <= Sum (fun x => al x * (exp (E x) - 1) * Rabs (v x - o)) l
    / Z.
Proof.
  intros N P H C W Z.
  assert (Zp : 0 < Z) by (apply Sum_pos; auto; intros; apply Rmult_lt_0_compat; auto using exp_pos).
  assert (ZW : Z <= W).
  { apply Sum_le. intros x I1. apply Rmult_le_compat_l; [left; auto|]. apply exp_mono.
    assert (B := Rabs_bounds _ _ (H x I1)). lra. }
  split; auto. split; auto.
  set (Num := Sum (fun x => al x * exp (eta x) * v x) l).
  assert (E1 : Num - o * W = Sum (fun x => al x * (exp (eta x) - 1) * (v x - o)) l).
  { unfold Num, W. rewrite <- Sum_scal, <- Sum_minus.
    replace (Sum (fun x => al x * (exp (eta x) - 1) * (v x - o)) l)
      with (Sum (fun x => al x * (exp (eta x) - 1) * (v x - o)) l + Sum (fun x => al x * (v x - o)) l) by lra.
    rewrite <- Sum_plus. apply Sum_ext. intros. ring. }
  replace (Num / W - o) with ((Num - o * W) / W) by (field; lra).
  unfold Rdiv. rewrite Rabs_mult, (Rabs_pos_eq (/ W)) by (left; apply Rinv_0_lt_compat; lra).
  assert (B : Rabs (Num - o * W) <= Sum (fun x => al x * (exp (E x) - 1) * Rabs (v x - o)) l).
  { rewrite E1. eapply Rle_trans; [apply Sum_abs|]. apply Sum_le. intros x I1.
    rewrite !Rabs_mult, (Rabs_pos_eq (al x)) by (left; auto). apply Rmult_le_compat_r; [apply Rabs_pos|].
    apply Rmult_le_compat_l; [left; auto|]. apply expm1_abs; auto. }
  apply Rmult_le_compat; auto; [apply Rabs_pos | left; apply Rinv_0_lt_compat; lra |].
  apply Rinv_le_contravar; lra.
Qed.

(** A quotient of two perturbed sums: N, W > 0 exact, nh, lh computed. *)
Lemma quotient N W nh lh o S EN UD low : 0 < W ->
  Rabs (N / W - o) <= S -> 0 <= UD -> 0 < low ->
  Rabs (nh - N) <= W * EN -> Rabs (lh - W) <= W * UD -> W * low <= lh ->
  Rabs (nh / lh - o) <= S + (EN + (Rabs o + S) * UD) / low.
Proof.
  intros PW HS PD Hd HN HD Ll. assert (Pl : 0 < W * low) by (apply Rmult_lt_0_compat; lra).
  assert (Ao : Rabs (N / W) <= Rabs o + S).
  { replace (N / W) with ((N / W - o) + o) by lra. eapply Rle_trans; [apply Rabs_triang|]. lra. }
  set (o' := N / W) in *. assert (EqN : N = o' * W) by (unfold o'; field; lra).
  replace (nh / lh - o) with ((o' - o) + (nh - N - o' * (lh - W)) / lh) by (rewrite EqN; field; lra).
  eapply Rle_trans; [apply Rabs_triang|]. apply Rplus_le_compat; auto.
  unfold Rdiv. rewrite Rabs_mult, (Rabs_pos_eq (/ lh)) by (left; apply Rinv_0_lt_compat; lra).
  assert (Num : Rabs (nh - N - o' * (lh - W)) <= W * (EN + (Rabs o + S) * UD)).
  { unfold Rminus at 1. eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_Ropp, Rabs_mult.
    assert (Rabs o' * Rabs (lh - W) <= (Rabs o + S) * (W * UD)) by (apply Rmult_le_compat; auto using Rabs_pos). lra. }
  apply Rle_trans with (W * (EN + (Rabs o + S) * UD) * / (W * low)).
  - apply Rmult_le_compat; auto using Rabs_pos; [left; apply Rinv_0_lt_compat; lra|]. apply Rinv_le_contravar; auto.
  - right. field. split; lra.
Qed.

Section Bound.
Variable K : Type.
Variables s sh vv : K -> R.   (* exact score, computed score, value *)
Variable A : arith.
Hypothesis OK : sane A.
Variable xk : K -> R.         (* what the exponent of each key may be off by *)
Hypothesis Hxk : forall j, xk j <= xl A + off A.
Local Notation sums := (sums_by K sh A xk).
Local Notation known := (known_by K sh A xk).

(** Exact attention of the keys J. *)
Definition total (J : list K) := Sum (fun j => exp (s j)) J.
Definition alpha (J : list K) j := exp (s j) / total J.
Definition exact (J : list K) := Sum (fun j => alpha J j * vv j) J.

Lemma total_pos J : J <> [] -> 0 < total J.
Proof. intros. apply Sum_pos; auto. intros. apply exp_pos. Qed.
Lemma alpha_pos J j : J <> [] -> 0 < alpha J j.
Proof. intros. apply Rdiv_lt_0_compat; [apply exp_pos | apply total_pos; auto]. Qed.
Lemma alpha_sum J : J <> [] -> Sum (alpha J) J = 1.
Proof.
  intros N. assert (P := total_pos J N). unfold alpha.
  rewrite (Sum_ext _ (fun j => / total J * exp (s j))) by (intros; unfold Rdiv; ring).
  rewrite Sum_scal. fold (total J). field. lra.
Qed.

(** Subtracting any m from every score changes nothing. *)
Theorem shift_invariance J m : J <> [] ->
  Sum (fun j => exp (s j - m) * vv j) J / Sum (fun j => exp (s j - m)) J = exact J.
Proof.
  intros N. assert (P := total_pos J N). unfold exact, alpha, total in *. assert (Em := exp_pos m).
  rewrite (Sum_ext (fun j => exp (s j - m) * vv j) (fun j => / exp m * (exp (s j) * vv j)))
    by (intros; rewrite exp_minus; field; lra).
  rewrite (Sum_ext (fun j => exp (s j - m)) (fun j => / exp m * exp (s j))) by (intros; rewrite exp_minus; field; lra).
  rewrite (Sum_ext (fun j => exp (s j) / Sum (fun j0 => exp (s j0)) J * vv j)
                   (fun j => / Sum (fun j0 => exp (s j0)) J * (exp (s j) * vv j))) by (intros; field; lra).
  rewrite !Sum_scal. field. split; lra.
Qed.

(** ** The bound. a0: error of a score up to a shift common to all keys; Mp: at least every score and its error. a:
    with what xk is beyond xl. *)
Variables a a0 : K -> R.
Hypothesis Hab : forall j, (1 + thE A) * a0 j + xk j <= (1 + thE A) * a j + xl A.
Variable J : list K.
Variable Mp : R.
Variables kl cl ko co r : nat.        (* roundings and operations of the two sums, rescalings *)
Variables bigl bigo : K -> bool.      (* any partition of the keys, for sums to nearest *)
Definition w_l := 1 + upd A.
Definition w_o := (1 + up A) * (1 + u A).
Definition D j := Mp + gap A - (s j - a j) + 2 * T A.
Definition E j := a j + thE A * D j + X A r.
Definition Zm := Sum (fun j => alpha J j * exp (- E j)) J.
Definition ph j := alpha J j * (exp (E j) - 1) / Zm.
Definition pp j := Rmin 1 (alpha J j * exp (E j) / Zm).
Definition most (f : K -> R) := fold_right (fun j x => Rmax (f j) x) 0 J.
Definition spread := Rmin (Sum (fun j => ph j * Rabs (vv j - exact J)) J) (most (fun j => Rabs (vv j - exact J))).
Definition size := Rmin (Sum (fun j => pp j * Rabs (vv j)) J) (most (fun j => Rabs (vv j))).
(** Error of a sum of weights times v whose absolute terms sum up to X. *)
Definition count (big : K -> bool) := Sum (fun j => if big j then 1 else 0) J.
Definition small (big : K -> bool) (v : K -> R) := Sum (fun j => if big j then 0 else pp j * Rabs (v j)) J.
Definition by_sum w0 k big v X :=
  if nearest A then Rmin ((P A w0 k - 1) * X) (refined_error A w0 k r (count big) X (small big v)) else (P A w0 k - 1)
    * X.
(** The sum of weights is at least 1 / F. *)
Definition F := exp (2 * (thE A * T A) + X A r + (1 + thE A) * gap A + last A).
(** What is lost by underflow. The part of a factor below which its own is one of many: any would do. *)
Definition part := / (16 * (1 + INR r)).
Definition lostJ (v : K -> R) (w0 lamw : R) k c :=
  twice A * ((1 + u A) ^ k * g A ^ r * (Sum (fun j => Rabs (v j) * loss A part w0 lamw r (pp j)) J + INR c * lam A)).
Definition one := fun _ : K => 1.
Definition lam_l := lampd A.
Definition lam_o := (1 + u A) * lamp A.
Definition EN := by_sum w_o ko bigo vv size + F * lostJ vv w_o lam_o ko co.
Definition UD := by_sum w_l kl bigl one 1.
Definition LD := F * lostJ one w_l lam_l kl cl.
(** What the sum of weights cannot fall below, in units of itself. *)
Definition low := Rmax (1 - UD) ((2 - w_l) * (1 - u A) ^ kl) - LD.
Definition pre := spread + (EN + (Rabs (exact J) + spread) * (UD + LD)) / low.
Definition tolerance (Uf lamf : R) := (1 + Uf) * pre + Uf * Rabs (exact J) + lamf.

Lemma part_pos : 0 < part.
Proof. unfold part. assert (Ir := pos_INR r). apply Rinv_0_lt_compat. lra. Qed.
Lemma F_ge1 : 1 <= F.
Proof.
  destruct OK. assert (X0 := X_pos A OK r). assert (0 <= thE A * T A) by (apply Rmult_le_pos; lra).
  assert (0 <= (1 + thE A) * gap A) by (apply Rmult_le_pos; lra). apply exp_ge1. lra.
Qed.

Lemma most_ge f j : In j J -> f j <= most f.
Proof.
  unfold most. induction J as [|i l IH]; simpl; [intros []|]. intros [->|H]; [apply Rmax_l|].
  eapply Rle_trans; [apply IH; auto|apply Rmax_r].
Qed.

Lemma largest_score l : l <> [] -> exists i, In i l /\ forall j, In j l -> sh j <= sh i.
Proof.
  induction l as [|k l IH]; [congruence|]. intros _. destruct l as [|k' l'].
  - exists k. simpl. split; [auto|]. intros j [->|[]]. lra.
  - destruct (IH ltac:(congruence)) as (i & Ii & Hi). destruct (Rle_dec (sh i) (sh k)) as [Q|Q].
    + exists k. split; [simpl; auto|]. intros j [->|Hj]; [lra|]. assert (P := Hi j Hj). lra.
    + exists i. split; [simpl; auto|]. intros j [->|Hj]; [lra|auto].
Qed.
Lemma over_terms (ts : list (K * R)) (f : K -> R) : Permutation (map fst ts) J -> Sum (fun t => f (fst t)) ts = Sum f J.
Proof. intros H. rewrite <- (Sum_perm f _ _ H), Sum_map. auto. Qed.

Lemma mean_le (ts : list (K * R)) (w : K * R -> R) (f : K -> R) : Permutation (map fst ts) J -> (forall t, 0 < w t) ->
  0 < Sum w ts ->
  Sum (fun t => w t * f (fst t)) ts / Sum w ts <= most f.
Proof.
  intros M Pw PW. apply Rmult_le_reg_r with (Sum w ts); auto. unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra.
  rewrite Rmult_1_r, <- Sum_scal. apply Sum_le. intros t It. rewrite Rmult_comm. apply Rmult_le_compat_r; [left; auto|].
  apply most_ge. eapply Permutation_in; [apply M|]. apply in_map. auto.
Qed.

Lemma lost_le ts m v w0 lamw k c W : 1 <= w0 -> 0 <= lamw -> Permutation (map fst ts) J -> 0 < W -> 1 <= W * F ->
  (forall t, In t ts -> weight K sh m t <= W * pp (fst t)) ->
  twice A * lost K sh A part v w0 lamw ts m k r c <= W * (F * lostJ v w0 lamw k c).
Proof.
  intros W0 Lw M PW HF Hpp. assert (U0 := s_u A OK). assert (L0 := s_lam A OK).
  assert (G := pow_ge1 (u A) k U0). assert (Gr : 1 <= g A ^ r) by (apply pow_R1_Rle, g_ge1; auto).
  assert (Each : losses K sh A part v w0 lamw ts m r <=
    W * F * Sum (fun j => Rabs (v j) * loss A part w0 lamw r (pp j)) J).
  { rewrite <- (over_terms ts (fun j => Rabs (v j) * loss A part w0 lamw r (pp j))) by auto.
    rewrite <- Sum_scal. unfold losses. apply Sum_le. intros t It. assert (Ht := Hpp t It).
    assert (Wt := weight_pos K sh m t).
    assert (Pp : 0 <= pp (fst t)) by (apply Rmult_le_reg_l with W; auto; lra).
    assert (Q := loss_scale A OK part part_pos w0 lamw r _ (pp (fst t)) W F ltac:(lra) Lw ltac:(lra) F_ge1 HF Pp Ht).
    assert (Q2 := Rmult_le_compat_l _ _ _ (Rabs_pos (v (fst t))) Q). lra. }
  unfold lost, lostJ. set (V := losses K sh A part v w0 lamw ts m r) in *.
  set (V' := Sum (fun j => Rabs (v j) * loss A part w0 lamw r (pp j)) J) in *.
  assert (Lc : INR c * lam A <= W * F * (INR c * lam A))
    by (apply le_times; auto; apply Rmult_le_pos; auto using pos_INR).
  set (GQ := (1 + u A) ^ k * g A ^ r). assert (1 <= GQ) by (apply times_ge1; auto).
  assert (Q : GQ * (V + INR c * lam A) <= GQ * (W * F * (V' + INR c * lam A))) by (apply Rmult_le_compat_l; lra).
  assert (Q1 := Rmult_le_compat_l (twice A) _ _ ltac:(assert (T2 := twice_ge1 A); lra) Q). lra.
Qed.

(** One of the sums, in units of the sum W of the weights. *)
Lemma channel_bound_by ts m y v w0 lamw k r' c big W Xm : 1 <= w0 -> 0 <= lamw -> (r' <= r)%nat ->
  Permutation (map fst ts) J -> sums v w0 lamw ts m y k r' c ->
  0 < W -> 1 <= W * F -> (forall t, In t ts -> weight K sh m t <= W * pp (fst t)) ->
  Sum (fun t => weight K sh m t * Rabs (v (fst t))) ts <= W * Xm ->
  Rabs (y - Sum (fun t => weight K sh m t * v (fst t)) ts) <=
    W * (by_sum w0 k big v Xm + F * lostJ v w0 lamw k c).
Proof.
  intros W0 Lw Hr M H PW HF Hpp HX.
  destruct (sums_spec_by K sh A OK xk Hxk part part_pos v w0 lamw W0 Lw _ _ _ _ _ _ H) as [Fk C].
  apply (channel_mono K sh A OK part part_pos _ _ _ _ _ _ k r' c k r c) in C; auto.
  assert (Lost : twice A * lost K sh A part v w0 lamw ts m k r c <= W * (F * lostJ v w0 lamw k c)).
  { apply lost_le; auto. }
  assert (L0 := lost_pos K sh A OK part part_pos v w0 lamw ts m k r c ltac:(lra) Lw). assert (P0 := P_ge A OK w0 W0 k).
  assert (Pl : (P A w0 k - 1) * Sum (fun t => weight K sh m t * Rabs (v (fst t))) ts <= W * ((P A w0 k - 1) * Xm)).
  { assert ((P A w0 k - 1) * Sum (fun t => weight K sh m t * Rabs (v (fst t))) ts <= (P A w0 k - 1) * (W * Xm))
      by (apply Rmult_le_compat_l; lra). lra. }
  unfold by_sum. unfold twice in Lost. destruct (nearest A) eqn:RN.
  - assert (H' : sums v w0 lamw ts m y k r' c) by auto.
    assert (C2 := sums_error_by K sh A OK xk Hxk part part_pos v w0 lamw W0 Lw RN big _ _ _ _ _ _ H').
    unfold exact_sum, size_sum in C2.
    assert (Lm := lost_mono K sh A OK part part_pos v w0 lamw ts m k r' c k r c ltac:(lra) Lw (le_n _) Hr (le_n _)).
    set (Xt := Sum (fun t => weight K sh m t * Rabs (v (fst t))) ts) in *.
    assert (Ref : refined_error A w0 k r' (bigs K big ts) Xt (small_sum K sh v big m ts) <= W * refined_error A w0 k r
      (count big) Xm (small big v)).
    { unfold refined_error, bigs, count. rewrite (over_terms ts (fun j => if big j then 1 else 0)) by auto.
      set (b := Rmax 0 (Sum (fun j => if big j then 1 else 0) J - 1)). assert (b0 : 0 <= b) by apply Rmax_l.
      assert (u0 := s_u A OK). assert (Ir := le_INR _ _ Hr). assert (Ir' := pos_INR r').
      assert (Xp : 0 <= Xt) by (apply Sum_nonneg; intros; apply Rmult_le_pos; [left; apply exp_pos|apply Rabs_pos]).
      assert (Sm : small_sum K sh v big m ts <= W * small big v).
      { unfold small_sum, small. rewrite <- (over_terms ts (fun j => if big j then 0 else pp j * Rabs (v j))) by auto.
        rewrite <- Sum_scal. apply Sum_le. intros t It. destruct (big (fst t)); [lra|].
        rewrite <- Rmult_assoc. apply Rmult_le_compat_r; [apply Rabs_pos|auto]. }
      assert (uP : 0 <= u A * P A w0 k) by (apply Rmult_le_pos; lra).
      assert (Co : 0 <= u A * P A w0 k * (b + INR r')) by (apply Rmult_le_pos; lra).
      assert (Co2 : u A * P A w0 k * (b + INR r') <= u A * P A w0 k * (b + INR r))
        by (apply Rmult_le_compat_l; lra).
      assert ((w0 - 1 + u A * P A w0 k * (b + INR r')) * Xt <= (w0 - 1 + u A * P A w0 k * (b + INR r)) * (W * Xm))
        by (apply Rmult_le_compat; lra).
      assert ((2 * P A w0 k - w0) * small_sum K sh v big m ts <= (2 * P A w0 k - w0) * (W * small big v))
        by (apply Rmult_le_compat_l; lra). lra. }
    eapply Rle_trans; [apply C2|]. rewrite Rmult_plus_distr_l. apply Rplus_le_compat; [|lra].
    apply Rle_trans with (Rmin (W * ((P A w0 k - 1) * Xm)) (W * refined_error A w0 k r (count big) Xm (small big v))).
    + apply Rle_min_compat; auto.
    + right. unfold Rmin. destruct (Rle_dec _ _) as [x|x], (Rle_dec _ _) as [y0|y0]; auto; exfalso;
      [apply y0|apply x]; [apply Rmult_le_reg_l with W; auto | apply Rmult_le_compat_l; lra].
  - unfold channel in C. fold (P A w0 k) in C. lra.
Qed.

(** ** What is known of the terms of a sum. *)
Lemma wl_ge1 : 1 <= w_l.
Proof. assert (Q := s_upd A OK). unfold w_l. lra. Qed.
Lemma wo_ge1 : 1 <= w_o.
Proof. assert (Q1 := s_up A OK). assert (Q2 := s_u A OK). unfold w_o. apply times_ge1; lra. Qed.
Lemma lamw_o_pos : 0 <= (1 + u A) * lamp A.
Proof. assert (Q1 := s_lamp A OK). assert (Q2 := s_u A OK). apply Rmult_le_pos; lra. Qed.
Lemma terms_known_by v w0 lamw ts m y k r' c : 1 <= w0 -> 0 <= lamw -> sums v w0 lamw ts m y k r' c ->
  (r' <= r)%nat -> forall t, In t ts -> known m r t.
Proof.
  intros W L H Hr t It. destruct (sums_spec_by K sh A OK xk Hxk part part_pos v w0 lamw W L _ _ _ _ _ _ H) as [Fk _].
  rewrite Forall_forall in Fk. apply (known_mono K sh A OK xk m r' r t); auto.
Qed.

Section Reference.
Variable Cs : R.   (* a shift that all scores share *)
Hypothesis NJ : J <> [].
Hypothesis Ha : forall j, In j J -> Rabs (sh j - (s j + Cs)) <= a0 j.

Section Terms.
(** The terms of a sum. Its reference may be above all scores, but not above Mp + gap. *)
Variable ts : list (K * R).
Variable m : R.
Hypothesis M : Permutation (map fst ts) J.
Hypothesis Hm : m <= Mp + gap A + Cs.
Hypothesis Fk : forall t, In t ts -> known m r t.
Local Notation w := (weight K sh m).
Local Notation W := (Sum (weight K sh m) ts).

Lemma terms_ne : ts <> [].
Proof. intros E0. apply NJ, Permutation_nil. rewrite E0 in M. exact M. Qed.
Lemma keys_of_terms t : In t ts -> In (fst t) J.
Proof. intros It. eapply Permutation_in; [apply M|]. apply in_map. auto. Qed.
Lemma weights_pos : 0 < W.
Proof. apply Sum_pos; [apply terms_ne|]. intros. apply exp_pos. Qed.

Definition exponent_error (t : K * R) := sh (fst t) - (s (fst t) + Cs) + snd t.
Lemma exponent_error_known t : In t ts -> Rabs (exponent_error t) <= E (fst t).
Proof.
  intros It. destruct (Fk t It) as [K1 K2]. assert (A1 := Ha _ (keys_of_terms t It)). unfold exponent_error.
  eapply Rle_trans; [apply Rabs_triang|]. unfold E, D. assert (Aj := Rabs_bounds _ _ A1).
  assert (TE := s_thE A OK). assert (Q := Hab (fst t)).
  assert (thE A * (m - sh (fst t) + 2 * T A) <= thE A * (Mp + gap A - (s (fst t) - a0 (fst t)) + 2 * T A))
    by (apply Rmult_le_compat_l; lra). lra.
Qed.

Definition unit_of_weights := exp (Cs - m) * total J.
Lemma unit_of_weights_pos : 0 < unit_of_weights.
Proof. apply Rmult_lt_0_compat; [apply exp_pos | apply total_pos; auto]. Qed.
Lemma weight_is t : w t = unit_of_weights * (alpha J (fst t) * exp (exponent_error t)).
Proof.
  assert (PT := total_pos J NJ). unfold weight, unit_of_weights, alpha, exponent_error.
  replace (sh (fst t) - m + snd t) with ((Cs - m) + (s (fst t) + (sh (fst t) - (s (fst t) + Cs) + snd t))) by lra.
  rewrite !exp_plus. field. lra.
Qed.

Lemma sum_of_shares : 0 < Zm /\ Zm <= Sum (fun t => alpha J (fst t) * exp (exponent_error t)) ts.
Proof.
  split; [apply Sum_pos; auto; intros; apply Rmult_lt_0_compat; auto using exp_pos, alpha_pos|].
  unfold Zm. rewrite <- (over_terms ts (fun j => alpha J j * exp (- E j)) M). apply Sum_le. intros t It.
  apply Rmult_le_compat_l; [left; apply alpha_pos; auto|]. apply exp_mono.
  assert (B := Rabs_bounds _ _ (exponent_error_known t It)). lra.
Qed.
Lemma weights_are : W = unit_of_weights * Sum (fun t => alpha J (fst t) * exp (exponent_error t)) ts.
Proof. rewrite <- Sum_scal. apply Sum_ext. intros. apply weight_is. Qed.

(** No weight has a larger share of their sum than pp. *)
Lemma weight_share_by t : In t ts -> w t <= W * pp (fst t).
Proof.
  intros It. destruct sum_of_shares as (Zp & ZV). assert (PW := weights_pos). assert (Pk := unit_of_weights_pos).
  set (V := Sum (fun t => alpha J (fst t) * exp (exponent_error t)) ts) in ZV.
  assert (EW : W = unit_of_weights * V) by apply weights_are.
  apply Rmult_le_reg_l with (/ W); [apply Rinv_0_lt_compat; auto|].
  rewrite <- Rmult_assoc, Rinv_l, Rmult_1_l by lra. apply Rmin_glb.
  - apply Rmult_le_reg_l with W; auto. rewrite <- Rmult_assoc, Rinv_r, Rmult_1_l, Rmult_1_r by lra.
    apply Sum_In_le; auto. intros. left. apply exp_pos.
  - rewrite weight_is, EW.
    replace (/ (unit_of_weights * V) * (unit_of_weights * (alpha J (fst t) * exp (exponent_error t)))) with
      (alpha J (fst t) * exp (exponent_error t) * / V) by (field; lra).
    assert (P := alpha_pos J (fst t) NJ).
    apply Rmult_le_compat; [apply Rmult_le_pos; [lra|left; apply exp_pos] | left; apply Rinv_0_lt_compat; lra | |
      apply Rinv_le_contravar; auto].
    apply Rmult_le_compat_l; [lra|]. apply exp_mono. assert (B := Rabs_bounds _ _ (exponent_error_known t It)). lra.
Qed.

(** The exact mean by these weights. *)
Lemma mean_of_weights_by : Rabs (Sum (fun t => w t * vv (fst t)) ts / W - exact J) <= spread.
Proof.
  assert (PW := weights_pos). assert (Pk := unit_of_weights_pos). destruct sum_of_shares as (Zp & ZV).
  assert (Cz : Sum (fun t : K * R => alpha J (fst t) * (vv (fst t) - exact J)) ts = 0).
  { rewrite (over_terms ts (fun j => alpha J j * (vv j - exact J))) by auto.
    rewrite (Sum_ext _ (fun j => alpha J j * vv j - exact J * alpha J j)) by (intros; ring).
    rewrite Sum_minus, Sum_scal, alpha_sum by auto. unfold exact. ring. }
  destruct (centred ts (fun t => alpha J (fst t)) (fun t => vv (fst t)) exponent_error (fun t => E (fst t)) (exact J))
    as (_ & _ & S1); auto using terms_ne, exponent_error_known; [intros; apply alpha_pos; auto|].
  rewrite (over_terms ts (fun j => alpha J j * exp (- E j)) M) in S1. fold Zm in S1.
  rewrite (over_terms ts (fun j => alpha J j * (exp (E j) - 1) * Rabs (vv j - exact J)) M) in S1.
  set (V := Sum (fun t => alpha J (fst t) * exp (exponent_error t)) ts) in ZV, S1.
  assert (EW : W = unit_of_weights * V) by apply weights_are.
  set (N := Sum (fun t => w t * vv (fst t)) ts).
  assert (EqN : N / W = Sum (fun t => alpha J (fst t) * exp (exponent_error t) * vv (fst t)) ts / V).
  { unfold N. rewrite (Sum_ext _ (fun t => unit_of_weights * (alpha J (fst t) * exp (exponent_error t) * vv (fst t))))
      by (intros; rewrite weight_is; ring). rewrite Sum_scal, EW. field. lra. }
  rewrite <- EqN in S1. clear EqN. apply Rmin_glb.
  - eapply Rle_trans; [apply S1|]. right. unfold Rdiv. rewrite Rmult_comm, <- Sum_scal. apply Sum_ext. intros.
    unfold ph. field. lra.
  - eapply Rle_trans; [|apply (mean_le ts w (fun j => Rabs (vv j - exact J))); auto; intros; apply exp_pos].
    replace (N / W - exact J) with (Sum (fun t => w t * (vv (fst t) - exact J)) ts / W).
    + unfold Rdiv. rewrite Rabs_mult, (Rabs_pos_eq (/ W)) by (left; apply Rinv_0_lt_compat; auto).
      apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat; auto|].
      eapply Rle_trans; [apply Sum_abs|]. right. apply Sum_ext. intros.
      rewrite Rabs_mult, (Rabs_pos_eq (w x)); auto. left. apply exp_pos.
    + rewrite (Sum_ext _ (fun t => w t * vv (fst t) - exact J * w t)) by (intros; ring).
      rewrite Sum_minus, Sum_scal. fold N. field. lra.
Qed.

Lemma sizes_le_by : Sum (fun t => w t * Rabs (vv (fst t))) ts <= W * size.
Proof.
  assert (PW := weights_pos). unfold size, Rmin at 1. destruct (Rle_dec _ _) as [_|_].
  - rewrite <- (over_terms ts (fun j => pp j * Rabs (vv j))) by auto. rewrite <- Sum_scal. apply Sum_le.
    intros t It. rewrite <- Rmult_assoc. apply Rmult_le_compat_r; [apply Rabs_pos|]. apply weight_share_by; auto.
  - assert (Q := mean_le ts w (fun j => Rabs (vv j)) M (fun _ => exp_pos _) PW).
    apply Rmult_le_reg_l with (/ W); [apply Rinv_0_lt_compat; auto|].
    rewrite <- Rmult_assoc, Rinv_l, Rmult_1_l by lra. rewrite Rmult_comm. exact Q.
Qed.

(** What the exponent of the key with the largest score may be off by. *)
Definition largest_off := forall i, In i J -> (forall j, In j J -> sh j <= sh i) -> xk i <= xl A + last A.
Lemma sum_at_least_by : largest_off -> (exists i, In i J /\ m <= sh i + gap A) -> 1 <= W * F.
Proof.
  intros HL (i0 & I0 & Hi0). destruct (largest_score J NJ) as (i & Ii & Most). assert (Hi := Most i0 I0).
  assert (HLi := HL i Ii Most). assert (PW := weights_pos). assert (TE := s_thE A OK). assert (T0 := s_T A OK).
  apply (Permutation_in _ (Permutation_sym M)) in Ii. apply in_map_iff in Ii. destruct Ii as (t & Et & It).
  assert (Wt : w t <= W) by (apply Sum_In_le; auto; intros; left; apply exp_pos).
  destruct (Fk t It) as [_ K2]. apply Rabs_bounds in K2. rewrite Et in K2.
  assert (L1 : exp (- (2 * (thE A * T A) + X A r + (1 + thE A) * gap A + last A)) <= w t).
  { unfold weight. apply exp_mono. rewrite Et.
    assert (thE A * (m - sh i) <= thE A * gap A) by (apply Rmult_le_compat_l; lra). lra. }
  rewrite exp_Ropp in L1. fold F in L1. assert (Fp : 0 < F) by apply exp_pos.
  apply Rmult_le_reg_r with (/ F); [apply Rinv_0_lt_compat; auto|].
  rewrite Rmult_assoc, Rinv_r, Rmult_1_l, Rmult_1_r by lra. lra.
Qed.
End Terms.

Lemma reference_at_most m : (forall j, In j J -> s j + a0 j <= Mp) -> (exists i, In i J /\ m <= sh i + gap A) ->
  m <= Mp + gap A + Cs.
Proof. intros HM (i & Ii & Hi). assert (Ai := Rabs_bounds _ _ (Ha _ Ii)). assert (Mi := HM _ Ii). lra. Qed.

(** The sum of weights, computed: how far it is from the exact one, and what it does not fall below. *)
Lemma weights_error_by tl m l rl : Permutation (map fst tl) J ->
  m <= Mp + gap A + Cs -> sums one w_l (lampd A) tl m l kl rl cl -> (rl <= r)%nat ->
  let W := Sum (weight K sh m) tl in 1 <= W * F ->
  0 < W /\ Rabs (l - W) <= W * (UD + LD) /\ W * low <= l.
Proof.
  intros Ml Hm HL Hrl W HF. assert (Wl := wl_ge1). assert (Ll := s_lampd A OK).
  assert (Fk := terms_known_by _ _ _ _ _ _ _ _ _ Wl Ll HL Hrl).
  assert (PW : 0 < W) by (apply (weights_pos tl m Ml)).
  assert (HL' : Rabs (l - W) <= W * (UD + LD)).
  { assert (Q := channel_bound_by tl m l one w_l (lampd A) kl rl cl bigl W 1 Wl Ll Hrl Ml HL PW HF).
    unfold one in Q at 2. rewrite (Sum_ext (fun t => weight K sh m t * 1) (weight K sh m)) in Q by (intros; ring).
    apply Q.
    - intros t It. apply weight_share_by; auto.
    - rewrite (Sum_ext _ (weight K sh m)) by (intros; unfold one; rewrite Rabs_R1; ring). unfold W. lra. }
  split; [auto|]. split; [auto|].
  assert (W2 : 0 <= 2 - w_l) by (assert (Q := s_upd1 A OK); unfold w_l; lra).
  assert (Q := sums_lower_by K sh A OK xk Hxk part part_pos one w_l (lampd A) Wl Ll _ _ _ _ _ _ (s_u1 A OK) W2
    (fun _ => eq_refl) HL).
  assert (Lm := lost_mono K sh A OK part part_pos one w_l (lampd A) tl m kl rl cl kl r cl ltac:(lra) Ll
    (le_n _) Hrl (le_n _)).
  assert (LJ : lost K sh A part one w_l (lampd A) tl m kl r cl <= W * LD).
  { assert (L0 := lost_pos K sh A OK part part_pos one w_l (lampd A) tl m kl r cl ltac:(lra) Ll).
    assert (E2 := lost_le tl m one w_l (lampd A) kl cl W Wl Ll Ml PW HF
      ltac:(intros t It; apply weight_share_by; auto)).
    assert (T2 := Rmult_le_compat_r _ _ _ L0 (twice_ge1 A)). unfold LD, lam_l. lra. }
  fold W in Q. apply Rabs_bounds in HL'. unfold low, Rmax. destruct (Rle_dec _ _); lra.
Qed.

(** A sum of weights times values over anything that is near the sum of weights. *)
Lemma mean_error_by ts m o ro l EN' DD lw Uf lamf oh : Permutation (map fst ts) J ->
  m <= Mp + gap A + Cs -> sums vv w_o ((1 + u A) * lamp A) ts m o ko ro co -> (ro <= r)%nat ->
  let W := Sum (weight K sh m) ts in 1 <= W * F ->
  EN <= EN' -> 0 <= DD -> 0 < lw -> Rabs (l - W) <= W * DD -> W * lw <= l ->
  0 <= Uf -> near Uf lamf (o / l) oh ->
  Rabs (oh - exact J) <=
    (1 + Uf) * (spread + (EN' + (Rabs (exact J) + spread) * DD) / lw) + Uf * Rabs (exact J) + lamf.
Proof.
  intros M Hm HO Hro W HF HEN PD Plw HL Hlow HUf Hoh. assert (Wo := wo_ge1). assert (Lo := lamw_o_pos).
  assert (Fk := terms_known_by _ _ _ _ _ _ _ _ _ Wo Lo HO Hro).
  assert (PW : 0 < W) by (apply (weights_pos ts m M)).
  assert (HS := mean_of_weights_by ts m M Hm Fk). fold W in HS.
  assert (HO' : Rabs (o - Sum (fun t => weight K sh m t * vv (fst t)) ts) <= W * EN').
  { apply Rle_trans with (W * EN); [|apply Rmult_le_compat_l; lra].
    apply (channel_bound_by ts m o vv w_o _ ko ro co bigo W size Wo Lo Hro M HO PW HF).
    - intros t It. apply weight_share_by; auto.
    - apply sizes_le_by; auto. }
  assert (Q := quotient _ W o l (exact J) spread _ DD lw PW HS PD Plw HO' HL Hlow).
  set (q := spread + (EN' + (Rabs (exact J) + spread) * DD) / lw) in *. unfold near in Hoh.
  assert (Aol : Rabs (o / l) <= q + Rabs (exact J)).
  { replace (o / l) with ((o / l - exact J) + exact J) by lra. eapply Rle_trans; [apply Rabs_triang|]. lra. }
  replace (oh - exact J) with ((oh - o / l) + (o / l - exact J)) by lra. eapply Rle_trans; [apply Rabs_triang|].
  assert (Uf * Rabs (o / l) <= Uf * (q + Rabs (exact J))) by (apply Rmult_le_compat_l; auto). lra.
Qed.
End Reference.

Theorem attention_error_by : largest_off -> forall tl to_ m l o Cs Uf lamf oh rl ro,
  J <> [] ->
  Permutation (map fst to_) J -> Permutation tl to_ ->
  sums one w_l (lampd A) tl m l kl rl cl -> (rl <= r)%nat ->
  sums vv w_o ((1 + u A) * lamp A) to_ m o ko ro co -> (ro <= r)%nat ->
  (forall j, In j J -> Rabs (sh j - (s j + Cs)) <= a0 j) ->
  (forall j, In j J -> s j + a0 j <= Mp) ->
  (exists i, In i J /\ m <= sh i + gap A) ->
  0 < low ->
  0 <= Uf -> near Uf lamf (o / l) oh ->
  Rabs (oh - exact J) <= tolerance Uf lamf.
Proof.
  intros HLi tl to_ m l o Cs Uf lamf oh rl ro NJ M Hp HL Hrl HO Hro Ha HM Hi Hd HUf Hoh.
  assert (Hm := reference_at_most Cs Ha m HM Hi).
  assert (Ml : Permutation (map fst tl) J) by (eapply Permutation_trans; [apply Permutation_map; apply Hp|auto]).
  assert (Fk := terms_known_by _ _ _ _ _ _ _ _ _ wl_ge1 (s_lampd A OK) HL Hrl).
  assert (HF := sum_at_least_by NJ tl m Ml Fk HLi Hi).
  destruct (weights_error_by Cs NJ Ha tl m l rl Ml Hm HL Hrl HF) as (PW & HD & Hl).
  rewrite (Sum_perm _ _ _ Hp) in HF, PW, HD, Hl. set (W := Sum (weight K sh m) to_) in *.
  assert (PD : 0 <= UD + LD).
  { apply Rmult_le_reg_l with W; auto. rewrite Rmult_0_r. eapply Rle_trans; [apply Rabs_pos|apply HD]. }
  apply (mean_error_by Cs NJ Ha to_ m o ro l EN (UD + LD) low); auto. lra.
Qed.
End Bound.

(** Where no exponent errs by anything of its own. *)
Section Plain.
Variable K : Type.
Variables s sh vv : K -> R.
Variable A : arith.
Hypothesis OK : sane A.
Variable a : K -> R.
Variable J : list K.
Local Notation none := (plain K A).
Lemma plain_errors j : (1 + thE A) * a j + none j <= (1 + thE A) * a j + xl A.
Proof. unfold plain. lra. Qed.
Lemma plain_largest : largest_off K sh A none J.
Proof. intros i _ _. assert (Q := s_last A OK). unfold plain. lra. Qed.
End Plain.
Definition terms_known K sh A OK := terms_known_by K sh A OK (plain K A) (plain_off K A OK).
Definition sum_at_least K sh A OK J r NJ ts m M Fk :=
  sum_at_least_by K sh A OK (plain K A) J r NJ ts m M Fk (plain_largest K sh A OK J).
Definition weights_error K s sh A OK a :=
  weights_error_by K s sh A OK (plain K A) (plain_off K A OK) a a (plain_errors K A a).
Definition mean_error K s sh vv A OK a :=
  mean_error_by K s sh vv A OK (plain K A) (plain_off K A OK) a a (plain_errors K A a).
Definition channel_bound K s sh A OK := channel_bound_by K s sh A OK (plain K A) (plain_off K A OK).
Definition weight_share K s sh A OK a := weight_share_by K s sh A OK (plain K A) a a (plain_errors K A a).
Definition mean_of_weights K s sh vv A OK a := mean_of_weights_by K s sh vv A OK (plain K A) a a (plain_errors K A a).
Definition sizes_le K s sh vv A OK a := sizes_le_by K s sh vv A OK (plain K A) a a (plain_errors K A a).
Definition attention_error K s sh vv A OK a J Mp kl cl ko co r bigl bigo :=
  attention_error_by K s sh vv A OK (plain K A) (plain_off K A OK) a a (plain_errors K A a) J Mp kl cl ko co r bigl
    bigo (plain_largest K sh A OK J).
