// What theorems say of a case without what their checks arrange first: a key hidden from a row or from every row, the
// same mask in all heads. Each is the conclusion of the theorem on the case as it is, for a hypothesis that is taken
// away. Of both operations; the causal form is written out.
#pragma once

#include "core/kernel/kernel_under_test.h"
#include "core/measure/verdict.h"
#include "core/problem/case.h"

namespace attest {

/// o_i is what it is without key s.
[[nodiscard]] Verdict row_without_key(Kernel& kernel, const Case& c);
/// Every row is what it is without key s.
[[nodiscard]] Verdict rows_without_key(Kernel& kernel, const Case& c);
/// Self-attention: every row but s is what it is without token s.
[[nodiscard]] Verdict tokens_without_token(Kernel& kernel, const Case& c);
/// Multihead: key s hidden from row i in the first head alone; o_i does not depend on k_s and v_s. Skipped of one head.
[[nodiscard]] Verdict row_hidden_in_one_head(Kernel& kernel, const Case& c);
/// The same of all rows: they are what they are without key s.
[[nodiscard]] Verdict rows_hidden_in_one_head(Kernel& kernel, const Case& c);
/// Self-attention: key i hidden from row i; o_i does not depend on x_i.
[[nodiscard]] Verdict own_token(Kernel& kernel, const Case& c);

}  // namespace attest
