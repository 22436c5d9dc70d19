#!/usr/bin/env python3
"""An independent evaluation of the deterministic bound, written from error-bounds.md 1.1 as corrected by 1.7 and from
nothing else, in 60 decimal digits. It writes bound_reference.json, which error_bound_reference_test.cc holds the C++
evaluation to: two implementations of one text, in two precisions, that share no line.

Run: /usr/bin/python3 bound_reference.py > bound_reference.json   (needs mpmath)
"""
import json
import random
import struct

from mpmath import mp, mpf, exp, log, expm1

mp.dps = 60
TWO = mpf(2)


def f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def pw(u, c):
    """(1+u)^c - 1; 1.7.24 lets it stand for gamma_c as well."""
    return (1 + mpf(u)) ** c - 1


def oplus(a, b):
    return a + b + a * b


def bound_row(p, q, k, v, b, tau, pre_scale):
    """B_k of every output element, for a profile p without lse merge and without fixed shift."""
    n, dk, dv = len(k), len(q), len(v[0])
    q = [mpf(c) for c in q]
    k = [[mpf(c) for c in row] for row in k]
    v = [[mpf(c) for c in row] for row in v]
    tau = mpf(tau)
    bias = b is not None
    b = [mpf(c) for c in b] if bias else [mpf(0)] * n
    x = [sum(qc * kc for qc, kc in zip(q, row)) for row in k]
    X = [sum(abs(qc * kc) for qc, kc in zip(q, row)) for row in k]
    t = [tau * xj for xj in x]
    s = [tau * (xj + bj) for xj, bj in zip(x, b)] if pre_scale else [tj + bj for tj, bj in zip(t, b)]
    g = s if pre_scale else t
    m = max(s)
    lse = m + log(sum(exp(sj - m) for sj in s))
    la = [sj - lse for sj in s]
    alpha = [exp(a) for a in la]
    o = [sum(alpha[j] * v[j][c] for j in range(n)) for c in range(dv)]

    P = {key: (mpf(value) if not isinstance(value, (bool, str)) else value) for key, value in p.items()}
    n_s, R, h = dk + int(p["dot_extra"]), int(p["R"]), n
    u_s, u_a = P["u_s"], P["u_a"]
    gs = oplus(pw(u_s, n_s), P["u_qpre"])
    thS = pw(P["u_sc"], int(p["c_sc"]))
    thB = oplus(oplus(pw(P["u_b"], int(p["c_b"])) if bias else mpf(0), P["u_store"]), pw(P["u_sc"], int(p["c_end"])))
    thE = pw(P["u_e"], int(p["c_e"]))
    th_tau, th_l2e = P["th_tau"], P["th_l2e"]
    lam_s, lam_e, lam_a, lam_store = P["lam_s"], P["lam_e"], P["lam_a"], P["lam_store"]
    gbar = sum(a * gj for a, gj in zip(alpha, g))
    sbar = sum(a * sj for a, sj in zip(alpha, s))
    a_, tm, ap = [], [], []
    for j in range(n):
        if P["prescaled"]:  # 1.7.4: tau*e1 as a whole
            te1 = tau * gs * X[j] + (1 + gs) * (2 * n_s * lam_s + P["lam_q"] * sum(abs(c) for c in k[j]))
        else:
            te1 = tau * (gs * X[j] + 2 * n_s * lam_s * (1 + gs))
        if P["u_x"] > 0:  # 1.7.6: the raw product stored
            te1 += P["u_x"] * (tau * abs(x[j]) + te1) + tau * P["lam_x"]
        if pre_scale:
            th = oplus(thB, thS)
            aj = (1 + th_tau) * ((1 + th) * te1 + th * abs(s[j])) + 2 * lam_s + lam_store
        else:
            aj = (1 + thB) * ((1 + th_tau) * ((1 + thS) * te1 + thS * abs(t[j])) + 2 * lam_s + lam_store) + thB * (
                abs(s[j]) + th_tau * abs(t[j]))
        a_.append(aj)
        tm.append(th_tau * (1 + th_l2e) * abs(g[j] - gbar) + th_l2e * abs(s[j] - sbar))
        ap.append(aj * (1 + th_l2e) + th_tau * abs(g[j]) * (1 + th_l2e) + th_l2e * abs(s[j]))
    T, c_m, eps = P["T"], P["c_m"], P["eps_exp"]
    far = [aj * (1 + th_l2e) for aj in a_]  # 1.7.49
    Mplus = max(s[j] + far[j] + tm[j] for j in range(n))
    Mabs = max(abs(max(s[j] + ap[j] for j in range(n))), abs(max(s[j] - ap[j] for j in range(n))))
    E = []
    for j in range(n):
        D = Mplus - (s[j] - far[j] - tm[j]) + 2 * T
        Q = max(abs(s[j]) + ap[j], Mabs) + T
        E.append(a_[j] * (1 + th_l2e) + tm[j] + thE * D + c_m * P["u_e"] * (1 + thE) * Q 
                 + (eps / (1 - eps) + P["lam_exponent"]) * (1 + R))
    mz = max(la[j] - E[j] for j in range(n))
    z = mz + log(sum(exp(la[j] - E[j] - mz) for j in range(n)))
    pp = [exp(min(mpf(0), la[j] + E[j] - z)) for j in range(n)]
    norm_first, c_div = int(p["norm_first"]), int(p["c_div"])
    cN = h + 1 + 2 * R + norm_first * (c_div - 1)
    cD = h + 2 * R
    UD = pw(u_a, cD)
    g_ = pw(u_a, n + 1 + 2 * R)
    if P["rn"]:  # 1.2, refined accumulation
        UD = min(UD, (1 + g_) * (2 * R * u_a + (1 + g_) * sum(min(u_a, pj) for pj in pp)))
    LDterm = lam_e * (2 + R * exp((1 + thE) * T + c_m / 2))  # 1.7.3, 1.7.40
    twice = R * (17 + 16 * R) * lam_e * (P["lam_p"] + LDterm + lam_e)  # 1.7.39
    common = (eps / (1 - eps) + P["lam_exponent"]) * (1 + R)
    at_last = c_m * P["u_e"] * (1 + thE) * (Mabs + T)  # 1.7.50
    grown = exp(2 * (thE * T + common) + at_last) * (1 + u_a) ** (n + R) * (1 + P["u_p"]) * (1 + lam_e) ** R  # 1.7.40
    LD = 2 * grown * (n * (LDterm + twice) + (n + 2 * R) * lam_a)
    low = (1 - u_a) ** cD  # 1.7.24: what the sum of weights cannot fall below
    if P["p_in_denom"]:
        UD = oplus(UD, P["u_p"])
        low *= 1 - P["u_p"]
        LD += 2 * grown * n * (P["lam_p"] + min(P["lam_p"], lam_a))
    low = max(1 - UD, low) - LD
    Uf = oplus(pw(u_a, c_div), P["u_o"])
    out = []
    for c in range(dv):
        d = [abs(v[j][c] - o[c]) for j in range(n)]
        dmax = max(d)
        total = mpf(0)
        for j in range(n):
            total += exp(la[j] - z) * expm1(E[j]) * d[j]
        S = min(total, dmax)
        Vmax = max(abs(v[j][c]) for j in range(n))
        Ap = min(sum(pp[j] * abs(v[j][c]) for j in range(n)), Vmax)
        acc = pw(u_a, cN) * Ap
        if P["rn"]:
            acc = min(acc, (1 + g_) * ((1 + 2 * R + norm_first * c_div) * u_a * Ap
                                       + (1 + g_) * sum(min(u_a * Ap, pp[j] * abs(v[j][c])) for j in range(n))))
        N = P["u_p"] * Ap + (1 + P["u_p"]) * acc
        stored = [min(P["lam_p"], pp[j]) for j in range(n)]
        LN = 2 * grown * (sum(abs(v[j][c]) * (stored[j] + min(LDterm, mpf("1.0625") * pp[j] + stored[j]) + twice)
                              for j in range(n)) + (2 * n + 2 * R) * lam_a)
        pre = S + (N + LN + (abs(o[c]) + S) * (UD + LD)) / low
        out.append((1 + TWO ** -30) * ((1 + Uf) * pre + Uf * abs(o[c]) + (1 + Uf) * max(P["lam_o"], lam_a)))
    return o, out, E


