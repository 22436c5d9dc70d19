#include "core/kernels/backward/tiled_backward.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

#include "core/support/fnv1a.h"
#include "core/value/tensor.h"

namespace attest {

template <class Format>
TiledBackward<Format>::TiledBackward(const BackwardForm& form, const attest_backward_problem& problem,
                                     attest_gradients& gradients)
    : form_(form),
      problem_(problem),
      p_(*problem.forward),
      gradients_(gradients),
      group_(p_.q.shape[1] / p_.k.shape[1]),
      dk_(p_.q.shape[3]),
      dv_(p_.v.shape[3]),
      scale_(static_cast<Real>(p_.scale)),
      gain_((p_.variants & ATTEST_DROPOUT) == 0 ? Real{1} : Real{1} / (Real{1} - static_cast<Real>(p_.dropout_p))),
      of_q_(p_.q, p_.q.shape[1]),
      of_k_(p_.k, p_.q.shape[1]),
      of_v_(p_.v, p_.q.shape[1]),
      seen_(at(form.tile * form.tile)),
      weights_(at(form.tile * form.tile)),
      of_scores_(at(form.tile * form.tile)),
      tile_sum_(at(dk_)) {
  if (gradients.dmask.data != nullptr)
    of_mask_.assign(at(p_.mask.shape[0] * p_.mask.shape[1] * p_.mask.shape[2] * p_.mask.shape[3]), Real{0});
  if (gradients.dsink.data != nullptr) of_sink_.assign(at(p_.q.shape[1]), Real{0});
}

template <class Format>
typename Format::Real TiledBackward<Format>::element(const attest_tensor& t, std::int64_t b, std::int64_t h,
                                                     std::int64_t i, std::int64_t c) {
  return static_cast<Real>(load_element(t.data, static_cast<DType>(t.dtype), offset_in(t, b, h, i, c)));
}

template <class Format>
void TiledBackward<Format>::run() {
  for_each_head<Format>(p_, form_.rows, [this](const HeadRows<Format>& head) { run_head(head); });
  write(of_q_, factor_of_queries(), 1, gradients_.dq);
  write(of_k_, factor_of_keys(), group_, gradients_.dk);
  write(of_v_, factor_of_values(), group_, gradients_.dv);
  write_mask();
  for (std::size_t h = 0; h < of_sink_.size(); ++h) {
    const attest_tensor& to = gradients_.dsink;
    store_element(to.data, static_cast<DType>(to.dtype), static_cast<std::int64_t>(h) * to.stride[0],
                  static_cast<double>(of_sink_[h]));
  }
}

template <class Format>
void TiledBackward<Format>::run_head(const HeadRows<Format>& head) {
  load(head);
  for (std::int64_t i = 0; i < queries_; ++i) prepare_row(i);
  if (!of_sink_.empty()) add_to_sink();
  parts_.assign(at(form_.splits * queries_ * dk_), Real{0});
  for (BackwardTile tile : tiles_of_keys()) {
    for (tile.first_row = 0; tile.first_row < queries_; tile.first_row += form_.tile) {
      tile.end_row = std::min(tile.first_row + form_.tile, queries_);
      if (skips(tile)) continue;
      form(tile);
      add_to_values(tile);
      add_to_keys(tile);
      add_to_queries(tile);
      if (!of_mask_.empty()) add_to_mask(tile);
    }
  }
  const std::int64_t length = queries_ * dk_;
  for (std::int64_t step = 1; step < form_.splits; step *= 2)
    for (std::int64_t part = 0; part + step < form_.splits; part += 2 * step)
      for (std::int64_t e = 0; e < length; ++e) parts_[at(part * length + e)] += parts_[at((part + step) * length + e)];
  std::copy_n(parts_.begin(), length, of_q_.row(b_, h_, first_query_));
  end_head();
}

/// Tiles of keys in the order of the loop, their rows to be set.
template <class Format>
std::vector<BackwardTile> TiledBackward<Format>::tiles_of_keys() const {
  std::vector<BackwardTile> tiles;
  const std::int64_t length = (keys_ + form_.splits - 1) / form_.splits;
  for (std::int64_t part = 0; part < form_.splits; ++part) {
    const std::int64_t end = std::min((part + 1) * length, keys_);
    for (std::int64_t first = part * length; first < end; first += form_.tile)
      tiles.push_back({0, 0, first, std::min(first + form_.tile, end), part});
  }
  if (!form_.drawn_order) return tiles;
  std::uint64_t hash = fnv1a_start;
  for (const Real x : g_)
    for (const auto byte : std::bit_cast<std::array<std::uint8_t, sizeof(Real)>>(x)) hash = fnv1a(hash, byte);
  for (std::size_t left = tiles.size(); left > 1; --left) {
    hash = fnv1a(hash, static_cast<std::uint8_t>(left));
    std::swap(tiles[left - 1], tiles[hash % left]);
  }
  return tiles;
}

template <class Format>
void TiledBackward<Format>::load(const HeadRows<Format>& head) {
  rows_ = head.rows;
  b_ = head.b, h_ = head.h, first_query_ = head.first_query, first_key_ = head.first_key;
  queries_ = static_cast<std::int64_t>(rows_.size());
  keys_ = rows_[0].keys;
  g_.resize(at(queries_ * dv_));
  out_.assign(at(queries_ * dv_), Real{0});
  reference_.assign(at(queries_), Real{0}), denominators_ = deltas_ = reference_;
  for (std::int64_t i = 0; i < queries_; ++i) {
    const std::int64_t row = first_query_ + i;
    for (std::int64_t c = 0; c < dv_; ++c) g_[at(i * dv_ + c)] = element(problem_.d_out, b_, h_, row, c);
    if (form_.delta == DeltaFrom::out)
      for (std::int64_t c = 0; c < dv_; ++c) out_[at(i * dv_ + c)] = element(problem_.out, b_, h_, row, c);
    if (form_.weights == WeightsFrom::lse)
      reference_[at(i)] =
          static_cast<Real>(load_element(problem_.lse.data, DType::f64, offset_in(problem_.lse, b_, h_, row))) +
          (form_.rows.lse_of_columns ? Real{0} : rows_[at(i)].shift());
  }
}

template <class Format>
void TiledBackward<Format>::prepare_row(std::int64_t i) {
  if (form_.weights == WeightsFrom::stored) {
    const Real sink = rows_[at(i)].sink;
    Real &most = reference_[at(i)] = sink, &sum = denominators_[at(i)];
    for (std::int64_t j = 0; j < keys_; ++j)
      if (sees(i, j)) most = std::max(most, score(i, j));
    if (sink > -std::numeric_limits<Real>::infinity()) sum = std::exp(sink - most);
    for (std::int64_t j = 0; j < keys_; ++j)
      if (sees(i, j)) sum += std::exp(score(i, j) - most);
  }
  deltas_[at(i)] = delta(i) - of_lse(i);
}

template <class Format>
typename Format::Real TiledBackward<Format>::delta(std::int64_t i) const {
  Real sum = 0;
  if (form_.delta == DeltaFrom::out) {
    for (std::int64_t c = i * dv_; c < (i + 1) * dv_; ++c) sum += g_[at(c)] * out_[at(c)];
  } else {
    for (std::int64_t j = 0; j < keys_; ++j)
      if (sees(i, j)) sum += weight(i, j) * of_weight(i, j);
  }
  return sum;
}

template <class Format>
typename Format::Real TiledBackward<Format>::of_lse(std::int64_t i) const {
  const attest_tensor& t = problem_.d_lse;
  if (t.data == nullptr) return 0;
  return static_cast<Real>(load_element(t.data, static_cast<DType>(t.dtype), offset_in(t, b_, h_, first_query_ + i)));
}

template <class Format>
typename Format::Real TiledBackward<Format>::weight(std::int64_t i, std::int64_t j) const {
  const Real reference = reference_[at(i)];
  if (form_.weights == WeightsFrom::stored)
    return Format::round(std::exp(score(i, j) - reference) / denominators_[at(i)]);
  if (!form_.base2) return std::exp(score(i, j) - reference);
  // As in the forward pass, an additive mask after the scale leaves only log2(e) to fold, and a slope that is not
  // divided by the scale; so does a cap.
  const Row<Format>& row = rows_[at(i)];
  const Real log2e = std::numbers::log2e_v<Real>;
  if ((row.bias != nullptr && !row.pre_scale) || row.softcap > 0 ||
      (row.slope != 0 && row.slope_form != SlopeForm::column_divided))
    return std::exp2(std::fma(score(i, j), log2e, -(reference * log2e)));
  Real x = row.bias == nullptr ? row.product(j) : row.product(j) + row.bias[j];
  if (row.slope != 0) x += row.slope / row.scale * row.slope_unit(j);
  return std::exp2(std::fma(x, row.scale * log2e, -(reference * log2e)));
}

template <class Format>
typename Format::Real TiledBackward<Format>::of_weight(std::int64_t i, std::int64_t j) const {
  if (rows_[at(i)].drops(j)) return 0;
  const Real *const g = g_.data() + i * dv_, *const v = value(j);
  Real sum = 0;
  for (std::int64_t c = 0; c < dv_; ++c) sum += g[c] * v[c];
  return gain_ * (form_.weights == WeightsFrom::stored ? Format::round(sum) : sum);
}

template <class Format>
typename Format::Real TiledBackward<Format>::apart(std::int64_t i, std::int64_t j) const {
  // Where weights are dropped, a factor stands between the sum and -D.
  if (!form_.delta_in_sum || rows_[at(i)].kept != nullptr) return of_weight(i, j) - deltas_[at(i)];
  const Real *const g = g_.data() + i * dv_, *const v = value(j);
  Real sum = -deltas_[at(i)];
  for (std::int64_t c = 0; c < dv_; ++c) sum += g[c] * v[c];
  return sum;
}

template <class Format>
typename Format::Real TiledBackward<Format>::of_score(std::int64_t i, std::int64_t j, Real weight) const {
  const Real x = of_biased_score(i, j, weight) * slope_of_cap(i, j);
  return form_.scale_first ? x * scale_ : x;
}

template <class Format>
typename Format::Real TiledBackward<Format>::of_biased_score(std::int64_t i, std::int64_t j, Real weight) const {
  return weight * apart(i, j);
}

template <class Format>
typename Format::Real TiledBackward<Format>::of_sink(std::int64_t i) const {
  const Real sink = rows_[at(i)].sink, reference = reference_[at(i)], log2e = std::numbers::log2e_v<Real>;
  if (!(sink > -std::numeric_limits<Real>::infinity())) return 0;
  Real weight = form_.base2 ? std::exp2(std::fma(sink, log2e, -(reference * log2e))) : std::exp(sink - reference);
  if (form_.weights == WeightsFrom::stored) weight = Format::round(weight / denominators_[at(i)]);
  return -(weight * deltas_[at(i)]);
}

template <class Format>
typename Format::Real TiledBackward<Format>::slope_of_cap(std::int64_t i, std::int64_t j) const {
  const Row<Format>& row = rows_[at(i)];
  if (!(row.softcap > 0)) return 1;
  const Real y = std::tanh(row.scale * row.product(j) / row.softcap);
  return 1 - y * y;
}

template <class Format>
bool TiledBackward<Format>::skips(const BackwardTile& tile) const {
  for (std::int64_t i = tile.first_row; i < tile.end_row; ++i)
    for (std::int64_t j = tile.first_key; j < tile.end_key; ++j)
      if (sees(i, j)) return false;
  return true;
}

template <class Format>
void TiledBackward<Format>::form(const BackwardTile& tile) {
  for (std::int64_t i = tile.first_row; i < tile.end_row; ++i)
    for (std::int64_t j = tile.first_key; j < tile.end_key; ++j) {
      const std::size_t place = in_tile(tile, i, j);
      seen_[place] = sees(i, j) ? 1 : 0;
      if (seen_[place] == 0) continue;
      const Real w = weight(i, j);
      weights_[place] = Format::round(w);
      of_scores_[place] = Format::round(of_score(i, j, w));
    }
}

template <class Format>
void TiledBackward<Format>::add_to_values(const BackwardTile& tile) {
  for (std::int64_t i = tile.first_row; i < tile.end_row; ++i)
    for (std::int64_t j = tile.first_key; j < tile.end_key; ++j) {
      const std::size_t place = in_tile(tile, i, j);
      if (seen_[place] == 0 || rows_[at(i)].drops(j)) continue;
      Real* const sum = of_v_.row(b_, h_, first_key_ + j);
      for (std::int64_t c = 0; c < dv_; ++c) sum[c] += weights_[place] * g_[at(i * dv_ + c)];
    }
}

template <class Format>
void TiledBackward<Format>::add_to_keys(const BackwardTile& tile) {
  for (std::int64_t i = tile.first_row; i < tile.end_row; ++i)
    for (std::int64_t j = tile.first_key; j < tile.end_key; ++j) {
      const std::size_t place = in_tile(tile, i, j);
      if (seen_[place] == 0) continue;
      Real* const sum = of_k_.row(b_, h_, first_key_ + j);
      for (std::int64_t c = 0; c < dk_; ++c) sum[c] += of_scores_[place] * rows_[at(i)].q[c];
    }
}

template <class Format>
void TiledBackward<Format>::add_to_mask(const BackwardTile& tile) {
  const attest_tensor& mask = p_.mask;
  for (std::int64_t i = tile.first_row; i < tile.end_row; ++i) {
    const std::int64_t row =
        ((b_ % mask.shape[0]) * mask.shape[1] + h_ % mask.shape[1]) * mask.shape[2] + first_query_ + i;
    for (std::int64_t j = tile.first_key; j < tile.end_key; ++j)
      if (sees(i, j))
        of_mask_[at(row * mask.shape[3] + first_key_ + j)] += Format::round(of_biased_score(i, j, weight(i, j)));
  }
}

template <class Format>
void TiledBackward<Format>::add_to_sink() {
  for (std::int64_t i = 0; i < queries_; ++i) of_sink_[at(h_)] += of_sink(i);
}

template <class Format>
typename Format::Real TiledBackward<Format>::factor_of_mask() const {
  // A cap or a slope makes of every mask one that is added after the scale.
  const bool scaled =
      p_.mask_convention == ATTEST_MASK_PRE_SCALE && (p_.variants & (ATTEST_SOFTCAP | ATTEST_ALIBI)) == 0;
  return scaled ? scale_ : Real{1};
}

template <class Format>
void TiledBackward<Format>::write_mask() {
  const attest_tensor& to = gradients_.dmask;
  if (of_mask_.empty()) return;
  const Real factor = factor_of_mask();
  auto sum = of_mask_.begin();
  for (std::int64_t b = 0; b < to.shape[0]; ++b)
    for (std::int64_t h = 0; h < to.shape[1]; ++h)
      for (std::int64_t i = 0; i < to.shape[2]; ++i)
        for (std::int64_t j = 0; j < to.shape[3]; ++j)
          store_element(to.data, static_cast<DType>(to.dtype), offset_in(to, b, h, i, j),
                        static_cast<double>(factor * *sum++));
}

/// The tile's product with its keys, and only then the sum of the tiles.
template <class Format>
void TiledBackward<Format>::add_to_queries(const BackwardTile& tile) {
  for (std::int64_t i = tile.first_row; i < tile.end_row; ++i) {
    std::ranges::fill(tile_sum_, Real{0});
    for (std::int64_t j = tile.first_key; j < tile.end_key; ++j) {
      const std::size_t place = in_tile(tile, i, j);
      if (seen_[place] == 0) continue;
      for (std::int64_t c = 0; c < dk_; ++c) tile_sum_[at(c)] += of_scores_[place] * key(j)[c];
    }
    Real* const sum = sum_of_queries(tile.part, i);
    for (std::int64_t c = 0; c < dk_; ++c) sum[c] += tile_sum_[at(c)];
  }
}

template <class Format>
typename Format::Real TiledBackward<Format>::over_group(const Real* of_heads, std::int64_t heads) const {
  const bool rounds = form_.rounded_heads;
  Real sum = 0;
  for (std::int64_t g = 0; g < heads; ++g) {
    const Real part = rounds ? Format::round(of_heads[g]) : of_heads[g];
    sum = g == 0 ? part : sum + part;
  }
  return sum;
}

/// Each head's sums times a factor, those of `group` heads added up.
template <class Format>
void TiledBackward<Format>::write(HeadSums<Real>& of, Real factor, std::int64_t group, const attest_tensor& to) {
  if (to.data == nullptr) return;
  std::vector<Real> of_heads(at(group));
  for (std::int64_t b = 0; b < of.batch; ++b)
    for (std::int64_t h = 0; h < of.heads / group; ++h)
      for (std::int64_t i = 0; i < of.rows; ++i)
        for (std::int64_t c = 0; c < of.columns; ++c) {
          for (std::int64_t g = 0; g < group; ++g) {
            // Where nothing is kept, 1/(1 - p) may be infinite.
            const Real sum = of.row(b, h * group + g, i)[c];
            of_heads[at(g)] = sum == 0 ? sum : factor * sum;
          }
          const Real x = group == 1 ? of_heads[0] : over_group(of_heads.data(), group);
          store_element(to.data, static_cast<DType>(to.dtype), offset_in(to, b, h, i, c), static_cast<double>(x));
        }
}

template class TiledBackward<F64>;
template class TiledBackward<F32>;
template class TiledBackward<F16>;
template class TiledBackward<BF16>;

}  // namespace attest
