#include "core/test/definition/specification_checks.h"

namespace attest::test {

std::vector<SpecificationCheck<SymbolicScope>> symbolic_checks() {
  return Specification<SymbolicScope>::checks();
}
std::vector<SpecificationCheck<FieldScope>> field_checks() {
  return Specification<FieldScope>::checks();
}

}  // namespace attest::test
