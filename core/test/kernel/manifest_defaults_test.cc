// The table of defaults in kernel-interface.md against the parser: every key stands in it once, and stating its default
// changes nothing.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "core/kernel/manifest.h"
#include "core/kernel/manifest_json/keys.h"
#include "core/support/errors.h"
#include "core/support/files.h"
#include "core/test/places.h"

namespace attest {
namespace {

using nlohmann::json;

/// The cells of a table's rows, by the words that its heading begins with. The first cell may name several keys.
std::vector<std::vector<std::string>> table_headed(const std::string& heading) {
  std::istringstream document(read_file(source_folder() + "/core/kernel-interface.md"));
  std::vector<std::vector<std::string>> rows;
  bool inside = false;
  for (std::string line; std::getline(document, line);) {
    if (line.starts_with(heading)) inside = true;
    if (inside && !line.starts_with("|")) break;
    if (!inside || line.starts_with(heading) || line.starts_with("|--")) continue;
    std::vector<std::string>& cells = rows.emplace_back();
    std::size_t begin = 2;
    for (std::size_t end = line.find(" |", begin); end != std::string::npos; end = line.find(" |", begin)) {
      cells.push_back(line.substr(begin, end - begin));
      begin = std::min(end + 3, line.size());
    }
  }
  return rows;
}

/// What stands in backquotes in a cell.
std::vector<std::string> spans(const std::string& cell) {
  std::vector<std::string> found;
  for (std::size_t at = cell.find('`'); at != std::string::npos; at = cell.find('`', at)) {
    const std::size_t end = cell.find('`', at + 1);
    found.push_back(cell.substr(at + 1, end - at - 1));
    at = end + 1;
  }
  return found;
}

/// The manifest with one more key; it may be "limits.x".
Manifest stating(std::string key, const json& value, const std::string& dtype) {
  json manifest{{"name", "x"}, {"dtypes", {dtype}}};
  std::ranges::replace(key, '.', '/');
  manifest[json::json_pointer("/" + key)] = value;
  return parse_manifest(manifest.dump(), "table");
}

Manifest stating_nothing(const std::string& dtype) {
  return parse_manifest(json{{"name", "x"}, {"dtypes", {dtype}}}.dump(), "table");
}

/// Whether what is written for a manifest states the key.
bool is_written(const Manifest& manifest, std::string key) {
  std::ranges::replace(key, '.', '/');
  return json::parse(to_json(manifest)).contains(json::json_pointer("/" + key));
}

TEST(ManifestDefaults, StandInTheTableOfTheContract) {
  std::set<std::string> stands;
  for (const std::vector<std::string>& row : table_headed("| key | unstated |")) {
    ASSERT_EQ(row.size(), 3U) << row.at(0);
    for (const std::string& key : spans(row[0])) {
      EXPECT_TRUE(stands.insert(key).second) << key << " stands twice";
      for (const std::string dtype : {"f64", "f32", "f16", "bf16", "f8_e4m3"}) {
        if (row[1] == "required") {
          json without{{"name", "x"}, {"dtypes", {dtype}}};
          without.erase(key);
          EXPECT_THROW(static_cast<void>(parse_manifest(without.dump(), "table")), UsageError) << key;
        } else if (row[1] == "–") {
          EXPECT_FALSE(is_written(stating_nothing(dtype), key)) << key << " has a default";
        } else {
          const std::vector<std::string> value = spans(row[1]);
          ASSERT_EQ(value.size(), 1U) << key;
          EXPECT_EQ(stating(key, json::parse(value[0]), dtype), stating_nothing(dtype)) << key << " in " << dtype;
        }
      }
    }
  }
  const std::vector<std::string_view> keys = manifest_keys();
  std::set<std::string> known(keys.begin(), keys.end());
  for (const std::string_view limit : limit_keys()) known.insert("limits." + std::string(limit));
  EXPECT_EQ(stands, known);
}

TEST(ManifestDefaults, OfArithmeticStandInTheTableOfTheContract) {
  const std::map<std::string, std::size_t> columns{{"f64", 1},  {"f32", 2},     {"f16", 3},
                                                   {"bf16", 3}, {"f8_e4m3", 3}, {"f8_e5m2", 3}};
  std::set<std::string> stands;
  for (const std::vector<std::string>& row : table_headed("| key | f64 | f32 |")) {
    ASSERT_EQ(row.size(), 5U) << row.at(0);
    const std::string key = spans(row[0]).at(0);
    EXPECT_TRUE(stands.insert(key).second) << key << " stands twice";
    for (const auto& [dtype, column] : columns) {
      const Manifest nothing = stating_nothing(dtype);
      if (row[column] == "–") {
        EXPECT_FALSE(is_written(nothing, fmt::format("arithmetic.{}.{}", dtype, key))) << key << " has a default";
        continue;
      }
      const std::string text = spans(row[column]).at(0);
      const json value = text == "own" ? json(dtype) : json::parse(text);
      EXPECT_EQ(stating("arithmetic", {{key, value}}, dtype), nothing) << key << " in " << dtype;
    }
  }
  const std::vector<std::string_view> keys = arithmetic_keys();
  EXPECT_EQ(stands, std::set<std::string>(keys.begin(), keys.end()));
}

TEST(ManifestDefaults, WidenTheBoundOfSixteenBits) {
  // What the table says in bold, in both directions.
  EXPECT_NE(stating("arithmetic", {{"weights_in_denominator", false}}, "bf16"), stating_nothing("bf16"));
  EXPECT_NE(stating("arithmetic", {{"weights_in_denominator", true}}, "f32"), stating_nothing("f32"));
}

}  // namespace
}  // namespace attest
