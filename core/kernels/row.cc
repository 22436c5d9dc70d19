#include "core/kernels/row.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "core/call/drawn_keep.h"
#include "core/call/gathered_keys.h"
#include "core/call/row_factors.h"
#include "core/value/tensor.h"

namespace attest {
namespace {

/// Rows of an entry that attend to keys of it, and to no others.
struct Range {
  std::int64_t first_query, queries, first_key, keys;
};

/// Memory of one call, kept by each thread for its next one.
template <class Real>
struct Workspace {
  std::vector<Real> q, k, v, bias, scratch, out;
  std::vector<std::uint8_t> visible, kept;
  std::vector<Range> ranges;
};

/// Those of batch entry b: all of its tokens, as many as its lengths say, or those between two starts.
void find_ranges(const attest_problem& p, std::int64_t b, std::vector<Range>& ranges) {
  const auto at = [](const attest_tensor& t, std::int64_t i) {
    return std::int64_t{static_cast<const std::int32_t*>(t.data)[i * t.stride[0]]};
  };
  ranges.clear();
  if ((p.variants & ATTEST_PACKED) != 0) {
    for (std::int64_t s = 1; s < p.q_starts.shape[0]; ++s) {
      const std::int64_t query = at(p.q_starts, s - 1), key = at(p.kv_starts, s - 1);
      ranges.push_back({query, at(p.q_starts, s) - query, key, at(p.kv_starts, s) - key});
    }
    return;
  }
  Range range{0, p.q.shape[2], 0, p.k.shape[2]};
  if ((p.variants & ATTEST_LENGTHS) != 0) {
    if (p.q_lengths.data != nullptr) range.queries = at(p.q_lengths, b);
    if (p.kv_lengths.data != nullptr) range.keys = at(p.kv_lengths, b);
  }
  if ((p.variants & ATTEST_LEFT_PAD) != 0) {
    range.first_key = at(p.left_pad, b);
    range.keys -= range.first_key;
  }
  ranges.push_back(range);
}

/// Copies one head of a tensor [batch, heads, rows, columns] into row-major order, each row times its factor.
template <class Real>
void load_head(const attest_problem& p, attest_tensor attest_problem::* tensor, std::int64_t b, std::int64_t h,
               std::vector<Real>& to) {
  const attest_tensor& t = p.*tensor;
  const RowFactors factors = row_factors(p, tensor);
  to.resize(static_cast<std::size_t>(t.shape[2] * t.shape[3]));
  const auto dtype = static_cast<DType>(t.dtype);
  Real* row = to.data();
  for (std::int64_t i = 0; i < t.shape[2]; ++i, row += t.shape[3]) {
    if (t.stride[3] == 1) {
      load_range(t.data, dtype, offset_in(t, b, h, i, 0), t.shape[3], row);
    } else {
      for (std::int64_t c = 0; c < t.shape[3]; ++c)
        row[c] = static_cast<Real>(load_element(t.data, dtype, offset_in(t, b, h, i, c)));
    }
    if (!factors.present()) continue;
    const Real factor = static_cast<const float*>(factors.factors.data)[factors.at(b, h, i)];
    for (std::int64_t c = 0; c < t.shape[3]; ++c) row[c] *= factor;
  }
}

/// Does the position of row i count from the last key?
bool aligned_bottom_right(const attest_problem& p) {
  return (p.causal != ATTEST_CAUSAL_NONE ? p.causal : p.alignment) == ATTEST_CAUSAL_BOTTOM_RIGHT;
}

/// Which keys of its range its row i may see and what the mask adds to their scores. Returns whether it sees any.
template <class Real>
bool load_mask(const attest_problem& p, std::int64_t b, std::int64_t h, const Range& range, std::int64_t i,
               Workspace<Real>& w) {
  const attest_tensor& mask = p.mask;
  const std::int64_t queries = range.queries;
  const std::int64_t keys = range.keys;
  std::int64_t begin = 0, end = keys;  // of the keys that the causal form, the window and the chunk leave
  if (p.causal == ATTEST_CAUSAL_TOP_LEFT) end = std::min(keys, i + 1);
  if (p.causal == ATTEST_CAUSAL_BOTTOM_RIGHT) end = std::clamp<std::int64_t>(i + keys - queries + 1, 0, keys);
  const std::int64_t position = aligned_bottom_right(p) ? i + keys - queries : i;
  if ((p.variants & ATTEST_CHUNK) != 0) {
    const std::int64_t chunk = position < 0 ? -1 : position / p.attention_chunk;
    begin = std::max<std::int64_t>(chunk * p.attention_chunk, 0);
    end = std::min(end, (chunk + 1) * p.attention_chunk);
  }
  if ((p.variants & ATTEST_WINDOW) != 0) {
    if (p.window_left >= 0) begin = std::max(begin, position - p.window_left);
    if (p.window_right >= 0) end = std::min(end, position + p.window_right + 1);
  }
  w.visible.assign(static_cast<std::size_t>(keys), 0);
  w.bias.assign(static_cast<std::size_t>(keys), Real{0});
  bool any = false;
  for (std::int64_t j = begin; j < end; ++j) {
    const auto at = static_cast<std::size_t>(j);
    bool sees = true;
    if (mask.data != nullptr) {
      const std::int64_t offset = offset_in(mask, mask.shape[0] == 1 ? 0 : b, mask.shape[1] == 1 ? 0 : h,
                                            range.first_query + i, range.first_key + j);
      const double entry = load_element(mask.data, static_cast<DType>(mask.dtype), offset);
      if (mask.dtype == ATTEST_BOOL) {
        sees = entry != 0;
      } else {
        sees = entry != -std::numeric_limits<double>::infinity();
        w.bias[at] = static_cast<Real>(entry);
      }
    }
    w.visible[at] = sees ? 1 : 0;
    any = any || sees;
  }
  return any;
}

/// Which of its keys a row keeps.
template <class Real>
void load_kept(const attest_problem& p, std::int64_t b, std::int64_t h, const Range& range, std::int64_t i,
               Workspace<Real>& w) {
  const attest_tensor& keep = p.keep;
  w.kept.resize(static_cast<std::size_t>(range.keys));
  for (std::int64_t j = 0; j < range.keys; ++j) {
    const std::int64_t row = range.first_query + i, key = range.first_key + j;
    w.kept[static_cast<std::size_t>(j)] = static_cast<const std::uint8_t*>(
        keep.data)[offset_in(keep, keep.shape[0] == 1 ? 0 : b, keep.shape[1] == 1 ? 0 : h, row, key)];
  }
}

/// Row i of the output, and its log-sum-exp where one is wanted.
template <class Real>
void store_row(attest_result& result, std::int64_t b, std::int64_t h, std::int64_t i, const std::vector<Real>& out,
               Real lse) {
  const auto dtype = static_cast<DType>(result.out.dtype);
  if (result.out.stride[3] == 1) {
    store_range(result.out.data, dtype, offset_in(result.out, b, h, i, 0), result.out.shape[3], out.data());
  } else {
    for (std::int64_t c = 0; c < result.out.shape[3]; ++c)
      store_element(result.out.data, dtype, offset_in(result.out, b, h, i, c),
                    static_cast<double>(out[static_cast<std::size_t>(c)]));
  }
  if (result.lse.data != nullptr)
    store_element(result.lse.data, DType::f64, offset_in(result.lse, b, h, i), static_cast<double>(lse));
}

}  // namespace

namespace {

/// What a walk over the rows of a problem comes to.
template <class Format>
struct RowVisitor {
  using Real = typename Format::Real;
  std::function<void(const ProblemRow&, const Row<Format>&)> seen;  ///< a row that sees a key
  /// One that sees none, and its sink, which in the row's form may be another one.
  std::function<void(const ProblemRow&, const Row<Format>&, Real sink)> empty;
  std::function<void(const ProblemRow&)> padding;                    ///< one of no sequence
  std::function<void(const ProblemRow& first, const Range&)> end{};  ///< behind the rows of a head of a sequence
};

template <class Format>
void walk_rows(const attest_problem& given, const RowForm& form, const RowVisitor<Format>& visitor) {
  const GatheredKeys gathered(given);
  const DrawnKeep drawn(gathered.problem);
  const attest_problem& p = drawn.problem;
  using Real = typename Format::Real;
  constexpr Real minus_infinity = -std::numeric_limits<Real>::infinity();
  thread_local Workspace<Real> w;
  const std::int64_t heads_per_kv = p.q.shape[1] / p.k.shape[1];
  const std::int64_t keys = p.k.shape[2];
  const Real softcap = (p.variants & ATTEST_SOFTCAP) == 0 ? Real{0} : static_cast<Real>(p.softcap);
  const bool drops = (p.variants & ATTEST_DROPOUT) != 0;
  const Real gain = drops ? Real{1} / (Real{1} - static_cast<Real>(p.dropout_p)) : Real{1};
  const std::int64_t head_dim = p.q.shape[3];
  const std::int64_t value_dim = p.v.shape[3];
  const bool has_bias = p.mask.data != nullptr && p.mask.dtype != ATTEST_BOOL;
  const bool slopes = (p.variants & ATTEST_ALIBI) != 0, causal = p.causal != ATTEST_CAUSAL_NONE;
  const SlopeForm slope_form = causal ? form.slopes : SlopeForm::distance;
  w.scratch.resize(static_cast<std::size_t>(keys));
  for (std::int64_t b = 0; b < p.q.shape[0]; ++b) {
    for (std::int64_t h = 0; h < p.q.shape[1]; ++h) {
      load_head(p, &attest_problem::q, b, h, w.q);
      if (h % heads_per_kv == 0) {
        load_head(p, &attest_problem::k, b, h / heads_per_kv, w.k);
        load_head(p, &attest_problem::v, b, h / heads_per_kv, w.v);
      }
      const Real sink =
          (p.variants & ATTEST_SINK) == 0
              ? minus_infinity
              : static_cast<Real>(load_element(p.sink.data, static_cast<DType>(p.sink.dtype), h * p.sink.stride[0]));
      const Real slope =
          slopes ? static_cast<Real>(static_cast<const float*>(
                       p.alibi_slopes.data)[offset_in(p.alibi_slopes, p.alibi_slopes.shape[0] == 1 ? 0 : b, h)])
                 : Real{0};
      find_ranges(p, b, w.ranges);
      std::int64_t next = 0;
      const auto pad_up_to = [&](std::int64_t row) {
        for (; next < row; ++next) visitor.padding({b, h, next});
      };
      for (const Range& range : w.ranges) {
        pad_up_to(range.first_query);
        for (std::int64_t i = 0; i < range.queries; ++i, ++next) {
          const bool sees = load_mask(p, b, h, range, i, w);
          const std::int64_t position = aligned_bottom_right(p) ? i + range.keys - range.queries : i;
          if (drops) load_kept(p, b, h, range, i, w);
          const ProblemRow place{b, h, next};
          Row<Format> row{range.keys,
                          head_dim,
                          value_dim,
                          w.q.data() + next * head_dim,
                          w.k.data() + range.first_key * head_dim,
                          w.v.data() + range.first_key * value_dim,
                          w.visible.data(),
                          has_bias ? w.bias.data() : nullptr,
                          sink,
                          softcap,
                          drops ? w.kept.data() : nullptr,
                          gain,
                          slope,
                          slope_form,
                          position,
                          static_cast<Real>(p.scale),
                          p.mask_convention == ATTEST_MASK_PRE_SCALE,
                          w.scratch.data(),
                          nullptr,
                          nullptr};
          if (row.shift() != 0) row.sink += row.shift();
          if (sees)
            visitor.seen(place, row);
          else
            visitor.empty(place, row, sink);
        }
        if (visitor.end && range.queries > 0) visitor.end({b, h, range.first_query}, range);
      }
      pad_up_to(p.q.shape[2]);
    }
  }
}

}  // namespace

template <class Format>
void for_each_row(const attest_problem& problem, attest_result& result, const RowForm& form,
                  void (*kernel)(const Row<Format>&)) {
  using Real = typename Format::Real;
  constexpr Real minus_infinity = -std::numeric_limits<Real>::infinity();
  thread_local std::vector<Real> out;
  out.resize(static_cast<std::size_t>(problem.v.shape[3]));
  const auto answer = [&](const ProblemRow& at, Real value, Real lse) {
    std::fill(out.begin(), out.end(), value);
    store_row(result, at.b, at.h, at.i, out, lse);
  };
  walk_rows<Format>(problem, form,
                    {.seen =
                         [&](const ProblemRow& at, Row<Format> row) {
                           Real lse = 0;
                           row.out = out.data(), row.lse = &lse;
                           kernel(row);
                           store_row(result, at.b, at.h, at.i, out, form.lse_of_columns ? lse : lse - row.shift());
                         },
                     .empty =
                         [&](const ProblemRow& at, const Row<Format>& row, Real sink) {
                           if (sink != minus_infinity)
                             return answer(at, Real{0}, form.lse_of_columns ? row.sink : sink);
                           const Real nan = std::numeric_limits<Real>::quiet_NaN();
                           form.no_key == NoKey::nan ? answer(at, nan, nan) : answer(at, Real{0}, minus_infinity);
                         },
                     .padding = [&](const ProblemRow& at) { answer(at, Real{0}, Real{0}); }});
}

template <class Format>
void for_each_head(const attest_problem& problem, const RowForm& form,
                   const std::function<void(const HeadRows<Format>&)>& visit) {
  using Real = typename Format::Real;
  HeadRows<Format> head{};
  std::vector<std::uint8_t> visible, kept;
  std::vector<Real> bias;
  const auto keep = [&](const Row<Format>& row) {
    head.rows.push_back(row);
    visible.insert(visible.end(), row.visible, row.visible + row.keys);
    if (row.bias != nullptr) bias.insert(bias.end(), row.bias, row.bias + row.keys);
    if (row.kept != nullptr) kept.insert(kept.end(), row.kept, row.kept + row.keys);
  };
  const auto finish = [&](const ProblemRow& first, const Range& range) {
    head.b = first.b, head.h = first.h, head.first_query = first.i, head.first_key = range.first_key;
    std::int64_t before = 0;
    for (Row<Format>& row : head.rows) {
      row.visible = visible.data() + before;
      if (row.bias != nullptr) row.bias = bias.data() + before;
      if (row.kept != nullptr) row.kept = kept.data() + before;
      before += row.keys;
    }
    visit(head);
    head.rows.clear(), visible.clear(), kept.clear(), bias.clear();
  };
  walk_rows<Format>(problem, form,
                    {.seen = [&](const ProblemRow&, const Row<Format>& row) { keep(row); },
                     .empty = [&](const ProblemRow&, const Row<Format>& row, Real) { keep(row); },
                     .padding = [](const ProblemRow&) {},
                     .end = finish});
}

template void for_each_row(const attest_problem&, attest_result&, const RowForm&, void (*)(const Row<F64>&));
template void for_each_row(const attest_problem&, attest_result&, const RowForm&, void (*)(const Row<F32>&));
template void for_each_row(const attest_problem&, attest_result&, const RowForm&, void (*)(const Row<F16>&));
template void for_each_row(const attest_problem&, attest_result&, const RowForm&, void (*)(const Row<BF16>&));

template void for_each_head(const attest_problem&, const RowForm&, const std::function<void(const HeadRows<F64>&)>&);
template void for_each_head(const attest_problem&, const RowForm&, const std::function<void(const HeadRows<F32>&)>&);
template void for_each_head(const attest_problem&, const RowForm&, const std::function<void(const HeadRows<F16>&)>&);
template void for_each_head(const attest_problem&, const RowForm&, const std::function<void(const HeadRows<BF16>&)>&);

}  // namespace attest
