// A softcap that is taken for something else is known by it, and one that is taken as it is meant is called so.
#include "properties/diagnosis/variants/probes/probe_softcaps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/test/says.h"
#include "properties/test/diagnosis/other_scores.h"

namespace attest {
namespace {

constexpr std::string_view as_meant = "as it is meant";

Probed asked(Kernel& kernel) {
  ProbeQuestions probe(kernel, 1);
  ask_softcaps(probe);
  return std::move(probe.result());
}

const ProbeAnswer& answer_to(const Probed& probed, std::string_view question) {
  for (const ProbeAnswer& answer : probed.answers)
    if (answer.question == question) return answer;
  throw std::out_of_range(std::string(question));
}

Tampered of_other_arguments(const std::function<void(Case&)>& change) {
  return asked_otherwise([change](Case& c) {
    if (c.softcap > 0) change(c);
  });
}

TEST(ProbeSoftcaps, FindsARightKernelRight) {
  for (const char* const id : {"builtin:two-pass", "builtin:flash", "core:float"}) {
    const auto kernel = registered(id);
    const Probed probed = asked(*kernel);
    EXPECT_FALSE(probed.contradicted()) << id;
    EXPECT_EQ(probed.manifest, kernel->manifest()) << id;
    for (const char* const question :
         {"softcap", "softcap beside an additive mask", "softcap beside a boolean mask", "softcap beside a sink"}) {
      EXPECT_EQ(answer_to(probed, question).found, as_meant) << id << ", " << question;
      EXPECT_EQ(answer_to(probed, question).evidence, "") << id;
    }
  }
}

TEST(ProbeSoftcaps, NamesWhatItIsTakenForAndWhatMendsIt) {
  struct Mistake {
    std::unique_ptr<Kernel> kernel;
    std::string_view found, remedy;
  };
  std::vector<Mistake> mistakes;
  const auto add = [&](auto kernel, std::string_view found, std::string_view remedy) {
    mistakes.push_back({std::make_unique<decltype(kernel)>(std::move(kernel)), found, remedy});
  };
  add(of_other_arguments([](Case& c) { c.softcap = 0; }), "as if there were no softcap",
      "Leave \"softcap\" out of \"variants\".");
  add(of_other_arguments([](Case& c) { c.softcap *= c.scale; }), "as if q·k were capped before it is scaled",
      "In the adapter: pass softcap / scale.");
  add(of_other_arguments([](Case& c) { c.softcap *= 0.6931471805599453; }),
      "as if the softcap were that of scores to base 2", "In the adapter: pass softcap · log2(e).");
  add(of_another_cap([](double t, double cap) { return cap * std::tanh(t); }),
      "as if t became c·tanh(t), and not c·tanh(t/c)", "In the adapter: pass scale / softcap.");
  add(of_another_cap([](double t, double cap) { return std::clamp(t, -cap, cap); }),
      "as if t were cut off at -c and c, without a tanh", "");
  add(of_another_cap([](double t, double cap) { return 1.25 * capped_at(t, cap); }), "an answer that fits no reading",
      "");
  for (Mistake& one : mistakes) {
    const Probed probed = asked(*one.kernel);
    const ProbeAnswer& answer = answer_to(probed, "softcap");
    EXPECT_EQ(answer.found, one.found);
    EXPECT_EQ(answer.evidence, one.remedy) << answer.found;
    EXPECT_TRUE(answer.contradicts) << answer.found;
    EXPECT_FALSE(probed.manifest.variants.contains("softcap")) << answer.found;
  }
}

/// What a remedy says is put into the adapter: then it is right.
TEST(ProbeSoftcaps, NamesRemediesThatMend) {
  const std::pair<std::function<void(Case&)>, std::function<void(Case&)>> mended[] = {
      {[](Case& c) { c.softcap *= c.scale; }, [](Case& c) { c.softcap /= c.scale; }},
      {[](Case& c) { c.scale *= c.softcap; }, [](Case& c) { c.scale /= c.softcap; }},
      {[](Case& c) { c.softcap = 1 / c.softcap; }, [](Case& c) { c.softcap = 1 / c.softcap; }},
      {[](Case& c) { c.softcap *= 0.6931471805599453; }, [](Case& c) { c.softcap *= 1.4426950408889634; }}};
  for (const auto& [mistake, remedy] : mended) {
    Tampered kernel = of_other_arguments([&](Case& c) { remedy(c), mistake(c); });
    EXPECT_EQ(answer_to(asked(kernel), "softcap").found, as_meant);
  }
}

TEST(ProbeSoftcaps, TellsWhatItDoesNotGoWith) {
  OtherScores after([](const ScoredPair& one) -> std::optional<double> {
    return one.hidden ? -one.cap : capped_at(one.t + one.added, one.cap);
  });
  const Probed masked = asked(after);
  EXPECT_EQ(answer_to(masked, "softcap").found, as_meant);
  const ProbeAnswer& additive = answer_to(masked, "softcap beside an additive mask");
  EXPECT_EQ(additive.found, "as if the cap were taken after the mask, and a key that it hides had the score -c");
  EXPECT_THAT(additive.evidence, Says("\"excludes\": [\"mask\"]"));
  EXPECT_TRUE(additive.contradicts);
  EXPECT_TRUE(answer_to(masked, "softcap beside a boolean mask").contradicts);
  const std::vector<Feature> masks{Feature::additive_mask, Feature::bool_mask};
  EXPECT_EQ(masked.manifest.variants.at("softcap").excluded, masks);
  EXPECT_EQ(parse_manifest(to_json(masked.manifest), "found"), masked.manifest);

  Tampered sinks = asked_otherwise([](Case& c) {
    if (c.softcap == 0 || !c[Slot::sink].present()) return;
    c[Slot::sink] = mapped(c[Slot::sink], [&](std::int64_t, double old) { return capped_at(old, c.softcap); });
  });
  const Probed beside = asked(sinks);
  EXPECT_EQ(answer_to(beside, "softcap beside a sink").found, "as if the sink were capped, too");
  EXPECT_EQ(beside.manifest.variants.at("softcap").excluded, std::vector{Feature::sink});
}

TEST(ProbeSoftcaps, AsksNothingThatTheManifestRulesOut) {
  bool sent = false;
  Tampered none = asked_otherwise([&](Case& c) { sent = sent || c.softcap > 0; });
  none.manifest().variants.erase("softcap");
  EXPECT_THAT(answer_to(asked(none), "softcap").found, Says("not asked"));
  EXPECT_FALSE(sent);

  Tampered without = asked_otherwise([&](Case& c) { sent = sent || (c.softcap > 0 && c.mask().present()); });
  without.manifest().variants.at("softcap").excluded = {Feature::mask};
  const Probed probed = asked(without);
  EXPECT_FALSE(probed.contradicted());
  EXPECT_FALSE(sent);
  EXPECT_EQ(answer_to(probed, "softcap").found, as_meant);
  EXPECT_THAT(answer_to(probed, "softcap beside a boolean mask").found, Says("not asked"));
  EXPECT_EQ(probed.manifest, without.manifest());
}

}  // namespace
}  // namespace attest
