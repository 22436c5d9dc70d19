// Definitions of attention.h; see instantiate.h.
#pragma once

#include <cstdlib>

#include "core/definition/attention.h"
#include "core/definition/bodies/mask.h"
#include "core/definition/bodies/softmax.h"
#include "core/problem/score.h"

namespace attest {

/// Throws UsageError unless Q, K and V fit each other and there is a key.
template <Scalar T>
void check_sizes(const Matrix<T>& q, const Matrix<T>& k) {
  if (q.cols() != k.cols()) {
    throw UsageError("Q is " + size_text(q) + " and K is " + size_text(k) +
                     ": queries and keys must have the same number of columns (dk)");
  }
  if (k.rows() == 0) {
    throw UsageError("Q is " + size_text(q) + " and K is " + size_text(k) +
                     ": attention over no key (N = 0) is not defined, N must be at least 1");
  }
}
template <Scalar T>
void check_values(const Matrix<T>& k, const Matrix<T>& v) {
  if (k.rows() == v.rows()) return;
  throw UsageError("K is " + size_text(k) + " and V is " + size_text(v) +
                   ": there must be one value row for each key row (N)");
}

/// The score of a product, of a key that a row may attend: scale, cap, mask and slope.
template <Scalar T>
T score_of(const T& product, const T& scale, const Mask<T>& mask, Index i, Index j, Index rows, Index covered) {
  const bool adds = mask.additive && j < covered;
  T s = adds && !mask.softcap ? score<T>(product, (*mask.additive)(i, j), scale, mask.convention) : T(scale * product);
  if (mask.softcap) {
    s = *mask.softcap * tanh_of(T(s / *mask.softcap));
    if (adds) s = s + (*mask.additive)(i, j);
  }
  if (!mask.slope || j >= covered) return s;
  const Index away = std::abs(position(mask.positions, i, rows, covered) - j);
  return s - *mask.slope * ScalarTraits<T>::from_double(static_cast<double>(away));
}

/// Scores of row i against the keys first <= j < last.
template <Scalar T>
Vector<T> score_row(const Matrix<T>& q, const Matrix<T>& k, const T& scale, const Mask<T>& mask, Index i, Index first,
                    Index last) {
  Vector<T> s(last - first);
  const Index covered = k.rows() - mask.appended_keys;
  const std::span<const T> q_i = row_of(q, i);
  for (Index j = first; j < last; ++j) {
    T& s_j = s(j - first);
    if (!is_visible(mask, i, j, q.rows(), k.rows())) {
      s_j = ScalarTraits<T>::minus_infinity();
      continue;
    }
    s_j = score_of<T>(dot(q_i, row_of(k, j)), scale, mask, i, j, q.rows(), covered);
  }
  return s;
}

/// Writes sum_j w_j v_j over the keys whose score is above -inf, ascending, v_first for j = 0. Leaves `out` when none
/// is.
template <Scalar T>
bool weighted_sum(const Vector<T>& s, const Vector<T>& w, const Matrix<T>& v, Index first, std::span<T> out) {
  bool any = false;
  for (Index j = 0; j < s.size(); ++j) {
    if (ScalarTraits<T>::is_minus_infinity(s(j))) continue;
    const std::span<const T> v_j = row_of(v, first + j);
    for (std::size_t c = 0; c < out.size(); ++c) out[c] = any ? T(out[c] + w(j) * v_j[c]) : T(w(j) * v_j[c]);
    any = true;
  }
  return any;
}

/// The same of the weights that row i keeps.
template <Scalar T>
bool weighted_sum(const Mask<T>& mask, Index i, const Vector<T>& s, const Vector<T>& w, const Matrix<T>& v, Index first,
                  std::span<T> out) {
  if (!mask.kept) return weighted_sum(s, w, v, first, out);
  Vector<T> of_kept = s, weights = w;
  for (Index j = 0; j < s.size(); ++j) {
    if (!(*mask.kept)(i, first + j)) {
      of_kept(j) = ScalarTraits<T>::minus_infinity();
    } else if (mask.kept_share) {
      weights(j) = w(j) / *mask.kept_share;
    }
  }
  return weighted_sum(of_kept, weights, v, first, out);
}

template <Scalar T>
void fill(std::span<T> row, const T& value) {
  for (T& entry : row) entry = value;
}

template <Scalar T>
Matrix<T> masked_scores(const Matrix<T>& q, const Matrix<T>& k, const T& scale, const Mask<T>& mask) {
  check_sizes(q, k);
  check_mask(mask, q.rows(), k.rows());
  Matrix<T> s(q.rows(), k.rows());
  for (Index i = 0; i < q.rows(); ++i) s.row(i) = score_row(q, k, scale, mask, i, 0, k.rows()).transpose();
  return s;
}

template <Scalar T>
Matrix<T> attention_weights(const Matrix<T>& q, const Matrix<T>& k, const T& scale, const Mask<T>& mask) {
  return softmax_rows(masked_scores(q, k, scale, mask));
}

template <Scalar T>
Matrix<T> weighted_values(const Matrix<T>& scores, const Matrix<T>& weights, const Matrix<T>& v) {
  if (scores.cols() != v.rows() || weights.cols() != v.rows() || scores.rows() != weights.rows()) {
    throw UsageError("scores " + size_text(scores) + ", weights " + size_text(weights) + " and V " + size_text(v) +
                     " do not fit: the first two must be MxN, V must have N rows");
  }
  Matrix<T> out(scores.rows(), v.cols());
  for (Index i = 0; i < scores.rows(); ++i) {
    const std::span<T> row = row_of(out, i);
    if (!weighted_sum<T>(scores.row(i).transpose(), weights.row(i).transpose(), v, 0, row))
      fill(row, ScalarTraits<T>::undefined());
  }
  return out;
}

template <Scalar T>
AttentionResult<T> mattn_lse(const Matrix<T>& q, const Matrix<T>& k, const Matrix<T>& v, const T& scale,
                             const Mask<T>& mask) {
  using Traits = ScalarTraits<T>;
  check_sizes(q, k);
  check_values(k, v);
  check_mask(mask, q.rows(), k.rows());
  AttentionResult<T> result{.out = Matrix<T>(q.rows(), v.cols()), .lse = Vector<T>(q.rows())};
  for (Index i = 0; i < q.rows(); ++i) {
    const Vector<T> s = score_row(q, k, scale, mask, i, 0, k.rows());
    const Exponentials<T> e = exponentials(s, mask.sink);
    const std::span<T> o_i = row_of(result.out, i);
    if (e.empty) {
      fill(o_i, Traits::undefined());
      result.lse(i) = Traits::undefined();
    } else {
      // Nothing but a sink leaves nothing, nor does a row of which everything is dropped.
      if (!weighted_sum(mask, i, s, normalised(e), v, 0, o_i)) fill(o_i, Traits::from_double(0.0));
      result.lse(i) = e.reference + Traits::log(e.sum);
    }
  }
  return result;
}

template <Scalar T>
Matrix<T> mattn(const Matrix<T>& q, const Matrix<T>& k, const Matrix<T>& v, const T& scale, const Mask<T>& mask) {
  return mattn_lse(q, k, v, scale, mask).out;
}

template <Scalar T>
Matrix<T> attention(const Matrix<T>& q, const Matrix<T>& k, const Matrix<T>& v, const T& scale) {
  return mattn_lse(q, k, v, scale, Mask<T>{}).out;
}

template <Scalar T>
Matrix<T> mattn_renormalised(const Matrix<T>& q, const Matrix<T>& k, const Matrix<T>& v, const T& scale,
                             const Mask<T>& mask) {
  using Traits = ScalarTraits<T>;
  check_values(k, v);
  check_mask(mask, q.rows(), k.rows());
  const Matrix<T> unmasked = masked_scores(q, k, scale, Mask<T>{});
  Matrix<T> scores = unmasked;
  Matrix<T> weights = softmax_rows(unmasked);
  for (Index i = 0; i < q.rows(); ++i) {
    T sum = Traits::from_double(0.0);
    for (Index j = 0; j < k.rows(); ++j) {
      if (!is_visible(mask, i, j, q.rows(), k.rows())) {
        scores(i, j) = Traits::minus_infinity();
        weights(i, j) = Traits::from_double(0.0);
      } else {
        sum = sum + weights(i, j);
      }
    }
    for (Index j = 0; j < k.rows(); ++j) weights(i, j) = weights(i, j) / sum;
  }
  return weighted_values(scores, weights, v);
}

/// Throws UsageError unless the pages are those of grouped queries.
template <Scalar T>
void check_pages(const std::vector<Matrix<T>>& q, const std::vector<Matrix<T>>& k, const std::vector<Matrix<T>>& v,
                 Index batch, Index heads, Index kv_heads) {
  if (kv_heads < 1 || heads % kv_heads != 0) {
    throw UsageError(std::to_string(heads) + " heads cannot share " + std::to_string(kv_heads) +
                     " key-value heads: the second must divide the first");
  }
  const auto pages = [](const std::vector<Matrix<T>>& a) { return static_cast<Index>(a.size()); };
  if (pages(q) != batch * heads || pages(k) != batch * kv_heads || pages(v) != batch * kv_heads) {
    throw UsageError("Q, K and V have " + std::to_string(q.size()) + ", " + std::to_string(k.size()) + " and " +
                     std::to_string(v.size()) + " pages; " + std::to_string(batch) + " batch entries of " +
                     std::to_string(heads) + " heads and " + std::to_string(kv_heads) + " key-value heads need " +
                     std::to_string(batch * heads) + " and twice " + std::to_string(batch * kv_heads));
  }
}

template <Scalar T>
std::vector<AttentionResult<T>> grouped_attention(const std::vector<Matrix<T>>& q, const std::vector<Matrix<T>>& k,
                                                  const std::vector<Matrix<T>>& v, Index batch, Index heads,
                                                  Index kv_heads, const T& scale, const MaskStack<T>& masks) {
  check_pages(q, k, v, batch, heads, kv_heads);
  masks.check(batch, heads);
  std::vector<AttentionResult<T>> results;
  results.reserve(q.size());
  for (Index b = 0; b < batch; ++b) {
    for (Index h = 0; h < heads; ++h) {
      const auto query = static_cast<std::size_t>(b * heads + h);
      const auto key = static_cast<std::size_t>(b * kv_heads + h / (heads / kv_heads));
      results.push_back(mattn_lse(q[query], k[key], v[key], scale, masks(b, h)));
    }
  }
  return results;
}

template <Scalar T>
PartialAttention<T> partial_attention(const Matrix<T>& q, const Matrix<T>& k, const Matrix<T>& v, const T& scale,
                                      const Mask<T>& mask, Index first, Index last) {
  check_values(k, v);
  check_mask(mask, q.rows(), k.rows());
  if (q.cols() != k.cols()) check_sizes(q, k);
  PartialAttention<T> partial{
      .reference = Vector<T>(q.rows()), .sum = Vector<T>(q.rows()), .values = Matrix<T>(q.rows(), v.cols())};
  for (Index i = 0; i < q.rows(); ++i) {
    const Vector<T> s = score_row(q, k, scale, mask, i, first, last);
    const Exponentials<T> e = exponentials(s);
    partial.reference(i) = e.reference;
    partial.sum(i) = e.sum;
    const std::span<T> row = row_of(partial.values, i);
    if (!weighted_sum(mask, i, s, e.terms, v, first, row)) fill(row, ScalarTraits<T>::from_double(0.0));
  }
  return partial;
}

template <Scalar T>
PartialAttention<T> merge(const PartialAttention<T>& left, const PartialAttention<T>& right) {
  using Traits = ScalarTraits<T>;
  if (left.values.rows() != right.values.rows() || left.values.cols() != right.values.cols()) {
    throw UsageError("cannot merge attention of size " + size_text(left.values) + " with one of size " +
                     size_text(right.values));
  }
  PartialAttention<T> merged = left;
  for (Index i = 0; i < left.values.rows(); ++i) {
    if (Traits::is_minus_infinity(right.reference(i))) continue;
    if (Traits::is_minus_infinity(left.reference(i))) {
      merged.reference(i) = right.reference(i);
      merged.sum(i) = right.sum(i);
      merged.values.row(i) = right.values.row(i);
      continue;
    }
    const T both[] = {left.reference(i), right.reference(i)};
    const T reference = Traits::reference_point(std::span<const T>(both));
    const T from_left = Traits::exp(left.reference(i) - reference);
    const T from_right = Traits::exp(right.reference(i) - reference);
    merged.reference(i) = reference;
    merged.sum(i) = from_left * left.sum(i) + from_right * right.sum(i);
    for (Index c = 0; c < left.values.cols(); ++c)
      merged.values(i, c) = from_left * left.values(i, c) + from_right * right.values(i, c);
  }
  return merged;
}

template <Scalar T>
AttentionResult<T> finish(const PartialAttention<T>& partial) {
  using Traits = ScalarTraits<T>;
  AttentionResult<T> result{.out = Matrix<T>(partial.values.rows(), partial.values.cols()),
                            .lse = Vector<T>(partial.values.rows())};
  for (Index i = 0; i < result.out.rows(); ++i) {
    const bool empty = Traits::is_minus_infinity(partial.reference(i));
    for (Index c = 0; c < result.out.cols(); ++c)
      result.out(i, c) = empty ? Traits::undefined() : T(partial.values(i, c) / partial.sum(i));
    result.lse(i) = empty ? Traits::undefined() : T(partial.reference(i) + Traits::log(partial.sum(i)));
  }
  return result;
}

}  // namespace attest
