// What tests of a variant's oracle and bound share: random tensors, a plain arithmetic, and what a change of the bound
// does to how much of it an answer uses.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <random>

#include "core/kernels/core_problem.h"
#include "core/oracle/oracle.h"
#include "core/oracle/rows/row_oracle.h"
#include "core/oracle/workspace.h"
#include "core/problem/sequences.h"
#include "core/problem/sight.h"
#include "core/scalars/mpfr.h"

namespace attest {

inline Arithmetic plain(DType dtype) {
  const DType real = dtype == DType::f64 ? DType::f64 : DType::f32;
  Arithmetic a;
  a.input = a.output = dtype;
  a.score_sums = a.accumulate = a.weights = real;
  a.exp_ulp = 1;
  a.base2 = a.folded_exp2 = a.split_merge = a.normalise_first = a.bias_in_sum = false;
  a.block = 0;
  a.division_roundings = 1;
  return a;
}

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(n)); }
  double normal(double size) { return size * normal_(engine_); }
  Tensor tensor(DType dtype, const Shape& shape, double size) {
    Tensor t(dtype, shape);
    for (std::int64_t e = 0; e < t.elements(); ++e) t.set(e, normal(size));
    return t;
  }

 private:
  std::mt19937_64 engine_;
  std::normal_distribution<double> normal_;
};

inline double distance(const Mpfr& exact, double x) {
  return ScalarTraits<Mpfr>::to_double(exact > Mpfr(x) ? Mpfr(exact - Mpfr(x)) : Mpfr(Mpfr(x) - exact));
}

/// Expects the exact answer within the certificates of what the oracle says. Returns how many rows it says something
/// of.
inline int expect_enclosed(const Case& c, const Arithmetic& arithmetic) {
  const AskedPrecision precision(60);
  const CallPrecision<Mpfr> call;
  const std::vector<AttentionResult<Mpfr>> exact = attention_results<Mpfr>(c.problem());
  const AttentionBounds bounds = attention_bounds(c, arithmetic, /*ignores_dead_values=*/true);
  const std::int64_t M = queries_of(c), dv = c.v().shape()[3];
  int rows = 0;
  for (std::int64_t row = 0; row < std::ssize(bounds.rows); ++row) {
    const RowBound& bound = bounds.rows[static_cast<std::size_t>(row)];
    const AttentionResult<Mpfr>& page = exact[static_cast<std::size_t>(row / M)];
    if (bound.excuse != Excuse::none) continue;
    ++rows;
    EXPECT_LE(distance(page.lse(row % M), bound.lse), bound.lse_certificate) << row;
    for (std::int64_t k = 0; k < dv; ++k) {
      const ElementBound& element = bounds.elements[static_cast<std::size_t>(row * dv + k)];
      EXPECT_LE(distance(page.out(row % M, k), element.value), element.certificate) << row;
    }
  }
  return rows;
}

/// Error of `found` over what is allowed, as the bound is, and with a change of its profile.
struct Used {
  double as_it_is = 0, changed = 0;
};
inline Used used(const Case& c, const Arithmetic& arithmetic, double found,
                 const std::function<void(Profile&)>& change) {
  detail::Head head;
  head.load(c, sequence_of(c, 0), 0, false);
  const auto utilisation = [&](const Profile& p) {
    detail::RowOracle oracle;
    EXPECT_EQ(oracle.start(head, 0, p, true, true, 4096), Excuse::none);
    double lower = 0, upper = 0;
    oracle.distance(0, found, lower, upper);
    return lower / oracle.element(0).allowed;
  };
  const Profile p = detail::profile_for(c, head, arithmetic);
  Profile other = p;
  change(other);
  return {utilisation(p), utilisation(other)};
}

/// Answers as near as f32 is are right at each level of the oracle, and such that are 0.01 off wrong.
inline void expect_same_at_every_level(const Case& c, const Arithmetic& arithmetic = plain(DType::f32)) {
  const AttentionBounds bounds = attention_bounds(c, arithmetic, true);
  Tensor out(DType::f32, c.out_shape()), lse(DType::f64, {batch_of(c), heads_of(c), queries_of(c)});
  for (std::int64_t e = 0; e < out.elements(); ++e) {
    const double value = bounds.elements[static_cast<std::size_t>(e)].value;
    out.set(e, std::isnan(value) ? 0 : value);
  }
  for (std::int64_t row = 0; row < lse.elements(); ++row) lse.set(row, bounds.rows[static_cast<std::size_t>(row)].lse);
  Tensor beyond = out;
  for (std::int64_t e = 0; e < out.elements(); ++e) beyond.set(e, out[e] + 0.01);
  for (const int level : {0, 1, 2, 3}) {
    OracleOptions options;
    options.first_level = level, options.ignores_dead_values = true;
    const Verdict right = judge_attention(c, out, lse, arithmetic, options);
    EXPECT_NE(right.outcome, Outcome::violated) << level << " " << right.reason;
    const Verdict wrong = judge_attention(c, beyond, lse, arithmetic, options);
    if (right.outcome == Outcome::held) {
      EXPECT_EQ(wrong.outcome, Outcome::violated) << level;
    }
  }
}

}  // namespace attest
