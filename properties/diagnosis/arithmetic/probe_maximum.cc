#include "properties/diagnosis/arithmetic/probe_maximum.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>

namespace attest {
namespace {

class MaximumProber {
 public:
  MaximumProber(ArithmeticQuestions& ask, ProbedArithmetic& probed, const SeenWeights& seen)
      : ask_(ask),
        probed_(probed),
        seen_(seen),
        a_(probed.declare),
        before_(ask.manifest().arithmetic.usual_for(ask.dtype())) {}

  void run() {
    ask_maximum();
    ask_blocks();
    ask_folded();
  }

 private:
  void note(ArithmeticFinding finding) { probed_.findings.push_back(std::move(finding)); }

  static constexpr double rises[] = {0.5, 1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24};

  /// Whether weights that were formed before a larger maximum came differ from those formed after it.
  void ask_maximum() {
    ArithmeticFinding finding{.question = "maximum", .declared = maximum_words(before_), .found = {}, .evidence = {}};
    a_.max = MaxPolicy::unstated;
    a_.lazy_nats = 0;
    if (!seen_.finite) {
      a_.max = MaxPolicy::none;
      finding.found = "none is taken";
      finding.evidence = "Scores near 1000, whose exp no format holds, give no numbers.";
      finding.contradicts = before_.max == MaxPolicy::running || before_.max == MaxPolicy::lazy;
      note(std::move(finding));
      return;
    }
    if (format_of(a_.score_sums).precision >= 24) a_.max = MaxPolicy::running;
    finding.found = "the largest score so far, or of all keys";
    finding.evidence = "Scores near 1000 give numbers, which exp of them would not.";
    const double lag = lag_of(finding);
    if (lag > 0) {
      a_.max = MaxPolicy::lazy;
      a_.lazy_nats = lag;
      finding.contradicts = before_.max == MaxPolicy::running || (before_.max == MaxPolicy::unstated) ||
                            (before_.max == MaxPolicy::lazy && before_.lazy_nats < lag);
    }
    note(std::move(finding));
  }

  static std::string maximum_words(const Arithmetic& a) {
    if (a.max == MaxPolicy::unstated) return "any but a lazy one";
    return a.max == MaxPolicy::lazy ? fmt::format("lazy, {} nats", a.lazy_nats) : std::string(name_of(a.max));
  }

  /// By how much the maximum lags behind at most; 0: by nothing.
  double lag_of(ArithmeticFinding& finding) {
    const auto keys = ask_.keys_near(1000);
    if (!keys || *keys < 4 * ask_.top_keys() + 4) return 0;
    // So small a weight takes a value as large, and its last bits one as small.
    const double most_rise = ask_.values() == DType::f16 ? 10 : readable_distance(ask_, a_) / 2;
    // Bits that differ; errors of scores near 1000; errors as large as those of rounded weights.
    std::vector<bool> differs, errs, rough;
    for (const double rise : rises) {
      if (rise > most_rise) break;
      std::vector<WeightQuestion> first, last, high;
      for (int k = 0; k < 24; ++k) {
        WeightQuestion one{.pieces = {-rise, -k / 64.0}, .target = *keys - 1, .top = {}, .others = {}};
        first.push_back(one);
        one.target = 0, one.tops = *keys - ask_.top_keys();
        last.push_back(one);
        one.top = {1000, k * 1.0}, one.pieces = {1000, k * 1.0, -rise, -k / 64.0};
        high.push_back(one);
      }
      const auto after = ask_.weights(first, *keys), before = ask_.weights(last, *keys),
                 offset = ask_.weights(high, *keys);
      if (!after || !before || !offset) return 0;
      const double noise = std::max(seen_.unit, format_of(a_.accumulate).unit);
      differs.push_back(largest_error(*before, *after) > noise / 4);
      errs.push_back(largest_error(*offset, exact_weights(high)) > 40 * noise + static_cast<double>(seen_.error));
      rough.push_back(largest_error(*before, exact_weights(last)) > format_of(a_.weights).unit / 16);
    }
    // Until it follows, both weights are exponentials above the old maximum; then one of them is 1 again.
    const auto switches = [&](const std::vector<bool>& shown) -> std::size_t {
      std::size_t at = 0;
      while (at < shown.size() && shown[at] == shown[0]) ++at;
      return std::all_of(shown.begin() + static_cast<std::ptrdiff_t>(at), shown.end(),
                         [&](bool s) { return s != shown[0]; })
                 ? at
                 : shown.size();
    };
    if (differs.empty()) return 0;
    std::size_t at = differs.size();
    if (seen_.rounded) {
      // Beside a larger one the first weight, 1, is that of an exponential which is rounded.
      if (rough[0]) at = switches(rough);
    } else if (differs[0] && reads_alike(*keys, /*before_too=*/false)) {
      at = switches(differs);
    }
    if (at == differs.size() && !seen_.rounded && differs[0] && !errs[0]) at = switches(errs);
    if (at >= differs.size()) {
      const bool folds = std::ranges::all_of(errs, [](bool err) { return err; });
      if ((differs[0] && !folds && !seen_.rounded) || (seen_.rounded && std::ranges::count(rough, true) > 0)) {
        a_.max = MaxPolicy::unstated;
        finding.found += "; whether it lags behind is not told apart";
      }
      return 0;
    }
    finding.found =
        fmt::format("lazy: it follows only a rise of more than {} to {} nats", at > 0 ? rises[at - 1] : 0.0, rises[at]);
    finding.evidence += fmt::format(
        " The weight of a first key beside a last one that is larger by up to {} nats shows two exponentials, by {} and "
        "more one: the reference stays behind until then.",
        at > 0 ? rises[at - 1] : 0.0, rises[at]);
    return rises[at];
  }

