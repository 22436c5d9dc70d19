// Limits that a kernel has and its manifest leaves open are found by asking, and are those that it has.
#include "properties/diagnosis/find_limits.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "core/kernel/forwarding_kernel.h"
#include "core/kernel/limits.h"
#include "core/problem/sight.h"
#include "properties/test/toy_kernels.h"

namespace attest {
namespace {

/// A kernel that takes what `limit` leaves of a manifest, and says nothing of it in its own.
class Silent final : public ForwardingKernel {
 public:
  Silent(Manifest declared, const std::function<void(Manifest&)>& limit)
      : ForwardingKernel(toy_kernel(Bug::none, declared)), declared_(declared), limits_(std::move(declared)) {
    limit(limits_);
  }
  [[nodiscard]] const Manifest& manifest() const override { return declared_; }
  [[nodiscard]] const Manifest& limits() const { return limits_; }
  Reply run(const Case& c, std::optional<DType> /*output*/, bool /*want_lse*/) override {
    ++calls;
    EXPECT_EQ(why_unsupported(declared_, c), "") << "what the manifest rules out is not asked";
    if (!why_unsupported(limits_, c).empty())
      return {.status = CallStatus::unsupported, .message = {}, .out = {}, .lse = {}};
    return {.status = CallStatus::ok, .message = {}, .out = {}, .lse = {}};  // which is all that is looked at
  }
  int calls = 0;

