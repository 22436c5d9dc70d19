#include "properties/proofs/coq_theorems.h"

#include <string>

namespace attest {
namespace {

constexpr std::string_view theorems[] = {
#include "coq_theorems.inc"
};

}  // namespace

std::vector<std::string_view> coq_theorems(std::string_view property) {
  std::string name(property);
  for (char& c : name)
    if (c == '.' || c == '-') c = '_';
  const std::string part = name + "__";
  std::vector<std::string_view> found;
  for (const std::string_view theorem : theorems)
    if (theorem == name || theorem.starts_with(part)) found.push_back(theorem);
  return found;
}

std::string_view coq_that_compiled_them() {
  return ATTEST_COQ;
}

}  // namespace attest
