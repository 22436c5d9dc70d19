// Definitions of gradients.h; see instantiate.h.
#pragma once

#include "core/definition/bodies/attention.h"
#include "core/definition/gradients.h"

namespace attest {

/// 1 - y^2, which a cap multiplies the gradient of a score by.
template <Scalar T>
T slope_of_cap(const T& product, const T& scale, const T& cap) {
  const T y = tanh_of(T(scale * product / cap));
  return ScalarTraits<T>::from_double(1.0) - y * y;
}

template <Scalar T>
GradientRow<T> gradient_row(const Matrix<T>& q, const Matrix<T>& k, const Matrix<T>& v, const T& scale,
                            const Mask<T>& mask, Index i, std::span<const T> g, const T& of_lse,
                            const std::optional<GivenRow<T>>& given) {
  using Traits = ScalarTraits<T>;
  const T zero = Traits::from_double(0.0);
  const Index n = k.rows();
  const Vector<T> s = score_row(q, k, scale, mask, i, 0, n);
  const Exponentials<T> e = exponentials(s, mask.sink);
  GradientRow<T> row;
  row.empty = e.empty;
  if (e.empty) return row;

  const auto hidden = [&](Index j) { return Traits::is_minus_infinity(s(j)); };
  const auto kept = [&](Index j) { return !mask.kept || (*mask.kept)(i, j); };
  const auto gained = [&](const T& x) { return mask.kept && mask.kept_share ? T(x / *mask.kept_share) : x; };
  for (Vector<T>* of : {&row.weights, &row.applied, &row.of_weights, &row.of_scores, &row.of_products})
    *of = Vector<T>::Constant(n, zero);
  bool any = false;
  row.delta = zero;
  for (Index j = 0; j < n; ++j) {
    if (hidden(j)) continue;
    row.weights(j) = given ? Traits::exp(T(s(j) - given->lse)) : T(e.terms(j) / e.sum);
    if (!kept(j)) continue;
    row.applied(j) = gained(row.weights(j));
    row.of_weights(j) = gained(dot(g, row_of(v, j)));
    const T term = row.weights(j) * row.of_weights(j);
    row.delta = any ? T(row.delta + term) : term;
    any = true;
  }
  if (given && !given->out.empty()) row.delta = dot(g, given->out);
  row.delta = row.delta - of_lse;
  for (Index j = 0; j < n; ++j) {
    if (hidden(j)) continue;
    row.of_scores(j) = row.weights(j) * (row.of_weights(j) - row.delta);
    row.of_products(j) = row.of_scores(j);
    if (mask.softcap)
      row.of_products(j) = row.of_scores(j) * slope_of_cap<T>(dot(row_of(q, i), row_of(k, j)), scale, *mask.softcap);
  }
  if (mask.sink && !Traits::is_minus_infinity(*mask.sink)) {
    const T weight =
        given ? Traits::exp(T(*mask.sink - given->lse)) : T(Traits::exp(T(*mask.sink - e.reference)) / e.sum);
    row.sink = zero - weight * row.delta;
  }
  return row;
}

/// Adds x times each entry of `row` to those of `to`, or sets them where nothing was added yet.
template <Scalar T>
void add_multiple(const T& x, std::span<const T> row, bool first, std::span<T> to) {
  for (std::size_t c = 0; c < to.size(); ++c) to[c] = first ? T(x * row[c]) : T(to[c] + x * row[c]);
}

template <Scalar T>
void check_gradients(const Matrix<T>& q, const Matrix<T>& v, const AnswerGradients<T>& of) {
  if (of.out.rows() != q.rows() || of.out.cols() != v.cols())
    throw UsageError("the gradient by the output is " + size_text(of.out) + ", and the output " +
                     std::to_string(q.rows()) + "x" + std::to_string(v.cols()));
  if (of.lse && of.lse->size() != q.rows())
    throw UsageError("the gradient by the log-sum-exp has " + std::to_string(of.lse->size()) +
                     " entries, and there are " + std::to_string(q.rows()) + " rows");
}

/// Adds one head's gradients, row by row, to those of k and v; `answers`: null, or what the formulas are taken at.
template <Scalar T>
class GradientSums {
 public:
  GradientSums(const Matrix<T>& k, const Matrix<T>& v, const T& scale) : k_(k), v_(v), scale_(scale) {
    const T zero = ScalarTraits<T>::from_double(0.0);
    of_k_ = Matrix<T>::Constant(k.rows(), k.cols(), zero);
    of_v_ = Matrix<T>::Constant(v.rows(), v.cols(), zero);
    any_k_.assign(static_cast<std::size_t>(k.rows()), false);
    any_v_ = any_k_;
  }

