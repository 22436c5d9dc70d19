// Slopes: what is drawn of them, what they go with, and that they stay with their heads, entries and sequences.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <vector>

#include "core/problem/fields.h"
#include "core/problem/sequences.h"
#include "core/problem/sight.h"
#include "properties/arrangement/sequences.h"
#include "properties/catalogue/property.h"
#include "properties/generators/draw.h"
#include "properties/road/fit_form.h"
#include "properties/road/simpler_cases.h"
#include "properties/test/catalogue/tampered.h"

namespace attest {
namespace {

std::vector<double> slopes_of(const Case& c, std::int64_t b) {
  std::vector<double> slopes;
  slopes.reserve(static_cast<std::size_t>(heads_of(c)));
  for (std::int64_t h = 0; h < heads_of(c); ++h) slopes.push_back(slope_of(c, b, h));
  return slopes;
}

bool is_a_power_of_two(double x) {
  int exponent = 0;
  return std::frexp(std::fabs(x), &exponent) == 0.5;
}

template <class Is>
bool all(const std::vector<double>& slopes, Is is) {
  return std::ranges::all_of(slopes, is);
}
template <class Is>
bool any(const std::vector<double>& slopes, Is is) {
  return std::ranges::any_of(slopes, is);
}

TEST(Alibi, IsDrawnAsThePaperHasItAndAsNoFormulaDoes) {
  std::int64_t paper = 0, of_three = 0, of_more = 0, unordered = 0, no_power = 0, negative = 0, mixed = 0, equal = 0,
               none = 0, tiny = 0, large = 0, own = 0;
  std::set<Causal> alignments;
  for (std::uint64_t seed = 0; seed < 4000; ++seed) {
    Draw draw(DType::f32, seed);
    const Case c = draw.attention().with_slopes();
    validate(c);
    ASSERT_TRUE(c[Slot::alibi_slopes].present()) << seed;
    EXPECT_EQ(c.mask_convention, MaskConvention::post_scale) << seed;
    if (c.causal == Causal::none) alignments.insert(c.alignment);
    own += c[Slot::alibi_slopes].shape()[0] > 1;
    const std::vector<double> slopes = slopes_of(c, 0);
    paper += slopes == std::vector{0x1p-4, 0x1p-8} || slopes == std::vector{0x1p-2, 0x1p-4, 0x1p-6, 0x1p-8};
    of_three += slopes == std::vector{0x1p-4, 0x1p-8, 0x1p-2};
    of_more += slopes.size() == 2 && all(slopes, is_a_power_of_two) && slopes[1] < slopes[0] && slopes[0] != 0x1p-4;
    unordered += std::ranges::is_sorted(slopes) && slopes.size() > 1 && slopes.front() > 0 && slopes[0] != slopes[1];
    no_power += any(slopes, [](double x) { return x != 0 && !is_a_power_of_two(x); });
    negative += all(slopes, [](double x) { return x < 0; });
    mixed += any(slopes, [](double x) { return x < 0; }) && any(slopes, [](double x) { return x > 0; });
    equal += slopes.size() > 1 && slopes[0] != 0 && all(slopes, [&](double x) { return x == slopes[0]; });
    none += all(slopes, [](double x) { return x == 0; });
    tiny += any(slopes, [](double x) { return x != 0 && std::fabs(x) < 0x1p-20; });
    large += any(slopes, [](double x) { return x > 32; });
  }
  EXPECT_EQ(alignments, (std::set{Causal::top_left, Causal::bottom_right}));
  for (const std::int64_t drawn : {paper, unordered, no_power, negative, mixed, equal, none, tiny, large, own})
    EXPECT_GT(drawn, 40);
  EXPECT_GT(of_three, 20);
  EXPECT_GT(of_more, 10);
}

TEST(Alibi, IsOfModelsInProductionShapes) {
  std::set<std::int64_t> heads;
  Stream stream(1);
  for (int n = 0; n < 200; ++n) heads.insert(heads_of_sloped_model(/*dk=*/128, stream));
  EXPECT_EQ(heads, (std::set<std::int64_t>{32, 40, 112}));
  EXPECT_EQ(heads_of_sloped_model(/*dk=*/64, stream), 16);
  // What no case of so few heads has by itself: the last slope of 112 heads is 2^(-8·95/128).
  std::int64_t sloped = 0, of_112 = 0;
  for (std::int64_t number = 0; number < 1500; ++number) {
    Recipe r;
    r.seed = static_cast<std::uint64_t>(number) * 0x9e3779b97f4a7c15U;
    make_production(r, default_shapes, number, LargeFor::law);
    if (r.heads > 4) continue;
    Stream own(r.seed);
    give_slopes(r, own);
    const Case c = decode(r);
    validate(c);
    sloped += c[Slot::alibi_slopes].present();
    const std::vector<double> slopes = slopes_of(c, 0);
    of_112 += any(slopes, [](double x) {
      // Exponents of the heads beyond 64: odd multiples of 1/16.
      const double sixteenths = -16 * std::log2(x);
      return x > 0 && x < 1 && std::fabs(sixteenths - std::round(sixteenths)) < 1e-5 &&
             std::llround(sixteenths) % 2 == 1;
    });
  }
  EXPECT_GT(sloped, 400);
  EXPECT_GT(of_112, 10);
}

TEST(Alibi, IsDrawnForTheDefinition) {
  const Manifest manifest = registered("builtin:flash")->manifest();
  std::int64_t sloped = 0, windowed = 0, cached = 0, packed = 0, dropped = 0, capped = 0;
  for (std::int64_t k = 0; k < 6000; ++k) {
    const Case c = project(generate(property_named("attention.oracle"), DType::f32, /*run_seed=*/1, k), manifest);
    validate(c);
    if (!c[Slot::alibi_slopes].present()) continue;
    ++sloped;
    windowed += has_variant(c, window_variant.name), cached += is_in_cache(c);
    packed += has_variant(c, packed_variant.name), dropped += has_variant(c, dropout_variant.name);
    capped += c.softcap > 0;
  }
  EXPECT_GT(sloped, 150);
  for (const std::int64_t beside : {windowed, packed, dropped, capped}) EXPECT_GT(beside, 2);
  EXPECT_GT(cached, 0);
}

TEST(Alibi, IsFittedToWhatTheManifestTakes) {
  const Manifest manifest = registered("builtin:flash")->manifest();
  Manifest without = manifest, shared = manifest, top_left = manifest, apart = manifest, pre_scale = manifest;
  without.variants.erase("alibi");
  shared.variants.at("alibi").per_batch = false;
  top_left.variants.at("alibi").alignment = {Causal::top_left};
  apart.variants.at("alibi").alignment = {Causal::top_left};
  apart.variants.at("window").alignment = {Causal::bottom_right};
  pre_scale.mask_conventions = {MaskConvention::pre_scale};
  std::int64_t bottom_right = 0, beside_windows = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    Draw draw(DType::f32, seed);
    DrawnAttention drawn = draw.attention();
    drawn.with_slopes();
    if (seed % 2 == 0) drawn.windowed();
    const Case c = drawn;
    bottom_right += c.causal == Causal::none && c.alignment == Causal::bottom_right;
    for (const Manifest* const m : {&without, &shared, &top_left, &apart, &pre_scale}) {
      Case fitted = c;
      fit_rest(fitted, *m);
      ASSERT_NO_THROW(validate(fitted)) << seed;
      if (fitted.operation == Operation::attention && m != &without) {
        EXPECT_EQ(why_unsupported(*m, fitted), "") << seed;
      }
      const bool sloped = fitted[Slot::alibi_slopes].present();
      if (m == &without) {
        EXPECT_FALSE(sloped) << seed;
      }
      if (m == &shared || m == &top_left) {
        EXPECT_TRUE(sloped) << seed;
      }
      if (m == &shared) {
        EXPECT_EQ(fitted[Slot::alibi_slopes].shape()[0], 1) << seed;
        EXPECT_EQ(slopes_of(fitted, 0), slopes_of(c, 0)) << seed;
      }
      if (m == &apart && c.causal == Causal::none && has_variant(c, window_variant.name)) {
        EXPECT_FALSE(sloped) << seed;
        EXPECT_EQ(fitted.alignment, Causal::bottom_right) << seed;
        ++beside_windows;
      }
    }
  }
  EXPECT_GT(bottom_right, 100);
  EXPECT_GT(beside_windows, 100);
}

TEST(Alibi, StaysWithItsSequences) {
  std::int64_t own = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Draw draw(DType::f32, seed);
    const Case c = draw.attention().at_least(1, 1).of_sequences().with_slopes();
    own += c[Slot::alibi_slopes].shape()[0] > 1;
    const Case one = packed(c, 1, 2), again = padded(one);
    validate(one), validate(again);
    for (std::int64_t s = 0; s < sequence_count(c); ++s) {
      EXPECT_EQ(slopes_of(alone(c, s), 0), slopes_of(c, sequence_of(c, s).entry)) << seed << " " << s;
      EXPECT_EQ(slopes_of(alone(one, s), 0), slopes_of(c, 0)) << seed << " " << s;
      EXPECT_EQ(slopes_of(alone(again, s), 0), slopes_of(c, 0)) << seed << " " << s;
    }
  }
  EXPECT_GT(own, 50);
}

