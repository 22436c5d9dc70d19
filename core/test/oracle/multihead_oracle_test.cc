#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <thread>
#include <vector>

#include "core/oracle/oracle.h"
#include "core/test/cases.h"
#include "core/test/reference_attention.h"

namespace attest {
namespace {

struct Spec {
  DType dtype = DType::f32;
  std::int64_t batch = 2, queries = 3, keys = 5, heads = 2, dk = 3, dv = 2, c = 4, d_o = 5;
  bool appended = false, causal = false;
};

Case random_case(std::mt19937_64& random, const Spec& s) {
  std::normal_distribution<double> normal;
  const test::CaseSizes sizes{.batch = s.batch,
                              .heads = s.heads,
                              .queries = s.queries,
                              .keys = s.keys,
                              .dk = s.dk,
                              .dv = s.dv,
                              .c_q = s.c,
                              .c_k = s.c,
                              .c_v = s.c,
                              .d_o = s.d_o};
  using enum Slot;
  std::vector<Slot> slots{q, k, v, w_q, w_k, w_v, b_q, b_k, b_v, w_o, b_o};
  if (s.appended) slots.insert(slots.end(), {bias_k, bias_v});
  Case c = test::case_of(Operation::multihead, sizes, slots, [&](Slot, const Shape& shape) {
    return test::filled(s.dtype, shape, [&] { return normal(random); });
  });
  if (s.causal) c.causal = Causal::top_left;
  c.scale = 1 / std::sqrt(static_cast<double>(s.dk));
  validate(c);
  return c;
}

/// Multihead attention in Real, plainly; `wrong` spoils it.
template <class Real>
Tensor multihead(const Case& c, const test::Spoilt& wrong = {}) {
  return {c.dtype(), c.out_shape(), test::reference_multihead<Real>(c, wrong)};
}

TEST(MultiheadOracle, AcceptsPlainCodeAndRefusesAWrongScale) {
  std::mt19937_64 random(3);
  double worst = 0;
  int caught = 0, rounds = 40;
  for (int round = 0; round < rounds; ++round) {
    Spec s;
    s.appended = round % 2;
    s.causal = round % 3 == 0;
    s.dtype = round % 5 == 0 ? DType::f64 : DType::f32;
    const Case c = random_case(random, s);
    const bool wide = s.dtype == DType::f64;
    const Arithmetic a = universal_arithmetic(s.dtype, s.dtype);
    const Verdict right = judge_multihead(c, wide ? multihead<double>(c) : multihead<float>(c), a);
    EXPECT_EQ(right.outcome, Outcome::held) << right.reason;
    worst = std::max(worst, right.utilisation);
    const Tensor wrong = wide ? multihead<double>(c, {.scale = 1.01}) : multihead<float>(c, {.scale = 1.01});
    caught += judge_multihead(c, wrong, a).outcome == Outcome::violated;
    Tensor poisoned = multihead<double>(c);
    poisoned.set(1, std::numeric_limits<double>::quiet_NaN());
    EXPECT_EQ(judge_multihead(c, poisoned, a).outcome, Outcome::violated);
  }
  EXPECT_GT(worst, 0.002) << "a bound that nothing comes near is no bound";
  EXPECT_EQ(caught, rounds);
}

TEST(MultiheadOracle, ExcusesRowsThatSeeNothing) {
  std::mt19937_64 random(4);
  Spec s;
  s.dtype = DType::f32;
  Case c = random_case(random, s);
  c.causal = Causal::bottom_right;
  Tensor mask(DType::boolean, {1, 1, s.queries, s.keys});
  c[Slot::mask] = mask;
  EXPECT_EQ(judge_multihead(c, multihead<float>(c), universal_arithmetic(DType::f32, DType::f32)).outcome,
            Outcome::excused);
}

/// One batch entry and query; the identity where nothing else is said. Query, keys and values of two numbers per head.
struct Plain {
  std::int64_t heads = 1, keys = 3;
  std::vector<double> q, k, v, w_o;

