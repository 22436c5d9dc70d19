// The questions about ALiBi slopes.
#pragma once

#include "properties/diagnosis/probe_questions.h"

namespace attest {

/// What a kernel does with slopes, where its manifest lists them: their size and sign, the distances that they
/// multiply, whose slope a head has, from which corner rows count theirs, with a causal form and without, slopes below
/// 0 and those of a batch entry's own, slopes beside masks, sinks, softcaps, windows and chunks, and of which scores
/// the log-sum-exp is. After the questions about all of these. What it is taken for and what to state or to pass then
/// is among the answers, and what was found in the manifest. Nothing where the kernel has no attention entry.
void ask_alibi(ProbeQuestions& probe);

}  // namespace attest
