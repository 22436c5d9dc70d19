#include "reports/results/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/support/errors.h"
#include "core/support/files.h"
#include "core/support/json_reader.h"
#include "core/support/names.h"
#include "core/support/visible.h"
#include "reports/results/saved_journal.h"
#include "reports/results/tolerance.h"
#include "reports/run_folder/journal_rules.h"
#include "reports/run_folder/run_folder.h"

namespace attest {
namespace {

using Json = nlohmann::json;

constexpr std::array outcomes{Outcome::held, Outcome::violated, Outcome::skipped, Outcome::inconclusive};

/// What the manifest says of the dtype's arithmetic, and its claims.
void take_manifest(KernelFigures& kernel, const std::string& text) {
  const Json manifest = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!manifest.is_object()) return;
  if (const auto all = manifest.find("arithmetic"); all != manifest.end() && all->is_object()) {
    const auto one = all->find(kernel.dtype);
    kernel.arithmetic = (one == all->end() ? *all : *one).dump();
  }
  if (const auto claims = manifest.find("claims"); claims != manifest.end() && claims->is_array()) {
    for (const Json& claim : *claims)
      if (claim.is_string()) kernel.claims.push_back(claim.get<std::string>());
  }
  std::ranges::sort(kernel.claims);
}

[[noreturn]] void refuse(std::string_view where, std::string_view why) {
  throw UsageError(fmt::format("{}{}", where, why));
}

/// The elements of an array that may be absent.
void each_of(const JsonObject& object, std::string_view key,
             const std::function<void(const Json&, std::string)>& take) {
  const Json* array = object.find(key);
  if (array == nullptr) return;
  if (!array->is_array()) object.refuse(key, "it must be an array");
  for (std::size_t i = 0; i < array->size(); ++i) take((*array)[i], fmt::format("{}[{}]", object.path(key), i));
}

/// An array of `count` whole numbers.
std::vector<std::int64_t> numbers_of(const Json& value, std::string_view where, std::size_t count) {
  std::vector<std::int64_t> numbers;
  const bool whole = value.is_array() && value.size() == count &&
                     std::ranges::all_of(value, [](const Json& one) { return one.is_number_integer(); });
  if (!whole) refuse(where, fmt::format(" must be {} whole numbers", count));
  numbers.reserve(count);
  for (const Json& one : value) {
    if (one.is_number_unsigned() && one.get<std::uint64_t>() > std::uint64_t{1} << 62U)
      refuse(where, " must hold numbers up to 2^62");
    numbers.push_back(one.get<std::int64_t>());
  }
  return numbers;
}

Reach reach_from(const Json& value, const std::string& where) {
  constexpr auto keys = [] {
    std::array<std::string_view, reach_members.size()> names;
    std::ranges::transform(reach_members, names.begin(), [](const auto& member) { return member.first; });
    return names;
  }();
  const JsonObject object(value, where, keys);
  Reach reach;
  for (const auto& [name, extent] : reach_members) {
    if (object.find(name) == nullptr) refuse(where, fmt::format(" has no {}", in_quotes(name)));
    object.read(name, {0, most_whole_number}, reach.*extent);
  }
  return reach;
}

/// As write_shapes writes them.
ShapeCounts shapes_from(const Json& value, const std::string& where) {
  constexpr auto keys = [] {
    std::array<std::string_view, shape_facet_count + 1> names{"largest"};
    std::ranges::copy(Words<ShapeFacet>::names, names.begin() + 1);
    return names;
  }();
  const JsonObject object(value, where, keys);
  ShapeCounts shapes;
  if (const Json* largest = object.find("largest")) {
    const std::vector<std::int64_t> extents = numbers_of(*largest, object.path("largest"), reach_members.size());
    shapes.largest.emplace();
    for (std::size_t i = 0; i < extents.size(); ++i) *shapes.largest.*reach_members.at(i).second = extents[i];
  }
  for (std::size_t i = 0; i < shapes.facets.size(); ++i) {
    const auto facet = static_cast<ShapeFacet>(i);
    each_of(object, name_of(facet), [&](const Json& entry, const std::string& path) {
      const std::vector<std::int64_t> numbers = numbers_of(entry, path, entry.size() == 2 ? 2 : 3);
      const auto classes = static_cast<std::int64_t>(classes_in(facet));
      if (numbers[0] < 0 || numbers[0] >= classes)
        refuse(path, fmt::format(" begins with a class, 0 to {}", classes - 1));
      if (std::ranges::any_of(numbers, [](std::int64_t number) { return number < 0; }))
        refuse(path, " holds counts below 0");
      shapes.facets.at(i)[static_cast<std::uint8_t>(numbers[0])].merge(
          {numbers[1], numbers.size() == 3 ? numbers[2] : 0});
    });
  }
  return shapes;
}

KernelFigures kernel_from(const Json& value, const std::string& where) {
  static constexpr std::array<std::string_view, 7> keys{"id",     "name",  "dtype", "arithmetic",
                                                        "claims", "drawn", "shapes"};
  const JsonObject object(value, where, keys);
  KernelFigures kernel;
  object.read("id", kernel.id);
  object.read("name", kernel.name);
  object.read("dtype", kernel.dtype);
  if (kernel.id.empty() || kernel.dtype.empty()) refuse(where, " has no id or no dtype");
  if (const Json* arithmetic = object.find("arithmetic")) kernel.arithmetic = arithmetic->dump();
  each_of(object, "claims", [&](const Json& claim, const std::string& path) {
    if (!claim.is_string()) refuse(path, " must be a text");
    kernel.claims.push_back(claim.get<std::string>());
  });
  std::ranges::sort(kernel.claims);
  if (const Json* shapes = object.find("shapes")) kernel.shapes = shapes_from(*shapes, object.path("shapes"));
  const Json* drawn = object.find("drawn");
  if (drawn == nullptr) return kernel;
  if (!drawn->is_object()) object.refuse("drawn", "it must be an object");
  for (const auto& [group, kinds] : drawn->items()) {
    if (!kinds.is_object()) object.refuse("drawn", "it must hold an object for each group of kinds");
    for (const auto& [kind, cases] : kinds.items()) {
      if (!cases.is_number_unsigned() || cases.get<std::uint64_t>() > std::uint64_t{1} << 62U)
        object.refuse("drawn", "it must hold whole numbers");
      kernel.drawn[fmt::format("{}:{}", group, kind)] = cases.get<std::int64_t>();
    }
  }
  return kernel;
}

SubjectFigures subject_from(const Json& value, const std::string& where) {
  static constexpr std::array<std::string_view, 11> keys{
      "kernel",  "dtype",     "property", "verdict", "cases", "judged", "worst_utilisation",
      "worst_k", "histogram", "octaves",  "reach"};
  const JsonObject object(value, where, keys);
  SubjectFigures figures;
  object.read("kernel", figures.subject.kernel);
  object.read("dtype", figures.subject.dtype);
  object.read("property", figures.subject.property);
  if (figures.subject.kernel.empty() || figures.subject.dtype.empty() || figures.subject.property.empty())
    refuse(where, " has no kernel, no dtype or no property");
  std::vector<std::string_view> words;
  words.reserve(outcomes.size());
  for (const Outcome outcome : outcomes) words.push_back(name_of(outcome));
  const std::optional<std::size_t> verdict = object.word("verdict", words);
  if (!verdict) refuse(where, " has no verdict");
  figures.verdict = outcomes.at(*verdict);
  object.read("cases", {0, most_whole_number}, figures.cases);
  object.read("judged", {0, most_whole_number}, figures.judged);
  object.read("worst_k", {0, most_whole_number}, figures.worst_k);
  if (const Json* worst = object.find("worst_utilisation")) {
    const bool infinite = *worst == "inf";
    if (!infinite && !(worst->is_number() && worst->get<double>() >= 0))
      object.refuse("worst_utilisation", "it must be a number of at least 0, or \"inf\"");
    figures.worst_utilisation = infinite ? std::numeric_limits<double>::infinity() : worst->get<double>();
  }
  std::int64_t counted = 0;
  each_of(object, "histogram", [&](const Json& pair, const std::string& path) {
    const std::vector<std::int64_t> numbers = numbers_of(pair, path, 2);
    const auto bins = static_cast<std::int64_t>(figures.histogram.size());
    if (numbers[0] < 0 || numbers[0] >= bins) refuse(path, fmt::format(" begins with a bin, 0 to {}", bins - 1));
    if (numbers[1] < 0 || numbers[1] > figures.judged - counted) refuse(path, " counts more cases than were judged");
    counted += numbers[1];
    figures.histogram.at(static_cast<std::size_t>(numbers[0])) += numbers[1];
  });
  if (counted != figures.judged) refuse(where, ": the histogram does not count the judged cases");
  each_of(object, "octaves", [&](const Json& entry, const std::string& path) {
    const std::vector<std::int64_t> numbers = numbers_of(entry, path, 3);
    for (const std::int64_t code : {numbers[1], numbers[2]})
      if (code < 0 || code > infinite_code) refuse(path, " holds a size that is none");
    if (numbers[0] < 0 || numbers[0] > 62) refuse(path, " begins with an exponent of a number of keys, 0 to 62");
    figures.octaves[static_cast<int>(numbers[0])] = {static_cast<LogCode>(numbers[1]),
                                                     static_cast<LogCode>(numbers[2])};
  });
  if (const Json* reach = object.find("reach")) figures.reach = reach_from(*reach, object.path("reach"));
  if (figures.judged > figures.cases) refuse(where, ": more cases are judged than there are");
  return figures;
}

Figures parsed(std::string_view text) {
  static constexpr std::array<std::string_view, 8> keys{"schema",  "written_by", "seed",     "source",
                                                        "against", "kernels",    "subjects", "rows"};
  const Json value = parse_strict_json(text);
  const JsonObject object(value, "", keys);
  std::string schema, source;
  object.read("schema", schema);
  if (schema != tolerances_schema)
    refuse("", fmt::format("has the schema {}; it must be {}", in_quotes(schema), tolerances_schema));
  if (object.find("subjects") == nullptr)
    refuse("", "has no subjects, as those of earlier versions; write it again: attest report RUN --json -o FILE");
  Figures figures;
  if (const Json* seed = object.find("seed")) {
    if (!seed->is_number_unsigned()) object.refuse("seed", "it must be a whole number of at least 0");
    figures.seed = seed->get<std::uint64_t>();
  }
  object.read("source", source);
  if (!source.empty() && source != "fuzz") object.refuse("source", "where it is stated it must be \"fuzz\"");
  figures.bred = source == "fuzz";
  object.read("against", figures.against);
  each_of(object, "kernels",
          [&](const Json& one, const std::string& path) { figures.kernels.push_back(kernel_from(one, path)); });
  each_of(object, "subjects",
          [&](const Json& one, const std::string& path) { figures.subjects.push_back(subject_from(one, path)); });
  const auto by_subject = [](const SubjectFigures& one) -> const Subject& { return one.subject; };
  std::ranges::sort(figures.subjects, {}, by_subject);
  if (const auto twice = std::ranges::adjacent_find(figures.subjects, {}, by_subject); twice != figures.subjects.end())
    refuse("", fmt::format("has {} twice for one kernel and dtype", in_quotes(twice->subject.property)));
  return figures;
}

}  // namespace

