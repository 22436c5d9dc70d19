(** What a kernel may do when a weight meets its value: round it first, or fuse the product into the sum. *)
From Coq Require Import Reals List Lra Lia Psatz Permutation.
From Attest.Rounding Require Import basics merge bound.
Import ListNotations.
Open Scope R_scope.

Section StoredWeights.
Variable A : arith.
Hypothesis OK : sane A.

(** A weight p that is w once it meets its value: what [sums_key] asks of the numerator. *)
Lemma rounded_weight p w v y : 0 <= p -> Rabs (w - p) <= up A * p + Rmin (lamp A) ((1 + up A) * p) ->
  near (u A) (lam A) (w * v) y ->
  Rabs (y - p * v) <= ((w_o A - 1) * p + Rmin ((1 + u A) * lamp A) (w_o A * p)) * Rabs v + lam A.
Proof.
  destruct OK. intros Pp Hw Hy. unfold near in Hy. rewrite Rabs_mult in Hy.
  assert (M1 := Rmin_l (lamp A) ((1 + up A) * p)). assert (M2 := Rmin_r (lamp A) ((1 + up A) * p)).
  set (m := Rmin (lamp A) ((1 + up A) * p)) in *.
  assert (Aw2 : Rabs w <= (1 + up A) * p + m).
  { replace w with ((w - p) + p) by lra. eapply Rle_trans; [apply Rabs_triang|]. rewrite (Rabs_pos_eq p) by auto. lra. }
  assert (Low : (1 + u A) * m <= Rmin ((1 + u A) * lamp A) (w_o A * p)).
  { apply Rmin_glb; [apply Rmult_le_compat_l; lra|]. unfold w_o.
    assert ((1 + u A) * m <= (1 + u A) * ((1 + up A) * p)) by (apply Rmult_le_compat_l; lra). lra. }
  replace (y - p * v) with ((y - w * v) + (w - p) * v) by ring. eapply Rle_trans; [apply Rabs_triang|].
  rewrite (Rabs_mult (w - p)).
  assert (u A * Rabs w + Rabs (w - p) <= (w_o A - 1) * p + Rmin ((1 + u A) * lamp A) (w_o A * p)).
  { assert (u A * Rabs w <= u A * ((1 + up A) * p + m)) by (apply Rmult_le_compat_l; auto). unfold w_o in *. lra. }
  assert ((u A * Rabs w + Rabs (w - p)) * Rabs v <=
    ((w_o A - 1) * p + Rmin ((1 + u A) * lamp A) (w_o A * p)) * Rabs v)
    by (apply Rmult_le_compat_r; auto using Rabs_pos).
  lra.
Qed.

(** Stored in a narrow format, by rounding or flushing. *)
Lemma stored_weight p w v y : 0 <= p -> rounded (up A) (lamp A) p w -> near (u A) (lam A) (w * v) y ->
  Rabs (y - p * v) <= ((w_o A - 1) * p + Rmin ((1 + u A) * lamp A) (w_o A * p)) * Rabs v + lam A.
Proof.
  destruct OK. intros Pp Hw. apply rounded_weight; auto. unfold rounded in Hw. rewrite (Rabs_pos_eq p) in Hw by auto.
  assert (0 <= up A * p) by (apply Rmult_le_pos; auto).
  assert (Rmin (lamp A) p <= Rmin (lamp A) ((1 + up A) * p)) by (apply Rle_min_compat; lra). lra.
Qed.

(** Fused: the product enters the sum unrounded. *)
Lemma fused_weight p w v : 0 <= p -> rounded (up A) (lamp A) p w ->
  Rabs (w * v - p * v) <= ((w_o A - 1) * p + Rmin ((1 + u A) * lamp A) (w_o A * p)) * Rabs v + lam A.
Proof.
  destruct OK. intros Pp Hw. apply stored_weight with w; auto. unfold near. rewrite Rminus_eq_0, Rabs_R0.
  assert (0 <= u A * Rabs (w * v)) by (apply Rmult_le_pos; auto using Rabs_pos). lra.
Qed.

(** A stored weight in the sum of weights: what [sums_key] asks of the denominator. *)
Lemma stored_in_denominator p w : 0 <= p -> rounded (upd A) (lampd A) p w ->
  Rabs (w - p * 1) <= ((w_l A - 1) * p + Rmin (lampd A) (w_l A * p)) * Rabs 1 + lam A.
Proof.
  destruct OK. intros Pp Hw. unfold rounded in Hw. rewrite (Rabs_pos_eq p) in Hw by auto.
  rewrite Rmult_1_r, Rabs_R1, Rmult_1_r. unfold w_l.
  assert (0 <= upd A * p) by (apply Rmult_le_pos; auto).
  assert (Rmin (lampd A) p <= Rmin (lampd A) ((1 + upd A) * p)) by (apply Rle_min_compat; lra). lra.
Qed.
End StoredWeights.
