// The core offered as kernels: that each is the core on its scalar, rounded once.
#include <gtest/gtest.h>

#include <random>
#include <tuple>

#include "core/definition/attention.h"
#include "core/definition/multihead.h"
#include "core/kernel/kernel_under_test.h"
#include "core/oracle/oracle.h"
#include "core/scalars/wide.h"
#include "core/test/cases.h"
#include "core/test/definition/test_scalars.h"

namespace attest {
namespace {

using namespace test;

std::unique_ptr<Kernel> core_kernel(const std::string& id) {
  for (const KernelEntry& entry : core_kernels())
    if (entry.id == id) return entry.make();
  throw std::invalid_argument("no kernel " + id);
}

/// A tensor of values with full significands in [-1, 1], rounded to dtype.
Tensor random_tensor(std::mt19937_64& random, DType dtype, const Shape& shape) {
  return test::filled(dtype, shape, [&] { return static_cast<double>(random() >> 11U) * 0x1p-52 - 1.0; });
}
Case random_attention(DType dtype, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Case c = test::attention_of({.batch = 2, .heads = 4, .queries = 3, .keys = 5, .dk = 4, .dv = 2, .kv_heads = 2},
                              [&](Slot, const Shape& shape) { return random_tensor(random, dtype, shape); });
  c[Slot::mask] = random_tensor(random, dtype, {1, 4, 3, 5});
  c[Slot::mask].set(7, -std::numeric_limits<double>::infinity());
  c.scale = 0.7;
  c.causal = Causal::bottom_right;
  c.mask_convention = seed % 2 == 0 ? MaskConvention::pre_scale : MaskConvention::post_scale;
  return c;
}
Case random_multihead(DType dtype) {
  std::mt19937_64 random(21);
  using enum Slot;
  Case c = test::case_of(
      Operation::multihead,
      {.batch = 2, .heads = 2, .queries = 3, .keys = 4, .dk = 2, .dv = 3, .c_q = 3, .c_k = 5, .c_v = 2, .d_o = 3},
      {q, k, v, w_q, w_k, w_v, b_q, b_v, w_o, b_o, bias_k, bias_v},
      [&](Slot, const Shape& shape) { return random_tensor(random, dtype, shape); });
  c.scale = 0.5;
  c.causal = Causal::top_left;
  return c;
}

/// The last two axes of a tensor of rank 4 at (a, b), of rank 3 at a, or all of it, as exact numbers of T.
template <class T>
Matrix<T> page(const Tensor& t, std::int64_t a = 0, std::int64_t b = 0) {
  const int rank = t.shape().rank();
  const std::int64_t rows = t.shape()[rank - 2], cols = t.shape()[rank - 1];
  const std::int64_t at = rank == 4 ? (t.shape()[0] == 1 ? 0 : a) * t.shape()[1] + b : a;
  Matrix<T> m(rows, cols);
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < cols; ++j) m(i, j) = ScalarTraits<T>::from_double(t[(at * rows + i) * cols + j]);
  return m;
}
template <class T>
Vector<T> vector(const Tensor& t) {
  Vector<T> v(t.elements());
  for (Index i = 0; i < v.size(); ++i) v(i) = ScalarTraits<T>::from_double(t[i]);
  return v;
}

/// The case's exact-to-100-digits answer by the core's functions, entry by entry.
template <class T>
AttentionResult<T> expected(const Case& c, Index b, Index h) {
  Mask<T> mask = additive_mask(page<T>(c.mask(), b, h), c.mask_convention);
  mask.positions.causal = c.causal;
  return mattn_lse(page<T>(c.q(), b, h), page<T>(c.k(), b, h / 2), page<T>(c.v(), b, h / 2),
                   ScalarTraits<T>::from_double(c.scale), mask);
}

/// The kernel's answer is `T`'s, rounded once: bit for bit.
template <class T>
void expect_is_the_core_on(const std::string& id, DType dtype) {
  const auto kernel = core_kernel(id);
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    const Case c = random_attention(dtype, seed);
    validate(c);
    ASSERT_EQ(why_unsupported(kernel->manifest(), c), "") << id;
    const Reply reply = kernel->run(c, dtype, /*want_lse=*/true);
    ASSERT_EQ(reply.status, CallStatus::ok) << id << ": " << reply.message;
    std::int64_t at = 0, row = 0;
    for (Index b = 0; b < 2; ++b) {
      for (Index h = 0; h < 4; ++h) {
        const AttentionResult<T> wanted = expected<T>(c, b, h);
        for (Index i = 0; i < 3; ++i, ++row) {
          EXPECT_EQ(reply.lse[row], ScalarTraits<T>::to_double(wanted.lse(i))) << id;
          for (Index e = 0; e < 2; ++e, ++at) {
            const double exact = dtype == DType::f32 ? static_cast<double>(ScalarTraits<T>::to_float(wanted.out(i, e)))
                                                     : ScalarTraits<T>::to_double(wanted.out(i, e));
            EXPECT_EQ(reply.out[at], exact) << id << " at " << at;
          }
        }
      }
    }
  }
}

