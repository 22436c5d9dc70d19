#include "fuzz/archive.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/support/errors.h"
#include "fuzz/search.h"

namespace attest {
namespace {

const Property& oracle() {
  return *properties_matching("attention.oracle").at(0);
}

Input seeded(std::uint64_t seed) {
  Input input;
  input.drawn = true;
  input.recipe.seed = seed;
  return input;
}

Archive::Entry entry(std::uint32_t cell, double quality, std::uint64_t seed = 0) {
  return {.cell = cell, .quality = quality, .k = 3, .work = 8, .input = seeded(seed)};
}

TEST(Archive, KeepsTheWorstOfEachCell) {
  Archive archive;
  EXPECT_TRUE(archive.offer(entry(1, 0.5, 10)));
  EXPECT_FALSE(archive.offer(entry(1, 0.5, 11)));
  EXPECT_FALSE(archive.offer(entry(1, 0.25, 12)));
  EXPECT_TRUE(archive.offer(entry(2, 0.125, 13)));
  EXPECT_TRUE(archive.offer(entry(1, 0.75, 14)));
  ASSERT_EQ(archive.entries().size(), 2U);
  EXPECT_EQ(archive.entries()[0].input.recipe.seed, 14U);
  EXPECT_EQ(archive.worst(), 0.75);
}

TEST(Archive, TakesNoQualityThatIsNone) {
  Archive archive;
  for (const double quality : {-1.0, std::nan("")}) EXPECT_FALSE(archive.offer(entry(1, quality)));
  EXPECT_TRUE(archive.empty());
}

TEST(Archive, PicksEveryCellAndTheWorstOnesMoreOften) {
  Archive archive;
  for (std::uint32_t cell = 0; cell < 16; ++cell) archive.offer(entry(cell, cell, cell));
  Stream stream(1);
  std::array<int, 16> picked{};
  for (int n = 0; n < 16'000; ++n) ++picked[archive.pick(stream).recipe.seed];
  for (const int times : picked) EXPECT_GT(times, 400);
  EXPECT_GT(picked[15], 2 * picked[0]);
}

TEST(Archive, PicksACostlyCaseRarely) {
  Archive archive;
  archive.offer(entry(0, 0.5, 0));
  Archive::Entry costly = entry(1, 0.5, 1);
  costly.work = 63 * cheap_work;
  archive.offer(costly);
  Stream stream(1);
  int picked = 0;
  for (int n = 0; n < 6400; ++n) picked += archive.pick(stream).recipe.seed == 1;
  EXPECT_GT(picked, 20);
  EXPECT_LT(picked, 640);
}

TEST(Archive, ComesBackFromItsText) {
  Archive archive;
  Stream stream(4);
  const Target target{&oracle(), DType::bf16};
  for (std::uint32_t cell = 0; cell < 40; ++cell) {
    Archive::Entry one = entry(cell, stream.unit());
    one.input = mutated(fresh_input(target, stream), target, stream);
    archive.offer(std::move(one));
  }
  const std::string text = to_text(archive);
  const Archive back = parse_archive(text, "archive", oracle(), DType::bf16);
  EXPECT_EQ(to_text(back), text);
  EXPECT_EQ(back.entries().size(), 40U);
  EXPECT_EQ(back.worst(), archive.worst());
}

TEST(Archive, RefusesTextThatIsNone) {
  Archive archive;
  archive.offer(entry(1, 0.5));
  const std::string good = to_text(archive);
  const std::string first = good.substr(0, good.find('\n') + 1);
  const auto replaced = [&](const std::string& what, const std::string& by) {
    std::string text = good;
    EXPECT_NE(text.find(what), std::string::npos) << what;
    return text.replace(text.find(what), what.size(), by);
  };
  for (const std::string& bad :
       {std::string(), good.substr(0, good.size() - 1), replaced("attest-archive/1", "attest-archive/2"),
        first + "[]\n", first + "{}\n", replaced("\"cell\":1", "\"cell\":256"), replaced("\"cell\":1", "\"cell\":-1"),
        replaced("0.5", "\"nan\""), replaced("0.5", "-0.5"), replaced("\"k\":3", "\"k\":0.5"),
        replaced("\"input\":\"", "\"input\":\"0"), replaced("\"input\":\"", "\"input\":\"ZZ"),
        replaced("\"k\":3", "\"k\":3,\"more\":1"), replaced("\"work\":8", "\"work\":99999999999999")}) {
    EXPECT_THROW((void)parse_archive(bad, "archive", oracle(), DType::f32), UsageError) << bad;
  }
  EXPECT_NO_THROW((void)parse_archive(good, "archive", oracle(), DType::f32));
}

TEST(Quality, IsThatOfHeldCasesAlone) {
  const Case c = generate(oracle(), DType::f32, 1, 0);
  EXPECT_EQ(quality_of(oracle(), c, {.outcome = Outcome::held, .utilisation = 0.5}), 0.5);
  for (const Outcome outcome : {Outcome::violated, Outcome::skipped, Outcome::excused, Outcome::inconclusive})
    EXPECT_LT(quality_of(oracle(), c, {.outcome = outcome, .utilisation = 0.5}), 0);
  EXPECT_LT(quality_of(oracle(), c, {.utilisation = std::numeric_limits<double>::infinity()}), 0);
}

TEST(Quality, OfFinitenessGrowsWithTheNumbers) {
  const Property& finite = *properties_matching("attention.finite").at(0);
  Recipe r;
  r.scores = ScoreKind::integers;
  r.dk = 4;
  Case c = decode(r);
  c[Slot::q].set(0, 4.0);
  c[Slot::k].set(0, 4.0);
  const double small = quality_of(finite, c, {});
  c[Slot::k].set(0, 0x1p100);
  const double large = quality_of(finite, c, {});
  EXPECT_GT(large, small);
  EXPECT_GT(large, 0.75);
  EXPECT_LE(large, 1);
}

// Every tensor that enters a product makes it larger; so does an output projection.
TEST(Quality, OfManyHeadsGrowsWithEachOfTheirTensors) {
  const Property& finite = *properties_matching("multihead.finite").at(0);
  const auto is_drawn = [](const Case& c) {
    const auto there = [&](Slot slot) { return c[slot].present(); };
    return c.q().elements() > 0 && c.k().elements() > 0 &&
           std::ranges::all_of(std::array{Slot::w_o, Slot::b_q, Slot::b_k, Slot::b_v, Slot::b_o}, there);
  };
  Case c;
  for (std::int64_t k = 0; !is_drawn(c); ++k) {
    ASSERT_LT(k, 100);
    c = generate(*properties_matching("multihead.oracle").at(0), DType::f32, 1, k);
    if (!c[Slot::b_o].present()) c[Slot::w_o] = {};
  }
  for (Tensor& tensor : c.tensors)
    if (tensor.present() && tensor.dtype() == DType::f32)
      for (std::int64_t e = 0; e < tensor.elements(); ++e) tensor.set(e, 1.0);
  const double small = quality_of(finite, c, {});
  for (const Slot slot : {Slot::q, Slot::k, Slot::v, Slot::w_q, Slot::w_k, Slot::w_v, Slot::b_q, Slot::b_k, Slot::b_v,
                          Slot::w_o, Slot::b_o}) {
    Case larger = c;
    larger[slot].set(0, 0x1p100);
    EXPECT_GT(quality_of(finite, larger, {}), small) << name_of(slot);
    EXPECT_GT(quality_of(finite, larger, {}), 0.75) << name_of(slot);
  }
}

TEST(Search, IsGuidedByWhatItLearntAndFollowsFromItsSeed) {
  const Target target{&oracle(), DType::f32};
  const Strategy strategy{.fresh_first = 20, .fresh_in_64 = 16};
  Search a(target, 1, strategy), b(target, 1, strategy), other(target, 2, strategy);
  int bred = 0;
  for (std::int64_t k = 0; k < 300; ++k) {
    const Input left = Search::made(a.plan(k), target), right = Search::made(b.plan(k), target);
    ASSERT_EQ(bytes_of(left), bytes_of(right)) << k;
    if (k < 10) {
      EXPECT_NE(bytes_of(left), bytes_of(Search::made(other.plan(k), target)));
    }
    bred += a.plan(k).first.has_value();
    if (k < 20) {
      EXPECT_EQ(bred, 0);
    }
    const Case c = case_of(left, oracle());
    const Verdict verdict{.utilisation = 1.0 / static_cast<double>(k + 1)};
    EXPECT_EQ(a.learn(k, left, c, verdict), b.learn(k, right, c, verdict));
  }
  // One in four of 280 is fresh.
  EXPECT_GT(bred, 170);
  EXPECT_LT(bred, 250);
}

TEST(Search, BreedsNothingWhenItIsUnguided) {
  const Target target{&oracle(), DType::f32};
  Search search(target, 1, unguided);
  for (std::int64_t k = 0; k < 100; ++k) {
    const Search::Plan plan = search.plan(k);
    EXPECT_FALSE(plan.first);
    const Input input = Search::made(plan, target);
    EXPECT_FALSE(search.learn(k, input, case_of(input, oracle()), {.utilisation = 0.5}));
  }
}

}  // namespace
}  // namespace attest
