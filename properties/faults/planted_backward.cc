#include "properties/faults/planted_backward.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numbers>
#include <utility>
#include <vector>

#include "core/call/drawn_keep.h"
#include "core/kernels/backward/builtin_backward.h"
#include "core/value/tensor.h"

namespace attest {
namespace {

template <class Format>
class PlantedBackward final : public TiledBackward<Format> {
  using Base = TiledBackward<Format>;
  using Real = typename Format::Real;

 public:
  PlantedBackward(const BackwardForm& form, Slip slip, const attest_backward_problem& problem,
                  attest_gradients& gradients)
      : Base(form, problem, gradients), slip_(slip) {}

  void run() {
    Base::run();
    if (is("gradients-of-an-unread-sequence")) spoil_sequences_without_queries();
    // Without dq nobody has computed D and dS for dk either.
    if (is("dk-needs-dq") && gradients_.dq.data == nullptr) fill(gradients_.dk, 0);
    if (is("dv-by-strides-of-dk") && dk_ == dv_) write_by_strides_of(gradients_.dk, gradients_.dv);
    if (is("dq-by-strides-of-q")) write_by_strides_of(p_.q, gradients_.dq);
  }

 private:
  using Base::at, Base::form_, Base::problem_, Base::p_, Base::gradients_, Base::group_, Base::dk_, Base::dv_,
      Base::scale_, Base::gain_, Base::of_q_, Base::of_k_, Base::of_v_, Base::b_, Base::h_, Base::first_query_,
      Base::first_key_, Base::queries_, Base::keys_, Base::rows_, Base::g_, Base::out_, Base::reference_,
      Base::denominators_, Base::deltas_, Base::seen_, Base::weights_, Base::of_scores_, Base::tile_sum_, Base::key,
      Base::value, Base::in_tile, Base::element, Base::sum_of_queries, Base::of_mask_, Base::of_sink_;
  static constexpr Real infinity = std::numeric_limits<Real>::infinity();
  static constexpr Real nan = std::numeric_limits<Real>::quiet_NaN();

  /// Whether this is the mistake.
  [[nodiscard]] bool is(Slip slip) const { return slip_ == slip; }
  [[nodiscard]] bool has(std::uint32_t variants) const { return (p_.variants & variants) != 0; }
  static Real in_bf16(Real x) { return static_cast<Real>(round_to(DType::bf16, static_cast<double>(x))); }
  /// Is row i in a tile that is not full, behind a full one?
  [[nodiscard]] bool in_last_rows(std::int64_t i) const {
    return queries_ > form_.tile && i >= queries_ / form_.tile * form_.tile;
  }
  [[nodiscard]] bool is_empty(std::int64_t i) const {
    for (std::int64_t j = 0; j < keys_; ++j)
      if (rows_[at(i)].visible[j] != 0) return false;
    return true;
  }

  // What is read of a head

  void load(const HeadRows<Format>& head) override {
    Base::load(head);
    if (is("gradient-by-strides-of-out")) read_row_major(problem_.d_out, g_);
    if (is("out-read-row-major") && problem_.out.data != nullptr) read_row_major(problem_.out, out_);
    last_key_ = 0, overtaken_ = false;
    if (h_ == 0) first_visible_[first_query_] = sight();
    for (Row<Format>& row : rows_) {
      if (is("backward-sink-forgotten")) row.sink = -infinity;
      if (is("backward-slopes-forgotten")) row.slope = 0;
      if (is("backward-mask-forgotten")) row.bias = nullptr;
    }
    for (Real& reference : reference_)
      if (is("backward-lse-in-the-dtype")) reference = Format::round(reference);
    if (is("backward-lse-of-the-row-in-its-tile"))
      for (std::int64_t i = form_.tile; i < queries_; ++i) reference_[at(i)] = reference_[at(i % form_.tile)];
    if (is("gradients-of-sequences-with-queries") && has(ATTEST_PACKED)) first_key_ = first_key_of_count();
  }

  /// Rows of the head, whatever the tensor's strides. What lies beyond its memory is not the mistake that is planted.
  template <class Rows>
  void read_row_major(const attest_tensor& t, Rows& rows) {
    const std::int64_t last = offset_in(t, t.shape[0] - 1, t.shape[1] - 1, t.shape[2] - 1, dv_ - 1);
    for (std::int64_t e = 0; e < queries_ * dv_; ++e) {
      const std::int64_t place = ((b_ * t.shape[1] + h_) * t.shape[2] + first_query_) * dv_ + e;
      rows[at(e)] = static_cast<Real>(load_element(t.data, static_cast<DType>(t.dtype), std::min(place, last)));
    }
  }

