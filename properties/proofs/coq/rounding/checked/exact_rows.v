(** Rows that [check] of checked_rows.v and its kin judge with exact integers, and what their verdicts say. *)
From Coq Require Import Reals List ZArith.
From Interval Require Import Float.Specific_ops Float.Specific_stdz Interval.Float_full.
From Attest.Rounding Require Import bound checked_rows checked_divided checked_split.
Import ListNotations.

Module Integers := SpecificFloat StdZRadix2.
Module Ends := FloatIntervalFull Integers.
Module Divided := CheckedDivided Ends.
Module Split := CheckedSplit Ends.
Import Divided Divided.Rows Divided.Rows.E.V.
Open Scope R_scope.

(** No kernel of the class errs by more than was allowed of the row. *)
Theorem checked_row precision c x oh : check precision c x = true -> answers c x oh ->
  Rabs (oh - exact _ (s_of x) value (J x)) <= number (r_allowed x).
Proof. apply Divided.Rows.checked_row. Qed.
(** Nor does one that may divide its weights before they meet the values. *)
Theorem checked_divided_row precision c x oh : check_divided precision c x = true ->
  answers c x oh \/ answers_divided c x oh ->
  Rabs (oh - exact _ (s_of x) value (J x)) <= number (r_allowed x).
Proof. apply Divided.checked_divided_row. Qed.

(** Nor does one whose keys may be in any parts that are merged. *)
Theorem checked_split_row precision c x oh : Split.check precision c x = true -> Split.answers c x oh ->
  Rabs (oh - exact _ (Split.Rows.s_of x) Split.Rows.value (Split.Rows.J x)) <=
    Split.Rows.E.V.number (Split.Rows.r_allowed x).
Proof. apply Split.checked_row. Qed.

(** That it says so of a row at all: two keys, of which a running maximum meets one after the other, in binary32; an
    exponential right to two units, exponents and quotient rounded once. 2^-20 is allowed of a value of 1. *)
Local Notation N m e := (Float m e : Integers.type).
Local Open Scope Z_scope.
Definition claims32 rescalings := Arithmetic (N 1 (-24)) (N 1 (-150)) 1 (N 0 0) (N 1 (-24)) (N 1 (-150)) (N 0 0) (N 0 0)
  1 (N 1 (-150)) (N 0 0) (N 1 (-23)) (N 1 (-149)) (N 0 0) (N 0 0) false (N 1 (-24)) (N 1 (-150)) rescalings 1 (N 0 0)
  (N 0 0) (N 0 0) (N 0 0) 0 (N 0 0) (N 0 0) None false.
Definition two_keys allowed := Row (N 1 (-1)) [N 1 0; N 3 (-2)]
  [([N 1 (-1); N 1 0], N 0 0, N 1 0); ([N (-1) 0; N 1 (-2)], N 0 0, N (-1) (-1))] allowed (N 1 (-2)) (N 0 0) [].
Definition bits := Integers.PtoP 100.
Lemma two_keys_checked : check bits (claims32 1) (two_keys (N 1 (-20))) = true.
Proof. vm_compute. reflexivity. Qed.
(** As much is enough of exponents of base 2 whose scale and references are folded into them. *)
Definition folded32 := Arithmetic (N 1 (-24)) (N 1 (-150)) 4 (N 1 (-52)) (N 1 (-23)) (N 1 (-149)) (N 1 (-24))
  (N 1 (-150)) 3 (N 1 (-149)) (N 0 0) (N 1 (-23)) (N 1 (-149)) (N 0 0) (N 0 0) false (N 1 (-24)) (N 1 (-150)) 1 1
  (N 0 0) (N 0 0) (N 0 0) (N 0 0) 2 (N 1 (-24)) (N 1 (-150)) None false.
Lemma folded_keys_checked : check bits folded32 (two_keys (N 4 (-22))) = true.
Proof. vm_compute. reflexivity. Qed.
(** [two_keys_checked] of two passes, divided first or last. *)
Lemma two_keys_divided : check_divided bits (claims32 0) (two_keys (N 1 (-20))) = true.
Proof. vm_compute. reflexivity. Qed.
(** In one part or in two, divided last or not, with a logarithm right to two units: four times as much. *)
Definition split32 := Split.Split (Split.Rows.Arithmetic (N 1 (-24)) (N 1 (-150)) 1 (N 0 0) (N 1 (-24)) (N 1 (-150))
  (N 0 0) (N 0 0) 1 (N 1 (-150)) (N 0 0) (N 1 (-23)) (N 1 (-149)) (N 0 0) (N 0 0) false (N 1 (-24)) (N 1 (-150)) 1 1
  (N 0 0) (N 0 0) (N 0 0) (N 0 0) 0 (N 0 0) (N 0 0) None false) (N 1 (-22)).
Lemma two_keys_split : Split.check bits split32 (Split.Rows.Row (N 1 (-1)) [N 1 0; N 3 (-2)]
  [([N 1 (-1); N 1 0], N 0 0, N 1 0); ([N (-1) 0; N 1 (-2)], N 0 0, N (-1) (-1))]
  (N 1 (-18)) (N 1 (-2)) (N 0 0) []) = true.
Proof. vm_compute. reflexivity. Qed.
