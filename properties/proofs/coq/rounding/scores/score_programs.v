(** Programs that form scores in every way of [score_variants], over any rounding functions, and what is allowed of
    each. *)
From Coq Require Import Reals List Lra Lia Psatz Permutation ZArith.
From Flocq Require Import Core Relative.
From Attest.Rounding Require Import basics scores score_variants merge bound kernels base_two.
Import ListNotations.
Open Scope R_scope.

(** ** Rounding functions: to nearest in any format, nothing at all, subnormal results or operands as 0. *)
Definition rounds (u lam : R) (r : R -> R) := forall x, near u lam x (r x).
Lemma kept_as_it_is : rounds 0 0 (fun x => x).
Proof. intros x. unfold near. rewrite Rminus_eq_0, Rabs_R0. lra. Qed.
Lemma rnd_rounds emin prec (H : Prec_gt_0 prec) : rounds (uf prec) (eta emin) (rnd emin prec).
Proof. intros x. apply rnd_near; auto. Qed.
Lemma rounds_twice u1 lam1 r1 u2 lam2 r2 : 0 <= u2 -> rounds u1 lam1 r1 -> rounds u2 lam2 r2 ->
  rounds (join u1 u2) (lam1 * (1 + u2) + lam2) (fun x => r2 (r1 x)).
Proof.
  intros P H1 H2 x. replace (join u1 u2) with ((1 + u1) * (1 + u2) - 1) by (unfold join; ring).
  apply near_trans with (r1 x); auto.
Qed.

Definition flushed (least x : R) := if Rlt_dec (Rabs x) least then 0 else x.
Lemma flushed_reads least x : 0 <= least -> reads least x (flushed least x).
Proof.
  intros P. unfold flushed. destruct (Rlt_dec _ _) as [H|H]; [apply reads_zero; lra|]. unfold reads.
  rewrite Rminus_eq_0, Rabs_R0. lra.
Qed.
Section Flush.
Variables emin prec : Z.
Context {Hprec : Prec_gt_0 prec}.
Definition least_normal := bpow radix2 (emin + prec - 1).
Definition rnd_flushed x := flushed least_normal (rnd emin prec x).

Lemma least_normal_inF : inF emin prec least_normal.
Proof.
  apply generic_format_bpow. unfold fexpn, FLT_exp. red in Hprec. lia.
Qed.
(** What is flushed was below the least normal number before it was rounded, too. *)
Lemma rnd_flushed_rounds : rounds (uf prec) least_normal rnd_flushed.
Proof.
  intros x. assert (U := uf_pos prec). assert (Lp : 0 < least_normal) by apply bpow_gt_0.
  assert (V : Valid_exp (fexpn emin prec)) by (apply FLT_exp_valid; auto).
  unfold rnd_flushed, flushed. destruct (Rlt_dec _ _) as [H|H].
  - apply near_weaken with 0 least_normal; try lra. unfold near. rewrite Rminus_0_l, Rabs_Ropp.
    assert (Rabs x <= least_normal); [|lra]. destruct (Rle_dec (Rabs x) least_normal) as [L|L]; auto. exfalso.
    assert (Q : round radix2 (fexpn emin prec) ZnearestE least_normal <= round radix2 (fexpn emin prec) ZnearestE
      (Rabs x))
      by (apply round_le; [apply FLT_exp_valid; auto|apply valid_rnd_N|lra]).
    rewrite round_generic in Q by (try apply valid_rnd_N; apply least_normal_inF).
    rewrite round_NE_abs in Q by auto. unfold rnd in H. lra.
  - destruct (Rle_dec least_normal (Rabs x)) as [L|L].
    + assert (Q := relative_error_N_FLT radix2 emin prec Hprec (fun n => negb (Z.even n)) x L). unfold near.
      change (/ 2 * bpow radix2 (- prec + 1)) with (uf prec) in Q.
      eapply Rle_trans; [apply Q|]. lra.
    + assert (N := rnd_near emin prec x). unfold near in *. assert (Et : eta emin <= least_normal).
      { unfold eta, least_normal. assert (bpow radix2 emin <= bpow radix2 (emin + prec - 1))
          by (apply bpow_le; red in Hprec; lia). assert (0 < bpow radix2 emin) by apply bpow_gt_0. lra. }
      lra.
Qed.
End Flush.

(** ** Sums. *)
Section Loops.
Variable r : R -> R.
Variables u lam : R.
Hypothesis Hu : 0 <= u.
Hypothesis Hlam : 0 <= lam.
Hypothesis Hr : rounds u lam r.

(** A tree of rounded products; a loop of fused ones that begins at something. *)
Fixpoint tree_sum (f : nat -> R) (t : tree nat) : R :=
  match t with Leaf _ c => r (f c) | Node _ a b => r (tree_sum f a + tree_sum f b) end.
Fixpoint loop (f : nat -> R) acc (cs : list nat) : R :=
  match cs with [] => acc | c :: rest => loop f (r (acc + f c)) rest end.

