// Laws about the core's own functions, on the scalar that a kernel of the core names.
#pragma once

#include <string>

#include "core/kernel/kernel_under_test.h"
#include "core/kernels/core_functions.h"
#include "core/measure/verdict.h"

namespace attest {

/// check(the kernel's functions, c); skipped, saying so, for a kernel that is not the core on a scalar.
[[nodiscard]] Verdict on_core(const Kernel& kernel, const Case& c,
                              Verdict (*check)(const CoreFunctions& core, const Case& c));

/// masked.fixed-length: masks of another shape than M x N are refused with both shapes named, before a kernel is called
/// (validate) and by the core.
[[nodiscard]] Verdict fixed_length(const CoreFunctions& core, const Case& c);
/// causal.column-form: 002's mask M_ij = 1 iff i <= j on columns is 001's tau' <= tau on rows. M = N.
[[nodiscard]] Verdict column_form(const CoreFunctions& core, const Case& c);
/// layout.columns-are-transpose: 002's attention on transposes, mask transposed too, is the transpose of the row form.
/// Without a causal form; a mask is boolean and one for all.
[[nodiscard]] Verdict columns_are_transpose(const CoreFunctions& core, const Case& c);
/// softmax.columnwise-is-transpose: 002's softmax down the columns of A^T is softmax(A)^T, A being the rows of q.
[[nodiscard]] Verdict columnwise_softmax(const CoreFunctions& core, const Case& c);
/// position.length-limit: a table of "length" (an argument) rows is refused for more tokens, both lengths named. In
/// position.cc.
[[nodiscard]] Verdict length_limit(const CoreFunctions& core, const Case& c);

}  // namespace attest
