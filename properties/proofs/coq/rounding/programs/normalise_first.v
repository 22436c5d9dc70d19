(** Kernels whose weights are divided by their sum before they multiply values, in two passes, as a program over Flocq's
    rounding; by a division or by a product with a reciprocal. *)
From Coq Require Import Reals List Lra Lia Psatz Permutation ZArith.
From Flocq Require Import Core Relative.
From Attest.Rounding Require Import basics merge bound documented divided_first kernels stored_weights sizes
  any_reference least_sum ordinary_sizes fixed_shift.
Import ListNotations.
Open Scope R_scope.

Section NormaliseFirst.
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
Variables epsE lamE : R.
Hypothesis HepsE : 0 <= epsE < 1.
Hypothesis HlamE : 0 <= lamE.
Hypothesis exp_good : forall x, x <= 0 -> 0 <= fexp x /\ rounded epsE lamE (exp x) (fexp x).
Hypothesis exp_inF : forall x, inF (fexp x).
Hypothesis exp_nonneg : forall x, 0 <= fexp x.
Hypothesis exp0 : fexp 0 = 1.

(** How a weight is divided by the sum. *)
Variable norm : R -> R -> R.
Variable c_div : nat.                    (* roundings of it: 1 by a division, 2 by a reciprocal *)
Hypothesis Hc_div : (c_div <= 3)%nat.
Variable lamn : R.
Definition un := (1 + uf) ^ c_div - 1.
Lemma Hun : 0 <= un.
Proof. assert (U0 := uf_pos prec). assert (Q := pow_ge1 uf c_div ltac:(lra)). unfold un. lra. Qed.
Hypothesis Hlamn : 0 <= lamn.

Fixpoint sump m l t := match t with
  | Leaf _ j => rnd (norm (wt emin prec K sh fexp m j) l * vv j)
  | Node _ x y => rnd (sump m l x + sump m l y) end.
Definition normalised_first (tl to_ : tree K) :=
  let m := tmax K sh tl in sump m (suml emin prec K sh fexp m tl) to_.

Lemma split_scaled A x w l : 0 < l -> split A (x - ln l) (w / l) = split A x w.
Proof.
  intros Pl. unfold split. do 4 f_equal. rewrite exp_minus, exp_ln by auto. assert (E := exp_pos x). field. lra.
Qed.

Variables s a : K -> R.
Variables Cs top : R.
Variables tl to_ : tree K.
Hypothesis Hp : Permutation (leaves K tl) (leaves K to_).
Local Notation J := (leaves K to_).
Local Notation n := (length J).
Local Notation ops := (2 * n - 1)%nat.
(** No sum of n weights is above 2 n, so a reciprocal of it is no subnormal number. *)
Hypothesis norm_good : forall w l, 0 <= w <= 1 + epsE + lamE -> 1 <= l <= 2 * INR n ->
  rounded un lamn (w / l) (norm w l).
Hypothesis Hu : INR n * uf <= / 8.
Hypothesis He : epsE / (1 - epsE) <= / 8.
Hypothesis HL : INR n * (lamE + 2 * eta) <= / 64.
Hypothesis Ha : forall j, In j J -> Rabs (sh j - (s j + Cs)) <= a j.
Hypothesis Htop : forall j, In j J -> s j + a j <= top.
Definition dist_max j := top - (s j - a j).
Local Notation m := (tmax K sh tl).
Local Notation l := (suml emin prec K sh fexp m tl).
Local Notation An := (Am emin prec epsE lamE (ln 2) 0 un lamn).
Local Notation ae := (am prec K dist_max a).

Lemma in_order j : In j J -> In j (leaves K tl).
Proof. apply (Permutation_in _ (Permutation_sym Hp)). Qed.
Lemma below_max j : In j J -> rnd (sh j - m) <= 0.
Proof.
  intros Ij. rewrite <- (rnd_0 emin prec). apply rnd_mono; auto. assert (Q := tmax_ge K sh tl j (in_order j Ij)). lra.
Qed.
Lemma max_near j : In j J -> Rabs (sh j - m) <= dist_max j.
Proof.
  intros Ij. assert (Q := tmax_ge K sh tl j (in_order j Ij)). rewrite Rabs_left1 by lra.
  destruct (tmax_in K sh tl) as (i & Ii & ->). apply (Permutation_in _ Hp) in Ii.
  assert (Hi := Rabs_bounds _ _ (Ha i Ii)). assert (Ti := Htop i Ii). assert (Hj := Rabs_bounds _ _ (Ha j Ij)).
  unfold dist_max. lra.
