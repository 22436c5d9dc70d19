// Which elements of an answer that was kept are wrong, and by how much.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/kernel/manifest.h"
#include "core/oracle/oracle.h"
#include "core/problem/case_file.h"

namespace attest {

/// Error over allowed error of what was found, from the far end of the enclosure: 0 where nothing is required or any
/// number is allowed, infinite for NaN and where something is wrong that may not be. Never NaN.
[[nodiscard]] double share_of_allowed(double found, const ElementFacts& facts);

/// The shares of every element of [batch, heads, queries, columns], the last axis running fastest.
struct ErrorMap {
  std::int64_t batch = 0, heads = 0, queries = 0, columns = 0;
  std::vector<double> shares;

  [[nodiscard]] std::int64_t wrong() const;  ///< elements beyond what is allowed
};
/// Nothing where the case is of another operation, has no answer, or takes too long to answer exactly.
[[nodiscard]] std::optional<ErrorMap> error_map(const AnsweredCase& c, const Manifest& manifest);

/// "24 of 256 elements: head 2 of 4, queries 16-31 of 32, every column"; axes of 1 are left out. Whatever is wrong lies
/// there, and there not everything needs to be wrong. Empty where nothing is.
[[nodiscard]] std::string where_wrong(const ErrorMap& map);

}  // namespace attest
