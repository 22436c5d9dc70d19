// error-bounds.md 1.1 and 1.2, per element, as corrected by 1.7.
#include "row_bound.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "inner_loops.h"
#include "key_loops.h"

namespace attest::detail {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Absolute part of a weight's error by its rounding and by underflow of exp, times |v| and summed over all visible
/// keys: per column, into w.lost.
void underflow_sums(const Profile& p, const RowKeys& row, const KeyTerms& terms, const RowValues& values,
                    BoundScratch& w) {
  const double dead = p.least_score < 0x1p-200 ? -1490 : -745;
  w.S_lost.assign(static_cast<std::size_t>(values.stride), 0.0);
  w.lost.assign(static_cast<std::size_t>(values.stride), 0.0);
  const KeyArrays keys{row.s,           row.t,      row.size,    nullptr,    row.la,      row.alpha,  row.b,
                       row.input_error, w.a.data(), w.tm.data(), w.E.data(), w.ph.data(), w.pp.data()};
  const double least =
      key_loops().lost_weights(keys, row.n, p.lam_p, terms.lam_weight, dead, p.exp_vanishes, w.caps.data());
  // Where no weight loses less than the most it can, the plain sum of values says the same.
  const double most = std::min(p.lam_p, 1.0) + terms.lam_weight;
  if (least >= most * (1 - 0x1p-24)) {
    std::fill(w.lost.begin(), w.lost.end(), infinity);
    return;
  }
  w.nothing.assign(static_cast<std::size_t>(row.n), 0.0);
  const InnerLoops& loops = inner_loops();
  loops.spread(w.nothing.data(), w.caps.data(), row.index, row.n, values.v, values.stride, w.S_lost.data(),
               w.S_lost.data(), w.lost.data());
  if (!values.input_error) return;
  for (std::int64_t j = 0; j < row.n; ++j)
    for (std::int64_t k = 0; k < values.dv; ++k)
      w.lost[static_cast<std::size_t>(k)] +=
          w.caps[static_cast<std::size_t>(j)] * values.input_error[(row.index ? row.index[j] : j) * values.stride + k];
}

/// Sums over fewer keys than these are left to doubles.
constexpr std::int64_t least_singles = 32;

/// S, centred at the values rounded to floats, and A of the keys with a weight above u_a, in floats: at most 2^-18 too
/// large. False where a column underflows or overflows there; its sums are then of no use.
bool spread_in_singles(const RowKeys& row, const KeyTerms& terms, const RowValues& values, const double* o,
                       BoundScratch& w) {
  const auto columns = static_cast<std::size_t>(values.stride);
  w.S.assign(columns, 0.0);
  w.A.assign(columns, 0.0);
  w.centre.assign(columns, 0.0F);
  for (std::int64_t k = 0; k < values.dv; ++k) w.centre[static_cast<std::size_t>(k)] = static_cast<float>(o[k]);
  const bool listed = !w.all_big;
  const auto narrow = [&](const std::vector<double>& from, std::vector<float>& to) {
    to.resize(from.size());
    key_loops().narrow(from.data(), terms.big, to.data());
  };
  narrow(listed ? w.big_ph : w.ph, w.single_ph);
  narrow(listed ? w.big_pp : w.pp, w.single_pp);
  inner_loops().spread_singles(w.single_ph.data(), w.single_pp.data(), listed ? w.big_index.data() : row.index,
                               terms.big, values.singles, values.stride, w.centre.data(), w.S.data(), w.A.data());
  // Above this what n terms lose by underflow is a relative 2^-22.
  const double least = static_cast<double>(terms.big) * 0x1p-126;
  bool sure = true;
  for (std::int64_t k = 0; k < values.dv; ++k) {
    const auto i = static_cast<std::size_t>(k);
    sure = sure && w.S[i] >= least && w.A[i] >= least && w.S[i] < infinity && w.A[i] < infinity;
  }
  return sure;
}

}  // namespace

