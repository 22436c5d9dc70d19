// Attention once more, written independently of the core for its tests: plain loops over cpp_bin_float_100 in the words
// of the definition, with no reference point, no matrix class and no mask class.
#pragma once

#include <functional>
#include <vector>

#include "core/definition/matrix.h"
#include "core/scalars/bin_float.h"

namespace attest::test {

using Precise = BinFloat100;
using WideRow = std::vector<Precise>;
using Grid = std::vector<WideRow>;

/// The score from q.k, the row i and the key j; and whether that key counts at all.
using Score = std::function<Precise(const Precise& x, std::size_t i, std::size_t j)>;
using Sees = std::function<bool(std::size_t i, std::size_t j)>;

inline Score times(const Precise& scale) {
  return [scale](const Precise& x, std::size_t, std::size_t) { return Precise(scale * x); };
}
inline bool all_keys(std::size_t, std::size_t) {
  return true;
}

inline Grid grid_from(const Matrix<double>& a) {
  Grid grid(static_cast<std::size_t>(a.rows()));
  for (Index i = 0; i < a.rows(); ++i)
    for (Index j = 0; j < a.cols(); ++j) grid[static_cast<std::size_t>(i)].push_back(Precise(a(i, j)));
  return grid;
}

struct PlainResult {
  Grid weights, out;
  WideRow lse;
};

/// alpha_ij = e^{s_ij} / sum over seen keys, o_i = sum alpha_ij v_j, lse_i = ln sum. Every row must see a key. Sums run
/// backwards, so that nothing can agree with the core by sharing its order.
inline PlainResult plain_attention(const Grid& q, const Grid& k, const Grid& v, const Score& score,
                                   const Sees& sees = all_keys) {
  PlainResult result;
  for (std::size_t i = 0; i < q.size(); ++i) {
    WideRow e(k.size(), Precise(0));
    Precise z = 0;
    for (std::size_t j = k.size(); j-- > 0;) {
      if (!sees(i, j)) continue;
      Precise x = 0;
      for (std::size_t c = q[i].size(); c-- > 0;) x += q[i][c] * k[j][c];
      e[j] = exp(score(x, i, j));
      z += e[j];
    }
    WideRow o(v.empty() ? 0 : v[0].size(), Precise(0));
    for (std::size_t j = k.size(); j-- > 0;) {
      if (!sees(i, j)) continue;
      e[j] /= z;
      for (std::size_t c = 0; c < o.size(); ++c) o[c] += e[j] * v[j][c];
    }
    result.weights.push_back(std::move(e));
    result.out.push_back(std::move(o));
    result.lse.push_back(log(z));
  }
  return result;
}

/// X W + 1 b^T; b may be empty.
inline Grid plain_projection(const Grid& x, const Grid& w, const WideRow& b = {}) {
  Grid y;
  for (const WideRow& row : x) {
    WideRow out = b;
    out.resize(w[0].size(), Precise(0));
    for (std::size_t c = 0; c < out.size(); ++c)
      for (std::size_t l = 0; l < row.size(); ++l) out[c] += row[l] * w[l][c];
    y.push_back(std::move(out));
  }
  return y;
}

}  // namespace attest::test
