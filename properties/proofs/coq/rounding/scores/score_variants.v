(** Ways to form a score: q scaled first, results kept in narrower formats, the bias converted, before the scale or as
    the first term of the sum, scores that are exponents of 2, subnormal numbers read as 0. *)
From Coq Require Import Reals List Lra Lia Psatz Permutation.
From Attest.Rounding Require Import basics scores.
Import ListNotations.
Open Scope R_scope.

(** (+) of error-bounds.md: two relative errors in a row. *)
Definition join a b := a + b + a * b.

Lemma times_le x y z : 0 <= x -> y <= z -> x * y <= x * z.
Proof. intros. apply Rmult_le_compat_l; auto. Qed.

(** What was off by e before it is rounded: error-bounds.md 1.7.6, a product that is stored. *)
Lemma rounded_again u lam e x xh y : 0 <= u -> Rabs (xh - x) <= e -> near u lam xh y ->
  Rabs (y - x) <= e + u * (Rabs x + e) + lam.
Proof.
  intros P H N. unfold near in N. replace (y - x) with ((y - xh) + (xh - x)) by ring.
  assert (A : Rabs xh <= Rabs x + e).
  { replace xh with (x + (xh - x)) by ring. eapply Rle_trans; [apply Rabs_triang|]. lra. }
  assert (B := times_le u _ _ P A). eapply Rle_trans; [apply Rabs_triang|]. lra.
Qed.

(** The same number in other units. *)
Lemma near_in_units u lam L x y : 0 < L -> near u lam x y -> near u (lam / L) (x / L) (y / L).
Proof.
  unfold near, Rdiv. intros P H. assert (I : 0 < / L) by (apply Rinv_0_lt_compat; auto).
  replace (y * / L - x * / L) with ((y - x) * / L) by ring. rewrite !Rabs_mult, (Rabs_pos_eq (/ L)) by lra.
  assert (Rabs (y - x) * / L <= (u * Rabs x + lam) * / L) by (apply Rmult_le_compat_r; lra). lra.
Qed.

Lemma one_plus d th : Rabs d <= th -> Rabs (1 + d) <= 1 + th.
Proof. intros. eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_R1. lra. Qed.

(** ** Operands: q times a constant c0 (1 where q is not scaled first), stored, and k, subnormal ones read as 0. *)
Section Operands.
Variable C : Type.
Variables q k qh kh : C -> R.
Variables c0 uq lq lk : R.
Hypothesis Huq : 0 <= uq.
Hypothesis Hlq : 0 <= lq.
Hypothesis Hq : forall c, near uq lq (c0 * q c) (qh c).
Hypothesis Hk : forall c, Rabs (kh c - k c) <= lk.
Hypothesis Hkk : forall c, Rabs (kh c) <= Rabs (k c).
Variable cs : list C.
Definition product := Sum (fun c => q c * k c) cs.
Definition products := Sum (fun c => Rabs (q c * k c)) cs.  (* X_j *)
Definition q1 := Sum (fun c => Rabs (q c)) cs.              (* |q|_1 *)
Definition k1 := Sum (fun c => Rabs (k c)) cs.              (* |k_j|_1 *)

Lemma operand_sizes : Sum (fun c => Rabs (qh c * kh c)) cs <= (1 + uq) * Rabs c0 * products + lq * k1.
Proof.
  unfold products, k1. rewrite <- !Sum_scal, <- Sum_plus. apply Sum_le. intros c _. rewrite !Rabs_mult.
  assert (A := near_abs _ _ _ _ (Hq c)). rewrite Rabs_mult in A.
  assert (Rabs (qh c) * Rabs (kh c) <= ((1 + uq) * (Rabs c0 * Rabs (q c)) + lq) * Rabs (k c))
    by (apply Rmult_le_compat; auto using Rabs_pos). lra.
Qed.

Lemma operand_errors : Rabs (Sum (fun c => qh c * kh c) cs - c0 * product) <=
  uq * Rabs c0 * products + lq * k1 + lk * Rabs c0 * q1.
