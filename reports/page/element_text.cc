#include "reports/page/element_text.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>

#include "core/support/json_writer.h"

namespace attest {

std::string element_text(const ComparedRecord& element) {
  const std::string exact = element.exact ? fmt::format(", exact [{}, {}]", exact_text(element.exact->lower),
                                                        exact_text(element.exact->upper))
                                          : "";
  return fmt::format("{} of a call with {} {}: found {}{}", element.place(), element.keys,
                     element.keys == 1 ? "key" : "keys", exact_text(element.found), exact);
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
