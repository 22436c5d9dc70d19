#include "core/oracle/rows/exactness.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace attest::detail {
namespace {

constexpr int of_zero = 1 << 20;

/// Exponent of the lowest set bit: the largest e such that x is a multiple of 2^e. of_zero for 0.
int lowest_bit(double x) {
  const auto bits = std::bit_cast<std::uint64_t>(x) & 0x7fffffffffffffffu;
  if (bits == 0) return of_zero;
  const int exponent = static_cast<int>(bits >> 52);
  const std::uint64_t fraction = bits & 0xfffffffffffffu;
  const std::uint64_t mantissa = exponent ? fraction | 0x10000000000000u : fraction;
  return std::countr_zero(mantissa) + (exponent ? exponent : 1) - 1075;
}

int lowest_bit(const double* values, std::int64_t n) {
  int least = of_zero;
  for (std::int64_t i = 0; i < n; ++i) least = std::min(least, lowest_bit(values[i]));
  return least;
}

/// Of a kernel that flushes, whether it takes one of them for 0: the products are then others.
bool any_read_as_zero(const double* values, std::int64_t n, double smallest) {
  return std::any_of(values, values + n, [&](double x) { return x != 0 && std::fabs(x) < smallest; });
}

}  // namespace

bool exact_in_any_order(const Head& head, const Row& row, const Profile& p, double most_size) {
  if (p.of.descale.any()) return false;  // of the products with their factors nobody says what is exact
  const double tau = p.of.scale;
  int exponent = 0;
  const bool power_of_two = std::frexp(tau, &exponent) == 0.5;
  if (p.prescaled && (!power_of_two || p.base2)) return false;
  const int q_bit = lowest_bit(row.q, head.dk);
  const std::int64_t first = (row.all_visible ? 0 : row.index[0]) * head.dk;
  const int least = static_cast<int>(std::floor(std::log2(p.score_least_bit)));
  const auto fits = [&](int e) {
    // of_zero: all products are 0.
    return e >= of_zero / 2 || (e >= least && e + exponent - 1 >= least &&
                                most_size <= std::ldexp(1.0, static_cast<int>(p.score_precision) + e));
  };
  if (!fits(q_bit + lowest_bit(head.k.data() + first, head.dk))) return false;  // most rows end here
  int k_bit = of_zero;
  for (std::int64_t j = 0; j < row.n; ++j)
    k_bit = std::min(
        k_bit,
        lowest_bit(head.k.data() + (row.all_visible ? j : row.index[static_cast<std::size_t>(j)]) * head.dk, head.dk));
  if (!fits(q_bit + k_bit)) return false;
  if (p.lam_in > 0) {
    if (any_read_as_zero(row.q, head.dk, p.lam_in)) return false;
    for (std::int64_t j = 0; j < row.n; ++j) {
      const std::int64_t key = row.all_visible ? j : row.index[static_cast<std::size_t>(j)];
      if (any_read_as_zero(head.k.data() + key * head.dk, head.dk, p.lam_in)) return false;
    }
  }
  if (p.prescaled)
    for (std::int64_t c = 0; c < head.dk; ++c) {
      const double scaled = row.q[c] * tau;
      if (round_to(p.prescaled_format, scaled) != scaled || any_read_as_zero(&scaled, 1, p.lam_q)) return false;
    }
  if (p.bias_in_sum) {
    const int e = std::min(q_bit + k_bit, of_zero);
    // Where the sum begins, in units of q.k: at b, or at b/tau where the bias comes after the scale, which is exact for
    // powers of two alone. Where q carries the scale the sum begins at b in units of tau q.k: the same.
    const bool divided = p.of.convention == MaskConvention::post_scale;
    for (std::int64_t j = 0; j < row.n; ++j) {
      const double b = row.mask[static_cast<std::size_t>(row.all_visible ? j : row.index[static_cast<std::size_t>(j)])];
      if (b == 0) continue;
      if (divided && !power_of_two) return false;
      if (divided && !p.prescaled && p.th_tau != 0) return false;  // other constants are folded into the scale
      const double begin = divided ? b / tau : b;
      if (divided && begin * tau != b) return false;
      const bool alone = e >= of_zero / 2;  // all products are 0
      if (alone ? round_to(p.score_format, begin) != begin
                : lowest_bit(begin) < e ||
                      !(most_size + std::fabs(begin) <= std::ldexp(1.0, static_cast<int>(p.score_precision) + e)))
        return false;
    }
  }
  return true;
}

}  // namespace attest::detail
