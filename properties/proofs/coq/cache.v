(** A cache: N slots of keys and values, of which the first n are filled; M queries of the last of these n tokens. *)

From Coq Require Import Lia.
From mathcomp Require Import all_ssreflect all_fingroup all_algebra.
From Attest Require Import definitions basics masked causal shown varlen.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** Row i stands at n - M + i and sees the slots up to there, of those that are filled. *)
Definition cached M N n : 'M[bool]_(M, N) := \matrix_(i, j) ((j < n) && (j + M <= i + n))%N.

Section Cache.
Variables (R : realFieldType) (e : exponential R) (scale : R) (conv : convention).
Local Notation MAttn := (mattn e scale conv).
Local Notation additive := (additive R).

(** Rows a ... a + m - 1 see the same slots as a call of their own, at the length before the later tokens came. *)
Lemma cached_chunk M N n a m (i : 'I_M) (k : 'I_m) (j : 'I_N) :
    (a + m <= M)%N -> i = (a + k)%N :> nat -> cached M N n i j = cached m N (n + (a + m) - M) k j.
Proof.
move=> /ssrnat.leP; rewrite !mxE -?plusE => amM ->; have /ssrnat.leP km := ltn_ord k.
apply/andP/andP => -[/ssrnat.leP A /ssrnat.leP B]; split; apply/ssrnat.leP; move: A B; rewrite -?plusE -?minusE; lia.
Qed.

(** Any chunk of the queries, at its own length, is those rows of the whole prefill. *)
Theorem cache_chunked_prefill M N n a m dk dv (f : 'I_m -> 'I_M) (Q : 'M_(M, dk)) (K : 'M_(N, dk)) (V : 'M_(N, dv)) :
    (a + m <= M)%N -> (forall k, f k = (a + k)%N :> nat) ->
  MAttn (additive (cached m N (n + (a + m) - M))) (rowsub f Q) K V = rowsub f (MAttn (additive (cached M N n)) Q K V).
Proof.
move=> amM fa; rewrite -mattn_rowsub; apply: eq_mattn => //.
by apply/matrixP => k j; have := cached_chunk n j amM (fa k); rewrite !mxE => ->.
Qed.

(** Token by token: row i by itself, at the length of its token. *)
Theorem cache_incremental M N n dk dv (i : 'I_M) (Q : 'M_(M, dk)) (K : 'M_(N, dk)) (V : 'M_(N, dv)) :
  MAttn (additive (cached 1 N (n + i.+1 - M))) (row i Q) K V = row i (MAttn (additive (cached M N n)) Q K V).
Proof.
have rowE d (A : 'M[R]_(M, d)) : row i A = rowsub (fun _ : 'I_1 => i) A by apply/matrixP => k j; rewrite !mxE.
by rewrite !rowE -(@cache_chunked_prefill _ _ n i) ?addn1 // => k; rewrite ord1 addn0.
Qed.

(** t + 1 queries at once at length n are single decodes: causal inside the chunk. *)
Theorem cache_speculative t N n dk dv (i : 'I_t.+1) (Q : 'M_(t.+1, dk)) (K : 'M_(N, dk)) (V : 'M_(N, dv)) :
  row i (MAttn (additive (cached t.+1 N n)) Q K V) = MAttn (additive (cached 1 N (n + i - t))) (row i Q) K V.
Proof. by rewrite -cache_incremental addnS subSS. Qed.

(** Slots behind the length do not matter, whatever they hold. *)
Lemma cached_local M N n dk dv (Q : 'M_(M, dk)) (K K' : 'M_(N, dk)) (V V' : 'M_(N, dv)) :
    (forall j : 'I_N, (j < n)%N -> row j K = row j K' /\ row j V = row j V') ->
  MAttn (additive (cached M N n)) Q K V = MAttn (additive (cached M N n)) Q K' V'.
Proof.
move=> KV; apply/row_matrixP => i; apply: mattn_local => // j.
by rewrite additive_hidden mxE => /andP[/KV].
Qed.

(** The filled slots by themselves: causal attention of the n tokens. *)
Lemma cached_alone M N n dk dv (g : 'I_n -> 'I_N) (Q : 'M_(M, dk)) (K : 'M_(N, dk)) (V : 'M_(N, dv)) :
    (forall j, g j = j :> nat) ->
  MAttn (additive (cached M N n)) Q K V = MAttn (additive (causal_bottom_right M n)) Q (rowsub g K) (rowsub g V).
Proof.
move=> gE; have g_inj : injective g by move=> j l /(congr1 val); rewrite /= !gE => /val_inj.
rewrite -[LHS](@mattn_gather_inj _ e scale conv _ _ _ _ _ g) // => [|i j jg].
  by apply: eq_mattn => //; apply/matrixP => i j; rewrite !mxE gE ltn_ord.
rewrite !mxE; case: (ltnP j n) => //= jn; case/negP: jg; apply/codomP; exists (Ordinal jn).
by apply: val_inj; rewrite /= gE.
Qed.

(** One query at length n is row n - 1 of the causal prefill of the n tokens. *)
Theorem cache_decode_is_last_row n N dk dv (g : 'I_n.+1 -> 'I_N) (Q : 'M_(n.+1, dk)) (K : 'M_(N, dk)) (V : 'M_(N, dv)) :
    (forall j, g j = j :> nat) ->
  MAttn (additive (cached 1 N n.+1)) (row ord_max Q) K V =
  row ord_max (MAttn (additive (causal_top_left n.+1 n.+1)) Q (rowsub g K) (rowsub g V)).
Proof.
move=> gE; have -> : causal_top_left n.+1 n.+1 = causal_bottom_right n.+1 n.+1.
  by apply/matrixP => i j; rewrite !mxE leq_add2r.
by rewrite -cached_alone // -cache_incremental /= addnK.
Qed.

(** More slots change nothing. *)
Theorem cache_capacity M N more n dk dv (Q : 'M_(M, dk)) (K : 'M_(N, dk)) (K' : 'M_(more, dk)) (V : 'M_(N, dv))
    (V' : 'M_(more, dv)) :
    (n <= N)%N ->
  MAttn (additive (cached M (N + more) n)) Q (col_mx K K') (col_mx V V') = MAttn (additive (cached M N n)) Q K V.
Proof.
move=> nN; rewrite tail_deleted => [|i j]; last by rewrite mxE /= ltnNge (leq_trans nN) ?leq_addr.
by apply: eq_mattn => //; apply/matrixP => i j; rewrite !mxE.
Qed.

(** Taken back to n, a cache is one of these tokens alone, whatever is left in the slots behind ... *)
Theorem cache_rollback M N n dk dv (Q : 'M_(M, dk)) (K K' : 'M_(N, dk)) (V V' : 'M_(N, dv)) :
    (forall j : 'I_N, (j < n)%N -> row j K = row j K' /\ row j V = row j V') ->
  MAttn (additive (cached M N n)) Q K V = MAttn (additive (cached M N n)) Q K' V'.
Proof. exact: cached_local. Qed.

(** ... and filled again it is the tokens that it holds now. *)
Theorem cache_rollback__fresh M N n dk dv (g : 'I_n -> 'I_N) (Q : 'M_(M, dk)) (K : 'M_(N, dk)) (V : 'M_(N, dv)) :
    (forall j, g j = j :> nat) ->
  MAttn (additive (cached M N n)) Q K V = MAttn (additive (causal_bottom_right M n)) Q (rowsub g K) (rowsub g V).
Proof. exact: cached_alone. Qed.

(** Another length of entries other than the row's own, 0 among them: the slots of its own stay those of its own. *)
Theorem cache_independent_lengths M N dk dv sq sk sk' (inner : 'M[bool]_(M, N)) (i : 'I_M) (Q : 'M_(M, dk))
    (K : 'M_(N, dk)) (V : 'M_(N, dv)) :
    (forall j, (sk j == sq i) = (sk' j == sq i)) ->
  row i (MAttn (additive (together sq sk inner)) Q K V) = row i (MAttn (additive (together sq sk' inner)) Q K V).
Proof.
move=> same; apply: mattn_local => //; apply/rowP => j.
by rewrite !mxE (eq_sym _ (sk j)) (eq_sym _ (sk' j)) same.
Qed.

(** An entry t whose cache is empty is nothing to the others; what its own rows are is a declared policy. *)
Theorem cache_empty M N dk dv sq sk t (inner : 'M[bool]_(M, N)) (i : 'I_M) (Q : 'M_(M, dk)) (K : 'M_(N, dk))
    (V : 'M_(N, dv)) :
    sq i != Some t ->
  row i (MAttn (additive (together sq (fun j => if sk j == Some t then None else sk j) inner)) Q K V) =
  row i (MAttn (additive (together sq sk inner)) Q K V).
Proof.
move=> it; case E : (sq i) => [s|]; last first.
  by apply: mattn_local => //; apply/rowP => j; rewrite !mxE E.
apply: cache_independent_lengths => j; case: ifP => // /eqP ->.
by move: it; rewrite E eq_sym => /negbTE ->.
Qed.

(** Causal rows with padding in a slots before the first key: the n - a tokens from the first slot on. *)
Theorem cache_left_pad__causal M N N' a n dk dv (Q : 'M_(M, dk)) (K : 'M_(N, dk)) (K' : 'M_(N', dk)) (V : 'M_(N, dv))
    (V' : 'M_(N', dv)) :
    (a <= n)%N -> (n <= N)%N -> (n - a <= N')%N ->
    (forall (j : 'I_N) (j' : 'I_N'), (j < n)%N -> j = (a + j')%N :> nat -> row j K = row j' K' /\ row j V = row j' V') ->
  MAttn (additive (\matrix_(i, j) ((a <= j)%N && cached M N n i j))) Q K V = MAttn (additive (cached M N' (n - a))) Q K' V'.
Proof.
move=> an nN nN' KV; have gP (k : 'I_(n - a)) : (a + k < N)%N by rewrite (leq_trans _ nN) // -ltn_subRL.
pose g k := Ordinal (gP k); have g_inj : injective g by move=> k l /(congr1 val) /= /addnI /val_inj.
rewrite (@cached_alone _ _ _ _ _ (widen_ord nN')) //.
rewrite -[LHS](@mattn_gather_inj _ e scale conv _ _ _ _ _ g) //; last first.
  move=> i j jg; rewrite !mxE; case: ifP => // /and3P[aj jn _]; case/negP: jg; apply/codomP.
  by exists (Ordinal (ltn_sub2r (leq_ltn_trans aj jn) jn)); apply: val_inj; rewrite /= subnKC.
have rowE d (A : 'M[R]_(N, d)) (A' : 'M_(N', d)) : (forall k, row (g k) A = row (widen_ord nN' k) A') ->
    rowsub g A = rowsub (widen_ord nN') A' by move=> AA'; apply/row_matrixP => k; rewrite !row_rowsub.
have gn k : (g k < n)%N by rewrite /= -ltn_subRL.
apply: eq_mattn => //; last by apply: rowE => k; have [] := KV (g k) (widen_ord nN' k) (gn k) erefl.
  apply/matrixP => i k; rewrite !mxE /= leq_addr -ltn_subRL ltn_ord /=.
  by rewrite -addnA -[in RHS](leq_add2l a) [(a + (i + _))%N]addnCA subnKC.
by apply: rowE => k; have [] := KV (g k) (widen_ord nN' k) (gn k) erefl.
Qed.

End Cache.

(** A batch as one: row i of entry s is row [fused s i] of the queries, and slot j of the entry is slot [fused s j]. Its
    keys stand in slots first s ... length s - 1. Of these a row sees what B leaves, any mask, causal form and window. *)
Section Entries.
Variables (R : realFieldType) (batch : nat) (first length : 'I_batch -> nat).

Definition key_at (s : 'I_batch) (j : nat) : bool := (first s <= j < length s)%N.

Definition entries M N (B : 'M[score R]_(batch * M, batch * N)) : 'M[score R]_(batch * M, batch * N) :=
  \matrix_(i, x) if (outer i == outer x) && key_at (outer x) (inner x) then B i x else hidden.

Lemma entriesE M N (B : 'M[score R]_(batch * M, batch * N)) s t (i : 'I_M) (j : 'I_N) :
  entries B (fused s i) (fused t j) = if (s == t) && key_at t j then B (fused s i) (fused t j) else hidden.
Proof. by rewrite mxE !outerK !innerK. Qed.

End Entries.

Section Batch.
Variables (R : realFieldType) (e : exponential R) (scale : R) (conv : convention).
Local Notation MAttn := (mattn e scale conv).

Lemma eq_entries batch M d (A A' : 'M[R]_(batch * M, d)) : (forall s, rows_of_head A s = rows_of_head A' s) -> A = A'.
Proof.
by move=> AA'; apply/matrixP => x c; have /matrixP/(_ (inner x) c) := AA' (outer x); rewrite !mxE fusedK.
Qed.

(** Slots that no key stands in do not matter. *)
Lemma entries_local batch first length M N dk dv (B : 'M_(batch * M, batch * N)) (Q : 'M_(batch * M, dk))
    (K K' : 'M_(batch * N, dk)) (V V' : 'M_(batch * N, dv)) :
    (forall s (j : 'I_N), key_at first length s j ->
      row (fused s j) K = row (fused s j) K' /\ row (fused s j) V = row (fused s j) V') ->
  MAttn (entries first length B) Q K V = MAttn (entries first length B) Q K' V'.
Proof.
move=> KV; apply/row_matrixP => i; apply: mattn_local => // x; rewrite mxE.
by case: ifP => // /andP[_ /KV]; rewrite fusedK.
Qed.

(** An entry is its queries over slots g of its own that its keys are among. *)
Lemma entry_alone batch first length M N n dk dv (g : 'I_n -> 'I_N) (B : 'M_(batch * M, batch * N))
    (Q : 'M_(batch * M, dk)) (K : 'M_(batch * N, dk)) (V : 'M_(batch * N, dv)) s :
    injective g -> (forall j : 'I_N, key_at first length s j -> j \in codom g) ->
  rows_of_head (MAttn (entries first length B) Q K V) s =
  MAttn (\matrix_(i, k) entries first length B (fused s i) (fused s (g k))) (rows_of_head Q s)
    (rowsub (fun k => fused s (g k)) K) (rowsub (fun k => fused s (g k)) V).
Proof.
move=> g_inj keys; rewrite -[LHS]/(rowsub (fused s) _) -mattn_rowsub.
rewrite -[LHS](@mattn_gather_inj _ e scale conv _ _ _ _ _ (fun k => fused s (g k))).
- by apply: eq_mattn => //; apply/matrixP => i k; rewrite !mxE.
- by move=> k l /(congr1 (@inner batch N)); rewrite !innerK => /g_inj.
move=> i x xg; rewrite -[x]fusedK [LHS]mxE entriesE; case: ifP => // /andP[/eqP sx].
rewrite -sx => /keys/codomP[k xk]; case/negP: xg; apply/codomP; exists k; by rewrite -[LHS]fusedK -sx xk.
Qed.

(** Entries of the same keys: key k of s, in slot first s + k, is key k of s' in another batch. *)
Lemma same_keys batch batch' first first' length length' M N N' dk dv (B : 'M_(batch * M, batch * N))
    (B' : 'M_(batch' * M, batch' * N')) (Q : 'M_(batch * M, dk)) (Q' : 'M_(batch' * M, dk)) (K : 'M_(batch * N, dk))
    (K' : 'M_(batch' * N', dk)) (V : 'M_(batch * N, dv)) (V' : 'M_(batch' * N', dv)) s s' :
    (length s <= N)%N -> (length' s' <= N')%N -> (length s - first s = length' s' - first' s')%N ->
    rows_of_head Q s = rows_of_head Q' s' ->
    (forall k (j : 'I_N) (j' : 'I_N'), (k < length s - first s)%N -> j = (first s + k)%N :> nat ->
        j' = (first' s' + k)%N :> nat ->
      [/\ forall i, B (fused s i) (fused s j) = B' (fused s' i) (fused s' j'),
          row (fused s j) K = row (fused s' j') K' & row (fused s j) V = row (fused s' j') V']) ->
  rows_of_head (MAttn (entries first length B) Q K V) s = rows_of_head (MAttn (entries first' length' B') Q' K' V') s'.
Proof.
move=> sN sN' same_number QQ' KV; pose n := (length s - first s)%N.
have keyE (k : 'I_n) : (first s + k < length s)%N by rewrite -ltn_subRL.
have keyE' (k : 'I_n) : (first' s' + k < length' s')%N by rewrite -ltn_subRL -same_number.
pose g k := Ordinal (leq_trans (keyE k) sN); pose g' k := Ordinal (leq_trans (keyE' k) sN').
have gs j : key_at first length s (val j) -> j \in codom g.
  move=> /andP[fj jl]; have jn : (j - first s < n)%N by rewrite ltn_sub2r // (leq_ltn_trans fj).
  by apply/codomP; exists (Ordinal jn); apply: val_inj; rewrite /= subnKC.
have gs' j : key_at first' length' s' (val j) -> j \in codom g'.
  move=> /andP[fj jl]; have jn : (j - first' s' < n)%N by rewrite /n same_number ltn_sub2r // (leq_ltn_trans fj).
  by apply/codomP; exists (Ordinal jn); apply: val_inj; rewrite /= subnKC.
rewrite (@entry_alone _ _ _ _ _ _ _ _ g) ?(@entry_alone _ _ _ _ _ _ _ _ g') //; try first
  [by move=> k l /(congr1 val) /= /addnI /val_inj].
apply: eq_mattn => //.
- apply/matrixP => i k; have [Bk _ _] := KV k (g k) (g' k) (ltn_ord k) erefl erefl; rewrite ![LHS]mxE ![RHS]mxE.
  by rewrite !outerK !innerK !eqxx /key_at /= !leq_addr keyE keyE' Bk.
- by apply/row_matrixP => k; rewrite !row_rowsub; have [] := KV k (g k) (g' k) (ltn_ord k) erefl erefl.
- by apply/row_matrixP => k; rewrite !row_rowsub; have [] := KV k (g k) (g' k) (ltn_ord k) erefl erefl.
Qed.

(** Slots before an entry's first key, like those behind its length, do not matter, whatever they hold ... *)
Theorem cache_left_pad batch first length M N dk dv (B : 'M_(batch * M, batch * N)) (Q : 'M_(batch * M, dk))
    (K K' : 'M_(batch * N, dk)) (V V' : 'M_(batch * N, dv)) :
    (forall s (j : 'I_N), (first s <= j < length s)%N ->
      row (fused s j) K = row (fused s j) K' /\ row (fused s j) V = row (fused s j) V') ->
  MAttn (entries first length B) Q K V = MAttn (entries first length B) Q K' V'.
Proof. exact: entries_local. Qed.

(** ... and without them, every entry's keys from the first slot on and what a row sees of them as it was, it is the
    same. *)
Theorem cache_left_pad__without batch first length M N N' dk dv (B : 'M_(batch * M, batch * N))
    (B' : 'M_(batch * M, batch * N')) (Q : 'M_(batch * M, dk)) (K : 'M_(batch * N, dk)) (K' : 'M_(batch * N', dk))
    (V : 'M_(batch * N, dv)) (V' : 'M_(batch * N', dv)) :
    (forall s, length s <= N)%N -> (forall s, length s - first s <= N')%N ->
    (forall s (j : 'I_N) (j' : 'I_N'), (j < length s)%N -> j = (first s + j')%N :> nat ->
      [/\ forall i, B (fused s i) (fused s j) = B' (fused s i) (fused s j'),
          row (fused s j) K = row (fused s j') K' & row (fused s j) V = row (fused s j') V']) ->
  MAttn (entries first length B) Q K V = MAttn (entries (fun=> 0%N) (fun s => length s - first s)%N B') Q K' V'.
Proof.
move=> sN sN' KV; apply: eq_entries => s; apply: same_keys => //; rewrite ?subn0 // => k j j' kn jk jk'.
by apply: KV; rewrite jk ?jk' // -ltn_subRL.
Qed.

(** A cache of more rows than the batch has entries: entry s reads row index s. *)
Definition indexed batch rows N d (index : 'I_batch -> 'I_rows) (cache : 'M[R]_(rows * N, d)) : 'M[R]_(batch * N, d) :=
  rowsub (fun x => fused (index (outer x)) (inner x)) cache.

Lemma row_indexed batch rows N d (index : 'I_batch -> 'I_rows) (cache : 'M[R]_(rows * N, d)) s (j : 'I_N) :
  row (fused s j) (indexed index cache) = row (fused (index s) j) cache.
Proof. by rewrite row_rowsub outerK innerK. Qed.

Section Index.
Variables (batch rows M N dk dv : nat) (index : 'I_batch -> 'I_rows) (first length : 'I_batch -> nat).
Variables (B : 'M[score R]_(batch * M, batch * N)) (Q : 'M[R]_(batch * M, dk)).
Local Notation Rows := (entries first length B).

(** It is that row of the cache as if it stood in a batch ... *)
Theorem cache_index (K : 'M_(batch * N, dk)) (V : 'M_(batch * N, dv)) (cache_k : 'M_(rows * N, dk))
    (cache_v : 'M_(rows * N, dv)) :
    (forall s (j : 'I_N), (first s <= j < length s)%N ->
      row (fused s j) K = row (fused (index s) j) cache_k /\ row (fused s j) V = row (fused (index s) j) cache_v) ->
  MAttn Rows Q (indexed index cache_k) (indexed index cache_v) = MAttn Rows Q K V.
Proof. by move=> KV; apply: entries_local => s j /KV[-> ->]; rewrite !row_indexed. Qed.

(** ... rows that no entry names do not matter, nor slots that no key is in ... *)
Theorem cache_index__dead (cache_k cache_k' : 'M_(rows * N, dk)) (cache_v cache_v' : 'M_(rows * N, dv)) :
    (forall s (j : 'I_N), (first s <= j < length s)%N ->
      row (fused (index s) j) cache_k = row (fused (index s) j) cache_k' /\
      row (fused (index s) j) cache_v = row (fused (index s) j) cache_v') ->
  MAttn Rows Q (indexed index cache_k) (indexed index cache_v) =
  MAttn Rows Q (indexed index cache_k') (indexed index cache_v').
Proof. by move=> KV; apply: cache_index => s j /KV[-> ->]; rewrite !row_indexed. Qed.

(** ... entry s on row index s alone, of the others and of the other rows nothing ... *)
Theorem cache_index__alone (index' : 'I_batch -> 'I_rows) s (cache_k cache_k' : 'M_(rows * N, dk))
    (cache_v cache_v' : 'M_(rows * N, dv)) :
    index s = index' s ->
    rows_of_head cache_k (index s) = rows_of_head cache_k' (index s) ->
    rows_of_head cache_v (index s) = rows_of_head cache_v' (index s) ->
  rows_of_head (MAttn Rows Q (indexed index cache_k) (indexed index cache_v)) s =
  rows_of_head (MAttn Rows Q (indexed index' cache_k') (indexed index' cache_v')) s.
Proof.
move=> ss' KK' VV'; rewrite !(@entry_alone _ _ _ _ _ _ _ _ id) //; try by move=> j; rewrite codom_f.
have rowE d (A A' : 'M[R]_(rows * N, d)) : rows_of_head A (index s) = rows_of_head A' (index s) ->
    rowsub (fun k => fused s k) (indexed index A) = rowsub (fun k => fused s k) (indexed index' A').
  by move=> /matrixP AA'; apply/matrixP => k c; have := AA' k c; rewrite !mxE !outerK !innerK -ss'.
by rewrite (rowE _ _ _ KK') (rowE _ _ _ VV').
Qed.

(** ... and rows in another order, under their new names, change nothing. *)
Theorem cache_index__renamed (pi : 'S_rows) (cache_k cache_k' : 'M_(rows * N, dk)) (cache_v cache_v' : 'M_(rows * N, dv)) :
    (forall r, rows_of_head cache_k' (pi r) = rows_of_head cache_k r) ->
    (forall r, rows_of_head cache_v' (pi r) = rows_of_head cache_v r) ->
  MAttn Rows Q (indexed (pi \o index) cache_k') (indexed (pi \o index) cache_v') =
  MAttn Rows Q (indexed index cache_k) (indexed index cache_v).
Proof.
have rowE d (A A' : 'M[R]_(rows * N, d)) : (forall r, rows_of_head A' (pi r) = rows_of_head A r) ->
    indexed (pi \o index) A' = indexed index A.
  move=> AA'; apply/matrixP => x c; rewrite !mxE /=.
  by have /matrixP/(_ (inner x) c) := AA' (index (outer x)); rewrite !mxE.
by move=> KK' VV'; rewrite (rowE _ _ _ KK') (rowE _ _ _ VV').
Qed.

End Index.

End Batch.
