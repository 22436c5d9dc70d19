// The theorems of attention about values, keys and lengths: held by right kernels, and each broken by a kernel made for
// it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/problem/selection.h"
#include "core/problem/sight.h"
#include "core/test/cases.h"
#include "properties/language/result.h"
#include "properties/test/property_fixture.h"

namespace attest {
namespace {

std::vector<const Property*> laws() {
  std::vector<const Property*> all;
  for (const auto family :
       {attention_expectation_properties(), attention_form_properties(), attention_value_properties(),
        attention_key_properties(), attention_scaling_properties(), attention_split_properties(),
        attention_layout_properties(), attention_length_properties()}) {
    for (const Property& property : family) all.push_back(&property);
  }
  return all;
}

TEST(AttentionLaws, HoldOnRightKernels) {
  for (const std::string_view id : {"builtin:flash-exp2", "builtin:lazy", "builtin:split-k", "builtin:two-pass"}) {
    const auto kernel = registered(id);
    for (const DType dtype : kernel->manifest().dtypes) {
      for (const Property* property : laws()) {
        if (property->needs == "the core") continue;
        const Tried t = tried(property->name, *kernel, dtype, 60);
        EXPECT_EQ(t.violated, 0) << id << ' ' << name_of(dtype) << ' ' << property->name << " k = " << t.first_violated
                                 << ": " << t.reason;
        EXPECT_GE(t.held, 45) << id << ' ' << name_of(dtype) << ' ' << property->name;
      }
    }
  }
}

TEST(AttentionLaws, HoldOnTheCore) {
  for (const std::string_view id : {"core:float", "core:half", "core:cpp_bin_float_50", "core:mpfi", "core:arb"}) {
    const auto kernel = registered(id);
    for (const Property* property : laws()) {
      const Tried t =
          tried(property->name, *kernel, kernel->manifest().dtypes[0], property->needs == "the core" ? 2 : 8);
      EXPECT_EQ(t.violated, 0) << id << ' ' << property->name << " k = " << t.first_violated << ": " << t.reason;
      EXPECT_GE(t.held, 1) << id << ' ' << property->name;
    }
  }
}

using Wrong = std::function<void(Case&)>;

void for_values(Case& c, double (*change)(double)) {
  for (std::int64_t e = 0; e < c.v().elements(); ++e) c[Slot::v].set(e, change(c.v()[e]));
}

/// Drops the last key where there are more than two.
void drop_last_key(Case& c) {
  if (keys_of(c) < 3) return;
  Selection s = everything(c);
  s.keys.pop_back();
  c = select(c, s);
}

void scale_by_length(Case& c) {
  c.scale *= 1 + 0.05 * static_cast<double>(keys_of(c) % 7);
}

struct Broken {
  std::string_view property;
  Tampered kernel;
  std::int64_t cases = 100;
};

TEST(AttentionLaws, EachFindsAKernelThatBreaksIt) {
  const auto all_by = [](double factor) {
    return answered_otherwise(each_out([factor](double old) { return factor * old; }));
  };
  Broken broken[] = {
      // Not linear in V: so the weights that one-hot values show are not those of others.
      {"attention.expectation",
       asked_otherwise([](Case& c) { for_values(c, [](double x) { return x * std::fabs(x); }); })},
      {"attention.expectation-sampling",
       asked_otherwise([](Case& c) { for_values(c, [](double x) { return x + 2 * x * x; }); })},
      {"attention.conditional-probability", all_by(1.02)},
      {"attention.convex-hull", all_by(1.02)},
      {"attention.single-query", asked_otherwise([](Case& c) {
         if (queries_of(c) == 1) c.scale *= 1.05;
       })},
      {"attention.score-variance", asked_otherwise([](Case& c) { c.scale *= std::sqrt(1.01); }, "core:double"), 10},
      {"attention.linear-in-values",
       asked_otherwise([](Case& c) { for_values(c, [](double x) { return x * std::fabs(x); }); })},
      {"attention.constant-values", all_by(0.98)},
      {"attention.one-key", all_by(0.98)},
      {"attention.equal-keys", asked_otherwise(drop_last_key)},
      {"attention.key-duplication", asked_otherwise(scale_by_length)},
      // Keys are clipped, as a narrower format would.
      {"attention.key-translation", asked_otherwise([](Case& c) {
         for (std::int64_t e = 0; e < c.k().elements(); ++e) c[Slot::k].set(e, std::clamp(c.k()[e], -1.0, 1.0));
       })},
      {"attention.query-key-exchange", asked_otherwise([](Case& c) {
         for (std::int64_t e = 0; e < c.k().elements(); ++e) c[Slot::k].set(e, std::clamp(c.k()[e], -1.0, 1.0));
       })},
      {"attention.value-scaling",
       asked_otherwise([](Case& c) { for_values(c, [](double x) { return std::clamp(x, -1.0, 1.0); }); })},
      {"attention.split-merge", asked_otherwise(scale_by_length)},
      {"attention.lse-range", answered_otherwise(each_lse([](double old) { return old + 0.7; }))},
      // The groups go round instead of in blocks.
      {"attention.grouped-query", asked_otherwise([](Case& c) {
         const Extents e = extents_of(c);
         if (e.kv_heads == 1 || e.kv_heads == e.heads) return;
         Selection s = everything(c);
         std::rotate(s.kv_heads.begin(), s.kv_heads.begin() + 1, s.kv_heads.end());
         c = select(c, s);
       })},
      {"attention.any-length", asked_otherwise([](Case& c) {
         if (queries_of(c) == 1 && keys_of(c) > 1) c.scale *= 1.1;
       })},
  };
  for (const Property* property : laws()) {
    EXPECT_EQ(std::ranges::count(broken, property->name, &Broken::property), 1) << property->name;
  }
  for (auto& [name, kernel, cases] : broken) {
    const auto& dtypes = kernel.manifest().dtypes;
    for (const DType dtype : {DType::f32, DType::bf16}) {
      if (std::ranges::find(dtypes, dtype) == dtypes.end()) continue;
      EXPECT_GE(tried(name, kernel, dtype, cases).violated, 1) << name << " in " << name_of(dtype);
    }
  }
}

/// A kernel that answers with the wrong number of bits for one sign or size of V lies within its bound and breaks a law
/// about bits; without the claim it breaks nothing.
TEST(AttentionLaws, ScalingsAreAboutBitsWhereTheKernelClaimsToRepeatItsOwn) {
  const auto last_bit = [] {
    return answered_otherwise([](Reply& reply) {
      for (std::int64_t e = 0; e < reply.out.elements(); ++e)
        if (reply.out[e] < 0) reply.out.tensor().bytes()[static_cast<std::size_t>(e) * 4] ^= std::byte{1};
    });
  };
  Tampered signs = last_bit();
  const Tried claimed = tried("attention.value-scaling", signs, DType::f32, 100);
  EXPECT_GE(claimed.violated, 30);
  EXPECT_TRUE(claimed.reason.starts_with("not equal: element ")) << claimed.reason;
  std::erase(signs.manifest().claims, Claim::deterministic);
  EXPECT_EQ(tried("attention.value-scaling", signs, DType::f32, 30).violated, 0);

  // The last bit of the output tells whether the first query was above 1.
  const auto odd = std::make_shared<bool>(false);
  Tampered queries(
      registered("builtin:two-pass"), [odd](Case& c) { *odd = c.q().elements() > 0 && std::fabs(c.q()[0]) > 1; },
      [odd](Reply& reply) {
        if (*odd && reply.out.elements() > 0) reply.out.tensor().bytes()[0] ^= std::byte{1};
      });
  EXPECT_GE(tried("attention.query-key-exchange", queries, DType::f32, 100).violated, 5);
  std::erase(queries.manifest().claims, Claim::deterministic);
  EXPECT_EQ(tried("attention.query-key-exchange", queries, DType::f32, 30).violated, 0);
}

/// One query, two keys of score 0, values of one column and a bias: what underflows is in the numbers given.
Case tiny_case(const std::vector<double>& bias, const std::vector<double>& values) {
  return test::one_query(DType::f64, {0}, {0, 0}, values, bias);
}

/// Weights that lie at the end of MPFR's numbers, and below them: e^-744261117.9 is about 2^-(2^30).
TEST(AttentionLaws, WhatUnderflowsInAWideScalarIsNoViolation) {
  const Property& scaling = property_named("attention.value-scaling");
  for (const std::string_view id : {"core:arb", "core:mpfi", "core:mpfr", "core:cpp_bin_float_50"}) {
    const auto kernel = registered(id);
    for (const double bias : {-744261115.0, -744261117.0, -744261118.0, -744261120.0, -1073741824.0, -1.5e308})
      for (int k = 0; k < 9; ++k) {
        Case c = tiny_case({0, bias}, {0, 1});
        c.provenance.arguments = "k=" + std::to_string(k);
        const Verdict verdict = check_case(scaling, *kernel, c);
        EXPECT_NE(verdict.outcome, Outcome::violated) << id << ' ' << bias << ' ' << k << ": " << verdict.reason;
      }
  }
}

/// The mean of 2046 and 2048 times 2^-21, and of a sixteenth of each: 1023.5 times 2^-24 is rounded up to the smallest
/// normal number.
TEST(AttentionLaws, WhatIsRoundedUpToANormalNumberHasLostBits) {
  const Property& scaling = property_named("attention.value-scaling");
  Case c = test::one_query(DType::f16, {0}, {0, 0}, {2046 * 0x1p-21, 2048 * 0x1p-21});
  c.provenance.arguments = "k=0 sign=0";
  for (const std::string_view id : {"builtin:two-pass", "builtin:flash", "builtin:pairwise"}) {
    const Verdict verdict = check_case(scaling, *registered(id), c);
    EXPECT_EQ(verdict.outcome, Outcome::held) << id << ": " << verdict.reason;
  }
}

TEST(AttentionLaws, AMeanOfValuesBelowTheNormalNumbersIsTheirs) {
  const Property& sampling = property_named("attention.expectation-sampling");
  for (const std::string_view id : {"core:mpfr", "core:cpp_bin_float_50", "core:mpfi"})
    for (const double value : {4.9406564584124654e-324, -2e-323, 1e-320}) {
      Case c = tiny_case({0, 0}, {value, value});
      c[Slot::mask] = {};
      const Verdict verdict = check_case(sampling, *registered(id), c);
      EXPECT_EQ(verdict.outcome, Outcome::held) << id << ' ' << value << ": " << verdict.reason;
    }
}

TEST(AttentionLaws, AHullIsJudgedWhereScoresAreNotKnown) {
  // Two scores that a half cannot tell: any convex combination is right, and nothing outside is.
  const Case c = test::one_query(DType::f32, {0x1p60, 0x1p60}, {1, -1, 1 + 0x1p-23, -1}, {-1, 1});
  const auto right = registered("builtin:two-pass");
  const AttentionBounds bounds = attention_bounds(c, right->manifest().arithmetic.usual_for(DType::f32));
  EXPECT_EQ(bounds.elements[0].excuse, Excuse::vacuous);
  EXPECT_LT(bounds.elements[0].hull, 1e-5);
  const Property& hull = property_named("attention.convex-hull");
  EXPECT_EQ(check_case(hull, *right, c).outcome, Outcome::held);
  Tampered wrong = answered_otherwise([](Reply& reply) { reply.out.set(0, 1.001); });
  EXPECT_EQ(check_case(hull, wrong, c).outcome, Outcome::violated);
}

// The merge of the blocks is computed in double: its sums must not overflow, and what underflows is allowed for.
TEST(AttentionLaws, BlocksMergeAtBothEndsOfTheRange) {
  struct Row {
    std::vector<double> k, v;
  };
  const Row rows[] = {
      {{0, 0}, {-1.6853373139334212e308, -1.5729814930045264e308}},
      {{0, 1, 0, 0, 1}, {0, 0, 1.783648657246204e308, 8.98846567431158e307, 0}},
      {{-0.03125, 0, 0}, {-1.5e-323, 0, 0}},
      {{0, -800}, {0, 1e308}},  // a weight of e^-800 of a value that makes it 4e-40
      {{0, -709}, {0, 1.7e308}},
  };
  for (const std::string_view id : {"core:arb", "core:mpfi", "core:mpfr", "core:cpp_bin_float_50", "core:double"}) {
    const auto kernel = registered(id);
    for (const Row& row : rows) {
      for (const char* const cuts : {"cut=1 cut2=1", "cut=1 cut2=2", "cut=0 cut2=1"}) {
        Case c = test::one_query(DType::f64, {1}, row.k, row.v);
        c.provenance.arguments = cuts;
        const Verdict verdict = check_case(property_named("attention.split-merge"), *kernel, c);
        EXPECT_NE(verdict.outcome, Outcome::violated) << id << ' ' << row.v[0] << ' ' << cuts << ": " << verdict.reason;
        if (id == "core:arb") {
          EXPECT_EQ(verdict.outcome, Outcome::held) << row.v[0] << ' ' << cuts << ": " << verdict.reason;
        }
      }
    }
  }
}

// Scores too large for 60 digits: the enclosure of e^(s - s) reaches from next to nothing to far beyond double.
TEST(AttentionLaws, ALooseEnclosureIsNoViolation) {
  const Case cases[] = {test::one_query(DType::f64, {1, 6.1897002e+26}, {1, -3.4028235e+38}, {1}),
                        test::one_query(DType::f64, {1, -1.629628781067589e+91}, {1, 1}, {1}),
                        test::one_query(DType::f64, {1, 1.6759759912428246e+153}, {1, 1}, {0})};
  for (const std::string_view id : {"core:mpfi", "core:arb"}) {
    const auto kernel = registered(id);
    for (const Case& c : cases) {
      for (const Property* property : catalogue()) {
        if (property->operation != Operation::attention) continue;
        const Verdict verdict = check_case(*property, *kernel, c);
        EXPECT_NE(verdict.outcome, Outcome::violated) << id << ' ' << property->name << ": " << verdict.reason;
      }
    }
  }
}

// Weights that double adds to a sum of 1 for nothing cost a wider sum a rounding each.
TEST(AttentionLaws, SmallWeightsRoundInAWideSum) {
  std::vector<double> keys(22, -15), values(22, 0);
  keys[0] = keys[1] = keys[3] = -16, keys[21] = 0, values[21] = 1;
  const Case dominated = test::one_query(DType::f64, {4}, keys, values);
  Case scores = dominated;
  scores[Slot::q] = Tensor(DType::f64, {1, 1, 1, 8},
                           std::vector<double>{0.027, -103.14, -103.82, -104.44, -103.97, -103.51, -102, -104.07});
  for (const std::string_view id : {"core:mpfr", "core:cpp_bin_float_50", "core:cpp_bin_float_100"}) {
    const auto kernel = registered(id);
    for (int k = 0; k < 200; ++k) {
      for (const char* const name : {"attention.key-value-permutation", "attention.key-duplication",
                                     "attention.constant-values", "softmax.rows-sum-to-one"}) {
        Case c = std::string_view(name).starts_with("softmax") ? scores : dominated;
        c.provenance.k = std::to_string(k);
        const Verdict verdict = check_case(property_named(name), *kernel, c);
        EXPECT_EQ(verdict.outcome, Outcome::held) << id << ' ' << name << " k = " << k << ": " << verdict.reason;
      }
    }
  }
}

TEST(AttentionLaws, NoKeysFollowThePolicy) {
  const Property& any = property_named("attention.any-length");
  Case c = generate(any, DType::f32, 1, 0);
  Tampered kernel = answered_otherwise([](Reply& reply) {
    if (!std::isfinite(reply.out.elements() > 0 ? reply.out[0] : 0)) reply.out.set(0, 3);
  });
  kernel.manifest().fully_masked_row = FullyMaskedRow::nan;
  EXPECT_EQ(check_case(any, *registered("builtin:two-pass"), c).outcome, Outcome::held);
  EXPECT_EQ(check_case(any, kernel, c).outcome, Outcome::violated);
  kernel.manifest().fully_masked_row = FullyMaskedRow::error;
  EXPECT_EQ(check_case(any, kernel, c).outcome, Outcome::violated);
}

TEST(AttentionLaws, NameTheHypothesisThatACaseMisses) {
  const auto kernel = registered("builtin:two-pass");
  const auto reason = [&](std::string_view name, auto change) {
    Case c = generate(property_named(name), DType::f32, 1, 0);
    change(c);
    const Verdict verdict = check_case(property_named(name), *kernel, c);
    EXPECT_EQ(verdict.outcome, Outcome::skipped) << name;
    return verdict.reason;
  };
  const auto causal = [](Case& c) { c.causal = Causal::top_left; };
  for (const std::string_view name :
       {"attention.single-query", "attention.equal-keys", "attention.key-duplication", "attention.split-merge"}) {
    EXPECT_TRUE(reason(name, causal).starts_with("has the causal form top-left")) << name;
  }
  EXPECT_EQ(reason("attention.one-key",
                   [](Case& c) {
                     Selection s = everything(c);
                     s.keys = {0, 0};
                     c = select(c, s);
                   }),
            "has 2 keys; the theorem is about one");
  EXPECT_EQ(reason("attention.grouped-query",
                   [](Case& c) {
                     Selection s = everything(c);
                     s.heads = s.kv_heads = {0};
                     c = select(c, s);
                   }),
            "has a key-value head for every head; the theorem is about shared ones");
  EXPECT_EQ(reason("attention.score-variance", [](Case&) {}), "is about the core, not about other kernels");
}

}  // namespace
}  // namespace attest
