// Journals and run folders that were damaged, or that somebody else wrote, in the program.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "core/journal/journal.h"
#include "reports/test/json.h"
#include "reports/test/program_checks.h"

namespace attest {
namespace {

const std::string check =
    "$attest check --kernel fault:scale-ignored --property attention.oracle --dtype f32 --cases 400 --quiet ";

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t start = 0, end = 0; (end = text.find('\n', start)) != std::string::npos; start = end + 1)
    lines.push_back(text.substr(start, end + 1 - start));
  return lines;
}

void write(const std::filesystem::path& file, const std::string& text) {
  std::ofstream(file, std::ios::binary) << text;
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

/// A run with findings in `folder`/run, and its canonical journal in `folder`/w.
void make_run(const fake::Folder& folder) {
  ASSERT_EQ(shell(folder, check + "--out run --jobs 1").status, 1);
  ASSERT_EQ(shell(folder, "$attest merge run -o w").status, 0);
}

TEST(Damage, AForeignJournalNamesNoFileOutsideItsFolder) {
  const fake::Folder folder;
  make_run(folder);
  const std::string text = read_file(folder / "run/run.jsonl");
  const std::string known = read_journal(folder / "run").findings.at(0).case_file;
  write(folder / "secret", "secret");
  for (const auto& [from, to] : {std::pair{"\"case\":\"" + known, std::string("\"case\":\"../secret")},
                                 std::pair{"\"case\":\"" + known, "\"case\":\"" + (folder / "secret").string()},
                                 std::pair{std::string("\"kind\":\"batch\",\"property\":\"attention.oracle"),
                                           std::string("\"kind\":\"batch\",\"property\":\"../../secret")},
                                 std::pair{std::string("\"kind\":\"finding\",\"property\":\"attention.oracle"),
                                           std::string("\"kind\":\"finding\",\"property\":\"attention.oracles")}}) {
    // Stamped: whoever forges a journal stamps it too.
    write(folder / "run/run.jsonl", stamped(replaced(text, from, to)));
    const std::string before = shell(folder, "find . -path ./merged -prune -o -print | sort").output;
    for (const std::string& command :
         {std::string("$attest merge run -o merged/"), std::string("$attest merge run -o merged.jsonl"),
          std::string("$attest report run"), std::string("$attest compare run run"), check + "--resume --out run"}) {
      EXPECT_THAT(one_line_of(folder, command, 2), Says("run.jsonl, line "));
    }
    EXPECT_EQ(shell(folder, "find . -path ./merged -prune -o -print | sort").output, before);
  }
}

/// The journal with another kernel in all of its lines, and that name in its manifest.
std::string of_kernel(const std::filesystem::path& run, const std::string& id, const std::string& name) {
  Journal journal = read_journal(run);
  for (KernelRecord& kernel : journal.kernels) {
    nlohmann::json manifest = parsed_json(kernel.manifest);
    manifest["name"] = name;
    kernel.manifest = manifest.dump();
    kernel.id = id;
  }
  for (BatchRecord& batch : journal.batches) batch.subject.kernel = id;
  for (FindingRecord& finding : journal.findings) finding.subject.kernel = id;
  return to_text(journal);
}

// A kernel may be named by a path, and what it calls itself is its own affair: neither refuses a line, and no file is
// looked for or written by it. Campaigns have an archive by its name besides.
TEST(Damage, AForeignJournalsKernelLeadsNowhereByItsName) {
  const fake::Folder folder;
  make_run(folder);
  ASSERT_EQ(shell(folder,
                  "$attest fuzz --kernel fault:scale-ignored --dtype f32 --runs 200 "
                  "--jobs 1 --quiet --out campaign")
                .status,
            1);
  std::filesystem::create_directories(folder / "outside");
  for (const std::string of : {"worst.safetensors", "archive.jsonl", "k0.safetensors"})
    write(folder / ("outside/secret--f32--" + of), "secret");
  // The folder is theirs as well, with whatever a path leads through.
  for (const std::string run : {"run", "campaign"}) {
    for (const std::string sub : {"/cases", "/archive"})
      std::filesystem::create_directories(folder / (run + sub + "/attention.oracle--x"));
  }
  for (const std::string& name :
       {std::string("../../x"), std::string("x/../../../outside/secret"), (folder / "outside/secret").string()}) {
    for (const auto& [id, called] : {std::pair{name, std::string("mine")}, {std::string("mine"), name}, {name, name}}) {
      for (const std::string run : {"run", "campaign"}) {
        SCOPED_TRACE(fmt::format("{} of {} called {}", run, id, called));
        const std::string first = read_file(folder / (run + "/run.jsonl"));
        write(folder / (run + "/run.jsonl"), of_kernel(folder / run, id, called));
        const std::string before = shell(folder, "find . -path ./deep -prune -o -print | sort").output;
        expect_status(folder, "rm -rf deep && mkdir -p deep/er && $attest merge " + run +
                                  " -o deep/er/whole/ && test -s "
                                  "deep/er/whole/run.jsonl");
        expect_status(folder, fmt::format("$attest report {0} -o deep/page.html && $attest findings {0}", run));
        EXPECT_EQ(shell(folder, "find . -path ./deep -prune -o -print | sort").output, before);
        EXPECT_EQ(shell(folder, "ls -A deep deep/er").output, "deep:\ner\npage.html\n\ndeep/er:\nwhole\n");
        EXPECT_EQ(shell(folder, "grep -rl secret deep/er/whole/cases deep/er/whole/archive 2>/dev/null").output, "");
        write(folder / (run + "/run.jsonl"), first);
      }
    }
  }
}

TEST(Damage, IsRefusedWithItsLineAndLeftOutWhereItIsAskedFor) {
  const fake::Folder folder;
  make_run(folder);
  std::vector<std::string> lines = lines_of(read_file(folder / "run/run.jsonl"));
  const auto batch = static_cast<std::size_t>(
      std::ranges::find_if(lines, [](const std::string& line) { return line.starts_with("{\"kind\":\"batch\""); }) -
      lines.begin());
  lines[batch] = replaced(lines[batch], "\"held\":", "\"held\":1");
  std::string damaged;
  for (const std::string& line : lines) damaged += line;
  write(folder / "run/run.jsonl", damaged);
  const std::string at = fmt::format("run/run.jsonl, line {}: does not match its checksum", batch + 1);
  for (const std::string& command : {std::string("$attest merge run -o m"), std::string("$attest report run"),
                                     check + "--resume --out run", std::string("$attest compare run run")}) {
    EXPECT_THAT(one_line_of(folder, command, 2), Says(at));
  }
  const std::string left_out = fmt::format("left out line {}: does not match its checksum\n", batch + 1);
  for (const char* command : {"$attest merge run --salvage -o m", "$attest report run --salvage -o page.html"}) {
    EXPECT_THAT(output_of(folder, command), Says("note: run: " + left_out));
  }
  // What is written is sound.
  expect_status(folder, "$attest merge m -o m2 && cmp m m2");
  EXPECT_NE(read_file(folder / "m"), read_file(folder / "w"));
  expect_refused("check --salvage --out run", "--salvage is for a run that goes on; give --resume with it");
  // What was lost is run again.
  EXPECT_THAT(output_of(folder, check + "--resume --salvage --out run", 1), Says("note: run/run.jsonl: " + left_out));
  EXPECT_EQ(shell(folder, "$attest merge run -o m > /dev/null && cmp m w").output, "");
}

TEST(Damage, APowerCutsZeroBytesCostWhatStandsBehindThem) {
  const fake::Folder folder;
  make_run(folder);
  const std::vector<std::string> lines = lines_of(read_file(folder / "run/run.jsonl"));
  std::string front;
  for (std::size_t i = 0; i + 3 < lines.size(); ++i) front += lines[i];
  write(folder / "run/run.jsonl", front + lines[lines.size() - 3].substr(0, 30) + std::string(5000, '\0'));
  const std::string note = fmt::format("zero bytes stand behind line {}", lines.size() - 3);
  EXPECT_THAT(output_of(folder, "$attest report run"), Says(note));
  EXPECT_THAT(output_of(folder, check + "--resume --out run", 1), Says(note));
  EXPECT_EQ(shell(folder, "$attest merge run -o m > /dev/null && cmp m w").output, "");
}

/// The journal as a program of before wrote it.
std::string of_before(const std::string& text) {
  std::string plain;
  for (const std::string& line : lines_of(text)) plain += line.substr(0, line.rfind(",\"line\":")) + "}\n";
  return replaced(plain, "attest-journal/2", "attest-journal/1");
}

TEST(Damage, AJournalOfBeforeIsReadAndGoesOnWithANote) {
  const fake::Folder folder;
  make_run(folder);
  const std::vector<std::string> lines = lines_of(read_file(folder / "run/run.jsonl"));
  std::string half;
  for (std::size_t i = 0; i < lines.size() / 2; ++i) half += lines[i];
  write(folder / "run/run.jsonl", of_before(half));
  const std::string note = "of attest-journal/1, whose lines have no checksum";
  EXPECT_THAT(output_of(folder, "$attest report run"), Says(note));
  EXPECT_THAT(output_of(folder, check + "--resume --out run", 1), Says(note));
  EXPECT_EQ(shell(folder, "$attest merge run -o m 2> /dev/null > /dev/null && cmp m w").output, "");
}

TEST(Damage, MissingCasesAreSaidAndUnnamedOnesRemoved) {
  const fake::Folder folder;
  make_run(folder);
  EXPECT_EQ(shell(folder, "$attest report run").output, "wrote run/report.html\n");
  const std::string first = read_journal(folder / "run").findings.at(0).case_file;
  const std::string name = first.substr(0, first.rfind("--k"));
  std::filesystem::rename(folder / ("run/" + first), folder / ("run/" + name + "--k399999.safetensors"));
  const std::string unnamed = "run/" + name + "--k399999.safetensors";
  write(folder / "run/cases/mine.safetensors", "kept");
  const std::string said = "note: a case file that the journal names is missing from run: " + first;
  EXPECT_THAT(output_of(folder, "$attest report run"), Says(said));
  EXPECT_TRUE(std::filesystem::exists(folder / unnamed));
  EXPECT_THAT(output_of(folder, check + "--resume --out run", 1), Says(said));
  EXPECT_FALSE(std::filesystem::exists(folder / unnamed));
  EXPECT_TRUE(std::filesystem::exists(folder / "run/cases/mine.safetensors"));
  EXPECT_FALSE(std::filesystem::is_empty(folder / "run/cases"));
}

TEST(Damage, AKillBeforeTheJournalLetsTheRunBegin) {
  for (const char* left : {"mkdir run", "mkdir -p run/cases", "mkdir -p run/cases run/logs"}) {
    const fake::Folder folder;
    expect_status(folder, std::string(left) + "; " + check + "--resume --out run", 1);
    EXPECT_FALSE(read_journal(folder / "run").batches.empty());
  }
  const fake::Folder folder;
  expect_status(folder, "mkdir run; touch run/mine; " + check + "--resume --out run", 2);
  expect_status(folder, check + "--resume --out none", 2);
}

// Every second while there is something new, and at the end: what a power cut would leave is never older.
TEST(Damage, AJournalComesToTheDiskEverySecond) {
  const fake::Folder folder;
  expect_status(folder, "ATTEST_SYNC_LOG=syncs LD_PRELOAD='" ATTEST_LOGGED_SYNCS
                        "' $attest check --kernel builtin:flash --property attention.oracle --dtype f32 --time "
                        "4s --jobs 1 --quiet --out run");
  std::istringstream log(read_file(folder / "syncs"));
  std::vector<std::int64_t> sizes;
  for (std::int64_t size = 0; log >> size;) sizes.push_back(size);
  EXPECT_GE(sizes.size(), 3U);
  EXPECT_LE(sizes.size(), 12U) << "a disk can be asked for no more";
  EXPECT_TRUE(std::ranges::is_sorted(sizes));
  const std::string text = read_file(folder / "run/run.jsonl");
  EXPECT_EQ(sizes.back(), static_cast<std::int64_t>(text.size()));
  for (const std::int64_t size : sizes) {
    // Whole lines alone are there when the disk is asked, and a cut at any byte behind loses none of them.
    const std::string_view there = std::string_view(text).substr(0, static_cast<std::size_t>(size));
    EXPECT_EQ(there.back(), '\n');
    const std::size_t batches = parse_journal(there, "j").batches.size();
    for (std::size_t more = 0; more < 300 && there.size() + more <= text.size(); more += 7) {
      const Journal read = parse_journal(std::string_view(text).substr(0, there.size() + more), "j");
      EXPECT_GE(read.batches.size(), batches);
    }
  }
}

}  // namespace
}  // namespace attest