Figures figures_of(const Summary& summary, const Journal& journal) {
  Figures figures{.seed = summary.seed,
                  .bred = journal.run && journal.run->fuzz,
                  .against = summary.against,
                  .kernels = {},
                  .subjects = {}};
  for (const KernelSummary& kernel : summary.kernels) {
    KernelFigures& one = figures.kernels.emplace_back();
    one.id = kernel.id, one.name = kernel.name, one.dtype = kernel.dtype;
    one.shapes = kernel.shapes();
    for (const KernelRecord& record : journal.kernels)
      if (record.id == kernel.id && !record.manifest.empty()) take_manifest(one, record.manifest);
    for (const PropertySummary& property : kernel.properties) {
      const Tally& tally = property.tally;
      for (const auto& [word, cases] : tally.drawn) one.drawn[word] += cases;
      figures.subjects.push_back({.subject = {property.name, kernel.id, kernel.dtype},
                                  .verdict = property.verdict,
                                  .cases = tally.cases(),
                                  .judged = tally.judged(),
                                  .worst_utilisation = tally.worst_utilisation,
                                  .worst_k = tally.worst_k,
                                  .histogram = tally.histogram,
                                  .octaves = tally.errors.octaves,
                                  .reach = tally.reach});
    }
  }
  std::ranges::sort(figures.subjects, {}, [](const SubjectFigures& one) -> const Subject& { return one.subject; });
  return figures;
}

