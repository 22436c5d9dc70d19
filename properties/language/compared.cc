#include "properties/language/compared.h"

#include <algorithm>
#include <cmath>

#include "core/oracle/gradients/gradients.h"
#include "core/problem/sight.h"

namespace attest {

Verdict with_element(Verdict verdict, const Case& c, const Values& out) {
  if (verdict.outcome == Outcome::violated && verdict.element >= 0)
    verdict.compared = {{std::make_shared<const Case>(c), verdict.element, out[verdict.element]}};
  return verdict;
}

std::int64_t multiplications_of(const Case& c) {
  const std::int64_t dk = c.q().shape()[3], dv = c.v().shape()[3], keys = c.k().shape()[2];
  return c.q().elements() / std::max<std::int64_t>(dk, 1) * keys * (dk + dv);
}

std::vector<ComparedRecord> compared_elements(const Verdict& verdict, const Manifest& manifest) {
  std::vector<ComparedRecord> records;
  records.reserve(verdict.compared.size());
  for (const ComparedElement& side : verdict.compared) {
    const Case& c = *side.problem;
    ComparedRecord& record = records.emplace_back();
    record = {.shape = side.gradient ? c[slot_of(*side.gradient)].shape() : c.out_shape(),
              .element = side.element,
              .keys = keys_of(c),
              .found = side.found,
              .exact = {},
              .gradient = side.gradient};
    if (c.operation != Operation::attention || multiplications_of(c) > most_computed_again) continue;
    const auto at = static_cast<std::size_t>(side.element);
    const Enclosure exact = side.gradient ? gradient_enclosures(c)[static_cast<std::size_t>(*side.gradient)].at(at)
                                          : exact_elements(c, manifest.arithmetic_for(c)).at(at).exact;
    if (!std::isnan(exact.lower) && !std::isnan(exact.upper)) record.exact = exact;
  }
  return records;
}

}  // namespace attest
