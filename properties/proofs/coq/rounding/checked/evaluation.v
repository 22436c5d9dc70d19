(** The tolerance of divided_first.v, so of documented.v too, as a number: an evaluator in interval arithmetic, with its
    proof. *)
From Coq Require Import Reals List Lra Lia Psatz Permutation ZArith.
From Interval Require Import Interval.Interval.
From Attest.Rounding Require Import basics merge bound documented divided_first any_reference intervals.
Import ListNotations.
Open Scope R_scope.

Lemma Forall2_map_left {S S' T} (P : S -> T -> Prop) (Q : S' -> T -> Prop) (f : S -> S') l m :
  Forall2 P l m -> (forall i x, P i x -> Q (f i) x) -> Forall2 Q (map f l) m.
Proof. intros H F. induction H; simpl; constructor; auto. Qed.
Module Evaluation (I : IntervalOps).
Module V := Intervals I.
Import V.

(** Between which numbers the claims of merge.v's record are. *)
Record claims := Claims {
  i_u : I.type; i_lam : I.type; i_thE : I.type; i_xl : I.type; i_xr : I.type; i_T : I.type; i_gap : I.type;
  i_off : I.type; i_last : I.type;
  i_eps : I.type; i_lame : I.type; i_up : I.type; i_lamp : I.type; i_upd : I.type; i_lampd : I.type;
  i_additions : option nat; i_nearest : bool }.
(** A key: its exact score, the error of the computed one, its value. *)
Record key := Key { k_s : I.type; k_a : I.type; k_v : I.type }.
(** Its weight relative to a reference, times e^E, times e^-E, times e^E - 1. *)
Record weighed := Weighed { w_w : I.type; w_most : I.type; w_least : I.type; w_more : I.type; w_v : I.type }.
(** What it is of the weights' sum, and the size of its value. *)
Record share := Share { s_ph : I.type; s_pp : I.type; s_size : I.type; s_apart : I.type }.

(** What the tolerance is made of. *)
Record evaluated := Evaluated { v_exact : I.type; v_spread : I.type; v_numerator : I.type; v_off : I.type;
  v_least : I.type }.

Section Row.
Variable prec : I.precision.
Notation "x +' y" := (add prec x y) (at level 50, left associativity).
Notation "x -' y" := (sub prec x y) (at level 50, left associativity).
Notation "x *' y" := (mul prec x y) (at level 40, left associativity).
Notation "x /' y" := (div prec x y) (at level 40, left associativity).
Local Notation "' x" := (of_Z prec x) (at level 0, only parsing).
Local Notation one := (one prec).
Local Notation two := (of_Z prec 2).
Local Notation count k := (of_Z prec (Z.of_nat k)).

Variable c : claims.
Variable r : nat.
Variables m top : I.type.
Variable keys : list key.
Local Notation n := (length keys).

Definition i_eps1 := i_eps c /' (one -' i_eps c).
Definition i_X := i_xl c +' count r *' i_xr c +' (one +' count r) *' i_eps1.
Definition i_E k :=
  k_a k +' i_thE c *' (top +' i_gap c -' (k_s k -' k_a k) +' two *' i_T c) +' i_X.
Definition weigh k :=
  let e := i_E k in let x := k_s k -' m in let w := expo_near prec x in
  if lt prec e (one /' of_Z prec 512) then
    let ee := expo prec e in Weighed w (w *' ee) (w /' ee) (w *' expm1 prec e ee) (k_v k)
  else
    let most := expo_near prec (x +' e) in
    Weighed w most (expo_near prec (x -' e)) (from_zero (most -' w)) (k_v k).

Variable ws : list weighed.
Definition i_total := total prec w_w ws.
Definition i_least := total prec w_least ws.
Definition i_exact := total prec (fun w => w_w w *' w_v w) ws /' i_total.
Definition shared (least exact : I.type) w :=
  Share (w_more w /' least) (below prec one (w_most w /' least)) (I.abs (w_v w)) (I.abs (w_v w -' exact)).

Variables exact : I.type.
Variable l : list share.
Definition i_spread := below prec (total prec (fun x => s_ph x *' s_apart x) l) (largest prec s_apart l).
Definition i_size := below prec (total prec (fun x => s_pp x *' s_size x) l) (largest prec s_size l).
Definition i_pw k := power_less_one prec (i_u c) k.
Variables spread size : I.type.
Variable d : nat.              (* roundings of a division before the values; 0: there is none *)
Variable of_weights : I.type.  (* of weights as they are stored *)
Local Notation cN := (n + 1 + 2 * r)%nat.
(** How many additions a term passes. *)
Definition i_h := match i_additions c with Some d => Nat.min d n | None => n end.
Definition i_hk := (match i_additions c with Some d => Nat.min d (n - 1) | None => n - 1 end + r)%nat.
Definition i_refined x y := if i_nearest c then below prec x y else x.
Definition i_twice_lost := if i_nearest c then two else one.
Definition i_acc (gc : I.type) :=
  i_refined (i_pw (i_h + Nat.max 1 d + 2 * r) *' size)
    (gc *' ((one +' count d +' two *' count r) *' i_u c *' size +'
            gc *' total prec (fun x => below prec (i_u c *' size) (s_pp x *' s_size x)) l)).
Definition i_UD0 (gc : I.type) :=
  i_refined (i_pw (i_h + 2 * r))
    (gc *' (two *' count r *' i_u c +' gc *' total prec (fun x => below prec (i_u c) (s_pp x)) l)).
Definition i_F := expo prec (two *' (i_thE c *' i_T c) +' i_X +' (one +' i_thE c) *' i_gap c +' i_last c).
Definition i_g := expo prec (i_xr c +' i_eps1) +' i_lame c.
Definition i_gain := expo_near prec ((one +' i_thE c) *' i_T c +' (i_xl c +' i_eps1) +' i_off c).
Definition i_by_exp (lamp : I.type) := i_lame c *' (one +' count r *' i_gain) +' below prec lamp (i_lame c).
Definition i_twice (lamp : I.type) :=
  count r *' (i_lame c *' (of_Z prec 17 +' of_Z prec 16 *' count r) *' (lamp +' i_by_exp lamp)).
Definition i_loss (lamp by_exp twice : I.type) x :=
  below prec lamp (s_pp x) +'
  below prec by_exp ((one +' one /' of_Z prec 16) *' s_pp x +' below prec lamp (s_pp x)) +' twice.
Definition i_grown (w0 : I.type) := i_F *' w0 *' (one +' i_pw i_hk) *' power prec i_g r.
(** size_of: of a value. *)
Definition i_lost (size_of : share -> I.type) (w0 lamp : I.type) (ops : nat) :=
  let by_exp := i_by_exp lamp in let twice := i_twice lamp in
  i_grown w0 *' (i_twice_lost *'
    (total prec (fun x => size_of x *' i_loss lamp by_exp twice x) l +' count ops *' i_lam c)).
Definition i_wl := one +' i_upd c.
Definition i_wo := (one +' i_up c) *' (one +' i_u c).
(** What a sum of n weights may lose at the most, and what no sum of weights is larger than but for that. *)
Definition i_most_lost (ops : nat) :=
  let once := i_wl *' i_lame c in
  let by_exp := once +' below prec (i_lampd c) once +' count r *' (i_lame c *' (i_wl *' i_gain)) in
  let twice := count r *' (i_lame c *' (one +' of_Z prec 16 *' (one +' count r)) *' (i_lampd c +' by_exp)) in
  (one +' i_pw (n - 1 + r)) *' power prec i_g r *' (count n *' (i_lampd c +' by_exp +' twice) +' count ops *' i_lam c).
Definition i_grown_sum := i_wl *' (one +' i_pw (n - 1 + r)).
Definition i_gain_of_all := expo prec ((one +' i_thE c) *' i_T c +' i_X +' i_off c).
(** What the sums err by and what the sum of weights does, beside the least that it may be. *)
Definition i_sums (ops : nat) : evaluated :=
  let gc := one +' i_pw cN in
  let Nd := of_weights *' size +' (one +' of_weights) *' i_acc gc in
  let LN := i_lost s_size i_wo (i_lamp c) ops in
  let LD := i_lost (fun _ => one) i_wl (i_lampd c) ops in
  let UD0 := i_UD0 gc in
  let UD := UD0 +' i_upd c +' UD0 *' i_upd c in
  let low := above prec (one -' UD) ((one -' i_upd c) *' power prec (one -' i_u c) (i_h + 2 * r)) -' LD in
  Evaluated exact spread (Nd +' LN) (UD +' LD) low.
(** The tolerance where the sum of weights is off by so much and at least so large. *)
Definition finished (e : evaluated) (off least Uf lamf : I.type) : bool * I.type :=
  let size := I.abs (v_exact e) in
  let pre := v_spread e +' (v_numerator e +' (size +' v_spread e) *' off) /' least in
  (lt prec I.zero least, (one +' Uf) *' pre +' Uf *' size +' lamf).
End Row.

(** All of it, of the keys of a row. *)
Definition evaluate prec c r ops d of_weights m top keys :=
  let ws := map (weigh prec c r m top) keys in
  let exact := i_exact prec ws in
  let l := map (shared prec (i_least prec ws) exact) ws in
  i_sums prec c r keys exact l (i_spread prec l) (i_size prec l) d of_weights ops.
Definition tolerance_of prec c r ops d of_weights m top keys Uf lamf :=
  let e := evaluate prec c r ops d of_weights m top keys in finished prec e (v_off e) (v_least e) Uf lamf.

Section Proof.
Variable prec : I.precision.
Variable K : Type.
Variables s vv a : K -> R.
Variable A : arith.
Hypothesis OK : sane A.
Variable J : list K.
Hypothesis NJ : J <> [].
Variables Mp m : R.
Variables r ops d : nat.
Variable of_w : R.
Variable c : claims.
Variables im top i_of_w : I.type.
Hypothesis Hof_w : encloses i_of_w of_w.
Hypothesis Hm : encloses im m.
Hypothesis Htop : encloses top Mp.
Record claims_h : Prop := {
  h_u : encloses (i_u c) (u A); h_lam : encloses (i_lam c) (lam A); h_thE : encloses (i_thE c) (thE A);
  h_xl : encloses (i_xl c) (xl A); h_xr : encloses (i_xr c) (xr A); h_T : encloses (i_T c) (T A);
  h_gap : encloses (i_gap c) (gap A); h_off : encloses (i_off c) (off A); h_last : encloses (i_last c) (last A);
  h_eps : encloses (i_eps c) (eps A); h_lame : encloses (i_lame c) (lame A);
  h_up : encloses (i_up c) (up A); h_lamp : encloses (i_lamp c) (lamp A); h_upd : encloses (i_upd c) (upd A);
  h_lampd : encloses (i_lampd c) (lampd A); h_additions : i_additions c = additions A;
  h_nearest : i_nearest c = nearest A }.
Hypothesis C : claims_h.
Definition key_h (k : key) (j : K) := encloses (k_s k) (s j) /\ encloses (k_a k) (a j) /\ encloses (k_v k) (vv j) /\
  0 <= a j /\ s j - a j <= Mp + gap A.
Variable keys : list key.
Hypothesis H : Forall2 key_h keys J.

Ltac arith := repeat (assumption || apply add_h || apply sub_h || apply mul_h || apply abs_h || apply expo_h ||
  apply of_Z_h || apply one_h || apply of_nat_h || apply zero_h || apply power_less_one_h || apply power_h).

Local Notation EE := (E K s A a Mp r).
Lemma eps1_h : encloses (i_eps1 prec c) (eps1 A).
Proof. destruct C, OK. unfold i_eps1, eps1. apply div_h; [lra|auto|arith]. Qed.
Lemma X_h : encloses (i_X prec c r) (X A r).
Proof. destruct C. unfold i_X, X. assert (Q := eps1_h). arith. Qed.
Lemma E_h k j : key_h k j -> encloses (i_E prec c r top k) (EE j).
Proof.
  destruct C. intros (H1 & H2 & H3 & H4 & H5). assert (Q := X_h). unfold i_E, bound.E, bound.D. arith.
Qed.
Lemma E_pos k j : key_h k j -> 0 <= EE j.
Proof.
  intros (_ & _ & _ & H4 & H5). assert (Q2 := X_pos A OK r). destruct OK. unfold bound.E, bound.D.
  assert (0 <= thE A * (Mp + gap A - (s j - a j) + 2 * T A)) by (apply Rmult_le_pos; lra). lra.
Qed.
Definition weighed_h (w : weighed) (j : K) :=
  encloses (w_w w) (exp (s j - m)) /\ encloses (w_most w) (exp (s j - m) * exp (EE j)) /\
  encloses (w_least w) (exp (s j - m) / exp (EE j)) /\ encloses (w_more w) (exp (s j - m) * (exp (EE j) - 1)) /\
  encloses (w_v w) (vv j) /\ 0 <= EE j.
Lemma weigh_h k j : key_h k j -> weighed_h (weigh prec c r im top k) j.
Proof.
  intros Hk. assert (HE := E_h k j Hk). assert (PE := E_pos k j Hk). destruct Hk as (H1 & H2 & H3 & H4 & H5).
  assert (X : encloses (sub prec (k_s k) im) (s j - m)) by arith. assert (Wh := expo_near_h prec _ _ X).
  assert (E1 := exp_pos (EE j)). assert (W1 := exp_pos (s j - m)). assert (G := exp_ge1 _ PE).
  unfold weighed_h, weigh. destruct (lt _ _ _); simpl; repeat split; auto.
  - arith.
  - apply div_h; [lra|auto|arith].
  - apply mul_h; auto. apply expm1_h; arith.
  - rewrite <- exp_plus. apply expo_near_h. arith.
  - rewrite <- exp_minus. apply expo_near_h. arith.
  - apply from_zero_h; [apply Rmult_le_pos; lra|].
    replace (exp (s j - m) * (exp (EE j) - 1)) with (exp (s j - m) * exp (EE j) - exp (s j - m)) by ring.
    apply sub_h; auto. rewrite <- exp_plus. apply expo_near_h. arith.
Qed.
Local Notation ws := (map (weigh prec c r im top) keys).
Lemma ws_h : Forall2 weighed_h ws J.
Proof. apply (Forall2_map_left key_h); auto. apply weigh_h. Qed.

(** Relative to any reference m. *)
Definition tot := Sum (fun j => exp (s j - m)) J.
Definition lst := Sum (fun j => exp (s j - m) / exp (EE j)) J.
Lemma tot_pos : 0 < tot.
Proof. apply Sum_pos; auto. intros. apply exp_pos. Qed.
Lemma lst_pos : 0 < lst.
Proof. apply Sum_pos; auto. intros. apply Rdiv_lt_0_compat; apply exp_pos. Qed.
Lemma alpha_shift j : alpha K s J j = exp (s j - m) / tot.
Proof.
  unfold alpha, total, tot. assert (P := bound.total_pos K s J NJ). unfold bound.total in P. assert (Em := exp_pos m).
  rewrite (Sum_ext (fun j => exp (s j - m)) (fun j => / exp m * exp (s j))) by (intros; rewrite exp_minus; field; lra).
  rewrite Sum_scal, exp_minus. unfold bound.total. field. split; lra.
Qed.
Lemma Z_shift : Zm K s A a J Mp r = lst / tot.
Proof.
  assert (P := tot_pos). unfold Zm, lst.
  rewrite (Sum_ext (fun j => alpha K s J j * exp (- EE j)) (fun j => / tot * (exp (s j - m) / exp (EE j)))).
  - rewrite Sum_scal. field. lra.
  - intros. rewrite alpha_shift, exp_Ropp. assert (Q := exp_pos (EE x)). field. split; lra.
Qed.
Lemma ph_shift j : ph K s A a J Mp r j = exp (s j - m) * (exp (EE j) - 1) / lst.
Proof. assert (P := tot_pos). assert (Q := lst_pos). unfold ph. rewrite Z_shift, alpha_shift. field. split; lra. Qed.
Lemma pp_shift j : pp K s A a J Mp r j = Rmin 1 (exp (s j - m) * exp (EE j) / lst).
Proof.
  assert (P := tot_pos). assert (Q := lst_pos). unfold pp. rewrite Z_shift, alpha_shift. f_equal. field. split; lra.
Qed.
Lemma exact_shift : exact K s vv J = Sum (fun j => exp (s j - m) * vv j) J / tot.
Proof. rewrite <- (shift_invariance K s vv J m NJ). reflexivity. Qed.

Lemma total_h' : encloses (i_total prec ws) tot.
Proof. apply (total_h prec weighed_h); [apply ws_h|]. intros i x Q. apply Q. Qed.
Lemma least_h : encloses (i_least prec ws) lst.
Proof. apply (total_h prec weighed_h); [apply ws_h|]. intros i x Q. apply Q. Qed.
Lemma exact_h : encloses (i_exact prec ws) (exact K s vv J).
Proof.
  rewrite exact_shift. assert (P := tot_pos). apply div_h; [lra| |apply total_h'].
  apply (total_h prec weighed_h); [apply ws_h|]. intros i x (Q1 & _ & _ & _ & Q5 & _). arith.
Qed.

Definition share_h (x : share) (j : K) :=
  encloses (s_ph x) (ph K s A a J Mp r j) /\ encloses (s_pp x) (pp K s A a J Mp r j) /\
  encloses (s_size x) (Rabs (vv j)) /\ encloses (s_apart x) (Rabs (vv j - exact K s vv J)) /\
  0 <= ph K s A a J Mp r j /\ 0 <= pp K s A a J Mp r j.
Local Notation l := (map (shared prec (i_least prec ws) (i_exact prec ws)) ws).
Lemma EE_pos j : In j J -> 0 <= EE j.
Proof.
  intros I1. enough (exists k, key_h k j) as (k & Hk) by (apply (E_pos k j Hk)).
  clear - H I1. induction H; simpl in *; [tauto|]. destruct I1 as [->|I1]; eauto.
Qed.
Lemma shares_h : Forall2 share_h l J.
Proof.
  apply (Forall2_map_left _ _ _ _ _ ws_h). intros w j (H1 & H2 & H3 & H4 & H5 & PE).
  assert (L := least_h). assert (Lp := lst_pos). assert (O := exact_h). assert (P1 := exp_pos (s j - m)).
  assert (P2 := exp_ge1 _ PE). assert (I1 : 0 < / lst) by (apply Rinv_0_lt_compat; auto).
  assert (W0 : 0 <= exp (s j - m) * exp (EE j) / lst) by (repeat apply Rmult_le_pos; lra).
  unfold share_h, shared. simpl. rewrite ph_shift, pp_shift. repeat split.
  - apply div_h; [lra|arith|auto].
  - apply below_h; [lra|auto|arith|]. apply div_h; [lra|arith|auto].
  - arith.
  - arith.
  - repeat apply Rmult_le_pos; lra.
  - apply Rmin_glb; lra.
Qed.

Local Notation sp := (spread K s vv A a J Mp r).
Local Notation si := (size K s vv A a J Mp r).
Local Notation ex := (exact K s vv J).
Lemma ph_pos j : In j J -> 0 <= ph K s A a J Mp r j.
Proof.
  intros I1. assert (P := exp_ge1 _ (EE_pos j I1)). rewrite ph_shift. assert (Q := exp_pos (s j - m)).
  apply Rmult_le_pos; [apply Rmult_le_pos; lra|]. left. apply Rinv_0_lt_compat, lst_pos.
Qed.
Lemma size_pos : 0 <= si.
Proof. apply documented.size_pos'; auto. Qed.
Lemma spread_h : encloses (i_spread prec l) sp.
Proof.
  apply below_h; [apply Sum_nonneg; intros j I1; apply Rmult_le_pos; [apply ph_pos; auto|apply Rabs_pos] |
    apply most_pos | |].
  - apply (total_h prec share_h); [apply shares_h|]. intros i x Q. destruct Q as (Q1 & Q2 & Q3 & Q4 & _). arith.
  - apply (largest_h prec share_h); [apply shares_h|]. intros i x Q. apply Q.
Qed.
Lemma size_h : encloses (i_size prec l) si.
Proof.
  apply below_h; [|apply most_pos| |].
  - apply Sum_nonneg. intros. apply Rmult_le_pos; [apply pp_pos; auto|apply Rabs_pos].
  - apply (total_h prec share_h); [apply shares_h|]. intros i x Q. destruct Q as (Q1 & Q2 & Q3 & Q4 & _). arith.
  - apply (largest_h prec share_h); [apply shares_h|]. intros i x Q. apply Q.
Qed.
Lemma length_h : length keys = length J.
Proof. clear - H. induction H; simpl; auto. Qed.
Lemma pw_h k : encloses (i_pw prec c k) (pw A k).
Proof. destruct C. apply power_less_one_h. auto. Qed.
Lemma sum_pos f : (forall j, 0 <= f j) -> 0 <= Sum f J.
Proof. intros. apply Sum_nonneg. auto. Qed.
Lemma i_h_is : i_h c keys = h K A J.
Proof. unfold i_h, h. rewrite length_h, (h_additions C). auto. Qed.
Lemma i_hk_is : i_hk c r keys = hk K A J r.
Proof. unfold i_hk, hk. rewrite length_h, (h_additions C). auto. Qed.
Lemma refined_h i j y z : 0 <= y -> 0 <= z -> encloses i y -> encloses j z ->
  encloses (i_refined prec c i j) (documented.refined A y z).
Proof.
  intros. unfold i_refined, documented.refined. rewrite (h_nearest C). destruct (nearest A); auto. apply below_h; auto.
Qed.
Lemma twice_lost_h : encloses (i_twice_lost prec c) (arithmetic.twice A).
Proof.
  unfold i_twice_lost, arithmetic.twice. rewrite (h_nearest C). destruct (nearest A); [apply of_Z_h|apply one_h].
Qed.
Lemma acc_h gc : encloses gc (1 + documented.gc K A J r) ->
  encloses (i_acc prec c r keys l (i_size prec l) d gc) (acc_of K s A a J Mp r d vv si).
Proof.
  intros H2. destruct C. assert (Sz := size_h). assert (P := size_pos). assert (U0 := s_u A OK).
  assert (G := pw_pos A OK (cN K J r)). fold (documented.gc K A J r) in G. assert (Ir := pos_INR r).
  assert (uS : 0 <= u A * si) by (apply Rmult_le_pos; auto).
  assert (M : forall j, 0 <= Rmin (u A * si) (pp K s A a J Mp r j * Rabs (vv j))).
  { intros. apply Rmin_glb; auto. apply Rmult_le_pos; [apply pp_pos; auto|apply Rabs_pos]. }
  assert (M2 := sum_pos _ M). assert (Id := pos_INR d). unfold i_acc, acc_of. rewrite i_h_is. apply refined_h.
  - apply Rmult_le_pos; auto. apply pw_pos; auto.
  - apply Rmult_le_pos; [lra|]. apply Rplus_le_le_0_compat; apply Rmult_le_pos; try lra. apply Rmult_le_pos; lra.
  - apply mul_h; auto. apply pw_h.
  - apply mul_h; [auto|]. apply add_h; [arith|]. apply mul_h; [auto|].
    apply (total_h prec share_h); [apply shares_h|]. intros i x (Q1 & Q2 & Q3 & Q4 & _).
    apply below_h; arith. apply Rmult_le_pos; [apply pp_pos; auto|apply Rabs_pos].
Qed.
Lemma UD0_h gc : encloses gc (1 + documented.gc K A J r) ->
  encloses (i_UD0 prec c r keys l gc) (UD0 K s A a J Mp r).
Proof.
  intros H2. assert (HP := pw_h (h K A J + 2 * r)). rewrite <- i_h_is in HP at 1. destruct C. assert (U0 := s_u A OK).
  assert (G := pw_pos A OK (cN K J r)). fold (documented.gc K A J r) in G. assert (Ir := pos_INR r).
  assert (M : forall j, 0 <= Rmin (u A) (pp K s A a J Mp r j)) by (intros; apply Rmin_glb; auto; apply pp_pos; auto).
  assert (M2 := sum_pos _ M). unfold i_UD0, UD0. apply refined_h.
  - apply pw_pos; auto.
  - apply Rmult_le_pos; [lra|]. apply Rplus_le_le_0_compat; apply Rmult_le_pos; try lra.
  - auto.
  - apply mul_h; [auto|]. apply add_h; [arith|]. apply mul_h; [auto|].
    apply (total_h prec share_h); [apply shares_h|]. intros i x (Q1 & Q2 & Q3 & Q4 & _ & Q6). apply below_h; arith.
Qed.
Lemma g_h : encloses (i_g prec c) (g A).
Proof. destruct C. unfold i_g, g. assert (Q := eps1_h). arith. Qed.
Lemma gain_h : encloses (i_gain prec c) (gain A 0).
Proof.
  destruct C. unfold i_gain, gain. assert (Q := eps1_h). apply expo_near_h.
  replace (X A 0) with (xl A + eps1 A) by (unfold X; simpl; ring). arith.
Qed.
Lemma F_h : encloses (i_F prec c r) (F A r).
Proof. destruct C. unfold i_F, F. assert (Q := X_h). arith. Qed.
Lemma lost_h v w0 lamp' iv iw il : (forall x j, share_h x j -> encloses (iv x) (Rabs (v j))) -> encloses iw w0 ->
  encloses il lamp' -> 0 <= lamp' ->
  encloses (i_lost prec c r keys l iv iw il ops) (lost_d K s A a J Mp r ops v w0 lamp').
Proof.
  intros Hv Hw Hl Pl. assert (HP := pw_h (hk K A J r)). destruct C. assert (Q := g_h). assert (Q2 := gain_h).
  assert (Q3 := F_h).
  assert (L := s_lame A OK). assert (Gp := gain_pos A 0). assert (Ir := pos_INR r).
  assert (P1 : 0 <= Rmin lamp' (lame A)) by (apply Rmin_glb; auto).
  assert (P2 : 0 <= lame A * (1 + INR r * gain A 0)).
  { apply Rmult_le_pos; auto. assert (0 <= INR r * gain A 0) by (apply Rmult_le_pos; lra). lra. }
  assert (B : encloses (i_by_exp prec c r il) (by_exp_d A r lamp')).
  { unfold i_by_exp, by_exp_d. apply add_h; [arith|]. apply below_h; arith. }
  assert (Tw : encloses (i_twice prec c r il) (twice_d A r lamp')) by (unfold i_twice, twice_d; arith).
  assert (Pb : 0 <= by_exp_d A r lamp') by (unfold by_exp_d; lra).
  unfold i_lost, lost_d. apply mul_h.
  - unfold i_grown, grown. rewrite i_hk_is. apply mul_h; [apply mul_h; [arith|]|arith].
    replace ((1 + u A) ^ hk K A J r) with (1 + ((1 + u A) ^ hk K A J r - 1)) by ring. apply add_h; [arith|]. auto.
  - apply mul_h; [apply twice_lost_h|]. apply add_h; [|arith]. apply (total_h prec share_h); [apply shares_h|].
    intros x j Hx. assert (Hs := Hv x j Hx). destruct Hx as (X1 & X2 & X3 & X4 & X5 & X6).
    apply mul_h; auto. unfold i_loss, loss_d. apply add_h; [|auto]. apply add_h.
    + apply below_h; auto.
    + assert (0 <= Rmin lamp' (pp K s A a J Mp r j)) by (apply Rmin_glb; auto). apply below_h; auto.
      * assert (0 <= (1 + / 16) * pp K s A a J Mp r j) by (apply Rmult_le_pos; lra). lra.
      * apply add_h; [|apply below_h; auto]. apply mul_h; auto. apply add_h; [arith|].
        replace (/ 16) with (1 / 16) by field. apply div_h; [lra|arith|arith].
Qed.
Lemma wl_h : encloses (i_wl prec c) (w_l A).
Proof. destruct C. unfold i_wl, w_l. arith. Qed.
Lemma grown_sum_h : encloses (i_grown_sum prec c r keys) (P A (w_l A) (kk K J r)).
Proof.
  unfold i_grown_sum, P, kk. rewrite length_h. apply mul_h; [apply wl_h|].
  replace ((1 + u A) ^ (length J - 1 + r)) with (1 + ((1 + u A) ^ (length J - 1 + r) - 1)) by ring.
  apply add_h; [arith|]. apply pw_h.
Qed.
Lemma gain_of_all_h : encloses (i_gain_of_all prec c r) (gain A r).
Proof. destruct C. unfold i_gain_of_all, gain. assert (Q := X_h). arith. Qed.
Lemma most_lost_h : encloses (i_most_lost prec c r keys ops) (most_lost A (length J) r ops).
Proof.
  destruct C. assert (W := wl_h). assert (W1 := wl_ge1 A OK). assert (G := g_h). assert (Ga := gain_h).
  assert (L0 := s_lampd A OK). assert (L1 := s_lame A OK).
  set (once := mul prec (i_wl prec c) (i_lame c)).
  assert (On : encloses once (w_l A * lame A)) by (unfold once; arith).
  assert (Op : 0 <= w_l A * lame A) by (apply Rmult_le_pos; lra).
  set (by_exp_i := add prec (add prec once (below prec (i_lampd c) once)) (mul prec (of_Z prec (Z.of_nat r))
    (mul prec (i_lame c) (mul prec (i_wl prec c) (i_gain prec c))))).
  assert (B : encloses by_exp_i (by_exp A (w_l A) (lampd A) r)).
  { unfold by_exp_i, by_exp, lam0. apply add_h; [|arith]. apply add_h; [arith|]. apply below_h; auto. }
  unfold i_most_lost, most_lost. fold once. fold by_exp_i. rewrite length_h. apply mul_h; [apply mul_h; [|arith]|].
  - replace ((1 + u A) ^ (length J - 1 + r)) with (1 + ((1 + u A) ^ (length J - 1 + r) - 1)) by ring.
    apply add_h; [arith|]. apply pw_h.
  - unfold twice_lost, part. rewrite Rinv_inv. arith.
Qed.
Lemma evaluated_h : let e := evaluate prec c r ops d i_of_w im top keys in
  encloses (v_exact e) ex /\ encloses (v_spread e) sp /\
  encloses (v_numerator e) (Nd_of K s A a J Mp r d of_w vv si + LNd K s vv A a J Mp r ops) /\
  encloses (v_off e) (UDd K s A a J Mp r + LDd K s A a J Mp r ops) /\
  encloses (v_least e) (low_d K s A a J Mp r ops).
Proof.
  unfold evaluate, i_sums. simpl. rewrite length_h in *.
  assert (Ez := exact_h). assert (Sp := spread_h). assert (Sz := size_h). assert (Cc := C). destruct Cc.
  assert (PN := pw_h (cN K J r)). set (iN := i_pw prec c (length J + 1 + 2 * r)) in *.
  assert (GC : encloses (add prec (one prec) iN) (1 + documented.gc K A J r)) by (apply add_h; [arith|apply PN]).
  assert (Ac := acc_h _ GC). assert (U := UD0_h _ GC). assert (Ff := F_h).
  assert (Wl : encloses (i_wl prec c) (w_l A)) by (unfold i_wl, w_l; arith).
  assert (Wo : encloses (i_wo prec c) (w_o A)) by (unfold i_wo, w_o; arith).
  assert (LO := lost_h vv (w_o A) (lamp A) s_size (i_wo prec c) (i_lamp c) ltac:(intros ? ? Q; apply Q) Wo h_lamp0
    (s_lamp A OK)).
  assert (LL := lost_h (bound.one K) (w_l A) (lampd A) (fun _ => one prec) (i_wl prec c) (i_lampd c)
    ltac:(intros; unfold bound.one; rewrite Rabs_R1; arith) Wl h_lampd0 (s_lampd A OK)).
  set (isums := i_acc prec c r keys l (i_size prec l) d (add prec (one prec) iN)) in *.
  set (iUD0 := i_UD0 prec c r keys l (add prec (one prec) iN)) in *.
  set (iLO := i_lost prec c r keys l s_size _ _ ops) in *.
  set (iLD := i_lost prec c r keys l (fun _ => one prec) _ _ ops) in *.
  assert (UDh : encloses (add prec (add prec iUD0 (i_upd c)) (mul prec iUD0 (i_upd c))) (UDd K s A a J Mp r))
    by (unfold UDd; arith).
  set (iUD := add prec (add prec iUD0 (i_upd c)) _) in *.
  assert (Low : encloses (sub prec (above prec (sub prec (one prec) iUD) (mul prec (sub prec (one prec) (i_upd c))
    (power prec (sub prec (one prec) (i_u c)) (i_h c keys + 2 * r)))) iLD) (low_d K s A a J Mp r ops)).
  { unfold low_d. rewrite i_h_is. apply sub_h; auto. apply above_h; [arith|]. arith. }
  set (ilow := sub prec (above prec _ _) iLD) in *.
  split; [auto|]. split; [auto|]. split; [unfold Nd_of; arith|]. split; [arith|auto].
Qed.
Lemma finished_h e off least Uf lamf N D low iUf ilamf : encloses (v_exact e) ex -> encloses (v_spread e) sp ->
  encloses (v_numerator e) N -> encloses off D -> encloses least low -> encloses iUf Uf -> encloses ilamf lamf ->
  fst (finished prec e off least iUf ilamf) = true ->
  0 < low /\ encloses (snd (finished prec e off least iUf ilamf))
    ((1 + Uf) * (sp + (N + (Rabs ex + sp) * D) / low) + Uf * Rabs ex + lamf).
Proof.
  intros H1 H2 H3 H4 H5 H6 H7 Pos. assert (P := lt_h prec _ _ _ _ Pos zero_h H5). split; auto.
  unfold finished. simpl snd.
  apply add_h; auto. apply add_h; [|arith]. apply mul_h; [arith|]. apply add_h; auto. apply div_h; [lra| |auto]. arith.
Qed.
Lemma tolerance_enclosed Uf lamf iUf ilamf : encloses iUf Uf -> encloses ilamf lamf ->
  fst (tolerance_of prec c r ops d i_of_w im top keys iUf ilamf) = true ->
  0 < low_d K s A a J Mp r ops /\
  encloses (snd (tolerance_of prec c r ops d i_of_w im top keys iUf ilamf))
    (documented_of K s vv A a J Mp r ops d of_w Uf lamf).
Proof.
  intros HU HL Pos. destruct evaluated_h as (H1 & H2 & H3 & H4 & H5). apply finished_h; auto.
Qed.
End Proof.
End Evaluation.
