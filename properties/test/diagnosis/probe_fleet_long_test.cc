// Every kernel of the fleet, which is correct, holds under what a probe of its arithmetic declares.
#include <gtest/gtest.h>

#include "core/test/fleet/fleet.h"
#include "properties/diagnosis/arithmetic/probe_arithmetic.h"
#include "properties/road/redeclared_kernel.h"
#include "properties/test/catalogue/spoilt.h"

namespace attest {
namespace {

/// An emulated kernel that states nothing, head by head.
class Emulated : public Kernel {
 public:
  explicit Emulated(fleet::Emulation emulation) : emulation_(std::move(emulation)) {
    const DType input = emulation_.arithmetic.input, output = emulation_.arithmetic.output;
    manifest_.name = emulation_.name;
    manifest_.dtypes = {input};
    manifest_.arithmetic.usual[input] = universal_arithmetic(input, input);
    if (output != input) manifest_.out_dtypes[input] = {output};
    // What is not asked: the format of a mask.
    manifest_.arithmetic.usual[input].mask_format = emulation_.arithmetic.mask_format;
    manifest_.mask_conventions = {MaskConvention::post_scale, MaskConvention::pre_scale};
    manifest_.causal = {Causal::top_left, Causal::bottom_right};
    manifest_.fully_masked_row = FullyMaskedRow::nan;
  }
  [[nodiscard]] const std::string& id() const override { return emulation_.name; }
  [[nodiscard]] const Manifest& manifest() const override { return manifest_; }
  [[nodiscard]] std::unique_ptr<Kernel> clone() const override { return std::make_unique<Emulated>(emulation_); }

  [[nodiscard]] Reply run(const Case& c, std::optional<DType> output, bool /*want_lse*/) override {
    const Shape q = c.q().shape(), k = c.k().shape(), v = c.v().shape();
    Tensor out(output.value_or(c.dtype()), c.out_shape());
    fleet::Emulation kernel = emulation_;
    kernel.arithmetic.output = out.dtype();
    const std::int64_t page = q[2] * v[3];
    for (std::int64_t b = 0; b < q[0]; ++b) {
      for (std::int64_t h = 0; h < q[1]; ++h) {
        Case one = c;
        const auto take = [&](Slot slot, std::int64_t head) {
          const Shape of = c[slot].shape();
          const Shape part{1, 1, of[2], of[3]};
          Tensor taken(c[slot].dtype(), part);
          const std::int64_t from = (b % of[0] * of[1] + head % of[1]) * of[2] * of[3];
          for (std::int64_t e = 0; e < part.elements(); ++e) taken.set(e, c[slot][from + e]);
          one[slot] = std::move(taken);
        };
        take(Slot::q, h), take(Slot::k, h * k[1] / q[1]), take(Slot::v, h * k[1] / q[1]);
        if (c.mask().present()) take(Slot::mask, h);
        const fleet::Answer answer = emulate(kernel, one);
        for (std::int64_t e = 0; e < page; ++e) out.set((b * q[1] + h) * page + e, answer.out[e]);
      }
    }
    return {CallStatus::ok, {}, std::move(out), {}};
  }

 private:
  fleet::Emulation emulation_;
  Manifest manifest_;
};

TEST(ProbeFleet, HoldsEveryCorrectKernelToWhatItDeclares) {
  int identified = 0;
  for (const fleet::Emulation& emulation : fleet::correct_kernels()) {
    Emulated kernel(emulation);
    const DType input = emulation.arithmetic.input;
    const ProbedArithmetic probed = probe_arithmetic(kernel, input);
    Manifest declared = kernel.manifest();
    declared.arithmetic.usual[input] = probed.declare;
    RedeclaredKernel again(kernel, std::move(declared));
    const OutcomeCounts tally = tally_of("attention.oracle", again, /*cases=*/100, input);
    EXPECT_EQ(tally.violated, 0) << emulation.name << ": " << tally.reason << '\n' << declaration_of({&probed, 1});
    EXPECT_GE(tally.held, 60) << emulation.name;
    const Arithmetic &does = emulation.arithmetic, &found = probed.declare;
    EXPECT_GE(format_of(found.accumulate).unit, format_of(does.accumulate).unit) << emulation.name;
    EXPECT_GE(format_of(found.score_sums).unit, format_of(does.score_sums).unit) << emulation.name;
    EXPECT_GE(format_of(found.weights).unit, format_of(does.weights).unit) << emulation.name;
    EXPECT_EQ(found.rounding, does.rounding) << emulation.name;
    // 0: the rounding of the weights hides it, and nothing is said.
    if (found.exp_ulp > 0) {
      EXPECT_GE(found.exp_ulp, emulation.structure.exp_errs ? does.exp_ulp / 2 : 0.5) << emulation.name;
    }
    EXPECT_TRUE(found.flushes_subnormals || !does.flushes_subnormals) << emulation.name;
    EXPECT_TRUE(found.base2 || !does.base2) << emulation.name;
    EXPECT_TRUE(does.max != MaxPolicy::lazy || (found.max == MaxPolicy::lazy && found.lazy_nats >= does.lazy_nats))
        << emulation.name;
    identified += found.accumulate == does.accumulate && found.score_sums == does.score_sums;
  }
  EXPECT_GE(identified, 30);
}

}  // namespace
}  // namespace attest
