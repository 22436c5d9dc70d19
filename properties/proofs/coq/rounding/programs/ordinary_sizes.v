(** Rows of ordinary length: what the bounds of kernels without a maximum near their reference ask of sizes is met, and
    the factor that underflow has is 2, as in error-bounds.md (P7). *)
From Coq Require Import Reals List Lra Lia Psatz Permutation ZArith.
From Flocq Require Import Core.
From Attest.Rounding Require Import basics merge bound documented kernels any_reference.
Import ListNotations.
Open Scope R_scope.

Lemma exp_le_inv x : 0 <= x < 1 -> exp x <= / (1 - x).
Proof.
  intros H. assert (Q := exp_ge_1 (- x)). rewrite exp_Ropp in Q. rewrite <- (Rinv_inv (exp x)).
  apply Rinv_le_contravar; lra.
Qed.
Lemma exp_times k x : exp x ^ k = exp (INR k * x).
Proof. induction k; [simpl; rewrite Rmult_0_l, exp_0; auto|]. rewrite S_INR. simpl. rewrite IHk, <- exp_plus. f_equal.
ring. Qed.
Lemma pow_le_exp x k : 0 <= x -> (1 + x) ^ k <= exp (INR k * x).
Proof. intros. rewrite <- exp_times. apply pow_incr. assert (Q := exp_ge_1 x). lra. Qed.
Lemma ln_2_le : ln 2 <= 3 / 4.
Proof.
  rewrite <- (ln_exp (3 / 4)). left. apply ln_increasing; [lra|].
  replace (3 / 4) with (INR 6 * / 8) by (simpl; lra). rewrite <- exp_times.
  apply Rlt_le_trans with ((1 + / 8) ^ 6); [lra|]. apply pow_incr. assert (Q := exp_ge_1 (/ 8)). lra.
Qed.
Lemma ln_2_pos : 0 <= ln 2.
Proof. rewrite <- ln_1. left. apply ln_increasing; lra. Qed.

Section Sizes.
Variables emin prec : Z.
Context {Hprec : Prec_gt_0 prec}.
Local Notation uf := (uf prec).
Local Notation eta := (eta emin).
Variables epsE lamE : R.
Hypothesis HepsE : 0 <= epsE < 1.
Hypothesis HlamE : 0 <= lamE.
Local Notation A0 := (A emin prec epsE lamE).
Local Notation A0_sane := (A_sane emin prec epsE lamE HepsE HlamE).
Local Notation e1 := (epsE / (1 - epsE)).
Variable K : Type.
Variable J : list K.
Variable r : nat.
Local Notation n := (length J).

(** Roundings of a weight, exponentials of a weight, what two underflows make of each other, and what underflow may take
    in all, of 4 n operations on a sum. *)
Definition ordinary := (1 <= n)%nat /\ INR (kk K J r) * uf <= / 8 /\ (1 + INR r) * e1 <= / 8 /\
  INR r * (lamE * (17 + 16 * INR r)) <= 1 /\ INR n * ((1 + 2 * INR r) * lamE + 4 * eta) <= / 64.
Hypothesis H : ordinary.

Lemma ordinary_pow : (1 + uf) ^ kk K J r <= 8 / 7.
Proof.
  destruct H as (_ & H1 & _). assert (U0 := uf_pos prec). eapply Rle_trans; [apply pow_le_exp; lra|].
  assert (0 <= INR (kk K J r) * uf) by (apply Rmult_le_pos; [apply pos_INR|lra]).
  eapply Rle_trans; [apply exp_le_inv; lra|].
  replace (8 / 7) with (/ (1 - / 8)) by field. apply Rinv_le_contravar; lra.
Qed.
Lemma e1_pos : 0 <= e1.
Proof. apply Rmult_le_pos; [lra|]. left. apply Rinv_0_lt_compat. lra. Qed.
Lemma ordinary_gain : gain A0 r <= 8 / 7.
Proof.
  destruct H as (_ & _ & H2 & _). assert (E0 := e1_pos). unfold gain, X, eps1. simpl. rewrite Rmult_0_r, Rplus_0_l.
  assert (0 <= (1 + INR r) * e1) by (apply Rmult_le_pos; [assert (Q := pos_INR r); lra|auto]).
  rewrite Rplus_0_l, Rmult_0_r, Rplus_0_l. eapply Rle_trans; [apply exp_le_inv; lra|].
  replace (8 / 7) with (/ (1 - / 8)) by field. apply Rinv_le_contravar; lra.
