// What a planted kernel of tiles reads: heads, tiles of keys and values, tiles of masks.
#include <algorithm>
#include <bit>

#include "core/value/tensor.h"
#include "properties/faults/planted_tiles.h"
#include "properties/faults/variants/planted_alibi.h"
#include "properties/faults/variants/planted_chunk.h"
#include "properties/faults/variants/planted_dropout.h"

namespace attest {

/// The key-value head of a head.
std::int64_t PlantedTiles::kv_head(std::int64_t h) const {
  const std::int64_t group = heads_ / kv_heads_;
  if (is("group-by-shift"))
    return std::min(h >> (std::bit_width(static_cast<std::uint64_t>(group)) - 1), kv_heads_ - 1);
  if (is("group-of-eight-fixed") && heads_ >= 32) return std::min(h / 8, kv_heads_ - 1);
  if (is("heads-in-three-bits")) return h / group & 7;
  return h / group;
}

/// Where an element of q, k or v is read. A wrong place stays inside the tensor's memory: what lies beyond it is not
/// the mistake that is planted.
std::int64_t PlantedTiles::offset_of(const attest_tensor& t, std::int64_t b, std::int64_t h, std::int64_t row,
                                     std::int64_t column) const {
  const bool of_keys = &t == &p_.k, of_values = &t == &p_.v, of_queries = &t == &p_.q;
  const std::int64_t last = offset_in(t, t.shape[0] - 1, t.shape[1] - 1, t.shape[2] - 1, t.shape[3] - 1);
  std::int64_t of_head = h * t.stride[1], of_row = row * t.stride[2];
  if (of_queries) {
    if (is("query-offset-of-16-bits")) of_row = static_cast<std::uint16_t>(of_row);
    return b * t.stride[0] + of_head + of_row + column * t.stride[3];
  }
  if (is("key-index-of-16-bits")) of_row = static_cast<std::uint16_t>(row) * t.stride[2];
  if (is("key-offset-of-16-bits")) of_row = static_cast<std::uint16_t>(of_row);
  if (is("key-offset-of-32-bits")) of_row = static_cast<std::uint32_t>(of_row);
  if (is("head-offset-of-16-bits")) of_head = static_cast<std::uint16_t>(of_head);
  if (is("value-pitch-of-keys") && of_values && head_dim_ > 128) of_row = row * p_.k.stride[2];
  if (is("row-pitch-rounded-up") && of_keys && head_dim_ > 64) of_row = row * ((t.stride[2] + 63) / 64 * 64);
  if (is("strides-ignored-at-128") && of_keys && head_dim_ == 128)
    return std::min(((b * kv_heads_ + h) * keys_ + row) * 128 + column, last);
  return std::min(b * t.stride[0] + of_head + of_row + column * t.stride[3], last);
}

/// Copies one head of q, k or v into row-major order.
void PlantedTiles::load(const attest_tensor& t, std::int64_t b, std::int64_t h, std::vector<float>& to) const {
  const std::int64_t rows = t.shape[2], columns = t.shape[3];
  to.resize(static_cast<std::size_t>(rows * columns));
  float* next = to.data();
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t c = 0; c < columns; ++c)
      *next++ = static_cast<float>(load_element(t.data, dtype_, offset_of(t, b, h, i, c)));
  }
}

/// Those of what head h reads of q, k or v.
PlantedFactors<float> PlantedTiles::factors(attest_tensor attest_problem::* tensor, std::int64_t b,
                                            std::int64_t h) const {
  const bool of_queries = tensor == &attest_problem::q;
  return {p_,
          slip_,
          {.tensor = tensor,
           .b = b,
           .h = of_queries ? h : kv_head(h),
           .query_head = h,
           .first = of_queries ? place_.first_query : place_.first_key,
           .tile = of_queries ? rows_ : columns_}};
}

/// Whether what head h reads is multiplied by its factors.
bool PlantedTiles::takes_factors(std::int64_t b, std::int64_t h) const {
  return !is("descale-dropped-in-parts") || parts_of(key_tiles(query_tile(b, h, 0))) == 1;
}

