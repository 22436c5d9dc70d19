(** Split decoding from one end to the other: each part by a running maximum over its blocks (two passes where it is one
    block), merged in any order, in rows of ordinary length; divided last, or not. *)
From Coq Require Import Reals List Lra Lia Psatz Permutation ZArith.
From Flocq Require Import Core.
From Attest.Rounding Require Import basics merge bound documented kernels least_sum any_reference ordinary_sizes split
    split_undivided.
Import ListNotations.
Open Scope R_scope.

Section Online.
Variables emin prec : Z.
Context {Hprec : Prec_gt_0 prec}.
Local Notation uf := (uf prec).
Local Notation eta := (eta emin).
Local Notation inF := (inF emin prec).
Variables fexp flog : R -> R.
Variables epsE lamE epsL lamL : R.
Hypothesis HepsE : 0 <= epsE < 1.
Hypothesis HlamE : 0 <= lamE.
Hypothesis exp_good : forall x, x <= 0 -> 0 <= fexp x /\ rounded epsE lamE (exp x) (fexp x).
Hypothesis exp_inF : forall x, inF (fexp x).
Hypothesis exp_nonneg : forall x, 0 <= fexp x.
Hypothesis exp0 : fexp 0 = 1.
Hypothesis HepsL : 0 <= epsL.
Hypothesis log_good : forall x, 0 < x -> near epsL lamL (ln x) (flog x).
Hypothesis log_inF : forall x, inF (flog x).
Variable K : Type.
Variables sh vv : K -> R.
Hypothesis sh_inF : forall j, inF (sh j).
Variable blocks : nat -> (tree K * tree K) * list (tree K * tree K).
Variable part : K -> nat.

Definition split_keys c := keys_of K (fst (blocks c) :: snd (blocks c)).
Definition split_decoding (tl to_ : tree nat) :=
  merge_parts emin prec fexp flog (fun c => online emin prec K sh vv fexp (fst (blocks c)) (snd (blocks c))) tl to_.

Lemma some_depth (bs : list (tree K * tree K)) :
  exists h, Forall (fun b => depth K (fst b) <= h /\ depth K (snd b) <= h)%nat bs.
Proof.
  induction bs as [|b bs [h H]]; [exists O; constructor|].
  exists (Nat.max h (Nat.max (depth K (fst b)) (depth K (snd b)))). constructor; [lia|].
  eapply Forall_impl; [|apply H]. simpl. intros. lia.
Qed.

Lemma shorter (J0 : list K) R0 : ordinary emin prec epsE lamE K J0 (R0 + 2) -> ordinary emin prec epsE lamE K J0 R0.
Proof.
  intros (N & H1 & H2 & H3 & H4). assert (U0 := uf_pos prec). assert (E0 := e1_pos epsE HepsE).
  assert (Ir := le_INR R0 (R0 + 2) ltac:(lia)). assert (I0 := pos_INR R0). split; [auto|]. split; [|split; [|split]].
  - eapply Rle_trans; [|apply H1]. apply Rmult_le_compat_r; [lra|]. apply le_INR. unfold kk. lia.
  - eapply Rle_trans; [|apply H2]. apply Rmult_le_compat_r; lra.
  - eapply Rle_trans; [|apply H3]. apply Rmult_le_compat; auto; [apply Rmult_le_pos; lra|].
    apply Rmult_le_compat_l; lra.
  - eapply Rle_trans; [|apply H4]. apply Rmult_le_compat_l; [apply pos_INR|]. apply Rplus_le_compat_r.
    apply Rmult_le_compat_r; lra.
Qed.
Lemma log_length_pos (J0 : list K) : (1 <= length J0)%nat -> 0 <= ln (INR (length J0)).
Proof.
  intros N. apply (le_INR 1) in N. simpl (INR 1) in N. rewrite <- ln_1.
  destruct N as [N|N]; [left; apply ln_increasing; lra|rewrite <- N; lra].
Qed.
Lemma online_good tl to_ R0 : Permutation (leaves nat tl) (leaves nat to_) ->
  (forall c, In c (leaves nat to_) -> (length (snd (blocks c)) <= R0)%nat /\
    Forall (fun b => Permutation (leaves K (fst b)) (leaves K (snd b))) (fst (blocks c) :: snd (blocks c))) ->
  forall c, In c (leaves nat to_) -> exists kl cl ko co rc, good emin prec K sh vv epsE lamE
    (online emin prec K sh vv fexp (fst (blocks c)) (snd (blocks c))) (split_keys c) kl cl ko co rc /\ (rc <= R0)%nat.
