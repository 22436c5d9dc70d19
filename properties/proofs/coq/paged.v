(** Keys and values in pages of a pool, which tables name: page p of a pool has its slots in rows [fused p j], and key j
    of a sequence stands in slot j mod page of the page that column j / page of its row of the table names. A row of the
    table is a sequence of the batch (cache.v), whose keys are those from first s up to length s. *)

From mathcomp Require Import all_ssreflect all_fingroup all_algebra.
From Attest Require Import definitions basics masked causal varlen cache.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** The page of the number, none for one below 0 or beyond the pool. *)
Definition page_of pages (entry : int) : option 'I_pages := if entry is Posz n then insub n else None.

Lemma page_ofE pages (p : 'I_pages) : page_of pages p = Some p.
Proof. by rewrite /page_of valK. Qed.

(** A number named where the keys stand in a page of it ... *)
Definition renamed pages (pi : 'S_pages) (entry : int) : int := if page_of pages entry is Some p then pi p : int else entry.

(** ... and a table whose column c' of sequence t names what column c of s does. *)
Definition named batch columns (table : 'I_batch -> 'I_columns -> int) s c t c' : 'I_batch -> 'I_columns -> int :=
  fun u b => if (u == t) && (b == c') then table s c else table u b.

(** The slots of a batch with page c of sequence s in the place of page c' too. *)
Definition twice batch columns page s c c' (x : 'I_(batch * (columns * page))) : 'I_(batch * (columns * page)) :=
  if (outer x == s) && (outer (inner x) == c') then fused s (fused c (inner (inner x))) else x.

(** What stood at f s stands at s. *)
Definition moved batch batch' n (f : 'I_batch' -> 'I_batch) (x : 'I_(batch' * n)) : 'I_(batch * n) :=
  fused (f (outer x)) (inner x).

Section Reading.
Variable R : realFieldType.

(** What the table reads; where it names no page of the pool, whatever stands there: nowhere. *)
Definition in_pages (nowhere : int -> nat -> nat -> R) batch columns pages page d (table : 'I_batch -> 'I_columns -> int)
    (pool : 'M[R]_(pages * page, d)) : 'M[R]_(batch * (columns * page), d) :=
  \matrix_(x, a)
    if page_of pages (table (outer x) (outer (inner x))) is Some p then pool (fused p (inner (inner x))) a
    else nowhere (table (outer x) (outer (inner x))) (inner (inner x)) a.

Variable nowhere : int -> nat -> nat -> R.
Local Notation paged := (in_pages nowhere).

Lemma pagedE batch columns pages page d (table : 'I_batch -> 'I_columns -> int) (pool : 'M_(pages * page, d)) s c j a :
  paged table pool (fused s (fused c j)) a =
  if page_of pages (table s c) is Some p then pool (fused p j) a else nowhere (table s c) j a.
Proof. by rewrite mxE !(outerK, innerK). Qed.

(** A gather, where the table names pages. *)
Lemma paged_gather batch columns pages page d (table : 'I_batch -> 'I_columns -> 'I_pages) (pool : 'M_(pages * page, d)) :
  paged (fun s c => table s c : int) pool =
  rowsub (fun x => fused (table (outer x) (outer (inner x))) (inner (inner x))) pool.
Proof. by apply/matrixP => x a; rewrite !mxE page_ofE. Qed.

Lemma row_paged batch columns pages page d (table : 'I_batch -> 'I_columns -> int) (pool : 'M_(pages * page, d)) s c j
    (p : 'I_pages) :
  table s c = p -> row (fused s (fused c j)) (paged table pool) = row (fused p j) pool.
Proof. by move=> scp; apply/rowP => a; rewrite mxE pagedE scp page_ofE mxE. Qed.

(** Two tables, two pools: the same row is read where both name pages that hold it, or the same number of none. *)
Lemma eq_row_paged batch batch' columns columns' pages page d (table : 'I_batch -> 'I_columns -> int)
    (table' : 'I_batch' -> 'I_columns' -> int) (pool pool' : 'M_(pages * page, d)) s c s' c' j :
    table s c = table' s' c' -> (forall p : 'I_pages, table s c = p -> row (fused p j) pool = row (fused p j) pool') ->
  row (fused s (fused c j)) (paged table pool) = row (fused s' (fused c' j)) (paged table' pool').
Proof.
move=> same rows; apply/rowP => a; rewrite ![row _ _ _ _]mxE !pagedE -same.
case E : page_of => [p|] //; suff /rows/rowP/(_ a) : table s c = p by rewrite !mxE.
by move: E; rewrite /page_of; case: (table s c) => // n; case: insubP => // q _ <- [->].
Qed.

Lemma paged_named batch columns pages page d (table : 'I_batch -> 'I_columns -> int) (pool : 'M_(pages * page, d)) s c c' :
  paged (named table s c s c') pool = rowsub (twice s c c') (paged table pool).
Proof.
apply/matrixP => x a; rewrite ![LHS]mxE [RHS]mxE /named /twice; case: ifP => _; rewrite ?pagedE //.
by rewrite [RHS]mxE.
Qed.

End Reading.

Section Paged.
Variables (R : realFieldType) (e : exponential R) (scale : R) (conv : convention).
Variables nowhere nowhere' : int -> nat -> nat -> R.
Variables (batch M columns pages page dk dv : nat) (first length : 'I_batch -> nat).
Implicit Types (tk tv : 'I_batch -> 'I_columns -> int) (B : 'M[score R]_(batch * M, batch * (columns * page))).
Implicit Types (Q : 'M[R]_(batch * M, dk)) (pool_k : 'M[R]_(pages * page, dk)) (pool_v : 'M[R]_(pages * page, dv)).
Local Notation MAttn := (mattn e scale conv).
Local Notation keys := (in_pages nowhere).
Local Notation values := (in_pages nowhere').

Lemma by_page (P : 'I_batch -> 'I_(columns * page) -> Prop) :
    (forall s (c : 'I_columns) (j : 'I_page), (first s <= c * page + j < length s)%N -> P s (fused c j)) ->
  forall s (x : 'I_(columns * page)), key_at first length s x -> P s x.
Proof. by move=> each s x; rewrite -[x]fusedK => /each. Qed.

Lemma is_needed s (c : 'I_columns) (j : 'I_page) : (first s <= c * page + j < length s)%N -> (c * page < length s)%N.
Proof. by move=> /andP[_]; apply: leq_ltn_trans; apply: leq_addr. Qed.

(** Keys and values one after another, K and V, are the same in pages ... *)
Theorem paged_equals_contiguous tk tv B Q pool_k pool_v (K : 'M_(batch * (columns * page), dk))
    (V : 'M_(batch * (columns * page), dv)) :
    (forall s (c : 'I_columns) (j : 'I_page), (first s <= c * page + j < length s)%N ->
      (exists2 p : 'I_pages, tk s c = p & row (fused s (fused c j)) K = row (fused p j) pool_k) /\
      (exists2 p : 'I_pages, tv s c = p & row (fused s (fused c j)) V = row (fused p j) pool_v)) ->
  MAttn (entries first length B) Q (keys tk pool_k) (values tv pool_v) = MAttn (entries first length B) Q K V.
Proof.
move=> KV; apply: entries_local; apply: by_page => s c j /KV[[p /row_paged-> ->] [q /row_paged-> ->]].
by [].
Qed.

(** ... and each sequence is its own keys and values, gathered from the pools by gk and gv, as if it were alone. *)
Theorem paged_equals_contiguous__alone tk tv B Q pool_k pool_v s (Bs : 'M_(M, length s - first s))
    (gk gv : 'I_(length s - first s) -> 'I_(pages * page)) :
    (length s <= columns * page)%N ->
    (forall (k : 'I_(length s - first s)) (c : 'I_columns) (j : 'I_page), (c * page + j)%N = (first s + k)%N ->
      [/\ exists2 p : 'I_pages, tk s c = p & gk k = fused p j,
          exists2 p : 'I_pages, tv s c = p & gv k = fused p j &
          forall i, Bs i k = B (fused s i) (fused s (fused c j))]) ->
  rows_of_head (MAttn (entries first length B) Q (keys tk pool_k) (values tv pool_v)) s =
  MAttn Bs (rows_of_head Q s) (rowsub gk pool_k) (rowsub gv pool_v).
Proof.
move=> sN gather; have keyE (k : 'I_(length s - first s)) : (first s + k < length s)%N by rewrite -ltn_subRL.
pose g k := Ordinal (leq_trans (keyE k) sN); have gP k : val (fused (outer (g k)) (inner (g k))) = (first s + k)%N.
  by rewrite fusedK.
rewrite (@entry_alone _ _ _ _ _ _ _ _ _ _ _ _ g); first 1 last.
- by move=> k l /(congr1 val) /= /addnI /val_inj.
- move=> j /andP[fj jl]; have jn : (j - first s < length s - first s)%N by rewrite ltn_sub2r // (leq_ltn_trans fj).
  by apply/codomP; exists (Ordinal jn); apply: val_inj; rewrite /= subnKC.
apply: eq_mattn => //; [apply/matrixP => i k|apply/row_matrixP => k..]; have [kP vP BP] := gather k _ _ (gP k).
- by rewrite mxE entriesE eqxx /key_at /= leq_addr keyE BP fusedK.
- by rewrite !row_rowsub -[g k]fusedK; case: kP => p /row_paged-> ->.
- by rewrite !row_rowsub -[g k]fusedK; case: vP => p /row_paged-> ->.
Qed.

(** Pages in other places of the pool, under their new names. *)
Theorem paged_page_renaming (pi : 'S_pages) tk tv B Q pool_k pool_k' pool_v pool_v' :
    (forall p, rows_of_head pool_k' (pi p) = rows_of_head pool_k p) ->
    (forall p, rows_of_head pool_v' (pi p) = rows_of_head pool_v p) ->
  MAttn (entries first length B) Q (keys (fun s c => renamed pi (tk s c)) pool_k')
    (values (fun s c => renamed pi (tv s c)) pool_v') =
  MAttn (entries first length B) Q (keys tk pool_k) (values tv pool_v).
Proof.
have same (f : int -> nat -> nat -> R) (t : 'I_batch -> 'I_columns -> int) d (A A' : 'M[R]_(pages * page, d)) :
    (forall p, rows_of_head A' (pi p) = rows_of_head A p) -> in_pages f (fun s c => renamed pi (t s c)) A' = in_pages f t A.
  move=> AA'; apply/matrixP => x a; rewrite !mxE /renamed; case E : (page_of pages (t _ _)) => [p|]; last by rewrite E.
  by rewrite page_ofE; have /matrixP/(_ (inner (inner x)) a) := AA' p; rewrite !mxE.
by move=> KK' VV'; rewrite (same _ _ _ _ _ KK') (same _ _ _ _ _ VV').
Qed.

(** What slots hold that no key is in, behind a length or before a first key, does not matter. *)
Theorem paged_tail_slots_dead tk tv B Q pool_k pool_k' pool_v pool_v' :
    (forall s (c : 'I_columns) (j : 'I_page) (p : 'I_pages), (first s <= c * page + j < length s)%N -> tk s c = p ->
      row (fused p j) pool_k = row (fused p j) pool_k') ->
    (forall s (c : 'I_columns) (j : 'I_page) (p : 'I_pages), (first s <= c * page + j < length s)%N -> tv s c = p ->
      row (fused p j) pool_v = row (fused p j) pool_v') ->
  MAttn (entries first length B) Q (keys tk pool_k) (values tv pool_v) =
  MAttn (entries first length B) Q (keys tk pool_k') (values tv pool_v').
Proof.
move=> KK' VV'; apply: entries_local; apply: by_page => s c j at_key.
by split; apply: eq_row_paged => // p; [apply: KK'|apply: VV'].
Qed.

(** What pages hold that no table names, in a column that a length needs, does not matter. *)
Theorem paged_unused_pages_dead tk tv B Q pool_k pool_k' pool_v pool_v' :
    (forall p : 'I_pages, (exists s (c : 'I_columns), (c * page < length s)%N /\ tk s c = p) ->
      rows_of_head pool_k p = rows_of_head pool_k' p) ->
    (forall p : 'I_pages, (exists s (c : 'I_columns), (c * page < length s)%N /\ tv s c = p) ->
      rows_of_head pool_v p = rows_of_head pool_v' p) ->
  MAttn (entries first length B) Q (keys tk pool_k) (values tv pool_v) =
  MAttn (entries first length B) Q (keys tk pool_k') (values tv pool_v').
Proof.
have rowE d (A A' : 'M[R]_(pages * page, d)) p : rows_of_head A p = rows_of_head A' p ->
    forall j, row (fused p j) A = row (fused p j) A'.
  by move=> /matrixP AA' j; apply/rowP => a; have := AA' j a; rewrite !mxE.
move=> KK' VV'; apply: paged_tail_slots_dead => s c j p at_key scp; apply: rowE; [apply: KK'|apply: VV'];
  by exists s, c; rewrite (is_needed at_key).
Qed.

(** Entries of the table behind the last page that a length needs are not read, whatever they are. *)
Theorem paged_table_tail_dead tk tk' tv tv' B Q pool_k pool_v :
    (forall s (c : 'I_columns), (c * page < length s)%N -> tk s c = tk' s c /\ tv s c = tv' s c) ->
  MAttn (entries first length B) Q (keys tk pool_k) (values tv pool_v) =
  MAttn (entries first length B) Q (keys tk' pool_k) (values tv' pool_v).
Proof.
move=> same; apply: entries_local; apply: by_page => s c j /is_needed/same[kk' vv'].
by split; apply: eq_row_paged.
Qed.

(** The same tokens in pages of another size. *)
Theorem paged_page_size columns' pages' page' tk tv (tk' tv' : 'I_batch -> 'I_columns' -> int) B
    (B' : 'M_(batch * M, batch * (columns' * page'))) Q pool_k pool_v (pool_k' : 'M_(pages' * page', dk))
    (pool_v' : 'M_(pages' * page', dv)) :
    (forall s, length s <= columns * page)%N -> (forall s, length s <= columns' * page')%N ->
    (forall s (x : 'I_(columns * page)) (x' : 'I_(columns' * page')), x = x' :> nat -> (first s <= x < length s)%N ->
      [/\ forall i, B (fused s i) (fused s x) = B' (fused s i) (fused s x'),
          row (fused s x) (keys tk pool_k) = row (fused s x') (keys tk' pool_k') &
          row (fused s x) (values tv pool_v) = row (fused s x') (values tv' pool_v')]) ->
  MAttn (entries first length B) Q (keys tk pool_k) (values tv pool_v) =
  MAttn (entries first length B') Q (keys tk' pool_k') (values tv' pool_v').
Proof.
move=> fits fits' same; apply: eq_entries => s; apply: same_keys => // k x x' kn xk xk'.
by apply: same; rewrite xk // leq_addr -ltn_subRL.
Qed.

(** A sequence t shares its page c' with page c of s; with a copy of its own, of what it needs, it is the same. *)
Theorem paged_shared_pages tk tv B Q pool_k pool_v s t (c c' : 'I_columns) :
    (forall j : 'I_page, (first t <= c' * page + j < length t)%N ->
      row (fused t (fused c' j)) (keys tk pool_k) = row (fused s (fused c j)) (keys tk pool_k) /\
      row (fused t (fused c' j)) (values tv pool_v) = row (fused s (fused c j)) (values tv pool_v)) ->
  MAttn (entries first length B) Q (keys (named tk s c t c') pool_k) (values (named tv s c t c') pool_v) =
  MAttn (entries first length B) Q (keys tk pool_k) (values tv pool_v).
Proof.
move=> copies; apply: entries_local; apply: by_page => u b j at_key.
have [/andP[/eqP ut /eqP bc]|other] := boolP ((u == t) && (b == c')).
  move: at_key; rewrite ut bc => /copies[-> ->].
  by split; apply: eq_row_paged => //; rewrite /named !eqxx.
by split; apply: eq_row_paged => //; rewrite /named (negbTE other).
Qed.

(** A page that stands in two columns of a table is its keys twice. *)
Theorem paged_repeated_page tk tv B Q pool_k pool_v s c c' :
  MAttn (entries first length B) Q (keys (named tk s c s c') pool_k) (values (named tv s c s c') pool_v) =
  MAttn (entries first length B) Q (rowsub (twice s c c') (keys tk pool_k)) (rowsub (twice s c c') (values tv pool_v)).
Proof. by rewrite !paged_named. Qed.

(** Sequences in another order with their rows of the tables; f may also leave some out and take others again. *)
Theorem paged_batch_permutation batch' (f : 'I_batch' -> 'I_batch) tk tv B Q pool_k pool_v :
  MAttn (entries (first \o f) (length \o f) (\matrix_(i, x) B (moved f i) (moved f x))) (rowsub (moved f) Q)
    (keys (tk \o f) pool_k) (values (tv \o f) pool_v) =
  rowsub (moved f) (MAttn (entries first length B) Q (keys tk pool_k) (values tv pool_v)).
Proof.
have entryE d (A : 'M[R]_(batch * M, d)) s : rows_of_head (rowsub (moved f) A) s = rows_of_head A (f s).
  by apply/matrixP => i a; rewrite !mxE /moved outerK innerK.
apply: eq_entries => s; rewrite entryE !(@entry_alone _ _ _ _ _ _ _ _ _ _ _ _ id) //; try by move=> x; rewrite codom_f.
have readE (g : int -> nat -> nat -> R) (t : 'I_batch -> 'I_columns -> int) d (pool : 'M[R]_(pages * page, d)) :
    rowsub (fun x => fused s x) (in_pages g (t \o f) pool) = rowsub (fun x => fused (f s) x) (in_pages g t pool).
  by apply/matrixP => x a; rewrite !mxE !outerK !innerK.
apply: eq_mattn; rewrite ?readE ?entryE //.
by apply/matrixP => i x; rewrite [LHS]mxE [RHS]mxE !entriesE !eqxx mxE /moved !outerK !innerK.
Qed.

(** More pages in the pools and more columns in the tables. *)
Theorem paged_pool_size more extra tk tv (tk' tv' : 'I_batch -> 'I_(columns + extra) -> int) B
    (B' : 'M_(batch * M, batch * ((columns + extra) * page))) Q pool_k pool_v (pool_k' : 'M_((pages + more) * page, dk))
    (pool_v' : 'M_((pages + more) * page, dv)) :
    (forall s, length s <= columns * page)%N ->
    (forall s (c : 'I_columns), (c * page < length s)%N ->
      [/\ exists p : 'I_pages, tk s c = p, exists p : 'I_pages, tv s c = p,
          tk' s (lshift extra c) = tk s c & tv' s (lshift extra c) = tv s c]) ->
    (forall s i c j, B' (fused s i) (fused s (fused (lshift extra c) j)) = B (fused s i) (fused s (fused c j))) ->
    (forall p, rows_of_head pool_k' (lshift more p) = rows_of_head pool_k p) ->
    (forall p, rows_of_head pool_v' (lshift more p) = rows_of_head pool_v p) ->
  MAttn (entries first length B') Q (keys tk' pool_k') (values tv' pool_v') =
  MAttn (entries first length B) Q (keys tk pool_k) (values tv pool_v).
Proof.
move=> fits tables BB' KK' VV'; apply/esym; apply: eq_entries => s; apply: same_keys => //.
  by rewrite (leq_trans (fits s)) // leq_mul2r leq_addr orbT.
move=> k x x' kn xk x'k; have {x' x'k} -> : x' = fused (lshift extra (outer x)) (inner x).
  by apply: val_inj; rewrite [LHS]x'k -xk -{1}[x]fusedK.
have xE : x = (outer x * page + inner x)%N :> nat by rewrite -{1}[x]fusedK.
have [|[p kp] [q vq] kk' vv'] := tables s (outer x).
  by apply: (@is_needed _ _ (inner x)); rewrite -xE xk leq_addr -ltn_subRL.
have rowE d (A : 'M[R]_(pages * page, d)) (A' : 'M_((pages + more) * page, d)) r :
    rows_of_head A' (lshift more r) = rows_of_head A r ->
    row (fused r (inner x)) A = row (fused (lshift more r) (inner x)) A'.
  by move=> /matrixP AA'; apply/rowP => a; have := AA' (inner x) a; rewrite !mxE.
split=> [i||]; first by rewrite BB' fusedK.
  rewrite -{1}[x]fusedK (row_paged _ _ _ kp) (rowE _ _ _ _ (KK' p)); apply/esym/row_paged.
  by rewrite kk' kp.
rewrite -{1}[x]fusedK (row_paged _ _ _ vq) (rowE _ _ _ _ (VV' q)); apply/esym/row_paged.
by rewrite vv' vq.
Qed.

(** A sequence t that becomes one of length 0 is nothing to the others, whatever its row of the tables becomes ... *)
Theorem paged_empty_sequence t tk tk' tv tv' B B' Q pool_k pool_v s :
    (forall u, u != t -> tk' u =1 tk u /\ tv' u =1 tv u) ->
    (forall u i x, u != t -> B' (fused u i) x = B (fused u i) x) -> s != t ->
  let emptied (number : 'I_batch -> nat) u := if u == t then 0%N else number u in
  rows_of_head (MAttn (entries (emptied first) (emptied length) B') Q (keys tk' pool_k) (values tv' pool_v)) s =
  rows_of_head (MAttn (entries first length B) Q (keys tk pool_k) (values tv pool_v)) s.
Proof.
move=> tables BB' st emptied; have [kk' vv'] := tables s st.
rewrite !(@entry_alone _ _ _ _ _ _ _ _ _ _ _ _ id) //; try by move=> x; rewrite codom_f.
apply: eq_mattn => //.
- by apply/matrixP => i x; rewrite [LHS]mxE [RHS]mxE !entriesE /key_at /emptied (negbTE st) BB'.
- by apply/row_matrixP => x; rewrite -[x]fusedK !row_rowsub; apply: eq_row_paged.
- by apply/row_matrixP => x; rewrite -[x]fusedK !row_rowsub; apply: eq_row_paged.
Qed.

(** ... and reads no page: its row of the tables is nothing to its own rows either, which are a declared policy. *)
Theorem paged_empty_sequence__reads_no_page t tk tk' tv tv' B Q pool_k pool_v :
    length t = 0%N -> (forall u, u != t -> tk' u =1 tk u /\ tv' u =1 tv u) ->
  MAttn (entries first length B) Q (keys tk' pool_k) (values tv' pool_v) =
  MAttn (entries first length B) Q (keys tk pool_k) (values tv pool_v).
Proof.
move=> empty tables; apply: paged_table_tail_dead => s c needed; have [|-> ->] // := tables s.
by apply: contraTneq needed => ->; rewrite empty.
Qed.

(** Keys under one table and values under another, and both in other pools under one. *)
Theorem paged_independent_tables pages' tk tv (t : 'I_batch -> 'I_columns -> int) B Q pool_k pool_v
    (pool_k' : 'M_(pages' * page, dk)) (pool_v' : 'M_(pages' * page, dv)) :
    (forall s (c : 'I_columns) (j : 'I_page), (first s <= c * page + j < length s)%N ->
      row (fused s (fused c j)) (keys tk pool_k) = row (fused s (fused c j)) (keys t pool_k') /\
      row (fused s (fused c j)) (values tv pool_v) = row (fused s (fused c j)) (values t pool_v')) ->
  MAttn (entries first length B) Q (keys tk pool_k) (values tv pool_v) =
  MAttn (entries first length B) Q (keys t pool_k') (values t pool_v').
Proof. by move=> same; apply: entries_local; apply: by_page. Qed.

End Paged.
