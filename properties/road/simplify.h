// Simpler numbers in the place of others: what shrinking does to a tensor once its shape is as small as it gets.
#pragma once

#include <array>

#include "core/problem/case.h"
#include "core/value/tensor.h"

namespace attest {

/// From the simplest on.
enum class Simplification { zero, one, whole, one_bit, four_bits, eight_bits };
inline constexpr std::array simplifications{Simplification::zero,      Simplification::one,
                                            Simplification::whole,     Simplification::one_bit,
                                            Simplification::four_bits, Simplification::eight_bits};

/// How much a person has to read: 0 for 0, 1 for 1, then by significant bits, size of the exponent and sign. In a mask
/// "may attend" (true, 0) is simplest. Infinities count as much as a plain number.
[[nodiscard]] double complexity(DType dtype, double value);

/// The number itself, simplified so.
[[nodiscard]] double simpler(double value, Simplification to);

/// Replaces one element; false, and nothing changed, where the result would not be simpler. Booleans become true by
/// `zero`; -inf becomes 0. Lengths and starts stay as they are: they are simplified with what they count.
bool simplify_one(Tensor& tensor, std::int64_t element, Simplification to);
/// Every element that gets simpler; false when none does or the tensor is absent.
bool simplify_all(Tensor& tensor, Simplification to);
/// The same of a case's tensors; factors stay greater than 0.
bool simplify_one(Case& c, Slot slot, std::int64_t element, Simplification to);
bool simplify_all(Case& c, Slot slot, Simplification to);

}  // namespace attest
