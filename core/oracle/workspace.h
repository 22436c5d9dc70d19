// What the evaluation of a case works with: memory kept between cases, since a small case must not pay for allocation.
#pragma once

#include <cstdint>
#include <vector>

#include "core/oracle/equal_rows.h"
#include "core/oracle/head.h"
#include "core/oracle/prefix_rows.h"
#include "core/oracle/row_oracle.h"

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
