// Verdict: what was found out about one case, and the statistics that merge.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/support/words.h"

namespace attest {

struct Case;         // case.h
struct ErrorSample;  // error_statistics.h

/// Worst first when verdicts are combined: violated, inconclusive, held, skipped (excused cases are counted apart).
enum class Outcome {
  held,
  violated,
  skipped,      ///< the manifest rules the case out, or the kernel answered `unsupported`
  excused,      ///< outside the domain of definition, or an infinite or vacuous bound; never counted as held
  inconclusive  ///< the oracle could not decide
};
template <>
struct Words<Outcome> {
  static constexpr std::array<std::string_view, 5> names{"held", "violated", "skipped", "excused", "inconclusive"};
};

/// What the alarm (error_alarm.h) says of the elements of some outputs; merging is associative and commutative.
struct Alarm {
  std::int64_t elements = 0;   ///< held against the probabilistic bound
  std::int64_t beyond = 0;     ///< of those, with an error above it for certain
  std::int64_t uncovered = 0;  ///< further elements, of which the probabilistic bound says nothing
  double worst = 0;            ///< largest error over the probabilistic bound; inf for NaN found or nothing allowed

  void merge(const Alarm& other) {
    elements += other.elements, beyond += other.beyond, uncovered += other.uncovered;
    worst = std::max(worst, other.worst);
  }
  [[nodiscard]] bool operator==(const Alarm&) const = default;
};

/// The extents of a case that the oracle judged, or of several the largest of each by itself: no one case need have had
/// them all. Merging is associative and commutative.
struct Reach {
  std::int64_t queries = 0, keys = 0, dk = 0, dv = 0, heads = 0, kv_heads = 0, batch = 0;

  void merge(const Reach& other) {
    queries = std::max(queries, other.queries), keys = std::max(keys, other.keys);
    dk = std::max(dk, other.dk), dv = std::max(dv, other.dv);
    heads = std::max(heads, other.heads), kv_heads = std::max(kv_heads, other.kv_heads);
    batch = std::max(batch, other.batch);
  }
  [[nodiscard]] bool operator==(const Reach&) const = default;
};

/// How a kernel violated what was asked of it. Shrinking keeps it, and findings are sorted by it.
enum class Violation {
  none,        ///< the verdict is another than violated
  bound,       ///< an element of out farther from the exact value than its bound allows
  not_finite,  ///< NaN or Inf for an element that must be finite
  lse,         ///< a log-sum-exp beyond its bound, or not finite
  bits,        ///< other bits where the kernel claims the same
  shape,       ///< outputs of different shapes where a law wants the same
  rejected,    ///< a valid case was refused
  failed,      ///< the kernel reported an error or threw, left elements unwritten or wrote beside them
  died,        ///< its process ended
  timed_out,   ///< no reply within the time limit
  malformed    ///< a reply of another shape or dtype, or none at all
};
template <>
struct Words<Violation> {
  static constexpr std::array<std::string_view, 11> names{
      "none", "bound", "non-finite", "lse", "bits", "shape", "rejected", "failed", "died", "timed-out", "malformed"};
};

enum class Gradient;  // problem/problem.h

/// An element of an output, or of a gradient, that a verdict is about.
struct ComparedElement {
  std::shared_ptr<const Case> problem;  ///< what the kernel was given
  std::int64_t element = -1;            ///< flat row-major index into its out or its gradient
  double found = 0.0;
  std::optional<Gradient> gradient{};  ///< nothing: out
};

/// Verdict of one property on one case.
struct Verdict {
  Outcome outcome = Outcome::held;
  Violation violation = Violation::none;
  double utilisation = 0.0;   ///< worst error / allowed over the judged elements; 0 when both are 0; inf for NaN found
  double error = 0.0;         ///< absolute error at that element, an upper end of its enclosure
  double allowed = 0.0;       ///< the bound there
  std::int64_t element = -1;  ///< flat row-major index into out of that element; -1: none
  int level = 0;              ///< deepest oracle level used: 0 none, 1 double, 2 double-double, 3 balls
  /// Elements whose bits agreed, and that were compared, where a law speaks of bits but the kernel claims none:
  /// reported, never judged. Both 0 elsewhere.
  std::int64_t bits_agreed = 0, bits_compared = 0;
  std::string reason{};  ///< one line for anything but held: index, found, interval that would have been accepted
  /// Beside the verdict, which it never changes; nothing where none was asked for or the property raises none.
  std::optional<Alarm> alarm{};
  /// How large the errors of the case were, in its own dtype; null where they were not measured.
  std::shared_ptr<const ErrorSample> errors{};
  /// The elements that a violated verdict is about: two of outputs that a law found too far apart, or one of an output
  /// or a gradient that is off by itself; a side that is more than one element (a sum over heads) is not among them.
  std::vector<ComparedElement> compared{};
  /// Rows of the output that the oracle looked at, and rows that there are: fewer where a sample was asked for. Both 0
  /// where it was not asked.
  std::int64_t rows_judged = 0, rows = 0;
  /// Of what the oracle judged: an element of an output was held or violated against the certified exact answer.
  /// Nothing where a law compared outputs with each other, or with less than the exact answer.
  std::optional<Reach> reach{};
};

}  // namespace attest
