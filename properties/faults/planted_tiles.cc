#include "properties/faults/planted_tiles.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/value/tensor.h"
#include "properties/faults/variants/planted_alibi.h"
#include "properties/faults/variants/planted_chunk.h"
#include "properties/faults/variants/planted_dropout.h"

namespace attest {
namespace {

/// Up to as many queries the keys are split into parts, where the make splits at all.
constexpr std::int64_t decode_queries = 16;

std::int64_t rounded_up(std::int64_t n, std::int64_t whole) {
  return (n + whole - 1) / whole;
}

}  // namespace

PlantedTiles::PlantedTiles(const Make& make, Slip slip, const attest_problem& problem, attest_result& result,
                           const SequencePlace& place)
    : make_(make),
      slip_(slip),
      p_(problem),
      result_(result),
      dtype_(static_cast<DType>(problem.q.dtype)),
      batches_(problem.q.shape[0]),
      heads_(problem.q.shape[1]),
      queries_(problem.q.shape[2]),
      kv_heads_(problem.k.shape[1]),
      keys_(problem.k.shape[2]),
      head_dim_(problem.q.shape[3]),
      value_dim_(problem.v.shape[3]),
      rows_(make.query_tile),
      columns_(make.block),
      drops_(drops_weights(problem, slip)),
      place_(place),
      gain_(gain_of_dropout<float>(problem, slip)) {}

void PlantedTiles::run() {
  const auto size = [](std::int64_t n) { return static_cast<std::size_t>(n); };
  m_.chunk.assign(size(64 * columns_), 0);
  m_.values.assign(size(columns_ * value_dim_), 0);
  for (std::vector<float>* const tile : {&m_.bias, &m_.slopes, &m_.scores, &m_.weights})
    tile->assign(size(rows_ * columns_), 0);
  m_.kept.assign(size(rows_ * columns_), 1);
  m_.merged.assign(size(value_dim_), 0);
  m_.v.clear();
  for (std::int64_t b = 0; b < batches_; ++b) {
    for (std::int64_t h = 0; h < heads_; ++h) {
      if (!is_launched(b, h)) continue;
      load_head(b, h);
      for (std::int64_t index = 0; index < rounded_up(queries_, rows_); ++index) answer(query_tile(b, h, index));
    }
  }
}

/// Whether a block of the grid is there for the head.
bool PlantedTiles::is_launched(std::int64_t b, std::int64_t h) const {
  if (is("heads-beyond-32-unwritten")) return h < 32;
  if (is("grid-of-65535")) return b * heads_ + h < 65'535;
  return true;
}

PlantedTiles::QueryTile PlantedTiles::query_tile(std::int64_t b, std::int64_t h, std::int64_t index) const {
  const std::int64_t first = index * rows_, rows = std::min(rows_, queries_ - first);
  // No partial tile: the last one begins earlier and repeats rows.
  if (is("shifted-last-query-tile") && index > 0) return {b, h, index, std::min(first, queries_ - rows_), rows_};
  return {b, h, index, first, rows};
}

/// One past the last key that the causal form leaves to row r of the tile.
std::int64_t PlantedTiles::causal_end(const QueryTile& tile, std::int64_t r) const {
  if (p_.causal == ATTEST_CAUSAL_NONE) return keys_;
  std::int64_t i = tile.first + r;
  std::int64_t shift = p_.causal == ATTEST_CAUSAL_BOTTOM_RIGHT ? keys_ - queries_ : 0;
  if (is("shifted-last-query-tile")) i = tile.index * rows_ + r;
  if (is("causal-row-in-its-tile")) i = tile.index * columns_ + r;
  if (is("packed-group-position") && parts_ > 1) {
    const std::int64_t group = heads_ / kv_heads_;
    i = (tile.h % group * queries_ + i) / group;
  }
  if (is("causal-dropped-in-parts") && parts_ > 1 && queries_ > 1) return keys_;
  if (is("chunk-attends-to-whole-length") && shift >= columns_) return keys_;
  if (is("cached-prefix-ignored") && shift >= columns_) shift = 0;
  return std::clamp<std::int64_t>(i + shift + 1, 0, keys_);
}

/// The keys that the window leaves to row r of the tile.
KeyRange PlantedTiles::window(const QueryTile& tile, std::int64_t r) const {
  if (is("window-ignored-in-parts") && parts_ > 1) return {0, keys_};
  KeyRange keys = window_of(p_, slip_, tile.h, tile.first + r);
  if (is("window-left-end-of-the-tiles-first-row")) keys.begin = window_of(p_, slip_, tile.h, tile.first).begin;
  return keys;
}

/// The keys of the chunk that row r of the tile is in.
KeyRange PlantedTiles::own_chunk(const QueryTile& tile, std::int64_t r) const {
  if (is("chunk-ignored-in-parts") && parts_ > 1) return {0, keys_};
  if (is("chunk-of-the-tiles-first-row")) r = 0;
  if (!is("chunk-rounded-up-to-the-tile")) return chunk_of(p_, slip_, place_.miscount, tile.first + r);
  attest_problem longer = p_;
  longer.attention_chunk = rounded_up(p_.attention_chunk, columns_) * columns_;
  return chunk_of(longer, slip_, place_.miscount, tile.first + r);
}

/// The first tile of keys that some row of the tile may see by the window and its chunk.
std::int64_t PlantedTiles::first_key_tile(const QueryTile& tile) const {
  const std::int64_t last = tile.rows - 1;
  const std::int64_t begin = window(tile, is("window-tiles-from-the-last-row") ? last : 0).begin;
  const std::int64_t chunk_begin = own_chunk(tile, is("chunk-tiles-from-the-last-row") ? last : 0).begin;
  return std::max(is("first-tile-of-window-rounded-up") ? rounded_up(begin, columns_) : begin / columns_,
                  chunk_begin / columns_);
}

/// Of so many tiles of keys, those before the end of the windows of all rows.
std::int64_t PlantedTiles::key_tiles_of_window(const QueryTile& tile, std::int64_t tiles) const {
  std::int64_t end = window(tile, is("window-tiles-to-the-first-row") ? 0 : tile.rows - 1).end;
  if (is("window-tiles-of-a-causal-span") && p_.window_left >= 0)
    end = std::min(end, first_key_tile(tile) * columns_ + p_.window_left + rows_);
  const bool rounds_down = is("last-tile-of-window-rounded-down") && end < keys_;
  return std::min(tiles, rounds_down ? end / columns_ : rounded_up(end, columns_));
}

/// Of so many tiles of keys, those before the end of the chunks of all rows.
std::int64_t PlantedTiles::key_tiles_of_chunks(const QueryTile& tile, std::int64_t tiles) const {
  std::int64_t end = own_chunk(tile, tile.rows - 1).end;
  // Where a causal form would end.
  const std::int64_t shift = counts_from_the_last_key(p_) ? keys_ - queries_ : 0;
  if (is("chunk-tiles-to-the-last-rows-key"))
    end = std::min(end, std::max<std::int64_t>(tile.first + tile.rows + shift, 0));
  const bool rounds_down = is("last-tile-of-chunk-rounded-down") && end < keys_;
  return std::min(tiles, rounds_down ? end / columns_ : rounded_up(end, columns_));
}

/// Tiles of keys up to the last that some row of the tile may see by the causal form, the window and its chunk.
std::int64_t PlantedTiles::key_tiles(const QueryTile& tile) const {
  std::int64_t keys = keys_;
  if (is("length-of-16-bits")) keys = static_cast<std::uint16_t>(keys_);
  std::int64_t tiles = rounded_up(keys, columns_);
  if (p_.causal != ATTEST_CAUSAL_NONE) {
    const std::int64_t end = std::min(causal_end(tile, tile.rows - 1), keys);
    tiles = rounded_up(end, columns_);
    const std::int64_t shift = p_.causal == ATTEST_CAUSAL_BOTTOM_RIGHT ? keys_ - queries_ : 0;
    if (is("diagonal-tile-rounded-down") && shift > 0)
      tiles = std::min(rounded_up(keys, columns_), (tile.index * rows_ + rows_ + shift) / columns_);
    if (is("keys-bounded-by-queries")) tiles = std::min(tiles, rounded_up(queries_, columns_));
  }
  if (has_window(p_)) tiles = key_tiles_of_window(tile, tiles);
  if (has_chunks(p_)) tiles = key_tiles_of_chunks(tile, tiles);
  if (is("tiles-in-eight-bits")) tiles = static_cast<std::uint8_t>(tiles);
  if (is("keys-beyond-2048-dropped") && queries_ == 1) tiles = std::min(tiles, 2048 / columns_);
  return tiles;
}

/// Parts into which the tiles of keys are split, at least 1.
std::int64_t PlantedTiles::parts_of(std::int64_t tiles) const {
  if (make_.split_tiles == 0 || queries_ > decode_queries) return 1;
  std::int64_t parts = rounded_up(tiles, make_.split_tiles);
  if (is("split-drops-the-rest")) parts = tiles / make_.split_tiles;
  // The merge takes them in pairs.
  if ((is("empty-part-nan") || is("empty-part-has-lse-zero")) && parts > 1) parts += parts % 2;
  return std::max<std::int64_t>(1, parts);
}

void PlantedTiles::answer(const QueryTile& tile) {
  parts_ = 1;
  parts_ = parts_of(key_tiles(tile));
  const std::int64_t tiles = key_tiles(tile);
  if (is("rows-above-the-first-key-unwritten") && tiles == 0 && keys_ > 0) return;
  if (m_.states.size() < static_cast<std::size_t>(parts_)) m_.states.resize(static_cast<std::size_t>(parts_));
  if (parts_ == 1) {
    attend(tile, 0, tiles, m_.states[0]);
    for (std::int64_t r = 0; r < tile.rows; ++r)
      normalise(m_.states[0].out.data() + r * value_dim_, m_.states[0].sum[static_cast<std::size_t>(r)]);
    if (has_window(p_)) spoil_by_window(tile, m_.states[0]);
    multiply_by_gain(tile, m_.states[0]);
    return write(tile, m_.states[0]);
  }
  for (std::int64_t p = 0; p < parts_; ++p) {
    const std::int64_t begin = std::min(p * make_.split_tiles, tiles);
    attend(tile, begin, std::min(begin + make_.split_tiles, tiles), m_.states[static_cast<std::size_t>(p)]);
  }
  merge(tile, parts_, m_.states[0]);
  if (!is("dropout-not-scaled-in-parts")) multiply_by_gain(tile, m_.states[0]);
  write(tile, m_.states[0]);
}

void PlantedTiles::merge(const QueryTile& tile, std::int64_t parts, State& into) {
  if (is("parts-beyond-32-not-merged")) parts = std::min<std::int64_t>(parts, 32);
  m_.lse.resize(static_cast<std::size_t>(parts));
  for (std::int64_t r = 0; r < tile.rows; ++r) merge_row(r, parts, into);
}

/// The mean of the parts, weighted by exp(lse); a part that sees nothing has weight exp(-inf) = 0. Afterwards `into`
/// holds the answer, normalised, and a sum of 1.
void PlantedTiles::merge_row(std::int64_t r, std::int64_t parts, State& into) {
  const auto row = static_cast<std::size_t>(r);
  for (std::int64_t p = 0; p < parts; ++p) {
    State& part = m_.states[static_cast<std::size_t>(p)];
    float& lse = m_.lse[static_cast<std::size_t>(p)];
    float* const out = part.out.data() + r * value_dim_;
    lse = lse_of(part, is("scratch-of-first-query") ? 0 : r);
    if (is("parts-merged-by-maxima")) lse = part.reference[row];
    const bool empty = part.reference[row] == -infinity;
    const bool beyond = p * make_.split_tiles * columns_ >= keys_;
    if (empty && beyond && is("empty-part-has-lse-zero")) lse = 0;
    const bool divides = is("part-without-keys-nan") || (beyond && is("empty-part-nan"));
    if (!empty || divides) normalise(out, empty ? 0 : part.sum[row]);
    if (empty && divides) std::fill_n(out, value_dim_, std::numeric_limits<float>::quiet_NaN());
    if (is("parts-in-the-dtype")) std::transform(out, out + value_dim_, out, [this](float x) { return narrow(x); });
  }
  const std::int64_t compared = is("merge-maximum-without-last-part") ? parts - 1 : parts;
  const float maximum = *std::max_element(m_.lse.begin(), m_.lse.begin() + compared);
  std::ranges::fill(m_.merged, 0.0F);
  float sum = 0;
  for (std::int64_t p = 0; p < parts && maximum != -infinity; ++p) {
    const float weight = std::exp(m_.lse[static_cast<std::size_t>(p)] - maximum);
    const float* const out = m_.states[static_cast<std::size_t>(p)].out.data() + r * value_dim_;
    sum += weight;
    for (std::int64_t c = 0; c < value_dim_; ++c) m_.merged[static_cast<std::size_t>(c)] += weight * out[c];
  }
  const float lse_of_last = m_.lse[static_cast<std::size_t>(parts - 1)];
  if (maximum != -infinity) {
    for (float& x : m_.merged) x /= sum;
  }
  std::ranges::copy(m_.merged, into.out.begin() + r * value_dim_);
  into.reference[row] = into.largest[row] = maximum == -infinity ? maximum : maximum + std::log(sum);
  if (is("lse-of-last-part")) into.reference[row] = into.largest[row] = lse_of_last;
  into.sum[row] = 1;
}

/// What goes wrong in a tile whose rows are computed, of which some have an empty window.
void PlantedTiles::spoil_by_window(const QueryTile& tile, State& state) const {
  if (is("window-without-tiles-nan") && first_key_tile(tile) >= key_tiles(tile))
    std::ranges::fill(state.out, std::numeric_limits<float>::quiet_NaN());
  if (!is("empty-window-clears-the-rows-behind")) return;
  std::int64_t r = 0;
  while (r < tile.rows && window(tile, r).begin < window(tile, r).end) ++r;
  std::fill(state.out.begin() + r * value_dim_, state.out.end(), 0.0F);
}

/// What is kept of the weights of normalised rows gets its factor.
void PlantedTiles::multiply_by_gain(const QueryTile& tile, State& state) const {
  for (std::int64_t at = 0; at < tile.rows * value_dim_; ++at) state.out[static_cast<std::size_t>(at)] *= gain_;
}

void PlantedTiles::write(const QueryTile& tile, const State& state) {
  const bool partial = tile.index > 0 && tile.rows < rows_;
  std::int64_t rows = tile.rows;
  if (is("last-rows-in-sixteens") && partial) rows = rows / 16 * 16;
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t i = tile.first + r;
    std::int64_t at = offset_in(result_.out, tile.b, tile.h, i);
    if (is("output-offset-of-16-bits"))
      at = offset_in(result_.out, tile.b, tile.h) + static_cast<std::uint16_t>(i * result_.out.stride[2]);
    for (std::int64_t c = 0; c < value_dim_; ++c) {
      store_element(result_.out.data, static_cast<DType>(result_.out.dtype), at + c * result_.out.stride[3],
                    double{state.out[static_cast<std::size_t>(r * value_dim_ + c)]});
    }
    if (result_.lse.data == nullptr || (is("lse-of-last-tile-unwritten") && partial)) continue;
    std::int64_t lse_at = offset_in(result_.lse, tile.b, tile.h, i);
    if (is("lse-offset-of-16-bits")) lse_at = static_cast<std::uint16_t>(lse_at);
    store_element(result_.lse.data, DType::f64, lse_at, double{lse_of(state, r)});
  }
}

}  // namespace attest
