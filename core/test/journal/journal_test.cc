#include "core/journal/journal.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/problem/case.h"
#include "core/support/files.h"
#include "core/support/json_writer.h"
#include "core/test/temporary_folder.h"

namespace attest {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

Verdict verdict_of(std::int64_t k) {
  Verdict verdict;
  verdict.utilisation = static_cast<double>((k * 7919) % 1000) / 1500.0;
  verdict.level = static_cast<int>(k % 3) + 1;
  verdict.bits_compared = 2 + k % 7;
  verdict.bits_agreed = verdict.bits_compared - k % 2;
  if (k % 3 != 1)
    verdict.reach = Reach{k % 7 + 1, k * 37 % 101 + 1, k % 5 + 1, k % 11 + 1, k % 4 + 1, k % 2 + 1, k % 3 + 1};
  if (k % 11 == 0) verdict = {.outcome = Outcome::skipped, .reason = fmt::format("has {} keys; max_keys is 4", k)};
  if (k % 97 == 5) {
    verdict = {.outcome = Outcome::violated,
               .violation = k % 2 == 0 ? Violation::bound : Violation::died,
               .utilisation = 2.0 + static_cast<double>(k)};
  }
  if (k % 89 == 4) verdict = {.outcome = Outcome::inconclusive, .reason = "undecided"};
  return verdict;
}

std::string kinds_of(std::int64_t k) {
  return fmt::format("scores:{} mask:{}", k % 4 == 1 ? "heavy" : "gaussian", k % 3 == 0 ? "none" : "whole-row");
}

BitClasses bits_of(std::int64_t k) {
  return static_cast<BitClasses>(k % 5);
}

Subject subject_of(int i) {
  return {"attention.oracle", i % 2 == 0 ? "builtin:flash" : "exec:a \"b\"", i < 2 ? "f32" : "bf16"};
}

/// A run over four subjects, batch by batch in the given order of blocks.
Journal run_in_order(const std::vector<std::int64_t>& blocks, const Shard& shard, std::int64_t cases) {
  Journal journal;
  journal.run = RunRecord{.seed = 7, .case_files = {}};
  journal.meta.push_back({"begin", {{"host", fmt::format("h{}", shard.index)}}});
  for (const std::int64_t block : blocks) {
    for (int i = 0; i < 4; ++i) {
      BatchRecord batch{subject_of(i), batch_start(block), std::min(batch_start(block + 1), cases), shard, {}};
      for (std::int64_t k = batch.first_k; k < batch.last_k; ++k) {
        if (!shard.takes(k)) continue;
        batch.tally.add(k, verdict_of(k), kinds_of(k), bits_of(k));
        if (const Outcome outcome = verdict_of(k).outcome;
            outcome == Outcome::violated || outcome == Outcome::inconclusive) {
          journal.findings.push_back({subject_of(i), k, fmt::format("cases/k{}.safetensors", k), verdict_of(k)});
        }
      }
      journal.batches.push_back(batch);
    }
  }
  return journal;
}

/// Another worst utilisation of a tally, beyond every bin but the last.
void set_worst(Tally& tally, double worst) {
  tally.worst_utilisation = worst;
  const auto last =
      std::ranges::find_if(tally.histogram.rbegin(), tally.histogram.rend(), [](auto n) { return n > 0; });
  --*last;
  ++tally.histogram.back();
}

std::string canonical_text(const std::vector<Journal>& parts) {
  const std::vector<std::string> sources(parts.size(), "a run");
  return to_text(canonical(parts, sources));
}

std::string error_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

TEST(JsonWriter, WritesShortestNumbersAndNamesTheRest) {
  EXPECT_EQ(number_text(0.1), "0.1");
  EXPECT_EQ(number_text(-0.0), "-0");
  EXPECT_EQ(number_text(0x1p-1074), "5e-324");
  EXPECT_EQ(number_text(nan), "nan");
  EXPECT_EQ(number_text(-inf), "-inf");
  JsonWriter json;
  json.begin_object().member("a", inf).member("b\"\n", "x\xff").key("c").begin_array().value(1).value(true).end_array();
  json.member("d", 0.5).end_object();
  EXPECT_EQ(json.text(), "{\"a\":\"inf\",\"b\\\"\\n\":\"x\xEF\xBF\xBD\",\"c\":[1,true],\"d\":0.5}");
  EXPECT_FALSE(nlohmann::json::parse(json.text()).empty());
}

TEST(Tally, CountsTheWorstAndTheSmallestKThatAttainsIt) {
  Tally tally;
  tally.add(9, {.utilisation = 0.0});
  EXPECT_EQ(tally.worst_k, 9);
  tally.add(5, {.utilisation = 0.25});
  tally.add(3, {.utilisation = 0.25});
  tally.add(
      1,
      {.outcome = Outcome::excused, .utilisation = 8.0, .reason = "row 3: bound 1.5e-07 of f16 is vacuous; limit 3"});
  EXPECT_EQ(tally.worst_k, 3);
  EXPECT_EQ(tally.worst_utilisation, 0.25);
  EXPECT_EQ(tally.judged(), 3);
  EXPECT_EQ(tally.reasons.at({Outcome::excused, "row N: bound N of f16 is vacuous; limit 3"}), 1);
  tally.add(4, {.outcome = Outcome::violated, .utilisation = nan});
  EXPECT_EQ(tally.worst_utilisation, inf);
  EXPECT_EQ(tally.worst_k, 4);
}

TEST(Tally, KeepsTheFirstViolationsInWhateverOrderTheyCome) {
  Tally odd, even, together;
  for (std::int64_t k = 1800; k > 0; --k) {
    const Verdict verdict{.outcome = k % 3 == 0 ? Outcome::held : Outcome::violated, .utilisation = 1.5};
    (k % 2 == 0 ? even : odd).add(k, verdict);
    together.add(k, verdict);
  }
  ASSERT_EQ(together.violated, 1200);
  EXPECT_EQ(together.violated_k.size(), violations_kept);
  EXPECT_EQ(together.violated_k.front(), 1);
  EXPECT_EQ(together.violated_k.back(), 1499);  // the thousandth that is no multiple of three
  EXPECT_TRUE(std::ranges::is_sorted(together.violated_k));
  even.merge(odd);
  EXPECT_EQ(even.violated_k, together.violated_k);
}

TEST(Tally, BinsHaveExactEdges) {
  const auto bin = [](double utilisation) {
    Tally tally;
    tally.add(0, {.utilisation = utilisation});
    return std::ranges::find(tally.histogram, 1) - tally.histogram.begin();
  };
  EXPECT_EQ(bin(0.0), 0);
  EXPECT_EQ(bin(0x1p-40), 0);
  EXPECT_EQ(bin(0x1p-14), 0);
  EXPECT_EQ(bin(0.5), 51);
  EXPECT_EQ(bin(1.0), 55);
  EXPECT_EQ(bin(std::nextafter(1.0, 2.0)), 56);
  EXPECT_EQ(bin(std::sqrt(2.0)), 57);
  EXPECT_EQ(bin(std::nextafter(std::sqrt(2.0), 2.0)), 58);
  EXPECT_EQ(bin(1e300), 63);
  EXPECT_EQ(bin(inf), 63);
}

TEST(Tally, QuantilesBoundFromAbove) {
  Tally tally;
  for (int k = 0; k < 100; ++k) tally.add(k, {.utilisation = (k + 0.5) / 100});
  EXPECT_GE(tally.quantile(0.5), 0.495);
  EXPECT_LE(tally.quantile(0.5), 0.495 * 1.19);
  EXPECT_EQ(tally.quantile(1.0), 0.995);
  EXPECT_EQ(Tally().quantile(0.99), 0.0);
}

TEST(Tally, MergesInAnyOrderToTheSame) {
  Tally forwards, backwards;
  std::vector<Tally> parts(7);
  for (std::int64_t k = 0; k < 500; ++k)
    parts[static_cast<std::size_t>(k * k % 7)].add(k, verdict_of(k), kinds_of(k), bits_of(k));
  for (const Tally& part : parts) forwards.merge(part);
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) backwards.merge(*part);
  Tally whole;
  for (std::int64_t k = 0; k < 500; ++k) whole.add(k, verdict_of(k), kinds_of(k), bits_of(k));
  EXPECT_EQ(forwards, whole);
  EXPECT_EQ(backwards, whole);
}

