// multihead.torch-case on the core, which must hold, and on wrong kernels, which must be found.
#include <gtest/gtest.h>

#include "property.h"
#include "selection.h"
#include "tampered.h"

namespace attest {
namespace {

const Property& torch_case() {
  return *properties_matching("multihead.torch-case").at(0);
}

Verdict verdict_on(Kernel& kernel, DType dtype, std::int64_t k) {
  const Case c = project(generate(torch_case(), dtype, /*run_seed=*/1, k), kernel.manifest());
  return check_case(torch_case(), kernel, c);
}

TEST(MultiheadTorchCase, holds_on_the_core) {
  for (const auto& [id, dtype] : {std::pair{"core:double", DType::f64}, std::pair{"core:float", DType::f32}}) {
    const auto kernel = registered(id);
    int held = 0;
    for (std::int64_t k = 0; k < 200; ++k) {
      const Verdict verdict = verdict_on(*kernel, dtype, k);
      ASSERT_NE(verdict.outcome, Outcome::violated) << id << " k = " << k << ": " << verdict.reason;
      held += verdict.outcome == Outcome::held;
    }
    EXPECT_GE(held, 120) << id;
  }
}

TEST(MultiheadTorchCase, finds_wrong_kernels_soon) {
  struct Fault {
    std::string name;
    Tampered::Question question;
  };
  const Fault faults[] = {
      {"scale x 1.01", [](Case& c) { c.scale *= 1.01; }},
      {"output bias dropped", [](Case& c) { c[Slot::b_o] = Tensor(); }},
      {"value bias dropped", [](Case& c) { c[Slot::b_v] = Tensor(); }},
      {"bias_k dropped", [](Case& c) { c[Slot::bias_k] = c[Slot::bias_v] = Tensor(); }},
      {"mask ignored", [](Case& c) { c[Slot::mask] = Tensor(); }},
      {"heads of q reversed",
       [](Case& c) {
         Selection s = everything(c);
         std::reverse(s.heads.begin(), s.heads.end());
         const Case reversed = select(c, s);
         c[Slot::w_q] = reversed[Slot::w_q];
         c[Slot::b_q] = reversed[Slot::b_q];
       }},
  };
  for (const Fault& fault : faults) {
    Tampered kernel(registered("core:float"), fault.question);
    bool found = false;
    for (std::int64_t k = 0; k < 100 && !found; ++k) {
      found = verdict_on(kernel, DType::f32, k).outcome == Outcome::violated;
    }
    EXPECT_TRUE(found) << fault.name;
  }
}

TEST(MultiheadTorchCase, says_which_hypothesis_a_case_misses) {
  const Case good = generate(torch_case(), DType::f32, 1, 0);
  ASSERT_EQ(torch_case().misses(good), "");
  Case c = good;
  c.scale *= 2;
  EXPECT_NE(torch_case().misses(c).find("scale"), std::string::npos);
  c = good;
  c[Slot::w_o] = Tensor();
  EXPECT_NE(torch_case().misses(c), "");
  c = good;
  if (c[Slot::b_o].present()) {
    c[Slot::b_o] = Tensor();
  } else {
    c[Slot::b_o] = Tensor(DType::f32, {extents_of(c).d_o});
  }
  EXPECT_NE(torch_case().misses(c).find("bias"), std::string::npos);
}

}  // namespace
}  // namespace attest
