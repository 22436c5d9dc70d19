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

std::string why_too_dear_for_wide(const Case& c) {
  constexpr double most = 0x1p19;
  const double products = cost_of(c.operation, extents_of(c)).products;
  if (products <= most) return {};
  return fmt::format(
      "takes {:.0f} multiplications; a kernel on a scalar wider than every dtype is asked for {:.0f} at most", products,
      most);
}

}  // namespace attest
