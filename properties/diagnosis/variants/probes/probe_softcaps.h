// What a kernel takes a softcap for.
#pragma once

#include "properties/diagnosis/probe_questions.h"

namespace attest {

/// Asks a kernel whose manifest lists softcaps whether it caps scores as it is meant, before it adds a mask and without
/// the sink, or in one of the ways that misread_softcaps (softcap_misreadings.h) knows; the evidence says what makes
/// such a kernel right. What is not so leaves the manifest that is found. Of any other kernel it says that nothing was
/// asked. (The error of its tanh is of its arithmetic: probe_tanh.h.)
void ask_softcaps(ProbeQuestions& probe);

}  // namespace attest
