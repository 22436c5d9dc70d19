(** What errors of exponents that are relative to their sizes do to a sum of exponentials: however small a term is, no
    more than if the exponents were as large as the logarithm of the number of terms. *)
From Coq Require Import Reals List Lra Lia.
From Attest.Rounding Require Import basics.
Import ListNotations.
Open Scope R_scope.

Lemma power_below theta t : 0 <= theta <= 1 -> 0 < t -> exp (theta * ln t) <= 1 + theta * (t - 1).
Proof.
  intros B Pt. assert (Pw : 0 < 1 + theta * (t - 1)).
  { assert (0 <= theta * t) by (apply Rmult_le_pos; lra). destruct (Req_dec theta 1) as [->|N]; lra. }
  rewrite <- (exp_ln (1 + theta * (t - 1))) by auto. apply exp_mono. set (w := 1 + theta * (t - 1)) in *.
  assert (Iw : 0 < / w) by (apply Rinv_0_lt_compat; auto).
  assert (L1 := ln_le_minus1 (t * / w) ltac:(apply Rmult_lt_0_compat; lra)). assert (L2 := ln_le_minus1 (/ w) Iw).
  rewrite ln_mult in L1 by auto. rewrite ln_Rinv in L1, L2 by auto.
  assert (M1 : theta * (ln t + - ln w) <= theta * (t * / w - 1)) by (apply Rmult_le_compat_l; lra).
  assert (M2 : (1 - theta) * - ln w <= (1 - theta) * (/ w - 1)) by (apply Rmult_le_compat_l; lra).
  assert (E : theta * (t * / w - 1) + (1 - theta) * (/ w - 1) = 0).
  { replace (theta * (t * / w - 1) + (1 - theta) * (/ w - 1)) with ((1 + theta * (t - 1)) * / w - 1) by ring.
    fold w. rewrite Rinv_r by lra. ring. }
  lra.
Qed.

Section Entropy.
Context {I : Type}.
Variable l : list I.
Variables V rho : I -> R.
Variables theta e at_ : R.
Hypothesis NE : l <> [].
Hypothesis Htheta : 0 <= theta <= 1.
Hypothesis HV : forall c, In c l -> 0 < V c.
(** Relative to how far the term is below at_. *)
Hypothesis Hrho : forall c, In c l -> Rabs (rho c) <= e + theta * (at_ - ln (V c)).
Local Notation S := (Sum V l).
Local Notation n := (INR (length l)).

Lemma sum_positive : 0 < S.
Proof.
  clear - NE HV. destruct l as [|c l']; [congruence|]. simpl. assert (0 < V c) by (apply HV; left; auto).
  assert (0 <= Sum V l'); [|lra]. apply Sum_nonneg. intros x Ix. left. apply HV. right. auto.
Qed.
Lemma n_ge1 : 1 <= n.
Proof. destruct l as [|c l']; [congruence|]. apply (le_INR 1). simpl. lia. Qed.

Lemma exponents_spread : let mu := e + theta * (at_ - ln S + ln n) in
  exp (- mu) * S <= Sum (fun c => V c * exp (rho c)) l <= exp mu * S.
Proof.
  intros mu. assert (PS := sum_positive). assert (N1 := n_ge1). assert (In0 : 0 < / n) by (apply Rinv_0_lt_compat; lra).
  (* t c = S / (V c n), its mean is 1 *)
  set (t := fun c => S * / (V c * n)).
  assert (Tp : forall c, In c l -> 0 < t c).
  { intros c Ic. unfold t. apply Rmult_lt_0_compat; auto. apply Rinv_0_lt_compat. apply Rmult_lt_0_compat; auto. lra. }
  assert (Tl : forall c, In c l -> e + theta * (at_ - ln (V c)) = mu + theta * ln (t c)).
  { intros c Ic. assert (Pc := HV c Ic). unfold t, mu.
    rewrite ln_mult, ln_Rinv, ln_mult by (auto; try apply Rinv_0_lt_compat; try apply Rmult_lt_0_compat; lra). ring. }
  assert (Mean : Sum (fun c => V c * (1 + theta * (t c - 1))) l = S).
  { assert (E : Sum (fun c => V c * (1 + theta * (t c - 1))) l = Sum (fun c => (1 - theta) * V c + theta * (S * / n))
      l).
    { apply Sum_ext. intros c Ic. assert (Pc := HV c Ic). unfold t. field. lra. }
    rewrite E, Sum_plus, Sum_scal, Sum_const. field. lra. }
  split.
  - assert (Low : Sum (fun c => exp (- mu) * (V c * (1 - theta * (t c - 1)))) l <= Sum (fun c => V c * exp (rho c)) l).
    { apply Sum_le. intros c Ic. assert (Pc := HV c Ic). assert (R1 := Rabs_bounds _ _ (Hrho c Ic)).
      rewrite (Tl c Ic) in R1. assert (L := ln_le_minus1 _ (Tp c Ic)).
      assert (theta * ln (t c) <= theta * (t c - 1)) by (apply Rmult_le_compat_l; lra).
      assert (E1 := exp_ge_1 (- (theta * (t c - 1)))). assert (Em := exp_pos (- mu)).
      assert (E2 : exp (- mu) * (1 - theta * (t c - 1)) <= exp (rho c)).
      { apply Rle_trans with (exp (- mu) * exp (- (theta * (t c - 1)))); [apply Rmult_le_compat_l; lra|].
        rewrite <- exp_plus. apply exp_mono. lra. }
      replace (exp (- mu) * (V c * (1 - theta * (t c - 1)))) with (V c * (exp (- mu) * (1 - theta * (t c - 1)))) by
          ring.
      apply Rmult_le_compat_l; lra. }
    rewrite Sum_scal in Low.
    assert (M2 : Sum (fun c => V c * (1 - theta * (t c - 1))) l = S).
    { rewrite (Sum_ext _ (fun c => 2 * V c - V c * (1 + theta * (t c - 1)))) by (intros; ring).
      rewrite Sum_minus, Sum_scal, Mean. ring. }
    rewrite M2 in Low. exact Low.
  - apply Rle_trans with (Sum (fun c => exp mu * (V c * (1 + theta * (t c - 1)))) l).
    + apply Sum_le. intros c Ic. assert (Pc := HV c Ic). assert (R1 := Rabs_bounds _ _ (Hrho c Ic)).
      rewrite (Tl c Ic) in R1. assert (Pb := power_below theta (t c) Htheta (Tp c Ic)). assert (Em := exp_pos mu).
      replace (exp mu * (V c * (1 + theta * (t c - 1)))) with (V c * (exp mu * (1 + theta * (t c - 1)))) by ring.
      apply Rmult_le_compat_l; [lra|]. apply Rle_trans with (exp mu * exp (theta * ln (t c))).
      * rewrite <- exp_plus. apply exp_mono. lra.
      * apply Rmult_le_compat_l; lra.
    + rewrite Sum_scal, Mean. lra.
Qed.
End Entropy.
