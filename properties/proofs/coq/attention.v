(** Attention(Q,K,V) = softmax(QK^T scale) V (000 to 004). *)

From mathcomp Require Import all_ssreflect all_fingroup all_algebra.
From Attest Require Import definitions basics.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Rows.
Variables (R : realFieldType) (e : exponential R) (scale : R).
Variables (M N dk dv : nat).
Local Notation Attention := (attention e scale).
Implicit Types (K : 'M[R]_(N, dk)) (V : 'M[R]_(N, dv)).

(** Attention(Q,K,V)^(i) = Attention(Q^(i),K,V). *)
Theorem attention_query_deletion (i : 'I_M) (Q : 'M_(M, dk)) K V : row' i (Attention Q K V) = Attention (row' i Q) K V.
Proof. by rewrite !row'Esub attention_rowsub. Qed.

(** o_i does not depend on q_j, j != i. *)
Theorem attention_query_locality (i : 'I_M) (Q Q' : 'M_(M, dk)) K V :
  row i Q = row i Q' -> row i (Attention Q K V) = row i (Attention Q' K V).
Proof. exact: attention_local. Qed.

(** Attention(Q, R_sigma K, R_sigma V) = Attention(Q,K,V). *)
Theorem attention_key_value_permutation (sigma : 'S_N) (Q : 'M_(M, dk)) K V :
  Attention Q (row_perm sigma K) (row_perm sigma V) = Attention Q K V.
Proof.
rewrite !row_permEsub; apply: (@attention_gather _ _ _ _ _ _ _ _ _ 1%N) => // j.
exact/card_fibre_bij/injF_bij/perm_inj.
Qed.

