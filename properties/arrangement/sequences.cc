#include "properties/arrangement/sequences.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <utility>

#include "core/problem/descale.h"
#include "core/problem/fields.h"
#include "core/problem/sight.h"
#include "core/support/infinity.h"
#include "properties/arrangement/arrange.h"
#include "properties/arrangement/masks.h"

namespace attest {
namespace {

/// A row of an axis, and the batch entry that it is of.
using Place = std::pair<std::int64_t, std::int64_t>;

Indices range(std::int64_t first, std::int64_t count) {
  Indices all(static_cast<std::size_t>(count));
  std::iota(all.begin(), all.end(), first);
  return all;
}

/// How many numbers a row of [batch, heads, rows, columns] or [batch, heads, rows] has.
std::int64_t columns_of(const Shape& shape) {
  return shape.rank() == 4 ? shape[3] : 1;
}
/// [batch, heads, rows] and the columns of `like`.
Shape with_rows(const Shape& like, std::int64_t batch, std::int64_t rows) {
  return like.rank() == 4 ? Shape{batch, like[1], rows, like[3]} : Shape{batch, like[1], rows};
}

/// Rows of [batch, heads, rows, columns] at those places one after another, [1, heads, places, columns]; columns may
/// be missing.
Tensor rows_at(const Tensor& t, const std::vector<Place>& places) {
  const Shape& shape = t.shape();
  const std::size_t bytes = static_cast<std::size_t>(columns_of(shape)) * size_of(t.dtype());
  Tensor joined(t.dtype(), with_rows(shape, 1, std::ssize(places)));
  std::byte* to = joined.bytes().data();
  for (std::int64_t h = 0; h < shape[1]; ++h) {
    for (const auto& [entry, row] : places) {
      const std::int64_t from = (entry * shape[1] + h) * shape[2] + row;
      if (bytes > 0) std::memcpy(to, t.bytes().data() + static_cast<std::size_t>(from) * bytes, bytes);
      to += bytes;
    }
  }
  return joined;
}

/// What says something of each row and key of a case.
constexpr std::array masks{Slot::mask, Slot::keep};

/// What has a row for each query.
constexpr std::array of_queries{Slot::q, Slot::d_out, Slot::d_lse};
bool is_of_queries(Slot slot) {
  return std::ranges::find(of_queries, slot) != of_queries.end();
}

/// A mask that hides nothing and adds nothing, or drops nothing.
Tensor idle_mask(DType dtype, const Shape& shape) {
  return mapped(Tensor(dtype, shape), [&](std::int64_t, double) { return dtype == DType::boolean ? 1.0 : 0.0; });
}

/// Copies the part of a mask of one sequence to where another stands in `to`.
void copy_mask(const Tensor& from, const Sequence& s, Tensor& to, const Sequence& t) {
  const Shape &old = from.shape(), &shape = to.shape();
  for (std::int64_t h = 0; h < shape[1]; ++h)
    for (std::int64_t i = 0; i < s.queries; ++i)
      for (std::int64_t j = 0; j < s.keys; ++j)
        to.set(shape.flat(shape[0] == 1 ? 0 : t.entry, h, t.first_query + i, t.first_key + j),
               from.at(old[0] == 1 ? 0 : s.entry, h, s.first_query + i, s.first_key + j));
}

Tensor whole_numbers(const Indices& values) {
  Tensor tensor(DType::i32, {std::ssize(values)});
  for (std::size_t e = 0; e < values.size(); ++e)
    tensor.set(static_cast<std::int64_t>(e), static_cast<double>(values[e]));
  return tensor;
}

/// Which rows and keys of a case stand one after another, sequence by sequence, and where each sequence begins then.
struct Joined {
  std::vector<Place> queries, keys;
  Indices q_starts{0}, kv_starts{0};

