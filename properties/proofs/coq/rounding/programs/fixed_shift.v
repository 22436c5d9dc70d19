(** Kernels that subtract nothing from the scores, or a number that is none of them, as a program over Flocq's rounding.
    What is common to all kernels with one reference for all keys is here, too. *)
From Coq Require Import Reals List Lra Lia Psatz Permutation ZArith.
From Flocq Require Import Core.
From Attest.Rounding Require Import basics merge bound documented kernels any_reference least_sum ordinary_sizes.
Import ListNotations.
Open Scope R_scope.

Section FixedShift.
Variables emin prec : Z.
Context {Hprec : Prec_gt_0 prec}.
Local Notation rnd := (rnd emin prec).
Local Notation inF := (inF emin prec).
Local Notation uf := (uf prec).
Local Notation eta := (eta emin).
Variable K : Type.
Variables sh vv : K -> R.
Hypothesis sh_inF : forall j, inF (sh j).
Variable fexp : R -> R.
Variables epsE lamE top_exp : R.
Hypothesis HepsE : 0 <= epsE < 1.
Hypothesis HlamE : 0 <= lamE.
(** It overflows above top_exp. *)
Hypothesis exp_good : forall x, x <= top_exp -> 0 <= fexp x /\ rounded epsE lamE (exp x) (fexp x).
Hypothesis exp_inF : forall x, inF (fexp x).