Qed.
Lemma small_losses : 0 <= (1 + 2 * INR r) * lamE /\ INR r * lamE <= / 128 /\ INR (4 * n - 1) * eta <= INR n * (4 * eta).
Proof.
  destruct H as (Nn & _ & _ & _ & H4). assert (Et := eta_pos emin). assert (Ir := pos_INR r).
  assert (I1 : 1 <= INR n) by (apply (le_INR 1); auto).
  assert (R0 : 0 <= INR r * lamE) by (apply Rmult_le_pos; lra). split; [lra|]. split.
  - assert (1 * ((1 + 2 * INR r) * lamE + 4 * eta) <= INR n * ((1 + 2 * INR r) * lamE + 4 * eta))
      by (apply Rmult_le_compat_r; lra). lra.
  - assert (I4 : INR (4 * n - 1) <= INR (4 * n)) by (apply le_INR; lia). rewrite mult_INR in I4.
    replace (INR 4) with 4 in I4 by (simpl; lra).
    assert (INR (4 * n - 1) * eta <= 4 * INR n * eta) by (apply Rmult_le_compat_r; lra). lra.
Qed.
Lemma ordinary_factor : g A0 ^ r <= 4 / 3.
Proof.
  destruct small_losses as (_ & L2 & _). destruct H as (_ & _ & H2 & _). assert (E0 := e1_pos).
  assert (Ir := pos_INR r). apply Rle_trans with (exp (e1 + lamE) ^ r).
  - apply pow_incr. assert (G0 := g_ge1 A0 A0_sane). split; [lra|]. unfold g, eps1. simpl (xr A0). simpl (eps A0).
    simpl (lame A0). rewrite Rplus_0_l, exp_plus. assert (X1 := exp_ge_1 lamE). assert (X2 := exp_ge1 e1 E0).
    assert (exp e1 * (1 + lamE) <= exp e1 * exp lamE) by (apply Rmult_le_compat_l; lra).
    assert (1 * lamE <= exp e1 * lamE) by (apply Rmult_le_compat_r; lra). lra.
  - rewrite exp_times. assert (P1 : 0 <= INR r * e1) by (apply Rmult_le_pos; lra).
    assert (P2 : 0 <= INR r * lamE) by (apply Rmult_le_pos; lra).
    eapply Rle_trans; [apply exp_le_inv; lra|]. replace (4 / 3) with (/ (1 - / 4)) by field.
    apply Rinv_le_contravar; lra.
Qed.
(** What a weight loses by exponentials. *)
Lemma ordinary_by_exp x : x <= lamE * (1 + INR r * gain A0 r) -> 0 <= x ->
  x + INR r * (lamE * (17 + 16 * INR r) * x) <= 2 * ((1 + 2 * INR r) * lamE).
Proof.
  intros Hx X0. assert (Gn := ordinary_gain). destruct H as (_ & _ & _ & H3 & _). assert (Ir := pos_INR r).
  assert (lamE * (INR r * gain A0 r) <= lamE * (INR r * (8 / 7)))
    by (apply Rmult_le_compat_l; auto; apply Rmult_le_compat_l; auto).
  assert (0 <= lamE * INR r) by (apply Rmult_le_pos; auto).
  assert (INR r * (lamE * (17 + 16 * INR r)) * x <= 1 * x) by (apply Rmult_le_compat_r; auto). lra.
