(** Kernels over IEEE's numbers, with infinities and NaN: where the criteria hold, they return what the programs of a
    machine without overflow return, and the tolerance is theirs. *)
From Coq Require Import Reals List Lra Lia Psatz Permutation ZArith.
From Flocq Require Import Core BinarySingleNaN.
From Attest.Rounding Require Import basics scores merge bound kernels row overflow.
Import ListNotations.
Open Scope R_scope.

Section Finite.
Variables prec emax : Z.
Context {Hprec : Prec_gt_0 prec}.
Context {Hemax : Prec_lt_emax prec emax}.
Definition emin := (3 - emax - prec)%Z.
Definition largest := bpow radix2 emax - bpow radix2 (emax - prec).   (* the largest finite number *)
Local Notation float := (binary_float prec emax).
Local Notation rnd := (kernels.rnd emin prec).
Local Notation inF := (kernels.inF emin prec).
Local Notation fits := (fits largest).

Definition fadd : float -> float -> float := Bplus mode_NE.
Definition fsub : float -> float -> float := Bminus mode_NE.
Definition fmul : float -> float -> float := Bmult mode_NE.
Definition fdiv : float -> float -> float := Bdiv mode_NE.
Definition fmax (x y : float) : float := if Bleb x y then y else x.

(** x is the number r: no infinity, and no NaN. *)
Definition is_number (x : float) (r : R) := is_finite x = true /\ B2R x = r.
Lemma is_inF x r : is_number x r -> inF r.
Proof. intros [_ <-]. exact (generic_format_B2R prec emax x). Qed.
Lemma is_fits x r : is_number x r -> fits r.
Proof. intros [_ <-]. apply abs_B2R_le_emax_minus_prec. auto. Qed.

Lemma largest_inF : inF largest.
Proof.
  unfold largest. replace (bpow radix2 emax - bpow radix2 (emax - prec)) with (F2R (Float radix2 (2 ^ prec - 1) (emax -
    prec))).
  - apply generic_format_FLT. exists (Float radix2 (2 ^ prec - 1) (emax - prec)); auto; simpl.
    + red in Hprec. assert (0 < 2 ^ prec)%Z by (apply Z.pow_pos_nonneg; lia). rewrite Z.abs_eq; lia.
    + unfold emin. red in Hemax, Hprec. lia.
  - unfold F2R. simpl. rewrite minus_IZR. red in Hprec. replace (IZR (2 ^ prec)) with (bpow radix2 prec).
    + replace emax with (prec + (emax - prec))%Z at 2 by lia. rewrite bpow_plus. ring.
    + rewrite <- IZR_Zpower by lia. auto.
Qed.
Lemma fits_below r : fits r -> Rlt_bool (Rabs r) (bpow radix2 emax) = true.
Proof.
  unfold overflow.fits, largest. intros F. apply Rlt_bool_true. assert (P := bpow_gt_0 radix2 (emax - prec)). lra.
Qed.

Lemma fadd_is x y a b : is_number x a -> is_number y b -> fits (rnd (a + b)) -> is_number (fadd x y) (rnd (a + b)).
Proof.
  intros [Fx <-] [Fy <-] F. assert (C := Bplus_correct prec emax Hprec Hemax mode_NE x y Fx Fy).
  change (round radix2 _ _ (B2R x + B2R y)) with (rnd (B2R x + B2R y)) in C. rewrite (fits_below _ F) in C.
  destruct C as (C1 & C2 & _). split; auto.
Qed.
Lemma fmul_is x y a b : is_number x a -> is_number y b -> fits (rnd (a * b)) -> is_number (fmul x y) (rnd (a * b)).
Proof.
  intros [Fx <-] [Fy <-] F. assert (C := Bmult_correct prec emax Hprec Hemax mode_NE x y).
  change (round radix2 _ _ (B2R x * B2R y)) with (rnd (B2R x * B2R y)) in C. rewrite (fits_below _ F) in C.
  destruct C as (C1 & C2 & _). rewrite Fx, Fy in C2. split; auto.
Qed.
Lemma fdiv_is x y a b : is_number x a -> is_number y b -> b <> 0 -> fits (rnd (a / b)) ->
  is_number (fdiv x y) (rnd (a / b)).
Proof.
  intros [Fx <-] [Fy <-] N F. assert (C := Bdiv_correct prec emax Hprec Hemax mode_NE x y N).
  change (round radix2 _ _ (B2R x / B2R y)) with (rnd (B2R x / B2R y)) in C. rewrite (fits_below _ F) in C.
  destruct C as (C1 & C2 & _). rewrite Fx in C2. split; auto.
Qed.
Lemma fmax_is x y a b : is_number x a -> is_number y b -> is_number (fmax x y) (Rmax a b).
Proof.
  intros [Fx <-] [Fy <-]. unfold fmax. rewrite Bleb_correct by auto. unfold Rmax.
  destruct (Rle_dec _ _) as [L|L]; [rewrite Rle_bool_true by auto|rewrite Rle_bool_false by lra]; split; auto.
Qed.
Lemma sign_plus (x : float) : Bsign x = false -> 0 <= B2R x.
Proof.
  destruct x as [sx|sx| |sx mx ex ?]; simpl; intros E; try lra. subst sx. apply F2R_ge_0. simpl. lia.
Qed.
Lemma sign_minus (x : float) : Bsign x = true -> B2R x <= 0.
Proof.
  destruct x as [sx|sx| |sx mx ex ?]; simpl; intros E; try lra. subst sx. apply F2R_le_0. simpl. lia.
Qed.
Lemma largest_pos : 0 <= largest.
Proof.
  apply Rle_trans with (Rabs 0); [apply Rabs_pos|].
  apply (abs_B2R_le_emax_minus_prec prec emax Hprec (B754_zero false)).
Qed.
(** A difference that overflows is minus infinity where the exact one is negative. *)
Lemma fsub_is x y a b : is_number x a -> is_number y b -> a <= b ->
  is_number (fsub x y) (rnd (a - b)) /\ fits (rnd (a - b)) \/ fsub x y = B754_infinity true /\ rnd (a - b) < - largest.
