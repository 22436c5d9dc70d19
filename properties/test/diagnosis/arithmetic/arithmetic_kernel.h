// A kernel of a chosen arithmetic, written out plainly: every step rounds as Making says, in loops of its own.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include "core/kernel/kernel_under_test.h"
#include "core/test/fleet/soft.h"

namespace attest {

/// What the kernel does; the defaults are a two-pass kernel in f32.
struct Making {
  enum class Order { sequential, backwards, pairwise, blocks, lanes, parts };

  DType input = DType::f32;
  DType score = DType::f32, sums = DType::f32;
  Order dot = Order::sequential, over_keys = Order::sequential;
  std::int64_t dot_width = 8, width = 64;  ///< of blocks, lanes or parts
  bool denominator_in_turn = false;        ///< sums its weights one after another, whatever the order of the values
  std::int64_t block = 0;                  ///< of keys between rescalings; 0: the maximum is taken first
  bool block_sums = false;                 ///< each block's values are summed by themselves, then added
  DType weights = DType::f64;              ///< f64: not rounded
  bool rounded_denominator = false, normalise_first = false;
  bool exp2 = false, folded = false, prescaled = false;
  DType prescaled_format = DType::f32;
  DType stored = DType::f64;  ///< scores; f64: not stored
  double exp_ulp = 0;         ///< by which exp errs
  bool flushes = false, flushes_inputs = false, cuts = false, truncates = false, no_maximum = false;
  double lazy = 0;
  std::int64_t other_from = 1 << 30;  ///< from so many keys on, values are summed one after another
  std::int64_t other_rows = 1 << 30;  ///< and from so many queries on
};

class MadeKernel : public Kernel {
 public:
  MadeKernel(std::string id, const Making& make) : id_(std::move(id)), make_(make) {
    manifest_.name = id_;
    manifest_.version = "1";
    manifest_.dtypes = {make.input};
    manifest_.arithmetic.usual[make.input] = universal_arithmetic(make.input, make.input);
    manifest_.mask_conventions = {MaskConvention::post_scale, MaskConvention::pre_scale};
    manifest_.causal = {Causal::top_left, Causal::bottom_right};
    manifest_.fully_masked_row = FullyMaskedRow::nan;
  }
  [[nodiscard]] const std::string& id() const override { return id_; }
  [[nodiscard]] const Manifest& manifest() const override { return manifest_; }
  [[nodiscard]] Manifest& manifest() { return manifest_; }
  [[nodiscard]] std::unique_ptr<Kernel> clone() const override { return std::make_unique<MadeKernel>(*this); }

  [[nodiscard]] Reply run(const Case& c, std::optional<DType> output, bool /*want_lse*/) override {
    const Shape q = c.q().shape(), v = c.v().shape();
    Tensor out(output.value_or(c.dtype()), c.out_shape());
    for (std::int64_t b = 0; b < q[0]; ++b) {
      for (std::int64_t h = 0; h < q[1]; ++h) {
        const Page page = page_of(c, b, h * v[1] / q[1]);
        for (std::int64_t i = 0; i < q[2]; ++i) {
          const std::vector<double> row = row_of(c, page, b, h, i);
          for (std::int64_t d = 0; d < v[3]; ++d)
            out.set(out.shape().flat(b, h, i, d), stored(out.dtype(), row[static_cast<std::size_t>(d)]));
        }
      }
    }
    return {CallStatus::ok, {}, std::move(out), {}};
  }

 private:
  using Soft = fleet::Soft;
  using Order = Making::Order;
  struct Page {
    std::vector<double> k, v;
  };

  [[nodiscard]] double stored(DType format, double x) const {
    const double least = format_of(format).min_normal;
    const double kept = make_.cuts ? truncate_to(format, x) : round_to(format, x);
    return make_.flushes && std::fabs(kept) < least ? 0.0 : kept;
  }
  [[nodiscard]] double input(DType format, double x) const {
    return make_.flushes_inputs && std::fabs(x) < format_of(format).min_normal ? 0.0 : x;
  }
  [[nodiscard]] Page page_of(const Case& c, std::int64_t b, std::int64_t h) const {
    Page page;
    const Shape k = c.k().shape(), v = c.v().shape();
    for (std::int64_t e = 0; e < k[2] * k[3]; ++e)
      page.k.push_back(input(c.k().dtype(), c.k()[k.flat(b, h, 0L, 0L) + e]));
    for (std::int64_t e = 0; e < v[2] * v[3]; ++e)
      page.v.push_back(input(c.v().dtype(), c.v()[v.flat(b, h, 0L, 0L) + e]));
    return page;
  }

