(** A sum of weights is no smaller than the weight of its largest key, in any order: rounding is monotone. *)
From Coq Require Import Reals List Lra Lia Psatz ZArith.
From Flocq Require Import Core.
From Attest.Rounding Require Import basics merge kernels.
Import ListNotations.
Open Scope R_scope.

Section LeastSum.
Variables emin prec : Z.
Context {Hprec : Prec_gt_0 prec}.
Local Notation rnd := (rnd emin prec).
Local Notation inF := (inF emin prec).
Local Notation uf := (uf prec).

Lemma rnd_mono x y : x <= y -> rnd x <= rnd y.
Proof. intros. apply round_le; [apply FLT_exp_valid; auto|apply valid_rnd_N|auto]. Qed.
Lemma rnd_id x : inF x -> rnd x = x.
Proof. intros. apply round_generic; [apply valid_rnd_N|auto]. Qed.
Lemma rnd_0 : rnd 0 = 0.
Proof. apply round_0, valid_rnd_N. Qed.
Lemma rnd_plus x y : inF x -> inF y -> Rabs (rnd (x + y) - (x + y)) <= uf * Rabs (x + y).
Proof.
  intros Hx Hy. replace (x + y) with (x - - y) by ring. apply rnd_minus; auto. apply generic_format_opp. auto.
Qed.

Variable fexp : R -> R.
Hypothesis exp_inF : forall x, inF (fexp x).
Hypothesis exp_nonneg : forall x, 0 <= fexp x.
Variable K : Type.
Variable sh : K -> R.
Hypothesis sh_inF : forall j, inF (sh j).
Local Notation suml := (suml emin prec K sh fexp).
Local Notation wt := (wt emin prec K sh fexp).

Lemma suml_pos m t : 0 <= suml m t.
Proof.
  induction t; simpl; [apply exp_nonneg|]. rewrite <- rnd_0. apply rnd_mono. lra.
Qed.
Lemma suml_ge m t j : In j (leaves K t) -> wt m j <= suml m t.
Proof.
  induction t as [i|x IHx y IHy]; simpl; [intros [->|[]]; lra|].
  assert (Px := suml_pos m x). assert (Py := suml_pos m y). rewrite in_app_iff. intros [I|I].
  - rewrite <- (rnd_id (wt m j)) by apply exp_inF. apply rnd_mono. specialize (IHx I). lra.
  - rewrite <- (rnd_id (wt m j)) by apply exp_inF. apply rnd_mono. specialize (IHy I). lra.
Qed.
Lemma suml_ge_exp0 t : fexp 0 <= suml (tmax K sh t) t.
Proof.
  destruct (tmax_in K sh t) as (j & Ij & Ej). eapply Rle_trans; [|apply (suml_ge _ t j Ij)].
  unfold kernels.wt. rewrite Ej, Rminus_eq_0, rnd_0. lra.
Qed.

(** So are two passes, a running maximum where exp(0) is 1, and what is merged of these. *)
Variable vv : K -> R.
Definition sum_of (st : state) := snd (fst st).
Lemma two_pass_sum tl to_ : fexp 0 <= sum_of (two_pass emin prec K sh vv fexp tl to_).
Proof. apply suml_ge_exp0. Qed.
Lemma step_sum st b : fexp 0 = 1 -> inF (sum_of st) -> 1 <= sum_of st ->
  1 <= sum_of (step emin prec K sh vv fexp st b).
Proof.
  destruct st as [[m l] o]. unfold sum_of. simpl. intros E0 Fl Hl.
  assert (P1 := suml_pos (Rmax m (tmax K sh (fst b))) (fst b)).
  assert (P2 : 0 <= rnd (fexp (rnd (m - Rmax m (tmax K sh (fst b)))) * l)).
  { rewrite <- rnd_0. apply rnd_mono. apply Rmult_le_pos; [apply exp_nonneg|lra]. }
  assert (F1 : inF 1) by (rewrite <- E0; apply exp_inF).
  rewrite <- (rnd_id 1) by auto. apply rnd_mono. unfold Rmax in *. destruct (Rle_dec _ _) as [H|H].
  - assert (Q := suml_ge_exp0 (fst b)). lra.
  - rewrite Rminus_eq_0, rnd_0, E0, Rmult_1_l, (rnd_id l) in * by auto. lra.
Qed.
Lemma online_sum b bs : fexp 0 = 1 -> 1 <= sum_of (online emin prec K sh vv fexp b bs).
Proof.
  intros E0. unfold online.
  assert (Q : inF (sum_of (two_pass emin prec K sh vv fexp (fst b) (snd b))) /\
    1 <= sum_of (two_pass emin prec K sh vv fexp (fst b) (snd b))).
  { split; [apply suml_inF; auto|]. rewrite <- E0. apply two_pass_sum. }
  revert Q. generalize (two_pass emin prec K sh vv fexp (fst b) (snd b)).
  induction bs as [|b1 bs IH]; intros st [F1 L1]; simpl; auto. apply IH. split; [|apply step_sum; auto].
  destruct st as [[m l] o]. unfold sum_of. simpl. apply rnd_inF. auto.
Qed.
End LeastSum.
