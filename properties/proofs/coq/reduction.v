(** The functions of 000 as special cases of MMHAttn ("Code"). *)

From mathcomp Require Import all_ssreflect all_algebra.
From Attest Require Import definitions basics weights self multihead.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

Section Reductions.
Variables (R : realFieldType) (e : exponential R) (scale : R) (conv : convention).
Variables (M N cq ck cv dk dv : nat).
Implicit Types (Q : 'M[R]_(M, cq)) (K : 'M[R]_(N, ck)) (V : 'M[R]_(N, cv)).

(** MHAttn(Q,K,V) = MMHAttn_B(Q,K,V) with B = 0. *)
Theorem reduction_mh_is_mmh_zero_mask h d_o (W : 'I_h -> weights R cq ck cv dk dv) (Wo : projection R (h * dv) d_o)
    Q K V :
  mhattn e scale W Wo Q K V = mmhattn e scale conv W Wo (fun=> zero_mask R M N) Q K V.
Proof. by rewrite mmhattn_zero_mask. Qed.

(** MAttn_W,B(Q,K,V) = MMHAttn_B(Q,K,V) with h = 1, W_o = I, b_o = 0. *)
Theorem reduction_masked_weights_is_mmh_h1 (W : weights R cq ck cv dk dv) (B : 'M[score R]_(M, N)) Q K V :
  mattn_w e scale conv W B Q K V =
  castmx (erefl M, mul1n dv) (mmhattn e scale conv (fun _ : 'I_1 => W) (Projection 1%:M 0) (fun=> B) Q K V).
Proof.
rewrite /mmhattn /project /ones_times /= mulmx1 mulmx0 addr0; apply/matrixP => i a.
rewrite castmxE [RHS]mxE cast_ord_id; congr (mattn_w _ _ _ _ _ _ _ _ _ _).
by apply: val_inj; rewrite /= modn_small.
Qed.

(** Attn_W(Q,K,V) = MAttn_W,B(Q,K,V) with B = 0. *)
Theorem reduction_weights_is_masked_zero_mask (W : weights R cq ck cv dk dv) Q K V :
  attn_w e scale W Q K V = mattn_w e scale conv W (zero_mask R M N) Q K V.
Proof. by rewrite mattn_w_zero_mask. Qed.

End Reductions.

Section Self.
Variables (R : realFieldType) (e : exponential R) (scale : R) (conv : convention).
Variables (M c dk dv : nat) (X : 'M[R]_(M, c)).

(** SAttn(X) = Attn_W(X,X,X). *)
Theorem reduction_self (W : weights R c c c dk dv) : sattn e scale W X = attn_w e scale W X X X.
Proof. exact: self_is_attention. Qed.

(** MSAttn_B(X) = MAttn_W,B(X,X,X). *)
Theorem reduction_masked_self (W : weights R c c c dk dv) (B : 'M[score R]_M) :
  msattn e scale W conv B X = mattn_w e scale conv W B X X X.
Proof. exact: self_is_attention__masked. Qed.

(** MHSAttn(X) = MHAttn(X,X,X). *)
Theorem reduction_mh_self h d_o (W : 'I_h -> weights R c c c dk dv) (Wo : projection R (h * dv) d_o) :
  mhsattn e scale W Wo X = mhattn e scale W Wo X X X.
Proof. exact: mhsattnE. Qed.

(** MMHSAttn_B(X) = MMHAttn_B(X,X,X). *)
Theorem reduction_mmh_self h d_o (W : 'I_h -> weights R c c c dk dv) (Wo : projection R (h * dv) d_o)
    (B : 'I_h -> 'M[score R]_M) :
  mmhsattn e scale conv W Wo B X = mmhattn e scale conv W Wo B X X X.
Proof. exact: mmhsattnE. Qed.

End Self.
