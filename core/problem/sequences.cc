#include "core/problem/sequences.h"

#include <algorithm>

#include "core/problem/fields.h"
#include "core/problem/sight.h"

namespace attest {
namespace {

std::int64_t whole(const Tensor& tensor, std::int64_t at) {
  return static_cast<std::int64_t>(tensor[at]);
}

}  // namespace

bool has_sequences(const Problem& c) {
  return std::ranges::any_of(variants_of(c), &Variant::is_about_sequences);
}

void drop_sequences(Problem& c) {
  for (const Variant& variant : variants())
    if (variant.is_about_sequences || variant.is_about_memory) drop_variant(c, variant.name);
}

std::int64_t sequence_count(const Problem& c) {
  const Tensor& starts = c[Slot::q_starts];
  return starts.present() ? starts.elements() - 1 : batch_of(c);
}

Sequence sequence_of(const Problem& c, std::int64_t number) {
  const Tensor &q_starts = c[Slot::q_starts], &kv_starts = c[Slot::kv_starts];
  if (q_starts.present()) {
    const std::int64_t query = whole(q_starts, number), key = whole(kv_starts, number);
    return {.first_query = query,
            .queries = whole(q_starts, number + 1) - query,
            .first_key = key,
            .keys = whole(kv_starts, number + 1) - key};
  }
  const Tensor &q_lengths = c[Slot::q_lengths], &kv_lengths = c[Slot::kv_lengths], &left_pad = c[Slot::left_pad];
  const std::int64_t first_key = left_pad.present() ? whole(left_pad, number) : 0;
  return {.entry = number,
          .queries = q_lengths.present() ? whole(q_lengths, number) : queries_of(c),
          .first_key = first_key,
          .keys = (kv_lengths.present() ? whole(kv_lengths, number) : keys_of(c)) - first_key};
}

std::vector<Sequence> sequences_of(const Problem& c) {
  std::vector<Sequence> all;
  const std::int64_t count = sequence_count(c);
  all.reserve(static_cast<std::size_t>(count));
  for (std::int64_t s = 0; s < count; ++s) all.push_back(sequence_of(c, s));
  return all;
}

std::optional<Sequence> sequence_at(const Problem& c, std::int64_t entry, std::int64_t i) {
  if (!c[Slot::q_starts].present()) {
    const Sequence own = sequence_of(c, entry);
    return has_query(own, i) ? std::optional(own) : std::nullopt;
  }
  for (std::int64_t s = 0; s < sequence_count(c); ++s)
    if (const Sequence one = sequence_of(c, s); has_query(one, i)) return one;
  return std::nullopt;
}

std::vector<std::int64_t> padding_rows(const Problem& c) {
  std::vector<std::int64_t> rows;
  if (!c[Slot::q_starts].present() && !c[Slot::q_lengths].present()) return rows;
  const std::int64_t heads = heads_of(c), queries = queries_of(c);
  const std::vector<Sequence> sequences = sequences_of(c);
  for (std::int64_t b = 0; b < batch_of(c); ++b) {
    for (std::int64_t h = 0; h < heads; ++h) {
      std::int64_t i = 0;
      const auto up_to = [&](std::int64_t end) {
        for (; i < end; ++i) rows.push_back((b * heads + h) * queries + i);
      };
      for (const Sequence& s : sequences) {
        if (s.entry != b) continue;
        up_to(s.first_query);
        i = s.first_query + s.queries;
      }
      up_to(queries);
    }
  }
  return rows;
}

bool has_padding(const Problem& c) {
  std::int64_t queries = 0, keys = 0;
  for (const Sequence& s : sequences_of(c)) queries += s.queries, keys += s.keys;
  return queries < batch_of(c) * queries_of(c) || keys < batch_of(c) * keys_of(c);
}

}  // namespace attest
