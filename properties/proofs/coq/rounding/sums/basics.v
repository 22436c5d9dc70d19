(** Finite sums over lists, roundings, the exponential. *)
From Coq Require Import Reals List Lra Lia Psatz Permutation.
Import ListNotations.
Open Scope R_scope.

Section Sums.
Context {A : Type}.
Fixpoint Sum (f : A -> R) (l : list A) : R :=
  match l with [] => 0 | x :: t => f x + Sum f t end.

Lemma Sum_app f l1 l2 : Sum f (l1 ++ l2) = Sum f l1 + Sum f l2.
Proof. induction l1; simpl; lra. Qed.
Lemma Sum_scal c f l : Sum (fun x => c * f x) l = c * Sum f l.
Proof. induction l; simpl; try rewrite IHl; lra. Qed.
Lemma Sum_plus f g l : Sum (fun x => f x + g x) l = Sum f l + Sum g l.
Proof. induction l; simpl; try rewrite IHl; lra. Qed.
Lemma Sum_minus f g l : Sum (fun x => f x - g x) l = Sum f l - Sum g l.
Proof. induction l; simpl; try rewrite IHl; lra. Qed.
Lemma Sum_ext f g l : (forall x, In x l -> f x = g x) -> Sum f l = Sum g l.
Proof. induction l; simpl; intros H; auto. rewrite H, IHl; auto. Qed.
Lemma Sum_le f g l : (forall x, In x l -> f x <= g x) -> Sum f l <= Sum g l.
Proof.
  induction l; simpl; intros H; [lra|]. assert (f a <= g a) by auto.
  assert (Sum f l <= Sum g l) by auto. lra.
Qed.
Lemma Sum_abs f l : Rabs (Sum f l) <= Sum (fun x => Rabs (f x)) l.
Proof.
  induction l; simpl; [rewrite Rabs_R0; lra|].
  eapply Rle_trans; [apply Rabs_triang|]. lra.
Qed.
Lemma Sum_nonneg f l : (forall x, In x l -> 0 <= f x) -> 0 <= Sum f l.
Proof. induction l; simpl; intros H; [lra|]. assert (0 <= f a) by auto. assert (0 <= Sum f l) by auto. lra. Qed.
Lemma Sum_pos f l : l <> [] -> (forall x, In x l -> 0 < f x) -> 0 < Sum f l.
Proof.
  destruct l; simpl; intros N H; [congruence|].
  assert (0 < f a) by auto. assert (0 <= Sum f l) by (apply Sum_nonneg; intros; left; auto). lra.
Qed.
Lemma Sum_In_le f l x : (forall y, In y l -> 0 <= f y) -> In x l -> f x <= Sum f l.
Proof.
  induction l; simpl; intros H I; [tauto|]. destruct I as [->|I].
  - assert (0 <= Sum f l) by (apply Sum_nonneg; auto). lra.
  - assert (0 <= f a) by auto. assert (f x <= Sum f l) by auto. lra.
Qed.
Lemma Sum_perm f l l' : Permutation l l' -> Sum f l = Sum f l'.
Proof. induction 1; simpl; lra. Qed.
Lemma Sum_const c l : Sum (fun _ => c) l = INR (length l) * c.
Proof. induction l; [simpl; lra|]. change (length (a :: l)) with (S (length l)). rewrite S_INR. simpl. lra. Qed.
End Sums.

Lemma Sum_map {A B} (g : A -> B) f l : Sum f (map g l) = Sum (fun x => f (g x)) l.
Proof. induction l; simpl; auto. rewrite IHl. auto. Qed.

(** ** Roundings: y is x up to a relative error u and an absolute error lam. Fused operations, rounding to nearest,
    truncation (with 2u), a division by reciprocal and product are all of this kind. *)
Definition near (u lam x y : R) := Rabs (y - x) <= u * Rabs x + lam.