TEST(Tally, CountsWhatWasDrawnForJudgedCasesAlone) {
  Tally tally;
  const BitClasses odd = set_of(BitClass::zero) | set_of(BitClass::subnormal);
  tally.add(0, {}, "scores:heavy mask:none", odd);
  tally.add(1, {.outcome = Outcome::violated, .utilisation = 2}, "scores:heavy mask:padding", set_of(BitClass::zero));
  for (const Outcome outcome : {Outcome::skipped, Outcome::excused, Outcome::inconclusive})
    tally.add(2, {.outcome = outcome, .bits_agreed = 1, .bits_compared = 1, .reason = "no"}, "scores:heavy", odd);
  tally.add(3, {.bits_agreed = 3, .bits_compared = 4});
  tally.add(4, {.bits_agreed = 5, .bits_compared = 5});
  EXPECT_EQ(tally.drawn,
            (DrawnCounts{
                {"scores:heavy", 2}, {"mask:none", 1}, {"mask:padding", 1}, {"bits:zero", 2}, {"bits:subnormal", 1}}));
  EXPECT_EQ(tally.bits_agreed, 8);
  EXPECT_EQ(tally.bits_compared, 9);
  EXPECT_EQ(tally.drawn_of("mask:padding mask:whole-row mask:none"), 2);
  EXPECT_EQ(tally.drawn_of("bits:largest"), 0);
  EXPECT_EQ(tally.drawn_of("bits:zero"), 2);
}

TEST(Tally, ReachesAsFarAsTheOracleJudgedEachExtentByItself) {
  Tally tally;
  tally.add(0, {.level = 1, .reach = Reach{1, 8192, 16, 8, 1, 1, 1}});
  tally.add(1, {.outcome = Outcome::violated, .utilisation = 2, .level = 1, .reach = Reach{320, 64, 4, 4, 8, 2, 1}});
  EXPECT_EQ(tally.reach, (Reach{320, 8192, 16, 8, 8, 2, 1}));
  // Judged by a law alone, or not at all.
  const Reach far{1000, 10000, 512, 512, 64, 64, 64};
  tally.add(2, {});
  for (const Outcome outcome : {Outcome::skipped, Outcome::excused, Outcome::inconclusive})
    tally.add(3, {.outcome = outcome, .level = 3, .reason = "no", .reach = far});
  EXPECT_EQ(tally.reach, (Reach{320, 8192, 16, 8, 8, 2, 1}));
  EXPECT_FALSE(tally.reach_unknown());
  Tally laws;
  laws.add(0, {});
  EXPECT_FALSE(laws.reach.has_value());
  EXPECT_FALSE(laws.reach_unknown());
}

