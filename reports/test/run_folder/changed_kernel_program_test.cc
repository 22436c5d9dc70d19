// A library or a program that is built anew between a run and its resumption, as a user meets it; and manifests whose
// limits ask for too much.
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "core/journal/journal.h"
#include "core/support/files.h"
#include "core/test/isolation/opening.h"
#include "core/test/places.h"
#include "core/test/sanitizers.h"
#include "reports/test/json.h"
#include "reports/test/program_checks.h"
#include "reports/test/shell.h"

namespace attest {
namespace {

using fake::Folder;
using testing_process::library;

/// One line, exit status 2.
void expect_refused_by(const ShellResult& result, const std::string& part) {
  EXPECT_EQ(result.status, 2) << result.output;
  EXPECT_EQ(lines_in(result.output), 1) << result.output;
  EXPECT_THAT(result.output, Says(part, "--accept-changed-kernel"));
}

TEST(ChangedKernelProgram, IsRefusedByResumeAndNotedWhereItIsAccepted) {
  const Folder folder;
  // A library and a program of bytes that the loader does not look at: the same kernel, and another file.
  ASSERT_EQ(shell(folder, "cp " + library("good") + " mine.so").status, 0);
  const std::string with = " --kernel ./mine.so --dtype f64 --jobs 1 --quiet --out run ",
                    check = "$attest check --property attention.oracle" + with,
                    fuzz = "$attest fuzz --kernel ./mine.so --dtype f64 --jobs 1 --quiet --out bred ";
  ASSERT_EQ(shell(folder, check + "--cases 40").status, 0);
  ASSERT_EQ(shell(folder, fuzz + "--runs 6").status, 0);
  expect_status(folder, check + "--cases 42 --resume");
  ASSERT_EQ(shell(folder, "cp run before -r; printf more >> mine.so").status, 0);
  expect_refused_by(shell(folder, check + "--cases 44 --resume"), "kernel ./mine.so: ./mine.so has changed");
  expect_refused_by(shell(folder, fuzz + "--runs 12 --resume"), "kernel ./mine.so: ./mine.so has changed");
  expect_status(folder, check + "--cases 44 --resume --accept-changed-kernel");
  EXPECT_EQ(read_journal(folder / "run").kernels.back().files.at("./mine.so").size(), 2U);
  expect_status(folder, fuzz + "--runs 12 --resume --accept-changed-kernel");
  for (const char* const run : {"run", "bred"}) {
    const auto notes = summary_of(folder, run)["notes"];
    ASSERT_EQ(notes.size(), 1U) << run;
    EXPECT_THAT(notes[0]["text"].get<std::string>(), Says("./mine.so changed within this run"));
    EXPECT_THAT(read_file(folder / (std::string(run) + "/report.html")), Says("./mine.so changed within this run"));
  }
  // And is known from then on.
  expect_status(folder, check + "--cases 46 --resume");
  // The shards of two builds.
  expect_status(folder, check + "--cases 40 --overwrite");
  expect_refused_by(shell(folder, "$attest merge before run -o whole"),
                    "its file ./mine.so is not the same in before and run");
  expect_refused("check --kernel builtin:flash --accept-changed-kernel",
                 "--accept-changed-kernel is about a run that goes on");
}

TEST(ChangedKernelProgram, MayBeAScriptOrAttestItself) {
  const Folder folder;
  const std::string kernel = python_kernel(folder, "mine", "1.0");
  if (kernel.empty()) GTEST_SKIP() << "Python has no numpy";
  const std::string check =
      " check --property attention.oracle --kernel " + kernel + " --dtype f64 --jobs 1 --quiet --out run ";
  ASSERT_EQ(shell(folder, "$attest" + check + "--cases 40").status, 0);
  expect_status(folder, "$attest" + check + "--cases 45 --resume");
  // Another build: the note that tells it is all that differs.
  std::string program = read_file(program_file());
  const std::string note("\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0", 16);
  const std::size_t at = program.find(note);
  ASSERT_NE(at, std::string::npos);
  program[at + note.size()] = static_cast<char>(program[at + note.size()] ^ 1);
  std::ofstream(folder / "other", std::ios::binary) << program;
  ASSERT_EQ(shell(folder, "chmod +x other").status, 0);
  expect_refused_by(shell(folder, "./other" + check + "--cases 46 --resume"), "attest itself has changed");
  expect_status(folder, "./other" + check + "--cases 46 --resume --accept-changed-kernel");
  EXPECT_THAT(summary_of(folder, "run")["notes"].dump(), Says("2 builds of attest itself made this run"));
  std::ofstream(folder / "mine.py", std::ios::app) << "\n# another\n";
  expect_refused_by(shell(folder, "$attest" + check + "--cases 47 --resume"), "mine.py has changed");
}

/// A program that is right and whose manifest has these limits.
std::string limited(const Folder& folder, const std::string& name, const std::string& limits) {
  if (python_kernel(folder, name, "1.0").empty()) return {};
  std::string text = read_file(folder / (name + ".py"));
  const std::string key = "'masks': [], ";
  text.insert(text.find(key) + key.size(), "'limits': {" + limits + "}, ");
  std::ofstream(folder / (name + ".py")) << text;
  return "'exec:/usr/bin/python3 " + name + ".py'";
}

// Little memory to map, but where a sanitizer's own takes terabytes of it.
constexpr const char* little_memory = under_address_sanitizer || under_thread_sanitizer ? "" : "ulimit -v 4000000; ";

TEST(HostileManifest, IsRefusedOrItsCasesAreSkippedAndOtherKernelsGoOn) {
  const Folder folder;
  const std::string refused = limited(folder, "huge", "'head_dim_multiple': 100000007");
  if (refused.empty()) GTEST_SKIP() << "Python has no numpy";
  const std::string check =
      "$attest check --verbose --property attention.oracle --dtype f64 --jobs 1 --cases 40 --overwrite --out run --kernel ";
  EXPECT_THAT(output_of(folder, check + refused, 3),
              Says("\"limits\".\"head_dim_multiple\" is 100000007; it must be a whole number from 1 to 65536"));
  // The largest that is taken, in memory that would not hold what it asks for.
  const std::string largest = limited(folder, "large", "'head_dim_multiple': 65536, 'heads_multiple': 65536");
  const std::string both =
      output_of(folder, little_memory + check + largest + " --kernel builtin:flash --memory none", 4);
  EXPECT_THAT(both, Says("inconclusive attention.oracle by large in f64: hardly tested: judged in none of 40 cases",
                         "allow smaller problems in the manifest"));
  const auto kernels = summary_of(folder, "run")["kernels"];
  ASSERT_EQ(kernels.size(), 2U);
  for (const auto& kernel : kernels) {
    const bool flash = kernel["id"] == "builtin:flash";
    EXPECT_EQ(kernel["verdict"], flash ? "held" : "inconclusive") << kernel.dump();
  }
  EXPECT_THAT(both, Says("within the manifest's limits; a case has at most 8388608"));
  // By itself nothing of it could be checked.
  expect_status(folder, check + largest, 3);
}

}  // namespace
}  // namespace attest
