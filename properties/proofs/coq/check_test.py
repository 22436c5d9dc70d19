#!/usr/bin/env python3
"""Breaks a development on purpose, this folder's or rounding/: check.py must refuse each broken copy, for the reason
that is expected.

  names   a theorem removed, renamed, stated twice, left unproved; a row added, renamed, wrongly excluded. Needs no Coq.
  stamp   files changed, added, taken away or stamped by hand after they were compiled: check.py and the build must see
          it. Needs no Coq.
  coq     definitions and statements changed so that they are false: Coq must refuse the file. An axiom that the search
          for words does not see: Print Assumptions must show it. After check.py compile.
"""

import argparse
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent

# (what is broken, file, text that occurs once, what stands there instead, what check.py must say)
NAMES = [
    ("a theorem is removed", "softmax.v", "Theorem softmax_row_locality", "Lemma row_locality",
     "softmax.row-locality is neither proved"),
    ("a theorem is renamed", "attention.v", "Theorem attention_one_key", "Theorem attention_single_key",
     "attention_single_key is the name of no row"),
    ("a theorem is commented out", "layout.v", "Theorem layout_index_fusion h", "(* Theorem layout_index_fusion *) Lemma f h",
     "layout.index-fusion is neither proved"),
    ("a theorem is stated twice", "softmax.v", "Theorem softmax_monotone", "Theorem softmax_row_locality",
     "softmax_row_locality is stated twice"),
    ("a proof is left out", "softmax.v", "Proof. exact: softmax_sum. Qed.", "Proof. Admitted.", "softmax.v has 'Admitted'"),
    ("an axiom", "basics.v", "Section Softmax.", "Axiom easy : False.\nSection Softmax.", "basics.v has 'Axiom'"),
    ("a parameter", "basics.v", "Section Softmax.", "Parameter easy : False.\nSection Softmax.", "basics.v has 'Parameter'"),
    ("a check of Coq is off", "basics.v", "Section Softmax.", "Unset Guard Checking.\nSection Softmax.", "Unset Guard Checking"),
    ("a file is not compiled", "_CoqProject", "self.v", "", "self.v is not in _CoqProject"),
    ("a proved row is excluded too", "not_here.txt", "attention.strides:", "softmax.monotone: no\nattention.strides:",
     "softmax.monotone is both proved and in not_here.txt"),
    ("an excluded row is gone", "not_here.txt", "attention.strides:", "# ", "attention.strides is neither proved"),
    ("an excluded row is none", "not_here.txt", "attention.strides:", "attention.stride: no\nattention.strides:",
     "attention.stride, which is no row"),
    ("no reason", "not_here.txt", "attention.strides:", "attention.strides\n# ", "gives no reason"),
    ("a row is new", "theorems.md", "| `softmax.monotone`", "| `softmax.novel` | x | | |\n| `softmax.monotone`",
     "softmax.novel is neither proved"),
    ("a row is renamed", "theorems.md", "`batch.independence` | entry", "`batch.separate` | entry",
     "batch_independence is the name of no row"),
    ("a reduction is renamed", "theorems.md", "`reduction.mh-self`", "`reduction.mhself`",
     "reduction.mhself is neither proved"),
]

