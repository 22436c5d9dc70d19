(** A program of several heads with projections, over Flocq's rounding, and its tolerance in the terms of exact numbers.
    *)
From Coq Require Import Reals List Lra Lia Psatz Permutation ZArith.
From Flocq Require Import Core.
From Attest.Rounding Require Import basics scores score_variants merge bound kernels multihead.
From Attest.Rounding Require score_programs.
Import ListNotations.
Open Scope R_scope.

Section Program.
Variables emin prec : Z.
Context {Hprec : Prec_gt_0 prec}.
Local Notation r := (rnd emin prec).
Local Notation u := (uf prec).
Local Notation lam := (eta emin).

(** A linear map: a loop of fused products that begins at the bias, and what is kept of its result. *)
Fixpoint fused_loop {C : Type} (f : C -> R) acc (cs : list C) : R :=
  match cs with [] => acc | c :: rest => fused_loop f (r (acc + f c)) rest end.
Lemma fused_loop_summed {C : Type} (f : C -> R) cs : forall l0 acc n0 c0, summed u lam l0 acc n0 c0 ->
  exists n c, summed u lam (l0 ++ map f cs) (fused_loop f acc cs) n c.
Proof.
  assert (U := uf_pos prec). assert (P := eta_pos emin). induction cs as [|c rest IH]; intros l0 acc n0 c0 H; simpl.
  - rewrite app_nil_r. eauto.
  - change (f c :: map f rest) with ([f c] ++ map f rest). rewrite app_assoc. eapply IH.
    eapply summed_add; [apply H| |apply rnd_near; auto]. apply summed_term. unfold near. rewrite Rminus_eq_0, Rabs_R0.
    assert (0 <= u * Rabs (f c)) by (apply Rmult_le_pos; [lra|apply Rabs_pos]). lra.
Qed.
Variable st : R -> R.                 (* how projected numbers are stored *)
Variables u_st lam_st : R.
Hypothesis Hst : score_programs.rounds u_st lam_st st.
Hypothesis Hust : 0 <= u_st.
Definition projected {C : Type} (x w : C -> R) bias cs := st (fused_loop (fun c => x c * w c) bias cs).
Lemma projected_error {C : Type} (x xh dx w : C -> R) bias cs : (forall c, Rabs (xh c - x c) <= dx c) ->
  Rabs (projected xh w bias cs - linear C w cs bias x) <= stored_error u lam u_st lam_st C x dx w cs bias.
Proof.
  intros H. assert (U := uf_pos prec). assert (P := eta_pos emin).
  assert (S0 : summed u lam [bias] bias 1 1).
  { constructor. unfold near. rewrite Rminus_eq_0, Rabs_R0.
    assert (0 <= u * Rabs bias) by (apply Rmult_le_pos; [lra|apply Rabs_pos]). lra. }
  destruct (fused_loop_summed (fun c => xh c * w c) cs _ _ _ _ S0) as (n & c & S1).
  apply (projection_error u lam u_st lam_st ltac:(lra) ltac:(lra) Hust C x xh dx w H cs bias _ _ n c _ S1
    (Permutation_refl _) (Hst _)).
Qed.

(** Inputs of a query and of its keys, weights by head and component. *)
Variables K H : Type.
Variable ins : list nat.              (* components of the inputs *)
Variable es : list nat.               (* of a head *)
Variable x_q : nat -> R.
Variables x_k x_v : K -> nat -> R.
Variables w_q w_k w_v : H -> nat -> nat -> R.
Variables b_q b_k b_v : H -> nat -> R.
Definition none : nat -> R := fun _ => 0.
Local Notation exact_of x w b := (linear nat w ins b x).
Local Notation error_of x w b := (stored_error u lam u_st lam_st nat x none w ins b).
Definition q h e := exact_of x_q (w_q h e) (b_q h e).
Definition k h j e := exact_of (x_k j) (w_k h e) (b_k h e).
Definition v h e j := exact_of (x_v j) (w_v h e) (b_v h e).
Definition qh h e := projected x_q (w_q h e) (b_q h e) ins.
Definition kh h j e := projected (x_k j) (w_k h e) (b_k h e) ins.
Definition vh h e j := projected (x_v j) (w_v h e) (b_v h e) ins.
Definition dq h e := error_of x_q (w_q h e) (b_q h e).
Definition dk h j e := error_of (x_k j) (w_k h e) (b_k h e).
Definition dv h e j := error_of (x_v j) (w_v h e) (b_v h e).
Lemma exact_input (x : nat -> R) c : Rabs (x c - x c) <= none c.
Proof. rewrite Rminus_eq_0, Rabs_R0. unfold none. lra. Qed.

