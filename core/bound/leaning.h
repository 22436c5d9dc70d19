// Sums whose rounding errors have a reason to lean to one side, so that they do not average out (error_alarm.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/bound/error_bound.h"
#include "core/bound/row_bound.h"

namespace attest::detail {

/// A summand counts as swallowed below this many units of its sum.
inline constexpr double swallowed = 8;

/// A number that is compared, and what it is of.
using Ranked = std::pair<double, std::int64_t>;

/// Of `ranked`, ascending numbers of which those within `wide` of each other agree to a few units of a sum: sets
/// `crowded` of those that stand so close together that their last bits, at the scale of the sum's, are the same.
/// weights[i]: of the number of i, 1 in all.
void mark_crowds(const std::vector<Ranked>& ranked, double wide, const double* weights,
                 std::vector<unsigned char>& crowded);

/// Sum of the products |a_c b_c| below `least`, each `most` at the most.
[[nodiscard]] double leaning_products(const double* a, const double* b, std::int64_t count, double least, double most);

/// Where the sum q.k begins and how large it may become, in units of the score.
[[nodiscard]] double reach_of(const Profile& p, const RowKeys& row, std::int64_t j);

/// What a number shares with its multiples by -1 and powers of two, as bits; subnormal ones with themselves alone.
[[nodiscard]] std::uint64_t digits_of(double x);

/// Those numbers that share their digits with another, in reused memory.
class EqualDigits {
 public:
  /// same(a, b): the numbers of a and b do, a before b among those that were added.
  template <class Same>
  void find(const std::vector<std::int64_t>& which, const double* numbers, Same&& same) {
    start(which.size());
    for (const std::int64_t one : which)
      if (const std::int64_t other = put(one, numbers); other >= 0) same(other, one);
  }

 private:
  void start(std::size_t count);
  /// What is there already with its digits; -1: nothing.
  std::int64_t put(std::int64_t one, const double* numbers);
  /// Open addressing, half of it empty: a place holds one of them, or -1.
  std::vector<std::int64_t> table_;
};

}  // namespace attest::detail
