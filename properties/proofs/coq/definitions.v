(** The definitions of the documents over an arbitrary real field, for all sizes at once.

    Row convention: Q is M x dk, K is N x dk, V is N x dv, row i of Q is the i-th query. 002's column convention stands
    at the end. [scale] is the factor on the scores, 1/sqrt(dk) in the documents: a real field need not have that root,
    so theorems are about every factor. *)

From mathcomp Require Import all_ssreflect all_algebra.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** All that is assumed of e^x: it turns sums into products and is positive. It need not be monotone, continuous, or
    different from the constant 1. A theorem that needs more says so. *)
Record exponential (R : realFieldType) := Exponential {
  exp_of :> R -> R;
  expD : forall a b : R, exp_of (a + b) = exp_of a * exp_of b;
  exp_gt0 : forall a : R, 0 < exp_of a
}.

(** There is one over every field: no theorem here is about nothing. *)
Definition constant_exponential (R : realFieldType) : exponential R :=
  @Exponential R (fun=> 1) (fun _ _ => esym (mulr1 1)) (fun=> @ltr01 R).

(** A score or an entry of an additive mask: a number, or [hidden], the documents' minus infinity. *)
Notation score R := (option R).
Notation hidden := None (only parsing).

(** The two conventions for a finite additive mask: [scale * (qk + b)] (000, 003) and [scale * qk + b] (001). *)
Inductive convention := pre_scale | post_scale.

Section Softmax.
Variables (R : realFieldType) (e : exponential R).

(** e^s, exactly 0 for a hidden key. *)
Definition weight (s : score R) : R := oapp e 0 s.

(** sum_l e^(s_il): the exponential of the log-sum-exp of row i. *)
Definition total m n (S : 'M[score R]_(m, n)) (i : 'I_m) : R := \sum_l weight (S i l).

(** softmax(S)_ij = e^(s_ij) / sum_l e^(s_il), on each row (000, 001, 003, 004). *)
Definition softmax m n (S : 'M[score R]_(m, n)) : 'M[R]_(m, n) :=
  \matrix_(i, j) (weight (S i j) / total S i).

(** 002's softmax, on each column. *)
Definition softmax_columns m n (S : 'M[score R]_(m, n)) : 'M[R]_(m, n) :=
  \matrix_(i, j) (weight (S i j) / \sum_l weight (S l j)).

(** Row i has a key that is not hidden. Without one the documents define nothing. *)
Definition sees_a_key m n (S : 'M[score R]_(m, n)) (i : 'I_m) : Prop := exists j, S i j != hidden.

(** Scores none of which is hidden. *)
Definition finite m n (A : 'M[R]_(m, n)) : 'M[score R]_(m, n) := map_mx Some A.

End Softmax.

Section Attention.
Variables (R : realFieldType) (e : exponential R) (scale : R).

(** Attention(Q,K,V) = softmax(QK^T scale) V (000). *)
Definition attention M N dk dv (Q : 'M[R]_(M, dk)) (K : 'M[R]_(N, dk)) (V : 'M[R]_(N, dv)) : 'M[R]_(M, dv) :=
  softmax e (finite (scale *: (Q *m K^T))) *m V.

Definition masked_score (conv : convention) (qk : R) (b : score R) : score R :=
  omap (fun b => match conv with pre_scale => scale * (qk + b) | post_scale => scale * qk + b end) b.

(** QK^T with the additive mask B, M x N; hidden where B is. *)
Definition masked_scores conv M N dk (B : 'M[score R]_(M, N)) (Q : 'M[R]_(M, dk)) (K : 'M[R]_(N, dk)) :
    'M[score R]_(M, N) :=
  \matrix_(i, j) masked_score conv ((Q *m K^T) i j) (B i j).

(** MAttn_B(Q,K,V) (000; 001 and 003 for the conventions). *)
Definition mattn conv M N dk dv (B : 'M[score R]_(M, N)) (Q : 'M[R]_(M, dk)) (K : 'M[R]_(N, dk))
    (V : 'M[R]_(N, dv)) : 'M[R]_(M, dv) :=
  softmax e (masked_scores conv B Q K) *m V.

(** 003's other description of masking: the unmasked weights, those of hidden keys set to 0, each row divided by what is
    left of its sum. *)
Definition renormalised M N (allowed : 'M[bool]_(M, N)) (weights : 'M[R]_(M, N)) : 'M[R]_(M, N) :=
  \matrix_(i, j) ((if allowed i j then weights i j else 0) / \sum_(l | allowed i l) weights i l).

End Attention.

Section Masks.
Variable R : realFieldType.

(** 002's mask_M: a score where M is true, hidden where it is false. *)
Definition hide m n (allowed : 'M[bool]_(m, n)) (A : 'M[R]_(m, n)) : 'M[score R]_(m, n) :=
  \matrix_(i, j) if allowed i j then Some (A i j) else hidden.

(** The additive mask of a boolean one: true is 0, false is minus infinity. *)
Definition additive m n (allowed : 'M[bool]_(m, n)) : 'M[score R]_(m, n) := hide allowed 0.

(** The mask that hides nothing and adds nothing: B = 0. *)
Definition zero_mask m n : 'M[score R]_(m, n) := finite 0.

(** 001's causal mask, key j <= row i. *)
Definition causal_top_left M N : 'M[bool]_(M, N) := \matrix_(i, j) (j <= i)%N.

(** The other alignment, key j <= row i + N - M: the last row sees the last key. *)
Definition causal_bottom_right M N : 'M[bool]_(M, N) := \matrix_(i, j) (j + M <= i + N)%N.

End Masks.

(** Where row i stands by either alignment, for arguments that ask: p = i, and p = i + N - M, which may be negative. *)
Definition position_top_left M (i : 'I_M) : int := i%:Z.
Definition position_bottom_right M N (i : 'I_M) : int := (i + N)%:Z - M%:Z.

Section Blocks.
Variable R : realFieldType.

(** Attention after some of the keys, about an arbitrary reference point r per row: sum_j e^(s_j - r) and
    sum_j e^(s_j - r) v_j, not normalised. The pair (reference, sum) stands for the log-sum-exp r + ln sum, so that no
    logarithm is needed. *)
Record partial M dv := Partial {
  reference : 'cV[R]_M;
  sum : 'cV[R]_M;
  values : 'M[R]_(M, dv)
}.

Variables (e : exponential R) (scale : R) (conv : convention).

Definition exponential_about (r : R) (s : score R) : R := oapp (fun s => e (s - r)) 0 s.

Definition partial_attention M N dk dv (r : 'cV[R]_M) (B : 'M[score R]_(M, N)) (Q : 'M[R]_(M, dk))
    (K : 'M[R]_(N, dk)) (V : 'M[R]_(N, dv)) : partial M dv :=
  let S := masked_scores scale conv B Q K in
  Partial r (\col_i \sum_j exponential_about (r i 0) (S i j))
    (\matrix_(i, c) \sum_j exponential_about (r i 0) (S i j) * V j c).

(** The state of no keys at all. *)
Definition no_keys M dv (r : 'cV[R]_M) : partial M dv := Partial r 0 0.

(** What is known after the keys of both, about the reference r. *)
Definition merge M dv (r : 'cV[R]_M) (p p' : partial M dv) : partial M dv :=
  let from (x : partial M dv) i := e (reference x i 0 - r i 0) in
  Partial r (\col_i (from p i * sum p i 0 + from p' i * sum p' i 0))
    (\matrix_(i, c) (from p i * values p i c + from p' i * values p' i c)).

Definition finish M dv (p : partial M dv) : 'M[R]_(M, dv) := \matrix_(i, c) (values p i c / sum p i 0).

(** e^lse of row i. *)
Definition exp_lse M dv (p : partial M dv) (i : 'I_M) : R := e (reference p i 0) * sum p i 0.

End Blocks.

Section Projections.
Variable R : realFieldType.

(** 1_M b^T: M rows, each b. *)
Definition ones_times M d (b : 'rV[R]_d) : 'M[R]_(M, d) := (const_mx 1 : 'cV_M) *m b.

(** X -> XW + 1b^T. *)
Record projection c d := Projection { matrix_of : 'M[R]_(c, d); bias_of : 'rV[R]_d }.
Definition project M c d (W : projection c d) (X : 'M[R]_(M, c)) : 'M[R]_(M, d) :=
  X *m matrix_of W + ones_times M (bias_of W).

(** W of Attn_W (000): W_q, W_k, W_v and their biases. *)
Record weights cq ck cv dk dv := Weights { Wq : projection cq dk; Wk : projection ck dk; Wv : projection cv dv }.

Variables (e : exponential R) (scale : R).
Variables (M N cq ck cv dk dv : nat).

(** Attn_W(Q,K,V) = Attention(QW_q + 1b_q^T, KW_k + 1b_k^T, VW_v + 1b_v^T) (000). *)
Definition attn_w (W : weights cq ck cv dk dv) (Q : 'M[R]_(M, cq)) (K : 'M[R]_(N, ck)) (V : 'M[R]_(N, cv)) :
    'M[R]_(M, dv) :=
  attention e scale (project (Wq W) Q) (project (Wk W) K) (project (Wv W) V).

(** MAttn_W,B: the same with a mask (000). *)
Definition mattn_w conv (W : weights cq ck cv dk dv) (B : 'M[score R]_(M, N)) (Q : 'M[R]_(M, cq)) (K : 'M[R]_(N, ck))
    (V : 'M[R]_(N, cv)) : 'M[R]_(M, dv) :=
  mattn e scale conv B (project (Wq W) Q) (project (Wk W) K) (project (Wv W) V).

End Projections.

Section SelfAttention.
Variables (R : realFieldType) (e : exponential R) (scale : R).
Variables (M c dk dv : nat) (W : weights R c c c dk dv).

(** The scores of X with itself, not scaled. *)
Definition self_scores (X : 'M[R]_(M, c)) : 'M[R]_M := project (Wq W) X *m (project (Wk W) X)^T.

(** SAttn(X), written out (000). *)
Definition sattn (X : 'M[R]_(M, c)) : 'M[R]_(M, dv) :=
  softmax e (finite (scale *: self_scores X)) *m project (Wv W) X.

(** MSAttn_B(X), written out (000). *)
Definition msattn conv (B : 'M[score R]_M) (X : 'M[R]_(M, c)) : 'M[R]_(M, dv) :=
  softmax e (\matrix_(i, j) masked_score scale conv (self_scores X i j) (B i j)) *m project (Wv W) X.

End SelfAttention.

Section Ladder.
Variables (R : realFieldType) (e : exponential R).

(** 003's first form, softmax(XX^T) X. *)
Definition parameter_free M c (X : 'M[R]_(M, c)) : 'M[R]_(M, c) := softmax e (finite (X *m X^T)) *m X.

(** One projection for queries, keys and values: softmax(XUU^T X^T) XU (003). *)
Definition shared_projection M c d (U : 'M[R]_(c, d)) (X : 'M[R]_(M, c)) : 'M[R]_(M, d) :=
  softmax e (finite (X *m U *m U^T *m X^T)) *m (X *m U).

(** softmax(QK^T) V, without a scale (003). *)
Definition unscaled M N dk dv (Q : 'M[R]_(M, dk)) (K : 'M[R]_(N, dk)) (V : 'M[R]_(N, dv)) : 'M[R]_(M, dv) :=
  softmax e (finite (Q *m K^T)) *m V.

End Ladder.

(** The fused index (a i) = a p + i of 001. *)
Section Fused.
Variables h d : nat.

Lemma fused_bound (a : 'I_h) (i : 'I_d) : (a * d + i < h * d)%N.
Proof. by rewrite (leq_trans (n := a * d + d)) ?ltn_add2l // addnC -mulSn leq_mul2r ltn_ord orbT. Qed.
Definition fused (a : 'I_h) (i : 'I_d) : 'I_(h * d) := Ordinal (fused_bound a i).

Lemma inner_size (x : 'I_(h * d)) : (0 < d)%N.
Proof. by case: d x => // -[x]; rewrite muln0. Qed.
Lemma outer_bound (x : 'I_(h * d)) : (x %/ d < h)%N.
Proof. by rewrite ltn_divLR ?(inner_size x). Qed.
Lemma inner_bound (x : 'I_(h * d)) : (x %% d < d)%N.
Proof. by rewrite ltn_pmod ?(inner_size x). Qed.
Definition outer (x : 'I_(h * d)) : 'I_h := Ordinal (outer_bound x).
Definition inner (x : 'I_(h * d)) : 'I_d := Ordinal (inner_bound x).

End Fused.

Section Heads.
Variable R : realFieldType.

(** [A_1 | ... | A_h]. *)
Definition beside M h d (A : 'I_h -> 'M[R]_(M, d)) : 'M[R]_(M, h * d) := \matrix_(i, x) A (outer x) i (inner x).

(** The m-th of h equal blocks of columns, and of rows. *)
Definition columns_of_head M h d (A : 'M[R]_(M, h * d)) (m : 'I_h) : 'M[R]_(M, d) := \matrix_(i, a) A i (fused m a).
Definition rows_of_head h d n (A : 'M[R]_(h * d, n)) (m : 'I_h) : 'M[R]_(d, n) := \matrix_(a, j) A (fused m a) j.
(** The matrix with these blocks of rows. *)
Definition above h d n (A : 'I_h -> 'M[R]_(d, n)) : 'M[R]_(h * d, n) := \matrix_(x, j) A (outer x) (inner x) j.

Variables (e : exponential R) (scale : R) (conv : convention).
Variables (M N cq ck cv dk dv d_o h : nat).
Variables (W : 'I_h -> weights R cq ck cv dk dv) (Wo : projection R (h * dv) d_o).

(** MMHAttn(Q,K,V) = [O_1 | ... | O_h] W_o + 1b_o^T with O_m = MAttn of head m under its own mask (000). *)
Definition mmhattn (B : 'I_h -> 'M[score R]_(M, N)) (Q : 'M[R]_(M, cq)) (K : 'M[R]_(N, ck)) (V : 'M[R]_(N, cv)) :
    'M[R]_(M, d_o) :=
  project Wo (beside (fun m => mattn_w e scale conv (W m) (B m) Q K V)).

(** MHAttn(Q,K,V) (000). *)
Definition mhattn (Q : 'M[R]_(M, cq)) (K : 'M[R]_(N, ck)) (V : 'M[R]_(N, cv)) : 'M[R]_(M, d_o) :=
  project Wo (beside (fun m => attn_w e scale (W m) Q K V)).

(** The same as a sum over heads, O_1 W_o^1 + ... + O_h W_o^h + 1b_o^T (002). *)
Definition mmhattn_as_sum (B : 'I_h -> 'M[score R]_(M, N)) (Q : 'M[R]_(M, cq)) (K : 'M[R]_(N, ck))
    (V : 'M[R]_(N, cv)) : 'M[R]_(M, d_o) :=
  \sum_m mattn_w e scale conv (W m) (B m) Q K V *m rows_of_head (matrix_of Wo) m + ones_times M (bias_of Wo).

End Heads.

Section SelfHeads.
Variables (R : realFieldType) (e : exponential R) (scale : R) (conv : convention).
Variables (M c dk dv d_o h : nat) (W : 'I_h -> weights R c c c dk dv) (Wo : projection R (h * dv) d_o).

(** MHSAttn(X) and MMHSAttn_B(X), made of SAttn and MSAttn (000). *)
Definition mhsattn (X : 'M[R]_(M, c)) : 'M[R]_(M, d_o) := project Wo (beside (fun m => sattn e scale (W m) X)).
Definition mmhsattn (B : 'I_h -> 'M[score R]_M) (X : 'M[R]_(M, c)) : 'M[R]_(M, d_o) :=
  project Wo (beside (fun m => msattn e scale (W m) conv (B m) X)).

End SelfHeads.

Section Columns.
(** 002's column convention: tokens are columns, the softmax runs down the keys, a mask is keys x queries. *)
Variables (R : realFieldType) (e : exponential R) (scale : R).

Definition attention_columns M N dk dv (Q : 'M[R]_(dk, M)) (K : 'M[R]_(dk, N)) (V : 'M[R]_(dv, N)) : 'M[R]_(dv, M) :=
  V *m softmax_columns e (finite (scale *: (K^T *m Q))).
Definition mattn_columns M N dk dv (allowed : 'M[bool]_(N, M)) (Q : 'M[R]_(dk, M)) (K : 'M[R]_(dk, N))
    (V : 'M[R]_(dv, N)) : 'M[R]_(dv, M) :=
  V *m softmax_columns e (hide allowed (scale *: (K^T *m Q))).

(** WX + b1^T. *)
Record column_projection c d := ColumnProjection { column_matrix : 'M[R]_(d, c); column_bias : 'cV[R]_d }.
Definition project_columns M c d (W : column_projection c d) (X : 'M[R]_(c, M)) : 'M[R]_(d, M) :=
  column_matrix W *m X + column_bias W *m const_mx 1.
Definition column_form c d (W : projection R c d) : column_projection c d :=
  ColumnProjection (matrix_of W)^T (bias_of W)^T.

(** 002's Attention(X, Z | W): queries from X, keys and values from the context Z. *)
Definition attn_w_columns M N cq c dk dv (Q : column_projection cq dk) (K : column_projection c dk)
    (V : column_projection c dv) (X : 'M[R]_(cq, M)) (Z : 'M[R]_(c, N)) : 'M[R]_(dv, M) :=
  attention_columns (project_columns Q X) (project_columns K Z) (project_columns V Z).

(** 002's single-query attention: token x against the context Z, sum_t alpha_t v_t. *)
Definition single_query N cq c dk dv (Q : column_projection cq dk) (K : column_projection c dk)
    (V : column_projection c dv) (x : 'cV[R]_cq) (Z : 'M[R]_(c, N)) : 'cV[R]_dv :=
  let q := column_matrix Q *m x + column_bias Q in
  let k t := column_matrix K *m col t Z + column_bias K in
  let v t := column_matrix V *m col t Z + column_bias V in
  let s t := scale * (q^T *m k t) 0 0 in
  \sum_t (e (s t) / \sum_u e (s u)) *: v t.

End Columns.

Section Probability.
Variable R : realFieldType.
Definition is_distribution n (p : 'I_n -> R) : Prop := (forall j, 0 <= p j) /\ \sum_j p j = 1.
Definition expectation n (p : 'I_n -> R) (f : 'I_n -> R) : R := \sum_j p j * f j.
End Probability.

Section Grouped.
Variables (R : realFieldType) (e : exponential R) (scale : R) (conv : convention).
Variables (M N dk dv kv_heads group : nat).

(** Grouped queries: head h of kv_heads * group reads key-value head h / group. *)
Definition grouped_attention (B : 'I_(kv_heads * group) -> 'M[score R]_(M, N))
    (Q : 'I_(kv_heads * group) -> 'M[R]_(M, dk)) (K : 'I_kv_heads -> 'M[R]_(N, dk)) (V : 'I_kv_heads -> 'M[R]_(N, dv))
    (h : 'I_(kv_heads * group)) : 'M[R]_(M, dv) :=
  mattn e scale conv (B h) (Q h) (K (outer h)) (V (outer h)).

(** The pages of A, each written [group] times in a row. *)
Definition repeated n d (A : 'I_kv_heads -> 'M[R]_(n, d)) (h : 'I_(kv_heads * group)) : 'M[R]_(n, d) :=
  nth 0 (flatten [seq nseq group (A a) | a <- enum 'I_kv_heads]) h.

End Grouped.

Section Packing.
Variable R : realFieldType.

(** W = [W_1 | ... | W_h] with the biases alike. *)
Definition fuse h c d (P : 'I_h -> projection R c d) : projection R c (h * d) :=
  Projection (beside (fun m => matrix_of (P m))) (beside (fun m => bias_of (P m))).

(** [W | W']. *)
Definition side_by_side c d d' (P : projection R c d) (P' : projection R c d') : projection R c (d + d') :=
  Projection (row_mx (matrix_of P) (matrix_of P')) (row_mx (bias_of P) (bias_of P')).

Variables (e : exponential R) (scale : R) (conv : convention).
Variables (M N cq ck cv dk dv d_o h : nat).

(** Heads as views of one projection: head m takes the m-th block of columns of its queries, keys and values. *)
Definition attention_of_views (B : 'I_h -> 'M[score R]_(M, N)) (q : 'M[R]_(M, h * dk)) (k : 'M[R]_(N, h * dk))
    (v : 'M[R]_(N, h * dv)) : 'M[R]_(M, h * dv) :=
  beside (fun m => mattn e scale conv (B m) (columns_of_head q m) (columns_of_head k m) (columns_of_head v m)).

(** The fused form of MMHAttn: one product each for the queries, keys and values of all heads. *)
Definition mmhattn_fused (Pq : projection R cq (h * dk)) (Pk : projection R ck (h * dk)) (Pv : projection R cv (h * dv))
    (Wo : projection R (h * dv) d_o) (B : 'I_h -> 'M[score R]_(M, N)) (Q : 'M[R]_(M, cq)) (K : 'M[R]_(N, ck))
    (V : 'M[R]_(N, cv)) : 'M[R]_(M, d_o) :=
  project Wo (attention_of_views B (project Pq Q) (project Pk K) (project Pv V)).

(** add_bias_kv: one learned row b_k, b_v appended to the projected keys and values; no mask hides it and nothing is
    added to its score. *)
Definition mmhattn_bias_kv (W : 'I_h -> weights R cq ck cv dk dv) (Wo : projection R (h * dv) d_o)
    (b_k : 'I_h -> 'rV[R]_dk) (b_v : 'I_h -> 'rV[R]_dv) (B : 'I_h -> 'M[score R]_(M, N)) (Q : 'M[R]_(M, cq))
    (K : 'M[R]_(N, ck)) (V : 'M[R]_(N, cv)) : 'M[R]_(M, d_o) :=
  project Wo (beside (fun m => mattn e scale conv (row_mx (B m) (const_mx (Some 0)))
    (project (Wq (W m)) Q) (col_mx (project (Wk (W m)) K) (b_k m)) (col_mx (project (Wv (W m)) V) (b_v m)))).

End Packing.

Section Torch.
(** torch.nn.MultiheadAttention with matrices [out, in] as it stores them: x -> x A^T + 1b^T, d = h * dh. *)
Variables (R : realFieldType) (e : exponential R) (scale : R) (conv : convention).
Definition linear M c d (A : 'M[R]_(d, c)) (b : 'rV[R]_d) (X : 'M[R]_(M, c)) : 'M[R]_(M, d) :=
  X *m A^T + ones_times M b.

Variables (M N ck cv h dh : nat).
Local Notation d := (h * dh)%N.
Variables (out_weight : 'M[R]_d) (out_bias : 'rV[R]_d).
Variables (B : 'I_h -> 'M[score R]_(M, N)).

(** q_proj_weight, k_proj_weight, v_proj_weight; in_proj_bias is packed in either case. *)
Definition torch_separate (Aq : 'M[R]_d) (Ak : 'M[R]_(d, ck)) (Av : 'M[R]_(d, cv)) (in_bias : 'rV[R]_(d + (d + d)))
    (Q : 'M[R]_(M, d)) (K : 'M[R]_(N, ck)) (V : 'M[R]_(N, cv)) : 'M[R]_(M, d) :=
  linear out_weight out_bias
    (attention_of_views e scale conv B (linear Aq (lsubmx in_bias) Q) (linear Ak (lsubmx (rsubmx in_bias)) K)
                        (linear Av (rsubmx (rsubmx in_bias)) V)).

(** in_proj_weight, rows [Q; K; V]. *)
Definition torch_packed (in_weight : 'M[R]_(d + (d + d), d)) (in_bias : 'rV[R]_(d + (d + d))) (Q : 'M[R]_(M, d))
    (K V : 'M[R]_(N, d)) : 'M[R]_(M, d) :=
  linear out_weight out_bias
    (attention_of_views e scale conv B (lsubmx (linear in_weight in_bias Q))
                        (lsubmx (rsubmx (linear in_weight in_bias K)))
                        (rsubmx (rsubmx (linear in_weight in_bias V)))).

End Torch.

Section Batch.
Variables (R : realFieldType) (e : exponential R) (scale : R) (conv : convention).
Variables (batch M N cq ck cv dk dv d_o h : nat).
Variables (W : 'I_h -> weights R cq ck cv dk dv) (Wo : projection R (h * dv) d_o).

(** A batch B x S x D as the memory of B * S rows: one product with each matrix for all tokens, heads and entries as
    views. Entry b is [rows_of_head _ b]. *)
Definition mmhattn_batch (B : 'I_batch -> 'I_h -> 'M[score R]_(M, N)) (Q : 'M[R]_(batch * M, cq))
    (K : 'M[R]_(batch * N, ck)) (V : 'M[R]_(batch * N, cv)) : 'M[R]_(batch * M, d_o) :=
  let q := project (fuse (fun m => Wq (W m))) Q in
  let k := project (fuse (fun m => Wk (W m))) K in
  let v := project (fuse (fun m => Wv (W m))) V in
  project Wo (above (fun b =>
    attention_of_views e scale conv (B b) (rows_of_head q b) (rows_of_head k b) (rows_of_head v b))).

(** The masks of a batch of heads: 2-D, one for all; 3-D, page b h + m; 4-D, an extent of 1 serving every index. *)
Definition mask_2d (B : 'M[score R]_(M, N)) : 'I_batch -> 'I_h -> 'M[score R]_(M, N) := fun _ _ => B.
Definition mask_3d (B : 'I_(batch * h) -> 'M[score R]_(M, N)) : 'I_batch -> 'I_h -> 'M[score R]_(M, N) :=
  fun b m => B (fused b m).
Definition broadcast n extent (serves : extent = n \/ extent = 1%N) (i : 'I_n) : 'I_extent.
Proof.
case: (posnP extent) => [extent0|extent_gt0]; last exact: Ordinal (ltn_pmod i extent_gt0).
by exfalso; case: serves i; rewrite extent0 // => <- [].
Defined.
Definition mask_4d extent_b extent_h (serves_b : extent_b = batch \/ extent_b = 1%N)
    (serves_h : extent_h = h \/ extent_h = 1%N) (B : 'I_extent_b -> 'I_extent_h -> 'M[score R]_(M, N)) :
    'I_batch -> 'I_h -> 'M[score R]_(M, N) :=
  fun b m => B (broadcast serves_b b) (broadcast serves_h m).

End Batch.
