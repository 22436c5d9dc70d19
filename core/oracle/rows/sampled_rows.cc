#include "core/oracle/rows/sampled_rows.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <utility>

namespace attest::detail {
namespace {

/// A set of rows that is filled up to a number of them.
class Sample {
 public:
  explicit Sample(std::int64_t rows) : taken_(static_cast<std::size_t>(rows), false) {}

  void take(std::int64_t row, std::int64_t most) {
    if (row < 0 || row >= static_cast<std::int64_t>(taken_.size()) || count_ >= most) return;
    if (taken_[static_cast<std::size_t>(row)]) return;
    taken_[static_cast<std::size_t>(row)] = true;
    ++count_;
  }
  [[nodiscard]] std::int64_t count() const { return count_; }
  [[nodiscard]] bool has(std::int64_t row) const { return taken_[static_cast<std::size_t>(row)]; }

 private:
  std::vector<bool> taken_;
  std::int64_t count_ = 0;
};

/// Rows in the order of |q|, an estimate of how far the scores of a row are apart. NaN is as large as can be.
std::vector<std::int64_t> by_size(const Head& head) {
  std::vector<double> size(static_cast<std::size_t>(head.queries)), q(static_cast<std::size_t>(head.dk));
  for (std::int64_t i = 0; i < head.queries; ++i) {
    head.query(i, q.data());
    const double square = std::inner_product(q.begin(), q.end(), q.begin(), 0.0);
    size[static_cast<std::size_t>(i)] = std::isnan(square) ? HUGE_VAL : square;
  }
  std::vector<std::int64_t> rows(size.size());
  std::iota(rows.begin(), rows.end(), 0);
  std::ranges::sort(rows, {}, [&](std::int64_t i) { return std::pair(size[static_cast<std::size_t>(i)], i); });
  return rows;
}

}  // namespace

void sample_rows(const Head& head, std::int64_t count, std::uint64_t seed, std::vector<std::int64_t>& rows) {
  rows.clear();
  const std::int64_t M = head.queries;
  if (count >= M) {
    rows.resize(static_cast<std::size_t>(M));
    std::iota(rows.begin(), rows.end(), 0);
    return;
  }
  Sample sample(M);
  sample.take(M - 1, count), sample.take(0, count);
  std::mt19937_64 random(seed);
  const auto drawn = [&](std::int64_t below) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(below));
  };
  // A quarter of them at edges, of large tiles as of small ones, each at a multiple of its own.
  for (std::int64_t tries = 0; sample.count() < count / 4 && tries < count; ++tries) {
    const std::int64_t tile = std::int64_t{16} << (tries % 5);
    const std::int64_t edge = tile * (1 + drawn(std::max<std::int64_t>(1, M / tile)));
    for (const std::int64_t row : {edge - 1, edge, edge + 1}) sample.take(row, count);
  }
  const std::vector<std::int64_t> sized = by_size(head);
  const std::int64_t extremes = sample.count() + (count - sample.count()) / 3;
  for (std::int64_t i = 0; i < M && sample.count() < extremes; ++i) {
    sample.take(sized[static_cast<std::size_t>(M - 1 - i)], extremes);
    sample.take(sized[static_cast<std::size_t>(i)], extremes);
  }
  while (sample.count() < count) sample.take(drawn(M), count);
  for (std::int64_t i = 0; i < M; ++i)
    if (sample.has(i)) rows.push_back(i);
}

}  // namespace attest::detail
