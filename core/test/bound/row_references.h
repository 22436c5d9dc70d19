// One row of attention three times more, each with a proved enclosure: for tests that hold the oracle to something it
// shares nothing with. In MPFR by plain loops with an error radius of their own, by the core's template on MPFI
// intervals, and in Arb's balls by plain loops.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/definition/attention.h"
#include "core/problem/case.h"
#include "core/scalars/arb_header.h"
#include "core/scalars/mpfi.h"
#include "core/scalars/mpfr.h"
#include "core/test/definition/other_forms.h"

namespace attest::test {

/// [lower, upper]; NaN ends overlap nothing.
struct Range {
  Mpfr lower, upper;
};
[[nodiscard]] inline bool overlap(const Range& a, const Range& b) {
  return a.lower <= b.upper && b.lower <= a.upper;
}

/// The exact outputs of a row and its exact log-sum-exp, enclosed.
struct RowRanges {
  std::vector<Range> out;
  Range lse;
};

/// The keys that row i of head h sees, as the contract has it (kernel-interface.md 1).
struct VisibleRow {
  std::vector<double> q;
  std::vector<std::vector<double>> k, v;
  std::vector<double> bias;
  double scale = 1;
  bool pre_scale = false;
  std::int64_t dv = 0;

  VisibleRow(const Case& c, std::int64_t b, std::int64_t h, std::int64_t i)
      : scale(c.scale), pre_scale(c.mask_convention == MaskConvention::pre_scale), dv(c.v().shape()[3]) {
    const Shape &qs = c.q().shape(), &ks = c.k().shape();
    const std::int64_t heads = qs[1], M = qs[2], dk = qs[3], N = ks[2], kv = h / (heads / ks[1]);
    for (std::int64_t e = 0; e < dk; ++e) q.push_back(c.q()[((b * heads + h) * M + i) * dk + e]);
    for (std::int64_t j = 0; j < N; ++j) {
      if (c.causal == Causal::top_left && j > i) continue;
      if (c.causal == Causal::bottom_right && j > i + N - M) continue;
      double entry = 0;
      if (c.mask().present()) {
        const Shape& ms = c.mask().shape();
        entry = c.mask()[(((ms[0] == 1 ? 0 : b) * ms[1] + (ms[1] == 1 ? 0 : h)) * M + i) * N + j];
        if (c.mask().dtype() == DType::boolean) entry = entry == 1 ? 0 : -std::numeric_limits<double>::infinity();
      }
      if (std::isinf(entry)) continue;
      bias.push_back(entry);
      const std::int64_t page = (b * ks[1] + kv) * N + j;
      k.emplace_back();
      v.emplace_back();
      for (std::int64_t e = 0; e < dk; ++e) k.back().push_back(c.k()[page * dk + e]);
      for (std::int64_t e = 0; e < dv; ++e) v.back().push_back(c.v()[page * dv + e]);
    }
  }

