// A problem as rows: which head and which tensors a row reads, what it sees of the keys, where its answer is written.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "core/problem/score.h"
#include "core/support/infinity.h"
#include "core/value/tensor.h"
#include "properties/faults/planted_cache.h"
#include "properties/faults/planted_row.h"
#include "properties/faults/planted_sequences.h"
#include "properties/faults/planted_sink.h"
#include "properties/faults/planted_softcap.h"
#include "properties/faults/planted_tiles.h"
#include "properties/faults/variants/planted_alibi.h"
#include "properties/faults/variants/planted_chunk.h"
#include "properties/faults/variants/planted_descale.h"
#include "properties/faults/variants/planted_dropout.h"
#include "properties/faults/variants/planted_window.h"

namespace attest {
namespace {

/// Memory of one call, kept by each thread for its next one.
template <class Real>
struct Workspace {
  std::vector<Real> q, k, v, bias, factors, slopes, x, weights, part, tile, out;
  std::vector<std::uint8_t> visible, kept;
};

template <class Real>
class PlantedProblem {
 public:
  PlantedProblem(const Make& make, Slip slip, const attest_problem& p, attest_result& result, std::int64_t call,
                 const SequencePlace& place)
      : make_(make),
        slip_(slip),
        p_(p),
        result_(result),
        call_(call),
        place_(place),
        dtype_(static_cast<DType>(p.q.dtype)),
        batches_(p.q.shape[0]),
        heads_(p.q.shape[1]),
        queries_(p.q.shape[2]),
        kv_heads_(p.k.shape[1]),
        keys_(p.k.shape[2]),
        head_dim_(p.q.shape[3]),
        value_dim_(p.v.shape[3]) {}

  void run() {
    if (is("empty-keys-unwritten") && keys_ == 0) return;
    const auto size = [](std::int64_t n) { return static_cast<std::size_t>(n); };
    w_.x.resize(size(keys_));
    w_.part.resize(size(std::max<std::int64_t>(2, make_.splits) * value_dim_));
    w_.tile.resize(size(value_dim_));
    w_.out.assign(size(value_dim_), Real{0});
    for (std::int64_t b = 0; b < batches_; ++b) {
      for (std::int64_t h = 0; h < heads_; ++h) {
        if (is("third-head-unwritten") && heads_ == 3 && h == 2) continue;
        load(p_.q, b, h, w_.q);
        const std::int64_t source = is("third-batch-reads-second") && b == 2 ? 1 : b;
        load(p_.k, source, kv_head(h), w_.k);
        load(p_.v, source, kv_head(h), w_.v);
        factors(&attest_problem::q, b, h).multiply(w_.q);
        factors(&attest_problem::k, source, h).multiply(w_.k);
        factors(&attest_problem::v, source, h).multiply(w_.v);
        w_.weights.assign(size(keys_), Real{0});
        run_head(b, h);
      }
    }
  }

 private:
  /// Whether this is the mistake.
  [[nodiscard]] bool is(Slip slip) const { return slip_ == slip; }

  [[nodiscard]] std::int64_t kv_head(std::int64_t h) const {
    return is("interleaved-groups") ? h % kv_heads_ : h / (heads_ / kv_heads_);
  }

  /// Copies one head of q, k or v into row-major order.
  void load(const attest_tensor& t, std::int64_t b, std::int64_t h, std::vector<Real>& to) const {
    const std::int64_t rows = t.shape[2], columns = t.shape[3];
    const bool of_keys = &t == &p_.k;
    to.resize(static_cast<std::size_t>(rows * columns));
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t c = 0; c < columns; ++c) {
        std::int64_t row = i, column = c;
        if (is("keys-transposed-when-square") && of_keys && rows == columns) std::swap(row, column);
        if (is("value-width-of-keys") && &t == &p_.v && c >= head_dim_) column = c % head_dim_;
        if (is("last-query-of-a-residue") && &t == &p_.q && rows > 8 && rows % 8 == 1 && i == rows - 1) --row;
        if (is("index-wraps") && &t != &p_.q && i * columns + c >= wrap) {
          row = (i * columns + c) % wrap / columns;
          column = (i * columns + c) % wrap % columns;
        }
        to[static_cast<std::size_t>(i * columns + c)] =
            static_cast<Real>(load_element(t.data, dtype_, offset_of(t, b, h, row, column)));
      }
    }
  }

