// Journals that were changed by accident: what is not as it was written is noticed, and what is sound can be had.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <random>

#include "core/journal/crc32c.h"
#include "core/journal/journal.h"
#include "core/problem/case.h"
#include "core/support/files.h"
#include "core/test/temporary_folder.h"

namespace attest {
namespace {

Verdict verdict_of(std::int64_t k) {
  Verdict verdict{.utilisation = static_cast<double>((k * 7919) % 1000) / 1500.0, .level = static_cast<int>(k % 3) + 1};
  verdict.bits_compared = 2 + k % 7;
  verdict.bits_agreed = verdict.bits_compared - k % 2;
  if (k % 11 == 0) verdict = {.outcome = Outcome::skipped, .reason = "has 9 keys; max_keys is 4"};
  if (k % 13 == 1) verdict = {.outcome = Outcome::excused, .reason = "vacuous bound"};
  if (k % 37 == 5) verdict = {.outcome = Outcome::violated, .violation = Violation::bound, .utilisation = 3};
  if (k % 41 == 4) verdict = {.outcome = Outcome::inconclusive, .reason = "undecided"};
  verdict.alarm = Alarm{1 + k % 4, k % 7 == 3 ? 1 : 0, k % 3, static_cast<double>((k * 31) % 64) / 32};
  const bool judged = verdict.outcome == Outcome::held || verdict.outcome == Outcome::violated;
  if (judged && k % 2 == 0) {
    ErrorSample sample{.keys = 1 + k % 90,
                       .elements = 3,
                       .worst_error = 1e-7,
                       .worst_ulp = 2,
                       .worst_utilisation = 0.5,
                       .worst_normal = 0.25,
                       .worst_subnormal = 0.5};
    sample.histogram[0][20] = 2;
    sample.histogram[1][7] = 1;
    verdict.errors = std::make_shared<ErrorSample>(sample);
  }
  return verdict;
}

/// A run of two shards' worth of everything that a line can hold.
Journal whole_journal(std::int64_t cases = 320) {
  Journal journal;
  journal.run = RunRecord{.seed = 7, .case_files = {}, .alarm = 1e-9};
  journal.kernels = {{"builtin:flash", R"({"name":"flash","dtypes":["f32"]})", ""}, {"pytorch:*", "", "no torch"}};
  for (const char* property : {"attention.oracle", "masked.row-shift"}) {
    const Subject subject{property, "builtin:flash", "f32"};
    for (std::int64_t first = 0; first < cases; first += 64) {
      BatchRecord batch{subject, first, std::min(first + 64, cases), {}, {}};
      for (std::int64_t k = first; k < batch.last_k; ++k) {
        const Verdict verdict = verdict_of(k);
        batch.tally.add(k, verdict, k % 3 == 0 ? "scores:heavy values:ones mask:none" : "scores:gaussian mask:padding",
                        static_cast<BitClasses>(k % 5));
        if (verdict.outcome != Outcome::violated && verdict.outcome != Outcome::inconclusive) continue;
        FindingRecord finding{subject, k, fmt::format("cases/{}--k{}.safetensors", property, k), verdict};
        finding.compared = {{.shape = {1, 2, 3, 4}, .element = 23, .keys = 5, .found = 0.5, .exact = Enclosure{0, 1}}};
        if (k % 2 == 0) finding.compared[0].gradient = Gradient::k;
        journal.findings.push_back(finding);
      }
      journal.batches.push_back(batch);
    }
  }
  return journal;
}

std::string text_of(const Journal& journal) {
  std::string text = to_line(*journal.run) + to_line(MetaRecord{"begin", {{"host", "here"}}});
  for (const KernelRecord& kernel : journal.kernels) text += to_line(kernel);
  for (const FindingRecord& finding : journal.findings) text += to_line(finding);
  for (const BatchRecord& batch : journal.batches) text += to_line(batch);
  return stamped(text + to_line(MetaRecord{"end", {}}));
}

/// The same as a journal of before.
std::string unstamped(const std::string& text) {
  std::string plain;
  for (std::size_t start = 0, end = 0; (end = text.find('\n', start)) != std::string::npos; start = end + 1) {
    const std::string line = text.substr(start, end - start);
    plain += line.substr(0, line.rfind(",\"line\":")) + "}\n";
  }
  plain.replace(plain.find("attest-journal/2"), 16, "attest-journal/1");
  return plain;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t start = 0, end = 0; (end = text.find('\n', start)) != std::string::npos; start = end + 1)
    lines.push_back(text.substr(start, end + 1 - start));
  return lines;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line;
  return text;
}

/// Everything that a figure comes from.
std::string figures_of(const Journal& journal) {
  std::string text = to_text(journal);
  for (const MetaRecord& record : journal.meta) text += to_line(record);
  return text;
}

std::string error_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

std::string error_in(const std::string& text, const JournalRules& rules = {}) {
  return error_of([&] { (void)parse_journal(text, "j", rules); });
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

TEST(Checksum, IsTheCastagnoliOneHoweverItIsComputed) {
  // RFC 3720, B.4, and the check value of the catalogue of CRCs.
  EXPECT_EQ(crc32c("123456789"), 0xe3069283U);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aaU);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43U);
  EXPECT_EQ(crc32c(""), 0U);
  std::mt19937 random(1);
  std::string bytes;
  for (int size = 0; size < 100; ++size, bytes += static_cast<char>(random())) {
    EXPECT_EQ(crc32c(bytes), detail::crc32c_by_table(bytes)) << size;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("sse4.2") != 0) {
      EXPECT_EQ(detail::crc32c_by_instruction(bytes), detail::crc32c_by_table(bytes)) << size;
    }
#endif
  }
}