Qed.
Local Notation lost_of n := (most_lost A0 n r (4 * n - 1)).
Lemma ordinary_lost : 0 <= lost_of n <= / 16.
Proof.
  assert (Pw := ordinary_pow). assert (Gr := ordinary_factor). assert (U0 := uf_pos prec). assert (Et := eta_pos emin).
  destruct small_losses as (L1 & L2 & L3). assert (Q4 : INR n * ((1 + 2 * INR r) * lamE + 4 * eta) <= / 64) by apply H.
  assert (In0 := pos_INR n). assert (Ir := pos_INR r). assert (Gp := gain_pos A0 r).
  assert (G1 := pow_ge1 (u A0) (kk K J r) (s_u _ A0_sane)).
  assert (G2 : 1 <= g A0 ^ r) by (apply pow_R1_Rle, g_ge1, A0_sane). change (u A0) with uf in *.
  unfold most_lost. change (u A0) with uf. change (lampd A0) with 0. change (lam A0) with eta. fold (kk K J r).
  set (b := by_exp A0 (w_l A0) 0 r). assert (Wl : 0 <= w_l A0) by (unfold w_l; simpl; lra).
  assert (B0 : 0 <= b) by (apply by_exp_pos; auto using A0_sane; lra).
  assert (Gm : lamE * (INR r * gain A0 0) <= lamE * (INR r * gain A0 r)).
  { apply Rmult_le_compat_l; [lra|]. apply Rmult_le_compat_l; auto. apply gain_mono; [apply A0_sane|lia]. }
  assert (B1 : b <= lamE * (1 + INR r * gain A0 r)).
  { unfold b, by_exp, lam0, w_l. simpl (upd A0). simpl (lame A0).
    assert (Q := Rmin_l 0 ((1 + 0) * lamE)). lra. }
  assert (Eb : twice_lost A0 (part r) (w_l A0) 0 r = INR r * (lamE * (17 + 16 * INR r) * b)).
  { unfold twice_lost, part. fold b. rewrite Rinv_inv. simpl (lame A0). ring. }
  rewrite Eb. assert (Bb := ordinary_by_exp b B1 B0). set (t := INR r * (lamE * (17 + 16 * INR r) * b)) in *.
  assert (T0 : 0 <= t) by (unfold t; repeat apply Rmult_le_pos; lra).
  assert (I0 : 0 <= INR (4 * n - 1) * eta) by (apply Rmult_le_pos; [apply pos_INR|lra]).
  assert (S0 : 0 <= INR n * (0 + b + t)) by (apply Rmult_le_pos; lra).
  assert (S1 : INR n * (0 + b + t) <= INR n * (2 * ((1 + 2 * INR r) * lamE))) by (apply Rmult_le_compat_l; lra).
  assert (S2 : INR n * (0 + b + t) + INR (4 * n - 1) * eta <= / 32).
  { assert (0 <= INR n * (4 * eta)) by (apply Rmult_le_pos; lra). lra. }
  assert (GG : 1 <= (1 + uf) ^ kk K J r * g A0 ^ r) by (apply times_ge1; auto).
  assert (GG2 : (1 + uf) ^ kk K J r * g A0 ^ r <= 8 / 7 * (4 / 3)) by (apply Rmult_le_compat; lra).
  split; [apply Rmult_le_pos; lra|].
  assert ((1 + uf) ^ kk K J r * g A0 ^ r * (INR n * (0 + b + t) + INR (4 * n - 1) * eta) <= 8 / 7 * (4 / 3) * / 32)
    by (apply Rmult_le_compat; lra). lra.
Qed.

(** A sum of weights near 1 or above has at least half of that in truth. *)
Lemma ordinary_room del : del <= e1 -> let Ag := with_gap A0 (ln 2) in
  P Ag (w_l Ag) (kk K J r) <=
    exp (ln 2) * (exp (- del) - most_lost Ag n r (4 * n - 1)).
Proof.
  intros Hd Ag. assert (L := ordinary_lost). assert (Pw := ordinary_pow). destruct H as (_ & _ & H2 & _).
  change (most_lost Ag n r (4 * n - 1)) with (lost_of n).
  assert (E0 := e1_pos). assert (Ir := pos_INR r). assert (0 <= INR r * e1) by (apply Rmult_le_pos; auto).
  rewrite exp_ln by lra. assert (Q := exp_ge_1 (- del)).
  set (x := lost_of n) in *. clearbody x.
  unfold P, w_l. simpl (upd Ag). simpl (u Ag). lra.
Qed.

(** The logarithm of a sum of n weights is at most ln n + 1. *)
Lemma ordinary_log : P A0 (w_l A0) (kk K J r) * (INR n * gain A0 r) + lost_of n <= exp (ln (INR n) + 1).
Proof.
  assert (L := ordinary_lost). assert (Pw := ordinary_pow). assert (Gn := ordinary_gain). destruct H as (Nn & _).
  assert (I1 : 1 <= INR n) by (apply (le_INR 1); auto). rewrite exp_plus, exp_ln by lra.
  assert (Q : 2 <= exp 1) by (assert (Q := exp_ge_1 1); lra). assert (U0 := uf_pos prec).
  assert (G1 := pow_ge1 uf (kk K J r) ltac:(lra)). assert (Gp := gain_pos A0 r).
  unfold P, w_l. simpl (upd A0). change (u A0) with uf.
  set (x := lost_of n) in *. clearbody x.
  assert ((1 + 0) * (1 + uf) ^ kk K J r * (INR n * gain A0 r) <= 8 / 7 * (INR n * (8 / 7))).
  { apply Rmult_le_compat; [lra|apply Rmult_le_pos; lra|lra|]. apply Rmult_le_compat_l; lra. }
  assert (INR n * 2 <= INR n * exp 1) by (apply Rmult_le_compat_l; lra). lra.