  /// Those of what head h reads of q, k or v.
  [[nodiscard]] PlantedFactors<Real> factors(attest_tensor attest_problem::* tensor, std::int64_t b,
                                             std::int64_t h) const {
    const bool of_queries = tensor == &attest_problem::q;
    return {p_,
            slip_,
            {.tensor = tensor,
             .b = b,
             .h = of_queries ? h : kv_head(h),
             .query_head = h,
             .first = of_queries ? place_.first_query : place_.first_key}};
  }
  /// Of the products of row i, where they are not in what is multiplied.
  void load_factors(std::int64_t b, std::int64_t h, std::int64_t i) {
    w_.factors.clear();
    if (!has_factors_apart(p_, slip_)) return;
    const Real of_row = factors(&attest_problem::q, b, h).of_row(i);
    const PlantedFactors<Real> of_keys = factors(&attest_problem::k, b, h);
    for (std::int64_t j = 0; j < keys_; ++j) w_.factors.push_back(of_row * of_keys.of_row(j));
  }

  /// Where an element of q, k or v is read. A wrong place stays inside the tensor's memory: what lies beyond it is not
  /// the mistake that is planted.
  [[nodiscard]] std::int64_t offset_of(const attest_tensor& t, std::int64_t b, std::int64_t h, std::int64_t row,
                                       std::int64_t column) const {
    const std::int64_t right = offset_in(t, b, h, row, column);
    const std::int64_t last = offset_in(t, t.shape[0] - 1, t.shape[1] - 1, t.shape[2] - 1, t.shape[3] - 1);
    if (is("strides-ignored") && &t == &p_.k) {
      return std::min(((b * t.shape[1] + h) * t.shape[2] + row) * t.shape[3] + column, last);
    }
    if (is("value-strides-of-keys") && &t == &p_.v && head_dim_ == value_dim_) {
      return std::min(offset_in(p_.k, b, h, row, column), last);
    }
    return right;
  }
  /// Elements that an index of 11 bits reaches, as one of 32 bits reaches 2^32.
  static constexpr std::int64_t wrap = 2048;

  /// One past the last key that the causal form leaves to row i.
  [[nodiscard]] std::int64_t causal_end(std::int64_t i) const {
    std::int32_t form = p_.causal;
    if (is("top-left-for-bottom-right") && form == ATTEST_CAUSAL_BOTTOM_RIGHT) form = ATTEST_CAUSAL_TOP_LEFT;
    if (is("bottom-right-for-top-left") && form == ATTEST_CAUSAL_TOP_LEFT) form = ATTEST_CAUSAL_BOTTOM_RIGHT;
    if (is("causal-dropped-for-one-query") && queries_ == 1) form = ATTEST_CAUSAL_NONE;
    if (is("causal-dropped-with-mask") && p_.mask.data != nullptr) form = ATTEST_CAUSAL_NONE;
    if (window_drops_causal(p_, slip_) || chunks_drop_causal(p_, slip_)) form = ATTEST_CAUSAL_NONE;
    if (form == ATTEST_CAUSAL_NONE) return keys_;
    std::int64_t shift = form == ATTEST_CAUSAL_BOTTOM_RIGHT ? keys_ - queries_ : 0;
    if (is("bottom-right-one-too-many") && shift > 0) ++shift;
    std::int64_t end = std::clamp<std::int64_t>(i + shift + 1, 0, keys_);
    if (is("causal-by-blocks") && end > 4) end = std::min((end + 3) / 4 * 4, keys_);
    return end;
  }