Proof.
  unfold product, products, k1, q1. rewrite <- !Sum_scal, <- Sum_minus, <- !Sum_plus.
  eapply Rle_trans; [apply Sum_abs|]. apply Sum_le. intros c _.
  replace (qh c * kh c - c0 * (q c * k c)) with ((qh c - c0 * q c) * kh c + c0 * q c * (kh c - k c)) by ring.
  eapply Rle_trans; [apply Rabs_triang|]. assert (N := Hq c). unfold near in N. rewrite !Rabs_mult in *.
  assert (Rabs (qh c - c0 * q c) * Rabs (kh c) <= (uq * (Rabs c0 * Rabs (q c)) + lq) * Rabs (k c))
    by (apply Rmult_le_compat; auto using Rabs_pos).
  assert (Rabs c0 * Rabs (q c) * Rabs (kh c - k c) <= Rabs c0 * Rabs (q c) * lk)
    by (apply times_le; auto; apply Rmult_le_pos; apply Rabs_pos). lra.
Qed.

(** The sum may begin at something: [starts] is empty or what the bias has become. n_s is the number of terms, gs the
    roundings of the sum with that of the operands. *)
Variables u lam : R.
Hypothesis Hu : 0 <= u.
Hypothesis Hlam : 0 <= lam.
Variable starts : list R.
Definition n_s := (length starts + length cs)%nat.
Definition gs0 := (1 + u) ^ n_s - 1.
Definition gs := join gs0 uq.
Definition lost_products := 2 * INR n_s * lam + lq * k1 + lk * Rabs c0 * q1.
Definition start := Sum (fun x => x) starts.
Definition start_size := Sum Rabs starts.

Lemma products_pos : 0 <= products.
Proof. apply Sum_nonneg. intros. apply Rabs_pos. Qed.
Lemma gs0_pos : 0 <= gs0.
Proof. unfold gs0. assert (Q := scores.pow_ge1 u Hu n_s). lra. Qed.
Lemma gs_pos : 0 <= gs.
Proof. assert (Q := gs0_pos). unfold gs, join. assert (0 <= gs0 * uq) by (apply Rmult_le_pos; auto). lra. Qed.
Lemma lost_products_pos : 0 <= lk -> 0 <= lost_products.
Proof.
  intros Hl. unfold lost_products, k1, q1. assert (I := pos_INR n_s).
  assert (0 <= Sum (fun c => Rabs (k c)) cs) by (apply Sum_nonneg; intros; apply Rabs_pos).
  assert (0 <= Sum (fun c => Rabs (q c)) cs) by (apply Sum_nonneg; intros; apply Rabs_pos).
  assert (Cp := Rabs_pos c0). repeat apply Rplus_le_le_0_compat; repeat apply Rmult_le_pos; lra.
Qed.

(** Any order, fused or not, of what the operands have become. *)
Theorem product_of_operands l y n c : 0 <= lk ->
  summed u lam l y n c -> Permutation l (starts ++ map (fun c => qh c * kh c) cs) ->
  Rabs (y - (start + c0 * product)) <=
    gs * (Rabs c0 * products) + gs0 * start_size + (1 + gs) * lost_products.
Proof.
  intros Hlk H Hp. apply (dot_error u lam Hu Hlam) in H.
  rewrite (Permutation_length Hp), !(fun f => Sum_perm f _ _ Hp), app_length, map_length, !Sum_app, !Sum_map in H.
  fold n_s start start_size in H.
  assert (A := operand_sizes). assert (E := operand_errors). assert (Lp := lost_products_pos Hlk).
  assert (G := gs0_pos). assert (Gu : 0 <= gs0 * uq) by (apply Rmult_le_pos; auto).
  unfold gs, join, lost_products in *. replace ((1 + u) ^ n_s) with (1 + gs0) in H by (unfold gs0; ring).
  set (g := gs0) in *. set (S1 := Sum (fun c => qh c * kh c) cs) in *.
  set (A1 := Sum (fun c => Rabs (qh c * kh c)) cs) in *. set (n2 := 2 * INR n_s * lam) in *.
  set (kk := lq * k1) in *. rewrite Rmult_assoc in A. rewrite Rmult_assoc in E. set (CX := Rabs c0 * products) in *.
  set (qq := lk * Rabs c0 * q1) in *. set (st := start_size) in *.
  assert (qp : 0 <= qq).
  { unfold qq, q1. apply Rmult_le_pos; [apply Rmult_le_pos; auto using Rabs_pos|].
    apply Sum_nonneg. intros. apply Rabs_pos. }
  replace (1 + g - 1) with g in H by ring.
  replace (y - (start + c0 * product)) with ((y - (start + S1)) + (S1 - c0 * product)) by ring.
  eapply Rle_trans; [apply Rabs_triang|].
  assert (T1 := times_le g _ _ G A).
  assert (T3 : 0 <= g * uq * (n2 + kk + qq)) by (apply Rmult_le_pos; auto).
  assert (T4 : 0 <= uq * (n2 + kk + qq)) by (apply Rmult_le_pos; auto).
  assert (T5 : 0 <= g * qq) by (apply Rmult_le_pos; auto). lra.