void element_bounds(const Profile& p, const RowKeys& row, const KeyTerms& terms, const RowValues& values,
                    const double* o, const double* r, BoundScratch& w, ElementTerms* out) {
  const auto columns = static_cast<std::size_t>(values.stride);
  const double n = static_cast<double>(row.n), R = p.rescalings;
  w.A_small.assign(columns, 0.0);
  const bool in_singles = values.singles && !r && !values.apart && terms.big >= least_singles &&
                          spread_in_singles(row, terms, values, o, w);
  if (!in_singles) {
    w.S.assign(columns, 0.0);
    w.A.assign(columns, 0.0);
  }
  const InnerLoops& loops = inner_loops();
  const bool listed = !w.all_big;
  if (!in_singles)
    loops.spread(listed ? w.big_ph.data() : w.ph.data(), listed ? w.big_pp.data() : w.pp.data(),
                 listed ? w.big_index.data() : row.index, terms.big, values.v, values.stride, o, w.S.data(),
                 w.A.data());
  if (listed)
    loops.spread(w.small_ph.data(), w.small_pp.data(), w.small_index.data(), terms.small, values.v, values.stride, o,
                 w.S.data(), w.A_small.data());

  const auto h = static_cast<double>(accumulation_depth(p.declared, p.of.keys, row.n));
  const double by_norm = p.norm_first ? (p.depth_declared ? p.c_div : p.c_div - 1) : 0.0;  // C17
  const double plain = pw(p.u_a, h + 1 + 2 * R + p.extra + by_norm);
  const double chain = pw(p.u_a, n + 1 + 2 * R + p.extra);
  const double local = (1 + 2 * R + p.extra + (p.norm_first ? p.c_div : 0.0)) * p.u_a;
  const double merges = (1 + chain) * static_cast<double>(terms.big) * p.u_a;
  const Finish finish(p);
  const double lam_keys = std::min(p.lam_p, 1.0) + terms.lam_weight;
  const double range = terms.weight_gain * (1 + pw(p.u_a, 2 * n + 4)) * (1 + 0x1p-40);

  const double inverse = 1 / terms.denominator;
  const double underflow_here = (n + 16) * 0x1p-1070;  // out of the loop: a subnormal product takes long to compute
  const double LN = terms.factor * (2 * n + 2 * R) * p.lam_a + p.lam_in;  // without what weights lose
  const double per_lost = (1 + 0x1p-30) * (1 + finish.Uf) * inverse * terms.factor;
  bool known_lost = false;
  for (std::int64_t k = 0; k < values.dv; ++k) {
    const auto i = static_cast<std::size_t>(k);
    ElementTerms& e = out[k];
    e = {};
    double most_in = 0, weighted_in = 0, A_in_small = 0;
    if (values.input_error) {
      for (std::int64_t j = 0; j < row.n; ++j) {
        const double in = values.input_error[(row.index ? row.index[j] : j) * values.stride + k];
        const double weight = w.pp[static_cast<std::size_t>(j)];
        most_in = std::max(most_in, in);
        weighted_in += weight * in;
        if (weight <= p.u_a) A_in_small += weight * in;
      }
    }
    const double most_v = std::max(std::fabs(values.low[k]), std::fabs(values.high[k])) + most_in;
    const double A = std::min(w.A[i] + w.A_small[i] + weighted_in, most_v);
    const double apart = std::max({values.high[k] - o[k], o[k] - values.low[k], 0.0});

    // Certificate of the double pass, and S.
    double radius = 0, S = w.S[i];
    const double low = values.o_low ? std::fabs(values.o_low[k]) : 0.0;
    if (r) {
      radius = r[k];
      e.certificate = radius;
    } else {
      // S is centred at o, not at the exact value: as far apart as o is wrong, or by its low part.
      e.certificate = (1 + 0x1p-20) * (terms.ratio_here * S + (2 * n + 8) * row.unit * A + n * 0x1p-1020 * most_v +
                                       2 * terms.most_E_here * low) +
                      (most_v > 0 ? underflow_here : 0.0);
      radius = 2 * e.certificate + low;
      if (in_singles) radius += std::fabs(o[k] - static_cast<double>(w.centre[i]));
    }
    if (values.apart) {
      S = 0;
      for (std::int64_t j = 0; j < row.n; ++j) {
        const double d = values.apart[j * values.stride + k];
        if (d > 0 && w.ph[static_cast<std::size_t>(j)] > 0) S += w.ph[static_cast<std::size_t>(j)] * d;
      }
      radius = 0;
    } else {
      S += terms.reach * radius;
    }
    const double from_radius = values.apart ? 0.0 : terms.reach * radius;
    const double cap = apart + (r ? r[k] : radius);
    S = S <= cap && !terms.capped ? S : cap;
    e.score = S;
    S += std::min(weighted_in, most_in);

    const auto sums_of = [&](double most) {
      const double any = plain * most;
      if (!p.nearest) return any;
      return std::min(any, (1 + chain) * (local * most + (1 + chain) * (merges * most + w.A_small[i] + A_in_small)));
    };
    const double sums = sums_of(A);
    const double N = p.u_p * A + (1 + p.u_p) * sums;
    const double size_o = std::fabs(o[k]) + low + (r ? r[k] : e.certificate);

    double B = infinity, lost = lam_keys * values.abs_sum[k];
    e.hull = infinity;
    if (terms.denominator > 0) {
      // P4 about o', a convex combination of the values, in the place of o: |o'| and sum p|v| are at most max|v|.
      const double N_hull = p.u_p * most_v + (1 + p.u_p) * sums_of(most_v);
      const double hull = finish((N_hull + LN + most_v * (terms.UD + terms.LD)) * inverse, most_v) + per_lost * lost;
      if (hull < most_v || most_v == 0) e.hull = hull;
      B = finish(S + (N + LN + (size_o + S) * (terms.UD + terms.LD)) * inverse, size_o);
      if (!(per_lost * lost <= B * 0x1p-24)) {
        if (!known_lost) underflow_sums(p, row, terms, values, w);
        known_lost = true;
        lost = std::min(lost, w.lost[i]);
      }
      if (lost > 0) B += per_lost * lost;
    }
    e.scores = S, e.radius = values.apart ? 0.0 : radius, e.values = A, e.sums = sums;
    e.underflow = LN + terms.factor * lost, e.size = size_o;
    e.allowed = B;
    e.trusted = from_radius <= 0x1p-10 * B && std::isfinite(e.certificate);

    const double vanished = terms.vanished_gain * (1 + 0x1p-20);
    e.finite_required =
        vanished * std::max(n, values.abs_sum[k]) <= p.H_a && vanished <= p.H_p && vanished * p.least_weight <= 1;

    // What is left of the bound however well the scores are known.
    const double noise = B - (1 + finish.Uf) * S * (1 + (terms.UD + terms.LD) * inverse);
    if (!terms.in_domain || !(range * values.abs_sum[k] <= p.H_a) || !(size_o + B <= p.H_o || B == infinity))
      e.excuse = Excuse::overflow;
    else if (!(B < infinity))
      e.excuse = Excuse::infinite;
    else if ((S > 0 && 2 * S >= B && B >= apart - radius) || (most_v > 0 && noise >= most_v))
      e.excuse = Excuse::vacuous;
  }
}

}  // namespace attest::detail
