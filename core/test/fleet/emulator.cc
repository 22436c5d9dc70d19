#include "core/test/fleet/emulator.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "core/problem/descale.h"
#include "core/problem/fields.h"
#include "core/problem/score.h"
#include "core/problem/sight.h"
#include "core/support/infinity.h"
#include "core/test/fleet/soft.h"

namespace attest::fleet {
namespace {

/// A number in [-1, 1] that looks random and is a function of x; not 0 at 0.
double noise(double x) {
  std::uint64_t h = (std::bit_cast<std::uint64_t>(x) + 0x2545f4914f6cdd1dU) * 0x9e3779b97f4a7c15U;
  h ^= h >> 32U;
  h *= 0xd6e8feb86659fd93U;
  h ^= h >> 32U;
  return static_cast<double>(static_cast<std::int64_t>(h)) * 0x1p-63;
}

/// The weighted sum over some keys: sum of w_j exp(-reference) and of those times v_j.
struct Partial {
  double reference = -infinity;
  double sum = 0;
  std::vector<double> out;
};

class RowEmulator {
 public:
  RowEmulator(const Emulation& kernel, const Case& c, std::int64_t row);
  /// out [dv], not rounded to the output format yet; returns the log-sum-exp.
  double run(std::vector<double>& out);
  [[nodiscard]] EmulatedWeights again(double lse) const;
  [[nodiscard]] EmulatedWeights stored() const;

 private:
  template <class Weight>
  [[nodiscard]] EmulatedWeights of_keys(Weight&& weight) const;
  /// The same before dropout multiplies the output.
  double attend(std::vector<double>& out);
  [[nodiscard]] double product(std::int64_t key) const;
  [[nodiscard]] double score(std::int64_t key, double bias) const;
  /// A sum of two that is no part of one over columns or keys: those alone may be truncated.
  [[nodiscard]] double plus(double a, double b) const { return scores_.round(a + b); }
  [[nodiscard]] double with_slope(double s, double bias, std::int64_t key) const;
  [[nodiscard]] double slope_part(std::int64_t key) const;
  void take_slope(const Case& c, std::int64_t row);
  void take_factors(const Case& c, std::int64_t row);
  [[nodiscard]] double capped(double x) const;
  [[nodiscard]] double capped_share(double x) const;
  [[nodiscard]] double kept_share(double y) const { return a_.stored_capped ? round_to(*a_.stored_capped, y) : y; }
  [[nodiscard]] double tangent(double z) const;
  [[nodiscard]] double exponential(double e) const;
  [[nodiscard]] double weight(double score, double reference) const;
  [[nodiscard]] double rescale(double from, double to) const;
  [[nodiscard]] double logarithm(double x) const { return scores_.round(std::log(x)); }
  [[nodiscard]] double in_nats(double reference) const {
    return folds_scale_ ? scores_.mul(reference, folded_) : reference;
  }
  /// Whether a reference is no number to subtract: no key yet, or keys so low that base 2 overflows.
  [[nodiscard]] bool vanishes(double reference) const {
    return (a_.folded_exp2 ? scores_.mul(reference, folded_factor_) : reference) == -infinity;
  }
  void accumulate(Partial& partial, double w, std::int64_t key) const;
  [[nodiscard]] Partial blocks(std::size_t begin, std::size_t end) const;
  [[nodiscard]] Partial two_pass(std::size_t begin, std::size_t end) const;
  [[nodiscard]] double pairwise(std::size_t begin, std::size_t end,
                                const std::function<double(std::size_t)>& term) const;
  void take_sink(const Case& c);
  void take_dropout(const Case& c, std::int64_t row);
  /// What a weight is when it meets its value.
  [[nodiscard]] double applied(double w, std::int64_t key) const;
  void divide(std::vector<double>& out, double sum) const;
  double merge(std::vector<Partial>& parts, std::vector<double>& out) const;

