// Kernels that misbehave, as a user meets them: the program's findings, saved cases, notes and exit status. The
// libraries are those of core/test/isolation.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <utility>

#include "core/journal/journal.h"
#include "core/test/isolation/opening.h"
#include "core/test/places.h"
#include "core/test/sanitizers.h"
#include "reports/test/json.h"
#include "reports/test/program_checks.h"
#include "reports/test/run/left_running.h"

namespace attest {
namespace {

using fake::Folder;
using testing::AllOf;
using testing_process::library;

/// A run of few cases of one property in one dtype, in the folder `run`.
ShellResult check(const Folder& folder, const std::string& name, const std::string& more = "") {
  return shell(folder, "$attest check --verbose --kernel " + library(name) +
                           " --property attention.oracle --dtype f64 --jobs 1 --cases 6 --out run --overwrite " + more);
}

struct Misbehaviour {
  const char* library;
  const char* kind;    ///< of its findings
  const char* reason;  ///< a part of it
  const char* options = "";
};

// Each of these does it in every second call, or in every call after the first.
const Misbehaviour misbehaviours[] = {
    {"crashes", "died", "through a null pointer"},
    {"aborts", "died", "signal 6 (Aborted)"},
    {"exits", "died", "exited with status 6"},
    {"quits", "died", "exited with status 0"},
    {"hangs", "timed-out", "no reply within 0.3 s", "--timeout 300ms"},
    {"eats_memory", "died", "its process may hold 256 MiB of memory (--memory)", "--memory 256MiB"},
    {"writes_beyond", "failed", "wrote outside the tensors"},
    {"writes_far", "died", "outside its tensors"},
    {"changes_input", "failed", "wrote to its input k"},
    {"leaves_unwritten", "failed", "unwritten"},
    {"rounds_up", "failed", "it rounds upward"},
    {"reads_as_zero", "failed", "reads subnormal operands as zero"},
    {"closes_connection", "died", "closes descriptors that are not its own"},
    {"writes_to_connection", "malformed", "wrote to descriptor 3"},
    {"long_message", "failed", "mmmm"},
};

TEST(IsolationProgram, SavesACaseOfEveryMisbehaviourAndGoesOn) {
  for (const Misbehaviour& wrong : misbehaviours) {
    SCOPED_TRACE(wrong.library);
    const Folder folder;
    const ShellResult result = check(folder, wrong.library, wrong.options);
    EXPECT_EQ(result.status, 1) << result.output;
    const Journal journal = read_journal(folder / "run");
    EXPECT_FALSE(journal.unfinished());
    ASSERT_FALSE(journal.findings.empty()) << result.output;
    for (const FindingRecord& finding : journal.findings) {
      EXPECT_EQ(finding.kind(), wrong.kind);
      EXPECT_THAT(finding.verdict.reason, Says(wrong.reason));
      EXPECT_TRUE(std::filesystem::exists(folder / ("run/" + finding.case_file)));
    }
    EXPECT_THAT(result.output, Says(wrong.reason));
    EXPECT_EQ(summary_of(folder, "run")["kernels"][0]["properties"][0]["cases"], 6);
    EXPECT_TRUE(std::filesystem::exists(folder / "run/report.html"));
  }
}

TEST(IsolationProgram, GivesAWholeReportOfAKernelThatCrashesInEveryTenthCall) {
  const Folder folder;
  expect_status(folder,
                "$attest check --kernel " + library("crashes_every_tenth") + " --dtype f64 --cases 12 --out run", 1);
  EXPECT_FALSE(read_journal(folder / "run").unfinished());
  std::int64_t died = 0;
  const auto summary = summary_of(folder, "run");
  for (const auto& property : summary["kernels"][0]["properties"]) {
    EXPECT_EQ(property["cases"], 12);
    died += property["verdict"] == "violated";
  }
  EXPECT_GT(died, 10);
  for (const FindingRecord& finding : read_journal(folder / "run").findings) {
    EXPECT_EQ(finding.kind(), "died");
    EXPECT_THAT(finding.verdict.reason, Says("signal 6 (Aborted) (in a call)"));
  }
}

TEST(IsolationProgram, ReplaysACrash) {
  const Folder folder;
  EXPECT_EQ(check(folder, "always_crashes").status, 1);
  const std::string saved = "run/" + read_journal(folder / "run").findings.at(0).case_file;
  EXPECT_THAT(output_of(folder, "$attest replay " + saved, 1), Says("through a null pointer", "\nreproduced\n"));
}

// The name of a kernel is a path, which may hold in one folder alone: where the run was started, or beside its folder.
TEST(IsolationProgram, FindsTheKernelOfARunFromAnotherFolder) {
  const Folder folder;
  const std::string start = "mkdir -p a/b away && cp " + library("good") + " a/mine.so && cd a && ";
  const std::string check =
      "$attest check --kernel ./mine.so --property attention.oracle --dtype f64 --jobs 1 --cases 6 --quiet --out ";
  const std::string replay = "cd away && $attest replay ";
  // Started beside its folder, and two folders above; both moved together.
  ASSERT_EQ(shell(folder, start + check + "run && " + check + "b/c/run && cd .. && mv a moved").status, 0);
  for (const char* const run : {"run", "b/c/run"}) {
    EXPECT_THAT(
        output_of(folder, joined({replay, "../moved/", run, "/cases/*--worst.safetensors"})),
        AllOf(Says("note: ./mine.so is taken from ", "/moved, as the case"), Says("attention.oracle by ./mine.so")));
  }
  // Of an artifact that was unpacked beside the kernel there is its own folder, and its journal speaks of another.
  expect_status(folder, "mkdir other && cp -r moved/b/c/run moved/mine.so other; rm moved/mine.so; " + replay +
                            "../other/run/cases/*--worst.safetensors");
  // From where one stands goes before all.
  EXPECT_THAT(output_of(folder, "cd other && $attest replay ../moved/run/cases/*--worst.safetensors"),
              NeverSays("note:"));
  EXPECT_THAT(
      output_of(folder, replay + "../moved/b/c/run/cases/*--worst.safetensors", 3),
      Says("there is no such file", "it was looked for here and in ", "/moved and in ", "/moved/b/c, --kernel"));
}

TEST(IsolationProgram, FindsTheProgramOfARunFromAnotherFolder) {
  const Folder folder;
  output_of(
      folder,
      "mkdir a away && cp " + source_folder() +
          "/core/test/isolation/misbehave.py a/mine.py && cd a && $attest check --kernel 'exec:python3 -I -S "
          "mine.py good' --kernel 'exec:python3 -S -I mine.py good' --property attention.oracle --dtype f64 --jobs "
          "1 --cases 6 --quiet --out run",
      1);
  // Both programs have one name in their manifests, and none of the other's files.
  EXPECT_EQ(shell(folder, "ls a/run/cases/attention.oracle--misbehave-*--f64--worst.safetensors | wc -l").output,
            "2\n");
  const Journal journal = read_journal(folder / "a/run");
  std::map<std::string, std::string> kernel_of;
  for (const FindingRecord& finding : journal.findings) {
    EXPECT_TRUE(kernel_of.emplace(finding.case_file, finding.subject.kernel).second) << finding.case_file;
    EXPECT_THAT(output_of(folder, "cd away && $attest replay ../a/run/" + finding.case_file, 1),
                Says("note: " + finding.subject.kernel + " is taken from "));
  }
  EXPECT_EQ(journal.findings.size(), 6U);
  // The line that every run prints, too, and from inside its folder.
  for (const char* const replay : {"cd away && $attest replay ../a/run", "cd a/run && $attest replay ."})
    EXPECT_THAT(output_of(folder, replay, 1), Says("mine.py good is taken from "));
}

TEST(IsolationProgram, SaysHowAKernelIsNamedThatIsNotFound) {
  const Folder folder;
  const std::string check = "cp " + library("good") + " mine.so && mkdir away && $attest check --kernel ./mine.so " +
                            "--property attention.oracle --dtype f64 --jobs 1 --cases 6 --quiet --out run ";
  ASSERT_EQ(shell(folder, check).status, 0);
  const std::string replay = "cd away && $attest replay ../run/cases/*--worst.safetensors ";
  const std::string lost = output_of(folder, "mv mine.so mine; " + replay, 3);
  EXPECT_THAT(lost, Says("attest: ",
                         "./mine.so: there is no such file; build the library first or correct its path; the "
                         "case names it so and it was looked for here and in "));
  expect_status(folder, "mv mine mine.so");
  expect_status(folder, replay + "--kernel ../mine.so");
  // Who names it there knows that option.
  EXPECT_THAT(output_of(folder, replay + "--kernel ./absent.so", 3), NeverSays("--kernel"));
  ASSERT_EQ(shell(folder, "rm -r away; " + check + "--overwrite --against ./mine.so").status, 0);
  EXPECT_THAT(shell(folder, replay + "--kernel ../mine.so").output,
              Says("so, --against names it as it is found from here"));
}

/// A Python kernel of core/test/isolation.
std::string program(const std::string& mode) {
  return "'exec:python3 -I -S " + source_folder() + "/core/test/isolation/misbehave.py " + mode + "; true'";
}

// Both kernels are in a call that never ends, with a grandchild in a session of its own; the program is a child of a
// shell besides.
TEST(IsolationProgram, LeavesNothingRunningHoweverItEnds) {
  const std::pair<const char*, int> signals[] = {
      {"INT", 130}, {"TERM", 130}, {"HUP", 130}, {"QUIT", 130}, {"KILL", 137}};
  for (const std::string& kernel : {library("spins"), program("spins")}) {
    for (const auto& [signal, status] : signals) {
      SCOPED_TRACE(kernel + " " + signal);
      const Folder folder;
      expect_status(folder,
                    fmt::format("$attest check --kernel {} --property attention.oracle --dtype f64 --jobs 1 "
                                "--cases 6 --timeout 1h --quiet --out run & pid=$!; "
                                "for i in $(seq 600); do grep -qs daemon run/logs/* && break; sleep 0.05; done; "
                                "kill -{} $pid; wait $pid",
                                kernel, signal),
                    status);
      const std::string log = shell(folder, "cat run/logs/*").output;
      for (const std::string word : {"worker", "daemon"}) {
        const pid_t process = testing_process::process_in(log, word);
        ASSERT_GT(process, 0) << log;
        EXPECT_TRUE(testing_process::ends(process)) << word;
      }
      // It spins from its first call on, which asks for its limits: of the run nothing is there yet.
      EXPECT_FALSE(std::filesystem::exists(folder / "run/run.jsonl"));
    }
  }
}

TEST(IsolationProgram, IsInterruptedWhileAKernelHangsInAnotherGroup) {
  const Folder folder;
  for (const char* name : {"leaves_group", "leaves_group_in_manifest"}) {
    expect_status(folder,
                  fmt::format("$attest check --kernel {} --property attention.oracle --dtype f64 --jobs 1 --cases 6 "
                              "--timeout 1h --quiet --overwrite --out run & pid=$!; sleep 2; kill -INT $pid; "
                              "(sleep 20; kill -KILL $pid) >/dev/null 2>&1 & dog=$!; wait $pid; status=$?; "
                              "kill $dog; (exit $status)",
                              library(name)),
                  130);
  }
}

/// Cases of the journal's batches.
std::int64_t cases_in(const Journal& journal) {
  std::int64_t cases = 0;
  for (const BatchRecord& batch : journal.batches) cases += batch.tally.cases();
  return cases;
}

// What no program prevents. The library does it in its 200th call of a process, so that each resumed run comes further.
TEST(IsolationProgram, KeepsWhatWasDoneWhereAKernelKillsIt) {
  const Folder folder;
  const std::string check = "$attest check --kernel " + library("kills_parent") +
                            " --property attention.oracle --dtype f64 --jobs 1 --cases 400 --no-large --quiet "
                            "--out run ";
  std::int64_t done = 0;
  int killed = 0, status = 137;
  for (; status == 137 && killed < 8; killed += status == 137) {
    const LeftRunning left;
    const ShellResult run = shell(folder, left.variable() + " " + check + (killed > 0 ? "--resume" : ""));
    status = run.status;
    EXPECT_THAT(left.after_a_moment(), testing::IsEmpty()) << "the kernel would sleep for ever";
    const Journal journal = read_journal(folder / "run");
    EXPECT_EQ(journal.unfinished(), status == 137) << run.output;
    EXPECT_GT(cases_in(journal), done);
    done = cases_in(journal);
  }
  EXPECT_EQ(status, 0);
  EXPECT_GE(killed, 2);
  EXPECT_EQ(done, 400);
  EXPECT_TRUE(read_journal(folder / "run").findings.empty());
}

TEST(IsolationProgram, SaysThatThereAreTooManyOpenFiles) {
  if (under_address_sanitizer)
    GTEST_SKIP()
        << "the undefined-behaviour sanitizer opens a pipe to look at an exception's type, and there is none left";
  const Folder folder;
  bool refused = false, ran = false;
  // What the program is linked with takes a few.
  for (int most = 8; most < 60 && !ran; most += 3) {
    const ShellResult result = shell(
        folder, fmt::format("rm -rf run; (ulimit -n {}; exec $attest check --kernel {} --property attention.oracle "
                            "--dtype f64 --jobs 4 --cases 300 --quiet --out run)",
                            most, library("good")));
    ran = result.status == 0;
    if (ran) break;
    EXPECT_EQ(result.status, 2) << most << result.output;
    EXPECT_THAT(result.output, Says("too many open files (EMFILE)", "ulimit -n"));
    EXPECT_EQ(std::ranges::count(result.output, '\n'), 1) << result.output;
    refused = true;
  }
  EXPECT_TRUE(refused);
  EXPECT_TRUE(ran);
}

#ifdef __x86_64__
TEST(IsolationProgram, SaysOnceWhatALibraryDoesAsItIsLoaded) {
  const Folder folder;
  const std::string kernel = "$attest check --verbose --kernel " + library("flushes_at_load") +
                             " --dtype f64,f32 --property 'attention.o*' --cases 150 ";
  const std::string result = output_of(folder, kernel + "--jobs 1 --out one", 1);
  const Journal journal = read_journal(folder / "one");
  ASSERT_EQ(journal.findings.size(), 1U);
  EXPECT_EQ(journal.findings[0].kind(), "failed");
  EXPECT_EQ(journal.findings[0].k, 0);
  EXPECT_THAT(journal.findings[0].verdict.reason, Says("as it was loaded it changed the floating-point environment"));
  EXPECT_THAT(result, Says("flushes subnormal results to zero (FTZ)"));
  std::int64_t violated = 0;
  const auto summary = summary_of(folder, "one");
  for (const auto& part : summary["kernels"])
    for (const auto& property : part["properties"]) violated += property["violated"].get<std::int64_t>();
  EXPECT_EQ(violated, 1);
  EXPECT_THAT(output_of(folder, "$attest replay one/" + journal.findings[0].case_file, 1), Says("as it was loaded"));
  // Another kernel's loading is not this one's, and another case is not about loading.
  expect_status(folder, "$attest replay one/" + journal.findings[0].case_file + " --kernel " + library("good"));
  expect_status(folder, "$attest replay one/cases/attention.oracle--*--f32--worst.safetensors");
  // At one and the same case whatever the jobs, the shards and the process.
  expect_status(folder, kernel + "--jobs 3 --out two", 1);
  expect_status(folder, kernel + "--in-process --jobs 2 --out three", 1);
  expect_status(folder, kernel + "--shard 0/2 --out s0", 1);
  expect_status(folder, kernel + "--shard 1/2 --out s1");
  expect_status(folder,
                "for run in one two three; do $attest merge $run -o $run.jsonl; done; "
                "$attest merge s0 s1 -o s.jsonl; cmp one.jsonl two.jsonl && cmp one.jsonl three.jsonl && "
                "cmp one.jsonl s.jsonl");
  // A case of the user's own is where it stands, too.
  expect_status(folder,
                "$attest check --kernel " + library("flushes_at_load") +
                    " --case one/cases/attention.oracle--*--f64--worst.safetensors --out own",
                1);
  EXPECT_EQ(read_journal(folder / "own").findings.size(), 1U);
}
#endif

TEST(IsolationProgram, NotesWhatAKernelPrintsAndHoldsIt) {
  const Folder folder;
  const ShellResult result = check(folder, "prints", "2> errors");
  EXPECT_EQ(result.status, 0) << result.output;
  EXPECT_THAT(result.output, NeverSays("hello"));
  EXPECT_THAT(read_file(folder / "errors"),
              Says("note on " + library("prints") + ": it writes to standard output; see run/logs/"));
  const auto notes = summary_of(folder, "run")["notes"];
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_EQ(notes[0]["kernel"], library("prints"));
  EXPECT_THAT(read_file(folder / "run/report.html"), Says("it writes to standard output"));
  EXPECT_EQ(check(folder, "prints", "--quiet").output, "");
  EXPECT_EQ(check(folder, "good").status, 0);
  EXPECT_TRUE(summary_of(folder, "run")["notes"].empty());
  EXPECT_EQ(check(folder, "keeps_threads").status, 0);
}

TEST(IsolationProgram, RefusesWhatCannotBeLoadedInOneLine) {
  const std::pair<std::string, const char*> broken[] = {
      {library("exports_nothing"), "does not export attest_kernel_manifest"},
      {library("manifest_only"), "neither attest_kernel_attention nor attest_kernel_multihead"},
      {library("another_abi"), "\"abi\" is 2; this version speaks 1; compile"},
      {library("not_json"), "is not JSON"},
      {library("contradicts_itself"), "\"dtypes\" does not list it"},
      {library("needs_missing"), "it needs libattest-is-nowhere.so.3"},
      {library("uses_undefined"), "it uses attest_test_defined_nowhere"},
      {library("crashes_at_load"), "as it was loaded: it wrote through a null pointer"},
      {library("exits_at_load"), "exited with status 0"},
      {"./text.so", "is no shared library"},
      {"./empty.so", "is empty"},
      {"./arm.so", "is built for "},
      {"./absent.so", "there is no such file"},
      {".", "is no kernel"},
      {"./", "is a folder"},
  };
  const Folder folder;
  std::ofstream(folder / "text.so") << "text\n";
  std::ofstream(folder / "empty.so") << "";
  std::string bytes = read_file(library("good"));
  bytes[18] = 40;  // e_machine: 32-bit ARM
  std::ofstream(folder / "arm.so", std::ios::binary) << bytes;
  for (const auto& [path, part] : broken) {
    // The thread sanitizer calls an exit in the middle of dlopen a mistake of the program's.
    if (under_thread_sanitizer && path == library("exits_at_load")) continue;
    EXPECT_THAT(one_line_of(folder, "$attest check --verbose --cases 1 --kernel '" + path + "'", path == "." ? 2 : 3),
                Says(path, part));
    EXPECT_FALSE(std::filesystem::exists(folder / "attest-run-001"));
  }
}

TEST(IsolationProgram, LoadsLibrariesIntoItselfWhereAsked) {
  const Folder folder;
  expect_status(folder, "$attest check --kernel " + library("good") +
                            " --property attention.oracle --cases 300 --in-process --jobs 3 --out held");
  EXPECT_EQ(check(folder, "writes_beyond", "--in-process").status, 1);
  // What is said of it in the help: a crash is the program's own. A sanitizer would make an exit status of it.
  const ShellResult crashed =
      shell(folder, "export ASAN_OPTIONS=handle_segv=0 TSAN_OPTIONS=handle_segv=0; $attest check --verbose --kernel " +
                        library("crashes") +
                        " --property attention.oracle --dtype f64 --jobs 1 --cases 6 --in-process --out crashed");
  EXPECT_GT(crashed.status, 128) << crashed.output;
  EXPECT_THAT(shell(folder, "$attest check --help").output, Says("a kernel that crashes"));
  const std::string program = output_of(folder, "$attest check --verbose --in-process --kernel exec:true", 2);
  EXPECT_EQ(
      program,
      "attest: --in-process loads a shared library into attest itself; \"exec:true\" is a program of its own: leave "
      "--in-process out\n");
}

TEST(IsolationProgram, LimitsTheMemoryOfAPythonKernel) {
  const Folder folder;
  if (shell(folder, "/usr/bin/python3 -c 'import numpy'").status != 0) GTEST_SKIP() << "Python has no numpy";
  std::ofstream(folder / "eats.py")
      << "import attest_adapter\n"
         "def attention(q, k, v, scale=1.0):\n"
         "    return bytearray(1 << 32)\n"
         "attest_adapter.serve(attention, {'name': 'eats', 'dtypes': ['f64'], 'masks': []})\n";
  EXPECT_THAT(
      output_of(
          folder,
          "$attest check --verbose --kernel 'exec:/usr/bin/python3 eats.py' --property attention.oracle --cases 2 "
          "--memory 700MB --out run",
          1),
      Says("MemoryError", "its process may hold 667.6 MiB of memory (--memory)"));
}

}  // namespace
}  // namespace attest