Proof.
  intros Hp Hb c Ic. destruct (Hb c Ic) as [Hr F]. destruct (some_depth (fst (blocks c) :: snd (blocks c))) as [h D].
  destruct (good_online emin prec K sh vv fexp epsE lamE HepsE HlamE exp_good exp_inF sh_inF (fst (blocks c))
    (snd (blocks c)) h F D) as (kl & cl & ko & co & G & _).
  exists kl, cl, ko, co, (length (snd (blocks c))). auto.
Qed.

Section Row.
Variables tl to_ : tree nat.
Variable R0 : nat.               (* blocks of a part, but for the first *)
Variables s a : K -> R.
Variable Q : K -> R.              (* as above *)
Variables Cs top Qt : R.
Local Notation parts := (leaves nat to_).
Local Notation J := (flat_map split_keys parts).
Local Notation n := (length J).
Local Notation r := (R0 + 2)%nat.
Local Notation ops := (4 * n - 1)%nat.
Local Notation e1 := (epsE / (1 - epsE)).
Hypothesis Hp : Permutation (leaves nat tl) parts.
Hypothesis Hb : forall c, In c parts -> (length (snd (blocks c)) <= R0)%nat /\
  Forall (fun b => Permutation (leaves K (fst b)) (leaves K (snd b))) (fst (blocks c) :: snd (blocks c)).
Hypothesis Hk : forall c j, In c parts -> In j (split_keys c) -> part j = c.
Hypothesis Ha : forall j, In j J -> Rabs (sh j - (s j + Cs)) <= a j.
Hypothesis Htop : forall j, In j J -> s j + a j <= top.
Hypothesis HQ : forall i j, In i J -> In j J -> sh j <= sh i -> Rabs (sh i) <= Q j.
Hypothesis HQt : Rabs (top + Cs) <= Qt.
Hypothesis HO : ordinary emin prec epsE lamE K J r.

(** Of the arithmetic: underflow counts twice (P7). Of a part's log-sum-exp: its error is one of the part's scores. *)
Definition A2 := with_gap (A emin prec epsE lamE) (ln 2).
Definition log_n := ln (INR n) + 1.
Definition lse_err q := uf * (q + ((1 + epsL) * log_n + lamL)) + (epsL * log_n + lamL).
Definition with_lse j := a j + (lse_err (Q j) + 0).
Definition top_lse := top + log_n + lse_err Qt - ln 2.

Lemma row_ne : J <> [].
Proof. destruct HO as (N & _). intros E. rewrite E in N. simpl in N. lia. Qed.
Lemma log_n_pos : 0 <= log_n.
Proof. destruct HO as (N & _). apply log_length_pos in N. unfold log_n. lra. Qed.

Theorem split_decoding_tolerance :
  Rabs (split_decoding tl to_ - exact K s vv J) <= documented K s vv A2 with_lse J top_lse r ops uf eta.
Proof.
  assert (E0 := e1_pos epsE HepsE). assert (L0 := log_n_pos). assert (HO0 := shorter J R0 HO).
  apply (split_tolerance emin prec fexp epsE lamE HepsE HlamE exp_good exp_inF exp_nonneg flog epsL lamL HepsL
    log_good log_inF K sh vv (fun c => online emin prec K sh vv fexp (fst (blocks c)) (snd (blocks c))) split_keys
    part R0 0 (conj (Rle_refl 0) E0) ltac:(rewrite Ropp_0, exp_0, exp0; lra) tl to_ Hp) with (Cs := Cs); auto.
  - apply online_good with tl; auto.
  - intros c Ic. rewrite Ropp_0, exp_0. apply online_sum; auto.
  - apply ordinary_log; auto.
  - apply ln_2_pos.
  - apply (ordinary_room emin prec epsE lamE HepsE HlamE K J r HO 0); auto.
  - apply row_ne.
  - apply ordinary_low; auto; [assert (L2 := ln_2_pos); lra|unfold kk; lia].
Qed.

(** The division left out. *)
Hypothesis log_nonneg : forall x, 1 <= x -> 0 <= flog x.
Hypothesis HQi : exists i, In i J /\ Q i <= Qt.
Definition split_undivided :=
  merge_undivided emin prec fexp flog (fun c => online emin prec K sh vv fexp (fst (blocks c)) (snd (blocks c))) tl to_.
