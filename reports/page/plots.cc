#include "reports/page/plots.h"

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

#include "core/support/visible.h"
#include "core/value/dtype.h"
#include "reports/page/packed.h"
#include "reports/page/print.h"
#include "reports/run/embedded_files.h"
#include "reports/text/text.h"

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

/// The plot of page/plots/NAME.json, with what all plots share, over these rows.
Json spec_of(std::string_view name, const std::string& words, Json values) {
  Json spec = Json::parse(embedded_file("page/plots/common.json"));
  spec.update(Json::parse(embedded_file(fmt::format("page/plots/{}.json", name))));
  spec["description"] = words;
  spec["data"][0]["values"] = std::move(values);
  return spec;
}

/// The scale of this name.
Json& scale_of(Json& spec, std::string_view name) {
  Json& scales = spec["scales"];
  return *std::find_if(scales.begin(), scales.end(), [&](const Json& scale) { return scale["name"] == name; });
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
  plot.spec = spec_of("distribution", plot.words, std::move(values));
  return plot;
}

Plot errors_by_keys(const std::vector<ErrorsByKeys>& all) {
  Plot plot{"Error by number of keys",
            "Largest error over u Σα|v| among the worst elements of the cases, by the octave of N; dashed: the proved "
            "bound of that element, by the same measure; both are cut at 10⁻² and 10⁴; dotted: √N, which is how "
            "roundings of random sign "
            "would add up.",
            {}};
  Json values = Json::array(), roots = Json::array();
  std::set<int> exponents;
  for (const ErrorsByKeys& one : worst_lines(all, plot.words)) {
    for (const auto& [exponent, scaled] : one.octaves) {
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
  plot.spec = spec_of("errors-by-keys", plot.words, std::move(values));
  plot.spec["data"][1]["values"] = std::move(roots);
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
  plot.spec = spec_of("worst-by-scores", plot.words, std::move(values));
  Json classes = Json::array();
  for (std::size_t i = 0; i < key_classes; ++i) classes.push_back(key_class_name(i));
  scale_of(plot.spec, "x")["domain"] = classes;
  return plot;
}

/// Where exp of a score below the largest one leaves the normal numbers of the dtypes here, and where all of them.
Json underflow_edges(const std::vector<Measured>& all) {
  std::set<std::string> dtypes;
  for (const Measured& one : all) dtypes.insert(one.dtype);
  Json edges = Json::array();
  for (const std::string& name : dtypes) {
    const std::optional<DType> dtype = named<DType>(name);
    if (!dtype || !is_floating(*dtype)) continue;
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
  plot.spec = spec_of("errors-by-range", plot.words, std::move(values));
  plot.spec["data"][1]["values"] = edges;
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
  plot.spec = spec_of("budgets", plot.words, std::move(values));
  plot.spec["height"] = 24 * std::max<std::size_t>(bars, 1);
  Json stages = Json::array();
  for (std::size_t i = 0; i < stage_count; ++i) stages.push_back(name_of(static_cast<Stage>(i)));
  scale_of(plot.spec, "colour")["domain"] = stages;
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
  plot.spec = spec_of("signed-errors", plot.words, std::move(values));
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
  plot.spec = spec_of("progress", plot.words, std::move(values));
  return plot;
}

std::vector<Plot> plots_of(const Summary& summary, std::vector<BatchRecord> batches) {
  std::vector<Plot> plots;
  if (const std::vector<Measured> all = measured_in(summary); !all.empty()) {
    std::vector<ErrorsByKeys> by_keys;
    for (const Measured& one : all) by_keys.push_back({one.name, one.worst, one.table->octaves});
    plots = {distribution(all), errors_by_keys(by_keys), heat_map(all), signs(all), errors_by_range(all), budgets(all)};
  }
  if (const std::vector<Progress> all = progress_of(std::move(batches)); !all.empty()) plots.push_back(campaign(all));
  return plots;
}

/// The scripts at the end of the page that fill the figures.
std::string script_of(const std::vector<Plot>& plots, const std::string& nonce) {
  Json specs = Json::array();
  for (const Plot& plot : plots) specs.push_back(plot.spec);
  const std::string data = json_for_script(specs.dump(-1, ' ', false, Json::error_handler_t::replace));
  return fmt::format(
      "<script type=\"application/json\" id=\"plot-data\">{}</script>\n<script type=\"text/plain\" id=\"vega\">{}</script>\n"
      "<script nonce=\"{}\">/*\nThe plots are drawn by Vega, which stands above, packed by gzip:\n{}*/\n{}</script>\n",
      data, base64_of(embedded_file("vega/vega.min.js.gz")), nonce, embedded_file("vega/LICENSE"),
      embedded_file("page/plots.js"));
}

/// The figures of a page, and what fills them.
PagePlots drawn(const std::vector<Plot>& plots, const std::string& nonce) {
  if (plots.empty()) return {};
  if (embedded_file("vega/vega.min.js.gz").empty()) {
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

}  // namespace

std::string json_for_script(std::string_view json) {
  std::string text;
  for (const char c : visible_json(json))
    text += c == '<' || c == '>' || c == '&' ? fmt::format("\\u{:04x}", static_cast<unsigned>(c)) : std::string(1, c);
  return text;
}

PagePlots page_plots(const Summary& summary, const std::vector<BatchRecord>& campaign, const std::string& nonce) {
  return drawn(plots_of(summary, campaign), nonce);
}

PagePlots plots_of_errors_by_keys(const std::map<std::string, std::vector<ErrorsByKeys>>& lines,
                                  const std::string& nonce) {
  std::vector<Plot> plots;
  for (const auto& [title, some] : lines) {
    plots.push_back(errors_by_keys(some));
    plots.back().title = title;
  }
  return drawn(plots, nonce);
}

}  // namespace attest