  /// Both have the same shape. What lies beyond the memory of a tensor is not the mistake that is planted.
  void write_by_strides_of(const attest_tensor& other, const attest_tensor& to) {
    if (other.data == nullptr || to.data == nullptr) return;
    const auto dtype = static_cast<DType>(to.dtype);
    const auto each = [&](auto&& visit) {
      for (std::int64_t b = 0; b < to.shape[0]; ++b)
        for (std::int64_t h = 0; h < to.shape[1]; ++h)
          for (std::int64_t i = 0; i < to.shape[2]; ++i)
            for (std::int64_t c = 0; c < to.shape[3]; ++c)
              visit(offset_in(to, b, h, i, c), offset_in(other, b, h, i, c));
    };
    std::vector<double> right;
    std::int64_t last = 0;
    each([&](std::int64_t own, std::int64_t) { right.push_back(load_element(to.data, dtype, last = own)); });
    auto next = right.begin();
    each([&](std::int64_t, std::int64_t place) { store_element(to.data, dtype, std::min(place, last), *next++); });
  }

  [[nodiscard]] std::vector<std::uint8_t> sight() const {
    std::vector<std::uint8_t> all;
    for (const Row<Format>& row : rows_) all.insert(all.end(), row.visible, row.visible + row.keys);
    return all;
  }

  static std::int64_t start(const attest_tensor& starts, std::int64_t s) {
    return static_cast<const std::int32_t*>(starts.data)[s * starts.stride[0]];
  }
  /// Where the keys begin of a sequence whose number counts those alone that have queries.
  [[nodiscard]] std::int64_t first_key_of_count() const {
    std::int64_t count = 0;
    for (std::int64_t s = 0; start(p_.q_starts, s) < first_query_; ++s)
      count += start(p_.q_starts, s + 1) > start(p_.q_starts, s) ? 1 : 0;
    return start(p_.kv_starts, count);
  }

  // Sight and scores

  [[nodiscard]] bool sees(std::int64_t i, std::int64_t j) const override {
    const bool masked = p_.mask.data != nullptr, windowed = has(ATTEST_WINDOW | ATTEST_CHUNK);
    if (is("backward-causal-forgotten") && !masked && !windowed) return true;
    if (is("backward-window-forgotten") && !masked && p_.causal == ATTEST_CAUSAL_NONE) return true;
    if (is("backward-mask-of-the-first-head")) return first_visible_.at(first_query_)[at(i * keys_ + j)] != 0;
    return Base::sees(i, j);
  }

  [[nodiscard]] Real score(std::int64_t i, std::int64_t j) const override {
    const Row<Format>& row = rows_[at(i)];
    if (!is("keys-scaled-in-bf16") || row.softcap > 0 || row.pre_scale || row.slope != 0) return Base::score(i, j);
    Real sum = 0;
    for (std::int64_t c = 0; c < dk_; ++c) sum += row.q[c] * in_bf16(key(j)[c] * row.scale);
    return row.bias == nullptr ? sum : sum + row.bias[j];
  }

  void prepare_row(std::int64_t i) override {
    if (is("backward-weights-not-normalised")) {
      Real& most = reference_[at(i)] = -infinity;
      for (std::int64_t j = 0; j < keys_; ++j)
        if (sees(i, j)) most = std::max(most, score(i, j));
    }
    Base::prepare_row(i);
    Real& delta = deltas_[at(i)];
    if (is("delta-unwritten")) delta = 0;
    if (is("delta-in-bf16")) delta = in_bf16(delta);
    if (is("delta-of-the-last-rows-unwritten") && in_last_rows(i)) delta = 0;
    if (is("delta-of-the-row-in-its-tile")) delta = deltas_[at(i % form_.tile)];
    if (is("delta-of-the-first-batch")) delta = first_delta(h_, i, b_ == 0, delta);
    if (is("delta-of-the-first-sequence") && has(ATTEST_PACKED)) delta = first_delta(h_, i, first_query_ == 0, delta);
  }
  /// What was kept under the head and the row, or is, where it is the first.
  Real first_delta(std::int64_t h, std::int64_t i, bool first, Real delta) {
    if (first) return kept_deltas_[{h, i}] = delta;
    const auto found = kept_deltas_.find({h, i});
    return found == kept_deltas_.end() ? delta : found->second;
  }

