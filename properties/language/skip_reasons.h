// Reasons for skipping a case that say nothing of what the kernel lacks: its property has no case for such a kernel, or
// nothing to ask it in this one. A journal keeps reasons as words, so that whoever writes one begins it as here.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "core/kernel/manifest.h"

namespace attest {

inline constexpr std::string_view why_of_the_core = "is about the core",
                                  why_of_weights = "is about weights that a kernel returns",
                                  why_unanswered = "has nothing that the kernel answered";
/// "has no multihead entry"
[[nodiscard]] inline std::string no_entry(Operation operation) {
  return "has no " + std::string(name_of(operation)) + " entry";
}

inline constexpr std::string_view why_no_backward = "has no attention_backward entry",
                                  why_not_from_lse = "has a backward pass whose weights are its own",
                                  why_delta_of_weights = "has a backward pass that makes D of the weights",
                                  why_own_forward = "has a backward pass that makes its forward pass again",
                                  why_no_gradient_by_lse =
                                      "has a backward pass that takes no gradient by the log-sum-exp";

/// "has no variant window"
[[nodiscard]] inline std::string no_variant(std::string_view name) {
  return "has no variant " + std::string(name);
}

[[nodiscard]] inline bool is_not_about_the_kernel(std::string_view reason) {
  const std::array<std::string, 2> entries{no_entry(Operation::attention), no_entry(Operation::multihead)};
  return reason.starts_with(why_of_the_core) || reason.starts_with(why_of_weights) || reason == why_unanswered ||
         reason == why_no_backward || reason == why_not_from_lse || reason == why_delta_of_weights ||
         reason == why_own_forward || reason == why_no_gradient_by_lse || reason.starts_with(no_variant("")) ||
         std::ranges::find(entries, reason) != entries.end();
}

}  // namespace attest