(** A head: scores after the scale, two passes over its keys, in any orders. *)
Variable b : K -> R.
Variable order : K -> tree nat.
Hypothesis Horder : forall j, Permutation (leaves nat (order j)) es.
Variables tau d th_tau : R.
Hypothesis Htau : 0 < tau.
Hypothesis Hd : Rabs d <= th_tau.
Variables fexp : R -> R.
Variables epsE lamE : R.
Hypothesis HepsE : 0 <= epsE < 1.
Hypothesis HlamE : 0 <= lamE.
Hypothesis exp_good : forall y, y <= 0 -> 0 <= fexp y /\ rounded epsE lamE (exp y) (fexp y).
Hypothesis exp_inF : forall y, inF emin prec (fexp y).
Variables tl to_ : tree K.
Hypothesis same_keys : Permutation (leaves K tl) (leaves K to_).
Local Notation J := (leaves K to_).
Definition score h j := r (r (tau * (1 + d) * score_programs.tree_sum r (fun c => qh h c * kh h j c) (order j)) + b j).
Definition head h e := finish emin prec (two_pass emin prec K (score h) (vh h e) fexp tl to_).

(** Exact, and the tolerance: error-bounds.md 1.5 with 1.7.23. *)
Definition s h := score_of K b es tau (q h) (k h).
Definition O h e := exact K (s h) (v h e) J.
Variable kbar : H -> nat -> R.        (* any key of each head; the weighted mean, say *)
Definition ain h j := from_operands K (q h) (dq h) (k h) (dk h) es tau (kbar h) j.
Definition shift h := shift_size (dq h) es tau (kbar h).
Definition X_in h j := Sum (fun c => (Rabs (q h c) + dq h c) * (Rabs (k h j c) + dk h j c)) es.
Definition t h j := tau * Sum (fun c => q h c * k h j c) es.
Definition t_in h j := Rabs (t h j) + ain h j + shift h.
Definition s_in h j := Rabs (s h j) + ain h j + shift h.
Definition g_dot := (1 + u) ^ length es - 1.
Definition e1_in h j := g_dot * X_in h j + (1 + g_dot) * (2 * INR (length es) * lam).
Variable tbar : H -> R.
Definition a_in h j :=
  (1 + u) * ((1 + th_tau) * ((1 + u) * (tau * e1_in h j) + u * t_in h j) + lam) + u * (s_in h j + th_tau * t_in h j) +
    lam +
  th_tau * (Rabs (t h j - tbar h) + ain h j) + ain h j.

Lemma q_error h e : Rabs (qh h e - q h e) <= dq h e.
Proof. apply projected_error. apply exact_input. Qed.
Lemma k_error h j e : Rabs (kh h j e - k h j e) <= dk h j e.
Proof. apply projected_error. apply exact_input. Qed.
Lemma v_error h e j : Rabs (vh h e j - v h e j) <= dv h e j.
Proof. apply projected_error. apply exact_input. Qed.

