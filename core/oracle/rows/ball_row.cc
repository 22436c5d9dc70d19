#include "core/oracle/rows/ball_row.h"

#include <algorithm>
#include <cmath>

namespace attest::detail {
namespace {

double end_of(const arb_t x, bool upper, bool size) {
  arf_t end;
  arf_init(end);
  const long bits = 64;
  if (size)
    upper ? arb_get_abs_ubound_arf(end, x, bits) : arb_get_abs_lbound_arf(end, x, bits);
  else
    upper ? arb_get_ubound_arf(end, x, bits) : arb_get_lbound_arf(end, x, bits);
  const double value = arf_get_d(end, upper ? ARF_RND_CEIL : ARF_RND_FLOOR);
  arf_clear(end);
  return value;
}

}  // namespace

double lower_end(const arb_t x) {
  return end_of(x, false, false);
}
double upper_end(const arb_t x) {
  return end_of(x, true, false);
}
double upper_size(const arb_t x) {
  return end_of(x, true, true);
}
double lower_size(const arb_t x) {
  return end_of(x, false, true);
}
double middle(const arb_t x) {
  return arf_get_d(arb_midref(x), ARF_RND_NEAR);
}

double middle_error(const arb_t x) {
  Ball d;
  arf_t value;
  arf_init(value);
  arf_set_d(value, middle(x));
  arb_sub_arf(d, x, value, 64);
  arf_clear(value);
  return upper_size(d);
}

template <class KeyAt, class ValueAt>
void BallRow::run(const BallProblem& problem, KeyAt&& key_at, ValueAt&& value_at, long bits) {
  precision = bits;
  const std::int64_t n = problem.n, dk = problem.dk, dv = problem.dv, stride = problem.stride;
  for (auto* array : {&s, &t, &capped, &la, &alpha}) array->assign(static_cast<std::size_t>((n + 15) / 16 * 16), 0.0);
  value.assign(static_cast<std::size_t>(stride), 0.0);
  radius.assign(static_cast<std::size_t>(stride), 0.0);
  apart.assign(static_cast<std::size_t>(n * stride), 0.0);
  if (o.size() != dv) o = Balls(dv);
  if (lse.size() != 1) lse = Balls(1);

  if (score.size() != n) {
    score = Balls(n);
    weight = Balls(n);
  }
  Ball term, x, tau, cap, bias, reference, sum, log_sum;
  arb_set_d(tau, problem.scale);
  arb_set_d(cap, problem.softcap);
  for (std::int64_t j = 0; j < n; ++j) {
    arb_zero(x);
    for (std::int64_t c = 0; c < dk; ++c) arb_addmul(x, problem.q + c, key_at(j, c), bits);
    arb_mul(term, x, tau, bits);
    t[static_cast<std::size_t>(j)] = middle(term);
    if (problem.softcap > 0) {
      arb_div(term, term, cap, bits);
      arb_tanh(term, term, bits);
      arb_mul(term, term, cap, bits);
      capped[static_cast<std::size_t>(j)] = middle(term);
    }
    if (problem.bias) {
      arb_set_d(bias, problem.bias[j]);
      if (problem.convention == MaskConvention::pre_scale) arb_mul(bias, bias, tau, bits);
      arb_add(term, term, bias, bits);
    }
    if (problem.slopes) {
      arb_set_d(bias, problem.slopes[j]);
      arb_add(term, term, bias, bits);
    }
    if (problem.sink && j == n - 1) arb_set_d(term, *problem.sink);
    s[static_cast<std::size_t>(j)] = middle(term);
    arb_set(score[j], term);
    // Any reference serves; the largest midpoint keeps the weights in range.
    if (j == 0 || arf_cmp(arb_midref(term), arb_midref(reference)) > 0) {
      arb_set(reference, term);
      largest = j;
    }
  }
  arb_get_mid_arb(reference, reference);
  for (std::int64_t j = 0; j < n; ++j) {
    arb_sub(score[j], score[j], reference, bits);
    arb_exp(weight[j], score[j], bits);
    arb_add(sum, sum, weight[j], bits);
  }
  arb_log(log_sum, sum, bits);
  arb_add(lse[0], log_sum, reference, bits);
  settled = true;
  for (std::int64_t j = 0; j < n; ++j) {
    arb_sub(term, score[j], log_sum, bits);
    const double log_weight = middle(term);
    // Relative accuracy serves a weight that is long gone; 2^-40 absolutely where it counts.
    if (!(mag_get_d(arb_radref(term)) <= 0x1p-40 * std::max(1.0, std::fabs(log_weight) * 0x1p-12))) settled = false;
    la[static_cast<std::size_t>(j)] = std::min(log_weight, 0.0);
    arb_div(weight[j], weight[j], sum, bits);
    alpha[static_cast<std::size_t>(j)] = middle(weight[j]);
  }
  for (std::int64_t k = 0; k < dv; ++k) {
    arb_zero(o[k]);
    for (std::int64_t j = 0; j < n; ++j) arb_addmul(o[k], weight[j], value_at(j, k), bits);
    value[static_cast<std::size_t>(k)] = middle(o[k]);
    radius[static_cast<std::size_t>(k)] = middle_error(o[k]);
    for (std::int64_t j = 0; j < n; ++j) {
      arb_sub(x, value_at(j, k), o[k], bits);
      apart[static_cast<std::size_t>(j * stride + k)] = upper_size(x);
    }
  }
}

void BallRow::evaluate(const Head& head, const Row& row, long bits) {
  const auto at = [&](std::int64_t j) { return row.key_at(j); };
  const auto value_at = [&](std::int64_t j) { return row.keys.index ? row.keys.index[j] : j; };
  Balls q(head.dk);
  for (std::int64_t c = 0; c < head.dk; ++c) arb_set_d(q[c], row.q[c]);
  std::vector<double> bias;
  if (head.mask)
    for (std::int64_t j = 0; j < row.n; ++j) bias.push_back(row.mask[static_cast<std::size_t>(at(j))]);
  const BallProblem problem{row.n,
                            head.dk,
                            head.dv,
                            head.stride,
                            head.scale,
                            head.convention,
                            q[0],
                            head.mask ? bias.data() : nullptr,
                            row.has_sink ? &head.sink : nullptr,
                            head.softcap,
                            row.keys.slopes};
  Ball k, v;
  run(
      problem,
      [&](std::int64_t j, std::int64_t c) {
        arb_set_d(k, head.k[static_cast<std::size_t>(at(j) * head.dk + c)]);
        return static_cast<arb_ptr>(k);
      },
      [&](std::int64_t j, std::int64_t c) {
        arb_set_d(v, head.v[static_cast<std::size_t>(value_at(j) * head.stride + c)]);
        return static_cast<arb_ptr>(v);
      },
      bits);
  gained_ = Balls();
  if (head.dropout_p == 0) return;
  gained_ = Balls(head.dv);
  gain_of(head.dropout_p, k, bits);
  for (std::int64_t c = 0; c < head.dv; ++c) arb_mul(gained_[c], o[c], k, bits);
}

void gain_of(double dropout_p, arb_ptr gain, long bits) {
  arb_set_d(gain, -dropout_p);
  arb_add_si(gain, gain, 1, ARF_PREC_EXACT);
  arb_inv(gain, gain, bits);
}

void BallRow::evaluate(const BallProblem& problem, const arb_srcptr* keys, const arb_srcptr* values, long bits) {
  run(
      problem, [&](std::int64_t j, std::int64_t c) { return keys[j] + c; },
      [&](std::int64_t j, std::int64_t c) { return values[j] + c; }, bits);
}

void BallRow::attach(RowKeys& keys, RowValues& values) const {
  keys.s = s.data(), keys.t = t.data(), keys.capped = keys.capped ? capped.data() : nullptr;
  keys.la = la.data(), keys.alpha = alpha.data();
  keys.lse = middle(lse[0]);
  keys.unit = 0;
  values.apart = apart.data();
}

void BallRow::distance(std::int64_t k, double found, double& lower, double& upper) const {
  Ball d;
  arb_set_d(d, found);
  arb_sub(d, d, answer(k), precision + 64);
  lower = lower_size(d);
  upper = upper_size(d);
}

void BallRow::lse_distance(double found, double& lower, double& upper) const {
  Ball d;
  arb_set_d(d, found);
  arb_sub(d, d, lse[0], precision + 64);
  lower = lower_size(d);
  upper = upper_size(d);
}

long first_precision(double largest_score) {
  const double bits = largest_score > 1 ? std::ceil(std::log2(std::min(largest_score, 0x1p1023))) : 0;
  return 128 + (bits > 8 ? static_cast<long>(bits) + 60 : 0);
}

}  // namespace attest::detail
