#include "attest/manifest.h"

#include <algorithm>
#include <string_view>

#include "manifest/words.h"

namespace attest {

std::string_view name_of(Claim claim) noexcept {
  return words::claims[static_cast<std::size_t>(claim)];
}

std::string_view name_of(FullyMaskedRow policy) noexcept {
  return words::fully_masked_rows[static_cast<std::size_t>(policy)];
}

bool Manifest::claims_to(Claim claim) const {
  return std::find(claims.begin(), claims.end(), claim) != claims.end();
}

const Arithmetic& Manifest::arithmetic_for(DType dtype) const {
  return arithmetic.at(dtype);
}

}  // namespace attest
