// kill -9 at a hundred random moments of a check, of a campaign and of a merge.
#include <cstdio>

#include "kills.h"

namespace attest {
namespace {

constexpr int moments = 100;

void say(const char* what, const Kills& kills) {
  std::printf("%s: %d kills before the first line, %d within, %d after the end\n", what, kills.before_the_journal,
              kills.within, kills.after_the_end);
}

TEST(KillLong, AKilledCheckGoesOnToTheSameJournal) {
  const Kills kills = kill_checks(moments,
                                  "$attest check --kernel builtin:flash --kernel builtin:two-pass --dtype f32 "
                                  "--property attention.oracle --cases 3000 --jobs 2 --quiet");
  say("check", kills);
  EXPECT_GT(kills.within, moments / 2);
}

TEST(KillLong, AKilledCampaignLosesTheLastSecondsAtMost) {
  // A second between the journal's lines, and what a busy machine takes to come to it.
  const Kills kills =
      kill_campaigns(moments, "$attest fuzz --kernel builtin:flash --dtype f32 --jobs 1 --quiet", 4.0, /*slack=*/4.0);
  say("fuzz", kills);
  EXPECT_GT(kills.within, moments / 2);
}

TEST(KillLong, AKilledMergeLeavesNoHalfFile) {
  const Kills kills =
      kill_merges(moments,
                  "$attest check --kernel builtin:flash --kernel builtin:two-pass --dtype f32 --property "
                  "attention.oracle --cases 6000 --quiet");
  say("merge", kills);
  EXPECT_GT(kills.within, moments / 10);
  EXPECT_GT(kills.after_the_end, 0);
}

}  // namespace
}  // namespace attest
