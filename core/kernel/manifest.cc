#include "core/kernel/manifest.h"

#include <algorithm>

namespace attest {

bool Manifest::takes(DType dtype) const {
  return std::ranges::find(dtypes, dtype) != dtypes.end();
}

bool Manifest::claims_to(Claim claim) const {
  return std::find(claims.begin(), claims.end(), claim) != claims.end();
}

const Arithmetic& Manifest::arithmetic_for(DType dtype) const {
  return arithmetic.at(dtype);
}

}  // namespace attest