Qed.
Lemma l_ge1 : 1 <= l.
Proof. rewrite <- exp0. apply suml_ge_exp0; auto. Qed.
Lemma weight_range j : In j J -> 0 <= wt emin prec K sh fexp m j <= 1 + epsE + lamE.
Proof.
  intros Ij. split; [apply exp_nonneg|]. assert (B := below_max j Ij). destruct (exp_good _ B) as [_ Q].
  assert (N := near_abs _ _ _ _ (rounded_near _ _ _ _ Q)).
  rewrite (Rabs_pos_eq (fexp _)), (Rabs_pos_eq (exp _)) in N by (auto; left; apply exp_pos).
  assert (E := exp_le1 _ B). unfold wt.
  assert ((1 + epsE) * exp (rnd (sh j - m)) <= (1 + epsE) * 1) by (apply Rmult_le_compat_l; lra). lra.
Qed.

Lemma sump_inF m0 l0 t : inF (sump m0 l0 t).
Proof. destruct t; simpl; apply rnd_inF; auto. Qed.

Lemma An_sane : sane An.
Proof. exact (Am_sane emin prec epsE lamE HepsE HlamE (ln 2) 0 ln_2_pos (Rle_refl 0) un lamn Hun Hlamn). Qed.
Lemma n_ge1 : (1 <= n)%nat.
Proof. assert (NJ := leaves_ne K to_). destruct J; simpl; [congruence|lia]. Qed.
Local Notation trm := (moved_term emin prec K sh fexp epsE lamE m (ln 2) 0 un lamn).
Lemma little_lost Mp : 0 <= most_lost An n 0 ops /\ most_lost An n 0 ops * 2 <= / 16 /\ 0 < low_d K s An ae J Mp 0 ops.
Proof.
  assert (Q := one_reference_low emin prec K epsE lamE HepsE HlamE dist_max s a (ln 2) 0 un lamn J Mp Hun Hlamn
    n_ge1 Hu He). rewrite exp_ln in Q by lra. apply Q. lra.
Qed.
Lemma l_sums : exists k c,
  sums K (moved emin prec K sh m) An (one K) (w_l An) (lampd An) (map trm (leaves K tl)) m l k 0 c /\
  (k <= kk K J 0 /\ c <= ops)%nat.
Proof.
  destruct (weights_sums emin prec K sh fexp epsE lamE 0 exp_good exp_inF m (ln 2) 0 un lamn tl Hun Hlamn) as
    (k & c & SL & Cl).
  { intros j Ij. apply (Permutation_in _ Hp) in Ij. assert (B := below_max j Ij). lra. }
  exists k, c. split; [exact SL|]. destruct (sums_counts _ _ _ _ _ _ _ _ _ _ _ _ SL) as (_ & Kl & _).
  rewrite map_length in Kl. rewrite (Permutation_length Hp) in *. unfold kk. lia.
Qed.
Lemma small_power k : (k <= kk K J 0)%nat -> (1 + uf) ^ k <= 8 / 7.
Proof.
  intros Hk. assert (U0 := uf_pos prec). eapply Rle_trans; [apply pow_le_exp; lra|].
  assert (Ik : INR k <= INR n) by (apply le_INR; unfold kk in Hk; lia).
  assert (INR k * uf <= INR n * uf) by (apply Rmult_le_compat_r; lra).
  assert (0 <= INR k * uf) by (apply Rmult_le_pos; [apply pos_INR|lra]).
  eapply Rle_trans; [apply exp_le_inv; lra|]. replace (8 / 7) with (/ (1 - / 8)) by field.
  apply Rinv_le_contravar; lra.
