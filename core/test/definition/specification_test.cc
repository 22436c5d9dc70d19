// Every function of the core is the formula of its definition, for all real inputs at small shapes.
#include <gtest/gtest.h>

#include "core/test/definition/specification_checks.h"

namespace attest::test {
namespace {

class Symbolically : public ::testing::TestWithParam<SpecificationCheck<SymbolicScope>> {};

TEST_P(Symbolically, TheCoreIsTheDefinition) {
  SymbolicScope scope(/*room=*/192);
  Comparison comparison;
  GetParam().run(scope, comparison);
  EXPECT_GT(comparison.entries, 0);
  EXPECT_EQ(comparison.different, std::vector<std::string>{});
}

class InAFiniteField : public ::testing::TestWithParam<SpecificationCheck<FieldScope>> {};

TEST_P(InAFiniteField, TheCoreIsTheDefinition) {
  int entries = 0;
  std::vector<std::string> different;
  const FieldVerdict verdict = proved_in_finite_field([&](FieldScope& scope) {
    Comparison comparison;
    GetParam().run(scope, comparison);
    entries = comparison.entries;
    different = comparison.different;
    return different.empty();
  });
  EXPECT_GT(entries, 0);
  EXPECT_TRUE(verdict.holds);
  EXPECT_EQ(different, std::vector<std::string>{});
  EXPECT_LE(verdict.log2_error, -60) << verdict.runs.back();
}

/// The check's name as GoogleTest allows it.
template <class Info>
std::string test_name(const Info& check) {
  std::string name = check.param.name;
  for (char& c : name)
    if (c == '.' || c == '-') c = '_';
  return name;
}
INSTANTIATE_TEST_SUITE_P(Specification, Symbolically, ::testing::ValuesIn(symbolic_checks()),
                         [](const auto& check) { return test_name(check); });
INSTANTIATE_TEST_SUITE_P(Specification, InAFiniteField, ::testing::ValuesIn(field_checks()),
                         [](const auto& check) { return test_name(check); });

}  // namespace
}  // namespace attest::test
