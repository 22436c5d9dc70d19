// The validation of the bound: the fleet and the built-in kernels of one dtype over every regime.
#pragma once

#include <array>
#include <cstdint>
#include <ostream>
#include <random>
#include <string>
#include <string_view>

#include "core/test/fleet/ledger.h"

namespace attest::fleet {

/// What is added to the cases of a regime.
enum class Added { nothing, window, sink, softcap, dropout, slope, descale, everything };
inline void PrintTo(Added added, std::ostream* out) {
  constexpr std::array<std::string_view, 8> names{"nothing", "window", "sink",    "softcap",
                                                  "dropout", "slope",  "descale", "everything"};
  *out << names[static_cast<std::size_t>(added)];
}
/// What tests are repeated for.
inline constexpr std::array every_added{Added::window, Added::sink,    Added::softcap,   Added::dropout,
                                        Added::slope,  Added::descale, Added::everything};

struct Effort {
  std::uint64_t first_seed = 0;
  std::uint64_t seeds = 1;       ///< cases per kernel and regime
  std::int64_t max_keys;         ///< N is log-uniform from 1
  std::int64_t max_head_dim;     ///< dk likewise
  double alarm_probability = 0;  ///< not 0: the answers are held against the probabilistic bound too
  Added added = Added::nothing;
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

/// Gives the case what is to be added.
void add(Added added, Case& c, std::mt19937_64& random);
/// The case of a regime and seed within an effort's shapes.
[[nodiscard]] Case validation_case(Regime regime, DType dtype, const Effort& effort, std::uint64_t seed);

}  // namespace attest::fleet
