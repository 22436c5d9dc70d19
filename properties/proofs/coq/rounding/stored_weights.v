(** What a kernel may do when a weight meets its value: round it first, or fuse the product into the sum. *)
From Coq Require Import Reals List Lra Lia Psatz Permutation.
From Attest.Rounding Require Import basics merge bound.
Import ListNotations.
Open Scope R_scope.

Section StoredWeights.
Variable A : arith.
Hypothesis OK : sane A.

(** A weight p stored as w in a narrow format, then multiplied by its value: what [sums_key] asks of the numerator. *)
Lemma stored_weight p w v y : near (up A) (lamp A) p w -> near (u A) (lam A) (w * v) y ->
  Rabs (y - p * v) <= (w_o A - 1) * (Rabs p * Rabs v) + (1 + u A) * lamp A * Rabs v + lam A.
Proof.
  destruct OK. intros Hw Hy. assert (Aw := near_abs _ _ _ _ Hw). unfold near in *. rewrite Rabs_mult in Hy.
  assert (Vp := Rabs_pos v).
  replace (y - p * v) with ((y - w * v) + (w - p) * v) by ring. eapply Rle_trans; [apply Rabs_triang|].
  rewrite (Rabs_mult (w - p)).
  assert (Rabs (w - p) * Rabs v <= (up A * Rabs p + lamp A) * Rabs v) by (apply Rmult_le_compat_r; auto).
  assert (Rabs w * Rabs v <= ((1 + up A) * Rabs p + lamp A) * Rabs v) by (apply Rmult_le_compat_r; auto).
  assert (u A * (Rabs w * Rabs v) <= u A * (((1 + up A) * Rabs p + lamp A) * Rabs v)) by (apply Rmult_le_compat_l;
    auto).
  unfold w_o. lra.
Qed.

(** Fused: the product enters the sum unrounded. *)
Lemma fused_weight p w v : near (up A) (lamp A) p w ->
  Rabs (w * v - p * v) <= (w_o A - 1) * (Rabs p * Rabs v) + (1 + u A) * lamp A * Rabs v + lam A.
Proof.
  destruct OK. intros Hw. apply stored_weight with w; auto. unfold near. rewrite Rminus_eq_0, Rabs_R0.
  assert (0 <= u A * Rabs (w * v)) by (apply Rmult_le_pos; auto using Rabs_pos). lra.
Qed.
End StoredWeights.