Qed.
End Operands.

(** A number that is read as 0 where it is below lam_in. *)
Definition reads (lam_in x y : R) := Rabs (y - x) <= lam_in /\ Rabs y <= Rabs x.
Lemma reads_itself x : reads 0 x x.
Proof. split; [rewrite Rminus_eq_0, Rabs_R0|]; lra. Qed.
Lemma reads_zero lam_in x : Rabs x <= lam_in -> reads lam_in x 0.
Proof. intros. unfold reads. rewrite Rminus_0_l, Rabs_Ropp, Rabs_R0. split; auto. apply Rabs_pos. Qed.

(** q read, multiplied by the scale and rounded to the format that keeps it. *)
Lemma reads_then_scaled uq lq lam_in c0 q qr qh : 0 <= uq -> reads lam_in q qr -> near uq lq (c0 * qr) qh ->
  near uq (lq + Rabs c0 * lam_in) (c0 * q) qh.
Proof.
  intros P [R1 R2] N. unfold near in *. replace (qh - c0 * q) with ((qh - c0 * qr) + c0 * (qr - q)) by ring.
  eapply Rle_trans; [apply Rabs_triang|]. rewrite !Rabs_mult in *. assert (Cp := Rabs_pos c0).
  assert (Rabs c0 * Rabs (qr - q) <= Rabs c0 * lam_in) by (apply times_le; auto).
  assert (uq * (Rabs c0 * Rabs qr) <= uq * (Rabs c0 * Rabs q)) by (apply times_le; auto; apply times_le; auto). lra.
Qed.

(** ** From the product to the score. *)
Section Score.
(** d is what is wrong with the scale, th_tau at most; thS the roundings of the scaled product, thB those after the
    bias; u_bc what the bias itself is rounded by. Each may be several roundings in a row ([near_trans]): of the
    operation and of storing what comes of it. *)
Variables tau d th_tau thS lamS thB lamB u_bc lam_bc : R.
Hypothesis Htau : 0 < tau.
Hypothesis HS : 0 <= thS.
Hypothesis HB : 0 <= thB.
Hypothesis HlB : 0 <= lamB.
Hypothesis Hbc : 0 <= u_bc.
Hypothesis Hd : Rabs d <= th_tau.
Variables x b t s bh : R.
Hypothesis Et : t = tau * x.
Hypothesis Hb : near u_bc lam_bc b bh.

Lemma th_tau_pos : 0 <= th_tau.
Proof. eapply Rle_trans; [apply Rabs_pos|apply Hd]. Qed.
Lemma bias_error : Rabs (bh - b) <= u_bc * Rabs b + lam_bc.
Proof. apply Hb. Qed.

(** The product with the scale in it is off by (1 + th_tau) te: how it came about does not matter. *)
Lemma scaled_then_biased y te th sh : s = t + b ->
  Rabs (y - (1 + d) * t) <= (1 + th_tau) * te -> near thS lamS y th -> near thB lamB (th + bh) sh ->
  Rabs (sh - (s + d * t)) <=
    (1 + thB) * ((1 + th_tau) * ((1 + thS) * te + thS * Rabs t) + lamS + (u_bc * Rabs b + lam_bc)) +
    thB * (Rabs s + th_tau * Rabs t) + lamB.
