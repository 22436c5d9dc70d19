(** Every partial sum, weight and factor of a kernel of the class is in range where D1, D3 and D5 hold: any order, fused
    or not, stale maxima, running maxima and merges (error-bounds.md, section 2). *)
From Coq Require Import Reals List Lra Lia Psatz Permutation.
From Attest.Rounding Require Import basics scores merge bound.
Import ListNotations.
Open Scope R_scope.

(** D1 of a sum of products in any order, fused or not. *)
Section Dots.
Variables u lam H : R.
Hypothesis Hu : 0 <= u.
Hypothesis Hlam : 0 <= lam.
(** [summed], with every partial sum in range. *)
Inductive dot_within : list R -> R -> nat -> nat -> Prop :=
| dot_within_term x y : near u lam x y -> Rabs y <= H -> dot_within [x] y 1 1
| dot_within_add l1 l2 y1 y2 y k1 k2 c1 c2 :
    dot_within l1 y1 k1 c1 -> dot_within l2 y2 k2 c2 -> near u lam (y1 + y2) y -> Rabs y <= H ->
    dot_within (l1 ++ l2) y (S (Nat.max k1 k2)) (S (c1 + c2)).

Lemma summed_size l y k c : summed u lam l y k c -> Rabs y <= (1 + u) ^ k * (Sum Rabs l + INR c * lam).
Proof.
  intros D. assert (E := summed_error u lam Hu Hlam l y k c D). unfold sum_bound in E.
  assert (A : Rabs (Sum (fun x => x) l) <= Sum Rabs l) by apply Sum_abs.
  replace y with ((y - Sum (fun x => x) l) + Sum (fun x => x) l) by ring. eapply Rle_trans; [apply Rabs_triang|]. lra.
Qed.
Theorem dot_stays_within l y k c : summed u lam l y k c -> (1 + u) ^ k * (Sum Rabs l + INR c * lam) <= H ->
  dot_within l y k c.
Proof.
  intros D. assert (Pos : forall l, 0 <= Sum Rabs l) by (intros; apply Sum_nonneg; intros; apply Rabs_pos).
  induction D as [x y N|l1 l2 y1 y2 y k1 k2 c1 c2 D1 IH1 D2 IH2 N]; intros B.
  - apply dot_within_term; auto. eapply Rle_trans; [apply (summed_size _ _ _ _ (summed_term u lam x y N))|exact B].
  - assert (Y := summed_size _ _ _ _ (summed_add u lam _ _ _ _ _ _ _ _ _ D1 D2 N)).
    assert (Mono : forall k c X, (k <= S (Nat.max k1 k2))%nat -> (c <= S (c1 + c2))%nat -> 0 <= X ->
      X <= Sum Rabs (l1 ++ l2) -> (1 + u) ^ k * (X + INR c * lam) <= H).
    { intros k c X Hk Hc X0 HX. eapply Rle_trans; [|exact B]. assert (Q := scores.pow_le u Hu _ _ Hk).
      assert (Q1 := scores.pow_ge1 u Hu k). assert (I := le_INR _ _ Hc). assert (I0 := pos_INR c).
      assert (INR c * lam <= INR (S (c1 + c2)) * lam) by (apply Rmult_le_compat_r; auto).
      assert (0 <= INR c * lam) by (apply Rmult_le_pos; auto). apply Rmult_le_compat; lra. }
    rewrite Sum_app in *. assert (P1 := Pos l1). assert (P2 := Pos l2).
    apply (dot_within_add l1 l2 y1 y2); auto; [apply IH1|apply IH2|lra]; apply Mono; auto; try lia; lra.
Qed.
End Dots.

(** D3 and D5. *)
Section Within.
Variable K : Type.
Variable sh : K -> R.
Variable A : arith.
Hypothesis OK : sane A.
Variable v : K -> R.
Variables w0 lamw : R.
Hypothesis W : 1 <= w0.
Hypothesis Lw : 0 <= lamw.
Local Notation sums := (sums K sh A v w0 lamw).
Local Notation rescaled := (rescaled K).
Variables H Hp : R.   (* the largest numbers of the sums and of the weights *)

