(** MAttn_B (000, 001, 002, 003). A hidden key is [None] in B; statements hold for both conventions unless they name
    one. *)

From mathcomp Require Import all_ssreflect all_fingroup all_algebra.
From Attest Require Import definitions basics.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Rows.
Variables (R : realFieldType) (e : exponential R) (scale : R) (conv : convention).
Variables (M N dk dv : nat).
Local Notation MAttn := (mattn e scale conv).
Local Notation scores := (masked_scores scale conv).
Implicit Types (B : 'M[score R]_(M, N)) (Q : 'M[R]_(M, dk)) (K : 'M[R]_(N, dk)) (V : 'M[R]_(N, dv)).

(** MAttn_B(Q,K,V)^(i) = MAttn_{B^(i)}(Q^(i),K,V). *)
Theorem masked_query_deletion i B Q K V : row' i (MAttn B Q K V) = MAttn (row' i B) (row' i Q) K V.
Proof. by rewrite !row'Esub mattn_rowsub. Qed.

(** b_is = -oo => o_i is independent of k_s and v_s ... *)
Theorem masked_suppression i s B Q K K' V V' :
    B i s = hidden -> (forall l, l != s -> row l K = row l K' /\ row l V = row l V') ->
  row i (MAttn B Q K V) = row i (MAttn B Q K' V').
Proof.
move=> Bis KV; apply: mattn_local => // j Bij; apply: KV.
by apply: contraNneq Bij => ->; rewrite Bis.
Qed.

(** ... and equals the closed formula over l != s. *)
Theorem masked_suppression__formula i s c B Q K V :
    B i s = hidden ->
  let w l := weight e (scores B Q K i l) in
  MAttn B Q K V i c = (\sum_(l | l != s) w l * V l c) / \sum_(l | l != s) w l.
Proof.
move=> Bis w; have ws : w s = 0 by rewrite /w masked_scoresE Bis.
by rewrite softmax_mulE /total (bigD1 s) //= [in X in _ / X](bigD1 s) //= -/(w s) ws mul0r !add0r.
Qed.

(** b_is -> -oo through finite values: with o' the formula over l != s, o_i - o' is alpha_is (v_s - o') ... *)
Theorem masked_suppression_limit__exact i s c B Q K V :
  let w l := weight e (scores B Q K i l) in
  let o' := (\sum_(l | l != s) w l * V l c) / \sum_(l | l != s) w l in
    (exists2 l, l != s & B i l != hidden) ->
  MAttn B Q K V i c - o' = softmax e (scores B Q K) i s * (V s c - o').
Proof.
move=> w o' [l ls Bil]; set Z := \sum_(l | l != s) w l in o' *.
have Z_gt0 : 0 < Z.
  rewrite /Z (bigD1 l) //= ltr_paddr ?weight_gt0 ?masked_scoresE ?masked_score_hidden //.
  by apply: sumr_ge0 => j _; apply: weight_ge0.
have T_gt0 : 0 < w s + Z by rewrite ltr_paddl ?weight_ge0.
have totalE : total e (scores B Q K) i = w s + Z by rewrite /total (bigD1 s).
rewrite softmax_mulE [softmax _ _ _ _]mxE totalE -/(w s) (bigD1 s) //= -/(w s).
have -> : \sum_(l | l != s) w l * V l c = Z * o' by rewrite /o' mulrC divfK ?gt_eqF.
rewrite -[X in _ - X](mulfK (lt0r_neq0 T_gt0)) -mulrBl [RHS]mulrAC; congr (_ / _).
by rewrite mulrDr mulrBr [o' * w s]mulrC [o' * Z]mulrC opprD addrACA subrr addr0.
Qed.

(** ... and at most e^D/(1+e^D) |v_s - o'| in size, D = s_is - s_il for any l != s, so for the largest score too. *)
Theorem masked_suppression_limit i s l c (s_is s_il : R) B Q K V :
  let w l := weight e (scores B Q K i l) in
  let o' := (\sum_(l | l != s) w l * V l c) / \sum_(l | l != s) w l in
  let D := s_is - s_il in
    l != s -> scores B Q K i s = Some s_is -> scores B Q K i l = Some s_il ->
  `|MAttn B Q K V i c - o'| <= e D / (1 + e D) * `|V s c - o'|.
Proof.
move=> w o' D ls Ss Sl; rewrite masked_suppression_limit__exact; last first.
  by exists l; rewrite // -(masked_score_hidden scale conv ((Q *m K^T) i l)) -masked_scoresE Sl.
rewrite normrM ler_wpmul2r ?normr_ge0 // ger0_norm ?softmax_ge0 // [softmax _ _ _ _]mxE Ss /=.
have -> : e D / (1 + e D) = e s_is / (e s_il + e s_is).
  have -> : e s_il + e s_is = (1 + e s_is / e s_il) * e s_il by rewrite mulrDl mul1r divfK ?exp_neq0.
  by rewrite /D expB invfM mulrA mulrAC.
rewrite ler_pmul2l ?exp_gt0 // lef_pinv ?posrE ?addr_gt0 ?exp_gt0 //; last first.
  by apply: total_gt0; exists s; rewrite Ss.
rewrite /total (bigD1 s) //= Ss /= addrC ler_add2l (bigD1 l) //= Sl /= ler_addl.
by apply: sumr_ge0 => j _; apply: weight_ge0.
Qed.

(** So it comes as near to o' as one likes: within eps |v_s - o'| once e^D <= eps. *)
Theorem masked_suppression_limit__limit i s l c (s_is s_il eps : R) B Q K V :
  let w l := weight e (scores B Q K i l) in
  let o' := (\sum_(l | l != s) w l * V l c) / \sum_(l | l != s) w l in
    l != s -> scores B Q K i s = Some s_is -> scores B Q K i l = Some s_il -> e (s_is - s_il) <= eps ->
  `|MAttn B Q K V i c - o'| <= eps * `|V s c - o'|.
Proof.
move=> w o' ls Ss Sl e_eps; apply: le_trans (masked_suppression_limit c V ls Ss Sl) _.
rewrite ler_wpmul2r ?normr_ge0 //; apply: le_trans e_eps.
have D_gt0 := exp_gt0 e (s_is - s_il).
rewrite ler_pdivr_mulr; last by rewrite addr_gt0 ?ltr01.
by rewrite mulrDr mulr1 ler_addl mulr_ge0 ?ltW.
Qed.

(** Column s of B is -oo => MAttn_B(Q,K,V) = MAttn_{B^[s]}(Q,K^(s),V^(s)). *)
Theorem masked_key_value_deletion s B Q K V :
  (forall i, B i s = hidden) -> MAttn B Q K V = MAttn (col' s B) Q (row' s K) (row' s V).
Proof.
move=> Bs; rewrite col'Esub !row'Esub; apply/esym/mattn_gather_inj; first exact: lift_inj.
move=> i j; have [->|js] := eqVneq j s; first by rewrite Bs.
by rewrite eq_sym in js; have [l -> _] := unlift_some js; rewrite codom_f.
Qed.

(** Masked keys appended at the end change nothing. *)
Theorem masked_tail_padding n B Q K V (K_pad : 'M_(n, dk)) (V_pad : 'M_(n, dv)) :
  MAttn (row_mx B (const_mx hidden)) Q (col_mx K K_pad) (col_mx V V_pad) = MAttn B Q K V.
Proof.
have colE m (A : 'M[score R]_(m, N)) A' : colsub (@lshift N n) (row_mx A A') = A.
  by apply/matrixP => i j; rewrite mxE row_mxEl.
have rowE d (A : 'M[R]_(N, d)) A' : rowsub (@lshift N n) (col_mx A A') = A.
  by apply/matrixP => i j; rewrite mxE col_mxEu.
rewrite -(@mattn_gather_inj _ e scale conv _ _ _ _ _ (@lshift N n)) ?colE ?rowE //; first exact: lshift_inj.
by move=> i j; case: (split_ordP j) => l ->; rewrite ?codom_f ?row_mxEr ?mxE.
Qed.

(** B = 0, or M = 1 everywhere => MAttn_B = Attention. *)
Theorem masked_zero_mask Q K V : MAttn (zero_mask R M N) Q K V = attention e scale Q K V.
Proof. exact: mattn_zero_mask. Qed.

Theorem masked_zero_mask__boolean Q K V : MAttn (additive R (const_mx true)) Q K V = attention e scale Q K V.
Proof. by rewrite -(masked_zero_mask Q K V); apply: eq_mattn => //; apply/matrixP => i j; rewrite !mxE. Qed.

(** 002's mask_M, applied to the scores, is the additive mask 0/-oo. *)
Theorem masked_boolean_is_additive (allowed : 'M[bool]_(M, N)) Q K V :
  MAttn (additive R allowed) Q K V = softmax e (hide allowed (scale *: (Q *m K^T))) *m V.
Proof.
congr (softmax e _ *m V); apply/matrixP => i j; rewrite masked_scoresE !mxE.
by case: (allowed i j) => //=; case: conv; rewrite addr0.
Qed.

(** Masking = setting the unmasked weights of hidden keys to 0 and renormalising. *)
Theorem masked_renormalisation (allowed : 'M[bool]_(M, N)) Q K V :
  MAttn (additive R allowed) Q K V = renormalised allowed (softmax e (finite (scale *: (Q *m K^T)))) *m V.
Proof.
rewrite masked_boolean_is_additive; set A := scale *: _; congr (_ *m V).
apply/matrixP => i j; rewrite [LHS]mxE [RHS]mxE [hide _ _ _ _]mxE; set T := total e (finite A) i.
have T_neq0 : T != 0 by apply: total_neq0; exists j; rewrite mxE.
have alphaE l : softmax e (finite A) i l = e (A i l) / T by rewrite mxE [finite _ _ _]mxE.
have -> : total e (hide allowed A) i = \sum_(l | allowed i l) e (A i l).
  rewrite /total [RHS]big_mkcond; apply: eq_bigr => l _; rewrite mxE.
  by case: (allowed i l).
rewrite (eq_bigr _ (fun l _ => alphaE l)) -mulr_suml alphaE; case: (allowed i j); last by rewrite !mul0r.
by rewrite /= invf_div mulrA divfK.
Qed.

(** Adding a constant to a row of B changes nothing. *)
Theorem masked_row_shift (t : 'I_M -> R) B Q K V :
  MAttn (\matrix_(i, j) omap (fun b => b + t i) (B i j)) Q K V = MAttn B Q K V.
Proof.
congr (_ *m V).
rewrite -[RHS](softmax_shift e (fun i => match conv with pre_scale => scale * t i | post_scale => t i end)).
congr (softmax e); apply/matrixP => i j; rewrite masked_scoresE [RHS]mxE masked_scoresE.
rewrite [(\matrix_(_, _) omap _ _) i j]mxE; case: (B i j) => [b|] //=; congr Some.
by case: conv; rewrite addrA ?mulrDr.
Qed.

(** MAttn_{R_pi B R_sigma^T}(R_pi Q, R_sigma K, R_sigma V) = R_pi MAttn_B(Q,K,V). *)
Theorem masked_equivariance_with_mask (pi : 'S_M) (sigma : 'S_N) B Q K V :
  MAttn (row_perm pi (col_perm sigma B)) (row_perm pi Q) (row_perm sigma K) (row_perm sigma V) =
  row_perm pi (MAttn B Q K V).
Proof.
rewrite !row_permEsub col_permEsub mattn_rowsub; congr (rowsub _ _).
exact/mattn_gather_bij/injF_bij/perm_inj.
Qed.

(** A row that sees no key is undefined; what its mask is has no effect on the other rows. *)
Theorem masked_fully_masked_row i i' B B' Q K V :
  i' != i -> (forall r, r != i -> row r B = row r B') -> row i' (MAttn B Q K V) = row i' (MAttn B' Q K V).
Proof. by move=> i'i BB'; apply: mattn_local => //; apply: BB'. Qed.

End Rows.

Section Conventions.
Variables (R : realFieldType) (e : exponential R) (scale : R).
Variables (M N dk dv : nat).
Implicit Types (B : 'M[score R]_(M, N)) (Q : 'M[R]_(M, dk)) (K : 'M[R]_(N, dk)) (V : 'M[R]_(N, dv)).

(** Pre-scale and post-scale agree when every entry of B is 0 or -oo. *)
Theorem masked_conventions_agree B Q K V :
  (forall i j, B i j = Some 0 \/ B i j = hidden) -> mattn e scale pre_scale B Q K V = mattn e scale post_scale B Q K V.
Proof.
move=> B0; congr (softmax e _ *m V); apply/matrixP => i j; rewrite !masked_scoresE.
by case: (B0 i j) => -> //=; rewrite !addr0.
Qed.

(** Also when the scale is 1 (dk = 1), or B is constant along each row. *)
Theorem masked_conventions_agree__no_scale B Q K V :
  scale = 1 -> mattn e scale pre_scale B Q K V = mattn e scale post_scale B Q K V.
Proof.
move=> ->; congr (softmax e _ *m V); apply/matrixP => i j; rewrite !masked_scoresE.
by case: (B i j) => //= b; rewrite !mul1r.
Qed.

Theorem masked_conventions_agree__constant_rows (b : 'I_M -> R) Q K V :
  let B : 'M_(M, N) := \matrix_(i, j) Some (b i) in
  mattn e scale pre_scale B Q K V = mattn e scale post_scale B Q K V.
Proof.
have BE : \matrix_(i, j) Some (b i) = \matrix_(i, j) omap (fun x => x + b i) (zero_mask R M N i j) :> 'M_(M, N).
  by apply/matrixP => i j; rewrite !mxE /= add0r.
by rewrite /= BE !masked_row_shift !mattn_zero_mask.
Qed.

End Conventions.

Section Refuted.
Variables (R : realFieldType) (e : exponential R) (scale : R).

(** False: pre-scale and post-scale agree for every finite B. Refuted for every exponential that is not the constant 1
    and every scale but 1. *)
Theorem masked_conventions_differ :
    (exists a, e a != 1) -> scale != 1 ->
  ~ (forall M N dk dv (B : 'M[R]_(M, N)) (Q : 'M_(M, dk)) (K : 'M_(N, dk)) (V : 'M_(N, dv)),
       mattn e scale pre_scale (finite B) Q K V = mattn e scale post_scale (finite B) Q K V).
Proof.
case=> a ea scale_neq1 agree; have scale1 : scale - 1 != 0 by rewrite subr_eq0.
pose b := a / (scale - 1).
have /matrixP/(_ 0 0) := agree 1%N 2%N 1%N 1%N (\row_j if j == 0 then b else 0) 0 0 (delta_mx 0 0).
rewrite !softmax_mulE /total !big_ord_recl !big_ord0 !masked_scoresE !mul0mx !mxE /=.
rewrite !(mulr0, add0r, addr0, mulr1) exp0.
have pos (x : R) : e x + 1 != 0 by rewrite gt_eqF // addr_gt0 ?ltr01 ?exp_gt0.
move/eqP; rewrite eqr_div // !mulrDr !mulr1 [e b * _]mulrC (inj_eq (addrI _)).
apply/negP; apply: contraNneq ea => ee.
have -> : a = scale * b - b by rewrite -[in X in _ - X](mul1r b) -mulrBl mulrC divfK.
by rewrite expB ee divff ?exp_neq0.
Qed.

(** False: MAttn_B is permutation equivariant for every B. Every exponential refutes it. *)
Theorem masked_breaks_equivariance (conv : convention) :
  ~ (forall M N dk dv (B : 'M[score R]_(M, N)) (pi : 'S_M) (sigma : 'S_N) (Q : 'M_(M, dk)) (K : 'M_(N, dk))
        (V : 'M_(N, dv)),
       (forall i, sees_a_key B i) ->
     mattn e scale conv B (row_perm pi Q) (row_perm sigma K) (row_perm sigma V) =
     row_perm pi (mattn e scale conv B Q K V)).
Proof.
move=> equi.
have B_sees i : sees_a_key (additive R (causal_top_left 2 2)) i by exists i; rewrite !mxE leqnn.
have /matrixP/(_ 0 0) := equi 2%N 2%N 1%N 1%N _ (tperm 0 1) 1%g 0 0 (delta_mx 0 0) B_sees.
rewrite linear0 !row_perm1 [RHS]mxE tpermL !mattn_flat !big_ord_recl !big_ord0 !mxE /=.
rewrite !addr0 divff ?oner_neq0 // mul1r => /esym/eqP.
by rewrite invr_eq1 -(natrD _ 1 1) (eqr_nat R 2 1).
Qed.

End Refuted.
