// What a kernel takes sinks for.
#pragma once

#include "properties/diagnosis/probe_questions.h"

namespace attest {

/// Asks a kernel whose manifest lists sinks whether it takes them as they are meant or in one of the ways that
/// misread_sinks (sink_misreadings.h) knows, whether its log-sum-exp has them, and whether one that lies far above
/// every score leaves numbers. What is not so leaves the manifest that is found. Of any other kernel it says that
/// nothing was asked.
void ask_sinks(ProbeQuestions& probe);

}  // namespace attest
