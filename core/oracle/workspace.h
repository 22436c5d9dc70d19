// What the evaluation of a case works with: memory kept between cases, since a small case must not pay for allocation.
#pragma once

#include <cstdint>
#include <vector>

#include "core/oracle/rows/equal_rows.h"
#include "core/oracle/rows/head.h"
#include "core/oracle/rows/prefix_rows.h"
#include "core/oracle/rows/row_oracle.h"

namespace attest::detail {

struct Workspace {
  Head head;
  RowOracle oracle;
  EqualRows equal;
  PrefixRows prefixes;
  std::vector<std::int64_t> starts, queries;
  std::vector<double> found, radius, allowed;
};
/// This thread's.
[[nodiscard]] Workspace& workspace();

[[nodiscard]] Profile profile_for(const Problem& c, const Head& head, const Arithmetic& arithmetic);

}  // namespace attest::detail