void PlantedTiles::load_head(std::int64_t b, std::int64_t h) {
  const bool takes = takes_factors(b, h);
  load(p_.q, b, h, m_.q);
  if (takes) factors(&attest_problem::q, b, h).multiply(m_.q);
  // A group's heads follow one another and share what is loaded.
  if (h > 0 && kv_head(h) == kv_head(h - 1) && !m_.v.empty()) return;
  if (is("values-of-the-head-before")) {
    m_.v_before.assign(m_.v.begin(), m_.v.begin() + std::min<std::ptrdiff_t>(std::ssize(m_.v), columns_ * value_dim_));
  }
  const std::int64_t source = is("batch-in-two-bits") ? b & 3 : b;
  load(p_.k, source, kv_head(h), m_.k);
  load(p_.v, source, kv_head(h), m_.v);
  if (!takes) return;
  factors(&attest_problem::k, source, h).multiply(m_.k);
  factors(&attest_problem::v, source, h).multiply(m_.v);
}

/// Columns [first, first + width) of the tile's keys, transposed; what lies behind the last key is 0.
void PlantedTiles::load_key_chunk(const KeyTile& tile, std::int64_t first, std::int64_t width) {
  const std::int64_t keys = std::min(columns_, keys_ - tile.index * columns_);
  const float* const from = m_.k.data() + tile.index * columns_ * head_dim_;
  for (std::int64_t c = 0; c < width; ++c) {
    float* const to = m_.chunk.data() + c * columns_;
    for (std::int64_t j = 0; j < keys; ++j) {
      std::int64_t element = j * head_dim_ + first + c;
      if (is("tile-offset-of-16-bits")) {
        // Four bytes each: what is written 64 KiB later lies in the same place.
        constexpr std::int64_t reach = 65'536 / 4;
        element += (keys * head_dim_ - 1 - element) / reach * reach;
      }
      to[j] = from[element];
    }
    std::fill(to + keys, to + columns_, 0.0F);
  }
}

void PlantedTiles::load_values(const QueryTile& queries, const KeyTile& tile) {
  const std::int64_t keys = std::min(columns_, keys_ - tile.index * columns_);
  std::int64_t source = tile.index;
  if (is("values-of-two-tiles-before") && tile.is_last() && tile.index - tile.begin >= 2) source -= 2;
  if (is("values-behind-after-skip")) source -= skipped_;
  const float* from = m_.v.data() + source * columns_ * value_dim_;
  if (is("values-of-the-head-before") && keys_ > columns_ && tile.index == 0 && queries.index == 0 &&
      std::ssize(m_.v_before) >= keys * value_dim_)
    from = m_.v_before.data();
  std::copy_n(from, keys * value_dim_, m_.values.begin());
  if (!is("tail-keeps-values")) std::fill(m_.values.begin() + keys * value_dim_, m_.values.end(), 0.0F);
}

/// The mask's entry for key j of row r of the tile: -inf hides, else what it adds.
float PlantedTiles::mask_entry(const QueryTile& tile, std::int64_t r, std::int64_t j) const {
  const attest_tensor& mask = p_.mask;
  std::int64_t page = mask.shape[0] == 1 ? 0 : tile.b, plane = mask.shape[1] == 1 ? 0 : tile.h;
  if (is("mask-of-first-batch-in-later-tiles") && tile.index > 0) page = 0;
  if (is("mask-plane-in-three-bits")) plane &= 7;
  const std::int64_t i = is("mask-row-in-its-tile") ? r : tile.first + r;
  std::int64_t of_row = i * mask.stride[2];
  if (is("mask-offset-of-16-bits")) of_row = static_cast<std::uint16_t>(of_row);
  if (is("mask-tail-in-eights") && j >= columns_ && j >= keys_ / 8 * 8) return 0;
  const double entry = load_element(mask.data, static_cast<DType>(mask.dtype),
                                    offset_in(mask, page, plane) + of_row + j * mask.stride[3]);
  if (mask.dtype == ATTEST_BOOL) return entry != 0 ? 0.0F : -infinity;
  return static_cast<float>(entry);
}