Definition shift_of h := common_shift (q h) (qh h) es tau (kbar h).
Lemma scores_of_head h j : Rabs (score h j - (s h j + (shift_of h + d * (tbar h + shift_of h)))) <= a_in h j.
Proof.
  assert (U := uf_pos prec). assert (P := eta_pos emin). assert (Sh := shift_is_small (q h) (qh h) (dq h) es tau Htau
    (q_error h) (kbar h)). fold (shift_of h) (shift h) in Sh.
  (* the dot product *)
  destruct (score_programs.tree_sum_summed r u lam (score_programs.rnd_rounds emin prec Hprec) (fun c => qh h c * kh h
    j c)
    (order j)) as (n & c & S1).
  apply (dot_error u lam ltac:(lra) ltac:(lra)) in S1.
  rewrite map_length, (Permutation_length (Horder j)), !Sum_map, !(fun f => Sum_perm f _ _ (Horder j)) in S1.
  assert (X1 := perturbed_products K (q h) (qh h) (dq h) (k h) (kh h) (dk h) es (q_error h) (k_error h) j).
  fold (X_in h j) in X1. fold g_dot in S1. assert (G0 : 0 <= g_dot) by
    (unfold g_dot; assert (Q := scores.pow_ge1 u ltac:(lra) (length es)); lra).
  assert (X2 := Rmult_le_compat_l _ _ _ G0 X1). replace ((1 + u) ^ length es) with (1 + g_dot) in S1 by (unfold g_dot;
    ring).
  set (xh := Sum (fun c => qh h c * kh h j c) es) in *.
  assert (E1 : Rabs (score_programs.tree_sum r (fun c => qh h c * kh h j c) (order j) - xh) <= e1_in h j)
    by (unfold e1_in; lra).
  assert (E0 : 0 <= e1_in h j) by (eapply Rle_trans; [apply Rabs_pos|apply E1]).
  (* the score of the perturbed row *)
  assert (Q := score_error tau d th_tau u lam u lam (e1_in h j) xh _ (b j) (tau * xh) (tau * xh + b j) _ (score h j)
    ltac:(lra) ltac:(lra) ltac:(lra) E0 Hd E1 eq_refl eq_refl (rnd_near emin prec _) (rnd_near emin prec _)).
  change (tau * xh + b j) with (score_of K b es tau (qh h) (kh h) j) in Q.
  (* its sizes *)
  assert (T1 := perturbed_score_size K (q h) (qh h) (dq h) (k h) (kh h) (dk h) (fun _ => 0) es tau Htau (q_error h)
    (k_error h) (kbar h) j). unfold score_of in T1. rewrite !Rplus_0_r in T1. fold xh (ain h j) (t h j) (shift h) in T1.
  fold (t_in h j) in T1.
  assert (T2 := perturbed_score_size K (q h) (qh h) (dq h) (k h) (kh h) (dk h) b es tau Htau (q_error h) (k_error h)
    (kbar
    h) j). fold (s h j) (ain h j) (shift h) in T2. fold (s_in h j) in T2.
  assert (T3 := scores_of_operands K (q h) (qh h) (dq h) (k h) (kh h) (dk h) (fun _ => 0) es tau Htau (q_error h)
    (k_error h) (kbar h) j). unfold score_of in T3. rewrite !Rplus_0_r in T3. fold xh (ain h j) (t h j) (shift_of h)
      in T3.
  assert (T4 := scores_of_operands K (q h) (qh h) (dq h) (k h) (kh h) (dk h) b es tau Htau (q_error h) (k_error h)
    (kbar h)
    j). fold (s h j) (ain h j) (shift_of h) in T4.
  set (sp := score_of K b es tau (qh h) (kh h) j) in *. set (tp := tau * xh) in *.
  assert (Tt : 0 <= th_tau) by (eapply Rle_trans; [apply Rabs_pos|apply Hd]).
  (* the scale *)
  assert (T5 : Rabs (d * (tp - (tbar h + shift_of h))) <= th_tau * (Rabs (t h j - tbar h) + ain h j)).
  { rewrite Rabs_mult. apply Rmult_le_compat; try apply Rabs_pos; auto.
    replace (tp - (tbar h + shift_of h)) with ((t h j - tbar h) + (tp - (t h j + shift_of h))) by ring.
    eapply Rle_trans; [apply Rabs_triang|]. lra. }
  assert (M1 := Rmult_le_compat_l _ _ _ (Rlt_le _ _ U) T1). assert (M2 := Rmult_le_compat_l _ _ _ Tt T1).
  assert (M3 : u * (Rabs sp + th_tau * Rabs tp) <= u * (s_in h j + th_tau * t_in h j))
    by (apply Rmult_le_compat_l; lra).
  assert (M4 : (1 + th_tau) * ((1 + u) * (tau * e1_in h j) + u * Rabs tp) <= (1 + th_tau) * ((1 + u) * (tau * e1_in h
    j) + u
    * t_in h j)) by (apply Rmult_le_compat_l; lra).
  assert (M5 : (1 + u) * ((1 + th_tau) * ((1 + u) * (tau * e1_in h j) + u * Rabs tp) + lam) <= (1 + u) * ((1 + th_tau)
    * ((1
    + u) * (tau * e1_in h j) + u * t_in h j) + lam)) by (apply Rmult_le_compat_l; lra).
  replace (score h j - (s h j + (shift_of h + d * (tbar h + shift_of h)))) with
    ((score h j - (sp + d * tp)) + d * (tp - (tbar h + shift_of h)) + (sp - (s h j + shift_of h))) by ring.
  eapply Rle_trans; [apply Rabs_triang|].
  assert (R1 := Rabs_triang (score h j - (sp + d * tp)) (d * (tp - (tbar h + shift_of h)))). unfold a_in. lra.
Qed.

