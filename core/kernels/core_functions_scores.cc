#include "core/kernels/bodies/scores.h"

namespace attest::detail {

void set_score_functions(CoreTable& table) {
  for_each_scalar(table, []<class T>(CoreFunctions& f) { set_score_functions<T>(f); });
}

}  // namespace attest::detail
