// What laws about variants say of a case that they do not judge.
#pragma once

#include <string>
#include <utility>

#include "core/kernel/kernel_under_test.h"
#include "core/kernel/manifest.h"
#include "core/measure/verdict.h"
#include "core/problem/case.h"
#include "properties/language/answer.h"

namespace attest {

[[nodiscard]] inline Verdict skipped(std::string reason) {
  return {.outcome = Outcome::skipped, .reason = std::move(reason)};
}
[[nodiscard]] inline Verdict excused(std::string reason) {
  return {.outcome = Outcome::excused, .reason = std::move(reason)};
}

/// The case, where the kernel takes it: an arrangement may ask for what its manifest rules out.
[[nodiscard]] inline Case within_reach(const Kernel& kernel, Case c) {
  if (std::string why = why_unsupported(kernel.manifest(), c); !why.empty()) throw NoAnswer{skipped(std::move(why))};
  return c;
}

}  // namespace attest
