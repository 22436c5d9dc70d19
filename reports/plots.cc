#include "plots.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>

#include "attest/dtype.h"
#include "attest/visible.h"
#include "html_elements.h"
#include "text.h"
#include "vega_script.h"

namespace attest {
namespace {

using Json = nlohmann::ordered_json;

struct Plot {
  std::string title, words;
  Json spec;
};

/// A kernel in a dtype, and its table.
struct Measured {
  std::string name, dtype;
  const ErrorTable* table;
  double worst;  ///< utilisation
};

std::vector<Measured> measured_in(const Summary& summary) {
  std::vector<Measured> all;
  for (const KernelSummary& kernel : summary.kernels) {
    for (const PropertySummary& property : kernel.properties) {
      if (!property.tally.errors.empty())
        all.push_back({one_line(kernel.name + " " + kernel.dtype), kernel.dtype, &property.tally.errors,
                       property.tally.worst_utilisation});
    }
  }
  return all;
}

/// Lines that a plot shows: more are not told apart by colour.
constexpr std::size_t most_lines = 10;

/// Those with the largest `worst`, in their order. `words` gains a sentence where some are left out.
template <class Line>
std::vector<Line> worst_lines(const std::vector<Line>& all, std::string& words) {
  if (all.size() <= most_lines) return all;
  std::vector<double> sizes;
  sizes.reserve(all.size());
  for (const Line& one : all) sizes.push_back(one.worst);
  std::ranges::sort(sizes, std::greater());
  const double least = sizes[most_lines - 1];
  auto ties = std::ranges::count(sizes.begin(), sizes.begin() + most_lines, least);
  std::vector<Line> kept;
  for (const Line& one : all)
    if (one.worst > least || (one.worst == least && ties-- > 0)) kept.push_back(one);
  words += fmt::format(" Of {} the {} with the largest utilisation.", all.size(), most_lines);
  return kept;
}

/// What all plots share; text and lines take the colour of the page, light or dark.
Json spec_of(const std::string& words, Json values) {
  Json spec;
  spec["description"] = words;
  spec["width"] = 440;
  spec["height"] = 220;
  spec["padding"] = 6;
  spec["background"] = nullptr;
  spec["config"] = Json::parse(R"json({"axis": {"labelColor": "currentColor", "titleColor": "currentColor",
    "domainColor": "currentColor", "tickColor": "currentColor", "gridColor": "currentColor", "gridOpacity": 0.15,
    "labelFontSize": 12, "titleFontSize": 12}, "legend": {"labelColor": "currentColor", "titleColor": "currentColor",
    "labelFontSize": 12, "labelLimit": 210, "orient": "bottom", "direction": "horizontal", "columns": 2}})json");
  spec["data"] = Json::array({{{"name", "rows"}, {"values", std::move(values)}}});
  return spec;
}

/// A line for each of field "of", coloured by it.
Json lines(std::string_view interpolate, std::string_view y, bool dashed) {
  Json mark = Json::parse(R"json({"type": "group", "from": {"facet": {"name": "one", "data": "rows", "groupby": "of"}},
    "marks": [{"type": "line", "from": {"data": "one"}, "encode": {"enter": {"x": {"scale": "x", "field": "x"},
    "y": {"scale": "y", "field": "y"}, "stroke": {"scale": "colour", "field": "of"},
    "strokeWidth": {"value": 2}}}}]})json");
  Json& enter = mark["marks"][0]["encode"]["enter"];
  enter["y"]["field"] = y;
  enter["interpolate"]["value"] = interpolate;
  if (dashed) enter["strokeDash"]["value"] = Json::array({5, 4});
  return mark;
}

Json colours() {
  return Json::parse(R"json({"name": "colour", "type": "ordinal", "range": "category",
    "domain": {"data": "rows", "field": "of"}})json");
}

