(** No overflow: where the criteria of error-bounds.md, section 2, hold of a row's exact quantities, no intermediate
    result exceeds the largest finite number of its format. *)
From Coq Require Import Reals List Lra Lia Psatz Permutation ZArith.
From Flocq Require Import Core Relative.
From Attest.Rounding Require Import basics scores merge bound kernels row.
Import ListNotations.
Open Scope R_scope.

Section Overflow.
Variables emin prec : Z.
Context {Hprec : Prec_gt_0 prec}.
Local Notation rnd := (rnd emin prec).
Local Notation inF := (inF emin prec).
Local Notation uf := (uf prec).
Local Notation eta := (eta emin).

(** The largest finite number of the format. *)
Variable H : R.
Hypothesis H_inF : inF H.
Definition fits x := Rabs x <= H.

(** ** What a rounding makes of a size. *)
Lemma rnd_mono x y : x <= y -> rnd x <= rnd y.
Proof. apply round_le; [apply FLT_exp_valid; auto|apply valid_rnd_N]. Qed.
Lemma rnd_id x : inF x -> rnd x = x.
Proof. apply round_generic. apply valid_rnd_N. Qed.
Lemma inF_0 : inF 0.
Proof. apply generic_format_0. Qed.
Lemma rnd_le_number x y : inF y -> Rabs x <= Rabs y -> Rabs (rnd x) <= Rabs y.
Proof.
  intros Fy B. assert (Fa : inF (Rabs y)) by (apply generic_format_abs; auto).
  apply abs_round_le_generic; auto. apply FLT_exp_valid; auto. apply valid_rnd_N.
Qed.
Lemma rnd_plus_size x y : inF x -> inF y -> Rabs (rnd (x + y)) <= (1 + uf) * Rabs (x + y).
Proof.
  intros Fx Fy. assert (Q := rnd_minus emin prec x (- y) Fx (generic_format_opp _ _ _ Fy)).
  replace (x - - y) with (x + y) in Q by ring.
  replace (rnd (x + y)) with ((rnd (x + y) - (x + y)) + (x + y)) by ring.
  eapply Rle_trans; [apply Rabs_triang|]. lra.
Qed.
Lemma rnd_size x : Rabs (rnd x) <= (1 + uf) * Rabs x + eta.
Proof. apply near_abs, rnd_near; auto. Qed.
Lemma fits_le x : Rabs x <= H -> fits (rnd x).
Proof.
  intros B. unfold fits. assert (P := Rabs_pos x). rewrite <- (Rabs_pos_eq H) in B |- * by lra.
  apply rnd_le_number; auto.
Qed.

(** ** Sums of numbers of the format, in the order of a tree. *)
Section Tree.
Variable K : Type.
Fixpoint rsum (f : K -> R) (t : tree K) : R :=
  match t with Leaf _ j => f j | Node _ a b => rnd (rsum f a + rsum f b) end.
(** Every term and every partial sum is in range. *)
Fixpoint all_fit (f : K -> R) (t : tree K) : Prop :=
  fits (rsum f t) /\ match t with Leaf _ _ => True | Node _ a b => all_fit f a /\ all_fit f b end.

Lemma one_uf : 1 <= 1 + uf.
Proof. assert (P := uf_pos prec). lra. Qed.
Lemma powf_ge1 k : 1 <= (1 + uf) ^ k.
Proof. apply pow_R1_Rle. apply one_uf. Qed.
Lemma powf_mono k k' : (k <= k')%nat -> (1 + uf) ^ k <= (1 + uf) ^ k'.
Proof. intros. apply Rle_pow; auto. apply one_uf. Qed.

Lemma rsum_inF f t : (forall j, In j (leaves K t) -> inF (f j)) -> inF (rsum f t).
Proof. destruct t; simpl; intros F; [apply F; auto|apply rnd_inF; auto]. Qed.
Lemma depth_lt t : (S (depth K t) <= length (leaves K t))%nat.
Proof. induction t; simpl; [lia|]. rewrite app_length. lia. Qed.
Lemma Sum_abs_pos (f : K -> R) l : 0 <= Sum (fun j => Rabs (f j)) l.
Proof. apply Sum_nonneg. intros. apply Rabs_pos. Qed.

Lemma sum_of_two x y s1 s2 k1 k2 k : inF x -> inF y -> 0 <= s1 -> 0 <= s2 ->
  Rabs x <= (1 + uf) ^ k1 * s1 -> Rabs y <= (1 + uf) ^ k2 * s2 -> (S k1 <= k)%nat -> (S k2 <= k)%nat ->
  Rabs (rnd (x + y)) <= (1 + uf) ^ k * (s1 + s2).
Proof.
  intros Fx Fy P1 P2 B1 B2 K1 K2. eapply Rle_trans; [apply rnd_plus_size; auto|].
  destruct k as [|k]; [lia|]. simpl. rewrite Rmult_assoc. assert (O := one_uf).
  apply Rmult_le_compat_l; [lra|]. eapply Rle_trans; [apply Rabs_triang|].
  assert (Q1 : (1 + uf) ^ k1 * s1 <= (1 + uf) ^ k * s1) by (apply Rmult_le_compat_r; auto; apply powf_mono; lia).
  assert (Q2 : (1 + uf) ^ k2 * s2 <= (1 + uf) ^ k * s2) by (apply Rmult_le_compat_r; auto; apply powf_mono; lia). lra.
Qed.

Lemma rsum_size f t : (forall j, In j (leaves K t) -> inF (f j)) ->
  Rabs (rsum f t) <= (1 + uf) ^ depth K t * Sum (fun j => Rabs (f j)) (leaves K t).
Proof.
  induction t as [j|a IHa b IHb]; intros F; [simpl; lra|].
  cbn [rsum depth leaves] in *. rewrite Sum_app.
  apply (sum_of_two _ _ _ _ (depth K a) (depth K b)); auto using Sum_abs_pos; try lia.
  - apply rsum_inF. intros. apply F. apply in_or_app. auto.
  - apply rsum_inF. intros. apply F. apply in_or_app. auto.
  - apply IHa. intros. apply F. apply in_or_app. auto.
  - apply IHb. intros. apply F. apply in_or_app. auto.
Qed.

(** Any order: n terms pass n - 1 additions at the most. *)
Lemma all_fit_of f t : (forall j, In j (leaves K t) -> inF (f j)) ->
  (1 + uf) ^ (length (leaves K t) - 1) * Sum (fun j => Rabs (f j)) (leaves K t) <= H -> all_fit f t.
