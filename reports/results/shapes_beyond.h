// What to type to have shapes judged that a run did not judge.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/kernel/manifest.h"
#include "core/measure/verdict.h"
#include "core/problem/selection.h"

namespace attest {

/// Shapes beyond what was judged, within the manifest's limits: one of more queries and keys than the `both` that no
/// case had both more of, one of more queries, one of more keys, one of wider and more heads, each where there is such
/// a one of 2^28 multiplications at most, as a run draws many cases of it.
[[nodiscard]] std::vector<Extents> shapes_beyond(const Reach& judged, const Manifest& manifest,
                                                 std::optional<std::int64_t> both = {});

/// "--shape=1,8,2,64,200,64", as shape_of reads it.
[[nodiscard]] std::string shape_option(const Extents& shape);

}  // namespace attest
