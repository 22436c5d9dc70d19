// The long cases of attention.oracle: they are there, they are judged, and what goes wrong from some number of keys on
// shows in them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "core/oracle/oracle.h"
#include "core/problem/selection.h"
#include "core/problem/sight.h"
#include "core/test/names.h"
#include "properties/catalogue/property.h"
#include "properties/faults/faults.h"
#include "properties/test/catalogue/tampered.h"

namespace attest {
namespace {

constexpr DType all_dtypes[] = {DType::f64, DType::f32, DType::f16, DType::bf16, DType::f8_e4m3, DType::f8_e5m2};
constexpr DType wide_dtypes[] = {DType::f64, DType::f32, DType::f16, DType::bf16};

const Property& oracle() {
  static const Property& property = *properties_matching("attention.oracle").at(0);
  return property;
}

/// Those of the first 100 cases that are long.
std::vector<Case> long_cases(DType dtype, std::uint64_t seed) {
  std::vector<Case> found;
  for (std::int64_t k = 0; k < 100; ++k) {
    Case c = generate(oracle(), dtype, seed, k);
    if (c.provenance.kinds.value().find("overrides:yes") != std::string::npos && keys_of(c) >= 300)
      found.push_back(std::move(c));
  }
  return found;
}

const PlantedFault& fault_named(std::string_view name) {
  return *std::ranges::find(planted_faults(), name, &PlantedFault::name);
}

/// Attention as it should be: one pass over the row, sums in f32.
std::unique_ptr<Kernel> right_kernel() {
  return without_fault(fault_named("long-rows-half-again"));
}

bool hides(const Case& c) {
  const std::int64_t elements = c.mask().present() ? c.mask().elements() : 0;
  for (std::int64_t e = 0; e < elements; ++e)
    if (c.mask().dtype() == DType::boolean ? c.mask()[e] == 0 : std::isinf(c.mask()[e])) return true;
  return false;
}

TEST(LongCases, AreADozenAmongTheFirstHundredInEveryDtype) {
  for (const DType dtype : all_dtypes) {
    const std::vector<Case> cases = long_cases(dtype, 3);
    ASSERT_EQ(cases.size(), 12U) << name_of(dtype);
    std::set<std::int64_t> lengths;
    int causal = 0, masked = 0, additive = 0, padded = 0, grouped = 0, decoding = 0, several_rows = 0;
    for (const Case& c : cases) {
      ASSERT_NO_THROW(validate(c));
      const Extents e = extents_of(c);
      lengths.insert(e.keys);
      causal += c.causal != Causal::none;
      masked += hides(c);
      additive += c.mask().present() && c.mask().dtype() != DType::boolean;
      padded += c.provenance.kinds.value().find("mask:padding") != std::string::npos;
      grouped += e.kv_heads < e.heads;
      decoding += e.queries == 1;
      several_rows += e.queries >= 300;
      EXPECT_NE(c.provenance.kinds.value().find("shape:long"), std::string::npos);
    }
    EXPECT_EQ(lengths.size(), 12U) << "no length twice";
    EXPECT_EQ(*lengths.begin(), 300);
    EXPECT_EQ(*lengths.rbegin(), 8192);
    for (const int count : {causal, masked, additive, padded, grouped, decoding, several_rows})
      EXPECT_GE(count, 1) << name_of(dtype);
    EXPECT_GE(masked, 3);
    EXPECT_GE(decoding, 5);
  }
}

TEST(LongCases, AreNoOthersInAnotherRunOfTheSeedAndOfAnotherSeed) {
  const std::vector<Case> once = long_cases(DType::f32, 3), again = long_cases(DType::f32, 3),
                          other = long_cases(DType::f32, 4);
  ASSERT_EQ(other.size(), once.size());
  for (std::size_t i = 0; i < once.size(); ++i) {
    EXPECT_EQ(once[i], again[i]);
    EXPECT_FALSE(once[i].k() == other[i].k());
    EXPECT_EQ(extents_of(once[i]), extents_of(other[i])) << "a run of 100 cases reaches the same in every seed";
  }
}

TEST(LongCases, AreSharedByShards) {
  for (std::int64_t shards = 2; shards <= 12; ++shards) {
    std::vector<int> share(static_cast<std::size_t>(shards), 0);
    for (std::int64_t k = 0; k < 100; ++k)
      if (keys_of(generate(oracle(), DType::f16, 1, k)) > 512) ++share[static_cast<std::size_t>(k % shards)];
    const auto [least, most] = std::ranges::minmax(share);
    EXPECT_LE(most - least, 2) << shards;
  }
}

TEST(LongCases, MeetTheLimitsOfAManifest) {
  Manifest manifest = right_kernel()->manifest();
  manifest.max_keys = 512;
  manifest.max_queries = 128;
  manifest.max_heads = 2;
  manifest.grouped_query = false;
  manifest.head_dim_multiple = 8;
  for (const Case& c : long_cases(DType::f32, 1)) {
    const Case limited = project(c, manifest);
    EXPECT_EQ(why_unsupported(manifest, limited), "");
    EXPECT_EQ(keys_of(limited), std::min<std::int64_t>(keys_of(c), 512));
  }
}

TEST(LongCases, AreJudgedAndHeldOfARightKernel) {
  for (const DType dtype : wide_dtypes) {
    const auto kernel = right_kernel();
    for (std::uint64_t seed = 1; seed <= 2; ++seed) {
      Reach reach;
      for (const Case& c : long_cases(dtype, seed)) {
        const Verdict verdict = check_case(oracle(), *kernel, c);
        EXPECT_EQ(verdict.outcome, Outcome::held) << name_of(dtype) << " N " << keys_of(c) << ": " << verdict.reason;
        ASSERT_TRUE(verdict.reach.has_value());
        EXPECT_EQ(verdict.reach->keys, keys_of(c));
        reach.merge(*verdict.reach);
      }
      EXPECT_EQ(reach, (Reach{320, 8192, 256, 256, 8, 2, 2}));
    }
  }
}

/// Whether what the right kernel makes of a case without some keys lies outside of the bound of the whole case.
bool are_missed(Kernel& kernel, const Case& c, std::int64_t first, std::int64_t count) {
  Selection rest = everything(c);
  std::erase_if(rest.keys, [&](std::int64_t j) { return j >= first && j < first + count; });
  const Reply reply = kernel.run(select(c, rest), c.dtype(), false);
  return judge_attention(c, reply.out, {}, kernel.manifest().arithmetic_for(c)).outcome == Outcome::violated;
}

// Scores differ, and no key has all the weight: what goes missing behind the first 600 keys is missed. Of f32 and of
// thousands of keys one by one may hide within the bound of the sum, which grows with their number; a tile does not.
TEST(LongCases, MissKeysThatGoMissing) {
  const auto kernel = right_kernel();
  for (const DType dtype : wide_dtypes) {
    for (const Case& c : long_cases(dtype, 1)) {
      const std::int64_t keys = keys_of(c), step = std::max<std::int64_t>(1, keys / 40);
      if (keys < 640 || c.mask().present()) continue;
      int ones = 0, tiles = 0, tried = 0;
      for (std::int64_t j = 600; j < keys; j += step, ++tried) {
        ones += dtype == DType::f64 || (dtype == DType::f32 && keys < 4096) ? are_missed(*kernel, c, j, 1) : 0;
        tiles += are_missed(*kernel, c, j, 128);
      }
      const std::string where = fmt::format("{} N {} of {}", name_of(dtype), keys, tried);
      if (dtype == DType::f64) {
        EXPECT_EQ(ones, tried) << where;
      }
      if (dtype == DType::f32 && keys < 4096) {
        EXPECT_GE(ones, tried / 2) << where;
      }
      EXPECT_GE(tiles, tried * 9 / 10) << where;
      EXPECT_TRUE(are_missed(*kernel, c, keys - 1, 1)) << where;
    }
  }
}

class EveryLength : public testing::TestWithParam<const char*> {};

TEST_P(EveryLength, ShowsInThemInEveryDtypeAndSeed) {
  for (const DType dtype : wide_dtypes) {
    for (std::uint64_t seed = 1; seed <= 8; ++seed) {
      const auto kernel = registered("fault:" + std::string(GetParam()));
      int violated = 0;
      for (const Case& c : long_cases(dtype, seed))
        violated += check_case(oracle(), *kernel, c).outcome == Outcome::violated;
      EXPECT_GE(violated, 2) << name_of(dtype) << " seed " << seed;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Faults, EveryLength,
                         testing::Values("long-rows-half-again", "last-key-of-long-rows", "second-tile-skipped",
                                         "partial-tile-of-long-rows"),
                         [](const auto& of) { return test::name_of_test(of.param); });

TEST(LongCases, ShrinkToTheLengthFromWhichOnItGoesWrong) {
  const auto kernel = registered("fault:long-rows-half-again");
  for (const Case& c : long_cases(DType::f32, 1)) {
    if (keys_of(c) <= 600) continue;
    const Case small = shrink(oracle(), *kernel, c, /*budget=*/300);
    const Extents e = extents_of(small);
    EXPECT_EQ(e.keys, 601) << "from " << keys_of(c);
    EXPECT_EQ(e.queries * e.heads * e.batch * e.dk * e.dv, 1) << "from " << keys_of(c);
  }
}

}  // namespace
}  // namespace attest
