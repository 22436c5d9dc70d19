#include "properties/diagnosis/arithmetic/probe_ends.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "properties/diagnosis/arithmetic/probe_sums.h"

namespace attest {
namespace {

class EndProber {
 public:
  EndProber(ArithmeticQuestions& ask, ProbedArithmetic& probed) : ask_(ask), probed_(probed), a_(probed.declare) {}

  /// The mean of 1, 1, 1 and 1 + n ulp is 1 + n/4 ulp.
  void ask_store() {
    ArithmeticFinding finding{
        .question = "store of the output", .declared = "nearest", .found = "nearest", .evidence = {}};
    const Format& out = format_of(ask_.dtype());
    if (format_of(a_.accumulate).precision < out.precision + 3 || format_of(ask_.values()).precision < out.precision) {
      finding.found = "not asked: the sums have no more bits than the output";
      probed_.findings.push_back(std::move(finding));
      return;
    }
    bool cut = false, away = false, answered = true;
    const double ulp = 2 * out.unit;
    for (const std::int64_t wanted : {8, 1000}) {
      const auto keys = ask_.keys_from(wanted);
      if (!keys) continue;
      for (const double sign : {1.0, -1.0}) {
        for (const int quarters : {1, 3}) {
          const auto stored = mean(*keys, sign, sign * (1 + quarters * ulp));
          answered = answered && stored.has_value();
          const double up = stored ? (std::fabs(*stored) - 1) / ulp : 0;
          cut = cut || (quarters == 3 && up < 0.5);
          away = away || (quarters == 1 && up > 0.5);
        }
      }
    }
    finding.evidence =
        "The mean of values whose exact mean lies a quarter and three quarters between two numbers of the output was "
        "asked, of 8 and of 1000 keys, with either sign.";
    if (!answered) finding.found = "not asked: " + ask_.failure();
    if (cut || away) {
      finding.found = cut ? "cut toward zero" : "not to nearest";
      finding.contradicts = true;
      declare_cut();
      finding.evidence += fmt::format(
          " {}: a store that rounds to nearest does otherwise. No key says so; what is "
          "declared allows for it in the place of the weights' rounding.",
          cut ? "Three quarters of the last bit were lost" : "A quarter was rounded up");
    } else if (answered) {
      finding.evidence += " Each became the nearer one: a store that cuts toward zero gives another.";
    }
    probed_.findings.push_back(std::move(finding));
  }

  void ask_flush() {
    const Arithmetic before = a_;
    const Format& own = format_of(ask_.dtype());
    const auto q = small_product(/*of_q=*/true), k = small_product(/*of_q=*/false);
    const double normal = format_of(ask_.values()).min_normal, least = format_of(ask_.output()).min_normal;
    // A value that is normal as an output shows the input alone, and one that no output is normal of shows nothing.
    const auto read = value(normal / 2, /*all=*/true, /*shows=*/normal >= least);
    const auto made = value(std::max(normal, least), /*all=*/false, /*shows=*/true);
    const auto weight = small_weight();
    const auto lost = [](const std::optional<bool>& kept) { return kept && !*kept; };
    const bool results = lost(made) || lost(weight), inputs = lost(q) || lost(k) || (lost(read) && !results);
    const auto words = [](const std::optional<bool>& kept) { return !kept ? "not asked" : *kept ? "kept" : "0"; };
    a_.flushes_subnormals = results || (before.flushes_subnormals && !(made && weight));
    a_.flushes_inputs = inputs || (before.flushes_inputs && !(q && k && read));
    probed_.findings.push_back(
        {.question = "numbers below the smallest normal one",
         .declared = fmt::format("results: {}, inputs: {}", before.flushes_subnormals ? "0" : "kept",
                                 before.flushes_inputs ? "read as 0" : "kept"),
         .found = fmt::format("results: {}, inputs: {}", results ? "0" : "kept", inputs ? "read as 0" : "kept"),
         .evidence = fmt::format("Of numbers below {:.4g} were asked: in q ({}), in k ({}), in v ({}), as an output of "
                                 "larger values ({}), and as a weight beside a large value ({}). Kernels that flush "
                                 "them to 0 lose them.",
                                 own.min_normal, words(q), words(k), words(read), words(made), words(weight)),
         .contradicts = (results && !before.flushes_subnormals) || (inputs && !before.flushes_inputs)});
  }

