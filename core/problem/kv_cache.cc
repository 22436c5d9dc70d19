#include "core/problem/kv_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <span>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/problem/edge.h"
#include "core/problem/fields.h"
#include "core/problem/memory.h"
#include "core/problem/sight.h"
#include "core/support/refuse.h"

namespace attest {
namespace {

/// A file of a few kilobytes can name one page a million times.
constexpr std::int64_t most_keys_elements = std::int64_t{1} << 30;

std::int64_t whole(const Tensor& tensor, std::int64_t at) {
  return static_cast<std::int64_t>(tensor[at]);
}

/// What stands in element e of slots that no key is in: ordinary numbers that give another answer where somebody reads
/// them.
constexpr std::int64_t unused_count = 7;  ///< after so many they come again
double unused_number(std::int64_t e, const Provenance::Word& unused) {
  constexpr std::array<double, unused_count> sizes{3.5, -2.75, 1.25, -6.0, 0.5, 4.5, -1.5};
  if (unused == "nan") return std::numeric_limits<double>::quiet_NaN();
  return (unused ? -4 : 1) * sizes[static_cast<std::size_t>(e) % sizes.size()];
}
/// A pool may have tens of thousands of pages: the first numbers, and then again as many as there are.
void fill_unused(Tensor& tensor, const Provenance::Word& unused) {
  const std::int64_t all = tensor.elements(), first = std::min<std::int64_t>(all, unused_count);
  for (std::int64_t e = 0; e < first; ++e) tensor.set(e, unused_number(e, unused));
  std::byte* const data = tensor.bytes().data();
  const std::size_t size = size_of(tensor.dtype());
  for (std::int64_t filled = first, more = 0; filled < all; filled += more) {
    more = std::min(filled, all - filled);
    std::memcpy(data + static_cast<std::size_t>(filled) * size, data, static_cast<std::size_t>(more) * size);
  }
}

/// `count` rows of keys of one head: from row `first` of entry `entry` of a tensor [entries, heads, rows, width].
struct Block {
  std::int64_t entry, head, first, count;
};
std::size_t offset_of(const Tensor& t, const Block& block) {
  const Shape& shape = t.shape();
  const std::int64_t row = (block.entry * shape[1] + block.head) * shape[2] + block.first;
  return static_cast<std::size_t>(row * shape[3]) * size_of(t.dtype());
}
std::span<const std::byte> bytes_at(const Tensor& t, const Block& block) {
  return t.bytes().subspan(offset_of(t, block),
                           static_cast<std::size_t>(block.count * t.shape()[3]) * size_of(t.dtype()));
}
void copy_block(const Tensor& from, const Block& block, Tensor& to, const Block& place) {
  const std::span<const std::byte> bytes = bytes_at(from, block);
  if (!bytes.empty()) std::memcpy(to.bytes().data() + offset_of(to, place), bytes.data(), bytes.size());
}

/// A page of a table.
struct Use {
  std::int64_t entry, column;
};

std::vector<Use> uses_of(const Problem& c) {
  std::vector<Use> uses;
  for (std::int64_t b = 0; b < batch_of(c); ++b)
    for (std::int64_t column = 0; column < columns_needed(c, b); ++column) uses.push_back({b, column});
  return uses;
}

std::int64_t most_named(const Tensor& places) {
  std::int64_t most = -1;
  for (std::int64_t e = 0; e < places.elements(); ++e) most = std::max(most, whole(places, e));
  return most;
}

bool holds_the_same(const Tensor& keys, std::int64_t page, const Use& one, const Use& other) {
  for (std::int64_t h = 0; h < keys.shape()[1]; ++h)
    if (!std::ranges::equal(bytes_at(keys, {one.entry, h, one.column * page, page}),
                            bytes_at(keys, {other.entry, h, other.column * page, page})))
      return false;
  return true;
}

/// Does a call write into it?
bool is_written(const Problem& c, const Use& use) {
  return c.append > 0 && (use.column + 1) * page_size_of(c) > whole(c[Slot::kv_lengths], use.entry) - c.append;
}

/// The table with a page of its own for whatever would share one with something else or with what a call writes, or lie
/// in none. `pages` grows with it.
Tensor settled(const Problem& c, Tensor table, std::initializer_list<Slot> of, std::int64_t& pages) {
  const std::int64_t page = page_size_of(c), columns = table.shape()[1], there = pages;
  std::unordered_map<std::int64_t, Use> owners;
  for (const Use& use : uses_of(c)) {
    const std::int64_t at = use.entry * columns + use.column, named = whole(table, at);
    if (named >= 0 && named < there) {
      const auto found = owners.find(named);
      if (found == owners.end()) {
        owners.emplace(named, use);
        continue;
      }
      const Use owner = found->second;
      const bool read_only = !is_written(c, owner) && !is_written(c, use);
      if (read_only && std::ranges::all_of(of, [&](Slot slot) { return holds_the_same(c[slot], page, owner, use); }))
        continue;
    }
    table.set(at, static_cast<double>(pages));
    owners.emplace(pages++, use);
  }
  return table;
}

Tensor pages_of(const Problem& c, Slot slot, const Tensor& table, std::int64_t pages, const Provenance::Word& unused) {
  const std::int64_t page = page_size_of(c), columns = table.shape()[1];
  const Shape& shape = c[slot].shape();
  Tensor pool(c[slot].dtype(), {pages, shape[1], page, shape[3]});
  fill_unused(pool, unused);
  for (const Use& use : uses_of(c))
    for (std::int64_t h = 0; h < shape[1]; ++h)
      copy_block(c[slot], {use.entry, h, use.column * page, page}, pool,
                 {whole(table, use.entry * columns + use.column), h, 0, page});
  return pool;
}

/// So many pages are named where somebody reads.
std::int64_t pages_named(const Problem& c, const Tensor& table) {
  std::int64_t most = -1;
  const std::int64_t columns = table.shape()[1];
  for (const Use& use : uses_of(c)) most = std::max(most, whole(table, use.entry * columns + use.column));
  return most + 1;
}

void lay_out_pages(Case& c, const Case& from) {
  const Tensor& own = from[Slot::page_table_v];
  const Tensor& table = from[Slot::page_table];
  std::int64_t pages = from.pool;
  for (const Tensor* const names : {&table, &own})
    if (from.pool == 0 && names->present()) pages = std::max(pages, pages_named(from, *names));
  pages = std::max<std::int64_t>(pages, 1);
  if (own.present()) {
    c[Slot::page_table] = settled(from, table, {Slot::k}, pages);
    c[Slot::page_table_v] = settled(from, own, {Slot::v}, pages);
  } else {
    c[Slot::page_table] = settled(from, table, {Slot::k, Slot::v}, pages);
  }
  c[Slot::k] = pages_of(from, Slot::k, c[Slot::page_table], pages, from.provenance.unused);
  c[Slot::v] =
      pages_of(from, Slot::v, c[own.present() ? Slot::page_table_v : Slot::page_table], pages, from.provenance.unused);
}

void lay_out_rows(Case& c, const Case& from) {
  const Tensor& index = from[Slot::cache_index];
  const std::int64_t rows = std::max(from.pool, most_named(index) + 1);
  for (const Slot slot : {Slot::k, Slot::v}) {
    const Shape& shape = from[slot].shape();
    Tensor cache(from[slot].dtype(), {rows, shape[1], shape[2], shape[3]});
    fill_unused(cache, from.provenance.unused);
    for (std::int64_t b = 0; b < index.elements(); ++b)
      for (std::int64_t h = 0; h < shape[1]; ++h)
        copy_block(from[slot], {b, h, 0, shape[2]}, cache, {whole(index, b), h, 0, shape[2]});
    c[slot] = std::move(cache);
  }
}

/// Where key j of entry b lies in k, or in v, of a case that is laid out.
Block place_of(const Case& laid_out, Slot slot, std::int64_t b, std::int64_t j) {
  const Slot own = slot == Slot::v && laid_out[Slot::page_table_v].present() ? Slot::page_table_v : Slot::page_table;
  const Tensor &table = laid_out[own], &index = laid_out[Slot::cache_index];
  if (table.present()) {
    const std::int64_t page = laid_out[slot].shape()[2];
    return {whole(table, b * table.shape()[1] + j / page), 0, j % page, 1};
  }
  return {index.present() ? whole(index, b) : b, 0, j, 1};
}

Slot new_of(Slot slot) {
  return slot == Slot::k ? Slot::k_new : Slot::v_new;
}

/// visit(head, token, where the token's key lies) for each that a call appends to k, or to v.
void for_each_new(const Case& laid_out, Slot slot,
                  const std::function<void(const Block& token, const Block& place)>& visit) {
  const Shape& shape = laid_out[new_of(slot)].shape();
  for (std::int64_t b = 0; b < shape[0]; ++b) {
    const std::int64_t before = whole(laid_out[Slot::kv_lengths], b);
    for (std::int64_t t = 0; t < shape[2]; ++t) {
      Block place = place_of(laid_out, slot, b, before + t);
      for (place.head = 0; place.head < shape[1]; ++place.head) visit({b, place.head, t, 1}, place);
    }
  }
}

/// Takes the new keys of a case out of the cache that it is laid out in.
void take_new(Case& laid_out, const Case& from) {
  laid_out.append = 0;
  // What two slices have together cannot be written for one.
  Layouts layouts = layouts_of(laid_out);
  for (const Slot slot : {Slot::k, Slot::v})
    if (!is_for_outputs(layouts[slot])) layouts[slot] = MemoryLayout::row_major;
  if (layouts != layouts_of(laid_out)) set_layouts(laid_out, layouts);
  Tensor& lengths = laid_out[Slot::kv_lengths];
  for (std::int64_t b = 0; b < lengths.elements(); ++b) lengths.set(b, lengths[b] - static_cast<double>(from.append));
  for (const Slot slot : {Slot::k, Slot::v}) {
    Tensor& cache = laid_out[slot];
    const Shape& shape = from[slot].shape();
    laid_out[new_of(slot)] = Tensor(cache.dtype(), {shape[0], shape[1], from.append, shape[3]});
    for_each_new(laid_out, slot, [&](const Block& token, const Block& place) {
      copy_block(cache, place, laid_out[new_of(slot)], token);
      const auto first = static_cast<std::int64_t>(offset_of(cache, place) / size_of(cache.dtype()));
      for (std::int64_t e = first; e < first + shape[3]; ++e) cache.set(e, unused_number(e, from.provenance.unused));
    });
  }
}

/// Refuses what has other axes, or is not of i32.
void need_table(const Tensor& table, std::string_view name, int rank, std::int64_t batch) {
  if (table.dtype() != DType::i32) refuse("{} is {}; it must be i32", name, name_of(table.dtype()));
  if (table.shape().rank() != rank || table.shape()[0] != batch)
    refuse("{} has shape {}; it must be [batch{}], and batch is {}", name, table.shape().to_string(),
           rank == 2 ? ", columns" : "", batch);
}

void need_cache(const Case& c) {
  for (const Slot slot : {Slot::q, Slot::k, Slot::v})
    if (c[slot].shape().rank() != 4)
      refuse("{} has shape {}; of a cache q, k and v have 4 axes", name_of(slot), c[slot].shape().to_string());
  const Shape &k = c.k().shape(), &v = c.v().shape();
  if (k[0] != v[0] || k[1] != v[1] || k[2] != v[2])
    refuse("k has shape {} and v {}; of a cache both have as many {} as each other", k.to_string(), v.to_string(),
           k[0] != v[0]   ? "pages or rows"
           : k[1] != v[1] ? "heads"
                          : "keys");
}

/// A tensor [entries, heads, keys, width] of 0.
Tensor room_for(const Tensor& like, std::int64_t entries, std::int64_t keys) {
  const Shape& shape = like.shape();
  const double elements = static_cast<double>(entries) * static_cast<double>(shape[1]) * static_cast<double>(keys) *
                          static_cast<double>(shape[3]);
  if (keys > std::numeric_limits<std::int32_t>::max() || elements > static_cast<double>(most_keys_elements))
    refuse("the keys of a cache are {} to an entry of {}; more than {} elements are not gathered", keys,
           shape.to_string(), most_keys_elements);
  return {like.dtype(), {entries, shape[1], keys, shape[3]}};
}

void read_pages(Case& c) {
  need_cache(c);
  const std::int64_t batch = c.q().shape()[0], pages = c.k().shape()[0], page = c.k().shape()[2];
  for (const Slot slot : {Slot::page_table, Slot::page_table_v})
    if (c[slot].present()) need_table(c[slot], name_of(slot), 2, batch);
  const Tensor& lengths = c[Slot::kv_lengths];
  if (!lengths.present()) refuse("page_table is present without kv_lengths, which say how many of its keys there are");
  need_table(lengths, "kv_lengths", 1, batch);
  if (page < 1) refuse("k has shape {}: a page has {} keys; it must have at least 1", c.k().shape().to_string(), page);
  const std::int64_t columns = c[Slot::page_table].shape()[1];
  if (c[Slot::page_table_v].present() && c[Slot::page_table_v].shape()[1] != columns)
    refuse("page_table has {} columns and page_table_v {}; they have as many as each other", columns,
           c[Slot::page_table_v].shape()[1]);
  for (const Slot slot : {Slot::k, Slot::v}) {
    const Slot of = slot == Slot::v && c[Slot::page_table_v].present() ? Slot::page_table_v : Slot::page_table;
    const Tensor& table = c[of];
    Tensor keys = room_for(c[slot], batch, columns * page);
    for (std::int64_t b = 0; b < batch; ++b) {
      const std::int64_t length = whole(lengths, b);
      if (length < 0 || length > columns * page)
        refuse("kv_lengths holds {} at [{}]; it must be from 0 to columns * page size = {}", length, b, columns * page);
      for (std::int64_t column = 0; column < (length + page - 1) / page; ++column) {
        const std::int64_t at = whole(table, b * columns + column);
        if (at < 0 || at >= pages)
          refuse("{} holds {} at [{}, {}]; {} has pages 0 to {}", name_of(of), at, b, column, name_of(slot), pages - 1);
        for (std::int64_t h = 0; h < keys.shape()[1]; ++h)
          copy_block(c[slot], {at, h, 0, page}, keys, {b, h, column * page, page});
      }
    }
    c[slot] = std::move(keys);
  }
  c.pool = pages;
}

void read_rows(Case& c) {
  need_cache(c);
  const Tensor& index = c[Slot::cache_index];
  const std::int64_t batch = c.q().shape()[0], rows = c.k().shape()[0], keys = c.k().shape()[2];
  need_table(index, "cache_index", 1, batch);
  std::unordered_set<std::int64_t> taken;
  for (std::int64_t b = 0; b < batch; ++b) {
    const std::int64_t at = whole(index, b);
    if (at < 0 || at >= rows) refuse("cache_index holds {} at [{}]; k has rows 0 to {}", at, b, rows - 1);
    if (!taken.insert(at).second)
      refuse("cache_index holds {} at [{}] and before it; two entries of a batch have no row together", at, b);
  }
  for (const Slot slot : {Slot::k, Slot::v}) {
    Tensor own = room_for(c[slot], batch, keys);
    for (std::int64_t b = 0; b < batch; ++b)
      for (std::int64_t h = 0; h < own.shape()[1]; ++h)
        copy_block(c[slot], {whole(index, b), h, 0, keys}, own, {b, h, 0, keys});
    c[slot] = std::move(own);
  }
  c.pool = rows;
}

/// Refuses a token whose place is none, or that somebody else reads or writes.
void need_places(const Case& c, Slot slot) {
  const Tensor &table = c[Slot::page_table], &index = c[Slot::cache_index], &lengths = c[Slot::kv_lengths];
  const std::int64_t L = c[new_of(slot)].shape()[2], entries = c[slot].shape()[0], rows = c[slot].shape()[2],
                     room = table.present() ? table.shape()[1] * rows : rows;
  std::unordered_map<std::int64_t, std::int64_t> written;  // pages, and the entry whose they are
  for (std::int64_t b = 0; b < lengths.elements(); ++b) {
    const std::int64_t length = whole(lengths, b);
    if (length < 0 || L > room - length)
      refuse("kv_lengths holds {} at [{}] and {} has {} tokens; there is room for {} keys", length, b,
             name_of(new_of(slot)), L, room);
    for (std::int64_t t = 0; t < L; ++t) {
      const std::int64_t at = place_of(c, slot, b, length + t).entry;
      if (at < 0 || at >= entries)
        refuse("a token of {} goes to {} {}; {} has {}", name_of(new_of(slot)), table.present() ? "page" : "row", at,
               name_of(slot), entries);
      const auto [found, is_new] = written.emplace(at, b);
      if (!is_new && found->second != b)
        refuse("tokens of {} and of {} go to {} {} of {}; what a call writes is one entry's", found->second, b,
               table.present() ? "page" : "row", at, name_of(slot));
    }
  }
  if (!table.present() || index.present() || L == 0) return;
  for (std::int64_t b = 0; b < lengths.elements(); ++b)
    for (std::int64_t j = 0; j < whole(lengths, b) + L; j += rows) {
      const std::int64_t at = place_of(c, slot, b, j).entry;
      const auto found = written.find(at);
      if (found == written.end()) continue;
      const bool own = found->second == b && j + rows > whole(lengths, b);
      if (!own) refuse("page {} of {} is named twice, and a call writes into it", at, name_of(slot));
    }
}

/// The new keys of a case in the cache, as a call is to leave it, and counted.
void put_new(Case& c) {
  if (!c[Slot::k_new].present() && !c[Slot::v_new].present()) return;
  need_cache(c);
  for (const Slot slot : {Slot::k, Slot::v}) {
    const Slot own = new_of(slot);
    if (!c[own].present()) refuse("{} is missing; k_new and v_new come together", name_of(own));
    if (c[own].dtype() != c[slot].dtype())
      refuse("{} is {} and {} {}; what is appended is as what is there", name_of(own), name_of(c[own].dtype()),
             name_of(slot), name_of(c[slot].dtype()));
    const Shape &shape = c[own].shape(), &cache = c[slot].shape();
    if (shape.rank() != 4 || shape[0] != c.q().shape()[0] || shape[1] != cache[1] || shape[3] != cache[3])
      refuse("{} has shape {}; it must be [batch, kv_heads, L, {}] = [{}, {}, L, {}]", name_of(own), shape.to_string(),
             slot == Slot::k ? "dk" : "dv", c.q().shape()[0], cache[1], cache[3]);
  }
  const std::int64_t L = c[Slot::k_new].shape()[2];
  if (L < 1 || c[Slot::v_new].shape()[2] != L)
    refuse("k_new has {} tokens and v_new {}; both have as many as each other, at least 1", L,
           c[Slot::v_new].shape()[2]);
  if (!c[Slot::kv_lengths].present())
    refuse("k_new is present without kv_lengths, which say behind how many keys they are written");
  const std::int64_t batch = c.q().shape()[0];
  need_table(c[Slot::kv_lengths], "kv_lengths", 1, batch);
  if (c[Slot::cache_index].present()) {
    need_table(c[Slot::cache_index], "cache_index", 1, batch);
  } else if (!c[Slot::page_table].present() && c.k().shape()[0] != batch) {
    refuse("k has shape {}; without a cache_index it has as many rows as the batch, {}", c.k().shape().to_string(),
           batch);
  }
  for (const Slot slot : {Slot::page_table, Slot::page_table_v})
    if (c[slot].present()) need_table(c[slot], name_of(slot), 2, batch);
  if (c.k().shape()[2] < 1) refuse("k has shape {}; there is no room for new keys", c.k().shape().to_string());
  for (const Slot slot : {Slot::k, Slot::v}) {
    need_places(c, slot);
    c[slot] = after_the_call(c, slot);
  }
  Tensor& lengths = c[Slot::kv_lengths];
  for (std::int64_t b = 0; b < batch; ++b) lengths.set(b, lengths[b] + static_cast<double>(L));
  c[Slot::k_new] = c[Slot::v_new] = Tensor();
  c.append = L;
}

std::vector<std::int64_t> shuffled(std::int64_t count, std::uint64_t seed) {
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), std::int64_t{0});
  std::mt19937_64 engine(seed);
  // Not std::shuffle, of which every library has its own.
  for (std::size_t i = numbers.size(); i > 1; --i) std::swap(numbers[i - 1], numbers[engine() % i]);
  return numbers;
}

