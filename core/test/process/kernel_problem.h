// What the tests of kernels out of process share: random problems and their answers, written out in double.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "attest/case.h"

namespace attest::testing_process {

inline Tensor random_tensor(DType dtype, const Shape& shape, std::mt19937& engine) {
  Tensor tensor(dtype, shape);
  for (std::int64_t i = 0; i < tensor.elements(); ++i) {
    // Own scaling of the engine's bits: the distributions of the standard library differ between implementations.
    tensor.set(i, static_cast<double>(engine()) / 2147483648.0 - 1.0);
  }
  return tensor;
}

struct Sizes {
  std::int64_t batch = 2, heads = 2, queries = 3, keys = 5, dk = 4, dv = 4;
};

inline Case attention_case(DType dtype, const Sizes& s, unsigned seed = 1) {
  std::mt19937 engine(seed);
  Case c;
  c[Slot::q] = random_tensor(dtype, {s.batch, s.heads, s.queries, s.dk}, engine);
  c[Slot::k] = random_tensor(dtype, {s.batch, s.heads, s.keys, s.dk}, engine);
  c[Slot::v] = random_tensor(dtype, {s.batch, s.heads, s.keys, s.dv}, engine);
  c.scale = 1.0 / std::sqrt(static_cast<double>(s.dk));
  return c;
}

/// -inf where key j is hidden from row i, else what is added to the score.
inline double added(const Case& c, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j, std::int64_t rows,
                    std::int64_t keys) {
  constexpr double hidden = -std::numeric_limits<double>::infinity();
  if (c.causal == Causal::top_left && j > i) return hidden;
  if (c.causal == Causal::bottom_right && j > i + keys - rows) return hidden;
  if (!c.mask().present()) return 0.0;
  const Shape& shape = c.mask().shape();
  const std::int64_t at = (((shape[0] == 1 ? 0 : b) * shape[1] + (shape[1] == 1 ? 0 : h)) * rows + i) * keys + j;
  if (c.mask().dtype() == DType::boolean) return c.mask()[at] != 0.0 ? 0.0 : hidden;
  return c.mask()[at];
}

/// softmax(scores) V for one row; `score` holds the scores, `value(j, c)` the values.
template <class Value>
std::vector<double> weighted(const std::vector<double>& score, std::int64_t width, const Value& value) {
  double top = -std::numeric_limits<double>::infinity();
  for (const double s : score) top = std::max(top, s);
  double total = 0.0;
  std::vector<double> row(static_cast<std::size_t>(width), 0.0);
  for (std::size_t j = 0; j < score.size(); ++j) {
    const double weight = std::exp(score[j] - top);
    total += weight;
    for (std::int64_t x = 0; x < width && weight != 0.0; ++x) {
      row[static_cast<std::size_t>(x)] += weight * value(static_cast<std::int64_t>(j), x);
    }
  }
  for (double& x : row) x /= total;
  return row;
}

/// Post-scale convention.
inline std::vector<double> attention_answer(const Case& c) {
  const Shape &q = c.q().shape(), &v = c.v().shape();
  std::vector<double> out;
  for (std::int64_t b = 0; b < q[0]; ++b) {
    for (std::int64_t h = 0; h < q[1]; ++h) {
      for (std::int64_t i = 0; i < q[2]; ++i) {
        const std::int64_t head = b * q[1] + h;
        std::vector<double> score;
        for (std::int64_t j = 0; j < v[2]; ++j) {
          double dot = 0.0;
          for (std::int64_t x = 0; x < q[3]; ++x)
            dot += c.q()[(head * q[2] + i) * q[3] + x] * c.k()[(head * v[2] + j) * q[3] + x];
          score.push_back(c.scale * dot + added(c, b, h, i, j, q[2], v[2]));
        }
        const auto row =
            weighted(score, v[3], [&](std::int64_t j, std::int64_t x) { return c.v()[(head * v[2] + j) * v[3] + x]; });
        out.insert(out.end(), row.begin(), row.end());
      }
    }
  }
  return out;
}

struct MultiheadOptions {
  std::int64_t batch = 2, heads = 2, queries = 3, keys = 5, head_dim = 3;
  std::int64_t c_k = 6, c_v = 6;  ///< heads*head_dim for packed weights
  bool biases = true, bias_kv = false, self = false;
};

inline Case multihead_case(DType dtype, const MultiheadOptions& o, unsigned seed = 1) {
  std::mt19937 engine(seed);
  Case c;
  c.operation = Operation::multihead;
  c.heads = static_cast<std::int32_t>(o.heads);
  const std::int64_t embed = o.heads * o.head_dim;
  c[Slot::q] = random_tensor(dtype, {o.batch, o.queries, embed}, engine);
  c[Slot::k] = o.self ? c.q() : random_tensor(dtype, {o.batch, o.keys, o.c_k}, engine);
  c[Slot::v] = o.self ? c.q() : random_tensor(dtype, {o.batch, o.keys, o.c_v}, engine);
  c[Slot::w_q] = random_tensor(dtype, {embed, embed}, engine);
  c[Slot::w_k] = random_tensor(dtype, {o.self ? embed : o.c_k, embed}, engine);
  c[Slot::w_v] = random_tensor(dtype, {o.self ? embed : o.c_v, embed}, engine);
  c[Slot::w_o] = random_tensor(dtype, {embed, embed}, engine);
  for (const Slot slot : {Slot::b_q, Slot::b_k, Slot::b_v, Slot::b_o}) {
    if (o.biases) c[slot] = random_tensor(dtype, {embed}, engine);
  }
  for (const Slot slot : {Slot::bias_k, Slot::bias_v}) {
    if (o.bias_kv) c[slot] = random_tensor(dtype, {embed}, engine);
  }
  c.scale = 1.0 / std::sqrt(static_cast<double>(o.head_dim));
  return c;
}

/// x W + b, rows of x [rows, in], W [in, out].
inline std::vector<double> linear(const std::vector<double>& x, const Tensor& w, const Tensor& b) {
  const std::int64_t in = w.shape()[0], out = w.shape()[1];
  const auto rows = static_cast<std::int64_t>(x.size()) / in;
  std::vector<double> y;
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t o = 0; o < out; ++o) {
      double sum = b.present() ? b[o] : 0.0;
      for (std::int64_t i = 0; i < in; ++i) sum += x[static_cast<std::size_t>(r * in + i)] * w[i * out + o];
      y.push_back(sum);
    }
  }
  return y;
}

