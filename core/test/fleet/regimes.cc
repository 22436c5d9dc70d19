#include "core/test/fleet/regimes.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "core/support/infinity.h"

namespace attest::fleet {
namespace {

/// The tensors as doubles while a regime shapes them.
struct Draft {
  Size size;
  DType dtype;
  std::mt19937_64 random;
  std::vector<double> q, k, v, mask;
  double scale;
  MaskConvention convention = MaskConvention::post_scale;

  double normal() { return std::normal_distribution<double>()(random); }
  double uniform(double low, double high) { return std::uniform_real_distribution<double>(low, high)(random); }
  std::int64_t below(std::int64_t n) { return std::uniform_int_distribution<std::int64_t>(0, n - 1)(random); }
  double& q_at(std::int64_t i, std::int64_t c) { return q[static_cast<std::size_t>(i * size.dk + c)]; }
  double& k_at(std::int64_t j, std::int64_t c) { return k[static_cast<std::size_t>(j * size.dk + c)]; }
  double& v_at(std::int64_t j, std::int64_t c) { return v[static_cast<std::size_t>(j * size.dv + c)]; }
  double& mask_at(std::int64_t i, std::int64_t j) { return mask[static_cast<std::size_t>(i * size.N + j)]; }
  [[nodiscard]] const Format& format() const { return format_of(dtype); }
};

void gauss(Draft& d, double deviation) {
  for (double& x : d.q) x = deviation * d.normal();
  for (double& x : d.k) x = d.normal();
  for (double& x : d.v) x = d.normal();
}

/// Gives key j the score `score` for the query of row 0 by its first column alone; the rest stays small noise.
void set_scores(Draft& d, const std::vector<double>& scores) {
  for (std::int64_t i = 0; i < d.size.M; ++i) {
    for (std::int64_t c = 0; c < d.size.dk; ++c) d.q_at(i, c) = c == 0 ? 4.0 : 0x1p-6 * d.normal();
  }
  for (std::int64_t j = 0; j < d.size.N; ++j) {
    for (std::int64_t c = 0; c < d.size.dk; ++c) {
      d.k_at(j, c) = c == 0 ? scores[static_cast<std::size_t>(j)] / (4.0 * d.scale) : 0x1p-6 * d.normal();
    }
  }
}

void heavy(Draft& d) {
  const double limit = std::min(1e6, d.format().largest / 64);
  for (auto* values : {&d.q, &d.k, &d.v}) {
    for (double& x : *values) x = std::clamp(std::tan(d.uniform(-1.57, 1.57)), -limit, limit);
  }
  for (double& x : d.q) x *= 0x1p-3;
}

void cancel_v(Draft& d) {
  gauss(d, 0.1);
  for (std::int64_t j = 1; j < d.size.N; j += 2) {
    for (std::int64_t c = 0; c < d.size.dk; ++c) d.k_at(j, c) = d.k_at(j - 1, c);
    for (std::int64_t c = 0; c < d.size.dv; ++c) d.v_at(j, c) = -d.v_at(j - 1, c) * (1 + 0x1p-6 * d.normal());
  }
}

void near_ties(Draft& d) {
  gauss(d, 1.0);
  for (std::int64_t j = 1; j < d.size.N; ++j) {
    for (std::int64_t c = 0; c < d.size.dk; ++c) {
      d.k_at(j, c) = d.k_at(0, c) * (1 + 8 * d.format().unit * d.normal());
    }
  }
}

void ties(Draft& d) {
  gauss(d, d.uniform(0.1, 4));
  for (std::int64_t j = 3; j < d.size.N; ++j) {
    const std::int64_t key = d.below(3);
    const std::int64_t value = d.below(2);
    for (std::int64_t c = 0; c < d.size.dk; ++c) d.k_at(j, c) = d.k_at(key, c);
    for (std::int64_t c = 0; c < d.size.dv; ++c) d.v_at(j, c) = d.v_at(value, c);
  }
}

void dominant(Draft& d) {
  std::vector<double> scores(static_cast<std::size_t>(d.size.N));
  for (double& s : scores) s = d.normal();
  gauss(d, 1.0);
  scores[static_cast<std::size_t>(d.below(d.size.N))] += d.uniform(5, 60);
  set_scores(d, scores);
}

void offset(Draft& d) {
  gauss(d, d.uniform(0.05, 1));
  double norm = 0;
  for (std::int64_t c = 0; c < d.size.dk; ++c) norm += d.q_at(0, c) * d.q_at(0, c);
  // A direction along q that adds the same to every score, within the range of the format.
  const double sign = d.normal();
  const double wanted = std::copysign(d.uniform(100, 3000), sign);
  const double step = std::clamp(wanted / (d.scale * norm), -0.01 * d.format().largest, 0.01 * d.format().largest);
  for (std::int64_t j = 0; j < d.size.N; ++j) {
    for (std::int64_t c = 0; c < d.size.dk; ++c) d.k_at(j, c) += step * d.q_at(0, c);
  }
}

void subnormal(Draft& d) {
  gauss(d, 1.0);
  double low = -106;
  double high = -80;
  double value = 1e30;
  if (d.dtype == DType::f64) {
    low = -748;
    high = -700;
    value = 1e300;
  } else if (d.dtype == DType::f16) {
    low = -19;
    high = -7;
    value = 6e4;
  }
  std::vector<double> scores(static_cast<std::size_t>(d.size.N));
  for (double& s : scores) s = d.uniform(low, high);
  const std::int64_t first = d.below(d.size.N);
  scores[static_cast<std::size_t>(first)] = 0;
  for (double& x : d.v) x = value * d.uniform(-1, 1);
  for (std::int64_t c = 0; c < d.size.dv; ++c) d.v_at(first, c) = d.below(2) == 0 ? 0.0 : d.normal();
  set_scores(d, scores);
}

void alibi_mask(Draft& d) {
  gauss(d, d.uniform(0.5, 3));
  d.mask.resize(static_cast<std::size_t>(d.size.M * d.size.N));
  d.convention = d.below(2) == 0 ? MaskConvention::post_scale : MaskConvention::pre_scale;
  const double slope = std::exp2(-d.uniform(1, 8));
  const std::int64_t kind = d.below(4);
  for (std::int64_t i = 0; i < d.size.M; ++i) {
    const std::int64_t position = d.size.N - d.size.M + i;
    for (std::int64_t j = 0; j < d.size.N; ++j) {
      double bias = -slope * std::fabs(static_cast<double>(position - j));
      if (kind == 0 && d.below(3) == 0) bias = -infinity;
      if (kind == 1 && j > position) bias = -infinity;
      if (kind == 2 && j < d.size.N / 2) bias = -infinity;
      if (kind == 3 && d.below(3) == 0) bias = -1e4;
      d.mask_at(i, j) = bias;
    }
    if (d.size.N > 0) d.mask_at(i, d.size.N - 1) = 0;
  }
}

void ill_dot(Draft& d) {
  gauss(d, 30.0);
  for (double& x : d.k) x *= 30;
  for (std::int64_t j = 0; j < d.size.N; ++j) {
    for (std::int64_t c = 1; c < d.size.dk; c += 2) {
      // q of row 0 in opposite pairs makes products cancel to what the rounding of k leaves.
      d.q_at(0, c) = d.q_at(0, c - 1);
      d.k_at(j, c) = -d.k_at(j, c - 1) + d.normal() / 30;
    }
    if (d.size.dk % 2 == 1) d.k_at(j, d.size.dk - 1) *= 0x1p-8;
  }
}

void offset_v(Draft& d) {
  gauss(d, 1.0);
  const double shift = std::exp(d.uniform(0, 8));
  for (double& x : d.v) x += shift;
}

void one_hot_v(Draft& d) {
  gauss(d, std::exp(d.uniform(-2, 2)));
  std::fill(d.v.begin(), d.v.end(), 0.0);
  for (std::int64_t c = 0; c < d.size.dv; ++c) d.v_at(d.below(d.size.N), c) = 1;
}

void huge(Draft& d) {
  // Up to 5e6 in f32; the same distance from the format's own rounding in f64, and what f16 inputs can reach.
  const double top = d.dtype == DType::f64 ? 0x1p49 : 5e6;
  const double size = std::sqrt(std::exp(d.uniform(0, std::log(top / 6))));
  const double limit = d.format().largest / 256;
  gauss(d, 1.0);
  for (double& x : d.q) x = std::clamp(x * size, -limit, limit);
  for (double& x : d.k) x = std::clamp(x * size, -limit, limit);
}

void sinks(Draft& d) {
  gauss(d, 1.0);
  d.mask.assign(static_cast<std::size_t>(d.size.M * d.size.N), 0.0);
  const double choices[] = {-d.format().largest, -d.format().largest / 2, -1e4, std::max(-1e9, -d.format().largest), 0};
  const double low = choices[d.below(5)];
  for (double& x : d.mask) x = d.below(2) == 0 ? low : 0.0;
  // At times the whole first half: a running maximum that starts on nothing but sinks.
  if (d.below(2) == 0) {
    for (std::int64_t i = 0; i < d.size.M; ++i) {
      for (std::int64_t j = 0; j < d.size.N / 2; ++j) d.mask_at(i, j) = low;
    }
  }
  for (std::int64_t i = 0; i < d.size.M; ++i) d.mask_at(i, d.size.N - 1) = 0;
}

void low_weight(Draft& d) {
  gauss(d, d.dtype == DType::f32 || d.dtype == DType::f64 ? 10.0 : 4.0);
  std::vector<double> score(static_cast<std::size_t>(d.size.N));
  for (std::int64_t j = 0; j < d.size.N; ++j) {
    for (std::int64_t c = 0; c < d.size.dk; ++c) score[static_cast<std::size_t>(j)] += d.q_at(0, c) * d.k_at(j, c);
  }
  std::vector<std::int64_t> order(score.size());
  std::iota(order.begin(), order.end(), std::int64_t{0});
  std::sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    return score[static_cast<std::size_t>(a)] < score[static_cast<std::size_t>(b)];
  });
  std::fill(d.v.begin(), d.v.end(), 0.0);
  for (std::int64_t c = 0; c < d.size.dv; ++c) d.v_at(order[static_cast<std::size_t>(c % d.size.N)], c) = 1;
}

