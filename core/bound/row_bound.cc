// error-bounds.md 1.1 and 1.2, per element, as corrected by 1.7.
#include "core/bound/row_bound.h"

#include <algorithm>
#include <cmath>

#include "core/bound/loops/inner_loops.h"
#include "core/bound/loops/key_loops.h"
#include "core/bound/underflow.h"
#include "core/support/infinity.h"

namespace attest::detail {
namespace {

/// Absolute part of a weight's error by its rounding and by underflow of exp, times |v| and summed over all visible
/// keys: per column, into w.lost.
void underflow_sums(const Profile& p, const RowKeys& row, const KeyTerms& terms, const RowValues& values,
                    BoundScratch& w) {
  w.S_lost.assign(static_cast<std::size_t>(values.stride), 0.0);
  w.lost.assign(static_cast<std::size_t>(values.stride), 0.0);
  const KeyArrays keys{row.s,           row.t,      row.size,    nullptr,    row.la,      row.alpha,  row.b,
                       row.input_error, w.a.data(), w.tm.data(), w.E.data(), w.ph.data(), w.pp.data()};
  const double least = key_loops().lost_weights(keys, row.n, p.lam_p, terms.lam_weight, p.vanishing_exponent, terms.z,
                                                p.exp_vanishes, w.caps.data());
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

/// The sums over keys of every column, into w.S, w.A and w.A_small. Returns whether they were taken in floats.
bool spread_values(const RowKeys& row, const KeyTerms& terms, const RowValues& values, const double* o, bool sure_of_o,
                   BoundScratch& w) {
  const auto columns = static_cast<std::size_t>(values.stride);
  w.A_small.assign(columns, 0.0);
  const bool in_singles = values.singles && !sure_of_o && !values.apart && terms.big >= least_singles &&
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
  return in_singles;
}

/// A row whose elements are bounded one after another: what is given of it, and what is the same for all of them.
struct RowPass {
  RowPass(const Profile& profile, const RowKeys& of, const KeyTerms& of_keys, const RowValues& of_values,
          const double* centre, const double* radius, BoundScratch& scratch);

  const Profile& p;
  const RowKeys& row;
  const KeyTerms& terms;
  const RowValues& values;
  const double* o;
  const double* r;
  BoundScratch& w;
  bool in_singles;
  double n;
  Accumulation sums;
  Finish finish;
  double enlarged;          ///< losses of weights are computed so many times as large: in f64 they are subnormal
  double lam_keys;          ///< the most that a weight loses by underflow, enlarged
  double rounded_up;        ///< by what roundings make sums of weights and values larger at the most (C42)
  double range;             ///< what multiplies the values at the most, in a sum
  double inverse;           ///< of the least denominator
  double underflow_here;    ///< of the double pass, here
  double LN;                ///< underflow, without what weights lose
  double per_lost;          ///< what a loss of the weights makes of the answer
  bool known_lost = false;  ///< w.lost is filled
};

RowPass::RowPass(const Profile& profile, const RowKeys& of, const KeyTerms& of_keys, const RowValues& of_values,
                 const double* centre, const double* radius, BoundScratch& scratch)
    : p(profile),
      row(of),
      terms(of_keys),
      values(of_values),
      o(centre),
      r(radius),
      w(scratch),
      in_singles(spread_values(of, of_keys, of_values, centre, radius != nullptr, scratch)),
      n(static_cast<double>(of.n)),
      sums(profile, of.n, of_keys.big),
      finish(profile) {
  lam_keys = std::min(p.lam_p, 1.0) + terms.lam_weight + terms.lam_twice;
  enlarged = lam_keys < 0x1p-900 ? 0x1p100 : 1;
  lam_keys *= enlarged;
  rounded_up = (1 + pw(p.u_a, 2 * n + 4)) * (1 + join(p.u_p, p.u_drop)) * (1 + 0x1p-40);  // C42
  range = terms.weight_gain * rounded_up;
  inverse = 1 / terms.denominator;
  underflow_here = subnormal(16 * (of.n + 16));
  LN = terms.factor * (2 * n + p.rescaling_operations(n)) * p.lam_a + p.lam_in + p.lam_drop;
  per_lost = (1 + 0x1p-30) * (1 + finish.Uf) * inverse * terms.factor;
}

/// What an element's bound needs of the values of its column.
struct Column {
  double most_in = 0, weighted_in = 0, small_in = 0;  ///< errors of the values: largest, A of them, of small weights
  double most = 0;                                    ///< max |v|
  double A = 0;                                       ///< A+
  double apart = 0;                                   ///< max |v - o|
  double low = 0;                                     ///< size of the low part of o
};

Column column_of(const RowPass& x, std::int64_t k) {
  const RowValues& values = x.values;
  const auto i = static_cast<std::size_t>(k);
  Column column;
  if (values.input_error) {
    for (std::int64_t j = 0; j < x.row.n; ++j) {
      const double in = values.input_error[(x.row.index ? x.row.index[j] : j) * values.stride + k];
      const double weight = x.w.pp[static_cast<std::size_t>(j)];
      column.most_in = std::max(column.most_in, in);
      column.weighted_in += weight * in;
      if (weight <= x.p.u_a) column.small_in += weight * in;
    }
  }
  column.most = std::max(std::fabs(values.low[k]), std::fabs(values.high[k])) + column.most_in;
  const double rounded = x.in_singles && values.singles_rounded ? 1 + 0x1p-23 : 1;
  column.A = std::min(rounded * x.w.A[i] + x.w.A_small[i] + column.weighted_in, column.most);
  column.apart = std::max({values.high[k] - x.o[k], x.o[k] - values.low[k], 0.0});
  column.low = values.o_low ? std::fabs(values.o_low[k]) : 0.0;
  return column;
}

/// S, and before it the certificate of the double pass: into e.certificate, e.radius, e.score and e.scores. Returns
/// what the radius has added to S.
double bound_scores(const RowPass& x, const Column& column, std::int64_t k, ElementTerms& e) {
  const auto i = static_cast<std::size_t>(k);
  double S = x.w.S[i];
  if (x.r) {
    e.radius = x.r[k];
    e.certificate = e.radius;
  } else {
    // A value that is rounded to a float is as far from the centre as it is, but for that.
    const double rounded = x.in_singles && x.values.singles_rounded ? 0x1p-24 * column.most + 0x1p-149 : 0;
    // S is centred at o, not at the exact value: as far apart as o is wrong, or by its low part.
    e.certificate =
        (1 + 0x1p-20) * (x.terms.ratio_here * (S + x.terms.reach * rounded) + (2 * x.n + 8) * x.row.unit * column.A +
                         x.n * 0x1p-1020 * column.most + 2 * x.terms.most_E_here * column.low) +
        (column.most > 0 ? x.underflow_here : 0.0);
    e.radius = 2 * e.certificate + column.low;
    if (x.in_singles) e.radius += std::fabs(x.o[k] - static_cast<double>(x.w.centre[i]));
    e.radius += rounded;
  }
  double from_radius = 0;
  if (x.values.apart) {
    S = 0;
    for (std::int64_t j = 0; j < x.row.n; ++j) {
      const double d = x.values.apart[j * x.values.stride + k];
      if (d > 0 && x.w.ph[static_cast<std::size_t>(j)] > 0) S += x.w.ph[static_cast<std::size_t>(j)] * d;
    }
    e.radius = 0;
  } else {
    from_radius = x.terms.reach * e.radius;
    S += from_radius;
  }
  const double cap = column.apart + (x.r ? x.r[k] : e.radius);
  S = S <= cap && !x.terms.capped ? S : cap;
  e.score = S;
  e.scores = S + std::min(column.weighted_in, column.most_in);
  return from_radius;
}

/// Error of the sum of weights times values, of sizes that add up to `most`, by accumulation alone.
double accumulation_error(const RowPass& x, const Column& column, std::int64_t k, double most) {
  const Accumulation& sums = x.sums;
  const double any = sums.plain * most;
  if (!x.p.nearest) return any;
  const double small = x.w.A_small[static_cast<std::size_t>(k)];
  const double refined = sums.local * most + (1 + sums.chain) * (sums.merges * most + small + column.small_in);
  return std::min(any, (1 + sums.chain) * refined);
}

/// Whether a loss by underflow, enlarged, is so small beside a bound that no sum of doubles would show it.
bool nothing_beside(const RowPass& x, double lost, double bound) {
  return lost <= bound * (x.enlarged * 0x1p-100);
}

/// A bound and such a loss beside it.
double plus_lost(const RowPass& x, double bound, double lost) {
  return nothing_beside(x, lost, bound) ? bound : bound + lost / x.enlarged;
}

/// B and the hull, with all that they are made of beside the scores.
void bound_answer(RowPass& x, const Column& column, std::int64_t k, ElementTerms& e) {
  const Profile& p = x.p;
  const double S = e.scores;
  e.values = column.A;
  e.sums = accumulation_error(x, column, k, column.A);
  e.size = std::fabs(x.o[k]) + column.low + (x.r ? x.r[k] : e.certificate);
  const double of_weights = join(p.u_p, p.u_drop);
  const double N = of_weights * column.A + (1 + of_weights) * e.sums;
  double lost = x.lam_keys * x.values.abs_sum[k];
  e.allowed = e.hull = infinity;
  bool lost_nothing = false;
  if (x.terms.denominator > 0) {
    const double of_denominator = x.terms.UD + x.terms.LD;
    // P4 about o', a convex combination of the values, in the place of o: |o'| and sum p|v| are at most max|v|.
    const double N_hull = of_weights * column.most + (1 + of_weights) * accumulation_error(x, column, k, column.most);
    const double hull = plus_lost(x, x.finish((N_hull + x.LN + column.most * of_denominator) * x.inverse, column.most),
                                  x.per_lost * lost);
    if (hull < column.most || column.most == 0) e.hull = hull;
    const double B = x.finish(S + (N + x.LN + (e.size + S) * of_denominator) * x.inverse, e.size);
    if (!(x.per_lost * lost <= B * (x.enlarged * 0x1p-24))) {
      if (!x.known_lost) underflow_sums(p, x.row, x.terms, x.values, x.w);
      x.known_lost = true;
      const double kept = x.w.lost[static_cast<std::size_t>(k)] + x.terms.lam_twice * x.values.abs_sum[k];
      lost = std::min(lost, kept * x.enlarged);
    }
    lost_nothing = nothing_beside(x, x.per_lost * lost, B);
    e.allowed = plus_lost(x, B, x.per_lost * lost);
  }
  e.underflow = lost_nothing ? x.LN : x.LN + x.terms.factor * lost / x.enlarged;
}

/// The largest value of a column, and the largest distance of one, of the keys of the row alone: what is given for a
/// row that drops some may be the range of others too, by which a bound that tells nothing would seem to tell
/// something.
void narrow_to_row(const RowPass& x, std::int64_t k, Column& column) {
  column.most = column.most_in, column.apart = 0;
  for (std::int64_t j = 0; j < x.row.n; ++j) {
    const double v = x.values.v[(x.row.index ? x.row.index[j] : j) * x.values.stride + k];
    column.most = std::max(column.most, std::fabs(v) + column.most_in);
    column.apart = std::max(column.apart, std::fabs(v - x.o[k]));
  }
}

/// Why an element is not judged, or not held to be finite.
void find_excuses(const RowPass& x, Column column, std::int64_t k, ElementTerms& e) {
  const Profile& p = x.p;
  const double B = e.allowed, S = e.scores;
  const double vanished = x.terms.vanished_gain * p.gain * (1 + 0x1p-20);
  e.finite_required = vanished * x.rounded_up * std::max(x.n, x.values.abs_sum[k]) <= p.H_a &&
                      vanished * (1 + p.u_p) <= p.H_p && vanished * p.least_weight <= 1;

  // What is left of the bound however well the scores are known.
  const double noise = B - (1 + x.finish.Uf) * S * (1 + (x.terms.UD + x.terms.LD) * x.inverse);
  // No value of the row is smaller than its mean.
  if (p.of.drops && B < infinity && ((S > 0 && 2 * S >= B) || noise >= std::fabs(x.o[k]))) narrow_to_row(x, k, column);
  // Dropout multiplies one of the three, all values at once where it is these; and a factor of v may.
  double most_value = column.most;
  if (x.values.all_low)
    most_value = std::max({most_value, std::fabs(x.values.all_low[k]), std::fabs(x.values.all_high[k])});
  const bool gains_in_range = (p.gain == 1 && p.H_drop == infinity) ||
                              (p.gain * x.terms.weight_gain * (1 + join(p.u_p, p.u_drop)) * (1 + 0x1p-20) <= p.H_p &&
                               2 * p.gain * most_value <= p.H_drop);
  if (!x.terms.in_domain || !gains_in_range || !(p.gain * x.range * x.values.abs_sum[k] <= p.H_a) ||
      !(p.gain * (e.size + B) <= p.H_o || B == infinity))
    e.excuse = Excuse::overflow;
  else if (!(B < infinity))
    e.excuse = Excuse::infinite;
  else if ((S > 0 && 2 * S >= B && B >= column.apart - e.radius) || (column.most > 0 && noise >= column.most))
    e.excuse = Excuse::vacuous;
}

/// The same of the answer that dropout has multiplied, as `value` times the double nearest to its gain, or a pair of
/// doubles: the products err by a few units beside it.
void multiply(const RowPass& x, std::int64_t k, ElementTerms& e) {
  const double gain = x.p.gain, unit = x.r ? 0x1p-53 : x.row.unit;
  e.certificate = (1 + 0x1p-40) * gain * (e.certificate + 8 * unit * std::fabs(x.o[k])) + 0x1p-1070;
  for (double* const part :
       {&e.allowed, &e.hull, &e.score, &e.scores, &e.radius, &e.values, &e.sums, &e.underflow, &e.size})
    *part *= gain;
}

/// Whether all values of a column are 0 and known, and its answer with them.
bool is_of_zeros(const RowPass& x, std::int64_t k) {
  const RowValues& values = x.values;
  return values.low[k] == 0 && values.high[k] == 0 && values.abs_sum[k] == 0 && x.o[k] == 0 && !x.r && !values.o_low &&
         !values.input_error && !values.apart && !values.all_low;
}

}  // namespace

Accumulation::Accumulation(const Profile& p, std::int64_t n, std::int64_t big) {
  const double R = p.rescalings;
  const auto h = static_cast<double>(accumulation_depth(p.declared, p.of.keys, n));
  const double by_norm = p.norm_first ? (p.depth_declared ? p.c_div : p.c_div - 1) : 0.0;  // C17
  plain = pw(p.u_a, h + 1 + 2 * R + p.extra + by_norm);
  chain = pw(p.u_a, static_cast<double>(n) + 1 + 2 * R + p.extra);
  local = (1 + 2 * R + p.extra + (p.norm_first ? p.c_div : 0.0)) * p.u_a;
  merges = (1 + chain) * static_cast<double>(big) * p.u_a;
}

void element_bounds(const Profile& p, const RowKeys& row, const KeyTerms& terms, const RowValues& values,
                    const double* o, const double* r, BoundScratch& w, ElementTerms* out) {
  RowPass x(p, row, terms, values, o, r, w);
  const ElementTerms* of_zeros = nullptr;
  for (std::int64_t k = 0; k < values.dv; ++k) {
    ElementTerms& e = out[k];
    // Columns of zeros are all alike, and in f64 their bounds take long: they are subnormal.
    const bool zeros = is_of_zeros(x, k);
    if (zeros && of_zeros) {
      e = *of_zeros;
      continue;
    }
    if (zeros) of_zeros = &e;
    e = {};
    const Column column = column_of(x, k);
    const double from_radius = bound_scores(x, column, k, e);
    bound_answer(x, column, k, e);
    e.trusted = from_radius <= 0x1p-10 * e.allowed && std::isfinite(e.certificate);
    find_excuses(x, column, k, e);
    if (p.gain != 1) multiply(x, k, e);
  }
}

}  // namespace attest::detail