Qed.
Lemma l_range : 1 <= l <= 2 * INR n.
Proof.
  assert (L1 := l_ge1). split; auto. destruct l_sums as (k & c & SL & Kl & Cl). assert (OK := An_sane).
  assert (Wl : w_l An = 1) by (unfold w_l; simpl; ring).
  assert (Sz := sums_size An OK K _ (part 0) (one K) (w_l An) (lampd An) _ _ _ _ _ _ (part_pos 0) ltac:(lra)
    ltac:(simpl; lra) SL).
  assert (Nt : length (map trm (leaves K tl)) = n) by (rewrite map_length; apply Permutation_length, Hp).
  assert (Lm := lost_most K (moved emin prec K sh m) An (map trm (leaves K tl)) m k 0 c n 0 ops OK ltac:(lia) Kl
    (le_n _) Cl).
  destruct (little_lost 0) as (_ & Lo & _).
  match type of Lm with 0 <= ?x <= _ => set (lo := x) in * end.
  rewrite (Sum_ext _ (fun _ => 1)), Sum_const, Nt, Rmult_1_r, (Rabs_pos_eq l) in Sz
    by (try lra; intros; unfold one; apply Rabs_R1).
  assert (Gn : gain An 0 <= 8 / 7).
  { unfold gain, X, eps1. simpl (off An).
    simpl (thE An). simpl (T An). simpl (xl An). simpl (xr An). simpl (eps An). simpl (INR 0).
    replace ((1 + 0) * 0 + (0 + 0 * 0 + (1 + 0) * (epsE / (1 - epsE)))) with (epsE / (1 - epsE)) by ring.
    assert (E0 := e1_pos epsE HepsE). eapply Rle_trans; [apply exp_le_inv; lra|].
    replace (8 / 7) with (/ (1 - / 8)) by field. apply Rinv_le_contravar; lra. }
  assert (Pw := small_power k Kl). assert (U0 := uf_pos prec). assert (P1 := pow_ge1 uf k ltac:(lra)).
  assert (I1 : 1 <= INR n) by (apply (le_INR 1), n_ge1). assert (Gp := gain_pos An 0).
  unfold P in Sz. rewrite Wl, Rmult_1_l in Sz. change (u An) with uf in Sz.
  assert ((1 + uf) ^ k * (gain An 0 * INR n) <= 8 / 7 * (8 / 7 * INR n)).
  { apply Rmult_le_compat; [lra|apply Rmult_le_pos; lra|lra|]. apply Rmult_le_compat_r; lra. }
  lra.
Qed.

(** As sums of weights that are relative to m + ln l. *)
Lemma values_sums : exists k c, sums K (moved emin prec K sh m) An vv (w_o An) ((1 + u An) * lamp An)
  (map trm J) (m + ln l) (sump m l to_) k 0 c /\ (c + 1 <= 2 * n)%nat.
Proof.
  assert (OK := An_sane). assert (L1 := l_ge1). assert (Pl : 0 < l) by lra.
  assert (Ln : 0 <= ln l) by (rewrite <- ln_1; destruct L1 as [L1|<-]; [left; apply ln_increasing; lra|lra]).
  apply tree_sums.
  - intros x y. apply Am_adds; auto using sump_inF.
  - intros j Ij. unfold moved_term. set (w := wt emin prec K sh fexp m j). set (x := rnd (sh j - m)).
    rewrite <- (split_scaled An x w l Pl).
    replace (x - (moved emin prec K sh m j - m)) with (x - ln l - (moved emin prec K sh m j - (m + ln l))) by ring.
    assert (Ex : moved emin prec K sh m j - (m + ln l) = x - ln l) by (unfold moved, x; ring).
    apply (sums_key K _ An vv (w_o An) _ j (m + ln l) (x - ln l) (w / l)).
    + rewrite Ex. simpl. assert (B := below_max j Ij). fold x in B. lra.
    + rewrite Ex, Rminus_eq_0, Rabs_R0. simpl. lra.
    + destruct (exp_good x (below_max j Ij)) as [N0 N]. change (fexp x) with w in N, N0.
      unfold exponential, rounded in *.
      simpl (eps An). simpl (lame An). rewrite exp_minus, exp_ln by auto. assert (E := exp_pos x).
      rewrite (Rabs_pos_eq (exp x)) in N by lra. assert (I0 : 0 < / l) by (apply Rinv_0_lt_compat; lra).
      assert (I1 : / l <= 1) by (rewrite <- Rinv_1; apply Rinv_le_contravar; lra).
      split; [apply Rmult_le_pos; lra|]. replace (w / l - exp x / l) with ((w - exp x) * / l) by (field; lra).
      assert (E2 : 0 <= exp x / l) by (unfold Rdiv; apply Rmult_le_pos; lra).
      rewrite Rabs_mult, (Rabs_pos_eq (/ l)), (Rabs_pos_eq (exp x / l)) by lra.
      assert (Q := Rmult_le_compat_r (/ l) _ _ ltac:(lra) N).
      assert (Rmin lamE (exp x) * / l <= Rmin lamE (exp x / l)).
      { assert (M1 := Rmin_l lamE (exp x)). assert (M2 := Rmin_r lamE (exp x)). apply Rmin_glb.
        - assert (M0 : 0 <= Rmin lamE (exp x)) by (apply Rmin_pos; lra).
          assert (Rmin lamE (exp x) * / l <= Rmin lamE (exp x) * 1) by (apply Rmult_le_compat_l; lra). lra.
        - apply Rmult_le_compat_r; lra. }
      unfold Rdiv in *. lra.
    + apply (stored_weight An OK (w / l) (norm w l)); [|apply norm_good; [apply weight_range; auto|apply l_range]|].
      * destruct (weight_range j Ij) as [W0 _]. fold w in W0. apply Rmult_le_pos; auto. left.
        apply Rinv_0_lt_compat. lra.
      * apply rnd_near. auto.
