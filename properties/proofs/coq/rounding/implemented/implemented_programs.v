(** A running maximum in exponents of base 2, its scale folded into them, as a program: held to what core/bound computes
    (implemented.v). *)
From Coq Require Import Reals List Lra Lia Psatz Permutation ZArith.
From Flocq Require Import Core.
From Attest.Rounding Require Import basics scores merge bound documented kernels base_two implemented.
Import ListNotations.
Open Scope R_scope.

Section Folded.
Variables emin prec : Z.
Context {Hprec : Prec_gt_0 prec}.
Local Notation rnd := (kernels.rnd emin prec).
Local Notation uf := (uf prec).
Local Notation eta := (eta emin).
Variable K : Type.
Variables x vv : K -> R.   (* products as computed, values *)
Variable c : R.            (* the scale times log2(e), as the kernel has it *)
Hypothesis Hc : 0 < c.
Variable fexp2 : R -> R.
Variables epsE lamE : R.
Hypothesis HepsE : 0 <= epsE < 1.
Hypothesis HlamE : 0 <= lamE.
Hypothesis exp2_good : forall y, y <= 1 -> 0 <= fexp2 y /\ rounded epsE lamE (exp (nats y)) (fexp2 y).
Hypothesis exp2_inF : forall y, inF emin prec (fexp2 y).
Hypothesis x_inF : forall j, inF emin prec (x j).
Hypothesis four_digits : uf <= / 16.
Hypothesis small_numbers : eta <= / 4.
Hypothesis Eta : eta <= lamE.
(** The reference that each key meets, and D2 of it. *)
Variable ref : K -> R.
Hypothesis D2 : forall j, uf * Rabs (ref j * c) + eta <= / 2.
Local Notation top := (tmax K x).
Local Notation leaves := (leaves K).
Local Notation meets := (meets K x ref).
Local Notation reference := (fun j => nats (ref j * c)).

(** Exponents of three roundings, as core/bound counts their underflow. *)
Variables s a ap : K -> R.
Definition folded : errors K := {| err := a; whole := ap; c_m := 1; u_e := uf |}.
Definition claims : arith := claims2 emin prec epsE lamE (3 * eta) 0 0 (/ 2) 0.
Lemma claims_sane : sane claims.
Proof.
  assert (P := uf_pos prec). assert (Q := eta_pos emin). constructor; simpl; try lra.
  assert (0 <= uf * uf <= / 16 * / 16) by (split; [apply Rmult_le_pos; lra|apply Rmult_le_compat; lra]). lra.
Qed.

Lemma key_of M j : x j <= M -> ref j = M ->
  nats (x j * c) - nats (M * c) <= 0 /\
  Rabs (nats (rnd (x j * c - rnd (M * c))) - (nats (x j * c) - nats (M * c))) <=
    thE claims * Rabs (nats (x j * c) - nats (M * c)) + off_by K claims folded reference j /\
  exponential claims (nats (rnd (x j * c - rnd (M * c)))) (wt2 emin prec K x c fexp2 M j).
Proof.
  intros Hx Hr. assert (U := uf_pos prec). assert (Et := eta_pos emin). assert (L := ln2_pos).
  assert (X : x j * c <= M * c) by (apply Rmult_le_compat_r; lra). split; [|split].
  - assert (nats (x j * c) <= nats (M * c)) by (unfold nats; apply Rmult_le_compat_r; lra). lra.
  - assert (Q := folded_exponent uf eta eta (x j * c) M c (rnd (M * c)) (rnd (x j * c - rnd (M * c))) ltac:(lra)
      ltac:(lra) ltac:(lra) (rnd_near emin prec _) (rnd_near emin prec _)).
    unfold off_by, apart_by. rewrite Hr. simpl.
    assert (Z := Rabs_pos (nats (x j * c) - nats (M * c))). set (z := Rabs (nats (x j * c) - nats (M * c))) in *.
    assert (Y := Rabs_pos (nats (M * c))). set (y := Rabs (nats (M * c))) in *.
    assert (0 <= uf * z) by (apply Rmult_le_pos; lra). assert (0 <= uf * (uf * z)) by (apply Rmult_le_pos; lra).
    assert (0 <= uf * y) by (apply Rmult_le_pos; lra). assert (0 <= uf * (uf * y)) by (apply Rmult_le_pos; lra).
    assert (0 <= uf * (uf * (uf * y))) by (apply Rmult_le_pos; lra).
    assert (uf * eta <= / 16 * eta) by (apply Rmult_le_compat_r; lra). lra.
  - simpl. apply exp2_good. assert (N := rnd_near emin prec (M * c)). unfold near in N. assert (B := D2 j).
    rewrite Hr in B. apply Rabs_bounds in N. set (z := x j * c - rnd (M * c)). assert (Z : z <= / 2) by (unfold z; lra).
    assert (N2 := rnd_near emin prec z). unfold near in N2. apply Rabs_bounds in N2.
    destruct (Rle_dec z 0) as [Z0|Z0].
    + apply Rle_trans with (rnd 0); [apply round_le; [apply FLT_exp_valid; auto|apply valid_rnd_N|auto]|].
      unfold kernels.rnd. rewrite round_0; [lra|apply valid_rnd_N].
    + rewrite (Rabs_pos_eq z) in N2 by lra. assert (uf * z <= / 16 * z) by (apply Rmult_le_compat_r; lra). lra.
