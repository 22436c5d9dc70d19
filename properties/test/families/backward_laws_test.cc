// The laws of the backward pass on a kernel that forms its weights from the log-sum-exp that it returned.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/kernel/forwarding_kernel.h"
#include "core/test/says.h"
#include "properties/catalogue/property.h"
#include "properties/language/skip_reasons.h"
#include "properties/test/catalogue/wrong_kernel_groups.h"

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
  [[nodiscard]] Reply backward(const Case& c, const BackwardCall& call, DType output) override {
    Reply reply = ForwardingKernel::backward(c, call, output);
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

std::vector<std::string> laws() {
  std::vector<std::string> names;
  for (const Property* const property : properties_matching("backward.*")) names.emplace_back(property->name);
  return names;
}

TEST(BackwardLaws, HoldOfARightKernelAndJudgeIt) {
  for (const std::string& name : laws()) {
    for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
      const auto kernel = flash();
      const Seen seen = seen_by(name, *kernel, dtype);
      EXPECT_EQ(seen.violated, 0) << name << ": " << seen.reason;
      EXPECT_GE(seen.held, 15) << name << " in " << name_of(dtype);
    }
  }
}

// What each of the mistaken ones is made of has no mistake of its own, under no variant.
TEST(BackwardLaws, HoldOfABackwardPassThatIsWrittenOutOnceMore) {
  const WrongKernel plain = plain_backward_pass();
  for (const char* const name :
       {"backward.oracle-dq", "backward.oracle-dk", "backward.oracle-dv", "backward.oracle-dmask",
        "backward.oracle-dsink", "softcap.gradient-factor", "sink.gradient-balance"}) {
    Spoilt kernel(plain.fault, plain.backward);
    const Seen seen = seen_by(name, kernel, DType::f64, 600);
    EXPECT_EQ(seen.violated, 0) << name << ": " << seen.reason;
    EXPECT_GE(seen.held, 300) << name;
  }
}

// As many rows as are asked for, where nothing is a sum over all of them.
TEST(BackwardLaws, ThatHoldGradientsAgainstTheExactOnesJudgeSomeRows) {
  const auto kernel = flash();
  for (const char* const name :
       {"backward.oracle-dq", "backward.oracle-dk", "backward.oracle-dv", "backward.given", "backward.head-dims"}) {
    const Property& property = property_named(name);
    int some = 0;
    for (std::int64_t k = 0; k < 60; ++k) {
      const Case c = generate(property, DType::f32, 1, k);
      if (has_argument_of(c, Gradient::mask) || has_argument_of(c, Gradient::sink)) continue;
      const Verdict whole = check_case(property, *kernel, c), part = check_case(property, *kernel, c, {.rows = 1});
      EXPECT_EQ(whole.rows_judged, whole.rows) << name;
      EXPECT_EQ(part.rows, whole.rows) << name;
      EXPECT_NE(part.outcome, Outcome::violated) << name << ": " << part.reason;
      some += part.rows_judged > 0 && part.rows_judged < part.rows ? 1 : 0;
    }
    EXPECT_GE(some, 8) << name;
  }
}

