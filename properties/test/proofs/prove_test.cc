// Proofs: what the core on expressions establishes of the catalogue, and that a wrong core and a false statement are
// told.
#include "properties/proofs/prove.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <string>

#include "core/kernel/formal.h"
#include "core/kernel/forwarding_kernel.h"
#include "properties/arrangement/any_number.h"
#include "properties/arrangement/arrange.h"
#include "properties/generators/draw.h"
#include "properties/language/agree.h"
#include "properties/proofs/coq_theorems.h"
#include "properties/proofs/evidence.h"

namespace attest {
namespace {

const ProveOptions small{.shapes = {{2, 3, 2, 2, 2}}, .variants = 3};

/// Rows that the symbolic back end does not prove for all real inputs, and what stands there.
const std::map<std::string_view, Evidence> others{
    {"attention.expectation-sampling", Evidence::untreated},
    {"attention.score-variance", Evidence::untreated},
    {"attention.strides", Evidence::untreated},
    {"attention.repeatable", Evidence::untreated},
    {"attention.finite", Evidence::untreated},
    {"attention.oracle", Evidence::untreated},
    {"attention.promised", Evidence::untreated},
    {"attention.any-length", Evidence::untreated},
    {"masked.fixed-length", Evidence::untreated},
    {"masked.conventions-differ", Evidence::refuted},
    {"masked.breaks-equivariance", Evidence::refuted},
    {"masked.fully-masked-row", Evidence::untreated},
    {"window.wide-is-sharp", Evidence::refuted},
    {"window.empty-row", Evidence::untreated},
    {"window.leading-blocks", Evidence::untreated},
    {"chunk.wide-is-sharp", Evidence::refuted},
    {"chunk.is-no-window", Evidence::refuted},
    {"chunk.empty-row", Evidence::untreated},
    {"chunk.leading-blocks", Evidence::untreated},
    {"self.mask-breaks-equivariance", Evidence::refuted},
    {"self.parameter-free", Evidence::untreated},
    {"self.scores-symmetric", Evidence::refuted},
    {"position.breaks-equivariance", Evidence::refuted},
    {"position.shift-invariance", Evidence::refuted},
    {"self.fixed-weights", Evidence::refuted},
    {"position.length-limit", Evidence::untreated},
    {"multihead.partial-mask-leaks", Evidence::refuted},
    {"sink.breaks-row-shift", Evidence::refuted},
    {"softcap.weights-bounded", Evidence::untreated},
    {"softcap.limit", Evidence::untreated},
    {"softcap.off", Evidence::untreated},
    {"softcap.monotone", Evidence::untreated},
    {"softcap.contraction", Evidence::untreated},
    {"softcap.saturates", Evidence::untreated},
    {"softcap.breaks-key-translation", Evidence::refuted},
    {"dropout.renormalises", Evidence::refuted},
    {"alibi.slope-limit", Evidence::untreated},
    {"dropout.rate", Evidence::untreated},
    {"dropout.same-mask", Evidence::untreated},
    {"multihead.torch-case", Evidence::untreated},
    {"multihead.finite", Evidence::untreated},
    {"multihead.strides", Evidence::untreated},
    {"multihead.oracle", Evidence::untreated},
    {"varlen.tile-edges", Evidence::untreated},
    {"paged.boundary", Evidence::untreated},
    {"paged.read-only", Evidence::untreated},
    {"backward.oracle-dq", Evidence::untreated},
    {"backward.oracle-dk", Evidence::untreated},
    {"backward.oracle-dv", Evidence::untreated},
    {"backward.oracle-dmask", Evidence::untreated},
    {"backward.oracle-dsink", Evidence::untreated},
    {"softcap.gradient-factor", Evidence::untreated},
    {"backward.given", Evidence::untreated},
    {"backward.head-dims", Evidence::untreated},
    {"backward.split-keys", Evidence::untreated},
    {"backward.dq-dk-need-delta", Evidence::untreated},
    {"sink.given-lse", Evidence::untreated},
    {"softcap.gradient-vanishes", Evidence::untreated},
    {"backward.finite", Evidence::untreated},
    {"backward.directional", Evidence::untreated},
    {"backward.forward-agrees", Evidence::untreated},
    {"backward.repeatable", Evidence::untreated},
    {"backward.subset", Evidence::untreated},
    {"backward.strides", Evidence::untreated},
    {"multihead.promised", Evidence::untreated},
    {"multihead.returned-weights", Evidence::untreated},
    {"masked.multihead-fully-masked-row", Evidence::untreated},
    {"masked.multihead-conventions-differ", Evidence::refuted},
    {"layout.index-fusion", Evidence::untreated},
};

TEST(Prove, EveryRowOfTheCatalogueHasItsEvidence) {
  for (const Property* property : catalogue()) {
    const Proof proof = prove(*property, small);
    const auto other = others.find(property->name);
    const Evidence expected = other == others.end() ? Evidence::symbolic : other->second;
    EXPECT_EQ(proof.evidence, expected) << property->name << ": " << name_of(proof.evidence) << ": " << proof.words;
    if (proof.evidence == Evidence::symbolic) {
      EXPECT_GT(proof.equalities, 0) << property->name;
      EXPECT_FALSE(proof.shapes.empty()) << property->name;
    } else {
      EXPECT_NE(proof.words, "") << property->name;
    }
  }
}

/// The core asked another question than it is told.
class Misled final : public ForwardingKernel {
 public:
  explicit Misled(std::function<void(Case&)> change) : ForwardingKernel(formal_kernel()), change_(std::move(change)) {}
  [[nodiscard]] std::unique_ptr<Kernel> clone() const override { return std::make_unique<Misled>(change_); }
  [[nodiscard]] Reply run(const Case& c, std::optional<DType> output, bool want_lse) override {
    Case changed = c;
    change_(changed);
    return ForwardingKernel::run(changed, output, want_lse);
  }

