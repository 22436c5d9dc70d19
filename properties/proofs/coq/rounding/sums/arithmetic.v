(** What is claimed of the arithmetic of a kernel's sums, and what follows for the exponents of its weights. *)
From Coq Require Import Reals List Lra Lia Psatz.
From Attest.Rounding Require Import basics.
Open Scope R_scope.

Lemma pow_ge1 u k : 0 <= u -> 1 <= (1 + u) ^ k.
Proof. intros. apply pow_R1_Rle. lra. Qed.
Lemma pow_mono u k k' : 0 <= u -> (k <= k')%nat -> (1 + u) ^ k <= (1 + u) ^ k'.
Proof. intros. apply Rle_pow; auto; lra. Qed.

(** What is claimed of the arithmetic of the sums. *)
Record arith := {
  u : R; lam : R;          (* add, multiply: relative, by underflow *)
  thE : R; xl : R; xr : R; (* exponents: relative; absolute, of a key and of a rescaling (folded scale, underflow) *)
  T : R; gap : R;          (* how stale a maximum may be; how far the last reference may exceed all scores: log n after
                              a merge through log-sum-exp, else 0 *)
  off : R; last : R;       (* by what is its own the exponent of a key may be off, beside xl, and that of the key with
                              the largest score: of a folded scale, else 0 *)
  eps : R; lame : R;       (* exp: relative, by underflow, which is no more than the value *)
  up : R; lamp : R;        (* rounding of a weight before it multiplies a value *)
  upd : R; lampd : R;      (* rounding of a weight before it enters the denominator *)
  nearest : bool;          (* sums round to nearest: an operand is a candidate for the result *)
  additions : option nat }. (* how many of them a term passes at most, where that is declared *)
Record sane (A : arith) : Prop := {
  s_gap : 0 <= gap A; s_off : 0 <= off A; s_last : 0 <= last A;
    s_u1 : u A <= 1; s_upd1 : upd A <= 1; s_u : 0 <= u A; s_lam : 0 <= lam A;
    s_thE : 0 <= thE A <= 1; s_xl : 0 <= xl A; s_xr : 0 <= xr A; s_T : 0 <= T A;
  s_eps : 0 <= eps A < 1; s_lame : 0 <= lame A; s_up : 0 <= up A; s_lamp : 0 <= lamp A; s_upd : 0 <= upd A;
  s_lampd : 0 <= lampd A }.

(** What underflow takes of a term counts once more where a sum of it and a larger one is rounded to the larger one. *)
Definition twice (A : arith) := if nearest A then 2 else 1.
Lemma twice_ge1 A : 1 <= twice A.
Proof. unfold twice. destruct (nearest A); lra. Qed.

Section Exponents.
Variable A : arith.
Hypothesis OK : sane A.

Definition eps1 := eps A / (1 - eps A).
(** Error of an exponent that does not depend on how far it is from the maximum. *)
Definition X (r : nat) := xl A + INR r * xr A + (1 + INR r) * eps1.
(** No rescaling factor exceeds g; no weight exceeds gain. *)
Definition g := exp (xr A + eps1) + lame A.
Definition gain (r : nat) := exp ((1 + thE A) * T A + X r + off A).
(** p is what exp returned for e: what it loses by underflow is no more than the value. *)
Definition exponential (e p : R) := 0 <= p /\ rounded (eps A) (lame A) (exp e) p.
(** The part of its error that is an error of the exponent. *)
Definition split (e p : R) := ln (1 + Rmax (- eps A) (Rmin (eps A) ((p - exp e) / exp e))).

Lemma split_spec e p : exponential e p ->
  Rabs (p - exp (e + split e p)) <= Rmin (lame A) (exp (e + split e p)) /\ Rabs (split e p) <= eps1.
Proof.
  destruct OK. unfold exponential, rounded, split. intros [Pp H]. assert (P := exp_pos e).
  rewrite (Rabs_pos_eq (exp e)) in H by lra.
  apply Rabs_bounds in H. set (q := exp e) in *. set (t := Rmax (- eps A) (Rmin (eps A) ((p - q) / q))).
  assert (Ml := Rmin_l (lame A) q). assert (Mr := Rmin_r (lame A) q). set (mu := Rmin (lame A) q) in *. clearbody mu.
  assert (Bt : - eps A <= t <= eps A).
  { unfold t. split; [apply Rmax_l|]. apply Rmax_lub; [lra|apply Rmin_l]. }
  assert (Eq : (p - q) / q * q = p - q) by (field; lra).
  assert (E0 : 0 <= eps A * q) by (apply Rmult_le_pos; lra).
  split; [|apply ln_near; auto].
  rewrite exp_plus, exp_ln by lra. fold q.
  destruct (Rle_dec ((p - q) / q) (eps A)) as [L1|L1]; [destruct (Rle_dec (- eps A) ((p - q) / q)) as [L2|L2]|].
  - replace t with ((p - q) / q) by (unfold t; rewrite Rmin_right, Rmax_right; lra).
    replace (q * (1 + (p - q) / q)) with p by (rewrite Rmult_plus_distr_l, (Rmult_comm q ((p - q) / q)), Eq; ring).
    rewrite Rminus_eq_0, Rabs_R0. apply Rmin_pos; auto.
  - replace t with (- eps A) by (unfold t; rewrite Rmin_right, Rmax_left; lra).
    assert ((p - q) / q * q <= - eps A * q) by (apply Rmult_le_compat_r; lra). rewrite Rabs_left1 by lra.
    apply Rmin_glb; lra.
  - replace t with (eps A) by (unfold t; rewrite Rmin_left, Rmax_right; lra).
    assert (eps A * q <= (p - q) / q * q) by (apply Rmult_le_compat_r; lra). rewrite Rabs_pos_eq by lra.
    apply Rmin_glb; lra.
Qed.

Lemma eps1_pos : 0 <= eps1.
Proof. destruct OK. unfold eps1, Rdiv. apply Rmult_le_pos; [lra|]. left. apply Rinv_0_lt_compat. lra. Qed.
Lemma X_mono r r' : (r <= r')%nat -> X r <= X r'.
Proof. destruct OK. intros H. apply le_INR in H. assert (E := eps1_pos). unfold X. nra. Qed.
Lemma X_pos r : 0 <= X r.
Proof. destruct OK. assert (E := eps1_pos). assert (I := pos_INR r). unfold X. nra. Qed.
Lemma g_ge1 : 1 <= g.
Proof. destruct OK. assert (E := eps1_pos). assert (1 <= exp (xr A + eps1)) by (apply exp_ge1; lra). unfold g. lra. Qed.
Lemma gain_mono r r' : (r <= r')%nat -> gain r <= gain r'.
Proof. intros. apply exp_mono. assert (H1 := X_mono _ _ H). lra. Qed.
Lemma gain_pos r : 0 < gain r.
Proof. apply exp_pos. Qed.
End Exponents.
