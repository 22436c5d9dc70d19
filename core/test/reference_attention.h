// Attention and multi-head attention of a case written out once, in any floating-point type: plain loops in the order
// of the definition, with every mask and causal form, grouped queries, projections and add_bias_kv. For tests that
// need an answer that shares nothing with what they test.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/problem/case.h"

namespace attest::test {

/// What a wrong answer does: multiplies the scale, and leaves out the last keys.
struct Spoilt {
  double scale = 1;
  std::int64_t dropped_keys = 0;
};

/// NaN, and -inf, of a row that sees no key.
template <class Real>
struct ReferenceRow {
  std::vector<Real> out;
  Real lse;
};

/// softmax(scores) V: -inf hides a key, whose value is not looked at. value(j, column) is of any type.
template <class Real, class Value>
[[nodiscard]] ReferenceRow<Real> weighted(const std::vector<Real>& scores, std::int64_t width, const Value& value) {
  constexpr Real hidden = -std::numeric_limits<Real>::infinity();
  Real largest = hidden, sum = 0;
  for (const Real score : scores) largest = std::max(largest, score);
  std::vector<Real> out(static_cast<std::size_t>(width), 0);
  for (std::size_t j = 0; j < scores.size(); ++j) {
    if (scores[j] == hidden) continue;
    const Real weight = std::exp(scores[j] - largest);
    sum += weight;
    for (std::size_t column = 0; column < out.size(); ++column)
      out[column] += weight * static_cast<Real>(value(static_cast<std::int64_t>(j), static_cast<std::int64_t>(column)));
  }
  for (Real& x : out) x /= sum;  // 0 / 0 where no key is seen
  return {out, largest + std::log(sum)};
}

/// What the mask adds to the score of key j in row i of M x N, -inf where mask, causal form, window or chunks
/// hide it.
[[nodiscard]] inline double added_to_score(const Case& c, std::int64_t b, std::int64_t h, std::int64_t i,
                                           std::int64_t j, std::int64_t M, std::int64_t N) {
  constexpr double hidden = -std::numeric_limits<double>::infinity();
  if (c.causal == Causal::top_left && j > i) return hidden;
  if (c.causal == Causal::bottom_right && j > i + N - M) return hidden;
  const std::int64_t p = c.alignment == Causal::bottom_right ? i + N - M : i;
  if (c.window_left >= 0 && j < p - c.window_left) return hidden;
  if (c.window_right >= 0 && j > p + c.window_right) return hidden;
  if (const auto chunk = static_cast<double>(c.attention_chunk);
      chunk > 0 && std::floor(static_cast<double>(j) / chunk) != std::floor(static_cast<double>(p) / chunk))
    return hidden;
  if (!c.mask().present()) return 0;
  const Shape& shape = c.mask().shape();
  const double entry = c.mask()[(((shape[0] == 1 ? 0 : b) * shape[1] + (shape[1] == 1 ? 0 : h)) * M + i) * N + j];
  if (c.mask().dtype() == DType::boolean) return entry != 0 ? 0 : hidden;
  return entry;
}

template <class Real>
[[nodiscard]] Real score_of(const Case& c, Real product, double added, const Spoilt& spoilt) {
  if (added == -std::numeric_limits<double>::infinity()) return -std::numeric_limits<Real>::infinity();
  const Real scale = static_cast<Real>(c.scale * spoilt.scale), bias = static_cast<Real>(added);
  return c.mask_convention == MaskConvention::pre_scale ? scale * (product + bias) : scale * product + bias;
}

/// What a row of q, or a key, counts times itself.
[[nodiscard]] inline double written_factor(const Case& c, Slot slot, std::int64_t block, std::int64_t b, std::int64_t h,
                                           std::int64_t row) {
  if (!c[slot].present()) return 1;
  const Shape& shape = c[slot].shape();
  return c[slot].at(b % shape[0], h % shape[1], shape[2] == 1 ? 0 : row / block);
}

/// The score of row i and key j of head h, -inf where the key is hidden.
template <class Real>
[[nodiscard]] Real reference_score(const Case& c, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j,
                                   const Spoilt& spoilt = {}) {
  const Shape &q = c.q().shape(), &k = c.k().shape();
  const std::int64_t dk = q[3], query = ((b * q[1] + h) * q[2] + i) * dk,
                     key = ((b * k[1] + h / (q[1] / k[1])) * k[2] + j) * dk;
  Real product = 0;
  const double q_factor = written_factor(c, Slot::q_descale, c.q_descale_block, b, h, i),
               k_factor = written_factor(c, Slot::k_descale, c.kv_descale_block, b, h / (q[1] / k[1]), j);
  for (std::int64_t e = 0; e < dk; ++e)
    product += static_cast<Real>(c.q()[query + e] * q_factor) * static_cast<Real>(c.k()[key + e] * k_factor);
  return score_of(c, product, added_to_score(c, b, h, i, j, q[2], k[2]), spoilt);
}
/// Row (b, h, i) of attention.
template <class Real>
[[nodiscard]] ReferenceRow<Real> reference_row(const Case& c, std::int64_t b, std::int64_t h, std::int64_t i,
                                               const Spoilt& spoilt = {}) {
  const Shape &q = c.q().shape(), &v = c.v().shape();
  const std::int64_t N = v[2], first = (b * v[1] + h / (q[1] / v[1])) * N;
  std::vector<Real> scores;
  scores.reserve(static_cast<std::size_t>(N));
  for (std::int64_t j = 0; j < N - spoilt.dropped_keys; ++j)
    scores.push_back(reference_score<Real>(c, b, h, i, j, spoilt));
  return weighted(scores, v[3], [&](std::int64_t j, std::int64_t e) {
    return c.v()[(first + j) * v[3] + e] *
           written_factor(c, Slot::v_descale, c.kv_descale_block, b, h / (q[1] / v[1]), j);
  });
}

/// The elements of attention's output.
template <class Real>
[[nodiscard]] std::vector<double> reference_attention(const Case& c, const Spoilt& spoilt = {}) {
  const Shape& q = c.q().shape();
  std::vector<double> out;
  for (std::int64_t row = 0; row < q[0] * q[1] * q[2]; ++row)
    for (const Real x : reference_row<Real>(c, row / q[2] / q[1], row / q[2] % q[1], row % q[2], spoilt).out)
      out.push_back(static_cast<double>(x));
  return out;
}

/// x W + b of rows x, W [in, out].
template <class Real>
[[nodiscard]] std::vector<Real> projected(const std::vector<Real>& x, const Tensor& w, const Tensor& b) {
  const std::int64_t in = w.shape()[0], width = w.shape()[1], rows = static_cast<std::int64_t>(x.size()) / in;
  std::vector<Real> y;
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t column = 0; column < width; ++column) {
      Real sum = 0;
      for (std::int64_t e = 0; e < in; ++e)
        sum += x[static_cast<std::size_t>(r * in + e)] * static_cast<Real>(w[e * width + column]);
      y.push_back(b.present() ? sum + static_cast<Real>(b[column]) : sum);
    }
  }
  return y;
}