 private:
  std::function<void(Case&)> change_;
};

void expect_different(std::string_view property, const std::function<void(Case&)>& change) {
  Misled kernel(change);
  const Proof proof = prove(property_named(property), small, kernel);
  EXPECT_EQ(proof.evidence, Evidence::different) << property << ": " << proof.words;
  EXPECT_NE(proof.words.find("differ by a multiple of"), std::string::npos) << proof.words;
}

TEST(Prove, TellsAWrongCore) {
  const auto first_value_counts_twice = [](Case& c) { c[Slot::v].set(0, 2 * c.v()[0]); };
  expect_different("attention.key-value-permutation", first_value_counts_twice);
  expect_different("attention.constant-values", first_value_counts_twice);
  expect_different("softmax.rows-sum-to-one", first_value_counts_twice);
  expect_different("masked.suppression", [](Case& c) { c = without_mask(c); });
  expect_different("causal.no-leak", [](Case& c) { c.causal = Causal::none; });
  expect_different("masked.row-shift", [](Case& c) {
    if (c.mask().present() && c.mask().dtype() != DType::boolean && std::isfinite(c.mask()[0]))
      c[Slot::mask].set(0, 2 * c.mask()[0]);
  });
  expect_different("multihead.head-permutation", [](Case& c) { c[Slot::w_q].set(0, 2 * c[Slot::w_q][0]); });
  expect_different("weights.value-bias-passes", [](Case& c) {
    if (c[Slot::b_v].present() && c[Slot::b_v][0] != 0) c[Slot::b_v].set(0, 2 * c[Slot::b_v][0]);
  });
  expect_different("attention.grouped-query", [](Case& c) {
    if (c.k().shape()[1] > 1) c[Slot::k].set(0, 2 * c.k()[0]);
  });
}

// softmax(x + c1) = softmax(x), with a c for each column.
Verdict shifted_unevenly(Kernel& kernel, const Case& c) {
  Case other = c;
  other[Slot::mask] =
      mapped(with_additive_mask(c).mask(), [](std::int64_t, double old) { return sum_of(old, any_number(1)); });
  return agree({run(kernel, other), run(kernel, c)}, Match::bound);
}

// The same with a c for all of them, which is true.
Verdict shifted_evenly(Kernel& kernel, const Case& c) {
  Case other = c;
  const double shift = any_number(1);
  other[Slot::mask] =
      mapped(with_additive_mask(c).mask(), [&](std::int64_t, double old) { return sum_of(old, shift); });
  return agree({run(kernel, other), run(kernel, c)}, Match::bound);
}

// The sum in double: the proof sees a number that it knows nothing of.
Verdict shifted_in_double(Kernel& kernel, const Case& c) {
  Case other = c;
  const double shift = any_number(1);
  other[Slot::mask] = mapped(with_additive_mask(c).mask(), [&](std::int64_t, double old) { return old + shift; });
  return agree({run(kernel, other), run(kernel, c)}, Match::bound);
}

TEST(Prove, TellsAFalseStatement) {
  static constexpr std::array stated{needed(hypotheses::no_causal_form, "the test is about masks")};
  Property property{.name = "test.shift",
                    .hypotheses = stated,
                    .given = [](Draw& draw) -> Case { return draw.attention().masked().at_least(1, 2); },
                    .check = shifted_unevenly};
  EXPECT_EQ(prove(property, small).evidence, Evidence::different);
  property.check = shifted_evenly;
  EXPECT_EQ(prove(property, small).evidence, Evidence::symbolic);
  property.check = shifted_in_double;
  const Proof proof = prove(property, small);
  EXPECT_EQ(proof.evidence, Evidence::untreated) << proof.words;
  EXPECT_NE(proof.words.find("does not follow"), std::string::npos) << proof.words;
  property.check = [](Kernel&, const Case&) -> Verdict { return {}; };
  EXPECT_EQ(prove(property, small).evidence, Evidence::untreated) << "nothing was compared";
}

TEST(Prove, KeepsCertificates) {
  ProveOptions options = small;
  options.certificates = true;
  const Proof proof = prove(property_named("masked.key-value-deletion"), options);
  ASSERT_EQ(proof.evidence, Evidence::symbolic) << proof.words;
  ASSERT_FALSE(proof.certificates.empty());
  for (const SymbolicCertificate& certificate : proof.certificates) {
    EXPECT_TRUE(certificate.identical);
    EXPECT_EQ(certificate.difference, "0");
    EXPECT_NE(certificate.left.denominator.find('E'), std::string::npos) << certificate.text();
  }
}

ProveOptions by(BackEnd back_end, const ProofShape& shape) {
  return {.shapes = {shape}, .variants = 2, .back_end = back_end};
}

TEST(Prove, ProvesLargeShapesInAFiniteField) {
  for (const char* const name : {"attention.permutation-equivariance", "attention.key-value-permutation",
                                 "masked.key-value-deletion", "causal.prefix", "batch.independence"}) {
    const Proof proof = prove(property_named(name), by(BackEnd::finite_field, {12, 16, 4, 4, 2}));
    EXPECT_EQ(proof.evidence, Evidence::probabilistic) << name << ": " << proof.words;
    EXPECT_LE(proof.log2_error, largest_log2_error) << name;
  }
  // What it has no rule for it does not claim.
  for (const char* const name : {"softmax.nonnegative", "attention.split-merge", "attention.convex-hull"})
    EXPECT_EQ(prove(property_named(name), by(BackEnd::finite_field, {2, 3, 2, 2, 1})).evidence, Evidence::untreated)
        << name;
  Misled kernel([](Case& c) { c[Slot::v].set(0, 2 * c.v()[0]); });
  EXPECT_EQ(
      prove(property_named("attention.key-value-permutation"), by(BackEnd::finite_field, {12, 16, 4, 4, 2}), kernel)
          .evidence,
      Evidence::different);
}

TEST(Prove, FollowsWhatReachesAnOutput) {
  const ProofShape shape{5, 6, 3, 2, 2};
  const std::string_view local[] = {"softmax.row-locality", "attention.query-locality", "masked.suppression",
                                    "causal.no-leak",       "weights.suppression",      "multihead.suppression",
                                    "batch.independence"};
  for (const std::string_view name : local) {
    const Proof proof = prove(property_named(name), by(BackEnd::taint, shape));
    EXPECT_EQ(proof.evidence, Evidence::abstract) << name << ": " << proof.words;
  }
  EXPECT_EQ(prove(property_named("attention.key-value-permutation"), by(BackEnd::taint, shape)).evidence,
            Evidence::untreated)
      << "the sums are in another order";
  Misled leaks([](Case& c) { c.causal = Causal::none; });
  EXPECT_EQ(prove(property_named("causal.no-leak"), by(BackEnd::taint, shape), leaks).evidence, Evidence::untreated);
  Misled forgets([](Case& c) { c = without_mask(c); });
  EXPECT_EQ(prove(property_named("masked.suppression"), by(BackEnd::taint, shape), forgets).evidence,
            Evidence::untreated);
}

TEST(Prove, FollowsSigns) {
  const ProofShape shape{3, 4, 4, 2, 1};
  EXPECT_EQ(prove(property_named("softmax.nonnegative"), by(BackEnd::sign, shape)).evidence, Evidence::abstract);
  Misled turned([](Case& c) { c[Slot::v].set(0, -c.v()[0]); });
  EXPECT_EQ(prove(property_named("softmax.nonnegative"), by(BackEnd::sign, shape), turned).evidence,
            Evidence::untreated);
  EXPECT_EQ(prove(property_named("softmax.rows-sum-to-one"), by(BackEnd::sign, shape)).evidence, Evidence::untreated);
}

TEST(Prove, TellsInequalitiesThatDoNotHold) {
  // The largest value outside the hull of the others, or a weight lost: never proved.
  Misled kernel([](Case& c) { c[Slot::v].set(0, 2 * c.v()[0]); });
  EXPECT_EQ(prove(property_named("attention.convex-hull"), small, kernel).evidence, Evidence::untreated);
  Misled falling([](Case& c) { c.scale = -c.scale; });
  EXPECT_NE(prove(property_named("softmax.monotone"), small, falling).evidence, Evidence::symbolic);
  Misled steep([](Case& c) {
    if (c.mask().present() && c.mask().dtype() != DType::boolean)
      c[Slot::mask] = mapped(c.mask(), [](std::int64_t, double old) { return 2 * old; });
  });
  EXPECT_EQ(prove(property_named("masked.suppression-limit"), small, steep).evidence, Evidence::different);
  EXPECT_NE(prove(property_named("attention.lse-range"), small, falling).evidence, Evidence::symbolic);
}

TEST(Evidence, NamesTheStrongestFirstAndMergesNothing) {
  const EvidenceOptions options{.shapes = small.shapes};
  const Standing local = standing_of(property_named("causal.no-leak"), options);
  ASSERT_EQ(local.records.size(), 3U);
  EXPECT_EQ(local.records[0].level, "coq-all-shapes");
  EXPECT_EQ(local.records[0].words, "causal_no_leak, causal_no_leak__self, causal_no_leak__bottom_right");
  EXPECT_EQ(local.records[1].level, "symbolic");
  EXPECT_EQ(local.records[2].level, "abstract");
  EXPECT_NE(local.records[0].subject.find("compiled by Coq 8."), std::string::npos) << local.records[0].subject;
  // Of files that are not those that were compiled nothing is claimed.
  EvidenceOptions changed = options;
  changed.coq = "";
  const Standing not_compiled = standing_of(property_named("causal.no-leak"), changed);
  ASSERT_EQ(not_compiled.records.size(), 3U);
  EXPECT_EQ(not_compiled.records[0].level, "symbolic");
  EXPECT_EQ(not_compiled.records[2].level, "coq-not-compiled");
  const Standing statistical = standing_of(property_named("attention.expectation-sampling"), options);
  ASSERT_EQ(statistical.records.size(), 1U);
  EXPECT_EQ(statistical.records[0].level, "tested");
  EXPECT_NE(statistical.records[0].words.find("is statistical"), std::string::npos);
  const Standing refuted = standing_of(property_named("masked.conventions-differ"), options);
  EXPECT_EQ(refuted.records.back().level, "refuted");
  for (const Property* property : catalogue()) {
    const bool here = !coq_theorems(property->name).empty();
    EXPECT_EQ(here, standing_of(*property, {.shapes = {}, .variants = 1, .back_ends = {}}).records.size() == 1)
        << property->name;
  }
}

TEST(GenericInputs, StandForIndeterminates) {
  const std::unique_ptr<ProofBackEnd> back_end = make_back_end(BackEnd::symbolic);
  GenericInputs inputs(*back_end);
  inputs.declare(0x1.23456789abcdfp-1, "x");
  const Expression x = inputs.at(0x1.23456789abcdfp-1);
  const auto number = [](double value) { return ScalarTraits<Expression>::from_double(value); };
  EXPECT_TRUE(inputs.identical(inputs.at(-0x1.23456789abcdfp+3), number(-16) * x));
  EXPECT_TRUE(inputs.identical(inputs.at(0.75), number(0.75)));
  EXPECT_EQ(inputs.undeclared(), 0);
  EXPECT_EQ(inputs.particular(), std::set<double>{0.75});
  const Expression y = inputs.at(0x1.23456789abcddp-1);
  EXPECT_FALSE(inputs.identical(x, y));
  EXPECT_TRUE(inputs.identical(y, inputs.at(0x1.23456789abcddp-1)));
  EXPECT_EQ(inputs.undeclared(), 1);
  EXPECT_EQ(inputs.at(-std::numeric_limits<double>::infinity()).kind(), ProofKind::minus_infinity);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(inputs.identical(inputs.at(nan), inputs.at(nan))) << "whatever a dead place holds";
  EXPECT_TRUE(inputs.identical(inputs.at(inputs.stand_for(x * y)), x * y));
  EXPECT_THROW(inputs.declare(0.5, "constant"), ProofError);
  EXPECT_THROW(inputs.declare(0x1.23456789abcdfp+9, "x again"), ProofError);
  {
    const std::unique_ptr<ProofBackEnd> other = make_back_end(BackEnd::symbolic);
    GenericInputs inner(*other);
    EXPECT_EQ(&GenericInputs::current(), &inner);
  }
  EXPECT_EQ(&GenericInputs::current(), &inputs);
}

}  // namespace
}  // namespace attest
