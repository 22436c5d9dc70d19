#include "properties/diagnosis/variants/probes/probe_dropout.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/kernel/limits.h"
#include "core/oracle/oracle.h"
#include "core/problem/fields.h"
#include "core/problem/sight.h"
#include "properties/arrangement/arrange.h"
#include "properties/diagnosis/variants/dropout_misreadings.h"
#include "properties/language/answer.h"

namespace attest {
namespace {

constexpr std::string_view as_meant = "as it is meant";

class DropoutProber {
 public:
  explicit DropoutProber(ProbeQuestions& probe) : probe_(probe) {}

  void run() {
    if (probe_.size().keys < 2)
      return probe_.note("dropout", "yes", "not asked: of one key nothing can be dropped and kept", false, false);
    const Found found = ask("dropout", [](Case&) {});
    if (found == Found::nothing) return;
    // Nothing that a manifest says leaves a rate of 0 out, or a row that keeps nothing.
    if (found != Found::meant || !is_right_at_no_rate() || !is_zero_where_all_is_dropped()) {
      probe_.result().manifest.variants.erase(std::string(dropout_variant.name));
      return;
    }
    beside_others();
    ask_lse();
  }

 private:
  enum class Found { meant, other, refused, nothing };

  [[nodiscard]] VariantTerms& terms() { return probe_.result().manifest.variants.find(dropout_variant.name)->second; }

  /// Of as many heads to a key-value head as there can be, each with a keep of its own; every row keeps a key and
  /// drops one.
  Case problem() {
    // None is a multiple of 1/256; of 0.97 what is kept has a probability that a byte is far from.
    constexpr std::array rates{0.1, 0.3, 0.97, 0.15, 0.7, 0.35};
    ProbeSize s = probe_.size();
    if (allows_heads(probe_.manifest(), 4, 2)) s.heads = 4, s.kv_heads = 2;
    Case c = probe_.plain(s);
    Tensor keep(DType::boolean, {s.batch, s.heads, s.queries, s.keys});
    const std::int64_t size = s.queries * s.keys;
    for (std::int64_t first = 0; first < keep.elements(); first += size) {
      const Tensor page = probe_.hiding(/*boolean=*/true, s);
      for (std::int64_t e = 0; e < size; ++e) keep.set(first + e, page[e]);
    }
    c[Slot::keep] = std::move(keep);
    c.dropout_p = rates[static_cast<std::size_t>(round_++) % rates.size()];
    return c;
  }

  /// The readings of a problem, each once: of two that are the same problem the first.
  static Question question_of(const Case& c, std::map<std::string, MisreadDropout>& by_words) {
    Question one{c, {{std::string(as_meant), c}}};
    for (MisreadDropout& reading : misread_dropout(c)) {
      const auto is_same = [&](const Reading& other) {
        return static_cast<const Problem&>(other.problem) == static_cast<const Problem&>(reading.problem);
      };
      // Problems are smaller than tiles.
      if (reading.size > 0 || std::ranges::any_of(one.readings, is_same)) continue;
      std::string words = "as if " + reading.words;
      one.readings.push_back({words, reading.problem});
      by_words.insert_or_assign(std::move(words), std::move(reading));
    }
    return one;
  }

  /// `remedy`: that of this question, in the place of the reading's own.
  Found ask(std::string question, const std::function<void(Case&)>& add, const std::string& remedy = "") {
    const auto asked = [&] {
      Case c = problem();
      add(c);
      return c;
    };
    if (const std::string why = why_unsupported(probe_.manifest(), asked()); !why.empty()) {
      probe_.note(std::move(question), "yes", "not asked: " + why, false, false);
      return Found::nothing;
    }
    std::map<std::string, MisreadDropout> readings;
    Settled settled = probe_.settle([&] { return question_of(asked(), readings); });
    // Whose declared arithmetic is so coarse that next to the same factor fits as well is right.
    if (std::ranges::count(settled.readings, as_meant) > 0)
      std::erase_if(settled.readings,
                    [&](const std::string& words) { return words != as_meant && readings.at(words).is_near; });
    const bool does = settled.is(as_meant), refuses = settled.status == CallStatus::unsupported;
    std::string evidence;
    // Of several readings nobody knows which one to mend.
    if (!does && settled.readings.size() == 1)
      evidence = remedy.empty() ? readings.at(settled.readings.front()).remedy : remedy;
    probe_.result().answers.push_back({.question = std::move(question),
                                       .declared = "yes",
                                       .found = settled.text(),
                                       .evidence = std::move(evidence),
                                       .contradicts = !does && !refuses});
    return does ? Found::meant : refuses ? Found::refused : Found::other;
  }

  /// Many a kernel looks at keep only where the rate is above 0. One that refuses a rate of 0 is right about the rest.
  bool is_right_at_no_rate() {
    return ask(
               "dropout with dropout_p = 0", [](Case& c) { c.dropout_p = 0; },
               "In the adapter: raise Unsupported for a dropout_p of 0.") != Found::other;
  }

