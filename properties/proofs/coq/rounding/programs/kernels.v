(** Kernels as programs over Flocq's rounding, and their tolerance: two-pass, online (blocked or per key), split and
  merge. *)
From Coq Require Import Reals List Lra Lia Psatz Permutation ZArith.
From Flocq Require Import Core Plus_error Relative.
From Attest.Rounding Require Import basics scores merge bound.
Import ListNotations.
Open Scope R_scope.

Section Rounding.
Variables emin prec : Z.
Context {Hprec : Prec_gt_0 prec}.
Definition fexpn := FLT_exp emin prec.
Definition rnd := round radix2 fexpn ZnearestE.
Definition inF := generic_format radix2 fexpn.
Definition uf := / 2 * bpow radix2 (- prec + 1).   (* 2^-prec *)
Definition eta := / 2 * bpow radix2 emin.          (* half the smallest subnormal *)

Lemma uf_pos : 0 < uf.
Proof. unfold uf. assert (H := bpow_gt_0 radix2 (- prec + 1)). lra. Qed.
Lemma eta_pos : 0 < eta.
Proof. unfold eta. assert (H := bpow_gt_0 radix2 emin). lra. Qed.
Lemma uf_lt1 : uf < 1.
Proof.
  unfold uf. assert (bpow radix2 (- prec + 1) <= bpow radix2 0).
  { apply bpow_le. red in Hprec. lia. } simpl in H. lra.
Qed.

