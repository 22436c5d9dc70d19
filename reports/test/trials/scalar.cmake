# long double as the kernel "core:trial".
create(core/scalars/trial.h [[
// long double as a scalar of the core.
#pragma once

#include "core/scalars/number.h"

namespace attest {

template <>
struct ScalarTraits<long double> : NumberTraits<long double> {
  static constexpr std::string_view name = "trial";
  static constexpr std::string_view summary = "the definition in long double, rounded once";
};

}  // namespace attest
]])
create(core/scalars/trial.cc [[
#include "core/scalars/trial.h"

#include "core/definition/bodies/instantiate.h"

namespace attest {
ATTEST_INSTANTIATE_CORE(long double)
}  // namespace attest
]])
insert(core/scalars/every_scalar.h "\nnamespace attest {" "#include \"core/scalars/trial.h\"\n")
insert(core/scalars/every_scalar.h "Arb>;" "long double, ")
insert(core/test/definition/test_scalars.h "template <>\ninline constexpr int unit_exponent<BinFloat50>" [[
template <>
inline constexpr int unit_exponent<long double> = -std::numeric_limits<long double>::digits;
]])
