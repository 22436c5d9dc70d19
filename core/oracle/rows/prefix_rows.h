// Rows of one query that see the first n keys each, a causal form's: one pass over the keys for all of them, by the
// fixed-centre bound of error-bounds.md 5.1.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "core/bound/prefix_bound.h"
#include "core/oracle/rows/head.h"

namespace attest::detail {

/// One query after another; reused to spare the heap. One thread's.
class PrefixRows {
 public:
  /// May the rows of a head of which no mask hides anything be looked at as prefixes? Only where double decides them.
  [[nodiscard]] static bool worth(const Head& head, const Profile& p);

  /// Takes up the query of row `rows`[0], for prefixes of `least` to `most` keys. The other rows are those that are
  /// taken up next. False, and each row is to be evaluated by itself, where a query or key is out of the ordinary.
  [[nodiscard]] bool start(const Head& head, std::span<const std::int64_t> rows, std::int64_t least, std::int64_t most,
                           const Profile& p, bool ignores_dead_values, bool want_lse);
  /// Goes on to the first n keys, no fewer than before, and bounds them. False where the row of these keys is to be
  /// evaluated by itself: something is not certain, or a bound may be more than twice as large as its own.
  [[nodiscard]] bool go_to(std::int64_t n);

  /// Per column, of the prefix gone to: the exact value to within `certificate`, and the bound, both padded.
  [[nodiscard]] const double* value() const { return value_.data(); }
  [[nodiscard]] const double* certificate() const { return certificate_.data(); }
  [[nodiscard]] const double* allowed() const { return allowed_.data(); }
  [[nodiscard]] double lse() const;
  [[nodiscard]] double lse_certificate() const;
  [[nodiscard]] double lse_allowed() const { return terms_.lse_allowed; }
  [[nodiscard]] bool finite_required() const { return terms_.finite_required; }

 private:
  /// Are the products exact of every prefix of so many keys, of none, or of the first ones, which deserve a sharper
  /// bound?
  void find_exact_prefixes(std::int64_t least, std::int64_t most);
  void add_up_to(std::int64_t n);
  /// Weights of the keys [done_, to), which all fit the reference.
  void weigh(std::int64_t to);
  /// Another reference for the weights.
  void rescale(double reference);
  /// Keys that have come to carry less than u_a are listed as small.
  void part_by_weight();
  /// Values and the scores' errors are counted from the present prefix's own.
  void recentre();
  /// Bounds the prefix gone to.
  [[nodiscard]] bool bound();
  [[nodiscard]] double* column(std::size_t which) { return columns_.data() + which * width_; }

  const Head* head_ = nullptr;
  const Profile* profile_ = nullptr;
  Row row_;
  BoundScratch scratch_;
  PrefixKeys keys_;
  PrefixSums sums_;
  PrefixTerms terms_;
  PrefixColumns at_{};
  std::size_t width_ = 0;  ///< of an array over columns
  double most_abs_sum_ = 0;
  double reference_ = 0;
  double edge_ = 0;               ///< weights above it count as big
  double parted_at_ = 0;          ///< the sum of weights when that was settled
  double score_sum_ = 0;          ///< sum w s
  std::int64_t exact_until_ = 0;  ///< prefixes of no more keys have exact products, though not all have
  std::int64_t done_ = 0;         ///< keys in the sums
  std::int64_t until_ = 0;        ///< keys that keys_ was begun for
  int in_vain_ = 0;               ///< how often another centre was no better
  std::int64_t centred_ = -1;     ///< the prefix that is the centre
  std::vector<double> w_, we_, ws_, columns_;
  std::vector<std::int64_t> big_;
  std::vector<double> value_, certificate_, allowed_;
};

}  // namespace attest::detail
