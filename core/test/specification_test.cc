// Every function of the core is the formula of its definition, for all real inputs at small shapes.
#include <gtest/gtest.h>

#include "specification_checks.h"

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

INSTANTIATE_TEST_SUITE_P(Specification, Symbolically, ::testing::ValuesIn(symbolic_checks()), [](const auto& check) {
  std::string name = check.param.name;
  for (char& c : name)
    if (c == '.' || c == '-') c = '_';
  return name;
});

}  // namespace
}  // namespace attest::test