  /// Bits after which scores are known to 2^-380 or so, however large they are.
  [[nodiscard]] long bits() const {
    double most = 1;
    for (std::size_t j = 0; j < k.size(); ++j) {
      double exponent = std::log2(std::max(std::fabs(bias[j]), 1.0));
      for (std::size_t e = 0; e < q.size(); ++e)
        if (q[e] != 0 && k[j][e] != 0)
          exponent = std::max(exponent, std::log2(std::fabs(q[e])) + std::log2(std::fabs(k[j][e])));
      most = std::max(most, exponent + std::max(0.0, std::log2(scale)));
    }
    return 400 + static_cast<long>(most);
  }
};

/// Decimal digits that give Mpfr and Interval at least so many bits.
[[nodiscard]] inline unsigned digits_of(long bits) {
  return static_cast<unsigned>(static_cast<double>(bits) * 0.30103) + 2;
}

/// By plain loops in MPFR. With u the unit roundoff and every error counted at least twice:
///   score       dk products, dk - 1 sums, the scale and the bias: (dk + 6) u of the sum of their sizes
///   weight      e^(s - m), m a number: relative error that of the exponent and u; absolute error where it underflows
///   quotient    the sum of weights is at least 1/2 since one of them is e^0, nearly
[[nodiscard]] inline RowRanges by_mpfr(const VisibleRow& row, long bits) {
  const PrecisionScope<Mpfr> scope(digits_of(bits));
  const std::size_t n = row.k.size(), dk = row.q.size(), dv = static_cast<std::size_t>(row.dv);
  const Mpfr tau(row.scale);
  const Mpfr u = ldexp(Mpfr(1), -static_cast<int>(mpfr_get_prec(tau.backend().data())));
  const Mpfr underflow = ldexp(Mpfr(1), -(1 << 29));
  std::vector<Mpfr> s, s_error;
  for (std::size_t j = 0; j < n; ++j) {
    Mpfr x(0), size(0);
    for (std::size_t e = 0; e < dk; ++e) {
      const Mpfr term = Mpfr(row.q[e]) * Mpfr(row.k[j][e]);
      x += term;
      size += abs(term);
    }
    const Mpfr b(row.bias[j]);
    s.push_back(row.pre_scale ? Mpfr(tau * (x + b)) : Mpfr(tau * x + b));
    size = row.pre_scale ? Mpfr(tau * (size + abs(b))) : Mpfr(tau * size + abs(b));
    s_error.push_back(2 * u * static_cast<double>(dk + 6) * size);
  }
  Mpfr m = s[0];
  for (const Mpfr& score : s) m = score > m ? score : m;
  Mpfr sum(0), sum_error(0);
  std::vector<Mpfr> o(dv, Mpfr(0)), o_error(dv, Mpfr(0));
  for (std::size_t j = 0; j < n; ++j) {
    const Mpfr d = s[j] - m, w = exp(d);
    const Mpfr d_error = s_error[j] + 2 * u * abs(d);
    // e^d_error - 1 <= 2 d_error; a reference that does not know its scores encloses nothing.
    const Mpfr w_error =
        d_error < 0x1p-60 ? Mpfr(4 * w * (d_error + u) + underflow) : Mpfr(std::numeric_limits<double>::quiet_NaN());
    sum += w;
    sum_error += w_error + 2 * u * sum;
    for (std::size_t e = 0; e < dv; ++e) {
      const Mpfr term = w * Mpfr(row.v[j][e]);
      o[e] += term;
      o_error[e] += w_error * abs(Mpfr(row.v[j][e])) + 4 * u * (abs(term) + abs(o[e]));
    }
  }
  RowRanges ranges;
  for (std::size_t e = 0; e < dv; ++e) {
    const Mpfr value = o[e] / sum;
    const Mpfr radius = 4 * (o_error[e] + abs(value) * sum_error) + 4 * u * abs(value);
    ranges.out.push_back({value - radius, value + radius});
  }
  const Mpfr log_sum = log(sum), lse = log_sum + m;
  const Mpfr radius = 4 * sum_error + 4 * u * (abs(log_sum) + abs(m));
  ranges.lse = {lse - radius, lse + radius};
  return ranges;
}

[[nodiscard]] inline Range range_of(const Interval& x) {
  const auto& ends = *x.backend().data();
  Range range;
  for (auto [to, from] : {std::pair{&range.lower, &ends.left}, std::pair{&range.upper, &ends.right}}) {
    mpfr_set_prec(to->backend().data(), mpfr_get_prec(from));
    mpfr_set(to->backend().data(), from, MPFR_RNDN);
  }
  return range;
}

[[nodiscard]] inline Range range_of(const arb_t x, long bits) {
  Range range;
  for (Mpfr* end : {&range.lower, &range.upper}) mpfr_set_prec(end->backend().data(), bits);
  arb_get_interval_mpfr(range.lower.backend().data(), range.upper.backend().data(), x);
  return range;
}

/// By the core's template on intervals: all rows of one head, with the mask as a mask.
[[nodiscard]] inline AttentionResult<Interval> by_intervals(const Case& c, std::int64_t b, std::int64_t h, long bits) {
  const PrecisionScope<Interval> intervals(digits_of(bits));
  const PrecisionScope<Mpfr> numbers(digits_of(bits));
  const auto page = [](const Tensor& t, std::int64_t from) {
    const std::int64_t rows = t.shape()[2], columns = t.shape()[3];
    return Matrix<double>(Matrix<double>::NullaryExpr(
        rows, columns, [&](Index i, Index j) { return t[(from * rows + i) * columns + j]; }));
  };
  const std::int64_t heads = c.q().shape()[1], kv_heads = c.k().shape()[1];
  const std::int64_t kv = b * kv_heads + h / (heads / kv_heads);
  Mask<Interval> mask;
  if (c.mask().present()) {
    const Shape& ms = c.mask().shape();
    const Matrix<double> entries = page(c.mask(), (ms[0] == 1 ? 0 : b) * ms[1] + (ms[1] == 1 ? 0 : h));
    mask = c.mask().dtype() == DType::boolean ? boolean_mask<Interval>(BoolMatrix((entries.array() == 1.0).matrix()))
                                              : additive_mask(matrix_from<Interval>(entries), c.mask_convention);
  }
  mask.positions = sight_rule(c);
  return mattn_lse(matrix_from<Interval>(page(c.q(), b * heads + h)), matrix_from<Interval>(page(c.k(), kv)),
                   matrix_from<Interval>(page(c.v(), kv)), Interval(c.scale), mask);
}

/// By plain loops in Arb, the sums from the last key to the first.
[[nodiscard]] inline RowRanges by_arb(const VisibleRow& row, long bits) {
  const auto n = static_cast<slong>(row.k.size()), dv = static_cast<slong>(row.dv);
  arb_t x, y, term, sum, reference;
  for (arb_ptr ball : {x, y, term, sum, reference}) arb_init(ball);
  arb_ptr s = _arb_vec_init(n), o = _arb_vec_init(dv);
  for (slong j = 0; j < n; ++j) {
    const auto& key = row.k[static_cast<std::size_t>(j)];
    arb_zero(s + j);
    for (std::size_t e = key.size(); e-- > 0;) {
      arb_set_d(x, row.q[e]);
      arb_set_d(y, key[e]);
      arb_mul(term, x, y, bits);
      arb_add(s + j, s + j, term, bits);
    }
    arb_set_d(x, row.scale);
    arb_set_d(y, row.bias[static_cast<std::size_t>(j)]);
    if (row.pre_scale) arb_add(s + j, s + j, y, bits);
    arb_mul(s + j, s + j, x, bits);
    if (!row.pre_scale) arb_add(s + j, s + j, y, bits);
    if (j == 0 || arf_cmp(arb_midref(s + j), arb_midref(reference)) > 0) arb_set(reference, s + j);
  }
  arb_get_mid_arb(reference, reference);
  for (slong j = n; j-- > 0;) {
    arb_sub(x, s + j, reference, bits);
    arb_exp(y, x, bits);
    arb_add(sum, sum, y, bits);
    for (slong e = 0; e < dv; ++e) {
      arb_set_d(x, row.v[static_cast<std::size_t>(j)][static_cast<std::size_t>(e)]);
      arb_mul(term, x, y, bits);
      arb_add(o + e, o + e, term, bits);
    }
  }
  RowRanges ranges;
  for (slong e = 0; e < dv; ++e) {
    arb_div(o + e, o + e, sum, bits);
    ranges.out.push_back(range_of(o + e, bits));
  }
  arb_log(x, sum, bits);
  arb_add(x, x, reference, bits);
  ranges.lse = range_of(x, bits);
  _arb_vec_clear(s, n);
  _arb_vec_clear(o, dv);
  for (arb_ptr ball : {x, y, term, sum, reference}) arb_clear(ball);
  return ranges;
}

}  // namespace attest::test