Proof.
  intros Es Hy N1 N2. assert (Tp := th_tau_pos). assert (D1 := one_plus _ _ Hd).
  assert (R1 := rounded_again _ _ _ _ _ _ HS Hy N1). rewrite Rabs_mult in R1.
  assert (A1 : Rabs (1 + d) * Rabs t <= (1 + th_tau) * Rabs t) by (apply Rmult_le_compat_r; auto using Rabs_pos).
  assert (A2 := times_le thS _ _ HS A1).
  assert (R2 : Rabs (th - (1 + d) * t) <= (1 + th_tau) * ((1 + thS) * te + thS * Rabs t) + lamS) by lra.
  set (B1 := (1 + th_tau) * ((1 + thS) * te + thS * Rabs t) + lamS) in *. clearbody B1.
  assert (R3 : Rabs (th + bh - (s + d * t)) <= B1 + (u_bc * Rabs b + lam_bc)).
  { replace (th + bh - (s + d * t)) with ((th - (1 + d) * t) + (bh - b)) by (rewrite Es; ring).
    eapply Rle_trans; [apply Rabs_triang|]. assert (Q := bias_error). lra. }
  assert (R4 := rounded_again _ _ _ _ _ _ HB R3 N2).
  assert (A3 : Rabs (s + d * t) <= Rabs s + th_tau * Rabs t).
  { eapply Rle_trans; [apply Rabs_triang|]. rewrite (Rabs_mult d).
    assert (Rabs d * Rabs t <= th_tau * Rabs t) by (apply Rmult_le_compat_r; auto using Rabs_pos). lra. }
  assert (A4 := times_le thB _ _ HB A3). lra.
Qed.

Lemma scaled e1 xh : Rabs (xh - x) <= e1 -> Rabs (tau * (1 + d) * xh - (1 + d) * t) <= (1 + th_tau) * (tau * e1).
Proof.
  intros H. replace (tau * (1 + d) * xh - (1 + d) * t) with ((1 + d) * (tau * (xh - x))) by (rewrite Et; ring).
  rewrite !Rabs_mult, (Rabs_pos_eq tau) by lra. apply Rmult_le_compat; auto using Rabs_pos, one_plus.
  - apply Rmult_le_pos; auto using Rabs_pos; lra.
  - apply times_le; lra.
Qed.

(** Post-scale, as [score_error], with a product that may have been stored and a bias that may have been converted. *)
Lemma score_after_scale u_x lam_x e1 xh xs th sh : 0 <= u_x -> s = t + b ->
  Rabs (xh - x) <= e1 -> near u_x lam_x xh xs ->
  near thS lamS (tau * (1 + d) * xs) th -> near thB lamB (th + bh) sh ->
  Rabs (sh - (s + d * t)) <=
    (1 + thB) * ((1 + th_tau) * ((1 + thS) * (tau * (e1 + u_x * (Rabs x + e1) + lam_x)) + thS * Rabs t) + lamS +
                 (u_bc * Rabs b + lam_bc)) +
    thB * (Rabs s + th_tau * Rabs t) + lamB.
Proof.
  intros Px Es H1 H2 N1 N2. apply (scaled_then_biased (tau * (1 + d) * xs) _ th); auto. apply scaled.
  apply rounded_again with xh; auto.
Qed.

(** The bias before the scale: what is wrong with the scale multiplies the whole score. *)
Lemma score_before_scale e1 xh z sh : s = tau * (x + b) ->
  Rabs (xh - x) <= e1 -> near thB lamB (xh + bh) z -> near thS lamS (tau * (1 + d) * z) sh ->
  let th := thB + thS + thB * thS in
  Rabs (sh - (s + d * s)) <=
    (1 + th_tau) * ((1 + th) * (tau * (e1 + (u_bc * Rabs b + lam_bc) + lamB)) + th * Rabs s) + lamS.
