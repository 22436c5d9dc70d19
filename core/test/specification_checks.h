// The checks of specification.h on the scalars that prove. Compiled once for the real core and once for the core with
// planted faults.
#pragma once

#include "attest/scalars/finite_field.h"
#include "attest/scalars/symbolic.h"
#include "specification.h"

namespace attest::test {

[[nodiscard]] std::vector<SpecificationCheck<SymbolicScope>> symbolic_checks();
[[nodiscard]] std::vector<SpecificationCheck<FieldScope>> field_checks();

}  // namespace attest::test
