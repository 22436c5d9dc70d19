#include "properties/faults/planted_cache.h"

#include <algorithm>

namespace attest {
namespace {

std::int64_t number(const attest_tensor& t, std::int64_t at) {
  return std::int64_t{static_cast<const std::int32_t*>(t.data)[at * t.stride[0]]};
}

/// The table as the slip understands it, within the pool.
PageOf pages_of(const attest_problem& p, Slip slip) {
  if ((p.variants & ATTEST_PAGED) == 0) return {};
  return [&p, slip](std::int64_t entry, std::int64_t column, bool values) {
    const auto is = [&](Slip mistake) { return slip == mistake; };
    const std::int64_t columns = p.page_table.shape[1], last = p.k.shape[0] - 1;
    if (is("pages-in-order")) return std::min(entry * columns + column, last);
    if (is("pages-of-the-first-sequence")) entry = 0;
    if (is("page-read-twice") && column >= 2) column -= 1;
    std::int64_t page = GatheredKeys::page_in_table(p, entry, column, values && !is("values-by-the-table-of-keys"));
    if (is("page-numbers-in-16-bits")) page %= std::int64_t{1} << 16;
    return std::clamp<std::int64_t>(page, 0, last);
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

PlantedCache::PlantedCache(const attest_problem& p, Slip slip) : gathered_(with_rows(p, slip), pages_of(p, slip)) {
  if ((p.variants & ATTEST_PAGED) == 0 || slip != Slip("partial-page-lost")) return;
  const std::int64_t page = p.k.shape[2];
  for (std::int64_t b = 0; b < p.q.shape[0]; ++b) {
    const std::int64_t length = number(p.kv_lengths, b), pad = p.left_pad.data != nullptr ? number(p.left_pad, b) : 0;
    const std::int64_t kept = length > page ? length / page * page : length;
    lengths_.push_back(static_cast<std::int32_t>(std::max(kept, pad)));
  }
  attest_tensor& lengths = gathered_.problem.kv_lengths;
  lengths.data = lengths_.data();
  lengths.stride[0] = 1;
}

}  // namespace attest