# (what is broken, file, text that occurs once, what stands there instead): false, so Coq must refuse this file or a later one.
FALSE = [
    ("a hidden key has weight 1", "definitions.v", "R := oapp e 0 s.", "R := oapp e 1 s."),
    ("the softmax is not normalised", "definitions.v",
     "\\matrix_(i, j) (weight (S i j) / total S i).", "\\matrix_(i, j) weight (S i j)."),
    ("a mask that hides nothing", "definitions.v", "if allowed i j then Some (A i j) else hidden", "Some (A i j)"),
    ("post-scale is pre-scale", "definitions.v", "| post_scale => scale * qk + b end", "| post_scale => scale * (qk + b) end"),
    ("the causal mask is anticausal", "definitions.v", "\\matrix_(i, j) (j <= i)%N.", "\\matrix_(i, j) (i <= j)%N."),
    ("merging does not rescale", "definitions.v", "from (x : partial M dv) i := e (reference x i 0 - r i 0) in",
     "from (x : partial M dv) (i : 'I_M) := 1 in"),
    ("fused indices run the other way", "definitions.v", "Definition outer (x : 'I_(h * d)) : 'I_h := Ordinal (outer_bound x).",
     "Definition outer (x : 'I_(h * d)) : 'I_h := rev_ord (Ordinal (outer_bound x))."),
    ("rows sum to one without a visible key", "softmax.v",
     "softmax_rows_sum_to_one m n (S : 'M[score R]_(m, n)) i : sees_a_key S i ->",
     "softmax_rows_sum_to_one m n (S : 'M[score R]_(m, n)) (i : 'I_m) : True ->"),
    ("monotone for every exponential", "softmax.v", "    {homo e : a b / a <= b} ->\n", "    True ->\n"),
    ("only the keys are permuted", "attention.v", "Attention Q (row_perm sigma K) (row_perm sigma V) = Attention Q K V.",
     "Attention Q (row_perm sigma K) V = Attention Q K V."),
    ("repeated no times", "attention.v",
     "(0 < r)%N -> Attention Q (rowsub (@outer N r) K)", "(0 <= r)%N -> Attention Q (rowsub (@outer N r) K)"),
    ("exchanged by a matrix without inverse", "attention.v", "  G \\in unitmx -> Attention (Q *m G)", "  True -> Attention (Q *m G)"),
    ("a key that some row sees is deleted", "masked.v", "  (forall i, B i s = hidden) -> MAttn B Q K V",
     "  (exists i, B i s = hidden) -> MAttn B Q K V"),
    ("masked rows are equivariant without their mask", "masked.v", "MAttn (row_perm pi (col_perm sigma B)) (row_perm pi Q)",
     "MAttn B (row_perm pi Q)"),
    ("causal attention sees one key more", "causal.v",
     "    (forall j : 'I_N, (j <= i)%N -> row j K = row j K' /\\ row j V = row j V') ->\n  row i (MAttn (additive (causal_top_left",
     "    (forall j : 'I_N, (j < i)%N -> row j K = row j K' /\\ row j V = row j V') ->\n  row i (MAttn (additive (causal_top_left"),
    ("a prefix with fewer keys than queries", "causal.v", "    (m <= n)%N ->\n  usubmx", "    (n <= m)%N ->\n  usubmx"),
    ("an append over the last key", "append.v", "if (n <= j)%N then insub (j - n)%N else None",
     "if (n.-1 <= j)%N then insub (j - n.-1)%N else None"),
    ("an append to a cache that holds keys forgets them", "append.v", "    length s = first s -> (forall t, g t",
     "    (first s <= length s)%N -> (forall t, g t"),
    ("an append ignores where a page ends", "append.v", "insub (key %/ page)%N is", "insub (length (outer y) %/ page)%N is"),
    ("an append of two tokens to one slot", "append.v", "(from s' <= c' * page + j < length s' + L)%N",
     "(from s' <= c' * page + j < length s')%N"),
    ("a sink is left out of the sum", "sink.v", "R := total e S i + weight e sigma.", "R := total e S i."),
    ("D is left out", "gradients.v", "(of_shares kept V G i j - delta S sigma kept V G i + c i 0)).",
     "(of_shares kept V G i j + c i 0))."),
    ("D of what is kept counts that twice", "gradients.v", "R := \\sum_j shares S sigma i j * of_shares kept V G i j.",
     "R := \\sum_j applied S sigma kept i j * of_shares kept V G i j."),
    ("dropout is left out of dP", "gradients.v", "\\matrix_(i, j) (kept i j * (G *m V^T) i j).", "G *m V^T."),
    ("the gradient by a log-sum-exp has the other sign", "gradients.v",
     "- delta S sigma kept V G i + c i 0)).", "- delta S sigma kept V G i - c i 0))."),
    ("the gradient by a sink has the other sign", "gradients.v",
     "  - \\sum_i share_of_sink S sigma i * (delta", "  \\sum_i share_of_sink S sigma i * (delta"),
    ("dV of weights before dropout", "gradients.v", "'M[R]_(N, dv) := (applied S sigma kept)^T *m G.",
     "'M[R]_(N, dv) := (shares S sigma)^T *m G."),
    ("dK is not scaled", "gradients.v", "'M[R]_(N, dk) := scale *: ((of_products slope ds)^T *m Q).",
     "'M[R]_(N, dk) := (of_products slope ds)^T *m Q."),
    ("dV adds up to dO over rows that see none", "gradients.v",
     "  \\sum_j dV e S hidden one G j d = \\sum_(i | [exists j, S i j != hidden]) G i d.\nProof.\nrewrite /dV;",
     "  \\sum_j dV e S hidden one G j d = \\sum_i G i d.\nProof.\nrewrite /dV;"),
    ("dK adds up to 0 under a cap", "gradients.v", "  \\sum_j dK scale one (ds_of S hidden kept V G 0) Q j d = 0.",
     "  \\sum_j dK scale kept (ds_of S hidden kept V G 0) Q j d = 0."),
    ("a sink is shifted against the mask", "sink.v", "  Sunk (omap (fun s => s + t) sigma) B' Q K V = Sunk sigma B Q K V /\\",
     "  Sunk (omap (fun s => s - t) sigma) B' Q K V = Sunk sigma B Q K V /\\"),
    ("what is kept is not divided by 1 - p", "dropout.v", "((keep i j)%:R * P i j / (1 - p)).", "((keep i j)%:R * P i j)."),
    ("masks that share a key", "dropout.v", "(forall i j, ~~ (keep i j && keep' i j)) ->", "True ->"),
    ("masks are as likely as those of the others", "dropout.v",
     "  p ^+ #|[pred x | ~~ keep x]| * (1 - p) ^+ #|[pred x | keep x]|.",
     "  p ^+ #|[pred x | keep x]| * (1 - p) ^+ #|[pred x | ~~ keep x]|."),
    ("a key that is not dropped is deleted", "dropout.v",
     "    (forall i, keep i s = false) -> (forall i j, j != s -> keep i j = keep' i j) ->",
     "    (forall i, keep i s = true) -> (forall i j, j != s -> keep i j = keep' i j) ->"),
    ("masks that hide the same key differ", "shown.v", "  ~~ A i j -> A' i j -> MAttn", "  ~~ A i j -> True -> MAttn"),
    ("a row sees a key that is not its own", "shown.v", "(forall i j, A (f i) j -> j \\in codom g) ->", "True ->"),
    ("a chunk begins a key early", "chunk.v", "(j%:Z %/ C == p i %/ C)%Z.", "(j.+1%:Z %/ C == p i %/ C)%Z."),
    ("rows before the first key see the first chunk", "chunk.v", "(j%:Z %/ C == p i %/ C)%Z.",
     "(j%:Z %/ C == Order.max 0%:Z (p i) %/ C)%Z."),
    ("one key less is no chunk", "chunk.v", "    (N <= C)%N -> (forall i, 0 <= p i < C) ->",
     "    (N <= C.+1)%N -> (forall i, 0 <= p i < C) ->"),
    ("no chunk wherever the rows stand", "chunk.v",
     "    (N <= C)%N -> (forall i, 0 <= p i < C) ->", "    (N <= C)%N ->"),
    ("chunks of all keys hide some", "chunk.v", "  MAttn (additive (chunk_bottom_right N.+1 M.+1 N.+2)) 0 K 1%:M <>",
     "  MAttn (additive (chunk_bottom_right N.+2 M.+1 N.+2)) 0 K 1%:M <>"),
    ("chunks of one key are no window", "chunk.v",
     "  ((1 < C < M)%N -> (1 < N)%N ->", "  ((0 < C < M)%N -> (1 < N)%N ->"),
    ("chunks leave out the mask", "chunk.v", "p i %/ C)%Z, window i j, causal i j & allowed i j] in",
     "p i %/ C)%Z, window i j & causal i j] in"),
    ("a row depends on the next chunk alone", "chunk.v", "(j%:Z %/ C)%Z = (p i %/ C)%Z -> row j K",
     "(j%:Z %/ C)%Z = (p i %/ C)%Z + 1 -> row j K"),
    ("a chunk is alone in the other alignment", "chunk.v",
     "  let W := window_bottom_right L R' in\n", "  let W := window_top_left L R' in\n"),
    ("a chunk has all rows from its first key on", "chunk.v",
     "let m := minn C (M - b) in\n  forall", "let m := (M - b)%N in\n  forall"),
    ("a part of a chunk is deleted in front", "chunk.v", "    (0 < C)%N -> (C %| n)%N -> (M <= N)%N ->",
     "    (0 < C)%N -> (M <= N)%N ->"),
    ("a row's own chunk is deleted", "chunk.v", "    (0 < C)%N -> (C %| n)%N -> (M <= N)%N ->",
     "    (0 < C)%N -> (C %| n)%N ->"),
    ("the end of a row's chunk is deleted", "chunk.v", "    (forall i : 'I_M, i %/ C < N %/ C)%N ->",
     "    (forall i : 'I_M, i < N)%N ->"),
    ("one query sees the last C keys", "chunk.v", "((n + l.+1 - 1) %% C)%N = l ->", "l.+1 = C ->"),
    ("a longer chunk holds a shorter one", "chunk.v", "  (C %| C')%N -> lse_of", "  (C <= C')%N -> lse_of"),
    ("chunks of two keys hold one", "chunk.v",
     "  let W := chunk_top_left 1 M M in", "  let W := chunk_top_left 2 M M in"),
    ("a distance has a sign", "alibi.v", "\\matrix_(i, j) omap (fun s => s - m * `|p i - j%:R|) (S i j).",
     "\\matrix_(i, j) omap (fun s => s - m * (p i - j%:R)) (S i j)."),
    ("positions count from the first key alone", "definitions.v", "int := (i + N)%:Z - M%:Z.",
     "int := (i + N)%:Z - N%:Z."),
    ("columns are distances where keys behind are seen", "alibi.v", "    (forall i j, B i j != hidden -> j%:R <= p i) ->",
     "    True ->"),
    ("a slope grows with the number of keys", "alibi.v", "    causal_row p allowed i n -> (j <= n)%N -> e (- (m * n.+1%:R)) != 1 ->",
     "    causal_row p allowed i n.+1 -> (j <= n)%N -> e (- (m * n.+1%:R)) != 1 ->"),
    ("slopes are added before the cap", "alibi.v",
     "  let P := softmax e (sloped m p (capped_scores c (additive R allowed) (0 : 'M_(M, dk)) K)) in",
     "  let P := softmax e (map_mx (omap (cap c)) (sloped m p (capped_scores c (additive R allowed) (0 : 'M_(M, dk)) K))) in"),
    ("factors of keys are left out of the scores", "descale.v", "after i j (f i * g j * (Q *m K^T) i j).",
     "after i j (f i * (Q *m K^T) i j)."),
    ("factors of values are left out of the output", "descale.v", "softmax e S i j * w j * V j c,",
     "softmax e S i j * V j c,"),
    ("a block's last row has the factor of the next block", "descale.v", "R := f (i %/ size)%N.",
     "R := f (i.+1 %/ size)%N."),
    ("a factor is the scale's where the mask is scaled", "descale.v",
     "  mattn e scale post_scale B (a *: Q) K V = mattn e (scale * a) post_scale B Q K V /\\",
     "  mattn e scale pre_scale B (a *: Q) K V = mattn e (scale * a) pre_scale B Q K V /\\"),
    ("factors of queries and of keys both grow", "descale.v", "(fun i => a * f i) (fun j => g j / a)",
     "(fun i => a * f i) (fun j => g j * a)"),
    ("factors of a block with one hidden key do not matter", "descale.v",
     "    (forall j : 'I_N, (j %/ size)%N = t -> B i j = hidden) ->",
     "    (exists2 j : 'I_N, (j %/ size)%N = t & B i j = hidden) ->"),
    ("a head whatever its factors of keys", "descale.v", "g b (outer h) =1 g' b' (outer h') -> w b", "w b"),
    ("the value bias passes where no key is seen", "weights.v", "    (forall i, sees_a_key B i) ->\n  MAttn_W", "    True ->\n  MAttn_W"),
    ("s may be i", "self.v", "  s != i -> B i s = hidden ->", "  s == i -> B i s = hidden ->"),
    ("refuted without non-constant exponentials", "position.v", "    (exists a, e a != 1) -> scale != 0 ->",
     "    (exists a : R, a != 1) -> scale != 0 ->"),
    ("one head is enough", "multihead.v",
     "    (forall m, B m i s = hidden) -> (forall l, l != s -> row l K",
     "    (exists m, B m i s = hidden) -> (forall l, l != s -> row l K"),
    ("heads are permuted, W_o is not", "multihead.v",
     "(Projection (above (fun m => rows_of_head (matrix_of Wo) (pi m))) (bias_of Wo)) (fun m => B (pi m)) Q K V =",
     "Wo (fun m => B (pi m)) Q K V ="),
    ("an entry of a batch whatever its mask", "batch.v", "    B b = B' b -> rows_of_head Q b", "    True -> rows_of_head Q b"),
    ("the mask is not transposed", "layout.v", "mattn_columns e scale allowed^T Q^T", "mattn_columns e scale (const_mx true) Q^T"),
]