/// What the mask adds to the scores of the tile, and -inf for what mask, causal form, window, chunks and the end of the
/// keys hide.
void PlantedTiles::load_mask(const QueryTile& queries, const KeyTile& tile) {
  const std::int64_t first = tile.index * columns_, keys = std::min(columns_, keys_ - first);
  bool masked = p_.mask.data != nullptr;
  if (is("mask-on-last-tile-only") && !tile.is_last()) masked = false;
  if (is("tile-mask-by-corners") && masked && keys == columns_ && queries.rows == rows_) {
    const auto hidden = [&](std::int64_t r, std::int64_t j) { return mask_entry(queries, r, first + j) == -infinity; };
    masked = hidden(0, 0) || hidden(0, keys - 1) || hidden(rows_ - 1, 0) || hidden(rows_ - 1, keys - 1);
  }
  std::int64_t behind = keys;  // the first column that lies behind the keys
  if (is("padded-keys-count") && tile.index > 0) behind = columns_;
  if (is("one-padded-key-counts") && tile.index > 0) behind = std::min(keys + 1, columns_);
  const bool causal = p_.causal != ATTEST_CAUSAL_NONE;
  for (std::int64_t r = 0; r < queries.rows; ++r) {
    float* const bias = m_.bias.data() + r * columns_;
    std::fill_n(bias, columns_, 0.0F);
    for (std::int64_t j = 0; masked && j < keys; ++j) bias[j] = mask_entry(queries, r, first + j);
    std::int64_t end = behind;
    if (causal) end = std::min(end, std::max<std::int64_t>(causal_end(queries, r) - first, 0));
    if (is("one-diagonal-tile") && causal && !tile.is_last()) end = behind;
    if (is("causal-tail-not-masked") && causal && tile.index > 0 && causal_end(queries, r) == keys_) {
      // The diagonal is thought to hide what lies behind the keys.
      const std::int64_t shift = p_.causal == ATTEST_CAUSAL_BOTTOM_RIGHT ? keys_ - queries_ : 0;
      end = std::min(queries.first + r + shift + 1 - first, columns_);
    }
    std::fill(bias + end, bias + columns_, -infinity);
    if (is("window-of-4096-left-on") && causal) {
      const std::int64_t begin = std::clamp<std::int64_t>(causal_end(queries, r) - 4096 - first, 0, columns_);
      std::fill(bias, bias + begin, -infinity);
    }
    if (has_window(p_)) load_window(queries, tile, r);
    if (has_chunks(p_)) load_chunk(queries, tile, r);
  }
}

/// -inf for what the window hides from row r.
void PlantedTiles::load_window(const QueryTile& queries, const KeyTile& tile, std::int64_t r) {
  const bool shows_between =
      is("window-masked-on-its-first-and-last-tile") && tile.index > tile.begin && !tile.is_last();
  if (shows_between) return;
  KeyRange keys = window(queries, r);
  if (is("first-tile-of-window-not-masked") && tile.index == tile.begin) keys.begin = 0;
  hide_outside(keys, tile, r);
}

/// -inf for what lies outside of the chunk of row r.
void PlantedTiles::load_chunk(const QueryTile& queries, const KeyTile& tile, std::int64_t r) {
  KeyRange keys = own_chunk(queries, r);
  if (is("first-tile-of-chunk-not-masked") && tile.index == tile.begin) keys.begin = 0;
  hide_outside(keys, tile, r);
}

/// -inf in row r for the tile's keys that are not these.
void PlantedTiles::hide_outside(const KeyRange& keys, const KeyTile& tile, std::int64_t r) {
  const std::int64_t first = tile.index * columns_;
  float* const bias = m_.bias.data() + r * columns_;
  std::fill(bias, bias + std::clamp<std::int64_t>(keys.begin - first, 0, columns_), -infinity);
  if (keys.end < keys_)
    std::fill(bias + std::clamp<std::int64_t>(keys.end - first, 0, columns_), bias + columns_, -infinity);
}

/// Whether row r of the tile keeps the weight of the tile's key j.
bool PlantedTiles::keeps(const QueryTile& queries, const KeyTile& tile, std::int64_t r, std::int64_t j) const {
  const std::int64_t first = tile.index * columns_;
  std::int64_t i = queries.first + r, key = first + j;
  if (is("dropout-row-in-its-tile")) i = r;
  if (is("dropout-key-in-its-tile")) key = j;
  if (is("dropout-columns-eight-apart-exchanged") && first + (j ^ 8) < keys_) key = first + (j ^ 8);
  // Where the weight lies among those of its head, none of which is beyond the right place.
  std::int64_t place = i * keys_ + key;
  if (is("dropout-pitch-of-the-causal-keys")) place = i * causal_end(queries, queries.rows - 1) + key;
  if (is("dropout-offset-of-16-bits")) place = static_cast<std::uint16_t>(place);
  return keeps_weight(p_, slip_, queries.b, queries.h, place / keys_, place % keys_);
}

