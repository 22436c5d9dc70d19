#include "core/kernels/bodies/kernel.h"

namespace attest {

std::vector<KernelEntry> core_kernels() {
  std::vector<KernelEntry> entries;
  EveryScalar::for_each([&]<class T>() { entries.push_back(detail::core_entry<T>()); });
  return entries;
}

}  // namespace attest
