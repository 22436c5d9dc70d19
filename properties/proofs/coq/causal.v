(** The causal masks (001, 002, 003). Indices count from 0. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Attest Require Import definitions basics.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Causal.
Variables (R : realFieldType) (e : exponential R) (scale : R) (conv : convention).
Local Notation MAttn := (mattn e scale conv).
Local Notation additive := (additive R).

Lemma additive_hidden m n (allowed : 'M[bool]_(m, n)) i j : (additive allowed i j != hidden) = allowed i j.
Proof. by rewrite mxE; case: (allowed i j). Qed.

(** An answer under a boolean mask is one over the keys that it shows. *)
Lemma weight_shown M N dk (allowed : 'M[bool]_(M, N)) (Q : 'M_(M, dk)) (K : 'M_(N, dk)) i j :
  weight e (masked_scores scale conv (additive allowed) Q K i j) =
  if allowed i j then e (scale * (Q *m K^T) i j) else 0.
Proof.
rewrite masked_scoresE [additive _ _ _]mxE; case: (allowed i j) => //=.
have -> : (0 : 'M[R]_(M, N)) i j = 0 by rewrite mxE.
by case: conv; rewrite addr0.
Qed.

Lemma over_shown M N dk dv (allowed : 'M[bool]_(M, N)) (Q : 'M_(M, dk)) (K : 'M_(N, dk)) (V : 'M_(N, dv)) i c :
  let w j := e (scale * (Q *m K^T) i j) in
  MAttn (additive allowed) Q K V i c = (\sum_(j | allowed i j) w j * V j c) / \sum_(j | allowed i j) w j.
Proof.
move=> w; rewrite softmax_mulE /total; congr (_ / _); rewrite [RHS]big_mkcond; apply: eq_bigr => j _;
  rewrite weight_shown //.
by case: (allowed i j); rewrite ?mul0r.
Qed.

(** With the causal mask o_i is independent of k_j and v_j for j > i. *)
Theorem causal_no_leak M N dk dv (i : 'I_M) (Q : 'M_(M, dk)) (K K' : 'M_(N, dk)) (V V' : 'M_(N, dv)) :
    (forall j : 'I_N, (j <= i)%N -> row j K = row j K' /\ row j V = row j V') ->
  row i (MAttn (additive (causal_top_left M N)) Q K V) = row i (MAttn (additive (causal_top_left M N)) Q K' V').
Proof. by move=> KV; apply: mattn_local => // j; rewrite additive_hidden mxE; apply: KV. Qed.

(** Nor of x_j for j > i in masked self-attention. *)
Theorem causal_no_leak__self M c dk dv (W : weights R c c c dk dv) (i : 'I_M) (X X' : 'M_(M, c)) :
    (forall j : 'I_M, (j <= i)%N -> row j X = row j X') ->
  row i (msattn e scale W conv (additive (causal_top_left M M)) X) =
  row i (msattn e scale W conv (additive (causal_top_left M M)) X').
Proof.
move=> XX'; have project_row d (P : projection R c d) (j : 'I_M) : (j <= i)%N ->
    row j (project P X) = row j (project P X').
  by move=> ji; rewrite !row_project XX'.
apply: mattn_local => // [|j]; first exact: project_row.
by rewrite additive_hidden mxE => ji; rewrite !project_row.
Qed.

(** The bottom-right form hides the keys j > i + N - M. *)
Theorem causal_no_leak__bottom_right M N dk dv (i : 'I_M) (Q : 'M_(M, dk)) (K K' : 'M_(N, dk)) (V V' : 'M_(N, dv)) :
    (forall j : 'I_N, (j + M <= i + N)%N -> row j K = row j K' /\ row j V = row j V') ->
  row i (MAttn (additive (causal_bottom_right M N)) Q K V) =
  row i (MAttn (additive (causal_bottom_right M N)) Q K' V').
Proof. by move=> KV; apply: mattn_local => // j; rewrite additive_hidden mxE; apply: KV. Qed.

(** o_1 = v_1. *)
Theorem causal_first_row M N dk dv (Q : 'M_(M.+1, dk)) (K : 'M_(N.+1, dk)) (V : 'M_(N.+1, dv)) :
  row 0 (MAttn (additive (causal_top_left M.+1 N.+1)) Q K V) = row 0 V.
Proof.
have seen j : additive (causal_top_left M.+1 N.+1) 0 j != hidden -> j = 0.
  by rewrite additive_hidden mxE leqn0 => /eqP j0; apply: val_inj.
have w0 j : j != 0 -> weight e (masked_scores scale conv (additive (causal_top_left M.+1 N.+1)) Q K 0 j) = 0.
  move=> j_neq0; rewrite masked_scoresE; case B: (additive _ _ _) => [b|] //.
  by case/eqP: j_neq0; apply: seen; rewrite B.
apply/rowP => c; rewrite [LHS]mxE softmax_mulE /total (bigD1 ord0) // [in X in _ / X](bigD1 ord0) //=.
rewrite !big1 => [|j /w0 //|j /w0->]; rewrite ?mul0r // !addr0 mulrAC divff ?mul1r ?mxE //.
by rewrite gt_eqF // weight_gt0 // masked_scoresE masked_score_hidden additive_hidden mxE.
Qed.

(** 002's M_ij = 1 iff i <= j, keys as rows, is 001's tau' <= tau, transposed. *)
Theorem causal_column_form n : \matrix_(i < n, j < n) (i <= j)%N = (causal_top_left n n)^T.
Proof. by apply/matrixP => i j; rewrite !mxE. Qed.

(** Causal attention of a prefix is the prefix of causal attention: m of M queries, and any n >= m of the keys. *)
Theorem causal_prefix m M n N dk dv (Q : 'M_(m, dk)) (Q' : 'M_(M, dk)) (K : 'M_(n, dk)) (K' : 'M_(N, dk))
    (V : 'M_(n, dv)) (V' : 'M_(N, dv)) :
    (m <= n)%N ->
  usubmx (MAttn (additive (causal_top_left (m + M) (n + N))) (col_mx Q Q') (col_mx K K') (col_mx V V')) =
  MAttn (additive (causal_top_left m n)) Q K V.
Proof.
move=> mn; set B := additive (causal_top_left (m + M) (n + N)).
have upE p d (A : 'M[R]_(p, d)) q (A' : 'M_(q, d)) : rowsub (@lshift p q) (col_mx A A') = A.
  by apply/matrixP => i j; rewrite mxE col_mxEu.
rewrite usubmxEsub -mattn_rowsub upE -[LHS](@mattn_gather_inj _ e scale conv _ _ _ _ _ (@lshift n N)); first 1 last.
- exact: lshift_inj.
- move=> i j; case: (split_ordP j) => l ->; rewrite ?codom_f // => _.
  by rewrite !mxE /= leqNgt (leq_trans (ltn_ord i)) //= (leq_trans mn) ?leq_addr.
by rewrite !upE; apply: eq_mattn => //; apply/matrixP => i j; rewrite !mxE.
Qed.

(** The two alignments: which keys row i sees, and the answer over those alone ... *)
Theorem causal_alignment M N dk dv i c (Q : 'M_(M, dk)) (K : 'M_(N, dk)) (V : 'M_(N, dv)) :
  let w j := e (scale * (Q *m K^T) i j) in
  MAttn (additive (causal_top_left M N)) Q K V i c =
    (\sum_(j < N | (j <= i)%N) w j * V j c) / (\sum_(j < N | (j <= i)%N) w j) /\
  MAttn (additive (causal_bottom_right M N)) Q K V i c =
    (\sum_(j < N | (j + M <= i + N)%N) w j * V j c) / \sum_(j < N | (j + M <= i + N)%N) w j.
Proof. by move=> w; split; rewrite over_shown; congr (_ / _); apply: eq_bigl => j; rewrite mxE. Qed.

(** ... which are the same where M = N. *)
Theorem causal_alignment__square M : causal_top_left M M = causal_bottom_right M M.
Proof. by apply/matrixP => i j; rewrite !mxE leq_add2r. Qed.

End Causal.
