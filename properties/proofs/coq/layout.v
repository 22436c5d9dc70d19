(** What the documents' proofs rest on (000), fused indices (001), the column convention (002). *)

From mathcomp Require Import all_ssreflect all_fingroup all_algebra.
From Attest Require Import definitions basics masked.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

(** A^(i) = I^(i) A, (AB)^(i) = A^(i) B, (K^T)^[s] = (K^(s))^T, (1_M b^T)^(i) = 1_{M-1} b^T,
    [A|B]^(i) = [A^(i)|B^(i)]. *)
Theorem layout_deletion_identities (R : realFieldType) M N d d' (i : 'I_M) (A : 'M[R]_(M, N)) (A' : 'M[R]_(M, d'))
    (B : 'M[R]_(N, d)) (b : 'rV[R]_d) :
  [/\ row' i A = row' i 1%:M *m A, row' i (A *m B) = row' i A *m B, col' i A^T = (row' i A)^T,
      row' i (ones_times M b) = ones_times M.-1 b
    & row' i (row_mx A A') = row_mx (row' i A) (row' i A')].
Proof.
have mul n p (C : 'M[R]_(M, n)) (D : 'M[R]_(n, p)) : row' i (C *m D) = row' i C *m D by rewrite !row'Esub mul_rowsub_mx.
split=> //; first by rewrite -mul mul1mx.
- by apply/matrixP => r j; rewrite !mxE.
- by rewrite row'Esub rowsub_ones_times.
by apply/matrixP => r j; case: (split_ordP j) => l ->; rewrite mxE ?row_mxEl ?row_mxEr mxE.
Qed.

(** R_pi A by the permutation matrix of pi is [row_perm pi A]. *)
Theorem layout_deletion_identities__permutation (R : realFieldType) M N (pi : 'S_M) (A : 'M[R]_(M, N)) :
  perm_mx pi *m A = row_perm pi A.
Proof. by rewrite row_permE. Qed.

(** (a i) = a p + i: the pairs (a, i) and the fused indices are in bijection, in the order of the memory. *)
Theorem layout_index_fusion h p (a : 'I_h) (i : 'I_p) (x : 'I_(h * p)) :
  [/\ fused a i = (a * p + i)%N :> nat, outer (fused a i) = a, inner (fused a i) = i & fused (outer x) (inner x) = x].
Proof. by rewrite outerK innerK fusedK. Qed.

(** A tensor with fused columns is the same entries: [A_1 | ... | A_h] at (a i) is A_a at i, and back. *)
Theorem layout_index_fusion__tensor (R : realFieldType) M h p (A : 'I_h -> 'M[R]_(M, p)) (C : 'M[R]_(M, h * p)) a :
  columns_of_head (beside A) a = A a /\ beside (columns_of_head C) = C.
Proof. by rewrite besideK columns_of_headK. Qed.

Section Columns.
Variables (R : realFieldType) (e : exponential R) (scale : R).

Lemma softmax_columns_trmx m n (S : 'M[score R]_(m, n)) : softmax_columns e S^T = (softmax e S)^T.
Proof.
apply/matrixP => i j; rewrite !mxE; congr (_ / _).
by apply: eq_bigr => l _; rewrite mxE.
Qed.

(** 002's column convention is the transpose of the row convention ... *)
Theorem layout_columns_are_transpose M N dk dv (Q : 'M[R]_(M, dk)) (K : 'M[R]_(N, dk)) (V : 'M[R]_(N, dv)) :
  attention_columns e scale Q^T K^T V^T = (attention e scale Q K V)^T.
Proof.
rewrite /attention_columns /attention trmx_mul trmxK -softmax_columns_trmx; congr (_ *m softmax_columns e _).
by apply/matrixP => i j; rewrite !mxE; congr (Some (_ * _)); apply: eq_bigr => l _; rewrite !mxE mulrC.
Qed.

(** ... the boolean mask transposed too ... *)
Theorem layout_columns_are_transpose__masked conv M N dk dv (allowed : 'M[bool]_(M, N)) (Q : 'M[R]_(M, dk))
    (K : 'M[R]_(N, dk)) (V : 'M[R]_(N, dv)) :
  mattn_columns e scale allowed^T Q^T K^T V^T = (mattn e scale conv (additive R allowed) Q K V)^T.
Proof.
rewrite masked_boolean_is_additive /mattn_columns trmx_mul trmxK -softmax_columns_trmx.
congr (_ *m softmax_columns e _); apply/matrixP => i j; rewrite !mxE; case: (allowed j i) => //.
by congr (Some (_ * _)); apply: eq_bigr => l _; rewrite !mxE mulrC.
Qed.

(** ... and the projections. *)
Theorem layout_columns_are_transpose__projections M N cq c dk dv (W : weights R cq c c dk dv) (X : 'M[R]_(M, cq))
    (Z : 'M[R]_(N, c)) :
  attn_w_columns e scale (column_form (Wq W)) (column_form (Wk W)) (column_form (Wv W)) X^T Z^T =
  (attn_w e scale W X Z Z)^T.
Proof.
have project_trmx n c' d (P : projection R c' d) (Y : 'M[R]_(n, c')) :
    project_columns (column_form P) Y^T = (project P Y)^T.
  by rewrite /project linearD /= trmx_mul /ones_times trmx_mul trmx_const.
by rewrite /attn_w_columns !project_trmx layout_columns_are_transpose.
Qed.

End Columns.
