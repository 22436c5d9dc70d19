(** Chunks: the C keys from each multiple of C on. Row i at position p sees the keys j with floor(j/C) = floor(p/C), and
    none where p < 0. Indices count from 0. What holds for any positions holds by both alignments. *)

From Coq Require Import Lia.
From mathcomp Require Import all_ssreflect all_algebra.
From Attest Require Import definitions basics masked causal shown window.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Implicit Types C : nat.

Definition chunk C M N (p : 'I_M -> int) : 'M[bool]_(M, N) := \matrix_(i, j) (j%:Z %/ C == p i %/ C)%Z.

Notation chunk_top_left C M N := (chunk C N (@position_top_left M)).
Notation chunk_bottom_right C M N := (chunk C N (@position_bottom_right M N)).

Section Positions.
Variables (C M N : nat).
Implicit Types (p : 'I_M -> int) (i : 'I_M) (j : 'I_N).

(** C = 0 is no chunks. *)
Lemma chunk_none p i j : chunk 0 N p i j.
Proof. by rewrite mxE !divz0. Qed.

(** In numbers that are not negative. *)
Lemma chunk_at p i j (P : nat) : p i = P -> chunk C N p i j = (j %/ C == P %/ C)%N.
Proof. by move=> pP; rewrite mxE pP !divz_nat eqz_nat. Qed.

(** Before the first key no chunk has one. *)
Lemma chunk_before p i j : (0 < C)%N -> p i < 0 -> ~~ chunk C N p i j.
Proof.
move=> C_gt0 p_lt0; rewrite mxE divz_nat eq_sym; apply: contraTN p_lt0 => /eqP pj.
by rewrite -leNgt -(@divz_ge0 _ C) // pj.
Qed.

(** Both alignments so. *)
Lemma chunk_top_leftE i j : chunk_top_left C M N i j = (j %/ C == i %/ C)%N.
Proof. exact: chunk_at. Qed.

Lemma bottom_right_at i : (M <= i + N)%N -> position_bottom_right N i = (i + N - M)%N.
Proof. by move=> MN; rewrite /position_bottom_right subzn. Qed.

Lemma bottom_right_before i : (i + N < M)%N -> position_bottom_right N i < 0.
Proof. by move=> MN; rewrite subr_lt0 ltz_nat. Qed.

Lemma chunk_bottom_rightE i j :
  (0 < C)%N -> chunk_bottom_right C M N i j = (M <= i + N)%N && (j %/ C == (i + N - M) %/ C)%N.
Proof.
move=> C_gt0; have [MN|MN] := leqP M (i + N); first exact/chunk_at/bottom_right_at.
exact/negbTE/chunk_before/bottom_right_before.
Qed.

End Positions.

(** The keys of a chunk are consecutive. *)
Lemma in_chunk (C c j : nat) : (0 < C)%N -> (j %/ C == c)%N = (c * C <= j < c * C + C)%N.
Proof. by move=> C_gt0; rewrite eqn_leq leq_divRL // -ltnS ltn_divLR // mulSn addnC andbC. Qed.

(** Those of N that are there. *)
Lemma keys_of_chunk (C c N j : nat) :
  (0 < C)%N -> (j < N)%N -> (j %/ C == c)%N = (c * C <= j < c * C + minn C (N - c * C))%N.
Proof.
move=> C_gt0 jN; rewrite in_chunk //; have [bj|//] := leqP (c * C) j.
by rewrite addn_minr subnKC ?leq_min ?jN ?andbT // (leq_trans bj) // ltnW.
Qed.

(** What lists the indices from b on. *)
Lemma consecutive b n N (g : 'I_n -> 'I_N) :
  (forall k, g k = b + k :> nat)%N -> injective g /\ forall j, (j \in codom g) = (b <= j < b + n)%N.
Proof.
move=> gE; split=> [k l /(congr1 val)|j]; first by rewrite /= !gE => /addnI/val_inj.
apply/codomP/andP => [[k ->]|[bj jb]]; first by rewrite gE leq_addr ltn_add2l.
have jn : (j - b < n)%N by rewrite ltn_subLR.
by exists (Ordinal jn); apply: val_inj; rewrite /= gE subnKC.
Qed.

Section Chunk.
Variables (R : realFieldType) (e : exponential R) (scale : R) (conv : convention).
Local Notation MAttn := (mattn e scale conv).
Local Notation additive := (additive R).
Local Notation lse_of A Q K := (total e (masked_scores scale conv (additive A) Q K)).

(** Chunks are a mask that shows a row the keys of its own. *)
Theorem chunk_equals_mask C M N dk dv (Q : 'M_(M, dk)) (K : 'M_(N, dk)) (V : 'M_(N, dv)) i c : (0 < C)%N ->
  let w j := e (scale * (Q *m K^T) i j) in
  let in_top (j : 'I_N) := (j %/ C == i %/ C)%N in
  let in_bottom (j : 'I_N) := ((M <= i + N) && (j %/ C == (i + N - M) %/ C))%N in
  MAttn (additive (chunk_top_left C M N)) Q K V i c =
    (\sum_(j | in_top j) w j * V j c) / (\sum_(j | in_top j) w j) /\
  MAttn (additive (chunk_bottom_right C M N)) Q K V i c =
    (\sum_(j | in_bottom j) w j * V j c) / \sum_(j | in_bottom j) w j.
Proof.
move=> C_gt0 w in_top in_bottom; split; rewrite over_shown.
  by congr (_ / _); apply: eq_bigl => j; rewrite chunk_top_leftE.
by congr (_ / _); apply: eq_bigl => j; rewrite chunk_bottom_rightE.
Qed.

(** Q = 0 and V = I: the weights are 1/n on the n keys of the chunk, and 0 elsewhere. *)
Theorem chunk_visible_set C M N dk (p : 'I_M -> int) (K : 'M_(N, dk)) i j :
  let W := chunk C N p in MAttn (additive W) 0 K 1%:M i j = if W i j then (#|[pred l | W i l]|%:R)^-1 else 0.
Proof. exact: even_weights. Qed.

(** N <= C and 0 <= p < C for every row: no chunks. *)
Theorem chunk_wide C M N dk dv (p : 'I_M -> int) (Q : 'M_(M, dk)) (K : 'M_(N, dk)) (V : 'M_(N, dv)) :
    (N <= C)%N -> (forall i, 0 <= p i < C) ->
  MAttn (additive (chunk C N p)) Q K V = attention e scale Q K V.
Proof.
move=> NC pC; apply: all_shown => i j; rewrite mxE divz_nat divn_small ?(leq_trans (ltn_ord j)) //.
by rewrite divz_small // ?pC.
Qed.

(** Refuted, with Q = 0 and V = I: C = N - 1 hides all keys but its own from the last row, at the bottom right. *)
Theorem chunk_wide_is_sharp M N dk (K : 'M_(N.+2, dk)) :
  MAttn (additive (chunk_bottom_right N.+1 M.+1 N.+2)) 0 K 1%:M <> attention e scale 0 K 1%:M.
Proof.
apply: (hiding_shows (i := ord_max) (j := 0)); rewrite chunk_bottom_rightE // negb_and; apply/orP; right.
by rewrite div0n /= addnS -addSn addKn divnn.
Qed.

(** Refuted, with Q = 0 and V = I: beside a causal form C is the window (C - 1, no limit). The row at p = C sees C keys
    of the window, and one of its chunk. *)
Theorem chunk_is_no_window C M N dk (K : 'M_(N, dk)) :
  ((1 < C < M)%N -> (1 < N)%N ->
    MAttn (additive (\matrix_(i, j) (chunk_top_left C M N i j && causal_top_left M N i j))) 0 K 1%:M <>
    MAttn (additive (\matrix_(i, j) (window_top_left (Some C.-1) None M N i j && causal_top_left M N i j))) 0 K 1%:M) /\
  ((1 < C < N)%N -> (N - C <= M)%N ->
    MAttn (additive (\matrix_(i, j) (chunk_bottom_right C M N i j && causal_bottom_right M N i j))) 0 K 1%:M <>
    MAttn (additive (\matrix_(i, j) (window_bottom_right (Some C.-1) None M N i j && causal_bottom_right M N i j))) 0 K
      1%:M).
Proof.
split=> [/andP[C_gt1 CM] N_gt1|/andP[C_gt1 CN] NCM].
  apply: (@hiding_tells _ _ _ _ _ _ _ _ _ _ (Ordinal CM) (Ordinal N_gt1)); rewrite mxE ?chunk_top_leftE ?mxE /=.
    by rewrite divn_small // divnn (ltnW C_gt1).
  by rewrite add1n (ltn_predK C_gt1) leqnn ltnW.
have NMC : (N <= M + C)%N by rewrite addnC -leq_subLR.
have row : (M + C - N < M)%N by rewrite ltn_subLR // addnC ltn_add2r.
apply: (@hiding_tells _ _ _ _ _ _ _ _ _ _ (Ordinal row) (Ordinal (ltn_trans C_gt1 CN)));
  rewrite mxE ?chunk_bottom_rightE ?(ltnW C_gt1) // ?mxE /= subnK //.
  by rewrite addKn divn_small // divnn (ltnW C_gt1) andbF.
by rewrite !add1n (ltn_predK C_gt1) addnC leqnn -[M.+1]add1n leq_add2r ltnW.
Qed.

(** Chunks beside a window, a causal form and a mask: the keys that all of them show. *)
Theorem chunk_intersects C M N dk dv (p : 'I_M -> int) (window causal allowed : 'M[bool]_(M, N)) (Q : 'M_(M, dk))
    (K : 'M_(N, dk)) (V : 'M_(N, dv)) i c :
  let w j := e (scale * (Q *m K^T) i j) in
  let seen (j : 'I_N) := [&& (j%:Z %/ C == p i %/ C)%Z, window i j, causal i j & allowed i j] in
  MAttn (additive (\matrix_(i, j) [&& chunk C N p i j, window i j, causal i j & allowed i j])) Q K V i c =
    (\sum_(j | seen j) w j * V j c) / \sum_(j | seen j) w j.
Proof. by move=> w seen; rewrite over_shown; congr (_ / _); apply: eq_bigl => j; rewrite !mxE. Qed.

(** A row does not depend on the keys and values of other chunks. *)
Theorem chunk_row_locality C M N dk dv (p : 'I_M -> int) (i : 'I_M) (Q : 'M_(M, dk)) (K K' : 'M_(N, dk))
    (V V' : 'M_(N, dv)) :
    (forall j : 'I_N, (j%:Z %/ C)%Z = (p i %/ C)%Z -> row j K = row j K' /\ row j V = row j V') ->
  row i (MAttn (additive (chunk C N p)) Q K V) = row i (MAttn (additive (chunk C N p)) Q K' V') /\
  lse_of (chunk C N p) Q K i = lse_of (chunk C N p) Q K' i.
Proof. by move=> KV; apply: shown_local => j; rewrite mxE => /eqP/KV. Qed.

(** Row i is attention of one query over the keys of its chunk alone, g listing them ... *)
Theorem chunk_slice C M N n dk dv (p : 'I_M -> int) (i : 'I_M) (g : 'I_n -> 'I_N) (Q : 'M_(M, dk)) (K : 'M_(N, dk))
    (V : 'M_(N, dv)) :
    injective g -> (forall j : 'I_N, ((j%:Z %/ C)%Z == (p i %/ C)%Z) = (j \in codom g)) ->
  row i (MAttn (additive (chunk C N p)) Q K V) = attention e scale (row i Q) (rowsub g K) (rowsub g V).
Proof. by move=> g_inj pg; apply: row_alone => // j; rewrite mxE pg. Qed.

(** ... which are the C from floor(p/C) C on. *)
Theorem chunk_slice__keys C M N (p : 'I_M -> int) (i : 'I_M) (j : 'I_N) (P : nat) :
  (0 < C)%N -> p i = P -> chunk C N p i j = (P %/ C * C <= j < P %/ C * C + C)%N.
Proof. by move=> C_gt0 /chunk_at->; apply: in_chunk. Qed.

(** Rows f of chunk c and its keys g, n from c C on, are alone with what else hides keys. *)
Lemma chunk_alone C c M N m dk dv (p : 'I_M -> int) (f : 'I_m -> 'I_M) (g : 'I_(minn C (N - c * C)) -> 'I_N)
    (inner : 'I_M -> 'I_N -> bool) (Q : 'M_(M, dk)) (K : 'M_(N, dk)) (V : 'M_(N, dv)) :
    (0 < C)%N -> (forall k, (p (f k) %/ C)%Z = c) -> (forall k, g k = c * C + k :> nat)%N ->
  rowsub f (MAttn (additive (\matrix_(i, j) (chunk C N p i j && inner i j))) Q K V) =
  MAttn (additive (\matrix_(k, j) inner (f k) (g j))) (rowsub f Q) (rowsub g K) (rowsub g V).
Proof.
move=> C_gt0 fc gE; have [g_inj gP] := consecutive gE.
have own k j : chunk C N p (f k) j = (j \in codom g).
  by rewrite mxE fc divz_nat eqz_nat (keys_of_chunk _ C_gt0 (ltn_ord j)) gP.
rewrite (part_alone _ _ _ _ _ _ g_inj) => [|k j]; last by rewrite mxE own => /andP[].
by apply: eq_mattn => //; congr (additive _); apply/matrixP => k j; rewrite 2![LHS]mxE [RHS]mxE own codom_f.
Qed.

(** The rows f and the keys g of chunk c, which begins at b = c C, are a problem of their own: in the same alignment,
    with the same window, of which a causal form is one, and with their part of a mask ... *)
Theorem chunk_split C c L R' M N dk dv (allowed : 'M[bool]_(M, N)) (Q : 'M_(M, dk)) (K : 'M_(N, dk)) (V : 'M_(N, dv)) :
    (0 < C)%N ->
  let b := (c * C)%N in let n := minn C (N - b) in let m := minn C (M - b) in
  forall (f : 'I_m -> 'I_M) (g : 'I_n -> 'I_N),
    (forall k, f k = b + k :> nat)%N -> (forall k, g k = b + k :> nat)%N ->
  let W := window_top_left L R' in
  rowsub f (MAttn (additive (\matrix_(i, j) (chunk_top_left C M N i j && (W M N i j && allowed i j)))) Q K V) =
  MAttn (additive (\matrix_(k, j) (W m n k j && allowed (f k) (g j)))) (rowsub f Q) (rowsub g K) (rowsub g V).
Proof.
move=> C_gt0 b n m f g fE gE W; rewrite (@chunk_alone _ c _ _ _ _ _ _ f g (fun i j => W M N i j && allowed i j)) //.
  apply: eq_mattn => //; congr (additive _); apply/matrixP => k j; rewrite !mxE fE gE; congr (_ && _ && _).
    by case: (L) => //= l; rewrite -addnA leq_add2l.
  by case: (R') => //= r; rewrite -addnA leq_add2l.
move=> k; rewrite /position_top_left fE divz_nat divnMDl // divn_small ?addn0 //.
exact: leq_trans (ltn_ord k) (geq_minl _ _).
Qed.

(** ... and so they are by the other alignment, by which the last row is at the last key ... *)
Theorem chunk_split__bottom_right C c L R' M N dk dv (allowed : 'M[bool]_(M, N)) (Q : 'M_(M, dk)) (K : 'M_(N, dk))
    (V : 'M_(N, dv)) :
    (0 < C)%N ->
  let b := (c * C)%N in let n := minn C (N - b) in let a := (b + M - N)%N in let m := (b + n + M - N - a)%N in
  forall (f : 'I_m -> 'I_M) (g : 'I_n -> 'I_N),
    (forall k, f k = a + k :> nat)%N -> (forall k, g k = b + k :> nat)%N ->
  let W := window_bottom_right L R' in
  rowsub f (MAttn (additive (\matrix_(i, j) (chunk_bottom_right C M N i j && (W M N i j && allowed i j)))) Q K V) =
  MAttn (additive (\matrix_(k, j) (W m n k j && allowed (f k) (g j)))) (rowsub f Q) (rowsub g K) (rowsub g V).
Proof.
move=> C_gt0 b n a m f g fE gE W; have nC : (n <= C)%N by apply: geq_minl.
have at_row (k : 'I_m) : (f k + N = b + (k + n - m) + M)%N /\ (m <= k + n)%N /\ (k + n - m < C)%N.
  rewrite fE; move: (nat_of_ord k) (ltn_ord k) nC => x; rewrite /m /a; move: (n) => y /ssrnat.ltP xm /ssrnat.leP yC.
  move: xm yC; rewrite -!plusE -!minusE => xm yC; split; first lia.
  by split; [apply/ssrnat.leP|apply/ssrnat.ltP]; rewrite -?plusE -?minusE; lia.
rewrite (@chunk_alone _ c _ _ _ _ _ _ f g (fun i j => W M N i j && allowed i j)) //.
  apply: eq_mattn => //; congr (additive _); apply/matrixP => k j; rewrite !mxE gE; have [fN [mk _]] := at_row k.
  rewrite fN; move: (k + n - m)%N (subnK mk) => P <-; congr (_ && _ && _).
    by case: (L) => //= l; rewrite !leq_add2r -addnA leq_add2l.
  by case: (R') => //= r; rewrite ![(_ + _ + r)%N]addnAC !leq_add2r -addnA leq_add2l addnC.
move=> k; have [fN [mk kC]] := at_row k; rewrite bottom_right_at fN ?leq_addl // addnK divz_nat.
by rewrite divnMDl // divn_small ?addn0.
Qed.

(** ... these being all keys of the chunk, and all its rows by either alignment. *)
Theorem chunk_split__all C c M N (i : 'I_M) (j : 'I_N) :
    (0 < C)%N ->
  let b := (c * C)%N in let n := minn C (N - b) in
  let m := minn C (M - b) in let a := (b + M - N)%N in let m' := (b + n + M - N - a)%N in
  ((j%:Z %/ C)%Z == c) = (b <= j < b + n)%N /\
  ((position_top_left i %/ C)%Z == c) = (b <= i < b + m)%N /\
  ((position_bottom_right N i %/ C)%Z == c) = (a <= i < a + m')%N.
Proof.
move=> C_gt0 b n m a m'; rewrite /position_top_left !divz_nat !eqz_nat.
split; [|split]; try exact: keys_of_chunk C_gt0 (ltn_ord _).
have [MN|iN] := leqP M (i + N); last first.
  have p_lt0 : (position_bottom_right N i %/ C)%Z < 0 by rewrite ltz_divLR // mul0r bottom_right_before.
  rewrite (lt_eqF (lt_le_trans p_lt0 _)) //; apply/esym/negbTE/nandP; left.
  rewrite -ltnNge; apply/ssrnat.ltP; move: iN => /ssrnat.ltP; rewrite /a -!plusE -!minusE; lia.
have PN : (i + N - M < N)%N by rewrite ltn_subLR // ltn_add2r.
rewrite bottom_right_at // divz_nat eqz_nat (keys_of_chunk _ C_gt0 PN) -/b -/n /m' /a.
move: (ltn_ord i) MN => /ssrnat.ltP iM /ssrnat.leP; move: iM; rewrite -!plusE -!minusE => iM MN.
by apply/andP/andP => -[/ssrnat.leP l /ssrnat.ltP h]; move: l h; rewrite -?plusE -?minusE => l h; split;
  [apply/ssrnat.leP|apply/ssrnat.ltP|apply/ssrnat.leP|apply/ssrnat.ltP]; rewrite -?plusE -?minusE; lia.
Qed.

(** Bottom right: n keys in front, whole chunks that no row's own is among, may be deleted ... *)
Theorem chunk_eviction C M n N dk dv (Q : 'M_(M, dk)) (K' : 'M_(n, dk)) (K : 'M_(N, dk)) (V' : 'M_(n, dv))
    (V : 'M_(N, dv)) :
    (0 < C)%N -> (C %| n)%N -> (M <= N)%N ->
  MAttn (additive (chunk_bottom_right C M (n + N))) Q (col_mx K' K) (col_mx V' V) =
  MAttn (additive (chunk_bottom_right C M N)) Q K V.
Proof.
move=> C_gt0 /dvdnP[q nE] MN; have later m : ((n + m) %/ C = q + m %/ C)%N by rewrite nE divnMDl.
have at_row (i : 'I_M) : ((i + (n + N) - M) %/ C = q + (i + N - M) %/ C)%N.
  by rewrite addnCA -addnBA ?later // (leq_trans MN) ?leq_addl.
rewrite front_deleted => [|i j]; rewrite ?chunk_bottom_rightE // ?at_row.
  apply: eq_mattn => //; congr (additive _); apply/matrixP => i j; rewrite mxE !chunk_bottom_rightE // at_row.
  by rewrite later eqn_add2l !(leq_trans MN) // ?leq_addl // addnA leq_addl.
by rewrite negb_and ltn_eqF ?orbT //= (leq_trans _ (leq_addr _ _)) // ltn_divLR // -nE.
Qed.

(** ... and top left those behind the chunk of every row. *)
Theorem chunk_tail C M N n dk dv (Q : 'M_(M, dk)) (K : 'M_(N, dk)) (K' : 'M_(n, dk)) (V : 'M_(N, dv))
    (V' : 'M_(n, dv)) :
    (forall i : 'I_M, i %/ C < N %/ C)%N ->
  MAttn (additive (chunk_top_left C M (N + n))) Q (col_mx K K') (col_mx V V') =
  MAttn (additive (chunk_top_left C M N)) Q K V.
Proof.
move=> behind; rewrite tail_deleted => [|i j]; last first.
  by rewrite chunk_top_leftE eq_sym ltn_eqF //= (leq_trans (behind i)) // leq_div2r ?leq_addr.
by apply: eq_mattn => //; congr (additive _); apply/matrixP => i j; rewrite mxE !chunk_top_leftE.
Qed.

(** One query at the bottom right: attention over the last (N - 1) mod C + 1 keys, where l is (N - 1) mod C. *)
Theorem chunk_decode C l n dk dv (Q : 'M_(1, dk)) (K' : 'M_(n, dk)) (K : 'M_(l.+1, dk)) (V' : 'M_(n, dv))
    (V : 'M_(l.+1, dv)) :
    (0 < C)%N -> ((n + l.+1 - 1) %% C)%N = l ->
  MAttn (additive (chunk_bottom_right C 1 (n + l.+1))) Q (col_mx K' K) (col_mx V' V) = attention e scale Q K V.
Proof.
move=> C_gt0; rewrite -addnBA // subn1 /= => lC; have l_lt : (l < C)%N by rewrite -lC ltn_mod.
rewrite chunk_eviction //; last by rewrite /dvdn -(mod0n C) -(eqn_modDr l) lC add0n modn_small.
apply: all_shown => i j; rewrite chunk_bottom_rightE // (ord1 i) add0n subn1 /= !divn_small //.
exact: leq_trans (ltn_ord j) l_lt.
Qed.

(** The sum of e^s over the keys of a chunk does not fall as C becomes a multiple of itself. *)
Theorem chunk_lse_monotone C C' M N dk (p : 'I_M -> int) (Q : 'M_(M, dk)) (K : 'M_(N, dk)) i :
  (C %| C')%N -> lse_of (chunk C N p) Q K i <= lse_of (chunk C' N p) Q K i.
Proof.
case/dvdnP=> k ->; apply: shown_monotone => j; rewrite !mxE => /eqP same.
by rewrite mulnC PoszM !divzMA_ge0 // same.
Qed.

(** M = N: both alignments are one. *)
Theorem chunk_alignments_agree C M : chunk_top_left C M M = chunk_bottom_right C M M.
Proof. by apply/matrixP => i j; rewrite !mxE bottom_right_at ?leq_addl // addnK. Qed.

(** C = 1 and M = N: o_i = v_i, and the sum of e^s is that of the row's own score. *)
Theorem chunk_one M dk dv (Q : 'M_(M, dk)) (K : 'M_(M, dk)) (V : 'M_(M, dv)) i :
  let W := chunk_top_left 1 M M in
  row i (MAttn (additive W) Q K V) = row i V /\ lse_of W Q K i = e (scale * (Q *m K^T) i i).
Proof. by move=> W; apply: one_shown => j; rewrite chunk_top_leftE !divn1. Qed.

End Chunk.
