#include "properties/road/smallest_shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <ranges>
#include <span>
#include <string_view>
#include <vector>

namespace attest {
namespace {

/// Lengths of tiles in use; below 16 a length says little.
constexpr std::array<std::int64_t, 6> usual_tiles{16, 32, 64, 128, 256, 512};

/// "second", "third", "5th".
std::string ordinal(std::int64_t n) {
  constexpr std::array<std::string_view, 3> words{"first", "second", "third"};
  return n <= std::ssize(words) ? std::string(words[static_cast<std::size_t>(n - 1)]) : fmt::format("{}th", n);
}

/// "from the second key tile of 64 on", "two whole query tiles of 64"; empty where the length is neither. The largest
/// tile that fits is meant: 65 keys are four tiles of 16 and one more, too.
std::string tiles_in(std::int64_t length, std::span<const std::int64_t> tiles, std::string_view what) {
  for (const std::int64_t tile : tiles | std::views::reverse) {
    if (tile < 2 || length < tile) continue;
    const std::int64_t whole = length / tile, rest = length % tile;
    if (rest == 1) return fmt::format("from the {} {} tile of {} on", ordinal(whole + 1), what, tile);
    if (rest == 0)
      return whole == 1 ? fmt::format("a whole {} tile of {}", what, tile)
                        : fmt::format("{} whole {} tiles of {}", whole, what, tile);
  }
  return {};
}

}  // namespace

std::string tiles_text(const Extents& e, const Tiles& tiles) {
  const auto of = [](const std::vector<std::int64_t>& declared) {
    return declared.empty() ? std::span<const std::int64_t>(usual_tiles) : std::span<const std::int64_t>(declared);
  };
  const std::string queries = tiles_in(e.queries, of(tiles.queries), "query");
  const std::string keys = tiles_in(e.keys, of(tiles.keys), "key");
  return fmt::format("{}{}{}", keys, !keys.empty() && !queries.empty() ? ", " : "", queries);
}

std::string smallest_shape_text(const Extents& e, const Tiles& tiles) {
  const std::string words = tiles_text(e, tiles);
  if (words.empty()) return {};
  return fmt::format("smallest failing shape found: M {}, N {} ({})", e.queries, e.keys, words);
}

}  // namespace attest
