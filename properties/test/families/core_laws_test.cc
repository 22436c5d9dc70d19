// Each law about the core's own functions holds on every scalar and goes red for a core that breaks it.
#include "properties/families/core_laws.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <span>
#include <vector>

#include "core/problem/selection.h"
#include "core/scalars/wide.h"
#include "core/support/errors.h"
#include "properties/arrangement/arrange.h"
#include "properties/families/core_scores.h"
#include "properties/language/core_agreement.h"
#include "properties/test/catalogue/spoilt.h"

namespace attest {
namespace {

TEST(CoreLaws, HoldOnEveryScalarAndAreSkippedElsewhere) {
  for (const char* const name :
       {"masked.fixed-length", "causal.column-form", "layout.deletion-identities", "layout.index-fusion",
        "layout.columns-are-transpose", "self.bilinear-score", "self.scores-symmetric", "position.length-limit"}) {
    for (const KernelEntry& entry : core_kernels()) {
      const auto kernel = entry.make();
      const OutcomeCounts n = tally_of(name, *kernel, 30, kernel->manifest().dtypes.front());
      EXPECT_EQ(n.violated, 0) << entry.id << ' ' << name << ": " << n.reason;
      EXPECT_GE(n.held, 25) << entry.id << ' ' << name;
    }
    const auto other = registered("builtin:flash");
    EXPECT_EQ(tally_of(name, *other, 20, DType::f32).skipped, 20) << name;
  }
}

Values nothing_hidden(const Case& c, const Tensor&) {
  return core_functions("core:double")->attention_columns(c, Tensor());
}
Values mask_not_turned(const Case& c, const Tensor& allowed) {
  return core_functions("core:double")->attention_columns(c, allowed.present() ? transposed(allowed) : Tensor());
}
Values any_mask_taken(const Case& c) {
  return core_functions("core:double")->attention(without_mask(c));
}
Values refused_without_saying_why(const Case&) {
  throw UsageError("the mask does not fit");
}

Values weights_of_the_other_side(const Case& c) {
  Case other = c;
  std::swap(other[Slot::w_q], other[Slot::w_k]);
  return core_functions("core:double")->bilinear_scores(other);
}
Values scores_with_one_projection(const Case& c) {
  Case other = c;
  other[Slot::w_k] = other[Slot::w_q];
  return core_functions("core:double")->scores(other);
}
Values scores_all_nan(const Case& c) {
  Values scores = core_functions("core:double")->scores(c);
  for (std::int64_t e = 0; e < scores.elements(); ++e) scores.set(e, std::numeric_limits<double>::quiet_NaN());
  return scores;
}
Values any_length_taken(const Tensor& x, const Tensor&) {
  return core_functions("core:double")->with_positions(x, x);
}
Values every_length_refused(const Tensor& x, const Tensor& table) {
  throw UsageError(fmt::format("{} tokens, {} positions", x.shape()[0], table.shape()[0]));
}
Values positions_refused_without_lengths(const Tensor& x, const Tensor& table) {
  if (x.shape()[0] > table.shape()[0]) throw UsageError("too long");
  return core_functions("core:double")->with_positions(x, table);
}
Values softmax_along_the_rows(const Tensor& a) {
  return core_functions("core:double")->softmax_rows(a);
}

/// How many of 100 cases of the property a broken core fails.
int failed(const char* name, Verdict (*check)(const CoreFunctions&, const Case&), const CoreFunctions& core) {
  int violated = 0;
  for (int k = 0; k < 100; ++k) {
    const Case c = generate(*properties_matching(name).at(0), DType::f64, 1, k);
    if (name == std::string_view("layout.columns-are-transpose") && queries_of(c) != keys_of(c)) continue;
    violated += check(core, c).outcome == Outcome::violated;
  }
  return violated;
}

TEST(CoreLaws, SeeACoreThatBreaksThem) {
  const CoreFunctions right = *core_functions("core:double");
  CoreFunctions broken = right;
  EXPECT_EQ(failed("causal.column-form", column_form, broken), 0);
  broken.attention_columns = nothing_hidden;
  EXPECT_GT(failed("causal.column-form", column_form, broken), 50);
  EXPECT_GT(failed("layout.columns-are-transpose", columns_are_transpose, broken), 4);
  broken.attention_columns = mask_not_turned;
  EXPECT_GT(failed("causal.column-form", column_form, broken), 50);
  EXPECT_GT(failed("layout.columns-are-transpose", columns_are_transpose, broken), 2);
  broken.attention = any_mask_taken;
  EXPECT_GT(failed("masked.fixed-length", fixed_length, broken), 90);
  broken.attention = refused_without_saying_why;
  EXPECT_GT(failed("masked.fixed-length", fixed_length, broken), 90);

  EXPECT_EQ(failed("self.bilinear-score", bilinear_score, right), 0);
  broken = right;
  broken.bilinear_scores = weights_of_the_other_side;
  EXPECT_GT(failed("self.bilinear-score", bilinear_score, broken), 30);
  broken = right;
  broken.scores = scores_all_nan;
  EXPECT_GT(failed("self.bilinear-score", bilinear_score, broken), 30);

  EXPECT_EQ(failed("self.scores-symmetric", scores_symmetric, right), 0);
  EXPECT_EQ(failed("self.scores-symmetric", scores_symmetric, broken), 100) << "NaN is no counterexample";
  broken.scores = scores_with_one_projection;
  EXPECT_EQ(failed("self.scores-symmetric", scores_symmetric, broken), 100);

  EXPECT_EQ(failed("position.length-limit", length_limit, right), 0);
  for (const auto positions : {any_length_taken, every_length_refused, positions_refused_without_lengths}) {
    broken.with_positions = positions;
    EXPECT_GT(failed("position.length-limit", length_limit, broken), 90);
  }

  EXPECT_EQ(failed("softmax.columnwise-is-transpose", columnwise_softmax, right), 0);
  broken.softmax_columns = softmax_along_the_rows;
  EXPECT_GT(failed("softmax.columnwise-is-transpose", columnwise_softmax, broken), 60);
}

// (16 * 16)^2 is beyond f16, and times 1/64 it would be within: both sides are infinite, and no bound is broken.
TEST(CoreLaws, ExcuseScoresThatOverflowBeforeTheyAreScaled) {
  const auto verdict_with = [](double token) {
    Case c;
    c.operation = Operation::multihead;
    c.heads = 1;
    c.scale = 1.0 / 64;
    for (const Slot slot : {Slot::q, Slot::k, Slot::v}) c[slot] = Tensor(DType::f16, {1, 1, 1}, std::array{token});
    for (const Slot slot : {Slot::w_q, Slot::w_k, Slot::w_v}) c[slot] = Tensor(DType::f16, {1, 1}, std::array{16.0});
    return bilinear_score(*core_functions("core:half"), c).outcome;
  };
  EXPECT_EQ(verdict_with(16), Outcome::excused);
  EXPECT_EQ(verdict_with(8), Outcome::held);
}

// NaN is equal to nothing: of tokens whose scores, or sums of weighted values, overflow on both sides nothing is said.
TEST(CoreLaws, SayNothingOfASharedProjectionThatOverflows) {
  const auto kernel = registered("core:double");
  const auto verdict_of = [&](const std::vector<double>& tokens, std::array<double, 2> projection) {
    Case c;
    c.operation = Operation::multihead;
    c.heads = 1;
    for (const Slot slot : {Slot::q, Slot::k, Slot::v})
      c[slot] = Tensor(DType::f64, {1, std::ssize(tokens), 1}, tokens);
    for (const Slot slot : {Slot::w_q, Slot::w_k, Slot::w_v}) c[slot] = Tensor(DType::f64, {1, 2}, projection);
    return check_case(property_named("self.shared-projection"), *kernel, c);
  };
  const Verdict scores = verdict_of({0x1p800}, {2, -2}), sums = verdict_of({0, 0x1.fffffffffffffp1023}, {1, 0});
  EXPECT_EQ(scores.outcome, Outcome::excused) << scores.reason;
  EXPECT_NE(sums.outcome, Outcome::violated) << sums.reason;
  EXPECT_EQ(verdict_of({3, 5}, {2, -2}).outcome, Outcome::held);
}

TEST(CoreAgreement, SeesFunctionsThatDiffer) {
  const auto kernel = registered("core:double");
  const Property& property = *properties_matching("reduction.masked-self").at(0);
  int differ = 0;
  for (int k = 0; k < 50; ++k) {
    const Case c = generate(property, DType::f64, 1, k);
    EXPECT_NE(same_in_core(*kernel, &CoreFunctions::weighted, c, &CoreFunctions::weighted, c).outcome,
              Outcome::violated);
    Case other = c;
    other.scale = 2 * c.scale;
    differ += same_in_core(*kernel, &CoreFunctions::weighted, c, &CoreFunctions::weighted, other).outcome ==
              Outcome::violated;
  }
  EXPECT_GT(differ, 15);
}

Values doubles(const std::vector<double>& values) {
  return Tensor(DType::f64, {1, std::ssize(values)}, values);
}
Values interval(double lower, double upper) {
  return Enclosures({1, 1}, {{Wide(lower), Wide(upper)}}, WideRounding{});
}

TEST(CoreAgreement, IsWithinWhatIsAllowedAndNeverOfANaN) {
  const std::vector<long double> allowed{0.25, 0.25};
  const auto outcome = [&](const Values& a, const Values& b) {
    return agree_in_core(a, b, std::span(allowed).first(static_cast<std::size_t>(a.elements()))).outcome;
  };
  EXPECT_EQ(outcome(doubles({1, 2}), doubles({1.25, 2})), Outcome::held);
  EXPECT_EQ(outcome(doubles({1, 2}), doubles({1, 2.375})), Outcome::violated);
  EXPECT_EQ(outcome(doubles({1, 2}), doubles({1})), Outcome::violated) << "of another shape";
  for (const double bad : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    EXPECT_EQ(outcome(doubles({1, 2}), doubles({1, bad})), Outcome::violated) << bad;
    EXPECT_EQ(outcome(doubles({bad, 2}), doubles({1, 2})), Outcome::violated) << bad;
    EXPECT_EQ(outcome(interval(bad, bad), interval(1, 2)), Outcome::violated) << bad;
  }
  EXPECT_EQ(
      outcome(doubles({std::numeric_limits<double>::quiet_NaN()}), doubles({std::numeric_limits<double>::quiet_NaN()})),
      Outcome::violated)
      << "NaN on both sides";
  EXPECT_EQ(outcome(interval(1, 2), interval(2.25, 3)), Outcome::held);
  EXPECT_EQ(outcome(interval(1, 2), interval(2.5, 3)), Outcome::violated);
}

}  // namespace
}  // namespace attest
