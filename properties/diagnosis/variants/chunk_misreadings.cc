#include "properties/diagnosis/variants/chunk_misreadings.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "core/problem/fields.h"

namespace attest {
namespace {

/// Of the chunk that key j is in, the first one's being 0 and those before it below.
std::int64_t begin_of_chunk(std::int64_t j, std::int64_t chunk) {
  const std::int64_t behind = j % chunk;
  return j - (behind < 0 ? behind + chunk : behind);
}
Sight chunk_at(std::int64_t p, std::int64_t chunk) {
  const std::int64_t begin = begin_of_chunk(p, chunk);
  return {begin, begin + chunk};
}
Sight own(const ChunkedRow& row) {
  return chunk_at(row.position, row.chunk);
}
/// With its ends moved by so many keys.
Sight moved(const ChunkedRow& row, std::int64_t first, std::int64_t last) {
  const Sight sight = own(row);
  return {sight.first + first, sight.last + last};
}

constexpr std::string_view is_no_chunk = R"(Leave "chunk" out of the manifest's "variants": a window is no chunk.)";
constexpr std::string_view needs_causal = R"(State "requires": ["causal"] of "chunk" in "variants".)";

constexpr ChunkReading readings[] = {
    {"there were no chunks",
     R"(In the adapter: pass attention_chunk on, or leave "chunk" out of the manifest's "variants".)",
     [](const ChunkedRow& row) { return Sight{0, row.keys}; }},
    {.words = "chunks of N - 1 keys or more were none",
     .remedy = "In the adapter: pass attention_chunk on where it is N - 1, too.",
     .shows = [](const ChunkedRow& row) { return row.chunk >= row.keys - 1 ? Sight{0, row.keys} : own(row); },
     .is_only_probed = true},
    {"a row saw its own key and the C - 1 before it, as in a window", is_no_chunk,
     [](const ChunkedRow& row) { return Sight{row.position - row.chunk + 1, row.position + 1}; }},
    {"a row saw its own key and the C before it, as in a window", is_no_chunk,
     [](const ChunkedRow& row) { return Sight{row.position - row.chunk, row.position + 1}; }},
    {.words = "a row saw its own key, the C - 1 before it and all behind it, as in a window without a right end",
     .remedy = is_no_chunk,
     .shows = [](const ChunkedRow& row) { return Sight{row.position - row.chunk + 1, row.keys}; },
     .is_another_beside_causal = true},
    {.words = "a row saw its own key, the C before it and all behind it, as in a window without a right end",
     .remedy = is_no_chunk,
     .shows = [](const ChunkedRow& row) { return Sight{row.position - row.chunk, row.keys}; },
     .is_another_beside_causal = true},
    {"a row saw nothing of its chunk behind its own key, as under a causal form", needs_causal,
     [](const ChunkedRow& row) { return Sight{own(row).first, row.position + 1}; }},
    {"a row saw all keys behind its chunk, too", needs_causal,
     [](const ChunkedRow& row) { return Sight{own(row).first, row.position < 0 ? 0 : row.keys}; }},
    {"a row saw the first key behind its chunk, too", needs_causal,
     [](const ChunkedRow& row) { return moved(row, 0, row.position < 0 ? 0 : 1); }},
    {"a row did not see the last key of its chunk", "", [](const ChunkedRow& row) { return moved(row, 0, -1); }},
    {"a row saw the last key before its chunk, too", "", [](const ChunkedRow& row) { return moved(row, -1, 0); }},
    {"a row did not see the first key of its chunk", "", [](const ChunkedRow& row) { return moved(row, 1, 0); }},
    {"a row were in the chunk of the key behind its own, that of (p + 1) / C", "",
     [](const ChunkedRow& row) { return chunk_at(row.position + 1, row.chunk); }},
    // Of p = 0 a division that rounds towards 0 finds the first chunk.
    {"a row were in the chunk of the key before its own, that of (p - 1) / C", "",
     [](const ChunkedRow& row) { return chunk_at(row.position - (row.position > 0 ? 1 : 0), row.chunk); }},
    {"the first chunk were a key shorter, and all others began a key earlier", "",
     [](const ChunkedRow& row) {
       const Sight sight = chunk_at(row.position + 1, row.chunk);
       return Sight{sight.first - 1, sight.last - 1};
     }},
    {"the first chunk were a key longer, and all others began a key later", "",
     [](const ChunkedRow& row) {
       if (row.position <= row.chunk) return Sight{0, row.position < 0 ? 0 : row.chunk + 1};
       const Sight sight = chunk_at(row.position - 1, row.chunk);
       return Sight{sight.first + 1, sight.last + 1};
     }},
    {"a chunk began at p & ~(C - 1), which is right of a C that is a power of 2",
     "In the adapter: raise Unsupported for an attention_chunk that is no power of 2.",
     [](const ChunkedRow& row) {
       const std::int64_t begin = row.position & ~(row.chunk - 1);
       return Sight{begin, row.position < 0 ? 0 : begin + row.chunk};
     }},
    // Whatever a row without a key answers is right.
    {.words = "rows before the first key were in the first chunk, as where p / C is rounded towards 0",
     .remedy = "In the adapter: raise Unsupported where M > N and positions count from the last key.",
     .shows =
         [](const ChunkedRow& row) {
           return row.position < 0 && row.position > -row.chunk ? Sight{0, row.chunk} : own(row);
         },
     .is_only_probed = true},
    {"positions in chunks counted from the first keys, without N - M",
     R"(State "alignment": ["top-left"] of "chunk" in "variants", and "excludes": ["bottom-right"].)",
     [](const ChunkedRow& row) { return chunk_at(row.i, row.chunk); }},
    {"positions in chunks counted from the last keys, as i + N - M",
     R"(State "alignment": ["bottom-right"] of "chunk" in "variants", and "excludes": ["top-left"].)",
     [](const ChunkedRow& row) { return chunk_at(row.i + row.keys - row.rows, row.chunk); }},
    {"positions in chunks were i + M - N", "",
     [](const ChunkedRow& row) { return row.from_last ? chunk_at(row.i + row.rows - row.keys, row.chunk) : own(row); }},
    {"the chunks of all rows began where that of the first does", "",
     [](const ChunkedRow& row) {
       const std::int64_t first = row.position - row.i;
       return Sight{begin_of_chunk(first, row.chunk), own(row).last};
     }},
};

/// Readings of kernels that take so many rows or keys at a time, beside whom no adapter can do anything.
struct TiledReading {
  std::string_view words;  ///< with a # for the tile
  Sight (*shows)(const ChunkedRow& row, std::int64_t tile);
  bool is_of_keys = true;  ///< within one tile of them another reading is the same
};
constexpr TiledReading tiled_readings[] = {
    {"rows were in the chunk of the first row of their tile of #",
     [](const ChunkedRow& row, std::int64_t tile) { return chunk_at(row.position - row.i % tile, row.chunk); },
     /*is_of_keys=*/false},
    {"chunks had as many keys as whole tiles of #",
     [](const ChunkedRow& row, std::int64_t tile) {
       return chunk_at(row.position, (row.chunk + tile - 1) / tile * tile);
     }},
    {"the tile of # keys that a chunk begins in were seen from its first key on",
     [](const ChunkedRow& row, std::int64_t tile) {
       const Sight sight = own(row);
       return Sight{begin_of_chunk(sight.first, tile), sight.last};
     }},
};
constexpr std::int64_t tiles[] = {16, 32, 64, 128};

ChunkedRow chunked_row(const SightRule& asked, std::int64_t i, std::int64_t rows, std::int64_t keys) {
  return {.i = i,
          .rows = rows,
          .keys = keys,
          .chunk = asked.chunk,
          .position = position(asked, i, rows, keys),
          .from_last = asked.alignment == Causal::bottom_right};
}

/// What such a row sees where chunks show it that.
Sight beside_others(const Sight& shown, SightRule asked, const ChunkedRow& row) {
  asked.chunk = 0;
  const Sight rest = sight(asked, row.i, row.rows, row.keys);
  const std::int64_t last = std::clamp<std::int64_t>(shown.last, 0, rest.last);
  return {std::clamp<std::int64_t>(shown.first, std::min(rest.first, last), last), last};
}

}  // namespace

Sight ChunkReading::sight(const SightRule& asked, std::int64_t i, std::int64_t rows, std::int64_t keys) const {
  const ChunkedRow row = chunked_row(asked, i, rows, keys);
  return beside_others(shows(row), asked, row);
}

std::span<const ChunkReading> chunk_readings() {
  return readings;
}

std::vector<MisreadSight> misread_chunks(const Case& c) {
  if (!has_variant(c, chunk_variant.name) || !can_hide_by_mask(c)) return {};
  const std::int64_t rows = queries_of(c), keys = keys_of(c);
  const bool causal = c.causal != Causal::none;
  const SightRule rule = sight_rule(c);
  const Case open = without_sight_of(chunk_variant, c, c.causal);
  std::vector<MisreadSight> found;
  const auto add = [&](std::string_view words, bool is_told, std::int64_t size, auto shows) {
    found.push_back({.words = std::string(words), .problem = {}, .size = size});
    if (is_told)
      found.back().problem = narrowed(open, [&](std::int64_t i) {
        const ChunkedRow row = chunked_row(rule, i, rows, keys);
        return beside_others(shows(row), rule, row);
      });
  };
  for (const ChunkReading& reading : readings)
    if (!reading.is_only_probed)
      add(reading.words, !causal || !reading.is_another_beside_causal, /*size=*/0, reading.shows);
  for (const TiledReading& reading : tiled_readings)
    for (const std::int64_t tile : tiles)
      add(reading.words, tile < keys || !reading.is_of_keys, tile,
          [&](const ChunkedRow& row) { return reading.shows(row, tile); });
  const auto neither = [&](const char* words, Case other) {
    drop_variant(other, chunk_variant.name);
    found.push_back({words, std::move(other)});
  };
  if (causal) neither("there were neither chunks nor a causal form", without_sight_of(chunk_variant, c, Causal::none));
  if (has_variant(c, window_variant.name)) {
    Case other = c;
    drop_variant(other, window_variant.name);
    neither("there were neither chunks nor a window", std::move(other));
  }
  return found;
}

}  // namespace attest
