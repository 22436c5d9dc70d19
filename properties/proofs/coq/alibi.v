(** Slopes: row i at position p_i has - m |p_i - j| added to its score of key j, after the scale and what a mask adds.
    e^lse of a row is the sum of its weights. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Attest Require Import definitions basics attention causal.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Definitions.
Variable R : realFieldType.

(** Scores, or a mask, with a slope: hidden where they are. *)
Definition sloped M N (m : R) (p : 'I_M -> R) (S : 'M[score R]_(M, N)) : 'M[score R]_(M, N) :=
  \matrix_(i, j) omap (fun s => s - m * `|p i - j%:R|) (S i j).

(** The form of columns: a mask with + m j in every row. *)
Definition sloped_columns M N (m : R) (B : 'M[score R]_(M, N)) : 'M[score R]_(M, N) :=
  \matrix_(i, j) omap (fun b => b + m * j%:R) (B i j).

Variables (e : exponential R) (scale : R).

(** Scores of attention with the mask B and slopes, and its output. *)
Definition alibi_scores M N dk (m : R) (p : 'I_M -> R) (B : 'M[score R]_(M, N)) (Q : 'M[R]_(M, dk))
    (K : 'M[R]_(N, dk)) : 'M[score R]_(M, N) :=
  sloped m p (masked_scores scale post_scale B Q K).
Definition alibi M N dk dv (m : R) (p : 'I_M -> R) (B : 'M[score R]_(M, N)) (Q : 'M[R]_(M, dk)) (K : 'M[R]_(N, dk))
    (V : 'M[R]_(N, dv)) : 'M[R]_(M, dv) :=
  softmax e (alibi_scores m p B Q K) *m V.

End Definitions.

Section Alibi.
Variables (R : realFieldType) (e : exponential R) (scale : R).
Local Notation MAttn := (mattn e scale post_scale).
Local Notation scores := (masked_scores scale post_scale).
Local Notation Scores := (alibi_scores scale).
Local Notation Alibi := (alibi e scale).
Local Notation additive := (additive R).
Local Notation top_left := (fun i => (position_top_left i)%:~R : R).
Local Notation bottom_right N := (fun i => (position_bottom_right N i)%:~R : R).

Lemma bottom_rightE M N (i : 'I_M) : bottom_right N i = (i + N)%:R - M%:R.
Proof. by rewrite /position_bottom_right rmorphB. Qed.

(** A slope is an entry of the mask. *)
Lemma alibi_scoresE M N dk m p (B : 'M[score R]_(M, N)) (Q : 'M_(M, dk)) (K : 'M_(N, dk)) :
  Scores m p B Q K = scores (sloped m p B) Q K.
Proof. by apply/matrixP => i j; rewrite !mxE; case: (B i j) => [b|] //=; rewrite addrA. Qed.

(** Slopes are the mask B - m |p_i - j|: the same output and sum of weights. *)
Theorem alibi_equals_mask M N dk dv m p (B : 'M[score R]_(M, N)) (Q : 'M_(M, dk)) (K : 'M_(N, dk)) (V : 'M_(N, dv)) :
  Alibi m p B Q K V = MAttn (sloped m p B) Q K V /\
  forall i, total e (Scores m p B Q K) i = total e (scores (sloped m p B) Q K) i.
Proof. by rewrite /alibi alibi_scoresE. Qed.

Lemma alibiE M N dk dv m p (B : 'M[score R]_(M, N)) (Q : 'M_(M, dk)) (K : 'M_(N, dk)) (V : 'M_(N, dv)) :
  Alibi m p B Q K V = MAttn (sloped m p B) Q K V.
Proof. by have [->] := alibi_equals_mask m p B Q K V. Qed.

(** Without a mask they are the mask - m |p_i - j| alone. *)
Theorem alibi_equals_mask__unmasked M N dk dv m p (Q : 'M_(M, dk)) (K : 'M_(N, dk)) (V : 'M_(N, dv)) :
  Alibi m p (zero_mask R M N) Q K V = MAttn (finite (\matrix_(i, j) - (m * `|p i - j%:R|))) Q K V.
