// The kernel of a command that takes one, and what is said where none can be run.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/kernel/kernel_under_test.h"
#include "reports/commands/options/shared_options.h"

namespace attest {

/// The kernel of --kernel, `name`. Throws UsageError where it matches none or several, which says by `takes_one` what
/// the command does with one; KernelLoadError where it cannot be started, Abandoned where an interrupt kept it from
/// that.
[[nodiscard]] std::unique_ptr<Kernel> open_chosen_kernel(const std::string& name, const KernelProcess& process,
                                                         std::string_view takes_one);

/// Throws KernelLoadError where none of the kernels has a dtype of those asked for, with those that each has.
void require_a_dtype(std::span<const std::unique_ptr<Kernel>> kernels, std::span<const DType> asked);

}  // namespace attest