Proof.
  intros F B. assert (B' : (1 + uf) ^ depth K t * Sum (fun j => Rabs (f j)) (leaves K t) <= H).
  { eapply Rle_trans; [|apply B]. apply Rmult_le_compat_r; [apply Sum_abs_pos|]. apply powf_mono.
    assert (D := depth_lt t). lia. }
  clear B. revert F B'. induction t as [j|a IHa b IHb]; intros F B.
  - simpl in *. unfold fits. split; [lra|auto].
  - split; [eapply Rle_trans; [apply rsum_size; auto|exact B]|]. cbn [depth leaves] in *.
    assert (Pa := Sum_abs_pos f (leaves K a)). assert (Pb := Sum_abs_pos f (leaves K b)). rewrite Sum_app in B.
    assert (Mono : forall d s, (d <= S (Nat.max (depth K a) (depth K b)))%nat -> 0 <= s ->
      s <= Sum (fun j => Rabs (f j)) (leaves K a) + Sum (fun j => Rabs (f j)) (leaves K b) -> (1 + uf) ^ d * s <= H).
    { intros d s Hd Ps Hs. eapply Rle_trans; [|exact B]. assert (G := powf_mono _ _ Hd). assert (G1 := powf_ge1 d).
      apply Rmult_le_compat; lra. }
    split; [apply IHa|apply IHb]; try (intros; apply F; apply in_or_app; auto; fail); apply Mono; try lia; lra.
Qed.
Lemma all_fit_root f t : all_fit f t -> fits (rsum f t).
Proof. destruct t; simpl; tauto. Qed.

(** The kernels' sums are of that kind. *)
Lemma suml_rsum sh fexp m t : suml emin prec K sh fexp m t = rsum (wt emin prec K sh fexp m) t.
Proof. induction t; simpl; congruence. Qed.
Lemma sumo_rsum sh vv fexp m t :
  sumo emin prec K sh vv fexp m t = rsum (fun j => rnd (wt emin prec K sh fexp m j * vv j)) t.
Proof. induction t; simpl; congruence. Qed.
End Tree.

Lemma fdot_rsum q k t : fdot emin prec q k t = rsum nat (fun c => rnd (q c * k c)) t.
Proof. induction t; simpl; congruence. Qed.

(** ** D1: products, their partial sums, the scaled product, the score. *)
Section Scores.
Variable dk : nat.
Variables q k : nat -> R.   (* one row of Q, one of K *)
Variable order : tree nat.
Hypothesis Horder : Permutation (leaves nat order) (seq 0 dk).
Definition absolute := Sum (fun c => Rabs (q c * k c)) (seq 0 dk).
Definition dot_fits := all_fit nat (fun c => rnd (q c * k c)) order.

Lemma absolute_pos : 0 <= absolute.
Proof. apply Sum_nonneg. intros. apply Rabs_pos. Qed.
Lemma dk_pos : (1 <= dk)%nat.
Proof.
  destruct dk; [|lia]. simpl in Horder. apply Permutation_sym, Permutation_nil in Horder.
  destruct (leaves_ne nat order Horder).
Qed.
Lemma terms_size : (1 + uf) ^ (dk - 1) * Sum (fun c => Rabs (rnd (q c * k c))) (leaves nat order) <=
  (1 + uf) ^ dk * (absolute + INR dk * eta).
Proof.
  rewrite (Sum_perm _ _ _ Horder). assert (D := dk_pos). assert (O := one_uf). assert (E := eta_pos emin).
  assert (G := powf_ge1 (dk - 1)).
  replace ((1 + uf) ^ dk) with ((1 + uf) ^ (dk - 1) * (1 + uf))
    by (replace dk with (S (dk - 1)) at 2 by lia; simpl; ring).
  rewrite Rmult_assoc. apply Rmult_le_compat_l; [lra|].
  apply Rle_trans with (Sum (fun c => (1 + uf) * Rabs (q c * k c) + eta) (seq 0 dk)).
  - apply Sum_le. intros c _. apply rnd_size.
  - rewrite Sum_plus, Sum_scal, Sum_const, seq_length. fold absolute. assert (I := pos_INR dk).
    assert (0 <= INR dk * eta) by (apply Rmult_le_pos; lra).
    assert (INR dk * eta <= (1 + uf) * (INR dk * eta)) by (apply le_times; lra). lra.
Qed.
Lemma fdot_size : Rabs (fdot emin prec q k order) <= (1 + uf) ^ dk * (absolute + INR dk * eta).
Proof.
  rewrite fdot_rsum. eapply Rle_trans; [apply rsum_size; intros; apply rnd_inF; auto|].
  eapply Rle_trans; [|apply terms_size]. apply Rmult_le_compat_r; [apply Sum_abs_pos|]. apply powf_mono.
  assert (D := depth_lt nat order). rewrite (Permutation_length Horder), seq_length in D. lia.
Qed.
Lemma dot_in_range : (1 + uf) ^ dk * (absolute + INR dk * eta) <= H -> dot_fits.
Proof.
  intros B. apply all_fit_of; [intros; apply rnd_inF; auto|].
  rewrite (Permutation_length Horder), seq_length. eapply Rle_trans; [apply terms_size|auto].
Qed.

Variables tau tauh d th_tau b : R.
Hypothesis Htau : 0 <= tau.
Hypothesis Htauh : tauh = tau * (1 + d).
Hypothesis Hd : Rabs d <= th_tau.
Definition scaled := rnd (tauh * fdot emin prec q k order).
Definition score := rnd (scaled + b).

(** dk roundings of the product, one of the scaled product, one of the sum, and what is wrong with the scale. *)
Theorem scores_in_range : inF b ->
  (1 + th_tau) * (1 + uf) ^ (dk + 2) * (Rmax 1 tau * (absolute + INR dk * eta) + Rabs b + eta) <= H ->
  dot_fits /\ fits scaled /\ fits score.
Proof.
  intros Fb B. assert (O := one_uf). assert (E := eta_pos emin). assert (P := absolute_pos). assert (I := pos_INR dk).
  assert (Pd : 0 <= th_tau) by (assert (Q := Rabs_pos d); lra). assert (G := powf_ge1 dk). assert (Bp := Rabs_pos b).
  assert (PX : 0 <= absolute + INR dk * eta) by (assert (0 <= INR dk * eta) by (apply Rmult_le_pos; lra); lra).
  set (X := absolute + INR dk * eta) in *.
  assert (M1 := Rmax_l 1 tau). assert (M2 := Rmax_r 1 tau). set (M := Rmax 1 tau) in *.
  set (D := (1 + uf) ^ dk) in *.
  replace ((1 + uf) ^ (dk + 2)) with (D * ((1 + uf) * (1 + uf))) in B by (unfold D; rewrite pow_add; simpl; ring).
  assert (MX : X <= M * X) by (apply le_times; auto). assert (tX : tau * X <= M * X) by (apply Rmult_le_compat_r; auto).
  set (u1 := 1 + uf) in *. set (th := 1 + th_tau) in *. assert (T1 : 1 <= th) by (unfold th; lra).
  assert (uu : 1 <= u1 * u1) by (apply times_ge1; auto). assert (DD : 1 <= D * (u1 * u1)) by (apply times_ge1; auto).
  assert (Dot : D * X <= H).
  { eapply Rle_trans; [|apply B]. rewrite Rmult_assoc. apply Rle_trans with (1 * (D * (M * X))).
    - rewrite Rmult_1_l. apply Rmult_le_compat_l; lra.
    - apply Rmult_le_compat; try lra; [apply Rmult_le_pos; lra|].
      apply Rmult_le_compat; try lra. rewrite (Rmult_comm D). apply le_times; lra. }
  assert (Size := fdot_size). fold u1 D X in Size.
  assert (Th : Rabs tauh <= th * tau).
  { rewrite Htauh, Rabs_mult, (Rabs_pos_eq tau) by auto. rewrite Rmult_comm. apply Rmult_le_compat_r; auto.
    eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_R1. unfold th. lra. }
  assert (Sc : Rabs scaled <= u1 * (th * (D * (M * X))) + eta).
  { unfold scaled. eapply Rle_trans; [apply rnd_size|]. fold u1. apply Rplus_le_compat_r.
    apply Rmult_le_compat_l; [lra|]. rewrite Rabs_mult.
    apply Rle_trans with ((th * tau) * (D * X)); [apply Rmult_le_compat; auto using Rabs_pos|].
    replace ((th * tau) * (D * X)) with (th * (D * (tau * X))) by ring.
    apply Rmult_le_compat_l; [lra|]. apply Rmult_le_compat_l; [lra|auto]. }
  assert (Y0 : 0 <= D * (M * X)) by (repeat apply Rmult_le_pos; lra).
  assert (Key : u1 * (u1 * (th * (D * (M * X))) + eta + Rabs b) <= H).
  { eapply Rle_trans; [|apply B].
    replace (th * (D * (u1 * u1)) * (M * X + Rabs b + eta)) with
      (u1 * (u1 * (th * (D * (M * X)))) + u1 * ((u1 * (th * D)) * (eta + Rabs b))) by ring.
    rewrite Rplus_assoc, Rmult_plus_distr_l. apply Rplus_le_compat_l. apply Rmult_le_compat_l; [lra|].
    apply le_times; [lra|]. repeat apply times_ge1; auto. }
  assert (In : 0 <= u1 * (th * (D * (M * X)))) by (repeat apply Rmult_le_pos; lra).
  assert (Big : forall z, 0 <= z -> z <= u1 * z) by (intros; apply le_times; auto).
  split; [apply dot_in_range; auto|]. split.
  - unfold fits. assert (L := Big (u1 * (th * (D * (M * X))) + eta + Rabs b) ltac:(lra)). lra.
  - unfold fits, score. eapply Rle_trans; [apply rnd_plus_size; auto; apply rnd_inF; auto|]. fold u1.
    eapply Rle_trans; [|apply Key]. apply Rmult_le_compat_l; [lra|]. eapply Rle_trans; [apply Rabs_triang|]. lra.
Qed.
End Scores.

(** A scaled q, of another format or not, in the place of q: what it is wrong by is in every product. *)
Section Prescaled.
Variable dk : nat.
Variables q k qs : nat -> R.
Variable order : tree nat.
Hypothesis Horder : Permutation (leaves nat order) (seq 0 dk).
Variables tau tauh d th_tau uq lamq Hq b : R.
Hypothesis Htau : 0 <= tau.
Hypothesis Htauh : tauh = tau * (1 + d).
Hypothesis Hd : Rabs d <= th_tau.
Hypothesis Huq : 0 <= uq.
Hypothesis Hqs : forall c, near uq lamq (tauh * q c) (qs c).

Lemma qs_size c : Rabs (qs c) <= (1 + uq) * ((1 + th_tau) * tau * Rabs (q c)) + lamq.
Proof.
  eapply Rle_trans; [apply near_abs, Hqs|]. apply Rplus_le_compat_r. apply Rmult_le_compat_l; [lra|].
  rewrite Rabs_mult. apply Rmult_le_compat_r; [apply Rabs_pos|].
  rewrite Htauh, Rabs_mult, (Rabs_pos_eq tau) by auto. rewrite Rmult_comm. apply Rmult_le_compat_r; auto.
  eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_R1. lra.
Qed.
Lemma qs_absolute : absolute dk qs k <=
  (1 + uq) * (1 + th_tau) * tau * absolute dk q k + lamq * Sum (fun c => Rabs (k c)) (seq 0 dk).
Proof.
  unfold absolute. rewrite <- !Sum_scal, <- Sum_plus. apply Sum_le. intros c _. rewrite !Rabs_mult.
  replace ((1 + uq) * (1 + th_tau) * tau * (Rabs (q c) * Rabs (k c)) + lamq * Rabs (k c))
    with (((1 + uq) * ((1 + th_tau) * tau * Rabs (q c)) + lamq) * Rabs (k c)) by ring.
  apply Rmult_le_compat_r; [apply Rabs_pos|apply qs_size].
Qed.

Theorem prescaled_in_range : inF b ->
  (forall c, (1 + uq) * ((1 + th_tau) * tau * Rabs (q c)) + lamq <= Hq) ->
  (1 + uf) ^ (dk + 1) * ((1 + uq) * (1 + th_tau) * tau * absolute dk q k +
    lamq * Sum (fun c => Rabs (k c)) (seq 0 dk) + INR dk * eta + Rabs b) <= H ->
  (forall c, Rabs (qs c) <= Hq) /\ dot_fits qs k order /\ fits (rnd (fdot emin prec qs k order + b)).
Proof.
  intros Fb Bq B. split; [intros c; eapply Rle_trans; [apply qs_size|auto]|].
  assert (A := qs_absolute). set (Y := (1 + uq) * (1 + th_tau) * tau * absolute dk q k +
    lamq * Sum (fun c => Rabs (k c)) (seq 0 dk)) in *.
  assert (P := absolute_pos dk qs k). assert (E := eta_pos emin). assert (I := pos_INR dk). assert (O := one_uf).
  assert (0 <= INR dk * eta) by (apply Rmult_le_pos; lra). assert (G := powf_ge1 dk). assert (Bp := Rabs_pos b).
  rewrite pow_add in B. simpl in B. rewrite Rmult_1_r in B. set (D := (1 + uf) ^ dk) in *.
  assert (S1 : D * (absolute dk qs k + INR dk * eta) <= D * (Y + INR dk * eta)) by (apply Rmult_le_compat_l; lra).
  assert (Sp : 0 <= D * (absolute dk qs k + INR dk * eta)) by (apply Rmult_le_pos; lra).
  assert (Bb : Rabs b <= D * Rabs b) by (apply le_times; auto).
  assert (S2 : (1 + uf) * (D * (Y + INR dk * eta) + Rabs b) <= H).
  { eapply Rle_trans; [|apply B]. rewrite (Rmult_comm D (1 + uf)), Rmult_assoc. apply Rmult_le_compat_l; lra. }
  assert (S3 : D * (Y + INR dk * eta) + Rabs b <= (1 + uf) * (D * (Y + INR dk * eta) + Rabs b)) by (apply le_times;
    lra).
  split; [apply (dot_in_range dk); auto; fold D; lra|].
  unfold fits. eapply Rle_trans; [apply rnd_plus_size; auto; rewrite fdot_rsum; apply rsum_inF; intros;
    apply rnd_inF; auto|].
  eapply Rle_trans; [|apply S2]. apply Rmult_le_compat_l; [lra|]. eapply Rle_trans; [apply Rabs_triang|].
  assert (F := fdot_size dk qs k order Horder). fold D in F. lra.
Qed.
End Prescaled.

(** ** D2: the exponent of a folded scale, fma(x, c, - fl(m c)), is what is left of m c, not 0. *)
Theorem folded_residual_in_range x m c : inF (/ 2) -> x <= m -> 0 <= c -> uf * Rabs (m * c) + eta <= / 2 ->
  rnd (x * c - rnd (m * c)) <= / 2.
Proof.
  intros F Hx Hc B. rewrite <- (rnd_id (/ 2) F). apply rnd_mono.
  assert (N := rnd_near emin prec (m * c)). unfold near in N. apply Rabs_bounds in N.
  assert (x * c <= m * c) by (apply Rmult_le_compat_r; auto). lra.
Qed.

(** ** D3, D5, D6: the two sums of a block, whose weights are at most G. *)
Section Kernel.
Variable K : Type.
Variables sh vv : K -> R.
Variable fexp : R -> R.
Hypothesis exp_inF : forall y, inF (fexp y).
Hypothesis sh_inF : forall j, inF (sh j).
Hypothesis vv_inF : forall j, inF (vv j).
Local Notation wt := (wt emin prec K sh fexp).
Local Notation suml := (suml emin prec K sh fexp).
Local Notation sumo := (sumo emin prec K sh vv fexp).
Local Notation leaves := (leaves K).
Local Notation tree := (tree K).
Definition size_v (J : list K) := Sum (fun j => Rabs (vv j)) J.
Definition block_fits m tl to_ := all_fit K (wt m) tl /\ all_fit K (fun j => rnd (wt m j * vv j)) to_.

Lemma size_v_pos J : 0 <= size_v J.
Proof. apply Sum_abs_pos. Qed.
Lemma leaves_count (t : tree) : 1 <= INR (length (leaves t)).
Proof. change 1 with (INR 1). apply le_INR. assert (D := depth_lt K t). lia. Qed.

Lemma block_in_range G m tl to_ :
  (forall j, In j (leaves tl) -> 0 <= wt m j <= G) -> (forall j, In j (leaves to_) -> 0 <= wt m j <= G) ->
  (1 + uf) ^ (length (leaves tl) - 1) * (INR (length (leaves tl)) * G) <= H ->
  (1 + uf) ^ length (leaves to_) * (G * size_v (leaves to_) + INR (length (leaves to_)) * eta) <= H ->
  block_fits m tl to_.
Proof.
  intros Wl Wo Bl Bo. split; (apply all_fit_of; [intros; solve [apply exp_inF|apply rnd_inF; auto]|]).
  - eapply Rle_trans; [|apply Bl]. apply Rmult_le_compat_l; [assert (P := powf_ge1 (length (leaves tl) - 1)); lra|].
    rewrite <- Sum_const. apply Sum_le. intros j I. destruct (Wl j I). rewrite Rabs_pos_eq; auto.
  - eapply Rle_trans; [|apply Bo]. assert (D := depth_lt K to_). set (n := length (leaves to_)) in *.
    replace ((1 + uf) ^ n) with ((1 + uf) ^ (n - 1) * (1 + uf)) by (replace n with (S (n - 1)) at 2 by lia; simpl;
      ring).
    rewrite Rmult_assoc. apply Rmult_le_compat_l; [assert (P := powf_ge1 (n - 1)); lra|].
    apply Rle_trans with (Sum (fun j => (1 + uf) * (G * Rabs (vv j)) + eta) (leaves to_)).
    + apply Sum_le. intros j I. destruct (Wo j I). eapply Rle_trans; [apply rnd_size|]. apply Rplus_le_compat_r.
      assert (O := one_uf). apply Rmult_le_compat_l; [lra|]. rewrite Rabs_mult, (Rabs_pos_eq (wt m j)) by auto.
      apply Rmult_le_compat_r; auto using Rabs_pos.
    + rewrite Sum_plus, Sum_scal, Sum_scal, Sum_const. fold n (size_v (leaves to_)). assert (O := one_uf).
      assert (E := eta_pos emin). assert (I := pos_INR n). assert (0 <= INR n * eta) by (apply Rmult_le_pos; lra).
      assert (INR n * eta <= (1 + uf) * (INR n * eta)) by (apply le_times; auto). lra.
Qed.

(** The sum of the weights is no less than any of them. *)
Lemma suml_ge m t j : (forall i, In i (leaves t) -> 0 <= wt m i) -> In j (leaves t) ->
  0 <= suml m t /\ wt m j <= suml m t.
Proof.
  assert (Pos : forall t, (forall i, In i (leaves t) -> 0 <= wt m i) -> 0 <= suml m t).
  { clear j t. induction t as [i|a IHa b IHb]; simpl; intros P; [apply P; auto|].
    rewrite <- (rnd_id 0 inF_0). apply rnd_mono.
    assert (0 <= suml m a) by (apply IHa; intros; apply P; apply in_or_app; auto).
    assert (0 <= suml m b) by (apply IHb; intros; apply P; apply in_or_app; auto). lra. }
  intros P I. split; [apply Pos; auto|]. induction t as [i|a IHa b IHb]; simpl in *; [destruct I as [->|[]]; lra|].
  assert (Pa : forall i, In i (leaves a) -> 0 <= wt m i) by (intros; apply P; apply in_or_app; auto).
  assert (Pb : forall i, In i (leaves b) -> 0 <= wt m i) by (intros; apply P; apply in_or_app; auto).
  assert (Qa := Pos a Pa). assert (Qb := Pos b Pb).
  assert (Fa := suml_inF emin prec K sh fexp exp_inF m a). assert (Fb := suml_inF emin prec K sh fexp exp_inF m b).
  apply in_app_or in I. destruct I as [I|I].
  - specialize (IHa Pa I). eapply Rle_trans; [apply IHa|]. rewrite <- (rnd_id _ Fa) at 1. apply rnd_mono. lra.
  - specialize (IHb Pb I). eapply Rle_trans; [apply IHb|]. rewrite <- (rnd_id _ Fb) at 1. apply rnd_mono. lra.
Qed.

(** D6: nothing is subtracted, and a weight is e^s itself. *)
Theorem no_maximum_in_range epsE lamE M tl to_ i least :
  (forall y, y <= M -> near epsE lamE (exp y) (fexp y) /\ 0 <= fexp y) ->
  (forall j, In j (leaves tl) -> sh j <= M) -> (forall j, In j (leaves to_) -> sh j <= M) -> 0 <= epsE ->
  let G := (1 + epsE) * exp M + lamE in
  (1 + uf) ^ (length (leaves tl) - 1) * (INR (length (leaves tl)) * G) <= H ->
  (1 + uf) ^ length (leaves to_) * (G * size_v (leaves to_) + INR (length (leaves to_)) * eta) <= H ->
  In i (leaves tl) -> least <= (1 - epsE) * exp (sh i) - lamE ->
  block_fits 0 tl to_ /\ least <= suml 0 tl.
Proof.
  intros Ge Ml Mo E0 G Bl Bo Ii Li.
  assert (Ew : forall j, wt 0 j = fexp (sh j)) by (intros; unfold kernels.wt; rewrite Rminus_0_r, rnd_id; auto).
  assert (W : forall j, sh j <= M -> 0 <= wt 0 j <= G).
  { intros j L. rewrite Ew. destruct (Ge _ L) as [N P]. split; auto. apply near_abs in N.
    rewrite !Rabs_pos_eq in N by (auto; left; apply exp_pos). eapply Rle_trans; [apply N|]. unfold G.
    apply Rplus_le_compat_r, Rmult_le_compat_l; [lra|]. apply exp_mono; auto. }
  split; [apply (block_in_range G); auto|]. eapply Rle_trans; [|apply (suml_ge 0 tl i); auto; intros; apply W; auto].
  rewrite Ew. destruct (Ge _ (Ml i Ii)) as [N _]. unfold near in N. apply Rabs_bounds in N.
  rewrite Rabs_pos_eq in N by (left; apply exp_pos). lra.
Qed.

(** ** A maximum, of all keys or running, and merges in any tree. No exponential of what is not positive is above 1. *)
Hypothesis exp_range : forall y, y <= 0 -> 0 <= fexp y <= 1.
Hypothesis exp_0 : fexp 0 = 1.
Hypothesis one_inF : inF 1.

Inductive plan := All (tl to_ : tree) | Then (p : plan) (tl to_ : tree) | Merge (p1 p2 : plan).
Fixpoint run p : state := match p with
  | All tl to_ => two_pass emin prec K sh vv fexp tl to_
  | Then p tl to_ => step emin prec K sh vv fexp (run p) (tl, to_)
  | Merge p1 p2 => combine emin prec fexp (run p1) (run p2) end.
(** The keys of the sum of weights, and of that of weights times values; the same in every block. *)
Fixpoint lkeys p := match p with
  | All tl _ => leaves tl | Then p tl _ => lkeys p ++ leaves tl | Merge p1 p2 => lkeys p1 ++ lkeys p2 end.
Fixpoint okeys p := match p with
  | All _ to_ => leaves to_ | Then p _ to_ => okeys p ++ leaves to_ | Merge p1 p2 => okeys p1 ++ okeys p2 end.
Fixpoint matched p := match p with
  | All tl to_ => Permutation (leaves tl) (leaves to_)
  | Then p tl to_ => matched p /\ Permutation (leaves tl) (leaves to_)
  | Merge p1 p2 => matched p1 /\ matched p2 end.

Definition factor m m' := fexp (rnd (m - m')).
Definition m_of (s : state) := fst (fst s).
Definition l_of (s : state) := snd (fst s).
Definition o_of (s : state) := snd s.
Definition state_fits s := fits (l_of s) /\ fits (o_of s).
Definition rescaled_fits s m' := fits (rnd (factor (m_of s) m' * l_of s)) /\ fits (rnd (factor (m_of s) m' * o_of s)).
(** Every weight, product, partial sum, rescaled sum and state on the way is in range. *)
Fixpoint plan_fits p : Prop := state_fits (run p) /\ match p with
  | All tl to_ => block_fits (tmax K sh tl) tl to_
  | Then p tl to_ => let m' := Rmax (m_of (run p)) (tmax K sh tl) in
      plan_fits p /\ rescaled_fits (run p) m' /\ block_fits m' tl to_
  | Merge p1 p2 => let m' := Rmax (m_of (run p1)) (m_of (run p2)) in
      plan_fits p1 /\ plan_fits p2 /\ rescaled_fits (run p1) m' /\ rescaled_fits (run p2) m' end.

Lemma rnd_diff m m' : m <= m' -> rnd (m - m') <= 0.
Proof. intros L. rewrite <- (rnd_id 0 inF_0). apply rnd_mono. lra. Qed.
Lemma factor_range m m' : m <= m' -> 0 <= factor m m' <= 1.
Proof. intros. apply exp_range, rnd_diff. auto. Qed.
Lemma factor_same m : factor m m = 1.
Proof. unfold factor. rewrite Rminus_eq_0, rnd_id by apply inF_0. apply exp_0. Qed.
Lemma scaled_down c x : 0 <= c <= 1 -> inF x -> Rabs (rnd (c * x)) <= Rabs x.
Proof.
  intros C F. apply rnd_le_number; auto. rewrite Rabs_mult, (Rabs_pos_eq c) by lra.
  rewrite <- (Rmult_1_l (Rabs x)) at 2. apply Rmult_le_compat_r; [apply Rabs_pos|lra].
Qed.
Lemma suml_size m t : (forall j, In j (leaves t) -> sh j <= m) ->
  Rabs (suml m t) <= (1 + uf) ^ (length (leaves t) - 1) * INR (length (leaves t)).
Proof.
  intros L. rewrite suml_rsum. eapply Rle_trans; [apply rsum_size; intros; apply exp_inF|]. assert (D := depth_lt K t).
  apply Rmult_le_compat; [assert (P := powf_ge1 (depth K t)); lra|apply Sum_abs_pos|apply powf_mono; lia|].
  rewrite <- (Rmult_1_r (INR _)), <- Sum_const. apply Sum_le. intros j I.
  assert (W := factor_range (sh j) m (L j I)). unfold factor in W. unfold kernels.wt. rewrite Rabs_pos_eq; lra.
Qed.
Lemma term_size m j : sh j <= m -> Rabs (rnd (wt m j * vv j)) <= Rabs (vv j).
Proof. intros L. apply scaled_down; auto. apply (factor_range (sh j) m L). Qed.
Lemma sumo_size m t : (forall j, In j (leaves t) -> sh j <= m) ->
  Rabs (sumo m t) <= (1 + uf) ^ (length (leaves t) - 1) * size_v (leaves t).
Proof.
  intros L. rewrite sumo_rsum. eapply Rle_trans; [apply rsum_size; intros; apply rnd_inF; auto|].
  assert (D := depth_lt K t).
  apply Rmult_le_compat; [assert (P := powf_ge1 (depth K t)); lra|apply Sum_abs_pos|apply powf_mono; lia|].
  apply Sum_le. intros j I. apply term_size; auto.
Qed.
Lemma block_fits_of m tl to_ :
  (forall j, In j (leaves tl) -> sh j <= m) -> (forall j, In j (leaves to_) -> sh j <= m) ->
  (1 + uf) ^ (length (leaves tl) - 1) * INR (length (leaves tl)) <= H ->
  (1 + uf) ^ (length (leaves to_) - 1) * size_v (leaves to_) <= H -> block_fits m tl to_.
Proof.
  intros Ll Lo Bl Bo. split; (apply all_fit_of; [intros; solve [apply exp_inF|apply rnd_inF; auto]|]).
  - eapply Rle_trans; [|apply Bl]. apply Rmult_le_compat_l; [assert (P := powf_ge1 (length (leaves tl) - 1)); lra|].
    rewrite <- (Rmult_1_r (INR _)), <- Sum_const. apply Sum_le. intros j I.
    assert (W := factor_range (sh j) m (Ll j I)). unfold factor in W. unfold kernels.wt. rewrite Rabs_pos_eq; lra.
  - eapply Rle_trans; [|apply Bo]. apply Rmult_le_compat_l; [assert (P := powf_ge1 (length (leaves to_) - 1)); lra|].
    apply Sum_le. intros j I. apply term_size; auto.
Qed.

(** What every state is: no larger than the keys say, its sum of weights at least 1. *)
Record sized (s : state) (n no : nat) (V : R) : Prop := {
  z_inF : inF (m_of s) /\ inF (l_of s) /\ inF (o_of s);
  z_n : (1 <= n /\ 1 <= no)%nat; z_V : 0 <= V;
  z_low : 1 <= l_of s;
  z_l : Rabs (l_of s) <= (1 + uf) ^ (n - 1) * INR n;
  z_o : Rabs (o_of s) <= (1 + uf) ^ (no - 1) * V }.

Lemma tmax_matched tl to_ : Permutation (leaves tl) (leaves to_) -> forall j, In j (leaves to_) -> sh j <= tmax K sh tl.
Proof. intros P j I. apply tmax_ge. eapply Permutation_in; [apply Permutation_sym; eauto|auto]. Qed.
Lemma count_app n1 n2 y1 y2 s1 s2 : (1 <= n1 /\ 1 <= n2)%nat -> inF y1 -> inF y2 -> 0 <= s1 -> 0 <= s2 ->
  Rabs y1 <= (1 + uf) ^ (n1 - 1) * s1 -> Rabs y2 <= (1 + uf) ^ (n2 - 1) * s2 ->
  Rabs (rnd (y1 + y2)) <= (1 + uf) ^ (n1 + n2 - 1) * (s1 + s2).
Proof. intros N F1 F2 P1 P2 B1 B2. apply (sum_of_two _ _ _ _ (n1 - 1) (n2 - 1)); auto; lia. Qed.
Lemma sum_at_least_one x y : inF x -> inF y -> 0 <= x -> 0 <= y -> 1 <= x \/ 1 <= y -> 1 <= rnd (x + y).
Proof. intros Fx Fy Px Py L. rewrite <- (rnd_id 1 one_inF). apply rnd_mono. destruct L; lra. Qed.
Lemma rescaled_low m m' l : inF l -> m <= m' -> 1 <= l ->
  0 <= rnd (factor m m' * l) /\ (m' = m -> 1 <= rnd (factor m m' * l)).
Proof.
  intros F L Low. assert (C := factor_range _ _ L). split.
  - rewrite <- (rnd_id 0 inF_0). apply rnd_mono. apply Rmult_le_pos; lra.
  - intros ->. rewrite factor_same, Rmult_1_l, rnd_id; auto.
Qed.

Lemma run_sized p : matched p -> sized (run p) (length (lkeys p)) (length (okeys p)) (size_v (okeys p)).
Proof.
  induction p as [tl to_|p IH tl to_|p1 IH1 p2 IH2]; simpl; intros M.
  - assert (T : inF (tmax K sh tl)) by (apply tmax_inF; auto).
    assert (W : forall j, In j (leaves tl) -> 0 <= wt (tmax K sh tl) j)
      by (intros j I; apply (factor_range (sh j)); apply tmax_ge; auto).
    destruct (tmax_in K sh tl) as (i & Ii & Ei).
    constructor; simpl; auto using size_v_pos.
    + unfold l_of, o_of, m_of. simpl. split; [auto|]. split; [apply suml_inF; auto|apply sumo_inF; auto].
    + assert (D1 := depth_lt K tl). assert (D2 := depth_lt K to_). lia.
    + unfold l_of. simpl. destruct (suml_ge (tmax K sh tl) tl i W Ii) as [_ L]. eapply Rle_trans; [|apply L].
      unfold kernels.wt. rewrite Ei. fold (factor (sh i) (sh i)). rewrite factor_same. lra.
    + apply suml_size. intros. apply tmax_ge; auto.
    + apply sumo_size. apply tmax_matched; auto.
  - destruct M as [Mp Mb]. specialize (IH Mp). destruct (run p) as [[m l] o].
    destruct IH as [[Fm [Fl Fo]] [N1 N2] V Low Zl Zo]. unfold m_of, l_of, o_of in *. simpl in *.
    set (m' := Rmax m (tmax K sh tl)) in *. assert (L : m <= m') by apply Rmax_l.
    assert (Ft : inF (tmax K sh tl)) by (apply tmax_inF; auto).
    assert (Fm' : inF m') by (unfold m', Rmax; destruct (Rle_dec _ _); auto).
    assert (Ll : forall j, In j (leaves tl) -> sh j <= m')
      by (intros j I; eapply Rle_trans; [apply tmax_ge; eauto|apply Rmax_r]).
    assert (Lo : forall j, In j (leaves to_) -> sh j <= m')
      by (intros j I; eapply Rle_trans; [apply (tmax_matched tl to_); eauto|apply Rmax_r]).
    assert (W : forall j, In j (leaves tl) -> 0 <= wt m' j) by (intros j I; apply (factor_range (sh j)); auto).
    destruct (tmax_in K sh tl) as (i & Ii & Ei). destruct (suml_ge m' tl i W Ii) as [Sp Si].
    destruct (rescaled_low m m' l Fl L Low) as [Rp R1]. fold (factor m m').
    assert (C := factor_range _ _ L).
    assert (D1 := depth_lt K tl). assert (D2 := depth_lt K to_). rewrite !app_length.
    constructor; unfold m_of, l_of, o_of; simpl; auto using size_v_pos; try lia.
    + split; [auto|]. split; apply rnd_inF; auto.
    + apply sum_at_least_one; auto; [apply rnd_inF; auto|apply suml_inF; auto|].
      unfold m', Rmax in *. destruct (Rle_dec m (tmax K sh tl)); [right|left; auto].
      eapply Rle_trans; [|apply Si]. unfold kernels.wt. rewrite Ei. fold (factor (sh i) (sh i)). rewrite factor_same.
      lra.
    + rewrite plus_INR. apply count_app; auto using pos_INR; try lia; [apply rnd_inF; auto|apply suml_inF; auto| |].
      * eapply Rle_trans; [apply scaled_down; auto|auto].
      * apply suml_size; auto.
    + unfold size_v in *. rewrite Sum_app. apply count_app; auto using Sum_abs_pos; try lia;
        [apply rnd_inF; auto|apply sumo_inF; auto| |].
      * eapply Rle_trans; [apply scaled_down; auto|auto].
      * apply sumo_size; auto.
  - destruct M as [M1 M2]. specialize (IH1 M1). specialize (IH2 M2).
    destruct (run p1) as [[m1 l1] o1]. destruct (run p2) as [[m2 l2] o2].
    destruct IH1 as [[Fm1 [Fl1 Fo1]] [N1 N2] V1 Low1 Zl1 Zo1].
    destruct IH2 as [[Fm2 [Fl2 Fo2]] [N3 N4] V2 Low2 Zl2 Zo2].
    unfold m_of, l_of, o_of in *. simpl in *.
    set (m' := Rmax m1 m2) in *. assert (L1 : m1 <= m') by apply Rmax_l. assert (L2 : m2 <= m') by apply Rmax_r.
    assert (Fm' : inF m') by (unfold m', Rmax; destruct (Rle_dec _ _); auto).
    destruct (rescaled_low m1 m' l1 Fl1 L1 Low1) as [R1 R1']. destruct (rescaled_low m2 m' l2 Fl2 L2 Low2) as [R2 R2'].
    fold (factor m1 m') (factor m2 m'). assert (C1 := factor_range _ _ L1). assert (C2 := factor_range _ _ L2).
    rewrite !app_length. constructor; unfold m_of, l_of, o_of; simpl; auto using size_v_pos; try lia.
    + split; [auto|]. split; apply rnd_inF; auto.
    + apply sum_at_least_one; auto; try (apply rnd_inF; auto). unfold m', Rmax in *.
      destruct (Rle_dec m1 m2); [right; auto|left; auto].
    + rewrite plus_INR. apply count_app; auto using pos_INR; try (apply rnd_inF; auto); try lia;
        (eapply Rle_trans; [apply scaled_down; auto|auto]).
    + unfold size_v in *. rewrite Sum_app. apply count_app; auto using Sum_abs_pos; try (apply rnd_inF; auto); try lia;
        (eapply Rle_trans; [apply scaled_down; auto|auto]).
Qed.

Lemma of_part k k' s s' : (k <= k')%nat -> 0 <= s <= s' -> (1 + uf) ^ k' * s' <= H -> (1 + uf) ^ k * s <= H.
Proof.
  intros Hk Hs B. eapply Rle_trans; [|exact B]. assert (G := powf_mono _ _ Hk). assert (G1 := powf_ge1 k).
  apply Rmult_le_compat; lra.
Qed.

(** D3 and D5 of every such kernel; the output is then no larger than the sum it is a quotient of. *)
Theorem sums_in_range p : matched p ->
  (1 + uf) ^ (length (lkeys p) - 1) * INR (length (lkeys p)) <= H ->
  (1 + uf) ^ (length (okeys p) - 1) * size_v (okeys p) <= H ->
  plan_fits p /\ 1 <= l_of (run p) /\ fits (finish emin prec (run p)).
Proof.
  intros M Bl Bo. assert (Z := run_sized p M). split.
  - revert M Bl Bo Z. induction p as [tl to_|p IH tl to_|p1 IH1 p2 IH2]; intros M Bl Bo Z;
      (split; [destruct Z as [_ _ _ _ Zl Zo]; split; unfold fits; lra|]).
    + cbn [lkeys okeys matched] in *. apply block_fits_of; auto; [intros; apply tmax_ge; auto|apply tmax_matched; auto].
    + cbn [lkeys okeys matched] in *. destruct M as [Mp Mb]. assert (Zp := run_sized p Mp).
      assert (D1 := depth_lt K tl). assert (D2 := depth_lt K to_). rewrite app_length in Bl, Bo.
      rewrite plus_INR in Bl. unfold size_v in Bo. rewrite Sum_app in Bo.
      fold (size_v (okeys p)) (size_v (leaves to_)) in Bo.
      assert (P1 := size_v_pos (okeys p)). assert (P2 := size_v_pos (leaves to_)).
      assert (I1 := pos_INR (length (lkeys p))). assert (I2 := pos_INR (length (leaves tl))).
      assert (Bl1 : (1 + uf) ^ (length (lkeys p) - 1) * INR (length (lkeys p)) <= H) by (eapply of_part;
        [| |apply Bl]; [lia|lra]).
      assert (Bl2 : (1 + uf) ^ (length (leaves tl) - 1) * INR (length (leaves tl)) <= H) by (eapply of_part;
        [| |apply Bl]; [lia|lra]).
      assert (Bo1 : (1 + uf) ^ (length (okeys p) - 1) * size_v (okeys p) <= H) by (eapply of_part; [| |apply Bo];
        [lia|lra]).
      assert (Bo2 : (1 + uf) ^ (length (leaves to_) - 1) * size_v (leaves to_) <= H) by (eapply of_part;
        [| |apply Bo]; [lia|lra]).
      split; [apply IH; auto|]. destruct Zp as [[Fm [Fl Fo]] _ _ _ Zl Zo].
      assert (C := factor_range _ _ (Rmax_l (m_of (run p)) (tmax K sh tl))). split.
      * split; unfold fits; (eapply Rle_trans; [apply scaled_down; auto|lra]).
      * apply block_fits_of; auto; intros j I; eapply Rle_trans;
          [apply tmax_ge; eauto|apply Rmax_r|apply (tmax_matched tl to_); eauto|apply Rmax_r].
    + cbn [lkeys okeys matched] in *. destruct M as [M1 M2]. assert (Z1 := run_sized p1 M1).
    assert (Z2 := run_sized p2 M2).
      rewrite app_length in Bl, Bo. rewrite plus_INR in Bl. unfold size_v in Bo. rewrite Sum_app in Bo.
      fold (size_v (okeys p1)) (size_v (okeys p2)) in Bo.
      assert (P1 := size_v_pos (okeys p1)). assert (P2 := size_v_pos (okeys p2)).
      assert (I1 := pos_INR (length (lkeys p1))). assert (I2 := pos_INR (length (lkeys p2))).
      assert (Bl1 : (1 + uf) ^ (length (lkeys p1) - 1) * INR (length (lkeys p1)) <= H) by (eapply of_part;
        [| |apply Bl]; [lia|lra]).
      assert (Bl2 : (1 + uf) ^ (length (lkeys p2) - 1) * INR (length (lkeys p2)) <= H) by (eapply of_part;
        [| |apply Bl]; [lia|lra]).
      assert (Bo1 : (1 + uf) ^ (length (okeys p1) - 1) * size_v (okeys p1) <= H) by (eapply of_part; [| |apply Bo];
        [lia|lra]).
      assert (Bo2 : (1 + uf) ^ (length (okeys p2) - 1) * size_v (okeys p2) <= H) by (eapply of_part; [| |apply Bo];
        [lia|lra]).
      split; [apply IH1; auto|]. split; [apply IH2; auto|].
      destruct Z1 as [[Fm1 [Fl1 Fo1]] _ _ _ Zl1 Zo1]. destruct Z2 as [[Fm2 [Fl2 Fo2]] _ _ _ Zl2 Zo2].
      assert (C1 := factor_range _ _ (Rmax_l (m_of (run p1)) (m_of (run p2)))).
      assert (C2 := factor_range _ _ (Rmax_r (m_of (run p1)) (m_of (run p2)))).
      split; split; unfold fits; (eapply Rle_trans; [apply scaled_down; auto|lra]).
  - destruct Z as [[Fm [Fl Fo]] _ _ Low Zl Zo]. split; auto. destruct (run p) as [[m l] o].
    unfold m_of, l_of, o_of, fits in *. simpl in *. apply Rle_trans with (Rabs o); [|lra].
    apply rnd_le_number; auto. unfold Rdiv. rewrite Rabs_mult, (Rabs_pos_eq (/ l)) by (left; apply Rinv_0_lt_compat;
      lra).
    rewrite <- (Rmult_1_r (Rabs o)) at 2. apply Rmult_le_compat_l; [apply Rabs_pos|].
    rewrite <- Rinv_1. apply Rinv_le_contravar; lra.
Qed.

(** A running maximum is such a plan. *)
Definition online_plan b bs := fold_left (fun p c => Then p (fst c) (snd c)) bs (All (fst b) (snd b)).
Lemma online_run b bs : online emin prec K sh vv fexp b bs = run (online_plan b bs).
Proof.
  unfold online, online_plan. change (two_pass emin prec K sh vv fexp (fst b) (snd b)) with (run (All (fst b) (snd b))).
  generalize (All (fst b) (snd b)). induction bs as [|[tl to_] bs IH]; intros p; simpl; auto.
  apply (IH (Then p tl to_)).
Qed.
Lemma online_okeys b bs : okeys (online_plan b bs) = keys_of K (b :: bs).
Proof.
  unfold online_plan, keys_of. simpl. change (leaves (snd b)) with (okeys (All (fst b) (snd b))).
  generalize (All (fst b) (snd b)). induction bs as [|c bs IH]; intros p; simpl; [rewrite app_nil_r; auto|].
  rewrite IH. simpl. rewrite app_assoc. auto.
Qed.
Lemma online_matched b bs : Forall (fun b => Permutation (leaves (fst b)) (leaves (snd b))) (b :: bs) ->
  matched (online_plan b bs).
Proof.
  intros F. unfold online_plan. assert (M : matched (All (fst b) (snd b))) by exact (Forall_inv F).
  apply Forall_inv_tail in F. revert M. generalize (All (fst b) (snd b)).
  induction F as [|c bs Fc F IH]; intros p M; simpl; auto. apply IH. simpl. auto.
Qed.
Lemma matched_keys p : matched p -> Permutation (lkeys p) (okeys p).
Proof. induction p; simpl; [auto| |]; intros [M P]; apply Permutation_app; auto. Qed.
End Kernel.

(** D4: where the tolerance holds of an output, it is no larger than the exact one and its tolerance. *)
Lemma output_in_range oh o B : Rabs (oh - o) <= B -> Rabs o + B <= H -> fits oh.
Proof.
  intros N S. unfold fits. replace oh with ((oh - o) + o) by ring. eapply Rle_trans; [apply Rabs_triang|]. lra.
Qed.
End Overflow.
