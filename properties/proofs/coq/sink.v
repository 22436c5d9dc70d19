(** Sinks: a score without a key, whose exponential joins the sum of a row's weights. [hidden] is none, minus infinity.
    e^lse of a row is the sum of its weights. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Attest Require Import definitions basics attention.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Definitions.
Variables (R : realFieldType) (e : exponential R) (scale : R) (conv : convention).

(** sum_j e^(s_ij) + e^sigma, which is e^lse'. *)
Definition sunk_total M N (sigma : score R) (S : 'M[score R]_(M, N)) (i : 'I_M) : R := total e S i + weight e sigma.

(** Attention with the mask B and a sink. *)
Definition sunk M N dk dv (sigma : score R) (B : 'M[score R]_(M, N)) (Q : 'M[R]_(M, dk)) (K : 'M[R]_(N, dk))
    (V : 'M[R]_(N, dv)) : 'M[R]_(M, dv) :=
  let S := masked_scores scale conv B Q K in
  \matrix_(i, c) ((\sum_j weight e (S i j) * V j c) / sunk_total sigma S i).

End Definitions.

Section Sink.
Variables (R : realFieldType) (e : exponential R) (scale : R) (conv : convention).
Local Notation MAttn := (mattn e scale conv).
Local Notation Sunk := (sunk e scale conv).
Local Notation scores := (masked_scores scale conv).
Variables (M N dk dv : nat).
Implicit Types (B : 'M[score R]_(M, N)) (Q : 'M[R]_(M, dk)) (K : 'M[R]_(N, dk)) (V : 'M[R]_(N, dv)).

(** One appended key with score sigma and v = 0: the same output and sum of weights. *)
Theorem sink_equals_key sigma B Q K V (i : 'I_M) c :
  let S := row_mx (scores B Q K) (const_mx sigma : 'M_(M, 1)) in
  Sunk sigma B Q K V i c = (softmax e S *m col_mx V 0) i c /\ sunk_total e sigma (scores B Q K) i = total e S i.
Proof.
have T : total e (row_mx (scores B Q K) (const_mx sigma : 'M_(M, 1))) i = sunk_total e sigma (scores B Q K) i.
  by rewrite total_row_mx /sunk_total; congr (_ + _); rewrite /total big_ord1 mxE.
split; last by rewrite T.
rewrite softmax_mulE T mxE; congr (_ / _).
by rewrite weighted_row_mx [X in _ = _ + X]big_ord1 [(0 : 'M[R]_(1, dv)) 0 c]mxE mulr0 addr0.
Qed.

(** The key is one of attention with the mask after the scale: k = 0, and the mask adds the sink. *)
Theorem sink_equals_key__mask sigma B Q K V : conv = post_scale ->
  Sunk sigma B Q K V = MAttn (row_mx B (const_mx sigma : 'M_(M, 1))) Q (col_mx K 0) (col_mx V 0).
Proof.
move=> post; apply/matrixP => i c.
have [-> _] := sink_equals_key sigma B Q K V i c.
rewrite /mattn scores_row_mx; congr ((softmax e (row_mx _ _) *m _) _ _).
apply/matrixP => a j; rewrite masked_scoresE trmx0 mulmx0 !mxE post.
by case: sigma => [s|] //=; rewrite mulr0 add0r.
Qed.

(** None is none. *)
Theorem sink_minus_infinity B Q K V : Sunk hidden B Q K V = MAttn B Q K V.
Proof. by apply/matrixP => i c; rewrite mxE softmax_mulE /sunk_total /= addr0. Qed.

(** e^lse' = e^lse + e^sigma. *)
Theorem sink_lse sigma B Q K (i : 'I_M) :
  sunk_total e (Some sigma) (scores B Q K) i = total e (scores B Q K) i + e sigma.
Proof. by []. Qed.

Lemma sunk_gt0 sigma B Q K i : sigma != hidden -> 0 < sunk_total e sigma (scores B Q K) i.
Proof. by move=> s; rewrite ltr_paddl ?total_ge0 ?weight_gt0. Qed.

(** o' = o/(1 + e^(sigma - lse)), by a factor in (0, 1). *)
Theorem sink_rescales sigma B Q K V i c : sees_a_key (scores B Q K) i ->
  let T := total e (scores B Q K) i in let factor := (1 + e sigma / T)^-1 in
  Sunk (Some sigma) B Q K V i c = factor * MAttn B Q K V i c /\ 0 < factor < 1.
Proof.
move=> seen T factor; have T_gt0 : 0 < T := total_gt0 e seen.
have ratio : 0 < e sigma / T by rewrite divr_gt0 ?exp_gt0.
split; last by rewrite invr_gt0 addr_gt0 ?ltr01 //= invf_lt1 ?ltr_addl // addr_gt0 ?ltr01.
rewrite mxE softmax_mulE /sunk_total /= -/T mulrCA; congr (_ * _).
by rewrite /factor -invfM mulrDl mul1r divfK ?gt_eqF.
Qed.

(** V = 1: o' = 1 - e^(sigma - lse'). *)
Theorem sink_rows_sum sigma B Q K i c : sigma != hidden ->
  Sunk sigma B Q K (const_mx 1 : 'M_(N, dv)) i c = 1 - weight e sigma / sunk_total e sigma (scores B Q K) i.
Proof.
move=> s; have T := sunk_gt0 B Q K i s; rewrite mxE.
under eq_bigr => j _ do rewrite [const_mx _ _ _]mxE mulr1.
apply: (mulIf (lt0r_neq0 T)); rewrite mulrBl mul1r !divfK ?gt_eqF //.
by rewrite /sunk_total addrK.
Qed.

(** A row that sees no key: o = 0, and the sum of weights is that of the sink. *)
Theorem sink_empty_row sigma B Q K V i c : (forall j, B i j = hidden) ->
  Sunk sigma B Q K V i c = 0 /\ sunk_total e sigma (scores B Q K) i = weight e sigma.
Proof.
move=> none; have w j : weight e (scores B Q K i j) = 0 by rewrite masked_scoresE none.
split; last by rewrite /sunk_total /total big1 ?add0r.
by rewrite mxE big1 ?mul0r // => j _; rewrite w mul0r.
Qed.

(** (scale, Q, sigma) is (1, scale Q, sigma), with a mask after the scale: nothing touches the sink. *)
Theorem sink_unscaled sigma B Q K V : conv = post_scale ->
  Sunk sigma B Q K V = sunk e 1 conv sigma B (scale *: Q) K V.
Proof.
move=> post; have qk i j : ((scale *: Q) *m K^T) i j = scale * (Q *m K^T) i j by rewrite -scalemxAl mxE.
have S : scores B Q K = masked_scores 1 conv B (scale *: Q) K.
  apply/matrixP => i j; rewrite !masked_scoresE qk post.
  by case: (B i j) => [b|] //=; rewrite mul1r.
by rewrite /sunk S.
Qed.

(** Each head has its own: heads in another order, each with its sink, are the heads in that order. *)
Theorem sink_per_head h (pi : 'I_h -> 'I_h) (sigma : 'I_h -> score R) (B : 'I_h -> 'M[score R]_(M, N))
    (Q : 'I_h -> 'M[R]_(M, dk)) (K : 'I_h -> 'M[R]_(N, dk)) (V : 'I_h -> 'M[R]_(N, dv)) m :
  let O := fun m => Sunk (sigma m) (B m) (Q m) (K m) (V m) in
  Sunk ((sigma \o pi) m) ((B \o pi) m) ((Q \o pi) m) ((K \o pi) m) ((V \o pi) m) = (O \o pi) m.
Proof. by []. Qed.

(** Whatever the blocks that the keys are cut into, the sink counts once. *)
Theorem sink_counted_once blocks (block : 'I_N -> 'I_blocks) sigma B Q K V i c :
  let w j := weight e (scores B Q K i j) in
  Sunk (Some sigma) B Q K V i c =
  (\sum_b \sum_(j | block j == b) w j * V j c) / (\sum_b \sum_(j | block j == b) w j + e sigma).
Proof.
move=> w; have regroup (F : 'I_N -> R) : \sum_b \sum_(j | block j == b) F j = \sum_j F j.
  by rewrite [RHS](partition_big block predT).
by rewrite !regroup mxE.
Qed.

Lemma row_scores B Q K (i : 'I_M) (a : 'I_1) j : scores (row i B) (row i Q) K a j = scores B Q K i j.
Proof. by rewrite !masked_scoresE -row_mul !mxE. Qed.

Lemma sunkE sigma B Q K V i c :
  Sunk sigma B Q K V i c = (\sum_j weight e (scores B Q K i j) * V j c) / sunk_total e sigma (scores B Q K) i.
Proof. by rewrite mxE. Qed.

(** Row i of M queries is the single-query call. *)
Theorem sink_query_count sigma B Q K V i c :
  Sunk sigma B Q K V i c = sunk e scale conv sigma (row i B) (row i Q) K V 0 c.
Proof.
have T : sunk_total e sigma (scores (row i B) (row i Q) K) 0 = sunk_total e sigma (scores B Q K) i.
  by rewrite /sunk_total /total; congr (_ + _); apply: eq_bigr => j _; rewrite row_scores.
rewrite sunkE [RHS]mxE T; congr (_ / _); apply: eq_bigr => j _; by rewrite row_scores.
Qed.

(** B + t in every row and sigma + t, with the mask after the scale: the same output, and e^lse' times e^t. *)
Theorem sink_joint_shift (t : R) sigma B Q K V : conv = post_scale ->
  let B' := map_mx (omap (fun b => b + t)) B in
  Sunk (omap (fun s => s + t) sigma) B' Q K V = Sunk sigma B Q K V /\
  forall i, sunk_total e (omap (fun s => s + t) sigma) (scores B' Q K) i = e t * sunk_total e sigma (scores B Q K) i.
Proof.
move=> post B'.
have w i j : weight e (scores B' Q K i j) = weight e (scores B Q K i j) * e t.
  rewrite !masked_scoresE [B' i j]mxE post; case: (B i j) => [b|] /=; last by rewrite mul0r.
  by rewrite addrA expD.
have s : weight e (omap (fun s => s + t) sigma) = weight e sigma * e t.
  by case: sigma => [x|] /=; rewrite ?mul0r ?expD.
have T i : sunk_total e (omap (fun s => s + t) sigma) (scores B' Q K) i = e t * sunk_total e sigma (scores B Q K) i.
  rewrite mulrC /sunk_total s mulrDl; congr (_ + _).
  by rewrite /total mulr_suml; apply: eq_bigr => j _; rewrite w.
split=> //; apply/matrixP => i c; rewrite [LHS]mxE T [RHS]mxE.
under eq_bigr => j _ do rewrite w mulrAC.
by rewrite -mulr_suml [e t * _]mulrC invfM mulrACA divff ?exp_neq0 // mulr1.
Qed.

End Sink.

Section Blocks.
Variables (R : realFieldType) (e : exponential R) (scale : R) (conv : convention).
Variables (M N N' dk dv : nat).
Local Notation scores := (masked_scores scale conv).

(** The merge of two blocks, the sink in the first alone, or in the second alone. *)
Theorem sink_split_merge sigma (B : 'M[score R]_(M, N)) (B' : 'M[score R]_(M, N')) (Q : 'M[R]_(M, dk))
    (K : 'M[R]_(N, dk)) (K' : 'M[R]_(N', dk)) (V : 'M[R]_(N, dv)) (V' : 'M[R]_(N', dv)) i c : sigma != hidden ->
    sees_a_key (scores B Q K) i -> sees_a_key (scores B' Q K') i ->
  let L := total e (scores B Q K) i in let L' := total e (scores B' Q K') i in
  let Ls := sunk_total e sigma (scores B Q K) i in let Ls' := sunk_total e sigma (scores B' Q K') i in
  let whole := sunk e scale conv sigma (row_mx B B') Q (col_mx K K') (col_mx V V') i c in
  whole = (Ls * sunk e scale conv sigma B Q K V i c + L' * mattn e scale conv B' Q K' V' i c) / (Ls + L') /\
  whole = (L * mattn e scale conv B Q K V i c + Ls' * sunk e scale conv sigma B' Q K' V' i c) / (L + Ls').
Proof.
move=> s seen seen' L L' Ls Ls' whole.
have unnormalised n (C : 'M_(M, n)) (A : 'M_(n, dk)) (U : 'M_(n, dv)) : sees_a_key (scores C Q A) i ->
    total e (scores C Q A) i * mattn e scale conv C Q A U i c = \sum_j weight e (scores C Q A i j) * U j c.
  by move=> see; rewrite softmax_mulE mulrC divfK ?total_neq0.
have with_sink n (C : 'M_(M, n)) (A : 'M_(n, dk)) (U : 'M_(n, dv)) :
    sunk_total e sigma (scores C Q A) i * sunk e scale conv sigma C Q A U i c =
    \sum_j weight e (scores C Q A i j) * U j c.
  by rewrite [sunk _ _ _ _ _ _ _ _ i c]mxE mulrC divfK // gt_eqF // sunk_gt0.
have -> : whole = (\sum_j weight e (scores B Q K i j) * V j c + \sum_j weight e (scores B' Q K' i j) * V' j c) /
    (L + L' + weight e sigma).
  by rewrite /whole mxE scores_row_mx weighted_row_mx /sunk_total total_row_mx.
split; first by rewrite with_sink unnormalised // /Ls /sunk_total -/L addrAC.
by rewrite with_sink unnormalised // /Ls' /sunk_total -/L' addrA.
Qed.
End Blocks.

Section Refuted.
Variables (R : realFieldType) (e : exponential R) (scale : R) (conv : convention).

(** With a sink, adding a constant to a row of B changes nothing: false wherever some e^t is not 1. *)
Theorem sink_breaks_row_shift (t : R) : e (match conv with pre_scale => scale * t | post_scale => t end) != 1 ->
  ~ (forall M N dk dv sigma (B : 'M[score R]_(M, N)) (Q : 'M_(M, dk)) (K : 'M_(N, dk)) (V : 'M_(N, dv)),
     sunk e scale conv sigma (map_mx (omap (fun b => b + t)) B) Q K V = sunk e scale conv sigma B Q K V).
Proof.
set x := e _ => not1 same.
have score1 (b : R) : masked_scores scale conv (const_mx (Some b) : 'M_(1, 1)) (0 : 'M_(1, 1)) 0 0 0 =
    Some (match conv with pre_scale => scale * b | post_scale => b end).
  by rewrite masked_scoresE mul0mx !mxE /=; case: conv; rewrite ?mulr0 add0r.
have value (b : R) :
    sunk e scale conv (Some 0) (const_mx (Some b) : 'M_(1, 1)) 0 (0 : 'M_(1, 1)) (const_mx 1 : 'M_(1, 1)) 0 0 =
    e (match conv with pre_scale => scale * b | post_scale => b end) /
    (e (match conv with pre_scale => scale * b | post_scale => b end) + 1).
  by rewrite mxE /sunk_total /total !big_ord1 score1 mxE mulr1 /= exp0.
have shifted : map_mx (omap (fun b => b + t)) (const_mx (Some 0) : 'M[score R]_(1, 1)) = const_mx (Some t).
  by apply/matrixP => i j; rewrite !mxE /= add0r.
have := same 1%N 1%N 1%N 1%N (Some 0) (const_mx (Some 0)) 0 0 (const_mx 1).
rewrite shifted => /matrixP/(_ 0 0); rewrite !value.
have -> : e (match conv with pre_scale => scale * 0 | post_scale => 0 end) = 1 by case: conv; rewrite ?mulr0 exp0.
rewrite -/x => /eqP; rewrite eqr_div.
  by rewrite mul1r mulrDr mulr1 => /eqP/addrI xx; move: not1; rewrite xx eqxx.
all: by rewrite gt_eqF ?addr_gt0 ?exp_gt0 ?ltr01.
Qed.
End Refuted.