U32, L32 = 2.0 ** -24, 2.0 ** -150
BASE = dict(dot_extra=0, u_s=U32, u_qpre=0.0, prescaled=False, lam_q=0.0, u_sc=U32, c_sc=1, c_end=0, u_b=U32, c_b=1,
            u_store=0.0, lam_store=0.0, u_x=0.0, lam_x=0.0, th_tau=U32, th_l2e=0.0, u_e=U32, c_e=1, c_m=0, T=0.0,
            eps_exp=2.0 ** -23, R=0, u_p=0.0, lam_p=0.0, p_in_denom=False, u_a=U32, rn=True, norm_first=0, c_div=1,
            u_o=0.0, lam_o=0.0, lam_s=L32, lam_e=L32, lam_a=L32, lam_exponent=L32)
PROFILES = {
    "f32 two-pass": {},
    "f32 normalised first": dict(norm_first=1, c_div=2),
    "f32 flash, exp2 folded": dict(c_m=1, c_e=2, th_l2e=2.0 ** -23, th_tau=2.0 ** -22, R=4),
    "f32 lazy": dict(T=5.5, R=6),
    "f32 truncating": dict(u_s=2 * U32, u_a=2 * U32, rn=False, lam_s=2 * L32, lam_a=2 * L32, R=2),
    "f32 prescaled q": dict(u_qpre=U32, prescaled=True, lam_q=L32, c_sc=0),
    "bf16 flash": dict(u_p=2.0 ** -8, lam_p=2.0 ** -134, u_o=2.0 ** -8, lam_o=2.0 ** -134, R=3),
    "bf16 scores stored": dict(u_store=2.0 ** -8, lam_store=2.0 ** -134, u_p=2.0 ** -8, lam_p=2.0 ** -134,
                               p_in_denom=True, u_o=2.0 ** -8, lam_o=2.0 ** -134),
    "bf16 products stored": dict(u_x=2.0 ** -8, lam_x=2.0 ** -134, u_p=2.0 ** -8, lam_p=2.0 ** -134,
                                 u_o=2.0 ** -8, lam_o=2.0 ** -134),
    "f16 everywhere": dict(u_s=2.0 ** -11, u_sc=2.0 ** -11, u_b=2.0 ** -11, u_e=2.0 ** -11, u_a=2.0 ** -11,
                           u_p=2.0 ** -11, th_tau=2.0 ** -11, eps_exp=2.0 ** -10, lam_s=2.0 ** -25, lam_e=2.0 ** -25,
                           lam_a=2.0 ** -25, lam_exponent=2.0 ** -25, lam_p=2.0 ** -25, u_o=0.0, lam_o=0.0),
}


