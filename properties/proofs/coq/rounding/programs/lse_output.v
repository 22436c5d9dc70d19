(** The log-sum-exp as a result of its own: how far it is from the exact one, whatever way the sum of weights came
    about. *)
From Coq Require Import Reals List Lra Lia Psatz Permutation ZArith.
From Flocq Require Import Core.
From Attest.Rounding Require Import basics scores merge bound kernels base_two.
Import ListNotations.
Open Scope R_scope.

Lemma ln_mono x y : 0 < x -> x <= y -> ln x <= ln y.
Proof. intros P [H| ->]; [left; apply ln_increasing; auto|lra]. Qed.

Section LseOutput.
Variable K : Type.
Variables s sh : K -> R.   (* exact score, computed score *)
Variable A : arith.
Hypothesis OK : sane A.
(** a: error of a score up to a shift that all keys share; ap: with that shift, which is an error of the log-sum-exp. *)
Variables a ap : K -> R.
Variable J : list K.
Variable Mp : R.
Variables kl cl r : nat.
Variable bigl : K -> bool.
Local Notation alpha := (alpha K s J).
Local Notation total := (total K s J).
Local Notation X := (X A).
Local Notation D := (D K s A a Mp).
Local Notation E := (E K s A a Mp r).
Local Notation UD := (UD K s A a J Mp kl r bigl).
Local Notation LD := (LD K s A a J Mp kl cl r).
Local Notation low := (low K s A a J Mp kl cl r bigl).
Local Notation n := (INR (length J)).

