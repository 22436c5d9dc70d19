// One head of a sequence of an attention case, decoded once, and its rows as the evaluations read them.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "core/bound/error_bound.h"
#include "core/bound/row_bound.h"
#include "core/oracle/rows/double_double.h"
#include "core/problem/problem.h"
#include "core/problem/sequences.h"
#include "core/problem/sight.h"

namespace attest::detail {

/// Elements [first, first + count) of a tensor as doubles, exactly.
void decode_range(const Tensor& tensor, std::int64_t first, std::int64_t count, double* to);

/// Exact inputs of one head of one sequence. Reused between heads to spare the heap.
struct Head {
  std::int64_t queries = 0, keys = 0, dk = 0, dv = 0;  ///< those of its sequence
  std::int64_t stride = 0;  ///< of a row of v, dv rounded up to a multiple of 4 (8 with singles); padding is 0
  double scale = 1;
  double softcap = 0;
  MaskConvention convention = MaskConvention::post_scale;
  SightRule sight_rule;
  double slope = 0;               ///< m: what it adds to the score of key j in a row at position p is -m|p - j|
  std::vector<double> q, k, v;    ///< [queries][dk], [keys][dk], [keys][stride]
  const Tensor* far_q = nullptr;  ///< where the rows of q are read from when there are too many for `q`
  std::int64_t q_offset = 0;      ///< element of row 0 in it
  std::vector<double> q_factors;  ///< what a row of far_q counts times itself; empty: once
  std::vector<double> panels;     ///< k as inner_loops.h packs it
  std::vector<double> low, high, abs_sum;  ///< per column of v, over all keys
  /// Where `singles`: v, rounded where it has factors, and v and panels without their factors, as floats.
  std::vector<float> single_v, plain_single_v, single_panels;
  bool singles = false;          ///< the inputs are floats, and sums over them are worth computing in floats
  std::uint64_t generation = 0;  ///< another after every load, within a thread
  double most_k = 0;             ///< largest |k_jc|
  bool finite = true;            ///< no NaN or Inf in k and v
  std::vector<double> k1;        ///< |k_j|_1

  DescaleInputs descale;          ///< the factors that q, k and v have been multiplied by
  std::vector<double> k_factors;  ///< those of the keys, 1 beyond them, in the order of `panels`; empty: they have none
  std::vector<double> v_factors;  ///< the same of the rows of v

  double sink = -std::numeric_limits<double>::infinity();  ///< its score; -inf: none
  bool sinks = false;                                      ///< the problem has some
  /// Of k and v, where something has no value: a row of zeros stands behind them.
  [[nodiscard]] std::int64_t places() const { return keys + (sinks || keep != nullptr ? 1 : 0); }

  const Tensor* keep = nullptr;            ///< nullptr: no weight is dropped
  std::int64_t keep_offset = 0;            ///< element of row 0 and key 0
  std::int64_t keep_pitch = 0;             ///< elements from row to row
  std::vector<std::int64_t> keep_offsets;  ///< the same of every head that has these keys
  double dropout_p = 0;
  DoubleDouble gain{1, 0};  ///< 1/(1 - p), to within 2^-100 of itself

  const Tensor* mask = nullptr;  ///< nullptr: none
  std::int64_t mask_offset = 0;  ///< element of row 0 and key 0
  std::int64_t mask_pitch = 0;   ///< elements from row to row
  bool bias = false;             ///< the mask has a finite entry other than 0

  /// Decodes head h of a sequence of a valid attention case. K and V are kept when the same key-value head of it was
  /// loaded last.
  void load(const Problem& c, const Sequence& s, std::int64_t h, bool same_keys);
  /// Packs k, v (already in place) and derives the rest.
  void prepare();
  /// Row i of q, into to[0 .. dk).
  void query(std::int64_t i, double* to) const;

 private:
  /// Sets plain_single_v, and takes the keys' factors out of single_panels.
  void take_factors_out();
};

/// The most rows whose scores are computed together, as the keys are then read from memory once for all of them.
inline constexpr std::int64_t rows_at_once = 4;

/// Some rows of a head, with q.k_j and X_j padded(keys) apart once they were asked for. One thread's.
struct ScoreBlock {
  std::uint64_t generation = 0;  ///< of the head; 0: none
  std::array<std::int64_t, rows_at_once> row{};
  std::int64_t rows = 0;
  bool singles = false;  ///< their sizes can be summed in floats
  bool scored = false;
  std::int64_t first_scored = 0, last_scored = 0;  ///< keys [first, last) have their products, once scored
  std::vector<double> q;                           ///< [rows][dk]
  std::vector<double> x, size;
  std::vector<float> sizes_of_q;  ///< |q| of these rows
};

/// A row with its hidden keys left out, at double precision.
struct Row {
  std::int64_t i = 0;
  const double* q = nullptr;
  std::int64_t slot = 0;  ///< where it is in `block`
  std::int64_t n = 0;     ///< visible keys, and the sink behind them
  bool all_visible = true;
  bool has_sink = false;
  std::vector<std::int64_t> index;     ///< of the visible keys, when some are hidden
  std::vector<std::int64_t> value_at;  ///< of their values, where weights are dropped, whose values are 0
  ScoreBlock block;
  const double* x = nullptr;     ///< q.k_j per key of the head
  const double* size = nullptr;  ///< X_j per key of the head
  std::vector<double> s, t, capped, size_of, b, slopes, added, place, k1, la, alpha;
  std::vector<double> o, low, high, abs_sum;
  std::vector<double> weighed;  ///< alpha times the factors of values
  std::vector<double> mask;
  double m = 0, lse = 0;
  RowKeys keys;
  RowValues values;

  /// The row of k of visible key j; `keys`.index has the rows of v.
  [[nodiscard]] std::int64_t key_at(std::int64_t j) const {
    return all_visible ? j : index[static_cast<std::size_t>(j)];
  }
};

/// Row `rows`[0]: its query, and what is its place in row.block. The others are those that will be asked for next.
void take_query(const Head& head, std::span<const std::int64_t> rows, Row& row);

/// The mask of the row: bias per key, -inf where hidden; and which keys are visible. `as` (not nullptr): the format the
/// kernel converts the mask to, in which what overflows is -inf.
void visible_keys(const Head& head, const Profile& p, Row& row);

/// Sum_c |q_c k_c| up to which the score of a key that the row does not see stays in the range of the kernel's scores
/// (D1 without its mask).
[[nodiscard]] double largest_hidden_size(const Profile& p, std::int64_t dk);

/// May the kernel come to grief over a key that the row does not see? Not one that ignores them; any other where a
/// score overflows or a value is not finite.
[[nodiscard]] bool hidden_keys_harmless(const Head& head, const Profile& p, const Row& row);

/// Sets row.x and row.size, of keys [first, last) at least; of others they hold anything. What is asked of one row is
/// computed for all of its block.
void scores_of_row(const Head& head, std::int64_t first, std::int64_t last, Row& row);

/// Scores, weights and output of row `rows`[0] in double, and everything the bound asks of a row. Returns the reason
/// when the row has none (fully masked, not finite). The others are those that will be asked for next.
[[nodiscard]] Excuse evaluate_double(const Head& head, std::span<const std::int64_t> rows, const Profile& p,
                                     bool ignores_dead_values, bool want_lse, Row& row);

}  // namespace attest::detail
