// The kernel of a command that takes one.
#pragma once

#include <memory>
#include <string_view>

#include "attest/kernel_under_test.h"
#include "options.h"

namespace attest {

/// The kernel of --kernel. Throws UsageError where it matches none or several, which says by `takes_one` what the
/// command does with one; KernelLoadError where it cannot be started, Abandoned where an interrupt kept it from that.
[[nodiscard]] std::unique_ptr<Kernel> open_chosen_kernel(const Options& options, std::string_view takes_one);

}  // namespace attest
