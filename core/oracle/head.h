// One head of an attention case, decoded once, and its rows as the evaluations read them.
#pragma once

#include <cstdint>
#include <vector>

#include "core/bound/error_bound.h"
#include "core/bound/row_bound.h"
#include "core/problem/problem.h"
#include "core/problem/sight.h"

namespace attest::detail {

/// Exact inputs of one head. Reused between heads to spare the heap.
struct Head {
  std::int64_t queries = 0, keys = 0, dk = 0, dv = 0;
  std::int64_t stride = 0;  ///< of a row of v, dv rounded up to a multiple of 4 (8 with singles); padding is 0
  double scale = 1;
  MaskConvention convention = MaskConvention::post_scale;
  SightRule sight_rule;
  std::vector<double> q, k, v;                 ///< [queries][dk], [keys][dk], [keys][stride]
  std::vector<double> panels;                  ///< k as inner_loops.h packs it
  std::vector<double> low, high, abs_sum;      ///< per column of v, over all keys
  std::vector<float> single_v, single_panels;  ///< v and panels as floats, where `singles`
  bool singles = false;          ///< the inputs are floats, and sums over them are worth computing in floats
  std::uint64_t generation = 0;  ///< another after every load, within a thread
  double most_k = 0;             ///< largest |k_jc|
  bool finite = true;            ///< no NaN or Inf in k and v
  std::vector<double> k1;        ///< |k_j|_1

  const Tensor* mask = nullptr;  ///< nullptr: none
  std::int64_t mask_offset = 0;  ///< element of row 0
  bool bias = false;             ///< the mask has a finite entry other than 0

  /// Decodes (b, h) of a valid attention case. K and V are kept when the same key-value head was loaded last from it.
  void load(const Problem& c, std::int64_t b, std::int64_t h, bool same_keys);
  /// Packs k, v (already in place) and derives the rest.
  void prepare();
};

/// q.k_j and X_j of the rows `first` to `first` + `rows` of a head, padded(keys) apart; of one row that is not to be
/// used again where rows = 0. One thread's.
struct ScoreBlock {
  std::uint64_t generation = 0;  ///< of the head; 0: none
  std::int64_t first = 0, rows = 0;
  std::vector<double> x, size;
  std::vector<float> sizes_of_q;  ///< |q| of these rows
};

/// A row with its hidden keys left out, at double precision.
struct Row {
  std::int64_t i = 0;
  const double* q = nullptr;
  std::int64_t n = 0;  ///< visible keys
  bool all_visible = true;
  std::vector<std::int64_t> index;  ///< of the visible keys, when some are hidden
  ScoreBlock block;
  const double* x = nullptr;     ///< q.k_j per key of the head
  const double* size = nullptr;  ///< X_j per key of the head
  std::vector<double> s, t, size_of, b, k1, la, alpha;
  std::vector<double> o, low, high, abs_sum;
  std::vector<double> mask;
  double m = 0, lse = 0;
  RowKeys keys;
  RowValues values;
};

/// The mask of row i: bias per key, -inf where hidden; and which keys are visible. `as` (not nullptr): the format the
/// kernel converts the mask to, in which what overflows is -inf.
void visible_keys(const Head& head, std::int64_t i, const Profile& p, Row& row);

/// Scores, weights and output of row i in double, and everything the bound asks of a row. Returns the reason when the
/// row has none (fully masked, not finite).
[[nodiscard]] Excuse evaluate_double(const Head& head, std::int64_t i, const Profile& p, bool ignores_dead_values,
                                     bool want_lse, Row& row);

}  // namespace attest::detail
