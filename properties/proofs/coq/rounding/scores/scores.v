(** Dot products in any order, fused or not, and the scaled and biased score. *)
From Coq Require Import Reals List Lra Lia Psatz.
From Attest.Rounding Require Import basics.
Import ListNotations.
Open Scope R_scope.

Section Scores.
Variables u lam : R.
Hypothesis Hu : 0 <= u.
Hypothesis Hlam : 0 <= lam.

(** [summed xs y k c]: y is the exact terms xs, each rounded (or not: a fused product), added up in some order; no term
    passes more than k roundings, and c operations may each have lost lam by underflow. *)
Inductive summed : list R -> R -> nat -> nat -> Prop :=
| summed_term x y : near u lam x y -> summed [x] y 1 1
| summed_add l1 l2 y1 y2 y k1 k2 c1 c2 : summed l1 y1 k1 c1 -> summed l2 y2 k2 c2 -> near u lam (y1 + y2) y ->
    summed (l1 ++ l2) y (S (Nat.max k1 k2)) (S (c1 + c2)).

Lemma pow_ge1 k : 1 <= (1 + u) ^ k.
Proof. apply pow_R1_Rle. lra. Qed.
Lemma pow_le k k' : (k <= k')%nat -> (1 + u) ^ k <= (1 + u) ^ k'.
Proof. intros. apply Rle_pow; auto; lra. Qed.

Lemma summed_counts l y k c : summed l y k c -> (1 <= k <= length l /\ S c <= 2 * length l)%nat.
Proof. induction 1; simpl; [lia|]. rewrite app_length. lia. Qed.

Definition sum_bound (k c : nat) (X : R) := ((1 + u) ^ k - 1) * X + (1 + u) ^ k * (INR c * lam).

