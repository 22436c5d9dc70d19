// Heads, batch entries and columns: others are read than those that are asked for.
#include <span>

#include "core/problem/fields.h"
#include "properties/arrangement/arrange.h"
#include "properties/diagnosis/readings/reading.h"

namespace attest {

void read_heads(Readings& r) {
  const Case& c = r.problem();
  const Extents& extents = r.extents();
  if (extents.kv_heads > 1 && extents.kv_heads < extents.heads)
    r.add("head h read key-value head h mod KV, where h / (H / KV) is right",
          with_kv_heads(c, [&](std::int64_t h) { return h % extents.kv_heads; }));
  if (extents.kv_heads > 1) {
    r.add("all heads read the first key-value head", with_kv_heads(c, [](std::int64_t) { return std::int64_t{0}; }));
    r.add("heads of keys and values were in reverse order",
          with_kv_heads(c, [&](std::int64_t h) { return extents.kv_heads - 1 - kv_head_of(c, h); }));
  }
}

void read_batch_entries(Readings& r) {
  const Case& c = r.problem();
  const Extents& extents = r.extents();
  if (extents.batch == 1) return;
  const auto add_entries = [&](std::string words, std::span<const Slot> slots, auto entry) {
    Case other = c;
    for (const Slot slot : slots) {
      const std::int64_t size = c[slot].elements() / extents.batch;
      other[slot] = gathered(c[slot], [&](std::int64_t e) { return entry(e / size) * size + e % size; });
    }
    r.add(std::move(words), std::move(other));
  };
  constexpr Slot keys_and_values[] = {Slot::k, Slot::v}, only_keys[] = {Slot::k}, only_values[] = {Slot::v},
                 queries[] = {Slot::q};
  const auto first = [](std::int64_t) { return std::int64_t{0}; };
  const auto one_before = [&](std::int64_t b) { return (b + extents.batch - 1) % extents.batch; };
  add_entries("all batch entries read the keys and values of the first", keys_and_values, first);
  add_entries("all batch entries read the keys of the first", only_keys, first);
  add_entries("all batch entries read the values of the first", only_values, first);
  add_entries("all batch entries had the queries of the first", queries, first);
  add_entries("batch entries read the keys and values of the one before", keys_and_values, one_before);
  for (std::int64_t b = 1; b < extents.batch; ++b) {
    Case other = c;
    for (const Slot slot : keys_and_values) {
      const std::int64_t size = c[slot].elements() / extents.batch;
      other[slot] = gathered(c[slot], [&](std::int64_t e) { return e / size == b ? e - size : e; });
    }
    r.add_sized("batch entry # (counted from 0) read the keys and values of the one before", b, std::move(other));
  }
}

void read_columns(Readings& r) {
  const Case& c = r.problem();
  const Extents& extents = r.extents();
  if (extents.queries > 1) {
    Case other = c;
    other[Slot::q] = gathered(c.q(), [&](std::int64_t e) {
      return e / extents.dk % extents.queries == extents.queries - 1 ? e - extents.dk : e;
    });
    r.add("the last query were the one before it", std::move(other));
  }
  const auto values = [&](std::string words, auto&& column) {
    Case other = c;
    other[Slot::v] = gathered(c.v(), [&](std::int64_t e) { return e - e % extents.dv + column(e % extents.dv); });
    r.add(std::move(words), std::move(other));
  };
  if (extents.dv > 1)
    values("the last column of v were the one before it",
           [&](std::int64_t column) { return column == extents.dv - 1 ? column - 1 : column; });
  if (extents.dv > extents.dk)
    values("columns of v from dk on were read again from the first",
           [&](std::int64_t column) { return column % extents.dk; });
  Case zero = c;
  zero[Slot::v] = mapped(c.v(), [](std::int64_t, double) { return 0.0; });
  r.add(zero_values, std::move(zero));
  for (const std::int64_t width : tile_sizes) {
    if (extents.dk <= width) continue;
    const auto cut = [&](std::int64_t columns, std::string words) {
      if (columns <= 0 || columns == extents.dk) return;
      Case other = c;
      other[Slot::q] = mapped(c.q(), [&](std::int64_t e, double old) { return e % extents.dk < columns ? old : 0.0; });
      r.add_sized(std::move(words), width, std::move(other));
    };
    cut(extents.dk - extents.dk % width, "columns of q and k behind the last whole # were not there");
    cut(width, "q and k had # columns at most");
  }
}

}  // namespace attest
