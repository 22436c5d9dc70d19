#include "core/oracle/rows/wide_row.h"

#include <algorithm>
#include <cmath>

#include "core/problem/score.h"
#include "core/support/infinity.h"

namespace attest::detail {
namespace {

const Mag half(0.5), one(1.0);

/// The largest number >= 0 in ball + size, from above.
Mag upper_sum(const arb_t ball, const Mag& size) {
  Ball sum;
  arf_t end;
  arf_init(end);
  arf_set_mag(end, size.data());
  arb_add_arf(sum, ball, end, 64);
  arb_get_ubound_arf(end, sum, 64);
  Mag upper;
  if (arf_sgn(end) > 0) arf_get_mag(upper.data(), end);
  arf_clear(end);
  return upper;
}

/// e^(ball + size), from above.
Mag exp_of_sum(const arb_t ball, const Mag& size) {
  Ball sum;
  arf_t exact;
  arf_init(exact);
  arf_set_mag(exact, size.data());
  arb_add_arf(sum, ball, exact, 64);
  arf_clear(exact);
  arb_exp(sum, sum, 64);
  return Mag(sum);
}

}  // namespace

WideUnits::WideUnits(const WideRounding& rounding)
    : u(Mag::of(rounding.unit)),
      lambda(Mag::power_of_two(std::ceil(rounding.least))),
      range(Mag::power_of_two(std::floor(rounding.largest) - 2)),
      conversions(rounding.exact_inputs ? 0 : 1),
      exp_units(rounding.exp_units),
      exp_growth(rounding.exp_growth),
      tanh_units(rounding.tanh_units),
      log_lambda(rounding.least * 0.6931471805599454),
      encloses(rounding.unit == 0) {}

Mag WideUnits::chain(double m) const {
  const Mag t = Mag(m) * u;
  return t <= half ? t + Mag(2.0) * t * t : Mag(infinity);
}

Mag WideUnits::converted(const Mag& size) const {
  return conversions > 0 && mag_is_zero(size.data()) == 0 ? u * size + lambda : Mag();
}

void WideMatrix::set(std::int64_t i, std::int64_t c, double value, const WideUnits& units) {
  if (!std::isfinite(value)) finite[static_cast<std::size_t>(i)] = false;
  arb_set_d(exact[i * columns + c], value);
  if (units.conversions == 0) return;
  error.resize(static_cast<std::size_t>(rows * columns));
  error[at(i, c)] = units.converted(std::fabs(value));
}

void WideRow::sizes_of_products(const WideProblem& p) {
  const std::size_t n = p.visible.size();
  size_.assign(n, Mag());
  input_.assign(n, Mag());
  const auto error_of = [](const WideMatrix& m, std::size_t at) { return m.error.empty() ? Mag() : m.error[at]; };
  for (std::int64_t c = 0; c < p.dk; ++c) {
    const std::size_t q_at = p.q->at(p.i, p.of_q + c);
    const Mag q(p.q->exact[static_cast<std::int64_t>(q_at)]), dq = error_of(*p.q, q_at), all_q = q + dq;
    for (std::size_t j = 0; j < n; ++j) {
      const std::size_t k_at = p.k->at(p.visible[j], p.of_k + c);
      const Mag k(p.k->exact[static_cast<std::int64_t>(k_at)]);
      if (p.q->error.empty() && p.k->error.empty()) {
        size_[j].add_product(q, k);
        continue;
      }
      const Mag dk = error_of(*p.k, k_at);
      size_[j].add_product(all_q, k + dk);
      input_[j].add_product(dq, k);
      input_[j].add_product(all_q, dk);
    }
  }
}

Mag WideRow::capped_error(const Mag& error, const Mag& size, const WideUnits& units, double cap) {
  // z = t/C with C converted: a slope of at most 1 passes on what it errs by, and tanh adds to it. Then the product.
  const Mag c(cap), roundings = units.chain(1 + units.conversions);
  const Mag argument = error + roundings * (size + error) + c * units.lambda;
  const Mag after = argument + c * (Mag(units.tanh_units) * units.u + units.lambda);
  return after + roundings * (c + after) + units.lambda;
}

void WideRow::score_errors(const WideProblem& p, const WideUnits& units) {
  const auto dk = static_cast<double>(p.dk);
  const Mag tau(p.scale), product = units.chain(dk), scaling = units.chain(1 + units.conversions);
  a_.clear();
  for (std::size_t j = 0; j < p.visible.size(); ++j) {
    const Mag b(p.bias.empty() ? 0.0 : std::fabs(p.bias[j])), db = units.converted(b);
    Mag x = input_[j] + product * size_[j] + Mag(4 * dk) * units.lambda;
    Mag y = size_[j];
    if (!p.bias.empty() && p.convention == MaskConvention::pre_scale) {
      y += b;
      x = x + db + units.u * (y + x + db) + units.lambda;
    }
    Mag s = tau * (x + scaling * (y + x)) + units.lambda;
    if (p.softcap > 0) s = capped_error(s, tau * y, units, p.softcap);
    if (!p.bias.empty() && p.convention == MaskConvention::post_scale)
      s = s + db + units.u * ((p.softcap > 0 ? Mag(p.softcap) : tau * y) + b + s + db) + units.lambda;
    if (!p.away.empty()) {
      // The slope is converted, its product with the distance and the sum are rounded.
      const Mag m(std::fabs(p.slope)), d(p.away[j]), l = m * d;
      const Mag dl = units.converted(m) * d + units.u * (l + units.converted(m) * d) + units.lambda;
      const Mag before = (p.softcap > 0 ? Mag(p.softcap) : tau * y) + b;
      s = s + dl + units.u * (before + l + s + dl) + units.lambda;
    }
    a_.push_back(std::move(s));
  }
  if (p.sink != -infinity) a_.back() = units.converted(std::fabs(p.sink));
}

bool WideRow::weight_errors(const WideProblem& p, const WideUnits& units) {
  const std::size_t n = p.visible.size();
  const auto at = [](std::size_t j) { return static_cast<std::int64_t>(j); };
  const Mag off(balls_.score[balls_.largest]);  // of the reference's own score: what is not known of it
  Mag rho = off + a_[static_cast<std::size_t>(balls_.largest)];
  for (std::size_t j = 0; j < n; ++j) rho = std::max(rho, upper_sum(balls_.score[at(j)], a_[j]));
  if (!(rho + off <= half)) return false;
  grown_.assign(n, Mag());
  moved_.assign(n, Mag());
  all_grown_ = Mag();
  Mag lost;
  for (std::size_t j = 0; j < n; ++j) {
    const Mag away = Mag(balls_.score[at(j)]) + a_[j] + rho, z = away + units.u * away + units.lambda;
    // Below 2^least, the exact and the computed: lambda stands for both.
    if (upper_end(balls_.score[at(j)]) + static_cast<double>((a_[j] + rho + units.u * z + units.lambda).size()) <
        units.log_lambda - 2)
      continue;
    const Mag exp_error = units.u * (Mag(units.exp_units) + Mag(units.exp_growth) * z);
    if (!(exp_error <= half)) return false;
    const Mag E = a_[j] + units.u * away + units.lambda + exp_error + Mag(2.0) * exp_error * exp_error;
    const Mag alpha(balls_.weight[at(j)]);
    const bool small = E <= one;
    grown_[j] = small ? alpha * exp(E) : exp_of_sum(balls_.score[at(j)], E + off);
    moved_[j] = small ? alpha * expm1(E) : grown_[j];
    all_grown_ += grown_[j];
    lost.add_product(alpha, std::min(E, one));
  }
  const auto keys = static_cast<double>(n);
  lost += units.chain(keys - 1) * all_grown_ + Mag(16 * keys) * units.lambda;
  if (!(lost <= half)) return false;
  factor_ = one + Mag(2.0) * lost;
  return true;
}

namespace {

/// Of 1/(1 - p) and its product with a weight: p's own where it is converted, of which 1 - p takes p/(1 - p), the
/// difference, the quotient.
double roundings_of_gain(const WideProblem& p, const WideUnits& units) {
  if (p.dropout_p == 0) return 0;
  return 3 + units.conversions * std::ceil(2 * p.dropout_p / (1 - p.dropout_p));
}

}  // namespace

void WideRow::column(const WideProblem& p, const WideUnits& units, std::int64_t k) {
  const auto keys = static_cast<double>(p.visible.size());
  const Mag products = units.chain(keys + 1 + roundings_of_gain(p, units)), sums = units.chain(keys - 1),
            o(balls_.o[k]);
  Mag score, values, inputs, all, most, apart;
  Ball distance;
  for (std::size_t j = 0; j < p.visible.size(); ++j) {
    const std::size_t v_at = p.v->at(p.value_at(j), p.of_v + k);
    arb_srcptr exact = p.v->exact[static_cast<std::int64_t>(v_at)];
    const Mag dv = p.v->error.empty() ? Mag() : p.v->error[v_at], v = Mag(exact) + dv;
    arb_sub(distance, exact, balls_.o[k], 64);
    const Mag d(distance);
    score.add_product(moved_[j], d);
    values.add_product(grown_[j], v);
    inputs.add_product(grown_[j], dv);
    all += v;
    most = std::max(most, v);
    apart = std::max(apart, d);
  }
  const auto column = static_cast<std::size_t>(k);
  const bool gains = p.dropout_p != 0;
  const Mag underflow = units.lambda * (Mag(gains ? 14.0 : 12.0) * all + Mag(16 * keys) * o + Mag(8 * keys));
  score = factor_ * score;
  allowed[column] = score + factor_ * (products * values + Mag(2.0) * inputs + sums * o * all_grown_ + underflow);
  hull[column] = Mag(2.0) * ((products + sums) * most + Mag(2.0) * inputs * factor_) + factor_ * underflow;
  // A bound that accepts every mean of the values because the scores are not known tells nothing.
  const bool by_scores = allowed[column] <= Mag(2.0) * score;
  excuse[column] = by_scores && apart <= allowed[column] && !(apart <= Mag()) ? Excuse::vacuous : Excuse::none;
  const Mag gain(gains ? (1 + 0x1p-50) / (1 - p.dropout_p) : 1.0);
  if (!(Mag(4.0) * gain * (most + allowed[column]) <= units.range)) excuse[column] = Excuse::overflow;
}

void WideRow::multiply(const WideProblem& p) {
  if (p.dropout_p == 0) return;
  Ball gain;
  gain_of(p.dropout_p, gain, balls_.precision);
  for (std::int64_t k = 0; k < p.dv; ++k) {
    const auto column = static_cast<std::size_t>(k);
    arb_mul(balls_.o[k], balls_.o[k], gain, balls_.precision);
    allowed[column] = Mag(gain) * allowed[column];
    hull[column] = Mag(gain) * hull[column];
  }
}

Excuse WideRow::evaluate(const WideProblem& p, const WideUnits& units, long bits) {
  const auto columns = static_cast<std::size_t>(p.dv);
  allowed.assign(columns, Mag(infinity));
  hull = allowed;
  excuse.assign(columns, Excuse::infinite);
  if (p.visible.empty()) return Excuse::fully_masked;
  bool finite = p.q->finite[static_cast<std::size_t>(p.i)];
  for (std::size_t j = 0; j < p.visible.size(); ++j)
    finite = finite && p.k->finite[static_cast<std::size_t>(p.visible[j])] &&
             p.v->finite[static_cast<std::size_t>(p.value_at(j))];
  for (const double b : p.bias) finite = finite && b < infinity;
  if (!finite) return Excuse::not_finite;
  sizes_of_products(p);
  const Mag tau = std::max(Mag(p.scale), one);
  Mag most;
  for (std::size_t j = 0; j < p.visible.size(); ++j)
    most = std::max(most, tau * (size_[j] + Mag(p.bias.empty() ? 0.0 : std::fabs(p.bias[j]))) +
                              (p.away.empty() ? Mag() : Mag(std::fabs(p.slope)) * Mag(p.away[j])));
  if (p.sink != -infinity) most = std::max(most, Mag(std::fabs(p.sink)));
  // The products over the cap, and the cap itself.
  if (p.softcap > 0) most = std::max({most, most * Mag(1 / p.softcap), Mag(p.softcap)});
  if (!(Mag(4.0) * most <= units.range)) return Excuse::overflow;
  std::vector<arb_srcptr> keys, values;
  for (std::size_t j = 0; j < p.visible.size(); ++j) {
    keys.push_back(p.k->exact[static_cast<std::int64_t>(p.k->at(p.visible[j], p.of_k))]);
    values.push_back(p.v->exact[static_cast<std::int64_t>(p.v->at(p.value_at(j), p.of_v))]);
  }
  const auto n = static_cast<std::int64_t>(p.visible.size());
  const double score_bits = std::max(0.0, mag_get_d_log2_approx(most.data()));
  std::vector<double> slopes;
  for (const double away : p.away) slopes.push_back(-p.slope * away);
  balls_.evaluate(
      {n, p.dk, p.dv, (p.dv + 3) / 4 * 4, p.scale, p.convention,
       p.q->exact[static_cast<std::int64_t>(p.q->at(p.i, p.of_q))], p.bias.empty() ? nullptr : p.bias.data(),
       p.sink == -infinity ? nullptr : &p.sink, p.softcap, slopes.empty() ? nullptr : slopes.data()},
      keys.data(), values.data(), bits + static_cast<long>(score_bits));
  if (units.encloses) {
    allowed.assign(columns, Mag());
    hull = allowed;
    excuse.assign(columns, Excuse::none);
    multiply(p);
    return Excuse::none;
  }
  score_errors(p, units);
  if (weight_errors(p, units))
    for (std::int64_t k = 0; k < p.dv; ++k) column(p, units, k);
  multiply(p);
  return Excuse::none;
}

}  // namespace attest::detail
