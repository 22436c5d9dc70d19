// Probes find what a right kernel does, and what a kernel makes of a question that it takes otherwise.
#include "properties/diagnosis/probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/support/errors.h"
#include "core/test/sanitizers.h"
#include "core/test/says.h"
#include "properties/arrangement/arrange.h"
#include "properties/diagnosis/arithmetic/probe_denominator.h"
#include "properties/test/catalogue/spoilt.h"
#include "properties/test/diagnosis/arithmetic/arithmetic_kernel.h"

namespace attest {
namespace {

/// What is left of a manifest that states nothing but what it must.
void forget(Manifest& m) {
  m.claims.clear();
  m.fully_masked_row = FullyMaskedRow::undeclared;
  m.mask_conventions = {MaskConvention::post_scale};
  m.causal.clear();
  m.grouped_query = m.strides = m.lse = false;
}

const ProbeAnswer& answer_to(const Probed& probed, std::string_view question) {
  for (const ProbeAnswer& answer : probed.answers)
    if (answer.question == question) return answer;
  throw std::out_of_range(std::string(question));
}

TEST(Probe, FindsAllThatARightKernelDoes) {
  for (const char* const id : {"builtin:flash", "builtin:two-pass", "core:double"}) {
    Tampered kernel(registered(id), [](Case&) {});
    const Manifest real = kernel.manifest();
    forget(kernel.manifest());
    const Probed probed = probe(kernel, 1);
    for (const ProbeAnswer& answer : probed.answers)
      EXPECT_FALSE(answer.contradicts) << id << ' ' << answer.question << ": " << answer.found;
    const Manifest& found = probed.manifest;
    EXPECT_EQ(found.any_scale, real.any_scale) << id;
    EXPECT_EQ(found.mask_conventions, real.mask_conventions) << id;
    EXPECT_EQ(found.causal, real.causal) << id;
    EXPECT_EQ(found.fully_masked_row, real.fully_masked_row) << id;
    EXPECT_EQ(found.grouped_query, real.grouped_query) << id;
    EXPECT_EQ(found.lse, real.lse) << id;
    EXPECT_EQ(found.strides, real.strides) << id;
    EXPECT_EQ(found.head_dim_multiple, 1) << id;
    for (const Claim claim : real.claims) EXPECT_TRUE(found.claims_to(claim)) << id << ' ' << name_of(claim);
    // What is printed can be kept.
    EXPECT_EQ(parse_manifest(to_json(found), "found"), found) << id;
  }
}

TEST(Probe, IsTheSameForASeed) {
  const auto kernel = registered("builtin:flash");
  const Probed one = probe(*kernel, 7), other = probe(*kernel, 7);
  EXPECT_EQ(one.manifest, other.manifest);
  ASSERT_EQ(one.answers.size(), other.answers.size());
  for (std::size_t i = 0; i < one.answers.size(); ++i) EXPECT_EQ(one.answers[i].found, other.answers[i].found);
}

void expect_read(Tampered kernel, std::string_view question, std::string_view found, bool contradicts = true) {
  const Probed probed = probe(kernel, 1);
  EXPECT_THAT(answer_to(probed, question).found, Says(found));
  EXPECT_EQ(answer_to(probed, question).contradicts, contradicts) << question;
}

TEST(Probe, ReadsWhatAKernelTakesAQuestionFor) {
  expect_read(asked_otherwise([](Case& c) { c.scale = inverse_root(c.q().shape()[3]); }), "any scale",
              "1/sqrt(dk) whatever is asked");
  expect_read(asked_otherwise([](Case& c) {
                if (c.mask().present() && c.mask().dtype() == DType::boolean)
                  c[Slot::mask] = mapped(c.mask(), [](std::int64_t, double old) { return 1 - old; });
              }),
              "boolean mask", "true: hidden");
  expect_read(asked_otherwise([](Case& c) { c[Slot::mask] = Tensor(); }), "boolean mask", "ignored");
  expect_read(asked_otherwise([](Case& c) { c[Slot::mask] = Tensor(); }), "additive mask after the scale", "ignored");
  expect_read(asked_otherwise([](Case& c) { c.mask_convention = MaskConvention::pre_scale; }),
              "additive mask after the scale", "scale·(qk + mask)");
  expect_read(asked_otherwise([](Case& c) { c.mask_convention = MaskConvention::post_scale; }),
              "additive mask before the scale", "scale·qk + mask");
  expect_read(asked_otherwise([](Case& c) {
                if (c.causal != Causal::none) c.causal = Causal::top_left;
              }),
              "causal, bottom-right", "top-left");
  expect_read(asked_otherwise([](Case& c) { c.causal = Causal::none; }), "causal, top-left", "ignored");
  expect_read(asked_otherwise([](Case& c) {
                const std::int64_t heads = c.q().shape()[1], kv = c.k().shape()[1];
                if (heads == kv) return;
                for (const Slot slot : {Slot::k, Slot::v}) {
                  const Tensor old = c[slot];
                  const std::int64_t page = old.shape()[2] * old.shape()[3];
                  Tensor wide(old.dtype(), {old.shape()[0], heads, old.shape()[2], old.shape()[3]});
                  for (std::int64_t e = 0; e < wide.elements(); ++e) {
                    const std::int64_t head = e / page;
                    wide.set(e, old[(head / heads * kv + head % heads % kv) * page + e % page]);
                  }
                  c[slot] = wide;
                }
              }),
              "grouped queries", "h mod the key-value heads");
}

TEST(Probe, ReadsRowsWithoutAKeyAndTheLogarithm) {
  const auto answering = [](const Tampered::Answer& answer) { return answered_otherwise(answer, "core:double"); };
  const auto replaced = [&](double value) {
    return answering(each_out([value](double old) { return std::isnan(old) ? value : old; }));
  };
  expect_read(replaced(0.0), "row without a key", "zero");
  expect_read(replaced(0.75), "row without a key", "something else, such as 0.75");
  expect_read(answering(each_lse([](double old) { return old / 0.69314718055994530942; })), "log-sum-exp",
              "logarithm to base 2");
  expect_read(answering(each_lse([](double old) { return old + 1; })), "log-sum-exp", "another number");
}

/// A control, which is right, under a manifest that says of its weights what the test is about.
Tampered control(std::string_view name, DType dtype, DType weights, bool in_denominator) {
  Tampered kernel = asked_otherwise([](Case&) {}, "control:" + std::string(name));
  kernel.manifest().dtypes = {dtype};
  kernel.manifest().arithmetic.usual.at(dtype).weights = weights;
  kernel.manifest().arithmetic.usual.at(dtype).weights_in_denominator = in_denominator;
  return kernel;
}

TEST(Probe, AsksWhichWeightsTheDenominatorSums) {
  if (under_address_sanitizer) GTEST_SKIP() << "minutes, of code that the other tests run as well";
  struct Row {
    std::string_view name;
    DType dtype;
    DType weights;
    std::string_view found;
  };
  for (const Row& row :
       {Row{"large-blocks", DType::bf16, DType::bf16, "no"},  // unrounded
        Row{"large-blocks", DType::f16, DType::f16, "no"}, Row{"three-splits", DType::bf16, DType::bf16, "no"},
        Row{"exp2", DType::f16, DType::f16, "no"}, Row{"lazy", DType::bf16, DType::bf16, "yes"},  // summed as rounded
        Row{"lazy", DType::f16, DType::f16, "yes"}, Row{"bf16-weights", DType::f32, DType::bf16, "yes"},
        Row{"stored-scores", DType::bf16, DType::bf16, "no"},  // normalised first
        Row{"backwards", DType::bf16, DType::bf16, "cannot tell: the weights are not rounded to bf16"},
        Row{"small-blocks", DType::f32, DType::bf16, "cannot tell: the weights are not rounded to bf16"}}) {
    for (const bool declared : {false, true}) {
      Tampered kernel = control(row.name, row.dtype, row.weights, declared);
      const Probed probed = probe(kernel, 1);
      const ProbeAnswer& answer =
          answer_to(probed, "rounded weights in the denominator, " + std::string(name_of(row.dtype)));
      EXPECT_EQ(answer.found, row.found) << row.name << " in " << name_of(row.dtype);
      EXPECT_EQ(answer.declared, declared ? "yes" : "no");
      EXPECT_EQ(answer.contradicts, row.found == "yes" && !declared) << row.name;
      EXPECT_EQ(answer.beyond, row.found == "no" && declared) << row.name;
      const bool kept = probed.manifest.arithmetic.usual_for(row.dtype).weights_in_denominator;
      EXPECT_EQ(kept, row.found == "yes" || (row.found != "no" && declared)) << row.name;
    }
  }
  // Parts of a few keys, merged.
  const auto parts = registered("builtin:split-k");
  EXPECT_EQ(answer_to(probe(*parts, 1), "rounded weights in the denominator, bf16").found, "no");
  // Weights as wide as the scores are not asked about.
  Tampered wide = control("large-blocks", DType::f32, DType::f32, false);
  EXPECT_THROW(static_cast<void>(answer_to(probe(wide, 1), "rounded weights in the denominator, f32")),
               std::out_of_range);
}

TEST(Probe, ExcludesEveryReadingByAnAnswerThatIsNone) {
  Tampered kernel = answered_otherwise([](Reply& reply) { reply.out.set(0, std::nan("")); }, "control:lazy");
  const Denominator found = denominator_of(kernel, DType::bf16);
  EXPECT_EQ(found.words, "cannot tell: an answer that fits no reading");
  EXPECT_FALSE(found.may_be_rounded);
}

TEST(Probe, TellsClaimsThatFail) {
  int call = 0;
  Tampered restless = answered_otherwise([&call](Reply& reply) {
    ++call;
    if (call % 2 == 0 && reply.out.elements() > 0 && reply.out[0] != 0)
      reply.out.set(0, reply.out.tensor().dtype() == DType::f32
                           ? static_cast<double>(std::nextafter(static_cast<float>(reply.out[0]), 1e30F))
                           : reply.out[0]);
  });
  const Probed probed = probe(restless, 1);
  EXPECT_TRUE(answer_to(probed, "claim deterministic").contradicts);
  EXPECT_FALSE(probed.manifest.claims_to(Claim::deterministic));
  EXPECT_TRUE(probed.contradicted());
}

TEST(Probe, TellsHeadDimensionsAndWhatIsUnsupported) {
  class Multiples : public Tampered {
   public:
    Multiples() : Tampered(registered("builtin:two-pass"), [](Case&) {}) {}
    Reply run(const Case& c, std::optional<DType> output, bool want_lse) override {
      const std::int64_t dk = c.q().shape()[3], dv = c.v().shape()[3];
      if (dk % 8 != 0 || dk > 128 || dv != dk) return {CallStatus::unsupported, "dk", {}, {}};
      return Tampered::run(c, output, want_lse);
    }
  } kernel;
  const Probed probed = probe(kernel, 1);
  EXPECT_FALSE(probed.contradicted()) << "it says what it cannot do";
  EXPECT_EQ(probed.manifest.head_dim_multiple, 8);
  EXPECT_EQ(probed.manifest.max_head_dim, 128);
  EXPECT_TRUE(probed.manifest.value_dim_equals_head_dim);
}

/// The multihead entry of the core alone.
Tampered multihead(const Tampered::Question& question, const Tampered::Answer& answer = [](Reply&) {}) {
  Tampered kernel(registered("core:float"), question, answer);
  kernel.manifest().attention = false;
  return kernel;
}

TEST(ProbeMultihead, FindsAllThatARightKernelDoes) {
  Tampered kernel = multihead([](Case&) {});
  const Manifest real = kernel.manifest();
  forget(kernel.manifest());
  const Probed probed = probe(kernel, 1);
  for (const ProbeAnswer& answer : probed.answers)
    EXPECT_FALSE(answer.contradicts) << answer.question << ": " << answer.found;
  EXPECT_EQ(probed.manifest.any_scale, real.any_scale);
  EXPECT_EQ(probed.manifest.mask_conventions, real.mask_conventions);
  EXPECT_EQ(probed.manifest.causal, real.causal);
  EXPECT_EQ(probed.manifest.fully_masked_row, real.fully_masked_row);
  EXPECT_EQ(probed.manifest.strides, real.strides);
  EXPECT_EQ(answer_to(probed, "columns of head h").found, "h·d, h·d + 1, …");
  EXPECT_EQ(answer_to(probed, "bias_k and bias_v").found, "a further key");
  EXPECT_EQ(answer_to(probed, "values of another width").found, "yes");
  EXPECT_EQ(answer_to(probed, "head dimensions").found, "multiples of 1 up to 32, of those tried");
  for (const Claim claim : real.claims) EXPECT_TRUE(probed.manifest.claims_to(claim)) << name_of(claim);
}

/// The columns of heads that lie interleaved, each head's brought together.
void read_interleaved(Case& c) {
  const auto gather = [&](Slot slot, bool rows) {
    const Tensor old = c[slot];
    if (!old.present()) return;
    const std::int64_t columns = old.shape()[old.shape().rank() - 1], axis = rows ? old.shape()[0] : columns;
    const std::int64_t d = axis / c.heads;
    for (std::int64_t e = 0; e < old.elements(); ++e) {
      const std::int64_t at = rows ? e / columns : e % columns, from = at % d * c.heads + at / d;
      c[slot].set(e, old[rows ? from * columns + e % columns : e / columns * columns + from]);
    }
  };
  for (const Slot slot : {Slot::w_q, Slot::w_k, Slot::w_v, Slot::b_q, Slot::b_k, Slot::b_v})
    gather(slot, /*rows=*/false);
  gather(Slot::w_o, /*rows=*/true);
}

TEST(ProbeMultihead, ReadsWhatAKernelTakesAQuestionFor) {
  // A head of one column, the only one that it has right, lies where it should.
  expect_read(multihead(read_interleaved), "columns of head h", "h, h + heads, …");
  expect_read(multihead([](Case& c) { c.scale = inverse_root(c[Slot::w_q].shape()[1] / c.heads); }), "any scale",
              "1/sqrt(dk) whatever is asked");
  expect_read(multihead([](Case& c) {
                if (c.mask().present() && c.mask().dtype() == DType::boolean)
                  c[Slot::mask] = mapped(c.mask(), [](std::int64_t, double old) { return 1 - old; });
              }),
              "boolean mask", "true: hidden");
  expect_read(multihead([](Case& c) { c.causal = c.causal == Causal::none ? Causal::none : Causal::top_left; }),
              "causal, bottom-right", "top-left");
  expect_read(multihead([](Case& c) { c[Slot::bias_k] = c[Slot::bias_v] = Tensor(); }), "bias_k and bias_v", "ignored");
  expect_read(multihead([](Case& c) {
                if (c[Slot::b_o].present() || c.mask().present() || !c[Slot::w_o].present()) return;
                c[Slot::w_o] = mapped(c[Slot::w_o], [](std::int64_t, double old) { return -old; });
              }),
              "no biases", "an answer that fits no reading");
  expect_read(multihead([](Case&) {}, each_out([](double old) { return std::isnan(old) ? 0.0 : old; })),
              "row without a key", "zero");
  Tampered self = multihead([](Case& c) { c[Slot::k] = c[Slot::v] = c.q(); });
  self.manifest().self_attention_only = true;
  const Probed probed = probe(self, 1);
  EXPECT_FALSE(probed.contradicted()) << "it offers no other tokens";
  EXPECT_TRUE(probed.manifest.self_attention_only);
  EXPECT_EQ(answer_to(probed, "causal, bottom-right").found, "bottom-right");
}

TEST(Probe, ReadsAKernelThatIsRightByTheArithmeticThatIsFound) {
  MadeKernel kernel("f16 sums", {.input = DType::f16, .score = DType::f16, .sums = DType::f16});
  const Probed probed = probe(kernel, 1);
  EXPECT_EQ(answer_to(probed, "sums over keys").declared, "f32") << "what the manifest means";
  EXPECT_TRUE(answer_to(probed, "sums over keys").contradicts);
  EXPECT_THAT(answer_to(probed, "sums over keys").evidence, Says("11 bits"));
  EXPECT_EQ(answer_to(probed, "boolean mask").found, "true: may attend");
  EXPECT_EQ(probed.manifest.arithmetic.usual_for(DType::f16).accumulate, DType::f16);
  EXPECT_EQ(probed.manifest.arithmetic.usual_for(DType::f16), probed.arithmetics.at(0).declare);
  EXPECT_EQ(parse_manifest(to_json(probed.manifest), "found"), probed.manifest);
}

TEST(Probe, AsksForTheArithmeticOfSeveralDtypes) {
  const auto kernel = registered("builtin:two-pass");
  const Probed probed = probe(*kernel, 1, {DType::f32, DType::bf16});
  EXPECT_EQ(probed.arithmetics.size(), 2U);
  EXPECT_EQ(answer_to(probed, "sums over keys").found, "f32 (24 bits, rounded to nearest)");
  EXPECT_THAT(answer_to(probed, "weights before V, bf16").found, Says("bf16"));
  EXPECT_THROW(static_cast<void>(probe(*kernel, 1, {DType::f8_e4m3})), UsageError);
}

TEST(Probe, RefusesWhatCannotBeRead) {
  Tampered wrong = answered_otherwise(each_out([](double old) { return -old; }));
  EXPECT_THROW(static_cast<void>(probe(wrong, 1)), UsageError);
  Tampered nan = answered_otherwise(each_out([](double) { return NAN; }));
  EXPECT_THROW(static_cast<void>(probe(nan, 1)), UsageError);
}

}  // namespace
}  // namespace attest