# The same of rounding/.
NAMES_OF_ROUNDING = [
    ("a theorem is removed", "bound.v", "Theorem attention_error", "Lemma attention_error",
     "README.md names attention_error_by, which is no theorem"),
    ("a theorem is nowhere told", "bound.v", "Lemma centred", "Theorem centred", "centred does not stand in README.md"),
    ("a proof is left out", "sizes.v", "apply known_gain; auto. rewrite Forall_forall in F. auto.\nQed.", "Admitted.",
     "sizes.v has 'Admitted'"),
    ("a theorem is stated in two files", "overflow.v", "Theorem folded_residual_in_range", "Theorem folded_exponent",
     "folded_exponent is stated twice"),
    ("a file is not compiled", "_CoqProject", "sums/entropy.v", "", "sums/entropy.v is not in _CoqProject"),
]
FALSE_OF_ROUNDING = [
    ("nothing underflows", "basics.v", "Definition near (u lam x y : R) := Rabs (y - x) <= u * Rabs x + lam.",
     "Definition near (u lam x y : R) := Rabs (y - x) <= u * Rabs x."),
    ("two roundings add up", "basics.v", "  near ((1 + u1) * (1 + u2) - 1) (l1 * (1 + u2) + l2) x z.",
     "  near (u1 + u2) (l1 * (1 + u2) + l2) x z."),
    ("products of a sum are not rounded", "scores.v", "    ((1 + u) ^ length l - 1) * Sum Rabs l +",
     "    ((1 + u) ^ (length l - 1) - 1) * Sum Rabs l +"),
    ("a bias is added exactly", "scores.v", "    thB * (Rabs s + th_tau * Rabs t) + lamB.\nProof.", "    lamB.\nProof."),
    ("rescalings have exact exponents", "arithmetic.v", ":= xl A + INR r * xr A + (1 + INR r) * eps1.",
     ":= xl A + (1 + INR r) * eps1."),
    ("one exponential for a weight, however often it is rescaled", "arithmetic.v",
     ":= xl A + INR r * xr A + (1 + INR r) * eps1.", ":= xl A + INR r * xr A + eps1."),
    ("large terms are rescaled exactly", "merge.v", "(Rmax 0 (b - 1) + INR r)) * X + (2", "(Rmax 0 (b - 1))) * X + (2"),
    ("the sum of weights is exact", "bound.v", "  Rabs (nh / lh - o) <= S + (EN + (Rabs o + S) * UD) / low.",
     "  Rabs (nh / lh - o) <= S + EN / low."),
    ("errors of exponents at first order", "bound.v", "Definition ph j := alpha J j * (exp (E j) - 1) / Zm.",
     "Definition ph j := alpha J j * E j / Zm."),
    ("a reference that no score reaches", "bound.v", "Definition D j := Mp + gap A -", "Definition D j := Mp -"),
    ("the output is not rounded", "bound.v", "(1 + Uf) * pre + Uf * Rabs (exact J) + lamf.", "pre."),
    ("a running maximum falls", "kernels.v",
     "  let '(m, l, o) := s in let m' := Rmax m (tmax (fst b)) in let c",
     "  let '(m, l, o) := s in let m' := Rmin m (tmax (fst b)) in let c"),
    ("a merge takes the smaller reference", "kernels.v", "let m' := Rmax m1 m2 in\n", "let m' := Rmin m1 m2 in\n"),
    ("a merge rescales one of two", "kernels.v", "(m', rnd (rnd (c1 * l1) + rnd (c2 * l2)),", "(m', rnd (l1 + rnd (c2 * l2)),"),
    ("the document counts no rounding of a product", "documented.v", "Definition cN := (n + 1 + 2 * r)%nat.",
     "Definition cN := (n - 1)%nat."),
    ("the document's weights do not underflow", "documented.v",
     "((1 - upd A) * (1 - u A) ^ (h + 2 * r)) - LDd.", "((1 - upd A) * (1 - u A) ^ (h + 2 * r))."),
    ("a part that is normalised is not rescaled", "split.v", "(final c ts) M y2 (S (S k)) (S (S rc)) (S (S cn)).",
     "(final c ts) M y2 (S (S k)) (S rc) (S (S cn))."),
    ("partial sums without their roundings", "sizes.v", "  Rabs y <= P A w0 k * (gain A r *", "  Rabs y <= 1 * (gain A r *"),
    ("a weight is stored without a loss", "underflow.v",
     "Definition loss (w0 lamw : R) r x :=\n  Rmin lamw (w0 * x) + Rmin",
     "Definition loss (w0 lamw : R) r x :=\n  Rmin"),
    ("a factor that underflows takes nothing", "underflow.v", "<= g * loss w0 lamw (S r) (rho * x).",
     "<= g * loss w0 lamw r (rho * x)."),
    ("stored weights of a sum of weights do not underflow", "stored_weights.v",
     "((w_l A - 1) * p + Rmin (lampd A) (w_l A * p)) * Rabs 1", "((w_l A - 1) * p) * Rabs 1"),
    ("a sum of weights that may be 0 divides", "documented_online.v", "  0 < low_d K s A a J Mp R ops ->",
     "  0 <= low_d K s A a J Mp R ops ->"),
    ("a sum that begins at a bias begins exactly", "score_variants.v",
     "    gs * (Rabs c0 * products) + gs0 * start_size + (1 + gs) * lost_products.\nProof.",
     "    gs * (Rabs c0 * products) + (1 + gs) * lost_products.\nProof."),
    ("log2(e) is too small for every key", "score_variants.v", "    a * (1 + th_l2e) + th_tau",
     "    a * (1 - th_l2e) + th_tau"),
    ("the sum of weights is at least 1, whatever exponents err", "bound.v",
     "Lemma sum_at_least_by : largest_off -> (exists i, In i J /\\ m <= sh i + gap A) -> 1 <= W * F.",
     "Lemma sum_at_least_by : largest_off -> (exists i, In i J /\\ m <= sh i + gap A) -> 1 <= W."),
    ("what is wrong with the scale is a shift and no more", "row.v", "+ eta + th_tau * Rabs (t j - tbar).", "+ eta."),
    ("a folded reference is rounded with the score", "base_two.v", "((1 + u) * (u * Rabs m + lam1) + lam2).",
     "((1 + u) * (u * Rabs sh + lam1) + lam2)."),
    ("no exponent of a folded scale is above 0", "base_two.v", "  sh2 j - nats (M * c) <= rho /\\\n",
     "  sh2 j - nats (M * c) <= 0 /\\\n"),
    ("a bias in units of 2 is not rounded again", "score_programs.v", "if alone f then join u_bc u else u_bc.",
     "if alone f then u_bc else u_bc."),
    ("a scale that errs brings scores nearer", "score_rows.v", "fun j => allowed f j + th_tau * Rabs",
     "fun j => allowed f j - th_tau * Rabs"),
    ("a reference is returned better than exactly", "lse_output.v", "+ u_m * Mabs + lam_m.", "- u_m * Mabs + lam_m."),
    ("values that are off are no larger", "multihead.v", "Definition at_most j := Rabs (v j) + dv j.",
     "Definition at_most j := Rabs (v j)."),
    ("errors of q and of k do not meet", "multihead.v", "+ Rabs (q c) * dk j c + dq c * dk j c) cs.",
     "+ Rabs (q c) * dk j c) cs."),
    ("a head's scores are of exact projections", "multihead_program.v",
     "  th_tau * (Rabs (t h j - tbar h) + ain h j) + ain h j.", "  th_tau * (Rabs (t h j - tbar h) + ain h j)."),
    ("a scale below 1 makes room for products", "overflow.v",
     "(Rmax 1 tau * (absolute + INR dk * eta) + Rabs b + eta) <= H ->",
     "(Rmin 1 tau * (absolute + INR dk * eta) + Rabs b + eta) <= H ->"),
    ("weights add up to 2 at least", "overflow.v", "  plan_fits p /\\ 1 <= l_of (run p) /\\",
     "  plan_fits p /\\ 2 <= l_of (run p) /\\"),
    ("products that cancel take no room", "partial_sums.v", "(Sum Rabs l + INR c * lam) <= H ->\n",
     "(Sum (fun x => x) l + INR c * lam) <= H ->\n"),
    ("no weight is above what its exponent gives", "partial_sums.v", "gain A 0 + lame A <= Hp -> g A <= Hp ->",
     "gain A 0 <= Hp -> g A <= Hp ->"),
    ("a kernel returns its sum of weights", "finite_kernels.v",
     "  is_number (ffinish (frun p)) (finish emin prec (run p)).", "  is_number (ffinish (frun p)) (l_of (run p))."),
    ("only the keys of one sum are hidden", "hidden_keys.v", "only_seen tl = Some tl' -> only_seen to_ = Some to' ->",
     "only_seen tl = Some tl' -> only_seen tl = Some to' ->"),
    ("e^x - 1 is below a parabola", "intervals.v", "exp x - 1 <= exp x * (x - x * x / 2 + x * x * x / 6).",
     "exp x - 1 <= exp x * (x - x * x / 2)."),
    ("the evaluator forgets that products are rounded", "evaluation.v",
     "Definition i_wo := (one +' i_up c) *' (one +' i_u c).", "Definition i_wo := one +' i_up c."),
    ("the evaluator takes the scale for exact", "checked_rows.v", "  map (key_of th i_l2e gs low) (J x).",
     "  map (key_of I.zero i_l2e gs low) (J x)."),
    ("a reference is as far above the scores as it likes", "any_reference.v",
     "  m <= Mp + gap A + Cs -> lo <= l ->", "  m <= Mp + 2 + Cs -> lo <= l ->"),
    ("a sum counts what it is, whatever underflow added", "any_reference.v", "exp (gap A) * (lo - most_lost) ->\n",
     "exp (gap A) * lo ->\n"),
    ("a sum of many terms moves no more than one of them", "entropy.v",
     "let mu := e + theta * (at_ - ln S + ln n) in", "let mu := e + theta * (at_ - ln S) in"),
    ("a running maximum begins at two", "least_sum.v", "Lemma online_sum b bs : fexp 0 = 1 -> 1 <= sum_of",
     "Lemma online_sum b bs : fexp 0 = 1 -> 2 <= sum_of"),
    ("rows of any length are ordinary in binary32", "ordinary_sizes.v", "(r <= 2 ^ 10)%nat ->\n  ordinary",
     "(r <= 2 ^ 30)%nat ->\n  ordinary"),
    ("a merge of parts counts no rescaling", "split.v", "J Mg r ops uf eta.", "J Mg R0 ops uf eta."),
    ("a merge of parts takes no exponentials", "split.v", "e1 * (1 + INR r + 2)", "e1 * (1 + INR r + 0)"),
    ("the log-sum-exp of all is exact", "split_undivided.v", "J Mu r ops)) * exp merge_err - 1.",
     "J Mu r ops)) * exp 0 - 1."),
    ("where nothing is divided nothing errs", "split_decoding.v", "exp of_merge - 1", "exp 0 - 1"),
    ("exp(0) is 2", "split_decoding.v", "  f 0 = 1 /\\", "  f 0 = 2 /\\"),
    ("a fixed number below all scores", "fixed_shift.v", "m - Cs <= s i", "m + Cs <= s i"),
    ("weights that are divided first are not rounded", "divided_first.v", "Rmin (pw A (n + d) * X)",
     "Rmin (pw A (n - d) * X)"),
    ("a division of weights loses nothing by underflow", "divided_first.v", "lamp := lamp A + (1 + up A) * lam A;",
     "lamp := lamp A;"),
    ("the evaluator knows of no division of weights", "checked_divided.v",
     "(2 * length (r_keys x) - 1) (a_divisions c) (exactly", "(2 * length (r_keys x) - 1) 0 (exactly"),
    ("a reciprocal and a product round once", "normalise_first.v",
     "  rounded (un prec 2) eta (w / l) (rnd (w * rnd (1 / l))).", "  rounded (un prec 1) eta (w / l) (rnd (w * rnd (1 / l)))."),
    ("half as much is enough for two keys", "exact_rows.v", "(claims32 1) (two_keys (N 1 (-20)))",
     "(claims32 1) (two_keys (N 1 (-21)))"),
    ("half as much is enough for two keys in parts", "exact_rows.v", "(N 1 (-18)) (N 1 (-2)) (N 0 0) []) = true",
     "(N 1 (-19)) (N 1 (-2)) (N 0 0) []) = true"),
    ("the evaluator rounds log-sum-exps as if scores were small", "checked_split.v",
     "(add (i_lse_err log (i_size_from top k)) e1)", "(add (i_lse_err log i_common) e1)"),
    ("a part's weight errs once, divided last or not", "checked_split.v",
     "  add (mul (exactly (a_u a)) size) (mul (mul (of_Z prec 2) i_exponent) i_ln_n).",
     "  add (mul (exactly (a_u a)) size) (mul i_exponent i_ln_n)."),
    ("a part is divided by its sum without a rescaling", "merged_parts.v", "M y2 (k + 1 + divisions) (rc + 1 + divisions)",
     "M y2 (k + 1 + divisions) (rc + divisions)"),
    ("a sum of a declared depth rounds no product", "documented.v", "Definition acc := refined (pw (h + 1 + 2 * r) * size)",
     "Definition acc := refined (pw (h + 2 * r) * size)"),
    ("sums that are truncated drop their small terms", "documented.v", "if nearest A then Rmin x y else x.", "Rmin x y."),
    ("a folded reference is exact", "checked_rows.v", "Definition a_of j := a_score j + own_of j.",
     "Definition a_of j := a_score j."),
    ("the largest score has an exact reference", "checked_rows.v", "last := (1 + thE_of) * by_reference size_of_last;",
     "last := 0;"),
    ("a reference is no further from 0 than its score", "checked_rows.v",
     "Rmax (Rabs (s_of j) + a_whole j + #(a_lazy c)) most_score.", "Rabs (s_of j) + a_whole j + #(a_lazy c)."),
    ("log2(e) is exact", "checked_rows.v", "Rabs (t_of j - centre) + th_l2e * Rabs (s_of j - middle).",
     "Rabs (t_of j - centre)."),
    ("half as much is enough for exponents of base 2", "exact_rows.v", "(two_keys (N 4 (-22)))", "(two_keys (N 2 (-22)))"),
    ("what underflows is not divided by the sum of weights", "implemented.v", "Definition factor := 2 * factor_grown *",
     "Definition factor := 1 * factor_grown *"),
    ("no product with a value is rounded in the refined sum", "implemented.v", "Definition local := (1 + 2 * R_ +",
     "Definition local := (0 + 2 * R_ +"),
    ("a maximum that lags lets no weight grow", "implemented.v", "exp ((1 + thE A) * T A + c_m e / 2)).",
     "exp (T A + c_m e / 2))."),
    ("rounded weights are summed without a loss of the sum's own", "implemented.v",
     "Definition lam_rounded := lampd A + Rmin (lampd A) lam_a.", "Definition lam_rounded := lampd A."),
    ("sums lose more than there is room for", "implemented.v", "(lame A + lam A) * twice A <= 4 * lame A.",
     "(lame A + lam A) * twice A <= 5 * lame A."),
    ("a folded reference costs core/bound nothing", "implemented.v", "(residual + on_Q more) * Q j", "on_Q more * Q j"),
    ("what errs makes scores no further apart", "implemented.v", "let d := (M - s j) + err e j + 2 * T A in",
     "let d := (M - s j) + 2 * T A in"),
    ("underflow knows nothing of the last reference", "implemented.v", "  exp (2 * (thE A * T A + rest) + at_last)",
     "  exp (2 * (thE A * T A + rest))"),
    ("a loss passes no product beside a declared depth", "implemented.v", "(Nat.min (sum_depth + 1) n + r)%nat.",
     "(sum_depth + r)%nat."),
    ("a sum of a declared depth rounds no product in core/bound", "implemented.v",
     "Definition plain := pw u_a (sum_depth + 1 +", "Definition plain := pw u_a (sum_depth + 0 +"),
    ("core/bound refines sums that are truncated", "implemented.v", "  refined A (pw u_a weight_roundings)",
     "  Rmin (pw u_a weight_roundings)"),
    ("a weight gains as much as D2 lets it, and no more counts", "implemented.v", "off A <= c_m e / 2 /\\",
     "off A <= c_m e /\\"),
    ("a sum of weights that are divided first counts no division", "implemented.v",
     "| None => norm_first more - 1 end%nat.", "| None => 0 end%nat."),
    ("the scaled product is not rounded", "implemented_rows.v", "Definition on_t := after * (tt * th_scale) + th_bias",
     "Definition on_t := after * (tt * 0) + th_bias"),
    ("log2(e) is exact in a row", "implemented_rows.v", " + th_l2e * Rabs (t + b - s_mean).", "."),
    ("merging blocks is no addition of a declared depth", "implemented_rows.v",
     "d = None \\/ d = Some (h + length (b :: bs))%nat ->", "d = None \\/ d = Some h ->"),
    ("a reference that is rounded apart does not underflow", "implemented_programs.v",
     "claims2 emin prec epsE lamE (3 * eta) 0 0", "claims2 emin prec epsE lamE eta 0 0"),
    ("a log-sum-exp is rounded as if scores were small", "implemented_merged.v",
     "Definition lse_on_Q := u_lse * (1 + u_lse) * (1 + 2 * thE).", "Definition lse_on_Q := 0."),
    ("a merge takes one exponential", "implemented_merged.v", "+ eps_log * log_count + 2 * eps A.",
     "+ eps_log * log_count + eps A."),
    ("a row of many weights in binary16 loses little by underflow", "implemented_merged.v",
     "f_lampd : INR n * lampd A <= / 2 ^ 11", "f_lampd : INR n * lampd A <= / 2 ^ 4"),
    ("where nothing is subtracted the largest weight is 1", "implemented_shift.v",
     "then Rmax 0 (- bottom) else 0.", "then 0 else 0."),
    ("weights that are divided first lose no more than others", "implemented_divided.v",
     "  let lam_p := lamp A + (1 + up A) * lam A in {|", "  let lam_p := lamp A in {|"),
]

