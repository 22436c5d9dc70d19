(** softmax (000, 001, 003, 004). *)

From mathcomp Require Import all_ssreflect all_fingroup all_algebra.
From Attest Require Import definitions basics.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Softmax.
Variables (R : realFieldType) (e : exponential R).
Local Notation softmax := (softmax e).

(** sum_j alpha_ij = 1, for a row that sees a key. *)
Theorem softmax_rows_sum_to_one m n (S : 'M[score R]_(m, n)) i : sees_a_key S i -> \sum_j softmax S i j = 1.
Proof. exact: softmax_sum. Qed.

Theorem softmax_rows_sum_to_one__finite m n (A : 'M[R]_(m, n)) i : (0 < n)%N -> \sum_j softmax (finite A) i j = 1.
Proof. by case: n A => // n A _; apply/softmax_sum/sees_finite. Qed.

(** alpha_ij >= 0; > 0 for a finite score, and exactly 0 for a hidden one. *)
Theorem softmax_nonnegative m n (S : 'M[score R]_(m, n)) i j : 0 <= softmax S i j.
Proof. exact: softmax_ge0. Qed.

Theorem softmax_nonnegative__positive m n (S : 'M[score R]_(m, n)) i j : S i j != hidden -> 0 < softmax S i j.
Proof. by move=> Sij; rewrite mxE divr_gt0 ?weight_gt0 ?total_gt0 //; exists j. Qed.

Theorem softmax_nonnegative__hidden m n (S : 'M[score R]_(m, n)) i j : S i j = hidden -> softmax S i j = 0.
Proof. by move=> Sij; rewrite mxE Sij mul0r. Qed.

(** softmax(A C_pi) = softmax(A) C_pi. *)
Theorem softmax_column_permutation m n (pi : 'S_n) (S : 'M[score R]_(m, n)) :
  softmax (col_perm pi S) = col_perm pi (softmax S).
Proof.
apply/matrixP => i j; rewrite !mxE; congr (_ / _).
by rewrite /total [RHS](reindex_inj (@perm_inj _ pi)); apply: eq_bigr => l _; rewrite mxE.
Qed.

(** softmax(pi(x)) = pi(softmax(x)) for one row x. *)
Theorem softmax_permutation_equivariance n (pi : 'S_n) (x : 'rV[score R]_n) :
  softmax (col_perm pi x) = col_perm pi (softmax x).
Proof. exact: softmax_column_permutation. Qed.

(** Row i of softmax(A) depends on row i of A only, and on nothing else: not on where it stands. *)
Theorem softmax_row_locality m m' n (S : 'M[score R]_(m, n)) (S' : 'M[score R]_(m', n)) i i' :
  row i S = row i' S' -> row i (softmax S) = row i' (softmax S').
Proof. by move/rowP => SS'; apply: softmax_local => j; have := SS' j; rewrite !mxE. Qed.

(** softmax(R_pi A) = R_pi softmax(A). *)
Theorem softmax_row_permutation m n (pi : 'S_m) (S : 'M[score R]_(m, n)) :
  softmax (row_perm pi S) = row_perm pi (softmax S).
Proof. by rewrite !row_permEsub softmax_rowsub. Qed.

(** The column-wise softmax of 002 is softmax(A^T)^T. *)
Theorem softmax_columnwise_is_transpose m n (S : 'M[score R]_(m, n)) : softmax_columns e S = (softmax S^T)^T.
Proof.
apply/matrixP => i j; rewrite !mxE; congr (_ / _).
by apply: eq_bigr => l _; rewrite mxE.
Qed.

(** softmax(x + c1) = softmax(x): one number per row, added to every score that is not hidden. *)
Theorem softmax_shift_invariance m n (t : 'I_m -> R) (S : 'M[score R]_(m, n)) :
  softmax (\matrix_(i, j) omap (fun x => x + t i) (S i j)) = softmax S.
Proof. exact: softmax_shift. Qed.

Theorem softmax_shift_invariance__finite m n (t : 'I_m -> R) (A : 'M[R]_(m, n)) :
  softmax (finite (\matrix_(i, j) (A i j + t i))) = softmax (finite A).
Proof.
rewrite -[RHS](softmax_shift_invariance t); congr softmax.
by apply/matrixP => i j; rewrite !mxE.
Qed.

(** x_j >= x_l => alpha_j >= alpha_l, where the exponential is monotone: its two laws alone do not make it so. *)
Theorem softmax_monotone m n (A : 'M[R]_(m, n)) i j l :
    {homo e : a b / a <= b} ->
  A i l <= A i j -> softmax (finite A) i l <= softmax (finite A) i j.
Proof.
move=> e_mono Alj; rewrite !mxE /= ler_wpmul2r ?e_mono //.
by rewrite invr_ge0 total_ge0.
Qed.

End Softmax.
