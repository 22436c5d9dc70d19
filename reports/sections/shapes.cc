#include <fmt/format.h>

#include <algorithm>

#include "reports/results/summary_words.h"
#include "reports/sections/sections.h"
#include "reports/terminal/text.h"

namespace attest {
namespace {

constexpr std::array tile_facets{ShapeFacet::tiles_16, ShapeFacet::tiles_64, ShapeFacet::tiles_128};
constexpr std::array list_facets{ShapeFacet::head_dim, ShapeFacet::value_dim, ShapeFacet::heads, ShapeFacet::group,
                                 ShapeFacet::batch};

ShapeCounts shapes_of(const Summary& summary) {
  ShapeCounts all;
  for (const KernelSummary& kernel : summary.kernels) all.merge(kernel.shapes());
  return all;
}

ShapeCount count_in(const ShapeCounts& shapes, ShapeFacet facet, std::size_t index) {
  const auto found = shapes.of(facet).find(static_cast<std::uint8_t>(index));
  return found == shapes.of(facet).end() ? ShapeCount() : found->second;
}

/// "17", "17 of 20" where some were not judged, a dash where there was none.
std::string count_text(const ShapeCount& count) {
  if (count.judged + count.unjudged == 0) return "–";
  if (count.unjudged == 0) return with_commas(count.judged);
  return fmt::format("{} of {}", with_commas(count.judged), with_commas(count.judged + count.unjudged));
}

std::string range_text(const ExtentRange& range) {
  if (range.most == any_extent) return fmt::format("> {}", range.least - 1);
  return range.least == range.most ? std::to_string(range.least) : fmt::format("{}..{}", range.least, range.most);
}

/// Ranges of M down, of N across.
Table lengths_table(const ShapeCounts& shapes) {
  Table table{"Judged cases by M (down) and N (across); where some were not judged, of how many",
              {Column{"M \\ N"}},
              "shapes",
              /*sorts=*/false};
  for (const ExtentRange& keys : length_ranges) table.columns.push_back({range_text(keys), true});
  for (std::size_t i = 0; i < length_ranges.size(); ++i) {
    TableRow& row = table.rows.emplace_back(TableRow{{range_text(length_ranges[i])}});
    for (std::size_t j = 0; j < length_ranges.size(); ++j)
      row.cells.emplace_back(count_text(count_in(shapes, ShapeFacet::lengths, i * length_ranges.size() + j)));
  }
  return table;
}

/// What tiles make of the lengths down, sizes of tiles across.
Table tiles_table(const ShapeCounts& shapes) {
  Table table{"Judged cases by what tiles of queries and keys make of M and N",
              {Column{"queries and keys"}},
              "shapes",
              /*sorts=*/false};
  for (const ShapeFacet facet : tile_facets) table.columns.push_back({std::string(name_of(facet)), true});
  for (std::size_t i = 0; i < classes_in(ShapeFacet::tiles_16); ++i) {
    TableRow& row = table.rows.emplace_back(TableRow{{class_words(ShapeFacet::tiles_16, i)}});
    for (const ShapeFacet facet : tile_facets) row.cells.emplace_back(count_text(count_in(shapes, facet, i)));
  }
  return table;
}

Group lists(const ShapeCounts& shapes) {
  Group tables{.kind = Group::Kind::tables, .blocks = {}};
  for (const ShapeFacet facet : list_facets) {
    Table table{"", {{std::string(name_of(facet))}, {"judged", true}}, "", /*sorts=*/false};
    for (std::size_t i = 0; i < classes_in(facet); ++i)
      table.rows.push_back({{class_words(facet, i), count_text(count_in(shapes, facet, i))}});
    tables.blocks.emplace_back(std::move(table));
  }
  return tables;
}

/// "M 320, N 8192, dk 256, 4 heads" of all judged cases.
Paragraph largest_of(const ShapeCounts& shapes) {
  return {fmt::format("The largest judged: {}, each by itself.", shapes.largest ? reach_text(*shapes.largest) : "none"),
          "note"};
}

}  // namespace

Blocks shapes_page(const Reported& run) {
  const ShapeCounts shapes = shapes_of(run.summary);
  if (run.summary.judged() == 0) return {};
  if (shapes.empty()) return {Paragraph{"Not recorded: the journal is of an older version.", "note"}};
  return {largest_of(shapes), lengths_table(shapes), tiles_table(shapes), lists(shapes)};
}

Brief shapes_brief(const Reported& run) {
  const ShapeCounts shapes = shapes_of(run.summary);
  if (shapes.empty()) return {};
  return {"Shapes", "rows", {largest_of(shapes)}, {tiles_table(shapes)}};
}

}  // namespace attest
