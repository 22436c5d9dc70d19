// What the families of the core's functions share: cases as matrices of a scalar, its numbers as Values, and the
// table of functions that each family fills its columns of. A family is a source of its own, so that each compiles no
// more of the core than it calls; on ten scalars that is minutes.
#pragma once

#include <array>
#include <vector>

#include "core/kernels/core_functions.h"
#include "core/kernels/core_problem.h"

namespace attest::detail {

/// The scalars of the core, in the order of the rows of a CoreTable.
using CoreScalars = EveryScalar::with<Expression>;
using CoreTable = std::array<CoreFunctions, CoreScalars::count>;

/// set.operator()<T>(row) for every scalar T and its row.
template <class Set>
void for_each_scalar(CoreTable& table, Set set) {
  CoreScalars::for_each([&, row = table.begin()]<class T>() mutable { set.template operator()<T>(*row++); });
}

/// What a scalar says of itself.
template <class T>
CoreFunctions named_functions() {
  CoreFunctions f{};
  f.scalar = ScalarTraits<T>::name;
  if constexpr (requires { ScalarTraits<T>::commutes; }) f.commutes = ScalarTraits<T>::commutes;
  return f;
}

/// Softmax and products of matrices, and 003's ladder on one.
void set_matrix_functions(CoreTable& table);
/// Of an attention case.
void set_attention_functions(CoreTable& table);
/// Scores and weights of a multihead case.
void set_score_functions(CoreTable& table);
/// Of the first head of a multihead case alone.
void set_weighted_functions(CoreTable& table);
/// Of all heads of a multihead case.
void set_multihead_functions(CoreTable& table);

template <class T>
Matrix<T> matrix_of(const Tensor& a) {
  return matrix_at<T>(a.view());
}

template <class T>
T scale_of(const Case& c) {
  return input<T>(c.scale);
}

/// A multihead case as matrices.
template <class T>
struct Entries {
  explicit Entries(const Case& c) : problem(c.multihead_problem()), weights(weights_of<T>(problem)) {
    masks = masks_of<T>(problem);
  }
  attest_multihead_problem problem;
  MultiheadWeights<T> weights;
  MaskStack<T> masks;
  [[nodiscard]] Matrix<T> q(Index b) const { return matrix_at<T>(problem.q, b); }
  [[nodiscard]] Matrix<T> k(Index b) const { return matrix_at<T>(problem.k, b); }
  [[nodiscard]] Matrix<T> v(Index b) const { return matrix_at<T>(problem.v, b); }
  [[nodiscard]] Index batch() const { return problem.q.shape[0]; }
  /// Masks of the heads of one batch entry.
  [[nodiscard]] HeadMasks<T> masks_of_entry(Index b) const {
    std::vector<Mask<T>> pages;
    pages.reserve(static_cast<std::size_t>(weights.heads));
    for (Index h = 0; h < weights.heads; ++h) pages.push_back(masks(b, h));
    return HeadMasks<T>::four_d(std::move(pages), 1, weights.heads);
  }
};

/// page(entries, b) of every batch entry, one below the other: [batch, rows, columns].
template <class T, class Page>
Values per_entry(const Case& c, Page&& page) {
  [[maybe_unused]] const CallPrecision<T> precision;
  const Entries<T> entries(c);
  std::vector<Matrix<T>> pages;
  pages.reserve(static_cast<std::size_t>(entries.batch()));
  for (Index b = 0; b < entries.batch(); ++b) pages.push_back(page(entries, b));
  return numbers_of(pages, {entries.batch(), pages[0].rows(), pages[0].cols()});
}
/// page(entries, b, m) of every batch entry and head: [batch, heads, rows, columns].
template <class T, class Page>
Values per_entry_and_head(const Case& c, Page&& page) {
  [[maybe_unused]] const CallPrecision<T> precision;
  const Entries<T> entries(c);
  std::vector<Matrix<T>> pages;
  for (Index b = 0; b < entries.batch(); ++b)
    for (Index m = 0; m < entries.weights.heads; ++m) pages.push_back(page(entries, b, m));
  return numbers_of(pages, {entries.batch(), entries.weights.heads, pages[0].rows(), pages[0].cols()});
}

}  // namespace attest::detail
