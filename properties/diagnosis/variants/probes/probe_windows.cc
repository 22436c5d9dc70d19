#include "properties/diagnosis/variants/probes/probe_windows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/kernel/limits.h"
#include "core/problem/fields.h"
#include "properties/diagnosis/seen_keys.h"
#include "properties/diagnosis/variants/window_readings.h"

namespace attest {
namespace {

enum class Ends { left, right, both };
constexpr Ends all_ends[] = {Ends::left, Ends::right, Ends::both};

std::string words_of(const SightRule& window) {
  return fmt::format("window_left {}, window_right {}", window.window_left, window.window_right);
}

bool fits(const WindowReading& reading, const SeenRows& one) {
  return reading.has_no_word_for(one.asked) ||
         one.fits([&](const SightRule& asked, std::int64_t i, std::int64_t rows, std::int64_t keys) {
           return reading.sight(asked, i, rows, keys);
         });
}

class WindowProber {
 public:
  explicit WindowProber(ProbeQuestions& probe)
      : probe_(probe), terms_(probe.manifest().variants.find(window_variant.name)->second) {}

  void run() {
    for (const Causal alignment : {Causal::top_left, Causal::bottom_right}) ask_all(alignment);
    for (const Causal alignment : {Causal::top_left, Causal::bottom_right}) tell_alignment(alignment);
    for (const Ends ends : all_ends) tell_ends(ends);
    keep();
  }

 private:
  void ask_all(Causal alignment) {
    for (const auto& [rows, keys] : lengths_to_look_at(probe_.manifest())) {
      std::set<std::int64_t> sides{0, 1, 3, keys - 2, keys, rows - 2};
      std::erase_if(sides, [](std::int64_t side) { return side < 0; });
      for (const std::int64_t side : sides) {
        ask(Ends::left, {.window_left = side, .alignment = alignment}, rows, keys);
        ask(Ends::right, {.window_right = side, .alignment = alignment}, rows, keys);
      }
      for (const auto& [left, right] : {std::pair(2, 1), std::pair(1, 3), std::pair(0, 0)})
        ask(Ends::both, {.window_left = left, .window_right = right, .alignment = alignment}, rows, keys);
    }
  }

  void ask(Ends ends, const SightRule& window, std::int64_t rows, std::int64_t keys) {
    const Case c = case_to_look_at(probe_, terms_, window, rows, keys);
    if (!is_to_be_asked(c)) return;
    const Looked looked = look_at(probe_, c, words_of(window));
    by_ends_[{window.alignment, ends}].add(looked);
    // An end that the manifest rules out may be served, but says nothing of how the alignment is.
    const bool offered = (window.window_left < 0 || terms_.left) && (window.window_right < 0 || terms_.right);
    if (offered) by_alignment_[window.alignment].add(looked);
  }

  /// Whether all else than its ends and its alignment is as the kernel's manifest allows.
  [[nodiscard]] bool is_to_be_asked(const Case& c) const {
    Manifest open = probe_.manifest();
    VariantTerms& terms = open.variants.find(window_variant.name)->second;
    terms.left = terms.right = true;
    terms.alignment = {Causal::top_left, Causal::bottom_right};
    return why_unsupported(open, c).empty();
  }

  /// The readings of the fewest mistakes that fit all.
  static std::vector<const WindowReading*> readings_of(const std::vector<SeenRows>& all) {
    std::vector<const WindowReading*> fitting;
    for (const WindowReading& reading : window_readings())
      if (std::ranges::all_of(all, [&](const SeenRows& one) { return fits(reading, one); }))
        fitting.push_back(&reading);
    int least = 2;
    for (const WindowReading* reading : fitting) least = std::min(least, reading->mistakes());
    std::erase_if(fitting, [&](const WindowReading* reading) { return reading->mistakes() > least; });
    return fitting;
  }

  void tell_alignment(Causal alignment) {
    const Served& served = by_alignment_[alignment];
    const bool declared = std::ranges::count(terms_.alignment, alignment) > 0;
    SightsFound found;
    std::vector<std::string> advice;
    for (const WindowReading* reading : readings_of(served.seen)) {
      found.words.push_back(reading->words(alignment));
      advice.push_back(reading->advice(alignment));
    }
    if (!advice.empty()) found.remedy = fmt::format("In the adapter: {}", fmt::join(advice, "; or "));
    probe_.result().answers.push_back(answer_about_sights(fmt::format("window, {}", name_of(alignment)), declared,
                                                          served, found, "windows", words_of));
  }

  void tell_ends(Ends ends) {
    static constexpr std::string_view words[] = {"window, a left end alone", "window, a right end alone",
                                                 "window, both ends"};
    // In the alignments that the manifest offers: the other may be another's.
    Served served;
    for (const Causal alignment : terms_.alignment) {
      const Served& one = by_ends_[{alignment, ends}];
      served.asked += one.asked, served.answered += one.answered;
      served.right = served.right && one.right;
      if (served.why.empty()) served.why = one.why;
    }
    if (served.asked == 0) return;
    const bool declared = (ends == Ends::right || terms_.left) && (ends == Ends::left || terms_.right);
    const std::string found = served.answered == 0 ? served.why : served.well() ? "yes" : "not as asked, see above";
    probe_.note(std::string(words[static_cast<std::size_t>(ends)]), yes_or_no(declared), found, false,
                !declared && served.well());
  }

  /// Into the manifest what is as asked; no windows where nothing is.
  void keep() {
    std::map<std::string, VariantTerms, std::less<>>& variants = probe_.result().manifest.variants;
    VariantTerms& kept = variants.find(window_variant.name)->second;
    std::erase_if(kept.alignment, [&](Causal one) { return by_alignment_[one].asked > 0; });
    for (const Causal one : {Causal::top_left, Causal::bottom_right})
      if (by_alignment_[one].well()) kept.alignment.push_back(one);
    const bool both = well_aligned(Ends::both);
    kept.left = both || well_aligned(Ends::left);
    kept.right = both || well_aligned(Ends::right);
    if (kept.alignment.empty() || (!kept.left && !kept.right)) variants.erase(variants.find(window_variant.name));
  }

  /// Whether such windows are served as asked in every alignment that is.
  [[nodiscard]] bool well_aligned(Ends ends) {
    bool any = false;
    for (const Causal alignment : {Causal::top_left, Causal::bottom_right}) {
      const Served& served = by_ends_[{alignment, ends}];
      if (!by_alignment_[alignment].well() || served.answered == 0) continue;
      if (!served.well()) return false;
      any = true;
    }
    return any;
  }

  ProbeQuestions& probe_;
  const VariantTerms& terms_;
  std::map<Causal, Served> by_alignment_;
  std::map<std::pair<Causal, Ends>, Served> by_ends_;
};

}  // namespace

void ask_windows(ProbeQuestions& probe) {
  if (probe.operation() != Operation::attention) return;
  if (!probe.manifest().variants.contains(window_variant.name)) {
    probe.note("window", "no",
               "not asked: the manifest's \"variants\" lists no window, and none is sent to a kernel that may not know "
               "it, as ignoring it could not be told from doing something else",
               false, false);
    return;
  }
  WindowProber(probe).run();
}

}  // namespace attest
