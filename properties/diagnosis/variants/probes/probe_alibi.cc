#include "properties/diagnosis/variants/probes/probe_alibi.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/bound/error_bound.h"
#include "core/kernel/limits.h"
#include "core/problem/fields.h"
#include "core/problem/sight.h"
#include "properties/arrangement/arrange.h"
#include "properties/diagnosis/variants/alibi_misreadings.h"
#include "properties/language/answer.h"

namespace attest {
namespace {

constexpr std::string_view as_meant = "as it is meant";

class AlibiProber {
 public:
  explicit AlibiProber(ProbeQuestions& probe) : probe_(probe), causal_only_(requires_causal(probe)) {}

  void run() {
    const bool any_place = ask_places();
    if (!any_place || !is_right_of_any_sign()) {
      forget();
      return;
    }
    ask_entries();
    beside_others();
    ask_lse();
    // The other forms are those of causal forms.
    if (!found().causal.empty() || terms().form == SlopeForm::distance) return;
    terms().form = SlopeForm::distance;
    state_terms_in_arithmetic(found());
  }

 private:
  enum class Found { meant, other, refused, nothing };
  using Change = std::function<void(Case&)>;

  /// Where a row's position counts from, under a causal form or without one.
  struct Place {
    Causal causal = Causal::none, alignment = Causal::top_left;
  };

  static bool requires_causal(const ProbeQuestions& probe) {
    const std::vector<Feature>& required = terms_in(probe.manifest()).required;
    return std::ranges::any_of(required, [](Feature one) {
      return one == Feature::causal || one == Feature::top_left || one == Feature::bottom_right;
    });
  }
  [[nodiscard]] static const VariantTerms& terms_in(const Manifest& manifest) {
    return manifest.variants.find(alibi_variant.name)->second;
  }
  [[nodiscard]] VariantTerms& terms() { return found().variants.find(alibi_variant.name)->second; }
  [[nodiscard]] Manifest& found() { return probe_.result().manifest; }

  /// The variant is gone from what was found, and with it what is said of it elsewhere.
  void forget() {
    found().variants.erase(std::string(alibi_variant.name));
    found().lse_convention.of_columns = false;
    state_terms_in_arithmetic(found());
  }

  /// Of as many heads to a key-value head as there can be, each with a slope of its own, of which no narrow format
  /// holds one, and none is a power of 2. `own`: those of each batch entry, too.
  Case problem(const Place& place, bool own = false) {
    constexpr std::array sizes{0.3, 0.7, 0.15, 1.1, 0.55, 0.9, 0.4};
    ProbeSize s = probe_.size();
    if (allows_heads(probe_.manifest(), 4, 2)) s.heads = 4, s.kv_heads = 2;
    Case c = probe_.plain(s);
    // Nor is the scale one, where it may be another.
    if (found().any_scale) c.scale *= 0.75;
    c.causal = place.causal, c.alignment = place.alignment;
    const std::vector<Feature>& required = terms_in(probe_.manifest()).required;
    const auto requires_one = [&](Feature feature) { return std::ranges::count(required, feature) > 0; };
    if (requires_one(Feature::mask) || requires_one(Feature::bool_mask) || requires_one(Feature::additive_mask))
      add_mask(c, probe_.manifest().bool_masks && !requires_one(Feature::additive_mask));
    Tensor slopes(DType::f32, {own ? s.batch : 1, s.heads});
    for (std::int64_t e = 0; e < slopes.elements(); ++e)
      slopes.set(e, sizes[static_cast<std::size_t>(3 * e + 2 * round_) % sizes.size()]);
    ++round_;
    c[Slot::alibi_slopes] = std::move(slopes);
    return c;
  }
  void add_mask(Case& c, bool boolean) {
    ProbeSize s = probe_.size();
    s.queries = queries_of(c), s.keys = keys_of(c);
    c[Slot::mask] = probe_.hiding(boolean, s);
  }

  /// A question's problems, round by round, by what they are of.
  using Asked = std::vector<std::map<std::string, Case>>;

