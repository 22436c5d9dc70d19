// The formats the built-in kernels run in: how elements are stored and what the sums are kept in.
#pragma once

#include <cstdint>

#include "core/value/dtype.h"

namespace attest {

/// A format has Real (what every intermediate is kept in: f32 for the 16-bit formats), dtype, and round(x): x rounded
/// to the format once, in Real; the identity where Real is the format.
struct F64 {
  using Real = double;
  static constexpr DType dtype = DType::f64;
  static Real round(Real x) { return x; }
};
struct F32 {
  using Real = float;
  static constexpr DType dtype = DType::f32;
  static Real round(Real x) { return x; }
};
struct F16 {
  using Real = float;
  static constexpr DType dtype = DType::f16;
  static Real round(Real x) { return static_cast<Real>(f16_value(f16_bits(static_cast<double>(x)))); }
};
struct BF16 {
  using Real = float;
  static constexpr DType dtype = DType::bf16;
  static Real round(Real x) { return static_cast<Real>(bf16_value(bf16_bits(static_cast<double>(x)))); }
};

}  // namespace attest
