(** Parts that are merged through their log-sum-exps (split-KV decoding), as a program over Flocq's rounding: each part
    is divided by its own sum, parts are weighted by exponentials of their log-sum-exps, and the sum of these weights
    divides the result. *)
From Coq Require Import Reals List Lra Lia Psatz Permutation ZArith.
From Flocq Require Import Core.
From Attest.Rounding Require Import basics merge bound documented kernels least_sum sizes any_reference ordinary_sizes
    entropy.
Import ListNotations.
Open Scope R_scope.

(** Finitely many choices, one for each of some numbers. *)
Lemma choose {X} (P : nat -> X -> Prop) (x0 : X) l : (forall c, In c l -> exists x, P c x) ->
  exists f : nat -> X, forall c, In c l -> P c (f c).
Proof.
  induction l as [|c l IH]; intros H; [exists (fun _ => x0); intros c []|].
  destruct (H c (or_introl eq_refl)) as [x Px]. destruct IH as [f Hf]; [intros; apply H; right; auto|].
  exists (fun c' => if Nat.eq_dec c' c then x else f c'). intros c' [->|I]; destruct (Nat.eq_dec _ _); subst; auto.
  contradiction.
Qed.

Lemma flat_map_perm {X Y} (f g : X -> list Y) l : (forall c, In c l -> Permutation (f c) (g c)) ->
  Permutation (flat_map f l) (flat_map g l).
Proof. induction l; simpl; intros H; [constructor|]. apply Permutation_app; auto. Qed.
Lemma map_flat_map {X Y Z} (h : Y -> Z) (f : X -> list Y) l : map h (flat_map f l) = flat_map (fun c => map h (f c)) l.
Proof. induction l; simpl; auto. rewrite map_app, IHl. auto. Qed.

Lemma flat_map_length_le {X Y} (f : X -> list Y) l c : In c l -> (length (f c) <= length (flat_map f l))%nat.
Proof.
  induction l; simpl; [tauto|]. rewrite app_length. intros [->|I]; [lia|]. specialize (IHl I). lia.
Qed.

Section Rounding.
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

(** ** The parts and their merge. *)
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

(** The reference of a state is the largest score of its keys. *)
Lemma good_max s0 J0 kl cl ko co rc : good emin prec K sh vv epsE lamE s0 J0 kl cl ko co rc ->
  forall j, In j J0 -> sh j <= fst (fst s0).
Proof.
  intros G j Ij. destruct (g_terms _ _ _ _ _ _ _ _ _ _ _ _ _ _ G) as (ts & to1 & Pm & _ & _ & SO).
  assert (OK := A_sane emin prec epsE lamE HepsE HlamE). assert (U0 := uf_pos prec).
  destruct (sums_spec K sh _ OK 1 Rlt_0_1 vv _ _ (wo_ge1 _ OK) (lamw_o_pos _ OK) _ _ _ _ _ _ SO) as [F0 _].
  rewrite Forall_forall in F0. apply (Permutation_in _ (Permutation_sym Pm)) in Ij. apply in_map_iff in Ij.
  destruct Ij as (t & Et & It). destruct (F0 t It) as [H _]. rewrite Et in H. simpl in H. lra.
Qed.

Definition lse c := rnd (m_ c + flog (l_ c)).
Definition mean c := rnd (o_ c / l_ c).
Definition merge_parts (tl to_ : tree nat) := finish emin prec (two_pass emin prec nat lse mean fexp tl to_).

Lemma lse_inF c : inF (lse c).
Proof. apply rnd_inF. auto. Qed.

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
Definition J := flat_map keys parts.
Hypothesis parts_good : forall c, In c parts ->
  exists kl cl ko co rc, good emin prec K sh vv epsE lamE (st c) (keys c) kl cl ko co rc /\ (rc <= R0)%nat.
Hypothesis part_of_key : forall c j, In c parts -> In j (keys c) -> part j = c.
Hypothesis parts_sum : forall c, In c parts -> exp (- del) <= l_ c.

(** The scores, their sizes, and that of the logarithms of the parts' sums. *)
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

(** What a log-sum-exp is off by, in the exponents of all keys of its part. *)
Definition err q := uf * (q + ((1 + epsL) * Lg + lamL)) + (epsL * Lg + lamL).
Definition a' j := a j + (err (Q j) + del).
Definition Ag := with_gap A0 room.
Definition Mg := top + Lg + err Qt - room.
Local Notation r := (R0 + 2)%nat.
Hypothesis Hroom : 0 <= room.
Hypothesis Hgap : P Ag (w_l Ag) (kk K J r) <= exp room * (exp (- del) - most_lost Ag n r ops).

Lemma Ag_sane : sane Ag.
Proof. apply with_gap_sane; auto. apply A0_sane. Qed.
Lemma in_J c j : In c parts -> In j (keys c) -> In j J.
Proof. intros. unfold J. apply in_flat_map. exists c. auto. Qed.

Lemma l_pos c : In c parts -> 0 < l_ c.
Proof. intros I. assert (E := exp_pos (- del)). assert (H := parts_sum c I). lra. Qed.

Lemma sum_ones (ts : list (K * R)) : Sum (fun t => Rabs (one K (fst t))) ts = INR (length ts).
Proof. rewrite (Sum_ext _ (fun _ => 1)) by (intros; unfold one; apply Rabs_R1). rewrite Sum_const. ring. Qed.
Lemma w_l_1 : 1 <= w_l A0.
Proof. unfold w_l. simpl. lra. Qed.

Lemma log_le c : In c parts -> Rabs (ln (l_ c)) <= Lg.
Proof.
  intros I. assert (Pl := l_pos c I). assert (H := parts_sum c I).
  assert (Low : - del <= ln (l_ c)).
  { rewrite <- (ln_exp (- del)). destruct H as [H|H]; [left; apply ln_increasing; auto; apply exp_pos|rewrite H; lra]. }
  destruct (parts_good c I) as (kl & cl & ko & co & rc & G & Hr).
  destruct (g_terms _ _ _ _ _ _ _ _ _ _ _ _ _ _ G) as (ts & to1 & Pm & Pp & SL & _).
  destruct (g_counts _ _ _ _ _ _ _ _ _ _ _ _ _ _ G) as [Cl _].
  destruct (sums_counts K sh A0 _ _ _ _ _ _ _ _ _ SL) as (_ & Kl & _).
  assert (W1 := w_l_1).
  assert (Sz := sums_size A0 A0_sane K sh (bound.part R0) (one K) (w_l A0) (lampd A0) _ _ _ _ _ _ (part_pos R0) W1
    ltac:(simpl; lra) SL).
  assert (Nc := flat_map_length_le keys parts c I).
  assert (Nn : (length ts <= n)%nat).
  { rewrite (Permutation_length Pp), <- (map_length fst), (Permutation_length Pm). apply flat_map_length_le. auto. }
  assert (Kk : (kl <= kk K J R0)%nat) by (unfold kk; lia). fold J in Nc.
  assert (LJ := lost_most K sh A0 ts (m_ c) kl rc cl n R0 ops A0_sane Nn Kk Hr ltac:(lia)).
  assert (I1 := le_INR _ _ Nn). assert (I0 := pos_INR (length ts)).
  rewrite sum_ones, (Rabs_pos_eq (l_ c)) in Sz by lra.
  assert (Up : l_ c <= exp Lg).
  { eapply Rle_trans; [apply Sz|]. eapply Rle_trans; [|apply HLg]. apply Rplus_le_compat; [|lra].
    assert (Pm1 := P_mono A0 A0_sane (w_l A0) W1 _ _ Kk). assert (P0 := P_ge A0 A0_sane (w_l A0) W1 kl).
    assert (Gm := gain_mono A0 A0_sane _ _ Hr). assert (Gp := gain_pos A0 rc).
    apply Rmult_le_compat; [lra|apply Rmult_le_pos; lra|auto|]. rewrite Rmult_comm. apply Rmult_le_compat; lra. }
  apply Rabs_le_iff. split; [lra|]. rewrite <- (ln_exp Lg).
  destruct Up as [Up|Up]; [left; apply ln_increasing; auto|rewrite Up; lra].
Qed.

(** The part's exponents are relative to the log-sum-exp that it hands over: what that is off by moves its scores. *)
Definition low_by c := Rmax 0 (- ln (l_ c)).
Definition zeta c := lse c - (m_ c + ln (l_ c)) - low_by c.
Definition sh' j := sh j + zeta (part j).

Lemma low_by_le c : In c parts -> 0 <= low_by c <= del.
Proof.
  intros I. assert (H := parts_sum c I). split; [apply Rmax_l|]. unfold low_by. apply Rmax_lub; [lra|].
  assert (- del <= ln (l_ c)); [|lra]. rewrite <- (ln_exp (- del)).
  destruct H as [H|H]; [left; apply ln_increasing; auto; apply exp_pos|rewrite H; lra].
Qed.
Lemma part_max c j : In c parts -> In j (keys c) -> sh j <= m_ c /\ Rabs (m_ c) <= Q j.
Proof.
  intros I Ij. destruct (parts_good c I) as (kl & cl & ko & co & rc & G & Hr).
  assert (B := good_max _ _ _ _ _ _ _ G j Ij).
  split; [auto|]. destruct (g_m _ _ _ _ _ _ _ _ _ _ _ _ _ _ G) as (i & Ii & Ei). rewrite Ei in *.
  apply HQ; auto; apply (in_J c); auto.
Qed.
Lemma lse_error c q : In c parts -> Rabs (m_ c) <= q -> Rabs (lse c - (m_ c + ln (l_ c))) <= err q.
Proof.
  intros I Qi. destruct (parts_good c I) as (kl & cl & ko & co & rc & G & Hr).
  destruct (g_inF _ _ _ _ _ _ _ _ _ _ _ _ _ _ G) as (Fm & _).
  assert (B := log_le c I). assert (N := log_good _ (l_pos c I)). assert (Na := near_abs _ _ _ _ N). unfold near in N.
  assert (R1 := rnd_plus emin prec _ _ Fm (log_inF (l_ c))). unfold lse.
  set (x := m_ c) in *. set (y := flog (l_ c)) in *. set (z := ln (l_ c)) in *.
  assert (U0 := uf_pos prec).
  assert (Rabs (x + y) <= q + ((1 + epsL) * Lg + lamL)).
  { eapply Rle_trans; [apply Rabs_triang|]. apply Rplus_le_compat; auto.
    assert ((1 + epsL) * Rabs z <= (1 + epsL) * Lg) by (apply Rmult_le_compat_l; lra). lra. }
  assert (uf * Rabs (x + y) <= uf * (q + ((1 + epsL) * Lg + lamL))) by (apply Rmult_le_compat_l; lra).
  assert (epsL * Rabs z <= epsL * Lg) by (apply Rmult_le_compat_l; lra).
  replace (rnd (x + y) - (x + z)) with ((rnd (x + y) - (x + y)) + (y - z)) by ring.
  eapply Rle_trans; [apply Rabs_triang|]. unfold err. lra.
Qed.

Lemma scores_near j : In j J -> Rabs (sh' j - (s j + Cs)) <= a' j.
Proof.
  intros Ij. assert (H := Ha j Ij). unfold J in Ij. apply in_flat_map in Ij. destruct Ij as (c & Ic & Ij).
  unfold sh', a'. rewrite (part_of_key c j Ic Ij). destruct (part_max c j Ic Ij) as [_ Qj].
  assert (E := lse_error c (Q j) Ic Qj). assert (L := low_by_le c Ic).
  replace (sh j + zeta c - (s j + Cs)) with ((sh j - (s j + Cs)) + (lse c - (m_ c + ln (l_ c))) + - low_by c)
    by (unfold zeta; ring).
  eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_Ropp, (Rabs_pos_eq (low_by c)) by lra.
  assert (T := Rabs_triang (sh j - (s j + Cs)) (lse c - (m_ c + ln (l_ c)))). lra.
Qed.

(** No log-sum-exp is larger than this, however negative a part's scores are. *)
Lemma lse_le c : In c parts -> lse c <= top + Lg + err Qt + Cs.
Proof.
  intros Ic. assert (B := log_le c Ic). assert (U0 := uf_pos prec). assert (U1 := @uf_lt1 prec Hprec).
  destruct (parts_good c Ic) as (kl & cl & ko & co & rc & G & Hr).
  destruct (g_m _ _ _ _ _ _ _ _ _ _ _ _ _ _ G) as (i & Ii & Ei). assert (Ji := in_J c i Ic Ii).
  assert (H := Rabs_bounds _ _ (Ha i Ji)). assert (Ti := Htop i Ji).
  destruct (g_inF _ _ _ _ _ _ _ _ _ _ _ _ _ _ G) as (Fm & _).
  assert (N := log_good _ (l_pos c Ic)). unfold near in N. apply Rabs_bounds in N.
  assert (R1 := Rabs_bounds _ _ (rnd_plus emin prec _ _ Fm (log_inF (l_ c)))). unfold lse.
  assert (epsL * Rabs (ln (l_ c)) <= epsL * Lg) by (apply Rmult_le_compat_l; lra). apply Rabs_bounds in B.
  set (x := m_ c + flog (l_ c)) in *. set (d := Lg + (epsL * Lg + lamL)).
  assert (Hx : x <= (top + Cs) + d) by (unfold x, d; lra).
  assert (Hs : x + uf * Rabs x <= (top + Cs + d) + uf * Rabs (top + Cs + d)).
  { set (y := top + Cs + d) in *. assert (uf * (y - x) <= 1 * (y - x)) by (apply Rmult_le_compat_r; lra).
    assert (T1 : Rabs x <= Rabs y + (y - x)).
    { replace x with (y + - (y - x)) at 1 by ring. eapply Rle_trans; [apply Rabs_triang|].
      rewrite Rabs_Ropp, (Rabs_pos_eq (y - x)) by lra. lra. }
    assert (uf * Rabs x <= uf * (Rabs y + (y - x))) by (apply Rmult_le_compat_l; lra). lra. }
  assert (d0 : 0 <= d).
  { assert (Q0 := log_good _ (l_pos c Ic)). unfold near in Q0.
    assert (0 <= Rabs (flog (l_ c) - ln (l_ c))) by apply Rabs_pos.
    unfold d. lra. }
  assert (Rabs (top + Cs + d) <= Qt + d).
  { eapply Rle_trans; [apply Rabs_triang|]. rewrite (Rabs_pos_eq d) by auto. lra. }
  assert (uf * Rabs (top + Cs + d) <= uf * (Qt + d)) by (apply Rmult_le_compat_l; lra). unfold err, d in *. lra.
Qed.
Lemma reference_le : tmax nat lse tl <= Mg + gap Ag + Cs.
Proof.
  destruct (tmax_in nat lse tl) as (c & Ic & ->). apply (Permutation_in _ Hp) in Ic.
  assert (Q1 := lse_le c Ic). unfold Mg. simpl. lra.
Qed.

(** ** The parts on their way into the last sums, relative to any reference that is no smaller than their own. *)
Section LastReference.
Variable M : R.
Hypothesis M_inF : inF M.
Hypothesis M_ge : forall c, In c parts -> lse c <= M.
Definition final c (ts : list (K * R)) :=
  let e := rnd (lse c - M) in
  rescaled K (e - (lse c - M) + split Ag e (fexp e))
    (rescaled K (lse c - (m_ c + zeta c + ln (l_ c))) ts).

Definition terms_of c (x : list (K * R) * list (K * R)) := Permutation (map fst (snd x)) (keys c) /\
  Permutation (fst x) (snd x) /\ exists kl cl ko co rc, (rc <= R0)%nat /\
  (cl + 3 <= 4 * length (keys c) /\ co + 3 <= 4 * length (keys c))%nat /\
  sums K sh A0 (one K) (w_l A0) (lampd A0) (fst x) (m_ c) (l_ c) kl rc cl /\
  sums K sh A0 vv (w_o A0) ((1 + u A0) * lamp A0) (snd x) (m_ c) (o_ c) ko rc co.

Lemma part_sums (v : K -> R) w0 lamw ts c y y1 y2 k rc cn : 1 <= w0 -> 0 <= lamw -> In c parts ->
  (forall t, In t ts -> In (fst t) (keys c)) ->
  sums K sh A0 v w0 lamw ts (m_ c) y k rc cn ->
  near uf eta (y / l_ c) y1 -> near uf eta (fexp (rnd (lse c - M)) * y1) y2 ->
  sums K sh' Ag v w0 lamw (final c ts) M y2 (S (S k)) (S (S rc)) (S (S cn)).
Proof.
  intros W0 L0 I Ik H N1 N2. assert (L := low_by_le c I). assert (Pl := l_pos c I).
  assert (H1 : sums K sh' Ag v w0 lamw ts (m_ c + zeta c) y k rc cn).
  { apply (sums_shift K sh sh' Ag v w0 lamw (zeta c)); [apply sums_with_gap; auto|].
    intros t It. unfold sh'. rewrite (part_of_key c (fst t) I (Ik t It)). auto. }
  assert (Ez : lse c - (m_ c + zeta c + ln (l_ c)) = low_by c) by (unfold zeta; ring).
  assert (LM := M_ge c I).
  assert (H2 : sums K sh' Ag v w0 lamw (rescaled K (lse c - (m_ c + zeta c + ln (l_ c))) ts) (lse c) y1
    (S k) (S rc) (S cn)).
  { apply (sums_normalise K sh' Ag Ag_sane v w0 lamw ts (m_ c + zeta c) y k rc cn (lse c) (l_ c) y1); auto.
    - assert (- ln (l_ c) <= low_by c) by apply Rmax_r. lra.
    - rewrite Ez, Rabs_pos_eq by lra. unfold eps1. simpl. lra. }
  destruct (factor_exponent emin prec fexp epsE lamE exp_good (lse c) M (lse_inF c) M_inF LM) as [E1 E2].
  exact (sums_rescale_exp K sh' Ag Ag_sane v w0 lamw _ (lse c) y1 _ _ _ M _ _ y2 H2 LM E1 E2 N2).
Qed.

Section Merged.
Variable f : nat -> list (K * R) * list (K * R).
Hypothesis Hf : forall c, In c parts -> terms_of c (f c).
Definition merged_l t := flat_map (fun c => final c (fst (f c))) (leaves nat t).
Definition merged_o t := flat_map (fun c => final c (snd (f c))) (leaves nat t).

Lemma merged_weights t : (forall c, In c (leaves nat t) -> In c parts) ->
  exists k rc cn, (rc <= r /\ cn + 1 <= 4 * length (flat_map keys (leaves nat t)))%nat /\
  sums K sh' Ag (one K) (w_l Ag) (lampd Ag) (merged_l t) M (suml emin prec nat lse fexp M t) k rc cn.
Proof.
  induction t as [c|x IHx y IHy]; intros I.
  - assert (Ic := I c (or_introl eq_refl)).
    destruct (Hf c Ic) as (Pm & Pp & kl & cl & ko & co & rc & Hr & [Cl _] & SL & _).
    exists (S (S kl)), (S (S rc)), (S (S cl)). simpl flat_map. rewrite app_nil_r. split; [lia|].
    unfold merged_l. simpl. rewrite app_nil_r.
    assert (P := eta_pos emin). assert (P2 := uf_pos prec). assert (Pl := l_pos c Ic).
    apply (part_sums (one K) (w_l Ag) (lampd Ag) (fst (f c)) c (l_ c) 1); auto; try (unfold w_l; simpl; lra).
    + intros t It. apply (Permutation_in _ Pm). apply in_map. apply (Permutation_in _ Pp). auto.
    + unfold near. replace (l_ c / l_ c) with 1 by (field; lra). rewrite Rminus_eq_0, Rabs_R0, Rabs_R1. lra.
    + unfold near, wt. rewrite Rmult_1_r, Rminus_eq_0, Rabs_R0.
      assert (0 <= uf * Rabs (fexp (rnd (lse c - M)))) by (apply Rmult_le_pos; [lra|apply Rabs_pos]). lra.
  - destruct IHx as (k1 & r1 & c1 & R1 & S1); [intros; apply I; simpl; apply in_or_app; auto|].
    destruct IHy as (k2 & r2 & c2 & R2 & S2); [intros; apply I; simpl; apply in_or_app; auto|].
    exists (S (Nat.max k1 k2)), (Nat.max r1 r2), (S (c1 + c2)). simpl leaves. rewrite flat_map_app, app_length.
    split; [lia|].
    unfold merged_l. simpl. rewrite flat_map_app.
    apply (sums_add K sh' Ag (one K) (w_l Ag) (lampd Ag) _ _ M _ _ _ k1 r1 c1 k2 r2 c2 S1 S2).
    apply (rnd_adds emin prec epsE lamE); apply suml_inF; auto.
Qed.
Lemma merged_values t : (forall c, In c (leaves nat t) -> In c parts) ->
  exists k rc cn, (rc <= r /\ cn + 1 <= 4 * length (flat_map keys (leaves nat t)))%nat /\
  sums K sh' Ag vv (w_o Ag) ((1 + u Ag) * lamp Ag) (merged_o t) M (sumo emin prec nat lse mean fexp M t) k rc cn.
Proof.
  induction t as [c|x IHx y IHy]; intros I.
  - assert (Ic := I c (or_introl eq_refl)).
    destruct (Hf c Ic) as (Pm & Pp & kl & cl & ko & co & rc & Hr & [_ Co] & _ & SO).
    exists (S (S ko)), (S (S rc)), (S (S co)). simpl flat_map. rewrite app_nil_r. split; [lia|].
    unfold merged_o. simpl. rewrite app_nil_r.
    assert (P2 := uf_pos prec).
    apply (part_sums vv (w_o Ag) ((1 + u Ag) * lamp Ag) (snd (f c)) c (o_ c) (mean c)); auto;
      try (unfold w_o; simpl; lra).
    + intros t It. apply (Permutation_in _ Pm). apply in_map. auto.
    + apply rnd_near. auto.
    + apply rnd_near. auto.
  - destruct IHx as (k1 & r1 & c1 & R1 & S1); [intros; apply I; simpl; apply in_or_app; auto|].
    destruct IHy as (k2 & r2 & c2 & R2 & S2); [intros; apply I; simpl; apply in_or_app; auto|].
    exists (S (Nat.max k1 k2)), (Nat.max r1 r2), (S (c1 + c2)). simpl leaves. rewrite flat_map_app, app_length.
    split; [lia|].
    unfold merged_o. simpl. rewrite flat_map_app.
    apply (sums_add K sh' Ag vv (w_o Ag) ((1 + u Ag) * lamp Ag) _ _ M _ _ _ k1 r1 c1 k2 r2 c2 S1 S2).
    apply (rnd_adds emin prec epsE lamE); apply sumo_inF; auto.
Qed.

Lemma merged_keys : Permutation (map fst (merged_o to_)) J.
Proof.
  unfold merged_o, J. rewrite map_flat_map. apply flat_map_perm. intros c Ic.
  destruct (Hf c Ic) as (Pm & _). unfold final, rescaled. rewrite !map_map. simpl. auto.
Qed.
Lemma merged_perm : Permutation (merged_l tl) (merged_o to_).
Proof.
  unfold merged_l, merged_o. eapply Permutation_trans; [apply Permutation_flat_map; apply Hp|].
  apply flat_map_perm. intros c Ic. destruct (Hf c Ic) as (_ & Pp & _). unfold final, rescaled.
  repeat apply Permutation_map. auto.
Qed.
End Merged.
End LastReference.

Lemma largest_ge c : In c parts -> lse c <= tmax nat lse tl.
Proof. intros I. apply tmax_ge. apply (Permutation_in _ (Permutation_sym Hp)). auto. Qed.
Lemma largest_inF : inF (tmax nat lse tl).
Proof. apply tmax_inF. apply lse_inF. Qed.

(** No exponent is off by more than the document's E_j allows (1.1, 1.7.37): u_lse and thE are one rounding, D_j is
    up to the largest score, ln n + 1 is Lg, R counts the parts' merge as two. *)
Theorem exponent_documented j : In j J -> Qt <= Q j -> lamL = 0 -> 2 * (uf * (epsL * Lg * (1 + uf))) <= e1 ->
  let D := top - (s j - a j) in
  E K s Ag a' Mg r j <= a j + uf * D + e1 * (1 + INR r + 2) +
    (uf * (1 + uf) * (1 + 2 * uf) * (Q j + Lg) + epsL * Lg * (1 + uf) + (uf * D + uf * Lg) + 2 * uf * e1).
Proof.
  intros Ij HQj Z0 Small D. assert (U0 := uf_pos prec).
  assert (A1 : 0 <= a j) by (eapply Rle_trans; [apply Rabs_pos|eauto]).
  assert (D0 : 0 <= D) by (assert (H := Htop j Ij); unfold D; lra).
  assert (Q0 : 0 <= Q j) by (eapply Rle_trans; [apply Rabs_pos|apply (HQ j j Ij Ij); lra]).
  assert (L0 : 0 <= Lg) by lra.
  unfold bound.E, bound.D, X, a', Mg, err, eps1. rewrite Z0. simpl (thE Ag). simpl (gap Ag). simpl (T Ag).
  simpl (xl Ag). simpl (xr Ag). simpl (eps Ag). set (u0 := uf) in *. set (x := epsE / (1 - epsE)) in *.
  assert (P1 : 0 <= u0 * D) by (apply Rmult_le_pos; lra).
  assert (P2 : 0 <= u0 * (u0 * (Q j + Lg))) by (apply Rmult_le_pos; [|apply Rmult_le_pos]; lra).
  assert (P3 : 0 <= u0 * (u0 * (u0 * (Q j + Lg)))) by (apply Rmult_le_pos; lra).
  assert (P4 : u0 * del <= u0 * x) by (apply Rmult_le_compat_l; lra).
  assert (P6 : u0 * (u0 * Qt) <= u0 * (u0 * Q j)) by (apply Rmult_le_compat_l; [|apply Rmult_le_compat_l]; lra).
  assert (P5 : 0 <= u0 * x) by (apply Rmult_le_pos; lra). clearbody u0 x. unfold D in *. lra.
Qed.

Lemma parts_terms : exists f, forall c, In c parts -> terms_of c (f c).
Proof.
  apply (choose terms_of ([], [])). intros c Ic. destruct (parts_good c Ic) as (kl & cl & ko & co & rc & G & Hr).
  destruct (g_terms _ _ _ _ _ _ _ _ _ _ _ _ _ _ G) as (ts & to1 & Pm & Pp & SL & SO).
  exists (ts, to1). split; [auto|]. split; [auto|]. exists kl, cl, ko, co, rc.
  split; [auto|]. split; [apply (g_counts _ _ _ _ _ _ _ _ _ _ _ _ _ _ G)|auto].
Qed.
(** The document's bound, with one more rescaling for the division by a part's sum and one for its weight. *)
Lemma keys_of_order : length (flat_map keys (leaves nat tl)) = n.
Proof. apply Permutation_length, Permutation_flat_map, Hp. Qed.
Theorem split_tolerance : J <> [] -> 0 < low_d K s Ag a' J Mg r ops ->
  Rabs (merge_parts tl to_ - exact K s vv J) <= documented K s vv Ag a' J Mg r ops uf eta.
Proof.
  intros NJ Hd. destruct parts_terms as [f Hf]. set (M := tmax nat lse tl).
  destruct (merged_weights M largest_inF largest_ge f Hf tl) as (kl & rl & cl & [Rl Cl] & SL).
  { intros c. apply (Permutation_in _ Hp). }
  destruct (merged_values M largest_inF largest_ge f Hf to_) as (ko & ro & co & [Ro Co] & SO); auto.
  rewrite keys_of_order in Cl. fold J in Co.
  apply (documented_bound_any_reference K s sh' vv Ag Ag_sane a' J Mg r Cs NJ scores_near ops (exp (- del))
    (merged_l M f tl) (merged_o M f to_) M (suml emin prec nat lse fexp M tl) (sumo emin prec nat lse mean fexp M to_)
        uf eta
    _ kl rl cl ko ro co); auto.
  - apply (merged_keys M f Hf).
  - apply (merged_perm M f Hf).
  - apply reference_le.
  - eapply Rle_trans; [apply exp0|]. apply suml_ge_exp0; auto.
  - lia.
  - lia.
  - left. apply uf_pos.
  - apply rnd_near. auto.
Qed.
End Rounding.
