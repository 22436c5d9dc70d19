// Changed statements are refused: each mutant of statement_mutants.txt by the record of its row, or by a right kernel
// that it calls violated.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cctype>
#include <iostream>
#include <set>

#include "core/test/names.h"
#include "core/test/places.h"
#include "properties/test/catalogue/mutant.h"
#include "properties/test/catalogue/mutants.h"
#include "properties/test/catalogue/statements.h"

namespace attest {
namespace {

const std::vector<Mutant>& mutants() {
  static const std::vector<Mutant> all =
      read_mutants(source_folder() + "/properties/test/catalogue/statement_mutants.txt");
  return all;
}

/// In a process of its own, so that nothing of a mutant stays: 0 where its row is as recorded, 1 where it
/// is not.
int status_of(const std::string& row, const std::string& mutant) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(300);
    chosen_mutant = mutant;
    // A row that is not there is refused by nothing.
    if (properties_matching(row).empty()) _exit(2);
    std::string change;
    try {
      change = change_of(*properties_matching(row).at(0));
    } catch (const std::exception& e) {
      change = e.what();
    }
    std::cout << change << std::flush;
    _exit(change.empty() ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

class Mutants : public testing::TestWithParam<Mutant> {};

TEST_P(Mutants, AreRefused) {
  EXPECT_EQ(status_of(GetParam().row, GetParam().name()), 1);
}

INSTANTIATE_TEST_SUITE_P(Statements, Mutants, testing::ValuesIn(mutants()), [](const auto& mutant) {
  return test::name_of_test(mutant.param.name() + " " + std::to_string(mutant.index));
});

TEST(Mutants, AreManyAndChangeRowsThatAreElseAsRecorded) {
  std::set<std::string> rows, names;
  for (const Mutant& mutant : mutants()) rows.insert(mutant.row), names.insert(mutant.name());
  EXPECT_EQ(names.size(), mutants().size());
  EXPECT_GE(names.size(), 150U);
  for (const std::string& row : rows) EXPECT_EQ(status_of(row, ""), 0) << row;
}

}  // namespace
}  // namespace attest
