#include "properties/faults/planted_cache.h"

#include <algorithm>

namespace attest {
namespace {

std::int64_t number(const attest_tensor& t, std::int64_t at) {
  return std::int64_t{static_cast<const std::int32_t*>(t.data)[at * t.stride[0]]};
}

/// The table as the slip understands it, within the pool.
std::function<std::int64_t(std::int64_t, std::int64_t, bool)> pages_of(const attest_problem& p, Slip slip,
                                                                       std::int64_t tile) {
  if ((p.variants & ATTEST_PAGED) == 0) return {};
  return [&p, slip, tile](std::int64_t entry, std::int64_t column, bool values) {
    const auto is = [&](Slip mistake) { return slip == mistake; };
    const std::int64_t columns = p.page_table.shape[1], last = p.k.shape[0] - 1;
    if (is("pages-in-order")) return std::min(entry * columns + column, last);
    if (is("pages-of-the-first-sequence")) entry = 0;
    if (is("page-read-twice") && column >= 2) column -= 1;
    if (is("table-pitch-in-fours")) {
      // As if rows of the table were as long as a multiple of 4.
      const std::int64_t flat = entry * ((columns + 3) / 4 * 4) + column, all = p.page_table.shape[0] * columns;
      entry = flat % all / columns, column = flat % all % columns;
    }
    // The table is asked once for each tile of keys; what follows in the tile is taken to lie behind its first page.
    const std::int64_t size = p.k.shape[2], first = column * size / tile * tile / size;
    const std::int64_t ahead = is("one-page-to-a-tile") && size < tile ? column - first : 0;
    if (ahead > 0) return std::min(GatheredKeys::page_in_table(p, entry, first, values) + ahead, last);
    std::int64_t page = GatheredKeys::page_in_table(p, entry, column, values && !is("values-by-the-table-of-keys"));
    if (is("page-numbers-in-16-bits")) page %= std::int64_t{1} << 16;
    return std::clamp<std::int64_t>(page, 0, last);
  };
}

/// Where the slip writes the new keys, within an entry's room.
std::function<std::int64_t(std::int64_t, std::int64_t, bool)> written_as(const attest_problem& p, Slip slip) {
  if ((p.variants & ATTEST_APPEND) == 0) return {};
  return [&p, slip](std::int64_t entry, std::int64_t token, bool values) {
    const auto is = [&](Slip mistake) { return slip == mistake; };
    const bool paged = (p.variants & ATTEST_PAGED) != 0;
    const std::int64_t page = p.k.shape[2], room = paged ? p.page_table.shape[1] * page : page,
                       length = number(p.kv_lengths, entry), next = length + token;
    if (is("appended-behind-the-first-length")) return std::min(number(p.kv_lengths, 0) + token, room - 1);
    if (is("appended-over-the-last-key") && length > 0) return next - 1;
    if (is("appended-within-a-page") && paged) return length / page * page + next % page;
    if (is("new-values-not-written") && values) return std::int64_t{-1};
    if (is("first-new-key-alone") && token > 0) return std::int64_t{-1};
    const std::int64_t tokens = p.k_new.shape[2];
    if (is("new-keys-in-fours") && tokens > 4 && token >= tokens / 4 * 4) return std::int64_t{-1};
    return next;
  };
}

/// The problem with other rows of the cache, where the slip has them.
attest_problem with_rows(attest_problem p, Slip slip) {
  if ((p.variants & ATTEST_CACHE_INDEX) == 0 || slip != Slip("cache-index-ignored")) return p;
  p.variants &= ~static_cast<std::uint32_t>(ATTEST_CACHE_INDEX);
  p.k.shape[0] = p.v.shape[0] = p.q.shape[0];
  return p;
}

}  // namespace

PlantedCache::PlantedCache(const attest_problem& p, Slip slip, std::int64_t tile)
    : gathered_(with_rows(p, slip), {.page_of = pages_of(p, slip, tile), .written_as = written_as(p, slip)}) {
  const bool partial_page_lost = (p.variants & ATTEST_PAGED) != 0 && slip == Slip("partial-page-lost"),
             new_keys_unseen = (p.variants & ATTEST_APPEND) != 0 && slip == Slip("new-keys-unseen"),
             tiles_as_before = (p.variants & ATTEST_APPEND) != 0 && slip == Slip("tiles-as-before-the-append");
  if (!partial_page_lost && !new_keys_unseen && !tiles_as_before) return;
  const std::int64_t page = p.k.shape[2];
  for (std::int64_t b = 0; b < p.q.shape[0]; ++b) {
    const attest_tensor& from = new_keys_unseen ? p.kv_lengths : gathered_.problem.kv_lengths;
    const std::int64_t length = number(from, b), pad = p.left_pad.data != nullptr ? number(p.left_pad, b) : 0;
    std::int64_t kept = partial_page_lost && length > page ? length / page * page : length;
    // As many tiles of keys as there were before, the last one with whatever is in it now.
    if (tiles_as_before)
      kept = std::min(length, std::max<std::int64_t>(1, (number(p.kv_lengths, b) + tile - 1) / tile) * tile);
    lengths_.push_back(static_cast<std::int32_t>(std::max(kept, pad)));
  }
  attest_tensor& lengths = gathered_.problem.kv_lengths;
  lengths.data = lengths_.data();
  lengths.stride[0] = 1;
}

}  // namespace attest
