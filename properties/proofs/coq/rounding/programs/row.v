(** A whole row, from q, k, v: scores by any-order dot products, two-pass softmax, division;
  gradual underflow included. *)
From Coq Require Import Reals List Lra Lia Psatz Permutation ZArith.
From Flocq Require Import Core.
From Attest.Rounding Require Import basics scores merge bound kernels.
Import ListNotations.
Open Scope R_scope.

Section Row.
Variables emin prec : Z.
Context {Hprec : Prec_gt_0 prec}.
Local Notation rnd := (rnd emin prec).
Local Notation uf := (uf prec).
Local Notation eta := (eta emin).

(** q.k in the order of a tree; or any other way, fused too, as long as it is [summed]. *)
Fixpoint fdot (q k : nat -> R) (t : tree nat) : R :=
  match t with Leaf _ c => rnd (q c * k c) | Node _ x y => rnd (fdot q k x + fdot q k y) end.
Lemma fdot_summed q k t : exists c, summed uf eta (map (fun c => q c * k c) (leaves nat t)) (fdot q k t) (S (depth nat
  t)) c.
Proof.
  induction t as [c|x [cx Hx] y [cy Hy]]; simpl.
  - exists 1%nat. constructor. apply rnd_near; auto.
  - exists (S (cx + cy)). rewrite map_app.
  change (S (S (Nat.max (depth nat x) (depth nat y)))) with (S (Nat.max (S (depth nat x)) (S (depth nat y)))).
    eapply summed_add; eauto. apply rnd_near; auto.
Qed.

Variable dk : nat.
Variables q : nat -> R.
Variables k : nat -> nat -> R.   (* key, component *)
Variables vv b : nat -> R.       (* one column of V; bias *)
Variables tau tauh d th_tau : R. (* the scale, as the kernel has it *)
Hypothesis Htau : 0 <= tau.
Hypothesis Htauh : tauh = tau * (1 + d).
Hypothesis Hd : Rabs d <= th_tau.
Variable order : nat -> tree nat.  (* of the dot product of each key *)
Hypothesis Horder : forall j, Permutation (leaves nat (order j)) (seq 0 dk).

(** Exact. *)
Definition x j := Sum (fun c => q c * k j c) (seq 0 dk).
Definition X j := Sum (fun c => Rabs (q c * k j c)) (seq 0 dk).
Definition t j := tau * x j.
Definition s j := t j + b j.
(** Computed. *)
Definition sh j := rnd (rnd (tauh * fdot q (k j) (order j)) + b j).

Definition e1 j := ((1 + uf) ^ dk - 1) * X j + (1 + uf) ^ dk * (2 * INR dk * eta).
Variable tbar : R.  (* any reference: the weighted mean of t is the best *)
Definition a j :=
  (1 + uf) * ((1 + th_tau) * ((1 + uf) * (tau * e1 j) + uf * Rabs (t j)) + eta) +
  uf * (Rabs (s j) + th_tau * Rabs (t j)) + eta + th_tau * Rabs (t j - tbar).

Lemma scores_are_near j : Rabs (sh j - (s j + d * tbar)) <= a j.
Proof.
  assert (P := uf_pos prec). assert (Q := eta_pos emin).
  destruct (fdot_summed q (k j) (order j)) as [c H].
  apply (dot_error uf eta) in H; try lra. rewrite map_length, (Permutation_length (Horder j)), seq_length in H.
  rewrite !Sum_map, !(fun f => Sum_perm f _ _ (Horder j)) in H. fold (x j) (X j) (e1 j) in H.
  assert (Pe : 0 <= e1 j) by (eapply Rle_trans; [apply Rabs_pos|apply H]).
  assert (S1 := score_error tau d th_tau uf eta uf eta (e1 j) (x j) (fdot q (k j) (order j)) (b j) (t j) (s j)
    (rnd (tauh * fdot q (k j) (order j))) (sh j) Htau ltac:(lra) ltac:(lra) Pe Hd H eq_refl eq_refl).
  rewrite <- Htauh in S1. specialize (S1 (rnd_near _ _ _) (rnd_near _ _ _)).
  replace (sh j - (s j + d * tbar)) with ((sh j - (s j + d * t j)) + d * (t j - tbar)) by ring.
  eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_mult. unfold a. apply Rplus_le_compat; auto.
  apply Rmult_le_compat_r; [apply Rabs_pos|auto].
Qed.

Variable fexp : R -> R.
Variables epsE lamE : R.
Hypothesis HepsE : 0 <= epsE < 1.
Hypothesis HlamE : 0 <= lamE.
Hypothesis exp_good : forall y, y <= 0 -> 0 <= fexp y /\ rounded epsE lamE (exp y) (fexp y).
Hypothesis exp_inF : forall y, inF emin prec (fexp y).

Theorem two_pass_row tl to_ Mp bigl bigo :
  let J := leaves nat to_ in let ar := A emin prec epsE lamE in
  Permutation (leaves nat tl) J -> (forall j, In j J -> s j + a j <= Mp) ->
  exists cl co, (cl + 1 <= 2 * length J /\ co + 1 <= 2 * length J)%nat /\
  (0 < low nat s ar a J Mp (depth nat tl) cl 0 bigl ->
   Rabs (finish emin prec (two_pass emin prec nat sh vv fexp tl to_) -
         Sum (fun j => exp (s j) * vv j) J / Sum (fun j => exp (s j)) J) <=
     tolerance nat s vv ar a J Mp (depth nat tl) cl (depth nat to_) co 0 bigl bigo uf eta).
Proof.
  intros J ar Hp HM.
  destruct (two_pass_tolerance emin prec nat sh vv fexp epsE lamE HepsE HlamE exp_good exp_inF
    (fun j => rnd_inF emin prec _) s a Mp (d * tbar) tl to_ bigl bigo Hp (fun j _ => scores_are_near j) HM) as (cl &
      co & C & B).
  exists cl, co. split; auto. intros HD.
  rewrite <- (shift_invariance nat s vv (leaves nat to_) 0) in B by apply leaves_ne.
  rewrite (Sum_ext (fun j => exp (s j - 0) * vv j) (fun j => exp (s j) * vv j)) in B by (intros; rewrite Rminus_0_r;
    auto).
  rewrite (Sum_ext (fun j => exp (s j - 0)) (fun j => exp (s j))) in B by (intros; rewrite Rminus_0_r; auto).
  apply B. exact HD.
Qed.
End Row.

(** binary32. *)
Definition two_pass_row_binary32 := @two_pass_row (-149) 24 eq_refl.
Definition online_tolerance_binary32 := @online_tolerance (-149) 24 eq_refl.
Definition combine_tolerance_binary32 := @combine_tolerance (-149) 24 eq_refl.

(** What these ask of an exponential can be met: by e^y rounded to binary32. *)
Definition rnd32 := kernels.rnd (-149) 24.
Theorem exponential_binary32 y :
  (0 <= uf 24 < 1 /\ 0 <= eta (-149)) /\
  (0 <= rnd32 (exp y) /\ rounded (uf 24) (eta (-149)) (exp y) (rnd32 (exp y))) /\ inF (-149) 24 (rnd32 (exp y)).
Proof.
  split; [split; [|left; apply eta_pos]; split; [left; apply uf_pos|exact (@uf_lt1 24 eq_refl)]|].
  split; [split|exact (@rnd_inF (-149) 24 eq_refl (exp y))].
  - apply (@rnd_pos (-149) 24 eq_refl). left. apply exp_pos.
  - exact (@rnd_rounded (-149) 24 eq_refl (exp y)).
Qed.
