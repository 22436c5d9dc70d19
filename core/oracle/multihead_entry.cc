#include "core/oracle/multihead_entry.h"

#include <algorithm>
#include <cmath>

#include "core/oracle/rows/head.h"
#include "core/problem/score.h"
#include "core/problem/sight.h"
#include "core/support/infinity.h"

namespace attest::detail {
namespace {

/// n numbers for loops that work on sixteen at once.
void make_room(std::vector<double>& numbers, std::int64_t n) {
  numbers.assign(static_cast<std::size_t>((n + 15) / 16 * 16), 0.0);
}

}  // namespace

MultiheadProblem::MultiheadProblem(const Problem& c, const Arithmetic& arithmetic, bool ignores_dead_values)
    : c_(c), ignores_dead_(ignores_dead_values) {
  M_ = c.q().shape()[1];
  N_ = c.k().shape()[1];
  heads_ = c.heads;
  dk_ = c[Slot::w_q].shape()[1] / heads_;
  dv_ = c[Slot::w_v].shape()[1] / heads_;
  appended_ = c[Slot::bias_k].present();
  if (appended_) {
    bias_k_ = c[Slot::bias_k].to_doubles();
    bias_v_ = c[Slot::bias_v].to_doubles();
  }
  keys_ = N_ + (appended_ ? 1 : 0);
  ProfileInputs inputs{.keys = keys_, .dk = dk_, .scale = c.scale, .convention = c.mask_convention};
  if (c.mask().present()) {
    inputs.mask = c.mask().dtype();
    if (c.mask().dtype() != DType::boolean)
      for (std::int64_t e = 0; e < c.mask().elements(); ++e)
        inputs.bias = inputs.bias || (c.mask()[e] != 0 && c.mask()[e] != -infinity);
  }
  profile_ = profile_of(arithmetic, inputs);
  largest_hidden_ = largest_hidden_size(profile_, dk_);
  projections_ = projection_profile(arithmetic, profile_);
}

MultiheadEntry MultiheadProblem::evaluate(std::int64_t batch, long bits) {
  const Projected q = project_rows(c_.q(), batch * M_, M_, c_[Slot::w_q], c_[Slot::b_q], nullptr, projections_, bits);
  const Projected k = project_rows(c_.k(), batch * N_, N_, c_[Slot::w_k], c_[Slot::b_k],
                                   appended_ ? bias_k_.data() : nullptr, projections_, bits);
  const Projected v = project_rows(c_.v(), batch * N_, N_, c_[Slot::w_v], c_[Slot::b_v],
                                   appended_ ? bias_v_.data() : nullptr, projections_, bits);
  const std::int64_t width = heads_ * dv_;
  MultiheadEntry entry;
  HeadsRow heads(heads_, dv_);
  const std::int64_t d_o = c_[Slot::w_o].present() ? c_[Slot::w_o].shape()[1] : width;
  entry.y = Balls(M_ * d_o);
  entry.allowed.assign(static_cast<std::size_t>(M_ * d_o), infinity);
  entry.excuse.assign(static_cast<std::size_t>(M_ * d_o), Excuse::none);
  for (std::int64_t i = 0; i < M_; ++i) {
    Excuse row = Excuse::none;
    most_E_ = 0;
    for (std::int64_t h = 0; h < heads_ && row == Excuse::none; ++h)
      row = head_row({batch, h, i, q, k, v}, bits, heads, entry.settled);
    entry.most_E.push_back(most_E_);
    if (row != Excuse::none) {
      std::fill_n(entry.excuse.begin() + i * d_o, d_o, row);
      continue;
    }
    output(i, d_o, heads, bits, entry);
  }
  return entry;
}

double MultiheadProblem::bias_of(const Head& head, std::int64_t j) const {
  if (j >= N_) return 0;  // the appended row: nothing hides it
  const double b =
      hidden(c_, head.batch, head.h, head.i, j) ? -infinity : attest::bias_of(c_, head.batch, head.h, head.i, j);
  if (!profile_.any_mask_format || !std::isinf(round_to(profile_.mask_format, b))) return b;
  return std::copysign(infinity, b);
}

Excuse MultiheadProblem::see_keys(const Head& head) {
  if (!head.q.usable[static_cast<std::size_t>(head.i)]) return Excuse::overflow;
  visible_.clear();
  bias_.clear();
  for (std::int64_t j = 0; j < keys_; ++j) {
    const double b = bias_of(head, j);
    if (b == infinity) return Excuse::overflow;
    const bool usable = head.k.usable[static_cast<std::size_t>(j)] && head.v.usable[static_cast<std::size_t>(j)];
    if (b == -infinity) {
      // As with one head (hidden_keys_harmless): a score beyond the range, and -inf is added to it.
      if (!ignores_dead_ && !(usable && size_of_score(head, j) <= largest_hidden_)) return Excuse::not_finite;
      continue;
    }
    if (!usable) return Excuse::overflow;
    visible_.push_back(j);
    bias_.push_back(b);
  }
  return visible_.empty() ? Excuse::fully_masked : Excuse::none;
}

double MultiheadProblem::size_of_score(const Head& head, std::int64_t j) const {
  const Projected &q = head.q, &k = head.k;
  double size = 0;
  for (std::int64_t c = 0; c < dk_; ++c) {
    const auto of_q = static_cast<std::size_t>(head.i * q.columns + head.h * dk_ + c);
    const auto of_k = static_cast<std::size_t>(j * k.columns + head.h * dk_ + c);
    size += (std::fabs(q.middle[of_q]) + q.error[of_q]) * (std::fabs(k.middle[of_k]) + k.error[of_k]);
  }
  return size;
}

RowKeys MultiheadProblem::perturbed_keys(const Head& head) {
  const Projected &q = head.q, &k = head.k;
  const auto n = static_cast<std::int64_t>(visible_.size());
  const double tau = c_.scale;
  const auto q_at = static_cast<std::size_t>(head.i * q.columns + head.h * dk_);
  for (auto* numbers : {&sizes_, &input_error_, &k1_, &scaled_bias_}) make_room(*numbers, n);
  make_room(q_most_, dk_);
  std::vector<double> mean(static_cast<std::size_t>(dk_), 0.0);
  for (std::int64_t c = 0; c < dk_; ++c)
    for (std::int64_t j = 0; j < n; ++j)
      mean[static_cast<std::size_t>(c)] +=
          row_.alpha[static_cast<std::size_t>(j)] * k.middle[cell(k, j, head.h * dk_ + c)];
  RowKeys keys;
  keys.n = n;
  for (std::int64_t c = 0; c < dk_; ++c) {
    const auto at = static_cast<std::size_t>(c);
    q_most_[at] = std::fabs(q.middle[q_at + at]) + q.error[q_at + at];
    keys.q1 += q_most_[at];
    keys.shift_error += tau * q.error[q_at + at] * std::fabs(mean[at]);
  }
  for (std::int64_t j = 0; j < n; ++j) {
    const auto at = static_cast<std::size_t>(j);
    for (std::int64_t c = 0; c < dk_; ++c) {
      const auto e = static_cast<std::size_t>(c);
      const double key = k.middle[cell(k, j, head.h * dk_ + c)], dkey = k.error[cell(k, j, head.h * dk_ + c)];
      const double dq = q.error[q_at + e];
      sizes_[at] += q_most_[e] * (std::fabs(key) + dkey);
      input_error_[at] += tau * (dq * std::fabs(key - mean[e]) + std::fabs(q.middle[q_at + e]) * dkey + dq * dkey);
      k1_[at] += std::fabs(key) + dkey;
    }
    scaled_bias_[at] = mask_term(bias_[at], tau, c_.mask_convention);
  }
  keys.size = sizes_.data();
  keys.input_error = input_error_.data();
  keys.k1 = k1_.data();
  keys.b = profile_.of.bias ? scaled_bias_.data() : nullptr;
  return keys;
}

RowValues MultiheadProblem::perturbed_values(const Head& head) {
  const auto n = static_cast<std::int64_t>(visible_.size());
  const std::int64_t stride = value_stride();
  values_.assign(static_cast<std::size_t>(n * stride), 0.0);
  values_error_ = values_;
  low_.assign(static_cast<std::size_t>(stride), infinity);
  high_.assign(static_cast<std::size_t>(stride), -infinity);
  abs_sum_.assign(static_cast<std::size_t>(stride), 0.0);
  for (std::int64_t j = 0; j < n; ++j) {
    for (std::int64_t c = 0; c < dv_; ++c) {
      const auto at = static_cast<std::size_t>(j * stride + c), column = static_cast<std::size_t>(c);
      const double value = head.v.middle[cell(head.v, j, head.h * dv_ + c)];
      values_[at] = value;
      values_error_[at] = head.v.error[cell(head.v, j, head.h * dv_ + c)];
      low_[column] = std::min(low_[column], value);
      high_[column] = std::max(high_[column], value);
      abs_sum_[column] += std::fabs(value) + values_error_[at];
    }
  }
  return {values_.data(), stride, dv_, low_.data(), high_.data(), abs_sum_.data(), nullptr, values_error_.data()};
}

Excuse MultiheadProblem::head_row(const Head& head, long bits, HeadsRow& out, bool& settled) {
  if (const Excuse none = see_keys(head); none != Excuse::none) return none;
  const auto n = static_cast<std::int64_t>(visible_.size());

  // Exact attention on the exact Q, K, V.
  std::vector<arb_srcptr> key_rows, value_rows;
  for (const std::int64_t j : visible_) {
    key_rows.push_back(head.k.row(j) + head.h * dk_);
    value_rows.push_back(head.v.row(j) + head.h * dv_);
  }
  row_.evaluate({n, dk_, dv_, value_stride(), c_.scale, c_.mask_convention, head.q.row(head.i) + head.h * dk_,
                 profile_.of.bias ? bias_.data() : nullptr},
                key_rows.data(), value_rows.data(), bits);
  settled = settled && row_.settled;

  RowKeys keys = perturbed_keys(head);
  RowValues values = perturbed_values(head);
  row_.attach(keys, values);
  const KeyTerms terms = key_terms(profile_, keys, q_most_.data(), scratch_);
  most_E_ = std::max(most_E_, terms.most_E);
  if (!terms.in_domain) return Excuse::overflow;
  elements_.resize(static_cast<std::size_t>(dv_));
  element_bounds(profile_, keys, terms, values, row_.value.data(), row_.radius.data(), scratch_, elements_.data());

  std::vector<double>& apart = out.apart[static_cast<std::size_t>(head.h)];
  apart.clear();
  for (std::int64_t j = 0; j < n; ++j)
    for (std::int64_t c = 0; c < dv_; ++c)
      apart.push_back(head.v.middle[cell(head.v, j, head.h * dv_ + c)] - row_.value[static_cast<std::size_t>(c)]);
  for (std::int64_t c = 0; c < dv_; ++c) {
    const auto at = static_cast<std::size_t>(head.h * dv_ + c);
    const ElementTerms& element = elements_[static_cast<std::size_t>(c)];
    arb_set(out.o[head.h * dv_ + c], row_.o[c]);
    out.size[at] = upper_size(row_.o[c]);
    out.error[at] = element.allowed;
    out.score[at] = element.score;
    out.why[at] = element.excuse;
    out.most_value[at] = 0;
    for (std::int64_t j = 0; j < n; ++j)
      out.most_value[at] = std::max(out.most_value[at], head.v.size[cell(head.v, j, head.h * dv_ + c)]);
  }
  return Excuse::none;
}

void MultiheadProblem::output(std::int64_t i, std::int64_t d_o, const HeadsRow& heads, long bits,
                              MultiheadEntry& entry) const {
  const Tensor& w_o = c_[Slot::w_o];
  const Tensor& b_o = c_[Slot::b_o];
  const std::int64_t width = heads_ * dv_;
  Ball weight;
  std::vector<double> factors(static_cast<std::size_t>(width));
  for (std::int64_t k = 0; k < d_o; ++k) {
    const auto at = static_cast<std::size_t>(i * d_o + k);
    arb_ptr y = entry.y[i * d_o + k];
    double carried = 0, sizes = 0, score = 0, most = 0;
    Excuse excuse = Excuse::none;
    for (std::int64_t l = 0; l < width; ++l) {
      const auto from = static_cast<std::size_t>(l);
      const double factor = w_o.present() ? w_o[l * d_o + k] : l == k ? 1.0 : 0.0;
      factors[from] = factor;
      if (!w_o.present() && l != k) continue;
      if (factor == 0 && std::isfinite(heads.error[from]) && heads.why[from] != Excuse::overflow) continue;
      arb_set_d(weight, factor);
      arb_addmul(y, weight, heads.o[l], bits);
      carried += std::fabs(factor) * heads.error[from];
      sizes += std::fabs(factor) * heads.size[from];
      score += std::fabs(factor) * heads.score[from];
      most += std::fabs(factor) * heads.most_value[from];
      if (heads.why[from] == Excuse::overflow) excuse = Excuse::overflow;
    }
    double own_bias = 0;
    if (b_o.present()) {
      arb_set_d(weight, b_o[k]);
      arb_add(y, y, weight, bits);
      own_bias = std::fabs(b_o[k]);
    }
    double B = carried;
    if (w_o.present() || b_o.present()) {
      const double terms = static_cast<double>(w_o.present() ? width : 1) + 1;
      B += pw(projections_.u_g, terms) * (sizes + carried + own_bias) + 2 * terms * projections_.lam_g;
      B += projections_.u_y * (upper_size(y) + B) + projections_.lam_y;
    }
    B *= 1 + 0x1p-30;
    entry.allowed[at] = B;
    most += own_bias;
    if (!(2 * (sizes + carried + own_bias) <= projections_.largest_y)) excuse = Excuse::overflow;
    if (excuse == Excuse::none && !(B < infinity)) excuse = Excuse::infinite;
    if (excuse == Excuse::none &&
        ((score > 0 && 2 * score >= B && B >= reach(heads, factors)) || (most > 0 && B - score >= most)))
      excuse = Excuse::vacuous;
    entry.excuse[at] = excuse;
  }
}

double MultiheadProblem::reach(const HeadsRow& heads, const std::vector<double>& factors) const {
  double sum = 0;
  for (std::size_t h = 0; h < heads.apart.size(); ++h) {
    const std::vector<double>& apart = heads.apart[h];
    const auto dv = static_cast<std::size_t>(dv_);
    double most = 0;
    for (std::size_t j = 0; j < apart.size(); j += dv) {
      double moved = 0;
      for (std::size_t c = 0; c < dv; ++c) moved += factors[h * dv + c] * apart[j + c];
      most = std::max(most, std::fabs(moved));
    }
    sum += most;
  }
  return sum;
}

}  // namespace attest::detail
