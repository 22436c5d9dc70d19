(** SAttn, MSAttn and 003's ladder of forms (000, 001, 002, 003, 004). *)

From mathcomp Require Import all_ssreflect all_fingroup all_algebra.
From Attest Require Import definitions basics masked weights.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section IsAttention.
Variables (R : realFieldType) (e : exponential R) (scale : R) (conv : convention).
Variables (M c dk dv : nat) (W : weights R c c c dk dv).
Local Notation SAttn := (sattn e scale W).
Local Notation MSAttn := (msattn e scale W conv).
Implicit Types (B : 'M[score R]_M) (X : 'M[R]_(M, c)).

(** SAttn(X) = Attn(X,X,X); MSAttn_B(X) = MAttn_B(X,X,X). *)
Theorem self_is_attention X : SAttn X = attn_w e scale W X X X.
Proof. by []. Qed.

Theorem self_is_attention__masked B X : MSAttn B X = mattn_w e scale conv W B X X X.
Proof. by []. Qed.

End IsAttention.

Section Self.
Variables (R : realFieldType) (e : exponential R) (scale : R) (conv : convention).
Variables (M c dk dv : nat) (W : weights R c c c dk dv).
Local Notation SAttn := (sattn e scale W).
Local Notation MSAttn := (msattn e scale W conv).
Implicit Types (B : 'M[score R]_M) (X : 'M[R]_(M, c)).

(** SAttn(R_pi X) = R_pi SAttn(X), with biases too. *)
Theorem self_permutation_equivariance (pi : 'S_M) X : SAttn (row_perm pi X) = row_perm pi (SAttn X).
Proof. exact: weights_permutation_equivariance_with_bias. Qed.

(** b_is = -oo, s != i => o_i is independent of x_s ... *)
Theorem self_suppression i s B X X' :
  s != i -> B i s = hidden -> (forall l, l != s -> row l X = row l X') -> row i (MSAttn B X) = row i (MSAttn B X').
Proof.
move=> si Bis XX'; have Xi : row i X = row i X' by apply: XX'; rewrite eq_sym.
have step : row i (mattn_w e scale conv W B X X X) = row i (mattn_w e scale conv W B X X' X').
  by apply: weights_suppression Bis _ => l ls; rewrite !XX'.
rewrite !self_is_attention__masked step; exact: weights_query_locality__masked.
Qed.

(** ... and equals the closed formula over l != s. *)
Theorem self_suppression__formula i s a B X :
    B i s = hidden ->
  let w l := weight e (masked_score scale conv (self_scores W X i l) (B i l)) in
  MSAttn B X i a = (\sum_(l | l != s) w l * project (Wv W) X l a) / \sum_(l | l != s) w l.
Proof.
move=> Bis w; rewrite self_is_attention__masked.
have -> := @weights_suppression__formula _ e scale conv _ _ _ _ _ _ _ i s a W B X X X Bis.
by congr (_ / _); apply: eq_bigr => l _; rewrite masked_scoresE.
Qed.

(** b_is = -oo for all i != s => MSAttn_B(X)^(s) = MSAttn_{B^<s>}(X^(s)). *)
Theorem self_input_deletion s B X :
    (forall i, i != s -> B i s = hidden) ->
  row' s (MSAttn B X) = msattn e scale W conv (row' s (col' s B)) (row' s X).
Proof.
move=> Bs; rewrite self_is_attention__masked weights_masked_query_deletion.
have Bs' i : row' s B i s = hidden by rewrite mxE Bs // eq_sym neq_lift.
rewrite (@weights_key_value_deletion _ e scale conv _ _ _ _ _ _ _ s W (row' s B) _ X X Bs').
rewrite -self_is_attention__masked; have -> // : col' s (row' s B) = row' s (col' s B).
by apply/matrixP => i j; rewrite !mxE.
Qed.

(** Without biases score(i,j) = scale x_i (W_Q W_K^T) x_j^T. *)
Theorem self_bilinear_score i j X :
    bias_of (Wq W) = 0 -> bias_of (Wk W) = 0 ->
  (scale *: self_scores W X) i j = scale * (row i X *m (matrix_of (Wq W) *m (matrix_of (Wk W))^T) *m (row j X)^T) 0 0.
Proof.
move=> bq bk; rewrite mxE /self_scores qk_entry !row_project /project bq bk /ones_times !mulmx0 !addr0.
by rewrite trmx_mul !mulmxA.
Qed.

End Self.

Section Ladder.
Variables (R : realFieldType) (e : exponential R).

(** softmax(XX^T) X is attention of X with itself, without scale or projections; its score matrix is symmetric. *)
Theorem self_parameter_free M c (X : 'M[R]_(M, c)) : parameter_free e X = attention e 1 X X X.
Proof. by rewrite /parameter_free /attention scale1r. Qed.

Theorem self_parameter_free__symmetric M c (X : 'M[R]_(M, c)) : (X *m X^T)^T = X *m X^T.
Proof. by rewrite trmx_mul trmxK. Qed.

(** One projection U: the parameter-free form of XU; symmetric scores; U = I is the parameter-free form. *)
Theorem self_shared_projection M c d (U : 'M[R]_(c, d)) (X : 'M_(M, c)) :
  shared_projection e U X = parameter_free e (X *m U).
Proof. by rewrite /shared_projection /parameter_free trmx_mul !mulmxA. Qed.

Theorem self_shared_projection__symmetric M c d (U : 'M[R]_(c, d)) (X : 'M_(M, c)) :
  (X *m U *m U^T *m X^T)^T = X *m U *m U^T *m X^T.
Proof. by rewrite !trmx_mul !trmxK !mulmxA. Qed.

Theorem self_shared_projection__identity M c (X : 'M[R]_(M, c)) : shared_projection e 1%:M X = parameter_free e X.
Proof. by rewrite self_shared_projection mulmx1. Qed.

(** softmax(QK^T) V is the scaled form of root Q, where root * scale = 1: root = sqrt(dk) and scale = 1/sqrt(dk). *)
Theorem self_unscaled_vs_scaled M N dk dv (root scale : R) (Q : 'M_(M, dk)) (K : 'M_(N, dk)) (V : 'M_(N, dv)) :
  root * scale = 1 -> unscaled e Q K V = attention e scale (root *: Q) K V.
Proof. by move=> one; rewrite /attention -scalemxAl scalerA mulrC one scale1r. Qed.

End Ladder.

(** False: with separate W_q and W_k the score matrix of X with itself is symmetric. *)
Theorem self_scores_symmetric (R : realFieldType) :
  ~ (forall M c dk dv (W : weights R c c c dk dv) (X : 'M_(M, c)), (self_scores W X)^T = self_scores W X).
Proof.
move=> sym.
pose W := Weights (Projection (delta_mx 0 0 : 'M[R]_2) 0) (Projection (delta_mx 1 0 : 'M[R]_2) 0)
                  (Projection (0 : 'M[R]_2) 0).
have /matrixP/(_ 0 1) := sym 2%N 2%N 2%N 2%N W 1%:M.
rewrite mxE /self_scores /project /= /ones_times !mulmx0 !addr0 !mul1mx trmx_delta mul_delta_mx !mxE /=.
by move/eqP; rewrite eq_sym oner_eq0.
Qed.

(** False: masked self-attention is permutation equivariant for every B. Any exponential refutes it. *)
Theorem self_mask_breaks_equivariance (R : realFieldType) (e : exponential R) (scale : R) (conv : convention) :
  ~ (forall M c dk dv (W : weights R c c c dk dv) (B : 'M[score R]_M) (pi : 'S_M) (X : 'M_(M, c)),
       (forall i, sees_a_key B i) -> msattn e scale W conv B (row_perm pi X) = row_perm pi (msattn e scale W conv B X)).
Proof.
move=> equi.
pose W : weights R 1 1 1 1 1 := Weights (Projection 0 0) (Projection 0 0) (Projection 1%:M 0).
have B_sees i : sees_a_key (additive R (causal_top_left 2 2)) i by exists i; rewrite !mxE leqnn.
have /matrixP/(_ 0 0) := equi 2%N 1%N 1%N 1%N W _ (tperm 0 1) (delta_mx 0 0) B_sees.
have project0 X : project (Projection 0 0 : projection R 1 1) X = 0 :> 'M_(2, 1).
  by rewrite /project /ones_times /= !mulmx0 addr0.
rewrite [RHS]mxE !self_is_attention__masked /mattn_w /= !project0 !mattn_flat.
rewrite !big_ord_recl !big_ord0 /project /ones_times /= !mulmx1 !mulmx0 !addr0 !mxE /= tpermL.
rewrite -[(bump 0 0 <= 1)%N]/true /= !addr0 mul0r mul1r => /esym/eqP.
by rewrite invr_eq0 -(natrD _ 1 1) pnatr_eq0.
Qed.