  /// The gradients of this head alone, but for those of k and v.
  Gradients<T> add(const Matrix<T>& q, const Mask<T>& mask, const AnswerGradients<T>& of,
                   const AttentionResult<T>* answers) {
    using Traits = ScalarTraits<T>;
    check_sizes(q, k_);
    check_values(k_, v_);
    check_mask(mask, q.rows(), k_.rows());
    check_gradients(q, v_, of);
    const T zero = Traits::from_double(0.0);
    Gradients<T> own;
    own.q = Matrix<T>::Constant(q.rows(), q.cols(), zero);
    if (mask.additive) own.mask = Matrix<T>::Constant(q.rows(), k_.rows() - mask.appended_keys, zero);
    if (mask.sink) own.sink = zero;
    for (Index i = 0; i < q.rows(); ++i) {
      std::optional<GivenRow<T>> given;
      if (answers) given = GivenRow<T>{row_of(answers->out, i), answers->lse(i)};
      const GradientRow<T> row =
          gradient_row<T>(q, k_, v_, scale_, mask, i, row_of(of.out, i), of.lse ? (*of.lse)(i) : zero, given);
      if (row.empty) continue;
      take(q, mask, of, row, i, own);
      if (row.sink) own.sink = T(*own.sink + *row.sink);
    }
    return own;
  }
  /// Of all heads that were added.
  [[nodiscard]] Matrix<T> of_k() const { return (of_k_.array() * scale_).matrix(); }
  [[nodiscard]] const Matrix<T>& of_v() const { return of_v_; }

 private:
  void take(const Matrix<T>& q, const Mask<T>& mask, const AnswerGradients<T>& of, const GradientRow<T>& row, Index i,
            Gradients<T>& own) {
    const std::span<T> of_q = row_of(own.q, i);
    bool any = false;
    for (Index j = 0; j < k_.rows(); ++j) {
      if (!is_visible(mask, i, j, q.rows(), k_.rows())) continue;
      const auto at = static_cast<std::size_t>(j);
      add_multiple<T>(row.of_products(j), row_of(k_, j), !any, of_q);
      add_multiple<T>(row.of_products(j), row_of(q, i), !any_k_[at], row_of(of_k_, j));
      any = any_k_[at] = true;
      if (!mask.kept || (*mask.kept)(i, j)) {
        add_multiple<T>(row.applied(j), row_of(of.out, i), !any_v_[at], row_of(of_v_, j));
        any_v_[at] = true;
      }
      if (own.mask && j < own.mask->cols()) (*own.mask)(i, j) = mask_term(row.of_scores(j), scale_, convention(mask));
    }
    for (T& x : of_q) x = scale_ * x;
  }
  /// A cap or a slope makes of every mask one that is added after the scale.
  [[nodiscard]] static MaskConvention convention(const Mask<T>& mask) {
    return mask.softcap ? MaskConvention::post_scale : mask.convention;
  }

  const Matrix<T>& k_;
  const Matrix<T>& v_;
  const T& scale_;
  Matrix<T> of_k_, of_v_;
  std::vector<bool> any_k_, any_v_;  ///< something was added to the row
};

template <Scalar T>
Gradients<T> gradients_of_head(const Matrix<T>& q, const Matrix<T>& k, const Matrix<T>& v, const T& scale,
                               const Mask<T>& mask, const AnswerGradients<T>& of, const AttentionResult<T>* answers) {
  GradientSums<T> sums(k, v, scale);
  Gradients<T> all = sums.add(q, mask, of, answers);
  all.k = sums.of_k(), all.v = sums.of_v();
  return all;
}

template <Scalar T>
Gradients<T> mattn_gradients(const Matrix<T>& q, const Matrix<T>& k, const Matrix<T>& v, const T& scale,
                             const Mask<T>& mask, const AnswerGradients<T>& of) {
  return gradients_of_head<T>(q, k, v, scale, mask, of, nullptr);
}

template <Scalar T>
Gradients<T> mattn_gradients_given(const Matrix<T>& q, const Matrix<T>& k, const Matrix<T>& v, const T& scale,
                                   const Mask<T>& mask, const AnswerGradients<T>& of,
                                   const AttentionResult<T>& answers) {
  return gradients_of_head<T>(q, k, v, scale, mask, of, &answers);
}

template <Scalar T>
std::vector<Gradients<T>> grouped_gradients(const std::vector<Matrix<T>>& q, const std::vector<Matrix<T>>& k,
                                            const std::vector<Matrix<T>>& v, Index batch, Index heads, Index kv_heads,
                                            const T& scale, const MaskStack<T>& masks,
                                            const std::vector<AnswerGradients<T>>& of,
                                            const std::vector<AttentionResult<T>>* answers) {
  check_pages(q, k, v, batch, heads, kv_heads);
  masks.check(batch, heads);
  std::vector<Gradients<T>> all;
  all.reserve(q.size());
  for (Index b = 0; b < batch; ++b) {
    for (Index kv = 0; kv < kv_heads; ++kv) {
      const auto key = static_cast<std::size_t>(b * kv_heads + kv);
      GradientSums<T> sums(k[key], v[key], scale);
      const std::size_t first = all.size();
      for (std::size_t page = first; page < first + static_cast<std::size_t>(heads / kv_heads); ++page) {
        const Index h = kv * (heads / kv_heads) + static_cast<Index>(page - first);
        all.push_back(sums.add(q[page], masks(b, h), of[page], answers ? &(*answers)[page] : nullptr));
      }
      all[first].k = sums.of_k(), all[first].v = sums.of_v();
    }
  }
  return all;
}

}  // namespace attest
