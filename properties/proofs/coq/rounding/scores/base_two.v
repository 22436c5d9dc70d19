(** Exponents of 2: what [sums_key] and [sums_rescale_exp] ask of an exponent, met by log2(e) on its own, by a scale
    that is folded into it, and by a program of a running maximum that does so. *)
From Coq Require Import Reals List Lra Lia Psatz Permutation ZArith.
From Flocq Require Import Core.
From Attest.Rounding Require Import basics scores score_variants merge bound kernels.
Import ListNotations.
Open Scope R_scope.

(** What exp2 is given counts log 2 each. *)
Definition nats (y : R) := y * ln 2.
Lemma ln2_pos : 0 < ln 2.
Proof. rewrite <- ln_1. apply ln_increasing; lra. Qed.
Lemma ln2_le1 : ln 2 <= 1.
Proof. assert (Q := ln_le_minus1 2). lra. Qed.
Lemma ln2_below : ln 2 <= 5 / 6.
Proof.
  replace 2 with (4 / 3 * (3 / 2)) by lra. rewrite ln_mult by lra.
  assert (A1 := ln_le_minus1 (4 / 3)). assert (A2 := ln_le_minus1 (3 / 2)). lra.
Qed.
Lemma nats_abs y : Rabs (nats y) = Rabs y * ln 2.
Proof. unfold nats. rewrite Rabs_mult, (Rabs_pos_eq (ln 2)); auto. left. apply ln2_pos. Qed.
Lemma near_nats u lam x y : near u lam x y -> near u (lam * ln 2) (nats x) (nats y).
Proof.
  unfold near. intros H. assert (P := ln2_pos). replace (nats y - nats x) with (nats (y - x)) by (unfold nats; ring).
  rewrite !nats_abs. assert (Rabs (y - x) * ln 2 <= (u * Rabs x + lam) * ln 2) by (apply Rmult_le_compat_r; lra). lra.
Qed.
Lemma nats_le lam : 0 <= lam -> lam * ln 2 <= lam.
Proof. intros. assert (Q := ln2_le1). nra. Qed.

(** A difference of scores, or of references, that is then multiplied by log2(e) as the kernel has it, (1 + dl) log2(e):
    two roundings of the exponent. That constant is common to all keys ([constants_are_common]): it scales scores and
    references alike. *)
Theorem exponent_times_log2e u lam1 lam2 dl sh m y e2 : 0 <= u -> 0 <= lam2 ->
  near u lam1 (sh - m) y -> near u lam2 (y * ((1 + dl) / ln 2)) e2 ->
  Rabs (nats e2 - ((1 + dl) * sh - (1 + dl) * m)) <=
    ((1 + u) * (1 + u) - 1) * Rabs ((1 + dl) * sh - (1 + dl) * m) + (1 + u) * (Rabs (1 + dl) * lam1) + lam2.
