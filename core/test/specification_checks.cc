#include "specification_checks.h"

namespace attest::test {

std::vector<SpecificationCheck<SymbolicScope>> symbolic_checks() {
  return Specification<SymbolicScope>::checks();
}

}  // namespace attest::test
