// What a kernel takes a window for, read off from the keys that its rows see.
#pragma once

#include "properties/diagnosis/probe_questions.h"

namespace attest {

/// Asks a kernel whose manifest lists windows which ends and alignments it serves and which convention it follows
/// (window_readings.h): with q = 0 and the identity as v a row's output is 1/n on the n keys that it sees. Of a kernel
/// that does not list them it says that nothing was asked: one that ignores what it does not know would be sent what it
/// was promised never to get.
void ask_windows(ProbeQuestions& probe);

}  // namespace attest
