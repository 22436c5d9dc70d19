// Kernels as shared libraries, served by a worker process: this program again, started as `library_test worker
// LIBRARY`.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "core/isolation/worker_main.h"
#include "core/kernel/kernel_under_test.h"
#include "core/test/isolation/kernel_problem.h"
#include "core/test/isolation/opening.h"

namespace attest {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using namespace testing_process;

std::unique_ptr<Kernel> open(const std::string& name) {
  return open_kernel(library(name));
}

void expect_good(Kernel& kernel, const Case& c) {
  const Reply reply = kernel.run(c);
  ASSERT_EQ(reply.status, CallStatus::ok) << reply.message;
  EXPECT_EQ(reply.out.tensor().dtype(), c.dtype());
  EXPECT_LE(largest_difference(reply.out, attention_answer(c)), c.dtype() == DType::f64 ? 1e-12 : 1e-6);
}

TEST(Library, ServesAKernelInC99) {
  const auto kernel = open("good");
  EXPECT_EQ(kernel->id(), library("good"));
  EXPECT_EQ(kernel->manifest().name, "library");
  EXPECT_FALSE(kernel->manifest().multihead);
  for (const DType dtype : {DType::f64, DType::f32}) {
    for (unsigned seed = 1; seed <= 50; ++seed) {
      expect_good(*kernel,
                  attention_case(dtype, {seed % 2 + 1, seed % 3 + 1, seed % 4, seed % 5 + 1, seed % 6 + 1, 3}, seed));
    }
  }
  // From small to large and back: the shared memory grows under both sides.
  for (const std::int64_t keys : {10, 100'000, 10, 400'000, 3})
    expect_good(*kernel, attention_case(DType::f64, {1, 1, 1, keys, 2, 2}));
}

TEST(Library, GetsTheStridesOfTheCase) {
  const auto good = open("good"), wrong = open("dense_keys");
  Case c = attention_case(DType::f64, {2, 2, 3, 5, 4, 4});
  expect_good(*wrong, c);
  for (const std::string layout : {"token-major", "packed", "padded-rows", "every-other", "column-major", "shifted"}) {
    c.provenance.strides = fmt::format("q={0} k={0} v={0} out={0} lse={0}", layout);
    expect_good(*good, c);
    const double off = largest_difference(wrong->run(c).out, attention_answer(c));
    EXPECT_EQ(off <= 1e-12, layout == "shifted") << layout << ": " << off;
  }
}

TEST(Library, BringsTheLogSumExp) {
  const auto kernel = open("good");
  Case c = attention_case(DType::f64, {1, 1, 1, 1, 1, 1});
  const Reply reply = kernel->run(c, DType::f64, true);
  ASSERT_EQ(reply.status, CallStatus::ok) << reply.message;
  ASSERT_EQ(reply.lse.shape(), (Shape{1, 1, 1}));
  EXPECT_DOUBLE_EQ(reply.lse[0], c.q()[0] * c.k()[0]);
}

TEST(Library, FindsTheMultiheadEntryByItself) {
  const auto kernel = open("multihead");
  EXPECT_TRUE(kernel->manifest().multihead);
  const Case c = multihead_case(DType::f32, {});
  const Reply reply = kernel->run(c);
  ASSERT_EQ(reply.status, CallStatus::ok) << reply.message;
  auto expected = c.q().to_doubles();
  for (double& x : expected) x += 2.0;
  EXPECT_LE(largest_difference(reply.out, expected), 1e-6);
}

TEST(Library, PassesMasksAndCausalFormsOn) {
  const auto kernel = open("good");
  Case c = attention_case(DType::f64, {});
  c.causal = Causal::top_left;
  EXPECT_EQ(kernel->run(c).status, CallStatus::unsupported);
  c.causal = Causal::none;
  c[Slot::mask] = Tensor(DType::boolean, {1, 1, 3, 5});
  EXPECT_EQ(kernel->run(c).status, CallStatus::unsupported);
}

/// The second call ends so, and the third is served again.
void expect_second(const std::string& name, CallStatus status, const testing::Matcher<std::string>& message) {
  const auto kernel = open(name);
  const Case c = attention_case(DType::f64, {});
  expect_good(*kernel, c);
  const Reply reply = kernel->run(c);
  EXPECT_EQ(reply.status, status) << name << ": " << reply.message;
  EXPECT_THAT(reply.message, message) << name;
  EXPECT_FALSE(reply.out.present());
  // One that only fails goes on failing in the same process; one that died begins anew.
  if (status == CallStatus::died) expect_good(*kernel, c);
}

TEST(Library, GoesOnAfterACrash) {
  expect_second("crashes", CallStatus::died, Says("signal 11"));
  expect_second("aborts", CallStatus::died, Says("signal 6"));
  expect_second("exits", CallStatus::died, Says("exited with status 6"));
  expect_second("closes_connection", CallStatus::died, Says("its process"));
}

TEST(Library, ReportsWhatACallMustNotDo) {
  expect_second("writes_beyond", CallStatus::failed, Says("before the start of out"));
  expect_second("leaves_unwritten", CallStatus::failed, Says("unwritten"));
  expect_second("rounds_up", CallStatus::failed, Says("floating-point environment"));
  expect_second("fails", CallStatus::failed, Says("no luck with call 2"));
  expect_second("long_message", CallStatus::failed, Says(std::string(4000, 'm')));
}

TEST(Library, KillsAKernelThatHangs) {
  const auto kernel = open_kernel(library("hangs"), {60s, 500ms, {}, {}});
  const Case c = attention_case(DType::f64, {});
  static_cast<void>(kernel->run(c));
  expect_ending(kernel->run(c), CallStatus::timed_out, Says("no reply within 0.5 s"));
}

TEST(Library, EndsAWaitWhenTheRunIsInterrupted) {
  int wake[2];
  ASSERT_EQ(::pipe(wake), 0);
  KernelOptions options{.reply = 1h, .log_folder = {}, .worker_program = {}, .interrupt = wake[0]};
  const auto kernel = open_kernel(library("hangs"), options);
  const Case c = attention_case(DType::f64, {});
  EXPECT_EQ(kernel->run(c).status, CallStatus::ok);
  ASSERT_EQ(::write(wake[1], "", 1), 1);
  EXPECT_EQ(kernel->run(c).status, CallStatus::timed_out);
  ::close(wake[0]);
  ::close(wake[1]);
}

TEST(Library, LetsAKernelPrint) {
  const auto folder = std::filesystem::path(testing::TempDir()) / ("attest-print-" + std::to_string(::getpid()));
  {
    const auto kernels = open_kernels(library("prints"), {60s, 60s, folder, {}});
    const Case c = attention_case(DType::f64, {});
    for (int i = 0; i < 3; ++i) expect_good(*kernels.front(), c);
  }
  std::string text;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) std::getline(std::ifstream(entry.path()), text);
  EXPECT_EQ(text, "hello from the kernel");
  std::filesystem::remove_all(folder);
}

