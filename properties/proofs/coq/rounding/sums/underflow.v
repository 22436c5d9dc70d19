(** What underflow takes of a key's weight: key by key no more than there is, however often it is rescaled. *)
From Coq Require Import Reals List Lra Lia Psatz.
From Attest.Rounding Require Import basics arithmetic.
Open Scope R_scope.

Section Underflow.
Variable A : arith.
Hypothesis OK : sane A.
(** A factor that underflows by less than this part of itself is one of many, by more the only one that matters. *)
Variable d : R.
Hypothesis Hd : 0 < d.
Local Notation g := (g A).
Local Notation gain := (gain A).
Local Notation eps1 := (eps1 A).

(** What a key of weight x loses by underflow, per value: the weight as it is stored, at most all of it; exponentials,
    the one of its own and those of r rescalings, at most little more than the weight and once more what storing it
    loses; and what two underflows in a row make of each other, of the order of lame^2. *)
Definition lam0 (w0 lamw : R) := w0 * lame A + Rmin lamw (w0 * lame A).
Definition by_exp (w0 lamw : R) (r : nat) := lam0 w0 lamw + INR r * (lame A * (w0 * gain 0)).
Definition twice_lost (w0 lamw : R) r := INR r * (lame A * (1 + / d) * (lamw + by_exp w0 lamw r)).
Definition loss (w0 lamw : R) r x :=
  Rmin lamw (w0 * x) + Rmin (by_exp w0 lamw r) ((1 + INR r * d) * (w0 * x) + Rmin lamw (w0 * x)) +
  twice_lost w0 lamw r.

Lemma lam0_pos w0 lamw : 0 <= w0 -> 0 <= lamw -> 0 <= lam0 w0 lamw.
Proof.
  destruct OK. intros. assert (0 <= w0 * lame A) by (apply Rmult_le_pos; auto). unfold lam0.
  assert (Q := Rmin_pos lamw (w0 * lame A)). lra.
Qed.
Lemma by_exp_pos w0 lamw r : 0 <= w0 -> 0 <= lamw -> 0 <= by_exp w0 lamw r.
Proof.
  destruct OK. intros. assert (Q := lam0_pos w0 lamw). assert (Gp := gain_pos A 0). unfold by_exp.
  apply Rplus_le_le_0_compat; auto. repeat apply Rmult_le_pos; auto using pos_INR; lra.
Qed.
Lemma by_exp_mono w0 lamw r r' : 0 <= w0 -> (r <= r')%nat -> by_exp w0 lamw r <= by_exp w0 lamw r'.
Proof.
  destruct OK. intros W Hr. unfold by_exp. apply Rplus_le_compat_l. assert (Ir := le_INR _ _ Hr).
  assert (Gp := gain_pos A 0). apply Rmult_le_compat_r; auto. repeat apply Rmult_le_pos; lra.
Qed.
(** A weight that has grown by rescalings has grown no more than what it has lost. *)
Lemma gain_grows r : gain r <= gain 0 * g ^ r.
Proof.
  destruct OK. assert (E := eps1_pos A OK). unfold arithmetic.gain, arithmetic.X. simpl INR.
  assert (Q : exp (INR r * (xr A + eps1)) <= g ^ r).
  { assert (G : 0 <= exp (xr A + eps1) <= g) by (assert (P := exp_pos (xr A + eps1)); unfold arithmetic.g; lra).
    induction r as [|k IH]; [simpl; rewrite Rmult_0_l, exp_0; lra|].
    rewrite S_INR, Rmult_plus_distr_r, Rmult_1_l, Rplus_comm, exp_plus. simpl.
    apply Rmult_le_compat; try lra. left. apply exp_pos. }
  replace (exp ((1 + thE A) * T A + (xl A + INR r * xr A + (1 + INR r) * eps1) + off A)) with
    (exp ((1 + thE A) * T A + (xl A + 0 * xr A + (1 + 0) * eps1) + off A) * exp (INR r * (xr A + eps1)))
    by (rewrite <- exp_plus; f_equal; ring).
  apply Rmult_le_compat_l; auto. left. apply exp_pos.
Qed.
Lemma one_more_pos : 0 <= lame A * (1 + / d).
Proof. destruct OK. assert (0 < / d) by (apply Rinv_0_lt_compat; auto). apply Rmult_le_pos; lra. Qed.
Lemma twice_lost_pos w0 lamw r : 0 <= w0 -> 0 <= lamw -> 0 <= twice_lost w0 lamw r.
Proof.
  intros. assert (Q := by_exp_pos w0 lamw r). assert (Q1 := one_more_pos). unfold twice_lost.
  apply Rmult_le_pos; [apply pos_INR|]. apply Rmult_le_pos; lra.
