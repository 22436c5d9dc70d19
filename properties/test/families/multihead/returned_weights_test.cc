// multihead.returned-weights asks four things, and each by itself goes red: for kernels that are right in the others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "core/kernel/forwarding_kernel.h"
#include "core/kernels/core_functions.h"
#include "properties/arrangement/arrange.h"
#include "properties/test/property_fixture.h"

namespace attest {
namespace {

const CoreFunctions& right() {
  return *core_functions("core:double");
}
Case scaled(Case c) {
  c.scale *= 1.5;
  return c;
}
double traced(double weight) {
  return weight == 0 ? 5e-324 : weight;
}
double doubled(double weight) {
  return 2 * weight;
}

Values of_another_scale(const Case& c) {
  return right().multihead_weights(scaled(c));
}
Values with_each(Values weights, double (*change)(double)) {
  weights = mapped(weights, [&](std::int64_t, double old) { return change(old); });
  return weights;
}
Values with_a_trace(const Case& c) {
  return with_each(right().multihead_weights(c), traced);
}
Values off_by_a_bit(const Case& c) {
  return with_each(right().multihead_weights(c), [](double w) { return w * (1 + 0x1p-52); });
}

/// The core in double under the id of functions that are broken, asked and answering in a way of its own.
class Alike : public ForwardingKernel {
 public:
  Alike(std::string id, std::function<Case(Case)> asked, std::function<double(const Case&, double)> answered)
      : ForwardingKernel(registered("core:double")),
        id_(std::move(id)),
        asked_(std::move(asked)),
        answered_(std::move(answered)) {}
  [[nodiscard]] const std::string& id() const override { return id_; }
  Reply run(const Case& c, std::optional<DType> output, bool want_lse) override {
    Reply reply = ForwardingKernel::run(asked_(c), output, want_lse);
    if (reply.status == CallStatus::ok)
      reply.out = mapped(reply.out, [&](std::int64_t, double old) { return answered_(c, old); });
    return reply;
  }
  [[nodiscard]] std::unique_ptr<Kernel> clone() const override {
    return std::make_unique<Alike>(id_, asked_, answered_);
  }

 private:
  std::string id_;
  std::function<Case(Case)> asked_;
  std::function<double(const Case&, double)> answered_;
};

Case as_asked(Case c) {
  return c;
}
double as_answered(const Case&, double value) {
  return value;
}

/// What is said of 200 cases, each reason once, digits left out; empty where all hold.
std::set<std::string> said_of(const char* name, Values (*weights)(const Case&), std::function<Case(Case)> asked,
                              std::function<double(const Case&, double)> answered) {
  static std::vector<std::unique_ptr<CoreFunctions>> kept;
  kept.push_back(std::make_unique<CoreFunctions>(right()));
  kept.back()->scalar = name;
  kept.back()->multihead_weights = weights;
  add_core_functions(*kept.back());
  Alike kernel("core:" + std::string(name), std::move(asked), std::move(answered));
  const Property& property = *properties_matching("multihead.returned-weights").at(0);
  std::set<std::string> said;
  for (int k = 0; k < 200; ++k) {
    const Verdict verdict = verdict_on(property, kernel, DType::f64, k);
    if (verdict.outcome == Outcome::violated)
      said.insert(verdict.reason.substr(0, verdict.reason.find_first_of("0123456789")));
  }
  return said;
}

TEST(ReturnedWeights, ThatAreRightHold) {
  EXPECT_TRUE(said_of("right-weights", right().multihead_weights, as_asked, as_answered).empty());
}

/// A hardware core gives its weights in f64, and the case may be of a narrower dtype.
TEST(ReturnedWeights, HoldForEveryCoreInEachOfItsDtypes) {
  for (const KernelEntry& entry : core_kernels()) {
    const auto kernel = entry.make();
    for (const DType dtype : kernel->manifest().dtypes)
      EXPECT_EQ(tried("multihead.returned-weights", *kernel, dtype, 12).violated, 0)
          << entry.id << ' ' << name_of(dtype);
  }
}

// The weight of an only key is 1 whatever its score is, but as e^(s - s) of a wide ball it is a wide ball, whose middle
// is not 1: the scores are of sizes up to where balls are wide.
TEST(ReturnedWeights, InALooseEnclosureAreNotRounded) {
  for (const char* const id : {"core:arb", "core:mpfi"}) {
    const auto kernel = registered(id);
    int loose = 0;
    for (int exponent = 60; exponent <= 100; ++exponent) {
      Case c;
      c.operation = Operation::multihead;
      c.heads = 1;
      c[Slot::q] = c[Slot::k] = Tensor(DType::f32, {1, 1, 2}, std::vector{std::ldexp(1.0, exponent), 0x1p-60});
      c[Slot::v] = Tensor(DType::f32, {1, 1, 1}, std::vector{1.0});
      c[Slot::w_q] = c[Slot::w_k] = Tensor(DType::f32, {2, 2}, std::vector{1.0, 0.0, 0.0, 1.0});
      c[Slot::w_v] = Tensor(DType::f32, {1, 1}, std::vector{1.0});
      const Verdict verdict = check_case(property_named("multihead.returned-weights"), *kernel, c);
      loose += static_cast<int>(verdict.outcome == Outcome::skipped);
      EXPECT_THAT(verdict.outcome, testing::AnyOf(Outcome::held, Outcome::skipped))
          << id << ' ' << exponent << ": " << verdict.reason;
    }
    EXPECT_GT(loose, 0) << id;
    EXPECT_LT(loose, 40) << id;
  }
}

TEST(ReturnedWeights, AreHeldToTheExactOnesThoughTheOutputIsMadeOfThem) {
  const auto said = said_of("scaled-weights", of_another_scale, scaled, as_answered);
  EXPECT_THAT(said, testing::Contains(Says("out[")));
}

TEST(ReturnedWeights, AreNothingWhereAKeyIsHidden) {
  const auto said = said_of("traced-weights", with_a_trace, as_asked, [](const Case&, double x) { return traced(x); });
  EXPECT_THAT(said, testing::ElementsAre("the weight of key "));
}

TEST(ReturnedWeights, AreWhatAttentionToTheIdentityIs) {
  const auto said = said_of("weights-off-by-a-bit", off_by_a_bit, as_asked, as_answered);
  EXPECT_THAT(said, testing::ElementsAre(Says("not equal: element ")));
}

TEST(ReturnedWeights, MakeTheOutput) {
  // The answer to the identity has no output projection.
  const auto said = said_of("weights-beside-another-output", right().multihead_weights, as_asked,
                            [](const Case& c, double x) { return c[Slot::w_o].present() ? doubled(x) : x; });
  EXPECT_THAT(said, testing::ElementsAre("element "));
}

}  // namespace
}  // namespace attest
