// Causal rows of one query as prefixes of one another, held against their own evaluation: exact values within the
// certificates, bounds at least the rows' own and at most twice, and the same verdict on right and broken outputs.
#include "core/oracle/rows/prefix_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <random>
#include <string>

#include "core/bound/error_bound.h"
#include "core/oracle/oracle.h"
#include "core/oracle/rows/equal_rows.h"
#include "core/oracle/workspace.h"
#include "core/problem/case.h"
#include "core/test/reference_attention.h"

namespace attest {
namespace {

/// What the scores and the values of a case are like.
enum class Scores { normal, even, rising, falling, steep, dominant_tile, dominant_key, large };
enum class Values { normal, offset, constant, one_hot };
/// So much larger may the row's own bound be, which is computed with sums in floats; and where both are free to choose
/// what any choice is valid of, the reference of the scores and the partition of the keys by weight.
constexpr double by_floats = 1 - 0x1p-17, by_choices = 0.95;
constexpr std::array all_scores{Scores::normal, Scores::even,          Scores::rising,       Scores::falling,
                                Scores::steep,  Scores::dominant_tile, Scores::dominant_key, Scores::large};

struct Kind {
  DType dtype = DType::f32;
  Scores scores = Scores::normal;
  Values values = Values::normal;
  Causal causal = Causal::top_left;
  std::int64_t queries = 256, keys = 256, dk = 16, dv = 24, distinct = 4;
};

std::string name_of(const Kind& kind) {
  return std::string(attest::name_of(kind.dtype)) + ", scores " + std::to_string(static_cast<int>(kind.scores)) +
         ", values " + std::to_string(static_cast<int>(kind.values)) + ", " +
         std::string(attest::name_of(kind.causal)) + ", " + std::to_string(kind.queries) + " x " +
         std::to_string(kind.keys);
}

/// What the first number of key j contributes to the score of every query, whose first number is 1.
double lead(const Kind& kind, std::int64_t j) {
  const double x = static_cast<double>(j), n = static_cast<double>(kind.keys);
  switch (kind.scores) {
    case Scores::rising:
      return 20 * x / n;
    case Scores::falling:
      return -20 * x / n;
    case Scores::steep:
      return x;
    case Scores::dominant_tile:
      return j >= kind.keys / 4 && j < kind.keys / 4 + 32 ? 15 : 0;
    case Scores::dominant_key:
      return j == kind.keys / 3 ? 40 : 0;
    default:
      return 0;
  }
}

Case case_of(const Kind& kind, std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  const double spread = kind.scores == Scores::even ? 0 : kind.scores == Scores::large ? 6 : 1;
  Case c;
  Tensor q(kind.dtype, {1, 1, kind.queries, kind.dk}), k(kind.dtype, {1, 1, kind.keys, kind.dk});
  Tensor v(kind.dtype, {1, 1, kind.keys, kind.dv});
  for (std::int64_t i = 0; i < kind.queries; ++i)
    for (std::int64_t e = 0; e < kind.dk; ++e)
      q.set(i * kind.dk + e, i >= kind.distinct ? q.at(0, 0, i % kind.distinct, e)
                             : e == 0           ? 1
                                                : spread * normal(random));
  for (std::int64_t j = 0; j < kind.keys; ++j)
    for (std::int64_t e = 0; e < kind.dk; ++e)
      k.set(j * kind.dk + e, e == 0 ? lead(kind, j) / inverse_root(kind.dk) : normal(random));
  for (std::int64_t at = 0; at < v.elements(); ++at) {
    const double drawn = normal(random);
    const bool hot = at % kind.dv == at / kind.dv % kind.dv;
    v.set(at, kind.values == Values::constant  ? 3
              : kind.values == Values::one_hot ? (hot ? 1 : 0)
              : kind.values == Values::offset  ? 5 + drawn
                                               : drawn);
  }
  c[Slot::q] = q, c[Slot::k] = k, c[Slot::v] = v;
  c.scale = inverse_root(kind.dk);
  c.causal = kind.causal;
  return c;
}

/// The arithmetics that a kernel of the dtype may declare.
std::vector<Arithmetic> arithmetics(DType dtype) {
  std::vector<Arithmetic> all{universal_arithmetic(dtype, dtype)};
  Arithmetic a = all[0];
  a.base2 = a.folded_exp2 = a.split_merge = a.normalise_first = a.bias_in_sum = false;
  a.prescaled_q = std::nullopt;
  a.max = MaxPolicy::running;
  a.block = 64;
  a.exp_ulp = 1;
  a.division_roundings = 1;
  all.push_back(a);
  a.output = DType::f32;
  a.split_merge = a.base2 = a.folded_exp2 = true;
  a.blocked_sums = BlockedSums{.block = 64, .depth = 64};
  all.push_back(a);
  a.max = MaxPolicy::lazy, a.lazy_nats = 4;
  a.rounding = Rounding::toward_zero;
  all.push_back(a);
  a = all[1];
  a.rounding = Rounding::toward_zero;
  all.push_back(a);
  return all;
}

std::vector<Kind> kinds() {
  std::vector<Kind> all;
  for (const Scores scores : all_scores)
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) all.push_back({.dtype = dtype, .scores = scores});
  for (const Values values : {Values::offset, Values::constant, Values::one_hot})
    for (const Scores scores : {Scores::normal, Scores::rising})
      all.push_back({.dtype = DType::bf16, .scores = scores, .values = values});
  all.push_back({.causal = Causal::bottom_right, .queries = 200, .keys = 333});
  all.push_back({.causal = Causal::bottom_right, .queries = 400, .keys = 130});
  all.push_back({.causal = Causal::top_left, .queries = 150, .keys = 700, .dv = 1});
  all.push_back({.causal = Causal::top_left, .queries = 700, .keys = 150});
  return all;
}

/// How the prefixes of all rows compare with their own evaluation.
struct Compared {
  std::int64_t rows = 0, by_themselves = 0;
  double worst_ratio = 0;  ///< of a bound to the row's own
};

void compare_rows(const Case& c, const Arithmetic& a, Compared& compared) {
  const AttentionBounds own = attention_bounds(c, a);
  const std::int64_t dv = c.v().shape()[3];
  detail::Head head;
  head.load(c, sequence_of(c, 0), 0, false);
  const Profile profile = profile_for(c, head, a);
  ASSERT_TRUE(detail::PrefixRows::worth(head, profile));
  detail::EqualRows equal;
  equal.find(c, head);
  detail::PrefixRows prefixes;
  // Without log2(e), with a scale that is a power of two and without refined sums there is nothing to choose.
  const bool chosen = a.base2 || a.rounding == Rounding::nearest;
  const double as_large = chosen ? by_choices : by_floats;
  const auto keys_of = [&](std::int64_t row) { return sight(head.sight_rule, row, head.queries, head.keys).last; };
  for (const std::int64_t first : equal.first()) {
    std::int64_t least = 0, most = 0;
    for (std::int64_t row = first; row >= 0; row = equal.after(row)) {
      most = keys_of(row);
      if (least == 0) least = most;
    }
    ASSERT_TRUE(prefixes.start(head, std::span(&first, 1), least, most, profile, false, true));
    for (std::int64_t row = first; row >= 0; row = equal.after(row)) {
      ++compared.rows;
      if (!prefixes.go_to(keys_of(row))) {
        ++compared.by_themselves;
        continue;
      }
      const RowBound& bound = own.rows[static_cast<std::size_t>(row)];
      ASSERT_EQ(bound.excuse, Excuse::none);
      EXPECT_LE(std::fabs(prefixes.lse() - bound.lse), prefixes.lse_certificate() + bound.lse_certificate);
      EXPECT_GE(prefixes.lse_allowed(), bound.lse_allowed * as_large);
      EXPECT_LE(prefixes.lse_allowed(), bound.lse_allowed * 2);
      for (std::int64_t k = 0; k < dv; ++k) {
        const ElementBound& e = own.elements[static_cast<std::size_t>(row * dv + k)];
        EXPECT_EQ(e.excuse, Excuse::none);
        EXPECT_TRUE(e.finite_required || !prefixes.finite_required());
        EXPECT_LE(std::fabs(prefixes.value()[k] - e.value), prefixes.certificate()[k] + e.certificate);
        const double ratio = prefixes.allowed()[k] / e.allowed;
        EXPECT_GE(ratio, as_large) << row << ", " << k;
        compared.worst_ratio = std::max(compared.worst_ratio, ratio);
      }
    }
  }
}

std::int64_t rows_without_keys(const Case& c) {
  const std::int64_t M = c.q().shape()[2], N = c.k().shape()[2];
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < M; ++i) count += sight(sight_rule(c), i, M, N).last == 0 ? 1 : 0;
  return count;
}

