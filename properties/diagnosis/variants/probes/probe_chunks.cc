#include "properties/diagnosis/variants/probes/probe_chunks.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/kernel/limits.h"
#include "core/problem/fields.h"
#include "properties/diagnosis/seen_keys.h"
#include "properties/diagnosis/variants/chunk_misreadings.h"

namespace attest {
namespace {

std::string words_of(const SightRule& rule) {
  std::string words = fmt::format("attention_chunk {}", rule.chunk);
  if (rule.causal != Causal::none) words += " beside a causal form";
  if (rule.window_left >= 0) words += fmt::format(", window_left {}", rule.window_left);
  if (rule.window_right >= 0) words += fmt::format(", window_right {}", rule.window_right);
  return words;
}

Feature feature_of(Causal form) {
  return form == Causal::top_left ? Feature::top_left : Feature::bottom_right;
}

void exclude(VariantTerms& terms, Feature feature) {
  if (std::ranges::count(terms.excluded, feature) == 0) terms.excluded.push_back(feature);
}

/// Where a row's position counts from, under a causal form or without one, and what became of chunks there.
struct Place {
  Causal causal = Causal::none, alignment = Causal::none;
  Served served{};

  [[nodiscard]] SightRule rule(std::int64_t chunk) const {
    return {.causal = causal, .alignment = alignment, .chunk = chunk};
  }
};

class ChunkProber {
 public:
  explicit ChunkProber(ProbeQuestions& probe)
      : probe_(probe), terms_(probe.manifest().variants.find(chunk_variant.name)->second) {}

  void run() {
    const auto needs = [&](Feature feature) { return std::ranges::count(terms_.required, feature) > 0; };
    const bool causal_only = needs(Feature::causal) || needs(Feature::top_left) || needs(Feature::bottom_right);
    for (const Causal alignment : {Causal::top_left, Causal::bottom_right})
      if (!causal_only)
        ask_place({Causal::none, alignment}, fmt::format("chunks, {}", name_of(alignment)),
                  std::ranges::count(terms_.alignment, alignment) > 0);
    for (const Causal form : probe_.manifest().causal)
      if (form != Causal::none)
        ask_place({form, form}, fmt::format("chunks beside a causal form, {}", name_of(form)), true);
    if (keep_places()) ask_beside_a_window();
  }

 private:
  void ask_place(Place place, std::string question, bool declared) {
    for (const auto& [rows, keys] : lengths_to_look_at(probe_.manifest())) {
      std::set<std::int64_t> sizes{1, 2, 3, 4, keys - 1, keys};
      sizes.erase(0);
      for (const std::int64_t chunk : sizes) ask(place.served, place.rule(chunk), rows, keys);
    }
    tell(std::move(question), declared, place.served);
    places_.push_back(std::move(place));
  }

  void ask(Served& served, const SightRule& rule, std::int64_t rows, std::int64_t keys) {
    const Case c = case_to_look_at(probe_, terms_, rule, rows, keys);
    if (is_to_be_asked(c)) served.add(look_at(probe_, c, words_of(rule)));
  }

  /// Whether all else than the alignment is as the kernel's manifest allows.
  [[nodiscard]] bool is_to_be_asked(const Case& c) const {
    Manifest open = probe_.manifest();
    open.variants.find(chunk_variant.name)->second.alignment = {Causal::top_left, Causal::bottom_right};
    return why_unsupported(open, c).empty();
  }

