// Comparison of two runs: what became worse, what better, beyond the noise between two runs of one kernel.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/support/words.h"
#include "reports/conclusion/trend.h"
#include "reports/results/figures.h"

namespace attest {

enum class Direction {
  worse,  ///< makes attest check --baseline and attest compare exit with 1
  better,
  neither  ///< worth knowing
};
template <>
struct Words<Direction> {
  static constexpr std::array<std::string_view, 3> names{"worse", "better", "other"};
};

/// One difference. It is about a kernel in a dtype; of a property where one is named.
struct Difference {
  Direction direction = Direction::neither;
  std::string what;  ///< "verdict", "coverage", "worst", "errors", "claims", "arithmetic"
  std::string kernel, dtype, property;
  std::string words;
};

struct Comparison {
  std::vector<Difference> differences;  ///< worse ones first, else by kernel, dtype and property
  std::int64_t subjects = 0;            ///< properties by kernel and dtype that both runs have
  bool bred = false;                    ///< of campaigns
  std::string baseline{};               ///< the run that was before, as the user named it; compare leaves it empty

  [[nodiscard]] std::int64_t count(Direction) const;
};

/// What of `before` is otherwise in `now`. Kernels are the same by their id, else by their name where no other has it.
///
/// Worse is: a kernel, dtype or property that is not there any more; a verdict farther from held (skipped,
/// inconclusive, violated, in this order); a claim that is not made any more; fewer cases than before, or a smaller
/// share of them judged than chance explains (with the same seed and as many cases: by more than one in a hundred); a
/// kind of cases, or a class of shapes (shape_class.h), of which none is judged any more; with the same seed, and no
/// fewer cases, a smaller reach (Reach) in any of its extents (with another one, one below the half is worth knowing);
/// a worst utilisation beyond worst_expected, and errors that grew (noise.h). Where a kernel declares another
/// arithmetic its bound is another one: there the largest errors by octave of keys, as shares of u sum |weight v|, may
/// not double. Of campaigns, whose cases are not drawn alike, only verdicts and the worst case are held against each
/// other, and the worst one may grow by a quarter.
///
/// Throws UsageError where the two cannot be compared: one is a campaign and one is not, or they were run --against
/// different kernels, or of `before` no case was judged.
[[nodiscard]] Comparison compare(const Figures& before, const Figures& now);

/// What a comparison amounts to, in the words that the terminal, summary.md and the page all have.
struct ChangesInWords {
  std::string counts;  ///< "1 worse, 0 better, of 2 properties that both runs have"
  std::string noise;   ///< a sentence: how far apart two runs of one kernel may lie, so that it is no change
};
[[nodiscard]] ChangesInWords in_words(const Comparison& comparison);

/// "attention.oracle by mine in f32: ", and what changed, on one line.
[[nodiscard]] std::string line_of(const Difference& difference);

/// A line a change ("WORSE attention.oracle by mine in f32: …"), at most `most` of each direction and, unless that is
/// 0, a line that says how many more there are.
[[nodiscard]] std::string changes_text(const Comparison& comparison,
                                       const std::array<std::size_t, 3>& most = {20, 20, 20});

/// {"schema": "attest-comparison/1", "worse", "better", "subjects", "changes": [{"direction", "what", "kernel",
/// "dtype", "property", "words"}]}, and "trends" (trend.h) where there are any, of the runs by their names.
[[nodiscard]] std::string changes_json(const Comparison& comparison, std::span<const Trend> trends = {},
                                       std::span<const std::string> names = {});

}  // namespace attest
