// Kernels that read slopes in another way are told so in words, whatever else their cases have.
#include "properties/diagnosis/variants/alibi_misreadings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include "core/problem/score.h"
#include "core/test/cases.h"
#include "properties/arrangement/sequences.h"
#include "properties/diagnosis/misreadings.h"
#include "properties/test/diagnosis/other_slopes.h"

namespace attest {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

using Changes = std::function<void(Case&)>;
const Changes as_it_is = [](Case&) {};

/// Numbers of both signs, another each time.
double next_number(std::uint32_t& state) {
  state = state * 1664525U + 1013904223U;
  return static_cast<double>(state >> 24U) / 128 - 1;
}

constexpr test::CaseSizes few{.batch = 2, .heads = 4, .queries = 5, .keys = 9, .dk = 4, .dv = 3, .kv_heads = 2};
/// Of both signs, none a power of 2 and none that bf16 or f16 holds.
constexpr double usual_sizes[] = {0.3, 0.7, -0.15, 1.1, 0.55, -0.9, 0.45};

/// Four cases with slopes, which are those of `sizes` in turn, times `factor`; counted from the last key but for the
/// third. Each batch entry has its own where `own`.
std::vector<Case> sloped(const test::CaseSizes& sizes = few, const Changes& more = as_it_is, double factor = 1,
                         bool own = false) {
  std::uint32_t state = 1;
  std::vector<Case> cases;
  for (int i = 0; i < 4; ++i) {
    Case c = test::attention_of(sizes, [&](Slot, const Shape& shape) {
      return test::filled(DType::f32, shape, [&] { return next_number(state); });
    });
    c.scale = 0.375;
    c.alignment = i == 2 ? Causal::top_left : Causal::bottom_right;
    auto place = static_cast<std::size_t>(i);
    c[Slot::alibi_slopes] = test::filled(DType::f32, {own ? sizes.batch : 1, sizes.heads}, [&] {
      place += 3;
      return factor * usual_sizes[place % std::size(usual_sizes)];
    });
    more(c);
    validate(c);
    cases.push_back(std::move(c));
  }
  return cases;
}

std::vector<std::string> misread(const Changes& change, const std::vector<Case>& cases = sloped()) {
  OtherSlopes kernel(change);
  return misreadings_of(kernel, cases);
}
void in_causal_form(Case& c) {
  c.causal = c.alignment;
}
void with_mask(Case& c) {
  std::uint32_t state = 7;
  const Shape shape{1, 1, queries_of(c), keys_of(c)};
  c[Slot::mask] = test::filled(DType::f32, shape, [&] { return 2 * next_number(state); });
}
void with_softcap(Case& c) {
  c.softcap = 1.25;
}

TEST(MisreadSlopes, AreOtherSizes) {
  EXPECT_THAT(misread(forget_slopes), ElementsAre("there were no slopes"));
  EXPECT_THAT(misread(slopes_times([](const Case& c) { return c.scale; })),
              ElementsAre("slopes were multiplied by the scale, as where they are added before it"));
  EXPECT_THAT(misread(slopes_times([](const Case& c) { return 1 / c.scale; })),
              ElementsAre("slopes were divided by the scale"));
  EXPECT_THAT(misread(slopes_times([](const Case&) { return std::numbers::ln2; })),
              ElementsAre("slopes were those of scores to base 2"));
  EXPECT_THAT(misread(slopes_times([](const Case&) { return std::numbers::log2e; })),
              ElementsAre("slopes were multiplied by log2(e)"));
  EXPECT_THAT(misread(slopes_times([](const Case&) { return 2; })), ElementsAre("slopes counted twice"));
  EXPECT_THAT(misread(slopes_times([](const Case&) { return -1; })), ElementsAre("slopes had the other sign"));
  const std::vector<Case> with_caps = sloped(few, with_softcap);
  EXPECT_THAT(misread(slopes_times([](const Case& c) { return c.softcap; }), with_caps),
              ElementsAre("slopes were multiplied by the softcap"));
  EXPECT_THAT(misread(slopes_times([](const Case& c) { return 1 / c.softcap; }), with_caps),
              ElementsAre("slopes were divided by the softcap"));
}

/// All scores as many times as large are told as that.
TEST(MisreadSlopes, AreNotThoseOfAnotherBaseOfAllScores) {
  EXPECT_THAT(
      misread(another_score([](const SlopedPair& at) { return (at.t - at.slope * at.away()) * std::numbers::ln2; })),
      ElementsAre("powers of 2 stood for powers of e"));
}

TEST(MisreadSlopes, AreThoseOfOtherHeads) {
  const auto of_head = [](std::int64_t (*head)(std::int64_t h, std::int64_t heads)) {
    return misread(another_slope([head](const Tensor& slopes, const Case& c, std::int64_t entry, std::int64_t h) {
      return slopes.at(entry, head(h, heads_of(c)));
    }));
  };
  EXPECT_THAT(of_head([](std::int64_t, std::int64_t) { return std::int64_t{0}; }),
              ElementsAre("every head had the slope of the first"));
  EXPECT_THAT(of_head([](std::int64_t h, std::int64_t heads) { return (h + 1) % heads; }),
              ElementsAre("a head had the slope of the next one, and the last that of the first"));
  EXPECT_THAT(of_head([](std::int64_t h, std::int64_t heads) { return (h + heads - 1) % heads; }),
              ElementsAre("a head had the slope of the one before, and the first that of the last"));
  EXPECT_THAT(of_head([](std::int64_t h, std::int64_t heads) { return heads - 1 - h; }),
              ElementsAre("slopes of heads were in reverse order"));
  EXPECT_THAT(of_head([](std::int64_t h, std::int64_t) { return h / 2; }),
              ElementsAre("a head had the slope at the place of its key-value head"));
  EXPECT_THAT(of_head([](std::int64_t h, std::int64_t) { return h / 2 * 2; }),
              ElementsAre("the heads of a group had the slope of its first"));
  EXPECT_THAT(of_head([](std::int64_t h, std::int64_t) { return h % 2 * 2 + h / 2; }),
              ElementsAre("heads had the slopes of other heads of the groups in turn"));
}

TEST(MisreadSlopes, AreThoseThatAKernelMakes) {
  const std::vector<Case> of_three = sloped({.batch = 1, .heads = 3, .queries = 5, .keys = 9, .dk = 4, .dv = 3});
  EXPECT_THAT(misread(another_slope([](const Tensor&, const Case&, std::int64_t, std::int64_t h) {
                        return std::exp2(-8 * static_cast<double>(h + 1) / 3);
                      }),
                      of_three),
              ElementsAre("slopes were 2^(-8(h+1)/H) of head h of H, whatever is asked"));
  EXPECT_THAT(misread(another_slope([](const Tensor&, const Case&, std::int64_t, std::int64_t h) {
                        return h == 0 ? 0x1p-4 : h == 1 ? 0x1p-8 : 0x1p-2;
                      }),
                      of_three),
              ElementsAre("slopes were those that models with ALiBi have of so many heads, whatever is asked"));
  // Of a number of heads that is a power of 2 they are the same.
  EXPECT_THAT(
      misread(another_slope([](const Tensor&, const Case&, std::int64_t, std::int64_t h) {
        return std::exp2(-2 * static_cast<double>(h + 1));
      })),
      UnorderedElementsAre("slopes were 2^(-8(h+1)/H) of head h of H, whatever is asked",
                           "slopes were those that models with ALiBi have of so many heads, whatever is asked"));
}

TEST(MisreadSlopes, AreThoseOfOtherEntries) {
  const std::vector<Case> own = sloped(few, as_it_is, 1, /*own=*/true);
  EXPECT_THAT(misread(another_slope([](const Tensor& slopes, const Case&, std::int64_t, std::int64_t h) {
                        return slopes.at(std::int64_t{0}, h);
                      }),
                      own),
              ElementsAre("every batch entry had the slopes of the first"));
  const std::vector<Case> square =
      sloped({.batch = 3, .heads = 3, .queries = 5, .keys = 9, .dk = 4, .dv = 3}, as_it_is, 1, /*own=*/true);
  EXPECT_THAT(misread(another_slope([](const Tensor& slopes, const Case&, std::int64_t entry, std::int64_t h) {
                        return slopes.at(h, entry);
                      }),
                      square),
              ElementsAre("batch entries and heads of slopes were exchanged"));
}

TEST(MisreadSlopes, HaveOtherSigns) {
  EXPECT_THAT(misread(another_slope([](const Tensor& slopes, const Case&, std::int64_t entry, std::int64_t h) {
                return std::fabs(slopes.at(entry, h));
              })),
              ElementsAre("slopes below 0 had no sign"));
  EXPECT_THAT(misread(another_slope([](const Tensor& slopes, const Case&, std::int64_t entry, std::int64_t h) {
                return std::max(slopes.at(entry, h), 0.0);
              })),
              ElementsAre("slopes below 0 were 0"));
  const auto ahead = [](const SlopedPair& at) { return static_cast<double>(at.key - at.position); };
  EXPECT_THAT(misread(another_term([&](const SlopedPair& at) { return at.slope * ahead(at); })),
              ElementsAre("slopes multiplied j - p with its sign, as where no key lies behind a row's position"));
  EXPECT_THAT(misread(another_term([&](const SlopedPair& at) { return -at.slope * ahead(at); })),
              ElementsAre("slopes multiplied p - j with its sign"));
  EXPECT_THAT(misread(another_term([&](const SlopedPair& at) { return at.slope * std::min(ahead(at), 0.0); })),
              ElementsAre("slopes added nothing to keys behind a row's position"));
  // slope·j is the former but for what all scores of a row have in common.
  EXPECT_THAT(misread(another_term([](const SlopedPair& at) { return at.slope * static_cast<double>(at.key); })),
              ElementsAre("slopes multiplied j - p with its sign, as where no key lies behind a row's position"));
}

TEST(MisreadSlopes, CountFromOtherPlaces) {
  EXPECT_THAT(misread(another_position([](const SlopedPair& at) { return at.row; })),
              ElementsAre("positions of slopes counted from the first keys, without N - M"));
  EXPECT_THAT(misread(another_position([](const SlopedPair& at) { return at.row + at.N - at.M; }),
                      sloped(few, [](Case& c) { c.alignment = Causal::top_left; })),
              ElementsAre("positions of slopes counted from the last keys, as i + N - M"));
  // Of one key more than rows, so that there are keys on both sides of such a place.
  EXPECT_THAT(misread(another_position([](const SlopedPair& at) { return at.row + at.M - at.N; }),
                      sloped({.batch = 2, .heads = 2, .queries = 5, .keys = 6, .dk = 4, .dv = 3},
                             [](Case& c) { c.alignment = Causal::bottom_right; })),
              ElementsAre("positions of slopes were i + M - N"));
  EXPECT_THAT(misread(another_position([](const SlopedPair& at) { return at.position + 1; })),
              ElementsAre("positions of slopes were one more"));
  EXPECT_THAT(misread(another_position([](const SlopedPair& at) { return at.position - 1; })),
              ElementsAre("positions of slopes were one less"));
  EXPECT_THAT(misread(another_position([](const SlopedPair& at) { return at.position - at.row; })),
              ElementsAre("every row had the position of the first"));
  // A causal form stays where it is, and so does a window.
  EXPECT_THAT(misread(another_position([](const SlopedPair& at) { return at.row; }), sloped(few, in_causal_form)),
              ElementsAre("positions of slopes counted from the first keys, without N - M"));
  EXPECT_THAT(misread(another_position([](const SlopedPair& at) { return at.row; }),
                      sloped(few, [](Case& c) { c.window_left = 6, c.window_right = 2; })),
              ElementsAre("positions of slopes counted from the first keys, without N - M"));
}

TEST(MisreadSlopes, AreOfTiles) {
  const std::vector<Case> cases = sloped({.queries = 40, .keys = 120, .dk = 2, .dv = 2}, as_it_is, 1.0 / 16);
  EXPECT_THAT(misread(another_term([](const SlopedPair& at) {
                        return -at.slope * std::fabs(static_cast<double>(at.position - at.key % 32));
                      }),
                      cases),
              ElementsAre("places of keys counted from the first of their tile of 32"));
  EXPECT_THAT(misread(another_term([](const SlopedPair& at) {
                        const std::int64_t first_of_tile = at.key / 16 * 16;
                        return -at.slope * std::fabs(static_cast<double>(at.position - first_of_tile));
                      }),
                      cases),
              ElementsAre("all keys of a tile of 16 were as far as the first of it"));
  EXPECT_THAT(misread(another_position([](const SlopedPair& at) { return at.position - at.row / 16 * 16; }), cases),
              ElementsAre("positions of rows counted from the first of their tile of 16"));
}

/// Far keys have weights, too.
TEST(MisreadSlopes, AreRounded) {
  const std::vector<Case> cases = sloped({.heads = 2, .queries = 3, .keys = 301, .dk = 2, .dv = 2}, as_it_is, 1.0 / 16);
  const auto away = [](const SlopedPair& at) { return std::fabs(static_cast<double>(at.position - at.key)); };
  EXPECT_THAT(
      misread(another_term([&](const SlopedPair& at) { return -at.slope * round_to(DType::bf16, away(at)); }), cases),
      ElementsAre("distances were rounded to bf16"));
  EXPECT_THAT(misread(another_term([&](const SlopedPair& at) { return -at.slope * std::fmod(away(at), 256); }), cases),
              ElementsAre("distances were numbers of 8 bits, which begin again at 0"));
  EXPECT_THAT(misread(another_slope([](const Tensor& slopes, const Case&, std::int64_t entry, std::int64_t h) {
                        return round_to(DType::bf16, slopes.at(entry, h));
                      }),
                      cases),
              ElementsAre("slopes were rounded to bf16"));
  EXPECT_THAT(
      misread(another_term([&](const SlopedPair& at) { return round_to(DType::f16, -at.slope * away(at)); }), cases),
      ElementsAre("what slopes add were rounded to f16"));
}

TEST(MisreadSlopes, AreOfTheCapBesideThem) {
  const std::vector<Case> cases = sloped(few, with_softcap);
  const auto capped_sum = [](double factor) {
    return another_score(
        [factor](const SlopedPair& at) { return capped(at.t - factor * at.slope * at.away(), 1.25) + at.entry; });
  };
  EXPECT_THAT(misread(capped_sum(1), cases), ElementsAre("the cap were taken after slopes, as with FlashInfer"));
  EXPECT_THAT(misread(capped_sum(0.375), cases), ElementsAre("slopes were added before scale and cap"));
}

TEST(MisreadSlopes, AreOfTheMaskBesideThem) {
  const std::vector<Case> cases = sloped(few, with_mask);
  EXPECT_THAT(misread(another_score([](const SlopedPair& at) { return at.t + at.slope * at.entry; }), cases),
              ElementsAre("slopes multiplied the mask and nothing else, as with ggml"));
  EXPECT_THAT(
      misread(another_score([](const SlopedPair& at) { return at.t + at.slope * (at.entry - at.away()); }), cases),
      ElementsAre("slopes multiplied the mask, too"));
  EXPECT_THAT(misread(another_score([](const SlopedPair& at) { return at.t - at.slope * at.away(); }), cases),
              Contains("the mask were not there beside slopes, but for what it hides"));
  EXPECT_THAT(
      misread(another_score([](const SlopedPair& at) { return at.t + 0.375 * at.entry - at.slope * at.away(); }),
              cases),
      ElementsAre("the mask were added before the scale"));
}

TEST(MisreadSlopes, AreOfTheSinkBesideThem) {
  const std::vector<Case> cases = sloped(few, [](Case& c) {
    in_causal_form(c);
    c[Slot::sink] = Tensor(DType::f32, {4}, std::vector<double>{1, 0.5, 2, -1});
  });
  EXPECT_THAT(misread(another_term([](const SlopedPair& at) { return at.slope * static_cast<double>(at.key); }), cases),
              ElementsAre("slopes added slope·j, and the sink were not moved by slope·p as the row's scores are"));
}

/// Other keys than those that there are keep their distances.
TEST(MisreadSlopes, StandBesideOtherKeys) {
  EXPECT_THAT(misread(another_score(
                  [](const SlopedPair& at) { return at.key == at.N - 1 ? -infinity : at.t - at.slope * at.away(); })),
              Contains("the last key were not there"));
  EXPECT_THAT(misread([](Case& c) { another_score([](const SlopedPair& at) { return -at.slope * at.away(); })(c); }),
              ElementsAre("all scores were equal before the mask is added"));
  EXPECT_THAT(misread(another_score([](const SlopedPair&) { return 0; })),
              Contains("all visible keys weighed the same"));
}

TEST(MisreadSlopes, AreThoseOfSequences) {
  std::vector<Case> cases;
  for (const Case& c : sloped({.batch = 3, .heads = 2, .queries = 4, .keys = 7, .dk = 2, .dv = 2},
                              [](Case& one) { one.alignment = Causal::top_left; }))
    cases.push_back(packed(c));
  OtherSlopes kernel([](Case& c) {
    // 4 rows and 7 keys to a sequence: among all of them row i is at 4 s + i, and key j at 7 s + j.
    Case level = c;
    forget_slopes(level);
    Tensor mask(DType::f64, {batch_of(c), heads_of(c), queries_of(c), keys_of(c)});
    for (std::int64_t e = 0; e < mask.elements(); ++e) {
      const auto [b, h, i, j] = mask.shape().index_of(e);
      const auto away = static_cast<double>(std::abs(i - j));
      mask.set(e, hidden(c, b, h, i, j) ? -infinity : bias_of(level, b, h, i, j) - slope_of(c, b, h) * away);
    }
    forget_slopes(c);
    c[Slot::mask] = std::move(mask);
  });
  EXPECT_THAT(misreadings_of(kernel, cases), ElementsAre("the positions of slopes were those among all packed tokens"));
}

/// The output is right.
TEST(MisreadSlopes, AreLogSumExps) {
  const std::vector<Case> cases = sloped(few, [](Case& c) { c.causal = c.alignment = Causal::bottom_right; });
  const auto moved = [](double (*by)(double slope, std::int64_t i, std::int64_t p)) {
    return [by](const Case& c, std::int64_t row, double lse) {
      const std::int64_t M = queries_of(c), i = row % M, p = position(sight_rule(c), i, M, keys_of(c));
      return lse + by(slope_of(c, row / M / heads_of(c), row / M % heads_of(c)), i, p);
    };
  };
  OtherSlopes column(as_it_is, as_it_is,
                     moved([](double slope, std::int64_t, std::int64_t p) { return slope * static_cast<double>(p); }));
  EXPECT_THAT(misreadings_of(column, cases),
              ElementsAre("the log-sum-exp were larger by slope·p, as where slope·j is added to scores"));
  OtherSlopes less(as_it_is, as_it_is,
                   moved([](double slope, std::int64_t, std::int64_t p) { return -slope * static_cast<double>(p); }));
  EXPECT_THAT(misreadings_of(less, cases),
              ElementsAre("the log-sum-exp were less by slope·p, as where it is taken for that of scores to which "
                          "slope·j is added"));
  OtherSlopes corner(as_it_is, as_it_is, moved([](double slope, std::int64_t i, std::int64_t p) {
                       return slope * static_cast<double>(p - i);
                     }));
  EXPECT_THAT(misreadings_of(corner, cases),
              ElementsAre("the log-sum-exp were larger by slope·(N - M), as where slope·(j - i) is added to scores"));
}

TEST(MisreadSlopes, AreNotReadOutOfRightAnswersNorOfOtherMistakes) {
  EXPECT_THAT(misread(as_it_is), IsEmpty());
  EXPECT_THAT(misread(as_it_is, sloped(few, in_causal_form)), IsEmpty());
  EXPECT_THAT(misread(slopes_times([](const Case&) { return 1.3; })), IsEmpty());
}

TEST(MisreadSlopes, AreThoseOfACaseThatHasSome) {
  const test::CaseSizes large{.batch = 2, .heads = 4, .queries = 20, .keys = 20, .dk = 2, .dv = 2, .kv_heads = 2};
  const auto full = [](Case& c) {
    with_mask(c), with_softcap(c), in_causal_form(c);
    c[Slot::sink] = Tensor(DType::f32, {4});
  };
  for (const Case& c : {sloped(large, full, 1, /*own=*/true)[0], sloped({.queries = 1, .keys = 1})[0]}) {
    EXPECT_FALSE(misread_slopes(c).empty());
    for (MisreadSlopes& reading : misread_slopes(c)) {
      EXPECT_FALSE(reading.words.empty());
      EXPECT_EQ(reading.size > 0, reading.words.find('#') != std::string::npos) << reading.words;
      // Slopes of f64 are those of a reading alone.
      Tensor& slopes = reading.problem[Slot::alibi_slopes];
      if (slopes.present())
        slopes =
            mapped(Tensor(DType::f32, slopes.shape()), [before = slopes](std::int64_t e, double) { return before[e]; });
      validate(reading.problem);
    }
  }
  Case none = sloped()[0];
  forget_slopes(none);
  EXPECT_THAT(misread_slopes(none), IsEmpty());
}

/// Masks of either kind hide what they hid, and slopes add what they added.
TEST(MisreadSlopes, BecomeAMask) {
  for (const bool boolean : {false, true}) {
    for (Case c : sloped(few, in_causal_form)) {
      std::uint32_t state = 3;
      c[Slot::mask] = test::filled(boolean ? DType::boolean : DType::f32, {1, 1, 5, 9}, [&] {
        const double next = next_number(state);
        return boolean ? (next > 0 ? 1.0 : 0.0) : (next > 0.5 ? -infinity : next);
      });
      const Case written = with_slopes_as_mask(c);
      validate(written);
      EXPECT_FALSE(written[Slot::alibi_slopes].present());
      for (std::int64_t e = 0; e < 2 * 4 * 5 * 9; ++e) {
        const auto [b, h, i, j] = Shape{2, 4, 5, 9}.index_of(e);
        EXPECT_EQ(hidden(written, b, h, i, j), hidden(c, b, h, i, j)) << e;
        if (!hidden(c, b, h, i, j)) {
          EXPECT_EQ(bias_of(written, b, h, i, j), bias_of(c, b, h, i, j)) << e;
        }
      }
    }
  }
  Case none = sloped()[0];
  forget_slopes(none);
  EXPECT_EQ(with_slopes_as_mask(none), none);
}

}  // namespace
}  // namespace attest