 private:
  Manifest declared_, limits_;
};

void expect_found(const std::function<void(Manifest&)>& limit, const std::string& keys,
                  const Manifest& declared = toy_manifest()) {
  Silent kernel(declared, limit);
  const FoundLimits found = find_limits(kernel);
  std::string text;
  for (const FoundLimit& one : found.limits) text += (text.empty() ? "" : "; ") + one.key;
  EXPECT_EQ(text, keys);
  EXPECT_EQ(found.unexplained, "") << keys;
  EXPECT_EQ(found.manifest, kernel.limits()) << keys << "\n" << to_json(found.manifest);
  EXPECT_LT(kernel.calls, 200);
  EXPECT_EQ(with_limits_of(declared, found.manifest), kernel.limits()) << keys;
}

TEST(FindLimits, AsksAKernelWithoutLimitsAHandfulOfTimes) {
  Silent kernel(toy_manifest(), [](Manifest&) {});
  const FoundLimits found = find_limits(kernel);
  EXPECT_EQ(found.manifest, toy_manifest());
  EXPECT_TRUE(found.limits.empty());
  EXPECT_EQ(found.unexplained, "");
  EXPECT_LE(kernel.calls, 6);
}

TEST(FindLimits, FindsThoseOfWidths) {
  expect_found([](Manifest& m) { m.head_dims = {64, 128}; }, R"("limits": {"head_dims": [64, 128]})");
  expect_found([](Manifest& m) { m.head_dim_multiple = 8; }, R"("limits": {"head_dim_multiple": 8})");
  expect_found([](Manifest& m) { m.max_head_dim = 128; }, R"("limits": {"max_head_dim": 128})");
  expect_found([](Manifest& m) { m.head_dim_multiple = 16, m.max_head_dim = 128; },
               R"("limits": {"head_dim_multiple": 16}; "limits": {"max_head_dim": 128})");
  expect_found([](Manifest& m) { m.value_dim_equals_head_dim = true; }, R"("limits": {"value_dim": "head_dim"})");
}

TEST(FindLimits, FindsWhichKindsOfMasksThereAre) {
  expect_found([](Manifest& m) { m.additive_masks = false; }, R"("masks": ["bool"])");
  expect_found([](Manifest& m) { m.bool_masks = false; }, R"("masks": ["additive"])");
  expect_found([](Manifest& m) { m.additive_masks = m.bool_masks = false; }, R"("masks": [])");
  Manifest bool_alone = toy_manifest();
  bool_alone.additive_masks = false;
  expect_found([](Manifest& m) { m.bool_masks = false, m.head_dims = {64}; },
               R"("limits": {"head_dims": [64]}; "masks": [])", bool_alone);
  Manifest causal = toy_manifest();
  expect_found([](Manifest& m) { m.required = {Feature::causal}, m.additive_masks = m.bool_masks = false; },
               R"("requires": ["causal"]; "masks": [])", causal);
}

TEST(FindLimits, FindsThoseOfLengths) {
  expect_found([](Manifest& m) { m.queries_multiple = m.keys_multiple = 64; },
               R"("limits": {"queries_multiple": 64}; "limits": {"keys_multiple": 64})");
  expect_found([](Manifest& m) { m.keys_multiple = 32, m.min_keys = 64; },
               R"("limits": {"keys_multiple": 32}; "limits": {"min_keys": 64})");
  expect_found([](Manifest& m) { m.max_queries = 1; }, R"("limits": {"max_queries": 1})");
  expect_found([](Manifest& m) { m.same_lengths = true; }, R"("limits": {"same_lengths": true})");
  expect_found(
      [](Manifest& m) { m.same_lengths = true, m.queries_multiple = m.keys_multiple = 64; },
      R"("limits": {"same_lengths": true}; "limits": {"queries_multiple": 64}; "limits": {"keys_multiple": 64})");
}

TEST(FindLimits, FindsThoseOfHeads) {
  expect_found([](Manifest& m) { m.group_sizes = {1, 8}; }, R"("limits": {"group_sizes": [1, 8]})");
  Manifest plain = toy_manifest();
  plain.grouped_query = false;
  expect_found([](Manifest& m) { m.heads_multiple = 4; }, R"("limits": {"heads_multiple": 4})", plain);
}

TEST(FindLimits, FindsThoseOfForms) {
  Manifest top_left = toy_manifest();
  top_left.causal = {Causal::top_left};
  expect_found([](Manifest& m) { m.required = {Feature::causal}; }, R"("requires": ["causal"])", top_left);
  // A kernel that refuses none of the plain shapes is asked no more: of a form alone nothing is known.
  expect_found([](Manifest& m) { m.head_dims = {64}, m.excluded = {{Feature::mask, Feature::causal}}; },
               R"("limits": {"head_dims": [64]}; "excludes": [["mask", "causal"]])", top_left);
  expect_found([](Manifest& m) { m.head_dims = {64}, m.excluded = {{Feature::top_left, Feature::unequal_lengths}}; },
               R"("limits": {"head_dims": [64]}; "excludes": [["top-left", "unequal-lengths"]])", top_left);
}

TEST(FindLimits, LeavesWhatTheManifestStates) {
  Manifest stated = toy_manifest();
  stated.queries_multiple = stated.keys_multiple = 64;
  expect_found([](Manifest& m) { m.head_dims = {64, 128}; }, R"("limits": {"head_dims": [64, 128]})", stated);
}

TEST(FindLimits, SaysTheNumbers) {
  Silent kernel(toy_manifest(), [](Manifest& m) { m.keys_multiple = 64; });
  const FoundLimits found = find_limits(kernel);
  ASSERT_EQ(found.limits.size(), 1U);
  EXPECT_EQ(found.limits[0].words,
            "it refused every number of keys that is no multiple of 64: it answered 64, 128, 192, 256, 320 keys and "
            "refused 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 65, 80, 96, 100");
}

TEST(FindLimits, ProposesNothingThatDoesNotExplainWhatWasRefused) {
  class Odd final : public ForwardingKernel {
   public:
    Odd() : ForwardingKernel(toy_kernel(Bug::none)) {}
    Reply run(const Case& c, std::optional<DType> output, bool want_lse) override {
      const std::int64_t keys = keys_of(c);
      if (keys == 5 || keys == 64 || keys == 100 || keys == 3)
        return {.status = CallStatus::unsupported, .message = {}, .out = {}, .lse = {}};
      return ForwardingKernel::run(c, output, want_lse);
    }
  } kernel;
  const FoundLimits found = find_limits(kernel);
  EXPECT_TRUE(found.limits.empty());
  EXPECT_NE(found.unexplained.find("refused 3, 64, 100, which no limit explains"), std::string::npos)
      << found.unexplained;
  EXPECT_EQ(found.manifest, kernel.manifest());
}

TEST(FindLimits, EndsWhereAKernelFails) {
  class Failing final : public ForwardingKernel {
   public:
    Failing() : ForwardingKernel(toy_kernel(Bug::none)) {}
    Reply run(const Case& /*c*/, std::optional<DType> /*output*/, bool /*want_lse*/) override {
      ++calls;
      return {.status = CallStatus::died, .message = "signal 11", .out = {}, .lse = {}};
    }
    int calls = 0;
  } kernel;
  const FoundLimits found = find_limits(kernel);
  EXPECT_EQ(kernel.calls, 1) << "each death costs the start of a process";
  EXPECT_TRUE(found.limits.empty());
  EXPECT_EQ(found.unexplained, "");
}

TEST(FindLimits, LimitAKernelAndItsClones) {
  Manifest m = toy_manifest();
  m.keys_multiple = 64;
  const auto kernel = limited_kernel(toy_kernel(Bug::none), m);
  EXPECT_EQ(kernel->manifest(), m);
  EXPECT_EQ(kernel->clone()->manifest(), m);
  EXPECT_EQ(kernel->clone()->clone()->manifest(), m);
}

}  // namespace
}  // namespace attest