  void tell(std::string question, bool declared, const Served& served) {
    SightsFound found;
    const auto fits_all = [&](const SeenRows::SightOf& reading) {
      return std::ranges::all_of(served.seen, [&](const SeenRows& one) { return one.fits(reading); });
    };
    // Readings that fit alike are one in all that was asked: what mends the first mends the others.
    if (fits_all(sight)) {
      found.words.emplace_back("as it is meant");
    } else {
      const bool causal =
          std::ranges::all_of(served.seen, [](const SeenRows& one) { return one.asked.causal != Causal::none; });
      for (const ChunkReading& reading : chunk_readings()) {
        if (causal && reading.is_another_beside_causal) continue;
        if (!fits_all([&](const SightRule& asked, std::int64_t i, std::int64_t rows, std::int64_t keys) {
              return reading.sight(asked, i, rows, keys);
            }))
          continue;
        found.words.push_back(fmt::format("as if {}", reading.words));
        if (found.words.size() == 1) found.remedy = reading.remedy;
      }
      const auto without_window = [](SightRule asked, std::int64_t i, std::int64_t rows, std::int64_t keys) {
        asked.window_left = asked.window_right = -1;
        return sight(asked, i, rows, keys);
      };
      if (fits_all(without_window)) {
        found.words.emplace_back("as if there were no window");
        if (found.words.size() == 1) found.remedy = R"(State "excludes": ["window"] of "chunk" in "variants".)";
      }
    }
    probe_.result().answers.push_back(
        answer_about_sights(std::move(question), declared, served, found, "chunks", words_of));
  }

  [[nodiscard]] VariantTerms& kept() { return probe_.result().manifest.variants.find(chunk_variant.name)->second; }

  /// Into the manifest the places where chunks are as asked; no chunks where they are nowhere. Whether there are some.
  bool keep_places() {
    const auto asked = [](const Place& place) { return place.served.asked > 0; };
    const auto well = [](const Place& place) { return place.served.well(); };
    const auto open = [](const Place& place) { return place.causal == Causal::none; };
    if (std::ranges::any_of(places_, asked) && std::ranges::none_of(places_, well)) {
      std::map<std::string, VariantTerms, std::less<>>& variants = probe_.result().manifest.variants;
      variants.erase(variants.find(chunk_variant.name));
      return false;
    }
    const bool any_open = std::ranges::any_of(places_, [&](const Place& one) { return open(one) && well(one); });
    for (const Place& place : places_) {
      if (!asked(place)) continue;
      if (!open(place)) {
        if (!well(place)) exclude(kept(), feature_of(place.causal));
      } else if (any_open) {
        std::erase(kept().alignment, place.alignment);
        if (well(place)) kept().alignment.push_back(place.alignment);
      } else if (std::ranges::count(kept().required, Feature::causal) == 0) {
        kept().required.push_back(Feature::causal);
      }
    }
    return std::ranges::any_of(places_, well);
  }

  /// What a window is, its own questions found.
  void ask_beside_a_window() {
    const Manifest& found = probe_.result().manifest;
    const auto window = found.variants.find(window_variant.name);
    if (window == found.variants.end() || std::ranges::count(terms_.excluded, Feature::window) > 0) return;
    Served served;
    for (const Place& place : places_) {
      const bool is_there =
          place.causal != Causal::none || std::ranges::count(window->second.alignment, place.alignment) > 0;
      if (!place.served.well() || !is_there) continue;
      for (const auto& [rows, keys] : lengths_to_look_at(probe_.manifest()))
        for (const auto& [chunk, left, right] : {std::tuple(4, 2, 1), std::tuple(3, 1, 3), std::tuple(2, 4, 0)}) {
          SightRule rule = place.rule(chunk);
          if (window->second.left) rule.window_left = left;
          if (window->second.right) rule.window_right = right;
          ask(served, rule, rows, keys);
        }
    }
    tell("chunks beside a window", true, served);
    if (served.asked > 0 && !served.well()) exclude(kept(), Feature::window);
  }

  ProbeQuestions& probe_;
  const VariantTerms& terms_;
  std::vector<Place> places_;
};

}  // namespace

void ask_chunks(ProbeQuestions& probe) {
  if (probe.operation() != Operation::attention) return;
  if (!probe.manifest().variants.contains(chunk_variant.name))
    return probe.note("chunks", "no", "not asked: the manifest's \"variants\" does not list them", false, false);
  ChunkProber(probe).run();
}

}  // namespace attest