  [[nodiscard]] Real delta(std::int64_t i) const override {
    if (!is("delta-over-head-dim")) return Base::delta(i);
    Real sum = 0;
    for (std::int64_t c = i * dv_; c < i * dv_ + std::min(dk_, dv_); ++c) sum += g_[at(c)] * out_[at(c)];
    return sum;
  }

  // Of a row and a key

  [[nodiscard]] Real weight(std::int64_t i, std::int64_t j) const override {
    if (is("backward-quotient-of-exponentials")) return std::exp(score(i, j)) / std::exp(reference_[at(i)]);
    const Real weight = Base::weight(i, j);
    if (is("backward-share-beside-the-sink-nan") && rows_[at(i)].sink > -infinity) {
      // The weights among keys alone, times the keys' share: which are 0/0 where the sink has all.
      Real keys = 0;
      for (std::int64_t n = 0; n < keys_; ++n)
        if (sees(i, n)) keys += std::exp(score(i, n) - reference_[at(i)]);
      if (keys == 0) return nan;
    }
    return weight;
  }

  [[nodiscard]] Real of_weight(std::int64_t i, std::int64_t j) const override {
    if (is("dp-over-head-dim") || is("dp-and-delta-over-head-dim")) {
      if (rows_[at(i)].drops(j)) return 0;
      Real sum = 0;
      for (std::int64_t c = 0; c < std::min(dk_, dv_); ++c) sum += g_[at(i * dv_ + c)] * value(j)[c];
      return gain_ * sum;
    }
    if (is("dp-of-dropped-weights") && rows_[at(i)].drops(j)) {
      Real sum = 0;
      for (std::int64_t c = 0; c < dv_; ++c) sum += g_[at(i * dv_ + c)] * value(j)[c];
      return gain_ * sum;
    }
    const Real sum = Base::of_weight(i, j);
    return is("dp-in-the-dtype") ? Format::round(sum) : sum;
  }

  [[nodiscard]] Real apart(std::int64_t i, std::int64_t j) const override {
    const Real x = Base::apart(i, j);
    return is("dp-minus-delta-one-percent-off") ? x * Real{1.01F} : x;
  }

  [[nodiscard]] Real of_score(std::int64_t i, std::int64_t j, Real weight) const override {
    if (is("ds-of-dropped-weights-zero") && rows_[at(i)].drops(j)) return 0;
    const Real x = Base::of_score(i, j, weight);
    // P (1 - P) dP', with dP' = (dP - D)/(1 - P): 0/0 where one key has all the weight.
    if (is("backward-of-the-only-key-nan") && weight == 1) return nan;
    return x;
  }

  [[nodiscard]] Real of_biased_score(std::int64_t i, std::int64_t j, Real weight) const override {
    const Real x = Base::of_biased_score(i, j, weight);
    return is("dmask-behind-the-cap") && for_mask_ ? x * Base::slope_of_cap(i, j) : x;
  }

  [[nodiscard]] Real of_sink(std::int64_t i) const override {
    if (is("dsink-unwritten") || (is("dsink-without-the-last-rows") && in_last_rows(i))) return 0;
    Real x = Base::of_sink(i);
    // Of D alone.
    if (is("d-lse-not-in-dsink") && deltas_[at(i)] != 0) x *= (deltas_[at(i)] + of_lse(i)) / deltas_[at(i)];
    return is("dsink-not-negated") ? -x : is("dsink-terms-in-bf16") ? in_bf16(x) : x;
  }

  [[nodiscard]] Real of_lse(std::int64_t i) const override {
    if (is("d-lse-ignored") || (is("d-lse-of-the-last-rows-ignored") && in_last_rows(i))) return 0;
    const attest_tensor& t = problem_.d_lse;
    if (is("d-lse-of-the-first-heads") && t.data != nullptr)
      return static_cast<Real>(
          load_element(t.data, static_cast<DType>(t.dtype), offset_in(t, b_, h_ / group_, first_query_ + i)));
    const Real x = Base::of_lse(i);
    return is("d-lse-subtracted") ? -x : is("d-lse-of-base-2") ? x * std::numbers::ln2_v<Real> : x;
  }

  [[nodiscard]] Real slope_of_cap(std::int64_t i, std::int64_t j) const override {
    if (is("backward-cap-forgotten")) return 1;
    const Row<Format>& row = rows_[at(i)];
    if (is("backward-cap-of-capped-scores") && row.softcap > 0) {
      const Real y = row.softcap * std::tanh(row.scale * row.product(j) / row.softcap);
      return 1 - y * y;
    }
    return Base::slope_of_cap(i, j);
  }

