(** Windows: row i at position p sees the keys p - L .. p + R. Indices count from 0; an end of None has no limit. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Attest Require Import definitions basics masked causal.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** p = i. *)
Definition window_top_left (L R : option nat) M N : 'M[bool]_(M, N) :=
  \matrix_(i, j) (oapp (fun l => i <= j + l) true L && oapp (fun r => j <= i + r) true R)%N.

(** p = i + N - M. *)
Definition window_bottom_right (L R : option nat) M N : 'M[bool]_(M, N) :=
  \matrix_(i, j) (oapp (fun l => i + N <= j + l + M) true L && oapp (fun r => j + M <= i + N + r) true R)%N.

Section Window.
Variables (R : realFieldType) (e : exponential R) (scale : R) (conv : convention).
Local Notation MAttn := (mattn e scale conv).
Local Notation additive := (additive R).

(** The keys of a window alone: those of a mask that shows them. *)
Theorem window_equals_mask l r M N dk dv (Q : 'M_(M, dk)) (K : 'M_(N, dk)) (V : 'M_(N, dv)) i c :
  let w j := e (scale * (Q *m K^T) i j) in
  let in_top (j : 'I_N) := ((i <= j + l) && (j <= i + r))%N in
  let in_bottom (j : 'I_N) := ((i + N <= j + l + M) && (j + M <= i + N + r))%N in
  MAttn (additive (window_top_left (Some l) (Some r) M N)) Q K V i c =
    (\sum_(j | in_top j) w j * V j c) / (\sum_(j | in_top j) w j) /\
  MAttn (additive (window_bottom_right (Some l) (Some r) M N)) Q K V i c =
    (\sum_(j | in_bottom j) w j * V j c) / \sum_(j | in_bottom j) w j.
Proof. by move=> w in_top in_bottom; split; rewrite over_shown; congr (_ / _); apply: eq_bigl => j; rewrite mxE. Qed.

(** Q = 0 and V = I: the weights are 1/n on the n keys of the window, and 0 elsewhere. *)
Lemma even_weights M N dk (allowed : 'M[bool]_(M, N)) (K : 'M_(N, dk)) i j :
  MAttn (additive allowed) 0 K 1%:M i j = if allowed i j then (#|[pred l | allowed i l]|%:R)^-1 else 0.
Proof.
have e1 l : e (scale * ((0 : 'M_(M, dk)) *m K^T) i l) = 1 by rewrite mul0mx mxE mulr0 exp0.
rewrite over_shown.
under eq_bigr => l _ do rewrite e1 mul1r.
under [X in _ / X]eq_bigr => l _ do rewrite e1.
rewrite sumr_const; have [ij|ij] := boolP (allowed i j).
  rewrite (bigD1 j) //= big1 ?mxE ?eqxx ?addr0 ?div1r // => l /andP[_ /negPf lj].
  by rewrite mxE lj.
rewrite big1 ?mul0r // => l il; rewrite mxE; case: eqP => // lj.
by rewrite -lj il in ij.
Qed.

Theorem window_visible_set L R' M N dk (K : 'M_(N, dk)) i j :
  let W := window_top_left L R' M N in let W' := window_bottom_right L R' M N in
  MAttn (additive W) 0 K 1%:M i j = (if W i j then (#|[pred l | W i l]|%:R)^-1 else 0) /\
  MAttn (additive W') 0 K 1%:M i j = if W' i j then (#|[pred l | W' i l]|%:R)^-1 else 0.
Proof. by split; apply: even_weights. Qed.

(** Bottom-right L >= N - 1 and R >= M - 1, top-left L >= M - 1 and R >= N - 1: no window. *)
Lemma wide_top_left l r M N : (M <= l.+1)%N -> (N <= r.+1)%N ->
  window_top_left (Some l) (Some r) M N = const_mx true.
Proof.
move=> Ml Nr; apply/matrixP => i j; rewrite !mxE /=.
by rewrite -ltnS (leq_trans (leq_trans (ltn_ord i) Ml)) ?ltnS ?leq_addl //=
  -ltnS (leq_trans (leq_trans (ltn_ord j) Nr)) // ltnS leq_addl.
Qed.
Lemma wide_bottom_right l r M N : (N <= l.+1)%N -> (M <= r.+1)%N ->
  window_bottom_right (Some l) (Some r) M N = const_mx true.
Proof.
move=> Nl Mr; apply/matrixP => i j; rewrite !mxE /=; apply/andP; split.
  have iN : (i + N <= M + l)%N.
    by apply: (@leq_trans (i + l.+1)%N); rewrite ?leq_add2l // addnS -addSn leq_add2r.
  by apply: leq_trans iN _; rewrite addnC leq_add2r leq_addl.
have jM : (j + M <= N + r)%N.
  by apply: (@leq_trans (j + r.+1)%N); rewrite ?leq_add2l // addnS -addSn leq_add2r.
by apply: leq_trans jM _; rewrite -addnA leq_addl.
Qed.

Theorem window_wide l r M N dk dv (Q : 'M_(M, dk)) (K : 'M_(N, dk)) (V : 'M_(N, dv)) :
  ((M <= l.+1)%N -> (N <= r.+1)%N ->
    MAttn (additive (window_top_left (Some l) (Some r) M N)) Q K V = attention e scale Q K V) /\
  ((N <= l.+1)%N -> (M <= r.+1)%N ->
    MAttn (additive (window_bottom_right (Some l) (Some r) M N)) Q K V = attention e scale Q K V).
Proof.
by split=> ml nr; rewrite ?wide_top_left ?wide_bottom_right // masked_zero_mask__boolean.
Qed.

(** Refuted: a key that some row does not see, with Q = 0 and V = I. *)
Lemma hiding_shows M N dk (W : 'M[bool]_(M, N)) (K : 'M_(N, dk)) i j :
  ~~ W i j -> MAttn (additive W) 0 K 1%:M <> attention e scale 0 K 1%:M.
Proof.
move=> /negPf Wij /matrixP/(_ i j); rewrite -(masked_zero_mask__boolean e scale conv) !even_weights Wij mxE.
move/esym/eqP; rewrite invr_eq0 pnatr_eq0 => /eqP/card0_eq/(_ j).
by rewrite !inE mxE.
Qed.

(** L = N - 2, R = M - 2, or R = N where M > N + 1: each hides a key of some row, at the bottom right. *)
Theorem window_wide_is_sharp M N dk (K : 'M_(N.+2, dk)) (K1 : 'M_(N.+1, dk)) (k : nat) :
  MAttn (additive (window_bottom_right (Some N) None M.+1 N.+2)) 0 K 1%:M <> attention e scale 0 K 1%:M /\
  MAttn (additive (window_bottom_right None (Some M) M.+2 N.+1)) 0 K1 1%:M <> attention e scale 0 K1 1%:M /\
  MAttn (additive (window_bottom_right None (Some N.+1) (k + N.+3) N.+1)) 0 K1 1%:M <> attention e scale 0 K1 1%:M.
Proof.
have first : (0 < k + N.+3)%N by rewrite addnS.
split; [|split].
- by apply: (@hiding_shows _ _ _ _ _ ord_max 0); rewrite mxE /= add0n andbT -ltnNge addnS addnC !addnS.
- by apply: (@hiding_shows _ _ _ _ _ 0 ord_max); rewrite mxE /= -ltnNge add0n !addnS addSn.
apply: (@hiding_shows _ _ _ _ _ (Ordinal first) ord_max); rewrite mxE /= -ltnNge add0n.
by apply: (@leq_trans (N + N.+3)%N); rewrite ?leq_add2l ?leq_addl // !addnS !addSn.
Qed.

(** Causal is the window (oo, 0) of the same alignment. *)
Theorem window_causal_is_right_zero M N :
  window_top_left None (Some 0%N) M N = causal_top_left M N /\
  window_bottom_right None (Some 0%N) M N = causal_bottom_right M N.
Proof. by split; apply/matrixP => i j; rewrite !mxE /= addn0. Qed.

(** Window, mask and causal form: the keys that all of them show. *)
Theorem window_intersects L R' M N dk dv (allowed : 'M[bool]_(M, N)) (Q : 'M_(M, dk)) (K : 'M_(N, dk))
    (V : 'M_(N, dv)) i c :
  let w j := e (scale * (Q *m K^T) i j) in
  let seen j := [&& window_top_left L R' M N i j, causal_top_left M N i j & allowed i j] in
  MAttn (additive (\matrix_(i, j) [&& window_top_left L R' M N i j, causal_top_left M N i j & allowed i j])) Q K V i c =
    (\sum_(j | seen j) w j * V j c) / \sum_(j | seen j) w j.
Proof. by move=> w seen; rewrite over_shown; congr (_ / _); apply: eq_bigl => j; rewrite mxE. Qed.

(** A row does not depend on what lies outside of its window. *)
Theorem window_row_locality M N dk dv (W : 'M[bool]_(M, N)) (i : 'I_M) (Q : 'M_(M, dk)) (K K' : 'M_(N, dk))
    (V V' : 'M_(N, dv)) :
    (forall j, W i j -> row j K = row j K' /\ row j V = row j V') ->
  row i (MAttn (additive W) Q K V) = row i (MAttn (additive W) Q K' V').
Proof. by move=> KV; apply: mattn_local => // j; rewrite additive_hidden; apply: KV. Qed.

(** Row i is attention of one query over the keys of its window alone, g listing them. *)
Theorem window_slice M N n dk dv (W : 'M[bool]_(M, N)) (i : 'I_M) (g : 'I_n -> 'I_N) (Q : 'M_(M, dk))
    (K : 'M_(N, dk)) (V : 'M_(N, dv)) :
    injective g -> (forall j, W i j = (j \in codom g)) ->
  row i (MAttn (additive W) Q K V) = attention e scale (row i Q) (rowsub g K) (rowsub g V).
Proof.
move=> g_inj Wg; pose W1 : 'M[bool]_(1, N) := \matrix_(_, j) W i j.
have -> : row i (MAttn (additive W) Q K V) = MAttn (additive W1) (row i Q) K V.
  rewrite -[RHS](row_id 0); apply: mattn_local => //; last by rewrite row_id.
  by apply/rowP => j; rewrite !mxE.
rewrite -[LHS](@mattn_gather_inj _ e scale conv _ _ _ _ _ g) //; last first.
  by move=> i' j; rewrite -Wg !mxE => /negPf ->.
rewrite -(masked_zero_mask__boolean e scale conv); apply: eq_mattn => //.
by apply/matrixP => i' l; rewrite !mxE Wg codom_f.
Qed.

(** Keys that come before every row's window may be deleted, counted from the bottom right: n of them ... *)
Theorem window_eviction l R' M n N dk dv (Q : 'M_(M, dk)) (K' : 'M_(n, dk)) (K : 'M_(N, dk)) (V' : 'M_(n, dv))
    (V : 'M_(N, dv)) :
    (l + M <= N)%N ->
  MAttn (additive (window_bottom_right (Some l) R' M (n + N))) Q (col_mx K' K) (col_mx V' V) =
  MAttn (additive (window_bottom_right (Some l) R' M N)) Q K V.
Proof.
move=> lN; set B := additive (window_bottom_right _ _ _ (n + N)).
have downE d (A' : 'M[R]_(n, d)) (A : 'M_(N, d)) : rowsub (@rshift n N) (col_mx A' A) = A.
  by apply/matrixP => i j; rewrite mxE col_mxEd.
rewrite -[LHS](@mattn_gather_inj _ e scale conv _ _ _ _ _ (@rshift n N)); first 1 last.
- exact: rshift_inj.
- move=> i j; case: (split_ordP j) => k ->; rewrite ?codom_f // => _.
  rewrite !mxE /=; case: leqP => //= H; exfalso; move: H; apply/negP; rewrite -ltnNge.
  rewrite -addnA; apply: (@leq_trans (n + N)%N); last exact: leq_addl.
  by rewrite -addSn leq_add.
rewrite !downE; apply: eq_mattn => //; apply/matrixP => i j; rewrite !mxE /=.
congr (if _ && _ then _ else _).
  by rewrite addnCA -!addnA leq_add2l.
by case: (R') => //= r; rewrite -addnA [(i + (n + N))%N]addnCA -addnA leq_add2l.
Qed.

(** ... and those behind, counted from the top left. *)
Theorem window_tail L r M N n dk dv (Q : 'M_(M, dk)) (K : 'M_(N, dk)) (K' : 'M_(n, dk)) (V : 'M_(N, dv))
    (V' : 'M_(n, dv)) :
    (M + r <= N)%N ->
  MAttn (additive (window_top_left L (Some r) M (N + n))) Q (col_mx K K') (col_mx V V') =
  MAttn (additive (window_top_left L (Some r) M N)) Q K V.
Proof.
move=> rN; set B := additive (window_top_left _ _ _ (N + n)).
have upE d (A : 'M[R]_(N, d)) (A' : 'M_(n, d)) : rowsub (@lshift N n) (col_mx A A') = A.
  by apply/matrixP => i j; rewrite mxE col_mxEu.
rewrite -[LHS](@mattn_gather_inj _ e scale conv _ _ _ _ _ (@lshift N n)); first 1 last.
- exact: lshift_inj.
- move=> i j; case: (split_ordP j) => k ->; rewrite ?codom_f // => _.
  rewrite !mxE /= andbC; case: leqP => //= H; exfalso; move: H; apply/negP; rewrite -ltnNge.
  by apply: (@leq_trans N); [apply: leq_trans rN; rewrite ltn_add2r | apply: leq_addr].
by rewrite !upE; apply: eq_mattn => //; apply/matrixP => i j; rewrite !mxE.
Qed.

(** M = N: both alignments are one. *)
Theorem window_alignments_agree L R' M : window_top_left L R' M M = window_bottom_right L R' M M.
Proof.
apply/matrixP => i j; rewrite !mxE; congr (_ && _).
  by case: L => //= l; rewrite leq_add2r.
by case: R' => //= r; rewrite addnAC leq_add2r.
Qed.

(** L = R = 0 and M = N: o_i = v_i. *)
Theorem window_zero_zero M dk dv (Q : 'M_(M, dk)) (K : 'M_(M, dk)) (V : 'M_(M, dv)) :
  MAttn (additive (window_top_left (Some 0%N) (Some 0%N) M M)) Q K V = V.
Proof.
apply/matrixP => i c; rewrite over_shown.
have own : (fun j => window_top_left (Some 0%N) (Some 0%N) M M i j) =1 pred1 i.
  by move=> j; rewrite mxE /= !addn0 -eqn_leq eq_sym.
by rewrite !(eq_bigl _ _ own) !big_pred1_eq mulrAC divff ?mul1r // exp_neq0.
Qed.

(** One query at the bottom right: attention over the last L + 1 keys. *)
Theorem window_decode l n dk dv (Q : 'M_(1, dk)) (K' : 'M_(n, dk)) (K : 'M_(l.+1, dk)) (V' : 'M_(n, dv))
    (V : 'M_(l.+1, dv)) :
  MAttn (additive (window_bottom_right (Some l) None 1 (n + l.+1))) Q (col_mx K' K) (col_mx V' V) =
  attention e scale Q K V.
Proof.
rewrite window_eviction ?addn1 // -(masked_zero_mask__boolean e scale conv); apply: eq_mattn => //.
apply/matrixP => i j; rewrite !mxE /= andbT; case: ltnP => //; rewrite ltnNge => /negP[].
by rewrite (ord1 i) add0n -addnA addn1 leq_addl.
Qed.

(** The sum of e^s over the keys of a window does not fall as an end moves away. *)
Theorem window_lse_monotone l l' r r' M N dk (Q : 'M_(M, dk)) (K : 'M_(N, dk)) i :
    (l <= l')%N -> (r <= r')%N ->
  total e (masked_scores scale conv (additive (window_top_left (Some l) (Some r) M N)) Q K) i <=
    total e (masked_scores scale conv (additive (window_top_left (Some l') (Some r') M N)) Q K) i /\
  total e (masked_scores scale conv (additive (window_bottom_right (Some l) (Some r) M N)) Q K) i <=
    total e (masked_scores scale conv (additive (window_bottom_right (Some l') (Some r') M N)) Q K) i.
Proof.
move=> ll' rr'; have monotone (W W' : 'M[bool]_(M, N)) : (forall j, W i j -> W' i j) ->
    total e (masked_scores scale conv (additive W) Q K) i <= total e (masked_scores scale conv (additive W') Q K) i.
  move=> WW'; apply: ler_sum => j _; rewrite !weight_shown.
  case: (W i j) (WW' j) => [-> //|_]; case: (W' i j) => //; exact: ltW (exp_gt0 _ _).
split; apply: monotone => j; rewrite !mxE /= => /andP[a b]; apply/andP; split.
- by apply: leq_trans a _; rewrite leq_add2l.
- by apply: leq_trans b _; rewrite leq_add2l.
- by apply: leq_trans a _; rewrite leq_add2r leq_add2l.
- by apply: leq_trans b _; rewrite leq_add2l.
Qed.

End Window.
