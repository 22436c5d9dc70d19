// A planted kernel of tiles: tiles of queries by tiles of keys with a running maximum, as FlashAttention computes, and
// the keys in parts that are merged where queries are few, as FlashDecoding does. Sums are kept in f32.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "properties/faults/make.h"
#include "properties/faults/planted_sequences.h"
#include "properties/faults/variants/planted_descale.h"
#include "properties/faults/variants/planted_window.h"

namespace attest {

/// One call in f32, f16 or bf16, whatever the strides. How it computes is the make's (query_tile, block, split_tiles,
/// skips_hidden, narrow_weights, reciprocal, lazy_nats); the head dimension is taken in chunks of 64.
class PlantedTiles {
 public:
  PlantedTiles(const Make& make, Slip slip, const attest_problem& problem, attest_result& result,
               const SequencePlace& place);
  void run();

 private:
  /// Rows [first, first + rows) of one head; rows is make.query_tile but for the last one.
  struct QueryTile {
    std::int64_t b, h, index, first, rows;
  };
  /// Tile `index` of keys, of the tiles [begin, end) that are walked through.
  struct KeyTile {
    std::int64_t index, begin, end;
    [[nodiscard]] bool is_last() const { return index + 1 == end; }
  };
  /// What some keys come to, for each row of a tile of queries; not normalised.
  struct State {
    std::vector<float> reference;  ///< [query tile]; -inf: nothing is seen so far
    std::vector<float> largest;    ///< [query tile]; the true maximum, which a lazy reference lags behind
    std::vector<float> sum;        ///< [query tile]
    std::vector<float> out;        ///< [query tile, dv]
  };
  /// Memory of a thread, kept from call to call.
  struct Memory {
    std::vector<float> q, k, v;      ///< a head: [M, dk], [N, dk], [N, dv]
    std::vector<float> v_before;     ///< the first tile of the head before
    std::vector<float> chunk;        ///< [64, key tile]: keys, transposed
    std::vector<float> values;       ///< [key tile, dv]
    std::vector<float> bias;         ///< [query tile, key tile]; -inf hides
    std::vector<float> slopes;       ///< [query tile, key tile]: what slopes add to the scores
    std::vector<std::uint8_t> kept;  ///< [query tile, key tile]; 0 drops a weight
    std::vector<float> scores;       ///< [query tile, key tile]
    std::vector<float> weights;      ///< [query tile, key tile], as they multiply the values
    std::vector<State> states;       ///< one a part
    std::vector<float> lse;          ///< [parts]
    std::vector<float> merged;       ///< [dv]
  };

  static constexpr float infinity = std::numeric_limits<float>::infinity();
  /// Whether this is the mistake.
  [[nodiscard]] bool is(Slip slip) const { return slip_ == slip; }
  [[nodiscard]] float narrow(float value) const { return static_cast<float>(round_to(dtype_, double{value})); }

  // planted_tiles.cc: which tiles and parts there are.
  [[nodiscard]] bool is_launched(std::int64_t b, std::int64_t h) const;
  [[nodiscard]] QueryTile query_tile(std::int64_t b, std::int64_t h, std::int64_t index) const;
  [[nodiscard]] std::int64_t causal_end(const QueryTile& tile, std::int64_t r) const;
  [[nodiscard]] KeyRange window(const QueryTile& tile, std::int64_t r) const;
  [[nodiscard]] KeyRange own_chunk(const QueryTile& tile, std::int64_t r) const;
  [[nodiscard]] std::int64_t first_key_tile(const QueryTile& tile) const;
  [[nodiscard]] std::int64_t key_tiles(const QueryTile& tile) const;
  [[nodiscard]] std::int64_t key_tiles_of_window(const QueryTile& tile, std::int64_t tiles) const;
  [[nodiscard]] std::int64_t key_tiles_of_chunks(const QueryTile& tile, std::int64_t tiles) const;
  [[nodiscard]] std::int64_t parts_of(std::int64_t tiles) const;
  void answer(const QueryTile& tile);
  void merge(const QueryTile& tile, std::int64_t parts, State& into);
  void merge_row(std::int64_t r, std::int64_t parts, State& into);
  void spoil_by_window(const QueryTile& tile, State& state) const;
  void multiply_by_gain(const QueryTile& tile, State& state) const;
  void write(const QueryTile& tile, const State& state);

