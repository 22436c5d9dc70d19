// The tolerance table: what is suggested, who gets a row, and how the rows are written.
#include "reports/results/tolerance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "core/kernel/kernel_under_test.h"
#include "core/support/infinity.h"
#include "core/test/says.h"
#include "properties/catalogue/property.h"
#include "reports/formats/html.h"
#include "reports/test/json.h"

namespace attest {
namespace {

using testing::AllOf;

ErrorCell cell_of(const std::array<double, relative_steps.size()>& atol) {
  ErrorCell cell;
  for (std::size_t i = 0; i < atol.size(); ++i) cell.atol[i] = code_of(atol[i]);
  return cell;
}

TEST(Suggested, StopsWhereMoreRelativeToleranceHardlyHelps) {
  const double u = 0x1p-24;
  // Nothing relative helps.
  EXPECT_EQ(suggested(cell_of({1e-3, 1e-3, 1e-3, 1e-3, 1e-3, 1e-3}), u).rtol, 0);
  // The first step helps, the second does not.
  const Tolerance knee = suggested(cell_of({1e-3, 1e-5, 0.9e-5, 0.8e-5, 0.8e-5, 0.8e-5}), u);
  EXPECT_GE(knee.rtol, 2 * u);
  EXPECT_LE(knee.rtol, 2.2 * u);
  EXPECT_GE(knee.atol, 1e-5);
  EXPECT_LE(knee.atol, 1.2e-5);
  // Exact answers need none.
  EXPECT_EQ(suggested(cell_of({0, 0, 0, 0, 0, 0}), u).atol, 0);
  EXPECT_EQ(suggested(cell_of({0, 0, 0, 0, 0, 0}), u).rtol, 0);
  // What flushing would take away is no tolerance.
  EXPECT_GE(suggested(cell_of({1e-44, 1e-44, 1e-44, 1e-44, 1e-44, 1e-44}), u, 0x1p-126).atol, 0x1p-126);
  EXPECT_EQ(suggested(cell_of({0, 0, 0, 0, 0, 0}), u, 0x1p-126).atol, 0);
  EXPECT_EQ(suggested(cell_of({infinity, infinity, infinity, infinity, infinity, infinity}), u).atol, infinity);
}

TEST(Suggested, IsNeverBelowWhatIsNeeded) {
  for (int i = 1; i < 5000; ++i) {
    const double need = std::ldexp(1 + i * 0x1.8p-13, i % 300 - 200);
    const Tolerance tolerance = suggested(cell_of({need, need, need, need, need, need}), 0x1p-24);
    ASSERT_GE(tolerance.atol, need);
    ASSERT_LE(tolerance.atol, need * 1.15);
  }
}

ErrorSample sample_of(std::int64_t keys, MaskEffect mask, double error) {
  ErrorSample sample;
  sample.keys = keys, sample.mask = mask, sample.elements = 10;
  sample.worst_error = error, sample.worst_ulp = 3, sample.worst_utilisation = sample.worst_normal = 0.5,
  sample.bias = -2;
  sample.squares = 0.9;
  sample.atol.fill(error);
  sample.scaled_error = 3, sample.scaled_allowed = 6, sample.budget = {100, 200, 300, 400, 0, 0};
  sample.histogram[1][utilisation_bin(0.5)] = 10;
  return sample;
}

Journal journal_of(const std::string& kernel, const std::string& words) {
  Journal journal;
  journal.run = RunRecord{.seed = 7, .case_files = {}};
  journal.meta.push_back({"end", {}});
  BatchRecord batch{{"attention.oracle", kernel, "f32"}, 0, 3, {}, {}};
  for (std::int64_t k = 0; k < 3; ++k) {
    Verdict verdict{.utilisation = 0.5};
    verdict.errors = std::make_shared<ErrorSample>(sample_of(
        k == 0 ? 1 : 100, k == 2 ? MaskEffect::bias : MaskEffect::none, std::ldexp(1.0, static_cast<int>(k))));
    batch.tally.add(k, verdict, words);
  }
  journal.batches.push_back(batch);
  journal.batches.push_back({{"attention.finite", kernel, "f32"}, 0, 0, {}, {}});
  journal.kernels = {{kernel, R"({"name":"mine","arithmetic":{"f32":{"accumulate":"f64"}}})", ""}};
  return journal;
}

TEST(ToleranceRows, AreTheWholeEachClassAndEveryCombination) {
  const Journal journal = journal_of("builtin:mine", "values:ones scores:heavy");
  const std::vector<ToleranceRow> rows = tolerance_rows(summarise(journal, ""), journal);
  // All; two classes of keys; two effects; one kind of values; three combinations.
  ASSERT_EQ(rows.size(), 9U);
  EXPECT_EQ(rows[0].keys + rows[0].mask + rows[0].values, "allallall");
  EXPECT_EQ(rows[0].cell.cases, 3);
  EXPECT_EQ(rows[0].cell.elements, 30);
  EXPECT_EQ(rows[0].accumulate, "f64");
  EXPECT_EQ(size_of_code(rows[0].cell.worst_error), 4);
  EXPECT_EQ(rows[0].tolerance.atol, 4);
  EXPECT_NEAR(rows[0].cell.mean(), -0.2, 1e-9);
  EXPECT_NEAR(rows[0].cell.root_mean_square(), 0.3, 1e-9);
  EXPECT_EQ(rows[1].keys, "1 key");
  EXPECT_EQ(rows[1].cell.cases, 1);
  EXPECT_EQ(rows[2].keys, "more than 64 keys");
  EXPECT_EQ(rows[4].mask, "bias");
  EXPECT_EQ(rows[5].values, "ones");
  EXPECT_EQ(rows[8].keys + "," + rows[8].mask + "," + rows[8].values, "more than 64 keys,bias,ones");
  EXPECT_TRUE(tolerance_rows(summarise({}, ""), {}).empty());
}

TEST(ToleranceRows, HaveOneOfOrdinaryInputsToCopy) {
  Journal journal = journal_of("builtin:mine", "scores:gaussian values:gaussian mask:none scale:inverse-root");
  BatchRecord huge{{"attention.oracle", "builtin:mine", "f32"}, 3, 4, {}, {}};
  Verdict verdict{.utilisation = 0.5, .alarm = Alarm{.elements = 10, .beyond = 1, .worst = 1.5}};
  verdict.errors = std::make_shared<ErrorSample>(sample_of(100, MaskEffect::none, 1e20));
  huge.tally.add(3, verdict, "scores:gaussian values:huge mask:none scale:inverse-root");
  journal.batches.push_back(huge);
  const Summary summary = summarise(journal, "");
  const std::vector<ToleranceRow> rows = tolerance_rows(summary, journal);
  EXPECT_GE(rows[0].tolerance.atol, 1e20);
  ASSERT_TRUE(rows[0].alarm.has_value());
  EXPECT_EQ(rows[0].alarm->worst, 1.5);
  ASSERT_TRUE(rows[1].is_ordinary());
  EXPECT_EQ(rows[1].keys, "all");
  EXPECT_EQ(rows[1].cell.cases, 3);
  EXPECT_EQ(rows[1].tolerance.atol, 8) << "twice what was needed";
  EXPECT_EQ(rows[1].caution(), "from 3 ordinary cases, 2 of more than 64 keys: too few to rely on");
  EXPECT_EQ(rows[0].caution() + rows[2].caution(), "");
  EXPECT_FALSE(rows[1].alarm.has_value());
  EXPECT_GT(rows[1].missed_of, 40);
  EXPECT_NE(std::ranges::find(rows[1].missed, "bf16-scale"), rows[1].missed.end()) << "an atol of 4 lets much pass";
  EXPECT_EQ(rows[0].missed_of, 0) << "inputs of all kinds are none that were measured";
  EXPECT_EQ(rows[2].values + rows[2].keys, "ordinary1 key");
  EXPECT_EQ(rows[3].values + rows[3].keys, "ordinarymore than 64 keys");
  const auto json = parsed_json(tolerances_json(rows, summary, journal));
  EXPECT_EQ(json["rows"][0]["bounds"].size(), 3U);
  EXPECT_EQ(json["rows"][0]["bounds"][1]["kind"], "probabilistic");
  EXPECT_EQ(json["rows"][0]["bounds"][1]["worst_utilisation"], 1.5);
  EXPECT_EQ(json["rows"][1]["misses"]["faults"].size(), rows[1].missed.size());
  EXPECT_EQ(json["rows"][1]["caution"], rows[1].caution());
  EXPECT_FALSE(json["rows"][0].contains("caution"));
  EXPECT_FALSE(json["rows"][0].contains("misses"));
  EXPECT_EQ(json["rows"][1]["bounds"].size(), 2U) << "the alarm has no classes";
}

TEST(ToleranceRows, SuggestNothingOfWhatACampaignBred) {
  Journal journal = journal_of("builtin:mine", "scores:gaussian values:gaussian mask:none scale:inverse-root");
  journal.run->fuzz = true;
  const Summary summary = summarise(journal, "");
  const std::vector<ToleranceRow> rows = tolerance_rows(summary, journal);
  ASSERT_FALSE(rows.empty());
  EXPECT_TRUE(std::ranges::none_of(rows, &ToleranceRow::is_ordinary)) << "their words are those of their ancestors";
  EXPECT_TRUE(rows_for_suites(rows).empty());
  EXPECT_EQ(size_of_code(rows[0].cell.worst_error), 4) << "what was found stays";
  const auto written = parsed_json(tolerances_json(rows, summary, journal));
  for (const auto& row : written["rows"]) {
    EXPECT_TRUE(row["atol"].is_null()) << row;
    EXPECT_TRUE(row["rtol"].is_null()) << row;
  }
  EXPECT_THAT(tolerances_csv(rows, summary), Says(",0,,,,,\"\"\n"));
  EXPECT_THAT(html_page(summary, journal, "", conclude(summary)), Says("a campaign breeds its cases to be hard"));
}

TEST(ToleranceRows, OfOrdinaryInputsHaveCasesInEveryRun) {
  const auto property = std::ranges::find(catalogue(), "attention.oracle", &Property::name);
  int ordinary = 0;
  for (std::int64_t k = 0; k < 500; ++k)
    ordinary += is_ordinary(generate(**property, DType::f32, 1, k).provenance.kinds.value()) ? 1 : 0;
  EXPECT_GT(ordinary, 25);
  EXPECT_LT(ordinary, 100);
}

/// Attention of Gaussian inputs, as a test-suite draws them.
Case of_a_suite(std::int64_t heads, std::int64_t queries, std::int64_t keys, std::int64_t columns) {
  std::mt19937_64 random(5);
  std::normal_distribution<double> normal;
  Case c;
  c[Slot::q] = Tensor(DType::f32, {1, heads, queries, columns});
  c[Slot::k] = c[Slot::v] = Tensor(DType::f32, {1, heads, keys, columns});
  for (const Slot slot : {Slot::q, Slot::k, Slot::v})
    for (std::int64_t i = 0; i < c[slot].elements(); ++i) c[slot].set(i, normal(random));
  c.scale = 1 / std::sqrt(static_cast<double>(columns));
  return c;
}

TEST(ToleranceRows, ToCopyAcceptWhatTestSuitesDraw) {
  // As many cases as a run of every property draws of each; none of the following inputs is among them.
  const auto kernel = std::move(open_kernels("builtin:flash", {}).front());
  const Property& oracle = **std::ranges::find(catalogue(), "attention.oracle", &Property::name);
  Journal journal;
  journal.run = RunRecord{};
  BatchRecord batch{{"attention.oracle", "builtin:flash", "f32"}, 0, 592, {}, {}};
  for (std::int64_t k = 0; k < 592; ++k) {
    const Case c = project(generate(oracle, DType::f32, 1, k), kernel->manifest());
    batch.tally.add(k, check_case(oracle, *kernel, c), c.provenance.kinds.value());
  }
  journal.batches.push_back(batch);
  const std::vector<ToleranceRow> rows = rows_for_suites(tolerance_rows(summarise(journal, ""), journal));
  ASSERT_EQ(rows.size(), 1U);
  ASSERT_TRUE(rows[0].is_ordinary());
  EXPECT_EQ(rows[0].caution(), "");
  const Tolerance tolerance = rows[0].tolerance;
  for (const Case& c : {of_a_suite(2, 8, 8, 8), of_a_suite(4, 64, 64, 32), of_a_suite(2, 128, 512, 64),
                        of_a_suite(1, 32, 2048, 64), of_a_suite(2, 128, 256, 128), of_a_suite(4, 128, 16, 64),
                        of_a_suite(4, 128, 16, 128), of_a_suite(4, 128, 64, 128)}) {
    Case wide = c;  // in double, whose errors are nothing beside those of float
    for (const Slot slot : {Slot::q, Slot::k, Slot::v}) {
      wide[slot] = Tensor(DType::f64, c[slot].shape());
      for (std::int64_t i = 0; i < c[slot].elements(); ++i) wide[slot].set(i, c[slot][i]);
    }
    const Tensor found = kernel->run(c).out, exact = kernel->run(wide).out;
    std::int64_t refused = 0;
    for (std::int64_t i = 0; i < found.elements(); ++i)
      refused += !(std::fabs(found[i] - exact[i]) <= tolerance.atol + tolerance.rtol * std::fabs(exact[i]));
    EXPECT_LE(refused, found.elements() / 10'000) << c.k().shape().to_string() << " " << tolerance.atol;
  }
}

TEST(ToleranceRows, NameTheLineThatRunsTheWorstCaseAlone) {
  const Journal journal = journal_of("exec:my kernel", "values:ones");
  const Summary summary = summarise(journal, "");
  const std::vector<ToleranceRow> rows = tolerance_rows(summary, journal);
  EXPECT_THAT(rerun_line(rows[2], summary, rows[2].cell.worst_k),
              Says("check --kernel 'exec:my kernel' --dtype f32 --property attention.oracle --seed 7 --cases 2 "
                   "--shard 1/2"));
  const Journal captured = journal_of("builtin:mine", "");
  const Summary of_captured = summarise(captured, "");
  const ToleranceRow last = tolerance_rows(of_captured, captured).back();
  EXPECT_EQ(last.values, "not drawn");
  EXPECT_EQ(rerun_line(last, of_captured, last.rerun_k()), "");
  // A file is named, whatever the row is of.
  Journal of_files = captured;
  of_files.run->case_files = {"a", "b c", "d"};
  for (const ToleranceRow& row : tolerance_rows(of_captured, of_files)) {
    EXPECT_THAT(rerun_line(row, of_captured, row.rerun_k()),
                AllOf(Says("check --kernel builtin:mine --dtype f32 --property attention.oracle --case "),
                      NeverSays("--shard")));
  }
  EXPECT_TRUE(rerun_line(tolerance_rows(of_captured, of_files)[2], of_captured, 1).ends_with(" --case 'b c'"));
  // What a campaign bred, no check draws.
  Journal campaign = journal;
  campaign.run->fuzz = true;
  EXPECT_EQ(rerun_line(tolerance_rows(summary, campaign)[2], summary, 1), "");
}

TEST(Tolerances, AreWrittenForProgramsAndPages) {
  const std::string evil = "exec:\"</script><b>',\n";
  const Journal journal = journal_of(evil, "values:ones");
  const Summary summary = summarise(journal, "");
  const std::vector<ToleranceRow> rows = tolerance_rows(summary, journal);
  const auto json = parsed_json(tolerances_json(rows, summary, journal));
  EXPECT_EQ(json["schema"], "attest-tolerances/1");
  ASSERT_EQ(json["rows"].size(), rows.size());
  EXPECT_EQ(json["rows"][0]["kernel"], evil);
  EXPECT_EQ(json["rows"][0]["bound"], "proved");
  EXPECT_EQ(json["rows"][0]["worst_error"], 4.0);
  EXPECT_EQ(json["rows"][0]["worst_k"], 0) << "of equal utilisations the first; the worst error is of case 2";
  EXPECT_EQ(json["rows"][0]["worst_error_k"], 2);
  EXPECT_EQ(json["rows"][0]["rerun_of"], "worst_error");
  EXPECT_THAT(json["rows"][0]["rerun"].get<std::string>(), Says(" --cases 3 --shard 2/3"));
  EXPECT_EQ(json["rows"][0]["atol"], 4.0);
  EXPECT_EQ(json["rows"][0]["bounds"].size(), 2U) << "no alarm was asked for";
  EXPECT_EQ(json["rows"][0]["bounds"][1]["worst_error_over_u_sum"], 3.0);
  EXPECT_EQ(json["rows"][0]["budget"]["weights"], 0.3);
  const std::string csv = tolerances_csv(rows, summary);
  EXPECT_EQ(csv.find("\"exec:\"\"</script>"), csv.find('\n') + 1);
  EXPECT_TRUE(csv.starts_with("kernel,name,"));
  const std::string page = html_page(summary, journal, "", conclude(summary));
  EXPECT_THAT(page, AllOf(Says("<h2>Tolerances</h2>", "more than 64 keys", "−0.2"), NeverSays("<b>'")));
}

TEST(Tolerances, HaveAFieldForEveryHeading) {
  const Journal journal = journal_of("mine", "values:ones");
  const Summary summary = summarise(journal, "");
  const std::string csv = tolerances_csv(tolerance_rows(summary, journal), summary);
  const std::string heading = csv.substr(0, csv.find('\n')), last = csv.substr(csv.rfind('\n', csv.size() - 2));
  EXPECT_EQ(std::ranges::count(heading, ','), std::ranges::count(last, ',')) << last;
}

TEST(Tolerances, AreNoFormulasInASpreadsheet) {
  const Journal journal = journal_of("=1+1", "values:ones");
  const Summary summary = summarise(journal, "");
  EXPECT_THAT(tolerances_csv(tolerance_rows(summary, journal), summary), Says("\n\"'=1+1\","));
}

}  // namespace
}  // namespace attest
