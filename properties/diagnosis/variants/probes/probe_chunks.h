// What a kernel takes chunks of keys for, read off from the keys that its rows see.
#pragma once

#include "properties/diagnosis/probe_questions.h"

namespace attest {

/// Asks a kernel whose manifest lists chunks which it serves, in each alignment without a causal form and in each
/// causal form, and beside a window; where it sees other keys, which reading it follows (chunk_misreadings.h) and what
/// to state or to pass then. After the questions about causal forms and windows. Of a kernel that does not list them it
/// says that nothing was asked, as ask_windows does.
void ask_chunks(ProbeQuestions& probe);

}  // namespace attest
