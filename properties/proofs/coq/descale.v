(** Factors: row i of Q stands for itself times f_i, key j for itself times g_j, and its value times w_j. Where a
    factor is absent it is 1. Any number may be one here. e^lse of a row is the sum of its weights. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Attest Require Import definitions basics alibi.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Definitions.
Variables (R : realFieldType) (e : exponential R).

(** Rows, each times its factor. *)
Definition multiplied n d (f : 'I_n -> R) (A : 'M[R]_(n, d)) : 'M[R]_(n, d) := \matrix_(i, x) (f i * A i x).

(** A factor for each block of so many rows: row i has that of block i / size, rounded down. Size 0 is one block of all
    rows, as i / 0 is 0. *)
Definition in_blocks n (size : nat) (f : nat -> R) (i : 'I_n) : R := f (i %/ size)%N.

(** Said of blocks: rows t size, ..., (t + 1) size - 1 have the factor of block t. *)
Definition shared_in_blocks n (size : nat) (f : nat -> R) (own : 'I_n -> R) : Prop :=
  forall t (i : 'I_n), (t * size <= i < t.+1 * size)%N -> own i = f t.

Variables (M N dk dv : nat).

(** after i j makes a score of the product of query i and key j: scale, cap, mask and slopes do. *)
Variable after : 'I_M -> 'I_N -> R -> score R.

(** Without factors: the output and e^lse of each row. *)
Definition product_scores (Q : 'M[R]_(M, dk)) (K : 'M[R]_(N, dk)) : 'M[score R]_(M, N) :=
  \matrix_(i, j) after i j ((Q *m K^T) i j).
Definition of_products (Q : 'M[R]_(M, dk)) (K : 'M[R]_(N, dk)) (V : 'M[R]_(N, dv)) : 'M[R]_(M, dv) * 'cV[R]_M :=
  let S := product_scores Q K in (softmax e S *m V, \col_i total e S i).

(** With factors, as a kernel may apply them that reads Q, K and V as they are: to products and to weights. *)
Definition descaled_scores (f : 'I_M -> R) (g : 'I_N -> R) (Q : 'M[R]_(M, dk)) (K : 'M[R]_(N, dk)) :
    'M[score R]_(M, N) :=
  \matrix_(i, j) after i j (f i * g j * (Q *m K^T) i j).
Definition descaled (f : 'I_M -> R) (g w : 'I_N -> R) (Q : 'M[R]_(M, dk)) (K : 'M[R]_(N, dk)) (V : 'M[R]_(N, dv)) :
    'M[R]_(M, dv) * 'cV[R]_M :=
  let S := descaled_scores f g Q K in
  (\matrix_(i, c) \sum_j softmax e S i j * w j * V j c, \col_i total e S i).

End Definitions.

(** What makes a score of a product: a mask in either convention; a cap c, then a mask and slopes; whatever follows a
    scale. *)
Section After.
Variables (R : realFieldType) (e : exponential R) (M N : nat).

Definition after_mask (scale : R) conv (B : 'M[score R]_(M, N)) i j x : score R := masked_score scale conv x (B i j).
Definition after_cap (scale c m : R) (p : 'I_M -> R) (B : 'M[score R]_(M, N)) i (j : 'I_N) x : score R :=
  omap (fun b => cap e c (scale * x) + b - m * `|p i - j%:R|) (B i j).
Definition after_scale (scale : R) (after : 'I_M -> 'I_N -> R -> score R) i j x : score R := after i j (scale * x).

End After.

Section Descale.
Variables (R : realFieldType) (e : exponential R).
Variables (M N dk dv : nat).
Local Notation Descaled := (descaled e).
Local Notation Plain := (of_products e).
Implicit Types (after : 'I_M -> 'I_N -> R -> score R) (f : 'I_M -> R) (g w : 'I_N -> R).
Implicit Types (Q : 'M[R]_(M, dk)) (K : 'M[R]_(N, dk)) (V : 'M[R]_(N, dv)).

Lemma multiplied_const n d (a : R) (A : 'M_(n, d)) : multiplied (fun=> a) A = a *: A.
Proof. by apply/matrixP => i x; rewrite !mxE. Qed.

Lemma multiplied_products f g Q K i j : (multiplied f Q *m (multiplied g K)^T) i j = f i * g j * (Q *m K^T) i j.
Proof. by rewrite !mxE mulr_sumr; apply: eq_bigr => x _; rewrite !mxE mulrACA. Qed.

(** Scores with factors are those of the rows times their factors, and so is all that is made of scores. *)
Theorem descale_equals_multiplied__scores after f g Q K :
  descaled_scores after f g Q K = product_scores after (multiplied f Q) (multiplied g K).
Proof. by apply/matrixP => i j; rewrite [LHS]mxE [RHS]mxE multiplied_products. Qed.

(** Factors are Q, K and V times the factors. *)
Theorem descale_equals_multiplied after f g w Q K V :
  Descaled after f g w Q K V = Plain after (multiplied f Q) (multiplied g K) (multiplied w V).
Proof.
rewrite /descaled /of_products -descale_equals_multiplied__scores; congr (_, _).
by apply/matrixP => i c; rewrite !mxE; apply: eq_bigr => j _; rewrite [multiplied _ _ _ _]mxE mulrA.
Qed.

(** So it is in masked attention ... *)
Theorem descale_equals_multiplied__masked scale conv (B : 'M[score R]_(M, N)) f g w Q K V :
  let O := Descaled (after_mask scale conv B) f g w Q K V in
  O.1 = mattn e scale conv B (multiplied f Q) (multiplied g K) (multiplied w V) /\
  forall i, O.2 i 0 = total e (masked_scores scale conv B (multiplied f Q) (multiplied g K)) i.
Proof. by rewrite descale_equals_multiplied; split=> // i; rewrite mxE. Qed.

(** ... and beside a cap and slopes. *)
Theorem descale_equals_multiplied__capped scale c m p (B : 'M[score R]_(M, N)) f g Q K :
  descaled_scores (after_cap e scale c m p B) f g Q K =
  sloped m p (capped_scores e scale c B (multiplied f Q) (multiplied g K)).
Proof.
rewrite descale_equals_multiplied__scores; apply/matrixP => i j.
by rewrite !mxE /after_cap; case: (B i j).
Qed.

(** What two calls have in common, their outputs and sums have. *)
Lemma eq_descaled after after' f f' g g' w w' Q K V :
    (forall i j x, after i j (f i * g j * x) = after' i j (f' i * g' j * x)) -> w =1 w' ->
  Descaled after f g w Q K V = Descaled after' f' g' w' Q K V.
Proof.
move=> same ww; have S : descaled_scores after f g Q K = descaled_scores after' f' g' Q K.
  by apply/matrixP => i j; rewrite [LHS]mxE same [RHS]mxE.
rewrite /descaled S; congr (_, _).
by apply/matrixP => i c; rewrite !mxE; apply: eq_bigr => j _; rewrite ww.
Qed.

Lemma eq_factors after f f' g g' w w' Q K V :
  f =1 f' -> g =1 g' -> w =1 w' -> Descaled after f g w Q K V = Descaled after f' g' w' Q K V.
Proof. by move=> ff gg ww; apply: eq_descaled => // i j x; rewrite ff gg. Qed.

(** Factors of 1 are none. *)
Theorem descale_ones after Q K V :
  Descaled after (fun=> 1) (fun=> 1) (fun=> 1) Q K V = Plain after Q K V.
Proof. by rewrite descale_equals_multiplied !multiplied_const !scale1r. Qed.

(** One factor of all of Q, or of all keys, is the scale times it, whatever follows the scale. *)
Theorem descale_into_scale (a scale : R) after f g w Q K V :
  Descaled (after_scale scale after) (fun=> a) g w Q K V =
    Descaled (after_scale (scale * a) after) (fun=> 1) g w Q K V /\
  Descaled (after_scale scale after) f (fun=> a) w Q K V =
    Descaled (after_scale (scale * a) after) f (fun=> 1) w Q K V.
Proof.
split; apply: eq_descaled => // i j x; rewrite /after_scale; congr after.
  by rewrite mul1r !mulrA.
by rewrite mulr1 (mulrC _ a) !mulrA.
Qed.

(** A mask after the scale does ... *)
Theorem descale_into_scale__masked (a scale : R) (B : 'M[score R]_(M, N)) Q K V :
  mattn e scale post_scale B (a *: Q) K V = mattn e (scale * a) post_scale B Q K V /\
  mattn e scale post_scale B Q (a *: K) V = mattn e (scale * a) post_scale B Q K V.
Proof.
suff S Q' K' : (forall i j, (Q' *m K'^T) i j = a * (Q *m K^T) i j) ->
    masked_scores scale post_scale B Q' K' = masked_scores (scale * a) post_scale B Q K.
  rewrite /mattn !S // => i j; first by rewrite linearZ -scalemxAr mxE.
  by rewrite -scalemxAl mxE.
by move=> qk; apply/matrixP => i j; rewrite !masked_scoresE qk /masked_score mulrA.
Qed.

(** ... and one before it is over the factor then. *)
Theorem descale_into_scale__before (a scale : R) (B : 'M[score R]_(M, N)) Q K V : a != 0 ->
  mattn e scale pre_scale B (a *: Q) K V =
  mattn e (scale * a) pre_scale (map_mx (omap (fun b => b / a)) B) Q K V.
Proof.
move=> a0; have qk i j : ((a *: Q) *m K^T) i j = a * (Q *m K^T) i j by rewrite -scalemxAl mxE.
rewrite /mattn; congr (softmax e _ *m _); apply/matrixP => i j.
rewrite !masked_scoresE qk [map_mx _ _ _ _]mxE; case: (B i j) => [b|] //=.
by rewrite -mulrA (mulrDr a) [a * (b / a)]mulrC divfK.
Qed.

(** Factors of Q and of keys whose products are the same ... *)
Theorem descale_only_the_product__any after f f' g g' w Q K V :
  (forall i j, f i * g j = f' i * g' j) -> Descaled after f g w Q K V = Descaled after f' g' w Q K V.
Proof. by move=> same; apply: eq_descaled => // i j x; rewrite same. Qed.

(** ... as they are of Q's times a and keys' over it. *)
Theorem descale_only_the_product (a : R) after f g w Q K V : a != 0 ->
  Descaled after (fun i => a * f i) (fun j => g j / a) w Q K V = Descaled after f g w Q K V.
Proof. by move=> a0; apply: descale_only_the_product__any => i j; rewrite (mulrC a) mulrACA divff // mulr1. Qed.

(** Values' factors times a are the output times a ... *)
Theorem descale_linear_in_values (a : R) after f g w Q K V :
  (Descaled after f g (fun j => a * w j) Q K V).1 = a *: (Descaled after f g w Q K V).1.
Proof.
apply/matrixP => i c; rewrite !mxE mulr_sumr; apply: eq_bigr => j _.
by rewrite mulrCA !mulrA.
Qed.

(** ... so one factor of all values may wait until the output is normalised. *)
Theorem descale_linear_in_values__one (a : R) after f g Q K V :
  (Descaled after f g (fun=> a) Q K V).1 = a *: (Descaled after f g (fun=> 1) Q K V).1.
Proof.
rewrite -descale_linear_in_values; congr fst.
by apply: eq_factors => // j; rewrite mulr1.
Qed.

(** lse does not depend on values' factors ... *)
Theorem descale_lse_without_values after f g w w' Q K V V' :
  (Descaled after f g w Q K V).2 = (Descaled after f g w' Q K V').2.
Proof. by []. Qed.

(** ... and it is what the output is normalised by: e^lse o_i is the sum of e^s w v. *)
Theorem descale_lse_without_values__normalises after f g w Q K V i c :
    sees_a_key (descaled_scores after f g Q K) i ->
  (Descaled after f g w Q K V).2 i 0 * (Descaled after f g w Q K V).1 i c =
  \sum_j weight e (descaled_scores after f g Q K i j) * (w j * V j c).
Proof.
move=> /(total_neq0 e) T; rewrite !mxE mulr_sumr; apply: eq_bigr => j _.
by rewrite [softmax _ _ _ _]mxE -!mulrA mulrCA mulVKf.
Qed.

(** A block's factor is that of each of its rows of Q, and of its keys. *)
Theorem descale_blocks q_size kv_size after (block_f block_g block_w : nat -> R) f g w Q K V :
    (0 < q_size)%N -> (0 < kv_size)%N ->
    shared_in_blocks q_size block_f f -> shared_in_blocks kv_size block_g g -> shared_in_blocks kv_size block_w w ->
  Descaled after (in_blocks q_size block_f) (in_blocks kv_size block_g) (in_blocks kv_size block_w) Q K V =
  Descaled after f g w Q K V.
Proof.
have own n size block (o : 'I_n -> R) : (0 < size)%N -> shared_in_blocks size block o -> in_blocks size block =1 o.
  by move=> s_gt0 oE i; rewrite (oE (i %/ size)%N) // leq_trunc_div /= ltn_ceil.
by move=> q_gt0 kv_gt0 ff gg ww; apply: eq_factors; apply: own.
Qed.

(** Blocks of one row are rows, and in blocks of 0 rows or of no fewer than there are one factor is that of all. *)
Theorem descale_blocks__ends n (block : nat -> R) (i : 'I_n) :
  [/\ in_blocks 1 block i = block i, in_blocks 0 block i = block 0%N &
    forall size, (n <= size)%N -> in_blocks size block i = block 0%N].
Proof.
rewrite /in_blocks divn1 divn0; split=> // size n_le.
by rewrite divn_small // (leq_trans (ltn_ord i)).
Qed.

End Descale.

(** Keys in whole blocks: the factors of block t multiply all its products, and the sum over its keys. *)
Section Sums.
Variables (R : realFieldType) (e : exponential R) (M blocks size dk dv : nat).

Theorem descale_blocks__sums (after : 'I_M -> 'I_(blocks * size) -> R -> score R) (f : 'I_M -> R) (g w : nat -> R)
    (Q : 'M_(M, dk)) (K : 'M_(blocks * size, dk)) (V : 'M_(blocks * size, dv)) i c :
  let O := descaled e after f (in_blocks size g) (in_blocks size w) Q K V in
  let weight_of t j := weight e (after i (fused t j) (f i * g t * (Q *m K^T) i (fused t j))) in
  O.1 i c = (\sum_(t < blocks) w t * \sum_j weight_of t j * V (fused t j) c) / O.2 i 0.
Proof.
move=> O weight_of; rewrite !mxE sum_fused mulr_suml; apply: eq_bigr => t _.
rewrite mulr_sumr mulr_suml; apply: eq_bigr => j _.
have of_t (h : nat -> R) : in_blocks size h (fused t j) = h t.
  by rewrite /in_blocks -[(_ %/ _)%N]/(outer _ : nat) outerK.
rewrite [softmax _ _ _ _]mxE [descaled_scores _ _ _ _ _ _ _]mxE !of_t -/(weight_of t j).
by rewrite -mulrA [w t * (_ * _)]mulrCA [RHS]mulrAC.
Qed.

End Sums.

Section Hidden.
Variables (R : realFieldType) (e : exponential R) (M N dk dv : nat).
Implicit Types (Q : 'M[R]_(M, dk)) (K : 'M[R]_(N, dk)) (V : 'M[R]_(N, dv)).

(** Row i has nothing of factors of keys that it does not see, whatever the product, and of other rows of Q. *)
Lemma descaled_local (after : 'I_M -> 'I_N -> R -> score R) f f' g g' w w' Q K V i :
    f i = f' i -> (forall j, (exists x, after i j x != hidden) -> g j = g' j /\ w j = w' j) ->
  let O := descaled e after f g w Q K V in let O' := descaled e after f' g' w' Q K V in
  row i O.1 = row i O'.1 /\ O.2 i 0 = O'.2 i 0.
Proof.
move=> ff seen O O'; pose S := descaled_scores after f g Q K; pose S' := descaled_scores after f' g' Q K.
have SE j : S i j = after i j (f i * g j * (Q *m K^T) i j) by rewrite mxE.
have SE' j : S' i j = after i j (f' i * g' j * (Q *m K^T) i j) by rewrite mxE.
have same j : S i j = S' i j /\ (S i j != hidden -> w j = w' j).
  have agree : S i j != hidden \/ S' i j != hidden -> S i j = S' i j /\ w j = w' j.
    by rewrite SE SE' ff => -[] shown; have [|-> ->] := seen j => //; eexists; apply: shown.
  have [h|h] := eqVneq (S i j) hidden; last by have [|-> ->] := agree; [left|].
  have [h'|h'] := eqVneq (S' i j) hidden; first by rewrite h h'.
  by have [|-> ->] := agree; [right|].
have T : total e S i = total e S' i by apply: eq_bigr => j _; have [-> _] := same j.
split; last by rewrite !mxE.
apply/rowP => c; rewrite ![row _ _ _ _]mxE ![O.1 _ _]mxE ![O'.1 _ _]mxE; apply: eq_bigr => j _.
rewrite -/S -/S' !(mxE _ (fun a l => _ / total e _ a)) T; have [<- ww] := same j.
by have [->|/ww ->] := eqVneq (S i j) hidden; rewrite ?mul0r.
Qed.

(** Row i has nothing of the factors of blocks of which it sees no key ... *)
Theorem descale_hidden_blocks size (after : 'I_M -> 'I_N -> R -> score R) f (g g' w w' : nat -> R) Q K V i :
    (forall j x, after i j x != hidden -> g (j %/ size)%N = g' (j %/ size)%N /\ w (j %/ size)%N = w' (j %/ size)%N) ->
  let O := descaled e after f (in_blocks size g) (in_blocks size w) Q K V in
  let O' := descaled e after f (in_blocks size g') (in_blocks size w') Q K V in
  row i O.1 = row i O'.1 /\ O.2 i 0 = O'.2 i 0.
Proof. by move=> seen; apply: descaled_local => // j [x]; apply: seen. Qed.

(** ... which are those where the mask hides every key. *)
Theorem descale_hidden_blocks__masked size scale conv (B : 'M[score R]_(M, N)) t f (g g' w w' : nat -> R) Q K V i :
    (forall j : 'I_N, (j %/ size)%N = t -> B i j = hidden) ->
    (forall t', t' != t -> g t' = g' t' /\ w t' = w' t') ->
  let O := descaled e (after_mask scale conv B) f (in_blocks size g) (in_blocks size w) Q K V in
  let O' := descaled e (after_mask scale conv B) f (in_blocks size g') (in_blocks size w') Q K V in
  row i O.1 = row i O'.1 /\ O.2 i 0 = O'.2 i 0.
Proof.
move=> Bt others; apply: descale_hidden_blocks => j x seen; apply: others.
by apply: contraNneq seen => /Bt Bij; rewrite /after_mask Bij.
Qed.

End Hidden.

(** Heads of a batch, of which query head h reads key-value head h / group and has that head's factors of keys and
    values beside its own of queries. *)
Section Heads.
Variables (R : realFieldType) (e : exponential R) (M N dk dv : nat).

Definition descaled_heads batch kv_heads group
    (after : 'I_batch -> 'I_(kv_heads * group) -> 'I_M -> 'I_N -> R -> score R)
    (f : 'I_batch -> 'I_(kv_heads * group) -> 'I_M -> R) (g w : 'I_batch -> 'I_kv_heads -> 'I_N -> R)
    (Q : 'I_batch -> 'I_(kv_heads * group) -> 'M[R]_(M, dk)) (K : 'I_batch -> 'I_kv_heads -> 'M[R]_(N, dk))
    (V : 'I_batch -> 'I_kv_heads -> 'M[R]_(N, dv)) b h :=
  descaled e (after b h) (f b h) (g b (outer h)) (w b (outer h)) (Q b h) (K b (outer h)) (V b (outer h)).

(** A head of an entry has nothing of the factors of others: it is as in any other call, with more heads or fewer, that
    gives it what it has here. *)
Theorem descale_as_given batch batch' kv_heads kv_heads' group group' after after' f f' g g' w w' Q Q' K K' V V'
    (b : 'I_batch) (b' : 'I_batch') (h : 'I_(kv_heads * group)) (h' : 'I_(kv_heads' * group')) :
    after b h = after' b' h' -> Q b h = Q' b' h' ->
    K b (outer h) = K' b' (outer h') -> V b (outer h) = V' b' (outer h') ->
    f b h =1 f' b' h' -> g b (outer h) =1 g' b' (outer h') -> w b (outer h) =1 w' b' (outer h') ->
  descaled_heads after f g w Q K V b h = descaled_heads after' f' g' w' Q' K' V' b' h'.
Proof. by rewrite /descaled_heads => -> -> -> -> ff gg ww; apply: eq_factors. Qed.

(** And it has its own: grouped attention of Q, K and V times the factors of each head. *)
Theorem descale_as_given__own batch kv_heads group scale conv (B : 'I_batch -> 'I_(kv_heads * group) -> 'M_(M, N)) f g w
    Q K V b h :
  (descaled_heads (fun b h => after_mask scale conv (B b h)) f g w Q K V b h).1 =
  grouped_attention e scale conv (B b) (fun h => multiplied (f b h) (Q b h)) (fun a => multiplied (g b a) (K b a))
    (fun a => multiplied (w b a) (V b a)) h.
Proof. by rewrite /descaled_heads descale_equals_multiplied. Qed.

(** Factors of queries that are one for each key-value head may be its keys'. *)
Theorem descale_as_given__group batch kv_heads group (after : 'I_batch -> 'I_(kv_heads * group) -> _)
    (r : 'I_batch -> 'I_kv_heads -> R) g w Q K V b h :
  descaled_heads after (fun b h _ => r b (outer h)) g w Q K V b h =
  descaled_heads after (fun _ _ _ => 1) (fun b a j => r b a * g b a j) w Q K V b h.
Proof. by apply: descale_only_the_product__any => i j; rewrite mul1r. Qed.

End Heads.