# Coq takes a variable outside a section for an axiom, and the search for words does not see it.
AXIOM = ("basics.v", "Section Softmax.",
         "Variable easy : forall (R : realFieldType) (a b : R), a = b.\nSection Softmax.")
RESTS_ON_AXIOM = ("softmax.v", "Proof. exact: softmax_sum. Qed.", "Proof. by move=> _; apply: basics.easy. Qed.")


def file_in(folder, name):
    """The one file of that name, whichever folder inside it is in."""
    return next(path for path in folder.rglob(name))


def edit(folder, name, before, after):
    path = file_in(folder, name)
    text = path.read_text()
    if text.count(before) != 1:
        sys.exit(f"{path.name}: '{before}' must occur exactly once, not {text.count(before)} times")
    path.write_text(text.replace(before, after))


def copy(source, folder, catalogue):
    shutil.copytree(source, folder, ignore=shutil.ignore_patterns("*.vo*", "*.glob", ".*.aux", "build", "rounding"))
    shutil.copy(catalogue, folder / "theorems.md")


def check(command, folder, *more):
    return subprocess.run([sys.executable, "-B", HERE / "check.py", command, "--folder", folder, "--catalogue",
                           folder / "theorems.md", *more], capture_output=True, text=True, check=False)


def test_names(source, catalogue, scratch):
    wrong = []
    copy(source, scratch / "whole", catalogue)
    whole = check("names", scratch / "whole")
    if whole.returncode != 0:
        wrong.append(f"refused although nothing is broken:\n{whole.stderr}")
    names = NAMES if source == HERE else NAMES_OF_ROUNDING
    for number, (what, file, before, after, said) in enumerate(names):
        folder = scratch / str(number)
        copy(source, folder, catalogue)
        edit(folder, file, before, after)
        broken = check("names", folder)
        if broken.returncode != 1 or said not in broken.stderr:
            wrong.append(f"{what}: exit status {broken.returncode}, and it does not say '{said}':\n{broken.stderr}")
    return wrong, len(names)


