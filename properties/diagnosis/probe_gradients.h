// What a backward pass makes its gradients of.
#pragma once

#include "properties/diagnosis/probe_questions.h"

namespace attest {

/// Asks a kernel whose manifest lists the operation attention_backward whether its gradients are right, and, by an
/// output and a log-sum-exp that are no answers to the problem, what they are made of: weights e^(score - lse) of the
/// lse that it is given or stored ones, D of the out that it is given or the sum of P dP; and whether they have the
/// same bits twice. What was found is in the manifest that is found. Of any other kernel it says that nothing was
/// asked.
void ask_gradients(ProbeQuestions& probe);

}  // namespace attest
