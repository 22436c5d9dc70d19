#include "core/bound/gradient_alarm.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/support/room.h"

namespace attest::detail {
namespace {

/// Squares below this one's may have underflowed: what they are of counts in full.
constexpr double least_root = 0x1p-450;

/// Azuma's inequality: how many roots of the sum of squares a martingale strays.
double roots_of(double probability) {
  return std::sqrt(2 * std::log(4 / probability));
}

}  // namespace

void RandomSum::clear() {
  ranked_.clear(), sizes_.clear();
  size_ = drop_ = squares_ = 0;
}

void RandomSum::add(double value, double size, double drop, double root) {
  if (!(size > 0)) return;
  ranked_.emplace_back(std::fabs(value), static_cast<std::int64_t>(sizes_.size()));
  sizes_.push_back(size);
  size_ += size, drop_ += drop, squares_ += root * root;
}

double RandomSum::leaning(double u) {
  const double most = u * size_;
  std::sort(ranked_.begin(), ranked_.end());
  crowded_.assign(sizes_.size(), 0);
  shares_.resize(sizes_.size());
  std::ranges::transform(sizes_, shares_.begin(), [&](double size) { return size / size_; });
  mark_crowds(ranked_, swallowed * most, shares_.data(), crowded_);
  double leaning = 0;
  for (std::size_t i = 0; i < sizes_.size(); ++i)
    if (crowded_[i] != 0 || sizes_[i] < swallowed * most) leaning += std::min(sizes_[i], most);
  return leaning;
}

double RandomSum::error(double proved, double added, double u, double probability, double drop, double root) {
  const double depth = static_cast<double>(sizes_.size()) + 1, growth = 1 + pw(u, depth);
  double own = std::sqrt(squares_) + root;
  drop += drop_;
  if (!(own > least_root)) own = drop = 0;
  const double leaning_sums = growth * std::min(leaning(u), depth * u * size_);
  const double sums = std::sqrt(depth) * u * growth * size_;
  const double rest = std::max(0.0, proved - added * size_ - drop);
  const double error = (1 + 0x1p-20) * (rest + leaning_sums + roots_of(probability) * std::hypot(sums, own));
  return error < proved ? error : proved;
}

void RowShares::take(const BackwardProfile& p, const AlarmedRow& row) {
  for (auto* array : {&of_k_drop, &of_k_root, &of_q_drop, &of_q_root, &of_g_drop, &of_g_root}) fit(*array, row.sizes.n);
  take_dots(p, row);
  take_delta(p, row);
  // Of weights it is made of the row's scores, too.
  delta_varies = !row.equal_g && (!row.equal_q || p.declared.delta == DeltaFrom::out);
  // What is stored after it, and the operations between, make no more of an error of dP than this.
  const double later = (1 + p.u_ds) * (1 + p.u_dp) * (1 + p.th_gain) * (1 + pw(p.u, 6)) * (1 + 0x1p-20);
  for (std::int64_t j = 0; j < row.sizes.n; ++j) {
    const auto e = static_cast<std::size_t>(j);
    const double f = row.sizes.slope ? row.sizes.slope[j] : 1, of_f = row.sizes.of_slope ? row.sizes.of_slope[j] : 0;
    const double most_f = row.sizes.slope ? std::min(1.0, f + of_f) + of_f : 1;
    // A weight that is dropped has no part in P, and one in dS by D.
    const double whole = later * std::max(row.errors.weights[e],
                                          std::exp(row.sizes.la[j] + row.sizes.E[j] + row.sizes.common) * (1 + p.u_p));
    const double weight = row.weight[j], most = whole * most_f;
    const bool alike = equal_product_[e] != 0, alike_score = equal_score_[e] != 0;
    const auto own = [&](bool product, bool score, double& drop, double& root) {
      drop = (product ? weight * f * products_[e].drop : 0) +
             (score ? weight * f * scores_[e].drop * row.sizes.apart[j] : 0);
      root = std::hypot(product ? most * products_[e].root : 0,
                        score ? row.errors.scores[e] * later * scores_[e].root : 0);
    };
    own(!alike, !alike_score, of_k_drop[e], of_k_root[e]);
    own(!row.equal_g, !row.equal_q, of_q_drop[e], of_q_root[e]);
    if (delta_varies) {
      of_q_drop[e] += weight * f * delta_drop;
      of_q_root[e] += whole * f * delta_root;
    }
    of_g_drop[e] = row.equal_q ? 0 : weight * scores_[e].drop;
    of_g_root[e] = row.equal_q ? 0 : row.errors.weights[e] * later * scores_[e].root;
  }
}

void RowShares::take_dots(const BackwardProfile& p, const AlarmedRow& row) {
  const RowSizes& sizes = row.sizes;
  const Profile& forward = p.scores;
  const auto n = static_cast<std::size_t>(sizes.n);
  products_.assign(n, {}), scores_.assign(n, {});
  for (auto* marks : {&equal_product_, &equal_score_}) marks->assign(n, 0);
  all_.resize(n);
  std::iota(all_.begin(), all_.end(), 0);
  const auto mark = [&](std::vector<unsigned char>& marks) {
    return [&marks](std::int64_t a, std::int64_t b) {
      marks[static_cast<std::size_t>(a)] = marks[static_cast<std::size_t>(b)] = 1;
    };
  };
  equal_.find(all_, row.of_weight, mark(equal_product_));
  if (!row.keys.exact_dots) equal_.find(all_, row.keys.t, mark(equal_score_));

  const double dv = static_cast<double>(sizes.dv), terms = static_cast<double>(forward.n_s);
  const double gd = pw(p.u_s, dv), of_score = row.keys.exact_dots ? 0 : pw(forward.u_s, terms);
  fit(scaled_q_, forward.of.dk);
  for (std::int64_t c = 0; c < forward.of.dk; ++c)
    scaled_q_[static_cast<std::size_t>(c)] = std::fabs(forward.of.scale) * row.q[c];
  for (std::int64_t j = 0; j < sizes.n; ++j) {
    const auto e = static_cast<std::size_t>(j);
    const std::int64_t at = row.place ? row.place[j] : j;
    if (!sizes.kept || sizes.kept[j] != 0) {
      const double most = p.u_s * sizes.size[j];
      const double leaning = leaning_products(row.g, row.v + at * row.v_stride, sizes.dv, swallowed * most, most);
      products_[e].drop = p.gain * (gd * sizes.size[j] - (1 + gd) * leaning);
      products_[e].root = p.gain * std::sqrt(dv) * p.u_s * (1 + gd) * sizes.size[j];
    }
    if (of_score > 0) {
      const double grown = row.keys.capped ? row.scores.kap[e] : 1, reach = reach_of(forward, row.keys, j);
      const double most = forward.u_s * reach;
      const double leaning =
          leaning_products(scaled_q_.data(), row.k + at * forward.of.dk, forward.of.dk, swallowed * most, most);
      const double whole = grown * of_score * reach;
      // It is part of E.
      if (whole <= sizes.E[j]) {
        scores_[e].drop = whole - grown * (1 + of_score) * leaning;
        scores_[e].root = grown * std::sqrt(terms) * forward.u_s * (1 + of_score) * reach;
      }
    }
  }
}

void RowShares::take_delta(const BackwardProfile& p, const AlarmedRow& row) {
  const RowSizes& sizes = row.sizes;
  const double u = std::max(p.u_s, p.u_a), dv = static_cast<double>(sizes.dv);
  BackwardProfile one = p;
  double rest = 0;
  delta_root = 0;
  if (p.declared.delta != DeltaFrom::weights) {
    one.declared.delta = DeltaFrom::out;
    const double of_sum = pw(u, dv), most = u * sizes.g_out;
    const double leaning = leaning_products(row.g, row.out, sizes.dv, swallowed * most, most);
    rest = delta_error(one, sizes) - of_sum * sizes.g_out + (1 + of_sum) * leaning;
    delta_root = std::sqrt(dv) * u * (1 + of_sum) * sizes.g_out;
  }
  if (p.declared.delta != DeltaFrom::out) {
    one.declared.delta = DeltaFrom::weights;
    const double n = static_cast<double>(sizes.n), added = pw(u, n), gd = pw(p.u_s, dv);
    const double grown = p.gain * (1 + gd) * (1 + p.u_dp) * (1 + p.th_gain) * (1 + 0x1p-20);
    double exact = 0, own_drop = 0, squares = 0;
    sum_.clear();
    for (std::int64_t j = 0; j < sizes.n; ++j) {
      const auto e = static_cast<std::size_t>(j);
      const double product = row.weight[j] * row.of_weight[j], most = row.errors.weights[e];
      sum_.add(product, most * grown * sizes.size[j], 0, 0);
      exact += std::fabs(product);
      const double of_dot = equal_product_[e] != 0 ? 0 : most * products_[e].root;
      const double of_score = equal_score_[e] != 0 ? 0 : most * grown * sizes.size[j] * scores_[e].root;
      if (equal_product_[e] == 0) own_drop += row.weight[j] * products_[e].drop;
      if (equal_score_[e] == 0) own_drop += std::fabs(product) * scores_[e].drop;
      squares += of_dot * of_dot + of_score * of_score;
    }
    double own = std::sqrt(squares);
    if (!(own > least_root)) own = own_drop = 0;
    const double leaning = (1 + added) * std::min(sum_.leaning(u), n * u * sum_.size());
    rest = std::max(rest, delta_error(one, sizes) - added * exact - own_drop + leaning);
    delta_root = std::max(delta_root, std::hypot(own, std::sqrt(n) * u * (1 + added) * sum_.size()));
  }
  delta_drop = row.errors.delta - rest;
  if (!(delta_root > least_root)) delta_drop = delta_root = 0;
}

}  // namespace attest::detail