Qed.

(** The sum of weights times values, as in error-bounds.md 1.1, 1.2 and 1.7.17: cN is n + c_div. *)
Section Numerator.
Variable Mp : R.
Local Notation size := (bound.size K s vv An ae J Mp 0).
Local Notation pp := (bound.pp K s An ae J Mp 0).
Definition acc_first := divided_first.acc_first K s An ae J Mp c_div vv size.

Lemma numerator_first ko co : (ko <= kk K J 0)%nat -> (co <= ops)%nat ->
  EN K s vv An ae J Mp ko co 0 (documented.big K s An ae J Mp 0 vv size) <= acc_first + LNd K s vv An ae J Mp 0 ops.
Proof.
  intros Ko Co. assert (OK := An_sane). assert (NJ := leaves_ne K to_). assert (Wo := wo_ge1 An OK).
  assert (Lo : 0 <= lam_o An <= w_o An * lamp An).
  { assert (U0 := uf_pos prec). assert (Q := Hun). unfold lam_o, w_o. simpl (u An). simpl (lamp An). simpl (up An).
    assert (0 <= (1 + uf) * lamn) by (apply Rmult_le_pos; lra).
    assert (0 <= un * ((1 + uf) * lamn)) by (apply Rmult_le_pos; auto). lra. }
  assert (PX := size_pos' K s vv An ae J Mp 0 NJ). assert (U0 := uf_pos prec). assert (U1 := @uf_lt1 prec Hprec).
  unfold EN, LNd. apply Rplus_le_compat;
    [|apply (lost_le_d K s An OK ae J Mp 0 ops vv (w_o An) (lam_o An) (lamp An) ko co NJ Wo Hlamn Lo Ko Co)].
  assert (Ew : w_o An = (1 + 0) * (1 + uf) ^ S c_div) by (unfold w_o, un; simpl; ring). rewrite Ew.
  assert (Q := by_sum_first K s An OK eq_refl ae J NJ Mp c_div Hc_div 0 ko vv size PX (Rle_refl 0)
    ltac:(unfold kk in Ko; lia)). unfold acc_first. change (u An) with uf in Q. lra.
Qed.
End Numerator.

(** There is no division of the result. *)
Theorem normalise_first_tolerance : let Sp := spread K s vv An ae J 0 0 in
  Rabs (normalised_first tl to_ - exact K s vv J) <=
    Sp + (acc_first 0 + LNd K s vv An ae J 0 0 ops +
      (Rabs (exact K s vv J) + Sp) * (UDd K s An ae J 0 0 + LDd K s An ae J 0 0 ops)) / low_d K s An ae J 0 0 ops.
Proof.
  intros Sp. assert (OK := An_sane). assert (NJ := leaves_ne K to_). assert (Nn := n_ge1).
  assert (L1 := l_ge1). assert (Pl : 0 < l) by lra. set (q := m + ln l). set (Mp := Rmax q m - Cs).
  destruct (little_lost Mp) as (Lj0 & Lo & Low).
  assert (E1 := exponent_any_top K s An ae 0 0 Mp eq_refl).
  unfold Sp, acc_first, divided_first.acc_first, low_d, LNd, LDd, lost_d, loss_d, UDd, UD0, spread, bound.size, ph,
    bound.pp, Zm.
  rewrite E1.
  set (sh2 := moved emin prec K sh m).
  assert (Near : forall j, In j J -> Rabs (sh2 j - (s j + Cs)) <= ae j).
  { intros j Ij. apply moved_near; auto using max_near. apply tmax_inF. auto. }
  destruct l_sums as (kl & cl & SL & Kl & Cl). destruct values_sums as (ko & co & SO & Co).
  fold sh2 in SL, SO. fold q in SO. set (tr := trm) in *.
  assert (Mt : forall t, map fst (map tr t) = t) by (intros; rewrite map_map; unfold tr; simpl; apply map_id).
  assert (Ml : Permutation (map fst (map tr (leaves K tl))) J) by (rewrite Mt; auto).
  assert (Mo : Permutation (map fst (map tr J)) J) by (rewrite Mt; auto).
  destruct (sums_counts _ _ _ _ _ _ _ _ _ _ _ _ SO) as (_ & Ko & _). rewrite map_length in Ko.
  assert (Hm : m <= Mp + gap An + Cs).
  { assert (Q := Rmax_r q m). assert (L2 := ln_2_pos). unfold Mp. simpl. lra. }
  assert (Hq : q <= Mp + gap An + Cs).
  { assert (Q := Rmax_l q m). assert (L2 := ln_2_pos). unfold Mp. simpl. lra. }
  (* the sum of weights, relative to the maximum and to the normalised one *)
  set (Wm := Sum (weight K sh2 m) (map tr (leaves K tl))). set (Wq := Sum (weight K sh2 q) (map tr J)).
  assert (EW : Wm = l * Wq).
  { unfold Wm, Wq. rewrite (Sum_perm _ _ _ (Permutation_map tr Hp)), <- Sum_scal. apply Sum_ext. intros t _.
    unfold weight, q. replace (sh2 (fst t) - (m + ln l) + snd t) with ((sh2 (fst t) - m + snd t) - ln l) by ring.
    rewrite exp_minus, exp_ln by auto. field. lra. }
  assert (Kept := weight_kept K sh2 An OK J 0 ops _ m l kl 0 cl Ml SL (le_n _) Cl). fold Wm in Kept.
  set (Lj := most_lost An n 0 ops) in *. set (Pk := P An (w_l An) (kk K J 0)) in *.
  assert (Pk2 : Pk <= exp (gap An) * (1 - Lj)).
  { unfold Pk, P, w_l. simpl (upd An). simpl (u An). simpl (gap An). rewrite exp_ln by lra.
    assert (Q := small_power (kk K J 0) (le_n _)). lra. }
  assert (HFq : 1 <= Wq * F An 0).
  { apply (weight_enough K An OK J 0 ops 1 Wq); auto. fold Lj Pk. rewrite EW in Kept.
    apply Rmult_le_reg_l with l; auto. assert (1 * Lj <= l * Lj) by (apply Rmult_le_compat_r; lra). lra. }
  assert (HFm : 1 <= Wm * F An 0).
  { assert (Fp : 0 < F An 0) by apply exp_pos. rewrite EW, Rmult_assoc.
    assert (1 * (Wq * F An 0) <= l * (Wq * F An 0)) by (apply Rmult_le_compat_r; lra). lra. }
  destruct (weights_error K s sh2 An OK ae J Mp kl cl 0 (documented.big K s An ae J Mp 0 (one K) 1) Cs NJ Near _ m l 0
    Ml Hm SL (le_n _) HFm) as (PWm & HD & Hl).
  fold Wm in PWm, HD, Hl.
  destruct (denominator_documented K s An OK eq_refl ae J Mp 0 ops kl cl NJ Kl Cl) as [D1 D2].
  assert (PWq : 0 < Wq) by (apply Rmult_lt_reg_l with l; lra).
  assert (HDq : Rabs (1 - Wq) <= Wq * (UDd K s An ae J Mp 0 + LDd K s An ae J Mp 0 ops)).
  { apply Rmult_le_reg_l with l; auto. rewrite <- (Rabs_pos_eq l) at 1 by lra. rewrite <- Rabs_mult.
    replace (l * (1 - Wq)) with (l - Wm) by (rewrite EW; ring). eapply Rle_trans; [apply HD|].
    rewrite <- Rmult_assoc, <- EW. apply Rmult_le_compat_l; lra. }
  eapply Rle_trans; [apply (mean_error K s sh2 vv An OK ae J Mp ko co 0
    (documented.big K s An ae J Mp 0 vv (bound.size K s vv An ae J Mp 0)) Cs NJ Near (map tr J) q
    (normalised_first tl to_) 0 1 (acc_first Mp + LNd K s vv An ae J Mp 0 ops)
    (UDd K s An ae J Mp 0 + LDd K s An ae J Mp 0 ops) (low_d K s An ae J Mp 0 ops) 0 0 (normalised_first tl to_));
    auto|].
  - apply numerator_first; [unfold kk; lia|lia].
  - apply Rmult_le_reg_l with Wq; auto. rewrite Rmult_0_r. eapply Rle_trans; [apply Rabs_pos|apply HDq].
  - fold Wq. apply Rmult_le_reg_l with l; auto. rewrite <- Rmult_assoc, <- EW, Rmult_1_r.
    eapply Rle_trans; [|apply Hl]. apply Rmult_le_compat_l; lra.
  - lra.
  - unfold near. replace (normalised_first tl to_ / 1) with (normalised_first tl to_) by field.
    rewrite Rminus_eq_0, Rabs_R0. assert (0 <= Rabs (normalised_first tl to_)) by apply Rabs_pos. lra.
  - unfold acc_first, divided_first.acc_first, low_d, LNd, LDd, lost_d, loss_d, UDd, UD0, spread, bound.size, ph,
      bound.pp, Zm.
    lra.
Qed.
End NormaliseFirst.

(** By a division, or by a product with a reciprocal that is rounded first: what is asked of norm, where no reciprocal
    of a sum is a subnormal number. *)
Section Ways.
Variables emin prec : Z.
Context {Hprec : Prec_gt_0 prec}.
Local Notation rnd := (rnd emin prec).
Local Notation uf := (uf prec).
Local Notation eta := (eta emin).
Lemma divided_good w l : rounded (un prec 1) eta (w / l) (rnd (w / l)).
Proof. replace (un prec 1) with uf by (unfold un; simpl; ring). apply rnd_rounded. auto. Qed.
Lemma reciprocal_good w l : 0 <= w -> 1 <= l -> l * bpow radix2 (emin + prec - 1) <= 1 ->
  rounded (un prec 2) eta (w / l) (rnd (w * rnd (1 / l))).
Proof.
  intros Hw Hl Hn. replace (un prec 2) with ((1 + uf) * (1 + uf) - 1) by (unfold un; simpl; ring).
  assert (U0 := uf_pos prec). assert (Et := eta_pos emin).
  assert (I0 : 0 < / l) by (apply Rinv_0_lt_compat; lra).
  assert (Px : 0 <= w / l) by (apply Rmult_le_pos; lra).
  assert (N : Rabs (rnd (1 / l) - 1 / l) <= uf * (1 / l)).
  { rewrite <- (Rabs_pos_eq (1 / l)) at 3 by (unfold Rdiv; lra).
    apply (relative_error_N_FLT radix2 emin prec Hprec (fun n => negb (Z.even n))).
    rewrite Rabs_pos_eq by (unfold Rdiv; lra). apply Rmult_le_reg_l with l; [lra|]. unfold Rdiv.
    rewrite Rmult_1_l, Rinv_r by lra. exact Hn. }
  assert (N1 : Rabs (w * rnd (1 / l) - w / l) <= uf * (w / l)).
  { replace (w * rnd (1 / l) - w / l) with (w * (rnd (1 / l) - 1 / l)) by (unfold Rdiv; ring).
    rewrite Rabs_mult, (Rabs_pos_eq w) by auto. replace (uf * (w / l)) with (w * (uf * (1 / l))) by (unfold Rdiv; ring).
    apply Rmult_le_compat_l; auto. }
  assert (N2 : near uf 0 (w / l) (w * rnd (1 / l))) by (unfold near; rewrite (Rabs_pos_eq (w / l)) by auto; lra).
  assert (uu : 0 <= uf * uf) by (apply Rmult_le_pos; lra).
  assert (N3 := near_trans uf 0 uf eta (w / l) _ _ ltac:(lra) N2 (rnd_near emin prec (w * rnd (1 / l)))).
  assert (N4 := rnd_candidate emin prec (w * rnd (1 / l)) 0 (generic_format_0 _ _)).
  set (y := w * rnd (1 / l)) in *. rewrite Rminus_0_l, Rabs_Ropp in N4.
  assert (Y0 : 0 <= y) by (apply Rmult_le_pos; auto; apply rnd_pos; auto; unfold Rdiv; lra).
  rewrite (Rabs_pos_eq y) in N4 by auto. unfold rounded, near in *. rewrite (Rabs_pos_eq (w / l)) in * by auto.
  apply Rabs_bounds in N4. apply Rabs_bounds in N1.
  assert (Pu : 0 <= uf * (w / l)) by (apply Rmult_le_pos; lra).
  assert (Pu2 : 0 <= uf * uf * (w / l)) by (apply Rmult_le_pos; lra).
  assert (C : Rabs (rnd y - w / l) <= ((1 + uf) * (1 + uf) - 1) * (w / l) + w / l) by (apply Rabs_le_iff; lra).
  unfold Rmin. destruct (Rle_dec _ _); lra.
Qed.
End Ways.
(** Such programs are of the class of divided_first.v, with weights that are stored as norm says. *)
Section OfTheClass.
Variables emin prec : Z.
Context {Hprec : Prec_gt_0 prec}.
Local Notation rnd := (rnd emin prec).
Local Notation inF := (inF emin prec).
Variable K : Type.
Variables sh vv : K -> R.
Hypothesis sh_inF : forall j, inF (sh j).
Variable fexp : R -> R.
Variables epsE lamE : R.
Hypothesis exp_good : forall x, x <= 0 -> 0 <= fexp x /\ rounded epsE lamE (exp x) (fexp x).
Hypothesis exp_inF : forall x, inF (fexp x).
Variable norm : R -> R -> R.
Variables up0 lamp0 : R.
Variable d : nat.
Definition A_stored := {| u := uf prec; lam := eta emin; thE := uf prec; xl := 0; xr := 0; T := 0; gap := 0;
  off := 0; last := 0; eps := epsE; lame := lamE; up := up0; lamp := lamp0; upd := 0; lampd := 0; nearest := true;
  additions := None |}.

Lemma tree_added (leaf : K -> R -> Prop) (y : tree K -> R) t :
  (forall j, leaf j (y (Leaf K j))) -> (forall t, inF (y t)) ->
  (forall a b, y (Node K a b) = rnd (y a + y b)) -> added K A_stored leaf (leaves K t) (y t).
Proof.
  intros Hl Hf Hn. induction t as [j|a IHa b IHb]; simpl leaves; [constructor; auto|].
  apply (added_two K A_stored leaf _ _ (y a) (y b)); auto. rewrite Hn.
  exact (rnd_adds emin prec epsE lamE (y a) (y b) (Hf a) (Hf b)).
Qed.
Lemma normalised_first_divides tl to_ : Permutation (leaves K tl) (leaves K to_) ->
  (let l := suml emin prec K sh fexp (tmax K sh tl) tl in
    forall p, 0 <= p -> divided_weight A_stored d p l (norm p l)) ->
  divides_first K sh vv A_stored d (leaves K to_) (normalised_first emin prec K sh vv fexp norm tl to_).
Proof.
  intros Hp norm_divides. unfold normalised_first. set (m := tmax K sh tl) in *.
  set (l := suml emin prec K sh fexp m tl) in *.
  assert (Neg : forall j, In j (leaves K to_) -> sh j - m <= 0).
  { intros j Ij. apply (Permutation_in _ (Permutation_sym Hp)) in Ij. assert (Q := tmax_ge K sh tl j Ij).
    unfold m. lra. }
  assert (Re : forall j, In j (leaves K to_) -> rnd (sh j - m) <= 0).
  { intros j Ij. rewrite <- (rnd_0 emin prec). apply rnd_mono; auto. }
  assert (Fm : inF m) by (apply tmax_inF; auto).
  exists m, (fun j => rnd (sh j - m)), (wt emin prec K sh fexp m), (fun j => norm (wt emin prec K sh fexp m j) l), l,
    (leaves K tl), (leaves K to_).
  split; [|split; [|split; [auto|split; [|split; [|split; [auto|]]]]]].
  - destruct (tmax_in K sh tl) as (i & Ii & Ei). exists i. split; [apply (Permutation_in _ Hp); auto|].
    fold m in Ei. simpl. lra.
  - intros j Ij. simpl. split; [auto|]. split; [|apply exp_good; auto].
    assert (Q := rnd_minus emin prec (sh j) m (sh_inF j) Fm). lra.
  - apply (tree_added _ (suml emin prec K sh fexp m)); auto; [|intros; apply suml_inF; auto].
    intros j. simpl. unfold rounded. rewrite Rminus_eq_0, Rabs_R0.
    assert (Q := Rabs_pos (wt emin prec K sh fexp m j)). rewrite Rmin_left by auto. lra.
  - intros j Ij. apply norm_divides. apply exp_good. auto.
  - apply (tree_added _ (sump emin prec K sh vv fexp norm m l)); auto.
    + intros j. simpl. apply rnd_near. auto.
    + intros t. apply sump_inF; auto.
Qed.
End OfTheClass.

(** By a division, stored as it is or in a narrower format; by a product with a reciprocal. *)
Section Stored.
Variables emin prec emin2 prec2 : Z.
Context {Hprec : Prec_gt_0 prec} {Hprec2 : Prec_gt_0 prec2}.
Lemma rnd_vanishes x : Rabs x < eta emin2 -> rnd emin2 prec2 x = 0.
Proof.
  intros H. assert (C := rnd_candidate emin2 prec2 x 0 (generic_format_0 _ _)). rewrite Rminus_0_l, Rabs_Ropp in C.
  assert (B : Rabs (rnd emin2 prec2 x) < bpow radix2 emin2).
  { replace (rnd emin2 prec2 x) with ((rnd emin2 prec2 x - x) + x) by ring. unfold eta in H.
    eapply Rle_lt_trans; [apply Rabs_triang|]. lra. }
  destruct (Req_dec (rnd emin2 prec2 x) 0) as [E|N]; auto. exfalso.
  assert (G := generic_format_ge_bpow radix2 (fexpn emin2 prec2) emin2 ltac:(intros; apply Z.le_max_r)
    (Rabs (rnd emin2 prec2 x)) (Rabs_pos_lt _ N)).
  assert (Q : bpow radix2 emin2 <= Rabs (rnd emin2 prec2 x)); [|lra].
  apply G. apply generic_format_abs. apply rnd_inF. auto.
Qed.
Lemma divided_and_kept epsE lamE p l :
  divided_weight (A_stored emin prec epsE lamE 0 0) 1 p l (rnd emin prec (p / l)).
Proof.
  exists (p / l), (rnd emin prec (p / l)). simpl. split; [|split; [apply rnd_rounded; auto|split]].
  - unfold near. rewrite Rminus_eq_0, Rabs_R0. lra.
  - unfold rounded. rewrite Rminus_eq_0, Rabs_R0. assert (Q := Rabs_pos (rnd emin prec (p / l))).
    rewrite Rmin_left by auto. lra.
  - intros H. assert (Q := Rabs_pos (rnd emin prec (p / l))). lra.
Qed.
Lemma divided_and_stored epsE lamE p l :
  divided_weight (A_stored emin prec epsE lamE (uf prec2) (eta emin2)) 1 p l
    (rnd emin2 prec2 (rnd emin prec (p / l))).
Proof.
  exists (p / l), (rnd emin prec (p / l)). simpl. split; [|split; [apply rnd_rounded; auto|split]].
  - unfold near. rewrite Rminus_eq_0, Rabs_R0. lra.
  - apply rnd_rounded. auto.
  - apply rnd_vanishes.
Qed.
Lemma multiplied_and_kept epsE lamE p l : 1 <= l -> l * bpow radix2 (emin + prec - 1) <= 1 ->
  divided_weight (A_stored emin prec epsE lamE 0 0) 2 p l (rnd emin prec (p * rnd emin prec (1 / l))).
Proof.
  intros Hl Hn. set (y := rnd emin prec (p * rnd emin prec (1 / l))).
  exists (p * rnd emin prec (1 / l)), y. simpl. split; [|split; [apply rnd_rounded; auto|split]].
  - assert (I0 : 0 < / l) by (apply Rinv_0_lt_compat; lra).
    assert (N : Rabs (rnd emin prec (1 / l) - 1 / l) <= uf prec * Rabs (1 / l)).
    { apply (relative_error_N_FLT radix2 emin prec Hprec (fun n => negb (Z.even n))).
      rewrite Rabs_pos_eq by (unfold Rdiv; lra). apply Rmult_le_reg_r with l; [lra|]. unfold Rdiv.
      rewrite Rmult_1_l, Rinv_l by lra. lra. }
    unfold near. replace (p * rnd emin prec (1 / l) - p / l) with (p * (rnd emin prec (1 / l) - 1 / l))
      by (unfold Rdiv; ring).
    assert (Q := Rmult_le_compat_l (Rabs p) _ _ (Rabs_pos p) N). rewrite Rabs_mult.
    replace (p / l) with (p * (1 / l)) by (unfold Rdiv; ring). rewrite Rabs_mult. lra.
  - unfold rounded. rewrite Rminus_eq_0, Rabs_R0. rewrite Rmin_left by apply Rabs_pos. lra.
  - intros H. assert (Q := Rabs_pos y). lra.
Qed.
End Stored.
(** bfloat16 is narrow beside binary32. *)
Lemma bfloat16_is_narrow :
  eta (-149) * (2 + 2 * uf 8) <= uf 8 * eta (-133).
Proof.
  unfold eta, uf. simpl Z.add. change (bpow radix2 (-149)) with (/ IZR (2 ^ 149)).
  change (bpow radix2 (-133)) with (/ IZR (2 ^ 133)). change (bpow radix2 (-7)) with (/ IZR (2 ^ 7)). lra.
Qed.
Lemma reciprocal_binary32 n w l : (n <= 2 ^ 20)%nat -> 0 <= w -> 1 <= l <= 2 * INR n ->
  rounded (un 24 2) (kernels.eta (-149)) (w / l) (kernels.rnd (-149) 24 (w * kernels.rnd (-149) 24 (1 / l))).
Proof.
  intros Hn Hw [L1 L2]. apply (@reciprocal_good (-149) 24 eq_refl); auto.
  apply le_INR in Hn. rewrite pow_INR in Hn. simpl (INR 2) in Hn.
  assert (B : bpow radix2 (-149 + 24 - 1) <= bpow radix2 (-21)) by (apply bpow_le; lia).
  assert (B0 := bpow_gt_0 radix2 (-149 + 24 - 1)). set (x := bpow radix2 (-149 + 24 - 1)) in *.
  simpl (bpow radix2 (-21)) in B. assert (l * x <= 2 ^ 21 * / 2097152) by (apply Rmult_le_compat; lra). lra.
Qed.

Definition normalise_first_tolerance_binary32 := @normalise_first_tolerance (-149) 24 eq_refl.
