(** The merge of parts through log-sum-exps with its last division left out: parts are weighted by exponentials of their
    distance from the log-sum-exp of all. *)
From Coq Require Import Reals List Lra Lia Psatz Permutation ZArith.
From Flocq Require Import Core.
From Attest.Rounding Require Import basics merge bound documented kernels least_sum sizes any_reference ordinary_sizes
    entropy split.
Import ListNotations.
Open Scope R_scope.

(** The parts are those of split.v, and so is what is asked of them. *)
Section Undivided.
Variables emin prec : Z.
Context {Hprec : Prec_gt_0 prec}.
Local Notation rnd := (rnd emin prec).
Local Notation inF := (inF emin prec).
Local Notation uf := (uf prec).
Local Notation eta := (eta emin).
Variable fexp : R -> R.
Variables epsE lamE : R.
Hypothesis HepsE : 0 <= epsE < 1.
Hypothesis HlamE : 0 <= lamE.
Hypothesis exp_good : forall x, x <= 0 -> 0 <= fexp x /\ rounded epsE lamE (exp x) (fexp x).
Hypothesis exp_inF : forall x, inF (fexp x).
Hypothesis exp_nonneg : forall x, 0 <= fexp x.
Variable flog : R -> R.
Variables epsL lamL : R.
Hypothesis HepsL : 0 <= epsL.
Hypothesis log_good : forall x, 0 < x -> near epsL lamL (ln x) (flog x).
Hypothesis log_inF : forall x, inF (flog x).
Variable K : Type.
Variables sh vv : K -> R.
Hypothesis sh_inF : forall j, inF (sh j).
Variable st : nat -> state.
Local Notation m_ c := (fst (fst (st c))).
Local Notation l_ c := (snd (fst (st c))).
Local Notation o_ c := (snd (st c)).
Local Notation A0 := (A emin prec epsE lamE).
Local Notation A0_sane := (A_sane emin prec epsE lamE HepsE HlamE).
Local Notation e1 := (epsE / (1 - epsE)).
Variable keys : nat -> list K.
Variable part : K -> nat.
Variable R0 : nat.                  (* rescalings within a part *)
Variable del : R.                   (* how far below 1, in logarithms, a sum of weights may be: 0 where exp(0) is 1 *)
Hypothesis Hdel : 0 <= del <= e1.
Hypothesis exp0 : exp (- del) <= fexp 0.
Variables tl to_ : tree nat.
Hypothesis Hp : Permutation (leaves nat tl) (leaves nat to_).
Local Notation parts := (leaves nat to_).
Local Notation J := (@split.J K keys to_).
Hypothesis parts_good : forall c, In c parts ->
  exists kl cl ko co rc, good emin prec K sh vv epsE lamE (st c) (keys c) kl cl ko co rc /\ (rc <= R0)%nat.
Hypothesis part_of_key : forall c j, In c parts -> In j (keys c) -> part j = c.
Hypothesis parts_sum : forall c, In c parts -> exp (- del) <= l_ c.
Variables s a : K -> R.
Variable Q : K -> R.                (* no score from that of a key upwards is larger in size *)
Variables Cs top Qt Lg room : R.    (* Qt: size of the largest *)
Hypothesis Ha : forall j, In j J -> Rabs (sh j - (s j + Cs)) <= a j.
Hypothesis Htop : forall j, In j J -> s j + a j <= top.
Hypothesis HQ : forall i j, In i J -> In j J -> sh j <= sh i -> Rabs (sh i) <= Q j.
Hypothesis HQt : Rabs (top + Cs) <= Qt.
Local Notation n := (length J).
Local Notation ops := (4 * n - 1)%nat.   (* operations on a sum, with those of the merge *)
Hypothesis Hdelg : del <= Lg.
Hypothesis HLg : P A0 (w_l A0) (kk K J R0) * (INR n * gain A0 R0) + most_lost A0 n R0 ops <= exp Lg.
Local Notation r := (R0 + 2)%nat.
Hypothesis Hroom : 0 <= room.
Local Notation Ag := (@split.Ag emin prec epsE lamE room).
Hypothesis Hgap : P Ag (w_l Ag) (kk K J r) <= exp room * (exp (- del) - most_lost Ag n r ops).
Local Notation lse := (@split.lse emin prec flog st).
Local Notation mean := (@split.mean emin prec st).
Local Notation zeta := (@split.zeta emin prec flog st).
Local Notation sh' := (@split.sh' emin prec flog K sh st part).
Local Notation err := (@split.err prec epsL lamL Lg).
Local Notation a' := (@split.a' prec epsL lamL K del a Q Lg).
Local Notation Mg := (@split.Mg prec epsL lamL top Qt Lg room).
Local Notation final := (@split.final emin prec fexp epsE lamE flog K st room).
Local Notation terms_of := (@split.terms_of emin prec epsE lamE K sh vv st keys R0).
Local Notation merged_l := (@split.merged_l emin prec fexp epsE lamE flog K st room).
Local Notation merged_o := (@split.merged_o emin prec fexp epsE lamE flog K st room).
Local Notation lse_inF := (@split.lse_inF emin prec Hprec flog st).
Local Notation Ag_sane := (@split.Ag_sane emin prec Hprec epsE lamE HepsE HlamE room Hroom).
Local Notation l_pos := (@split.l_pos st del to_ parts_sum).
Local Notation sum_ones := (@split.sum_ones K).
Local Notation w_l_1 := (@split.w_l_1 emin prec epsE lamE).
Local Notation log_le := (@split.log_le emin prec Hprec epsE lamE HepsE HlamE K sh vv st keys R0 del to_ parts_good
  parts_sum Lg Hdelg HLg).