# (what is done to a stamped copy, and by which function of its folder)
AFTER_THE_STAMP = [
    ("a proof is changed", lambda folder: edit(folder, "softmax.v", "Proof. exact: softmax_sum. Qed.", "Proof. by []. Qed.")),
    ("an axiom is allowed", lambda folder: (folder / "allowed_axioms.txt").write_text("easy\n")),
    ("an option of the compiler is changed", lambda folder: edit(folder, "_CoqProject", "-Q .", "-R .")),
    ("a file is added", lambda folder: ((folder / "more.v").write_text("Theorem more : True. Proof. by []. Qed.\n"),
                                        edit(folder, "_CoqProject", "weights.v", "weights.v\nmore.v"))),
    ("a line of the stamp is gone", lambda folder: (folder / "compiled.txt").write_text(
        "".join((folder / "compiled.txt").read_text().splitlines(keepends=True)[:-1]))),
    ("no version", lambda folder: edit(folder, "compiled.txt", "# Coq ", "# ")),
]


def test_stamp(catalogue, scratch, cmake):
    wrong = []
    for number, (what, spoil) in enumerate([("nothing", lambda folder: None), *AFTER_THE_STAMP]):
        folder = scratch / str(number)
        copy(HERE, folder, catalogue)
        spoil(folder)
        seen = check("stamped", folder)
        built = subprocess.run([cmake, f"-DFOLDER={folder}", "-P", HERE / "compiled.cmake"], capture_output=True,
                               text=True, check=False)
        whole = number == 0
        if (seen.returncode == 0) != whole or ("stamp: 'Coq " in built.stderr) != whole or "stamp: '" not in built.stderr:
            wrong.append(f"{what}: check.py says {seen.returncode}, the build {built.stderr}")
    return wrong, len(AFTER_THE_STAMP)


