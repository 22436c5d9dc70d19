(** How large any partial result gets: no overflow (error-bounds.md, D3 and D5). *)
From Coq Require Import Reals List Lra Lia Psatz Permutation.
From Attest.Rounding Require Import basics merge bound.
Import ListNotations.
Open Scope R_scope.

Section Sizes.
Variable A : arith.
Hypothesis OK : sane A.

(** No partial sum exceeds (1+u)^k e^((1+thE)T + X r) times the sum of |v|, but for what underflow adds. *)
Theorem sums_size K sh d v w0 lamw ts m y k r c : 0 < d -> 1 <= w0 -> 0 <= lamw -> sums K sh A v w0 lamw ts m y k r c ->
  Rabs y <= P A w0 k * (gain A r * Sum (fun t => Rabs (v (fst t))) ts) + lost K sh A d v w0 lamw ts m k r c.
Proof.
  intros Hd W L H. destruct (sums_spec K sh A OK d Hd v w0 lamw W L _ _ _ _ _ _ H) as [F C].
  eapply Rle_trans; [apply (channel_size K sh A d v w0 lamw _ _ _ _ _ _ C)|]. apply Rplus_le_compat_r.
  apply Rmult_le_compat_l; [assert (Q := P_ge A OK w0 W k); lra|]. unfold size_sum. rewrite <- Sum_scal. apply Sum_le.
  intros t It.
  apply Rmult_le_compat_r; [apply Rabs_pos|]. apply known_gain; auto. rewrite Forall_forall in F. auto.
Qed.
End Sizes.
