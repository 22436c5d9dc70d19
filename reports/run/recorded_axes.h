// What FlashInfer's fi_trace and flashinfer-bench record of a call: no tensors, but the axes of their shapes by name. A
// Definition has those that a model fixes ("const": heads, widths, a page's size) and names the others ("var"); a
// workload has the values of these in one call.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/problem/selection.h"

namespace attest {

/// Values by the names of axes.
using AxisValues = std::map<std::string, std::int64_t, std::less<>>;

struct RecordedDefinition {
  std::string name, op_type;
  AxisValues fixed;
  std::set<std::string, std::less<>> open;  ///< the axes without a value
  bool decodes = false;                     ///< one query of each sequence, as far as is known
};

/// Throws UsageError: key, value and rule, without the file's name.
[[nodiscard]] RecordedDefinition read_definition(const nlohmann::json& json);
/// The "axes" of a workload. Throws UsageError as read_definition does, for a value that is not the fixed one as well.
[[nodiscard]] AxisValues read_axes(const nlohmann::json& workload, const RecordedDefinition& definition);

/// Whether it is attention that a kernel under test may be asked for: q, k and v with heads, dense, in one call.
[[nodiscard]] bool is_attention(const RecordedDefinition& definition);

/// A shape, or why there is none.
struct RecordedShape {
  std::optional<Extents> shape;
  std::string why_none;
  bool averaged = false;  ///< its lengths are what sequences of a batch have on average, or whole pages
};

/// Heads and widths alone, lengths being 0.
[[nodiscard]] RecordedShape heads_of(const RecordedDefinition& definition);
/// With lengths that production cases have, where no call is known. `heads`: as heads_of has them.
[[nodiscard]] std::vector<Extents> supposed_shapes(const RecordedDefinition& definition, const Extents& heads);
/// With a call's values. Throws UsageError where an axis that is needed has none.
[[nodiscard]] RecordedShape shape_of(const RecordedDefinition& definition, const AxisValues& values);

}  // namespace attest
