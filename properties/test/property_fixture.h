// One property on one kernel: what tests of families ask of it.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "core/support/names.h"
#include "core/test/says.h"
#include "properties/catalogue/property.h"
#include "properties/test/catalogue/tampered.h"

namespace attest {

inline Verdict verdict_on(const Property& property, Kernel& kernel, DType dtype, std::int64_t k) {
  return check_case(property, kernel, project(generate(property, dtype, /*run_seed=*/1, k), kernel.manifest()));
}

/// How often each outcome came among the first cases, and the first violated one (-1: none).
struct Tried {
  int held = 0, excused = 0, skipped = 0, violated = 0;
  std::int64_t first_violated = -1;
  std::string reason;
};
inline Tried tried(std::string_view name, Kernel& kernel, DType dtype, std::int64_t cases) {
  Tried t;
  for (std::int64_t k = 0; k < cases; ++k) {
    const Verdict verdict = verdict_on(property_named(name), kernel, dtype, k);
    t.held += verdict.outcome == Outcome::held;
    t.excused += verdict.outcome == Outcome::excused;
    t.skipped += verdict.outcome == Outcome::skipped;
    if (verdict.outcome != Outcome::violated && verdict.outcome != Outcome::inconclusive) continue;
    if (t.violated++ == 0) t.first_violated = k, t.reason = verdict.reason;
  }
  return t;
}

/// Why a case of the property that `edit` spoils is skipped.
template <class Edit>
[[nodiscard]] std::string why_skipped(std::string_view name, const Edit& edit) {
  const Property& property = property_named(name);
  Case c = generate(property, DType::f64, /*run_seed=*/1, /*k=*/3);
  edit(c);
  const auto kernel = registered("core:double");
  const Verdict verdict = check_case(property, *kernel, c);
  EXPECT_EQ(verdict.outcome, Outcome::skipped) << name;
  return verdict.reason;
}

}  // namespace attest
