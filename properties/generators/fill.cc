#include "properties/generators/fill.h"

#include <algorithm>
#include <cmath>

#include "core/problem/selection.h"

namespace attest {

Tensor stored(DType dtype, const Shape& shape, std::span<double> values) {
  const double largest = format_of(dtype).largest;
  for (double& value : values) value = std::clamp(value, -largest, largest);
  return {dtype, shape, values};
}

double power_of_two(Stream& stream, const Format& format, int low, int high) {
  const double size = std::ldexp(1.0, static_cast<int>(stream.between(low, high)));
  const double power = stream.either(size);
  switch (stream.below(6)) {
    case 0:
      return power * (1.0 + std::ldexp(1.0, 1 - format.precision));
    case 1:
      return power * (1.0 - std::ldexp(1.0, -format.precision));
    default:
      return power;
  }
}

double bit_class(Stream& stream, const Format& format, int low, int high) {
  double size = 0.0;
  switch (stream.below(9)) {
    case 0:
      break;
    case 1:
      size = format.min_subnormal * static_cast<double>(stream.between(1, 3));
      break;
    case 2:
      size = format.min_normal + format.min_subnormal * static_cast<double>(stream.between(-1, 1));
      break;
    case 3:
    case 4:
    case 5:
      return power_of_two(stream, format, low, high);
    case 6:
      size = std::ldexp(2.0 - std::ldexp(1.0, 1 - format.precision), high);
      break;
    default: {
      const double significand = 1.0 + stream.unit();
      size = std::ldexp(significand, static_cast<int>(stream.between(low, high)));
    }
  }
  return stream.either(size);
}

double scale_of(const Recipe& recipe) {
  Stream stream(recipe.seed ^ 0x5ca1e);
  switch (recipe.scale) {
    case ScaleKind::one:
      return 1.0;
    case ScaleKind::power_of_two:
      return std::ldexp(1.0, static_cast<int>(stream.between(-6, 2)));
    case ScaleKind::uniform:
      return stream.uniform(0.01, 2.0);
    case ScaleKind::inverse_root:
    case ScaleKind::count:
      break;
  }
  return inverse_root(recipe.dk);
}

}  // namespace attest