  static Question question_of(const Case& c, Asked& asked, std::map<std::string, MisreadSlopes>& by_words) {
    Question one{c, {{std::string(as_meant), c}}};
    for (MisreadSlopes& reading : misread_slopes(c)) {
      // Problems are smaller than tiles.
      if (reading.size > 0) continue;
      std::string words = "as if " + reading.words;
      one.readings.push_back({words, reading.problem});
      by_words.insert_or_assign(std::move(words), std::move(reading));
    }
    std::map<std::string, Case>& problems = asked.emplace_back();
    for (const Reading& reading : one.readings) problems.emplace(reading.words, reading.problem);
    return one;
  }

  /// Whether no answer to any of the problems tells two readings apart.
  [[nodiscard]] bool are_one(const Asked& asked, const std::string& a, const std::string& b) const {
    return std::ranges::all_of(asked, [&](const std::map<std::string, Case>& problems) {
      return probe_.have_one_answer(problems.at(a), problems.at(b));
    });
  }
  /// Of readings that are one the first; beside what is meant none that is nearly the same, which is right of a kernel
  /// whose declared arithmetic is so coarse.
  void thin_out(std::vector<std::string>& readings, const Asked& asked,
                const std::map<std::string, MisreadSlopes>& by_words) const {
    const bool meant = std::ranges::count(readings, as_meant) > 0;
    std::vector<std::string> kept;
    for (std::string& words : readings) {
      const bool is_near = meant && words != as_meant && by_words.at(words).is_near;
      if (!is_near && std::ranges::none_of(kept, [&](const std::string& one) { return are_one(asked, one, words); }))
        kept.push_back(std::move(words));
    }
    readings = std::move(kept);
  }

  Found ask(std::string question, const std::function<Case()>& made) {
    if (const std::string why = why_unsupported(probe_.manifest(), made()); !why.empty()) {
      probe_.note(std::move(question), "yes", "not asked: " + why, false, false);
      return Found::nothing;
    }
    Asked asked;
    std::map<std::string, MisreadSlopes> by_words;
    Settled settled = probe_.settle([&] { return question_of(made(), asked, by_words); });
    thin_out(settled.readings, asked, by_words);
    const bool does = settled.is(as_meant), refuses = settled.status == CallStatus::unsupported;
    // Of several readings nobody knows which one to mend.
    const bool is_one = !does && settled.readings.size() == 1;
    probe_.result().answers.push_back(
        {.question = std::move(question),
         .declared = "yes",
         .found = settled.text(),
         .evidence = is_one ? by_words.at(settled.readings.front()).remedy : std::string(),
         .contradicts = !does && !refuses});
    return does ? Found::meant : refuses ? Found::refused : Found::other;
  }

  /// In each alignment without a causal form, and in each causal form; the manifest keeps those that are not wrong.
  /// Whether there is one that is right, or nothing could be asked.
  bool ask_places() {
    const std::vector<Causal> stated = terms_in(probe_.manifest()).alignment, forms = found().causal;
    std::vector<Feature> wrong_forms;
    std::vector<Causal> wrong_open;
    bool right_open = false;
    const auto ask_place = [&](std::string question, const Place& place) {
      const Found one = ask(std::move(question), [&] { return problem(place); });
      if (one == Found::meant) places_.push_back(place);
      return one;
    };
    if (!causal_only_) {
      for (const Causal alignment : stated) {
        const Found one = ask_place(fmt::format("slopes, {}", name_of(alignment)), {Causal::none, alignment});
        if (one == Found::other || one == Found::refused) wrong_open.push_back(alignment);
        right_open = right_open || one == Found::meant;
      }
    }
    for (const Causal form : forms) {
      if (form == Causal::none) continue;
      const Found one = ask_place(fmt::format("slopes beside a causal form, {}", name_of(form)), {form, form});
      if (one == Found::other || one == Found::refused)
        wrong_forms.push_back(form == Causal::top_left ? Feature::top_left : Feature::bottom_right);
    }
    if (places_.empty()) return wrong_open.empty() && wrong_forms.empty();
    if (right_open)
      std::erase_if(terms().alignment, [&](Causal one) { return std::ranges::count(wrong_open, one) > 0; });
    else if (!wrong_open.empty())
      terms().required.push_back(Feature::causal);
    for (const Feature one : wrong_forms)
      if (std::ranges::count(terms().excluded, one) == 0) terms().excluded.push_back(one);
    return true;
  }

