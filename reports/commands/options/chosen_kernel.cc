#include "reports/commands/options/chosen_kernel.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "core/support/errors.h"
#include "core/support/names.h"
#include "properties/road/watched_kernel.h"
#include "reports/run/interrupt.h"
#include "reports/text/text.h"

namespace attest {

std::unique_ptr<Kernel> open_chosen_kernel(const std::string& name, const KernelProcess& process,
                                           std::string_view takes_one) {
  std::vector<std::unique_ptr<Kernel>> kernels;
  try {
    kernels = open_kernels(name, process.options());
  } catch (const KernelLoadError&) {
    // A kernel that was not given the time to start is none that could not.
    if (interrupt_requested()) throw Abandoned();
    throw;
  }
  if (kernels.size() != 1) {
    throw UsageError(fmt::format("--kernel {} matches {} kernels; {}", in_quotes(name), kernels.size(), takes_one));
  }
  return std::move(kernels.front());
}

void require_a_dtype(std::span<const std::unique_ptr<Kernel>> kernels, std::span<const DType> asked) {
  constexpr std::size_t shown = 4;
  std::vector<std::string> offers;
  offers.reserve(kernels.size());
  for (const std::unique_ptr<Kernel>& kernel : kernels) {
    std::vector<std::string_view> names;
    names.reserve(kernel->manifest().dtypes.size());
    for (const DType dtype : kernel->manifest().dtypes) {
      if (std::ranges::find(asked, dtype) != asked.end()) return;
      names.push_back(name_of(dtype));
    }
    offers.push_back(fmt::format("{} offers {}", one_line(kernel->id()), fmt::join(names, ", ")));
  }
  if (offers.empty() || asked.empty()) return;
  std::vector<std::string_view> wanted;
  wanted.reserve(asked.size());
  for (const DType dtype : asked) wanted.push_back(name_of(dtype));
  const std::size_t more = offers.size() - std::min(offers.size(), shown);
  offers.resize(offers.size() - more);
  throw KernelLoadError(fmt::format(
      "no kernel offers the dtype {}: {}{}; ask for one of these with --dtype, or leave it out",
      fmt::join(wanted, " or "), fmt::join(offers, "; "), more > 0 ? fmt::format(" and {} more kernels", more) : ""));
}

}  // namespace attest