Proof.
  intros Es H1 N1 N2 th. assert (Tp := th_tau_pos). assert (D1 := one_plus _ _ Hd).
  set (e := e1 + (u_bc * Rabs b + lam_bc)). assert (Q := bias_error).
  assert (R1 : Rabs (xh + bh - (x + b)) <= e).
  { replace (xh + bh - (x + b)) with ((xh - x) + (bh - b)) by ring. eapply Rle_trans; [apply Rabs_triang|].
    unfold e. lra. }
  assert (R2 := rounded_again _ _ _ _ _ _ HB R1 N1).
  assert (Sx : tau * Rabs (x + b) = Rabs s) by (rewrite Es, Rabs_mult, (Rabs_pos_eq tau); lra).
  assert (Ab := Rabs_pos (z - (x + b))).
  assert (R3 : Rabs (tau * (1 + d) * z - (1 + d) * s) <= (1 + th_tau) * ((1 + thB) * (tau * e) + thB * Rabs s + tau *
    lamB)).
  { replace (tau * (1 + d) * z - (1 + d) * s) with ((1 + d) * (tau * (z - (x + b)))) by (rewrite Es; ring).
    rewrite !Rabs_mult, (Rabs_pos_eq tau) by lra. apply Rmult_le_compat; auto using Rabs_pos.
    - apply Rmult_le_pos; lra.
    - assert (tau * Rabs (z - (x + b)) <= tau * (e + thB * (Rabs (x + b) + e) + lamB)) by (apply times_le; lra).
      rewrite <- Sx. lra. }
  assert (R4 := rounded_again _ _ _ _ _ _ HS R3 N2). rewrite Rabs_mult in R4.
  assert (A1 : Rabs (1 + d) * Rabs s <= (1 + th_tau) * Rabs s) by (apply Rmult_le_compat_r; auto using Rabs_pos).
  assert (A2 := times_le thS _ _ HS A1). replace (sh - (s + d * s)) with (sh - (1 + d) * s) by ring.
  eapply Rle_trans; [apply R4|]. fold e. unfold th.
  assert (Ep : 0 <= tau * e) by (apply Rmult_le_pos; [lra|]; eapply Rle_trans; [apply Rabs_pos|apply R1]).
  assert (Lp : 0 <= tau * lamB) by (apply Rmult_le_pos; lra). assert (Sp := Rabs_pos s).
  set (E := tau * e) in *. set (Lb := tau * lamB) in *.
  replace (tau * (e + lamB)) with (E + Lb) by (unfold E, Lb; ring). clearbody E Lb.
  assert (L1 : (1 + thS) * Lb <= (1 + thB) * ((1 + thS) * Lb)).
  { assert (0 <= (1 + thS) * Lb) by (apply Rmult_le_pos; lra). nra. }
  assert (L2 := times_le (1 + th_tau) _ _ ltac:(lra) L1). set (a := Rabs (tau * (1 + d) * z - (1 + d) * s)) in *. lra.
Qed.

(** 1.7.30: the sum begins at the bias divided by the scale, that is multiplied by a constant inv. *)
Lemma score_with_bias_in_sum inv beta g e0 z th sh : s = t + b -> 0 <= g -> 0 <= e0 ->
  Rabs (inv * tau - 1) <= beta ->
  Rabs (z - (bh * inv + x)) <= e0 + g * Rabs (bh * inv) ->
  near thS lamS (tau * (1 + d) * z) th -> near thB lamB th sh ->
  Rabs (sh - (s + d * t)) <=
    (1 + thB) * ((1 + th_tau) * ((1 + thS) * (tau * e0 + (1 + g) * (1 + beta) * lam_bc) + thS * Rabs t) + lamS +
                 ((1 + th_tau) * (1 + thS) * join (join g beta) u_bc + th_tau + (1 + th_tau) * thS) * Rabs b) +
    thB * (Rabs s + th_tau * Rabs t) + lamB.
