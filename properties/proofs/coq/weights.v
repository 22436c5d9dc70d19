(** Attn_W and MAttn_W (000): attention of projections. Statements with a mask hold for both conventions. *)

From mathcomp Require Import all_ssreflect all_fingroup all_algebra.
From Attest Require Import definitions basics attention masked.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** q_i W_q + b_q: the row form of Q W_q + 1 b_q^T. *)
Theorem weights_row_form (R : realFieldType) M c d (i : 'I_M) (P : projection R c d) (Q : 'M[R]_(M, c)) :
  row i (project P Q) = row i Q *m matrix_of P + bias_of P.
Proof. by rewrite /project raddfD /= row_mul row_ones_times. Qed.

(** Written on columns, W_q^T q_i + b_q. *)
Theorem weights_row_form__transposed (R : realFieldType) M c d (i : 'I_M) (P : projection R c d) (Q : 'M[R]_(M, c)) :
  (row i (project P Q))^T = (matrix_of P)^T *m (row i Q)^T + (bias_of P)^T.
Proof. by rewrite weights_row_form linearD /= trmx_mul. Qed.

Section Weights.
Variables (R : realFieldType) (e : exponential R) (scale : R) (conv : convention).
Variables (M N cq ck cv dk dv : nat).
Local Notation Attn_W := (attn_w e scale).
Local Notation MAttn_W := (mattn_w e scale conv).
Implicit Types (W : weights R cq ck cv dk dv) (B : 'M[score R]_(M, N)).
Implicit Types (Q : 'M[R]_(M, cq)) (K : 'M[R]_(N, ck)) (V : 'M[R]_(N, cv)).

Lemma mattn_w_zero_mask W Q K V : MAttn_W W (zero_mask R M N) Q K V = Attn_W W Q K V.
Proof. exact: mattn_zero_mask. Qed.

(** o_i does not depend on q_j, j != i. *)
Theorem weights_query_locality i W Q Q' K V : row i Q = row i Q' -> row i (Attn_W W Q K V) = row i (Attn_W W Q' K V).
Proof. by move=> QQ'; apply/attention_local/project_local. Qed.

Theorem weights_query_locality__masked i W B Q Q' K V :
  row i Q = row i Q' -> row i (MAttn_W W B Q K V) = row i (MAttn_W W B Q' K V).
Proof. by move=> QQ'; apply: mattn_local => //; apply: project_local. Qed.

(** Attn_W(Q,K,V)^(i) = Attn_W(Q^(i),K,V), and the same under B^(i). *)
Theorem weights_query_deletion i W Q K V : row' i (Attn_W W Q K V) = Attn_W W (row' i Q) K V.
Proof. by rewrite /attn_w attention_query_deletion !row'Esub rowsub_project. Qed.

Theorem weights_masked_query_deletion i W B Q K V : row' i (MAttn_W W B Q K V) = MAttn_W W (row' i B) (row' i Q) K V.
Proof. by rewrite /mattn_w masked_query_deletion !row'Esub rowsub_project. Qed.

(** Attn_W(R_pi Q, R_sigma K, R_sigma V) = R_pi Attn_W(Q,K,V), with biases: the documents' hypothesis is not needed. *)
Theorem weights_permutation_equivariance_with_bias (pi : 'S_M) (sigma : 'S_N) W Q K V :
  Attn_W W (row_perm pi Q) (row_perm sigma K) (row_perm sigma V) = row_perm pi (Attn_W W Q K V).
Proof.
rewrite -(attention_permutation_equivariance e scale pi sigma) /attn_w.
by rewrite !row_permEsub !rowsub_project.
Qed.

(** Without biases, as the documents state it. *)
Theorem weights_permutation_equivariance (pi : 'S_M) (sigma : 'S_N) W Q K V :
    bias_of (Wq W) = 0 -> bias_of (Wk W) = 0 -> bias_of (Wv W) = 0 ->
  Attn_W W (row_perm pi Q) (row_perm sigma K) (row_perm sigma V) = row_perm pi (Attn_W W Q K V).
Proof. by move=> _ _ _; apply: weights_permutation_equivariance_with_bias. Qed.

(** b_is = -oo => o_i is independent of k_s and v_s ... *)
Theorem weights_suppression i s W B Q K K' V V' :
    B i s = hidden -> (forall l, l != s -> row l K = row l K' /\ row l V = row l V') ->
  row i (MAttn_W W B Q K V) = row i (MAttn_W W B Q K' V').
Proof.
move=> Bis KV; apply: masked_suppression Bis _ => l /KV[? ?].
by split; apply: project_local.
Qed.

(** ... and equals the closed formula over l != s. *)
Theorem weights_suppression__formula i s c W B Q K V :
    B i s = hidden ->
  let w l := weight e (masked_scores scale conv B (project (Wq W) Q) (project (Wk W) K) i l) in
  MAttn_W W B Q K V i c = (\sum_(l | l != s) w l * project (Wv W) V l c) / \sum_(l | l != s) w l.
Proof. exact: masked_suppression__formula. Qed.

(** Column s of B is -oo => MAttn_W,B(Q,K,V) = MAttn_W,B^[s](Q,K^(s),V^(s)). *)
Theorem weights_key_value_deletion s W B Q K V :
  (forall i, B i s = hidden) -> MAttn_W W B Q K V = MAttn_W W (col' s B) Q (row' s K) (row' s V).
Proof. by move=> Bs; rewrite /mattn_w (masked_key_value_deletion _ _ _ _ _ _ Bs) !row'Esub !rowsub_project. Qed.

End Weights.

Section Laws.
Variables (R : realFieldType) (e : exponential R) (scale : R) (conv : convention).
Variables (M N cq ck cv dk dv : nat).
Local Notation MAttn_W := (mattn_w e scale conv).
Variables (B : 'M[score R]_(M, N)) (Q : 'M[R]_(M, cq)) (K : 'M[R]_(N, ck)) (V : 'M[R]_(N, cv)).

(** The output does not depend on b_k. *)
Theorem weights_key_bias_irrelevant (Pq : projection R cq dk) (Wk : 'M_(ck, dk)) (b_k b_k' : 'rV_dk)
    (Pv : projection R cv dv) :
  MAttn_W (Weights Pq (Projection Wk b_k) Pv) B Q K V = MAttn_W (Weights Pq (Projection Wk b_k') Pv) B Q K V.
Proof.
suff no_bias b : MAttn_W (Weights Pq (Projection Wk b) Pv) B Q K V =
    mattn e scale conv B (project Pq Q) (K *m Wk) (project Pv V) by rewrite !no_bias.
by rewrite /mattn_w /= [project (Projection _ _) _]/project mattn_key_translation.
Qed.

(** O(b_v) = O(0) + 1 b_v^T, where each row sees a key. *)
Theorem weights_value_bias_passes (Pq : projection R cq dk) (Pk : projection R ck dk) (Wv : 'M_(cv, dv))
    (b_v : 'rV_dv) :
    (forall i, sees_a_key B i) ->
  MAttn_W (Weights Pq Pk (Projection Wv b_v)) B Q K V =
  MAttn_W (Weights Pq Pk (Projection Wv 0)) B Q K V + ones_times M b_v.
Proof.
move=> seen; rewrite /mattn_w /mattn /= /project /= mulmxDr softmax_ones; last by move=> i; apply: sees_masked.
by rewrite /ones_times mulmx0 addr0.
Qed.

(** W_q -> W_q G, W_k -> W_k G^-T, biases alike, changes nothing. *)
Theorem weights_reparametrisation (G : 'M_dk) (Wq : 'M_(cq, dk)) (b_q : 'rV_dk) (Wk : 'M_(ck, dk)) (b_k : 'rV_dk)
    (Pv : projection R cv dv) :
    G \in unitmx ->
  MAttn_W (Weights (Projection (Wq *m G) (b_q *m G))
                   (Projection (Wk *m (invmx G)^T) (b_k *m (invmx G)^T)) Pv) B Q K V =
  MAttn_W (Weights (Projection Wq b_q) (Projection Wk b_k) Pv) B Q K V.
Proof.
move=> G_unit; rewrite /mattn_w /=.
have project_mul n c (A : 'M[R]_(c, dk)) b (H : 'M_dk) (X : 'M_(n, c)) :
    project (Projection (A *m H) (b *m H)) X = project (Projection A b) X *m H.
  by rewrite /project /ones_times /= !mulmxA -mulmxDl.
rewrite !project_mul; congr (softmax e _ *m _); apply/matrixP => i j; rewrite !masked_scoresE.
by rewrite trmx_mul trmxK mulmxA mulmxK.
Qed.

End Laws.