Proof.
  intros [Fx <-] [Fy <-] L. assert (C := Bminus_correct prec emax Hprec Hemax mode_NE x y Fx Fy).
  change (round radix2 _ _ (B2R x - B2R y)) with (rnd (B2R x - B2R y)) in C.
  assert (R0 : rnd (B2R x - B2R y) <= 0).
  { rewrite <- (rnd_id emin prec 0 (inF_0 emin prec)). apply rnd_mono; auto. lra. }
  destruct (Rle_dec (Rabs (rnd (B2R x - B2R y))) largest) as [F|F].
  - left. rewrite (fits_below _ F) in C. destruct C as (C1 & C2 & _). split; [split; auto|auto].
  - right. assert (Lt : rnd (B2R x - B2R y) < - largest) by (rewrite Rabs_left1 in F by auto; lra). split; auto.
    assert (B : Rlt_bool (Rabs (rnd (B2R x - B2R y))) (bpow radix2 emax) = false).
    { apply Rlt_bool_false. destruct (Rle_dec (bpow radix2 emax) (Rabs (rnd (B2R x - B2R y)))) as [Q|Q]; auto.
      exfalso. apply F. unfold largest. assert (G : inF (Rabs (rnd (B2R x - B2R y))))
        by (apply generic_format_abs, rnd_inF; auto).
      replace (bpow radix2 emax - bpow radix2 (emax - prec)) with (pred radix2 (FLT_exp emin prec) (bpow radix2 emax)).
      - apply pred_ge_gt; auto; [apply FLT_exp_valid; auto| |lra]. apply generic_format_bpow. unfold FLT_exp, emin.
        red in Hemax, Hprec. lia.
      - rewrite pred_bpow. unfold FLT_exp, emin. do 2 f_equal. red in Hemax, Hprec. lia. }
    rewrite B in C. destruct C as [C1 C2]. unfold binary_overflow, overflow_to_inf in C1.
    assert (Sx : Bsign x = true).
    { destruct (Bsign x) eqn:E; auto. exfalso. assert (Px := sign_plus x E).
      assert (Py := sign_minus y ltac:(destruct (Bsign y); auto)).
      replace (B2R x - B2R y) with 0 in Lt by lra. rewrite rnd_id in Lt by apply inF_0. assert (P := largest_pos).
      lra. }
    rewrite Sx in C1. simpl in C1. change (Bminus mode_NE x y) with (fsub x y) in C1.
    destruct (fsub x y) as [s|s| |s m e]; simpl in C1; try discriminate. injection C1 as ->. auto.
Qed.

(** ** The kernels' sums, over IEEE's numbers. *)
Section Kernel.
Variable K : Type.
Local Notation leaves := (leaves K).
Local Notation tree := (tree K).
Variables sf vf : K -> float.          (* scores, values *)
Variable ex : float -> float.          (* the exponential *)
Fixpoint ftop (t : tree) : float := match t with Leaf _ j => sf j | Node _ a b => fmax (ftop a) (ftop b) end.
Definition fwt m j := ex (fsub (sf j) m).
Fixpoint fsuml m (t : tree) : float :=
  match t with Leaf _ j => fwt m j | Node _ a b => fadd (fsuml m a) (fsuml m b) end.
Fixpoint fsumo m (t : tree) : float :=
  match t with Leaf _ j => fmul (fwt m j) (vf j) | Node _ a b => fadd (fsumo m a) (fsumo m b) end.
