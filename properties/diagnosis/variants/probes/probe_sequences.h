// What a kernel takes lengths and packed sequences for.
#pragma once

#include "properties/diagnosis/probe_questions.h"

namespace attest {

/// Asks a kernel whose manifest lists lengths or packed sequences whether it takes them as they are meant or in one of
/// the ways that misread_sequences (sequence_misreadings.h) knows: without a causal form, and with each that it lists;
/// and what it makes of a sequence without a key. What is not so leaves the manifest that is found. Of a kernel that
/// lists neither it says that nothing was asked.
void ask_sequences(ProbeQuestions& probe);

}  // namespace attest