TEST(PrefixRows, ValuesBoundsAndCertificatesHoldBesideTheRowsOwn) {
  std::mt19937_64 random(1);
  for (const Kind& kind : kinds()) {
    const Case c = case_of(kind, random);
    int which = 0;
    for (const Arithmetic& a : arithmetics(kind.dtype)) {
      SCOPED_TRACE(name_of(kind) + ", arithmetic " + std::to_string(which++));
      Compared compared;
      compare_rows(c, a, compared);
      EXPECT_LE(compared.worst_ratio, 2);
      EXPECT_LE(compared.by_themselves, compared.rows / 20 + rows_without_keys(c));
    }
  }
}

enum class Fault { none, key_more, key_less, rows_exchanged, rescale_forgotten, not_a_number };

/// The answer to a causal case with few queries in double, rounded to `dtype`, as a kernel with that fault gives it.
Tensor answer_to(const Case& c, Fault fault, DType dtype) {
  const Shape &q = c.q().shape(), &v = c.v().shape();
  const std::int64_t M = q[2], N = v[2], dv = v[3],
                     more = fault == Fault::key_more   ? 1
                            : fault == Fault::key_less ? -1
                                                       : 0;
  Tensor out(dtype, c.out_shape());
  for (std::int64_t i = 0; i < M; ++i) {
    const std::int64_t row = fault == Fault::rows_exchanged && (i ^ 1) < M ? i ^ 1 : i;
    const std::int64_t n = std::clamp<std::int64_t>(sight(sight_rule(c), row, M, N).last + more, 1, N);
    std::vector<double> o(static_cast<std::size_t>(dv), 0.0);
    double sum = 0, top = -1e300;
    for (std::int64_t j = 0; j < n; ++j) {
      double s = 0;
      for (std::int64_t e = 0; e < q[3]; ++e) s += c.q().at(0, 0, row, e) * c.k().at(0, 0, j, e);
      s *= c.scale;
      if (s > top) {
        const double factor = std::exp(top - s);
        top = s;
        for (double& x : o) x *= factor;
        // The sum is not rescaled from one tile of 64 keys to the next.
        if (fault != Fault::rescale_forgotten || j % 64 != 0 || j == 0) sum *= factor;
      }
      const double w = std::exp(s - top);
      sum += w;
      for (std::int64_t e = 0; e < dv; ++e) o[static_cast<std::size_t>(e)] += w * c.v().at(0, 0, j, e);
    }
    for (std::int64_t e = 0; e < dv; ++e) out.set(i * dv + e, o[static_cast<std::size_t>(e)] / sum);
    if (fault == Fault::not_a_number && i % 50 == 7) out.set(i * dv, std::nan(""));
  }
  return out;
}

