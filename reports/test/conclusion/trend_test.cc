// Trends over many runs: what there is of each kernel, in the order of the runs, and what is not there.
#include "reports/conclusion/trend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "reports/test/json.h"

namespace attest {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

SubjectFigures subject(const std::string& kernel, double worst, Outcome verdict = Outcome::held,
                       const std::string& property = "attention.oracle", std::int64_t judged = 100) {
  SubjectFigures one{.subject = {property, kernel, "f32"}, .verdict = verdict, .cases = judged, .judged = judged};
  one.worst_utilisation = worst;
  return one;
}

Figures run_of(const std::string& id, const std::string& name, std::vector<SubjectFigures> subjects) {
  Figures run;
  run.kernels.push_back(
      {.id = id, .name = name, .dtype = "f32", .arithmetic = "", .claims = {}, .drawn = {}, .shapes = {}});
  run.subjects = std::move(subjects);
  return run;
}

const std::vector<std::string> nights{"night-1", "night-2", "night-3", "night-4"};

TEST(Trend, HasTheWorstOfAllPropertiesInEachRun) {
  const std::vector<Figures> runs{
      run_of("./a.so", "mine", {subject("./a.so", 0.1), subject("./a.so", 0.3, Outcome::held, "masked.row-shift")}),
      run_of("./b.so", "mine", {subject("./b.so", 0.6)}), Figures{},
      run_of("./a.so", "mine",
             {subject("./a.so", std::numeric_limits<double>::infinity(), Outcome::violated),
              subject("./a.so", 0.2, Outcome::held, "masked.row-shift")})};
  const std::vector<Trend> trends = trends_of(runs);
  ASSERT_EQ(trends.size(), 1U) << "a kernel of one name from two files is one";
  ASSERT_EQ(trends[0].points.size(), 4U);
  EXPECT_EQ(trends[0].points[0]->worst, 0.3);
  EXPECT_EQ(trends[0].points[0]->judged, 200);
  EXPECT_FALSE(trends[0].points[2]);
  EXPECT_EQ(trends[0].points[3]->verdict, Outcome::violated);
  EXPECT_EQ(trends_text(trends, nights),
            "mine  f32  ▃▅·!  worst share 0.3 to 0.6, highest 0.6 in night-2; violated in night-4\n");
  JsonWriter json;
  write_trends(json, trends, nights);
  const nlohmann::json parsed = parsed_json(json.text());
  EXPECT_EQ(parsed[0]["runs"][1]["run"], "night-2");
  EXPECT_EQ(parsed[0]["runs"][1]["worst"], 0.6);
  EXPECT_TRUE(parsed[0]["runs"][2].is_null());
  EXPECT_EQ(parsed[0]["runs"][3]["verdict"], "violated");
}

TEST(Trend, KeepsTwoKernelsOfOneNameApart) {
  Figures both = run_of("./a.so", "mine", {subject("./a.so", 0.1), subject("./b.so", 0.9)});
  both.kernels.push_back(both.kernels[0]);
  both.kernels[1].id = "./b.so";
  const std::vector<Figures> runs{both, both};
  const std::vector<Trend> trends = trends_of(runs);
  ASSERT_EQ(trends.size(), 2U);
  EXPECT_EQ(trends[0].points[1]->worst, 0.1);
  EXPECT_EQ(trends[1].points[1]->worst, 0.9);
}

TEST(Trend, ShowsNoNumberWhereNothingWasJudgedAndNoneThatIsNone) {
  const std::vector<Figures> nothing{run_of("a", "a", {subject("a", 0, Outcome::skipped, "attention.oracle", 0)})};
  EXPECT_THAT(trends_text(trends_of(nothing), nights), HasSubstr("no case was judged"));
  // What is beyond what is allowed is never a block, whatever verdict stands beside it.
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double worst : {1.5, nan}) {
    const std::vector<Figures> beyond{run_of("a", "a", {subject("a", worst)})};
    EXPECT_THAT(trends_text(trends_of(beyond), nights), HasSubstr("  !  ")) << worst;
  }
  for (const double worst : {0.0, 1.0}) {
    const std::vector<Figures> within{run_of("a", "a", {subject("a", worst)})};
    EXPECT_THAT(trends_text(trends_of(within), nights), HasSubstr(worst == 0 ? "  ▁  " : "  █  "));
  }
}

}  // namespace
}  // namespace attest