Proof. by rewrite alibiE; apply: eq_mattn => //; apply/matrixP => i j; rewrite !mxE /= add0r. Qed.

(** m = 0 is none. *)
Theorem alibi_zero_slope M N dk dv p (B : 'M[score R]_(M, N)) (Q : 'M_(M, dk)) (K : 'M_(N, dk)) (V : 'M_(N, dv)) :
  Alibi 0 p B Q K V = MAttn B Q K V /\ forall i, total e (Scores 0 p B Q K) i = total e (scores B Q K) i.
Proof.
have none : sloped 0 p B = B by apply/matrixP => i j; rewrite mxE; case: (B i j) => [b|] //=; rewrite mul0r subr0.
by rewrite alibiE alibi_scoresE none.
Qed.

(** Heads in another order, each with its slope, are the heads in that order. *)
Theorem alibi_heads h (pi : 'I_h -> 'I_h) M N dk dv (m : 'I_h -> R) p (B : 'I_h -> 'M[score R]_(M, N))
    (Q : 'I_h -> 'M_(M, dk)) (K : 'I_h -> 'M_(N, dk)) (V : 'I_h -> 'M_(N, dv)) a :
  let O := fun a => Alibi (m a) p (B a) (Q a) (K a) (V a) in
  Alibi ((m \o pi) a) p ((B \o pi) a) ((Q \o pi) a) ((K \o pi) a) ((V \o pi) a) = (O \o pi) a.
Proof. by []. Qed.

Lemma sloped_weight M N m p (S : 'M[score R]_(M, N)) i j :
  weight e (sloped m p S i j) = weight e (S i j) * e (- (m * `|p i - j%:R|)).
Proof. by rewrite mxE; case: (S i j) => [s|] /=; rewrite ?expD ?mul0r. Qed.

(** The sum of weights is of the bias as it is defined. *)
Theorem alibi_lse M N dk m p (B : 'M[score R]_(M, N)) (Q : 'M_(M, dk)) (K : 'M_(N, dk)) i :
  total e (Scores m p B Q K) i = \sum_j weight e (scores B Q K i j) * e (- (m * `|p i - j%:R|)).
Proof. by apply: eq_bigr => j _; rewrite sloped_weight. Qed.

(** Where a row sees no key behind its position, the mask B + m j is the same output, and e^lse times e^(m p_i). *)
Theorem alibi_column_form M N dk dv m p (B : 'M[score R]_(M, N)) (Q : 'M_(M, dk)) (K : 'M_(N, dk)) (V : 'M_(N, dv)) :
    (forall i j, B i j != hidden -> j%:R <= p i) ->
  MAttn (sloped_columns m B) Q K V = Alibi m p B Q K V /\
  forall i, total e (scores (sloped_columns m B) Q K) i = e (m * p i) * total e (Scores m p B Q K) i.
Proof.
move=> before; have shift : scores (sloped_columns m B) Q K =
    \matrix_(i, j) shift_row (m * p i) (Scores m p B Q K i j).
  apply/matrixP => i j; rewrite !mxE; case Bij: (B i j) => [b|] //=; congr Some.
  rewrite ger0_norm ?subr_ge0 ?before ?Bij // addrA -[RHS]addrA; congr (_ + _).
  by rewrite mulrBr opprB subrK.
split; first by rewrite /mattn /alibi shift softmax_shift.
move=> i; rewrite shift mulrC /total mulr_suml; apply: eq_bigr => j _.
by rewrite mxE weight_shift.
Qed.

(** Both causal masks are of this kind, each with its own positions. *)
Theorem alibi_column_form__causal M N i j :
  (additive (causal_top_left M N) i j != hidden -> j%:R <= top_left i) /\
  (additive (causal_bottom_right M N) i j != hidden -> j%:R <= bottom_right N i).
Proof.
by rewrite !additive_hidden !mxE bottom_rightE ler_subr_addr -natrD !ler_nat.
Qed.

(** Hidden keys in front change nothing, counted from the bottom right. *)
Theorem alibi_translation M n N dk dv m (B : 'M[score R]_(M, N)) (Q : 'M_(M, dk)) (K' : 'M_(n, dk)) (K : 'M_(N, dk))
    (V' : 'M_(n, dv)) (V : 'M_(N, dv)) :
  let B' := row_mx (const_mx hidden) B in let p' := bottom_right (n + N) in let p := bottom_right N in
  Alibi m p' B' Q (col_mx K' K) (col_mx V' V) = Alibi m p B Q K V /\
  forall i, total e (Scores m p' B' Q (col_mx K' K)) i = total e (Scores m p B Q K) i.
Proof.
move=> B' p' p; have sl : sloped m p' B' = row_mx (const_mx hidden) (sloped m p B).
  apply/matrixP => i j; rewrite mxE; case: (split_ordP j) => l ->; rewrite ?row_mxEl ?row_mxEr !mxE //=.
  case: (B i l) => [b|] //=; congr (Some (_ - _ * `|_|)).
  by rewrite /p' /p !bottom_rightE addnCA !(natrD _ n) -addrA opprD addrACA subrr add0r.
have none : total e (scores (const_mx hidden : 'M_(M, n)) Q K') =1 fun=> 0.
  by move=> i; rewrite /total big1 // => j _; rewrite !mxE.
split=> [|i]; last first.
  by rewrite !alibi_scoresE sl scores_row_mx total_row_mx none add0r.
apply/matrixP => i c; rewrite !alibiE sl !softmax_mulE scores_row_mx total_row_mx none add0r; congr (_ / _).
by rewrite weighted_row_mx big1 ?add0r // => j _; rewrite !mxE mul0r.
Qed.

(** The last row of a prefill is a call of that query alone. *)
Theorem alibi_decode M N dk dv m (B : 'M[score R]_(M.+1, N)) (Q : 'M_(M.+1, dk)) (K : 'M_(N, dk)) (V : 'M_(N, dv)) :
  row ord_max (Alibi m (bottom_right N) B Q K V) =
    Alibi m (bottom_right N) (row ord_max B) (row ord_max Q) K V /\
  total e (Scores m (bottom_right N) B Q K) ord_max =
    total e (Scores m (bottom_right N) (row ord_max B) (row ord_max Q) K) 0.
Proof.
have sl : row ord_max (sloped m (bottom_right N) B) = sloped m (bottom_right N) (row ord_max B).
  apply/rowP => j; rewrite !mxE !bottom_rightE /= add0n.
  suff -> : (M + N)%:R - M.+1%:R = N%:R - 1 :> R by [].
  by rewrite -addn1 !natrD opprD addrACA subrr add0r.
split; first by rewrite !alibiE -sl !rowEsub mattn_rowsub.
rewrite !alibi_scoresE -sl !rowEsub /total; apply: eq_bigr => j _; rewrite !masked_scoresE !mxE.
by congr (weight e (masked_score _ _ _ _)); apply: eq_bigr => l _; rewrite !mxE.
Qed.

(** Q = 0, and a mask that only hides: a visible key weighs e^(- m |p_i - j|) before the weights are normalised. *)
Lemma slope_alone M N dk m p (allowed : 'M[bool]_(M, N)) (K : 'M_(N, dk)) i j :
  weight e (Scores m p (additive allowed) (0 : 'M_(M, dk)) K i j) =
  if allowed i j then e (- (m * `|p i - j%:R|)) else 0.
Proof. by rewrite sloped_weight weight_shown mul0mx mxE mulr0 exp0; case: (allowed i j); rewrite ?mul1r ?mul0r. Qed.

Local Notation P m p allowed K := (softmax e (Scores m p (additive allowed) 0 K)).

Lemma weight_ratio M N (S : 'M[score R]_(M, N)) i j l (t : R) :
  weight e (S i j) = t * weight e (S i l) -> softmax e S i j = t * softmax e S i l.
Proof. by move=> w; rewrite !mxE w mulrA. Qed.

(** Every number is a slope, as it is given: with Q = 0 one weight over another is e^(m (|p - l| - |p - j|)), where m is
    what head a of entry b of a batch has, whatever the others have. *)
Theorem alibi_as_given batch h M N dk (m : 'I_batch -> 'I_h -> R) (p : 'I_M -> R) (allowed : 'M[bool]_(M, N))
    (K : 'I_batch -> 'I_h -> 'M_(N, dk)) b a i (j l : 'I_N) :
    allowed i j -> allowed i l ->
  let W := fun b a => P (m b a) p allowed (K b a) in
  W b a i j = e (m b a * (`|p i - l%:R| - `|p i - j%:R|)) * W b a i l.
Proof.
move=> see_j see_l W; apply: weight_ratio; rewrite !slope_alone see_j see_l -expD.
by rewrite mulrBr addrAC subrr add0r.
Qed.

(** Slopes of other heads and entries do not matter. *)
Theorem alibi_as_given__own batch h M N dk dv (m m' : 'I_batch -> 'I_h -> R) (p : 'I_M -> R)
    (B : 'I_batch -> 'I_h -> 'M[score R]_(M, N)) (Q : 'I_batch -> 'I_h -> 'M_(M, dk))
    (K : 'I_batch -> 'I_h -> 'M_(N, dk)) (V : 'I_batch -> 'I_h -> 'M_(N, dv)) b a :
    m b a = m' b a ->
  let O := fun m b a => Alibi (m b a) p (B b a) (Q b a) (K b a) (V b a) in O m b a = O m' b a.
Proof. by move=> mm O; rewrite /O mm. Qed.

(** Q = 0: keys as far before the position as behind it weigh the same. *)
Theorem alibi_two_sided M N dk m (p : 'I_M -> R) (K : 'M_(N, dk)) i (j l : 'I_N) (d : R) :
    j%:R = p i - d -> l%:R = p i + d ->
  P m p (const_mx true) K i j = P m p (const_mx true) K i l.
Proof.
move=> jd ld; rewrite -[RHS]mul1r; apply: weight_ratio; rewrite mul1r !slope_alone !mxE jd ld.
by rewrite subKr opprD addNKr normrN.
Qed.

Lemma expX (x : R) n : e (x * n%:R) = e x ^+ n.
Proof. by elim: n => [|n IH]; rewrite ?mulr0 ?exp0 // exprS -IH -addn1 addnC natrD mulrDr mulr1 expD. Qed.

(** Row i stands at key n and sees the keys up to there. *)
Definition causal_row M N (p : 'I_M -> R) (allowed : 'M[bool]_(M, N)) i n : Prop :=
  [/\ (n < N)%N, p i = n%:R & forall j, allowed i j = (j <= n)%N].

(** So do rows under both causal masks, unless they see no key or stand behind the last. *)
Theorem alibi_geometric__causal M N (i : 'I_M) :
  ((i < N)%N -> causal_row top_left (causal_top_left M N) i i) /\
  ((M <= i + N)%N -> causal_row (bottom_right N) (causal_bottom_right M N) i (i + N - M)).
Proof.
split=> iN; split=> //; first by move=> j; rewrite mxE.
- by rewrite ltn_subLR // ltn_add2r.
- by rewrite bottom_rightE natrB.
by move=> j; rewrite mxE leq_subRL // addnC.
Qed.

Lemma distance_before (n j : nat) : (j <= n)%N -> `|n%:R - j%:R| = (n - j)%:R :> R.
Proof. by move=> jn; rewrite ger0_norm ?natrB // subr_ge0 ler_nat. Qed.

(** Sums over the keys of such a row are sums over the distances from it. *)
Lemma sum_of_distances N n (F : nat -> R) : (n < N)%N -> \sum_(j < N | (j <= n)%N) F (n - j)%N = \sum_(k < n.+1) F k.
Proof.
move=> nN; rewrite (eq_bigl (fun j : 'I_N => (j < n.+1)%N)) // -(big_ord_widen N (fun j => F (n - j)%N)) //.
rewrite (reindex_inj rev_ord_inj).
by apply: eq_bigr => k _ /=; rewrite subSS subKn // -ltnS.
Qed.

(** Q = 0: the weight falls by e^(-m) from a key to the one before it ... *)
Theorem alibi_geometric__ratio M N dk m p (allowed : 'M_(M, N)) (K : 'M_(N, dk)) (i : 'I_M) n (j l : 'I_N) :
    causal_row p allowed i n -> (j <= n)%N -> l.+1 = j ->
  P m p allowed K i l = e (- m) * P m p allowed K i j.
Proof.
move=> [nN pn see] jn lj; apply: weight_ratio; have ln : (l <= n)%N by rewrite ltnW // lj.
rewrite !slope_alone !see jn ln pn !distance_before // -lj -!mulNr !expX -exprS.
by rewrite subnSK // lj.
Qed.

(** ... so that it is e^(-m (p - j)) (1 - e^(-m)) / (1 - e^(-m (p + 1))): p + 1 is how many keys are seen. *)
Theorem alibi_geometric M N dk m p (allowed : 'M_(M, N)) (K : 'M_(N, dk)) (i : 'I_M) n (j : 'I_N) :
    causal_row p allowed i n -> (j <= n)%N -> e (- (m * n.+1%:R)) != 1 ->
  P m p allowed K i j = e (- (m * (p i - j%:R))) * (1 - e (- m)) / (1 - e (- (m * n.+1%:R))).
Proof.
move=> [nN pn see] jn; rewrite -mulNr expX; set x := e (- m) => x1.
have w l : weight e (Scores m p (additive allowed) (0 : 'M_(M, dk)) K i l) = if (l <= n)%N then x ^+ (n - l) else 0.
  by rewrite slope_alone see; case: ifP => // ln; rewrite pn distance_before // -mulNr expX.
rewrite mxE w jn pn -natrB // -mulNr expX -/x -mulrA; congr (_ * _).
have -> : total e (Scores m p (additive allowed) (0 : 'M_(M, dk)) K) i = \sum_(k < n.+1) x ^+ k.
  rewrite -(sum_of_distances _ nN) [RHS]big_mkcond; apply: eq_bigr => l _; exact: w.
have x_neq1 : 1 - x != 0 by apply: contraNneq x1 => /subr0_eq <-; rewrite expr1n.
have -> : 1 - x ^+ n.+1 = (1 - x) * \sum_(k < n.+1) x ^+ k by rewrite -opprB subrX1 -mulNr opprB.
by rewrite invfM mulrA divff // mul1r.
Qed.

(** A large slope: o_i is near the value of the key s at its position, within e^(Delta - m)/(1 - e^(-m)) of the range of
    values, where Delta is how far a score without slope lies above that of s. *)
Theorem alibi_slope_limit M N dk dv m p (B : 'M[score R]_(M, N)) (Q : 'M_(M, dk)) (K : 'M_(N, dk)) (V : 'M_(N, dv)) i c
    (s : 'I_N) (t_s Delta range : R) :
    {homo e : a b / a <= b} -> e (- m) < 1 ->
    p i = s%:R -> (forall j, B i j != hidden -> (j <= s)%N) ->
    scores B Q K i s = Some t_s -> (forall j t, scores B Q K i j = Some t -> t <= t_s + Delta) ->
    (forall j, B i j != hidden -> `|V j c - V s c| <= range) ->
  `|Alibi m p B Q K V i c - V s c| <= e (Delta - m) / (1 - e (- m)) * range.
Proof.
move=> e_mono; set x := e (- m) => x1 ps before S_s S_max V_range.
set S := Scores m p B Q K; set T := total e S i.
have w_s : weight e (S i s) = e t_s by rewrite sloped_weight S_s ps subrr normr0 mulr0 oppr0 exp0 mulr1.
have seen : sees_a_key S i by exists s; rewrite mxE S_s.
have shown : B i s != hidden by rewrite -(masked_score_hidden scale post_scale ((Q *m K^T) i s)) -masked_scoresE S_s.
have range_ge0 : 0 <= range by apply: le_trans (V_range s shown).
have T_ge : e t_s <= T.
  by rewrite /T /total (bigD1 s) //= w_s ler_addl sumr_ge0 // => j _; apply: weight_ge0.
have -> : Alibi m p B Q K V i c - V s c = \sum_j softmax e S i j * (V j c - V s c).
  rewrite mxE -[X in _ - X]mul1r -(softmax_sum e seen) mulr_suml -sumrB.
  by apply: eq_bigr => j _; rewrite mulrBr.
have term (j : 'I_N) : `|softmax e S i j * (V j c - V s c)| <=
    if (j < s)%N then e Delta * x ^+ (s - j) * range else 0.
  rewrite normrM ger0_norm ?softmax_ge0 //.
  have [Bij|Bij] := eqVneq (B i j) hidden.
    rewrite mxE sloped_weight masked_scoresE Bij !mul0r; case: ifP => // _.
    by rewrite !mulr_ge0 ?exprn_ge0 ?(ltW (exp_gt0 _ _)).
  case: ltngtP (before j Bij) => // [js|js] _; last by rewrite (val_inj js) subrr normr0 mulr0.
  rewrite ler_pmul ?softmax_ge0 ?normr_ge0 ?V_range // mxE ler_pdivr_mulr; last exact: total_gt0.
  rewrite sloped_weight ps distance_before ?(ltnW js) // -mulNr expX -/x mulrAC.
  rewrite ler_wpmul2r ?exprn_ge0 ?(ltW (exp_gt0 _ _)) //.
  case S_j: (scores B Q K i j) (S_max j) => [t|] /= t_le; last by rewrite mulr_ge0 ?(ltW (exp_gt0 _ _)) ?total_ge0.
  apply: le_trans (e_mono _ _ (t_le _ erefl)) _.
  by rewrite addrC expD ler_wpmul2l ?(ltW (exp_gt0 _ _)).
apply: le_trans (ler_norm_sum _ _ _) (le_trans (ler_sum _ (fun j _ => term j)) _).
rewrite -big_mkcond /= -mulr_suml -mulr_sumr ler_wpmul2r // expD -/x -mulrA ler_wpmul2l ?(ltW (exp_gt0 _ _)) //.
rewrite -(big_ord_widen N (fun j => x ^+ (s - j))) ?(ltnW (ltn_ord s)) // (reindex_inj rev_ord_inj) /=.
have x_gt0 : 0 < x by apply: exp_gt0.
have -> : \sum_(j < s) x ^+ (s - (s - j.+1)) = x * \sum_(j < s) x ^+ j.
  by rewrite mulr_sumr; apply: eq_bigr => j _; rewrite subKn // exprS.
rewrite ler_pmul2l // -[X in _ <= X]div1r ler_pdivl_mulr ?subr_gt0 //.
have -> : (\sum_(j < s) x ^+ j) * (1 - x) = 1 - x ^+ s.
  by rewrite mulrC -[1 - x]opprB mulNr -subrX1 opprB.
by rewrite ler_subl_addr ler_addl exprn_ge0 // ltW.
Qed.

End Alibi.

(** Scores with a cap c: c tanh(t/c) of the scaled products t. *)
Section Cap.
Variables (R : realFieldType) (e : exponential R) (scale : R).

Definition tanh (x : R) : R := (e x - e (- x)) / (e x + e (- x)).
Definition cap (c t : R) : R := c * tanh (t / c).

(** Capped, then the mask and slopes are added. *)
Definition capped_scores M N dk (c : R) (B : 'M[score R]_(M, N)) (Q : 'M[R]_(M, dk)) (K : 'M[R]_(N, dk)) :
    'M[score R]_(M, N) :=
  \matrix_(i, j) omap (fun b => cap c (scale * (Q *m K^T) i j) + b) (B i j).

Lemma cap0 c : cap c 0 = 0.
Proof. by rewrite /cap mul0r /tanh oppr0 subrr mul0r mulr0. Qed.

Lemma cap_range c t : 0 <= c -> - c <= cap c t <= c.
Proof.
move=> c_ge0; rewrite -ler_norml /cap normrM (ger0_norm c_ge0) -[X in _ <= X]mulr1 ler_wpmul2l //.
rewrite /tanh; set a := e _; set b := e _; have a_gt0 : 0 < a := exp_gt0 e _; have b_gt0 : 0 < b := exp_gt0 e _.
rewrite normf_div [X in _ / X]gtr0_norm ?addr_gt0 // ler_pdivr_mulr ?addr_gt0 // mul1r.
by apply: le_trans (ler_norm_sub _ _) _; rewrite !gtr0_norm.
Qed.

(** Q = 0: the key at the position weighs e^(m p) times what the first does, more than e^(2 c) times once m p > 2 c. *)
Theorem alibi_after_softcap M N dk m c p (allowed : 'M[bool]_(M, N)) (K : 'M_(N, dk)) i (first s : 'I_N) :
    {homo e : a b / a < b} ->
    first = 0%N :> nat -> p i = s%:R -> allowed i first -> allowed i s -> 2%:R * c < m * p i ->
  let P := softmax e (sloped m p (capped_scores c (additive R allowed) (0 : 'M_(M, dk)) K)) in
  P i s = e (m * p i) * P i first /\ e (2%:R * c) * P i first < P i s.
Proof.
move=> e_mono f0 ps see_f see_s steep; set S := sloped _ _ _ => P.
have w j : allowed i j -> weight e (S i j) = e (- (m * `|p i - j%:R|)).
  by move=> see; rewrite sloped_weight mxE [additive _ _ _ _]mxE see /= mul0mx !mxE mulr0 cap0 addr0 exp0 mul1r.
have ratio : P i s = e (m * p i) * P i first.
  apply: weight_ratio; rewrite !w // f0 ps subrr subr0 normr0 mulr0 oppr0 exp0.
  by rewrite ger0_norm ?ler0n // -expD subrr exp0.
split=> //; rewrite ratio ltr_pmul2r ?e_mono // mxE divr_gt0 ?w ?exp_gt0 // total_gt0 //.
by exists s; apply: contraTneq (exp_gt0 e (- (m * `|p i - s%:R|))) => Ss; rewrite -w // Ss /= ltxx.
Qed.

(** Of scores that are capped with their slopes no weight is more than e^(2 c) times another. *)
Theorem alibi_after_softcap__before M N c (A : 'M[R]_(M, N)) i j l :
    {homo e : a b / a <= b} -> 0 <= c ->
  softmax e (finite (map_mx (cap c) A)) i j <= e (2%:R * c) * softmax e (finite (map_mx (cap c) A)) i l.
Proof.
move=> e_mono c_ge0; rewrite !mxE mulrA ler_wpmul2r ?invr_ge0 ?total_ge0 //= -expD e_mono //.
have /andP[_ j_le] := cap_range (A i j) c_ge0; have /andP[l_ge _] := cap_range (A i l) c_ge0.
by apply: le_trans j_le _; rewrite mulr_natl mulr2n -addrA ler_addl -ler_subl_addl sub0r.
Qed.

End Cap.