Definition lse := ln total.
(** E'_j of error-bounds.md 1.6, and how far they move the logarithm of the sum. *)
Definition E' j := ap j + thE A * D j + X r.
Definition moved := Rmax (ln (Sum (fun j => alpha j * exp (E' j)) J)) (- ln (Sum (fun j => alpha j * exp (- E' j)) J)).
(** What is wrong with the sum itself. *)
Definition of_sum := Rmax (- ln low) (UD + LD).
(** The logarithm of the sum is no larger: ln n + 1 where no maximum is stale. *)
Definition log_size := ln n + (1 + 2 * thE A) * T A + (1 + thE A) * gap A + X r + of_sum + off A + last A.

Section Sum.
Variable tl : list (K * R).
Variables m l Cs : R.
Variable rl : nat.
Hypothesis NJ : J <> [].
Hypothesis M : Permutation (map fst tl) J.
Hypothesis HL : sums K sh A (one K) (w_l A) (lampd A) tl m l kl rl cl.
Hypothesis Hrl : (rl <= r)%nat.
Hypothesis Ha : forall j, In j J -> Rabs (sh j - (s j + Cs)) <= a j.
Hypothesis Hap : forall j, In j J -> Rabs (sh j - s j) <= ap j.
Hypothesis HM : forall j, In j J -> s j + a j <= Mp.
Hypothesis Hm : exists i, In i J /\ m <= sh i + gap A.
Hypothesis Hd : 0 < low.
Let w := weight K sh m.
Let W := Sum w tl.

Local Notation terms_known :=
  (terms_known K sh A OK r _ _ _ _ _ _ _ _ _ (wl_ge1 A OK) (s_lampd A OK) HL Hrl).

(** The error of an exponent but for that of the score. *)
Lemma exponent_known t : In t tl -> Rabs (snd t) <= thE A * D (fst t) + X r.
Proof.
  intros It. destruct (terms_known t It) as [_ K2]. unfold plain in K2. assert (TE := s_thE A OK).
  assert (Aj := Rabs_bounds _ _ (Ha _ (keys_of_terms K J tl M t It))).
  assert (Q := reference_at_most K s sh A a J Mp Cs Ha m HM Hm).
  assert (thE A * (m - sh (fst t) + 2 * T A) <= thE A * D (fst t)); [|lra].
  apply Rmult_le_compat_l; unfold bound.D; lra.
Qed.

(** The exact sum of the perturbed weights. *)
Lemma weights_moved : Rabs (m + ln W - lse) <= moved.
Proof.
  assert (PT := total_pos K s J NJ). set (eta := fun t : K * R => sh (fst t) - s (fst t) + snd t).
  assert (He : forall t, In t tl -> Rabs (eta t) <= E' (fst t)).
  { intros t It. unfold eta, E'. eapply Rle_trans; [apply Rabs_triang|]. assert (Q := exponent_known t It).
    assert (Q2 := Hap _ (keys_of_terms K J tl M t It)). lra. }
  set (V := Sum (fun t => alpha (fst t) * exp (eta t)) tl).
  assert (EW : W = exp (- m) * total * V).
  { unfold W, V. rewrite <- Sum_scal. apply Sum_ext. intros t _. unfold w, weight, bound.alpha, eta.
    replace (sh (fst t) - m + snd t) with (- m + (s (fst t) + (sh (fst t) - s (fst t) + snd t))) by ring.
    rewrite !exp_plus. field. lra. }
  assert (Vp : 0 < V).
  { apply Sum_pos; [apply (terms_ne K J NJ tl M)|]. intros.
    apply Rmult_lt_0_compat; [apply alpha_pos; auto|apply exp_pos]. }
  assert (Em := exp_pos (- m)).
  assert (LW : m + ln W - lse = ln V).
  { rewrite EW, !ln_mult; auto; [|apply Rmult_lt_0_compat; auto]. rewrite ln_exp. unfold lse. ring. }
  rewrite LW.
  assert (Up : V <= Sum (fun j => alpha j * exp (E' j)) J).
  { rewrite <- (over_terms K J tl (fun j => alpha j * exp (E' j)) M). apply Sum_le. intros t It.
    apply Rmult_le_compat_l; [left; apply alpha_pos; auto|].
    apply exp_mono. assert (B := Rabs_bounds _ _ (He t It)). lra. }
  assert (Down : Sum (fun j => alpha j * exp (- E' j)) J <= V).
  { rewrite <- (over_terms K J tl (fun j => alpha j * exp (- E' j)) M). apply Sum_le. intros t It.
    apply Rmult_le_compat_l; [left; apply alpha_pos; auto|].
    apply exp_mono. assert (B := Rabs_bounds _ _ (He t It)). lra. }
  assert (Dp : 0 < Sum (fun j => alpha j * exp (- E' j)) J).
  { apply Sum_pos; auto. intros. apply Rmult_lt_0_compat; [apply alpha_pos; auto|apply exp_pos]. }
  assert (U1 := ln_mono _ _ Vp Up). assert (D1 := ln_mono _ _ Dp Down). unfold moved.
  set (x := ln (Sum (fun j => alpha j * exp (E' j)) J)) in *. set (y := - ln (Sum (fun j => alpha j * exp (- E' j))
    J)) in *.
  assert (M1 := Rmax_l x y). assert (M2 := Rmax_r x y). apply Rabs_le_iff. unfold y in *. lra.
Qed.

(** Both, and the size of the logarithm. *)
Lemma log_of_sum : 0 < l /\ Rabs (ln l - ln W) <= of_sum /\ Rabs (ln l) <= log_size.
Proof.
  assert (HF := sum_at_least K sh A OK J r NJ tl m M terms_known Hm : 1 <= W * F A r).
  destruct (weights_error K s sh A OK a J Mp kl cl r bigl Cs NJ Ha tl m l rl M
    (reference_at_most K s sh A a J Mp Cs Ha m HM Hm) HL Hrl HF) as (PW & HD & HlowW).
  change (0 < W) in PW. change (Rabs (l - W) <= W * (UD + LD)) in HD. change (W * low <= l) in HlowW.
  assert (Pl : 0 < W * low) by (apply Rmult_lt_0_compat; auto). assert (L0 : 0 < l) by lra.
  set (y := UD + LD) in *. assert (Y : 0 <= y).
  { assert (0 <= W * y) by (eapply Rle_trans; [apply Rabs_pos|apply HD]). apply Rmult_le_reg_l with W; auto. lra. }
  apply Rabs_bounds in HD.
  assert (U1 : ln l <= ln W + y).
  { assert (Q := ln_mono l (W * (1 + y)) L0 ltac:(lra)). rewrite ln_mult in Q by lra.
    assert (Q2 := ln_le_minus1 (1 + y) ltac:(lra)). lra. }
  assert (D1 : ln W + ln low <= ln l).
  { assert (Q := ln_mono _ _ Pl HlowW). rewrite ln_mult in Q by lra. lra. }
  assert (M1 := Rmax_l (- ln low) y : - ln low <= of_sum). assert (M2 := Rmax_r (- ln low) y : y <= of_sum).
  split; auto. split; [apply Rabs_le_iff; lra|].
  assert (TE := s_thE A OK). assert (T0 := s_T A OK). assert (G0 := s_gap A OK). assert (X0 := X_pos A OK r).
  assert (N1 : 1 <= n).
  { apply (le_INR 1). destruct (length J) eqn:Z; [apply length_zero_iff_nil in Z; contradiction|lia]. }
  assert (N0 : 0 <= ln n) by (rewrite <- ln_1; apply ln_mono; lra).
  assert (TT : 0 <= thE A * T A) by (apply Rmult_le_pos; lra). assert (TG : 0 <= thE A * gap A) by
    (apply Rmult_le_pos; lra).
  assert (Op := s_off A OK). assert (Lp := s_last A OK).
  assert (WU : ln W <= ln n + (1 + thE A) * T A + X r + off A).
  { assert (Q : W <= n * gain A r).
    { rewrite <- (Permutation_length M), map_length, <- Sum_const. apply Sum_le. intros t It.
      apply known_gain; auto. apply terms_known; auto. }
    assert (Q2 := ln_mono _ _ PW Q). rewrite ln_mult in Q2 by (try lra; apply gain_pos).
    unfold gain in Q2. rewrite ln_exp in Q2. lra. }
  assert (WD : - (2 * (thE A * T A) + X r + (1 + thE A) * gap A + last A) <= ln W).
  { assert (Q := ln_mono 1 _ ltac:(lra) HF). rewrite ln_1, ln_mult in Q by (auto; apply exp_pos).
    unfold F in Q. rewrite ln_exp in Q. lra. }
  unfold log_size. apply Rabs_le_iff. split; lra.
Qed.

(** The reference is a score, but for what it may be stale or lie above all of them. *)
Variables lo hi : R.
Hypothesis Hhi : forall j, In j J -> s j + ap j <= hi.
Hypothesis Hlo : exists j, In j J /\ lo <= s j - ap j.
Definition Mabs := Rmax (Rabs lo) (Rabs hi) + Rmax (T A) (gap A).
Lemma reference_within : Rabs m <= Mabs.
Proof.
  destruct Hm as (i & Ii & Hi). destruct Hlo as (j & Ij & Lj).
  assert (Ai := Rabs_bounds _ _ (Hap _ Ii)). assert (Aj := Rabs_bounds _ _ (Hap _ Ij)). assert (Hh := Hhi _ Ii).
  assert (It := Permutation_in _ (Permutation_sym M) Ij). apply in_map_iff in It. destruct It as (t & Et & It).
  destruct (terms_known t It) as [K1 _]. rewrite Et in K1. unfold Mabs.
  assert (M1 := Rmax_l (Rabs lo) (Rabs hi)). assert (M2 := Rmax_r (Rabs lo) (Rabs hi)).
  assert (M3 := Rmax_l (T A) (gap A)). assert (M4 := Rmax_r (T A) (gap A)).
  assert (C1 := Rabs_bounds _ _ (Rle_refl (Rabs lo))). assert (C2 := Rabs_bounds _ _ (Rle_refl (Rabs hi))).
  apply Rabs_le_iff. lra.
Qed.

(** Returned: the logarithm, relative above 1 and absolute below; the reference as it is returned (times ln 2 say);
    their sum. *)
Variables eps_log u_m lam_m u_l lam_l : R.
Hypothesis Hel : 0 <= eps_log.
Hypothesis Hum : 0 <= u_m.
Hypothesis Hul : 0 <= u_l.
Definition lse_before := moved + of_sum + eps_log * Rmax 1 log_size + u_m * Mabs + lam_m.
Definition lse_tolerance := (1 + u_l) * lse_before + u_l * Rabs lse + lam_l.
Theorem lse_output_error mh lg lseh :
  Rabs (lg - ln l) <= eps_log * Rmax 1 (Rabs (ln l)) -> near u_m lam_m m mh -> near u_l lam_l (mh + lg) lseh ->
  Rabs (lseh - lse) <= lse_tolerance.
Proof.
  intros Hlg Hmh Hlse. destruct log_of_sum as (L0 & L1 & L2). assert (W1 := weights_moved). assert (R0 :=
    reference_within).
  assert (G : eps_log * Rmax 1 (Rabs (ln l)) <= eps_log * Rmax 1 log_size).
  { apply Rmult_le_compat_l; auto. apply Rmax_lub; [apply Rmax_l|]. eapply Rle_trans; [apply L2|apply Rmax_r]. }
  unfold near in *. assert (G2 := Rmult_le_compat_l _ _ _ Hum R0).
  assert (B : Rabs (mh + lg - lse) <= lse_before).
  { replace (mh + lg - lse) with ((m + ln W - lse) + (ln l - ln W) + (lg - ln l) + (mh - m)) by ring.
    unfold lse_before. eapply Rle_trans; [apply Rabs_triang|]. assert (Q := Rabs_triang (m + ln W - lse) (ln l - ln W)).
    assert (Q2 := Rabs_triang (m + ln W - lse + (ln l - ln W)) (lg - ln l)). lra. }
  assert (C1 : Rabs (mh + lg) <= Rabs lse + lse_before).
  { replace (mh + lg) with (lse + (mh + lg - lse)) by ring. eapply Rle_trans; [apply Rabs_triang|]. lra. }
  assert (C2 := Rmult_le_compat_l _ _ _ Hul C1). replace (lseh - lse) with ((lseh - (mh + lg)) + (mh + lg - lse)) by
    ring.
  eapply Rle_trans; [apply Rabs_triang|]. unfold lse_tolerance. lra.
Qed.

(** As error-bounds.md 1.6 has it, with 1.7.25: where no maximum is stale, nor any reference above the scores, and the
    sum itself is known to within a half. A stale maximum adds eps_log T, and T to the size of the reference. *)
Theorem lse_documented uh : T A = 0 -> gap A = 0 -> off A = 0 -> last A = 0 -> X r <= / 2 ->
  of_sum <= / 2 -> eps_log <= 1 ->
  u_m <= uh -> u_l <= uh -> uh <= 1 ->
  lse_tolerance <= moved + of_sum + eps_log * (ln n + 1) + uh * Mabs +
    3 * uh * (Rabs lse + moved + (ln n + 1) + Mabs) + ((1 + uh) * Rabs lam_m + Rabs lam_l).
Proof.
  intros T0 G0 Of La X0 O0 E1 M1 U1 H1. destruct log_of_sum as (_ & O1 & S1). assert (W1 := weights_moved).
  assert (P1 := Rabs_pos (ln l - ln W)). assert (P2 := Rabs_pos (m + ln W - lse)). assert (P3 := Rabs_pos lse).
  assert (P4 := reference_within). assert (P5 := Rabs_pos m).
  assert (N0 : 0 <= ln n).
  { rewrite <- ln_1. apply ln_mono; [lra|]. apply (le_INR 1).
    destruct (length J) eqn:Z; [apply length_zero_iff_nil in Z; contradiction|lia]. }
  assert (L1 : Rmax 1 log_size <= ln n + 1) by (apply Rmax_lub; [lra|]; unfold log_size; rewrite T0, G0, Of, La; lra).
  assert (L2 := Rmult_le_compat_l _ _ _ Hel L1).
  assert (L3 : eps_log * (ln n + 1) <= ln n + 1) by (rewrite <- (Rmult_1_l (ln n + 1)) at 2; apply Rmult_le_compat_r;
    lra).
  assert (L4 : u_m * Mabs <= uh * Mabs) by (apply Rmult_le_compat_r; lra).
  assert (L5 : uh * Mabs <= Mabs) by (rewrite <- (Rmult_1_l Mabs) at 2; apply Rmult_le_compat_r; lra).
  assert (A1 := Rle_abs lam_m). assert (A2 := Rle_abs lam_l).
  set (B := moved + of_sum + eps_log * (ln n + 1) + uh * Mabs + Rabs lam_m).
  assert (B1 : lse_before <= B) by (unfold lse_before, B; lra).
  assert (B2 : (1 + u_l) * lse_before <= (1 + u_l) * B) by (apply Rmult_le_compat_l; lra).
  assert (B3 : 0 <= B).
  { unfold B. assert (0 <= eps_log * (ln n + 1)) by (apply Rmult_le_pos; lra).
    assert (0 <= uh * Mabs) by (apply Rmult_le_pos; lra). assert (Q := Rabs_pos lam_m). lra. }
  assert (B4 : u_l * B <= uh * B) by (apply Rmult_le_compat_r; lra).
  assert (B5 : uh * B <= uh * (moved + / 2 + (ln n + 1) + Mabs + Rabs lam_m)) by
    (apply Rmult_le_compat_l; [lra|unfold B; lra]).
  assert (B6 : u_l * Rabs lse <= uh * Rabs lse) by (apply Rmult_le_compat_r; lra).
  assert (C1 : 0 <= uh * moved) by (apply Rmult_le_pos; lra). assert (C2 : 0 <= uh * ln n) by (apply Rmult_le_pos; lra).
  assert (C3 : 0 <= uh * Mabs) by (apply Rmult_le_pos; lra). assert (C4 : 0 <= uh * Rabs lse) by (apply Rmult_le_pos;
    lra).
  unfold lse_tolerance, B in *. lra.
Qed.
End Sum.
End LseOutput.

(** ** The programs of kernels.v return it: m + log l, both rounded. Of any state: two passes, a running maximum, a
    merge. *)
Section Programs.
Variables emin prec : Z.
Context {Hprec : Prec_gt_0 prec}.
Variable K : Type.
Variables sh vv : K -> R.
Variable fexp : R -> R.
Variables epsE lamE : R.
Hypothesis HepsE : 0 <= epsE < 1.
Hypothesis HlamE : 0 <= lamE.
Hypothesis exp_good : forall y, y <= 0 -> 0 <= fexp y /\ rounded epsE lamE (exp y) (fexp y).
Hypothesis exp_inF : forall y, inF emin prec (fexp y).
Hypothesis sh_inF : forall j, inF emin prec (sh j).
Variable flog : R -> R.
Variable epsL : R.
Hypothesis HepsL : 0 <= epsL.
Hypothesis log_good : forall y, 0 < y -> Rabs (flog y - ln y) <= epsL * Rmax 1 (Rabs (ln y)).
Local Notation ar := (kernels.A emin prec epsE lamE).

Definition finish_lse (st : state) := let '(m, l, o) := st in rnd emin prec (m + flog l).

Variables s a ap : K -> R.
Variables Mp Cs lo hi : R.

Theorem lse_of_state st J kl cl ko co r bigl : good emin prec K sh vv epsE lamE st J kl cl ko co r ->
  (forall j, In j J -> Rabs (sh j - (s j + Cs)) <= a j) -> (forall j, In j J -> Rabs (sh j - s j) <= ap j) ->
  (forall j, In j J -> s j + a j <= Mp) -> (forall j, In j J -> s j + ap j <= hi) ->
  (exists j, In j J /\ lo <= s j - ap j) -> 0 < low K s ar a J Mp kl cl r bigl ->
  Rabs (finish_lse st - lse K s J) <=
    lse_tolerance K s ar a ap J Mp kl cl r bigl lo hi epsL 0 0 (uf prec) (eta emin).
Proof.
  destruct st as [[m l] o]. intros [(tl & to_ & Pm & Pp & SL & SO) (i & Ii & Ei) _ _] Ha Hap HM Hhi Hlo Hd. simpl in *.
  assert (OK := A_sane emin prec epsE lamE HepsE HlamE).
  assert (NJ : J <> []) by (intros E0; rewrite E0 in Ii; destruct Ii).
  assert (Ml : Permutation (map fst tl) J) by
    (eapply Permutation_trans; [apply Permutation_map; apply Pp|apply Pm]).
  assert (Hm : exists i, In i J /\ m <= sh i + gap ar) by (exists i; split; auto; simpl; lra).
  destruct (log_of_sum K s sh ar OK a J Mp kl cl r bigl tl m l Cs r NJ Ml SL (le_n _) Ha HM Hm Hd) as (L0 & _ & _).
  apply (lse_output_error K s sh ar OK a ap J Mp kl cl r bigl tl m l Cs r NJ Ml SL (le_n _) Ha Hap HM Hm Hd lo hi Hhi
    Hlo
    epsL 0 0 (uf prec) (eta emin) HepsL (Rle_refl 0) (Rlt_le _ _ (uf_pos prec)) m (flog l)).
  - apply log_good. auto.
  - unfold near. rewrite Rminus_eq_0, Rabs_R0. lra.
  - apply rnd_near; auto.
Qed.

(** Two passes. *)
Lemma two_pass_lse tl to_ bigl : Permutation (leaves K tl) (leaves K to_) -> let J := leaves K to_ in
  (forall j, In j J -> Rabs (sh j - (s j + Cs)) <= a j) -> (forall j, In j J -> Rabs (sh j - s j) <= ap j) ->
  (forall j, In j J -> s j + a j <= Mp) -> (forall j, In j J -> s j + ap j <= hi) ->
  (exists j, In j J /\ lo <= s j - ap j) ->
  exists cl, (cl + 1 <= 2 * length J)%nat /\ (0 < low K s ar a J Mp (depth K tl) cl 0 bigl ->
  Rabs (finish_lse (two_pass emin prec K sh vv fexp tl to_) - lse K s J) <=
    lse_tolerance K s ar a ap J Mp (depth K tl) cl 0 bigl lo hi epsL 0 0 (uf prec) (eta emin)).
Proof.
  intros Hp J Ha Hap HM Hhi Hlo.
  destruct (good_two_pass emin prec K sh vv fexp epsE lamE exp_good exp_inF sh_inF tl to_ Hp) as (cl & co & G & C & _).
  exists cl. split; [auto|]. intros Hd. eapply lse_of_state; eauto.
Qed.
End Programs.

(** Exponents of 2, a scale that may be folded into them ([base_two]): the reference is scaled, brought to nats by ln 2
    as the kernel has it, and rounded twice on the way. *)
Section BaseTwo.
Variables emin prec : Z.
Context {Hprec : Prec_gt_0 prec}.
Local Notation r := (rnd emin prec).
Local Notation u := (uf prec).
Local Notation lam := (eta emin).
Variables c e th_ln2 : R.
Hypothesis He : Rabs e <= th_ln2.
Definition reference_in_nats M := r (r (M * c) * (ln 2 * (1 + e))).
Definition u_nats := (1 + ((1 + u) * (1 + th_ln2) - 1)) * (1 + u) - 1.
Definition lam_nats := (lam * ln 2 * (1 + th_ln2) + 0) * (1 + u) + lam.
Lemma reference_in_nats_near M : near u_nats lam_nats (nats (M * c)) (reference_in_nats M).
Proof.
  assert (U := uf_pos prec). assert (T0 : 0 <= th_ln2) by (eapply Rle_trans; [apply Rabs_pos|apply He]).
  assert (N1 := near_nats _ _ _ _ (rnd_near emin prec (M * c))).
  assert (N2 : near th_ln2 0 (nats (r (M * c))) (r (M * c) * (ln 2 * (1 + e)))).
  { unfold near, nats. replace (r (M * c) * (ln 2 * (1 + e)) - r (M * c) * ln 2) with (e * (r (M * c) * ln 2)) by ring.
    rewrite Rabs_mult, Rplus_0_r. apply Rmult_le_compat_r; [apply Rabs_pos|apply He]. }
  assert (N3 := near_trans _ _ _ _ _ _ _ T0 N1 N2).
  apply (near_trans _ _ _ _ _ _ _ (Rlt_le _ _ U) N3 (rnd_near emin prec _)).
Qed.
Variable K : Type.
Variables x vv : K -> R.
Variables ref off : K -> R.
Variables epsE lamE rho : R.
Hypothesis HepsE : 0 <= epsE < 1.
Hypothesis HlamE : 0 <= lamE.
Hypothesis Hrho : 0 <= rho.
Hypothesis Hprec2 : u <= / 4.
Hypothesis Heta : lam <= / 4.
Hypothesis Hoff : forall j, Rabs (residual (ref j) c (r (ref j * c))) <= off j.
Hypothesis Hoff_rho : forall j, off j <= rho.
Variable flog : R -> R.
Variable epsL : R.
Hypothesis HepsL : 0 <= epsL.
Hypothesis log_good : forall y, 0 < y -> Rabs (flog y - ln y) <= epsL * Rmax 1 (Rabs (ln y)).
Local Notation ar := (A2 emin prec epsE lamE rho).
Definition finish_lse2 (st : state) := let '(M, l, o) := st in r (reference_in_nats M + flog l).
Variables s a ap : K -> R.
Variables Mp Cs lo hi : R.
Lemma lse_of_state2 st J kl cl ko co n bigl : good2 emin prec K x vv c epsE lamE ref rho st J kl cl ko co n ->
  let sh := sh2 emin prec K x c ref in
  (forall j, In j J -> Rabs (sh j - (s j + Cs)) <= a j) -> (forall j, In j J -> Rabs (sh j - s j) <= ap j) ->
  (forall j, In j J -> s j + a j <= Mp) -> (forall j, In j J -> s j + ap j <= hi) ->
  (exists j, In j J /\ lo <= s j - ap j) -> 0 < low K s ar a J Mp kl cl n bigl ->
  Rabs (finish_lse2 st - lse K s J) <= lse_tolerance K s ar a ap J Mp kl cl n bigl lo hi epsL u_nats lam_nats u lam.
Proof.
  destruct st as [[M l] o]. intros [(tl & to_ & Pm & Pp & SL & SO) (i & Ii & Ei) _ _] sh Ha Hap HM Hhi Hlo Hd. simpl
    in *.
  assert (OK := A2_sane emin prec epsE lamE HepsE HlamE rho Hprec2 Heta Hrho).
  assert (NJ : J <> []) by (intros E0; rewrite E0 in Ii; destruct Ii).
  assert (Ml : Permutation (map fst tl) J) by
    (eapply Permutation_trans; [apply Permutation_map; apply Pp|apply Pm]).
  assert (Hm : exists i, In i J /\ nats (M * c) <= sh i + gap ar).
  { exists i. split; auto. unfold sh, sh2. simpl. rewrite Ei. assert (Q := Rabs_bounds _ _ (Hoff i)).
    assert (Q2 := Hoff_rho i). lra. }
  destruct (log_of_sum K s sh ar OK a J Mp kl cl n bigl tl _ l Cs n NJ Ml SL (le_n _) Ha HM Hm Hd) as (L0 & _ & _).
  assert (U := uf_pos prec). assert (T0 : 0 <= th_ln2) by (eapply Rle_trans; [apply Rabs_pos|apply He]).
  assert (Un : 0 <= u_nats).
  { unfold u_nats. assert (0 <= u * th_ln2) by (apply Rmult_le_pos; lra).
    assert (0 <= u * (u + th_ln2 + u * th_ln2)) by (apply Rmult_le_pos; lra). lra. }
  apply (lse_output_error K s sh ar OK a ap J Mp kl cl n bigl tl _ l Cs n NJ Ml SL (le_n _) Ha Hap HM Hm Hd lo hi Hhi
    Hlo
    epsL u_nats lam_nats u lam HepsL Un (Rlt_le _ _ U) (reference_in_nats M) (flog l)).
  - apply log_good. auto.
  - apply reference_in_nats_near.
  - apply rnd_near; auto.
Qed.
End BaseTwo.

(** What these ask of a logarithm can be met: by ln y rounded to binary32. *)
Lemma log_binary32 y : Rabs (rnd (-149) 24 (ln y) - ln y) <= (uf 24 + eta (-149)) * Rmax 1 (Rabs (ln y)).
Proof.
  assert (N := @rnd_near (-149) 24 eq_refl (ln y)). unfold near in N. assert (P := uf_pos 24). assert (Q := eta_pos
    (-149)).
  assert (M1 := Rmax_l 1 (Rabs (ln y))). assert (M2 := Rmax_r 1 (Rabs (ln y))).
  set (M := Rmax 1 (Rabs (ln y))) in *.
  assert (uf 24 * Rabs (ln y) <= uf 24 * M) by (apply Rmult_le_compat_l; lra).
  assert (eta (-149) * 1 <= eta (-149) * M) by (apply Rmult_le_compat_l; lra). lra.
Qed.
