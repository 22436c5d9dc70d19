// Rows that ask the same are evaluated once and judged one by one: the verdict is that of a judgement row by row, in
// every field, whatever the content, the level that decides and the output.
#include "core/oracle/rows/equal_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <string>

#include "core/bound/error_alarm.h"
#include "core/bound/error_bound.h"
#include "core/measure/error_statistics.h"
#include "core/oracle/oracle.h"
#include "core/problem/case.h"

namespace attest {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// What a case is drawn from; how many different queries and masks a head has.
struct Kind {
  DType dtype = DType::f32;
  std::int64_t batch = 1, heads = 2, kv_heads = 1, queries = 40, keys = 70, dk = 8, dv = 11;
  std::size_t distinct = 5;
  Causal causal = Causal::none;
  enum class Mask { none, boolean, additive, huge } mask = Mask::none;
  double size = 1;        ///< of the scores
  std::string name = {};  ///< what it is there for
};

std::vector<Kind> kinds() {
  using enum Kind::Mask;
  return {{.name = "plain"},
          {.dtype = DType::bf16, .batch = 2, .heads = 4, .kv_heads = 2, .name = "groups"},
          {.dtype = DType::f16, .queries = 33, .keys = 130, .dv = 1, .name = "one column"},
          {.dtype = DType::f64, .name = "double-double"},
          {.causal = Causal::top_left, .name = "causal"},
          {.queries = 50, .keys = 20, .causal = Causal::bottom_right, .name = "rows without a key"},
          {.queries = 90, .keys = 64, .causal = Causal::top_left, .name = "rows that see all keys"},
          {.mask = boolean, .name = "a mask that hides"},
          {.causal = Causal::top_left, .mask = additive, .name = "a mask that adds"},
          {.mask = huge, .name = "balls"},
          {.dtype = DType::f64, .mask = huge, .name = "balls in f64"},
          {.distinct = 1, .size = 40, .name = "one query, large scores"},
          {.distinct = 1000, .name = "hardly a row repeats"}};
}

double mask_entry_of(Kind::Mask mask, std::mt19937_64& random) {
  switch (mask) {
    case Kind::Mask::boolean:
      return random() % 3 != 0;
    case Kind::Mask::huge:
      return random() % 2 == 0 ? -1e6 : -1e6 - 1e-3;
    default:
      return random() % 4 == 0 ? -infinity : static_cast<double>(random() % 7) / 4;
  }
}

Case case_of(const Kind& kind, std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  const auto drawn = [&](const Shape& shape, double size) {
    Tensor tensor(kind.dtype, shape);
    for (std::int64_t at = 0; at < tensor.elements(); ++at) tensor.set(at, size * normal(random));
    return tensor;
  };
  Case c;
  c[Slot::q] = drawn({kind.batch, kind.heads, kind.queries, kind.dk}, kind.size);
  c[Slot::k] = drawn({kind.batch, kind.kv_heads, kind.keys, kind.dk}, 1);
  c[Slot::v] = drawn({kind.batch, kind.kv_heads, kind.keys, kind.dv}, 1);
  c.scale = inverse_root(kind.dk);
  c.causal = kind.causal;
  Tensor& q = c[Slot::q];
  const bool masked = kind.mask != Kind::Mask::none;
  if (masked) {
    const DType dtype = kind.mask == Kind::Mask::boolean ? DType::boolean : kind.dtype;
    c[Slot::mask] = Tensor(dtype, {1, 1, kind.queries, kind.keys});
  }
  for (std::int64_t i = 0; masked && i < kind.queries; ++i) {
    const std::int64_t same = static_cast<std::int64_t>(random() % 3);
    for (std::int64_t j = 0; j < kind.keys; ++j)
      c[Slot::mask].set(i * kind.keys + j, i < 3 ? mask_entry_of(kind.mask, random) : c.mask().at(0, 0, same, j));
  }
  for (std::int64_t head = 0; head < kind.batch * kind.heads; ++head)
    for (std::int64_t i = 1; i < kind.queries; ++i) {
      const auto same = static_cast<std::int64_t>(random() % kind.distinct);
      if (same >= i) continue;
      for (std::int64_t e = 0; e < kind.dk; ++e)
        q.set((head * kind.queries + i) * kind.dk + e, q[(head * kind.queries + same) * kind.dk + e]);
    }
  return c;
}

/// An answer with errors of every size; the share of rows that are right at their first level, and that end beyond the
/// bound, differ.
Tensor answer_to(const Case& c, const Arithmetic& a, double spoilt, std::mt19937_64& random) {
  const AttentionBounds bounds = attention_bounds(c, a);
  std::uniform_real_distribution<double> uniform(-1, 1);
  Tensor out(a.output, c.out_shape());
  for (std::int64_t at = 0; at < out.elements(); ++at) {
    const ElementBound& e = bounds.elements[static_cast<std::size_t>(at)];
    const double allowed = std::isfinite(e.allowed) ? e.allowed : 1, draw = std::fabs(uniform(random));
    double share = 0.5 * uniform(random);
    if (draw < spoilt) share = random() % 2 == 0 ? 1 + 0x1p-21 * uniform(random) : 1.5 * uniform(random);
    out.set(at, (std::isfinite(e.value) ? e.value : 0) + share * allowed);
    if (draw < spoilt / 50) out.set(at, random() % 2 == 0 ? infinity : std::nan(""));
  }
  return out;
}

void expect_same(const ErrorSample& one, const ErrorSample& other) {
  EXPECT_EQ(one.keys, other.keys);
  EXPECT_EQ(one.mask, other.mask);
  EXPECT_EQ(one.elements, other.elements);
  EXPECT_EQ(one.worst_error, other.worst_error);
  EXPECT_EQ(one.worst_ulp, other.worst_ulp);
  EXPECT_EQ(one.worst_utilisation, other.worst_utilisation);
  EXPECT_EQ(one.condition, other.condition);
  EXPECT_EQ(one.scaled_error, other.scaled_error);
  EXPECT_EQ(one.scaled_allowed, other.scaled_allowed);
  EXPECT_EQ(one.budget, other.budget);
  EXPECT_EQ(one.score_range, other.score_range);
  EXPECT_EQ(one.bias, other.bias);
  EXPECT_EQ(one.squares, other.squares);
  EXPECT_EQ(one.atol, other.atol);
  EXPECT_EQ(one.histogram, other.histogram);
}

void expect_same(const Verdict& one, const Verdict& other) {
  EXPECT_EQ(one.outcome, other.outcome);
  EXPECT_EQ(one.violation, other.violation);
  EXPECT_EQ(one.utilisation, other.utilisation);
  EXPECT_EQ(one.error, other.error);
  EXPECT_EQ(one.allowed, other.allowed);
  EXPECT_EQ(one.element, other.element);
  EXPECT_EQ(one.level, other.level);
  EXPECT_EQ(one.reason, other.reason);
  EXPECT_EQ(one.alarm, other.alarm);
  EXPECT_EQ(one.reach, other.reach);
  ASSERT_EQ(one.errors == nullptr, other.errors == nullptr);
  if (one.errors) expect_same(*one.errors, *other.errors);
}

/// All that is told of an element.
using Told = std::array<double, 7>;

Verdict judged(const Case& c, const Tensor& out, const Tensor& lse, const Arithmetic& a, OracleOptions options,
               std::map<std::int64_t, Told>* told) {
  if (told)
    options.element = [&](const JudgedElement& e) {
      const bool first = told->emplace(e.element, Told{e.found, e.exact, e.certificate, e.lower, e.upper, e.allowed,
                                                       static_cast<double>(e.outcome)})
                             .second;
      EXPECT_TRUE(first) << e.element;
    };
  return judge_attention(c, out, lse, a, options);
}

/// Equal also where both are NaN.
bool same_bits(const Told& one, const Told& other) {
  return std::equal(one.begin(), one.end(), other.begin(),
                    [](double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); });
}