Lemma tree_sum_summed f t : exists n c, summed u lam (map f (leaves nat t)) (tree_sum f t) n c.
Proof.
  induction t as [c|a (na & ca & Ha) b (nb & cb & Hb)]; simpl.
  - exists 1%nat, 1%nat. constructor. apply Hr.
  - rewrite map_app. eexists _, _. eapply summed_add; eauto.
Qed.
Lemma loop_summed f cs : forall l0 acc n0 c0, summed u lam l0 acc n0 c0 ->
  exists n c, summed u lam (l0 ++ map f cs) (loop f acc cs) n c.
Proof.
  induction cs as [|c rest IH]; intros l0 acc n0 c0 H; simpl.
  - rewrite app_nil_r. eauto.
  - change (f c :: map f rest) with ([f c] ++ map f rest). rewrite app_assoc. eapply IH.
    eapply summed_add; [apply H| |apply Hr]. apply summed_term. unfold near. rewrite Rminus_eq_0, Rabs_R0.
    assert (0 <= u * Rabs (f c)) by (apply Rmult_le_pos; auto using Rabs_pos). lra.
Qed.
End Loops.

(** ** Scores. *)
Section Programs.
Variable K : Type.
Variable q : nat -> R.
Variable k : K -> nat -> R.
Variable b : K -> R.
Variable cs : list nat.               (* components *)
Variable order : K -> tree nat.
Hypothesis Horder : forall j, Permutation (leaves nat (order j)) cs.
(** The scale and its reciprocal as the kernel has them. *)
Variables tau d th_tau inv beta : R.
Hypothesis Htau : 0 < tau.
Hypothesis Hd : Rabs d <= th_tau.
Hypothesis Hinv : Rabs (inv * tau - 1) <= beta.
Local Notation tauh := (tau * (1 + d)).
(** Operations up to the product and after it (the same, but for units); what is stored of the product, the scaled
    product, the score; the bias; q times the scale; operands. *)
Variables r ra rx rt rs rb rq rd : R -> R.
Variables u lam u_x lam_x u_t lam_t u_st lam_st u_bc lam_bc u_q lam_q lam_in : R.
Hypothesis Hr : rounds u lam r.
Hypothesis Hra : rounds u lam ra.
Hypothesis Hx : rounds u_x lam_x rx.
Hypothesis Ht : rounds u_t lam_t rt.
Hypothesis Hs : rounds u_st lam_st rs.
Hypothesis Hb : rounds u_bc lam_bc rb.
Hypothesis Hq : rounds u_q lam_q rq.
Hypothesis Hrd : forall y, reads lam_in y (rd y).
Hypothesis units_pos : 0 <= u /\ 0 <= u_x /\ 0 <= u_t /\ 0 <= u_st /\ 0 <= u_bc /\ 0 <= u_q.
Hypothesis losses_pos : 0 <= lam /\ 0 <= lam_x /\ 0 <= lam_t /\ 0 <= lam_st /\ 0 <= lam_bc /\ 0 <= lam_q /\ 0 <= lam_in.

