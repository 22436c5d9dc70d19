#include "properties/diagnosis/variants/probes/probe_softcaps.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "core/kernel/limits.h"
#include "core/problem/fields.h"
#include "core/problem/sight.h"
#include "properties/arrangement/arrange.h"
#include "properties/diagnosis/variants/softcap_misreadings.h"

namespace attest {
namespace {

constexpr std::string_view as_meant = "as it is meant";

class SoftcapProber {
 public:
  explicit SoftcapProber(ProbeQuestions& probe) : probe_(probe) {}

  void run() {
    const std::string variant(softcap_variant.name);
    Manifest& found = probe_.result().manifest;
    if (ask("softcap", [](Case&) {}) == Found::other) {
      found.variants.erase(variant);
      return;
    }
    const auto beside = [&](std::string question, Feature feature, const std::function<void(Case&)>& add) {
      std::vector<Feature>& excluded = found.variants.find(variant)->second.excluded;
      if (std::ranges::count(excluded, feature) == 0 && ask(std::move(question), add) == Found::other)
        excluded.push_back(feature);
    };
    // As its own question found masks to be.
    if (found.additive_masks && std::ranges::count(found.mask_conventions, MaskConvention::post_scale) > 0)
      beside("softcap beside an additive mask", Feature::additive_mask, [&](Case& c) { add_mask(c, false); });
    if (found.bool_masks)
      beside("softcap beside a boolean mask", Feature::bool_mask, [&](Case& c) { add_mask(c, true); });
    if (found.variants.contains(sink_variant.name))
      beside("softcap beside a sink", Feature::sink, [&](Case& c) { add_sink(c); });
  }

 private:
  enum class Found { meant, other, nothing };

  /// Scores of up to a few times the softcap, none of which is 1 or a whole number.
  Case problem() {
    constexpr std::array softcaps{1.5, 1.25, 2.75, 1.75, 2.5, 1.125};
    Case c = probe_.plain(probe_.size());
    c[Slot::k] = mapped(c.k(), [](std::int64_t, double old) { return 8 * old; });
    if (probe_.result().manifest.any_scale) c.scale *= 0.75;
    c.softcap = softcaps[static_cast<std::size_t>(round_++) % softcaps.size()];
    return c;
  }
  void add_mask(Case& c, bool boolean) {
    ProbeSize s = probe_.size();
    s.queries = queries_of(c), s.keys = keys_of(c);
    c[Slot::mask] = probe_.hiding(boolean, s);
  }
  void add_sink(Case& c) const {
    const std::vector<DType>& formats = probe_.manifest().variants.find(sink_variant.name)->second.dtypes;
    c[Slot::sink] = mapped(Tensor(formats.front(), {heads_of(c)}),
                           [&](std::int64_t h, double) { return c.softcap + static_cast<double>(h % 3) / 2; });
  }

  Found ask(std::string question, const std::function<void(Case&)>& add) {
    const auto asked = [&] {
      Case c = problem();
      add(c);
      return c;
    };
    if (const std::string why = why_unsupported(probe_.manifest(), asked()); !why.empty()) {
      probe_.note(std::move(question), "yes", "not asked: " + why, false, false);
      return Found::nothing;
    }
    std::map<std::string, std::string> remedies;
    const Settled settled = probe_.settle([&] {
      const Case c = asked();
      Question one{c, {{std::string(as_meant), c}}};
      for (MisreadSoftcap& reading : misread_softcaps(c)) {
        const auto is_same = [&](const Reading& other) {
          return static_cast<const Problem&>(other.problem) == static_cast<const Problem&>(reading.problem);
        };
        if (std::ranges::any_of(one.readings, is_same)) continue;
        std::string words = "as if " + std::move(reading.words);
        remedies[words] = std::move(reading.remedy);
        one.readings.push_back({std::move(words), std::move(reading.problem)});
      }
      return one;
    });
    const bool does = settled.is(as_meant), refuses = settled.status == CallStatus::unsupported;
    // Of several readings nobody knows which one to mend.
    const std::string remedy = settled.readings.size() == 1 ? remedies[settled.readings.front()] : "";
    probe_.result().answers.push_back({.question = std::move(question),
                                       .declared = "yes",
                                       .found = settled.text(),
                                       .evidence = remedy,
                                       .contradicts = !does && !refuses});
    return does ? Found::meant : Found::other;
  }

  ProbeQuestions& probe_;
  std::int64_t round_ = 0;
};

}  // namespace

void ask_softcaps(ProbeQuestions& probe) {
  if (probe.operation() != Operation::attention) return;
  if (!probe.manifest().variants.contains(softcap_variant.name))
    return probe.note("softcap", "no", "not asked: the manifest's \"variants\" does not list it", false, false);
  SoftcapProber(probe).run();
}

}  // namespace attest
