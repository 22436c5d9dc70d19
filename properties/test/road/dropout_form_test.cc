// Dropout: what is drawn of it, what it goes with, and that it stays with its rows, keys and sequences.
#include <gtest/gtest.h>

#include <cstdint>
#include <map>

#include "core/call/drawn_keep.h"
#include "core/problem/fields.h"
#include "core/problem/sequences.h"
#include "core/problem/sight.h"
#include "properties/arrangement/sequences.h"
#include "properties/catalogue/property.h"
#include "properties/generators/draw.h"
#include "properties/road/simpler_cases.h"
#include "properties/test/catalogue/tampered.h"

namespace attest {
namespace {

/// Of the mask of a head.
struct Plane {
  std::int64_t kept = 0, whole_keys = 0, whole_rows = 0;  ///< weights that are kept; keys and rows of which none is
};
Plane plane_of(const Tensor& keep, std::int64_t b, std::int64_t h) {
  const std::int64_t M = keep.shape()[2], N = keep.shape()[3];
  Plane plane;
  for (std::int64_t i = 0; i < M; ++i) {
    std::int64_t kept = 0;
    for (std::int64_t j = 0; j < N; ++j) kept += keep.at(b, h, i, j) != 0;
    plane.kept += kept, plane.whole_rows += kept == 0;
  }
  for (std::int64_t j = 0; j < N; ++j) {
    std::int64_t kept = 0;
    for (std::int64_t i = 0; i < M; ++i) kept += keep.at(b, h, i, j) != 0;
    plane.whole_keys += kept == 0;
  }
  return plane;
}

TEST(Dropout, IsDrawnAsGeneratorsDropAndAsNoneDoes) {
  std::int64_t all = 0, nothing = 0, a_key = 0, a_row = 0, one_of_each_row = 0, own_entries = 0, own_heads = 0;
  std::map<double, int> rates;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    Draw draw(DType::f32, seed);
    const Case c = draw.attention().at_least(2, 3).with_dropout();
    validate(c);
    const Tensor& keep = c[Slot::keep];
    ASSERT_TRUE(keep.present()) << seed;
    ++rates[c.dropout_p];
    const std::int64_t M = queries_of(c), N = keys_of(c);
    const Plane plane = plane_of(keep, 0, 0);
    all += plane.kept == M * N, nothing += plane.kept == 0;
    a_key += plane.whole_keys == 1 && plane.whole_rows == 0, a_row += plane.whole_rows == 1 && plane.whole_keys == 0;
    one_of_each_row += plane.kept == M && plane.whole_rows == 0;
    own_entries += batch_of(c) > 1 && keep.shape()[0] > 1, own_heads += heads_of(c) > 1 && keep.shape()[1] > 1;
  }
  for (const std::int64_t drawn : {all, nothing, a_key, a_row, one_of_each_row, own_entries, own_heads})
    EXPECT_GT(drawn, 40);
  for (const double rate : {0.0, 0.1, 0.25, 0.5}) EXPECT_GT(rates[rate], 100) << rate;
  EXPECT_GT(rates.size(), 100U);
}

TEST(Dropout, IsDrawnForTheDefinitionAndBesideNoCache) {
  const Manifest manifest = registered("builtin:flash")->manifest();
  std::int64_t dropped = 0, cached = 0;
  for (std::int64_t k = 0; k < 2000; ++k) {
    const Case c = project(generate(property_named("attention.oracle"), DType::f32, /*run_seed=*/1, k), manifest);
    validate(c);
    const bool drops = has_variant(c, dropout_variant.name);
    dropped += drops, cached += is_in_cache(c);
    EXPECT_FALSE(drops && is_in_cache(c)) << k;
  }
  EXPECT_GT(dropped, 50);
  EXPECT_GT(cached, 10);
}

// A mask that the kernel draws is left out of what its backward pass is asked for where that one does not draw.
TEST(Dropout, OfTheKernelsOwnStaysWhereTheBackwardPassDrawsIt) {
  Case c = generate(property_named("dropout.same-mask"), DType::f32, /*run_seed=*/1, /*k=*/0);
  c.provenance.property.reset();
  Manifest manifest = registered("builtin:flash")->manifest();
  EXPECT_TRUE(draws_own_dropout(project(c, manifest)));
  manifest.backward_terms.own_dropout = false;
  const Case without = project(c, manifest);
  EXPECT_TRUE(asks_for_gradients(without));
  EXPECT_FALSE(has_variant(without, dropout_variant.name));
  EXPECT_TRUE(draws_own_dropout(project(forward_of(c), manifest)));
}

TEST(Dropout, IsLeftOutWhereTheManifestDoesNotTakeIt) {
  Manifest without = registered("builtin:flash")->manifest(), in_pages = without, own = without;
  without.variants.erase("dropout");
  in_pages.required = {Feature::paged};
  own.variants.at("dropout").given = false, own.variants.at("dropout").own = true;
  for (const Manifest& manifest : {without, in_pages, own}) {
    std::int64_t fits = 0;
    for (std::int64_t k = 0; k < 300; ++k) {
      const Case c = project(generate(property_named("attention.oracle"), DType::f32, /*run_seed=*/1, k), manifest);
      fits += why_unsupported(manifest, c).empty();
      EXPECT_FALSE(c[Slot::keep].present()) << k;
    }
    EXPECT_GT(fits, 150);
  }
}

/// Do two cases of one sequence each drop the same?
bool drop_the_same(const Case& a, const Case& b) {
  for (std::int64_t h = 0; h < heads_of(a); ++h)
    for (std::int64_t i = 0; i < queries_of(a); ++i)
      for (std::int64_t j = 0; j < keys_of(a); ++j)
        if (keeps(a, 0, h, i, j) != keeps(b, 0, h, i, j)) return false;
  return true;
}

TEST(Dropout, StaysWithItsSequences) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Draw draw(DType::f32, seed);
    const Case c = draw.attention().at_least(1, 1).of_sequences().with_dropout();
    const Case one = packed(c, 1, 2), again = padded(one);
    validate(one), validate(again);
    for (std::int64_t s = 0; s < sequence_count(c); ++s) {
      const Case own = alone(c, s);
      EXPECT_TRUE(drop_the_same(own, alone(one, s))) << seed << " " << s;
      EXPECT_TRUE(drop_the_same(own, alone(again, s))) << seed << " " << s;
    }
  }
}