  /// Of terms in an order, each addition rounded.
  static double added(const Soft& soft, Order order, std::int64_t width, const std::vector<double>& terms) {
    const std::size_t n = terms.size(), w = static_cast<std::size_t>(width);
    if (n == 0) return 0;
    const auto in_turn = [&](std::size_t from, std::size_t to) {
      double total = terms[from];
      for (std::size_t i = from + 1; i < to; ++i) total = soft.add(total, terms[i]);
      return total;
    };
    std::vector<double> some;
    switch (order) {
      case Order::sequential:
        return in_turn(0, n);
      case Order::backwards:
        return added(soft, Order::sequential, 0, {terms.rbegin(), terms.rend()});
      case Order::blocks:
        for (std::size_t at = 0; at < n; at += w) some.push_back(in_turn(at, std::min(n, at + w)));
        return added(soft, Order::sequential, 0, some);
      case Order::parts:
        for (std::size_t p = 0; p < w; ++p)
          if (n * p / w < n * (p + 1) / w) some.push_back(in_turn(n * p / w, n * (p + 1) / w));
        return added(soft, Order::sequential, 0, some);
      case Order::lanes:
        for (std::size_t i = 0; i < n; ++i) {
          if (i < w) some.push_back(terms[i]);
          if (i >= w) some[i % w] = soft.add(some[i % w], terms[i]);
        }
        return added(soft, Order::pairwise, 0, some);
      case Order::pairwise:
        break;
    }
    some = terms;
    while (some.size() > 1) {
      std::vector<double> next;
      for (std::size_t i = 0; i + 1 < some.size(); i += 2) next.push_back(soft.add(some[i], some[i + 1]));
      if (some.size() % 2 == 1) next.push_back(some.back());
      some = std::move(next);
    }
    return some[0];
  }

  [[nodiscard]] double exponential(double x, double rest = 0) const {
    const Soft soft(make_.score, false, make_.flushes);
    double y = make_.exp2 ? std::exp2(x) * std::exp2(rest) : std::exp(x);
    if (make_.exp_ulp > 0) {
      const double noise = std::sin(x * 12345.0);
      y *= 1 + noise * make_.exp_ulp * format_of(make_.score).unit;
    }
    return soft.round(y);
  }

  [[nodiscard]] std::vector<double> row_of(const Case& c, const Page& page, std::int64_t b, std::int64_t h,
                                           std::int64_t i) const;

  /// Of a score beside a reference.
  [[nodiscard]] double weight(double score, double reference) const {
    const Soft soft(make_.score, false, make_.flushes);
    if (!make_.exp2) return exponential(make_.no_maximum ? score : soft.sub(score, reference));
    const double log2e = round_to(make_.score, std::numbers::log2e);
    if (make_.folded) return exponential(soft.fma(score, log2e, -soft.mul(reference, log2e)));
    return exponential(soft.mul(soft.sub(score, reference), log2e));
  }
  [[nodiscard]] double factor(double from, double to) const {
    if (from == to) return 1;
    const Soft soft(make_.score, false, make_.flushes);
    const double below = soft.sub(from, to);
    return exponential(make_.exp2 ? soft.mul(below, round_to(make_.score, std::numbers::log2e)) : below);
  }

