// One loop over tiles for every built-in backward pass: over tiles of keys, and for each over tiles of queries, as
// FlashAttention-2 has it (Dao 2023, algorithm 2). What differs from kernel to kernel is its BackwardForm; each step is
// a function of its own, which planted faults replace.
#pragma once

#include <attest/kernel.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/kernel/backward_arithmetic.h"
#include "core/kernels/row.h"

namespace attest {

/// How a backward pass goes about it.
struct BackwardForm {
  std::int64_t tile = 16;                  ///< rows, and keys, at a time; the last ones may be fewer
  WeightsFrom weights = WeightsFrom::lse;  ///< `stored`: they and their gradients are rounded, as written to memory
  DeltaFrom delta = DeltaFrom::out;        ///< either is formed in a pass before
  std::int64_t splits = 1;                 ///< parts of the keys, whose parts of dq are added in a tree
  bool drawn_order = false;    ///< tiles of keys come to dq in an order drawn from the inputs, as atomics do
  bool rounded_heads = false;  ///< each head's dk and dv are rounded before they are added up over its group
  bool base2 = false;          ///< weights are exp2(fma(x, c, -fl(L log2(e)))), c = scale log2(e)
  bool delta_in_sum = false;   ///< the sum of a weight's gradient begins at -D
  bool scale_first = false;    ///< the gradient of a score is multiplied by the scale before it is rounded
  RowForm rows{};              ///< of its forward pass
};

/// Sums of gradients of one tensor [batch, heads, rows, columns], by query heads.
template <class Real>
struct HeadSums {
  HeadSums(const attest_tensor& of, std::int64_t query_heads)
      : batch(of.shape[0]), heads(query_heads), rows(of.shape[2]), columns(of.shape[3]) {
    sums.assign(static_cast<std::size_t>(batch * heads * rows * columns), Real{0});
  }
  [[nodiscard]] Real* row(std::int64_t b, std::int64_t h, std::int64_t i) {
    return sums.data() + ((b * heads + h) * rows + i) * columns;
  }
  std::int64_t batch, heads, rows, columns;
  std::vector<Real> sums;
};

/// Rows and keys of one head, from the first to before the end; the part of the keys is that of a split.
struct BackwardTile {
  std::int64_t first_row, end_row, first_key, end_key, part;
};

template <class Format>
class TiledBackward {
 public:
  using Real = typename Format::Real;
  TiledBackward(const BackwardForm& form, const attest_backward_problem& problem, attest_gradients& gradients);
  virtual ~TiledBackward() = default;
  TiledBackward(const TiledBackward&) = delete;
  TiledBackward& operator=(const TiledBackward&) = delete;

  void run();

