#include "core/test/fleet/backward.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "core/problem/sight.h"
#include "core/support/infinity.h"
#include "core/test/fleet/climb.h"
#include "core/test/fleet/soft.h"

namespace attest::fleet {
namespace {

/// Rows [first, first + count) of the third axis of a tensor whose first two axes are 1.
Tensor rows_of(const Tensor& t, std::int64_t first, std::int64_t count) {
  const std::int64_t width = t.shape()[3];
  Tensor rows(t.dtype(), {1, 1, count, width});
  for (std::int64_t e = 0; e < count * width; ++e) rows.set(e, t[first * width + e]);
  return rows;
}

/// Head h alone.
Case head_of(const Case& c, std::int64_t h) {
  Case one = c;
  const std::int64_t M = c.q().shape()[2];
  for (const Slot slot : {Slot::q, Slot::mask, Slot::keep}) {
    if (!c[slot].present()) continue;
    const bool each = c[slot].shape()[1] > 1;
    Tensor flat(c[slot].dtype(), {1, 1, c[slot].shape()[1] * M, c[slot].shape()[3]});
    for (std::int64_t e = 0; e < flat.elements(); ++e) flat.set(e, c[slot][e]);
    one[slot] = rows_of(flat, each ? h * M : 0, M);
  }
  for (const Slot slot : {Slot::sink, Slot::alibi_slopes}) {
    if (!c[slot].present()) continue;
    one[slot] = Tensor(c[slot].dtype(), slot == Slot::sink ? Shape{1} : Shape{1, 1});
    one[slot].set(0, c[slot][h]);
  }
  return one;
}

/// A backward pass of one case.
class Backward {
 public:
  Backward(const BackwardEmulation& kernel, const Case& c, const BackwardInputs& given)
      : kernel_(kernel),
        forward_(kernel.forward.arithmetic),
        a_(kernel.backward),
        fault_(kernel.fault),
        given_(given),
        dot_(a_.dot, truncates(), flushes()),
        sums_(fault_.sums_in.value_or(a_.accumulate), truncates(), flushes()),
        heads_(c.q().shape()[1]),
        M_(c.q().shape()[2]),
        N_(c.k().shape()[2]),
        dk_(c.q().shape()[3]),
        dv_(c.v().shape()[3]),
        q_(read(c.q())),
        k_(read(c.k())),
        v_(read(c.v())),
        g_(read(given.d_out)),
        out_(read(given.out)),
        tau_(sums_.round(c.scale * fault_.scale_factor)),
        left_(1) {
    for (std::int64_t h = 0; h < heads_; ++h) cases_.push_back(head_of(c, h));
    terms_mask_.resize(static_cast<std::size_t>(c.mask().elements()));
    terms_sink_.resize(static_cast<std::size_t>(c[Slot::sink].elements()));
    if (c.dropout_p > 0) {
      left_ = dot_.sub(1, dot_.round(c.dropout_p));
      gain_ = dot_.div(1, left_);
    }
  }

  std::array<Tensor, gradient_count> run(const Case& c) {
    std::array<Tensor, gradient_count> all{Tensor(a_.output, c.q().shape()), Tensor(a_.output, c.k().shape()),
                                           Tensor(a_.output, c.v().shape())};
    std::vector<std::vector<double>> of_k, of_v;
    for (std::int64_t h = 0; h < heads_; ++h) {
      if (fault_.loses_a_head && heads_ > 1 && h == heads_ - 1) {
        std::vector<Terms> lost_k(static_cast<std::size_t>(N_)), lost_v = lost_k;
        for (std::int64_t i = 0; i < M_; ++i) row(h, i, lost_k, lost_v, all[0]);
        continue;
      }
      if (a_.group_partials || h == 0) {
        terms_k_.assign(static_cast<std::size_t>(N_), {});
        terms_v_.assign(static_cast<std::size_t>(N_), {});
      }
      for (std::int64_t i = 0; i < M_; ++i) row(h, i, terms_k_, terms_v_, all[0]);
      if (!a_.group_partials && h + 1 < heads_ && !(fault_.loses_a_head && h + 2 == heads_)) continue;
      of_k.push_back(summed(terms_k_, dk_, true)), of_v.push_back(summed(terms_v_, dv_, false));
    }
    write(of_k, all[1]), write(of_v, all[2]);
    if (has_argument_of(c, Gradient::mask)) all[3] = of_argument(terms_mask_, c.mask(), mask_is_scaled(c));
    if (has_argument_of(c, Gradient::sink)) all[4] = of_argument(terms_sink_, c[Slot::sink], false);
    return all;
  }