  /// Nothing that a manifest says leaves out some slopes, and 0 is one.
  bool is_right_of_any_sign() {
    const auto of_any_sign = [&] {
      Case c = problem(a_place());
      c[Slot::alibi_slopes] = mapped(c[Slot::alibi_slopes], [&](std::int64_t e, double old) {
        return (e + round_) % 3 == 0 ? -old : (e + round_) % 3 == 1 ? 0.0 : old;
      });
      return c;
    };
    const Found one = ask("slopes of any sign, and of 0", of_any_sign);
    return one != Found::other;
  }

  /// Where slopes are right, without a causal form if there is such a place: there most can be told.
  [[nodiscard]] Place a_place() const {
    if (!places_.empty()) return places_.front();
    return {causal_only_ ? Causal::bottom_right : Causal::none, Causal::bottom_right};
  }

  void ask_entries() {
    if (!terms_in(probe_.manifest()).per_batch || probe_.size().batch < 2) return;
    const Found one = ask("slopes of every batch entry's own", [&] { return problem(a_place(), /*own=*/true); });
    if (one == Found::other || one == Found::refused) terms().per_batch = false;
  }

  /// What all of these are, their own questions found.
  void beside_others() {
    const auto beside = [&](const std::string& question, Feature feature, const Change& add) {
      std::vector<Feature>& excluded = terms().excluded;
      if (std::ranges::count(excluded, feature) > 0) return;
      const Found asked = ask("slopes beside " + question, [&] {
        Case c = problem(a_place());
        add(c);
        return c;
      });
      if (asked == Found::other || asked == Found::refused) excluded.push_back(feature);
    };
    const Manifest& m = found();
    if (m.additive_masks && std::ranges::count(m.mask_conventions, MaskConvention::post_scale) > 0)
      beside("an additive mask", Feature::additive_mask, [&](Case& c) { add_mask(c, false); });
    if (m.bool_masks) beside("a boolean mask", Feature::bool_mask, [&](Case& c) { add_mask(c, true); });
    // Beside a cap of a few times what products are.
    if (m.variants.contains(softcap_variant.name))
      beside("a softcap", Feature::softcap, [](Case& c) { c.softcap = 1.25; });
    if (m.variants.contains(sink_variant.name))
      beside("a sink", Feature::sink, [&](Case& c) {
        const std::vector<DType>& formats = probe_.manifest().variants.find(sink_variant.name)->second.dtypes;
        c[Slot::sink] = mapped(Tensor(formats.front(), {heads_of(c)}),
                               [](std::int64_t h, double) { return static_cast<double>(h % 3) / 2; });
      });
    if (const auto window = m.variants.find(window_variant.name); window != m.variants.end())
      beside("a window", Feature::window, [&](Case& c) {
        if (window->second.left) c.window_left = 2;
        if (window->second.right) c.window_right = 3;
      });
    if (m.variants.contains(chunk_variant.name))
      beside("chunks", Feature::chunk, [](Case& c) { c.attention_chunk = 3; });
  }