  // Of a tile

  [[nodiscard]] bool skips(const BackwardTile& tile) const override {
    if (is("backward-exp-at-hidden-keys") || is("empty-row-nan-in-gradients")) return false;
    const bool first_row = is("backward-tile-skipped-by-its-first-row");
    if (first_row || is("backward-tile-skipped-by-its-last-key")) {
      const std::int64_t begin = first_row ? tile.first_key : tile.end_key - 1;
      const std::int64_t rows = first_row ? tile.first_row + 1 : tile.end_row;
      for (std::int64_t i = tile.first_row; i < rows; ++i)
        for (std::int64_t j = begin; j < tile.end_key; ++j)
          if (sees(i, j)) return false;
      return true;
    }
    return Base::skips(tile);
  }

  void form(const BackwardTile& tile) override {
    Base::form(tile);
    for (std::int64_t i = tile.first_row; i < tile.end_row; ++i) {
      const bool empty = is("empty-row-nan-in-gradients") && rows_[at(i)].sink == -infinity && is_empty(i);
      Real most = 0;
      for (std::int64_t j = tile.first_key; j < tile.end_key; ++j) {
        const std::size_t place = in_tile(tile, i, j);
        // A hidden key's factor is 0, and it multiplies what may be infinite.
        if (is("backward-exp-at-hidden-keys") && seen_[place] == 0) {
          seen_[place] = 1;
          weights_[place] = of_scores_[place] = Real{0} * std::exp(score(i, j) - reference_[at(i)]);
        }
        // exp(-inf - -inf).
        if (empty) seen_[place] = 1, weights_[place] = of_scores_[place] = nan;
        if (seen_[place] != 0) most = std::max(most, weights_[place]);
      }
      if (!is("dv-nan-where-a-tile-has-no-weight") || most > 0) continue;
      for (std::int64_t j = tile.first_key; j < tile.end_key; ++j) weights_[in_tile(tile, i, j)] = nan;
    }
  }

  void add_to_values(const BackwardTile& given) override {
    const BackwardTile tile = shortened(given);
    std::vector<Row<Format>> own;
    if (is("dv-of-dropped-weights")) {
      own = rows_;
      for (Row<Format>& row : rows_) row.kept = nullptr;
    }
    in_place_of_head([&] { Base::add_to_values(tile); });
    if (!own.empty()) rows_ = std::move(own);
    if (is("dv-in-the-dtype-between-tiles")) round_rows(of_v_, tile);
  }

  void add_to_keys(const BackwardTile& given) override {
    const BackwardTile tile = shortened(given);
    std::vector<Row<Format>> own;
    std::vector<Real> others;
    if (is("dk-of-the-first-heads-queries")) {
      // Of the group.
      own = rows_;
      others.resize(at(queries_ * dk_));
      for (std::int64_t i = 0; i < queries_; ++i) {
        for (std::int64_t c = 0; c < dk_; ++c)
          others[at(i * dk_ + c)] = element(p_.q, b_, h_ / group_ * group_, first_query_ + i, c);
        rows_[at(i)].q = others.data() + i * dk_;
      }
    }
    const std::int64_t columns = dk_;
    if (is("dk-columns-above-128-lost")) dk_ = std::min<std::int64_t>(dk_, 128);
    in_place_of_head([&] { add_rows_to_keys(tile); });
    dk_ = columns;
    if (!own.empty()) rows_ = std::move(own);
  }
  void add_rows_to_keys(const BackwardTile& tile) {
    if (!is("dk-columns-above-128-lost") && !is("dk-sums-in-the-dtype")) return Base::add_to_keys(tile);
    for (std::int64_t i = tile.first_row; i < tile.end_row; ++i)
      for (std::int64_t j = tile.first_key; j < tile.end_key; ++j) {
        const std::size_t place = in_tile(tile, i, j);
        if (seen_[place] == 0) continue;
        Real* const sum = of_k_.row(b_, h_, first_key_ + j);
        for (std::int64_t c = 0; c < dk_; ++c) {
          sum[c] += of_scores_[place] * rows_[at(i)].q[c];
          if (is("dk-sums-in-the-dtype")) sum[c] = Format::round(sum[c]);
        }
      }
  }

