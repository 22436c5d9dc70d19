(** Whole rows, whose scores are formed in any of the ways of [score_programs]: from q, k, v and a bias to the output.
    *)
From Coq Require Import Reals List Lra Lia Psatz Permutation ZArith.
From Flocq Require Import Core.
From Attest.Rounding Require Import basics scores score_variants merge bound kernels base_two score_programs.
From Attest.Rounding Require row.
Import ListNotations.
Open Scope R_scope.

Section Rows.
Variables emin prec : Z.
Context {Hprec : Prec_gt_0 prec}.
Hypothesis two_digits : uf prec <= / 4.
Hypothesis small_numbers : eta emin <= / 4.
Local Notation r := (rnd emin prec).
Local Notation u := (uf prec).
Local Notation lam := (eta emin).
Variable K : Type.
Variable q : nat -> R.
Variable k : K -> nat -> R.
Variables b vv : K -> R.
Variable cs : list nat.
Variable order : K -> tree nat.
Hypothesis Horder : forall j, Permutation (leaves nat (order j)) cs.
Variables tau d th_tau inv beta dl th_l2e : R.
Hypothesis Htau : 0 < tau.
Hypothesis Hd : Rabs d <= th_tau.
Hypothesis Hinv : Rabs (inv * tau - 1) <= beta.
Hypothesis Hdl : Rabs dl <= th_l2e.
Hypothesis HL : 1 <= L dl.
Variables rx rt rs rb rq rd : R -> R.
Variables u_x lam_x u_t lam_t u_st lam_st u_bc lam_bc u_q lam_q lam_in : R.
Hypothesis Hx : rounds u_x lam_x rx.
Hypothesis Ht : rounds u_t lam_t rt.
Hypothesis Hs : rounds u_st lam_st rs.
Hypothesis Hb : rounds u_bc lam_bc rb.
Hypothesis Hq : rounds u_q lam_q rq.
Hypothesis Hrd : forall y, reads lam_in y (rd y).
Hypothesis units_pos : 0 <= u /\ 0 <= u_x /\ 0 <= u_t /\ 0 <= u_st /\ 0 <= u_bc /\ 0 <= u_q.
Hypothesis losses_pos : 0 <= lam /\ 0 <= lam_x /\ 0 <= lam_t /\ 0 <= lam_st /\ 0 <= lam_bc /\ 0 <= lam_q /\ 0 <= lam_in.
(** What is stored is a number of the sums' format. *)
Hypothesis rx_inF : forall y, inF emin prec y -> inF emin prec (rx y).
Hypothesis rt_inF : forall y, inF emin prec y -> inF emin prec (rt y).
Hypothesis rs_inF : forall y, inF emin prec y -> inF emin prec (rs y).
Hypothesis rb_inF : forall j, inF emin prec (rb (b j)).
Local Notation exact_score := (exact_score K q k b cs tau).
Local Notation g := (g K q k b cs tau).
Local Notation allowed := (allowed K q k b cs tau th_tau beta u lam u_x lam_x u_t lam_t u_st lam_st u_bc lam_bc u_q
  lam_q
  lam_in).
Local Notation score f := (computed K q k b cs order tau d inv r r rx rt rs rb rq rd f).
Local Notation score2 f := (computed2 K q k b cs order tau d inv dl r rx rt rs rb rq rd f).

Lemma loop_inF f l : forall acc, inF emin prec acc -> inF emin prec (loop r f acc l).
Proof. induction l as [|c rest IH]; intros acc H; simpl; auto. apply IH, rnd_inF; auto. Qed.
Lemma score_inF f j : inF emin prec (score f j).
Proof.
  destruct f; apply rs_inF; try (apply rnd_inF; auto).
  - apply rt_inF, rnd_inF; auto.
  - apply loop_inF. apply rb_inF.
Qed.
Lemma score2_inF f j : inF emin prec (score2 f j).
Proof.
  destruct f; apply rs_inF; try (apply rnd_inF; auto).
  - apply rt_inF, rnd_inF; auto.
  - apply loop_inF, rnd_inF; auto.
Qed.

Variable fexp : R -> R.
Variables epsE lamE : R.
Hypothesis HepsE : 0 <= epsE < 1.
Hypothesis HlamE : 0 <= lamE.
Hypothesis exp_good : forall y, y <= 0 -> 0 <= fexp y /\ rounded epsE lamE (exp y) (fexp y).
Hypothesis exp_inF : forall y, inF emin prec (fexp y).

(** Two passes; gbar any number, the weighted mean of g say. *)
Theorem row_of_every_form f gbar tl to_ Mp bigl bigo :
  let s := exact_score f in let a := fun j => allowed f j + th_tau * Rabs (g f j - gbar) in
  let J := leaves K to_ in let ar := A emin prec epsE lamE in
  Permutation (leaves K tl) J -> (forall j, In j J -> s j + a j <= Mp) ->
  exists cl co, (cl + 1 <= 2 * length J /\ co + 1 <= 2 * length J)%nat /\
  (0 < low K s ar a J Mp (depth K tl) cl 0 bigl ->
   Rabs (finish emin prec (two_pass emin prec K (score f) vv fexp tl to_) - exact K s vv J) <=
     tolerance K s vv ar a J Mp (depth K tl) cl (depth K to_) co 0 bigl bigo u lam).
Proof.
  intros s a J ar Hp HM.
  apply (two_pass_tolerance emin prec K (score f) vv fexp epsE lamE HepsE HlamE exp_good exp_inF (score_inF f) s a Mp
    (d * gbar) tl to_ bigl bigo Hp); auto.
  intros j _. apply (scores_up_to_a_shift K q k b cs order Horder tau d th_tau inv beta Htau Hd Hinv r r rx rt rs rb
    rq rd u
    lam u_x lam_x u_t lam_t u_st lam_st u_bc lam_bc u_q lam_q lam_in); auto; apply rnd_rounds; auto.
Qed.

Variable fexp2 : R -> R.
Hypothesis exp2_good : forall y, y <= 1 -> 0 <= fexp2 y /\ rounded epsE lamE (exp (nats y)) (fexp2 y).
Hypothesis exp2_inF : forall y, inF emin prec (fexp2 y).

Lemma rnd_itself y : inF emin prec y -> r (y * 1) = y.
Proof. intros. rewrite Rmult_1_r. apply round_generic; [apply valid_rnd_N|auto]. Qed.

(** Exponents of 2 and a running maximum over blocks: a kernel whose scores have log2(e) in them. *)
Variable ref : K -> R.
Hypothesis ref_inF : forall j, inF emin prec (ref j).
Theorem base_two_row f gbar sbar Mp bl bs h bigl bigo :
  let s := exact_score f in
  let a := fun j => score_programs.allowed K q k b cs tau th_tau beta u lam u_x lam_x u_t lam_t u_st lam_st
    (u_bc2 u u_bc f) (lam_bc2 u lam lam_bc f) u_q lam_q lam_in f j * (1 + th_l2e) +
    th_tau * (1 + th_l2e) * Rabs (g f j - gbar) + th_l2e * Rabs (s j - sbar) in
  let J := keys_of K (bl :: bs) in let ar := A2 emin prec epsE lamE 0 in
  Forall (fun b => Permutation (leaves K (fst b)) (leaves K (snd b))) (bl :: bs) ->
  Forall (fun b => depth K (fst b) <= h /\ depth K (snd b) <= h)%nat (bl :: bs) ->
  (forall j, In j (leaves K (fst bl)) -> ref j = tmax K (score2 f) (fst bl)) ->
  meets K (score2 f) ref (tmax K (score2 f) (fst bl)) bs ->
  (forall j, In j J -> s j + (a j + 0) <= Mp) ->
  exists kl cl ko co, (kl <= h + 2 * length bs /\ ko <= h + 2 * length bs /\
    cl + 1 <= 2 * length J + length bs /\ co + 1 <= 2 * length J + length bs)%nat /\
  (0 < low K s ar (fun j => a j + 0) J Mp kl cl (length bs) bigl ->
   Rabs (finish emin prec (online2 emin prec K (score2 f) vv 1 fexp2 bl bs) - exact K s vv J) <=
     tolerance K s vv ar (fun j => a j + 0) J Mp kl cl ko co (length bs) bigl bigo u lam).
Proof.
  intros s a J ar F D R1 R2 HM.
  apply (folded_online_tolerance emin prec K (score2 f) vv 1 Rlt_0_1 fexp2 epsE lamE HepsE HlamE exp2_good exp2_inF
    (score2_inF f) ref (fun _ => 0) 0) with (Cs := d * (1 + dl) * gbar + dl * sbar); auto; try lra.
  - intros j. unfold residual. rewrite rnd_itself, Rmult_1_r, Rminus_eq_0 by auto. unfold nats.
    rewrite Rmult_0_l, Rabs_R0. lra.
  - intros _. lra.
  - intros j. rewrite rnd_itself, Rmult_1_r, Rminus_eq_0, Rabs_R0 by auto. lra.
  - intros j _. rewrite Rmult_1_r. apply scores_in_base_two with (rs := rs) (lam_q := lam_q); auto; apply rnd_rounds;
    auto.
Qed.

(** The scale and log2(e) folded into the exponent: q.k is what is kept of the scores, and rounding m times that
    constant by itself costs c_m u_e Q_j. *)
Variable c : R.
Hypothesis c_is_the_scale : nats c = tau * (1 + d).
Hypothesis c_pos : 0 < c.
Variable rho : R.
Hypothesis Hrho : forall j, u * Rabs (nats (ref j * c)) + lam <= rho.
Hypothesis D2 : forall j, u * Rabs (ref j * c) + lam <= / 4.
Theorem folded_row tbar Mp bl bs h bigl bigo :
  let x := raw K q k order r rx rd in let s := t K q k cs tau in
  let a := fun j => (1 + th_tau) * (tau * e1_stored K q k cs u lam u_x lam_x lam_in j) + th_tau * Rabs (s j - tbar) +
    (u * Rabs (nats (ref j * c)) + lam) in
  let J := keys_of K (bl :: bs) in let ar := A2 emin prec epsE lamE rho in
  Forall (fun b => Permutation (leaves K (fst b)) (leaves K (snd b))) (bl :: bs) ->
  Forall (fun b => depth K (fst b) <= h /\ depth K (snd b) <= h)%nat (bl :: bs) ->
  (forall j, In j (leaves K (fst bl)) -> ref j = tmax K x (fst bl)) -> meets K x ref (tmax K x (fst bl)) bs ->
  (forall j, In j J -> s j + a j <= Mp) ->
  exists kl cl ko co, (kl <= h + 2 * length bs /\ ko <= h + 2 * length bs /\
    cl + 1 <= 2 * length J + length bs /\ co + 1 <= 2 * length J + length bs)%nat /\
  (0 < low K s ar a J Mp kl cl (length bs) bigl ->
   Rabs (finish emin prec (online2 emin prec K x vv c fexp2 bl bs) - exact K s vv J) <=
     tolerance K s vv ar a J Mp kl cl ko co (length bs) bigl bigo u lam).
Proof.
  intros x s a J ar F D R1 R2 HM. assert (Ep := eta_pos emin). assert (Up := uf_pos prec).
  assert (X : forall j, inF emin prec (x j)).
  { intros j. unfold x, raw. apply rx_inF. destruct (order j); apply rnd_inF; auto. }
  assert (Rh : 0 <= rho).
  { assert (N := leaves_ne K (fst bl)). destruct (leaves K (fst bl)) as [|j ?]; [congruence|]. assert (Q := Hrho j).
    assert (0 <= u * Rabs (nats (ref j * c))) by (apply Rmult_le_pos; [lra|apply Rabs_pos]). lra. }
  apply (folded_online_tolerance emin prec K x vv c c_pos fexp2 epsE lamE HepsE HlamE exp2_good exp2_inF X ref
    (fun j => u * Rabs (nats (ref j * c)) + lam) rho) with
    (a := fun j => (1 + th_tau) * (tau * e1_stored K q k cs u lam u_x lam_x lam_in j) + th_tau * Rabs (s j - tbar))
    (Cs := d * tbar); auto.
  - intros j. apply residual_size; [lra|]. apply rnd_near; auto.
  - intros j. assert (N := rnd_near emin prec (ref j * c)). unfold near in N. rewrite Rabs_minus_sym in N.
    assert (Q := D2 j). lra.
  - intros j _. apply folded_scores with (order := order) (u_t := u_t) (lam_t := lam_t) (u_st := u_st) (lam_st :=
    lam_st)
      (u_bc := u_bc) (lam_bc := lam_bc) (u_q := u_q) (lam_q := lam_q); auto. apply rnd_rounds; auto.
Qed.
End Rows.

(** ** That all of this can be asked: sums in binary32; products, scaled products, scores and q stored in bf16, the mask
    converted to binary16, subnormal operands read as 0. *)
Lemma narrower emin prec emin2 prec2 y : (0 < prec)%Z -> (0 < prec2)%Z -> (emin <= emin2)%Z -> (prec2 <= prec)%Z ->
  inF emin2 prec2 y -> inF emin prec y.
Proof.
  intros P1 P2 H1 H2. apply generic_inclusion_mag. intros _. unfold fexpn, FLT_exp. lia.
Qed.
Definition f32 := rnd (-149) 24.
Definition bf16 := rnd (-133) 8.
Definition f16 := rnd (-24) 11.
Definition reads_normal := flushed (least_normal (-149) 24).

Lemma mixed_formats :
  rounds (uf 24) (eta (-149)) f32 /\ rounds (uf 8) (eta (-133)) bf16 /\ rounds (uf 11) (eta (-24)) f16 /\
  (forall y, reads (least_normal (-149) 24) y (reads_normal y)) /\ (forall y, inF (-149) 24 (bf16 y)) /\ (forall y,
    inF (-149) 24 (f16 y)) /\
  uf 24 <= / 4 /\ eta (-149) <= / 4.
Proof.
  repeat split; try (apply rnd_rounds; reflexivity).
  - apply flushed_reads. left. apply bpow_gt_0.
  - unfold reads_normal, flushed. destruct (Rlt_dec _ _); [rewrite Rabs_R0; apply Rabs_pos|lra].
  - intros y. apply (narrower _ _ (-133) 8); try lia. apply rnd_inF. reflexivity.
  - intros y. apply (narrower _ _ (-24) 11); try lia. apply rnd_inF. reflexivity.
  - unfold uf. assert (Q : bpow radix2 (- (24) + 1) <= bpow radix2 (-1)) by (apply bpow_le; lia). simpl in Q. simpl.
    lra.
  - unfold eta. assert (Q : bpow radix2 (-149) <= bpow radix2 (-1)) by (apply bpow_le; lia). simpl (bpow radix2 (-1))
    in Q.
    lra.
Qed.

(** log2(e) itself is well above 1. *)
Lemma log2e_above_1 dl : Rabs dl <= / 8 -> 1 <= L dl.
Proof.
  intros H. apply Rabs_bounds in H. assert (P := ln2_pos). assert (Q := ln2_below). unfold L.
  apply Rmult_le_reg_r with (ln 2); auto. unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra. lra.
Qed.

Lemma exp2_binary32 y :
  (0 <= f32 (exp (nats y)) /\ rounded (uf 24) (eta (-149)) (exp (nats y)) (f32 (exp (nats y)))) /\
  inF (-149) 24 (f32 (exp (nats y))).
Proof. exact (proj2 (row.exponential_binary32 (nats y))). Qed.

Section Mixed.
Variable K : Type.
Local Notation lam_in := (least_normal (-149) 24).
Local Notation pos x := (0 <= x).
Let f32_ok : rounds (uf 24) (eta (-149)) f32 := proj1 mixed_formats.
Let bf16_ok : rounds (uf 8) (eta (-133)) bf16 := proj1 (proj2 mixed_formats).
Let f16_ok : rounds (uf 11) (eta (-24)) f16 := proj1 (proj2 (proj2 mixed_formats)).
Let reads_ok := proj1 (proj2 (proj2 (proj2 mixed_formats))).
Let bf16_kept y (_ : inF (-149) 24 y) := proj1 (proj2 (proj2 (proj2 (proj2 mixed_formats)))) y.
Let f16_kept (b : K -> R) j := proj1 (proj2 (proj2 (proj2 (proj2 (proj2 mixed_formats))))) (b j).
Let two_digits := proj1 (proj2 (proj2 (proj2 (proj2 (proj2 (proj2 mixed_formats)))))).
Let small_numbers := proj2 (proj2 (proj2 (proj2 (proj2 (proj2 (proj2 mixed_formats)))))).
Lemma mixed_units : pos (uf 24) /\ pos (uf 8) /\ pos (uf 8) /\ pos (uf 8) /\ pos (uf 11) /\ pos (uf 8).
Proof. repeat split; left; apply uf_pos. Qed.
Lemma mixed_losses : pos (eta (-149)) /\ pos (eta (-133)) /\ pos (eta (-133)) /\ pos (eta (-133)) /\ pos (eta (-24)) /\
  pos (eta (-133)) /\ pos lam_in.
Proof. repeat split; left; try apply eta_pos. apply bpow_gt_0. Qed.
Lemma exact_scale : 0 < / 8 /\ Rabs 0 <= 0 /\ Rabs (8 * / 8 - 1) <= 0.
Proof. rewrite Rabs_R0. replace (8 * / 8 - 1) with 0 by lra. rewrite Rabs_R0. lra. Qed.
Lemma unit_below_1 : 0 <= uf 24 < 1.
Proof. split; [left; apply uf_pos|apply uf_lt1; reflexivity]. Qed.

(** Scale 1/8. *)
Definition row_of_every_form_mixed q k b vv cs order Horder :=
  @row_of_every_form (-149) 24 eq_refl K q k b vv cs order Horder (/ 8) 0 0 8 0 (proj1 exact_scale)
    (proj1 (proj2 exact_scale)) (proj2 (proj2 exact_scale)) bf16 bf16 bf16 f16 bf16 reads_normal (uf 8) (eta (-133))
      (uf 8)
    (eta (-133)) (uf 8) (eta (-133)) (uf 11) (eta (-24)) (uf 8) (eta (-133)) lam_in bf16_ok bf16_ok bf16_ok f16_ok
      bf16_ok
    reads_ok mixed_units mixed_losses bf16_kept bf16_kept (f16_kept b) (fun y => f32 (exp y)) (uf 24) (eta (-149))
      unit_below_1
    (Rlt_le _ _ (eta_pos (-149))) (fun y _ => proj1 (proj2 (row.exponential_binary32 y)))
    (fun y => proj2 (proj2 (row.exponential_binary32 y))).
Definition base_two_row_mixed q k b vv cs order Horder :=
  @base_two_row (-149) 24 eq_refl two_digits small_numbers K q k b vv cs order Horder (/ 8) 0 0 8 0 0 0 (proj1
    exact_scale)
    (proj1 (proj2 exact_scale)) (proj2 (proj2 exact_scale)) (proj1 (proj2 exact_scale))
    (log2e_above_1 0 ltac:(rewrite Rabs_R0; lra)) bf16 bf16 bf16 f16 bf16 reads_normal (uf 8) (eta (-133)) (uf 8)
    (eta (-133)) (uf 8) (eta (-133)) (uf 11) (eta (-24)) (uf 8) (eta (-133)) lam_in bf16_ok bf16_ok bf16_ok f16_ok
      bf16_ok
    reads_ok mixed_units mixed_losses bf16_kept bf16_kept (uf 24) (eta (-149)) unit_below_1 (Rlt_le _ _ (eta_pos
      (-149)))
    (fun y => f32 (exp (nats y))) (fun y _ => proj1 (exp2_binary32 y)) (fun y => proj2 (exp2_binary32 y)).
Lemma folded_scale : nats (/ 8 / ln 2) = / 8 * (1 + 0) /\ 0 < / 8 / ln 2.
Proof.
  assert (P := ln2_pos). split; [unfold nats; field; lra|]. apply Rmult_lt_0_compat; [lra|]. apply Rinv_0_lt_compat;
    auto.
Qed.
Definition folded_row_mixed q k vv cs order Horder ref :=
  @folded_row (-149) 24 eq_refl two_digits small_numbers K q k vv cs order Horder (/ 8) 0 0 (proj1 exact_scale)
    (proj1 (proj2 exact_scale)) bf16 reads_normal (uf 8) (eta (-133)) (uf 8) (eta (-133)) (uf 8) (eta (-133)) (uf 11)
    (eta (-24)) (uf 8) (eta (-133)) lam_in bf16_ok reads_ok mixed_units mixed_losses bf16_kept (uf 24) (eta (-149))
    unit_below_1 (Rlt_le _ _ (eta_pos (-149))) (fun y => f32 (exp (nats y))) (fun y _ => proj1 (exp2_binary32 y))
    (fun y => proj2 (exp2_binary32 y)) ref (/ 8 / ln 2) (proj1 folded_scale) (proj2 folded_scale).

(** A kernel that flushes what is subnormal, results and operands alike: its scores, of every form. *)
Definition f32_flushed := rnd_flushed (-149) 24.
Definition bf16_flushed := rnd_flushed (-133) 8.
Lemma flushed_losses : pos lam_in /\ pos (least_normal (-133) 8) /\ pos (least_normal (-133) 8) /\
  pos (least_normal (-133) 8) /\ pos (least_normal (-133) 8) /\ pos (least_normal (-133) 8) /\ pos lam_in.
Proof. repeat split; left; apply bpow_gt_0. Qed.
Lemma flushed_units : pos (uf 24) /\ pos (uf 8) /\ pos (uf 8) /\ pos (uf 8) /\ pos (uf 8) /\ pos (uf 8).
Proof. repeat split; left; apply uf_pos. Qed.
Definition flushed_scores q k (b : K -> R) cs order Horder :=
  let low16 := least_normal (-133) 8 in
  let ok32 : rounds (uf 24) lam_in f32_flushed := @rnd_flushed_rounds (-149) 24 eq_refl in
  let ok16 : rounds (uf 8) low16 bf16_flushed := @rnd_flushed_rounds (-133) 8 eq_refl in
  scores_of_every_form K q k b cs order Horder (/ 8) 0 0 8 0 (proj1 exact_scale) (proj1 (proj2 exact_scale))
    (proj2 (proj2 exact_scale)) f32_flushed f32_flushed bf16_flushed bf16_flushed bf16_flushed bf16_flushed bf16_flushed
    reads_normal (uf 24) lam_in (uf 8) low16 (uf 8) low16 (uf 8) low16 (uf 8) low16 (uf 8) low16 lam_in ok32 ok32 ok16
    ok16 ok16 ok16 ok16 reads_ok flushed_units flushed_losses.
End Mixed.
