// Kernels that read a softcap in another way are told so in words, whatever else their cases have.
#include "properties/diagnosis/variants/softcap_misreadings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "properties/catalogue/property.h"
#include "properties/diagnosis/misreadings.h"
#include "properties/test/diagnosis/other_scores.h"

namespace attest {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;

/// Of the first cases with a softcap that the kernel answers wrong, as they were drawn.
std::vector<std::string> misread(Kernel& kernel, std::size_t most = 12, DType dtype = DType::f32) {
  const Property& property = property_named("attention.oracle");
  std::vector<Case> cases;
  for (std::int64_t k = 0; k < 20'000 && cases.size() < most; ++k) {
    Case c = project(generate(property, dtype, 1, k), kernel.manifest());
    if (c.softcap == 0) continue;
    if (check_case(property, kernel, c).outcome == Outcome::violated) cases.push_back(std::move(c));
  }
  EXPECT_EQ(cases.size(), most);
  return misreadings_of(kernel, cases);
}
/// Of a right kernel that is asked the problem with other arguments.
std::vector<std::string> misread_as(const std::function<void(Case&)>& change) {
  Tampered kernel = asked_otherwise([&](Case& c) {
    if (c.softcap > 0) change(c);
  });
  return misread(kernel);
}
std::vector<std::string> misread_cap(const std::function<double(double t, double cap)>& capped) {
  OtherScores kernel = of_another_cap(capped);
  return misread(kernel);
}

TEST(MisreadSoftcaps, AreOtherArguments) {
  EXPECT_THAT(misread_as([](Case& c) { c.softcap = 0; }), ElementsAre("there were no softcap"));
  EXPECT_THAT(misread_as([](Case& c) { c.softcap *= c.scale; }), ElementsAre("q·k were capped before it is scaled"));
  EXPECT_THAT(misread_as([](Case& c) { c.scale *= c.scale; }), ElementsAre("the scale were applied twice"));
  EXPECT_THAT(misread_as([](Case& c) { c.softcap = 1 / c.softcap; }), ElementsAre("the softcap were 1/c"));
  EXPECT_THAT(misread_as([](Case& c) { c.softcap *= std::numbers::ln2; }),
              ElementsAre("the softcap were that of scores to base 2"));
  EXPECT_THAT(misread_as([](Case& c) { c.softcap = 30; }), ElementsAre("the softcap were 30, whatever is asked"));
  EXPECT_THAT(misread_as([](Case& c) { c.softcap = c.softcap < 1 ? c.softcap : std::trunc(c.softcap); }),
              ElementsAre("the softcap were cut to a whole number"));
}

TEST(MisreadSoftcaps, AreOtherCurves) {
  EXPECT_THAT(misread_cap([](double t, double cap) { return std::tanh(t / cap); }),
              ElementsAre("t became tanh(t/c), and not c·tanh(t/c)"));
  EXPECT_THAT(misread_cap([](double t, double cap) { return cap * std::tanh(t); }),
              ElementsAre("t became c·tanh(t), and not c·tanh(t/c)"));
  EXPECT_THAT(misread_cap([](double t, double cap) { return t * std::tanh(t / cap); }),
              ElementsAre("t became t·tanh(t/c), and not c·tanh(t/c)"));
  EXPECT_THAT(misread_cap([](double t, double) { return t * std::tanh(t); }),
              ElementsAre("t became t·tanh(t), and not c·tanh(t/c)"));
  EXPECT_THAT(misread_cap([](double t, double cap) { return std::clamp(t, -cap, cap); }),
              ElementsAre("t were cut off at -c and c, without a tanh"));
  EXPECT_THAT(misread_cap([](double t, double cap) { return t > 0 ? capped_at(t, cap) : t; }),
              ElementsAre("t were capped only above 0"));
  EXPECT_THAT(misread_cap([](double t, double cap) { return std::fabs(t) > cap ? capped_at(t, cap) : t; }),
              ElementsAre("t were capped only beyond c"));
}

TEST(MisreadSoftcaps, AreCapsAfterTheMask) {
  OtherScores after([](const ScoredPair& one) -> std::optional<double> {
    if (one.hidden) return std::nullopt;
    return capped_at(one.t + one.added, one.cap);
  });
  EXPECT_THAT(misread(after), Contains("the cap were taken after the mask"));
  OtherScores hides_nothing([](const ScoredPair& one) -> std::optional<double> {
    return one.hidden ? -one.cap : capped_at(one.t, one.cap) + one.added;
  });
  EXPECT_THAT(misread(hides_nothing), Contains("hidden keys had the score -c"));
  OtherScores whole([](const ScoredPair& one) -> std::optional<double> {
    return one.hidden ? -one.cap : capped_at(one.t + one.added, one.cap);
  });
  EXPECT_THAT(misread(whole),
              ElementsAre("the cap were taken after mask and causal form, and a hidden key had the score -c"));
}

TEST(MisreadSoftcaps, AreCappedSinks) {
  Tampered kernel = asked_otherwise([](Case& c) {
    if (c.softcap == 0 || !c[Slot::sink].present()) return;
    const double cap = c.softcap;
    c[Slot::sink] = mapped(Tensor(DType::f64, c[Slot::sink].shape()),
                           [&, before = c[Slot::sink]](std::int64_t h, double) { return capped_at(before[h], cap); });
  });
  EXPECT_THAT(misread(kernel, /*most=*/6), ElementsAre("the sink were capped, too"));
}

TEST(MisreadSoftcaps, AreNotReadOutOfRightAnswersNorOfOtherMistakes) {
  const auto right = registered("builtin:flash");
  const Property& property = property_named("attention.oracle");
  std::vector<Case> cases;
  for (std::int64_t k = 0; k < 4000 && cases.size() < 12; ++k)
    if (Case c = project(generate(property, DType::f32, 1, k), right->manifest()); c.softcap > 0)
      cases.push_back(std::move(c));
  EXPECT_EQ(cases.size(), 12U);
  EXPECT_THAT(misreadings_of(*right, cases), IsEmpty());
  EXPECT_THAT(misread_cap([](double t, double cap) { return capped_at(t, cap) * 1.03; }), IsEmpty());
}

TEST(MisreadSoftcaps, AreThoseOfACaseThatHasOne) {
  Case c;
  c[Slot::q] = c[Slot::k] = c[Slot::v] = Tensor(DType::f32, {1, 1, 1, 1}, std::vector<double>{1});
  EXPECT_THAT(misread_softcaps(c), IsEmpty());
  c.softcap = 2;
  for (const MisreadSoftcap& one : misread_softcaps(c)) {
    EXPECT_FALSE(one.words.empty());
    validate(one.problem);
  }
}

}  // namespace
}  // namespace attest
