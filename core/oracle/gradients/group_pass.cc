#include "core/oracle/gradients/group_pass.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>

#include "core/oracle/rows/sampled_rows.h"
#include "core/oracle/workspace.h"
#include "core/problem/sequences.h"
#include "core/support/infinity.h"
#include "core/support/room.h"

namespace attest::detail {
namespace {

constexpr double unit = 0x1p-53;
/// One product in the loops' own layout costs so much less than one apart.
constexpr std::int64_t times_cheaper = 3;

std::int64_t panels(std::int64_t keys) {
  return (keys + panel_width - 1) / panel_width;
}

double sum_of_sizes(const double* row, std::int64_t n) {
  double sum = 0;
  for (std::int64_t c = 0; c < n; ++c) sum += std::fabs(row[c]);
  return sum;
}
double largest_size(const double* row, std::int64_t n) {
  double most = 0;
  for (std::int64_t c = 0; c < n; ++c) most = std::max(most, std::fabs(row[c]));
  return most;
}
bool all_finite(const double* row, std::int64_t n) {
  return std::all_of(row, row + n, [](double x) { return std::isfinite(x); });
}

/// The same of rows that differ by a sign and a power of two.
std::vector<double> in_proportion(const double* row, std::int64_t n) {
  std::vector<double> same(row, row + n);
  const auto first = std::ranges::find_if(same, [](double x) { return x != 0 && std::isfinite(x); });
  if (first == same.end()) return same;
  int exponent = 0;
  const double sign = std::frexp(*first, &exponent) < 0 ? -1 : 1;
  for (double& x : same) x = std::isnan(x) ? 0 : sign * std::ldexp(x, -exponent) + 0.0;
  return same;
}

}  // namespace

void GroupPass::run(const GradientTask& task, const Sequence& s, std::int64_t kv, SharedGradients& shared) {
  has_keys_ = true;
  start(task, s, kv);
  for (auto* of : {&shared.mask, &shared.sink})
    if (*of) (*of)->begin_group();
  const std::int64_t keys = head_.keys, dk = head_.dk, dv = head_.dv;
  of_k_.clear(keys, dk), of_v_.clear(keys, dv);
  parts_k_.assign(static_cast<std::size_t>(keys * dk), 0.0), parts_v_.assign(static_cast<std::size_t>(keys * dv), 0.0);
  constant_k_.assign(static_cast<std::size_t>(keys), 0.0), constant_v_ = constant_k_;
  count_rows(task, s);
  for (std::int64_t h = 0; h < heads_; ++h) take_head(task, s, h, shared);
}

void GroupPass::run_rows(const GradientTask& task, const Sequence& s, std::int64_t kv,
                         const std::vector<std::int64_t>& counts) {
  has_keys_ = false;
  start(task, s, kv);
  SharedGradients none;
  for (std::int64_t h = 0; h < heads_; ++h) {
    std::vector<std::int64_t>& rows = taken_[static_cast<std::size_t>(h)];
    const std::int64_t count = counts[static_cast<std::size_t>(h)];
    rows.clear();
    if (count == 0) continue;
    load_head(task, s, h);
    sample_rows(head_, count, static_cast<std::uint64_t>(s.entry * task.c.q().shape()[1] + first_head_ + h), rows);
    for (const std::int64_t i : rows)
      rows_[static_cast<std::size_t>(h * head_.queries + i)] = take_row(task, s, h, i, none);
  }
}

void GroupPass::start(const GradientTask& task, const Sequence& s, std::int64_t kv) {
  const Problem& c = task.c;
  const std::int64_t all = c.q().shape()[1], kv_heads = c.k().shape()[1];
  heads_ = all / kv_heads, first_head_ = kv * heads_;
  group_ = Excuse::none;
  adds_ = hides_ = false;
  head_.load(c, s, first_head_, false);
  const std::int64_t queries = head_.queries;
  rows_.assign(static_cast<std::size_t>(heads_ * queries), Excuse::none);
  row_constant_.assign(rows_.size(), 0.0);
  of_q_.clear(heads_ * queries, head_.dk);
  taken_.resize(static_cast<std::size_t>(heads_));
  for (std::vector<std::int64_t>& rows : taken_) {
    rows.resize(static_cast<std::size_t>(queries));
    std::iota(rows.begin(), rows.end(), 0);
  }
  pack_values();
  alarm_probability_ = task.options.alarm_probability;
  if (!(alarm_probability_ > 0)) return;
  alarm_of_q_.assign(rows_.size() * static_cast<std::size_t>(head_.dk), 0.0);
  count_equal_rows(task, s);
  const std::int64_t terms = heads_ * queries * head_.keys;
  alarms_keys_ = has_keys_ && terms <= most_alarmed_terms;
  for (std::vector<Term>* of : {&terms_of_k_, &terms_of_v_})
    if (alarms_keys_) of->assign(static_cast<std::size_t>(terms), {});
}

/// V as the loops have it, which products with gradients by the output are taken with.
void GroupPass::pack_values() {
  const std::int64_t keys = head_.keys, dv = head_.dv;
  fit(values_, panels(keys) * panel_width * dv);
  for (auto* array : {&dots_, &sizes_of_all_}) fit(*array, panels(keys) * panel_width);
  std::vector<double> rows(static_cast<std::size_t>(panel_width * dv));
  double most = 0;
  for (std::int64_t first = 0; first < keys; first += panel_width) {
    const std::int64_t here = std::min(panel_width, keys - first);
    for (std::int64_t j = 0; j < here; ++j)
      std::copy_n(head_.v.data() + (first + j) * head_.stride, dv, rows.data() + j * dv);
    inner_loops().pack(rows.data(), here, dv, values_.data() + first * dv, sizes_of_all_.data() + first, &most);
  }
}

void GroupPass::count_rows(const GradientTask& task, const Sequence& s) {
  rows_of_key_.assign(static_cast<std::size_t>(head_.keys), 0.0);
  for (std::int64_t h = 0; h < heads_; ++h) {
    if (h > 0) head_.load(task.c, s, first_head_ + h, true);
    profile_ = profile_for(task.c, head_, task.forward);
    for (std::int64_t i = 0; i < head_.queries; ++i) {
      row_.i = i;
      visible_keys(head_, profile_, row_);
      for (std::int64_t j = 0; j < row_.n - (row_.has_sink ? 1 : 0); ++j)
        ++rows_of_key_[static_cast<std::size_t>(row_.key_at(j))];
    }
  }
  sums_of_key_.resize(rows_of_key_.size());
  for (std::size_t j = 0; j < rows_of_key_.size(); ++j)
    sums_of_key_[j] = j > 0 && rows_of_key_[j] == rows_of_key_[j - 1]
                          ? sums_of_key_[j - 1]
                          : pw(backward_profile(profile_, task.backward).u_a, rows_of_key_[j] + 1);
}

void GroupPass::load_head(const GradientTask& task, const Sequence& s, std::int64_t h) {
  head_.load(task.c, s, first_head_ + h, true);
  profile_ = profile_for(task.c, head_, task.forward);
  kernel_ = backward_profile(profile_, task.backward);
  if (task.options.profile) task.options.profile(kernel_);
  here_ = profile_of_evaluation(profile_);
  if (task.options.at == GradientsAt::answers && task.backward.delta != DeltaFrom::weights)
    here_.declared.delta = DeltaFrom::out;
}

void GroupPass::take_head(const GradientTask& task, const Sequence& s, std::int64_t h, SharedGradients& shared) {
  load_head(task, s, h);
  head_k_.clear(head_.keys, head_.dk), head_v_.clear(head_.keys, head_.dv);
  kept_rows_.start(head_.keys, head_.dk, head_.dv);
  here_k_ = here_v_ = {}, most_q_ = most_g_ = 0;
  cover_shared(shared, h);
  for (std::int64_t i = 0; i < head_.queries; ++i) {
    const Excuse excuse = take_row(task, s, h, i, shared);
    rows_[static_cast<std::size_t>(h * head_.queries + i)] = excuse;
    if (excuse != Excuse::none) excuse_shared(shared, h, i, excuse);
    // A row that sees no key has no part in the others' gradients, whatever becomes of its own.
    if (excuse != Excuse::none && excuse != Excuse::fully_masked) group_ = excuse;
  }
  kept_rows_.flush(head_k_, head_v_);
  const auto set_here = [&](GradientSumsHere& sums, const HereShare& share, double most) {
    for (std::size_t e = 0; e < sums.value.size(); ++e)
      sums.here[e] = share.of(sums.error[e], rows_of_key_[e / static_cast<std::size_t>(sums.width)] * most);
  };
  set_here(head_k_, here_k_, most_q_), set_here(head_v_, here_v_, most_g_);
  const auto join = [](const GradientSumsHere& own, GradientSumsHere& all, std::vector<double>& parts) {
    for (std::size_t e = 0; e < own.value.size(); ++e) {
      all.value[e] += own.value[e], all.error[e] += own.error[e], all.here[e] += own.here[e];
      all.size[e] += own.size[e];
      parts[e] += std::fabs(own.value[e]) + own.error[e] + own.here[e];
    }
  };
  join(head_k_, of_k_, parts_k_), join(head_v_, of_v_, parts_v_);
}

Excuse GroupPass::take_row(const GradientTask& task, const Sequence& s, std::int64_t h, std::int64_t i,
                           SharedGradients& shared) {
  const Problem& c = task.c;
  const Excuse excuse =
      evaluate_double(head_, std::span(&i, 1), profile_, task.options.ignores_dead_values, true, row_);
  if (excuse != Excuse::none && excuse != Excuse::fully_masked) return excuse;
  const std::int64_t dv = head_.dv;
  const std::int64_t at = (s.entry * c.q().shape()[1] + first_head_ + h) * c.q().shape()[2] + s.first_query + i;
  fit(g_, 2 * dv);
  double* const out = g_.data() + dv;
  decode_range(task.given.d_out, at * dv, dv, g_.data());
  decode_range(task.given.out, at * dv, dv, out);
  keys_ = row_.n - (row_.has_sink ? 1 : 0);
  if (!task.options.ignores_dead_values && !unseen_values_harmless(out)) return Excuse::overflow;
  if (excuse != Excuse::none) return excuse;
  adds_ = adds_ || head_.bias, hides_ = hides_ || keys_ < head_.keys;
  const bool sinks = shared.sink && row_.has_sink;
  if (keys_ == 0 && !sinks) return Excuse::none;
  const Excuse of_terms = take_terms(task, out, at);
  const std::int64_t slot = h * head_.queries + i;
  if (of_terms == Excuse::none && alarm_probability_ > 0) take_shares(slot, out);
  // A row that sees its sink alone has a part in that one's gradient and in nothing else, whatever becomes of it.
  if (sinks && of_terms == Excuse::none) add_to_sink(*shared.sink, h);
  if (sinks && of_terms != Excuse::none) shared.sink->excuse(first_head_ + h, of_terms);
  if (keys_ == 0) return Excuse::none;
  if (of_terms != Excuse::none) return of_terms;
  if (shared.mask) add_to_mask(*shared.mask, i);
  row_constant_[static_cast<std::size_t>(slot)] = errors_.constant + errors_.of_inputs;
  add_to_query(slot);
  if (has_keys_) add_to_keys();
  if (alarm_probability_ > 0) alarm_row(slot);
  return Excuse::none;
}

/// What the row's gradients are made of, from the row of the output, and of all that are given.
Excuse GroupPass::take_terms(const GradientTask& task, const double* out, std::int64_t at) {
  const KeyTerms terms = key_terms(profile_, row_.keys, row_.q, scratch_);
  if (!terms.in_domain || terms.capped) return Excuse::overflow;
  const double of_lse = task.given.d_lse.present() ? task.given.d_lse[at] : 0, given_lse = task.given.lse[at];
  if (!all_finite(g_.data(), 2 * head_.dv) || !std::isfinite(of_lse) || !std::isfinite(given_lse))
    return Excuse::not_finite;
  take_weights(task, given_lse);
  take_products();
  take_slopes();
  return take_errors(task, terms, out, given_lse, of_lse) ? Excuse::none : Excuse::overflow;
}

/// May the kernel come to grief over a value that the row does not see, or drops? Its weight is 0, and what that is
/// multiplied by, dP - D, may be infinite.
bool GroupPass::unseen_values_harmless(const double* out) const {
  const std::int64_t dv = head_.dv;
  const bool whole = keys_ == head_.keys && !head_.keep;
  if (whole) return true;
  const double grown = head_.gain.high * (1 + pw(kernel_.u_s, static_cast<double>(dv) + 1)) * (1 + 0x1p-10);
  double of_out = 0, most = 0;
  for (std::int64_t c = 0; c < dv; ++c) {
    const auto e = static_cast<std::size_t>(c);
    if (std::isfinite(out[c])) of_out += std::fabs(g_[e] * out[c]);
    most += std::fabs(g_[e]) * std::max(std::fabs(head_.low[e]), std::fabs(head_.high[e]));
  }
  if (grown * (of_out + 2 * most) <= kernel_.H_dot) return true;
  double of_seen = 0, of_unseen = 0;
  for (std::int64_t j = 0, next = 0; j < head_.keys; ++j) {
    const bool seen = next < keys_ && row_.key_at(next) == j,
               kept = seen && (!row_.keys.index || row_.keys.index[next] == j);
    double size = 0;
    for (std::int64_t c = 0; c < dv; ++c)
      size += std::fabs(g_[static_cast<std::size_t>(c)] * head_.v[static_cast<std::size_t>(j * head_.stride + c)]);
    if (kept) of_seen = std::max(of_seen, size);
    if (!kept && !(size <= of_unseen)) of_unseen = size;
    if (seen) ++next;
  }
  // A comparison that NaN fails.
  return grown * (of_out + of_seen + of_unseen) <= kernel_.H_dot;
}

/// P of each key and how far it may be off, as an exponent.
void GroupPass::take_weights(const GradientTask& task, double given_lse) {
  const bool at_answers = task.options.at == GradientsAt::answers;
  for (auto* array : {&weight_, &la_, &most_weight_, &exponent_, &grown_}) fit(*array, row_.n);
  const RowKeys& keys = row_.keys;
  const double per_size = unit * static_cast<double>(head_.dk + 14) * (1 + 0x1p-20);
  double* const exponent = exponent_.data();
  const double constant = 16 * unit * (1 + head_.softcap);
  for (std::int64_t j = 0; j < row_.n; ++j)
    exponent[j] = per_size * (head_.scale * keys.size[j]) + 2 * unit * (row_.m - keys.s[j]) + constant;
  for (const double* added : {keys.b, keys.slopes})
    for (std::int64_t j = 0; added && j < row_.n; ++j) exponent[j] += per_size * std::fabs(added[j]);
  for (std::int64_t j = 0; keys.capped && j < row_.n; ++j)
    exponent[j] += per_size * ((scratch_.kap[static_cast<std::size_t>(j)] - 1) * head_.scale * keys.size[j]);
  if (row_.has_sink)
    exponent[keys_] = per_size * std::fabs(keys.s[keys_]) + 2 * unit * (row_.m - keys.s[keys_]) + constant;
  double mean = 0, most = 0;
  for (std::int64_t j = 0; j < row_.n; ++j) {
    mean += keys.alpha[j] * exponent[j];
    most = std::max(most, keys.alpha[j] > 0 ? exponent[j] : 0);
  }
  const double count = static_cast<double>(row_.n);
  common_here_ = (most < 0.25 ? 1.3 * mean : most) + (2 * count + 16) * unit;
  for (std::int64_t j = 0; j < row_.n; ++j) {
    const auto e = static_cast<std::size_t>(j);
    la_[e] = at_answers ? keys.s[j] - given_lse : keys.la[j];
    weight_[e] = at_answers ? std::exp(la_[e]) : keys.alpha[j];
    exponent[j] += at_answers ? unit * (4 + 2 * std::fabs(la_[e])) : common_here_;
  }
  grow();
}

/// Of each key how much larger its weight may be, from this evaluation.
void GroupPass::grow() {
  double *const grown = grown_.data(), *const most_weight = most_weight_.data();
  const double *const exponent = exponent_.data(), *const weight = weight_.data();
  double most = 0;
  for (std::int64_t j = 0; j < row_.n; ++j) most = std::max(most, exponent[j]);
  // One at a time only where the series is not enough for all.
  const bool is_short = most < 0x1p-6;
  for (std::int64_t j = 0; is_short && j < row_.n; ++j)
    grown[j] = exponent[j] * (1 + exponent[j] * (0.5 + exponent[j] * 0.25)) * (1 + 0x1p-50);
  for (std::int64_t j = 0; !is_short && j < row_.n; ++j) grown[j] = expm1_above(exponent[j]);
  for (std::int64_t j = 0; j < row_.n; ++j) most_weight[j] = weight[j] * (1 + grown[j]) + lost_weight;
}

/// dP and its size.
void GroupPass::take_products() {
  for (auto* array : {&of_weight_, &size_, &most_of_weight_}) fit(*array, keys_);
  const bool sums = profile_.lam_in > 0;
  if (sums) fit(v1_, keys_);
  fit(kept_, keys_);
  const std::int64_t dv = head_.dv;
  // Of all keys at a time where the row sees a good part of them.
  const bool of_all = times_cheaper * keys_ >= head_.keys;
  if (of_all) inner_loops().dots(g_.data(), dv, values_.data(), panels(head_.keys), dots_.data(), sizes_of_all_.data());
  for (std::int64_t j = 0; j < keys_; ++j) {
    const auto e = static_cast<std::size_t>(j);
    const std::int64_t at = row_.key_at(j);
    const double* const v = head_.v.data() + at * head_.stride;
    kept_[e] = !row_.keys.index || row_.keys.index[j] == at ? 1 : 0;
    double dot = 0, size = 0;
    if (kept_[e] != 0 && of_all) {
      dot = dots_[static_cast<std::size_t>(at)], size = sizes_of_all_[static_cast<std::size_t>(at)];
    } else if (kept_[e] != 0) {
      for (std::int64_t c = 0; c < dv; ++c) {
        const double term = g_[static_cast<std::size_t>(c)] * v[c];
        dot += term;
        size += std::fabs(term);
      }
    }
    of_weight_[e] = head_.gain.high * dot;
    size_[e] = size * (1 + 0x1p-40);
    most_of_weight_[e] = std::fabs(of_weight_[e]) * (1 + 4 * unit) +
                         (1 + 0x1p-20) * head_.gain.high * static_cast<double>(dv + 2) * unit * size_[e] + 0x1p-1060;
    if (sums) v1_[e] = sum_of_sizes(v, dv);
  }
}

/// 1 - y^2 of a cap, from e^(-2|z|), which loses nothing where y is near 1.
void GroupPass::take_slopes() {
  const RowKeys& keys = row_.keys;
  if (!keys.capped) return;
  for (auto* array : {&slope_, &most_slope_, &of_slope_, &of_slope_here_}) fit(*array, keys_);
  const double cap = head_.softcap, per_size = unit * static_cast<double>(head_.dk + 4) * (1 + 0x1p-20);
  for (std::int64_t j = 0; j < keys_; ++j) {
    const auto e = static_cast<std::size_t>(j);
    const double z = std::fabs(keys.t[j]) / cap, w = std::exp(-2 * z);
    slope_[e] = 4 * w / ((1 + w) * (1 + w));
    // d(ln f)/dz is no more than 2.
    const double of_z = per_size * head_.scale * keys.size[j] / cap + 4 * unit * z;
    of_slope_here_[e] = std::min(1.0, slope_[e] * (std::expm1(2 * of_z) + 16 * unit) + lost_weight);
    most_slope_[e] = std::min(1.0, slope_[e] + of_slope_here_[e]);
    const double y = std::min(1.0, std::fabs(keys.capped[j]) / cap * (1 + 16 * unit) + of_z), ay = scratch_.of_tanh[e];
    of_slope_[e] = (2 * y + ay) * ay + kernel_.u * ((y + ay) * (y + ay) + 1) + kernel_.lam;
  }
}

/// What the row errs by, in a kernel and here. False outside the domain.
bool GroupPass::take_errors(const GradientTask& task, const KeyTerms& terms, const double* out, double given_lse,
                            double of_lse) {
  const bool at_answers = task.options.at == GradientsAt::answers;
  const std::int64_t dv = head_.dv;
  for (auto* array : {&apart_, &E_, &delta_scores_}) fit(*array, keys_);
  double g_out = 0, exact_g_out = 0, g_error = 0, delta = 0, own_delta = 0;
  for (std::int64_t c = 0; c < dv; ++c) {
    const auto e = static_cast<std::size_t>(c);
    g_out += std::fabs(g_[e] * out[c]);
    exact_g_out += g_[e] * out[c];
    g_error += std::fabs(g_[e] * (out[c] - head_.gain.high * row_.o[e])) * (1 + 4 * unit);
  }
  double of_output = 0;
  for (std::int64_t j = 0; j < keys_; ++j) {
    const auto e = static_cast<std::size_t>(j);
    own_delta += weight_[e] * of_weight_[e];
    // What this evaluation of the output errs by.
    of_output += most_weight_[e] * (grown_[e] + (2 * static_cast<double>(row_.n) + 8) * unit) * size_[e];
  }
  // The products and sums of it underflow where values are subnormal, and g may be large.
  of_output += sum_of_sizes(g_.data(), dv) * (static_cast<double>(row_.n) + 2) * 0x1p-1074 * (1 + 0x1p-20);
  const bool from_out = at_answers && here_.declared.delta == DeltaFrom::out;
  delta = from_out ? exact_g_out : own_delta;
  delta_ = delta - of_lse;

  sizes_ = {.n = keys_,
            .dv = dv,
            .weight = most_weight_.data(),
            .la = la_.data(),
            .of_weight = most_of_weight_.data(),
            .size = size_.data(),
            .kept = head_.keep ? kept_.data() : nullptr,
            .apart = apart_.data(),
            .slope = row_.keys.capped ? most_slope_.data() : nullptr,
            .of_slope = of_slope_here_.data(),
            .v1 = profile_.lam_in > 0 ? v1_.data() : nullptr,
            .E = exponent_.data(),
            .common = 0,
            .delta = std::fabs(delta_),
            .of_lse = std::fabs(of_lse),
            .g_out = g_out * (1 + 0x1p-40),
            .g_error = 0,
            .g1 = sum_of_sizes(g_.data(), dv),
            .out1 = sum_of_sizes(out, dv)};
  const double delta_here = delta_error(here_, sizes_) + 4 * unit * std::fabs(delta_);
  delta_here_ = delta_here;
  for (std::int64_t j = 0; j < keys_; ++j) {
    const auto e = static_cast<std::size_t>(j);
    const double apart = of_weight_[e] - delta_;
    delta_scores_[e] = weight_[e] * apart * (row_.keys.capped ? slope_[e] : 1);
    apart_[e] = std::fabs(apart) + (most_of_weight_[e] - std::fabs(of_weight_[e])) + delta_here +
                4 * unit * (std::fabs(of_weight_[e]) + std::fabs(delta_));
  }
  row_errors(here_, sizes_, errors_here_);
  if (!errors_here_.in_domain) return false;
  sizes_here_ = sizes_;

  // gradient-bounds.md, 3: what is common to the row, and what is not.
  const Profile& scores = kernel_.scores;
  double common = 0, of_lse_alone = 0;
  const double thE = kernel_.exponent, lse = at_answers ? given_lse : row_.lse;
  if (task.backward.weights_from == WeightsFrom::lse) {
    const double shift = std::fabs(row_.keys.shift), shifted = std::fabs(lse + row_.keys.shift);
    of_lse_alone += kernel_.th_lse * std::max(shifted, std::fabs(lse));
    // In the form of columns the log-sum-exp is moved by what all scores of the row are.
    if (shift > 0)
      of_lse_alone += (1 + kernel_.th_lse) * (profile_.u_shift * shift + profile_.u_lse * shifted + profile_.lam_slope);
    if (!at_answers) of_lse_alone += std::fabs(given_lse - row_.lse) + common_here_ + 4 * unit * std::fabs(row_.lse);
    // What the kernel has is its own form of what is known here as a double (lse_convention.h).
    const Arithmetic& declared = scores.declared;
    if (at_answers && ((declared.lse_without_sink && row_.has_sink) || declared.lse_of_columns))
      of_lse_alone += 2 * unit * (std::fabs(lse) + std::fabs(row_.keys.slope_shift));
    common = of_lse_alone + scores.th_tau * (1 + scores.th_l2e) * std::fabs(terms.g_mean) +
             scores.th_l2e * std::fabs(terms.s_mean);
    for (std::int64_t j = 0; j < keys_; ++j) {
      const auto e = static_cast<std::size_t>(j);
      const double own = scratch_.a[e] * (1 + profile_.th_l2e) + scratch_.tm[e];
      E_[e] = own + thE * (std::fabs(la_[e]) + exponent_[e] + own + common) + kernel_.of_exp;
    }
    of_sink_ = of_lse_alone;
    if (row_.has_sink) {
      // It is no part of what is centred.
      const auto e = static_cast<std::size_t>(keys_);
      const double own = scratch_.a[e] * (1 + profile_.th_l2e);
      of_sink_ += own + thE * (std::fabs(la_[e]) + exponent_[e] + own + of_lse_alone) + kernel_.of_exp;
    }
  } else {
    // The forward pass's own weights, over their sum: 1.1's E, and what that sum may be off by.
    double up = 0, down = 0;
    for (std::int64_t j = 0; j < row_.n; ++j) {
      const double E = scratch_.E[static_cast<std::size_t>(j)], alpha = row_.keys.alpha[j];
      up += E < 0.5 ? alpha * std::expm1(E) : std::exp(row_.keys.la[j] + E);
      down += alpha * std::exp(-E);
    }
    if (!(terms.denominator > 0)) return false;
    common = std::max(std::log1p(up), -std::log(down)) + common_here_ - std::log(terms.denominator) +
             std::max(0.0, std::log1p(terms.UD + terms.LD)) + 2 * profile_.u_score;
    for (std::int64_t j = 0; j < keys_; ++j) {
      const auto e = static_cast<std::size_t>(j);
      E_[e] = scratch_.E[e] + pw(std::max(profile_.u_a, profile_.u_score), profile_.c_div + 1);
    }
    of_sink_ = common + pw(std::max(profile_.u_a, profile_.u_score), profile_.c_div + 1);
    if (row_.has_sink) of_sink_ += scratch_.E[static_cast<std::size_t>(keys_)];
  }
  sizes_.E = E_.data();
  sizes_.of_slope = of_slope_.data();
  sizes_.common = common;
  sizes_.delta = std::fabs(delta_) + delta_here;
  sizes_.g_error = at_answers ? 0 : g_error + head_.gain.high * of_output;
  // Where it is not stated which of the two D is, at given answers they differ by themselves.
  if (at_answers && task.backward.delta == DeltaFrom::unstated)
    sizes_.g_error = std::fabs(own_delta - exact_g_out) + delta_here;
  row_errors(kernel_, sizes_, errors_);
  return errors_.in_domain;
}

double GroupPass::mean_error(std::int64_t j) const {
  const auto e = static_cast<std::size_t>(j);
  const double f = row_.keys.capped ? slope_[e] : 1, of_f = row_.keys.capped ? of_slope_here_[e] : 0;
  const double w_here = (static_cast<double>(keys_) + 4) * unit;
  return most_weight_[e] * ((grown_[e] + w_here) * f + of_f) + lost_weight;
}

double GroupPass::of_mean_key(std::int64_t c) const {
  const double mean = std::fabs(mean_key_[static_cast<std::size_t>(c)]), smallest = 0x1p-1074;
  const double lost = static_cast<double>(keys_) * smallest;
  if (mean > 0x1p-960) return errors_.of_delta * (mean + lost);
  // A gradient of the order of 1e20 makes D's error larger than all that products of weights and keys lose below the
  // smallest double; multiplied first, it loses nothing.
  double sum = 0;
  for (std::int64_t j = 0; j < keys_; ++j) {
    const auto e = static_cast<std::size_t>(j);
    const double f = row_.keys.capped ? slope_[e] + of_slope_here_[e] : 1;
    sum += errors_.of_delta * (most_weight_[e] * f) *
           std::fabs(head_.k[static_cast<std::size_t>(row_.key_at(j) * head_.dk + c)]);
  }
  return sum * (1 + (static_cast<double>(keys_) + 4) * unit) + lost;
}

void GroupPass::add_to_query(std::int64_t slot) {
  const InnerLoops& loops = inner_loops();
  const std::int64_t dk = head_.dk;
  const GradientColumns sums = of_q_.row(slot);
  mean_key_.assign(static_cast<std::size_t>(dk), 0.0);
  const double count = static_cast<double>(keys_), w = pw(kernel_.u_a, count + 1), w_here = (count + 4) * unit;
  fit(terms_, 3 * keys_);
  double *const value = terms_.data(), *const error = value + keys_, *const size = error + keys_;
  HereShare here;
  for (std::int64_t j = 0; j < keys_; ++j) {
    const auto e = static_cast<std::size_t>(j);
    const double f = row_.keys.capped ? slope_[e] : 1, of_f = row_.keys.capped ? of_slope_here_[e] : 0;
    loops.add_multiple(weight_[e] * f, head_.k.data() + row_.key_at(j) * dk, dk, mean_key_.data());
    value[j] = delta_scores_[e];
    error[j] = errors_.of_k[e] + w * errors_.scores[e] + errors_.of_delta * mean_error(j);
    here.take(errors_here_.of_q[e] + w_here * errors_here_.scores[e], error[j]);
    size[j] = most_weight_[e] * apart_[e] * (f + of_f);
  }
  loops.add_terms({value, error, size, 1}, keys_, head_.k.data(), row_.all_visible ? nullptr : row_.index.data(), dk,
                  dk, sums);
  double* const of_here = of_q_.here.data() + slot * of_q_.width;
  double scores = 0;
  for (std::int64_t j = 0; j < keys_; ++j) scores += errors_.scores[static_cast<std::size_t>(j)];
  for (std::int64_t c = 0; c < dk; ++c) {
    of_here[c] = here.of(sums.error[c], count * head_.most_k) + errors_here_.constant;
    sums.error[c] += errors_.common * (std::fabs(sums.value[c]) + of_here[c]) + of_mean_key(c);
    // Sums that may overflow leave nothing to judge.
    if (!(scores * head_.most_k * (1 + w) * std::max(1.0, kernel_.tau) <= kernel_.H_a)) sums.error[c] = infinity;
  }
}

/// What row_ adds to the sums of each key is kept until there are some rows, so that a sum is read and written once for
/// all of them.
void GroupPass::add_to_keys() {
  const std::int64_t dk = head_.dk, dv = head_.dv;
  const double most_q = largest_size(row_.q, dk), most_g = largest_size(g_.data(), dv);
  const double q_read = kernel_.lam_in, scaled = kernel_.gain;
  most_q_ = std::max(most_q_, most_q), most_g_ = std::max(most_g_, most_g);
  const KeptRow to = kept_rows_.add(row_.q, g_.data());
  for (std::int64_t j = 0; j < keys_; ++j) {
    const auto e = static_cast<std::size_t>(j);
    const std::int64_t at = row_.key_at(j);
    const auto key = static_cast<std::size_t>(at);
    const double count = rows_of_key_[key], w = sums_of_key_[key], w_here = (count + 4) * unit;
    double of_q = errors_.of_q[e] + w * errors_.scores[e];
    // The product is formed again from the q that the scale has multiplied.
    if (profile_.prescaled) of_q += join(profile_.u_qpre, profile_.th_of_scale) * errors_.scores[e];
    here_k_.take(errors_here_.of_q[e] + w_here * errors_here_.scores[e], of_q);
    to.set(to.of_q, at, delta_scores_[e], of_q, most_weight_[e] * apart_[e] * (row_.keys.capped ? most_slope_[e] : 1));
    // Of every term the two operations that add it up lose this much at most.
    constant_k_[key] += errors_.constant / (static_cast<double>(keys_) + 1) * 2 + q_read * errors_.scores[e];
    if (profile_.prescaled) constant_k_[key] += errors_.scores[e] * profile_.lam_q / std::min(1.0, kernel_.tau);
    if (!(errors_.scores[e] * most_q * std::max(1.0, kernel_.tau) * count * (1 + w) <= kernel_.H_a))
      constant_k_[key] = infinity;
    if (kept_[e] == 0) continue;
    const double of_g = errors_.of_g[e] + w * errors_.weights[e];
    here_v_.take(most_weight_[e] * (grown_[e] + w_here) + lost_weight, of_g);
    to.set(to.of_g, at, weight_[e], of_g, most_weight_[e]);
    constant_v_[key] += 4 * kernel_.lam_a + q_read * errors_.weights[e];
    if (!(errors_.weights[e] * most_g * scaled * count * (1 + w) <= kernel_.H_a)) constant_v_[key] = infinity;
  }
  if (keys_ > 0) kept_rows_.reach(row_.key_at(0), row_.key_at(keys_ - 1) + 1);
  if (kept_rows_.full()) kept_rows_.flush(head_k_, head_v_);
}

/// Those elements of what is shared that the head has a part in.
void GroupPass::cover_shared(SharedGradients& shared, std::int64_t h) const {
  for (std::int64_t i = 0; shared.mask && i < head_.queries; ++i)
    for (std::int64_t j = 0; j < head_.keys; ++j) shared.mask->cover(head_.mask_offset + i * head_.mask_pitch + j);
  if (shared.sink) shared.sink->cover(first_head_ + h);
  for (auto* of : {&shared.mask, &shared.sink})
    if (*of) (*of)->take_profile(kernel_);
}

void GroupPass::excuse_shared(SharedGradients& shared, std::int64_t h, std::int64_t i, Excuse why) const {
  // A row that sees no key has no part in either.
  if (why == Excuse::fully_masked) return;
  for (std::int64_t j = 0; shared.mask && j < head_.keys; ++j)
    shared.mask->excuse(head_.mask_offset + i * head_.mask_pitch + j, why);
  if (shared.sink) shared.sink->excuse(first_head_ + h, why);
}

void GroupPass::add_to_mask(ArgumentSums& mask, std::int64_t i) {
  const bool capped = row_.keys.capped != nullptr;
  if (capped) {
    // The cap stands before the mask.
    bool in_domain = true;
    for (auto [profile, of, to] :
         {std::tuple(&here_, &sizes_here_, &uncapped_here_), std::tuple(&kernel_, &sizes_, &uncapped_)}) {
      RowSizes sizes = *of;
      sizes.slope = sizes.of_slope = nullptr;
      row_errors(*profile, sizes, *to);
      in_domain = in_domain && to->in_domain;
    }
    if (!in_domain) {
      for (std::int64_t j = 0; j < head_.keys; ++j)
        mask.excuse(head_.mask_offset + i * head_.mask_pitch + j, Excuse::overflow);
      return;
    }
  }
  const RowErrors &errors = capped ? uncapped_ : errors_, &here = capped ? uncapped_here_ : errors_here_;
  // The shares are of scores behind a cap.
  const bool shares = alarm_probability_ > 0 && !capped;
  for (std::int64_t j = 0; j < keys_; ++j) {
    const auto e = static_cast<std::size_t>(j);
    mask.add(head_.mask_offset + i * head_.mask_pitch + row_.key_at(j),
             {.value = weight_[e] * (of_weight_[e] - delta_),
              .error = errors.of_q[e],
              .here = here.of_q[e],
              .size = most_weight_[e] * apart_[e],
              .most = errors.scores[e]},
             shares ? ArgumentShare{shares_.of_q_drop[e], shares_.of_q_root[e]} : ArgumentShare{});
  }
}

/// -e^(sink - L) (D - c) (gradient-bounds.md, 4).
void GroupPass::add_to_sink(ArgumentSums& sinks, std::int64_t h) {
  const auto e = static_cast<std::size_t>(keys_);
  const double weight = most_weight_[e], delta = std::fabs(delta_) + delta_here_, reach = delta + errors_.delta;
  const double grown = of_sink_ < 0.5 ? weight * expm1_above(of_sink_) : std::exp(la_[e] + exponent_[e] + of_sink_),
               whole = std::max(weight, grown) + (of_sink_ < 0.5 ? grown : 0);
  const BackwardArithmetic& a = kernel_.declared;
  const bool rounded = a.rounded_weights_in_scores || a.weights_from == WeightsFrom::stored;
  double u_term = kernel_.u, lam_term = 2 * kernel_.lam + (rounded ? kernel_.lam_p : 0);
  if (rounded) u_term = join(u_term, kernel_.u_p);
  if (a.sink_terms) u_term = join(u_term, format_of(*a.sink_terms).unit);
  const double lost = (kernel_.lam_e + lam_term) * reach + 2 * kernel_.lam * kernel_.gain +
                      (a.sink_terms ? format_of(*a.sink_terms).min_subnormal * kernel_.gain : 0);
  const bool shares = alarm_probability_ > 0 && shares_.delta_varies;
  const double most = whole * (1 + u_term);
  sinks.add(
      first_head_ + h,
      {.value = -weight_[e] * delta_,
       .error = grown * delta + whole * errors_.delta + u_term * whole * reach + lost,
       .here = weight * (grown_[e] * delta + delta_here_ + 4 * unit * delta) + lost_weight * delta,
       .size = weight * delta,
       .most = most * reach + lost},
      shares ? ArgumentShare{whole * shares_.delta_drop, most * (1 + 0x1p-20) * shares_.delta_root} : ArgumentShare{});
}

/// An element that errs by `error` before its scale, and by what each of its terms loses by underflow.
ElementSums GroupPass::of_kernel(const GradientSumsHere& sums, std::size_t e, bool grouped, double error,
                                 double constant) const {
  const double exact = std::fabs(sums.value[e]) + sums.here[e];
  ElementSums all{.exact = exact, .error = error + constant, .parts = exact, .heads = heads_};
  if (grouped) all.parts = (&sums == &of_k_ ? parts_k_ : parts_v_)[e] + constant;
  return all;
}

ElementBound GroupPass::finished(const GradientSumsHere& sums, std::int64_t row, std::int64_t c, double scale,
                                 double phi, bool grouped, double constant, Excuse excuse) const {
  const auto e = static_cast<std::size_t>(row * sums.width + c);
  if (excuse != Excuse::none) return excused_element(excuse);
  SumHere sum{.value = sums.value[e], .here = sums.here[e], .size = sums.size[e]};
  sum.of_kernel = of_kernel(sums, e, grouped, sums.error[e], constant);
  return bound_of_sum(kernel_, sum, scale, phi, grouped);
}

/// Rows of the group whose q or gradient by the output is another's, up to sign and a power of two.
void GroupPass::count_equal_rows(const GradientTask& task, const Sequence& s) {
  const Shape &q = task.c.q().shape(), &v = task.c.v().shape();
  const std::int64_t slots = heads_ * head_.queries;
  const auto load = [&](const Tensor& from, std::int64_t width, std::vector<double>& all,
                        std::vector<unsigned char>& same) {
    std::vector<double> rows(static_cast<std::size_t>(slots * width));
    same.assign(static_cast<std::size_t>(slots), 0);
    for (std::int64_t h = 0; h < heads_; ++h) {
      const std::int64_t row = (s.entry * q[1] + first_head_ + h) * q[2] + s.first_query;
      decode_range(from, row * width, head_.queries * width, rows.data() + h * head_.queries * width);
    }
    std::map<std::vector<double>, std::int64_t> first;
    for (std::int64_t slot = 0; slot < slots; ++slot) {
      const auto [at, is_new] = first.emplace(in_proportion(rows.data() + slot * width, width), slot);
      if (!is_new) same[static_cast<std::size_t>(slot)] = same[static_cast<std::size_t>(at->second)] = 1;
    }
    all.resize(rows.size());
    for (std::int64_t slot = 0; slot < slots; ++slot)
      for (std::int64_t c = 0; c < width; ++c)
        all[static_cast<std::size_t>(c * slots + slot)] = rows[static_cast<std::size_t>(slot * width + c)];
  };
  load(task.c.q(), q[3], all_q_, same_q_), load(task.given.d_out, v[3], all_g_, same_g_);
}

/// What the alarm needs of row_.
void GroupPass::take_shares(std::int64_t slot, const double* out) {
  const auto at = static_cast<std::size_t>(slot);
  const std::int64_t* const place = row_.all_visible ? nullptr : row_.index.data();
  shares_.take(kernel_, {.keys = row_.keys,
                         .scores = scratch_,
                         .sizes = sizes_,
                         .errors = errors_,
                         .weight = weight_.data(),
                         .of_weight = of_weight_.data(),
                         .place = place,
                         .q = row_.q,
                         .k = head_.k.data(),
                         .g = g_.data(),
                         .out = out,
                         .v = head_.v.data(),
                         .v_stride = head_.stride,
                         .equal_q = same_q_[at] != 0,
                         .equal_g = same_g_[at] != 0});
}

/// That of its dq, and what it adds to the sums of keys.
void GroupPass::alarm_row(std::int64_t slot) {
  const std::int64_t dk = head_.dk;
  const double added = pw(kernel_.u_a, static_cast<double>(keys_) + 1), lifted = 1 + errors_.common;
  for (std::int64_t c = 0; c < dk; ++c) {
    random_sum_.clear();
    double mean = errors_.of_delta > 0 ? of_mean_key(c) / errors_.of_delta : 0;
    for (std::int64_t j = 0; j < keys_; ++j) {
      const auto e = static_cast<std::size_t>(j);
      const double k = head_.k[static_cast<std::size_t>(row_.key_at(j) * dk + c)], size = std::fabs(k);
      random_sum_.add(delta_scores_[e] * k, errors_.scores[e] * size, shares_.of_k_drop[e] * size,
                      shares_.of_k_root[e] * size);
      mean += mean_error(j) * size;
    }
    mean *= lifted;
    const auto e = static_cast<std::size_t>(slot * dk + c);
    alarm_of_q_[e] = random_sum_.error(of_q_.error[e], added, kernel_.u_a, alarm_probability_,
                                       mean * shares_.delta_drop, mean * shares_.delta_root);
  }
  const std::int64_t slots = heads_ * head_.queries;
  for (std::int64_t j = 0; alarms_keys_ && j < keys_; ++j) {
    const auto e = static_cast<std::size_t>(j);
    const auto to = static_cast<std::size_t>(row_.key_at(j) * slots + slot);
    terms_of_k_[to] = {delta_scores_[e], errors_.scores[e], shares_.of_q_drop[e], shares_.of_q_root[e]};
    if (kept_[e] != 0) terms_of_v_[to] = {weight_[e], errors_.weights[e], shares_.of_g_drop[e], shares_.of_g_root[e]};
  }
}

ElementAlarm GroupPass::alarm(Gradient of, std::int64_t row, std::int64_t h, std::int64_t c) {
  const bool by_query = of == Gradient::q;
  const ElementBound proved = by_query ? query(h, row, c) : of == Gradient::k ? key(row, c) : value(row, c);
  ElementAlarm alarm{proved.allowed, proved.allowed, false};
  if (proved.excuse != Excuse::none || !kernel_.scores.nearest || !(by_query || alarms_keys_)) return alarm;
  const GradientSumsHere& sums = by_query ? of_q_ : of == Gradient::k ? of_k_ : of_v_;
  const std::int64_t slot = by_query ? h * head_.queries + row : row;
  const auto e = static_cast<std::size_t>(slot * sums.width + c), at = static_cast<std::size_t>(slot);
  double error = 0, constant = 0;
  if (by_query) {
    error = alarm_of_q_[e], constant = row_constant_[at];
  } else {
    const std::int64_t slots = heads_ * head_.queries;
    const Term* const terms = (of == Gradient::k ? terms_of_k_ : terms_of_v_).data() + row * slots;
    const double* const all = (of == Gradient::k ? all_q_ : all_g_).data() + c * slots;
    random_sum_.clear();
    for (std::int64_t from = 0; from < slots; ++from) {
      const auto& [value, term_size, drop, root] = terms[from];
      const double size = std::fabs(all[from]);
      random_sum_.add(value * all[from], term_size * size, drop * size, root * size);
    }
    error = random_sum_.error(sums.error[e], sums_of_key_[at], kernel_.u_a, alarm_probability_);
    constant = (of == Gradient::k ? constant_k_ : constant_v_)[at];
  }
  const bool grouped = !by_query && kernel_.grouped && heads_ > 1;
  const double scale = of == Gradient::v ? head_.gain.high : kernel_.tau,
               phi = of == Gradient::v ? kernel_.phi_v : kernel_.phi;
  const double allowed = gradient_bound(kernel_, of_kernel(sums, e, grouped, error, constant), scale, phi, grouped);
  alarm.allowed = allowed <= proved.allowed ? allowed : proved.allowed;
  alarm.covered = true;
  return alarm;
}

double GroupPass::size(Gradient of, std::int64_t row, std::int64_t h, std::int64_t c) const {
  const GradientSumsHere& sums = of == Gradient::q ? of_q_ : of == Gradient::k ? of_k_ : of_v_;
  const std::int64_t at = of == Gradient::q ? h * head_.queries + row : row;
  return (of == Gradient::v ? head_.gain.high : kernel_.tau) * sums.size[static_cast<std::size_t>(at * sums.width + c)];
}

ElementBound GroupPass::query(std::int64_t h, std::int64_t i, std::int64_t c) const {
  const std::int64_t slot = h * head_.queries + i;
  const auto at = static_cast<std::size_t>(slot);
  return finished(of_q_, slot, c, kernel_.tau, kernel_.phi, false, row_constant_[at], rows_[at]);
}
ElementBound GroupPass::key(std::int64_t j, std::int64_t c) const {
  return finished(of_k_, j, c, kernel_.tau, kernel_.phi, kernel_.grouped && heads_ > 1,
                  constant_k_[static_cast<std::size_t>(j)], group_);
}
ElementBound GroupPass::value(std::int64_t j, std::int64_t c) const {
  return finished(of_v_, j, c, head_.gain.high, kernel_.phi_v, kernel_.grouped && heads_ > 1,
                  constant_v_[static_cast<std::size_t>(j)], group_);
}

}  // namespace attest::detail
