// What a kernel takes dropout with a given mask for.
#pragma once

#include "properties/diagnosis/probe_questions.h"

namespace attest {

/// Asks a kernel whose manifest lists dropout whether it takes keep and dropout_p as they are meant, or in one of the
/// ways that misread_dropout (dropout_misreadings.h) knows: keep the other way round, weights that are not divided by
/// 1 - p or normalised again; whether keep counts where the rate is 0, a row that drops every key is 0, and the
/// log-sum-exp is that of all weights; and whether it is the same beside masks, causal forms and a sink. The evidence
/// says what makes such a kernel right. What is not so leaves the manifest that is found. Of any other kernel it says
/// that nothing was asked. (A mask that the kernel draws itself is none that could be asked about.)
void ask_dropout(ProbeQuestions& probe);

}  // namespace attest
