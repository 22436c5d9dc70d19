#include "properties/diagnosis/variants/probe_windows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/kernel/limits.h"
#include "core/problem/fields.h"
#include "properties/arrangement/arrange.h"
#include "properties/diagnosis/variants/window_readings.h"
#include "properties/language/answer.h"

namespace attest {
namespace {

/// The keys that a row sees; nothing for a row of NaN or zeros, which sees none.
using Seen = std::optional<std::vector<std::int64_t>>;

/// One window, and what each row was seen to see.
struct Observed {
  SightRule asked;
  std::int64_t rows = 0, keys = 0;
  std::vector<Seen> seen;
};

enum class Ends { left, right, both };
constexpr Ends all_ends[] = {Ends::left, Ends::right, Ends::both};

/// What became of the windows of one alignment, or of those with the same ends.
struct Served {
  int asked = 0, answered = 0;
  bool right = true;  ///< every answer was as asked
  CallStatus refusal = CallStatus::unsupported;
  std::string why;  ///< of the first that was not answered, or whose answer is no set of keys
  [[nodiscard]] bool well() const { return answered > 0 && right; }
};

std::vector<std::int64_t> keys_of(const Sight& sight) {
  std::vector<std::int64_t> keys;
  for (std::int64_t j = sight.first; j < sight.last; ++j) keys.push_back(j);
  return keys;
}

/// "keys 3..5", "keys 0..1 and 4", "no key".
std::string words_of(const std::vector<std::int64_t>& keys) {
  std::vector<std::string> runs;
  for (std::size_t first = 0; first < keys.size();) {
    std::size_t last = first;
    while (last + 1 < keys.size() && keys[last + 1] == keys[last] + 1) ++last;
    runs.push_back(last == first ? fmt::format("{}", keys[first]) : fmt::format("{}..{}", keys[first], keys[last]));
    first = last + 1;
  }
  if (keys.empty()) return "no key";
  return fmt::format("{} {}", keys.size() == 1 ? "key" : "keys", fmt::join(runs, " and "));
}

std::string window_words(const Observed& one) {
  return fmt::format("window_left {}, window_right {}", one.asked.window_left, one.asked.window_right);
}

std::string place_words(const Observed& one) {
  return fmt::format("{}, {} queries and {} keys", name_of(one.asked.alignment), one.rows, one.keys);
}

/// A row without a key may be anything that its policy is; a uniform one sees all.
bool fits_row(const Seen& seen, const Sight& sight, std::int64_t keys) {
  const std::vector<std::int64_t> expected = keys_of(sight);
  if (!seen) return expected.empty();
  return *seen == expected || (expected.empty() && static_cast<std::int64_t>(seen->size()) == keys);
}

bool fits(const WindowReading& reading, const Observed& one) {
  if (reading.has_no_word_for(one.asked)) return true;
  for (std::int64_t i = 0; i < one.rows; ++i)
    if (!fits_row(one.seen[static_cast<std::size_t>(i)], reading.sight(one.asked, i, one.rows, one.keys), one.keys))
      return false;
  return true;
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
  [[nodiscard]] static bool right_of(const Observed& one) { return fits(window_readings().front(), one); }

  /// Few keys, so that all windows of interest are few, and lengths on both sides of each other.
  std::vector<std::pair<std::int64_t, std::int64_t>> lengths() const {
    const Manifest& m = probe_.manifest();
    std::vector<std::pair<std::int64_t, std::int64_t>> all;
    for (const auto& [rows, keys] : {std::pair(6, 9), std::pair(9, 5), std::pair(7, 7)}) {
      std::pair one{allowed_queries(m).nearest(rows), allowed_keys(m).nearest(keys)};
      if (m.same_lengths) one.first = one.second = allowed_tokens(m).nearest(keys);
      if (one.second > 0 && std::ranges::find(all, one) == all.end()) all.push_back(one);
    }
    return all;
  }

  void ask_all(Causal alignment) {
    for (const auto& [rows, keys] : lengths()) {
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

  /// Of q = 0, with columns of the identity in v from key `first` on.
  Case problem(const SightRule& window, std::int64_t rows, std::int64_t keys, std::int64_t first) {
    ProbeSize s = probe_.size();
    s.queries = rows, s.keys = keys;
    Case c = probe_.plain(s);
    c[Slot::q] = mapped(c.q(), [](std::int64_t, double) { return 0.0; });
    c[Slot::v] = mapped(c.v(), [&](std::int64_t e, double) { return e / s.dv % keys == first + e % s.dv ? 1.0 : 0.0; });
    const auto required = [&](Feature feature) { return std::ranges::count(terms_.required, feature) > 0; };
    if (required(Feature::causal) || required(Feature::top_left) || required(Feature::bottom_right))
      c.causal = window.alignment;
    if (required(Feature::mask) || required(Feature::bool_mask) || required(Feature::additive_mask)) {
      const bool boolean = probe_.manifest().bool_masks && !required(Feature::additive_mask);
      const Tensor zeros(boolean ? DType::boolean : probe_.dtype(), {1, 1, rows, keys});
      c[Slot::mask] = mapped(zeros, [&](std::int64_t, double) { return boolean ? 1.0 : 0.0; });
    }
    c.window_left = window.window_left, c.window_right = window.window_right, c.alignment = window.alignment;
    return c;
  }

  void ask(Ends ends, SightRule window, std::int64_t rows, std::int64_t keys) {
    std::vector<std::vector<double>> weights(static_cast<std::size_t>(rows));
    // An end that the manifest rules out may be served, but says nothing of how the alignment is.
    const bool offered = (window.window_left < 0 || terms_.left) && (window.window_right < 0 || terms_.right);
    std::vector<Served*> told{&by_ends_[{window.alignment, ends}]};
    if (offered) told.push_back(&by_alignment_[window.alignment]);
    for (std::int64_t first = 0; first < keys; first += probe_.size().dv) {
      const Case c = problem(window, rows, keys, first);
      window.causal = c.causal;
      if (!is_to_be_asked(c)) return;
      const Reply reply = probe_.kernel().run(c);
      if (first == 0)
        for (Served* served : told) ++served->asked;
      if (reply.status != CallStatus::ok) {
        // Rows without a key are invalid to some.
        if (reply.status == CallStatus::rejected && has_fully_masked_row(c)) return;
        for (Served* served : told) refuse(*served, reply.status, ending_text(reply.status, reply.message));
        return;
      }
      if (std::string why = take(reply.out, std::min(probe_.size().dv, keys - first), weights); !why.empty()) {
        for (Served* served : told) refuse(*served, CallStatus::failed, why);
        return;
      }
    }
    Observed one{window, rows, keys, {}};
    for (std::size_t i = 0; i < weights.size(); ++i) {
      std::string why;
      one.seen.push_back(seen_in(weights[i], why));
      if (why.empty()) continue;
      why = fmt::format("{}, {}: row {} {}", window_words(one), place_words(one), i, why);
      for (Served* served : told) refuse(*served, CallStatus::failed, why);
      return;
    }
    for (Served* served : told) {
      ++served->answered;
      served->right = served->right && right_of(one);
    }
    if (offered) observed_[window.alignment].push_back(std::move(one));
  }

  /// Whether all else than its ends and its alignment is as the kernel's manifest allows.
  [[nodiscard]] bool is_to_be_asked(const Case& c) const {
    Manifest open = probe_.manifest();
    VariantTerms& terms = open.variants.find(window_variant.name)->second;
    terms.left = terms.right = true;
    terms.alignment = {Causal::top_left, Causal::bottom_right};
    return why_unsupported(open, c).empty();
  }

  static void refuse(Served& served, CallStatus status, const std::string& why) {
    if (status != CallStatus::unsupported) served.right = false;
    // What is wrong is worth more than what is refused.
    const bool first = served.why.empty() || (served.refusal == CallStatus::unsupported && status != served.refusal);
    if (!first) return;
    served.refusal = status;
    served.why = why;
  }

  /// The weights of `columns` more keys, by row; why there are none where heads or batch entries differ.
  static std::string take(const Values& out, std::int64_t columns, std::vector<std::vector<double>>& weights) {
    const Shape shape = out.shape();
    const std::int64_t rows = shape[2], dv = shape[3], heads = shape[0] * shape[1];
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < columns; ++j) {
        const double weight = out[i * dv + j];
        for (std::int64_t h = 1; h < heads; ++h) {
          const double other = out[(h * rows + i) * dv + j];
          if (other != weight && !(std::isnan(other) && std::isnan(weight)))
            return fmt::format("row {} of head {} answers {:.6g} where head 0 answers {:.6g}", i, h, other, weight);
        }
        weights[static_cast<std::size_t>(i)].push_back(weight);
      }
    }
    return {};
  }

  /// The keys with weights; all must have the same, 1 over how many they are.
  static Seen seen_in(const std::vector<double>& weights, std::string& why) {
    if (std::ranges::all_of(weights, [](double w) { return std::isnan(w); })) return std::nullopt;
    if (std::ranges::all_of(weights, [](double w) { return w == 0; })) return std::nullopt;
    std::vector<std::int64_t> keys;
    for (std::size_t j = 0; j < weights.size(); ++j)
      if (weights[j] != 0) keys.push_back(static_cast<std::int64_t>(j));
    const double even = 1.0 / static_cast<double>(keys.size());
    // Further than any format rounds.
    const auto is_even = [&](std::int64_t j) {
      return std::fabs(weights[static_cast<std::size_t>(j)] - even) <= even / 4;
    };
    if (!std::ranges::all_of(keys, is_even))
      why = fmt::format("answers the weights {:.4g}, which are not 1/n on n keys", fmt::join(weights, " "));
    return keys;
  }

  /// The readings of the fewest mistakes that fit all.
  static std::vector<const WindowReading*> readings_of(const std::vector<Observed>& all) {
    std::vector<const WindowReading*> fitting;
    for (const WindowReading& reading : window_readings())
      if (std::ranges::all_of(all, [&](const Observed& one) { return fits(reading, one); }))
        fitting.push_back(&reading);
    int least = 2;
    for (const WindowReading* reading : fitting) least = std::min(least, reading->mistakes());
    std::erase_if(fitting, [&](const WindowReading* reading) { return reading->mistakes() > least; });
    return fitting;
  }

  /// The row that shows best what is wrong: of the fewest keys among those that see some, where some are asked for.
  static std::string difference(const std::vector<Observed>& all) {
    std::string words;
    std::size_t least = 0;
    for (const Observed& one : all) {
      for (std::int64_t i = 0; i < one.rows; ++i) {
        const Seen& seen = one.seen[static_cast<std::size_t>(i)];
        const Sight asked = window_readings().front().sight(one.asked, i, one.rows, one.keys);
        if (fits_row(seen, asked, one.keys)) continue;
        const std::vector<std::int64_t> found = seen.value_or(std::vector<std::int64_t>()), right = keys_of(asked);
        const std::size_t size = found.empty() || right.empty() ? 1000000 : found.size() + right.size();
        if (!words.empty() && size >= least) continue;
        least = size;
        words = fmt::format("Row {} sees {} where {} asks for {} ({})", i, words_of(found), window_words(one),
                            words_of(right), place_words(one));
      }
    }
    return words;
  }

  void tell_alignment(Causal alignment) {
    const Served& served = by_alignment_[alignment];
    const std::vector<Observed>& all = observed_[alignment];
    const bool declared = std::ranges::count(terms_.alignment, alignment) > 0;
    ProbeAnswer answer{
        .question = fmt::format("window, {}", name_of(alignment)), .declared = yes_or_no(declared), .found = ""};
    if (served.asked == 0) {
      answer.found = "not asked: no window is allowed beside what else the manifest asks for";
    } else if (!served.why.empty() && (all.empty() || served.refusal != CallStatus::unsupported)) {
      answer.found = served.why;
      answer.contradicts = declared && served.refusal != CallStatus::unsupported;
    } else {
      const std::vector<const WindowReading*> fitting = readings_of(all);
      const std::string shown = difference(all);
      std::vector<std::string> words, advice;
      for (const WindowReading* reading : fitting) {
        words.push_back(reading->words(alignment));
        advice.push_back(reading->advice(alignment));
      }
      answer.found = words.empty() ? "keys that fit no reading" : fmt::format("{}", fmt::join(words, " or "));
      answer.evidence = shown.empty() ? fmt::format("Every row of {} windows sees the keys asked for", all.size())
                                      : fmt::format("{}", shown);
      if (!shown.empty() && !advice.empty())
        answer.evidence += fmt::format(". In the adapter: {}", fmt::join(advice, "; or "));
      answer.contradicts = declared && !shown.empty();
      answer.beyond = !declared && shown.empty();
    }
    probe_.result().answers.push_back(std::move(answer));
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
  std::map<Causal, std::vector<Observed>> observed_;
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
