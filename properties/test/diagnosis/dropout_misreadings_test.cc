// Kernels that read dropout in another way are told so in words, whatever else their cases have.
#include "properties/diagnosis/variants/dropout_misreadings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/problem/score.h"
#include "core/problem/sequences.h"
#include "core/test/cases.h"
#include "properties/arrangement/sequences.h"
#include "properties/catalogue/property.h"
#include "properties/diagnosis/misreadings.h"
#include "properties/diagnosis/pair_product.h"
#include "properties/test/diagnosis/other_dropout.h"

namespace attest {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

bool any(const Case&) {
  return true;
}

/// Of the first cases with a keep that the kernel answers wrong, as they were drawn for a law of dropout.
std::vector<std::string> misread(Kernel& kernel, std::size_t most = 12, bool (*is_taken)(const Case&) = any) {
  const Property &drawn = property_named("dropout.none"), &oracle = property_named("attention.oracle");
  std::vector<Case> cases;
  for (std::int64_t k = 0; k < 20'000 && cases.size() < most; ++k) {
    Case c = project(generate(drawn, DType::f32, 1, k), kernel.manifest());
    if (!c[Slot::keep].present() || !is_taken(c)) continue;
    if (check_case(oracle, kernel, c).outcome == Outcome::violated) cases.push_back(std::move(c));
  }
  EXPECT_EQ(cases.size(), most);
  return misreadings_of(kernel, cases);
}
std::vector<std::string> misread_as(const OtherDropout::Change& change) {
  OtherDropout kernel(change);
  return misread(kernel);
}
/// Where entries of the batch are whole sequences: one that is taken apart is no entry of a batch any more.
std::vector<std::string> misread_of_whole_entries(const OtherDropout::Change& change) {
  OtherDropout kernel(change);
  return misread(kernel, /*most=*/12, [](const Case& c) { return !has_sequences(c); });
}
/// Kept weights are divided by another share than 1 - p, of rates at which neither is next to nothing.
std::vector<std::string> misread_share(const std::function<double(double p)>& share) {
  return misread_as([share](Case& c) {
    if (c.dropout_p < 0x1p-7 || c.dropout_p > 0.9) return;
    const double factor = 1 / share(c.dropout_p);
    c[Slot::v] = mapped(c.v(), [&](std::int64_t, double old) { return factor * old; });
    c.dropout_p = 0;
  });
}

TEST(MisreadDropouts, AreOtherChoices) {
  const auto kept = [](const Tensor& keep, const KeptPlace& at) { return keep.at(at.b, at.h, at.i, at.j); };
  const OtherDropout::Change inverted =
      another_keep([&](const Tensor& keep, const Case&, KeptPlace at) { return 1 - kept(keep, at); });
  EXPECT_THAT(misread_as(forget_dropout), ElementsAre("there were no dropout"));
  EXPECT_THAT(misread_as(another_keep([](const Tensor&, const Case&, KeptPlace) { return 1.0; })),
              ElementsAre("keep were ignored, and every weight divided by 1 - p"));
  EXPECT_THAT(misread_as(inverted), ElementsAre("keep were inverted"));
  EXPECT_THAT(misread_as([&](Case& c) { inverted(c), c.dropout_p = 0; }),
              ElementsAre("keep were inverted, and kept weights not divided by 1 - p"));
}

TEST(MisreadDropouts, AreOtherFactors) {
  EXPECT_THAT(misread_as([](Case& c) { c.dropout_p = 0; }), ElementsAre("kept weights were not divided by 1 - p"));
  EXPECT_THAT(misread_share([](double p) { return (1 - p) * (1 - p); }),
              ElementsAre("kept weights were divided by 1 - p twice"));
  EXPECT_THAT(misread_share([](double p) { return 1 / (1 - p); }),
              ElementsAre("kept weights were multiplied by 1 - p, and not divided"));
  EXPECT_THAT(misread_share([](double p) { return 1 / p; }), ElementsAre("kept weights were multiplied by p"));
  EXPECT_THAT(misread_share([](double p) { return p; }),
              ElementsAre("kept weights were divided by p, and not by 1 - p"));
}

TEST(MisreadDropouts, AreRoundedRates) {
  EXPECT_THAT(misread_share([](double p) { return (std::floor(255 * (1 - p)) + 1) / 256; }),
              ElementsAre("kept weights were divided by (floor(255·(1 - p)) + 1)/256, the probability that a byte "
                          "keeps"));
  EXPECT_THAT(misread_share([](double p) { return 1 - std::min(std::round(16 * p), 15.0) / 16; }),
              ElementsAre("p were rounded to a multiple of 1/16"));
  // Of larger ones, of which an error in f16 is far beyond what answers in f32 may err by.
  EXPECT_THAT(misread_share([](double p) { return 1 - (p > 0.25 ? round_to(DType::f16, p) : p); }),
              ElementsAre("p were rounded to f16"));
  EXPECT_THAT(misread_share([](double p) { return 1 / round_to(DType::bf16, 1 / (1 - p)); }),
              ElementsAre("1/(1 - p) were rounded to bf16"));
}

TEST(MisreadDropouts, ComeBeforeTheWeights) {
  EXPECT_THAT(misread_as([](Case& c) {
                const double p = c.dropout_p;
                hide_dropped(c);
                if (c[Slot::sink].present())
                  c[Slot::sink] = mapped(
                      Tensor(DType::f64, c[Slot::sink].shape()),
                      [&, before = c[Slot::sink]](std::int64_t h, double) { return before[h] + std::log1p(-p); });
              }),
              ElementsAre("weights were normalised again after dropping"));
  EXPECT_THAT(misread_as([](Case& c) {
                const Tensor keep = c[Slot::keep];
                const double p = c.dropout_p;
                hide_dropped(c);
                c[Slot::keep] = keep, c.dropout_p = p;
              }),
              ElementsAre("dropped keys were hidden, and what is left divided by 1 - p"));
}

TEST(MisreadDropouts, AreOfScores) {
  // In the place of products, so that nothing is subtracted from them.
  EXPECT_THAT(misread_as([](Case& c) {
                Tensor mask(DType::f64, {batch_of(c), heads_of(c), queries_of(c), keys_of(c)});
                for (std::int64_t e = 0; e < mask.elements(); ++e) {
                  const auto [b, h, i, j] = mask.shape().index_of(e);
                  const auto product = static_cast<double>(product_of_pair(c, b, h, i, j));
                  const double score = score_in(c, product, bias_of(c, b, h, i, j)) / (1 - c.dropout_p);
                  mask.set(e, hidden(c, b, h, i, j) ? -infinity : keeps(c, b, h, i, j) ? score : 0.0);
                }
                forget_dropout(c);
                drop_variant(c, softcap_variant.name);
                drop_variant(c, alibi_variant.name);
                drop_positions(c);
                c.mask_convention = MaskConvention::post_scale;
                c[Slot::mask] = std::move(mask);
                c[Slot::q] = mapped(c.q(), [](std::int64_t, double) { return 0.0; });
              }),
              ElementsAre("scores were dropped to 0 or divided by 1 - p, and weights were not"));
}

TEST(MisreadDropouts, AreOfTheSinkBesideThem) {
  OtherDropout kernel([](Case& c) {
    if (!c[Slot::sink].present()) return;
    c[Slot::sink] =
        mapped(Tensor(DType::f64, c[Slot::sink].shape()),
               [&, before = c[Slot::sink]](std::int64_t h, double) { return before[h] - std::log1p(-c.dropout_p); });
  });
  EXPECT_THAT(misread(kernel, /*most=*/4, [](const Case& c) { return c[Slot::sink].present(); }),
              ElementsAre("the sum of the keys' weights were multiplied by 1 - p before the sink joins it"));
}

TEST(MisreadDropouts, AreOtherPages) {
  EXPECT_THAT(misread_as(another_keep(
                  [](const Tensor& keep, const Case&, KeptPlace at) { return keep.at(at.b, 0, at.i, at.j); })),
              Contains("every head had the keep of the first"));
  EXPECT_THAT(misread_of_whole_entries(another_keep(
                  [](const Tensor& keep, const Case&, KeptPlace at) { return keep.at(0, at.h, at.i, at.j); })),
              ElementsAre("every batch entry had the keep of the first"));
  EXPECT_THAT(misread_as(another_keep([](const Tensor& keep, const Case& c, KeptPlace at) {
                return keep.at(at.b, keep.shape()[1] == 1 ? 0 : kv_head_of(c, at.h), at.i, at.j);
              })),
              Contains("a head had the keep at the place of its key-value head"));
}

TEST(MisreadDropouts, AreOtherPlaces) {
  EXPECT_THAT(misread_of_whole_entries(another_keep(
                  [](const Tensor& keep, const Case&, KeptPlace at) { return keep.at(at.b, at.h, 0, at.j); })),
              ElementsAre("every row had the keep of the first"));
  EXPECT_THAT(misread_of_whole_entries(another_keep([](const Tensor& keep, const Case&, KeptPlace at) {
                const bool square = keep.shape()[2] == keep.shape()[3];
                return square ? keep.at(at.b, at.h, at.j, at.i) : keep.at(at.b, at.h, at.i, at.j);
              })),
              ElementsAre("rows and columns of keep were exchanged"));
  EXPECT_THAT(misread_of_whole_entries(another_keep([](const Tensor& keep, const Case&, KeptPlace at) {
                return keep.at(at.b, at.h, at.i, (at.j + 1) % keep.shape()[3]);
              })),
              ElementsAre("a key had the keep of the next one, and the last that of the first"));
}

/// Numbers of both signs, another each time.
double next_number(std::uint32_t& state) {
  state = state * 1664525U + 1013904223U;
  return static_cast<double>(state >> 24U) / 128 - 1;
}
/// Three cases, of which about half of the weights are dropped at a rate of 3/8.
std::vector<Case> dropping(const test::CaseSizes& sizes) {
  std::uint32_t state = 1;
  std::vector<Case> cases;
  for (int i = 0; i < 3; ++i) {
    Case c = test::attention_of(sizes, [&](Slot, const Shape& shape) {
      return test::filled(DType::f32, shape, [&] { return next_number(state); });
    });
    c[Slot::keep] = test::filled(DType::boolean, {sizes.batch, sizes.heads, sizes.queries, sizes.keys},
                                 [&] { return next_number(state) > 0 ? 1.0 : 0.0; });
    c.dropout_p = 0.375;
    cases.push_back(std::move(c));
  }
  return cases;
}

/// Of 120 keys the sizes leave other ones behind.
TEST(MisreadDropouts, AreOfTiles) {
  const std::vector<Case> cases = dropping({.queries = 40, .keys = 120, .dk = 2, .dv = 2});
  const auto found = [&](const OtherDropout::Change& change) {
    OtherDropout kernel(change);
    return misreadings_of(kernel, cases);
  };
  EXPECT_THAT(found(another_keep([](const Tensor& keep, const Case&, KeptPlace at) {
                return at.j < 64 ? keep.at(at.b, at.h, at.i, at.j) : 1.0;
              })),
              ElementsAre("no weight of a key behind the last whole 64 were dropped"));
  EXPECT_THAT(found(another_keep(
                  [](const Tensor& keep, const Case&, KeptPlace at) { return keep.at(at.b, at.h, at.i % 16, at.j); })),
              ElementsAre("keep were read by a row's place in its tile of 16"));
  EXPECT_THAT(found(another_keep(
                  [](const Tensor& keep, const Case&, KeptPlace at) { return keep.at(at.b, at.h, at.i, at.j % 32); })),
              ElementsAre("keep were read by a key's place in its tile of 32"));
  EXPECT_THAT(found(another_keep([](const Tensor& keep, const Case&, KeptPlace at) {
                const std::int64_t e = keep.shape().flat(at.b, at.h, at.i, at.j) + 1;
                return keep[std::min(e, keep.elements() - 1)];
              })),
              ElementsAre("keep were read one element further on in memory"));
}

TEST(MisreadDropouts, AreOfTheFirstSequence) {
  std::vector<Case> cases;
  for (const Case& c : dropping({.batch = 3, .heads = 2, .queries = 3, .keys = 5, .dk = 2, .dv = 2}))
    cases.push_back(packed(c));
  OtherDropout kernel([](Case& c) {
    const std::vector<Sequence> all = sequences_of(c);
    another_keep([&](const Tensor& keep, const Case&, KeptPlace at) {
      for (const Sequence& own : all)
        if (has_query(own, at.i) && has_key(own, at.j))
          return keep.at(at.b, at.h, at.i - own.first_query, at.j - own.first_key);
      return keep.at(at.b, at.h, at.i, at.j);
    })(c);
  });
  EXPECT_THAT(misreadings_of(kernel, cases),
              ElementsAre("a sequence's keep were that of as many first rows and keys of its batch entry"));
}

/// The output is right.
TEST(MisreadDropouts, AreLogSumExps) {
  const auto as_it_is = [](Case&) {};
  OtherDropout of_kept(as_it_is, hide_dropped);
  EXPECT_THAT(misread(of_kept), ElementsAre("the log-sum-exp were that of the weights that are kept"));
  OtherDropout of_multiplied(as_it_is, as_it_is,
                             [](const Case& c, double lse) { return lse + std::log1p(-c.dropout_p); });
  EXPECT_THAT(misread(of_multiplied), ElementsAre("the log-sum-exp were that of all weights, multiplied by 1 - p"));
}

TEST(MisreadDropouts, AreThoseOfPlantedFaults) {
  const auto of_fault = [](std::string_view name) { return misread(*registered(name)); };
  EXPECT_THAT(of_fault("fault:dropout-mask-inverted"), ElementsAre("keep were inverted"));
  EXPECT_THAT(of_fault("fault:dropout-not-scaled"), ElementsAre("kept weights were not divided by 1 - p"));
  EXPECT_THAT(of_fault("fault:dropout-before-the-sum"), ElementsAre("weights were normalised again after dropping"));
}

TEST(MisreadDropouts, AreNotReadOutOfRightAnswersNorOfOtherMistakes) {
  const auto right = registered("builtin:flash");
  const Property& property = property_named("dropout.none");
  std::vector<Case> cases;
  for (std::int64_t k = 0; k < 1000 && cases.size() < 12; ++k)
    if (Case c = project(generate(property, DType::f32, 1, k), right->manifest()); c[Slot::keep].present())
      cases.push_back(std::move(c));
  EXPECT_EQ(cases.size(), 12U);
  EXPECT_THAT(misreadings_of(*right, cases), IsEmpty());
  EXPECT_THAT(misread_share([](double p) { return 1 - 0.8 * p; }), IsEmpty());
}

TEST(MisreadDropouts, AreThoseOfACaseThatHasOne) {
  Case c = dropping({.batch = 2, .heads = 2, .queries = 20, .keys = 20, .dk = 2, .dv = 2})[0];
  c[Slot::sink] = Tensor(DType::f32, {2});
  for (const Case& one : {c, dropping({.queries = 1, .keys = 1})[0]}) {
    EXPECT_FALSE(misread_dropout(one).empty());
    for (const MisreadDropout& reading : misread_dropout(one)) {
      EXPECT_FALSE(reading.words.empty());
      EXPECT_EQ(reading.size > 0, reading.words.find('#') != std::string::npos) << reading.words;
      validate(reading.problem);
    }
  }
  // Of a mask that the kernel draws nobody can say how it is read.
  c[Slot::keep] = Tensor();
  EXPECT_THAT(misread_dropout(c), IsEmpty());
}

/// A mask of one page beside a keep of many, and the other way round.
TEST(MisreadDropouts, HideWhatIsDroppedBesideAMask) {
  Case c = dropping({.batch = 2, .heads = 3, .queries = 2, .keys = 4, .dk = 2, .dv = 2})[0];
  Case shared = c;
  c[Slot::mask] = Tensor(DType::f8_e4m3, {1, 1, 2, 4}, std::vector<double>{1, 2, 1, 2, -1, 1, -2, 1});
  shared[Slot::keep] = test::filled(DType::boolean, {1, 1, 2, 4}, [] { return 0.0; });
  shared[Slot::mask] = test::filled(DType::boolean, {2, 3, 2, 4}, [] { return 1.0; });
  for (const Case& one : {c, shared}) {
    const Case hiding = with_dropped_keys_hidden(one);
    validate(hiding);
    EXPECT_FALSE(hiding[Slot::keep].present());
    EXPECT_EQ(hiding.dropout_p, 0);
    for (std::int64_t e = 0; e < 48; ++e) {
      const auto [b, h, i, j] = Shape{2, 3, 2, 4}.index_of(e);
      EXPECT_EQ(hidden(hiding, b, h, i, j), hidden(one, b, h, i, j) || !keeps(one, b, h, i, j)) << e;
      if (keeps(one, b, h, i, j)) {
        EXPECT_EQ(bias_of(hiding, b, h, i, j), bias_of(one, b, h, i, j)) << e;
      }
    }
  }
}

}  // namespace
}  // namespace attest
