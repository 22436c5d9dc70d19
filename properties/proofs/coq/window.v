(** Windows: row i at position p sees the keys p - L .. p + R. Indices count from 0; an end of None has no limit. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Attest Require Import definitions basics masked causal shown.

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
Theorem window_visible_set L R' M N dk (K : 'M_(N, dk)) i j :
  let W := window_top_left L R' M N in let W' := window_bottom_right L R' M N in
  MAttn (additive W) 0 K 1%:M i j = (if W i j then (#|[pred l | W i l]|%:R)^-1 else 0) /\
  MAttn (additive W') 0 K 1%:M i j = if W' i j then (#|[pred l | W' i l]|%:R)^-1 else 0.
Proof. by split; apply: even_weights. Qed.

(** Bottom-right L >= N - 1 and R >= M - 1, top-left L >= M - 1 and R >= N - 1: no window. *)
Lemma wide_top_left l r M N i j : (M <= l.+1)%N -> (N <= r.+1)%N -> window_top_left (Some l) (Some r) M N i j.
Proof.
move=> Ml Nr; rewrite !mxE /=.
by rewrite -ltnS (leq_trans (leq_trans (ltn_ord i) Ml)) ?ltnS ?leq_addl //=
  -ltnS (leq_trans (leq_trans (ltn_ord j) Nr)) // ltnS leq_addl.
Qed.
Lemma wide_bottom_right l r M N i j : (N <= l.+1)%N -> (M <= r.+1)%N -> window_bottom_right (Some l) (Some r) M N i j.
Proof.
move=> Nl Mr; rewrite !mxE /=; apply/andP; split.
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
Proof. by split=> ml nr; apply: all_shown => i j; rewrite ?wide_top_left ?wide_bottom_right. Qed.

(** Refuted, with Q = 0 and V = I: L = N - 2, R = M - 2, or R = N where M > N + 1. Each hides a key of some row, at the
    bottom right. *)
Theorem window_wide_is_sharp M N dk (K : 'M_(N.+2, dk)) (K1 : 'M_(N.+1, dk)) (k : nat) :
  MAttn (additive (window_bottom_right (Some N) None M.+1 N.+2)) 0 K 1%:M <> attention e scale 0 K 1%:M /\
  MAttn (additive (window_bottom_right None (Some M) M.+2 N.+1)) 0 K1 1%:M <> attention e scale 0 K1 1%:M /\
  MAttn (additive (window_bottom_right None (Some N.+1) (k + N.+3) N.+1)) 0 K1 1%:M <> attention e scale 0 K1 1%:M.
Proof.
have first : (0 < k + N.+3)%N by rewrite addnS.
split; [|split].
- by apply: (hiding_shows (i := ord_max) (j := 0)); rewrite mxE /= add0n andbT -ltnNge addnS addnC !addnS.
- by apply: (hiding_shows (i := 0) (j := ord_max)); rewrite mxE /= -ltnNge add0n !addnS addSn.
apply: (hiding_shows (i := Ordinal first) (j := ord_max)); rewrite mxE /= -ltnNge add0n.
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
  row i (MAttn (additive W) Q K V) = row i (MAttn (additive W) Q K' V') /\
  total e (masked_scores scale conv (additive W) Q K) i = total e (masked_scores scale conv (additive W) Q K') i.
Proof. exact: shown_local. Qed.

(** Row i is attention of one query over the keys of its window alone, g listing them. *)
Theorem window_slice M N n dk dv (W : 'M[bool]_(M, N)) (i : 'I_M) (g : 'I_n -> 'I_N) (Q : 'M_(M, dk))
    (K : 'M_(N, dk)) (V : 'M_(N, dv)) :
    injective g -> (forall j, W i j = (j \in codom g)) ->
  row i (MAttn (additive W) Q K V) = attention e scale (row i Q) (rowsub g K) (rowsub g V).
Proof. exact: row_alone. Qed.

(** Keys that come before every row's window may be deleted, counted from the bottom right: n of them ... *)
Theorem window_eviction l R' M n N dk dv (Q : 'M_(M, dk)) (K' : 'M_(n, dk)) (K : 'M_(N, dk)) (V' : 'M_(n, dv))
    (V : 'M_(N, dv)) :
    (l + M <= N)%N ->
  MAttn (additive (window_bottom_right (Some l) R' M (n + N))) Q (col_mx K' K) (col_mx V' V) =
  MAttn (additive (window_bottom_right (Some l) R' M N)) Q K V.
Proof.
move=> lN; rewrite front_deleted => [|i j]; last first.
  rewrite mxE negb_and /= -ltnNge -addnA; apply/orP; left; apply: (@leq_trans (n + N)%N); last exact: leq_addl.
  by rewrite -addSn leq_add.
apply: eq_mattn => //; apply/matrixP => i j; rewrite !mxE /=; congr (if _ && _ then _ else _).
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
move=> rN; rewrite tail_deleted => [|i j]; last first.
  rewrite mxE negb_and /= orbC -ltnNge; apply/orP; left.
  by apply: (@leq_trans N); [apply: leq_trans rN; rewrite ltn_add2r | apply: leq_addr].
by apply: eq_mattn => //; apply/matrixP => i j; rewrite !mxE.
Qed.

(** M = N: both alignments are one. *)
Theorem window_alignments_agree L R' M : window_top_left L R' M M = window_bottom_right L R' M M.
Proof.
apply/matrixP => i j; rewrite !mxE; congr (_ && _).
  by case: L => //= l; rewrite leq_add2r.
by case: R' => //= r; rewrite addnAC leq_add2r.
Qed.

(** L = R = 0 and M = N: o_i = v_i, and the sum of e^s is that of the row's own score. *)
Theorem window_zero_zero M dk dv (Q : 'M_(M, dk)) (K : 'M_(M, dk)) (V : 'M_(M, dv)) i :
  let W := window_top_left (Some 0%N) (Some 0%N) M M in
  row i (MAttn (additive W) Q K V) = row i V /\
  total e (masked_scores scale conv (additive W) Q K) i = e (scale * (Q *m K^T) i i).
Proof. by move=> W; apply: one_shown => j; rewrite mxE /= !addn0 -eqn_leq eq_sym. Qed.

(** One query at the bottom right: attention over the last L + 1 keys. *)
Theorem window_decode l n dk dv (Q : 'M_(1, dk)) (K' : 'M_(n, dk)) (K : 'M_(l.+1, dk)) (V' : 'M_(n, dv))
    (V : 'M_(l.+1, dv)) :
  MAttn (additive (window_bottom_right (Some l) None 1 (n + l.+1))) Q (col_mx K' K) (col_mx V' V) =
  attention e scale Q K V.
Proof.
rewrite window_eviction ?addn1 //; apply: all_shown => i j; rewrite mxE /= andbT.
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
move=> ll' rr'; split; apply: shown_monotone => j; rewrite !mxE /= => /andP[a b]; apply/andP; split.
- by apply: leq_trans a _; rewrite leq_add2l.
- by apply: leq_trans b _; rewrite leq_add2l.
- by apply: leq_trans a _; rewrite leq_add2r leq_add2l.
- by apply: leq_trans b _; rewrite leq_add2l.
Qed.

End Window.
