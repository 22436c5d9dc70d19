// A backward pass inside a property: the forward pass before it, its gradients, and what is allowed to them.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string_view>

#include "core/kernel/values.h"
#include "core/oracle/gradients/gradients.h"
#include "core/problem/case.h"
#include "properties/language/agree.h"
#include "properties/language/answer.h"
#include "properties/language/result.h"

namespace attest {

/// One forward pass and one backward pass on what it returned. Its bounds, at the definition, are computed when one is
/// first asked for; in a proof there are none.
class BackwardRun {
 public:
  /// In a proof the backward pass alone. Throws NoAnswer as answer(), of either pass; and skipped where the manifest
  /// rules the case out, or does not say what becomes of the gradients of its rows without a key.
  BackwardRun(Kernel& kernel, const Case& c);
  /// The backward pass alone, on these answers, with the bounds of the formulas at these. Not in a proof.
  BackwardRun(Kernel& kernel, const Case& c, BackwardCall answers);
  /// The backward pass once more, on the same answers.
  [[nodiscard]] BackwardRun again(Kernel& kernel) const;
  /// So, and asked for some of the gradients alone.
  [[nodiscard]] BackwardRun asked_for(Kernel& kernel, const GradientChoice& some) const;
  /// These passes, of a problem that says what the kernel drew by itself: what is allowed to them follows from that.
  [[nodiscard]] BackwardRun known_as(Case c) const;

  [[nodiscard]] const Case& problem() const;  ///< with its gradients by the output
  [[nodiscard]] const BackwardInputs& given() const;
  [[nodiscard]] BackwardCall answers() const;  ///< what a backward pass is given of them
  /// False where the manifest does not list it, or the problem lacks what it is by.
  [[nodiscard]] bool has(Gradient gradient) const;
  /// All of a gradient, in the shape of its argument. Throws NoAnswer, skipped, where there is none.
  [[nodiscard]] Result of(Gradient gradient) const;
  /// What the forward pass returned; in a proof it is run for that.
  [[nodiscard]] Result out(Kernel& kernel) const;
  /// Each held against the exact one, the worst of them. `rows` and `alarm`, the probability: as of GradientOptions.
  [[nodiscard]] Verdict judged(GradientsAt at, std::int64_t rows = 0, double alarm = 0) const;
  /// One of them held against the definition's, with its errors measured; skipped where there is none.
  [[nodiscard]] Verdict judged(Gradient gradient, std::int64_t rows = 0, double alarm = 0) const;

 private:
  [[nodiscard]] Verdict absent(Gradient gradient) const;  ///< why it has it not
  struct Passes;
  std::shared_ptr<Passes> passes_;
};

/// bits where the kernel claims all of these of its answers and of its gradients, else bound.
[[nodiscard]] Match gradient_bits_if(const Kernel& kernel, std::initializer_list<Claim> claims);
/// As match_of_dead_values, of gradients: what two calls must agree in that differ in what is hidden alone.
[[nodiscard]] Match match_of_dead_gradients(const Kernel& kernel);

/// What gradients by keys and values must agree in where rows differ alone that do not see the key: what these add is 0
/// times something.
[[nodiscard]] Match match_of_unseen_rows(const Kernel& kernel);

inline constexpr std::string_view no_such_gradient =
    "the manifest's backward.gradients list none that the law speaks of";
/// The worst of what a law says of each of these gradients that the run has. Skipped where it has none.
[[nodiscard]] Verdict each_gradient(const BackwardRun& run, std::initializer_list<Gradient> gradients,
                                    const std::function<Verdict(Gradient)>& law);
/// The same of all that there are.
[[nodiscard]] Verdict each_gradient(const BackwardRun& run, const std::function<Verdict(Gradient)>& law);
/// agree, or agree_in_domain where what is hidden is not the same on both sides, of parts of a gradient, which the
/// reason names.
[[nodiscard]] Verdict gradients_agree(Gradient gradient, Sides sides, Match match);
[[nodiscard]] Verdict gradients_agree(Gradient gradient, NumberSides sides);
/// left = factor * right: within both bounds, and where the factor is ±1 and `match` says so the same values.
[[nodiscard]] Verdict gradients_scale(Gradient gradient, Sides sides, double factor, Match match);

/// A gradient is no element of an output: the verdict says which one it is about in words alone.
[[nodiscard]] Verdict about(Gradient gradient, Verdict verdict);

}  // namespace attest
