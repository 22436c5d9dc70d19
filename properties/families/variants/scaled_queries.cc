#include "properties/families/variants/scaled_queries.h"

#include <cmath>

#include "properties/arrangement/any_number.h"
#include "properties/arrangement/arguments.h"
#include "properties/arrangement/arrange.h"

namespace attest {

std::optional<ScaledQueries> with_scale_in_queries(const Case& c) {
  ScaledQueries both{.apart = c, .together = c};
  both.together.scale = 1;
  if (!in_a_proof()) {
    int exponent = 0;
    const bool power = std::frexp(c.scale, &exponent) == 0.5 && c.scale != 1;
    const double powers[] = {0.25, 0.5, 2, 4};
    if (!power) both.apart.scale = powers[argument(c, "power", 4)];
  }
  both.together[Slot::q] = mapped(c.q(), [&](std::int64_t, double q) { return product_of(both.apart.scale, q); });
  for (std::int64_t e = 0; e < c.q().elements() && !in_a_proof(); ++e)
    if (!std::isfinite(both.together.q()[e]) || both.together.q()[e] / both.apart.scale != c.q()[e])
      return std::nullopt;
  return both;
}

}  // namespace attest