 private:
  /// Terms of a sum over rows, or keys: a factor, and what it multiplies.
  using Terms = std::vector<std::pair<double, const double*>>;

  /// Sums of single numbers, in the argument's own format, to which shuffled terms are rounded by themselves.
  [[nodiscard]] Tensor of_argument(const std::vector<std::vector<double>>& terms, const Tensor& of,
                                   bool is_scaled) const {
    const Soft format(of.dtype(), false, flushes());
    Tensor all(of.dtype(), of.shape());
    for (std::size_t e = 0; e < terms.size(); ++e) {
      std::vector<double> each = terms[e];
      if (kernel_.shuffled) std::shuffle(each.begin(), each.end(), std::mt19937_64(each.size()));
      double sum = 0;
      for (const double x : each) sum = sums_.add(sum, kernel_.shuffled && each.size() > 1 ? format.round(x) : x);
      if (is_scaled) sum = sums_.mul(sum, tau_);
      if (gain_ != 1 && a_.late_dropout) sum = sums_.mul(sum, gain_);
      all.set(static_cast<std::int64_t>(e), format.round(sum));
    }
    return all;
  }
  [[nodiscard]] static bool mask_is_scaled(const Case& c) {
    return c.mask_convention == MaskConvention::pre_scale && c.softcap == 0 && !c[Slot::alibi_slopes].present();
  }
  void take_mask(std::int64_t h, std::int64_t i, std::int64_t j, double x) {
    if (terms_mask_.empty() || (fault_.mask_of_one_head && h > 0)) return;
    const std::int64_t page = std::ssize(terms_mask_) > M_ * N_ ? h : 0;
    terms_mask_[static_cast<std::size_t>((page * M_ + i) * N_ + j)].push_back(x);
  }
  void take_sink(std::int64_t h, double weight, double delta) {
    double x = dot_.mul(a_.rounded_weights_in_scores ? kept(a_.weights, weight) : weight, delta);
    if (a_.sink_terms) x = Soft(*a_.sink_terms, false, flushes()).round(x);
    if (fault_.sink_terms_in) x = round_to(*fault_.sink_terms_in, x);
    terms_sink_[static_cast<std::size_t>(h)].push_back(fault_.positive_sink ? x : -x);
  }

  [[nodiscard]] bool truncates() const { return forward_.rounding == Rounding::toward_zero; }
  [[nodiscard]] bool flushes() const { return forward_.flushes_subnormals; }
  [[nodiscard]] std::vector<double> read(const Tensor& t) const {
    std::vector<double> all = t.to_doubles();
    if (forward_.flushes_inputs)
      for (double& x : all) x = std::fabs(x) < format_of(forward_.input).min_normal ? 0.0 : x;
    return all;
  }
  [[nodiscard]] double kept(DType format, double x) const {
    return format_of(format).unit > format_of(a_.dot).unit ||
                   format_of(format).min_subnormal > format_of(a_.dot).min_subnormal
               ? Soft(format, false, flushes()).round(x)
               : x;
  }
  [[nodiscard]] double product(const double* a, const double* b, std::int64_t n, double start) const {
    double x = start;
    for (std::int64_t c = 0; c < n; ++c)
      x = kernel_.fused ? dot_.fma(a[c], b[c], x) : dot_.add(x, dot_.mul(a[c], b[c]));
    return x;
  }