inline std::vector<double> multihead_answer(const Case& c) {
  const std::int64_t batch = c.q().shape()[0], rows = c.q().shape()[1], keys = c.k().shape()[1], heads = c.heads;
  const auto q = linear(c.q().to_doubles(), c[Slot::w_q], c[Slot::b_q]);
  const auto k = linear(c.k().to_doubles(), c[Slot::w_k], c[Slot::b_k]);
  const auto v = linear(c.v().to_doubles(), c[Slot::w_v], c[Slot::b_v]);
  const std::int64_t embed = c[Slot::w_q].shape()[1], d = embed / heads;
  const bool extra = c[Slot::bias_k].present();
  std::vector<double> joined;
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t h = 0; h < heads; ++h) {
        const auto key = [&](std::int64_t j, std::int64_t x) {
          return j == keys ? c[Slot::bias_k][h * d + x]
                           : k[static_cast<std::size_t>((b * keys + j) * embed + h * d + x)];
        };
        const auto value = [&](std::int64_t j, std::int64_t x) {
          return j == keys ? c[Slot::bias_v][h * d + x]
                           : v[static_cast<std::size_t>((b * keys + j) * embed + h * d + x)];
        };
        std::vector<double> score;
        for (std::int64_t j = 0; j < keys + (extra ? 1 : 0); ++j) {
          double dot = 0.0;
          for (std::int64_t x = 0; x < d; ++x)
            dot += q[static_cast<std::size_t>((b * rows + i) * embed + h * d + x)] * key(j, x);
          score.push_back(c.scale * dot + (j == keys ? 0.0 : added(c, b, h, i, j, rows, keys)));
        }
        const auto row = weighted(score, d, value);
        joined.insert(joined.end(), row.begin(), row.end());
      }
    }
  }
  return linear(joined, c[Slot::w_o], c[Slot::b_o]);
}

/// Largest |out - expected|; NaN where one side alone is NaN, and infinity when the counts differ.
inline double largest_difference(const Tensor& out, const std::vector<double>& expected) {
  if (out.elements() != static_cast<std::int64_t>(expected.size())) return std::numeric_limits<double>::infinity();
  double largest = 0.0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double found = out[static_cast<std::int64_t>(i)];
    if (std::isnan(found) && std::isnan(expected[i])) continue;
    const double difference = std::abs(found - expected[i]);
    if (!(difference <= largest)) largest = difference;
    if (std::isnan(largest)) return largest;
  }
  return largest;
}

}  // namespace attest::testing_process
