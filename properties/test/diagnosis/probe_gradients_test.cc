// What gradients are made of is known by gradients at an output and a log-sum-exp that are no answers.
#include "properties/diagnosis/probe_gradients.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "core/test/says.h"
#include "properties/road/redeclared_kernel.h"
#include "properties/test/catalogue/tampered.h"

namespace attest {
namespace {

Probed asked(Kernel& kernel) {
  ProbeQuestions probe(kernel, 1);
  ask_gradients(probe);
  return std::move(probe.result());
}

const ProbeAnswer& answer_to(const Probed& probed, std::string_view question) {
  for (const ProbeAnswer& answer : probed.answers)
    if (answer.question == question) return answer;
  throw std::out_of_range(std::string(question));
}

/// Of builtin:flash, under another manifest.
Probed of_flash(const std::function<void(BackwardTerms&)>& change) {
  const auto kernel = registered("builtin:flash");
  Manifest manifest = kernel->manifest();
  change(manifest.backward_terms);
  RedeclaredKernel redeclared(*kernel, std::move(manifest));
  return asked(redeclared);
}

/// builtin:flash, whose gradients are changed.
class Changed : public ForwardingKernel {
 public:
  Changed(Kernel& kernel, std::function<void(Reply&, int)> change)
      : ForwardingKernel(kernel), change_(std::move(change)) {}
  Reply backward(const Case& c, const BackwardCall& call, DType output) override {
    Reply reply = ForwardingKernel::backward(c, call, output);
    change_(reply, calls_++);
    return reply;
  }

 private:
  std::function<void(Reply&, int)> change_;
  int calls_ = 0;
};
Probed of_changed(const std::function<void(Reply&, int)>& change) {
  const auto kernel = registered("builtin:flash");
  Changed changed(*kernel, change);
  return asked(changed);
}

TEST(ProbeGradients, FindsRightKernelsRight) {
  for (const char* const id :
       {"builtin:flash", "builtin:flash-exp2", "builtin:two-pass", "core:float", "core:bfloat16"}) {
    const auto kernel = registered(id);
    const Probed probed = asked(*kernel);
    EXPECT_FALSE(probed.contradicted()) << id;
    EXPECT_EQ(answer_to(probed, "gradients").found, "yes") << id;
    EXPECT_EQ(answer_to(probed, "gradients with the same bits twice").found, "yes") << id;
    EXPECT_EQ(probed.manifest.backward_terms.weights, kernel->manifest().backward_terms.weights) << id;
    const DeltaFrom declared = kernel->manifest().backward_terms.delta;
    if (declared != DeltaFrom::unstated) {
      EXPECT_EQ(probed.manifest.backward_terms.delta, declared) << id;
    }
  }
}

TEST(ProbeGradients, TellWhatTheyAreMadeOf) {
  const BackwardTerms flash = registered("builtin:flash")->manifest().backward_terms;
  ASSERT_EQ(flash.weights, WeightsFrom::lse);
  const Probed unstated = of_flash([](BackwardTerms& terms) { terms.delta = DeltaFrom::unstated; });
  EXPECT_FALSE(unstated.contradicted());
  EXPECT_EQ(unstated.manifest.backward_terms.delta, flash.delta);
  const Probed other_delta = of_flash(
      [&](BackwardTerms& terms) { terms.delta = flash.delta == DeltaFrom::out ? DeltaFrom::weights : DeltaFrom::out; });
  EXPECT_TRUE(other_delta.contradicted());
  EXPECT_EQ(answer_to(other_delta, "D of a backward pass").found, name_of(flash.delta));
  EXPECT_EQ(other_delta.manifest.backward_terms.delta, flash.delta);
  const Probed other_weights = of_flash([](BackwardTerms& terms) { terms.weights = WeightsFrom::stored; });
  EXPECT_TRUE(other_weights.contradicted());
  EXPECT_EQ(answer_to(other_weights, "weights of a backward pass").found, "lse");
  EXPECT_EQ(other_weights.manifest.backward_terms.weights, WeightsFrom::lse);
}

TEST(ProbeGradients, WhatMakesItsForwardPassAgainIsNotAskedAtOtherAnswers) {
  const Probed again = of_flash([](BackwardTerms& terms) { terms.own_forward = true; });
  EXPECT_FALSE(again.contradicted());
  EXPECT_EQ(answer_to(again, "gradients").found, "yes");
  EXPECT_THROW(answer_to(again, "D of a backward pass"), std::out_of_range);
}

TEST(ProbeGradients, WrongOnesAreNamed) {
  const Probed wrong = of_changed([](Reply& reply, int) {
    Tensor& dk = reply.gradients[static_cast<std::size_t>(Gradient::k)].tensor();
    dk.set(0, dk[0] + 1);
  });
  EXPECT_TRUE(wrong.contradicted());
  EXPECT_EQ(answer_to(wrong, "gradients").found, "wrong: dk");
  EXPECT_THROW(answer_to(wrong, "D of a backward pass"), std::out_of_range);
}

TEST(ProbeGradients, OnesThatChangeFromCallToCallAreNotRepeatable) {
  const auto changes = [](Reply& reply, int call) {
    Tensor& dq = reply.gradients[static_cast<std::size_t>(Gradient::q)].tensor();
    if (call > 4) dq.set(0, -dq[0]);
  };
  EXPECT_EQ(answer_to(of_changed(changes), "gradients with the same bits twice").found, "no");
}

TEST(ProbeGradients, OfAKernelWithoutNothingIsAsked) {
  const auto kernel = registered("builtin:lazy");
  Manifest manifest = kernel->manifest();
  manifest.backward = false;
  RedeclaredKernel without(*kernel, std::move(manifest));
  const Probed probed = asked(without);
  EXPECT_FALSE(probed.contradicted());
  EXPECT_THAT(answer_to(probed, "gradients").found, Says("not asked"));
}

}  // namespace
}  // namespace attest
