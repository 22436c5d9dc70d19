// multihead.torch-case on the core, which must hold, and on wrong kernels, which must be found.
#include <gtest/gtest.h>

#include <cmath>

#include "core/problem/selection.h"
#include "core/problem/sight.h"
#include "properties/catalogue/property.h"
#include "properties/test/catalogue/tampered.h"

namespace attest {
namespace {

const Property& torch_case() {
  return *properties_matching("multihead.torch-case").at(0);
}

Verdict verdict_on(Kernel& kernel, DType dtype, std::int64_t k) {
  const Case c = project(generate(torch_case(), dtype, /*run_seed=*/1, k), kernel.manifest());
  return check_case(torch_case(), kernel, c);
}

TEST(MultiheadTorchCase, HoldsOnTheCore) {
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

TEST(MultiheadTorchCase, FindsWrongKernelsSoon) {
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

TEST(MultiheadTorchCase, SaysWhichHypothesisACaseMisses) {
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

// NaN in a key and a value that the mask hides from every row and head, where a property would place it.
TEST(MultiheadTorchCase, AsksForAnAnswerBesideHiddenPoisonOfKernelsThatClaimToIgnoreIt) {
  Case c = generate(torch_case(), DType::f32, 1, 0);
  for (std::int64_t k = 1; keys_of(c) < 3 || queries_of(c) < 1 || c[Slot::bias_k].present(); ++k) {
    c = generate(torch_case(), DType::f32, 1, k);
  }
  c.causal = Causal::none;
  const std::int64_t M = queries_of(c), N = keys_of(c);
  Tensor mask(DType::boolean, {1, 1, M, N});
  for (std::int64_t e = 0; e < M * N; ++e) mask.set(e, e % N != 1);
  c[Slot::mask] = mask;
  c.provenance.non_finite = "yes";
  for (const Slot slot : {Slot::k, Slot::v}) {
    const std::int64_t width = c[slot].shape()[2];
    for (std::int64_t b = 0; b < batch_of(c); ++b) {
      for (std::int64_t e = 0; e < width; ++e) c[slot].set((b * N + 1) * width + e, NAN);
    }
  }
  validate(c);
  const auto poisoned = [](Reply& reply) { reply.out.set(0, NAN); };
  for (const bool claimed : {true, false}) {
    Tampered right(registered("core:float"), [](Case&) {}), wrong(registered("core:float"), [](Case&) {}, poisoned);
    for (Tampered* kernel : {&right, &wrong}) {
      if (!claimed) std::erase(kernel->manifest().claims, Claim::ignores_dead_values);
      ASSERT_EQ(kernel->manifest().claims_to(Claim::ignores_dead_values), claimed);
    }
    const Verdict good = check_case(torch_case(), right, c), bad = check_case(torch_case(), wrong, c);
    EXPECT_EQ(good.outcome, claimed ? Outcome::held : Outcome::excused) << good.reason;
    EXPECT_EQ(bad.outcome, claimed ? Outcome::violated : Outcome::excused) << bad.reason;
  }
}

// What the bound excuses as vacuous is rare where scores are ordinary: one key and constant values are judged.
TEST(MultiheadTorchCase, ExcusesNextToNothingButRowsWithoutKeys) {
  const auto kernel = registered("core:float");
  int vacuous = 0, single = 0;
  for (std::int64_t k = 0; k < 300; ++k) {
    const Case c = project(generate(torch_case(), DType::f32, /*run_seed=*/1, k), kernel->manifest());
    const Verdict verdict = check_case(torch_case(), *kernel, c);
    const bool ordinary = c.provenance.kinds.value().find("matrices:huge") == std::string::npos;
    vacuous += ordinary && verdict.outcome == Outcome::excused && verdict.reason == "vacuous bound";
    single += keys_of(c) == 1 && verdict.outcome == Outcome::held;
  }
  EXPECT_LE(vacuous, 3);
  EXPECT_GE(single, 5);
}

}  // namespace
}  // namespace attest
