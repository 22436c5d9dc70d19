// Slopes that are taken for something else are known by it, and those that are taken as they are meant are called so.
#include "properties/diagnosis/variants/probes/probe_alibi.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/kernel/lse_convention.h"
#include "core/problem/score.h"
#include "core/test/says.h"
#include "properties/test/diagnosis/other_slopes.h"

namespace attest {
namespace {

constexpr std::string_view as_meant = "as it is meant";
using Changes = std::function<void(Case&)>;
const Changes as_it_is = [](Case&) {};

Probed asked(Kernel& kernel) {
  ProbeQuestions probe(kernel, 1);
  ask_alibi(probe);
  return std::move(probe.result());
}
Probed asked(const Changes& change) {
  OtherSlopes kernel(change);
  return asked(kernel);
}

const ProbeAnswer& answer_to(const Probed& probed, std::string_view question) {
  for (const ProbeAnswer& answer : probed.answers)
    if (answer.question == question) return answer;
  throw std::out_of_range(std::string(question));
}

TEST(ProbeAlibi, FindsARightKernelRight) {
  for (const char* const id : {"builtin:two-pass", "builtin:flash", "builtin:flash-exp2", "core:float"}) {
    const auto kernel = registered(id);
    const Probed probed = asked(*kernel);
    EXPECT_FALSE(probed.contradicted()) << id;
    EXPECT_EQ(probed.manifest, kernel->manifest()) << id;
    for (const char* const question :
         {"slopes, top-left", "slopes, bottom-right", "slopes beside a causal form, top-left",
          "slopes beside a causal form, bottom-right", "slopes of any sign, and of 0",
          "slopes of every batch entry's own", "slopes beside an additive mask", "slopes beside a boolean mask",
          "slopes beside a softcap", "slopes beside a sink", "slopes beside a window", "slopes beside chunks"}) {
      EXPECT_EQ(answer_to(probed, question).found, as_meant) << id << ", " << question;
      EXPECT_EQ(answer_to(probed, question).evidence, "") << id;
    }
    const ProbeAnswer& lse = answer_to(probed, "log-sum-exp beside slopes");
    EXPECT_EQ(lse.found, lse.declared) << id;
  }
}

TEST(ProbeAlibi, NamesWhatTheyAreTakenForAndWhatMendsIt) {
  struct Mistake {
    Changes change;
    std::string_view found, remedy;
  };
  const auto of_head = [](std::int64_t (*head)(std::int64_t h, std::int64_t heads)) {
    return another_slope([head](const Tensor& slopes, const Case& c, std::int64_t entry, std::int64_t h) {
      return slopes.at(entry, head(h, heads_of(c)));
    });
  };
  const Mistake mistakes[] = {
      {forget_slopes, "as if there were no slopes", "Leave \"alibi\" out of \"variants\"."},
      {slopes_times([](const Case& c) { return c.scale; }),
       "as if slopes were multiplied by the scale, as where they are added before it",
       "In the adapter: pass alibi_slopes / scale."},
      {slopes_times([](const Case&) { return std::numbers::ln2; }), "as if slopes were those of scores to base 2",
       "In the adapter: pass alibi_slopes · log2(e)."},
      {slopes_times([](const Case&) { return -1; }), "as if slopes had the other sign",
       "In the adapter: pass -alibi_slopes."},
      {of_head([](std::int64_t h, std::int64_t heads) { return (h + 1) % heads; }),
       "as if a head had the slope of the next one, and the last that of the first",
       "In the adapter: pass alibi_slopes with the last one first."},
      {of_head([](std::int64_t h, std::int64_t heads) { return heads - 1 - h; }),
       "as if slopes of heads were in reverse order", "In the adapter: pass alibi_slopes in reverse order."},
      {of_head([](std::int64_t h, std::int64_t) { return h / 2; }),
       "as if a head had the slope at the place of its key-value head",
       "In the adapter: raise Unsupported where heads have slopes that differ."},
      {another_slope([](const Tensor& slopes, const Case&, std::int64_t entry, std::int64_t h) {
         return round_to(DType::bf16, slopes.at(entry, h));
       }),
       "as if slopes were rounded to bf16", "In the adapter: raise Unsupported for slopes that bf16 does not hold."},
      {slopes_times([](const Case&) { return 1.3; }), "an answer that fits no reading", ""}};
  for (const Mistake& one : mistakes) {
    const Probed probed = asked(one.change);
    const ProbeAnswer& answer = answer_to(probed, "slopes, bottom-right");
    EXPECT_EQ(answer.found, one.found);
    EXPECT_EQ(answer.evidence, one.remedy) << answer.found;
    EXPECT_TRUE(answer.contradicts) << answer.found;
    EXPECT_FALSE(probed.manifest.variants.contains("alibi")) << answer.found;
    EXPECT_EQ(parse_manifest(to_json(probed.manifest), "found"), probed.manifest);
  }
}

/// Of a right kernel whose adapter does what a remedy says, beside the mistake that the remedy is for.
TEST(ProbeAlibi, NamesRemediesThatMend) {
  const auto rotated = [](std::int64_t by) {
    return another_slope([by](const Tensor& slopes, const Case& c, std::int64_t entry, std::int64_t h) {
      return slopes.at(entry, (h + by + heads_of(c)) % heads_of(c));
    });
  };
  const std::pair<Changes, Changes> mended[] = {
      {slopes_times([](const Case&) { return -1; }), slopes_times([](const Case&) { return -1; })},
      // The next one's slope, of slopes of which the last comes first.
      {rotated(-1), rotated(1)}};
  for (const auto& [remedy, mistake] : mended) {
    const Probed probed = asked([&](Case& c) { remedy(c), mistake(c); });
    EXPECT_EQ(answer_to(probed, "slopes, bottom-right").found, as_meant);
  }
}

TEST(ProbeAlibi, TellsFromWhereRowsCount) {
  const Probed from_first = asked([](Case& c) {
    if (c.causal == Causal::none) c.alignment = Causal::top_left;
  });
  const ProbeAnswer& answer = answer_to(from_first, "slopes, bottom-right");
  EXPECT_EQ(answer.found, "as if positions of slopes counted from the first keys, without N - M");
  EXPECT_EQ(answer.evidence, "State \"alignment\": [\"top-left\"] of \"alibi\" in \"variants\".");
  EXPECT_TRUE(answer.contradicts);
  EXPECT_EQ(from_first.manifest.variants.at("alibi").alignment, std::vector{Causal::top_left});
  EXPECT_EQ(parse_manifest(to_json(from_first.manifest), "found"), from_first.manifest);
}

/// slope·j is right where no key lies behind a row.
TEST(ProbeAlibi, TellsWhereACausalFormIsNeeded) {
  const Probed column =
      asked(another_term([](const SlopedPair& at) { return at.slope * static_cast<double>(at.key - at.position); }));
  for (const char* const alignment : {"top-left", "bottom-right"}) {
    const ProbeAnswer& answer = answer_to(column, fmt::format("slopes, {}", alignment));
    EXPECT_EQ(answer.found,
              "as if slopes multiplied j - p with its sign, as where no key lies behind a row's position");
    EXPECT_EQ(answer.evidence, "State \"requires\": [\"causal\"] of \"alibi\" in \"variants\".");
    EXPECT_EQ(answer_to(column, fmt::format("slopes beside a causal form, {}", alignment)).found, as_meant);
  }
  EXPECT_EQ(column.manifest.variants.at("alibi").required, std::vector{Feature::causal});
  EXPECT_EQ(parse_manifest(to_json(column.manifest), "found"), column.manifest);

  const Probed one_form = asked([](Case& c) {
    if (c.causal == Causal::top_left) forget_slopes(c);
  });
  EXPECT_EQ(answer_to(one_form, "slopes, top-left").found, as_meant);
  EXPECT_EQ(answer_to(one_form, "slopes beside a causal form, top-left").found, "as if there were no slopes");
  EXPECT_EQ(one_form.manifest.variants.at("alibi").excluded, std::vector{Feature::top_left});
}

TEST(ProbeAlibi, TellsOfSlopesThatNoManifestLeavesOut) {
  const Probed unsigned_ones = asked(another_slope([](const Tensor& slopes, const Case&, std::int64_t entry,
                                                      std::int64_t h) { return std::fabs(slopes.at(entry, h)); }));
  EXPECT_EQ(answer_to(unsigned_ones, "slopes, bottom-right").found, as_meant);
  const ProbeAnswer& answer = answer_to(unsigned_ones, "slopes of any sign, and of 0");
  EXPECT_EQ(answer.found, "as if slopes below 0 had no sign");
  EXPECT_EQ(answer.evidence, "In the adapter: raise Unsupported for slopes below 0.");
  EXPECT_TRUE(answer.contradicts);
  EXPECT_FALSE(unsigned_ones.manifest.variants.contains("alibi"));
}

TEST(ProbeAlibi, TellsWhoseTheyAre) {
  const Probed of_first = asked(another_slope(
      [](const Tensor& slopes, const Case&, std::int64_t, std::int64_t h) { return slopes.at(std::int64_t{0}, h); }));
  EXPECT_EQ(answer_to(of_first, "slopes, bottom-right").found, as_meant);
  const ProbeAnswer& answer = answer_to(of_first, "slopes of every batch entry's own");
  EXPECT_EQ(answer.found, "as if every batch entry had the slopes of the first");
  EXPECT_EQ(answer.evidence, "State \"per_batch\": false of \"alibi\" in \"variants\".");
  EXPECT_FALSE(of_first.manifest.variants.at("alibi").per_batch);
  EXPECT_EQ(parse_manifest(to_json(of_first.manifest), "found"), of_first.manifest);
}

TEST(ProbeAlibi, TellsWhatTheyDoNotGoWith) {
  const auto excluded = [](bool (*is)(const Case&)) {
    const Probed probed = asked([is](Case& c) {
      if (is(c)) forget_slopes(c);
    });
    EXPECT_EQ(answer_to(probed, "slopes, bottom-right").found, as_meant);
    EXPECT_TRUE(probed.contradicted());
    EXPECT_EQ(parse_manifest(to_json(probed.manifest), "found"), probed.manifest);
    return probed.manifest.variants.at("alibi").excluded;
  };
  using Features = std::vector<Feature>;
  EXPECT_EQ(excluded([](const Case& c) { return c.mask().present(); }),
            (Features{Feature::additive_mask, Feature::bool_mask}));
  EXPECT_EQ(excluded([](const Case& c) { return c[Slot::sink].present(); }), Features{Feature::sink});
  EXPECT_EQ(excluded([](const Case& c) { return has_variant(c, window_variant.name); }), Features{Feature::window});
  EXPECT_EQ(excluded([](const Case& c) { return c.attention_chunk > 0; }), Features{Feature::chunk});

  // FlashInfer's order.
  const Probed capped_last = asked([](Case& c) {
    if (c.softcap == 0) return;
    another_score(
        [cap = c.softcap](const SlopedPair& at) { return capped(at.t - at.slope * at.away(), cap) + at.entry; })(c);
  });
  const ProbeAnswer& answer = answer_to(capped_last, "slopes beside a softcap");
  EXPECT_EQ(answer.found, "as if the cap were taken after slopes, as with FlashInfer");
  EXPECT_EQ(answer.evidence, "State \"excludes\": [\"softcap\"] of \"alibi\" in \"variants\".");
  EXPECT_EQ(capped_last.manifest.variants.at("alibi").excluded, Features{Feature::softcap});
}

/// Log-sum-exps larger by so much.
OtherSlopes with_lse(double (*by)(double slope, std::int64_t i, std::int64_t p)) {
  return OtherSlopes(as_it_is, as_it_is, [by](const Case& c, std::int64_t row, double lse) {
    if (c.causal == Causal::none) return lse;
    const std::int64_t M = queries_of(c), i = row % M, p = position(sight_rule(c), i, M, keys_of(c));
    return lse + by(slope_of(c, row / M / heads_of(c), row / M % heads_of(c)), i, p);
  });
}
double of_columns(double slope, std::int64_t, std::int64_t p) {
  return slope * static_cast<double>(p);
}

TEST(ProbeAlibi, TellsWhatTheLogSumExpIsOf) {
  OtherSlopes undeclared = with_lse(of_columns);
  const Probed column = asked(undeclared);
  EXPECT_EQ(answer_to(column, "slopes beside a causal form, bottom-right").found, as_meant);
  const ProbeAnswer& answer = answer_to(column, "log-sum-exp beside slopes");
  EXPECT_EQ(answer.declared, "definition");
  EXPECT_EQ(answer.found, "column");
  EXPECT_EQ(answer.evidence, "State \"alibi\": \"column\" in \"lse_convention\".");
  EXPECT_TRUE(answer.contradicts);
  EXPECT_TRUE(column.manifest.lse_convention.of_columns);
  EXPECT_EQ(parse_manifest(to_json(column.manifest), "found"), column.manifest);

  // Stated, it comes as the contract means it.
  auto stated = std::make_unique<OtherSlopes>(with_lse(of_columns));
  stated->manifest() = column.manifest;
  const auto converted = with_lse_of_contract(std::move(stated));
  EXPECT_FALSE(asked(*converted).contradicted());
  EXPECT_EQ(answer_to(asked(*converted), "log-sum-exp beside slopes").found, "column");

  auto wrongly_stated = std::make_unique<OtherSlopes>(as_it_is);
  wrongly_stated->manifest() = column.manifest;
  const auto taken_off = with_lse_of_contract(std::move(wrongly_stated));
  const Probed definition = asked(*taken_off);
  EXPECT_EQ(answer_to(definition, "log-sum-exp beside slopes").declared, "column");
  EXPECT_EQ(answer_to(definition, "log-sum-exp beside slopes").found, "definition");
  EXPECT_FALSE(definition.manifest.lse_convention.of_columns);

  OtherSlopes other = with_lse([](double, std::int64_t, std::int64_t) { return 1.0; });
  const Probed neither = asked(other);
  EXPECT_EQ(answer_to(neither, "log-sum-exp beside slopes").found, "another number");
  EXPECT_EQ(neither.manifest.variants.at("alibi").excluded, std::vector{Feature::lse});
}

/// Of positions that count from the last key; from the first one it is the definition's.
TEST(ProbeAlibi, TellsALogSumExpWithoutTheOffset) {
  OtherSlopes kernel =
      with_lse([](double slope, std::int64_t i, std::int64_t p) { return slope * static_cast<double>(p - i); });
  const Probed probed = asked(kernel);
  EXPECT_EQ(answer_to(probed, "log-sum-exp beside slopes").found, "that of slope·(j - i)");
  EXPECT_THAT(answer_to(probed, "log-sum-exp beside slopes").evidence, Says("alibi_slopes · (N - M)"));
  EXPECT_EQ(probed.manifest.variants.at("alibi").excluded, std::vector{Feature::lse});
}

TEST(ProbeAlibi, AsksNothingThatTheManifestRulesOut) {
  bool sent = false;
  OtherSlopes none([&](Case&) { sent = true; });
  none.manifest().variants.erase("alibi");
  EXPECT_THAT(answer_to(asked(none), "slopes").found, Says("not asked"));
  EXPECT_FALSE(sent);

  OtherSlopes causal([&](Case& c) { sent = sent || c.causal == Causal::none; });
  causal.manifest().variants.at("alibi").required = {Feature::causal};
  const Probed in_form = asked(causal);
  EXPECT_FALSE(sent || in_form.contradicted());
  EXPECT_EQ(answer_to(in_form, "slopes beside a causal form, top-left").found, as_meant);
  EXPECT_EQ(in_form.manifest, causal.manifest());

  OtherSlopes shared([&](Case& c) { sent = sent || c[Slot::alibi_slopes].shape()[0] > 1 || c.mask().present(); });
  shared.manifest().variants.at("alibi").per_batch = false;
  shared.manifest().variants.at("alibi").excluded = {Feature::mask};
  const Probed of_all = asked(shared);
  EXPECT_FALSE(sent || of_all.contradicted());
  EXPECT_THAT(answer_to(of_all, "slopes beside a boolean mask").found, Says("not asked"));
  EXPECT_EQ(of_all.manifest, shared.manifest());
}

}  // namespace
}  // namespace attest