  /// Whether weights of scores near 1000 err by more than those near 0: a maximum that is multiplied by log2(e) and
  /// rounded by itself leaves its error where the maximum changes, and cancels where it does not.
  std::optional<bool> errs_near_1000(std::int64_t target, std::int64_t top, std::int64_t keys) {
    std::vector<WeightQuestion> questions;
    questions.reserve(20);
    for (int k = 0; k < 20; ++k)
      questions.push_back(
          {.pieces = {1000, 3.0 * k, -1.5}, .target = target, .top = {1000, 3.0 * k}, .tops = top, .others = {}});
    const auto found = ask_.weights(questions, keys);
    if (!found) return std::nullopt;
    return largest_error(*found, exact_weights(questions)) > 100 * seen_.unit + static_cast<double>(seen_.error);
  }

  /// Weights of a key and one before it, as a larger maximum at key `top` makes them; `direct`: as they are where it
  /// came first.
  std::vector<WeightQuestion> raised(std::int64_t target, std::int64_t top, std::int64_t keys, bool backwards,
                                     bool direct) {
    const std::int64_t tops = ask_.top_keys();
    const auto at = [&](std::int64_t j) { return backwards ? keys - 1 - j : j; };
    std::vector<WeightQuestion> questions;
    for (int k = 0; k < 16; ++k) {
      const double rise = (37 + 3 * k) / 64.0;
      WeightQuestion one{.pieces = {-rise, -(11 + 7 * k) / 128.0},
                         .target = at(target),
                         .top = {},
                         .tops = backwards ? keys - top - tops : top,
                         .others = {}};
      if (!direct) one.others.push_back({at(target - 1), {-rise}});
      questions.push_back(one);
    }
    return questions;
  }

  /// Whether the weight of a key shows two roundings where a larger maximum comes at key `top`, as against `direct`,
  /// that of one which came first. Keys are counted from the last one where `backwards`.
  std::optional<bool> rescales(std::int64_t target, std::int64_t top, std::int64_t keys, bool backwards,
                               const Weights& direct) {
    if (by_offset_) {
      return errs_near_1000(backwards ? keys - 1 - target : target, backwards ? keys - top - ask_.top_keys() : top,
                            keys);
    }
    const auto found = ask_.weights(raised(target, top, keys, backwards, /*direct=*/false), keys);
    if (!found) return std::nullopt;
    return largest_error(*found, direct) >
           std::max(seen_.unit, seen_.rounded ? format_of(a_.weights).unit / 64 : 0.0) / 4;
  }

