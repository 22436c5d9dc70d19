// Hypotheses taken away: what a theorem needs has a witness, what it does not has none, and with all of them kept none
// is ever found.
#include "properties/proofs/weakened.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <set>
#include <string>

#include "core/support/errors.h"
#include "properties/arrangement/arrange.h"
#include "properties/generators/draw.h"
#include "properties/language/agree.h"
#include "properties/language/answer.h"

namespace attest {
namespace {

TEST(Hypotheses, HaveNamesOfTheirOwnAndAreStated) {
  std::set<const Hypothesis*> used;
  for (const Property* const property : catalogue()) {
    for (const Stated& stated : property->hypotheses) {
      used.insert(stated.hypothesis);
      EXPECT_FALSE(stated.why.empty()) << property->name << " " << stated.hypothesis->name;
    }
  }
  const auto all = all_hypotheses();
  EXPECT_TRUE(std::ranges::is_sorted(all, std::ranges::less_equal{}, &Hypothesis::name));
  for (const Hypothesis* const hypothesis : all) {
    EXPECT_TRUE(used.contains(hypothesis)) << hypothesis->name;
    EXPECT_EQ(hypothesis_named(hypothesis->name), hypothesis);
    EXPECT_FALSE(hypothesis->words.empty());
  }
  EXPECT_EQ(used.size(), all.size());
  EXPECT_EQ(hypothesis_named("no-such-thing"), nullptr);
}

TEST(Weakened, TheoremsAreFalseWithoutWhatTheyNeed) {
  int refuted = 0, held = 0;
  for (const Property* const property : catalogue()) {
    for (const Stated& stated : property->hypotheses) {
      const std::clock_t before = std::clock();
      const Weakened without = without_hypothesis(*property, stated);
      const double seconds = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
      const std::string which = std::string(property->name) + " without " + std::string(stated.hypothesis->name);
      EXPECT_NE(without.outcome, Without::unexpected) << which << ": " << without.words;
      EXPECT_FALSE(without.words.empty()) << which;
      EXPECT_LE(seconds, 1.0) << which;
      EXPECT_EQ(without.outcome == Without::refuted, stated.need == Need::needed) << which;
      EXPECT_EQ(without.outcome == Without::no_matter, stated.need == Need::defining) << which;
      if (stated.need == Need::spare) ++held;
      if (!without.witness) continue;
      ++refuted;
      if (stated.hypothesis->misses != nullptr) {
        EXPECT_NE(stated.hypothesis->misses(*without.witness), "") << which;
      }
      for (const Stated& other : property->hypotheses) {
        if (other.hypothesis == stated.hypothesis || other.hypothesis->misses == nullptr) continue;
        EXPECT_EQ(other.hypothesis->misses(*without.witness), "") << which;
      }
      // As a file and back.
      const Verdict again = replay_witness(decode_case(encode_case(*without.witness), which));
      EXPECT_EQ(again.outcome, Outcome::violated) << which;
      EXPECT_NE(without.words.find(again.reason), std::string::npos) << which;
      // Certified by the other library's intervals, too.
      EXPECT_EQ(replay_witness(*without.witness, "core:mpfi").outcome, Outcome::violated) << which;
    }
  }
  EXPECT_GE(refuted, 50);
  EXPECT_GE(held, 50);
}

TEST(Weakened, NoWitnessIsFoundWhereTheHypothesisIsKept) {
  for (const Property* const property : catalogue()) {
    for (const Stated& stated : property->hypotheses) {
      if (stated.need != Need::needed) continue;
      const Weakened kept = with_hypothesis(*property, stated);
      EXPECT_FALSE(kept.witness) << property->name << ": " << kept.words;
      EXPECT_GT(kept.cases, 0) << property->name << " " << stated.hypothesis->name;
    }
  }
}

// A catalogue that is wrong about a need is found out, either way.
TEST(Weakened, FindsAWrongCatalogue) {
  const Property& deletion = property_named("attention.query-deletion");
  Stated wrong = *stated_by(deletion, hypotheses::unmasked);
  ASSERT_EQ(wrong.need, Need::needed);
  wrong.need = Need::spare;
  EXPECT_EQ(without_hypothesis(deletion, wrong).outcome, Without::unexpected);
  const Property& locality = property_named("attention.query-locality");
  wrong = *stated_by(locality, hypotheses::unmasked);
  ASSERT_EQ(wrong.need, Need::spare);
  wrong.need = Need::needed;
  EXPECT_EQ(without_hypothesis(locality, wrong).outcome, Without::unexpected);
}

// What differs by rounding only, or by NaN on one side, is no witness.
TEST(Weakened, TakesEnclosuresThatAreApartOnly) {
  static constexpr std::array stated{needed(hypotheses::no_causal_form, "the test says so")};
  Property property{.name = "test.nudged",
                    .hypotheses = stated,
                    .given = [](Draw& draw) -> Case { return draw.attention().masked().at_least(1, 2); },
                    .check = {}};
  property.check = [](Kernel& kernel, const Case& c) {
    Case nudged = c;
    nudged[Slot::v] = mapped(c.v(), [](std::int64_t, double x) { return x + 0x1p-40; });
    return agree({run(kernel, nudged), run(kernel, c)}, Match::bound);
  };
  EXPECT_EQ(without_hypothesis(property, stated[0]).outcome, Without::unexpected);
  property.check = [](Kernel& kernel, const Case& c) {
    Case poisoned = c;
    poisoned[Slot::v] = mapped(c.v(), [](std::int64_t, double) { return std::nan(""); });
    return agree({run(kernel, poisoned), run(kernel, c)}, Match::bound);
  };
  EXPECT_EQ(without_hypothesis(property, stated[0]).outcome, Without::unexpected);
  property.check = [](Kernel& kernel, const Case& c) {
    Case moved = c;
    moved[Slot::v] = mapped(c.v(), [](std::int64_t, double x) { return x + 0x1p-10; });
    return agree({run(kernel, moved), run(kernel, c)}, Match::bound);
  };
  EXPECT_EQ(without_hypothesis(property, stated[0]).outcome, Without::refuted);
}

TEST(Weakened, ReplaysNoOtherCaseThanAWitness) {
  const Property& deletion = property_named("attention.query-deletion");
  const Weakened without = without_hypothesis(deletion, *stated_by(deletion, hypotheses::unmasked));
  ASSERT_TRUE(without.witness);
  Case c = *without.witness;
  c.provenance.without = "two-queries";
  EXPECT_THROW((void)replay_witness(c), UsageError) << "it has two queries";
  c.provenance.without = "one-head";
  EXPECT_THROW((void)replay_witness(c), UsageError) << "not stated";
  c.provenance.without.reset();
  EXPECT_THROW((void)replay_witness(c), UsageError);
  c = without_mask(*without.witness);
  EXPECT_THROW((void)replay_witness(c), UsageError) << "it meets what it is to miss";
}

}  // namespace
}  // namespace attest
