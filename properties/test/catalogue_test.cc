// The catalogue in code against theorems.md, and the cases of the catalogue against themselves on another day.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iostream>
#include <map>
#include <set>
#include <sstream>

#include "generators/draw.h"
#include "inspect.h"
#include "property.h"

namespace attest {
namespace {

struct Row {
  std::string statement, source, floating_point;
};

std::string trimmed(std::string text) {
  text.erase(0, text.find_first_not_of(' '));
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

/// Cells of a Markdown table row; `\|` is a bar inside a cell.
std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells(1);
  for (std::size_t i = 1; i < line.size(); ++i) {
    if (line[i] == '\\' && i + 1 < line.size() && line[i + 1] == '|') {
      cells.back() += line[++i];
    } else if (line[i] == '|') {
      cells.emplace_back();
    } else {
      cells.back() += line[i];
    }
  }
  cells.pop_back();
  for (std::string& cell : cells) cell = trimmed(cell);
  return cells;
}

/// The names between backticks.
std::vector<std::string> names_in(const std::string& cell) {
  std::vector<std::string> names;
  std::istringstream parts(cell);
  std::string part;
  for (bool inside = false; std::getline(parts, part, '`'); inside = !inside) {
    if (inside) names.push_back(part);
  }
  return names;
}

/// Every property of theorems.md: the rows of its four-column tables, one per name, and the list of reductions.
std::map<std::string, Row> rows_of(std::istream& theorems) {
  std::map<std::string, Row> rows;
  for (std::string line; std::getline(theorems, line);) {
    if (line.starts_with("| `")) {
      const std::vector<std::string> cells = cells_of(line);
      if (cells.size() != 4) continue;
      const bool ours = cells[0].find("**+**") != std::string::npos;
      for (const std::string& name : names_in(cells[0])) {
        rows[name] = {cells[1], cells[2].empty() && ours ? "+" : cells[2], cells[3]};
      }
    } else if (line.starts_with("`reduction.")) {
      for (const std::string& name : names_in(line)) {
        if (name.starts_with("reduction.")) rows[name] = {{}, "000", "bitwise in the core, bound for a kernel"};
      }
    }
  }
  return rows;
}

/// What a property says otherwise than its row; empty where they agree.
std::string mismatch(const Property& property, const std::map<std::string, Row>& rows) {
  const auto row = rows.find(std::string(property.name));
  if (row == rows.end()) return fmt::format("{} is not in theorems.md", property.name);
  // The list of reductions leaves the identity to "the document": any words, but some.
  if (row->second.statement.empty() ? property.statement.empty() : property.statement != row->second.statement) {
    return fmt::format("{} states \"{}\"; theorems.md states \"{}\"", property.name, property.statement,
                       row->second.statement);
  }
  if (property.source != row->second.source) {
    return fmt::format("{} has source \"{}\"; theorems.md has \"{}\"", property.name, property.source,
                       row->second.source);
  }
  if (property.floating_point != row->second.floating_point) {
    return fmt::format("{} holds in floating point \"{}\"; theorems.md says \"{}\"", property.name,
                       property.floating_point, row->second.floating_point);
  }
  return {};
}

std::map<std::string, Row> the_rows() {
  std::ifstream file(ATTEST_SOURCE_DIR "/properties/theorems.md");
  return rows_of(file);
}

TEST(Catalogue, is_theorems_md) {
  const std::map<std::string, Row> rows = the_rows();
  ASSERT_GE(rows.size(), 100U);
  std::set<std::string_view> names;
  for (const Property* property : catalogue()) {
    EXPECT_EQ(mismatch(*property, rows), "");
    EXPECT_TRUE(names.insert(property->name).second) << property->name << " is registered twice";
    EXPECT_NE(property->given, nullptr);
    EXPECT_NE(property->check, nullptr);
    EXPECT_FALSE(property->needs.empty());
  }
  std::cout << names.size() << " of " << rows.size() << " rows of theorems.md are properties\n";
}

TEST(Catalogue, a_renamed_or_reworded_property_is_named) {
  const std::map<std::string, Row> rows = the_rows();
  for (const Property* property : catalogue()) {
    Property other = *property;
    other.name = "attention.oracel";
    EXPECT_EQ(mismatch(other, rows), "attention.oracel is not in theorems.md");
    const bool worded = !rows.at(std::string(property->name)).statement.empty();
    for (const auto field : {&Property::statement, &Property::source, &Property::floating_point}) {
      if (field == &Property::statement && !worded) continue;
      other = *property;
      other.*field = "something else";
      EXPECT_NE(mismatch(other, rows).find("something else"), std::string::npos);
    }
  }
}

TEST(Catalogue, matches_globs) {
  EXPECT_EQ(properties_matching("*").size(), catalogue().size());
  ASSERT_EQ(properties_matching("attention.oracle").size(), 1U);
  EXPECT_EQ(properties_matching("attention.oracle")[0]->name, "attention.oracle");
  EXPECT_TRUE(properties_matching("attention").empty());
  for (const Property* property : properties_matching("attention.*")) {
    EXPECT_TRUE(property->name.starts_with("attention."));
  }
}

/// Of cases 0 to 999 with the default run seed, of properties that between them draw from every generator. A saved seed
/// stands for a case: when these change, every journal, corpus and report that names a case by (property, dtype, seed,
/// k) means another one.
struct Golden {
  std::string_view property;
  DType dtype;
  std::uint64_t hash;
};
constexpr Golden golden[] = {
    {"attention.repeatable", DType::f64, 0xd2fc030c64706ebb},
    {"attention.repeatable", DType::f32, 0x2f2b41addf71da33},
    {"attention.repeatable", DType::f16, 0x3d704ff586e10b0b},
    {"attention.repeatable", DType::bf16, 0x3e7216a263c8b63c},
    {"attention.repeatable", DType::f8_e4m3, 0x9b6ec6ce71b13fe3},
    {"attention.repeatable", DType::f8_e5m2, 0x8f6851dea1c09072},
    {"attention.finite", DType::f64, 0x217848db4a7d6b9f},
    {"attention.finite", DType::f32, 0xc93cc126ae3da24a},
    {"attention.finite", DType::f16, 0x84ea5358bfb389d5},
    {"attention.finite", DType::bf16, 0x35214652ab2a11ff},
    {"attention.finite", DType::f8_e4m3, 0x938ad398ba7ce6be},
    {"attention.finite", DType::f8_e5m2, 0xf3e252579cb4c071},
    {"attention.oracle", DType::f64, 0xb1349414a4c5f368},
    {"attention.oracle", DType::f32, 0xa278e6e144dd8a04},
    {"attention.oracle", DType::f16, 0xe15866eed689d52a},
    {"attention.oracle", DType::bf16, 0xa69052f98c5a6049},
    {"attention.oracle", DType::f8_e4m3, 0x4622d58ed4eb0118},
    {"attention.oracle", DType::f8_e5m2, 0xf76d527d5ab2a7c8},
    {"multihead.torch-case", DType::f64, 0x8fa0327422f9f64a},
    {"multihead.torch-case", DType::f32, 0x7971483fa0b15671},
    {"multihead.torch-case", DType::f16, 0x491be5936ed05fc8},
    {"multihead.torch-case", DType::bf16, 0xa2f48e26812c4140},
    {"multihead.torch-case", DType::f8_e4m3, 0x26b85fc615caa1f5},
    {"multihead.torch-case", DType::f8_e5m2, 0x579a44fc9e639abc},
};

TEST(Catalogue, cases_are_the_same_bits_everywhere) {
  for (const Golden& entry : golden) {
    const auto properties = properties_matching(entry.property);
    ASSERT_EQ(properties.size(), 1U);
    std::uint64_t hash = 0;
    for (std::int64_t k = 0; k < 1000; ++k) {
      hash = (hash ^ hash_of(generate(*properties[0], entry.dtype, /*run_seed=*/1, k))) * 0x100000001b3;
    }
    EXPECT_EQ(hash, entry.hash) << fmt::format("{{\"{}\", DType::{}, 0x{:016x}}},", entry.property,
                                               name_of(entry.dtype), hash);
  }
}

TEST(Catalogue, every_case_meets_its_hypotheses) {
  for (const Property* property : catalogue()) {
    for (std::int64_t k = 0; property->misses != nullptr && k < 2000; ++k) {
      ASSERT_EQ(property->misses(generate(*property, DType::f32, 1, k)), "") << property->name << " k = " << k;
    }
  }
}

}  // namespace
}  // namespace attest