TEST(CoreKernels, AreTheCoreOnTheirScalar) {
  expect_is_the_core_on<float>("core:float", DType::f32);
  expect_is_the_core_on<double>("core:double", DType::f64);
  expect_is_the_core_on<double>("core:double", DType::f32);
  expect_is_the_core_on<Eigen::half>("core:half", DType::f16);
  expect_is_the_core_on<Eigen::bfloat16>("core:bfloat16", DType::bf16);
}

// 50 digits or more, rounded once, are the correctly rounded exact value: all of them agree with 100 digits.
TEST(CoreKernels, WiderThanTheirTensorsAreCorrectlyRounded) {
  for (const char* const id : {"core:cpp_bin_float_50", "core:cpp_bin_float_100", "core:mpfr", "core:mpfi", "core:arb"})
    for (const DType dtype : {DType::f64, DType::f32}) expect_is_the_core_on<BinFloat100>(id, dtype);
}

TEST(CoreKernels, RunMultiheadCases) {
  const Case c = random_multihead(DType::f64);
  validate(c);
  MultiheadWeights<BinFloat100> w;
  const auto m = [&](Slot slot) { return page<BinFloat100>(c[slot]); };
  const auto v = [&](Slot slot) { return vector<BinFloat100>(c[slot]); };
  w.q = {m(Slot::w_q), v(Slot::b_q)};
  w.k = {m(Slot::w_k), std::nullopt};
  w.v = {m(Slot::w_v), v(Slot::b_v)};
  w.w_o = m(Slot::w_o);
  w.b_o = v(Slot::b_o);
  w.bias_k = v(Slot::bias_k);
  w.bias_v = v(Slot::bias_v);
  w.heads = 2;
  const auto masks = HeadMasks<BinFloat100>::two_d(causal_mask<BinFloat100>());
  for (const char* const id : {"core:cpp_bin_float_50", "core:mpfr", "core:mpfi", "core:arb"}) {
    const Reply reply = core_kernel(id)->run(c);
    ASSERT_EQ(reply.status, CallStatus::ok) << id << ": " << reply.message;
    for (Index b = 0; b < 2; ++b) {
      const Matrix<BinFloat100> wanted = mmhattn(page<BinFloat100>(c.q(), b), page<BinFloat100>(c.k(), b),
                                                 page<BinFloat100>(c.v(), b), w, BinFloat100(c.scale), masks);
      for (Index i = 0; i < 3; ++i)
        for (Index e = 0; e < 3; ++e)
          EXPECT_EQ(reply.out[(b * 3 + i) * 3 + e], ScalarTraits<BinFloat100>::to_double(wanted(i, e))) << id;
    }
  }
}

TEST(CoreKernels, TakeBooleanMasksAndIgnoreWhatTheyHide) {
  for (const KernelEntry& entry : core_kernels()) {
    const auto kernel = entry.make();
    const DType dtype = kernel->manifest().dtypes.front();
    Case c = random_attention(dtype, 5);
    c.causal = Causal::none;
    c[Slot::mask] = Tensor(DType::boolean, {2, 1, 3, 5});
    for (std::int64_t at = 0; at < 30; ++at) c[Slot::mask].set(at, at % 5 == 2 ? 0.0 : 1.0);
    const Reply clean = kernel->run(c);
    ASSERT_EQ(clean.status, CallStatus::ok) << entry.id << ": " << clean.message;
    for (std::int64_t head = 0; head < 4; ++head) {
      c[Slot::k].set((head * 5 + 2) * 4, std::numeric_limits<double>::quiet_NaN());
      c[Slot::v].set((head * 5 + 2) * 2 + 1, std::numeric_limits<double>::infinity());
    }
    EXPECT_EQ(kernel->run(c).out, clean.out) << entry.id;
    EXPECT_TRUE(kernel->manifest().claims_to(Claim::ignores_dead_values));
  }
}

