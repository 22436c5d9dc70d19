#include "core/problem/shape_class.h"

#include <fmt/format.h>

#include <span>

namespace attest {
namespace {

constexpr std::size_t tilings = Words<Tiling>::names.size();
constexpr std::array<std::string_view, 3> value_dims{"dv < dk", "dv = dk", "dv > dk"};

constexpr std::size_t range_in(std::span<const ExtentRange> ranges, std::int64_t extent) {
  std::size_t i = 0;
  while (i + 1 < ranges.size() && extent > ranges[i].most) ++i;
  return i;
}

constexpr std::size_t tiles_of(const Extents& e, std::int64_t tile) {
  return static_cast<std::size_t>(tiling_of(e.queries, tile)) * tilings +
         static_cast<std::size_t>(tiling_of(e.keys, tile));
}

/// "17..64", "64", "more than 256".
std::string words_of(const ExtentRange& range) {
  if (range.most == any_extent) return fmt::format("more than {}", range.least - 1);
  return range.least == range.most ? fmt::format("{}", range.least) : fmt::format("{}..{}", range.least, range.most);
}

std::string words_of_tiles(std::size_t index) {
  return fmt::format("queries: {}, keys: {}", name_of(static_cast<Tiling>(index / tilings)),
                     name_of(static_cast<Tiling>(index % tilings)));
}

}  // namespace

ShapeClasses shape_classes(const Extents& e) {
  ShapeClasses classes{};
  const auto set = [&](ShapeFacet facet, std::size_t index) {
    classes[static_cast<std::size_t>(facet)] = static_cast<std::uint8_t>(index);
  };
  set(ShapeFacet::lengths, range_in(length_ranges, e.queries) * length_ranges.size() + range_in(length_ranges, e.keys));
  set(ShapeFacet::tiles_16, tiles_of(e, 16));
  set(ShapeFacet::tiles_64, tiles_of(e, 64));
  set(ShapeFacet::tiles_128, tiles_of(e, 128));
  set(ShapeFacet::head_dim, range_in(head_dim_ranges, e.dk));
  set(ShapeFacet::value_dim, e.dv < e.dk ? 0 : e.dv == e.dk ? 1 : 2);
  set(ShapeFacet::heads, range_in(head_ranges, e.heads));
  // Multihead has no heads of keys and values of their own.
  set(ShapeFacet::group, range_in(group_ranges, e.kv_heads > 0 ? e.heads / e.kv_heads : 1));
  set(ShapeFacet::batch, range_in(batch_ranges, e.batch));
  return classes;
}

std::size_t classes_in(ShapeFacet facet) {
  switch (facet) {
    case ShapeFacet::lengths:
      return length_ranges.size() * length_ranges.size();
    case ShapeFacet::tiles_16:
    case ShapeFacet::tiles_64:
    case ShapeFacet::tiles_128:
      return tilings * tilings;
    case ShapeFacet::head_dim:
      return head_dim_ranges.size();
    case ShapeFacet::value_dim:
      return value_dims.size();
    case ShapeFacet::heads:
      return head_ranges.size();
    case ShapeFacet::group:
      return group_ranges.size();
    case ShapeFacet::batch:
      return batch_ranges.size();
  }
  return 0;
}

std::string class_words(ShapeFacet facet, std::size_t index) {
  if (index >= classes_in(facet)) return {};
  switch (facet) {
    case ShapeFacet::lengths:
      return fmt::format("M {}, N {}", words_of(length_ranges[index / length_ranges.size()]),
                         words_of(length_ranges[index % length_ranges.size()]));
    case ShapeFacet::tiles_16:
    case ShapeFacet::tiles_64:
    case ShapeFacet::tiles_128:
      return words_of_tiles(index);
    case ShapeFacet::head_dim:
      return fmt::format("dk {}", words_of(head_dim_ranges[index]));
    case ShapeFacet::value_dim:
      return std::string(value_dims[index]);
    case ShapeFacet::heads:
      return fmt::format("{} {}", words_of(head_ranges[index]), head_ranges[index].most == 1 ? "head" : "heads");
    case ShapeFacet::group:
      return index == 0 ? "one to one" : fmt::format("{} to one", words_of(group_ranges[index]));
    case ShapeFacet::batch:
      return fmt::format("{} batch {}", words_of(batch_ranges[index]),
                         batch_ranges[index].most == 1 ? "entry" : "entries");
  }
  return {};
}

}  // namespace attest
