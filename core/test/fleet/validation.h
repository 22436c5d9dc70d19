// The validation of the bound: the fleet and the built-in kernels of one dtype over every regime.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>

#include "core/test/fleet/ledger.h"

namespace attest::fleet {

struct Effort {
  std::uint64_t first_seed = 0;
  std::uint64_t seeds = 1;       ///< cases per kernel and regime
  std::int64_t max_keys;         ///< N is log-uniform from 1
  std::int64_t max_head_dim;     ///< dk likewise
  double alarm_probability = 0;  ///< not 0: the answers are held against the probabilistic bound too
};
/// A dtype and how many checks its kernels make at least, or elements they are held in: a parameter of tests.
struct Share {
  DType dtype;
  std::int64_t least;
  friend void PrintTo(const Share& share, std::ostream* out) { *out << name_of(share.dtype) << ", " << share.least; }
};
/// The name of a test of that parameter.
inline constexpr auto dtype_name = [](const auto& share) { return std::string(name_of(share.param.dtype)); };

/// Every kernel of the dtype on the same cases; a function of its arguments alone.
[[nodiscard]] Ledger validate_bound(DType dtype, const Effort& effort);

/// The case of a regime and seed within an effort's shapes.
[[nodiscard]] Case validation_case(Regime regime, DType dtype, const Effort& effort, std::uint64_t seed);

}  // namespace attest::fleet