Plot distribution(const std::vector<Measured>& all) {
  Plot plot{"Utilisation",
            "Share of elements whose error is at most that share of the proved bound; the line is the bound.",
            {}};
  Json values = Json::array();
  for (const Measured& one : worst_lines(all, plot.words)) {
    std::array<std::int64_t, utilisation_bins> bins{};
    std::int64_t elements = 0, seen = 0;
    for (std::size_t bin = 0; bin < utilisation_bins; ++bin)
      elements += bins[bin] = one.table->signs[0][bin] + one.table->signs[1][bin];
    for (std::size_t bin = 0; bin < utilisation_bins; ++bin) {
      seen += bins[bin];
      values.push_back({{"of", one.name},
                        {"x", bin + 1 < utilisation_bins ? utilisation_edge(bin) : 4.0},
                        {"y", elements == 0 ? 0 : static_cast<double>(seen) / static_cast<double>(elements)}});
    }
  }
  plot.spec = spec_of(plot.words, std::move(values));
  plot.spec["scales"] = Json::array(
      {Json::parse(R"json({"name": "x", "type": "log", "base": 2, "range": "width", "domain": [6.1e-5, 4]})json"),
       Json::parse(R"json({"name": "y", "type": "linear", "range": "height", "domain": [0, 1]})json"), colours()});
  plot.spec["axes"] = Json::parse(R"json([{"orient": "bottom", "scale": "x", "title": "error / allowed", "tickCount": 8,
    "format": ".1~g", "values": [0.0001, 0.001, 0.01, 0.1, 1]}, {"orient": "left", "scale": "y", "format": "%",
    "title": "elements", "grid": true}])json");
  plot.spec["legends"] = Json::parse(R"json([{"stroke": "colour", "symbolType": "stroke"}])json");
  plot.spec["marks"] = Json::array(
      {lines("step-before", "y", false), Json::parse(R"json({"type": "rule", "encode": {"enter": {"x": {"scale": "x",
        "value": 1}, "y": {"value": 0}, "y2": {"signal": "height"}, "stroke": {"value": "#c4314b"},
        "strokeDash": {"value": [4, 3]}}}})json")});
  return plot;
}

Plot errors_by_keys(const std::vector<Measured>& all) {
  Plot plot{"Error by number of keys",
            "Largest error over u Σα|v| among the worst elements of the cases, by the octave of N; dashed: the proved "
            "bound of that element, by the same measure; both are cut at 10⁻² and 10⁴; dotted: √N, which is how "
            "roundings of random sign "
            "would add up.",
            {}};
  Json values = Json::array(), roots = Json::array();
  std::set<int> exponents;
  for (const Measured& one : worst_lines(all, plot.words)) {
    for (const auto& [exponent, scaled] : one.table->octaves) {
      const double error = size_of_code(scaled.error), allowed = size_of_code(scaled.allowed);
      // Beyond these underflow speaks, or nothing was rounded.
      constexpr double least = 0.01, most = 1e4;
      exponents.insert(exponent);
      values.push_back({{"of", one.name},
                        {"x", std::exp2(exponent)},
                        {"y", std::clamp(error, least, most)},
                        {"allowed", std::clamp(allowed, least, most)}});
    }
  }
  for (const int exponent : exponents)
    roots.push_back({{"x", std::exp2(exponent)}, {"y", std::sqrt(std::exp2(exponent))}});
  plot.spec = spec_of(plot.words, std::move(values));
  plot.spec["data"].push_back({{"name", "roots"}, {"values", std::move(roots)}});
  plot.spec["scales"] = Json::array(
      {Json::parse(R"json({"name": "x", "type": "log", "base": 2, "range": "width", "domain": {"data": "rows",
        "field": "x"}})json"),
       Json::parse(R"json({"name": "y", "type": "log", "base": 10, "range": "height", "nice": true,
        "domain": {"fields": [{"data": "rows", "field": "y"}, {"data": "rows", "field": "allowed"},
        {"data": "roots", "field": "y"}]}})json"),
       colours()});
  plot.spec["axes"] = Json::parse(R"json([{"orient": "bottom", "scale": "x", "title": "N, from", "format": "d"},
    {"orient": "left", "scale": "y", "title": "error / (u Σα|v|)", "grid": true, "tickCount": 6, "format": ".1~g"
}])json");
  plot.spec["legends"] = Json::parse(R"json([{"stroke": "colour", "symbolType": "stroke"}])json");
  plot.spec["marks"] = Json::array({lines("linear", "y", false), lines("linear", "allowed", true)});
  plot.spec["marks"].push_back(Json::parse(R"json({"type": "line", "from": {"data": "roots"}, "encode": {"enter": {
    "x": {"scale": "x", "field": "x"}, "y": {"scale": "y", "field": "y"}, "stroke": {"value": "currentColor"},
    "strokeWidth": {"value": 1.5}, "strokeDash": {"value": [1, 4]}, "strokeCap": {"value": "round"}}}})json"));
  return plot;
}

