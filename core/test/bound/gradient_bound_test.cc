// The bound of gradients (gradient-bounds.md) against backward passes that compute as they declare, and against
// some that do not.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "core/bound/gradient_terms.h"
#include "core/bound/loops/inner_loops.h"
#include "core/test/fleet/backward.h"

namespace attest::fleet {
namespace {

class GradientBound : public testing::TestWithParam<DType> {
 protected:
  /// Of the fleet's kernels of that dtype.
  static GradientCount validate(Added added, std::uint64_t seeds) {
    GradientCount all;
    for (const BackwardEmulation& kernel : correct_backward_kernels()) {
      if (kernel.forward.arithmetic.input != GetParam()) continue;
      const GradientCount own = validate_gradients(kernel, {.seeds = seeds, .added = added});
      EXPECT_EQ(own.violations, 0) << own.first_violation;
      all.merge(own);
    }
    return all;
  }
};

// What f64 kernels do is judged in balls, which takes its time.
TEST_P(GradientBound, NoCorrectKernelExceedsIt) {
  const GradientCount all = validate(Added::nothing, GetParam() == DType::f64 ? 6 : 40);
  EXPECT_GT(all.checks, 20'000);
  EXPECT_GT(all.worst, 0.5);
  EXPECT_LT(all.excused, all.checks / 4);
}
TEST_P(GradientBound, NoCorrectKernelExceedsItWithAVariant) {
  for (const Added added : {Added::window, Added::sink, Added::softcap, Added::dropout, Added::slope}) {
    SCOPED_TRACE(testing::PrintToString(added));
    EXPECT_GT(validate(added, GetParam() == DType::f64 ? 2 : 15).checks, 5'000);
  }
}
INSTANTIATE_TEST_SUITE_P(All, GradientBound, testing::Values(DType::f64, DType::f32, DType::bf16, DType::f16),
                         [](const auto& param) { return std::string(name_of(param.param)); });

/// A term of the bound that is left out, and a kernel that needs it. The errors of constants are not among them: those
/// of the scores, which are as large, hide them.
struct LeftOut {
  std::string term, kernel;
  void (*leave_out)(BackwardProfile&);
  Added added = Added::nothing;
  std::uint64_t seeds = 40;
  std::int64_t columns = 6;
};
std::vector<LeftOut> terms() {
  return {
      {"u_ds", "bf16.backward.flash2", [](BackwardProfile& p) { p.u_ds = 0; }},
      {"lam_ds", "f16.backward.flash2", [](BackwardProfile& p) { p.lam_ds = 0; }},
      {"u_p in dS", "bf16.backward.rounded.weights-delta",
       [](BackwardProfile& p) { p.declared.rounded_weights_in_scores = false; }},
      {"u_p in dv", "bf16.backward.flash2", [](BackwardProfile& p) { p.u_p = 0; }},
      {"lam_p", "f16.backward.flash2", [](BackwardProfile& p) { p.lam_p = 0; }},
      {"lam_e, lam", "f32.backward.ftz.delta-in-sum", [](BackwardProfile& p) { p.lam_e = p.lam = 0; }},
      {"u_dp", "bf16.backward.unfused", [](BackwardProfile& p) { p.u_dp = 0; }},
      {"u_s", "f32.backward.rz", [](BackwardProfile& p) { p.u_s = 0; }, Added::nothing, 40, 60},
      {"u_a", "f32.backward.rz", [](BackwardProfile& p) { p.u_a = 0; }},
      {"u_in", "f32.backward.weights-delta", [](BackwardProfile& p) { p.declared.sink_terms.reset(); }, Added::sink},
      {"u_o", "bf16.backward.flash2", [](BackwardProfile& p) { p.u_o = 0; }},
      {"lam_o", "f16.backward.flash2", [](BackwardProfile& p) { p.lam_o = 0; }},
      {"u_group", "bf16.backward.flash2", [](BackwardProfile& p) { p.u_group = 0; }},
      {"exponent", "f32.backward", [](BackwardProfile& p) { p.exponent = 0; }, Added::nothing, 200},
      {"of_exp", "f32.backward.exp2.atomics", [](BackwardProfile& p) { p.of_exp = 0; }, Added::nothing, 200},
      {"phi", "f32.backward.ftz.delta-in-sum", [](BackwardProfile& p) { p.phi = p.phi_v = 0; }, Added::dropout, 200},
  };
}
TEST(GradientBoundTerms, EachIsNeeded) {
  for (const LeftOut& one : terms()) {
    BackwardEffort effort{.seeds = one.seeds, .most_columns = one.columns, .added = one.added};
    const GradientCount with = validate_gradients(backward_kernel_named(one.kernel), effort);
    effort.profile = one.leave_out;
    const GradientCount without = validate_gradients(backward_kernel_named(one.kernel), effort);
    EXPECT_EQ(with.violations, 0) << one.term;
    EXPECT_GT(without.violations, 0) << one.term;
  }
}

// The sums of gradients, in every width, by rows in their order and by an index.
TEST(GradientLoops, AddUpRowsAndTheirSizes) {
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal;
  for (const char* name : {"baseline", "avx2"}) {
    const detail::InnerLoops* loops = detail::inner_loops_named(name);
    if (loops == nullptr) continue;
    for (const std::int64_t n : {1, 3, 4, 7, 8, 13, 64, 67})
      for (const bool indexed : {false, true}) {
        constexpr std::int64_t count = 5, stride = 3;
        const std::int64_t pitch = n + 2;
        std::vector<double> rows(static_cast<std::size_t>(pitch * 9)), terms(3 * count * stride);
        for (auto* of : {&rows, &terms})
          for (double& x : *of) x = normal(random);
        const std::vector<std::int64_t> index{8, 0, 3, 3, 5};
        std::vector<std::vector<double>> found(3, std::vector<double>(static_cast<std::size_t>(n + 1), 0.5));
        const double* const at = terms.data();
        const std::int64_t apart = count * stride;
        loops->add_terms({at, at + apart, at + 2 * apart, stride}, count, rows.data(), indexed ? index.data() : nullptr,
                         pitch, n, {found[0].data(), found[1].data(), found[2].data()});
        for (std::size_t sum = 0; sum < 3; ++sum) {
          for (std::int64_t c = 0; c < n; ++c) {
            double expected = 0.5;
            for (std::int64_t r = 0; r < count; ++r) {
              const std::int64_t row = indexed ? index[static_cast<std::size_t>(r)] : r;
              const double x = rows[static_cast<std::size_t>(row * pitch + c)];
              expected += at[static_cast<std::int64_t>(sum) * apart + r * stride] * (sum == 0 ? x : std::fabs(x));
            }
            EXPECT_NEAR(found[sum][static_cast<std::size_t>(c)], expected, 1e-14)
                << name << ' ' << n << ' ' << sum << ' ' << c;
          }
          EXPECT_EQ(found[sum].back(), 0.5) << "wrote beyond the end";
        }
      }
  }
}

// Rows of most problems at once, and key by key, as where a weight may be dropped.
TEST(GradientBoundTerms, AllKeysOfARowAtOnceAreWhatTheyAreOneByOne) {
  std::mt19937_64 random(11);
  std::uniform_real_distribution<double> share;
  for (const BackwardEmulation& emulation : correct_backward_kernels()) {
    const Arithmetic& forward = emulation.forward.arithmetic;
    for (const std::size_t n : {1U, 2U, 3U, 4U, 7U, 8U, 33U}) {
      const Profile scores = profile_of(forward, {.keys = static_cast<std::int64_t>(n), .dk = 4, .scale = 0.5});
      BackwardProfile p = backward_profile(scores, emulation.backward);
      p.lam_in = 0;
      std::vector<double> weight(n), la(n), of_weight(n), size(n), apart(n), E(n);
      const std::vector<unsigned char> all(n, 1);
      for (std::size_t j = 0; j < n; ++j) {
        weight[j] = share(random), la[j] = std::log(weight[j]), size[j] = 4 * share(random);
        of_weight[j] = size[j] * share(random), apart[j] = of_weight[j] + share(random), E[j] = 0x1p-9 * share(random);
      }
      detail::RowSizes row{.n = static_cast<std::int64_t>(n),
                           .dv = 3,
                           .weight = weight.data(),
                           .la = la.data(),
                           .of_weight = of_weight.data(),
                           .size = size.data(),
                           .apart = apart.data(),
                           .E = E.data(),
                           .common = 0x1p-10,
                           .delta = 0.75,
                           .g_out = 2,
                           .g1 = 3,
                           .out1 = 1};
      detail::RowErrors together, one_by_one;
      row_errors(p, row, together);
      row.kept = all.data();
      row_errors(p, row, one_by_one);
      const auto near = [&](double a, double b) { EXPECT_NEAR(a, b, 1e-12 * std::fabs(b)) << emulation.forward.name; };
      near(together.delta, one_by_one.delta), near(together.of_delta, one_by_one.of_delta);
      for (std::size_t j = 0; j < n; ++j) {
        near(together.of_k[j], one_by_one.of_k[j]), near(together.of_q[j], one_by_one.of_q[j]);
        near(together.scores[j], one_by_one.scores[j]), near(together.of_g[j], one_by_one.of_g[j]);
        near(together.weights[j], one_by_one.weights[j]);
      }
      EXPECT_EQ(together.in_domain, one_by_one.in_domain);
      // What each of them needs of the range of a format.
      for (double BackwardProfile::* range : {&BackwardProfile::H_dot, &BackwardProfile::H_ds, &BackwardProfile::H_p}) {
        for (const double most : {0x1p-4, 1.5, 3.0, 6.0}) {
          BackwardProfile narrow = p;
          narrow.*range = most;
          row.kept = nullptr;
          row_errors(narrow, row, together);
          row.kept = all.data();
          row_errors(narrow, row, one_by_one);
          EXPECT_TRUE(one_by_one.in_domain || !together.in_domain) << emulation.forward.name << ' ' << most;
        }
      }
    }
  }
}

TEST(GradientBoundTerms, TheShortSeriesOfTheExponentialIsFromAbove) {
  for (double x = 0x1p-60; x < 2; x *= 1.01) {
    const double exact = std::expm1(x), found = detail::expm1_above(x);
    EXPECT_GE(found, exact * (1 - 0x1p-52)) << x;
    EXPECT_LE(found, exact * (1 + 3e-5)) << x;
  }
  EXPECT_EQ(detail::expm1_above(0), 0);
}

// A subnormal gradient that is read as 0, beside values that are large and far apart.
TEST(GradientBoundTerms, InputsThatAreReadAsZeroAreInIt) {
  const BackwardEmulation kernel = backward_kernel_named("f32.backward.ftz.delta-in-sum");
  BackwardCase of;
  const auto column = [](const std::vector<double>& numbers) {
    return Tensor(DType::f32, {1, 1, std::ssize(numbers), 1}, numbers);
  };
  of.c.tensors[0] = column({1}), of.c.tensors[1] = column({1, -1}), of.c.tensors[2] = column({1000, -1000});
  of.d_out = column({0x1.8p-127});
  for (const bool left_out : {false, true}) {
    GradientOptions options;
    if (left_out) options.profile = [](BackwardProfile& p) { p.lam_in = 0; };
    GradientCount count;
    check_gradients(kernel, of, options, "by hand", count);
    EXPECT_EQ(count.violations > 0, left_out) << count.first_violation;
  }
}

// An output between two subnormals, which no double is, and a large gradient by it.
TEST(GradientBoundTerms, AnOutputThatNoDoubleIsIsAnErrorOfD) {
  const BackwardEmulation kernel = backward_kernel_named("f64.backward");
  BackwardCase of;
  const auto column = [](const std::vector<double>& numbers) {
    return Tensor(DType::f64, {1, 1, std::ssize(numbers), 1}, numbers);
  };
  of.c.tensors[0] = column({1}), of.c.tensors[1] = column({0, 0}), of.c.tensors[2] = column({0, -0x1p-1074});
  of.d_out = column({0x1p78});
  GradientCount count;
  check_gradients(kernel, of, {}, "by hand", count);
  EXPECT_EQ(count.violations, 0) << count.first_violation;
  EXPECT_GT(count.checks + count.excused, 0);
}

// g.v and D are numbers of the format each, and their difference is none.
TEST(GradientBoundTerms, ADifferenceThatMayOverflowIsOutsideOfTheDomain) {
  const BackwardEmulation kernel = backward_kernel_named("f32.backward");
  const auto column = [](const std::vector<double>& numbers) {
    return Tensor(DType::f32, {1, 1, std::ssize(numbers), 1}, numbers);
  };
  for (const double most : {0x1.cp127, 0x1p126}) {
    BackwardCase of;
    of.c.tensors[0] = column({1}), of.c.tensors[1] = column({0, 0, 0});
    of.c.tensors[2] = column({most * 0x1p-100, most * 0x1p-100, -most * 0x1p-100}), of.d_out = column({0x1p100});
    GradientCount count;
    check_gradients(kernel, of, {}, "by hand", count);
    EXPECT_EQ(count.violations, 0) << count.first_violation;
    EXPECT_EQ(count.excused, most > 0x1p127 ? 7 : 0);
  }
}

// The weight of what a row does not see is 0, which a kernel may multiply by an infinite dP - D. Rows without a key are
// excused as such.
TEST(GradientBoundTerms, AnUnseenValueWhoseProductMayOverflowIsOutsideOfTheDomain) {
  const BackwardEmulation kernel = backward_kernel_named("f32.backward");
  const auto excused = [&](double value, std::vector<double> seen, bool drops, bool ignores) {
    BackwardCase of;
    of.c.tensors[0] = Tensor(DType::f32, {1, 1, 1, 1}, std::vector<double>{1});
    of.c.tensors[1] = Tensor(DType::f32, {1, 1, 2, 1}, std::vector<double>{0, 0});
    of.c.tensors[2] = Tensor(DType::f32, {1, 1, 2, 1}, std::vector<double>{1, value});
    of.c[drops ? Slot::keep : Slot::mask] = Tensor(DType::boolean, {1, 1, 1, 2}, seen);
    of.c.dropout_p = drops ? 0.5 : 0;
    of.d_out = Tensor(DType::f32, {1, 1, 1, 1}, std::vector<double>{0x1p100});
    GradientOptions options;
    options.ignores_dead_values = ignores;
    GradientCount count;
    check_gradients(kernel, of, options, "by hand", count);
    EXPECT_EQ(count.violations, 0) << count.first_violation;
    return count.excused;
  };
  for (const bool drops : {false, true}) {
    EXPECT_EQ(excused(0x1p30, {1, 0}, drops, false), 5) << drops;
    EXPECT_EQ(excused(0x1p30, {1, 0}, drops, true), 0) << drops;
    EXPECT_EQ(excused(0x1p20, {1, 0}, drops, false), 0) << drops;
  }
  EXPECT_EQ(excused(0x1p30, {0, 0}, false, false), 5);
  EXPECT_EQ(excused(0x1p30, {0, 0}, false, true), 1);
  EXPECT_EQ(excused(0x1p20, {0, 0}, false, false), 1);
}

/// A mistake, and the share of checks of a kernel that show it, at the least.
struct Mistake {
  std::string name;
  BackwardFault fault;
  double share;
  Added added = Added::nothing;
};
std::vector<Mistake> mistakes() {
  std::vector<Mistake> all;
  const auto add = [&](std::string name, double share, auto change, Added added = Added::nothing) {
    Mistake one{std::move(name), {}, share, added};
    change(one.fault);
    all.push_back(std::move(one));
  };
  add("D = 0", 0.2, [](BackwardFault& f) { f.no_delta = true; });
  add("a log-sum-exp that is off by 1/8", 0.2, [](BackwardFault& f) { f.lse_error = 0.125; });
  add("dP - D times 1.05", 0.05, [](BackwardFault& f) { f.apart_factor = 1.05; });
  add("the scale twice", 0.1, [](BackwardFault& f) { f.scale_factor = 2; });
  add("the last key is lost in dq", 0.02, [](BackwardFault& f) { f.loses_last_key = true; });
  add("the last row is lost in dk and dv", 0.05, [](BackwardFault& f) { f.loses_last_row = true; });
  add("a head of a group is lost", 0.05, [](BackwardFault& f) { f.loses_a_head = true; });
  add("dk of the rows before", 0.05, [](BackwardFault& f) { f.dk_of_other_rows = true; });
  add("D in bf16", 0.01, [](BackwardFault& f) { f.delta_in = DType::bf16; });
  add("sums in bf16", 0.003, [](BackwardFault& f) { f.sums_in = DType::bf16; });
  add("dP in f8", 0.05, [](BackwardFault& f) { f.of_weights_in = DType::f8_e4m3; });
  add("no derivative of the cap", 0.02, [](BackwardFault& f) { f.forgets_cap = true; }, Added::softcap);
  add("the derivative of the cap in dmask", 0.005, [](BackwardFault& f) { f.caps_mask = true; }, Added::softcap);
  add("dmask of the first head alone", 0.005, [](BackwardFault& f) { f.mask_of_one_head = true; });
  add("dsink with the other sign", 0.002, [](BackwardFault& f) { f.positive_sink = true; }, Added::sink);
  add("no dropout in dP", 0.1, [](BackwardFault& f) { f.forgets_dropout = true; }, Added::dropout);
  return all;
}
TEST(GradientBoundMistakes, AreSeen) {
  for (const char* const name : {"f32.backward", "bf16.backward.flash2", "f16.backward.flash2"}) {
    for (const Mistake& mistake : mistakes()) {
      BackwardEmulation kernel = backward_kernel_named(name);
      kernel.fault = mistake.fault;
      const GradientCount count = validate_gradients(kernel, {.seeds = 10, .added = mistake.added});
      EXPECT_GT(static_cast<double>(count.violations), mistake.share * static_cast<double>(count.checks))
          << name << ", " << mistake.name;
    }
  }
}

/// A small case with everything that is given.
struct Judged {
  BackwardEmulation kernel = backward_kernel_named("f32.backward");
  BackwardCase of;
  BackwardInputs given;
  std::array<Tensor, gradient_count> found;

  explicit Judged(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    of = draw_backward(Regime::gauss_1, Loss::gauss, DType::f32, 2, {.M = 3, .N = 5, .dk = 4, .dv = 2}, Added::nothing,
                       random);
    // Heads share the mask, and have sinks of their own.
    Tensor &mask = of.c[Slot::mask] = Tensor(DType::f32, {1, 1, 3, 5}),
           &sink = of.c[Slot::sink] = Tensor(DType::f32, {2});
    for (std::int64_t e = 0; e < mask.elements(); ++e) mask.set(e, static_cast<double>(e * 7 % 5) / 4);
    mask.set(9, -std::numeric_limits<double>::infinity());
    sink.set(0, 0.5), sink.set(1, -1);
    Answer answer = emulate_heads(kernel.forward, of.c);
    given = {of.d_out, of.d_lse, std::move(answer.out), std::move(answer.lse)};
    found = emulate_backward(kernel, of.c, given);
  }
  [[nodiscard]] std::array<Verdict, gradient_count> judge(const GradientOptions& options = {}) const {
    return judge_gradients(of.c, given, found, kernel.forward.arithmetic, kernel.backward, options);
  }
};

TEST(JudgeGradients, HoldsWhatIsRightAndNamesWhatIsNot) {
  Judged judged(1);
  for (const Verdict& verdict : judged.judge()) EXPECT_EQ(verdict.outcome, Outcome::held);
  for (std::size_t g = 0; g < gradient_count; ++g) {
    Judged wrong(1);
    const std::int64_t at = std::min<std::int64_t>(5, wrong.found[g].elements() - 1);
    wrong.found[g].set(at, wrong.found[g][at] * 1.001 + 0.001);
    const std::array<Verdict, gradient_count> verdicts = wrong.judge();
    for (std::size_t other = 0; other < gradient_count; ++other)
      EXPECT_EQ(verdicts[other].outcome, other == g ? Outcome::violated : Outcome::held);
    EXPECT_EQ(verdicts[g].element, at);
    const std::string place = static_cast<Gradient>(g) == Gradient::sink ? "[h=1]" : "[b=0";
    EXPECT_NE(verdicts[g].reason.find(std::string(name_of(static_cast<Gradient>(g))) + place), std::string::npos)
        << verdicts[g].reason;
  }
}

TEST(JudgeGradients, NaNIsViolatedAndWhatIsNotThereIsSkipped) {
  Judged judged(2);
  judged.found[1].set(3, std::numeric_limits<double>::quiet_NaN());
  judged.found[2] = {};
  const std::array<Verdict, gradient_count> verdicts = judged.judge();
  EXPECT_EQ(verdicts[0].outcome, Outcome::held);
  EXPECT_EQ(verdicts[1].outcome, Outcome::violated);
  EXPECT_EQ(verdicts[1].violation, Violation::not_finite);
  EXPECT_EQ(verdicts[2].outcome, Outcome::skipped);
}

// Doubles with their certificates, and balls, which share nothing with them but the inputs.
TEST(JudgeGradients, BallsSayWhatDoublesSay) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    const Judged judged(seed);
    for (const GradientsAt at : {GradientsAt::definition, GradientsAt::answers}) {
      GradientOptions doubles, balls;
      doubles.at = balls.at = at;
      balls.balls_only = true;
      const auto one = judged.judge(doubles), other = judged.judge(balls);
      for (std::size_t g = 0; g < gradient_count; ++g) {
        EXPECT_EQ(one[g].outcome, Outcome::held);
        EXPECT_EQ(other[g].outcome, Outcome::held);
        EXPECT_EQ(one[g].level, 1);
        EXPECT_EQ(other[g].level, 3);
        EXPECT_NEAR(one[g].utilisation, other[g].utilisation, 1e-2 * other[g].utilisation);
      }
    }
  }
}

// A log-sum-exp and an output that are off are no fault of the backward pass: the bound has their errors in it, and at
// these answers nothing is wrong. But gradients of other answers are.
TEST(JudgeGradients, SaysWhichHalfIsWrong) {
  Judged judged(3);
  const std::array<Tensor, gradient_count> of_right_answers = judged.found;
  for (std::int64_t i = 0; i < 6; ++i) judged.given.lse.set(i, judged.given.lse[i] + 0.01);
  judged.found = emulate_backward(judged.kernel, judged.of.c, judged.given);
  GradientOptions at_answers;
  at_answers.at = GradientsAt::answers;
  for (const Verdict& verdict : judged.judge()) EXPECT_EQ(verdict.outcome, Outcome::held);
  for (const Verdict& verdict : judged.judge(at_answers)) EXPECT_EQ(verdict.outcome, Outcome::held);
  judged.found = of_right_answers;
  for (const Verdict& verdict : judged.judge(at_answers)) EXPECT_EQ(verdict.outcome, Outcome::violated);
}

}  // namespace
}  // namespace attest::fleet