TEST(Journal, KeepsTheReachAndKnowsNoneFromBeforeItWasKept) {
  const Journal journal = run_in_order({0, 1}, {}, 100);
  const std::string text = to_text(journal);
  const Journal read = parse_journal(text, "text");
  ASSERT_TRUE(read.batches[0].tally.reach.has_value());
  EXPECT_EQ(read.batches[0].tally, journal.batches[0].tally);
  EXPECT_EQ(to_text(read), text);
  // The gradient of keys over no queries is 0, and judged; so is a row over no keys.
  Journal empty = journal;
  empty.batches[0].tally.reach = Reach{0, 0, 2, 2, 1, 1, 1};
  EXPECT_EQ(parse_journal(to_text(empty), "text").batches[0].tally, empty.batches[0].tally);
  const std::string_view member = "\"reach\":{\"M\":";
  for (const std::string_view to : {"\"reach\":{\"M\":0,\"M\":", "\"reach\":{\"M\":-",
                                    "\"reach\":{\"M\":1,\"K\":", "\"reach\":{\"K\":", "\"reach\":7,\"x\":{\"M\":"}) {
    std::string broken = text;
    ASSERT_NE(broken.find(member), std::string::npos);
    broken.replace(broken.find(member), member.size(), to);
    EXPECT_NE(error_of([&] { (void)parse_journal(stamped(broken), "j"); }).find("j, line"), std::string::npos) << to;
  }
  const auto batch = [](const std::string& counts, const std::string& rest) {
    return stamped(to_line(RunRecord{}) +
                   R"({"kind":"batch","property":"p","kernel":"k","dtype":"f32","first":0,"last":64,)" + counts +
                   R"("violated":0,"excused":0,"inconclusive":0,"worst":0.5,"worst_k":3,)" + rest + "}\n");
  };
  const std::string oracle = R"("level":[0,63,0,0],"histogram":[[51,63]],"reasons":{"skipped: no":1})";
  const Tally old = parse_journal(batch(R"("held":63,"skipped":1,)", oracle), "old").batches.at(0).tally;
  EXPECT_FALSE(old.reach.has_value());
  EXPECT_TRUE(old.reach_unknown());
  // What judged nothing reached nothing.
  const std::string none = R"("level":[0,0,0,0],"histogram":[],"reasons":{"skipped: no":64},"reach":)"
                           R"({"M":1,"N":1,"dk":1,"dv":1,"heads":1,"kv_heads":1,"batch":1})";
  EXPECT_NE(error_of([&] {
              (void)parse_journal(batch(R"("held":0,"skipped":64,)", none), "j");
            }).find("j, line 2: has a \"reach\", but judged no case"),
            std::string::npos);
}

TEST(Journal, KeepsWhatWasDrawnAndTheBitsThatAgreed) {
  const Journal journal = run_in_order({0, 1}, {}, 100);
  const std::string text = to_text(journal);
  const Journal read = parse_journal(text, "text");
  EXPECT_EQ(read.batches[0].tally, journal.batches[0].tally);
  EXPECT_EQ(to_text(read), text);
  EXPECT_GT(read.batches[0].tally.drawn_of("mask:none"), 0);
  EXPECT_GT(read.batches[0].tally.bits_compared, 0);
  EXPECT_NE(text.find("\"drawn\":{\"bits\":{"), std::string::npos);
  for (const auto& [from, to] :
       {std::pair{"\"drawn\":{", "\"drawn\":{\"a:b\":{},"}, std::pair{"\"drawn\":{", "\"drawn\":{\"a\":3,"},
        std::pair{"\"none\":", "\"none\":-"}, std::pair{"\"same_bits\":[", "\"same_bits\":[1,"},
        std::pair{"\"same_bits\":[", "\"same_bits\":[9"}}) {
    std::string broken = text;
    broken.replace(broken.find(from), std::string_view(from).size(), to);
    EXPECT_NE(error_of([&] { (void)parse_journal(stamped(broken), "j"); }).find("j, line"), std::string::npos) << to;
  }
}

// A line as it was written before batches counted what was drawn.
TEST(Journal, ReadsBatchesWithoutCountsOfWhatWasDrawn) {
  const std::string old =
      R"({"kind":"run","schema":"attest-journal/1","seed":1})"
      "\n"
      R"({"kind":"batch","property":"p","kernel":"k","dtype":"f32","first":0,"last":64,"held":63,"violated":0,)"
      R"("skipped":1,"excused":0,"inconclusive":0,"worst":0.5,"worst_k":3,"level":[0,63,0,0],"histogram":[[51,63]],)"
      R"("reasons":{"skipped: no":1}})"
      "\n";
  const Journal read = parse_journal(old, "old");
  ASSERT_EQ(read.batches.size(), 1U);
  EXPECT_TRUE(read.batches[0].tally.drawn.empty());
  EXPECT_EQ(read.batches[0].tally.bits_compared, 0);
  // Written again it has checksums.
  std::string now = old;
  now.replace(now.find("/1"), 2, "/2");
  now.insert(now.find('}'), ",\"lines\":2");
  EXPECT_EQ(to_text(read), stamped(now));
}

/// Alarms of which every seventh case raises one.
Verdict alarmed_verdict_of(std::int64_t k) {
  Verdict verdict = verdict_of(k);
  if (k % 5 != 0) verdict.alarm = Alarm{1 + k % 4, k % 7 == 3 ? 1 : 0, k % 3, static_cast<double>((k * 31) % 64) / 32};
  return verdict;
}

