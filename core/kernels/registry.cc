#include "core/kernels/builtin.h"
#include "core/kernels/documents/module.h"

namespace attest {

std::vector<KernelEntry> builtin_kernels() {
  std::vector<KernelEntry> entries;
  for (const BuiltinKernel& kernel : all_builtins()) entries.push_back(entry_of(kernel));
  return entries;
}

namespace {

std::vector<DocumentModule> all_modules() {
  std::vector<DocumentModule> all;
  for (auto family : {modules_of_000, modules_of_001, modules_of_003}) {
    for (DocumentModule& module : family()) all.push_back(std::move(module));
  }
  return all;
}

}  // namespace

std::vector<KernelEntry> document_kernels() {
  std::vector<KernelEntry> entries;
  for (const DocumentModule& module : all_modules()) entries.push_back(entry_of(module));
  return entries;
}

Values (*weights_of_document(std::string_view kernel_id))(const Case&) {
  constexpr std::string_view family = "document:";
  if (!kernel_id.starts_with(family)) return nullptr;
  for (const DocumentModule& module : all_modules())
    if (module.name == kernel_id.substr(family.size())) return module.weights;
  return nullptr;
}

}  // namespace attest
