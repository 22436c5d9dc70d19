// What the tests of the corrections of error-bounds.md 1.7 share: rows of a few keys, the error of a kernel on them,
// and the claim that a correction is needed.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/bound/error_bound.h"
#include "core/bound/row_bound.h"
#include "core/oracle/oracle.h"
#include "core/test/cases.h"
#include "core/test/fleet/fleet.h"
#include "core/test/fleet/soft.h"
#include "core/test/fleet/written_bound.h"

namespace attest::fleet {

using Numbers = std::vector<double>;

/// One query, keys [n][dk], one value per key, scale 1.
inline Case row_of(DType dtype, const Numbers& q, const std::vector<Numbers>& k, const Numbers& v,
                   const Numbers& mask = {}, DType mask_dtype = DType::f32) {
  Numbers keys;
  for (const Numbers& key : k) keys.insert(keys.end(), key.begin(), key.end());
  Case c = test::one_query(dtype, q, keys, v);
  if (!mask.empty()) c[Slot::mask] = Tensor(mask_dtype, {1, 1, 1, static_cast<std::int64_t>(k.size())}, mask);
  return c;
}

inline Profile profile_for(const Case& c, const Arithmetic& a) {
  return profile_of(a, {.keys = c.k().shape()[2],
                        .dk = c.k().shape()[3],
                        .scale = c.scale,
                        .bias = c.mask().present(),
                        .convention = c.mask_convention,
                        .mask = c.mask().present() ? c.mask().dtype() : c.dtype()});
}

/// The only output of a kernel that does what it declares.
inline double output_of(const Case& c, const Arithmetic& a, const Structure& structure = {}) {
  return emulate({"correct", a, structure, {}}, c).out[0];
}

/// Proved: |exact - found| of the only output is at least this.
inline double error_of(const Case& c, double found, const Arithmetic& a) {
  const Enclosure exact = exact_elements(c, a).at(0).exact;
  return std::max(found - exact.upper, exact.lower - found);
}

inline Verdict judged(const Case& c, double found, const Arithmetic& a) {
  return judge_attention(c, Tensor(a.output, c.out_shape(), Numbers{found}), {}, a);
}

/// A correct kernel found this: it is held, and the bound without the correction would have called it wrong.
inline void expect_needed(const Case& c, double found, const Arithmetic& a, double without) {
  const Verdict verdict = judged(c, found, a);
  EXPECT_EQ(verdict.outcome, Outcome::held) << verdict.reason;
  EXPECT_GT(error_of(c, found, a), without) << "what is held to need the correction does not";
}

/// The bound is what the text says, up to what the implementation may add to it.
inline void expect_as_written(const Case& c, const Arithmetic& a, const std::vector<bool>& exact_scores = {}) {
  const double written = written_bound(c, profile_for(c, a), Without::nothing, exact_scores);
  const double allowed = attention_bounds(c, a).elements.at(0).allowed;
  EXPECT_GE(allowed, written * (1 - 0x1p-20));
  EXPECT_LE(allowed, written * 1.03);
}

/// The implementation's terms for a profile of any kind: no mask, exact values from long double. The two errors are
/// those of projected inputs: common to all scores, and of each.
struct Evaluated {
  detail::KeyTerms terms;
  detail::ElementTerms element;
  Numbers E;  ///< of each key
};
inline Evaluated evaluated(const Case& c, const Profile& p, double shift_error = 0, double input_error = 0) {
  const auto n = static_cast<std::size_t>(c.k().shape()[2]), dk = static_cast<std::size_t>(c.k().shape()[3]);
  const std::size_t room = (n + 15) / 16 * 16;
  const Numbers q = c.q().to_doubles(), k = c.k().to_doubles(), v = c.v().to_doubles();
  Numbers s(room), size(room), la(room), alpha(room), input(room, input_error), k1(room), values(4 * n), low(4),
      high(4), sums(4), o(4), radius(4);
  long double top = -HUGE_VALL, total = 0, mean = 0;
  std::vector<long double> exact(n);
  for (std::size_t j = 0; j < n; ++j) {
    for (std::size_t e = 0; e < dk; ++e) {
      exact[j] += static_cast<long double>(c.scale) * q[e] * k[j * dk + e];
      size[j] += std::fabs(q[e] * k[j * dk + e]);
      k1[j] += std::fabs(k[j * dk + e]);
    }
    s[j] = static_cast<double>(exact[j]);
    top = std::max(top, exact[j]);
  }
  for (std::size_t j = 0; j < n; ++j) total += std::exp(exact[j] - top);
  low[0] = high[0] = v[0];
  for (std::size_t j = 0; j < n; ++j) {
    const long double weight = std::exp(exact[j] - top) / total;
    la[j] = static_cast<double>(exact[j] - top - std::log(total));
    alpha[j] = static_cast<double>(weight);
    mean += weight * v[j];
    values[4 * j] = v[j];
    low[0] = std::min(low[0], v[j]), high[0] = std::max(high[0], v[j]), sums[0] += std::fabs(v[j]);
  }
  o[0] = static_cast<double>(mean);
  detail::RowKeys keys;
  keys.n = static_cast<std::int64_t>(n);
  keys.s = keys.t = s.data(), keys.size = size.data(), keys.k1 = k1.data();
  keys.la = la.data(), keys.alpha = alpha.data();
  keys.shift_error = shift_error;
  if (shift_error + input_error > 0) keys.input_error = input.data();
  keys.lse = static_cast<double>(top + std::log(total));
  keys.want_lse = true;
  for (const double e : q) keys.q1 += std::fabs(e);
  detail::RowValues columns;
  columns.v = values.data(), columns.stride = 4, columns.dv = 1;
  columns.low = low.data(), columns.high = high.data(), columns.abs_sum = sums.data();
  detail::BoundScratch scratch;
  Evaluated out;
  out.terms = detail::key_terms(p, keys, q.data(), scratch);
  detail::element_bounds(p, keys, out.terms, columns, o.data(), radius.data(), scratch, &out.element);
  out.E.assign(scratch.E.begin(), scratch.E.begin() + static_cast<std::ptrdiff_t>(n));
  return out;
}

/// A gap in a proof that no kernel of these formats fills: the term itself is in the bound, which would be smaller by
/// more than one part in a thousand without it.
inline void expect_term(const Case& c, const Profile& p, Without left_out) {
  const double allowed = evaluated(c, p).element.allowed, written = written_bound(c, p);
  EXPECT_GE(allowed, written * (1 - 0x1p-30));
  EXPECT_LE(allowed, written * 1.01);
  EXPECT_LT(written_bound(c, p, left_out), written * 0.999);
}

}  // namespace attest::fleet
