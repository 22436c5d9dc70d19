// The definitions written out once more, entry by entry, for any scalar: nested vectors, plain sums, e^s without a
// reference point, one division at the end. Nothing of the core but ScalarTraits is used, so that a proof of
// "core = formula" compares two things. Index names are the documents'.
#pragma once

#include <functional>
#include <vector>

#include "core/definition/matrix.h"

namespace attest::written {

template <class T>
using Table = std::vector<std::vector<T>>;
using At = std::size_t;

template <class T>
Table<T> table(const Matrix<T>& a) {
  Table<T> t(static_cast<At>(a.rows()));
  for (Index i = 0; i < a.rows(); ++i)
    for (Index j = 0; j < a.cols(); ++j) t[static_cast<At>(i)].push_back(a(i, j));
  return t;
}
template <class T>
std::vector<T> list(const Vector<T>& a) {
  return {a.data(), a.data() + a.size()};
}
template <class T>
Table<T> transposed(const Table<T>& a) {
  Table<T> t(a.empty() ? 0 : a[0].size());
  for (const std::vector<T>& row : a)
    for (At j = 0; j < row.size(); ++j) t[j].push_back(row[j]);
  return t;
}

template <class T>
T zero() {
  return ScalarTraits<T>::from_double(0.0);
}
template <class T>
T e(const T& x) {
  return ScalarTraits<T>::exp(x);
}
/// Sum of term(0) .. term(n - 1), from the last to the first: an order that the core nowhere uses.
template <class T>
T sum(At n, const std::function<T(At)>& term) {
  T total = zero<T>();
  for (At j = n; j-- > 0;) total = total + term(j);
  return total;
}

/// Whether row i sees key j.
using Sees = std::function<bool(At i, At j)>;
inline bool everything(At, At) {
  return true;
}
/// The score of row i and key j, given q_i . k_j.
template <class T>
using Score = std::function<T(const T& qk, At i, At j)>;
template <class T>
Score<T> scaled(const T& scale) {
  return [scale](const T& qk, At, At) { return qk * scale; };
}
/// softmax(QK^T scale + B): 001, PyTorch.
template <class T>
Score<T> post_scale(const T& scale, const Table<T>& b) {
  return [scale, b](const T& qk, At i, At j) { return b[i][j] + qk * scale; };
}
/// softmax((QK^T + B) scale): 000, 003.
template <class T>
Score<T> pre_scale(const T& scale, const Table<T>& b) {
  return [scale, b](const T& qk, At i, At j) { return (b[i][j] + qk) * scale; };
}

template <class T>
struct Attention {
  Table<T> scores;        ///< M x N; hidden ones are not set
  Table<T> exponentials;  ///< e^(s_ij), 0 where hidden
  std::vector<T> sums;    ///< sum_j e^(s_ij)
  Table<T> weights;       ///< M x N
  Table<T> out;           ///< M x dv: (sum_j e^(s_ij) v_j) / (sum_j e^(s_ij))
};

template <class T>
Attention<T> attention(const Table<T>& q, const Table<T>& k, const Table<T>& v, const Score<T>& score,
                       const Sees& sees = everything) {
  Attention<T> a;
  const At n = k.size();
  for (At i = 0; i < q.size(); ++i) {
    std::vector<T> s(n), exponentials(n, zero<T>()), weights, out;
    for (At j = 0; j < n; ++j) {
      if (!sees(i, j)) continue;
      s[j] = score(sum<T>(q[i].size(), [&](At c) { return k[j][c] * q[i][c]; }), i, j);
      exponentials[j] = e(s[j]);
    }
    std::vector<At> seen;
    for (At j = 0; j < n; ++j)
      if (sees(i, j)) seen.push_back(j);
    const T z = sum<T>(seen.size(), [&](At l) { return exponentials[seen[l]]; });
    for (At j = 0; j < n; ++j) weights.push_back(exponentials[j] / z);
    for (At c = 0; c < v[0].size(); ++c)
      out.push_back(sum<T>(seen.size(), [&](At l) { return v[seen[l]][c] * exponentials[seen[l]]; }) / z);
    a.scores.push_back(s), a.exponentials.push_back(exponentials), a.sums.push_back(z);
    a.weights.push_back(weights), a.out.push_back(out);
  }
  return a;
}

/// y_ic = b_c + sum_l x_il w_lc, over the columns first .. first + count - 1 of w; b may be empty.
template <class T>
Table<T> projected(const Table<T>& x, const Table<T>& w, const std::vector<T>& b, At first, At count) {
  Table<T> y(x.size());
  for (At i = 0; i < x.size(); ++i) {
    for (At c = first; c < first + count; ++c) {
      const T product = sum<T>(w.size(), [&](At l) { return w[l][c] * x[i][l]; });
      y[i].push_back(b.empty() ? product : T(b[c] + product));
    }
  }
  return y;
}
template <class T>
Table<T> projected(const Table<T>& x, const Table<T>& w, const std::vector<T>& b = {}) {
  return projected(x, w, b, 0, w[0].size());
}

/// [A | B] row by row.
template <class T>
Table<T> beside(Table<T> a, const Table<T>& b) {
  if (a.empty()) return b;
  for (At i = 0; i < a.size(); ++i) a[i].insert(a[i].end(), b[i].begin(), b[i].end());
  return a;
}

}  // namespace attest::written
