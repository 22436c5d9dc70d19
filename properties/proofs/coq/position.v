(** Absolute positions (003): a fixed matrix of position rows is added to the tokens. *)

From mathcomp Require Import all_ssreflect all_fingroup all_algebra.
From Attest Require Import definitions basics weights self.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** Permuting X and the position rows together restores equivariance. *)
Theorem position_moves_with_positions (R : realFieldType) (e : exponential R) (scale : R) M c dk dv
    (W : weights R c c c dk dv) (pi : 'S_M) (X P : 'M_(M, c)) :
  sattn e scale W (row_perm pi X + row_perm pi P) = row_perm pi (sattn e scale W (X + P)).
Proof. by rewrite -linearD self_permutation_equivariance. Qed.

(** False: adding a fixed position matrix keeps equivariance. Refuted for every exponential that is not the constant 1,
    which gives every key the same weight, and every scale but 0, which does so too. *)
Theorem position_breaks_equivariance (R : realFieldType) (e : exponential R) (scale : R) :
    (exists a, e a != 1) -> scale != 0 ->
  ~ (forall M c dk dv (W : weights R c c c dk dv) (pi : 'S_M) (X P : 'M_(M, c)),
       sattn e scale W (row_perm pi X + P) = row_perm pi (sattn e scale W (X + P))).
Proof.
case=> a ea scale_neq0 equi.
pose W : weights R 1 1 1 1 1 := Weights (Projection (a / scale)%:M 0) (Projection 1%:M 0) (Projection 1%:M 0).
have /matrixP/(_ 0 0) := equi 2%N 1%N 1%N 1%N W (tperm 0 1) 0 (delta_mx 1 0).
rewrite linear0 !add0r [RHS]mxE tpermL /sattn.
rewrite !softmax_mulE /total !big_ord_recl !big_ord0 /self_scores /project /ones_times /= !mulmx1 !mulmx0 !addr0.
rewrite !mxE !big_ord1 !mxE /=.
rewrite !big_ord1 !mxE /= !(mul0r, mulr0, mul1r, mulr1, add0r) [scale * _]mulrC divfK // exp0.
have pos (x : R) : 0 < x -> 1 + x != 0 by move=> x_gt0; rewrite gt_eqF // addr_gt0 ?ltr01.
move/eqP; rewrite eqr_div ?pos ?ltr01 ?exp_gt0 // mul1r mulrDr mulr1 (inj_eq (addIr _)) eq_sym.
by rewrite (negPf ea).
Qed.