def recompile(coqc, build, folder, first):
    """Compiles the files from `first` on; the first that Coq refuses, and what it says."""
    words = (folder / "_CoqProject").read_text().split()
    files = [word for word in words if word.endswith(".v")]
    options = [word for word in words if not word.endswith(".v") and word != "-arg"]
    for file in files[files.index(file_in(folder, first).relative_to(folder).as_posix()):]:
        try:
            done = subprocess.run([coqc, *options, file], cwd=build, capture_output=True, text=True, check=False,
                                  timeout=300)
        except subprocess.TimeoutExpired:
            return file, "coqc does not come to an end"
        if done.returncode != 0:
            return file, done.stderr
    return None, ""


def test_coq(source, catalogue, scratch, compiled, coqc, chosen):
    wrong, tried = [], 0
    for number, (what, file, before, after) in enumerate(FALSE if source == HERE else FALSE_OF_ROUNDING):
        if chosen and chosen not in what:
            continue
        tried += 1
        build = scratch / f"false{number}"
        shutil.copytree(compiled, build)
        edit(build, file, before, after)
        refused, said = recompile(coqc, build, source, file)
        if refused is None or "Error:" not in said:
            wrong.append(f"{what}: Coq does not refuse it\n{said}")
        else:
            print(f"{what}: refused in {refused}", flush=True)
        shutil.rmtree(build)
    if source == HERE and (not chosen or chosen in "a smuggled axiom"):
        tried += 1
        folder = scratch / "axiom"
        copy(HERE, folder, catalogue)
        edit(folder, *AXIOM)
        edit(folder, *RESTS_ON_AXIOM)
        for command, status in (("names", 0), ("compile", 0), ("assumptions", 1)):
            done = check(command, folder, "--build", scratch / "axiom_build", "--coqc", coqc)
            if done.returncode != status:
                wrong.append(f"a smuggled axiom, {command}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
        if "softmax_rows_sum_to_one rests on more than is allowed" not in done.stderr:
            wrong.append(f"a smuggled axiom is not named:\n{done.stderr}")
    return wrong, tried


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["names", "stamp", "coq"])
    parser.add_argument("--folder", type=pathlib.Path, default=HERE, help="the development (default: here)")
    parser.add_argument("--catalogue", type=pathlib.Path, default=HERE.parents[1] / "theorems.md")
    parser.add_argument("--build", type=pathlib.Path, help="where check.py compile put its files")
    parser.add_argument("--coqc", default="coqc")
    parser.add_argument("--cmake", default="cmake")
    parser.add_argument("--only", help="a part of the description of what is broken")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        if options.command == "names":
            wrong, tried = test_names(options.folder.resolve(), options.catalogue, pathlib.Path(scratch))
        elif options.command == "stamp":
            wrong, tried = test_stamp(options.catalogue, pathlib.Path(scratch), options.cmake)
        else:
            wrong, tried = test_coq(options.folder.resolve(), options.catalogue, pathlib.Path(scratch), options.build,
                                    options.coqc, options.only)
    for line in wrong:
        print(line, file=sys.stderr)
    print(f"{tried} broken copies, {len(wrong)} wrong")
    return 1 if wrong or not tried else 0


if __name__ == "__main__":
    sys.exit(main())