TEST(Journal, ReadsStatisticsOfErrorsFromBeforeThereWereBudgets) {
  const std::string old =
      R"({"kind":"run","schema":"attest-journal/1","seed":1}
{"kind":"batch","property":"attention.oracle","kernel":"k","dtype":"f32","first":0,"last":3,"held":3,"violated":0,"skipped":0,"excused":0,"inconclusive":0,"worst":0.5,"worst_k":2,"level":[0,3,0,0],"histogram":[[51,3]],"reasons":{},"errors":{"cells":["1 0 ones 3 30 11 12 13 2 14 -1 5 7 8 21 22 23 24 25 26 55 30"],"scores":["1 heavy 3 13"],"octaves":"4 15 16","signs":"55 20 10"}}
)";
  const Journal read = parse_journal(old, "old");
  ASSERT_EQ(read.batches.size(), 1U);
  const ErrorTable& errors = read.batches[0].tally.errors;
  ASSERT_EQ(errors.cells.size(), 1U);
  const ErrorCell& cell = errors.cells.begin()->second;
  EXPECT_EQ(cell.condition, 14U);
  EXPECT_EQ(cell.bias, (FixedSum{-1, 5}));
  EXPECT_EQ(cell.squares, (FixedSum{7, 8}));
  EXPECT_EQ(cell.atol[5], 26U);
  EXPECT_EQ(cell.histogram[55], 30);
  EXPECT_EQ(cell.budget, Budget{});
  EXPECT_TRUE(errors.ordinary.empty());
  EXPECT_EQ(errors.octaves.at(4), (ScaledError{15, 16}));
  EXPECT_EQ(errors.signs[0][55], 20);
}

TEST(AlarmTally, CountsTheWorstAndMergesInAnyOrderToTheSame) {
  Tally tally;
  tally.add(8, {.alarm = Alarm{4, 1, 0, 1.5}});
  tally.add(6, {.alarm = Alarm{2, 1, 1, 1.5}});
  tally.add(2, {.alarm = Alarm{3, 0, 2, 0.5}});
  tally.add(1, {.alarm = Alarm{0, 0, 9, 0}});
  // An excused case has its alarm too, and one without is not counted.
  tally.add(3, {.outcome = Outcome::excused, .reason = "vacuous bound", .alarm = Alarm{1, 0, 0, 0.25}});
  tally.add(0, {});
  ASSERT_TRUE(tally.alarm.has_value());
  EXPECT_EQ(tally.alarm->all, (Alarm{10, 2, 12, 1.5}));
  EXPECT_EQ(tally.alarm->cases, 2);
  EXPECT_EQ(tally.alarm->worst_k, 6);

  Tally whole, forwards, backwards;
  std::vector<Tally> parts(7);
  for (std::int64_t k = 0; k < 300; ++k) {
    parts[static_cast<std::size_t>(k % 7)].add(k, alarmed_verdict_of(k));
    whole.add(k, alarmed_verdict_of(k));
  }
  for (const Tally& part : parts) forwards.merge(part);
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) backwards.merge(*part);
  EXPECT_EQ(forwards, whole);
  EXPECT_EQ(backwards, whole);
  EXPECT_NE(whole.alarm->worst_k, -1);

  Tally none;
  none.merge(Tally{});
  EXPECT_FALSE(none.alarm.has_value());
  none.merge(tally);
  EXPECT_EQ(none.alarm, tally.alarm);
}

TEST(Journal, KeepsAlarmsWhereTheyWereAskedFor) {
  Journal journal = run_in_order({0, 1}, {}, 100);
  EXPECT_EQ(to_text(journal).find("alarm"), std::string::npos);
  const Journal silent = journal;
  journal.run->alarm = 1e-9;
  journal.batches[0].tally = {};
  for (std::int64_t k = 0; k < 64; ++k) journal.batches[0].tally.add(k, alarmed_verdict_of(k));
  const std::string text = to_text(journal);
  const Journal read = parse_journal(text, "text");
  EXPECT_EQ(to_text(read), text);
  EXPECT_EQ(read.run, journal.run);
  EXPECT_EQ(read.batches[0].tally.alarm, journal.batches[0].tally.alarm);
  EXPECT_FALSE(read.batches[1].tally.alarm.has_value());
  EXPECT_EQ(parse_journal(canonical_text({journal}), "text").run, journal.run);
  // A run that was asked and one that was not are two runs, of the same cases.
  EXPECT_NE(error_of([&] { (void)canonical_text({journal, silent}); }).find("--alarm"), std::string::npos);
  for (const auto& [from, to] :
       {std::pair{"\"alarm\":1e-09", "\"alarm\":0"}, std::pair{"\"alarm\":1e-09", "\"alarm\":\"nan\""},
        std::pair{"\"beyond\":", "\"beyond\":-"}, std::pair{"\"uncovered\":", "\"covered\":"}}) {
    std::string broken = text;
    broken.replace(broken.find(from), std::string_view(from).size(), to);
    EXPECT_NE(error_of([&] { (void)parse_journal(stamped(broken), "j"); }).find("j, line"), std::string::npos) << to;
  }
}

TEST(Journal, ReadsBackWhatItWrote) {
  Journal journal = run_in_order({0, 1}, {2, 3}, 100);
  journal.kernels = {{"builtin:flash", R"({"name":"flash","dtypes":["f32"]})", ""},
                     {"pytorch:*", "", "no module named torch"}};
  journal.findings[0].verdict.error = nan;
  set_worst(journal.batches[0].tally, inf);
  const std::string text = to_text(journal);
  const Journal read = parse_journal(text, "text");
  EXPECT_EQ(to_text(read), text);
  EXPECT_EQ(read.kernels, journal.kernels);
  EXPECT_TRUE(std::isnan(read.findings[0].verdict.error));
  ASSERT_EQ(read.findings.size(), journal.findings.size());
  for (std::size_t i = 0; i < read.findings.size(); ++i) {
    EXPECT_EQ(read.findings[i].verdict.violation, journal.findings[i].verdict.violation);
    EXPECT_EQ(read.findings[i].kind(), journal.findings[i].kind());
  }
  const Violation first = journal.findings[0].verdict.violation;
  const std::string known = fmt::format("\"class\":\"{}\"", name_of(first));
  std::string other = text;
  ASSERT_NE(other.find(known), std::string::npos);
  other.replace(other.find(known), known.size(), R"("class":"tired")");
  ASSERT_NE(other, text);
  EXPECT_NE(error_of([&] { (void)parse_journal(stamped(other), "text"); }).find("no class of violation \"tired\""),
            std::string::npos);
  EXPECT_FALSE(read.torn);
}

