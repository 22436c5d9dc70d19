// The gradients of gradients.h by another way: the forward pass on dual numbers, once for each number of each argument.
// It knows no formula of the backward pass.
#pragma once

#include "core/definition/bodies/attention.h"
#include "core/definition/dual.h"
#include "core/definition/gradients.h"

namespace attest {

/// The arguments of one head as dual numbers.
template <Scalar T>
struct DualArguments {
  Matrix<Dual<T>> q, k, v;
  Dual<T> scale;
  Mask<Dual<T>> mask;

  DualArguments(const Matrix<T>& of_q, const Matrix<T>& of_k, const Matrix<T>& of_v, const T& of_scale,
                const Mask<T>& of_mask)
      : q(constants(of_q)), k(constants(of_k)), v(constants(of_v)), scale(constant(of_scale)) {
    mask.allowed = of_mask.allowed, mask.positions = of_mask.positions, mask.convention = of_mask.convention;
    mask.appended_keys = of_mask.appended_keys, mask.kept = of_mask.kept;
    if (of_mask.additive) mask.additive = constants(*of_mask.additive);
    const auto take = [](const std::optional<T>& from, std::optional<Dual<T>>& to) {
      if (from) to = constant(*from);
    };
    take(of_mask.sink, mask.sink), take(of_mask.slope, mask.slope);
    take(of_mask.softcap, mask.softcap), take(of_mask.kept_share, mask.kept_share);
  }

 private:
  static Dual<T> constant(const T& x) { return ScalarTraits<Dual<T>>::constant(x); }
  static Matrix<Dual<T>> constants(const Matrix<T>& a) {
    Matrix<Dual<T>> all(a.rows(), a.cols());
    for (Index i = 0; i < a.rows(); ++i)
      for (Index c = 0; c < a.cols(); ++c) all(i, c) = constant(a(i, c));
    return all;
  }
};

/// As mattn_gradients, which it shares nothing with but the forward pass. Rows that see no key count for nothing.
template <Scalar T>
[[nodiscard]] Gradients<T> gradients_by_dual_numbers(const Matrix<T>& q, const Matrix<T>& k, const Matrix<T>& v,
                                                     const T& scale, const Mask<T>& mask,
                                                     const AnswerGradients<T>& of) {
  using Traits = ScalarTraits<T>;
  DualArguments<T> at(q, k, v, scale, mask);
  const T zero = Traits::from_double(0.0), one = Traits::from_double(1.0);
  const auto sees_something = [&](Index i) {
    if (mask.sink && !Traits::is_minus_infinity(*mask.sink)) return true;
    for (Index j = 0; j < k.rows(); ++j)
      if (is_visible(mask, i, j, q.rows(), k.rows())) return true;
    return false;
  };
  const auto along = [&](Dual<T>& number) {
    number.slope = one;
    const AttentionResult<Dual<T>> result = mattn_lse(at.q, at.k, at.v, at.scale, at.mask);
    number.slope = zero;
    T sum = zero;
    for (Index i = 0; i < q.rows(); ++i) {
      if (!sees_something(i)) continue;
      for (Index c = 0; c < v.cols(); ++c) sum = sum + of.out(i, c) * result.out(i, c).slope;
      if (of.lse) sum = sum + (*of.lse)(i)*result.lse(i).slope;
    }
    return sum;
  };
  const auto each = [&](Matrix<Dual<T>>& argument) {
    Matrix<T> gradient(argument.rows(), argument.cols());
    for (Index i = 0; i < argument.rows(); ++i)
      for (Index c = 0; c < argument.cols(); ++c) {
        const bool counts = !Traits::is_minus_infinity(argument(i, c).value);
        gradient(i, c) = counts ? along(argument(i, c)) : zero;
      }
    return gradient;
  };
  Gradients<T> all{.q = each(at.q), .k = each(at.k), .v = each(at.v), .mask = {}, .sink = {}};
  if (at.mask.additive) all.mask = each(*at.mask.additive);
  if (at.mask.sink) all.sink = along(*at.mask.sink);
  return all;
}

}  // namespace attest