(** Exact. *)
Definition x j := Sum (fun c => q c * k j c) cs.
Definition X j := Sum (fun c => Rabs (q c * k j c)) cs.
Definition t j := tau * x j.
(** The bias after the scale or before it, or with q scaled first; and each with the bias as where the sum begins. *)
Inductive form := After | Before | ScaledQ | InSum | InSumBefore | InSumScaledQ.
Definition exact_score f j := match f with Before | InSumBefore => tau * (x j + b j) | _ => t j + b j end.
(** The part that the scale's error multiplies. *)
Definition g f j := match f with Before | InSumBefore => exact_score f j | _ => t j end.

(** Computed. *)
Definition operand j c := rd (q c) * rd (k j c).
Definition raw j := rx (tree_sum r (operand j) (order j)).
Definition computed f j :=
  match f with
  | After => rs (ra (rt (ra (tauh * raw j)) + rb (b j)))
  | Before => rs (ra (tauh * r (raw j + rb (b j))))
  | ScaledQ => rs (ra (tree_sum ra (fun c => rq (tauh * rd (q c)) * rd (k j c)) (order j) + rb (b j)))
  | InSum => rs (rt (ra (tauh * rx (loop r (operand j) (r (rb (b j) * inv)) cs))))
  | InSumBefore => rs (ra (tauh * rx (loop r (operand j) (rb (b j)) cs)))
  | InSumScaledQ => rs (loop ra (fun c => rq (tauh * rd (q c)) * rd (k j c)) (rb (b j)) cs)
  end.

(** Allowed: error-bounds.md 1.1 with 1.7.4 to 6 and 30. *)
Definition dk := length cs.
Definition pwr n := (1 + u) ^ n - 1.
Definition q_1 := Sum (fun c => Rabs (q c)) cs.
Definition k_1 j := Sum (fun c => Rabs (k j c)) cs.
Definition e1_of n j := pwr n * X j + (1 + pwr n) * (2 * INR n * lam + lam_in * (q_1 + k_1 j)).
Definition e1 j := e1_of dk j.
Definition e1_stored j := e1 j + u_x * (Rabs (x j) + e1 j) + lam_x.
Definition thT := join u u_t.                  (* the scaled product, stored *)
Definition lamT := lam * (1 + u_t) + lam_t.
Definition thB := join u u_st.                 (* the score, stored *)
Definition lamB := lam * (1 + u_st) + lam_st.
Definition e_scaled_q n j := let gq := join (pwr n) u_q in
  tau * (gq * X j) + (1 + gq) * (2 * INR n * lam + (lam_q + tau * lam_in) * k_1 j + tau * lam_in * q_1).
(** A sum that begins at the bias has one term more: what is wrong with it beside its part in b. *)
Definition e_in_sum j := e1_of (S dk) j * (1 + u_x) + u_x * Rabs (x j) + lam_x.
Definition g_in_sum := join (pwr (S dk)) u_x.
Definition on_b := (1 + th_tau) * (1 + thT) * join (join g_in_sum beta) u_bc + th_tau + (1 + th_tau) * thT.
(** The bias itself and the roundings of the sum that it is in. *)
Definition e_bias g j := join g u_bc * Rabs (b j) + (1 + g) * lam_bc.
Definition allowed f j :=
  match f with
  | After => (1 + thB) * ((1 + th_tau) * ((1 + thT) * (tau * e1_stored j) + thT * Rabs (t j)) + lamT +
               (u_bc * Rabs (b j) + lam_bc)) + thB * (Rabs (exact_score After j) + th_tau * Rabs (t j)) + lamB
  | Before => let th := u + thB + u * thB in
      (1 + th_tau) * ((1 + th) * (tau * (e1_stored j + (u_bc * Rabs (b j) + lam_bc) + lam)) +
                      th * Rabs (exact_score Before j)) + lamB
  | ScaledQ => (1 + thB) * ((1 + th_tau) * e_scaled_q dk j + (u_bc * Rabs (b j) + lam_bc)) +
               thB * (Rabs (exact_score ScaledQ j) + th_tau * Rabs (t j)) + lamB
  | InSum => (1 + u_st) * ((1 + th_tau) * ((1 + thT) * (tau * e_in_sum j + (1 + g_in_sum) * (1 + beta) * lam_bc) +
               thT * Rabs (t j)) + lamT + on_b * Rabs (b j)) + u_st * (Rabs (exact_score InSum j) + th_tau * Rabs (t
                 j)) +
               lam_st
  | InSumBefore => (1 + th_tau) * ((1 + thB) * (tau * (e_in_sum j + e_bias g_in_sum j)) +
                                   thB * Rabs (exact_score InSumBefore j)) + lamB
  | InSumScaledQ => (1 + u_st) * ((1 + th_tau) * e_scaled_q (S dk) j + e_bias (pwr (S dk)) j) +
                    u_st * (Rabs (exact_score InSumScaledQ j) + th_tau * Rabs (t j)) + lam_st
  end.

Lemma pwr_pos n : 0 <= pwr n.
Proof. unfold pwr. destruct units_pos as [P _]. assert (Q := scores.pow_ge1 u P n). lra. Qed.
Lemma own_operand y : near 0 lam_in (1 * y) (rd y).
Proof. destruct (Hrd y) as [H _]. unfold near. rewrite !Rmult_1_l. lra. Qed.

Lemma tree_operands (f : nat -> R) j : Permutation (map f (leaves nat (order j))) ([] ++ map f cs).
Proof. apply Permutation_map. apply Horder. Qed.

Lemma e1_as_products starts j :
  gs nat 0 cs u starts * (Rabs 1 * products nat q (k j) cs) + (1 + gs nat 0 cs u starts) *
    lost_products nat q (k j) 1 lam_in lam_in cs lam starts = e1_of (length starts + dk) j.
Proof.
  unfold e1_of, lost_products, gs, gs0, join, n_s, pwr, X, products, q_1, k_1, q1, k1, dk. rewrite Rabs_R1. ring.
Qed.

Lemma raw_error j : Rabs (tree_sum r (operand j) (order j) - x j) <= e1 j.
Proof.
  destruct units_pos as [U _]. destruct losses_pos as (L & _ & _ & _ & _ & _ & Lin).
  destruct (tree_sum_summed r u lam Hr (operand j) (order j)) as (n & c & H).
  assert (Q := product_of_operands nat q (k j) (fun c => rd (q c)) (fun c => rd (k j c)) 1 0 lam_in lam_in (Rle_refl
    0) Lin
    (fun c => own_operand (q c)) (fun c => proj1 (Hrd (k j c))) (fun c => proj2 (Hrd (k j c))) cs u lam U L [] _ _ n c
      Lin
    H (tree_operands (operand j) j)).
  assert (E := e1_as_products [] j). unfold start, start_size in Q. simpl in Q, E.
  replace (0 + 1 * product nat q (k j) cs) with (x j) in Q by (unfold x, product; ring). unfold e1. lra.
Qed.
Lemma e1_pos j : 0 <= e1 j.
Proof. eapply Rle_trans; [apply Rabs_pos|apply (raw_error j)]. Qed.
Lemma raw_stored j : Rabs (raw j - x j) <= e1_stored j.
Proof.
  destruct units_pos as (_ & Ux & _). unfold raw, e1_stored. apply (rounded_again _ _ _ _ _ _ Ux (raw_error j) (Hx _)).
Qed.

Lemma e1_of_pos n j : 0 <= e1_of n j.
Proof.
  destruct losses_pos as (Lm & _ & _ & _ & _ & _ & Lin).
  unfold e1_of. assert (P := pwr_pos n). assert (I := pos_INR n).
  assert (0 <= X j) by (apply Sum_nonneg; intros; apply Rabs_pos).
  assert (0 <= q_1) by (apply Sum_nonneg; intros; apply Rabs_pos).
  assert (0 <= k_1 j) by (apply Sum_nonneg; intros; apply Rabs_pos).
  apply Rplus_le_le_0_compat; [apply Rmult_le_pos; auto|]. apply Rmult_le_pos; [lra|].
  apply Rplus_le_le_0_compat; repeat apply Rmult_le_pos; lra.
Qed.
Lemma e_in_sum_pos j : 0 <= e_in_sum j.
Proof.
  destruct units_pos as (_ & Ux & _). destruct losses_pos as (_ & Lx & _). unfold e_in_sum. assert (Q := e1_of_pos (S
    dk) j).
  repeat apply Rplus_le_le_0_compat; auto; apply Rmult_le_pos; try lra. apply Rabs_pos.
Qed.
Lemma g_in_sum_pos : 0 <= g_in_sum.
Proof.
  destruct units_pos as (_ & Ux & _). assert (Q := pwr_pos (S dk)). unfold g_in_sum, join.
  assert (0 <= pwr (S dk) * u_x) by (apply Rmult_le_pos; auto). lra.
Qed.

(** A sum that begins at acc, which is b0 once rounded, then stored. *)
Lemma begun_at b0 acc j : near u lam b0 acc ->
  Rabs (rx (loop r (operand j) acc cs) - (b0 + x j)) <= e_in_sum j + g_in_sum * Rabs b0.
Proof.
  intros N0. destruct units_pos as (U & Ux & _). destruct losses_pos as (Lm & Lx & _ & _ & _ & _ & Lin).
  assert (S1 : summed u lam [b0] acc 1 1) by (constructor; apply N0).
  destruct (loop_summed r u lam U Lm Hr (operand j) cs _ _ _ _ S1) as (n & c & H).
  assert (Q := product_of_operands nat q (k j) (fun c => rd (q c)) (fun c => rd (k j c)) 1 0 lam_in lam_in (Rle_refl 0)
    Lin (fun c => own_operand (q c)) (fun c => proj1 (Hrd (k j c))) (fun c => proj2 (Hrd (k j c))) cs u lam U Lm
    [b0] _ _ n c Lin H (Permutation_refl _)).
  assert (E := e1_as_products [b0] j). unfold start, start_size in Q. simpl in Q, E.
  unfold gs0, n_s in Q. simpl length in Q. change (1 + length cs)%nat with (S dk) in Q. fold (pwr (S dk)) in Q.
  set (z := loop r (operand j) acc cs) in *.
  replace (b0 + 0 + 1 * product nat q (k j) cs) with (b0 + x j) in Q by (unfold x, product; ring).
  assert (Q2 : Rabs (z - (b0 + x j)) <= e1_of (S dk) j + pwr (S dk) * Rabs b0) by lra.
  assert (R := rounded_again _ _ _ _ _ _ Ux Q2 (Hx z)). assert (T := Rabs_triang b0 (x j)).
  assert (T2 := times_le u_x _ _ Ux T). unfold e_in_sum, g_in_sum, join. lra.
Qed.

(** Every form of them. *)
Theorem scores_of_every_form f j : Rabs (computed f j - (exact_score f j + d * g f j)) <= allowed f j.
Proof.
  destruct units_pos as (U & Ux & Ut & Us & Ub & Uq). destruct losses_pos as (L & Lx & Lt & Ls & Lb & Lq & Lin).
  assert (T0 : 0 <= th_tau) by (eapply Rle_trans; [apply Rabs_pos|apply Hd]).
  assert (PB : 0 <= thB) by (unfold thB, join; assert (0 <= u * u_st) by (apply Rmult_le_pos; auto); lra).
  assert (PT : 0 <= thT) by (unfold thT, join; assert (0 <= u * u_t) by (apply Rmult_le_pos; auto); lra).
  assert (NT := rounds_twice _ _ _ _ _ _ Ut Hra Ht). assert (NS := rounds_twice _ _ _ _ _ _ Us Hra Hs).
  destruct f; simpl.
  - apply (scaled_then_biased d th_tau thT lamT thB lamB u_bc lam_bc PT PB Hd (b j) (t j) (exact_score After j)
      (rb (b j)) (Hb _) (tauh * raw j) _ (rt (ra (tauh * raw j)))); [reflexivity| |apply NT|apply NS].
    apply (scaled tau d th_tau Htau Hd (x j) (t j) eq_refl). apply raw_stored.
  - replace (1 * exact_score Before j) with (exact_score Before j) by ring. unfold exact_score.
    assert (Q := score_before_scale tau d th_tau thB lamB u lam u_bc lam_bc Htau PB U L Hd (x j) (b j)
      (tau * (x j + b j)) (rb (b j)) (Hb _) (e1_stored j) (raw j) (r (raw j + rb (b j)))
      (rs (ra (tauh * r (raw j + rb (b j))))) eq_refl (raw_stored j) (Hr _) (NS _)). exact Q.
  - destruct (tree_sum_summed ra u lam Hra (fun c => rq (tauh * rd (q c)) * rd (k j c)) (order j)) as (n & c & H).
    assert (Q := scaled_q_product nat q (k j) (fun c => rd (q c)) (fun c => rq (tauh * rd (q c))) (fun c => rd (k j c))
      tau d th_tau u_q lam_q lam_in u lam Htau Hd Uq Lq Lin U L (fun c => Hrd _) (fun c => Hq _) (fun c => Hrd _) cs []
      _ _ n c H (tree_operands (fun c => rq (tauh * rd (q c)) * rd (k j c)) j)).
    unfold start, start_size in Q. simpl in Q. rewrite Rplus_0_l, Rmult_0_r, Rplus_0_r in Q.
    set (y := tree_sum ra (fun c => rq (tauh * rd (q c)) * rd (k j c)) (order j)) in *.
    assert (Q2 := scaled_then_biased d th_tau 0 0 thB lamB u_bc lam_bc (Rle_refl 0) PB Hd (b j) (t j)
      (exact_score ScaledQ j) (rb (b j)) (Hb _) y (e_scaled_q dk j) y (rs (ra (y + rb (b j)))) eq_refl Q
      (kept_as_it_is y) (NS _)).
    rewrite Rmult_0_l, !Rplus_0_r, Rmult_1_l in Q2. exact Q2.
  - apply (score_with_bias_in_sum tau d th_tau thT lamT u_st lam_st u_bc lam_bc Htau PT Us Hd (x j) (b j) (t j)
      (exact_score InSum j) (rb (b j)) eq_refl (Hb _) inv beta g_in_sum (e_in_sum j) _ _ _ eq_refl g_in_sum_pos
      (e_in_sum_pos j) Hinv (begun_at _ _ j (Hr _)) (NT _) (Hs _)).
  - replace (1 * exact_score InSumBefore j) with (exact_score InSumBefore j) by ring. unfold exact_score.
    set (zx := rx (loop r (operand j) (rb (b j)) cs)).
    assert (N0 : near u lam (rb (b j)) (rb (b j))).
    { unfold near. rewrite Rminus_eq_0, Rabs_R0. assert (0 <= u * Rabs (rb (b j))) by (apply Rmult_le_pos; auto using
        Rabs_pos). lra. }
    assert (Z := begun_at _ _ j N0). fold zx in Z. assert (Ab := near_abs _ _ _ _ (Hb (b j))).
    assert (Bb : Rabs (rb (b j) - b j) <= u_bc * Rabs (b j) + lam_bc) by apply Hb.
    assert (G := g_in_sum_pos). assert (T := times_le g_in_sum _ _ G Ab).
    assert (Z2 : Rabs ((zx - b j) - x j) <= e_in_sum j + e_bias g_in_sum j).
    { replace (zx - b j - x j) with ((zx - (rb (b j) + x j)) + (rb (b j) - b j)) by ring.
      eapply Rle_trans; [apply Rabs_triang|]. unfold e_bias, join. lra. }
    assert (Q := score_before_scale tau d th_tau thB lamB 0 0 0 0 Htau PB (Rle_refl 0) (Rle_refl 0) Hd (x j) (b j)
      (tau * (x j + b j)) (b j) (kept_as_it_is (b j)) (e_in_sum j + e_bias g_in_sum j) (zx - b j) zx
      (rs (ra (tauh * zx))) eq_refl Z2).
    replace (zx - b j + b j) with zx in Q by ring. specialize (Q (kept_as_it_is zx) (NS _)). simpl in Q.
    replace (0 * Rabs (b j) + 0) with 0 in Q by ring. rewrite !Rplus_0_r, Rplus_0_l, Rmult_0_l, Rplus_0_r in Q. exact Q.
  - assert (S1 : summed u lam [rb (b j)] (rb (b j)) 1 1).
    { constructor. unfold near. rewrite Rminus_eq_0, Rabs_R0. assert (0 <= u * Rabs (rb (b j))) by (apply Rmult_le_pos;
        auto using Rabs_pos). lra. }
    destruct (loop_summed ra u lam U L Hra (fun c => rq (tauh * rd (q c)) * rd (k j c)) cs _ _ _ _ S1) as (n & c & H).
    assert (Q := scaled_q_product nat q (k j) (fun c => rd (q c)) (fun c => rq (tauh * rd (q c))) (fun c => rd (k j c))
      tau d th_tau u_q lam_q lam_in u lam Htau Hd Uq Lq Lin U L (fun c => Hrd _) (fun c => Hq _) (fun c => Hrd _) cs
      [rb (b j)] _ _ n c H (Permutation_refl _)).
    unfold start, start_size in Q. simpl in Q. unfold gs0, n_s in Q. simpl length in Q.
    change (1 + length cs)%nat with (S dk) in Q. fold (pwr (S dk)) in Q. rewrite !Rplus_0_r in Q.
    set (y := loop ra (fun c => rq (tauh * rd (q c)) * rd (k j c)) (rb (b j)) cs) in *.
    fold (x j) (t j) (e_scaled_q (S dk) j) in Q.
    assert (Ab := near_abs _ _ _ _ (Hb (b j))). assert (Bb : Rabs (rb (b j) - b j) <= u_bc * Rabs (b j) + lam_bc) by
      apply Hb.
    assert (T := times_le (pwr (S dk)) _ _ (pwr_pos (S dk)) Ab).
    assert (Z : Rabs (y - (exact_score InSumScaledQ j + d * t j)) <= (1 + th_tau) * e_scaled_q (S dk) j + e_bias (pwr (S
      dk)) j).
    { replace (y - (exact_score InSumScaledQ j + d * t j)) with ((y - (rb (b j) + (1 + d) * t j)) + (rb (b j) - b j))
        by (unfold exact_score; ring).
      eapply Rle_trans; [apply Rabs_triang|]. change (product nat q (k j) cs) with (x j) in Q. fold (t j) in Q.
      unfold e_bias, join. change (te nat q (k j) tau u_q lam_q lam_in u lam cs [rb (b j)]) with (e_scaled_q (S dk) j)
        in Q.
      lra. }
    assert (R := rounded_again _ _ _ _ _ _ Us Z (Hs y)).
    assert (A3 : Rabs (exact_score InSumScaledQ j + d * t j) <= Rabs (exact_score InSumScaledQ j) + th_tau * Rabs (t
      j)).
    { eapply Rle_trans; [apply Rabs_triang|]. rewrite (Rabs_mult d).
      assert (Rabs d * Rabs (t j) <= th_tau * Rabs (t j)) by (apply Rmult_le_compat_r; auto using Rabs_pos). lra. }
    assert (A4 := times_le u_st _ _ Us A3). unfold exact_score in *. lra.
Qed.

(** Up to a shift that is common to all keys, as [attention_error] asks: tm_j of error-bounds.md 1.1 beside a_j. *)
Lemma scores_up_to_a_shift f gbar j :
  Rabs (computed f j - (exact_score f j + d * gbar)) <= allowed f j + th_tau * Rabs (g f j - gbar).
Proof.
  assert (Q := constants_are_common (exact_score f j) (g f j) (computed f j) (allowed f j) d 0 th_tau 0 gbar 0
    (scores_of_every_form f j) Hd ltac:(rewrite Rabs_R0; lra)).
  rewrite !Rplus_0_r, !Rmult_1_l, !Rmult_1_r, !Rmult_0_l, !Rplus_0_r in Q. exact Q.
Qed.

(** The product alone, not scaled yet, and c the scale times log2(e): what a kernel that folds them keeps. *)
Lemma folded_scores c gbar j : nats c = tauh ->
  Rabs (nats (raw j * c) - (t j + d * gbar)) <= (1 + th_tau) * (tau * e1_stored j) + th_tau * Rabs (t j - gbar).
Proof.
  intros Hc. replace (nats (raw j * c)) with (tauh * raw j) by (rewrite <- Hc; unfold nats; ring).
  replace (tauh * raw j - (t j + d * gbar)) with ((tauh * raw j - (1 + d) * t j) + d * (t j - gbar)) by ring.
  eapply Rle_trans; [apply Rabs_triang|]. rewrite (Rabs_mult d). apply Rplus_le_compat.
  - apply (scaled tau d th_tau Htau Hd (x j) (t j) eq_refl). apply raw_stored.
  - apply Rmult_le_compat_r; [apply Rabs_pos|apply Hd].
Qed.
End Programs.

(** ** Exponents of 2: all that is scaled is multiplied by L = (1 + dl) log2(e), and the bias by itself. *)
Definition in_units L (r : R -> R) y := r (y * L) / L.
Lemma in_units_rounds L u lam r : 1 <= L -> 0 <= lam -> rounds u lam r -> rounds u lam (in_units L r).
Proof.
  intros HL Hl H y. unfold in_units. assert (Q := near_in_units u lam L _ _ ltac:(lra) (H (y * L))).
  replace (y * L / L) with y in Q by (field; lra). apply near_weaken with u (lam / L); auto; try lra.
  apply Rmult_le_reg_r with L; [lra|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra. nra.
Qed.
Lemma tree_sum_in_units L r f t : L <> 0 -> tree_sum (in_units L r) f t = tree_sum r (fun c => f c * L) t / L.
Proof.
  intros HL. induction t as [c|a Ha b Hb]; simpl; [reflexivity|]. unfold in_units at 1. rewrite Ha, Hb.
  do 2 f_equal. field. auto.
Qed.

Lemma tree_sum_ext r f g t : (forall c, f c = g c) -> tree_sum r f t = tree_sum r g t.
Proof. intros H. induction t as [c|a Ha b Hb]; simpl; [rewrite H|rewrite Ha, Hb]; auto. Qed.

Lemma loop_in_units L r f cs : L <> 0 -> forall acc, loop (in_units L r) f acc cs = loop r (fun c => f c * L) (acc *
  L) cs / L.
Proof.
  intros HL. induction cs as [|c rest IH]; intros acc; simpl; [field; auto|]. rewrite IH. unfold in_units at 1. do 2
    f_equal.
  replace ((acc + f c) * L) with (acc * L + f c * L) by ring. field. auto.
Qed.
Lemma loop_ext r f g cs : (forall c, f c = g c) -> forall acc, loop r f acc cs = loop r g acc cs.
Proof. intros H. induction cs as [|c rest IH]; intros acc; simpl; auto. rewrite H. auto. Qed.

Section BaseTwo.
Variable K : Type.
Variable q : nat -> R.
Variable k : K -> nat -> R.
Variable b : K -> R.
Variable cs : list nat.
Variable order : K -> tree nat.
Hypothesis Horder : forall j, Permutation (leaves nat (order j)) cs.
Variables tau d th_tau inv beta dl th_l2e : R.
Hypothesis Htau : 0 < tau.
Hypothesis Hd : Rabs d <= th_tau.
Hypothesis Hinv : Rabs (inv * tau - 1) <= beta.
Hypothesis Hdl : Rabs dl <= th_l2e.
Variables r rx rt rs rb rq rd : R -> R.
Variables u lam u_x lam_x u_t lam_t u_st lam_st u_bc lam_bc u_q lam_q lam_in : R.
Hypothesis Hr : rounds u lam r.
Hypothesis Hx : rounds u_x lam_x rx.
Hypothesis Ht : rounds u_t lam_t rt.
Hypothesis Hs : rounds u_st lam_st rs.
Hypothesis Hb : rounds u_bc lam_bc rb.
Hypothesis Hq : rounds u_q lam_q rq.
Hypothesis Hrd : forall y, reads lam_in y (rd y).
Hypothesis units_pos : 0 <= u /\ 0 <= u_x /\ 0 <= u_t /\ 0 <= u_st /\ 0 <= u_bc /\ 0 <= u_q.
Hypothesis losses_pos : 0 <= lam /\ 0 <= lam_x /\ 0 <= lam_t /\ 0 <= lam_st /\ 0 <= lam_bc /\ 0 <= lam_q /\ 0 <= lam_in.
Definition L := (1 + dl) / ln 2.
Hypothesis HL : 1 <= L.
Local Notation tauh := (tau * (1 + d)).
Local Notation raw := (raw K q k order r rx rd).
Local Notation operand := (operand K q k rd).

Definition computed2 f j :=
  match f with
  | After => rs (r (rt (r (tauh * L * raw j)) + r (rb (b j) * L)))
  | Before => rs (r (tauh * L * r (raw j + rb (b j))))
  | ScaledQ => rs (r (tree_sum r (fun c => rq (tauh * L * rd (q c)) * rd (k j c)) (order j) + r (rb (b j) * L)))
  | InSum => rs (rt (r (tauh * L * rx (loop r (operand j) (r (rb (b j) * inv)) cs))))
  | InSumBefore => rs (r (tauh * L * rx (loop r (operand j) (rb (b j)) cs)))
  | InSumScaledQ => rs (loop r (fun c => rq (tauh * L * rd (q c)) * rd (k j c)) (r (rb (b j) * L)) cs)
  end.

(** The bias in the units of the score: multiplied by L, which is one more rounding, unless it comes before the scale.
    *)
Definition alone f := match f with After | ScaledQ | InSumScaledQ => true | _ => false end.
Definition rb2 f := if alone f then fun y => in_units L r (rb y) else rb.
Definition u_bc2 f := if alone f then join u_bc u else u_bc.
Definition lam_bc2 f := if alone f then lam_bc * (1 + u) + lam else lam_bc.

Lemma computed_in_units f j : computed2 f j =
  L * computed K q k b cs order tau d inv r (in_units L r) rx (in_units L rt) (in_units L rs) (rb2 f) (in_units L rq)
    rd f j.
Proof.
  assert (P : L <> 0) by lra.
  assert (Out : forall (w : R -> R) y, in_units L w y * L = w (y * L)) by (intros; unfold in_units; field; auto).
  rewrite (Rmult_comm L). destruct f; simpl; unfold rb2; simpl; rewrite !Out.
  - rewrite Rmult_plus_distr_r, !Out. do 4 f_equal. f_equal. ring.
  - do 2 f_equal. ring.
  - rewrite Rmult_plus_distr_r, Out, (tree_sum_in_units L r _ _ P). do 3 f_equal.
    replace (tree_sum r (fun c => in_units L rq (tauh * rd (q c)) * rd (k j c) * L) (order j) / L * L)
      with (tree_sum r (fun c => in_units L rq (tauh * rd (q c)) * rd (k j c) * L) (order j)) by (field; auto).
    apply tree_sum_ext. intros c.
    replace (in_units L rq (tauh * rd (q c)) * rd (k j c) * L) with (in_units L rq (tauh * rd (q c)) * L * rd (k j c))
      by ring. rewrite Out. do 2 f_equal. ring.
  - do 3 f_equal. ring.
  - do 2 f_equal. ring.
  - f_equal. rewrite (loop_in_units L r _ _ P), Out.
    replace (loop r (fun c => in_units L rq (tauh * rd (q c)) * rd (k j c) * L) (r (rb (b j) * L)) cs / L * L)
      with (loop r (fun c => in_units L rq (tauh * rd (q c)) * rd (k j c) * L) (r (rb (b j) * L)) cs) by (field; auto).
    apply loop_ext. intros c.
    replace (in_units L rq (tauh * rd (q c)) * rd (k j c) * L) with (in_units L rq (tauh * rd (q c)) * L * rd (k j c))
      by ring. rewrite Out. do 2 f_equal. ring.
Qed.

Lemma units_of_bias f : rounds (u_bc2 f) (lam_bc2 f) (rb2 f).
Proof.
  destruct units_pos as (U & _ & _ & _ & _ & _). destruct losses_pos as (Lm & _).
  assert (Hl := in_units_rounds L u lam r HL Lm Hr).
  unfold u_bc2, lam_bc2, rb2. destruct (alone f); auto. apply rounds_twice; auto.
Qed.

(** In nats, what is allowed in base e and the errors of the constants: tm_j of error-bounds.md 1.1 with 1.7.15; with
    gbar and sbar 0, no shift and ap_j. *)
Theorem scores_in_base_two f gbar sbar j :
  let allowed := allowed K q k b cs tau th_tau beta u lam u_x lam_x u_t lam_t u_st lam_st (u_bc2 f) (lam_bc2 f) u_q
    lam_q
    lam_in f j in
  let e := exact_score K q k b cs tau f j in let g := g K q k b cs tau f j in
  Rabs (nats (computed2 f j) - (e + (d * (1 + dl) * gbar + dl * sbar))) <=
    allowed * (1 + th_l2e) + th_tau * (1 + th_l2e) * Rabs (g - gbar) + th_l2e * Rabs (e - sbar).
Proof.
  intros allowed e g. destruct units_pos as (U & Ux & Ut & Us & Ub & Uq).
  destruct losses_pos as (Lm & Lx & Lt & Ls & Lb & Lq & Lin).
  assert (Ub2 : 0 <= u_bc2 f).
  { unfold u_bc2, join. destruct (alone f); auto. assert (0 <= u_bc * u) by (apply Rmult_le_pos; auto). lra. }
  assert (Lb2 : 0 <= lam_bc2 f).
  { unfold lam_bc2. destruct (alone f); auto. assert (0 <= lam_bc * u) by (apply Rmult_le_pos; auto). lra. }
  assert (IU : forall u lam w, 0 <= lam -> rounds u lam w -> rounds u lam (in_units L w)) by
    (intros; apply in_units_rounds; auto).
  assert (Q := scores_of_every_form K q k b cs order Horder tau d th_tau inv beta Htau Hd Hinv r (in_units L r) rx
    (in_units L rt) (in_units L rs) (rb2 f) (in_units L rq) rd u lam u_x lam_x u_t lam_t u_st lam_st (u_bc2 f)
      (lam_bc2 f)
    u_q lam_q lam_in Hr (IU _ _ _ Lm Hr) Hx (IU _ _ _ Lt Ht) (IU _ _ _ Ls Hs) (units_of_bias f) (IU _ _ _ Lq Hq) Hrd
    ltac:(repeat split; auto) ltac:(repeat split; auto) f j).
  fold allowed e g in Q.
  assert (Q2 := constants_are_common _ _ _ _ _ _ _ _ gbar sbar Q Hd Hdl).
  rewrite computed_in_units. assert (P := ln2_pos).
  set (y := computed K q k b cs order tau d inv r (in_units L r) rx (in_units L rt) (in_units L rs) (rb2 f) (in_units
    L rq)
    rd f j) in *.
  replace (nats (L * y)) with ((1 + dl) * y) by (unfold nats, L; field; lra). exact Q2.
Qed.
End BaseTwo.