Local Notation part_max := (@split.part_max emin prec Hprec epsE lamE HepsE HlamE K sh vv st keys R0 to_ parts_good Q
  HQ).
Local Notation lse_error := (@split.lse_error emin prec Hprec epsE lamE HepsE HlamE flog epsL lamL HepsL log_good
  log_inF K sh vv st keys R0 del to_ parts_good parts_sum Lg Hdelg HLg).
Local Notation scores_near := (@split.scores_near emin prec Hprec epsE lamE HepsE HlamE flog epsL lamL HepsL log_good
  log_inF K sh vv st keys part R0 del Hdel to_ parts_good part_of_key parts_sum s a Q Cs Lg Ha HQ Hdelg HLg).
Local Notation lse_le := (@split.lse_le emin prec Hprec epsE lamE HepsE HlamE flog epsL lamL HepsL log_good log_inF K
  sh vv st keys R0 del Hdel to_ parts_good parts_sum s a Cs top Qt Lg Ha Htop HQt Hdelg HLg).
Local Notation reference_le := (@split.reference_le emin prec Hprec epsE lamE HepsE HlamE flog epsL lamL HepsL
  log_good log_inF K sh vv st keys R0 del Hdel tl to_ Hp parts_good parts_sum s a Cs top Qt Lg room Ha Htop HQt Hdelg
  HLg).
Local Notation merged_weights := (@split.merged_weights emin prec Hprec fexp epsE lamE HepsE HlamE exp_good exp_inF
  flog K sh vv st keys part R0 del Hdel to_ part_of_key parts_sum room Hroom).
Local Notation merged_values := (@split.merged_values emin prec Hprec fexp epsE lamE HepsE HlamE exp_good flog K sh vv
  st keys part R0 del Hdel to_ part_of_key parts_sum room Hroom).
Local Notation merged_keys := (@split.merged_keys emin prec fexp epsE lamE flog K sh vv st keys R0 to_ room).
Local Notation merged_perm := (@split.merged_perm emin prec fexp epsE lamE flog K sh vv st keys R0 tl to_ Hp room).
Local Notation largest_ge := (@split.largest_ge emin prec flog st tl to_ Hp).
Local Notation largest_inF := (@split.largest_inF emin prec Hprec flog st tl).
Local Notation parts_terms := (@split.parts_terms emin prec epsE lamE K sh vv st keys R0 to_ parts_good).
Local Notation keys_of_order := (@split.keys_of_order K keys tl to_ Hp).

Local Notation M := (tmax nat lse tl).
Local Notation l := (suml emin prec nat lse fexp M tl).
Definition total := rnd (M + flog l).
Definition merge_undivided := sumo emin prec nat lse mean fexp total to_.

