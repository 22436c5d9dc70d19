#include "core/bench/reference_passes.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/multiprecision/cpp_bin_float.hpp>
#include <boost/multiprecision/mpfr.hpp>
#include <cstdio>
#include <memory>

#include "core/bound/loops/inner_loops.h"
#include "core/scalars/arb_header.h"

namespace attest {
namespace {

namespace mp = boost::multiprecision;
using BinFloat50 = mp::number<mp::cpp_bin_float<50>, mp::et_off>;
using MpfrFloat = mp::number<mp::mpfr_float_backend<0>, mp::et_off>;

template <class T>
std::vector<double> boost_pass(const HeadData& head) {
  const auto wide = [](const std::vector<double>& values) { return std::vector<T>(values.begin(), values.end()); };
  const std::vector<T> q = wide(head.q), k = wide(head.k), v = wide(head.v);
  const auto at = [](std::int64_t i) { return static_cast<std::size_t>(i); };
  std::vector<T> w(at(head.keys));
  std::vector<T> o(at(head.dv));
  std::vector<double> out;
  for (std::int64_t i = 0; i < head.queries; ++i) {
    for (std::int64_t j = 0; j < head.keys; ++j) {
      T& s = w[at(j)];
      s = 0;
      for (std::int64_t c = 0; c < head.dk; ++c) s += q[at(i * head.dk + c)] * k[at(j * head.dk + c)];
      s *= head.scale;
    }
    const T m = *std::max_element(w.begin(), w.end());
    T sum = 0;
    for (T& s : w) {
      s = exp(T(s - m));
      sum += s;
    }
    std::fill(o.begin(), o.end(), T(0));
    for (std::int64_t j = 0; j < head.keys; ++j)
      for (std::int64_t c = 0; c < head.dv; ++c) o[at(c)] += w[at(j)] * v[at(j * head.dv + c)];
    for (const T& value : o) out.push_back(static_cast<double>(T(value / sum)));
  }
  return out;
}

/// An array of balls.
class Balls {
 public:
  explicit Balls(std::int64_t n) : n_(n), balls_(_arb_vec_init(n)) {}
  explicit Balls(const std::vector<double>& values) : Balls(static_cast<std::int64_t>(values.size())) {
    for (std::int64_t i = 0; i < n_; ++i) arb_set_d(balls_ + i, values[static_cast<std::size_t>(i)]);
  }
  ~Balls() { _arb_vec_clear(balls_, n_); }
  Balls(const Balls&) = delete;
  Balls& operator=(const Balls&) = delete;
  operator arb_ptr() { return balls_; }

