#include "core/journal/shape_counts.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/journal/journal.h"
#include "core/support/json_writer.h"
#include "core/support/members.h"

namespace attest {
namespace {

namespace dom = simdjson::dom;

Reach reach_of(const Extents& e) {
  return {.queries = e.queries,
          .keys = e.keys,
          .dk = e.dk,
          .dv = e.dv,
          .heads = e.heads,
          // Multihead has no heads of keys and values of their own.
          .kv_heads = e.kv_heads > 0 ? e.kv_heads : e.heads,
          .batch = e.batch};
}

Reach largest_of(const dom::array& extents) {
  if (extents.size() != reach_members.size())
    throw BadLine(fmt::format("\"largest\" must hold {} extents", reach_members.size()));
  Reach largest;
  std::size_t at = 0;
  for (const dom::element extent : extents) largest.*reach_members[at++].second = integer_of(extent, "largest");
  return largest;
}

ShapeCounts::Facet facet_of(ShapeFacet facet, const dom::array& classes) {
  const std::string_view name = name_of(facet);
  ShapeCounts::Facet counts;
  for (const dom::element one : classes) {
    dom::array numbers;
    if (one.get(numbers) != simdjson::SUCCESS || numbers.size() < 2 || numbers.size() > 3)
      throw BadLine(fmt::format("\"{}\" must hold a class with its counts", name));
    std::array<std::int64_t, 3> read{};
    std::ranges::transform(numbers, read.begin(), [&](const dom::element& number) { return integer_of(number, name); });
    const auto [index, judged, unjudged] = read;
    if (index >= static_cast<std::int64_t>(classes_in(facet)))
      throw BadLine(fmt::format("\"{}\" has the class {}, which is none", name, index));
    counts[static_cast<std::uint8_t>(index)].merge({judged, unjudged});
  }
  return counts;
}

}  // namespace

void ShapeCounts::add(const Extents& shape, bool judged) {
  const ShapeClasses classes = shape_classes(shape);
  for (std::size_t i = 0; i < facets.size(); ++i) {
    ShapeCount& count = facets[i][classes[i]];
    ++(judged ? count.judged : count.unjudged);
  }
  if (!judged) return;
  if (!largest) largest.emplace();
  largest->merge(reach_of(shape));
}

void ShapeCounts::merge(const ShapeCounts& other) {
  for (std::size_t i = 0; i < facets.size(); ++i)
    for (const auto& [index, count] : other.facets[i]) facets[i][index].merge(count);
  if (!other.largest) return;
  if (!largest) largest.emplace();
  largest->merge(*other.largest);
}

ShapeCount sum_of(const ShapeCounts::Facet& facet) {
  ShapeCount sum;
  for (const auto& [index, count] : facet) sum.merge(count);
  return sum;
}

void write_shapes(JsonWriter& json, const ShapeCounts& shapes) {
  json.begin_object();
  if (shapes.largest) {
    json.key("largest").begin_array();
    for (const auto& [name, extent] : reach_members) json.value(*shapes.largest.*extent);
    json.end_array();
  }
  for (std::size_t i = 0; i < shapes.facets.size(); ++i) {
    json.key(name_of(static_cast<ShapeFacet>(i))).begin_array();
    for (const auto& [index, count] : shapes.facets[i]) {
      json.begin_array().value(index).value(count.judged);
      if (count.unjudged > 0) json.value(count.unjudged);
      json.end_array();
    }
    json.end_array();
  }
  json.end_object();
}

ShapeCounts read_shapes(Members members) {
  ShapeCounts shapes;
  if (members.has("largest")) shapes.largest = largest_of(members.array("largest"));
  for (std::size_t i = 0; i < shapes.facets.size(); ++i) {
    const auto facet = static_cast<ShapeFacet>(i);
    shapes.facets[i] = facet_of(facet, members.array(name_of(facet)));
    if (sum_of(shapes.facets[i]) != sum_of(shapes.facets[0]))
      throw BadLine(fmt::format("\"shapes\" counts other cases by \"{}\" than by \"{}\"", name_of(facet),
                                name_of(ShapeFacet::lengths)));
  }
  members.finish();
  if (shapes.largest.has_value() != (sum_of(shapes.facets[0]).judged > 0))
    throw BadLine("\"largest\" of \"shapes\" is of judged cases");
  return shapes;
}

}  // namespace attest
