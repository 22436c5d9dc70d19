// The attack: kills, changed bytes, hostile kernels and foreign folders of runs. Nothing is written outside, nothing
// hangs, nothing is lost, nothing is left running, and no figure changes unseen. attack_program_test makes a small one
// of a fixed seed, attack_long_test the whole, drawn anew each time.
#include "reports/test/attack/attack.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <functional>

#include "core/kernel/manifest.h"
#include "core/problem/case.h"
#include "core/test/places.h"
#include "reports/conclusion/known.h"
#include "reports/results/figures.h"
#include "reports/test/attack/foreign_folder.h"
#include "reports/test/attack/hostile_library.h"
#include "reports/test/attack/mutation.h"
#include "reports/test/run/kills.h"

namespace attest::attack {
namespace {

namespace fs = std::filesystem;

/// Of the whole attack's numbers: all, or one in ATTEST_ATTACK_PART.
constexpr int part_of(int whole) {
  return std::max(1, whole / ATTEST_ATTACK_PART);
}

const std::string check_few =
    "$attest check --kernel builtin:flash --kernel fault:mask-scaled --dtype f32 --property attention.oracle "
    "--property masked.row-shift --cases 200 --quiet --jobs 2 ";

// ---- kills ----

void say(const char* what, const Kills& kills) {
  std::printf("%s: %d kills before the first line, %d within, %d after the end\n", what, kills.before_the_journal,
              kills.within, kills.after_the_end);
}

// Many small cases, whose batches follow each other closely; the runs below have the large ones, too.
TEST(ATTEST_ATTACK_SUITE, AKilledCheckGoesOnToTheSameJournal) {
  Dice dice("check");
  say("check", kill_checks(part_of(340),
                           "$attest check --kernel builtin:flash --kernel builtin:two-pass --dtype f32 --property "
                           "attention.oracle --cases 20000 --no-large --jobs 2 --quiet",
                           dice.engine()));
}

TEST(ATTEST_ATTACK_SUITE, AKilledCheckOfLargeCasesGoesOnToTheSameJournal) {
  Dice dice("large");
  say("check of large cases",
      kill_checks(part_of(100),
                  "$attest check --kernel builtin:flash --kernel builtin:two-pass --dtype f32 --property "
                  "attention.oracle --cases 3000 --jobs 2 --quiet",
                  dice.engine()));
}

TEST(ATTEST_ATTACK_SUITE, AKilledCheckWithFindingsHasTheirCases) {
  Dice dice("findings");
  say("check with findings", kill_checks(part_of(60), check_few, dice.engine(), /*status=*/1));
}

TEST(ATTEST_ATTACK_SUITE, AKilledCheckOfALibraryLeavesNothingRunning) {
  Dice dice("library");
  say("check of a library",
      kill_checks(part_of(120),
                  "$attest check --kernel " + test_library_folder() +
                      "/library_good.so --dtype f64 --property attention.oracle --cases 500 --jobs 2 --quiet",
                  dice.engine()));
}

TEST(ATTEST_ATTACK_SUITE, AKilledCampaignLosesTheLastSecondsAtMost) {
  Dice dice("fuzz");
  say("fuzz", kill_campaigns(part_of(120), "$attest fuzz --kernel builtin:flash --dtype f32 --jobs 1 --quiet", 4.0,
                             /*slack=*/20.0, dice.engine()));
}

TEST(ATTEST_ATTACK_SUITE, AKilledMergeLeavesNoHalfFile) {
  Dice dice("merge");
  say("merge", kill_merges(part_of(180),
                           "$attest check --kernel builtin:flash --kernel builtin:two-pass --dtype f32 --property "
                           "attention.oracle --cases 3000 --quiet",
                           dice.engine()));
}

TEST(ATTEST_ATTACK_SUITE, AKilledReportLeavesTheOldPageOrTheNew) {
  Dice dice("report");
  const fake::Folder folder;
  expect_status(folder, check_few + "--out run", 1);
  const Timed whole = timed(folder, "$attest report run -o whole.html");
  EXPECT_EQ(whole.result.status, 0) << whole.result.output;
  const std::string journal = read_file(folder / "run/run.jsonl");
  for (int i = 0; i < part_of(80); ++i) {
    const Kill kill = drawn_kill(dice.engine(), whole.seconds);
    std::ofstream(folder / "run/report.html") << "the old page";
    kill_after(folder, "$attest report run", kill, "run/run.jsonl");
    const std::string page = read_file(folder / "run/report.html");
    EXPECT_TRUE(page == "the old page" || page.ends_with("</html>\n")) << kill << "\n" << page.size();
    EXPECT_EQ(read_file(folder / "run/run.jsonl"), journal) << kill;
    const ShellResult again = shell(folder, "$attest report run && ls run | grep tmp");
    EXPECT_EQ(again.output.find(".tmp"), std::string::npos) << again.output;
  }
}

// ---- changed bytes ----

/// Accepted by `read`, or refused in one line; any other end fails the test.
template <class Read>
bool accepted(const Read& read, const std::string& bytes, const char* what) {
  const auto start = std::chrono::steady_clock::now();
  bool taken = false;
  try {
    read(bytes);
    taken = true;
  } catch (const UsageError& error) {
    EXPECT_EQ(std::string_view(error.what()).find('\n'), std::string_view::npos) << what << ": " << error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << what << ": " << error.what();
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20)) << what;
  return taken;
}

/// What a journal says, a line for each record and kind of record.
std::vector<std::vector<std::string>> records_of(const Journal& journal) {
  std::vector<std::vector<std::string>> all(6);
  if (journal.run) all[0].push_back(to_line(*journal.run));
  for (const auto& record : journal.meta) all[1].push_back(to_line(record));
  for (const auto& record : journal.kernels) all[2].push_back(to_line(record));
  for (const auto& record : journal.batches) all[3].push_back(to_line(record));
  for (const auto& record : journal.findings) all[4].push_back(to_line(record));
  for (const auto& record : journal.proofs) all[5].push_back(to_line(record));
  return all;
}

/// The changed journal says nothing that the first did not, and where it says less it is said to be torn or unfinished.
bool says_no_more(const Journal& changed, const Journal& first) {
  const auto now = records_of(changed), was = records_of(first);
  bool all = true;
  for (std::size_t kind = 0; kind < was.size(); ++kind) {
    if (now[kind].size() > was[kind].size()) return false;
    if (!std::equal(now[kind].begin(), now[kind].end(), was[kind].begin())) return false;
    all = all && now[kind].size() == was[kind].size();
  }
  // What ends at a line's end cannot be told from a run that was killed there; then no end stands behind its beginning.
  return all || changed.torn || (changed.unfinished() && !first.unfinished());
}

std::string shown(const std::string& bytes, const std::string& before) {
  std::size_t place = 0;
  while (place < std::min(bytes.size(), before.size()) && bytes[place] == before[place]) ++place;
  const std::size_t from = place < 80 ? 0 : place - 80;
  return fmt::format("at {}: {}\nfor {}", place, bytes.substr(from, 200), before.substr(from, 200));
}

TEST(ATTEST_ATTACK_SUITE, NoChangedJournalHasOtherFigures) {
  Dice dice("journal");
  const fake::Folder folder;
  ASSERT_EQ(shell(folder, check_few + "--out check").status, 1);
  ASSERT_EQ(shell(folder, "$attest fuzz --kernel fault:mask-scaled --dtype f32 --runs 500 --quiet --jobs 1 --out fuzz")
                .status,
            1);
  ASSERT_EQ(shell(folder, "$attest prove --property 'causal.*' --out prove").status, 0);
  ASSERT_EQ(shell(folder, "$attest merge ./check -o merged").status, 0);
  std::vector<std::string> journals;
  for (const char* file : {"check/run.jsonl", "fuzz/run.jsonl", "prove/run.jsonl", "merged"})
    journals.push_back(read_file(folder / file));
  int taken = 0;
  for (int i = 0; i < part_of(12000); ++i) {
    const std::string& first = journals[static_cast<std::size_t>(i) % journals.size()];
    const std::string bytes = mutated(first, dice);
    const bool whole = accepted(
        [&](const std::string& text) {
          EXPECT_TRUE(says_no_more(parse_journal(text, "changed"), parse_journal(first, "first")))
              << shown(text, first);
        },
        bytes, "journal");
    if (whole) ++taken;
  }
  std::printf("%d of %d changed journals were read, none with other figures\n", taken, part_of(12000));
}

TEST(ATTEST_ATTACK_SUITE, ChangedFilesAreRefusedInOneLineOrValid) {
  Dice dice("files");
  const fs::path corpus = source_folder() + "/fuzz/corpus";
  const std::vector<std::pair<const char*, std::function<void(const std::string&)>>> readers{
      {"case_file_fuzzer", [](const std::string& bytes) { validate(decode_case(bytes, "changed")); }},
      {"manifest_fuzzer", [](const std::string& bytes) { (void)parse_manifest(bytes, "changed"); }},
      {"baseline_fuzzer", [](const std::string& bytes) { (void)parse_figures(bytes, "changed"); }},
      {"known_fuzzer", [](const std::string& bytes) { (void)parse_known_findings(bytes, "changed"); }},
      {"journal_fuzzer", [](const std::string& bytes) { (void)parse_journal(bytes, "changed"); }},
  };
  std::vector<std::vector<std::string>> seeds;
  for (const auto& [name, read] : readers) {
    seeds.emplace_back();
    for (const auto& entry : fs::directory_iterator(corpus / name)) seeds.back().push_back(read_file(entry.path()));
    std::ranges::sort(seeds.back());
  }
  for (int i = 0; i < part_of(8000); ++i) {
    const std::size_t which = static_cast<std::size_t>(i) % readers.size();
    (void)accepted(readers[which].second, mutated(dice.one_of(seeds[which]), dice), readers[which].first);
  }
}

// ---- hostile kernels ----

TEST(ATTEST_ATTACK_SUITE, NoLibraryEndsTheRunOrOutlivesIt) {
  Dice dice("libraries");
  int refused = 0, violated = 0, other = 0;
  for (int i = 0; i < part_of(150); ++i) {
    const fake::Folder folder;
    const Surroundings outside(folder / "outside");
    const HostileLibrary library = hostile_library(dice);
    SCOPED_TRACE(library.does);
    std::ofstream(folder / "hostile.c") << library.source;
    const ShellResult compiled = shell(folder, "cc -w -shared -fPIC -O1 -I " + source_folder() +
                                                   "/core/include hostile.c -o hostile.so -lm -lpthread");
    ASSERT_EQ(compiled.status, 0) << compiled.output;
    const Attacked run =
        attacked(folder,
                 "$attest check --verbose --kernel ./hostile.so --kernel builtin:flash --dtype f32 --property "
                 "attention.oracle --property masked.row-shift --cases 40 --timeout 300ms --memory "
                 "256MiB --jobs 2 --out run",
                 /*seconds=*/120);
    expect_survived(run);
    EXPECT_EQ(outside.changes(), "");
    const int status = run.result.status;
    EXPECT_TRUE(status == 0 || status == 1 || status == 3 || status == 4) << status << "\n" << run.result.output;
    ++(status == 1 ? violated : status == 3 ? refused : other);
    if (!fs::exists(folder / "run/run.jsonl")) {
      EXPECT_EQ(status, 3) << run.result.output;
      continue;
    }
    // The kernel beside it is judged as if it stood alone.
    const Journal journal = read_journal(folder / "run");
    EXPECT_FALSE(journal.unfinished());
    std::int64_t judged = 0;
    for (const BatchRecord& batch : journal.batches) {
      if (batch.subject.kernel == "builtin:flash") judged += batch.tally.held + batch.tally.excused;
    }
    EXPECT_EQ(judged, 80) << run.result.output;
    for (const FindingRecord& finding : journal.findings)
      EXPECT_TRUE(fs::exists(folder / ("run/" + finding.case_file))) << finding.case_file;
    EXPECT_TRUE(fs::exists(folder / "run/report.html"));
  }
  std::printf("hostile libraries: %d violated, %d not loaded, %d judged otherwise\n", violated, refused, other);
}

// ---- foreign folders ----

TEST(ATTEST_ATTACK_SUITE, AForeignFolderReachesNothingOutside) {
  Dice dice("folders");
  const fake::Folder first;
  ASSERT_EQ(shell(first, check_few + "--out run").status, 1);
  ASSERT_EQ(
      shell(first, "$attest fuzz --kernel builtin:flash --dtype f32 --runs 300 --quiet --jobs 1 --out campaign").status,
      0);
  const std::array commands{
      std::string("$attest report run"),
      std::string("$attest report run -o page.html"),
      std::string("$attest report --salvage run -o page.html"),
      std::string("$attest findings run"),
      std::string("$attest findings campaign"),
      std::string("$attest replay run"),
      std::string("$attest merge run -o merged"),
      std::string("$attest merge run -o whole/"),
      std::string("$attest merge good run -o whole/"),
      std::string("$attest merge good -o run/"),
      std::string("$attest compare run good"),
      std::string("$attest compare good run"),
      check_few + "--resume --out run",
      check_few + "--overwrite --out run",
      check_few + "--out run",
      std::string("$attest check --kernel builtin:flash --dtype f32 --property attention.oracle --cases 5 --quiet "
                  "--baseline run --out other"),
      std::string(
          "$attest fuzz --kernel builtin:flash --dtype f32 --runs 400 --quiet --jobs 1 --resume --out campaign"),
      std::string(
          "$attest fuzz --kernel builtin:flash --dtype f32 --runs 100 --quiet --jobs 1 --overwrite --out campaign"),
      std::string("for case in run/cases/*; do $attest replay $case; done"),
  };
  std::map<int, int> statuses;
  for (int i = 0; i < part_of(400); ++i) {
    const fake::Folder folder;
    shell(folder, "cp -r " + (first / "run").string() + " " + (first / "campaign").string() + " . && cp -r run good");
    const Surroundings outside(folder / "outside");
    std::string did;
    if (dice.one_in(4)) {
      std::ofstream(folder / "run/run.jsonl")
          << with_traversal(read_file(first / "run/run.jsonl"), outside.path(), dice);
      did += "names that lead elsewhere\n";
    }
    if (did.empty() || dice.one_in(2)) did += make_foreign(folder / "run", outside.path(), dice);
    did += make_foreign(folder / "campaign", outside.path(), dice);
    const std::string& command = dice.one_of(commands);
    SCOPED_TRACE(did + command);
    const Attacked run = attacked(folder, command, /*seconds=*/60);
    expect_survived(run);
    EXPECT_LE(run.result.status, 4) << run.result.output;
    EXPECT_EQ(outside.changes(), "");
    // Nor copied inside.
    const ShellResult copied = shell(
        folder, "grep -rls --devices=skip 'not to be copied' good run campaign whole merged page.html other output");
    EXPECT_EQ(copied.output, "") << run.result.output;
    ++statuses[run.result.status];
  }
  for (const auto& [status, times] : statuses) std::printf("foreign folders: %d times exit status %d\n", times, status);
}

}  // namespace
}  // namespace attest::attack
