// Kernels over standard input and output, well-behaved and misbehaving in every way that misbehave.py knows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <thread>

#include "core/kernel/kernel_under_test.h"
#include "core/test/isolation/kernel_problem.h"
#include "core/test/isolation/opening.h"
#include "core/test/places.h"

namespace attest {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using namespace testing_process;

/// -I -S: the programs use the standard library only, and most of a test's time is Python's start.
std::string command(const std::string& mode) {
  static const std::string python = ::access("/usr/bin/python3", X_OK) == 0 ? "/usr/bin/python3" : "python3";
  return "exec:exec " + python + " -I -S '" + source_folder() + "/core/test/isolation/misbehave.py' " + mode;
}

/// Short only where a test waits for the limit to pass: a loaded machine must not turn a good program into a late one.
KernelOptions impatient() {
  return {60s, 300ms, {}, {}};
}

std::unique_ptr<Kernel> open(const std::string& mode, const KernelOptions& options = patient()) {
  return open_kernel(command(mode), options);
}

std::string usage_error(const std::string& spec) {
  return refusal([&] { return open_kernels(spec, {}); });
}

const Case& small() {
  static const Case c = attention_case(DType::f64, {});
  return c;
}

void expect_good(Kernel& kernel, const Case& c = small()) {
  const Reply reply = kernel.run(c);
  ASSERT_EQ(reply.status, CallStatus::ok) << reply.message;
  EXPECT_LE(largest_difference(reply.out, attention_answer(c)), 1e-12);
}

/// The call fails as expected, in one line, and the next one is served by a program started anew.
void expect_then_good(const std::string& mode, CallStatus status, const testing::Matcher<std::string>& message) {
  const auto kernel = open(mode);
  expect_good(*kernel);
  const Reply reply = kernel->run(small());
  EXPECT_EQ(reply.status, status) << reply.message;
  EXPECT_THAT(reply.message, message);
  EXPECT_THAT(reply.message, NeverSays("\n"));
  EXPECT_FALSE(reply.out.present());
  expect_good(*kernel);
}

void expect_malformed(const std::string& mode, const testing::Matcher<std::string>& message, bool want_lse = false) {
  const auto kernel = open(mode);
  const Reply reply = kernel->run(small(), DType::f64, want_lse);
  EXPECT_EQ(reply.status, CallStatus::malformed) << mode << ": " << reply.message;
  EXPECT_THAT(reply.message, message) << mode;
  EXPECT_THAT(reply.message, NeverSays("\n"));
  EXPECT_FALSE(reply.out.present());
}

TEST(Process, ServesAProgramThatDoesRight) {
  const auto kernel = open("correct");
  EXPECT_EQ(kernel->id(), command("correct"));
  EXPECT_EQ(kernel->manifest().name, "misbehave");
  for (unsigned seed = 1; seed <= 20; ++seed) {
    expect_good(*kernel, attention_case(DType::f64, {1, seed % 3 + 1, seed % 4 + 1, seed % 5 + 1, 3, 2}, seed));
  }
}

TEST(Process, BringsTheLogSumExpWhenItIsAskedFor) {
  const auto kernel = open("correct");
  const Reply reply = kernel->run(small(), DType::f64, true);
  ASSERT_EQ(reply.status, CallStatus::ok) << reply.message;
  EXPECT_EQ(reply.lse.shape(), (Shape{2, 2, 3}));
  EXPECT_FALSE(kernel->run(small()).lse.present());
}

TEST(Process, CarriesMoreThanAPipeHolds) {
  const auto kernel = open("correct");
  // 4 MiB of keys and values, and 1 MiB of output: neither fits into a pipe's buffer.
  const Case c = attention_case(DType::f64, {1, 1, 1, 2, 131072, 131072});
  const Reply reply = kernel->run(c);
  ASSERT_EQ(reply.status, CallStatus::ok) << reply.message;
  EXPECT_LE(largest_difference(reply.out, attention_answer(c)), 1e-9);
}

TEST(Process, PassesStatusesOn) {
  for (const auto& [mode, status] : {std::pair{"unsupported", CallStatus::unsupported},
                                     {"rejected", CallStatus::rejected},
                                     {"failed", CallStatus::failed}}) {
    const auto kernel = open(mode);
    const Reply reply = kernel->run(small());
    EXPECT_EQ(reply.status, status);
    EXPECT_EQ(reply.message, std::string("this is ") + mode);
    EXPECT_FALSE(reply.out.present());
  }
}

TEST(Process, SaysWhyAProgramCannotBeLoaded) {
  EXPECT_THAT(load_error("exec:no-such-program-here"), Says("exec:no-such-program-here", "status 127", "not found"));
  EXPECT_THAT(load_error(command("die-at-once")), Says("exited with status 7", "the library libfoo is missing"));
  EXPECT_THAT(load_error("exec:kill -9 $$"), Says("killed by signal 9 (Killed)"));
  EXPECT_THAT(load_error(command("print-at-once")),
              Says("printed to standard output", "\"Welcome to the kernel", "descriptor 1"));
  EXPECT_THAT(load_error(command("text-for-manifest")),
              AllOf(Says("printed to standard output", "\"Traceback"), NeverSays(std::string(81, 'y'))));
  EXPECT_THAT(load_error(command("no-manifest")), Says("no manifest"));
  EXPECT_THAT(load_error(command("bad-manifest")), Says("f65"));
  EXPECT_THAT(load_error("exec:cat"), Says("no manifest"));
  EXPECT_THAT(load_error("exec:head -c 1 >/dev/null; head -c 4 </dev/zero; exit 3"),
              Says("exited with status 3", "4 bytes"));
}

TEST(Process, WaitsForTheFirstReplyNoLongerThanItsLimit) {
  KernelOptions options = patient();
  options.first_reply = 200ms;
  EXPECT_THAT(load_error("exec:sleep 600", options), Says("no reply within 0.2 s"));
  EXPECT_THAT(load_error(command("hang-at-once"), options), Says("no reply within 0.2 s"));
  EXPECT_THAT(load_error(command("close-input"), options), Says("no reply within 0.2 s"));
}

TEST(Process, GoesOnAfterADeath) {
  const auto kernel = open("die-every-third");
  for (int i = 1; i <= 7; ++i) {
    const Reply reply = kernel->run(small());
    if (i % 3 == 0) {
      EXPECT_EQ(reply.status, CallStatus::died);
      EXPECT_THAT(reply.message, Says("exited with status 5"));
    } else {
      EXPECT_EQ(reply.status, CallStatus::ok) << i << ": " << reply.message;
      EXPECT_LE(largest_difference(reply.out, attention_answer(small())), 1e-12);
    }
  }
  expect_then_good("segfault-second", CallStatus::died, Says("signal 11"));
}

TEST(Process, ReportsEveryDeathOfAProgramThatAlwaysDies) {
  const auto kernel = open("die-always");
  for (int i = 0; i < 3; ++i) {
    expect_ending(kernel->run(small()), CallStatus::died, Says("exited with status 9"));
  }
  // Dead before it is asked, whether or not that is noticed while writing.
  const auto early = open("die-after-manifest");
  std::this_thread::sleep_for(300ms);
  EXPECT_EQ(early->run(small()).status, CallStatus::died);
  EXPECT_EQ(early->run(attention_case(DType::f64, {1, 1, 1, 1, 100000, 1})).status, CallStatus::died);
}

TEST(Process, KillsALateProgramAndAllItStarted) {
  for (const auto& [mode, word] : {std::pair{"late", "helper"}, {"daemon", "daemon"}, {"leaves-group", "worker"}}) {
    SCOPED_TRACE(mode);
    auto options = impatient();
    options.log_folder = log_folder(mode);
    const auto kernel = open(mode, options);
    pid_t started = 0;
    // On a loaded machine the time may be over before the program has started anything.
    for (int attempt = 0; attempt < 10 && started <= 0; ++attempt) {
      // The first call may itself be late; the mode hangs at the second of each process.
      Reply reply = kernel->run(small());
      if (reply.status == CallStatus::ok) reply = kernel->run(small());
      EXPECT_EQ(reply.status, CallStatus::timed_out) << reply.message;
      EXPECT_THAT(reply.message, Says("no reply within 0.3 s"));
      started = process_in(taken_logs(options.log_folder), word);
    }
    ASSERT_GT(started, 0) << "the program did not get as far as starting it";
    EXPECT_TRUE(ends(started));
  }
}

TEST(Process, GivesUpWaitingForAProgramThatAKillDoesNotEnd) {
  auto options = impatient();
  options.log_folder = log_folder("held");
  const auto kernel = open("held", options);
  std::string log;
  for (int attempt = 0; attempt < 10 && log.empty(); ++attempt) {
    Reply reply = kernel->run(small());
    if (reply.status == CallStatus::ok) reply = kernel->run(small());
    EXPECT_EQ(reply.status, CallStatus::timed_out) << reply.message;
    EXPECT_THAT(reply.message, Says("no reply within 0.3 s"));
    log = taken_logs(options.log_folder);
  }
  if (process_in(log, "refused") > 0) GTEST_SKIP() << "this system lets no program trace the one that started it";
  const pid_t holder = process_in(log, "holder");
  const pid_t worker = process_in(log, "worker");
  ASSERT_GT(worker, 0) << "the program did not get as far as being held: " << log;
  // Ended and not reaped: the call came back although nobody could wait for it.
  EXPECT_TRUE(ends(holder));
  int status = 0;
  EXPECT_EQ(::waitpid(worker, &status, 0), worker);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
  expect_good(*kernel);  // by another process
}

TEST(Process, KeepsWhatAProgramStartedOutOfAShellFromStaying) {
  KernelOptions options = impatient();
  options.first_reply = 500ms;
  options.log_folder = log_folder("shell");
  // The shell is what is started here; what it starts leaves its group, and its session.
  EXPECT_THAT(load_error("exec:setsid sh -c 'echo worker $$ >&2; sleep 600; true'; true", options),
              Says("no reply within 0.5 s"));
  const pid_t started = process_in(taken_logs(options.log_folder), "worker");
  ASSERT_GT(started, 0);
  EXPECT_TRUE(ends(started));
}

TEST(Process, CutsALogThatGrowsTooLong) {
  auto options = patient();
  options.log_folder = log_folder("much");
  {
    const auto kernel = open("prints-much", options);
    expect_good(*kernel);
    expect_good(*kernel);
  }
  const std::string text = taken_logs(options.log_folder);
  EXPECT_LT(text.size(), (std::size_t{4} << 20U) + 10'000);
  EXPECT_THAT(text.substr(text.size() - 5'000), Says("this log is full", "bytes were cut here", "the last line"));
  EXPECT_THAT(load_error(command("prints-much-and-dies")),
              Says("exited with status 7", "its standard error ends with: the last line"));
}

TEST(Process, DoesNotTakeInAReplyThatNoAnswerCanBe) {
  const auto resident = [] {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss / 1024;
  };
  const auto before = resident();
  expect_malformed("frame-large", Says("a reply of 1073741824 bytes", "are the most"));
  EXPECT_LT(resident(), before + 100);
}

TEST(Process, IsNotBlockedByAProgramThatDoesNotRead) {
  const auto kernel = open("ignore-input", impatient());
  const Reply reply = kernel->run(attention_case(DType::f64, {1, 1, 1, 2, 100000, 1}));
  EXPECT_EQ(reply.status, CallStatus::timed_out) << reply.message;
  // Writing to it raises SIGPIPE, which would end this test.
  const auto deaf = open("close-input-later", impatient());
  std::this_thread::sleep_for(300ms);
  EXPECT_EQ(deaf->run(small()).status, CallStatus::timed_out);
}

TEST(Process, TellsPrintedTextFromAReply) {
  const auto printed = [](const std::string& text) { return Says("printed to standard output", text); };
  expect_then_good("print-line", CallStatus::malformed, printed("\"Loading the model, please wait"));
  expect_then_good("print-short", CallStatus::malformed, printed("\"hi"));
  expect_then_good("print-newline", CallStatus::malformed, Says("printed to standard output"));
  expect_then_good("print-after", CallStatus::malformed, printed("5 bytes follow a reply"));
}

TEST(Process, NoticesTextBetweenTwoCalls) {
  const auto kernel = open("print-between");
  expect_good(*kernel);
  expect_good(*kernel);
  std::this_thread::sleep_for(1s);
  expect_ending(kernel->run(small()), CallStatus::malformed, Says("before anything was asked", "\"done"));
}

TEST(Process, RefusesMalformedReplies) {
  expect_malformed("nul", Says("no room for a header"));
  expect_malformed("frame-zero", Says("a frame of 0 bytes"));
  expect_malformed("frame-tiny", Says("a frame of 4 bytes"));
  expect_malformed("frame-huge", Says("1073741825 bytes", "1 GiB is the most"));
  expect_malformed("frame-short", Says("the reply"));
  expect_malformed("no-header", Says("does not begin with a safetensors header"));
  expect_malformed("not-json", Says("the reply"));
  expect_malformed("no-out", Says("\"output\""));
  expect_malformed("nothing", Says("no tensor named out"));
  expect_malformed("extra-tensor", Says("\"weights\""));
  expect_malformed("wrong-shape", Says("out has the shape [4, 3, 2, 2]", "must be [2, 2, 3, 4]"));
  expect_malformed("wrong-rank", Says("out has the shape [48]", "must be [2, 2, 3, 4]"));
  expect_malformed("wrong-dtype", Says("out is f32", "must be f64"));
  expect_malformed("wrong-offsets", Says("the reply"));
  expect_malformed("overlap", Says("the reply"), /*want_lse=*/true);
  expect_malformed("bad-status", Says("\"fine\""));
  expect_malformed("wrong-lse", Says("lse is f32"), /*want_lse=*/true);
  expect_malformed("no-lse", Says("no tensor named lse"), /*want_lse=*/true);
}

// A kernel whose every answer has another shape would else cost the start of a program for each.
TEST(Process, IsStartedAgainOnlyAfterAReplyThatCannotBeRead) {
  for (const auto& [mode, again] : {std::pair{"pid-or-wrong-shape", false}, {"pid-or-not-json", true}}) {
    const auto kernel = open(mode);
    const Reply first = kernel->run(small());
    ASSERT_EQ(first.status, CallStatus::ok) << first.message;
    EXPECT_EQ(kernel->run(small()).status, CallStatus::malformed) << mode;
    const Reply third = kernel->run(small());
    ASSERT_EQ(third.status, CallStatus::ok) << third.message;
    EXPECT_EQ(third.out[0] != first.out[0], again) << mode;
  }
}

TEST(Process, TellsAnOutputThatEndsInTheMiddleOfAReply) {
  expect_ending(open("frame-truncated")->run(small()), CallStatus::died,
                Says("exited with status 0", "bytes of a reply"));
  expect_ending(open("frame-stuck", impatient())->run(small()), CallStatus::timed_out,
                testing::AnyOf(Says("bytes of a reply had come"), Says("no reply within")));
}

TEST(Process, NoticesAClosedOutput) {
  expect_then_good("close-output", CallStatus::died, Says("closed its output and went on running"));
}

TEST(Process, DoesNotTakeAnotherKernelForTheOneThatDied) {
  const auto kernel = open("new-manifest");
  expect_good(*kernel);
  EXPECT_EQ(kernel->run(small()).status, CallStatus::died);
  expect_ending(kernel->run(small()), CallStatus::malformed, Says("manifest is not the one it gave before"));
}

TEST(Process, GivesTheProgramACleanPlace) {
  ::unsetenv("OMP_NUM_THREADS");
  // "1", its own group, nothing open but 0 1 2 (and what the listing itself opens), the terminal's Ctrl-C as usual.
  EXPECT_EQ(open("environment")->manifest().version, "1; True; 0 1 2; True");
  ::setenv("OMP_NUM_THREADS", "3", 1);
  EXPECT_EQ(open("environment")->manifest().version, "3; True; 0 1 2; True");
  ::unsetenv("OMP_NUM_THREADS");
}

TEST(Process, KeepsStandardErrorInTheLogFolder) {
  const auto folder = std::filesystem::path(testing::TempDir()) / ("attest-log-" + std::to_string(::getpid()));
  auto options = patient();
  options.log_folder = folder / "deeper";
  EXPECT_THAT(load_error(command("die-at-once"), options), Says("libfoo"));
  std::stringstream text;
  for (const auto& entry : std::filesystem::directory_iterator(options.log_folder)) {
    text << std::ifstream(entry.path()).rdbuf();
  }
  EXPECT_EQ(text.str(), "the library libfoo is missing\n");
  std::filesystem::remove_all(folder);

  options.log_folder = "/proc/no-such-folder";
  EXPECT_THROW(static_cast<void>(open_kernels(command("correct"), options)), UsageError);
}

TEST(Process, AppendsToNoLogThatSomebodyElsePutThere) {
  const auto folder = std::filesystem::path(testing::TempDir()) / ("attest-foreign-" + std::to_string(::getpid()));
  auto options = patient();
  options.log_folder = folder / "logs";
  static_cast<void>(load_error(command("die-at-once"), options));
  const std::filesystem::path log = std::filesystem::directory_iterator(options.log_folder)->path();
  const std::filesystem::path outside = folder / "outside";
  std::ofstream(outside) << "mine";
  const auto refused = [&](const std::string& words) {
    EXPECT_THAT(refusal([&] { return open_kernels(command("die-at-once"), options); }), Says(words));
    std::stringstream text;
    text << std::ifstream(outside).rdbuf();
    EXPECT_EQ(text.str(), "mine") << words;
  };
  std::filesystem::remove(log);
  std::filesystem::create_symlink(outside, log);
  refused("is a symbolic link");
  std::filesystem::remove(log);
  std::filesystem::create_hard_link(outside, log);
  refused("has 2 names (hard links)");
  std::filesystem::remove(log);
  ASSERT_EQ(::mkfifo(log.c_str(), 0666), 0);
  refused("is a named pipe");
  std::filesystem::remove_all(options.log_folder);
  std::filesystem::create_directory(folder / "elsewhere");
  std::filesystem::create_directory_symlink(folder / "elsewhere", options.log_folder);
  refused("is a symbolic link");
  EXPECT_TRUE(std::filesystem::is_empty(folder / "elsewhere"));
  std::filesystem::remove_all(folder);
}

TEST(Process, GivesEachCloneAProcessOfItsOwn) {
  const auto kernel = open("pid");
  const auto twin = kernel->clone();
  EXPECT_EQ(twin->id(), kernel->id());
  std::set<double> processes;
  for (Kernel* k : {kernel.get(), twin.get(), kernel.get(), twin.get()}) {
    const Reply reply = k->run(small());
    ASSERT_EQ(reply.status, CallStatus::ok) << reply.message;
    processes.insert(reply.out[0]);
  }
  EXPECT_EQ(processes.size(), 2U);
}

TEST(Process, LeavesNoProcessBehind) {
  {
    const auto kernel = open("correct");
    expect_good(*kernel);
  }
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

TEST(Process, LeavesDescriptorsAsTheyWere) {
  const auto count = [] {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return std::distance(begin(all), end(all));
  };
  static_cast<void>(open("correct"));  // the first one starts the watcher, which stays
  const auto before = count();
  for (int i = 0; i < 3; ++i) {
    const auto kernel = open("die-always");
    static_cast<void>(kernel->run(small()));
  }
  static_cast<void>(load_error("exec:exit 1"));
  EXPECT_EQ(count(), before);
}

TEST(Process, AsksASilentManifestForItsMultiheadEntry) {
  EXPECT_TRUE(open("multihead")->manifest().multihead);
  const auto without = open("silent-operations");
  EXPECT_FALSE(without->manifest().multihead);
  expect_good(*without);
}

TEST(OpenKernels, NamesWhatIsNear) {
  EXPECT_THAT(usage_error("pytorch:sdap"), Says("\"pytorch:sdap\"", "did you mean \"pytorch:sdpa\"?"));
  EXPECT_THAT(usage_error("builtin:flesh"), Says("did you mean \"builtin:flash\"?"));
  EXPECT_THAT(usage_error("builtin:no-*"), Says("is no kernel"));
  EXPECT_THAT(usage_error("exec:"), Says("without a command"));
  EXPECT_THAT(usage_error("exec:  "), Says("without a command"));
  EXPECT_THAT(usage_error(""), Says("is no kernel"));
}

TEST(OpenKernels, OpensGlobsInTheOrderOfTheirNames) {
  const auto kernels = open_kernels("builtin:*", {});
  ASSERT_GT(kernels.size(), 2U);
  for (std::size_t i = 1; i < kernels.size(); ++i) EXPECT_LT(kernels[i - 1]->id(), kernels[i]->id());
  for (const auto& kernel : kernels) EXPECT_THAT(known_kernels(), testing::Contains(kernel->id()));
  EXPECT_EQ(open_kernels("builtin:flash", {}).size(), 1U);
}

}  // namespace
}  // namespace attest
