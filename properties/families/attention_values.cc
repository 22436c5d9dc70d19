// attention: what happens to values (000, 003, 004: outputs are expectations of values).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/problem/sight.h"
#include "core/support/infinity.h"
#include "core/support/printed.h"
#include "properties/arrangement/any_number.h"
#include "properties/arrangement/arguments.h"
#include "properties/arrangement/arrange.h"
#include "properties/catalogue/property.h"
#include "properties/generators/draw.h"
#include "properties/generators/stream.h"
#include "properties/language/agree.h"
#include "properties/language/answer.h"
#include "properties/language/weights.h"

namespace attest {
namespace {

/// V of one key-value head as an exact matrix, keys [first, first + rows); rows beyond N are 0.
std::vector<double> values_of(const Case& c, std::int64_t b, std::int64_t kv, std::int64_t first, std::int64_t rows) {
  const Shape& v = c.v().shape();
  std::vector<double> values(static_cast<std::size_t>(rows * v[3]), 0.0);
  for (std::int64_t j = 0; j < std::min(rows, v[2] - first); ++j)
    for (std::int64_t k = 0; k < v[3]; ++k)
      values[static_cast<std::size_t>(j * v[3] + k)] = c.v().at(b, kv, first + j, k);
  return values;
}

/// Judges every batch entry and head by itself; the worst.
template <class Judge>
Verdict every_head(const Case& c, Judge judge) {
  Verdict worst{.outcome = Outcome::skipped};
  for (std::int64_t b = 0; b < batch_of(c); ++b)
    for (std::int64_t h = 0; h < heads_of(c); ++h) worst = worse_of({std::move(worst), judge(b, h)});
  return worst;
}

Verdict no_keys() {
  return {.outcome = Outcome::excused, .reason = std::string(name_of(Excuse::fully_masked))};
}

// 000, 003, 004: o_i = E[v(q_i)] with P(v(q_i) = v_j) = alpha_ij: alpha V, alpha from the same kernel through V = I.
Verdict expectation(Kernel& kernel, const Case& c) {
  if (keys_of(c) == 0) return no_keys();
  const WeightBlocks alpha = read_weights(kernel, c);
  const Result out = run(kernel, c);
  const std::int64_t dv = c.v().shape()[3];
  return every_head(c, [&](std::int64_t b, std::int64_t h) {
    Numbers sum;
    for (std::size_t block = 0; block < alpha.blocks.size(); ++block) {
      const std::int64_t first = static_cast<std::int64_t>(block) * alpha.width;
      const Numbers part = Numbers(alpha.blocks[block].batch({b}).heads({h}))
                               .times(values_of(c, b, kv_head_of(c, h), first, alpha.width), alpha.width, dv);
      sum = block == 0 ? part : sum.plus(part);
    }
    return agree({sum, Numbers(out.batch({b}).heads({h}))});
  });
}

// 004: each row of alpha is a probability distribution over the keys: 0 <= alpha_ij <= 1, sum_j alpha_ij = 1.
Verdict conditional_probability(Kernel& kernel, const Case& c) {
  if (keys_of(c) == 0) return no_keys();
  const WeightBlocks alpha = read_weights(kernel, c);
  const auto all = [](const Shape& shape, double value) {
    return Numbers(shape, std::vector<double>(static_cast<std::size_t>(shape.elements()), value));
  };
  Verdict worst{.outcome = Outcome::skipped};
  Numbers sums;
  for (std::size_t block = 0; block < alpha.blocks.size(); ++block) {
    const Numbers weights(alpha.blocks[block]);
    worst = worse_of({std::move(worst), within(weights, all(weights.shape(), 0), all(weights.shape(), 1))});
    const Numbers part = weights.times(std::vector<double>(static_cast<std::size_t>(alpha.width), 1.0), alpha.width, 1);
    sums = block == 0 ? part : sums.plus(part);
  }
  return worse_of({std::move(worst), agree({sums, all(sums.shape(), 1)})});
}

/// Draws of J in expectation-sampling, and the probability of a false alarm on one case: below 1e-9 in a run of up to
/// 1e9 cases.
constexpr int samples = 8192;
constexpr double false_alarm = 1e-18;
constexpr double smallest = std::numeric_limits<double>::denorm_min();

// 000, 004: the mean of v_J for J drawn from alpha_i converges to o_i. Of one row i, alpha_i from the same kernel
// through V = I. With a_j the weights as read, e1 = sum_j B_j |v_j| and e2 = sum_j B_j for their bounds B_j: J is drawn
// from a_j / sum a, whose mean of v lies within (e1 + e2 max|v|) / (1 - e2) of o; and the mean of n draws of v_J within
// (max v - min v) sqrt(ln(2 dv / p) / 2n) of that, but for a probability p (Hoeffding 1963, theorem 2).
Verdict expectation_sampling(Kernel& kernel, const Case& c) {
  const std::int64_t N = keys_of(c), M = queries_of(c), dv = c.v().shape()[3];
  if (N == 0) return no_keys();
  if (M == 0) return {};
  const WeightBlocks alpha = read_weights(kernel, c);
  const std::int64_t b = argument(c, "b", batch_of(c)), h = argument(c, "h", heads_of(c)), i = argument(c, "i", M);
  const Result row = run(kernel, c).batch({b}).heads({h}).queries({i});
  std::vector<double> upto;
  double total = 0, error = 0;
  std::vector<double> allowed;
  for (std::size_t block = 0; block < alpha.blocks.size(); ++block) {
    const Numbers weights(alpha.blocks[block].batch({b}).heads({h}).queries({i}));
    for (std::int64_t e = 0; e < alpha.width && static_cast<std::int64_t>(upto.size()) < N; ++e) {
      const bool none = weights.excuse(e) != Excuse::none && weights.excuse(e) != Excuse::vacuous;
      if (none || !(weights.allowed(e) < infinity))
        return {.outcome = Outcome::excused,
                .reason = std::string(name_of(none ? weights.excuse(e) : Excuse::infinite))};
      // An enclosure that reaches to infinity says nothing.
      if (weights.own().present() && !std::isfinite(weights.value(e)))
        return {.outcome = Outcome::excused, .reason = std::string(name_of(Excuse::infinite))};
      if (!std::isfinite(weights.value(e)))
        return violated(Violation::not_finite, fmt::format("weight {} is {}; a finite value is required", upto.size(),
                                                           printed(weights.value(e))));
      upto.push_back(total += std::max(weights.value(e), 0.0));
      allowed.push_back(static_cast<double>(weights.allowed(e)));
      error += allowed.back();
    }
  }
  if (!(error < 0.25)) return {.outcome = Outcome::excused, .reason = std::string(name_of(Excuse::vacuous))};

  const std::vector<double> v = values_of(c, b, kv_head_of(c, h), 0, N);
  std::vector<double> mean(static_cast<std::size_t>(dv), 0.0), apart(mean);
  std::vector<int> drawn(static_cast<std::size_t>(N), 0);
  Stream stream(seed_argument(c, "draws"));
  for (int n = 0; n < samples; ++n) {
    const auto at = std::ranges::upper_bound(upto, stream.unit() * total);
    ++drawn[static_cast<std::size_t>(std::min<std::int64_t>(at - upto.begin(), N - 1))];
  }
  for (std::int64_t j = 0; j < N; ++j)
    for (std::int64_t k = 0; k < dv; ++k)
      mean[static_cast<std::size_t>(k)] +=
          v[static_cast<std::size_t>(j * dv + k)] * (static_cast<double>(drawn[static_cast<std::size_t>(j)]) / samples);
  const double width = std::sqrt(std::log(2 * static_cast<double>(dv) / false_alarm) / (2 * samples));
  for (std::int64_t k = 0; k < dv; ++k) {
    double low = infinity, high = -infinity, weighted = 0;
    for (std::int64_t j = 0; j < N; ++j) {
      const double x = v[static_cast<std::size_t>(j * dv + k)];
      low = std::min(low, x), high = std::max(high, x);
      weighted += allowed[static_cast<std::size_t>(j)] * std::fabs(x);
    }
    const double most = std::max(std::fabs(low), std::fabs(high));
    // 2^-38: the rounding of the cumulative weights and of N sums; and half of the smallest number for each product
    // and for each step of this formula that underflows.
    apart[static_cast<std::size_t>(k)] = (high - low) * width + (weighted + error * most) / (1 - error) +
                                         most * 0x1p-38 + static_cast<double>(2 * N + 8) * smallest;
  }
  return agree({Numbers(row.shape(), mean).loosened(apart), Numbers(row)});
}

/// In a proof, for each key m: all other values of a column above that of m by any positive number, then below it; so
/// is the output. That covers every order of values, ties as limits.
Verdict formally_in_hull(Kernel& kernel, const Case& c) {
  const Shape& v = c.v().shape();
  const bool sinks = c[Slot::sink].present();
  Verdict worst;
  // All outputs are on one side of what `end_of` says, where the values are these.
  const auto hold = [&](double side, const Tensor& values, const auto& end_of) {
    Case ordered = c;
    ordered[Slot::v] = values;
    const Result out = run(kernel, ordered);
    const Shape o = out.shape();
    std::vector<double> end;
    for (std::int64_t e = 0; e < o.elements(); ++e) {
      const auto [b, h, i, k] = o.index_of(e);
      end.push_back(end_of(b, kv_head_of(c, h), k));
    }
    const Numbers at(o, end), beyond(o, std::vector<double>(end.size(), side * infinity));
    worst =
        worse_of({std::move(worst), side > 0 ? within(Numbers(out), at, beyond) : within(Numbers(out), beyond, at)});
  };
  for (const double side : {1.0, -1.0}) {
    for (std::int64_t m = 0; m < v[2]; ++m) {
      // Beside a sink, a key of value 0, the end of the hull that is not 0 lies beyond it.
      const Tensor ends = mapped(c.v(), [&](std::int64_t e, double old) {
        return sinks && e / v[3] % v[2] == m ? product_of(-side, any_positive_number()) : old;
      });
      const auto extreme = [&](std::int64_t e) { return ends[(e / v[3] / v[2] * v[2] + m) * v[3] + e % v[3]]; };
      const Tensor ordered = mapped(ends, [&](std::int64_t e, double old) {
        return e / v[3] % v[2] == m ? old : sum_of(extreme(e), product_of(side, any_positive_number()));
      });
      hold(side, ordered, [&](std::int64_t b, std::int64_t h, std::int64_t k) { return ends.at(b, h, m, k); });
    }
    if (!sinks) continue;
    const Tensor beside = mapped(c.v(), [&](std::int64_t, double) { return product_of(side, any_positive_number()); });
    hold(side, beside, [](std::int64_t, std::int64_t, std::int64_t) { return 0.0; });
  }
  return worst;
}

// 003: min_j v_jk <= o_ik <= max_j v_jk over the visible keys, as weights are not negative and sum to 1.
Verdict convex_hull(Kernel& kernel, const Case& c) {
  if (in_a_proof()) return formally_in_hull(kernel, c);
  const Result out = run(kernel, c);
  const Shape o = out.shape();
  const std::int64_t N = keys_of(c);
  std::vector<double> low(static_cast<std::size_t>(o.elements()), infinity), high(low.size(), -infinity);
  for (std::int64_t e = 0; e < o.elements(); ++e) {
    const auto [b, h, i, k] = o.index_of(e);
    // A sink is a key of value 0.
    if (c[Slot::sink].present() && c[Slot::sink][h] != -infinity)
      low[static_cast<std::size_t>(e)] = high[static_cast<std::size_t>(e)] = 0;
    for (std::int64_t j = 0; j < N; ++j) {
      if (hidden(c, b, h, i, j)) continue;
      const double x = c.v().at(b, kv_head_of(c, h), j, k);
      low[static_cast<std::size_t>(e)] = std::min(low[static_cast<std::size_t>(e)], x);
      high[static_cast<std::size_t>(e)] = std::max(high[static_cast<std::size_t>(e)], x);
    }
  }
  return within(Numbers::in_hull(out), Numbers(o, low), Numbers(o, high));
}

/// VA + 1bᵀ, rounded; how far the rounding has moved its columns; and A, column by column two entries of ±1/2 or one of
/// ±1, so that nothing overflows.
struct Affine {
  std::vector<double> a, b;  ///< A dv x dv, b
  Tensor values;
  std::vector<double> moved;  ///< [batch, kv_heads, dv]: largest |values - (VA + 1bᵀ)| of a column
};

/// sum += term; returns what rounding lost, as a size (Knuth 1997, TwoSum).
double add(double& sum, double term) {
  const double before = sum;
  sum += term;
  const double took = sum - before;
  return std::fabs((before - (sum - took)) + (term - took));
}

Affine affine(const Case& c) {
  const Shape v = c.v().shape();
  const std::int64_t dv = v[3], pages = v[0] * v[1];
  Affine f{std::vector<double>(static_cast<std::size_t>(dv * dv), 0.0),
           {},
           c.v(),
           std::vector<double>(static_cast<std::size_t>(pages * dv), 0.0)};
  Stream stream(seed_argument(c, "A"));
  for (std::int64_t k = 0; k < dv; ++k) {
    const std::int64_t x = stream.below(dv), y = stream.below(dv);
    const double size = x == y ? 1.0 : 0.5;
    f.a[static_cast<std::size_t>(x * dv + k)] = any_number(stream.either(size));
    if (x != y) f.a[static_cast<std::size_t>(y * dv + k)] = any_number(stream.either(size));
    f.b.push_back(any_number(static_cast<double>(stream.between(-2, 2))));
  }
  for (std::int64_t row = 0; row < pages * v[2]; ++row) {
    for (std::int64_t k = 0; k < dv; ++k) {
      const auto column = static_cast<std::size_t>(k);
      double sum = f.b[column], lost = 0;
      for (std::int64_t e = 0; e < dv; ++e) {
        const double factor = f.a[static_cast<std::size_t>(e * dv + k)];
        if (factor != 0 && in_a_proof()) {
          sum = sum_of(sum, product_of(c.v()[row * dv + e], factor));
        } else if (factor != 0) {
          lost += add(sum, c.v()[row * dv + e] * factor);
        }
      }
      f.values.set(row * dv + k, sum);
      double& most = f.moved[static_cast<std::size_t>(row / v[2] * dv + k)];
      most = std::max(most, (std::fabs(f.values[row * dv + k] - sum) + lost) * (1 + 0x1p-50));
    }
  }
  return f;
}

// +: Attention(Q, K, VA + 1bᵀ) = Attention(Q,K,V) A + 1bᵀ. Rounding VA + 1bᵀ to the dtype moves a value of column k by
// at most moved_k, and so the output, a convex combination of values, by no more.
Verdict linear_in_values(Kernel& kernel, const Case& c) {
  Affine f = affine(c);
  Case transformed = c;
  transformed[Slot::v] = std::move(f.values);
  const Result left = run(kernel, transformed), right = run(kernel, c);
  const std::int64_t dv = c.v().shape()[3], M = queries_of(c);
  return every_head(c, [&](std::int64_t b, std::int64_t h) {
    const Numbers product = Numbers(right.batch({b}).heads({h})).times(f.a, dv, dv);
    const std::int64_t page = b * c.v().shape()[1] + kv_head_of(c, h);
    std::vector<double> moved, shift;
    for (std::int64_t i = 0; i < M; ++i) {
      for (std::int64_t k = 0; k < dv; ++k) {
        moved.push_back(f.moved[static_cast<std::size_t>(page * dv + k)]);
        shift.push_back(f.b[static_cast<std::size_t>(k)]);
      }
    }
    const Numbers constant(product.shape(), shift);
    return agree({Numbers(left.batch({b}).heads({h})).loosened(moved), product.plus(constant)});
  });
}

/// Every o_i = v_j, j an argument.
Verdict is_one_value(Kernel& kernel, const Case& c) {
  const Shape v = c.v().shape();
  const std::int64_t j = argument(c, "j", v[2]);
  const Result out = run(kernel, c);
  const Shape o = out.shape();
  std::vector<double> expected;
  for (std::int64_t e = 0; e < o.elements(); ++e) {
    const auto [b, h, i, k] = o.index_of(e);
    expected.push_back(c.v().at(b, kv_head_of(c, h), j, k));
  }
  return agree({Numbers(out), Numbers(o, expected)});
}

// +: all rows of V equal v => every o_i = v.
Verdict constant_values(Kernel& kernel, const Case& c) {
  const Shape v = c.v().shape();
  if (v[2] == 0) return no_keys();
  const std::int64_t j = argument(c, "j", v[2]);
  Case constant = c;
  constant[Slot::v] =
      mapped(c.v(), [&](std::int64_t e, double) { return c.v()[(e / v[3] / v[2] * v[2] + j) * v[3] + e % v[3]]; });
  return is_one_value(kernel, constant);
}

/// Lengths at which every weight is still written out: the identity of more keys than this is large.
constexpr std::int32_t most_weights = 257;

Case drawn_for_weights(Draw& draw) {
  return draw.attention().where([](Recipe& r) { r.keys = std::min(r.keys, most_weights); });
}

constexpr std::array one_value{
    needed(hypotheses::constant_values, "the output lies between the values that have weights", is_one_value)};

const Property family[] = {
    {.name = "attention.expectation",
     .statement = "masked or not, o_i = E[v(q_i)] with P(v(q_i)=v_j) = α_ij: reading α from the same kernel through V "
                  "= I, αV equals "
                  "the output",
     .source = "000 003 004",
     .needs = "attention",
     .floating_point = "bound",
     .given = drawn_for_weights,
     .check = expectation},
    {.name = "attention.expectation-sampling",
     .statement = "the mean of v_J for J drawn from α_i converges to o_i: a Monte-Carlo test at a stated confidence",
     .source = "000 004",
     .needs = "attention",
     .floating_point = "statistical",
     .given = drawn_for_weights,
     .check = expectation_sampling},
    {.name = "attention.conditional-probability",
     .statement = "masked or not, each row of α is a probability distribution over the keys (004's P(i|j), conditioned "
                  "on the row)",
     .source = "004",
     .needs = "attention",
     .floating_point = "bound",
     .given = drawn_for_weights,
     .check = conditional_probability},
    {.name = "attention.convex-hull",
     .statement = "min_j v_jk ≤ o_ik ≤ max_j v_jk",
     .source = "003 (weights nonnegative, sum 1)",
     .needs = "attention",
     .floating_point = "bound",
     .under = "window chunk lengths packed left_pad sink softcap alibi",
     .given = [](Draw& draw) -> Case { return draw.attention().with_later_arguments(); },
     .check = convex_hull},
};

const Property laws[] = {
    {.name = "attention.linear-in-values",
     .statement = "Attention(Q,K,VA+1bᵀ) = Attention(Q,K,V)A + 1bᵀ",
     .source = "+",
     .needs = "attention",
     .floating_point = "bound",
     .under = "window chunk lengths packed left_pad softcap alibi",
     .given = [](Draw& draw) -> Case { return draw.attention().with_later_arguments(); },
     .check = linear_in_values},
    {.name = "attention.constant-values",
     .statement = "all rows of V equal v ⇒ every o_i = v",
     .source = "+",
     .needs = "attention",
     .floating_point = "bound",
     .under = "window chunk lengths packed left_pad softcap alibi",
     .hypotheses = one_value,
     .given = [](Draw& draw) -> Case { return draw.attention().with_later_arguments(); },
     .check = constant_values},
};

}  // namespace

std::span<const Property> attention_expectation_properties() {
  return family;
}

std::span<const Property> attention_value_properties() {
  return laws;
}

}  // namespace attest
