#include "core/kernels/bodies/weighted.h"

namespace attest::detail {

void set_weighted_functions(CoreTable& table) {
  for_each_scalar(table, []<class T>(CoreFunctions& f) { set_weighted_functions<T>(f); });
}

}  // namespace attest::detail