  explicit Plain(std::int64_t n_heads, std::int64_t n_keys)
      : heads(n_heads),
        keys(n_keys),
        q(size(1), 1.0),
        k(size(n_keys), 0.5),
        v(size(n_keys), 1.0),
        w_o(size(1) * size(1), 0.0) {
    for (std::size_t l = 0; l < size(1); ++l) w_o[l * size(1) + l] = 1;
  }
  [[nodiscard]] std::size_t size(std::int64_t rows) const { return static_cast<std::size_t>(rows * 2 * heads); }
  /// Behind each number stand 31 zeros that the projections add: values of which a kernel knows less than of scores.
  [[nodiscard]] Case make(DType dtype = DType::f32) const {
    const std::int64_t d = 2 * heads, c_in = 32 * d;
    std::vector<double> projection(size(1) * 32 * size(1), 0.0);
    for (std::size_t l = 0; l < size(1); ++l) projection[l * size(1) + l] = 1;
    const auto padded = [&](const std::vector<double>& rows) {
      std::vector<double> wide(32 * rows.size(), 0.0);
      for (std::size_t row = 0; row * size(1) < rows.size(); ++row)
        for (std::size_t c = 0; c < size(1); ++c) wide[row * 32 * size(1) + c] = rows[row * size(1) + c];
      return wide;
    };
    Case c;
    c.operation = Operation::multihead;
    c.heads = static_cast<std::int32_t>(heads);
    c[Slot::q] = Tensor(dtype, {1, 1, c_in}, padded(q));
    c[Slot::k] = Tensor(dtype, {1, keys, c_in}, padded(k));
    c[Slot::v] = Tensor(dtype, {1, keys, c_in}, padded(v));
    for (const Slot slot : {Slot::w_q, Slot::w_k, Slot::w_v}) c[slot] = Tensor(dtype, {c_in, d}, projection);
    c[Slot::w_o] = Tensor(dtype, {d, d}, w_o);
    validate(c);
    return c;
  }
};

/// Of a kernel that renormalises whatever it merges: a partial sum's own maximum is no part of its error.
Verdict judged(const Case& c, const std::vector<double>& found) {
  Arithmetic a = universal_arithmetic(c.dtype(), c.dtype());
  a.split_merge = a.folded_exp2 = a.base2 = false;
  return judge_multihead(c, Tensor(c.dtype(), c.out_shape(), found), a);
}

TEST(MultiheadOracle, JudgesOneKeyAndConstantValuesWhateverTheScores) {
  for (const double q : {1.0, 1e3, 1e6, 1e9}) {
    Plain one(1, 1);
    one.q = {q, -q / 3};
    one.k = {0.3, 0.7};
    one.v = {3, -5};
    EXPECT_EQ(judged(one.make(), {3, -5}).outcome, Outcome::held) << q;
    EXPECT_EQ(judged(one.make(), {3.0001, -5}).outcome, Outcome::violated) << q;
    Plain constant(2, 3);
    for (std::size_t e = 0; e < constant.k.size(); ++e) {
      constant.k[e] = std::sin(static_cast<double>(e));
      constant.v[e] = static_cast<double>(e % 4) - 1.5;
    }
    for (double& x : constant.q) x = q;
    EXPECT_EQ(judged(constant.make(), {-1.5, -0.5, 0.5, 1.5}).outcome, Outcome::held) << q;
    EXPECT_EQ(judged(constant.make(), {-1.5, -0.5, 0.5, 1.5001}).outcome, Outcome::violated) << q;
  }
}

/// Products of 1e9 that cancel in the first head: in f32 nothing is known of its scores. Those of the second are 0.
Plain unknown_scores() {
  Plain p(2, 2);
  p.q = {16777215 * 64.0, 16777213 * 64.0, 0, 0};
  p.k = {1, -1, 0, 0, -1, 1, 0, 0};
  p.v = {0, 0, 1, 2, 1, 1, 3, 4};
  return p;
}

TEST(MultiheadOracle, ExcusesAnOutputThatUnknownScoresMayPutAnywhere) {
  // Exactly: the first head reads its second key or its first, by a score of 2^27 times sqrt(1/2) or so.
  const Plain p = unknown_scores();
  Case c = p.make();
  c.scale = 1e-9;
  const auto element = [&](std::int64_t of, double found) {
    std::vector<double> out{0.5, 0.5, 2, 3};
    out[static_cast<std::size_t>(of)] = found;
    return judged(c, out);
  };
  EXPECT_EQ(element(0, 0.5).outcome, Outcome::held) << "the second head's own columns are known well";
  EXPECT_EQ(element(2, 2.0001).outcome, Outcome::violated);
  c.scale = 1;
  EXPECT_EQ(element(0, 0.5).outcome, Outcome::held) << "of the case: the second head was judged";
  EXPECT_EQ(element(0, 0.9).outcome, Outcome::held) << "unknown";
  EXPECT_EQ(element(0, 1.5).outcome, Outcome::violated) << "farther than any mean of the values";
  EXPECT_EQ(element(2, 2.0001).outcome, Outcome::violated) << "the second head is known";
  Plain first = p;  // every output is of the first head
  first.w_o = {1, 1, 1, 1, 1, -1, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0};
  c = first.make();
  EXPECT_EQ(judged(c, {1, 0.2, 1, 1.5}).outcome, Outcome::excused);
  EXPECT_EQ(judged(c, {1, 0.2, 1, 1.5}).reason, "vacuous bound");
  EXPECT_EQ(judged(c, {1, 5, 1, 1.5}).outcome, Outcome::violated);
  Plain second = p;  // and of the second, with next to nothing of the first
  second.v = {0, 0, 1, 2, 1, 1, 1, 2};
  second.w_o = {0, 0, 0, 0, 1e-12, 1e-12, 1e-12, 1e-12, 1, 1, 1, 1, 1, -1, 2, 0};
  c = second.make();
  EXPECT_EQ(judged(c, {3, -1, 5, 1}).outcome, Outcome::held) << judged(c, {3, -1, 5, 1}).reason;
  EXPECT_EQ(judged(c, {3, -1, 5, 1.0001}).outcome, Outcome::violated);
}

TEST(MultiheadOracle, JudgesOutputsWhoseErrorIsMostlyThatOfTheScores) {
  Plain p(1, 2);
  p.q = {100.3, 0};
  p.k = {0.3, 0, 0.3000001, 0};
  p.v = {0, 1, 2, 4};
  const Case c = p.make();
  const double score = static_cast<double>(100.3F) * (static_cast<double>(0.3000001F) - static_cast<double>(0.3F));
  const double second = 1 / (1 + std::exp(-score));
  EXPECT_EQ(judged(c, {2 * second, 1 + 3 * second}).outcome, Outcome::held);
  EXPECT_EQ(judged(c, {2 * second, 1 + 3 * second + 0.01}).outcome, Outcome::violated);
}

TEST(MultiheadOracle, ExcusesSumsWhoseRoundingMayBeAllOfThem) {
  // 300 additions in bf16: an accumulation error as large as what is summed.
  Plain p(1, 2);
  Case c = p.make(DType::bf16);
  c[Slot::q] = Tensor(DType::bf16, {1, 1, 300}, std::vector<double>(300, 0.0));
  c[Slot::k] = c[Slot::v] = Tensor(DType::bf16, {1, 2, 300}, std::vector<double>(600, 1.0));
  for (const Slot slot : {Slot::w_q, Slot::w_k, Slot::w_v})
    c[slot] = Tensor(DType::bf16, {300, 2}, std::vector<double>(600, 0.0078125));
  validate(c);
  Arithmetic a = universal_arithmetic(DType::bf16, DType::bf16);
  const Tensor out(DType::bf16, c.out_shape(), std::vector<double>{2.34375, 2.34375});
  EXPECT_EQ(judge_multihead(c, out, a).outcome, Outcome::held) << "summed in f32";
  a.score_sums = a.accumulate = DType::bf16;
  EXPECT_EQ(judge_multihead(c, out, a).reason, "vacuous bound");
}

TEST(MultiheadOracle, ExcusesAHiddenKeyWhoseScoreOverflowsAsTheOneOfAttentionDoes) {
  // 2^63 times 2^65, hidden: +inf, to which -inf is added. A case that PyTorch's module answers with NaN.
  const auto case_of_key = [](double key, bool appended_mask) {
    Case c;
    c.operation = Operation::multihead;
    c.scale = 1;
    c[Slot::q] = Tensor(DType::f32, {1, 1, 1}, std::vector<double>{0x1p63});
    c[Slot::k] = Tensor(DType::f32, {1, 2, 1}, std::vector<double>{0, key});
    c[Slot::v] = Tensor(DType::f32, {1, 2, 1}, std::vector<double>{0, 0});
    for (const Slot slot : {Slot::w_q, Slot::w_k, Slot::w_v, Slot::w_o})
      c[slot] = Tensor(DType::f32, {1, 1}, std::vector<double>{1});
    if (appended_mask)
      c[Slot::mask] =
          Tensor(DType::f32, {1, 1, 1, 2}, std::vector<double>{0, -std::numeric_limits<double>::infinity()});
    else
      c.causal = Causal::top_left;
    validate(c);
    return c;
  };
  const Arithmetic a = universal_arithmetic(DType::f32, DType::f32);
  const double nan = std::nan("");
  for (const bool mask : {false, true}) {
    const Case beyond = case_of_key(0x1p65, mask), within = case_of_key(0x1p60, mask);
    const auto out = [](const Case& c, double found) { return Tensor(c.dtype(), c.out_shape(), std::vector{found}); };
    EXPECT_EQ(judge_multihead(beyond, out(beyond, nan), a).outcome, Outcome::excused);
    EXPECT_EQ(judge_multihead(within, out(within, nan), a).outcome, Outcome::violated);
    EXPECT_EQ(judge_multihead(within, out(within, 0), a).outcome, Outcome::held);
    // Who claims that hidden keys do not matter has no such excuse.
    OracleOptions claims;
    claims.ignores_dead_values = true;
    EXPECT_EQ(judge_multihead(beyond, out(beyond, nan), a, claims).outcome, Outcome::violated);
    EXPECT_EQ(judge_multihead(beyond, out(beyond, 0), a, claims).outcome, Outcome::held);
  }
  // A key that is seen stays outside the domain, whatever is claimed.
  Case seen = case_of_key(0x1p65, false);
  seen.causal = Causal::none;
  EXPECT_EQ(judge_multihead(seen, Tensor(DType::f32, seen.out_shape(), std::vector{nan}), a).outcome, Outcome::excused);
}

TEST(MultiheadOracle, LeavesNothingBehindInAThreadThatEnds) {
  std::thread([] { EXPECT_EQ(judged(Plain(2, 3).make(), {1, 1, 1, 1.5}).outcome, Outcome::violated); }).join();
}

}  // namespace
}  // namespace attest