(** The model of rounding is Flocq's: any real. *)
Lemma rnd_near x : near uf eta x (rnd x).
Proof.
  destruct (error_N_FLT radix2 emin prec Hprec (fun n => negb (Z.even n)) x) as (e & t & He & Ht & _ & E).
  unfold near. unfold rnd, fexpn. rewrite E.
  replace (x * (1 + e) + t - x) with (e * x + t) by ring.
  eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_mult. apply Rplus_le_compat; auto.
  apply Rmult_le_compat_r; [apply Rabs_pos|auto].
Qed.
Lemma rnd_inF x : inF (rnd x).
Proof. apply generic_format_round; [apply FLT_exp_valid; auto | apply valid_rnd_N]. Qed.

(** Differences of numbers of the format: no underflow. *)
Lemma rnd_minus x y : inF x -> inF y -> Rabs (rnd (x - y) - (x - y)) <= uf * Rabs (x - y).
Proof.
  intros Hx Hy.
  destruct (FLT_plus_error_N_ex radix2 emin prec (fun n => negb (Z.even n)) x (- y) Hx (generic_format_opp _ _ _ Hy))
    as (e & He & E).
  assert (E' : rnd (x - y) = (x - y) * (1 + e)) by exact E. rewrite E'.
  replace ((x - y) * (1 + e) - (x - y)) with (e * (x - y)) by ring. rewrite Rabs_mult.
  apply Rmult_le_compat_r; [apply Rabs_pos|].
  eapply Rle_trans; [apply He|]. unfold u_ro. fold uf. assert (P := uf_pos).
  replace (uf / (1 + uf)) with (uf * / (1 + uf)) by auto. rewrite <- (Rmult_1_r uf) at 3.
  apply Rmult_le_compat_l; [lra|].
  rewrite <- Rinv_1. apply Rinv_le_contravar; lra.
Qed.

(** To nearest: both operands are candidates. *)
Lemma rnd_candidate x c : inF c -> Rabs (rnd x - x) <= Rabs (c - x).
Proof. intros H. destruct (round_N_pt radix2 fexpn (fun n => negb (Z.even n)) x) as [_ N]. apply N; auto. Qed.

(** 0 is one too: no more underflows than there is. *)
Lemma rnd_rounded x : rounded uf eta x (rnd x).
Proof.
  apply near_rounded; [left; apply uf_pos|apply rnd_near|].
  assert (C := rnd_candidate x 0 (generic_format_0 _ _)). rewrite Rminus_0_l, Rabs_Ropp in C. exact C.
Qed.
Lemma rnd_pos x : 0 <= x -> 0 <= rnd x.
Proof.
  intros H. unfold rnd. rewrite <- (round_0 radix2 fexpn ZnearestE).
  apply round_le; [apply FLT_exp_valid; auto|apply valid_rnd_N|auto].
Qed.

Section Kernel.
Variable K : Type.
Variables sh vv : K -> R.
Variable fexp : R -> R.
Variables epsE lamE : R.
Hypothesis HepsE : 0 <= epsE < 1.
Hypothesis HlamE : 0 <= lamE.
Hypothesis exp_good : forall x, x <= 0 -> 0 <= fexp x /\ rounded epsE lamE (exp x) (fexp x).
Hypothesis exp_inF : forall x, inF (fexp x).
Hypothesis sh_inF : forall j, inF (sh j).

Definition A : arith := {| u := uf; lam := eta; thE := uf; xl := 0; xr := 0; T := 0; gap := 0; off := 0;
  last := 0; eps := epsE; lame := lamE;
  up := 0; lamp := 0; upd := 0; lampd := 0; nearest := true; additions := None |}.
Lemma A_sane : sane A.
Proof. assert (P := uf_pos). assert (Q := eta_pos). assert (L := uf_lt1). constructor; simpl; lra. Qed.

Lemma rnd_adds x y : inF x -> inF y -> adds A x y (rnd (x + y)).
Proof.
  intros Hx Hy. split; [apply rnd_near|]. intros _. simpl. assert (Q := eta_pos).
  assert (C1 := rnd_candidate (x + y) x Hx). assert (C2 := rnd_candidate (x + y) y Hy).
  replace (x - (x + y)) with (- y) in C1 by ring. replace (y - (x + y)) with (- x) in C2 by ring.
  rewrite Rabs_Ropp in *. assert (Rabs (rnd (x + y) - (x + y)) <= Rmin (Rabs x) (Rabs y)) by (apply Rmin_glb; auto).
  lra.
Qed.

(** Orders of summation. *)
Inductive tree := Leaf (j : K) | Node (a b : tree).
Fixpoint leaves t := match t with Leaf j => [j] | Node a b => leaves a ++ leaves b end.
Fixpoint depth t := match t with Leaf _ => 0%nat | Node a b => S (Nat.max (depth a) (depth b)) end.
Fixpoint tmax t := match t with Leaf j => sh j | Node a b => Rmax (tmax a) (tmax b) end.

(** The kernels' operations. *)
Definition wt m j := fexp (rnd (sh j - m)).
Fixpoint suml m t := match t with Leaf j => wt m j | Node a b => rnd (suml m a + suml m b) end.
Fixpoint sumo m t := match t with Leaf j => rnd (wt m j * vv j) | Node a b => rnd (sumo m a + sumo m b) end.
Definition state := (R * R * R)%type.
Definition block (m : R) (tl to_ : tree) : state := (m, suml m tl, sumo m to_).
Definition two_pass tl to_ := block (tmax tl) tl to_.
Definition step (s : state) (b : tree * tree) : state :=
  let '(m, l, o) := s in let m' := Rmax m (tmax (fst b)) in let c := fexp (rnd (m - m')) in
  (m', rnd (rnd (c * l) + suml m' (fst b)), rnd (rnd (c * o) + sumo m' (snd b))).
Definition online (b : tree * tree) (bs : list (tree * tree)) : state := fold_left step bs (two_pass (fst b) (snd b)).
Definition combine (s1 s2 : state) : state :=
  let '(m1, l1, o1) := s1 in let '(m2, l2, o2) := s2 in let m' := Rmax m1 m2 in
  let c1 := fexp (rnd (m1 - m')) in let c2 := fexp (rnd (m2 - m')) in
  (m', rnd (rnd (c1 * l1) + rnd (c2 * l2)), rnd (rnd (c1 * o1) + rnd (c2 * o2))).
Definition finish (s : state) := let '(m, l, o) := s in rnd (o / l).

Definition term m j := (j, rnd (sh j - m) - (sh j - m) + split A (rnd (sh j - m)) (wt m j)).

Lemma leaves_ne t : leaves t <> [].
Proof. induction t; simpl; [congruence|]. destruct (leaves t1); simpl; congruence. Qed.
Lemma tmax_ge t j : In j (leaves t) -> sh j <= tmax t.
Proof.
  induction t; simpl; [intros [->|[]]; lra|]. rewrite in_app_iff. intros [H|H];
  [eapply Rle_trans; [apply IHt1; auto|apply Rmax_l] | eapply Rle_trans; [apply IHt2; auto|apply Rmax_r]].
Qed.
Lemma tmax_in t : exists j, In j (leaves t) /\ tmax t = sh j.
Proof.
  induction t; simpl; [exists j; auto|]. destruct IHt1 as (i & I1 & E1). destruct IHt2 as (i2 & I2 & E2).
  unfold Rmax. destruct (Rle_dec _ _); [exists i2 | exists i]; rewrite in_app_iff; auto.
Qed.
Lemma tmax_inF t : inF (tmax t).
Proof. destruct (tmax_in t) as (j & _ & ->). auto. Qed.

Definition ops n := (2 * n - 1)%nat.
Lemma leaf_exponent m j : inF m -> sh j <= m ->
  Rabs (rnd (sh j - m) - (sh j - m)) <= thE A * Rabs (sh j - m) + xl A /\ exponential A (rnd (sh j - m)) (wt m j).
Proof.
  intros Hm Hj. split; simpl; [assert (Q := rnd_minus _ _ (sh_inF j) Hm); lra|]. apply exp_good.
  rewrite <- (round_0 radix2 fexpn ZnearestE). apply round_le; [apply FLT_exp_valid; auto|apply valid_rnd_N|lra].
Qed.

Lemma suml_inF m t : inF (suml m t).
Proof. destruct t; simpl; [apply exp_inF|apply rnd_inF]. Qed.
Lemma sumo_inF m t : inF (sumo m t).
Proof. destruct t; simpl; apply rnd_inF. Qed.

Lemma suml_sums m t : inF m -> (forall j, In j (leaves t) -> sh j <= m) ->
  exists c, sums K sh A (one K) (w_l A) (lampd A) (map (term m) (leaves t)) m (suml m t) (depth t) 0 c /\ (c <= ops
    (length (leaves t)))%nat.
Proof.
  intros Hm. induction t as [j|a IHa b IHb]; simpl; intros H.
  - exists 1%nat. split; [|unfold ops; lia]. destruct (leaf_exponent m j Hm (H j (or_introl eq_refl))) as [H1 H2].
    apply (sums_key K sh A (one K) (w_l A) (lampd A) j m (rnd (sh j - m)) (wt m j)); auto.
    + simpl. assert (Q := H j (or_introl eq_refl)). lra.
    + assert (Q := eta_pos). destruct H2 as [P _]. unfold one, w_l. simpl.
      replace (wt m j - wt m j * 1) with 0 by ring. rewrite Rabs_R0, Rabs_R1, Rmin_left by lra. lra.
  - destruct IHa as (ca & Sa & La); [intros; apply H; rewrite in_app_iff; auto|].
    destruct IHb as (cb & Sb & Lb); [intros; apply H; rewrite in_app_iff; auto|].
    exists (S (ca + cb)). split.
    + rewrite map_app. apply (sums_add K sh A (one K) (w_l A) (lampd A) _ _ m (suml m a) (suml m b) _ (depth a) 0 ca
      (depth b) 0 cb); auto.
      apply rnd_adds; apply suml_inF.
    + rewrite app_length. assert (Na := leaves_ne a). assert (Nb := leaves_ne b).
      destruct (leaves a), (leaves b); try congruence. simpl in *. unfold ops in *. lia.
Qed.
Lemma sumo_sums m t : inF m -> (forall j, In j (leaves t) -> sh j <= m) ->
  exists c, sums K sh A vv (w_o A) ((1 + u A) * lamp A) (map (term m) (leaves t)) m (sumo m t) (depth t) 0 c /\ (c <=
    ops (length (leaves t)))%nat.
Proof.
  intros Hm. induction t as [j|a IHa b IHb]; simpl; intros H.
  - exists 1%nat. split; [|unfold ops; lia]. destruct (leaf_exponent m j Hm (H j (or_introl eq_refl))) as [H1 H2].
    apply (sums_key K sh A vv (w_o A) _ j m (rnd (sh j - m)) (wt m j)); auto.
    + simpl. assert (Q := H j (or_introl eq_refl)). lra.
    + destruct H2 as [P _]. assert (Q := rnd_near (wt m j * vv j)). assert (U := uf_pos). unfold near in Q.
      rewrite Rabs_mult, (Rabs_pos_eq (wt m j)) in Q by auto. unfold w_o. simpl.
      rewrite Rmin_left by (rewrite Rmult_0_r; repeat apply Rmult_le_pos; lra). lra.
  - destruct IHa as (ca & Sa & La); [intros; apply H; rewrite in_app_iff; auto|].
    destruct IHb as (cb & Sb & Lb); [intros; apply H; rewrite in_app_iff; auto|].
    exists (S (ca + cb)). split.
    + rewrite map_app. apply (sums_add K sh A vv (w_o A) _ _ _ m (sumo m a) (sumo m b) _ (depth a) 0 ca (depth b) 0
      cb); auto.
      apply rnd_adds; apply sumo_inF.
    + rewrite app_length. assert (Na := leaves_ne a). assert (Nb := leaves_ne b).
      destruct (leaves a), (leaves b); try congruence. simpl in *. unfold ops in *. lia.
Qed.

(** A state that is right for the keys J. *)
Record good (s : state) (J : list K) (kl cl ko co r : nat) : Prop := {
  g_terms : exists tl to_, Permutation (map fst to_) J /\ Permutation tl to_ /\
    sums K sh A (one K) (w_l A) (lampd A) tl (fst (fst s)) (snd (fst s)) kl r cl /\
    sums K sh A vv (w_o A) ((1 + u A) * lamp A) to_ (fst (fst s)) (snd s) ko r co;
  g_m : exists i, In i J /\ fst (fst s) = sh i;
  g_inF : inF (fst (fst s)) /\ inF (snd (fst s)) /\ inF (snd s);
  g_counts : (cl + 3 <= 4 * length J /\ co + 3 <= 4 * length J)%nat }.

Lemma good_block m tl to_ : inF m -> (exists j, In j (leaves to_) /\ m = sh j) -> (forall j, In j (leaves to_) ->
  sh j <= m) ->
  Permutation (leaves tl) (leaves to_) ->
    exists cl co, good (block m tl to_) (leaves to_) (depth tl) cl (depth to_) co 0 /\
      (cl + 1 <= 2 * length (leaves to_) /\ co + 1 <= 2 * length (leaves to_))%nat.
Proof.
  intros Hm Hi H Hp. assert (H' : forall j, In j (leaves tl) ->
    sh j <= m) by (intros j I; apply H; eapply Permutation_in; eauto).
  destruct (suml_sums m tl Hm H') as (cl & Sl & Ll). destruct (sumo_sums m to_ Hm H) as (co & So & Lo).
  exists cl, co. rewrite (Permutation_length Hp) in Ll. split.
  2: { assert (N := leaves_ne to_). destruct (leaves to_); try congruence. simpl in *. unfold ops in *. lia. }
  constructor.
  - exists (map (term m) (leaves tl)), (map (term m) (leaves to_)). simpl. repeat split; auto.
    + rewrite map_map. simpl. rewrite map_id. auto.
    + apply Permutation_map. auto.
  - auto.
  - simpl. split; [auto|]. split; [apply suml_inF|apply sumo_inF].
  - assert (N := leaves_ne to_). destruct (leaves to_); try congruence. simpl in *. unfold ops in *. lia.
Qed.

Lemma good_two_pass tl to_ : Permutation (leaves tl) (leaves to_) ->
  exists cl co, good (two_pass tl to_) (leaves to_) (depth tl) cl (depth to_) co 0 /\
    (cl + 1 <= 2 * length (leaves to_) /\ co + 1 <= 2 * length (leaves to_))%nat.
Proof.
  intros Hp. apply good_block; auto using tmax_inF.
  - destruct (tmax_in tl) as (j & Ij & Ej). exists j. split; auto. eapply Permutation_in; eauto.
  - intros j Ij. apply tmax_ge. eapply Permutation_in; [apply Permutation_sym; eauto|auto].
Qed.

Lemma factor_exponent m m' : inF m -> inF m' -> m <= m' ->
  Rabs (rnd (m - m') - (m - m')) <= thE A * (m' - m) + xr A /\ exponential A (rnd (m - m')) (fexp (rnd (m - m'))).
Proof.
  intros H1 H2 H. split.
  - simpl. assert (Q := rnd_minus _ _ H1 H2). rewrite (Rabs_left1 (m - m')) in Q by lra. lra.
  - apply exp_good. rewrite <- (round_0 radix2 fexpn ZnearestE).
  apply round_le; [apply FLT_exp_valid; auto|apply valid_rnd_N|lra].
Qed.

(** A running maximum: one block more. *)
Lemma good_step s J kl cl ko co r b : good s J kl cl ko co r -> Permutation (leaves (fst b)) (leaves (snd b)) ->
  exists cl' co', good (step s b) (J ++ leaves (snd b)) (S (Nat.max (S kl) (depth (fst b)))) cl' (S (Nat.max (S ko)
    (depth (snd b)))) co' (S r) /\
    (cl' <= cl + 2 * length (leaves (snd b)) + 1 /\ co' <= co + 2 * length (leaves (snd b)) + 1)%nat.
Proof.
  destruct s as [[m l] o]. destruct b as [tl to_]. simpl.
  intros [(sl & so & Pm & Pp & SL & SO) (i & Ii & Ei) (Fm & Fl & Fo) Cn] Hp.
  simpl in *. set (m' := Rmax m (tmax tl)).
  assert (Fm' : inF m') by (unfold m', Rmax; destruct (Rle_dec _ _); auto using tmax_inF).
  assert (Hm : m <= m') by apply Rmax_l.
  assert (Hl : forall j, In j (leaves tl) -> sh j <= m').
  { intros j Ij. eapply Rle_trans; [apply tmax_ge; eauto|apply Rmax_r]. }
  assert (Ho : forall j, In j (leaves to_) -> sh j <= m').
  { intros j Ij. apply Hl. eapply Permutation_in; [apply Permutation_sym; eauto|auto]. }
  destruct (suml_sums m' tl Fm' Hl) as (c1 & S1 & L1). destruct (sumo_sums m' to_ Fm' Ho) as (c2 & S2 & L2).
  destruct (factor_exponent m m' Fm Fm' Hm) as [E1 E2].
  exists (S (S cl + c1)), (S (S co + c2)).
  rewrite (Permutation_length Hp) in L1. split.
  2: { assert (N := leaves_ne to_). destruct (leaves to_); try congruence. simpl in *. unfold ops in *. lia. }
  assert (R1 := sums_rescale_exp K sh A A_sane (one K) (w_l A) (lampd A) sl m l kl r cl m' _ _ _ SL Hm E1 E2 (rnd_near
    _)).
  assert (R2 := sums_rescale_exp K sh A A_sane vv (w_o A) _ so m o ko r co m' _ _ _ SO Hm E1 E2 (rnd_near _)).
  constructor; simpl.
  - eexists _, _. split; [|split; [|split]].
    3: { assert (Q := sums_add K sh A (one K) (w_l A) (lampd A) _ _ _ _ _ _ _ _ _ _ _ _ R1 S1 (rnd_adds _ _ (rnd_inF
      _) (suml_inF _ _))).
         rewrite Nat.max_0_r in Q. exact Q. }
    3: { assert (Q := sums_add K sh A vv (w_o A) _ _ _ _ _ _ _ _ _ _ _ _ _ R2 S2 (rnd_adds _ _ (rnd_inF _) (sumo_inF _
      _))).
         rewrite Nat.max_0_r in Q. exact Q. }
    + rewrite map_app. apply Permutation_app; [unfold rescaled; rewrite map_map; simpl; auto|].
      rewrite map_map. simpl. rewrite map_id. auto.
    + apply Permutation_app; [apply Permutation_map; auto|apply Permutation_map; auto].
  - unfold m', Rmax. destruct (Rle_dec _ _).
    + destruct (tmax_in tl) as (j & Ij & Ej). exists j. split; auto. apply in_or_app. right.
    eapply Permutation_in; eauto.
    + exists i. split; auto. apply in_or_app. auto.
  - split; [auto|]. split; apply rnd_inF.
  - rewrite app_length. assert (N := leaves_ne to_).
    destruct (leaves to_); try congruence. simpl in *. unfold ops in *. lia.
Qed.

(** Splits: two states become one. *)
Lemma good_combine s1 s2 J1 J2 kl1 cl1 ko1 co1 kl2 cl2 ko2 co2 r :
  good s1 J1 kl1 cl1 ko1 co1 r -> good s2 J2 kl2 cl2 ko2 co2 r ->
  exists cl' co', good (combine s1 s2) (J1 ++ J2) (S (Nat.max (S kl1) (S kl2))) cl' (S (Nat.max (S ko1) (S ko2))) co'
    (S r).
Proof.
  destruct s1 as [[m1 l1] o1]. destruct s2 as [[m2 l2] o2]. simpl.
  intros [(tl1 & to1 & Pm1 & Pp1 & SL1 & SO1) (i1 & Ii1 & Ei1) (Fm1 & Fl1 & Fo1) Cn1].
  intros [(tl2 & to2 & Pm2 & Pp2 & SL2 & SO2) (i2 & Ii2 & Ei2) (Fm2 & Fl2 & Fo2) Cn2].
  simpl in *. set (m' := Rmax m1 m2).
  assert (Fm' : inF m') by (unfold m', Rmax; destruct (Rle_dec _ _); auto).
  assert (H1 : m1 <= m') by apply Rmax_l. assert (H2 : m2 <= m') by apply Rmax_r.
  destruct (factor_exponent m1 m' Fm1 Fm' H1) as [E1 X1]. destruct (factor_exponent m2 m' Fm2 Fm' H2) as [E2 X2].
  assert (R1 := sums_rescale_exp K sh A A_sane (one K) (w_l A) (lampd A) _ _ _ _ _ _ m' _ _ _ SL1 H1 E1 X1 (rnd_near
    _)).
  assert (R2 := sums_rescale_exp K sh A A_sane (one K) (w_l A) (lampd A) _ _ _ _ _ _ m' _ _ _ SL2 H2 E2 X2 (rnd_near
    _)).
  assert (Q1 := sums_rescale_exp K sh A A_sane vv (w_o A) _ _ _ _ _ _ _ m' _ _ _ SO1 H1 E1 X1 (rnd_near _)).
  assert (Q2 := sums_rescale_exp K sh A A_sane vv (w_o A) _ _ _ _ _ _ _ m' _ _ _ SO2 H2 E2 X2 (rnd_near _)).
  exists (S (S cl1 + S cl2)), (S (S co1 + S co2)). constructor; simpl.
  - eexists _, _. split; [|split; [|split]].
    3: { assert (Q := sums_add K sh A (one K) (w_l A) (lampd A) _ _ _ _ _ _ _ _ _ _ _ _ R1 R2 (rnd_adds _ _ (rnd_inF
      _) (rnd_inF _))).
         rewrite Nat.max_id in Q. exact Q. }
    3: { assert (Q := sums_add K sh A vv (w_o A) _ _ _ _ _ _ _ _ _ _ _ _ _ Q1 Q2 (rnd_adds _ _ (rnd_inF _) (rnd_inF
      _))).
         rewrite Nat.max_id in Q. exact Q. }
    + rewrite map_app. apply Permutation_app; unfold rescaled; rewrite map_map; simpl; auto.
    + apply Permutation_app; apply Permutation_map; auto.
  - unfold m', Rmax. destruct (Rle_dec _ _); [exists i2|exists i1]; split; auto; apply in_or_app; auto.
  - split; [auto|]. split; apply rnd_inF.
  - rewrite app_length. assert (1 <= length J1)%nat by (destruct J1; simpl in *; [tauto|lia]). lia.
Qed.

(** ** The tolerance of each of them. *)
Variable s : K -> R.        (* exact scores *)
Variable a : K -> R.        (* error of a computed score up to a shift Cs common to all keys *)
Variables Mp Cs : R.

Lemma good_tolerance st J kl cl ko co r bigl bigo : good st J kl cl ko co r ->
  (forall j, In j J -> Rabs (sh j - (s j + Cs)) <= a j) -> (forall j, In j J -> s j + a j <= Mp) ->
  0 < low K s A a J Mp kl cl r bigl ->
  Rabs (finish st - exact K s vv J) <= tolerance K s vv A a J Mp kl cl ko co r bigl bigo uf eta.
Proof.
  destruct st as [[m l] o]. intros [(tl & to_ & Pm & Pp & SL & SO) (i & Ii & Ei) _ _] Ha HM Hd. simpl in *.
  apply (attention_error K s sh vv A A_sane a J Mp kl cl ko co r bigl bigo tl to_ m l o Cs uf eta _ r r); auto.
  - intros ->. destruct Ii.
  - exists i. split; auto. simpl. lra.
  - left. apply uf_pos.
  - apply rnd_near.
Qed.

(** Two passes, sums in any two orders: no rescaling. *)
Theorem two_pass_tolerance tl to_ bigl bigo : Permutation (leaves tl) (leaves to_) ->
  (forall j, In j (leaves to_) -> Rabs (sh j - (s j + Cs)) <= a j) -> (forall j, In j (leaves to_) ->
    s j + a j <= Mp) ->
  exists cl co, (cl + 1 <= 2 * length (leaves to_) /\ co + 1 <= 2 * length (leaves to_))%nat /\
  (0 < low K s A a (leaves to_) Mp (depth tl) cl 0 bigl ->
   Rabs (finish (two_pass tl to_) - exact K s vv (leaves to_)) <=
     tolerance K s vv A a (leaves to_) Mp (depth tl) cl (depth to_) co 0 bigl bigo uf eta).
Proof.
  intros Hp Ha HM. destruct (good_two_pass tl to_ Hp) as (cl & co & G & C).
  exists cl, co. split; [auto|]. intros Hd. apply good_tolerance; auto.
Qed.

(** A running maximum over any number of blocks, each in any two orders. *)
Definition keys_of (bs : list (tree * tree)) := concat (map (fun b => leaves (snd b)) bs).
Lemma good_steps h bs : Forall (fun b => Permutation (leaves (fst b)) (leaves (snd b))) bs ->
  Forall (fun b => depth (fst b) <= h /\ depth (snd b) <= h)%nat bs -> forall r st J kl cl ko co,
  good st J kl cl ko co r -> (kl <= h + 2 * r /\ ko <= h + 2 * r)%nat ->
  (cl + 1 <= 2 * length J + r /\ co + 1 <= 2 * length J + r)%nat ->
  exists kl cl ko co, good (fold_left step bs st) (J ++ keys_of bs) kl cl ko co (r + length bs) /\
    (kl <= h + 2 * (r + length bs) /\ ko <= h + 2 * (r + length bs))%nat /\
    (cl + 1 <= 2 * length (J ++ keys_of bs) + (r + length bs) /\
     co + 1 <= 2 * length (J ++ keys_of bs) + (r + length bs))%nat.
Proof.
  induction bs as [|b1 bs IH]; intros F D r st J kl cl ko co G C C2; unfold keys_of; simpl.
  - rewrite app_nil_r. exists kl, cl, ko, co. replace (r + 0)%nat with r by lia. auto.
  - destruct (good_step st J kl cl ko co r b1 G (Forall_inv F)) as (cl' & co' & G' & C').
    rewrite app_assoc. assert (D1 := Forall_inv D). simpl in D1.
    destruct (IH (Forall_inv_tail F) (Forall_inv_tail D) (S r) _ _ _ _ _ _ G')
      as (kl2 & cl2 & ko2 & co2 & G2 & Ck & Cc); [lia|rewrite app_length; lia|].
    exists kl2, cl2, ko2, co2. replace (r + S (length bs))%nat with (S r + length bs)%nat by lia.
    split; [apply G2 | split; [lia|apply Cc]].
Qed.

Lemma good_online b bs h : Forall (fun b => Permutation (leaves (fst b)) (leaves (snd b))) (b :: bs) ->
  Forall (fun b => depth (fst b) <= h /\ depth (snd b) <= h)%nat (b :: bs) ->
  exists kl cl ko co, good (online b bs) (keys_of (b :: bs)) kl cl ko co (length bs) /\
    (kl <= h + 2 * length bs /\ ko <= h + 2 * length bs)%nat /\
    (cl + 1 <= 2 * length (keys_of (b :: bs)) + length bs /\
     co + 1 <= 2 * length (keys_of (b :: bs)) + length bs)%nat.
Proof.
  intros F D. destruct (good_two_pass (fst b) (snd b) (Forall_inv F)) as (cl & co & G & C).
  assert (D1 := Forall_inv D). simpl in D1.
  apply (good_steps h bs (Forall_inv_tail F) (Forall_inv_tail D) 0 _ _ _ _ _ _ G); lia.
Qed.

Theorem online_tolerance b bs h bigl bigo : Forall (fun b => Permutation (leaves (fst b)) (leaves (snd b))) (b :: bs) ->
  Forall (fun b => depth (fst b) <= h /\ depth (snd b) <= h)%nat (b :: bs) ->
  let J := keys_of (b :: bs) in
  (forall j, In j J -> Rabs (sh j - (s j + Cs)) <= a j) -> (forall j, In j J -> s j + a j <= Mp) ->
  exists kl cl ko co, (kl <= h + 2 * length bs /\ ko <= h + 2 * length bs /\
    cl + 1 <= 2 * length J + length bs /\ co + 1 <= 2 * length J + length bs)%nat /\
  (0 < low K s A a J Mp kl cl (length bs) bigl ->
   Rabs (finish (online b bs) - exact K s vv J) <= tolerance K s vv A a J Mp kl cl ko co (length bs) bigl bigo uf eta).
Proof.
  intros F D J Ha HM. destruct (good_online b bs h F D) as (kl & cl & ko & co & G & Ck & Cc). exists kl, cl, ko, co.
  fold J in Cc. split; [lia|]. intros Hd. apply good_tolerance; auto.
Qed.

(** Split and merge: any tree of merges of online states. *)
Theorem combine_tolerance s1 s2 J1 J2 kl1 cl1 ko1 co1 kl2 cl2 ko2 co2 r bigl bigo :
  good s1 J1 kl1 cl1 ko1 co1 r -> good s2 J2 kl2 cl2 ko2 co2 r ->
  let J := J1 ++ J2 in let kl := S (Nat.max (S kl1) (S kl2)) in let ko := S (Nat.max (S ko1) (S ko2)) in
  (forall j, In j J -> Rabs (sh j - (s j + Cs)) <= a j) -> (forall j, In j J -> s j + a j <= Mp) ->
  exists cl co,
  (0 < low K s A a J Mp kl cl (S r) bigl ->
   Rabs (finish (combine s1 s2) - exact K s vv J) <= tolerance K s vv A a J Mp kl cl ko co (S r) bigl bigo uf eta).
Proof.
  intros G1 G2 J kl ko Ha HM. destruct (good_combine _ _ _ _ _ _ _ _ _ _ _ _ _ G1 G2) as (cl & co & G).
  exists cl, co. intros Hd. apply good_tolerance; auto.
Qed.
End Kernel.
End Rounding.
