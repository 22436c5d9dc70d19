#include "core/kernels/bodies/attention.h"

namespace attest::detail {

void set_attention_functions(CoreTable& table) {
  for_each_scalar(table, []<class T>(CoreFunctions& f) { set_attention_functions<T>(f); });
}

}  // namespace attest::detail