Lemma times_ge1 x y : 1 <= x -> 1 <= y -> 1 <= x * y.
Proof. intros. replace 1 with (1 * 1) by lra. apply Rmult_le_compat; lra. Qed.
Lemma le_times x c : 0 <= x -> 1 <= c -> x <= c * x.
Proof. intros. replace x with (1 * x) at 1 by lra. apply Rmult_le_compat_r; auto. Qed.

Lemma Rabs_bounds x a : Rabs x <= a -> - a <= x <= a.
Proof. unfold Rabs. destruct (Rcase_abs x); lra. Qed.
Lemma Rabs_le_iff x a : - a <= x <= a -> Rabs x <= a.
Proof. unfold Rabs. destruct (Rcase_abs x); lra. Qed.

Lemma near_weaken u lam u' lam' x y : near u lam x y -> u <= u' -> lam <= lam' -> near u' lam' x y.
Proof.
  unfold near. intros H Hu Hl. assert (0 <= Rabs x) by apply Rabs_pos.
  assert (u * Rabs x <= u' * Rabs x) by (apply Rmult_le_compat_r; lra). lra.
Qed.

Lemma near_abs u lam x y : near u lam x y -> Rabs y <= (1 + u) * Rabs x + lam.
Proof.
  unfold near. intros H. replace y with ((y - x) + x) by lra.
  eapply Rle_trans; [apply Rabs_triang|]. lra.
Qed.

(** Two roundings in a row. *)
Lemma near_trans u1 l1 u2 l2 x y z : 0 <= u2 -> near u1 l1 x y -> near u2 l2 y z ->
  near ((1 + u1) * (1 + u2) - 1) (l1 * (1 + u2) + l2) x z.
Proof.
  intros P H1 H2. assert (Hy := near_abs _ _ _ _ H1). unfold near in *.
  replace (z - x) with ((z - y) + (y - x)) by lra.
  eapply Rle_trans; [apply Rabs_triang|].
  assert (u2 * Rabs y <= u2 * ((1 + u1) * Rabs x + l1)) by (apply Rmult_le_compat_l; lra). lra.
Qed.

(** [rounded_times u lam k x y]: y is x after k roundings. *)
Inductive rounded_times (u lam : R) : nat -> R -> R -> Prop :=
| rounded_not x : rounded_times u lam 0 x x
| rounded_once k x y z : rounded_times u lam k x y -> near u lam y z -> rounded_times u lam (S k) x z.
Lemma rounded_times_first u lam k x z : rounded_times u lam (S k) x z ->
  exists y, near u lam x y /\ rounded_times u lam k y z.
Proof.
  revert z. induction k as [|k IH]; intros z H; inversion H as [|k' x' y z' H1 H2]; subst.
  - inversion H1; subst. exists z. split; auto. constructor.
  - destruct (IH _ H1) as (w & W1 & W2). exists w. split; auto. apply (rounded_once _ _ _ _ _ _ W2 H2).
Qed.
Lemma rounded_times_near u lam k x y : 0 <= u -> 0 <= lam -> rounded_times u lam k x y ->
  near ((1 + u) ^ k - 1) (INR k * lam * (1 + u) ^ k) x y.
Proof.
  intros Hu Hl. induction 1 as [x|k x y z H1 IH H2].
  - unfold near. simpl. rewrite Rminus_eq_0, Rabs_R0. lra.
  - assert (Q := near_trans _ _ _ _ _ _ _ Hu IH H2). eapply near_weaken; [apply Q| |].
    + simpl. right. ring.
    + rewrite S_INR. simpl pow. assert (G : 1 <= (1 + u) ^ k) by (apply pow_R1_Rle; lra).
      assert (1 <= (1 + u) * (1 + u) ^ k) by (apply times_ge1; lra).
      assert (lam <= ((1 + u) * (1 + u) ^ k) * lam) by (apply le_times; auto). lra.
Qed.

(** ** The exponential. *)
Lemma exp_ge_1 x : 1 + x <= exp x.
Proof. destruct (Req_dec x 0) as [->|N]; [rewrite exp_0; lra|]. left. apply exp_ineq1; auto. Qed.
Lemma exp_mono x y : x <= y -> exp x <= exp y.
Proof. intros [H| ->]; [left; apply exp_increasing; auto|lra]. Qed.
Lemma exp_ge1 x : 0 <= x -> 1 <= exp x.
Proof. intros. rewrite <- exp_0. apply exp_mono; auto. Qed.
Lemma exp_le1 x : x <= 0 -> exp x <= 1.
Proof. intros. rewrite <- exp_0. apply exp_mono; auto. Qed.
Lemma exp_minus x y : exp (x - y) = exp x / exp y.
Proof. unfold Rminus, Rdiv. rewrite exp_plus, exp_Ropp. auto. Qed.
Lemma ln_le_minus1 x : 0 < x -> ln x <= x - 1.
Proof. intros H. assert (T := exp_ge_1 (ln x)). rewrite exp_ln in T; lra. Qed.

Lemma expm1_abs x a : Rabs x <= a -> Rabs (exp x - 1) <= exp a - 1.
Proof.
  intros H. apply Rabs_bounds in H. apply Rabs_le_iff.
  assert (exp x <= exp a) by (apply exp_mono; lra).
  assert (exp (- a) <= exp x) by (apply exp_mono; lra).
  assert (1 + a <= exp a) by apply exp_ge_1. assert (1 + - a <= exp (- a)) by apply exp_ge_1. lra.
Qed.

Lemma ln_near eps t : 0 <= eps < 1 -> - eps <= t <= eps -> Rabs (ln (1 + t)) <= eps / (1 - eps).
Proof.
  intros He Bt. assert (I : 0 < / (1 - eps)) by (apply Rinv_0_lt_compat; lra).
  assert (Hlow : eps <= eps / (1 - eps)).
  { apply Rmult_le_reg_r with (1 - eps); [lra|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra. nra. }
  apply Rabs_le_iff. split.
  - assert (N := ln_le_minus1 (/ (1 + t)) ltac:(apply Rinv_0_lt_compat; lra)).
    rewrite ln_Rinv in N by lra.
    assert (/ (1 + t) - 1 <= eps / (1 - eps)); [|lra].
    apply Rmult_le_reg_r with ((1 + t) * (1 - eps)); [nra|].
    replace ((/ (1 + t) - 1) * ((1 + t) * (1 - eps))) with (- t * (1 - eps)) by (field; lra).
    replace (eps / (1 - eps) * ((1 + t) * (1 - eps))) with (eps * (1 + t)) by (field; lra). nra.
  - assert (N := ln_le_minus1 (1 + t) ltac:(lra)). lra.
Qed.

(** A relative error of the value of exp is an absolute error of its exponent; underflow stays absolute. *)
Lemma exp_split eps lam x y : 0 <= eps < 1 -> 0 <= lam -> near eps lam (exp x) y ->
  exists z mu, y = exp (x + z) + mu /\ Rabs z <= eps / (1 - eps) /\ Rabs mu <= lam.
Proof.
  unfold near. intros He Hl H. assert (P := exp_pos x). rewrite (Rabs_pos_eq (exp x)) in H by lra.
  apply Rabs_bounds in H. set (e := exp x) in *.
  assert (D : exists d1 d2, y - e = d1 + d2 /\ - (eps * e) <= d1 <= eps * e /\ Rabs d2 <= lam).
  { destruct (Rle_dec (y - e) (eps * e)); [destruct (Rle_dec (- (eps * e)) (y - e))|].
    - exists (y - e), 0. rewrite Rabs_R0. lra.
    - exists (- (eps * e)), (y - e + eps * e). split; [lra|]. split; [nra|]. apply Rabs_le_iff. lra.
    - exists (eps * e), (y - e - eps * e). split; [lra|]. split; [nra|]. apply Rabs_le_iff. lra. }
  destruct D as (d1 & d2 & E & B & B2). set (t := d1 / e).
  assert (Ht : d1 = t * e) by (unfold t; field; lra).
  assert (Bt : - eps <= t <= eps) by (rewrite Ht in B; split; nra).
  exists (ln (1 + t)), d2. split; [|split; auto].
  - rewrite exp_plus, exp_ln by lra. fold e. rewrite Ht in E. lra.
  - assert (I : 0 < / (1 - eps)) by (apply Rinv_0_lt_compat; lra).
    assert (Hlow : eps <= eps / (1 - eps)).
    { apply Rmult_le_reg_r with (1 - eps); [lra|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra. nra. }
    apply Rabs_le_iff. split.
    + assert (N := ln_le_minus1 (/ (1 + t)) ltac:(apply Rinv_0_lt_compat; lra)).
      rewrite ln_Rinv in N by lra.
      assert (/ (1 + t) - 1 <= eps / (1 - eps)); [|lra].
      apply Rmult_le_reg_r with ((1 + t) * (1 - eps)); [nra|].
      replace ((/ (1 + t) - 1) * ((1 + t) * (1 - eps))) with (- t * (1 - eps)) by (field; lra).
      replace (eps / (1 - eps) * ((1 + t) * (1 - eps))) with (eps * (1 + t)) by (field; lra). nra.
    + assert (N := ln_le_minus1 (1 + t) ltac:(lra)). lra.
Qed.

(** ** Underflow by rounding or by flushing: no more is lost by it than there is. *)
Definition rounded (u lam x y : R) := Rabs (y - x) <= u * Rabs x + Rmin lam (Rabs x).

Lemma rounded_near u lam x y : rounded u lam x y -> near u lam x y.
Proof. unfold rounded, near. intros H. assert (Q := Rmin_l lam (Rabs x)). lra. Qed.

(** Where 0 is a candidate for the result, as it is to nearest, near is enough. *)
Lemma near_rounded u lam x y : 0 <= u -> near u lam x y -> Rabs (y - x) <= Rabs x -> rounded u lam x y.
Proof.
  unfold near, rounded. intros U H C. assert (0 <= u * Rabs x) by (apply Rmult_le_pos; auto using Rabs_pos).
  unfold Rmin. destruct (Rle_dec _ _); lra.
Qed.

(** What is flushed to 0 is no more than lam: that is one of those values, for any weight too. *)
Lemma flushed u lam x : 0 <= u -> Rabs x <= lam -> rounded u lam x 0.
Proof.
  intros U H. assert (0 <= u * Rabs x) by (apply Rmult_le_pos; auto using Rabs_pos).
  apply near_rounded; auto; [unfold near|]; rewrite Rminus_0_l, Rabs_Ropp; lra.
Qed.
Lemma underflow_to_zero eps lam x : 0 <= eps -> exp x <= lam -> rounded eps lam (exp x) 0.
Proof. intros E H. apply flushed; auto. rewrite Rabs_pos_eq; auto. left. apply exp_pos. Qed.

Lemma Rle_min_compat a b c d : a <= c -> b <= d -> Rmin a b <= Rmin c d.
Proof. intros. apply Rmin_glb; [eapply Rle_trans; [apply Rmin_l|auto] | eapply Rle_trans; [apply Rmin_r|auto]]. Qed.
(** Sums of minima. *)
Lemma Rmin_plus_le a b c d x y : a + c <= x -> b + d <= y -> Rmin a b + Rmin c d <= Rmin x y.
Proof.
  intros. assert (A1 := Rmin_l a b). assert (A2 := Rmin_r a b). assert (A3 := Rmin_l c d). assert (A4 := Rmin_r c d).
  apply Rmin_glb; lra.
Qed.
Lemma Rmin_split a x y : 0 <= a -> 0 <= x -> 0 <= y -> Rmin a (x + y) <= Rmin a x + Rmin a y.
Proof. intros. unfold Rmin. destruct (Rle_dec a (x + y)), (Rle_dec a x), (Rle_dec a y); lra. Qed.
Lemma Rmin_pos a b : 0 <= a -> 0 <= b -> 0 <= Rmin a b.
Proof. intros. apply Rmin_glb; auto. Qed.
