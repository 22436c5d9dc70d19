// Rows of a head that wait until there are some, so that what they add to the sums of keys is added up at once: those
// sums are more than a processor keeps near.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/bound/loops/inner_loops.h"
#include "core/oracle/gradients/gradient_sums.h"

namespace attest::detail {

/// What a row adds to sums of keys, by its q and by its gradient by the output: value, error and size, [3][keys].
struct KeptRow {
  std::int64_t pitch;  ///< from the values to the errors, and to the sizes
  double *of_q, *of_g;
  void set(double* of, std::int64_t j, double value, double error, double size) const {
    of[j] = value, of[pitch + j] = error, of[2 * pitch + j] = size;
  }
};

class KeptRows {
 public:
  void start(std::int64_t keys, std::int64_t dk, std::int64_t dv);
  /// A row that adds nothing yet.
  [[nodiscard]] KeptRow add(const double* q, const double* g);
  /// The last one adds to keys from `first` to before `last` alone.
  void reach(std::int64_t first, std::int64_t last) { first_ = std::min(first_, first), last_ = std::max(last_, last); }
  [[nodiscard]] bool full() const { return count_ == most; }
  void flush(GradientSumsHere& k, GradientSumsHere& v);

 private:
  static constexpr std::int64_t most = 16;
  void empty();
  [[nodiscard]] GradientTerms terms(const std::vector<double>& all, std::int64_t j) const {
    const double* const from = all.data() + j;
    return {from, from + pitch_, from + 2 * pitch_, 3 * pitch_};
  }

  std::int64_t keys_ = 0, pitch_ = 0, dk_ = 0, dv_ = 0, count_ = 0, first_ = 0, last_ = 0;
  std::vector<double> of_q_, of_g_, q_, g_;
};

}  // namespace attest::detail