Qed.

(** What each key meets is a running maximum of the products. *)
Lemma meets_refers bs : forall M J, (exists i, In i J /\ M <= x i) ->
  Forall (fun b => Permutation (leaves (fst b)) (leaves (snd b))) bs -> meets M bs ->
  forall j, In j (keys_of K bs) -> x j <= ref j /\ exists i, In i (J ++ keys_of K bs) /\ ref j <= x i.
Proof.
  induction bs as [|b bs IH]; intros M J (i & Ii & Hi) F Me j Hj; [destruct Hj|]. destruct Me as [M1 M2].
  assert (P := Forall_inv F). unfold keys_of in *. simpl in Hj |- *. fold (keys_of K bs) in *.
  assert (Top : exists i, In i (J ++ leaves (snd b)) /\ Rmax M (top (fst b)) <= x i).
  { unfold Rmax. destruct (Rle_dec _ _).
    - destruct (tmax_in K x (fst b)) as (k & Ik & Ek). exists k. split; [|lra]. apply in_or_app. right.
      eapply Permutation_in; eauto.
    - exists i. split; auto. apply in_or_app. auto. }
  apply in_app_or in Hj. destruct Hj as [Hj|Hj].
  - apply (Permutation_in _ (Permutation_sym P)) in Hj. rewrite (M1 j Hj). split.
    + eapply Rle_trans; [apply tmax_ge; eauto|apply Rmax_r].
    + destruct Top as (k & Ik & Ek). exists k. split; auto. rewrite app_assoc. apply in_or_app. auto.
  - destruct (IH _ _ Top (Forall_inv_tail F) M2 j Hj) as (H1 & k & Ik & Ek). split; auto. exists k.
    rewrite app_assoc. auto.
Qed.

Theorem folded_online_implemented b bs :
  Forall (fun b => Permutation (leaves (fst b)) (leaves (snd b))) (b :: bs) ->
  (forall j, In j (leaves (fst b)) -> ref j = top (fst b)) -> meets (top (fst b)) bs ->
  let J := keys_of K (b :: bs) in let R_ := length (b :: bs) in let sh := fun j => nats (x j * c) in
  scores_within K s J a sh -> whole_within K s J folded sh -> 0 < denominator K s claims folded usual J R_ ->
  Rabs (finish emin prec (online2 emin prec K x vv c fexp2 b bs) - exact K s vv J) <=
    allowed K s vv claims folded usual J R_ 1 0 0.