/// Which weights of the tile are kept; what lies behind the last key is.
void PlantedTiles::load_kept(const QueryTile& queries, const KeyTile& tile) {
  if (!drops_) return;
  const std::int64_t keys = std::min(columns_, keys_ - tile.index * columns_);
  std::ranges::fill(m_.kept, std::uint8_t{1});
  if (is("dropout-skips-the-last-tile") && tile.index > 0 && keys < columns_) return;
  for (std::int64_t r = 0; r < queries.rows; ++r)
    for (std::int64_t j = 0; j < keys; ++j)
      m_.kept[static_cast<std::size_t>(r * columns_ + j)] = keeps(queries, tile, r, j) ? 1 : 0;
}

/// Whether slopes add something to the scores of the tile, in a problem that has them. The mask is loaded.
bool PlantedTiles::has_slopes_in(const QueryTile& queries, const KeyTile& tile) const {
  if (is("alibi-skips-the-last-tile") && tile.index > 0) return (tile.index + 1) * columns_ <= keys_;
  if (is("alibi-in-the-first-tile-alone")) return tile.index == tile.begin;
  if (is("alibi-skips-unmasked-tiles"))
    return std::any_of(m_.bias.begin(), m_.bias.begin() + queries.rows * columns_,
                       [](float bias) { return bias == -infinity; });
  return !is("alibi-dropped-in-parts") || parts_ == 1;
}

/// The head whose slope the tile of queries takes.
std::int64_t PlantedTiles::head_of_slope(const QueryTile& queries) const {
  const std::int64_t group = heads_ / kv_heads_;
  // Where few queries are computed, the rows of a group's heads are one tile.
  if (is("alibi-slope-of-the-groups-first-head") && parts_ > 1) return queries.h / group * group;
  return is("alibi-slope-in-three-bits") ? queries.h & 7 : queries.h;
}

/// The row whose distance row r of the tile takes.
std::int64_t PlantedTiles::row_of_slope(const QueryTile& queries, std::int64_t r) const {
  if (is("alibi-row-in-its-tile")) return r;
  return is("alibi-distance-of-the-tiles-first-row") ? queries.first : queries.first + r;
}

/// The key whose distance key j of the tile takes.
std::int64_t PlantedTiles::key_of_slope(const KeyTile& tile, std::int64_t j) const {
  if (is("alibi-key-in-its-tile")) return j;
  if (is("alibi-distance-of-the-tiles-first-key")) return tile.index * columns_;
  const bool from_begin = (is("alibi-keys-from-the-start-of-the-part") && parts_ > 1) ||
                          (is("alibi-keys-from-the-windows-first-tile") && has_window(p_));
  return (from_begin ? tile.index - tile.begin : tile.index) * columns_ + j;
}

/// What slopes add to the scores of the tile. The mask is loaded.
void PlantedTiles::load_slopes(const QueryTile& queries, const KeyTile& tile) {
  if (!has_slopes(p_)) return;
  std::ranges::fill(m_.slopes, 0.0F);
  const PlantedSlopes<float> slopes(p_, slip_, queries.b, head_of_slope(queries), place_.miscount.slopes);
  if (!slopes.any() || !has_slopes_in(queries, tile)) return;
  const std::int64_t keys = std::min(columns_, keys_ - tile.index * columns_);
  for (std::int64_t r = 0; r < queries.rows; ++r)
    for (std::int64_t j = 0; j < keys; ++j)
      m_.slopes[static_cast<std::size_t>(r * columns_ + j)] =
          slopes.added(row_of_slope(queries, r), key_of_slope(tile, j));
}

/// Whether a row of the tile of queries sees a key of the tile. The mask is loaded.
bool PlantedTiles::sees_something(const QueryTile& queries, const KeyTile& tile) {
  const auto sees = [&](std::int64_t rows) {
    const auto end = m_.bias.begin() + rows * columns_;
    return std::find_if(m_.bias.begin(), end, [](float bias) { return bias != -infinity; }) != end;
  };
  load_mask(queries, tile);
  if (is("tile-skipped-by-first-row") && tile.index > 0) return sees(1);
  if (is("tile-skipped-by-first-head") && tile.index > 0 && queries.h > 0) {
    QueryTile of_first = queries;
    of_first.h = 0;
    load_mask(of_first, tile);
    const bool any = sees(queries.rows);
    load_mask(queries, tile);
    return any;
  }
  return sees(queries.rows);
}

}  // namespace attest