Qed.
Lemma loss_pos w0 lamw r x : 0 <= w0 -> 0 <= lamw -> 0 <= x -> 0 <= loss w0 lamw r x.
Proof.
  intros W L Px. assert (Q := twice_lost_pos w0 lamw r W L). assert (Q1 := by_exp_pos w0 lamw r W L). unfold loss.
  assert (Ir := pos_INR r). assert (0 <= w0 * x) by (apply Rmult_le_pos; auto).
  assert (0 <= INR r * d) by (apply Rmult_le_pos; lra).
  assert (0 <= Rmin lamw (w0 * x)) by (apply Rmin_pos; auto).
  repeat apply Rplus_le_le_0_compat; auto; apply Rmin_pos; auto. apply Rplus_le_le_0_compat; auto.
  apply Rmult_le_pos; lra.
Qed.
Lemma loss_mono w0 lamw r r' x : 0 <= w0 -> 0 <= lamw -> 0 <= x -> (r <= r')%nat ->
  loss w0 lamw r x <= loss w0 lamw r' x.
Proof.
  intros W L Px Hr. assert (M := by_exp_mono w0 lamw _ _ W Hr). assert (Q1 := by_exp_pos w0 lamw r W L).
  assert (I := le_INR _ _ Hr). assert (Ir := pos_INR r). assert (Q := one_more_pos).
  assert (Pw : 0 <= w0 * x) by (apply Rmult_le_pos; auto). unfold loss, twice_lost. apply Rplus_le_compat.
  - apply Rplus_le_compat_l. apply Rle_min_compat; auto. apply Rplus_le_compat_r, Rmult_le_compat_r; auto.
    apply Rplus_le_compat_l. apply Rmult_le_compat_r; lra.
  - apply Rmult_le_compat; auto; [apply Rmult_le_pos; lra|]. apply Rmult_le_compat_l; lra.
Qed.

(** A rescaling by rho + mu. Where mu is less than a part d of rho, the key loses that part of its weight; else rho is
    so small that all it has lost before is of second order, and it loses no more than its weight. *)
Theorem loss_rescale w0 lamw r x y rho mu : 1 <= w0 -> 0 <= lamw -> 0 <= y <= x -> y <= gain 0 ->
  0 < rho <= exp (xr A + eps1) -> 0 <= mu <= Rmin (lame A) rho ->
  (rho + mu) * loss w0 lamw r x + mu * (w0 * y) <= g * loss w0 lamw (S r) (rho * x).