/// Rows of [batch, heads, rows, width] up to `rows`, 0 behind what there is.
Tensor with_rows(const Tensor& t, std::int64_t rows) {
  const Shape& shape = t.shape();
  Tensor wide(t.dtype(), {shape[0], shape[1], rows, shape[3]});
  for (std::int64_t b = 0; b < shape[0]; ++b)
    for (std::int64_t h = 0; h < shape[1]; ++h) copy_block(t, {b, h, 0, shape[2]}, wide, {b, h, 0, shape[2]});
  return wide;
}

/// A mask with so many keys, which hides and adds nothing behind those it has: no length reaches there.
Tensor with_columns(const Tensor& mask, std::int64_t keys) {
  const Shape& shape = mask.shape();
  Tensor wide(mask.dtype(), {shape[0], shape[1], shape[2], keys});
  for (std::int64_t e = 0; e < wide.elements(); ++e) {
    const auto [b, h, i, j] = wide.shape().index_of(e);
    wide.set(e, j < shape[3] ? mask.at(b, h, i, j) : mask.dtype() == DType::boolean ? 1.0 : 0.0);
  }
  return wide;
}

/// Of what no length needs nothing is kept.
void clear_unneeded(Case& c) {
  const std::int64_t page = page_size_of(c), keys = keys_of(c);
  for (const Slot slot : {Slot::k, Slot::v}) {
    Tensor& t = c[slot];
    const std::size_t width = static_cast<std::size_t>(t.shape()[3]) * size_of(t.dtype());
    for (std::int64_t b = 0; b < batch_of(c); ++b) {
      const std::int64_t first = columns_needed(c, b) * page;
      for (std::int64_t h = 0; h < t.shape()[1]; ++h)
        std::memset(t.bytes().data() + offset_of(t, {b, h, first, 0}), 0,
                    static_cast<std::size_t>(keys - first) * width);
    }
  }
}

}  // namespace