  /// The mask's entry for key j of row i: -inf hides, else what it adds. 0 without a mask.
  [[nodiscard]] double mask_entry(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const {
    if (is("dropout-hides-keys") && drops_weights(p_, slip_) && !keeps_weight(p_, slip_, b, h, i, j)) return -infinity;
    const attest_tensor& mask = p_.mask;
    if (mask.data == nullptr || (is("window-replaces-the-mask") && has_window(p_))) return 0;
    if (is("chunk-replaces-the-mask") && has_chunks(p_)) return 0;
    std::int64_t page = b, plane = h, row = i, column = j;
    if (is("mask-of-kv-head")) plane = h / (heads_ / kv_heads_);
    if (is("mask-axes-exchanged") && mask.shape[0] == mask.shape[1]) std::swap(page, plane);
    if (is("mask-transposed-when-square") && queries_ == keys_) std::swap(row, column);
    if (is("mask-of-first-batch") || mask.shape[0] == 1) page = 0;
    if (is("mask-of-first-head") || mask.shape[1] == 1) plane = 0;
    if (is("mask-misses-last-key") && keys_ > 1 && j == keys_ - 1) return 0;
    const double entry =
        load_element(mask.data, static_cast<DType>(mask.dtype), offset_in(mask, page, plane, row, column));
    if (mask.dtype == ATTEST_BOOL) {
      if (is("bool-mask-added")) return entry;
      return (entry != 0) != is("bool-mask-inverted") ? 0.0 : -infinity;
    }
    if (is("float-mask-hides-what-is-not-zero")) return entry != 0 ? -infinity : 0.0;
    if (is("sentinel-hides") && entry <= -1e4) return -infinity;
    if (is("mask-scaled") && p_.mask_convention == ATTEST_MASK_POST_SCALE) return entry * p_.scale;
    if (is("mask-not-scaled") && p_.mask_convention == ATTEST_MASK_PRE_SCALE) return entry / p_.scale;
    // A distance's penalty, which a slip of sign makes a reward.
    if (is("bias-sign") && entry < 0 && entry > -8) return -entry;
    return entry;
  }

  /// Which keys row i sees and what the mask adds to their scores. Returns whether it sees any.
  bool load_mask(std::int64_t b, std::int64_t h, std::int64_t i) {
    w_.visible.assign(static_cast<std::size_t>(keys_), 0);
    w_.bias.assign(static_cast<std::size_t>(keys_), Real{0});
    std::int64_t end = causal_end(i), seen = 0;
    const KeyRange window = window_of(p_, slip_, h, i), chunk = chunk_of(p_, slip_, place_.miscount, i);
    if (is("first-key-not-bounded") && p_.causal != ATTEST_CAUSAL_NONE) end = std::max<std::int64_t>(end, 1);
    for (std::int64_t j = 0; j < end; ++j) {
      const double entry = mask_entry(b, h, i, j);
      const bool outside = !window.sees(j) || !chunk.sees(j) ||
                           (is("window-of-48") && j + 48 < i + std::max<std::int64_t>(keys_ - queries_, 0));
      w_.visible[static_cast<std::size_t>(j)] = entry != -infinity && !outside ? 1 : 0;
      // Alike for all keys of the row: an offset of one in the positions that a slope of 1/4 multiplies.
      const double shift = is("constant-shift") ? -0.25 : 0.0;
      w_.bias[static_cast<std::size_t>(j)] = static_cast<Real>(entry == -infinity ? 0.0 : entry + shift);
      if (entry != -infinity && !outside) seen = j + 1;
      if (entry != -infinity && !window.sees(j) && chunk.sees(j) && is("outside-the-window-is-minus-1e4"))
        w_.visible[static_cast<std::size_t>(j)] = outside_window;
    }
    if (is("padding-rounded-up") && seen > 4) {
      for (; seen % 4 != 0 && seen < std::min({end, window.end, chunk.end}); ++seen) show(seen);
    }
    return seen > 0;
  }
  void show(std::int64_t j) {
    w_.visible[static_cast<std::size_t>(j)] = 1;
    w_.bias[static_cast<std::size_t>(j)] = 0;
  }

  [[nodiscard]] PlantedSlopes<Real> slopes(std::int64_t b, std::int64_t h) const {
    return {p_, slip_, b, h, place_.miscount.slopes};
  }
  /// What slopes add to the scores of row i.
  void load_slopes(std::int64_t b, std::int64_t h, std::int64_t i) {
    const PlantedSlopes<Real> own = slopes(b, h);
    w_.slopes.clear();
    for (std::int64_t j = 0; own.any() && j < keys_; ++j) w_.slopes.push_back(own.added(i, j));
  }

  /// Which of its weights row i keeps.
  void load_kept(std::int64_t b, std::int64_t h, std::int64_t i) {
    if (!drops_weights(p_, slip_)) return;
    w_.kept.resize(static_cast<std::size_t>(keys_));
    for (std::int64_t j = 0; j < keys_; ++j)
      w_.kept[static_cast<std::size_t>(j)] = keeps_weight(p_, slip_, b, h, i, j) ? 1 : 0;
  }

  void run_head(std::int64_t b, std::int64_t h) {
    bool spoilt = false;
    for (std::int64_t i = 0; i < queries_; ++i) {
      Real lse = 0;
      if (load_mask(b, h, i)) {
        answer_row(b, h, i, lse);
      } else if (const double sink = sink_of(p_, slip_, h); sink != -infinity) {
        const bool divides = is("sink-of-an-empty-row-nan");
        std::ranges::fill(w_.out, divides ? std::numeric_limits<Real>::quiet_NaN() : Real{0});
        lse = static_cast<Real>(sink);
      } else {
        answer_without_keys();
        spoilt = true;
        lse = -std::numeric_limits<Real>::infinity();
      }
      write(b, h, i, lse);
    }
    if (!is("masked-row-spoils-head") || !spoilt) return;
    std::ranges::fill(w_.out, std::numeric_limits<Real>::quiet_NaN());
    for (std::int64_t i = 0; i < queries_; ++i)
      if (load_mask(b, h, i)) write(b, h, i, 0);
  }

  [[nodiscard]] PlantedRow<Real> row_at(std::int64_t b, std::int64_t h, std::int64_t i, Real& lse) {
    const bool has_bias = p_.mask.data != nullptr && (p_.mask.dtype != ATTEST_BOOL || is("bool-mask-added"));
    return {make_,
            slip_,
            dtype_,
            {batches_, heads_, queries_, b, h, i},
            call_,
            keys_,
            head_dim_,
            value_dim_,
            w_.q.data() + i * head_dim_,
            w_.k.data(),
            w_.v.data(),
            w_.visible.data(),
            has_bias ? w_.bias.data() : nullptr,
            static_cast<Real>(sink_of(p_, slip_, h)) + slopes(b, h).added_to_sink(i),
            static_cast<Real>(softcap_of(p_, slip_)),
            w_.factors.empty() ? nullptr : w_.factors.data(),
            w_.slopes.empty() ? nullptr : w_.slopes.data(),
            drops_weights(p_, slip_) ? w_.kept.data() : nullptr,
            gain_of_dropout<Real>(p_, slip_),
            static_cast<Real>(scale()),
            p_.mask_convention == ATTEST_MASK_PRE_SCALE,
            w_.x.data(),
            w_.weights.data(),
            w_.part.data(),
            w_.tile.data(),
            w_.out.data(),
            &lse};
  }

  [[nodiscard]] double scale() const {
    const double root = 1 / std::sqrt(static_cast<double>(head_dim_));
    if (is("scale-ignored")) return root;
    // Where the definition's scale is asked for, of the wrong width.
    if (is("scale-of-all-heads") && std::fabs(p_.scale - root) < 1e-6)
      return 1 / std::sqrt(static_cast<double>(head_dim_ * heads_));
    return is("bf16-scale") ? round_to(DType::bf16, p_.scale) : p_.scale;
  }

  void answer_row(std::int64_t b, std::int64_t h, std::int64_t i, Real& lse) {
    if (is("uniform-weights") || is("mean-of-values")) return mean(is("uniform-weights"));
    if (is("all-zeros")) {
      std::ranges::fill(w_.out, Real{0});
      return;
    }
    load_factors(b, h, i);
    load_slopes(b, h, i);
    load_kept(b, h, i);
    attend(row_at(b, h, i, lse));
    lse += slopes(b, h).added_to_lse(i);
    // The sum is divided by the factor of v, which the output is to have.
    if (is("descale-of-v-in-lse")) lse -= std::log(factors(&attest_problem::v, b, h).of_row(0));
    if (is("phantom-key") && keys_ % 4 == 3) scale_out(1 / (1 + std::exp(-double{lse})), lse);
    if (is("page-past-the-end") && keys_ % 8 == 7) add_next_key(b, h, i, lse);
    if (is("last-key-of-a-residue") && keys_ > 8 && keys_ % 8 == 1) leave_out(keys_ - 1, keys_, b, h, i, lse);
    if (is("last-key-of-long-rows") && keys_ > 512) leave_out(keys_ - 1, keys_, b, h, i, lse);
    if (is("partial-tile-of-long-rows") && keys_ > 512) leave_out(keys_ / 128 * 128, keys_, b, h, i, lse);
    if (is("second-tile-skipped")) leave_out(256, 512, b, h, i, lse);
    if (is("long-rows-half-again") && keys_ > 600) {
      for (Real& x : w_.out) x *= Real{1.5F};
    }
    if (is("future-key-leaks")) leak_future(b, h, i);
  }

  /// Equal weights, of the keys that are seen or of all.
  void mean(bool of_visible) {
    std::ranges::fill(w_.out, Real{0});
    Real count = 0;
    for (std::int64_t j = 0; j < keys_; ++j) {
      if (of_visible && w_.visible[static_cast<std::size_t>(j)] == 0) continue;
      count += 1;
      for (std::int64_t c = 0; c < value_dim_; ++c) out(c) += value(j, c);
    }
    for (std::int64_t c = 0; c < value_dim_; ++c) out(c) /= count;
  }

  Real& out(std::int64_t c) { return w_.out[static_cast<std::size_t>(c)]; }
  [[nodiscard]] Real value(std::int64_t j, std::int64_t c) const {
    return w_.v[static_cast<std::size_t>(j * value_dim_ + c)];
  }

  /// A key of score 0 and value 0 takes its share.
  void scale_out(double by, Real& lse) {
    for (Real& x : w_.out) x = static_cast<Real>(double{x} * by);
    lse = std::max(lse, Real{0}) + std::log1p(std::exp(-std::abs(lse)));
  }

  /// The row behind the last one, which is the next head's first key where there is one, counts with a tiny weight.
  void add_next_key(std::int64_t b, std::int64_t h, std::int64_t i, Real lse) {
    if (kv_head(h) + 1 >= kv_heads_ || i != queries_ - 1) return;
    double s = 0;
    for (std::int64_t c = 0; c < head_dim_; ++c)
      s += double{w_.q[static_cast<std::size_t>(i * head_dim_ + c)]} *
           load_element(p_.k.data, dtype_, offset_in(p_.k, b, kv_head(h) + 1, 0, c));
    const double weight = std::min(std::exp(capped(s * p_.scale, softcap_of(p_, slip_)) - double{lse}), 0.01);
    for (std::int64_t c = 0; c < value_dim_; ++c) {
      const double next = load_element(p_.v.data, dtype_, offset_in(p_.v, b, kv_head(h) + 1, 0, c));
      out(c) = static_cast<Real>((double{out(c)} + weight * next) / (1 + weight));
    }
  }

  /// Once more without keys [first, last), unless there is no other.
  void leave_out(std::int64_t first, std::int64_t last, std::int64_t b, std::int64_t h, std::int64_t i, Real& lse) {
    for (std::int64_t j = first; j < std::min(last, keys_); ++j) w_.visible[static_cast<std::size_t>(j)] = 0;
    if (std::ranges::find(w_.visible, std::uint8_t{1}) != w_.visible.end()) attend(row_at(b, h, i, lse));
  }

  /// A thousandth of the value just behind the causal diagonal.
  void leak_future(std::int64_t b, std::int64_t h, std::int64_t i) {
    const std::int64_t next = causal_end(i);
    if (p_.causal == ATTEST_CAUSAL_NONE || next >= keys_ || mask_entry(b, h, i, next) == -infinity) return;
    for (std::int64_t c = 0; c < value_dim_; ++c) out(c) += (value(next, c) - out(c)) / 1024;
  }

  /// The declared policy is zeros with lse -inf.
  void answer_without_keys() {
    if (is("masked-row-is-stale")) return;
    if (is("masked-row-is-mean") && keys_ > 0) return mean(false);
    const bool nan = is("masked-row-is-nan");
    std::ranges::fill(w_.out, nan ? std::numeric_limits<Real>::quiet_NaN() : Real{0});
  }

  void write(std::int64_t b, std::int64_t h, std::int64_t i, Real lse) {
    for (std::int64_t c = 0; c < value_dim_; ++c) {
      store_element(result_.out.data, static_cast<DType>(result_.out.dtype), offset_in(result_.out, b, h, i, c),
                    double{out(c)});
    }
    if (result_.lse.data == nullptr || (is("lse-unwritten") && i > 0 && i == queries_ - 1)) return;
    store_element(result_.lse.data, DType::f64, offset_in(result_.lse, b, h, i), double{lse});
  }

  const Make& make_;
  Slip slip_;
  const attest_problem& p_;
  attest_result& result_;
  std::int64_t call_;
  SequencePlace place_;
  DType dtype_;
  std::int64_t batches_, heads_, queries_, kv_heads_, keys_, head_dim_, value_dim_;
  inline static thread_local Workspace<Real> w_;
};

/// What is one problem by itself, of no sequences and no cache.
int run_plain(const Make& make, Slip slip, const attest_problem& problem, attest_result& result, std::int64_t call,
              const SequencePlace& place, std::string& message) {
  const auto dtype = static_cast<DType>(problem.q.dtype);
  if (make.query_tile > 0) {
    if (dtype != DType::f32 && dtype != DType::f16 && dtype != DType::bf16) {
      message = "runs in f32, f16 and bf16";
      return ATTEST_UNSUPPORTED;
    }
    PlantedTiles(make, slip, problem, result, place).run();
    return ATTEST_OK;
  }
  switch (dtype) {
    case DType::f64:
      PlantedProblem<double>(make, slip, problem, result, call, place).run();
      return ATTEST_OK;
    case DType::f32:
    case DType::f16:
    case DType::bf16:
      PlantedProblem<float>(make, slip, problem, result, call, place).run();
      return ATTEST_OK;
    default:
      message = "runs in f64, f32, f16 and bf16";
      return ATTEST_UNSUPPORTED;
  }
}

}  // namespace

int run_planted(const Make& make, Slip slip, const attest_problem& given, attest_result& result, std::int64_t call,
                std::string& message) {
  const DrawnKeep drawn = with_own_mask(given, slip);
  const PlantedCache cache(drawn.problem, slip, std::max<std::int64_t>(make.block, 1));
  const attest_problem& problem = cache.problem();
  if (!has_sequences(problem)) return run_plain(make, slip, problem, result, call, SequencePlace(), message);
  int status = ATTEST_OK;
  for_each_sequence(problem, result, slip,
                    [&](const attest_problem& own, attest_result& answer, const SequencePlace& place) {
                      const int one = run_plain(make, slip, own, answer, call, place, message);
                      if (one != ATTEST_OK) status = one;
                    });
  return status;
}

}  // namespace attest
