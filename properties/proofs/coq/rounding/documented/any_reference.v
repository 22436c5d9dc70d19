(** The bound of error-bounds.md for kernels whose last reference need not be near a score, as log-sum-exps are not:
    underflow is set against the sum of weights as it was computed. *)
From Coq Require Import Reals List Lra Lia Psatz Permutation.
From Attest.Rounding Require Import basics merge bound documented.
Import ListNotations.
Open Scope R_scope.

(** The reference and all scores moved by the same number: nothing else changes. *)
Lemma sums_shift K sh sh' A v w0 lamw zeta ts m y k r c :
  sums K sh A v w0 lamw ts m y k r c -> (forall t, In t ts -> sh' (fst t) = sh (fst t) + zeta) ->
  sums K sh' A v w0 lamw ts (m + zeta) y k r c.
Proof.
  induction 1 as [j m e p y HT He Hp Hy | ts1 ts2 m y1 y2 y k1 r1 c1 k2 r2 c2 H1 IH1 H2 IH2 N
                 | ts m y k r c m' z p y' H IH Hm Hz Hp N]; intros E.
  - assert (Ej := E _ (or_introl eq_refl)). simpl in Ej.
    assert (D : sh' j - (m + zeta) = sh j - m) by (rewrite Ej; ring).
    replace (e - (sh j - m) + split A e p) with (e - (sh' j - (m + zeta)) + split A e p) by (rewrite D; auto).
    apply sums_key; auto; rewrite D; auto.
  - apply (sums_add K sh' A v w0 lamw ts1 ts2 (m + zeta) y1 y2); auto;
      [apply IH1 | apply IH2]; intros; apply E, in_or_app; auto.
  - apply (sums_rescale K sh' A v w0 lamw ts (m + zeta) y k r c (m' + zeta) z p y'); auto; [|lra| |].
    + apply IH. intros t It. assert (Q := E (fst t, snd t + z)). simpl in Q. apply Q.
      unfold rescaled. apply in_map_iff. exists t. auto.
    + replace (m' + zeta - (m + zeta)) with (m' - m) by ring. auto.
    + replace (m + zeta - (m' + zeta) + z) with (m - m' + z) by ring. auto.
Qed.

(** How far the last reference may be above the scores, and how large a sum must be for it, is nothing that a kernel
    does. *)
Definition with_gap (A : arith) (g : R) : arith := {| u := u A; lam := lam A; thE := thE A; xl := xl A; xr := xr A;
  T := T A; gap := g; off := off A; last := last A; eps := eps A; lame := lame A; up := up A; lamp := lamp A;
  upd := upd A; lampd := lampd A; nearest := nearest A; additions := additions A |}.
Lemma with_gap_sane A g : sane A -> 0 <= g -> sane (with_gap A g).
Proof. intros [] G. constructor; simpl; auto. Qed.
Lemma sums_with_gap K sh A g v w0 lamw ts m y k r c :
  sums K sh A v w0 lamw ts m y k r c -> sums K sh (with_gap A g) v w0 lamw ts m y k r c.
Proof.
  induction 1 as [j m e p y HT He Hp Hy | ts1 ts2 m y1 y2 y k1 r1 c1 k2 r2 c2 H1 IH1 H2 IH2 N
                 | ts m y k r c m' z p y' H IH Hm Hz Hp N].
  - apply (sums_key K sh (with_gap A g) v w0 lamw j m e p y); auto.
  - apply (sums_add K sh (with_gap A g) v w0 lamw ts1 ts2 m y1 y2 y); auto.
  - apply (sums_rescale K sh (with_gap A g) v w0 lamw ts m y k r c m' z p y'); auto.
Qed.

(** What underflow may take of a sum of n weights, whatever they weigh. *)
Definition most_lost (A : arith) (n r ops : nat) := (1 + u A) ^ (n - 1 + r) * g A ^ r *
  (INR n * (lampd A + by_exp A (w_l A) (lampd A) r + twice_lost A (part r) (w_l A) (lampd A) r) + INR ops * lam A).
Lemma lost_most K sh A ts m k r' c n r ops : sane A ->
  (length ts <= n)%nat -> (k <= n - 1 + r)%nat -> (r' <= r)%nat -> (c <= ops)%nat ->
  0 <= lost K sh A (part r) (one K) (w_l A) (lampd A) ts m k r' c <= most_lost A n r ops.
Proof.
  intros OK Hn Hk Hr Hc. assert (Wl : 0 <= w_l A) by (assert (Q := s_upd A OK); unfold w_l; lra).
  assert (L0 := s_lampd A OK). split; [apply lost_pos; auto using part_pos|].
  eapply Rle_trans; [apply (lost_mono K sh A OK (part r) (part_pos r) _ _ _ _ _ _ _ _ (n - 1 + r) r ops); auto|].
  unfold lost, most_lost. assert (G1 := pow_ge1 (u A) (n - 1 + r) (s_u A OK)).
  assert (Gr : 1 <= g A ^ r) by (apply pow_R1_Rle, g_ge1; auto).
  apply Rmult_le_compat_l; [apply Rmult_le_pos; lra|]. apply Rplus_le_compat_r.
  set (x := lampd A + by_exp A (w_l A) (lampd A) r + twice_lost A (part r) (w_l A) (lampd A) r).
  assert (X0 : 0 <= x).
  { assert (Q1 := by_exp_pos A OK (w_l A) (lampd A) r Wl L0).
    assert (Q2 := twice_lost_pos A OK (part r) (part_pos r) (w_l A) (lampd A) r Wl L0). unfold x. lra. }
  apply Rle_trans with (INR (length ts) * x); [|apply Rmult_le_compat_r; auto; apply le_INR; auto].
  rewrite <- Sum_const. apply Sum_le. intros t _. unfold one. rewrite Rabs_R1, Rmult_1_l. unfold loss, x.
  apply Rplus_le_compat_r, Rplus_le_compat; apply Rmin_l.
Qed.

Section AnyReference.
Variable K : Type.
Variables s sh vv : K -> R.
Variable A : arith.
Hypothesis OK : sane A.
Variable a : K -> R.
Variable J : list K.
Variable Mp : R.
Variable r : nat.
Variable Cs : R.
Hypothesis NJ : J <> [].
Hypothesis Ha : forall j, In j J -> Rabs (sh j - (s j + Cs)) <= a j.
Variable ops : nat.   (* operations on a sum *)
Local Notation exact := (exact K s vv J).
Local Notation wl := (w_l A).
Local Notation most_lost := (most_lost A (length J) r ops).

(** What a sum of weights came out as it is in truth, but for what it has gained. *)
Lemma weight_kept tl m l kl rl cl : Permutation (map fst tl) J ->
  sums K sh A (one K) wl (lampd A) tl m l kl rl cl -> (rl <= r)%nat -> (cl <= ops)%nat ->
  l - most_lost <= P A wl (kk K J r) * Sum (weight K sh m) tl.
Proof.
  intros Ml HL Hrl Hcl. assert (Wl := wl_ge1 A OK). assert (Ll := s_lampd A OK).
  destruct (sums_counts K sh A _ _ _ _ _ _ _ _ _ HL) as (_ & Kl & _).
  assert (Nl : length tl = length J) by (rewrite <- (map_length fst), (Permutation_length Ml); auto). rewrite Nl in *.
  destruct (sums_spec K sh A OK (part r) (part_pos r) (one K) wl (lampd A) Wl Ll _ _ _ _ _ _ HL) as [_ C].
  apply (channel_mono K sh A OK (part r) (part_pos r) _ _ _ _ _ _ kl rl cl (kk K J r) r ops) in C;
    auto; [|unfold kk; lia].
  set (W := Sum (weight K sh m) tl). unfold channel in C.
  rewrite (Sum_ext (fun t => weight K sh m t * one K (fst t)) (weight K sh m)) in C by (intros; unfold one; ring).
  rewrite (Sum_ext (fun t => weight K sh m t * Rabs (one K (fst t))) (weight K sh m)) in C
    by (intros; unfold one; rewrite Rabs_R1; ring). fold W (P A wl (kk K J r)) in C.
  assert (L := lost_most K sh A tl m (kk K J r) r ops (length J) r ops OK ltac:(lia) (le_n _) (le_n _) (le_n _)).
  apply Rabs_bounds in C. lra.
Qed.

(** A sum of weights that came out as lo at least. *)
Lemma weight_enough lo W : lo - most_lost <= P A wl (kk K J r) * W ->
  P A wl (kk K J r) <= exp (gap A) * (lo - most_lost) -> 1 <= W * F A r.
Proof.
  intros HW HP. assert (P0 := P_ge A OK wl (wl_ge1 A OK) (kk K J r)). assert (Wl := wl_ge1 A OK).
  set (Pk := P A wl (kk K J r)) in *. set (Lj := most_lost) in *.
  assert (Fg : exp (gap A) <= F A r).
  { unfold F. apply exp_mono. assert (X0 := X_pos A OK r). assert (TE := s_thE A OK). assert (T0 := s_T A OK).
    assert (G0 := s_gap A OK). assert (L0 := s_last A OK). assert (0 <= thE A * T A) by (apply Rmult_le_pos; lra).
    assert (0 <= thE A * gap A) by (apply Rmult_le_pos; lra). lra. }
  assert (Eg := exp_pos (gap A)).
  assert (Q : Pk * 1 <= Pk * (exp (gap A) * W)).
  { assert (exp (gap A) * (lo - Lj) <= exp (gap A) * (Pk * W)) by (apply Rmult_le_compat_l; lra). lra. }
  apply Rmult_le_reg_l in Q; [|lra].
  assert (PW : 0 < W).
  { destruct (Rle_dec W 0); [|lra]. assert (exp (gap A) * W <= exp (gap A) * 0) by (apply Rmult_le_compat_l; lra).
    lra. }
  assert (W * exp (gap A) <= W * F A r) by (apply Rmult_le_compat_l; lra). lra.
Qed.

(** Where no exponent errs in proportion to its size, nothing depends on Mp. *)
Lemma exponent_any_top Mp' : thE A = 0 -> E K s A a Mp r = E K s A a Mp' r.
Proof.
  intros Z. apply FunctionalExtensionality.functional_extensionality. intros j. unfold E. rewrite Z. ring.
Qed.
Lemma documented_any_top Mp' Uf lamf : thE A = 0 ->
  documented K s vv A a J Mp r ops Uf lamf = documented K s vv A a J Mp' r ops Uf lamf /\
  low_d K s A a J Mp r ops = low_d K s A a J Mp' r ops.
Proof.
  intros Z. assert (Q := exponent_any_top Mp' Z).
  unfold documented, pre_d, low_d, LNd, LDd, lost_d, loss_d, Nd, acc, UDd, UD0, spread, size, ph, pp, Zm.
  rewrite Q. auto.
Qed.

(** Beside [documented_bound]: the last reference m may be up to gap above Mp, and e^-gap (1+u)^n is what the computed
    sum of weights l exceeds, as a log-sum-exp's does whatever the scores are. *)
Theorem documented_bound_any_reference lo tl to_ m l o Uf lamf oh kl rl cl ko ro co : nearest A = true ->
  additions A = None ->
  Permutation (map fst to_) J -> Permutation tl to_ ->
  sums K sh A (one K) wl (lampd A) tl m l kl rl cl -> (rl <= r)%nat ->
  sums K sh A vv (w_o A) ((1 + u A) * lamp A) to_ m o ko ro co -> (ro <= r)%nat ->
  m <= Mp + gap A + Cs -> lo <= l ->
  (cl <= ops)%nat -> (co <= ops)%nat -> P A wl (kk K J r) <= exp (gap A) * (lo - most_lost) ->
  0 < low_d K s A a J Mp r ops -> 0 <= Uf -> near Uf lamf (o / l) oh ->
  Rabs (oh - exact) <= documented K s vv A a J Mp r ops Uf lamf.
Proof.
  intros RN Any M Hp HL Hrl HO Hro Hm Hlo Hcl Hco HP Hd HUf Hoh.
  assert (Sh : forall k, shallow A r k) by (intros; unfold shallow; rewrite Any; auto).
  assert (Ml : Permutation (map fst tl) J) by (eapply Permutation_trans; [apply Permutation_map; apply Hp|auto]).
  apply (documented_of_sums K s sh vv A OK RN a J Mp r ops tl to_ m l o Cs Uf lamf oh kl rl cl ko ro co); auto.
  apply (weight_enough lo); auto. assert (Q := weight_kept tl m l kl rl cl Ml HL Hrl Hcl). lra.
Qed.
End AnyReference.
