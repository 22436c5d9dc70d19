// Probes of what only multi-head attention has: projections, their biases, and heads as columns.
#pragma once

#include "properties/diagnosis/probe_questions.h"

namespace attest {

/// Which columns of a projection belong to a head, whether biases, the output projection and add_bias_kv are applied,
/// and whether keys and values may be other tokens than the queries, and of other widths.
void ask_multihead(ProbeQuestions& probe);

}  // namespace attest
