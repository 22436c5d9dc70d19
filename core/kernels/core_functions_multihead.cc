#include "core/kernels/bodies/multihead.h"

namespace attest::detail {

void set_multihead_functions(CoreTable& table) {
  for_each_scalar(table, []<class T>(CoreFunctions& f) { set_multihead_functions<T>(f); });
}

}  // namespace attest::detail
