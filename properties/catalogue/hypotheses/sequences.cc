// Of lengths, packed sequences, padding and caches.
#include "core/problem/sequences.h"

#include <algorithm>
#include <string>

#include "core/problem/case.h"
#include "core/problem/fields.h"
#include "core/problem/kv_cache.h"
#include "core/problem/sight.h"
#include "properties/catalogue/hypotheses.h"

namespace attest {
namespace {

std::string misses_sequences(const Case& c) {
  return has_sequences(c) ? ""
                          : "has no lengths, padding on the left or packed sequences; the theorem is about sequences";
}

std::string misses_pages(const Case& c) {
  return c[Slot::page_table].present() ? "" : "has no table of pages; the theorem is about keys in pages";
}

std::string misses_new_keys(const Case& c) {
  return c.append > 0 ? "" : "appends no keys; the theorem is about a call that does";
}

}  // namespace

namespace hypotheses {

constexpr Hypothesis sequences{"sequences", "lengths, padding on the left, or packed sequences", misses_sequences};
constexpr Hypothesis packed{
    "packed", "packed sequences", [](const Case& c) -> std::string {
      return has_variant(c, packed_variant.name) ? "" : "has no packed sequences; the theorem is about them";
    }};
constexpr Hypothesis two_sequences{"two-sequences", "at least two sequences", [](const Case& c) -> std::string {
                                     if (!has_sequences(c)) return misses_sequences(c);
                                     return sequence_count(c) >= 2 ? ""
                                                                   : "has one sequence; the theorem needs at least 2";
                                   }};
constexpr Hypothesis padding{
    "padding", "rows or keys of no sequence", [](const Case& c) -> std::string {
      return has_padding(c) ? "" : "has no row and no key that is in no sequence; the theorem is about these";
    }};
constexpr Hypothesis bottom_right_sequence{
    "bottom-right-sequence", "positions from the last key of a sequence with M and N that differ",
    [](const Case& c) -> std::string {
      const Causal alignment = c.causal != Causal::none ? c.causal : c.alignment;
      const auto differs = [](const Sequence& s) { return s.queries > 0 && s.keys > 0 && s.queries != s.keys; };
      if (has_sequences(c) && alignment == Causal::bottom_right && std::ranges::any_of(sequences_of(c), differs))
        return {};
      return "has no sequence with M and N that differ whose positions count from its last key; the theorem is about one";
    }};
constexpr Hypothesis pages{"pages", "keys and values in pages", misses_pages};
constexpr Hypothesis page_tail{"page-tail", "a page with a slot that no key is in", [](const Case& c) -> std::string {
                                 if (!c[Slot::page_table].present()) return misses_pages(c);
                                 for (std::int64_t b = 0; b < batch_of(c); ++b) {
                                   const Sequence own = sequence_of(c, b);
                                   if (own.first_key > 0 || (own.first_key + own.keys) % page_size_of(c) != 0)
                                     return {};
                                 }
                                 return "has no page with a slot that no key is in; the theorem is about one";
                               }};
constexpr Hypothesis table_tail{"table-tail", "a table with an entry that nobody reads",
                                [](const Case& c) -> std::string {
                                  if (!c[Slot::page_table].present()) return misses_pages(c);
                                  for (std::int64_t b = 0; b < batch_of(c); ++b)
                                    if (columns_needed(c, b) < c[Slot::page_table].shape()[1]) return {};
                                  return "has no table with an entry that nobody reads; the theorem is about one";
                                }};
constexpr Hypothesis cache_rows{
    "cache-rows", "rows of a cache that an index names", [](const Case& c) -> std::string {
      return c[Slot::cache_index].present() ? "" : "has no index of a cache's rows; the theorem is about one";
    }};
constexpr Hypothesis new_keys{"new-keys", "keys that the call appends", misses_new_keys};
/// Of tokens that a call appends some go to one page and some to the next.
constexpr Hypothesis crossed_page{
    "crossed-page", "keys that the call appends to two pages of an entry", [](const Case& c) -> std::string {
      if (!c[Slot::page_table].present()) return misses_pages(c);
      if (c.append == 0) return misses_new_keys(c);
      const std::int64_t page = page_size_of(c);
      for (std::int64_t b = 0; b < batch_of(c); ++b) {
        const auto length = static_cast<std::int64_t>(c[Slot::kv_lengths][b]);
        if ((length - c.append) / page != (length - 1) / page) return {};
      }
      return "appends to one page of each entry; the theorem is about a call that appends to two";
    }};
constexpr Hypothesis left_pad{
    "left-pad", "padding before a sequence's keys", [](const Case& c) -> std::string {
      if (c[Slot::left_pad].present() &&
          std::ranges::any_of(sequences_of(c), [](const Sequence& s) { return s.first_key > 0; }))
        return {};
      return "has no padding before a sequence's keys; the theorem is about it";
    }};
constexpr Hypothesis key_lengths{
    "key-lengths", "lengths of keys", [](const Case& c) -> std::string {
      return c[Slot::kv_lengths].present() ? "" : "has no lengths of keys; the theorem is about them";
    }};

}  // namespace hypotheses
}  // namespace attest
