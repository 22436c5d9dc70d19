#include "properties/road/case_budget.h"

#include <fmt/format.h>

namespace attest {
namespace {

/// In double: whole numbers would overflow for the extents that are refused here.
struct Cost {
  double numbers, products;
};

Cost cost_of(Operation operation, const Extents& e) {
  const auto d = [](std::int64_t extent) { return static_cast<double>(extent); };
  const double batch = d(e.batch), heads = d(e.heads), m = d(e.queries), n = d(e.keys), dk = d(e.dk), dv = d(e.dv);
  Cost cost{.numbers = batch * heads * m * n, .products = batch * heads * m * n * (dk + dv)};
  if (operation == Operation::attention) {
    cost.numbers += batch * (heads * m * (dk + dv) + d(e.kv_heads) * n * (dk + dv));
    return cost;
  }
  const double c_q = d(e.c_q), c_k = d(e.c_k), c_v = d(e.c_v), d_o = d(e.d_o);
  const double key_width = heads * dk, value_width = heads * dv;
  const double weights_of_keys = c_k * key_width + c_v * value_width;
  cost.numbers += batch * (m * (c_q + d_o) + n * (c_k + c_v)) + c_q * key_width + weights_of_keys + value_width * d_o;
  cost.products += batch * (m * (c_q * key_width + value_width * d_o) + n * weights_of_keys);
  return cost;
}

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

double cost_of(const Case& c) {
  const Cost cost = cost_of(c.operation, extents_of(c));
  return cost.products + 4 * cost.numbers + 0x1p15;
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
