#include "reports/judge/judged_kernel.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reports/judge/judgement.h"
#include "reports/test/shell.h"

namespace attest {
namespace {

std::shared_ptr<const Contract> contract() {
  return std::make_shared<const Contract>(parse_contract(
      R"({"schema": "attest-contract/1", "name": "small", "kernel": {"dtypes": ["f32"], "causal": ["top-left"]},
          "shapes": ["1,1,1,2,2,2"]})",
      "small"));
}

/// Answers with a status and nothing else.
std::unique_ptr<Kernel> answering(int status, std::string_view manifest = R"({"name": "theirs", "dtypes": ["bf16"]})") {
  return function_kernel("theirs", parse_manifest(manifest, "theirs"),
                         [status](const attest_problem&, attest_result&, std::string& message) {
                           message = "too hard";
                           return status;
                         });
}

TEST(JudgedKernel, IsHeldToTheContractAndNotToWhatItSaysOfItself) {
  const JudgedKernel kernel(answering(ATTEST_UNSUPPORTED), contract());
  EXPECT_EQ(kernel.manifest().name, "theirs");
  EXPECT_EQ(kernel.manifest().dtypes, std::vector{DType::f32});
  EXPECT_EQ(kernel.clone()->manifest().dtypes, std::vector{DType::f32});
  EXPECT_EQ(kernel.load_finding(), "");
}

TEST(JudgedKernel, FailsWhereItRefuses) {
  const auto law = contract();
  const Case c = case_of(law->law, law->shapes.front(), DType::f32, {}, 1);
  JudgedKernel kernel(answering(ATTEST_UNSUPPORTED), law);
  const std::unique_ptr<Kernel> clone = kernel.clone();
  for (Kernel* const one : {static_cast<Kernel*>(&kernel), clone.get()}) {
    const Reply reply = one->run(c);
    EXPECT_EQ(reply.status, CallStatus::failed);
    EXPECT_THAT(reply.message, Says("refuses what the contract small asks for", "too hard"));
  }
}

TEST(JudgedKernel, AsksForNoMoreThanTheContractOffers) {
  const JudgedKernel kernel(
      answering(ATTEST_OK, R"({"name": "theirs", "dtypes": ["f32"], "limits": {"alignment": 64}})"), contract());
  EXPECT_THAT(kernel.load_finding(), Says("an alignment of 64 bytes"));
}

TEST(JudgedShare, CountsAnswersAndNoRefusals) {
  const auto law = contract();
  JudgedShare share(*law);
  const auto one = [&](const ContractForm& form) {
    return case_of(law->law, law->shapes.front(), DType::f32, form, 1);
  };
  share.add(one({}), {.outcome = Outcome::violated, .violation = Violation::failed});
  share.add(one({}), {.outcome = Outcome::excused});
  share.add(one({}), {.outcome = Outcome::inconclusive});
  share.add(one({}), {.outcome = Outcome::violated, .violation = Violation::timed_out});
  EXPECT_EQ(share.judged_cells(), 0);
  EXPECT_TRUE(share.lacks_an_answer());
  share.add(one({}), {.outcome = Outcome::held});  // of a law that compares outputs with each other
  EXPECT_EQ(share.judged_cells(), 0);
  share.add(one({}), {.outcome = Outcome::held, .reach = Reach()});
  share.add(one({}), {.outcome = Outcome::held, .reach = Reach()});
  EXPECT_EQ(share.judged_cells(), 1);
  EXPECT_FALSE(share.lacks_an_answer());
  EXPECT_EQ(share.cells(), std::ssize(law->cells));
  EXPECT_FALSE(share.is_enough());
  // What was refused, a second case would not mend.
  share.add(one({.causal = Causal::top_left}), {.outcome = Outcome::violated, .violation = Violation::failed});
  EXPECT_FALSE(share.lacks_an_answer());
  share.add(one({.causal = Causal::top_left}), {.outcome = Outcome::excused});
  EXPECT_TRUE(share.lacks_an_answer());
  share.add(one({.causal = Causal::top_left}), {.outcome = Outcome::violated, .violation = Violation::bound});
  EXPECT_FALSE(share.lacks_an_answer());
  EXPECT_EQ(share.judged_cells(), 2);
  EXPECT_THAT(share_text(*law, share), Says(fmt::format("judged 2 of {}", share.cells()), "1,1,1,2,2,2"));
}

TEST(Judgement, IsAPassWhereAllIsJudgedAndHeldAlone) {
  const auto law = contract();
  const auto judged = [&](Outcome verdict, int exit_status, bool whole, bool enclosed = true, bool time_over = false) {
    JudgedShare share(*law);
    for (const ContractCell& cell : law->cells)
      if (whole || cell.form == ContractForm{})
        share.add(case_of(law->law, law->shapes.front(), DType::f32, cell.form, 1),
                  {.outcome = Outcome::held, .reach = Reach()});
    Summary summary;
    summary.verdict = verdict;
    summary.time_over = time_over;
    Conclusion conclusion;
    conclusion.exit_status = exit_status;
    conclusion.headline = "inconclusive";
    return judge(*law, share, summary, conclusion, {.run = "run", .enclosed = enclosed});
  };
  EXPECT_EQ(judged(Outcome::held, 0, true).verdict, Pass::pass);
  EXPECT_EQ(judged(Outcome::held, 0, false).verdict, Pass::undecided);
  EXPECT_EQ(judged(Outcome::held, 0, true, true, true).verdict, Pass::undecided);
  EXPECT_EQ(judged(Outcome::held, 0, true, false).verdict, Pass::undecided);
  EXPECT_EQ(judged(Outcome::violated, 1, true, false).verdict, Pass::fail);
  EXPECT_EQ(judged(Outcome::held, 130, true).verdict, Pass::undecided);
  EXPECT_EQ(judged(Outcome::inconclusive, 4, true).verdict, Pass::undecided);
  EXPECT_EQ(judged(Outcome::violated, 1, true).verdict, Pass::fail);
  EXPECT_EQ(judged(Outcome::violated, 1, false).verdict, Pass::fail);
  EXPECT_EQ(judged(Outcome::held, 0, false).unjudged.size(), law->cells.size() - 1);
  EXPECT_EQ(exit_status_of(Pass::pass), 0);
  EXPECT_EQ(exit_status_of(Pass::fail), 1);
  EXPECT_EQ(exit_status_of(Pass::undecided), 4);
}

}  // namespace
}  // namespace attest
