(** What a row sees: a mask that shows it some keys and hides the others, be it of windows, chunks or sequences. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Attest Require Import definitions basics masked causal.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Shown.
Variables (R : realFieldType) (e : exponential R) (scale : R) (conv : convention).
Local Notation MAttn := (mattn e scale conv).
Local Notation additive := (additive R).
Local Notation lse_of A Q K := (total e (masked_scores scale conv (additive A) Q K)).

(** The sum of e^s over the keys that are shown. *)
Lemma total_shown M N dk (A : 'M[bool]_(M, N)) (Q : 'M_(M, dk)) (K : 'M_(N, dk)) i :
  lse_of A Q K i = \sum_(j | A i j) e (scale * (Q *m K^T) i j).
Proof. by rewrite /total [RHS]big_mkcond; apply: eq_bigr => j _; rewrite weight_shown. Qed.

(** Q = 0 and V = I: the weights are 1/n on the n keys that are shown, and 0 elsewhere. *)
Lemma even_weights M N dk (A : 'M[bool]_(M, N)) (K : 'M_(N, dk)) i j :
  MAttn (additive A) 0 K 1%:M i j = if A i j then (#|[pred l | A i l]|%:R)^-1 else 0.
Proof.
have e1 l : e (scale * ((0 : 'M_(M, dk)) *m K^T) i l) = 1 by rewrite mul0mx mxE mulr0 exp0.
rewrite over_shown.
under eq_bigr => l _ do rewrite e1 mul1r.
under [X in _ / X]eq_bigr => l _ do rewrite e1.
rewrite sumr_const; have [ij|ij] := boolP (A i j).
  rewrite (bigD1 j) //= big1 ?mxE ?eqxx ?addr0 ?div1r // => l /andP[_ /negPf lj].
  by rewrite mxE lj.
rewrite big1 ?mul0r // => l il; rewrite mxE; case: eqP => // lj.
by rewrite -lj il in ij.
Qed.

(** So a key that one mask shows to a row and another does not tells them apart ... *)
Lemma hiding_tells M N dk (A A' : 'M[bool]_(M, N)) (K : 'M_(N, dk)) i j :
  ~~ A i j -> A' i j -> MAttn (additive A) 0 K 1%:M <> MAttn (additive A') 0 K 1%:M.
Proof.
move=> /negPf Aij A'ij /matrixP/(_ i j); rewrite !even_weights Aij A'ij.
move/esym/eqP; rewrite invr_eq0 pnatr_eq0 => /eqP/card0_eq/(_ j).
by rewrite !inE A'ij.
Qed.

(** ... and a mask that hides any from none at all. *)
Lemma hiding_shows M N dk (A : 'M[bool]_(M, N)) (K : 'M_(N, dk)) i j :
  ~~ A i j -> MAttn (additive A) 0 K 1%:M <> attention e scale 0 K 1%:M.
Proof. by move=> Aij; rewrite -(masked_zero_mask__boolean e scale conv); apply: hiding_tells Aij _; rewrite mxE. Qed.

(** A mask that hides nothing. *)
Lemma all_shown M N dk dv (A : 'M[bool]_(M, N)) (Q : 'M_(M, dk)) (K : 'M_(N, dk)) (V : 'M_(N, dv)) :
  (forall i j, A i j) -> MAttn (additive A) Q K V = attention e scale Q K V.
Proof.
move=> Aij; rewrite -(masked_zero_mask__boolean e scale conv); apply: eq_mattn => //.
by apply/matrixP => i j; rewrite !mxE Aij.
Qed.

(** A row that sees one key has its value and its score. *)
Lemma one_shown M N dk dv (A : 'M[bool]_(M, N)) (Q : 'M_(M, dk)) (K : 'M_(N, dk)) (V : 'M_(N, dv)) i s :
    A i =1 pred1 s ->
  row i (MAttn (additive A) Q K V) = row s V /\ lse_of A Q K i = e (scale * (Q *m K^T) i s).
Proof.
move=> As; rewrite total_shown (eq_bigl _ _ As) big_pred1_eq; split=> //; apply/rowP => c.
by rewrite mxE over_shown !(eq_bigl _ _ As) !big_pred1_eq mulrAC divff ?mul1r ?mxE // exp_neq0.
Qed.

(** A row does not depend on what is hidden from it. *)
Lemma shown_local M N dk dv (A : 'M[bool]_(M, N)) (i : 'I_M) (Q : 'M_(M, dk)) (K K' : 'M_(N, dk))
    (V V' : 'M_(N, dv)) :
    (forall j, A i j -> row j K = row j K' /\ row j V = row j V') ->
  row i (MAttn (additive A) Q K V) = row i (MAttn (additive A) Q K' V') /\ lse_of A Q K i = lse_of A Q K' i.
Proof.
move=> KV; split; first by apply: mattn_local => // j; rewrite additive_hidden; apply: KV.
by rewrite !total_shown; apply: eq_bigr => j /KV[Kj _]; rewrite (qk_entry Q K) (qk_entry Q K') Kj.
Qed.

(** The sum of e^s does not fall as more keys are shown. *)
Lemma shown_monotone M N dk (A A' : 'M[bool]_(M, N)) (Q : 'M_(M, dk)) (K : 'M_(N, dk)) i :
  (forall j, A i j -> A' i j) -> lse_of A Q K i <= lse_of A' Q K i.
Proof.
move=> AA'; apply: ler_sum => j _; rewrite !weight_shown.
by case: (A i j) (AA' j) => [-> //|_]; case: (A' i j) => //; apply: ltW (exp_gt0 _ _).
Qed.

(** Rows f that see no other keys than those that g lists: as if both were alone. *)
Lemma part_alone M N m n dk dv (f : 'I_m -> 'I_M) (g : 'I_n -> 'I_N) (A : 'M[bool]_(M, N)) (Q : 'M_(M, dk))
    (K : 'M_(N, dk)) (V : 'M_(N, dv)) :
    injective g -> (forall i j, A (f i) j -> j \in codom g) ->
  rowsub f (MAttn (additive A) Q K V) =
  MAttn (additive (\matrix_(i, j) A (f i) (g j))) (rowsub f Q) (rowsub g K) (rowsub g V).
Proof.
move=> g_inj Ag; rewrite -mattn_rowsub -[LHS](@mattn_gather_inj _ e scale conv _ _ _ _ _ g) //; last first.
  by move=> i j; rewrite !mxE => jg; case: ifP => // /Ag; rewrite (negPf jg).
by apply: eq_mattn => //; apply/matrixP => i j; rewrite !mxE.
Qed.

(** One row is attention of one query over the keys that it sees, g listing them. *)
Lemma row_alone M N n dk dv (A : 'M[bool]_(M, N)) (i : 'I_M) (g : 'I_n -> 'I_N) (Q : 'M_(M, dk)) (K : 'M_(N, dk))
    (V : 'M_(N, dv)) :
    injective g -> (forall j, A i j = (j \in codom g)) ->
  row i (MAttn (additive A) Q K V) = attention e scale (row i Q) (rowsub g K) (rowsub g V).
Proof.
move=> g_inj Ag; rewrite !rowEsub (part_alone _ _ _ g_inj) => [|_ j]; last by rewrite Ag.
by apply: all_shown => k j; rewrite mxE Ag codom_f.
Qed.

(** Keys in front that no row sees may be deleted ... *)
Lemma front_deleted M n N dk dv (A : 'M[bool]_(M, n + N)) (Q : 'M_(M, dk)) (K' : 'M_(n, dk)) (K : 'M_(N, dk))
    (V' : 'M_(n, dv)) (V : 'M_(N, dv)) :
    (forall i j, ~~ A i (lshift N j)) ->
  MAttn (additive A) Q (col_mx K' K) (col_mx V' V) = MAttn (additive (\matrix_(i, j) A i (rshift n j))) Q K V.
Proof.
move=> hides; have downE d (X' : 'M[R]_(n, d)) (X : 'M_(N, d)) : rowsub (@rshift n N) (col_mx X' X) = X.
  by apply/matrixP => i j; rewrite mxE col_mxEd.
rewrite -[MAttn _ _ _ _ in LHS]mxsub_id (part_alone _ _ _ (@rshift_inj n N)) => [|i j]; last first.
  by case: (split_ordP j) => k ->; rewrite ?codom_f // (negPf (hides _ _)).
by rewrite !downE mxsub_id.
Qed.

(** ... and so may those behind. *)
Lemma tail_deleted M N n dk dv (A : 'M[bool]_(M, N + n)) (Q : 'M_(M, dk)) (K : 'M_(N, dk)) (K' : 'M_(n, dk))
    (V : 'M_(N, dv)) (V' : 'M_(n, dv)) :
    (forall i j, ~~ A i (rshift N j)) ->
  MAttn (additive A) Q (col_mx K K') (col_mx V V') = MAttn (additive (\matrix_(i, j) A i (lshift n j))) Q K V.
Proof.
move=> hides; have upE d (X : 'M[R]_(N, d)) (X' : 'M_(n, d)) : rowsub (@lshift N n) (col_mx X X') = X.
  by apply/matrixP => i j; rewrite mxE col_mxEu.
rewrite -[MAttn _ _ _ _ in LHS]mxsub_id (part_alone _ _ _ (@lshift_inj N n)) => [|i j]; last first.
  by case: (split_ordP j) => k ->; rewrite ?codom_f // (negPf (hides _ _)).
by rewrite !upE mxsub_id.
Qed.

End Shown.
