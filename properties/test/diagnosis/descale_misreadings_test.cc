// Kernels that read factors of q, k and v in another way are told so in words, whatever else their cases have.
#include "properties/diagnosis/variants/descale_misreadings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "core/bound/error_bound.h"
#include "core/problem/score.h"
#include "core/test/cases.h"
#include "properties/arrangement/arrange.h"
#include "properties/arrangement/sequences.h"
#include "properties/diagnosis/misreadings.h"
#include "properties/diagnosis/row_misreadings.h"
#include "properties/test/diagnosis/other_factors.h"
#include "properties/test/diagnosis/other_slopes.h"

namespace attest {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

using Changes = std::function<void(Case&)>;
const Changes as_it_is = [](Case&) {};

double next_number(std::uint32_t& state) {
  state = state * 1664525U + 1013904223U;
  return static_cast<double>(state >> 24U) / 128 - 1;
}

constexpr test::CaseSizes few{.batch = 2, .heads = 4, .queries = 5, .keys = 9, .dk = 4, .dv = 3, .kv_heads = 2};
/// None a power of 2, and neighbours far apart.
constexpr double usual_sizes[] = {0.3, 1.7, 0.55, 2.3, 1.1, 0.45, 1.4};

/// Which factors there are, and whose.
struct Which {
  std::vector<Slot> tensors{Slot::q, Slot::k, Slot::v};
  bool heads = true, entries = false;
  std::int64_t q_block = 0, kv_block = 0;
};
/// Four cases with factors, which are those of `usual_sizes` in turn.
std::vector<Case> multiplied(const Which& which = {}, const test::CaseSizes& sizes = few,
                             const Changes& more = as_it_is) {
  std::uint32_t state = 1;
  std::vector<Case> cases;
  for (std::size_t i = 0; i < 4; ++i) {
    Case c = test::attention_of(sizes, [&](Slot, const Shape& shape) {
      return test::filled(DType::f32, shape, [&] { return next_number(state); });
    });
    c.scale = 0.375;
    std::size_t place = i;
    for (const Slot tensor : which.tensors) {
      const Shape& shape = c[tensor].shape();
      const std::int64_t block = tensor == Slot::q ? which.q_block : which.kv_block;
      const std::int64_t blocks = block == 0 ? 1 : (shape[2] + block - 1) / block;
      c[descale_of(tensor)] =
          test::filled(DType::f32, {which.entries ? shape[0] : 1, which.heads ? shape[1] : 1, blocks}, [&] {
            place += 3;
            return usual_sizes[place % std::size(usual_sizes)];
          });
    }
    c.q_descale_block = which.q_block, c.kv_descale_block = which.kv_block;
    settle_blocks(c);
    more(c);
    validate(c);
    cases.push_back(std::move(c));
  }
  return cases;
}

std::vector<std::string> misread(const Changes& change, const std::vector<Case>& cases = multiplied()) {
  OtherFactors kernel(change);
  return misreadings_of(kernel, cases);
}

TEST(MisreadDescale, AreNone) {
  EXPECT_THAT(misread(forget_factors), ElementsAre("there were no factors"));
  EXPECT_THAT(misread(forget_factors_of(Slot::q)), ElementsAre("there were no factors of q"));
  EXPECT_THAT(misread(forget_factors_of(Slot::k)), ElementsAre("there were no factors of k"));
  EXPECT_THAT(misread(forget_factors_of(Slot::v)), ElementsAre("there were no factors of v"));
  // Where no other tensor has some, nothing tells the two apart.
  EXPECT_THAT(misread(forget_factors, multiplied({.tensors = {Slot::v}})),
              UnorderedElementsAre("there were no factors", "there were no factors of v"));
}

TEST(MisreadDescale, AreOtherSizes) {
  EXPECT_THAT(misread(another_factor([](const Case& c, const FactorPlace& at) { return 1 / factor_at(c, at); })),
              ElementsAre("factors divided, and did not multiply"));
  EXPECT_THAT(misread(another_factor([](const Case& c, const FactorPlace& at) {
                return at.tensor == Slot::k ? 1 / factor_at(c, at) : factor_at(c, at);
              })),
              ElementsAre("factors of k divided, and did not multiply"));
  EXPECT_THAT(
      misread(another_factor([](const Case& c, const FactorPlace& at) { return std::pow(factor_at(c, at), 2); })),
      ElementsAre("factors counted twice"));
  EXPECT_THAT(misread(another_factor([](const Case& c, const FactorPlace& at) {
                return std::pow(factor_at(c, at), at.tensor == Slot::v ? 2 : 1);
              })),
              ElementsAre("factors of v counted twice"));
}

TEST(MisreadDescale, AreThoseOfOtherTensors) {
  EXPECT_THAT(misread(factor_of_other([](const Case&, FactorPlace at) {
                        if (at.tensor == Slot::q)
                          at.tensor = Slot::k, at.head /= 2;
                        else if (at.tensor == Slot::k)
                          at.tensor = Slot::q, at.head *= 2;
                        return at;
                      }),
                      multiplied({.q_block = 2, .kv_block = 4})),
              ElementsAre("factors of q and k were exchanged"));
  const auto read = [](Slot tensor, Slot instead, Slot other, Slot instead_of_other) {
    return factor_of_other([=](const Case&, FactorPlace at) {
      at.tensor = at.tensor == tensor ? instead : at.tensor == other ? instead_of_other : at.tensor;
      return at;
    });
  };
  EXPECT_THAT(misread(read(Slot::k, Slot::v, Slot::v, Slot::k)), ElementsAre("factors of k and v were exchanged"));
  EXPECT_THAT(misread(read(Slot::v, Slot::k, Slot::k, Slot::k)), ElementsAre("values had the factors of keys"));
  EXPECT_THAT(misread(read(Slot::v, Slot::v, Slot::k, Slot::v)), ElementsAre("keys had the factors of values"));
}

TEST(MisreadDescale, AreThoseOfOtherHeads) {
  EXPECT_THAT(misread(factor_of_other([](const Case&, FactorPlace at) {
                at.head = 0;
                return at;
              })),
              ElementsAre("every head had the factors of the first"));
  EXPECT_THAT(misread(factor_of_other([](const Case&, FactorPlace at) {
                if (at.tensor == Slot::v) at.head = 0;
                return at;
              })),
              ElementsAre("every head of v had the factors of the first"));
  EXPECT_THAT(misread(factor_of_other([](const Case&, FactorPlace at) {
                if (at.tensor == Slot::q) at.head /= 2;
                return at;
              })),
              ElementsAre("a head of q had the factor at the place of its key-value head"));
  EXPECT_THAT(misread(factor_of_other([](const Case&, FactorPlace at) {
                if (at.tensor == Slot::q) at.head = at.head / 2 * 2;
                return at;
              })),
              ElementsAre("the heads of a group had the factor of its first"));
}

TEST(MisreadDescale, AreThoseOfTheFirstEntry) {
  EXPECT_THAT(misread(factor_of_other([](const Case&, FactorPlace at) {
                        at.batch = 0;
                        return at;
                      }),
                      multiplied({.entries = true})),
              ElementsAre("every batch entry had the factors of the first"));
}

TEST(MisreadDescale, AreThoseOfOtherBlocks) {
  const std::vector<Case> cases = multiplied({.heads = false, .q_block = 2, .kv_block = 4});
  const auto of_row = [](std::int64_t (*row)(const FactorPlace& at)) {
    return factor_of_other([row](const Case&, FactorPlace at) {
      at.row = row(at);
      return at;
    });
  };
  EXPECT_THAT(misread(of_row([](const FactorPlace&) { return std::int64_t{0}; }), cases),
              ElementsAre("every block had the factor of the first"));
  EXPECT_THAT(misread(of_row([](const FactorPlace& at) { return at.row + 1; }), cases),
              ElementsAre("blocks began one row early"));
  EXPECT_THAT(misread(of_row([](const FactorPlace& at) { return at.row - 1; }), cases),
              ElementsAre("blocks began one row late"));
  EXPECT_THAT(
      misread(of_row([](const FactorPlace& at) { return at.tensor == Slot::q ? at.row / 4 * 2 : at.row / 2 * 4; }),
              cases),
      ElementsAre("blocks of q were as long as those of k and v, and these as long as those of q"));
  // Rows 0 to 4 in three blocks, and keys 0 to 8.
  EXPECT_THAT(misread(of_row([](const FactorPlace& at) {
                        return at.tensor == Slot::q ? at.row * 3 / 5 * 2 : at.row * 3 / 9 * 4;
                      }),
                      cases),
              ElementsAre("as many rows were shared out to each block"));
  const std::vector<Case> long_ones = multiplied({.tensors = {Slot::k, Slot::v}, .heads = false, .kv_block = 8},
                                                 {.heads = 2, .queries = 3, .keys = 50, .dk = 2, .dv = 2});
  EXPECT_THAT(misread(of_row([](const FactorPlace& at) { return at.row / 16 * 8; }), long_ones),
              ElementsAre("blocks had 16 rows each"));
}

/// What makes an additive mask and a cap of another problem is another score.
TEST(MisreadDescale, AreOfTheCapAndTheMaskBesideThem) {
  const auto of_pair = [](const Case& c, const SlopedPair& at, std::int64_t b) {
    return factor_of(c, Slot::q, b, at.head, at.row) * factor_of(c, Slot::k, b, at.head / 2, at.key);
  };
  const Which of_scores{.tensors = {Slot::q, Slot::k}};
  const std::vector<Case> with_caps = multiplied(of_scores, few, [](Case& c) { c.softcap = 1.25; });
  EXPECT_THAT(misread(
                  [&](Case& c) {
                    const Case before = c;
                    forget_factors(c);
                    another_score([&](const SlopedPair& at) { return of_pair(before, at, 0) * capped(at.t, 1.25); })(c);
                  },
                  with_caps),
              ElementsAre("the cap were taken before the factors"));
  const std::vector<Case> with_masks = multiplied(of_scores, few, [](Case& c) {
    std::uint32_t state = 7;
    c[Slot::mask] = test::filled(DType::f32, {1, 1, 5, 9}, [&] { return 2 * next_number(state); });
  });
  EXPECT_THAT(misread(
                  [&](Case& c) {
                    const Case before = c;
                    forget_factors(c);
                    another_score([&](const SlopedPair& at) { return of_pair(before, at, 0) * (at.t + at.entry); })(c);
                  },
                  with_masks),
              ElementsAre("the mask were multiplied by the factors"));
}

/// A head that reads another key-value head has its factors, too.
TEST(MisreadDescale, StandBesideOtherMistakes) {
  OtherFactors interleaved([](Case& c) { c = with_kv_heads(c, [](std::int64_t h) { return h % 2; }); });
  EXPECT_THAT(misreadings_of(interleaved, multiplied()),
              ElementsAre("head h read key-value head h mod KV, where h / (H / KV) is right"));
  OtherFactors shorter([](Case& c) { c = with_keys(c, {0, 1, 2, 3, 4, 5, 6, 7}); });
  EXPECT_THAT(misreadings_of(shorter, multiplied({.heads = false, .kv_block = 4})),
              Contains("the last key were not there"));
}

TEST(MisreadDescale, AreThoseOfSequences) {
  std::vector<Case> cases;
  for (const Case& c : multiplied({.tensors = {Slot::k, Slot::v}, .heads = false},
                                  {.batch = 3, .heads = 2, .queries = 4, .keys = 7, .dk = 2, .dv = 2})) {
    Case one = packed(c);
    for (const Slot tensor : {Slot::k, Slot::v}) {
      std::size_t place = tensor == Slot::k ? 0 : 2;
      one[descale_of(tensor)] =
          test::filled(DType::f32, {1, 1, 6}, [&] { return usual_sizes[place++ % std::size(usual_sizes)]; });
    }
    one.kv_descale_block = 4;
    validate(one);
    cases.push_back(std::move(one));
  }
  // 7 keys to a sequence.
  EXPECT_THAT(misread(factor_of_other([](const Case&, FactorPlace at) {
                        at.row %= 7;
                        return at;
                      }),
                      cases),
              ElementsAre("blocks of factors began anew with each sequence"));
}

/// Of a row that stands alone, what is made of numbers is made of those that factors have multiplied.
TEST(MisreadDescale, AreInWhatRowsAreMisreadAs) {
  const Case c = multiplied({.q_block = 2, .kv_block = 4})[0];
  Case plain = c;
  for (const Slot tensor : {Slot::q, Slot::k, Slot::v}) plain[tensor] = dequantised(c, tensor);
  forget_factors(plain);
  const ExaminedRow place{.batch = 1, .head = 3, .query = 4};
  const std::vector<RowReading> readings = readings_of_row(c, place), of_products = readings_of_row(plain, place);
  ASSERT_EQ(readings.size(), of_products.size());
  ASSERT_FALSE(readings.empty());
  for (std::size_t i = 0; i < readings.size(); ++i) {
    EXPECT_EQ(readings[i].words, of_products[i].words);
    ASSERT_EQ(readings[i].is_silent, of_products[i].is_silent) << readings[i].words;
    if (readings[i].is_silent) continue;
    const AttentionBounds found = attention_bounds(readings[i].problem, Arithmetic()),
                          expected = attention_bounds(of_products[i].problem, Arithmetic());
    for (std::size_t e = 0; e < found.elements.size(); ++e)
      EXPECT_NEAR(found.elements[e].value, expected.elements[e].value, 0x1p-40) << readings[i].words;
  }
}

TEST(MisreadDescale, AreNotReadOutOfRightAnswersNorOfOtherMistakes) {
  EXPECT_THAT(misread(as_it_is), IsEmpty());
  EXPECT_THAT(misread(as_it_is, multiplied({.heads = false, .q_block = 2, .kv_block = 4})), IsEmpty());
  EXPECT_THAT(misread(another_factor([](const Case& c, const FactorPlace& at) { return 1.3 * factor_at(c, at); })),
              IsEmpty());
}

TEST(MisreadDescale, AreThoseOfACaseThatHasSome) {
  const auto full = [](Case& c) {
    c.softcap = 1.25, c.causal = Causal::bottom_right;
    c[Slot::mask] = Tensor(DType::f32, {1, 1, 5, 9});
    c[Slot::mask].set(3, 0.5);
  };
  for (const Case& c : {multiplied({.entries = true, .q_block = 2, .kv_block = 4}, few, full)[0],
                        multiplied({.tensors = {Slot::v}}, {.queries = 1, .keys = 1})[0]}) {
    EXPECT_FALSE(misread_descale(c).empty());
    for (const MisreadDescale& reading : misread_descale(c)) {
      EXPECT_FALSE(reading.words.empty());
      EXPECT_EQ(reading.size > 0, reading.words.find('#') != std::string::npos) << reading.words;
      EXPECT_FALSE(static_cast<const Problem&>(reading.problem) == static_cast<const Problem&>(c)) << reading.words;
      validate(reading.problem);
    }
  }
  Case none = multiplied()[0];
  forget_factors(none);
  EXPECT_THAT(misread_descale(none), IsEmpty());
}

}  // namespace
}  // namespace attest
