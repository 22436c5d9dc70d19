// The adapters that are shared libraries, of those that were built.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/kernel/kernel_under_test.h"
#include "core/test/isolation/adapter_checks.h"

namespace attest {
namespace {

using namespace testing_process;

/// With and without the causal forms and masks that the manifest allows.
[[maybe_unused]] void expect_all_masks(Kernel& kernel, Case c) {
  expect_attention(kernel, c);
  for (const Causal causal : kernel.manifest().causal) {
    c.causal = causal;
    expect_attention(kernel, c);
  }
  c.causal = Causal::none;
  expect_attention_under_masks(kernel, c, {c.dtype(), DType::boolean});
}

#ifdef ATTEST_TORCH_LIBRARY
TEST(LibTorch, ComputesAttention) {
  const auto kernel = open_kernel(ATTEST_TORCH_LIBRARY);
  EXPECT_EQ(kernel->manifest().dtypes, (std::vector{DType::f64, DType::f32, DType::bf16}));
  for (const DType dtype : kernel->manifest().dtypes) {
    for (const Sizes& sizes : {Sizes{2, 3, 4, 5, 6, 7}, Sizes{1, 1, 1, 1, 1, 1}, Sizes{1, 2, 40, 50, 16, 16}}) {
      expect_all_masks(*kernel, attention_case(dtype, sizes));
    }
    expect_attention(*kernel, attention_case(dtype, {1, 1, 0, 3, 2, 2}));
  }
}

TEST(LibTorch, ReadsTensorsByTheirStrides) {
  const auto kernel = open_kernel(ATTEST_TORCH_LIBRARY);
  for (const std::string layout : {"token-major", "packed", "padded-rows", "every-other", "column-major", "shifted"}) {
    Case c = attention_case(DType::f32, {2, 3, 4, 5, 6, 7});
    c[Slot::mask] = mask_of(DType::boolean, {2, 3, 4, 5});
    for (const std::string tensor : {"q", "k", "v", "mask", "out"})
      c.provenance.strides = c.provenance.strides.value_or("") + (tensor + "=").append(layout) + " ";
    expect_attention(*kernel, c);
  }
}

TEST(LibTorch, SaysWhatItCannotDo) {
  const auto kernel = open_kernel(ATTEST_TORCH_LIBRARY);
  EXPECT_EQ(kernel->run(attention_case(DType::f32, {1, 1, 2, 0, 2, 2})).status, CallStatus::unsupported);
  Case c = attention_case(DType::f32, {});
  c[Slot::mask] = mask_of(DType::boolean, {1, 1, 3, 5});
  c.causal = Causal::top_left;
  expect_ending(kernel->run(c), CallStatus::unsupported, Says("exclude each other"));
  // What ATen throws is a failure with its message: keys of another width.
  c[Slot::mask] = Tensor();
  c.causal = Causal::none;
  c[Slot::k] = attention_case(DType::f32, {2, 2, 3, 5, 3, 3}).k();
  EXPECT_EQ(kernel->run(c).status, CallStatus::failed);
}
#endif

#ifdef ATTEST_TORCH_MULTIHEAD_LIBRARY
TEST(LibTorch, ComputesMultiheadAttention) {
  const auto kernel = open_kernel(ATTEST_TORCH_MULTIHEAD_LIBRARY);
  EXPECT_TRUE(kernel->manifest().multihead);
  EXPECT_FALSE(kernel->manifest().attention);
  MultiheadOptions options;
  options.self = true;
  for (const DType dtype : kernel->manifest().dtypes) {
    for (const std::int64_t heads : {2, 4}) {
      for (const bool biases : {true, false}) {
        options.heads = heads;
        options.biases = biases;
        Case c = multihead_case(dtype, options);
        expect_multihead(*kernel, c);
        c[Slot::b_k] = Tensor();
        for (const std::string tensor : {"q", "w_q", "w_k", "w_v", "w_o", "out"})
          c.provenance.strides = c.provenance.strides.value_or("") + (tensor + "=padded-rows ");
        expect_multihead(*kernel, c);
      }
    }
  }
  Case c = multihead_case(DType::f32, options);
  c[Slot::w_o] = c[Slot::b_o] = Tensor();
  EXPECT_THAT(kernel->run(c).message, Says("output projection"));
}
#endif

#ifdef ATTEST_CUDA_LIBRARY
TEST(CudaExample, ComputesAttentionOrSaysThatThereIsNoGpu) {
  const auto kernel = open_kernel(ATTEST_CUDA_LIBRARY);
  EXPECT_EQ(kernel->manifest().name, "CUDA example");
  const Reply first = kernel->run(attention_case(DType::f32, {}));
  if (first.status == CallStatus::unsupported) {
    EXPECT_THAT(first.message, Says("there is no CUDA device"));
    GTEST_SKIP() << first.message;
  }
  for (const Sizes& sizes : {Sizes{2, 3, 4, 5, 6, 7}, Sizes{1, 1, 1, 1, 1, 1}, Sizes{1, 2, 40, 300, 16, 200}}) {
    expect_all_masks(*kernel, attention_case(DType::f32, sizes));
  }
  expect_attention(*kernel, attention_case(DType::f32, {1, 1, 0, 3, 2, 2}));
  expect_attention(*kernel, attention_case(DType::f32, {1, 1, 2, 0, 2, 2}));
}
#endif

}  // namespace
}  // namespace attest
