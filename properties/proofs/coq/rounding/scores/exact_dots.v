(** Multiples of one power of two of which no sum has more digits than the format: their sums round to themselves, in
    any order (error-bounds.md 1.7, the exactness rule). So checked_rows.v takes rows whose products are exact. *)
From Coq Require Import Reals List Lra Lia Psatz ZArith.
From Flocq Require Import Core.
From Attest.Rounding Require Import basics kernels score_programs.
Import ListNotations.
Open Scope R_scope.

Section Exact.
Variables emin prec e : Z.
Context {Hprec : Prec_gt_0 prec}.
Hypothesis He : (emin <= e)%Z.
Definition multiple (x : R) := exists n, x = IZR n * bpow radix2 e.

Lemma multiple_kept x : multiple x -> Rabs x <= bpow radix2 (prec + e) -> rnd emin prec x = x.
Proof.
  intros (n & ->) H. apply round_generic; [apply valid_rnd_N|]. assert (P := bpow_gt_0 radix2 e). red in Hprec.
  rewrite Rabs_mult, (Rabs_pos_eq (bpow radix2 e)), bpow_plus in H by lra. apply Rmult_le_reg_r in H; auto.
  rewrite <- abs_IZR, <- IZR_Zpower in H by lia. apply le_IZR in H.
  destruct (Z.eq_dec (Z.abs n) (radix2 ^ prec)) as [E|E].
  - assert (F : generic_format radix2 (fexpn emin prec) (bpow radix2 (prec + e)))
      by (apply generic_format_bpow; unfold fexpn, FLT_exp; lia).
    rewrite bpow_plus, <- IZR_Zpower in F by lia.
    destruct (Z.abs_eq_or_opp n) as [A|A]; rewrite A in E.
    + rewrite E. auto.
    + replace n with (- radix2 ^ prec)%Z by lia. rewrite opp_IZR, Ropp_mult_distr_l_reverse.
      apply generic_format_opp. auto.
  - apply generic_format_FLT. apply (FLT_spec _ _ _ _ (Float radix2 n e)); simpl; auto. simpl in *. lia.
Qed.
Lemma multiples_add x y : multiple x -> multiple y -> multiple (x + y).
Proof. intros (n & ->) (k & ->). exists (n + k)%Z. rewrite plus_IZR. ring. Qed.
Variable f : nat -> R.
Hypothesis Hf : forall c, multiple (f c).
Lemma tree_sum_exact t : Sum (fun c => Rabs (f c)) (leaves nat t) <= bpow radix2 (prec + e) ->
  tree_sum (rnd emin prec) f t = Sum f (leaves nat t) /\ multiple (Sum f (leaves nat t)).
Proof.
  induction t as [c|a IHa b IHb]; simpl; intros H.
  - rewrite !Rplus_0_r in *. split; auto. apply multiple_kept; auto.
  - rewrite !Sum_app in *. assert (Pa : 0 <= Sum (fun c => Rabs (f c)) (leaves nat a))
      by (apply Sum_nonneg; intros; apply Rabs_pos).
    assert (Pb : 0 <= Sum (fun c => Rabs (f c)) (leaves nat b)) by (apply Sum_nonneg; intros; apply Rabs_pos).
    destruct (IHa ltac:(lra)) as [-> Ma]. destruct (IHb ltac:(lra)) as [-> Mb].
    assert (M := multiples_add _ _ Ma Mb). split; auto. apply multiple_kept; auto.
    eapply Rle_trans; [apply Rabs_triang|]. assert (A := Sum_abs f (leaves nat a)).
    assert (B := Sum_abs f (leaves nat b)).
    lra.
Qed.
End Exact.