void leak(Draft& d) {
  gauss(d, 1.0);
  d.mask.assign(static_cast<std::size_t>(d.size.M * d.size.N), 0.0);
  for (std::int64_t j = 0; j < d.size.N; ++j) {
    const bool hidden = j % 2 == 1;
    for (std::int64_t i = 0; i < d.size.M && hidden; ++i) d.mask_at(i, j) = -infinity;
    for (std::int64_t c = 0; c < d.size.dv; ++c) d.v_at(j, c) = hidden ? 100 + d.normal() : 0.0;
  }
}

void stagnation(Draft& d) {
  gauss(d, 1.0);
  std::fill(d.q.begin(), d.q.end(), 0.0);
  for (std::int64_t j = 0; j < d.size.N; ++j) {
    for (std::int64_t c = 0; c < d.size.dv; ++c) d.v_at(j, c) = j < d.size.N / 2 ? 0.0 : 1.0;
  }
}

void shape(Draft& d, Regime regime) {
  switch (regime) {
    case Regime::gauss_0_1:
      return gauss(d, 0.1);
    case Regime::gauss_1:
      return gauss(d, 1.0);
    case Regime::gauss_10:
      return gauss(d, 10.0);
    case Regime::heavy:
      return heavy(d);
    case Regime::cancel_v:
      return cancel_v(d);
    case Regime::near_ties:
      return near_ties(d);
    case Regime::ties:
      return ties(d);
    case Regime::dominant:
      return dominant(d);
    case Regime::offset:
      return offset(d);
    case Regime::subnormal:
      return subnormal(d);
    case Regime::alibi_mask:
      return alibi_mask(d);
    case Regime::ill_dot:
      return ill_dot(d);
    case Regime::offset_v:
      return offset_v(d);
    case Regime::one_hot_v:
      return one_hot_v(d);
    case Regime::huge:
      return huge(d);
    case Regime::sinks:
      return sinks(d);
    case Regime::low_weight:
      return low_weight(d);
    case Regime::leak:
      return leak(d);
    case Regime::stagnation:
      return stagnation(d);
  }
}

}  // namespace