std::int64_t page_size_of(const Problem& c) {
  return keys_of(c) / c[Slot::page_table].shape()[1];
}

std::int64_t columns_needed(const Problem& c, std::int64_t entry) {
  const std::int64_t page = page_size_of(c);
  // A valid problem with pages has lengths; one that was made wrong on purpose may not.
  if (!c[Slot::kv_lengths].present()) return c[Slot::page_table].shape()[1];
  return (whole(c[Slot::kv_lengths], entry) + page - 1) / page;
}

Case laid_out_in_cache(const Case& given) {
  if (!is_in_cache(given)) return given;
  // Of lengths that are shorter than those that it goes with an append is what it can be.
  Case c = given;
  settle_append(c);
  Case laid_out = c;
  if (c[Slot::page_table].present())
    lay_out_pages(laid_out, c);
  else if (c[Slot::cache_index].present())
    lay_out_rows(laid_out, c);
  laid_out.pool = 0;
  if (c.append > 0) take_new(laid_out, c);
  return laid_out;
}

Tensor after_the_call(const Case& laid_out, Slot slot) {
  Tensor after = laid_out[slot];
  if (laid_out[new_of(slot)].present())
    for_each_new(laid_out, slot, [&](const Block& token, const Block& place) {
      copy_block(laid_out[new_of(slot)], token, after, place);
    });
  return after;
}