(** [sums], with every result on the way in range. *)
Inductive within : list (K * R) -> R -> R -> nat -> nat -> nat -> Prop :=
| within_key j m e p y :
    sh j - m <= T A ->
    Rabs (e - (sh j - m)) <= thE A * Rabs (sh j - m) + xl A ->
    exponential A e p ->
    Rabs (y - p * v j) <= ((w0 - 1) * p + Rmin lamw (w0 * p)) * Rabs (v j) + lam A ->
    Rabs p <= Hp -> Rabs y <= H ->
    within [(j, e - (sh j - m) + split A e p)] m y 0 0 1
| within_add ts1 ts2 m y1 y2 y k1 r1 c1 k2 r2 c2 :
    within ts1 m y1 k1 r1 c1 -> within ts2 m y2 k2 r2 c2 -> adds A y1 y2 y -> Rabs y <= H ->
    within (ts1 ++ ts2) m y (S (Nat.max k1 k2)) (Nat.max r1 r2) (S (c1 + c2))
| within_rescale ts m y k r c m' z p y' :
    within ts m y k r c -> m <= m' ->
    Rabs z <= thE A * (m' - m) + xr A + eps1 A -> Rabs (p - exp (m - m' + z)) <= Rmin (lame A) (exp (m - m' + z)) ->
    near (u A) (lam A) (p * y) y' ->
    Rabs p <= Hp -> Rabs y' <= H ->
    within (rescaled z ts) m' y' (S k) (S r) (S c).

Definition size_of (ts : list (K * R)) := Sum (fun t => Rabs (v (fst t))) ts.
(** What underflow may have taken, however large the weights are: of a key by its exponential, by storing its weight,
    and by each rescaling. *)
Definition most_of_key r := w0 * lame A + lamw + INR r * (lame A * (w0 * gain A r)).
Definition most_lost ts k r c := (1 + u A) ^ k * g A ^ r * (size_of ts * most_of_key r + INR c * lam A).
Definition most ts k r c := P A w0 k * (gain A r * size_of ts) + most_lost ts k r c.

Lemma size_of_pos ts : 0 <= size_of ts.
Proof. apply Sum_nonneg. intros. apply Rabs_pos. Qed.
Lemma most_of_key_mono r r' : (r <= r')%nat -> 0 <= most_of_key r <= most_of_key r'.
Proof.
  intros Hr. destruct OK. assert (G := gain_mono A OK _ _ Hr). assert (Gp := gain_pos A r). assert (I := le_INR _ _ Hr).
  assert (I0 := pos_INR r). assert (0 <= w0 * lame A) by (apply Rmult_le_pos; lra).
  assert (0 <= lame A * (w0 * gain A r)) by (repeat apply Rmult_le_pos; lra).
  assert (0 <= INR r * (lame A * (w0 * gain A r))) by (apply Rmult_le_pos; lra).
  assert (lame A * (w0 * gain A r) <= lame A * (w0 * gain A r')) by (repeat apply Rmult_le_compat_l; lra).
  assert (INR r * (lame A * (w0 * gain A r)) <= INR r' * (lame A * (w0 * gain A r'))) by (apply Rmult_le_compat; lra).
  unfold most_of_key. lra.
Qed.
Lemma most_lost_mono ts ts' k k' r r' c c' : size_of ts <= size_of ts' -> (k <= k')%nat -> (r <= r')%nat ->
  (c <= c')%nat -> 0 <= most_lost ts k r c <= most_lost ts' k' r' c'.
Proof.
  intros S Hk Hr Hc. unfold most_lost. assert (u0 := s_u A OK). assert (l0 := s_lam A OK).
  assert (Q := pow_mono (u A) _ _ u0 Hk). assert (Q1 := pow_ge1 (u A) k u0). assert (P1 := size_of_pos ts).
  assert (G1 := g_ge1 A OK). assert (Gr : g A ^ r <= g A ^ r') by (apply Rle_pow; auto).
  assert (Gr1 : 1 <= g A ^ r) by (apply pow_R1_Rle; auto). assert (M := most_of_key_mono _ _ Hr).
  assert (I := le_INR _ _ Hc). assert (I0 := pos_INR c).
  assert (L : 0 <= size_of ts * most_of_key r + INR c * lam A)
    by (apply Rplus_le_le_0_compat; apply Rmult_le_pos; lra).
  assert (GG : 0 <= (1 + u A) ^ k * g A ^ r) by (apply Rmult_le_pos; lra).
  split; [apply Rmult_le_pos; auto|]. apply Rmult_le_compat; auto; [apply Rmult_le_compat; lra|].
  apply Rplus_le_compat; [apply Rmult_le_compat; lra|apply Rmult_le_compat_r; lra].
Qed.
Lemma most_mono ts ts' k k' r r' c c' : size_of ts <= size_of ts' -> (k <= k')%nat -> (r <= r')%nat -> (c <= c')%nat ->
  most ts k r c <= most ts' k' r' c'.
Proof.
  intros S Hk Hr Hc. unfold most. assert (u0 := s_u A OK). assert (G := gain_mono A OK _ _ Hr).
  assert (Gp := gain_pos A r). assert (Q := pow_mono (u A) _ _ u0 Hk). assert (Q1 := pow_ge1 (u A) k u0).
  assert (P1 := size_of_pos ts). apply Rplus_le_compat; [|apply most_lost_mono; auto].
  unfold P. apply Rmult_le_compat; [apply Rmult_le_pos; lra|apply Rmult_le_pos; lra|apply Rmult_le_compat_l; lra|].
  apply Rmult_le_compat; lra.
Qed.

(** The sum is no larger than its weights say, and what underflow may have added. *)
Local Notation weighted ts m := (Sum (fun t => weight K sh m t * Rabs (v (fst t))) ts).
Lemma weighted_pos ts m : 0 <= weighted ts m.
Proof. apply Sum_nonneg. intros. apply Rmult_le_pos; [left; apply exp_pos|apply Rabs_pos]. Qed.
Lemma weighted_size ts m r : Forall (known K sh A m r) ts -> weighted ts m <= gain A r * size_of ts.
Proof.
  intros F. unfold size_of. rewrite <- Sum_scal. apply Sum_le. intros t It. rewrite Forall_forall in F.
  apply Rmult_le_compat_r; [apply Rabs_pos|]. apply (known_gain K sh A OK); auto.
Qed.
Lemma all_known ts m y k r c : sums ts m y k r c -> Forall (known K sh A m r) ts.
Proof. intros D. apply (sums_spec K sh A OK 1 Rlt_0_1 v w0 lamw W Lw _ _ _ _ _ _ D). Qed.
Lemma size_by_weights ts m y k r c : sums ts m y k r c ->
  Rabs y <= P A w0 k * weighted ts m + most_lost ts k r c.
Proof.
  assert (u0 := s_u A OK). assert (l0 := s_lam A OK). assert (e0 := s_lame A OK). assert (G1 := g_ge1 A OK).
  intros D. induction D as [j m e p y HT He HpE Hy|ts1 ts2 m y1 y2 y k1 r1 c1 k2 r2 c2 D1 IH1 D2 IH2 [N _]
                 |ts m y k r c m' z p y' D IH Hm Hz Hp' N].
  - destruct (split_spec A OK e p HpE) as [S1 _]. destruct HpE as [Pp _].
    unfold most_lost, most_of_key, P, size_of, weight. simpl.
    replace (sh j - m + (e - (sh j - m) + split A e p)) with (e + split A e p) by ring.
    assert (M := Rmin_l (lame A) (exp (e + split A e p))). apply Rabs_bounds in S1.
    set (q := exp (e + split A e p)) in *. assert (Ml := Rmin_l lamw (w0 * p)). assert (Vp := Rabs_pos (v j)).
    assert (Y : Rabs y <= Rabs (y - p * v j) + p * Rabs (v j)).
    { replace y with ((y - p * v j) + p * v j) at 1 by ring. eapply Rle_trans; [apply Rabs_triang|].
      rewrite (Rabs_mult p), (Rabs_pos_eq p) by auto. lra. }
    assert (B : w0 * p + Rmin lamw (w0 * p) <= w0 * q + (w0 * lame A + lamw)).
    { assert (w0 * p <= w0 * (q + lame A)) by (apply Rmult_le_compat_l; lra). lra. }
    assert (Bv := Rmult_le_compat_r _ _ _ Vp B). lra.
  - set (k := Nat.max k1 k2) in *. set (r := Nat.max r1 r2) in *.
    assert (Part : forall ts' y' k' r' c', Rabs y' <= P A w0 k' * weighted ts' m + most_lost ts' k' r' c' ->
      (k' <= k)%nat -> (r' <= r)%nat -> Rabs y' <= P A w0 k * weighted ts' m + most_lost ts' k r c').
    { intros ts' y' k' r' c' H' Hk Hr. eapply Rle_trans; [apply H'|]. apply Rplus_le_compat.
      - apply Rmult_le_compat_r; [apply weighted_pos|]. apply Rmult_le_compat_l; [lra|apply pow_mono; auto].
      - apply most_lost_mono; auto; lra. }
    apply (Part ts1 y1 k1 r1 c1) in IH1; [|apply Nat.le_max_l|apply Nat.le_max_l].
    apply (Part ts2 y2 k2 r2 c2) in IH2; [|apply Nat.le_max_r|apply Nat.le_max_r].
    assert (Y := near_abs _ _ _ _ N). assert (T := Rabs_triang y1 y2).
    assert (Y2 : (1 + u A) * Rabs (y1 + y2) <= (1 + u A) * (P A w0 k * (weighted ts1 m + weighted ts2 m) +
      (most_lost ts1 k r c1 + most_lost ts2 k r c2))) by (apply Rmult_le_compat_l; lra).
    rewrite Sum_app. unfold most_lost, P, size_of in *. rewrite Sum_app, S_INR, plus_INR. simpl pow.
    assert (Gk := pow_ge1 (u A) k u0). set (G := (1 + u A) ^ k) in *.
    assert (Gr : 1 <= g A ^ r) by (apply pow_R1_Rle; auto). set (Q := g A ^ r) in *.
    assert (lam A <= (1 + u A) * (G * Q) * lam A) by (apply le_times; auto; repeat apply times_ge1; lra). lra.
  - assert (F := all_known _ _ _ _ _ _ D). assert (Ws := weighted_size _ _ _ F). assert (W0 := weighted_pos ts m).
    rewrite (rescaled_sum K sh (fun j => Rabs (v j)) m).
    assert (Rho : exp (m - m' + z) <= exp (xr A + eps1 A)).
    { apply exp_mono. apply Rabs_bounds in Hz. assert (TE := s_thE A OK).
      assert (thE A * (m' - m) <= 1 * (m' - m)) by (apply Rmult_le_compat_r; lra). lra. }
    assert (Rp := exp_pos (m - m' + z)). set (rho := exp (m - m' + z)) in *.
    assert (Ml := Rmin_l (lame A) rho).
    assert (Pa : Rabs p <= rho + lame A).
    { replace p with ((p - rho) + rho) by ring. eapply Rle_trans; [apply Rabs_triang|].
      rewrite (Rabs_pos_eq rho) by lra. lra. }
    assert (Gd : rho + lame A <= g A) by (unfold g; lra).
    assert (Y := near_abs _ _ _ _ N). rewrite Rabs_mult in Y.
    assert (Es : size_of (rescaled z ts) = size_of ts) by (unfold size_of, merge.rescaled; rewrite Sum_map; auto).
    unfold most_lost, P in *. rewrite Es, S_INR. simpl pow. assert (S0 := size_of_pos ts).
    assert (Gk := pow_ge1 (u A) k u0). set (G := (1 + u A) ^ k) in *.
    assert (Gr : 1 <= g A ^ r) by (apply pow_R1_Rle; auto). set (Q := g A ^ r) in *.
    set (w := weighted ts m) in *. assert (I0 := pos_INR c).
    assert (M0 := most_of_key_mono r (S r) ltac:(lia)). assert (Gm := gain_mono A OK r (S r) ltac:(lia)).
    assert (Gp := gain_pos A r).
    assert (Step : most_of_key r + lame A * (w0 * gain A r) <= most_of_key (S r)).
    { unfold most_of_key. rewrite S_INR. assert (Ir := pos_INR r).
      assert (E : lame A * (w0 * gain A r) <= lame A * (w0 * gain A (S r))) by (repeat apply Rmult_le_compat_l; lra).
      assert (E2 := Rmult_le_compat_l _ _ _ Ir E). lra. }
    assert (L0 : 0 <= size_of ts * most_of_key r + INR c * lam A)
      by (apply Rplus_le_le_0_compat; apply Rmult_le_pos; lra).
    set (L := size_of ts * most_of_key r + INR c * lam A) in *.
    (* the weights, and what a factor adds to them *)
    assert (A1 : lame A * (w0 * w) <= size_of ts * (lame A * (w0 * gain A r))).
    { assert (w0 * w <= w0 * (gain A r * size_of ts)) by (apply Rmult_le_compat_l; lra).
      assert (lame A * (w0 * w) <= lame A * (w0 * (gain A r * size_of ts))) by (apply Rmult_le_compat_l; lra). lra. }
    assert (A2 : size_of ts * (most_of_key r + lame A * (w0 * gain A r)) <= size_of ts * most_of_key (S r))
      by (apply Rmult_le_compat_l; lra).
    assert (A3 : 0 <= size_of ts * (lame A * (w0 * gain A r)))
      by (apply Rmult_le_pos; auto; repeat apply Rmult_le_pos; lra).
    assert (GQ : 1 <= g A * Q) by (apply times_ge1; auto).
    assert (A4 : size_of ts * (lame A * (w0 * gain A r)) <= g A * Q * (size_of ts * (lame A * (w0 * gain A r))))
      by (apply le_times; auto).
    assert (A5 : (rho + lame A) * (Q * L) <= g A * (Q * L)) by (apply Rmult_le_compat_r; auto; apply Rmult_le_pos; lra).
    assert (A6 : g A * Q * (L + size_of ts * (lame A * (w0 * gain A r))) <=
      g A * Q * (size_of ts * most_of_key (S r) + INR c * lam A)) by (apply Rmult_le_compat_l; unfold L; lra).
    assert (B1 : Rabs p * Rabs y <= (rho + lame A) * (w0 * G * w + G * Q * L))
      by (apply Rmult_le_compat; auto using Rabs_pos).
    assert (B2 : (rho + lame A) * (w0 * w + Q * L) <=
      w0 * (rho * w) + g A * Q * (size_of ts * most_of_key (S r) + INR c * lam A)) by lra.
    assert (B3 := Rmult_le_compat_l G _ _ ltac:(lra) B2).
    assert (B4 : (1 + u A) * (Rabs p * Rabs y) <= (1 + u A) * (G * (w0 * (rho * w) +
      g A * Q * (size_of ts * most_of_key (S r) + INR c * lam A)))) by (apply Rmult_le_compat_l; lra).
    assert (lam A <= (1 + u A) * (G * (g A * Q)) * lam A) by (apply le_times; auto; repeat apply times_ge1; lra). lra.
Qed.
Lemma size_at_most ts m y k r c : sums ts m y k r c -> Rabs y <= most ts k r c.
Proof.
  intros D. eapply Rle_trans; [apply (size_by_weights _ _ _ _ _ _ D)|]. apply Rplus_le_compat_r.
  assert (Q := P_ge A OK w0 W k). apply Rmult_le_compat_l; [lra|]. apply (weighted_size _ m), (all_known _ _ _ _ _ _ D).
Qed.

Theorem kernel_within ts m y k r c : sums ts m y k r c -> most ts k r c <= H ->
  gain A 0 + lame A <= Hp -> g A <= Hp -> within ts m y k r c.
Proof.
  intros D B HG Hg.
  induction D as [j m e p y HT He HpE Hy|ts1 ts2 m y1 y2 y k1 r1 c1 k2 r2 c2 D1 IH1 D2 IH2 N
                 |ts m y k r c m' z p y' D IH Hm Hz Hp' N].
  - assert (D := sums_key K sh A v w0 lamw j m e p y HT He HpE Hy).
    assert (Y := size_at_most _ _ _ _ _ _ D).
    destruct (sums_spec K sh A OK 1 Rlt_0_1 v w0 lamw W Lw _ _ _ _ _ _ D) as [F _].
    apply within_key; auto; [|eapply Rle_trans; [apply Y|exact B]].
    destruct (split_spec A OK e p HpE) as [S1 _]. assert (G := known_gain K sh A OK _ _ _ (Forall_inv F)).
    unfold weight in G. simpl in G. replace (sh j - m + (e - (sh j - m) + split A e p)) with (e +
      split A e p) in G by ring.
    assert (E := exp_pos (e + split A e p)). apply Rabs_bounds in S1.
    assert (Ml := Rmin_l (lame A) (exp (e + split A e p))). apply Rabs_le_iff. lra.
  - assert (Y := size_at_most _ _ _ _ _ _ (sums_add K sh A v w0 lamw _ _ _ _ _ _ _ _ _ _ _ _ D1 D2 N)).
    assert (S1 : size_of ts1 <= size_of (ts1 ++ ts2)) by (unfold size_of; rewrite Sum_app;
      assert (Q := size_of_pos ts2);
      unfold size_of in Q; lra).
    assert (S2 : size_of ts2 <= size_of (ts1 ++ ts2)) by (unfold size_of; rewrite Sum_app;
      assert (Q := size_of_pos ts1);
      unfold size_of in Q; lra).
    apply (within_add ts1 ts2 m y1 y2); auto; [apply IH1|apply IH2|eapply Rle_trans; [apply Y|exact B]];
      (eapply Rle_trans; [|exact B]; apply most_mono; auto; lia).
  - assert (Y := size_at_most _ _ _ _ _ _ (sums_rescale K sh A v w0 lamw _ _ _ _ _ _ _ _ _ _ D Hm Hz Hp' N)).
    assert (Es : size_of (rescaled z ts) = size_of ts) by (unfold size_of, merge.rescaled; rewrite Sum_map;
      reflexivity).
    apply (within_rescale ts m y k r c m' z p y'); auto; [apply IH| |eapply Rle_trans; [apply Y|exact B]].
    + eapply Rle_trans; [|exact B]. apply most_mono; auto. rewrite Es. lra.
    + assert (Z := Rabs_bounds _ _ Hz). destruct OK. assert (thE A * (m' - m) <= 1 * (m' - m))
      by (apply Rmult_le_compat_r; lra).
      assert (Q : exp (m - m' + z) <= exp (xr A + eps1 A)) by (apply exp_mono; lra). unfold g in Hg.
      assert (E := exp_pos (m - m' + z)). assert (Ml := Rmin_l (lame A) (exp (m - m' + z))).
      apply Rabs_bounds in Hp'. apply Rabs_le_iff. lra.
Qed.
(** Nothing is claimed but of what the kernel may do. *)
Lemma within_sums ts m y k r c : within ts m y k r c -> sums ts m y k r c.
Proof. induction 1; [apply sums_key|eapply sums_add|eapply sums_rescale]; eauto. Qed.
End Within.
