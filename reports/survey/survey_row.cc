#include "reports/survey/survey_row.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <utility>
#include <variant>

#include "core/support/errors.h"
#include "core/support/json_reader.h"
#include "core/support/json_writer.h"
#include "core/support/names.h"
#include "core/support/words.h"

namespace attest {
namespace {

using json = nlohmann::json;

/// The members of a row that are texts, lists of texts, counts, numbers and truths, each under its name.
struct Member {
  std::string_view name;
  using Any = std::variant<std::string SurveyRow::*, std::vector<std::string> SurveyRow::*, std::int64_t SurveyRow::*,
                           double SurveyRow::*, bool SurveyRow::*>;
  Any member;
};
const Member members[] = {{"library", &SurveyRow::library},
                          {"version", &SurveyRow::version},
                          {"path", &SurveyRow::path},
                          {"dtype", &SurveyRow::dtype},
                          {"operation", &SurveyRow::operation},
                          {"output", &SurveyRow::output},
                          {"processor", &SurveyRow::processor},
                          {"kernel", &SurveyRow::kernel},
                          {"recipe", &SurveyRow::recipe},
                          {"forced", &SurveyRow::forced},
                          {"promises", &SurveyRow::promises},
                          {"properties", &SurveyRow::properties},
                          {"findings", &SurveyRow::findings},
                          {"not_run", &SurveyRow::not_run},
                          {"date", &SurveyRow::date},
                          {"attest", &SurveyRow::attest},
                          {"judged", &SurveyRow::judged},
                          {"searched", &SurveyRow::searched},
                          {"worst_share", &SurveyRow::worst_share},
                          {"worst_scaled", &SurveyRow::worst_scaled},
                          {"worst_was_searched", &SurveyRow::worst_was_searched},
                          {"worst_input", &SurveyRow::worst_input},
                          {"ordinary_cases", &SurveyRow::ordinary_cases},
                          {"ordinary_p999", &SurveyRow::ordinary_share},
                          {"ordinary_scaled", &SurveyRow::ordinary_scaled},
                          {"claims", &SurveyRow::claims}};

struct WrongMember {
  std::string_view name;
  std::string WrongPath::* member;
};
constexpr WrongMember wrong_members[] = {{"what", &WrongPath::what},
                                         {"when", &WrongPath::when},
                                         {"smallest", &WrongPath::smallest},
                                         {"found", &WrongPath::found},
                                         {"input", &WrongPath::input}};

void write(JsonWriter& writer, const std::vector<std::string>& texts) {
  writer.begin_array();
  for (const std::string& text : texts) writer.value(text);
  writer.end_array();
}
template <class Value>
void write(JsonWriter& writer, const Value& value) {
  writer.value(value);
}

std::string json_of(const SurveyRow& row) {
  JsonWriter writer;
  writer.begin_object();
  for (const Member& one : members) {
    writer.key(one.name);
    std::visit([&](const auto member) { write(writer, row.*member); }, one.member);
  }
  writer.member("verdict", name_of(row.verdict));
  if (row.promise) writer.member("promise", name_of(*row.promise));
  // JSON of whoever wrote the manifest, and read as such: it stays a text, so that no odd one breaks the file.
  writer.member("declared", row.declared).member("found", row.found);
  writer.key("wrong").begin_array();
  for (const WrongPath& wrong : row.wrong) {
    writer.begin_object();
    for (const WrongMember& one : wrong_members) writer.member(one.name, wrong.*one.member);
    writer.end_object();
  }
  writer.end_array().key("by_keys").begin_array();
  for (const auto& [exponent, scaled] : row.by_keys) {
    writer.begin_object()
        .member("keys", std::ldexp(1.0, exponent))
        .member("error", size_of_code(scaled.error))
        .member("allowed", size_of_code(scaled.allowed))
        .end_object();
  }
  return writer.end_array().end_object().text();
}

/// Reads one row; `where` is its path in error lines.
class RowReader {
 public:
  RowReader(const json& value, std::string where) : value_(value), where_(std::move(where)) {
    if (!value_.is_object()) throw UsageError(fmt::format("{} is no object", where_));
  }

  [[nodiscard]] SurveyRow row() const {
    SurveyRow row;
    for (const Member& one : members)
      std::visit([&](const auto member) { read(value_, one.name, row.*member); }, one.member);
    row.verdict = outcome("verdict");
    if (value_.contains("promise")) row.promise = outcome("promise");
    read(value_, "declared", row.declared);
    read(value_, "found", row.found);
    for (const json& one : array("wrong")) {
      WrongPath& wrong = row.wrong.emplace_back();
      for (const WrongMember& member : wrong_members) read(one, member.name, wrong.*member.member);
    }
    for (const json& one : array("by_keys")) {
      double keys = 0, error = 0, allowed = 0;
      read(one, "keys", keys);
      read(one, "error", error);
      read(one, "allowed", allowed);
      if (!(keys >= 1) || std::isinf(keys)) refuse("keys", "a number of keys");
      row.by_keys[std::ilogb(keys)] = {code_of(error), code_of(allowed)};
    }
    return row;
  }