std::string words_of_append(std::string_view name, const Shape& shape, std::int64_t element, bool is_new) {
  const auto at = shape.index_of(element);
  const std::string place = fmt::format("{}[{}, {}, {}, {}]", name, at[0], at[1], at[2], at[3]);
  return is_new
             ? fmt::format("left {} other than {}_new has it; a call writes the new keys into the cache, bit for bit",
                           place, name)
             : fmt::format("wrote to {}; of k and v a call writes the slots of the new keys alone", place);
}

std::int64_t most_append(const Problem& c) {
  const Tensor& lengths = c[Slot::kv_lengths];
  if (c.operation != Operation::attention || !lengths.present() || c[Slot::q_starts].present()) return 0;
  std::int64_t fewest = lengths.elements() == 0 ? 0 : keys_of(c);
  for (std::int64_t b = 0; b < lengths.elements(); ++b) {
    const Tensor& pad = c[Slot::left_pad];
    fewest = std::min(fewest, whole(lengths, b) - (pad.present() ? whole(pad, b) : 0));
  }
  return std::max<std::int64_t>(fewest, 0);
}

void settle_append(Problem& c) {
  c.append = std::min(c.append, most_append(c));
}

Case read_from_cache(Case laid_out) {
  if (laid_out[Slot::page_table_v].present() && !laid_out[Slot::page_table].present())
    refuse("page_table_v is present without page_table; it is that of v alone");
  if (laid_out[Slot::page_table].present() && laid_out[Slot::cache_index].present())
    refuse("cache_index is present beside page_table; pages are named by the table alone");
  put_new(laid_out);
  if (laid_out[Slot::page_table].present())
    read_pages(laid_out);
  else if (laid_out[Slot::cache_index].present())
    read_rows(laid_out);
  return laid_out;
}