  /// One row of each head, which a kernel that normalises what is kept divides by 0.
  bool is_zero_where_all_is_dropped() {
    const std::string zero(name_of(FullyMaskedRow::zero)), question = "a row that drops every key";
    std::set<std::string> found;
    for (int round = 0; round < probe_rounds; ++round) {
      Case c = problem();
      const std::int64_t M = queries_of(c), N = keys_of(c), row = round % M;
      c[Slot::keep] = mapped(c[Slot::keep], [&](std::int64_t e, double old) { return e / N % M == row ? 0.0 : old; });
      const Reply reply = probe_.kernel().run(c);
      if (reply.status != CallStatus::ok) {
        const bool refuses = reply.status == CallStatus::unsupported;
        probe_.note(question, zero, ending_text(reply.status, reply.message), !refuses, false);
        return refuses;
      }
      bool is_zero = true, is_nan = true;
      const std::int64_t dv = c.v().shape()[3];
      for (std::int64_t e = 0; e < reply.out.elements(); ++e) {
        if (e / dv % M != row) continue;
        is_zero = is_zero && reply.out[e] == 0, is_nan = is_nan && std::isnan(reply.out[e]);
      }
      found.emplace(is_zero ? zero : is_nan ? name_of(FullyMaskedRow::nan) : "other numbers");
    }
    const bool does = found == std::set{zero};
    probe_.note(question, zero, fmt::format("{}", fmt::join(found, " or ")), !does, false);
    return does;
  }

  /// What masks, causal forms and sinks are, their own questions found.
  void beside_others() {
    const Manifest& found = probe_.result().manifest;
    const auto beside = [&](std::string question, Feature feature, const std::function<void(Case&)>& add) {
      std::vector<Feature>& excluded = terms().excluded;
      if (std::ranges::count(excluded, feature) > 0) return;
      const Found asked = ask("dropout beside " + std::move(question), add);
      if (asked == Found::other || asked == Found::refused) excluded.push_back(feature);
    };
    if (found.additive_masks) beside("an additive mask", Feature::additive_mask, [&](Case& c) { add_mask(c, false); });
    if (found.bool_masks) beside("a boolean mask", Feature::bool_mask, [&](Case& c) { add_mask(c, true); });
    for (const Causal causal : found.causal)
      beside(fmt::format("a causal form, {}", name_of(causal)),
             causal == Causal::top_left ? Feature::top_left : Feature::bottom_right,
             [&](Case& c) { c.causal = causal; });
    if (found.variants.contains(sink_variant.name)) beside("a sink", Feature::sink, [&](Case& c) { add_sink(c); });
  }
  void add_mask(Case& c, bool boolean) {
    ProbeSize s = probe_.size();
    s.queries = queries_of(c), s.keys = keys_of(c);
    c[Slot::mask] = probe_.hiding(boolean, s);
    c.mask_convention = probe_.result().manifest.mask_conventions.front();
  }
  void add_sink(Case& c) const {
    const std::vector<DType>& formats = probe_.manifest().variants.find(sink_variant.name)->second.dtypes;
    c[Slot::sink] = mapped(Tensor(formats.front(), {heads_of(c)}),
                           [](std::int64_t h, double) { return static_cast<double>(h % 3) / 2; });
  }

  /// Of all weights, of those that are kept, or of what becomes of either by the division.
  void ask_lse() {
    if (!why_no_lse(probe_.manifest(), problem()).empty()) return;
    constexpr std::array<std::string_view, 5> readings{
        "of all weights", "of the weights that are kept", "of the weights that are kept, divided by 1 - p",
        "of all weights, divided by 1 - p", "of all weights, multiplied by 1 - p"};
    std::array<bool, readings.size()> fits{};
    fits.fill(true);
    for (int round = 0; round < probe_rounds; ++round) {
      const Case c = problem();
      const Reply reply = probe_.kernel().run(c, probe_.dtype(), /*want_lse=*/true);
      if (reply.status != CallStatus::ok || !reply.lse.present()) {
        const std::string ending = reply.status == CallStatus::ok ? "none" : ending_text(reply.status, reply.message);
        note_lse(std::string(readings.front()), ending, reply.status != CallStatus::unsupported);
        return;
      }
      const AttentionBounds of_all = attention_bounds(c, probe_.arithmetic()),
                            of_kept = attention_bounds(with_dropped_keys_hidden(c), probe_.arithmetic());
      const double log_kept = std::log1p(-c.dropout_p);
      for (std::int64_t row = 0; row < reply.lse.elements(); ++row) {
        const RowBound &all = of_all.rows[static_cast<std::size_t>(row)],
                       &kept = of_kept.rows[static_cast<std::size_t>(row)];
        const std::array exact{all.lse, kept.lse, kept.lse - log_kept, all.lse - log_kept, all.lse + log_kept};
        for (std::size_t i = 0; i < fits.size(); ++i) {
          const RowBound& bound = i == 1 || i == 2 ? kept : all;
          const double allowed = bound.lse_allowed + bound.lse_certificate + 0x1p-49 * (1 + std::fabs(exact[i]));
          fits[i] = fits[i] && std::fabs(reply.lse[row] - exact[i]) <= allowed;
        }
      }
    }
    std::vector<std::string_view> found;
    for (std::size_t i = 0; i < fits.size(); ++i)
      if (fits[i]) found.push_back(readings[i]);
    const bool does = found == std::vector{readings.front()};
    note_lse(std::string(readings.front()),
             found.empty() ? "another number" : fmt::format("{}", fmt::join(found, " or ")), !does);
  }
  /// What is another one is not to be asked for.
  void note_lse(std::string declared, std::string found, bool contradicts) {
    if (found != declared) terms().excluded.push_back(Feature::lse);
    probe_.note("log-sum-exp beside dropout", std::move(declared), std::move(found), contradicts, false);
  }

  ProbeQuestions& probe_;
  std::int64_t round_ = 0;
};

}  // namespace

void ask_dropout(ProbeQuestions& probe) {
  if (probe.operation() != Operation::attention) return;
  if (!probe.manifest().variants.contains(dropout_variant.name))
    return probe.note("dropout", "no", "not asked: the manifest's \"variants\" does not list it", false, false);
  DropoutProber(probe).run();
}

}  // namespace attest
