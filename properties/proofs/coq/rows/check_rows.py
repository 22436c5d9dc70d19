#!/usr/bin/env python3
"""Asks Coq whether bounds that were allowed are as large as the tolerance that is proved: draws rows (write_rows.cc),
and evaluates the tolerance of each by the check of rounding/checked that is written with it, in doubles first, whose
axioms floats.v lists, and where those are not precise enough in integers of as many bits as --bits says. Each answer is
a lemma that Coq's kernel checks; a row that none of them decides fails.

    check_rows.py --compiled BUILD/CoqRounding --write BUILD/write_rows --rows 200 builtin:flash/f32 ...
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

DOUBLES = """From Coq Require Import List Floats ZArith.
From Interval Require Import Float.Primitive_ops Interval.Float_full.
Module Ends := FloatIntervalFull PrimitiveFloat.
{modules}
Definition precision := PrimitiveFloat.PtoP 53%positive.
Open Scope float_scope.
"""
INTEGERS = """From Coq Require Import List ZArith.
From Bignums Require Import BigZ.
From Interval Require Import Float.Specific_ops Float.Specific_bigint Interval.Float_full.
Module Floats := SpecificFloat BigIntRadix2.
Module Ends := FloatIntervalFull Floats.
{modules}
Definition precision := Floats.PtoP {bits}%positive.
Local Notation N m e := (Specific_ops.Float (m)%bigZ (e)%bigZ : Floats.type).
Local Open Scope Z_scope.
"""
# By whether parts are merged: a file may have one of the two.
MODULES = {
    False: """From Attest.Rounding Require Import checked_rows checked_divided.
Module Divided := CheckedDivided Ends.
Import ListNotations Divided.Rows Divided.""",
    True: """From Attest.Rounding Require Import checked_rows checked_split.
Module Merged := CheckedSplit Ends.
Import ListNotations Merged.Rows Merged.""",
}
VERDICTS = """
Definition verdicts := Eval vm_compute in map (fun judged => judged precision) rows.
Lemma verdicts_are : map (fun judged => judged precision) rows = verdicts.
Proof. vm_cast_no_check (eq_refl verdicts). Qed.
Print verdicts.
"""
NUMBER = re.compile(r"(-?)0x([01])(?:\.([0-9a-f]+))?p([+-]\d+)")


def integer(match):
    """A number as one of Coq's pairs of integers."""
    sign, whole, digits, exponent = match.groups()
    digits = digits or ""
    mantissa, power = int(whole + digits, 16), int(exponent) - 4 * len(digits)
    while mantissa and mantissa % 2 == 0:
        mantissa, power = mantissa // 2, power + 1
    return f"(N ({sign}{mantissa}) ({power if mantissa else 0}))"


def rows_of(text):
    """The rows, each as it was written."""
    return re.split(r";\n (?=\()", text.strip().removesuffix("].").partition("[\n ")[2])


def undecided(options, name, header, rows):
    """The rows of which Coq does not say that what was allowed is as large as what is proved."""
    header = header.replace("{modules}", MODULES["(Split " in rows[0]])
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / f"{name}.v"
        file.write_text(header + "Definition rows := [\n " + ";\n ".join(rows) + "]." + VERDICTS)
        done = subprocess.run([options.coqc, "-q", "-Q", options.compiled, "Attest.Rounding", file], capture_output=True,
                              text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"coqc refuses the rows of {name}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    said = re.findall(r"\b(true|false)\b", done.stdout)
    if len(said) != len(rows):
        sys.exit(f"coqc says {len(said)} words of {len(rows)} rows of {name}")
    return [row for row, word in zip(rows, said) if word == "false"]


def check(options, kernel, dtype):
    """Rows that are not decided; what was is printed."""
    written = subprocess.run([options.write, kernel.removeprefix("builtin:"), dtype, str(options.rows), str(options.seed),
                              str(options.share)], capture_output=True, text=True, check=False)
    if written.returncode != 0:
        sys.exit(written.stderr)
    rows = left = rows_of(written.stdout)
    name, said = f"rows_{re.sub('[^a-z0-9]', '_', kernel)}_{dtype}", []
    # A double knows too little of what one of f64 errs by.
    if dtype != "f64":
        left = undecided(options, name, DOUBLES, rows)
        said.append(f"{len(rows) - len(left)} by doubles")
    for bits in options.bits:
        if not left:
            break
        header, before = INTEGERS.replace("{bits}", str(bits)), len(left)
        precise = undecided(options, name, header, [NUMBER.sub(integer, row) for row in left])
        left = precise
        said.append(f"{before - len(left)} by {bits} bits")
    print(f"{kernel} {dtype}: {len(rows)} rows, {', '.join(said)}, {len(left)} not", flush=True)
    return left


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compiled", type=pathlib.Path, required=True, help="where the compiled files of rounding/ are")
    parser.add_argument("--write", type=pathlib.Path, required=True, help="the program write_rows")
    parser.add_argument("--coqc", default="coqc")
    parser.add_argument("--rows", type=int, default=100, help="of each kernel and dtype (default: 100)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--bits", type=int, nargs="+", default=[120, 500],
                        help="of the integers, one after another for what is left (default: 120 500)")
    parser.add_argument("--share", type=float, default=1, help="of what was allowed (default: 1). Less: none may be decided")
    parser.add_argument("--show", type=int, default=3, help="rows that were not decided (default: 3)")
    parser.add_argument("kernels", nargs="+", metavar="KERNEL/DTYPE")
    options = parser.parse_args()
    left = [row for place in options.kernels for row in check(options, *place.rsplit("/", 1))]
    if options.share < 1:
        return 0 if len(left) == options.rows * len(options.kernels) else 1
    for row in left[: options.show]:
        print(row)
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
