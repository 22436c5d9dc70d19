#include "core/problem/selection.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <set>
#include <span>

#include "core/problem/descale.h"
#include "core/problem/fields.h"
#include "core/problem/kv_cache.h"
#include "core/problem/sight.h"

namespace attest {
namespace {

/// Elements of `t` at the product of its axes' indices.
Tensor gathered(const Tensor& t, std::span<const Indices* const> chosen) {
  // Leading axes of a lower rank count as 1.
  static const Indices one{0};
  std::array<const Indices*, 4> indices{&one, &one, &one, &one};
  std::array<std::int64_t, 4> extent{1, 1, 1, 1}, kept{};
  const std::size_t missing = 4 - chosen.size();
  for (std::size_t axis = 0; axis < chosen.size(); ++axis) {
    indices[missing + axis] = chosen[axis];
    extent[missing + axis] = t.shape()[static_cast<int>(axis)];
    kept[axis] = static_cast<std::int64_t>(chosen[axis]->size());
  }
  Tensor result(t.dtype(), Shape(std::span<const std::int64_t>(kept).first(chosen.size())));
  const std::size_t size = size_of(t.dtype());
  const std::byte* from = t.bytes().data();
  std::byte* to = result.bytes().data();
  for (const std::int64_t a : *indices[0]) {
    for (const std::int64_t b : *indices[1]) {
      for (const std::int64_t c : *indices[2]) {
        const std::int64_t row = ((a * extent[1] + b) * extent[2] + c) * extent[3];
        for (const std::int64_t d : *indices[3]) {
          std::memcpy(to, from + static_cast<std::size_t>(row + d) * size, size);
          to += size;
        }
      }
    }
  }
  return result;
}

std::int64_t count(const Indices& indices) {
  return static_cast<std::int64_t>(indices.size());
}

/// Columns h·width + c of the chosen heads and columns.
Indices blocks(const Indices& heads, const Indices& columns, std::int64_t width) {
  Indices joined;
  joined.reserve(heads.size() * columns.size());
  for (const std::int64_t h : heads) {
    for (const std::int64_t c : columns) joined.push_back(h * width + c);
  }
  return joined;
}

/// Of a table of pages, where so many keys are left: pages stay as long as they are, and the keys at an end are those
/// that go. 0: they are no whole pages.
std::int64_t columns_left(const Problem& c, std::int64_t keys) {
  const std::int64_t page = page_size_of(c);
  return keys % page == 0 ? std::min(keys / page, c[Slot::page_table].shape()[1]) : 0;
}

/// Of factors, where these rows, or keys, are left: those of the rows where each has its own; all of blocks, of which
/// no row is gone.
Indices blocks_left(const Problem& c, Axis axis, bool own, const Indices& rows) {
  if (!own) return all_of(axis_extents(c)[static_cast<std::size_t>(axis)]);
  return rows.empty() ? Indices{0} : rows;
}

/// No two entries of a batch have a row of a cache together: one that repeats another gets the row behind all.
void settle_rows(Problem& c) {
  Tensor& index = c[Slot::cache_index];
  std::set<double> taken;
  double most = 0;
  for (std::int64_t b = 0; b < index.elements(); ++b) most = std::max(most, index[b]);
  for (std::int64_t b = 0; b < index.elements(); ++b)
    if (!taken.insert(index[b]).second) taken.insert(most += 1), index.set(b, most);
}

/// The indices of every axis.
class ByAxis {
 public:
  ByAxis(const Problem& c, const Selection& s) : selection_(s) {
    if (c[Slot::page_table].present()) columns_ = all_of(columns_left(c, count(s.keys)));
    if (c[Slot::q_starts].present()) starts_ = all_of(c[Slot::q_starts].elements());
    q_blocks_ = blocks_left(c, Axis::q_blocks, c.q_descale_block == 1, s.queries);
    kv_blocks_ = blocks_left(c, Axis::kv_blocks, c.kv_descale_block == 1, s.keys);
    if (c.operation == Operation::attention) return;
    const Extents e = extents_of(c);
    key_columns_ = blocks(s.heads, s.dk, e.dk);
    value_columns_ = blocks(s.heads, s.dv, e.dv);
    has_projection_ = c[Slot::w_o].present();
  }

  [[nodiscard]] const Indices& operator[](Axis axis) const {
    switch (axis) {
      case Axis::batch:
        return selection_.batch;
      case Axis::heads:
        return selection_.heads;
      case Axis::kv_heads:
        return selection_.kv_heads;
      case Axis::queries:
        return selection_.queries;
      case Axis::keys:
        return selection_.keys;
      case Axis::dk:
        return selection_.dk;
      case Axis::dv:
        return selection_.dv;
      case Axis::c_q:
        return selection_.c_q;
      case Axis::c_k:
        return selection_.c_k;
      case Axis::c_v:
        return selection_.c_v;
      case Axis::key_columns:
        return key_columns_;
      case Axis::value_columns:
        return value_columns_;
      case Axis::starts:
        return starts_;
      case Axis::columns:
        return columns_;
      case Axis::q_blocks:
        return q_blocks_;
      case Axis::kv_blocks:
        return kv_blocks_;
      case Axis::appended:
      case Axis::d_o:
        break;
    }
    return has_projection_ ? selection_.d_o : value_columns_;
  }

