// What several requests have in common.
#pragma once

#include <optional>

#include "core/kernel/manifest.h"
#include "core/problem/case.h"
#include "core/problem/selection.h"
#include "reports/service/requests.h"

namespace attest {

/// By whose arithmetic and claims the case is looked at. Throws UsageError where it has no such dtype.
[[nodiscard]] Manifest manifest_asked(const Request& request, const Case& c);

/// The case's own where the request does not say.
[[nodiscard]] DType out_dtype_asked(const Request& request, const Case& c);

/// Ascending; nothing: all of them.
[[nodiscard]] std::optional<Indices> rows_asked(const Request& request, const Case& c);

}  // namespace attest
