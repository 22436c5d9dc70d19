// The checks of specification.h on the scalars that prove. Compiled once for the real core and once for the core with
// planted faults.
#pragma once

#include "core/proof/finite_field.h"
#include "core/proof/symbolic.h"
#include "core/test/definition/specification.h"

namespace attest::test {

[[nodiscard]] std::vector<SpecificationCheck<SymbolicScope>> symbolic_checks();
[[nodiscard]] std::vector<SpecificationCheck<FieldScope>> field_checks();

}  // namespace attest::test