TEST(Journal, KeepsTheSidesOfALawAndRefusesElementsThatAreNone) {
  FindingRecord finding{subject_of(0), 3, "cases/k3.safetensors", verdict_of(5)};
  finding.compared = {
      {.shape = {1, 2, 3, 4}, .element = 23, .keys = 5, .found = nan, .exact = Enclosure{-0.1, inf}},
      {.shape = {2, 3, 4}, .element = 0, .keys = 0, .found = 0.1, .exact = {}, .gradient = Gradient::sink}};
  const std::string text = stamped(to_line(RunRecord{}) + to_line(finding));
  const Journal read = parse_journal(text, "text");
  ASSERT_EQ(read.findings.size(), 1U);
  ASSERT_EQ(read.findings[0].compared.size(), 2U);
  const ComparedRecord& one = read.findings[0].compared[0];
  EXPECT_EQ(one.shape, (Shape{1, 2, 3, 4}));
  EXPECT_EQ(one.element, 23);
  EXPECT_EQ(one.keys, 5);
  EXPECT_TRUE(std::isnan(one.found));
  EXPECT_EQ(one.exact->lower, -0.1);
  EXPECT_EQ(one.exact->upper, inf);
  EXPECT_FALSE(one.gradient);
  EXPECT_EQ(one.place(), "out[0, 1, 2, 3]");
  EXPECT_FALSE(read.findings[0].compared[1].exact);
  EXPECT_EQ(read.findings[0].compared[1].gradient, Gradient::sink);
  EXPECT_EQ(read.findings[0].compared[1].place(), "dsink[0, 0, 0]");
  EXPECT_EQ(to_line(read.findings[0]), to_line(finding));
  for (const auto& [from, to] :
       {std::pair{"\"element\":23", "\"element\":24"}, std::pair{"[1,2,3,4]", "[1,0,3,4]"},
        std::pair{"[1,2,3,4]", "[1,2,3,4,5]"}, std::pair{"[1,2,3,4]", "[4294967296,4294967296,3,4]"},
        std::pair{"\"exact\":[-0.1,", "\"exact\":["}, std::pair{"\"gradient\":\"dsink\"", "\"gradient\":\"out\""},
        std::pair{"\"compared\":[", "\"compared\":[3,"}}) {
    std::string broken = text;
    ASSERT_NE(broken.find(from), std::string::npos) << from;
    broken.replace(broken.find(from), std::string_view(from).size(), to);
    EXPECT_NE(error_of([&] { (void)parse_journal(stamped(broken), "j"); }).find("j, line 2: "), std::string::npos)
        << to;
  }
}

TEST(Journal, IgnoresATornLastLineAtEveryLength) {
  const Journal whole = run_in_order({0}, {}, 64);
  std::string text = to_line(*whole.run);
  for (const FindingRecord& finding : whole.findings) text += to_line(finding);
  for (const BatchRecord& batch : whole.batches) text += to_line(batch);
  text = stamped(text);
  const std::size_t first_line = text.find('\n') + 1;
  for (std::size_t length = first_line; length <= text.size(); ++length) {
    const Journal read = parse_journal(std::string_view(text).substr(0, length), "text");
    EXPECT_EQ(read.torn, text[length - 1] != '\n') << length;
  }
}

TEST(Journal, RefusesAWholeLineThatIsWrong) {
  const std::string run = to_line(RunRecord{});
  const auto error = [&](const std::string& line) {
    return error_of([&] { (void)parse_journal(stamped(run + line + "\n"), "j"); });
  };
  EXPECT_NE(error("{").find("j, line 2: is not JSON"), std::string::npos);
  EXPECT_NE(error("[]").find("is not a JSON object"), std::string::npos);
  EXPECT_NE(error("").find("is not JSON"), std::string::npos);
  EXPECT_NE(error(R"({"kind":"botch"})").find("unknown kind"), std::string::npos);
  EXPECT_NE(error(R"({"kind":"kernel","id":3})").find("\"id\" must be a string"), std::string::npos);
  EXPECT_NE(error(R"({"kind":"kernel","id":"a","colour":"red"})").find("unknown member \"colour\""), std::string::npos);
  EXPECT_NE(error_of([] { (void)parse_journal("", "j"); }).find("holds no run"), std::string::npos);
  std::string batch = to_line(run_in_order({0}, {}, 64).batches[0]);
  batch.pop_back();
  EXPECT_EQ(error(batch), "no error");
  for (const auto& [from, to] :
       {std::pair{"\"first\":0", "\"first\":-1"}, std::pair{"\"first\":0", "\"first\":65"},
        std::pair{"\"first\":0", "\"first\":1e99"}, std::pair{"\"worst\":", "\"worst\":-"},
        std::pair{"\"level\":[", "\"level\":[1,"}, std::pair{"\"histogram\":[[", "\"histogram\":[[9"}}) {
    std::string broken = batch;
    broken.replace(broken.find(from), std::string_view(from).size(), to);
    EXPECT_NE(error(broken).find("j, line 2"), std::string::npos) << broken;
  }
}

