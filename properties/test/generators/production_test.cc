// Production shapes: which cases have them, that they reach what models and tiles need, that they cost what is said,
// and that their numbers show the mistakes that tiles make.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>

#include "core/bound/error_bound.h"
#include "core/isolation/pace.h"
#include "core/problem/descale.h"
#include "core/problem/selection.h"
#include "properties/arrangement/multihead_cases.h"
#include "properties/catalogue/property.h"
#include "properties/road/case_budget.h"

namespace attest {
namespace {

const Property& oracle() {
  return property_named("attention.oracle");
}

/// The production cases among the first `cases` of attention.oracle, as extents.
std::vector<Extents> drawn(std::int64_t cases, std::uint64_t seed) {
  std::vector<Extents> found;
  for (std::int64_t k = 0; k < cases; ++k) {
    if (production_number(default_shapes, k, period_of_definition))
      found.push_back(extents_of(generate(oracle(), DType::bf16, seed, k, default_shapes)));
  }
  return found;
}

TEST(Production, OneOfEachPeriodInARowHasIt) {
  for (const std::int64_t period : {period_of_definition, period_of_tile_laws, period_of_laws}) {
    std::set<std::int64_t> places;
    for (std::int64_t number = 0; number < 64; ++number) {
      int found = 0;
      for (std::int64_t k = number * period; k < (number + 1) * period; ++k) {
        const auto is = production_number(default_shapes, k, period);
        if (!is) continue;
        EXPECT_EQ(*is, number);
        ++found;
        places.insert(k % period);
      }
      EXPECT_EQ(found, 1);
    }
    EXPECT_GE(places.size(), 6U) << "every shard has its part";
  }
  EXPECT_FALSE(production_number(small_shapes, 0, period_of_definition));
  EXPECT_EQ(production_number({.large = LargeCases::all, .given = {}}, 5, period_of_laws), 5);
}

TEST(Production, LeavesTheOtherCasesAsTheyAre) {
  for (std::int64_t k = 0; k < 64; ++k) {
    if (production_number(default_shapes, k, period_of_definition)) continue;
    EXPECT_EQ(generate(oracle(), DType::f32, 1, k, default_shapes), generate(oracle(), DType::f32, 1, k));
  }
}

TEST(Production, FollowsFromTheSeedAlone) {
  for (std::int64_t k = 0; k < 48; ++k)
    EXPECT_EQ(generate(oracle(), DType::f16, 7, k, default_shapes),
              generate(oracle(), DType::f16, 7, k, default_shapes));
}

/// What a shape must have to be of a kind that kernels go wrong in.
struct Kind {
  std::string_view what;
  std::function<bool(const Extents&)> is;
};

const Kind kinds[] = {
    {"512 to 1000 keys", [](const Extents& e) { return e.keys >= 512 && e.keys <= 1000; }},
    {"512 keys and more, with more than 4 columns", [](const Extents& e) { return e.keys >= 512 && e.dk > 4; }},
    {"both lengths multiples of 64, of two tiles",
     [](const Extents& e) { return e.queries % 64 == 0 && e.keys % 64 == 0 && e.queries > 64 && e.keys > 64; }},
    {"two tiles of 128 and a partial one of both",
     [](const Extents& e) { return e.queries > 128 && e.keys > 128 && e.queries % 128 != 0 && e.keys % 128 != 0; }},
    {"more than 8 heads", [](const Extents& e) { return e.heads > 8; }},
    {"three heads to a group and two groups",
     [](const Extents& e) { return e.kv_heads >= 2 && e.heads == 3 * e.kv_heads; }},
    {"four batch entries", [](const Extents& e) { return e.batch >= 4; }},
    {"more queries than keys by a tile of 64",
     [](const Extents& e) { return e.queries - e.keys >= 64 && e.keys >= 64; }},
    {"as many queries as keys, more than 64", [](const Extents& e) { return e.queries == e.keys && e.keys >= 65; }},
    {"values narrower than keys", [](const Extents& e) { return e.dk > 64 && e.dv < e.dk; }},
    {"80 columns", [](const Extents& e) { return e.dk == 80; }},
    {"96 columns", [](const Extents& e) { return e.dk == 96; }},
    {"112 columns", [](const Extents& e) { return e.dk == 112; }},
    {"160 columns", [](const Extents& e) { return e.dk == 160; }},
    {"192 columns", [](const Extents& e) { return e.dk == 192; }},
    {"256 columns", [](const Extents& e) { return e.dk == 256; }},
    {"one query on 4096 keys and more", [](const Extents& e) { return e.queries == 1 && e.keys >= 4096; }},
    {"a chunk on a longer cache", [](const Extents& e) { return e.queries >= 32 && e.keys - e.queries >= 128; }}};

TEST(Production, ReachesWhatModelsAndTilesNeedInEverySeed) {
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    const std::vector<Extents> shapes = drawn(2000, seed);
    for (const Kind& kind : kinds) EXPECT_TRUE(std::ranges::any_of(shapes, kind.is)) << kind.what << ", seed " << seed;
  }
}

// What a backward pass gets wrong in its third tile shows in no law's size.
TEST(Production, OfGradientsReachesManyRowsAndKeys) {
  int rows = 0, keys = 0, both = 0, masked = 0, both_large = 0;
  for (std::int64_t k = 0; k < 2000; ++k) {
    const Case c = generate(property_named("backward.oracle-dk"), DType::f32, 1, k, default_shapes);
    const Extents e = extents_of(c);
    rows += e.queries > 256, keys += e.keys > 1024, both += e.queries > 192 && e.keys > 192;
    masked += e.queries > 192 && e.keys > 64 && c.mask().present();
    both_large += e.queries > 512 && e.keys > 512;
  }
  EXPECT_GE(both_large, 7) << "a kernel that loses a tile of one beyond 512 of both answers right otherwise";
  EXPECT_GE(rows, 5);
  EXPECT_GE(keys, 5);
  EXPECT_GE(both, 5);
  EXPECT_GE(masked, 2);
}

TEST(Production, OfGradientsHasBothLengthsLargeInAShortRun) {
  for (const char* const name : {"backward.oracle-dq", "backward.oracle-dk", "backward.oracle-dv"}) {
    int both = 0;
    for (std::int64_t k = 0; k < 32; ++k) {
      const Extents e = extents_of(generate(property_named(name), DType::bf16, 3, k, default_shapes));
      both += e.queries > 512 && e.keys > 512 ? 1 : 0;
    }
    EXPECT_EQ(both, 1) << name;
  }
}

// Of gradients and laws, whose cases are smaller, heads were the first to go: more than one pack of 8 of them with some
// over, and odd groups of which there are several, were one case in two thousand.
TEST(Production, OfLawsAndGradientsHasManyHeads) {
  for (const LargeFor what : {LargeFor::law, LargeFor::gradients}) {
    int over_eight = 0, odd_groups = 0;
    for (std::int64_t number = 0; number < 4000; ++number) {
      Recipe r;
      r.seed = static_cast<std::uint64_t>(number) * 0x9e3779b97f4a7c15U;
      make_production(r, default_shapes, number, what);
      over_eight += r.heads > 8 && r.heads % 8 != 0 ? 1 : 0;
      odd_groups += r.kv_heads > 1 && r.heads / r.kv_heads % 2 == 1 && r.heads > r.kv_heads ? 1 : 0;
    }
    EXPECT_GE(over_eight, 150);
    EXPECT_GE(odd_groups, 100);
  }
}

TEST(Production, ReachesMoreThanSixteenBitsCount) {
  const std::vector<Extents> shapes = drawn(500, 1);
  EXPECT_TRUE(std::ranges::any_of(shapes, [](const Extents& e) { return e.keys > 65536; }));
  EXPECT_TRUE(std::ranges::any_of(shapes, [](const Extents& e) { return e.batch * e.heads > 65536; }));
}

TEST(Production, CostsAboutAThirdOfARun) {
  double small = 0, large = 0;
  for (const Property* property : catalogue()) {
    if (property->operation != Operation::attention) continue;
    for (std::int64_t k = 0; k < period_of_laws; ++k) {
      const Case c = generate(*property, DType::f32, 1, k, default_shapes);
      const bool is_small = c == generate(*property, DType::f32, 1, k);
      (is_small ? small : large) += cost_of(c);
    }
  }
  EXPECT_GE(large / (large + small), 0.2);
  EXPECT_LE(large / (large + small), 0.5);
}

// What has no answer in time is violated where it is small alone.
TEST(Production, IsWhatATimeLimitCallsLarge) {
  int small = 0, beyond = 0;
  for (const Property* property : catalogue()) {
    for (std::int64_t k = 0; k < 100; ++k) {
      ++small;
      beyond += cost_of(generate(*property, DType::f32, 1, k)) > small_cost ? 1 : 0;
    }
  }
  EXPECT_LT(100 * beyond, small);
}

TEST(Production, RepeatedQueriesAreNoTileApart) {
  Recipe r;
  r.large = true;
  r.queries = 300, r.keys = 3, r.dk = 4, r.heads = 2;
  r.distinct_queries = distinct_queries;
  const Case c = decode(r);
  std::set<std::vector<double>> rows;
  const auto row = [&](std::int64_t i) {
    std::vector<double> values;
    values.reserve(4);
    for (std::int64_t e = 0; e < 4; ++e) values.push_back(c.q()[i * 4 + e]);
    return values;
  };
  for (std::int64_t i = 0; i < 600; ++i) rows.insert(row(i));
  EXPECT_EQ(rows.size(), 2U * distinct_queries);
  for (std::int64_t i = 0; i < 300; ++i) {
    for (const std::int64_t apart : {1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 256}) {
      if (i + apart >= 300) break;
      EXPECT_NE(row(i), row(i + apart)) << i << " and " << apart;
    }
  }
}

// Windows of models, and nothing else of a case: kernels without windows are sent what they were sent before.
TEST(Production, HasTheWindowsOfModels) {
  const std::set<std::int64_t> known{127, 511, 1023, 2046, 4095};
  std::set<std::int64_t> seen;
  int windowed = 0;
  for (std::int64_t number = 0; number < 4000; ++number) {
    Recipe r;
    r.seed = static_cast<std::uint64_t>(number) * 0x9e3779b97f4a7c15U;
    make_production(r, default_shapes, number, LargeFor::definition);
    Recipe before = r;
    Stream stream(r.seed);
    if (!give_model_window(r, stream)) {
      EXPECT_LE(r.keys, 128);
      continue;
    }
    ++windowed;
    const auto left = static_cast<std::int64_t>(argument_in(r.arguments, &Problem::window_left));
    EXPECT_TRUE(known.contains(left)) << left;
    EXPECT_LT(left + 1, r.keys) << "hides something of the last row";
    seen.insert(left);
    EXPECT_EQ(argument_in(r.arguments, &Problem::window_right), r.causal == Causal::none ? 0 : -1);
    // The one model with a window so short has sinks, and no other.
    EXPECT_EQ(r.sinks, left == 127) << left;
    // That of Phi-3, whose heads these are.
    if (r.heads / r.kv_heads == 1 && r.dk == 96 && r.keys > 2047) {
      EXPECT_EQ(left, 2046);
    }
    before.arguments = r.arguments;
    EXPECT_EQ(axis_extents(before), axis_extents(r));
    EXPECT_EQ(before.causal, r.causal);
  }
  EXPECT_EQ(seen, known);
  EXPECT_GT(windowed, 1500);
}

TEST(Production, SendsItsWindowsToKernelsThatListThem) {
  std::set<std::int64_t> lefts;
  for (std::int64_t k = 0; k < 4000; ++k) {
    if (!production_number(default_shapes, k, period_of_definition)) continue;
    const Case c = generate(oracle(), DType::bf16, 1, k, default_shapes);
    if (c.window_left > 0 && (c.window_right <= 0)) lefts.insert(c.window_left);
  }
  int models = 0;
  for (const std::int64_t left : {127, 511, 1023, 2046, 4095}) models += lefts.contains(left) ? 1 : 0;
  EXPECT_GE(models, 4);
}

// Reading all weights costs the square of the keys: of 67,000 of them it took a minute.
TEST(Production, HasFewKeysWhereAllWeightsAreRead) {
  const Shapes all{.large = LargeCases::all, .given = {}};
  for (const char* const name : {"window.visible-set", "chunk.visible-set", "backward.dv-is-weights"}) {
    std::int64_t most_keys = 0;
    for (std::int64_t k = 0; k < 200; ++k) {
      const Extents e = extents_of(generate(property_named(name), DType::f32, 1, k, all));
      const double of_a_row = static_cast<double>(e.batch * e.heads) * static_cast<double>(e.keys * e.keys);
      EXPECT_TRUE(e.queries <= 1 || of_a_row * static_cast<double>(e.queries) <= 0x1p27) << name << " k = " << k;
      most_keys = std::max(most_keys, e.keys);
    }
    EXPECT_LE(most_keys, 2048) << name;
    EXPECT_GE(most_keys, 1000) << name;
  }
}

// A factor that is looked up once for each tile shows in blocks that end within one.
TEST(Production, FactorsHaveBlocksOfTilesAndOfWhatEndsWithinOne) {
  const Property& row = property_named("descale.equals-multiplied");
  const Shapes all{.large = LargeCases::all, .given = {}};
  int tiles = 0, within = 0;
  for (std::int64_t k = 0; k < 200; ++k) {
    const Case c = generate(row, DType::f32, 1, k, all);
    const std::int64_t block = c.kv_descale_block;
    if (block < 16 || (!has_blocks(c, Slot::k) && !has_blocks(c, Slot::v))) continue;
    ++(block % 32 == 16 || block == 96 ? within : tiles);
  }
  EXPECT_GT(tiles, 25);
  EXPECT_GT(within, 15);
}

// A kernel that counts the blocks of values by those of keys is wrong where one of the two has a factor for all.
TEST(Production, FactorsOfKeysAndOfValuesAreInBlocksTogetherOrEitherAlone) {
  const Property& row = property_named("descale.equals-multiplied");
  int of_both = 0, of_keys = 0, of_values = 0;
  for (std::int64_t k = 0; k < 1000; ++k) {
    const Case c = generate(row, DType::f32, 1, k);
    if (!c[Slot::k_descale].present() || !c[Slot::v_descale].present()) continue;
    const bool keys = has_blocks(c, Slot::k), values = has_blocks(c, Slot::v);
    if (keys || values) ++(keys && values ? of_both : keys ? of_keys : of_values);
  }
  EXPECT_GT(of_both, 30);
  EXPECT_GT(of_keys, 8);
  EXPECT_GT(of_values, 8);
}

TEST(Production, MultiHeadAttentionHasHeadsOfAModelOverSeveralTiles) {
  int wide = 0, long_too = 0;
  for (std::int64_t k = 0; k < 400; ++k) {
    const Extents e = extents_of(generate(property_named("multihead.oracle"), DType::f32, 1, k, default_shapes));
    wide += e.dk >= 32 ? 1 : 0;
    long_too += e.dk >= 32 && e.queries > 64 && e.keys > 64 ? 1 : 0;
  }
  EXPECT_GE(wide, 3);
  EXPECT_GE(long_too, 2);
}

TEST(Production, MultiHeadAttentionIsLessOfLawsThanOfTheDefinition) {
  const auto most = [](LargeFor what) {
    double products = 0;
    for (std::uint64_t seed = 0; seed < 400; ++seed) {
      Recipe r;
      r.operation = Operation::multihead, r.seed = seed * 0x9e3779b97f4a7c15U;
      make_multihead_production(r, default_shapes, static_cast<std::int64_t>(seed), what);
      const double scored = static_cast<double>(r.queries) * r.keys * (r.dk + r.dv);
      const double of_queries = r.queries * (static_cast<double>(r.c_q) * r.dk + static_cast<double>(r.dv) * r.d_o),
                   of_keys = r.keys * (static_cast<double>(r.c_k) * r.dk + static_cast<double>(r.c_v) * r.dv);
      products = std::max(products, r.batch * r.heads * (scored + of_queries + of_keys));
    }
    return products;
  };
  EXPECT_LE(most(LargeFor::law), 0x1p18);
  EXPECT_GT(most(LargeFor::definition), 0x1p22);
  EXPECT_LE(most(LargeFor::definition), 0x1p23);
}

TEST(Production, MultiHeadAttentionHasLayersOfModels) {
  std::set<std::pair<std::int64_t, std::int64_t>> layers;
  int long_ones = 0, decoding = 0, of_two_widths = 0, many_heads_under_a_mask = 0;
  for (std::int64_t k = 0; k < 4000; ++k) {
    const Case c = generate(property_named("multihead.oracle"), DType::f32, 1, k, default_shapes);
    const Extents e = extents_of(c);
    const bool one_for_heads = c.mask().present() && c.mask().shape()[1] == 1;
    many_heads_under_a_mask += e.heads >= 6 && one_for_heads && e.queries > 1 && e.keys > 32 ? 1 : 0;
    if (e.dk < 32 || e.c_q != e.heads * e.dk) continue;
    layers.emplace(e.heads, e.dk);
    long_ones += e.queries > 48 && e.keys > 48 ? 1 : 0;
    decoding += e.queries == 1 ? 1 : 0;
    of_two_widths += e.c_k != e.c_q ? 1 : 0;
  }
  EXPECT_GE(layers.size(), 5U);
  EXPECT_GE(long_ones, 5);
  EXPECT_GE(decoding, 4);
  EXPECT_GE(of_two_widths, 5);
  EXPECT_GE(many_heads_under_a_mask, 4);
}

TEST(Production, EveryKindOfMultiHeadShapeIsAmongTheFirstOnes) {
  // By what the others have not: long, long with wide heads, as wide as tokens, many heads of short lengths, wide
  // tokens.
  std::set<int> seen;
  for (std::int64_t number = 0; number < 10; ++number) {
    Recipe r;
    r.operation = Operation::multihead, r.seed = static_cast<std::uint64_t>(number) * 0x9e3779b97f4a7c15U;
    make_multihead_production(r, default_shapes, number, LargeFor::definition);
    seen.insert(r.heads >= 5 && r.keys <= 8 ? 3 : r.c_q > 8 && r.keys <= 5 ? 4 : r.c_q > 8 ? 2 : r.dk >= 32 ? 1 : 0);
  }
  EXPECT_EQ(seen.size(), 5U);
}

TEST(Production, GivenShapesAreDrawnInTurn) {
  const Shapes shapes{.large = LargeCases::all,
                      .given = {{.batch = 1, .heads = 4, .kv_heads = 2, .queries = 70, .keys = 130, .dk = 16, .dv = 8},
                                {.batch = 2, .heads = 1, .kv_heads = 1, .queries = 1, .keys = 9, .dk = 2, .dv = 2}}};
  for (std::int64_t k = 0; k < 6; ++k)
    EXPECT_EQ(extents_of(generate(oracle(), DType::f32, 1, k, shapes)), shapes.given[static_cast<std::size_t>(k % 2)]);
  // Multi-head attention has a key-value head a head, of which its extents say nothing.
  for (std::int64_t k = 0; k < 6; ++k) {
    Extents wanted = shapes.given[static_cast<std::size_t>(k % 2)];
    wanted.kv_heads = 0;
    const Case c = generate(property_named("multihead.oracle"), DType::f32, 1, k, shapes);
    Extents is = extents_of(c);
    EXPECT_EQ(is.c_q, k % 2 == 0 ? 64 : 8);
    is.c_q = is.c_k = is.c_v = is.d_o = 0;
    EXPECT_TRUE(is_self_attention(c) || is == wanted) << k;
  }
  EXPECT_EQ(to_string(shapes), "all 1,4,2,70,130,16,8 2,1,1,1,9,2,2");
  EXPECT_EQ(to_string(small_shapes), "");
  EXPECT_EQ(to_string(default_shapes), "some");
}

TEST(Production, TokensOfGivenHeadsAreAsWideAsTheseTogetherWhereThatIsNotDear) {
  const auto width_of_token = [](const Extents& heads, LargeFor what) {
    Recipe r;
    r.operation = Operation::multihead;
    make_multihead_production(r, {.large = LargeCases::all, .given = {heads}}, 0, what);
    EXPECT_EQ(r.c_k, r.c_q);
    EXPECT_EQ(r.c_v, r.c_q);
    EXPECT_EQ(r.d_o, r.c_q);
    return r.c_q;
  };
  // More in the projections than in attention, which is little.
  EXPECT_EQ(
      width_of_token({.batch = 1, .heads = 8, .queries = 1, .keys = 16, .dk = 32, .dv = 32}, LargeFor::definition),
      256);
  // More than a case may cost, and no more in the projections than in attention.
  EXPECT_EQ(width_of_token({.batch = 2, .heads = 8, .queries = 512, .keys = 512, .dk = 64, .dv = 64}, LargeFor::law),
            256);
  // Beyond both.
  EXPECT_EQ(width_of_token({.batch = 1, .heads = 8, .queries = 1, .keys = 8, .dk = 64, .dv = 64}, LargeFor::law), 16);
  EXPECT_EQ(width_of_token({.batch = 1, .heads = 1, .queries = 5, .keys = 5, .dk = 3, .dv = 3}, LargeFor::definition),
            8);
}

/// Of rows, the share in which some element of `wrong` lies beyond 4 times what is allowed of `right`.
double seen(const AttentionBounds& right, const AttentionBounds& wrong) {
  const std::size_t rows = right.rows.size(), columns = right.elements.size() / rows;
  std::size_t concerned = 0, seen = 0;
  for (std::size_t r = 0; r < rows; ++r) {
    bool judged = false, shows = false;
    for (std::size_t e = r * columns; e < (r + 1) * columns; ++e) {
      const ElementBound& is = right.elements[e];
      if (is.excuse != Excuse::none) continue;
      judged = true;
      shows = shows || !(std::abs(wrong.elements[e].value - is.value) <= 4 * is.allowed);
    }
    concerned += judged;
    seen += judged && shows;
  }
  return concerned == 0 ? 0 : static_cast<double>(seen) / static_cast<double>(concerned);
}

/// Two tiles of 64 queries and three of keys, each with a partial last one, and three heads to each of two groups.
Case tiled(DType dtype, ScoreKind scores, std::uint64_t seed) {
  Recipe r;
  r.dtype = dtype, r.seed = seed, r.large = true;
  r.heads = 6, r.kv_heads = 2, r.queries = 100, r.keys = 150, r.dk = 32, r.dv = 16, r.batch = 2;
  r.scores = scores, r.values = ValueKind::gaussian;
  r.distinct_queries = distinct_queries;
  return decode(r);
}

/// A mistake as the problem that it computes in the place of the case's own.
struct Mistake {
  std::string_view what;
  std::function<void(Selection&)> make;
};

Indices rotated(std::int64_t n, std::int64_t by) {
  Indices all = all_of(n);
  std::ranges::rotate(all, all.begin() + by);
  return all;
}

const Mistake mistakes[] = {{"the last key is left out", [](Selection& s) { s.keys.pop_back(); }},
                            {"the first key counts twice", [](Selection& s) { s.keys.push_back(0); }},
                            {"the second tile of keys is left out",
                             [](Selection& s) { s.keys.erase(s.keys.begin() + 64, s.keys.begin() + 128); }},
                            {"the last tile of keys is read twice",
                             [](Selection& s) { s.keys.insert(s.keys.end(), s.keys.begin() + 128, s.keys.end()); }},
                            {"rows are one off", [](Selection& s) { s.queries = rotated(100, 1); }},
                            {"rows are a tile off", [](Selection& s) { s.queries = rotated(100, 64); }},
                            {"batch entries are exchanged", [](Selection& s) { s.batch = {1, 0}; }},
                            {"heads are one off", [](Selection& s) { s.heads = {1, 2, 0, 4, 5, 3}; }},
                            {"groups are exchanged", [](Selection& s) { s.kv_heads = {1, 0}; }}};

TEST(Production, ItsNumbersShowEveryMistakeInOneOfTheirKinds) {
  constexpr ScoreKind of_tiles[] = {ScoreKind::rising, ScoreKind::dominant_tile, ScoreKind::gaussian,
                                    ScoreKind::gaussian_ten, ScoreKind::gaussian_tenth};
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const Arithmetic arithmetic = universal_arithmetic(dtype, dtype);
    std::map<std::string_view, double> best;
    for (const ScoreKind scores : of_tiles) {
      for (std::uint64_t seed = 1; seed <= 4; ++seed) {
        const Case c = tiled(dtype, scores, seed);
        const AttentionBounds right = attention_bounds(c, arithmetic);
        for (const Mistake& mistake : mistakes) {
          Selection s = everything(c);
          mistake.make(s);
          double& share = best[mistake.what];
          share = std::max(share, seen(right, attention_bounds(select(c, s), arithmetic)));
        }
      }
    }
    for (const auto& [what, share] : best) EXPECT_GE(share, 0.95) << what << " in " << name_of(dtype);
  }
}

}  // namespace
}  // namespace attest