TEST(Library, SaysWhyALibraryCannotBeLoaded) {
  EXPECT_THAT(load_error(library("exports_nothing")),
              Says("library_exports_nothing.so", "does not export attest_kernel_manifest"));
  EXPECT_THAT(load_error(library("manifest_only")),
              Says("neither attest_kernel_attention nor attest_kernel_multihead"));
  EXPECT_THAT(load_error(library("bad_manifest")), Says("manifest", "colour"));
  EXPECT_THAT(load_error(library("no_manifest_text")), Says("returned no text"));
  EXPECT_THAT(load_error("./no-such-library.so"), Says("there is no such file"));
  EXPECT_THAT(load_error("no-such-library.so"), Says("there is no such file"));
  const auto text = std::filesystem::path(testing::TempDir()) / ("attest-text-" + std::to_string(::getpid()) + ".so");
  std::ofstream(text) << "this is no library\n";
  EXPECT_THAT(load_error(text), AllOf(Says("is no shared library"), NeverSays("\n")));
  std::filesystem::remove(text);
  EXPECT_THAT(load_error(library("good"), {60s, 60s, {}, "/no/such/program"}),
              Says("/no/such/program: cannot be started"));
  EXPECT_THAT(load_error(library("good"), {60s, 60s, {}, "/bin/false"}), Says("exited with status 1"));
}

TEST(Library, LeavesNoProcessBehind) {
  {
    const auto kernel = open("good");
    const auto twin = kernel->clone();
    expect_good(*twin, attention_case(DType::f64, {}));
  }
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

}  // namespace
}  // namespace attest
