#include "builtin.h"
#include "documents/module.h"

namespace attest {

std::vector<BuiltinKernel> all_builtins() {
  return {two_pass_kernel(), online_kernel(),   flash_kernel(), flash_exp2_kernel(),
          split_k_kernel(),  pairwise_kernel(), lazy_kernel()};
}

std::vector<KernelEntry> builtin_kernels() {
  std::vector<KernelEntry> entries;
  for (const BuiltinKernel& kernel : all_builtins()) entries.push_back(entry_of(kernel));
  return entries;
}

std::vector<KernelEntry> document_kernels() {
  std::vector<KernelEntry> entries;
  for (auto family : {modules_of_000, modules_of_001, modules_of_003}) {
    for (const DocumentModule& module : family()) entries.push_back(entry_of(module));
  }
  return entries;
}

}  // namespace attest
