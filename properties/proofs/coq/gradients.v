(** The backward pass: what a loss gains by each argument of attention, given what it gains by the output, G, and by
    the log-sum-exp, c. Scores are given as they are, S, with scales, masks, caps and slopes in them; [slope] is the
    derivative of a cap, 1 without one, and [kept] what dropout multiplies normalised weights by, 0 or 1/(1 - p), and 1
    without it. That these formulas are the derivatives of the forward pass is [backward_directional]. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Attest Require Import definitions basics attention sink.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Definitions.
Variables (R : realFieldType) (e : exponential R) (scale : R).
Variables (M N dk dv : nat).
Implicit Types (S : 'M[score R]_(M, N)) (sigma : score R) (kept slope ds : 'M[R]_(M, N)).
Implicit Types (Q : 'M[R]_(M, dk)) (K : 'M[R]_(N, dk)) (V : 'M[R]_(N, dv)) (G : 'M[R]_(M, dv)) (c : 'cV[R]_M).

(** P_ij, and the share of a sink. *)
Definition shares S sigma : 'M[R]_(M, N) := \matrix_(i, j) (weight e (S i j) / sunk_total e sigma S i).
Definition share_of_sink S sigma i : R := weight e sigma / sunk_total e sigma S i.
(** A_ij = kept_ij P_ij, and the output A V. *)
Definition applied S sigma kept : 'M[R]_(M, N) := \matrix_(i, j) (kept i j * shares S sigma i j).
Definition output S sigma kept V : 'M[R]_(M, dv) := applied S sigma kept *m V.

(** dP_ij = kept_ij g_i.v_j, and D_i = sum_j P_ij dP_ij. *)
Definition of_shares kept V G : 'M[R]_(M, N) := \matrix_(i, j) (kept i j * (G *m V^T) i j).
Definition delta S sigma kept V G i : R := \sum_j shares S sigma i j * of_shares kept V G i j.
(** dS_ij = P_ij (dP_ij - D_i + c_i), the gradient by a mask. *)
Definition of_scores S sigma kept V G c : 'M[R]_(M, N) :=
  \matrix_(i, j) (shares S sigma i j * (of_shares kept V G i j - delta S sigma kept V G i + c i 0)).
(** dT = slope dS; dQ = scale dT K, dK = scale dT^T Q, dV = A^T G, and that by the sink -sum_i p_i (D_i - c_i). *)
Definition of_products slope ds : 'M[R]_(M, N) := \matrix_(i, j) (slope i j * ds i j).
Definition dQ slope ds K : 'M[R]_(M, dk) := scale *: (of_products slope ds *m K).
Definition dK slope ds Q : 'M[R]_(N, dk) := scale *: ((of_products slope ds)^T *m Q).
Definition dV S sigma kept G : 'M[R]_(N, dv) := (applied S sigma kept)^T *m G.
Definition of_sink S sigma kept V G c : R :=
  - \sum_i share_of_sink S sigma i * (delta S sigma kept V G i - c i 0).

End Definitions.

Notation one := (const_mx 1).

(** Entries, one step at a time. *)
Section Entries.
Variable R : realFieldType.
Lemma addE m n (A B : 'M[R]_(m, n)) i j : (A + B) i j = A i j + B i j.
Proof. by rewrite mxE. Qed.
Lemma scaleE m n (a : R) (A : 'M[R]_(m, n)) i j : (a *: A) i j = a * A i j.
Proof. by rewrite mxE. Qed.
Lemma mulE m n l (A : 'M[R]_(m, n)) (B : 'M[R]_(n, l)) i j : (A *m B) i j = \sum_k A i k * B k j.
Proof. by rewrite mxE. Qed.
Lemma trE m n (A : 'M[R]_(m, n)) i j : A^T i j = A j i.
Proof. by rewrite mxE. Qed.
Lemma rowE' m n (A : 'M[R]_(m, n)) i k j : row i A k j = A i j.
Proof. by rewrite mxE. Qed.
Lemma zeroE m n i j : (0 : 'M[R]_(m, n)) i j = 0.
Proof. by rewrite mxE. Qed.
Lemma trZ m n (a : R) (A : 'M[R]_(m, n)) : (a *: A)^T = a *: A^T.
Proof. by apply/matrixP => i j; rewrite !mxE. Qed.
End Entries.

Section Linear.
Variables (R : realFieldType) (e : exponential R) (scale : R).
Variables (M N dk dv : nat).
Implicit Types (S : 'M[score R]_(M, N)) (sigma : score R) (kept slope ds : 'M[R]_(M, N)).
Implicit Types (Q : 'M[R]_(M, dk)) (K : 'M[R]_(N, dk)) (V : 'M[R]_(N, dv)) (G : 'M[R]_(M, dv)) (c : 'cV[R]_M).
Local Notation ds_of S sigma kept V G c := (of_scores e S sigma kept V G c).

Lemma of_sharesE kept V G i j : of_shares kept V G i j = kept i j * (G *m V^T) i j.
Proof. by rewrite mxE. Qed.
Lemma of_scoresE S sigma kept V G c i j : ds_of S sigma kept V G c i j =
  shares e S sigma i j * (of_shares kept V G i j - delta e S sigma kept V G i + c i 0).
Proof. by rewrite mxE. Qed.

Lemma of_sharesD kept V G G' i j :
  of_shares kept V (G + G') i j = of_shares kept V G i j + of_shares kept V G' i j.
Proof. by rewrite !of_sharesE mulmxDl addE mulrDr. Qed.
Lemma of_sharesZ (a : R) kept V G i j : of_shares kept V (a *: G) i j = a * of_shares kept V G i j.
Proof. by rewrite !of_sharesE -scalemxAl scaleE mulrCA. Qed.

Lemma deltaD S sigma kept V G G' i :
  delta e S sigma kept V (G + G') i = delta e S sigma kept V G i + delta e S sigma kept V G' i.
Proof. by rewrite /delta -big_split; apply: eq_bigr => j _; rewrite of_sharesD mulrDr. Qed.
Lemma deltaZ (a : R) S sigma kept V G i : delta e S sigma kept V (a *: G) i = a * delta e S sigma kept V G i.
Proof. by rewrite /delta mulr_sumr; apply: eq_bigr => j _; rewrite of_sharesZ mulrCA. Qed.

Lemma of_scoresD S sigma kept V G G' c c' :
  ds_of S sigma kept V (G + G') (c + c') = ds_of S sigma kept V G c + ds_of S sigma kept V G' c'.
Proof.
apply/matrixP => i j; rewrite addE !of_scoresE deltaD of_sharesD -mulrDr; congr (_ * _).
by rewrite addE opprD (addrACA _ _ (- _)) addrACA.
Qed.
Lemma of_scoresZ (a : R) S sigma kept V G c :
  ds_of S sigma kept V (a *: G) (a *: c) = a *: ds_of S sigma kept V G c.
Proof.
apply/matrixP => i j; rewrite scaleE !of_scoresE deltaZ of_sharesZ scaleE -mulrBr -mulrDr.
by rewrite mulrCA.
Qed.

Lemma of_productsD slope (A B : 'M[R]_(M, N)) : of_products slope (A + B) = of_products slope A + of_products slope B.
Proof. by apply/matrixP => i j; rewrite !mxE mulrDr. Qed.
Lemma of_productsZ (a : R) slope (A : 'M[R]_(M, N)) : of_products slope (a *: A) = a *: of_products slope A.
Proof. by apply/matrixP => i j; rewrite !mxE mulrCA. Qed.

(** The gradients of two losses together are the sums of those of both. *)
Theorem backward_linear_in_dout S sigma kept slope Q K V G G' c c' :
  let ds := of_scores e S sigma kept V in
  [/\ ds (G + G') (c + c') = ds G c + ds G' c',
      dQ scale slope (ds (G + G') (c + c')) K = dQ scale slope (ds G c) K + dQ scale slope (ds G' c') K,
      dK scale slope (ds (G + G') (c + c')) Q = dK scale slope (ds G c) Q + dK scale slope (ds G' c') Q,
      dV e S sigma kept (G + G') = dV e S sigma kept G + dV e S sigma kept G' &
      of_sink e S sigma kept V (G + G') (c + c') =
        of_sink e S sigma kept V G c + of_sink e S sigma kept V G' c'].
Proof.
move=> ds; have D := of_scoresD S sigma kept V G G' c c'.
split; first exact: D.
- by rewrite /dQ /ds D of_productsD mulmxDl scalerDr.
- by rewrite /dK /ds D of_productsD linearD /= mulmxDl scalerDr.
- by rewrite /dV mulmxDr.
rewrite /of_sink -opprD -big_split /=; congr (- _); apply: eq_bigr => i _.
by rewrite -mulrDr deltaD addE opprD addrACA.
Qed.

(** A loss times a: every gradient times a. *)
Theorem backward_scaling (a : R) S sigma kept slope Q K V G c :
  let ds := of_scores e S sigma kept V in
  [/\ ds (a *: G) (a *: c) = a *: ds G c,
      dQ scale slope (ds (a *: G) (a *: c)) K = a *: dQ scale slope (ds G c) K,
      dK scale slope (ds (a *: G) (a *: c)) Q = a *: dK scale slope (ds G c) Q,
      dV e S sigma kept (a *: G) = a *: dV e S sigma kept G &
      of_sink e S sigma kept V (a *: G) (a *: c) = a * of_sink e S sigma kept V G c].
Proof.
move=> ds; have Z := of_scoresZ a S sigma kept V G c.
split; first exact: Z.
- by rewrite /dQ /ds Z of_productsZ -scalemxAl scalerA [scale * a]mulrC -scalerA.
- by rewrite /dK /ds Z of_productsZ trZ -scalemxAl scalerA [scale * a]mulrC -scalerA.
- by rewrite /dV -scalemxAr.
rewrite /of_sink mulrN mulr_sumr; congr (- _); apply: eq_bigr => i _.
by rewrite deltaZ scaleE -mulrBr mulrCA.
Qed.

(** No loss has no gradients. *)
Theorem backward_zero_dout S sigma kept slope Q K V :
  [/\ ds_of S sigma kept V 0 0 = 0, dQ scale slope (ds_of S sigma kept V 0 0) K = 0,
      dK scale slope (ds_of S sigma kept V 0 0) Q = 0, dV e S sigma kept (0 : 'M_(M, dv)) = 0 &
      of_sink e S sigma kept V 0 0 = 0].
Proof.
have [Zs Zq Zk Zv Zsink] := backward_scaling 0 S sigma kept slope Q K V 0 0.
move: Zs Zq Zk Zv Zsink; rewrite !scale0r mul0r => Zs Zq Zk Zv Zsink; split=> //.
Qed.

(** Q^T dQ = dK^T K, over the heads that share K: scores see Q and K through their products alone. *)
Theorem backward_gauge h (slope ds : 'I_h -> 'M[R]_(M, N)) (Q : 'I_h -> 'M[R]_(M, dk)) K :
  \sum_m (Q m)^T *m dQ scale (slope m) (ds m) K = (\sum_m dK scale (slope m) (ds m) (Q m))^T *m K.
Proof.
rewrite linear_sum /= mulmx_suml; apply: eq_bigr => m _.
by rewrite /dQ /dK trZ trmx_mul trmxK -scalemxAr -scalemxAl mulmxA.
Qed.

(** V^T dV = O^T dO, over the heads that share V. *)
Theorem backward_value_gauge h (S : 'I_h -> 'M[score R]_(M, N)) (sigma : 'I_h -> score R)
    (kept : 'I_h -> 'M[R]_(M, N)) V (G : 'I_h -> 'M[R]_(M, dv)) :
  V^T *m (\sum_m dV e (S m) (sigma m) (kept m) (G m)) =
  \sum_m (output e (S m) (sigma m) (kept m) V)^T *m G m.
Proof. by rewrite mulmx_sumr; apply: eq_bigr => m _; rewrite /dV /output trmx_mul mulmxA. Qed.

(** <Q, dQ> = <K, dK> and <V, dV> = <O, dO>: the traces of these. *)
Theorem backward_euler S sigma kept slope ds Q K V G :
  \tr (Q^T *m dQ scale slope ds K) = \tr (K^T *m dK scale slope ds Q) /\
  \tr (V^T *m dV e S sigma kept G) = \tr ((output e S sigma kept V)^T *m G).
Proof.
split; last by rewrite /dV /output trmx_mul mulmxA.
have := @backward_gauge 1 (fun=> slope) (fun=> ds) (fun=> Q) K; rewrite !big_ord1 => ->.
by rewrite -mxtrace_tr trmx_mul trmxK.
Qed.

End Linear.

Section Sums.
Variables (R : realFieldType) (e : exponential R) (scale : R).
Variables (M N dk dv : nat).
Implicit Types (S : 'M[score R]_(M, N)) (sigma : score R) (kept slope ds : 'M[R]_(M, N)).
Implicit Types (Q : 'M[R]_(M, dk)) (K : 'M[R]_(N, dk)) (V : 'M[R]_(N, dv)) (G : 'M[R]_(M, dv)) (c : 'cV[R]_M).
Local Notation ds_of S sigma kept V G c := (of_scores e S sigma kept V G c).

Lemma sharesE S sigma i j : shares e S sigma i j = weight e (S i j) / sunk_total e sigma S i.
Proof. by rewrite mxE. Qed.

(** A row's weights and its sink's make up 1, where there is anything. *)
Lemma shares_sum S sigma i : sunk_total e sigma S i != 0 ->
  \sum_j shares e S sigma i j = 1 - share_of_sink e S sigma i.
Proof.
move=> T; under eq_bigr => j _ do rewrite sharesE.
rewrite -mulr_suml; apply: (mulIf T); rewrite mulrBl mul1r !divfK //.
by rewrite /sunk_total addrK.
Qed.
Lemma shares_sum1 S i : sees_a_key S i -> \sum_j shares e S hidden i j = 1.
Proof.
move=> seen; rewrite shares_sum /share_of_sink /= ?mul0r ?subr0 //.
by rewrite /sunk_total /= addr0 total_neq0.
Qed.
Lemma shares_hidden S sigma i j : S i j = hidden -> shares e S sigma i j = 0.
Proof. by move=> h; rewrite sharesE h mul0r. Qed.
Lemma share_of_no_sink S i : share_of_sink e S hidden i = 0.
Proof. by rewrite /share_of_sink mul0r. Qed.

(** sum_j dS_ij = c_i + p_i (D_i - c_i). *)
Lemma row_of_scores S sigma kept V G c i : sunk_total e sigma S i != 0 ->
  \sum_j ds_of S sigma kept V G c i j =
  c i 0 + share_of_sink e S sigma i * (delta e S sigma kept V G i - c i 0).
Proof.
move=> T; under eq_bigr => j _ do rewrite of_scoresE -addrA mulrDr.
rewrite big_split /= -mulr_suml (shares_sum T) /delta.
set D := \sum_j _; rewrite mulrBl mul1r addrA.
have -> : D + (- D + c i 0) = c i 0 by rewrite addrA subrr add0r.
by congr (_ + _); rewrite -mulrN opprD opprK.
Qed.

(** Without a sink, and without a gradient by the log-sum-exp, each row of dS adds up to 0, hidden keys and all. *)
Theorem backward_ds_rows_sum_to_zero S kept V G i : \sum_j ds_of S hidden kept V G 0 i j = 0.
Proof.
have [T|T] := eqVneq (sunk_total e hidden S i) 0.
  by apply: big1 => j _; rewrite of_scoresE sharesE T invr0 mulr0 mul0r.
by rewrite row_of_scores // share_of_no_sink mul0r mxE addr0.
Qed.

Lemma of_products1 ds : of_products one ds = ds.
Proof. by apply/matrixP => i j; rewrite !mxE mul1r. Qed.

(** So does each column of dK, where no cap stands before the scores. *)
Theorem backward_dk_sums_to_zero S kept Q V G d :
  \sum_j dK scale one (ds_of S hidden kept V G 0) Q j d = 0.
Proof.
rewrite /dK of_products1; under eq_bigr => j _ do rewrite scaleE mulE.
rewrite -mulr_sumr exchange_big /= big1 ?mulr0 // => i _.
under eq_bigr => j _ do rewrite trE.
by rewrite -mulr_suml backward_ds_rows_sum_to_zero mul0r.
Qed.

(** Without a sink and without dropout dV adds up to dO, over rows that see a key. *)
Theorem backward_dv_sums_to_do S G d :
  \sum_j dV e S hidden one G j d = \sum_(i | [exists j, S i j != hidden]) G i d.
Proof.
rewrite /dV; under eq_bigr => j _ do rewrite mulE.
rewrite exchange_big /= [RHS]big_mkcond; apply: eq_bigr => i _.
under eq_bigr => j _ do rewrite trE [applied _ _ _ _ i j]mxE [one i j]mxE mul1r.
rewrite -mulr_suml; case: ifP => [/existsP seen|/negbT]; first by rewrite shares_sum1 ?mul1r.
rewrite negb_exists => /forallP none; rewrite big1 ?mul0r // => j _.
by apply: shares_hidden; move: (none j); rewrite negbK => /eqP.
Qed.

(** What is added to all scores of a row, its sink's among them, is not seen: dS and the sink's gradient balance c. *)
Theorem sink_gradient_balance S sigma kept V G c : (forall i, sunk_total e sigma S i != 0) ->
  \sum_i \sum_j ds_of S sigma kept V G c i j + of_sink e S sigma kept V G c = \sum_i c i 0.
Proof.
move=> T; rewrite /of_sink -sumrB; apply: eq_bigr => i _.
by rewrite row_of_scores // addrK.
Qed.

(** V >= 0 and dO >= 0: the gradient by the sink is no more than 0. *)
Theorem sink_gradient_sign S sigma kept V G : (forall i j, 0 <= kept i j) -> (forall j d, 0 <= V j d) ->
  (forall i d, 0 <= G i d) -> of_sink e S sigma kept V G 0 <= 0.
Proof.
move=> k v g; rewrite /of_sink oppr_le0 sumr_ge0 // => i _.
have T : 0 <= sunk_total e sigma S i by rewrite addr_ge0 ?total_ge0 ?weight_ge0.
rewrite mulr_ge0 ?divr_ge0 ?weight_ge0 // mxE subr0 sumr_ge0 // => j _.
rewrite mulr_ge0 ?sharesE ?divr_ge0 ?weight_ge0 // of_sharesE mulr_ge0 // mxE sumr_ge0 // => d _.
by rewrite mulr_ge0 // mxE.
Qed.

(** A key that no row sees has no gradients. *)
Theorem backward_hidden_keys S sigma kept slope Q V G c j : (forall i, S i j = hidden) ->
  row j (dK scale slope (ds_of S sigma kept V G c) Q) = 0 /\ row j (dV e S sigma kept G) = 0.
Proof.
move=> none; have w i : shares e S sigma i j = 0 by apply: shares_hidden.
split; apply/rowP => d.
  rewrite rowE' scaleE mulE [RHS]mxE big1 ?mulr0 // => i _.
  by rewrite trE [of_products _ _ i j]mxE of_scoresE w mul0r mulr0 mul0r.
rewrite rowE' mulE [RHS]mxE big1 // => i _.
by rewrite trE [applied _ _ _ _ i j]mxE w mulr0 mul0r.
Qed.

(** A row that sees no key: dq_i is 0, and it adds nothing to dK and dV, whatever its q_i, g_i and c_i. *)
Theorem backward_masked_row S sigma kept slope Q Q' K V G G' c c' i : (forall j, S i j = hidden) ->
  (forall i', i' != i -> [/\ row i' Q = row i' Q', row i' G = row i' G' & c i' 0 = c' i' 0]) ->
  [/\ row i (dQ scale slope (ds_of S sigma kept V G c) K) = 0,
      dK scale slope (ds_of S sigma kept V G c) Q = dK scale slope (ds_of S sigma kept V G' c') Q' &
      dV e S sigma kept G = dV e S sigma kept G'].
Proof.
move=> none same; have w j : shares e S sigma i j = 0 by apply: shares_hidden.
have z G0 c0 j : ds_of S sigma kept V G0 c0 i j = 0 by rewrite of_scoresE w mul0r.
have g i' d : i' != i -> G i' d = G' i' d.
  by move=> ne; have [_ /rowP/(_ d) + _] := same i' ne; rewrite !mxE.
have gv i' j : i' != i -> (G *m V^T) i' j = (G' *m V^T) i' j.
  by move=> ne; rewrite !mxE; apply: eq_bigr => d _; rewrite g.
have ds i' j : ds_of S sigma kept V G c i' j = ds_of S sigma kept V G' c' i' j.
  have [->|ne] := eqVneq i' i; first by rewrite !z.
  rewrite !of_scoresE /delta of_sharesE (gv i' j ne) -of_sharesE; have [_ _ <-] := same i' ne.
  by congr (_ * (_ - _ + _)); apply: eq_bigr => l _; rewrite !of_sharesE gv.
split.
- apply/rowP => d; rewrite rowE' scaleE mulE [RHS]mxE big1 ?mulr0 // => j _.
  by rewrite [of_products _ _ i j]mxE z mulr0 mul0r.
- congr (_ *: _); apply/matrixP => j d; rewrite !mxE; apply: eq_bigr => i' _.
  rewrite !trE ![of_products _ _ i' j]mxE ds.
  have [->|ne] := eqVneq i' i; first by rewrite z mulr0 !mul0r.
  by have [/rowP/(_ d) + _ _] := same i' ne; rewrite !mxE => ->.
apply/matrixP => j d; rewrite !mxE; apply: eq_bigr => i' _; rewrite !trE ![applied _ _ _ _ i' j]mxE.
by have [->|ne] := eqVneq i' i; rewrite ?w ?mulr0 ?mul0r // g.
Qed.

(** A column of K that is 0 has no gradient by Q there, and one of Q none by K. *)
Theorem backward_span slope ds Q K d :
  ((forall j, K j d = 0) -> forall i, dQ scale slope ds K i d = 0) /\
  ((forall i, Q i d = 0) -> forall j, dK scale slope ds Q j d = 0).
Proof.
by split=> z x; rewrite scaleE mulE big1 ?mulr0 // => y _; rewrite z mulr0.
Qed.

End Sums.

Section Rows.
Variables (R : realFieldType) (e : exponential R) (scale : R).
Variables (N dk dv : nat).

(** A row of everything is that row's. *)
Lemma sunk_total_local M M' (S : 'M[score R]_(M, N)) (S' : 'M[score R]_(M', N)) sigma i i' :
  (forall j, S i j = S' i' j) -> sunk_total e sigma S i = sunk_total e sigma S' i'.
Proof. by move=> s; rewrite /sunk_total /total; congr (_ + _); apply: eq_bigr => j _; rewrite s. Qed.

Lemma of_scores_local M M' (S : 'M[score R]_(M, N)) (S' : 'M[score R]_(M', N)) sigma (kept : 'M[R]_(M, N))
    (kept' : 'M[R]_(M', N)) (V : 'M[R]_(N, dv)) (G : 'M[R]_(M, dv)) (G' : 'M[R]_(M', dv)) (c : 'cV[R]_M)
    (c' : 'cV[R]_M') i i' :
  (forall j, S i j = S' i' j) -> (forall j, kept i j = kept' i' j) -> (forall d, G i d = G' i' d) -> c i 0 = c' i' 0 ->
  (forall j, applied e S sigma kept i j = applied e S' sigma kept' i' j) /\
  (forall j, of_scores e S sigma kept V G c i j = of_scores e S' sigma kept' V G' c' i' j).
Proof.
move=> s k g cc.
have p j : shares e S sigma i j = shares e S' sigma i' j by rewrite !sharesE s (sunk_total_local sigma s).
have dp j : of_shares kept V G i j = of_shares kept' V G' i' j.
  by rewrite !of_sharesE k !mulE; congr (_ * _); apply: eq_bigr => d _; rewrite g.
split=> j; first by rewrite !mxE -!sharesE k p.
rewrite !of_scoresE p dp cc; congr (_ * (_ - _ + _)).
by apply: eq_bigr => l _; rewrite p dp.
Qed.

(** dq_i depends on row i of the scores, of what is kept, of dO and of c alone. *)
Theorem backward_query_locality M (S S' : 'M[score R]_(M, N)) sigma (kept kept' slope slope' : 'M[R]_(M, N))
    (V : 'M[R]_(N, dv)) (K : 'M[R]_(N, dk)) (G G' : 'M[R]_(M, dv)) (c c' : 'cV[R]_M) i :
  (forall j, S i j = S' i j) -> (forall j, kept i j = kept' i j) -> (forall j, slope i j = slope' i j) ->
  (forall d, G i d = G' i d) -> c i 0 = c' i 0 ->
  row i (dQ scale slope (of_scores e S sigma kept V G c) K) =
  row i (dQ scale slope' (of_scores e S' sigma kept' V G' c') K).
Proof.
move=> s k f g cc; apply/rowP => d; rewrite !rowE' !scaleE !mulE; congr (_ * _); apply: eq_bigr => j _.
have [_ ds] := of_scores_local sigma V s k g cc.
by rewrite ![of_products _ _ i j]mxE f ds.
Qed.

(** dK and dV of all queries are the sum of those of two parts of them, and dQ is that of its part. *)
Theorem backward_query_additivity M M' (S : 'M[score R]_(M, N)) (S' : 'M[score R]_(M', N)) sigma
    (kept slope : 'M[R]_(M, N)) (kept' slope' : 'M[R]_(M', N)) (V : 'M[R]_(N, dv)) (K : 'M[R]_(N, dk))
    (Q : 'M[R]_(M, dk)) (Q' : 'M[R]_(M', dk)) (G : 'M[R]_(M, dv)) (G' : 'M[R]_(M', dv)) (c : 'cV[R]_M)
    (c' : 'cV[R]_M') :
  let ds := of_scores e (col_mx S S') sigma (col_mx kept kept') V (col_mx G G') (col_mx c c') in
  let one_ds := of_scores e S sigma kept V G c in let other_ds := of_scores e S' sigma kept' V G' c' in
  [/\ dK scale (col_mx slope slope') ds (col_mx Q Q') = dK scale slope one_ds Q + dK scale slope' other_ds Q',
      dV e (col_mx S S') sigma (col_mx kept kept') (col_mx G G') = dV e S sigma kept G + dV e S' sigma kept' G' &
      dQ scale (col_mx slope slope') ds K = col_mx (dQ scale slope one_ds K) (dQ scale slope' other_ds K)].
Proof.
move=> ds one_ds other_ds.
have up i : (forall j, applied e (col_mx S S') sigma (col_mx kept kept') (lshift M' i) j =
    applied e S sigma kept i j) /\ (forall j, ds (lshift M' i) j = one_ds i j).
  by apply: of_scores_local => *; rewrite col_mxEu.
have down i : (forall j, applied e (col_mx S S') sigma (col_mx kept kept') (rshift M i) j =
    applied e S' sigma kept' i j) /\ (forall j, ds (rshift M i) j = other_ds i j).
  by apply: of_scores_local => *; rewrite col_mxEd.
have f : of_products (col_mx slope slope') ds = col_mx (of_products slope one_ds) (of_products slope' other_ds).
  apply/matrixP => i j; rewrite [LHS]mxE; case: (splitP i) => k ik.
    have -> : i = lshift M' k by apply: val_inj.
    by rewrite !col_mxEu (up k).2 [RHS]mxE.
  have -> : i = rshift M k by apply: val_inj.
  by rewrite !col_mxEd (down k).2 [RHS]mxE.
have a : applied e (col_mx S S') sigma (col_mx kept kept') = col_mx (applied e S sigma kept) (applied e S' sigma kept').
  apply/matrixP => i j; case: (splitP i) => k ik.
    have -> : i = lshift M' k by apply: val_inj.
    by rewrite !col_mxEu (up k).1.
  have -> : i = rshift M k by apply: val_inj.
  by rewrite !col_mxEd (down k).1.
split.
- by rewrite /dK f tr_col_mx mul_row_col scalerDr.
- by rewrite /dV a tr_col_mx mul_row_col.
by rewrite /dQ f mul_col_mx scale_col_mx.
Qed.

End Rows.

Section Shared.
Variables (R : realFieldType) (e : exponential R) (scale : R).
Variables (M N dk dv : nat).
Implicit Types (S : 'M[score R]_(M, N)) (sigma : score R) (kept slope ds : 'M[R]_(M, N)).
Implicit Types (Q : 'M[R]_(M, dk)) (K : 'M[R]_(N, dk)) (V : 'M[R]_(N, dv)) (G : 'M[R]_(M, dv)) (c : 'cV[R]_M).

(** Scores matter through their shares alone. *)
Lemma eq_of_scores S S' sigma sigma' kept V V' G G' c : shares e S sigma = shares e S' sigma' ->
  of_shares kept V G = of_shares kept V' G' ->
  of_scores e S sigma kept V G c = of_scores e S' sigma' kept V' G' c.
Proof.
move=> p dp; apply/matrixP => i j; rewrite !of_scoresE p dp; congr (_ * (_ - _ + _)).
by rewrite /delta p dp.
Qed.
Lemma eq_applied S S' sigma sigma' kept : shares e S sigma = shares e S' sigma' ->
  applied e S sigma kept = applied e S' sigma' kept.
Proof. by move=> p; apply/matrixP => i j; rewrite ![applied _ _ _ _ i j]mxE p. Qed.

Lemma shares_shift S S' (t : 'I_M -> R) : (forall i j, S' i j = shift_row (t i) (S i j)) ->
  shares e S' hidden = shares e S hidden.
Proof.
move=> s; apply/matrixP => i j; rewrite !sharesE /sunk_total /= !addr0 s weight_shift.
have -> : total e S' i = total e S i * e (t i).
  by rewrite /total mulr_suml; apply: eq_bigr => l _; rewrite s weight_shift.
by rewrite invfM mulrACA divff ?exp_neq0 // mulr1.
Qed.

(** What multiplies all keys alike: dP is one number in a row. *)
Lemma level_row S kept V G (a : 'I_M -> R) i j : (forall j, of_shares kept V G i j = a i) ->
  of_scores e S hidden kept V G 0 i j = 0.
Proof.
move=> level; rewrite of_scoresE level zeroE addr0 /delta.
under eq_bigr => l _ do rewrite level.
rewrite -mulr_suml.
have [T|T] := eqVneq (sunk_total e hidden S i) 0; first by rewrite sharesE T invr0 mulr0 mul0r.
by rewrite shares_sum // share_of_no_sink subr0 mul1r subrr mulr0.
Qed.

(** All values equal, without dropout: dQ = dK = 0. *)
Theorem backward_constant_values S slope Q K (v : 'rV[R]_dv) G :
  let ds := of_scores e S hidden one (ones_times N v) G 0 in dQ scale slope ds K = 0 /\ dK scale slope ds Q = 0.
Proof.
move=> ds; have z : ds = 0.
  apply/matrixP => i j; rewrite zeroE; apply: (@level_row _ _ _ _ (fun i => \sum_d G i d * v 0 d)) => l.
  rewrite of_sharesE [one i l]mxE mul1r mulE; apply: eq_bigr => d _.
  by rewrite trE ones_timesE.
have p : of_products slope ds = 0 by apply/matrixP => i j; rewrite z !mxE mulr0.
by rewrite /dQ /dK p trmx0 !mul0mx !scaler0.
Qed.

(** All keys equal, without a cap: dQ = 0. *)
Theorem backward_equal_keys S kept V (k : 'rV[R]_dk) G :
  dQ scale one (of_scores e S hidden kept V G 0) (ones_times N k) = 0.
Proof.
apply/matrixP => i d; rewrite scaleE mulE of_products1 zeroE.
under eq_bigr => j _ do rewrite ones_timesE.
by rewrite -mulr_suml backward_ds_rows_sum_to_zero mul0r mulr0.
Qed.

(** k_j -> k_j + k changes no gradient, without a cap and without a sink. *)
Theorem backward_key_translation conv (B : 'M[score R]_(M, N)) (k : 'rV[R]_dk) kept Q K V G :
  let S := masked_scores scale conv B Q K in let S' := masked_scores scale conv B Q (K + ones_times N k) in
  let ds := of_scores e S hidden kept V G 0 in let ds' := of_scores e S' hidden kept V G 0 in
  [/\ ds' = ds, dQ scale one ds' (K + ones_times N k) = dQ scale one ds K,
      dK scale one ds' Q = dK scale one ds Q & dV e S' hidden kept G = dV e S hidden kept G].
Proof.
move=> S S' ds ds'; have p : shares e S' hidden = shares e S hidden.
  apply: (@shares_shift _ _ (fun i => scale * (Q *m k^T) i 0)) => i j; rewrite !masked_scoresE.
  have -> : (Q *m (K + ones_times N k)^T) i j = (Q *m K^T) i j + (Q *m k^T) i 0.
    rewrite linearD /= mulmxDr addE; congr (_ + _); rewrite !mulE; apply: eq_bigr => d _.
    by rewrite !trE ones_timesE.
  by case: (B i j) => [b|] //= {S S' ds ds'}; case: conv; rewrite /= !mulrDr addrAC.
have z : ds' = ds by apply: eq_of_scores.
split; first exact: z.
- rewrite z /dQ mulmxDr scalerDr -[RHS]addr0; congr (_ + _).
  exact: (backward_equal_keys S kept V k G).
- by rewrite z.
by rewrite /dV (eq_applied kept p).
Qed.

(** A constant added to all scores of a row changes no gradient, without a sink: dQ, dK and dS are made of dS and of
    what is not a score. *)
Theorem backward_row_shift S (t : 'I_M -> R) kept V G c :
  let S' := \matrix_(i, j) shift_row (t i) (S i j) in
  of_scores e S' hidden kept V G c = of_scores e S hidden kept V G c /\ dV e S' hidden kept G = dV e S hidden kept G.
Proof.
move=> S'; have p : shares e S' hidden = shares e S hidden by apply: shares_shift => i j; rewrite mxE.
by split; [apply: eq_of_scores | rewrite /dV (eq_applied kept p)].
Qed.

(** v_j -> v_j + v changes no gradient, without dropout and without a sink. *)
Theorem backward_value_translation S (v : 'rV[R]_dv) V G c :
  of_scores e S hidden one (V + ones_times N v) G c = of_scores e S hidden one V G c.
Proof.
pose a i := \sum_d G i d * v 0 d.
have dp i j : of_shares one (V + ones_times N v) G i j = of_shares one V G i j + a i.
  rewrite !of_sharesE [one i j]mxE !mul1r linearD /= mulmxDr addE; congr (_ + _); rewrite mulE.
  by apply: eq_bigr => d _; rewrite trE ones_timesE.
apply/matrixP => i j; rewrite !of_scoresE.
have [T|T] := eqVneq (sunk_total e hidden S i) 0; first by rewrite !sharesE T invr0 mulr0 !mul0r.
have -> : delta e S hidden one (V + ones_times N v) G i = delta e S hidden one V G i + a i.
  rewrite /delta; under eq_bigr => l _ do rewrite dp mulrDr.
  by rewrite big_split /= -mulr_suml shares_sum // share_of_no_sink subr0 mul1r.
by rewrite dp opprD addrACA subrr addr0.
Qed.

(** (Q, K) -> (aQ, K/a): dQ/a, a dK, dV. *)
Theorem backward_query_key_exchange (a : R) conv (B : 'M[score R]_(M, N)) kept slope Q K V G c : a != 0 ->
  let S := masked_scores scale conv B Q K in let S' := masked_scores scale conv B (a *: Q) (a^-1 *: K) in
  let ds := of_scores e S hidden kept V G c in
  [/\ S' = S, dQ scale slope ds (a^-1 *: K) = a^-1 *: dQ scale slope ds K &
      dK scale slope ds (a *: Q) = a *: dK scale slope ds Q].
Proof.
move=> a0 S S' ds; split.
- apply/matrixP => i j; rewrite !masked_scoresE; congr (omap _ _); first last.
  by rewrite trZ -scalemxAl -scalemxAr scalerA divff // scale1r.
- by rewrite /dQ -scalemxAr !scalerA mulrC.
by rewrite /dK -scalemxAr !scalerA mulrC.
Qed.

(** V -> aV, dO -> dO/a: dS as it was, and dV/a. *)
Theorem backward_value_scaling (a : R) S sigma kept V G c : a != 0 ->
  of_scores e S sigma kept (a *: V) (a^-1 *: G) c = of_scores e S sigma kept V G c /\
  dV e S sigma kept (a^-1 *: G) = a^-1 *: dV e S sigma kept G.
Proof.
move=> a0; split; last by rewrite /dV -scalemxAr.
apply: eq_of_scores => //; apply/matrixP => i j; rewrite !of_sharesE trZ -scalemxAl -scalemxAr scalerA mulVf //.
by rewrite scale1r.
Qed.

(** dQ(scale, Q) = scale dQ(1, scale Q), and dK is that of the latter, with a mask after the scale. *)
Theorem backward_scale (B : 'M[score R]_(M, N)) kept slope Q K V G c sigma :
  let ds := of_scores e (masked_scores scale post_scale B Q K) sigma kept V G c in
  let ds' := of_scores e (masked_scores 1 post_scale B (scale *: Q) K) sigma kept V G c in
  [/\ ds' = ds, dQ scale slope ds K = scale *: dQ 1 slope ds' K & dK scale slope ds Q = dK 1 slope ds' (scale *: Q)].
Proof.
move=> ds ds'; have z : ds' = ds.
  congr (of_scores e _ sigma kept V G c); apply/matrixP => i j; rewrite !masked_scoresE.
  by rewrite -scalemxAl scaleE; case: (B i j) => [b|] //=; rewrite mul1r.
by split; [exact: z | rewrite z /dQ scale1r | rewrite z /dK scale1r -scalemxAr].
Qed.

(** No gradient but dV depends on a column of V where dO is 0. *)
Theorem backward_value_columns S sigma kept V V' G c :
  (forall d, (forall i, G i d = 0) \/ (forall j, V j d = V' j d)) ->
  of_scores e S sigma kept V G c = of_scores e S sigma kept V' G c.
Proof.
move=> same; apply: eq_of_scores => //; apply/matrixP => i j; rewrite !of_sharesE !mulE; congr (_ * _).
apply: eq_bigr => d _; rewrite !trE; case: (same d) => [z|-> //]; by rewrite z !mul0r.
Qed.

(** dO = 1: dV is the weights, transposed. *)
Theorem backward_dv_is_weights S sigma kept :
  dV e S sigma kept (1%:M : 'M_M) = (applied e S sigma kept)^T.
Proof. by rewrite /dV mulmx1. Qed.

(** g_i = e_k in every row: dQ = scale (Att(Q, K, v_k K) - o_k Att1(Q, K, K)), the latter without dropout. *)
Theorem backward_covariance S sigma kept V K (k : 'I_dv) :
  let G : 'M_(M, dv) := \matrix_(i, d) (d == k)%:R in
  let VK : 'M_(N, dk) := \matrix_(j, d) (V j k * K j d) in
  dQ scale one (of_scores e S sigma kept V G 0) K = \matrix_(i, d)
    (scale * (output e S sigma kept VK i d - output e S sigma kept V i k * output e S sigma one K i d)).
Proof.
move=> G VK; have dp i j : of_shares kept V G i j = kept i j * V j k.
  rewrite of_sharesE mulE (bigD1 k) //= trE [G i k]mxE eqxx mul1r big1 ?addr0 // => d /negPf dk'.
  by rewrite [G i d]mxE dk' mul0r.
have D i : delta e S sigma kept V G i = output e S sigma kept V i k.
  by rewrite /delta mulE; apply: eq_bigr => j _; rewrite dp [applied _ _ _ _ i j]mxE mulrCA mulrA.
apply/matrixP => i d; rewrite [RHS]mxE scaleE of_products1 mulE; congr (_ * _).
set o := output e S sigma kept V i k; rewrite /output !mulE mulr_sumr -sumrB; apply: eq_bigr => j _.
rewrite of_scoresE dp D -/o zeroE addr0 ![applied _ _ _ _ i j]mxE [VK j d]mxE [one i j]mxE mul1r.
by rewrite mulrBr mulrBl; congr (_ - _); [rewrite mulrA [_ * kept i j]mulrC mulrA | rewrite -mulrA mulrCA].
Qed.

(** dO = 0: dQ = scale c Att1(Q, K, K), without dropout, and dV = 0. *)
Theorem backward_lse_only S sigma kept V K c :
  dQ scale one (of_scores e S sigma kept V 0 c) K =
    \matrix_(i, d) (scale * (c i 0 * output e S sigma one K i d)) /\
  dV e S sigma kept (0 : 'M_(M, dv)) = 0.
Proof.
split; last by rewrite /dV mulmx0.
have dp i j : of_shares kept V 0 i j = 0 by rewrite of_sharesE mul0mx zeroE mulr0.
have D i : delta e S sigma kept V 0 i = 0 by apply: big1 => j _; rewrite dp mulr0.
apply/matrixP => i d; rewrite [RHS]mxE scaleE of_products1 mulE; congr (_ * _).
rewrite /output mulE mulr_sumr; apply: eq_bigr => j _.
by rewrite of_scoresE dp D subr0 add0r [applied _ _ _ _ i j]mxE [one i j]mxE mul1r [_ * c i 0]mulrC mulrA.
Qed.

(** The same at any scores, far from 0 or near it. *)
Theorem backward_consistent_scores S G d :
  \sum_j dV e S hidden one G j d = \sum_(i | [exists j, S i j != hidden]) G i d.
Proof. exact: backward_dv_sums_to_do. Qed.

(** Nothing is kept: no gradient but 0, where the log-sum-exp passes none on. *)
Theorem dropout_gradient_of_nothing_kept S sigma V G :
  [/\ of_scores e S sigma 0 V G 0 = 0, dV e S sigma 0 G = 0 & of_sink e S sigma 0 V G 0 = 0].
Proof.
have dp i j : of_shares 0 V G i j = 0 by rewrite of_sharesE zeroE mul0r.
have D i : delta e S sigma 0 V G i = 0 by apply: big1 => j _; rewrite dp mulr0.
split.
- by apply/matrixP => i j; rewrite of_scoresE dp D !zeroE subr0 addr0 mulr0.
- rewrite /dV (_ : applied e S sigma 0 = 0) ?trmx0 ?mul0mx //.
  by apply/matrixP => i j; rewrite [LHS]mxE !zeroE mul0r.
by rewrite /of_sink big1 ?oppr0 // => i _; rewrite D zeroE subr0 mulr0.
Qed.

(** A key that every row drops: dv_s = 0, and dS is what it is with any other v_s. *)
Theorem dropout_gradient_through_dropped S sigma kept V V' G c s : (forall i, kept i s = 0) ->
  (forall j, j != s -> row j V = row j V') ->
  of_scores e S sigma kept V G c = of_scores e S sigma kept V' G c /\ row s (dV e S sigma kept G) = 0.
Proof.
move=> none same; split.
  apply: eq_of_scores => //; apply/matrixP => i j; rewrite !of_sharesE.
  have [->|js] := eqVneq j s; first by rewrite none !mul0r.
  rewrite !mulE; congr (_ * _); apply: eq_bigr => d _; rewrite !trE.
  by move/rowP/(_ d): (same j js); rewrite !rowE' => ->.
apply/rowP => d; rewrite rowE' mulE zeroE big1 // => i _.
by rewrite trE [applied _ _ _ _ i s]mxE none !mul0r.
Qed.

(** A key that no row sees: no other gradient depends on k_s and v_s. *)
Theorem backward_dead_inputs S sigma kept slope K K' V V' G c s : (forall i, S i s = hidden) ->
  (forall j, j != s -> row j K = row j K' /\ row j V = row j V') ->
  let ds := of_scores e S sigma kept V G c in let ds' := of_scores e S sigma kept V' G c in
  ds = ds' /\ dQ scale slope ds K = dQ scale slope ds' K'.
Proof.
move=> none same ds ds'.
have w i : shares e S sigma i s = 0 by apply: shares_hidden.
have dp i j : j != s -> of_shares kept V G i j = of_shares kept V' G i j.
  move=> js; rewrite !of_sharesE !mulE; congr (_ * _); apply: eq_bigr => d _; rewrite !trE.
  by have [_ /rowP/(_ d)] := same j js; rewrite !rowE' => ->.
have D i : delta e S sigma kept V G i = delta e S sigma kept V' G i.
  apply: eq_bigr => j _; have [->|js] := eqVneq j s; first by rewrite w !mul0r.
  by rewrite dp.
have z : ds = ds'.
  apply/matrixP => i j; rewrite !of_scoresE D; have [->|js] := eqVneq j s; first by rewrite w !mul0r.
  by rewrite dp.
split=> //; rewrite z /dQ; congr (_ *: _); apply/matrixP => i d; rewrite !mulE; apply: eq_bigr => j _.
have [->|js] := eqVneq j s; first by rewrite [of_products _ _ i s]mxE of_scoresE w mul0r mulr0 !mul0r.
by have [/rowP/(_ d) kk _] := same j js; move: kk; rewrite !rowE' => ->.
Qed.

End Shared.

(** A sink is an appended key. *)
Section Sink.
Variables (R : realFieldType) (e : exponential R) (scale : R).
Variables (M N dk dv : nat).
Implicit Types (S : 'M[score R]_(M, N)) (sigma : score R) (kept slope : 'M[R]_(M, N)) (x : 'cV[R]_M).
Implicit Types (Q : 'M[R]_(M, dk)) (K : 'M[R]_(N, dk)) (V : 'M[R]_(N, dv)) (G : 'M[R]_(M, dv)) (c : 'cV[R]_M).
Local Notation with_key S sigma := (row_mx S (const_mx sigma : 'M_(M, 1))).

Lemma total_with_key S sigma i : sunk_total e hidden (with_key S sigma) i = sunk_total e sigma S i.
Proof. by rewrite /sunk_total /= addr0 total_row_mx; congr (_ + _); rewrite /total big_ord1 mxE. Qed.
Lemma shares_of_key S sigma i j : shares e (with_key S sigma) hidden i (lshift 1 j) = shares e S sigma i j.
Proof. by rewrite !sharesE total_with_key row_mxEl. Qed.
Lemma share_of_key S sigma i : shares e (with_key S sigma) hidden i (rshift N 0) = share_of_sink e S sigma i.
Proof. by rewrite sharesE total_with_key row_mxEr mxE. Qed.

Lemma of_shares_left kept x V G i j : of_shares (row_mx kept x) (col_mx V 0) G i (lshift 1 j) = of_shares kept V G i j.
Proof. by rewrite !of_sharesE row_mxEl !mulE; congr (_ * _); apply: eq_bigr => d _; rewrite !trE col_mxEu. Qed.
Lemma of_shares_right kept x V G i : of_shares (row_mx kept x) (col_mx V 0) G i (rshift N 0) = 0.
Proof. by rewrite of_sharesE mulE big1 ?mulr0 // => d _; rewrite trE col_mxEd zeroE mulr0. Qed.
Lemma delta_with_key S sigma kept x V G i :
  delta e (with_key S sigma) hidden (row_mx kept x) (col_mx V 0) G i = delta e S sigma kept V G i.
Proof.
rewrite /delta big_split_ord /= big_ord1 of_shares_right mulr0 addr0.
by apply: eq_bigr => j _; rewrite shares_of_key of_shares_left.
Qed.

(** One appended key of that score, with k = 0 and v = 0: the same dS, dQ, dK and dV, and the gradient by the sink is
    that by what the mask adds to the key, whatever dropout makes of it. *)
Theorem sink_gradient_equals_key S sigma kept x slope Q K V G c :
  let ds := of_scores e S sigma kept V G c in
  let ds' := of_scores e (with_key S sigma) hidden (row_mx kept x) (col_mx V 0) G c in
  [/\ forall i j, ds' i (lshift 1 j) = ds i j,
      dQ scale (row_mx slope one) ds' (col_mx K 0) = dQ scale slope ds K,
      forall j d, dK scale (row_mx slope one) ds' Q (lshift 1 j) d = dK scale slope ds Q j d,
      forall j d, dV e (with_key S sigma) hidden (row_mx kept x) G (lshift 1 j) d = dV e S sigma kept G j d &
      \sum_i ds' i (rshift N 0) = of_sink e S sigma kept V G c].
Proof.
move=> ds ds'; have left i j : ds' i (lshift 1 j) = ds i j.
  by rewrite !of_scoresE shares_of_key of_shares_left delta_with_key.
split=> //.
- apply/matrixP => i d; rewrite !scaleE !mulE big_split_ord /= big_ord1 col_mxEd zeroE mulr0 addr0; congr (_ * _).
  by apply: eq_bigr => j _; rewrite col_mxEu ![of_products _ _ _ _]mxE row_mxEl left.
- move=> j d; rewrite !scaleE !mulE; congr (_ * _); apply: eq_bigr => i _.
  by rewrite !trE ![of_products _ _ _ _]mxE row_mxEl left.
- move=> j d; rewrite !mulE; apply: eq_bigr => i _; rewrite !trE ![applied _ _ _ _ _ _]mxE row_mxEl.
  by rewrite shares_of_key.
rewrite /of_sink -sumrN; apply: eq_bigr => i _.
by rewrite of_scoresE share_of_key of_shares_right delta_with_key sub0r -mulrN opprB addrC.
Qed.

(** Without a cap and without a gradient by the log-sum-exp: dK adds up to what that key has, with the other sign. *)
Theorem sink_dk_sum S sigma kept x Q V G d :
  let ds' := of_scores e (with_key S sigma) hidden (row_mx kept x) (col_mx V 0) G 0 in
  \sum_j dK scale one (of_scores e S sigma kept V G 0) Q j d = - dK scale one ds' Q (rshift N 0) d.
Proof.
move=> ds'; apply/eqP; rewrite -addr_eq0; apply/eqP.
rewrite -[RHS](backward_dk_sums_to_zero e scale (with_key S sigma) (row_mx kept x) Q (col_mx V 0) G d) -/ds'.
rewrite [RHS]big_split_ord /= big_ord1; congr (_ + _); apply: eq_bigr => j _.
have [left _ _ _ _] := sink_gradient_equals_key S sigma kept x one Q (0 : 'M_(N, dk)) V G 0.
by rewrite !scaleE !mulE; congr (_ * _); apply: eq_bigr => i _; rewrite !trE !of_products1 left.
Qed.

End Sink.

(** A single key: dQ = dK = 0, without a sink, and dv is the sum of dO over rows that see it. *)
Section OneKey.
Variables (R : realFieldType) (e : exponential R) (scale : R).
Variables (M dk dv : nat).

Theorem backward_one_key (S : 'M[score R]_(M, 1)) slope (Q : 'M[R]_(M, dk)) (K : 'M[R]_(1, dk)) (V : 'M[R]_(1, dv))
    (G : 'M[R]_(M, dv)) d :
  let ds := of_scores e S hidden one V G 0 in
  [/\ dQ scale slope ds K = 0, dK scale slope ds Q = 0 &
      dV e S hidden one G 0 d = \sum_(i | [exists j, S i j != hidden]) G i d].
Proof.
move=> ds; have [q k] := backward_constant_values e scale S slope Q K V G.
have E : ds = of_scores e S hidden one (ones_times 1 V) G 0.
  by congr (of_scores e S hidden one _ G 0); apply/matrixP => j l; rewrite ones_timesE ord1.
split; [by rewrite E | by rewrite E | ].
by have := backward_dv_sums_to_do e S G d; rewrite big_ord1.
Qed.
End OneKey.

Section Deletion.
Variables (R : realFieldType) (e : exponential R) (scale : R).
Variables (M M' N dk dv : nat).

(** Rows whose dO and c are 0 may be left out: dK and dV are the same. *)
Theorem backward_zero_row_deletes (S : 'M[score R]_(M, N)) (S' : 'M[score R]_(M', N)) sigma (kept slope : 'M[R]_(M, N))
    (kept' slope' : 'M[R]_(M', N)) (V : 'M[R]_(N, dv)) (Q : 'M[R]_(M, dk)) (Q' : 'M[R]_(M', dk)) (G : 'M[R]_(M, dv))
    (c : 'cV[R]_M) :
  dK scale (col_mx slope slope') (of_scores e (col_mx S S') sigma (col_mx kept kept') V (col_mx G 0) (col_mx c 0))
    (col_mx Q Q') = dK scale slope (of_scores e S sigma kept V G c) Q /\
  dV e (col_mx S S') sigma (col_mx kept kept') (col_mx G 0) = dV e S sigma kept G.
Proof.
have [k v _] := backward_query_additivity e scale S S' sigma kept slope kept' slope' V (0 : 'M_(N, dk)) Q Q' G 0 c 0.
have [_ _ zk zv _] := backward_zero_dout e scale S' sigma kept' slope' Q' (0 : 'M_(N, dk)) V.
by rewrite k v zk zv !addr0.
Qed.
End Deletion.

(** What the gradients are of: the loss sum G.O + c.lse moves along a direction of all arguments by the rules of
    derivation, with e' = e, as the sum of each gradient times its argument's direction. *)
Section Directional.
Variables (R : realFieldType) (e : exponential R) (scale : R).
Variables (M N dk dv : nat).
Variables (S : 'M[score R]_(M, N)) (sigma : score R) (kept slope : 'M[R]_(M, N)).
Variables (Q Q' : 'M[R]_(M, dk)) (K K' : 'M[R]_(N, dk)) (V V' : 'M[R]_(N, dv)) (B' : 'M[R]_(M, N)) (sigma' : R).
Variables (G : 'M[R]_(M, dv)) (c : 'cV[R]_M).

(** Scores are a cap of scale Q K^T, whose derivative is [slope], and a mask that moves by B'. *)
Definition score' : 'M[R]_(M, N) := \matrix_(i, j) (slope i j * (scale * (Q' *m K^T + Q *m K'^T) i j) + B' i j).
Definition weight' i j : R := weight e (S i j) * score' i j.
Definition total' i : R := \sum_j weight' i j + weight e sigma * sigma'.
Local Notation T := (sunk_total e sigma S).
(** Of a quotient, of a sum of products, and of a logarithm. *)
Definition share' i j : R := (weight' i j * T i - weight e (S i j) * total' i) / T i ^+ 2.
Definition output' i d : R := \sum_j kept i j * (share' i j * V j d + shares e S sigma i j * V' j d).
Definition lse' i : R := total' i / T i.

Definition inner_product m n (A A' : 'M[R]_(m, n)) : R := \sum_i \sum_j A i j * A' i j.
Local Notation "<< A , B >>" := (inner_product A B).
Local Notation ds := (of_scores e S sigma kept V G c).

Lemma inner_mul m n l (A : 'M[R]_(m, n)) (X : 'M[R]_(m, l)) (Y : 'M[R]_(n, l)) : << A, X *m Y^T >> = << A *m Y, X >>.
Proof.
apply: eq_bigr => i _; under eq_bigr => j _ do rewrite mulE mulr_sumr.
rewrite exchange_big /=; apply: eq_bigr => d _; rewrite mulE mulr_suml; apply: eq_bigr => j _.
by rewrite trE mulrCA mulrC.
Qed.
Lemma inner_tr m n (A A' : 'M[R]_(m, n)) : << A^T, A'^T >> = << A, A' >>.
Proof.
rewrite /inner_product exchange_big; apply: eq_bigr => i _; apply: eq_bigr => j _; by rewrite !trE.
Qed.

Lemma share'E i j : T i != 0 -> share' i j = shares e S sigma i j * (score' i j - lse' i).
Proof.
move=> t; rewrite /share' /lse' sharesE mulrBl mulrBr expr2 invfM; congr (_ - _).
  by rewrite mulrA mulfK // /weight' mulrAC.
by rewrite mulrACA.
Qed.
Lemma lse'E i : lse' i = \sum_j shares e S sigma i j * score' i j + share_of_sink e S sigma i * sigma'.
Proof.
rewrite /lse' /total' mulrDl mulr_suml; congr (_ + _); last by rewrite mulrAC.
by apply: eq_bigr => j _; rewrite /weight' sharesE mulrAC.
Qed.

Lemma row_directional i : T i != 0 ->
  \sum_d G i d * output' i d + c i 0 * lse' i =
  \sum_j ds i j * score' i j - share_of_sink e S sigma i * (delta e S sigma kept V G i - c i 0) * sigma' +
  \sum_j applied e S sigma kept i j * (G *m V'^T) i j.
Proof.
move=> t; have dp j : of_shares kept V G i j = kept i j * (G *m V^T) i j := of_sharesE kept V G i j.
have -> : \sum_d G i d * output' i d =
    \sum_j of_shares kept V G i j * share' i j + \sum_j applied e S sigma kept i j * (G *m V'^T) i j.
  under eq_bigr => d _ do rewrite /output' mulr_sumr.
  rewrite exchange_big /= -big_split; apply: eq_bigr => j _ /=.
  rewrite dp [applied _ _ _ _ i j]mxE !mulE !mulr_sumr !mulr_suml -big_split; apply: eq_bigr => d _ /=.
  rewrite !trE !mulrDr; congr (_ + _); first by rewrite mulrCA [share' i j * _]mulrC !mulrA.
  by rewrite mulrCA !mulrA [kept i j * shares _ _ _ _ _ * _]mulrAC.
rewrite addrAC; congr (_ + _); set D := delta e S sigma kept V G i; set L := lse' i.
pose A := \sum_j shares e S sigma i j * of_shares kept V G i j * score' i j.
have -> : \sum_j of_shares kept V G i j * share' i j = A - D * L.
  rewrite /D /delta mulr_suml /A -sumrB; apply: eq_bigr => j _.
  by rewrite (share'E j t) mulrA [_ * shares _ _ _ _ _]mulrC mulrBr.
have -> : \sum_j ds i j * score' i j = A - (D - c i 0) * \sum_j shares e S sigma i j * score' i j.
  rewrite mulr_sumr /A -sumrB; apply: eq_bigr => j _; rewrite of_scoresE -/D.
  have -> : of_shares kept V G i j - D + c i 0 = of_shares kept V G i j - (D - c i 0) by rewrite opprB addrA addrAC.
  by rewrite mulrBr mulrBl; congr (_ - _); rewrite -mulrA mulrCA.
have -> : share_of_sink e S sigma i * (D - c i 0) * sigma' = (D - c i 0) * (share_of_sink e S sigma i * sigma').
  by rewrite -mulrA mulrCA.
rewrite -addrA -[RHS]addrA; congr (_ + _).
by rewrite -opprD -mulrDr -lse'E mulrBl opprB addrC.
Qed.

Lemma inner_slope (A X Y : 'M[R]_(M, N)) :
  << A, \matrix_(i, j) (slope i j * (scale * Y i j)) + X >> = scale * << of_products slope A, Y >> + << A, X >>.
Proof.
rewrite /inner_product mulr_sumr -big_split; apply: eq_bigr => i _ /=.
rewrite mulr_sumr -big_split; apply: eq_bigr => j _ /=.
rewrite addE mulrDr; congr (_ + _); rewrite [(\matrix_(_, _) _) i j]mxE [of_products _ _ i j]mxE.
by rewrite mulrCA [A i j * _]mulrCA mulrCA !mulrA.
Qed.

Theorem backward_directional : (forall i, T i != 0) ->
  \sum_i \sum_d G i d * output' i d + \sum_i c i 0 * lse' i =
  << dQ scale slope ds K, Q' >> + << dK scale slope ds Q, K' >> + << dV e S sigma kept G, V' >> + << ds, B' >> +
  of_sink e S sigma kept V G c * sigma'.
Proof.
move=> t; rewrite -big_split /=; under eq_bigr => i _ do rewrite (row_directional (t i)).
rewrite !big_split /= -/(inner_product ds score') -/(inner_product (applied e S sigma kept) (G *m V'^T)).
have -> : << applied e S sigma kept, G *m V'^T >> = << dV e S sigma kept G, V' >>.
  by rewrite -inner_tr trmx_mul trmxK inner_mul.
have -> : \sum_i - (share_of_sink e S sigma i * (delta e S sigma kept V G i - c i 0) * sigma') =
    of_sink e S sigma kept V G c * sigma'.
  by rewrite /of_sink mulNr mulr_suml sumrN.
have -> : score' = \matrix_(i, j) (slope i j * (scale * (Q' *m K^T + Q *m K'^T) i j)) + B'.
  by apply/matrixP => i j; rewrite /score' !mxE.
rewrite inner_slope.
have -> : scale * << of_products slope ds, Q' *m K^T + Q *m K'^T >> =
    << dQ scale slope ds K, Q' >> + << dK scale slope ds Q, K' >>.
  have D (A X Y : 'M[R]_(M, N)) : << A, X + Y >> = << A, X >> + << A, Y >>.
    rewrite /inner_product -big_split; apply: eq_bigr => i _ /=; rewrite -big_split; apply: eq_bigr => j _ /=.
    by rewrite addE mulrDr.
  have Z m n (A B : 'M[R]_(m, n)) : << scale *: A, B >> = scale * << A, B >>.
    rewrite /inner_product mulr_sumr; apply: eq_bigr => i _; rewrite mulr_sumr; apply: eq_bigr => j _.
    by rewrite scaleE mulrA.
  by rewrite D mulrDr inner_mul /dQ /dK !Z; congr (_ + scale * _); rewrite -inner_tr trmx_mul trmxK inner_mul.
by rewrite addrAC; congr (_ + _); rewrite addrAC.
Qed.
End Directional.
