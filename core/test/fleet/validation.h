// The validation of the bound: the fleet and the built-in kernels of one dtype over every regime.
#pragma once

#include <cstdint>

#include "ledger.h"

namespace attest::fleet {

struct Effort {
  std::uint64_t first_seed = 0;
  std::uint64_t seeds = 1;       ///< cases per kernel and regime
  std::int64_t max_keys;         ///< N is log-uniform from 1
  std::int64_t max_head_dim;     ///< dk likewise
  double alarm_probability = 0;  ///< not 0: the answers are held against the probabilistic bound too
};
/// Every kernel of the dtype on the same cases; a function of its arguments alone.
[[nodiscard]] Ledger validate_bound(DType dtype, const Effort& effort);

/// The case of a regime and seed within an effort's shapes.
[[nodiscard]] Case validation_case(Regime regime, DType dtype, const Effort& effort, std::uint64_t seed);

}  // namespace attest::fleet
