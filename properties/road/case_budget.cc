#include "properties/road/case_budget.h"

#include <fmt/format.h>

namespace attest {
namespace {

constexpr std::string_view within_limits = "within the manifest's limits";

}  // namespace

bool is_over_budget(std::string_view reason) {
  return reason.find(within_limits) != std::string_view::npos;
}

std::string why_over_budget(Operation operation, const Extents& drawn, const Extents& asked) {
  const Cost had = cost_of(operation, drawn), wanted = cost_of(operation, asked);
  const auto over = [](double value, double before, std::int64_t most) {
    return value > static_cast<double>(most) && value > before;
  };
  if (over(wanted.numbers, had.numbers, most_numbers)) {
    return fmt::format("would have {:.0f} numbers {}; a case has at most {}", wanted.numbers, within_limits,
                       most_numbers);
  }
  if (over(wanted.products, had.products, most_products)) {
    return fmt::format("would take {:.0f} multiplications {}; a case takes at most {}", wanted.products, within_limits,
                       most_products);
  }
  return {};
}

std::string why_too_dear_for_wide(const Case& c, unsigned digits) {
  // Measured with the judgement of the answer: a multiplication takes 0.3 us with 61 digits and 0.9 us with 3000, an
  // exponential of MPFR's 3 us and 220 us, one of Boost's own numbers up to eight times as long.
  constexpr double most = 0x1p20;
  const Extents e = extents_of(c);
  const double products = cost_of(c.operation, e).products;
  const double pairs = static_cast<double>(e.batch * e.heads) * static_cast<double>(e.queries * e.keys);
  const double taken = products * (1 + digits / 1500.0) + pairs * digits;
  if (taken <= most) return {};
  return fmt::format(
      "takes as long as {:.0f} multiplications on {} decimal digits; a kernel on a scalar wider than "
      "every dtype is asked for {:.0f} at most",
      taken, digits, most);
}

}  // namespace attest
