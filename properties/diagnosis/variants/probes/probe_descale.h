// The questions about factors of q, k and v.
#pragma once

#include "properties/diagnosis/probe_questions.h"

namespace attest {

/// What a kernel does with factors, where its manifest lists them: whether it heeds them, and if not, those of which
/// tensor, those of each head, batch entry and block, and factors beside masks and softcaps. After the questions about
/// these. What they are taken for and what to state or to pass then is among the answers, and what was found in the
/// manifest. Nothing where the kernel has no attention entry.
void ask_descale(ProbeQuestions& probe);

}  // namespace attest
