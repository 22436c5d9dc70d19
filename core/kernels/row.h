// Row: what a built-in kernel computes, one query row of one head, and how rows are made of a problem.
#pragma once

#include <attest/kernel.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <vector>

#include "core/kernel/arithmetic.h"
#include "core/kernels/formats.h"

namespace attest {

/// One query row of one head, its tensors row-major in the format's Real (exact), and where its answer goes.
/// At least one key is visible: rows that see none never reach a kernel.
template <class Format>
struct Row {
  using Real = typename Format::Real;

  std::int64_t keys;            ///< N, of the row's sequence
  std::int64_t head_dim;        ///< dk
  std::int64_t value_dim;       ///< dv
  const Real* q;                ///< [dk]
  const Real* k;                ///< [N, dk]
  const Real* v;                ///< [N, dv]
  const std::uint8_t* visible;  ///< [N]: 0 hides a key by mask or causal form; nothing of it may be used
  const Real* bias;             ///< [N]: the additive mask; nullptr: none
  Real sink;                    ///< a score without a key, which shares the weights; -inf: none
  Real softcap;                 ///< c: scaled products t are c tanh(t/c); 0: t
  const std::uint8_t* kept;     ///< [N]: 0 drops the weight of a key once it has been summed; nullptr: none is
  Real gain;                    ///< multiplies the weights that are kept, 1/(1 - p); 1: nothing is dropped
  Real slope;                   ///< m: what is added to a score is m*slope_unit(j); 0: nothing
  SlopeForm slope_form;         ///< divided or not it is the column's
  std::int64_t position;        ///< p of the row
  Real scale;                   ///< rounded to Real
  bool pre_scale;               ///< scale*(q.k + b) instead of scale*q.k + b
  Real* scratch;                ///< [N], for scores or weights
  Real* out;                    ///< [dv]
  Real* lse;                    ///< log-sum-exp of the visible scores

  /// q.k_j, summed from left to right.
  [[nodiscard]] Real product(std::int64_t j) const {
    const Real* const key = k + j * head_dim;
    Real sum = 0;
    for (std::int64_t c = 0; c < head_dim; ++c) sum += q[c] * key[c];
    return sum;
  }
  /// The score of key j by the mask convention.
  [[nodiscard]] Real score(std::int64_t j) const {
    const Real s = score_without_slope(j);
    return slope == 0 ? s : s + slope * slope_unit(j);
  }
  /// -|p - j|, or j, which is as good under a causal form: all scores of the row are then larger by m*p.
  [[nodiscard]] Real slope_unit(std::int64_t j) const {
    return static_cast<Real>(slope_form == SlopeForm::distance ? -std::abs(position - j) : j);
  }
  /// By so much all scores of the row, and its sink, are larger than with -m|p - j|.
  [[nodiscard]] Real shift() const {
    return slope == 0 || slope_form == SlopeForm::distance ? Real{0} : slope * static_cast<Real>(position);
  }
  [[nodiscard]] const Real* value(std::int64_t j) const { return v + j * value_dim; }
  /// Is the weight of a visible key dropped? Its value is then read by nobody.
  [[nodiscard]] bool drops(std::int64_t j) const { return kept != nullptr && kept[j] == 0; }

 private:
  [[nodiscard]] Real score_without_slope(std::int64_t j) const {
    if (softcap > 0) {
      const Real t = softcap * std::tanh(scale * product(j) / softcap);
      return bias == nullptr ? t : t + bias[j];
    }
    if (bias == nullptr) return scale * product(j);
    return pre_scale ? scale * (product(j) + bias[j]) : scale * product(j) + bias[j];
  }
};

/// What a kernel answers for a row that sees no key: NaN throughout, or zeros with lse -inf.
enum class NoKey { nan, zero };

/// What differs from kernel to kernel beside the rows themselves.
struct RowForm {
  NoKey no_key = NoKey::nan;
  SlopeForm slopes = SlopeForm::distance;  ///< under a causal form
  bool lse_of_columns = false;             ///< log-sum-exps are returned as that form has them
};

/// Batch entry, head and row of it.
struct ProblemRow {
  std::int64_t b, h, i;
};

/// Calls `kernel` for every row of a problem whose tensors have the format's dtype (out may have another: each element
/// is rounded to it once) and any strides. Rows are independent of each other, whatever their number and order. Those
/// of no sequence are 0.
template <class Format>
void for_each_row(const attest_problem& problem, attest_result& result, const RowForm& form,
                  void (*kernel)(const Row<Format>&));

/// The rows of one head of one sequence, those that see no key among them: their masks are beside each other, and none
/// has a place for an answer. Row i stands at {b, h, first_query + i}, key j at first_key + j.
template <class Format>
struct HeadRows {
  std::int64_t b, h, first_query, first_key;
  std::vector<Row<Format>> rows;
};
/// visit(head) for each head of each sequence that has a row, in the order of the output.
template <class Format>
void for_each_head(const attest_problem& problem, const RowForm& form,
                   const std::function<void(const HeadRows<Format>&)>& visit);

extern template void for_each_row(const attest_problem&, attest_result&, const RowForm&, void (*)(const Row<F64>&));
extern template void for_each_row(const attest_problem&, attest_result&, const RowForm&, void (*)(const Row<F32>&));
extern template void for_each_row(const attest_problem&, attest_result&, const RowForm&, void (*)(const Row<F16>&));
extern template void for_each_row(const attest_problem&, attest_result&, const RowForm&, void (*)(const Row<BF16>&));

}  // namespace attest
