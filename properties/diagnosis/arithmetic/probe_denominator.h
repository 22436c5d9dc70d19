// Which weights a kernel's denominator sums: those that multiply V, as they were rounded, or those before.
#pragma once

#include <string>

#include "core/kernel/kernel_under_test.h"

namespace attest {

struct Denominator {
  enum class Sums {
    rounded,    ///< the weights as they were rounded ("weights_in_denominator": true)
    unrounded,  ///< the weights before; or they are divided by their sum first and rounded then
    unknown     ///< not told apart
  };
  Sums sums = Sums::unknown;
  bool may_be_rounded = true;  ///< no answer speaks against Sums::rounded
  std::string words;           ///< "yes", "no", or "cannot tell: " and why, of Sums::rounded
};

/// Asks the attention entry for rows of two different scores, whose weights lie where the format that the manifest
/// declares for the weights of that dtype rounds them noticeably. What a kernel gives that sums those weights rounded,
/// unrounded, or does not round them at all, is known as intervals, which allow for the errors that the manifest
/// declares for all else; an answer outside of one excludes it. `kernel` is called twice at most.
[[nodiscard]] Denominator denominator_of(Kernel& kernel, DType dtype);

}  // namespace attest