Definition lse_err_all := total_err prec epsL lamL Qt log_n.
Definition of_merge := merge_err prec epsE epsL lamL to_ Qt log_n (/ 2) 1.

Theorem split_undivided_tolerance :
  let M := top_lse + ((1 + uf) * log_n + lse_err_all) in let Sp := spread K s vv A2 with_lse J M r in
  let UL := UDd K s A2 with_lse J M r + LDd K s A2 with_lse J M r ops in
  of_merge <= / 32 ->
  Rabs (split_undivided - exact K s vv J) <=
    Sp + (Nd K s vv A2 with_lse J M r + LNd K s vv A2 with_lse J M r ops +
      (Rabs (exact K s vv J) + Sp) * ((1 + UL) * exp of_merge - 1)) /
        (low_d K s A2 with_lse J M r ops * exp (- of_merge)).
Proof.
  intros M Sp UL Hm.
  assert (E0 := e1_pos epsE HepsE). assert (L0 := log_n_pos). assert (HO0 := shorter J R0 HO).
  assert (U0 := uf_pos prec). assert (L2 := ln_2_pos). assert (L3 := ln_2_le).
  apply (undivided_tolerance emin prec fexp epsE lamE HepsE HlamE exp_good exp_inF exp_nonneg flog epsL lamL HepsL
    log_good log_inF K sh vv (fun c => online emin prec K sh vv fexp (fst (blocks c)) (snd (blocks c))) split_keys
    part R0 0 (conj (Rle_refl 0) E0) ltac:(rewrite Ropp_0, exp_0, exp0; lra) tl to_ Hp) with (Cs := Cs); auto.
  - apply online_good with tl; auto.
  - intros c Ic. rewrite Ropp_0, exp_0. apply online_sum; auto.
  - apply ordinary_log; auto.
  - apply (ordinary_room emin prec epsE lamE HepsE HlamE K J r HO 0); auto.
  - apply ordinary_part; auto.
  - apply ordinary_log; auto.
  - (* the parts' number *)
    assert (Pn : (length parts <= n)%nat).
    { clear - sh_inF. induction parts as [|c l IH]; simpl; [lia|]. rewrite app_length.
      assert (1 <= length (split_keys c))%nat; [|lia]. unfold split_keys, keys_of. simpl. rewrite app_length.
      assert (N := leaves_ne K (snd (fst (blocks c)))).
      destruct (leaves K (snd (fst (blocks c)))); [congruence|simpl; lia]. }
    assert (P1 : 0 < INR (length parts)).
    { assert (N := leaves_ne nat to_). destruct parts; [congruence|]. apply (lt_INR 0). simpl. lia. }
    assert (Lp := ln_le_minus1 _ P1). destruct HO as (N & H1 & H2 & _). apply le_INR in Pn.
    assert (Kn : INR n + 1 <= INR (kk K J r)).
    { replace (INR n + 1) with (INR (n + 1)) by (rewrite plus_INR; auto). apply le_INR. unfold kk. lia. }
    assert (Kr : 2 <= INR r) by (apply (le_INR 2); lia).
    assert (0 <= (INR r - 2) * e1) by (apply Rmult_le_pos; lra).
    assert (uf * (/ 2 + ln (INR (length parts)) + 1) <= INR (kk K J r) * uf)
      by (rewrite (Rmult_comm _ uf); apply Rmult_le_compat_l; lra). lra.
  - assert (D := ordinary_denominator emin prec epsE lamE HepsE HlamE K J r HO (ln 2) (conj L2 (Rle_refl _))
      ltac:(unfold kk; lia) s with_lse M).
    rewrite exp_ln by lra. change (merge_err prec epsE epsL lamL to_ Qt log_n (/ 2) 1) with of_merge.
    assert (X1 : exp of_merge <= 32 / 31).
    { apply Rle_trans with (exp (/ 32)); [apply exp_mono; auto|]. replace (32 / 31) with (/ (1 - / 32)) by field.
      apply exp_le_inv. lra. }
    assert (Em := exp_pos of_merge).
    apply Rle_trans with ((1 + 14 / 15) * exp of_merge); [apply Rmult_le_compat_r; [lra|]|lra].
    apply Rplus_le_compat_l. exact D.
  - apply ordinary_low; auto; [lra|unfold kk; lia].
  - apply row_ne.
Qed.
End Row.
End Online.

(** binary32, where what is asked of exp and log can be met: by their values rounded. *)
Definition split_decoding_tolerance_binary32 := @split_decoding_tolerance (-149) 24 eq_refl.
Definition split_undivided_tolerance_binary32 := @split_undivided_tolerance (-149) 24 eq_refl.
Theorem functions_binary32 : let f := fun x => kernels.rnd (-149) 24 (exp x) in
  let g := fun x => kernels.rnd (-149) 24 (ln x) in
  f 0 = 1 /\ (forall x, 0 <= f x) /\ (forall x, rounded (uf 24) (eta (-149)) (exp x) (f x)) /\
  (forall x, near (uf 24) (eta (-149)) (ln x) (g x)) /\ (forall x, inF (-149) 24 (f x) /\ inF (-149) 24 (g x)) /\
  (forall x, 1 <= x -> 0 <= g x).
Proof.
  intros f g. unfold f, g. repeat split; intros; try apply rnd_rounded; try apply rnd_near; try apply rnd_inF;
    try exact eq_refl.
  - rewrite exp_0. apply rnd_id. apply (generic_format_bpow radix2 (FLT_exp (-149) 24) 0). compute. discriminate.
  - rewrite <- (rnd_0 (-149) 24). apply rnd_mono; [exact eq_refl|]. left. apply exp_pos.
  - rewrite <- (rnd_0 (-149) 24). apply rnd_mono; [exact eq_refl|]. rewrite <- ln_1.
    destruct H as [H|<-]; [left; apply ln_increasing; lra|lra].
Qed.

(** Nothing is asked of a row then but its sizes: a million keys, a thousand blocks a part. *)
Lemma split_decoding_rounded (K : Type) (sh vv : K -> R) blocks part tl to_ R0 (s a Q : K -> R) Cs top Qt :
  let f := fun x => kernels.rnd (-149) 24 (exp x) in let g := fun x => kernels.rnd (-149) 24 (ln x) in
  let J := flat_map (split_keys K blocks) (leaves nat to_) in
  let u := uf 24 in let h := eta (-149) in
  (forall j, inF (-149) 24 (sh j)) -> Permutation (leaves nat tl) (leaves nat to_) ->
  (forall c, In c (leaves nat to_) -> (length (snd (blocks c)) <= R0)%nat /\
    Forall (fun b => Permutation (leaves K (fst b)) (leaves K (snd b))) (fst (blocks c) :: snd (blocks c))) ->
  (forall c j, In c (leaves nat to_) -> In j (split_keys K blocks c) -> part j = c) ->
  (forall j, In j J -> Rabs (sh j - (s j + Cs)) <= a j) -> (forall j, In j J -> s j + a j <= top) ->
  (forall i j, In i J -> In j J -> sh j <= sh i -> Rabs (sh i) <= Q j) -> Rabs (top + Cs) <= Qt ->
  (length J <= 2 ^ 20)%nat -> (R0 + 2 <= 2 ^ 10)%nat ->
  Rabs (split_decoding (-149) 24 f g K sh vv blocks tl to_ - exact K s vv J) <=
    documented K s vv (A2 (-149) 24 u h) (with_lse 24 u h K blocks to_ a Q) J (top_lse 24 u h K blocks to_ top Qt)
      (R0 + 2) (4 * length J - 1) u h.
Proof.
  intros f g J u h Hs Hp Hb Hk Ha Ht HQ HQt HN HR. destruct functions_binary32 as (F0 & F1 & F2 & F3 & F4 & _).
  assert (U0 := uf_pos 24). assert (U1 := @uf_lt1 24 eq_refl). assert (E0 := eta_pos (-149)).
  apply (@split_decoding_tolerance (-149) 24 eq_refl f g u h u h) with (part := part) (Cs := Cs); auto;
    try (unfold u, h; lra); try (intros; apply F4); try (intros; split; [apply F1|apply F2]); try (intros; apply F3).
  apply ordinary_binary32; auto. split; auto. destruct (leaves nat to_) as [|c l] eqn:E.
  - exfalso. apply (leaves_ne nat to_). auto.
  - unfold J. simpl. rewrite app_length. unfold split_keys, keys_of. simpl. rewrite app_length.
    assert (N := leaves_ne K (snd (fst (blocks c)))).
    destruct (leaves K (snd (fst (blocks c)))); [congruence|simpl; lia].
Qed.