TEST(Checksum, IsOfTheBytesInFrontOfItAndStandsLast) {
  LineStamper stamper;
  const std::string line = stamper.stamp(to_line(RunRecord{}));
  const std::string body = R"({"kind":"run","schema":"attest-journal/2","seed":1,"line":1)";
  EXPECT_EQ(line, fmt::format("{},\"crc\":\"{:08x}\"}}\n", body, crc32c(body)));
  EXPECT_EQ(number_of_line(std::string_view(line).substr(0, line.size() - 1)), 1);
  EXPECT_EQ(number_of_line(stamper.stamp(to_line(MetaRecord{"end", {}}))), std::nullopt) << "a newline is no part";
  const std::string text = text_of(whole_journal());
  EXPECT_EQ(stamped(text), text);
  EXPECT_EQ(error_in(text), "no error");
}

/// Times ATTEST_DAMAGE, for longer trials.
int trials(int number) {
  const char* const factor = std::getenv("ATTEST_DAMAGE");
  return number * (factor == nullptr ? 1 : std::atoi(factor));
}

// The last line's newline is the one byte whose loss looks like a kill; then a line less is read, and said to be torn.
TEST(JournalDamage, NoByteAndNoBitChangesAFigure) {
  const std::string text = text_of(whole_journal());
  const std::string right = figures_of(parse_journal(text, "j"));
  const std::size_t last_line = text.rfind('\n', text.size() - 2) + 1;
  const std::string shorter = figures_of(parse_journal(std::string_view(text).substr(0, last_line), "j"));
  const unsigned seed = std::random_device()();
  RecordProperty("seed", std::to_string(seed));
  std::mt19937 random(seed);
  std::uniform_int_distribution<std::size_t> anywhere(0, text.size() - 1);
  int refused = 0, torn = 0;
  const auto hold = [&](const std::string& changed, const std::string& what) {
    try {
      const Journal read = parse_journal(changed, "j");
      ASSERT_TRUE(read.torn) << what << ", seed " << seed;
      EXPECT_EQ(figures_of(read), shorter) << what << ", seed " << seed;
      ++torn;
    } catch (const UsageError&) {
      ++refused;
    }
  };
  const int number = trials(1500);
  for (int i = 0; i < number; ++i) {
    std::string changed = text;
    const std::size_t at = anywhere(random);
    const auto byte = static_cast<char>(text[at] + 1 + static_cast<int>(random() % 255));
    changed[at] = byte;
    hold(changed, fmt::format("byte {} as {}", at, static_cast<int>(byte)));
    changed[at] = static_cast<char>(text[at] ^ (1 << random() % 8));
    hold(changed, fmt::format("bit of byte {}", at));
    changed = text;
    changed.erase(at, 1);
    hold(changed, fmt::format("byte {} gone", at));
    changed = text;
    changed.insert(at, 1, static_cast<char>(random()));
    hold(changed, fmt::format("byte in front of {}", at));
  }
  EXPECT_EQ(refused + torn, 4 * number);
  EXPECT_EQ(figures_of(parse_journal(text, "j")), right);
  std::printf("seed %u: %d changes, %d refused, %d torn last lines\n", seed, 4 * number, refused, torn);
}

