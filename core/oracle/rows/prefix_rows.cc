#include "core/oracle/rows/prefix_rows.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/bound/loops/key_loops.h"
#include "core/oracle/rows/exactness.h"
#include "core/support/infinity.h"
#include "core/support/room.h"

namespace attest::detail {
namespace {

/// A score may exceed the reference of the weights by so much.
constexpr double most_above_reference = 32;
/// After so many centres that did not help no more are tried.
constexpr int most_in_vain = 8;
/// Fewer keys than these are bounded by themselves.
constexpr std::int64_t least_keys = 16;
/// Sums over more would come too near to what the double evaluation is trusted with.
constexpr std::int64_t most_keys = 1 << 20;

enum Column : std::size_t {
  value_sum,
  error_sum,
  apart_sum,
  size_sum,
  small_sum,
  plain_sum,
  most_value,
  centre,
  columns
};

}  // namespace

bool PrefixRows::worth(const Head& head, const Profile& p) {
  // Scores of f64 are decided in double-double.
  return !head.mask && !head.sinks && !head.keep && head.softcap == 0 && head.slope == 0 && head.singles &&
         !head.descale.any() && head.finite && head.dv > 0 && head.keys <= most_keys && p.u_score > 0x1p-40 &&
         p.u_a > 0x1p-40;
}

bool PrefixRows::start(const Head& head, std::span<const std::int64_t> rows, std::int64_t least, std::int64_t most,
                       const Profile& p, bool ignores_dead_values, bool want_lse) {
  head_ = &head;
  profile_ = &p;
  take_query(head, rows, row_);
  Row& row = row_;
  double size = 0;
  for (std::int64_t e = 0; e < head.dk; ++e) size += std::fabs(row.q[e]);
  if (!(size < infinity)) return false;
  // With no key visible, every one must be harmless.
  row.n = 0, row.all_visible = false;
  if (!ignores_dead_values && most <= head.keys && !hidden_keys_harmless(head, p, row)) return false;
  const std::int64_t room = padded(head.keys);
  for (auto* array : {&row.s, &row.t, &w_, &we_, &ws_}) fit(*array, room);
  // Rows of a block end at other keys: of all, once.
  scores_of_row(head, 0, row.block.singles ? head.keys : most, row);
  const RowScores found = key_loops().scores(row.x, row.size, nullptr, head.scale, most, row.t.data(), row.s.data());
  if (!found.finite) return false;
  RowKeys& keys = row.keys;
  keys = {};
  keys.s = row.s.data(), keys.t = row.t.data(), keys.size = row.size, keys.k1 = head.k1.data(), keys.q1 = size;
  keys.unit = 0x1p-53;
  keys.want_lse = want_lse;
  find_exact_prefixes(least, most);
  width_ = static_cast<std::size_t>(padded(head.stride));
  columns_.assign(columns * width_, 0.0);
  at_ = {column(value_sum), column(error_sum), column(apart_sum),  column(size_sum),
         column(small_sum), column(plain_sum), column(most_value), column(centre)};
  for (std::int64_t k = 0; k < head.dv; ++k) {
    const auto at = static_cast<std::size_t>(k);
    column(most_value)[at] = std::max(std::fabs(head.low[at]), std::fabs(head.high[at]));
    column(centre)[at] = static_cast<double>(head.single_v[at]);
  }
  most_abs_sum_ = *std::max_element(head.abs_sum.begin(), head.abs_sum.begin() + head.dv);
  for (auto* array : {&value_, &certificate_, &allowed_}) fit(*array, static_cast<std::int64_t>(width_));
  sums_ = {};
  reference_ = row.s[0];
  edge_ = p.u_a;
  parted_at_ = 1;
  score_sum_ = 0;
  big_.clear();
  done_ = 0;
  until_ = std::min(most, least_keys);
  centred_ = -1;
  in_vain_ = 0;
  keys.n = most;
  RowKeys first = keys;
  first.n = until_;
  keys_.begin(p, first, row.s[0], scratch_);
  return true;
}

void PrefixRows::find_exact_prefixes(std::int64_t least, std::int64_t most) {
  Row& row = row_;
  fit(row.index, head_->keys);
  std::iota(row.index.begin(), row.index.begin() + most, 0);
  const auto exact = [&](std::int64_t n) {
    row.n = n;
    return exact_in_any_order(*head_, row, *profile_, *std::max_element(row.size, row.size + n));
  };
  exact_until_ = 0;
  row.keys.exact_dots = exact(most);
  if (row.keys.exact_dots || !exact(std::max<std::int64_t>(1, least))) return;
  // What is exact of some keys is of fewer.
  std::int64_t from = least, to = most;
  while (to - from > 1) {
    const std::int64_t middle = from + (to - from) / 2;
    exact(middle) ? from = middle : to = middle;
  }
  exact_until_ = from;
}

bool PrefixRows::go_to(std::int64_t n) {
  if (n <= exact_until_) return false;
  while (n > until_) {
    add_up_to(until_);
    recentre();
  }
  add_up_to(n);
  if (n < 1) return false;
  if (bound()) return true;
  if (centred_ == n || !terms_.usable || in_vain_ >= most_in_vain) return false;
  recentre();
  if (bound()) return true;
  ++in_vain_;
  return false;
}

void PrefixRows::add_up_to(std::int64_t n) {
  const double* const s = row_.s.data();
  while (done_ < n) {
    const double highest = reference_ + most_above_reference;
    const double* const beyond = std::find_if(s + done_, s + n, [&](double x) { return x > highest; });
    const std::int64_t to = beyond - s;
    if (to == done_)
      rescale(*beyond);
    else
      weigh(to);
  }
  keys_.take(done_);
}

void PrefixRows::weigh(std::int64_t to) {
  const InnerLoops& loops = inner_loops();
  const double* const s = row_.s.data();
  const double* const e = keys_.own();
  const double* const f = keys_.own_of_lse();
  sums_.weight += loops.weights(s + done_, to - done_, reference_, w_.data() + done_);
  bool any_small = false;
  for (std::int64_t j = done_; j < to; ++j) {
    const auto at = static_cast<std::size_t>(j);
    const double w = w_[at];
    we_[at] = w * e[j];
    sums_.error += we_[at];
    sums_.lse_error += w * f[j];
    score_sum_ += w * s[j];
    const bool small = w <= edge_;
    any_small = any_small || small;
    ws_[at] = small ? w : 0.0;
    sums_.small += ws_[at];
    if (!small) big_.push_back(j);
  }
  sums_.big = static_cast<std::int64_t>(big_.size());
  loops.prefix_add(w_.data(), we_.data(), any_small ? ws_.data() : nullptr, done_, to, head_->single_v.data(),
                   head_->stride, at_);
  done_ = to;
  if (sums_.weight > 2 * parted_at_) part_by_weight();
}

void PrefixRows::rescale(double reference) {
  const double factor = std::exp(reference_ - reference);
  reference_ = reference;
  ++sums_.rescalings;
  for (double* sum : {&sums_.weight, &sums_.error, &sums_.lse_error, &sums_.small, &score_sum_, &edge_, &parted_at_})
    *sum *= factor;
  for (std::int64_t j = 0; j < done_; ++j) w_[static_cast<std::size_t>(j)] *= factor;
  for (const Column which : {value_sum, error_sum, apart_sum, size_sum, small_sum})
    for (std::size_t k = 0; k < width_; ++k) column(which)[k] *= factor;
}

void PrefixRows::part_by_weight() {
  parted_at_ = sums_.weight;
  edge_ = profile_->u_a * sums_.weight;
  const float* const v = head_->single_v.data();
  double* const small = column(small_sum);
  std::erase_if(big_, [&](std::int64_t j) {
    const double w = w_[static_cast<std::size_t>(j)];
    if (w > edge_) return false;
    sums_.small += w;
    for (std::int64_t k = 0; k < head_->dv; ++k)
      small[k] += w * std::fabs(static_cast<double>(v[j * head_->stride + k]));
    return true;
  });
  sums_.big = static_cast<std::int64_t>(big_.size());
}

void PrefixRows::recentre() {
  centred_ = done_;
  const double inverse = 1 / sums_.weight;
  for (std::int64_t k = 0; k < head_->stride; ++k) column(centre)[k] = column(value_sum)[k] * inverse;
  until_ = std::min(row_.keys.n, std::max(2 * done_, until_));
  RowKeys window = row_.keys;
  window.n = until_;
  keys_.begin(*profile_, window, score_sum_ * inverse, scratch_);
  keys_.take(done_);
  const double* const e = keys_.own();
  const double* const f = keys_.own_of_lse();
  sums_.error = sums_.lse_error = 0;
  for (std::int64_t j = 0; j < done_; ++j) {
    const auto at = static_cast<std::size_t>(j);
    we_[at] = w_[at] * e[j];
    sums_.error += we_[at];
    sums_.lse_error += w_[at] * f[j];
  }
  inner_loops().prefix_recentre(w_.data(), we_.data(), done_, head_->single_v.data(), head_->stride, at_);
}

bool PrefixRows::bound() {
  terms_ = keys_.terms(sums_, reference_, row_.q, most_abs_sum_, scratch_);
  if (!terms_.usable) return false;
  const PrefixFound found =
      inner_loops().prefix_columns(at_, head_->dv, terms_.columns, value_.data(), certificate_.data(), allowed_.data());
  return found.usable && found.centred && found.most_size <= terms_.most_size;
}

double PrefixRows::lse() const {
  return reference_ + std::log(sums_.weight);
}

double PrefixRows::lse_certificate() const {
  // As of a row by itself, with the roundings of one scale after another.
  const double n = static_cast<double>(done_ + sums_.rescalings);
  const double size = std::fabs(reference_) + most_above_reference + std::log(static_cast<double>(done_)) + 1;
  return (1 + 0x1p-20) * (terms_.most_E_here + (n + 8) * 0x1p-53 + 0x1p-51 * size);
}

}  // namespace attest::detail
