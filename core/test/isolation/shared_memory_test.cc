// Large tensors in shared memory: programs that ask for them, well-behaved and misbehaving in every way that shares.py
// knows, and the Python adapter, which asks for them by itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <string>
#include <thread>

#include "core/isolation/shared_files.h"
#include "core/kernel/kernel_under_test.h"
#include "core/test/isolation/adapter_checks.h"
#include "core/test/isolation/kernel_problem.h"
#include "core/test/isolation/opening.h"
#include "core/test/places.h"

namespace attest {
namespace {

using namespace std::chrono_literals;
using namespace testing_process;

std::unique_ptr<Kernel> open(const std::string& mode) {
  static const std::string python = ::access("/usr/bin/python3", X_OK) == 0 ? "/usr/bin/python3" : "python3";
  return open_kernel("exec:exec " + python + " -I -S '" + source_folder() + "/core/test/isolation/shares.py' " + mode);
}

/// 2 MiB with its answer; smaller ones go through frames.
Case large(DType dtype = DType::f64) {
  const std::int64_t width = 4 * 128 / static_cast<std::int64_t>(size_of(dtype));
  return attention_case(dtype, {1, 2, 512, 512, width, width});
}

Case small() {
  return attention_case(DType::f64, {1, 1, 4, 4, 4, 4});
}

void expect_q(Kernel& kernel, const Case& c) {
  const Reply reply = kernel.run(c);
  ASSERT_EQ(reply.status, CallStatus::ok) << reply.message;
  EXPECT_EQ(reply.out.tensor(), c.q());
}

TEST(SharedMemory, CarriesLargeTensorsBothWays) {
  const auto kernel = open("correct");
  EXPECT_TRUE(kernel->manifest().shared_memory);
  for (int i = 0; i < 3; ++i) expect_q(*kernel, large());
  const Reply reply = kernel->run(large(), DType::f64, true);
  ASSERT_EQ(reply.status, CallStatus::ok) << reply.message;
  EXPECT_EQ(reply.out.tensor(), large().q());
  EXPECT_EQ(reply.lse.shape(), (Shape{1, 2, 512}));
  EXPECT_EQ(reply.lse[1023], 3.0);
  expect_q(*kernel->clone(), large());
}

TEST(SharedMemory, LeavesSmallCasesToFrames) {
  const auto kernel = open("correct");
  const Reply reply = kernel->run(small());
  ASSERT_EQ(reply.status, CallStatus::ok) << reply.message;
  EXPECT_EQ(reply.out[0], -1.0);
  expect_q(*kernel, large());
}

TEST(SharedMemory, ServesWithoutRows) {
  const auto kernel = open("correct");
  // No byte of out: nobody maps an empty file.
  const Reply reply = kernel->run(attention_case(DType::f64, {1, 1, 0, 4096, 16, 16}));
  EXPECT_EQ(reply.status, CallStatus::ok) << reply.message;
}

TEST(SharedMemory, TakesAnAnswerInTheFrameAsEver) {
  expect_q(*open("ignores"), large());
  expect_ending(open("declines")->run(large()), CallStatus::unsupported, "not today");
  expect_ending(open("other-shape")->run(large()), CallStatus::malformed, Says("out has the shape [64, 512, 2, 1]"));
  expect_ending(open("dies")->run(large()), CallStatus::died, Says("signal 6"));
}

TEST(SharedMemory, GoesBackToFramesWhereTheProgramDoesNotReachIt) {
  const auto kernel = open("unreachable");
  for (int i = 0; i < 2; ++i) {
    const Reply reply = kernel->run(large());
    ASSERT_EQ(reply.status, CallStatus::ok) << reply.message;
    EXPECT_EQ(reply.out[0], -1.0);
    EXPECT_EQ(reply.out[1], large().q()[1]);
  }
}

TEST(SharedMemory, RefusesRepliesThatAreNone) {
  for (const auto& [mode, words] : {std::pair{"says-maybe", "shared_memory is \"maybe\""},
                                    {"says-both", "lie in the file, and holds some itself"}}) {
    const auto kernel = open(mode);
    expect_ending(kernel->run(large()), CallStatus::malformed, Says(words));
    expect_ending(kernel->run(large()), CallStatus::malformed, Says(words));
  }
}

TEST(SharedMemory, IsCutOffByNobody) {
  for (const char* mode : {"shrinks", "grows"}) expect_q(*open(mode), large());
}

TEST(SharedMemory, LetsNobodyChangeTheRequest) {
  const auto kernel = open("writes-to-request");
  const Case c = large(), before = c;
  expect_q(*kernel, c);
  EXPECT_EQ(c, before);
}

TEST(SharedMemory, HasCopiedWhatIsWrittenLate) {
  const auto kernel = open("writes-late");
  const Case c = large();
  const Reply reply = kernel->run(c);
  ASSERT_EQ(reply.status, CallStatus::ok) << reply.message;
  for (int i = 0; i < 10; ++i) {
    ASSERT_EQ(reply.out.tensor(), c.q()) << i;
    std::this_thread::sleep_for(100ms);
  }
  // The writer of the call before has the file of that call.
  expect_q(*kernel, c);
}

TEST(SharedMemory, ReadsAsNaNWhereNothingWasWritten) {
  const auto found = [](const char* mode, std::int64_t element) { return open(mode)->run(large()).out[element]; };
  EXPECT_TRUE(std::isnan(found("writes-nothing", 0)));
  EXPECT_TRUE(std::isnan(found("writes-nothing", large().q().elements() - 1)));
  EXPECT_EQ(found("writes-a-part", 511), large().q()[511]);
  EXPECT_TRUE(std::isnan(found("writes-a-part", 512)));
  // A hole in the file harms nobody but the answer.
  EXPECT_EQ(open("punches")->run(large()).status, CallStatus::ok);
}

TEST(SharedFiles, HoldWhatTheyWereMadeOf) {
  const Case c = small();
  const CasePieces pieces = pieces_of(c, c.provenance, process::shared_alignment);
  EXPECT_EQ(pieces.head.size() % process::shared_alignment, 0U);
  const process::Descriptor file = process::sealed_file(pieces);
  ASSERT_TRUE(file);
  std::vector<std::byte> bytes(pieces.size());
  ASSERT_TRUE(process::copy_from(file, 0, bytes));
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  EXPECT_EQ(text, pieces.joined());
  EXPECT_EQ(decode_case(text, "the file"), c);
  EXPECT_FALSE(process::copy_from(file, 1, bytes)) << "a byte too many";
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16, DType::f8_e4m3, DType::f8_e5m2}) {
    Tensor out(dtype, {3});
    ASSERT_TRUE(process::copy_from(process::file_for_answer(out.bytes().size()), 0, out.bytes()));
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(std::isnan(out[i])) << name_of(dtype);
  }
}