TEST(JournalDamage, ALineThatIsGoneStandsTwiceOrElsewhereIsSaid) {
  const std::vector<std::string> lines = lines_of(text_of(whole_journal()));
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::vector<std::string> less = lines, twice = lines, elsewhere = lines;
    less.erase(less.begin() + static_cast<std::ptrdiff_t>(i));
    const std::string gone = error_in(joined(less));
    if (i == 0) {
      EXPECT_NE(gone.find("j, line 1: has no run in front of it"), std::string::npos) << gone;
    } else if (i + 1 < lines.size()) {
      EXPECT_NE(gone.find(fmt::format("j, line {}: is line {} of its run, and {} was to follow", i + 1, i + 2, i + 1)),
                std::string::npos)
          << gone;
    } else {
      // What ends at a line's end cannot be told from a run that was killed there.
      EXPECT_EQ(gone, "no error");
    }
    if (i == 0) continue;  // a second run's first line begins anew
    twice.insert(twice.begin() + static_cast<std::ptrdiff_t>(i), lines[i]);
    EXPECT_NE(error_in(joined(twice)).find(fmt::format("j, line {}: is line {} of its run", i + 2, i + 1)),
              std::string::npos);
    if (i + 1 == lines.size()) continue;
    std::swap(elsewhere[i], elsewhere[i + 1]);
    EXPECT_NE(error_in(joined(elsewhere)).find(fmt::format("j, line {}: is line", i + 1)), std::string::npos);
  }
}

TEST(JournalDamage, ACanonicalJournalThatEndsEarlyIsSaid) {
  const std::string text = to_text(whole_journal());
  const std::vector<std::string> lines = lines_of(text);
  EXPECT_NE(lines[0].find(fmt::format(",\"lines\":{},", lines.size())), std::string::npos) << lines[0];
  for (std::size_t kept = 1; kept < lines.size(); ++kept) {
    const std::string less = joined({lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(kept)});
    const std::string missing = fmt::format("its last {} lines are missing", lines.size() - kept);
    EXPECT_NE(error_in(less).find("j: " + missing), std::string::npos) << error_in(less);
    EXPECT_NE(error_in(less + text).find("begins a run, and the one in front of it lacks its last"), std::string::npos);
    const Journal read = parse_journal(less, "j", {.salvage = true});
    EXPECT_EQ(read.notes, std::vector<std::string>{missing});
    EXPECT_TRUE(read.torn);
    // Torn in its last line it lacks that too.
    if (kept == 1) continue;
    EXPECT_NE(error_in(text.substr(0, less.size() - 1)).find("lines are missing"), std::string::npos);
  }
  // One behind the other, and with what a run that goes on appends.
  EXPECT_EQ(error_in(text + text), "no error");
  EXPECT_EQ(error_in(stamped(text + to_line(MetaRecord{"end", {}}))), "no error");
}

TEST(JournalDamage, AChecksumThatIsGoneOrOfAnotherSchemaIsSaid) {
  const std::string text = text_of(whole_journal());
  std::vector<std::string> lines = lines_of(text);
  lines[3] = lines[3].substr(0, lines[3].rfind(",\"crc\":")) + "}\n";
  EXPECT_NE(error_in(joined(lines)).find("j, line 4: has no checksum"), std::string::npos);
  lines = lines_of(text);
  lines[0] = replaced(lines[0], "/2", "/1");
  EXPECT_NE(error_in(joined(lines)).find("j, line 1: does not match its checksum"), std::string::npos);
  EXPECT_NE(error_in(stamped(joined(lines))).find("j, line 1: has a checksum, and the schema"), std::string::npos);
  lines[0] = to_line(RunRecord{});
  EXPECT_NE(error_in(joined(lines)).find("j, line 1: has no checksum, and the schema"), std::string::npos);
  lines = lines_of(unstamped(text));
  lines[3] = lines_of(text)[3];
  EXPECT_NE(error_in(joined(lines)).find("j, line 4: has a checksum, and its run has none"), std::string::npos);
}

