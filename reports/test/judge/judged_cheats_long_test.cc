#include "reports/test/judge/judged_cheats.h"

namespace attest {
namespace {

class JudgedCheats : public testing::TestWithParam<Cheat> {};

TEST_P(JudgedCheats, FailAndHonestKernelsPass) {
  expect_judged(GetParam());
}

INSTANTIATE_TEST_SUITE_P(Every, JudgedCheats, testing::ValuesIn(cheats()), [](const auto& tested) {
  std::string name(tested.param.name());
  std::ranges::replace(name, '-', '_');
  return name;
});

TEST(JudgedCheats, AreFortyAtLeast) {
  EXPECT_GE(std::ranges::count_if(cheats(), [](const Cheat& cheat) { return !cheat.honest(); }), 40);
  EXPECT_GE(std::ranges::count_if(cheats(), &Cheat::honest), 6);
}

}  // namespace
}  // namespace attest
