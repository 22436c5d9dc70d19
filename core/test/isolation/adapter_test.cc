// The Python adapter, and PyTorch's attention through it. Skipped where numpy or PyTorch cannot be imported.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>

#include "core/isolation/adapters.h"
#include "core/test/isolation/adapter_checks.h"
#include "core/test/places.h"

namespace attest {
namespace {

using namespace testing_process;

std::unique_ptr<Kernel> adapted(const std::string& mode) {
  return open_kernel("exec:/usr/bin/python3 '" + source_folder() + "/core/test/isolation/adapter_kernels.py' " + mode);
}

class Adapter : public testing::Test {
 protected:
  void SetUp() override {
    static const bool has_numpy = imports("numpy");
    if (!has_numpy) GTEST_SKIP() << "numpy cannot be imported";
  }
};

TEST_F(Adapter, ServesTheExample) {
  const auto kernel =
      open_kernel("exec:/usr/bin/python3 '" + source_folder() + "/core/adapters/python/numpy_example.py'");
  EXPECT_EQ(kernel->manifest().name, "numpy example");
  for (const DType dtype : {DType::f64, DType::f32}) {
    const Case c = attention_case(dtype, {2, 3, 4, 5, 6, 7});
    expect_attention(*kernel, c);
    expect_attention_under_masks(*kernel, c, {dtype, DType::boolean});
    expect_attention(*kernel, attention_case(dtype, {1, 1, 0, 2, 3, 3}));
    expect_attention(*kernel, attention_case(dtype, {2, 1, 3, 0, 3, 3}));
  }
}

TEST_F(Adapter, FillsTheManifestInFromTheFunction) {
  const Manifest full = adapted("softmax-product")->manifest();
  EXPECT_EQ(full.name, "softmax_product");
  EXPECT_EQ(full.version, "3");
  EXPECT_EQ(full.dtypes, (std::vector{DType::f64, DType::f32}));
  EXPECT_TRUE(full.any_scale && full.additive_masks && full.bool_masks && full.causal.empty() && full.attention);
  EXPECT_FALSE(full.multihead);
  const Manifest plain = adapted("plain")->manifest();
  EXPECT_FALSE(plain.any_scale || plain.additive_masks || plain.bool_masks);
}

TEST_F(Adapter, ServesLessThanItIsAskedForBySayingSo) {
  const auto kernel = adapted("plain");
  Case c = attention_case(DType::f32, {});
  expect_attention(*kernel, c);
  const auto expect_unsupported = [&](const Case& asked, const std::string& parameter) {
    expect_ending(kernel->run(asked), CallStatus::unsupported, "the function has no parameter " + parameter);
  };
  Case other = c;
  other.scale = 0.25;
  expect_unsupported(other, "scale");
  other = c;
  other.causal = Causal::top_left;
  expect_unsupported(other, "causal");
  other = c;
  other[Slot::mask] = mask_of(DType::boolean, {1, 1, 3, 5});
  expect_unsupported(other, "mask");
  EXPECT_EQ(kernel->run(multihead_case(DType::f32, {})).status, CallStatus::unsupported);
  expect_attention(*kernel, c);
}

TEST_F(Adapter, MindsTheConventionOfAdditiveMasksOnly) {
  const auto kernel = adapted("softmax-product");
  Case c = attention_case(DType::f32, {});
  c.mask_convention = MaskConvention::pre_scale;
  expect_attention(*kernel, c);
  c[Slot::mask] = mask_of(DType::boolean, {1, 1, 3, 5});
  expect_attention(*kernel, c);
  c[Slot::mask] = mask_of(DType::f32, {1, 1, 3, 5});
  EXPECT_EQ(kernel->run(c).status, CallStatus::unsupported);
}

TEST_F(Adapter, WritesNewKeysIntoTheCache) {
  const Case c = appending_case();
  Case there = c;
  there.append = 0;
  for (const std::string mode : {"appends", "appends-copied", "appends-torch"}) {
    if (mode == "appends-torch" && !imports("torch")) continue;
    const auto kernel = adapted(mode);
    EXPECT_TRUE(kernel->manifest().variants.contains("append")) << mode;
    const Reply reply = kernel->run(c);
    ASSERT_EQ(reply.status, CallStatus::ok) << mode << ": " << reply.message;
    EXPECT_EQ(reply.out, kernel->run(there).out) << mode;
  }
  expect_ending(adapted("appends-nothing")->run(c), CallStatus::failed,
                "left k[0, 0, 2, 0] other than k_new has it; a call writes the new keys into the cache, bit for bit");
  expect_ending(adapted("appends-elsewhere")->run(c), CallStatus::failed,
                "wrote to k[0, 0, 1, 0]; of k and v a call writes the slots of the new keys alone");
  EXPECT_EQ(adapted("plain")->run(c).status, CallStatus::unsupported);
}

TEST_F(Adapter, PassesFailuresOnAndGoesOn) {
  const Case c = attention_case(DType::f32, {});
  const auto reply_of = [&](const std::string& mode) {
    const auto kernel = adapted(mode);
    static_cast<void>(kernel->run(c));
    return kernel->run(c);
  };
  const Reply failed = reply_of("fails");
  expect_ending(failed, CallStatus::failed, "ValueError: a message with \"quotes\",\nlines and ünïcode");
  EXPECT_EQ(reply_of("refuses").status, CallStatus::rejected);
  EXPECT_EQ(reply_of("declines").status, CallStatus::unsupported);
  expect_ending(reply_of("wrong-dtype"), CallStatus::failed, Says("float64", "float32 is due"));
  EXPECT_EQ(reply_of("wrong-shape").status, CallStatus::malformed);
  EXPECT_EQ(reply_of("prints").status, CallStatus::ok);
}

TEST_F(Adapter, CarriesEveryBit) {
  // All patterns of the 16-bit formats and of fp8, NaN and infinities included.
  for (const std::string mode : {"echo-bits", "torch-echo"}) {
    if (mode == "torch-echo" && !imports("torch")) continue;
    const auto kernel = adapted(mode);
    for (const DType dtype : kernel->manifest().dtypes) {
      if (size_of(dtype) > 2) continue;
      const Case c = every_pattern(dtype);
      const Reply reply = kernel->run(c);
      ASSERT_EQ(reply.status, CallStatus::ok) << reply.message;
      EXPECT_EQ(reply.out, c.q()) << mode << " " << name_of(dtype);
    }
  }
}

TEST_F(Adapter, RoundsBf16Once) {
  const auto echo = adapted("echo-bf16");
  const Case c = attention_case(DType::bf16, {});
  const Reply reply = echo->run(c);
  ASSERT_EQ(reply.status, CallStatus::ok) << reply.message;
  EXPECT_EQ(reply.out, c.q());
  // One key: out is that value. Two keys of equal score: the mean, rounded to nearest, ties to even.
  const auto kernel = adapted("bf16");
  Case two;
  two[Slot::q] = Tensor(DType::bf16, {1, 1, 1, 1});
  two[Slot::k] = Tensor(DType::bf16, {1, 1, 2, 1});
  two.scale = 1.0;
  for (const auto& [low, high, mean] :
       {std::tuple{1.0, 1.0078125, 1.0}, {1.0078125, 1.015625, 1.015625}, {-1.0, -1.0078125, -1.0}}) {
    two[Slot::v] = Tensor(DType::bf16, {1, 1, 2, 1}, std::array{low, high});
    const Reply mid = kernel->run(two);
    ASSERT_EQ(mid.status, CallStatus::ok) << mid.message;
    EXPECT_EQ(mid.out[0], mean) << low;
  }
}

TEST_F(Adapter, LaysArraysOutAsTheCaseSays) {
  for (const std::string framework : {"numpy", "torch"}) {
    if (framework == "torch" && !imports("torch")) continue;
    const auto kernel = adapted("strides-" + framework);
    Case c = attention_case(DType::f32, {2, 3, 4, 5, 6, 6});
    c.scale = 1.0;
    const auto expect_strides = [&](const std::string& layouts, const std::vector<double>& strides) {
      if (!layouts.empty()) c.provenance.strides = layouts;
      const Reply reply = kernel->run(c);
      ASSERT_EQ(reply.status, CallStatus::ok) << reply.message;
      for (std::size_t i = 0; i < 4; ++i)
        EXPECT_EQ(reply.out[static_cast<std::int64_t>(i)], strides[i]) << framework << " " << layouts << " " << i;
      for (std::int64_t i = 4; i < reply.out.elements(); ++i) ASSERT_EQ(reply.out[i], c.q()[i]) << layouts;
    };
    expect_strides("", {90, 30, 6, 1});
    expect_strides("q=every-other k=token-major", {90, 6, 18, 1});
    expect_strides("q=packed k=packed", {270, 6, 54, 1});
    expect_strides("q=padded-rows k=column-major", {90, 30, 1, 5});
    expect_strides("q=shifted k=padded-rows", {147, 48, 9, 1});
    for (std::int64_t i = 0; i < c.k().elements(); ++i) c[Slot::k].set(i, c.k()[i % 30]);
    expect_strides("q=column-major k=repeated", {0, 0, 6, 1});

    c.provenance.strides = "k=padded-rows";
    c.scale = 2.0;
    EXPECT_TRUE(std::isnan(kernel->run(c).out[0])) << framework;
    for (const double writes : {3.0, 4.0}) {
      c.scale = writes;
      const Reply reply = kernel->run(c);
      EXPECT_EQ(reply.status, CallStatus::failed) << framework << " " << writes;
      EXPECT_THAT(reply.message, Says("wrote to its input k, or between the elements of it"));
    }
  }
}

TEST_F(Adapter, BringsTheLogSumExp) {
  const auto kernel = adapted("lse");
  const Case c = attention_case(DType::f32, {1, 1, 1, 1, 1, 1});
  const Reply reply = kernel->run(c, DType::f32, true);
  ASSERT_EQ(reply.status, CallStatus::ok) << reply.message;
  EXPECT_NEAR(reply.lse[0], c.q()[0] * c.k()[0], 1e-6);
  EXPECT_FALSE(kernel->run(c).lse.present());
}

TEST_F(Adapter, ServesAMultiheadFunction) {
  const auto kernel = adapted("multihead");
  EXPECT_TRUE(kernel->manifest().multihead);
  EXPECT_FALSE(kernel->manifest().attention);
  Case c = multihead_case(DType::f64, {});
  const Reply refused = kernel->run(c);
  EXPECT_EQ(refused.status, CallStatus::unsupported) << "it has no w_o";
  for (const Slot slot : {Slot::w_o, Slot::b_o, Slot::b_k, Slot::b_v}) c[slot] = Tensor();
  const Reply reply = kernel->run(c);
  ASSERT_EQ(reply.status, CallStatus::ok) << reply.message;
  for (std::int64_t i = 0; i < reply.out.elements(); ++i) EXPECT_EQ(reply.out[i], c.q()[i] + 2.0 + c[Slot::b_q][i % 6]);
}

TEST_F(Adapter, FindsAScaleThatIsOnePercentOff) {
  const auto wrong = adapted("scale-one-percent-off");
  const Case c = attention_case(DType::f32, {});
  const Reply reply = wrong->run(c);
  ASSERT_EQ(reply.status, CallStatus::ok) << reply.message;
  EXPECT_GT(largest_difference(reply.out, attention_answer(c)), 10 * tolerance(DType::f32));
}

TEST(AdaptersFolder, IsFound) {
  EXPECT_TRUE(std::filesystem::exists(adapters_folder() / "python" / "attest_adapter.py"));
  EXPECT_TRUE(std::filesystem::exists(adapters_folder() / "pytorch" / "pytorch_kernels.py"));
  ::setenv("ATTEST_ADAPTERS", "/no/such/folder", 1);
  EXPECT_TRUE(adapters_folder().empty());
  EXPECT_THAT(load_error("pytorch:sdpa"), Says("set ATTEST_ADAPTERS"));
  ::setenv("ATTEST_ADAPTERS", testing::TempDir().c_str(), 1);
  EXPECT_TRUE(std::filesystem::equivalent(adapters_folder(), testing::TempDir()));
  ::unsetenv("ATTEST_ADAPTERS");
}

class PyTorch : public testing::Test {
 protected:
  void SetUp() override {
    static const bool has_torch = imports("torch");
    if (!has_torch) GTEST_SKIP() << "PyTorch cannot be imported";
    // Debian's, whose kernels these tests know; the python3 on the PATH may have another.
    ::setenv("PATH", "/usr/bin:/bin", 1);
  }
};

TEST_F(PyTorch, DoesWhatTheManifestsRestOn) {
  EXPECT_EQ(std::system(("/usr/bin/python3 '" + source_folder() + "/core/adapters/pytorch/probe.py' >&2").c_str()), 0);
}

TEST_F(PyTorch, HasThreeKernels) {
  const auto kernels = open_kernels("pytorch:*", patient());
  ASSERT_EQ(kernels.size(), 3U);
  EXPECT_EQ(kernels[0]->id(), "pytorch:mha");
  EXPECT_EQ(kernels[1]->id(), "pytorch:mha-fast");
  EXPECT_EQ(kernels[2]->id(), "pytorch:sdpa");
  EXPECT_EQ(kernels[2]->manifest().dtypes, (std::vector{DType::f64, DType::f32, DType::bf16}));
  for (int i : {0, 1})
    EXPECT_EQ(kernels[static_cast<std::size_t>(i)]->manifest().dtypes, (std::vector{DType::f64, DType::f32}));
  const auto twin = kernels[2]->clone();
  expect_attention(*twin, attention_case(DType::f32, {}));
  expect_attention(*kernels[2], attention_case(DType::f32, {}));
}

TEST_F(PyTorch, ComputesAttention) {
  const auto kernel = open_kernel("pytorch:sdpa");
  for (const DType dtype : kernel->manifest().dtypes) {
    for (const Sizes& sizes :
         {Sizes{2, 3, 4, 5, 6, 7}, Sizes{1, 1, 1, 1, 1, 1}, Sizes{1, 2, 40, 50, 16, 16}, Sizes{1, 1, 0, 3, 2, 2}}) {
      Case c = attention_case(dtype, sizes);
      expect_attention(*kernel, c);
      c.causal = Causal::top_left;
      expect_attention(*kernel, c);
      c.causal = Causal::none;
      if (sizes.queries > 0) expect_attention_under_masks(*kernel, c, {dtype, DType::boolean});
    }
  }
}

TEST_F(PyTorch, ComputesAttentionUnderOtherStrides) {
  const auto sdpa = open_kernel("pytorch:sdpa"), mha = open_kernel("pytorch:mha"),
             fast = open_kernel("pytorch:mha-fast");
  for (const std::string layout : {"token-major", "packed", "padded-rows", "every-other", "column-major", "shifted"}) {
    const auto strided = [&](Case c) {
      for (int i = 0; i < slot_count; ++i)
        c.provenance.strides =
            c.provenance.strides.value_or("") + std::string(name_of(static_cast<Slot>(i))) + "=" + layout + " ";
      return c;
    };
    for (const DType dtype : {DType::f64, DType::f32}) {
      Case c = attention_case(dtype, {2, 3, 4, 5, 6, 7});
      c[Slot::mask] = mask_of(DType::boolean, {2, 3, 4, 5});
      expect_attention(*sdpa, strided(c));
      MultiheadOptions options;
      options.c_k = 4;
      expect_multihead(*mha, strided(multihead_case(dtype, options)));
      options = {};
      options.self = true;
      expect_multihead(*fast, strided(multihead_case(dtype, options)));
    }
  }
}

TEST_F(PyTorch, ComputesMultiheadAttention) {
  const auto kernel = open_kernel("pytorch:mha");
  for (const DType dtype : kernel->manifest().dtypes) {
    std::vector<MultiheadOptions> all(7);
    all[1].biases = false;
    all[2].bias_kv = true;
    all[3].c_k = 4;  // separate weights
    all[3].c_v = 7;
    all[4].heads = 3;
    all[4].c_k = all[4].c_v = 9;
    all[4].queries = 7;  // more queries than keys
    all[5].self = true;
    all[6].c_v = 5;
    all[6].bias_kv = true;
    all[6].biases = false;
    for (const auto& options : all) {
      Case c = multihead_case(dtype, options);
      expect_multihead(*kernel, c);
      c[Slot::b_k] = Tensor();
      expect_multihead(*kernel, c);
      c.causal = Causal::top_left;
      expect_multihead(*kernel, c);
      if (options.queries <= c.k().shape()[1] || options.bias_kv) {
        c.causal = Causal::bottom_right;
        expect_multihead(*kernel, c);
      }
      for (const Causal causal : {Causal::none, Causal::top_left}) {
        c.causal = causal;
        for (const DType kind : {dtype, DType::boolean}) {
          for (const Shape& shape : mask_shapes(c, options.batch, options.heads, options.queries)) {
            c[Slot::mask] = mask_of(kind, shape);
            expect_multihead(*kernel, c);
          }
        }
      }
    }
  }
  Case c = multihead_case(DType::f32, {});
  c[Slot::w_o] = Tensor();
  c[Slot::b_o] = Tensor();
  expect_ending(kernel->run(c), CallStatus::unsupported, Says("output projection"));
}

TEST_F(PyTorch, ComputesMultiheadAttentionOnTheFastPath) {
  const auto kernel = open_kernel("pytorch:mha-fast");
  MultiheadOptions options;
  options.self = true;
  for (const DType dtype : kernel->manifest().dtypes) {
    for (const std::int64_t heads : {2, 4}) {
      for (const bool biases : {true, false}) {
        options.heads = heads;
        options.biases = biases;
        expect_multihead(*kernel, multihead_case(dtype, options));
      }
    }
    // NaN in one row, in all three copies alike, is self-attention too.
    Case c = multihead_case(dtype, options);
    for (const Slot slot : {Slot::q, Slot::k, Slot::v}) c[slot].set(0, std::numeric_limits<double>::quiet_NaN());
    EXPECT_EQ(kernel->run(c).status, CallStatus::ok);
    c[Slot::v].set(3, 0.0);
    EXPECT_EQ(kernel->run(c).status, CallStatus::unsupported);
    options.heads = 3;
    EXPECT_EQ(kernel->run(multihead_case(dtype, options)).status, CallStatus::unsupported);
  }
}

}  // namespace
}  // namespace attest
