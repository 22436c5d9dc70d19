(** Parts that are merged through their log-sum-exps: what core/bound computes for a kernel that claims that it may do
    so (split_merge) is at least what is proved of one that does, divided last or not, and of one that does not. *)
From Coq Require Import Reals List Lra Lia Psatz Permutation ZArith.
From Flocq Require Import Core.
From Attest.Rounding Require Import basics merge bound documented divided_first any_reference split merged_parts
  implemented.
From Attest.Rounding Require kernels implemented_rows ordinary_sizes.
Import ListNotations.
Open Scope R_scope.

(** ** Underflow against a sum of weights as it came out: nothing that was rounded on its way is counted twice. *)
Section Computed.
Variable K : Type.
Variables s sh vv : K -> R.
Variable A : arith.
Hypothesis OK : sane A.
Hypothesis RN : nearest A = true.
Hypothesis Any : additions A = None.
Hypothesis Last : last A = 0.
Variable a : K -> R.
Variable J : list K.
Variable Mp : R.
Variable r : nat.
Variable Cs : R.
Hypothesis NJ : J <> [].
Hypothesis Ha : forall j, In j J -> Rabs (sh j - (s j + Cs)) <= a j.
Variable ops : nat.
Local Notation exact := (exact K s vv J).
Local Notation n := (length J).
Local Notation UDd := (UDd K s A a J Mp r).
Local Notation LDd := (LDd K s A a J Mp r ops).
Local Notation low_d := (low_d K s A a J Mp r ops).

(** The sum of weights W in units of which losses are counted, where it is smaller than F is for. *)
Definition short W := Rmax 0 (- ln (W * F A r)).
Lemma F_is W : 0 < W -> W * F (with_last A (short W)) r = Rmax (W * F A r) 1.
Proof.
  intros PW. assert (FA := F_ge1 A OK r). set (x := W * F A r). assert (Px : 0 < x) by (apply Rmult_lt_0_compat; lra).
  assert (E : F (with_last A (short W)) r = F A r * exp (short W)).
  { unfold F. rewrite <- exp_plus. f_equal. simpl. rewrite Last.
    change (X (with_last A (short W)) r) with (X A r). ring. }
  rewrite E, <- Rmult_assoc. unfold short. fold x. destruct (Rle_dec 1 x) as [H|H].
  - rewrite (Rmax_left x 1) by auto. rewrite Rmax_left; [rewrite exp_0; ring|].
    assert (0 <= ln x); [|lra]. rewrite <- ln_1. destruct H as [H|<-]; [left; apply ln_increasing; lra|lra].
  - rewrite (Rmax_right x 1) by lra. rewrite Rmax_right.
    + rewrite exp_Ropp, exp_ln by auto. field. lra.
    + assert (ln x < ln 1) by (apply ln_increasing; lra). rewrite ln_1 in *. lra.
Qed.
Lemma sums_last x v w0 lamw ts m y k r' c : sums K sh A v w0 lamw ts m y k r' c ->
  sums K sh (with_last A x) v w0 lamw ts m y k r' c.
Proof. intros H. eapply sums_more; [..|apply H]; auto. lra. Qed.

Lemma hk_is : hk K A J r = kk K J r.
Proof. unfold hk, kk. rewrite Any. auto. Qed.
Lemma LDd_pos : 0 <= LDd /\ 0 <= UDd /\ low_d <= 1.
Proof.
  assert (U0 := s_u A OK). assert (U1 := s_u1 A OK). assert (D0 := s_upd A OK). assert (D1 := s_upd1 A OK).
  assert (Ir := pos_INR r).
  assert (LP : 0 <= LDd).
  { destruct (lost_le_d K s A OK a J Mp r ops (one K) (w_l A) (lampd A) (lampd A) 0 0 NJ (wl_ge1 A OK) (s_lampd A OK)
      ltac:(split; [apply (s_lampd A OK)|apply le_times; [apply (s_lampd A OK)|apply (wl_ge1 A OK)]]) ltac:(lia)
      ltac:(lia)). unfold documented.LDd. lra. }
  assert (UP : 0 <= UDd).
  { assert (G := pw_pos A OK (cN K J r)). fold (gc K A J r) in G. assert (0 <= UD0 K s A a J Mp r).
    { unfold UD0, refined. rewrite RN. apply Rmin_glb; [apply pw_pos; auto|]. apply Rmult_le_pos; [lra|].
      apply Rplus_le_le_0_compat; [repeat apply Rmult_le_pos; lra|]. apply Rmult_le_pos; [lra|].
      apply Sum_nonneg. intros. apply Rmin_glb; auto. apply documented.pp_pos; auto. }
    unfold documented.UDd. assert (0 <= UD0 K s A a J Mp r * upd A) by (apply Rmult_le_pos; auto). lra. }
  split; auto. split; auto. unfold documented.low_d.
  assert (P1 : (1 - u A) ^ (h K A J + 2 * r) <= 1 ^ (h K A J + 2 * r)) by (apply pow_incr; lra). rewrite pow1 in P1.
  assert (P2 : 0 <= (1 - u A) ^ (h K A J + 2 * r)) by (apply pow_le; lra).
  assert ((1 - upd A) * (1 - u A) ^ (h K A J + 2 * r) <= 1 * 1) by (apply Rmult_le_compat; lra).
  assert (Rmax (1 - UDd) ((1 - upd A) * (1 - u A) ^ (h K A J + 2 * r)) <= 1) by (apply Rmax_lub; lra). lra.
Qed.

(** The sum of weights. *)
Lemma computed_sum tl m l kl rl cl : Permutation (map fst tl) J -> m <= Mp + gap A + Cs ->
  sums K sh A (one K) (w_l A) (lampd A) tl m l kl rl cl -> (rl <= r)%nat -> (cl <= ops)%nat ->
  1 <= l * F A r -> 0 < low_d -> let W := Sum (weight K sh m) tl in
  0 < W /\ W * low_d <= l /\ Rabs (l - W) * low_d <= l * (UDd + LDd).