TEST(Alibi, StaysValidInEveryStepToASimplerCase) {
  std::int64_t without = 0, shared = 0, level = 0, zero = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Draw draw(DType::f32, seed);
    DrawnAttention drawn = draw.attention();
    drawn.at_least(1, 2).with_slopes();
    if (seed % 3 == 0) drawn.windowed();
    const Case c = drawn;
    for (const Step& step : steps_from(c)) {
      Case simpler = c;
      if (!step(simpler)) continue;
      ASSERT_NO_THROW(validate(simpler)) << seed;
      without += !has_variant(simpler, alibi_variant.name);
      if (!has_variant(simpler, alibi_variant.name)) continue;
      shared +=
          batch_of(simpler) > 1 && c[Slot::alibi_slopes].shape()[0] > 1 && simpler[Slot::alibi_slopes].shape()[0] == 1;
      const std::vector<double> before = slopes_of(c, 0), after = slopes_of(simpler, 0);
      level += after.size() > 1 && any(before, [&](double x) { return x != before[0]; }) && after[0] == before[0] &&
               all(after, [&](double x) { return x == after[0]; });
      zero += any(before, [](double x) { return x != 0; }) && all(after, [](double x) { return x == 0; });
    }
  }
  EXPECT_GT(without, 50);
  EXPECT_GT(shared, 5);
  EXPECT_GT(level, 20);
  EXPECT_GT(zero, 50);
}

}  // namespace
}  // namespace attest