(** An element of a head's output. *)
Local Notation ar := (A emin prec epsE lamE).
Variable Mp : H -> R.
Variables bigl bigo : H -> K -> bool.
Definition head_tolerance h e cl co := tolerance_in K (s h) (v h e) (dv h e) ar (a_in h) J (Mp h) (depth K tl) cl
  (depth K to_)
  co 0 (bigl h) (bigo h) u lam.
Lemma head_error h e : (forall j, In j J -> s h j + a_in h j <= Mp h) ->
  exists cl co, (cl + 1 <= 2 * length J /\ co + 1 <= 2 * length J)%nat /\
  (0 < low K (s h) ar (a_in h) J (Mp h) (depth K tl) cl 0 (bigl h) -> Rabs (head h e - O h e) <= head_tolerance h e cl
    co).
Proof.
  intros HM. assert (OK := A_sane emin prec epsE lamE HepsE HlamE).
  assert (F : forall j, inF emin prec (score h j)) by (intros; apply rnd_inF; auto).
  destruct (good_two_pass emin prec K (score h) (vh h e) fexp epsE lamE exp_good exp_inF F tl to_ same_keys) as
    (cl & co & G & C). exists cl, co. split; [auto|]. intros Hd2. unfold head.
  destruct (two_pass emin prec K (score h) (vh h e) fexp tl to_) as [[m l] o].
  destruct G as [(sl & so & Pm & Pp & SL & SO) (i & Ii & Ei) _ _]. simpl in *.
  apply (attention_of_perturbed_values K (s h) (score h) (v h e) (vh h e) (dv h e) (v_error h e) ar OK (a_in h) J (Mp h)
    (depth K tl) cl (depth K to_) co 0 (bigl h) (bigo h) sl so m l o (shift_of h + d * (tbar h + shift_of h)) u lam _
      0 0);
    auto.
  - intros E0. rewrite E0 in Ii. destruct Ii.
  - intros j _. apply scores_of_head.
  - exists i. split; auto. simpl. lra.
  - left. apply uf_pos.
  - apply rnd_near; auto.
Qed.

(** ** The whole: the outputs of all heads, projected; cs pairs of a head and a component. *)
Variable cs : list (H * nat).
Variable w_o : H * nat -> R.
Variable b_o : R.
Definition result := projected (fun c => head (fst c) (snd c)) w_o b_o cs.
Definition exact_result := linear (H * nat) w_o cs b_o (fun c => O (fst c) (snd c)).
(** The most that any counts of operations within 2 n allow. *)
Definition any_counts n (f : nat -> nat -> R) :=
  fold_right (fun cl x => Rmax (fold_right (fun co y => Rmax (f cl co) y) 0 (seq 0 n)) x) 0 (seq 0 n).
Lemma any_counts_most n f cl co : (cl < n)%nat -> (co < n)%nat -> f cl co <= any_counts n f.
Proof.
  intros Hl Ho. assert (Most : forall (h : nat -> R) l i, In i l -> h i <= fold_right (fun j x => Rmax (h j) x) 0 l).
  { intros h. induction l as [|i l IH]; simpl; [tauto|]. intros j [->|Ij]; [apply Rmax_l|].
    eapply Rle_trans; [apply IH; auto|apply Rmax_r]. }
  unfold any_counts. eapply Rle_trans; [|apply Most with (i := cl)
    (h := fun cl => fold_right (fun co y => Rmax (f cl co) y) 0 (seq 0 n)); apply in_seq; lia].
  apply Most with (h := fun co => f cl co). apply in_seq. lia.
Qed.
Definition dO (c : H * nat) := any_counts (2 * length J) (head_tolerance (fst c) (snd c)).

Theorem multihead_tolerance :
  (forall h j, In j J -> s h j + a_in h j <= Mp h) ->
  (forall h cl, (cl + 1 <= 2 * length J)%nat ->
    0 < low K (s h) ar (a_in h) J (Mp h) (depth K tl) cl 0 (bigl h)) ->
  Rabs (result - exact_result) <= stored_error u lam u_st lam_st (H * nat) (fun c => O (fst c) (snd c)) dO w_o cs b_o.
Proof.
  intros HM Hd0. apply projected_error. intros [h e]. simpl. destruct (head_error h e (HM h)) as (cl & co & (C1 & C2)
    & B).
  specialize (B (Hd0 h cl C1)). eapply Rle_trans; [apply B|]. unfold dO. simpl fst. simpl snd.
  apply any_counts_most; lia.
Qed.
End Program.