TEST(JournalDamage, JournalsOfBeforeAreReadAndSaidToHaveNoChecksums) {
  const std::string text = text_of(whole_journal()), before = unstamped(text);
  const Journal read = parse_journal(before, "j");
  EXPECT_EQ(figures_of(read), figures_of(parse_journal(text, "j")));
  ASSERT_EQ(read.notes.size(), 1U);
  EXPECT_NE(read.notes[0].find("of attest-journal/1, whose lines have no checksum"), std::string::npos);
  EXPECT_FALSE(read.torn);
  EXPECT_TRUE(parse_journal(text, "j").notes.empty());
  // A run that goes on writes the line of its run again, and lines with checksums behind it.
  const test::TemporaryFolder folder;
  std::ofstream(folder / "run.jsonl") << before;
  {
    JournalWriter writer(folder / "run.jsonl");
    EXPECT_TRUE(writer.wants_run());
    writer.append(*whole_journal().run);
    EXPECT_FALSE(writer.wants_run());
    writer.append(MetaRecord{"end", {}});
  }
  EXPECT_FALSE(JournalWriter(folder / "run.jsonl").wants_run());
  const Journal both = read_journal(folder / "run.jsonl");
  EXPECT_EQ(both.batches.size(), read.batches.size());
  EXPECT_EQ(both.meta.size(), read.meta.size() + 1);
  std::vector<std::string> lines = lines_of(read_file(folder / "run.jsonl"));
  lines.erase(lines.end() - 2);
  EXPECT_NE(error_in(joined(lines)).find("has a checksum, and its run has none"), std::string::npos);
}

