#include "core/kernels/bodies/matrices.h"

namespace attest::detail {

void set_matrix_functions(CoreTable& table) {
  for_each_scalar(table, []<class T>(CoreFunctions& f) { set_matrix_functions<T>(f); });
}

}  // namespace attest::detail
