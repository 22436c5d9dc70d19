#include "reports/sections/self_test_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/support/errors.h"
#include "core/support/folder.h"
#include "core/support/json_writer.h"
#include "reports/page/html_elements.h"
#include "reports/results/json_counts.h"
#include "reports/run/text.h"

namespace attest {
namespace {

constexpr std::string_view schema = "attest-self-test/1";
constexpr std::int64_t most_seeds = 1'000'000;

template <class Number>
void write_all(JsonWriter& json, const char* name, const std::vector<Number>& numbers) {
  json.key(name).begin_array();
  for (const Number number : numbers) json.value(number);
  json.end_array();
}

std::string number_cell(const std::string& text) {
  return fmt::format("<td class=\"number\">{}</td>", text);
}

std::string runs_cell(std::int64_t runs, std::int64_t most) {
  return number_cell(runs > most ? fmt::format("&gt; {}", most) : std::to_string(runs));
}

std::string found_cell(const std::vector<std::int64_t>& runs, std::int64_t most) {
  const auto found = std::ranges::count_if(runs, [most](std::int64_t n) { return n <= most; });
  return number_cell(fmt::format("{}/{}", found, runs.size()));
}

std::string table(std::string_view caption, std::initializer_list<const char*> words,
                  std::initializer_list<const char*> numbers, const std::string& rows) {
  std::string html = fmt::format(
      "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"{0}\"><table><caption>"
      "{0}</caption><thead><tr>",
      caption);
  for (const char* const word : words) html += fmt::format("<th scope=\"col\">{}</th>", word);
  for (const char* const word : numbers) html += fmt::format("<th scope=\"col\" class=\"number\">{}</th>", word);
  return html + "</tr></thead><tbody>" + rows + "</tbody></table></div>";
}

std::string detections_html(const SelfTestRead& read) {
  std::string rows;
  const std::int64_t most = read.plan.most_runs;
  for (const Detection& d : read.result.detections) {
    rows += fmt::format("<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td>{}{}{}{}{}</tr>", escaped(d.fault),
                        escaped(d.property), escaped(d.dtype), found_cell(d.guided, most),
                        runs_cell(median_of(d.guided), most), found_cell(d.unguided, most),
                        runs_cell(median_of(d.unguided), most),
                        number_cell(fmt::format("{:.2f}", a12_of(d.guided, d.unguided))));
  }
  return table("Runs until planted faults are found", {"fault", "property", "dtype"},
               {"guided: found", "median runs", "unguided: found", "median runs", "A12"}, rows);
}

std::string worsts_html(const SelfTestRead& read) {
  std::string rows;
  for (const WorstFound& w : read.result.worsts) {
    const double guided = median_of(w.guided), by_chance = median_of(w.unguided);
    rows += fmt::format("<tr><th scope=\"row\">{}</th><td>{}</td>{}{}{}{}</tr>", escaped(w.kernel), escaped(w.dtype),
                        number_cell(short_number(guided)), number_cell(short_number(by_chance)),
                        number_cell(by_chance > 0 ? fmt::format("{:.2f}", guided / by_chance) : ""),
                        number_cell(fmt::format("{:.2f}", a12_of(w.unguided, w.guided))));
  }
  return table("Worst utilisation found of kernels that are right", {"kernel", "dtype"},
               {"guided: median", "unguided: median", "ratio", "A12"}, rows);
}

}  // namespace

std::string self_test_json(const SelfTest& result, const SelfTestPlan& plan) {
  JsonWriter json;
  json.begin_object().member("schema", schema).member("seeds", plan.seeds).member("most_runs", plan.most_runs);
  json.key("faults").begin_array();
  for (const Detection& d : result.detections) {
    json.begin_object().member("fault", d.fault).member("property", d.property).member("dtype", d.dtype);
    write_all(json, "guided", d.guided);
    write_all(json, "unguided", d.unguided);
    json.end_object();
  }
  json.end_array().key("kernels").begin_array();
  for (const WorstFound& w : result.worsts) {
    json.begin_object().member("kernel", w.kernel).member("dtype", w.dtype);
    write_all(json, "guided", w.guided);
    write_all(json, "unguided", w.unguided);
    json.end_object();
  }
  return json.end_array().end_object().text() + '\n';
}

SelfTestRead parse_self_test(std::string_view text, std::string_view source) {
  SelfTestRead read;
  try {
    const auto json = nlohmann::json::parse(text);
    if (json.at("schema") != schema) throw UsageError(fmt::format("{}: is no {}", source, schema));
    read.plan.seeds = static_cast<int>(std::min<std::int64_t>(count_of(json.at("seeds")), most_seeds));
    read.plan.most_runs = count_of(json.at("most_runs"));
    const auto numbers = [&](const nlohmann::json& entry, const char* name, auto& into, auto read_one) {
      for (const nlohmann::json& number : entry.at(name).get_ref<const nlohmann::json::array_t&>())
        into.push_back(read_one(number));
      if (into.empty()) throw UsageError(fmt::format("{}: an entry has no numbers for \"{}\"", source, name));
    };
    for (const nlohmann::json& entry : json.at("faults")) {
      Detection& d = read.result.detections.emplace_back();
      d.fault = entry.at("fault").get<std::string>();
      d.property = entry.at("property").get<std::string>();
      d.dtype = entry.at("dtype").get<std::string>();
      numbers(entry, "guided", d.guided, count_of), numbers(entry, "unguided", d.unguided, count_of);
    }
    for (const nlohmann::json& entry : json.at("kernels")) {
      WorstFound& w = read.result.worsts.emplace_back();
      w.kernel = entry.at("kernel").get<std::string>();
      w.dtype = entry.at("dtype").get<std::string>();
      numbers(entry, "guided", w.guided, utilisation_of);
      numbers(entry, "unguided", w.unguided, utilisation_of);
    }
  } catch (const nlohmann::json::exception&) {
    throw UsageError(fmt::format("{}: is not what attest fuzz --self-test writes; run it again", source));
  }
  return read;
}

std::string self_test_html(const std::filesystem::path& folder) {
  const std::optional<Folder> files = Folder::if_there(folder);
  if (!files || !files->holds("self-test.json")) return {};
  return self_test_html(parse_self_test(files->read("self-test.json"), (folder / "self-test.json").string()));
}

std::string self_test_html(const SelfTestRead& read) {
  std::string html = fmt::format(
      "<p>Searches of at most {} runs on {} seeds, guided by the archive of worst cases and unguided, both with the "
      "same "
      "generators. <b>A12</b> is the probability that the guided one does better, ties counted half: at 0.5 guidance "
      "does not help.</p>",
      read.plan.most_runs, read.plan.seeds);
  if (!read.result.detections.empty()) html += detections_html(read);
  if (!read.result.worsts.empty()) html += worsts_html(read);
  return html;
}

}  // namespace attest