Hypothesis exp0_is_1 : fexp 0 = 1.
Hypothesis log_nonneg : forall x, 1 <= x -> 0 <= flog x.
Hypothesis HQi : exists i, In i J /\ Q i <= Qt.
Variables b kappa : R.   (* logarithms of what parts weigh, and of the sum that is computed over the exact one *)
Hypothesis Hb : 1 + exp del * most_lost A0 n R0 ops <= exp b * (1 - uf) ^ kk K J R0.
Hypothesis HLg2 : P A0 (w_l A0) (kk K J r) * (INR n * gain A0 r) + most_lost A0 n r ops <= exp Lg.
(** Errors of the log-sum-exp of all, and of the weights' exponents: twice, since no division cancels them. *)
Definition total_err := uf * ((Qt + Lg + err Qt) + (epsL * Lg + lamL)) + (epsL * Lg + lamL).
Local Notation lnP := (ln (INR (length parts))).
Definition merge_err := total_err + (2 * e1 + uf * (2 * kappa + (uf * Lg + total_err) + 2 * b + 2 * lnP)).
Definition Mu := Mg + ((1 + uf) * Lg + total_err).
Definition DDu := (1 + (UDd K s Ag a' J Mu r + LDd K s Ag a' J Mu r ops)) * exp merge_err - 1.
Definition low_u := low_d K s Ag a' J Mu r ops * exp (- merge_err).
(** The document's bound with its UD for divfree, and no division. *)
Definition undivided := spread K s vv Ag a' J Mu r +
  (Nd K s vv Ag a' J Mu r + LNd K s vv Ag a' J Mu r ops + (Rabs (exact K s vv J) + spread K s vv Ag a' J Mu r) * DDu) /
    low_u.
Hypothesis Hkappa : e1 + uf * (b + lnP) + room <= kappa * (1 - uf).
Hypothesis Hsmall : (1 + (UDd K s Ag a' J Mu r + LDd K s Ag a' J Mu r ops)) * exp merge_err <= exp room.
Hypothesis Hlow : 0 < low_d K s Ag a' J Mu r ops.
Hypothesis NJ : J <> [].

Section Chosen.
Variable f : nat -> list (K * R) * list (K * R).
Hypothesis Hf : forall c, In c parts -> terms_of c (f c).
(** What a part weighs, beside its own computed sum; and beside the others. *)
Definition mass c := Sum (weight K sh (m_ c)) (snd (f c)) / l_ c.
Definition share c := exp (lse c) * mass c.
Definition rho M0 c := let e := rnd (lse c - M0) in e - (lse c - M0) + split Ag e (fexp e).

Lemma Sum_flat_map {X Y} (h : Y -> R) (g0 : X -> list Y) t : Sum h (flat_map g0 t) = Sum (fun c => Sum h (g0 c)) t.
Proof. induction t; simpl; auto. rewrite Sum_app, IHt. auto. Qed.

Lemma final_mass M0 c ts : In c parts -> (forall t, In t ts -> In (fst t) (keys c)) ->
  exp M0 * Sum (weight K sh' M0) (final M0 c ts) = exp (lse c) * (Sum (weight K sh (m_ c)) ts / l_ c) * exp (rho M0 c).
Proof.
  intros Ic Ik. assert (Pl := l_pos c Ic). unfold split.final, rescaled. rewrite !Sum_map.
  rewrite (Sum_ext _ (fun t => exp (lse c - M0 + rho M0 c) / l_ c * weight K sh (m_ c) t)).
  - rewrite Sum_scal. unfold Rminus. rewrite !exp_plus, exp_Ropp. assert (E0 := exp_pos M0). field. lra.
  - intros t It. unfold weight, split.sh', rho. simpl. rewrite (part_of_key c (fst t) Ic (Ik t It)).
    set (x := rnd (lse c - M0) - (lse c - M0) + split Ag (rnd (lse c - M0)) (fexp (rnd (lse c - M0)))).
    replace (sh (fst t) + zeta c - M0 + (snd t + (lse c - (m_ c + zeta c + ln (l_ c))) + x))
      with ((lse c - M0 + x) + (sh (fst t) - m_ c + snd t) - ln (l_ c)) by ring.
    rewrite exp_minus, exp_plus, exp_ln by auto. field. lra.
Qed.
Lemma key_of_part c t : In c parts -> In t (snd (f c)) -> In (fst t) (keys c).
Proof. intros Ic It. destruct (Hf c Ic) as (Pm & _). apply (Permutation_in _ Pm). apply in_map. auto. Qed.
Lemma merged_mass M0 : exp M0 * Sum (weight K sh' M0) (merged_o M0 f to_) = Sum (fun c => share c * exp (rho M0 c))
    parts.
Proof.
  unfold split.merged_o. rewrite Sum_flat_map, <- Sum_scal. apply Sum_ext. intros c Ic.
  rewrite final_mass; auto. intros t It. apply (key_of_part c); auto.
Qed.

Lemma mass_le c : In c parts -> 0 < mass c <= exp b.
Proof.
  intros Ic. assert (Pl := l_pos c Ic). assert (HL := parts_sum c Ic).
  destruct (Hf c Ic) as (Pm & Pp & kl & cl & ko & co & rc & Hr & [Cl _] & SL & _).
  destruct (sums_counts K sh A0 _ _ _ _ _ _ _ _ _ SL) as (_ & Kl & _).
  assert (Nc := flat_map_length_le keys parts c Ic). fold J in Nc.
  assert (Nn : (length (fst (f c)) <= n)%nat).
  { rewrite (Permutation_length Pp), <- (map_length fst), (Permutation_length Pm). apply flat_map_length_le. auto. }
  assert (Kk : (kl <= kk K J R0)%nat) by (unfold kk; lia).
  assert (LJ := lost_most K sh A0 (fst (f c)) (m_ c) kl rc cl n R0 ops A0_sane Nn Kk Hr ltac:(lia)).
  assert (U0 := uf_pos prec).
  assert (U1 := @uf_lt1 prec Hprec).
  assert (Low := sums_lower K sh A0 A0_sane (bound.part R0) (part_pos R0) (one K) (w_l A0) (lampd A0) w_l_1
    ltac:(simpl; lra) _ _ _ _ _ _ ltac:(simpl; lra) ltac:(unfold w_l; simpl; lra) (fun _ => eq_refl) SL).
  unfold mass. rewrite <- (Sum_perm _ _ _ Pp). set (W := Sum (weight K sh (m_ c)) (fst (f c))) in *.
  assert (PW : 0 < W).
  { apply Sum_pos; [|intros; apply exp_pos]. intros E0. rewrite E0 in *. apply Permutation_nil in Pp. rewrite Pp in Pm.
    simpl in Pm. apply Permutation_nil in Pm. destruct (parts_good c Ic) as (? & ? & ? & ? & ? & G & _).
    destruct (g_m _ _ _ _ _ _ _ _ _ _ _ _ _ _ G) as (i & Ii & _). rewrite Pm in Ii. destruct Ii. }
  split; [apply Rdiv_lt_0_compat; auto|].
  set (Lj := most_lost A0 n R0 ops) in *.
  assert (Pk : (1 - uf) ^ kk K J R0 <= (1 - uf) ^ kl).
  { replace ((1 - uf) ^ kk K J R0) with ((1 - uf) ^ kl * (1 - uf) ^ (kk K J R0 - kl)) by (rewrite <- pow_add; f_equal;
      lia).
    assert (Le1 : (1 - uf) ^ (kk K J R0 - kl) <= 1 ^ (kk K J R0 - kl)) by (apply pow_incr; lra). rewrite pow1 in Le1.
    assert (Q2 : 0 <= (1 - uf) ^ kl) by (apply pow_le; lra).
    assert ((1 - uf) ^ kl * (1 - uf) ^ (kk K J R0 - kl) <= (1 - uf) ^ kl * 1) by (apply Rmult_le_compat_l; auto). lra. }
  assert (Pp0 : 0 < (1 - uf) ^ kk K J R0) by (apply pow_lt; lra).
  assert (Up : (1 - uf) ^ kk K J R0 * W <= l_ c + Lj).
  { assert ((1 - uf) ^ kk K J R0 * W <= (1 - uf) ^ kl * W) by (apply Rmult_le_compat_r; lra).
    replace (2 - w_l A0) with 1 in Low by (unfold w_l; simpl; ring). change (u A0) with uf in Low. lra. }
  assert (L0 : 0 <= Lj).
  { lra. }
  assert (Lc : Lj <= exp del * Lj * l_ c).
  { assert (E1 : exp del * exp (- del) = 1) by (rewrite <- exp_plus, Rplus_opp_r; apply exp_0).
    assert (Ed := exp_pos del). assert (exp del * exp (- del) <= exp del * l_ c) by (apply Rmult_le_compat_l; lra).
    assert (1 * Lj <= exp del * l_ c * Lj) by (apply Rmult_le_compat_r; lra). lra. }
  apply Rmult_le_reg_r with (l_ c * (1 - uf) ^ kk K J R0); [apply Rmult_lt_0_compat; auto|].
  replace (W / l_ c * (l_ c * (1 - uf) ^ kk K J R0)) with ((1 - uf) ^ kk K J R0 * W) by (field; lra).
  assert (Hb2 : (1 + exp del * Lj) * l_ c <= exp b * (1 - uf) ^ kk K J R0 * l_ c) by (apply Rmult_le_compat_r; lra).
  lra.
Qed.

Lemma rho_le M0 c : inF M0 -> In c parts -> lse c <= M0 -> Rabs (rho M0 c) <= e1 + uf * ((M0 + b) - ln (share c)).
Proof.
  intros F0 Ic H. destruct (mass_le c Ic) as [Pm Lm].
  destruct (factor_exponent emin prec fexp epsE lamE exp_good (lse c) M0 (lse_inF c) F0 H) as [E1 E2].
  destruct (split_spec Ag Ag_sane _ _ E2) as [_ S2]. unfold rho.
  eapply Rle_trans; [apply Rabs_triang|].
  assert (Ls : ln (share c) <= lse c + b).
  { unfold share. rewrite ln_mult, ln_exp by (auto; apply exp_pos). apply Rplus_le_compat_l.
    rewrite <- (ln_exp b). destruct Lm as [Lm|Lm]; [left; apply ln_increasing; auto|rewrite Lm; lra]. }
  assert (U0 := uf_pos prec). simpl (thE A0) in E1. simpl (xr A0) in E1.
  assert (uf * (M0 - lse c) <= uf * (M0 + b - ln (share c))) by (apply Rmult_le_compat_l; lra).
  unfold eps1 in S2. simpl (eps Ag) in S2. lra.
Qed.

(** All that is said of a reference M0: the sum of weights relative to it, as the parts' shares. *)
Definition mu M0 := e1 + uf * (M0 + b - ln (Sum share parts) + lnP).
Lemma mass_spread M0 : inF M0 -> (forall c, In c parts -> lse c <= M0) ->
  exp (- mu M0) * Sum share parts <= exp M0 * Sum (weight K sh' M0) (merged_o M0 f to_) <= exp (mu M0) * Sum share
      parts.
Proof.
  intros F0 H. rewrite merged_mass. assert (U0 := uf_pos prec). assert (U1 := @uf_lt1 prec Hprec).
  apply (exponents_spread parts share (rho M0) uf e1 (M0 + b)); try lra.
  - apply leaves_ne.
  - intros c Ic. apply Rmult_lt_0_compat; [apply exp_pos|apply mass_le; auto].
  - intros c Ic. apply rho_le; auto.
Qed.

Lemma sum_ge1 : 1 <= l.
Proof. rewrite <- exp0_is_1. apply suml_ge_exp0; auto. Qed.
Lemma total_ge : M <= total.
Proof.
  unfold total. rewrite <- (rnd_id emin prec M) at 1 by apply largest_inF. apply rnd_mono; auto.
  assert (Q0 := log_nonneg l sum_ge1). lra.
Qed.
Lemma total_inF : inF total.
Proof. apply rnd_inF. auto. Qed.

Lemma log_sum_le kl rl cl : (rl <= r)%nat -> (cl <= ops)%nat ->
  sums K sh' Ag (one K) (w_l Ag) (lampd Ag) (merged_l M f tl) M l kl rl cl -> 0 <= ln l <= Lg.
Proof.
  intros Hr Hc SL. assert (L1 := sum_ge1). split.
  { rewrite <- ln_1. destruct L1 as [L1|<-]; [left; apply ln_increasing; lra|lra]. }
  assert (Ln : length (merged_l M f tl) = n).
  { rewrite (Permutation_length (merged_perm M f Hf)), <- (map_length fst), (Permutation_length (merged_keys M f Hf)).
    auto. }
  destruct (sums_counts K sh' Ag _ _ _ _ _ _ _ _ _ SL) as (_ & Kl & _). rewrite Ln in *.
  assert (Sz := sums_size Ag Ag_sane K sh' (bound.part r) (one K) (w_l Ag) (lampd Ag) _ _ _ _ _ _ (part_pos r) w_l_1
    ltac:(simpl; lra) SL).
  assert (Kk : (kl <= kk K J r)%nat) by (unfold kk; lia).
  assert (LJ := lost_most K sh' Ag (merged_l M f tl) M kl rl cl n r ops Ag_sane ltac:(lia) Kk Hr Hc).
  change (most_lost Ag n r ops) with (most_lost A0 n r ops) in LJ.
  rewrite sum_ones, Ln, (Rabs_pos_eq l) in Sz by lra.
  assert (Up : l <= exp Lg).
  { eapply Rle_trans; [apply Sz|]. eapply Rle_trans; [|apply HLg2]. apply Rplus_le_compat; [|lra].
    assert (Pm1 := P_mono A0 A0_sane (w_l A0) w_l_1 _ _ Kk). assert (P0 := P_ge A0 A0_sane (w_l A0) w_l_1 kl).
    assert (W1 := w_l_1). assert (Gm := gain_mono A0 A0_sane _ _ Hr). assert (Gp := gain_pos A0 rl).
    assert (I0 := pos_INR n).
    change (P Ag (w_l Ag) kl) with (P A0 (w_l A0) kl). change (gain Ag rl) with (gain A0 rl).
    apply Rmult_le_compat; [lra|apply Rmult_le_pos; lra|auto|]. rewrite Rmult_comm. apply Rmult_le_compat_l; lra. }
  rewrite <- (ln_exp Lg). destruct Up as [Up|Up]; [left; apply ln_increasing; lra|rewrite Up; lra].
Qed.

Lemma largest_size : Rabs M <= Qt + Lg + err Qt.
Proof.
  assert (Bt := Rabs_bounds _ _ HQt). apply Rabs_le_iff. split.
  - destruct HQi as (i & Ii & Li). unfold split.J in Ii. apply in_flat_map in Ii. destruct Ii as (c & Ic & Ik).
    destruct (part_max c i Ic Ik) as [_ Qi]. assert (E := Rabs_bounds _ _ (lse_error c Qt Ic ltac:(lra))).
    assert (B := Rabs_bounds _ _ (log_le c Ic)). assert (Bm := Rabs_bounds _ _ Qi). assert (Mc := largest_ge c Ic). lra.
  - destruct (tmax_in nat lse tl) as (c & Ic & ->). apply (Permutation_in _ Hp) in Ic. assert (Q1 := lse_le c Ic). lra.
Qed.
Lemma total_error : 0 <= ln l <= Lg -> 0 <= total_err /\ Rabs (total - (M + ln l)) <= uf * ln l + total_err.
Proof.
  intros HL. assert (L1 := sum_ge1). assert (N := log_good l ltac:(lra)). unfold near in N.
  assert (R1 := rnd_plus emin prec _ _ largest_inF (log_inF l)). assert (HM := largest_size). unfold total.
  rewrite (Rabs_pos_eq (ln l)) in N by lra. set (y := flog l) in *. set (z := ln l) in *. set (x := M) in *.
  assert (U0 := uf_pos prec). assert (Le : epsL * z <= epsL * Lg) by (apply Rmult_le_compat_l; lra).
  assert (x0 := Rabs_pos x). assert (d0 := Rabs_pos (y - z)). assert (Le2 : Rabs (y - z) <= epsL * Lg + lamL) by lra.
  assert (S1 : Rabs (x + y) <= z + ((Qt + Lg + err Qt) + (epsL * Lg + lamL))).
  { replace (x + y) with (z + (x + (y - z))) by ring. eapply Rle_trans; [apply Rabs_triang|].
    rewrite (Rabs_pos_eq z) by lra. assert (T1 := Rabs_triang x (y - z)). lra. }
  assert (S2 : uf * Rabs (x + y) <= uf * (z + ((Qt + Lg + err Qt) + (epsL * Lg + lamL)))) by (apply Rmult_le_compat_l;
      lra).
  unfold total_err. split.
  - assert (0 <= uf * ((Qt + Lg + err Qt) + (epsL * Lg + lamL))) by (apply Rmult_le_pos; lra). lra.
  - replace (rnd (x + y) - (x + z)) with ((rnd (x + y) - (x + y)) + (y - z)) by ring.
    eapply Rle_trans; [apply Rabs_triang|]. lra.
Qed.

Lemma undivided_error : Rabs (merge_undivided - exact K s vv J) <= undivided.
Proof.
  destruct (merged_weights M largest_inF largest_ge f Hf tl) as (kl & rl & cl & [Rl Cl] & SL).
  { intros c. apply (Permutation_in _ Hp). }
  assert (Ge : forall c, In c parts -> lse c <= total).
  { intros c Ic. eapply Rle_trans; [apply largest_ge; auto|apply total_ge]. }
  destruct (merged_values total total_inF Ge f Hf to_) as (ko & ro & co & [Ro Co] & SO); auto.
  rewrite keys_of_order in Cl. fold J in Co.
  assert (HL := log_sum_le kl rl cl Rl ltac:(lia) SL). destruct (total_error HL) as [TE0 TE]. assert (L1 := sum_ge1).
  apply Rabs_bounds in TE. assert (U0 := uf_pos prec).
  assert (UL : 0 <= uf * ln l <= uf * Lg) by (split; [apply Rmult_le_pos|apply Rmult_le_compat_l]; lra).
  assert (Hm0 := reference_le). assert (TG := total_ge).
  assert (Hm : M <= Mu + gap Ag + Cs) by (unfold Mu; lra).
  assert (Ht : total <= Mu + gap Ag + Cs) by (unfold Mu; lra).
  assert (Ko := merged_keys M f Hf). assert (Pm := merged_perm M f Hf).
  assert (Kl : Permutation (map fst (merged_l M f tl)) J) by (eapply Permutation_trans;
      [apply Permutation_map, Pm|auto]).
  set (W1 := Sum (weight K sh' M) (merged_o M f to_)). set (W2 := Sum (weight K sh' total) (merged_o total f to_)).
  assert (HF1 : 1 <= Sum (weight K sh' M) (merged_l M f tl) * F Ag r).
  { apply (weight_enough K Ag Ag_sane J r ops (exp (- del))); [|apply Hgap].
    assert (Kept := weight_kept K sh' Ag Ag_sane J r ops _ M l kl rl cl Kl SL Rl ltac:(lia)).
    assert (exp (- del) <= 1) by (rewrite <- exp0_is_1; auto). lra. }
  set (bg := documented.big K s Ag a' J Mu r (one K) 1).
  destruct (weights_error K s sh' Ag Ag_sane a' J Mu kl cl r bg Cs NJ scores_near _ M l rl Kl Hm SL Rl HF1) as
    (PW & HD & Hl).
  rewrite (Sum_perm _ _ _ Pm) in PW, HD, Hl. fold W1 in PW, HD, Hl.
  destruct (sums_counts _ _ _ _ _ _ _ _ _ _ _ _ SL) as (_ & Ckl & _).
  destruct (sums_counts _ _ _ _ _ _ _ _ _ _ _ _ SO) as (_ & Cko & _).
  rewrite <- (map_length fst), (Permutation_length Kl) in Ckl.
  rewrite <- (map_length fst), (Permutation_length (merged_keys total f Hf)) in Cko.
  destruct (denominator_documented K s Ag Ag_sane eq_refl a' J Mu r ops kl cl NJ) as [D1 D2];
    [change (kl <= kk K J r)%nat; unfold kk; lia|lia|].
  fold bg in D1, D2. set (D := UDd K s Ag a' J Mu r + LDd K s Ag a' J Mu r ops) in *.
  set (lw := low_d K s Ag a' J Mu r ops) in *. assert (HD' : Rabs (l - W1) <= W1 * D).
  { eapply Rle_trans; [apply HD|]. apply Rmult_le_compat_l; lra. }
  assert (D0 : 0 <= D).
  { apply Rmult_le_reg_l with W1; auto. rewrite Rmult_0_r. eapply Rle_trans; [apply Rabs_pos|apply HD']. }
  assert (Hl' : W1 * lw <= l) by (eapply Rle_trans; [|apply Hl]; apply Rmult_le_compat_l; lra).
  apply Rabs_bounds in HD'. assert (U1 := @uf_lt1 prec Hprec). assert (E0 : 0 <= e1) by lra.
  (* the two sums of shares *)
  destruct (mass_spread M largest_inF largest_ge) as [A1 A2]. destruct (mass_spread total total_inF Ge) as [B1 B2].
  fold W1 in A1, A2. fold W2 in B1, B2. set (S0 := Sum share parts) in *.
  assert (PS : 0 < S0).
  { apply sum_positive; [apply leaves_ne|]. intros c Ic. apply Rmult_lt_0_compat; [apply exp_pos|apply mass_le; auto]. }
  set (me := merge_err) in *. assert (Eme := exp_pos me).
  set (x := M - ln S0).
  assert (Room : 1 + D <= exp room \/ me < 0).
  { destruct (Rlt_dec me 0) as [N|N]; [right; auto|left].
    assert (E1 := exp_ge1 me ltac:(lra)). assert (1 * (1 + D) <= exp me * (1 + D)) by (apply Rmult_le_compat_r; lra).
    lra. }
  assert (P0 : 0 <= lnP).
  { assert (N1 : 1 <= INR (length parts)).
    { assert (Q0 := leaves_ne nat to_). destruct (leaves nat to_); [congruence|apply (le_INR 1); simpl; lia]. }
    rewrite <- ln_1.
    destruct N1 as [N1|<-]; [left; apply ln_increasing; lra|lra]. }
  assert (b0 : 0 <= 2 * kappa + (uf * Lg + total_err) + 2 * b + 2 * lnP).
  { assert (Kp : 0 <= kappa + (b + lnP)).
    { assert (Q1 : (e1 + room) + (b + lnP) <= (kappa + (b + lnP)) * (1 - uf)) by lra.
      assert (Eb : 0 <= b).
      { assert (Pw : (1 - uf) ^ kk K J R0 <= 1 ^ kk K J R0) by (apply pow_incr; lra). rewrite pow1 in Pw.
        assert (Lj0 := lost_most K sh A0 [] 0 0 0 0 n R0 ops A0_sane (Nat.le_0_l _) (Nat.le_0_l _) (Nat.le_0_l _)
          (Nat.le_0_l _)).
        assert (Ed := exp_pos del). assert (Eb := exp_pos b).
        assert (0 <= exp del * most_lost A0 n R0 ops)
          by (apply Rmult_le_pos; lra).
        assert (exp b * (1 - uf) ^ kk K J R0 <= exp b * 1) by (apply Rmult_le_compat_l; lra).
        destruct (Rle_dec 0 b); auto. assert (exp b < 1) by (rewrite <- exp_0; apply exp_increasing; lra). lra. }
      assert (Kn : 0 <= kappa * (1 - uf)).
      { assert (0 <= uf * (b + lnP)) by (apply Rmult_le_pos; lra). lra. }
      assert (0 <= kappa); [|lra]. apply Rmult_le_reg_r with (1 - uf); lra. }
    lra. }
  assert (me0 : 0 <= me).
  { unfold me, merge_err. assert (0 <= uf * (2 * kappa + (uf * Lg + total_err) + 2 * b + 2 * lnP))
      by (apply Rmult_le_pos; lra). lra. }
  destruct Room as [Room|Room]; [|lra].
  assert (Hx : x <= kappa - ln l).
  { assert (A3 : exp M * l <= exp (room + mu M) * S0).
    { apply Rle_trans with (exp room * (exp M * W1)).
      - assert (l <= exp room * W1) by (assert ((1 + D) * W1 <= exp room * W1) by (apply Rmult_le_compat_r; lra); lra).
        assert (EM := exp_pos M). assert (exp M * l <= exp M * (exp room * W1)) by (apply Rmult_le_compat_l; lra). lra.
      - rewrite exp_plus, Rmult_assoc. apply Rmult_le_compat_l; [left; apply exp_pos|auto]. }
    assert (A4 : M + ln l <= room + mu M + ln S0).
    { assert (EM : 0 < exp M * l) by (apply Rmult_lt_0_compat; [apply exp_pos|lra]).
      assert (Q1 : ln (exp M * l) <= ln (exp (room + mu M) * S0))
        by (destruct A3 as [A3|A3]; [left; apply ln_increasing; auto|rewrite A3; lra]).
      rewrite !ln_mult, !ln_exp in Q1 by (try apply exp_pos; lra). exact Q1. }
    unfold mu in A4. fold S0 in A4. unfold x.
    assert (A5 : (M - ln S0) * (1 - uf) <= (kappa - ln l) * (1 - uf)).
    { assert (0 <= uf * ln l) by (apply Rmult_le_pos; lra). lra. }
    apply Rmult_le_reg_r with (1 - uf); lra. }
  assert (Mus : mu M + mu total + (uf * ln l + total_err) <= me).
  { unfold mu, me, merge_err. fold S0.
    assert (uf * (M + b - ln S0 + lnP) <= uf * (kappa - ln l + b + lnP)) by (apply Rmult_le_compat_l; unfold x in Hx;
        lra).
    assert (uf * (total + b - ln S0 + lnP) <= uf * (kappa + (uf * Lg + total_err) + b + lnP))
      by (apply Rmult_le_compat_l; unfold x in Hx; lra). lra. }
  assert (ET := exp_pos total). assert (EM := exp_pos M). assert (El : exp (ln l) = l) by (apply exp_ln; lra).
  assert (Up : W2 * l <= exp me * W1).
  { assert (Q1 : exp total * W2 <= exp (mu total) * (exp (mu M) * (exp M * W1))).
    { eapply Rle_trans; [apply B2|]. apply Rmult_le_compat_l; [left; apply exp_pos|].
      assert (Q2 : exp (mu M) * (exp (- mu M) * S0) <= exp (mu M) * (exp M * W1))
        by (apply Rmult_le_compat_l; [left; apply exp_pos|auto]).
      rewrite <- Rmult_assoc, <- exp_plus, Rplus_opp_r, exp_0, Rmult_1_l in Q2. exact Q2. }
    apply Rmult_le_reg_l with (exp total); auto.
    apply Rle_trans with (exp (mu total) * (exp (mu M) * (exp M * W1)) * exp (ln l)).
    - rewrite El, <- Rmult_assoc. apply Rmult_le_compat_r; lra.
    - replace (exp (mu total) * (exp (mu M) * (exp M * W1)) * exp (ln l)) with (exp (mu total + mu M + M + ln l) * W1)
        by (rewrite !exp_plus; ring).
      rewrite <- Rmult_assoc, <- exp_plus. apply Rmult_le_compat_r; [lra|]. apply exp_mono. lra. }
  assert (Dn : exp (- me) * W1 <= W2 * l).
  { assert (Q1 : exp (- mu total) * (exp (- mu M) * (exp M * W1)) <= exp total * W2).
    { eapply Rle_trans; [|apply B1]. apply Rmult_le_compat_l; [left; apply exp_pos|].
      assert (Q2 : exp (- mu M) * (exp M * W1) <= exp (- mu M) * (exp (mu M) * S0))
        by (apply Rmult_le_compat_l; [left; apply exp_pos|auto]).
      rewrite <- Rmult_assoc, <- (Rmult_assoc _ (exp (mu M))), <- !exp_plus, Rplus_opp_l, exp_0, Rmult_1_l, exp_plus,
        Rmult_assoc in Q2. exact Q2. }
    apply Rmult_le_reg_l with (exp total); auto.
    apply Rle_trans with (exp (- mu total) * (exp (- mu M) * (exp M * W1)) * exp (ln l)).
    - replace (exp (- mu total) * (exp (- mu M) * (exp M * W1)) * exp (ln l)) with
        (exp (- mu total + - mu M + M + ln l) * W1) by (rewrite !exp_plus; ring).
      rewrite <- Rmult_assoc, <- exp_plus. apply Rmult_le_compat_r; [lra|]. apply exp_mono. lra.
    - rewrite El, <- (Rmult_assoc (exp total)). apply Rmult_le_compat_r; lra. }
  assert (Inv : exp me * exp (- me) = 1) by (rewrite <- exp_plus, Rplus_opp_r; apply exp_0).
  assert (Enm := exp_pos (- me)). assert (E1 := exp_ge1 me me0).
  (* what is 1 in exact arithmetic *)
  assert (C1 : 1 <= W2 * ((1 + D) * exp me)).
  { apply Rmult_le_reg_l with l; [lra|]. rewrite Rmult_1_r. apply Rle_trans with (W1 * (1 + D)); [lra|].
    assert (Q1 : exp me * (exp (- me) * W1) <= exp me * (W2 * l)) by (apply Rmult_le_compat_l; lra).
    rewrite <- Rmult_assoc, Inv, Rmult_1_l in Q1.
    assert (W1 * (1 + D) <= exp me * (W2 * l) * (1 + D)) by (apply Rmult_le_compat_r; lra). lra. }
  assert (PW2 : 0 < W2).
  { assert (0 < W2 * l); [|apply Rmult_lt_reg_r with l; lra]. eapply Rlt_le_trans; [|apply Dn].
    apply Rmult_lt_0_compat; lra. }
  assert (C2 : W2 * exp (- me) * l <= W1).
  { assert (Q1 : exp (- me) * (W2 * l) <= exp (- me) * (exp me * W1)) by (apply Rmult_le_compat_l; lra).
    replace (exp (- me) * (exp me * W1)) with (exp me * exp (- me) * W1) in Q1 by ring. rewrite Inv in Q1. lra. }
  assert (C3 : W2 * (2 - (1 + D) * exp me) <= 1).
  { assert (Q1 : 2 - (1 + D) * exp me <= (1 - D) * exp (- me)).
    { assert (0 <= (exp me - 1) * (1 - exp (- me))).
      { apply Rmult_le_pos; [lra|]. assert (exp (- me) <= 1) by (apply exp_le1; lra). lra. }
      assert (exp (- me) <= exp me) by (apply exp_mono; lra).
      assert (0 <= D * (exp me - exp (- me))) by (apply Rmult_le_pos; lra). lra. }
    apply Rle_trans with (W2 * ((1 - D) * exp (- me))); [apply Rmult_le_compat_l; lra|].
    destruct (Rle_dec 0 (1 - D)) as [N|N].
    - apply Rmult_le_reg_r with l; [lra|]. assert ((1 - D) * (W2 * exp (- me) * l) <= (1 - D) * W1)
        by (apply Rmult_le_compat_l; lra). lra.
    - assert (0 <= (D - 1) * (W2 * exp (- me))) by (apply Rmult_le_pos; [lra|apply Rmult_le_pos; lra]). lra. }
  assert (C4 : W2 * low_u <= 1).
  { unfold low_u. fold lw me. apply Rmult_le_reg_r with l; [lra|].
    assert (lw * (W2 * exp (- me) * l) <= lw * W1) by (apply Rmult_le_compat_l; lra). lra. }
  assert (HF2 : 1 <= W2 * F Ag r).
  { eapply Rle_trans; [apply C1|]. apply Rmult_le_compat_l; [lra|]. eapply Rle_trans; [apply Hsmall|].
    unfold F. apply exp_mono. simpl (thE Ag). simpl (T Ag). simpl (gap Ag). simpl (last Ag).
    assert (X0 := X_pos Ag Ag_sane r).
    assert (0 <= uf * room) by (apply Rmult_le_pos; lra). lra. }
  assert (Q9 := mean_error K s sh' vv Ag Ag_sane a' J Mu ko co r
    (documented.big K s Ag a' J Mu r vv (bound.size K s vv Ag a' J Mu r)) Cs NJ scores_near (merged_o total f to_) total
    merge_undivided ro 1 (Nd K s vv Ag a' J Mu r + LNd K s vv Ag a' J Mu r ops) DDu low_u 0 0 merge_undivided
    (merged_keys total f Hf) Ht SO Ro).
  fold W2 in Q9. eapply Rle_trans; [apply Q9; auto|unfold undivided; lra].
  - apply numerator_documented; [exact Ag_sane|reflexivity|exact NJ|change (ko <= kk K J r)%nat; unfold kk; lia|lia].
  - unfold DDu. fold D me. assert (1 * 1 <= (1 + D) * exp me) by (apply Rmult_le_compat; lra). lra.
  - unfold low_u. fold lw me. apply Rmult_lt_0_compat; auto.
  - apply Rabs_le_iff. unfold DDu. fold D me. lra.
  - lra.
  - unfold near. replace (merge_undivided / 1) with merge_undivided by field. rewrite Rminus_eq_0, Rabs_R0.
    assert (0 <= Rabs merge_undivided) by apply Rabs_pos. lra.
Qed.
End Chosen.

(** The document's bound with the merge's part of UD. *)
Lemma undivided_tolerance : Rabs (merge_undivided - exact K s vv J) <= undivided.
Proof. destruct parts_terms as [f Hf]. apply (undivided_error f Hf). Qed.
End Undivided.
