#include "properties/diagnosis/probe_gradients.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numbers>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/oracle/gradients/gradients.h"
#include "properties/language/answer.h"

namespace attest {
namespace {

/// What gradients may be made of.
struct Made {
  WeightsFrom weights;
  DeltaFrom delta;
};
constexpr Made every_way[] = {{WeightsFrom::lse, DeltaFrom::out},
                              {WeightsFrom::lse, DeltaFrom::weights},
                              {WeightsFrom::stored, DeltaFrom::out},
                              {WeightsFrom::stored, DeltaFrom::weights}};

class GradientProber {
 public:
  explicit GradientProber(ProbeQuestions& probe) : probe_(probe) {}

  void run() {
    const Case c = problem();
    if (const std::string why = why_unsupported(probe_.manifest(), c); !why.empty())
      return probe_.note("gradients", "yes", "not asked: " + why, false, false);
    const Reply answer = probe_.kernel().run(forward_of(c), probe_.dtype(), /*want_lse=*/true);
    if (answer.status != CallStatus::ok || !answer.lse.present())
      return probe_.note("gradients", "yes",
                         answer.status == CallStatus::ok ? "not asked: the forward pass returns no lse"
                                                         : ending_text(answer.status, answer.message),
                         answer.status != CallStatus::unsupported, false);
    const BackwardCall call{answer.out.tensor(), answer.lse.tensor(), all_gradients, answer.own_lse.tensor()};
    // At other answers than its own, one that makes them again has no gradients.
    if (ask_right(c, call) && !declared().own_forward) ask_made(c, call);
    ask_twice(c, call);
  }

 private:
  [[nodiscard]] BackwardTerms& terms() { return probe_.result().manifest.backward_terms; }
  [[nodiscard]] const BackwardTerms& declared() const { return probe_.manifest().backward_terms; }

  /// Of as many heads to a key-value head as there can be; a gradient by the output of multiples of 1/8.
  Case problem() {
    Case c = probe_.plain(probe_.size());
    Tensor d_out(c.dtype(), c.out_shape());
    for (std::int64_t e = 0; e < d_out.elements(); ++e) d_out.set(e, static_cast<double>(e * 5 % 13) / 8 - 0.75);
    c[Slot::d_out] = std::move(d_out);
    return c;
  }

  /// The names of those gradients that are not what the formulas give there, made in that way.
  [[nodiscard]] std::vector<std::string> wrong(const Case& c, const BackwardCall& call, const Reply& found,
                                               GradientsAt at, std::optional<Made> made) const {
    BackwardArithmetic arithmetic = probe_.manifest().backward_arithmetic_for(c);
    if (made) arithmetic.weights_from = made->weights, arithmetic.delta = made->delta;
    std::array<Tensor, gradient_count> gradients;
    for (const Gradient one : every_gradient)
      if (declared().returns(one, c))
        gradients[static_cast<std::size_t>(one)] = found.gradients[static_cast<std::size_t>(one)].tensor();
    GradientOptions options;
    options.at = at;
    const auto verdicts = judge_gradients(forward_of(c), {c[Slot::d_out], {}, call.out, call.lse}, gradients,
                                          probe_.manifest().arithmetic_for(c), arithmetic, options);
    std::vector<std::string> names;
    for (const Gradient one : every_gradient)
      if (declared().returns(one, c) && verdicts[static_cast<std::size_t>(one)].outcome != Outcome::held)
        names.emplace_back(name_of(one));
    return names;
  }

  bool ask_right(const Case& c, const BackwardCall& call) {
    const Reply found = probe_.kernel().backward(c, call, probe_.dtype());
    if (found.status != CallStatus::ok) {
      probe_.note("gradients", "yes", ending_text(found.status, found.message), found.status != CallStatus::unsupported,
                  false);
      return false;
    }
    const std::vector<std::string> names = wrong(c, call, found, GradientsAt::definition, std::nullopt);
    probe_.note("gradients", "yes", names.empty() ? "yes" : fmt::format("wrong: {}", fmt::join(names, ", ")),
                !names.empty(), false);
    return names.empty();
  }

  /// At an output twice as large and weights half as large as they are.
  void ask_made(const Case& c, const BackwardCall& call) {
    BackwardCall others = call;
    for (std::int64_t e = 0; e < others.out.elements(); ++e) others.out.set(e, 2 * call.out[e]);
    for (Tensor* const lse : {&others.lse, &others.own_lse})
      for (std::int64_t e = 0; e < lse->elements(); ++e) lse->set(e, (*lse)[e] + std::numbers::ln2);
    const Reply found = probe_.kernel().backward(c, others, probe_.dtype());
    std::vector<Made> fitting;
    for (const Made& made : every_way) {
      BackwardCall of = made.weights == WeightsFrom::lse ? others : call;
      of.out = made.delta == DeltaFrom::out ? others.out : call.out;
      if (found.status == CallStatus::ok && wrong(c, of, found, GradientsAt::answers, made).empty())
        fitting.push_back(made);
    }
    const auto told = [&](std::string_view question, auto of, auto stated, bool unstated, auto&& take) {
      std::vector<std::string> words;
      for (const Made& made : fitting)
        if (std::string word(name_of(made.*of)); std::ranges::count(words, word) == 0) words.push_back(std::move(word));
      const std::string what = found.status != CallStatus::ok ? ending_text(found.status, found.message)
                               : words.empty()                ? "neither, given an out and an lse that are no answers"
                                                              : fmt::format("{}", fmt::join(words, " or "));
      const bool fits = std::ranges::any_of(fitting, [&](const Made& made) { return made.*of == stated; });
      probe_.note(std::string(question), unstated ? "unstated" : std::string(name_of(stated)), what,
                  !unstated && !fits && found.status != CallStatus::unsupported, false);
      if (words.size() == 1) take(fitting.front());
    };
    told("weights of a backward pass", &Made::weights, declared().weights, false,
         [&](const Made& made) { terms().weights = made.weights; });
    told("D of a backward pass", &Made::delta, declared().delta, declared().delta == DeltaFrom::unstated,
         [&](const Made& made) { terms().delta = made.delta; });
  }

  void ask_twice(const Case& c, const BackwardCall& call) {
    bool same = true;
    const Reply first = probe_.kernel().backward(c, call, probe_.dtype());
    for (int round = 1; same && round < probe_rounds; ++round) {
      const Reply again = probe_.kernel().backward(c, call, probe_.dtype());
      if (first.status != CallStatus::ok || again.status != CallStatus::ok) return;
      for (const Gradient one : every_gradient)
        same = same && again.gradients[static_cast<std::size_t>(one)] == first.gradients[static_cast<std::size_t>(one)];
    }
    const bool claimed = std::ranges::count(declared().claims, Claim::deterministic) > 0;
    probe_.note("gradients with the same bits twice", claimed ? "yes" : "unstated", yes_or_no(same), claimed && !same,
                false);
  }

  ProbeQuestions& probe_;
};

}  // namespace

void ask_gradients(ProbeQuestions& probe) {
  if (probe.operation() != Operation::attention) return;
  if (!probe.manifest().backward)
    return probe.note("gradients", "no", "not asked: the manifest's operations do not list attention_backward", false,
                      false);
  GradientProber(probe).run();
}

}  // namespace attest