  void add(const Sequence& s) {
    for (std::int64_t i = 0; i < s.queries; ++i) queries.emplace_back(s.entry, s.first_query + i);
    for (std::int64_t j = 0; j < s.keys; ++j) keys.emplace_back(s.entry, s.first_key + j);
    q_starts.push_back(std::ssize(queries)), kv_starts.push_back(std::ssize(keys));
  }
};

/// The case of what was joined.
Case joined_case(const Case& c, const Joined& j, const std::vector<Sequence>& of) {
  Case one = c;
  drop_sequences(one);
  for (const Slot slot : of_queries)
    if (c[slot].present()) one[slot] = rows_at(c[slot], j.queries);
  one[Slot::k] = rows_at(c.k(), j.keys);
  one[Slot::v] = rows_at(c.v(), j.keys);
  one[Slot::q_starts] = whole_numbers(j.q_starts);
  one[Slot::kv_starts] = whole_numbers(j.kv_starts);
  // What is packed is one entry of a batch.
  for (const Slot slot : {Slot::alibi_slopes, Slot::q_descale, Slot::k_descale, Slot::v_descale})
    if (c[slot].present()) one[slot] = first_row(c[slot]);
  set_block(one, true, 0), set_block(one, false, 0);
  for (const Slot slot : masks) {
    const Tensor& mask = c[slot];
    if (!mask.present()) continue;
    one[slot] = idle_mask(mask.dtype(), {1, mask.shape()[1], std::ssize(j.queries), std::ssize(j.keys)});
    for (std::int64_t s = 0; s < std::ssize(of); ++s)
      copy_mask(mask, of[static_cast<std::size_t>(s)], one[slot], sequence_of(one, s));
  }
  return one;
}

}  // namespace

Case alone(const Case& c, std::int64_t s) {
  const Sequence own = sequence_of(c, s);
  Case plain = c;
  drop_sequences(plain);
  Selection kept = everything(plain);
  kept.batch = {own.entry};
  kept.queries = range(own.first_query, own.queries);
  kept.keys = range(own.first_key, own.keys);
  return select(plain, kept);
}

Case with_sequences(const Case& c, const Indices& chosen) {
  if (!has_variant(c, packed_variant.name)) return with_batch(c, chosen);
  Joined joined;
  std::vector<Sequence> of;
  for (const std::int64_t s : chosen) {
    of.push_back(sequence_of(c, s));
    joined.add(of.back());
  }
  const auto slack = [](const Tensor& starts, std::int64_t tokens, std::vector<Place>& places) {
    for (auto i = static_cast<std::int64_t>(starts[starts.elements() - 1]); i < tokens; ++i) places.emplace_back(0, i);
  };
  slack(c[Slot::q_starts], queries_of(c), joined.queries);
  slack(c[Slot::kv_starts], keys_of(c), joined.keys);
  return joined_case(c, joined, of);
}

Case packed(const Case& c, std::int64_t slack_queries, std::int64_t slack_keys) {
  Joined joined;
  const std::vector<Sequence> of = sequences_of(c);
  for (const Sequence& s : of) joined.add(s);
  const auto last = [](std::int64_t count, std::int64_t there, std::vector<Place>& places) {
    for (std::int64_t i = std::max<std::int64_t>(there - count, 0); i < there; ++i) places.emplace_back(0, i);
  };
  last(slack_queries, queries_of(c), joined.queries);
  last(slack_keys, keys_of(c), joined.keys);
  return joined_case(c, joined, of);
}

Case padded(const Case& c) {
  const std::vector<Sequence> of = sequences_of(c);
  const auto batch = std::ssize(of);
  std::int64_t queries = 0, keys = 0;
  Indices q_lengths, kv_lengths;
  for (const Sequence& s : of) {
    queries = std::max(queries, s.queries), keys = std::max(keys, s.keys);
    q_lengths.push_back(s.queries), kv_lengths.push_back(s.keys);
  }
  Case batched = c;
  drop_sequences(batched);
  // Rows and keys stand elsewhere now.
  set_block(batched, true, 0), set_block(batched, false, 0);
  const auto spread = [&](Slot slot, std::int64_t rows) {
    const Shape& shape = c[slot].shape();
    Tensor wide(c[slot].dtype(), with_rows(shape, batch, rows));
    const std::size_t bytes = static_cast<std::size_t>(columns_of(shape)) * size_of(wide.dtype());
    for (std::int64_t s = 0; s < batch; ++s) {
      const Sequence& own = of[static_cast<std::size_t>(s)];
      const std::int64_t first = is_of_queries(slot) ? own.first_query : own.first_key,
                         count = is_of_queries(slot) ? own.queries : own.keys;
      for (std::int64_t h = 0; h < shape[1] && count > 0; ++h)
        std::memcpy(
            wide.bytes().data() + static_cast<std::size_t>((s * shape[1] + h) * rows) * bytes,
            c[slot].bytes().data() + static_cast<std::size_t>((own.entry * shape[1] + h) * shape[2] + first) * bytes,
            static_cast<std::size_t>(count) * bytes);
    }
    batched[slot] = std::move(wide);
  };
  for (const Slot slot : of_queries)
    if (c[slot].present()) spread(slot, queries);
  spread(Slot::k, keys), spread(Slot::v, keys);
  batched[Slot::q_lengths] = whole_numbers(q_lengths);
  batched[Slot::kv_lengths] = whole_numbers(kv_lengths);
  for (const Slot slot : masks) {
    const Tensor& mask = c[slot];
    if (!mask.present()) continue;
    batched[slot] = idle_mask(mask.dtype(), {batch, mask.shape()[1], queries, keys});
    for (std::int64_t s = 0; s < batch; ++s)
      copy_mask(mask, of[static_cast<std::size_t>(s)], batched[slot], sequence_of(batched, s));
  }
  return batched;
}

Case shortened(const Case& c, std::int64_t s, std::int64_t queries, std::int64_t keys) {
  if (!has_variant(c, packed_variant.name)) {
    Case shorter = c;
    const std::pair<Slot, std::int64_t> axes[] = {{Slot::q_lengths, queries}, {Slot::kv_lengths, keys}};
    for (const auto& [slot, length] : axes) {
      Indices all;
      // Keys are counted with those that are padding on the left.
      for (const Sequence& own : sequences_of(c))
        all.push_back(slot == Slot::q_lengths ? own.queries : own.first_key + own.keys);
      const std::int64_t end = slot == Slot::q_lengths ? length : sequence_of(c, s).first_key + length;
      if (all[static_cast<std::size_t>(s)] == end) continue;
      if (!shorter[slot].present()) shorter[slot] = whole_numbers(all);
      shorter[slot].set(s, static_cast<double>(end));
    }
    return shorter;
  }
  const Sequence own = sequence_of(c, s);
  Selection kept = everything(c);
  const auto drop = [](Indices& indices, std::int64_t first, std::int64_t end) {
    std::erase_if(indices, [&](std::int64_t i) { return first <= i && i < end; });
  };
  drop(kept.queries, own.first_query + queries, own.first_query + own.queries);
  drop(kept.keys, own.first_key + keys, own.first_key + own.keys);
  return select(c, kept);
}

Case with_positions_as_mask(const Case& c, bool boolean) {
  Case one = c;
  const bool there = c.mask().present();
  const DType dtype = there ? c.mask().dtype() : boolean ? DType::boolean : c.dtype();
  const std::int64_t batch = batch_of(c), heads = there ? c.mask().shape()[1] : 1;
  Tensor mask = idle_mask(dtype, {batch, heads, queries_of(c), keys_of(c)});
  const double hides = dtype == DType::boolean ? 0.0 : -infinity;
  const Shape shape = mask.shape();
  for (std::int64_t e = 0; e < mask.elements(); ++e) {
    const auto [b, h, i, j] = shape.index_of(e);
    if (there) mask.set(e, mask_entry(c.mask(), b, h, i, j));
    if (sequence_at(c, b, i) && hidden(c, b, h, i, j)) mask.set(e, hides);
  }
  one[Slot::mask] = std::move(mask);
  drop_positions(one);
  return one;
}

Tensor changed_rows(const Case& c, Slot slot, Whose whose, std::int64_t s,
                    const std::function<double(double)>& change) {
  const Shape& shape = c[slot].shape();
  std::vector<bool> changes(static_cast<std::size_t>(shape[0] * shape[2]), whose == Whose::nobody);
  for (std::int64_t other = 0; other < sequence_count(c); ++other) {
    const Sequence own = sequence_of(c, other);
    const std::int64_t first = is_of_queries(slot) ? own.first_query : own.first_key,
                       count = is_of_queries(slot) ? own.queries : own.keys;
    for (std::int64_t row = first; row < first + count; ++row)
      changes[static_cast<std::size_t>(own.entry * shape[2] + row)] = whose == Whose::others && other != s;
  }
  return mapped(c[slot], [&](std::int64_t e, double old) {
    const std::int64_t row = e / columns_of(shape), entry = row / shape[2] / shape[1];
    return changes[static_cast<std::size_t>(entry * shape[2] + row % shape[2])] ? change(old) : old;
  });
}

Case with_block_mask(const Case& c, bool boolean) {
  Case one = c;
  if (!one.mask().present()) {
    const DType dtype = boolean ? DType::boolean : c.dtype();
    one[Slot::mask] = idle_mask(dtype, {1, 1, queries_of(c), keys_of(c)});
  }
  Tensor& mask = one[Slot::mask];
  const double hides = mask.dtype() == DType::boolean ? 0.0 : -infinity;
  const Shape shape = mask.shape();
  for (std::int64_t e = 0; e < mask.elements(); ++e) {
    const auto [b, h, i, j] = shape.index_of(e);
    if (hidden(c, b, h, i, j)) mask.set(e, hides);
  }
  drop_sequences(one);
  drop_positions(one);
  return one;
}

Tensor rows_of_sequence(const Tensor& out, const Problem& c, std::int64_t s) {
  const Sequence own = sequence_of(c, s);
  std::vector<Place> places;
  places.reserve(static_cast<std::size_t>(own.queries));
  for (std::int64_t i = 0; i < own.queries; ++i) places.emplace_back(own.entry, own.first_query + i);
  return rows_at(out, places);
}

Result of_sequence(const Result& result, std::int64_t s) {
  const Sequence own = sequence_of(result.run().problem(), s);
  return result.along(4, {own.entry}).queries(range(own.first_query, own.queries));
}

}  // namespace attest