TEST(BackwardLaws, EachGradientIsHeldAgainstWhatWasGiven) {
  for (const Gradient gradient : every_gradient) {
    Changed wrong(nullptr, [gradient](Reply& reply) {
      Tensor& t = reply.gradients[static_cast<std::size_t>(gradient)].tensor();
      for (std::int64_t e = 0; e < t.elements(); ++e) t.set(e, t[e] * 1.01);
    });
    // Few problems have what the last two are by.
    const bool always = std::ranges::count(gradients_by_inputs, gradient) > 0;
    EXPECT_GT(seen_by("backward.given", wrong, DType::f32, always ? 60 : 1500).violated, 15) << name_of(gradient);
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

/// builtin:flash with another backward pass.
class Answering final : public ForwardingKernel {
 public:
  using Backward = std::function<Reply(Kernel&, const Case&, const BackwardCall&, DType)>;
  explicit Answering(Backward backward, std::unique_ptr<Kernel> kernel = flash())
      : ForwardingKernel(std::move(kernel)), backward_(std::move(backward)) {}
  [[nodiscard]] Reply backward(const Case& c, const BackwardCall& call, DType output) override {
    return backward_(inner(), c, call, output);
  }
  [[nodiscard]] std::unique_ptr<Kernel> clone() const override {
    return std::make_unique<Answering>(backward_, inner().clone());
  }

 private:
  Backward backward_;
};

/// Its backward pass starts from what it is given, as that of builtin:flash, and adds up in one order.
std::unique_ptr<Kernel> repeatable() {
  return std::move(open_kernels("builtin:split-k", {}).front());
}

/// What the kernel's own forward pass returns for the problem.
BackwardCall own_answers(Kernel& kernel, const Case& c, DType output) {
  Reply reply = kernel.run(forward_of(c), output, true);
  return {std::move(reply.out.tensor()), std::move(reply.lse.tensor()), all_gradients,
          std::move(reply.own_lse.tensor())};
}

TEST(BackwardLaws, AnswersThatAreGivenAreTheOnesThatCount) {
  Answering own_output([](Kernel& kernel, const Case& c, const BackwardCall& call, DType output) {
    return kernel.backward(c, {own_answers(kernel, c, output).out, call.lse}, output);
  });
  Answering own_lse([](Kernel& kernel, const Case& c, const BackwardCall& call, DType output) {
    return kernel.backward(c, {call.out, own_answers(kernel, c, output).lse}, output);
  });
  EXPECT_GT(seen_by("backward.dq-dk-need-delta", own_output, DType::f32).violated, 15);
  EXPECT_GT(seen_by("backward.split-keys", own_output, DType::f32).violated, 15);
  EXPECT_GT(seen_by("backward.split-keys", own_lse, DType::f32).violated, 15);
  // Of the keys' parts each gradient counts, and each part.
  for (const Gradient gradient : gradients_by_inputs) {
    for (const std::int64_t parity : {0, 1}) {
      Answering wrong([=](Kernel& kernel, const Case& c, const BackwardCall& call, DType output) {
        Reply reply = kernel.backward(c, call, output);
        Tensor& t = reply.gradients[static_cast<std::size_t>(gradient)].tensor();
        for (std::int64_t e = 0; keys_of(c) % 2 == parity && e < t.elements(); ++e) t.set(e, t[e] * 1.1);
        return reply;
      });
      EXPECT_GT(seen_by("backward.split-keys", wrong, DType::f32).violated, 8) << name_of(gradient);
    }
  }
  // dV with a last bit that follows from the output.
  Answering last_bit(
      [](Kernel& kernel, const Case& c, const BackwardCall& call, DType output) {
        Reply reply = kernel.backward(c, call, output);
        Tensor& dv = reply.gradients[static_cast<std::size_t>(Gradient::v)].tensor();
        const auto bytes = call.out.bytes();
        std::uint64_t parity = 0;
        for (const std::byte byte : bytes) parity = parity * 31 + static_cast<std::uint64_t>(byte);
        const float end =
            parity / 7 % 2 == 0 ? std::numeric_limits<float>::infinity() : -std::numeric_limits<float>::infinity();
        for (std::int64_t e = 0; e < dv.elements(); ++e)
          if (dv[e] != 0) dv.set(e, std::nextafterf(static_cast<float>(dv[e]), end));
        return reply;
      },
      repeatable());
  EXPECT_GT(seen_by("backward.dq-dk-need-delta", last_bit, DType::f32).violated, 4);
}

// Of a problem with sinks: what a kernel must not make of them beside the log-sum-exp that has them.
TEST(BackwardLaws, BesideALogSumExpSinksCountForTheirOwnGradientAlone) {
  const auto of_sinks = [](const Case& c) {
    double sum = 0;
    for (std::int64_t e = 0; e < c[Slot::sink].elements(); ++e)
      if (std::isfinite(c[Slot::sink][e])) sum += c[Slot::sink][e];
    return sum;
  };
  const std::string law = "sink.given-lse";
  for (const char* const id : {"builtin:flash", "builtin:flash-exp2", "builtin:split-k"}) {
    const auto kernel = std::move(open_kernels(id, {}).front());
    for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
      const Seen seen = seen_by(law, *kernel, dtype);
      EXPECT_EQ(seen.violated, 0) << id << ": " << seen.reason;
      EXPECT_GE(seen.held, 30) << id << " in " << name_of(dtype);
    }
  }
  Answering own_lse([](Kernel& kernel, const Case& c, const BackwardCall& call, DType output) {
    return kernel.backward(c, {call.out, own_answers(kernel, c, output).lse}, output);
  });
  EXPECT_GT(seen_by(law, own_lse, DType::f32).violated, 15);
  for (const Gradient gradient : gradients_by_inputs) {
    Answering larger([=](Kernel& kernel, const Case& c, const BackwardCall& call, DType output) {
      Reply reply = kernel.backward(c, call, output);
      Tensor& t = reply.gradients[static_cast<std::size_t>(gradient)].tensor();
      for (std::int64_t e = 0; of_sinks(c) > 0.5 && e < t.elements(); ++e) t.set(e, t[e] * 1.1);
      return reply;
    });
    EXPECT_GT(seen_by(law, larger, DType::f32).violated, 15) << name_of(gradient);
    Answering last_bit(
        [=](Kernel& kernel, const Case& c, const BackwardCall& call, DType output) {
          Reply reply = kernel.backward(c, call, output);
          Tensor& t = reply.gradients[static_cast<std::size_t>(gradient)].tensor();
          for (std::int64_t e = 0; of_sinks(c) > 0.5 && e < t.elements(); ++e)
            if (t[e] != 0) t.set(e, std::nextafterf(static_cast<float>(t[e]), 0.0F));
          return reply;
        },
        repeatable());
    EXPECT_GT(seen_by(law, last_bit, DType::f32).violated, 15) << name_of(gradient);
  }
  // One that returns log-sum-exps without sinks needs these beside.
  Tampered without(flash(), [](Case&) {});
  without.manifest().variants.at("sink").lse_has_sink = false;
  EXPECT_EQ(seen_by(law, without, DType::f32).skipped, 60);
}

// A law of gradients that are not returned says so, and does not count as one that could not be judged.
TEST(BackwardLaws, AreSkippedWhereTheirGradientsAreNotThere) {
  const auto without = [](std::initializer_list<Gradient> gone) {
    return Answering(
        [gone = std::vector<Gradient>(gone)](Kernel& kernel, const Case& c, const BackwardCall& call, DType output) {
          Reply reply = kernel.backward(c, call, output);
          for (const Gradient one : gone) reply.gradients[static_cast<std::size_t>(one)] = Values();
          return reply;
        });
  };
  Answering of_v = without({Gradient::q, Gradient::k}), of_q = without({Gradient::k, Gradient::v});
  for (const char* const name : {"backward.span", "backward.gauge", "backward.equal-keys"})
    EXPECT_EQ(seen_by(name, of_v, DType::f32).skipped, 60) << name;
  for (const char* const name : {"backward.hidden-keys", "backward.dk-sums-to-zero"})
    EXPECT_EQ(seen_by(name, of_q, DType::f32).skipped, 60) << name;
  EXPECT_GT(seen_by("backward.hidden-keys", of_v, DType::f32).held, 15);
  EXPECT_GT(seen_by("backward.span", of_q, DType::f32).held, 15);
  EXPECT_GT(seen_by("backward.euler", of_v, DType::f32).held, 15);
}

// What makes its forward pass again has no gradients at other answers, and at its own where it is told which they are.
TEST(BackwardLaws, OfWhatMakesItsForwardPassAgainAreAtItsOwnAnswersAlone) {
  const auto missed = [](const char* name, const std::function<void(BackwardTerms&)>& change) {
    Manifest manifest = flash()->manifest();
    change(manifest.backward_terms);
    return property_named(name).misses_of(manifest);
  };
  const auto makes_again = [](BackwardTerms& terms) { terms.own_forward = true; };
  for (const char* const name : {"backward.split-keys", "backward.dq-dk-need-delta", "sink.given-lse"}) {
    EXPECT_EQ(missed(name, [](BackwardTerms&) {}), "") << name;
    EXPECT_EQ(missed(name, makes_again), why_own_forward) << name;
    EXPECT_EQ(missed(name, [](BackwardTerms& terms) { terms.delta = DeltaFrom::weights; }), why_delta_of_weights)
        << name;
    EXPECT_EQ(missed(name, [](BackwardTerms& terms) { terms.weights = WeightsFrom::stored; }), why_not_from_lse)
        << name;
  }
  EXPECT_EQ(missed("backward.given", makes_again), "");
  for (bool BackwardTerms::* const used : {&BackwardTerms::uses_out, &BackwardTerms::uses_lse})
    EXPECT_EQ(missed("backward.given", [&](BackwardTerms& terms) { terms.own_forward = true, terms.*used = false; }),
              why_own_forward);
  for (const std::string_view why : {why_own_forward, why_delta_of_weights})
    EXPECT_TRUE(is_not_about_the_kernel(why)) << why;
}

TEST(BackwardLaws, AreNotAskedOfAKernelWithoutABackwardPass) {
  const auto kernel = std::move(open_kernels("builtin:pairwise", {}).front());
  for (const std::string& name : laws()) {
    const Seen seen = seen_by(name, *kernel, DType::f32, 5);
    EXPECT_EQ(seen.skipped, 5) << name;
    EXPECT_THAT(property_named(name).misses_of(kernel->manifest()), Says("no attention_backward entry"));
  }
}

Tensor numbers(const Shape& shape, std::initializer_list<double> all, DType dtype = DType::f64) {
  return Tensor(dtype, shape, std::vector<double>(all));
}
Case one_column(std::int64_t batch, std::int64_t rows, std::int64_t keys) {
  Case c;
  for (const Slot slot : {Slot::q, Slot::k, Slot::v, Slot::d_out}) {
    const bool of_rows = slot == Slot::q || slot == Slot::d_out;
    c[slot] = Tensor(DType::f64, {batch, 1, of_rows ? rows : keys, 1});
  }
  return c;
}

// A row that sees no key in one entry has no part in the gradient by a mask that another entry shares, which is judged.
TEST(BackwardLaws, AMaskThatEntriesShareIsJudgedWhereOneOfThemSeesNothing) {
  Case c = one_column(2, 2, 2);
  c[Slot::v] = numbers({2, 1, 2, 1}, {0, 0, 0, 1}), c[Slot::d_out] = numbers({2, 1, 2, 1}, {0, 0, 1, 0});
  c[Slot::mask] = Tensor(DType::f64, {1, 1, 2, 2});
  c[Slot::left_pad] = numbers({2}, {1, 0}, DType::i32);
  c.attention_chunk = 2, c.alignment = Causal::bottom_right;
  const auto core = registered("core:double");
  for (const char* const name : {"backward.oracle-dmask", "backward.ds-rows-sum-to-zero"})
    EXPECT_EQ(check_case(property_named(name), *core, c).outcome, Outcome::held) << name;
}

// The log-sum-exp of a row that sees no key is its sink, and what a loss gains by it the sink does.
TEST(BackwardLaws, ARowThatSeesItsSinkAlonePassesTheGradientByItsLogSumExpOn) {
  Case c = one_column(2, 2, 1);
  c[Slot::sink] = numbers({1}, {0.5}, DType::f32);
  c[Slot::d_lse] = numbers({2, 1, 2}, {1, 2, 4, 8});
  c[Slot::left_pad] = numbers({2}, {1, 0}, DType::i32);
  const auto core = registered("core:double");
  const auto dsink = [&] { return core->backward(c, {}, DType::f64).gradients[4].tensor()[0]; };
  const double share = std::exp(0.5) / (std::exp(0.5) + 1);
  EXPECT_NEAR(dsink(), 3 + share * 12, 1e-6);
  EXPECT_EQ(check_case(property_named("backward.oracle-dsink"), *core, c).outcome, Outcome::held);
  c[Slot::left_pad] = {}, c.causal = Causal::bottom_right;
  EXPECT_NEAR(dsink(), 5 + share * 10, 1e-6);
  for (const char* const name : {"backward.oracle-dsink", "backward.directional"})
    EXPECT_EQ(check_case(property_named(name), *core, c).outcome, Outcome::held) << name;
}

// Far beyond the cap, where 1 - y^2 is no double, beside values near the end of the range.
TEST(BackwardLaws, TheFactorOfACapCountsWhatItRoundsItself) {
  Case c = one_column(1, 1, 2);
  c[Slot::q] = numbers({1, 1, 1, 1}, {128}), c[Slot::k] = numbers({1, 1, 2, 1}, {1, 256});
  c[Slot::v] = numbers({1, 1, 2, 1}, {0, -5.62e306}), c[Slot::d_out] = numbers({1, 1, 1, 1}, {1});
  c.softcap = 4;
  const Verdict v = check_case(property_named("softcap.gradient-factor"), *registered("core:double"), c);
  EXPECT_NE(v.outcome, Outcome::violated) << v.reason;
}

}  // namespace
}  // namespace attest
