// Journal: the append-only record of a run (JSON lines), its canonical form, and the writer.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "attest/verdict.h"

namespace attest {

/// Counts and the worst case over a range of k; merging is associative and commutative, and every figure is an integer,
/// a maximum or a count, so that the order of merging cannot change a byte.
struct Tally {
  std::int64_t held = 0, violated = 0, skipped = 0, excused = 0, inconclusive = 0;
  double worst_utilisation = 0.0;      ///< over held and violated cases
  std::int64_t worst_k = -1;           ///< the smallest k that attains it
  std::int64_t level[4] = {0, 0, 0, 0};  ///< cases by deepest oracle level
  /// histogram[i] counts judged cases with utilisation in [2^((i-56)/4), 2^((i-55)/4)), clamped at both ends; the first
  /// bin also holds 0. 64 bins: quarter octaves from 2^-14 to 2^2.
  std::array<std::int64_t, 64> histogram{};
  std::map<std::string, std::int64_t> reasons;  ///< of skipped and excused cases

  void add(std::int64_t k, const Verdict& verdict);
  void merge(const Tally& other);
};

/// A finished batch: k in [first_k, last_k) of (property, kernel, dtype).
struct BatchRecord {
  std::string property, kernel, dtype;
  std::int64_t first_k = 0, last_k = 0;
  Tally tally;
};

/// A violated verdict with its shrunk case.
struct FindingRecord {
  std::string property, kernel, dtype;
  std::int64_t k = 0;
  std::string kind;    ///< "bound", "non-finite", "not-repeatable", "died", "timed-out", "malformed", "rejected", …
  std::string case_file;  ///< relative to the run's folder
  Verdict verdict;
};

}  // namespace attest
