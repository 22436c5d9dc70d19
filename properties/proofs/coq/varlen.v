(** Sequences together: token i of the queries is of sequence sq i, key j of sequence sk j, None: of none. A padded batch
    has them at the places of its entries, a packed one after another; inner is what mask, causal form and window show. *)

From mathcomp Require Import all_ssreflect all_fingroup all_algebra.
From Attest Require Import definitions basics masked causal shown.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Definition together M N (sq : 'I_M -> option nat) (sk : 'I_N -> option nat) (inner : 'M[bool]_(M, N)) : 'M[bool]_(M, N) :=
  \matrix_(i, j) [&& sq i != None, sq i == sk j & inner i j].

Section Varlen.
Variables (R : realFieldType) (e : exponential R) (scale : R) (conv : convention).
Local Notation MAttn := (mattn e scale conv).
Local Notation additive := (additive R).

(** Each sequence is as if it were alone: s has the queries f and the keys g. *)
Theorem varlen_equals_separate M N m n dk dv (sq : 'I_M -> option nat) (sk : 'I_N -> option nat) s (f : 'I_m -> 'I_M)
    (g : 'I_n -> 'I_N) (inner : 'M[bool]_(M, N)) (Q : 'M_(M, dk)) (K : 'M_(N, dk)) (V : 'M_(N, dv)) :
    injective g -> (forall i, sq (f i) = Some s) -> (forall j, (sk j == Some s) = (j \in codom g)) ->
  rowsub f (MAttn (additive (together sq sk inner)) Q K V) =
  MAttn (additive (\matrix_(i, j) inner (f i) (g j))) (rowsub f Q) (rowsub g K) (rowsub g V).
Proof.
move=> g_inj fs gs; rewrite (part_alone _ _ _ _ _ _ g_inj) => [|i j]; last first.
  by rewrite mxE fs /= eq_sym gs => /andP[].
apply: eq_mattn => //; apply/matrixP => i j; rewrite !mxE fs /=.
by rewrite eq_sym gs codom_f.
Qed.

(** A row does not depend on keys and values of other sequences. *)
Theorem varlen_neighbours_dead M N dk dv sq sk (inner : 'M[bool]_(M, N)) (i : 'I_M) (Q Q' : 'M_(M, dk))
    (K K' : 'M_(N, dk)) (V V' : 'M_(N, dv)) :
    row i Q = row i Q' -> (forall j, sk j = sq i -> row j K = row j K' /\ row j V = row j V') ->
  row i (MAttn (additive (together sq sk inner)) Q K V) = row i (MAttn (additive (together sq sk inner)) Q' K' V').
Proof.
move=> QQ' KV; apply: mattn_local => // j; rewrite additive_hidden mxE => /and3P[_ /eqP ij _].
by apply: KV.
Qed.

(** Sequences in another order: their tokens are, and what each is of moves along. *)
Theorem varlen_order M N dk dv sq sk (inner : 'M[bool]_(M, N)) (pi : 'S_M) (sigma : 'S_N) (Q : 'M_(M, dk))
    (K : 'M_(N, dk)) (V : 'M_(N, dv)) :
  MAttn (additive (together (sq \o pi) (sk \o sigma) (\matrix_(i, j) inner (pi i) (sigma j)))) (rowsub pi Q)
    (rowsub sigma K) (rowsub sigma V) =
  rowsub pi (MAttn (additive (together sq sk inner)) Q K V).
Proof.
rewrite (part_alone _ _ _ _ _ _ (@perm_inj _ sigma)) => [|i j _]; last by rewrite -(permKV sigma j) codom_f.
by apply: eq_mattn => //; apply/matrixP => i j; rewrite !mxE.
Qed.

(** A sequence that loses its keys, its queries or both: g lists the keys that are left, f queries of others. *)
Theorem varlen_empty_sequences M N m n dk dv sq sk t (f : 'I_m -> 'I_M) (g : 'I_n -> 'I_N) (inner : 'M[bool]_(M, N))
    (Q : 'M_(M, dk)) (K : 'M_(N, dk)) (V : 'M_(N, dv)) :
    injective g -> (forall i, sq (f i) != Some t) -> (forall j, j \notin codom g -> sk j = Some t) ->
  MAttn (additive (together (sq \o f) (sk \o g) (\matrix_(i, j) inner (f i) (g j)))) (rowsub f Q) (rowsub g K)
    (rowsub g V) =
  rowsub f (MAttn (additive (together sq sk inner)) Q K V).
Proof.
move=> g_inj ft gt; rewrite (part_alone _ _ _ _ _ _ g_inj) => [|i j].
  by apply: eq_mattn => //; apply/matrixP => i j; rewrite !mxE.
rewrite mxE => /and3P[_ /eqP ij _]; apply: contraT => /gt jt.
by move: (ft i); rewrite ij jt eqxx.
Qed.

(** Packed sequences are one, of which a row sees its own sequence's keys: what the block-diagonal mask shows. *)
Theorem varlen_equals_block_mask M N dk dv sq sk (inner : 'M[bool]_(M, N)) (Q : 'M_(M, dk)) (K : 'M_(N, dk))
    (V : 'M_(N, dv)) i c :
  let w j := e (scale * (Q *m K^T) i j) in
  let own j := [&& sq i != None, sq i == sk j & inner i j] in
  MAttn (additive (together sq sk inner)) Q K V i c = (\sum_(j | own j) w j * V j c) / \sum_(j | own j) w j.
Proof. by move=> w own; rewrite over_shown; congr (_ / _); apply: eq_bigl => j; rewrite mxE. Qed.

(** Packed and padded: a sequence with the same queries, keys and values has the same rows, wherever they stand. *)
Theorem varlen_equals_padded M N M' N' m n dk dv sq sk sq' sk' s s' (f : 'I_m -> 'I_M) (g : 'I_n -> 'I_N)
    (f' : 'I_m -> 'I_M') (g' : 'I_n -> 'I_N') (inner : 'M[bool]_(M, N)) (inner' : 'M[bool]_(M', N')) (Q : 'M_(M, dk))
    (K : 'M_(N, dk)) (V : 'M_(N, dv)) (Q' : 'M_(M', dk)) (K' : 'M_(N', dk)) (V' : 'M_(N', dv)) :
    injective g -> (forall i, sq (f i) = Some s) -> (forall j, (sk j == Some s) = (j \in codom g)) ->
    injective g' -> (forall i, sq' (f' i) = Some s') -> (forall j, (sk' j == Some s') = (j \in codom g')) ->
    (forall i j, inner (f i) (g j) = inner' (f' i) (g' j)) ->
    rowsub f Q = rowsub f' Q' -> rowsub g K = rowsub g' K' -> rowsub g V = rowsub g' V' ->
  rowsub f (MAttn (additive (together sq sk inner)) Q K V) =
  rowsub f' (MAttn (additive (together sq' sk' inner')) Q' K' V').
Proof.
move=> gi fs gs gi' fs' gs' ii' QQ KK VV.
rewrite (varlen_equals_separate inner Q K V gi fs gs) (varlen_equals_separate inner' Q' K' V' gi' fs' gs') QQ KK VV.
by apply: eq_mattn => //; apply/matrixP => i j; rewrite !mxE ii'.
Qed.

(** What q, k and v hold in no sequence does not matter to the rows of one. *)
Theorem varlen_padding_dead M N dk dv sq sk (inner : 'M[bool]_(M, N)) (i : 'I_M) (Q Q' : 'M_(M, dk))
    (K K' : 'M_(N, dk)) (V V' : 'M_(N, dv)) :
    row i Q = row i Q' -> (forall j, sk j != None -> row j K = row j K' /\ row j V = row j V') ->
  row i (MAttn (additive (together sq sk inner)) Q K V) = row i (MAttn (additive (together sq sk inner)) Q' K' V').
Proof.
move=> QQ' KV; apply: mattn_local => // j; rewrite additive_hidden mxE => /and3P[si /eqP ij _].
by apply: KV; rewrite -ij.
Qed.

(** Bottom-right positions that are the sequence's own, i + N_b - M_b: its own causal attention. *)
Theorem varlen_alignment M N m n dk dv sq sk s (f : 'I_m -> 'I_M) (g : 'I_n -> 'I_N) (inner : 'M[bool]_(M, N))
    (Q : 'M_(M, dk)) (K : 'M_(N, dk)) (V : 'M_(N, dv)) :
    injective g -> (forall i, sq (f i) = Some s) -> (forall j, (sk j == Some s) = (j \in codom g)) ->
    (forall i j, inner (f i) (g j) = (j + m <= i + n)%N) ->
  rowsub f (MAttn (additive (together sq sk inner)) Q K V) =
  MAttn (additive (causal_bottom_right m n)) (rowsub f Q) (rowsub g K) (rowsub g V).
Proof.
move=> g_inj fs gs ij; rewrite (varlen_equals_separate inner Q K V g_inj fs gs).
by apply: eq_mattn => //; apply/matrixP => i j; rewrite !mxE ij.
Qed.

(** Tokens behind the last sequence are not read: n keys that are of none may be there or not. *)
Theorem varlen_slack M N n dk dv sq sk (inner : 'M[bool]_(M, N + n)) (Q : 'M_(M, dk)) (K : 'M_(N, dk))
    (K' : 'M_(n, dk)) (V : 'M_(N, dv)) (V' : 'M_(n, dv)) :
    (forall j, sk (@rshift N n j) = None) ->
  MAttn (additive (together sq sk inner)) Q (col_mx K K') (col_mx V V') =
  MAttn (additive (together sq (sk \o @lshift N n) (\matrix_(i, j) inner i (lshift n j)))) Q K V.
Proof.
move=> none; rewrite tail_deleted => [|i j]; last by rewrite mxE none; case: (sq i).
by apply: eq_mattn => //; apply/matrixP => i j; rewrite !mxE.
Qed.

(** One sequence is the plain call. *)
Theorem varlen_single M N dk dv s (inner : 'M[bool]_(M, N)) (Q : 'M_(M, dk)) (K : 'M_(N, dk)) (V : 'M_(N, dv)) :
  MAttn (additive (together (fun=> Some s) (fun=> Some s) inner)) Q K V = MAttn (additive inner) Q K V.
Proof. by apply: eq_mattn => //; apply/matrixP => i j; rewrite !mxE eqxx. Qed.

End Varlen.
