// The weights of a kernel row by row, and what laws that speak of scores make of them: which keys a row sees, what a
// weight may stand for, and answers of which the scores are only known to within something.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/kernel/kernel_under_test.h"
#include "core/measure/verdict.h"
#include "core/problem/case.h"
#include "core/support/infinity.h"
#include "core/value/dtype.h"
#include "properties/language/not_judged.h"
#include "properties/language/numbers.h"
#include "properties/language/result.h"
#include "properties/language/weights.h"

namespace attest {

/// A row of the output: batch entry, head and query.
struct RowPlace {
  std::int64_t b, h, i;
};
[[nodiscard]] RowPlace place_of(const Case& c, std::int64_t row);
[[nodiscard]] std::int64_t rows_of(const Case& c);

/// A key that a row sees, and its scaled product with the row, before a cap.
struct SeenKey {
  std::int64_t j = 0;
  Score product{};
  double added = 0;  ///< by the mask and the slope
};
[[nodiscard]] std::vector<SeenKey> seen_keys(const Case& c, std::int64_t row);

/// The weights of a kernel by row and key.
class KeyWeights {
 public:
  KeyWeights(Kernel& kernel, const Case& c);
  /// How far the weight may be off; infinite where nothing says.
  [[nodiscard]] double allowed(std::int64_t row, std::int64_t j) const;
  [[nodiscard]] double value(std::int64_t row, std::int64_t j) const { return block_of(j).value(element(row, j)); }
  [[nodiscard]] Expression formal(std::int64_t row, std::int64_t j) const {
    return block_of(j).formal(element(row, j));
  }
  /// NaN or an infinity among what must be finite of a row that sees these keys.
  [[nodiscard]] std::optional<Verdict> not_finite(std::int64_t row, const std::vector<SeenKey>& keys) const;

 private:
  [[nodiscard]] const Numbers& block_of(std::int64_t j) const {
    return blocks_[static_cast<std::size_t>(j / read_.width)];
  }
  [[nodiscard]] std::int64_t element(std::int64_t row, std::int64_t j) const {
    return row * read_.width + j % read_.width;
  }
  WeightBlocks read_;
  std::vector<Numbers> blocks_;
};

/// At most and at least what a weight may stand for.
struct Weight {
  double least = 0, most = infinity;
};
[[nodiscard]] Weight weight_of(const KeyWeights& weights, std::int64_t row, std::int64_t j);

/// Every right kernel's errors leave this much of a product or quotient of what it may have meant.
inline constexpr double rounded = 1 + 0x1p-40;

/// What is beyond all that weights may stand for, by so much.
[[nodiscard]] Verdict weights_apart(double error, std::string reason);

/// judge(row, its keys) of each row, which says nothing of one that it has nothing to hold against. Excused where that
/// is every row.
template <class Judge>
[[nodiscard]] Verdict each_row(const Case& c, Judge&& judge) {
  bool judged = false;
  for (std::int64_t row = 0; row < rows_of(c); ++row) {
    const std::vector<SeenKey> keys = seen_keys(c, row);
    if (keys.empty()) continue;
    const std::optional<Verdict> verdict = judge(row, keys);
    if (!verdict) continue;
    if (verdict->outcome == Outcome::violated) return *verdict;
    judged = true;
  }
  if (!judged && rows_of(c) > 0) return excused("no row has weights with a bound that tells them apart");
  return {};
}

/// The widest format that the kernel takes an additive mask in; in a proof double.
[[nodiscard]] DType widest_mask(const Kernel& kernel, const Case& c);

/// The largest entry of a mask in that format that the kernel does not take for an infinity: it may convert masks to a
/// narrower one.
[[nodiscard]] double largest_entry(const Kernel& kernel, const Case& c);

/// By how much a mean of values of this range moves at the most where each score does by up to `delta`.
[[nodiscard]] long double moved_mean(double range, double delta);

/// The largest difference of two values that a row's output is a mean of, per column: of those that it sees, 0 among
/// them beside a sink or dropout, and as dropout multiplies them.
[[nodiscard]] std::vector<double> ranges_of(const Case& c, std::int64_t row, const std::vector<SeenKey>& keys);

using OfRow = std::function<double(std::int64_t row, const std::vector<SeenKey>& keys)>;
/// Two answers of which each row's scores are only known to be within delta(row, its keys) of each other's, but that
/// those of the right one are all larger by shift(row, its keys), as its log-sum-exp is then; no shift: by nothing.
/// Rows whose delta is above `most` are not compared.
[[nodiscard]] Verdict agree_to_scores(const Case& c, const Result& left, const Result& right, double most,
                                      const OfRow& delta, const OfRow& shift = {});

}  // namespace attest
