// How a planted kernel computes when nothing is wrong with it, and which one mistake is made on top.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/kernel/arithmetic.h"
#include "core/kernel/kernel_under_test.h"
#include "core/support/fnv1a.h"

namespace attest {

/// An honest way to compute attention. Sums are kept in f32, for f64 in f64; out is rounded once.
struct Make {
  std::int64_t block = 16;          ///< keys per block of the running maximum; 0: the whole row at once
  std::int64_t splits = 1;          ///< parts of the row, each by itself, merged through their log-sum-exps
  bool backwards = false;           ///< the blocks from the last to the first, and the keys in them
  bool tiles = false;               ///< each block's products with V are summed by themselves first
  bool normalise_first = false;     ///< weights are divided by their sum before they multiply V; block is 0
  bool folded_exp2 = false;         ///< exp2(fma(x, c, -fl(m c))), c = scale log2(e)
  bool reciprocal = false;          ///< times 1/sum instead of a division
  bool truncates = false;           ///< the sums of q.k and of weights times values round toward zero
  double lazy_nats = 0;             ///< the reference follows the maximum when it is this far behind; 0: always
  bool narrow_weights = false;      ///< rounded to the dtype before they multiply V
  bool narrow_denominator = false;  ///< the rounded weights are summed too
  bool narrow_scores = false;       ///< written to memory in the dtype, after scale and mask
  bool prescaled_q = false;         ///< q times scale, rounded to the dtype, before the product
  bool bf16_weights = false;        ///< rounded to bf16 whatever the dtype

  /// Not 0: a kernel of tiles (planted_tiles.h), this many queries by `block` keys, in f32, f16 and bf16. Of the above
  /// it knows narrow_weights, reciprocal and lazy_nats.
  std::int64_t query_tile = 0;
  std::int64_t split_tiles = 0;  ///< tiles of keys to a part where there are at most 16 queries; 0: one part
  bool skips_hidden = false;     ///< tiles of keys that the mask hides from every row of a tile are not read
};

/// The one mistake that is made, by the name of its fault; none is a correct kernel. Asked of every key: a name that
/// stands in the code is hashed as it is compiled. What the names do is the planted_*.cc's.
class Slip {
 public:
  constexpr Slip() = default;
  /// Of a name as it stands in the code: is("sum-not-rescaled").
  template <std::size_t size>
  consteval Slip(const char (&name)[size]) : Slip(named({name, size - 1})) {}  // NOLINT(google-explicit-constructor)
  [[nodiscard]] static constexpr Slip named(std::string_view name) {
    Slip slip;
    slip.hash_ = fnv1a_start;
    for (const char c : name) slip.hash_ = fnv1a(slip.hash_, static_cast<std::uint8_t>(c));
    return slip;
  }
  constexpr auto operator<=>(const Slip&) const = default;

 private:
  std::uint64_t hash_ = 0;
};

/// What the make may honestly declare for a dtype.
[[nodiscard]] Arithmetic arithmetic_of(const Make& make, DType dtype);

/// Runs the make with the slip on a problem in f64 (no kernel of tiles), f32, f16 or bf16, whatever the strides;
/// ATTEST_UNSUPPORTED for another dtype. `call` counts the calls before, for the one slip that differs from call to
/// call.
[[nodiscard]] int run_planted(const Make& make, Slip slip, const attest_problem& problem, attest_result& result,
                              std::int64_t call, std::string& message);

}  // namespace attest
