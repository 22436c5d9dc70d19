#include "properties/diagnosis/variants/window_readings.h"

#include <fmt/format.h>

#include <algorithm>

namespace attest {
namespace {

constexpr std::int64_t none = -1;

WindowEnds as_asked(const SightRule& w) {
  return {.left = w.window_left, .right = w.window_right};
}

WindowEnds shifted(const SightRule& w, std::int64_t left, std::int64_t right) {
  return {.left = w.window_left, .right = w.window_right, .left_shift = left, .right_shift = right};
}

/// Where several readings fit alike, the earlier is told first; the right one is the first of all.
constexpr EndsReading ends_readings[] = {
    {"both ends are inclusive, as asked", "",
     [](const SightRule& w, std::int64_t, std::int64_t) { return as_asked(w); }},
    {"a window is ignored", "pass window_left and window_right on, or leave \"window\" out of the manifest's variants",
     [](const SightRule&, std::int64_t, std::int64_t) { return WindowEnds(); }},
    {"the left end is one key short: the window counts the query itself (vLLM, JAX's ragged paged attention), or its "
     "left bound is exclusive (cuDNN)",
     "pass window_left + 1", [](const SightRule& w, std::int64_t, std::int64_t) { return shifted(w, 1, 0); }},
    {"the window counts the query itself and ends at it, whatever the right end (vLLM, JAX's ragged paged attention)",
     "pass window_left + 1, and state \"right\": false and \"requires\": [\"causal\"] for the variant",
     [](const SightRule& w, std::int64_t, std::int64_t) {
       if (w.window_left < 0) return as_asked(w);
       return WindowEnds{.left = w.window_left, .right = 0, .left_shift = 1};
     }},
    {"the window ends at the query, whatever the right end",
     "state \"right\": false and \"requires\": [\"causal\"] for the variant",
     [](const SightRule& w, std::int64_t, std::int64_t) { return WindowEnds{.left = w.window_left, .right = 0}; }},
    {"the left end is one key too far", "pass window_left - 1",
     [](const SightRule& w, std::int64_t, std::int64_t) { return shifted(w, -1, 0); }},
    {"the right end is one key short: it is exclusive", "pass window_right + 1",
     [](const SightRule& w, std::int64_t, std::int64_t) { return shifted(w, 0, -1); }},
    {"the right end is one key too far", "pass window_right - 1",
     [](const SightRule& w, std::int64_t, std::int64_t) { return shifted(w, 0, 1); }},
    {"both ends are one key short: they are exclusive", "pass window_left + 1 and window_right + 1",
     [](const SightRule& w, std::int64_t, std::int64_t) { return shifted(w, 1, -1); }},
    {"both ends are dropped when one is unbounded",
     "pass a number at least as large as M + N in the place of an end of -1",
     [](const SightRule& w, std::int64_t, std::int64_t) {
       return w.window_left < 0 || w.window_right < 0 ? WindowEnds() : as_asked(w);
     }},
    {"both ends are dropped when their sum is negative (FlashAttention 4)",
     "pass a number at least as large as M + N in the place of an end of -1",
     [](const SightRule& w, std::int64_t, std::int64_t) {
       return w.window_left + w.window_right < 0 ? WindowEnds() : as_asked(w);
     }},
    {"an end of at least N keys becomes unbounded (FlashAttention 2), which hides nothing of N keys only where M <= N",
     "raise Unsupported where window_right is at least N and less than M - 1 (from the top left: window_left)",
     [](const SightRule& w, std::int64_t, std::int64_t keys) {
       return WindowEnds{.left = w.window_left >= keys ? none : w.window_left,
                         .right = w.window_right >= keys ? none : w.window_right};
     }},
    {"the left end is ignored", "pass window_left on, or state \"left\": false for the variant",
     [](const SightRule& w, std::int64_t, std::int64_t) { return WindowEnds{.right = w.window_right}; }},
    {"the right end is ignored", "pass window_right on, or state \"right\": false for the variant",
     [](const SightRule& w, std::int64_t, std::int64_t) { return WindowEnds{.left = w.window_left}; }},
    {"left and right are exchanged", "exchange window_left and window_right",
     [](const SightRule& w, std::int64_t, std::int64_t) {
       return WindowEnds{.left = w.window_right, .right = w.window_left};
     }},
    {"an end alone is taken for both", "pass both ends, the one that is -1 as unbounded",
     [](const SightRule& w, std::int64_t, std::int64_t) {
       return WindowEnds{.left = w.window_left < 0 ? w.window_right : w.window_left,
                         .right = w.window_right < 0 ? w.window_left : w.window_right};
     }},
    {"an end of -1 is taken for a number", "pass a number at least as large as M + N in its place",
     [](const SightRule& w, std::int64_t, std::int64_t) {
       return WindowEnds{.left = std::max<std::int64_t>(w.window_left, 0),
                         .right = std::max<std::int64_t>(w.window_right, 0),
                         .left_shift = w.window_left < 0 ? 1 : 0,
                         .right_shift = w.window_right < 0 ? -1 : 0};
     }},
    {"an end of 0 is taken for none", "raise Unsupported for an end of 0",
     [](const SightRule& w, std::int64_t, std::int64_t) {
       return WindowEnds{.left = w.window_left == 0 ? none : w.window_left,
                         .right = w.window_right == 0 ? none : w.window_right};
     }},
};

Causal other(Causal alignment) {
  return alignment == Causal::top_left ? Causal::bottom_right : Causal::top_left;
}

}  // namespace

Sight WindowReading::sight(const SightRule& asked, std::int64_t i, std::int64_t rows, std::int64_t keys) const {
  const WindowEnds found = ends->ends(asked, rows, keys);
  const Causal alignment = other_alignment ? other(asked.alignment) : asked.alignment;
  // A shift by a key is that of the row beside it.
  const Sight left =
      attest::sight({.window_left = found.left, .alignment = alignment}, i + found.left_shift, rows, keys);
  const Sight right =
      attest::sight({.window_right = found.right, .alignment = alignment}, i + found.right_shift, rows, keys);
  const Sight causal = attest::sight({.causal = asked.causal}, i, rows, keys);
  const std::int64_t last = std::min(right.last, causal.last);
  return {std::min(left.first, last), last};
}

bool WindowReading::has_no_word_for(const SightRule& asked) const {
  // No end of a reading depends on the lengths by shifting.
  const WindowEnds found = ends->ends(asked, 0, 0);
  return (asked.window_left == 0 && found.left_shift > 0) || (asked.window_right == 0 && found.right_shift < 0);
}

int WindowReading::mistakes() const {
  return (ends->advice.empty() ? 0 : 1) + (other_alignment ? 1 : 0);
}

std::string WindowReading::words(Causal asked) const {
  if (!other_alignment) return std::string(ends->words);
  const std::string from = fmt::format("from the {} in the place of the {}", name_of(other(asked)), name_of(asked));
  return ends->advice.empty() ? from : fmt::format("{}, and {}", from, ends->words);
}

std::string WindowReading::advice(Causal asked) const {
  std::string text(ends->advice);
  if (!other_alignment) return text;
  if (!text.empty()) text += "; ";
  // A position from the bottom right is N - M more than one from the top left.
  const char* const there = asked == Causal::bottom_right ? "-+" : "+-";
  return text + fmt::format(
                    "list \"alignment\": [\"{}\"] for the variant, or pass window_left {} (N - M) and "
                    "window_right {} (N - M)",
                    name_of(other(asked)), there[0], there[1]);
}

const std::vector<WindowReading>& window_readings() {
  static const std::vector<WindowReading> all = [] {
    std::vector<WindowReading> made;
    for (const bool elsewhere : {false, true})
      for (const EndsReading& ends : ends_readings) made.push_back({&ends, elsewhere});
    return made;
  }();
  return all;
}

}  // namespace attest
