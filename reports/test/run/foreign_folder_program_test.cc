// Run folders that somebody else made: with links, pipes and names that lead out. Nothing outside is written, deleted
// or copied, nothing waits, and whoever gave the folder hears in one line what is wrong with it.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "core/journal/journal.h"
#include "core/support/files.h"
#include "reports/test/program_checks.h"
#include "reports/test/shell.h"

namespace attest {
namespace {

namespace fs = std::filesystem;

/// What stands in a folder, by name: a file's text, where a link leads, or what else it is.
std::map<std::string, std::string> contents_of(const fs::path& folder) {
  std::map<std::string, std::string> contents;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string name = fs::relative(entry.path(), folder).string();
    if (entry.is_symlink())
      contents[name] = "link to " + fs::read_symlink(entry.path()).string();
    else
      contents[name] = entry.is_regular_file() ? "file " + read_file(entry.path()) : "no file";
  }
  return contents;
}

/// A run with findings, a worst case and a log, and files outside of it.
class ForeignFolder : public testing::Test {
 protected:
  void SetUp() override {
    const ShellResult made = shell(folder_, "$attest " + options_ + "--out first --quiet");
    ASSERT_EQ(made.status, 1) << made.output;
    const Journal journal = read_journal(folder_ / "first");
    ASSERT_FALSE(journal.findings.empty());
    finding_ = journal.findings[0].case_file;
    fs::create_directories(folder_ / "outside/cases");
    for (const char* file : {"outside/secret", "outside/cases/secret.safetensors", "outside/cases/secret.log"})
      std::ofstream(folder_ / file) << "secret";
    write_file_atomically(folder_ / "outside/case", read_file(folder_ / ("first/" + finding_)));
    outside_ = contents_of(folder_ / "outside");
  }

  /// Puts another thing in the place of an entry of a copy of the run: a link, or a pipe. A folder's link leads to a
  /// folder with files of the names that a run has.
  void plant(const std::string& entry, const std::string& what) const {
    fs::remove_all(folder_ / "run");
    fs::copy(folder_ / "first", folder_ / "run", fs::copy_options::recursive);
    fs::create_directories(folder_ / "run/archive");
    const fs::path place = folder_ / ("run/" + entry);
    const bool is_folder = fs::is_directory(place);
    fs::remove_all(place);
    if (what == "pipe")
      ASSERT_EQ(::mkfifo(place.c_str(), 0666), 0);
    else if (what == "dangling link")
      fs::create_symlink(folder_ / "outside/none", place);
    else
      fs::create_symlink(is_folder                        ? folder_ / "outside/cases"
                         : entry.ends_with("safetensors") ? folder_ / "outside/case"
                                                          : folder_ / "outside/secret",
                         place);
  }
  [[nodiscard]] ShellResult run(const std::string& arguments) const {
    fs::remove_all(folder_ / "whole");
    return shell(folder_, "timeout 60 $attest " + arguments);
  }
  void expect_outside_untouched(const std::string& after) const {
    EXPECT_EQ(contents_of(folder_ / "outside"), outside_) << after;
    // Copied, it would be in what was written.
    if (!fs::exists(folder_ / "whole")) return;
    for (const auto& [name, text] : contents_of(folder_ / "whole"))
      EXPECT_THAT(text, NeverSays("secret")) << name << " after " << after;
  }
  void expect_refusal(const std::string& arguments, const std::string& entry, const std::string& what) const {
    const ShellResult result = run(arguments);
    const std::string which = arguments + " with " + what + " at " + entry;
    EXPECT_EQ(result.status, 2) << which << "\n" << result.output;
    EXPECT_EQ(lines_in(result.output), 1) << which << "\n" << result.output;
    EXPECT_THAT(result.output, Says("run/" + entry + "\" is a " + (what == "pipe" ? "named pipe" : "symbolic link")))
        << which;
    EXPECT_THAT(result.output, Says("of a run folder must be")) << which;
    expect_outside_untouched(which);
  }

