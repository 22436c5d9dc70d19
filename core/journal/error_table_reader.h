// The statistics of errors in a batch's line.
#pragma once

#include "core/measure/error_statistics.h"
#include "core/support/members.h"

namespace attest {

/// What write_errors wrote; tables of before there were ordinary inputs, shares of the budget or the worst errors' k
/// too. Throws BadLine.
[[nodiscard]] ErrorTable read_errors(Members members);

}  // namespace attest