Plot heat_map(const std::vector<Measured>& all) {
  std::map<std::pair<std::size_t, std::string>, LogCode> worst;
  for (const Measured& one : all)
    for (const auto& [key, cell] : one.table->scores) worst[key] = std::max(worst[key], cell.worst);
  Json values = Json::array();
  for (const auto& [key, code] : worst) {
    const double size = std::min(size_of_code(code), 4.0);
    values.push_back({{"x", key_class_name(key.first)}, {"y", key.second}, {"value", size}});
  }
  Plot plot{
      "Where the bound is used up", "Worst utilisation of any kernel here, by number of keys and kind of scores.", {}};
  plot.spec = spec_of(plot.words, std::move(values));
  plot.spec["height"] = 320;
  plot.spec["scales"] = Json::array(
      {Json::parse(R"json({"name": "x", "type": "band", "range": "width", "padding": 0.02})json"),
       Json::parse(R"json({"name": "y", "type": "band", "range": "height", "padding": 0.02, "domain": {"data": "rows",
        "field": "y", "sort": true}})json"),
       Json::parse(R"json({"name": "heat", "type": "linear", "range": {"scheme": "viridis"}, "domain": [0, 1],
        "clamp": true})json")});
  Json classes = Json::array();
  for (std::size_t i = 0; i < key_classes; ++i) classes.push_back(key_class_name(i));
  plot.spec["scales"][0]["domain"] = classes;
  plot.spec["axes"] = Json::parse(R"json([{"orient": "bottom", "scale": "x"}, {"orient": "left", "scale": "y"}])json");
  plot.spec["legends"] =
      Json::parse(R"json([{"fill": "heat", "title": "worst utilisation", "gradientLength": 200}])json");
  plot.spec["marks"] = Json::parse(R"json([{"type": "rect", "from": {"data": "rows"}, "encode": {"enter": {
    "x": {"scale": "x", "field": "x"}, "y": {"scale": "y", "field": "y"}, "width": {"scale": "x", "band": 1},
    "height": {"scale": "y", "band": 1}, "fill": {"scale": "heat", "field": "value"}}}},
    {"type": "text", "from": {"data": "rows"}, "encode": {"enter": {"x": {"scale": "x", "field": "x", "band": 0.5},
    "y": {"scale": "y", "field": "y", "band": 0.5}, "align": {"value": "center"}, "baseline": {"value": "middle"},
    "text": {"signal": "datum.value >= 4 ? '≥ 4' : format(datum.value, '.2~f')"},
    "fill": {"signal": "datum.value > 0.6 ? '#000' : '#fff'"}, "fontSize": {"value": 11}}}}])json");
  return plot;
}

/// Where exp of a score below the largest one leaves the normal numbers of the dtypes here, and where all of them.
Json underflow_edges(const std::vector<Measured>& all) {
  std::set<std::string> dtypes;
  for (const Measured& one : all) dtypes.insert(one.dtype);
  Json edges = Json::array();
  for (const std::string& name : dtypes) {
    const std::optional<DType> dtype = dtype_named(name);
    if (!dtype || *dtype == DType::boolean) continue;
    edges.push_back({{"x", -std::log(format_of(*dtype).min_normal)}, {"text", name + " subnormal"}});
    edges.push_back({{"x", -std::log(format_of(*dtype).min_subnormal)}, {"text", name + " zero"}});
  }
  return edges;
}