/// What was decided, per element.
using Decided = std::map<std::int64_t, JudgedElement>;

Verdict judged(const Case& c, const Tensor& out, const Arithmetic& a, ShortCuts short_cuts, Decided& decided) {
  return judge_attention(c, out, {}, a,
                         {.element = [&](const JudgedElement& e) { EXPECT_TRUE(decided.emplace(e.element, e).second); },
                          .short_cuts = short_cuts});
}

TEST(PrefixRows, RightAndBrokenOutputsAreJudgedAlike) {
  std::mt19937_64 random(2);
  std::map<Outcome, int> outcomes;
  for (const Kind& kind : kinds()) {
    const Case c = case_of(kind, random);
    const Arithmetic a = arithmetics(kind.dtype)[1];
    for (const Fault fault : {Fault::none, Fault::key_more, Fault::key_less, Fault::rows_exchanged,
                              Fault::rescale_forgotten, Fault::not_a_number}) {
      SCOPED_TRACE(name_of(kind) + ", fault " + std::to_string(static_cast<int>(fault)));
      const Tensor out = answer_to(c, fault, a.output);
      Decided as_prefixes, by_rows;
      const Verdict quick = judged(c, out, a, ShortCuts::prefixes, as_prefixes),
                    slow = judged(c, out, a, ShortCuts::none, by_rows);
      EXPECT_EQ(quick.outcome, slow.outcome) << quick.reason << slow.reason;
      if (fault == Fault::none) {
        EXPECT_EQ(quick.outcome, Outcome::held) << quick.reason;
      }
      if (fault == Fault::not_a_number) {
        EXPECT_EQ(quick.violation, Violation::not_finite);
      }
      ++outcomes[quick.outcome];
      EXPECT_GE(quick.utilisation, slow.utilisation * 0.4);
      EXPECT_LE(quick.utilisation, slow.utilisation / by_choices);
      ASSERT_EQ(as_prefixes.size(), by_rows.size());
      for (const auto& [element, e] : as_prefixes) {
        const JudgedElement& own = by_rows.at(element);
        // Violated by its own bound as well; and where it is held it is within twice that.
        if (e.outcome == Outcome::violated) {
          EXPECT_EQ(own.outcome, Outcome::violated) << element;
        }
        if (e.outcome == Outcome::held) {
          EXPECT_LE(own.lower, own.allowed * 2) << element;
        }
        EXPECT_LE(e.lower, own.upper) << element;
        EXPECT_GE(e.upper, own.lower) << element;
      }
    }
  }
  EXPECT_GT(outcomes[Outcome::violated], 20);
}

}  // namespace
}  // namespace attest
