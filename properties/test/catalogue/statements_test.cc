// Each row of the catalogue is as statements.txt has it, so that one that loses a conjunct, a quantifier or a
// hypothesis turns this test red. ATTEST_WRITE_STATEMENTS=FILE writes the paragraphs anew: read what has changed.
#include "properties/test/catalogue/statements.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "core/test/names.h"

namespace attest {
namespace {

class Statement : public testing::TestWithParam<const Property*> {};

TEST_P(Statement, IsAsItWasRead) {
  if (const char* const to = std::getenv("ATTEST_WRITE_STATEMENTS")) {
    std::ofstream(to, std::ios::app) << described(*GetParam()) << "\n";
    return;
  }
  EXPECT_EQ(change_of(*GetParam()), "");
}

INSTANTIATE_TEST_SUITE_P(Catalogue, Statement, testing::ValuesIn(catalogue()),
                         [](const auto& row) { return test::name_of_test(std::string(row.param->name)); });

TEST(Statements, AreOfRowsThatThereAre) {
  for (const auto& [name, text] : recorded()) EXPECT_EQ(properties_matching(name).size(), 1U) << name;
  EXPECT_EQ(recorded().size(), catalogue().size());
}

}  // namespace
}  // namespace attest