Plot errors_by_range(const std::vector<Measured>& all) {
  Plot plot{
      "Error by range of scores",
      "Largest error over u Σα|v| among the worst elements of the cases, by the octave of the row's largest score "
      "less its least; dashed: the proved bound of that element; both are cut at 10⁻² and 10⁴. Upright lines: "
      "where exp becomes subnormal, and then 0:",
      {}};
  Json values = Json::array();
  std::string left_out;
  const std::vector<Measured> shown = worst_lines(all, left_out);
  const Json edges = underflow_edges(shown);
  for (std::size_t i = 0; i < edges.size(); ++i)
    plot.words += fmt::format("{} {} at {:.1f}", i == 0 ? "" : ",", edges[i]["text"].get<std::string>(),
                              edges[i]["x"].get<double>());
  plot.words += '.' + left_out;
  for (const Measured& one : shown) {
    for (const auto& [exponent, scaled] : one.table->ranges) {
      const double error = size_of_code(scaled.error), allowed = size_of_code(scaled.allowed);
      constexpr double least = 0.01, most = 1e4;
      values.push_back({{"of", one.name},
                        {"x", std::exp2(exponent)},
                        {"y", std::clamp(error, least, most)},
                        {"allowed", std::clamp(allowed, least, most)}});
    }
  }
  plot.spec = spec_of(plot.words, std::move(values));
  plot.spec["data"].push_back({{"name", "edges"}, {"values", edges}});
  plot.spec["scales"] =
      Json::array({Json::parse(R"json({"name": "x", "type": "log", "base": 2, "range": "width", "domain": {"fields": [
        {"data": "rows", "field": "x"}, {"data": "edges", "field": "x"}]}})json"),
                   Json::parse(R"json({"name": "y", "type": "log", "base": 10, "range": "height", "nice": true,
        "domain": {"data": "rows", "fields": ["y", "allowed"]}})json"),
                   colours()});
  plot.spec["axes"] = Json::parse(R"json([{"orient": "bottom", "scale": "x", "title": "range of scores, from",
    "format": "~g", "tickCount": 8}, {"orient": "left", "scale": "y", "title": "error / (u Σα|v|)", "grid": true,
    "tickCount": 6, "format": ".1~g"}])json");
  plot.spec["legends"] = Json::parse(R"json([{"stroke": "colour", "symbolType": "stroke"}])json");
  plot.spec["marks"] = Json::array({lines("linear", "y", false), lines("linear", "allowed", true),
                                    Json::parse(R"json({"type": "rule", "from": {"data": "edges"}, "encode": {"enter": {
        "x": {"scale": "x", "field": "x"}, "y": {"value": 0}, "y2": {"signal": "height"},
        "stroke": {"value": "#c4314b"}, "strokeOpacity": {"value": 0.6}, "strokeDash": {"value": [4, 3]}}}})json")});
  return plot;
}

/// More bars than these are no picture.
constexpr std::size_t most_bars = 40;

Plot budgets(const std::vector<Measured>& all) {
  Json values = Json::array();
  std::size_t bars = 0;
  for (const Measured& one : all) {
    ErrorCell ordinary, whole;
    for (const auto& [keys, cell] : one.table->ordinary) ordinary.merge(cell);
    for (const auto& [key, cell] : one.table->cells) whole.merge(cell);
    const Budget& budget = ordinary.cases > 0 ? ordinary.budget : whole.budget;
    if (budget == Budget{} || bars == most_bars) continue;
    ++bars;
    double from = 0;
    for (std::size_t i = 0; i < stage_count; ++i) {
      const double to = from + budget[i] / 1000.0;
      values.push_back({{"of", one.name}, {"stage", name_of(static_cast<Stage>(i))}, {"from", from}, {"to", to}});
      from = to;
    }
  }
  Plot plot{
      "Where the allowed error comes from",
      "Shares of the proved bound at the worst case with ordinary inputs (at the worst of all where there was none): "
      "not knowing the scores, the exponentials, rounded weights, sums over keys, normalisation and output, "
      "underflow. It is what is allowed, not what was found.",
      {}};
  plot.spec = spec_of(plot.words, std::move(values));
  plot.spec["height"] = 24 * std::max<std::size_t>(bars, 1);
  plot.spec["scales"] = Json::parse(R"json([
    {"name": "x", "type": "linear", "range": "width", "domain": [0, 1]},
    {"name": "y", "type": "band", "range": "height", "padding": 0.15, "domain": {"data": "rows", "field": "of"}},
    {"name": "colour", "type": "ordinal", "range": {"scheme": "tableau10"}}])json");
  Json stages = Json::array();
  for (std::size_t i = 0; i < stage_count; ++i) stages.push_back(name_of(static_cast<Stage>(i)));
  plot.spec["scales"][2]["domain"] = stages;
  plot.spec["axes"] = Json::parse(R"json([{"orient": "bottom", "scale": "x", "format": "%", "title": "of the bound"},
    {"orient": "left", "scale": "y"}])json");
  plot.spec["legends"] = Json::parse(R"json([{"fill": "colour", "symbolType": "square", "columns": 6}])json");
  plot.spec["marks"] = Json::parse(R"json([{"type": "rect", "from": {"data": "rows"}, "encode": {"enter": {
    "x": {"scale": "x", "field": "from"}, "x2": {"scale": "x", "field": "to"}, "y": {"scale": "y", "field": "of"},
    "height": {"scale": "y", "band": 1}, "fill": {"scale": "colour", "field": "stage"}}}}])json");
  return plot;
}

