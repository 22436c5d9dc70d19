// A backward pass inside a property: the forward pass before it, its gradients, and what is allowed to them.
#pragma once

#include <array>
#include <cstdint>

#include "core/kernel/values.h"
#include "core/oracle/gradients/gradients.h"
#include "core/problem/case.h"
#include "properties/language/answer.h"

namespace attest {

/// One forward pass and one backward pass on what it returned.
struct BackwardRun {
  Case problem;  ///< with its gradients by the output
  BackwardInputs given;
  std::array<Values, gradient_count> gradients;
  GradientBounds bounds;  ///< of the definition's gradients; empty until they were asked for, and in a proof

  [[nodiscard]] const Values& of(Gradient gradient) const { return gradients[static_cast<std::size_t>(gradient)]; }
  [[nodiscard]] const ElementBound& bound(Gradient gradient, std::int64_t element) const {
    return bounds[static_cast<std::size_t>(gradient)][static_cast<std::size_t>(element)];
  }
};

/// In a proof the backward pass alone. Throws NoAnswer as answer(), of either pass; and skipped where the case has a
/// row without a key and the manifest does not say what becomes of its gradients.
[[nodiscard]] BackwardRun run_backward(Kernel& kernel, const Case& c);
/// The same with its bounds, of which a proof has none.
[[nodiscard]] BackwardRun run_backward_with_bounds(Kernel& kernel, const Case& c);
/// Its gradients held against the exact ones, the worst of the three.
[[nodiscard]] Verdict judge_backward(const Kernel& kernel, const BackwardRun& run, GradientsAt at);
/// One of them, with its errors measured; skipped where the kernel does not return it.
[[nodiscard]] Verdict judge_gradient(const Kernel& kernel, const BackwardRun& run, Gradient gradient);

}  // namespace attest
