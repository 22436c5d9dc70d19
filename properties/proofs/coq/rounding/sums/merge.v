(** Softmax-weighted sums in any order, with any number of references and rescalings: one induction for the two-pass,
    the online (blocked or per key, lazy or not) and the split kernels. *)
From Coq Require Import Reals List Lra Lia Psatz Permutation.
From Attest.Rounding Require Import basics.
From Attest.Rounding Require Export arithmetic underflow.
Import ListNotations.
Open Scope R_scope.

Section Merge.
Variable K : Type.
Variable sh : K -> R.  (* computed score *)
Variable A : arith.
Hypothesis OK : sane A.
(** What the exponent of a key may be off by, however near its score is to the reference: xl, or of each key its own. *)
Variable xk : K -> R.
Hypothesis Hxk : forall j, xk j <= xl A + off A.
(** A factor that underflows by less than this part of itself is one of many, by more the only one that matters. *)
Variable d : R.
Hypothesis Hd : 0 < d.
Local Notation eps1 := (eps1 A).
Local Notation X := (X A).
Local Notation g := (g A).
Local Notation gain := (gain A).
Local Notation exponential := (exponential A).
Local Notation split := (split A).
Local Notation loss := (loss A d).

(** A key and the error of its exponent, all rescalings included. *)
Local Notation term := (K * R)%type (only parsing).
Definition weight (m : R) (t : term) := exp (sh (fst t) - m + snd t).
Definition known_by (m : R) (r : nat) (t : term) :=
  sh (fst t) - m <= T A /\ Rabs (snd t) <= thE A * (m - sh (fst t) + 2 * T A) + (X r - xl A + xk (fst t)).

(** y is the sum of weight * v up to rounding and underflow; w0 is 1 + the error of a weight as it enters the sum, lamw
    what storing it may lose. *)
Definition losses (v : K -> R) (w0 lamw : R) (ts : list term) m r :=
  Sum (fun t => Rabs (v (fst t)) * loss w0 lamw r (weight m t)) ts.
Definition lost (v : K -> R) (w0 lamw : R) (ts : list term) m (k r c : nat) :=
  (1 + u A) ^ k * g ^ r * (losses v w0 lamw ts m r + INR c * lam A).
Definition channel (v : K -> R) (w0 lamw : R) (ts : list term) (m y : R) (k r c : nat) :=
  Rabs (y - Sum (fun t => weight m t * v (fst t)) ts) <=
    (w0 * (1 + u A) ^ k - 1) * Sum (fun t => weight m t * Rabs (v (fst t))) ts + lost v w0 lamw ts m k r c.

Lemma weight_pos m t : 0 < weight m t.
Proof. apply exp_pos. Qed.
Lemma known_mono m r r' t : (r <= r')%nat -> known_by m r t -> known_by m r' t.
Proof. intros H [H1 H2]. assert (M := X_mono A OK _ _ H). split; auto. lra. Qed.

Lemma known_by_gain m r t : known_by m r t -> weight m t <= gain r.
Proof.
  destruct OK. intros [H1 H2]. assert (H3 := Hxk (fst t)). apply Rabs_bounds in H2.
  unfold weight, arithmetic.gain. apply exp_mono.
  assert (thE A * (m - sh (fst t) + 2 * T A) <= (m - sh (fst t)) + T A + thE A * T A); [|lra].
  assert (0 <= (1 - thE A) * (m - sh (fst t) + T A)) by (apply Rmult_le_pos; lra). nra.
Qed.

Lemma losses_pos v w0 lamw ts m r : 0 <= w0 -> 0 <= lamw -> 0 <= losses v w0 lamw ts m r.
Proof.
  intros. apply Sum_nonneg. intros. apply Rmult_le_pos; [apply Rabs_pos|]. apply loss_pos; auto. left. apply weight_pos.
Qed.
Lemma lost_pos v w0 lamw ts m k r c : 0 <= w0 -> 0 <= lamw -> 0 <= lost v w0 lamw ts m k r c.
Proof.
  destruct OK. intros W L. unfold lost. assert (G := pow_ge1 (u A) k s_u).
  assert (Gr : 1 <= g ^ r) by (apply pow_R1_Rle, (g_ge1 A OK)). assert (Q := losses_pos v w0 lamw ts m r W L).
  apply Rmult_le_pos; [apply Rmult_le_pos; lra|]. apply Rplus_le_le_0_compat; auto.
  apply Rmult_le_pos; auto using pos_INR.
Qed.

