// Keys in pages and rows of a cache: as the property asks and the manifest takes them.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string_view>

#include "core/problem/fields.h"
#include "core/problem/kv_cache.h"
#include "properties/road/fit_form.h"
#include "properties/road/road.h"
#include "properties/test/catalogue/tampered.h"

namespace attest {
namespace {

struct Seen {
  std::int64_t paged = 0, indexed = 0, neither = 0, unfit = 0;
};

/// Of the first 1,000 cases of a property, projected onto the manifest.
Seen seen(std::string_view property, const Manifest& manifest) {
  Seen all;
  for (std::int64_t k = 0; k < 1000; ++k) {
    const Case c = project(generate(property_named(property), DType::f32, /*run_seed=*/1, k), manifest);
    if (!why_unsupported(manifest, c).empty()) ++all.unfit;
    ++(c[Slot::page_table].present() ? all.paged : c[Slot::cache_index].present() ? all.indexed : all.neither);
  }
  return all;
}

TEST(CacheForm, IsDrawnForTheDefinitionWhereTheManifestListsIt) {
  Manifest manifest = registered("builtin:flash")->manifest();
  const Seen both = seen("attention.oracle", manifest);
  EXPECT_GT(both.paged, 0);
  EXPECT_GT(both.indexed, 0);
  EXPECT_GT(both.neither, 700);
  EXPECT_EQ(both.unfit, 0);
  manifest.variants.erase("paged"), manifest.variants.erase("cache_index");
  const Seen none = seen("attention.oracle", manifest);
  EXPECT_EQ(none.paged + none.indexed, 0);
}

// Masks, which the kernel takes, but in no cache.
TEST(CacheForm, IsNotThatOfACaseThatTheKernelTakesWithoutOneAlone) {
  Manifest manifest = registered("builtin:flash")->manifest();
  for (const char* const cache : {"paged", "append", "cache_index"})
    manifest.variants.at(cache).excluded = {Feature::mask};
  int taken = 0;
  for (std::int64_t k = 0; k < 2000; ++k) {
    Case c = generate(property_named("attention.oracle"), DType::f32, 1, k);
    if (!c.mask().present() || !c[Slot::kv_lengths].present() || !why_unsupported(manifest, c).empty()) continue;
    fit_caches(c, manifest);
    EXPECT_EQ(why_unsupported(manifest, c), "") << k;
    ++taken;
  }
  EXPECT_GT(taken, 10);
}

TEST(CacheForm, HasThePagesThatTheManifestTakes) {
  Manifest manifest = registered("builtin:flash")->manifest();
  manifest.variants.at("paged").page_sizes = {16};
  manifest.variants.at("paged").two_tables = false;
  for (std::int64_t k = 0; k < 60; ++k) {
    const Case c = project(generate(property_named("paged.equals-contiguous"), DType::f32, 1, k), manifest);
    ASSERT_TRUE(c[Slot::page_table].present()) << k;
    EXPECT_EQ(page_size_of(c), 16) << k;
    EXPECT_FALSE(c[Slot::page_table_v].present()) << k;
    EXPECT_EQ(why_unsupported(manifest, c), "") << k;
  }
}

TEST(CacheForm, IsThatOfEveryCaseWhereTheManifestRequiresIt) {
  Manifest manifest = registered("builtin:flash")->manifest();
  manifest.required = {Feature::paged};
  const Seen pages = seen("attention.oracle", manifest);
  EXPECT_EQ(pages.paged, 1000 - pages.unfit);
  EXPECT_LT(pages.unfit, 100);
  manifest.required = {Feature::cache_index};
  const Seen rows = seen("attention.oracle", manifest);
  EXPECT_EQ(rows.indexed, 1000 - rows.unfit);
  EXPECT_LT(rows.unfit, 100);
}

TEST(CacheForm, BringsNewKeysWhereTheManifestListsThem) {
  Manifest manifest = registered("builtin:flash")->manifest();
  const auto with_new_keys = [&](std::string_view property, std::int64_t most) {
    std::int64_t count = 0;
    for (std::int64_t k = 0; k < 1000; ++k) {
      const Case c = project(generate(property_named(property), DType::f32, 1, k), manifest);
      EXPECT_EQ(why_unsupported(manifest, c), "") << k;
      EXPECT_LE(c.append, most) << k;
      EXPECT_NO_THROW(validate(c)) << k;
      count += c.append > 0;
    }
    return count;
  };
  EXPECT_GT(with_new_keys("attention.oracle", 1 << 20), 3);
  EXPECT_EQ(with_new_keys("cache.append", 1 << 20), 1000);
  manifest.variants.at("append").max_tokens = 1;
  EXPECT_GT(with_new_keys("attention.oracle", 1), 3);
  manifest.variants.erase("append");
  EXPECT_EQ(with_new_keys("attention.oracle", 0), 0);
}

TEST(CacheForm, IsNotThatOfLawsThatDoNotSpeakOfIt) {
  const Manifest manifest = registered("builtin:flash")->manifest();
  for (const std::string_view property :
       {"varlen.equals-separate", "cache.capacity", "attention.permutation-equivariance"})
    EXPECT_EQ(seen(property, manifest).neither, 1000) << property;
  EXPECT_EQ(seen("cache.index", manifest).indexed, 1000);
}

TEST(CacheForm, OfNoKernelThatListsNone) {
  bool sent = false;
  Tampered kernel = asked_otherwise([&](Case& c) { sent = sent || is_in_cache(c); });
  for (const char* const name : {"paged", "cache_index", "append"}) kernel.manifest().variants.erase(name);
  WatchedKernel watched(kernel);
  for (std::int64_t k = 0; k < 100; ++k)
    static_cast<void>(walk({}, property_named("attention.oracle"), watched,
                           [&] { return generate(property_named("attention.oracle"), DType::f64, 1, k); }));
  EXPECT_FALSE(sent);
  EXPECT_EQ(
      check_case(property_named("paged.boundary"), kernel, generate(property_named("paged.boundary"), DType::f64, 1, 0))
          .outcome,
      Outcome::skipped);
}

}  // namespace
}  // namespace attest