TEST(EqualRows, VerdictIsThatOfRowByRowInEveryField) {
  std::mt19937_64 random(1);
  std::map<Outcome, int> outcomes;
  std::map<int, int> levels;
  for (const Kind& kind : kinds()) {
    for (int round = 0; round < 6; ++round) {
      SCOPED_TRACE(kind.name + ", round " + std::to_string(round));
      const Case c = case_of(kind, random);
      Arithmetic a = universal_arithmetic(kind.dtype, kind.dtype);
      if (round >= 3) a.output = DType::f64;  // fine enough to come near the bound
      const Tensor out = answer_to(c, a, round % 3 == 0 ? 0.0 : round % 3 == 1 ? 1e-3 : 0.2, random);
      Tensor lse(DType::f64, {kind.batch, kind.heads, kind.queries});
      const AttentionBounds bounds = attention_bounds(c, a);
      for (std::int64_t r = 0; r < lse.elements(); ++r) lse.set(r, bounds.rows[static_cast<std::size_t>(r)].lse);
      for (const bool alarmed : {false, true})
        for (const bool measured : {false, true})
          for (const bool told : {false, true}) {
            OracleOptions options{.first_level = round == 5 ? 2 : 0,
                                  .alarm_probability = alarmed ? alarm_probability : 0,
                                  .measure_errors = measured,
                                  .short_cuts = ShortCuts::equal_rows};
            std::map<std::int64_t, Told> one, other;
            const Tensor with_lse = measured ? lse : Tensor();
            const Verdict short_cut = judged(c, out, with_lse, a, options, told ? &one : nullptr);
            options.short_cuts = ShortCuts::none;
            const Verdict plain = judged(c, out, with_lse, a, options, told ? &other : nullptr);
            expect_same(short_cut, plain);
            EXPECT_TRUE(std::ranges::equal(one, other, [](const auto& x, const auto& y) {
              return x.first == y.first && same_bits(x.second, y.second);
            }));
            ++outcomes[plain.outcome];
            ++levels[plain.level];
          }
    }
  }
  EXPECT_GT(outcomes[Outcome::held], 0);
  EXPECT_GT(outcomes[Outcome::violated], 0);
  for (const int level : {1, 2, 3}) EXPECT_GT(levels[level], 0) << level;
}