TEST(Journal, HasOneCanonicalFormForAnyOrderAndShards) {
  const std::int64_t cases = 64 * 5 + 17;
  const std::string whole = canonical_text({run_in_order({0, 1, 2, 3, 4, 5}, {}, cases)});
  EXPECT_EQ(canonical_text({run_in_order({5, 2, 0, 4, 1, 3}, {}, cases)}), whole);
  EXPECT_EQ(canonical_text({run_in_order({3, 4, 5, 0}, {1, 2}, cases), run_in_order({0, 1, 2, 3, 4, 5}, {0, 2}, cases),
                            run_in_order({1, 2}, {1, 2}, cases)}),
            whole);
  // Resumed after a kill between a batch's findings and its line: both are there twice.
  EXPECT_EQ(canonical_text({run_in_order({0, 1, 2}, {}, cases), run_in_order({2, 3, 4, 5}, {}, cases)}), whole);
  // Merging what was merged.
  const Journal half = parse_journal(canonical_text({run_in_order({0, 1, 2, 3, 4, 5}, {1, 2}, cases)}), "half");
  EXPECT_EQ(canonical_text({run_in_order({0, 1, 2, 3, 4, 5}, {0, 2}, cases), half}), whole);
  EXPECT_EQ(canonical_text({parse_journal(whole, "whole")}), whole);
  // One range a subject, and a lost batch shows.
  EXPECT_EQ(parse_journal(whole, "whole").batches.size(), 4U);
  EXPECT_NE(canonical_text({run_in_order({0, 1, 3, 4, 5}, {}, cases)}), whole);
  EXPECT_NE(canonical_text({run_in_order({0, 1, 2, 3, 4, 5}, {1, 2}, cases)}), whole);
}

TEST(Journal, MergesFilesAsItMergesWhatTheyHold) {
  const test::TemporaryFolder folder;
  const std::int64_t cases = 64 * 5 + 17;
  std::vector<Journal> parts{run_in_order({3, 4, 5, 0}, {1, 2}, cases), run_in_order({0, 1, 2, 3, 4, 5}, {0, 2}, cases),
                             run_in_order({1, 2}, {1, 2}, cases)};
  parts[1].proofs = {{"p", "symbolic", "the core", "because"}};
  const std::vector<std::filesystem::path> files{folder / "0.jsonl", folder / "1.jsonl", folder / "2.jsonl"};
  const auto write = [&] {
    for (std::size_t i = 0; i < files.size(); ++i) {
      std::ofstream file(files[i]);
      file << stamped(to_text(parts[i]) + to_line(MetaRecord{"end", {{"host", fmt::format("h{}", i)}}}));
      if (i == 2) file << "{\"kind\":\"batch\"";
    }
  };
  // Whole; without a batch of one shard, and with one twice; with a shard alone.
  for (int lost = 0; lost < 3; ++lost) {
    if (lost == 1) parts[1].batches.erase(parts[1].batches.begin() + 5);
    if (lost == 1) parts[2].batches.push_back(parts[2].batches.front());
    if (lost == 2) parts[1].batches.clear();
    write();
    const MergedJournals merged = merge_journals(files);
    EXPECT_EQ(to_text(merged.journal), canonical_text(parts)) << lost;
    ASSERT_EQ(merged.parts.size(), 3U);
    for (std::size_t i = 0; i < 3; ++i) {
      ASSERT_EQ(merged.parts[i].meta.size(), 1U);
      EXPECT_EQ(merged.parts[i].meta[0].facts.at("host"), fmt::format("h{}", i));
      EXPECT_EQ(merged.parts[i].torn, i == 2);
      std::map<Subject, Tally> tallies;
      for (const BatchRecord& batch : parts[i].batches) tallies[batch.subject].merge(batch.tally);
      ASSERT_EQ(merged.parts[i].worst.size(), tallies.size());
      for (const auto& [subject, tally] : tallies)
        EXPECT_EQ(merged.parts[i].worst.at(subject), std::optional(tally.worst_utilisation));
    }
  }
}

const std::string hash_a(64, 'a'), hash_b(64, 'b');

/// A run of one kernel that is made of these files.
Journal run_of(std::map<std::string, std::set<std::string>> files) {
  Journal journal;
  journal.run = RunRecord{.seed = 7, .case_files = {}};
  journal.kernels.push_back({"./mine.so", R"({"name":"mine"})", "", std::move(files)});
  return journal;
}

TEST(Journal, KeepsTheFilesOfAKernel) {
  const Journal journal = run_of({{"./mine.so", {hash_a}}, {"data \"file\"", {hash_a, hash_b}}});
  const Journal read = parse_journal(to_text(journal), "it");
  ASSERT_EQ(read.kernels.size(), 1U);
  EXPECT_EQ(read.kernels[0], journal.kernels[0]);
  EXPECT_EQ(to_text(read), to_text(journal));
  // As journals of before are.
  EXPECT_TRUE(parse_journal(to_text(run_of({})), "it").kernels[0].files.empty());
  for (const char* wrong :
       {R"("files":{"f":[]})", R"("files":{"f":["abc"]})", R"("files":{"f":"x"})", R"("files":[])"}) {
    std::string text = to_text(run_of({{"f", {hash_a}}}));
    const std::string right = R"("files":{"f":[")" + hash_a + R"("]})";
    text.replace(text.find(right), right.size(), wrong);
    EXPECT_NE(error_of([&] { (void)parse_journal(text, "it"); }).find("line 2"), std::string::npos) << wrong;
  }
}

TEST(Journal, JoinsNoTwoBuildsOfAKernelUnlessOneSaysSo) {
  const Journal a = run_of({{"f", {hash_a}}}), b = run_of({{"f", {hash_b}}}), both = run_of({{"f", {hash_a, hash_b}}}),
                before = run_of({}), further = run_of({{"f", {hash_a}}, {"g", {hash_b}}});
  EXPECT_EQ(canonical_text({a, a}), to_text(a));
  EXPECT_EQ(canonical_text({a, before}), to_text(a));
  EXPECT_EQ(canonical_text({before, a}), to_text(a));
  // A run that somebody resumed with another build, in any order.
  EXPECT_EQ(canonical_text({a, b, both}), to_text(both));
  EXPECT_EQ(canonical_text({both, a}), to_text(both));
  const std::vector<std::string> sources{"one", "two"};
  const auto merged = [&](const Journal& first, const Journal& second) {
    const std::vector<Journal> parts{first, second};
    return error_of([&] { (void)canonical(parts, sources); });
  };
  EXPECT_EQ(merged(a, b),
            "kernel ./mine.so: its file f is not the same in one and two; merge runs of one build, or accept it with "
            "--accept-changed-kernel");
  EXPECT_NE(merged(b, further).find("its file "), std::string::npos);
  // The one that has everything is the union.
  EXPECT_EQ(merged(a, further), "no error");
  const test::TemporaryFolder folder;
  const std::vector<std::filesystem::path> files{folder / "a", folder / "b"};
  std::ofstream(files[0]) << to_text(a);
  std::ofstream(files[1]) << to_text(b);
  EXPECT_NE(error_of([&] { (void)merge_journals(files); }).find(files[1].string()), std::string::npos);
  EXPECT_EQ(to_text(merge_journals(files, {}, /*accept_changed=*/true).journal), to_text(both));
}

