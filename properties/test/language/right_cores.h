// What own_precision_test.cc and own_precision_long_test.cc do, with few cases and with many.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>

#include "core/kernel/kernel_under_test.h"
#include "properties/catalogue/property.h"
#include "properties/language/compared.h"

namespace attest {

/// Checks so many cases of the two oracles' properties on each kernel: none may be violated or inconclusive. Returns
/// how many were held. Cases of a model's size are left out, for their time.
inline int held_cases(std::initializer_list<const char*> kernels, std::int64_t cases) {
  int held = 0;
  for (const char* const id : kernels) {
    const auto kernel = std::move(open_kernels(id, {}).front());
    for (const char* const name : {"attention.oracle", "multihead.oracle"}) {
      const Property& property = property_named(name);
      for (std::int64_t k = 0, taken = 0; taken < cases; ++k) {
        const Case c = project(generate(property, DType::f64, /*run_seed=*/11, k), kernel->manifest());
        if (c.operation == Operation::attention && multiplications_of(c) > 30'000) continue;
        ++taken;
        const Verdict verdict = check_case(property, *kernel, c);
        EXPECT_TRUE(verdict.outcome != Outcome::violated && verdict.outcome != Outcome::inconclusive)
            << id << ' ' << name << " case " << k << ": " << verdict.reason;
        held += verdict.outcome == Outcome::held;
      }
    }
  }
  return held;
}

}  // namespace attest