TEST(CoreKernels, AnswerNaNWhereEveryKeyIsHiddenAndRejectNoKey) {
  for (const KernelEntry& entry : core_kernels()) {
    const auto kernel = entry.make();
    const DType dtype = kernel->manifest().dtypes.front();
    EXPECT_EQ(kernel->manifest().fully_masked_row, FullyMaskedRow::nan);
    Case c = random_attention(dtype, 6);
    c[Slot::mask] = Tensor(DType::boolean, {1, 1, 3, 5});
    c.causal = Causal::none;
    for (std::int64_t at = 5; at < 15; ++at) c[Slot::mask].set(at, 1.0);
    const Reply reply = kernel->run(c, dtype, /*want_lse=*/true);
    ASSERT_EQ(reply.status, CallStatus::ok) << entry.id << ": " << reply.message;
    EXPECT_TRUE(std::isnan(reply.out[0]) && std::isnan(reply.lse[0])) << entry.id;
    EXPECT_FALSE(std::isnan(reply.out[2]) || std::isnan(reply.lse[1])) << entry.id;

    c[Slot::k] = Tensor(dtype, {2, 2, 0, 4});
    c[Slot::v] = Tensor(dtype, {2, 2, 0, 2});
    c[Slot::mask] = Tensor();
    const Reply none = kernel->run(c);
    EXPECT_EQ(none.status, CallStatus::rejected) << entry.id;
    EXPECT_NE(none.message.find("N = 0"), std::string::npos) << none.message;
  }
}

/// Violated verdicts of a kernel's outputs over `cases` small cases, held to an arithmetic.
int violations(Kernel& kernel, DType dtype, const Arithmetic& arithmetic, int cases) {
  std::mt19937_64 random(17);
  int violated = 0;
  for (int at = 0; at < cases; ++at) {
    const auto size = [&](std::uint64_t most) { return static_cast<std::int64_t>(1 + random() % most); };
    const std::int64_t rows = size(4), keys = size(12), dk = size(8), dv = size(4);
    Case c;
    c[Slot::q] = random_tensor(random, dtype, {1, 2, rows, dk});
    c[Slot::k] = random_tensor(random, dtype, {1, 1, keys, dk});
    c[Slot::v] = random_tensor(random, dtype, {1, 1, keys, dv});
    if (at % 2 == 0) c[Slot::mask] = random_tensor(random, dtype, {1, 1, rows, keys});
    c.scale = at % 4 < 2 ? 0.7 : 4.0;
    c.mask_convention = at % 3 == 0 ? MaskConvention::pre_scale : MaskConvention::post_scale;
    c.causal = at % 5 == 0 ? Causal::top_left : Causal::none;
    const Reply reply = kernel.run(c);
    EXPECT_EQ(reply.status, CallStatus::ok) << reply.message;
    const Verdict verdict = judge_attention(c, reply.out, Tensor(), arithmetic);
    EXPECT_NE(verdict.outcome, Outcome::inconclusive) << verdict.reason;
    violated += verdict.outcome == Outcome::violated ? 1 : 0;
  }
  return violated;
}

// What the manifests say of the arithmetic is true, and it matters: half held to sums in float is found out.
TEST(CoreKernels, KeepTheBoundOfTheArithmeticTheyDeclare) {
  for (const KernelEntry& entry : core_kernels()) {
    const auto kernel = entry.make();
    for (const DType dtype : kernel->manifest().dtypes)
      EXPECT_EQ(violations(*kernel, dtype, kernel->manifest().arithmetic.usual_for(dtype), 200), 0) << entry.id;
  }
  for (const auto& [id, dtype, claimed] :
       {std::tuple{"core:half", DType::f16, DType::f32}, std::tuple{"core:bfloat16", DType::bf16, DType::f32},
        std::tuple{"core:float", DType::f32, DType::f64}}) {
    const auto kernel = core_kernel(id);
    Arithmetic untrue = kernel->manifest().arithmetic.usual_for(dtype);
    untrue.score_sums = untrue.accumulate = untrue.weights = claimed;
    EXPECT_GT(violations(*kernel, dtype, untrue, 200), 50) << id;
  }
}