  void row(std::int64_t h, std::int64_t i, std::vector<Terms>& terms_k, std::vector<Terms>& terms_v, Tensor& of_q) {
    const Case& c = cases_[static_cast<std::size_t>(h)];
    const double lse = given_.lse[h * M_ + i];
    const EmulatedWeights seen = a_.weights_from == WeightsFrom::lse
                                     ? weights_again(kernel_.forward, c, i, lse + fault_.lse_error)
                                     : stored_weights(kernel_.forward, c, i);
    const double* const g = g_.data() + (h * M_ + i) * dv_;
    const double gamma = given_.d_lse.present() ? dot_.round(given_.d_lse[h * M_ + i]) : 0;
    const std::size_t n = seen.keys.size();
    if (n == 0) {
      // The rest of a row that sees its sink alone; its weights are none.
      if (seen.sink) {
        double delta = a_.delta == DeltaFrom::weights ? 0 : product(g, out_.data() + (h * M_ + i) * dv_, dv_, 0);
        if (gamma != 0) delta = dot_.sub(delta, gamma);
        take_sink(h, *seen.sink, delta);
      }
      for (std::int64_t e = 0; e < dk_; ++e) of_q.set((h * M_ + i) * dk_ + e, 0);
      return;
    }
    const bool drops = c.dropout_p > 0, late = a_.late_dropout;
    const bool in_sum = a_.delta_in_sum && !drops;  // nothing may multiply the sum
    const auto keeps_key = [&](std::size_t j) { return fault_.forgets_dropout || keeps(c, 0, 0, i, seen.keys[j]); };
    double delta = 0;
    if (a_.delta != DeltaFrom::weights) {
      delta = product(g, out_.data() + (h * M_ + i) * dv_, dv_, 0);
      if (drops && late) delta = dot_.mul(delta, left_);
      if (gamma != 0) delta = dot_.sub(delta, drops && late ? dot_.mul(gamma, left_) : gamma);
    }
    if (fault_.no_delta) delta = 0;
    if (fault_.delta_in) delta = round_to(*fault_.delta_in, delta);
    std::vector<double> weights, of_weights;
    for (std::size_t j = 0; j < n; ++j) {
      weights.push_back(kept(a_.weights, seen.weights[j]));
      const double start = in_sum ? -delta : 0;
      double x = product(g, v_.data() + seen.keys[j] * dv_, dv_, start);
      if (!keeps_key(j)) {
        x = start;
      } else if (drops && !late) {
        x = dot_.mul(x, gain_);
      }
      if (fault_.of_weights_in) x = round_to(*fault_.of_weights_in, x);
      of_weights.push_back(kept(a_.of_weights, x));
    }
    const auto weight_in_scores = [&](std::size_t j) {
      return a_.rounded_weights_in_scores ? weights[j] : seen.weights[j];
    };
    if (a_.delta == DeltaFrom::weights && !fault_.no_delta) {
      for (std::size_t j = 0; j < n; ++j) delta = dot_.add(delta, dot_.mul(weight_in_scores(j), of_weights[j]));
      if (gamma != 0) delta = dot_.sub(delta, drops && late ? dot_.mul(gamma, left_) : gamma);
    }
    if (seen.sink) take_sink(h, *seen.sink, delta);
    Terms terms_q;
    const std::int64_t from = fault_.dk_of_other_rows && i > 0 ? i - 1 : i;
    for (std::size_t j = 0; j < n; ++j) {
      double apart = in_sum ? of_weights[j] : dot_.sub(of_weights[j], delta);
      apart = fault_.apart_factor == 1 ? apart : dot_.mul(apart, fault_.apart_factor);
      double x = dot_.mul(weight_in_scores(j), apart);
      const double capped = fault_.caps_mask && c.softcap > 0 ? through_cap(x, seen.tangents[j], c.softcap) : x;
      take_mask(h, i, seen.keys[j], kept(a_.of_scores, capped));
      if (c.softcap > 0 && !fault_.forgets_cap) x = through_cap(x, seen.tangents[j], c.softcap);
      if (a_.scale_before_rounding) x = dot_.mul(x, tau_);
      x = kept(a_.of_scores, x);
      const auto key = static_cast<std::size_t>(seen.keys[j]);
      if (!(fault_.loses_last_key && seen.keys[j] == N_ - 1)) terms_q.emplace_back(x, k_.data() + seen.keys[j] * dk_);
      if (fault_.loses_last_row && i == M_ - 1) continue;
      terms_k[key].emplace_back(x, q_.data() + (h * M_ + from) * dk_);
      if (keeps_key(j)) terms_v[key].emplace_back(weights[j], g);
    }
    std::vector<double> sum(static_cast<std::size_t>(dk_));
    add_up(terms_q, dk_, sum.data());
    for (std::int64_t e = 0; e < dk_; ++e)
      of_q.set((h * M_ + i) * dk_ + e, out(scaled(sum[static_cast<std::size_t>(e)], true)));
  }

