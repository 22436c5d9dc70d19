(** Parts that are merged through their log-sum-exps, as a relation: any partition of the keys, within a part sums in
    any order with any rescalings, weights stored in any format. split.v has programs that are of this kind. *)
From Coq Require Import Reals List Lra Lia Psatz Permutation.
From Attest.Rounding Require Import basics merge bound documented sizes any_reference split
  entropy.
Import ListNotations.
Open Scope R_scope.

(** y is the sum of f over a list, added up in any order. *)
Inductive added (A : arith) {S} (f : S -> R) : list S -> R -> Prop :=
| added_one c : added A f [c] (f c)
| added_two l1 l2 y1 y2 y : added A f l1 y1 -> added A f l2 y2 -> adds A y1 y2 y -> added A f (l1 ++ l2) y.

Section Merged.
Variable K : Type.
Variables s sh vv : K -> R.
Variable A : arith.
Variable R0 : nat.             (* rescalings within a part *)
Variable divisions : nat.      (* roundings of a division by a part's sum *)
Variables epsL u_l lam_l : R.  (* of a logarithm, relative above 1 and absolute below; of the sum with the reference *)

(** What a part comes to: its reference, its two sums, its log-sum-exp, its mean. *)
Record handed := Handed { h_m : R; h_l : R; h_o : R; h_lse : R; h_mean : R }.
(** The terms of both sums. Of an addition both operands may have been rescaled. *)
Definition sums_of (keys : list K) (h : handed) (x : list (K * R) * list (K * R)) := exists kl rl cl ko ro co,
  Permutation (map fst (snd x)) keys /\ Permutation (fst x) (snd x) /\
  sums K sh A (one K) (w_l A) (lampd A) (fst x) (h_m h) (h_l h) kl rl cl /\
  (rl <= R0)%nat /\ (cl + 3 <= 4 * length keys)%nat /\
  sums K sh A vv (w_o A) ((1 + u A) * lamp A) (snd x) (h_m h) (h_o h) ko ro co /\
  (ro <= R0)%nat /\ (co + 3 <= 4 * length keys)%nat.
(** A sum of weights is no less than what the exponential makes of 0: the largest of them is one of 0, and rounding is
    monotone ([suml_ge_exp0]). *)
Definition summed_up (keys : list K) (h : handed) := (exists x, sums_of keys h x) /\
  (exists i, In i keys /\ h_m h <= sh i) /\ 1 - eps A <= h_l h.
(** A logarithm, and its sum with a reference. *)
Definition log_sum_exp (m l lse : R) := exists log, Rabs (log - ln l) <= epsL * Rmax 1 (Rabs (ln l)) /\
  near u_l lam_l (m + log) lse.
Definition hands_over (h : handed) := log_sum_exp (h_m h) (h_l h) (h_lse h) /\
  rounded_times (u A) (lam A) divisions (h_o h / h_l h) (h_mean h).
(** A part's weight relative to M, and what it makes of the mean. *)
Definition weighs (M : R) (h : handed) (w : R) := h_lse h <= M /\
  exists e, Rabs (e - (h_lse h - M)) <= thE A * (M - h_lse h) + xr A /\ exponential A e w.
Definition enters (M : R) (h : handed) (w y : R) := weighs M h w /\ near (u A) (lam A) (w * h_mean h) y.
(** Relative to the largest log-sum-exp the weights are added up. *)
Definition largest_and_sum (parts order : list nat) (h : nat -> handed) (M : R) (w : nat -> R) (L : R) :=
  (exists c, In c parts /\ M = h_lse (h c)) /\ Permutation order parts /\ added A w order L /\ 1 - eps A <= L.
(** The merge: two sums over the parts. *)
Definition merged (parts : list nat) (keys : nat -> list K) (h : nat -> handed) (L O : R) := exists M w y order,
  (forall c, In c parts -> summed_up (keys c) (h c) /\ hands_over (h c) /\ enters M (h c) (w c) (y c)) /\
  largest_and_sum parts order h M w L /\ added A y parts O.
(** The same without the last division: weights are relative to the log-sum-exp of all, which is no smaller than the
    largest, as a logarithm of what is at least 1 is not negative. *)
Definition merged_undivided (parts : list nat) (keys : nat -> list K) (h : nat -> handed) (O : R) :=
  exists M total L w w' y order,
  (forall c, In c parts -> summed_up (keys c) (h c) /\ hands_over (h c) /\ weighs M (h c) (w c) /\
    enters total (h c) (w' c) (y c)) /\
  largest_and_sum parts order h M w L /\ log_sum_exp M L total /\ M <= total /\ added A y parts O.

Hypothesis OK : sane A.
Hypothesis RN : nearest A = true.
Hypothesis Any : additions A = None.
Hypothesis HepsL : 0 <= epsL.
Hypothesis Hu_l : 0 <= u_l <= 1.
Hypothesis Divided : (1 <= divisions)%nat.
Variable keys : nat -> list K.
Variable part : K -> nat.
Variable h : nat -> handed.
Variable parts : list nat.
Hypothesis part_of_key : forall c j, In c parts -> In j (keys c) -> part j = c.
Variable J : list K.
Hypothesis keys_are : Permutation (flat_map keys parts) J.
Local Notation n := (length J).
Local Notation r := (R0 + 1 + divisions)%nat.
(** Operations on a sum, with those of the merge. *)
Definition merge_ops := ((3 + divisions) * n)%nat.
Local Notation ops := merge_ops.

(** The scores, how large they are, and the logarithm of a sum. *)
Variable a : K -> R.
Variable Q : K -> R.      (* no score from that of a key upwards, and no reference, is larger in size *)
Variables Cs top Qt Lg : R.
Hypothesis Ha : forall j, In j J -> Rabs (sh j - (s j + Cs)) <= a j.
Hypothesis Htop : forall j, In j J -> s j + a j <= top.
Hypothesis HQ : forall i j m, In i J -> In j J -> sh j - T A <= m <= sh i -> Rabs m <= Q j.
Hypothesis HQt : Rabs (top + Cs) <= Qt.
Hypothesis HLg1 : 1 <= Lg.
Hypothesis HLge : eps1 A <= Lg.
Hypothesis HLg : P A (w_l A) (kk K J r) * (INR n * gain A r) + most_lost A n r ops <= exp Lg.
(** What a log-sum-exp is off by, in the exponents of all keys of its part. *)
Definition lse_err q := u_l * (q + (1 + epsL) * Lg) + lam_l + epsL * Lg.
Definition a_merged j := a j + (lse_err (Q j) + eps1 A).
Definition top_merged := top + Lg + lse_err Qt.
Variable room : R.
Definition roomy := with_gap A room.
Hypothesis Hroom : 0 <= room.
Hypothesis Hgap : P A (w_l A) (kk K J r) <= exp room * (1 - eps A - most_lost A n r ops).

Lemma roomy_sane : sane roomy.
Proof. apply with_gap_sane; auto. Qed.
Lemma additions_any : hk K roomy J r = kk K J r.
Proof. unfold hk, kk. simpl. rewrite Any. auto. Qed.
Lemma in_J c j : In c parts -> In j (keys c) -> In j J.
Proof. intros. apply (Permutation_in _ keys_are), in_flat_map. exists c. auto. Qed.
Lemma keys_length c : In c parts -> (length (keys c) <= n)%nat.
Proof. intros I. rewrite <- (Permutation_length keys_are). apply flat_map_length_le. auto. Qed.

Section Part.
Variable c : nat.
Hypothesis I : In c parts.
Hypothesis S : summed_up (keys c) (h c).
Local Notation m := (h_m (h c)).
Local Notation l := (h_l (h c)).

Lemma l_pos : 0 < l.
Proof. destruct S as (_ & _ & H). assert (E := s_eps A OK). lra. Qed.
Lemma log_low : - eps1 A <= ln l.
Proof.
  destruct S as (_ & _ & H). assert (E := s_eps A OK).
  assert (B := Rabs_bounds _ _ (ln_near (eps A) (- eps A) E ltac:(lra))). fold (eps1 A) in B.
  assert (Q1 : ln (1 + - eps A) <= ln l); [|lra]. assert (X : 1 + - eps A <= l) by lra.
  destruct X as [X|X]; [left; apply ln_increasing; lra|rewrite X; lra].
Qed.
Lemma log_le : Rabs (ln l) <= Lg.
Proof.
  assert (Pl := l_pos). assert (Low := log_low).
  destruct S as ((x & kl & rl & cl & ko & ro & co & Pm & Pp & SL & Hr & Hc & _) & _).
  destruct (sums_counts K sh A _ _ _ _ _ _ _ _ _ SL) as (_ & Kl & _). assert (W1 := wl_ge1 A OK).
  assert (Sz := sums_size A OK K sh (bound.part r) (one K) (w_l A) (lampd A) _ _ _ _ _ _ (part_pos r) W1
    (s_lampd A OK) SL).
  assert (Nc := keys_length c I).
  assert (Nt : length (fst x) = length (keys c)).
  { rewrite (Permutation_length Pp), <- (map_length fst), (Permutation_length Pm). auto. }
  assert (Hr' : (rl <= r)%nat) by lia. assert (Kk : (kl <= kk K J r)%nat) by (unfold kk; lia).
  assert (LJ := lost_most K sh A (fst x) m kl rl cl n r ops OK ltac:(lia) Kk Hr' ltac:(unfold merge_ops; nia)).
  assert (I1 := le_INR (length (fst x)) n ltac:(lia)). assert (I0 := pos_INR (length (fst x))).
  rewrite (Sum_ext _ (fun _ => 1)) in Sz by (intros; unfold one; apply Rabs_R1). rewrite Sum_const, Rmult_1_r in Sz.
  rewrite (Rabs_pos_eq l) in Sz by lra.
  assert (Up : l <= exp Lg).
  { eapply Rle_trans; [apply Sz|]. eapply Rle_trans; [|apply HLg]. apply Rplus_le_compat; [|lra].
    assert (Pm1 := P_mono A OK (w_l A) W1 _ _ Kk). assert (P0 := P_ge A OK (w_l A) W1 kl).
    assert (Gm := gain_mono A OK _ _ Hr'). assert (Gp := gain_pos A rl).
    apply Rmult_le_compat; [lra|apply Rmult_le_pos; lra|auto|]. rewrite Rmult_comm. apply Rmult_le_compat; lra. }
  apply Rabs_le_iff. split; [lra|]. rewrite <- (ln_exp Lg).
  destruct Up as [Up|Up]; [left; apply ln_increasing; auto|rewrite Up; lra].
Qed.
Lemma reference_size j : In j (keys c) -> Rabs m <= Q j.
Proof.
  intros Ij.
  destruct S as ((x & kl & rl & cl & ko & ro & co & Pm & Pp & _ & _ & _ & SO & _) & (i & Ii & Hi) & _).
  destruct (sums_spec K sh A OK 1 Rlt_0_1 vv _ _ (wo_ge1 A OK) (lamw_o_pos A OK) _ _ _ _ _ _ SO) as [F0 _].
  rewrite Forall_forall in F0. assert (It := Permutation_in _ (Permutation_sym Pm) Ij). apply in_map_iff in It.
  destruct It as (t & Et & It). destruct (F0 t It) as [H _]. rewrite Et in H.
  apply (HQ i j); [apply (in_J c)|apply (in_J c)|lra]; auto.
Qed.

Hypothesis O : hands_over (h c).
(** The part's exponents are relative to the log-sum-exp that it hands over: what that is off by moves its scores. *)
Lemma lse_error q : Rabs m <= q -> Rabs (h_lse (h c) - (m + ln l)) <= lse_err q.
Proof.
  intros Hq. assert (B := log_le). destruct O as [(lg & N1 & N2) _]. unfold near in N2.
  assert (N3 : epsL * Rmax 1 (Rabs (ln l)) <= epsL * Lg) by (apply Rmult_le_compat_l; auto; apply Rmax_lub; auto).
  set (x := h_lse (h c)) in *.
  assert (Rabs (m + lg) <= q + (1 + epsL) * Lg).
  { replace (m + lg) with (m + (ln l + (lg - ln l))) by ring. eapply Rle_trans; [apply Rabs_triang|].
    assert (Q1 := Rabs_triang (ln l) (lg - ln l)). lra. }
  assert (u_l * Rabs (m + lg) <= u_l * (q + (1 + epsL) * Lg)) by (apply Rmult_le_compat_l; lra).
  replace (x - (m + ln l)) with ((x - (m + lg)) + (lg - ln l)) by ring.
  eapply Rle_trans; [apply Rabs_triang|]. unfold lse_err. lra.
Qed.
(** No log-sum-exp is larger than this, however negative a part's scores are. *)
Lemma lse_le : h_lse (h c) <= top_merged + Cs.
Proof.
  assert (B := log_le). destruct O as [(lg & N1 & N2) _]. unfold near in N2. apply Rabs_bounds in N2.
  destruct S as (_ & (i & Ii & Hi) & _).
  assert (Ji := in_J c i I Ii). assert (H1 := Rabs_bounds _ _ (Ha i Ji)). assert (Ti := Htop i Ji).
  assert (N3 : epsL * Rmax 1 (Rabs (ln l)) <= epsL * Lg) by (apply Rmult_le_compat_l; auto; apply Rmax_lub; auto).
  assert (N4 := Rabs_bounds _ _ (Rle_trans _ _ _ N1 N3)). apply Rabs_bounds in B.
  set (x := m + lg) in *. set (d := Lg + epsL * Lg). assert (0 <= epsL * Lg) by (apply Rmult_le_pos; lra).
  assert (Hx : x <= (top + Cs) + d) by (unfold x, d; lra).
  assert (Hs : x + u_l * Rabs x <= (top + Cs + d) + u_l * Rabs (top + Cs + d)).
  { set (y := top + Cs + d) in *. assert (u_l * (y - x) <= 1 * (y - x)) by (apply Rmult_le_compat_r; lra).
    assert (T1 : Rabs x <= Rabs y + (y - x)).
    { replace x with (y + - (y - x)) at 1 by ring. eapply Rle_trans; [apply Rabs_triang|].
      rewrite Rabs_Ropp, (Rabs_pos_eq (y - x)) by lra. lra. }
    assert (u_l * Rabs x <= u_l * (Rabs y + (y - x))) by (apply Rmult_le_compat_l; lra). lra. }
  assert (Rabs (top + Cs + d) <= Qt + d).
  { eapply Rle_trans; [apply Rabs_triang|]. rewrite (Rabs_pos_eq d) by (unfold d; lra). lra. }
  assert (u_l * Rabs (top + Cs + d) <= u_l * (Qt + d)) by (apply Rmult_le_compat_l; lra).
  unfold top_merged, lse_err, d in *. lra.
Qed.

Definition low_by := Rmax 0 (- ln l).
Definition moved := h_lse (h c) - (m + ln l) - low_by.
Lemma low_by_le : 0 <= low_by <= eps1 A.
Proof.
  assert (H := log_low). assert (E := eps1_pos A OK). split; [apply Rmax_l|]. apply Rmax_lub; lra.
Qed.
End Part.

Definition sh_moved j := sh j + moved (part j).

(** A part on its way into the last sums: divided by its own sum, which need be no rescaling by an exponential, rounded
    as often as a division is, and weighted. *)
Lemma divided_sums v w0 lamw ts q y y' k rc cn count : sums K sh_moved roomy v w0 lamw ts q y k rc cn ->
  rounded_times (u A) (lam A) count y y' ->
  sums K sh_moved roomy v w0 lamw ts q y' (k + count) (rc + count) (cn + count).
Proof.
  intros H D. induction D as [y|i y z z' H1 IH H2]; [rewrite !Nat.add_0_r; auto|].
  specialize (IH H). rewrite !Nat.add_succ_r.
  replace ts with (rescaled K 0 ts).
  - apply (sums_rescale K sh_moved roomy v w0 lamw ts q z _ _ _ q 0 1); auto; [lra| | |].
    + rewrite Rabs_R0. assert (E := eps1_pos A OK). assert (X := s_xr A OK). simpl. unfold Rminus.
      rewrite Rplus_opp_r, Rmult_0_r. change (eps1 roomy) with (eps1 A). lra.
    + rewrite Rplus_0_r, Rminus_eq_0, exp_0, Rminus_eq_0, Rabs_R0. apply Rmin_glb; [apply (s_lame A OK)|lra].
    + rewrite Rmult_1_l. auto.
  - unfold rescaled. rewrite <- (map_id ts) at 2. apply map_ext. intros [j x]. simpl. rewrite Rplus_0_r. auto.
Qed.
Lemma rounded_times_one count : rounded_times (u A) (lam A) count 1 1.
Proof.
  induction count as [|k IH]; [constructor|]. apply (rounded_once _ _ _ _ _ _ IH). unfold near.
  assert (U := s_u A OK). assert (L := s_lam A OK). rewrite Rminus_eq_0, Rabs_R0, Rabs_R1. lra.
Qed.

Definition final M c e w (ts : list (K * R)) :=
  rescaled K (e - (h_lse (h c) - M) + arithmetic.split roomy e w)
    (rescaled K (h_lse (h c) - (h_m (h c) + moved c + ln (h_l (h c)))) ts).
Lemma part_enters M w (v : K -> R) w0 lamw ts c e y y1 y2 k rc cn : 1 <= w0 -> 0 <= lamw -> In c parts ->
  summed_up (keys c) (h c) -> h_lse (h c) <= M ->
  Rabs (e - (h_lse (h c) - M)) <= thE A * (M - h_lse (h c)) + xr A -> exponential A e w ->
  (forall t, In t ts -> In (fst t) (keys c)) ->
  sums K sh A v w0 lamw ts (h_m (h c)) y k rc cn ->
  rounded_times (u A) (lam A) divisions (y / h_l (h c)) y1 -> near (u A) (lam A) (w * y1) y2 ->
  sums K sh_moved roomy v w0 lamw (final M c e w ts) M y2 (k + 1 + divisions) (rc + 1 + divisions)
    (cn + 1 + divisions).
Proof.
  clear HLg Hgap.
  intros W0 L0 I S LM E1 E2 Ik H N1 N2. assert (L := low_by_le c S). assert (Pl := l_pos c S).
  assert (H1 : sums K sh_moved roomy v w0 lamw ts (h_m (h c) + moved c) y k rc cn).
  { apply (sums_shift K sh sh_moved roomy v w0 lamw (moved c)); [apply sums_with_gap; auto|].
    intros t It. unfold sh_moved. rewrite (part_of_key c (fst t) I (Ik t It)). auto. }
  assert (Ez : h_lse (h c) - (h_m (h c) + moved c + ln (h_l (h c))) = low_by c) by (unfold moved; ring).
  destruct divisions as [|more] eqn:Em; [lia|]. destruct (rounded_times_first _ _ _ _ _ N1) as (y0 & F1 & F2).
  assert (H2 : sums K sh_moved roomy v w0 lamw (rescaled K (h_lse (h c) - (h_m (h c) + moved c + ln (h_l (h c)))) ts)
    (h_lse (h c)) y0 (Datatypes.S k) (Datatypes.S rc) (Datatypes.S cn)).
  { apply (sums_normalise K sh_moved roomy roomy_sane v w0 lamw ts (h_m (h c) + moved c) y k rc cn (h_lse (h c))
      (h_l (h c)) y0); auto.
    - assert (- ln (h_l (h c)) <= low_by c) by apply Rmax_r. lra.
    - rewrite Ez, Rabs_pos_eq by lra. change (eps1 roomy) with (eps1 A). change (xr roomy) with (xr A).
      assert (X0 := s_xr A OK). lra. }
  assert (H3 := divided_sums _ _ _ _ _ _ _ _ _ _ _ H2 F2).
  replace (k + 1 + Datatypes.S more)%nat with (Datatypes.S (Datatypes.S k + more)) by lia.
  replace (rc + 1 + Datatypes.S more)%nat with (Datatypes.S (Datatypes.S rc + more)) by lia.
  replace (cn + 1 + Datatypes.S more)%nat with (Datatypes.S (Datatypes.S cn + more)) by lia.
  exact (sums_rescale_exp K sh_moved roomy roomy_sane v w0 lamw _ (h_lse (h c)) y1 _ _ _ M _ _ y2 H3 LM E1 E2 N2).
Qed.

Hypothesis Parts : forall c, In c parts -> summed_up (keys c) (h c) /\ hands_over (h c).

Lemma scores_near j : In j J -> Rabs (sh_moved j - (s j + Cs)) <= a_merged j.
Proof.
  intros Ij. assert (H := Ha j Ij). apply (Permutation_in _ (Permutation_sym keys_are)), in_flat_map in Ij.
  destruct Ij as (c & Ic & Ij). unfold sh_moved, a_merged. rewrite (part_of_key c j Ic Ij).
  destruct (Parts c Ic) as (S & O). assert (E := lse_error c Ic S O (Q j) (reference_size c Ic S j Ij)).
  assert (L := low_by_le c S).
  replace (sh j + moved c - (s j + Cs)) with ((sh j - (s j + Cs)) + (h_lse (h c) - (h_m (h c) + ln (h_l (h c)))) +
    - low_by c) by (unfold moved; ring).
  eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_Ropp, (Rabs_pos_eq (low_by c)) by lra.
  assert (T := Rabs_triang (sh j - (s j + Cs)) (h_lse (h c) - (h_m (h c) + ln (h_l (h c))))). lra.
Qed.

Section Chosen.
(** The terms of each part's sums, and exponents of the parts' weights. *)
Variable f : nat -> list (K * R) * list (K * R).
Hypothesis Hf : forall c, In c parts -> sums_of (keys c) (h c) (f c).
Section Weighted.
Variable M : R.
Variables w y e : nat -> R.
Hypothesis Below : forall c, In c parts -> h_lse (h c) <= M.
Hypothesis He : forall c, In c parts -> Rabs (e c - (h_lse (h c) - M)) <= thE A * (M - h_lse (h c)) + xr A /\
  exponential A (e c) (w c).
Definition merged_l order := flat_map (fun c => final M c (e c) (w c) (fst (f c))) order.
Definition merged_o order := flat_map (fun c => final M c (e c) (w c) (snd (f c))) order.

Lemma added_sums (g : nat -> list (K * R)) v w0 lamw value order z :
  (forall c, In c order -> exists k rc cn, (rc <= r)%nat /\ (cn + 1 <= (3 + divisions) * length (keys c))%nat /\
    sums K sh_moved roomy v w0 lamw (g c) M (value c) k rc cn) ->
  added A value order z -> exists k rc cn, (rc <= r)%nat /\
    (cn + 1 <= (3 + divisions) * length (flat_map keys order))%nat /\
    sums K sh_moved roomy v w0 lamw (flat_map g order) M z k rc cn.
Proof.
  intros H D. induction D as [c|l1 l2 y1 y2 z H1 IH1 H2 IH2 N].
  - simpl flat_map. rewrite !app_nil_r. apply H. left. auto.
  - destruct IH1 as (k1 & r1 & c1 & R1 & C1 & S1); [intros; apply H, in_or_app; auto|].
    destruct IH2 as (k2 & r2 & c2 & R2 & C2 & S2); [intros; apply H, in_or_app; auto|].
    exists (S (Nat.max k1 k2)), (Nat.max r1 r2), (S (c1 + c2)). rewrite !flat_map_app, app_length.
    split; [lia|]. split; [lia|]. apply (sums_add K sh_moved roomy v w0 lamw _ _ M y1 y2 z); auto.
Qed.
Lemma some_key c : In c parts -> (1 <= length (keys c))%nat.
Proof.
  intros Ic. destruct (Parts c Ic) as ((_ & (i & Ii & _) & _) & _). destruct (keys c); [destruct Ii|simpl; lia].
Qed.
Lemma merged_weights order L : Permutation order parts -> added A w order L -> exists k rc cn,
  (rc <= r)%nat /\ (cn <= ops)%nat /\ sums K sh_moved roomy (one K) (w_l A) (lampd A) (merged_l order) M L k rc cn.
Proof.
  intros Po AL. destruct (added_sums (fun c => final M c (e c) (w c) (fst (f c))) (one K) (w_l A) (lampd A) w order L)
    as (k & rc & cn & Rc & Cn & SL); auto.
  - intros c Io. assert (Ic := Permutation_in _ Po Io). destruct (Parts c Ic) as [S _]. destruct (He c Ic) as [E1 E2].
    destruct (Hf c Ic) as (kl & rl & cl & ko & ro & co & Pm & Pp & SL & Rl & Cl & _). assert (Pl := l_pos c S).
    assert (Lk := some_key c Ic). exists (kl + 1 + divisions)%nat, (rl + 1 + divisions)%nat, (cl + 1 + divisions)%nat.
    split; [lia|]. split; [nia|].
    apply (part_enters M (w c) (one K) (w_l A) (lampd A) (fst (f c)) c (e c) (h_l (h c)) 1);
      auto using wl_ge1, s_lampd.
    + intros t It. apply (Permutation_in _ Pm). apply in_map. apply (Permutation_in _ Pp). auto.
    + replace (h_l (h c) / h_l (h c)) with 1 by (field; lra). apply rounded_times_one.
    + rewrite Rmult_1_r. unfold near. rewrite Rminus_eq_0, Rabs_R0. assert (U := s_u A OK). assert (L0 := s_lam A OK).
      assert (0 <= u A * Rabs (w c)) by (apply Rmult_le_pos; auto using Rabs_pos). lra.
  - rewrite (Permutation_length (Permutation_flat_map keys Po)), (Permutation_length keys_are) in Cn.
    exists k, rc, cn. unfold merge_ops. split; [auto|]. split; [lia|auto].
Qed.
Lemma merged_values O : (forall c, In c parts -> near (u A) (lam A) (w c * h_mean (h c)) (y c)) -> added A y parts O ->
  exists k rc cn, (rc <= r)%nat /\ (cn <= ops)%nat /\
    sums K sh_moved roomy vv (w_o A) ((1 + u A) * lamp A) (merged_o parts) M O k rc cn.
Proof.
  intros Hy AO. destruct (added_sums (fun c => final M c (e c) (w c) (snd (f c))) vv (w_o A) ((1 + u A) * lamp A) y
    parts O) as (k & rc & cn & Rc & Cn & SO); auto.
  - intros c Ic. destruct (Parts c Ic) as [S [_ D]]. destruct (He c Ic) as [E1 E2].
    destruct (Hf c Ic) as (kl & rl & cl & ko & ro & co & Pm & Pp & _ & _ & _ & SO & Ro & Co).
    assert (Lk := some_key c Ic). exists (ko + 1 + divisions)%nat, (ro + 1 + divisions)%nat, (co + 1 + divisions)%nat.
    split; [lia|]. split; [nia|].
    apply (part_enters M (w c) vv (w_o A) ((1 + u A) * lamp A) (snd (f c)) c (e c) (h_o (h c)) (h_mean (h c)));
      auto using wo_ge1, lamw_o_pos.
    intros t It. apply (Permutation_in _ Pm). apply in_map. auto.
  - rewrite (Permutation_length keys_are) in Cn.
    exists k, rc, cn. unfold merge_ops. split; [auto|]. split; [lia|auto].
Qed.
Lemma final_keys c ts : map fst (final M c (e c) (w c) ts) = map fst ts.
Proof. unfold final, rescaled. rewrite !map_map. auto. Qed.
Lemma merged_keys : Permutation (map fst (merged_o parts)) J.
Proof.
  unfold merged_o. rewrite map_flat_map. eapply Permutation_trans; [|apply keys_are]. apply flat_map_perm.
  intros c Ic. rewrite final_keys. destruct (Hf c Ic) as (kl & rl & cl & ko & ro & co & Pm & _). auto.
Qed.
Lemma merged_perm order : Permutation order parts -> Permutation (merged_l order) (merged_o parts).
Proof.
  intros Po. unfold merged_l, merged_o. eapply Permutation_trans; [apply Permutation_flat_map; apply Po|].
  apply flat_map_perm. intros c Ic. destruct (Hf c Ic) as (kl & rl & cl & ko & ro & co & _ & Pp & _).
  unfold final, rescaled. repeat apply Permutation_map. auto.
Qed.
End Weighted.
End Chosen.

Lemma parts_sums : exists f, forall c, In c parts -> sums_of (keys c) (h c) (f c).
Proof.
  apply (choose (fun c x => sums_of (keys c) (h c) x) ([], [])). intros c Ic.
  destruct (Parts c Ic) as [[(x & Hx) _] _]. exists x. auto.
Qed.
Lemma exponents M w : (forall c, In c parts -> weighs M (h c) (w c)) -> exists e, forall c, In c parts ->
  Rabs (e c - (h_lse (h c) - M)) <= thE A * (M - h_lse (h c)) + xr A /\ exponential A (e c) (w c).
Proof.
  intros H. apply (choose (fun c e => Rabs (e - (h_lse (h c) - M)) <= thE A * (M - h_lse (h c)) + xr A /\
    exponential A e (w c)) 0). intros c Ic. destruct (H c Ic) as (_ & E). auto.
Qed.

(** The document's bound, with one more rescaling for the division by a part's sum and one for its weight. *)
Theorem merged_within M w y order L O Uf lamf oh : J <> [] ->
  (forall c, In c parts -> enters M (h c) (w c) (y c)) -> largest_and_sum parts order h M w L -> added A y parts O ->
  0 < low_d K s roomy a_merged J top_merged r ops -> 0 <= Uf -> near Uf lamf (O / L) oh ->
  Rabs (oh - exact K s vv J) <= documented K s vv roomy a_merged J top_merged r ops Uf lamf.
Proof.
  intros NJ En ((c & Ic & EM) & Po & AL & HL) AO Hd HUf Hoh. destruct parts_sums as [f Hf].
  destruct (exponents M w (fun c' I' => proj1 (En c' I'))) as [e He].
  assert (Below : forall c, In c parts -> h_lse (h c) <= M) by (intros c' I'; apply (proj1 (En c' I'))).
  destruct (merged_weights f Hf M w e Below He order L Po AL) as (kl & rl & cl & Rl & Cl & SL).
  destruct (merged_values f Hf M w y e Below He O) as (ko & ro & co & Ro & Co & SO); auto.
  { intros c' I'. apply (En c' I'). }
  apply (documented_bound_any_reference K s sh_moved vv roomy roomy_sane a_merged J top_merged r Cs NJ scores_near ops
    (1 - eps A) (merged_l f M w e order) (merged_o f M w e parts) M L O Uf lamf oh kl rl cl ko ro co); auto.
  - apply merged_keys. auto.
  - apply merged_perm; auto.
  - destruct (Parts c Ic) as (S & D). rewrite EM. assert (B := lse_le c Ic S D). simpl. lra.
Qed.

(** ** The last division left out: parts are weighted by exponentials of their distance from the log-sum-exp of all. *)
Section Undivided.
Local Notation ML := (most_lost A n r ops).
Local Notation x0 := (eps1 A + xr A).
Hypothesis thE_lt1 : thE A < 1.
Hypothesis u_l_le : u_l <= thE A.
Hypothesis Hlam_l : 0 <= lam_l.
Hypothesis HQi : exists i, In i J /\ Q i <= Qt.
(** Logarithms: of what a part weighs beside its own computed sum, and of what a sum of weights is larger than the
    number of its keys. *)
Variables b grown : R.
Hypothesis Hb : 1 + ML / (1 - eps A) <= exp b * ((1 - upd A) * (1 - u A) ^ kk K J r).
Hypothesis Hb0 : 0 <= b.
Hypothesis Hgrown : P A (w_l A) (kk K J r) * gain A r + ML <= exp grown.
Hypothesis HgrownL : ln (INR n) + grown <= Lg.
Hypothesis HLgn : ln (INR n) + 1 + T A <= Lg.
Hypothesis Log_no_better : u_l <= epsL.
Hypothesis NJ : J <> [].

(** How large the largest log-sum-exp is, but for what it is above all scores: the weights' sum is smaller by that, and
    its logarithm errs by no less than the reference does. *)
Definition size_of_M := Qt + lse_err Qt + eps1 A.
(** Of the log-sum-exp of all, but for what is relative to its distance from the largest. *)
Definition of_log := lam_l + epsL * Lg + u_l * (2 * eps1 A + epsL * Lg).
Definition total_err := u_l * (size_of_M + Lg) + of_log.
Definition spare := room + (thE A * (Lg + T A) + X A r) + grown + 2 * eps1 A.
Variable kappa : R.
Hypothesis Hkappa : room + x0 + thE A * (b + Lg + eps1 A) <= kappa * (1 - thE A).
Definition merge_err := 2 * x0 + (u_l * size_of_M + 2 * thE A * ln (INR n)) + (of_log + epsL * spare) +
  thE A * (2 * kappa + (u_l * Lg + total_err) + 2 * b + eps1 A).
Definition top_total := T A + top + lse_err Qt + ln (INR n) + (thE A * (Lg + T A) + X A r) + room + grown +
  (u_l * Lg + total_err).
Local Notation UL := (UDd K s roomy a_merged J top_total r + LDd K s roomy a_merged J top_total r ops).
Definition DDu := (1 + UL) * exp merge_err - 1.
Definition low_u := low_d K s roomy a_merged J top_total r ops * exp (- merge_err).
(** The document's bound with its UD for divfree, and no division. *)
Definition undivided Uf lamf := (1 + Uf) * (spread K s vv roomy a_merged J top_total r +
  (Nd K s vv roomy a_merged J top_total r + LNd K s vv roomy a_merged J top_total r ops +
    (Rabs (exact K s vv J) + spread K s vv roomy a_merged J top_total r) * DDu) / low_u) +
  Uf * Rabs (exact K s vv J) + lamf.
Hypothesis Hsmall : (1 + UL) * exp merge_err <= exp room.
Hypothesis Hlow : 0 < low_d K s roomy a_merged J top_total r ops.

Variables M total L O : R.
Variable order : list nat.
Variables w w2 y2 : nat -> R.
Hypothesis Weigh : forall c, In c parts -> weighs M (h c) (w c).
Hypothesis Largest : largest_and_sum parts order h M w L.
Hypothesis Total : log_sum_exp M L total.
Hypothesis Above : M <= total.
Hypothesis Enter : forall c, In c parts -> enters total (h c) (w2 c) (y2 c).
Hypothesis AO : added A y2 parts O.

Lemma n_pos : 1 <= INR n.
Proof. apply (le_INR 1). clear - NJ. destruct J; [congruence|simpl; lia]. Qed.
Lemma parts_at_most : (length parts <= n)%nat.
Proof.
  rewrite <- (Permutation_length keys_are).
  assert (One : forall c, In c parts -> (1 <= length (keys c))%nat) by (intros; apply some_key; auto).
  clear - One. induction parts as [|p l IH]; simpl; [lia|]. rewrite app_length.
  assert (Q1 := One p (or_introl eq_refl)). assert (Q2 := IH ltac:(intros; apply One; right; auto)). lia.
Qed.
Lemma ln_le x y : 0 < x -> x <= y -> ln x <= ln y.
Proof. intros P [H|<-]; [left; apply ln_increasing; auto|lra]. Qed.
Lemma exp_back x y : exp x <= exp y -> x <= y.
Proof. intros H. rewrite <- (ln_exp x), <- (ln_exp y). apply ln_le; [apply exp_pos|auto]. Qed.
Lemma ln_pos x : 1 <= x -> 0 <= ln x.
Proof. intros H. rewrite <- ln_1. apply ln_le; lra. Qed.
Lemma parts_some : 1 <= INR (length parts).
Proof. destruct Largest as ((c & Ic & _) & _). apply (le_INR 1). destruct parts; [destruct Ic|simpl; lia]. Qed.
Lemma ML_pos : 0 <= ML.
Proof.
  assert (Q1 := lost_most nat (fun _ => 0) A [] 0 0 0 0 n r ops OK ltac:(simpl; lia) ltac:(lia) ltac:(lia) ltac:(lia)).
  lra.
Qed.
Lemma grown_pos : 0 <= grown.
Proof.
  assert (W1 := wl_ge1 A OK). assert (P0 := P_ge A OK (w_l A) W1 (kk K J r)). assert (M0 := ML_pos).
  assert (G1 : 1 <= gain A r).
  { apply exp_ge1. assert (X0 := X_pos A OK r). assert (T1 := s_T A OK). assert (TE := s_thE A OK).
    assert (O0 := s_off A OK).
    assert (0 <= thE A * T A) by (apply Rmult_le_pos; lra). lra. }
  destruct (Rle_dec 0 grown); auto. assert (exp grown < 1) by (rewrite <- exp_0; apply exp_increasing; lra).
  assert (1 <= P A (w_l A) (kk K J r) * gain A r) by (apply times_ge1; lra). lra.
Qed.
(** A sum of weights by the number of its keys: of a part, and of all of them. *)
Lemma log_of_sum sh0 ts m l k rc cn : sums K sh0 roomy (one K) (w_l A) (lampd A) ts m l k rc cn -> 0 < l ->
  (length ts <= n)%nat -> (rc <= r)%nat -> (cn <= ops)%nat -> ln l <= ln (INR (length ts)) + grown.
Proof.
  intros SL Pl Nc Hr Hc. destruct (sums_counts K sh0 roomy _ _ _ _ _ _ _ _ _ SL) as (Lk & Kl & _).
  assert (W1 := wl_ge1 A OK).
  assert (Sz := sums_size roomy roomy_sane K sh0 (bound.part r) (one K) (w_l A) (lampd A) _ _ _ _ _ _ (part_pos r) W1
    (s_lampd A OK) SL).
  assert (Kk : (k <= kk K J r)%nat) by (unfold kk; lia).
  assert (LJ := lost_most K sh0 roomy ts m k rc cn n r ops roomy_sane Nc Kk Hr Hc).
  rewrite (Sum_ext _ (fun _ => 1)) in Sz by (intros; unfold one; apply Rabs_R1).
  rewrite Sum_const, Rmult_1_r, Rabs_pos_eq in Sz by lra. apply le_INR in Lk. simpl (INR 1) in Lk.
  change (most_lost roomy n r ops) with ML in LJ. change (P roomy) with (P A) in Sz.
  change (gain roomy) with (gain A) in Sz. change (w_l roomy) with (w_l A) in LJ.
  change (lampd roomy) with (lampd A) in LJ. set (count := INR (length ts)) in *.
  rewrite <- (ln_exp grown), <- ln_mult by (try lra; apply exp_pos). apply ln_le; auto.
  assert (Pm1 := P_mono A OK (w_l A) W1 _ _ Kk). assert (P0 := P_ge A OK (w_l A) W1 k).
  assert (Gm := gain_mono A OK _ _ Hr). assert (Gp := gain_pos A rc). assert (M0 := ML_pos).
  apply Rle_trans with (count * (P A (w_l A) (kk K J r) * gain A r + ML)); [|apply Rmult_le_compat_l; lra].
  assert (Q1 : P A (w_l A) k * gain A rc <= P A (w_l A) (kk K J r) * gain A r) by (apply Rmult_le_compat; lra).
  assert (Q2 := Rmult_le_compat_l count _ _ ltac:(lra) Q1).
  assert (1 * ML <= count * ML) by (apply Rmult_le_compat_r; lra). lra.
Qed.
Lemma log_of_part c : In c parts -> ln (h_l (h c)) <= ln (INR (length (keys c))) + grown.
Proof.
  intros Ic. destruct (Parts c Ic) as [S _]. assert (Pl := l_pos c S). assert (Lk := some_key c Ic).
  destruct S as ((x & kl & rl & cl & ko & ro & co & Pm & Pp & SL & Hr & Hc & _) & _). assert (Nc := keys_length c Ic).
  assert (Nt : length (fst x) = length (keys c)).
  { rewrite (Permutation_length Pp), <- (map_length fst), (Permutation_length Pm). auto. }
  rewrite <- Nt. apply (log_of_sum sh (fst x) (h_m (h c)) _ kl rl cl); auto; [|lia|lia|unfold merge_ops; nia].
  apply sums_with_gap. auto.
Qed.
Lemma lse_err_mono q q' : q <= q' -> lse_err q <= lse_err q'.
Proof. intros. unfold lse_err. assert (u_l * (q + (1 + epsL) * Lg) <= u_l * (q' + (1 + epsL) * Lg)); [|lra].
  apply Rmult_le_compat_l; lra. Qed.
(** A log-sum-exp but for the logarithm of its part's sum. *)
Lemma without_log c : In c parts -> h_lse (h c) - ln (h_l (h c)) <= top + Cs + lse_err Qt.
Proof.
  intros Ic. destruct (Parts c Ic) as [S D]. assert (B := log_le c Ic S). destruct D as [(lg & N1 & N2) _].
  unfold near in N2. apply Rabs_bounds in N2. destruct S as (_ & (i & Ii & Hi) & _).
  assert (Ji := in_J c i Ic Ii). assert (H1 := Rabs_bounds _ _ (Ha i Ji)). assert (Ti := Htop i Ji).
  assert (N3 : epsL * Rmax 1 (Rabs (ln (h_l (h c)))) <= epsL * Lg)
    by (apply Rmult_le_compat_l; auto; apply Rmax_lub; auto).
  assert (N4 := Rabs_bounds _ _ (Rle_trans _ _ _ N1 N3)). apply Rabs_bounds in B.
  set (l := ln (h_l (h c))) in *. set (m := h_m (h c)) in *. set (t0 := top + Cs) in *.
  assert (0 <= epsL * Lg) by (apply Rmult_le_pos; lra).
  (* x + u|x| grows with x *)
  assert (Hm : m <= t0) by (unfold t0; lra).
  assert (M1 : Rabs m <= Rabs t0 + (t0 - m)).
  { replace m with (t0 + - (t0 - m)) at 1 by ring. eapply Rle_trans; [apply Rabs_triang|].
    rewrite Rabs_Ropp, (Rabs_pos_eq (t0 - m)) by lra. lra. }
  assert (M2 : u_l * Rabs m <= u_l * (Rabs t0 + (t0 - m))) by (apply Rmult_le_compat_l; lra).
  assert (M3 : u_l * (t0 - m) <= 1 * (t0 - m)) by (apply Rmult_le_compat_r; lra).
  assert (M4 : Rabs (m + lg) <= Rabs m + (1 + epsL) * Lg).
  { eapply Rle_trans; [apply Rabs_triang|]. apply Rplus_le_compat_l. apply Rabs_le_iff. lra. }
  assert (M5 : u_l * Rabs (m + lg) <= u_l * (Rabs m + (1 + epsL) * Lg)) by (apply Rmult_le_compat_l; lra).
  assert (M6 : u_l * Rabs t0 <= u_l * Qt) by (apply Rmult_le_compat_l; lra).
  unfold lse_err. lra.
Qed.
(** M is one of them. *)
Lemma M_at_most : M <= top + lse_err Qt + Cs + ln (INR n) + grown /\ M <= top + lse_err Qt + Cs + Lg.
Proof.
  destruct Largest as ((c & Ic & EM) & _). assert (Q1 := without_log c Ic). assert (Q2 := log_of_part c Ic).
  rewrite <- EM in Q1. assert (Lk := le_INR 1 _ (some_key c Ic)). simpl (INR 1) in Lk.
  assert (Q3 := ln_le (INR (length (keys c))) (INR n) ltac:(lra) (le_INR _ _ (keys_length c Ic))). lra.
Qed.
Lemma size_of_M_is : Rabs M <= size_of_M + Rmax 0 (M - (top + lse_err Qt + Cs)).
Proof.
  assert (E0 := eps1_pos A OK). assert (T0 := Rabs_bounds _ _ HQt). set (g := M - (top + lse_err Qt + Cs)).
  assert (M1 := Rmax_l 0 g). assert (M2 := Rmax_r 0 g). apply Rabs_le_iff.
  split; [|unfold size_of_M, g in *; lra].
  destruct HQi as (i & Ii & Qi). apply (Permutation_in _ (Permutation_sym keys_are)), in_flat_map in Ii.
  destruct Ii as (c' & Ic' & Ii). destruct (Parts c' Ic') as [S D].
  assert (R1 := Rabs_bounds _ _ (reference_size c' Ic' S i Ii)).
  assert (R2 := Rabs_bounds _ _ (lse_error c' Ic' S D (Q i) (reference_size c' Ic' S i Ii))).
  assert (R3 := log_low c' S). assert (R4 := lse_err_mono _ _ Qi).
  assert (R5 : h_lse (h c') <= M) by apply (Weigh c' Ic'). unfold size_of_M. lra.
Qed.
Lemma M_within : Rabs M <= size_of_M + Lg.
Proof.
  assert (Q1 := size_of_M_is). destruct M_at_most as [_ Q2].
  assert (Rmax 0 (M - (top + lse_err Qt + Cs)) <= Lg) by (apply Rmax_lub; lra). lra.
Qed.

Section Chosen.
Variable f : nat -> list (K * R) * list (K * R).
Hypothesis Hf : forall c, In c parts -> sums_of (keys c) (h c) (f c).
(** What a part weighs, beside its own computed sum; and beside the others. *)
Definition mass c := Sum (weight K sh (h_m (h c))) (snd (f c)) / h_l (h c).
Definition share c := exp (h_lse (h c)) * mass c.
Definition rho M0 e0 w0 c := e0 c - (h_lse (h c) - M0) + arithmetic.split roomy (e0 c) (w0 c).
Local Notation S0 := (Sum share parts).
Local Notation lnP := (ln (INR (length parts))).

Lemma Sum_flat_map {X Y} (g : Y -> R) (g0 : X -> list Y) t : Sum g (flat_map g0 t) = Sum (fun c => Sum g (g0 c)) t.
Proof. induction t; simpl; auto. rewrite Sum_app, IHt. auto. Qed.
Lemma mass_le c : In c parts -> 0 < mass c <= exp b.
Proof.
  intros Ic. destruct (Parts c Ic) as [S _]. assert (Pl := l_pos c S). assert (Lk := some_key c Ic).
  destruct (Hf c Ic) as (kl & rl & cl & ko & ro & co & Pm & Pp & SL & Hr & Hc & _).
  destruct S as (_ & _ & HL).
  destruct (sums_counts K sh A _ _ _ _ _ _ _ _ _ SL) as (_ & Kl & _). assert (W1 := wl_ge1 A OK).
  assert (Nc := keys_length c Ic).
  assert (Nt : length (fst (f c)) = length (keys c)).
  { rewrite (Permutation_length Pp), <- (map_length fst), (Permutation_length Pm). auto. }
  assert (Kk : (kl <= kk K J r)%nat) by (unfold kk; lia).
  assert (LJ := lost_most K sh A (fst (f c)) (h_m (h c)) kl rl cl n r ops OK ltac:(lia) Kk ltac:(lia)
    ltac:(unfold merge_ops; nia)).
  assert (U0 := s_u A OK). assert (U1 := s_u1 A OK). assert (D0 := s_upd A OK). assert (D1 := s_upd1 A OK).
  assert (Low := sums_lower K sh A OK (bound.part r) (part_pos r) (one K) (w_l A) (lampd A) W1 (s_lampd A OK)
    _ _ _ _ _ _ U1 ltac:(unfold w_l; lra) (fun _ => eq_refl) SL).
  replace (2 - w_l A) with (1 - upd A) in Low by (unfold w_l; ring).
  unfold mass. rewrite <- (Sum_perm _ _ _ Pp). set (W := Sum (weight K sh (h_m (h c))) (fst (f c))) in *.
  assert (PW : 0 < W).
  { apply Sum_pos; [|intros; apply exp_pos]. intros E0. rewrite E0 in Nt. simpl in Nt. lia. }
  split; [apply Rdiv_lt_0_compat; auto|].
  assert (Pk : (1 - u A) ^ kk K J r <= (1 - u A) ^ kl).
  { replace ((1 - u A) ^ kk K J r) with ((1 - u A) ^ kl * (1 - u A) ^ (kk K J r - kl))
      by (rewrite <- pow_add; f_equal; lia).
    assert (Le1 : (1 - u A) ^ (kk K J r - kl) <= 1 ^ (kk K J r - kl)) by (apply pow_incr; lra). rewrite pow1 in Le1.
    assert (Q2 : 0 <= (1 - u A) ^ kl) by (apply pow_le; lra).
    assert ((1 - u A) ^ kl * (1 - u A) ^ (kk K J r - kl) <= (1 - u A) ^ kl * 1) by (apply Rmult_le_compat_l; auto).
    lra. }
  set (q := (1 - upd A) * (1 - u A) ^ kk K J r) in *. assert (Ep := s_eps A OK). assert (M0 := ML_pos).
  assert (q0 : 0 < q).
  { assert (0 <= ML / (1 - eps A)) by (apply Rmult_le_pos; [auto|left; apply Rinv_0_lt_compat; lra]).
    assert (Eb := exp_pos b). destruct (Rle_dec q 0) as [N|N]; [|lra].
    assert (exp b * q <= exp b * 0) by (apply Rmult_le_compat_l; lra). lra. }
  assert (Up : q * W <= h_l (h c) + ML).
  { assert ((1 - upd A) * (1 - u A) ^ kk K J r <= (1 - upd A) * (1 - u A) ^ kl) by (apply Rmult_le_compat_l; lra).
    assert (q * W <= (1 - upd A) * (1 - u A) ^ kl * W) by (apply Rmult_le_compat_r; unfold q; lra). lra. }
  assert (Lc : ML <= ML / (1 - eps A) * h_l (h c)).
  { assert (ML / (1 - eps A) * (1 - eps A) = ML) by (field; lra).
    assert (ML / (1 - eps A) * (1 - eps A) <= ML / (1 - eps A) * h_l (h c)); [|lra].
    apply Rmult_le_compat_l; auto. apply Rmult_le_pos; [auto|left; apply Rinv_0_lt_compat; lra]. }
  apply Rmult_le_reg_r with (h_l (h c) * q); [apply Rmult_lt_0_compat; auto|].
  replace (W / h_l (h c) * (h_l (h c) * q)) with (q * W) by (field; lra).
  assert (Hb2 : (1 + ML / (1 - eps A)) * h_l (h c) <= exp b * q * h_l (h c)) by (apply Rmult_le_compat_r; lra). lra.
Qed.
Lemma share_pos c : In c parts -> 0 < share c.
Proof. intros Ic. apply Rmult_lt_0_compat; [apply exp_pos|apply mass_le; auto]. Qed.
Lemma S0_pos : 0 < S0.
Proof.
  apply Sum_pos; [|apply share_pos]. destruct Largest as ((c & Ic & _) & _). intros E. rewrite E in Ic. destruct Ic.
Qed.

Section Spread.
Variable M0 : R.
Variables w0 e0 : nat -> R.
Hypothesis He : forall c, In c parts -> Rabs (e0 c - (h_lse (h c) - M0)) <= thE A * (M0 - h_lse (h c)) + xr A /\
  exponential A (e0 c) (w0 c).
Lemma final_mass c ts : In c parts -> (forall t, In t ts -> In (fst t) (keys c)) ->
  exp M0 * Sum (weight K sh_moved M0) (final M0 c (e0 c) (w0 c) ts) =
    exp (h_lse (h c)) * (Sum (weight K sh (h_m (h c))) ts / h_l (h c)) * exp (rho M0 e0 w0 c).
Proof.
  intros Ic Ik. destruct (Parts c Ic) as [S _]. assert (Pl := l_pos c S). unfold final, rescaled. rewrite !Sum_map.
  rewrite (Sum_ext _ (fun t => exp (h_lse (h c) - M0 + rho M0 e0 w0 c) / h_l (h c) * weight K sh (h_m (h c)) t)).
  - rewrite Sum_scal. unfold Rminus. rewrite !exp_plus, exp_Ropp. assert (E0 := exp_pos M0). field. lra.
  - intros t It. unfold weight, sh_moved, rho. simpl. rewrite (part_of_key c (fst t) Ic (Ik t It)).
    set (x := e0 c - (h_lse (h c) - M0) + arithmetic.split roomy (e0 c) (w0 c)).
    replace (sh (fst t) + moved c - M0 + (snd t + (h_lse (h c) - (h_m (h c) + moved c + ln (h_l (h c)))) + x))
      with ((h_lse (h c) - M0 + x) + (sh (fst t) - h_m (h c) + snd t) - ln (h_l (h c))) by ring.
    rewrite exp_minus, exp_plus, exp_ln by auto. field. lra.
Qed.
Lemma merged_mass : exp M0 * Sum (weight K sh_moved M0) (merged_o f M0 w0 e0 parts) =
  Sum (fun c => share c * exp (rho M0 e0 w0 c)) parts.
Proof.
  unfold merged_o. rewrite Sum_flat_map, <- Sum_scal. apply Sum_ext. intros c Ic. rewrite final_mass; auto.
  intros t It. destruct (Hf c Ic) as (kl & rl & cl & ko & ro & co & Pm & _). apply (Permutation_in _ Pm), in_map. auto.
Qed.
Lemma rho_le c : In c parts -> Rabs (rho M0 e0 w0 c) <= x0 + thE A * ((M0 + b) - ln (share c)).
Proof.
  intros Ic. destruct (mass_le c Ic) as [Pm Lm]. destruct (He c Ic) as [E1 E2].
  destruct (split_spec roomy roomy_sane (e0 c) (w0 c) E2) as [_ S2]. unfold rho.
  eapply Rle_trans; [apply Rabs_triang|].
  assert (Ls : ln (share c) <= h_lse (h c) + b).
  { unfold share. rewrite ln_mult, ln_exp by (auto; apply exp_pos). apply Rplus_le_compat_l.
    rewrite <- (ln_exp b). apply ln_le; auto. }
  assert (TE := s_thE A OK). change (eps1 roomy) with (eps1 A) in S2.
  assert (thE A * (M0 - h_lse (h c)) <= thE A * (M0 + b - ln (share c))) by (apply Rmult_le_compat_l; lra). lra.
Qed.
(** All that is said of a reference M0: the sum of weights relative to it, as the parts' shares. *)
Definition mu := x0 + thE A * (M0 + b - ln S0 + lnP).
Lemma mass_spread : exp (- mu) * S0 <= exp M0 * Sum (weight K sh_moved M0) (merged_o f M0 w0 e0 parts) <= exp mu * S0.
Proof.
  rewrite merged_mass. apply (exponents_spread parts share (rho M0 e0 w0) (thE A) x0 (M0 + b)).
  - destruct Largest as ((c & Ic & _) & _). intros E. rewrite E in Ic. destruct Ic.
  - apply (s_thE A OK).
  - apply share_pos.
  - apply rho_le.
Qed.
End Spread.

(** What is summed up relative to M, and how large the log-sum-exp of all is. *)
Variables e1 e2 : nat -> R.
Hypothesis He1 : forall c, In c parts -> Rabs (e1 c - (h_lse (h c) - M)) <= thE A * (M - h_lse (h c)) + xr A /\
  exponential A (e1 c) (w c).
Hypothesis He2 : forall c, In c parts -> Rabs (e2 c - (h_lse (h c) - total)) <= thE A * (total - h_lse (h c)) + xr A /\
  exponential A (e2 c) (w2 c).
Local Notation terms1 := (merged_o f M w e1 parts).
Local Notation terms2 := (merged_o f total w2 e2 parts).
Local Notation W1 := (Sum (weight K sh_moved M) terms1).
Local Notation W2 := (Sum (weight K sh_moved total) terms2).
Local Notation z := (T A + top + lse_err Qt + Cs).
Variables kl rl cl : nat.
Hypothesis SL : sums K sh_moved roomy (one K) (w_l A) (lampd A) (merged_l f M w e1 order) M L kl rl cl.
Hypothesis Rl : (rl <= r)%nat.
Hypothesis Cl : (cl <= ops)%nat.

Lemma Below1 : forall c, In c parts -> h_lse (h c) <= M.
Proof. intros c Ic. apply (Weigh c Ic). Qed.
Lemma Below2 : forall c, In c parts -> h_lse (h c) <= total.
Proof. intros c Ic. apply (proj1 (Enter c Ic)). Qed.
Lemma order_is : Permutation order parts.
Proof. apply Largest. Qed.
Lemma keys1 : Permutation (map fst (merged_l f M w e1 order)) J.
Proof.
  eapply Permutation_trans; [apply Permutation_map, (merged_perm f Hf M w e1 order order_is)|]. apply merged_keys. auto.
Qed.
Lemma length1 : length (merged_l f M w e1 order) = n.
Proof. rewrite <- (map_length fst), (Permutation_length keys1). auto. Qed.
Lemma L_pos : 0 < L.
Proof. destruct Largest as (_ & _ & _ & H). assert (E := s_eps A OK). lra. Qed.
Lemma L_low : - eps1 A <= ln L.
Proof.
  destruct Largest as (_ & _ & _ & H). assert (E := s_eps A OK).
  assert (B := Rabs_bounds _ _ (ln_near (eps A) (- eps A) E ltac:(lra))). fold (eps1 A) in B.
  assert (Q1 := ln_le (1 + - eps A) L ltac:(lra) ltac:(lra)). lra.
Qed.
Lemma L_high : ln L <= ln (INR n) + grown.
Proof. rewrite <- length1. apply (log_of_sum sh_moved _ M L kl rl cl); auto; [apply L_pos|rewrite length1; lia]. Qed.
(** What the log-sum-exp of all is off by. *)
Definition te := u_l * Rabs M + u_l * ln L + (lam_l + epsL * Rmax 1 (Rabs (ln L)) + u_l * (2 * eps1 A + epsL * Lg)).
Lemma log_L : Rabs (ln L) <= Lg.
Proof. assert (H1 := L_low). assert (H2 := L_high). apply Rabs_le_iff. lra. Qed.
Lemma total_is : Rabs (total - (M + ln L)) <= te.
Proof.
  destruct Total as (lg & N1 & N2). assert (H1 := L_low). assert (E0 := eps1_pos A OK). assert (AL := log_L).
  assert (N3 : epsL * Rmax 1 (Rabs (ln L)) <= epsL * Lg) by (apply Rmult_le_compat_l; auto; apply Rmax_lub; auto).
  assert (A2 : Rabs (ln L) <= ln L + 2 * eps1 A) by (apply Rabs_le_iff; lra). unfold near in N2.
  assert (A3 : Rabs (M + lg) <= Rabs M + (ln L + 2 * eps1 A + epsL * Lg)).
  { replace (M + lg) with (M + (ln L + (lg - ln L))) by ring. eapply Rle_trans; [apply Rabs_triang|].
    assert (Q1 := Rabs_triang (ln L) (lg - ln L)). lra. }
  assert (A4 : u_l * Rabs (M + lg) <= u_l * (Rabs M + (ln L + 2 * eps1 A + epsL * Lg)))
    by (apply Rmult_le_compat_l; lra).
  replace (total - (M + ln L)) with ((total - (M + lg)) + (lg - ln L)) by ring.
  eapply Rle_trans; [apply Rabs_triang|]. unfold te. lra.
Qed.
Lemma te_le : te <= u_l * Lg + total_err.
Proof.
  assert (H2 := L_high). assert (MW := M_within). assert (u_l * Rabs M <= u_l * (size_of_M + Lg))
    by (apply Rmult_le_compat_l; lra). assert (AL := log_L).
  assert (N3 : epsL * Rmax 1 (Rabs (ln L)) <= epsL * Lg) by (apply Rmult_le_compat_l; auto; apply Rmax_lub; auto).
  assert (u_l * ln L <= u_l * Lg) by (apply Rmult_le_compat_l; lra). unfold te, total_err, of_log. lra.
Qed.
(** Where the sum of weights is as small as the largest log-sum-exp is above the scores. *)
Lemma te_joint : M + ln L <= room + ln (INR n) + (T A + top + lse_err Qt + Cs + thE A * (Lg + T A) + X A r) ->
  0 <= room -> te <= u_l * size_of_M + u_l * ln L + (of_log + epsL * spare).
Proof.
  intros H Rp. assert (H1 := L_low). assert (E0 := eps1_pos A OK). set (g := M - (top + lse_err Qt + Cs)).
  assert (Sz := size_of_M_is). fold g in Sz. assert (G0 := Rmax_l 0 g). destruct M_at_most as [Mt _].
  assert (T0 := s_T A OK). assert (Th := s_thE A OK). assert (Xp := X_pos A OK r). assert (Gp := grown_pos).
  assert (TT : 0 <= thE A * (Lg + T A)) by (apply Rmult_le_pos; lra).
  assert (A2 : Rabs (ln L) <= ln L + 2 * eps1 A) by (apply Rabs_le_iff; lra).
  assert (J1 : Rmax 1 (Rabs (ln L)) <= Lg + spare - Rmax 0 g).
  { assert (N0 := ln_pos _ n_pos). unfold spare. destruct (Rle_dec g 0) as [G|G].
    - rewrite (Rmax_left 0 g) by lra. assert (H2 := L_high). apply Rmax_lub; lra.
    - rewrite (Rmax_right 0 g) by lra. unfold g in *. apply Rmax_lub; lra. }
  assert (J2 := Rmult_le_compat_l epsL _ _ HepsL J1).
  assert (J3 : u_l * Rabs M <= u_l * (size_of_M + Rmax 0 g)) by (apply Rmult_le_compat_l; lra).
  assert (J4 : u_l * Rmax 0 g <= epsL * Rmax 0 g) by (apply Rmult_le_compat_r; lra).
  unfold te, of_log. lra.
Qed.
Lemma moved_at_most j : In j J -> sh_moved j <= z.
Proof.
  intros Ij. apply (Permutation_in _ (Permutation_sym keys_are)), in_flat_map in Ij. destruct Ij as (c & Ic & Ij).
  unfold sh_moved. rewrite (part_of_key c j Ic Ij). assert (Q1 := without_log c Ic). destruct (Parts c Ic) as [S _].
  assert (L0 := low_by_le c S). destruct (Hf c Ic) as (kl' & rl' & cl' & ko & ro & co & Pm & Pp & _ & _ & _ & SO & _).
  destruct (sums_spec K sh A OK 1 Rlt_0_1 vv _ _ (wo_ge1 A OK) (lamw_o_pos A OK) _ _ _ _ _ _ SO) as [F0 _].
  rewrite Forall_forall in F0. assert (It := Permutation_in _ (Permutation_sym Pm) Ij). apply in_map_iff in It.
  destruct It as (t & Et & It). destruct (F0 t It) as [H _]. rewrite Et in H. unfold moved. lra.
Qed.
Lemma W1_at_most : exp M * W1 <= INR n * exp (z + thE A * (Lg + T A) + X A r).
Proof.
  rewrite <- (Sum_perm _ _ _ (merged_perm f Hf M w e1 order order_is)), <- length1, <- Sum_const, <- Sum_scal.
  apply Sum_le. intros t It. assert (TE := s_thE A OK).
  destruct (terms_known K sh_moved roomy roomy_sane r _ _ _ _ _ _ _ _ _ (wl_ge1 A OK) (s_lampd A OK) SL Rl t It)
    as [K1 K2].
  assert (Kj : In (fst t) J) by (apply (Permutation_in _ keys1), in_map; auto).
  assert (Z := moved_at_most _ Kj). destruct M_at_most as [_ Mz]. apply Rabs_bounds in K2. unfold plain in K2.
  change (T roomy) with (T A) in *. change (thE roomy) with (thE A) in *. change (X roomy r) with (X A r) in K2.
  unfold weight. rewrite <- exp_plus. apply exp_mono.
  assert ((1 - thE A) * sh_moved (fst t) <= (1 - thE A) * z) by (apply Rmult_le_compat_l; lra).
  assert (thE A * M <= thE A * (z - T A + Lg)) by (apply Rmult_le_compat_l; lra). lra.
Qed.

Lemma merge_err_pos : 0 <= of_log /\ 0 <= kappa /\ 0 <= merge_err.
Proof.
  clear Hgap Hsmall Hlow.
  assert (Th := s_thE A OK). assert (T0 := s_T A OK). assert (E0 := eps1_pos A OK). assert (Gp := grown_pos).
  assert (te0 : 0 <= te) by (eapply Rle_trans; [apply Rabs_pos|apply total_is]). assert (TE := te_le).
  assert (X0 := s_xr A OK). assert (Xp := X_pos A OK r). assert (N1 := n_pos).
  assert (TT : 0 <= thE A * (Lg + T A)) by (apply Rmult_le_pos; lra).
  assert (of0 : 0 <= of_log).
  { unfold of_log. assert (0 <= epsL * Lg) by (apply Rmult_le_pos; lra).
    assert (0 <= u_l * (2 * eps1 A + epsL * Lg)) by (apply Rmult_le_pos; lra). lra. }
  assert (kap : 0 <= kappa).
  { assert (0 <= thE A * (b + Lg + eps1 A)) by (apply Rmult_le_pos; lra). apply Rmult_le_reg_r with (1 - thE A); lra. }
  split; [auto|]. split; [auto|].
  assert (Sm : 0 <= size_of_M).
    { destruct Largest as ((c & Ic & _) & _). destruct (Parts c Ic) as [S D'].
      assert (Qt0 : 0 <= Qt) by (eapply Rle_trans; [apply Rabs_pos|apply HQt]).
      assert (0 <= lse_err Qt); [|unfold size_of_M; lra]. unfold lse_err.
      assert (0 <= epsL * Lg) by (apply Rmult_le_pos; lra).
      assert (0 <= u_l * (Qt + (1 + epsL) * Lg)) by (apply Rmult_le_pos; lra). lra. }
    assert (0 <= u_l * size_of_M) by (apply Rmult_le_pos; lra). assert (N0 := ln_pos _ N1).
    assert (0 <= 2 * thE A * ln (INR n)) by (apply Rmult_le_pos; lra).
    assert (0 <= epsL * spare) by (apply Rmult_le_pos; [auto|unfold spare; lra]).
    unfold merge_err. assert (0 <= thE A * (2 * kappa + (u_l * Lg + total_err) + 2 * b + eps1 A))
      by (apply Rmult_le_pos; lra). lra.
Qed.
(** Whatever room is that much: the weights' sums relative to the largest log-sum-exp and to that of all, which is no
    larger than this. *)
Lemma two_sums : L <= exp room * W1 -> total <= top_total + Cs /\
  W2 * L <= exp merge_err * W1 /\ exp (- merge_err) * W1 <= W2 * L.
Proof.
  clear Hgap Hsmall Hlow.
  intros Lroom. assert (Ko := merged_keys f Hf total w2 e2). assert (LP := L_pos). assert (LL := L_low).
  assert (LH := L_high). assert (TI := Rabs_bounds _ _ total_is). assert (TE := te_le).
  assert (te0 : 0 <= te) by (eapply Rle_trans; [apply Rabs_pos|apply total_is]).
  destruct M_at_most as [Mt _]. assert (Th := s_thE A OK). assert (T0 := s_T A OK). assert (E0 := eps1_pos A OK).
  assert (X0 := s_xr A OK). assert (Xp := X_pos A OK r). assert (Gp := grown_pos). assert (N1 := n_pos).
  assert (TT : 0 <= thE A * (Lg + T A)) by (apply Rmult_le_pos; lra).
  assert (PW : 0 < W1).
  { assert (exp room * W1 > 0) by lra. assert (Er := exp_pos room). apply Rmult_lt_reg_l with (exp room); lra. }
  (* the two sums of shares *)
  destruct (mass_spread M w e1 He1) as [A1 A2]. destruct (mass_spread total w2 e2 He2) as [B1 B2].
  assert (Mx := W1_at_most). set (V1 := W1) in *. set (V2 := W2) in *.
  assert (PS := S0_pos). unfold mu in *. set (S0 := Sum share parts) in *.
  assert (P1 := parts_some). set (lnP := ln (INR (length parts))) in *. assert (P0 : 0 <= lnP) by (apply ln_pos; auto).
  assert (Pn : lnP <= ln (INR n)).
  { apply ln_le; [lra|]. apply le_INR, parts_at_most. }
  set (me := merge_err) in *. assert (Eme := exp_pos me). set (x := M - ln S0).
  destruct merge_err_pos as (of0 & kap & me0). fold me in me0.
  assert (EM := exp_pos M). assert (ET := exp_pos total).
  (* the log-sum-exp of all is near that of all keys *)
  assert (Near : M + ln L <= room + ln (INR n) + (T A + top + lse_err Qt + Cs + thE A * (Lg + T A) + X A r)).
  { apply exp_back. rewrite (exp_plus M), (exp_ln L) by auto.
    rewrite (exp_plus (room + ln (INR n))), (exp_plus room (ln (INR n))), (exp_ln (INR n)) by lra.
    apply Rle_trans with (exp room * (exp M * V1)).
    - assert (exp M * L <= exp M * (exp room * V1)) by (apply Rmult_le_compat_l; lra). lra.
    - rewrite Rmult_assoc. apply Rmult_le_compat_l; [left; apply exp_pos|exact Mx]. }
  assert (Joint := te_joint Near Hroom).
  assert (Ht : total <= top_total + Cs) by (unfold top_total; lra).
  assert (Hx : x <= kappa - ln L).
  { assert (A4 : M + ln L <= room + (x0 + thE A * (M + b - ln S0 + lnP)) + ln S0).
    { assert (A3 : exp (M + ln L) <= exp (room + (x0 + thE A * (M + b - ln S0 + lnP)) + ln S0)).
      { rewrite (exp_plus (room + _)), (exp_plus room), (exp_plus M), !exp_ln by auto.
        apply Rle_trans with (exp room * (exp M * V1)).
        - assert (exp M * L <= exp M * (exp room * V1)) by (apply Rmult_le_compat_l; lra). lra.
        - rewrite Rmult_assoc. apply Rmult_le_compat_l; [left; apply exp_pos|auto]. }
      apply exp_back. exact A3. }
    assert (A6 : 0 <= thE A * (Lg + eps1 A + ln L - lnP)) by (apply Rmult_le_pos; lra).
    apply Rmult_le_reg_r with (1 - thE A); [lra|]. unfold x. lra. }
  set (mu1 := x0 + thE A * (M + b - ln S0 + lnP)) in *. set (mu2 := x0 + thE A * (total + b - ln S0 + lnP)) in *.
  assert (Mus : mu1 + mu2 + te <= me).
  { assert (Q1 : thE A * (M + b - ln S0 + lnP) <= thE A * (kappa - ln L + b + lnP))
      by (apply Rmult_le_compat_l; unfold x in Hx; lra).
    assert (Q2 : thE A * (total + b - ln S0 + lnP) <= thE A * (kappa + (u_l * Lg + total_err) + b + lnP))
      by (apply Rmult_le_compat_l; unfold x in Hx; lra).
    assert (Q3 : (thE A - u_l) * - ln L <= (thE A - u_l) * eps1 A) by (apply Rmult_le_compat_l; lra).
    assert (Q4 : (thE A - u_l) * eps1 A <= thE A * eps1 A) by (apply Rmult_le_compat_r; lra).
    assert (Q5 : thE A * lnP <= thE A * ln (INR n)) by (apply Rmult_le_compat_l; lra).
    unfold mu1, mu2, me, merge_err. lra. }
  assert (El : exp (ln L) = L) by (apply exp_ln; auto).
  assert (Up : V2 * L <= exp me * V1).
  { assert (Q1 : exp total * V2 <= exp mu2 * (exp mu1 * (exp M * V1))).
    { eapply Rle_trans; [apply B2|]. apply Rmult_le_compat_l; [left; apply exp_pos|].
      assert (Q2 : exp mu1 * (exp (- mu1) * S0) <= exp mu1 * (exp M * V1))
        by (apply Rmult_le_compat_l; [left; apply exp_pos|auto]).
      rewrite <- Rmult_assoc, <- exp_plus, Rplus_opp_r, exp_0, Rmult_1_l in Q2. exact Q2. }
    apply Rmult_le_reg_l with (exp total); auto.
    apply Rle_trans with (exp mu2 * (exp mu1 * (exp M * V1)) * exp (ln L)).
    - rewrite El, <- Rmult_assoc. apply Rmult_le_compat_r; lra.
    - replace (exp mu2 * (exp mu1 * (exp M * V1)) * exp (ln L)) with (exp (mu2 + mu1 + M + ln L) * V1)
        by (rewrite !exp_plus; ring).
      rewrite <- Rmult_assoc, <- exp_plus. apply Rmult_le_compat_r; [lra|]. apply exp_mono. lra. }
  assert (Dn : exp (- me) * V1 <= V2 * L).
  { assert (Q1 : exp (- mu2) * (exp (- mu1) * (exp M * V1)) <= exp total * V2).
    { eapply Rle_trans; [|apply B1]. apply Rmult_le_compat_l; [left; apply exp_pos|].
      assert (Q2 : exp (- mu1) * (exp M * V1) <= exp (- mu1) * (exp mu1 * S0))
        by (apply Rmult_le_compat_l; [left; apply exp_pos|auto]).
      rewrite <- Rmult_assoc, <- (Rmult_assoc _ (exp mu1)), <- !exp_plus, Rplus_opp_l, exp_0, Rmult_1_l, exp_plus,
        Rmult_assoc in Q2. exact Q2. }
    apply Rmult_le_reg_l with (exp total); auto.
    apply Rle_trans with (exp (- mu2) * (exp (- mu1) * (exp M * V1)) * exp (ln L)).
    - replace (exp (- mu2) * (exp (- mu1) * (exp M * V1)) * exp (ln L)) with (exp (- mu2 + - mu1 + M + ln L) * V1)
        by (rewrite !exp_plus; ring).
      rewrite <- Rmult_assoc, <- exp_plus. apply Rmult_le_compat_r; [lra|]. apply exp_mono. lra.
    - rewrite El, <- (Rmult_assoc (exp total)). apply Rmult_le_compat_r; lra. }
  auto.
Qed.

Variables ko ro co : nat.
Hypothesis SO : sums K sh_moved roomy vv (w_o A) ((1 + u A) * lamp A) terms2 total O ko ro co.
Hypothesis Ro : (ro <= r)%nat.
Hypothesis Co : (co <= ops)%nat.
Lemma undivided_error Uf lamf oh : 0 <= Uf -> near Uf lamf O oh ->
  Rabs (oh - exact K s vv J) <= undivided Uf lamf.
Proof.
  intros HUf Hoh.
  assert (Pm := merged_perm f Hf M w e1 order order_is). assert (K1 := keys1).
  assert (Ko := merged_keys f Hf total w2 e2). assert (LP := L_pos). assert (LL := L_low). assert (LH := L_high).
  assert (TI := Rabs_bounds _ _ total_is). assert (TE := te_le).
  assert (te0 : 0 <= te) by (eapply Rle_trans; [apply Rabs_pos|apply total_is]).
  destruct M_at_most as [Mt _]. assert (Th := s_thE A OK). assert (T0 := s_T A OK). assert (E0 := eps1_pos A OK).
  assert (X0 := s_xr A OK). assert (Xp := X_pos A OK r). assert (Gp := grown_pos). assert (N1 := n_pos).
  assert (TT : 0 <= thE A * (Lg + T A)) by (apply Rmult_le_pos; lra).
  assert (Hm : M <= top_total + gap roomy + Cs) by (unfold top_total; simpl gap; lra).
  assert (HF1 : 1 <= Sum (weight K sh_moved M) (merged_l f M w e1 order) * F roomy r).
  { apply (weight_enough K roomy roomy_sane J r ops (1 - eps A)); [|apply Hgap].
    assert (Kept := weight_kept K sh_moved roomy roomy_sane J r ops _ M L kl rl cl K1 SL Rl Cl).
    destruct Largest as (_ & _ & _ & HL). eapply Rle_trans; [|apply Kept].
    change (most_lost roomy) with (most_lost A). lra. }
  set (bg := documented.big K s roomy a_merged J top_total r (one K) 1).
  destruct (weights_error K s sh_moved roomy roomy_sane a_merged J top_total kl cl r bg Cs NJ scores_near _ M L rl K1
    Hm SL Rl HF1) as (PW & HD & Hl).
  rewrite (Sum_perm _ _ _ Pm) in PW, HD, Hl.
  destruct (sums_counts _ _ _ _ _ _ _ _ _ _ _ _ SL) as (_ & Ckl & _).
  destruct (sums_counts _ _ _ _ _ _ _ _ _ _ _ _ SO) as (_ & Cko & _).
  rewrite length1 in Ckl. rewrite <- (map_length fst), (Permutation_length Ko) in Cko.
  destruct (denominator_documented K s roomy roomy_sane RN a_merged J top_total r ops kl cl NJ) as [D1 D2];
    [rewrite additions_any; unfold kk; lia|lia|].
  fold bg in D1, D2. set (D := UL) in *. set (lw := low_d K s roomy a_merged J top_total r ops) in *.
  assert (HD' : Rabs (L - W1) <= W1 * D) by (eapply Rle_trans; [apply HD|]; apply Rmult_le_compat_l; lra).
  assert (D0 : 0 <= D).
  { apply Rmult_le_reg_l with W1; auto. rewrite Rmult_0_r. eapply Rle_trans; [apply Rabs_pos|apply HD']. }
  assert (Hl' : W1 * lw <= L) by (eapply Rle_trans; [|apply Hl]; apply Rmult_le_compat_l; lra).
  apply Rabs_bounds in HD'.
  (* the two sums of shares *)
  set (V1 := W1) in *. set (V2 := W2) in *.
  destruct merge_err_pos as (_ & _ & me0).
  assert (Room : 1 + D <= exp room).
  { assert (G1 := exp_ge1 merge_err me0).
    assert (1 * (1 + D) <= exp merge_err * (1 + D)) by (apply Rmult_le_compat_r; lra). lra. }
  destruct two_sums as (Ht' & Up & Dn).
  { fold V1. assert ((1 + D) * V1 <= exp room * V1) by (apply Rmult_le_compat_r; lra). lra. }
  fold V1 V2 in Up, Dn. set (me := merge_err) in *.
  assert (Ht : total <= top_total + gap roomy + Cs) by (simpl gap; lra).
  assert (Inv : exp me * exp (- me) = 1) by (rewrite <- exp_plus, Rplus_opp_r; apply exp_0).
  assert (Enm := exp_pos (- me)). assert (G1 := exp_ge1 me me0).
  (* what is 1 in exact arithmetic *)
  assert (C1 : 1 <= V2 * ((1 + D) * exp me)).
  { apply Rmult_le_reg_l with L; [lra|]. rewrite Rmult_1_r. apply Rle_trans with (V1 * (1 + D)); [lra|].
    assert (Q1 : exp me * (exp (- me) * V1) <= exp me * (V2 * L)) by (apply Rmult_le_compat_l; lra).
    rewrite <- Rmult_assoc, Inv, Rmult_1_l in Q1.
    assert (V1 * (1 + D) <= exp me * (V2 * L) * (1 + D)) by (apply Rmult_le_compat_r; lra). lra. }
  assert (PV2 : 0 < V2).
  { assert (0 < V2 * L); [|apply Rmult_lt_reg_r with L; lra]. eapply Rlt_le_trans; [|apply Dn].
    apply Rmult_lt_0_compat; lra. }
  assert (C2 : V2 * exp (- me) * L <= V1).
  { assert (Q1 : exp (- me) * (V2 * L) <= exp (- me) * (exp me * V1)) by (apply Rmult_le_compat_l; lra).
    replace (exp (- me) * (exp me * V1)) with (exp me * exp (- me) * V1) in Q1 by ring. rewrite Inv in Q1. lra. }
  assert (C3 : V2 * (2 - (1 + D) * exp me) <= 1).
  { assert (Q1 : 2 - (1 + D) * exp me <= (1 - D) * exp (- me)).
    { assert (0 <= (exp me - 1) * (1 - exp (- me))).
      { apply Rmult_le_pos; [lra|]. assert (exp (- me) <= 1) by (apply exp_le1; lra). lra. }
      assert (exp (- me) <= exp me) by (apply exp_mono; lra).
      assert (0 <= D * (exp me - exp (- me))) by (apply Rmult_le_pos; lra). lra. }
    apply Rle_trans with (V2 * ((1 - D) * exp (- me))); [apply Rmult_le_compat_l; lra|].
    destruct (Rle_dec 0 (1 - D)) as [Pd|Pd].
    - apply Rmult_le_reg_r with L; [lra|]. assert ((1 - D) * (V2 * exp (- me) * L) <= (1 - D) * V1)
        by (apply Rmult_le_compat_l; lra). lra.
    - assert (0 <= (D - 1) * (V2 * exp (- me))) by (apply Rmult_le_pos; [lra|apply Rmult_le_pos; lra]). lra. }
  assert (C4 : V2 * low_u <= 1).
  { unfold low_u. fold lw me. apply Rmult_le_reg_r with L; [lra|].
    assert (lw * (V2 * exp (- me) * L) <= lw * V1) by (apply Rmult_le_compat_l; lra). lra. }
  assert (HF2 : 1 <= V2 * F roomy r).
  { eapply Rle_trans; [apply C1|]. apply Rmult_le_compat_l; [lra|]. eapply Rle_trans; [apply Hsmall|].
    unfold F. apply exp_mono. simpl (thE _). simpl (T _). simpl (gap _). change (X roomy r) with (X A r).
    assert (0 <= thE A * room) by (apply Rmult_le_pos; lra). assert (0 <= thE A * T A) by (apply Rmult_le_pos; lra).
    assert (L0 := s_last A OK). simpl (last _). lra. }
  apply (mean_error K s sh_moved vv roomy roomy_sane a_merged J top_total ko co r
    (documented.big K s roomy a_merged J top_total r vv (bound.size K s vv roomy a_merged J top_total r)) Cs NJ
    scores_near terms2 total O ro 1
    (Nd K s vv roomy a_merged J top_total r + LNd K s vv roomy a_merged J top_total r ops)
    DDu low_u Uf lamf oh Ko Ht SO Ro HF2); auto.
  - apply numerator_documented; [exact roomy_sane|exact RN|exact NJ|rewrite additions_any; unfold kk; lia|lia].
  - unfold DDu. fold D me. assert (1 * 1 <= (1 + D) * exp me) by (apply Rmult_le_compat; lra). lra.
  - unfold low_u. fold lw me. apply Rmult_lt_0_compat; auto.
  - apply Rabs_le_iff. unfold DDu. fold V2 D me. lra.
  - unfold Rdiv. rewrite Rinv_1, Rmult_1_r. auto.
Qed.
End Chosen.

(** No partition enters: that the largest log-sum-exp may be ln n above the scores, and that there may be n parts. *)
Theorem undivided_within Uf lamf oh : 0 <= Uf -> near Uf lamf O oh -> Rabs (oh - exact K s vv J) <= undivided Uf lamf.
Proof.
  destruct parts_sums as [f Hf]. destruct (exponents M w Weigh) as [e1 He1].
  destruct (exponents total w2 (fun c Ic => proj1 (Enter c Ic))) as [e2 He2].
  destruct (merged_weights f Hf M w e1 Below1 He1 order L order_is) as (kl & rl & cl & Rl & Cl & SL); [apply Largest|].
  destruct (merged_values f Hf total w2 y2 e2 Below2 He2 O) as (ko & ro & co & Ro & Co & SO); auto.
  { intros c Ic. apply (Enter c Ic). }
  apply (undivided_error f Hf e1 e2 He1 He2 kl rl cl SL Rl Cl ko ro co SO Ro Co).
Qed.
End Undivided.
End Merged.
