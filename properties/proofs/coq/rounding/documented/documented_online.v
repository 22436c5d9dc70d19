(** The bound as error-bounds.md writes it, of programs: two passes, and a running maximum over any number of blocks. *)
From Coq Require Import Reals List Lra Lia Psatz Permutation ZArith.
From Flocq Require Import Core.
From Attest.Rounding Require Import basics scores merge bound kernels documented.
Import ListNotations.
Open Scope R_scope.

Section Online.
Variables emin prec : Z.
Context {Hprec : Prec_gt_0 prec}.
Variable K : Type.
Variables sh vv : K -> R.
Variable fexp : R -> R.
Variables epsE lamE : R.
Hypothesis HepsE : 0 <= epsE < 1.
Hypothesis HlamE : 0 <= lamE.
Hypothesis exp_good : forall x, x <= 0 -> 0 <= fexp x /\ rounded epsE lamE (exp x) (fexp x).
Hypothesis exp_inF : forall x, inF emin prec (fexp x).
Hypothesis sh_inF : forall j, inF emin prec (sh j).
Variables s a : K -> R.
Variables Mp Cs : R.
Local Notation A := (kernels.A emin prec epsE lamE).

Lemma good_documented st J kl cl ko co r ops : good emin prec K sh vv epsE lamE st J kl cl ko co r ->
  (cl <= ops)%nat -> (co <= ops)%nat ->
  (forall j, In j J -> Rabs (sh j - (s j + Cs)) <= a j) -> (forall j, In j J -> s j + a j <= Mp) ->
  0 < low_d K s A a J Mp r ops ->
  Rabs (finish emin prec st - exact K s vv J) <= documented K s vv A a J Mp r ops (uf prec) (eta emin).
Proof.
  destruct st as [[m l] o]. intros [(tl & to_ & Pm & Pp & SL & SO) (i & Ii & Ei) _ _] Cl Co Ha HM Hd. simpl in *.
  apply (documented_bound K s sh vv A (A_sane emin prec epsE lamE HepsE HlamE) eq_refl a J Mp r ops tl to_ m l o Cs
    (uf prec) (eta emin) _ kl r cl ko r co); auto.
  - intros E. rewrite E in Ii. destruct Ii.
  - exists i. split; auto. simpl. lra.
  - left. apply uf_pos.
  - apply rnd_near; auto.
Qed.

(** Of n keys in B blocks, R = B - 1: 2n - 1 products and sums, and R rescalings, may underflow. Two passes are one
    block. *)
Theorem online_documented b bs :
  Forall (fun b => Permutation (leaves K (fst b)) (leaves K (snd b))) (b :: bs) ->
  let J := keys_of K (b :: bs) in let R := length bs in let ops := (2 * length J - 1 + R)%nat in
  (forall j, In j J -> Rabs (sh j - (s j + Cs)) <= a j) -> (forall j, In j J -> s j + a j <= Mp) ->
  0 < low_d K s A a J Mp R ops ->
  Rabs (finish emin prec (online emin prec K sh vv fexp b bs) - exact K s vv J) <=
    documented K s vv A a J Mp R ops (uf prec) (eta emin).
Proof.
  intros F J R ops Ha HM Hd.
  set (h := fold_right (fun c x => Nat.max (Nat.max (depth K (fst c)) (depth K (snd c))) x) 0%nat (b :: bs)).
  assert (D : Forall (fun b => depth K (fst b) <= h /\ depth K (snd b) <= h)%nat (b :: bs)).
  { unfold h. generalize (b :: bs). intros l. induction l as [|c l IH]; constructor; simpl; [lia|].
    eapply Forall_impl; [|apply IH]. intros c'. simpl. lia. }
  destruct (good_online emin prec K sh vv fexp epsE lamE HepsE HlamE exp_good exp_inF sh_inF b bs h F D)
    as (kl & cl & ko & co & G & _ & Cn).
  fold J R in Cn. apply (good_documented _ J kl cl ko co R ops G); auto; unfold ops; lia.
Qed.

(** Of states that are merged, each of blocks or of merges: at most 2n - 2 rescalings. *)
Theorem combine_documented s1 s2 J1 J2 kl1 cl1 ko1 co1 kl2 cl2 ko2 co2 r :
  good emin prec K sh vv epsE lamE s1 J1 kl1 cl1 ko1 co1 r ->
  good emin prec K sh vv epsE lamE s2 J2 kl2 cl2 ko2 co2 r ->
  let J := J1 ++ J2 in let ops := (4 * length J - 3)%nat in
  (forall j, In j J -> Rabs (sh j - (s j + Cs)) <= a j) -> (forall j, In j J -> s j + a j <= Mp) ->
  0 < low_d K s A a J Mp (S r) ops ->
  Rabs (finish emin prec (combine emin prec fexp s1 s2) - exact K s vv J) <=
    documented K s vv A a J Mp (S r) ops (uf prec) (eta emin).
Proof.
  intros G1 G2 J ops Ha HM Hd.
  destruct (good_combine emin prec K sh vv fexp epsE lamE HepsE HlamE exp_good s1 s2 J1 J2 _ _ _ _ _ _ _ _ r G1 G2)
    as (cl & co & G).
  assert (C := g_counts _ _ _ _ _ _ _ _ _ _ _ _ _ _ G). fold J in C.
  apply (good_documented _ J _ cl _ co (S r) ops G); auto; unfold ops; lia.
Qed.
End Online.