  // planted_tile_loads.cc: what is read, and from where.
  [[nodiscard]] std::int64_t kv_head(std::int64_t h) const;
  [[nodiscard]] std::int64_t offset_of(const attest_tensor& t, std::int64_t b, std::int64_t h, std::int64_t row,
                                       std::int64_t column) const;
  void load(const attest_tensor& t, std::int64_t b, std::int64_t h, std::vector<float>& to) const;
  [[nodiscard]] PlantedFactors<float> factors(attest_tensor attest_problem::* tensor, std::int64_t b,
                                              std::int64_t h) const;
  [[nodiscard]] bool takes_factors(std::int64_t b, std::int64_t h) const;
  void load_head(std::int64_t b, std::int64_t h);
  void load_key_chunk(const KeyTile& tile, std::int64_t first, std::int64_t width);
  void load_values(const QueryTile& queries, const KeyTile& tile);
  [[nodiscard]] float mask_entry(const QueryTile& tile, std::int64_t r, std::int64_t j) const;
  void load_mask(const QueryTile& queries, const KeyTile& tile);
  void load_window(const QueryTile& queries, const KeyTile& tile, std::int64_t r);
  void load_chunk(const QueryTile& queries, const KeyTile& tile, std::int64_t r);
  void hide_outside(const KeyRange& keys, const KeyTile& tile, std::int64_t r);
  [[nodiscard]] bool keeps(const QueryTile& queries, const KeyTile& tile, std::int64_t r, std::int64_t j) const;
  void load_kept(const QueryTile& queries, const KeyTile& tile);
  [[nodiscard]] bool has_slopes_in(const QueryTile& queries, const KeyTile& tile) const;
  [[nodiscard]] std::int64_t head_of_slope(const QueryTile& queries) const;
  [[nodiscard]] std::int64_t row_of_slope(const QueryTile& queries, std::int64_t r) const;
  [[nodiscard]] std::int64_t key_of_slope(const KeyTile& tile, std::int64_t j) const;
  void load_slopes(const QueryTile& queries, const KeyTile& tile);
  [[nodiscard]] bool sees_something(const QueryTile& queries, const KeyTile& tile);

  // planted_tile_sums.cc: what is computed of a tile.
  void attend(const QueryTile& queries, std::int64_t begin, std::int64_t end, State& state);
  void add_tile(const QueryTile& queries, const KeyTile& tile, State& state);
  [[nodiscard]] bool drops_all(const QueryTile& queries, const KeyTile& tile) const;
  [[nodiscard]] float scale() const;
  [[nodiscard]] bool caps(const QueryTile& queries, const KeyTile& tile) const;
  void score(const QueryTile& queries, const KeyTile& tile);
  void multiply_keys(const QueryTile& queries, const KeyTile& tile);
  void cap_products(const QueryTile& queries, const KeyTile& tile, float cap, bool adds_hiding);
  [[nodiscard]] float largest_of_tile(std::int64_t r) const;
  void weigh_row(const QueryTile& queries, const KeyTile& tile, std::int64_t r, State& state);
  [[nodiscard]] bool forgets_rescaling(const KeyTile& tile) const;
  void rescale(const QueryTile& queries, const KeyTile& tile, std::int64_t r, float factor, State& state);
  void add_values(const QueryTile& queries, const KeyTile& tile, State& state);
  void normalise(float* out, float sum) const;
  [[nodiscard]] float lse_of(const State& state, std::int64_t r) const;

  const Make& make_;
  Slip slip_;
  const attest_problem& p_;
  attest_result& result_;
  DType dtype_;
  std::int64_t batches_, heads_, queries_, kv_heads_, keys_, head_dim_, value_dim_;
  std::int64_t rows_;                    ///< of a tile of queries
  std::int64_t columns_;                 ///< keys of a tile
  bool drops_;                           ///< weights
  SequencePlace place_;                  ///< of what is computed, in its tensors
  float gain_;                           ///< multiplies what is kept of them
  std::int64_t parts_ = 1;               ///< of the tile of queries that is computed
  float sink_ = -infinity;               ///< of the part that is summed
  std::int64_t skipped_ = 0;             ///< tiles of keys that all its rows' masks hide, so far
  std::array<float, 8> lane_factors_{};  ///< by which rows r with r mod 16 < 8 were rescaled last, by r mod 8
  inline static thread_local Memory m_;
};

}  // namespace attest
