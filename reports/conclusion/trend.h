// Trends: how near a kernel's worst case came to what is allowed, over many runs of it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/support/json_writer.h"
#include "reports/results/figures.h"

namespace attest {

/// 0 for held, and more the farther a verdict is from it: skipped, inconclusive, violated.
[[nodiscard]] int distance_from_held(Outcome verdict);

/// A kernel in a dtype in one of the runs.
struct TrendPoint {
  Outcome verdict = Outcome::skipped;  ///< the one farthest from held, of its properties
  std::int64_t judged = 0;             ///< cases
  double worst = 0;                    ///< the worst share of the allowed error, of all properties
};

struct Trend {
  std::string kernel;  ///< by its manifest's name, and by its id where a run has two of that name
  std::string dtype;
  std::vector<std::optional<TrendPoint>> points;  ///< one per run, as they were given; nothing where it is not in it
};
/// One for each kernel and dtype of the runs, by kernel and dtype.
[[nodiscard]] std::vector<Trend> trends_of(std::span<const Figures> runs);

/// A line for each: "mine  f32  ▃▃▅ !  worst share 0.31 to 0.62, highest 0.62 in night-3; violated in night-4". A mark
/// is an eighth of what is allowed, · stands for a run without the kernel, and ! for one that violated. `names`: of the
/// runs.
[[nodiscard]] std::string trends_text(std::span<const Trend> trends, std::span<const std::string> names);

/// The array [{"kernel", "dtype", "runs": [{"run", "verdict", "judged", "worst"} or null]}].
void write_trends(JsonWriter& json, std::span<const Trend> trends, std::span<const std::string> names);

}  // namespace attest
