// What a planted kernel of tiles computes: scores of a tile, the step of the running maximum, the product with V.
#include <algorithm>
#include <cmath>

#include "properties/faults/planted_sink.h"
#include "properties/faults/planted_softcap.h"
#include "properties/faults/planted_tiles.h"
#include "properties/faults/variants/planted_alibi.h"

namespace attest {
namespace {

/// Columns of q, k and v that are taken at a time.
constexpr std::int64_t chunk = 64;

}  // namespace

/// Attention over those of the tiles [begin, end) of keys that window and chunks do not leave out, not normalised.
void PlantedTiles::attend(const QueryTile& queries, std::int64_t begin, std::int64_t end, State& state) {
  // The sink is in the first part, which its sum begins with.
  const bool whole = !is("sink-in-whole-query-tiles") || queries.rows == rows_;
  const bool sinks = whole && (begin == 0 || is("sink-in-every-part-of-tiles"));
  sink_ = sinks ? static_cast<float>(sink_of(p_, slip_, queries.h)) : -infinity;
  state.reference.assign(static_cast<std::size_t>(rows_), sink_);
  state.largest.assign(static_cast<std::size_t>(rows_), sink_);
  state.sum.assign(static_cast<std::size_t>(rows_), sink_ == -infinity ? 0.0F : 1.0F);
  state.out.assign(static_cast<std::size_t>(rows_ * value_dim_), 0);
  skipped_ = 0;
  begin = std::min(std::max(begin, first_key_tile(queries)), end);
  std::int64_t stop = end;
  if (is("tiles-beyond-fours-dropped") && end - begin > 4) stop = begin + (end - begin) / 4 * 4;
  for (std::int64_t index = begin; index < stop; ++index) add_tile(queries, {index, begin, end}, state);
  if (is("odd-tile-counted-twice") && end - begin > 1 && (end - begin) % 2 == 1)
    add_tile(queries, {end - 1, begin, end}, state);
}

void PlantedTiles::add_tile(const QueryTile& queries, const KeyTile& tile, State& state) {
  if (!sees_something(queries, tile) && make_.skips_hidden) {
    ++skipped_;
    return;
  }
  load_slopes(queries, tile);
  load_kept(queries, tile);
  if (is("dropout-skips-dropped-tiles") && drops_all(queries, tile)) return;
  score(queries, tile);
  load_values(queries, tile);
  for (std::int64_t r = 0; r < queries.rows; ++r) weigh_row(queries, tile, r, state);
  add_values(queries, tile, state);
}

/// Whether no row of the tile of queries keeps a weight of the tile. What is kept is loaded.
bool PlantedTiles::drops_all(const QueryTile& queries, const KeyTile& tile) const {
  const std::int64_t keys = std::min(columns_, keys_ - tile.index * columns_);
  for (std::int64_t r = 0; r < queries.rows; ++r) {
    const auto row = m_.kept.begin() + r * columns_;
    if (std::find(row, row + keys, std::uint8_t{1}) != row + keys) return false;
  }
  return true;
}

float PlantedTiles::scale() const {
  const double root = 1 / std::sqrt(static_cast<double>(head_dim_));
  const std::int64_t padded = (head_dim_ + chunk - 1) / chunk * chunk;
  // Where the definition's scale is asked for, of the width in memory.
  if (is("scale-of-padded-head-dim") && head_dim_ > chunk && std::abs(p_.scale - root) < 1e-6)
    return static_cast<float>(1 / std::sqrt(static_cast<double>(padded)));
  return static_cast<float>(p_.scale);
}

/// Whether the tile's scores are capped, in a problem with a cap.
bool PlantedTiles::caps(const QueryTile& queries, const KeyTile& tile) const {
  if (is("softcap-skips-the-last-tile") && tile.index > 0) return (tile.index + 1) * columns_ <= keys_;
  if (is("softcap-skips-unmasked-tiles"))
    return std::any_of(m_.bias.begin(), m_.bias.begin() + queries.rows * columns_,
                       [](float bias) { return bias != 0; });
  return !is("softcap-dropped-in-parts") || parts_ == 1;
}

/// Scores of the tile: its products by the mask convention, and what slopes add; -inf where the mask hides.
void PlantedTiles::score(const QueryTile& queries, const KeyTile& tile) {
  multiply_keys(queries, tile);
  const bool adds_hiding = is("hidden-score-added-behind-first-tile") && tile.index > 0;
  if (const auto cap = static_cast<float>(softcap_of(p_, slip_)); cap > 0 && caps(queries, tile)) {
    cap_products(queries, tile, cap, adds_hiding);
  } else {
    const float scaled_by = scale();
    const bool pre_scale = p_.mask_convention == ATTEST_MASK_PRE_SCALE;
    for (std::int64_t at = 0; at < queries.rows * columns_; ++at) {
      const float bias = m_.bias[static_cast<std::size_t>(at)];
      float& s = m_.scores[static_cast<std::size_t>(at)];
      s = pre_scale ? scaled_by * (s + bias) : scaled_by * s + bias;
      if (bias == -infinity && !adds_hiding) s = -infinity;
    }
  }
  if (!has_slopes(p_)) return;
  for (std::size_t at = 0; at < static_cast<std::size_t>(queries.rows * columns_); ++at) m_.scores[at] += m_.slopes[at];
}

/// Products of the tile, chunk by chunk of the head dimension.
void PlantedTiles::multiply_keys(const QueryTile& queries, const KeyTile& tile) {
  std::int64_t dims = head_dim_;
  if (is("head-dim-in-sixty-fours") && dims > chunk) dims = dims / chunk * chunk;
  if (is("head-dim-in-eights-above-64") && dims > chunk) dims = dims / 8 * 8;
  if (is("head-dim-above-128-cut")) dims = std::min<std::int64_t>(dims, 128);
  std::fill_n(m_.scores.begin(), queries.rows * columns_, 0.0F);
  for (std::int64_t first = 0; first < dims; first += chunk) {
    const std::int64_t width = std::min(chunk, dims - first);
    load_key_chunk(tile, first, width);
    const bool stale = is("head-dim-tail-stale") && first > 0;
    for (std::int64_t r = 0; r < queries.rows; ++r) {
      const float* q = m_.q.data() + (queries.first + r) * head_dim_ + first;
      if (is("second-half-reads-first") && head_dim_ == 128 && first > 0) q -= chunk;
      float* const s = m_.scores.data() + r * columns_;
      for (std::int64_t c = 0; c < (stale ? chunk : width); ++c) {
        const float x = c < width ? q[c] : q[c - chunk];
        const float* const key = m_.chunk.data() + c * columns_;
        for (std::int64_t j = 0; j < columns_; ++j) s[j] += x * key[j];
      }
      if (is("score-halves-in-the-dtype") && first + width < dims)
        std::transform(s, s + columns_, s, [this](float x) { return narrow(x); });
    }
  }
}

/// Scores of the tile from its products, as `score` has them without slopes, in a problem with a cap.
void PlantedTiles::cap_products(const QueryTile& queries, const KeyTile& tile, float cap, bool adds_hiding) {
  const PlantedCap<float> capped{cap, scale(), dtype_, slip_};
  const bool shows_padding = is("softcap-shows-padded-keys") && tile.index > 0;
  for (std::int64_t at = 0; at < queries.rows * columns_; ++at) {
    const float bias = m_.bias[static_cast<std::size_t>(at)];
    float& s = m_.scores[static_cast<std::size_t>(at)];
    const bool padding = tile.index * columns_ + at % columns_ >= keys_;
    if (bias != -infinity || adds_hiding) {
      s = capped.score(s, bias);
    } else {
      s = shows_padding && padding ? -cap : -infinity;
    }
  }
}

/// Whether the step of the running maximum at this tile leaves what has been summed as it is.
bool PlantedTiles::forgets_rescaling(const KeyTile& tile) const {
  if (tile.index == tile.begin) return false;
  if (is("last-tile-not-rescaled")) return tile.is_last();
  if (is("not-rescaled-at-every-512")) return tile.index * columns_ % 512 == 0;
  return false;
}

/// Moves what has been summed for the row to a new reference.
void PlantedTiles::rescale(const QueryTile& queries, const KeyTile& tile, std::int64_t r, float factor, State& state) {
  if (forgets_rescaling(tile)) return;
  const bool later = tile.index > tile.begin;
  // A lane holds rows r and r + 8.
  float& of_lane = lane_factors_[static_cast<std::size_t>(r & 7)];
  if ((r & 8) == 0) of_lane = factor;
  if (is("factor-of-the-row-eight-above") && later) factor = of_lane;
  if (!(is("prefill-sum-not-rescaled") && later && queries.rows == rows_))
    state.sum[static_cast<std::size_t>(r)] *= factor;
  if (is("sum-kept-in-the-dtype") && later)
    state.sum[static_cast<std::size_t>(r)] = narrow(state.sum[static_cast<std::size_t>(r)]);
  if (is("odd-tile-output-not-rescaled") && (tile.index - tile.begin) % 2 == 1) return;
  const std::int64_t columns = is("first-value-chunk-rescaled") ? std::min(chunk, value_dim_) : value_dim_;
  if (is("dropout-scaled-in-every-tile") && later) factor *= gain_;
  // The factor of the tile's values multiplies all that there is, not what they add.
  if (is("descale-of-v-on-the-running-sum") && later)
    factor *= factors(&attest_problem::v, queries.b, queries.h).of_row(tile.index * columns_);
  float* const out = state.out.data() + r * value_dim_;
  for (std::int64_t c = 0; c < columns; ++c) out[c] *= factor;
}

/// The maximum of row r's scores in the tile.
float PlantedTiles::largest_of_tile(std::int64_t r) const {
  const float* const s = m_.scores.data() + r * columns_;
  if (!is("alibi-maximum-without-slopes") || !has_slopes(p_)) return *std::max_element(s, s + columns_);
  const float* const slopes = m_.slopes.data() + r * columns_;
  float largest = -infinity;
  for (std::int64_t j = 0; j < columns_; ++j) largest = std::max(largest, s[j] - slopes[j]);
  return largest;
}

/// The step of the running maximum for a row, and its weights; the sum takes them unrounded.
void PlantedTiles::weigh_row(const QueryTile& queries, const KeyTile& tile, std::int64_t r, State& state) {
  const auto row = static_cast<std::size_t>(r);
  const float* const s = m_.scores.data() + r * columns_;
  const std::uint8_t* const kept = m_.kept.data() + r * columns_;
  float* const weights = m_.weights.data() + r * columns_;
  const float of_tile = largest_of_tile(r);
  const float before = state.reference[row];
  std::fill_n(weights, columns_, 0.0F);
  if ((r & 8) == 0) lane_factors_[static_cast<std::size_t>(r & 7)] = 1;
  if (of_tile == -infinity) {
    // Nothing is seen here: -inf - -inf would be NaN.
    if (is("hidden-first-tile-nan") && tile.index == 0 && !tile.is_last())
      state.sum[row] = std::numeric_limits<float>::quiet_NaN();
    if (is("tile-outside-the-window-nan") && tile.index == tile.begin && !tile.is_last() &&
        window(queries, r).begin >= (tile.index + 1) * columns_)
      state.sum[row] = std::numeric_limits<float>::quiet_NaN();
    if (is("hidden-tile-clears-the-row")) rescale(queries, tile, r, 0, state);
    return;
  }
  state.largest[row] = std::max(state.largest[row], of_tile);
  float now = std::max(before, of_tile);
  if (is("maximum-of-the-tile-alone")) now = of_tile;
  if (make_.lazy_nats > 0 && !(now - before >= static_cast<float>(make_.lazy_nats))) now = before;
  rescale(queries, tile, r, std::exp(before - now), state);
  state.reference[row] = now;
  float sum = 0;
  const bool half = is("sum-of-half-a-tile") && tile.index > 0;
  for (std::int64_t j = 0; j < columns_; ++j) {
    if (s[j] == -infinity) continue;
    const float weight = std::exp(s[j] - now);
    weights[j] = make_.narrow_weights ? narrow(weight) : weight;
    if (kept[j] == 0 && is("dropout-in-the-sum-of-later-tiles") && tile.index > tile.begin) continue;
    if (!half || j < columns_ / 2) sum += weight;
  }
  if (is("sink-in-every-tile") && tile.index > 0) sum += std::exp(sink_ - now);
  const bool first = tile.index == tile.begin && is("first-tile-overwrites-the-sink");
  state.sum[row] = first ? sum : state.sum[row] + sum;
}

void PlantedTiles::add_values(const QueryTile& queries, const KeyTile& tile, State& state) {
  const std::int64_t keys = std::min(columns_, keys_ - tile.index * columns_);
  const bool takes_hidden = is("hidden-values-multiplied-behind-first-tile") && tile.index > 0;
  const bool takes_padding = is("tail-keeps-values");
  const bool takes_outside = is("values-outside-the-window-multiplied");
  std::int64_t end = columns_;
  if (is("values-in-sixteens") && tile.index > 0) end = keys / 16 * 16;
  std::int64_t width_in_all = value_dim_;
  if (is("value-chunks-of-head-dim")) width_in_all = std::min(value_dim_, (head_dim_ + chunk - 1) / chunk * chunk);
  for (std::int64_t first = 0; first < width_in_all; first += chunk) {
    const std::int64_t width = std::min(chunk, width_in_all - first);
    for (std::int64_t r = 0; r < queries.rows; ++r) {
      const float* const weights = m_.weights.data() + r * columns_;
      const float* const s = m_.scores.data() + r * columns_;
      const std::uint8_t* const kept = m_.kept.data() + r * columns_;
      float* const out = state.out.data() + r * value_dim_ + first;
      for (std::int64_t j = 0; j < end; ++j) {
        const bool hidden = s[j] == -infinity;
        const bool outside = takes_outside && j < keys && !window(queries, r).sees(tile.index * columns_ + j);
        if (kept[j] == 0) continue;
        if (hidden && !outside && !(takes_hidden && j < keys) && !(takes_padding && j >= keys)) continue;
        const float weight = weights[j];
        const float* const value = m_.values.data() + j * value_dim_ + first;
        for (std::int64_t c = 0; c < width; ++c) out[c] += weight * value[c];
      }
    }
  }
}

/// Divides a row that sees something by its sum.
void PlantedTiles::normalise(float* out, float sum) const {
  if (sum == 0) return;
  const std::int64_t columns =
      is("values-above-128-unnormalised") ? std::min<std::int64_t>(128, value_dim_) : value_dim_;
  const float inverse = 1 / sum;
  for (std::int64_t c = 0; c < columns; ++c) out[c] = make_.reciprocal ? out[c] * inverse : out[c] / sum;
}

float PlantedTiles::lse_of(const State& state, std::int64_t r) const {
  const auto row = static_cast<std::size_t>(r);
  if (state.reference[row] == -infinity) return -infinity;
  // The sum is relative to the reference, which may lag.
  return (is("lazy-maximum-in-lse") ? state.largest : state.reference)[row] + std::log(state.sum[row]);
}

}  // namespace attest