std::string_view name_of(Regime regime) {
  constexpr std::array<std::string_view, 19> names{"gauss0.1",   "gauss1",    "gauss10",  "heavy",     "cancelV",
                                                   "nearties",   "ties",      "dominant", "offset",    "subnormal",
                                                   "alibi+mask", "illdot",    "offsetV",  "onehotV",   "huge",
                                                   "sinks",      "lowweight", "leak",     "stagnation"};
  return names[static_cast<std::size_t>(regime)];
}

Case draw(Regime regime, DType dtype, const Size& size, std::uint64_t seed) {
  std::seed_seq mixed{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32U),
                      static_cast<std::uint32_t>(regime), static_cast<std::uint32_t>(dtype)};
  Draft d{.size = size,
          .dtype = dtype,
          .random = std::mt19937_64(mixed),
          .q = {},
          .k = {},
          .v = {},
          .mask = {},
          .scale = 0};
  d.q.resize(static_cast<std::size_t>(size.M * size.dk));
  d.k.resize(static_cast<std::size_t>(size.N * size.dk));
  d.v.resize(static_cast<std::size_t>(size.N * size.dv));
  d.scale = 1.0 / std::sqrt(static_cast<double>(size.dk));
  shape(d, regime);
  Case c;
  c[Slot::q] = Tensor(dtype, {1, 1, size.M, size.dk}, d.q);
  c[Slot::k] = Tensor(dtype, {1, 1, size.N, size.dk}, d.k);
  c[Slot::v] = Tensor(dtype, {1, 1, size.N, size.dv}, d.v);
  if (!d.mask.empty()) c[Slot::mask] = Tensor(dtype, {1, 1, size.M, size.N}, d.mask);
  c.scale = d.scale;
  c.mask_convention = d.convention;
  return c;
}

}  // namespace attest::fleet
