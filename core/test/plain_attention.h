// Attention once more, written independently of the core for its tests: plain loops over cpp_bin_float_100 in the words
// of the definition, with no reference point, no matrix class and no mask class.
#pragma once

#include <boost/multiprecision/cpp_bin_float.hpp>
#include <functional>
#include <random>
#include <vector>

#include "attest/matrix.h"

namespace attest::test {

using Wide = boost::multiprecision::number<boost::multiprecision::cpp_bin_float_100::backend_type,
                                           boost::multiprecision::et_off>;
using Grid = std::vector<std::vector<Wide>>;

/// A score from q.k, the row i and the key j; and whether that key counts at all.
using Score = std::function<Wide(const Wide& x, Index i, Index j)>;
using Sees = std::function<bool(Index i, Index j)>;

inline Grid grid_from(const Matrix<double>& a) {
  Grid grid(static_cast<std::size_t>(a.rows()));
  for (Index i = 0; i < a.rows(); ++i)
    for (Index j = 0; j < a.cols(); ++j) grid[static_cast<std::size_t>(i)].push_back(Wide(a(i, j)));
  return grid;
}

struct PlainResult {
  Grid weights, out;
  std::vector<Wide> lse;
};

/// alpha_ij = e^{s_ij} / sum over seen keys, o_i = sum alpha_ij v_j, lse_i = ln sum. Every row must see a key.
inline PlainResult plain_attention(const Grid& q, const Grid& k, const Grid& v, const Score& score, const Sees& sees) {
  PlainResult result;
  for (std::size_t i = 0; i < q.size(); ++i) {
    std::vector<Wide> e(k.size(), Wide(0));
    Wide z = 0;
    for (std::size_t j = k.size(); j-- > 0;) {
      if (!sees(static_cast<Index>(i), static_cast<Index>(j))) continue;
      Wide x = 0;
      for (std::size_t c = 0; c < q[i].size(); ++c) x += q[i][c] * k[j][c];
      e[j] = exp(score(x, static_cast<Index>(i), static_cast<Index>(j)));
      z += e[j];
    }
    std::vector<Wide> o(v.empty() ? 0 : v[0].size(), Wide(0));
    for (std::size_t j = 0; j < k.size(); ++j) {
      e[j] /= z;
      if (e[j] == 0) continue;
      for (std::size_t c = 0; c < o.size(); ++c) o[c] += e[j] * v[j][c];
    }
    result.weights.push_back(std::move(e));
    result.out.push_back(std::move(o));
    result.lse.push_back(log(z));
  }
  return result;
}

/// X W + 1 b^T; b may be empty.
inline Grid plain_projection(const Grid& x, const Grid& w, const std::vector<Wide>& b) {
  Grid y;
  for (const std::vector<Wide>& row : x) {
    std::vector<Wide> out = b;
    out.resize(w[0].size(), Wide(0));
    for (std::size_t c = 0; c < out.size(); ++c)
      for (std::size_t l = 0; l < row.size(); ++l) out[c] += row[l] * w[l][c];
    y.push_back(std::move(out));
  }
  return y;
}

inline Score times(const Wide& scale) {
  return [scale](const Wide& x, Index, Index) { return Wide(scale * x); };
}
inline const Sees all_keys = [](Index, Index) { return true; };

/// Entries that are multiples of 2^-6 in [-2, 2]: exact in every scalar, bfloat16 included.
inline Matrix<double> random_matrix(std::mt19937_64& random, Index rows, Index cols) {
  Matrix<double> a(rows, cols);
  for (Index i = 0; i < rows; ++i)
    for (Index j = 0; j < cols; ++j) a(i, j) = static_cast<double>(static_cast<int>(random() % 257) - 128) / 64.0;
  return a;
}
template <Scalar T>
Matrix<T> random_matrix_of(std::mt19937_64& random, Index rows, Index cols) {
  const Matrix<double> a = random_matrix(random, rows, cols);
  Matrix<T> b(rows, cols);
  for (Index i = 0; i < rows; ++i)
    for (Index j = 0; j < cols; ++j) b(i, j) = ScalarTraits<T>::from_double(a(i, j));
  return b;
}

}  // namespace attest::test
