// A family of properties on right kernels, which hold on any input. CMakeLists.txt says which: ATTEST_PROPERTIES and
// ATTEST_KERNELS. An engine is shown the level of utilisation beside its coverage, and asks here for what comes next.
#include <algorithm>

#include "fuzz/targets/numerics.h"
#include "fuzz/targets/target.h"

namespace {

const attest::Numerics& numerics() {
  static const attest::Numerics target(ATTEST_PROPERTIES, attest::kernels_matching(ATTEST_KERNELS));
  return target;
}

std::size_t put(const std::vector<std::uint8_t>& bytes, std::uint8_t* data, std::size_t most) {
  const std::size_t size = std::min(bytes.size(), most);
  std::copy_n(bytes.begin(), size, data);
  return size;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto result = numerics().run({data, size});
  // What is not judged is nothing to breed from.
  if (!result || result->verdict.outcome == attest::Outcome::skipped) return -1;
  const std::string finding = attest::finding_of(*result, ".");
  attest::require(finding.empty(), finding.c_str());
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
  return put(numerics().mutated({data, size}, seed), data, most);
}

extern "C" std::size_t LLVMFuzzerCustomCrossOver(const std::uint8_t* a, std::size_t a_size, const std::uint8_t* b,
                                                 std::size_t b_size, std::uint8_t* out, std::size_t most,
                                                 unsigned seed) {
  return put(numerics().crossed({a, a_size}, {b, b_size}, seed), out, most);
}