Plot signs(const std::vector<Measured>& all) {
  std::array<std::array<std::int64_t, utilisation_bins>, 2> sum{};
  for (const Measured& one : all)
    for (std::size_t side = 0; side < 2; ++side)
      for (std::size_t bin = 0; bin < utilisation_bins; ++bin) sum[side][bin] += one.table->signs[side][bin];
  Json values = Json::array();
  for (std::size_t side = 0; side < 2; ++side) {
    for (std::size_t bin = 1; bin < utilisation_bins; ++bin) {
      const double place = (side == 0 ? 1 : -1) * static_cast<double>(bin);
      values.push_back({{"x", place}, {"y", sum[side][bin]}});
    }
  }
  Plot plot{"Signed errors",
            fmt::format("Elements by found − exact over the bound, answers too small to the left. Of all kernels here; "
                        "{} elements of less than 2⁻¹⁴ of the bound are left out.",
                        sum[0][0] + sum[1][0]),
            {}};
  plot.spec = spec_of(plot.words, std::move(values));
  plot.spec["scales"] = Json::parse(R"json([{"name": "x", "type": "linear", "range": "width", "domain": [-65, 65]},
    {"name": "y", "type": "linear", "range": "height", "nice": true, "zero": true, "domain": {"data": "rows",
    "field": "y"}}])json");
  plot.spec["axes"] = Json::parse(R"json([{"orient": "bottom", "scale": "x", "title": "(found − exact) / allowed",
    "values": [-56, -43, -29, -16, 0, 16, 29, 43, 56], "encode": {"labels": {"update": {"text": {"signal":
    "datum.value == 0 ? '0' : (datum.value < 0 ? '−' : '') + format(pow(2, abs(datum.value) / 4 - 14), '.1~g')"
}
}
}
}
},
    {"orient": "left", "scale": "y", "title": "elements", "grid": true, "format": "~s"}])json");
  plot.spec["marks"] = Json::parse(R"json([{"type": "rect", "from": {"data": "rows"}, "encode": {"enter": {
    "x": {"scale": "x", "signal": "datum.x - 0.45"}, "x2": {"scale": "x", "signal": "datum.x + 0.45"},
    "y": {"scale": "y", "field": "y"}, "y2": {"scale": "y", "value": 0},
    "fill": {"signal": "abs(datum.x) > 56 ? '#c4314b' : (datum.x < 0 ? '#4c78a8' : '#f58518')"
}
}
}
}])json");
  return plot;
}

/// The worst of a campaign's runs on one subject, as they went on.
struct Progress {
  std::string name;
  std::vector<std::pair<std::int64_t, double>> points;  ///< runs done, worst utilisation so far
  double worst = 0;
};

std::vector<Progress> progress_of(std::vector<BatchRecord> batches) {
  std::ranges::sort(batches, [](const BatchRecord& a, const BatchRecord& b) {
    return std::tie(a.subject, a.first_k, a.last_k) < std::tie(b.subject, b.first_k, b.last_k);
  });
  std::vector<Progress> all;
  const Subject* last = nullptr;
  for (const BatchRecord& batch : batches) {
    if (last == nullptr || *last != batch.subject) {
      const Subject& subject = batch.subject;
      all.push_back({one_line(fmt::format("{} {} {}", subject.kernel, subject.dtype, subject.property)), {}, 0});
    }
    last = &batch.subject;
    Progress& one = all.back();
    one.worst = std::max(one.worst, batch.tally.worst_utilisation);
    if (batch.last_k > 0) one.points.emplace_back(batch.last_k, one.worst);
  }
  // One range, as a merged journal has, is no course of anything.
  std::erase_if(all, [](const Progress& one) { return one.points.size() < 2 || one.worst == 0; });
  return all;
}