 protected:
  // What is read of a head, all but the rows themselves.
  virtual void load(const HeadRows<Format>& head);
  // Before the loop: what the weights of row i are taken from, and its D, less the gradient by its log-sum-exp.
  virtual void prepare_row(std::int64_t i);
  [[nodiscard]] virtual Real delta(std::int64_t i) const;
  [[nodiscard]] virtual Real of_lse(std::int64_t i) const;
  // Of row i and key j, which it sees: its weight, the gradient of the weight, what that has above D, and the gradient
  // of its score, unrounded.
  [[nodiscard]] virtual bool sees(std::int64_t i, std::int64_t j) const { return rows_[at(i)].visible[j] != 0; }
  [[nodiscard]] virtual Real score(std::int64_t i, std::int64_t j) const { return rows_[at(i)].score(j); }
  [[nodiscard]] virtual Real weight(std::int64_t i, std::int64_t j) const;
  [[nodiscard]] virtual Real of_weight(std::int64_t i, std::int64_t j) const;
  [[nodiscard]] virtual Real apart(std::int64_t i, std::int64_t j) const;
  [[nodiscard]] virtual Real of_score(std::int64_t i, std::int64_t j, Real weight) const;
  // The same behind a cap, where masks are added.
  [[nodiscard]] virtual Real of_biased_score(std::int64_t i, std::int64_t j, Real weight) const;
  // What row i adds to the gradient of its sink.
  [[nodiscard]] virtual Real of_sink(std::int64_t i) const;
  // What a cap makes of the gradient of a capped score; 1 where there is none.
  [[nodiscard]] virtual Real slope_of_cap(std::int64_t i, std::int64_t j) const;
  // Of a tile: may it be left out? What of it is formed, and what that is added to.
  [[nodiscard]] virtual bool skips(const BackwardTile& tile) const;
  virtual void form(const BackwardTile& tile);
  virtual void add_to_values(const BackwardTile& tile);
  virtual void add_to_keys(const BackwardTile& tile);
  virtual void add_to_queries(const BackwardTile& tile);
  virtual void add_to_mask(const BackwardTile& tile);
  virtual void add_to_sink();
  // Behind the loop: what the sums of scores' gradients are multiplied by, and what becomes of one sum of each head.
  [[nodiscard]] virtual Real factor_of_queries() const { return form_.scale_first ? Real{1} : scale_; }
  [[nodiscard]] virtual Real factor_of_keys() const { return factor_of_queries(); }
  [[nodiscard]] virtual Real factor_of_values() const { return gain_; }
  [[nodiscard]] virtual Real factor_of_mask() const;
  virtual void end_head() {}
  [[nodiscard]] virtual Real over_group(const Real* of_heads, std::int64_t heads) const;

  static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }
  /// Of a tile's row i and key j.
  [[nodiscard]] std::size_t in_tile(const BackwardTile& tile, std::int64_t i, std::int64_t j) const {
    return at((i - tile.first_row) * form_.tile + j - tile.first_key);
  }
  [[nodiscard]] const Real* key(std::int64_t j) const { return rows_[0].k + j * dk_; }
  [[nodiscard]] const Real* value(std::int64_t j) const { return rows_[0].v + j * dv_; }
  [[nodiscard]] Real* sum_of_queries(std::int64_t part, std::int64_t i) {
    return parts_.data() + (part * queries_ + i) * dk_;
  }
  static Real element(const attest_tensor& t, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t c);

  const BackwardForm& form_;
  const attest_backward_problem& problem_;
  const attest_problem& p_;
  attest_gradients& gradients_;
  std::int64_t group_, dk_, dv_;
  Real scale_;
  Real gain_;  ///< multiplies what is kept where weights are dropped; else 1
  HeadSums<Real> of_q_, of_k_, of_v_;
  std::vector<Real> of_mask_, of_sink_;  ///< in the shapes of the mask and the sinks; empty: not asked for

  // Of the head:
  std::int64_t b_ = 0, h_ = 0, first_query_ = 0, first_key_ = 0, queries_ = 0, keys_ = 0;
  std::vector<Row<Format>> rows_;
  std::vector<Real> g_, out_;       ///< [queries, dv]
  std::vector<Real> reference_;     ///< [queries]: the log-sum-exp, or the largest score
  std::vector<Real> denominators_;  ///< [queries]: of stored weights
  std::vector<Real> deltas_;        ///< [queries]: D
  std::vector<Real> parts_;         ///< [splits, queries, dk]
  // Of the tile, [tile, tile]:
  std::vector<std::uint8_t> seen_;
  std::vector<Real> weights_, of_scores_;
  std::vector<Real> tile_sum_;  ///< [dk]

 private:
  void run_head(const HeadRows<Format>& head);
  [[nodiscard]] std::vector<BackwardTile> tiles_of_keys() const;
  void write_mask();
  void write(HeadSums<Real>& of, Real factor, std::int64_t group, const attest_tensor& to);
};

extern template class TiledBackward<F64>;
extern template class TiledBackward<F32>;
extern template class TiledBackward<F16>;
extern template class TiledBackward<BF16>;

}  // namespace attest