 private:
  [[noreturn]] void refuse(std::string_view key, std::string_view rule) const {
    throw UsageError(fmt::format("{}: {} must be {}", where_, in_quotes(key), rule));
  }
  const json& find(const json& in, std::string_view key) const {
    if (!in.is_object() || !in.contains(key)) refuse(key, "there");
    return in[std::string(key)];
  }
  const json& array(std::string_view key) const {
    const json& value = find(value_, key);
    if (!value.is_array()) refuse(key, "an array");
    return value;
  }
  void read(const json& in, std::string_view key, std::string& text) const {
    const json& value = find(in, key);
    if (!value.is_string()) refuse(key, "a text");
    text = value.get<std::string>();
  }
  void read(const json& in, std::string_view key, std::vector<std::string>& texts) const {
    for (const json& one : find(in, key)) {
      if (!one.is_string()) refuse(key, "an array of texts");
      texts.push_back(one.get<std::string>());
    }
  }
  void read(const json& in, std::string_view key, std::int64_t& number) const {
    const json& value = find(in, key);
    if (!value.is_number_integer() || value < 0) refuse(key, "a whole number of at least 0");
    number = value.get<std::int64_t>();
  }
  void read(const json& in, std::string_view key, double& number) const {
    const json& value = find(in, key);
    if (value == "inf") {
      number = std::numeric_limits<double>::infinity();
    } else {
      // As a double: beyond 2^63 a whole number compares as a negative one.
      if (!value.is_number() || !(value.get<double>() >= 0)) refuse(key, "a number of at least 0, or \"inf\"");
      number = value.get<double>();
    }
  }
  void read(const json& in, std::string_view key, bool& truth) const {
    const json& value = find(in, key);
    if (!value.is_boolean()) refuse(key, "true or false");
    truth = value.get<bool>();
  }
  [[nodiscard]] Outcome outcome(std::string_view key) const {
    std::string word;
    read(value_, key, word);
    const std::optional<Outcome> outcome = named<Outcome>(word);
    if (!outcome) refuse(key, "an outcome, as \"held\"");
    return *outcome;
  }

  const json& value_;
  std::string where_;
};

auto place_of(const SurveyRow& row) {
  return std::tie(row.library, row.path, row.dtype, row.operation, row.output, row.version, row.processor);
}

}  // namespace

std::string output_words(const SurveyRow& row) {
  return row.operation == "multihead" ? "multi-head " + row.output : row.output;
}

std::string path_words(const SurveyRow& row) {
  return fmt::format("{} {}: {}", row.library, row.version, row.path);
}

std::string alone_words(const SurveyRow& row) {
  if (row.judged == 0) return "by the search alone";
  if (row.properties.empty()) return {};
  return fmt::format("by {} alone", fmt::join(row.properties, ", "));
}

std::string survey_json(const std::vector<SurveyRow>& rows) {
  // A line for each row, so that a change of one is a line of a diff.
  std::string text = fmt::format("{{\"schema\":\"{}\",\"rows\":[", survey_schema);
  for (const SurveyRow& row : rows) text += (&row == rows.data() ? "\n" : ",\n") + json_of(row);
  return text + "\n]}\n";
}

std::vector<SurveyRow> parse_survey(std::string_view text, const std::string& source) {
  try {
    const json file = parse_strict_json(text);
    if (!file.is_object() || file.value("schema", "") != survey_schema)
      throw UsageError(fmt::format("this is no survey: its \"schema\" is not {}", in_quotes(survey_schema)));
    if (!file.contains("rows") || !file["rows"].is_array()) throw UsageError("\"rows\" must be an array");
    std::vector<SurveyRow> rows;
    for (const json& row : file["rows"]) rows.push_back(RowReader(row, fmt::format("rows[{}]", rows.size())).row());
    return rows;
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("{}: {}", source, error.what()));
  }
}

std::vector<SurveyRow> joined(const std::vector<SurveyRow>& rows) {
  std::map<decltype(place_of(rows.front())), const SurveyRow*> by_place;
  for (const SurveyRow& row : rows) {
    const SurveyRow*& kept = by_place.try_emplace(place_of(row), &row).first->second;
    if (row.date >= kept->date) kept = &row;
  }
  std::vector<SurveyRow> kept;
  kept.reserve(by_place.size());
  for (const auto& [place, row] : by_place) kept.push_back(*row);
  const auto cell_of = [](const SurveyRow& row) { return std::tuple(row.library, row.version, row.path, row.dtype); };
  std::set<std::tuple<std::string, std::string, std::string, std::string>> run;
  for (const SurveyRow& row : kept)
    if (row.not_run.empty()) run.insert(cell_of(row));
  std::erase_if(kept, [&](const SurveyRow& row) { return !row.not_run.empty() && run.contains(cell_of(row)); });
  return kept;
}

}  // namespace attest