/// The elements of multi-head attention's output.
template <class Real>
[[nodiscard]] std::vector<double> reference_multihead(const Case& c, const Spoilt& spoilt = {}) {
  const auto numbers_of = [&](Slot slot) {
    const std::vector<double> numbers = c[slot].to_doubles();
    std::vector<Real> all(numbers.size());
    std::ranges::transform(numbers, all.begin(), [](double x) { return static_cast<Real>(x); });
    return all;
  };
  const std::vector<Real> q = projected(numbers_of(Slot::q), c[Slot::w_q], c[Slot::b_q]),
                          k = projected(numbers_of(Slot::k), c[Slot::w_k], c[Slot::b_k]),
                          v = projected(numbers_of(Slot::v), c[Slot::w_v], c[Slot::b_v]);
  const std::vector<Real> bias_k = numbers_of(Slot::bias_k), bias_v = numbers_of(Slot::bias_v);
  const std::int64_t M = c.q().shape()[1], N = c.k().shape()[1], H = c.heads;
  const std::int64_t dk = c[Slot::w_q].shape()[1] / H, dv = c[Slot::w_v].shape()[1] / H;
  // Entry e of head h of a token's projection, or of the key and the value that add_bias_kv appends.
  const auto entry = [&](const std::vector<Real>& tokens, const std::vector<Real>& appended, std::int64_t b,
                         std::int64_t j, std::int64_t h, std::int64_t d, std::int64_t e) {
    return j == N ? appended[static_cast<std::size_t>(h * d + e)]
                  : tokens[static_cast<std::size_t>(((b * N + j) * H + h) * d + e)];
  };
  std::vector<Real> joined;
  for (std::int64_t b = 0; b < c.q().shape()[0]; ++b) {
    for (std::int64_t i = 0; i < M; ++i) {
      for (std::int64_t h = 0; h < H; ++h) {
        std::vector<Real> scores;
        for (std::int64_t j = 0; j < N + (bias_k.empty() ? 0 : 1); ++j) {
          Real product = 0;
          for (std::int64_t e = 0; e < dk; ++e)
            product += q[static_cast<std::size_t>(((b * M + i) * H + h) * dk + e)] * entry(k, bias_k, b, j, h, dk, e);
          scores.push_back(score_of(c, product, j == N ? 0 : added_to_score(c, b, h, i, j, M, N), spoilt));
        }
        const std::vector<Real> out =
            weighted(scores, dv, [&](std::int64_t j, std::int64_t e) { return entry(v, bias_v, b, j, h, dv, e); }).out;
        joined.insert(joined.end(), out.begin(), out.end());
      }
    }
  }
  if (c[Slot::w_o].present())
    joined = projected(joined, c[Slot::w_o], c[Slot::b_o]);
  else if (c[Slot::b_o].present())
    for (std::size_t at = 0; at < joined.size(); ++at)
      joined[at] += static_cast<Real>(c[Slot::b_o][static_cast<std::int64_t>(at) % (H * dv)]);
  std::vector<double> out(joined.size());
  std::ranges::transform(joined, out.begin(), [](Real x) { return static_cast<double>(x); });
  return out;
}

}  // namespace attest::test
