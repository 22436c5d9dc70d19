#include "element_text.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>

#include "attest/json_writer.h"

namespace attest {

std::string index_text(std::int64_t element, const Shape& shape) {
  std::string text;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    text = fmt::format("{}{}{}", element % shape[axis], text.empty() ? "" : ", ", text);
    element /= shape[axis];
  }
  return "[" + text + "]";
}

std::string side_text(const ComparedRecord& side) {
  const std::string exact =
      side.exact ? fmt::format(", exact [{}, {}]", exact_text(side.exact->lower), exact_text(side.exact->upper)) : "";
  return fmt::format("out{} of a call with {} {}: found {}{}", index_text(side.element, side.shape), side.keys,
                     side.keys == 1 ? "key" : "keys", exact_text(side.found), exact);
}

std::string hex_number(double value) {
  if (!std::isfinite(value)) return number_text(value);
  // printf's %a, which fmt calls, takes the locale's decimal point.
  std::array<char, 32> digits{};
  const auto end =
      std::to_chars(digits.data(), digits.data() + digits.size(), std::abs(value), std::chars_format::hex).ptr;
  return (std::signbit(value) ? "-0x" : "0x") + std::string(digits.data(), end);
}

std::string exact_text(double value) {
  return fmt::format("{} ({})", number_text(value), hex_number(value));
}

}  // namespace attest
