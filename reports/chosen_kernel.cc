#include "chosen_kernel.h"

#include <fmt/format.h>

#include <vector>

#include "attest/errors.h"
#include "attest/names.h"
#include "interrupt.h"

namespace attest {

std::unique_ptr<Kernel> open_chosen_kernel(const Options& options, std::string_view takes_one) {
  std::vector<std::unique_ptr<Kernel>> kernels;
  try {
    kernels = open_kernels(options.kernels.front(), options.kernel_options());
  } catch (const KernelLoadError&) {
    // A kernel that was not given the time to start is none that could not.
    if (interrupt_requested()) throw Abandoned();
    throw;
  }
  if (kernels.size() != 1) {
    throw UsageError(fmt::format("--kernel {} matches {} kernels; {}", in_quotes(options.kernels.front()),
                                 kernels.size(), takes_one));
  }
  return std::move(kernels.front());
}

}  // namespace attest