TEST(Dropout, StaysValidInEveryStepToASimplerCase) {
  std::int64_t without = 0, own_without_rate = 0, no_rate = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Draw draw(DType::f32, seed);
    Case c = draw.attention().at_least(1, 2).with_dropout();
    // Rates near 1 are nearer to that than to any power of two below it.
    if (seed % 4 == 0) c.dropout_p = 0.9;
    for (const Step& step : steps_from(c)) {
      Case simpler = c;
      if (!step(simpler)) continue;
      ASSERT_NO_THROW(validate(simpler)) << seed;
      without += !has_variant(simpler, dropout_variant.name);
      no_rate += simpler[Slot::keep].present() && c.dropout_p > 0 && simpler.dropout_p == 0;
    }
    // Where the kernel draws what it drops, a seed goes with the rate.
    Case own = c;
    own[Slot::keep] = Tensor();
    if (own.dropout_p == 0) continue;
    own.dropout_seed = 7;
    for (const Step& step : steps_from(own))
      if (Case simpler = own; step(simpler)) {
        ASSERT_NO_THROW(validate(simpler)) << seed;
        own_without_rate += simpler.dropout_p == 0 && simpler.dropout_seed == 0;
      }
  }
  EXPECT_GT(without, 50);
  EXPECT_GT(no_rate, 50);
  EXPECT_GT(own_without_rate, 50);
}

}  // namespace
}  // namespace attest