Proof.
  intros M Hm HL Hrl Hcl Hl Hd W. destruct LDd_pos as (LP & UP & L1). assert (F1 := F_ge1 A OK r).
  assert (N0 : tl <> []) by (intros E; rewrite E in M; apply NJ, Permutation_nil; exact M).
  assert (PW : 0 < W) by (apply Sum_pos; auto; intros; apply exp_pos).
  set (g := short W). set (A1 := with_last A g).
  assert (O1 : sane A1) by (apply with_last_sane; [exact OK|apply Rmax_l]).
  assert (FW : W * F A1 r = Rmax (W * F A r) 1) by (apply F_is; auto).
  destruct (sums_counts _ _ _ _ _ _ _ _ _ _ _ _ HL) as (_ & Kl & _).
  rewrite <- (map_length fst), (Permutation_length M) in Kl.
  set (bl := documented.big K s A a J Mp r (one K) 1).
  destruct (weights_error K s sh A1 O1 a J Mp kl cl r bl Cs NJ Ha tl m l rl M Hm (sums_last g _ _ _ _ _ _ _ _ _ HL) Hrl
    ltac:(fold W; rewrite FW; apply Rmax_r)) as (_ & HD & Low).
  fold W in HD, Low.
  destruct (denominator_documented K s A OK RN a J Mp r ops kl cl NJ) as [D1 D2]; [rewrite hk_is; unfold kk; lia|auto|].
  fold bl in D1, D2.
  set (lost := lostJ K s A a J Mp r (one K) (w_l A) (lam_l A) kl cl).
  assert (EL : bound.LD K s A1 a J Mp kl cl r = F A1 r * lost) by reflexivity.
  assert (EL0 : bound.LD K s A a J Mp kl cl r = F A r * lost) by reflexivity.
  change (bound.UD K s A1 a J Mp kl r bl) with (bound.UD K s A a J Mp kl r bl) in HD. rewrite EL in HD.
  assert (Low' : W * (low K s A a J Mp kl cl r bl + bound.LD K s A a J Mp kl cl r) - W * F A1 r * lost <= l).
  { eapply Rle_trans; [|apply Low]. unfold low. rewrite EL, EL0. right.
    change (bound.UD K s A1 a J Mp kl r bl) with (bound.UD K s A a J Mp kl r bl). change (w_l A1) with (w_l A).
    change (u A1) with (u A). ring. }
  rewrite EL0 in *.
  assert (LL : 0 <= F A r * lost <= LDd).
  { apply (lost_le_d K s A OK a J Mp r ops (one K) (w_l A) (lampd A) (lampd A) kl cl NJ (wl_ge1 A OK) (s_lampd A OK));
      [split; [apply (s_lampd A OK)|apply le_times; [apply (s_lampd A OK)|apply (wl_ge1 A OK)]]|
       rewrite hk_is; unfold kk; lia|auto]. }
  assert (Lp : 0 <= lost) by (apply Rmult_le_reg_l with (F A r); lra).
  assert (UD_le : bound.UD K s A a J Mp kl r bl <= UDd).
  { assert (Q := by_sum_le K s A OK a J Mp r (w_l A) (upd A) 0 kl (one K) 1 NJ ltac:(lra) (s_upd A OK)
      ltac:(unfold w_l; simpl; ring) ltac:(lia) ltac:(rewrite hk_is; unfold kk; lia)).
    assert (S1 : Sum (fun j => Rmin (u A * 1) (bound.pp K s A a J Mp r j * Rabs (one K j))) J =
      Sum (fun j => Rmin (u A) (bound.pp K s A a J Mp r j)) J).
    { apply Sum_ext. intros. unfold one. rewrite Rabs_R1, !Rmult_1_r. auto. }
    rewrite S1 in Q. unfold bound.UD. fold bl in Q. eapply Rle_trans; [apply Q|]. unfold documented.UDd, UD0.
    simpl (INR 0). rewrite Nat.add_0_r, !Rmult_1_r, Rplus_0_l. lra. }
  assert (Wl : W * low_d <= l).
  { destruct (Rle_dec 1 (W * F A r)) as [H|H].
    - rewrite FW, Rmax_left in Low' by auto.
      assert (W * low_d <= W * low K s A a J Mp kl cl r bl) by (apply Rmult_le_compat_l; lra). lra.
    - assert (W < l) by (apply Rmult_lt_reg_r with (F A r); lra).
      assert (W * low_d <= W * 1) by (apply Rmult_le_compat_l; lra). lra. }
  split; auto. split; auto.
  assert (P0 : 0 < l) by (assert (0 < W * low_d) by (apply Rmult_lt_0_compat; auto); lra).
  (* what was lost, in units of l *)
  assert (Lost : W * F A1 r * lost * low_d <= l * LDd).
  { assert (Mx : W * F A1 r * low_d <= l * F A r).
    { rewrite FW. unfold Rmax. destruct (Rle_dec _ _).
      - apply Rle_trans with (1 * 1); [apply Rmult_le_compat; lra|lra].
      - replace (W * F A r * low_d) with (W * low_d * F A r) by ring. apply Rmult_le_compat_r; lra. }
    replace (W * F A1 r * lost * low_d) with (W * F A1 r * low_d * lost) by ring.
    apply Rle_trans with (l * F A r * lost); [apply Rmult_le_compat_r; auto|].
    replace (l * F A r * lost) with (l * (F A r * lost)) by ring. apply Rmult_le_compat_l; lra. }
  assert (Rounding : W * bound.UD K s A a J Mp kl r bl * low_d <= l * UDd).
  { apply Rle_trans with (W * UDd * low_d).
    - apply Rmult_le_compat_r; [lra|]. apply Rmult_le_compat_l; lra.
    - replace (W * UDd * low_d) with (W * low_d * UDd) by ring. apply Rmult_le_compat_r; auto. }
  assert (Q := Rmult_le_compat_r low_d _ _ ltac:(lra) HD). lra.
Qed.

(** A sum of weights times values over it, or over what stands in its place. *)
Lemma mean_of_computed ts m o l ko ro co lw DD Uf lamf oh : Permutation (map fst ts) J -> m <= Mp + gap A + Cs ->
  sums K sh A vv (w_o A) ((1 + u A) * lamp A) ts m o ko ro co -> (ro <= r)%nat -> (co <= ops)%nat ->
  let W := Sum (weight K sh m) ts in
  0 < l -> 1 <= l * F A r -> 0 < lw <= 1 -> W * lw <= l -> 0 <= DD -> Rabs (l - W) * lw <= l * DD ->
  0 <= Uf -> near Uf lamf (o / l) oh ->
  let Sp := spread K s vv A a J Mp r in
  Rabs (oh - exact) <= (1 + Uf) * (Sp + (Nd K s vv A a J Mp r + LNd K s vv A a J Mp r ops + (Rabs exact + Sp) * DD) /
    lw) + Uf * Rabs exact + lamf.
Proof.
  intros M Hm HO Hro Hco W Pl Hl Hlw Wl PD HD HUf Hoh Sp. assert (F1 := F_ge1 A OK r).
  assert (N0 : ts <> []) by (intros E; rewrite E in M; apply NJ, Permutation_nil; exact M).
  assert (PW : 0 < W) by (apply Sum_pos; auto; intros; apply exp_pos).
  set (g := short W). set (A1 := with_last A g).
  assert (O1 : sane A1) by (apply with_last_sane; [exact OK|apply Rmax_l]).
  assert (FW : W * F A1 r = Rmax (W * F A r) 1) by (apply F_is; auto).
  destruct (sums_counts _ _ _ _ _ _ _ _ _ _ _ _ HO) as (_ & Ko & _).
  rewrite <- (map_length fst), (Permutation_length M) in Ko.
  set (bo := documented.big K s A a J Mp r vv (size K s vv A a J Mp r)).
  set (lost := lostJ K s A a J Mp r vv (w_o A) (lam_o A) ko co).
  set (rounding := by_sum K s A a J Mp r (w_o A) ko bo vv (size K s vv A a J Mp r)).
  assert (EE : EN K s vv A1 a J Mp ko co r bo = rounding + F A1 r * lost) by reflexivity.
  assert (Pi : 0 < / W) by (apply Rinv_0_lt_compat; auto).
  assert (Q := mean_error K s sh vv A1 O1 a J Mp ko co r bo Cs NJ Ha ts m o ro l _ (Rabs (l - W) / W) (l / W) Uf lamf oh
    M Hm (sums_last g _ _ _ _ _ _ _ _ _ HO) Hro ltac:(fold W; rewrite FW; apply Rmax_r) (Rle_refl _)
    ltac:(apply Rmult_le_pos; [apply Rabs_pos|lra]) ltac:(apply Rdiv_lt_0_compat; auto)
    ltac:(fold W; right; field; lra) ltac:(fold W; right; field; lra) HUf Hoh).
  change (spread K s vv A1 a J Mp r) with Sp in Q. rewrite EE in Q. fold W in Q.
  assert (Wo := wo_ge1 A OK). assert (Lo0 := lamw_o_pos A OK).
  assert (LL : 0 <= F A r * lost <= LNd K s vv A a J Mp r ops).
  { apply (lost_le_d K s A OK a J Mp r ops vv (w_o A) (lam_o A) (lamp A) ko co NJ Wo (s_lamp A OK));
      [|rewrite hk_is; unfold kk; lia|auto]. split; [exact Lo0|]. unfold lam_o, w_o.
    assert (Q1 := s_lamp A OK). assert (Q2 := s_up A OK). assert (Q3 := s_u A OK).
    assert (0 <= up A * ((1 + u A) * lamp A)) by (apply Rmult_le_pos; auto). lra. }
  assert (RR : rounding <= Nd K s vv A a J Mp r).
  { assert (PX := size_pos' K s vv A a J Mp r NJ).
    assert (B := by_sum_le K s A OK a J Mp r (w_o A) (up A) 1 ko vv (size K s vv A a J Mp r) NJ PX (s_up A OK)
      ltac:(unfold w_o; simpl; ring) (le_n _) ltac:(rewrite hk_is; unfold kk; lia)).
    eapply Rle_trans; [apply B|]. unfold Nd, acc. simpl (INR 1). apply Req_le. reflexivity. }
  assert (Nd0 : 0 <= Nd K s vv A a J Mp r).
  { assert (PX := size_pos' K s vv A a J Mp r NJ). assert (U0 := s_u A OK). assert (Up := s_up A OK).
    assert (G := pw_pos A OK (cN K J r)). fold (gc K A J r) in G. assert (Ir := pos_INR r).
    assert (0 <= u A * size K s vv A a J Mp r) by (apply Rmult_le_pos; auto).
    assert (0 <= acc K s vv A a J Mp r).
    { unfold acc, refined. rewrite RN. apply Rmin_glb; [apply Rmult_le_pos; auto; apply pw_pos; auto|].
      apply Rmult_le_pos; [lra|]. apply Rplus_le_le_0_compat; [repeat apply Rmult_le_pos; lra|].
      apply Rmult_le_pos; [lra|]. apply Sum_nonneg. intros. apply Rmin_glb; auto.
      apply Rmult_le_pos; [apply documented.pp_pos; auto|apply Rabs_pos]. }
    unfold Nd. assert (0 <= up A * size K s vv A a J Mp r) by (apply Rmult_le_pos; auto).
    assert (0 <= (1 + up A) * acc K s vv A a J Mp r) by (apply Rmult_le_pos; lra). lra. }
  assert (S0 : 0 <= Sp) by (eapply Rle_trans; [apply Rabs_pos|];
    exact (mean_of_weights K s sh vv A OK a J Mp r Cs NJ Ha ts m M Hm
      (terms_known K sh A OK r _ _ _ _ _ _ _ _ _ Wo Lo0 HO Hro))).
  assert (Lp : 0 <= lost) by (apply Rmult_le_reg_l with (F A r); lra).
  set (ex := Rabs exact) in *. assert (Ex : 0 <= ex) by apply Rabs_pos.
  assert (Il : 0 < / l) by (apply Rinv_0_lt_compat; auto). assert (Iw : 0 < / lw) by (apply Rinv_0_lt_compat; lra).
  (* each part in units of l *)
  assert (T0 : W / l <= / lw).
  { apply Rmult_le_reg_r with (l * lw); [apply Rmult_lt_0_compat; lra|].
    replace (W / l * (l * lw)) with (W * lw) by (field; lra). replace (/ lw * (l * lw)) with l by (field; lra). auto. }
  assert (T1 : rounding * (W / l) <= Nd K s vv A a J Mp r * / lw).
  { apply Rle_trans with (Nd K s vv A a J Mp r * (W / l)).
    - apply Rmult_le_compat_r; auto. apply Rmult_le_pos; lra.
    - apply Rmult_le_compat_l; auto. }
  assert (T2 : W * F A1 r / l <= F A r * / lw).
  { rewrite FW. unfold Rmax. destruct (Rle_dec _ _).
    - assert (1 * / lw <= l * F A r * / lw) by (apply Rmult_le_compat_r; lra).
      assert (1 <= / lw) by (rewrite <- Rinv_1; apply Rinv_le_contravar; lra).
      apply Rmult_le_reg_l with l; auto. replace (l * (1 / l)) with 1 by (field; lra). lra.
    - replace (W * F A r / l) with (F A r * (W / l)) by (unfold Rdiv; ring). apply Rmult_le_compat_l; lra. }
  assert (T3 : W * F A1 r / l * lost <= LNd K s vv A a J Mp r ops * / lw).
  { apply Rle_trans with (F A r * / lw * lost); [apply Rmult_le_compat_r; auto|].
    replace (F A r * / lw * lost) with (F A r * lost * / lw) by ring. apply Rmult_le_compat_r; lra. }
  assert (T4 : Rabs (l - W) / l <= DD * / lw).
  { apply Rmult_le_reg_r with (l * lw); [apply Rmult_lt_0_compat; lra|].
    replace (Rabs (l - W) / l * (l * lw)) with (Rabs (l - W) * lw) by (field; lra).
    replace (DD * / lw * (l * lw)) with (l * DD) by (field; lra). auto. }
  assert (T5 : (ex + Sp) * (Rabs (l - W) / l) <= (ex + Sp) * (DD * / lw)) by (apply Rmult_le_compat_l; lra).
  eapply Rle_trans; [apply Q|]. apply Rplus_le_compat_r, Rplus_le_compat_r, Rmult_le_compat_l; [lra|].
  apply Rplus_le_compat_l. unfold Rdiv at 1.
  replace ((rounding + F A1 r * lost + (ex + Sp) * (Rabs (l - W) / W)) * / (l / W)) with
    (rounding * (W / l) + W * F A1 r / l * lost + (ex + Sp) * (Rabs (l - W) / l)) by (field; split; lra).
  unfold Rdiv. lra.
Qed.
End Computed.

(** ** What core/bound has beside for such a claim *)
Section Merging.
Variable K : Type.
Variables s vv : K -> R.
Variable A : arith.      (* natural exponents: the relative error thE of an exponent is u_lse *)
Variable a : K -> R.
Variable ap : K -> R.    (* key_loops.inc, whole_error: of a score with what all share *)
Variable J : list K.
Variable blocks : nat.   (* ceil(keys / block) *)
Variable eps_log : R.
Local Notation n := (length J).
Local Notation u_lse := (thE A).
Local Notation thE := (thE A).
Local Notation of_exp := (of_exp A).
Local Notation e := (natural_whole a ap).
Local Notation Mabs := (Mabs K s e J).
Local Notation Q := (Q K s A e J).
Local Notation no_residual := (no_residual K s A a ap J).

(** error_bound.h: rescalings, with those of the merge. *)
Definition rescalings := (blocks + 1 + 1)%nat.
(** KeyPass: log_count. *)
Definition log_count := ln (INR n) + 1 + T A.
(** set_exponent_constants: lse_on_Q, lse_on_D, lse_constant. *)
Definition lse_on_Q := u_lse * (1 + u_lse) * (1 + 2 * thE).
Definition lse_on_D := u_lse.
Definition lse_constant := lse_on_Q * log_count + eps_log * log_count * (1 + u_lse) +
  Rmax lse_on_D thE * log_count + 2 * thE * of_exp.
(** Two exponentials more, each with what its exponent loses by underflow. *)
Definition merge_constant := 2 * (of_exp + xr A) + lse_constant.
(** find_denominator: merge. *)
Definition of_merge := 2 * u_lse * (Mabs + log_count) + eps_log * log_count + 2 * eps A.
Definition merging : family := Family 0 false 0 lse_on_Q lse_on_D merge_constant of_merge (3 * INR n).

Hypothesis OK : sane A.
Hypothesis Covered : in_any_order A.
Hypothesis Lame : lam A <= lame A.
Hypothesis Underflow : xl A = xr A.
Hypothesis Eps_log : u_lse <= eps_log.
Hypothesis Unit : thE <= / 2.
Hypothesis Half : eps A <= / 2.
Hypothesis NJ : J <> [].
Hypothesis Not_negative : forall j, In j J -> 0 <= a j.
Local Notation r := rescalings.
Local Notation M := (M K s e J).
Local Notation E := (E K s A e merging J r).
Local Notation x := (xr A).

Lemma Covered_natural : covered A e.
Proof. apply natural_covered; auto. Qed.
Lemma n_ge1 : 1 <= INR n.
Proof. apply (le_INR 1). clear - NJ. destruct J; [congruence|simpl; lia]. Qed.
Lemma log_count_ge1 : 1 <= log_count.
Proof.
  assert (N := n_ge1). assert (T0 := s_T A OK). unfold log_count. assert (0 <= ln (INR n)); [|lra].
  rewrite <- ln_1. destruct N as [N|<-]; [left; apply ln_increasing; lra|lra].
Qed.
Lemma Q_above j : Mabs + T A <= Q j /\ 0 <= Mabs.
Proof. split; [apply Q_pos; auto|apply Mabs_pos]. Qed.

(** Which Qt a log-sum-exp is no larger than, as merged_parts.v says it of the largest score with its error. *)
Variable most : K.
Hypothesis Most : In most J /\ M = s most + a most.
Local Notation most_a := (a most).
Definition Qt := Mabs + T A + 2 * most_a.
Local Notation err := (lse_err eps_log u_lse x log_count).
Definition Mp := M + log_count + err Qt.
(** The errors of scores of which E is made in the proofs' way. *)
Definition b j := (E j - thE * (Mp - s j + 2 * T A) - X A r) / (1 + thE).
Local Notation B := (with_gap A 0).

(** At second order the claim's own error of an exponential is enough. *)
Hypothesis Second_order : 2 * thE * (eps_log * log_count + thE * most_a) <= of_exp.
Lemma E_is_of_b j : E j = bound.E K s B b Mp r j.
Proof.
  unfold bound.E, bound.D. simpl (arithmetic.thE B). simpl (gap B). simpl (T B). change (X B r) with (X A r).
  assert (Th := s_thE A OK).
  replace (b j + thE * (Mp + 0 - (s j - b j) + 2 * T A) + X A r) with
    ((1 + thE) * b j + thE * (Mp - s j + 2 * T A) + X A r) by ring.
  unfold b. field. lra.
Qed.
Lemma b_enough j : In j J -> a_merged K A eps_log u_lse x a Q log_count j <= b j.
Proof.
  intros Ij. unfold b. assert (Th := s_thE A OK). apply Rmult_le_reg_r with (1 + thE); [lra|].
  unfold Rdiv. rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra.
  assert (L1 := log_count_ge1). destruct (Q_above j) as [Q1 M0]. assert (Pa := Not_negative j Ij).
  assert (Dj : 0 <= M - s j + a j + 2 * T A).
  { assert (G := M_ge K s e J j Ij). simpl in G. assert (T0 := s_T A OK). lra. }
  assert (E0 := eps1_pos A OK). change (2 * thE * (eps_log * log_count + thE * most_a) <= eps1 A) in Second_order.
  assert (X0 := s_xr A OK).
  unfold implemented.E, implemented.D, merging, a_merged, Mp. rewrite (proj1 no_residual). simpl.
  unfold rest, merge_constant, lse_constant, lse_on_D.
  simpl. rewrite Rmax_left by lra. change (implemented.of_exp A) with (eps1 A). rewrite Underflow.
  unfold X. rewrite Underflow. fold (eps1 A) in *.
  assert (Er : err Qt <= err (Q j) + thE * (2 * most_a)).
  { unfold lse_err. assert (thE * (Qt + (1 + eps_log) * log_count) <= thE * (Q j + 2 * most_a + (1 + eps_log) *
      log_count))
      by (apply Rmult_le_compat_l; [lra|]; unfold Qt; lra). lra. }
  assert (Er2 := Rmult_le_compat_l thE _ _ (proj1 Th) Er).
  set (el := eps_log * log_count) in *.
  assert (el0 : 0 <= el) by (apply Rmult_le_pos; lra).
  assert (S2 := Rmult_le_compat_l (1 + thE) _ _ ltac:(lra) Second_order).
  set (d := M - s j + a j + 2 * T A) in *.
  assert (Ed : thE * d = thE * (M - s j + 2 * T A) + thE * a j) by (unfold d; ring).
  assert (P1 : 0 <= thE * d) by (apply Rmult_le_pos; lra).
  assert (P2 : 0 <= thE * thE * (1 + 2 * thE) * (Q j + log_count)).
  { assert (T0 := s_T A OK). repeat apply Rmult_le_pos; lra. }
  assert (P3 : 0 <= (1 - 2 * thE) * x) by (apply Rmult_le_pos; lra).
  assert (Am : 0 <= most_a) by (apply Not_negative, Most).
  assert (P4 : 0 <= thE * (thE * (thE * most_a))) by (repeat apply Rmult_le_pos; lra).
  apply Rle_trans with ((1 + thE) * a j + (1 + thE) * (err (Q j) + eps1 A)); [lra|].
  unfold lse_on_Q. unfold lse_err in *.
  assert (Eel : (1 + eps_log) * log_count = log_count + el) by (unfold el; ring). rewrite ?Eel in Er, Er2. rewrite !Eel.
  fold el in Er, Er2. fold el. lra.
Qed.

Lemma constants_pos : 0 <= lse_on_Q /\ 0 <= lse_constant /\ 0 <= merge_constant /\ 0 <= of_merge.
Proof.
  assert (Th := s_thE A OK). assert (L1 := log_count_ge1). assert (E0 := eps1_pos A OK). assert (X0 := s_xr A OK).
  assert (Ep := s_eps A OK). assert (M0 := Mabs_pos K s e J).
  assert (P0 : 0 <= lse_on_Q) by (unfold lse_on_Q; repeat apply Rmult_le_pos; lra).
  assert (P1 : 0 <= eps_log * log_count) by (apply Rmult_le_pos; lra).
  assert (P2 : 0 <= lse_on_Q * log_count) by (apply Rmult_le_pos; lra).
  assert (P3 : 0 <= Rmax lse_on_D thE * log_count).
  { apply Rmult_le_pos; [|lra]. eapply Rle_trans; [|apply Rmax_r]. lra. }
  assert (P4 : 0 <= eps_log * log_count * (1 + u_lse)) by (apply Rmult_le_pos; lra).
  assert (P5 : 0 <= 2 * thE * of_exp) by (change of_exp with (eps1 A); apply Rmult_le_pos; lra).
  assert (P6 : 0 <= lse_constant) by (unfold lse_constant; lra).
  split; auto. split; auto. split; [unfold merge_constant; change of_exp with (eps1 A); lra|].
  unfold of_merge. assert (0 <= 2 * u_lse * (Mabs + log_count)) by (repeat apply Rmult_le_pos; lra). lra.
Qed.
Lemma merging_rest : rest A merging r = X A r + merge_constant.
Proof. rewrite <- rest_is. unfold rest. simpl. ring. Qed.
Lemma E_not_negative j : In j J -> 0 <= E j.
Proof.
  intros Ij. destruct constants_pos as (C1 & _ & C3 & _). assert (Th := s_thE A OK). assert (T0 := s_T A OK).
  assert (X0 := X_pos A OK r). assert (Pa := Not_negative j Ij). destruct (Q_above j) as [Q1 M0].
  assert (Dj : 0 <= M - s j + a j + 2 * T A).
  { assert (G := M_ge K s e J j Ij). simpl in G. lra. }
  unfold implemented.E, implemented.D. rewrite merging_rest, (proj1 no_residual). simpl.
  assert (0 <= thE * (M - s j + a j + 2 * T A)) by (apply Rmult_le_pos; lra).
  assert (0 <= lse_on_Q * Q j) by (apply Rmult_le_pos; lra).
  assert (0 <= lse_on_D * (M - s j + a j + 2 * T A)) by (unfold lse_on_D; apply Rmult_le_pos; lra). lra.
Qed.
Lemma B_sane : sane B.
Proof. apply with_gap_sane; auto. lra. Qed.
Lemma F_of_B : F B r = F A r.
Proof. unfold F. rewrite (proj1 Covered). reflexivity. Qed.
Lemma merging_factor : enough_factor K s A e merging J r B (room A).
Proof.
  intros w0 k W Hk.
  assert (Al : last A <= at_last K s A e J)
    by (rewrite (proj2 no_residual); destruct Covered as (_ & _ & -> & _); apply Rle_refl).
  assert (G := grown_le K s A e J r OK NJ Covered_natural Al w0 k W Hk).
  assert (Eg : grown K B J r w0 = grown K A J r w0).
  { unfold grown. rewrite F_of_B. reflexivity. }
  rewrite Eg. eapply Rle_trans; [apply G|]. unfold factor, factor_grown.
  rewrite merging_rest, rest_is, (proj2 no_residual), !Rplus_0_r. simpl below. rewrite exp_0, !Rmult_1_r.
  destruct constants_pos as (_ & _ & C & _).
  assert (U0 := s_u A OK). assert (Up := s_up A OK). assert (L0 := s_lame A OK).
  assert (P1 := pow_ge1 (u A) (underflow_depth K A J r) U0). assert (P2 := pow_ge1 (lame A) r L0).
  assert (Em : exp (2 * (thE * T A + X A r)) <= exp (2 * (thE * T A + (X A r + merge_constant))))
    by (apply exp_mono; lra).
  apply Rmult_le_compat_l; [lra|]. unfold pw. repeat (apply Rmult_le_compat_r; [lra|]). exact Em.
Qed.

(** ** The bound *)
Hypothesis Up_d : upd A <= up A.
Hypothesis Lamp_d : lampd A <= lamp A.
Variables u_o lam_o : R.
Hypothesis Out : 0 <= u_o /\ 0 <= lam_o.
Local Notation denominator := (denominator K s A e merging J r).
Local Notation allowed := (allowed K s vv A e merging J r 1 u_o lam_o).
Local Notation Uf := (Uf A 1 u_o).
Local Notation lam_finish := (lam_finish A 1 u_o lam_o).
Hypothesis Denominator : 0 < denominator.

Lemma merging_allowed ops me Uf1 lamf : INR ops <= 2 * INR n + 2 * INR r + 3 * INR n -> 0 <= me <= of_merge ->
  0 <= Uf1 <= Uf -> lamf <= lam_finish ->
  let Sp := spread K s vv B b J Mp r in
  0 < low_d K s B b J Mp r ops /\
  (1 + Uf1) * (Sp + (Nd K s vv B b J Mp r + LNd K s vv B b J Mp r ops + (Rabs (exact K s vv J) + Sp) *
    (exp me - 1 + UDd K s B b J Mp r + LDd K s B b J Mp r ops)) / (low_d K s B b J Mp r ops * exp (- me))) +
    Uf1 * Rabs (exact K s vv J) + lamf <= allowed.
Proof.
  intros Ho Hm Hu Hl Sp. assert (C := Covered_natural).
  assert (Gain : enough_gain K A e r B (room A)) by exact (gain_le K A e r C).
  assert (Alike : alike A B) by (unfold alike; simpl; auto 10).
  assert (Ops : INR ops <= 2 * INR n + rescaling_operations merging r) by (unfold rescaling_operations; simpl; lra).
  assert (Mo : 0 <= merge_operations merging) by (simpl; assert (N := n_ge1); lra).
  assert (Me : 0 <= merge merging) by apply constants_pos. assert (Lose := proj2 (proj2 C)).
  assert (Rm := room_ge1 A OK). split.
  - eapply Rlt_le_trans; [apply Denominator|].
    apply (denominator_le K s A e merging J r OK NJ B b Mp ops (room A) B_sane Alike E_is_of_b Rm merging_factor Up_d
      Lamp_d Gain Lose Me Mo Ops).
  - assert (Q := allowed_at_least_merged K s vv A e merging J r OK NJ B b Mp ops (room A) B_sane Alike
      E_is_of_b E_not_negative Rm merging_factor Up_d Lamp_d Gain Lose Mo Ops 1 u_o lam_o me 1 Uf1 lamf
      Denominator Hm (proj1 Hu) (Rle_refl _) ltac:(lra) Hl). cbv zeta in Q. rewrite Rmult_1_l in Q.
    eapply Rle_trans; [|apply Q]. right. unfold Sp, Nd_of, Nd, acc_of, acc. simpl (norm_first merging).
    simpl (INR 0). rewrite Rplus_0_r. simpl (up B). reflexivity.
Qed.

(** ** Kernels *)
Variable sh : K -> R.
Variable Cs : R.
Hypothesis Ha : forall j, In j J -> Rabs (sh j - (s j + Cs)) <= a j.
Hypothesis Ha_whole : forall j, In j J -> Rabs (sh j - s j) <= ap j.
Local Notation merge_ops := (merge_ops K 1 J).
(** Of a row that is not so long that its sums grow by e. *)
Definition ordinary_sum := P A (w_l A) (kk K J r) * gain A r + most_lost A n r merge_ops <= exp (1 + T A).
Hypothesis Ordinary : ordinary_sum.

Lemma below_M j : In j J -> s j + a j <= M.
Proof. exact (M_ge K s e J j). Qed.
Lemma whole_within j : In j J -> sh j <= Mabs /\ s j - ap j <= sh j.
Proof.
  intros Ij. assert (W := Rabs_bounds _ _ (Ha_whole j Ij)). split; [|lra].
  assert (G := greatest_ge K J (fun j => s j + ap j) j Ij). simpl in G.
  assert (P1 := Rle_abs (top K s e J)). unfold implemented.Mabs, top in *. simpl whole in *.
  assert (P2 := Rmax_l (Rabs (greatest K J (fun j => s j + ap j))) (Rabs (bottom K s e J))). lra.
Qed.
Lemma lowest_within : exists i, In i J /\ - Mabs <= s i - ap i /\ Rabs (s i) + ap i <= Mabs.
Proof.
  destruct (greatest_is K J (fun j => s j - ap j) NJ) as (i & Ii & Ei). simpl in Ei. exists i. split; auto.
  assert (P1 := Rmax_r (Rabs (top K s e J)) (Rabs (bottom K s e J))).
  assert (P2 := Rmax_l (Rabs (top K s e J)) (Rabs (bottom K s e J))).
  fold Mabs in P1, P2. change (bottom K s e J) with (greatest K J (fun j => s j - ap j)) in P1. rewrite Ei in P1.
  assert (B1 := Rabs_bounds _ _ P1). assert (G := greatest_ge K J (fun j => s j + ap j) i Ii). simpl in G.
  change (greatest K J (fun j => s j + ap j)) with (top K s e J) in G. assert (P3 := Rle_abs (top K s e J)).
  split; [lra|]. unfold Rabs at 1. destruct (Rcase_abs (s i)); lra.
Qed.
Lemma references_within i j m : In i J -> In j J -> sh j - T A <= m <= sh i -> Rabs m <= Q j.
Proof.
  intros Ii Ij Hm. assert (W1 := whole_within i Ii). assert (W2 := whole_within j Ij). assert (T0 := s_T A OK).
  unfold implemented.Q. simpl whole. assert (P1 := Rmax_l (Rabs (s j) + ap j) Mabs).
  assert (P2 := Rmax_r (Rabs (s j) + ap j) Mabs).
  assert (S1 := Rabs_bounds _ _ (Rle_refl (Rabs (s j)))). apply Rabs_le_iff. lra.
Qed.
Lemma top_within : Rabs (M + Cs) <= Qt.
Proof.
  destruct Most as [Im Em]. destruct lowest_within as (k & Ik & Lk & _). assert (T0 := s_T A OK).
  assert (W1 := whole_within most Im). assert (W2 := whole_within k Ik). assert (Bk := below_M k Ik).
  assert (A1 := Rabs_bounds _ _ (Ha most Im)). assert (A2 := Rabs_bounds _ _ (Ha k Ik)).
  assert (Pa := Not_negative most Im). unfold Qt. apply Rabs_le_iff. lra.
Qed.
Lemma some_Q : exists i, In i J /\ Q i <= Qt.
Proof.
  destruct lowest_within as (i & Ii & _ & Hi). exists i. split; auto. unfold implemented.Q, Qt.
  simpl whole. rewrite Rmax_right by auto.
  assert (Pa := Not_negative most (proj1 Most)). lra.
Qed.
Lemma sum_at_most : P A (w_l A) (kk K J r) * (INR n * gain A r) + most_lost A n r merge_ops <= exp log_count.
Proof.
  assert (N := n_ge1). unfold log_count. rewrite Rplus_assoc, exp_plus, exp_ln by lra.
  assert (Q1 := Rmult_le_compat_l (INR n) _ _ ltac:(lra) Ordinary).
  assert (ML : 0 <= most_lost A n r merge_ops).
  { assert (Q2 := lost_most nat (fun _ => 0) A [] 0 0 0 0 n r merge_ops OK ltac:(simpl; lia) ltac:(lia) ltac:(lia)
      ltac:(lia)). lra. }
  assert (1 * most_lost A n r merge_ops <= INR n * most_lost A n r merge_ops) by (apply Rmult_le_compat_r; lra). lra.
Qed.
Lemma F_large : 1 <= (1 - eps A) * F B r.
Proof.
  assert (Ep := s_eps A OK). assert (E0 := eps1_pos A OK). assert (T0 := s_T A OK). assert (Th := s_thE A OK).
  assert (X1 : eps1 A <= X A r).
  { unfold X. assert (X0 := s_xl A OK). assert (Xr := s_xr A OK). assert (I := pos_INR r).
    assert (0 <= INR r * xr A) by (apply Rmult_le_pos; auto). assert (0 <= INR r * eps1 A) by (apply Rmult_le_pos;
      auto).
    lra. }
  assert (G : exp (eps1 A) <= F B r).
  { unfold F. apply exp_mono. simpl. assert (L0 := s_last A OK). change (X B r) with (X A r).
    assert (0 <= thE * T A) by (apply Rmult_le_pos; lra). lra. }
  assert (Q1 := exp_ge_1 (eps1 A)).
  assert (Q2 : (1 - eps A) * (1 + eps1 A) = 1) by (unfold eps1; field; lra).
  assert ((1 - eps A) * (1 + eps1 A) <= (1 - eps A) * F B r) by (apply Rmult_le_compat_l; lra). lra.
Qed.

(** Parts, however the keys are parted. *)
Section Parts.
Variables (parts : list nat) (keys : nat -> list K) (part : K -> nat) (h : nat -> handed).
Hypothesis part_of_key : forall c j, In c parts -> In j (keys c) -> part j = c.
Hypothesis keys_are : Permutation (flat_map keys parts) J.
Hypothesis Parts : forall c, In c parts -> summed_up K sh vv A blocks (keys c) (h c) /\
  hands_over A 1 eps_log u_lse x (h c).
Local Notation sh_moved := (sh_moved K sh part h).
Local Notation RN := (proj2 (proj2 (proj2 (proj2 Covered)))).
Lemma parts_conditions : 0 <= eps_log /\ 0 <= u_lse <= 1 /\ eps1 A <= log_count.
Proof.
  assert (Th := s_thE A OK). split; [lra|]. split; auto. assert (L1 := log_count_ge1). assert (Ep := s_eps A OK).
  assert (eps1 A <= 1); [|lra]. unfold eps1. apply Rmult_le_reg_r with (1 - eps A); [lra|]. unfold Rdiv.
  rewrite Rmult_assoc, Rinv_l by lra. lra.
Qed.
Lemma moved_near j : In j J -> Rabs (sh_moved j - (s j + Cs)) <= b j.
Proof.
  intros Ij. destruct parts_conditions as (C1 & C2 & C3). eapply Rle_trans; [|apply b_enough; auto].
  apply (scores_near K s sh vv A blocks 1 eps_log u_lse x OK C1 C2 (le_n 1) keys part h parts part_of_key J keys_are a Q
    Cs log_count Ha references_within log_count_ge1 C3 sum_at_most Parts j Ij).
Qed.
Lemma lse_below c : In c parts -> h_lse (h c) <= Mp + gap B + Cs.
Proof.
  intros Ic. destruct parts_conditions as (C1 & C2 & C3). destruct (Parts c Ic) as [S D].
  assert (Le := lse_le K s sh vv A blocks 1 eps_log u_lse x OK C1 C2 (le_n 1) keys h parts J keys_are a Cs M Qt
    log_count
    Ha below_M top_within log_count_ge1 C3 sum_at_most c Ic S D). unfold top_merged in Le. simpl gap. unfold Mp. lra.
Qed.

Section Last_division.
Variables (Mr L O : R) (w y : nat -> R) (order : list nat).
Hypothesis Enter : forall c, In c parts -> enters A Mr (h c) (w c) (y c).
Hypothesis Largest : largest_and_sum A parts order h Mr w L.
Hypothesis Added : merged_parts.added A y parts O.
Lemma merged_tolerance Uf1 lamf oh : 0 <= Uf1 <= Uf -> lamf <= lam_finish -> near Uf1 lamf (O / L) oh ->
  Rabs (oh - exact K s vv J) <= allowed.
Proof.
  intros Hu Hl Hoh. destruct Covered as (_ & _ & La & Any & Ne). destruct constants_pos as (_ & _ & _ & Om).
  destruct (merging_allowed merge_ops 0 Uf1 lamf) as [Low Al]; auto; [|lra|].
  { unfold merge_ops. rewrite mult_INR. simpl (INR (3 + 1)). assert (I := pos_INR n). assert (I2 := pos_INR r). lra. }
  rewrite exp_0, Ropp_0, exp_0, Rmult_1_r, Rminus_eq_0, Rplus_0_l in Al. eapply Rle_trans; [|apply Al].
  destruct Largest as ((c & Ic & EM) & Po & AL & HL).
  destruct (parts_sums K sh vv A blocks 1 eps_log u_lse x keys h parts Parts) as [f Hf].
  destruct (exponents A h parts Mr w (fun c' I' => proj1 (Enter c' I'))) as [e He].
  assert (Below : forall c, In c parts -> h_lse (h c) <= Mr) by (intros c' I'; apply (proj1 (Enter c' I'))).
  destruct (merged_weights K sh vv A blocks 1 eps_log u_lse x OK (le_n 1) keys part h parts part_of_key J keys_are 0
    (Rle_refl 0) Parts f Hf Mr w e Below He order L Po AL) as (kl & rl & cl & Rl & Cl & SL).
  destruct (merged_values K sh vv A blocks 1 eps_log u_lse x OK (le_n 1) keys part h parts part_of_key J keys_are 0
    (Rle_refl 0) Parts f Hf Mr w y e Below He O (fun c' I' => proj2 (Enter c' I')) Added)
    as (ko & ro & co & Ro & Co & SO).
  assert (Pm := merged_perm K sh vv A blocks keys h parts 0 f Hf Mr w e order Po).
  assert (Ko := merged_keys K sh vv A blocks keys h parts J keys_are 0 f Hf Mr w e).
  assert (Kl : Permutation (map fst (merged_l K A h 0 f Mr w e order)) J)
    by (eapply Permutation_trans; [apply Permutation_map, Pm|auto]).
  assert (Hm : Mr <= Mp + gap B + Cs) by (rewrite EM; apply lse_below; auto).
  assert (L0 : 1 <= L * F B r).
  { assert (Q1 := F_large). assert (F1 := F_ge1 B B_sane r).
    assert ((1 - eps A) * F B r <= L * F B r) by (apply Rmult_le_compat_r; lra). lra. }
  assert (La' : last B = 0) by exact La.
  destruct (computed_sum K s sh_moved B B_sane Ne Any La' b J Mp r Cs NJ moved_near merge_ops _ Mr L kl rl cl Kl Hm SL
    Rl
    Cl L0 Low) as (PW & Wl & HD).
  rewrite (Sum_perm _ _ _ Pm) in PW, Wl, HD.
  destruct (LDd_pos K s B B_sane Ne b J Mp r NJ merge_ops) as (LP & UP & Low1).
  assert (PL : 0 < L).
  { assert (0 < Sum (weight K sh_moved Mr) (merged_o K A h 0 f Mr w e parts) * low_d K s B b J Mp r merge_ops)
      by (apply Rmult_lt_0_compat; auto). lra. }
  apply (mean_of_computed K s sh_moved vv B B_sane Ne Any La' b J Mp r Cs NJ moved_near merge_ops _ Mr O L ko ro co
    (low_d K s B b J Mp r merge_ops) _ Uf1 lamf oh Ko Hm SO Ro Co); auto; lra.
Qed.
End Last_division.

(** Where it is left out second order counts once more: what sums err by (room), what a part weighs beside its own sum
    (part_), and what a sum is larger than the number of its keys (grown). *)
Section No_last_division.
Variables room part_ grown kappa : R.
Local Notation lost := (most_lost A n r merge_ops).
Local Notation merge_err := (merge_err K A blocks 1 eps_log u_lse x J Qt log_count room part_ grown kappa).
Definition second_order := (0 <= room /\ 0 <= part_ /\ grown <= 1 + T A) /\
  1 + lost / (1 - eps A) <= exp part_ * ((1 - upd A) * (1 - u A) ^ kk K J r) /\
  P A (w_l A) (kk K J r) * gain A r + lost <= exp grown /\
  room + (eps1 A + x) + thE * (part_ + log_count + eps1 A) <= kappa * (1 - thE) /\
  low_d K s B b J Mp r merge_ops <= exp room *
    (low_d K s B b J Mp r merge_ops - (UDd K s B b J Mp r + LDd K s B b J Mp r merge_ops)) /\
  merge_err <= of_merge /\
  thE * (log_count + T A) + X A r + room + grown +
    (u_lse * log_count + total_err A eps_log u_lse x Qt log_count) <= 1.
Hypothesis Orders : second_order.
Variables (Mr total L O : R) (w w2 y2 : nat -> R) (order : list nat).
Hypothesis Weigh : forall c, In c parts -> weighs A Mr (h c) (w c).
Hypothesis Largest : largest_and_sum A parts order h Mr w L.
Hypothesis Total : log_sum_exp eps_log u_lse x Mr L total.
Hypothesis Enter : forall c, In c parts -> enters A total (h c) (w2 c) (y2 c).
Hypothesis Added : merged_parts.added A y2 parts O.
Lemma undivided_tolerance Uf1 lamf oh : 0 <= Uf1 <= Uf -> lamf <= lam_finish -> near Uf1 lamf O oh ->
  Rabs (oh - exact K s vv J) <= allowed.
Proof.
  intros Hu Hl Hoh. destruct Covered as (_ & _ & La & Any & Ne).
  destruct Orders as ((R0 & P0 & G1) & O1 & O2 & O3 & O4 & O5 & O6). destruct parts_conditions as (C1 & C2 & C3).
  assert (Th := s_thE A OK). assert (X0 := s_xr A OK). assert (La' : last B = 0) by exact La.
  destruct Largest as (Hc & Po & AL & HL).
  destruct (parts_sums K sh vv A blocks 1 eps_log u_lse x keys h parts Parts) as [f Hf].
  destruct (exponents A h parts Mr w Weigh) as [e1 He1].
  destruct (exponents A h parts total w2 (fun c Ic => proj1 (Enter c Ic))) as [e2 He2].
  assert (Below1 : forall c, In c parts -> h_lse (h c) <= Mr) by (intros c' I'; apply (Weigh c' I')).
  assert (Below2 : forall c, In c parts -> h_lse (h c) <= total) by (intros c' I'; apply (proj1 (Enter c' I'))).
  destruct (merged_weights K sh vv A blocks 1 eps_log u_lse x OK (le_n 1) keys part h parts part_of_key J keys_are room
    R0 Parts f Hf Mr w e1 Below1 He1 order L Po AL) as (kl & rl & cl & Rl & Cl & SL).
  destruct (merged_values K sh vv A blocks 1 eps_log u_lse x OK (le_n 1) keys part h parts part_of_key J keys_are 0
    (Rle_refl 0) Parts f Hf total w2 y2 e2 Below2 He2 O (fun c' I' => proj2 (Enter c' I')) Added)
    as (ko & ro & co & Ro & Co & SO).
  assert (Pm := merged_perm K sh vv A blocks keys h parts 0 f Hf Mr w e1 order Po).
  assert (Ko := merged_keys K sh vv A blocks keys h parts J keys_are 0 f Hf total w2 e2).
  assert (Kl : Permutation (map fst (merged_l K A h 0 f Mr w e1 order)) J)
    by (eapply Permutation_trans; [apply Permutation_map, Pm|
      apply (merged_keys K sh vv A blocks keys h parts J keys_are 0 f Hf Mr w e1)]).
  assert (SL0 : sums K sh_moved B (one K) (w_l A) (lampd A) (merged_l K A h 0 f Mr w e1 order) Mr L kl rl cl)
    by exact (sums_with_gap K sh_moved (roomy A room) 0 _ _ _ _ _ _ _ _ _ SL).
  assert (Hops : INR merge_ops <= 2 * INR n + 2 * INR r + 3 * INR n).
  { unfold merge_ops. rewrite mult_INR. simpl (INR (3 + 1)). assert (I := pos_INR n). assert (I2 := pos_INR r). lra. }
  destruct constants_pos as (_ & _ & _ & Om).
  destruct (merging_allowed merge_ops 0 Uf1 lamf Hops ltac:(lra) Hu Hl) as [Low _].
  set (low := low_d K s B b J Mp r merge_ops) in *. set (off := UDd K s B b J Mp r + LDd K s B b J Mp r merge_ops) in *.
  assert (Hm : Mr <= Mp + gap B + Cs) by (destruct Hc as (c & Ic & EM); rewrite EM; apply lse_below; auto).
  assert (F1 := F_ge1 B B_sane r).
  assert (L0 : 1 <= L * F B r).
  { assert (Q1 := F_large). assert ((1 - eps A) * F B r <= L * F B r) by (apply Rmult_le_compat_r; lra). lra. }
  destruct (computed_sum K s sh_moved B B_sane Ne Any La' b J Mp r Cs NJ moved_near merge_ops _ Mr L kl rl cl Kl Hm
    SL0 Rl
    Cl L0 Low) as (PW & Wl & HD).
  rewrite (Sum_perm _ _ _ Pm) in PW, Wl, HD. fold low in Wl, HD. fold off in HD.
  set (W1 := Sum (weight K sh_moved Mr) (merged_o K A h 0 f Mr w e1 parts)) in *.
  assert (PL : 0 < L) by (assert (0 < W1 * low) by (apply Rmult_lt_0_compat; auto); lra).
  destruct (LDd_pos K s B B_sane Ne b J Mp r NJ merge_ops) as (LP & UP & Low1). fold low in Low1.
  assert (Er := exp_pos room). assert (HD' := Rle_abs (L - W1)).
  assert (HD2 : (L - W1) * low <= L * off) by (eapply Rle_trans; [apply Rmult_le_compat_r; [lra|apply HD']|auto]).
  assert (Lroom : L <= exp room * W1).
  { assert (D0 : 0 < low - off) by (apply Rmult_lt_reg_l with (exp room); lra).
    assert (Q1 : L * (low - off) <= W1 * low) by lra.
    assert (Q2 : W1 * low <= W1 * (exp room * (low - off))) by (apply Rmult_le_compat_l; lra).
    apply Rmult_le_reg_r with (low - off); auto. lra. }
  destruct (two_sums K s sh vv A blocks 1 eps_log u_lse x OK C1 C2 (le_n 1) keys part h parts part_of_key J keys_are a Q
    Cs M Qt log_count Ha below_M references_within top_within log_count_ge1 C3 sum_at_most room R0 Parts ltac:(lra)
    ltac:(lra) X0 some_Q part_ grown O1 P0 O2 ltac:(unfold log_count; lra) ltac:(unfold log_count; lra) Eps_log NJ kappa
    O3 Mr total L O order w w2 y2 Weigh Largest Total Enter Added f Hf e1 e2 He1 He2 kl rl cl SL Rl Cl Lroom)
    as (Ht & Up & Dn).
  destruct (merge_err_pos K s sh vv A blocks 1 eps_log u_lse x OK C1 C2 (le_n 1) keys part h parts J keys_are a Q Cs M
    Qt
    log_count Ha below_M references_within top_within log_count_ge1 C3 sum_at_most room R0 Parts ltac:(lra) ltac:(lra)
      X0
    some_Q part_ grown P0 O2 ltac:(unfold log_count; lra) NJ kappa O3 Mr total L order w Weigh Largest Total f Hf e1 kl
    rl cl SL Rl Cl) as (_ & _ & me0).
  set (me := merge_err) in *.
  change (Sum (weight K sh_moved Mr) (merged_o K A h room f Mr w e1 parts)) with W1 in Up, Dn.
  set (W2 := Sum (weight K sh_moved total) (merged_o K A h 0 f total w2 e2 parts)).
  change (Sum (weight K sh_moved total) (merged_o K A h room f total w2 e2 parts)) with W2 in Up, Dn.
  assert (Hmt : total <= Mp + gap B + Cs) by 
    (unfold top_total in Ht; unfold rescalings in O6; unfold Mp; simpl gap; unfold log_count in *; lra).
  destruct (merging_allowed merge_ops me Uf1 lamf Hops (conj me0 O5) Hu Hl) as [_ Al]. fold low in Al.
  eapply Rle_trans; [|apply Al].
  assert (Em := exp_ge1 me me0). assert (En := exp_pos (- me)). assert (En1 : exp (- me) <= 1) by (apply exp_le1; lra).
  assert (Inv : exp me * exp (- me) = 1) by (rewrite <- exp_plus, Rplus_opp_r; apply exp_0).
  assert (lw1 : 0 < low * exp (- me)) by (apply Rmult_lt_0_compat; auto).
  assert (lw2 : low * exp (- me) <= low * 1) by (apply Rmult_le_compat_l; lra).
  assert (off0 : 0 <= off) by (unfold off; lra).
  replace (exp me - 1 + UDd K s B b J Mp r + LDd K s B b J Mp r merge_ops) with (exp me - 1 + off) by (unfold off;
    ring).
  assert (W2low : W2 * (low * exp (- me)) <= 1).
  { apply Rmult_le_reg_r with L; auto. rewrite Rmult_1_l.
    assert (Q1 := Rmult_le_compat_r (low * exp (- me)) _ _ (Rlt_le _ _ lw1) Up).
    replace (exp me * W1 * (low * exp (- me))) with (exp me * exp (- me) * (W1 * low)) in Q1 by ring.
    rewrite Inv in Q1. lra. }
  assert (Hd2 : Rabs (1 - W2) * (low * exp (- me)) <= 1 * (exp me - 1 + off)).
  { rewrite Rmult_1_l. apply Rle_trans with (Rabs (1 - W2) * low); [apply Rmult_le_compat_l; [apply Rabs_pos|lra]|].
    apply Rmult_le_reg_l with L; auto.
    assert (HDl : (W1 - L) * low <= L * off).
    { eapply Rle_trans; [|apply HD]. apply Rmult_le_compat_r; [lra|]. rewrite Rabs_minus_sym. apply Rle_abs. }
    assert (Q0 : (exp me - 1) * (W1 * low) <= (exp me - 1) * L) by (apply Rmult_le_compat_l; lra).
    unfold Rabs. destruct (Rcase_abs (1 - W2)).
    - assert (Q1 := Rmult_le_compat_r low _ _ (Rlt_le _ _ Low) Up). lra.
    - assert (Q1 := Rmult_le_compat_r low _ _ (Rlt_le _ _ Low) Dn).
      assert (Q2 : (1 - exp (- me)) * (W1 * low) <= (exp me - 1) * L).
      { apply Rle_trans with ((1 - exp (- me)) * L); [apply Rmult_le_compat_l; lra|]. apply Rmult_le_compat_r; [lra|].
        assert (0 <= (exp me - 1) * (1 - exp (- me))) by (apply Rmult_le_pos; lra). lra. }
      lra. }
  apply (mean_of_computed K s sh_moved vv B B_sane Ne Any La' b J Mp r Cs NJ moved_near merge_ops _ total O 1 ko ro co
    (low * exp (- me)) (exp me - 1 + off) Uf1 lamf oh Ko Hmt SO Ro Co); auto; try lra; try tauto.
  unfold Rdiv. rewrite Rinv_1, Rmult_1_r. auto.
Qed.
End No_last_division.
End Parts.

(** A kernel that does not merge, as any other's. *)
Lemma whole_tolerance oh : returns K vv A J r 1 u_o lam_o sh oh -> Rabs (oh - exact K s vv J) <= allowed.
Proof.
  intros (tl & to_ & m & l & o & kl & rl & cl & ko & ro & co & quotient & M1 & Hp & HL & Hrl & Hcl & Sl &
    HO & Hro & Hco & So & Hi & Hq & Hoh).
  destruct Covered as (Ga & _ & _ & Any & Ne). destruct constants_pos as (_ & _ & _ & Om).
  assert (Uf0 := Uf_pos A OK 1 u_o (proj1 Out)).
  destruct (merging_allowed (2 * n + 2 * r) 0 Uf lam_finish) as [Low Al]; [|lra|lra|lra|].
  { rewrite plus_INR, !mult_INR. simpl (INR 2). assert (I := pos_INR n). lra. }
  rewrite exp_0, Ropp_0, exp_0, Rmult_1_r, Rminus_eq_0, Rplus_0_l in Al. eapply Rle_trans; [|apply Al].
  assert (Er : forall q, 0 <= q -> 0 <= err q).
  { intros q Hq'. assert (L1 := log_count_ge1). assert (Th := s_thE A OK). assert (X0 := s_xr A OK). unfold lse_err.
    assert (0 <= eps_log * log_count) by (apply Rmult_le_pos; lra).
    assert (0 <= thE * (q + (1 + eps_log) * log_count)) by (apply Rmult_le_pos; lra). lra. }
  assert (Near : forall j, In j J -> Rabs (sh j - (s j + Cs)) <= b j).
  { intros j Ij. eapply Rle_trans; [apply (Ha j Ij)|]. eapply Rle_trans; [|apply b_enough; auto]. unfold a_merged.
    assert (E0 := eps1_pos A OK). destruct (Q_above j) as [Q1 Q2]. assert (T0 := s_T A OK).
    assert (P := Er (Q j) ltac:(lra)). lra. }
  assert (Hm : m <= Mp + gap B + Cs).
  { destruct Hi as (i & Ii & Hi). assert (A1 := Rabs_bounds _ _ (Ha i Ii)). assert (B1 := below_M i Ii).
    assert (P := Er Qt ltac:(eapply Rle_trans; [apply Rabs_pos|apply top_within])). assert (L1 := log_count_ge1).
    simpl gap. unfold Mp. lra. }
  assert (Ml : Permutation (map fst tl) J) by (eapply Permutation_trans; [apply Permutation_map, Hp|auto]).
  assert (Fk := terms_known K sh A OK r _ _ _ _ _ _ _ _ _ (wl_ge1 A OK) (s_lampd A OK) HL Hrl).
  assert (HF : 1 <= Sum (weight K sh m) tl * F B r).
  { rewrite F_of_B. apply (sum_at_least K sh A OK J r NJ tl m Ml Fk).
    destruct Hi as (i & Ii & Hi). exists i. split; auto. lra. }
  assert (Sh : forall k, shallow B r k) by (intros; unfold shallow; simpl; rewrite Any; auto).
  apply (documented_of_sums K s sh vv B B_sane Ne b J Mp r (2 * n + 2 * r) tl to_ m l o Cs Uf lam_finish oh kl rl cl ko
    ro co NJ M1 Hp (sums_with_gap K sh A 0 _ _ _ _ _ _ _ _ _ HL) Hrl (sums_with_gap K sh A 0 _ _ _ _ _ _ _ _ _ HO) Hro);
    auto.
  apply (finish_near A OK 1 u_o lam_o Out _ quotient); auto.
Qed.
End Merging.

(** ** Kernels *)
Section Kernels.
Variable K : Type.
Variables s vv : K -> R.
Variable A : arith.
Variables a ap : K -> R.
Variable J : list K.
Variable blocks : nat.
Variable eps_log : R.
Variables u_o lam_o : R.
Local Notation n := (length J).
Local Notation thE := (thE A).
Local Notation r := (rescalings blocks).
Local Notation e := (natural_whole a ap).
Local Notation more := (merging K s A a ap J eps_log).
Local Notation L := (log_count K A J).
Local Notation Mabs := (Mabs K s e J).

(** Its parts in any order and of any keys, divided by the sum of their weights or weighted by the log-sum-exp of all;
    or nothing is merged. *)
Definition may_merge (sh : K -> R) (oh : R) := returns K vv A J r 1 u_o lam_o sh oh \/
  exists parts keys part h, (forall c j, In c parts -> In j (keys c) -> part j = c) /\
    Permutation (flat_map keys parts) J /\
    ((exists L O quotient, merged K sh vv A blocks 1 eps_log thE (xr A) parts keys h L O /\
       divided (u A) (lam A) 1 (O / L) quotient /\ near u_o lam_o quotient oh) \/
     (exists O, merged_undivided K sh vv A blocks 1 eps_log thE (xr A) parts keys h O /\ near u_o lam_o O oh)).
(** Errors of scores: but for what is common to all, and with it. *)
Definition scores_within_both (sh : K -> R) :=
  scores_within K s J a sh /\ forall j, In j J -> Rabs (sh j - s j) <= ap j.

(** Rows that are no longer than their formats are made for, and scores whose size is known: in binary32 those of 2^19
    keys in blocks of 16 ([formats_are_ordinary]). *)
Record ordinary_row : Prop := {
  o_unit : thE <= / 1000;
  o_exp : thE <= eps A <= eps_log;
  o_log : eps_log <= 8 * thE;
  o_underflow : xr A <= thE / 100;
  o_exponents : thE * (L + T A) + X A r <= / 200;
  o_scores : thE * Mabs <= / 4;
  o_top : forall i, In i J -> M K s e J = s i + a i -> a i <= / 16 + Mabs / 4;
  o_sum : P A (w_l A) (kk K J r) * gain A r + most_lost A n r (merge_ops K 1 J) <= exp (/ 16);
  o_kept : 1 + most_lost A n r (merge_ops K 1 J) / (1 - eps A) <=
    exp (/ 16) * ((1 - upd A) * (1 - u A) ^ kk K J r);
  o_row : UD_of_sum K s A e more J r + LD K s A e more J r <= / 20 }.

Hypothesis OK : sane A.
Hypothesis Covered : in_any_order A.
Hypothesis Lame : lam A <= lame A.
Hypothesis Underflow : xl A = xr A.
Hypothesis Up_d : upd A <= up A.
Hypothesis Lamp_d : lampd A <= lamp A.
Hypothesis Out : 0 <= u_o /\ 0 <= lam_o.
Hypothesis Ordinary : ordinary_row.

Section Row.
Hypothesis NJ : J <> [].
Hypothesis Not_negative : forall j, In j J -> 0 <= a j.
Variable most : K.
Hypothesis Most : In most J /\ M K s e J = s most + a most.
Lemma small : 0 <= eps1 A <= / 200 /\ 0 <= eps_log * L <= / 25 /\ 0 <= thE * L /\ 0 <= thE * T A /\
  thE * L + thE * T A + X A r <= / 200 /\ eps1 A + xr A <= X A r /\ thE <= eps1 A.
Proof.
  destruct Ordinary as [O1 O2 O3 O4 O5 O6 O7 O8 O9 O10]. assert (Th := s_thE A OK). assert (T0 := s_T A OK).
  assert (Ep := s_eps A OK). assert (E0 := eps1_pos A OK). assert (L1 := log_count_ge1 K A J OK NJ).
  assert (X0 := s_xr A OK). assert (I := pos_INR r). assert (P1 : 0 <= thE * L) by (apply Rmult_le_pos; lra).
  assert (P2 : 0 <= thE * T A) by (apply Rmult_le_pos; lra).
  assert (X1 : eps1 A + xr A <= X A r).
  { unfold X. rewrite Underflow. assert (0 <= INR r * xr A) by (apply Rmult_le_pos; auto).
    assert (0 <= INR r * eps1 A) by (apply Rmult_le_pos; auto). lra. }
  assert (Q : eps_log * L <= 8 * thE * L) by (apply Rmult_le_compat_r; lra).
  assert (Q0 : 0 <= eps_log * L) by (apply Rmult_le_pos; lra).
  assert (E1 : eps A <= eps1 A).
  { unfold eps1. apply Rmult_le_reg_r with (1 - eps A); [lra|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra.
    assert (0 <= eps A * eps A) by (apply Rmult_le_pos; lra). lra. }
  repeat split; lra.
Qed.
Lemma second_order_exp : 2 * thE * (eps_log * L + thE * a most) <= of_exp A.
Proof.
  destruct Ordinary as [O1 O2 O3 O4 O5 O6 O7 O8 O9 O10]. assert (Th := s_thE A OK).
  destruct small as (S1 & S2 & S3 & S4 & S5 & S6 & S7). destruct Most as [Im Em]. assert (O7' := O7 most Im Em).
  change (of_exp A) with (eps1 A). assert (Q := Rmult_le_compat_l thE _ _ (proj1 Th) O7').
  assert (Q1 : 2 * thE * (eps_log * L + thE * a most) <= 2 * thE * (/ 2)) by (apply Rmult_le_compat_l; lra). lra.
Qed.
Lemma eps_log_ge : thE <= eps_log /\ thE <= / 2 /\ eps A <= / 2.
Proof. destruct Ordinary as [O1 O2 O3 O4 O5 O6 O7 O8 O9 O10]. assert (Th := s_thE A OK). lra. Qed.
(** What the row's sums err by is what core/bound has of them. *)
Lemma row_sums : let B := with_gap A 0 in let b := b K s A a ap J blocks eps_log most in
  let Mp := Mp K s A a ap J eps_log most in let ops := merge_ops K 1 J in
  0 <= UDd K s B b J Mp r + LDd K s B b J Mp r ops <= / 20 /\
  1 - (UDd K s B b J Mp r + LDd K s B b J Mp r ops) <= low_d K s B b J Mp r ops.
Proof.
  intros B b Mp ops. destruct Ordinary as [O1 O2 O3 O4 O5 O6 O7 O8 O9 O10]. destruct eps_log_ge as (G1 & G2 & G3).
  assert (C := Covered). destruct C as (_ & _ & _ & Any & Ne). assert (So := second_order_exp).
  assert (Ex : forall j, E K s A e more J r j = bound.E K s B b Mp r j) by exact (E_is_of_b K s A a ap J blocks
    eps_log OK most).
  assert (Bs : sane B) by exact (B_sane A OK).
  assert (Al : alike A B) by (unfold alike; simpl; auto 10).
  assert (Cn : covered A e) by (apply natural_covered; auto).
  assert (Fa : enough_factor K s A e more J r B (room A))
    by exact (merging_factor K s A a ap J blocks eps_log OK Covered Lame G1 NJ).
  assert (Gain : enough_gain K A e r B (room A)) by exact (gain_le K A e r Cn).
  assert (I := pos_INR n). assert (I2 := pos_INR r).
  assert (Ops : INR ops <= 2 * INR n + rescaling_operations more r).
  { unfold ops, merge_ops, rescaling_operations. rewrite mult_INR. simpl (INR (3 + 1)). simpl merge_operations. lra. }
  assert (Mo : 0 <= merge_operations more) by (simpl; lra).
  rewrite (UD_of_sum_is K s A e more J r NJ B b Mp Al Ex) in O10.
  assert (Ld := LD_le K s A e more J r OK NJ B b Mp ops (room A) Bs Al Ex (room_ge1 A OK) Fa Up_d Lamp_d Gain
    (proj2 (proj2 Cn)) Mo Ops).
  destruct (LDd_pos K s B Bs Ne b J Mp r NJ ops) as (P1 & P2 & _). split; [lra|].
  unfold low_d. assert (Mx := Rmax_l (1 - UDd K s B b J Mp r) ((1 - upd B) * (1 - u B) ^ (documented.h K B J + 2 * r))).
  lra.
Qed.
Lemma second_order_holds :
  second_order K s A a ap J blocks eps_log most (/ 16) (/ 16) (/ 16) (7 / 100).
Proof.
  destruct Ordinary as [O1 O2 O3 O4 O5 O6 O7 O8 O9 O10]. destruct eps_log_ge as (G1 & G2 & G3).
  destruct small as (S1 & S2 & S3 & S4 & S5 & S6 & S7). assert (Th := s_thE A OK). assert (T0 := s_T A OK).
  assert (Ep := s_eps A OK). assert (X0 := s_xr A OK). destruct Most as [Im Em]. assert (O7' := O7 most Im Em).
  assert (Pa := Not_negative most Im). assert (M0 := Mabs_pos K s e J).
  destruct row_sums as [R1 R2]. assert (L1 := log_count_ge1 K A J OK NJ). assert (E16 := exp_ge_1 (/ 16)).
  (* the products that are small *)
  set (p := thE * Mabs) in *. assert (p0 : 0 <= p) by (apply Rmult_le_pos; lra).
  assert (p1 : p <= Mabs * / 1000) by (unfold p; rewrite Rmult_comm; apply Rmult_le_compat_l; lra).
  set (el := eps_log * L) in *.
  set (q := Qt K s A a ap J most).
  assert (Q0 : 0 <= q <= 3 / 2 * Mabs + T A + / 8) by (unfold q, Qt; lra).
  assert (tq : 0 <= thE * q <= 3 / 2 * p + thE * T A + / 8000).
  { split; [apply Rmult_le_pos; lra|]. unfold p.
    assert (thE * q <= thE * (3 / 2 * Mabs + T A + / 8)) by (apply Rmult_le_compat_l; lra). lra. }
  assert (tel : 0 <= thE * el <= / 25000).
  { split; [apply Rmult_le_pos; lra|]. assert (thE * el <= / 1000 * / 25) by (apply Rmult_le_compat; lra). lra. }
  assert (te1 : 0 <= thE * eps1 A <= / 200000).
  { split; [apply Rmult_le_pos; lra|]. assert (thE * eps1 A <= / 1000 * / 200) by (apply Rmult_le_compat; lra). lra. }
  set (er := lse_err eps_log thE (xr A) L q).
  assert (Ee : er = thE * q + thE * L + thE * el + xr A + el) by (unfold er, lse_err, el; ring).
  assert (Er : 0 <= er <= 3 / 2 * p + 51 / 1000) by (rewrite Ee; lra).
  assert (ter : 0 <= thE * er <= / 1000 * er) by (split; [apply Rmult_le_pos|apply Rmult_le_compat_r]; lra).
  set (tot := total_err A eps_log thE (xr A) q L).
  assert (Et : tot = thE * q + thE * er + thE * eps1 A + thE * L + (xr A + el + thE * (2 * eps1 A + el))).
  { unfold tot, total_err, size_of_M, of_log. fold er. fold el. ring. }
  assert (Tot : 0 <= tot <= 2 * p + 6 / 100) by (rewrite Et; lra).
  assert (e2 : 0 <= eps A * eps1 A <= 8 * thE * eps1 A) by (split; [apply Rmult_le_pos|apply Rmult_le_compat_r]; lra).
  assert (Ei : eps1 A = eps A + eps A * eps1 A) by (unfold eps1; field; lra).
  unfold second_order. fold q. fold tot.
  split; [lra|]. split; [exact O9|]. split; [exact O8|]. split; [lra|]. split.
  { set (low := low_d _ _ _ _ _ _ _ _) in *. set (off := UDd _ _ _ _ _ _ _ + _) in *.
    assert ((1 + / 16) * (low - off) <= exp (/ 16) * (low - off)) by (apply Rmult_le_compat_r; lra). lra. }
  split; [|lra].
  (* in units of thE: what is counted beside the logarithm itself and all that is not *)
  unfold merge_err, of_merge, spare, size_of_M, of_log. fold er. fold tot. fold el. fold el.
  set (sp := / 16 + (thE * (L + T A) + X A r) + / 16 + 2 * eps1 A).
  assert (Sp : 0 <= sp <= / 8 + / 200 + / 100) by (unfold sp; lra).
  assert (Spe : eps_log * sp <= 8 * thE * sp) by (apply Rmult_le_compat_r; lra).
  set (rest := 2 + T A + Mabs - 2 * a most - er - 3 * eps1 A - el - 14 / 100 - thE * L - tot - / 8 - eps1 A -
    16 * eps1 A - 3 / 100 - 8 * sp).
  assert (Rest : 0 <= rest) by (unfold rest; lra).
  assert (Tr : 0 <= thE * rest) by (apply Rmult_le_pos; lra).
  assert (Eq : thE * rest = 2 * thE + thE * T A + p - 2 * (thE * a most) - thE * er - 3 * (thE * eps1 A) - thE * el -
    14 / 100 * thE - thE * (thE * L) - thE * tot - / 8 * thE - thE * eps1 A - 16 * (thE * eps1 A) - 3 / 100 * thE -
    8 * thE * sp) by (unfold rest, p; ring).
  assert (Lc : thE * L = thE * ln (INR n) + thE + thE * T A) by (unfold log_count; ring).
  assert (Tq : thE * q = p + thE * T A + 2 * (thE * a most)) by (unfold q, Qt, p; ring).
  change (X A (blocks + 1 + 1)) with (X A r). fold sp. unfold p in *. lra.
Qed.
End Row.

Theorem merging_tolerance sh oh : scores_within_both sh -> may_merge sh oh ->
  0 < denominator K s A e more J r -> Rabs (oh - exact K s vv J) <= allowed K s vv A e more J r 1 u_o lam_o.
Proof.
  intros ((Cs & Ha) & Hw) Hm Hd. destruct eps_log_ge as (G1 & G2 & G3). assert (O := Ordinary).
  assert (Some : exists i, In i J).
  { destruct Hm as [Hr|(parts & keys & part & h & _ & Pm & Hm)].
    - destruct Hr as (tl & to_ & m & l & o & kl & rl & cl & ko & ro & co & q & _ & _ & _ & _ & _ & _ & _ & _ & _ & _ &
        (i & Ii & _) & _). exists i. auto.
    - assert (Some : exists c, In c parts /\ exists i, In i (keys c)).
      { destruct Hm as [(L' & O' & q & (Mr & w & y & order & Hc & ((c & Ic & _) & _) & _) & _)|
          (O' & (Mr & total & L' & w & w' & y & order & Hc & ((c & Ic & _) & _) & _) & _)];
          exists c; split; auto; destruct (Hc c Ic) as ((_ & (i & Ii & _) & _) & _); exists i; auto. }
      destruct Some as (c & Ic & i & Ii). exists i. apply (Permutation_in _ Pm), in_flat_map. exists c. auto. }
  assert (NJ : J <> []) by (intros N; destruct Some as (i & Ii); rewrite N in Ii; destruct Ii).
  assert (Pa : forall j, In j J -> 0 <= a j) by (intros j Hj; eapply Rle_trans; [apply Rabs_pos|apply (Ha j Hj)]).
  destruct (greatest_is K J (fun j => s j + a j) NJ) as (most & Im & Em).
  change (greatest K J (fun j => s j + a j)) with (M K s e J) in Em.
  assert (So := second_order_exp NJ most (conj Im Em)).
  assert (Or : ordinary_sum K A J blocks).
  { eapply Rle_trans; [apply (o_sum O)|]. apply exp_mono. assert (T0 := s_T A OK). lra. }
  assert (Uo : 0 <= u_o <= Uf A 1 u_o).
  { assert (U0 := s_u A OK). unfold Uf, join, pw. assert (0 <= u A * u_o) by (apply Rmult_le_pos; tauto).
    simpl. lra. }
  destruct Hm as [Hr|(parts & keys & part & h & Hp & Pm & Hm)].
  - exact (whole_tolerance K s vv A a ap J blocks eps_log OK Covered Lame Underflow G1 G2 NJ Pa most (conj Im Em) So
      Up_d Lamp_d u_o lam_o Out Hd sh Cs Ha Hw oh Hr).
  - destruct Hm as [(L' & O' & q & (Mr & w & y & order & Hc & Hl & Ad) & Hq & Hoh)|
      (O' & (Mr & total & L' & w & w' & y & order & Hc & Hl & Ht & Le & Ad) & Hoh)].
    + apply (merged_tolerance K s vv A a ap J blocks eps_log OK Covered Lame Underflow G1 G2 G3 NJ Pa most (conj Im Em)
        So Up_d Lamp_d u_o lam_o Hd sh Cs Ha Hw Or parts keys part h Hp Pm
        (fun c Ic => conj (proj1 (Hc c Ic)) (proj1 (proj2 (Hc c Ic)))) Mr L' O' w y order
        (fun c Ic => proj2 (proj2 (Hc c Ic))) Hl Ad (Uf A 1 u_o) (lam_finish A 1 u_o lam_o)); [lra|lra|].
      apply (finish_near A OK 1 u_o lam_o Out _ q); auto.
    + assert (S2 := second_order_holds NJ Pa most (conj Im Em)).
      apply (undivided_tolerance K s vv A a ap J blocks eps_log OK Covered Lame Underflow G1 G2 G3 NJ Pa most
        (conj Im Em) So  Up_d Lamp_d u_o lam_o Hd sh Cs Ha Hw Or parts keys part h Hp Pm
        (fun c Ic => conj (proj1 (Hc c Ic)) (proj1 (proj2 (Hc c Ic)))) (/ 16) (/ 16) (/ 16) (7 / 100) S2 Mr total L'
          O' w
        w' y order (fun c Ic => proj1 (proj2 (proj2 (Hc c Ic)))) Hl Ht
        (fun c Ic => proj2 (proj2 (proj2 (Hc c Ic)))) Ad u_o lam_o); auto.
      unfold lam_finish. assert (L0 := s_lam A OK). destruct Out as [Ou Ol]. simpl (INR 1).
      assert (0 <= Uf A 1 u_o * (1 * lam A + lam_o)) by (apply Rmult_le_pos; lra). lra.
Qed.
End Kernels.

(** Which rows are ordinary: those of up to 2^19 keys in up to 2^15 blocks, in formats no coarser than binary32, with an
    exponential to two units and a logarithm to eight. Weights may be stored in a narrower format, bfloat16 or wider,
    where what so many of them lose by underflow is little. *)
Section OrdinaryRows.
Import implemented_rows.
Variable K : Type.
Variables s a ap : K -> R.
Variable J : list K.
Variable blocks : nat.
Variable A : arith.
Variable eps_log : R.
Local Notation e := (natural_whole a ap).
Local Notation n := (length J).
Local Notation r := (rescalings blocks).
Local Notation more := (merging K s A a ap J eps_log).
Record ordinary_formats : Prop := {
  f_u : u A <= / 2 ^ 24; f_lam : lam A <= lame A; f_lame : lame A <= / 2 ^ 100;
  f_thE : thE A <= / 2 ^ 24; f_xr : xr A <= thE A / 100; f_T : T A = 0;
  f_eps : thE A <= eps A <= eps_log; f_eps_most : eps A <= / 2 ^ 23; f_log : eps_log <= 8 * thE A;
  f_up : up A <= / 2 ^ 8; f_lamp : lamp A <= 1; f_upd : upd A <= / 2 ^ 8; f_lampd : INR n * lampd A <= / 2 ^ 11 }.
Hypothesis OK : sane A.
Hypothesis Covered : in_any_order A.
Hypothesis Underflow : xl A = xr A.
Hypothesis Formats : ordinary_formats.
Hypothesis NJ : J <> [].
Hypothesis Length : (n <= 2 ^ 19)%nat.
Hypothesis Blocks : (blocks <= 2 ^ 15)%nat.
Hypothesis Scores : thE A * Mabs K s e J <= / 4.
Hypothesis Top : forall i, In i J -> M K s e J = s i + a i -> a i <= / 16 + Mabs K s e J / 4.

Lemma exp_small x : 0 <= x <= / 2 -> 1 <= exp x <= 1 + 2 * x.
Proof. intros H. split; [apply exp_ge1; lra|apply exp_below_two; auto]. Qed.
Lemma sizes_of_row : 1 <= INR n <= 2 ^ 19 /\ 0 <= INR r <= 32770 /\ INR (n + 2 * r) * / 2 ^ 24 <= 352 / 10000 /\
  INR (n - 1 + r) * / 2 ^ 24 <= 352 / 10000.
Proof.
  assert (H1 := le_INR _ _ Length). rewrite pow_INR in H1. replace (INR 2) with 2 in H1 by (simpl; lra).
  assert (H2 : INR r <= 32770).
  { unfold rescalings. rewrite !plus_INR. assert (Q := le_INR _ _ Blocks). rewrite pow_INR in Q. simpl (INR 1).
    replace (INR 2) with 2 in Q by (simpl; lra). lra. }
  assert (I := pos_INR r). assert (N1 : 1 <= INR n) by (apply (le_INR 1); clear - NJ; destruct J; [congruence|simpl; lia]).
  assert (H3 : INR (n - 1 + r) <= INR (n + 2 * r)) by (apply le_INR; lia).
  assert (H4 : INR (n + 2 * r) <= 2 ^ 19 + 65540) by (rewrite plus_INR, mult_INR; simpl (INR 2); lra).
  assert (H5 : INR (n + 2 * r) * / 2 ^ 24 <= 352 / 10000) by lra.
  repeat split; auto; lra.
Qed.
Lemma eps1_small : 0 <= eps1 A <= 1001 / 1000 * / 2 ^ 23.
Proof.
  destruct Formats. assert (E0 := eps1_pos A OK). split; auto. unfold eps1 in *.
  apply Rmult_le_reg_r with (1 - eps A); [lra|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra. lra.
Qed.
Lemma X_small k : (k <= r)%nat -> 0 <= X A k <= 4 / 1000.
Proof.
  intros Hk. destruct Formats. destruct sizes_of_row as (_ & (_ & H2) & _). destruct eps1_small as [E0 E1].
  apply le_INR in Hk. assert (I := pos_INR k). assert (X0 := s_xr A OK). split; [apply X_pos; auto|]. unfold X.
  rewrite Underflow.
  assert ((1 + INR k) * eps1 A <= 32771 * (1001 / 1000 * / 2 ^ 23)) by (apply Rmult_le_compat; lra).
  assert (INR k * xr A <= 32770 * (/ 2 ^ 24 / 100)) by (apply Rmult_le_compat; lra). lra.
Qed.
Lemma gain_small k : (k <= r)%nat -> 1 <= gain A k <= exp (4 / 1000).
Proof.
  intros Hk. destruct Formats as [_ _ _ _ _ T0 _ _ _ _ _ _ _]. destruct Covered as (_ & Of & _).
  assert (Q := X_small k Hk). unfold gain. rewrite T0, Of, Rmult_0_r, Rplus_0_l, Rplus_0_r.
  split; [apply exp_ge1|apply exp_mono]; lra.
Qed.
Lemma power_small k : INR k * / 2 ^ 24 <= 352 / 10000 -> 1 <= (1 + u A) ^ k <= exp (352 / 10000).
Proof.
  intros H. destruct Formats. assert (U := s_u A OK). assert (I := pos_INR k). split; [apply pow_ge1; lra|].
  eapply Rle_trans; [apply power_le_exp; lra|]. apply exp_mono.
  apply Rle_trans with (INR k * / 2 ^ 24); [apply Rmult_le_compat_l|]; lra.
Qed.
Lemma weights_small : 1 <= w_l A <= 1 + / 2 ^ 8.
Proof. destruct Formats. assert (U := s_upd A OK). unfold w_l. lra. Qed.
(** What underflow takes is nothing beside a sum of weights. *)
Lemma lost_small : 0 <= most_lost A n r (merge_ops K 1 J) <= / 1000.
Proof.
  destruct sizes_of_row as ((N0 & N1) & (R0 & R1) & _ & S2). destruct eps1_small as [E0 E1].
  assert (P := power_small _ S2). assert (Xs := exp_small (352 / 10000) ltac:(lra)).
  assert (X4 := exp_small (4 / 1000) ltac:(lra)). assert (W := weights_small).
  assert (G0 := gain_small 0 ltac:(lia)). assert (L0 := s_lame A OK). assert (L00 := s_lam A OK).
  assert (D0 := s_lampd A OK).
  destruct Formats as [F1 F2 F3 F4 F5 F6 F7 F8 F9 F10 F11 F12 F13].
  assert (D1 : lampd A <= 1).
  { assert (1 * lampd A <= INR n * lampd A) by (apply Rmult_le_compat_r; lra). lra. }
  assert (B : 0 <= by_exp A (w_l A) (lampd A) r <= 2 ^ 18 * lame A).
  { unfold by_exp, lam0. assert (Q0 : 0 <= w_l A * lame A <= 2 * lame A)
      by (split; [apply Rmult_le_pos|apply Rmult_le_compat_r]; lra).
    assert (Q1 : 0 <= Rmin (lampd A) (w_l A * lame A) <= w_l A * lame A) by (split; [apply Rmin_glb; lra|apply Rmin_r]).
    assert (Q2 : 0 <= w_l A * gain A 0 <= 2 * 2) by (split; [apply Rmult_le_pos|apply Rmult_le_compat]; lra).
    assert (Q3 : 0 <= lame A * (w_l A * gain A 0) <= lame A * (2 * 2))
      by (split; [apply Rmult_le_pos|apply Rmult_le_compat_l]; lra).
    assert (0 <= INR r * (lame A * (w_l A * gain A 0)) <= 32770 * (lame A * (2 * 2)))
      by (split; [apply Rmult_le_pos|apply Rmult_le_compat]; lra). lra. }
  set (be := by_exp A (w_l A) (lampd A) r) in *.
  assert (Tw : 0 <= twice_lost A (bound.part r) (w_l A) (lampd A) r <= 2 ^ 36 * lame A).
  { unfold twice_lost. fold be. unfold bound.part. rewrite Rinv_inv.
    set (c := 1 + 16 * (1 + INR r)). assert (C : 0 <= c <= 524337) by (unfold c; lra).
    assert (Q1 : 0 <= INR r * c <= 32770 * 524337) by (split; [apply Rmult_le_pos|apply Rmult_le_compat]; lra).
    assert (Q2 : 0 <= INR r * c * (lampd A + be) <= 32770 * 524337 * 2)
      by (split; [apply Rmult_le_pos|apply Rmult_le_compat]; lra).
    replace (INR r * (lame A * c * (lampd A + be))) with (INR r * c * (lampd A + be) * lame A) by ring.
    split; [apply Rmult_le_pos|apply Rmult_le_compat_r]; lra. }
  assert (Gr : 1 <= g A ^ r <= 102 / 100).
  { assert (G1 := g_ge1 A OK). split; [apply pow_R1_Rle; auto|]. assert (X0 := s_xr A OK).
    apply Rle_trans with (exp (xr A + eps1 A + lame A) ^ r).
    - apply pow_incr. split; [lra|]. unfold g. rewrite (exp_plus (xr A + eps1 A)).
      assert (Q := exp_ge_1 (lame A)). assert (Q1 := exp_ge1 (xr A + eps1 A) ltac:(lra)).
      assert (exp (xr A + eps1 A) * (1 + lame A) <= exp (xr A + eps1 A) * exp (lame A)) by (apply Rmult_le_compat_l; lra).
      assert (lame A <= exp (xr A + eps1 A) * lame A) by (apply le_times; lra). lra.
    - assert (Ep : forall k y, exp y ^ k = exp (INR k * y)).
      { intros k y. induction k as [|k IH]; [simpl; rewrite Rmult_0_l, exp_0; auto|].
        rewrite S_INR, Rmult_plus_distr_r, exp_plus, Rmult_1_l, <- IH. simpl. ring. }
      rewrite Ep. assert (Q : 0 <= INR r * (xr A + eps1 A + lame A) <= 32770 * (/ 2 ^ 24 / 100 + / 2 ^ 22 + / 2 ^ 50))
        by (split; [apply Rmult_le_pos|apply Rmult_le_compat]; lra).
      destruct (exp_small (INR r * (xr A + eps1 A + lame A)) ltac:(lra)). lra. }
  unfold most_lost. fold be. set (tw := twice_lost A (bound.part r) (w_l A) (lampd A) r) in *.
  set (pk := (1 + u A) ^ (n - 1 + r)) in *. set (gr := g A ^ r) in *.
  assert (Op : 0 <= INR (merge_ops K 1 J) * lam A <= 4 * 2 ^ 19 * lame A).
  { unfold merge_ops. rewrite mult_INR. replace (INR (3 + 1)) with 4 by (simpl; lra).
    split; [apply Rmult_le_pos|apply Rmult_le_compat]; lra. }
  assert (Nb : 0 <= INR n * (be + tw) <= 2 ^ 19 * (2 ^ 37 * lame A))
    by (split; [apply Rmult_le_pos|apply Rmult_le_compat]; lra).
  assert (Nd : 0 <= INR n * lampd A) by (apply Rmult_le_pos; lra).
  set (y := INR n * (lampd A + be + tw) + INR (merge_ops K 1 J) * lam A) in *.
  assert (Y : 0 <= y <= 5 / 10000) by (unfold y; lra).
  assert (Pg : 0 <= pk * gr <= (1 + 704 / 10000) * (102 / 100))
    by (split; [apply Rmult_le_pos|apply Rmult_le_compat]; lra).
  assert (0 <= pk * gr * y <= (1 + 704 / 10000) * (102 / 100) * (5 / 10000))
    by (split; [apply Rmult_le_pos|apply Rmult_le_compat]; lra). lra.
Qed.
Lemma log_small : 1 <= log_count K A J <= 16.
Proof.
  destruct sizes_of_row as ((N0 & N1) & _). destruct Formats as [_ _ _ _ _ T0 _ _ _ _ _ _ _]. unfold log_count.
  assert (L2 : ln (INR n) <= ln (2 ^ 19)).
  { destruct N1 as [N1|N1]; [left; apply ln_increasing; lra|rewrite N1; lra]. }
  assert (L0 : 0 <= ln (INR n)).
  { rewrite <- ln_1. destruct N0 as [N0|N0]; [left; apply ln_increasing; lra|rewrite <- N0; lra]. }
  rewrite <- (Rpower_pow 19 2) in L2 by lra. unfold Rpower in L2. rewrite ln_exp in L2.
  replace (INR 19) with 19 in L2 by (simpl; lra).
  assert (Q := ordinary_sizes.ln_2_le). lra.
Qed.
Lemma rest_small : 0 <= rest A more r <= / 100.
Proof.
  assert (L := log_small). assert (Xr := X_small r (le_n _)). destruct eps1_small as [E0 E1].
  assert (X0 := s_xr A OK). assert (Th := s_thE A OK).
  destruct Formats as [F1 F2 F3 F4 F5 F6 F7 F8 F9 F10 F11 F12 F13].
  unfold rest. simpl on_all.
  assert (Rr : of_exp A * (1 + INR r) + xl A + INR r * xr A = X A r) by (unfold X, of_exp, eps1; ring). rewrite Rr.
  unfold merge_constant, lse_constant, lse_on_Q, lse_on_D. change (of_exp A) with (eps1 A). rewrite Rmax_left by lra.
  set (lc := log_count K A J) in *. set (e1 := eps1 A) in *. set (th := thE A) in *. clearbody lc e1 th.
  assert (Q0 : 0 <= th * (1 + th) * (1 + 2 * th) <= / 2 ^ 24 * 2 * 2).
  { split; [apply Rmult_le_pos; [apply Rmult_le_pos|]|apply Rmult_le_compat; [apply Rmult_le_pos| |apply Rmult_le_compat|]];
      lra. }
  assert (0 <= th * (1 + th) * (1 + 2 * th) * lc <= / 2 ^ 24 * 2 * 2 * 16)
    by (split; [apply Rmult_le_pos|apply Rmult_le_compat]; lra).
  assert (Q1 : 0 <= eps_log * lc <= / 2 ^ 21 * 16) by (split; [apply Rmult_le_pos|apply Rmult_le_compat]; lra).
  assert (0 <= eps_log * lc * (1 + th) <= / 2 ^ 21 * 16 * 2) by (split; [apply Rmult_le_pos|apply Rmult_le_compat]; lra).
  assert (0 <= th * lc <= / 2 ^ 24 * 16) by (split; [apply Rmult_le_pos|apply Rmult_le_compat]; lra).
  assert (0 <= 2 * th * e1 <= 2 * / 2 ^ 24 * 1) by (split; [apply Rmult_le_pos|apply Rmult_le_compat]; lra).
  lra.
Qed.
Lemma formats_are_ordinary : ordinary_row K s A a ap J blocks eps_log.
Proof.
  destruct sizes_of_row as ((N0 & N1) & (R0 & R1) & S1 & S2). destruct eps1_small as [E0 E1].
  assert (L := log_small). assert (Xr := X_small r (le_n _)). assert (ML := lost_small). assert (W := weights_small).
  assert (P1 := power_small _ S1). assert (P2 := power_small _ S2). assert (Xs := exp_small (352 / 10000) ltac:(lra)).
  assert (Ga := gain_small r (le_n _)). assert (Re := rest_small).
  assert (U0 := s_u A OK). assert (U1 := s_upd A OK). assert (U2 := s_up A OK). assert (Th := s_thE A OK).
  assert (L0 := s_lame A OK). assert (L00 := s_lam A OK). assert (D0 := s_lampd A OK). assert (D1 := s_lamp A OK).
  destruct Formats as [F1 F2 F3 F4 F5 F6 F7 F8 F9 F10 F11 F12 F13].
  constructor; try lra.
  - rewrite F6, Rplus_0_r. assert (thE A * log_count K A J <= / 2 ^ 24 * 16) by (apply Rmult_le_compat; lra). lra.
  - exact Top.
  - unfold P. set (y := 352 / 10000 + 4 / 1000 + / 2 ^ 8).
    assert (Wx : w_l A <= exp (/ 2 ^ 8)) by (assert (Q := exp_ge_1 (/ 2 ^ 8)); lra).
    assert (Pk : w_l A * (1 + u A) ^ kk K J r * gain A r <= exp (/ 2 ^ 8) * exp (352 / 10000) * exp (4 / 1000)).
    { fold (kk K J r) in P2. apply Rmult_le_compat; [apply Rmult_le_pos| |apply Rmult_le_compat|]; lra. }
    rewrite <- !exp_plus in Pk. replace (/ 2 ^ 8 + 352 / 10000 + 4 / 1000) with y in Pk by (unfold y; ring).
    assert (E16 : exp (/ 16) = exp y * exp (/ 16 - y)) by (rewrite <- exp_plus; f_equal; ring).
    assert (Y : 0 <= y <= 45 / 1000) by (unfold y; lra).
    assert (Q1 := exp_ge1 y ltac:(lra)). assert (Q2 := exp_ge_1 (/ 16 - y)). rewrite E16.
    assert (exp y * (1 + (/ 16 - y)) <= exp y * exp (/ 16 - y)) by (apply Rmult_le_compat_l; lra).
    assert (1 * (/ 16 - y) <= exp y * (/ 16 - y)) by (apply Rmult_le_compat_r; lra). lra.
  - assert (B := power_below_one (u A) (kk K J r) ltac:(lra)). unfold kk in *. assert (Q := exp_ge_1 (/ 16)).
    assert (Q1 : most_lost A n r (merge_ops K 1 J) / (1 - eps A) <= 2 * / 1000).
    { apply Rmult_le_reg_r with (1 - eps A); [lra|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra. lra. }
    assert (I := pos_INR (n - 1 + r)).
    assert (B1 : 1 - 352 / 10000 <= (1 - u A) ^ (n - 1 + r)).
    { assert (INR (n - 1 + r) * u A <= INR (n - 1 + r) * / 2 ^ 24) by (apply Rmult_le_compat_l; lra). lra. }
    assert ((1 - / 2 ^ 8) * (1 - 352 / 10000) <= (1 - upd A) * (1 - u A) ^ (n - 1 + r)) by (apply Rmult_le_compat; lra).
    assert ((1 + / 16) * ((1 - / 2 ^ 8) * (1 - 352 / 10000)) <= exp (/ 16) * ((1 - upd A) * (1 - u A) ^ (n - 1 + r)))
      by (apply Rmult_le_compat; lra). lra.
  - destruct Covered as (G & Of & La & Ad & Ne).
    assert (Ex : exp (352 / 10000) <= 1037 / 1000).
    { assert (Q := exp_ge_1 (- (352 / 10000))). rewrite exp_Ropp in Q. assert (Ep := exp_pos (352 / 10000)).
      assert (Q1 := Rmult_le_compat_l _ _ _ (Rlt_le _ _ Ep) Q). rewrite Rinv_r in Q1 by lra. lra. }
    assert (Ud : UD_of_sum K s A e more J r <= 42 / 1000).
    { assert (Sd : sum_depth K A J = n) by (unfold sum_depth; rewrite Ad; auto).
      assert (Se : sum_error K s A e more J r <= 37 / 1000).
      { unfold sum_error, refined, weight_roundings. rewrite Ne, Sd. eapply Rle_trans; [apply Rmin_l|]. unfold pw. lra. }
      unfold UD_of_sum, join. set (se := sum_error K s A e more J r) in *.
      assert (se * upd A <= 37 / 1000 * upd A) by (apply Rmult_le_compat_r; lra).
      assert (37 / 1000 * upd A <= 37 / 1000 * / 2 ^ 8) by (apply Rmult_le_compat_l; lra). lra. }
    assert (Lw : 0 <= lam_weight K A e r <= 32772 * lame A).
    { unfold lam_weight. rewrite F6. simpl c_m. replace ((1 + thE A) * 0 + 0 / 2) with 0 by lra.
      rewrite exp_0, Rmult_1_r.
      split; [apply Rmult_le_pos; lra|]. rewrite Rmult_comm. apply Rmult_le_compat_r; lra. }
    assert (Lt : 0 <= lam_twice K A e r <= 2 ^ 36 * lame A).
    { unfold lam_twice. set (y := lamp A + lam_weight K A e r + lame A). assert (Y : 0 <= y <= 2) by (unfold y; lra).
      assert (Q1 : 0 <= INR r * (17 + 16 * INR r) <= 32770 * 524337)
        by (split; [apply Rmult_le_pos|apply Rmult_le_compat]; lra).
      assert (Q2 : 0 <= INR r * (17 + 16 * INR r) * y <= 32770 * 524337 * 2)
        by (split; [apply Rmult_le_pos|apply Rmult_le_compat]; lra).
      replace (INR r * (17 + 16 * INR r) * lame A * y) with (INR r * (17 + 16 * INR r) * y * lame A) by ring.
      split; [apply Rmult_le_pos|apply Rmult_le_compat_r]; lra. }
    assert (Lm : 0 <= lam_rounded A <= lampd A + lame A).
    { unfold lam_rounded. assert (0 <= Rmin (lampd A) (lam A)) by (apply Rmin_glb; lra).
      assert (Q := Rmin_r (lampd A) (lam A)). lra. }
    assert (Fa : 0 <= factor K s A e more J r <= 3).
    { unfold factor, factor_grown. simpl below. rewrite exp_0, Rmult_1_r, (proj2 (no_residual K s A a ap J)).
      rewrite F6. unfold pw.
      assert (D : (1 + u A) ^ underflow_depth K A J r <= exp (352 / 10000)).
      { apply power_small. unfold underflow_depth, sum_depth. rewrite Ad.
        assert (INR (Nat.min (n + 1) n + r) <= INR (n + 2 * r)) by (apply le_INR; lia). lra. }
      assert (D2 := pow_ge1 (u A) (underflow_depth K A J r) U0).
      assert (Q0 := pow_ge1 (lame A) r L0). assert (Q1 := power_le_exp (lame A) r ltac:(lra)).
      assert (Q2 : 0 <= INR r * lame A <= / 1000).
      { split; [apply Rmult_le_pos; lra|]. assert (INR r * lame A <= 32770 * lame A) by (apply Rmult_le_compat_r; lra).
        lra. }
      assert (Q3 := exp_small (INR r * lame A) ltac:(lra)). assert (Q4 := exp_small (2 * rest A more r) ltac:(lra)).
      replace (2 * (thE A * 0 + rest A more r) + 0) with (2 * rest A more r) by ring.
      set (x := exp (2 * rest A more r)) in *. set (p := (1 + u A) ^ underflow_depth K A J r) in *.
      set (q := (1 + lame A) ^ r) in *. clearbody x p q.
      replace (2 * (x * (1 + (p - 1)) * (1 + up A) * (1 + (q - 1)))) with (2 * (x * p * ((1 + up A) * q))) by ring.
      assert (0 <= x * p <= 104 / 100 * (1037 / 1000)) by (split; [apply Rmult_le_pos|apply Rmult_le_compat]; lra).
      assert (0 <= (1 + up A) * q <= (1 + / 2 ^ 8) * (1002 / 1000))
        by (split; [apply Rmult_le_pos|apply Rmult_le_compat]; lra).
      assert (0 <= x * p * ((1 + up A) * q) <= 104 / 100 * (1037 / 1000) * ((1 + / 2 ^ 8) * (1002 / 1000)))
        by (split; [apply Rmult_le_pos|apply Rmult_le_compat]; lra). lra. }
    assert (Ld : LD K s A e more J r <= / 200).
    { unfold LD, rescaling_operations. simpl merge_operations. fold (INR n).
      set (w := lam_weight K A e r + lam_twice K A e r) in *.
      assert (Wn : 0 <= INR n * w <= 2 ^ 19 * (2 ^ 37 * lame A))
        by (unfold w in *; split; [apply Rmult_le_pos|apply Rmult_le_compat]; lra).
      assert (Q1 : 0 <= (INR n + (2 * INR r + 3 * INR n)) * lam A <= 2 ^ 22 * lame A)
        by (split; [apply Rmult_le_pos|apply Rmult_le_compat]; lra).
      assert (Q2 : 0 <= INR n * lam_rounded A <= INR n * lampd A + 2 ^ 19 * lame A).
      { split; [apply Rmult_le_pos; lra|]. apply Rle_trans with (INR n * (lampd A + lame A)); [apply Rmult_le_compat_l; lra|].
        rewrite Rmult_plus_distr_l. apply Rplus_le_compat_l, Rmult_le_compat_r; lra. }
      set (y := INR n * w + (INR n + (2 * INR r + 3 * INR n)) * lam A + INR n * lam_rounded A).
      assert (Y : 0 <= y <= 5 / 10000) by (unfold y; lra).
      assert (factor K s A e more J r * y <= 3 * (5 / 10000)) by (apply Rmult_le_compat; lra). lra. }
    lra.
Qed.
End OrdinaryRows.

(** What is claimed where weights are rounded, by x and with a loss of l, before they meet values and their sum. *)
Definition storing (A : arith) (x l : R) : arith := {| u := u A; lam := lam A; thE := thE A; xl := xl A; xr := xr A;
  T := T A; gap := gap A; off := off A; last := last A; eps := eps A; lame := lame A; up := x; lamp := l; upd := x;
  lampd := l; nearest := nearest A; additions := additions A |}.

(** What is claimed is written out; a number that is a power of two stays one. *)
Ltac fields := cbv [kernels.A u lam thE xl xr T gap off last eps lame up lamp upd lampd].
(** In binary32 and binary64 such rows are ordinary, with an exponential to one unit in the last place and a logarithm to
    two, and weights that are stored in bfloat16, or of up to 2^14 keys in binary16; and in binary32 rows of any scores
    below 2^22. *)
Section Binary.
Import implemented_rows Flocq.Core.Core.
Variable K : Type.
Variables s a ap : K -> R.
Variable J : list K.
Variable blocks : nat.
Hypothesis NJ : J <> [].
Hypothesis Length : (length J <= 2 ^ 19)%nat.
Hypothesis Blocks : (blocks <= 2 ^ 15)%nat.
Local Notation e := (natural_whole a ap).
Hypothesis Top : forall i, In i J -> M K s e J = s i + a i -> a i <= / 16 + Mabs K s e J / 4.
Variables x l : R.
Hypothesis Stored : 0 <= x <= / 2 ^ 8 /\ 0 <= l <= 1 /\ INR (length J) * l <= / 2 ^ 11.

Lemma stored_weights_are_ordinary A eps_log : sane A -> in_any_order A -> xl A = 0 -> xr A = 0 -> T A = 0 ->
  u A = thE A -> u A <= / 2 ^ 24 -> eps A = 2 * u A -> eps_log = 4 * u A -> lam A <= lame A -> lame A <= / 2 ^ 100 ->
  u A * Mabs K s e J <= / 4 -> ordinary_row K s (storing A x l) a ap J blocks eps_log.
Proof.
  intros OK Cov Xl Xr T0 Th U Ep El La Lm Sc. destruct OK. destruct Stored as (Sx & Sl & Sn).
  apply formats_are_ordinary; try assumption.
  - constructor; simpl; lra.
  - simpl. lra.
  - constructor; simpl; lra.
  - simpl. rewrite <- Th. auto.
Qed.

Lemma ordinary_32 : Mabs K s e J <= 2 ^ 22 ->
  ordinary_row K s (storing (kernels.A (-149) 24 eps32 lame32) x l) a ap J blocks (/ 2 ^ 22).
Proof.
  intros Sc. destruct powers as [Pu Pe]. destruct least_number as (L0 & L1 & L2).
  assert (Lm : lame32 <= / 2 ^ 100).
  { unfold lame32. apply Rinv_le_contravar; [apply Rfunctions.pow_lt; lra|apply Rle_pow; [lra|lia]]. }
  assert (OK := @kernels.A_sane (-149) 24 eq_refl eps32 lame32 ltac:(unfold eps32; lra) ltac:(lra)).
  apply (stored_weights_are_ordinary _ _ OK); [repeat split| | | | | | | | | |]; fields; try rewrite Pu; unfold eps32; lra.
Qed.

Lemma ordinary_64 : Mabs K s e J <= 2 ^ 51 ->
  ordinary_row K s (storing (kernels.A (-1074) 53 (/ 2 ^ 52) (kernels.eta (-1074) * 2)) x l) a ap J blocks (/ 2 ^ 51).
Proof.
  intros Sc.
  assert (Pu : kernels.uf 53 = / 2 ^ 53) by (unfold kernels.uf; simpl Raux.bpow; field_simplify; lra).
  assert (Pe : 0 < kernels.eta (-1074) <= / 2 ^ 110).
  { unfold kernels.eta. assert (Q := Raux.bpow_le Zaux.radix2 (-1074) (-110) ltac:(lia)).
    assert (Q0 := Raux.bpow_gt_0 Zaux.radix2 (-1074)). set (least := Raux.bpow Zaux.radix2 (-1074)) in *.
    clearbody least. simpl Raux.bpow in Q. lra. }
  set (least := kernels.eta (-1074)) in *.
  assert (OK := @kernels.A_sane (-1074) 53 eq_refl (/ 2 ^ 52) (least * 2) ltac:(lra) ltac:(lra)).
  apply (stored_weights_are_ordinary _ _ OK); [repeat split| | | | | | | | | |]; fields; fold least; try rewrite Pu; lra.
Qed.
End Binary.