Plot campaign(const std::vector<Progress>& all) {
  Plot plot{
      "Progress of the search",
      "Worst utilisation found so far, by the number of runs; the red line is the bound, and what lies beyond 4 is "
      "drawn at 4.",
      {}};
  Json values = Json::array();
  for (const Progress& one : worst_lines(all, plot.words)) {
    for (const auto& [runs, worst] : one.points)
      values.push_back({{"of", one.name}, {"x", runs}, {"y", std::min(worst, 4.0)}});
  }
  plot.spec = spec_of(plot.words, std::move(values));
  plot.spec["scales"] = Json::array(
      {Json::parse(R"json({"name": "x", "type": "log", "base": 10, "range": "width", "domain": {"data": "rows",
        "field": "x"}})json"),
       Json::parse(R"json({"name": "y", "type": "linear", "range": "height", "nice": true, "zero": true,
        "domain": {"fields": [{"data": "rows", "field": "y"}, [1]]}})json"),
       colours()});
  plot.spec["axes"] = Json::parse(R"json([{"orient": "bottom", "scale": "x", "title": "runs", "tickCount": 6,
    "format": "~s"}, {"orient": "left", "scale": "y", "title": "worst error / allowed", "grid": true}])json");
  plot.spec["legends"] = Json::parse(R"json([{"stroke": "colour", "symbolType": "stroke"}])json");
  plot.spec["marks"] = Json::array(
      {lines("step-after", "y", false), Json::parse(R"json({"type": "rule", "encode": {"enter": {"y": {"scale": "y",
        "value": 1}, "x": {"value": 0}, "x2": {"signal": "width"}, "stroke": {"value": "#c4314b"},
        "strokeDash": {"value": [4, 3]}}}})json")});
  return plot;
}

std::vector<Plot> plots_of(const Summary& summary, std::vector<BatchRecord> batches) {
  std::vector<Plot> plots;
  if (const std::vector<Measured> all = measured_in(summary); !all.empty())
    plots = {distribution(all), errors_by_keys(all), heat_map(all), signs(all), errors_by_range(all), budgets(all)};
  if (const std::vector<Progress> all = progress_of(std::move(batches)); !all.empty()) plots.push_back(campaign(all));
  return plots;
}

/// The scripts at the end of the page that fill the figures.
std::string script_of(const std::vector<Plot>& plots, const std::string& nonce) {
  Json specs = Json::array();
  for (const Plot& plot : plots) specs.push_back(plot.spec);
  const std::string data = json_for_script(specs.dump(-1, ' ', false, Json::error_handler_t::replace));
  return fmt::format(
      "<script type=\"application/json\" id=\"plot-data\">{}</script>\n<script nonce=\"{}\">/*\n{}*/\n{}</script>\n"
      "<script nonce=\"{}\">\nJSON.parse(document.getElementById('plot-data').textContent).forEach((spec, i) => {{\n"
      "  const place = document.getElementById('plot-' + i);\n"
      "  new vega.View(vega.parse(spec), {{renderer: 'svg', container: place}}).runAsync().then(() => {{\n"
      "    place.dataset.drawn = 'yes';\n  }});\n}});\n</script>\n",
      data, nonce, vega_licence(), vega_script(), nonce);
}

}  // namespace

std::string json_for_script(std::string_view json) {
  std::string text;
  for (const char c : visible_json(json))
    text += c == '<' || c == '>' || c == '&' ? fmt::format("\\u{:04x}", static_cast<unsigned>(c)) : std::string(1, c);
  return text;
}

PagePlots page_plots(const Summary& summary, const std::vector<BatchRecord>& campaign, const std::string& nonce) {
  const std::vector<Plot> plots = plots_of(summary, campaign);
  if (plots.empty()) return {};
  if (vega_script().empty()) {
    return {
        "<p>This program was built without Vega, so there are tables only: <code>npm ci</code> in reports/vega, then "
        "build again.</p>",
        ""};
  }
  std::string html;
  for (std::size_t i = 0; i < plots.size(); ++i) {
    html += fmt::format(
        "<figure class=\"plot\"><h3>{}</h3><div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"{}\"><div "
        "id=\"plot-{}\"></div></div><figcaption>{}</figcaption></figure>",
        escaped(plots[i].title), escaped(plots[i].title), i, escaped(plots[i].words));
  }
  return {"<div class=\"plots\">" + html + "</div>", script_of(plots, nonce)};
}

}  // namespace attest
