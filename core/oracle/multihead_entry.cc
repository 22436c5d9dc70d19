#include "core/oracle/multihead_entry.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>
#include <utility>

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

void MultiheadEntry::distance(std::int64_t e, double found, double& lower, double& upper) const {
  if (bits == in_pairs) {
    const auto at = static_cast<std::size_t>(e);
    const double d = distance_to({pairs.high[at], pairs.low[at]}, found);
    upper = d * (1 + 0x1p-50) + pairs.radius[at];
    lower = d * (1 - 0x1p-50) - pairs.radius[at];
    return;
  }
  Ball d;
  arb_set_d(d, found);
  arb_sub(d, d, y[e], bits);
  lower = lower_size(d), upper = upper_size(d);
}

double MultiheadEntry::value(std::int64_t e) const {
  return bits == in_pairs ? pairs.high[static_cast<std::size_t>(e)] : middle(y[e]);
}

double MultiheadEntry::certificate(std::int64_t e) const {
  const auto at = static_cast<std::size_t>(e);
  return bits == in_pairs ? std::fabs(pairs.low[at]) + pairs.radius[at] : middle_error(y[e]);
}

MultiheadProblem::MultiheadProblem(const Problem& c, const Arithmetic& arithmetic, bool ignores_dead_values)
    : c_(c),
      ignores_dead_(ignores_dead_values),
      w_q_(c[Slot::w_q], c[Slot::b_q]),
      w_k_(c[Slot::w_k], c[Slot::b_k]),
      w_v_(c[Slot::w_v], c[Slot::b_v]),
      w_o_(c[Slot::w_o], c[Slot::b_o]) {
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

bool MultiheadProblem::project(std::int64_t batch, long bits) {
  const InputRows q{c_.q(), batch * M_, M_, nullptr}, k{c_.k(), batch * N_, N_, appended_ ? bias_k_.data() : nullptr},
      v{c_.v(), batch * N_, N_, appended_ ? bias_v_.data() : nullptr};
  if (bits != in_pairs) {
    q_ = project_rows(q, w_q_, projections_, bits);
    k_ = project_rows(k, w_k_, projections_, bits);
    v_ = project_rows(v, w_v_, projections_, bits);
    return true;
  }
  for (auto [to, rows, w] : {std::tuple(&q_, &q, &w_q_), {&k_, &k, &w_k_}, {&v_, &v, &w_v_}}) {
    std::optional<Projected> projected = project_rows_in_pairs(*rows, *w, projections_);
    if (!projected) return false;
    *to = std::move(*projected);
  }
  enclosed_.resize(static_cast<std::size_t>(heads_));
  for (std::int64_t h = 0; h < heads_; ++h)
    enclosed_[static_cast<std::size_t>(h)].load(k_.enclosed(), h * dk_, dk_, v_.enclosed(), h * dv_, dv_, keys_,
                                                c_.scale, c_.mask_convention);
  return true;
}

MultiheadEntry MultiheadProblem::evaluate(std::int64_t batch, long bits) {
  MultiheadEntry entry;
  entry.bits = bits;
  const std::int64_t d_o = c_[Slot::w_o].present() ? w_o_.columns : heads_ * dv_;
  const auto elements = static_cast<std::size_t>(M_ * d_o);
  entry.settled = project(batch, bits);
  if (!entry.settled) return entry;
  HeadsRow heads(heads_, dv_, bits != in_pairs);
  if (bits == in_pairs)
    for (auto* array : {&entry.pairs.high, &entry.pairs.low, &entry.pairs.radius}) array->assign(elements, 0.0);
  else
    entry.y = Balls(M_ * d_o);
  entry.allowed.assign(elements, infinity);
  entry.excuse.assign(elements, Excuse::none);
  for (std::int64_t i = 0; i < M_; ++i) {
    Excuse row = Excuse::none;
    most_E_ = 0;
    for (std::int64_t h = 0; h < heads_ && row == Excuse::none; ++h)
      row = head_row({batch, h, i}, bits, heads, entry.settled);
    entry.most_E.push_back(most_E_);
    if (bits == in_pairs && !entry.settled) return entry;
    if (row != Excuse::none) {
      std::fill_n(entry.excuse.begin() + i * d_o, d_o, row);
      continue;
    }
    output(i, d_o, heads, entry);
  }
  return entry;
}

double MultiheadProblem::bias_of(const HeadOfRow& head, std::int64_t j) const {
  if (j >= N_) return 0;  // the appended row: nothing hides it
  const double b =
      hidden(c_, head.batch, head.h, head.i, j) ? -infinity : attest::bias_of(c_, head.batch, head.h, head.i, j);
  if (!profile_.any_mask_format || !std::isinf(round_to(profile_.mask_format, b))) return b;
  return std::copysign(infinity, b);
}

Excuse MultiheadProblem::see_keys(const HeadOfRow& head) {
  if (!q_.usable[static_cast<std::size_t>(head.i)]) return Excuse::overflow;
  visible_.clear();
  bias_.clear();
  for (std::int64_t j = 0; j < keys_; ++j) {
    const double b = bias_of(head, j);
    if (b == infinity) return Excuse::overflow;
    const bool usable = k_.usable[static_cast<std::size_t>(j)] && v_.usable[static_cast<std::size_t>(j)];
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

double MultiheadProblem::size_of_score(const HeadOfRow& head, std::int64_t j) const {
  double size = 0;
  for (std::int64_t c = 0; c < dk_; ++c) {
    const auto of_q = static_cast<std::size_t>(head.i * q_.columns + head.h * dk_ + c);
    const auto of_k = static_cast<std::size_t>(j * k_.columns + head.h * dk_ + c);
    size += (std::fabs(q_.middle[of_q]) + q_.error[of_q]) * (std::fabs(k_.middle[of_k]) + k_.error[of_k]);
  }
  return size;
}

RowKeys MultiheadProblem::perturbed_keys(const HeadOfRow& head) {
  const auto n = static_cast<std::int64_t>(visible_.size());
  const double tau = c_.scale;
  const auto q_at = static_cast<std::size_t>(head.i * q_.columns + head.h * dk_);
  for (auto* numbers : {&sizes_, &input_error_, &k1_, &scaled_bias_}) make_room(*numbers, n);
  make_room(q_most_, dk_);
  std::vector<double> mean(static_cast<std::size_t>(dk_), 0.0);
  for (std::int64_t c = 0; c < dk_; ++c)
    for (std::int64_t j = 0; j < n; ++j)
      mean[static_cast<std::size_t>(c)] += row_.alpha[j] * k_.middle[cell(k_, j, head.h * dk_ + c)];
  RowKeys keys;
  keys.n = n;
  for (std::int64_t c = 0; c < dk_; ++c) {
    const auto at = static_cast<std::size_t>(c);
    q_most_[at] = std::fabs(q_.middle[q_at + at]) + q_.error[q_at + at];
    keys.q1 += q_most_[at];
    keys.shift_error += tau * q_.error[q_at + at] * std::fabs(mean[at]);
  }
  for (std::int64_t j = 0; j < n; ++j) {
    const auto at = static_cast<std::size_t>(j);
    for (std::int64_t c = 0; c < dk_; ++c) {
      const auto e = static_cast<std::size_t>(c);
      const double key = k_.middle[cell(k_, j, head.h * dk_ + c)], dkey = k_.error[cell(k_, j, head.h * dk_ + c)];
      const double dq = q_.error[q_at + e];
      sizes_[at] += q_most_[e] * (std::fabs(key) + dkey);
      input_error_[at] += tau * (dq * std::fabs(key - mean[e]) + std::fabs(q_.middle[q_at + e]) * dkey + dq * dkey);
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

RowValues MultiheadProblem::perturbed_values(const HeadOfRow& head) {
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
      const double value = v_.middle[cell(v_, j, head.h * dv_ + c)];
      values_[at] = value;
      values_error_[at] = v_.error[cell(v_, j, head.h * dv_ + c)];
      low_[column] = std::min(low_[column], value);
      high_[column] = std::max(high_[column], value);
      abs_sum_[column] += std::fabs(value) + values_error_[at];
    }
  }
  return {values_.data(), stride, dv_, low_.data(), high_.data(), abs_sum_.data(), nullptr, values_error_.data()};
}

bool MultiheadProblem::evaluate_row(const HeadOfRow& head, long bits) {
  const double* const mask = profile_.of.bias ? bias_.data() : nullptr;
  if (bits == in_pairs) {
    const std::span<const double> added = mask ? std::span<const double>(bias_) : std::span<const double>();
    if (!pairs_.evaluate(enclosed_[static_cast<std::size_t>(head.h)], q_.enclosed(),
                         static_cast<std::size_t>(head.i * q_.columns + head.h * dk_), visible_, added))
      return false;
    row_ = {pairs_.alpha().data(), pairs_.high().data(), pairs_.to_value.data()};
    return true;
  }
  std::vector<arb_srcptr> key_rows, value_rows;
  for (const std::int64_t j : visible_) {
    key_rows.push_back(k_.row(j) + head.h * dk_);
    value_rows.push_back(v_.row(j) + head.h * dv_);
  }
  balls_.evaluate({std::ssize(visible_), dk_, dv_, value_stride(), c_.scale, c_.mask_convention,
                   q_.row(head.i) + head.h * dk_, mask},
                  key_rows.data(), value_rows.data(), bits);
  row_ = {balls_.alpha.data(), balls_.value.data(), balls_.radius.data()};
  return balls_.settled;
}

Excuse MultiheadProblem::head_row(const HeadOfRow& head, long bits, HeadsRow& out, bool& settled) {
  if (const Excuse none = see_keys(head); none != Excuse::none) return none;
  const auto n = static_cast<std::int64_t>(visible_.size());
  const bool certain = evaluate_row(head, bits);
  settled = settled && certain;
  if (!certain && bits == in_pairs) return Excuse::none;

  RowKeys keys = perturbed_keys(head);
  RowValues values = perturbed_values(head);
  bits == in_pairs ? pairs_.attach(keys, values) : balls_.attach(keys, values);
  const KeyTerms terms = key_terms(profile_, keys, q_most_.data(), scratch_);
  most_E_ = std::max(most_E_, terms.most_E);
  if (!terms.in_domain) return Excuse::overflow;
  elements_.resize(static_cast<std::size_t>(dv_));
  element_bounds(profile_, keys, terms, values, row_.value, row_.radius, scratch_, elements_.data());
  if (bits == in_pairs && !pairs_.sharp(enclosed_[static_cast<std::size_t>(head.h)], terms, elements_)) {
    settled = false;
    return Excuse::none;
  }

  std::vector<double>& apart = out.apart[static_cast<std::size_t>(head.h)];
  apart.clear();
  for (std::int64_t j = 0; j < n; ++j)
    for (std::int64_t c = 0; c < dv_; ++c) apart.push_back(v_.middle[cell(v_, j, head.h * dv_ + c)] - row_.value[c]);
  for (std::int64_t c = 0; c < dv_; ++c) {
    const auto at = static_cast<std::size_t>(head.h * dv_ + c), from = static_cast<std::size_t>(c);
    const ElementTerms& element = elements_[from];
    if (bits == in_pairs) {
      out.pairs.high[at] = pairs_.high()[from], out.pairs.low[at] = pairs_.low()[from];
      out.pairs.radius[at] = pairs_.radius[from];
    } else {
      arb_set(out.o[head.h * dv_ + c], balls_.o[c]);
    }
    out.size[at] = std::fabs(row_.value[c]) + row_.radius[c];
    out.error[at] = element.allowed;
    out.score[at] = element.score;
    out.why[at] = element.excuse;
    out.most_value[at] = 0;
    for (std::int64_t j = 0; j < n; ++j)
      out.most_value[at] = std::max(out.most_value[at], v_.size[cell(v_, j, head.h * dv_ + c)]);
  }
  return Excuse::none;
}

void MultiheadProblem::exact_output(std::int64_t i, std::int64_t d_o, const HeadsRow& heads, MultiheadEntry& entry) {
  const std::int64_t width = heads_ * dv_;
  const bool projects = c_[Slot::w_o].present();
  output_sizes_.resize(static_cast<std::size_t>(d_o));
  if (entry.bits == in_pairs) {
    Pairs y = heads.pairs;
    std::vector<double> sizes;
    if (projects) {
      const double most = *std::ranges::max_element(heads.pairs.radius);
      weigh_in_pairs(heads.pairs.high.data(), heads.pairs.low.data(), most, w_o_, y, sizes);
    } else if (!w_o_.bias.empty()) {
      for (std::size_t k = 0; k < w_o_.bias.size(); ++k) {
        const DoubleDouble sum = two_sum(y.high[k], w_o_.bias[k]), all = two_sum(sum.high, sum.low + y.low[k]);
        y.radius[k] += 0x1p-100 * (std::fabs(y.high[k]) + std::fabs(w_o_.bias[k]));
        y.high[k] = all.high, y.low[k] = all.low;
      }
    }
    for (auto [from, to] :
         {std::pair(&y.high, &entry.pairs.high), {&y.low, &entry.pairs.low}, {&y.radius, &entry.pairs.radius}})
      std::copy_n(from->begin(), d_o, to->begin() + i * d_o);
    for (std::int64_t k = 0; k < d_o; ++k) {
      const double size = std::fabs(entry.value(i * d_o + k)) + entry.certificate(i * d_o + k);
      output_sizes_[static_cast<std::size_t>(k)] = size;
      if (!std::isfinite(size)) entry.settled = false;
    }
    return;
  }
  Ball weight;
  for (std::int64_t k = 0; k < d_o; ++k) {
    arb_ptr y = entry.y[i * d_o + k];
    if (projects) {
      for (std::int64_t l = 0; l < width; ++l) {
        const double factor = w_o_.column(k)[l];
        if (factor == 0) continue;
        arb_set_d(weight, factor);
        arb_addmul(y, weight, heads.o[l], entry.bits);
      }
    } else {
      arb_set(y, heads.o[k]);
    }
    if (!w_o_.bias.empty()) {
      arb_set_d(weight, w_o_.bias[static_cast<std::size_t>(k)]);
      arb_add(y, y, weight, entry.bits);
    }
    output_sizes_[static_cast<std::size_t>(k)] = upper_size(y);
  }
}

void MultiheadProblem::output(std::int64_t i, std::int64_t d_o, const HeadsRow& heads, MultiheadEntry& entry) {
  exact_output(i, d_o, heads, entry);
  const std::int64_t width = heads_ * dv_;
  const bool projects = c_[Slot::w_o].present(), biased = !w_o_.bias.empty();
  const double identity = 1;
  for (std::int64_t k = 0; k < d_o; ++k) {
    const auto at = static_cast<std::size_t>(i * d_o + k), column = static_cast<std::size_t>(k);
    // Column `first` and those behind it, times these.
    const std::int64_t first = projects ? 0 : k, count = projects ? width : 1;
    const double* const factors = projects ? w_o_.column(k) : &identity;
    double carried = 0, sizes = 0, score = 0, most = 0;
    Excuse excuse = Excuse::none;
    for (std::int64_t l = 0; l < count; ++l) {
      const auto from = static_cast<std::size_t>(first + l);
      const double factor = std::fabs(factors[l]);
      if (factor == 0 && std::isfinite(heads.error[from]) && heads.why[from] != Excuse::overflow) continue;
      carried += factor * heads.error[from];
      sizes += factor * heads.size[from];
      score += factor * heads.score[from];
      most += factor * heads.most_value[from];
      if (heads.why[from] == Excuse::overflow) excuse = Excuse::overflow;
    }
    const double own_bias = biased ? std::fabs(w_o_.bias[column]) : 0.0;
    double B = carried;
    if (projects || biased) {
      const double terms = static_cast<double>(projects ? width : 1) + 1;
      B += pw(projections_.u_g, terms) * (sizes + carried + own_bias) + 2 * terms * projections_.lam_g;
      B += projections_.u_y * (output_sizes_[column] + B) + projections_.lam_y;
    }
    B *= 1 + 0x1p-30;
    entry.allowed[at] = B;
    most += own_bias;
    if (!(2 * (sizes + carried + own_bias) <= projections_.largest_y)) excuse = Excuse::overflow;
    if (excuse == Excuse::none && !(B < infinity)) excuse = Excuse::infinite;
    if (excuse == Excuse::none &&
        ((score > 0 && 2 * score >= B && covers_reach(heads, first, std::span(factors, factors + count), B)) ||
         (most > 0 && B - score >= most)))
      excuse = Excuse::vacuous;
    entry.excuse[at] = excuse;
  }
}

bool MultiheadProblem::covers_reach(const HeadsRow& heads, std::int64_t first, std::span<const double> factors,
                                    double B) const {
  const auto dv = static_cast<std::size_t>(dv_), end = static_cast<std::size_t>(first) + factors.size();
  double sum = 0;
  for (std::size_t h = static_cast<std::size_t>(first) / dv; h * dv < end; ++h) {
    const std::size_t from = std::max(static_cast<std::size_t>(first), h * dv), to = std::min(end, (h + 1) * dv);
    const std::vector<double>& apart = heads.apart[h];
    double most = 0;
    for (std::size_t j = 0; j < apart.size(); j += dv) {
      double moved = 0;
      for (std::size_t l = from; l < to; ++l)
        moved += factors[l - static_cast<std::size_t>(first)] * apart[j + l - h * dv];
      most = std::max(most, std::fabs(moved));
      if (!(sum + most <= B)) return false;
    }
    sum += most;
  }
  return true;
}

}  // namespace attest::detail
