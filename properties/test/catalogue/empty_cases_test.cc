// Every check, of cases of no queries, of no keys and of neither, as a search and the shrinking of a finding come to
// them: what a statement asks for that is not there is a hypothesis that the case does not meet.
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <utility>

#include "core/problem/selection.h"
#include "core/test/names.h"
#include "properties/test/catalogue/tampered.h"
#include "properties/test/property_fixture.h"

namespace attest {
namespace {

class EmptyCases : public testing::TestWithParam<const Property*> {};

TEST_P(EmptyCases, AreHeldOrNotAskedAbout) {
  const Property& row = *GetParam();
  const std::unique_ptr<Kernel> kernel = registered("builtin:flash");
  int valid = 0;
  for (std::int64_t k = 0; k < 8; ++k) {
    const Case drawn = generate(row, DType::f64, 1, k, small_shapes);
    for (const auto& [without_queries, without_keys] : {std::pair{true, false}, {false, true}, {true, true}}) {
      Selection left = everything(drawn);
      if (without_queries) left.queries = {};
      if (without_keys) left.keys = {};
      const Case c = select(drawn, left);
      try {
        validate(c);
      } catch (const std::invalid_argument&) {
        continue;
      }
      ++valid;
      const Verdict verdict = check_case(row, *kernel, c);
      EXPECT_NE(verdict.outcome, Outcome::violated) << k << " " << without_queries << without_keys << verdict.reason;
    }
  }
  EXPECT_GT(valid, 0);
}

INSTANTIATE_TEST_SUITE_P(Catalogue, EmptyCases, testing::ValuesIn(catalogue()),
                         [](const auto& row) { return test::name_of_test(std::string(row.param->name)); });

}  // namespace
}  // namespace attest