Proof.
  intros Es Hg He Hi Hz N1 N2. assert (Tp := th_tau_pos). assert (D1 := one_plus _ _ Hd). assert (Q := bias_error).
  assert (Bt : 0 <= beta) by (eapply Rle_trans; [apply Rabs_pos|apply Hi]).
  assert (I1 : Rabs (inv * tau) <= 1 + beta).
  { replace (inv * tau) with (1 + (inv * tau - 1)) by ring. apply one_plus; auto. }
  assert (Ab : Rabs bh <= (1 + u_bc) * Rabs b + lam_bc) by (apply near_abs; auto).
  set (w := join (join g beta) u_bc). set (L := (1 + g) * (1 + beta) * lam_bc).
  assert (R1 : tau * Rabs (z - (x + b / tau)) <= tau * e0 + L + w * Rabs b).
  { rewrite <- (Rabs_pos_eq tau) at 1 by lra. rewrite <- Rabs_mult.
    replace (tau * (z - (x + b / tau))) with (tau * (z - (bh * inv + x)) + ((inv * tau) * (bh - b) + (inv * tau - 1) *
      b))
      by (field; lra).
    eapply Rle_trans; [apply Rabs_triang|]. rewrite (Rabs_mult tau), (Rabs_pos_eq tau) by lra.
    assert (T1 : tau * Rabs (z - (bh * inv + x)) <= tau * (e0 + g * Rabs (bh * inv))) by (apply times_le; lra).
    assert (T2 : tau * Rabs (bh * inv) <= (1 + beta) * ((1 + u_bc) * Rabs b + lam_bc)).
    { replace (tau * Rabs (bh * inv)) with (Rabs (inv * tau) * Rabs bh)
        by (rewrite !Rabs_mult, (Rabs_pos_eq tau) by lra; ring).
      apply Rmult_le_compat; auto using Rabs_pos. }
    assert (T3 := times_le g _ _ Hg T2).
    assert (T4 : Rabs ((inv * tau) * (bh - b) + (inv * tau - 1) * b) <= (1 + beta) * (u_bc * Rabs b + lam_bc) + beta *
      Rabs b).
    { eapply Rle_trans; [apply Rabs_triang|]. rewrite !(Rabs_mult _ (bh - b)), (Rabs_mult _ b).
      apply Rplus_le_compat; [apply Rmult_le_compat; auto using Rabs_pos|].
      apply Rmult_le_compat_r; auto using Rabs_pos. }
    unfold w, L, join. lra. }
  assert (R2 : Rabs (tau * (1 + d) * z - (1 + d) * s) <= (1 + th_tau) * (tau * e0 + L + w * Rabs b)).
  { replace (tau * (1 + d) * z - (1 + d) * s) with ((1 + d) * (tau * (z - (x + b / tau))))
      by (rewrite Es, Et; field; lra).
    rewrite Rabs_mult. rewrite (Rabs_mult tau), (Rabs_pos_eq tau) by lra.
    apply Rmult_le_compat; auto using Rabs_pos. apply Rmult_le_pos; [lra|apply Rabs_pos]. }
  assert (R3 := rounded_again _ _ _ _ _ _ HS R2 N1). rewrite Rabs_mult in R3.
  assert (St : Rabs s <= Rabs t + Rabs b) by (rewrite Es; apply Rabs_triang).
  assert (A1 : Rabs (1 + d) * Rabs s <= (1 + th_tau) * (Rabs t + Rabs b))
    by (apply Rmult_le_compat; auto using Rabs_pos).
  assert (A2 := times_le thS _ _ HS A1).
  set (B1 := (1 + th_tau) * ((1 + thS) * (tau * e0 + L) + thS * Rabs t) + lamS +
    ((1 + th_tau) * (1 + thS) * w + th_tau + (1 + th_tau) * thS) * Rabs b).
  assert (R4 : Rabs (th - (s + d * t)) <= B1).
  { replace (th - (s + d * t)) with ((th - (1 + d) * s) + d * b) by (rewrite Es; ring).
    eapply Rle_trans; [apply Rabs_triang|]. rewrite (Rabs_mult d).
    assert (Rabs d * Rabs b <= th_tau * Rabs b) by (apply Rmult_le_compat_r; auto using Rabs_pos).
    unfold B1. lra. }
  assert (R5 := rounded_again _ _ _ _ _ _ HB R4 N2).
  assert (A3 : Rabs (s + d * t) <= Rabs s + th_tau * Rabs t).
  { eapply Rle_trans; [apply Rabs_triang|]. rewrite (Rabs_mult d).
    assert (Rabs d * Rabs t <= th_tau * Rabs t) by (apply Rmult_le_compat_r; auto using Rabs_pos). lra. }
  assert (A4 := times_le thB _ _ HB A3). clearbody B1. lra.