// Each is an accident that a checksum would find; in a journal of before it has to be found without one, and what a
// program writes wrong is found in either.
TEST(JournalDamage, BatchesAddUp) {
  Journal journal = whole_journal(64);
  journal.batches.resize(1);
  const std::string text = text_of(journal);
  const Tally& tally = journal.batches[0].tally;
  const auto member = [](const char* name, std::int64_t value) { return fmt::format("\"{}\":{}", name, value); };
  struct Change {
    std::string from, to, said;
  };
  std::vector<Change> changes;
  for (const auto& [name, count] :
       {std::pair{"held", tally.held}, std::pair{"violated", tally.violated}, std::pair{"skipped", tally.skipped},
        std::pair{"excused", tally.excused}, std::pair{"inconclusive", tally.inconclusive}}) {
    changes.push_back({member(name, count), member(name, count + 1), "do not add up to its cases"});
    changes.push_back({member(name, count), member(name, count - 1), "do not add up to its cases"});
  }
  changes.push_back({"\"last\":64", "\"last\":65", "do not add up to its cases"});
  changes.push_back({"\"first\":0", "\"first\":1", "do not add up to its cases"});
  changes.push_back({"\"last\":64", "\"last\":64,\"shard\":[0,2]", "do not add up to its cases"});
  changes.push_back({fmt::format("\"level\":[{},", tally.level[0]), fmt::format("\"level\":[{},", tally.level[0] + 1),
                     "\"level\" does not add up"});
  changes.push_back({"\"histogram\":[[", "\"histogram\":[[1,1],[", "\"histogram\" does not add up"});
  changes.push_back({"skipped: has", "spared: has", "is a reason for no outcome"});
  changes.push_back({"excused: vac", "skipped: vac", "more reasons than skipped cases"});
  changes.push_back({member("excused: vacuous bound", tally.excused), member("excused: vacuous bound", 1),
                     "fewer reasons than excused cases"});
  changes.push_back({"\"worst\":3,", "\"worst\":0.3,", "\"worst\" is not in the last bin"});
  changes.push_back({"\"worst\":3,", "\"worst\":\"inf\",", "\"worst\" is not in the last bin"});
  changes.push_back({member("worst_k", tally.worst_k), member("worst_k", 64), "\"worst_k\" is 64"});
  changes.push_back({member("worst_k", tally.worst_k), member("worst_k", -1), "\"worst_k\" is -1"});
  ASSERT_EQ(tally.violated_k.size(), static_cast<std::size_t>(tally.violated));
  changes.push_back({"\"violated_k\":[", "\"violated_k\":[64,", "\"violated_k\" names"});
  ASSERT_EQ(tally.violated_k.size(), 2U);
  const auto violated_ks = [&](std::int64_t a, std::int64_t b) { return fmt::format("\"violated_k\":[{},{}]", a, b); };
  const std::int64_t low = tally.violated_k[0], high = tally.violated_k[1];
  changes.push_back({violated_ks(low, high), violated_ks(high, low), "\"violated_k\" does not ascend"});
  changes.push_back({violated_ks(low, high), violated_ks(low, low), "\"violated_k\" does not ascend"});
  changes.push_back({violated_ks(low, high), violated_ks(low, 64), "a case of \"violated_k\" is none of the batch"});
  changes.push_back({violated_ks(low, high), violated_ks(-1, high), "\"violated_k\" must be a whole number"});
  changes.push_back({"\"heavy\":", "\"heavy\":9", "of \"drawn\" is in more cases"});
  changes.push_back({"\"error_k\":\"", "\"error_k\":\"9", "a worst case of \"errors\" is none of the batch"});
  changes.push_back({"\"apart\":\"65344 ", "\"apart\":\"65472 ", "neither of a class's two kinds of elements"});
  changes.push_back({"\"signs\":\"7 0 ", "\"signs\":\"7 1 ", "\"signs\" of \"errors\" do not add up"});
  changes.push_back({"\"beyond\":", "\"beyond\":999", "the elements and cases of its alarm do not add up"});
  changes.push_back(
      {member("worst_k", tally.alarm->worst_k) + "}", "\"worst_k\":99}", "\"worst_k\" of its alarm is 99"});
  changes.push_back({",\"alarm\":1e-09", "", "it has an alarm, and the run asked for none"});
  changes.push_back({"\"property\":\"attention.oracle\"", "\"property\":\"../oracle\"", "has the property"});
  changes.push_back({"\"dtype\":\"f32\",\"first\"", "\"dtype\":\"f33\",\"first\"", "has the dtype \"f33\""});
  changes.push_back({"\"dtype\":\"f32\",\"first\"", "\"dtype\":\"bool\",\"first\"", "has the dtype \"bool\""});
  for (const auto& [from, to, said] : changes) {
    const std::string now = stamped(replaced(text, from, to));
    ASSERT_NE(now, text);
    EXPECT_NE(error_in(now).find(said), std::string::npos) << from << " -> " << to << ": " << error_in(now);
    EXPECT_NE(error_in(unstamped(now)).find(said), std::string::npos) << from << " -> " << to;
  }
  // Of case files not each is for each property.
  const std::string files = stamped(
      replaced(replaced(text, "\"seed\":7", "\"seed\":7,\"case_files\":[\"a\"]"), "\"last\":64", "\"last\":80"));
  EXPECT_NE(error_in(files).find("of \"drawn\" is in more cases than were drawn"), std::string::npos);
  const std::size_t drawn = files.find(",\"drawn\":");
  const std::string captured = stamped(std::string(files).erase(drawn, files.find(",\"errors\":") - drawn));
  EXPECT_EQ(error_in(captured), "no error");
  EXPECT_NE(error_in(stamped(replaced(captured, "\"last\":80", "\"last\":60"))).find("do not add up"),
            std::string::npos);
  // None judged.
  BatchRecord none{{"p", "k", "f32"}, 0, 2, {}, {}};
  none.tally.skip(2, "no");
  const std::string skipped = stamped(to_line(RunRecord{}) + to_line(none));
  EXPECT_EQ(error_in(skipped), "no error");
  EXPECT_NE(error_in(stamped(replaced(skipped, "\"worst_k\":-1", "\"worst_k\":1"))).find("it has a worst case"),
            std::string::npos);
  EXPECT_NE(
      error_in(stamped(replaced(skipped, "\"reasons\":{", "\"same_bits\":[1,2],\"reasons\":{"))).find("of no case"),
      std::string::npos);
}

TEST(JournalDamage, PropertiesAreThoseThatTheProgramKnows) {
  const std::string text = text_of(whole_journal());
  const JournalRules rules{.is_property = [](std::string_view name) { return name == "attention.oracle"; }};
  EXPECT_NE(error_in(text, rules).find("has the property \"masked.row-shift\", which this program does not know"),
            std::string::npos);
  JournalRules salvage = rules;
  salvage.salvage = true;
  EXPECT_EQ(parse_journal(text, "j", salvage).batches.size(), whole_journal().batches.size() / 2);
}

