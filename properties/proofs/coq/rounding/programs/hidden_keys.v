(** Hidden keys, whose score is minus infinity: beside a key that is seen they add nothing, and a row of nothing else is
    NaN, by IEEE's own rules (error-bounds.md, section 2: rows that see no key). *)
From Coq Require Import Reals List Lra Lia Psatz Permutation ZArith.
From Flocq Require Import Core BinarySingleNaN.
From Attest.Rounding Require Import basics merge bound kernels overflow finite_kernels.
Import ListNotations.
Open Scope R_scope.

Section Hidden.
Variables prec emax : Z.
Context {Hprec : Prec_gt_0 prec}.
Context {Hemax : Prec_lt_emax prec emax}.
Local Notation float := (binary_float prec emax).
Local Notation emin := (emin prec emax).
Local Notation H := (largest prec emax).
Local Notation is := (is_number prec emax).
Local Notation rnd := (kernels.rnd emin prec).
Variable K : Type.
Local Notation leaves := (leaves K).
Local Notation tree := (tree K).
Variables sf vf : K -> float.
Variable ex : float -> float.
Variables sh vv : K -> R.
Variable fexp : R -> R.
Hypothesis ex_finite : forall x r, is x r -> r <= 0 -> is (ex x) (fexp r).
Hypothesis ex_minus_infinity : is (ex (B754_infinity true)) 0.
Hypothesis ex_nan : ex B754_nan = B754_nan.
Hypothesis exp_inF : forall y, kernels.inF emin prec (fexp y).
Hypothesis exp_range : forall y, y <= 0 -> 0 <= fexp y <= 1.
Hypothesis exp_0 : fexp 0 = 1.
Hypothesis one_inF : kernels.inF emin prec 1.
Hypothesis sh_inF : forall j, kernels.inF emin prec (sh j).
Hypothesis vv_inF : forall j, kernels.inF emin prec (vv j).

(** A mask has added minus infinity to the score of a hidden key; its value is a number. *)
Variable seen : K -> bool.
Hypothesis hidden : forall j, seen j = false -> sf j = B754_infinity true /\ is_finite (vf j) = true.
(** The order that is left of the keys that are seen. *)
Fixpoint only_seen (t : tree) : option tree := match t with
  | Leaf _ j => if seen j then Some (Leaf K j) else None
  | Node _ a b => match only_seen a, only_seen b with
    | Some a', Some b' => Some (Node K a' b') | Some a', None => Some a' | None, r => r end end.

Local Notation ftop := (ftop prec emax K sf).
Local Notation fwt := (fwt prec emax K sf ex).
Local Notation fsuml := (fsuml prec emax K sf ex).
Local Notation fsumo := (fsumo prec emax K sf vf ex).
Local Notation given := (given prec emax K sf vf sh vv).
Local Notation wt := (wt emin prec K sh (fexp_H prec emax fexp)).
Local Notation suml := (suml emin prec K sh (fexp_H prec emax fexp)).
Local Notation sumo := (sumo emin prec K sh vv (fexp_H prec emax fexp)).
Local Notation minus_infinity := (B754_infinity true : float).

Lemma below_everything x r : is x r -> fmax prec emax minus_infinity x = x /\ fmax prec emax x minus_infinity = x.
Proof. intros [F _]. destruct x as [s|s| |s m e p]; try discriminate; destruct s; split; reflexivity. Qed.
Lemma minus_infinity_less x r : is x r -> fsub prec emax minus_infinity x = minus_infinity.
Proof. intros [F _]. destruct x as [s|s| |s m e p]; try discriminate; destruct s; reflexivity. Qed.
Lemma zero_is : is (B754_zero false : float) 0.
Proof. split; reflexivity. Qed.
Lemma add_zero_l x y r : is x 0 -> is y r -> is (fadd prec emax x y) r.
Proof.
  intros X Y. assert (E : rnd (0 + r) = r).
  { rewrite Rplus_0_l. apply rnd_id. exact (is_inF prec emax y r Y). }
  rewrite <- E. apply fadd_is; auto. rewrite E. exact (is_fits prec emax y r Y).
Qed.
Lemma add_zero_r x y r : is x r -> is y 0 -> is (fadd prec emax x y) r.
Proof.
  intros X Y. assert (E : rnd (r + 0) = r).
  { rewrite Rplus_0_r. apply rnd_id. exact (is_inF prec emax x r X). }
  rewrite <- E. apply fadd_is; auto. rewrite E. exact (is_fits prec emax x r X).
Qed.
Lemma times_zero x y r : is x 0 -> is y r -> is (fmul prec emax x y) 0.
Proof.
  intros X Y. assert (E : rnd (0 * r) = 0) by (rewrite Rmult_0_l; apply rnd_id, inF_0).
  apply (eq_ind (rnd (0 * r)) (is (fmul prec emax x y))); [|auto]. apply fmul_is; auto. rewrite E.
  exact (is_fits prec emax x 0 X).
Qed.

Lemma top_of_seen t : match only_seen t with
  | Some t' => given (leaves t') -> is (ftop t) (tmax K sh t') | None => ftop t = minus_infinity end.
Proof.
  induction t as [j|a IHa b IHb]; simpl.
  - destruct (seen j) eqn:S; [intros G; apply (G j); simpl; auto|]. apply hidden; auto.
  - destruct (only_seen a) as [a'|], (only_seen b) as [b'|]; simpl.
    + intros G. apply given_app in G. apply fmax_is; tauto.
    + intros G. rewrite IHb. specialize (IHa G). destruct (below_everything _ _ IHa) as [_ ->]. auto.
    + intros G. rewrite IHa. specialize (IHb G). destruct (below_everything _ _ IHb) as [-> _]. auto.
    + rewrite IHa, IHb. reflexivity.
Qed.
Lemma suml_of_seen mf m t : is mf m -> match only_seen t with
  | Some t' => given (leaves t') -> (forall j, In j (leaves t') -> sh j <= m) ->
      all_fit emin prec H K (wt m) t' -> is (fsuml mf t) (suml m t')
  | None => is (fsuml mf t) 0 end.
Proof.
  intros Im. induction t as [j|a IHa b IHb]; simpl.
  - destruct (seen j) eqn:S.
    + intros G L F. apply (fwt_is prec emax K sf ex sh fexp ex_finite ex_minus_infinity); auto.
      * apply (G j). simpl. auto.
      * apply L. simpl. auto.
    + unfold finite_kernels.fwt. destruct (hidden j S) as [-> _]. rewrite (minus_infinity_less mf m Im). auto.
  - destruct (only_seen a) as [a'|], (only_seen b) as [b'|]; simpl.
    + intros G L [F [Fa Fb]]. apply given_app in G. destruct G as [Ga Gb]. rewrite <- !suml_rsum in F.
      apply fadd_is; auto; [apply IHa|apply IHb]; auto; intros; apply L; apply in_or_app; auto.
    + intros G L F. apply add_zero_r; auto.
    + intros G L F. apply add_zero_l; auto.
    + apply add_zero_l; auto.
Qed.
Lemma sumo_of_seen mf m t : is mf m -> match only_seen t with
  | Some t' => given (leaves t') -> (forall j, In j (leaves t') -> sh j <= m) ->
      all_fit emin prec H K (fun j => rnd (wt m j * vv j)) t' -> is (fsumo mf t) (sumo m t')
  | None => is (fsumo mf t) 0 end.
Proof.
  intros Im. induction t as [j|a IHa b IHb]; simpl.
  - destruct (seen j) eqn:S.
    + intros G L [F _]. destruct (G j) as [Gs Gv]; simpl; auto. apply fmul_is; auto.
      apply (fwt_is prec emax K sf ex sh fexp ex_finite ex_minus_infinity); auto. apply L. simpl. auto.
    + unfold finite_kernels.fwt. destruct (hidden j S) as [-> V]. rewrite (minus_infinity_less mf m Im).
      apply (times_zero _ _ (B2R (vf j))); auto. split; auto.
  - destruct (only_seen a) as [a'|], (only_seen b) as [b'|]; simpl.
    + intros G L [F [Fa Fb]]. apply given_app in G. destruct G as [Ga Gb]. rewrite <- !sumo_rsum in F.
      apply fadd_is; auto; [apply IHa|apply IHb]; auto; intros; apply L; apply in_or_app; auto.
    + intros G L F. apply add_zero_r; auto.
    + intros G L F. apply add_zero_l; auto.
    + apply add_zero_l; auto.
Qed.

Local Notation ffinish := (ffinish prec emax).
Local Notation frun := (frun prec emax K sf vf ex).

(** Two passes over all keys return what two passes over those that are seen return. *)
Theorem hidden_keys_add_nothing tl to_ tl' to' : only_seen tl = Some tl' -> only_seen to_ = Some to' ->
  Permutation (leaves tl') (leaves to') -> given (leaves to') ->
  (1 + uf prec) ^ (length (leaves to') - 1) * INR (length (leaves to')) <= H ->
  (1 + uf prec) ^ (length (leaves to') - 1) * Sum (fun j => Rabs (vv j)) (leaves to') <= H ->
  is (ffinish (frun (All K tl to_)))
    (finish emin prec (two_pass emin prec K sh vv (fexp_H prec emax fexp) tl' to')).
Proof.
  intros El Eo P Go Bl Bo.
  assert (Gl : given (leaves tl')) by (intros j I; apply Go; eapply Permutation_in; [apply P|auto]).
  rewrite <- (Permutation_length P) in Bl.
  destruct (sums_in_range emin prec H K sh vv (fexp_H prec emax fexp) (fexp_H_inF prec emax fexp exp_inF) sh_inF vv_inF
    (fexp_H_range prec emax fexp exp_range) (fexp_H_0 prec emax fexp exp_0) one_inF (All K tl' to') P Bl Bo)
    as ([_ [Fl Fo]] & Low & Fin).
  assert (Im := top_of_seen tl). rewrite El in Im. specialize (Im Gl).
  assert (Il := suml_of_seen _ _ tl Im). rewrite El in Il.
  assert (Io := sumo_of_seen _ _ to_ Im). rewrite Eo in Io.
  unfold l_of in Low. simpl in Low, Fin |- *. apply fdiv_is; auto.
  - apply Io; auto. apply (tmax_matched K sh tl' to'); auto.
  - apply Il; auto. intros. apply tmax_ge; auto.
  - lra.
Qed.

(** A row that sees no key: 0/0. What is to come of it, NaN, zeros or something else, is a matter of policy. *)
Theorem no_key_is_nan tl to_ : only_seen tl = None -> only_seen to_ = None -> ffinish (frun (All K tl to_)) = B754_nan.
Proof.
  intros El Eo. assert (Im := top_of_seen tl). rewrite El in Im. simpl. rewrite Im.
  assert (W : forall j, seen j = false -> fwt minus_infinity j = B754_nan).
  { intros j S. unfold finite_kernels.fwt. destruct (hidden j S) as [-> _]. exact ex_nan. }
  assert (Z : forall t, only_seen t = None -> fsuml minus_infinity t = B754_nan /\ fsumo minus_infinity t = B754_nan).
  { induction t as [j|a IHa b IHb]; simpl.
    - destruct (seen j) eqn:S; [discriminate|]. intros _. rewrite (W j S). split; reflexivity.
    - destruct (only_seen a), (only_seen b); try discriminate. intros _. destruct (IHa eq_refl) as [-> ->].
      destruct (IHb eq_refl) as [-> ->]. split; reflexivity. }
  destruct (Z tl El) as [-> _]. destruct (Z to_ Eo) as [_ ->]. reflexivity.
Qed.

(** A running maximum that has met no key yet: minus infinity and two sums of 0. The first keys make of it what they
    make of nothing. *)
Theorem nothing_before_the_first_key tl to_ : Permutation (leaves tl) (leaves to_) -> given (leaves to_) ->
  (1 + uf prec) ^ (length (leaves to_) - 1) * INR (length (leaves to_)) <= H ->
  (1 + uf prec) ^ (length (leaves to_) - 1) * Sum (fun j => Rabs (vv j)) (leaves to_) <= H ->
  is_state prec emax (fstep prec emax K sf vf ex (minus_infinity, B754_zero false, B754_zero false) tl to_)
    (two_pass emin prec K sh vv (fexp_H prec emax fexp) tl to_).
Proof.
  intros P Go Bl Bo.
  assert (Gl : given (leaves tl)) by (intros j I; apply Go; eapply Permutation_in; [apply P|auto]).
  rewrite <- (Permutation_length P) in Bl.
  destruct (sums_in_range emin prec H K sh vv (fexp_H prec emax fexp) (fexp_H_inF prec emax fexp exp_inF) sh_inF vv_inF
    (fexp_H_range prec emax fexp exp_range) (fexp_H_0 prec emax fexp exp_0) one_inF (All K tl to_) P Bl Bo)
    as ([_ [Fl Fo]] & Low & Fin).
  assert (Im := ftop_is prec emax K sf vf sh vv tl Gl). unfold is_state, m_of, l_of, o_of, two_pass, block, fstep.
  cbn [fst snd]. destruct (below_everything _ _ Im) as [E _]. rewrite E, (minus_infinity_less _ _ Im). split; auto.
  assert (Z : is (fmul prec emax (ex minus_infinity) (B754_zero false)) 0) by (apply (times_zero _ _ 0);
    auto using zero_is).
  split; apply add_zero_l; auto.
  - apply (fsuml_is prec emax K sf vf ex sh vv fexp); auto. intros. apply tmax_ge; auto.
  - apply (fsumo_is prec emax K sf vf ex sh vv fexp); auto. apply (tmax_matched K sh tl to_); auto.
Qed.
End Hidden.