TEST(CoreKernels, HaveManifestsThatReadBack) {
  std::vector<std::string> ids;
  for (const KernelEntry& entry : core_kernels()) {
    ids.push_back(entry.id);
    const auto kernel = entry.make();
    EXPECT_EQ(kernel->id(), entry.id);
    EXPECT_FALSE(entry.summary.empty());
    const Manifest& manifest = kernel->manifest();
    const Manifest back = parse_manifest(to_json(manifest), entry.id);
    for (const DType dtype : manifest.dtypes)
      EXPECT_EQ(back.arithmetic.usual_for(dtype), manifest.arithmetic.usual_for(dtype));
    EXPECT_EQ(to_json(back), to_json(manifest));
  }
  const std::vector<std::string> wanted{"core:float",
                                        "core:double",
                                        "core:half",
                                        "core:bfloat16",
                                        "core:cpp_bin_float_50",
                                        "core:cpp_bin_float_100",
                                        "core:cpp_dec_float_100",
                                        "core:cpp_dec_float_300",
                                        "core:mpfr",
                                        "core:mpfi",
                                        "core:arb"};
  EXPECT_EQ(ids, wanted);
}

// A weight of e^-700 of the smallest value is about 1e-628: no double is that near to zero without being zero.
TEST(CoreKernels, WideNumbersReachBelowEveryDouble) {
  const Case c = test::one_query(DType::f64, {1}, {0, -700}, {0, 0x1p-1074});
  const attest::Wide exact = core_kernel("core:mpfr")->run(c, std::nullopt, false).out.enclosure(0).lower;
  for (const char* id :
       {"core:cpp_bin_float_50", "core:cpp_bin_float_100", "core:cpp_dec_float_100", "core:mpfi", "core:arb"}) {
    const Reply reply = core_kernel(id)->run(c, std::nullopt, false);
    ASSERT_EQ(reply.out.elements(), 1) << id;
    const attest::Wide lower = reply.out.enclosure(0).lower;
    EXPECT_GT(lower, 0) << id;
    EXPECT_LE(abs(lower - exact), exact * 1e-45) << id;
  }
}

// Scores of 1e153 in 61 digits leave exponentials between 0 and infinity: no number to give, though every one of the
// enclosure's is allowed.
TEST(CoreKernels, AnEnclosureThatSaysNothingIsNotRounded) {
  Case c = test::one_query(DType::f64, {1, 1}, {-0x1.3p511, 1}, {1});
  for (const char* const id : {"core:mpfi", "core:arb"}) {
    c[Slot::k].set(0, -0x1.3p511);
    EXPECT_EQ(core_kernel(id)->run(c).status, CallStatus::unsupported) << id;
    c[Slot::k].set(0, -3.0);
    const Reply reply = core_kernel(id)->run(c);
    ASSERT_EQ(reply.status, CallStatus::ok) << id << ": " << reply.message;
    EXPECT_EQ(reply.out[0], 1.0) << id;
  }
}

// Two libraries that share no arithmetic but integers enclose the same numbers, so no two of their enclosures are
// apart, and an MPFR number of as many digits is no farther away than its own rounding.
TEST(CoreKernels, EnclosuresOfArbAndMpfiOverlap) {
  for (const Case& c :
       {random_multihead(DType::f64), random_attention(DType::f64, 1), random_attention(DType::f32, 2)}) {
    const auto own_numbers = [&](const char* id) { return core_kernel(id)->run(c, std::nullopt, false).out; };
    const Values balls = own_numbers("core:arb"), intervals = own_numbers("core:mpfi");
    const Values numbers = own_numbers("core:mpfr");
    ASSERT_TRUE(balls.is<Enclosures>());
    ASSERT_EQ(balls.shape(), intervals.shape());
    ASSERT_EQ(balls.shape(), c.out_shape());
    EXPECT_EQ(balls.as<Enclosures>()->unit(), 0);
    for (std::int64_t e = 0; e < balls.elements(); ++e) {
      const WideInterval ball = balls.enclosure(e), interval = intervals.enclosure(e);
      EXPECT_TRUE(ball.lower <= interval.upper && interval.lower <= ball.upper) << e;
      EXPECT_TRUE(ball.lower <= ball.upper && ball.upper - ball.lower <= 1e-50) << e;
      EXPECT_TRUE(abs(numbers.enclosure(e).lower - ball.lower) <= 1e-50) << e;
    }
  }
}

}  // namespace
}  // namespace attest