 private:
  std::optional<double> mean(std::int64_t keys, double three, double last) {
    const auto dk = *ask_.head_dim_from(4);
    Case c = ask_.blank(1, keys, dk, ask_.value_dim(1, dk));
    ArithmeticQuestions::set(c, Slot::q, 0, 0, 0, 1);
    for (std::int64_t j = 0; j + 4 < keys; ++j) ArithmeticQuestions::set(c, Slot::k, 0, j, 0, -1000 / c.scale);
    for (std::int64_t j = keys - 4; j < keys; ++j)
      ArithmeticQuestions::set(c, Slot::v, 0, j, 0, j + 1 < keys ? three : last);
    const auto out = ask_.ask(c, ask_.dtype());
    return out ? std::optional((*out)[0]) : std::nullopt;
  }

  /// What a rounding to nearest does not allow: as much once more as the weights may be rounded by, in both sums.
  void declare_cut() {
    const DType out = ask_.dtype();
    if (size_of(out) >= size_of(DType::f32)) {
      a_.accumulate = coarser(a_.accumulate, out);
      return;
    }
    a_.weights = coarser(a_.weights, out);
    a_.weights_in_denominator = true;
    a_.flushes_subnormals = true;
  }

  /// Whether a product of a number below the smallest normal one and of a large one counts.
  std::optional<bool> small_product(bool of_q) {
    const auto keys = *ask_.keys_from(2), dk = *ask_.head_dim_from(4), dv = ask_.value_dim(1, dk);
    Case c = ask_.blank(1, keys, dk, dv);
    const Format& small = format_of(of_q ? c.q().dtype() : c.k().dtype());
    const Format& other = format_of(of_q ? c.k().dtype() : c.q().dtype());
    const double tiny = small.min_normal / 2, large = std::min(1 / tiny, std::ldexp(1.0, std::ilogb(other.largest)));
    if (tiny * large * c.scale < 0x1p-3) return std::nullopt;
    for (std::int64_t d = 0; d < std::min<std::int64_t>(dk, 4); ++d) {
      ArithmeticQuestions::set(c, Slot::q, 0, 0, d, of_q ? tiny : large);
      ArithmeticQuestions::set(c, Slot::k, 0, keys - 1, d, of_q ? large : tiny);
    }
    for (std::int64_t d = 0; d < dv; ++d) ArithmeticQuestions::set(c, Slot::v, 0, keys - 1, d, 1);
    const auto out = ask_.ask(c, ask_.output());
    if (!out) return std::nullopt;
    return !(std::fabs((*out)[0] * static_cast<double>(keys) - 1) < 0x1p-6);
  }

  /// Whether the mean of 8 keys is kept, all of which or one alone has that value.
  std::optional<bool> value(double x, bool all, bool shows) {
    if (!shows) return std::nullopt;
    const auto keys = *ask_.keys_from(8);
    std::vector<std::int64_t> visible;
    SumTerms terms;
    for (std::int64_t j = 0; j < 8; ++j) {
      visible.push_back(j);
      if (all || j == 0) terms.push_back({j, x});
    }
    const auto out = ask_.sums({terms}, keys, visible);
    return out ? std::optional((*out)[0] > 0) : std::nullopt;
  }

  /// Whether a weight below the smallest normal number counts beside a value as large as it is small; nothing where the
  /// values do not reach that far.
  std::optional<bool> small_weight() {
    const Format& score = format_of(a_.score_sums);
    const double below = std::floor(std::log(score.min_normal)) - 2, weight = std::exp(below);
    const Format& v = format_of(ask_.values());
    const double large = std::ldexp(1.0, std::min(std::ilogb(v.largest) - 2, -std::ilogb(weight)));
    if (weight * large < 16 * format_of(ask_.output()).min_normal || weight < format_of(a_.weights).min_subnormal)
      return std::nullopt;
    const auto keys = *ask_.keys_from(4), dk = *ask_.head_dim_from(4);
    Case c = ask_.blank(1, keys, dk, ask_.value_dim(1, dk));
    for (std::int64_t d = 0; d < 2; ++d) ArithmeticQuestions::set(c, Slot::q, 0, 0, d, 1);
    for (std::int64_t j = 1; j < keys; ++j) ArithmeticQuestions::set(c, Slot::k, 0, j, 0, -1000 / c.scale);
    ArithmeticQuestions::set(c, Slot::k, 0, 1, 0, below / c.scale);
    ArithmeticQuestions::set(c, Slot::v, 0, 1, 0, large);
    const auto out = ask_.ask(c, ask_.output());
    if (!out) return std::nullopt;
    return (*out)[0] > 0.5 * weight * large;
  }

  ArithmeticQuestions& ask_;
  ProbedArithmetic& probed_;
  Arithmetic& a_;
};

}  // namespace

void ask_ends(ArithmeticQuestions& ask, ProbedArithmetic& probed) {
  EndProber prober(ask, probed);
  prober.ask_flush();
  prober.ask_store();
}

}  // namespace attest
