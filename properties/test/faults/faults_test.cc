// The planted faults and the controls: the catalogue is complete, what is catchable is caught, what is right is not.
#include "properties/faults/faults.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <ostream>
#include <ranges>
#include <regex>
#include <set>
#include <string>

#include "core/support/files.h"
#include "core/test/names.h"
#include "core/test/places.h"
#include "properties/test/property_fixture.h"

namespace attest {

/// How GoogleTest prints a parameter.
static void PrintTo(const PlantedFault* fault, std::ostream* out) {
  *out << fault->wrong;
}
static void PrintTo(const ControlKernel* control, std::ostream* out) {
  *out << control->name;
}

namespace {

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> all;
  for (const auto part : std::views::split(text, ' ')) {
    if (!part.empty()) all.emplace_back(part.begin(), part.end());
  }
  return all;
}

/// The first case below `cases` of a property that the kernel violates, dtypes in turn; nothing where none is.
std::optional<std::int64_t> first_violation(const Property& property, Kernel& kernel, std::int64_t cases,
                                            const std::vector<DType>& dtypes) {
  for (std::int64_t k = 0; k < cases; ++k) {
    for (const DType dtype : dtypes) {
      const Case c = project(generate(property, dtype, /*run_seed=*/1, k), kernel.manifest());
      if (check_case(property, kernel, c).outcome == Outcome::violated) return k;
    }
  }
  return std::nullopt;
}
std::optional<std::int64_t> first_violation(const Property& property, Kernel& kernel, std::int64_t cases) {
  return first_violation(property, kernel, cases, kernel.manifest().dtypes);
}

TEST(PlantedFaults, EveryClassThatAForwardPassCanShowHasOne) {
  std::set<std::string> classes;
  for (const PlantedFault& fault : planted_faults())
    classes.merge([&] {
      const auto letters = words(fault.classes);
      return std::set<std::string>(letters.begin(), letters.end());
    }());
  for (char letter = 'A'; letter <= 'T'; ++letter) EXPECT_TRUE(classes.contains(std::string(1, letter))) << letter;
  EXPECT_EQ(classes.size(), 20U);
}

TEST(PlantedFaults, AreSixtyOrMoreUnderNamesOfTheirOwn) {
  std::set<std::string_view> names;
  std::set<Slip> slips;
  for (const PlantedFault& fault : planted_faults()) {
    EXPECT_TRUE(names.insert(fault.name).second) << fault.name;
    EXPECT_TRUE(slips.insert(fault.slip()).second) << fault.name;
    EXPECT_NE(fault.slip(), Slip()) << fault.name;
  }
  EXPECT_GE(names.size(), 60U);
  EXPECT_GE(controls().size(), 8U);
}

/// The names that a text asks for: is("NAME"), Slip("NAME").
std::set<std::string> slips_in(const std::string& text) {
  static const std::regex asked(R"re(\b(?:is|Slip)\("([^"]*)"\))re");
  std::set<std::string> names;
  for (std::sregex_iterator at(text.begin(), text.end(), asked), end; at != end; ++at) names.insert((*at)[1]);
  return names;
}

// A name that is misspelt compiles, and then does nothing.
TEST(PlantedFaults, AreTheNamesThatTheCodeAsksFor) {
  std::set<std::string> asked;
  for (const auto& file : std::filesystem::recursive_directory_iterator(source_folder() + "/properties/faults"))
    if (file.path().extension() == ".cc") asked.merge(slips_in(read_file(file.path())));
  std::set<std::string> planted;
  for (const PlantedFault& fault : planted_faults()) planted.emplace(fault.name);
  EXPECT_EQ(asked, planted);
}

TEST(PlantedFaults, SayWhatIsWrongWhereItCameFromAndWhatCatchesIt) {
  for (const PlantedFault& fault : planted_faults()) {
    EXPECT_FALSE(fault.wrong.empty()) << fault.name;
    EXPECT_EQ(fault.stands_for.empty(), fault.classes.empty()) << fault.name;
    EXPECT_EQ(fault.caught_by.empty(), !fault.unseen.empty()) << fault.name;
    for (const std::string& property : words(fault.caught_by))
      EXPECT_EQ(properties_matching(property).size(), 1U) << fault.name << " names " << property;
  }
}

TEST(PlantedFaults, WhatOutputsCannotShowIsNotCaught) {
  for (const PlantedFault& fault : planted_faults()) {
    if (fault.unseen.empty()) continue;
    const auto kernel = registered("fault:" + std::string(fault.name));
    for (const Property* property : catalogue()) {
      if (property->operation != Operation::attention) continue;
      EXPECT_EQ(first_violation(*property, *kernel, /*cases=*/100), std::nullopt) << fault.name << property->name;
    }
  }
}

// A row masked whole by the lowest number has an answer, the mean of its values, in every dtype: an oracle that excuses
// such rows where the score's bound is widest, in f64 and f32, sees the fault in bf16 alone.
TEST(PlantedFaults, AMaskDividedByTheScaleIsCaughtInEachOfItsDtypes) {
  const auto kernel = registered("fault:mask-over-scale");
  ASSERT_EQ(kernel->manifest().dtypes, (std::vector<DType>{DType::f64, DType::f32, DType::bf16}));
  for (const DType dtype : kernel->manifest().dtypes)
    EXPECT_TRUE(first_violation(property_named("attention.oracle"), *kernel, /*cases=*/1000, {dtype}))
        << name_of(dtype);
}

class EveryFault : public testing::TestWithParam<const PlantedFault*> {};

/// By a property that is expected to, within 3000 cases of it; the rarer ones are the audit's. Kernels of tiles are
/// shown cases of the right shape (planted_tiles_test.cc).
TEST_P(EveryFault, IsCaughtByAPropertyThatIsExpectedTo) {
  const PlantedFault& fault = *GetParam();
  std::string missing;
  for (const std::string& name : words(fault.caught_by)) {
    const auto kernel = registered("fault:" + std::string(fault.name));
    if (const auto k = first_violation(property_named(name), *kernel, /*cases=*/3000)) {
      RecordProperty("case", std::to_string(*k));
      return;
    }
    missing += name + " ";
  }
  if (fault.unseen.empty()) ADD_FAILURE() << "not caught by " << missing;
}

std::vector<const PlantedFault*> faults_of_rows() {
  std::vector<const PlantedFault*> all;
  for (const PlantedFault& fault : planted_faults())
    if (fault.make.query_tile == 0) all.push_back(&fault);
  return all;
}
constexpr auto test_name = [](const auto& info) { return test::name_of_test(std::string(info.param->name)); };
INSTANTIATE_TEST_SUITE_P(Planted, EveryFault, testing::ValuesIn(faults_of_rows()), test_name);

class EveryControl : public testing::TestWithParam<const ControlKernel*> {};

TEST_P(EveryControl, IsNeverFlagged) {
  const auto kernel = registered("control:" + std::string(GetParam()->name));
  for (const Property* property : catalogue()) {
    if (property->operation != Operation::attention) continue;
    EXPECT_EQ(first_violation(*property, *kernel, /*cases=*/20), std::nullopt) << property->name;
  }
}

std::vector<const ControlKernel*> all_controls() {
  std::vector<const ControlKernel*> all;
  for (const ControlKernel& control : controls()) all.push_back(&control);
  return all;
}
INSTANTIATE_TEST_SUITE_P(Controls, EveryControl, testing::ValuesIn(all_controls()), test_name);

}  // namespace
}  // namespace attest
