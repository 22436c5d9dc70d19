// What the tests of kernels out of process share: random problems and their answers, written out in double.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "core/problem/case.h"
#include "core/test/cases.h"
#include "core/test/reference_attention.h"

namespace attest::testing_process {

/// In [-1, 1]. Own scaling of the engine's bits: the distributions of the standard library differ between
/// implementations.
inline Tensor random_tensor(DType dtype, const Shape& shape, std::mt19937& engine) {
  return test::filled(dtype, shape, [&] { return static_cast<double>(engine()) / 2147483648.0 - 1.0; });
}

struct Sizes {
  std::int64_t batch = 2, heads = 2, queries = 3, keys = 5, dk = 4, dv = 4;
};

inline Case attention_case(DType dtype, const Sizes& s, unsigned seed = 1) {
  std::mt19937 engine(seed);
  Case c = test::attention_of(
      {.batch = s.batch, .heads = s.heads, .queries = s.queries, .keys = s.keys, .dk = s.dk, .dv = s.dv},
      [&](Slot, const Shape& shape) { return random_tensor(dtype, shape, engine); });
  c.scale = 1.0 / std::sqrt(static_cast<double>(s.dk));
  return c;
}

inline std::vector<double> attention_answer(const Case& c) {
  return test::reference_attention<double>(c);
}

struct MultiheadOptions {
  std::int64_t batch = 2, heads = 2, queries = 3, keys = 5, head_dim = 3;
  std::int64_t c_k = 6, c_v = 6;  ///< heads*head_dim for packed weights
  bool biases = true, bias_kv = false, self = false;
};

inline Case multihead_case(DType dtype, const MultiheadOptions& o, unsigned seed = 1) {
  std::mt19937 engine(seed);
  using enum Slot;
  const std::int64_t embed = o.heads * o.head_dim;
  const test::CaseSizes sizes{.batch = o.batch,
                              .heads = o.heads,
                              .queries = o.queries,
                              .keys = o.keys,
                              .dk = o.head_dim,
                              .dv = o.head_dim,
                              .c_q = embed,
                              .c_k = o.self ? embed : o.c_k,
                              .c_v = o.self ? embed : o.c_v,
                              .d_o = embed};
  std::vector<Slot> slots{q};
  if (!o.self) slots.insert(slots.end(), {k, v});
  slots.insert(slots.end(), {w_q, w_k, w_v, w_o});
  if (o.biases) slots.insert(slots.end(), {b_q, b_k, b_v, b_o});
  if (o.bias_kv) slots.insert(slots.end(), {bias_k, bias_v});
  Case c = test::case_of(Operation::multihead, sizes, slots,
                         [&](Slot, const Shape& shape) { return random_tensor(dtype, shape, engine); });
  if (o.self) c[k] = c[v] = c.q();
  c.scale = 1.0 / std::sqrt(static_cast<double>(o.head_dim));
  return c;
}

inline std::vector<double> multihead_answer(const Case& c) {
  return test::reference_multihead<double>(c);
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
