(** A call that brings L tokens of every sequence and writes them into the cache, behind the length, before it attends:
    into slots length s ... length s + L - 1 of one piece (cache.v), or of the pages that a table names (paged.v). *)

From mathcomp Require Import all_ssreflect all_algebra.
From Attest Require Import definitions basics cache paged.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** Which of L new tokens goes to slot j of a cache of length n: token j - n, if there is one. *)
Definition token_at L n j : option 'I_L := if (n <= j)%N then insub (j - n)%N else None.

Lemma token_atP L n j (t : 'I_L) : j = (n + t)%N -> token_at L n j = Some t.
Proof. by move=> ->; rewrite /token_at leq_addr addKn valK. Qed.

Lemma token_at_none L n j : ~~ (n <= j < n + L)%N -> token_at L n j = None.
Proof.
rewrite /token_at; case: ifP => // nj outside; apply: insubN.
by rewrite ltn_subLR.
Qed.

Lemma is_token L n j : (n <= j < n + L)%N -> exists t : 'I_L, j = (n + t)%N.
Proof.
move=> /andP[nj jL]; have tL : (j - n < L)%N by rewrite ltn_subLR.
by exists (Ordinal tL); rewrite /= subnKC.
Qed.

Section Written.
Variables (R : realFieldType) (batch : nat) (length : 'I_batch -> nat).

(** What the call leaves in a cache of one piece: token t of s, row [fused s t] of the new ones, in slot length s + t.
    One that no slot is left for is nowhere. *)
Definition written N L d (new : 'M[R]_(batch * L, d)) (cache : 'M[R]_(batch * N, d)) : 'M[R]_(batch * N, d) :=
  \matrix_(x, a) if token_at L (length (outer x)) (inner x) is Some t then new (fused (outer x) t) a else cache x a.

Lemma row_written N L d (new : 'M[R]_(batch * L, d)) (cache : 'M_(batch * N, d)) s (j : 'I_N) (t : 'I_L) :
  j = (length s + t)%N :> nat -> row (fused s j) (written new cache) = row (fused s t) new.
Proof. by move=> jt; apply/rowP => a; rewrite !mxE outerK innerK (token_atP jt). Qed.

Lemma row_kept N L d (new : 'M[R]_(batch * L, d)) (cache : 'M_(batch * N, d)) s (j : 'I_N) :
  ~~ (length s <= j < length s + L)%N -> row (fused s j) (written new cache) = row (fused s j) cache.
Proof. by move=> jt; apply/rowP => a; rewrite !mxE outerK innerK (token_at_none jt). Qed.

Section Pages.
Variables (columns pages page L : nat) (table : 'I_batch -> 'I_columns -> int).

(** Token t of s, y of all, goes to slot x of a pool: it is key length s + t, and column (length s + t) / page names the
    page of x, of which x is slot (length s + t) mod page. *)
Definition goes_to (y : 'I_(batch * L)) (x : 'I_(pages * page)) : bool :=
  let key := (length (outer y) + inner y)%N in
  if insub (key %/ page)%N is Some c then (table (outer y) c == outer x :> int) && (key %% page == inner x)%N
  else false.

Lemma goes_toP s (t : 'I_L) (p : 'I_pages) (j : 'I_page) :
  reflect (exists2 c : 'I_columns, table s c = p & (c * page + j)%N = (length s + t)%N)
    (goes_to (fused s t) (fused p j)).
Proof.
rewrite /goes_to !outerK !innerK; case: insubP => [c _ cE|no_column].
  apply: (iffP andP) => [[/eqP tE /eqP jE]|[c' tE jE]].
    by exists c => //; rewrite cE -jE -divn_eq.
  have cc' : c' = c by apply: val_inj; rewrite cE -jE divnMDl ?(leq_trans _ (ltn_ord j)) // divn_small ?addn0.
  by rewrite -cc' tE -jE modnMDl modn_small.
right=> -[c _ jE]; case/negP: no_column; rewrite -jE divnMDl ?(leq_trans _ (ltn_ord j)) // divn_small ?addn0 //.
Qed.

(** What the call leaves in a pool. Of several tokens that go to one slot, one of them. *)
Definition written_in_pages d (new : 'M[R]_(batch * L, d)) (pool : 'M[R]_(pages * page, d)) : 'M[R]_(pages * page, d) :=
  \matrix_(x, a) if [pick y | goes_to y x] is Some y then new y a else pool x a.

(** A slot that a token goes to is in a page of the pool, and is read as this key alone: among slots from s ...
    length s + L - 1 of all sequences no other stands there. Behind these and before them a table may name any page. *)
Definition slots_of_their_own (from : 'I_batch -> nat) : Prop :=
  forall s (c : 'I_columns) (j : 'I_page), (length s <= c * page + j < length s + L)%N ->
    (exists p : 'I_pages, table s c = p) /\
    forall s' (c' : 'I_columns), (from s' <= c' * page + j < length s' + L)%N -> table s' c' = table s c ->
      s' = s /\ c' = c.

(** A table that names pages of the pool, and none twice, is such a one. *)
Lemma named_once from : (forall s c, exists p : 'I_pages, table s c = p) ->
  (forall s c s' c', table s' c' = table s c -> s' = s /\ c' = c) -> slots_of_their_own from.
Proof. by move=> named once s c j _; split=> // s' c' _; apply: once. Qed.

Lemma row_in_pages d (new : 'M[R]_(batch * L, d)) (pool : 'M_(pages * page, d)) s (t : 'I_L) (c : 'I_columns)
    (j : 'I_page) (p : 'I_pages) :
    slots_of_their_own length -> table s c = p -> (c * page + j)%N = (length s + t)%N ->
  row (fused p j) (written_in_pages new pool) = row (fused s t) new.
Proof.
move=> own cp ct; apply/rowP => a; rewrite [LHS]mxE mxE [RHS]mxE; case: pickP => [y|none]; last first.
  by have /goes_toP[] := none (fused s t); exists c.
rewrite -[y]fusedK => /goes_toP[c' c'p c't].
have [|_ alone] := own s c j; first by rewrite ct leq_addr ltn_add2l ltn_ord.
have [||ss cc] := alone (outer y) c'; rewrite ?c'p ?cp // ?c't ?leq_addr ?ltn_add2l ?ltn_ord //.
by congr (new (fused _ _) a) => //; apply/val_inj/(@addnI (length s)); rewrite -{1}ss -c't cc ct.
Qed.

Lemma row_kept_in_pages d (new : 'M[R]_(batch * L, d)) (pool : 'M_(pages * page, d)) (p : 'I_pages) (j : 'I_page) :
    (forall s (c : 'I_columns), table s c = p -> ~~ (length s <= c * page + j < length s + L)%N) ->
  row (fused p j) (written_in_pages new pool) = row (fused p j) pool.
Proof.
move=> elsewhere; apply/rowP => a; rewrite [LHS]mxE mxE [RHS]mxE; case: pickP => // y.
rewrite -[y]fusedK => /goes_toP[c cp ct]; case/negP: (elsewhere _ _ cp).
by rewrite ct leq_addr ltn_add2l ltn_ord.
Qed.

(** The pool after the call, read through the table, is the cache of one piece after the same. *)
Lemma row_read nowhere d (new : 'M[R]_(batch * L, d)) (pool : 'M_(pages * page, d)) first s (x : 'I_(columns * page)) :
    (forall s, first s <= length s)%N -> slots_of_their_own first -> (first s <= x < length s + L)%N ->
  row (fused s x) (in_pages nowhere table (written_in_pages new pool)) =
  row (fused s x) (written new (in_pages nowhere table pool)).
Proof.
move=> fl own; rewrite -[x]fusedK; move: (outer x) (inner x) => c j at_key.
have own' : slots_of_their_own length.
  move=> u b i /own[named alone]; split=> // s' c' /andP[ls' sl']; apply: alone.
  by rewrite (leq_trans (fl s')).
have [token|old] := boolP (length s <= c * page + j < length s + L)%N.
  have [t ct] := is_token token; have [[p cp] _] := own _ _ _ token.
  by rewrite (row_paged _ _ _ cp) (row_in_pages _ _ own' cp ct) (row_written (j := fused c j) _ _ ct).
rewrite row_kept //; apply: eq_row_paged => // p cp; apply: row_kept_in_pages => u b bp.
apply: contra old => token; have [_ alone] := own _ _ _ token.
by have [|->->] := alone s c at_key; rewrite ?bp.
Qed.

End Pages.

End Written.

Section Append.
Variables (R : realFieldType) (e : exponential R) (scale : R) (conv : convention).
Variables (batch M L dk dv : nat) (first length : 'I_batch -> nat).
Implicit Types (Q : 'M[R]_(batch * M, dk)) (new_k : 'M[R]_(batch * L, dk)) (new_v : 'M[R]_(batch * L, dv)).
Local Notation MAttn := (mattn e scale conv).
Local Notation longer := (fun s => length s + L)%N.
Local Notation additive := (additive R).

Section OnePiece.
Variables (N : nat).
Implicit Types (B : 'M[score R]_(batch * M, batch * N)) (K : 'M[R]_(batch * N, dk)) (V : 'M[R]_(batch * N, dv)).

(** Written and then attended to: attention over the keys that s had, from slot first s on, and the new ones behind
    them. g k is the slot of the k-th of all these, and what a row sees of it is what B leaves of that slot. *)
Theorem cache_append B Q K V new_k new_v s (g : 'I_(length s - first s + L) -> 'I_N) :
    (first s <= length s)%N -> (forall k, g k = (first s + k)%N :> nat) ->
  rows_of_head (MAttn (entries first longer B) Q (written length new_k K) (written length new_v V)) s =
  MAttn (\matrix_(i, k) B (fused s i) (fused s (g k))) (rows_of_head Q s)
    (col_mx (rowsub (fun k => fused s (g (lshift L k))) K) (rows_of_head new_k s))
    (col_mx (rowsub (fun k => fused s (g (lshift L k))) V) (rows_of_head new_v s)).
Proof.
move=> fl gE; have sizeE : (first s + (length s - first s + L))%N = (length s + L)%N by rewrite addnA subnKC.
have in_sequence k : key_at first longer s (g k) by rewrite /key_at gE leq_addr -sizeE ltn_add2l ltn_ord.
have readE d (new : 'M[R]_(batch * L, d)) (A : 'M[R]_(batch * N, d)) :
    rowsub (fun k => fused s (g k)) (written length new A) =
    col_mx (rowsub (fun k => fused s (g (lshift L k))) A) (rows_of_head new s).
  apply/row_matrixP => k; rewrite row_rowsub; case: (split_ordP k) => l ->.
    rewrite row_kept; first by apply/rowP => a; rewrite [LHS]mxE [RHS]mxE col_mxEu mxE.
    by rewrite gE /= negb_and -ltnNge -ltn_subRL ltn_ord.
  rewrite (@row_written _ _ _ _ _ _ _ _ _ _ l); first by apply/rowP => a; rewrite [LHS]mxE [RHS]mxE col_mxEd mxE.
  by rewrite gE /= addnA subnKC.
rewrite (@entry_alone _ _ _ _ _ _ _ _ _ _ _ _ g); first 1 last.
- by move=> k l /(congr1 val); rewrite /= !gE => /addnI/val_inj.
- move=> j /andP[fj jl]; have jn : (j - first s < length s - first s + L)%N by rewrite ltn_subLR // sizeE.
  by apply/codomP; exists (Ordinal jn); apply: val_inj; rewrite /= gE /= subnKC.
apply: eq_mattn => //.
by apply/matrixP => i k; rewrite [LHS]mxE [RHS]mxE entriesE eqxx in_sequence.
Qed.

(** At a length of 0, or with nothing but padding in the slots before: attention over the new ones alone. *)
Theorem cache_append__empty B Q K V new_k new_v s (g : 'I_L -> 'I_N) :
    length s = first s -> (forall t, g t = (length s + t)%N :> nat) ->
  rows_of_head (MAttn (entries first longer B) Q (written length new_k K) (written length new_v V)) s =
  MAttn (\matrix_(i, t) B (fused s i) (fused s (g t))) (rows_of_head Q s) (rows_of_head new_k s) (rows_of_head new_v s).
Proof.
move=> empty gE; rewrite (@entry_alone _ _ _ _ _ _ _ _ _ _ _ _ g); first 1 last.
- by move=> k l /(congr1 val); rewrite /= !gE => /addnI/val_inj.
- move=> j; rewrite /key_at -empty => /is_token[t jt].
  by apply/codomP; exists t; apply: val_inj; rewrite /= gE.
apply: eq_mattn => //; [apply/matrixP => i t|apply/row_matrixP => t..].
- by rewrite [LHS]mxE [RHS]mxE entriesE eqxx /key_at gE -empty leq_addr ltn_add2l ltn_ord.
- by rewrite row_rowsub (row_written _ _ (gE t)); apply/rowP => a; rewrite !mxE.
- by rewrite row_rowsub (row_written _ _ (gE t)); apply/rowP => a; rewrite !mxE.
Qed.

(** In the causal form, rows being those of the last tokens of all, it is that of the concatenation. *)
Theorem cache_append__causal B Q K V new_k new_v s (g : 'I_(length s - first s + L) -> 'I_N) :
    (first s <= length s)%N -> (forall k, g k = (first s + k)%N :> nat) ->
    (forall i (j : 'I_N), B (fused s i) (fused s j) = if (j + M <= i + (length s + L))%N then Some 0 else hidden) ->
  rows_of_head (MAttn (entries first longer B) Q (written length new_k K) (written length new_v V)) s =
  MAttn (additive (causal_bottom_right M (length s - first s + L))) (rows_of_head Q s)
    (col_mx (rowsub (fun k => fused s (g (lshift L k))) K) (rows_of_head new_k s))
    (col_mx (rowsub (fun k => fused s (g (lshift L k))) V) (rows_of_head new_v s)).
Proof.
move=> fl gE causal; rewrite (cache_append _ _ _ _ _ _ fl gE); apply: eq_mattn => //.
apply/matrixP => i k; rewrite [LHS]mxE causal gE !mxE; congr (if _ then _ else _).
by rewrite -[RHS](leq_add2l (first s)) [(first s + (i + _))%N]addnCA [(first s + (_ + L))%N]addnA subnKC // !addnA.
Qed.

End OnePiece.

Section Pages.
Variables nowhere nowhere' : int -> nat -> nat -> R.
Variables (columns pages page : nat).
Implicit Types (tk tv : 'I_batch -> 'I_columns -> int) (B : 'M[score R]_(batch * M, batch * (columns * page))).
Implicit Types (pool_k : 'M[R]_(pages * page, dk)) (pool_v : 'M[R]_(pages * page, dv)).

(** Read through the table, every key is what it is in one piece after the same append, ... *)
Theorem cache_paged_append__keys tk pool_k new_k s (x : 'I_(columns * page)) :
    (forall s, first s <= length s)%N -> slots_of_their_own length pages page L tk first ->
    (first s <= x < length s + L)%N ->
  row (fused s x) (in_pages nowhere tk (written_in_pages length tk new_k pool_k)) =
  row (fused s x) (written length new_k (in_pages nowhere tk pool_k)).
Proof. exact: row_read. Qed.

(** ... so that to append and then to attend is the same, wherever a page ends; ... *)
Theorem cache_paged_append tk tv B Q pool_k pool_v new_k new_v :
    (forall s, first s <= length s)%N -> slots_of_their_own length pages page L tk first ->
    slots_of_their_own length pages page L tv first ->
  MAttn (entries first longer B) Q (in_pages nowhere tk (written_in_pages length tk new_k pool_k))
    (in_pages nowhere' tv (written_in_pages length tv new_v pool_v)) =
  MAttn (entries first longer B) Q (written length new_k (in_pages nowhere tk pool_k))
    (written length new_v (in_pages nowhere' tv pool_v)).
Proof. by move=> fl own_k own_v; apply: entries_local => s x at_key; split; apply: (row_read _ _ _ fl). Qed.

(** ... each token stands in its slot of its page, on either side of a boundary, ... *)
Theorem cache_paged_append__both_pages tk pool_k new_k s (t : 'I_L) (c : 'I_columns) (j : 'I_page) (p : 'I_pages) :
    slots_of_their_own length pages page L tk length -> tk s c = p -> (c * page + j)%N = (length s + t)%N ->
  row (fused p j) (written_in_pages length tk new_k pool_k) = row (fused s t) new_k.
Proof. exact: row_in_pages. Qed.

(** ... and a slot that is none of those of new tokens, in these pages or another, holds what it held. *)
Theorem cache_paged_append__elsewhere tk pool_k new_k (p : 'I_pages) (j : 'I_page) :
    (forall s (c : 'I_columns), tk s c = p -> ~~ (length s <= c * page + j < length s + L)%N) ->
  row (fused p j) (written_in_pages length tk new_k pool_k) = row (fused p j) pool_k.
Proof. exact: row_kept_in_pages. Qed.

End Pages.

End Append.