  /// Of the definition's scores, or of those to which slope·j is added. What a manifest says is of the latter comes
  /// here as that of the former (lse_convention.h).
  void ask_lse() {
    // From the first keys slope·(j - i) is what is meant.
    for (const Causal form : {Causal::bottom_right, Causal::top_left})
      for (const Place& place : places_)
        if (place.causal == form) return ask_lse(place);
  }
  void ask_lse(const Place& place) {
    if (!why_no_lse(probe_.manifest(), problem(place)).empty()) return;
    constexpr std::array<std::string_view, 3> readings{"definition", "column", "that of slope·(j - i)"};
    const bool declared_columns = probe_.manifest().lse_convention.of_columns;
    const std::string declared(readings[declared_columns ? 1 : 0]);
    std::array<bool, readings.size()> fits{};
    fits.fill(true);
    for (int round = 0; round < probe_rounds; ++round) {
      const Case c = problem(place);
      const Reply reply = probe_.kernel().run(c, probe_.dtype(), /*want_lse=*/true);
      if (reply.status != CallStatus::ok || !reply.lse.present()) {
        const std::string ending = reply.status == CallStatus::ok ? "none" : ending_text(reply.status, reply.message);
        return note_lse(declared, ending, "", reply.status != CallStatus::unsupported);
      }
      const AttentionBounds bounds = attention_bounds(c, probe_.arithmetic());
      const std::int64_t heads = heads_of(c), M = queries_of(c), N = keys_of(c);
      for (std::int64_t row = 0; row < reply.lse.elements(); ++row) {
        const RowBound& bound = bounds.rows[static_cast<std::size_t>(row)];
        if (bound.excuse != Excuse::none) continue;
        const std::int64_t i = row % M, p = position(sight_rule(c), i, M, N);
        const double slope = slope_of(c, row / M / heads, row / M % heads);
        const double shift = slope * static_cast<double>(p), corner = slope * static_cast<double>(p - i);
        const std::array exact{bound.lse, bound.lse + shift, bound.lse + corner};
        for (std::size_t r = 0; r < fits.size(); ++r) {
          const double expected = exact[r] - (declared_columns ? shift : 0.0);
          const double allowed = bound.lse_allowed + bound.lse_certificate +
                                 0x1p-49 * (1 + std::fabs(expected) + std::fabs(shift)) +
                                 4 * format_of(probe_.arithmetic().score_sums).unit * std::fabs(expected - bound.lse);
          fits[r] = fits[r] && std::fabs(reply.lse[row] - expected) <= allowed;
        }
      }
    }
    tell_lse(declared, {fits[0], fits[1], fits[2]});
  }
  /// Of one query at position 0 all are the same. From the top left the third is the first.
  void tell_lse(const std::string& declared, std::array<bool, 3> fits) {
    const std::size_t as_declared = declared == "column" ? 1 : 0;
    if (fits[as_declared]) return note_lse(declared, declared, "", false);
    if (fits[0] || fits[1]) {
      const std::string found_form = fits[1] ? "column" : "definition";
      note_lse(declared, found_form, fmt::format(R"(State "alibi": "{}" in "lse_convention".)", found_form), true,
               /*excludes=*/false);
      found().lse_convention.of_columns = fits[1];
      state_terms_in_arithmetic(found());
      return;
    }
    if (fits[2])
      return note_lse(
          declared, "that of slope·(j - i)",
          "In the adapter: subtract alibi_slopes · (N - M) from it, where positions count from the last key.", true);
    note_lse(declared, "another number", "", true);
  }
  /// What is no form that a manifest has a word for is not to be asked for.
  void note_lse(std::string declared, std::string found_form, std::string evidence, bool contradicts,
                bool excludes = true) {
    const bool differs = declared != found_form;
    if (differs && excludes) terms().excluded.push_back(Feature::lse);
    probe_.result().answers.push_back({.question = "log-sum-exp beside slopes",
                                       .declared = std::move(declared),
                                       .found = std::move(found_form),
                                       .evidence = std::move(evidence),
                                       .contradicts = contradicts});
  }

  ProbeQuestions& probe_;
  const bool causal_only_;
  std::vector<Place> places_;  ///< where slopes are right
  std::int64_t round_ = 0;
};

}  // namespace

void ask_alibi(ProbeQuestions& probe) {
  if (probe.operation() != Operation::attention) return;
  if (!probe.manifest().variants.contains(alibi_variant.name))
    return probe.note("slopes", "no", "not asked: the manifest's \"variants\" does not list them", false, false);
  AlibiProber(probe).run();
}

}  // namespace attest
