// Adapters to libraries that are seldom installed: what they say where theirs is missing, and how they call it, shown
// on stand-ins.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "core/test/isolation/adapter_checks.h"
#include "core/test/places.h"

namespace attest {
namespace {

using testing::AllOf;
using namespace testing_process;

const std::string python = "exec:/usr/bin/python3 '" + source_folder();

/// Whether the module is installed, without importing it.
bool has_module(const std::string& module) {
  return succeeds("/usr/bin/python3 -c 'import importlib.util, sys; sys.exit(importlib.util.find_spec(\"" + module +
                  "\") is None)'");
}

void expect_masked_attention(Kernel& kernel, Case c, const std::vector<DType>& kinds) {
  expect_attention(kernel, c);
  c.causal = Causal::top_left;
  expect_attention(kernel, c);
  c.causal = Causal::none;
  expect_attention_under_masks(kernel, c, kinds);
}

const std::string backends = python + "/core/adapters/pytorch/sdpa_backends.py' ";

TEST(SdpaBackends, RefuseWithAReason) {
  EXPECT_EQ(
      std::system(
          ("/usr/bin/python3 '" + source_folder() + "/core/test/isolation/stand_ins/sdpa_reasons.py' >&2").c_str()),
      0);
  EXPECT_THAT(load_error(backends + "flesh"), Says("flesh"));
  EXPECT_THAT(load_error(backends + "flash --device tpu"), Says("tpu"));
}

class SdpaBackendsOnTorch : public testing::Test {
 protected:
  void SetUp() override {
    static const bool has_torch = has_module("torch");
    if (!has_torch) GTEST_SKIP() << "PyTorch cannot be imported";
  }

  static std::string stand_in(const std::string& arguments) {
    return python + "/core/test/isolation/stand_ins/sdpa_stand_in.py' " + arguments;
  }
};

TEST_F(SdpaBackendsOnTorch, NeedPyTorch2) {
  const std::string error = load_error(backends + "math");
  if (error == "(loaded)") GTEST_SKIP() << "PyTorch 2 is there";
  EXPECT_THAT(error, AllOf(Says("need PyTorch 2.3 or later"), NeverSays("\n")));
}

TEST_F(SdpaBackendsOnTorch, AskOneBackEndAlone) {
  const auto math = open_kernel(stand_in("math"));
  EXPECT_EQ(math->manifest().version, "2.5.0");
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16}) {
    Case c = attention_case(dtype, {2, 3, 4, 5, 6, 7});
    c.scale = 0.25;
    expect_masked_attention(*math, c, {dtype, DType::boolean});
  }
  const auto flash = open_kernel(stand_in("flash --device cpu"));
  Case c = attention_case(DType::f32, {2, 3, 4, 5, 6, 7});
  expect_masked_attention(*flash, c, {});
  c[Slot::mask] = mask_of(DType::boolean, {1, 1, 4, 5});
  EXPECT_THAT(flash->run(c).message, Says("does not take this one"));
  EXPECT_EQ(flash->run(c).status, CallStatus::unsupported);
  c.causal = Causal::top_left;
  EXPECT_THAT(math->run(c).message, Says("exclude each other"));
}

class Jax : public testing::Test {
 protected:
  void SetUp() override {
    static const bool has_numpy = has_module("numpy");
    if (!has_numpy) GTEST_SKIP() << "numpy cannot be imported";
  }
};

const std::string jax_kernel = " /usr/bin/python3 '" + source_folder() + "/core/adapters/jax/jax_kernel.py'";

TEST_F(Jax, SaysThatItIsMissingOrComputesAttention) {
  if (!has_module("jax")) {
    EXPECT_THAT(load_error("exec:" + jax_kernel), AllOf(Says("JAX cannot be imported"), NeverSays("\n")));
    return;
  }
  const auto kernel = open_kernel("exec:" + jax_kernel);
  for (const DType dtype : kernel->manifest().dtypes) {
    expect_masked_attention(*kernel, attention_case(dtype, {2, 3, 4, 5, 6, 6}), {dtype, DType::boolean});
  }
}

TEST_F(Jax, IsCalledAsDocumented) {
  const auto kernel =
      open_kernel("exec:PYTHONPATH='" + source_folder() + "/core/test/isolation/stand_ins'" + jax_kernel);
  for (const DType dtype : {DType::f32, DType::f16}) {
    Case c = attention_case(dtype, {2, 3, 4, 5, 6, 6});
    c.scale = 0.25;
    expect_masked_attention(*kernel, c, {dtype, DType::boolean});
  }
}

}  // namespace
}  // namespace attest
