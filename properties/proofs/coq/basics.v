(** What the proofs rest on: a row of the output depends on its own row of Q and of B and on the keys that it sees, and
    gathering keys changes nothing as long as every visible key is taken equally often. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Attest Require Import definitions.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Notation rowsub f := (mxsub f id).
Notation colsub g := (mxsub id g).

Section Softmax.
Variables (R : realFieldType) (e : exponential R).
Local Notation weight := (weight e).
Local Notation total := (total e).
Local Notation softmax := (softmax e).

Lemma exp_neq0 (a : R) : e a != 0.
Proof. by rewrite gt_eqF ?exp_gt0. Qed.

Lemma exp0 : e 0 = 1.
Proof. by apply: (mulfI (exp_neq0 0)); rewrite -expD addr0 mulr1. Qed.

Lemma expN (a : R) : e (- a) = (e a)^-1.
Proof. by apply: (mulfI (exp_neq0 a)); rewrite -expD subrr exp0 divff ?exp_neq0. Qed.

Lemma expB (a b : R) : e (a - b) = e a / e b.
Proof. by rewrite expD expN. Qed.

Lemma weight_ge0 s : 0 <= weight s.
Proof. by case: s => [x|] //=; apply/ltW/exp_gt0. Qed.

Lemma weight_gt0 s : s != hidden -> 0 < weight s.
Proof. by case: s => [x|] //= _; rewrite exp_gt0. Qed.

Lemma total_ge0 m n (S : 'M[score R]_(m, n)) i : 0 <= total S i.
Proof. by apply: sumr_ge0 => j _; apply: weight_ge0. Qed.

Lemma total_gt0 m n (S : 'M[score R]_(m, n)) i : sees_a_key S i -> 0 < total S i.
Proof.
case=> j Sij; rewrite /total (bigD1 j) //= ltr_paddr ?weight_gt0 //.
by apply: sumr_ge0 => l _; apply: weight_ge0.
Qed.

Lemma total_neq0 m n (S : 'M[score R]_(m, n)) i : sees_a_key S i -> total S i != 0.
Proof. by move=> Si; rewrite gt_eqF ?total_gt0. Qed.

(** Row i' of one softmax is row i of another if their rows of scores are. *)
Lemma softmax_local m m' n (S : 'M[score R]_(m, n)) (S' : 'M[score R]_(m', n)) i i' :
  (forall j, S i j = S' i' j) -> row i (softmax S) = row i' (softmax S').
Proof.
move=> SS'; apply/rowP=> j; rewrite !mxE SS'; congr (_ / _).
by apply: eq_bigr => l _; rewrite SS'.
Qed.

Lemma softmax_rowsub m m' n (f : 'I_m' -> 'I_m) (S : 'M[score R]_(m, n)) :
  softmax (rowsub f S) = rowsub f (softmax S).
Proof. by apply/row_matrixP => i; rewrite row_rowsub; apply: softmax_local => j; rewrite mxE. Qed.

(** A row of weights that sees a key sums to one. *)
Lemma softmax_sum m n (S : 'M[score R]_(m, n)) i : sees_a_key S i -> \sum_j softmax S i j = 1.
Proof.
move=> Si; rewrite (eq_bigr (fun j => weight (S i j) / total S i)) => [|j _]; last by rewrite mxE.
by rewrite -mulr_suml divff ?total_neq0.
Qed.

Lemma softmax_ge0 m n (S : 'M[score R]_(m, n)) i j : 0 <= softmax S i j.
Proof. by rewrite mxE divr_ge0 ?weight_ge0 ?total_ge0. Qed.

(** softmax(S) V as one quotient per element. *)
Lemma softmax_mulE m n d (S : 'M[score R]_(m, n)) (V : 'M[R]_(n, d)) i c :
  (softmax S *m V) i c = (\sum_j weight (S i j) * V j c) / total S i.
Proof. by rewrite mxE mulr_suml; apply: eq_bigr => j _; rewrite mxE mulrAC. Qed.

(** Adding one number to every visible score of a row changes nothing. *)
Definition shift_row (t : R) (s : score R) : score R := omap (fun x => x + t) s.

Lemma weight_shift t s : weight (shift_row t s) = weight s * e t.
Proof. by case: s => [x|] /=; rewrite ?expD ?mul0r. Qed.

Lemma softmax_shift m n (t : 'I_m -> R) (S : 'M[score R]_(m, n)) :
  softmax (\matrix_(i, j) shift_row (t i) (S i j)) = softmax S.
Proof.
apply/matrixP => i j; rewrite !mxE weight_shift /total.
under eq_bigr => l _ do rewrite mxE weight_shift.
by rewrite -mulr_suml invfM mulrACA divff ?exp_neq0 ?mulr1.
Qed.

End Softmax.

Lemma ones_timesE (R : realFieldType) M d (b : 'rV[R]_d) i c : ones_times M b i c = b 0 c.
Proof. by rewrite mxE big_ord1 mxE mul1r. Qed.

Lemma row_ones_times (R : realFieldType) M d (b : 'rV[R]_d) i : row i (ones_times M b) = b.
Proof. by apply/rowP => c; rewrite mxE ones_timesE. Qed.

Lemma rowsub_ones_times (R : realFieldType) M M' d (f : 'I_M' -> 'I_M) (b : 'rV[R]_d) :
  rowsub f (ones_times M b) = ones_times M' b.
Proof. by apply/matrixP => i c; rewrite mxE !ones_timesE. Qed.

(** sum_l F(g l) where g takes each index that matters r times. *)
Lemma sum_gather (R : realFieldType) N N' (g : 'I_N' -> 'I_N) r (F : 'I_N -> R) :
  (forall j, F j != 0 -> #|[pred l | g l == j]| = r) -> \sum_l F (g l) = (\sum_j F j) *+ r.
Proof.
move=> Fr; rewrite (partition_big g predT) //= -sumrMnl; apply: eq_bigr => j _.
rewrite (eq_bigr (fun _ => F j)) => [|l /eqP-> //]; rewrite sumr_const.
by have [->|/Fr <-] := eqVneq (F j) 0; rewrite ?mul0rn.
Qed.

Lemma quotient_mulrn (R : realFieldType) (x y : R) r : (0 < r)%N -> (x *+ r) / (y *+ r) = x / y.
Proof.
move=> r_gt0; rewrite -(mulr_natr x) -(mulr_natr y) invfM mulrACA divff ?mulr1 //.
by rewrite pnatr_eq0 -lt0n.
Qed.

(** Fused indices and pairs of indices are the same thing. *)
Lemma outerK h d (a : 'I_h) (i : 'I_d) : outer (fused a i) = a.
Proof. by apply: val_inj; rewrite /= divnMDl ?divn_small ?addn0 //; case: d i => [[]|]. Qed.

Lemma innerK h d (a : 'I_h) (i : 'I_d) : inner (fused a i) = i.
Proof. by apply: val_inj; rewrite /= modnMDl modn_small. Qed.

Lemma fusedK h d (x : 'I_(h * d)) : fused (outer x) (inner x) = x.
Proof. by apply: val_inj; rewrite /= -divn_eq. Qed.

Lemma card_outer h d (a : 'I_h) : #|[pred x : 'I_(h * d) | outer x == a]| = d.
Proof.
rewrite -[RHS]card_ord -(card_codom (f := @fused h d a)) => [|i i' /(congr1 (@inner h d))]; last by rewrite !innerK.
apply: eq_card => x; rewrite !inE; apply/eqP/codomP => [<-|[i ->]]; last by rewrite outerK.
by exists (inner x); rewrite fusedK.
Qed.

Lemma card_inner h d (i : 'I_d) : #|[pred x : 'I_(h * d) | inner x == i]| = h.
Proof.
rewrite -[RHS]card_ord -(card_codom (f := fun a => @fused h d a i)) => [|a a' /(congr1 (@outer h d))]; last first.
  by rewrite !outerK.
apply: eq_card => x; rewrite !inE; apply/eqP/codomP => [<-|[a ->]]; last by rewrite innerK.
by exists (outer x); rewrite fusedK.
Qed.

Lemma sum_fused (R : realFieldType) h d (F : 'I_(h * d) -> R) : \sum_x F x = \sum_a \sum_i F (fused a i).
Proof.
rewrite pair_big (reindex (fun p : 'I_h * 'I_d => fused p.1 p.2)) //=.
by exists (fun x => (outer x, inner x)) => [[a i] _|x _] /=; rewrite ?outerK ?innerK ?fusedK.
Qed.

Section Attention.
Variables (R : realFieldType) (e : exponential R) (scale : R).
Local Notation softmax := (softmax e).
Local Notation masked_score := (masked_score scale).
Local Notation masked_scores := (masked_scores scale).
Local Notation attention := (attention e scale).
Local Notation mattn := (mattn e scale).

(** Of the same operands. In its place `congr (mattn _ ...)` takes ten seconds to find the implicit arguments. *)
Lemma eq_mattn conv M N dk dv (B B' : 'M_(M, N)) (Q Q' : 'M_(M, dk)) (K K' : 'M_(N, dk)) (V V' : 'M_(N, dv)) :
  B = B' -> Q = Q' -> K = K' -> V = V' -> mattn conv B Q K V = mattn conv B' Q' K' V'.
Proof. by move=> -> -> -> ->. Qed.

Lemma masked_score_hidden conv x b : (masked_score conv x b == hidden) = (b == hidden).
Proof. by case: b. Qed.

Lemma sees_masked conv M N dk (B : 'M[score R]_(M, N)) (Q : 'M_(M, dk)) (K : 'M_(N, dk)) i :
  sees_a_key B i -> sees_a_key (masked_scores conv B Q K) i.
Proof. by case=> j Bij; exists j; rewrite mxE masked_score_hidden. Qed.

Lemma sees_finite m n (A : 'M[R]_(m, n.+1)) i : sees_a_key (finite A) i.
Proof. by exists ord0; rewrite mxE. Qed.

Lemma masked_scoresE conv M N dk (B : 'M[score R]_(M, N)) (Q : 'M_(M, dk)) (K : 'M_(N, dk)) i j :
  masked_scores conv B Q K i j = masked_score conv ((Q *m K^T) i j) (B i j).
Proof. by rewrite mxE. Qed.

Lemma qk_entry M N dk (Q : 'M[R]_(M, dk)) (K : 'M[R]_(N, dk)) i j : (Q *m K^T) i j = (row i Q *m (row j K)^T) 0 0.
Proof. by rewrite !mxE; apply: eq_bigr => l _; rewrite !mxE. Qed.

(** Attention without a mask is masked attention under B = 0, in either convention. *)
Lemma mattn_zero_mask conv M N dk dv (Q : 'M_(M, dk)) (K : 'M_(N, dk)) (V : 'M_(N, dv)) :
  mattn conv (zero_mask R M N) Q K V = attention Q K V.
Proof.
congr (softmax _ *m _); apply/matrixP => i j; rewrite !mxE /=.
by case: conv; rewrite ?addr0.
Qed.

(** A row of the output depends on its row of Q and B and on the keys and values that it sees. *)
Lemma mattn_local conv M M' N dk dv (B : 'M[score R]_(M, N)) (B' : 'M_(M', N)) (Q : 'M_(M, dk)) (Q' : 'M_(M', dk))
    (K K' : 'M_(N, dk)) (V V' : 'M_(N, dv)) i i' :
    row i B = row i' B' -> row i Q = row i' Q' ->
    (forall j, B i j != hidden -> row j K = row j K' /\ row j V = row j V') ->
  row i (mattn conv B Q K V) = row i' (mattn conv B' Q' K' V').
Proof.
move=> BB' QQ' KV.
have Bj j : B i j = B' i' j by move/rowP/(_ j): BB'; rewrite !mxE.
have S j : masked_scores conv B Q K i j = masked_scores conv B' Q' K' i' j.
  rewrite !masked_scoresE -Bj (qk_entry Q K) (qk_entry Q' K') -QQ'; case Bij: (B i j) => [b|] //.
  by have [|->] := KV j; rewrite ?Bij.
apply/rowP => c; rewrite ![row _ _ _ _]mxE !softmax_mulE; congr (_ / _); last first.
  by apply: eq_bigr => j _; rewrite S.
apply: eq_bigr => j _; rewrite S.
have [Bij|Bij] := eqVneq (B i j) hidden.
  by rewrite mxE -Bj Bij !mul0r.
by have [_ /rowP/(_ c)] := KV j Bij; rewrite !mxE => ->.
Qed.

Lemma mattn_rowsub conv M M' N dk dv (f : 'I_M' -> 'I_M) (B : 'M[score R]_(M, N)) (Q : 'M_(M, dk)) (K : 'M_(N, dk))
    (V : 'M_(N, dv)) :
  mattn conv (rowsub f B) (rowsub f Q) K V = rowsub f (mattn conv B Q K V).
Proof. by apply/row_matrixP => i; rewrite row_rowsub; apply: mattn_local; rewrite ?row_rowsub. Qed.

Lemma rowsub_zero_mask M M' N (f : 'I_M' -> 'I_M) : rowsub f (zero_mask R M N) = zero_mask R M' N.
Proof. by apply/matrixP => i j; rewrite !mxE. Qed.

Lemma colsub_zero_mask M N N' (g : 'I_N' -> 'I_N) : colsub g (zero_mask R M N) = zero_mask R M N'.
Proof. by apply/matrixP => i j; rewrite !mxE. Qed.

Lemma attention_rowsub M M' N dk dv (f : 'I_M' -> 'I_M) (Q : 'M_(M, dk)) (K : 'M_(N, dk)) (V : 'M_(N, dv)) :
  attention (rowsub f Q) K V = rowsub f (attention Q K V).
Proof. by rewrite -!(mattn_zero_mask pre_scale) -(rowsub_zero_mask N f) mattn_rowsub. Qed.

Lemma attention_local M M' N dk dv (Q : 'M_(M, dk)) (Q' : 'M_(M', dk)) (K : 'M_(N, dk)) (V : 'M_(N, dv)) i i' :
  row i Q = row i' Q' -> row i (attention Q K V) = row i' (attention Q' K V).
Proof.
move=> QQ'; rewrite -!(mattn_zero_mask pre_scale); apply: mattn_local => //.
by apply/rowP => j; rewrite !mxE.
Qed.

Lemma masked_scores_gather conv M N N' dk (g : 'I_N' -> 'I_N) (B : 'M[score R]_(M, N)) (Q : 'M_(M, dk))
    (K : 'M_(N, dk)) :
  masked_scores conv (colsub g B) Q (rowsub g K) = colsub g (masked_scores conv B Q K).
Proof.
by apply/matrixP => i l; rewrite !mxE; congr (masked_score _ _ _); apply: eq_bigr => c _; rewrite !mxE.
Qed.

(** Keys gathered by g, each visible one r times. *)
Lemma mattn_gather conv M N N' dk dv (g : 'I_N' -> 'I_N) r (B : 'M[score R]_(M, N)) (Q : 'M_(M, dk)) (K : 'M_(N, dk))
    (V : 'M_(N, dv)) :
    (0 < r)%N -> (forall i j, B i j != hidden -> #|[pred l | g l == j]| = r) ->
  mattn conv (colsub g B) Q (rowsub g K) (rowsub g V) = mattn conv B Q K V.
Proof.
move=> r_gt0 Br.
have S i l : masked_scores conv (colsub g B) Q (rowsub g K) i l = masked_scores conv B Q K i (g l).
  by rewrite masked_scores_gather mxE.
have seen i j x : weight e (masked_scores conv B Q K i j) * x != 0 -> #|[pred l | g l == j]| = r.
  move=> w; apply: (Br i); apply: contraNneq w => Bij.
  by rewrite mxE Bij mul0r.
apply/matrixP => i c; rewrite !softmax_mulE /total.
under eq_bigr => l _ do rewrite S [rowsub g V l c]mxE.
under [X in _ / X = _]eq_bigr => l _ do rewrite S.
have num := @sum_gather R N N' g r (fun j => weight e (masked_scores conv B Q K i j) * V j c) (fun j => @seen i j _).
have den : \sum_l weight e (masked_scores conv B Q K i (g l)) = (\sum_j weight e (masked_scores conv B Q K i j)) *+ r.
  apply: (@sum_gather R N N' g r (fun j => weight e (masked_scores conv B Q K i j))) => j.
  by rewrite -[X in X != _]mulr1 => /seen.
cbv beta in num; rewrite num den.
by rewrite quotient_mulrn.
Qed.

Lemma card_fibre_bij N N' (g : 'I_N' -> 'I_N) j : bijective g -> #|[pred l | g l == j]| = 1%N.
Proof.
case=> f gK fK; rewrite (@eq_card _ _ (pred1 (f j))) ?card1 // => l; rewrite !inE.
by apply/eqP/eqP => [<-|->].
Qed.

Lemma mattn_gather_bij conv M N N' dk dv (g : 'I_N' -> 'I_N) (B : 'M[score R]_(M, N)) (Q : 'M_(M, dk))
    (K : 'M_(N, dk)) (V : 'M_(N, dv)) :
  bijective g -> mattn conv (colsub g B) Q (rowsub g K) (rowsub g V) = mattn conv B Q K V.
Proof. by move=> g_bij; apply: (@mattn_gather _ _ _ _ _ _ _ 1%N) => // i j _; apply: card_fibre_bij. Qed.

(** Keys that no row sees may be left out. *)
Lemma mattn_gather_inj conv M N N' dk dv (g : 'I_N' -> 'I_N) (B : 'M[score R]_(M, N)) (Q : 'M_(M, dk))
    (K : 'M_(N, dk)) (V : 'M_(N, dv)) :
    injective g -> (forall i j, j \notin codom g -> B i j = hidden) ->
  mattn conv (colsub g B) Q (rowsub g K) (rowsub g V) = mattn conv B Q K V.
Proof.
move=> g_inj B_out; apply: (@mattn_gather _ _ _ _ _ _ _ 1%N) => // i j Bij.
have /codomP[l ->] : j \in codom g by apply: contraNT Bij => /(B_out i)->.
by rewrite (@eq_card _ _ (pred1 l)) ?card1 // => l'; rewrite !inE (inj_eq g_inj).
Qed.

Lemma attention_gather M N N' dk dv (g : 'I_N' -> 'I_N) r (Q : 'M_(M, dk)) (K : 'M_(N, dk)) (V : 'M_(N, dv)) :
    (0 < r)%N -> (forall j, #|[pred l | g l == j]| = r) ->
  attention Q (rowsub g K) (rowsub g V) = attention Q K V.
Proof.
move=> r_gt0 gr; rewrite -!(mattn_zero_mask pre_scale) -(colsub_zero_mask M g).
by apply: (@mattn_gather _ _ _ _ _ _ _ r) => // i j _; apply: gr.
Qed.

End Attention.

Section Projections.
Variable R : realFieldType.

Lemma rowsub_project M M' c d (f : 'I_M' -> 'I_M) (P : projection R c d) (X : 'M_(M, c)) :
  rowsub f (project P X) = project P (rowsub f X).
Proof. by apply/matrixP => i j; rewrite !mxE; congr (_ + _); apply: eq_bigr => l _; rewrite !mxE. Qed.

Lemma row_project M c d (i : 'I_M) (P : projection R c d) (X : 'M_(M, c)) : row i (project P X) = project P (row i X).
Proof. by rewrite !rowEsub rowsub_project. Qed.

Lemma project_local M M' c d (i : 'I_M) (i' : 'I_M') (P : projection R c d) (X : 'M_(M, c)) (X' : 'M_(M', c)) :
  row i X = row i' X' -> row i (project P X) = row i' (project P X').
Proof. by rewrite !row_project => ->. Qed.

End Projections.

(** Without queries every visible key weighs the same: what the counterexamples are computed with. *)
Lemma mattn_flat (R : realFieldType) (e : exponential R) (scale : R) conv M N dk dv (allowed : 'M[bool]_(M, N))
    (K : 'M_(N, dk)) (V : 'M_(N, dv)) i c :
  mattn e scale conv (additive R allowed) 0 K V i c =
  (\sum_j if allowed i j then V j c else 0) / (\sum_j if allowed i j then 1 else 0).
Proof.
have weightE j : weight e (masked_scores scale conv (additive R allowed) (0 : 'M_(M, dk)) K i j) =
    if allowed i j then 1 else 0.
  rewrite masked_scoresE mul0mx [additive _ _ _ _]mxE; case: (allowed i j) => //=.
  by rewrite !mxE; case: conv; rewrite addr0 mulr0 exp0.
by rewrite softmax_mulE /total; congr (_ / _); apply: eq_bigr => j _; rewrite weightE; case: (allowed i j);
  rewrite ?mul1r ?mul0r.
Qed.

Section Heads.
Variable R : realFieldType.

Lemma eq_beside M h d (A A' : 'I_h -> 'M[R]_(M, d)) : (forall m, A m = A' m) -> beside A = beside A'.
Proof. by move=> AA'; apply/matrixP => i x; rewrite !mxE AA'. Qed.

Lemma beside_local M M' h d (A : 'I_h -> 'M[R]_(M, d)) (A' : 'I_h -> 'M[R]_(M', d)) i i' :
  (forall m, row i (A m) = row i' (A' m)) -> row i (beside A) = row i' (beside A').
Proof. by move=> AA'; apply/rowP => x; have /rowP/(_ (inner x)) := AA' (outer x); rewrite !mxE. Qed.

Lemma rowsub_beside M M' h d (f : 'I_M' -> 'I_M) (A : 'I_h -> 'M[R]_(M, d)) :
  rowsub f (beside A) = beside (fun m => rowsub f (A m)).
Proof. by apply/matrixP => i x; rewrite !mxE. Qed.

Lemma besideK M h d (A : 'I_h -> 'M[R]_(M, d)) m : columns_of_head (beside A) m = A m.
Proof. by apply/matrixP => i a; rewrite !mxE outerK innerK. Qed.

Lemma columns_of_headK M h d (A : 'M[R]_(M, h * d)) : beside (columns_of_head A) = A.
Proof. by apply/matrixP => i x; rewrite !mxE fusedK. Qed.

Lemma aboveK h d n (A : 'I_h -> 'M[R]_(d, n)) m : rows_of_head (above A) m = A m.
Proof. by apply/matrixP => a j; rewrite !mxE outerK innerK. Qed.

(** [O_1 | ... | O_h] A = sum_m O_m A^m. *)
Lemma mul_beside M h d n (O : 'I_h -> 'M[R]_(M, d)) (A : 'M[R]_(h * d, n)) :
  beside O *m A = \sum_m O m *m rows_of_head A m.
Proof.
apply/matrixP => i j; rewrite mxE sum_fused summxE; apply: eq_bigr => m _.
by rewrite mxE; apply: eq_bigr => a _; rewrite !mxE outerK innerK.
Qed.

(** The product with [W_1 | ... | W_h], head by head. *)
Lemma columns_of_head_fuse M h c d (P : 'I_h -> projection R c d) (X : 'M[R]_(M, c)) m :
  columns_of_head (project (fuse P) X) m = project (P m) X.
Proof.
apply/matrixP => i a; rewrite /project !mxE !big_ord1 !mxE outerK innerK; congr (_ + _).
by apply: eq_bigr => l _; rewrite !mxE outerK innerK.
Qed.

Lemma project_side_by_side M c d d' (P : projection R c d) (P' : projection R c d') (X : 'M[R]_(M, c)) :
  project (side_by_side P P') X = row_mx (project P X) (project P' X).
Proof. by rewrite /project /ones_times /= !mul_mx_row add_row_mx. Qed.

Lemma rows_of_head_project h d c d' (P : projection R c d') (X : 'M[R]_(h * d, c)) m :
  rows_of_head (project P X) m = project P (rows_of_head X m).
Proof. by rewrite -[rows_of_head _ m]/(rowsub (fused m) _) rowsub_project. Qed.

End Heads.
