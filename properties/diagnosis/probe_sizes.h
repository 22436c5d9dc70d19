// Probes of the sizes that a kernel takes.
#pragma once

#include "properties/diagnosis/probe_questions.h"

namespace attest {

/// No query, no key, one of either, more queries than keys, and lengths past usual block edges.
void ask_lengths(ProbeQuestions& probe);
/// Which head dimensions are answered right, and whether dv may differ from dk.
void ask_head_dimensions(ProbeQuestions& probe);

}  // namespace attest
