// Laws of the tools that cases pass through, for any case that RapidCheck draws, and the generators themselves.
#include <attest/check_property.h>
#include <attest/rapidcheck.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <set>
#include <tuple>

#include "core/problem/edge.h"
#include "core/problem/fields.h"
#include "core/problem/memory.h"
#include "core/support/errors.h"
#include "properties/catalogue/property.h"
#include "properties/road/simpler_cases.h"
#include "properties/road/simplify.h"
#include "properties/test/toy_kernels.h"

namespace attest {
namespace {

/// A case of either operation.
Case any_case() {
  const DType dtype = *rc::gen::arbitrary<DType>();
  return *rc::gen::inRange(0, 2) == 0 ? *attention_cases(dtype) : *multihead_cases(dtype);
}

/// What no step may raise, in the order in which steps lower it: elements, then what the form says, then numbers.
using Size = std::tuple<std::int64_t, std::int64_t, double>;
Size size_of(const Case& c) {
  std::int64_t elements = 0, form = edge_of(c) != Edge::none ? 1 : 0;
  double complexity_of_all = 0;
  const Layouts layouts = layouts_of(c);
  for (int i = 0; i < slot_count; ++i) {
    const auto slot = static_cast<Slot>(i);
    form += layouts[slot] != MemoryLayout::row_major ? 1 : 0;
    const Tensor& tensor = c[slot];
    if (!tensor.present()) continue;
    elements += tensor.elements();
    for (std::int64_t e = 0; e < tensor.elements(); ++e) complexity_of_all += complexity(tensor.dtype(), tensor[e]);
  }
  form += (layouts.out != MemoryLayout::row_major ? 1 : 0) + (layouts.lse != MemoryLayout::row_major ? 1 : 0);
  for_each_scalar(c.operation, [&]<class Value>(const ScalarField<Value>& field) {
    if (field.is_extent || c.*field.member == field.neutral) return;
    // A power of two is plainer than another number.
    if constexpr (std::is_floating_point_v<Value>)
      form += std::exp2(std::round(std::log2(c.*field.member))) == c.*field.member ? 1 : 2;
    if constexpr (!std::is_floating_point_v<Value>) form += 1;
  });
  for (const Slot slot : {Slot::mask, Slot::bias_k, Slot::b_q}) form += c[slot].present() ? 1 : 0;
  return {elements, form, complexity_of_all};
}

Manifest any_manifest() {
  Manifest m;
  const auto some = [](std::int64_t low, std::int64_t high) {
    return *rc::gen::maybe(rc::gen::inRange<std::int64_t>(low, high));
  };
  const auto optional = [](const rc::Maybe<std::int64_t>& most) { return most ? std::optional(*most) : std::nullopt; };
  m.max_queries = optional(some(1, 9));
  m.max_keys = optional(some(1, 9));
  m.heads_multiple = *rc::gen::inRange<std::int64_t>(1, 4);
  m.head_dim_multiple = *rc::gen::inRange<std::int64_t>(1, 9);
  m.grouped_query = *rc::gen::arbitrary<bool>();
  m.value_dim_equals_head_dim = *rc::gen::arbitrary<bool>();
  m.any_scale = *rc::gen::arbitrary<bool>();
  m.self_attention_only = *rc::gen::arbitrary<bool>();
  return m;
}

RC_GTEST_PROP(CaseLaws, ReadsBackWhatItWrites, ()) {
  const Case c = any_case();
  RC_ASSERT(decode_case(encode_case(c), "a test") == c);
}

RC_GTEST_PROP(CaseLaws, IsDrawnValid, ()) {
  validate(any_case());
}

RC_GTEST_PROP(CaseLaws, IsProjectedOnce, ()) {
  const Manifest manifest = any_manifest();
  const Case once = project(any_case(), manifest);
  validate(once);
  RC_ASSERT(project(once, manifest) == once);
}

RC_GTEST_PROP(CaseLaws, IsSmallerAndStillValidAfterEachStep, ()) {
  const Case c = any_case();
  RC_PRE(c.q().elements() + c.k().elements() < 20'000);
  const auto steps = steps_from(c);
  // A few of thousands.
  for (int tried = 0; tried < 24; ++tried) {
    Case simpler = c;
    // By its number: there is nothing to print of a step.
    if (!steps[*rc::gen::inRange<std::size_t>(0, steps.size())](simpler)) {
      RC_ASSERT(simpler == c);
      continue;
    }
    validate(simpler);
    RC_ASSERT(size_of(simpler) < size_of(c));
  }
}

TEST(CaseGenerators, DrawEveryDtypeKindAndFormOfMask) {
  std::set<DType> dtypes;
  std::set<MaskKind> kinds;
  std::set<DType> of_mask;
  EXPECT_TRUE(rc::check([&](const Case& c) { dtypes.insert(c.dtype()); }));
  EXPECT_TRUE(rc::check([&](MaskKind kind) { kinds.insert(kind); }));
  EXPECT_TRUE(rc::check([&](const Extents& extents) {
    const Tensor mask = *masks(extents, DType::f16);
    of_mask.insert(mask.dtype());
    RC_ASSERT(mask.shape()[3] == extents.keys);
  }));
  EXPECT_EQ(dtypes.size(), 4U);
  EXPECT_EQ(kinds.size(), Words<MaskKind>::names.size());
  EXPECT_EQ(of_mask, (std::set{DType::f16, DType::boolean}));
}

TEST(CaseGenerators, ObeyTheEdit) {
  EXPECT_TRUE(rc::check([] {
    const MaskKind kind = *rc::gen::distinctFrom(MaskKind::none);
    const Case c =
        *attention_cases(DType::f32, [=](Recipe& r) { r.heads = r.kv_heads = 3, r.queries = 5, r.mask = kind; });
    RC_ASSERT(c.q().shape()[1] == 3);
    RC_ASSERT(c.mask().present());
  }));
}

TEST(CaseGenerators, DrawOfAPropertyWhatCheckDraws) {
  EXPECT_TRUE(rc::check([] {
    const Property& property = **rc::gen::elementOf(catalogue());
    const Manifest manifest = any_manifest();
    const Case c = *cases_of(property.name, DType::f32, manifest);
    RC_PRE(!c.provenance.shrunk);
    const std::uint64_t seed = std::stoull(c.provenance.seed.value());
    const std::int64_t k = std::stoll(c.provenance.k.value());
    RC_ASSERT(k < 100);
    const Case drawn = generate(property, DType::f32, seed, k);
    RC_ASSERT(property.misses(drawn) == "");
    RC_ASSERT(project(drawn, manifest) == c);
  }));
  EXPECT_THROW((void)cases_of("attention.oracel", DType::f32, Manifest()), UsageError);
}

/// Shrinks as rc::check does: to the first simpler case that fails, over and over.
template <class Fails>
Case shrunk(const rc::Gen<Case>& drawn, const Fails& fails) {
  for (std::uint64_t seed = 0;; ++seed) {
    rc::Shrinkable<Case> at = drawn(rc::Random(seed));
    if (!fails(at.value())) continue;
    for (bool found = true; found;) {
      found = false;
      rc::Seq<rc::Shrinkable<Case>> simpler = at.shrinks();
      for (auto next = simpler.next(); next && !found; next = found ? rc::Nothing : simpler.next()) {
        if (!fails(next->value())) continue;
        at = std::move(*next);
        found = true;
      }
    }
    return at.value();
  }
}

TEST(CaseGenerators, ShrinkToTheSmallestCaseThatFails) {
  const Case two_keys = shrunk(attention_cases(DType::f32),
                               [](const Case& c) { return extents_of(c).keys >= 2 && c.causal != Causal::none; });
  const Extents e = extents_of(two_keys);
  EXPECT_EQ(e, (Extents{.batch = 1, .heads = 1, .kv_heads = 1, .queries = 1, .keys = 2, .dk = 1, .dv = 1}));
  EXPECT_FALSE(two_keys.mask().present());
  EXPECT_NE(two_keys.causal, Causal::none);
  for (const Slot slot : {Slot::q, Slot::k, Slot::v})
    for (std::int64_t i = 0; i < two_keys[slot].elements(); ++i) EXPECT_EQ(two_keys[slot][i], 0.0);
  EXPECT_EQ(two_keys.provenance.shrunk, "yes");

  const Case biased = shrunk(multihead_cases(DType::f64), [](const Case& c) { return c[Slot::bias_k].present(); });
  EXPECT_EQ(biased[Slot::bias_k].elements(), 1);
  EXPECT_FALSE(biased[Slot::b_q].present());
}

class RcParams : public testing::Test {
 protected:
  static void set(const char* value) { setenv("RC_PARAMS", value, 1); }  // NOLINT(concurrency-mt-unsafe)
  void SetUp() override { unsetenv("RC_PARAMS"); }                       // NOLINT(concurrency-mt-unsafe)
  void TearDown() override { unsetenv("RC_PARAMS"); }                    // NOLINT(concurrency-mt-unsafe)
  PropertyReport report(std::int64_t cases, std::uint64_t seed = 1) {
    return check_property("attention.finite", *kernel_, DType::f64, cases, seed);
  }
  static std::int64_t all(const PropertyReport& r) { return r.held + r.skipped + r.excused + r.inconclusive; }
  std::unique_ptr<Kernel> kernel_ = toy_kernel(Bug::none);
};

TEST_F(RcParams, SaysHowManyCases) {
  EXPECT_EQ(all(report(30)), 30);
  set("max_success=70");
  EXPECT_EQ(all(report(30)), 70);
}

TEST_F(RcParams, SaysTheSeed) {
  const auto wrong = [](std::uint64_t seed) {
    return check_property("attention.oracle", *toy_kernel(Bug::causal), DType::f64, 200, seed).text;
  };
  EXPECT_EQ(wrong(1), wrong(1));
  const std::string of_seven = wrong(7);
  EXPECT_NE(wrong(1), of_seven);
  set("seed=7");
  EXPECT_EQ(wrong(1), of_seven);
}

TEST_F(RcParams, SaysWhetherToShrink) {
  set("noshrink=1");
  const std::string text = check_property("attention.oracle", *toy_kernel(Bug::causal), DType::f64, 200).text;
  EXPECT_NE(text.find("the case:\n"), std::string::npos) << text;
}

TEST_F(RcParams, IsRefusedInOneLineWhereItIsWrong) {
  set("max_success=many");
  try {
    (void)report(30);
    FAIL() << "accepted";
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("RC_PARAMS is \"max_success=many\": "), std::string::npos) << error.what();
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace attest
