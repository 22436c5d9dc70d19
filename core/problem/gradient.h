// Gradients: what a backward pass of attention is asked for, and of which problem.
#pragma once

#include <array>
#include <string_view>

#include "core/problem/case.h"
#include "core/support/words.h"

namespace attest {

/// By which argument a gradient is; it has the argument's shape.
enum class Gradient { q, k, v };
inline constexpr int gradient_count = 3;
template <>
struct Words<Gradient> {
  static constexpr std::array<std::string_view, gradient_count> names{"dq", "dk", "dv"};
};
inline constexpr std::array every_gradient{Gradient::q, Gradient::k, Gradient::v};

[[nodiscard]] constexpr Slot slot_of(Gradient gradient) {
  constexpr std::array slots{Slot::q, Slot::k, Slot::v};
  return slots[static_cast<std::size_t>(gradient)];
}

/// Does the problem say what a loss's gradient by the output is? Then a backward pass is asked of it, beside the
/// forward pass of the same problem.
[[nodiscard]] inline bool asks_for_gradients(const Problem& c) {
  return c[Slot::d_out].present();
}
/// The forward pass's problem.
[[nodiscard]] inline Case forward_of(Case c) {
  c[Slot::d_out] = Tensor();
  return c;
}

/// An output and a log-sum-exp that a forward pass returned, [batch, heads, M, dv] and [batch, heads, M] in f64.
struct ForwardAnswers {
  Tensor out, lse;
};

}  // namespace attest
