// What a kernel in a shared library may do to its process, and what it cannot do to the run: library_kernel.c with
// misbehaving_library.c, each variant in a worker process, which is this program again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include "core/call/float_environment.h"
#include "core/isolation/child.h"
#include "core/isolation/worker_main.h"
#include "core/kernel/kernel_under_test.h"
#include "core/problem/edge.h"
#include "core/test/isolation/kernel_problem.h"
#include "core/test/isolation/opening.h"
#include "core/test/places.h"
#include "core/test/sanitizers.h"

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define ATTEST_THREAD_SANITIZED
#endif
#endif

namespace attest {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::ContainsRegex;
using testing::ElementsAre;
using testing::IsEmpty;
using namespace testing_process;

std::unique_ptr<Kernel> open(const std::string& name, const KernelOptions& options = patient()) {
  return open_kernel(library(name), options);
}

const Case& small() {
  static const Case c = attention_case(DType::f64, {});
  return c;
}

void expect_good(Kernel& kernel) {
  const Reply reply = kernel.run(small());
  ASSERT_EQ(reply.status, CallStatus::ok) << reply.message;
  EXPECT_LE(largest_difference(reply.out, attention_answer(small())), 1e-12);
}

/// The limit of a call.
KernelOptions within(std::chrono::milliseconds reply) {
  KernelOptions options = patient();
  options.reply = reply;
  return options;
}
/// In this very process, or in one of its own.
KernelOptions patient_in(bool in_process) {
  KernelOptions options = patient();
  options.in_process = in_process;
  return options;
}

/// The first call is good, the second ends so, in one line; where that ended the process, the third is good again.
void expect_second(const std::string& name, CallStatus status, const testing::Matcher<std::string>& message,
                   const KernelOptions& options = patient()) {
  SCOPED_TRACE(name);
  const auto kernel = open(name, options);
  expect_good(*kernel);
  const Reply reply = kernel->run(small());
  EXPECT_EQ(reply.status, status) << reply.message;
  EXPECT_THAT(reply.message, message);
  EXPECT_THAT(reply.message, NeverSays("\n"));
  EXPECT_FALSE(reply.out.present());
  if (status != CallStatus::failed) expect_good(*kernel);
}

/// All calls are good and nothing is noted.
void expect_no_finding(const std::string& name) {
  SCOPED_TRACE(name);
  const auto kernel = open(name);
  for (int call = 0; call < 4; ++call) expect_good(*kernel);
  EXPECT_EQ(kernel->load_finding(), "");
  EXPECT_THAT(kernel->notes(), IsEmpty());
}

TEST(Isolation, NamesWhereAKernelWentOutsideItsTensors) {
#ifdef __x86_64__
  const std::string wrote = "it wrote", read = "it read";
#else
  const std::string wrote = "it read or wrote", read = wrote;
#endif
  expect_second("writes_far", CallStatus::died,
                Says("signal 11", wrote + " outside its tensors, ", " bytes behind the end of out"));
  expect_second("reads_far", CallStatus::died,
                Says("in a call: " + read + " outside its tensors, 1048576 bytes before the start of q"));
  expect_second("writes_beyond", CallStatus::failed, Says("wrote outside the tensors: byte 1 before the start of out"));
  expect_second("writes_before", CallStatus::failed, Says("byte 200 before the start of q changed"));
  expect_second("changes_input", CallStatus::failed, Says("wrote to its input k"));
  expect_second("runs_over_message", CallStatus::died,
                Says(wrote + " outside its tensors, 0 bytes behind the end of message"));
  expect_second("unmaps", CallStatus::died, Says("signal 11", "it took the memory of "));
}

TEST(Isolation, CatchesADiscardedReadOutsideATensorAndGoesOn) {
#ifdef __x86_64__
  const std::string read = "read";
#else
  const std::string read = "read or wrote";
#endif
  for (const bool in_process : {false, true}) {
    const auto kernel = open("reads_past", patient_in(in_process));
    expect_good(*kernel);
    const char* const names[] = {"q", "k", "v", "out"};
    for (int which = 0; which < 8; ++which) {
      const bool behind = which % 2 != 0;
      Case c = small();
      c.scale = which == 0 ? 0.5 : which;
      set_edge(c, Edge::none);
      EXPECT_EQ(kernel->run(c).status, CallStatus::ok) << which;
      set_edge(c, behind ? Edge::behind : Edge::front);
      const Reply reply = kernel->run(c);
      // A finding of this call, and no process that died of it.
      EXPECT_EQ(reply.status, CallStatus::failed) << which;
      EXPECT_THAT(reply.message, Says(read + " outside the tensors: byte " +
                                      (behind ? "0 after the end of " : "8 before the start of ") + names[which / 2]));
    }
  }
}

#ifdef __SSE2__
TEST(Isolation, NamesAnAlignmentThatTheManifestDoesNotAskFor) {
  const auto kernel = open("needs_alignment");
  Case c = attention_case(DType::f64, {.batch = 1, .heads = 1, .queries = 1, .keys = 3, .dk = 1, .dv = 1});
  for (int call = 0; call < 3; ++call) EXPECT_EQ(kernel->run(c).status, CallStatus::ok);
  set_edge(c, Edge::behind);
  expect_ending(kernel->run(c), CallStatus::died,
                Says("a better alignment than limits.alignment of its manifest does"));
}
#endif

TEST(Isolation, NamesWhereAKernelWentFarOutsideATensorAtAnEdge) {
  const auto kernel = open("writes_far");
  expect_good(*kernel);
  Case c = small();
  set_edge(c, Edge::behind);
  const Reply reply = kernel->run(c);
  EXPECT_NE(reply.status, CallStatus::ok);
  EXPECT_THAT(reply.message, Says("of out"));
}

TEST(Isolation, NamesOtherWaysToCrash) {
  expect_second("crashes", CallStatus::died, Says("through a null pointer"));
#ifdef __x86_64__
  expect_second("overflows_stack", CallStatus::died, Says("its stack overflowed"));
  expect_second("divides_by_zero", CallStatus::died, Says("it divided a whole number by zero"));
#endif
  expect_second("aborts", CallStatus::died, Says("signal 6 (Aborted) (in a call)"));
  expect_second("quits", CallStatus::died, Says("exited with status 0"));
  expect_second("exits", CallStatus::died, Says("exited with status 6"));
  // What a jump into a frame that is gone does is not defined: all that is asked is that the run goes on.
  const auto kernel = open("jumps_out", within(1s));
  expect_good(*kernel);
  EXPECT_NE(kernel->run(small()).status, CallStatus::ok);
  expect_good(*kernel);
}

TEST(Isolation, LimitsTheMemoryOfAProcess) {
  KernelOptions options = patient();
  options.memory = std::uint64_t{256} << 20U;
  expect_second("eats_memory", CallStatus::died,
                AllOf(Says("its process may hold 256 MiB of memory (--memory)"),
                      ContainsRegex("it held 2[0-5][0-9] of the 256 MiB of memory that it may hold")),
                options);
  expect_second("crashes", CallStatus::died, NeverSays("memory (--memory)"), options);
}

TEST(Isolation, LimitsTheMemoryOfAProgram) {
  KernelOptions options = patient();
  const std::string python =
      "/usr/bin/python3 -I -S -c 'import resource; print(resource.getrlimit(resource.RLIMIT_DATA), "
      "file=__import__(\"sys\").stderr)'";
  const auto limits = [&](std::uint64_t memory) {
    options.memory = memory;
    return load_error("exec:" + python + "; exec " + python, options);
  };
  EXPECT_THAT(limits(std::uint64_t{1} << 30U), Says("(1073741824, 1073741824)"));
  EXPECT_THAT(limits(0), NeverSays("1073741824"));
}

#ifdef __x86_64__
TEST(Isolation, NamesWhatChangedInTheFloatingPointEnvironment) {
  const auto changed = [](const std::string& what) {
    return Says("left the floating-point environment changed: it " + what + "; a call must leave it as it was");
  };
  expect_second("rounds_up", CallStatus::failed, changed("rounds upward"));
  expect_second("rounds_sse", CallStatus::failed, changed("rounds upward in SSE"));
  expect_second("flushes", CallStatus::failed,
                changed("flushes subnormal results to zero (FTZ), reads subnormal operands as zero (DAZ)"));
  expect_second("reads_as_zero", CallStatus::failed, changed("reads subnormal operands as zero (DAZ)"));
  expect_second("cuts_x87", CallStatus::failed, changed("cuts x87 to 53 bits"));
  expect_second("unmasks", CallStatus::failed, changed("raises a signal on invalid operations, division by zero"));
}

TEST(Isolation, NamesWhatALibraryDoesToTheEnvironmentAsItIsLoaded) {
  for (const bool in_process : {false, true}) {
    const KernelOptions options = patient_in(in_process);
    const auto flushes = open("flushes_at_load", options);
    EXPECT_THAT(flushes->load_finding(), Says("as it was loaded", "flushes subnormal results to zero (FTZ)",
                                              "reads subnormal operands as zero (DAZ)"));
    EXPECT_EQ(flushes->clone()->load_finding(), flushes->load_finding());
    EXPECT_THAT(open("rounds_in_manifest", options)->load_finding(),
                Says("as it was asked for its manifest", "rounds upward in SSE"));
    EXPECT_EQ(open("good", options)->load_finding(), "");
    EXPECT_TRUE(FloatEnvironment::current() == FloatEnvironment::standard());
    // It computes in the environment of the contract all the same.
    Case c = small();
    for (std::int64_t i = 0; i < c.v().elements(); ++i) c[Slot::v].set(i, 0x1p-1060);
    const Reply reply = flushes->run(c);
    ASSERT_EQ(reply.status, CallStatus::ok) << reply.message;
    EXPECT_GT(reply.out[0], 0.0);
  }
}
#endif

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
TEST(Isolation, NamesAFastMathLink) {
  EXPECT_THAT(open("fast_math")->load_finding(), Says("flushes subnormal results to zero (FTZ)"));
}
#endif

TEST(Isolation, SurvivesWhatAKernelDoesToItsProcess) {
  expect_second("closes_connection", CallStatus::died, Says("closes descriptors that are not its own"));
  expect_second("writes_to_connection", CallStatus::malformed, Says("wrote to descriptor 3"));
  for (const char* name :
       {"writes_to_memory_file", "cuts_memory_file", "changes_directory", "takes_descriptors", "forks"}) {
    expect_no_finding(name);
  }
  expect_second("stops", CallStatus::timed_out, Says("a signal has stopped its process"), within(500ms));
}

TEST(Isolation, SeesADeathThatAChildOutlives) {
  // The child holds the connection open, so that without more the wait would last for the whole limit.
  expect_second("dies_with_child", CallStatus::died, Says("exited with status 3"), within(1h));
}

TEST(Isolation, DoesNotTakeAnotherKernelForTheOneThatDied) {
  const auto kernel = open("changes_manifest");
  expect_good(*kernel);
  EXPECT_EQ(kernel->run(small()).status, CallStatus::died);
  expect_ending(kernel->run(small()), CallStatus::malformed, Says("manifest is not the one it gave before"));
}

TEST(Isolation, KillsTheChildrenOfAKernel) {
  for (const auto& [name, word] : {std::pair{"leaves_child", "child"}, {"leaves_daemon", "daemon"}}) {
    KernelOptions options = patient();
    options.log_folder = log_folder(name);
    {
      const auto kernel = open(name, options);
      expect_good(*kernel);
      expect_good(*kernel);
    }
    const pid_t child = process_in(taken_logs(options.log_folder), word);
    ASSERT_GT(child, 0) << name;
    EXPECT_TRUE(ends(child)) << name;
  }
}

TEST(Isolation, KillsAKernelThatLeavesItsGroup) {
  KernelOptions options = patient();
  options.reply = 500ms;
  options.log_folder = log_folder("group");
  expect_second("leaves_group", CallStatus::timed_out, Says("no reply within 0.5 s"), options);
  const pid_t worker = process_in(taken_logs(options.log_folder), "worker");
  ASSERT_GT(worker, 0);
  EXPECT_TRUE(ends(worker));
  options.first_reply = 500ms;
  EXPECT_THAT(load_error(library("leaves_group_in_manifest"), options), Says("no reply within 0.5 s"));
  std::filesystem::remove_all(options.log_folder);
}

TEST(Isolation, CutsALogThatGrowsTooLong) {
  KernelOptions options = patient();
  options.log_folder = log_folder("much");
  {
    const auto kernel = open("prints_much", options);
    for (int call = 0; call < 3; ++call) expect_good(*kernel->clone());
    for (int call = 0; call < 3; ++call) expect_good(*kernel);
  }
  const std::string text = taken_logs(options.log_folder);
  EXPECT_GT(text.size(), process::Log::most);
  EXPECT_LT(text.size(), process::Log::most + 10'000);
  EXPECT_THAT(text.substr(process::Log::most - 10),
              AllOf(Says("x\n\nattest: this log is full; of what follows only the end is kept\n\nattest: "),
                    ContainsRegex("attest: 2[0-9]+ bytes were cut here; these were the last:\nx+"),
                    testing::EndsWith("x\nthe last line\n")));
}

TEST(Isolation, NamesALogSoThatItIsSeen) {
  const auto folder = log_folder("names");
  const auto name = [&](const std::string& kernel) { return process::Log(folder, kernel).path().filename().string(); };
  EXPECT_THAT(name("./libmine.so"), testing::StartsWith("libmine.so-"));
  EXPECT_THAT(name("../.././.hidden/mine.so"), testing::StartsWith("hidden_mine.so-"));
  EXPECT_THAT(name("./-rf.so"), testing::StartsWith("rf.so-"));
  EXPECT_THAT(name("/"), testing::StartsWith("kernel-"));
  EXPECT_THAT(name("exec:./mine"), testing::StartsWith("exec_._mine-"));
  EXPECT_NE(name("./mine.so"), name("../mine.so"));
  std::filesystem::remove_all(folder);
}

TEST(Isolation, SaysThatThereAreTooManyOpenFiles) {
  if (under_address_sanitizer)
    GTEST_SKIP()
        << "the undefined-behaviour sanitizer opens a pipe to look at an exception's type, and there is none left";
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const auto kernel = open("crashes");  // with its watcher
  expect_good(*kernel);
  const int next = ::dup(0);
  ::close(next);
  int refused = 0;
  const auto limited = [&](int further, const auto& act) {
    const rlimit limit{static_cast<rlim_t>(next + further), before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
    std::string said;
    try {
      act();
    } catch (const UsageError& error) {
      said = error.what();
    } catch (const KernelLoadError& error) {
      said = error.what();
    }
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
    if (said.empty()) return;
    ++refused;
    EXPECT_THAT(said, Says("too many open files (EMFILE)", "ulimit -n")) << further;
  };
  for (int further = 0; further < 24; ++further) limited(further, [] { static_cast<void>(open("good")); });
  EXPECT_GT(refused, 7);
  EXPECT_LT(refused, 24);
  // One that ended is not called dead for what this program lacks.
  EXPECT_EQ(kernel->run(small()).status, CallStatus::died);
  refused = 0;
  limited(0, [&] { EXPECT_NE(kernel->run(small()).status, CallStatus::died); });
  EXPECT_EQ(refused, 1);
  expect_good(*kernel);
}

TEST(Isolation, NotesWhatAKernelPrints) {
  KernelOptions options = patient();
  EXPECT_THAT(open("prints", options)->notes(), IsEmpty());
  const auto kernel = open("prints", options);
  const auto twin = kernel->clone();
  expect_good(*kernel);
  expect_good(*kernel);
  EXPECT_THAT(twin->notes(), IsEmpty());
  EXPECT_THAT(kernel->notes(), ElementsAre("it writes to standard output"));
  EXPECT_THAT(twin->notes(), ElementsAre("it writes to standard output"));
  options.log_folder = log_folder("prints");
  const auto logged = open("prints", options);
  expect_good(*logged);
  expect_good(*logged);
  EXPECT_THAT(logged->notes(),
              ElementsAre(Says("it writes to standard output; see ", options.log_folder.string(), ".log")));
  EXPECT_EQ(taken_logs(options.log_folder), "hello from the kernel\n");
  // Standard error is what logs are for.
  const auto child = open("leaves_child");
  expect_good(*child);
  expect_good(*child);
  EXPECT_THAT(child->notes(), IsEmpty());
}

/// Of this process.
std::ptrdiff_t threads() {
  const std::filesystem::directory_iterator all("/proc/self/task");
  return std::distance(begin(all), end(all));
}

TEST(Isolation, FindsAThreadThatGoesOnWriting) {
  expect_no_finding("keeps_threads");
  for (const bool in_process : {false, true}) {
    const auto kernel = open("writes_late", patient_in(in_process));
    expect_good(*kernel);
    std::thread([] {}).join();  // with the first one a sanitizer starts its own
    const auto before = threads();
    expect_good(*kernel);
    std::this_thread::sleep_for(500ms);
    // However late: in this very process the kernel's memory must not go before the thread has written there.
    for (int i = 0; i < 6000 && threads() > before; ++i) std::this_thread::sleep_for(10ms);
    expect_ending(kernel->run(small()), CallStatus::failed,
                  Says("went on writing after a call had returned", "of out"));
  }
  // After the last call there is none to tell of it.
  const auto kernel = open("good");
  {
    auto late = open("writes_late");
    const auto twin = late->clone();
    expect_good(*late);
    expect_good(*late);
    std::this_thread::sleep_for(500ms);
    late.reset();
    EXPECT_THAT(twin->notes(), ElementsAre(Says("a thread that the kernel left behind")));
  }
}

TEST(Isolation, FindsAThreadThatCrashesLater) {
  const auto kernel = open("crashes_late");
  expect_good(*kernel);
  expect_good(*kernel);
  std::this_thread::sleep_for(500ms);
  expect_ending(kernel->run(small()), CallStatus::died,
                Says("signal 11", "between two calls, in a thread that it left behind"));
  expect_good(*kernel);
}

#ifndef ATTEST_THREAD_SANITIZED  // which blocks every signal in a handler of SIGALRM
TEST(Isolation, SaysNothingOfThreadsWhereThereAreNone) {
  const auto in_our_code = [](const std::string& signal) {
    return AllOf(Says(signal, "between two calls, in attest's own code", "heap overflow"), NeverSays("thread"));
  };
  const auto kernel = open("crashes_in_first_thread");
  expect_good(*kernel);
  expect_good(*kernel);
  std::this_thread::sleep_for(1500ms);
  expect_ending(kernel->run(small()), CallStatus::died, in_our_code("signal 11"));
  expect_good(*kernel);
}
#endif

TEST(Isolation, LoadsALibraryIntoThisProcess) {
  const KernelOptions options = patient_in(true);
  const auto kernel = open("good", options);
  EXPECT_EQ(kernel->id(), library("good"));
  EXPECT_EQ(kernel->manifest().name, "library");
  expect_good(*kernel);
  expect_good(*kernel->clone());
  EXPECT_TRUE(open("multihead", options)->manifest().multihead);
  EXPECT_FALSE(open("good", options)->manifest().multihead);
  EXPECT_THAT(load_error(library("exports_nothing"), options),
              Says("library_exports_nothing.so: cannot be loaded: it does not export"));
  const auto outside = open("writes_beyond", options);
  expect_good(*outside);
  EXPECT_THAT(outside->run(small()).message, Says("byte 1 before the start of out"));
  for (const char* spec : {"exec:true", "pytorch:sdpa"}) {
    EXPECT_THAT(refusal([&] { return open_kernels(spec, options); }), Says("--in-process", spec));
  }
}

/// A file of the test's own, removed at the end.
class OwnFile {
 public:
  explicit OwnFile(const std::string& bytes)
      : path_(std::filesystem::path(testing::TempDir()) / ("attest-own-" + std::to_string(::getpid()) + ".so")) {
    std::ofstream(path_, std::ios::binary) << bytes;
  }
  OwnFile(const OwnFile&) = delete;
  OwnFile& operator=(const OwnFile&) = delete;
  ~OwnFile() { std::filesystem::remove_all(path_); }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

std::string error_of_bytes(const std::string& bytes) {
  const OwnFile file(bytes);
  const std::string error = load_error(file.path());
  EXPECT_THAT(error, Says(file.path().string()));
  return error;
}

TEST(Isolation, SaysWhatFileIsNoLibraryAndHowToMendIt) {
  std::ifstream file(library("good"), std::ios::binary);
  const std::string good((std::istreambuf_iterator<char>(file)), {});
  ASSERT_GT(good.size(), 64U);
  const auto patched = [&](std::size_t at, std::initializer_list<int> bytes) {
    std::string copy = good;
    for (const int byte : bytes) copy[at++] = static_cast<char>(byte);
    return copy;
  };
  EXPECT_THAT(error_of_bytes(""), Says("is empty; its build did not come to its end: build it again"));
  EXPECT_THAT(error_of_bytes("int main() {}\n"),
              Says("is no shared library: it begins with \"int main() {}", "cc -shared -fPIC"));
  EXPECT_THAT(error_of_bytes(good.substr(0, 32)), Says("is cut off within its header"));
  EXPECT_THAT(error_of_bytes(good.substr(0, 2000)), Says("is cut off: it has 2000 bytes, and its header speaks of "));
  EXPECT_THAT(error_of_bytes("!<arch>\nsomething"), Says("is a static library; link one with cc -shared"));
  EXPECT_THAT(error_of_bytes(patched(16, {1, 0})), Says("is an object file; link it"));
  EXPECT_THAT(error_of_bytes(patched(16, {2, 0})), Says("is a program; compile a library"));
#ifdef __x86_64__
  EXPECT_THAT(error_of_bytes(patched(18, {183, 0})),
              Says("is built for AArch64, and this program runs on x86-64", "compile it for"));
  EXPECT_THAT(error_of_bytes(patched(4, {1})), Says("is built for x32"));
  std::string old = patched(4, {1});
  old[18] = 3;
  EXPECT_THAT(error_of_bytes(old), Says("is built for 32-bit x86, and this program runs on x86-64"));
  EXPECT_THAT(error_of_bytes(patched(5, {2})), Says("is built for "));
#endif
  EXPECT_THAT(load_error(test_library_folder()), Says("is a folder; name the shared library in it"));
  EXPECT_THAT(load_error("/dev/null"), Says("is no regular file"));
  EXPECT_THAT(load_error("./absent.so"), Says("there is no such file; build the library first"));
  if (::geteuid() != 0) {
    const OwnFile locked(good);
    std::filesystem::permissions(locked.path(), std::filesystem::perms::none);
    EXPECT_THAT(load_error(locked.path()), Says("chmod +r"));
  }
}

TEST(Isolation, SaysWhatALibraryLacksAndHowToMendIt) {
  for (const bool in_process : {false, true}) {
    const KernelOptions options = patient_in(in_process);
    const auto error = [&](const std::string& name) { return load_error(library(name), options); };
    EXPECT_THAT(error("needs_missing"),
                Says("it needs libattest-is-nowhere.so.3, which is not found", "LD_LIBRARY_PATH"));
    EXPECT_THAT(error("uses_undefined"), Says("it uses attest_test_defined_nowhere, which nothing defines; link it"));
    EXPECT_THAT(error("another_abi"), Says("\"abi\" is 2; this version speaks 1", "compile"));
    EXPECT_THAT(error("not_json"), Says("its manifest: is not JSON", "name: library"));
    EXPECT_THAT(error("contradicts_itself"), Says("\"f32\" is stated; \"dtypes\" does not list it"));
    EXPECT_THAT(error("no_manifest_text"), Says("returned no text; it must return JSON"));
    EXPECT_THAT(error("exports_nothing"), Says("extern \"C\""));
  }
  EXPECT_THAT(load_error(library("crashes_at_load")), Says("signal 11", "as it was loaded: "));
#ifndef ATTEST_THREAD_SANITIZED  // which calls an exit in the middle of dlopen a mistake of its own
  EXPECT_THAT(load_error(library("exits_at_load")), Says("exited with status 0"));
#endif
  EXPECT_THAT(load_error(library("crashes_in_manifest")), Says("signal 6", "in attest_kernel_manifest"));
}

}  // namespace
}  // namespace attest
