// The errors of one case, element by element, as the statistics want them (error_statistics.h).
#pragma once

#include <memory>

#include "attest/dtype.h"
#include "attest/error_statistics.h"
#include "row_oracle.h"
#include "tally.h"

namespace attest::detail {

/// Collects the judged elements of out; one per case.
class ErrorMeter {
 public:
  explicit ErrorMeter(DType output) : format_(format_of(output)), sample_(std::make_shared<ErrorSample>()) {}
  /// What the mask does in the row that was just started.
  void note_row(const Head& head, const Row& row);
  /// An element that was held or violated, of the row that the oracle is at; k is its column.
  void add(const RowOracle& oracle, std::int64_t k, double found, const Decision& decision);
  /// What was collected; the meter is done with.
  [[nodiscard]] std::shared_ptr<const ErrorSample> take(std::int64_t keys);

 private:
  /// Notes how the worst element so far is conditioned.
  void describe(const RowOracle& oracle, std::int64_t k, double exact, const Decision& decision);

  const Format& format_;
  bool bias_ = false, hides_ = false;
  std::shared_ptr<ErrorSample> sample_;
};

}  // namespace attest::detail