  fake::Folder folder_;
  const std::string options_ =
      "check --kernel fault:sum-not-rescaled --dtype f32 --property attention.oracle --cases 40 --jobs 1 ";
  std::string finding_;
  std::map<std::string, std::string> outside_;
};

TEST_F(ForeignFolder, IsRefusedWhereARunWouldWrite) {
  for (const std::string what : {"link", "dangling link", "pipe"}) {
    for (const std::string& entry : {std::string("run.jsonl"), std::string("summary.json"), std::string("summary.md"),
                                     std::string("tolerances.json"), std::string("report.html"), std::string("cases"),
                                     std::string("logs"), std::string("archive"), finding_}) {
      plant(entry, what);
      for (const char* const mode : {"--resume ", "--overwrite "})
        expect_refusal(options_ + mode + "--out run", entry, what);
      EXPECT_TRUE(entry == "run.jsonl" || fs::exists(folder_ / "run/run.jsonl")) << "the run is left as it was";
    }
  }
}

TEST_F(ForeignFolder, IsRefusedByEveryCommandThatWouldWriteInIt) {
  for (const char* const command : {"fuzz --kernel builtin:flash --dtype f32 --runs 20 --overwrite --out run",
                                    "prove --property attention.one-key --overwrite --out run"}) {
    plant("cases", "link");
    expect_refusal(command, "cases", "link");
    plant("report.html", "link");
    expect_refusal(command, "report.html", "link");
  }
  for (const char* const name : {"audit.json", "audit.md"}) {
    plant(name, "link");
    expect_refusal("audit --kernel fault:sum-not-rescaled --cases 5 --overwrite --quiet --out run", name, "link");
  }
  // A folder without a run, as a merge and a first run are given.
  fs::remove_all(folder_ / "run");
  fs::create_directories(folder_ / "run");
  fs::create_symlink(folder_ / "outside/cases", folder_ / "run/cases");
  expect_refusal("merge first -o run/", "cases", "link");
  expect_refusal(options_ + "--out run", "cases", "link");
}

TEST_F(ForeignFolder, IsRefusedWhereAReportWouldReadOrWrite) {
  for (const std::string what : {"link", "dangling link", "pipe"}) {
    for (const std::string& entry : {std::string("run.jsonl"), std::string("cases"), finding_}) {
      plant(entry, what);
      for (const char* const command : {"report run", "report --salvage run", "report run -o page.html",
                                        "merge run -o whole/", "merge --salvage run -o whole/"})
        expect_refusal(command, entry, what);
      // It names the cases and opens none.
      if (entry != finding_) {
        expect_refusal("findings run", entry, what);
      } else {
        EXPECT_EQ(run("findings run").status, 0) << what;
        expect_outside_untouched("findings run with " + what + " at a case");
      }
      // It opens the case of the first cause, which may be another.
      if (entry != finding_) expect_refusal("replay run", entry, what);
    }
    plant("report.html", what);
    expect_refusal("report run", "report.html", what);
    plant("run.jsonl", what);
    expect_refusal("compare run first", "run.jsonl", what);
    expect_refusal("compare first run", "run.jsonl", what);
    plant(finding_, what);
    expect_refusal("replay run/" + finding_, finding_, what);
    expect_refusal("check --kernel builtin:flash --case run/" + finding_ + " --out new", finding_, what);
    for (const char* const entry : {"audit.json", "self-test.json"}) {
      plant(entry, what);
      expect_refusal("report run", entry, what);
    }
  }
  plant(finding_, "pipe");
  expect_status(folder_, "cd run/cases && timeout 60 $attest replay " + fs::path(finding_).filename().string(), 2);
}

TEST_F(ForeignFolder, IsRefusedWhereARunsOwnCaseLeadsOut) {
  const std::vector<FindingRecord> findings = read_journal(folder_ / "first").findings;
  for (const std::string what : {"link", "dangling link", "pipe"}) {
    plant(finding_, what);
    for (const FindingRecord& finding : findings) {
      fs::remove(folder_ / ("run/" + finding.case_file));
      if (what == "pipe")
        ASSERT_EQ(::mkfifo((folder_ / ("run/" + finding.case_file)).c_str(), 0666), 0);
      else
        fs::create_symlink(folder_ / (what == "link" ? "outside/case" : "outside/none"),
                           folder_ / ("run/" + finding.case_file));
    }
    const ShellResult result = run("replay run");
    EXPECT_EQ(result.status, 2) << what << "\n" << result.output;
    EXPECT_EQ(lines_in(result.output), 1) << result.output;
    EXPECT_THAT(result.output, Says(what == "pipe" ? "is a named pipe" : "is a symbolic link"));
    expect_outside_untouched("replay run, every case a " + what);
  }
}

TEST_F(ForeignFolder, MayStandBehindALinkOfTheUser) {
  fs::create_directory_symlink(folder_ / "first", folder_ / "link");
  EXPECT_EQ(run("report link").status, 0);
  EXPECT_EQ(run(options_ + "--resume --quiet --out link").status, 1);
  EXPECT_EQ(run(options_ + "--overwrite --quiet --out link/").status, 1);
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_EQ(run("replay link/" + finding_).status, 1);
  EXPECT_EQ(run("merge link -o whole/").status, 0);
  // What the user names as a file to write is written, whatever it is.
  std::ofstream(folder_ / "page.html") << "old";
  fs::create_symlink(folder_ / "page.html", folder_ / "page");
  EXPECT_EQ(run("report first -o page").status, 0);
  EXPECT_TRUE(fs::is_symlink(folder_ / "page"));
  EXPECT_NE(read_file(folder_ / "page.html"), "old");
  EXPECT_THAT(run("report first -o /dev/stdout").output, Says("<!DOCTYPE html>"));
  EXPECT_THAT(run("merge first -o /dev/stdout").output, Says("\"kind\":\"run\""));
}

TEST_F(ForeignFolder, LeavesTheUsersLinkWhereNoKernelStarts) {
  fs::create_directories(folder_ / "empty");
  fs::create_directory_symlink(folder_ / "empty", folder_ / "link");
  EXPECT_EQ(run("check --kernel ./none.so --out link").status, 3);
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
}

TEST_F(ForeignFolder, LeadsNowhereByTheNamesInItsJournal) {
  // Where the reader of journals lets such a name through, the folder does not.
  const std::string journal = read_file(folder_ / "first/run.jsonl");
  for (const std::string& name : {std::string("../outside/secret"), std::string("cases/../../outside/secret"),
                                  (folder_ / "outside/secret").string()}) {
    std::string foreign = journal;
    for (std::size_t at = foreign.find(finding_); at != std::string::npos;
         at = foreign.find(finding_, at + name.size()))
      foreign.replace(at, finding_.size(), name);
    fs::remove_all(folder_ / "run");
    fs::create_directories(folder_ / "run/cases");
    std::ofstream(folder_ / "run/run.jsonl") << foreign;
    fs::create_directories(folder_ / "deep/er");
    for (const char* const command : {"merge run -o deep/er/whole/", "report run", "merge run -o whole/"}) {
      const ShellResult result = run(command);
      EXPECT_EQ(contents_of(folder_ / "outside"), outside_) << command;
      for (const auto& [file, text] : contents_of(folder_ / "deep")) EXPECT_THAT(text, NeverSays("secret")) << file;
      if (std::string(command).starts_with("merge")) {
        EXPECT_EQ(result.status, 2) << result.output;
        EXPECT_EQ(lines_in(result.output), 1) << result.output;
      }
    }
    expect_outside_untouched(name);
    fs::remove_all(folder_ / "deep");
  }
}

TEST_F(ForeignFolder, LosesTheTemporariesOfKilledRuns) {
  const ShellResult ended = shell(folder_, "sh -c 'echo $$'");
  const std::string process = ended.output.substr(0, ended.output.find('\n'));
  const std::vector<std::string> left{"run/report.html." + process + "-0.tmp",
                                      "run/cases/a.safetensors." + process + "-7.tmp",
                                      "run/archive/a.jsonl." + process + "-7.tmp"};
  const std::string mine = "run/notes." + process + "-0.tmp", alive = "run/report.html.1-0.tmp";
  const auto leave = [&](const std::string& copied) {
    fs::remove_all(folder_ / "run");
    if (!copied.empty()) fs::copy(folder_ / copied, folder_ / "run", fs::copy_options::recursive);
    for (const char* const sub : {"run/cases", "run/archive"}) fs::create_directories(folder_ / sub);
    for (const std::string& file : left) std::ofstream(folder_ / file) << "half";
    for (const std::string& file : {mine, alive}) std::ofstream(folder_ / file) << "half";
  };
  for (const auto& [copied, command] : std::vector<std::pair<std::string, std::string>>{
           {"", options_ + "--quiet --out run"},
           {"first", options_ + "--resume --quiet --out run"},
           {"first", options_ + "--overwrite --quiet --out run"},
           {"first", "report run"},
           {"", "merge first -o run/"},
           {"", "fuzz --kernel builtin:flash --dtype f32 --runs 20 --quiet --out run"},
           {"", "prove --property attention.one-key --out run"}}) {
    leave(copied);
    const ShellResult result = run(command);
    EXPECT_LE(result.status, 1) << command << result.output;
    for (const std::string& file : left) EXPECT_FALSE(fs::exists(folder_ / file)) << file << " after " << command;
    for (const std::string& file : {mine, alive})
      EXPECT_TRUE(fs::exists(folder_ / file)) << file << " after " << command;
  }
}

}  // namespace
}  // namespace attest
