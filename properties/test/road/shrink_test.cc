#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <utility>

#include "core/problem/selection.h"
#include "core/problem/sight.h"
#include "properties/catalogue/property.h"
#include "properties/road/simpler_cases.h"
#include "properties/road/simplify.h"
#include "properties/test/catalogue/tampered.h"
#include "properties/test/toy_kernels.h"

namespace attest {
namespace {

/// The first generated case, from k on, that the kernel violates.
Case first_violated(Kernel& kernel, DType dtype, std::int64_t& k) {
  for (;; ++k) {
    Case c = project(generate(toy_property, dtype, 1, k), kernel.manifest());
    if (check_case(toy_property, kernel, c).outcome == Outcome::violated) return c;
  }
}

struct Limits {
  std::int64_t batch = 1, heads = 1, queries = 1, keys = 1, dk = 1, dv = 1;
};

/// Shrinks a number of findings: each result is valid, still violated by a margin, within the limits, found within the
/// budget, and the same when done again.
void expect_shrunk(Bug bug, const Limits& limits, int findings = 10) {
  const auto kernel = toy_kernel(bug);
  std::int64_t k = 0;
  for (int n = 0; n < findings; ++n, ++k) {
    const Case found = first_violated(*kernel, DType::f64, k);
    const Case small = shrink(toy_property, *kernel, found);
    ASSERT_NO_THROW(validate(small));
    const Verdict verdict = check_case(toy_property, *kernel, small);
    EXPECT_EQ(verdict.outcome, Outcome::violated);
    EXPECT_GE(verdict.utilisation, std::min(2.0, check_case(toy_property, *kernel, found).utilisation));
    const Extents e = extents_of(small);
    EXPECT_LE(e.batch, limits.batch) << "k = " << k;
    EXPECT_LE(e.heads, limits.heads) << "k = " << k;
    EXPECT_LE(e.queries, limits.queries) << "k = " << k;
    EXPECT_LE(e.keys, limits.keys) << "k = " << k;
    EXPECT_LE(e.dk, limits.dk) << "k = " << k;
    EXPECT_LE(e.dv, limits.dv) << "k = " << k;
    EXPECT_EQ(small.provenance.shrunk.value(), "yes");
    EXPECT_EQ(small.provenance.k.value(), std::to_string(k));
    EXPECT_EQ(hash_of(small), hash_of(shrink(toy_property, *kernel, found)));
  }
}

/// Gaussian-like numbers in f64, of one head with two columns.
Case long_case(std::int64_t queries, std::int64_t keys) {
  Case c;
  const auto filled = [](std::int64_t rows, std::int64_t seed) {
    Tensor tensor(DType::f64, {1, 1, rows, 2});
    for (std::int64_t e = 0; e < tensor.elements(); ++e)
      tensor.set(e, std::sin(static_cast<double>((e + seed) * (e + 3 * seed) % 1009)));
    return tensor;
  };
  c[Slot::q] = filled(queries, 1), c[Slot::k] = filled(keys, 2), c[Slot::v] = filled(keys, 3);
  return c;
}

TEST(Shrink, AWrongScaleNeedsTwoKeysAndOneDimension) {
  expect_shrunk(Bug::scale, {.keys = 2});
}
TEST(Shrink, EndsAtTheSmallestShapeThatTheManifestAllows) {
  Manifest m = toy_manifest();
  m.queries_multiple = m.min_queries = 16;
  m.keys_multiple = m.min_keys = 48;
  m.head_dims = {4, 12};
  const auto kernel = toy_kernel(Bug::scale, m);
  std::int64_t k = 0;
  for (int n = 0; n < 5; ++n, ++k) {
    const Extents e = extents_of(shrink(toy_property, *kernel, first_violated(*kernel, DType::f64, k)));
    EXPECT_EQ(e.queries, 16) << "k = " << k;
    EXPECT_EQ(e.keys, 48) << "k = " << k;
    EXPECT_EQ(e.dk, 4) << "k = " << k;
  }
}
TEST(Shrink, ADroppedTailNeedsNoMoreThanItsLength) {
  expect_shrunk(Bug::tail, {.keys = 3});
}
TEST(Shrink, AnIgnoredMaskNeedsTwoKeys) {
  expect_shrunk(Bug::mask, {.keys = 2});
}
TEST(Shrink, AnIgnoredCausalFormNeedsTwoKeys) {
  expect_shrunk(Bug::causal, {.queries = 2, .keys = 3});
}
TEST(Shrink, AWrongHeadMappingNeedsTwoGroups) {
  expect_shrunk(Bug::head_mapping, {.heads = 4, .keys = 2, .dk = 2});
}
TEST(Shrink, IgnoredColumnsKeepOneBeyondTheLimit) {
  expect_shrunk(Bug::wide, {.keys = 2, .dk = 66}, 3);
}
// A score just above 50 may need the products of two columns.
TEST(Shrink, ANaNStaysANaN) {
  expect_shrunk(Bug::not_a_number, {.dk = 2});
}
TEST(Shrink, AFailureStaysThatFailure) {
  expect_shrunk(Bug::fails_when_long, {.keys = 21}, 3);
}

/// So many queries on so many keys, and a window whose left end is the first key of the last row.
Case wide_window(std::int64_t queries, std::int64_t keys, Causal alignment) {
  Case c = long_case(queries, keys);
  c.window_left = keys - 1;
  c.alignment = alignment;
  return c;
}

// The end of a window that lies near the last of many keys: it and they get shorter together.
TEST(Shrink, AWindowGetsNarrowerWithItsKeys) {
  const auto kernel = registered("fault:window-left-exclusive");
  const Property& oracle = property_named("attention.oracle");
  for (const Case& found : {wide_window(1, 2485, Causal::bottom_right), wide_window(300, 300, Causal::top_left),
                            wide_window(300, 300, Causal::bottom_right), wide_window(40, 700, Causal::bottom_right)}) {
    ASSERT_EQ(check_case(oracle, *kernel, found).outcome, Outcome::violated);
    const Case small = shrink(oracle, *kernel, found);
    ASSERT_NO_THROW(validate(small));
    EXPECT_EQ(check_case(oracle, *kernel, small).outcome, Outcome::violated);
    EXPECT_LE(keys_of(small), 3) << keys_of(found);
    EXPECT_LE(queries_of(small), 3) << keys_of(found);
    EXPECT_LE(small.window_left, 2) << keys_of(found);
  }
}

TEST(Shrink, ANumberNearAnAxisLosesWhatTheAxisLoses) {
  Case c = wide_window(1, 40, Causal::bottom_right);
  c.window_right = 5;
  const AxisGroup keys{&Selection::keys}, dk{&Selection::dk};
  EXPECT_TRUE(has_near(c, keys));
  EXPECT_FALSE(has_near(c, dk));
  shorten_near(c, dk, 9);
  EXPECT_EQ(c.window_left, 39);
  shorten_near(c, keys, 9);
  EXPECT_EQ(c.window_left, 30);
  EXPECT_EQ(c.window_right, 0) << "no less than the least";
  c.window_left = c.window_right = -1;
  shorten_near(c, keys, 9);
  EXPECT_EQ(c.window_left, -1) << "none";
  EXPECT_FALSE(has_near(c, keys));
}

TEST(Shrink, EndsInSimpleNumbers) {
  const auto kernel = toy_kernel(Bug::scale);
  std::int64_t k = 0;
  const Case small = shrink(toy_property, *kernel, first_violated(*kernel, DType::f64, k));
  double total = 0;
  for (const Slot slot : {Slot::q, Slot::k, Slot::v}) {
    for (std::int64_t e = 0; e < small[slot].elements(); ++e) total += complexity(DType::f64, small[slot][e]);
  }
  EXPECT_LE(total, 5 * 6.0);
  EXPECT_FALSE(small.mask().present());
  EXPECT_EQ(small.causal, Causal::none);
}

TEST(Shrink, SpendsNoMoreThanItsBudget) {
  int calls = 0;
  const auto kernel =
      function_kernel("counting", toy_manifest(), [&](const attest_problem& p, attest_result& r, std::string& m) {
        ++calls;
        return toy_attention(Bug::scale, p, r, m);
      });
  std::int64_t k = 0;
  const Case found = first_violated(*kernel, DType::f64, k);
  calls = 0;
  (void)check_case(toy_property, *kernel, found);
  const int calls_per_case = calls;  // the kernel is run more than once per call to find unwritten elements
  for (const int budget : {0, 1, 2, 10, 1000}) {
    calls = 0;
    (void)shrink(toy_property, *kernel, found, budget);
    EXPECT_LE(calls, budget * calls_per_case) << budget;
  }
}

// With next to no budget: the element that is off says at once which batch entry, head, row and column are needed.
TEST(Shrink, AimsAtTheElementOfAGradient) {
  struct Row {
    const char *name, *kernel;
    bool of_keys, of_dv;
  };
  for (const auto& [name, id, of_keys, of_dv] :
       {Row{"backward.oracle-dq", "fault:delta-unwritten", false, false},
        Row{"backward.oracle-dk", "fault:delta-unwritten", true, false},
        Row{"backward.oracle-dv", "fault:dk-dv-without-the-last-query", true, true}}) {
    const Property& property = *properties_matching(name).at(0);
    const auto kernel = registered(id);
    int cases = 0, entries = 0, rows = 0, columns = 0;
    for (std::int64_t k = 0; k < 300; ++k) {
      const Case c = project(generate(property, DType::f64, 1, k), kernel->manifest());
      const Extents e = extents_of(c);
      if (e.batch < 2 || e.queries < 2 || e.keys < 2 || e.dk < 2 || e.dv < 2) continue;
      if (check_case(property, *kernel, c).outcome != Outcome::violated) continue;
      const Extents small = extents_of(shrink(property, *kernel, c, /*budget=*/4));
      ++cases, entries += small.batch == 1;
      rows += (of_keys ? small.keys : small.queries) == 1, columns += (of_dv ? small.dv : small.dk) == 1;
      // All else is as it was.
      EXPECT_EQ(of_keys ? small.queries : small.keys, of_keys ? e.queries : e.keys) << name << k;
      EXPECT_EQ(of_dv ? small.dk : small.dv, of_dv ? e.dk : e.dv) << name << k;
    }
    EXPECT_GE(cases, 10) << name;
    EXPECT_GE(4 * entries, 3 * cases) << name;
    EXPECT_GE(4 * columns, 3 * cases) << name;
    // The lone key of a row has its weight whatever its score is.
    if (of_dv || !of_keys) {
      EXPECT_GE(4 * rows, 3 * cases) << name;
    }
  }
}

// What is wrong with the sum over a group needs two heads of one group, however many there are of both.
TEST(Shrink, AWrongSumOverAGroupNeedsOneGroupOfTwoHeads) {
  const auto kernel = registered("fault:dk-dv-averaged-over-the-group");
  for (const char* name : {"backward.oracle-dk", "backward.oracle-dv"}) {
    const Property& property = *properties_matching(name).at(0);
    int cases = 0;
    for (std::int64_t k = 0; cases < 8; ++k) {
      ASSERT_LT(k, 20000) << name;
      const Case c = project(generate(property, DType::f64, 1, k), kernel->manifest());
      const Extents e = extents_of(c);
      if (e.heads < 3 || e.kv_heads == e.heads) continue;
      if (check_case(property, *kernel, c).outcome != Outcome::violated) continue;
      const Extents small = extents_of(shrink(property, *kernel, c));
      EXPECT_EQ(small.kv_heads, 1) << name << k;
      EXPECT_EQ(small.heads, 2) << name << k;
      ++cases;
    }
  }
}

// And they are the group of the element that is off, tried before anything else is.
TEST(Shrink, AimsAtTheGroupOfAKey) {
  const auto kernel = registered("fault:dk-dv-averaged-over-the-group");
  const Property& property = *properties_matching("backward.oracle-dv").at(0);
  int cases = 0, groups = 0;
  for (std::int64_t k = 0; k < 4000; ++k) {
    const Case c = project(generate(property, DType::f64, 1, k), kernel->manifest());
    const Extents e = extents_of(c);
    if (e.kv_heads < 2 || e.kv_heads == e.heads) continue;
    if (check_case(property, *kernel, c).outcome != Outcome::violated) continue;
    const Extents small = extents_of(shrink(property, *kernel, c, /*budget=*/5));
    ++cases, groups += small.kv_heads == 1;
    EXPECT_EQ(small.heads * e.kv_heads, e.heads * small.kv_heads) << k;
  }
  EXPECT_GE(cases, 10);
  EXPECT_GE(4 * groups, 3 * cases);
}

/// What shrinking makes of a kernel that fails where `fails` says so, and the calls that it took.
std::pair<Case, int> shrunk_failure(const std::function<bool(const attest_problem&)>& fails, Manifest manifest) {
  int calls = 0;
  const auto kernel =
      function_kernel("failing", std::move(manifest), [&](const attest_problem& p, attest_result& r, std::string& m) {
        ++calls;
        return fails(p) ? 7 : toy_attention(Bug::none, p, r, m);
      });
  std::int64_t k = 40;
  Case found = first_violated(*kernel, DType::f64, k);
  while (extents_of(found).queries < 4 || extents_of(found).keys < 4 || extents_of(found).dk < 4)
    found = first_violated(*kernel, DType::f64, ++k);
  calls = 0;
  Case small = shrink(toy_property, *kernel, found, 100);
  return {std::move(small), calls};
}

TEST(Shrink, GoesStraightToTheSmallestCaseThatNoAnswerNeeds) {
  const auto [small, calls] = shrunk_failure([](const attest_problem&) { return true; }, toy_manifest());
  const Extents one{.batch = 1, .heads = 1, .kv_heads = 1, .queries = 1, .keys = 1, .dk = 1, .dv = 1};
  EXPECT_EQ(extents_of(small), one);
  EXPECT_FALSE(small.mask().present());
  EXPECT_LE(calls, 8);
  Manifest limited = toy_manifest();
  limited.head_dim_multiple = 8;
  const auto [wide, few] = shrunk_failure([](const attest_problem&) { return true; }, limited);
  EXPECT_EQ(extents_of(wide).dk, 8);
  EXPECT_EQ(extents_of(wide).queries, 1);
  EXPECT_LE(few, 8);
  // What it does need is kept.
  const auto [masked, more] =
      shrunk_failure([](const attest_problem& p) { return p.mask.data != nullptr; }, toy_manifest());
  EXPECT_TRUE(masked.mask().present());
  EXPECT_EQ(extents_of(masked), one);
  EXPECT_LE(more, 10);
}

TEST(Shrink, ReturnsACaseThatHoldsAsItIs) {
  const auto kernel = toy_kernel(Bug::none);
  const Case c = generate(toy_property, DType::f64, 1, 0);
  const Case same = shrink(toy_property, *kernel, c);
  EXPECT_EQ(hash_of(same), hash_of(c));
  EXPECT_FALSE(same.provenance.shrunk.has_value());
}

TEST(Shrink, StaysWithinTheLimitsOfTheManifest) {
  Manifest limited = toy_manifest();
  limited.head_dim_multiple = 8;
  limited.heads_multiple = 2;
  limited.any_scale = false;
  const auto kernel = toy_kernel(Bug::scale, limited);
  std::int64_t k = 0;
  const Case small = shrink(toy_property, *kernel, first_violated(*kernel, DType::f64, k));
  EXPECT_EQ(why_unsupported(limited, small), "");
  EXPECT_EQ(extents_of(small).dk, 8);
}

/// Keys left when a finding of 8 keys is shrunk whose verdict depends on their number alone.
std::int64_t keys_left(Verdict (*verdict)(Kernel&, const Case&)) {
  const auto kernel = toy_kernel(Bug::none);
  Property property = toy_property;
  property.check = verdict;
  Recipe r;
  r.keys = 8;
  return keys_of(shrink(property, *kernel, decode(r)));
}

Verdict violated_by(double utilisation) {
  return {.outcome = Outcome::violated, .utilisation = utilisation};
}

TEST(Shrink, KeepsAMargin) {
  EXPECT_EQ(keys_left([](Kernel&, const Case& c) { return violated_by(keys_of(c) >= 3 ? 100 : 1.5); }), 3);
  // A finding without that margin keeps what it has.
  EXPECT_EQ(keys_left([](Kernel&, const Case& c) { return violated_by(keys_of(c) >= 3 ? 1.5 : 1.4); }), 3);
  EXPECT_EQ(keys_left([](Kernel&, const Case& c) { return violated_by(keys_of(c) >= 3 ? 100 : 2); }), 1);
}

TEST(Shrink, DoesNotSlipFromOneKindOfViolationToAnother) {
  EXPECT_EQ(keys_left([](Kernel&, const Case& c) { return violated_by(keys_of(c) >= 3 ? INFINITY : 100); }), 3);
  EXPECT_EQ(keys_left([](Kernel&, const Case& c) {
              return violated(keys_of(c) >= 3 ? Violation::died : Violation::failed, "x");
            }),
            3);
  EXPECT_EQ(keys_left([](Kernel&, const Case& c) { return violated(Violation::died, keys_of(c) >= 3 ? "x" : "y"); }),
            1);
  EXPECT_EQ(keys_left([](Kernel&, const Case& c) {
              Verdict verdict = violated_by(100);
              verdict.violation = keys_of(c) >= 3 ? Violation::lse : Violation::bound;
              return verdict;
            }),
            3);
}

TEST(Shrink, KeepsTheHypothesesOfTheProperty) {
  Property square = toy_property;
  static constexpr Hypothesis is_square{"square", "M = N", [](const Case& c) -> std::string {
                                          return queries_of(c) == keys_of(c) ? "" : "is not square";
                                        }};
  static constexpr std::array stated{defining(is_square, "the test is about it")};
  square.hypotheses = stated;
  const auto kernel = toy_kernel(Bug::scale);
  for (std::int64_t k = 0, done = 0; done < 3; ++k) {
    const Case c = generate(square, DType::f64, 1, k);
    if (check_case(square, *kernel, c).outcome != Outcome::violated) continue;
    ++done;
    const Case small = shrink(square, *kernel, c);
    EXPECT_EQ(queries_of(small), keys_of(small));
    EXPECT_LE(keys_of(small), 2);
  }
}

TEST(Simplify, NeverMakesANumberWorse) {
  for (const double x : {0.0, -0.0, 1.0, -1.0, 0.1, -3.7, 1e30, 0x1.fffffep-3, 0x1p-140}) {
    for (const Simplification to : simplifications) {
      Tensor t(DType::f32, {1}, std::vector{x});
      const double before = t[0];
      const bool changed = simplify_one(t, 0, to);
      EXPECT_EQ(changed, complexity(DType::f32, t[0]) < complexity(DType::f32, before));
      EXPECT_TRUE(changed || std::bit_cast<std::uint64_t>(t[0]) == std::bit_cast<std::uint64_t>(before));
    }
  }
}

TEST(Simplify, OpensAMask) {
  Tensor boolean(DType::boolean, {2}, std::vector{0.0, 1.0}), additive(DType::f16, {2}, std::vector{-INFINITY, -2.5});
  EXPECT_TRUE(simplify_all(boolean, Simplification::zero));
  EXPECT_EQ(boolean.to_doubles(), (std::vector{1.0, 1.0}));
  EXPECT_TRUE(simplify_all(additive, Simplification::zero));
  EXPECT_EQ(additive.to_doubles(), (std::vector{0.0, 0.0}));
  EXPECT_FALSE(simplify_all(additive, Simplification::zero));
}

}  // namespace
}  // namespace attest
