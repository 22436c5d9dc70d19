// Other forms of what the core takes, in which the documents state their theorems: 002's mask_M as 000's B, 001's
// causal form written out, separate heads side by side, matrices of doubles.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "core/definition/mask.h"
#include "core/definition/matrices.h"
#include "core/definition/multihead.h"

namespace attest::test {

/// Every entry rounded once from double; and back.
template <Scalar T>
[[nodiscard]] Matrix<T> matrix_from(const Matrix<double>& a) {
  return a.unaryExpr([](double x) { return ScalarTraits<T>::from_double(x); });
}
template <Scalar T>
[[nodiscard]] Matrix<double> to_doubles(const Matrix<T>& a) {
  return a.unaryExpr([](const T& x) { return ScalarTraits<T>::to_double(x); });
}

/// The causal form as a boolean matrix, M x N: (i, j) true iff key j is visible to row i (001: tau' <= tau).
[[nodiscard]] inline BoolMatrix causal_matrix(Index rows, Index keys, Causal causal = Causal::top_left) {
  return BoolMatrix::NullaryExpr(rows, keys, [=](Index i, Index j) { return sight({causal}, i, rows, keys).sees(j); });
}
/// 002's mask_M as the additive mask of 000: true becomes 0, false becomes -inf.
template <Scalar T>
[[nodiscard]] Matrix<T> additive_from(const BoolMatrix& allowed) {
  using Traits = ScalarTraits<T>;
  return allowed.unaryExpr([](bool sees) { return sees ? Traits::from_double(0.0) : Traits::minus_infinity(); });
}

/// W = [W_1 | ... | W_h] from separate heads (multihead.fused-projection), all with biases or none.
template <Scalar T>
[[nodiscard]] Projection<T> fuse_projections(const std::vector<Weights<T>>& heads, Projection<T> Weights<T>::* which) {
  std::vector<Matrix<T>> weights, biases;
  for (const Weights<T>& head : heads) {
    weights.push_back((head.*which).weight);
    if ((head.*which).bias) biases.push_back((head.*which).bias->transpose());
  }
  Projection<T> fused{.weight = beside(weights), .bias = std::nullopt};
  if (!biases.empty()) fused.bias = beside(biases).row(0).transpose();
  return fused;
}
template <Scalar T>
[[nodiscard]] MultiheadWeights<T> fuse(const std::vector<Weights<T>>& heads,
                                       std::optional<Matrix<T>> w_o = std::nullopt,
                                       std::optional<Vector<T>> b_o = std::nullopt) {
  MultiheadWeights<T> w;
  w.q = fuse_projections(heads, &Weights<T>::q);
  w.k = fuse_projections(heads, &Weights<T>::k);
  w.v = fuse_projections(heads, &Weights<T>::v);
  w.w_o = std::move(w_o);
  w.b_o = std::move(b_o);
  w.heads = static_cast<Index>(heads.size());
  return w;
}

}  // namespace attest::test
