// "core:mpfr@300": a scalar of the core and how many digits are asked of it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace attest {

struct PreciseName {
  std::string_view name;           ///< "core:mpfr"
  std::optional<unsigned> digits;  ///< decimal; nothing: none were asked for
};

/// Of a kernel's id. NAME@DIGITS asks for decimal digits, NAME@BITSb for bits, which are so many digits as hold them.
/// Throws UsageError where what follows the @ is no precision, or none from 20 digits, which hold every double, to
/// 3000.
[[nodiscard]] PreciseName precise_name(std::string_view id);

/// The one of `known` that `asked` means: its name, or else the narrowest of NAME_DIGITS with as many digits as asked.
/// Nothing where there is none.
[[nodiscard]] std::optional<std::string> meant_name(const PreciseName& asked, std::span<const std::string> known);
/// The numbers of digits that NAME_DIGITS has among `known`, in their order.
[[nodiscard]] std::vector<unsigned> widths_of(std::string_view name, std::span<const std::string> known);

}  // namespace attest
