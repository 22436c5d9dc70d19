// What a kernel owes a row that sees no key, for the laws that bring one about.
#pragma once

#include <cstdint>

#include "core/kernel/kernel_under_test.h"
#include "core/measure/verdict.h"
#include "core/problem/case.h"
#include "properties/language/result.h"

namespace attest {

/// Whether row i of `o`, the answer to `masked` with its lse, is what the declared policy makes of a row that sees no
/// key: its output, and its log-sum-exp where there is one. Excused outside the domain.
[[nodiscard]] Verdict obeys_row_policy(Kernel& kernel, const Case& masked, const Result& o, std::int64_t i);

/// A case with a row that sees no key must be rejected by this kernel ("fully_masked_row": "error").
[[nodiscard]] Verdict rejects(Kernel& kernel, const Case& masked);

}  // namespace attest