Proof.
  destruct OK. intros W L [Py Yx] Gy [Rp Rg] [Mp Ml]. assert (Px : 0 <= x) by lra.
  assert (M1 := Rle_trans _ _ _ Ml (Rmin_l _ _)). assert (M2 := Rle_trans _ _ _ Ml (Rmin_r _ _)).
  assert (B := by_exp_pos w0 lamw r ltac:(lra) L).
  assert (Bm : by_exp w0 lamw r + lame A * (w0 * gain 0) <= by_exp w0 lamw (S r)).
  { unfold by_exp. rewrite S_INR. lra. }
  assert (Gl : 0 <= lame A * (w0 * gain 0)) by (assert (Gp := gain_pos A 0); repeat apply Rmult_le_pos; lra).
  assert (Ir := pos_INR r). assert (Om := one_more_pos). assert (T0 := twice_lost_pos w0 lamw r ltac:(lra) L).
  assert (Tm : twice_lost w0 lamw r + lame A * (1 + / d) * (lamw + by_exp w0 lamw r) <= twice_lost w0 lamw (S r)).
  { unfold twice_lost. rewrite S_INR.
    assert (lame A * (1 + / d) * (lamw + by_exp w0 lamw r) <= lame A * (1 + / d) * (lamw + by_exp w0 lamw (S r)))
      by (apply Rmult_le_compat_l; lra).
    assert (INR r * (lame A * (1 + / d) * (lamw + by_exp w0 lamw r)) <=
            INR r * (lame A * (1 + / d) * (lamw + by_exp w0 lamw (S r)))) by (apply Rmult_le_compat_l; auto). lra. }
  assert (G1 := g_ge1 A OK). assert (Gd : rho + mu <= g) by (unfold arithmetic.g; lra).
  assert (Pw : 0 <= w0 * x) by (apply Rmult_le_pos; lra).
  assert (Pwy : 0 <= w0 * y) by (apply Rmult_le_pos; lra).
  assert (Mw : mu * (w0 * y) <= lame A * (w0 * gain 0)).
  { apply Rmult_le_compat; auto. apply Rmult_le_compat_l; lra. }
  assert (Wyx : mu * (w0 * y) <= mu * (w0 * x)) by (apply Rmult_le_compat_l; auto; apply Rmult_le_compat_l; lra).
  assert (Rw : 0 <= rho * (w0 * x)) by (apply Rmult_le_pos; lra).
  assert (I1 : 0 < / d) by (apply Rinv_0_lt_compat; auto).
  assert (Ex : w0 * (rho * x) = rho * (w0 * x)) by ring.
  unfold loss. rewrite S_INR, Ex. set (wx := w0 * x) in *. set (wy := w0 * y) in *. set (B0 := by_exp w0 lamw r) in *.
  set (B1 := by_exp w0 lamw (S r)) in *. set (T1 := twice_lost w0 lamw r) in *.
  set (T2 := twice_lost w0 lamw (S r)) in *. set (gn := lame A * (w0 * gain 0)) in *.
  assert (Ci : 0 <= INR r * d) by (apply Rmult_le_pos; lra).
  set (c := 1 + INR r * d) in *. replace (1 + (INR r + 1) * d) with (c + d) by (unfold c; ring).
  assert (c0 : 0 <= c) by (unfold c; lra).
  set (a := Rmin lamw wx). set (b := Rmin B0 (c * wx + a)).
  assert (a0 : 0 <= a) by (apply Rmin_pos; auto). assert (al : a <= lamw) by apply Rmin_l.
  assert (aw : a <= wx) by apply Rmin_r.
  assert (cw : 0 <= c * wx) by (apply Rmult_le_pos; auto).
  assert (b0 : 0 <= b) by (apply Rmin_pos; auto; lra). assert (bl : b <= B0) by apply Rmin_l.
  assert (bw : b <= c * wx + a) by apply Rmin_r.
  assert (cr : 0 <= (c + d) * (rho * wx)) by (apply Rmult_le_pos; lra).
  set (a' := Rmin lamw (rho * wx)). set (b' := Rmin B1 ((c + d) * (rho * wx) + a')).
  assert (a0' : 0 <= a') by (apply Rmin_pos; auto).
  assert (b0' : 0 <= b') by (apply Rmin_pos; lra).
  set (h := lame A * (1 + / d) * (lamw + B0)) in *.
  assert (Pt : (rho + mu) * T1 <= g * T1) by (apply Rmult_le_compat_r; auto).
  assert (Hg : g * (a' + b' + (T1 + h)) <= g * (a' + b' + T2)) by (apply Rmult_le_compat_l; lra).
  assert (h0 : 0 <= h) by (unfold h; apply Rmult_le_pos; lra).
  assert (Hh : h <= g * h) by (apply le_times; auto). assert (Hb : b' <= g * b') by (apply le_times; auto).
  assert (Ha : a' <= g * a') by (apply le_times; auto).
  assert (Sum1 : mu * (a + b) <= lame A * (lamw + B0)) by (apply Rmult_le_compat; lra).
  assert (L0 : 0 <= lame A * (lamw + B0)) by (apply Rmult_le_pos; lra).
  assert (Eh : h = lame A * (lamw + B0) + lame A * / d * (lamw + B0)) by (unfold h; ring).
  assert (L1 : 0 <= lame A * / d * (lamw + B0)) by (apply Rmult_le_pos; [apply Rmult_le_pos|]; lra).
  destruct (Rle_dec mu (d * rho)) as [C|C].
  - (* few *)
    assert (Ra : rho * a <= g * a').
    { unfold a'. destruct (Rle_dec lamw (rho * wx)) as [Q|Q]; [rewrite Rmin_left by auto|rewrite Rmin_right by lra].
      - apply Rmult_le_compat; lra.
      - assert (rho * a <= rho * wx) by (apply Rmult_le_compat_l; lra).
        assert (rho * wx <= g * (rho * wx)) by (apply le_times; auto). lra. }
    assert (Rb : rho * b + mu * wy <= g * b').
    { unfold b'. destruct (Rle_dec B1 ((c + d) * (rho * wx) + a')) as [Q|Q];
        [rewrite Rmin_left by auto|rewrite Rmin_right by lra].
      - assert (rho * b <= (rho + mu) * b) by (apply Rmult_le_compat_r; lra).
        assert ((rho + mu) * b <= g * b) by (apply Rmult_le_compat_r; auto).
        assert (g * b <= g * B0) by (apply Rmult_le_compat_l; lra).
        assert (g * (B0 + gn) <= g * B1) by (apply Rmult_le_compat_l; lra).
        assert (gn <= g * gn) by (apply le_times; auto). lra.
      - assert (rho * b <= rho * (c * wx + a)) by (apply Rmult_le_compat_l; lra).
        assert (mu * wx <= d * rho * wx) by (apply Rmult_le_compat_r; auto).
        assert ((c + d) * (rho * wx) <= g * ((c + d) * (rho * wx))) by (apply le_times; auto). lra. }
    lra.
  - (* one *)
    assert (Rs : rho <= lame A * / d).
    { apply Rmult_le_reg_r with d; auto. rewrite Rmult_assoc, Rinv_l by lra. lra. }
    assert (Sum2 : rho * (a + b) <= lame A * / d * (lamw + B0)) by (apply Rmult_le_compat; lra).
    assert (mu * wy <= b').
    { apply Rmin_glb; [lra|]. assert (mu * wx <= rho * wx) by (apply Rmult_le_compat_r; auto).
      assert (1 * (rho * wx) <= (c + d) * (rho * wx)) by (apply Rmult_le_compat_r; auto; unfold c; lra). lra. }
    lra.
Qed.

(** A key: its exponential is off by mu, and so is what is stored. *)
Theorem loss_key w0 lamw x mu : 1 <= w0 -> 0 <= lamw -> 0 <= x -> 0 <= mu <= Rmin (lame A) x ->
  w0 * mu + Rmin lamw (w0 * (x + mu)) <= loss w0 lamw 0 x.
Proof.
  destruct OK. intros W L Px [Mp Ml]. assert (M1 := Rle_trans _ _ _ Ml (Rmin_l _ _)).
  assert (M2 := Rle_trans _ _ _ Ml (Rmin_r _ _)). unfold loss, by_exp, twice_lost, lam0. simpl INR.
  rewrite !Rmult_0_l, !Rplus_0_r, Rmult_1_l, Rmult_plus_distr_l.
  assert (Pm : 0 <= w0 * mu) by (apply Rmult_le_pos; lra). assert (0 <= w0 * x) by (apply Rmult_le_pos; lra).
  assert (Pl : w0 * mu <= w0 * lame A) by (apply Rmult_le_compat_l; lra).
  assert (Pxx : w0 * mu <= w0 * x) by (apply Rmult_le_compat_l; lra).
  assert (Q := Rmin_split lamw (w0 * x) (w0 * mu) L ltac:(auto) Pm).
  assert (w0 * mu + Rmin lamw (w0 * mu) <=
    Rmin (w0 * lame A + Rmin lamw (w0 * lame A)) (w0 * x + Rmin lamw (w0 * x))); [|lra].
  apply Rmin_glb.
  - apply Rplus_le_compat; auto. apply Rle_min_compat; auto. lra.
  - apply Rplus_le_compat; auto. apply Rle_min_compat; auto. lra.
Qed.

(** In units of W, the sum of the weights; it is at least 1 / F. *)
Lemma loss_scale w0 lamw r x q W F : 0 <= w0 -> 0 <= lamw -> 0 <= W -> 1 <= F -> 1 <= W * F -> 0 <= q -> x <= W * q ->
  loss w0 lamw r x <= W * F * loss w0 lamw r q.
Proof.
  intros W0 L PW F1 WF Pq Hx. assert (B := by_exp_pos w0 lamw r W0 L). assert (T0 := twice_lost_pos w0 lamw r W0 L).
  assert (Le : forall y, 0 <= y -> y <= W * F * y) by (intros; apply le_times; auto).
  assert (Ir := pos_INR r). assert (Ci : 0 <= INR r * d) by (apply Rmult_le_pos; lra).
  assert (Wx : w0 * x <= W * F * (w0 * q)).
  { assert (w0 * x <= w0 * (W * q)) by (apply Rmult_le_compat_l; auto).
    assert (w0 * (W * q) <= F * (w0 * (W * q))) by (apply le_times; auto; repeat apply Rmult_le_pos; auto). lra. }
  assert (Mi : forall a b y, 0 <= a -> y <= W * F * b -> Rmin a y <= W * F * Rmin a b).
  { intros a b y Pa Hy.
    destruct (Rle_dec a b) as [C|C]; [rewrite (Rmin_left a b) by auto|rewrite (Rmin_right a b) by lra].
    - eapply Rle_trans; [apply Rmin_l|apply Le; auto].
    - eapply Rle_trans; [apply Rmin_r|auto]. }
  assert (M1 := Mi lamw (w0 * q) (w0 * x) L Wx).
  set (y := (1 + INR r * d) * (w0 * q) + Rmin lamw (w0 * q)).
  assert (M2 := Mi (by_exp w0 lamw r) y ((1 + INR r * d) * (w0 * x) + Rmin lamw (w0 * x)) B).
  assert (M3 : (1 + INR r * d) * (w0 * x) + Rmin lamw (w0 * x) <= W * F * y).
  { assert ((1 + INR r * d) * (w0 * x) <= (1 + INR r * d) * (W * F * (w0 * q))) by (apply Rmult_le_compat_l; lra).
    unfold y. lra. }
  specialize (M2 M3). assert (M4 := Le _ T0). unfold loss. fold y. lra.
Qed.
End Underflow.
