#include "core/bound/machine_checked.h"

#include <gtest/gtest.h>

#include "core/test/fleet/fleet.h"

namespace attest {
namespace {

TEST(MachineChecked, NamesWhatTheProofDoesNotSpeakOf) {
  Arithmetic a = fleet::plain(DType::f32);
  EXPECT_EQ(proof_text(a), "proved by machine");
  a.normalise_first = true;
  EXPECT_EQ(proof_text(a), "proved by machine");
  a.prescaled_q = DType::f32;
  EXPECT_EQ(proof_text(a),
            "proved by machine, in another form than it is computed in: queries or scores that are stored");
  a.exp_ulp = 0;
  EXPECT_EQ(proof_text(a), "proved on paper; by machine but for an exponential whose error is not stated");
  a = fleet::plain(DType::f32);
  a.block = 16;
  a.max = MaxPolicy::lazy;
  a.lazy_nats = 4;
  a.weights = DType::bf16;
  EXPECT_TRUE(beyond_the_proof(a).empty());
  const auto beyond = [](auto change) {
    Arithmetic changed = fleet::plain(DType::f32);
    change(changed);
    return beyond_the_proof(changed).size();
  };
  EXPECT_EQ(beyond([](Arithmetic& b) { b.base2 = true; }), 0);
  EXPECT_EQ(beyond([](Arithmetic& b) { b.split_merge = true; }), 0);
  EXPECT_EQ(beyond([](Arithmetic& b) { b.split_merge = true, b.weights = DType::bf16; }), 0);
  EXPECT_EQ(beyond([](Arithmetic& b) { b.normalise_first = true; }), 0);
  EXPECT_EQ(beyond([](Arithmetic& b) { b.normalise_first = true, b.weights = DType::f16; }), 0);
  EXPECT_EQ(beyond([](Arithmetic& b) { b.max = MaxPolicy::none; }), 0);
  EXPECT_EQ(beyond([](Arithmetic& b) { b.exp_ulp = 0; }), 1);
  EXPECT_EQ(beyond([](Arithmetic& b) { b.base2 = b.folded_exp2 = true; }), 0);
  EXPECT_EQ(beyond([](Arithmetic& b) { b.base2 = b.split_merge = true; }), 1);
  EXPECT_EQ(beyond([](Arithmetic& b) { b.base2 = b.normalise_first = true; }), 1);
  EXPECT_EQ(beyond([](Arithmetic& b) { b.normalise_first = true, b.block = 16; }), 1);
  EXPECT_EQ(beyond([](Arithmetic& b) { b.base2 = true, b.max = MaxPolicy::none; }), 1);
  EXPECT_EQ(beyond([](Arithmetic& b) { b.stored_biased = DType::bf16; }), 1);
  EXPECT_EQ(beyond([](Arithmetic& b) { b.accumulate = b.weights = DType::bf16; }), 1);
  EXPECT_EQ(beyond([](Arithmetic& b) {
              b.normalise_first = true;
              b.score_sums = b.accumulate = DType::f16, b.weights = DType::bf16;
            }),
            1);
  const auto otherwise = [](auto change) {
    Arithmetic changed = fleet::plain(DType::f32);
    change(changed);
    return proved_in_another_form(changed).size();
  };
  EXPECT_EQ(otherwise([](Arithmetic&) {}), 0);
  EXPECT_EQ(otherwise([](Arithmetic& b) { b.base2 = b.folded_exp2 = true; }), 0);
  EXPECT_EQ(otherwise([](Arithmetic& b) { b.max = MaxPolicy::none; }), 0);
  EXPECT_EQ(otherwise([](Arithmetic& b) { b.summation_depth = 4; }), 0);
  EXPECT_EQ(otherwise([](Arithmetic& b) { b.rounding = Rounding::toward_zero; }), 0);
  EXPECT_EQ(otherwise([](Arithmetic& b) { b.prescaled_q = DType::f32; }), 1);
  // Which rows are ordinary is shown of f32 and f64, and of weights no coarser than bf16.
  EXPECT_EQ(otherwise([](Arithmetic& b) { b.split_merge = true; }), 0);
  EXPECT_EQ(otherwise([](Arithmetic& b) { b.split_merge = true, b.weights = DType::bf16; }), 0);
  EXPECT_EQ(otherwise([](Arithmetic& b) { b.split_merge = true, b.weights = DType::f16; }), 0);
  EXPECT_EQ(otherwise([](Arithmetic& b) { b.split_merge = true, b.weights = DType::f8_e4m3; }), 1);
  EXPECT_EQ(otherwise([](Arithmetic& b) { b.split_merge = true, b.score_sums = b.accumulate = DType::f64; }), 0);
  EXPECT_EQ(otherwise([](Arithmetic& b) { b.split_merge = true, b.score_sums = b.accumulate = DType::f16; }), 1);
  EXPECT_EQ(otherwise([](Arithmetic& b) { b.split_merge = true, b.max = MaxPolicy::lazy, b.lazy_nats = 4; }), 1);
  EXPECT_EQ(otherwise([](Arithmetic& b) { b.split_merge = true, b.division_roundings = 2; }), 1);
  EXPECT_EQ(otherwise([](Arithmetic& b) { b.split_merge = true, b.exp_ulp = 2; }), 1);
  EXPECT_EQ(otherwise([](Arithmetic& b) { b.max = MaxPolicy::lazy, b.weights = DType::bf16, b.block = 8; }), 0);
  EXPECT_EQ(beyond([](Arithmetic& b) { b.max = MaxPolicy::none, b.weights = DType::bf16; }), 0);
  EXPECT_EQ(beyond([](Arithmetic& b) { b.max = MaxPolicy::none, b.rounding = Rounding::toward_zero; }), 0);
  // Two at once of what each has theorems.
  EXPECT_EQ(beyond([](Arithmetic& b) { b.max = MaxPolicy::none, b.normalise_first = true; }), 1);
  EXPECT_EQ(beyond([](Arithmetic& b) { b.max = MaxPolicy::none, b.split_merge = true; }), 1);
  EXPECT_EQ(beyond([](Arithmetic& b) { b.normalise_first = b.split_merge = true; }), 1);
  EXPECT_EQ(beyond([](Arithmetic& b) { b.normalise_first = true, b.summation_depth = 4; }), 1);
  EXPECT_EQ(beyond([](Arithmetic& b) { b.split_merge = true, b.summation_depth = 4; }), 1);
  EXPECT_EQ(beyond([](Arithmetic& b) { b.split_merge = true, b.rounding = Rounding::toward_zero; }), 1);
  EXPECT_EQ(beyond([](Arithmetic& b) { b.normalise_first = true, b.flushes_subnormals = true; }), 1);
  EXPECT_GE(beyond_the_proof(universal_arithmetic(DType::f32, DType::f32)).size(), 4);
}

}  // namespace
}  // namespace attest
