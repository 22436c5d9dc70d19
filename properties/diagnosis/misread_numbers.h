// What a wrong kernel made of numbers on their way: no maximum subtracted before exp, a log-sum-exp to another base.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "core/kernel/kernel_under_test.h"

namespace attest {

/// Of a kernel that gives NaN or Inf: what it subtracts from scores before exp, in words that follow "it computes as
/// if", where it is not the maximum. It is asked: keys of one score a little below that whose exp overflows, and a
/// little above, in the shape of the case. Nothing where it is right in both, or wrong in both.
[[nodiscard]] std::optional<std::string> overflowing_exp(Kernel& kernel, const Case& shape);

/// Of cases whose log-sum-exp alone is wrong: what it is instead, as misreadings_of says it. Nothing where no reading
/// is that of every row of every case.
[[nodiscard]] std::optional<std::string> misread_lse(Kernel& kernel, std::span<const Case> cases);

}  // namespace attest