  /// A gradient by a capped score becomes that by the product: 1 - y^2 of it, or by the chain rule step by step.
  [[nodiscard]] double through_cap(double x, double y, double cap) const {
    const double slope = kernel_.fused ? dot_.fma(-y, y, 1) : dot_.sub(1, dot_.mul(y, y));
    if (!forward_.stored_capped && !kernel_.shuffled) return dot_.mul(x, slope);
    const auto stored = [&](double z) { return forward_.stored_capped ? kept(a_.of_scores, z) : z; };
    x = stored(dot_.mul(stored(x), dot_.round(cap)));
    return dot_.div(stored(dot_.mul(x, slope)), dot_.round(cap));
  }

  void add_up(Terms& terms, std::int64_t width, double* to) const {
    if (kernel_.shuffled) std::shuffle(terms.begin(), terms.end(), std::mt19937_64(terms.size()));
    std::fill_n(to, width, 0.0);
    for (const auto& [factor, numbers] : terms)
      for (std::int64_t e = 0; e < width; ++e)
        to[e] = kernel_.fused ? sums_.fma(factor, numbers[e], to[e]) : sums_.add(to[e], sums_.mul(factor, numbers[e]));
  }
  /// A sum over keys or rows, with what all of its terms are multiplied by.
  [[nodiscard]] double scaled(double x, bool of_scores) const {
    if (of_scores && !a_.scale_before_rounding) x = sums_.mul(x, tau_);
    return gain_ != 1 && (a_.late_dropout || !of_scores) ? sums_.mul(x, gain_) : x;
  }
  [[nodiscard]] std::vector<double> summed(std::vector<Terms>& terms, std::int64_t width, bool of_scores) const {
    std::vector<double> all(static_cast<std::size_t>(N_ * width));
    for (std::int64_t j = 0; j < N_; ++j) add_up(terms[static_cast<std::size_t>(j)], width, all.data() + j * width);
    for (double& x : all) {
      x = scaled(x, of_scores);
      if (a_.group_partials) x = Soft(*a_.group_partials, false, flushes()).round(x);
    }
    return all;
  }
  [[nodiscard]] double out(double x) const { return Soft(a_.output, false, flushes()).round(x); }
  void write(const std::vector<std::vector<double>>& heads, Tensor& to) const {
    for (std::int64_t e = 0; e < to.elements(); ++e) {
      double sum = heads[0][static_cast<std::size_t>(e)];
      for (std::size_t h = 1; h < heads.size(); ++h) sum = sums_.add(sum, heads[h][static_cast<std::size_t>(e)]);
      to.set(e, out(sum));
    }
  }