  /// The first `most` keys at which a block begins, from a search by halves of where a rescaling first shows.
  std::optional<std::vector<std::int64_t>> boundaries(std::int64_t keys, bool backwards, std::size_t most) {
    std::vector<std::int64_t> found;
    std::int64_t target = 1;
    const std::int64_t last = keys - ask_.top_keys();
    const auto direct = ask_.weights(raised(ask_.top_keys(), 0, keys, backwards, /*direct=*/true), keys);
    if (!direct) return std::nullopt;
    while (found.size() < most && target + 1 <= last) {
      const auto any = rescales(target, last, keys, backwards, *direct);
      if (!any) return std::nullopt;
      if (!*any) break;
      std::int64_t low = target, high = last;  // not at low, and at high
      while (high - low > 1) {
        const std::int64_t middle = low + (high - low) / 2;
        const auto there = rescales(target, middle, keys, backwards, *direct);
        if (!there) return std::nullopt;
        (*there ? high : low) = middle;
      }
      found.push_back(high);
      target = high;
    }
    return found;
  }

  void ask_blocks() {
    ArithmeticFinding finding{.question = "block of keys",
                              .declared = before_.block == 0 ? "no rescaling" : fmt::format("{} keys", before_.block),
                              .found = {},
                              .evidence = {}};
    a_.block = 1;
    if (!seen_.finite || seen_.normalised || a_.max == MaxPolicy::lazy || format_of(a_.accumulate).unit > seen_.unit ||
        format_of(a_.score_sums).precision < 24) {
      finding.found = seen_.finite ? "not told apart: other roundings hide it" : "not asked: no maximum is taken";
      note(std::move(finding));
      return;
    }
    std::vector<std::string> words;
    std::optional<std::int64_t> least;
    std::int64_t longest = 0, at_longest = 0;
    bool stable = true;
    for (const std::int64_t wanted : {64, 1000, 4097}) {
      const auto keys = ask_.keys_near(wanted);
      if (!keys || *keys == longest || *keys < 4 * ask_.top_keys() + 4) continue;
      longest = *keys;
      by_offset_ = !reads_alike(*keys, /*before_too=*/true);
      if (by_offset_) {
        const auto apart = errs_near_1000(0, *keys - ask_.top_keys(), *keys);
        const auto beside = errs_near_1000(ask_.top_keys(), 0, *keys);
        stable = stable && a_.base2 && apart == true && beside == false;
      }
      if (!stable) break;
      std::vector<std::int64_t> spacings;
      for (const bool backwards : {false, true}) {
        const auto found = boundaries(*keys, backwards, wanted > 2000 ? 1 : 3);
        if (!found) {
          stable = false;
          break;
        }
        std::int64_t from = 0;
        for (const std::int64_t at : *found) spacings.push_back(at - from), from = at;
        if (!found->empty()) break;  // from the first key on
      }
      words.push_back(spacings.empty() ? fmt::format("{} keys: none", *keys)
                                       : fmt::format("{} keys: {}", *keys, fmt::join(spacings, ", ")));
      at_longest = spacings.empty() ? 0 : *std::ranges::min_element(spacings);
      for (const std::int64_t one : spacings) least = std::min(least.value_or(one), one);
    }
    if (longest == 0) {
      finding.found = "not asked: it takes too few keys";
      note(std::move(finding));
      return;
    }
    if (!stable) {
      finding.found = "not told apart: weights are not read alike at every place";
      note(std::move(finding));
      return;
    }
    finding.evidence = fmt::format(
        "{} Keys from one block to the next, of {}.",
        by_offset_
            ? "Weights of scores near 1000 err where a larger maximum comes in a later block, which rounds it by "
              "itself."
            : "The weight of a key shows one rounding of exp, and two where a larger maximum comes in a later "
              "block.",
        fmt::join(words, "; of "));
    if (least) {
      a_.block = *least;
      finding.found = *least == 1 ? "1 key" : fmt::format("{} keys", *least);
      // Of few keys the end of a part may cut a block off.
      finding.contradicts = at_longest > 0 && (before_.block == 0 ? !before_.split_merge : before_.block > at_longest);
      online_ = true;
    } else {
      a_.block = longest;
      finding.found = fmt::format("not told apart: none, the maximum being known first, or more than {} keys", longest);
    }
    note(std::move(finding));
  }