TEST(JournalDamage, AFindingsCaseIsAPlainFileOfTheRunsFolder) {
  for (const char* name : {"cases/a.safetensors", "cases/masked.row-shift--exec-my_k-0123abcd--f32--k7.safetensors"})
    EXPECT_TRUE(is_case_file(name)) << name;
  const std::string long_name(241, 'a');
  for (const std::string& name :
       {std::string(""), std::string("cases/"), std::string("cases/.safetensors"), std::string("../../.bashrc"),
        std::string("/etc/passwd"), std::string("cases/../a.safetensors"), std::string("cases/a/b.safetensors"),
        std::string("cases/..safetensors"), std::string("cases/.a.safetensors"), std::string("cases/a.jsonl"),
        std::string("cases/a b.safetensors"), std::string("cases/a\n.safetensors"),
        std::string("cases/\xc3\xa4.safetensors"), std::string("cases/a\0.safetensors", 20),
        std::string("archive/a.safetensors"), std::string("a.safetensors"), "cases/" + long_name + ".safetensors"})
    EXPECT_FALSE(is_case_file(name)) << name;
  for (const char* name : {"attention.oracle", "_a-B.9"}) EXPECT_TRUE(is_plain_name(name)) << name;
  for (const char* name : {"", ".", "..", ".a", "a/b", "../../pw/x", "a b", "a\\b"})
    EXPECT_FALSE(is_plain_name(name)) << name;
  const std::string text = text_of(whole_journal());
  const std::string known = "\"case\":\"" + whole_journal().findings[0].case_file + "\"";
  const std::string said = error_in(stamped(replaced(text, known, R"("case":"../../.bashrc")")));
  EXPECT_NE(said.find("j, line 5: has the case \"../../.bashrc\""), std::string::npos) << said;
  for (const char* line : {R"("kind":"finding","property":"../x")", R"("kind":"batch","property":"../../pw/x")"}) {
    const std::string kind = std::string(line).substr(0, std::string(line).find(",\"property"));
    const std::string now = stamped(replaced(text, kind + ",\"property\":\"attention.oracle\"", line));
    EXPECT_NE(error_in(now).find("which is no name"), std::string::npos) << line;
  }
  const std::string proof = to_line(RunRecord{}) + to_line(ProofRecord{"../x", "symbolic", "s", "w"});
  EXPECT_NE(error_in(stamped(proof)).find("which is no name"), std::string::npos);
  EXPECT_NE(error_in(stamped(replaced(text, R"("outcome":"violated")", R"("outcome":"held")"))).find("no finding"),
            std::string::npos);
  EXPECT_NE(
      error_in(stamped(replaced(text, R"("class":"inconclusive")", R"("class":"bound")"))).find("another outcome"),
      std::string::npos);
}

TEST(JournalDamage, ZeroBytesEndTheReadablePart) {
  const std::string text = text_of(whole_journal());
  const std::vector<std::string> lines = lines_of(text);
  const std::vector<std::string> front(lines.begin(), lines.begin() + 9);
  const std::string kept = joined(front), part = lines[9].substr(0, 40), zeros(4096, '\0');
  const std::string torn = kept + part;
  const std::string right = figures_of(parse_journal(kept, "j"));
  for (const std::string& left : {kept + zeros, torn + zeros, kept + zeros + "\n", torn + zeros + "\n"}) {
    const Journal read = parse_journal(left, "j");
    EXPECT_EQ(figures_of(read), right);
    EXPECT_TRUE(read.torn);
    ASSERT_EQ(read.notes.size(), 1U);
    EXPECT_NE(read.notes[0].find("zero bytes stand behind line 9"), std::string::npos) << read.notes[0];
    const test::TemporaryFolder folder;
    const std::filesystem::path files[] = {folder / "run.jsonl"};
    std::ofstream(files[0], std::ios::binary) << left;
    EXPECT_EQ(figures_of(read_journal(files[0])), right);
    EXPECT_EQ(merge_journals(files).parts[0].notes, read.notes);
    {
      JournalWriter(files[0]).append(MetaRecord{"end", {}});
    }
    const Journal after = read_journal(files[0]);
    EXPECT_TRUE(after.notes.empty());
    EXPECT_EQ(after.findings.size(), read.findings.size());
    EXPECT_EQ(after.meta.size(), read.meta.size() + 1);
  }
  // A single one is no power cut.
  std::string one = text;
  one[text.size() / 2] = '\0';
  EXPECT_NE(error_in(one).find("j, line "), std::string::npos);
  // Lines behind zero bytes are not cut off unasked.
  const std::vector<std::string> rest(lines.begin() + 10, lines.end());
  const std::string behind = kept + part + zeros + "\n" + joined(rest);
  EXPECT_EQ(figures_of(parse_journal(behind, "j")), right);
  const test::TemporaryFolder folder;
  std::ofstream(folder / "run.jsonl", std::ios::binary) << behind;
  EXPECT_NE(error_of([&] { JournalWriter(folder / "run.jsonl"); }).find("lines stand behind zero bytes"),
            std::string::npos);
  EXPECT_EQ(read_file(folder / "run.jsonl"), behind);
  const Journal salvaged = parse_journal(behind, "j", {.salvage = true});
  EXPECT_EQ(salvaged.batches.size() + salvaged.findings.size(),
            whole_journal().batches.size() + whole_journal().findings.size() - 1);
}

