#include "reports/run/against.h"

#include <fmt/format.h>

#include "core/support/errors.h"
#include "core/support/names.h"
#include "properties/road/compare_kernels.h"

namespace attest {

Kernel& OtherKernel::mine() {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<Kernel>& clone = clones_[std::this_thread::get_id()];
  if (!clone) clone = kernel_->clone();
  return *clone;
}

std::unique_ptr<Kernel> open_other_kernel(const std::string& spec, const KernelOptions& options) {
  std::vector<std::unique_ptr<Kernel>> kernels = open_kernels(spec, options);
  if (kernels.size() != 1) {
    throw UsageError(fmt::format("--against {} matches {} kernels; it must name one", in_quotes(spec), kernels.size()));
  }
  return std::move(kernels.front());
}

Road road_against(const std::shared_ptr<OtherKernel>& other) {
  return {.project =
              [other](Case c, const Manifest& manifest) {
                return project(project(std::move(c), manifest), other->original().manifest());
              },
          .check = [other](const Property&, Kernel& kernel,
                           const Case& c) { return check_against(kernel, other->mine(), c); },
          .shrink = [other](const Property&, Kernel& kernel, const Case& c,
                            int budget) { return shrink_against(kernel, other->mine(), c, budget); }};
}

}  // namespace attest