namespace {

/// Of keys that are more now: blocks behind the last, with its factors, which nobody is to read.
void add_blocks(Case& c) {
  for (const Slot slot : {Slot::k_descale, Slot::v_descale}) {
    if (!c[slot].present() || c[slot].shape()[2] == 1) continue;
    const Tensor old = c[slot];
    const std::int64_t had = old.shape()[2], blocks = (keys_of(c) + c.kv_descale_block - 1) / c.kv_descale_block;
    Tensor more(old.dtype(), old.shape().with(2, blocks));
    for (std::int64_t e = 0; e < more.elements(); ++e)
      more.set(e, old[e / blocks * had + std::min(e % blocks, had - 1)]);
    c[slot] = std::move(more);
  }
}

}  // namespace

Case in_pages(const Case& c, std::int64_t page_size, std::int64_t unused, std::uint64_t seed, bool own_values) {
  Case paged = outside_of_caches(c);
  const std::int64_t batch = batch_of(c), keys = keys_of(c);
  const std::int64_t columns = std::max<std::int64_t>((keys + page_size - 1) / page_size, 1);
  if (!paged[Slot::kv_lengths].present()) {
    Tensor lengths(DType::i32, {batch});
    for (std::int64_t b = 0; b < batch; ++b) lengths.set(b, static_cast<double>(keys));
    paged[Slot::kv_lengths] = std::move(lengths);
  }
  if (columns * page_size != keys) {
    for (const Slot slot : {Slot::k, Slot::v}) paged[slot] = with_rows(paged[slot], columns * page_size);
    if (paged.mask().present()) paged[Slot::mask] = with_columns(paged.mask(), columns * page_size);
    add_blocks(paged);
  }
  paged[Slot::page_table] = Tensor(DType::i32, {batch, columns});
  const std::vector<Use> uses = uses_of(paged);
  const std::int64_t pages = std::max<std::int64_t>(std::ssize(uses) + unused, 1);
  for (const Slot slot : {Slot::page_table, Slot::page_table_v}) {
    if (slot == Slot::page_table_v && !own_values) continue;
    const std::vector<std::int64_t> order = shuffled(pages, seed + (slot == Slot::page_table_v ? 1 : 0));
    Tensor table(DType::i32, {batch, columns});
    // Entries that nobody reads name pages all the same, of others among them.
    for (std::int64_t e = 0; e < table.elements(); ++e)
      table.set(e, static_cast<double>(order[static_cast<std::size_t>(e % pages)]));
    for (std::size_t use = 0; use < uses.size(); ++use)
      table.set(uses[use].entry * columns + uses[use].column, static_cast<double>(order[use]));
    paged[slot] = std::move(table);
  }
  paged.pool = pages;
  paged.append = c.append;
  clear_unneeded(paged);
  return paged;
}

Case in_cache_rows(const Case& c, std::int64_t unused, std::uint64_t seed) {
  Case indexed = outside_of_caches(c);
  const std::int64_t batch = batch_of(c);
  const std::vector<std::int64_t> order = shuffled(batch + unused, seed);
  Tensor index(DType::i32, {batch});
  for (std::int64_t b = 0; b < batch; ++b) index.set(b, static_cast<double>(order[static_cast<std::size_t>(b)]));
  indexed[Slot::cache_index] = std::move(index);
  indexed.pool = batch + unused;
  indexed.append = c.append;
  return indexed;
}

Case outside_of_caches(Case c) {
  for (const Variant& variant : variants())
    if (variant.is_about_memory) drop_variant(c, variant.name);
  c.pool = 0;
  return c;
}

}  // namespace attest