TEST(JournalDamage, SalvageKeepsEverySoundLineAndSaysWhatItLeavesOut) {
  const test::TemporaryFolder folder;
  const std::string text = text_of(whole_journal());
  const std::vector<std::string> lines = lines_of(text);
  std::vector<std::string> damaged = lines;
  damaged[6] = replaced(damaged[6], "\"k\":", "\"q\":");
  damaged[7][9] ^= 4;
  damaged[12] = "{\"kind\":\n";
  damaged[15].back() = ' ';  // and the line behind is one with it
  damaged.erase(damaged.begin() + 18, damaged.begin() + 20);
  std::vector<std::string> sound;
  for (std::size_t i = 0; i < lines.size(); ++i)
    if (i != 6 && i != 7 && i != 12 && i != 15 && i != 16 && i != 18 && i != 19) sound.push_back(lines[i]);
  const std::string right = figures_of(parse_journal(stamped(joined(sound)), "j"));
  EXPECT_NE(error_in(joined(damaged)).find("j, line 7: does not match its checksum"), std::string::npos);
  const Journal read = parse_journal(joined(damaged), "j", {.salvage = true});
  EXPECT_EQ(figures_of(read), right);
  EXPECT_TRUE(read.torn);
  const std::vector<std::string> notes{
      "line 17: 1 lines of its run are missing in front of it",
      "line 18: 2 lines of its run are missing in front of it",
      "left out lines 7 to 8: does not match its checksum",
      "left out line 13: is not JSON",
      "left out line 16: does not match its checksum",
  };
  EXPECT_EQ(read.notes, notes);
  const std::filesystem::path files[] = {folder / "run.jsonl"};
  std::ofstream(files[0], std::ios::binary) << joined(damaged) << "{\"kind\":\"ba";
  const MergedJournals merged = merge_journals(files, {.salvage = true});
  EXPECT_EQ(merged.parts[0].notes.size(), notes.size() + 1);
  EXPECT_TRUE(merged.parts[0].torn);
  {
    const JournalWriter writer(folder / "other.jsonl");
    EXPECT_NE(error_of([&] { salvage_journal(folder / "other.jsonl", {}); }).find("another run is writing it"),
              std::string::npos);
  }
  EXPECT_EQ(salvage_journal(files[0], {}).size(), notes.size() + 1);
  EXPECT_EQ(read_file(files[0]), stamped(joined(sound)));
  EXPECT_TRUE(salvage_journal(files[0], {}).empty());
  // A damaged tally is left out of the plan too.
  std::ofstream(files[0], std::ios::binary) << stamped(replaced(text, "\"held\":", "\"held\":1"));
  EXPECT_NE(error_of([&] { (void)merge_journals(files); }).find("do not add up"), std::string::npos);
  EXPECT_EQ(merge_journals(files, {.salvage = true}).parts[0].notes.size(), 1U);
  // Without what determines the cases there is nothing to be had.
  damaged = lines;
  damaged[0][20] ^= 1;
  EXPECT_NE(error_in(joined(damaged), {.salvage = true}).find("nothing to salvage"), std::string::npos);
}

}  // namespace
}  // namespace attest