 private:
  std::int64_t n_;
  arb_ptr balls_;
};

/// [keys][width] as the loops want it.
void pack_panels(const std::vector<double>& rows, std::int64_t n, std::int64_t width, std::vector<double>& panels,
                 std::vector<double>& scratch) {
  using detail::panel_width;
  const std::int64_t count = (n + panel_width - 1) / panel_width;
  panels.resize(static_cast<std::size_t>(count * panel_width * width));
  scratch.resize(static_cast<std::size_t>(count * panel_width));
  double largest = 0;
  for (std::int64_t first = 0; first < n; first += panel_width)
    detail::inner_loops().pack(rows.data() + first * width, std::min(panel_width, n - first), width,
                               panels.data() + first * width, scratch.data() + first, &largest);
}

}  // namespace

const PlainBackwardPass::Gradients& PlainBackwardPass::operator()(const HeadData& head,
                                                                  const std::vector<double>& d_out,
                                                                  const std::vector<double>& out,
                                                                  const std::vector<double>& lse) {
  const detail::InnerLoops& loops = detail::inner_loops();
  const std::int64_t n = head.keys, dk = head.dk, dv = head.dv;
  pack_panels(head.k, n, dk, keys_, weights_), pack_panels(head.v, n, dv, values_, products_);
  const auto count = std::ssize(weights_) / detail::panel_width;
  found_.dq.assign(head.q.size(), 0), found_.dk.assign(head.k.size(), 0), found_.dv.assign(head.v.size(), 0);
  double *const w = weights_.data(), *const ds = products_.data();
  for (std::int64_t i = 0; i < head.queries; ++i) {
    const double *const q = head.q.data() + i * dk, *const g = d_out.data() + i * dv;
    loops.plain_dots(q, dk, keys_.data(), count, w);
    for (std::int64_t j = 0; j < n; ++j) w[j] *= head.scale;
    loops.weights(w, n, lse[static_cast<std::size_t>(i)], w);
    loops.plain_dots(g, dv, values_.data(), count, ds);
    double delta = 0;
    for (std::int64_t c = 0; c < dv; ++c) delta += g[c] * out[static_cast<std::size_t>(i * dv + c)];
    for (std::int64_t j = 0; j < n; ++j) ds[j] = w[j] * (ds[j] - delta) * head.scale;
    loops.combine(ds, nullptr, n, head.k.data(), dk, found_.dq.data() + i * dk);
    for (std::int64_t j = 0; j < n; ++j) {
      double *const to_k = found_.dk.data() + j * dk, *const to_v = found_.dv.data() + j * dv;
      for (std::int64_t c = 0; c < dk; ++c) to_k[c] += ds[j] * q[c];
      for (std::int64_t c = 0; c < dv; ++c) to_v[c] += w[j] * g[c];
    }
  }
  return found_;
}

const std::vector<double>& PlainPass::operator()(const HeadData& head) {
  using detail::panel_width;
  const detail::InnerLoops& loops = detail::inner_loops();
  const std::int64_t n = head.keys, dk = head.dk, dv = head.dv, count = (n + panel_width - 1) / panel_width;
  out_.resize(static_cast<std::size_t>(head.queries * dv));
  pack_panels(head.k, n, dk, panels_, weights_);
  double* const w = weights_.data();
  for (std::int64_t i = 0; i < head.queries; ++i) {
    loops.plain_dots(head.q.data() + i * dk, dk, panels_.data(), count, w);
    for (std::int64_t j = 0; j < n; ++j) w[j] *= head.scale;
    double m = w[0];
    for (std::int64_t j = 1; j < n; ++j) m = w[j] > m ? w[j] : m;
    const double inverse = 1 / loops.weights(w, n, m, w);
    double* const o = out_.data() + i * dv;
    loops.combine(w, nullptr, n, head.v.data(), dv, o);
    for (std::int64_t c = 0; c < dv; ++c) o[c] *= inverse;
  }
  return out_;
}

std::vector<double> arb_pass(const HeadData& head, long bits) {
  const std::int64_t n = head.keys, dk = head.dk, dv = head.dv;
  Balls q(head.q), k(head.k), v(head.v), w(n), scratch(2);
  arb_ptr scale = scratch, value = static_cast<arb_ptr>(scratch) + 1;
  std::vector<double> out;
  arb_set_d(scale, head.scale);
  for (std::int64_t i = 0; i < head.queries; ++i) {
    arb_ptr largest = w;
    for (std::int64_t j = 0; j < n; ++j) {
      arb_dot(w + j, nullptr, 0, q + i * dk, 1, k + j * dk, 1, dk, bits);
      arb_mul(w + j, w + j, scale, bits);
      if (arf_cmp(arb_midref(w + j), arb_midref(largest)) > 0) largest = w + j;
    }
    Balls sum(2);
    arb_ptr m = static_cast<arb_ptr>(sum) + 1;
    arb_set(m, largest);
    for (std::int64_t j = 0; j < n; ++j) {
      arb_sub(w + j, w + j, m, bits);
      arb_exp(w + j, w + j, bits);
      arb_add(sum, sum, w + j, bits);
    }
    for (std::int64_t c = 0; c < dv; ++c) {
      arb_dot(value, nullptr, 0, w, 1, v + c, dv, n, bits);
      arb_div(value, value, sum, bits);
      out.push_back(arf_get_d(arb_midref(value), ARF_RND_NEAR));
    }
  }
  return out;
}

std::vector<double> mpfr_pass(const HeadData& head, unsigned digits) {
  MpfrFloat::thread_default_precision(digits);
  return boost_pass<MpfrFloat>(head);
}

std::vector<double> bin_float_50_pass(const HeadData& head) {
  return boost_pass<BinFloat50>(head);
}

std::optional<double> mpmath_seconds_per_key(std::int64_t dk, long bits) {
  // Only the arithmetic is timed, and the row is repeated until the clock is fine enough for it.
  const std::string program = fmt::format(
      R"(import random, time, mpmath
mpmath.mp.prec = {}
d, n, r = {}, 64, random.Random(1)
row = lambda: [mpmath.mpf(r.gauss(0, 1)) for _ in range(d)]
q, k, v = row(), [row() for _ in range(n)], [row() for _ in range(n)]
scale = 1 / mpmath.sqrt(d)
def attend():
    s = [scale * sum((a * b for a, b in zip(q, x)), mpmath.mpf(0)) for x in k]
    m = max(s)
    w = [mpmath.exp(x - m) for x in s]
    z = sum(w, mpmath.mpf(0))
    return [sum((w[j] * v[j][c] for j in range(n)), mpmath.mpf(0)) / z for c in range(d)]
start, rounds = time.process_time(), 0
while rounds < 3 or time.process_time() - start < 0.3:
    attend()
    rounds += 1
print((time.process_time() - start) / (rounds * n)))",
      bits, dk);
  const std::string command = fmt::format("/usr/bin/python3 -c '{}' 2>/dev/null", program);
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
  double seconds = 0;
  if (!pipe || std::fscanf(pipe.get(), "%lf", &seconds) != 1) return std::nullopt;
  return seconds;
}

}  // namespace attest
