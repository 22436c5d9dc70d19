// What the tests of the corrections of error-bounds.md 1.7 share: rows of a few keys, the error of a kernel on them,
// and the claim that a correction is needed.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "attest/error_bound.h"
#include "attest/oracle.h"
#include "fleet/fleet.h"
#include "fleet/soft.h"
#include "fleet/written_bound.h"

namespace attest::fleet {

using Numbers = std::vector<double>;

/// One query, keys [n][dk], one value per key, scale 1.
inline Case row_of(DType dtype, const Numbers& q, const std::vector<Numbers>& k, const Numbers& v,
                   const Numbers& mask = {}, DType mask_dtype = DType::f32) {
  const auto n = static_cast<std::int64_t>(k.size()), dk = static_cast<std::int64_t>(q.size());
  Numbers keys;
  for (const Numbers& key : k) keys.insert(keys.end(), key.begin(), key.end());
  Case c;
  c[Slot::q] = Tensor(dtype, {1, 1, 1, dk}, q);
  c[Slot::k] = Tensor(dtype, {1, 1, n, dk}, keys);
  c[Slot::v] = Tensor(dtype, {1, 1, n, 1}, v);
  if (!mask.empty()) c[Slot::mask] = Tensor(mask_dtype, {1, 1, 1, n}, mask);
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

}  // namespace attest::fleet
