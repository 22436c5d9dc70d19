#include "core/oracle/rows/double_double_row.h"

#include <algorithm>
#include <utility>

#include "core/bound/loops/inner_loops.h"
#include "core/support/room.h"

// Why the unit is 2^-89. With u = 2^-53, and room to spare for every error of these loops to be twice as large:
//   q.k          (dk+4)^2/2 u^2 X_j by inner_loops.h, times tau, at most (dk+4) 2^-90 tau X_j while dk <= 10^5;
//   s_j          scale and bias each a few u^2 of tau X_j and |b_j|, s_j - m a few u^2 of |s_j| + |m|, of which
//                |m| <= |s_j| + (m - s_j): below 2^-100 (tau X_j + |b_j| + (m - s_j));
//   tanh         of z = t/C by w = e^(-2z): (1 - w)/(1 + w) takes at most half of w's 2^-86, and z's few u^2 times
//                2z w, below 1; so C tanh(z) is below 2^-85 C off beside what t is, which a slope of at most 1 passes
//                on: 16 2^-89 C, which key_terms adds.
//   exp          2^-86, and underflow of products, tau dk 2^-1070 <= 2^-100: below 16 2^-89. These three are what
//                key_terms takes a unit to mean.
//   sums         (n+4)^2/2 u^2 of numerator and denominator each, the quotient a few u^2: below (2n+8) 2^-89 of
//                sum alpha_j |v_j| while n <= 10^5.
//   low parts    of q and of k, each at most u of its high part: two products in double and what is added, and the
//                product of both, which is left out: below 8 (dk+4) u^2 X_j; of values 8 (n+4) u^2 of sum w_j |v_j|.
//                2^-90 is 2^16 u^2 and (dk+4)/2 below 50,003, which leaves room for them.
//   underflow    a weight below exp(-708) is 0, any other is within 2^-1074; each product with a value loses at most
//                2^-1070, the sum of weights is at least 1. That is what element_bounds adds for any unit.
namespace attest::detail {

void DoubleDoubleRow::add_low_products(const Head& head, const Row& row, const LowParts& low, std::int64_t front,
                                       std::int64_t count) {
  const std::int64_t before = front * panel_width;
  for (const auto& [q, panels] : {std::pair(row.q, low.panels), std::pair(low.q, head.panels.data())}) {
    fit(part_, count * panel_width);
    inner_loops().plain_dots(q, head.dk, panels + before * head.dk, count, part_.data());
    for (std::int64_t j = 0; j < count * panel_width; ++j)
      x_low_[static_cast<std::size_t>(before + j)] += part_[static_cast<std::size_t>(j)];
  }
}

void DoubleDoubleRow::add_low_values(const Head& head, const Row& row, const LowParts& low) {
  fit(part_, head.stride);
  inner_loops().combine(w_.data(), row.keys.index, row.n, low.v, head.stride, part_.data());
  for (std::int64_t e = 0; e < head.stride; ++e) {
    const auto at = static_cast<std::size_t>(e);
    const DoubleDouble sum = two_sum(o[at], o_low[at] + part_[at]);
    o[at] = sum.high, o_low[at] = sum.low;
  }
}

bool DoubleDoubleRow::evaluate(const Head& head, const Row& row, const LowParts* low) {
  const std::int64_t n = row.n;
  const double tau = head.scale;
  if (n > most_terms_in_pairs || head.dk > most_terms_in_pairs || !(std::fabs(tau) <= 0x1p900)) return false;
  const std::int64_t room = padded(head.places());
  for (auto* array : {&x_, &x_low_, &s, &s_low_, &t, &w_, &w_low_}) fit(*array, room);
  if (head.softcap > 0) fit(capped, room);
  for (auto* array : {&o, &o_low}) fit(*array, head.stride);

  const InnerLoops& loops = inner_loops();
  const std::int64_t* index = row.all_visible ? nullptr : row.index.data();
  const std::int64_t keys = n - (row.has_sink ? 1 : 0);
  const std::int64_t first = index && keys > 0 ? index[0] : 0;
  const std::int64_t last = keys == 0 ? 0 : index ? index[keys - 1] + 1 : head.keys;
  const std::int64_t front = first / panel_width, before = front * panel_width;
  loops.dots_dd(row.q, head.dk, head.panels.data() + before * head.dk, (last + panel_width - 1) / panel_width - front,
                x_.data() + before, x_low_.data() + before);
  if (low) add_low_products(head, row, *low, front, (last + panel_width - 1) / panel_width - front);
  if (head.places() > head.keys)
    x_[static_cast<std::size_t>(head.keys)] = x_low_[static_cast<std::size_t>(head.keys)] = 0;
  const bool pre = head.convention == MaskConvention::pre_scale;
  DoubleDouble m;
  bool finite = true;
  for (std::int64_t j = 0; j < n; ++j) {
    const auto to = static_cast<std::size_t>(j);
    const auto from = static_cast<std::size_t>(index ? index[j] : j);
    const DoubleDouble p = two_product(tau, x_[from]), score = two_sum(p.high, p.low + tau * x_low_[from]);
    s[to] = t[to] = score.high;
    s_low_[to] = score.low;
  }
  if (head.softcap > 0) cap_scores(head.softcap, n);
  for (std::int64_t j = 0; j < n; ++j) {
    const auto to = static_cast<std::size_t>(j);
    const auto from = static_cast<std::size_t>(index ? index[j] : j);
    DoubleDouble score{s[to], s_low_[to]};
    if (row.keys.b || row.keys.slopes) {
      const double value = row.keys.b ? row.mask[from] : 0.0;
      // A mask of the largest double overflows Dekker's halves.
      const DoubleDouble bias = pre ? DoubleDouble{tau * value, std::fma(tau, value, -(tau * value))}
                                    : two_sum(value, row.keys.slopes ? row.slopes[to] : 0.0);
      const DoubleDouble sum = two_sum(score.high, bias.high);
      score = two_sum(sum.high, sum.low + (score.low + bias.low));
    }
    if (j == keys) score = {head.sink, 0};
    finite = finite && std::isfinite(score.high) && std::isfinite(score.low);
    s[to] = score.high;
    s_low_[to] = score.low;
    if (j == 0 || score.high > m.high || (score.high == m.high && score.low > m.low)) m = score;
  }
  if (!finite) return false;

  for (std::int64_t j = 0; j < n; ++j) {
    const auto at = static_cast<std::size_t>(j);
    const DoubleDouble y = two_sum(s[at], -m.high);
    const DoubleDouble exponent = two_sum(y.high, y.low + (s_low_[at] - m.low));
    w_[at] = exponent.high;
    w_low_[at] = exponent.low;
  }
  // Beyond the range of a double the difference is -Inf with a low part of NaN: a weight of 0 all the same.
  for (std::int64_t j = n; j < padded(n); ++j)
    w_[static_cast<std::size_t>(j)] = w_low_[static_cast<std::size_t>(j)] = 0;
  loops.exp_dd(w_.data(), w_low_.data(), n);
  double sum = 0, rest = 0;
  for (std::int64_t j = 0; j < n; ++j) {
    const DoubleDouble next = two_sum(sum, w_[static_cast<std::size_t>(j)]);
    sum = next.high;
    rest += next.low + w_low_[static_cast<std::size_t>(j)];
  }
  sum_ = two_sum(sum, rest);
  reference = m;

  loops.combine_dd(w_.data(), w_low_.data(), row.keys.index, n, head.v.data(), head.stride, o.data(), o_low.data());
  if (low) add_low_values(head, row, *low);
  for (std::int64_t e = 0; e < head.dv; ++e) {
    const auto at = static_cast<std::size_t>(e);
    const DoubleDouble value = quotient_of({o[at], o_low[at]}, sum_);
    o[at] = value.high;
    o_low[at] = value.low;
    finite = finite && std::isfinite(value.high) && std::isfinite(value.low);
  }

  // log(sum) = l + log(1 + v), v = sum exp(-l) - 1 below 2^-50: v^3 / 3 is nothing.
  const double l = std::log(sum_.high);
  double z[padding] = {-l}, z_low[padding] = {};
  loops.exp_dd(z, z_low, 1);
  const DoubleDouble one = two_product(z[0], sum_.high);
  const double v = (one.high - 1) + (one.low + (z[0] * sum_.low + z_low[0] * sum_.high));
  const DoubleDouble whole = two_sum(m.high, l);
  lse = two_sum(whole.high, whole.low + (m.low + (v - v * v / 2)));
  return finite && std::isfinite(lse.high) && std::isfinite(lse.low);
}

void DoubleDoubleRow::cap_scores(double cap, std::int64_t n) {
  for (std::int64_t j = 0; j < n; ++j) {
    const auto at = static_cast<std::size_t>(j);
    const DoubleDouble z = quotient_of({s[at], s_low_[at]}, {cap, 0});
    const double sign = z.high < 0 ? 2 : -2;
    w_[at] = sign * z.high;
    w_low_[at] = sign * z.low;
  }
  for (std::int64_t j = n; j < padded(n); ++j)
    w_[static_cast<std::size_t>(j)] = w_low_[static_cast<std::size_t>(j)] = 0;
  inner_loops().exp_dd(w_.data(), w_low_.data(), n);
  for (std::int64_t j = 0; j < n; ++j) {
    const auto at = static_cast<std::size_t>(j);
    const DoubleDouble over = two_sum(1, -w_[at]), under = two_sum(1, w_[at]);
    const DoubleDouble y = quotient_of({over.high, over.low - w_low_[at]}, {under.high, under.low + w_low_[at]});
    const DoubleDouble size = product_of({cap, 0}, y);
    const double sign = s[at] < 0 ? -1 : 1;
    capped[at] = s[at] = sign * size.high;
    s_low_[at] = sign * size.low;
  }
}

void DoubleDoubleRow::attach(RowKeys& keys, RowValues& values) {
  const auto n = static_cast<std::size_t>(keys.n);
  for (auto* array : {&la, &alpha}) fit(*array, padded(keys.n));
  const double log_sum = std::log(sum_.high);
  for (std::size_t j = 0; j < n; ++j) {
    const double exponent = (s[j] - reference.high) + (s_low_[j] - reference.low);
    la[j] = std::min(exponent - log_sum, 0.0);
    alpha[j] = w_[j] / sum_.high;
  }
  keys.s = s.data(), keys.t = t.data(), keys.capped = keys.capped ? capped.data() : nullptr;
  keys.la = la.data(), keys.alpha = alpha.data();
  keys.lse = lse.high;
  keys.unit = double_double_unit;
  values.o_low = o_low.data();
}

}  // namespace attest::detail
