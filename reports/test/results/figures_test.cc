// What a baseline keeps of a run: written and read again, and refused where it is wrong.
#include "reports/results/figures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <memory>

#include "core/support/errors.h"
#include "core/support/files.h"
#include "core/test/refusal.h"
#include "reports/results/tolerance.h"
#include "reports/test/fakes.h"

namespace attest {
namespace {

Journal journal_of_a_run() {
  Journal journal;
  journal.run = RunRecord{.seed = 7, .case_files = {}};
  BatchRecord batch{{"attention.oracle", "./mine.so", "f32"}, 0, 4, {}, {}};
  for (std::int64_t k = 0; k < 4; ++k) {
    Verdict verdict{.utilisation = 0.1 * static_cast<double>(k)};
    if (k == 3) verdict.outcome = Outcome::violated, verdict.utilisation = std::numeric_limits<double>::infinity();
    if (k == 0) {
      const auto errors = std::make_shared<ErrorSample>();
      errors->keys = 20, errors->elements = 2, errors->histogram[0][3] = 2, errors->scaled_error = 1.5,
      errors->scaled_allowed = 40;
      verdict.errors = errors;
    }
    verdict.level = 1;
    verdict.reach = Reach{2, 8192 >> k, 64, 32, 8, 4, 1};
    const Extents shape{.batch = 1, .heads = 8, .kv_heads = 4, .queries = 2, .keys = 8192 >> k, .dk = 64, .dv = 32};
    batch.tally.add(k, verdict, "mask:none values:ones", 0, &shape);
  }
  batch.tally.skip(3, "why");
  batch.last_k = 7;
  journal.batches.push_back(batch);
  journal.batches.push_back({{"masked.row-shift", "./mine.so", "f32"}, 0, 0, {}, {}});
  journal.kernels = {
      {"./mine.so",
       R"({"name":"mine","arithmetic":{"f32":{"accumulate":"f64"}},"claims":["deterministic","batch-invariant"]})",
       ""}};
  return journal;
}

std::string tolerances_of(const Journal& journal) {
  const Summary summary = summarise(journal, "");
  return tolerances_json(tolerance_rows(summary, journal), summary, journal);
}

TEST(Figures, AreReadAsTheyWereWritten) {
  const Figures figures = parse_figures(tolerances_of(journal_of_a_run()), "t.json");
  EXPECT_EQ(figures.seed, 7U);
  EXPECT_FALSE(figures.bred);
  ASSERT_EQ(figures.kernels.size(), 1U);
  EXPECT_EQ(figures.kernels[0].id, "./mine.so");
  EXPECT_EQ(figures.kernels[0].name, "mine");
  EXPECT_EQ(figures.kernels[0].arithmetic, "{\"accumulate\":\"f64\"}");
  EXPECT_EQ(figures.kernels[0].claims, (std::vector<std::string>{"batch-invariant", "deterministic"}));
  EXPECT_EQ(figures.kernels[0].drawn.at("mask:none"), 4);
  EXPECT_EQ(figures.kernels[0].shapes, journal_of_a_run().batches[0].tally.shapes);
  ASSERT_EQ(figures.subjects.size(), 2U);
  EXPECT_EQ(figures.subjects[1].worst_k, -1) << "nothing of it was judged";
  const SubjectFigures& one = figures.subjects[0];
  EXPECT_EQ(one.subject, (Subject{"attention.oracle", "./mine.so", "f32"}));
  EXPECT_EQ(one.verdict, Outcome::violated);
  EXPECT_EQ(one.cases, 7);
  EXPECT_EQ(one.judged, 4);
  EXPECT_EQ(one.worst_utilisation, std::numeric_limits<double>::infinity());
  EXPECT_EQ(one.worst_k, 3);
  EXPECT_EQ(one.histogram, journal_of_a_run().batches[0].tally.histogram);
  EXPECT_EQ(one.octaves.at(4), (ScaledError{code_of(1.5), code_of(40)}));
  EXPECT_EQ(one.reach, (Reach{2, 8192, 64, 32, 8, 4, 1}));
  EXPECT_EQ(figures.subjects[1].reach, std::nullopt);
}

TEST(Figures, AreTheSameFromARunAndFromItsFile) {
  const fake::Folder folder;
  const Journal journal = journal_of_a_run();
  const std::string text = stamped(to_line(*journal.run) + to_line(journal.kernels[0]) + to_line(journal.batches[0]) +
                                   to_line(journal.batches[1]));
  write_file_atomically(folder / "run.jsonl", text);
  write_file_atomically(folder / "t.json", tolerances_of(journal));
  const auto written = [](const Figures& figures) {
    JsonWriter json;
    json.begin_object();
    write_figures(json, figures);
    return json.end_object().text();
  };
  const std::string expected = written(figures_of(summarise(journal, ""), journal));
  EXPECT_EQ(written(read_figures(folder / "t.json")), expected);
  EXPECT_EQ(written(read_figures(folder / "run.jsonl")), expected);
  EXPECT_EQ(written(read_figures(folder.path())), expected);
}

TEST(Figures, AreRefusedInOneLineWithTheValueAndTheRule) {
  const std::string good = tolerances_of(journal_of_a_run());
  const auto refused = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const std::size_t place = text.find(from);
    EXPECT_NE(place, std::string::npos) << from;
    text.replace(place, from.size(), to);
    const std::string said = refusal([&] { return parse_figures(text, "t.json"); });
    EXPECT_TRUE(said.starts_with("t.json: ")) << said;
    return said;
  };
  EXPECT_THAT(refused("attest-tolerances/1", "attest-tolerances/9"), Says("attest-tolerances/1"));
  EXPECT_THAT(refused("\"subjects\"", "\"subject\""), Says("unknown key \"subject\"; did you mean \"subjects\"?"));
  EXPECT_THAT(refused("{\"schema\"", "{schema"), Says("is not JSON"));
  EXPECT_THAT(refused("\"violated\"", "\"fine\""), Says("fine"));
  EXPECT_THAT(refused("\"judged\":4", "\"judged\":5"), Says("the histogram does not count the judged cases"));
  EXPECT_THAT(refused("\"judged\":4", "\"judged\":3"), Says("counts more cases than were judged"));
  EXPECT_THAT(refused("\"cases\":7", "\"cases\":2"), Says("more cases are judged than there are"));
  EXPECT_THAT(refused("\"cases\":7", "\"cases\":-7"), Says("-7"));
  EXPECT_THAT(refused("\"worst_utilisation\":\"inf\"", "\"worst_utilisation\":\"nan\""), Says("worst_utilisation"));
  EXPECT_THAT(refused("\"histogram\":[[0,", "\"histogram\":[[64,"), Says("begins with a bin, 0 to 63"));
  EXPECT_THAT(refused("\"octaves\":[[4,", "\"octaves\":[[400,"), Says("exponent"));
  EXPECT_THAT(refused("\"reach\":{\"M\":2,", "\"reach\":{"), Says("has no \"M\""));
  EXPECT_THAT(refused("\"reach\":{\"M\":2,", "\"reach\":{\"M\":-1,"), Says("at least 0"));
  EXPECT_THAT(refused("\"reach\":{\"M\":2,", "\"reach\":{\"L\":2,\"M\":2,"), Says("unknown key \"L\""));
  EXPECT_THAT(refused("\"mask\":{\"none\":4}", "\"mask\":{\"none\":-4}"), Says("drawn"));
  // Before there were figures in it.
  EXPECT_THAT(
      refusal([] { return parse_figures(R"({"schema":"attest-tolerances/1","seed":1,"rows":[]})", "old.json"); }),
      Says("old.json: has no subjects, as those of earlier versions; write it again"));
}

}  // namespace
}  // namespace attest