TEST(Journal, NamesTheLineOfAFileThatIsWrongInATallyOrBeforeIt) {
  const test::TemporaryFolder folder;
  const std::string text = to_text(run_in_order({0}, {}, 64));
  const std::vector<std::filesystem::path> files{folder / "j"};
  for (const auto& [from, to] : {std::pair{"\"first\":0", "\"first\":-1"}, std::pair{"\"held\":", "\"held\":-"},
                                 std::pair{"{\"kind\":\"batch\"", "{\"kind\":\"batch\",\"colour\":1"}}) {
    std::string broken = text;
    broken.replace(broken.find(from), std::string_view(from).size(), to);
    std::ofstream(files[0]) << stamped(broken);
    const std::string error = error_of([&] { (void)merge_journals(files); });
    EXPECT_EQ(error, error_of([&] { (void)read_journal(files[0]); })) << to;
    EXPECT_NE(error.find(fmt::format("{}, line ", files[0].string())), std::string::npos) << error;
  }
  std::ofstream(files[0]) << to_line(MetaRecord{"begin", {}});
  EXPECT_NE(error_of([&] { (void)merge_journals(files); }).find("holds no run"), std::string::npos);
  std::filesystem::remove(files[0]);
  EXPECT_NE(error_of([&] { (void)merge_journals(files); }).find("cannot read"), std::string::npos);
}

// Two half runs, the one with a range that another version cut otherwise.
TEST(Journal, JoinsWhatEveryShardHasBatchByBatchAndThenAsItWasJoined) {
  const std::int64_t cases = 64 * 4;
  Journal odd = run_in_order({0, 1, 2, 3}, {1, 2}, cases);
  for (BatchRecord& batch : odd.batches) {
    // 0..100, 100..128 for two batches of 64.
    if (batch.first_k == 0) batch.last_k = 100;
    if (batch.first_k == 64) batch.first_k = 100;
  }
  const Journal even = run_in_order({0, 1, 2, 3}, {0, 2}, cases);
  const Journal read = parse_journal(canonical_text({odd, even}), "merged");
  for (const BatchRecord& batch : read.batches) {
    EXPECT_EQ(batch.shard, Shard{});
    EXPECT_EQ(batch.first_k, 0);
    EXPECT_EQ(batch.last_k, cases);
  }
  EXPECT_EQ(read.batches.size(), 4U);
  // With a batch of the one lost, what both have is joined and the rest stays the other's.
  Journal less = even;
  std::erase_if(less.batches, [](const BatchRecord& batch) { return batch.first_k == 192; });
  const Journal partly = parse_journal(canonical_text({run_in_order({0, 1, 2, 3}, {1, 2}, cases), less}), "merged");
  ASSERT_EQ(partly.batches.size(), 8U);
  EXPECT_EQ(partly.batches[0].shard, Shard{});
  EXPECT_EQ(partly.batches[0].last_k, 192);
  EXPECT_EQ(partly.batches[1].shard, (Shard{1, 2}));
  EXPECT_EQ(partly.batches[1].first_k, 192);
}

TEST(Journal, ReadsNumbersThatNeedMoreThan64Bits) {
  Journal journal = run_in_order({0}, {}, 64);
  for (const double number : {0x1p63, 0x1p64, 0x1.2345678p66, 1e20, 1e21, 1.5e300, 9.5e18, 9876543210987654e3}) {
    journal.findings[0].verdict.error = number;
    journal.findings[0].verdict.allowed = -number;
    set_worst(journal.batches[0].tally, number);
    const std::string text = to_text(journal);
    const Journal read = parse_journal(text, "text");
    EXPECT_EQ(read.findings[0].verdict.error, number);
    EXPECT_EQ(read.findings[0].verdict.allowed, -number);
    EXPECT_EQ(read.batches[0].tally.worst_utilisation, number);
    EXPECT_EQ(to_text(read), text);
  }
  std::string text = to_text(journal);
  const std::string held = "\"held\":";
  text.insert(text.find(held) + held.size(), "100000000000000000000");
  EXPECT_NE(error_of([&] { (void)parse_journal(stamped(text), "j"); }).find("\"held\" must be a whole number"),
            std::string::npos);
}

TEST(Journal, RefusesInOneLineWhateverStandsInIt) {
  for (const std::string line :
       {R"({"kind":"meta","event":"begin","a\nb":1})", R"({"kind":"a\nb"})",
        R"({"kind":"kernel","id":"k","m\nifest":{}})", R"({"kind":"run","schema":"a\nb","seed":1})"}) {
    const std::string text = stamped(fmt::format("{}{}\n", to_line(RunRecord{}), line));
    const std::string said = error_of([&] { (void)parse_journal(text, "j"); });
    EXPECT_TRUE(said.starts_with("j, line 2: ")) << said;
    EXPECT_EQ(said.find('\n'), std::string::npos) << said;
  }
}

