// The catalogue in code against theorems.md, and the cases of the catalogue against themselves on another day.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "core/journal/journal.h"
#include "core/support/fnv1a.h"
#include "core/test/places.h"
#include "properties/catalogue/property.h"
#include "properties/generators/draw.h"
#include "properties/test/inspect.h"

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
  std::ifstream file(source_folder() + "/properties/theorems.md");
  return rows_of(file);
}

TEST(Catalogue, IsTheoremsMd) {
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
  for (const auto& [name, row] : rows) EXPECT_TRUE(names.contains(name)) << name << " of theorems.md is no property";
}

TEST(Catalogue, ARenamedOrRewordedPropertyIsNamed) {
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

TEST(Catalogue, MatchesGlobs) {
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
    {"attention.repeatable", DType::f64, 0x51f62d85e186ec5c},
    {"attention.repeatable", DType::f32, 0xf984c64c75eee2d0},
    {"attention.repeatable", DType::f16, 0x553c2d62b2617c4e},
    {"attention.repeatable", DType::bf16, 0xcae6d8004bd2130c},
    {"attention.repeatable", DType::f8_e4m3, 0xcfef4f89710bb4e1},
    {"attention.repeatable", DType::f8_e5m2, 0x31f61ae8aa3ad6f5},
    {"attention.finite", DType::f64, 0x5fb6af3aeb4c7c4f},
    {"attention.finite", DType::f32, 0x2bb703e8b9f899ee},
    {"attention.finite", DType::f16, 0x7045697bbafac628},
    {"attention.finite", DType::bf16, 0xc3524d425c75d3db},
    {"attention.finite", DType::f8_e4m3, 0x7ef5212c261740df},
    {"attention.finite", DType::f8_e5m2, 0x3a666a61c59eb354},
    {"attention.oracle", DType::f64, 0xda72aea4496949af},
    {"attention.oracle", DType::f32, 0x6ecc233701a6b80b},
    {"attention.oracle", DType::f16, 0x21eb6d24e4dda63f},
    {"attention.oracle", DType::bf16, 0x36fa059021aee4c5},
    {"attention.oracle", DType::f8_e4m3, 0xaa80c5c575cba107},
    {"attention.oracle", DType::f8_e5m2, 0x71cc8a327420ef73},
    {"multihead.torch-case", DType::f64, 0x611302635121af47},
    {"multihead.torch-case", DType::f32, 0xf10f8df6136fae99},
    {"multihead.torch-case", DType::f16, 0x21181808f0976d53},
    {"multihead.torch-case", DType::bf16, 0x0eb26f96692abe4b},
    {"multihead.torch-case", DType::f8_e4m3, 0x1144653356c86c73},
    {"multihead.torch-case", DType::f8_e5m2, 0xf5efc0c3861f96e9},
};

TEST(Catalogue, CasesAreTheSameBitsEverywhere) {
  for (const Golden& entry : golden) {
    const auto properties = properties_matching(entry.property);
    ASSERT_EQ(properties.size(), 1U);
    std::uint64_t hash = 0;
    for (std::int64_t k = 0; k < 1000; ++k) {
      hash = fnv1a(hash, hash_of(generate(*properties[0], entry.dtype, /*run_seed=*/1, k)));
    }
    EXPECT_EQ(hash, entry.hash) << fmt::format("{{\"{}\", DType::{}, 0x{:016x}}},", entry.property,
                                               name_of(entry.dtype), hash);
  }
}

/// The words of a text with a space between two.
std::vector<std::string> words_of(std::string_view text) {
  std::istringstream all{std::string(text)};
  std::vector<std::string> words;
  for (std::string word; all >> word;) words.push_back(word);
  return words;
}

TEST(Catalogue, WantsNothingThatNoRunCanCount) {
  int wants = 0;
  for (const Property* property : catalogue()) {
    std::vector<std::string> known = all_kinds(property->operation);
    for (unsigned i = 0; i < static_cast<unsigned>(BitClass::count); ++i)
      known.push_back(fmt::format("bits:{}", name_of(static_cast<BitClass>(i))));
    for (const Want& want : property->wants) {
      ++wants;
      EXPECT_FALSE(want.what.empty());
      const std::vector<std::string> words = words_of(want.any_of);
      ASSERT_FALSE(words.empty()) << property->name;
      for (const std::string& word : words) {
        EXPECT_NE(std::ranges::find(known, word), known.end()) << property->name << " wants " << word;
        // Two words of one case would be counted twice: one group, of whose words a case has one.
        EXPECT_EQ(word.substr(0, word.find(':')), words[0].substr(0, words[0].find(':'))) << property->name;
      }
      if (words[0].starts_with("bits:")) {
        EXPECT_EQ(words.size(), 1U) << property->name;
      }
    }
  }
  EXPECT_GE(wants, 15);
}

// Twice what makes a run of 500 cases warn, in every dtype.
TEST(Catalogue, DrawsWhatItWantsOftenEnough) {
  constexpr std::int64_t cases = 500, enough = 20;
  for (const Property* property : catalogue()) {
    for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16, DType::f8_e4m3, DType::f8_e5m2}) {
      if (property->wants.empty()) continue;
      Tally tally;
      for (std::int64_t k = 0; k < cases; ++k) {
        const Case c = generate(*property, dtype, /*run_seed=*/1, k);
        tally.add(k, {}, c.provenance.kinds.value(), bit_classes(c.q()) | bit_classes(c.k()) | bit_classes(c.v()));
      }
      for (const Want& want : property->wants)
        EXPECT_GE(tally.drawn_of(want.any_of), enough) << property->name << " " << name_of(dtype) << " " << want.what;
    }
  }
}

TEST(Catalogue, DrawsOnlyKindsThatAreListed) {
  for (const Property* property : catalogue()) {
    const std::vector<std::string> known = all_kinds(property->operation);
    for (std::int64_t k = 0; k < 50; ++k) {
      const Case c = generate(*property, DType::f32, 1, k);
      if (!c.provenance.kinds.has_value()) continue;
      std::set<std::string> groups;
      for (const std::string& word : words_of(c.provenance.kinds.value())) {
        EXPECT_NE(std::ranges::find(known, word), known.end()) << property->name << " draws " << word;
        EXPECT_TRUE(groups.insert(word.substr(0, word.find(':'))).second) << property->name << " draws " << word;
      }
    }
  }
}

TEST(Catalogue, EveryCaseMeetsItsHypotheses) {
  for (const Property* property : catalogue()) {
    for (std::int64_t k = 0; !property->hypotheses.empty() && k < 2000; ++k) {
      ASSERT_EQ(property->misses(generate(*property, DType::f32, 1, k)), "") << property->name << " k = " << k;
    }
  }
}

}  // namespace
}  // namespace attest