/// The classes as lists of rows.
std::vector<std::vector<std::int64_t>> classes(const detail::EqualRows& equal) {
  std::vector<std::vector<std::int64_t>> all;
  for (const std::int64_t first : equal.first()) {
    all.emplace_back();
    for (std::int64_t row = first; row >= 0; row = equal.after(row)) all.back().push_back(row);
  }
  return all;
}

TEST(EqualRows, AreFoundByTheBytesOfQueryAndMask) {
  Case c;
  c[Slot::q] = Tensor(DType::f32, {1, 1, 6, 2}, std::vector<double>{1, 2, 3, 4, 1, 2, 1, 2, 0, 1, -0.0, 1});
  c[Slot::k] = c[Slot::v] = Tensor(DType::f32, {1, 1, 2, 2});
  detail::Head head;
  detail::EqualRows equal;
  const auto found = [&] {
    head.load(c, sequence_of(c, 0), 0, false);
    equal.find(c, head);
    return classes(equal);
  };
  using Classes = std::vector<std::vector<std::int64_t>>;
  EXPECT_EQ(found(), (Classes{{0, 2, 3}, {1}, {4}, {5}})) << "+0 and -0 are not the same bytes";
  c[Slot::mask] = Tensor(DType::boolean, {1, 1, 6, 2}, std::vector<double>{1, 1, 1, 0, 0, 1, 1, 1, 1, 1, 1, 1});
  EXPECT_EQ(found(), (Classes{{0, 3}, {1}, {2}, {4}, {5}}));
  equal.all_differ(3);
  EXPECT_EQ(classes(equal), (Classes{{0}, {1}, {2}}));
}

}  // namespace
}  // namespace attest
