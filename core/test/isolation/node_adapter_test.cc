// The JavaScript adapter, and ONNX Runtime's attention through it. Skipped where Node.js or onnxruntime-node is
// missing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "core/isolation/adapters.h"
#include "core/test/isolation/adapter_checks.h"
#include "core/test/places.h"

namespace attest {
namespace {

using namespace testing_process;

std::unique_ptr<Kernel> adapted(const std::string& mode) {
  return open_kernel("exec:node '" + source_folder() + "/core/test/isolation/adapter_kernels.js' " + mode);
}

class NodeAdapter : public testing::Test {
 protected:
  void SetUp() override {
    static const bool has_node = succeeds("node -e 'process.exit(+(process.versions.node.split(\".\")[0] < 18))'");
    if (!has_node) GTEST_SKIP() << "there is no Node.js 18 or later";
  }
};

TEST_F(NodeAdapter, ServesTheExample) {
  const auto kernel = open_kernel("exec:node '" + source_folder() + "/core/adapters/node/plain_example.js'");
  EXPECT_EQ(kernel->manifest().name, "plain JavaScript");
  const Case c = attention_case(DType::f32, {2, 3, 4, 5, 6, 7});
  expect_attention(*kernel, c);
  expect_attention_under_masks(*kernel, c, {DType::f32, DType::boolean});
  expect_attention(*kernel, attention_case(DType::f32, {1, 1, 0, 2, 3, 3}));
  expect_attention(*kernel, attention_case(DType::f32, {2, 1, 3, 0, 3, 3}));
}

TEST_F(NodeAdapter, FillsTheManifestIn) {
  const Manifest manifest = adapted("multihead")->manifest();
  EXPECT_EQ(manifest.dtypes, (std::vector{DType::f64, DType::f32}));
  EXPECT_TRUE(manifest.multihead);
  EXPECT_FALSE(manifest.attention);
  EXPECT_EQ(adapted("prints")->manifest().name, "prints");
}

TEST_F(NodeAdapter, WritesNewKeysIntoTheCache) {
  const Case c = appending_case();
  const Reply reply = adapted("appends")->run(c);
  ASSERT_EQ(reply.status, CallStatus::ok) << reply.message;
  EXPECT_EQ(reply.out, c.q());
  expect_ending(adapted("appends-early")->run(c), CallStatus::failed,
                "wrote to k[0, 0, 1, 0]; of k and v a call writes the slots of the new keys alone");
}

TEST_F(NodeAdapter, CarriesEveryBit) {
  const auto kernel = adapted("echo");
  ASSERT_EQ(kernel->manifest().dtypes.size(), 6U);
  for (const DType dtype : kernel->manifest().dtypes) {
    const Case c = size_of(dtype) <= 2 ? every_pattern(dtype) : attention_case(dtype, {});
    const Reply reply = kernel->run(c);
    ASSERT_EQ(reply.status, CallStatus::ok) << reply.message;
    EXPECT_EQ(reply.out, c.q()) << name_of(dtype);
  }
}

TEST_F(NodeAdapter, HandsTheScalarsAndTheMaskOver) {
  const auto kernel = adapted("tells");
  Case c = attention_case(DType::f32, {2, 2, 2, 3, 4, 4});
  const auto expect_told = [&](double scale, double mask, char causal, char convention) {
    const Reply reply = kernel->run(c);
    ASSERT_EQ(reply.status, CallStatus::ok) << reply.message;
    EXPECT_EQ(reply.out[0], scale);
    EXPECT_EQ(reply.out[1], mask);
    EXPECT_EQ(reply.out[2], causal);
    EXPECT_EQ(reply.out[3], convention);
  };
  expect_told(0.5, 0.0, 'n', 'o');
  c.scale = 0.125;
  c.causal = Causal::top_left;
  c.mask_convention = MaskConvention::pre_scale;
  for (const Shape& shape : mask_shapes(c, 2, 2, 2)) {
    c[Slot::mask] = Tensor(DType::f32, shape);
    // row(1, 1, 1)[1]: in the last slice, one before the end of its last row.
    c[Slot::mask].set(c[Slot::mask].elements() - 2, 7.0);
    expect_told(0.125, 7.0, 't', 'r');
  }
}

TEST_F(NodeAdapter, HandsChunksOver) {
  const auto kernel = adapted("chunks");
  Case c = attention_case(DType::f32, {2, 2, 2, 3, 4, 4});
  const auto expect_told = [&](double chunk, char alignment, double left) {
    const Reply reply = kernel->run(c);
    ASSERT_EQ(reply.status, CallStatus::ok) << reply.message;
    EXPECT_EQ(reply.out[0], chunk);
    EXPECT_EQ(reply.out[1], alignment);
    EXPECT_EQ(reply.out[2], left);
  };
  expect_told(0, '\0', 0);
  c.attention_chunk = 3, c.alignment = Causal::bottom_right;
  expect_told(3, 'b', 0);
  c.window_left = 2, c.alignment = Causal::top_left;
  expect_told(3, 't', 2);
  // What a manifest does not list is no argument of its function.
  EXPECT_EQ(adapted("tells")->run(c).status, CallStatus::unsupported);
}

TEST_F(NodeAdapter, HandsFactorsAndWholeNumbersOver) {
  const auto kernel = adapted("factors");
  Case c = attention_case(DType::f32, {2, 2, 2, 3, 4, 4});
  const auto expect_told = [&](const std::array<double, 5>& told) {
    const Reply reply = kernel->run(c);
    ASSERT_EQ(reply.status, CallStatus::ok) << reply.message;
    for (std::size_t e = 0; e < told.size(); ++e) EXPECT_EQ(reply.out[static_cast<std::int64_t>(e)], told[e]) << e;
  };
  expect_told({0, 0, 0, 0, 0});
  for (const Slot slot : {Slot::k, Slot::v}) c[slot] = Tensor(DType::i8, c[slot].shape());
  c[Slot::k].set(0, -128);
  c[Slot::k_descale] = Tensor(DType::f32, {1, 2, 1});
  c[Slot::k_descale].set(0, 1), c[Slot::k_descale].set(1, 0.25);
  expect_told({-128, 0.25, 0, 0, 0});
  c[Slot::v_descale] = Tensor(DType::f32, {1, 1, 2});
  c[Slot::v_descale].set(0, 2), c[Slot::v_descale].set(1, 4);
  c.kv_descale_block = 2;
  expect_told({-128, 0.25, 2, 2, 0});
  // What a manifest does not list is no argument of its function.
  EXPECT_EQ(adapted("tells")->run(c).status, CallStatus::unsupported);
}

TEST_F(NodeAdapter, PassesFailuresOnAndGoesOn) {
  const Case c = attention_case(DType::f32, {});
  const auto reply_of = [&](const std::string& mode) {
    const auto kernel = adapted(mode);
    static_cast<void>(kernel->run(c));
    return kernel->run(c);
  };
  const auto expect_failure = [&](const std::string& mode, const std::string& message) {
    const Reply reply = reply_of(mode);
    EXPECT_EQ(reply.status, CallStatus::failed) << mode;
    EXPECT_THAT(reply.message, Says(message));
  };
  expect_failure("fails", "TypeError: a message with \"quotes\",\nlines and ünïcode");
  expect_failure("wrong-type", "returned Float64Array of 48 for out where Float32Array of 48 is due");
  expect_failure("wrong-length", "returned Float32Array of 47 for out where Float32Array of 48 is due");
  expect_failure("nothing", "returned undefined for out");
  EXPECT_EQ(reply_of("refuses").status, CallStatus::rejected);
  EXPECT_EQ(reply_of("declines").status, CallStatus::unsupported);
  EXPECT_EQ(reply_of("prints").status, CallStatus::ok);
  EXPECT_EQ(reply_of("later").status, CallStatus::ok);
  EXPECT_EQ(adapted("echo")->run(multihead_case(DType::f32, {})).status, CallStatus::unsupported);
}

TEST_F(NodeAdapter, RefusesToServe) {
  for (const auto& [mode, why] : {std::pair{"absent", "there is nothing here to serve"},
                                  std::pair{"strides", "leave \"strides\" out of the manifest"},
                                  {"shared-memory", "leave \"shared_memory\" out of the manifest"}}) {
    EXPECT_THAT(refusal<KernelLoadError>([&] { return adapted(mode); }), Says(why)) << mode;
  }
}

TEST_F(NodeAdapter, BringsTheLogSumExp) {
  const auto kernel = adapted("lse");
  const Case c = attention_case(DType::f32, {1, 2, 3, 5, 4, 4});
  const Reply reply = kernel->run(c, DType::f32, true);
  ASSERT_EQ(reply.status, CallStatus::ok) << reply.message;
  for (std::int64_t r = 0; r < 6; ++r) {
    double sum = 0.0;
    for (std::int64_t x = 0; x < 4; ++x) sum += c.q()[4 * r + x];
    EXPECT_EQ(reply.lse[r], sum);
  }
  EXPECT_FALSE(kernel->run(c).lse.present());
}

TEST_F(NodeAdapter, ServesAMultiheadFunction) {
  const auto kernel = adapted("multihead");
  const Case c = multihead_case(DType::f64, {});
  const Reply reply = kernel->run(c);
  ASSERT_EQ(reply.status, CallStatus::ok) << reply.message;
  for (std::int64_t i = 0; i < reply.out.elements(); ++i)
    EXPECT_EQ(reply.out[i], c.q()[i] + 2.0 + c[Slot::b_q][i % 6] + 1.0);
}

class OnnxRuntime : public NodeAdapter {
 protected:
  void SetUp() override {
    NodeAdapter::SetUp();
    static const bool installed =
        succeeds("node -e 'require(\"" + source_folder() + "/core/adapters/onnxruntime/operator\")'");
    if (!IsSkipped() && !installed) GTEST_SKIP() << "onnxruntime-node is not installed in core/adapters/onnxruntime";
  }
};

TEST_F(NodeAdapter, SaysHowOnnxruntimeIsInstalled) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(testing::TempDir()) / ("attest-adapters-" + std::to_string(::getpid()));
  for (const std::string name : {"node/attest_adapter.js", "onnxruntime/ort_kernels.js", "onnxruntime/operator.js"}) {
    fs::create_directories((folder / name).parent_path());
    fs::copy_file(adapters_folder() / name, folder / name);
  }
  ::setenv("ATTEST_ADAPTERS", folder.c_str(), 1);
  EXPECT_THAT(load_error("ort:*"), Says("onnxruntime-node cannot be loaded", "npm ci"));
  ::unsetenv("ATTEST_ADAPTERS");
  fs::remove_all(folder);
}

TEST_F(OnnxRuntime, DoesWhatTheManifestsRestOn) {
  EXPECT_EQ(std::system(("node '" + source_folder() + "/core/adapters/onnxruntime/probe.js' >&2").c_str()), 0);
}

TEST_F(OnnxRuntime, HasFiveKernels) {
  const auto kernels = open_kernels("ort:*", patient());
  std::vector<std::string> ids;
  ids.reserve(kernels.size());
  for (const auto& kernel : kernels) ids.push_back(kernel->id());
  EXPECT_EQ(ids, (std::vector<std::string>{"ort:attention", "ort:attention-23", "ort:group-query",
                                           "ort:group-query-f16", "ort:multihead"}));
}

/// With masks of each kind and shape that the manifest allows.
void expect_masked_attention(Kernel& kernel, const Case& c) {
  expect_attention(kernel, c);
  expect_attention_under_masks(kernel, c, {c.dtype()});
  if (kernel.manifest().bool_masks) expect_attention_under_masks(kernel, c, {DType::boolean});
}

TEST_F(OnnxRuntime, ComputesAttention) {
  for (const std::string name : {"ort:attention", "ort:attention-23"}) {
    const auto kernel = open_kernel(name);
    for (const DType dtype : kernel->manifest().dtypes) {
      for (const Sizes& sizes : {Sizes{2, 3, 4, 5, 6, 7}, Sizes{1, 1, 1, 1, 1, 1}, Sizes{1, 2, 40, 50, 16, 16}}) {
        Case c = attention_case(dtype, sizes);
        c.scale = 0.25;
        expect_masked_attention(*kernel, c);
        c.causal = Causal::top_left;
        expect_masked_attention(*kernel, c);
      }
      EXPECT_EQ(kernel->run(attention_case(dtype, {1, 1, 0, 3, 2, 2})).status, CallStatus::unsupported);
    }
  }
}

TEST_F(OnnxRuntime, ComputesMultiheadAttentionOnProjectedInputs) {
  const auto kernel = open_kernel("ort:multihead");
  for (const Sizes& sizes : {Sizes{2, 3, 4, 5, 6, 7}, Sizes{1, 2, 40, 40, 16, 16}, Sizes{1, 1, 0, 3, 2, 2}}) {
    Case c = attention_case(DType::f32, sizes);
    c.scale = 0.25;
    if (sizes.queries > 0) expect_masked_attention(*kernel, c);
    if (sizes.queries == 0) expect_attention(*kernel, c);
    c.causal = Causal::top_left;
    if (sizes.queries == sizes.keys) expect_masked_attention(*kernel, c);
  }
}

TEST_F(OnnxRuntime, ComputesGroupedQueryAttentionOverACache) {
  for (const std::string name : {"ort:group-query", "ort:group-query-f16"}) {
    const auto kernel = open_kernel(name);
    const DType dtype = kernel->manifest().dtypes.front();
    for (const Sizes& sizes : {Sizes{2, 3, 4, 4, 8, 8}, Sizes{1, 2, 4, 9, 16, 16}, Sizes{2, 2, 1, 9, 8, 8}}) {
      Case c = attention_case(dtype, sizes);
      c.scale = 0.25;
      c.causal = Causal::bottom_right;
      expect_masked_attention(*kernel, c);
      c.causal = Causal::none;
      EXPECT_EQ(kernel->run(c).status, sizes.queries == 1 ? CallStatus::ok : CallStatus::unsupported);
    }
    Case many = attention_case(dtype, {2, 1, 2, 3, 8, 8});
    many.causal = Causal::bottom_right;
    EXPECT_THAT(kernel->run(many).message, Says("takes one sequence"));
  }
}

}  // namespace
}  // namespace attest
