#include <fmt/format.h>

#include <algorithm>

#include "reports/page/print.h"
#include "reports/results/summary_words.h"
#include "reports/sections/sections.h"
#include "reports/text/text.h"

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
  for (const ExtentRange& keys : length_ranges)
    table.columns.push_back({.name = range_text(keys), .number = true, .about = "judged by N"});
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
  for (const ShapeFacet facet : tile_facets)
    table.columns.push_back({.name = std::string(name_of(facet)), .number = true, .about = "judged by tile"});
  for (std::size_t i = 0; i < classes_in(ShapeFacet::tiles_16); ++i) {
    TableRow& row = table.rows.emplace_back(TableRow{{class_words(ShapeFacet::tiles_16, i)}});
    for (const ShapeFacet facet : tile_facets) row.cells.emplace_back(count_text(count_in(shapes, facet, i)));
  }
  return table;
}

Group lists(const ShapeCounts& shapes) {
  Group tables{.kind = Group::Kind::tables, .blocks = {}};
  for (const ShapeFacet facet : list_facets) {
    Table table{"", {{.name = std::string(name_of(facet)), .about = "extent"}, {"judged", true}}, "", /*sorts=*/false};
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

/// Cells of a picture, each with the count of a class: the more, the stronger the colour; grey where there was no case.
class Heat {
 public:
  Heat(int width, int height) : width_(width), height_(height) {}
  void label(double x, double y, std::string_view words, std::string_view anchor = "middle") {
    svg_ += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"{}\">{}</text>", x, y, anchor, escaped(words));
  }
  void cell(int x, int y, int wide, const ShapeCount& count, std::string_view words) {
    // Ones, tens, hundreds, and more.
    int level = 0;
    for (std::int64_t least = 1; level < 4 && count.judged >= least; least *= 10) ++level;
    svg_ += fmt::format("<rect class=\"l{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"><title>{}: {}</title></rect>",
                        level, x, y, wide - 1, cell_height - 1, escaped(words),
                        count.judged == 0 ? "never judged" : with_commas(count.judged) + " judged");
  }
  [[nodiscard]] std::string html(std::string_view name) const {
    return fmt::format(
        "<svg class=\"heat\" role=\"img\" aria-label=\"{}\" width=\"{}\" height=\"{}\" viewBox=\"0 0 {} "
        "{}\">{}</svg>",
        escaped(name), width_, height_, width_, height_, svg_);
  }
  static constexpr int cell_height = 15;

 private:
  int width_, height_;
  std::string svg_;
};

/// M down, N across.
std::string heat_of_lengths(const ShapeCounts& shapes) {
  constexpr int left = 84, wide = 21, top = 17;
  constexpr auto ranges = static_cast<int>(length_ranges.size());
  Heat heat(left + ranges * wide, top + ranges * Heat::cell_height + 16);
  heat.label(left - 6, top - 5, "M \\ N", "end");
  constexpr std::array<std::string_view, length_ranges.size()> ends{"0",   "1",  "16",  "64", "128",
                                                                    "512", "4k", "64k", "∞"};
  for (int i = 0; i < ranges; ++i) {
    const auto row = static_cast<std::size_t>(i);
    heat.label(left - 6, top + i * Heat::cell_height + 11, range_text(length_ranges[row]), "end");
    heat.label(left + i * wide + wide / 2.0, top - 5, ends[row]);
    for (int j = 0; j < ranges; ++j) {
      const std::size_t index = row * length_ranges.size() + static_cast<std::size_t>(j);
      heat.cell(left + j * wide, top + i * Heat::cell_height, wide, count_in(shapes, ShapeFacet::lengths, index),
                class_words(ShapeFacet::lengths, index));
    }
  }
  return heat.html("Judged cases by M and N");
}

/// Classes below each other, in words.
std::string heat_of(const ShapeCounts& shapes, ShapeFacet facet) {
  constexpr int wide = 14, top = 17, words = 118;
  const auto classes = static_cast<int>(classes_in(facet));
  Heat heat(wide + words, top + classes * Heat::cell_height + 16);
  heat.label(0, top - 5, name_of(facet), "start");
  for (int i = 0; i < classes; ++i) {
    const auto index = static_cast<std::size_t>(i);
    const int y = top + i * Heat::cell_height;
    heat.cell(0, y, wide, count_in(shapes, facet, index), class_words(facet, index));
    heat.label(wide + 5, y + 11, class_words(facet, index), "start");
  }
  return heat.html(fmt::format("Judged cases by {}", name_of(facet)));
}

}  // namespace

Blocks shapes_pictures(const Reported& run) {
  const ShapeCounts shapes = shapes_of(run.summary);
  if (run.summary.judged() == 0 || shapes.empty()) return {};
  return {Drawing{
      fmt::format("<div class=\"heats\">{}{}</div>", heat_of_lengths(shapes), heat_of(shapes, ShapeFacet::head_dim)),
      "The stronger the colour, the more judged cases (ones, tens, hundreds, thousands); grey: never judged. "
      "The numbers stand under Shapes."}};
}

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
