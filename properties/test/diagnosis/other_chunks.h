// A right kernel that makes something else of chunks of keys.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "core/problem/fields.h"
#include "core/problem/sequences.h"
#include "core/problem/sight.h"
#include "core/support/infinity.h"
#include "properties/arrangement/arrange.h"
#include "properties/test/catalogue/tampered.h"

namespace attest {

/// A row and a key of a problem with chunks, by their places in their sequence.
struct ChunkedPair {
  std::int64_t i = 0, j = 0, M = 0, N = 0, C = 0;
  std::int64_t p = 0;          ///< the row's position
  bool from_last = false;      ///< which is counted from the last key
  std::int64_t first_key = 0;  ///< the sequence's, of its batch entry

  /// The number of the chunk that key j is in; below 0 before the first.
  [[nodiscard]] std::int64_t chunk_of(std::int64_t key) const { return (key < 0 ? key - C + 1 : key) / C; }
  [[nodiscard]] bool are_together() const { return p >= 0 && chunk_of(p) == chunk_of(j); }
};
using SeesKey = std::function<bool(const ChunkedPair& at)>;

/// Chunks become a mask that shows what `sees` says, beside all else that hides.
inline Tampered::Question other_chunks(SeesKey sees) {
  return [sees = std::move(sees)](Case& c) {
    if (c.attention_chunk == 0) return;
    Case rest = c;
    drop_variant(rest, chunk_variant.name);
    const Tensor& old = c.mask();
    const bool boolean = !old.present() || old.dtype() == DType::boolean;
    Tensor mask(boolean ? DType::boolean : old.dtype(), {batch_of(c), heads_of(c), queries_of(c), keys_of(c)});
    for (std::int64_t e = 0; e < mask.elements(); ++e) {
      const auto [b, h, i, j] = mask.shape().index_of(e);
      const std::optional<Sequence> own = sequence_at(c, b, i);
      bool shown = own && !hidden(rest, b, h, i, j);
      if (shown) {
        ChunkedPair at{.i = i - own->first_query, .j = j - own->first_key, .M = own->queries, .N = own->keys};
        at.C = c.attention_chunk, at.first_key = own->first_key;
        at.from_last = c.alignment == Causal::bottom_right;
        at.p = at.from_last ? at.i + at.N - at.M : at.i;
        shown = sees(at);
      }
      mask.set(e, boolean ? (shown ? 1.0 : 0.0) : shown ? mask_entry(old, b, h, i, j) : -infinity);
    }
    drop_positions(c);
    c[Slot::mask] = std::move(mask);
  };
}
inline Tampered with_other_chunks(SeesKey sees) {
  return asked_otherwise(other_chunks(std::move(sees)));
}

/// A kernel's chunks, and what a reading of them says.
struct MistakenChunks {
  std::string_view words;
  SeesKey sees;
};
/// Each reading of chunks is that of one of these.
inline const std::vector<MistakenChunks>& mistaken_chunk_kernels() {
  using P = const ChunkedPair&;
  static const std::vector<MistakenChunks> all{
      {"there were no chunks", [](P) { return true; }},
      {"chunks of N - 1 keys or more were none", [](P at) { return at.C >= at.N - 1 || at.are_together(); }},
      {"a row saw its own key and the C - 1 before it, as in a window",
       [](P at) { return at.j <= at.p && at.p - at.j < at.C; }},
      {"a row saw its own key and the C before it, as in a window",
       [](P at) { return at.j <= at.p && at.p - at.j <= at.C; }},
      {"a row saw its own key, the C - 1 before it and all behind it, as in a window without a right end",
       [](P at) { return at.p - at.j < at.C; }},
      {"a row saw its own key, the C before it and all behind it, as in a window without a right end",
       [](P at) { return at.p - at.j <= at.C; }},
      {"a row saw nothing of its chunk behind its own key, as under a causal form",
       [](P at) { return at.are_together() && at.j <= at.p; }},
      {"a row saw all keys behind its chunk, too",
       [](P at) { return at.p >= 0 && at.chunk_of(at.j) >= at.chunk_of(at.p); }},
      {"a row saw the first key behind its chunk, too",
       [](P at) { return at.are_together() || (at.p >= 0 && at.j == (at.chunk_of(at.p) + 1) * at.C); }},
      {"a row did not see the last key of its chunk",
       [](P at) { return at.are_together() && at.j % at.C != at.C - 1; }},
      {"a row saw the last key before its chunk, too",
       [](P at) { return at.are_together() || at.j == at.chunk_of(at.p) * at.C - 1; }},
      {"a row did not see the first key of its chunk", [](P at) { return at.are_together() && at.j % at.C != 0; }},
      {"a row were in the chunk of the key behind its own, that of (p + 1) / C",
       [](P at) { return at.chunk_of(at.j) == at.chunk_of(at.p + 1); }},
      {"a row were in the chunk of the key before its own, that of (p - 1) / C",
       [](P at) { return at.chunk_of(at.j) == (at.p > 0 ? (at.p - 1) / at.C : at.chunk_of(at.p)); }},
      {"the first chunk were a key shorter, and all others began a key earlier",
       [](P at) { return at.chunk_of(at.j + 1) == at.chunk_of(at.p + 1); }},
      {"the first chunk were a key longer, and all others began a key later",
       [](P at) {
         const auto late = [&](std::int64_t key) { return std::max<std::int64_t>(key - 1, 0) / at.C; };
         return at.p >= 0 && late(at.j) == late(at.p);
       }},
      {"a chunk began at p & ~(C - 1), which is right of a C that is a power of 2",
       [](P at) {
         const std::int64_t begin = at.p & ~(at.C - 1);
         return at.p >= 0 && at.j >= begin && at.j < begin + at.C;
       }},
      {"rows before the first key were in the first chunk, as where p / C is rounded towards 0",
       [](P at) { return at.j / at.C == at.p / at.C; }},
      {"positions in chunks counted from the first keys, without N - M",
       [](P at) { return at.j / at.C == at.i / at.C; }},
      {"positions in chunks counted from the last keys, as i + N - M",
       [](P at) { return at.chunk_of(at.j) == at.chunk_of(at.i + at.N - at.M); }},
      {"positions in chunks were i + M - N",
       [](P at) { return at.chunk_of(at.j) == at.chunk_of(at.from_last ? at.i + at.M - at.N : at.i); }},
      {"the chunks of all rows began where that of the first does",
       [](P at) { return at.chunk_of(at.j) <= at.chunk_of(at.p) && at.chunk_of(at.j) >= at.chunk_of(at.p - at.i); }},
  };
  return all;
}

}  // namespace attest