  const BackwardEmulation& kernel_;
  const Arithmetic& forward_;
  const BackwardArithmetic& a_;
  const BackwardFault& fault_;
  const BackwardInputs& given_;
  Soft dot_, sums_;
  std::int64_t heads_, M_, N_, dk_, dv_;
  std::vector<double> q_, k_, v_, g_, out_;
  std::vector<Case> cases_;
  std::vector<Terms> terms_k_, terms_v_;
  std::vector<std::vector<double>> terms_mask_, terms_sink_;
  double tau_, left_, gain_ = 1;
};

BackwardEmulation member(const std::string& forward, const std::string& name,
                         const std::function<void(BackwardEmulation&)>& change) {
  BackwardEmulation kernel;
  for (Emulation& one : correct_kernels())
    if (one.name == forward) kernel.forward = std::move(one);
  if (kernel.forward.name.empty()) throw std::logic_error("no kernel of the fleet is called " + forward);
  kernel.forward.name = name;
  const Arithmetic& a = kernel.forward.arithmetic;
  kernel.backward.output = a.input, kernel.backward.delta = DeltaFrom::out;
  kernel.backward.dot = a.score_sums, kernel.backward.accumulate = a.accumulate;
  kernel.backward.weights = kernel.backward.of_weights = kernel.backward.of_scores = a.score_sums;
  change(kernel);
  return kernel;
}

/// P and dS in the dtype, as they enter products of matrices.
void narrow(BackwardEmulation& k) {
  k.backward.weights = k.backward.of_scores = k.forward.arithmetic.input;
}
void stored(BackwardEmulation& k) {
  k.backward.weights_from = WeightsFrom::stored;
  k.backward.rounded_weights_in_scores = true;
  k.backward.weights = k.forward.arithmetic.weights;
}

}  // namespace

std::vector<BackwardEmulation> correct_backward_kernels() {
  std::vector<BackwardEmulation> all;
  const auto add = [&](const std::string& forward, const std::string& name, auto change) {
    all.push_back(member(forward, name, change));
  };
  add("f64.naive", "f64.backward", [](BackwardEmulation&) {});
  add("f64.flash.exp2", "f64.backward.exp2", [](BackwardEmulation& k) { k.shuffled = true; });
  add("f32.naive2pass", "f32.backward", [](BackwardEmulation&) {});
  add("f32.flash.b64.exp2fast", "f32.backward.exp2.atomics", [](BackwardEmulation& k) { k.shuffled = k.fused = true; });
  add("f32.flash.ftz", "f32.backward.ftz.delta-in-sum", [](BackwardEmulation& k) { k.backward.delta_in_sum = true; });
  add("f32.normalise1st", "f32.backward.stored", [](BackwardEmulation& k) {
    stored(k);
    k.backward.delta = DeltaFrom::weights;
  });
  add("f32.tc-rz", "f32.backward.rz", [](BackwardEmulation& k) { k.shuffled = k.fused = true; });
  add("f32.prescaled", "f32.backward.weights-delta",
      [](BackwardEmulation& k) { k.backward.delta = DeltaFrom::weights, k.backward.sink_terms = DType::bf16; });
  add("bf16.flash.exp2.denominator", "bf16.backward.flash2", [](BackwardEmulation& k) {
    narrow(k);
    k.shuffled = true;
    k.backward.late_dropout = true;
    k.backward.group_partials = DType::bf16;
  });
  add("bf16.flash.tc-rz.b16", "bf16.backward.rz.pre", [](BackwardEmulation& k) {
    narrow(k);
    k.fused = true;
    k.backward.scale_before_rounding = true;
  });
  add("bf16.unfused", "bf16.backward.unfused", [](BackwardEmulation& k) {
    narrow(k), stored(k);
    k.backward.of_weights = DType::bf16;
    k.backward.delta = DeltaFrom::weights;
  });
  add("bf16.unfused.xts", "bf16.backward.stored.out", [](BackwardEmulation& k) { narrow(k), stored(k); });
  add("bf16.flash.b64", "bf16.backward.rounded.weights-delta", [](BackwardEmulation& k) {
    narrow(k);
    k.backward.rounded_weights_in_scores = true;
    k.backward.delta = DeltaFrom::weights;
  });
  add("f16.flash.b64", "f16.backward.flash2", [](BackwardEmulation& k) {
    narrow(k);
    k.backward.group_partials = DType::f16;
  });
  add("f16.flash.exp2.ftz", "f16.backward.ftz", [](BackwardEmulation& k) { narrow(k), k.shuffled = true; });
  return all;
}

BackwardEmulation backward_kernel_named(const std::string& name) {
  for (BackwardEmulation& kernel : correct_backward_kernels())
    if (kernel.forward.name == name) return std::move(kernel);
  throw std::logic_error("no backward pass of the fleet is called " + name);
}

Answer emulate_heads(const Emulation& kernel, const Case& c) {
  const std::int64_t heads = c.q().shape()[1], M = c.q().shape()[2], dv = c.v().shape()[3];
  Answer all{Tensor(kernel.arithmetic.output, c.out_shape()), Tensor(DType::f64, {1, heads, M})};
  for (std::int64_t h = 0; h < heads; ++h) {
    const Answer one = emulate(kernel, head_of(c, h));
    for (std::int64_t e = 0; e < M * dv; ++e) all.out.set(h * M * dv + e, one.out[e]);
    for (std::int64_t i = 0; i < M; ++i) all.lse.set(h * M + i, one.lse[i]);
  }
  return all;
}

std::array<Tensor, gradient_count> emulate_backward(const BackwardEmulation& kernel, const Case& c,
                                                    const BackwardInputs& given) {
  return Backward(kernel, c, given).run(c);
}

BackwardCase draw_backward(Regime regime, Loss loss, DType dtype, std::int64_t heads, const Size& size, Added added,
                           std::mt19937_64& random) {
  Case c = draw(regime, dtype, {.M = heads * size.M, .N = size.N, .dk = size.dk, .dv = size.dv}, random());
  const auto split = [&](Slot slot) {
    if (!c[slot].present()) return;
    Tensor t(c[slot].dtype(), {1, heads, size.M, c[slot].shape()[3]});
    for (std::int64_t e = 0; e < t.elements(); ++e) t.set(e, c[slot][e]);
    c[slot] = std::move(t);
  };
  add(added, c, random);
  const bool shared = heads > 1 && (size.M + size.N) % 2 == 0;
  if (shared && c.mask().present()) {
    // The first head's rows serve both.
    Tensor mask(c.mask().dtype(), {1, 1, size.M, size.N});
    for (std::int64_t e = 0; e < mask.elements(); ++e) mask.set(e, c.mask()[e]);
    c[Slot::mask] = std::move(mask);
  } else {
    split(Slot::mask);
  }
  for (const Slot slot : {Slot::q, Slot::keep}) split(slot);
  for (const Slot slot : {Slot::sink, Slot::alibi_slopes}) {
    if (!c[slot].present()) continue;
    Tensor each(c[slot].dtype(), slot == Slot::sink ? Shape{heads} : Shape{1, heads});
    for (std::int64_t h = 0; h < heads; ++h) each.set(h, c[slot][0]);
    c[slot] = std::move(each);
  }
  BackwardCase of{std::move(c), Tensor(dtype, {1, heads, size.M, size.dv}), {}};
  const Format& format = format_of(dtype);
  std::normal_distribution<double> normal;
  const double huge = std::min(1e25, format.largest / 1024);
  const auto below = [&](std::uint64_t n) { return static_cast<std::int64_t>(random() % n); };
  for (std::int64_t i = 0; i < heads * size.M; ++i) {
    const std::int64_t hot = below(static_cast<std::uint64_t>(size.dv));
    const bool zero = loss == Loss::zero_rows && below(2) == 0;
    for (std::int64_t e = 0; e < size.dv; ++e) {
      double x = normal(random);
      if (loss == Loss::one_hot) x = e == hot ? 1 : 0;
      if (loss == Loss::cancelling) x = (e % 2 == 0 ? 1 : -1) * (1 + 0x1p-9 * static_cast<double>(below(3)));
      if (loss == Loss::huge) x *= huge;
      if (loss == Loss::tiny) x *= format.min_normal * 4;
      if (loss == Loss::heavy) x = x / std::max(0x1p-10, std::fabs(normal(random)));
      if (loss == Loss::whole_numbers) x = static_cast<double>(below(5)) - 2;
      of.d_out.set(i * size.dv + e, zero ? 0 : std::clamp(x, -format.largest, format.largest));
    }
  }
  if (below(4) == 0) {
    of.d_lse = Tensor(DType::f64, {1, heads, size.M});
    for (std::int64_t i = 0; i < heads * size.M; ++i)
      of.d_lse.set(i, static_cast<double>(static_cast<float>(normal(random))));
  }
  return of;
}

void GradientCount::merge(const GradientCount& other) {
  checks += other.checks, excused += other.excused, vacuous += other.vacuous, undecided += other.undecided;
  violations += other.violations;
  worst = std::max(worst, other.worst);
  if (first_violation.empty()) first_violation = other.first_violation;
  alarm.merge(other.alarm);
  if (first_alarm.empty()) first_alarm = other.first_alarm;
}

void check_gradients(const BackwardEmulation& kernel, const BackwardCase& of, const GradientOptions& options,
                     const std::string& name, GradientCount& count) {
  Answer answer = emulate_heads(kernel.forward, of.c);
  const BackwardInputs given{of.d_out, of.d_lse, std::move(answer.out), std::move(answer.lse)};
  const std::array<Tensor, gradient_count> found = emulate_backward(kernel, of.c, given);
  const GradientBounds bounds = gradient_bounds(of.c, given, kernel.forward.arithmetic, kernel.backward, options);
  bool undecided = false;
  for (std::size_t g = 0; g < bounds.size(); ++g) {
    for (std::size_t e = 0; e < bounds[g].size(); ++e) {
      const ElementBound& bound = bounds[g][e];
      if (bound.excuse != Excuse::none && bound.excuse != Excuse::vacuous) {
        ++count.excused;
        continue;
      }
      const double x = found[g][static_cast<std::int64_t>(e)], apart = std::fabs(x - bound.value);
      const bool sure = bound.certificate <= bound.allowed * 0x1p-8;
      count.vacuous += bound.excuse == Excuse::vacuous;
      ++count.checks;
      undecided = undecided || !sure;
      if (sure) count.worst = std::max(count.worst, apart / bound.allowed);
      if (!(apart - bound.certificate <= bound.allowed * (1 + 0x1p-20))) {
        ++count.violations;
        if (count.first_violation.empty())
          count.first_violation =
              fmt::format("{}: {}[{}] = {:.17g}, exact {:.17g} within {:.3g}, allowed {:.6g} ({:.4g} times)", name,
                          name_of(static_cast<Gradient>(g)), e, x, bound.value, bound.certificate, bound.allowed,
                          apart / bound.allowed);
      }
    }
  }
  if (!undecided && !(options.alarm_probability > 0)) return;
  count.undecided += undecided;
  for (const Verdict& verdict :
       judge_gradients(of.c, given, found, kernel.forward.arithmetic, kernel.backward, options)) {
    if (verdict.alarm) {
      count.alarm.merge(*verdict.alarm);
      if (verdict.alarm->beyond > 0 && count.first_alarm.empty())
        count.first_alarm = fmt::format("{}: {} times", name, verdict.alarm->worst);
    }
    if (verdict.outcome == Outcome::held) count.worst = std::max(count.worst, verdict.utilisation);
    if (verdict.outcome != Outcome::violated) continue;
    ++count.violations;
    if (count.first_violation.empty()) count.first_violation = name + ": " + verdict.reason;
  }
}

namespace {

bool takes_answers(const BackwardEmulation& kernel, GradientsAt at) {
  return at == GradientsAt::definition || kernel.backward.weights_from == WeightsFrom::lse;
}
constexpr std::array both_ways{GradientsAt::definition, GradientsAt::answers};

}  // namespace

GradientCount validate_gradients(const BackwardEmulation& kernel, const BackwardEffort& effort) {
  GradientCount count;
  for (int r = 0; r < validated_regimes; ++r) {
    const auto regime = static_cast<Regime>(r);
    for (std::uint64_t seed = effort.first_seed; seed < effort.first_seed + effort.seeds; ++seed) {
      std::mt19937_64 random(seed * 64 + static_cast<std::uint64_t>(r));
      const auto extent = [&](std::int64_t most) {
        return 1 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most));
      };
      const auto loss = static_cast<Loss>(random() % losses);
      const std::int64_t heads = extent(2);
      const Size size{.M = extent(effort.most_rows),
                      .N = extent(effort.most_keys),
                      .dk = extent(effort.most_columns),
                      .dv = extent(effort.most_columns)};
      const BackwardCase of =
          draw_backward(regime, loss, kernel.forward.arithmetic.input, heads, size, effort.added, random);
      for (const GradientsAt at : both_ways) {
        if (!takes_answers(kernel, at)) continue;
        GradientOptions options;
        options.at = at, options.profile = effort.profile, options.alarm_probability = effort.alarm_probability;
        check_gradients(kernel, of, options,
                        fmt::format("{}, {}, loss {}, seed {}{}", kernel.forward.name, name_of(regime),
                                    static_cast<int>(loss), seed, at == GradientsAt::answers ? ", at answers" : ""),
                        count);
      }
    }
  }
  return count;
}

