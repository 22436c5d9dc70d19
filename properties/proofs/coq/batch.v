(** Batches (000, 001, 004). *)

From mathcomp Require Import all_ssreflect all_algebra.
From Attest Require Import definitions basics multihead.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

Section Batch.
Variables (R : realFieldType) (e : exponential R) (scale : R) (conv : convention).
Variables (batch M N cq ck cv dk dv d_o h : nat).
Variables (W : 'I_h -> weights R cq ck cv dk dv) (Wo : projection R (h * dv) d_o).
Local Notation Batched := (mmhattn_batch e scale conv W Wo).
Implicit Types (B : 'I_batch -> 'I_h -> 'M[score R]_(M, N)).
Implicit Types (Q : 'M[R]_(batch * M, cq)) (K : 'M[R]_(batch * N, ck)) (V : 'M[R]_(batch * N, cv)).

(** Entry b of a batch equals that entry run alone ... *)
Theorem batch_independence B Q K V b :
  rows_of_head (Batched B Q K V) b =
  mmhattn e scale conv W Wo (B b) (rows_of_head Q b) (rows_of_head K b) (rows_of_head V b).
Proof.
rewrite /mmhattn_batch rows_of_head_project aboveK -(multihead_fused_projection e scale conv W Wo).
by rewrite /mmhattn_fused !rows_of_head_project.
Qed.

(** ... and so depends on entry b only. *)
Theorem batch_independence__only B B' Q Q' K K' V V' b :
    B b = B' b -> rows_of_head Q b = rows_of_head Q' b -> rows_of_head K b = rows_of_head K' b ->
    rows_of_head V b = rows_of_head V' b ->
  rows_of_head (Batched B Q K V) b = rows_of_head (Batched B' Q' K' V') b.
Proof. by move=> BB' QQ' KK' VV'; rewrite !batch_independence BB' QQ' KK' VV'. Qed.

(** The 2-D, 3-D and 4-D forms of one mask give the same ... *)
Theorem batch_mask_forms (B : 'M[score R]_(M, N)) eb eh (sb : eb = batch \/ eb = 1%N) (sh : eh = h \/ eh = 1%N) Q K V :
  Batched (mask_3d (fun=> B)) Q K V = Batched (mask_2d B) Q K V /\
  Batched (mask_4d sb sh (fun _ _ => B)) Q K V = Batched (mask_2d B) Q K V.
Proof. by []. Qed.

(** ... a 3-D mask is the 4-D one of the same pages ... *)
Theorem batch_mask_forms__pages (B : 'I_batch -> 'I_h -> 'M[score R]_(M, N)) b m :
  mask_3d (fun x => B (outer x) (inner x)) b m = B b m /\
  mask_4d (or_introl (erefl batch)) (or_introl (erefl h)) B b m = B b m.
Proof.
have all n (i : 'I_n) : broadcast (or_introl (erefl n)) i = i.
  rewrite /broadcast; case: posnP => [n0|n_gt0]; last by apply: val_inj; rewrite /= modn_small.
  by exfalso; have := leq_ltn_trans (leq0n i) (ltn_ord i); rewrite n0.
by rewrite /mask_3d /mask_4d outerK innerK !all.
Qed.

(** ... and an extent of 1 serves every index. *)
Theorem batch_mask_forms__extent_1 (B : 'I_1 -> 'I_1 -> 'M[score R]_(M, N)) (b : 'I_batch) (m : 'I_h) :
  mask_4d (or_intror (erefl 1%N)) (or_intror (erefl 1%N)) B b m = B 0 0.
Proof. by rewrite /mask_4d; congr B; apply: ord1. Qed.

End Batch.