/// As an identifier: "torch_echo".
std::string name_of_mode(const testing::TestParamInfo<std::string>& mode) {
  std::string name = mode.param;
  std::ranges::replace(name, '-', '_');
  return name;
}

class SharingAdapter : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const std::string module = GetParam().starts_with("torch") ? "torch" : "numpy";
    if (!imports(module)) GTEST_SKIP() << module << " cannot be imported";
  }
  static std::unique_ptr<Kernel> adapted(const std::string& mode) {
    return open_kernel("exec:/usr/bin/python3 '" + source_folder() + "/core/test/isolation/adapter_kernels.py' " +
                       mode);
  }
};

TEST_P(SharingAdapter, CarriesEveryBit) {
  const auto kernel = adapted(GetParam());
  EXPECT_TRUE(kernel->manifest().shared_memory);
  for (const DType dtype : kernel->manifest().dtypes) {
    SCOPED_TRACE(name_of(dtype));
    // Larger and smaller in turn, which come in files and in frames.
    const Case c = large(dtype);
    for (const Case& asked : {c, attention_case(dtype, {}), c}) expect_q(*kernel, asked);
    if (size_of(dtype) == 2 && GetParam() != "echo-bf16") {
      Case patterns = every_pattern(dtype);
      patterns[Slot::k] = patterns[Slot::v] = Tensor(dtype, {1, 1, 600'000, 1});
      expect_q(*kernel, patterns);
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Modes, SharingAdapter,
                         testing::Values("torch-echo", "torch-device", "torch-dlpack", "echo-bits", "echo-bf16"),
                         name_of_mode);

class SharingNumpy : public SharingAdapter {};

TEST_P(SharingNumpy, MeansTheSameAsInFrames) {
  Case c = attention_case(DType::f32, {2, 2, 96, 400, 160, 320});
  const auto kernel = adapted("softmax-product");
  expect_attention(*kernel, c);
  c[Slot::mask] = mask_of(DType::boolean, {2, 2, 96, 400});
  expect_attention(*kernel, c);
  c[Slot::mask] = Tensor();
  for (const std::string layouts : {"", "q=padded-rows k=token-major v=every-other"}) {
    if (!layouts.empty()) c.provenance.strides = layouts;
    const Reply shared = kernel->run(c), framed = adapted("unshared")->run(c);
    ASSERT_EQ(shared.status, CallStatus::ok) << shared.message;
    EXPECT_EQ(shared.out, framed.out);
  }
  EXPECT_FALSE(adapted("unshared")->manifest().shared_memory);
}

TEST_P(SharingNumpy, PassesOnWhatIsWrong) {
  const Case c = attention_case(DType::f32, {2, 2, 96, 400, 160, 320});
  const auto reply_of = [&](const std::string& mode) {
    const auto kernel = adapted(mode);
    static_cast<void>(kernel->run(c));
    return kernel->run(c);
  };
  expect_ending(reply_of("fails"), CallStatus::failed, Says("ValueError"));
  EXPECT_EQ(reply_of("declines").status, CallStatus::unsupported);
  expect_ending(reply_of("wrong-dtype"), CallStatus::failed, Says("float64", "float32 is due"));
  expect_ending(reply_of("wrong-shape"), CallStatus::malformed, Says("out has the shape [2, 2, 96, 319]"));
  const Case unchanged = c;
  EXPECT_EQ(reply_of("writes-to-inputs").status, CallStatus::ok);
  EXPECT_EQ(c, unchanged);
  const Reply lse = adapted("lse")->run(c, DType::f32, true);
  ASSERT_EQ(lse.status, CallStatus::ok) << lse.message;
  EXPECT_EQ(lse.lse.shape(), (Shape{2, 2, 96}));
  EXPECT_TRUE(std::isfinite(lse.lse[100]));
}
INSTANTIATE_TEST_SUITE_P(Modes, SharingNumpy, testing::Values("numpy"), name_of_mode);

}  // namespace
}  // namespace attest