  std::string id_;
  Making make_;
  Manifest manifest_;
};

inline std::vector<double> MadeKernel::row_of(const Case& c, const Page& page, std::int64_t b, std::int64_t h,
                                              std::int64_t i) const {
  const std::int64_t M = c.q().shape()[2], dk = c.q().shape()[3], N = c.k().shape()[2], dv = c.v().shape()[3];
  const Soft score(make_.score, make_.truncates, make_.flushes), sums(make_.sums, make_.truncates, make_.flushes);
  std::vector<double> q;
  for (std::int64_t d = 0; d < dk; ++d) {
    const double x = input(c.dtype(), c.q().at(b, h, i, d));
    q.push_back(make_.prescaled ? Soft(make_.prescaled_format, false, make_.flushes).round(x * c.scale) : x);
  }
  std::vector<double> z, terms;
  std::vector<std::int64_t> keys;
  for (std::int64_t j = 0; j < N; ++j) {
    if (c.causal == Causal::top_left && j > i) continue;
    if (c.causal == Causal::bottom_right && j > i + N - M) continue;
    double bias = 0;
    if (c.mask().present()) {
      const Shape mask = c.mask().shape();
      const double entry = c.mask()[mask.flat(mask[0] == 1 ? 0 : b, mask[1] == 1 ? 0 : h, i, j)];
      if (c.mask().dtype() == DType::boolean ? entry == 0 : std::isinf(entry)) continue;
      if (c.mask().dtype() != DType::boolean) bias = entry;
    }
    terms.clear();
    for (std::int64_t d = 0; d < dk; ++d)
      terms.push_back(score.mul(q[static_cast<std::size_t>(d)], page.k[static_cast<std::size_t>(j * dk + d)]));
    double s = added(score, make_.dot, make_.dot_width, terms);
    const bool pre = c.mask_convention == MaskConvention::pre_scale;
    if (pre && bias != 0 && make_.prescaled) bias = score.mul(bias, c.scale);
    if (pre && bias != 0) s = score.add(s, bias);
    if (!make_.prescaled) s = score.mul(s, score.round(c.scale));
    if (!pre && bias != 0) s = score.add(s, bias);
    z.push_back(round_to(make_.stored, s));
    keys.push_back(j);
  }
  const std::size_t n = keys.size();
  if (n == 0) return std::vector<double>(static_cast<std::size_t>(dv), std::numeric_limits<double>::quiet_NaN());

  std::vector<double> out(static_cast<std::size_t>(dv), 0.0);
  double sum = 0, reference = -std::numeric_limits<double>::infinity();
  const std::size_t block = make_.block > 0 ? static_cast<std::size_t>(make_.block) : n;
  const Soft narrow(make_.weights, false, make_.flushes);
  for (std::size_t at = 0; at < n; at += block) {
    const std::size_t end = std::min(n, at + block);
    const double largest = std::max(reference, *std::max_element(z.begin() + static_cast<std::ptrdiff_t>(at),
                                                                 z.begin() + static_cast<std::ptrdiff_t>(end)));
    if (make_.no_maximum) {
      reference = 0;
    } else if (at == 0 || (largest > reference && largest - reference >= make_.lazy)) {
      const double f = at == 0 ? 0.0 : factor(reference, largest);
      sum = sums.mul(sum, f);
      for (double& o : out) o = sums.mul(o, f);
      reference = largest;
    }
    std::vector<double> w;
    for (std::size_t j = at; j < end; ++j) w.push_back(weight(z[j], reference));
    const bool other = static_cast<std::int64_t>(n) >= make_.other_from || M >= make_.other_rows;
    const Order order = other ? Order::sequential : make_.over_keys;
    std::vector<double> rounded;
    rounded.reserve(w.size());
    for (const double x : w) rounded.push_back(narrow.round(x));
    const double all = added(sums, make_.denominator_in_turn ? Order::sequential : order, make_.width,
                             make_.rounded_denominator ? rounded : w);
    if (make_.normalise_first)
      for (std::size_t j = 0; j < w.size(); ++j) rounded[j] = narrow.round(sums.div(w[j], all));
    const bool joined = make_.block > 0 && !make_.block_sums;
    if (joined) {
      for (const double x : make_.rounded_denominator ? rounded : w) sum = sums.add(sum, x);
    } else {
      sum = sum == 0 ? all : sums.add(sum, all);
    }
    for (std::int64_t d = 0; d < dv; ++d) {
      double& o = out[static_cast<std::size_t>(d)];
      terms.clear();
      for (std::size_t j = at; j < end; ++j)
        terms.push_back(sums.mul(rounded[j - at], page.v[static_cast<std::size_t>(keys[j] * dv + d)]));
      if (joined) {
        for (const double x : terms) o = sums.add(o, x);
      } else {
        const double part = added(sums, order, make_.width, terms);
        o = at == 0 ? part : sums.add(o, part);
      }
    }
  }
  if (!make_.normalise_first)
    for (double& o : out) o = sums.div(o, sum);
  return out;
}

}  // namespace attest