  const Arithmetic& a_;
  const Structure& structure_;
  const Fault& fault_;
  Soft scores_, sums_;
  std::int64_t dk_, dv_;
  std::vector<double> q_, k_, v_;
  std::vector<std::int64_t> keys_;  // that take part, in order
  std::vector<double> z_;           // their scores, without the factor that is folded
  std::vector<double> share_;       // of their weights: 1, or what a leak lets in
  std::vector<bool> dropped_;       // of all keys and the sink
  double scale_, log2e_, folded_factor_ = 1;
  double cap_, to_tanh_ = 0,
               folded_ = 1;             // the cap, or 0; what the product is multiplied by for its tanh; what is folded
  double gain_ = 1;                     // 1/(1 - p)
  double q_factor_ = 1, v_factor_ = 1;  // of the row's product; of the output, where all keys have it
  std::vector<double> k_factors_, v_factors_;  // of products, of weights; empty: none
  double slope_ = 0, shift_ = 0, row_shift_ = 0,
         exact_shift_ = 0;  // as it is beside the scores; what all of a row's are larger by
  std::int64_t position_ = 0;
  SlopeForm form_ = SlopeForm::distance;
  bool has_bias_, pre_scale_, folds_scale_;
};

RowEmulator::RowEmulator(const Emulation& kernel, const Case& c, std::int64_t row)
    : a_(kernel.arithmetic),
      structure_(kernel.structure),
      fault_(kernel.fault),
      scores_(a_.score_sums, a_.rounding == Rounding::toward_zero, a_.flushes_subnormals),
      sums_(a_.accumulate, a_.rounding == Rounding::toward_zero, a_.flushes_subnormals),
      dk_(c.q().shape()[3]),
      dv_(c.v().shape()[3]),
      k_(c.k().to_doubles()),
      v_(c.v().to_doubles()),
      scale_(scores_.round(c.scale * fault_.scale_factor)),
      log2e_(scores_.round(fault_.log2e != 0 ? fault_.log2e : std::numbers::log2e)),
      cap_(scores_.round(c.softcap)),
      has_bias_(c.mask().present() && c.mask().dtype() != DType::boolean),
      pre_scale_(convention_of(c) == MaskConvention::pre_scale) {
  const std::int64_t M = c.q().shape()[2];
  const std::int64_t N = c.k().shape()[2];
  for (std::int64_t d = 0; d < dk_; ++d) q_.push_back(c.q()[row * dk_ + d]);
  if (a_.flushes_inputs) {
    const double least = format_of(a_.input).min_normal;
    for (auto* values : {&q_, &k_, &v_}) {
      for (double& x : *values) x = std::fabs(x) < least ? 0.0 : x;
    }
  }
  take_factors(c, row);
  // q*scale in its own format, the scale with it; it is then done with.
  if (a_.prescaled_q) {
    const Soft kept(*a_.prescaled_q, false, a_.flushes_subnormals);
    for (double& x : q_) x = kept.round(x * kept.round(scale_));
  }
  folds_scale_ =
      a_.folded_exp2 && !a_.prescaled_q && !a_.stored_scaled && !a_.stored_biased && (!has_bias_ || pre_scale_);
  if (cap_ > 0) {
    folds_scale_ = folds_scale_ && !has_bias_ && !a_.stored_capped;
    to_tanh_ = scores_.div(scale_, cap_);
  }
  take_slope(c, row);
  folded_ = cap_ > 0 ? cap_ : scale_;
  if (folds_scale_) slope_ = scores_.div(slope_, folded_);
  if (a_.base2) folded_factor_ = folds_scale_ ? scores_.mul(folded_, log2e_) : log2e_;

  take_dropout(c, row);
  const Sight seen = sight(sight_rule(c), row, M, N);
  const std::int64_t last = fault_.drops_last_key ? N - 1 : N;
  for (std::int64_t j = 0; j < last; ++j) {
    bool visible = seen.sees(j);
    double bias = 0;
    if (c.mask().present()) {
      const double entry = c.mask()[row * N + j];
      if (!has_bias_) {
        visible = visible && entry != 0;
      } else {
        bias = a_.mask_format ? Soft(*a_.mask_format, false, a_.flushes_subnormals).round(entry) : entry;
        visible = visible && bias != -infinity;
      }
    }
    if (!visible && fault_.leak == 0) continue;
    keys_.push_back(j);
    share_.push_back(visible ? 1.0 : fault_.leak);
    z_.push_back(score(j, visible ? bias : 0.0));
  }
  take_sink(c);
}

/// One more key of value 0, behind the others.
void RowEmulator::take_sink(const Case& c) {
  if (!c[Slot::sink].present() || c[Slot::sink][0] == -infinity) return;
  const double own = scores_.round(c[Slot::sink][0]), sink = shift_ == 0 ? own : plus(own, shift_);
  keys_.push_back(c.k().shape()[2]);
  share_.push_back(1);
  v_.insert(v_.end(), static_cast<std::size_t>(dv_), 0.0);
  dropped_.push_back(false);
  const double z = folds_scale_ ? scores_.div(sink, folded_) : sink;
  z_.push_back(a_.stored_biased ? round_to(*a_.stored_biased, z) : z);
}

void RowEmulator::take_factors(const Case& c, std::int64_t row) {
  const std::int64_t N = c.k().shape()[2];
  const auto factor = [&](Slot tensor, std::int64_t i) { return scores_.round(factor_of(c, tensor, 0, 0, i)); };
  if (a_.descale == DescalePlace::inputs || a_.descale == DescalePlace::sums) {
    const Soft kept(a_.descale == DescalePlace::sums ? a_.score_sums : a_.input, false, a_.flushes_subnormals);
    const auto multiply = [&](double& x, double by) { x = kept.round(scores_.mul(x, by)); };
    if (c[Slot::q_descale].present())
      for (double& x : q_) multiply(x, factor(Slot::q, row));
    for (const Slot tensor : {Slot::k, Slot::v}) {
      if (!c[descale_of(tensor)].present()) continue;
      std::vector<double>& all = tensor == Slot::k ? k_ : v_;
      const std::int64_t width = tensor == Slot::k ? dk_ : dv_;
      for (std::int64_t e = 0; e < N * width; ++e)
        multiply(all[static_cast<std::size_t>(e)], factor(tensor, e / width));
    }
    return;
  }
  // Some kernels make one constant of the scale and the factor of a row.
  if (c[Slot::q_descale].present()) {
    q_factor_ = factor(Slot::q, row);
    if (structure_.fused_values && !(has_bias_ && pre_scale_))
      scale_ = scores_.mul(scale_, std::exchange(q_factor_, 1.0));
  }
  for (std::int64_t j = 0; j < N && c[Slot::k_descale].present(); ++j) k_factors_.push_back(factor(Slot::k, j));
  if (!c[Slot::v_descale].present()) return;
  if (has_blocks(c, Slot::v) || structure_.reciprocal)
    for (std::int64_t j = 0; j < N; ++j) v_factors_.push_back(factor(Slot::v, j));
  else
    v_factor_ = sums_.round(factor_of(c, Slot::v, 0, 0, 0));
}

void RowEmulator::take_slope(const Case& c, std::int64_t row) {
  slope_ = scores_.round(slope_of(c, 0, 0));
  if (slope_ == 0) return;
  if (c.causal != Causal::none) form_ = a_.slopes;
  position_ = position(sight_rule(c), row, c.q().shape()[2], c.k().shape()[2]);
  exact_shift_ = slope_of(c, 0, 0) * static_cast<double>(position_);
  // A distance is added to what has been scaled.
  folds_scale_ = folds_scale_ && form_ == SlopeForm::column_divided;
  if (c.causal != Causal::none) row_shift_ = scores_.mul(slope_, scores_.round(static_cast<double>(position_)));
  if (form_ != SlopeForm::distance) shift_ = row_shift_;
}

double RowEmulator::slope_part(std::int64_t key) const {
  const std::int64_t unit = form_ == SlopeForm::distance ? -std::abs(position_ - key) : key;
  return scores_.mul(slope_, scores_.round(static_cast<double>(unit)));
}

/// Some kernels add it to the bias first.
double RowEmulator::with_slope(double s, double bias, std::int64_t key) const {
  const double part = slope_ == 0 ? 0 : slope_part(key);
  if (!has_bias_) return slope_ == 0 ? s : plus(s, part);
  if (slope_ != 0 && structure_.fused_values) return plus(s, plus(bias, part));
  s = plus(s, bias);
  return slope_ == 0 ? s : plus(s, part);
}

void RowEmulator::take_dropout(const Case& c, std::int64_t row) {
  for (std::int64_t j = 0; j < c.k().shape()[2]; ++j) dropped_.push_back(!keeps(c, 0, 0, row, j));
  if (c.dropout_p == 0) return;
  const Soft& kept = format_of(a_.accumulate).unit > format_of(a_.score_sums).unit ? sums_ : scores_;
  gain_ = kept.div(1, kept.sub(1, kept.round(c.dropout_p)));
  if (a_.dropout != DropoutPlace::values) return;
  const Soft values(a_.input, false, a_.flushes_subnormals);
  for (double& v : v_) v = values.round(v * gain_);
}

double RowEmulator::product(std::int64_t key) const {
  const double* const k = k_.data() + key * dk_;
  const auto q = [&](std::int64_t c) { return q_[static_cast<std::size_t>(c)]; };
  double x = 0;
  switch (structure_.dot) {
    case Dot::sequential:
      for (std::int64_t c = 0; c < dk_; ++c) x = scores_.add(x, scores_.mul(q(c), k[c]));
      break;
    case Dot::fused:
      for (std::int64_t c = 0; c < dk_; ++c) x = scores_.fma(q(c), k[c], x);
      break;
    case Dot::tiles: {
      double part[4] = {};
      for (std::int64_t c = 0; c < dk_; ++c) part[c % 4] = scores_.fma(q(c), k[c], part[c % 4]);
      x = scores_.add(scores_.add(part[0], part[1]), scores_.add(part[2], part[3]));
      break;
    }
  }
  if (a_.stored_raw) x = round_to(*a_.stored_raw, x);
  if (q_factor_ != 1) x = scores_.mul(x, q_factor_);
  return k_factors_.empty() ? x : scores_.mul(x, k_factors_[static_cast<std::size_t>(key)]);
}

double RowEmulator::tangent(double z) const {
  double y = std::tanh(z);
  const TanhError& error = a_.tanh;
  if (structure_.exp_errs && y != 0 && std::isfinite(z)) {
    const Format& format = format_of(scores_.format());
    const double ulp = std::max(std::ldexp(2 * format.unit, std::ilogb(y)), format.min_subnormal);
    if (error.measure == TanhMeasure::ulp) y += noise(z) * (error.value - 0.55) * ulp;
    if (error.measure == TanhMeasure::relative) y *= 1 + noise(z) * (error.value - format.unit);
    if (error.measure == TanhMeasure::absolute) y += noise(z) * (error.value - format.unit);
  }
  return scores_.round(y);
}

/// tanh(scale x/cap).
double RowEmulator::capped_share(double x) const {
  if (folds_scale_) return tangent(scores_.mul(x, to_tanh_));
  double t = a_.prescaled_q ? x : scores_.mul(scale_, x);
  if (a_.stored_scaled) t = round_to(*a_.stored_scaled, t);
  const double z = a_.base2 ? scores_.mul(t, scores_.div(1, cap_)) : scores_.div(t, cap_);
  return kept_share(tangent(kept_share(z)));
}

/// cap times that, or without the cap before it where that is folded.
double RowEmulator::capped(double x) const {
  const double y = capped_share(x);
  return folds_scale_ ? y : kept_share(scores_.mul(cap_, y));
}

double RowEmulator::score(std::int64_t key, double bias) const {
  const double x = product(key);
  if (cap_ > 0) {
    const double s = with_slope(capped(x), bias, key);
    return a_.stored_biased ? round_to(*a_.stored_biased, s) : s;
  }
  if (folds_scale_) return with_slope(x, bias, key);
  const auto scaled = [&](double y) {
    const double t = a_.prescaled_q ? y : scores_.mul(scale_, y);
    return a_.stored_scaled ? round_to(*a_.stored_scaled, t) : t;
  };
  double s = 0;
  if (!has_bias_ || !pre_scale_) {
    s = with_slope(scaled(x), bias, key);
  } else {
    // Where q carries the scale already, the bias is given it by itself.
    s = a_.prescaled_q ? plus(x, scores_.mul(scale_, bias)) : scaled(plus(x, bias));
  }
  return a_.stored_biased ? round_to(*a_.stored_biased, s) : s;
}

double RowEmulator::exponential(double e) const {
  double y = a_.base2 ? std::exp2(e) : std::exp(e);
  if (fault_.exp_error != 0) y *= 1 + std::copysign(fault_.exp_error, noise(e));
  // Below the least positive number exp must round to 0 or to that number, as the bound assumes.
  const Format& format = format_of(scores_.format());
  if (structure_.exp_errs && y >= format.min_subnormal && std::isfinite(y)) {
    const double ulp = std::max(std::ldexp(2 * format.unit, std::ilogb(y)), format.min_subnormal);
    y += noise(e) * (a_.exp_ulp - 0.55) * ulp;
  }
  return scores_.round(y);
}

double RowEmulator::weight(double score, double reference) const {
  if (a_.max == MaxPolicy::none) return exponential(a_.base2 ? scores_.mul(score, folded_factor_) : score);
  if (a_.folded_exp2) return exponential(scores_.fma(score, folded_factor_, -scores_.mul(reference, folded_factor_)));
  const double below = scores_.sub(score, reference);
  return exponential(a_.base2 ? scores_.mul(below, log2e_) : below);
}

double RowEmulator::rescale(double from, double to) const {
  if (from == -infinity) return 0;
  if (a_.max == MaxPolicy::none) return 1;
  const double below = scores_.sub(from, to);
  return exponential(a_.base2 ? scores_.mul(below, folded_factor_) : below);
}

double RowEmulator::applied(double w, std::int64_t key) const {
  double by = a_.dropout == DropoutPlace::weights && gain_ != 1 ? scores_.mul(w, gain_) : w;
  if (!v_factors_.empty() && std::cmp_less(key, v_factors_.size()))
    by = scores_.mul(by, v_factors_[static_cast<std::size_t>(key)]);
  return Soft(a_.weights, false, a_.flushes_subnormals).round(by);
}

void RowEmulator::accumulate(Partial& partial, double w, std::int64_t key) const {
  const double rounded = Soft(a_.weights, false, a_.flushes_subnormals).round(w);
  partial.sum = sums_.add(partial.sum, a_.weights_in_denominator ? rounded : w);
  if (dropped_[static_cast<std::size_t>(key)]) return;
  const double met = applied(w, key);
  for (std::int64_t d = 0; d < dv_; ++d) {
    double& o = partial.out[static_cast<std::size_t>(d)];
    const double v = v_[static_cast<std::size_t>(key * dv_ + d)];
    o = structure_.fused_values ? sums_.fma(met, v, o) : sums_.add(o, sums_.mul(met, v));
  }
}

Partial RowEmulator::blocks(std::size_t begin, std::size_t end) const {
  Partial partial;
  partial.out.assign(static_cast<std::size_t>(dv_), 0.0);
  if (a_.max == MaxPolicy::none) partial.reference = 0;
  const auto block = static_cast<std::size_t>(a_.block);
  for (std::size_t at = begin; at < end; at += block) {
    const std::size_t stop = std::min(end, at + block);
    if (a_.max != MaxPolicy::none) {
      double maximum = -infinity;
      for (std::size_t j = at; j < stop; ++j) maximum = std::max(maximum, z_[j]);
      const bool lazy = a_.max == MaxPolicy::lazy && partial.reference != -infinity;
      const double larger = std::max(maximum, partial.reference);
      const bool moves = lazy ? in_nats(maximum - partial.reference) >= a_.lazy_nats : !vanishes(larger);
      if (moves) {
        const double factor = rescale(partial.reference, larger);
        partial.sum = sums_.mul(partial.sum, factor);
        for (double& o : partial.out) o = fault_.forgets_rescale ? o : sums_.mul(o, factor);
        partial.reference = larger;
      }
      if (partial.reference == -infinity) continue;
    }
    for (std::size_t j = at; j < stop; ++j) {
      accumulate(partial, share_[j] * weight(z_[j], partial.reference), keys_[j]);
    }
  }
  return partial;
}

double RowEmulator::pairwise(std::size_t begin, std::size_t end, const std::function<double(std::size_t)>& term) const {
  if (end - begin == 1) return term(begin);
  const std::size_t middle = begin + (end - begin) / 2;
  return sums_.add(pairwise(begin, middle, term), pairwise(middle, end, term));
}

Partial RowEmulator::two_pass(std::size_t begin, std::size_t end) const {
  Partial partial;
  partial.out.assign(static_cast<std::size_t>(dv_), 0.0);
  if (begin == end) return partial;
  partial.reference = a_.max == MaxPolicy::none ? 0.0 : -infinity;
  if (a_.max != MaxPolicy::none) {
    for (std::size_t j = begin; j < end; ++j) partial.reference = std::max(partial.reference, z_[j]);
    if (vanishes(partial.reference)) {
      partial.reference = -infinity;
      return partial;
    }
  }
  std::vector<double> w;
  for (std::size_t j = begin; j < end; ++j) w.push_back(share_[j] * weight(z_[j], partial.reference));
  if (!structure_.permuted_pairwise && !a_.normalise_first) {
    for (std::size_t j = begin; j < end; ++j) accumulate(partial, w[j - begin], keys_[j]);
    return partial;
  }
  std::vector<std::size_t> order(w.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (structure_.permuted_pairwise) std::shuffle(order.begin(), order.end(), std::mt19937_64(w.size()));
  const auto sum = [&](const std::function<double(std::size_t)>& term) {
    if (structure_.permuted_pairwise) return pairwise(0, order.size(), [&](std::size_t i) { return term(order[i]); });
    double total = 0;
    for (const std::size_t i : order) total = sums_.add(total, term(i));
    return total;
  };
  partial.sum = sum([&](std::size_t i) { return w[i]; });
  if (a_.normalise_first) divide(w, partial.sum);
  for (std::int64_t d = 0; d < dv_; ++d) {
    partial.out[static_cast<std::size_t>(d)] = sum([&](std::size_t i) {
      const std::int64_t key = keys_[begin + i];
      if (dropped_[static_cast<std::size_t>(key)]) return 0.0;
      return sums_.mul(applied(w[i], key), v_[static_cast<std::size_t>(key * dv_ + d)]);
    });
  }
  return partial;
}

void RowEmulator::divide(std::vector<double>& out, double sum) const {
  if (!structure_.reciprocal) {
    for (double& o : out) o = sums_.div(o, sum);
    return;
  }
  const double reciprocal = sums_.div(1.0, sum);
  for (double& o : out) o = sums_.mul(o, reciprocal);
}

double RowEmulator::merge(std::vector<Partial>& parts, std::vector<double>& out) const {
  Partial whole;
  whole.out.assign(static_cast<std::size_t>(dv_), 0.0);
  const auto add = [&](double factor, double sum, const std::vector<double>& part) {
    whole.sum = sums_.add(whole.sum, sums_.mul(factor, sum));
    for (std::size_t d = 0; d < part.size(); ++d) whole.out[d] = sums_.add(whole.out[d], sums_.mul(factor, part[d]));
  };
  if (structure_.merge == Merge::max_and_sum) {
    for (const Partial& part : parts) whole.reference = std::max(whole.reference, part.reference);
    for (const Partial& part : parts) {
      if (part.reference != -infinity) add(rescale(part.reference, whole.reference), part.sum, part.out);
    }
    divide(whole.out, whole.sum);
    out = whole.out;
    return scores_.add(in_nats(whole.reference), logarithm(whole.sum));
  }
  // Every part normalised, with its log-sum-exp in nats.
  const auto natural = [&](double e) { return scores_.round(std::exp(e)); };
  std::vector<double> lse;
  double largest = -infinity;
  for (Partial& part : parts) {
    if (part.reference == -infinity) {
      lse.push_back(-infinity);
      continue;
    }
    divide(part.out, part.sum);
    lse.push_back(scores_.add(in_nats(part.reference), logarithm(part.sum)));
    largest = std::max(largest, lse.back());
  }
  double sum = 0;
  for (const double l : lse) sum = sums_.add(sum, natural(scores_.sub(l, largest)));
  const double total = scores_.add(largest, logarithm(sum));
  const bool divides = structure_.merge == Merge::lse;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    if (lse[p] != -infinity) add(natural(scores_.sub(lse[p], divides ? largest : total)), 1.0, parts[p].out);
  }
  if (divides) divide(whole.out, whole.sum);
  out = whole.out;
  return total;
}

double RowEmulator::run(std::vector<double>& out) {
  const double lse = attend(out);
  const bool by_output = a_.dropout == DropoutPlace::output || a_.dropout == DropoutPlace::unstated;
  if (gain_ != 1 && by_output)
    for (double& o : out) o = sums_.mul(o, gain_);
  if (v_factor_ != 1)
    for (double& o : out) o = sums_.mul(o, v_factor_);
  // As the contract has it; in the form of columns that is done with what comes of it (lse_convention.h).
  if (row_shift_ == 0 || lse == -infinity) return lse;
  const double found = a_.lse_of_columns == (shift_ != 0) ? lse
                       : shift_ != 0                      ? scores_.sub(lse, row_shift_)
                                                          : plus(lse, row_shift_);
  return a_.lse_of_columns ? found - exact_shift_ : found;
}

template <class Weight>
EmulatedWeights RowEmulator::of_keys(Weight&& weight) const {
  EmulatedWeights all;
  for (std::size_t j = 0; j < keys_.size(); ++j) {
    if (keys_[j] * dk_ >= std::ssize(k_)) {
      all.sink = weight(j);
      continue;
    }
    all.keys.push_back(keys_[j]);
    all.weights.push_back(weight(j));
    if (cap_ > 0) all.tangents.push_back(capped_share(product(keys_[j])));
  }
  return all;
}

EmulatedWeights RowEmulator::again(double given) const {
  const double lse = shift_ == 0 ? scores_.round(given) : plus(scores_.round(given), shift_);
  return of_keys([&](std::size_t j) {
    if (folds_scale_) return exponential(scores_.fma(z_[j], folded_factor_, -scores_.mul(lse, log2e_)));
    if (a_.folded_exp2) return exponential(scores_.fma(z_[j], log2e_, -scores_.mul(lse, log2e_)));
    const double below = scores_.sub(z_[j], lse);
    return exponential(a_.base2 ? scores_.mul(below, log2e_) : below);
  });
}

EmulatedWeights RowEmulator::stored() const {
  double most = -infinity, sum = 0;
  for (const double z : z_) most = std::max(most, z);
  std::vector<double> w;
  for (const double z : z_) {
    w.push_back(weight(z, most));
    sum = sums_.add(sum, w.back());
  }
  divide(w, sum);
  const Soft kept(a_.weights, false, a_.flushes_subnormals);
  return of_keys([&](std::size_t j) { return kept.round(w[j]); });
}

double RowEmulator::attend(std::vector<double>& out) {
  const std::size_t n = keys_.size();
  if (n == 0) {
    out.assign(static_cast<std::size_t>(dv_), std::numeric_limits<double>::quiet_NaN());
    return -infinity;
  }
  const auto part = [&](std::size_t begin, std::size_t end) {
    return a_.block == 0 ? two_pass(begin, end) : blocks(begin, end);
  };
  if (structure_.splits > 1) {
    std::vector<Partial> parts;
    const auto splits = static_cast<std::size_t>(structure_.splits);
    parts.reserve(splits);
    for (std::size_t p = 0; p < splits; ++p) parts.push_back(part(n * p / splits, n * (p + 1) / splits));
    return merge(parts, out);
  }
  Partial whole = part(0, n);
  if (!a_.normalise_first) divide(whole.out, whole.sum);
  out = whole.out;
  return scores_.add(in_nats(whole.reference), logarithm(whole.sum));
}

}  // namespace

Answer emulate(const Emulation& kernel, const Case& c) {
  assert(c.q().shape()[0] == 1 && c.q().shape()[1] == 1);
  const std::int64_t M = c.q().shape()[2];
  const std::int64_t dv = c.v().shape()[3];
  Answer answer{Tensor(kernel.arithmetic.output, c.out_shape()), Tensor(DType::f64, {1, 1, M})};
  std::vector<double> out;
  for (std::int64_t i = 0; i < M; ++i) {
    answer.lse.set(i, RowEmulator(kernel, c, i).run(out));
    for (std::int64_t d = 0; d < dv; ++d) {
      double o = out[static_cast<std::size_t>(d)];
      const double least = kernel.arithmetic.flushes_subnormals ? format_of(kernel.arithmetic.output).min_normal : 0.0;
      if (std::fabs(o) < least) o = 0;
      answer.out.set(i * dv + d, o);
    }
  }
  return answer;
}

EmulatedWeights weights_again(const Emulation& kernel, const Case& c, std::int64_t row, double lse) {
  return RowEmulator(kernel, c, row).again(lse);
}
EmulatedWeights stored_weights(const Emulation& kernel, const Case& c, std::int64_t row) {
  return RowEmulator(kernel, c, row).stored();
}

}  // namespace attest::fleet
