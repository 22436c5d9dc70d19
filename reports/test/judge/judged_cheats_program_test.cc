// The cheats that a check lets pass: each refuses, hides, waits, declares or reaches for what is not its own.
#include <array>

#include "reports/test/judge/judged_cheats.h"

namespace attest {
namespace {

class CheatsThatACheckHolds : public testing::TestWithParam<std::string_view> {};

TEST_P(CheatsThatACheckHolds, FailBeforeTheJudge) {
  const auto cheat = std::ranges::find(cheats(), GetParam(), &Cheat::name);
  ASSERT_NE(cheat, cheats().end());
  expect_judged(*cheat);
}

INSTANTIATE_TEST_SUITE_P(Eight, CheatsThatACheckHolds,
                         testing::Values("refuses-above-two", "drops-last-key-beyond-512", "cached-on-disk",
                                         "behaves-under-attest", "late-30001", "scores-in-bf16", "accumulates-in-bf16",
                                         "rewrites-parent", "lazy-evaluation", "child-writes-late",
                                         "behaves-when-filled", "honest-f32"),
                         [](const auto& tested) {
                           std::string name(tested.param);
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace attest
