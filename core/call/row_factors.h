// Where the factors of q, k and v stand (kernel-interface.md, section 1, DESCALE).
#pragma once

#include <attest/kernel.h>

#include <cstdint>
#include <optional>

#include "core/value/tensor.h"

namespace attest {

/// Of a tensor's rows, in heads of the batch's entries.
struct RowFactors {
  const attest_tensor& factors;
  std::int64_t block;  ///< rows that have one together; 0: all

  [[nodiscard]] bool present() const { return factors.data != nullptr; }
  /// Where the factor of a row stands.
  [[nodiscard]] std::int64_t at(std::int64_t b, std::int64_t h, std::int64_t row) const {
    return offset_in(factors, factors.shape[0] == 1 ? 0 : b, factors.shape[1] == 1 ? 0 : h,
                     factors.shape[2] == 1 ? 0 : row / block);
  }
};

/// Those of a tensor of the problem.
[[nodiscard]] inline RowFactors row_factors(const attest_problem& p, attest_tensor attest_problem::* tensor) {
  static constexpr attest_tensor none{};
  if ((p.variants & ATTEST_DESCALE) == 0) return {none, 0};
  if (tensor == &attest_problem::q) return {p.q_descale, p.q_descale_block};
  return {tensor == &attest_problem::k ? p.k_descale : p.v_descale, p.kv_descale_block};
}

}  // namespace attest
