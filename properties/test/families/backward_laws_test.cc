// The laws of the backward pass on a kernel that forms its weights from the log-sum-exp that it returned.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "core/kernel/forwarding_kernel.h"
#include "core/test/says.h"
#include "properties/catalogue/property.h"

namespace attest {
namespace {

std::unique_ptr<Kernel> flash() {
  return std::move(open_kernels("builtin:flash", {}).front());
}

/// builtin:flash with its gradients changed, or what they are made of.
class Changed final : public ForwardingKernel {
 public:
  using Change = std::function<void(Reply&)>;
  Changed(Change forward, Change backward)
      : ForwardingKernel(flash()), forward_(std::move(forward)), backward_(std::move(backward)) {}
  using Kernel::run;
  [[nodiscard]] Reply run(const Case& c, std::optional<DType> output, bool want_lse) override {
    Reply reply = ForwardingKernel::run(c, output, want_lse);
    if (forward_ && reply.status == CallStatus::ok) forward_(reply);
    return reply;
  }
  [[nodiscard]] Reply backward(const Case& c, const ForwardAnswers& answers, DType output) override {
    Reply reply = ForwardingKernel::backward(c, answers, output);
    if (backward_ && reply.status == CallStatus::ok) backward_(reply);
    return reply;
  }
  [[nodiscard]] std::unique_ptr<Kernel> clone() const override {
    return std::make_unique<Changed>(forward_, backward_);
  }

 private:
  Change forward_, backward_;
};

struct Seen {
  int held = 0, violated = 0, excused = 0, skipped = 0;
  std::string reason;
};
Seen seen_by(const std::string& name, Kernel& kernel, DType dtype, int cases = 60) {
  const Property& property = property_named(name);
  Seen seen;
  for (int k = 0; k < cases; ++k) {
    const Verdict v = check_case(property, kernel, generate(property, dtype, 1, k));
    if (v.outcome == Outcome::violated && seen.violated++ == 0) seen.reason = v.reason;
    seen.held += v.outcome == Outcome::held, seen.excused += v.outcome == Outcome::excused;
    seen.skipped += v.outcome == Outcome::skipped;
  }
  return seen;
}

constexpr const char* laws[] = {"backward.oracle-dq", "backward.oracle-dk",    "backward.oracle-dv",
                                "backward.given",     "backward.zero-dout",    "backward.hidden-keys",
                                "backward.gauge",     "backward.dv-sums-to-do"};

TEST(BackwardLaws, HoldOfARightKernelAndJudgeIt) {
  for (const char* const name : laws) {
    for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
      const auto kernel = flash();
      const Seen seen = seen_by(name, *kernel, dtype);
      EXPECT_EQ(seen.violated, 0) << name << ": " << seen.reason;
      EXPECT_GE(seen.held, 15) << name << " in " << name_of(dtype);
    }
  }
}

TEST(BackwardLaws, EachGradientIsHeldAgainstWhatWasGiven) {
  for (const Gradient gradient : every_gradient) {
    Changed wrong(nullptr, [gradient](Reply& reply) {
      Tensor& t = reply.gradients[static_cast<std::size_t>(gradient)].tensor();
      for (std::int64_t e = 0; e < t.elements(); ++e) t.set(e, t[e] * 1.01);
    });
    EXPECT_GT(seen_by("backward.given", wrong, DType::f32).violated, 15) << name_of(gradient);
  }
}

// A log-sum-exp that is off moves the gradients, and whoever forms weights of it is right in that.
TEST(BackwardLaws, AWrongForwardPassIsNoFaultOfTheBackwardPass) {
  const auto off = [](Reply& reply) {
    for (std::int64_t e = 0; e < reply.lse.elements(); ++e) reply.lse.set(e, reply.lse[e] + 0.125);
  };
  Changed wrong(off, nullptr);
  EXPECT_EQ(seen_by("backward.given", wrong, DType::f32).violated, 0);
  EXPECT_GT(seen_by("backward.given", wrong, DType::f32).held, 20);
  // But the sums of dv are off, and no bound that is told of it helps.
  EXPECT_EQ(seen_by("backward.dv-sums-to-do", wrong, DType::f32).violated, 0);
  // One that takes no notice of it is.
  Changed deaf(off, [](Reply& reply) {
    Tensor& dv = reply.gradients[static_cast<std::size_t>(Gradient::v)].tensor();
    for (std::int64_t e = 0; e < dv.elements(); ++e) dv.set(e, dv[e] * 1.1331484530668263);  // e^(1/8)
  });
  EXPECT_GT(seen_by("backward.given", deaf, DType::f32).violated, 20);
}

TEST(BackwardLaws, AreNotAskedOfAKernelWithoutABackwardPass) {
  const auto kernel = std::move(open_kernels("builtin:pairwise", {}).front());
  for (const char* const name : laws) {
    const Seen seen = seen_by(name, *kernel, DType::f32, 5);
    EXPECT_EQ(seen.skipped, 5) << name;
    EXPECT_THAT(property_named(name).misses_of(kernel->manifest()), Says("no attention_backward entry"));
  }
}

}  // namespace
}  // namespace attest
