#include "properties/road/simplify.h"

#include <cmath>
#include <cstdint>

#include "core/problem/fields.h"

namespace attest {
namespace {

/// `value` rounded to `bits` significant bits.
double rounded_to_bits(double value, int bits) {
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(fraction, bits)), exponent - bits);
}

int significant_bits(double value) {
  int exponent = 0;
  auto fraction = static_cast<std::int64_t>(std::ldexp(std::frexp(std::abs(value), &exponent), 53));
  int bits = 53;
  for (; fraction % 2 == 0 && bits > 1; fraction /= 2) --bits;
  return bits;
}

}  // namespace

double simpler(double value, Simplification to) {
  switch (to) {
    case Simplification::zero:
      return 0.0;
    case Simplification::one:
      return 1.0;
    case Simplification::whole:
      return std::nearbyint(value);
    case Simplification::one_bit:
      return rounded_to_bits(value, 1);
    case Simplification::four_bits:
      return rounded_to_bits(value, 4);
    case Simplification::eight_bits:
      return rounded_to_bits(value, 8);
  }
  return value;
}

double complexity(DType dtype, double value) {
  if (dtype == DType::boolean) return value != 0.0 ? 0.0 : 1.0;
  if (value == 0.0) return std::signbit(value) ? 0.5 : 0.0;
  if (value == 1.0) return 1.0;
  if (!std::isfinite(value)) return 4.0;
  const double exponent = std::abs(std::log2(std::abs(value)));
  return 2.0 + significant_bits(value) + 0.25 * exponent + (value < 0.0 ? 0.5 : 0.0);
}

bool simplify_one(Tensor& tensor, std::int64_t element, Simplification to) {
  if (tensor.dtype() == DType::i32) return false;
  const double value = tensor[element];
  double replacement = 0.0;
  if (tensor.dtype() == DType::boolean) {
    if (to != Simplification::zero) return false;
    replacement = 1.0;
  } else {
    if (!std::isfinite(value) && to != Simplification::zero) return false;
    replacement = simpler(value, to);
    // The largest number, rounded to fewer bits, would be infinite.
    if (!std::isfinite(replacement) || round_to(tensor.dtype(), replacement) != replacement) return false;
  }
  if (!(complexity(tensor.dtype(), replacement) < complexity(tensor.dtype(), value))) return false;
  tensor.set(element, replacement);
  return true;
}

bool simplify_all(Tensor& tensor, Simplification to) {
  bool changed = false;
  const std::int64_t elements = tensor.present() ? tensor.elements() : 0;
  for (std::int64_t element = 0; element < elements; ++element) changed |= simplify_one(tensor, element, to);
  return changed;
}

bool simplify_one(Case& c, Slot slot, std::int64_t element, Simplification to) {
  const bool is_factor = tensor_fields[static_cast<std::size_t>(slot)].content == Content::factor;
  if (is_factor && !(simpler(c[slot][element], to) > 0)) return false;
  return simplify_one(c[slot], element, to);
}

bool simplify_all(Case& c, Slot slot, Simplification to) {
  bool changed = false;
  const std::int64_t elements = c[slot].present() ? c[slot].elements() : 0;
  for (std::int64_t element = 0; element < elements; ++element) changed |= simplify_one(c, slot, element, to);
  return changed;
}

}  // namespace attest
