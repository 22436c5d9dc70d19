#include "reports/starter/starter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace attest {
namespace {

using testing::HasSubstr;
using testing::Not;

const Origin unknown;

TEST(Starter, LeavesNoMarkOfItsTemplates) {
  for (const Language language : {Language::c, Language::cpp, Language::python}) {
    for (const CiService service : {CiService::github, CiService::gitlab, CiService::none}) {
      const std::vector<StarterFile> files = starter_files(language, service, unknown);
      EXPECT_EQ(files.size(), service == CiService::none ? 3U : 4U);
      for (const StarterFile& file : files) {
        EXPECT_FALSE(file.content.empty());
        EXPECT_THAT(file.content, Not(testing::ContainsRegex("@[A-Z]+@"))) << file.path;
      }
    }
  }
}

TEST(Starter, InstallsInCiWhatTheKernelNeeds) {
  for (const CiService service : {CiService::github, CiService::gitlab}) {
    EXPECT_THAT(starter_files(Language::c, service, unknown).back().content, HasSubstr(" gcc libc6-dev ccache"));
    EXPECT_THAT(starter_files(Language::cpp, service, unknown).back().content, HasSubstr(" g++ ccache"));
    EXPECT_THAT(starter_files(Language::python, service, unknown).back().content, HasSubstr(" python3-numpy ccache"));
  }
}

TEST(Starter, QuotesWhereAttestIs) {
  const Origin origin{.home = "/a b/it's", .repository = ""};
  EXPECT_THAT(starter_files(Language::c, CiService::none, origin)[1].content, HasSubstr("ATTEST='/a b/it'\\''s'\n"));
  EXPECT_THAT(starter_files(Language::c, CiService::none, unknown)[1].content, HasSubstr("${ATTEST:?must name"));
}

TEST(Starter, KnowsTheRepositoryWhereOthersCanCloneIt) {
  const Origin origin{.home = "", .repository = "https://example.org/a/attest.git"};
  EXPECT_THAT(starter_files(Language::c, CiService::github, origin).back().content,
              HasSubstr("ATTEST_REPOSITORY: ${{ vars.ATTEST_REPOSITORY || 'https://example.org/a/attest.git' }}\n"));
  EXPECT_THAT(starter_files(Language::c, CiService::gitlab, origin).back().content,
              HasSubstr("\nvariables:\n  ATTEST_REPOSITORY: https://example.org/a/attest.git\nstages:"));
  EXPECT_EQ(public_address("https://example.org/a/attest.git"), "https://example.org/a/attest.git");
  for (const char* address : {"https://name:secret@example.org/a", "/home/me/attest", "git@example.org:a", "",
                              "https://example.org/a'; rm", "https://example.org/${{ secrets.A }}", "file:///a"})
    EXPECT_EQ(public_address(address), "") << address;
}

}  // namespace
}  // namespace attest
