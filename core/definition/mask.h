// Masks: additive, boolean and causal, for one score matrix, and stacks of them for batches of heads.
#pragma once

#include <optional>
#include <vector>

#include "core/definition/matrix.h"
#include "core/problem/problem.h"
#include "core/problem/sight.h"

namespace attest {

/// Which of N keys each of M rows may attend, what becomes of their scaled products, and what beside them has a share
/// of the row's weights. The parts act together; the default hides nothing and adds nothing. A hidden key contributes
/// exactly nothing: neither its score nor its value is looked at.
template <Scalar T>
struct Mask {
  std::optional<Matrix<T>> additive;                       ///< B of MAttn_B (000), M x N; -inf hides
  std::optional<BoolMatrix> allowed;                       ///< M of 002 in the row convention, M x N; false hides
  SightRule positions;                                     ///< causal form and window
  MaskConvention convention = MaskConvention::post_scale;  ///< scale*qk + b (001), or scale*(qk + b) (000, 003)
  /// The last so many keys are outside every part of the mask, and N above is without them: never hidden, nothing added
  /// (add_bias_kv).
  Index appended_keys = 0;
  /// The score of what is no key: e^sink joins the sum of every row's weights, with a value of 0; absent: none.
  std::optional<T> sink;
  /// m: -m |p - j| is added to the score of key j in a row whose position is p, where it is no appended key; what is
  /// added is post-scale; absent: nothing.
  std::optional<T> slope;
  /// c: a scaled product t is c tanh(t/c) before anything is added to it, and what is added is post-scale; absent: t.
  std::optional<T> softcap;
  /// Which weights are kept once they are normalised, M x N; absent: all. One that is dropped is 0, and nothing is
  /// normalised again.
  std::optional<BoolMatrix> kept;
  std::optional<T> kept_share;  ///< 1 - p, not 0: what the weights that are kept are divided by; absent: 1
};

template <Scalar T>
[[nodiscard]] Mask<T> additive_mask(Matrix<T> b, MaskConvention convention = MaskConvention::post_scale) {
  Mask<T> mask;
  mask.additive = std::move(b);
  mask.convention = convention;
  return mask;
}
template <Scalar T>
[[nodiscard]] Mask<T> boolean_mask(BoolMatrix allowed) {
  Mask<T> mask;
  mask.allowed = std::move(allowed);
  return mask;
}
template <Scalar T>
[[nodiscard]] Mask<T> causal_mask(Causal causal = Causal::top_left) {
  Mask<T> mask;
  mask.positions.causal = causal;
  return mask;
}

/// 002's unidirectional mask in its column convention, n keys x n queries: (i, j) true iff i <= j. Upper triangular,
/// though 002 calls it lower triangular.
[[nodiscard]] inline BoolMatrix causal_columns(Index n) {
  return BoolMatrix::NullaryExpr(n, n, [](Index key, Index query) { return key <= query; });
}

/// Throws UsageError naming both sizes unless the mask fits M x N scores, appended keys included in N
/// (masked.fixed-length).
template <Scalar T>
void check_mask(const Mask<T>& mask, Index rows, Index keys);

/// Whether row i may attend key j, for a mask that check_mask accepts.
template <Scalar T>
[[nodiscard]] bool is_visible(const Mask<T>& mask, Index i, Index j, Index rows, Index keys) {
  const Index covered = keys - mask.appended_keys;
  if (j >= covered) return true;
  if (!sight(mask.positions, i, rows, covered).sees(j)) return false;
  if (mask.allowed && !(*mask.allowed)(i, j)) return false;
  return !(mask.additive && ScalarTraits<T>::is_minus_infinity((*mask.additive)(i, j)));
}

/// The masks of a batch of heads in the three forms of 000's class: 2-D, one for all; 3-D, one per (b, h) with page
/// b*heads + h; 4-D, [batch or 1, heads or 1], an extent of 1 serving every index.
template <Scalar T>
class MaskStack {
 public:
  /// No mask anywhere.
  MaskStack() : pages_(1) {}
  [[nodiscard]] static MaskStack two_d(Mask<T> mask);
  /// Throws UsageError unless there are batch*heads pages.
  [[nodiscard]] static MaskStack three_d(std::vector<Mask<T>> pages, Index batch, Index heads);
  /// Throws UsageError unless there are extent_b*extent_h pages.
  [[nodiscard]] static MaskStack four_d(std::vector<Mask<T>> pages, Index extent_b, Index extent_h);

  /// The mask of head h in batch entry b.
  [[nodiscard]] const Mask<T>& operator()(Index b, Index h) const {
    return pages_[static_cast<std::size_t>((batch_ == 1 ? 0 : b) * heads_ + (heads_ == 1 ? 0 : h))];
  }
  /// Throws UsageError unless the extents are 1 or these.
  void check(Index batch, Index heads) const;

 private:
  std::vector<Mask<T>> pages_;
  Index batch_ = 1;
  Index heads_ = 1;
};

}  // namespace attest