Lemma lost_mono v w0 lamw ts m k r c k' r' c' : 0 <= w0 -> 0 <= lamw -> (k <= k')%nat -> (r <= r')%nat ->
  (c <= c')%nat -> lost v w0 lamw ts m k r c <= lost v w0 lamw ts m k' r' c'.
Proof.
  destruct OK. intros W L Hk Hr Hc. unfold lost.
  assert (V : 0 <= losses v w0 lamw ts m r) by (apply losses_pos; auto).
  assert (M : losses v w0 lamw ts m r <= losses v w0 lamw ts m r').
  { apply Sum_le. intros t _. apply Rmult_le_compat_l; [apply Rabs_pos|]. apply loss_mono; auto. left.
    apply weight_pos. }
  assert (G1 := pow_mono (u A) _ _ s_u Hk). assert (G0 := pow_ge1 (u A) k s_u).
  assert (g ^ r <= g ^ r') by (apply Rle_pow; auto using g_ge1).
  assert (1 <= g ^ r) by (apply pow_R1_Rle, (g_ge1 A OK)).
  assert (I := le_INR _ _ Hc). assert (P := pos_INR c).
  apply Rmult_le_compat.
  - apply Rmult_le_pos; lra.
  - apply Rplus_le_le_0_compat; auto. apply Rmult_le_pos; lra.
  - apply Rmult_le_compat; lra.
  - apply Rplus_le_compat; auto. apply Rmult_le_compat_r; lra.
Qed.

Lemma channel_mono v w0 lamw ts m y k r c k' r' c' : 1 <= w0 -> 0 <= lamw -> (k <= k')%nat -> (r <= r')%nat ->
  (c <= c')%nat ->
  channel v w0 lamw ts m y k r c -> channel v w0 lamw ts m y k' r' c'.
Proof.
  destruct OK. intros W L Hk Hr Hc H. unfold channel in *.
  assert (M := lost_mono v w0 lamw ts m _ _ _ _ _ _ ltac:(lra) L Hk Hr Hc).
  assert (P := pow_mono (u A) _ _ s_u Hk).
  assert (V : 0 <= Sum (fun t => weight m t * Rabs (v (fst t))) ts).
  { apply Sum_nonneg; intros. apply Rmult_le_pos; [left; apply weight_pos | apply Rabs_pos]. }
  assert ((w0 * (1 + u A) ^ k - 1) * Sum (fun t => weight m t * Rabs (v (fst t))) ts <=
          (w0 * (1 + u A) ^ k' - 1) * Sum (fun t => weight m t * Rabs (v (fst t))) ts); [|lra].
  apply Rmult_le_compat_r; auto. assert (w0 * (1 + u A) ^ k <= w0 * (1 + u A) ^ k') by (apply Rmult_le_compat_l; lra).
  lra.
Qed.

Lemma size_le v ts m : Rabs (Sum (fun t => weight m t * v (fst t)) ts) <= Sum (fun t => weight m t * Rabs (v (fst t)))
  ts.
Proof.
  eapply Rle_trans; [apply Sum_abs|]. apply Req_le, Sum_ext. intros t _.
  rewrite Rabs_mult, (Rabs_pos_eq (weight m t)); auto.
  left. apply weight_pos.
Qed.

(** Adding two sums, and what it does to what they have lost. *)
Lemma lost_add v w0 lamw ts1 ts2 m k r c1 c2 :
  (1 + u A) * (lost v w0 lamw ts1 m k r c1 + lost v w0 lamw ts2 m k r c2) + lam A <=
    lost v w0 lamw (ts1 ++ ts2) m (S k) r (S (c1 + c2)).
Proof.
  destruct OK. unfold lost, losses. rewrite Sum_app, S_INR, plus_INR.
  change ((1 + u A) ^ S k) with ((1 + u A) * (1 + u A) ^ k).
  assert (G := pow_ge1 (u A) k s_u). set (G1 := (1 + u A) ^ k) in *.
  assert (Gr : 1 <= g ^ r) by (apply pow_R1_Rle, (g_ge1 A OK)). set (Q := g ^ r) in *.
  assert (lam A <= (1 + u A) * (G1 * Q) * lam A) by (apply le_times; auto; repeat apply times_ge1; lra). lra.
Qed.
Lemma channel_add v w0 lamw ts1 ts2 m y1 y2 y k r c1 c2 : 1 <= w0 ->
  channel v w0 lamw ts1 m y1 k r c1 -> channel v w0 lamw ts2 m y2 k r c2 -> near (u A) (lam A) (y1 + y2) y ->
  channel v w0 lamw (ts1 ++ ts2) m y (S k) r (S (c1 + c2)).
Proof.
  assert (La := lost_add v w0 lamw ts1 ts2 m k r c1 c2).
  destruct OK. unfold channel, near. intros W H1 H2 N. rewrite !Sum_app.
  assert (A1 := size_le v ts1 m). assert (A2 := size_le v ts2 m).
  set (N1 := Sum (fun t => weight m t * v (fst t)) ts1) in *.
  set (N2 := Sum (fun t => weight m t * v (fst t)) ts2) in *.
  set (S1 := Sum (fun t => weight m t * Rabs (v (fst t))) ts1) in *.
  set (S2 := Sum (fun t => weight m t * Rabs (v (fst t))) ts2) in *.
  change ((1 + u A) ^ S k) with ((1 + u A) * (1 + u A) ^ k).
  set (G1 := (1 + u A) ^ k) in *.
  set (M1 := lost v w0 lamw ts1 m k r c1) in *. set (M2 := lost v w0 lamw ts2 m k r c2) in *.
  clearbody N1 N2 S1 S2 G1 M1 M2.
  assert (D : Rabs (y1 + y2 - (N1 + N2)) <= (w0 * G1 - 1) * (S1 + S2) + (M1 + M2)).
  { replace (y1 + y2 - (N1 + N2)) with ((y1 - N1) + (y2 - N2)) by lra. eapply Rle_trans; [apply Rabs_triang|]. lra. }
  assert (Z : Rabs (y1 + y2) <= w0 * G1 * (S1 + S2) + (M1 + M2)).
  { replace (y1 + y2) with ((y1 + y2 - (N1 + N2)) + (N1 + N2)) by lra.
    eapply Rle_trans; [apply Rabs_triang|]. assert (Rabs (N1 + N2) <= Rabs N1 + Rabs N2) by apply Rabs_triang. lra. }
  replace (y - (N1 + N2)) with ((y - (y1 + y2)) + (y1 + y2 - (N1 + N2))) by lra.
  eapply Rle_trans; [apply Rabs_triang|].
  assert (u A * Rabs (y1 + y2) <= u A * (w0 * G1 * (S1 + S2) + (M1 + M2))) by (apply Rmult_le_compat_l; auto).
  lra.
Qed.

Definition rescaled (z : R) (ts : list term) : list term := map (fun t => (fst t, snd t + z)) ts.

Lemma rescaled_weight m m' z t : weight m' (fst t, snd t + z) = exp (m - m' + z) * weight m t.
Proof. unfold weight. simpl. rewrite <- exp_plus. f_equal. lra. Qed.

Lemma rescaled_sum (f : K -> R) m m' z ts :
  Sum (fun t => weight m' t * f (fst t)) (rescaled z ts) = exp (m - m' + z) * Sum (fun t => weight m t * f (fst t)) ts.
Proof.
  unfold rescaled. rewrite Sum_map, <- Sum_scal. apply Sum_ext. intros t _. rewrite (rescaled_weight m). simpl. ring.
Qed.

(** A rescaling, and what it does to what a sum has lost. *)
Lemma lost_rescale v w0 lamw ts m m' z mu k r c : 1 <= w0 -> 0 <= lamw -> m <= m' ->
  Rabs z <= thE A * (m' - m) + xr A + eps1 -> Rabs mu <= Rmin (lame A) (exp (m - m' + z)) -> Forall (known_by m r) ts ->
  (1 + u A) * ((exp (m - m' + z) + Rabs mu) * lost v w0 lamw ts m k r c +
      Rabs mu * (w0 * (1 + u A) ^ k * Sum (fun t => weight m t * Rabs (v (fst t))) ts)) + lam A <=
    lost v w0 lamw (rescaled z ts) m' (S k) (S r) (S c).
Proof.
  destruct OK. intros W L0 Hm Hz Hmu F.
  assert (Rho : exp (m - m' + z) <= exp (xr A + eps1)).
  { apply exp_mono. apply Rabs_bounds in Hz.
    assert (thE A * (m' - m) <= 1 * (m' - m)) by (apply Rmult_le_compat_r; lra). lra. }
  assert (Rp := exp_pos (m - m' + z)). assert (Pm := Rabs_pos mu).
  assert (Each : (exp (m - m' + z) + Rabs mu) * losses v w0 lamw ts m r +
      Rabs mu * (w0 * (/ g ^ r * Sum (fun t => weight m t * Rabs (v (fst t))) ts)) <=
      g * losses v w0 lamw (rescaled z ts) m' (S r)).
  { assert (Gr : 1 <= g ^ r) by (apply pow_R1_Rle, (g_ge1 A OK)).
    assert (I0 : 0 < / g ^ r <= 1)
      by (split; [apply Rinv_0_lt_compat; lra|rewrite <- Rinv_1; apply Rinv_le_contravar; lra]).
    unfold losses, rescaled. rewrite Sum_map, <- !Sum_scal, <- Sum_plus. apply Sum_le. intros t It.
    rewrite (rescaled_weight m). simpl fst. assert (Wt := weight_pos m t).
    assert (Gt : weight m t <= gain r) by (apply known_by_gain; rewrite Forall_forall in F; auto).
    assert (Yx : 0 <= / g ^ r * weight m t <= weight m t).
    { split; [apply Rmult_le_pos; lra|]. rewrite <- (Rmult_1_l (weight m t)) at 2. apply Rmult_le_compat_r; lra. }
    assert (Yg : / g ^ r * weight m t <= gain 0).
    { apply Rmult_le_reg_l with (g ^ r); [lra|]. rewrite <- Rmult_assoc, Rinv_r, Rmult_1_l by lra.
      rewrite Rmult_comm. eapply Rle_trans; [apply Gt|apply gain_grows; auto]. }
    assert (Q := loss_rescale A OK d Hd w0 lamw r (weight m t) _ _ _ W L0 Yx Yg (conj Rp Rho) (conj Pm Hmu)).
    assert (Q2 := Rmult_le_compat_l (Rabs (v (fst t))) _ _ (Rabs_pos _) Q). lra. }
  set (rho := exp (m - m' + z)) in *. set (S0 := Sum (fun t => weight m t * Rabs (v (fst t))) ts) in *.
  assert (Gd : rho + Rabs mu <= g) by (assert (Q := Rmin_l (lame A) rho); unfold arithmetic.g; lra).
  assert (Lp := losses_pos v w0 lamw ts m r ltac:(lra) L0).
  assert (S0p : 0 <= S0).
  { apply Sum_nonneg; intros. apply Rmult_le_pos; [left; apply weight_pos | apply Rabs_pos]. }
  unfold lost. change ((1 + u A) ^ S k) with ((1 + u A) * (1 + u A) ^ k). change (g ^ S r) with (g * g ^ r).
  rewrite S_INR. assert (G := pow_ge1 (u A) k s_u). set (G1 := (1 + u A) ^ k) in *.
  assert (Gr : 1 <= g ^ r) by (apply pow_R1_Rle, (g_ge1 A OK)). set (Q := g ^ r) in *.
  assert (QS : Q * (/ Q * S0) = S0) by (field; lra). set (S1 := / Q * S0) in *.
  assert (Nc := pos_INR c). set (n := INR c) in *. assert (Gg := g_ge1 A OK).
  set (V := losses v w0 lamw ts m r) in *. set (V' := losses v w0 lamw (rescaled z ts) m' (S r)) in *.
  set (mm := Rabs mu) in *. set (gg := g) in *. clearbody S1. clearbody V V' mm gg n Q G1 S0 rho.
  assert (E1 : Q * ((rho + mm) * V) + mm * (w0 * S0) <= Q * (gg * V')).
  { assert (Q * ((rho + mm) * V + mm * (w0 * S1)) <= Q * (gg * V')) by (apply Rmult_le_compat_l; lra).
    rewrite <- QS. lra. }
  assert (E2 : G1 * (Q * ((rho + mm) * V) + mm * (w0 * S0)) <= G1 * (Q * (gg * V'))) by (apply Rmult_le_compat_l; lra).
  assert (E3 : (rho + mm) * (G1 * Q * (n * lam A)) <= gg * (G1 * Q * (n * lam A)))
    by (apply Rmult_le_compat_r; auto; repeat apply Rmult_le_pos; lra).
  assert (Lam : lam A <= (1 + u A) * (gg * (G1 * Q)) * lam A) by (apply le_times; auto; repeat apply times_ge1; lra).
  assert (E4 : (rho + mm) * (G1 * Q * (V + n * lam A)) + mm * (w0 * G1 * S0) <=
               gg * (G1 * Q * (V' + n * lam A))) by lra.
  assert (E5 := Rmult_le_compat_l (1 + u A) _ _ ltac:(lra) E4). lra.
Qed.

Lemma channel_rescale v w0 lamw ts m m' z mu y y' k r c : 1 <= w0 -> 0 <= lamw -> m <= m' ->
  Rabs z <= thE A * (m' - m) + xr A + eps1 ->
  Rabs mu <= Rmin (lame A) (exp (m - m' + z)) -> Forall (known_by m r) ts ->
  channel v w0 lamw ts m y k r c -> near (u A) (lam A) ((exp (m - m' + z) + mu) * y) y' ->
  channel v w0 lamw (rescaled z ts) m' y' (S k) (S r) (S c).
Proof.
  intros W L0 Hm Hz Hmu F H N. assert (Lr := lost_rescale v w0 lamw ts m m' z mu k r c W L0 Hm Hz Hmu F).
  destruct OK. unfold channel in *.
  rewrite (rescaled_sum v m), (rescaled_sum (fun j => Rabs (v j)) m).
  assert (A1 := size_le v ts m). assert (Rp := exp_pos (m - m' + z)). set (rho := exp (m - m' + z)) in *.
  assert (Sp : 0 <= Sum (fun t => weight m t * Rabs (v (fst t))) ts).
  { apply Sum_nonneg; intros. apply Rmult_le_pos; [left; apply weight_pos | apply Rabs_pos]. }
  set (y0 := Sum (fun t => weight m t * v (fst t)) ts) in *.
  set (S0 := Sum (fun t => weight m t * Rabs (v (fst t))) ts) in *.
  change ((1 + u A) ^ S k) with ((1 + u A) * (1 + u A) ^ k).
  assert (G := pow_ge1 (u A) k s_u). set (G1 := (1 + u A) ^ k) in *.
  set (M := lost v w0 lamw ts m k r c) in *.
  set (M' := lost v w0 lamw (rescaled z ts) m' (S k) (S r) (S c)) in *.
  clearbody y0 S0 G1 M M' rho. assert (Pm := Rabs_pos mu).
  assert (WG : 1 <= w0 * G1) by (repeat apply times_ge1; lra).
  assert (B1 : Rabs (rho + mu) <= rho + Rabs mu).
  { eapply Rle_trans; [apply Rabs_triang|]. rewrite (Rabs_pos_eq rho) by lra. lra. }
  set (more := (rho + Rabs mu) * M + Rabs mu * (w0 * G1 * S0)) in *.
  (* the product with the factor, exact *)
  assert (D : Rabs ((rho + mu) * y - rho * y0) <= rho * ((w0 * G1 - 1) * S0) + more).
  { replace ((rho + mu) * y - rho * y0) with ((rho + mu) * (y - y0) + mu * y0) by ring.
    eapply Rle_trans; [apply Rabs_triang|]. rewrite !Rabs_mult.
    assert (Rabs mu * Rabs y0 <= Rabs mu * S0) by (apply Rmult_le_compat_l; auto).
    assert (Rabs (rho + mu) * Rabs (y - y0) <= (rho + Rabs mu) * ((w0 * G1 - 1) * S0 + M))
      by (apply Rmult_le_compat; auto using Rabs_pos). unfold more. lra. }
  assert (Z : Rabs ((rho + mu) * y) <= rho * (w0 * G1 * S0) + more).
  { replace ((rho + mu) * y) with (((rho + mu) * y - rho * y0) + rho * y0) by ring.
    eapply Rle_trans; [apply Rabs_triang|]. rewrite (Rabs_mult rho), (Rabs_pos_eq rho) by lra.
    assert (rho * Rabs y0 <= rho * S0) by (apply Rmult_le_compat_l; lra). lra. }
  unfold near in N. clearbody more.
  assert (UZ : u A * Rabs ((rho + mu) * y) <= u A * (rho * (w0 * G1 * S0) + more)) by (apply Rmult_le_compat_l; auto).
  replace (y' - rho * y0) with ((y' - (rho + mu) * y) + ((rho + mu) * y - rho * y0)) by ring.
  eapply Rle_trans; [apply Rabs_triang|]. lra.
Qed.

Lemma channel_key (v : K -> R) w0 lamw j m z mu p y : 1 <= w0 -> 0 <= lamw -> 0 <= p ->
  p = exp (sh j - m + z) + mu -> Rabs mu <= Rmin (lame A) (exp (sh j - m + z)) ->
  Rabs (y - p * v j) <= ((w0 - 1) * p + Rmin lamw (w0 * p)) * Rabs (v j) + lam A ->
  channel v w0 lamw [(j, z)] m y 0 0 1.
Proof.
  intros W L Pp E Hmu H. unfold channel, lost, losses, weight. simpl.
  rewrite !Rplus_0_r, !Rmult_1_l, Rmult_1_r.
  set (e := exp (sh j - m + z)) in *. assert (P : 0 < e) by apply exp_pos.
  assert (Lk := loss_key A OK d w0 lamw e (Rabs mu) W L ltac:(lra) (conj (Rabs_pos _) Hmu)).
  assert (Am := Rabs_bounds mu _ (Rle_refl _)). set (mm := Rabs mu) in *.
  assert (Rmin lamw (w0 * p) <= Rmin lamw (w0 * (e + mm)))
    by (apply Rle_min_compat; [lra|apply Rmult_le_compat_l; lra]).
  assert ((w0 - 1) * p <= (w0 - 1) * (e + mm)) by (apply Rmult_le_compat_l; lra).
  replace (y - e * v j) with ((y - p * v j) + mu * v j) by (rewrite E; ring).
  eapply Rle_trans; [apply Rabs_triang|]. rewrite (Rabs_mult mu). fold mm.
  assert (Vp := Rabs_pos (v j)). set (a := Rabs (v j)) in *.
  assert (((w0 - 1) * p + Rmin lamw (w0 * p) + mm) * a <= ((w0 - 1) * e + loss w0 lamw 0 e) * a)
    by (apply Rmult_le_compat_r; lra). lra.
Qed.


Definition adds (x y z : R) :=
  near (u A) (lam A) (x + y) z /\ (nearest A = true -> Rabs (z - (x + y)) <= Rmin (Rabs x) (Rabs y) + lam A).

Section Channel.
(** One of the two sums: its values (1 for the sum of weights), 1 + the relative error of a weight times value as it
    enters, what rounding a weight may lose absolutely. *)
Variable v : K -> R.
Variables w0 lamw : R.
Hypothesis W : 1 <= w0.
Hypothesis Lw : 0 <= lamw.

(** [sums_by ts m y k r c]: y is a kernel's sum of the terms ts relative to the reference m, in some order.
No term has passed
    more than k roundings of a sum or of a rescaling, r of them rescalings; c operations may have lost lam by underflow.
    What errors the exponents have is part of the terms: two sums over the same terms used the same exponentials. *)
Inductive sums_by : list term -> R -> R -> nat -> nat -> nat -> Prop :=
| sums_by_key j m e p y :
    sh j - m <= T A ->
    Rabs (e - (sh j - m)) <= thE A * Rabs (sh j - m) + xk j ->
    exponential e p ->
    Rabs (y - p * v j) <= ((w0 - 1) * p + Rmin lamw (w0 * p)) * Rabs (v j) + lam A ->
    sums_by [(j, e - (sh j - m) + split e p)] m y 0 0 1
| sums_by_add ts1 ts2 m y1 y2 y k1 r1 c1 k2 r2 c2 :
    sums_by ts1 m y1 k1 r1 c1 -> sums_by ts2 m y2 k2 r2 c2 -> adds y1 y2 y ->
    sums_by (ts1 ++ ts2) m y (S (Nat.max k1 k2)) (Nat.max r1 r2) (S (c1 + c2))
| sums_by_rescale ts m y k r c m' z p y' :
    sums_by ts m y k r c -> m <= m' ->
    Rabs z <= thE A * (m' - m) + xr A + eps1 -> 
    Rabs (p - exp (m - m' + z)) <= Rmin (lame A) (exp (m - m' + z)) ->
      near (u A) (lam A) (p * y) y' ->
    sums_by (rescaled z ts) m' y' (S k) (S r) (S c).

(** A factor exp (m - m'), its exponent rounded. *)
Lemma sums_by_rescale_exp ts m y k r c m' e p y' :
  sums_by ts m y k r c -> m <= m' -> Rabs (e - (m - m')) <= thE A * (m' - m) + xr A ->
  exponential e p -> near (u A) (lam A) (p * y) y' ->
  sums_by (rescaled (e - (m - m') + split e p) ts) m' y' (S k) (S r) (S c).
Proof.
  intros H Hm He Hp N. destruct (split_spec A OK e p Hp) as [S1 S2].
  apply (sums_by_rescale ts m y k r c m' _ p y'); auto.
  - eapply Rle_trans; [apply Rabs_triang|]. lra.
  - replace (m - m' + (e - (m - m') + split e p)) with (e + split e p) by lra. auto.
Qed.

(** Normalising a split: divided by its sum L of weights; its reference becomes q, the computed m + log L. *)
Lemma sums_by_normalise ts m y k r c q L y' :
  sums_by ts m y k r c -> 0 < L -> m <= q -> Rabs (q - (m + ln L)) <= xr A + eps1 -> near (u A) (lam A) (y / L) y' ->
  sums_by (rescaled (q - (m + ln L)) ts) q y' (S k) (S r) (S c).
Proof.
  intros H HL Hm Hq N. destruct OK. apply (sums_by_rescale ts m y k r c q _ (/ L) y'); auto.
  - assert (0 <= thE A * (q - m)) by (apply Rmult_le_pos; lra). lra.
  - replace (m - q + (q - (m + ln L))) with (- ln L) by ring. rewrite exp_Ropp, exp_ln by auto.
  rewrite Rminus_eq_0, Rabs_R0. apply Rmin_pos; auto. left. apply Rinv_0_lt_compat; auto.
  - replace (/ L * y) with (y / L) by (unfold Rdiv; ring). auto.
Qed.

Theorem sums_spec_by ts m y k r c : sums_by ts m y k r c -> Forall (known_by m r) ts /\ channel v w0 lamw ts m y k r c.
Proof.
  induction 1 as [j m e p y HT He Hp Hy | ts1 ts2 m y1 y2 y k1 r1 c1 k2 r2 c2 H1 [F1 C1] H2 [F2 C2] [N _]
                 | ts m y k r c m' z p y' H [F C] Hm Hz Hp N].
  - destruct (split_spec A OK e p Hp) as [S1 S2]. destruct OK. split.
    + constructor; [|constructor]. split; simpl; auto.
      assert (Rabs (sh j - m) <= m - sh j + 2 * T A) by (apply Rabs_le_iff; lra).
      assert (thE A * Rabs (sh j - m) <= thE A * (m - sh j + 2 * T A)) by (apply Rmult_le_compat_l; lra).
      eapply Rle_trans; [apply Rabs_triang|]. unfold arithmetic.X. simpl. lra.
    + assert (Ex : sh j - m + (e - (sh j - m) + split e p) = e + split e p) by lra. destruct Hp as [Pp _].
      apply (channel_key v w0 lamw j m _ (p - exp (e + split e p)) p); rewrite ?Ex; auto. lra.
  - assert (Ek1 := Nat.le_max_l k1 k2). assert (Ek2 := Nat.le_max_r k1 k2).
    assert (Er1 := Nat.le_max_l r1 r2). assert (Er2 := Nat.le_max_r r1 r2). split.
    + apply Forall_app. split; [eapply Forall_impl; [|apply F1] | eapply Forall_impl; [|apply F2]]; intros t;
      apply known_mono; auto.
    + apply (channel_add _ _ _ _ _ _ y1 y2); auto.
      * apply (channel_mono _ _ _ _ _ _ k1 r1 c1); auto.
      * apply (channel_mono _ _ _ _ _ _ k2 r2 c2); auto.
  - assert (Ep : p = exp (m - m' + z) + (p - exp (m - m' + z))) by lra. split.
    + unfold rescaled. rewrite Forall_map. eapply Forall_impl; [|apply F]. intros t [T1 T2]. split; simpl; [lra|].
      eapply Rle_trans; [apply Rabs_triang|]. unfold arithmetic.X in *. rewrite S_INR. lra.
    + rewrite Ep in N. apply (channel_rescale _ _ _ _ m m' z (p - exp (m - m' + z)) y); auto.
Qed.

(** P6: with rounding to nearest, few big terms and many small ones. Any partition will do. *)
Section Refined.
Hypothesis RN : nearest A = true.
Variable big : K -> bool.
Definition bigs (ts : list term) := Sum (fun t => if big (fst t) then 1 else 0) ts.
Definition small_sum m (ts : list term) := Sum (fun t => if big (fst t) then 0 else weight m t * Rabs (v (fst t))) ts.
Definition size_sum m (ts : list term) := Sum (fun t => weight m t * Rabs (v (fst t))) ts.
Definition exact_sum m (ts : list term) := Sum (fun t => weight m t * v (fst t)) ts.
Definition P k := w0 * (1 + u A) ^ k.
Definition refined (ts : list term) (m y : R) (k r c : nat) :=
  Rabs (y - exact_sum m ts) <=
    (w0 - 1 + u A * P k * (bigs ts - 1 + INR r)) * size_sum m ts +
    (2 * P k - w0) * small_sum m ts + 2 * lost v w0 lamw ts m k r c.

Lemma size_pos m ts : 0 <= size_sum m ts.
Proof. apply Sum_nonneg; intros. apply Rmult_le_pos; [left; apply weight_pos | apply Rabs_pos]. Qed.
Lemma small_pos m ts : 0 <= small_sum m ts.
Proof. apply Sum_nonneg; intros. destruct (big _); [lra|].
apply Rmult_le_pos; [left; apply weight_pos | apply Rabs_pos]. Qed.
Lemma P_ge k : w0 <= P k.
Proof. destruct OK. unfold P. assert (H := pow_ge1 (u A) k s_u). nra. Qed.
Lemma P_mono k k' : (k <= k')%nat -> P k <= P k'.
Proof. destruct OK. intros H. unfold P. apply Rmult_le_compat_l; [lra|]. apply pow_mono; auto. Qed.
Lemma P_S k : P (S k) = (1 + u A) * P k.
Proof. unfold P. simpl. ring. Qed.
Lemma w0_pos : 0 <= w0.
Proof. lra. Qed.

Lemma refined_mono ts m y k r c k' r' c' : 1 <= bigs ts -> (k <= k')%nat -> (r <= r')%nat -> (c <= c')%nat ->
  refined ts m y k r c -> refined ts m y k' r' c'.
Proof.
  destruct OK. intros B Hk Hr Hc H. unfold refined in *.
  assert (M := lost_mono v w0 lamw ts m _ _ _ _ _ _ w0_pos Lw Hk Hr Hc). assert (Pm := P_mono _ _ Hk).
  assert (P0 := P_ge k).
  assert (I := le_INR _ _ Hr). assert (Ir := pos_INR r). assert (Sp := size_pos m ts). assert (sp := small_pos m ts).
  assert ((w0 - 1 + u A * P k * (bigs ts - 1 + INR r)) * size_sum m ts <= (w0 - 1 + u A * P k' * (bigs ts - 1 + INR
    r')) * size_sum m ts).
  { apply Rmult_le_compat_r; auto. apply Rplus_le_compat_l. apply Rmult_le_compat; try lra; [apply Rmult_le_pos; lra|].
    apply Rmult_le_compat_l; lra. }
  assert ((2 * P k - w0) * small_sum m ts <= (2 * P k' - w0) * small_sum m ts) by (apply Rmult_le_compat_r; lra). lra.
Qed.

Lemma none_big ts m : bigs ts = 0 -> small_sum m ts = size_sum m ts.
Proof.
  intros H. unfold small_sum, size_sum. apply Sum_ext. intros t It. destruct (big (fst t)) eqn:E; auto. exfalso.
  assert (1 <= bigs ts); [|lra].
  replace 1 with ((fun t : term => if big (fst t) then 1 else 0) t) by (rewrite E; auto).
  unfold bigs. apply (Sum_In_le (fun t : term => if big (fst t) then 1 else 0) ts t); auto.
  intros x _. destruct (big (fst x)); lra.
Qed.
Lemma bigs_cases ts : bigs ts = 0 \/ 1 <= bigs ts.
Proof.
  induction ts as [|t l [IH|IH]]; unfold bigs in *; simpl; [auto| |]; destruct (big _); [right|left|right|right]; lra.
Qed.

Lemma channel_size ts m y k r c : channel v w0 lamw ts m y k r c ->
  Rabs y <= P k * size_sum m ts + lost v w0 lamw ts m k r c.
Proof.
  unfold channel, P. intros H. assert (B := size_le v ts m). fold (size_sum m ts) in *.
  replace y with ((y - Sum (fun t => weight m t * v (fst t)) ts) + Sum (fun t => weight m t * v (fst t)) ts) by lra.
  eapply Rle_trans; [apply Rabs_triang|]. lra.
Qed.

Lemma refined_add_small ts1 ts2 m y1 y2 y k r c1 c2 :
  1 <= bigs ts1 -> bigs ts2 = 0 -> refined ts1 m y1 k r c1 -> channel v w0 lamw ts2 m y2 k r c2 -> adds y1 y2 y ->
  refined (ts1 ++ ts2) m y (S k) r (S (c1 + c2)).
Proof.
  destruct OK. intros B1 B2 H1 H2 [_ N]. specialize (N RN). assert (Y2 := channel_size _ _ _ _ _ _ H2).
  assert (LA := lost_add v w0 lamw ts1 ts2 m k r c1 c2).
  assert (L1 := lost_pos v w0 lamw ts1 m k r c1 w0_pos Lw).
  assert (L2 := lost_pos v w0 lamw ts2 m k r c2 w0_pos Lw).
  unfold refined, channel in *. fold (exact_sum m ts2) (size_sum m ts2) in H2. fold (P k) in H2. rewrite P_S.
  unfold bigs, size_sum, small_sum, exact_sum in *. rewrite !Sum_app. fold (bigs ts1) (bigs ts2) in *.
  fold (size_sum m ts1) (size_sum m ts2) (small_sum m ts1) (small_sum m ts2) (exact_sum m ts1) (exact_sum m ts2) in *.
  rewrite B2, (none_big ts2 m B2). assert (P0 := P_ge k). assert (Ir := pos_INR r).
  assert (S1 := size_pos m ts1). assert (S2 := size_pos m ts2). assert (s1 := small_pos m ts1).
  assert (Nm : Rabs (y - (y1 + y2)) <= Rabs y2 + lam A) by (assert (Q := Rmin_r (Rabs y1) (Rabs y2)); lra).
  set (Pk := P k) in *. set (S1' := size_sum m ts1) in *. set (S2' := size_sum m ts2) in *.
  set (s1' := small_sum m ts1) in *.
  set (b := bigs ts1) in *. set (X1 := exact_sum m ts1) in *. set (X2 := exact_sum m ts2) in *. set (nr := INR r) in *.
  set (M1 := lost v w0 lamw ts1 m k r c1) in *. set (M2 := lost v w0 lamw ts2 m k r c2) in *.
  set (M3 := lost v w0 lamw (ts1 ++ ts2) m (S k) r (S (c1 + c2))) in *.
  clearbody Pk S1' S2' s1' b X1 X2 nr M1 M2 M3.
  replace (y - (X1 + X2)) with ((y - (y1 + y2)) + ((y1 - X1) + (y2 - X2))) by lra.
  eapply Rle_trans; [apply Rabs_triang|].
  assert (T1 : Rabs (y1 - X1 + (y2 - X2)) <= Rabs (y1 - X1) + Rabs (y2 - X2)) by apply Rabs_triang.
  set (q := u A * Pk * (b - 1 + nr)) in *.
  assert (q0 : 0 <= q) by (unfold q; repeat apply Rmult_le_pos; lra).
  assert (q1 : q <= u A * ((1 + u A) * Pk) * (b + 0 - 1 + nr)).
  { unfold q. replace (b + 0 - 1 + nr) with (b - 1 + nr) by lra. apply Rmult_le_compat_r; [lra|].
    apply Rmult_le_compat_l; auto. apply le_times; lra. }
  set (q' := u A * ((1 + u A) * Pk) * (b + 0 - 1 + nr)) in *. clearbody q q'.
  assert (M0 : M1 + M2 <= (1 + u A) * (M1 + M2)) by (apply le_times; lra).
  assert ((w0 - 1 + q) * S1' <= (w0 - 1 + q') * S1') by (apply Rmult_le_compat_r; lra).
  assert ((w0 - 1) * S2' <= (w0 - 1 + q') * S2') by (apply Rmult_le_compat_r; lra).
  assert (2 * Pk - w0 <= 2 * ((1 + u A) * Pk) - w0) by (assert (Pk <= (1 + u A) * Pk) by (apply le_times; lra); lra).
  assert ((2 * Pk - w0) * (s1' + S2') <= (2 * ((1 + u A) * Pk) - w0) * (s1' + S2')) by (apply Rmult_le_compat_r; lra).
  lra.
Qed.

Lemma refined_add_big ts1 ts2 m y1 y2 y k r c1 c2 :
  1 <= bigs ts1 -> 1 <= bigs ts2 -> channel v w0 lamw ts1 m y1 k r c1 -> channel v w0 lamw ts2 m y2 k r c2 ->
  refined ts1 m y1 k r c1 -> refined ts2 m y2 k r c2 -> adds y1 y2 y ->
  refined (ts1 ++ ts2) m y (S k) r (S (c1 + c2)).
Proof.
  destruct OK. intros B1 B2 C1 C2 H1 H2 [N _]. unfold near in N.
  assert (Y1 := channel_size _ _ _ _ _ _ C1). assert (Y2 := channel_size _ _ _ _ _ _ C2).
  assert (LA := lost_add v w0 lamw ts1 ts2 m k r c1 c2).
  assert (L1 := lost_pos v w0 lamw ts1 m k r c1 w0_pos Lw).
  assert (L2 := lost_pos v w0 lamw ts2 m k r c2 w0_pos Lw).
  clear C1 C2. unfold refined in *. rewrite P_S.
  unfold bigs, size_sum, small_sum, exact_sum in *. rewrite !Sum_app. fold (bigs ts1) (bigs ts2) in *.
  fold (size_sum m ts1) (size_sum m ts2) (small_sum m ts1) (small_sum m ts2) (exact_sum m ts1) (exact_sum m ts2) in *.
  assert (P0 := P_ge k). assert (Ir := pos_INR r).
  assert (S1 := size_pos m ts1). assert (S2 := size_pos m ts2). assert (s1 := small_pos m ts1).
  assert (s2 := small_pos m ts2).
  set (Pk := P k) in *. set (S1' := size_sum m ts1) in *. set (S2' := size_sum m ts2) in *.
  set (s1' := small_sum m ts1) in *.
  set (s2' := small_sum m ts2) in *.
  set (b1 := bigs ts1) in *. set (b2 := bigs ts2) in *. set (X1 := exact_sum m ts1) in *.
  set (X2 := exact_sum m ts2) in *.
  set (nr := INR r) in *. set (M1 := lost v w0 lamw ts1 m k r c1) in *. set (M2 := lost v w0 lamw ts2 m k r c2) in *.
  set (M3 := lost v w0 lamw (ts1 ++ ts2) m (S k) r (S (c1 + c2))) in *.
  clearbody Pk S1' S2' s1' s2' b1 b2 X1 X2 nr M1 M2 M3.
  replace (y - (X1 + X2)) with ((y - (y1 + y2)) + ((y1 - X1) + (y2 - X2))) by lra.
  eapply Rle_trans; [apply Rabs_triang|].
  assert (T1 : Rabs (y1 - X1 + (y2 - X2)) <= Rabs (y1 - X1) + Rabs (y2 - X2)) by apply Rabs_triang.
  assert (T2 : Rabs (y1 + y2) <= Pk * (S1' + S2') + (M1 + M2)).
  { eapply Rle_trans; [apply Rabs_triang|]. lra. }
  assert (T3 : u A * Rabs (y1 + y2) <= u A * (Pk * (S1' + S2') + (M1 + M2))) by (apply Rmult_le_compat_l; auto).
  set (h := u A * Pk) in *. assert (h0 : 0 <= h) by (unfold h; apply Rmult_le_pos; lra).
  assert (h1 : h <= u A * ((1 + u A) * Pk)) by (unfold h; apply Rmult_le_compat_l; auto; apply le_times; lra).
  set (h' := u A * ((1 + u A) * Pk)) in *.
  assert (c1' : h * (b1 - 1 + nr) + h <= h' * (b1 + b2 - 1 + nr)).
  { replace (h * (b1 - 1 + nr) + h) with (h * (b1 + nr)) by ring. apply Rmult_le_compat; lra. }
  assert (c2' : h * (b2 - 1 + nr) + h <= h' * (b1 + b2 - 1 + nr)).
  { replace (h * (b2 - 1 + nr) + h) with (h * (b2 + nr)) by ring. apply Rmult_le_compat; lra. }
  set (q := h' * (b1 + b2 - 1 + nr)) in *.
  assert (D1 : (w0 - 1 + h * (b1 - 1 + nr)) * S1' + h * S1' <= (w0 - 1 + q) * S1').
  { rewrite <- Rmult_plus_distr_r. apply Rmult_le_compat_r; lra. }
  assert (D2 : (w0 - 1 + h * (b2 - 1 + nr)) * S2' + h * S2' <= (w0 - 1 + q) * S2').
  { rewrite <- Rmult_plus_distr_r. apply Rmult_le_compat_r; lra. }
  assert (2 * Pk - w0 <= 2 * ((1 + u A) * Pk) - w0) by (assert (Pk <= (1 + u A) * Pk) by (apply le_times; lra); lra).
  assert ((2 * Pk - w0) * (s1' + s2') <= (2 * ((1 + u A) * Pk) - w0) * (s1' + s2')) by (apply Rmult_le_compat_r; lra).
  assert (u A * (Pk * (S1' + S2')) = h * S1' + h * S2') by (unfold h; ring).
  assert (0 <= u A * (M1 + M2)) by (apply Rmult_le_pos; lra).
  clearbody h h' q. lra.
Qed.

Lemma adds_comm x y z : adds x y z -> adds y x z.
Proof. unfold adds. rewrite (Rplus_comm y x), (Rmin_comm (Rabs y)). auto. Qed.
Lemma refined_perm ts ts' m y k r c : Permutation ts ts' -> refined ts m y k r c -> refined ts' m y k r c.
Proof.
  intros Hp. unfold refined, lost, losses, bigs, size_sum, small_sum, exact_sum.
  rewrite !(fun f => Sum_perm f _ _ Hp). auto.
Qed.

Lemma rescaled_bigs z ts : bigs (rescaled z ts) = bigs ts.
Proof. unfold bigs, rescaled. rewrite Sum_map. reflexivity. Qed.

Lemma refined_rescale ts m m' z mu y y' k r c : m <= m' -> Rabs z <= thE A * (m' - m) + xr A + eps1 ->
  Rabs mu <= Rmin (lame A) (exp (m - m' + z)) -> Forall (known_by m r) ts -> channel v w0 lamw ts m y k r c ->
  1 <= bigs ts ->
  refined ts m y k r c -> near (u A) (lam A) ((exp (m - m' + z) + mu) * y) y' ->
  refined (rescaled z ts) m' y' (S k) (S r) (S c).
Proof.
  intros Hm Hz Hmu F C B H N. assert (Lr := lost_rescale v w0 lamw ts m m' z mu k r c W Lw Hm Hz Hmu F).
  destruct OK. assert (Y := channel_size _ _ _ _ _ _ C).
  unfold refined in *. fold (size_sum m ts) (P k) in Lr. rewrite rescaled_bigs, P_S, S_INR.
  assert (Ex : exact_sum m' (rescaled z ts) = exp (m - m' + z) * exact_sum m ts) by apply rescaled_sum.
  assert (Ez : size_sum m' (rescaled z ts) = exp (m - m' + z) * size_sum m ts)
    by apply (rescaled_sum (fun j => Rabs (v j))).
  assert (Es : small_sum m' (rescaled z ts) = exp (m - m' + z) * small_sum m ts).
  { unfold small_sum, rescaled. rewrite Sum_map, <- Sum_scal. apply Sum_ext. intros t _.
    rewrite (rescaled_weight m). simpl. destruct (big (fst t)); ring. }
  rewrite Ex, Ez, Es. clear Ex Ez Es. assert (Rp := exp_pos (m - m' + z)). set (rho := exp (m - m' + z)) in *.
  assert (P0 := P_ge k). assert (Ir := pos_INR r). assert (S1 := size_pos m ts). assert (s1 := small_pos m ts).
  assert (L1 := lost_pos v w0 lamw ts m k r c w0_pos Lw). assert (Pm := Rabs_pos mu).
  set (Pk := P k) in *. set (S' := size_sum m ts) in *. set (s' := small_sum m ts) in *. set (b := bigs ts) in *.
  set (y0 := exact_sum m ts) in *. set (nr := INR r) in *. set (M := lost v w0 lamw ts m k r c) in *.
  set (M3 := lost v w0 lamw (rescaled z ts) m' (S k) (S r) (S c)) in *.
  clearbody Pk S' s' b y0 nr M M3 rho.
  set (lin := (w0 - 1 + u A * Pk * (b - 1 + nr)) * S' + (2 * Pk - w0) * s') in *.
  set (more := (rho + Rabs mu) * M + Rabs mu * (Pk * S')) in *.
  assert (m0 : 0 <= Rabs mu * (Pk * S')) by (repeat apply Rmult_le_pos; lra).
  assert (m1 : 0 <= (rho + Rabs mu) * M) by (apply Rmult_le_pos; lra).
  assert (D : Rabs ((rho + mu) * y - rho * y0) <= rho * lin + 2 * more).
  { replace ((rho + mu) * y - rho * y0) with (rho * (y - y0) + mu * y) by ring.
    eapply Rle_trans; [apply Rabs_triang|]. rewrite !Rabs_mult, (Rabs_pos_eq rho) by lra.
    assert (rho * Rabs (y - y0) <= rho * (lin + 2 * M)) by (apply Rmult_le_compat_l; lra).
    assert (Rabs mu * Rabs y <= Rabs mu * (Pk * S' + M)) by (apply Rmult_le_compat_l; auto).
    assert (0 <= Rabs mu * M) by (apply Rmult_le_pos; auto). unfold more. lra. }
  assert (Z : Rabs ((rho + mu) * y) <= rho * (Pk * S') + more).
  { rewrite Rabs_mult. assert (B1 : Rabs (rho + mu) <= rho + Rabs mu).
    { eapply Rle_trans; [apply Rabs_triang|]. rewrite (Rabs_pos_eq rho) by lra. lra. }
    assert (Rabs (rho + mu) * Rabs y <= (rho + Rabs mu) * (Pk * S' + M))
      by (apply Rmult_le_compat; auto using Rabs_pos). unfold more. lra. }
  unfold near in N. assert (m2 : 0 <= more) by (unfold more; lra). clearbody more.
  assert (UZ : u A * Rabs ((rho + mu) * y) <= u A * (rho * (Pk * S') + more)) by (apply Rmult_le_compat_l; auto).
  replace (y' - rho * y0) with ((y' - (rho + mu) * y) + ((rho + mu) * y - rho * y0)) by ring.
  eapply Rle_trans; [apply Rabs_triang|].
  set (a := u A * Pk) in *. assert (a0 : 0 <= a) by (unfold a; apply Rmult_le_pos; lra).
  assert (PkS : Pk <= (1 + u A) * Pk) by (fold a in a0; unfold a in a0; lra).
  assert (a1 : a <= u A * ((1 + u A) * Pk)) by (unfold a; apply Rmult_le_compat_l; auto).
  set (a' := u A * ((1 + u A) * Pk)) in *.
  assert (c1 : a * (b - 1 + nr) + a <= a' * (b - 1 + (nr + 1))).
  { replace (a * (b - 1 + nr) + a) with (a * (b - 1 + (nr + 1))) by ring. apply Rmult_le_compat_r; lra. }
  assert (rS : 0 <= rho * S') by (apply Rmult_le_pos; lra). assert (rs : 0 <= rho * s') by (apply Rmult_le_pos; lra).
  assert (D1 : (w0 - 1 + (a * (b - 1 + nr) + a)) * (rho * S') <= (w0 - 1 + a' * (b - 1 + (nr + 1))) * (rho * S'))
    by (apply Rmult_le_compat_r; lra).
  assert (D2 : (2 * Pk - w0) * (rho * s') <= (2 * ((1 + u A) * Pk) - w0) * (rho * s')) by (apply Rmult_le_compat_r;
    [auto | lra]).
  assert (D3 : u A * (rho * (Pk * S')) + rho * lin = (w0 - 1 + (a * (b - 1 + nr) + a)) * (rho * S') + (2 * Pk - w0) *
    (rho * s'))
    by (unfold lin, a; ring).
  assert (D4 : 0 <= u A * more) by (apply Rmult_le_pos; lra).
  set (q := a' * (b - 1 + (nr + 1))) in *. clearbody q a' lin. lra.
Qed.

Theorem sums_refined_by ts m y k r c : sums_by ts m y k r c -> bigs ts = 0 \/ refined ts m y k r c.
Proof.
 
  induction 1 as [j m e p y HT He Hp Hy | ts1 ts2 m y1 y2 y k1 r1 c1 k2 r2 c2 H1 IH1 H2 IH2 N
                 | ts m y k r c m' z p y' H IH Hm Hz Hp N].
  - destruct (bigs_cases [(j, e - (sh j - m) + split e p)]) as [B|B]; [left; auto|right].
    destruct (sums_spec_by _ _ _ _ _ _ (sums_by_key j m e p y HT He Hp Hy)) as [_ C].
    unfold channel in C. unfold refined.
    fold (exact_sum m [(j, e - (sh j - m) + split e p)]) (size_sum m [(j, e - (sh j - m) + split e p)]) in C.
    set (ts := [(j, e - (sh j - m) + split e p)]) in *. destruct OK. assert (P0 := P_ge 0). simpl (INR 0).
    assert (S1 := size_pos m ts). assert (s1 := small_pos m ts). assert (L1 := lost_pos v w0 lamw ts m 0 0 1 w0_pos Lw).
    assert (0 <= u A * P 0 * (bigs ts - 1 + 0) * size_sum m ts) by (repeat apply Rmult_le_pos; lra).
    assert (0 <= (2 * P 0 - w0) * small_sum m ts) by (apply Rmult_le_pos; lra). simpl in C. lra.
  - destruct (sums_spec_by _ _ _ _ _ _ H1) as [F1 C1]. destruct (sums_spec_by _ _ _ _ _ _ H2) as [F2 C2].
    assert (Ek1 := Nat.le_max_l k1 k2). assert (Ek2 := Nat.le_max_r k1 k2).
    assert (Er1 := Nat.le_max_l r1 r2). assert (Er2 := Nat.le_max_r r1 r2).
    set (k := Nat.max k1 k2) in *. set (r := Nat.max r1 r2) in *.
    apply (channel_mono _ _ _ _ _ _ k1 r1 c1 k r c1) in C1; auto.
    apply (channel_mono _ _ _ _ _ _ k2 r2 c2 k r c2) in C2; auto.
    assert (EB : bigs (ts1 ++ ts2) = bigs ts1 + bigs ts2) by (unfold bigs; apply Sum_app).
    destruct (bigs_cases ts1) as [B1|B1]; destruct (bigs_cases ts2) as [B2|B2].
    + left. lra.
    + right. destruct IH2 as [Z|R2]; [lra|]. apply (refined_perm (ts2 ++ ts1)); [apply Permutation_app_comm|].
      replace (S (c1 + c2)) with (S (c2 + c1)) by lia.
      apply (refined_add_small ts2 ts1 m y2 y1); auto; [|apply adds_comm; auto].
      apply (refined_mono _ _ _ k2 r2 c2); auto.
    + right. destruct IH1 as [Z|R1]; [lra|]. apply (refined_add_small ts1 ts2 m y1 y2); auto.
    apply (refined_mono _ _ _ k1 r1 c1); auto.
    + right. destruct IH1 as [Z|R1]; [lra|]. destruct IH2 as [Z|R2]; [lra|].
      apply (refined_add_big ts1 ts2 m y1 y2); auto;
        [apply (refined_mono _ _ _ k1 r1 c1) | apply (refined_mono _ _ _ k2 r2 c2)]; auto.
  - rewrite rescaled_bigs. destruct IH as [B|R1]; [left; auto|].
    destruct (bigs_cases ts) as [B|B]; [left; auto|right].
    destruct (sums_spec_by _ _ _ _ _ _ H) as [F C].
    assert (Ep : p = exp (m - m' + z) + (p - exp (m - m' + z))) by lra. rewrite Ep in N.
    apply (refined_rescale ts m m' z (p - exp (m - m' + z)) y); auto.
Qed.

Definition refined_error k r (b X Xs : R) := (w0 - 1 + u A * P k * (Rmax 0 (b - 1) + INR r)) * X + (2 * P k - w0) * Xs.
Theorem sums_error_by ts m y k r c : sums_by ts m y k r c ->
  Rabs (y - exact_sum m ts) <=
    Rmin ((P k - 1) * size_sum m ts) (refined_error k r (bigs ts) (size_sum m ts) (small_sum m ts)) + 2 * lost v w0
      lamw ts m k r c.
Proof.
  intros H. destruct OK. destruct (sums_spec_by _ _ _ _ _ _ H) as [_ C]. unfold channel in C.
  fold (exact_sum m ts) (size_sum m ts) (P k) in C. assert (L := lost_pos v w0 lamw ts m k r c w0_pos Lw).
  assert (P0 := P_ge k). assert (S1 := size_pos m ts). assert (s1 := small_pos m ts). assert (Ir := pos_INR r).
  unfold Rmin. destruct (Rle_dec _ _) as [_|_]; [lra|]. unfold refined_error.
  assert (uP : 0 <= u A * P k) by (apply Rmult_le_pos; lra).
  assert (b0 := Rmax_l 0 (bigs ts - 1)). assert (b1 := Rmax_r 0 (bigs ts - 1)).
  destruct (sums_refined_by _ _ _ _ _ _ H) as [B|R1].
  - rewrite (none_big ts m B) in *.
    assert (0 <= u A * P k * (Rmax 0 (bigs ts - 1) + INR r) * size_sum m ts)
      by (apply Rmult_le_pos; [apply Rmult_le_pos; [auto | lra] | auto]).
    assert (0 <= (P k - w0) * size_sum m ts) by (apply Rmult_le_pos; lra).
    assert (0 <= P k * size_sum m ts) by (apply Rmult_le_pos; lra). lra.
  - unfold refined in R1.
    assert (u A * P k * (bigs ts - 1 + INR r) * size_sum m ts <= u A * P k * (Rmax 0 (bigs ts - 1) + INR r) * size_sum
      m ts).
    { apply Rmult_le_compat_r; auto. apply Rmult_le_compat_l; lra. } lra.
Qed.
End Refined.

(** Weights are positive: their sum is at least (1-u)^k of itself, which is a little more than 1 - ((1+u)^k - 1). *)
Lemma sums_lower_by ts m y k r c : u A <= 1 -> 0 <= 2 - w0 -> (forall j, v j = 1) -> sums_by ts m y k r c ->
  (2 - w0) * (1 - u A) ^ k * Sum (weight m) ts - lost v w0 lamw ts m k r c <= y.
Proof.
  intros U1 W2 V1.
  assert (Size : forall m ts, size_sum m ts = Sum (weight m) ts).
  { intros. unfold size_sum. apply Sum_ext. intros. rewrite V1, Rabs_R1. ring. }
  assert (Wp : forall m ts, 0 <= Sum (weight m) ts) by (intros; apply Sum_nonneg; intros; left; apply weight_pos).
  assert (Qp : forall k, 0 <= (1 - u A) ^ k) by (intros; apply pow_le; destruct OK; lra).
  assert (Qm : forall k k', (k <= k')%nat -> (1 - u A) ^ k' <= (1 - u A) ^ k).
  { intros k1 k2 H. destruct OK. replace ((1 - u A) ^ k2) with ((1 - u A) ^ k1 * (1 - u A) ^ (k2 - k1)) by (rewrite <-
    pow_add; f_equal; lia).
    assert (Le1 : (1 - u A) ^ (k2 - k1) <= 1 ^ (k2 - k1)) by (apply pow_incr; lra). rewrite pow1 in Le1.
    assert (Q2 := Qp k1). assert ((1 - u A) ^ k1 * (1 - u A) ^ (k2 - k1) <= (1 - u A) ^ k1 * 1) by (apply
      Rmult_le_compat_l; auto). lra. }
  assert (Near : forall x z L M, 0 <= L -> 0 <= M -> near (u A) (lam A) x z -> L - M <= x ->
    (1 - u A) * L - (1 + u A) * M - lam A <= z).
  { intros x z L M HL HM N Hx. unfold near in N. apply Rabs_bounds in N. destruct OK.
    assert (0 <= u A * L) by (apply Rmult_le_pos; auto). assert (0 <= u A * M) by (apply Rmult_le_pos; auto).
    destruct (Rle_dec 0 x).
    - rewrite (Rabs_pos_eq x) in N by auto.
    assert ((1 - u A) * (L - M) <= (1 - u A) * x) by (apply Rmult_le_compat_l; lra). lra.
    - rewrite (Rabs_left x) in N by lra.
    assert ((1 + u A) * (L - M) <= (1 + u A) * x) by (apply Rmult_le_compat_l; lra). lra. }
  induction 1 as [j m e p y HT He Hp Hy | ts1 ts2 m y1 y2 y k1 r1 c1 k2 r2 c2 H1 IH1 H2 IH2 [N _]
                 | ts m y k r c m' z p y' H IH Hm Hz Hp N].
  - destruct (split_spec A OK e p Hp) as [S1 _]. destruct Hp as [Pp _]. destruct OK. unfold lost, losses, weight. simpl.
    replace (sh j - m + (e - (sh j - m) + split e p)) with (e + split e p) by lra. rewrite V1 in *.
    rewrite Rabs_R1 in *. assert (Ep := exp_pos (e + split e p)). set (q := exp (e + split e p)) in *.
    assert (Lk := loss_key A OK d w0 lamw q (Rabs (p - q)) W Lw ltac:(lra) (conj (Rabs_pos _) S1)).
    assert (Bm := Rabs_bounds (p - q) _ (Rle_refl _)). set (mm := Rabs (p - q)) in *.
    apply Rabs_bounds in Hy.
    assert (Rmin lamw (w0 * p) <= Rmin lamw (w0 * (q + mm)))
      by (apply Rle_min_compat; [lra|apply Rmult_le_compat_l; lra]).
    assert ((2 - w0) * (q - mm) <= (2 - w0) * p) by (apply Rmult_le_compat_l; lra).
    assert (0 <= mm) by apply Rabs_pos. assert (0 <= (w0 - 1) * mm) by (apply Rmult_le_pos; lra). lra.
  - set (k := Nat.max k1 k2) in *. set (r := Nat.max r1 r2) in *.
    assert (M1 := lost_mono v w0 lamw ts1 m k1 r1 c1 k r c1 w0_pos Lw (Nat.le_max_l _ _) (Nat.le_max_l _ _) (le_n _)).
    assert (M2 := lost_mono v w0 lamw ts2 m k2 r2 c2 k r c2 w0_pos Lw (Nat.le_max_r _ _) (Nat.le_max_r _ _) (le_n _)).
    assert (La := lost_add v w0 lamw ts1 ts2 m k r c1 c2). rewrite Sum_app. simpl pow.
    assert (Q1 := Qm k1 k (Nat.le_max_l _ _)). assert (Q2 := Qm k2 k (Nat.le_max_r _ _)).
    assert (I1 : (2 - w0) * (1 - u A) ^ k * Sum (weight m) ts1 <= (2 - w0) * (1 - u A) ^ k1 * Sum (weight m) ts1)
      by (apply Rmult_le_compat_r; auto; apply Rmult_le_compat_l; auto).
    assert (I2 : (2 - w0) * (1 - u A) ^ k * Sum (weight m) ts2 <= (2 - w0) * (1 - u A) ^ k2 * Sum (weight m) ts2)
      by (apply Rmult_le_compat_r; auto; apply Rmult_le_compat_l; auto).
    assert (Q := Near (y1 + y2) y ((2 - w0) * (1 - u A) ^ k * (Sum (weight m) ts1 + Sum (weight m) ts2))
      (lost v w0 lamw ts1 m k r c1 + lost v w0 lamw ts2 m k r c2)).
    assert (0 <= (2 - w0) * (1 - u A) ^ k * (Sum (weight m) ts1 + Sum (weight m) ts2)).
    { apply Rmult_le_pos; [apply Rmult_le_pos; auto|]. assert (P1 := Wp m ts1). assert (P2 := Wp m ts2). lra. }
    specialize (Q H). assert (M0a := lost_pos v w0 lamw ts1 m k r c1 w0_pos Lw).
    assert (M0b := lost_pos v w0 lamw ts2 m k r c2 w0_pos Lw).
    specialize (Q ltac:(lra) N ltac:(lra)). lra.
  - destruct (sums_spec_by _ _ _ _ _ _ H) as [F C]. assert (Y := channel_size _ _ _ _ _ _ C). rewrite Size in Y.
    set (mu := p - exp (m - m' + z)) in *. assert (Ep : p = exp (m - m' + z) + mu) by (unfold mu; lra).
    assert (Lr := lost_rescale v w0 lamw ts m m' z mu k r c W Lw Hm Hz Hp F).
    fold (size_sum m ts) (P k) in Lr. rewrite Size in Lr.
    assert (ES : Sum (weight m') (rescaled z ts) = exp (m - m' + z) * Sum (weight m) ts).
    { unfold rescaled. rewrite Sum_map, <- Sum_scal. apply Sum_ext. intros. apply rescaled_weight. }
    rewrite ES. simpl pow. assert (Rp := exp_pos (m - m' + z)).
    set (rho := exp (m - m' + z)) in *. set (M := lost v w0 lamw ts m k r c) in *.
    assert (M0 : 0 <= M) by (apply lost_pos; auto using w0_pos).
    set (L := (2 - w0) * (1 - u A) ^ k * Sum (weight m) ts) in *. assert (Pm := Rabs_pos mu).
    assert (HL : 0 <= L) by (apply Rmult_le_pos; auto; apply Rmult_le_pos; auto).
    set (more := (rho + Rabs mu) * M + Rabs mu * (P k * Sum (weight m) ts)) in *.
    assert (Q := Near (p * y) y' (rho * L) more ltac:(apply Rmult_le_pos; lra)).
    assert (HMM : 0 <= more).
    { assert (P0 := P_ge k). assert (Wm := Wp m ts).
    apply Rplus_le_le_0_compat; apply Rmult_le_pos; try lra. apply Rmult_le_pos; lra. }
    specialize (Q HMM N).
    assert (B1 : rho * (L - M) <= rho * y) by (apply Rmult_le_compat_l; lra).
    assert (B2 : Rabs (mu * y) <= Rabs mu * (P k * Sum (weight m) ts + M))
      by (rewrite Rabs_mult; apply Rmult_le_compat_l; auto).
    apply Rabs_bounds in B2.
    assert (Q' : rho * L - more <= p * y) by (rewrite Ep; unfold more; lra).
    specialize (Q Q').
    replace ((2 - w0) * ((1 - u A) * (1 - u A) ^ k) * (rho * Sum (weight m) ts)) with ((1 - u A) * (rho * L))
      by (unfold L; ring).
    lra.
Qed.
End Channel.
End Merge.

(** Only what is said of the keys in it counts. *)
Lemma sums_by_keys K sh A xk xk' v w0 lamw ts m y k r c : sums_by K sh A xk v w0 lamw ts m y k r c ->
  (forall t, In t ts -> xk (fst t) <= xk' (fst t)) -> sums_by K sh A xk' v w0 lamw ts m y k r c.
Proof.
  induction 1 as [j m e p y HT He Hp Hy|ts1 ts2 m y1 y2 y k1 r1 c1 k2 r2 c2 H1 IH1 H2 IH2 N|
    ts m y k r c m' z p y' H IH]; intros L.
  - apply sums_by_key; auto. assert (Q := L _ (or_introl eq_refl)). simpl in Q. lra.
  - apply (sums_by_add K sh A xk' v w0 lamw ts1 ts2 m y1 y2); auto; [apply IH1|apply IH2]; intros t I1; apply L;
      apply in_or_app; auto.
  - apply (sums_by_rescale K sh A xk' v w0 lamw ts m y k r c m' z p y'); auto. apply IH. intros t I1.
    apply (L (fst t, snd t + z)). apply (in_map (fun t => (fst t, snd t + z))). auto.
Qed.

(** Kernels of which no key's exponent errs by anything of its own. *)
Section Plain.
Variable K : Type.
Variable A : arith.
Hypothesis OK : sane A.
Definition plain := fun _ : K => xl A.
Lemma plain_off j : plain j <= xl A + off A.
Proof. assert (Q := s_off A OK). unfold plain. lra. Qed.
End Plain.
Notation sums K sh A := (sums_by K sh A (plain K A)).
Notation known K sh A := (known_by K sh A (plain K A)).
Definition known_gain K sh A OK := known_by_gain K sh A OK (plain K A) (plain_off K A OK).
Definition sums_key K sh A := sums_by_key K sh A (plain K A).
Definition sums_add K sh A := sums_by_add K sh A (plain K A).
Definition sums_rescale K sh A := sums_by_rescale K sh A (plain K A).
Definition sums_rescale_exp K sh A OK := sums_by_rescale_exp K sh A OK (plain K A).
Definition sums_normalise K sh A OK := sums_by_normalise K sh A OK (plain K A).
Definition sums_spec K sh A OK := sums_spec_by K sh A OK (plain K A) (plain_off K A OK).
Definition sums_error K sh A OK := sums_error_by K sh A OK (plain K A) (plain_off K A OK).
Definition sums_lower K sh A OK := sums_lower_by K sh A OK (plain K A) (plain_off K A OK).