Qed.
End Score.

(** That constant may be the rounded reciprocal of the scale as the kernel has it. *)
Lemma reciprocal_of_scale tau d th_tau u e : 0 < tau -> Rabs d <= th_tau -> th_tau < 1 -> Rabs e <= u ->
  Rabs (/ (tau * (1 + d)) * (1 + e) * tau - 1) <= (u + th_tau) / (1 - th_tau).
Proof.
  intros Ht Hd H1 He. assert (Bd := Rabs_bounds _ _ Hd). assert (Be := Rabs_bounds _ _ He).
  replace (/ (tau * (1 + d)) * (1 + e) * tau - 1) with ((e - d) * / (1 + d)) by (field; lra).
  rewrite Rabs_mult. apply Rmult_le_compat; auto using Rabs_pos.
  - apply Rabs_le_iff. lra.
  - rewrite Rabs_pos_eq by (left; apply Rinv_0_lt_compat; lra). apply Rinv_le_contravar; lra.
Qed.

(** ** What is wrong with constants by the same factor for all keys: only differences from a mean count. With scores
    that are exponents of 2, L = (1 + dl) log2(e) is what the kernel multiplies by, sh / L is a score as above and dl is
    left ([near_in_units] takes the hypotheses of the theorems above to those units). gbar, sbar: any numbers, the
    weighted means say. With both 0 this is ap_j of error-bounds.md 1.1, no shift at all. *)
Theorem constants_are_common s g sn a d dl th_tau th_l2e gbar sbar :
  Rabs (sn - (s + d * g)) <= a -> Rabs d <= th_tau -> Rabs dl <= th_l2e ->
  Rabs ((1 + dl) * sn - (s + (d * (1 + dl) * gbar + dl * sbar))) <=
    a * (1 + th_l2e) + th_tau * (1 + th_l2e) * Rabs (g - gbar) + th_l2e * Rabs (s - sbar).
Proof.
  intros Ha Hd Hl. assert (D1 := one_plus _ _ Hl). assert (Dp := Rabs_pos d). assert (Lp := Rabs_pos dl).
  replace ((1 + dl) * sn - (s + (d * (1 + dl) * gbar + dl * sbar)))
    with ((1 + dl) * (sn - (s + d * g)) + d * (1 + dl) * (g - gbar) + dl * (s - sbar)) by ring.
  eapply Rle_trans; [apply Rabs_triang|]. apply Rplus_le_compat.
  - eapply Rle_trans; [apply Rabs_triang|]. rewrite !Rabs_mult. apply Rplus_le_compat.
    + rewrite Rmult_comm. apply Rmult_le_compat; auto using Rabs_pos.
    + apply Rmult_le_compat_r; [apply Rabs_pos|]. apply Rmult_le_compat; auto using Rabs_pos.
  - rewrite Rabs_mult. apply Rmult_le_compat_r; auto using Rabs_pos.
Qed.

(** 1.7.4, q multiplied by the scale and kept in a format of its own: what is lost there is not multiplied by the scale.
    [te]: as te in [scaled_then_biased]. *)
Section ScaledQ.
Variable C : Type.
Variables q k qr qh kh : C -> R.
Variables tau d th_tau uq lam_q lam_in u lam : R.
Hypothesis Htau : 0 < tau.
Hypothesis Hd : Rabs d <= th_tau.
Hypothesis Huq : 0 <= uq.
Hypothesis Hlq : 0 <= lam_q.
Hypothesis Hin : 0 <= lam_in.
Hypothesis Hu : 0 <= u.
Hypothesis Hlam : 0 <= lam.
Hypothesis Hqr : forall c, reads lam_in (q c) (qr c).
Hypothesis Hqh : forall c, near uq lam_q (tau * (1 + d) * qr c) (qh c).
Hypothesis Hkh : forall c, reads lam_in (k c) (kh c).
Variable cs : list C.
Variable starts : list R.
Local Notation gs := (gs C uq cs u starts).
Definition te := tau * (gs * products C q k cs) +
  (1 + gs) * (2 * INR (n_s C cs starts) * lam + (lam_q + tau * lam_in) * k1 C k cs + tau * lam_in * q1 C q cs).