TEST(Journal, RefusesAMemberThatStandsTwice) {
  const std::string text = stamped(to_line(RunRecord{}) + R"({"kind":"kernel","id":"a","id":"b"})" + "\n");
  EXPECT_NE(error_of([&] { (void)parse_journal(text, "j"); }).find("j, line 2: has \"id\" twice"), std::string::npos);
}

TEST(Batches, GrowWithWhatIsDoneAndNeverBeyondASixteenthOfIt) {
  EXPECT_EQ(batch_start(0), 0);
  EXPECT_EQ(batch_start(64), 4096);
  EXPECT_EQ(batch_start(65), 4096 + 256);
  EXPECT_EQ(batch_start(304), 65536);
  EXPECT_EQ(batch_start(305), 65536 + 4096);
  for (std::int64_t r = 1; r < 1000; ++r) {
    const std::int64_t size = batch_start(r + 1) - batch_start(r);
    EXPECT_TRUE(size == 64 || size == 256 || size == 4096);
    EXPECT_TRUE(size == 64 || 16 * size <= batch_start(r)) << r;
  }
}

TEST(Journal, KeepsTheFindingsOfSmallestK) {
  const Journal journal = parse_journal(canonical_text({run_in_order({4, 3, 2, 1, 0}, {}, 320)}), "journal");
  std::vector<std::int64_t> ks;
  for (const FindingRecord& finding : journal.findings) {
    if (finding.subject == subject_of(0)) ks.push_back(finding.k);
  }
  // Three that are violated, then three that are inconclusive.
  EXPECT_EQ(ks, (std::vector<std::int64_t>{5, 102, 199, 4, 93, 182}));
}

TEST(Journal, RefusesToMergeWhatIsNotOneRun) {
  const Journal whole = run_in_order({0, 1}, {}, 128);
  Journal other = whole;
  other.run->seed = 8;
  EXPECT_NE(error_of([&] { (void)canonical_text({whole, other}); }).find("merge runs of one seed"), std::string::npos);
  EXPECT_NE(
      error_of([&] { (void)canonical_text({whole, run_in_order({0}, {0, 2}, 128)}); }).find("is in two of the runs"),
      std::string::npos);
  EXPECT_NE(error_of([&] {
              (void)canonical_text({run_in_order({0}, {0, 2}, 64), run_in_order({0}, {2, 4}, 64)});
            }).find("two of the runs"),
            std::string::npos);
  EXPECT_EQ(error_of([&] { (void)canonical_text({run_in_order({0}, {0, 2}, 64), run_in_order({0}, {1, 4}, 64)}); }),
            "no error");
}

TEST(JournalWriter, CutsATornLineOffAndGoesOn) {
  const test::TemporaryFolder folder;
  const std::filesystem::path file = folder / "run.jsonl";
  const Journal journal = run_in_order({0}, {}, 64);
  std::ofstream(file) << to_text(journal) << "{\"kind\":\"bat";
  EXPECT_TRUE(read_journal(file).torn);
  JournalWriter writer(file);
  writer.append(MetaRecord{"end", {}});
  const Journal read = read_journal(file);
  EXPECT_FALSE(read.torn);
  EXPECT_FALSE(read.unfinished());
  EXPECT_EQ(read.batches.size(), journal.batches.size());
}

TEST(JournalWriter, RefusesASecondRunInTheFolderAndABadPlace) {
  const test::TemporaryFolder folder;
  const JournalWriter writer(folder / "run.jsonl");
  EXPECT_NE(error_of([&] { JournalWriter second(folder / "run.jsonl"); }).find("another run is writing it"),
            std::string::npos);
  EXPECT_NE(error_of([&] { JournalWriter second(folder / "absent/run.jsonl"); }).find("cannot be written"),
            std::string::npos);
}

TEST(JournalWriter, AFullDiskLosesNothingThatStood) {
  const test::TemporaryFolder folder;
  const std::filesystem::path file = folder / "run.jsonl";
  JournalWriter writer(file);
  writer.append(RunRecord{});
  const Journal journal = run_in_order({0, 1, 2, 3}, {}, 256);
  // A limit on the size of a file fails a write in its middle, as a full disk does.
  ::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{1500, before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  std::size_t written = 0;
  const std::string error = error_of([&] {
    for (const BatchRecord& batch : journal.batches) {
      writer.append(batch);
      ++written;
    }
  });
  ::setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_NE(error.find("cannot be written"), std::string::npos);
  EXPECT_GT(written, 0U);
  EXPECT_EQ(read_journal(file).batches.size(), written);
  EXPECT_FALSE(read_journal(file).torn);
}

TEST(JournalWriter, IsReadableAfterAKillAtAnyMoment) {
  const Journal journal = run_in_order({0, 1, 2, 3}, {}, 256);
  for (int microseconds = 100; microseconds < 6000; microseconds += 300) {
    const test::TemporaryFolder folder;
    const std::filesystem::path file = folder / "run.jsonl";
    {
      JournalWriter(file).append(RunRecord{});
    }
    int reports[2];
    ASSERT_EQ(::pipe(reports), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      JournalWriter writer(file);
      for (;;) {
        for (const BatchRecord& batch : journal.batches) {
          writer.append(batch);
          if (::write(reports[1], "+", 1) != 1) ::_exit(1);
        }
      }
    }
    ::close(reports[1]);
    ::usleep(static_cast<useconds_t>(microseconds));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    std::size_t finished = 0;
    for (char buffer[4096];;) {
      const ssize_t got = ::read(reports[0], buffer, sizeof buffer);
      if (got <= 0) break;
      finished += static_cast<std::size_t>(got);
    }
    ::close(reports[0]);
    const Journal read = read_journal(file);
    EXPECT_GE(read.batches.size(), finished);
    EXPECT_LE(read.batches.size(), finished + 1);
  }
}

}  // namespace
}  // namespace attest