Qed.

(** The denominator stays positive. *)
Lemma bernoulli x k : 0 <= x <= 1 -> 1 - INR k * x <= (1 - x) ^ k.
Proof.
  intros B. induction k as [|k IH]; [simpl; lra|]. rewrite S_INR. simpl pow.
  assert (Q := pow_le (1 - x) k ltac:(lra)). assert (Ik := pos_INR k).
  assert (0 <= INR k * x) by (apply Rmult_le_pos; lra).
  assert ((1 - x) * (1 - INR k * x) <= (1 - x) * (1 - x) ^ k) by (apply Rmult_le_compat_l; lra).
  assert (0 <= x * (INR k * x)) by (apply Rmult_le_pos; lra). lra.
Qed.
Section Denominator.
Variable g0 : R.
Hypothesis Hg0 : 0 <= g0 <= ln 2.
Hypothesis K1 : (1 <= kk K J r)%nat.
Variables s a : K -> R.
Variable Mp : R.
Local Notation Ag := (with_gap A0 g0).

Lemma ordinary_roundings : INR (cD K J r) * uf <= 3 / 8.
Proof.
  destruct H as (Nn & H1 & _). assert (U0 := uf_pos prec).
  assert (Ik : 1 <= INR (kk K J r)) by (apply (le_INR 1); auto).
  assert (Us : uf <= / 8) by (assert (1 * uf <= INR (kk K J r) * uf) by (apply Rmult_le_compat_r; lra); lra).
  assert (Le : (cD K J r <= 2 * kk K J r + 1)%nat) by (unfold cD, kk; lia). apply le_INR in Le.
  rewrite plus_INR, mult_INR in Le. simpl (INR 2) in Le. simpl (INR 1) in Le.
  assert (INR (cD K J r) * uf <= (2 * INR (kk K J r) + 1) * uf) by (apply Rmult_le_compat_r; lra). lra.
