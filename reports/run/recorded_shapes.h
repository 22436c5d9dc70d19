// Shapes from files: of lines, and what FlashInfer's fi_trace and flashinfer-bench recorded.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "reports/run/shape_options.h"

namespace attest {

struct ReadShapes {
  std::vector<Extents> shapes;     ///< each once
  std::vector<std::string> notes;  ///< a line each: what was left out, and what is not as it was recorded
};

/// More of them are thinned out evenly.
inline constexpr std::size_t most_recorded_shapes = 256;

/// The shapes of a file of lines (shapes_in), of a Definition (.json), of workloads or traces (.jsonl; their
/// definitions stand beside them, or in the folder "definitions" of one above), or of a folder of these, as
/// FLASHINFER_TRACE_DUMP_DIR and the root of a data set are. A definition that no workload is of has the lengths of
/// Attest's own production cases. Throws UsageError: one line that begins with `option` and names file, line, value,
/// rule and remedy; for a path without a shape of attention as well.
[[nodiscard]] ReadShapes read_shapes(std::string_view option, const std::filesystem::path& path);

}  // namespace attest
