#include <fmt/format.h>

#include <algorithm>
#include <new>

#include "core/scalars/precision.h"
#include "properties/catalogue/property.h"
#include "properties/language/answer.h"
#include "properties/road/case_budget.h"

namespace attest {

std::string Property::misses(const Case& c) const {
  for (const Stated& stated : hypotheses) {
    if (stated.hypothesis->misses == nullptr) continue;
    if (std::string why = stated.hypothesis->misses(c); !why.empty()) return why;
  }
  return {};
}

Verdict check_case(const Property& property, Kernel& kernel, const Case& c, const Judging& judging) {
  if (c.operation != property.operation) {
    return {.outcome = Outcome::skipped,
            .reason = fmt::format("is a case of {}; {} needs one of {}", name_of(c.operation), property.name,
                                  name_of(property.operation))};
  }
  if (const auto& over = c.provenance.over_budget) return {.outcome = Outcome::skipped, .reason = *over};
  if (std::string why = why_unsupported(kernel.manifest(), c); !why.empty()) {
    return {.outcome = Outcome::skipped, .reason = std::move(why)};
  }
  if (std::string why = property.misses(c); !why.empty())
    return {.outcome = Outcome::skipped, .reason = std::move(why)};
  // What a law computes beside the kernel, and the core's own functions, have the kernel's precision.
  const AskedPrecision asked(std::max(kernel.digits(), run_time_digits));
  try {
    return property.check_as != nullptr ? property.check_as(kernel, c, judging) : property.check(kernel, c);
  } catch (NoAnswer& none) {
    return std::move(none.verdict);
  } catch (const std::bad_alloc&) {
    return {.outcome = Outcome::inconclusive, .reason = std::string(out_of_memory)};
  }
}

}  // namespace attest