Qed.
Local Notation ops := (4 * n - 1)%nat.
Lemma ordinary_LD : 0 <= LDd K s Ag a J Mp r ops <= 1 / 3.
Proof.
  assert (Pw := ordinary_pow). assert (Gr := ordinary_factor). assert (U0 := uf_pos prec). assert (Et := eta_pos emin).
  destruct small_losses as (L1 & L2 & L3). destruct H as (Nn & H1 & H2 & H3 & H4). assert (E0 := e1_pos).
  assert (In0 := pos_INR n). assert (Ir := pos_INR r). assert (Gp := gain_pos A0 r).
  assert (OKg : sane Ag) by (apply with_gap_sane; [apply A0_sane|lra]).
  assert (NJ : J <> []) by (intros E; rewrite E in Nn; simpl in Nn; lia). split.
  { assert (Q := lost_le_d K s Ag OKg a J Mp r ops (one K) (w_l Ag) 0 0 0 0 NJ ltac:(unfold w_l; simpl; lra)
      (Rle_refl 0) ltac:(lra) ltac:(lia) ltac:(lia)). unfold LDd. change (lampd Ag) with 0. lra. }
  assert (Ik : 1 <= INR (kk K J r)) by (apply (le_INR 1); auto).
  assert (Us : uf <= / 8) by (assert (1 * uf <= INR (kk K J r) * uf) by (apply Rmult_le_compat_r; lra); lra).
  assert (Ln2 : ln 2 <= 1) by (assert (Q := ln_le_minus1 2 ltac:(lra)); lra).
  assert (Fb : F Ag r <= 8 / 3).
  { unfold F, X, eps1. simpl (thE _). simpl (T _). simpl (xl _). simpl (xr _). simpl (eps _). simpl (gap _).
    simpl (last _).
    assert (P1 : uf * g0 <= uf * 1) by (apply Rmult_le_compat_l; lra).
    apply Rle_trans with (exp (ln 2 + / 4)); [apply exp_mono; lra|]. rewrite exp_plus, exp_ln by lra.
    assert (Q := exp_le_inv (/ 4) ltac:(lra)). replace (/ (1 - / 4)) with (4 / 3) in Q by field. lra. }
  assert (Fp : 0 < F Ag r) by apply exp_pos.
  assert (G1 := pow_ge1 uf (kk K J r) ltac:(lra)).
  assert (G2 : 1 <= g A0 ^ r) by (apply pow_R1_Rle, g_ge1, A0_sane).
  unfold LDd, lost_d, grown. change (twice Ag) with 2. change (hk K Ag J r) with (kk K J r).
  change (u Ag) with uf. change (lampd Ag) with 0. change (lam Ag) with eta.
  change (g Ag) with (g A0).
  replace (w_l Ag) with 1 by (unfold w_l; simpl; ring). rewrite Rmult_1_r.
  assert (Each : Sum (fun j => Rabs (one K j) * loss_d K s Ag a J Mp r 0 j) J <=
    INR n * (2 * ((1 + 2 * INR r) * lamE))).
  { rewrite <- Sum_const. apply Sum_le. intros j _. unfold one. rewrite Rabs_R1, Rmult_1_l.
    assert (M1 := Rmin_l 0 (bound.pp K s Ag a J Mp r j)).
    assert (M2 := Rmin_l (by_exp_d Ag r 0)
      ((1 + / 16) * bound.pp K s Ag a J Mp r j + Rmin 0 (bound.pp K s Ag a J Mp r j))).
    assert (Eb : by_exp_d Ag r 0 = lamE * (1 + INR r * gain A0 0)).
    { unfold by_exp_d. change (lame Ag) with lamE. change (gain Ag) with (gain A0). rewrite Rmin_left by lra. ring. }
    assert (Gm : lamE * (INR r * gain A0 0) <= lamE * (INR r * gain A0 r)).
    { apply Rmult_le_compat_l; [lra|]. apply Rmult_le_compat_l; auto. apply gain_mono; [apply A0_sane|lia]. }
    assert (Gz := gain_pos A0 0).
    assert (B0 : 0 <= by_exp_d Ag r 0).
    { rewrite Eb. apply Rmult_le_pos; auto. assert (0 <= INR r * gain A0 0) by (apply Rmult_le_pos; lra). lra. }
    assert (Bb := ordinary_by_exp (by_exp_d Ag r 0) ltac:(lra) B0).
    unfold loss_d, twice_d. change (lame Ag) with lamE. rewrite Rplus_0_l. lra. }
  set (S0 := Sum (fun j => Rabs (one K j) * loss_d K s Ag a J Mp r 0 j) J) in *.
  assert (Q1 : 2 * (S0 + INR ops * eta) <= / 16).
  { assert (0 <= INR n * (4 * eta)) by (apply Rmult_le_pos; lra). lra. }
  assert (GG : 1 <= (1 + uf) ^ kk K J r * g A0 ^ r) by (apply times_ge1; auto).
  assert (GG2 : (1 + uf) ^ kk K J r * g A0 ^ r <= 8 / 7 * (4 / 3)) by (apply Rmult_le_compat; lra).
  assert (FG : F Ag r * ((1 + uf) ^ kk K J r * g A0 ^ r) <= 8 / 3 * (8 / 7 * (4 / 3))) by (apply Rmult_le_compat; lra).
  assert (F0 : 0 <= F Ag r * ((1 + uf) ^ kk K J r * g A0 ^ r)) by (apply Rmult_le_pos; lra).
  assert (F Ag r * ((1 + uf) ^ kk K J r * g A0 ^ r) * (2 * (S0 + INR ops * eta)) <=
    F Ag r * ((1 + uf) ^ kk K J r * g A0 ^ r) * / 16) by (apply Rmult_le_compat_l; auto).
  rewrite <- (Rmult_assoc (F Ag r)) in *. lra.
Qed.
Lemma ordinary_low : 0 < low_d K s Ag a J Mp r ops.
Proof.
  assert (LD := ordinary_LD). assert (C := ordinary_roundings). assert (U0 := uf_pos prec).
  assert (U1 := @uf_lt1 prec Hprec). assert (B := bernoulli uf (cD K J r) ltac:(lra)). unfold low_d.
  change (h K Ag J + 2 * r)%nat with (cD K J r).
  assert (Mx := Rmax_r (1 - UDd K s Ag a J Mp r) ((1 - upd Ag) * (1 - u Ag) ^ cD K J r)).
  change (upd Ag) with 0 in *. change (u Ag) with uf in *. lra.
