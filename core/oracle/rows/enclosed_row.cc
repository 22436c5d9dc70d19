#include "core/oracle/rows/enclosed_row.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/bound/loops/inner_loops.h"
#include "core/support/infinity.h"
#include "core/support/room.h"

// What is proved in double_double_row.cc of its loops, here with inputs that err. With u = 2^-53, q, k and v known to
// within e_q, e_k and e_v, X = |q|_1 max |k_jc|, T = tau X and d_j = m - s_j:
//   scores    a product errs by (dk+4) 2^-90 T + tau (e_q |k_j|_1 + |q|_1 e_k + dk e_q e_k), the scale, the mask and
//   the
//             difference to m by 2^-98 (T + |b_j| + d_j); a common error of m is none of the softmax. Their largest is
//             a. It is looked at of keys whose weight is above e^-760; of any other it must be below d_j/32, so that
//             the exact weight is below e^-736 as well, and both are nothing to within 2^-1020.
//   weights   err by rho = e^(a + 2^-80) - 1 of themselves, of which 2^-86 are the exponential's, or by 2^-1020.
//   sums      numerator and denominator (n+8)^2 u^2 each, the quotient by 2^-99; the largest weight is 1.
// So o_k errs by (2 rho + 2 (n+8)^2 u^2 + 2^-99 + 4 n 2^-1020) max |v_jk| + e_v, all of it with second orders, for
// which the factor 1 + 2^-20 stands while rho is below 2^-39, and by 2^-1070 for each product that underflows.
namespace attest::detail {
namespace {

constexpr double vanishing = 760;  ///< nats
constexpr double most_of_scores = 0x1p-40;

double largest(const double* numbers, std::int64_t n) {
  double most = 0;
  for (std::int64_t c = 0; c < n; ++c) most = std::max(most, std::fabs(numbers[c]));
  return most;
}

double sum_of_sizes(const double* numbers, std::int64_t n) {
  double sum = 0;
  for (std::int64_t c = 0; c < n; ++c) sum += std::fabs(numbers[c]);
  return sum * (1 + 0x1p-30);
}

}  // namespace

void EnclosedHead::load(const EnclosedMatrix& k, std::int64_t of_k, std::int64_t dk, const EnclosedMatrix& v,
                        std::int64_t of_v, std::int64_t dv, std::int64_t keys, double scale,
                        MaskConvention convention) {
  head_.keys = keys, head_.dk = dk, head_.dv = dv, head_.stride = (dv + 3) / 4 * 4;
  head_.scale = scale, head_.convention = convention;
  head_.k.resize(static_cast<std::size_t>(keys * dk)), k_low_.resize(head_.k.size());
  head_.v.assign(static_cast<std::size_t>(keys * head_.stride), 0.0), v_low_ = head_.v;
  v_radius_.assign(static_cast<std::size_t>(dv), 0.0);
  most_k_radius_ = 0;
  for (std::int64_t j = 0; j < keys; ++j) {
    const std::int64_t from = j * k.columns + of_k, values = j * v.columns + of_v;
    std::copy_n(k.middle + from, dk, head_.k.data() + j * dk), std::copy_n(k.low + from, dk, k_low_.data() + j * dk);
    std::copy_n(v.middle + values, dv, head_.v.data() + j * head_.stride);
    std::copy_n(v.low + values, dv, v_low_.data() + j * head_.stride);
    most_k_radius_ = std::max(most_k_radius_, largest(k.radius + from, dk));
    for (std::int64_t c = 0; c < dv; ++c) {
      double& radius = v_radius_[static_cast<std::size_t>(c)];
      radius = std::max(radius, v.radius[values + c]);
    }
  }
  head_.prepare();
  most_k1_ = (1 + 0x1p-30) * largest(head_.k1.data(), keys);
  low_panels_.resize(head_.panels.size());
  std::vector<double> sums(static_cast<std::size_t>(panel_width));
  double most = 0;
  for (std::int64_t first = 0; first < keys; first += panel_width)
    inner_loops().pack(k_low_.data() + first * dk, std::min(panel_width, keys - first), dk,
                       low_panels_.data() + first * dk, sums.data(), &most);
}

bool EnclosedRow::evaluate(const EnclosedHead& head, const EnclosedMatrix& q, std::size_t at,
                           std::span<const std::int64_t> visible, std::span<const double> mask) {
  const Head& of = head.head_;
  row_.n = std::ssize(visible);
  row_.all_visible = row_.n == of.keys;
  row_.q = q.middle + at;
  row_.keys = {};
  row_.keys.n = row_.n;
  if (!row_.all_visible) {
    row_.index.assign(visible.begin(), visible.end());
    row_.keys.index = row_.index.data();
  }
  if (!mask.empty()) {
    // By the number of the key, as rows of a head have it.
    fit(row_.mask, of.keys), fit(row_.b, row_.n);
    for (std::int64_t j = 0; j < row_.n; ++j) {
      const double value = mask[static_cast<std::size_t>(j)];
      row_.mask[static_cast<std::size_t>(visible[static_cast<std::size_t>(j)])] = value;
      row_.b[static_cast<std::size_t>(j)] = of.convention == MaskConvention::pre_scale ? of.scale * value : value;
    }
    row_.keys.b = row_.b.data();
  }
  const LowParts low{.q = q.low + at, .panels = head.low_panels_.data(), .v = head.v_low_.data()};
  if (!pairs_.evaluate(of, row_, &low)) return false;
  keys_ = row_.keys;
  pairs_.attach(keys_, values_);
  const double of_scores = score_error(head, q, at);
  if (!(of_scores <= most_of_scores)) return false;
  take_radii(head, of_scores);
  return true;
}

double EnclosedRow::score_error(const EnclosedHead& head, const EnclosedMatrix& q, std::size_t at) const {
  const Head& of = head.head_;
  const double tau = std::fabs(of.scale), e_q = largest(q.radius + at, of.dk), e_k = head.most_k_radius_,
               q1 = sum_of_sizes(row_.q, of.dk), dk = static_cast<double>(of.dk);
  const double T = tau * q1 * of.most_k * (1 + 0x1p-30);
  const double common =
      (dk + 4) * 0x1p-90 * T + tau * (e_q * head.most_k1_ + q1 * e_k + dk * e_q * e_k) * (1 + 0x1p-30) + 0x1p-98 * T;
  double most = 0;
  for (std::int64_t j = 0; j < row_.n; ++j) {
    const auto e = static_cast<std::size_t>(j);
    const double away = pairs_.reference.high - pairs_.s[e], b = row_.keys.b ? std::fabs(row_.keys.b[j]) : 0.0;
    const double error = common + 0x1p-98 * (b + away);
    // NaN, of an infinite product with 0, is no error that is known.
    if (!(error <= (away <= vanishing ? most_of_scores : away / 32))) return infinity;
    if (away <= vanishing) most = std::max(most, error);
  }
  return most;
}

void EnclosedRow::take_radii(const EnclosedHead& head, double of_scores) {
  const Head& of = head.head_;
  const double n = static_cast<double>(row_.n), rho = std::expm1(of_scores + 0x1p-80) * (1 + 0x1p-50),
               share = 2 * rho + 2 * (n + 8) * (n + 8) * 0x1p-106 + 0x1p-99 + 4 * n * 0x1p-1020;
  const auto columns = static_cast<std::size_t>(of.dv);
  radius.assign(columns, 0.0), to_value.resize(columns);
  const auto values = [&](const std::vector<double>& from, std::int64_t j) {
    return from.data() + row_.key_at(j) * of.stride;
  };
  for (std::int64_t j = 0; j < row_.n; ++j)
    for (std::size_t c = 0; c < columns; ++c) radius[c] = std::max(radius[c], std::fabs(values(of.v, j)[c]));
  for (std::size_t c = 0; c < columns; ++c) {
    const double e_v = head.v_radius_[c], most = radius[c] * (1 + 0x1p-50) + e_v;
    radius[c] = (1 + 0x1p-20) * (share * most + e_v) + (n + 16) * 0x1p-1070;
    to_value[c] = std::fabs(pairs_.o_low[c]) + radius[c];
  }
  apart_.assign(static_cast<std::size_t>(row_.n * of.stride), 0.0);
  for (std::int64_t j = 0; j < row_.n; ++j) {
    const double *const v = values(of.v, j), *const low = values(head.v_low_, j);
    double* const to = apart_.data() + j * of.stride;
    for (std::size_t c = 0; c < columns; ++c)
      to[c] =
          std::fabs((v[c] - pairs_.o[c]) + (low[c] - pairs_.o_low[c])) * (1 + 0x1p-50) + radius[c] + head.v_radius_[c];
  }
}

bool EnclosedRow::sharp(const EnclosedHead& head, const KeyTerms& terms,
                        const std::vector<ElementTerms>& elements) const {
  if (terms.capped) return true;
  for (std::size_t c = 0; c < radius.size(); ++c) {
    const double blurred = std::min(2 * terms.reach * (radius[c] + head.v_radius_[c]), elements[c].score);
    if (!(blurred <= 0x1p-20 * elements[c].allowed)) return false;
  }
  return true;
}

void EnclosedRow::attach(RowKeys& keys, RowValues& values) const {
  keys.s = keys_.s, keys.t = keys_.t, keys.la = keys_.la, keys.alpha = keys_.alpha;
  keys.lse = keys_.lse;
  keys.unit = 0;
  values.apart = apart_.data();
}

}  // namespace attest::detail