Definition fstate := (float * float * float)%type.
Definition fblock m tl to_ : fstate := (m, fsuml m tl, fsumo m to_).
Definition fstep (s : fstate) tl to_ : fstate :=
  let '(m, l, o) := s in let m' := fmax m (ftop tl) in let c := ex (fsub m m') in
  (m', fadd (fmul c l) (fsuml m' tl), fadd (fmul c o) (fsumo m' to_)).
Definition fmerge (s1 s2 : fstate) : fstate :=
  let '(m1, l1, o1) := s1 in let '(m2, l2, o2) := s2 in let m' := fmax m1 m2 in
  let c1 := ex (fsub m1 m') in let c2 := ex (fsub m2 m') in
  (m', fadd (fmul c1 l1) (fmul c2 l2), fadd (fmul c1 o1) (fmul c2 o2)).
Fixpoint frun (p : plan K) : fstate := match p with
  | All _ tl to_ => fblock (ftop tl) tl to_
  | Then _ p tl to_ => fstep (frun p) tl to_
  | Merge _ p1 p2 => fmerge (frun p1) (frun p2) end.
Definition ffinish (s : fstate) := let '(m, l, o) := s in fdiv o l.

(** What they are of the programs over real numbers; fexp is what ex does. *)
Variables sh vv : K -> R.
Variable fexp : R -> R.
Hypothesis ex_finite : forall x r, is_number x r -> r <= 0 -> is_number (ex x) (fexp r).
Hypothesis ex_minus_infinity : is_number (ex (B754_infinity true)) 0.
Hypothesis exp_inF : forall y, inF (fexp y).
Hypothesis exp_range : forall y, y <= 0 -> 0 <= fexp y <= 1.
Hypothesis exp_0 : fexp 0 = 1.
Hypothesis one_inF : inF 1.
Hypothesis sh_inF : forall j, inF (sh j).
Hypothesis vv_inF : forall j, inF (vv j).

(** An exponent that has overflowed gives 0. *)
Definition fexp_H r := if Rlt_dec r (- largest) then 0 else fexp r.
Lemma fexp_H_inF y : inF (fexp_H y).
Proof. unfold fexp_H. destruct (Rlt_dec _ _); auto using inF_0. Qed.
Lemma fexp_H_range y : y <= 0 -> 0 <= fexp_H y <= 1.
Proof. intros L. unfold fexp_H. destruct (Rlt_dec _ _); [lra|auto]. Qed.
Lemma fexp_H_0 : fexp_H 0 = 1.
Proof. unfold fexp_H. destruct (Rlt_dec _ _) as [L|_]; auto. assert (P := largest_pos). lra. Qed.
Lemma fexp_H_good epsE lamE : 0 <= epsE -> exp (- largest) <= lamE ->
  (forall y, y <= 0 -> 0 <= fexp y /\ rounded epsE lamE (exp y) (fexp y)) ->
  forall y, y <= 0 -> 0 <= fexp_H y /\ rounded epsE lamE (exp y) (fexp_H y).
Proof.
  intros E L N y Y. unfold fexp_H. destruct (Rlt_dec _ _) as [Q|_]; auto. split; [lra|]. apply underflow_to_zero; auto.
  eapply Rle_trans; [apply exp_mono|apply L]. lra.
Qed.

Lemma ex_difference x y a b : is_number x a -> is_number y b -> a <= b ->
  is_number (ex (fsub x y)) (fexp_H (rnd (a - b))).
Proof.
  intros Ix Iy L. unfold fexp_H. destruct (fsub_is x y a b Ix Iy L) as [[D F]|[D F]].
  - assert (B := Rabs_bounds _ _ F). destruct (Rlt_dec _ _); [lra|]. apply ex_finite; auto.
    apply (rnd_diff emin prec); auto.
  - destruct (Rlt_dec _ _); [|lra]. rewrite D. auto.
Qed.

Local Notation suml := (suml emin prec K sh fexp_H).
Local Notation sumo := (sumo emin prec K sh vv fexp_H).
Local Notation wt := (wt emin prec K sh fexp_H).
Definition given J := forall j, In j J -> is_number (sf j) (sh j) /\ is_number (vf j) (vv j).
Lemma given_app J1 J2 : given (J1 ++ J2) -> given J1 /\ given J2.
Proof. intros G. split; intros j I; apply G; apply in_or_app; auto. Qed.

Lemma ftop_is t : given (leaves t) -> is_number (ftop t) (tmax K sh t).
Proof.
  induction t as [j|a IHa b IHb]; simpl; intros G; [apply (G j); simpl; auto|].
  apply given_app in G. apply fmax_is; tauto.
Qed.
Lemma fwt_is mf m j : is_number mf m -> is_number (sf j) (sh j) -> sh j <= m -> is_number (fwt mf j) (wt m j).
Proof. intros. apply ex_difference; auto. Qed.
Lemma fsuml_is mf m t : is_number mf m -> given (leaves t) -> (forall j, In j (leaves t) -> sh j <= m) ->
  all_fit emin prec largest K (wt m) t -> is_number (fsuml mf t) (suml m t).
Proof.
  intros Im. induction t as [j|a IHa b IHb]; simpl; intros G L F.
  - apply fwt_is; auto. apply (G j). simpl. auto.
  - apply given_app in G. destruct F as [F [Fa Fb]]. destruct G as [Ga Gb].
    rewrite <- !suml_rsum in F. apply fadd_is; auto; [apply IHa|apply IHb]; auto; intros; apply L; apply in_or_app;
      auto.
Qed.
Lemma fsumo_is mf m t : is_number mf m -> given (leaves t) -> (forall j, In j (leaves t) -> sh j <= m) ->
  all_fit emin prec largest K (fun j => rnd (wt m j * vv j)) t -> is_number (fsumo mf t) (sumo m t).
Proof.
  intros Im. induction t as [j|a IHa b IHb]; simpl; intros G L F.
  - destruct (G j) as [Gs Gv]; simpl; auto. destruct F as [F _]. apply fmul_is; auto. apply fwt_is; auto.
  - apply given_app in G. destruct F as [F [Fa Fb]]. destruct G as [Ga Gb].
    rewrite <- !sumo_rsum in F. apply fadd_is; auto; [apply IHa|apply IHb]; auto; intros; apply L; apply in_or_app;
      auto.
Qed.

Local Notation run := (run emin prec K sh vv fexp_H).
Definition is_state (x : fstate) (s : state) :=
  is_number (fst (fst x)) (m_of s) /\ is_number (snd (fst x)) (l_of s) /\ is_number (snd x) (o_of s).

Lemma frun_is p : matched K p -> given (lkeys K p) -> given (okeys K p) ->
  plan_fits emin prec largest K sh vv fexp_H p -> is_state (frun p) (run p).
Proof.
  assert (Ord : forall tl to_ m', Permutation (leaves tl) (leaves to_) -> tmax K sh tl <= m' ->
    (forall j, In j (leaves tl) -> sh j <= m') /\ (forall j, In j (leaves to_) -> sh j <= m')).
  { intros tl to_ m' P L. split; intros j I; (eapply Rle_trans; [|apply L]);
      [apply tmax_ge; auto|apply (tmax_matched K sh tl to_); auto]. }
  induction p as [tl to_|p IH tl to_|p1 IH1 p2 IH2]; intros M Gl Go F.
  - cbn [matched lkeys okeys plan_fits] in *. destruct F as [_ [Fl Fo]].
    destruct (Ord tl to_ _ M (Rle_refl _)) as [Ll Lo]. assert (Im := ftop_is tl Gl).
    unfold is_state. cbn [frun fblock fst snd]. split; [exact Im|]. split; [apply fsuml_is; auto|apply fsumo_is; auto].
  - cbn [matched lkeys okeys plan_fits] in *. destruct M as [Mp Mb]. destruct F as [Fs [Fp [[Rl Ro] [Fl Fo]]]].
    apply given_app in Gl. apply given_app in Go. destruct Gl as [Gl1 Gl2]. destruct Go as [Go1 Go2].
    specialize (IH Mp Gl1 Go1 Fp). destruct Fs as [Sl So]. unfold is_state in *. cbn [frun overflow.run] in *.
    destruct (frun p) as [[mf lf] of_]. destruct (run p) as [[m l] o]. unfold m_of, l_of, o_of in *. simpl in *.
    destruct IH as [Im [Il Io]].
    assert (Im' : is_number (fmax mf (ftop tl)) (Rmax m (tmax K sh tl))) by (apply fmax_is; auto; apply ftop_is; auto).
    assert (Ic := ex_difference _ _ _ _ Im Im' (Rmax_l _ _)).
    destruct (Ord tl to_ _ Mb (Rmax_r m _)) as [Ll Lo].
    split; [auto|]. split; apply fadd_is; auto; try (apply fmul_is; auto); [apply fsuml_is; auto|apply fsumo_is; auto].
  - cbn [matched lkeys okeys plan_fits] in *. destruct M as [M1 M2]. destruct F as [Fs [F1 [F2 [[Rl1 Ro1] [Rl2 Ro2]]]]].
    apply given_app in Gl. apply given_app in Go. destruct Gl as [Gl1 Gl2]. destruct Go as [Go1 Go2].
    specialize (IH1 M1 Gl1 Go1 F1). specialize (IH2 M2 Gl2 Go2 F2). destruct Fs as [Sl So]. unfold is_state in *.
    cbn [frun overflow.run] in *.
    destruct (frun p1) as [[mf1 lf1] of1]. destruct (run p1) as [[m1 l1] o1].
    destruct (frun p2) as [[mf2 lf2] of2]. destruct (run p2) as [[m2 l2] o2]. unfold m_of, l_of, o_of in *. simpl in *.
    destruct IH1 as [Im1 [Il1 Io1]]. destruct IH2 as [Im2 [Il2 Io2]].
    assert (Im' : is_number (fmax mf1 mf2) (Rmax m1 m2)) by (apply fmax_is; auto).
    assert (Ic1 := ex_difference _ _ _ _ Im1 Im' (Rmax_l _ _)).
    assert (Ic2 := ex_difference _ _ _ _ Im2 Im' (Rmax_r _ _)).
    split; [auto|]. split; apply fadd_is; auto; apply fmul_is; auto.
Qed.

(** Where D3 and D5 hold nothing overflows: IEEE's kernel is the one without overflow. *)
Theorem kernel_is_finite p : matched K p -> given (lkeys K p) -> given (okeys K p) ->
  (1 + uf prec) ^ (length (lkeys K p) - 1) * INR (length (lkeys K p)) <= largest ->
  (1 + uf prec) ^ (length (okeys K p) - 1) * Sum (fun j => Rabs (vv j)) (okeys K p) <= largest ->
  is_number (ffinish (frun p)) (finish emin prec (run p)).
Proof.
  intros M Gl Go Bl Bo.
  destruct (sums_in_range emin prec largest K sh vv fexp_H fexp_H_inF sh_inF vv_inF fexp_H_range fexp_H_0 one_inF p M
    Bl Bo) as (F & Low & Fo).
  assert (I := frun_is p M Gl Go F). unfold is_state, m_of, l_of, o_of in *.
  destruct (frun p) as [[mf lf] of_]. destruct (run p) as [[m l] o]. simpl in *. destruct I as [Im [Il Io]].
  apply fdiv_is; auto. lra.
Qed.
End Kernel.

(** ** A whole row, from q, k, v, the scale and a bias. *)
Section Row.
Variable dk : nat.
Variables qf : nat -> float.
Variables kf : nat -> nat -> float.   (* key, component *)
Variables vf bf : nat -> float.       (* one column of V; bias *)
Variable tauf : float.                (* the scale as the kernel has it *)
Variable order : nat -> tree nat.
Hypothesis Horder : forall j, Permutation (leaves nat (order j)) (seq 0 dk).
Fixpoint fdot (x y : nat -> float) (t : tree nat) : float :=
  match t with Leaf _ c => fmul (x c) (y c) | Node _ a b => fadd (fdot x y a) (fdot x y b) end.
Definition fscore j := fadd (fmul tauf (fdot qf (kf j) (order j))) (bf j).

(** The numbers that these are. *)
Definition q_real c := B2R (qf c).
Definition k_real j c := B2R (kf j c).
Definition v_real j := B2R (vf j).
Definition b_real j := B2R (bf j).
Variables tau d th_tau : R.
Hypothesis Htau : 0 <= tau.
Hypothesis Htauh : B2R tauf = tau * (1 + d).
Hypothesis Hd : Rabs d <= th_tau.
Local Notation sh := (row.sh emin prec q_real k_real b_real (B2R tauf) order).
Local Notation s := (row.s dk q_real k_real b_real tau).
Local Notation a := (row.a emin prec dk q_real k_real b_real tau th_tau).

(** D1 of a key whose inputs are numbers. *)
Definition numbers j := is_finite tauf = true /\ is_finite (vf j) = true /\ is_finite (bf j) = true /\
  forall c, In c (seq 0 dk) -> is_finite (qf c) = true /\ is_finite (kf j c) = true.
Definition D1 j := (1 + th_tau) * (1 + uf prec) ^ (dk + 2) *
  (Rmax 1 tau * (Sum (fun c => Rabs (q_real c * k_real j c)) (seq 0 dk) + INR dk * eta emin) + Rabs (b_real j) +
    eta emin) <= largest.

(** As it is implemented: dk + 4 roundings, where the scale is wrong by two and e1, and e2 more for what underflows. *)
Lemma D1_as_implemented j e1 e2 : 0 <= e1 <= e2 -> 1 + th_tau <= (1 + uf prec) ^ 2 * (1 + e1) ->
  (1 + uf prec) ^ (dk + 4) * (1 + e1) * (Rmax 1 tau * (INR dk * eta emin) + eta emin) * (1 + e2) <=
    largest * (e2 - e1) ->
  (1 + uf prec) ^ (dk + 4) * (1 + e2) *
    (Rmax 1 tau * Sum (fun c => Rabs (q_real c * k_real j c)) (seq 0 dk) + Rabs (b_real j)) <= largest -> D1 j.
Proof.
  intros E T Z B. unfold D1. assert (U := uf_pos prec). assert (Et := eta_pos emin). assert (I := pos_INR dk).
  assert (D0 : 0 <= th_tau) by (assert (Q := Rabs_pos d); lra). assert (M := Rmax_l 1 tau). set (m := Rmax 1 tau) in *.
  set (S := Sum _ _) in *. assert (S0 : 0 <= S) by (apply Sum_nonneg; intros; apply Rabs_pos).
  assert (B0 := Rabs_pos (b_real j)). set (bj := Rabs (b_real j)) in *.
  replace (dk + 4)%nat with (2 + (dk + 2))%nat in * by lia. rewrite (pow_add _ 2) in Z, B.
  set (P2 := (1 + uf prec) ^ 2) in *. set (P := (1 + uf prec) ^ (dk + 2)) in *.
  assert (Pp : 1 <= P) by (apply powf_ge1). set (z := m * (INR dk * eta emin) + eta emin) in *.
  assert (Ie : 0 <= INR dk * eta emin) by (apply Rmult_le_pos; lra).
  assert (Z0 : 0 <= z) by (unfold z; apply Rplus_le_le_0_compat; [apply Rmult_le_pos|]; lra).
  set (Y := m * S + bj) in *. assert (Y0 : 0 <= Y) by (unfold Y; apply Rplus_le_le_0_compat; [apply Rmult_le_pos|];
    lra).
  replace (m * (S + INR dk * eta emin) + bj + eta emin) with (Y + z) by (unfold Y, z; ring).
  apply Rle_trans with (P2 * (1 + e1) * P * (Y + z)).
  - apply Rmult_le_compat_r; [lra|]. apply Rmult_le_compat_r; lra.
  - apply Rmult_le_reg_r with (1 + e2); [lra|].
    replace (P2 * (1 + e1) * P * (Y + z) * (1 + e2))
      with ((1 + e1) * (P2 * P * (1 + e2) * Y) + P2 * P * (1 + e1) * z * (1 + e2)) by ring.
    assert ((1 + e1) * (P2 * P * (1 + e2) * Y) <= (1 + e1) * largest) by (apply Rmult_le_compat_l; lra). lra.
Qed.

Lemma number_is x : is_finite x = true -> is_number x (B2R x).
Proof. split; auto. Qed.
Lemma fdot_is x y t : (forall c, In c (leaves nat t) -> is_finite (x c) = true /\ is_finite (y c) = true) ->
  all_fit emin prec largest nat (fun c => rnd (B2R (x c) * B2R (y c))) t ->
  is_number (fdot x y t) (row.fdot emin prec (fun c => B2R (x c)) (fun c => B2R (y c)) t).
Proof.
  induction t as [c|t1 IH1 t2 IH2]; simpl; intros N F.
  - destruct (N c); auto. apply fmul_is; [apply number_is; auto|apply number_is; auto|tauto].
  - destruct F as [F [F1 F2]]. rewrite <- !(fdot_rsum emin prec (fun c => B2R (x c)) (fun c => B2R (y c))) in F.
    apply fadd_is; auto; [apply IH1|apply IH2]; auto; intros; apply N; apply in_or_app; auto.
Qed.
Lemma fscore_is j : numbers j -> D1 j -> is_number (fscore j) (sh j).
Proof.
  intros (Nt & _ & Nb & Nc) B. assert (Fb : inF (b_real j)) by exact (is_inF (bf j) (b_real j) (number_is _ Nb)).
  destruct (scores_in_range emin prec largest dk q_real (k_real j) (order j) (Horder j) tau (B2R tauf) d th_tau
    (b_real j) Htau Htauh Hd Fb B) as (F1 & F2 & F3).
  apply fadd_is; [apply fmul_is; [apply number_is; auto| |exact F2]|apply number_is; auto|exact F3].
  apply fdot_is; [|exact F1]. intros c I. apply Nc. eapply Permutation_in; [apply (Horder j)|auto].
Qed.

Variable ex : float -> float.
Variable fexp : R -> R.
Variables epsE lamE : R.
Hypothesis HepsE : 0 <= epsE < 1.
Hypothesis HlamE : exp (- largest) <= lamE.
Hypothesis ex_finite : forall x r, is_number x r -> r <= 0 -> is_number (ex x) (fexp r).
Hypothesis ex_minus_infinity : is_number (ex (B754_infinity true)) 0.
Hypothesis exp_good : forall y, y <= 0 -> 0 <= fexp y /\ rounded epsE lamE (exp y) (fexp y).
Hypothesis exp_inF : forall y, inF (fexp y).
Hypothesis exp_range : forall y, y <= 0 -> 0 <= fexp y <= 1.
Hypothesis exp_0 : fexp 0 = 1.
Hypothesis one_inF : inF 1.

(** The kernel: scores, two passes over them in any two orders, the quotient. *)
Definition frow (p : plan nat) := ffinish (frun nat fscore vf ex p).
Definition D3 J := (1 + uf prec) ^ (length J - 1) * Sum (fun j => Rabs (v_real j)) J <= largest.
Definition D5 (J : list nat) := (1 + uf prec) ^ (length J - 1) * INR (length J) <= largest.

Lemma frow_is p : matched nat p -> let J := okeys nat p in
  (forall j, In j J -> numbers j /\ D1 j) -> D3 J -> D5 J ->
  is_number (frow p) (finish emin prec (run emin prec nat sh v_real (fexp_H fexp) p)).
Proof.
  intros M J N B3 B5. assert (Go : given nat fscore vf sh v_real J).
  { intros j I. destruct (N j I) as [Nj Bj]. split; [apply fscore_is; auto|apply number_is, Nj]. }
  assert (P := matched_keys nat p M).
  apply kernel_is_finite; auto.
  - intros j. apply rnd_inF; auto.
  - intros j. exact (generic_format_B2R prec emax (vf j)).
  - intros j I. apply Go. eapply Permutation_in; [apply P|auto].
  - rewrite (Permutation_length P). exact B5.
Qed.

Theorem two_pass_row_is_finite tl to_ tbar Mp bigl bigo : Permutation (leaves nat tl) (leaves nat to_) ->
  let J := leaves nat to_ in let ar := A emin prec epsE lamE in let out := frow (All nat tl to_) in
  (forall j, In j J -> numbers j /\ D1 j) -> D3 J -> D5 J -> (forall j, In j J -> s j + a tbar j <= Mp) ->
  is_finite out = true /\
  exists cl co, (cl + 1 <= 2 * length J /\ co + 1 <= 2 * length J)%nat /\
  (0 < low nat s ar (a tbar) J Mp (depth nat tl) cl 0 bigl ->
   Rabs (B2R out - Sum (fun j => exp (s j) * v_real j) J / Sum (fun j => exp (s j)) J) <=
     tolerance nat s v_real ar (a tbar) J Mp (depth nat tl) cl (depth nat to_) co 0 bigl bigo (uf prec) (eta emin)).
Proof.
  intros P J ar out N B3 B5 HM. destruct (frow_is (All nat tl to_) P N B3 B5) as [Fin E]. split; auto.
  fold out in E. rewrite E. assert (L : 0 <= lamE) by (assert (Q := exp_pos (- largest)); lra).
  exact (two_pass_row emin prec dk q_real k_real v_real b_real tau (B2R tauf) d th_tau Htau Htauh Hd order Horder
    tbar (fexp_H fexp) epsE lamE HepsE L
    (fexp_H_good fexp epsE lamE (proj1 HepsE) HlamE exp_good) (fexp_H_inF fexp exp_inF) tl to_ Mp bigl
      bigo P HM).
Qed.

Theorem online_row_is_finite c bs h tbar Mp bigl bigo :
  Forall (fun c => Permutation (leaves nat (fst c)) (leaves nat (snd c))) (c :: bs) ->
  Forall (fun c => depth nat (fst c) <= h /\ depth nat (snd c) <= h)%nat (c :: bs) ->
  let J := keys_of nat (c :: bs) in let ar := A emin prec epsE lamE in let out := frow (online_plan nat c bs) in
  (forall j, In j J -> numbers j /\ D1 j) -> D3 J -> D5 J -> (forall j, In j J -> s j + a tbar j <= Mp) ->
  is_finite out = true /\
  exists kl cl ko co, (kl <= h + 2 * length bs /\ ko <= h + 2 * length bs /\
    cl + 1 <= 2 * length J + length bs /\ co + 1 <= 2 * length J + length bs)%nat /\
  (0 < low nat s ar (a tbar) J Mp kl cl (length bs) bigl ->
   Rabs (B2R out - exact nat s v_real J) <=
     tolerance nat s v_real ar (a tbar) J Mp kl cl ko co (length bs) bigl bigo (uf prec) (eta emin)).
Proof.
  intros P D J ar out N B3 B5 HM. assert (M := online_matched nat c bs P).
  assert (EJ : okeys nat (online_plan nat c bs) = J) by apply online_okeys.
  destruct (frow_is (online_plan nat c bs) M) as [Fin E]; try (rewrite EJ; auto; fail). split; auto.
  fold out in E. rewrite E, <- online_run. assert (L : 0 <= lamE) by (assert (Q := exp_pos (- largest)); lra).
  exact (online_tolerance emin prec nat sh v_real (fexp_H fexp) epsE lamE HepsE L
    (fexp_H_good fexp epsE lamE (proj1 HepsE) HlamE exp_good) (fexp_H_inF fexp exp_inF)
    (fun j => rnd_inF emin prec _) s (a tbar) Mp (d * tbar) c bs h bigl bigo P D
    (fun j _ => scores_are_near emin prec dk q_real k_real b_real tau (B2R tauf) d th_tau Htau Htauh Hd order Horder
      tbar j) HM).
Qed.
End Row.

(** ** What is asked of an exponential is met by e^y rounded to the format. *)
Section Exponential.
Hypothesis one_fits : fits 1.
Hypothesis one_inF : inF 1.
Definition float_of (r : R) : float := binary_normalize prec emax Hprec Hemax mode_NE
  (Ztrunc (scaled_mantissa radix2 (FLT_exp emin prec) r)) (cexp radix2 (FLT_exp emin prec) r) false.
Lemma float_of_is r : inF r -> fits r -> is_number (float_of r) r.
Proof.
  intros F B. assert (C := binary_normalize_correct prec emax Hprec Hemax mode_NE
    (Ztrunc (scaled_mantissa radix2 (FLT_exp emin prec) r)) (cexp radix2 (FLT_exp emin prec) r) false).
  cbv zeta in C. unfold kernels.inF, fexpn, generic_format in F. rewrite <- F in C.
  change (round radix2 _ _ r) with (rnd r) in C. rewrite rnd_id in C by exact F. rewrite (fits_below _ B) in C.
  destruct C as (C1 & C2 & _). split; auto.
Qed.
Definition exp_rounded (x : float) : float := match x with
  | B754_nan => B754_nan
  | B754_infinity true => B754_zero false
  | B754_infinity false => B754_infinity false
  | _ => float_of (rnd (exp (B2R x))) end.
Lemma rounded_range y : y <= 0 -> 0 <= rnd (exp y) <= 1.
Proof.
  intros Y. rewrite <- (rnd_id emin prec 0 (inF_0 emin prec)) at 1. rewrite <- (rnd_id emin prec 1 one_inF).
  assert (P := exp_pos y). split; apply rnd_mono; auto; [lra|apply exp_le1; auto].
Qed.
Lemma exp_rounded_is x r : is_number x r -> r <= 0 -> is_number (exp_rounded x) (rnd (exp r)).
Proof.
  intros [F <-] L. assert (Q := rounded_range (B2R x) L).
  assert (I : is_number (float_of (rnd (exp (B2R x)))) (rnd (exp (B2R x)))).
  { apply float_of_is; [apply rnd_inF; auto|]. unfold overflow.fits in *. rewrite Rabs_pos_eq in * by lra. lra. }
  destruct x as [sx|sx| |sx mx e ?]; try discriminate; exact I.
Qed.
End Exponential.
End Finite.

(** ** binary32: what is asked of an exponential, all of it, is met. *)
Definition H32 := largest 24 128.
Definition exp32 : binary_float 24 128 -> binary_float 24 128 := @exp_rounded 24 128 eq_refl eq_refl.
Lemma one_inF32 : kernels.inF (emin 24 128) 24 1.
Proof. change 1 with (bpow radix2 0). apply generic_format_bpow. unfold fexpn, FLT_exp, emin. lia. Qed.
Lemma H32_large : bpow radix2 127 <= H32.
Proof.
  unfold H32, largest. assert (E := bpow_plus radix2 127 1). change (127 + 1)%Z with 128%Z in E.
  change (bpow radix2 1) with 2 in E. assert (L : bpow radix2 (128 - 24) <= bpow radix2 127) by (apply bpow_le; lia).
  lra.
Qed.
Lemma exp_H32 : exp (- H32) <= eta (-149).
Proof.
  assert (L := H32_large). assert (B : bpow radix2 8 <= bpow radix2 127) by (apply bpow_le; lia).
  change (bpow radix2 8) with 256 in B. unfold eta. change (/ 2) with (bpow radix2 (-1)).
  rewrite <- bpow_plus, bpow_exp.
  apply exp_mono. assert (Q := ln_le_minus1 2 ltac:(lra)). change (IZR radix2) with 2. simpl (IZR _). lra.
Qed.

Theorem exponential_is_met :
  (forall x r, is_number 24 128 x r -> r <= 0 -> is_number 24 128 (exp32 x) (rnd32 (exp r))) /\
  is_number 24 128 (exp32 (B754_infinity true)) 0 /\ exp (- H32) <= eta (-149) /\
  (forall y, y <= 0 -> 0 <= rnd32 (exp y) <= 1) /\ rnd32 (exp 0) = 1 /\ kernels.inF (-149) 24 1.
Proof.
  assert (One : kernels.inF (-149) 24 1) by exact one_inF32.
  assert (F : overflow.fits H32 1).
  { unfold overflow.fits. rewrite Rabs_R1. assert (L := H32_large).
    assert (B : bpow radix2 0 <= bpow radix2 127) by (apply bpow_le; lia). change (bpow radix2 0) with 1 in B. lra. }
  split; [|split; [|split; [|split; [|split]]]].
  - intros x r. exact (@exp_rounded_is 24 128 eq_refl eq_refl F One x r).
  - split; auto.
  - apply exp_H32.
  - intros y. exact (@rounded_range 24 128 eq_refl One y).
  - rewrite exp_0. apply rnd_id; auto.
  - exact One.
Qed.

(** The criteria are met by far: up to 2^16 components and 2^20 keys, any plan of passes, blocks and merges. *)
Lemma pow_le_2 k : INR k <= bpow radix2 20 -> (1 + uf 24) ^ k <= 2.
Proof.
  intros L. assert (E : (1 + uf 24) ^ k <= exp (uf 24 * INR k)).
  { rewrite <- (exp_ln ((1 + uf 24) ^ k)) by (apply pow_lt; assert (Q := uf_pos 24); lra). apply exp_mono.
    rewrite ln_pow by (assert (Q := uf_pos 24); lra). rewrite Rmult_comm. apply Rmult_le_compat_r; [apply pos_INR|].
    assert (Q := uf_pos 24). assert (N := ln_le_minus1 (1 + uf 24) ltac:(lra)). lra. }
  eapply Rle_trans; [apply E|]. assert (S : uf 24 * INR k <= / 2).
  { apply Rle_trans with (uf 24 * bpow radix2 20); [apply Rmult_le_compat_l; [left; apply uf_pos|auto]|].
    unfold uf. rewrite Rmult_assoc, <- bpow_plus. assert (Q := bpow_le radix2 (- (24) + 1 + 20) 0 ltac:(lia)).
    change (bpow radix2 0) with 1 in Q. lra. }
  eapply Rle_trans; [apply exp_mono, S|]. assert (E3 := exp_le_3). assert (P := exp_pos (/ 2)).
  replace 1 with (/ 2 + / 2) in E3 by lra. rewrite exp_plus in E3. apply Rnot_lt_le. intros C.
  assert (2 * 2 < exp (/ 2) * exp (/ 2)) by (apply Rmult_gt_0_lt_compat; lra). lra.
Qed.

Theorem rows_binary32_are_finite dk qf kf vf bf tauf order tau d p :
  (forall j, Permutation (leaves nat (order j)) (seq 0 dk)) ->
  0 <= tau <= 1 -> B2R tauf = tau * (1 + d) -> Rabs d <= 1 -> matched nat p ->
  INR dk <= bpow radix2 16 -> INR (length (okeys nat p)) <= bpow radix2 20 ->
  (forall j, In j (okeys nat p) -> numbers 24 128 dk qf kf vf bf tauf j /\
    (forall c, Rabs (B2R (qf c)) <= bpow radix2 50 /\ Rabs (B2R (kf j c)) <= bpow radix2 50) /\
    Rabs (B2R (bf j)) <= bpow radix2 120 /\ Rabs (B2R (vf j)) <= bpow radix2 100) ->
  is_finite (@frow 24 128 eq_refl eq_refl qf kf vf bf tauf order exp32 p) = true.
Proof.
  intros Ho Ht Et Hd M Ldk Ln G. assert (L := H32_large). destruct exponential_is_met as (X1 & X2 & X3 & X4 & X5 & X6).
  assert (P : forall x y, bpow radix2 x * bpow radix2 y = bpow radix2 (x + y)) by (intros; rewrite bpow_plus; auto).
  assert (Lt : forall x y, (x <= y)%Z -> bpow radix2 x <= bpow radix2 y) by (intros; apply bpow_le; auto).
  assert (B0 : forall x, 0 < bpow radix2 x) by (intros; apply bpow_gt_0).
  assert (Fit : forall k : nat, forall y, INR k <= bpow radix2 20 ->
    0 <= y <= bpow radix2 120 -> (1 + uf 24) ^ k * y <= H32).
  { intros k y Lk Ly. assert (Q := pow_le_2 k Lk). apply Rle_trans with (bpow radix2 1 * bpow radix2 120).
    - apply Rmult_le_compat; try lra; [|change (bpow radix2 1) with 2; lra].
      apply Rfunctions.pow_le. assert (Q' := uf_pos 24). lra.
    - rewrite P. eapply Rle_trans; [apply Lt|apply L]. lia. }
  assert (Ln' : INR (length (okeys nat p) - 1) <= bpow radix2 20) by (eapply Rle_trans; [apply le_INR|apply Ln]; lia).
  enough (Z : exists r, is_number 24 128 (@frow 24 128 eq_refl eq_refl qf kf vf bf tauf order exp32 p) r)
    by (destruct Z as [r [F _]]; exact F). eexists.
  apply (@frow_is 24 128 eq_refl eq_refl dk qf kf vf bf tauf order Ho tau d 1 (proj1 Ht) Et Hd exp32
    (fun y => rnd32 (exp y)) X1 X2 (fun y => @rnd_inF (-149) 24 eq_refl (exp y)) X4 X5 X6 p M).
  - intros j I. destruct (G j I) as (Nj & Gc & Gb & _). split; auto. unfold D1.
    assert (E1 : eta (emin 24 128) <= 1).
    { unfold eta, emin. assert (Q := Lt (3 - 128 - 24)%Z 0%Z ltac:(lia)). change (bpow radix2 0) with 1 in Q. lra. }
    assert (E0 := eta_pos (emin 24 128)). assert (I0 := pos_INR dk).
    assert (SX : Sum (fun c => Rabs (q_real 24 128 qf c * k_real 24 128 kf j c)) (seq 0 dk) <= bpow radix2 116).
    { apply Rle_trans with (Sum (fun _ => bpow radix2 100) (seq 0 dk)).
      - apply Sum_le. intros c _. destruct (Gc c) as [G1 G2]. rewrite Rabs_mult. change 100%Z with (50 + 50)%Z.
        rewrite <- P. apply Rmult_le_compat; auto using Rabs_pos.
      - rewrite Sum_const, seq_length. change 116%Z with (16 + 100)%Z. rewrite <- P. apply Rmult_le_compat_r; auto.
        left. auto. }
    assert (SX0 : 0 <= Sum (fun c => Rabs (q_real 24 128 qf c * k_real 24 128 kf j c)) (seq 0 dk))
      by (apply Sum_nonneg; intros; apply Rabs_pos).
    set (S := Sum _ _) in *. rewrite Rmax_left by lra. rewrite Rmult_1_l.
    assert (DE : INR dk * eta (emin 24 128) <= bpow radix2 16) by (rewrite <- (Rmult_1_r (bpow radix2 16)); apply
      Rmult_le_compat; lra).
    assert (DE0 : 0 <= INR dk * eta (emin 24 128)) by (apply Rmult_le_pos; lra).
    assert (Bb := Rabs_pos (b_real 24 128 bf j)). unfold b_real in *.
    assert (T1 := Lt 16%Z 117%Z ltac:(lia)). assert (T2 := Lt 0%Z 117%Z ltac:(lia)).
    change (bpow radix2 0) with 1 in T2.
    assert (T3 := Lt 116%Z 117%Z ltac:(lia)). assert (T4 := P 3%Z 117%Z). change (bpow radix2 3) with 8 in T4.
    change (3 + 117)%Z with 120%Z in T4. assert (T5 := P 2%Z 120%Z). change (bpow radix2 2) with 4 in T5.
    change (2 + 120)%Z with 122%Z in T5.
    assert (D2 : INR (dk + 2) <= bpow radix2 20).
    { rewrite plus_INR. change (INR 2) with (1 + 1). change (bpow radix2 16) with 65536 in Ldk.
      change (bpow radix2 20) with 1048576. lra. }
    assert (Q := pow_le_2 _ D2). assert (Q0 : 0 <= (1 + uf 24) ^ (dk + 2)) by (apply Rfunctions.pow_le;
      assert (Q' := uf_pos 24); lra).
    set (Y := S + INR dk * eta (emin 24 128) + Rabs (B2R (bf j)) + eta (emin 24 128)) in *.
    assert (YL : Y <= bpow radix2 1 * bpow radix2 120) by (change (bpow radix2 1) with 2; unfold Y; lra).
    assert (Y0 : 0 <= Y) by (unfold Y; lra).
    apply Rle_trans with (((1 + 1) * 2) * (bpow radix2 1 * bpow radix2 120)).
    + apply Rmult_le_compat; auto; [apply Rmult_le_pos; lra|]. apply Rmult_le_compat; lra.
    + replace ((1 + 1) * 2) with (bpow radix2 2) by (simpl; lra). rewrite !P. eapply Rle_trans; [apply Lt|apply L]. lia.
  - unfold D3. apply Fit; auto. split; [apply Sum_nonneg; intros; apply Rabs_pos|].
    apply Rle_trans with (Sum (fun _ => bpow radix2 100) (okeys nat p)).
    + apply Sum_le. intros j I. apply (G j I).
    + rewrite Sum_const. change 120%Z with (20 + 100)%Z. rewrite <- P. apply Rmult_le_compat_r; auto. left. auto.
  - unfold D5. apply Fit; auto. split; [apply pos_INR|]. eapply Rle_trans; [apply Ln|apply Lt; lia].
Qed.

(** D1 to D5 as error-bounds.md writes them and the C++ computes them, of a kernel that takes the maximum. *)
Theorem documented_domain_binary32 dk qf kf vf bf tauf order tau d p :
  (forall j, Permutation (leaves nat (order j)) (seq 0 dk)) ->
  0 <= tau <= bpow radix2 80 -> B2R tauf = tau * (1 + d) ->
  Rabs d <= (1 + uf 24) ^ 2 * (1 + bpow radix2 (-52)) - 1 -> matched nat p -> let J := okeys nat p in
  INR dk <= bpow radix2 16 -> INR (length J) <= bpow radix2 20 ->
  (forall j, In j J -> numbers 24 128 dk qf kf vf bf tauf j /\
    (1 + uf 24) ^ (dk + 4) * (1 + bpow radix2 (-40)) *
      (Rmax 1 tau * Sum (fun c => Rabs (B2R (qf c) * B2R (kf j c))) (seq 0 dk) + Rabs (B2R (bf j))) <= H32) ->
  (1 + uf 24) ^ (2 * length J + 4) * Sum (fun j => Rabs (B2R (vf j))) J <= H32 ->
  is_number 24 128 (@frow 24 128 eq_refl eq_refl qf kf vf bf tauf order exp32 p)
    (finish (-149) 24 (run (-149) 24 nat
      (row.sh (-149) 24 (fun c => B2R (qf c)) (fun j c => B2R (kf j c)) (fun j => B2R (bf j)) (B2R tauf) order)
      (fun j => B2R (vf j)) (fexp_H 24 128 (fun y => rnd32 (exp y))) p)).
Proof.
  intros Ho Ht Et Hd M J Ldk Ln G B3. assert (L := H32_large).
  destruct exponential_is_met as (X1 & X2 & X3 & X4 & X5 & X6).
  set (th := (1 + uf 24) ^ 2 * (1 + bpow radix2 (-52)) - 1) in *. assert (U := uf_pos 24).
  apply (@frow_is 24 128 eq_refl eq_refl dk qf kf vf bf tauf order Ho tau d th (proj1 Ht) Et Hd exp32
    (fun y => rnd32 (exp y)) X1 X2 (fun y => @rnd_inF (-149) 24 eq_refl (exp y)) X4 X5 X6 p M).
  - intros j I. destruct (G j I) as [Nj Bj]. split; auto.
    apply (D1_as_implemented 24 128 dk qf kf bf tau d th Hd j (bpow radix2 (-52)) (bpow radix2 (-40))); auto.
    + split; [apply bpow_ge_0|apply bpow_le; lia].
    + unfold th. lra.
    + assert (D4 : INR (dk + 4) <= bpow radix2 20).
      { rewrite plus_INR. change (INR 4) with (1 + 1 + 1 + 1). change (bpow radix2 16) with 65536 in Ldk.
        change (bpow radix2 20) with 1048576. lra. }
      assert (Q := pow_le_2 _ D4). assert (Q0 : 0 <= (1 + uf 24) ^ (dk + 4)) by (apply Rfunctions.pow_le; lra).
      set (P := (1 + uf 24) ^ (dk + 4)) in *. assert (E0 := eta_pos (emin 24 128)). assert (I0 := pos_INR dk).
      assert (M0 := Rmax_l 1 tau). assert (M1 : Rmax 1 tau <= bpow radix2 80).
      { apply Rmax_lub; [|lra]. assert (T := bpow_le radix2 0 80 ltac:(lia)). change (bpow radix2 0) with 1 in T.
        auto. }
      assert (E1 : eta (emin 24 128) <= bpow radix2 (-100)).
      { unfold eta, emin. assert (T := bpow_le radix2 (3 - 128 - 24) (-100) ltac:(lia)).
        assert (T0 := bpow_gt_0 radix2 (3 - 128 - 24)). lra. }
      assert (Z : Rmax 1 tau * (INR dk * eta (emin 24 128)) <= bpow radix2 (-4)).
      { replace (bpow radix2 (-4)) with (bpow radix2 80 * (bpow radix2 16 * bpow radix2 (-100)))
          by (rewrite <- !bpow_plus; auto).
        apply Rmult_le_compat; try lra; [apply Rmult_le_pos; lra|]. apply Rmult_le_compat; lra. }
      assert (Z0 : 0 <= Rmax 1 tau * (INR dk * eta (emin 24 128)))
        by (assert (0 <= INR dk * eta (emin 24 128)) by (apply Rmult_le_pos; lra); apply Rmult_le_pos; lra).
      assert (T4 := bpow_le radix2 (-4) (-1) ltac:(lia)). assert (T100 := bpow_le radix2 (-100) (-1) ltac:(lia)).
      change (bpow radix2 (-1)) with (/ 2) in *.
      assert (e1 := bpow_le radix2 (-52) (-41) ltac:(lia)). assert (e0 := bpow_gt_0 radix2 (-52)).
      assert (e2 := bpow_le radix2 (-40) 0 ltac:(lia)). change (bpow radix2 0) with 1 in e2.
      assert (e3 := bpow_plus radix2 (-41) 1). change (-41 + 1)%Z with (-40)%Z in e3.
      change (bpow radix2 1) with 2 in e3.
      apply Rle_trans with (2 * 2 * 1 * 2).
      * apply Rmult_le_compat; try lra; [apply Rmult_le_pos; [apply Rmult_le_pos|]; lra|].
        apply Rmult_le_compat; try lra; [apply Rmult_le_pos; lra|]. apply Rmult_le_compat; lra.
      * apply Rle_trans with (bpow radix2 127 * bpow radix2 (-41)).
        -- rewrite <- bpow_plus. assert (T := bpow_le radix2 3 (127 + -41) ltac:(lia)).
        change (bpow radix2 3) with 8 in T.
           lra.
        -- assert (T0 := bpow_gt_0 radix2 127). assert (T1 := bpow_gt_0 radix2 (-41)).
        apply Rmult_le_compat; [lra|lra|exact L|lra].
  - unfold D3. eapply (of_part 24 H32 _ (2 * length J + 4)); [| |exact B3].
    + unfold J. lia.
    + split; [apply Sum_nonneg; intros; apply Rabs_pos|]. apply Rle_refl.
  - unfold D5. assert (Ln' : INR (length J - 1) <= bpow radix2 20)
      by (eapply Rle_trans; [apply le_INR|apply Ln]; lia).
    assert (Q := pow_le_2 _ Ln'). assert (T := bpow_le radix2 21 127 ltac:(lia)).
    assert (T2 := bpow_plus radix2 20 1). change (20 + 1)%Z with 21%Z in T2. change (bpow radix2 1) with 2 in T2.
    assert (I := pos_INR (length J)). apply Rle_trans with (2 * INR (length J)); [apply Rmult_le_compat_r; auto|].
    change (2 * INR (length J) <= H32). lra.
Qed.
