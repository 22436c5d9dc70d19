#include "reports/sections/self_test.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/support/errors.h"
#include "core/support/folder.h"
#include "core/support/json_writer.h"
#include "reports/sections/json_counts.h"
#include "reports/text/text.h"

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

Table detections_table(const SelfTestRead& read) {
  Table table{
      "Runs until planted faults are found",
      columns_of(
          "fault|property|dtype|#guided: found|#guided: median runs|#unguided: found|#unguided: median runs|#A12"),
      "",
      /*sorts=*/false};
  const std::int64_t most = read.plan.most_runs;
  for (const Detection& d : read.result.detections) {
    table.rows.push_back(
        {{theirs(d.fault), theirs(d.property), theirs(d.dtype), found_text(d.guided, most),
          runs_text(median_of(d.guided), most), found_text(d.unguided, most), runs_text(median_of(d.unguided), most),
          fmt::format("{:.2f}", a12_of(d.guided, d.unguided))}});
  }
  return table;
}

Table worsts_table(const SelfTestRead& read) {
  Table table{"Worst utilisation found of kernels that are right",
              columns_of("kernel|dtype|#guided: median|#unguided: median|#ratio|#A12"), "",
              /*sorts=*/false};
  for (const WorstFound& w : read.result.worsts) {
    const double guided = median_of(w.guided), by_chance = median_of(w.unguided);
    table.rows.push_back({{theirs(w.kernel), theirs(w.dtype), short_number(guided), short_number(by_chance),
                           by_chance > 0 ? fmt::format("{:.2f}", guided / by_chance) : "",
                           fmt::format("{:.2f}", a12_of(w.unguided, w.guided))}});
  }
  return table;
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

Blocks self_test_page(const std::filesystem::path& folder) {
  const std::optional<Folder> files = Folder::if_there(folder);
  if (!files || !files->holds("self-test.json")) return {};
  return self_test_page(parse_self_test(files->read("self-test.json"), (folder / "self-test.json").string()));
}

Blocks self_test_page(const SelfTestRead& read) {
  Blocks blocks{Paragraph{
      marked(fmt::format("Searches of at most {} runs on {} seeds, guided by the archive of worst cases and unguided, "
                         "both with the same generators. **A12** is the probability that the guided one does better, "
                         "ties counted half: at 0.5 guidance does not help.",
                         read.plan.most_runs, read.plan.seeds))}};
  if (!read.result.detections.empty()) blocks.emplace_back(detections_table(read));
  if (!read.result.worsts.empty()) blocks.emplace_back(worsts_table(read));
  return blocks;
}

}  // namespace attest
