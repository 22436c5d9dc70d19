#include "core/kernels/core_functions.h"

#include <vector>

#include "core/kernels/core_numbers.h"
#include "core/kernels/documents/module.h"
#include "core/kernels/precise_name.h"

namespace attest {
namespace {

const detail::CoreTable& own_functions() {
  static const detail::CoreTable table = [] {
    detail::CoreTable all{};
    detail::for_each_scalar(all, []<class T>(CoreFunctions& f) { f = detail::named_functions<T>(); });
    detail::set_matrix_functions(all);
    detail::set_attention_functions(all);
    detail::set_score_functions(all);
    detail::set_weighted_functions(all);
    detail::set_multihead_functions(all);
    return all;
  }();
  return table;
}

std::vector<const CoreFunctions*>& added_functions() {
  static std::vector<const CoreFunctions*> added;
  return added;
}

}  // namespace

const CoreFunctions* core_functions(std::string_view kernel_id) {
  constexpr std::string_view family = "core:";
  if (!kernel_id.starts_with(family)) return nullptr;
  const PreciseName asked = precise_name(kernel_id.substr(family.size()));
  std::vector<const CoreFunctions*> all = added_functions();
  for (const CoreFunctions& functions : own_functions()) all.push_back(&functions);
  std::string scalar(asked.name);
  if (asked.digits) {
    std::vector<std::string> known;
    known.reserve(all.size());
    for (const CoreFunctions* functions : all) known.emplace_back(functions->scalar);
    scalar = meant_name(asked, known).value_or(scalar);
  }
  for (const CoreFunctions* functions : all)
    if (scalar == functions->scalar) return functions;
  return nullptr;
}

Values (*returned_weights(std::string_view kernel_id))(const Case&) {
  if (const CoreFunctions* const core = core_functions(kernel_id)) return core->multihead_weights;
  return weights_of_document(kernel_id);
}

void add_core_functions(const CoreFunctions& functions) {
  added_functions().push_back(&functions);
}

}  // namespace attest
