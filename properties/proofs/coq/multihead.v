(** MHAttn, MMHAttn, MHSAttn, MMHSAttn (000), the sum over heads (002), packed projections (001, 003), PyTorch's special
    case. Biases are arbitrary throughout: "without biases" is the case 0. *)

From mathcomp Require Import all_ssreflect all_fingroup all_algebra.
From Attest Require Import definitions basics attention masked weights self.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Rows.
Variables (R : realFieldType) (e : exponential R) (scale : R) (conv : convention).
Variables (cq ck cv dk dv d_o h : nat).
Variables (W : 'I_h -> weights R cq ck cv dk dv) (Wo : projection R (h * dv) d_o).
Local Notation MMHAttn := (mmhattn e scale conv W Wo).
Local Notation MHAttn := (mhattn e scale W Wo).

Lemma mmhattn_local M M' N (B : 'I_h -> 'M_(M, N)) (B' : 'I_h -> 'M_(M', N)) (Q : 'M_(M, cq)) (Q' : 'M_(M', cq))
    (K K' : 'M_(N, ck)) (V V' : 'M_(N, cv)) i i' :
    (forall m, row i (B m) = row i' (B' m)) -> row i Q = row i' Q' ->
    (forall m j, B m i j != hidden -> row j K = row j K' /\ row j V = row j V') ->
  row i (MMHAttn B Q K V) = row i' (MMHAttn B' Q' K' V').
Proof.
move=> BB' QQ' KV; apply/project_local/beside_local => m; apply: mattn_local => // [|j /KV[? ?]].
  exact: project_local.
by split; apply: project_local.
Qed.

Lemma mmhattn_rowsub M M' N (f : 'I_M' -> 'I_M) (B : 'I_h -> 'M_(M, N)) (Q : 'M_(M, cq)) (K : 'M_(N, ck))
    (V : 'M_(N, cv)) :
  MMHAttn (fun m => rowsub f (B m)) (rowsub f Q) K V = rowsub f (MMHAttn B Q K V).
Proof.
by apply/row_matrixP => i; rewrite row_rowsub; apply: mmhattn_local => // [m|]; rewrite row_rowsub.
Qed.

(** MHAttn(Q,K,V) = MMHAttn_0(Q,K,V): what is proved for masks holds without them. *)
Lemma mmhattn_zero_mask M N (Q : 'M_(M, cq)) (K : 'M_(N, ck)) (V : 'M_(N, cv)) :
  MMHAttn (fun=> zero_mask R M N) Q K V = MHAttn Q K V.
Proof. by congr project; apply: eq_beside => m; apply: mattn_w_zero_mask. Qed.

Lemma mhattn_rowsub M M' N (f : 'I_M' -> 'I_M) (Q : 'M_(M, cq)) (K : 'M_(N, ck)) (V : 'M_(N, cv)) :
  MHAttn (rowsub f Q) K V = rowsub f (MHAttn Q K V).
Proof.
rewrite -!mmhattn_zero_mask -mmhattn_rowsub; congr project; apply: eq_beside => m.
by rewrite rowsub_zero_mask.
Qed.

Variables (M N : nat).
Implicit Types (B : 'I_h -> 'M[score R]_(M, N)) (Q : 'M[R]_(M, cq)) (K : 'M[R]_(N, ck)) (V : 'M[R]_(N, cv)).

Theorem multihead_query_deletion i Q K V : row' i (MHAttn Q K V) = MHAttn (row' i Q) K V.
Proof. by rewrite !row'Esub mhattn_rowsub. Qed.

(** With B_m^(i) in head m. *)
Theorem multihead_masked_query_deletion i B Q K V :
  row' i (MMHAttn B Q K V) = MMHAttn (fun m => row' i (B m)) (row' i Q) K V.
Proof. by rewrite !row'Esub -mmhattn_rowsub. Qed.

(** MHAttn(R_pi Q, R_sigma K, R_sigma V) = R_pi MHAttn(Q,K,V), with biases too. *)
Theorem multihead_permutation_equivariance (pi : 'S_M) (sigma : 'S_N) Q K V :
  MHAttn (row_perm pi Q) (row_perm sigma K) (row_perm sigma V) = row_perm pi (MHAttn Q K V).
Proof.
have keys P : MHAttn P (row_perm sigma K) (row_perm sigma V) = MHAttn P K V.
  congr project; apply: eq_beside => m; rewrite -[P in LHS]row_perm1.
  by rewrite weights_permutation_equivariance_with_bias row_perm1.
by rewrite keys !row_permEsub mhattn_rowsub.
Qed.

(** One function for every M and N. *)
Theorem multihead_any_length M' Q (Q' : 'M_(M', cq)) K V :
  MHAttn (col_mx Q Q') K V = col_mx (MHAttn Q K V) (MHAttn Q' K V).
Proof.
apply/row_matrixP => i; case: (split_ordP i) => l ->; rewrite ?rowKu ?rowKd -!mmhattn_zero_mask;
  apply: mmhattn_local => // [m|]; rewrite ?rowKu ?rowKd //; by apply/rowP => j; rewrite !mxE.
Qed.

Theorem multihead_any_length__no_query (Q : 'M_(0, cq)) K V : MHAttn Q K V = 0.
Proof. exact: flatmx0. Qed.

(** -oo at (i,s) in every head => o_i is independent of k_s and v_s. *)
Theorem multihead_suppression i s B Q K K' V V' :
    (forall m, B m i s = hidden) -> (forall l, l != s -> row l K = row l K' /\ row l V = row l V') ->
  row i (MMHAttn B Q K V) = row i (MMHAttn B Q K' V').
Proof.
move=> Bis KV; apply: mmhattn_local => // m j Bij; apply: KV.
by apply: contraNneq Bij => ->; rewrite Bis.
Qed.

(** Column s is -oo in every head => the key and the value may be deleted. *)
Theorem multihead_key_value_deletion s B Q K V :
  (forall m i, B m i s = hidden) -> MMHAttn B Q K V = MMHAttn (fun m => col' s (B m)) Q (row' s K) (row' s V).
Proof. by move=> Bs; congr project; apply: eq_beside => m; apply: weights_key_value_deletion. Qed.

(** [O_1 | ... | O_h] W_o + b_o = sum_h O_h W_o^h + b_o. *)
Theorem multihead_concat_is_sum B Q K V : MMHAttn B Q K V = mmhattn_as_sum e scale conv W Wo B Q K V.
Proof. by rewrite /mmhattn /project mul_beside. Qed.

(** W = [W_1 | ... | W_h] and views are h separate heads. *)
Theorem multihead_fused_projection B Q K V :
  mmhattn_fused e scale conv (fuse (fun m => Wq (W m))) (fuse (fun m => Wk (W m))) (fuse (fun m => Wv (W m))) Wo
    B Q K V =
  MMHAttn B Q K V.
Proof. by congr project; apply: eq_beside => m; rewrite !columns_of_head_fuse. Qed.

(** Permuting the heads, with their masks and the row blocks of W_o, changes nothing. *)
Theorem multihead_head_permutation (pi : 'S_h) B Q K V :
  mmhattn e scale conv (fun m => W (pi m))
    (Projection (above (fun m => rows_of_head (matrix_of Wo) (pi m))) (bias_of Wo)) (fun m => B (pi m)) Q K V =
  MMHAttn B Q K V.
Proof.
rewrite /mmhattn /project !mul_beside [in RHS](reindex_inj (@perm_inj _ pi)); congr (_ + _).
by apply: eq_bigr => m _; rewrite aboveK.
Qed.

(** add_bias_kv: a permutation of keys and values, with the columns of the masks, still changes nothing ... *)
Theorem multihead_bias_kv (b_k : 'I_h -> 'rV_dk) (b_v : 'I_h -> 'rV_dv) (sigma : 'S_N) B Q K V :
  mmhattn_bias_kv e scale conv W Wo b_k b_v (fun m => col_perm sigma (B m)) Q (row_perm sigma K) (row_perm sigma V) =
  mmhattn_bias_kv e scale conv W Wo b_k b_v B Q K V.
Proof.
congr project; apply: eq_beside => m; rewrite !row_permEsub col_permEsub -!rowsub_project.
have total_perm i : total e (masked_scores scale conv (colsub sigma (B m)) (project (Wq (W m)) Q)
      (rowsub sigma (project (Wk (W m)) K))) i =
    total e (masked_scores scale conv (B m) (project (Wq (W m)) Q) (project (Wk (W m)) K)) i.
  rewrite masked_scores_gather /total [RHS](reindex_inj (@perm_inj _ sigma)).
  by apply: eq_bigr => j _; rewrite mxE.
apply/matrixP => i a; rewrite !attention_split_merge__weighted total_perm mattn_gather_bij //.
exact/injF_bij/perm_inj.
Qed.

(** ... and the appended row is visible, so that no row is fully masked, whatever the masks hide. *)
Theorem multihead_bias_kv__visible B m i : sees_a_key (row_mx (B m) (const_mx (Some 0) : 'M[score R]_(M, 1))) i.
Proof. by exists (rshift N ord0); rewrite row_mxEr mxE. Qed.

End Rows.

Section Self.
Variables (R : realFieldType) (e : exponential R) (scale : R) (conv : convention).
Variables (c dk dv d_o h : nat).
Variables (W : 'I_h -> weights R c c c dk dv) (Wo : projection R (h * dv) d_o).

Lemma mmhsattnE M (B : 'I_h -> 'M_M) (X : 'M_(M, c)) :
  mmhsattn e scale conv W Wo B X = mmhattn e scale conv W Wo B X X X.
Proof. by []. Qed.

Lemma mhsattnE M (X : 'M_(M, c)) : mhsattn e scale W Wo X = mhattn e scale W Wo X X X.
Proof. by []. Qed.

Variables (M : nat) (B : 'I_h -> 'M[score R]_M).

(** MHSAttn(R_pi X) = R_pi MHSAttn(X), with biases too. *)
Theorem multihead_self_permutation_equivariance (pi : 'S_M) (X : 'M_(M, c)) :
  mhsattn e scale W Wo (row_perm pi X) = row_perm pi (mhsattn e scale W Wo X).
Proof. by rewrite !mhsattnE multihead_permutation_equivariance. Qed.

(** -oo at (i,s) in every head, s != i => o_i is independent of x_s. *)
Theorem multihead_self_suppression i s (X X' : 'M_(M, c)) :
    s != i -> (forall m, B m i s = hidden) -> (forall l, l != s -> row l X = row l X') ->
  row i (mmhsattn e scale conv W Wo B X) = row i (mmhsattn e scale conv W Wo B X').
Proof.
move=> si Bis XX'; apply/project_local/beside_local => m.
exact: self_suppression (Bis m) XX'.
Qed.

(** -oo at (i,s) for all i != s in every head => MMHSAttn_B(X)^(s) = MMHSAttn_{B^<s>}(X^(s)). *)
Theorem multihead_self_input_deletion s (X : 'M_(M, c)) :
    (forall m i, i != s -> B m i s = hidden) ->
  row' s (mmhsattn e scale conv W Wo B X) = mmhsattn e scale conv W Wo (fun m => row' s (col' s (B m))) (row' s X).
Proof.
move=> Bs; rewrite /mmhsattn row'Esub rowsub_project rowsub_beside; congr project; apply: eq_beside => m.
by rewrite -row'Esub self_input_deletion // => i; apply: Bs.
Qed.

(** h separate heads on X, concatenated, then W_o (003's first class) are the view form with the same weights. *)
Theorem multihead_v1_is_fused (X : 'M_(M, c)) :
  project Wo (beside (fun m => msattn e scale (W m) conv (B m) X)) =
  mmhattn_fused e scale conv (fuse (fun m => Wq (W m))) (fuse (fun m => Wk (W m))) (fuse (fun m => Wv (W m))) Wo
    B X X X.
Proof. by rewrite multihead_fused_projection. Qed.

End Self.

Section Packed.
Variables (R : realFieldType) (M c dk dv h : nat).
Variables (Pq : 'I_h -> projection R c dk) (Pk : 'I_h -> projection R c dk) (Pv : 'I_h -> projection R c dv).
Variable (X : 'M[R]_(M, c)).

(** One product with the matrix whose columns are, per head, [Q_m | K_m | V_m], then split: the separate products. *)
Theorem multihead_packed_qkv m :
  let packed := project (fuse (fun m => side_by_side (Pq m) (side_by_side (Pk m) (Pv m)))) X in
  let head := columns_of_head packed m in
  [/\ lsubmx head = project (Pq m) X, lsubmx (rsubmx head) = project (Pk m) X
    & rsubmx (rsubmx head) = project (Pv m) X].
Proof. by rewrite /= columns_of_head_fuse !project_side_by_side !(row_mxKl, row_mxKr). Qed.

(** The same for the blocks [Q | K | V] with the heads side by side in each: 001's code. *)
Theorem multihead_packed_qkv__blocks m :
  let packed := project (side_by_side (fuse Pq) (side_by_side (fuse Pk) (fuse Pv))) X in
  [/\ columns_of_head (lsubmx packed) m = project (Pq m) X,
      columns_of_head (lsubmx (rsubmx packed)) m = project (Pk m) X
    & columns_of_head (rsubmx (rsubmx packed)) m = project (Pv m) X].
Proof. by rewrite /= !project_side_by_side !(row_mxKl, row_mxKr) !columns_of_head_fuse. Qed.

End Packed.

(** 001's index (mu B a), B in {Q, K, V}, where dk = dv = p: column mu 3p + B p + a of one product holds the head's
    own. *)
Theorem multihead_packed_qkv__index (R : realFieldType) M c p h (P : 'I_h -> 'I_3 -> projection R c p)
    (X : 'M[R]_(M, c)) (i : 'I_M) (mu : 'I_h) (b : 'I_3) (a : 'I_p) :
  project (fuse (fun mu => fuse (P mu))) X i (fused mu (fused b a)) = project (P mu b) X i a /\
  fused mu (fused b a) = (mu * (3 * p) + (b * p + a))%N :> nat.
Proof.
split=> //; rewrite -columns_of_head_fuse [RHS]mxE -(columns_of_head_fuse (fun mu => fuse (P mu))).
by rewrite [in RHS]mxE.
Qed.

Section Torch.
Variables (R : realFieldType) (e : exponential R) (scale : R) (conv : convention).
Variables (M N ck cv h dh : nat).
Local Notation d := (h * dh)%N.
Variables (out_weight : 'M[R]_d) (out_bias : 'rV[R]_d) (B : 'I_h -> 'M[score R]_(M, N)).
Variables (Aq : 'M[R]_d) (Ak : 'M[R]_(d, ck)) (Av : 'M[R]_(d, cv)) (bq bk bv : 'rV[R]_d).

(** The weights of 000 that PyTorch's parameters are: head m has the m-th block of columns of A^T. *)
Definition torch_head c (A : 'M[R]_(d, c)) (b : 'rV[R]_d) (m : 'I_h) : projection R c dh :=
  Projection (columns_of_head A^T m) (columns_of_head b m).

Lemma torch_headE n c (A : 'M[R]_(d, c)) (b : 'rV[R]_d) (X : 'M_(n, c)) m :
  columns_of_head (linear A b X) m = project (torch_head A b m) X.
Proof.
rewrite -[linear A b X]/(project (Projection A^T b) X) -columns_of_head_fuse; congr columns_of_head.
by rewrite /fuse /= !columns_of_headK.
Qed.

(** dk = dv = d/h, c_q = d_o = d, c_k and c_v free, is the special case ... *)
Theorem multihead_torch_case (Q : 'M_(M, d)) (K : 'M_(N, ck)) (V : 'M_(N, cv)) :
  torch_separate e scale conv out_weight out_bias B Aq Ak Av (row_mx bq (row_mx bk bv)) Q K V =
  mmhattn e scale conv (fun m => Weights (torch_head Aq bq m) (torch_head Ak bk m) (torch_head Av bv m))
    (Projection out_weight^T out_bias) B Q K V.
Proof.
rewrite /torch_separate !(row_mxKl, row_mxKr) -[linear out_weight out_bias _]/(project (Projection _ _) _).
by congr project; apply: eq_beside => m; rewrite !torch_headE.
Qed.

(** ... and where c_k = c_v = d the packed matrix is the same as three. *)
Theorem multihead_torch_case__packed (A A' A'' : 'M[R]_d) (b : 'rV[R]_(d + (d + d))) (Q : 'M_(M, d)) (K V : 'M_(N, d)) :
  torch_packed e scale conv out_weight out_bias B (col_mx A (col_mx A' A'')) b Q K V =
  torch_separate e scale conv out_weight out_bias B A A' A'' b Q K V.
Proof.
have split n (X : 'M_(n, d)) : linear (col_mx A (col_mx A' A'')) b X =
    row_mx (linear A (lsubmx b) X) (row_mx (linear A' (lsubmx (rsubmx b)) X) (linear A'' (rsubmx (rsubmx b)) X)).
  rewrite -{1}[b]hsubmxK -{1}[rsubmx b]hsubmxK /linear /ones_times !tr_col_mx !mul_mx_row !add_row_mx.
  by [].
by rewrite /torch_packed !split !(row_mxKl, row_mxKr).
Qed.

End Torch.

(** False: -oo at (i,s) in some but not all heads suffices. Every exponential refutes it. *)
Theorem multihead_partial_mask_leaks (R : realFieldType) (e : exponential R) (scale : R) (conv : convention) :
  ~ (forall M N cq ck cv dk dv d_o h (W : 'I_h -> weights R cq ck cv dk dv) (Wo : projection R (h * dv) d_o)
        (B : 'I_h -> 'M[score R]_(M, N)) (Q : 'M_(M, cq)) (K : 'M_(N, ck)) (V V' : 'M_(N, cv)) i s,
       (forall m i, sees_a_key (B m) i) -> (exists m, B m i s = hidden) -> (forall l, l != s -> row l V = row l V') ->
     row i (mmhattn e scale conv W Wo B Q K V) = row i (mmhattn e scale conv W Wo B Q K V')).
Proof.
move=> same.
pose W (m : 'I_2) : weights R 1 1 1 1 1 := Weights (Projection 0 0) (Projection 0 0) (Projection 1%:M 0).
pose allowed (m : 'I_2) : 'M[bool]_(1, 2) := \matrix_(i, j) ((m != 0) || (j == 0)).
pose B m := additive R (allowed m).
have B_sees m i : sees_a_key (B m) i by exists 0; rewrite !mxE orbT.
have B_some : exists m, B m 0 1 = hidden by exists 0; rewrite !mxE.
have VV' (l : 'I_2) : l != 1 -> row l (0 : 'M[R]_(2, 1)) = row l (delta_mx 1 0).
  by move=> l1; apply/rowP => a; rewrite !mxE (negPf l1).
have /rowP/(_ (fused 1 0)) :=
  same 1%N 2%N 1%N 1%N 1%N 1%N 1%N _ 2%N W (Projection 1%:M 0) B 0 0 _ _ 0 1 B_sees B_some VV'.
have project0 n X : project (Projection 0 0 : projection R 1 1) X = 0 :> 'M_(n, 1).
  by rewrite /project /ones_times /= !mulmx0 addr0.
have projectI n m (X : 'M[R]_(n, m)) : project (Projection 1%:M 0) X = X.
  by rewrite /project /ones_times /= mulmx1 mulmx0 addr0.
rewrite [LHS]mxE [RHS]mxE /mmhattn !projectI [LHS]mxE [RHS]mxE !outerK !innerK.
rewrite /mattn_w /= !project0 !projectI !mattn_flat.
rewrite !big_ord_recl !big_ord0 !mxE /=.
rewrite !add0r !addr0 mul0r mul1r => /esym/eqP.
by rewrite invr_eq0 -(natrD _ 1 1) pnatr_eq0.
Qed.
