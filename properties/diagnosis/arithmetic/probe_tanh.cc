#include "properties/diagnosis/arithmetic/probe_tanh.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "core/kernel/limits.h"
#include "core/problem/fields.h"

namespace attest {
namespace {

/// A large one shows much of tanh, and e^-8 every format holds.
constexpr double softcap = 8;
/// Arguments of tanh are of 1/64 to 3.
constexpr int arguments = 192;
constexpr double step = 1.0 / 64;

std::string words_of(const TanhError& error) {
  switch (error.measure) {
    case TanhMeasure::ulp:
      return fmt::format("{} ulp", error.value);
    case TanhMeasure::relative:
      return fmt::format("{} of its result", error.value);
    case TanhMeasure::absolute:
      return fmt::format("{}", error.value);
    case TanhMeasure::unstated:
      break;
  }
  return "4 units roundoff of its result, and of 1";
}

/// Relative to the result, of all that is declared between the scaled product and the capped score.
double allowed_by(const Arithmetic& a, double result) {
  const double unit = format_of(a.score_sums).unit;
  double allowed = a.tanh.measure == TanhMeasure::ulp        ? 2 * a.tanh.value * unit
                   : a.tanh.measure == TanhMeasure::relative ? a.tanh.value
                   : a.tanh.measure == TanhMeasure::absolute ? a.tanh.value / result
                                                             : 4 * unit * (1 + 1 / result);
  for (const auto& stored : {a.stored_scaled, a.stored_capped, a.stored_biased})
    if (stored) allowed += 2 * format_of(*stored).unit;
  return allowed;
}

/// To two digits, upward.
double rounded_up(double x) {
  const double digit = std::pow(10, std::floor(std::log10(x)) - 1);
  return std::ceil(x / digit) * digit;
}

class TanhProber {
 public:
  TanhProber(ArithmeticQuestions& ask, ProbedArithmetic& probed, const SeenWeights& seen)
      : ask_(ask), probed_(probed), seen_(seen), before_(ask.manifest().arithmetic.usual_for(ask.dtype())) {}

  void run() {
    finding_.declared = words_of(before_.tanh);
    if (const auto found = read()) judge(*found);
    probed_.findings.push_back(std::move(finding_));
  }

 private:
  /// The weights of scores softcap tanh(-k step) beside one of 0.
  std::optional<Weights> read() {
    const auto keys = ask_.keys_near(8);
    const auto dk = ask_.head_dim_from(4);
    if (!keys || !dk || *keys <= ask_.top_keys()) {
      finding_.found = "not asked: it takes too few keys";
      return std::nullopt;
    }
    std::vector<WeightQuestion> questions;
    for (int k = 1; k <= arguments; ++k)
      questions.push_back({.pieces = {-k * step * softcap}, .target = ask_.top_keys(), .top = {}, .others = {}});
    ask_.cap(softcap);
    const std::string why = why_unsupported(ask_.manifest(), ask_.blank(1, *keys, *dk, ask_.value_dim(1, *dk)));
    auto found = why.empty() ? ask_.weights(questions, *keys) : std::nullopt;
    ask_.cap(0);
    if (!found) finding_.found = "not asked: " + (why.empty() ? ask_.failure() : why);
    return found;
  }

  void judge(const Weights& found) {
    // By which a capped score, as its weight shows it, errs relatively; of the one that errs most beyond what else
    // makes it err, that and by how much.
    double error = 0, shown = 0, excess = 0, beyond = 0, least_noise = 1;
    for (int k = 1; k <= arguments; ++k) {
      const double result = std::tanh(k * step), score = softcap * result;
      const auto made = static_cast<double>(-std::log(found[static_cast<std::size_t>(k) - 1]));
      const double one = std::fabs(made / score - 1);
      // Its own roundings and those of the exponent; then exp's error, and what is read of a weight.
      const double noise = 8 * format_of(probed_.declare.score_sums).unit +
                           2 * std::max(static_cast<double>(seen_.error), seen_.noise) / score;
      error = one <= error ? error : std::isfinite(one) ? one : HUGE_VAL;
      if (one - noise > excess) excess = one - noise, shown = one;
      beyond = std::max(beyond, one - noise - 2 * allowed_by(before_, result));
      least_noise = std::min(least_noise, noise);
    }
    if (error > 0.25) {
      finding_.found = "not asked: capped scores come out as others; see what is found of \"softcap\"";
      return;
    }
    finding_.evidence = fmt::format(
        "The weights of {} scores {}·tanh(t/{}), of arguments up to {}, were read bit by bit: the scores err by up to "
        "{:.3g} of themselves, and what weights err by anyhow is {:.3g} of the largest of them.",
        arguments, softcap, softcap, arguments * step, error, least_noise);
    finding_.found = excess > 0
                         ? fmt::format("up to {:.2g} of its result", shown)
                         : fmt::format("not told below {:.2g} of its result: errors of weights hide it", least_noise);
    finding_.contradicts = beyond > 0;
    if (!finding_.contradicts) {
      finding_.evidence += " What is declared of it stays as it was.";
      return;
    }
    probed_.declare.tanh = {TanhMeasure::relative, rounded_up(1.5 * shown)};
    finding_.evidence +=
        fmt::format(" {{\"relative\": {}}} is declared, with room for what was not asked.", probed_.declare.tanh.value);
  }

  ArithmeticQuestions& ask_;
  ProbedArithmetic& probed_;
  const SeenWeights& seen_;
  const Arithmetic& before_;
  ArithmeticFinding finding_{.question = "error of tanh", .declared = {}, .found = {}, .evidence = {}};
};

}  // namespace

void ask_tanh(ArithmeticQuestions& ask, ProbedArithmetic& probed, const SeenWeights& seen) {
  if (ask.manifest().variants.contains(softcap_variant.name)) TanhProber(ask, probed, seen).run();
}

}  // namespace attest
