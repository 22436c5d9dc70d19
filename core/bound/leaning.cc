#include "core/bound/leaning.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace attest::detail {

void mark_crowds(const std::vector<Ranked>& ranked, double wide, const double* weights,
                 std::vector<unsigned char>& crowded) {
  const double count = static_cast<double>(ranked.size()), narrow = wide / 16;
  const auto groups = [&](double width, auto&& is_crowd) {
    for (std::size_t begin = 0, end = 0; begin < ranked.size(); begin = end) {
      double weight = 0;
      for (end = begin; end < ranked.size() && ranked[end].first - ranked[begin].first <= width; ++end)
        weight += weights[ranked[end].second];
      if (end - begin < 2 || !is_crowd(begin, end, weight)) continue;
      for (std::size_t i = begin; i < end; ++i) crowded[static_cast<std::size_t>(ranked[i].second)] = 1;
    }
  };
  // Where they spread over many such windows, their last bits at the scale of the sum are as good as random.
  groups(wide, [&](std::size_t begin, std::size_t end, double weight) {
    return 16 * static_cast<double>(end - begin) > count || 16 * weight > 1;
  });
  // A few distinct ones, each many times over, spread without being random: clumps in their neighbourhood.
  groups(narrow, [&](std::size_t begin, std::size_t end, double) {
    const double low = ranked[begin].first - wide / 2, high = ranked[end - 1].first + wide / 2;
    const auto from = std::lower_bound(ranked.begin(), ranked.end(), Ranked{low, 0});
    const auto to = std::upper_bound(from, ranked.end(), Ranked{high, std::numeric_limits<std::int64_t>::max()});
    return end - begin >= 4 && 4 * static_cast<std::ptrdiff_t>(end - begin) > to - from;
  });
}

double leaning_products(const double* a, const double* b, std::int64_t count, double least, double most) {
  const auto part = [&](std::int64_t c) {
    const double product = std::fabs(a[c] * b[c]), at_most = product < most ? product : most;
    return product < least ? at_most : 0.0;
  };
  double parts[4] = {};
  std::int64_t c = 0;
  for (; c + 4 <= count; c += 4)
    for (std::int64_t lane = 0; lane < 4; ++lane) parts[lane] += part(c + lane);
  for (; c < count; ++c) parts[0] += part(c);
  return (parts[0] + parts[1]) + (parts[2] + parts[3]);
}

double reach_of(const Profile& p, const RowKeys& row, std::int64_t j) {
  return std::fabs(p.of.scale) * row.size[j] + (p.bias_in_sum && row.b ? std::fabs(row.b[j]) : 0.0);
}

std::uint64_t digits_of(double x) {
  return x == 0 ? ~std::uint64_t{0} : std::bit_cast<std::uint64_t>(x) & 0xfffffffffffffU;
}

void EqualDigits::start(std::size_t count) {
  table_.assign(std::bit_ceil(2 * count), -1);
}

std::int64_t EqualDigits::put(std::int64_t one, const double* numbers) {
  const std::size_t last = table_.size() - 1;
  const std::uint64_t bits = digits_of(numbers[one]);
  std::size_t at = (bits * 0x9e3779b97f4a7c15U) >> 20U & last;
  while (table_[at] >= 0 && digits_of(numbers[table_[at]]) != bits) at = (at + 1) & last;
  if (table_[at] >= 0) return table_[at];
  table_[at] = one;
  return -1;
}

}  // namespace attest::detail