def main():
    rng = random.Random(20240229)
    rows = []
    for name, change in PROFILES.items():
        for regime in ("gauss", "dominant", "offset", "bias", "masked-far", "constant-values"):
            n, dk, dv = rng.choice([1, 2, 3, 7, 20]), rng.choice([1, 2, 5, 16]), 2
            if regime == "constant-values":
                n = max(n, 2)
            wide = {"gauss": 1.0, "dominant": 4.0, "offset": 1.0, "bias": 1.0, "masked-far": 1.0, "constant-values": 2.0}[regime]
            if name.startswith("f16"):
                wide = min(wide, 1.0)
            q = [f32(rng.gauss(0, wide)) for _ in range(dk)]
            k = [[f32(rng.gauss(0, wide)) for _ in range(dk)] for _ in range(n)]
            v = [[f32(rng.gauss(0, 1)) for _ in range(dv)] for _ in range(n)]
            if regime == "constant-values":
                v = [v[0]] * n
            if regime == "offset":
                k = [[f32(c + 8) for c in row] for row in k]
            b = None
            if regime in ("bias", "masked-far"):
                b = [f32(rng.gauss(0, 2)) for _ in range(n)]
                if regime == "masked-far" and n > 1 and not name.startswith("f16"):
                    b[-1] = f32(-1024.1)
            pre_scale = regime == "bias" and rng.random() < 0.5
            tau = f32(dk ** -0.5 * 0.9)  # no power of two: the exactness rule must not apply
            p = dict(BASE, **change)
            o, B, E = bound_row(p, q, k, v, b, tau, pre_scale)
            rows.append(dict(profile=name, fields=p, regime=regime, pre_scale=pre_scale, scale=tau, q=q, k=k, v=v, b=b,
                             o=[mp.nstr(c, 20) for c in o], bound=[mp.nstr(c, 20) for c in B],
                             max_E=mp.nstr(max(E), 20)))
    json.dump({"what": __doc__.split("\n")[0], "rows": rows}, __import__("sys").stdout, indent=0)
    print()


if __name__ == "__main__":
    main()
