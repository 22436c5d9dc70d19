(** Dropout by a given mask: of weights that are normalised, those of kept keys over 1 - p, and the others 0. Nothing is
    normalised again. e^lse of a row is the sum of its weights, whatever is dropped. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Attest Require Import definitions basics.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Definitions.
Variables (R : realFieldType) (e : exponential R) (scale : R) (conv : convention).

(** A_ij = keep_ij P_ij / (1 - p). *)
Definition dropped M N (p : R) (keep : 'M[bool]_(M, N)) (P : 'M[R]_(M, N)) : 'M[R]_(M, N) :=
  \matrix_(i, j) ((keep i j)%:R * P i j / (1 - p)).

(** The output A V and e^lse of each row. *)
Definition with_dropout M N dk dv (p : R) (keep : 'M[bool]_(M, N)) (B : 'M[score R]_(M, N)) (Q : 'M[R]_(M, dk))
    (K : 'M[R]_(N, dk)) (V : 'M[R]_(N, dv)) : 'M[R]_(M, dv) * 'cV[R]_M :=
  let S := masked_scores scale conv B Q K in
  (dropped p keep (softmax e S) *m V, \col_i total e S i).

End Definitions.

(** The mean over masks whose entries are 0 with probability p, each by itself. *)
Section Mean.
Variables (R : realFieldType) (p : R).

(** p^{#0} (1 - p)^{#1}. *)
Definition probability (I : finType) (keep : I -> bool) : R :=
  p ^+ #|[pred x | ~~ keep x]| * (1 - p) ^+ #|[pred x | keep x]|.

Lemma probabilityE (I : finType) (keep : I -> bool) : probability keep = \prod_x if keep x then 1 - p else p.
Proof.
rewrite (bigID [pred x | keep x]) /= mulrC; congr (_ * _).
  by rewrite (eq_bigr (fun=> p)) ?prodr_const // => x /negPf ->.
by rewrite (eq_bigr (fun=> 1 - p)) ?prodr_const // => x ->.
Qed.

(** An entry is 1 with probability 1 - p: the sum over all masks is a product over their entries. *)
Lemma mean_of_entry (I : finType) (a : I) : \sum_(keep : {ffun I -> bool}) probability keep * (keep a)%:R = 1 - p.
Proof.
pose F (x : I) (b : bool) : R := (if b then 1 - p else p) * (if x == a then b%:R else 1).
transitivity (\sum_(keep : {ffun I -> bool}) \prod_x F x (keep x)).
  apply: eq_bigr => keep _; rewrite probabilityE big_split /=; congr (_ * _).
  by rewrite (bigD1 a) //= eqxx big1 ?mulr1 // => x /negPf ->.
have F_sum x : \sum_b F x b = if x == a then 1 - p else 1.
  by rewrite big_bool /F; case: eqP => _ /=; rewrite !mulr1 ?mulr0 ?addr0 ?subrK.
by rewrite -bigA_distr_bigA (bigD1 a) //= F_sum eqxx big1 ?mulr1 // => x /negPf xa; rewrite F_sum xa.
Qed.

Lemma mean_of_kept (I J : finType) (g : J -> I) (F : J -> R) : p != 1 ->
  \sum_(keep : {ffun I -> bool}) probability keep * (\sum_j (keep (g j))%:R * F j / (1 - p)) =
  \sum_j F j.
Proof.
move=> p1; under [LHS]eq_bigr => keep _ do rewrite mulr_sumr.
rewrite exchange_big /=; apply: eq_bigr => j _.
under [LHS]eq_bigr => keep _ do rewrite -mulrA mulrA.
by rewrite -mulr_suml mean_of_entry mulrC divfK // subr_eq0 eq_sym.
Qed.

End Mean.

Section Dropout.
Variables (R : realFieldType) (e : exponential R) (scale : R) (conv : convention).
Local Notation MAttn := (mattn e scale conv).
Local Notation scores := (masked_scores scale conv).
Local Notation Dropout p keep B Q K V := (with_dropout e scale conv p keep B Q K V).
Local Notation O p keep B Q K V := (with_dropout e scale conv p keep B Q K V).1.
Variables (M N dk dv : nat).
Implicit Types (p : R) (keep : 'M[bool]_(M, N)) (B : 'M[score R]_(M, N)).
Implicit Types (Q : 'M[R]_(M, dk)) (K : 'M[R]_(N, dk)) (V : 'M[R]_(N, dv)).

Lemma outE p keep B Q K V i c :
  O p keep B Q K V i c = \sum_j (keep i j)%:R * (softmax e (scores B Q K) i j * V j c) / (1 - p).
Proof. by rewrite mxE; apply: eq_bigr => j _; rewrite [dropped _ _ _ _ _]mxE mulrAC mulrA. Qed.

(** The weights of kept keys over the sum of all. *)
Lemma out_over_kept p keep B Q K V i c :
  O p keep B Q K V i c =
  (\sum_(j | keep i j) weight e (scores B Q K i j) * V j c) / (total e (scores B Q K) i * (1 - p)).
Proof.
rewrite outE -mulr_suml invfM mulrA; congr (_ / _); rewrite mulr_suml [RHS]big_mkcond; apply: eq_bigr => j _.
by rewrite [softmax _ _ _ _]mxE mulrAC; case: (keep i j); rewrite ?mul1r ?mul0r.
Qed.

(** All kept is none at p = 0, and O/(1 - p) otherwise. *)
Theorem dropout_none p B Q K V :
  O 0 (const_mx true) B Q K V = MAttn B Q K V /\ O p (const_mx true) B Q K V = (1 - p)^-1 *: MAttn B Q K V.
Proof.
have all p' : O p' (const_mx true) B Q K V = (1 - p')^-1 *: MAttn B Q K V.
  apply/matrixP => i c; rewrite outE [RHS]mxE mulrC [MAttn _ _ _ _ _ _]mxE mulr_suml.
  by apply: eq_bigr => j _; rewrite mxE mul1r.
by split=> //; rewrite all subr0 invr1 scale1r.
Qed.

(** None kept: O = 0, and lse as it was. *)
Theorem dropout_all p B Q K V :
  O p (const_mx false) B Q K V = 0 /\ forall i, (Dropout p (const_mx false) B Q K V).2 i 0 = total e (scores B Q K) i.
Proof.
split=> [|i]; last by rewrite mxE.
by apply/matrixP => i c; rewrite outE [RHS]mxE big1 // => j _; rewrite mxE !mul0r.
Qed.

(** lse does not depend on what is kept and on p ... *)
Theorem dropout_lse_unaffected p p' keep keep' B Q K V :
  (Dropout p keep B Q K V).2 = (Dropout p' keep' B Q K V).2.
Proof. by []. Qed.

(** ... and it is what the output is normalised by: e^lse (1 - p) o_i is the sum of e^s v over the kept keys. *)
Theorem dropout_lse_unaffected__normalises p keep B Q K V i c : p != 1 -> sees_a_key B i ->
  (Dropout p keep B Q K V).2 i 0 * ((1 - p) * O p keep B Q K V i c) =
  \sum_(j | keep i j) weight e (scores B Q K i j) * V j c.
Proof.
move=> p1 /(sees_masked scale conv Q K)/(total_neq0 e) T; rewrite mxE out_over_kept mulrA mulrC divfK //.
by rewrite mulf_neq0 // subr_eq0 eq_sym.
Qed.

(** Disjoint masks: O(kappa) + O(kappa') = O(kappa u kappa') ... *)
Theorem dropout_complement__disjoint p keep keep' B Q K V : (forall i j, ~~ (keep i j && keep' i j)) ->
  O p keep B Q K V + O p keep' B Q K V = O p (\matrix_(i, j) (keep i j || keep' i j)) B Q K V.
Proof.
move=> apart; apply/matrixP => i c; rewrite mxE !outE -big_split; apply: eq_bigr => j _ /=.
rewrite -!mulrDl -natrD mxE; congr (_%:R * _ / _).
by move: (apart i j); case: (keep i j); case: (keep' i j).
Qed.

(** ... and O(kappa) + O(1 - kappa) = O/(1 - p). *)
Theorem dropout_complement p keep B Q K V :
  O p keep B Q K V + O p (map_mx negb keep) B Q K V = (1 - p)^-1 *: MAttn B Q K V.
Proof.
rewrite dropout_complement__disjoint => [|i j]; last by rewrite mxE andbN.
have [_ <-] := dropout_none p B Q K V; congr (O p _ B Q K V).
by apply/matrixP => i j; rewrite !mxE orbN.
Qed.

(** The sum over all masks, each by its probability, is the output without dropout. *)
Theorem dropout_mean p B Q K V : p != 1 ->
  \sum_(keep : 'M[bool]_(M, N)) probability p (fun ij : 'I_M * 'I_N => keep ij.1 ij.2) *: O p keep B Q K V =
  MAttn B Q K V.
Proof.
move=> p1; apply/matrixP => i c; rewrite summxE [RHS]mxE.
rewrite -(mean_of_kept (fun j => (i, j)) (fun j => softmax e (scores B Q K) i j * V j c) p1).
rewrite (reindex (fun f : {ffun 'I_M * 'I_N -> bool} => \matrix_(i, j) f (i, j))); last first.
  exists (fun keep : 'M_(M, N) => [ffun ij => keep ij.1 ij.2]) => [f|keep] _.
    by apply/ffunP => -[a j]; rewrite ffunE mxE.
  by apply/matrixP => a j; rewrite mxE ffunE.
apply: eq_bigr => f _; rewrite [LHS]mxE outE; congr (_ * _); last by apply: eq_bigr => j _; rewrite mxE.
by rewrite !probabilityE; apply: eq_bigr => -[a j] _; rewrite mxE.
Qed.

(** Of one row with n keys whose values are not 0, listed by g: over the 2^n masks of these, whatever else is kept. *)
Theorem dropout_mean__row n (g : 'I_n -> 'I_N) (keep : {ffun 'I_n -> bool} -> 'M[bool]_(M, N)) p i B Q K V c :
    p != 1 -> injective g -> (forall j, j \notin codom g -> V j c = 0) -> (forall f l, keep f i (g l) = f l) ->
  \sum_(f : {ffun 'I_n -> bool}) probability p f * O p (keep f) B Q K V i c = MAttn B Q K V i c.
Proof.
move=> p1 g_inj V0 keepE; pose F j := softmax e (scores B Q K) i j * V j c.
have listed (G : 'I_N -> R) : (forall j, j \notin codom g -> G j = 0) -> \sum_j G j = \sum_l G (g l).
  move=> G0; rewrite (@sum_gather _ _ _ g 1) ?mulr1n // => j Gj.
  have /codomP[l ->] : j \in codom g by apply: contraNT Gj => /G0 ->.
  by rewrite (@eq_card _ _ (pred1 l)) ?card1 // => l'; rewrite !inE (inj_eq g_inj).
have F0 j : j \notin codom g -> F j = 0 by move=> /V0 v; rewrite /F v mulr0.
rewrite [RHS]mxE (listed F F0) -(mean_of_kept id (F \o g) p1); apply: eq_bigr => f _; rewrite outE; congr (_ * _).
rewrite (listed (fun j => (keep f i j)%:R * F j / (1 - p))) => [|j /F0 ->]; last by rewrite mulr0 mul0r.
by apply: eq_bigr => l _; rewrite keepE.
Qed.

(** A column of the mask is 0: the same as its value is, with or without the column. *)
Theorem dropout_column s p keep keep' B Q K V V' :
    (forall i, keep i s = false) -> (forall i j, j != s -> keep i j = keep' i j) ->
    row s V' = 0 -> (forall j, j != s -> row j V = row j V') ->
  Dropout p keep B Q K V = Dropout p keep' B Q K V'.
Proof.
move=> drop kk vs VV; rewrite /with_dropout; congr (_, _); apply/matrixP => i c.
rewrite -/(O p keep B Q K V) -/(O p keep' B Q K V') !outE; apply: eq_bigr => j _.
have [->|js] := eqVneq j s.
  by rewrite drop mul0r; move/rowP/(_ c): vs; rewrite !mxE => ->; rewrite !mulr0.
by rewrite (kk _ _ js); move/rowP/(_ c): (VV _ js); rewrite !mxE => ->.
Qed.

(** Row i does not depend on values that it drops ... *)
Theorem dropout_dropped_values_dead__row i p keep B Q K V V' : (forall j, keep i j -> row j V = row j V') ->
  row i (O p keep B Q K V) = row i (O p keep B Q K V').
Proof.
move=> VV; apply/rowP => c; rewrite ![row _ _ _ _]mxE !outE; apply: eq_bigr => j _.
by case kij: (keep i j); rewrite ?mul0r //; move/rowP/(_ c): (VV _ kij); rewrite !mxE => ->.
Qed.

(** ... so O and lse do not on those that all rows drop. *)
Theorem dropout_dropped_values_dead s p keep B Q K V V' :
    (forall i, keep i s = false) -> (forall j, j != s -> row j V = row j V') ->
  Dropout p keep B Q K V = Dropout p keep B Q K V'.
Proof.
move=> drop VV; rewrite /with_dropout; congr (_, _); apply/row_matrixP => i.
apply: dropout_dropped_values_dead__row => j kij; apply: VV.
by apply: contraTneq kij => ->; rewrite drop.
Qed.

(** (1 - p) O(kappa, p) is one for all p, the sum over the kept keys. *)
Theorem dropout_scale p p' keep B Q K V : p != 1 -> p' != 1 ->
  (1 - p) *: O p keep B Q K V = (1 - p') *: O p' keep B Q K V.
Proof.
have free q : q != 1 -> (1 - q) *: O q keep B Q K V = O 0 keep B Q K V.
  move=> q1; apply/matrixP => i c; rewrite mxE !outE mulr_sumr; apply: eq_bigr => j _.
  by rewrite mulrC divfK ?subr0 ?divr1 // subr_eq0 eq_sym.
by move=> p1 p1'; rewrite !free.
Qed.

End Dropout.

Section Refuted.
Variables (R : realFieldType) (e : exponential R) (scale : R) (conv : convention).
Local Notation O p keep B Q K V := (with_dropout e scale conv p keep B Q K V).1.

(** A key that all rows drop is as if it were deleted: false for every p, by two keys of which one is dropped. *)
Theorem dropout_renormalises p : p != 1 ->
  ~ (forall M N dk dv (keep : 'M[bool]_(M, N)) s B (Q : 'M_(M, dk)) (K : 'M_(N, dk)) (V : 'M_(N, dv)),
     (forall i, keep i s = false) ->
     O p keep B Q K V = O p (col' s keep) (col' s B) Q (row' s K) (row' s V)).
Proof.
move=> p1 same.
have even N j : softmax e (masked_scores scale conv (zero_mask R 1 N) (0 : 'M_(1, 1)) 0) 0 j = N%:R^-1.
  have w l : weight e (masked_scores scale conv (zero_mask R 1 N) (0 : 'M_(1, 1)) 0 0 l) = 1.
    by rewrite masked_scoresE mul0mx !mxE /=; case: conv; rewrite addr0 mulr0 exp0.
  by rewrite mxE /total w (eq_bigr (fun=> 1)) // sumr_const card_ord div1r.
have := same 1%N 2%N 1%N 1%N (\matrix_(i, j) (j != 0)) 0 (zero_mask R 1 2) 0 0 (const_mx 1).
have -> : col' 0 (zero_mask R 1 2) = zero_mask R 1 1 by apply/matrixP => i j; rewrite !mxE.
have -> : row' 0 (0 : 'M[R]_(2, 1)) = 0 by apply/matrixP => i j; rewrite !mxE.
have drop i : (\matrix_(i, j) (j != 0) : 'M[bool]_(1, 2)) i 0 = false by rewrite mxE.
move/(_ drop)/matrixP/(_ 0 0); rewrite !outE big_ord_recl !big_ord1 !even !mxE /= mul0r mul0r add0r !mul1r !mulr1.
move/(mulIf _); rewrite invr_eq0 subr_eq0 eq_sym => /(_ p1) /eqP.
by rewrite invr1 invr_eq1 pnatr_eq1.
Qed.

End Refuted.