(** Any tree of sums, whatever its leaves are made of. *)
Lemma tree_sums A sh' (v : K -> R) w0 lamw (term : K -> K * R) m (y : tree K -> R) t :
  (forall a b, adds A (y a) (y b) (y (Node K a b))) ->
  (forall j, In j (leaves K t) -> sums K sh' A v w0 lamw [term j] m (y (Leaf K j)) 0 0 1) ->
  exists k c, sums K sh' A v w0 lamw (map term (leaves K t)) m (y t) k 0 c /\ (c + 1 <= 2 * length (leaves K t))%nat.
Proof.
  intros HN. induction t as [j|a IHa b IHb]; intros H; [exists O, 1%nat; split; [apply (H j); simpl; auto|auto]|].
  destruct IHa as (ka & ca & Sa & Ca); [intros; apply H; simpl; apply in_or_app; auto|].
  destruct IHb as (kb & cb & Sb & Cb); [intros; apply H; simpl; apply in_or_app; auto|].
  exists (S (Nat.max ka kb)), (S (ca + cb)). simpl leaves. rewrite map_app, app_length. split; [|lia].
  exact (sums_add K sh' A v w0 lamw _ _ m _ _ _ ka 0%nat ca kb 0%nat cb Sa Sb (HN a b)).
Qed.

(** The reference m. How the difference from it is rounded is an error of the score, no larger than uf times the
    distance; no other is relative to an exponent. *)
Variable m : R.
Hypothesis m_inF : inF m.
Variable dist : K -> R.
Variables s a : K -> R.
Variable Cs room T0 : R.
Definition moved j := rnd (sh j - m) + m.
Definition am j := a j + uf * dist j.
(** What a kernel does to a weight before it multiplies a value: up and lamp. *)
Definition Am up0 lamp0 := {| u := uf; lam := eta; thE := 0; xl := 0; xr := 0; T := T0; gap := room;
  off := 0; last := 0; eps := epsE; lame := lamE; up := up0; lamp := lamp0; upd := 0; lampd := 0;
  nearest := true; additions := None |}.
Hypothesis Hroom : 0 <= room.
Hypothesis HT0 : 0 <= T0.
Lemma Am_sane up0 lamp0 : 0 <= up0 -> 0 <= lamp0 -> sane (Am up0 lamp0).
Proof.
  intros. assert (P := uf_pos prec). assert (Q := eta_pos emin). assert (L := @uf_lt1 prec Hprec).
  constructor; simpl; lra.
Qed.
Lemma Am_adds up0 lamp0 x y : inF x -> inF y -> adds (Am up0 lamp0) x y (rnd (x + y)).
Proof. exact (rnd_adds emin prec epsE lamE x y). Qed.

Lemma moved_near j : Rabs (sh j - m) <= dist j -> Rabs (sh j - (s j + Cs)) <= a j ->
  Rabs (moved j - (s j + Cs)) <= am j.
Proof.
  intros Hd Ha. assert (Q := rnd_minus emin prec (sh j) m (sh_inF j) m_inF). assert (U0 := uf_pos prec).
  assert (uf * Rabs (sh j - m) <= uf * dist j) by (apply Rmult_le_compat_l; lra).
  replace (moved j - (s j + Cs)) with ((rnd (sh j - m) - (sh j - m)) + (sh j - (s j + Cs))) by (unfold moved; ring).
  eapply Rle_trans; [apply Rabs_triang|]. unfold am. lra.
Qed.

Definition moved_term up0 lamp0 j :=
  (j, rnd (sh j - m) - (moved j - m) + split (Am up0 lamp0) (rnd (sh j - m)) (wt emin prec K sh fexp m j)).
Lemma one_key up0 lamp0 v w0 lamw j y : 0 <= up0 -> 0 <= lamp0 -> rnd (sh j - m) <= top_exp -> rnd (sh j - m) <= T0 ->
  Rabs (y - wt emin prec K sh fexp m j * v j) <=
    ((w0 - 1) * wt emin prec K sh fexp m j + Rmin lamw (w0 * wt emin prec K sh fexp m j)) * Rabs (v j) + eta ->
  sums K moved (Am up0 lamp0) v w0 lamw [moved_term up0 lamp0 j] m y 0 0 1.
Proof.
  intros P1 P2 Ht HT Hy. apply (sums_key K moved (Am up0 lamp0) v w0 lamw j m (rnd (sh j - m)) (wt emin prec K sh fexp
      m j));
    auto; simpl.
  - unfold moved. lra.
  - replace (rnd (sh j - m) - (moved j - m)) with 0 by (unfold moved; ring). rewrite Rabs_R0. lra.
  - apply exp_good. auto.
Qed.
Lemma weights_sums up0 lamp0 t : 0 <= up0 -> 0 <= lamp0 ->
  (forall j, In j (leaves K t) -> rnd (sh j - m) <= top_exp /\ rnd (sh j - m) <= T0) ->
  exists k c, sums K moved (Am up0 lamp0) (one K) (w_l (Am up0 lamp0)) (lampd (Am up0 lamp0))
    (map (moved_term up0 lamp0) (leaves K t)) m (suml emin prec K sh fexp m t) k 0 c /\
    (c + 1 <= 2 * length (leaves K t))%nat.
Proof.
  intros P1 P2 H. apply tree_sums.
  - intros x y. apply Am_adds; apply suml_inF; auto.
  - intros j Ij. destruct (H j Ij). apply one_key; auto. simpl suml. unfold one, w_l. simpl (upd _).
    destruct (exp_good (rnd (sh j - m))) as [P _]; auto. fold (wt emin prec K sh fexp m j) in P.
    rewrite Rabs_R1, Rmult_1_r, Rminus_eq_0, Rabs_R0. assert (Q := eta_pos emin). simpl. rewrite Rmin_left by lra. lra.
Qed.

(** What underflow takes is little enough, and the denominator positive. *)
Lemma one_reference_low up0 lamp0 (J : list K) Mp : 0 <= up0 -> 0 <= lamp0 -> (1 <= length J)%nat ->
  INR (length J) * uf <= / 8 -> epsE / (1 - epsE) <= / 8 -> exp room * (INR (length J) * (lamE + 2 * eta)) <= / 32 ->
  0 <= most_lost (Am up0 lamp0) (length J) 0 (2 * length J - 1) /\
  most_lost (Am up0 lamp0) (length J) 0 (2 * length J - 1) * exp room <= / 16 /\
  0 < low_d K s (Am up0 lamp0) am J Mp 0 (2 * length J - 1).
Proof.
  intros Pu Pl N1 Hu He HL. assert (U0 := uf_pos prec). assert (U1 := @uf_lt1 prec Hprec). assert (Et := eta_pos emin).
  set (n := length J) in *. assert (I1 : 1 <= INR n) by (apply (le_INR 1); auto).
  set (ops := (2 * n - 1)%nat). assert (Io : 0 <= INR ops * eta <= INR n * (2 * eta)).
  { assert (Q : INR ops <= INR (2 * n)) by (apply le_INR; unfold ops; lia). rewrite mult_INR in Q. simpl (INR 2) in Q.
    assert (INR ops * eta <= 2 * INR n * eta) by (apply Rmult_le_compat_r; lra).
    split; [apply Rmult_le_pos; [apply pos_INR|lra]|lra]. }
  assert (Ex : INR n * (lamE + 2 * eta) = INR n * lamE + INR n * (2 * eta)) by ring.
  set (x := INR n * (lamE + 2 * eta)) in *. assert (L0 : 0 <= INR n * lamE) by (apply Rmult_le_pos; lra).
  set (pw0 := (1 + uf) ^ kk K J 0). assert (P1 : 1 <= pw0) by (apply pow_ge1; lra).
  assert (Pw : pw0 <= 8 / 7).
  { eapply Rle_trans; [apply pow_le_exp; lra|].
    assert (Ik : INR (kk K J 0) <= INR n) by (apply le_INR; unfold kk; fold n; lia).
    assert (INR (kk K J 0) * uf <= INR n * uf) by (apply Rmult_le_compat_r; lra).
    assert (0 <= INR (kk K J 0) * uf) by (apply Rmult_le_pos; [apply pos_INR|lra]).
    eapply Rle_trans; [apply exp_le_inv; lra|]. replace (8 / 7) with (/ (1 - / 8)) by field.
    apply Rinv_le_contravar; lra. }
  assert (Er := exp_pos room). assert (X1 : 0 <= exp room * x) by (apply Rmult_le_pos; lra).
  assert (B : pw0 * (exp room * x) <= 8 / 7 * / 32) by (apply Rmult_le_compat; lra).
  assert (Eq : most_lost (Am up0 lamp0) n 0 ops = pw0 * (INR n * lamE + INR ops * eta)).
  { unfold most_lost, by_exp, twice_lost, lam0, w_l. simpl (u _). simpl (lame _). simpl (lampd _). simpl (upd _).
    simpl (lam _). simpl (INR 0). rewrite (Rmin_left 0 ((1 + 0) * lamE)) by lra. unfold pw0, kk. fold n. simpl. ring. }
  split; [rewrite Eq; apply Rmult_le_pos; lra|]. split.
  { rewrite Eq. assert (pw0 * (INR n * lamE + INR ops * eta) * exp room <= pw0 * x * exp room)
      by (apply Rmult_le_compat_r; [lra|]; apply Rmult_le_compat_l; lra). lra. }
  assert (Each : Sum (fun j => Rabs (one K j) * loss_d K s (Am up0 lamp0) am J Mp 0 0 j) J <= INR n * lamE).
  { unfold n. rewrite <- Sum_const. apply Sum_le. intros j _. unfold one. rewrite Rabs_R1, Rmult_1_l.
    set (p := bound.pp K s (Am up0 lamp0) am J Mp 0 j). unfold loss_d. fold p. assert (M1 := Rmin_l 0 p).
    assert (M2 := Rmin_l (by_exp_d (Am up0 lamp0) 0 0) ((1 + / 16) * p + Rmin 0 p)).
    unfold by_exp_d, twice_d in *. simpl (lame _) in *. simpl (INR 0) in *. rewrite (Rmin_left 0 lamE) in * by auto.
    lra. }
  set (S0 := Sum (fun j => Rabs (one K j) * loss_d K s (Am up0 lamp0) am J Mp 0 0 j) J) in *.
  assert (LDe : LDd K s (Am up0 lamp0) am J Mp 0 ops = F (Am up0 lamp0) 0 * (pw0 * (2 * (S0 + INR ops * eta)))).
  { unfold LDd, lost_d, grown, w_l. change (hk K (Am up0 lamp0) J 0) with (kk K J 0).
    change (twice (Am up0 lamp0)) with 2. simpl (u _). simpl (lampd _). simpl (upd _). simpl (lam _). fold S0 pw0.
    simpl (_ ^ 0). ring. }
  assert (Fb : F (Am up0 lamp0) 0 <= 8 / 7 * exp room).
  { unfold F, X, eps1. simpl (thE _). simpl (T _). simpl (xl _). simpl (xr _). simpl (eps _). simpl (gap _).
    simpl (last _). simpl (INR 0).
    apply Rle_trans with (exp (epsE / (1 - epsE) + room)); [apply exp_mono; lra|]. rewrite exp_plus.
    apply Rmult_le_compat_r; [lra|]. assert (E0 := e1_pos epsE HepsE). eapply Rle_trans; [apply exp_le_inv; lra|].
    replace (8 / 7) with (/ (1 - / 8)) by field. apply Rinv_le_contravar; lra. }
  assert (LD : LDd K s (Am up0 lamp0) am J Mp 0 ops <= 8 / 7 * exp room * (pw0 * (2 * x))).
  { rewrite LDe. assert (Fp : 0 < F (Am up0 lamp0) 0) by apply exp_pos.
    apply Rle_trans with (F (Am up0 lamp0) 0 * (pw0 * (2 * x))).
    - apply Rmult_le_compat_l; [lra|]. apply Rmult_le_compat_l; lra.
    - apply Rmult_le_compat_r; auto. apply Rmult_le_pos; lra. }
  assert (C : INR (cD K J 0) * uf <= / 8) by (unfold cD; fold n; simpl (2 * 0)%nat; rewrite Nat.add_0_r; auto).
  assert (Bn := bernoulli uf (cD K J 0) ltac:(lra)). unfold low_d.
  change (h K (Am up0 lamp0) J + 2 * 0)%nat with (cD K J 0).
  assert (Mx := Rmax_r (1 - UDd K s (Am up0 lamp0) am J Mp 0)
    ((1 - upd (Am up0 lamp0)) * (1 - u (Am up0 lamp0)) ^ cD K J 0)).
  simpl (upd _) in Mx. simpl (u _) in Mx. simpl (upd _). simpl (u _). lra.
Qed.

(** Where nothing is subtracted a weight is the exponential of the score itself. *)
Lemma no_reference j : wt emin prec K sh fexp 0 j = fexp (sh j).
Proof. unfold wt. rewrite Rminus_0_r, rnd_id; auto. Qed.

(** The kernel is [block]: exponentials relative to m, two sums in any two orders, one division. The document's D_j is
    dist, |s_j| + a_j where m is 0, and its factor e^(max(0, -max s)) on LD and LN is e^room. *)
Theorem fixed_shift_tolerance tl to_ : Permutation (leaves K tl) (leaves K to_) -> let J := leaves K to_ in
  let ops := (2 * length J - 1)%nat in
  (forall j, In j J -> Rabs (sh j - (s j + Cs)) <= a j /\ Rabs (sh j - m) <= dist j) ->
  (forall j, In j J -> rnd (sh j - m) <= top_exp /\ rnd (sh j - m) <= T0) ->
  (exists i, In i J /\ m - Cs <= s i - am i + room) ->
  0 < low_d K s (Am 0 0) am J 0 0 ops ->
  Rabs (finish emin prec (block emin prec K sh vv fexp m tl to_) - exact K s vv J) <=
    documented K s vv (Am 0 0) am J 0 0 ops uf eta.
Proof.
  intros Hp J ops Ha Ht (i & Ii & Hi) Hd. assert (OK := Am_sane 0 0 (Rle_refl 0) (Rle_refl 0)).
  assert (Near : forall j, In j J -> Rabs (moved j - (s j + Cs)) <= am j).
  { intros j Ij. destruct (Ha j Ij). apply moved_near; auto. }
  set (Mp := most K J (fun j => s j + am j)).
  assert (HMp : forall j, In j J -> s j + am j <= Mp).
  { intros j Ij. unfold Mp, most. clear - Ij. induction J as [|x l IH]; simpl in *; [tauto|].
    destruct Ij as [->|Ij]; [apply Rmax_l|]. eapply Rle_trans; [apply IH; auto|apply Rmax_r]. }
  destruct (documented_any_top K s vv (Am 0 0) am J 0 0 ops Mp uf eta eq_refl) as [E1 E2]. rewrite E1. rewrite E2 in Hd.
  destruct (weights_sums 0 0 tl (Rle_refl 0) (Rle_refl 0)) as (kl & cl & SL & Cl).
  { intros j Ij. apply Ht. apply (Permutation_in _ Hp). auto. }
  assert (SO : exists k c, sums K moved (Am 0 0) vv (w_o (Am 0 0)) ((1 + u (Am 0 0)) * lamp (Am 0 0))
    (map (moved_term 0 0) (leaves K to_)) m (sumo emin prec K sh vv fexp m to_) k 0 c /\
    (c + 1 <= 2 * length (leaves K to_))%nat).
  { apply tree_sums.
    - intros x y. apply Am_adds; apply sumo_inF; auto.
    - intros j Ij. destruct (Ht j Ij). apply one_key; auto; try lra. simpl sumo.
      assert (Q := rnd_near emin prec (wt emin prec K sh fexp m j * vv j)). unfold near in Q. rewrite Rabs_mult in Q.
      destruct (exp_good (rnd (sh j - m))) as [P _]; auto. fold (wt emin prec K sh fexp m j) in P.
      rewrite (Rabs_pos_eq (wt emin prec K sh fexp m j)) in Q by auto. assert (U0 := uf_pos prec). unfold w_o. simpl.
      rewrite Rmin_left by (rewrite Rmult_0_r; repeat apply Rmult_le_pos; lra). lra. }
  destruct SO as (ko & co & SO & Co). rewrite (Permutation_length Hp) in Cl.
  apply (documented_bound K s moved vv (Am 0 0) OK eq_refl am J Mp 0 ops _ _ m _ _ Cs uf eta _ kl 0 cl ko 0 co)
    with (4 := SL) (6 := SO); auto; try (unfold ops, J; lia).
  - apply leaves_ne.
  - rewrite map_map. simpl. rewrite map_id. auto.
  - apply Permutation_map. auto.
  - exists i. split; auto. assert (Q := Rabs_bounds _ _ (Near i Ii)). simpl. lra.
  - left. apply uf_pos.
  - apply rnd_near. auto.
Qed.
End FixedShift.

Definition fixed_shift_tolerance_binary32 := @fixed_shift_tolerance (-149) 24 eq_refl.
