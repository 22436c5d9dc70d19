#include "core/kernels/precise_name.h"

#include <fmt/format.h>

#include <charconv>
#include <vector>

#include "core/scalars/precision.h"
#include "core/support/errors.h"
#include "core/support/names.h"

namespace attest {
namespace {

/// A double has 53 bits, and an error's exponents must be those of a long double.
constexpr unsigned fewest_digits = 20, most_digits = 3000;

std::optional<unsigned> number_of(std::string_view text) {
  unsigned number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

unsigned digits_of_bits(unsigned bits) {
  unsigned digits = bits / 4;
  while (bits_of_digits(digits) < static_cast<long>(bits)) ++digits;
  return digits;
}

}  // namespace

PreciseName precise_name(std::string_view id) {
  const std::size_t at = id.find('@');
  if (at == std::string_view::npos) return {id, std::nullopt};
  std::string_view precision = id.substr(at + 1);
  const bool in_bits = precision.ends_with('b');
  if (in_bits) precision.remove_suffix(1);
  std::optional<unsigned> asked = number_of(precision);
  const long most = in_bits ? bits_of_digits(most_digits) : most_digits;
  if (asked && static_cast<long>(*asked) <= most && in_bits) asked = digits_of_bits(*asked);
  if (!asked || *asked < fewest_digits || *asked > most_digits) {
    throw UsageError(fmt::format(
        "--kernel is {}: a precision is from {} to {} decimal digits, as in core:mpfr@300, or from {} to {} "
        "bits, as in core:mpfr@1000b",
        in_quotes(id), fewest_digits, most_digits, bits_of_digits(fewest_digits - 1) + 1, bits_of_digits(most_digits)));
  }
  return {id.substr(0, at), asked};
}

std::vector<unsigned> widths_of(std::string_view name, std::span<const std::string> known) {
  std::vector<unsigned> widths;
  for (const std::string_view other : known) {
    if (other.size() <= name.size() + 1 || !other.starts_with(name) || other[name.size()] != '_') continue;
    if (const auto digits = number_of(other.substr(name.size() + 1))) widths.push_back(*digits);
  }
  return widths;
}

std::optional<std::string> meant_name(const PreciseName& asked, std::span<const std::string> known) {
  for (const std::string& name : known)
    if (name == asked.name) return name;
  std::optional<unsigned> narrowest;
  if (!asked.digits) return std::nullopt;
  for (const unsigned width : widths_of(asked.name, known))
    if (width >= *asked.digits && (!narrowest || width < *narrowest)) narrowest = width;
  if (!narrowest) return std::nullopt;
  return fmt::format("{}_{}", asked.name, *narrowest);
}

}  // namespace attest
