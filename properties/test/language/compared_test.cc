// The two sides of a violated law: whose elements they are, what was found there and what is exact.
#include "properties/language/compared.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/oracle/oracle.h"
#include "core/test/reference_attention.h"
#include "properties/language/agree.h"
#include "properties/language/result.h"
#include "properties/test/catalogue/tampered.h"
#include "properties/test/inspect.h"
#include "properties/test/toy_kernels.h"

namespace attest {
namespace {

/// The first case on which the kernel violates the law within a bound, and its verdict.
struct Violated {
  Case c;
  Verdict verdict;
};
Violated first_violation(Kernel& kernel, const char* law) {
  const Property& property = *properties_matching(law).at(0);
  for (std::int64_t k = 0; k < 5000; ++k) {
    Case c = project(generate(property, DType::f64, 1, k), kernel.manifest());
    Verdict verdict = check_case(property, kernel, c);
    if (verdict.violation == Violation::bound) return {std::move(c), std::move(verdict)};
  }
  ADD_FAILURE() << law << " was never violated";
  return {};
}

/// Attention at one element of out, by its definition in double.
double by_definition(const Case& c, std::int64_t element) {
  const Shape &q = c.q().shape(), &v = c.v().shape();
  const std::int64_t row = element / v[3];
  const auto column = static_cast<std::size_t>(element % v[3]);
  return test::reference_row<double>(c, row / q[2] / q[1], row / q[2] % q[1], row % q[2]).out[column];
}

TEST(Compared, SidesAreElementsOfTheKernelsOwnCalls) {
  // The last key is lost where there are 17, 33, …: another one on each side of a permutation.
  const auto kernel = toy_kernel(Bug::tail);
  const Violated found = first_violation(*kernel, "attention.permutation-equivariance");
  ASSERT_EQ(found.verdict.compared.size(), 2U);
  double value[2] = {};
  for (std::size_t side = 0; side < 2; ++side) {
    const ComparedElement& element = found.verdict.compared[side];
    EXPECT_EQ(kernel->run(*element.problem).out[element.element], element.found);
    value[side] = element.found;
  }
  EXPECT_NEAR(std::fabs(value[0] - value[1]), found.verdict.error, 1e-12 * found.verdict.error);
  const std::vector<ComparedRecord> records = compared_elements(found.verdict, kernel->manifest());
  ASSERT_EQ(records.size(), 2U);
  for (std::size_t side = 0; side < 2; ++side) {
    const ComparedElement& element = found.verdict.compared[side];
    EXPECT_EQ(records[side].keys % 16, 1);
    EXPECT_EQ(records[side].shape, element.problem->out_shape());
    EXPECT_EQ(records[side].element, element.element);
    EXPECT_EQ(records[side].found, element.found);
    if (!records[side].exact) continue;
    const double exact = by_definition(*element.problem, element.element);
    EXPECT_LE(records[side].exact->lower, exact + 1e-9 * std::fabs(exact));
    EXPECT_GE(records[side].exact->upper, exact - 1e-9 * std::fabs(exact));
  }
  EXPECT_TRUE(records[0].exact || multiplications_of(found.c) > most_computed_again);
}

TEST(Compared, IsOneWhereAnAnswerIsHeldAgainstTheExactOne) {
  const auto kernel = toy_kernel(Bug::scale);
  const Property& law = *properties_matching("attention.permutation-equivariance").at(0);
  EXPECT_TRUE(check_case(law, *kernel, generate(law, DType::f64, 1, 3)).compared.empty());
  for (const char* const name : {"attention.oracle", "attention.any-length"}) {
    const Violated found = first_violation(*kernel, name);
    ASSERT_EQ(found.verdict.compared.size(), 1U) << name;
    const ComparedElement& one = found.verdict.compared[0];
    EXPECT_EQ(kernel->run(*one.problem).out[one.element], one.found);
    const std::vector<ComparedRecord> records = compared_elements(found.verdict, kernel->manifest());
    if (!records[0].exact) continue;
    const double distance = std::max(records[0].exact->lower - one.found, one.found - records[0].exact->upper);
    // The verdict has the upper end of what the first levels enclose.
    EXPECT_GE(found.verdict.error, distance * (1 - 1e-9)) << name;
    EXPECT_LE(found.verdict.error, distance * 1.01) << name;
  }
}

TEST(Compared, AreAnswersAndNothingComputedFromThem) {
  const auto kernel = toy_kernel(Bug::none);
  const Property& law = *properties_matching("attention.oracle").at(0);
  const Result result = run(*kernel, generate(law, DType::f64, 1, 0)).columns({0});
  const Numbers answers(result);
  const std::vector<double> beyond(static_cast<std::size_t>(answers.elements()), 1e300);
  const Numbers low(answers.shape(), beyond);
  const Verdict off = within(answers, low, low);
  ASSERT_EQ(off.outcome, Outcome::violated);
  ASSERT_EQ(off.compared.size(), 1U);
  EXPECT_EQ(off.compared[0].element, result.origin(off.element));
  EXPECT_EQ(off.compared[0].found, answers.value(off.element));
  EXPECT_EQ(agree({answers, low}).compared.size(), 1U);
  EXPECT_EQ(agree({answers.loosened(0.5), low}).compared.size(), 1U);
  for (const Numbers& computed : {answers.scaled(2), answers.plus(answers), answers.times(answers)}) {
    EXPECT_EQ(agree({computed, low}).outcome, Outcome::violated);
    EXPECT_TRUE(agree({computed, low}).compared.empty());
  }
}

TEST(Compared, AreOfBothCallsWhereBitsDiffer) {
  const auto kernel = toy_kernel(Bug::none);
  Case c = generate(*properties_matching("attention.oracle").at(0), DType::f64, 1, 0);
  const Result left = run(*kernel, c);
  for (std::int64_t i = 0; i < c.v().elements(); ++i) c[Slot::v].set(i, c.v()[i] + 3);
  const Result right = run(*kernel, c);
  const Verdict off = agree({left, right}, Match::bits);
  ASSERT_EQ(off.violation, Violation::bits);
  ASSERT_EQ(off.compared.size(), 2U);
  EXPECT_EQ(off.compared[0].found, left.run().out()[off.compared[0].element]);
  EXPECT_EQ(off.compared[1].found, right.run().out()[off.compared[1].element]);
  EXPECT_NE(off.compared[0].problem, off.compared[1].problem);
}

// Of a row that asks for the definition's gradients; one at the answers that were given, whatever they are, is about
// another number.
TEST(Compared, IsAnElementOfAGradient) {
  struct Row {
    const char *name, *kernel;
    Gradient of;
  };
  for (const auto& [name, id, of] : {Row{"backward.oracle-dq", "fault:dq-not-scaled", Gradient::q},
                                     Row{"backward.oracle-dk", "fault:dk-scaled-twice", Gradient::k},
                                     Row{"backward.oracle-dsink", "fault:dsink-not-negated", Gradient::sink},
                                     Row{"backward.oracle-dmask", "fault:dmask-scaled", Gradient::mask}}) {
    const auto kernel = registered(id);
    const Violated found = first_violation(*kernel, name);
    EXPECT_EQ(found.verdict.element, -1) << "of out, which it is not";
    ASSERT_EQ(found.verdict.compared.size(), 1U) << name;
    const ComparedElement& one = found.verdict.compared[0];
    ASSERT_EQ(one.gradient, of);
    Case forward = forward_of(*one.problem);
    const Reply answers = kernel->run(forward, DType::f64, /*want_lse=*/true);
    const Reply gradients =
        kernel->backward(*one.problem, {answers.out.tensor(), answers.lse.tensor()}, one.problem->dtype());
    EXPECT_EQ(gradients.gradients[static_cast<std::size_t>(of)][one.element], one.found);
    const ComparedRecord record = compared_elements(found.verdict, kernel->manifest()).at(0);
    EXPECT_EQ(record.gradient, of);
    EXPECT_EQ(record.shape, (*one.problem)[slot_of(of)].shape());
    if (!record.exact) continue;
    const double distance = std::max(record.exact->lower - one.found, one.found - record.exact->upper);
    EXPECT_GE(found.verdict.error, distance * (1 - 1e-9)) << name;
    EXPECT_LE(found.verdict.error, distance * 1.01) << name;
  }
  const auto kernel = registered("fault:dq-not-scaled");
  EXPECT_TRUE(first_violation(*kernel, "backward.given").verdict.compared.empty());
  EXPECT_TRUE(first_violation(*kernel, "backward.covariance").verdict.compared.empty());
}

TEST(Compared, LargeCallsAreNotComputedAgain) {
  Case c;
  c[Slot::q] = Tensor(DType::f64, {1, 1, 100, 8});
  c[Slot::k] = c[Slot::v] = Tensor(DType::f64, {1, 1, 100, 8});
  const auto problem = std::make_shared<const Case>(c);
  Verdict verdict{.outcome = Outcome::violated};
  verdict.compared = {{problem, 3, 0.5}, {problem, 4, 0.25}};
  const std::vector<ComparedRecord> records = compared_elements(verdict, toy_manifest());
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[1].element, 4);
  EXPECT_EQ(records[0].keys, 100);
  EXPECT_FALSE(records[0].exact || records[1].exact);
}

}  // namespace
}  // namespace attest
