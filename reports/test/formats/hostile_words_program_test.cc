// Kernels whose file, name, message and prints have characters in them that move what is around them, as a user meets
// them on the terminal: none of them is shown by any command.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "core/test/places.h"
#include "reports/test/formats/hostile_words.h"
#include "reports/test/program_checks.h"

namespace attest {
namespace {

/// A C1 control, a change of direction and back, a line separator, as a string of C has them.
constexpr const char* moving = R"(\302\2332J\342\200\256gnp\342\201\246x\342\200\250y)";
/// What is left of it where it is shown.
constexpr const char* still = " 2J\uFFFDgnp\uFFFDx y";

/// One key's value for each row, wrong where there are more; or a message and no answer.
void write_library(const fake::Folder& folder, const std::string& file, bool answers) {
  const std::string body = answers ? R"(
  for (int64_t b = 0; b < p->q.shape[0]; ++b)
    for (int64_t h = 0; h < p->q.shape[1]; ++h)
      for (int64_t i = 0; i < p->q.shape[2]; ++i)
        for (int64_t c = 0; c < p->v.shape[3]; ++c)
          ((float*)r->out.data)[((b * r->out.shape[1] + h) * r->out.shape[2] + i) * r->out.shape[3] + c] =
              p->k.shape[2] == 0 ? 0 : ((const float*)p->v.data)[0];
  return 0;)"
                                   : R"(
  snprintf(message, size, "no luck: )" + std::string(moving) +
                                         R"(");
  return 7;)";
  std::ofstream(folder / "hostile.c") << R"(#include <attest/kernel.h>
#include <stdio.h>
const char* attest_kernel_manifest(void) {
  return "{\"name\": \"mine )" + std::string(moving) +
                                             R"(\", \"dtypes\": [\"f32\"], \"masks\": []}";
}
int attest_kernel_attention(const attest_problem* p, attest_result* r, char* message, size_t size) {
  if (p->mask.data != NULL || p->causal != ATTEST_CAUSAL_NONE) return ATTEST_UNSUPPORTED;
  fprintf(stderr, ")" + std::string(moving) + R"(\n");)" +
                                             body + "\n}\n";
  expect_status(folder, "cc -w -shared -fPIC -O1 -I " + source_folder() + "/core/include hostile.c -o '" + file + "'");
}

class HostileWordsProgram : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (shell(folder_, "command -v cc").status != 0) GTEST_SKIP() << "there is no C compiler";
    write_library(folder_, file_, GetParam());
  }
  /// What a command says, of which nothing moves anything.
  [[nodiscard]] std::string shown(const std::string& arguments) const {
    const std::string output = shell(folder_, "$attest " + arguments).output;
    EXPECT_FALSE(output.empty()) << arguments;
    EXPECT_EQ(unseen_in(output), 0) << arguments << "\n" << output;
    return output;
  }

  fake::Folder folder_;
  const std::string file_ = "./lib\u202Emine\u0085.so";
};

TEST_P(HostileWordsProgram, MoveNothingOnTheTerminal) {
  const bool answers = GetParam();
  const std::string of_kernel = "--kernel '" + file_ + "' ";
  const std::string checked = shown("check " + of_kernel + "--property 'attention.o*' --cases 40 --jobs 1 --out run");
  EXPECT_THAT(checked, Says("mine " + std::string(still)));
  if (!answers) {
    EXPECT_THAT(checked, Says("preflight of ./lib\uFFFDmine", "no luck: " + std::string(still)));
  }
  EXPECT_THAT(shown("check --verbose " + of_kernel + "--property attention.oracle --cases 40 --jobs 1 --out verbose"),
              Says("lib\uFFFDmine"));
  EXPECT_THAT(shown("findings run"), Says(answers ? "lib\uFFFDmine" : "no luck: " + std::string(still)));
  EXPECT_THAT(shown("replay run"), Says("lib\uFFFDmine"));
  EXPECT_THAT(shown("report run --summary /dev/stdout"), Says(still));
  (void)shown("probe " + of_kernel);
  (void)shown("compare run verbose");
}

INSTANTIATE_TEST_SUITE_P(Kernels, HostileWordsProgram, testing::Bool(),
                         [](const auto& of) { return of.param ? "ThatAnswersWrong" : "ThatSpeaks"; });

}  // namespace
}  // namespace attest
