// Causes in a journal: written, read again, put together from the parts of a run, and passed over where they are not.
#include "reports/causes/causes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace attest {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Cause cause_of(const std::string& kernel, const std::string& condition) {
  return {.kernel = kernel,
          .dtypes = {"f32"},
          .properties = {"attention.oracle", "masked.suppression"},
          .misreadings = {"true hid a \"key\""},
          .right = {"N=64"},
          .condition = condition,
          .by_own_answers = false,
          .cases = 12,
          .violated = 7,
          .others = 100,
          .others_violated = 1,
          .example = {"attention.oracle", kernel, "f32"},
          .example_k = 4};
}

TEST(Causes, TellTheNumbersOfOneElementFromThoseOfALaw) {
  // A law found 0.00328 on one side and a merge of 0.00329 on the other, too far apart; the exact answer is 0.000329.
  FindingRecord finding{.subject = {"attention.split-merge", "mine", "bf16"}, .k = 1, .case_file = "", .verdict = {}};
  finding.verdict = {.outcome = Outcome::violated,
                     .violation = Violation::bound,
                     .utilisation = 2.17,
                     .error = 1.29925e-05,
                     .allowed = 5.99e-06};
  finding.compared = {{.shape = {1, 2, 1, 1},
                       .element = 0,
                       .keys = 3,
                       .found = 0.0032806396484375,
                       .exact = Enclosure{0.0003293204389638929, 0.00032932043896389293}}};
  EXPECT_FALSE(is_against_exact(finding));
  finding.verdict.error = 0.0032806396484375 - 0.00032932043896389293;
  EXPECT_TRUE(is_against_exact(finding));
  finding.verdict.error *= 1.001;
  EXPECT_FALSE(is_against_exact(finding));
  finding.verdict.error = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(is_against_exact(finding));
  finding.verdict.violation = Violation::not_finite;
  EXPECT_TRUE(is_against_exact(finding)) << "no distance is told of it";
  finding.compared[0].exact.reset();
  EXPECT_FALSE(is_against_exact(finding));
  finding.compared.clear();
  EXPECT_FALSE(is_against_exact(finding));
}

TEST(Causes, AreReadAsTheyWereWritten) {
  Journal journal;
  journal.meta = {record_of(cause_of("mine", "N > 64")),
                  {"begin", {}},
                  record_of(cause_of("mine", "H > 1")),
                  record_of(cause_of("other", "N > 64"))};
  EXPECT_THAT(causes_in(journal, "mine"), ElementsAre(cause_of("mine", "N > 64"), cause_of("mine", "H > 1")));
  EXPECT_THAT(causes_in(journal, "other"), ElementsAre(cause_of("other", "N > 64")));
  EXPECT_THAT(causes_in(journal, "nobody"), IsEmpty());
}

/// Shards look at different cases, and say the same of them or not.
TEST(Causes, OfPartsAreOneWhereTheySayTheSame) {
  Cause second = cause_of("mine", "N > 64");
  second.dtypes = {"f32", "bf16"};
  second.properties = {"attention.any-length", "attention.oracle"};
  second.by_own_answers = true;
  second.cases = 10, second.violated = 4, second.others = 90, second.others_violated = 0;
  second.example_k = 5;
  Journal journal;
  // The first twice: a part that is given twice counts once.
  journal.meta = {record_of(cause_of("mine", "N > 64")), record_of(second), record_of(cause_of("mine", "N > 64")),
                  record_of(cause_of("mine", "N > 128"))};
  const std::vector<Cause> causes = causes_in(journal, "mine");
  ASSERT_EQ(causes.size(), 2U);
  EXPECT_THAT(causes[0].dtypes, ElementsAre("f32", "bf16"));
  EXPECT_THAT(causes[0].properties, ElementsAre("attention.oracle", "masked.suppression", "attention.any-length"));
  EXPECT_TRUE(causes[0].by_own_answers) << "one part has seen gradients that are wrong by the kernel's own answers";
  EXPECT_EQ(causes[0].cases, 22);
  EXPECT_EQ(causes[0].violated, 11);
  EXPECT_EQ(causes[0].others, 190);
  EXPECT_EQ(causes[0].others_violated, 1);
  EXPECT_EQ(causes[0].example_k, 4);
  EXPECT_EQ(causes[1].condition, "N > 128");
}

/// A journal is somebody else's input.
TEST(Causes, OfAnotherFormArePassedOver) {
  const std::string sound = to_json(cause_of("mine", "N > 64"));
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = sound;
    return text.replace(text.find(from), from.size(), to);
  };
  for (const std::string& text :
       {std::string(), std::string("{"), std::string("[]"), std::string("7"),
        changed("\"cases\":12", "\"cases\":\"12\""), changed("\"cases\"", "\"casks\""), changed("[\"f32\"]", "[7]"),
        changed("\"k\":4", "\"k\":{}"), changed("\"kernel\":\"mine\"", "\"kernel\":\"yours\"")}) {
    Journal journal;
    journal.meta = {{std::string(cause_event), {{"kernel", "mine"}, {"cause", text}}}};
    EXPECT_THAT(causes_in(journal, "mine"), IsEmpty()) << text;
  }
}

}  // namespace
}  // namespace attest