GradientCount climb_gradients(const BackwardEmulation& kernel, std::uint64_t seed, std::int64_t steps, Added added) {
  std::mt19937_64 random(seed);
  GradientCount all;
  constexpr std::int64_t steps_per_start = 300;
  for (std::int64_t start = 0; start * steps_per_start < steps; ++start) {
    const auto extent = [&](std::uint64_t most) { return 1 + static_cast<std::int64_t>(random() % most); };
    const auto regime = static_cast<Regime>(start % validated_regimes);
    const auto loss = static_cast<Loss>(random() % losses);
    const Size size{.M = extent(3), .N = extent(6), .dk = extent(3), .dv = extent(3)};
    BackwardCase best = draw_backward(regime, loss, kernel.forward.arithmetic.input, extent(2), size, added, random);
    GradientOptions options;
    options.at = both_ways[random() % 2];
    if (!takes_answers(kernel, options.at)) options.at = GradientsAt::definition;
    double height = 0;
    for (std::int64_t step = 0; step < steps_per_start; ++step) {
      BackwardCase next = best;
      for (std::int64_t changes = extent(3); changes > 0; --changes) {
        const std::uint64_t which = random() % 4;
        Tensor& t = which == 0 ? next.d_out : next.c[std::array{Slot::q, Slot::k, Slot::v}[which - 1]];
        const std::int64_t at = extent(static_cast<std::uint64_t>(t.elements())) - 1;
        t.set(at, changed(t, at, random));
      }
      GradientCount one;
      check_gradients(kernel, next, options, fmt::format("{}, climb {}", kernel.forward.name, seed), one);
      if (one.checks > 0 && one.worst >= height) {
        height = one.worst;
        best = std::move(next);
      }
      all.merge(one);
    }
  }
  return all;
}

}  // namespace attest::fleet
