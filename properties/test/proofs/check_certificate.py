"""Checks certificates of attest prove without Attest:  check_certificate.py FILE...

A certificate holds equalities of fractions of polynomials with integer coefficients:

    left  = (NUMERATOR)
          / (DENOMINATOR)
    right = (NUMERATOR)
          / (DENOMINATOR)
    left.num*right.den - right.num*left.den = 0
    E1 = exp(ARGUMENT)

Accepted when, for every equality, left.num * right.den and right.num * left.den are the same polynomial, each
denominator is a sum of positive terms (of exponentials E1, E2, ... and the scale) and so has no zero, and each atom is
defined once. Exit 0: all are accepted; 1: one is not, with the reason, or cannot be read.
"""

import re
import sys
from collections import Counter

TERM = re.compile(r"([+-]?)([^+-]+)")
FACTOR = re.compile(r"(?:(\d+)|([A-Za-z_]\w*))(?:\^(\d+))?")
EQUALITY = re.compile(
    r"left  = \((?P<ln>.*)\)\n +/ \((?P<ld>.*)\)\nright = \((?P<rn>.*)\)\n +/ \((?P<rd>.*)\)\n"
    r"left\.num\*right\.den - right\.num\*left\.den = (?P<difference>.*)\n(?P<rest>(?:(?!left  = ).*\n?)*)")
POSITIVE = re.compile(r"(E\d+|scale|root)$")


class Refused(Exception):
    pass


def polynomial(text):
    """{((name, power), ...): coefficient} of "2*x^2*y-E1+3"."""
    terms, matched = Counter(), ""
    for sign, body in TERM.findall(text):
        matched += sign + body
        coefficient, powers = (-1 if sign == "-" else 1), Counter()
        for factor in body.split("*"):
            found = FACTOR.fullmatch(factor)
            if not found:
                raise Refused(f"{factor!r} is no factor of a term")
            number, name, power = found[1], found[2], int(found[3] or 1)
            if number:
                coefficient *= int(number) ** power
            else:
                powers[name] += power
        terms[tuple(sorted(powers.items()))] += coefficient
    if matched != text:
        raise Refused(f"{text[:40]!r} is no polynomial")
    return {monomial: c for monomial, c in terms.items() if c}


def product(a, b):
    terms = Counter()
    for left, x in a.items():
        for right, y in b.items():
            powers = Counter(dict(left))
            powers.update(dict(right))
            terms[tuple(sorted(powers.items()))] += x * y
    return {monomial: c for monomial, c in terms.items() if c}


def require_positive(denominator):
    for monomial, coefficient in denominator.items():
        if coefficient <= 0 or any(power % 2 and not POSITIVE.match(name) for name, power in monomial):
            raise Refused(f"a denominator has the term {coefficient} {monomial}, which may be 0 or negative")
    if not denominator:
        raise Refused("a denominator is 0")


def check(text):
    """How many equalities there are, all of them true."""
    equalities = list(EQUALITY.finditer(text))
    if not equalities or text.count("left  = ") != len(equalities):
        raise Refused("holds no equality, or one that cannot be read")
    for equality in equalities:
        ln, ld, rn, rd = (polynomial(equality[part]) for part in ("ln", "ld", "rn", "rd"))
        require_positive(ld)
        require_positive(rd)
        if product(ln, rd) != product(rn, ld):
            raise Refused("left.num*right.den and right.num*left.den are different polynomials")
        if equality["difference"] != "0":
            raise Refused("the difference is not 0")
        atoms = [line.split(" = ")[0] for line in equality["rest"].splitlines() if " = " in line]
        if len(atoms) != len(set(atoms)):
            raise Refused("an atom is defined twice")
        used = {name for p in (ln, ld, rn, rd) for monomial in p for name, _ in monomial}
        for name in used:
            if re.fullmatch(r"E\d+", name) and name not in atoms:
                raise Refused(f"{name} is not defined")
    return len(equalities)


def main(files):
    for file in files:
        try:
            with open(file, encoding="utf-8") as stream:
                print(f"{file}: {check(stream.read())} equalities hold")
        except OSError as error:
            sys.exit(f"{file}: {error}")
        except Refused as why:
            print(f"{file}: refused: {why}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
