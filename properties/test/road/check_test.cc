#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>

#include "core/support/infinity.h"
#include "properties/test/property_fixture.h"
#include "properties/test/toy_kernels.h"

namespace attest {
namespace {

/// A kernel whose every call ends in one way.
class Ends : public Kernel {
 public:
  explicit Ends(CallStatus status, Manifest manifest = toy_manifest(), std::string message = "the message")
      : status_(status), manifest_(std::move(manifest)), message_(std::move(message)) {}
  const std::string& id() const override { return id_; }
  const Manifest& manifest() const override { return manifest_; }
  Reply run(const Case& c, std::optional<DType> output, bool) override {
    if (status_ == CallStatus::ok)
      return {.status = status_, .message = "", .out = Tensor(output.value_or(c.dtype()), c.out_shape()), .lse = {}};
    return {.status = status_, .message = message_, .out = {}, .lse = {}};
  }
  std::unique_ptr<Kernel> clone() const override { return std::make_unique<Ends>(*this); }

 private:
  std::string id_ = "ends";
  CallStatus status_;
  Manifest manifest_;
  std::string message_;
};

Case small_case() {
  Recipe r;
  r.queries = r.keys = r.dk = r.dv = 2;
  return decode(r);
}

const Property only_runs{.name = "test.only-runs", .check = [](Kernel& kernel, const Case& c) {
                           (void)answer(kernel, c);
                           return Verdict{};
                         }};

TEST(CheckCase, MapsEveryStatus) {
  const Case c = small_case();
  struct Row {
    CallStatus status;
    Outcome outcome;
    Violation violation;
  };
  for (const auto& [status, outcome, violation] : {Row{CallStatus::ok, Outcome::held, Violation::none},
                                                   Row{CallStatus::unsupported, Outcome::skipped, Violation::none},
                                                   Row{CallStatus::rejected, Outcome::violated, Violation::rejected},
                                                   Row{CallStatus::failed, Outcome::violated, Violation::failed},
                                                   Row{CallStatus::died, Outcome::violated, Violation::died},
                                                   Row{CallStatus::timed_out, Outcome::violated, Violation::timed_out},
                                                   Row{CallStatus::malformed, Outcome::violated, Violation::malformed},
                                                   Row{CallStatus::late, Outcome::inconclusive, Violation::none},
                                                   Row{CallStatus::too_slow, Outcome::skipped, Violation::none}}) {
    Ends kernel(status);
    const Verdict verdict = check_case(only_runs, kernel, c);
    EXPECT_EQ(verdict.outcome, outcome) << name_of(status);
    EXPECT_EQ(verdict.violation, violation) << name_of(status);
    EXPECT_EQ(std::isinf(verdict.utilisation), outcome == Outcome::violated);
    if (status != CallStatus::ok) {
      EXPECT_TRUE(verdict.reason.starts_with(name_of(status))) << verdict.reason;
      EXPECT_THAT(verdict.reason, Says("the message"));
    }
  }
}

TEST(CheckCase, ARejectionIsAViolationOnlyOfWhatMayNotBeRejected) {
  Recipe r;
  r.queries = r.dk = r.dv = 2;
  r.keys = 0;
  const Case no_keys = decode(r);
  r.keys = 2;
  r.mask = MaskKind::whole_row;
  const Case dead_row = decode(r);
  for (const auto& [policy, of_dead_row] :
       {std::pair{FullyMaskedRow::error, Outcome::skipped}, std::pair{FullyMaskedRow::undeclared, Outcome::skipped},
        std::pair{FullyMaskedRow::zero, Outcome::violated}, std::pair{FullyMaskedRow::nan, Outcome::violated}}) {
    Manifest manifest = toy_manifest();
    manifest.fully_masked_row = policy;
    Ends kernel(CallStatus::rejected, manifest);
    EXPECT_EQ(check_case(only_runs, kernel, no_keys).outcome, Outcome::skipped);
    EXPECT_EQ(check_case(only_runs, kernel, dead_row).outcome, of_dead_row);
    EXPECT_EQ(check_case(only_runs, kernel, small_case()).outcome, Outcome::violated);
  }
}

TEST(CheckCase, SkipsWhatTheManifestOrAHypothesisRulesOutAndSaysWhy) {
  Ends kernel(CallStatus::died);  // running it would be a violation
  Recipe r;
  r.dtype = DType::bf16;
  Verdict verdict = check_case(only_runs, kernel, decode(r));
  EXPECT_EQ(verdict.outcome, Outcome::skipped);
  EXPECT_THAT(verdict.reason, Says("bf16"));

  Property never = only_runs;
  static constexpr Hypothesis such_a_thing{"such-a-thing", "such a thing",
                                           [](const Case&) -> std::string { return "has no such thing"; }};
  static constexpr std::array stated{defining(such_a_thing, "the test is about it")};
  never.hypotheses = stated;
  verdict = check_case(never, kernel, small_case());
  EXPECT_EQ(verdict.outcome, Outcome::skipped);
  EXPECT_EQ(verdict.reason, "has no such thing");

  r.dtype = DType::f32;
  r.operation = Operation::multihead;
  verdict = check_case(only_runs, kernel, decode(r));
  EXPECT_EQ(verdict.outcome, Outcome::skipped);
  EXPECT_THAT(verdict.reason, Says("multihead"));
}

TEST(Answer, AsksForLseOnlyWhereItIsOffered) {
  class Asks : public Ends {
   public:
    using Ends::Ends;
    Reply run(const Case& c, std::optional<DType> output, bool want_lse) override {
      asked = want_lse;
      return Ends::run(c, output, want_lse);
    }
    bool asked = false;
  };
  Manifest manifest = toy_manifest();
  for (const bool offered : {false, true}) {
    manifest.lse = offered;
    Asks kernel(CallStatus::ok, manifest);
    (void)answer(kernel, small_case(), DType::f32, true);
    EXPECT_EQ(kernel.asked, offered);
  }
}

TEST(WorseOf, OrdersOutcomesThenUtilisation) {
  const auto verdict = [](Outcome outcome, double utilisation, int level) {
    return Verdict{.outcome = outcome, .utilisation = utilisation, .level = level};
  };
  const Outcome order[] = {Outcome::skipped, Outcome::excused, Outcome::held, Outcome::inconclusive, Outcome::violated};
  for (int worse = 1; worse < 5; ++worse) {
    for (int better = 0; better < worse; ++better) {
      EXPECT_EQ(worse_of({verdict(order[worse], 0, 1), verdict(order[better], 9, 2)}).outcome, order[worse]);
      EXPECT_EQ(worse_of({verdict(order[better], 9, 2), verdict(order[worse], 0, 1)}).outcome, order[worse]);
    }
  }
  EXPECT_EQ(worse_of({verdict(Outcome::held, 0.1, 3), verdict(Outcome::held, 0.2, 1)}).utilisation, 0.2);
  EXPECT_EQ(worse_of({verdict(Outcome::held, 0.1, 3), verdict(Outcome::held, 0.2, 1)}).level, 3);
  EXPECT_EQ(worse_of({verdict(Outcome::violated, infinity, 0), verdict(Outcome::violated, 3, 0)}).utilisation,
            infinity);
}

TEST(CheckCase, SaysNoMoreThanAKernelThatSaysNothing) {
  for (const auto& [status, reason] : {std::pair{CallStatus::unsupported, "unsupported"},
                                       {CallStatus::rejected, "rejected: a valid case was refused"},
                                       {CallStatus::failed, "failed"}}) {
    Ends silent(status, toy_manifest(), ""), talking(status);
    EXPECT_EQ(check_case(only_runs, silent, small_case()).reason, reason);
    EXPECT_EQ(check_case(only_runs, talking, small_case()).reason, std::string(reason) + ": the message");
  }
}

// The sign of a NaN depends on the processor.
TEST(CheckCase, IsOfNoVariantThatTheTheoremDoesNotSpeakOf) {
  const auto kernel = registered("builtin:flash");
  Case c = generate(property_named("attention.oracle"), DType::f32, 1, 3);
  c.causal = Causal::none;
  c.window_left = 1, c.alignment = Causal::top_left;
  EXPECT_NE(check_case(property_named("attention.oracle"), *kernel, c).outcome, Outcome::skipped);
  EXPECT_NE(check_case(property_named("attention.convex-hull"), *kernel, c).outcome, Outcome::skipped);
  EXPECT_EQ(check_case(property_named("attention.query-key-exchange"), *kernel, c).reason,
            "has the variant window; the theorem does not speak of it");
  // A property of a variant asks nothing of a kernel that does not list it, whatever the case has.
  Tampered silent = answered_otherwise([](Reply&) {}, "builtin:flash");
  silent.manifest().variants.clear();
  for (const Property* property : properties_matching("window.*"))
    EXPECT_EQ(verdict_on(*property, silent, DType::f32, 1).reason, "has no variant window") << property->name;
}

TEST(CheckCase, NeverPrintsTheSignOfANaN) {
  const auto spoil = [](Tensor& tensor) {
    for (std::int64_t e = 0; e < tensor.elements(); ++e) tensor.set(e, std::copysign(NAN, -1.0));
  };
  std::set<std::string> reasons;
  for (const FullyMaskedRow policy : {FullyMaskedRow::zero, FullyMaskedRow::uniform}) {
    Tampered kernel = answered_otherwise([&](Reply& reply) { spoil(reply.out.tensor()), spoil(reply.lse.tensor()); },
                                         "builtin:flash");
    kernel.manifest().fully_masked_row = policy;
    for (const Property* property : catalogue()) {
      for (std::int64_t k = 0; k < 12; ++k) {
        const Verdict verdict = verdict_on(*property, kernel, DType::f32, k);
        EXPECT_THAT(verdict.reason, NeverSays("-nan")) << property->name;
        if (verdict.reason.find("nan") != std::string::npos) reasons.emplace(property->name);
      }
    }
  }
  EXPECT_GT(reasons.size(), 20U) << "the kernel's numbers are hardly printed";
}

TEST(Repeatable, TellsTwoNaNsApart) {
  int calls = 0;
  Tampered kernel(
      registered("builtin:flash"), [](Case&) {},
      [&](Reply& reply) {
        if (reply.out.elements() > 0) reply.out.set(0, std::copysign(NAN, ++calls % 2 == 0 ? 1.0 : -1.0));
      });
  kernel.manifest().claims.push_back(Claim::deterministic);
  const Tried t = tried("attention.repeatable", kernel, DType::f32, 5);
  EXPECT_GT(t.violated, 0);
  EXPECT_TRUE(t.reason.starts_with("not-repeatable: element 0 is nan at first and of other bits the second time"))
      << t.reason;
}

TEST(WorseOf, KeepsTheAlarmsOfBoth) {
  const Verdict held{.utilisation = 0.5, .alarm = Alarm{4, 1, 2, 1.5}};
  const Verdict violated{.outcome = Outcome::violated, .utilisation = 3, .alarm = Alarm{8, 2, 0, 1.25}};
  EXPECT_EQ(worse_of({held, violated}).alarm, (Alarm{12, 3, 2, 1.5}));
  EXPECT_EQ(worse_of({violated, Verdict{}}).alarm, violated.alarm);
  EXPECT_EQ(worse_of({Verdict{}, held}).alarm, held.alarm);
  EXPECT_EQ(worse_of({Verdict{}, Verdict{}}).alarm, std::nullopt);
}

TEST(CheckCase, AsksForTheAlarmOnlyWhereThePropertyRaisesOne) {
  Property property = only_runs;
  Ends kernel(CallStatus::ok);
  const Case c = small_case();
  EXPECT_FALSE(check_case(property, kernel, c, {.alarm = 1e-9}).alarm.has_value());
  property.check_as = [](Kernel&, const Case&, const Judging& judging) {
    return judging.alarm > 0 ? Verdict{.alarm = Alarm{1, 0, 0, judging.alarm}} : Verdict{};
  };
  EXPECT_FALSE(check_case(property, kernel, c).alarm.has_value());
  EXPECT_EQ(check_case(property, kernel, c, {.alarm = 1e-9}).alarm, (Alarm{1, 0, 0, 1e-9}));
}

}  // namespace
}  // namespace attest