  /// Weights are the same bits wherever they stand after the maximum, and before it beside a lower key, so that a
  /// difference shows a rescaling and nothing else.
  bool reads_alike(std::int64_t keys, bool before_too) {
    const std::int64_t tops = ask_.top_keys();
    std::vector<WeightQuestion> near, far, before;
    for (int k = 0; k < 24; ++k) {
      const double lower = (3 + 5 * k) / 64.0;
      WeightQuestion one{.pieces = {-lower}, .target = tops, .top = {}, .others = {{tops + 1, {-lower - 0.375}}}};
      near.push_back(one);
      one.target = keys - 1, one.others = {{keys - 2, {-lower - 0.375}}};
      far.push_back(one);
      one.target = 1, one.tops = keys - tops, one.others = {{0, {-lower - 0.375}}};
      before.push_back(one);
    }
    const auto a = ask_.weights(near, keys), b = ask_.weights(far, keys), c = ask_.weights(before, keys);
    // Where weights are rounded, the one before the maximum is 1, and its factor is not.
    if (!a || !b || !c || largest_error(*a, *b) > seen_.unit / 8) return false;
    return !before_too || seen_.rounded || largest_error(*a, *c) <= seen_.unit / 8;
  }

  /// In another block than the maximum, a product m log2(e) that is rounded by itself leaves its error.
  void ask_folded() {
    ArithmeticFinding finding{.question = "maximum folded into exp2",
                              .declared = before_.folded_exp2 ? "may be" : "no",
                              .found = {},
                              .evidence = {}};
    if (!a_.base2) {
      finding.found = "no: there is no exp2";
      note(std::move(finding));
      return;
    }
    if (!online_ || !seen_.finite) {
      finding.found = "not told apart: within one block it cancels";
      note(std::move(finding));
      return;
    }
    long double most = 0;
    for (const std::int64_t wanted : {64, 1000}) {
      const auto keys = ask_.keys_near(wanted);
      if (!keys) continue;
      std::vector<WeightQuestion> questions;
      questions.reserve(48);
      for (int k = 0; k < 48; ++k)
        questions.push_back({.pieces = {1000, k * 1.0, -1.5},
                             .target = 0,
                             .top = {1000, k * 1.0},
                             .tops = *keys - ask_.top_keys(),
                             .others = {}});
      if (const auto found = ask_.weights(questions, *keys))
        most = std::max(most, largest_error(*found, exact_weights(questions)));
    }
    const double rounds = 1000 * seen_.unit;
    finding.evidence = fmt::format(
        "Scores near 1000 in two blocks give weights that err by up to {:.3g}, those near 0 by {:.3g}; a maximum that is "
        "rounded by itself errs by up to {:.3g}.",
        static_cast<double>(most), static_cast<double>(seen_.error), rounds);
    if (rounds / 8 < 2 * static_cast<double>(seen_.error)) {
      finding.found = "not told apart: other errors hide it";
    } else if (most < rounds / 8) {
      a_.folded_exp2 = false;
      finding.found = "no";
    } else {
      finding.found = "yes, or the scores are rounded as much";
      finding.contradicts = !before_.folded_exp2;
    }
    note(std::move(finding));
  }

  ArithmeticQuestions& ask_;
  ProbedArithmetic& probed_;
  const SeenWeights& seen_;
  Arithmetic& a_;
  Arithmetic before_;
  bool by_offset_ = false;  ///< blocks show by a maximum that is rounded by itself
  bool online_ = false;     ///< there are blocks
};

}  // namespace

void ask_maximum(ArithmeticQuestions& ask, ProbedArithmetic& probed, const SeenWeights& seen) {
  MaximumProber(ask, probed, seen).run();
}

}  // namespace attest