  void add_to_queries(const BackwardTile& given) override {
    BackwardTile tile = given;
    if (is("dq-without-the-last-key") && tile.end_key == keys_) --tile.end_key;
    if (is("dq-loses-the-last-part") && form_.splits % 2 == 1 && tile.part == form_.splits - 1) return;
    if (tile.first_key != last_key_) overtaken_ = tile.first_key < std::exchange(last_key_, tile.first_key);
    const bool overwrites =
        (is("dq-of-a-tile-overwrites") && tile.first_key > 0) || (is("dq-race-of-atomics") && overtaken_);
    for (std::int64_t i = tile.first_row; i < tile.end_row; ++i) {
      std::int64_t cleared = dk_;
      if (is("dq-columns-stale-behind-eights")) cleared = dk_ / 8 * 8;
      if (is("dq-second-chunk-stale")) cleared = std::min<std::int64_t>(dk_, 64);
      std::fill_n(tile_sum_.begin(), cleared, Real{0});
      for (std::int64_t j = tile.first_key; j < tile.end_key; ++j) {
        const std::size_t place = in_tile(tile, i, j);
        if (seen_[place] == 0) continue;
        // Two buffers, of which the last of three or more tiles finds its own not filled yet.
        const bool stale = is("dq-of-the-keys-two-tiles-before") && tile.end_key == keys_;
        const std::int64_t of_key = stale && j >= 2 * form_.tile ? j - 2 * form_.tile : j;
        for (std::int64_t c = 0; c < dk_; ++c) tile_sum_[at(c)] += of_scores_[place] * key(of_key)[c];
      }
      Real* const sum = sum_of_queries(tile.part, i);
      for (std::int64_t c = 0; c < dk_; ++c) {
        sum[c] = overwrites ? tile_sum_[at(c)] : sum[c] + tile_sum_[at(c)];
        if (is("dq-in-the-dtype-between-tiles")) sum[c] = Format::round(sum[c]);
      }
    }
  }

  void add_to_mask(const BackwardTile& tile) override {
    if (is("dmask-of-the-last-head") && tile.first_row == 0 && tile.first_key == 0 && p_.mask.shape[1] == 1)
      std::ranges::fill(of_mask_, Real{0});
    for_mask_ = true;
    Base::add_to_mask(tile);
    for_mask_ = false;
  }

  void add_to_sink() override {
    if (is("dsink-of-the-last-sequence")) of_sink_[at(h_)] = 0;
    Base::add_to_sink();
  }

  /// The tile without the rows and keys that a slip loses for dk and dv.
  [[nodiscard]] BackwardTile shortened(BackwardTile tile) const {
    if (is("dk-dv-without-the-last-query") && tile.end_row == queries_) --tile.end_row;
    if (is("dk-dv-without-the-last-rows") && in_last_rows(tile.first_row)) tile.end_row = tile.first_row;
    if (is("dk-dv-in-sixteens") && tile.first_key > 0)
      tile.end_key = tile.first_key + (tile.end_key - tile.first_key) / 16 * 16;
    return tile;
  }

  /// With the entry and head that dk and dv are added to.
  template <class Add>
  void in_place_of_head(Add&& add) {
    const std::int64_t b = b_, h = h_, kv_heads = p_.k.shape[1];
    if (is("dk-dv-of-heads-dealt-out")) h_ = h % kv_heads * group_ + h / kv_heads;
    if (is("dk-dv-of-heads-in-three-bits")) h_ = h & 7;
    if (is("dk-dv-of-batches-in-two-bits")) b_ = b & 3;
    add();
    b_ = b, h_ = h;
  }

  void round_rows(HeadSums<Real>& of, const BackwardTile& tile) {
    for (std::int64_t j = tile.first_key; j < tile.end_key; ++j) {
      Real* const row = of.row(b_, h_, first_key_ + j);
      for (std::int64_t c = 0; c < of.columns; ++c) row[c] = Format::round(row[c]);
    }
  }

  // Behind the loop

  [[nodiscard]] Real factor_of_queries() const override {
    return is("dq-not-scaled") ? Real{1} : Base::factor_of_queries();
  }
  [[nodiscard]] Real factor_of_keys() const override {
    const Real factor = Base::factor_of_queries();
    return is("dk-scaled-twice") ? scale_ * factor : factor;
  }
  [[nodiscard]] Real factor_of_values() const override {
    return is("dv-without-the-factor-of-dropout") ? Real{1} : Base::factor_of_values();
  }

  [[nodiscard]] Real factor_of_mask() const override {
    return is("dmask-scaled") ? scale_ : is("dmask-not-scaled") ? Real{1} : Base::factor_of_mask();
  }