Lemma sum_bound_mono k k' c c' X : (k <= k')%nat -> (c <= c')%nat -> 0 <= X -> sum_bound k c X <= sum_bound k' c' X.
Proof.
  intros K C P. unfold sum_bound. assert (H := pow_le _ _ K). assert (1 <= (1 + u) ^ k) by apply pow_ge1.
  assert (INR c <= INR c') by (apply le_INR; auto). assert (0 <= INR c) by apply pos_INR.
  apply Rplus_le_compat; [apply Rmult_le_compat_r; lra|].
  apply Rmult_le_compat; try nra.
Qed.

Lemma summed_error l y k c : summed l y k c -> Rabs (y - Sum (fun x => x) l) <= sum_bound k c (Sum Rabs l).
Proof.
  induction 1 as [x y N|l1 l2 y1 y2 y k1 k2 c1 c2 H1 IH1 H2 IH2 N].
  - unfold sum_bound, near in *. simpl. rewrite Rplus_0_r, Rplus_0_r. rewrite Rmult_1_r, Rmult_1_l. nra.
  - rewrite !Sum_app. set (k := Nat.max k1 k2).
    assert (P1 : 0 <= Sum Rabs l1) by (apply Sum_nonneg; intros; apply Rabs_pos).
    assert (P2 : 0 <= Sum Rabs l2) by (apply Sum_nonneg; intros; apply Rabs_pos).
    assert (B1 := Rle_trans _ _ _ IH1 (sum_bound_mono k1 k c1 c1 _ (Nat.le_max_l _ _) (le_n _) P1)).
    assert (B2 := Rle_trans _ _ _ IH2 (sum_bound_mono k2 k c2 c2 _ (Nat.le_max_r _ _) (le_n _) P2)).
    set (X1 := Sum (fun x => x) l1) in *. set (X2 := Sum (fun x => x) l2) in *.
    assert (A1 : Rabs X1 <= Sum Rabs l1) by apply Sum_abs. assert (A2 : Rabs X2 <= Sum Rabs l2) by apply Sum_abs.
    set (S1 := Sum Rabs l1) in *. set (S2 := Sum Rabs l2) in *. clearbody S1 S2 X1 X2.
    unfold near, sum_bound in *. rewrite S_INR, plus_INR. change ((1 + u) ^ S k) with ((1 + u) * (1 + u) ^ k).
    assert (G := pow_ge1 k). set (G1 := (1 + u) ^ k) in *. clearbody G1.
    assert (I1 := pos_INR c1). assert (I2 := pos_INR c2). set (n1 := INR c1) in *. set (n2 := INR c2) in *.
    assert (T : Rabs (y1 + y2 - (X1 + X2)) <= (G1 - 1) * (S1 + S2) + G1 * ((n1 + n2) * lam)).
    { replace (y1 + y2 - (X1 + X2)) with ((y1 - X1) + (y2 - X2)) by lra.
      eapply Rle_trans; [apply Rabs_triang|]. lra. }
    assert (Z : Rabs (y1 + y2) <= G1 * (S1 + S2) + G1 * ((n1 + n2) * lam)).
    { replace (y1 + y2) with ((y1 + y2 - (X1 + X2)) + (X1 + X2)) by lra.
      eapply Rle_trans; [apply Rabs_triang|]. assert (Rabs (X1 + X2) <= Rabs X1 + Rabs X2) by apply Rabs_triang. lra. }
    replace (y - (X1 + X2)) with ((y - (y1 + y2)) + (y1 + y2 - (X1 + X2))) by lra.
    eapply Rle_trans; [apply Rabs_triang|].
    assert (u * Rabs (y1 + y2) <= u * (G1 * (S1 + S2) + G1 * ((n1 + n2) * lam))) by (apply Rmult_le_compat_l; auto).
    assert (lam <= (1 + u) * G1 * lam) by (assert (1 <= (1 + u) * G1) by nra; nra). nra.
Qed.

(** Any order: at most as many roundings as terms. *)
Theorem dot_error l y k c : summed l y k c ->
  Rabs (y - Sum (fun x => x) l) <=
    ((1 + u) ^ length l - 1) * Sum Rabs l + (1 + u) ^ length l * (2 * INR (length l) * lam).
Proof.
  intros H. destruct (summed_counts _ _ _ _ H) as [K C]. eapply Rle_trans; [apply (summed_error _ _ _ _ H)|].
  assert (P : 0 <= Sum Rabs l) by (apply Sum_nonneg; intros; apply Rabs_pos).
  eapply Rle_trans; [apply (sum_bound_mono k (length l) c (2 * length l)); auto; lia|].
  unfold sum_bound. rewrite mult_INR. simpl (INR 2). lra.
Qed.

(** The score, post-scale: the constant tau is wrong by the same relative d for all keys; what is left is a. *)
Theorem score_error tau d th_tau thS lamS thB lamB e1 x xh b t s th sh :
  0 <= tau -> 0 <= thS -> 0 <= thB -> 0 <= e1 ->
  Rabs d <= th_tau -> Rabs (xh - x) <= e1 -> t = tau * x -> s = t + b ->
  near thS lamS (tau * (1 + d) * xh) th -> near thB lamB (th + b) sh ->
  Rabs (sh - (s + d * t)) <=
    (1 + thB) * ((1 + th_tau) * ((1 + thS) * (tau * e1) + thS * Rabs t) + lamS) +
    thB * (Rabs s + th_tau * Rabs t) + lamB.
Proof.
  intros Pt PS PB Pe Hd Hx Et Es N1 N2. unfold near in *.
  assert (Ptau : 0 <= 1 + th_tau) by (assert (0 <= Rabs d) by apply Rabs_pos; lra).
  assert (D1 : Rabs (1 + d) <= 1 + th_tau).
  { eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_R1. lra. }
  assert (E1 : Rabs (tau * (1 + d) * xh - (1 + d) * t) <= (1 + th_tau) * (tau * e1)).
  { replace (tau * (1 + d) * xh - (1 + d) * t) with ((1 + d) * (tau * (xh - x))) by (rewrite Et; ring).
    rewrite Rabs_mult. apply Rmult_le_compat; auto using Rabs_pos. rewrite Rabs_mult, (Rabs_pos_eq tau) by auto.
    apply Rmult_le_compat_l; auto. }
  set (y := tau * (1 + d) * xh) in *.
  assert (Y : Rabs y <= (1 + th_tau) * (tau * e1) + (1 + th_tau) * Rabs t).
  { replace y with ((y - (1 + d) * t) + (1 + d) * t) by lra. eapply Rle_trans; [apply Rabs_triang|].
    rewrite (Rabs_mult (1 + d)). assert (Rabs (1 + d) * Rabs t <= (1 + th_tau) * Rabs t)
      by (apply Rmult_le_compat_r; auto using Rabs_pos). lra. }
  assert (TH : Rabs (th - (1 + d) * t) <= (1 + th_tau) * ((1 + thS) * (tau * e1) + thS * Rabs t) + lamS).
  { replace (th - (1 + d) * t) with ((th - y) + (y - (1 + d) * t)) by lra. eapply Rle_trans; [apply Rabs_triang|].
    assert (thS * Rabs y <= thS * ((1 + th_tau) * (tau * e1) + (1 + th_tau) * Rabs t)) by (apply Rmult_le_compat_l;
      auto).
    lra. }
  set (B := (1 + th_tau) * ((1 + thS) * (tau * e1) + thS * Rabs t) + lamS) in *. clearbody B.
  assert (Z : Rabs (th + b) <= B + (Rabs s + th_tau * Rabs t)).
  { replace (th + b) with ((th - (1 + d) * t) + (s + d * t)) by (rewrite Es; ring).
    eapply Rle_trans; [apply Rabs_triang|]. assert (Rabs (s + d * t) <= Rabs s + Rabs (d * t)) by apply Rabs_triang.
    rewrite (Rabs_mult d) in *. assert (Rabs d * Rabs t <= th_tau * Rabs t) by (apply Rmult_le_compat_r;
      auto using Rabs_pos).
    lra. }
  replace (sh - (s + d * t)) with ((sh - (th + b)) + (th - (1 + d) * t)) by (rewrite Es; ring).
  eapply Rle_trans; [apply Rabs_triang|].
  assert (thB * Rabs (th + b) <= thB * (B + (Rabs s + th_tau * Rabs t))) by (apply Rmult_le_compat_l; auto). lra.
Qed.
End Scores.