Qed.
Lemma ordinary_denominator : UDd K s Ag a J Mp r + LDd K s Ag a J Mp r ops <= 14 / 15.
Proof.
  assert (LD := ordinary_LD). assert (C := ordinary_roundings). assert (U0 := uf_pos prec).
  assert (C0 : 0 <= INR (cD K J r) * uf) by (apply Rmult_le_pos; [apply pos_INR|lra]).
  assert (Pw : pw Ag (cD K J r) <= 3 / 5).
  { unfold pw. change (u Ag) with uf. assert (Q := pow_le_exp uf (cD K J r) ltac:(lra)).
    assert (Q2 := exp_le_inv (INR (cD K J r) * uf) ltac:(lra)).
    assert (/ (1 - INR (cD K J r) * uf) <= / (1 - 3 / 8)) by (apply Rinv_le_contravar; lra).
    replace (/ (1 - 3 / 8)) with (8 / 5) in * by field. lra. }
  unfold UDd, UD0, refined. change (upd Ag) with 0. simpl (nearest _). cbv iota. set (y := Rmin _ _).
  assert (y <= pw Ag (cD K J r)) by apply Rmin_l. lra.
Qed.
End Denominator.

(** What a part weighs beside its own computed sum is less than e^(1/2). *)
Lemma ordinary_part : 1 + exp 0 * lost_of n <= exp (/ 2) * (1 - uf) ^ kk K J r.
Proof.
  assert (L := ordinary_lost). destruct H as (_ & H1 & _). assert (U0 := uf_pos prec).
  assert (U1 := @uf_lt1 prec Hprec).
  assert (B := bernoulli uf (kk K J r) ltac:(lra)). assert (Q := exp_ge_1 (/ 2)). rewrite exp_0, Rmult_1_l.
  assert (3 / 2 * (7 / 8) <= exp (/ 2) * (1 - uf) ^ kk K J r) by (apply Rmult_le_compat; lra). lra.
Qed.
End Sizes.

(** binary32: a million keys, a thousand rescalings. *)
Lemma ordinary_binary32 (K : Type) (J : list K) r : (1 <= length J <= 2 ^ 20)%nat -> (r <= 2 ^ 10)%nat ->
  ordinary (-149) 24 (uf 24) (eta (-149)) K J r.
Proof.
  intros [N1 N2] Hr. apply le_INR in N2, Hr. rewrite pow_INR in N2, Hr. simpl (INR 2) in N2, Hr.
  assert (N0 := pos_INR (length J)). assert (R0 := pos_INR r).
  assert (U : uf 24 = / 16777216) by (unfold uf; simpl; lra).
  assert (Et : 0 < eta (-149) <= / 281474976710656 / 281474976710656).
  { split; [apply eta_pos|]. unfold eta. apply Rle_trans with (/ 2 * bpow radix2 (-100)).
    - apply Rmult_le_compat_l; [lra|]. apply bpow_le. lia.
    - simpl bpow. lra. }
  assert (Ik : INR (kk K J r) <= 2 ^ 21).
  { apply Rle_trans with (INR (length J + r)); [apply le_INR; unfold kk; lia|]. rewrite plus_INR. lra. }
  split; [auto|]. split; [|split; [|split]].
  - rewrite U. assert (Q := Rmult_le_compat_r (/ 16777216) _ _ ltac:(lra) Ik). lra.
  - rewrite U. replace (/ 16777216 / (1 - / 16777216)) with (/ 16777215) by field.
    assert (Q := Rmult_le_compat_r (/ 16777215) (1 + INR r) (1 + 2 ^ 10) ltac:(lra) ltac:(lra)). lra.
  - set (x := eta (-149)) in *. clearbody x.
    assert (Q1 : x * (17 + 16 * INR r) <= x * (17 + 16 * 2 ^ 10)) by (apply Rmult_le_compat_l; lra).
    assert (Q2 : INR r * (x * (17 + 16 * INR r)) <= 2 ^ 10 * (x * (17 + 16 * 2 ^ 10))).
    { apply Rmult_le_compat; try lra. apply Rmult_le_pos; lra. } lra.
  - set (x := eta (-149)) in *. clearbody x.
    assert (Q1 : (1 + 2 * INR r) * x <= (1 + 2 * 2 ^ 10) * x) by (apply Rmult_le_compat_r; lra).
    assert (Q0 : 0 <= (1 + 2 * INR r) * x) by (apply Rmult_le_pos; lra).
    assert (INR (length J) * ((1 + 2 * INR r) * x + 4 * x) <= 2 ^ 20 * ((1 + 2 * 2 ^ 10) * x + 4 * x))
      by (apply Rmult_le_compat; lra). lra.
Qed.
