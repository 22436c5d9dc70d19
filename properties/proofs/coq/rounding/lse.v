(** Splits that are merged through their log-sum-exp. *)
From Coq Require Import Reals List Lra Lia Psatz Permutation.
From Attest.Rounding Require Import basics merge bound.
Import ListNotations.
Open Scope R_scope.

Section Lse.
Variable A : arith.
Hypothesis OK : sane A.

(** Merging through log-sum-exp: a split hands over q, the computed m + log l, and its normalised values.
It goes on as a
    state whose reference is q and whose sum of weights is 1; [sums_rescale_exp] and [sums_add] do the rest. *)
Theorem lse_split K (sh vv : K -> R) tl to_ m l o kl rl cl ko ro co q o' :
  sums K sh A (one K) (w_l A) (lampd A) tl m l kl rl cl ->
  sums K sh A vv (w_o A) ((1 + u A) * lamp A) to_ m o ko ro co -> Permutation tl to_ ->
  0 < l -> m <= q -> Rabs (q - (m + ln l)) <= xr A + eps1 A -> near (u A) (lam A) (o / l) o' ->
  exists tl' to', Permutation tl' to' /\ map fst to' = map fst to_ /\
    sums K sh A (one K) (w_l A) (lampd A) tl' q 1 (S kl) (S rl) (S cl) /\
    sums K sh A vv (w_o A) ((1 + u A) * lamp A) to' q o' (S ko) (S ro) (S co).
Proof.
  intros HL HO Hp Pl Hm Hq N. set (z := q - (m + ln l)) in *. exists (rescaled K z tl), (rescaled K z to_).
  split; [apply Permutation_map; auto|]. split; [unfold rescaled; rewrite map_map; auto|]. split.
  - apply (sums_normalise K sh A OK _ _ _ tl m l kl rl cl q l); auto. unfold near.
  replace (l / l) with 1 by (field; lra).
    destruct OK. rewrite Rminus_eq_0, Rabs_R0, Rabs_R1. lra.
  - apply (sums_normalise K sh A OK _ _ _ to_ m o ko ro co q l); auto.
Qed.
End Lse.