Proof.
  intros F M1 M2 J R_ sh Hs Hw Hd. assert (Et := eta_pos emin). assert (U := uf_pos prec).
  assert (OK := claims_sane).
  destruct (good_by_first emin prec K x vv c fexp2 epsE lamE exp2_inF x_inF ref (3 * eta) 0 0 (/ 2) 0 sh
    (off_by K claims folded reference) key_of b (Forall_inv F) M1) as (cl0 & co0 & G0).
  set (h := fold_right (fun c x => Nat.max (Nat.max (depth K (fst c)) (depth K (snd c))) x) 0%nat (b :: bs)).
  assert (D : Forall (fun b => depth K (fst b) <= h /\ depth K (snd b) <= h)%nat (b :: bs)).
  { unfold h. generalize (b :: bs). intros l. induction l as [|d l IH]; constructor; simpl; [lia|].
    eapply Forall_impl; [|apply IH]. intros d'. simpl. lia. }
  assert (D1 := Forall_inv D). simpl in D1.
  destruct (good_by_steps emin prec K x vv c Hc fexp2 epsE lamE exp2_good exp2_inF x_inF ref (3 * eta) 0 0 (/ 2)
    0 OK sh (off_by K claims folded reference) key_of h bs (Forall_inv_tail F) (Forall_inv_tail D) 0
    _ _ _ _ _ _ G0 M2 ltac:(lia)) as (kl & cl & ko & co & G & C).
  change (leaves (snd b) ++ keys_of K bs) with J in G. fold (online2 emin prec K x vv c fexp2 b bs) in G.
  simpl (0 + length bs)%nat in *. destruct (online2 emin prec K x vv c fexp2 b bs) as [[m l] o].
  destruct G as [(tl & to_ & Pm & Pp & SL & SO) (i & Ii & Ei) _ Cn]. simpl in Ei, SL, SO.
  assert (Cv : covered claims folded).
  { split; [auto|]. split; [simpl; lra|]. unfold twice. simpl. lra. }
  apply (implemented_tolerance K s vv claims OK (Rle_refl _) (Rle_refl _) J R_ 1 0 0
    (conj (Rle_refl _) (Rle_refl _)) folded Cv ltac:(simpl; lra) sh); auto.
  exists reference. split.
  - intros j Hj. assert (L := ln2_pos).
    assert (Nat_ : forall y z, y <= z -> nats (y * c) <= nats (z * c)).
    { intros. unfold nats. apply Rmult_le_compat_r; [lra|]. apply Rmult_le_compat_r; lra. }
    assert (Met : x j <= ref j /\ exists i, In i J /\ ref j <= x i).
    { unfold J, keys_of in Hj |- *. simpl in Hj |- *. fold (keys_of K bs) in *. assert (P := Forall_inv F).
      destruct (tmax_in K x (fst b)) as (k & Ik & Ek). apply (Permutation_in _ P) in Ik.
      apply in_app_or in Hj. destruct Hj as [Hj|Hj].
      - apply (Permutation_in _ (Permutation_sym P)) in Hj. rewrite (M1 j Hj). split; [apply tmax_ge; auto|].
        exists k. split; [apply in_or_app; auto|lra].
      - apply (meets_refers bs (top (fst b)) (leaves (snd b))); auto; [|apply (Forall_inv_tail F)].
        exists k. split; auto. lra. }
    destruct Met as (H1 & k & Ik & Ek). split; [assert (Q := Nat_ _ _ H1); simpl; unfold sh; lra|]. split.
    + exists k. split; auto. apply Nat_. auto.
    + unfold apart_by. simpl. assert (B := D2 j). rewrite nats_abs. assert (L2 := ln2_below).
      assert (B0 : 0 <= uf * Rabs (ref j * c)) by (apply Rmult_le_pos; [lra|apply Rabs_pos]).
      set (y := uf * Rabs (ref j * c)) in *.
      replace ((1 + ((1 + uf) * (1 + uf) - 1)) * (1 * uf * (Rabs (ref j * c) * ln 2))) with
        ((1 + uf) * (1 + uf) * (y * ln 2)) by (unfold y; ring).
      assert (Y : 0 <= y * ln 2 <= / 2 * (5 / 6)) by (split; [apply Rmult_le_pos; lra|apply Rmult_le_compat; lra]).
      assert (V : 0 <= (1 + uf) * (1 + uf) <= (17 / 16) * (17 / 16))
        by (split; [apply Rmult_le_pos; lra|apply Rmult_le_compat; lra]).
      assert ((1 + uf) * (1 + uf) * (y * ln 2) <= 17 / 16 * (17 / 16) * (/ 2 * (5 / 6)))
        by (apply Rmult_le_compat; lra). lra.
  - exists tl, to_, (nats (m * c)), l, o, kl, (length bs), cl, ko, (length bs), co, (rnd (o / l)).
    unfold R_. simpl length. do 4 (split; [first [assumption | lia]|]). split; [lia|].
    split; [exact Logic.I|]. split; [assumption|]. split; [lia|]. split; [lia|]. split; [exact Logic.I|].
    split; [exists i; split; auto; rewrite Ei; unfold sh; lra|]. split.
    + exists (o / l). split; [reflexivity|apply rnd_near; auto].
    + unfold near. rewrite Rminus_eq_0, Rabs_R0. lra.
Qed.
End Folded.