 private:
  const Selection& selection_;
  Indices key_columns_, value_columns_, starts_, columns_, q_blocks_, kv_blocks_;
  bool has_projection_ = false;
};

/// Lengths and starts of what is left of an axis: the indices below each are counted. Of ascending ones the tokens stay
/// in their sequences.
void count_again(Tensor& tensor, const Indices& chosen) {
  for (std::int64_t e = 0; e < tensor.elements(); ++e)
    tensor.set(e, static_cast<double>(std::ranges::count_if(
                      chosen, [&](std::int64_t index) { return static_cast<double>(index) < tensor[e]; })));
}

}  // namespace

Extents extents_of(const Problem& c) {
  const AxisExtents all = axis_extents(c);
  const auto of = [&](Axis axis) { return all[static_cast<std::size_t>(axis)]; };
  return {.batch = of(Axis::batch),
          .heads = of(Axis::heads),
          .kv_heads = of(Axis::kv_heads),
          .queries = of(Axis::queries),
          .keys = of(Axis::keys),
          .dk = of(Axis::dk),
          .dv = of(Axis::dv),
          .c_q = of(Axis::c_q),
          .c_k = of(Axis::c_k),
          .c_v = of(Axis::c_v),
          .d_o = of(Axis::d_o)};
}

Indices all_of(std::int64_t extent) {
  Indices indices(static_cast<std::size_t>(extent));
  std::iota(indices.begin(), indices.end(), std::int64_t{0});
  return indices;
}

Indices cycled(std::int64_t extent, std::int64_t wanted) {
  if (extent == 0) return {};
  Indices indices(static_cast<std::size_t>(wanted));
  for (std::int64_t i = 0; i < wanted; ++i) indices[static_cast<std::size_t>(i)] = i % extent;
  return indices;
}

Selection everything(const Problem& c) {
  const Extents e = extents_of(c);
  return {.batch = all_of(e.batch),
          .heads = all_of(e.heads),
          .kv_heads = all_of(e.kv_heads),
          .queries = all_of(e.queries),
          .keys = all_of(e.keys),
          .dk = all_of(e.dk),
          .dv = all_of(e.dv),
          .c_q = all_of(e.c_q),
          .c_k = all_of(e.c_k),
          .c_v = all_of(e.c_v),
          .d_o = all_of(e.d_o)};
}

void keep_widths(const Problem& c, Selection& s) {
  if (c.operation != Operation::multihead) return;
  const Extents e = extents_of(c);
  const std::int64_t before = e.heads * e.dk, after = count(s.heads) * count(s.dk);
  const auto tie = [&](std::int64_t extent, Indices& indices) {
    if (extent == before) indices = cycled(extent, after);
  };
  tie(e.c_q, s.c_q);
  tie(e.c_k, s.c_k);
  tie(e.c_v, s.c_v);
  tie(e.d_o, s.d_o);
}

namespace {

/// With a factor for each row, or key, where not all of an axis with blocks are left.
Case with_own_factors(const Case& c, const Selection& s) {
  Case spread = c;
  spread_factors(spread, s.queries != all_of(queries_of(c)), s.keys != all_of(keys_of(c)));
  return spread;
}

}  // namespace

Case select(const Case& given, const Selection& s) {
  const bool blocks = has_blocks(given, Slot::q) || has_blocks(given, Slot::k) || has_blocks(given, Slot::v);
  const Case spread = blocks ? with_own_factors(given, s) : Case();
  const Case& c = blocks ? spread : given;
  Case result;
  result.operation = c.operation;
  for_each_scalar(c.operation, [&](const auto& field) { result.*field.member = c.*field.member; });
  result.provenance = c.provenance;
  const std::int64_t dk = extents_of(c).dk;
  if (is_inverse_root(c.scale, dk) && count(s.dk) != dk) result.scale = inverse_root(count(s.dk));
  if (c.operation == Operation::multihead) result.heads = static_cast<std::int32_t>(count(s.heads));
  const ByAxis indices(c, s);
  const Indices one{0};
  for (const TensorField& field : tensor_fields) {
    const Tensor& tensor = c[field.slot];
    if (!tensor.present()) continue;
    const Axes& axes = field.axes(c.operation);
    std::array<const Indices*, 4> chosen{};
    for (int i = 0; i < axes.rank; ++i) {
      const bool is_shared = i < axes.shared && tensor.shape()[i] == 1;
      chosen[static_cast<std::size_t>(i)] = is_shared ? &one : &indices[axes[i]];
    }
    result[field.slot] = gathered(tensor, std::span(chosen).first(static_cast<std::size_t>(axes.rank)));
    if (counts(field.content)) count_again(result[field.slot], indices[field.counted]);
  }
  result.pool = c.pool;
  result.append = c.append;
  const Tensor& table = result[Slot::page_table];
  if (table.present() && (table.elements() == 0 || keys_of(result) != page_size_of(c) * table.shape()[1]))
    drop_variant(result, paged_variant.name);
  settle_rows(result);
  settle_append(result);
  return result;
}

}  // namespace attest
