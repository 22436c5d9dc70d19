// Dropout that is taken for something else is known by it, and one that is taken as it is meant is called so.
#include "properties/diagnosis/variants/probes/probe_dropout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/test/says.h"
#include "properties/test/diagnosis/other_dropout.h"

namespace attest {
namespace {

constexpr std::string_view as_meant = "as it is meant";

Probed asked(Kernel& kernel) {
  ProbeQuestions probe(kernel, 1);
  ask_dropout(probe);
  return std::move(probe.result());
}
Probed asked(const OtherDropout::Change& change) {
  OtherDropout kernel(change);
  return asked(kernel);
}

const ProbeAnswer& answer_to(const Probed& probed, std::string_view question) {
  for (const ProbeAnswer& answer : probed.answers)
    if (answer.question == question) return answer;
  throw std::out_of_range(std::string(question));
}

/// Kept weights are divided by another share than 1 - p.
OtherDropout::Change of_share(std::function<double(double p)> share) {
  return [share = std::move(share)](Case& c) {
    const double factor = 1 / share(c.dropout_p);
    c[Slot::v] = mapped(c.v(), [&](std::int64_t, double old) { return factor * old; });
    c.dropout_p = 0;
  };
}

TEST(ProbeDropout, FindsARightKernelRight) {
  for (const char* const id : {"builtin:two-pass", "builtin:flash", "core:float"}) {
    const auto kernel = registered(id);
    const Probed probed = asked(*kernel);
    EXPECT_FALSE(probed.contradicted()) << id;
    EXPECT_EQ(probed.manifest, kernel->manifest()) << id;
    for (const char* const question : {"dropout", "dropout with dropout_p = 0", "dropout beside an additive mask",
                                       "dropout beside a boolean mask", "dropout beside a causal form, top-left",
                                       "dropout beside a causal form, bottom-right", "dropout beside a sink"}) {
      EXPECT_EQ(answer_to(probed, question).found, as_meant) << id << ", " << question;
      EXPECT_EQ(answer_to(probed, question).evidence, "") << id;
    }
    EXPECT_EQ(answer_to(probed, "a row that drops every key").found, "zero") << id;
    EXPECT_EQ(answer_to(probed, "log-sum-exp beside dropout").found, "of all weights") << id;
  }
}

TEST(ProbeDropout, NamesWhatItIsTakenForAndWhatMendsIt) {
  struct Mistake {
    OtherDropout::Change change;
    std::string_view found, remedy;
  };
  const OtherDropout::Change inverted =
      another_keep([](const Tensor& keep, const Case&, KeptPlace at) { return 1 - keep.at(at.b, at.h, at.i, at.j); });
  const Mistake mistakes[] = {
      {forget_dropout, "as if there were no dropout", "Leave \"dropout\" out of \"variants\"."},
      {inverted, "as if keep were inverted", "In the adapter: pass 1 - keep."},
      {[](Case& c) { c.dropout_p = 0; }, "as if kept weights were not divided by 1 - p",
       "In the adapter: divide the output by 1 - dropout_p."},
      {of_share([](double p) { return (1 - p) * (1 - p); }), "as if kept weights were divided by 1 - p twice",
       "In the adapter: multiply the output by 1 - dropout_p."},
      {of_share([](double p) { return 1 / (1 - p); }), "as if kept weights were multiplied by 1 - p, and not divided",
       "In the adapter: divide the output by (1 - dropout_p)²."},
      {[](Case& c) { c.dropout_p = 1 - c.dropout_p; }, "as if kept weights were divided by p, and not by 1 - p",
       "In the adapter: pass 1 - dropout_p for the rate."},
      {of_share([](double p) { return (std::floor(255 * (1 - p)) + 1) / 256; }),
       "as if kept weights were divided by (floor(255·(1 - p)) + 1)/256, the probability that a byte keeps",
       "In the adapter: raise Unsupported for a dropout_p that is no multiple of 1/256."},
      {hide_dropped, "as if weights were normalised again after dropping", ""},
      {[](Case& c) {
         const Tensor keep = c[Slot::keep];
         const double p = c.dropout_p;
         hide_dropped(c);
         c[Slot::keep] = keep, c.dropout_p = p;
       },
       "as if dropped keys were hidden, and what is left divided by 1 - p", ""},
      {another_keep([](const Tensor& keep, const Case&, KeptPlace at) { return keep.at(at.b, 0, at.i, at.j); }),
       "as if every head had the keep of the first",
       "In the adapter: raise Unsupported where heads have a keep of their own."},
      {another_keep([](const Tensor& keep, const Case& c, KeptPlace at) {
         return keep.at(at.b, kv_head_of(c, at.h), at.i, at.j);
       }),
       "as if a head had the keep at the place of its key-value head",
       "In the adapter: raise Unsupported where heads have a keep of their own."},
      {of_share([](double p) { return 1 - p / 3; }), "an answer that fits no reading", ""}};
  for (const Mistake& one : mistakes) {
    const Probed probed = asked(one.change);
    const ProbeAnswer& answer = answer_to(probed, "dropout");
    EXPECT_EQ(answer.found, one.found);
    EXPECT_EQ(answer.evidence, one.remedy) << answer.found;
    EXPECT_TRUE(answer.contradicts) << answer.found;
    EXPECT_FALSE(probed.manifest.variants.contains("dropout")) << answer.found;
  }
}

/// Of a right kernel whose adapter does what a remedy says, beside the mistake that the remedy is for.
TEST(ProbeDropout, NamesRemediesThatMend) {
  const OtherDropout::Change inverted =
      another_keep([](const Tensor& keep, const Case&, KeptPlace at) { return 1 - keep.at(at.b, at.h, at.i, at.j); });
  const auto times = [](Case& c, double factor) {
    c[Slot::v] = mapped(c.v(), [&](std::int64_t, double old) { return factor * old; });
  };
  const OtherDropout::Change mended[] = {[&](Case& c) { inverted(c), inverted(c); },
                                         [&](Case& c) {
                                           times(c, 1 / (1 - c.dropout_p));
                                           c.dropout_p = 0;
                                         },
                                         [&](Case& c) {
                                           // Asked for 1 - p, it divides by 1 - p; nothing where that is 1.
                                           const double asked_for = 1 - c.dropout_p;
                                           c.dropout_p = 0;
                                           times(c, 1 / asked_for);
                                         }};
  for (const OtherDropout::Change& change : mended) EXPECT_EQ(answer_to(asked(change), "dropout").found, as_meant);
}

TEST(ProbeDropout, TellsWhatNoManifestLeavesOut) {
  const Probed at_no_rate = asked([](Case& c) {
    if (c.dropout_p == 0) forget_dropout(c);
  });
  EXPECT_EQ(answer_to(at_no_rate, "dropout").found, as_meant);
  const ProbeAnswer& answer = answer_to(at_no_rate, "dropout with dropout_p = 0");
  EXPECT_EQ(answer.found, "as if there were no dropout");
  EXPECT_EQ(answer.evidence, "In the adapter: raise Unsupported for a dropout_p of 0.");
  EXPECT_TRUE(answer.contradicts);
  EXPECT_FALSE(at_no_rate.manifest.variants.contains("dropout"));

  // What is kept over the sum of what is kept.
  const Probed over_nothing = asked([](Case& c) {
    const Tensor& keep = c[Slot::keep];
    const std::int64_t M = queries_of(c), N = keys_of(c);
    Tensor mask(DType::f64, {batch_of(c), heads_of(c), M, N});
    for (std::int64_t row = 0; row * N < mask.elements(); ++row) {
      bool keeps_one = false;
      for (std::int64_t j = 0; j < N; ++j) keeps_one = keeps_one || keep[row * N + j] != 0;
      for (std::int64_t j = 0; j < N; ++j) mask.set(row * N + j, keeps_one ? 0 : -infinity);
    }
    // A row that sees no key is NaN of this kernel.
    if (!c.mask().present()) c[Slot::mask] = std::move(mask);
  });
  EXPECT_EQ(answer_to(over_nothing, "a row that drops every key").found, "nan");
  EXPECT_TRUE(answer_to(over_nothing, "a row that drops every key").contradicts);
  EXPECT_FALSE(over_nothing.manifest.variants.contains("dropout"));
}

TEST(ProbeDropout, TellsWhatItDoesNotGoWith) {
  const auto excluded = [](bool (*is)(const Case&)) {
    const Probed probed = asked([is](Case& c) {
      if (is(c)) forget_dropout(c);
    });
    EXPECT_EQ(answer_to(probed, "dropout").found, as_meant);
    EXPECT_TRUE(probed.contradicted());
    EXPECT_EQ(parse_manifest(to_json(probed.manifest), "found"), probed.manifest);
    return probed.manifest.variants.at("dropout").excluded;
  };
  using Features = std::vector<Feature>;
  EXPECT_EQ(excluded([](const Case& c) { return c.mask().present(); }),
            (Features{Feature::additive_mask, Feature::bool_mask}));
  EXPECT_EQ(excluded([](const Case& c) { return c.causal == Causal::bottom_right; }), Features{Feature::bottom_right});
  EXPECT_EQ(excluded([](const Case& c) { return c[Slot::sink].present(); }), Features{Feature::sink});
}

TEST(ProbeDropout, TellsWhatTheLogSumExpIsOf) {
  const auto as_it_is = [](Case&) {};
  OtherDropout of_kept(as_it_is, hide_dropped);
  const Probed kept = asked(of_kept);
  EXPECT_EQ(answer_to(kept, "dropout").found, as_meant);
  EXPECT_EQ(answer_to(kept, "log-sum-exp beside dropout").found, "of the weights that are kept");
  EXPECT_TRUE(answer_to(kept, "log-sum-exp beside dropout").contradicts);
  EXPECT_EQ(kept.manifest.variants.at("dropout").excluded, std::vector{Feature::lse});
  EXPECT_EQ(parse_manifest(to_json(kept.manifest), "found"), kept.manifest);
  OtherDropout of_divided(as_it_is, as_it_is, [](const Case& c, double lse) { return lse - std::log1p(-c.dropout_p); });
  EXPECT_EQ(answer_to(asked(of_divided), "log-sum-exp beside dropout").found, "of all weights, divided by 1 - p");
}

TEST(ProbeDropout, AsksNothingThatTheManifestRulesOut) {
  bool sent = false;
  OtherDropout none([&](Case&) { sent = true; });
  none.manifest().variants.erase("dropout");
  EXPECT_THAT(answer_to(asked(none), "dropout").found, Says("not asked"));
  EXPECT_FALSE(sent);

  OtherDropout own([&](Case&) { sent = true; });
  own.manifest().variants.at("dropout").given = false, own.manifest().variants.at("dropout").own = true;
  const Probed drawn = asked(own);
  EXPECT_THAT(answer_to(drawn, "dropout").found, Says("not asked", "\"given\""));
  EXPECT_FALSE(sent || drawn.contradicted());
  EXPECT_EQ(drawn.manifest, own.manifest());

  OtherDropout unmasked([&](Case& c) { sent = sent || c.mask().present(); });
  unmasked.manifest().variants.at("dropout").excluded = {Feature::mask};
  const Probed without = asked(unmasked);
  EXPECT_FALSE(sent || without.contradicted());
  EXPECT_EQ(answer_to(without, "dropout").found, as_meant);
  EXPECT_THAT(answer_to(without, "dropout beside a boolean mask").found, Says("not asked"));
  EXPECT_EQ(without.manifest, unmasked.manifest());
}

}  // namespace
}  // namespace attest
