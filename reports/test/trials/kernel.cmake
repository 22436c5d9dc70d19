# "builtin:trial": two passes that divide the output by the sum once.
create(core/kernels/trial.cc [[
// Two passes, the output divided once.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/kernels/builtin.h"

namespace attest {
namespace {

template <class Format>
void trial(const Row<Format>& row) {
  using Real = typename Format::Real;
  Real maximum = -std::numeric_limits<Real>::infinity(), sum = 0;
  for (std::int64_t j = 0; j < row.keys; ++j)
    if (row.visible[j]) maximum = std::max(maximum, row.scratch[j] = row.score(j));
  std::fill_n(row.out, row.value_dim, Real{0});
  for (std::int64_t j = 0; j < row.keys; ++j) {
    if (!row.visible[j]) continue;
    const Real weight = std::exp(row.scratch[j] - maximum);
    sum += weight;
    for (std::int64_t c = 0; c < row.value_dim; ++c) row.out[c] += weight * row.value(j)[c];
  }
  for (std::int64_t c = 0; c < row.value_dim; ++c) row.out[c] /= sum;
  *row.lse = maximum + std::log(sum);
}

Arithmetic arithmetic(DType dtype) {
  Arithmetic a = row_arithmetic(dtype);
  a.block = 0;
  return a;
}

}  // namespace

BuiltinKernel trial_kernel() {
  return {
      .name = "trial",
      .summary = "two passes, divided once",
      .arithmetic = arithmetic,
      .claims = {Claim::deterministic, Claim::batch_invariant, Claim::padding_invariant, Claim::ignores_dead_values},
      .no_key = NoKey::nan,
      .rows = {trial<F64>, trial<F32>, trial<F16>, trial<BF16>}};
}

}  // namespace attest
]])
insert(core/kernels/builtin.h "\n/// All of them, in the order of `attest list`."
       "[[nodiscard]] BuiltinKernel trial_kernel();\n")
insert(core/kernels/builtin.h "mixed_kernel()};" "trial_kernel(), ")