Proof.
  intros Hu H2 N1 N2. assert (P := ln2_pos). apply near_nats in N2.
  replace (nats (y * ((1 + dl) / ln 2))) with ((1 + dl) * y) in N2 by (unfold nats; field; lra).
  replace ((1 + dl) * sh - (1 + dl) * m) with ((1 + dl) * (sh - m)) by ring.
  assert (N1' : near u (Rabs (1 + dl) * lam1) ((1 + dl) * (sh - m)) ((1 + dl) * y)).
  { unfold near in *. replace ((1 + dl) * y - (1 + dl) * (sh - m)) with ((1 + dl) * (y - (sh - m))) by ring.
    rewrite !Rabs_mult. assert (Q := times_le _ _ _ (Rabs_pos (1 + dl)) N1). lra. }
  assert (Q := near_trans _ _ _ _ _ _ _ Hu N1' N2). unfold near in Q. assert (L := nats_le _ H2). lra.
Qed.

(** A scale that is folded into the exponent: y - M c with M c rounded apart, c the scale times log2(e) as the kernel
    has it, y the product times c, rounded or not (fused). *)
Section Folded.
Variables u lam1 lam2 y M c mc e2 : R.
Hypothesis Hu : 0 <= u.
Hypothesis Hl1 : 0 <= lam1.
Hypothesis Hl2 : 0 <= lam2.
Hypothesis Hmc : near u lam1 (M * c) mc.
Hypothesis He2 : near u lam2 (y - mc) e2.
Local Notation sh := (nats y).
Local Notation m := (nats (M * c)).
Definition residual := nats (M * c - mc).

Lemma residual_size : Rabs residual <= u * Rabs m + lam1.
Proof.
  unfold residual. rewrite !nats_abs, Rabs_minus_sym. assert (P := ln2_pos). unfold near in Hmc.
  assert (Q := nats_le _ Hl1).
  assert (Rabs (mc - M * c) * ln 2 <= (u * Rabs (M * c) + lam1) * ln 2) by (apply Rmult_le_compat_r; lra). lra.
Qed.

(** c_m of error-bounds.md 1.1, as an error of the exponent: what [sums_key] asks, with xl the residual. *)
Theorem folded_exponent :
  Rabs (nats e2 - (sh - m)) <= u * Rabs (sh - m) + ((1 + u) * (u * Rabs m + lam1) + lam2).
Proof.
  assert (N := near_nats _ _ _ _ He2). assert (R0 := residual_size). unfold near in N.
  assert (E : nats (y - mc) = (sh - m) + residual) by (unfold residual, nats; ring). rewrite E in N.
  assert (L := nats_le _ Hl2).
  replace (nats e2 - (sh - m)) with ((nats e2 - (sh - m + residual)) + residual) by ring.
  eapply Rle_trans; [apply Rabs_triang|].
  assert (A : Rabs (sh - m + residual) <= Rabs (sh - m) + (u * Rabs m + lam1))
    by (eapply Rle_trans; [apply Rabs_triang|]; lra).
  assert (B := times_le u _ _ Hu A). lra.
Qed.

(** The same as an error of the score, which may then exceed the reference by the residual: of each key its own. *)
Lemma folded_exponent_as_score : Rabs (nats e2 - (sh + residual - m)) <= u * Rabs (sh + residual - m) + lam2.
Proof.
  assert (N := near_nats _ _ _ _ He2). unfold near in N.
  replace (nats (y - mc)) with (sh + residual - m) in N by (unfold residual, nats; ring).
  assert (L := nats_le _ Hl2). lra.
Qed.
End Folded.

(** Q_j of error-bounds.md: a reference lies between a score that it was subtracted from, but for T, and the largest. *)
Lemma reference_size sh m top T : sh <= m + T -> m <= top -> 0 <= T -> Rabs m <= Rmax (Rabs sh + T) (Rabs top).
Proof.
  intros H1 H2 HT. assert (A := Rmax_l (Rabs sh + T) (Rabs top)). assert (B := Rmax_r (Rabs sh + T) (Rabs top)).
  assert (C1 := Rle_abs (- sh)). rewrite Rabs_Ropp in C1. assert (C2 := Rle_abs top). apply Rabs_le_iff. lra.
Qed.

(** 1.7.34: numbers below lam_in are read as 0 on both sides of a difference, and its result is flushed. *)
Lemma flushed_difference u lam lam_in sh m rs rm y : 0 <= u -> reads lam_in sh rs -> reads lam_in m rm ->
  near u lam (rs - rm) y -> near u ((1 + u) * (2 * lam_in) + lam) (sh - m) y.
Proof.
  intros Hu [R1 _] [R2 _] N. unfold near. assert (D : Rabs ((rs - rm) - (sh - m)) <= 2 * lam_in).
  { replace (rs - rm - (sh - m)) with ((rs - sh) - (rm - m)) by ring. unfold Rminus at 1.
    eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_Ropp. lra. }
  assert (Q := rounded_again _ _ _ _ _ _ Hu D N). lra.
Qed.

(** ** A running maximum of products that are not scaled yet: exp2(fma(x, c, -fl(M c))), and factors exp2(fl(fl(M - M')
    c)), over Flocq's rounding. *)
Section Program.
Variables emin prec : Z.
Context {Hprec : Prec_gt_0 prec}.
Local Notation rnd := (rnd emin prec).
Local Notation inF := (inF emin prec).
Local Notation uf := (uf prec).
Local Notation eta := (eta emin).
Variable K : Type.
Variables x vv : K -> R.   (* products as computed, values *)
Variable c : R.
Hypothesis Hc : 0 < c.
Variable fexp2 : R -> R.
Variables epsE lamE : R.
Hypothesis HepsE : 0 <= epsE < 1.
Hypothesis HlamE : 0 <= lamE.
Hypothesis exp2_good : forall y, y <= 1 -> 0 <= fexp2 y /\ rounded epsE lamE (exp (nats y)) (fexp2 y).
Hypothesis exp2_inF : forall y, inF (fexp2 y).
Hypothesis x_inF : forall j, inF (x j).
Local Notation tree := (tree K).
Local Notation leaves := (leaves K).
Local Notation depth := (depth K).
Local Notation top := (tmax K x).

Definition wt2 M j := fexp2 (rnd (x j * c - rnd (M * c))).
Definition factor2 M M' := fexp2 (rnd (rnd (M - M') * c)).
Fixpoint suml2 M (t : tree) := match t with Leaf _ j => wt2 M j | Node _ a b => rnd (suml2 M a + suml2 M b) end.
Fixpoint sumo2 M (t : tree) := match t with Leaf _ j => rnd (wt2 M j * vv j) | Node _ a b => rnd (sumo2 M a + sumo2 M
  b) end.
Definition first2 (b : tree * tree) : state := (top (fst b), suml2 (top (fst b)) (fst b), sumo2 (top (fst b)) (snd b)).
Definition step2 (s : state) (b : tree * tree) : state :=
  let '(M, l, o) := s in let M' := Rmax M (top (fst b)) in let f := factor2 M M' in
  (M', rnd (rnd (f * l) + suml2 M' (fst b)), rnd (rnd (f * o) + sumo2 M' (snd b))).
Definition online2 b bs := fold_left step2 bs (first2 b).

(** The reference that each key meets, and how far that is off once multiplied. *)
Variable ref : K -> R.
Fixpoint meets M (bs : list (tree * tree)) : Prop :=
  match bs with
  | [] => True
  | b :: rest => let M' := Rmax M (top (fst b)) in (forall j, In j (leaves (fst b)) -> ref j = M') /\ meets M' rest
  end.

(** ** Its sums, with whatever scores and errors of exponents they are held to. *)
Definition claims2 (xl' T' gap' off' last' : R) : arith := {| u := uf; lam := eta; thE := (1 + uf) * (1 + uf) - 1;
  xl := xl'; xr := eta; T := T'; gap := gap'; off := off'; last := last'; eps := epsE; lame := lamE; up := 0;
  lamp := 0; upd := 0; lampd := 0; nearest := true; additions := None |}.
Section Sums.
Variables xl' T' gap' off' last' : R.
Local Notation Ax := (claims2 xl' T' gap' off' last').
Hypothesis sane_x : sane Ax.
Variables shx xkx : K -> R.
Hypothesis Keyx : forall M j, x j <= M -> ref j = M ->
  shx j - nats (M * c) <= T' /\
  Rabs (nats (rnd (x j * c - rnd (M * c))) - (shx j - nats (M * c))) <= thE Ax * Rabs (shx j - nats (M * c)) + xkx j /\
  exponential Ax (nats (rnd (x j * c - rnd (M * c)))) (wt2 M j).
Definition term2 M j := (j, nats (rnd (x j * c - rnd (M * c))) - (shx j - nats (M * c)) +
  split Ax (nats (rnd (x j * c - rnd (M * c)))) (wt2 M j)).

Lemma suml2_inF M t : inF (suml2 M t).
Proof. destruct t; simpl; [apply exp2_inF|apply rnd_inF; auto]. Qed.
Lemma sumo2_inF M t : inF (sumo2 M t).
Proof. destruct t; simpl; apply rnd_inF; auto. Qed.

Lemma adds2 y z : inF y -> inF z -> adds Ax y z (rnd (y + z)).
Proof. intros Hy Hz. exact (rnd_adds emin prec 0 0 y z Hy Hz). Qed.

Lemma suml2_sums M t : (forall j, In j (leaves t) -> x j <= M /\ ref j = M) ->
  exists n, sums_by K shx Ax xkx (one K) (w_l Ax) (lampd Ax) (map (term2 M) (leaves t)) (nats (M * c)) (suml2 M t)
    (depth t) 0 n /\ (n <= ops (length (leaves t)))%nat.
Proof.
  induction t as [j|a IHa b IHb]; simpl; intros H.
  - exists 1%nat. split; [|unfold ops; lia]. destruct (H j (or_introl eq_refl)) as [Hx Hr].
    destruct (Keyx M j Hx Hr) as (H1 & H2 & H3).
    apply (sums_by_key K shx Ax xkx (one K) (w_l Ax) (lampd Ax) j _ (nats (rnd (x j * c - rnd (M * c)))) (wt2 M j));
      auto.
    assert (Q := eta_pos emin). destruct H3 as [P _]. unfold one, w_l. simpl.
    replace (wt2 M j - wt2 M j * 1) with 0 by ring. rewrite Rabs_R0, Rabs_R1, Rmin_left by lra. lra.
  - destruct IHa as (ca & Sa & La); [intros; apply H; rewrite in_app_iff; auto|].
    destruct IHb as (cb & Sb & Lb); [intros; apply H; rewrite in_app_iff; auto|].
    exists (S (ca + cb)). split.
    + rewrite map_app. apply (sums_by_add K shx Ax xkx (one K) (w_l Ax) (lampd Ax) _ _ _ (suml2 M a) (suml2 M b) _
        (depth a) 0 ca (depth b) 0 cb); auto. apply adds2; apply suml2_inF.
    + rewrite app_length. assert (Na := leaves_ne K a). assert (Nb := leaves_ne K b).
      destruct (leaves a), (leaves b); try congruence. simpl in *. unfold ops in *. lia.
Qed.
Lemma sumo2_sums M t : (forall j, In j (leaves t) -> x j <= M /\ ref j = M) ->
  exists n, sums_by K shx Ax xkx vv (w_o Ax) ((1 + u Ax) * lamp Ax) (map (term2 M) (leaves t)) (nats (M * c))
    (sumo2 M t) (depth t) 0 n /\ (n <= ops (length (leaves t)))%nat.
Proof.
  induction t as [j|a IHa b IHb]; simpl; intros H.
  - exists 1%nat. split; [|unfold ops; lia]. destruct (H j (or_introl eq_refl)) as [Hx Hr].
    destruct (Keyx M j Hx Hr) as (H1 & H2 & H3).
    apply (sums_by_key K shx Ax xkx vv (w_o Ax) _ j _ (nats (rnd (x j * c - rnd (M * c)))) (wt2 M j)); auto.
    destruct H3 as [P _]. assert (Q := rnd_near emin prec (wt2 M j * vv j)). assert (U := uf_pos prec).
    unfold near in Q. rewrite Rabs_mult, (Rabs_pos_eq (wt2 M j)) in Q by auto. unfold w_o. simpl.
    rewrite Rmin_left by (rewrite Rmult_0_r; repeat apply Rmult_le_pos; lra). lra.
  - destruct IHa as (ca & Sa & La); [intros; apply H; rewrite in_app_iff; auto|].
    destruct IHb as (cb & Sb & Lb); [intros; apply H; rewrite in_app_iff; auto|].
    exists (S (ca + cb)). split.
    + rewrite map_app. apply (sums_by_add K shx Ax xkx vv (w_o Ax) _ _ _ _ (sumo2 M a) (sumo2 M b) _ (depth a) 0 ca
        (depth b) 0 cb); auto. apply adds2; apply sumo2_inF.
    + rewrite app_length. assert (Na := leaves_ne K a). assert (Nb := leaves_ne K b).
      destruct (leaves a), (leaves b); try congruence. simpl in *. unfold ops in *. lia.
Qed.

Record good_by (s : state) (J : list K) (kl cl ko co r : nat) : Prop := {
  g2_terms : exists tl to_, Permutation (map fst to_) J /\ Permutation tl to_ /\
    sums_by K shx Ax xkx (one K) (w_l Ax) (lampd Ax) tl (nats (fst (fst s) * c)) (snd (fst s)) kl r cl /\
    sums_by K shx Ax xkx vv (w_o Ax) ((1 + u Ax) * lamp Ax) to_ (nats (fst (fst s) * c)) (snd s) ko r co;
  g2_m : exists i, In i J /\ fst (fst s) = x i;
  g2_inF : inF (fst (fst s)) /\ inF (snd (fst s)) /\ inF (snd s);
  g2_counts : (cl + 1 <= 2 * length J + r /\ co + 1 <= 2 * length J + r)%nat }.

Lemma good_by_first b : Permutation (leaves (fst b)) (leaves (snd b)) ->
  (forall j, In j (leaves (fst b)) -> ref j = top (fst b)) ->
  exists cl co, good_by (first2 b) (leaves (snd b)) (depth (fst b)) cl (depth (snd b)) co 0.
Proof.
  destruct b as [tl to_]. simpl. intros Hp Hr. set (M := top tl).
  assert (Hl : forall j, In j (leaves tl) -> x j <= M /\ ref j = M).
  { intros j Ij. split; [apply tmax_ge; auto|auto]. }
  assert (Ho : forall j, In j (leaves to_) -> x j <= M /\ ref j = M).
  { intros j Ij. apply Hl. eapply Permutation_in; [apply Permutation_sym; eauto|auto]. }
  destruct (suml2_sums M tl Hl) as (cl & Sl & Ll). destruct (sumo2_sums M to_ Ho) as (co & So & Lo).
  exists cl, co. rewrite (Permutation_length Hp) in Ll. constructor.
  - exists (map (term2 M) (leaves tl)), (map (term2 M) (leaves to_)). simpl. repeat split; auto.
    + rewrite map_map. simpl. rewrite map_id. auto.
    + apply Permutation_map. auto.
  - destruct (tmax_in K x tl) as (j & Ij & Ej). exists j. split; auto. eapply Permutation_in; eauto.
  - simpl. split; [apply tmax_inF; auto|]. split; [apply suml2_inF|apply sumo2_inF].
  - assert (N := leaves_ne K to_). destruct (leaves to_); try congruence. simpl in *. unfold ops in *. lia.
Qed.

Lemma factor2_exponent M M' : inF M -> inF M' -> M <= M' ->
  let e := nats (rnd (rnd (M - M') * c)) in
  Rabs (e - (nats (M * c) - nats (M' * c))) <= thE Ax * (nats (M' * c) - nats (M * c)) + xr Ax /\
  exponential Ax e (factor2 M M').
Proof.
  intros H1 H2 H e. assert (U := uf_pos prec). assert (Et := eta_pos emin). assert (L := ln2_pos). split.
  - assert (N1 := rnd_minus emin prec _ _ H1 H2).
    assert (N1' : near uf 0 (nats ((M - M') * c)) (nats (rnd (M - M') * c))).
    { unfold near, nats. replace (rnd (M - M') * c * ln 2 - (M - M') * c * ln 2) with ((rnd (M - M') - (M - M')) * (c *
        ln 2)) by ring. replace ((M - M') * c * ln 2) with ((M - M') * (c * ln 2)) by ring. rewrite !Rabs_mult.
      assert (Rabs (rnd (M - M') - (M - M')) * (Rabs c * Rabs (ln 2)) <= uf * Rabs (M - M') * (Rabs c * Rabs (ln 2)))
        by (apply Rmult_le_compat_r; auto; apply Rmult_le_pos; apply Rabs_pos). lra. }
    assert (N2 := near_nats _ _ _ _ (rnd_near emin prec (rnd (M - M') * c))).
    assert (Q := near_trans _ _ _ _ _ _ _ (Rlt_le _ _ U) N1' N2). unfold near in Q. fold e in Q.
    replace (nats ((M - M') * c)) with (nats (M * c) - nats (M' * c)) in Q by (unfold nats; ring).
    assert (nats (M * c) <= nats (M' * c)).
    { unfold nats. apply Rmult_le_compat_r; [lra|]. apply Rmult_le_compat_r; lra. }
    rewrite (Rabs_left1 (nats (M * c) - nats (M' * c))) in Q by lra. assert (Le := nats_le eta ltac:(lra)). simpl. lra.
  - simpl. apply exp2_good. assert (Z : rnd 0 = 0) by (unfold kernels.rnd; rewrite round_0; [auto|apply valid_rnd_N]).
    apply Rle_trans with (rnd 0); [|lra]. apply round_le; [apply FLT_exp_valid; auto|apply valid_rnd_N|].
    assert (rnd (M - M') <= 0).
    { rewrite <- Z. apply round_le; [apply FLT_exp_valid; auto|apply valid_rnd_N|lra]. }
    assert (0 <= - rnd (M - M') * c) by (apply Rmult_le_pos; lra). lra.
Qed.

Lemma good_by_step s J kl cl ko co r b : good_by s J kl cl ko co r -> Permutation (leaves (fst b)) (leaves (snd b)) ->
  (forall j, In j (leaves (fst b)) -> ref j = Rmax (fst (fst s)) (top (fst b))) ->
  exists cl' co', good_by (step2 s b) (J ++ leaves (snd b)) (S (Nat.max (S kl) (depth (fst b)))) cl' (S (Nat.max (S ko)
    (depth (snd b)))) co' (S r).
Proof.
  destruct s as [[M l] o]. destruct b as [tl to_]. simpl.
  intros [(sl & so & Pm & Pp & SL & SO) (i & Ii & Ei) (Fm & Fl & Fo) Cn] Hp Hr.
  simpl in *. set (M' := Rmax M (top tl)) in *.
  assert (Fm' : inF M') by (unfold M', Rmax; destruct (Rle_dec _ _); auto; apply tmax_inF; auto).
  assert (Hm : M <= M') by apply Rmax_l.
  assert (Hm2 : nats (M * c) <= nats (M' * c)).
  { unfold nats. apply Rmult_le_compat_r; [left; apply ln2_pos|]. apply Rmult_le_compat_r; lra. }
  assert (Hl : forall j, In j (leaves tl) -> x j <= M' /\ ref j = M').
  { intros j Ij. split; [eapply Rle_trans; [apply tmax_ge; eauto|apply Rmax_r]|auto]. }
  assert (Ho : forall j, In j (leaves to_) -> x j <= M' /\ ref j = M').
  { intros j Ij. apply Hl. eapply Permutation_in; [apply Permutation_sym; eauto|auto]. }
  destruct (suml2_sums M' tl Hl) as (c1 & S1 & L1). destruct (sumo2_sums M' to_ Ho) as (c2 & S2 & L2).
  destruct (factor2_exponent M M' Fm Fm' Hm) as [E1 E2].
  exists (S (S cl + c1)), (S (S co + c2)).
  assert (R1 := sums_by_rescale_exp K shx Ax sane_x xkx (one K) (w_l Ax) (lampd Ax) sl _ l kl r cl _ _ _ _ SL Hm2 E1 E2
    (rnd_near emin prec _)).
  assert (R2 := sums_by_rescale_exp K shx Ax sane_x xkx vv (w_o Ax) _ so _ o ko r co _ _ _ _ SO Hm2 E1 E2
    (rnd_near emin prec _)).
  constructor; simpl.
  - eexists _, _. split; [|split; [|split]].
    3: { assert (Q := sums_by_add K shx Ax xkx (one K) (w_l Ax) (lampd Ax) _ _ _ _ _ _ _ _ _ _ _ _ R1 S1
           (adds2 _ _ (rnd_inF emin prec _) (suml2_inF _ _))). rewrite Nat.max_0_r in Q. exact Q. }
    3: { assert (Q := sums_by_add K shx Ax xkx vv (w_o Ax) _ _ _ _ _ _ _ _ _ _ _ _ _ R2 S2
           (adds2 _ _ (rnd_inF emin prec _) (sumo2_inF _ _))). rewrite Nat.max_0_r in Q. exact Q. }
    + rewrite map_app. apply Permutation_app; [unfold rescaled; rewrite map_map; simpl; auto|].
      rewrite map_map. simpl. rewrite map_id. auto.
    + apply Permutation_app; apply Permutation_map; auto.
  - unfold M', Rmax. destruct (Rle_dec _ _).
    + destruct (tmax_in K x tl) as (j & Ij & Ej). exists j. split; auto. apply in_or_app. right.
      eapply Permutation_in; eauto.
    + exists i. split; auto. apply in_or_app. auto.
  - split; [auto|]. split; apply rnd_inF; auto.
  - rewrite app_length. rewrite (Permutation_length Hp) in L1. assert (N := leaves_ne K to_).
    destruct (leaves to_); try congruence. simpl in *. unfold ops in *. lia.
Qed.

Lemma good_by_steps h bs : Forall (fun b => Permutation (leaves (fst b)) (leaves (snd b))) bs ->
  Forall (fun b => depth (fst b) <= h /\ depth (snd b) <= h)%nat bs -> forall r st J kl cl ko co,
  good_by st J kl cl ko co r -> meets (fst (fst st)) bs -> (kl <= h + 2 * r /\ ko <= h + 2 * r)%nat ->
  exists kl cl ko co, good_by (fold_left step2 bs st) (J ++ keys_of K bs) kl cl ko co (r + length bs) /\
    (kl <= h + 2 * (r + length bs) /\ ko <= h + 2 * (r + length bs))%nat.
Proof.
  induction bs as [|b1 bs IH]; intros F D r st J kl cl ko co G Me C; unfold keys_of; simpl.
  - rewrite app_nil_r. exists kl, cl, ko, co. replace (r + 0)%nat with r by lia. auto.
  - destruct Me as [M1 M2]. destruct (good_by_step st J kl cl ko co r b1 G (Forall_inv F) M1) as (cl' & co' & G').
    rewrite app_assoc. assert (D1 := Forall_inv D). simpl in D1.
    assert (Ref : fst (fst (step2 st b1)) = Rmax (fst (fst st)) (top (fst b1))) by (destruct st as [[? ?] ?]; auto).
    destruct (IH (Forall_inv_tail F) (Forall_inv_tail D) (S r) _ _ _ _ _ _ G') as (kl2 & cl2 & ko2 & co2 & G2 & C2);
      [rewrite Ref; auto|lia|].
    exists kl2, cl2, ko2, co2. replace (r + S (length bs))%nat with (S r + length bs)%nat by lia.
    split; [apply G2 | lia].
Qed.

End Sums.

(** The scores with what references are off by in them. *)
Local Notation left_over j := (residual (ref j) c (rnd (ref j * c))).
Definition sh2 j := nats (x j * c) + left_over j.
Variable off : K -> R.
Variable rho : R.
Hypothesis Hoff : forall j, Rabs (left_over j) <= off j.
Hypothesis Hrho : forall j, off j <= rho.
(** D2 of error-bounds.md. *)
Hypothesis D2 : forall j, Rabs (ref j * c - rnd (ref j * c)) <= / 4.

Definition A2 : arith := claims2 eta rho rho 0 0.
Hypothesis Hprec2 : uf <= / 4.
Hypothesis Heta : eta <= / 4.
Hypothesis Hrho0 : 0 <= rho.
Lemma A2_sane : sane A2.
Proof. assert (P := uf_pos prec). assert (Q := eta_pos emin). constructor; simpl; try lra. nra. Qed.

Lemma key2 M j : x j <= M -> ref j = M ->
  sh2 j - nats (M * c) <= rho /\
  Rabs (nats (rnd (x j * c - rnd (M * c))) - (sh2 j - nats (M * c))) <= thE A2 * Rabs (sh2 j - nats (M * c)) + xl A2 /\
  exponential A2 (nats (rnd (x j * c - rnd (M * c)))) (wt2 M j).
Proof.
  intros Hx Hr. assert (U := uf_pos prec). assert (Et := eta_pos emin). assert (L := ln2_pos).
  assert (S := Hoff j). assert (O := Hrho j). assert (B := Rabs_bounds _ _ S).
  assert (X : x j * c <= M * c) by (apply Rmult_le_compat_r; lra).
  split; [|split].
  - assert (nats (x j * c) <= nats (M * c)) by (unfold nats; apply Rmult_le_compat_r; lra). unfold sh2. lra.
  - assert (Q := folded_exponent_as_score uf eta (x j * c) M c (rnd (M * c)) (rnd (x j * c - rnd (M * c))) ltac:(lra)
      (rnd_near emin prec _)). unfold sh2. rewrite Hr.
    set (z := Rabs (nats (x j * c) + residual M c (rnd (M * c)) - nats (M * c))) in *. simpl.
    assert (0 <= z) by apply Rabs_pos. assert (0 <= uf * z) by (apply Rmult_le_pos; lra).
    assert (0 <= uf * (uf * z)) by (apply Rmult_le_pos; lra). lra.
  - simpl. apply exp2_good. assert (N := D2 j). rewrite <- Hr in *. apply Rabs_bounds in N. set (z := x j * c - rnd
    (ref j * c)).
    assert (Z : z <= / 4) by (unfold z; lra).
    destruct (Rle_dec z 0) as [Z0|Z0].
    + apply Rle_trans with (rnd 0); [apply round_le; [apply FLT_exp_valid; auto|apply valid_rnd_N|auto]|].
      unfold kernels.rnd. rewrite round_0; [lra|apply valid_rnd_N].
    + assert (N2 := rnd_near emin prec z). unfold near in N2. rewrite (Rabs_pos_eq z) in N2 by lra.
      apply Rabs_bounds in N2. assert (uf * z <= / 4 * z) by (apply Rmult_le_compat_r; lra). lra.
Qed.

Definition good2 := good_by eta rho rho 0 0 sh2 (plain K A2).
(** Its tolerance: c_m u_e Q_j stands in the error of each score. *)
Variables s a : K -> R.
Variables Mp Cs : R.
Theorem folded_online_tolerance b bs h bigl bigo :
  Forall (fun b => Permutation (leaves (fst b)) (leaves (snd b))) (b :: bs) ->
  Forall (fun b => depth (fst b) <= h /\ depth (snd b) <= h)%nat (b :: bs) ->
  (forall j, In j (leaves (fst b)) -> ref j = top (fst b)) -> meets (top (fst b)) bs ->
  let J := keys_of K (b :: bs) in let a' := fun j => a j + off j in
  (forall j, In j J -> Rabs (nats (x j * c) - (s j + Cs)) <= a j) -> (forall j, In j J -> s j + a' j <= Mp) ->
  exists kl cl ko co, (kl <= h + 2 * length bs /\ ko <= h + 2 * length bs /\
    cl + 1 <= 2 * length J + length bs /\ co + 1 <= 2 * length J + length bs)%nat /\
  (0 < low K s A2 a' J Mp kl cl (length bs) bigl ->
   Rabs (finish emin prec (online2 b bs) - exact K s vv J) <=
     tolerance K s vv A2 a' J Mp kl cl ko co (length bs) bigl bigo uf eta).
Proof.
  intros F D M1 M2 J a' Ha HM.
  destruct (good_by_first eta rho rho 0 0 sh2 (plain K A2) key2 b (Forall_inv F) M1) as (cl0 & co0 & G0).
  assert (D1 := Forall_inv D). simpl in D1.
  destruct (good_by_steps eta rho rho 0 0 A2_sane sh2 (plain K A2) key2 h bs (Forall_inv_tail F) (Forall_inv_tail D) 0
    _ _ _ _ _ _ G0 M2 ltac:(lia)) as (kl & cl & ko & co & G & C). exists kl, cl, ko, co.
  change (leaves (snd b) ++ keys_of K bs) with J in G. fold (online2 b bs) in G. simpl (0 + length bs)%nat in *.
  assert (Cn := g2_counts _ _ _ _ _ _ _ _ _ _ _ _ _ _ G). split; [lia|]. intros Hd.
  destruct (online2 b bs) as [[M l] o].
  destruct G as [(tl & to_ & Pm & Pp & SL & SO) (i & Ii & Ei) _ _]. simpl in *.
  apply (attention_error K s sh2 vv A2 A2_sane a' J Mp kl cl ko co (length bs) bigl bigo tl to_ (nats (M * c)) l o Cs
    uf eta
    _ (length bs) (length bs)); auto.
  - intros E. rewrite E in Ii. destruct Ii.
  - intros j Ij. unfold sh2, a'. assert (Q := Hoff j). assert (Q2 := Ha j Ij).
    replace (nats (x j * c) + left_over j - (s j + Cs))
      with ((nats (x j * c) - (s j + Cs)) + left_over j) by ring.
    eapply Rle_trans; [apply Rabs_triang|]. lra.
  - exists i. split; auto. rewrite Ei. unfold sh2. simpl. assert (Q := Rabs_bounds _ _ (Hoff i)).
    assert (Q2 := Hrho i). lra.
  - left. apply uf_pos.
  - apply rnd_near; auto.
Qed.
End Program.

(** Where no key comes twice there is such a reference. *)
Section References.
Variable K : Type.
Variable same : forall i j : K, {i = j} + {i <> j}.
Variable x : K -> R.
Fixpoint reference_of M (bs : list (tree K * tree K)) j :=
  match bs with
  | [] => M
  | b :: rest => let M' := Rmax M (tmax K x (fst b)) in
      if in_dec same j (leaves K (fst b)) then M' else reference_of M' rest j
  end.
Lemma references_exist ref bs : NoDup (concat (map (fun b => leaves K (fst b)) bs)) -> forall M,
  (forall j, In j (concat (map (fun b => leaves K (fst b)) bs)) -> ref j = reference_of M bs j) -> meets K x ref M bs.
Proof.
  induction bs as [|b rest IH]; intros N M H; simpl in *; auto.
  assert (Nr : forall l : list K, NoDup (l ++ concat (map (fun b => leaves K (fst b)) rest)) ->
    NoDup (concat (map (fun b => leaves K (fst b)) rest)) /\
    (forall j, In j (concat (map (fun b => leaves K (fst b)) rest)) -> ~ In j l)).
  { induction l as [|i l IHl]; simpl; intros Nd; [auto|]. apply NoDup_cons_iff in Nd. destruct Nd as [Ni Nd].
    destruct (IHl Nd) as [I1 I2]. split; auto. intros j Ij [->|Il]; [apply Ni; apply in_or_app; auto|].
    apply (I2 j Ij Il). }
  destruct (Nr _ N) as [N1 N2]. split.
  - intros j Ij. rewrite H by (apply in_or_app; auto). destruct (in_dec same j (leaves K (fst b))); tauto.
  - apply IH; auto. intros j Ij. rewrite H by (apply in_or_app; auto).
    destruct (in_dec same j (leaves K (fst b))) as [I|I]; auto. destruct (N2 j Ij I).
Qed.

(** All that the programs below and above ask of it. *)
Lemma references_of_blocks (P : R -> Prop) b bs : NoDup (concat (map (fun b => leaves K (fst b)) (b :: bs))) ->
  (forall j, P (x j)) ->
  exists ref, (forall j, P (ref j)) /\ (forall j, In j (leaves K (fst b)) -> ref j = tmax K x (fst b)) /\
    meets K x ref (tmax K x (fst b)) bs.
Proof.
  intros N H. assert (Pt : forall t, P (tmax K x t)) by (intros t; destruct (tmax_in K x t) as (j & _ & ->); auto).
  exists (reference_of (tmax K x (fst b)) (b :: bs)).
  assert (Me := references_exist (reference_of (tmax K x (fst b)) (b :: bs)) (b :: bs) N (tmax K x (fst b))
    (fun _ _ => eq_refl)). destruct Me as [M1 M2]. rewrite Rmax_left in M1, M2 by lra. split; auto.
  assert (All : forall bs M j, P M -> P (reference_of M bs j)).
  { intros l. induction l as [|b1 rest IH]; intros M j HM; simpl; auto.
    assert (P (Rmax M (tmax K x (fst b1)))) by (unfold Rmax; destruct (Rle_dec _ _); auto).
    destruct (in_dec _ _ _); auto. }
  intros j. apply All. auto.
Qed.
End References.
