// The errors of one case, element by element, as the statistics want them (error_statistics.h).
#pragma once

#include <memory>
#include <optional>

#include "core/measure/error_statistics.h"
#include "core/oracle/rows/row_oracle.h"
#include "core/oracle/tally.h"
#include "core/value/dtype.h"

namespace attest::detail {

/// Collects the judged elements of out, in any order of rows; one per case. Of equals the first of the output is the
/// worst.
class ErrorMeter {
 public:
  /// `unit`: whose unit roundoff relative tolerances are counted in, where that is not the output's own.
  explicit ErrorMeter(DType output, std::optional<DType> unit = {})
      : format_(format_of(output)),
        unit_(format_of(unit.value_or(output)).unit),
        sample_(std::make_shared<ErrorSample>()) {}
  /// What the mask does in the row that was just started.
  void note_row(const Head& head, const Row& row);
  void note(bool bias, bool hides) { bias_ = bias_ || bias, hides_ = hides_ || hides; }
  /// An element that was held or violated: a flat index into out, and its column k.
  void add(std::int64_t element, std::int64_t k, double found, double exact, const Decision& decision);
  /// After the elements of a row, of which the oracle still is; nullptr: it never was, and of a worst element among
  /// them no more is known than how bad it is.
  void end_row(const RowOracle* oracle);
  /// One of a sum whose terms' sizes add up to `size`, of which no more is known.
  void add_sum(std::int64_t element, double found, double exact, const Decision& decision, double size);
  /// What was collected; the meter is done with.
  [[nodiscard]] std::shared_ptr<const ErrorSample> take(std::int64_t keys);

 private:
  /// Notes how the worst element so far is conditioned.
  void describe(const RowOracle& oracle, std::int64_t k, double exact, const Decision& decision);
  void describe_size(double sum, double exact, const Decision& decision);

  const Format& format_;
  double unit_;
  /// The worst element so far where it is of the row at hand: what is known of it is noted once, at the row's end.
  struct Worst {
    std::int64_t k = -1;  ///< -1: it is of another row
    double exact = 0;
    Decision decision;
  };
  void take_worst(double utilisation, std::int64_t element, const Worst& worst);

  bool bias_ = false, hides_ = false;
  Worst worst_;
  double worst_utilisation_ = -1;
  std::int64_t worst_element_ = 0;
  // Of the row at hand, and of those before it: sums that are the same in any order of rows.
  double row_bias_ = 0, row_squares_ = 0;
  FixedSum sum_bias_, sum_squares_;
  std::shared_ptr<ErrorSample> sample_;
};

}  // namespace attest::detail