  void end_head() override {
    // A row of padding has a weight of e^(0 - 0) for the first key.
    if (!is("rows-behind-a-length-in-dv") || keys_ == 0) return;
    const std::int64_t row = first_query_ + queries_;
    if (has(ATTEST_PACKED) || row >= p_.q.shape[2]) return;
    Real* const sum = of_v_.row(b_, h_, first_key_);
    for (std::int64_t c = 0; c < dv_; ++c) sum[c] += element(problem_.d_out, b_, h_, row, c);
  }

  [[nodiscard]] Real over_group(const Real* of_heads, std::int64_t heads) const override {
    if (is("dk-dv-of-the-groups-first-head")) return of_heads[0];
    if (is("dk-dv-without-the-groups-last-head")) return Base::over_group(of_heads, heads - 1);
    const Real sum = Base::over_group(of_heads, heads);
    return is("dk-dv-averaged-over-the-group") ? sum / static_cast<Real>(heads) : sum;
  }

  static void fill(const attest_tensor& t, double with) {
    for (std::int64_t b = 0; b < t.shape[0]; ++b)
      for (std::int64_t h = 0; h < t.shape[1]; ++h)
        for (std::int64_t i = 0; i < t.shape[2]; ++i) fill_row(t, b, h, i, with);
  }
  static void fill_row(const attest_tensor& t, std::int64_t b, std::int64_t h, std::int64_t i, double with) {
    for (std::int64_t c = 0; c < t.shape[3]; ++c)
      store_element(t.data, static_cast<DType>(t.dtype), offset_in(t, b, h, i, c), with);
  }
  /// Their keys are visited by no row, and their gradients are what memory holds.
  void spoil_sequences_without_queries() {
    const auto spoil = [&](std::int64_t b, std::int64_t begin, std::int64_t end) {
      for (const attest_tensor* const t : {&gradients_.dk, &gradients_.dv})
        for (std::int64_t h = 0; t->data != nullptr && h < t->shape[1]; ++h)
          for (std::int64_t j = begin; j < end; ++j) fill_row(*t, b, h, j, nan);
    };
    if (has(ATTEST_PACKED)) {
      for (std::int64_t s = 0; s + 1 < p_.q_starts.shape[0]; ++s)
        if (start(p_.q_starts, s) == start(p_.q_starts, s + 1))
          spoil(0, start(p_.kv_starts, s), start(p_.kv_starts, s + 1));
    } else if (has(ATTEST_LENGTHS) && p_.q_lengths.data != nullptr) {
      for (std::int64_t b = 0; b < p_.q.shape[0]; ++b)
        if (start(p_.q_lengths, b) == 0)
          spoil(b, 0, p_.kv_lengths.data == nullptr ? p_.k.shape[2] : start(p_.kv_lengths, b));
    }
  }

  Slip slip_;
  std::map<std::int64_t, std::vector<std::uint8_t>> first_visible_;  ///< [rows, keys] of the entry's first head, by row
  std::map<std::pair<std::int64_t, std::int64_t>, Real> kept_deltas_;  ///< by head and row
  std::int64_t last_key_ = 0;                                          ///< where the tile of keys begins that came last
  bool for_mask_ = false;   ///< it is what is added to a mask's that is formed
  bool overtaken_ = false;  ///< it lies before the one that came before it
};

}  // namespace

int run_planted_backward(const BackwardForm& form, Slip slip, const attest_backward_problem& problem,
                         attest_gradients& gradients, std::string& message) {
  if (const int status = accept_backward(*problem.forward, message); status != ATTEST_OK) return status;
  attest_problem forward = *problem.forward;
  if (slip == Slip("own-dropout-of-another-seed") && draws_own_dropout(forward)) ++forward.dropout_seed;
  attest_backward_problem asked = problem;
  asked.forward = &forward;
  switch (static_cast<DType>(forward.q.dtype)) {
    case DType::f64:
      PlantedBackward<F64>(form, slip, asked, gradients).run();
      return ATTEST_OK;
    case DType::f32:
      PlantedBackward<F32>(form, slip, asked, gradients).run();
      return ATTEST_OK;
    case DType::f16:
      PlantedBackward<F16>(form, slip, asked, gradients).run();
      return ATTEST_OK;
    case DType::bf16:
      PlantedBackward<BF16>(form, slip, asked, gradients).run();
      return ATTEST_OK;
    default:
      message = "runs in f64, f32, f16 and bf16";
      return ATTEST_UNSUPPORTED;
  }
}

}  // namespace attest