Lemma scaled_q_product l y n c :
  summed u lam l y n c -> Permutation l (starts ++ map (fun c => qh c * kh c) cs) ->
  Rabs (y - (start starts + (1 + d) * (tau * product C q k cs))) <=
    (1 + th_tau) * te + gs0 C cs u starts * start_size starts.
Proof.
  intros H Hp. set (c0 := tau * (1 + d)).
  assert (T0 : 0 <= th_tau) by (eapply Rle_trans; [apply Rabs_pos|apply Hd]).
  assert (C0 : Rabs c0 <= (1 + th_tau) * tau).
  { unfold c0. rewrite Rabs_mult, (Rabs_pos_eq tau), Rmult_comm by lra. apply Rmult_le_compat_r; [lra|].
    apply one_plus; auto. }
  assert (Cp := Rabs_pos c0). assert (Lq : 0 <= lam_q + Rabs c0 * lam_in) by
    (assert (0 <= Rabs c0 * lam_in) by (apply Rmult_le_pos; auto); lra).
  assert (Q := product_of_operands C q k qh kh c0 uq (lam_q + Rabs c0 * lam_in) lam_in Huq Lq
    (fun c => reads_then_scaled _ _ _ _ _ _ _ Huq (Hqr c) (Hqh c)) (fun c => proj1 (Hkh c)) (fun c => proj2 (Hkh c))
    cs u lam Hu Hlam starts l y n c Hin H Hp).
  replace (c0 * product C q k cs) with ((1 + d) * (tau * product C q k cs)) in Q by (unfold c0; ring).
  eapply Rle_trans; [apply Q|]. clear Q. unfold te, lost_products.
  assert (G := gs_pos C uq Huq cs u Hu starts). assert (X0 := products_pos C q k cs).
  set (X := products C q k cs) in *. set (G1 := gs) in *. set (N2 := 2 * INR (n_s C cs starts) * lam).
  assert (N0 : 0 <= N2) by (unfold N2; assert (I := pos_INR (n_s C cs starts)); repeat apply Rmult_le_pos; lra).
  assert (K0 : 0 <= k1 C k cs) by (apply Sum_nonneg; intros; apply Rabs_pos).
  assert (Q0 : 0 <= q1 C q cs) by (apply Sum_nonneg; intros; apply Rabs_pos).
  set (K1 := k1 C k cs) in *. set (Q1 := q1 C q cs) in *.
  assert (A1 : G1 * (Rabs c0 * X) <= (1 + th_tau) * (tau * (G1 * X))).
  { assert (Rabs c0 * (G1 * X) <= (1 + th_tau) * tau * (G1 * X)) by (apply Rmult_le_compat_r; auto;
      apply Rmult_le_pos; auto). lra. }
  assert (A2 : N2 + (lam_q + Rabs c0 * lam_in) * K1 + lam_in * Rabs c0 * Q1 <=
    (1 + th_tau) * (N2 + (lam_q + tau * lam_in) * K1 + tau * lam_in * Q1)).
  { assert (Rabs c0 * (lam_in * K1) <= (1 + th_tau) * tau * (lam_in * K1))
      by (apply Rmult_le_compat_r; auto; apply Rmult_le_pos; auto).
    assert (Rabs c0 * (lam_in * Q1) <= (1 + th_tau) * tau * (lam_in * Q1))
      by (apply Rmult_le_compat_r; auto; apply Rmult_le_pos; auto).
    assert (0 <= th_tau * N2) by (apply Rmult_le_pos; auto).
    assert (0 <= th_tau * (lam_q * K1)) by (repeat apply Rmult_le_pos; auto). lra. }
  assert (A3 := times_le (1 + G1) _ _ ltac:(lra) A2). lra.
Qed.
End ScaledQ.