(** Attention(R_pi Q, R_sigma K, R_sigma V) = R_pi Attention(Q,K,V). *)
Theorem attention_permutation_equivariance (pi : 'S_M) (sigma : 'S_N) (Q : 'M_(M, dk)) K V :
  Attention (row_perm pi Q) (row_perm sigma K) (row_perm sigma V) = row_perm pi (Attention Q K V).
Proof. by rewrite attention_key_value_permutation !row_permEsub attention_rowsub. Qed.

(** o_i = E[v(q_i)] with P(v(q_i) = v_j) = alpha_ij, alpha read through V = I: alpha V is the output. *)
Theorem attention_expectation (i : 'I_M) c (Q : 'M_(M, dk)) K V :
    (0 < N)%N ->
  let alpha := Attention Q K 1%:M in
  is_distribution (alpha i) /\ Attention Q K V i c = expectation (alpha i) (fun j => V j c).
Proof.
move=> N_gt0 alpha; have -> : alpha = softmax e (finite (scale *: (Q *m K^T))) by rewrite /alpha /attention mulmx1.
split; last by rewrite mxE.
by split=> [j|]; [apply: softmax_ge0 | apply: softmax_sum; exists (Ordinal N_gt0); rewrite mxE].
Qed.

(** Each row of alpha is a distribution over the keys (004), under any mask that hides not all of them. *)
Theorem attention_conditional_probability conv (B : 'M[score R]_(M, N)) (i : 'I_M) (Q : 'M_(M, dk)) K :
  sees_a_key B i -> is_distribution (softmax e (masked_scores scale conv B Q K) i).
Proof. by split=> [j|]; [apply: softmax_ge0 | apply/softmax_sum/sees_masked]. Qed.

(** min_j v_jc <= o_ic <= max_j v_jc, over the keys that row i sees. *)
Theorem attention_convex_hull__masked conv (B : 'M[score R]_(M, N)) (i : 'I_M) c lo hi (Q : 'M_(M, dk)) K V :
    sees_a_key B i -> (forall j, B i j != hidden -> lo <= V j c <= hi) ->
  lo <= mattn e scale conv B Q K V i c <= hi.
Proof.
move=> /(sees_masked scale conv Q K)/(softmax_sum e) sum1 V_in; set S := masked_scores _ _ _ _ _ in sum1 *.
rewrite mxE -[lo]mul1r -[hi]mul1r -sum1 !mulr_suml.
apply/andP; split; apply: ler_sum => j _.
all: have [Bij|/V_in/andP[? ?]] := eqVneq (B i j) hidden; last by rewrite ler_wpmul2l ?softmax_ge0.
all: by rewrite mxE masked_scoresE Bij !mul0r.
Qed.

Theorem attention_convex_hull (i : 'I_M) c lo hi (Q : 'M_(M, dk)) K V :
  (0 < N)%N -> (forall j, lo <= V j c <= hi) -> lo <= Attention Q K V i c <= hi.
Proof.
move=> N_gt0 V_in; rewrite -(mattn_zero_mask e scale pre_scale); apply: attention_convex_hull__masked => //.
by exists (Ordinal N_gt0); rewrite mxE.
Qed.

End Rows.

Section Values.
Variables (R : realFieldType) (e : exponential R) (scale : R).
Variables (M N dk dv : nat).
Local Notation Attention := (attention e scale).
Implicit Types (Q : 'M[R]_(M, dk)) (K : 'M[R]_(N, dk)) (V : 'M[R]_(N, dv)).

Lemma softmax_ones n d (S : 'M[score R]_(M, n)) (b : 'rV[R]_d) :
  (forall i, sees_a_key S i) -> softmax e S *m ones_times n b = ones_times M b.
Proof.
move=> seen; rewrite /ones_times mulmxA; congr (_ *m b).
apply/matrixP => i j; rewrite !mxE -[RHS](softmax_sum e (seen i)).
by apply: eq_bigr => l _; rewrite [const_mx _ _ _]mxE mulr1.
Qed.

(** Attention(Q,K,VA + 1b^T) = Attention(Q,K,V)A + 1b^T. *)
Theorem attention_linear_in_values d (A : 'M_(dv, d)) (b : 'rV_d) Q K V :
  (0 < N)%N -> Attention Q K (V *m A + ones_times N b) = Attention Q K V *m A + ones_times M b.
Proof.
move=> N_gt0; rewrite /attention mulmxDr mulmxA softmax_ones // => i.
by exists (Ordinal N_gt0); rewrite mxE.
Qed.

(** All rows of V equal v => every o_i = v. *)
Theorem attention_constant_values (v : 'rV_dv) Q K :
  (0 < N)%N -> Attention Q K (ones_times N v) = ones_times M v.
Proof. by move=> N_gt0; apply: softmax_ones => i; exists (Ordinal N_gt0); rewrite mxE. Qed.

(** N = 1 => o_i = v_1. *)
Theorem attention_one_key (i : 'I_M) Q (k : 'rV_dk) (v : 'rV_dv) : row i (Attention Q k v) = v.
Proof.
have {1}-> : v = ones_times 1 v by apply/rowP => c; rewrite mxE big_ord1 mxE mul1r.
by rewrite /attention softmax_ones ?row_ones_times // => j; apply: sees_finite.
Qed.

(** V -> aV => O -> aO. *)
Theorem attention_value_scaling (a : R) Q K V : Attention Q K (a *: V) = a *: Attention Q K V.
Proof. by rewrite /attention -scalemxAr. Qed.

(** All keys equal => o_i is the mean of the values. *)
Theorem attention_equal_keys (k : 'rV_dk) (i : 'I_M) c Q V :
  Attention Q (ones_times N k) V i c = (\sum_j V j c) / N%:R.
Proof.
set S := finite (scale *: (Q *m (ones_times N k)^T)).
have S_const j : weight e (S i j) = e (scale * (Q *m k^T) i 0).
  rewrite !mxE /=; congr (e (_ * _)); apply: eq_bigr => l _.
  by rewrite !mxE big_ord1 mxE mul1r.
rewrite softmax_mulE /total; under eq_bigr => j _ do rewrite S_const.
under [X in _ / X = _]eq_bigr => j _ do rewrite S_const.
by rewrite -mulr_sumr sumr_const card_ord -[_ *+ N]mulr_natr invfM mulrACA divff ?exp_neq0 ?mul1r.
Qed.

End Values.

Section Keys.
Variables (R : realFieldType) (e : exponential R) (scale : R).
Variables (M N dk dv : nat).
Local Notation Attention := (attention e scale).
Implicit Types (Q : 'M[R]_(M, dk)) (K : 'M[R]_(N, dk)) (V : 'M[R]_(N, dv)).

(** k_j -> k_j + k for one k changes nothing, under any mask either. *)
Lemma mattn_key_translation conv (B : 'M[score R]_(M, N)) (k : 'rV_dk) Q K V :
  mattn e scale conv B Q (K + ones_times N k) V = mattn e scale conv B Q K V.
Proof.
congr (_ *m V); rewrite -[RHS](softmax_shift e (fun i => scale * (Q *m k^T) i 0)); congr (softmax e).
apply/matrixP => i j; rewrite [RHS]mxE !masked_scoresE; case: (B i j) => [b|] //; congr Some.
have -> : (Q *m (K + ones_times N k)^T) i j = (Q *m K^T) i j + (Q *m k^T) i 0.
  rewrite linearD mulmxDr mxE; congr (_ + _); rewrite !mxE.
  by apply: eq_bigr => l _; rewrite !mxE big_ord1 mxE mul1r.
by case: conv; rewrite /= !mulrDr addrAC.
Qed.

Theorem attention_key_translation (k : 'rV_dk) Q K V : Attention Q (K + ones_times N k) V = Attention Q K V.
Proof. by rewrite -!(mattn_zero_mask e scale pre_scale) mattn_key_translation. Qed.

(** Q -> QG, K -> K G^-T changes nothing. *)
Theorem attention_query_key_exchange (G : 'M_dk) Q K V :
  G \in unitmx -> Attention (Q *m G) (K *m (invmx G)^T) V = Attention Q K V.
Proof. by move=> G_unit; rewrite /attention trmx_mul trmxK mulmxA mulmxK. Qed.

End Keys.

Section Duplication.
Variables (R : realFieldType) (e : exponential R) (scale : R).
Variables (M N dk dv r : nat).
Local Notation Attention := (attention e scale).
Implicit Types (Q : 'M[R]_(M, dk)) (K : 'M[R]_(N, dk)) (V : 'M[R]_(N, dv)).

(** Repeating every key-value pair r times changes nothing: each pair r times in a row. *)
Theorem attention_key_duplication Q K V :
  (0 < r)%N -> Attention Q (rowsub (@outer N r) K) (rowsub (@outer N r) V) = Attention Q K V.
Proof. by move=> r_gt0; apply: (attention_gather _ _ _ _ _ r_gt0) => j; apply: card_outer. Qed.

(** All of them r times over. *)
Theorem attention_key_duplication__tiled Q K V :
  (0 < r)%N -> Attention Q (rowsub (@inner r N) K) (rowsub (@inner r N) V) = Attention Q K V.
Proof. by move=> r_gt0; apply: (attention_gather _ _ _ _ _ r_gt0) => j; apply: card_inner. Qed.

End Duplication.

Section Blocks.
Variables (R : realFieldType) (e : exponential R) (scale : R) (conv : convention).
Variables (M dk dv : nat).
Local Notation MAttn := (mattn e scale conv).
Local Notation partial_attention := (partial_attention e scale conv).
Local Notation scores := (masked_scores scale conv).
Implicit Types (Q : 'M[R]_(M, dk)) (r : 'cV[R]_M).

Lemma partial_ext (p p' : partial R M dv) :
    reference p = reference p' -> (forall i, sum p i 0 = sum p' i 0) -> (forall i c, values p i c = values p' i c) ->
  p = p'.
Proof.
case: p p' => [r s v] [r' s' v'] /= -> ss' vv'; congr Partial; last exact/matrixP.
by apply/colP.
Qed.

Lemma exponential_aboutE t s : exponential_about e t s = weight e s / e t.
Proof. by case: s => [x|] /=; rewrite ?expB ?mul0r. Qed.

Lemma partial_sumE N r (B : 'M_(M, N)) Q (K : 'M_(N, dk)) (V : 'M_(N, dv)) i :
  sum (partial_attention r B Q K V) i 0 = total e (scores B Q K) i / e (r i 0).
Proof. by rewrite mxE mulr_suml; apply: eq_bigr => j _; rewrite exponential_aboutE. Qed.

Lemma partial_valuesE N r (B : 'M_(M, N)) Q (K : 'M_(N, dk)) (V : 'M_(N, dv)) i c :
  values (partial_attention r B Q K V) i c = (\sum_j weight e (scores B Q K i j) * V j c) / e (r i 0).
Proof. by rewrite mxE mulr_suml; apply: eq_bigr => j _; rewrite exponential_aboutE mulrAC. Qed.

Lemma scores_row_mx N N' (B : 'M_(M, N)) (B' : 'M_(M, N')) Q (K : 'M_(N, dk)) (K' : 'M_(N', dk)) :
  scores (row_mx B B') Q (col_mx K K') = row_mx (scores B Q K) (scores B' Q K').
Proof.
apply/matrixP => i j; rewrite masked_scoresE tr_col_mx mul_mx_row.
by case: (split_ordP j) => l ->; rewrite ?row_mxEl ?row_mxEr masked_scoresE.
Qed.

(** The log-sum-exp of a block of keys does not depend on the reference: e^lse is the sum of the exponentials. *)
Theorem attention_split_merge__lse N r (B : 'M_(M, N)) Q (K : 'M_(N, dk)) (V : 'M_(N, dv)) i :
  exp_lse e (partial_attention r B Q K V) i = total e (scores B Q K) i.
Proof. by rewrite /exp_lse partial_sumE mulrC divfK ?exp_neq0. Qed.

(** Finishing gives attention, whatever the reference was. *)
Theorem attention_split_merge__finish N r (B : 'M_(M, N)) Q (K : 'M_(N, dk)) (V : 'M_(N, dv)) :
  finish (partial_attention r B Q K V) = MAttn B Q K V.
Proof.
apply/matrixP => i c; rewrite mxE partial_sumE partial_valuesE softmax_mulE.
by rewrite invf_div mulrA divfK ?exp_neq0.
Qed.

Lemma total_row_mx N N' (S : 'M[score R]_(M, N)) (S' : 'M_(M, N')) i :
  total e (row_mx S S') i = total e S i + total e S' i.
Proof.
by rewrite /total big_split_ord; congr (_ + _); apply: eq_bigr => j _; rewrite ?row_mxEl ?row_mxEr.
Qed.

Lemma weighted_row_mx N N' (S : 'M[score R]_(M, N)) (S' : 'M_(M, N')) (V : 'M_(N, dv)) (V' : 'M_(N', dv)) i c :
  \sum_j weight e (row_mx S S' i j) * col_mx V V' j c =
  \sum_j weight e (S i j) * V j c + \sum_j weight e (S' i j) * V' j c.
Proof.
rewrite big_split_ord; congr (_ + _); apply: eq_bigr => j _.
  by rewrite row_mxEl col_mxEu.
by rewrite row_mxEr col_mxEd.
Qed.

Section TwoBlocks.
Variables (N N' : nat).
Variables (B : 'M[score R]_(M, N)) (B' : 'M[score R]_(M, N')) (Q : 'M[R]_(M, dk)).
Variables (K : 'M[R]_(N, dk)) (K' : 'M[R]_(N', dk)) (V : 'M[R]_(N, dv)) (V' : 'M[R]_(N', dv)).

(** Online rescaling: two blocks about any references, merged about any third, are the state of all the keys. *)
Theorem attention_split_merge__online r r1 r2 :
  merge e r (partial_attention r1 B Q K V) (partial_attention r2 B' Q K' V') =
  partial_attention r (row_mx B B') Q (col_mx K K') (col_mx V V').
Proof.
have rescale (t : R) i s : e (s i 0 - r i 0) * (t / e (s i 0)) = t / e (r i 0) :> R.
  by rewrite expB mulrC mulrA divfK ?exp_neq0.
apply: partial_ext => // [i|i c]; rewrite ?partial_sumE ?partial_valuesE mxE.
  by rewrite !partial_sumE !rescale -mulrDl -total_row_mx -scores_row_mx.
by rewrite !partial_valuesE !rescale -mulrDl -weighted_row_mx -scores_row_mx.
Qed.

(** Attention over concatenated key blocks is the merge of the blocks' attentions. *)
Theorem attention_split_merge r r1 r2 :
  finish (merge e r (partial_attention r1 B Q K V) (partial_attention r2 B' Q K' V')) =
  MAttn (row_mx B B') Q (col_mx K K') (col_mx V V').
Proof. by rewrite attention_split_merge__online attention_split_merge__finish. Qed.

(** The same with normalised outputs: weights e^lse of each block. A block of which row i sees nothing has weight 0. *)
Theorem attention_split_merge__weighted i c :
  let L := total e (scores B Q K) i in
  let L' := total e (scores B' Q K') i in
  MAttn (row_mx B B') Q (col_mx K K') (col_mx V V') i c =
  (L * MAttn B Q K V i c + L' * MAttn B' Q K' V' i c) / (L + L').
Proof.
have unnormalised n (C : 'M_(M, n)) (A : 'M_(n, dk)) (U : 'M_(n, dv)) :
    total e (scores C Q A) i * MAttn C Q A U i c = \sum_j weight e (scores C Q A i j) * U j c.
  rewrite softmax_mulE mulrC; have [T0|T0] := eqVneq (total e (scores C Q A) i) 0; last by rewrite divfK.
  rewrite T0 mulr0 big1 // => j _; suff -> : weight e (scores C Q A i j) = 0 by rewrite mul0r.
  by apply: (psumr_eq0P _ T0) => // l _; apply: weight_ge0.
by move=> L L'; rewrite /L /L' !unnormalised -weighted_row_mx -total_row_mx -scores_row_mx softmax_mulE.
Qed.

End TwoBlocks.

(** An empty block, or one that is all hidden, is the state of no keys, and merging with that changes nothing. *)
Theorem attention_split_merge__empty N r r1 r2 (B : 'M_(M, N)) Q (K : 'M_(N, dk)) (V : 'M_(N, dv)) :
  let p := partial_attention r B Q K V in
  merge e r p (no_keys dv r1) = p /\ merge e r (no_keys dv r2) p = p.
Proof.
have zero m n (i : 'I_m) (j : 'I_n) : (0 : 'M[R]_(m, n)) i j = 0 by rewrite mxE.
by split; apply: partial_ext => // [i|i c]; rewrite mxE zero mulr0 ?addr0 ?add0r subrr exp0 mul1r.
Qed.

Theorem attention_split_merge__hidden N r (B : 'M_(M, N)) Q (K : 'M_(N, dk)) (V : 'M_(N, dv)) :
  (forall i j, B i j = hidden) -> partial_attention r B Q K V = no_keys dv r.
Proof.
move=> B_hidden; apply: partial_ext => // [i|i c]; rewrite !mxE big1 // => j _.
  by rewrite masked_scoresE B_hidden.
by rewrite masked_scoresE B_hidden mul0r.
Qed.

(** max_j s_j <= lse_i <= max_j s_j + ln N, for an exponential that is strictly increasing and a number ln N with
    e^(ln N) = N: lse_i is the number with e^(lse_i) = sum_j e^(s_ij). *)
Theorem attention_lse_range N (B : 'M_(M, N)) Q (K : 'M_(N, dk)) i (lse max lnN : R) :
    {mono e : a b / a <= b} -> e lse = total e (scores B Q K) i -> e lnN = N%:R ->
    (exists j, scores B Q K i j = Some max) -> (forall j s, scores B Q K i j = Some s -> s <= max) ->
  max <= lse <= max + lnN.
Proof.
move=> e_mono lseE lnNE [k Sk] S_max; rewrite -(e_mono max) -(e_mono lse) expD lnNE lseE; apply/andP; split.
  rewrite /total (bigD1 k) //= Sk /= ler_addl; apply: sumr_ge0 => j _; apply: weight_ge0.
have -> : e max * N%:R = \sum_(j < N) e max by rewrite sumr_const card_ord mulr_natr.
apply: ler_sum => j _.
by case S: (scores B Q K i j) => [s|] /=; [rewrite e_mono (S_max j) | apply/ltW/exp_gt0].
Qed.

End Blocks.

Section Grouped.
Variables (R : realFieldType) (e : exponential R) (scale : R) (conv : convention).
Variables (M N dk dv kv_heads group : nat).

Lemma repeatedE n d (A : 'I_kv_heads -> 'M[R]_(n, d)) (h : 'I_(kv_heads * group)) : repeated A h = A (outer h).
Proof.
have nth_blocks (T : Type) (x : T) (s : seq T) k : (k < size s * group)%N ->
    nth x (flatten [seq nseq group a | a <- s]) k = nth x s (k %/ group).
  elim: s k => //= a s IH k k_lt; rewrite nth_cat size_nseq; have [lt_k|ge_k] := ltnP k group.
    by rewrite nth_nseq lt_k divn_small.
  have g_gt0 : (0 < group)%N by case: group k_lt {IH ge_k} => //; rewrite muln0.
  rewrite IH; last by rewrite ltn_subLR // -mulSn.
  by rewrite -[in RHS](subnK ge_k) divnDr ?divnn ?g_gt0 ?addn1.
rewrite /repeated (map_comp (nseq group) A).
rewrite nth_blocks ?size_map -?enumT ?size_enum_ord //.
by rewrite (nth_map (outer h)) ?size_enum_ord ?outer_bound // -[X in nth _ _ X]/(nat_of_ord (outer h)) nth_ord_enum.
Qed.

(** Grouped-query attention is attention with the key-value heads repeated. *)
Theorem attention_grouped_query (B : 'I_(kv_heads * group) -> 'M[score R]_(M, N))
    (Q : 'I_(kv_heads * group) -> 'M[R]_(M, dk)) (K : 'I_kv_heads -> 'M[R]_(N, dk)) (V : 'I_kv_heads -> 'M[R]_(N, dv))
    (h : 'I_(kv_heads * group)) :
  grouped_attention e scale conv B Q K V h = mattn e scale conv (B h) (Q h) (repeated K h) (repeated V h).
Proof. by rewrite !repeatedE. Qed.

End Grouped.

Section AnyLength.
Variables (R : realFieldType) (e : exponential R) (scale : R) (dk dv : nat).
Local Notation Attention := (attention e scale).

(** One function for every M and N: the answers to two sequences of queries, one below the other, are the answers to
    each, one below the other; no query gives an empty output. *)
Theorem attention_any_length M M' N (Q : 'M_(M, dk)) (Q' : 'M_(M', dk)) (K : 'M_(N, dk)) (V : 'M_(N, dv)) :
  Attention (col_mx Q Q') K V = col_mx (Attention Q K V) (Attention Q' K V).
Proof.
apply/row_matrixP => i; case: (split_ordP i) => l ->; rewrite ?rowKu ?rowKd.
  by apply: attention_local; rewrite rowKu.
by apply: attention_local; rewrite rowKd.
Qed.

Theorem attention_any_length__no_query N (Q : 'M_(0, dk)) (K : 'M_(N, dk)) (V : 'M_(N, dv)) : Attention Q K V = 0.
Proof. exact: flatmx0. Qed.

End AnyLength.

Section SingleQuery.
Variables (R : realFieldType) (e : exponential R) (scale : R) (dk dv : nat).

Lemma project_columnsE M c d (W : column_projection R c d) (X : 'M[R]_(c, M)) t :
  col t (project_columns W X) = column_matrix W *m col t X + column_bias W.
Proof.
apply/colP => a; rewrite !mxE big_ord1 !mxE mulr1; congr (_ + _).
by apply: eq_bigr => l _; rewrite mxE.
Qed.

(** Row i of Attention is Attention of the one query q_i. *)
Theorem attention_single_query M N (i : 'I_M) (Q : 'M_(M, dk)) (K : 'M_(N, dk)) (V : 'M_(N, dv)) :
  row i (attention e scale Q K V) = attention e scale (row i Q) K V.
Proof. by rewrite !rowEsub attention_rowsub. Qed.

(** Column t of 002's attention of X over Z is 002's single-query attention of token t. *)
Theorem attention_single_query__columns M N cq c (Wq : column_projection R cq dk) (Wk : column_projection R c dk)
    (Wv : column_projection R c dv) (X : 'M_(cq, M)) (Z : 'M_(c, N)) (t : 'I_M) :
  col t (attn_w_columns e scale Wq Wk Wv X Z) = single_query e scale Wq Wk Wv (col t X) Z.
Proof.
have entry d d' (W : column_projection R d d') n (A : 'M_(d, n)) a u :
    project_columns W A a u = (column_matrix W *m col u A + column_bias W) a 0.
  by rewrite -project_columnsE [RHS]mxE.
have score u : (scale *: ((project_columns Wk Z)^T *m project_columns Wq X)) u t =
    scale * ((column_matrix Wq *m col t X + column_bias Wq)^T *m (column_matrix Wk *m col u Z + column_bias Wk)) 0 0.
  rewrite mxE; congr (_ * _); rewrite mxE [RHS]mxE; apply: eq_bigr => a _.
  by rewrite mulrC [X in _ * X]mxE [X in _ = X * _]mxE !entry.
apply/colP => a; rewrite mxE mxE /single_query summxE; apply: eq_bigr => u _.
rewrite [RHS]mxE entry [softmax_columns _ _ _ _]mxE mulrC; congr (_ / _ * _).
  by rewrite [finite _ _ _]mxE /= score.
by apply: eq_bigr => w _; rewrite mxE /= score.
Qed.

End SingleQuery.

Section ScoreVariance.
(** A finite probability space: outcomes with probabilities p, and random vectors q and k over it. *)
Variables (R : realFieldType) (outcomes dk : nat) (p : 'I_outcomes -> R) (q k : 'I_outcomes -> 'rV[R]_dk).
Local Notation E f := (expectation p f).

Lemma expectation_sum n (f : 'I_n -> 'I_outcomes -> R) : E (fun w => \sum_a f a w) = \sum_a E (f a).
Proof. by rewrite /expectation exchange_big; apply: eq_bigr => w _; rewrite mulr_sumr. Qed.

(** q and k with independent entries of mean 0 and variance 1: what is needed of that is that second moments are
    E[q_a q_b] = [a = b] = E[k_a k_b], that they factor between q and k, and so do the means. Then q.k has mean 0 and
    variance E[(q.k)^2] = dk, and scale^2 dk scaled, which is 1 for scale = 1/sqrt(dk). *)
Theorem attention_score_variance (scale : R) :
    (forall a, E (fun w => q w 0 a * k w 0 a) = E (fun w => q w 0 a) * E (fun w => k w 0 a)) ->
    (forall a b, E (fun w => (q w 0 a * q w 0 b) * (k w 0 a * k w 0 b)) =
                 E (fun w => q w 0 a * q w 0 b) * E (fun w => k w 0 a * k w 0 b)) ->
    (forall a, E (fun w => q w 0 a) = 0) -> (forall a, E (fun w => k w 0 a) = 0) ->
    (forall a b, E (fun w => q w 0 a * q w 0 b) = (a == b)%:R) ->
    (forall a b, E (fun w => k w 0 a * k w 0 b) = (a == b)%:R) ->
  let s w := (q w *m (k w)^T) 0 0 in
  [/\ E s = 0, E (fun w => (s w) ^+ 2) = dk%:R & E (fun w => (scale * s w) ^+ 2) = scale ^+ 2 * dk%:R].
Proof.
move=> mean_factor moment_factor q0 k0 qq kk s.
have sE w : s w = \sum_a q w 0 a * k w 0 a by rewrite /s mxE; apply: eq_bigr => a _; rewrite mxE.
have s2 : E (fun w => (s w) ^+ 2) = dk%:R.
  transitivity (E (fun w => \sum_a \sum_b (q w 0 a * q w 0 b) * (k w 0 a * k w 0 b))).
    apply: eq_bigr => w _; rewrite sE expr2 mulr_suml; congr (_ * _); apply: eq_bigr => a _.
    by rewrite mulr_sumr; apply: eq_bigr => b _; rewrite mulrACA.
  rewrite expectation_sum.
  transitivity (\sum_(a < dk) (1 : R)); last by rewrite sumr_const card_ord.
  apply: eq_bigr => a _; rewrite expectation_sum (bigD1 a) //= moment_factor qq kk eqxx mulr1 big1 ?addr0 // => b ba.
  by rewrite moment_factor qq kk eq_sym (negPf ba) mul0r.
split=> //.
  transitivity (E (fun w => \sum_a q w 0 a * k w 0 a)); first by apply: eq_bigr => w _; rewrite sE.
  by rewrite expectation_sum big1 // => a _; rewrite mean_factor q0 mul0r.
rewrite -s2 /expectation mulr_sumr; apply: eq_bigr => w _.
by rewrite exprMn mulrCA.
Qed.

End ScoreVariance.