void write_figures(JsonWriter& json, const Figures& figures) {
  if (figures.bred) json.member("source", "fuzz");
  if (!figures.against.empty()) json.member("against", figures.against);
  json.key("kernels").begin_array();
  for (const KernelFigures& kernel : figures.kernels) {
    json.begin_object().member("id", kernel.id).member("name", kernel.name).member("dtype", kernel.dtype);
    if (!kernel.arithmetic.empty()) json.key("arithmetic").raw(visible_json(kernel.arithmetic));
    json.key("claims").begin_array();
    for (const std::string& claim : kernel.claims) json.value(claim);
    json.end_array();
    if (!kernel.drawn.empty()) write_drawn(json.key("drawn"), kernel.drawn);
    if (!kernel.shapes.empty()) write_shapes(json.key("shapes"), kernel.shapes);
    json.end_object();
  }
  json.end_array().key("subjects").begin_array();
  for (const SubjectFigures& one : figures.subjects) {
    json.begin_object().member("kernel", one.subject.kernel).member("dtype", one.subject.dtype);
    json.member("property", one.subject.property).member("verdict", name_of(one.verdict));
    json.member("cases", one.cases).member("judged", one.judged);
    json.member("worst_utilisation", one.worst_utilisation);
    if (one.worst_k >= 0) json.member("worst_k", one.worst_k);
    json.key("histogram").begin_array();
    for (std::size_t bin = 0; bin < one.histogram.size(); ++bin) {
      if (one.histogram[bin] > 0) json.begin_array().value(bin).value(one.histogram[bin]).end_array();
    }
    json.end_array();
    if (!one.octaves.empty()) {
      json.key("octaves").begin_array();
      for (const auto& [exponent, scaled] : one.octaves)
        json.begin_array().value(exponent).value(scaled.error).value(scaled.allowed).end_array();
      json.end_array();
    }
    if (one.reach) write_reach(json.key("reach"), *one.reach);
    json.end_object();
  }
  json.end_array();
}

Figures parse_figures(std::string_view text, const std::string& source) {
  try {
    return parsed(text);
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("{}: {}", source, error.what()));
  }
}

Figures read_figures(const std::filesystem::path& path) {
  if (!std::filesystem::is_directory(path)) {
    constexpr std::string_view wanted = "wanted is a run's folder, its journal or its tolerances.json";
    if (std::error_code error; !std::filesystem::exists(path, error))
      throw UsageError(fmt::format("cannot read {}: there is no such file; {}", in_quotes(path.native(), 300), wanted));
    const std::string text = read_file(path);
    if (!text.starts_with('{')) throw UsageError(fmt::format("{}: is no earlier run; {}", path.string(), wanted));
    // A journal's first line is a record, with its kind in front.
    if (!text.starts_with("{\"kind\"")) return parse_figures(text, path.string());
  }
  const Journal journal = read_results(path);
  const JournalNotes notes[] = {{path, journal.notes}};
  say_notes(notes);
  return figures_of(summarise(journal, {}), journal);
}

}  // namespace attest
