// The arithmetic of kernels that were made to have it is found, and the kernels hold under what is declared.
#include "properties/diagnosis/arithmetic/probe_arithmetic.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "core/test/sanitizers.h"
#include "core/test/says.h"
#include "properties/road/redeclared_kernel.h"
#include "properties/test/catalogue/spoilt.h"
#include "properties/test/diagnosis/arithmetic/arithmetic_kernel.h"

namespace attest {
namespace {

using Order = Making::Order;

const ArithmeticFinding& finding_of(const ProbedArithmetic& probed, std::string_view question) {
  for (const ArithmeticFinding& one : probed.findings)
    if (one.question == question) return one;
  throw std::out_of_range(std::string(question));
}

/// Whether all cases of the oracle hold under what is declared, some hundred of them judged.
void expect_held(Kernel& kernel, const ProbedArithmetic& probed) {
  Manifest declared = kernel.manifest();
  declared.arithmetic.usual[probed.dtype] = probed.declare;
  RedeclaredKernel again(kernel, declared);
  const OutcomeCounts tally = tally_of("attention.oracle", again, /*cases=*/300, probed.dtype);
  EXPECT_EQ(tally.violated, 0) << kernel.id() << ": " << tally.reason << '\n' << declaration_of({&probed, 1});
  EXPECT_GE(tally.held, 200) << kernel.id();
}

/// What is printed is what a manifest may say.
void expect_valid(const ProbedArithmetic& probed) {
  const std::string manifest = R"({"name": "k", "dtypes": [")" + std::string(name_of(probed.dtype)) +
                               R"("], "variants": {"softcap": {}}, "arithmetic": )" + declaration_of({&probed, 1}) +
                               "}";
  Arithmetic declared = parse_manifest(manifest, "declared").arithmetic.usual_for(probed.dtype);
  // What is stated with the variants.
  declared.dropout = probed.declare.dropout, declared.slopes = probed.declare.slopes;
  declared.lse_of_columns = probed.declare.lse_of_columns, declared.descale = probed.declare.descale;
  EXPECT_EQ(declared, probed.declare) << manifest;
}

/// A kernel, and what is to be found: words of findings, and what holds of the declaration.
struct Kind {
  std::string name;
  Making make;
  std::map<std::string, std::string> findings;
  std::function<bool(const Arithmetic&)> declared;
};

void expect_found(const Kind& kind) {
  MadeKernel kernel(kind.name, kind.make);
  const ProbedArithmetic probed = probe_arithmetic(kernel, kind.make.input);
  EXPECT_FALSE(probed.declared_nothing);
  for (const auto& [question, words] : kind.findings) {
    const ArithmeticFinding& one = finding_of(probed, question);
    EXPECT_THAT(one.found, testing::StartsWith(words)) << kind.name << ", " << question << ": " << one.evidence;
  }
  EXPECT_TRUE(kind.declared(probed.declare)) << kind.name << ": " << declaration_of({&probed, 1});
  expect_valid(probed);
  expect_held(kernel, probed);
}

bool sums_in(const Arithmetic& a, std::int64_t block, bool pairwise) {
  return a.blocked_sums && a.blocked_sums->block == block && a.blocked_sums->pairwise == pairwise;
}

TEST(ProbeArithmetic, FindsTheOrderOfSums) {
  const auto any = [](const Arithmetic& a) { return !a.blocked_sums && !a.summation_depth; };
  for (const Kind& kind : {
           Kind{"one after another",
                {},
                {{"order of q.k", "one after another"},
                 {"order over keys", "one after another"},
                 {"sums over keys", "f32"},
                 {"weights before V", "not rounded"},
                 {"exp2", "no"},
                 {"q times scale before the product", "no"},
                 {"block of keys", "not told apart: none, the maximum being known first, or more than 4097"}},
                any},
           Kind{"backwards",
                {.dot = Order::backwards, .over_keys = Order::backwards},
                {{"order of q.k", "from the last to the first"}, {"order over keys", "from the last to the first"}},
                any},
           Kind{"pairwise",
                {.dot = Order::pairwise, .over_keys = Order::pairwise},
                {{"order of q.k", "pairwise"}, {"order over keys", "pairwise, neighbours first"}},
                [](const Arithmetic& a) { return sums_in(a, 1, true); }},
           Kind{"blocks of 16",
                {.dot = Order::blocks, .over_keys = Order::blocks, .dot_width = 16, .width = 16},
                {{"order of q.k", "blocks of 16, each one after another"},
                 {"order over keys", "blocks of 16, each one after another"}},
                [](const Arithmetic& a) { return sums_in(a, 16, false); }},
           Kind{"blocks of 64",
                {.over_keys = Order::blocks, .width = 64},
                {{"order over keys", "blocks of 64, each one after another"}},
                [](const Arithmetic& a) { return sums_in(a, 64, false); }},
           Kind{"four parts",
                {.over_keys = Order::parts, .width = 4},
                {{"order over keys", "4 equal parts, each one after another"}},
                [](const Arithmetic& a) { return sums_in(a, 4, false); }},
           Kind{"eight lanes",
                {.dot = Order::lanes, .over_keys = Order::lanes, .dot_width = 8, .width = 8},
                {{"order of q.k", "8 accumulators in turn, added pairwise"},
                 {"order over keys", "8 accumulators in turn, added pairwise"}},
                [](const Arithmetic& a) { return a.blocked_sums && a.blocked_sums->block == 8; }},
       })
    expect_found(kind);
}

TEST(ProbeArithmetic, ClaimsNothingThatALongerSumContradicts) {
  // Pairwise below 2000 keys and one after another above: neither is declared.
  expect_found({"other when long",
                {.over_keys = Order::pairwise, .width = 64, .other_from = 2000},
                {{"order over keys", "not told apart: 64 keys: pairwise"}},
                [](const Arithmetic& a) { return !a.blocked_sums && !a.summation_depth; }});
  // Another order for several queries.
  expect_found({"other of several rows",
                {.over_keys = Order::pairwise, .width = 64, .other_rows = 8},
                {{"order over keys", "not told apart: 64 keys: pairwise"}},
                [](const Arithmetic& a) { return !a.blocked_sums && !a.summation_depth; }});
  // The values pairwise, but the denominator one after another.
  expect_found({"denominator in turn",
                {.over_keys = Order::pairwise, .denominator_in_turn = true},
                {{"order over keys", "pairwise, neighbours first"}},
                [](const Arithmetic& a) { return !a.blocked_sums && !a.summation_depth; }});
}

TEST(ProbeArithmetic, FindsFormats) {
  if (under_address_sanitizer) GTEST_SKIP() << "minutes, of code that the other tests run as well";
  const auto wide = [](const Arithmetic& a) { return a.score_sums == DType::f32 && a.accumulate == DType::f32; };
  for (const Kind& kind : {
           Kind{"f16 sums",
                {.input = DType::f16, .score = DType::f16, .sums = DType::f16},
                {{"sums q.k and scores", "f16"}, {"sums over keys", "f16"}},
                [](const Arithmetic& a) { return a.score_sums == DType::f16 && a.accumulate == DType::f16; }},
           Kind{"double precision",
                {.input = DType::f64, .score = DType::f64, .sums = DType::f64, .block = 16},
                {{"sums q.k and scores", "f64"}, {"sums over keys", "f64"}, {"block of keys", "16 keys"}},
                [](const Arithmetic& a) { return a.score_sums == DType::f64 && a.block == 16; }},
           Kind{"double precision, scores stored in f32",
                {.input = DType::f64, .score = DType::f64, .sums = DType::f64, .stored = DType::f32},
                {{"scores in memory", "rounded as f32 rounds"}},
                [](const Arithmetic& a) { return a.stored_biased == DType::f32 && a.score_sums == DType::f64; }},
           Kind{"double precision, f32 weights",
                {.input = DType::f64, .score = DType::f64, .sums = DType::f64, .weights = DType::f32},
                {{"weights before V", "rounded to f32"}},
                [](const Arithmetic& a) { return a.weights == DType::f32; }},
           Kind{"double precision, scores in f32",
                {.input = DType::f64, .score = DType::f32, .sums = DType::f64, .block = 16},
                {{"sums q.k and scores", "f32"}, {"sums over keys", "f64"}},
                [](const Arithmetic& a) { return a.score_sums == DType::f32 && a.accumulate == DType::f64; }},
           Kind{"bf16 weights",
                {.input = DType::bf16, .block = 64, .weights = DType::bf16},
                {{"weights before V", "rounded to bf16"},
                 {"rounded weights in the denominator, bf16", "no"},
                 {"block of keys", "64 keys"}},
                [&](const Arithmetic& a) {
                  return wide(a) && a.weights == DType::bf16 && !a.weights_in_denominator && a.block == 64;
                }},
           Kind{"bf16 weights in f32",
                {.block = 16, .weights = DType::bf16},
                {{"weights before V", "rounded to bf16"}},
                [](const Arithmetic& a) { return a.weights == DType::bf16 && !a.weights_in_denominator; }},
           Kind{"rounded denominator",
                {.input = DType::f16, .block = 32, .weights = DType::f16, .rounded_denominator = true},
                {{"weights before V", "rounded to f16"}, {"rounded weights in the denominator, f16", "yes"}},
                [](const Arithmetic& a) { return a.weights == DType::f16 && a.weights_in_denominator; }},
           Kind{"f16 in, f32 weights",
                {.input = DType::f16, .block = 32},
                {{"weights before V", "not rounded"}, {"block of keys", "32 keys"}},
                [](const Arithmetic& a) { return a.weights == DType::f32 && a.block == 32; }},
           Kind{"scores stored in bf16",
                {.input = DType::bf16, .weights = DType::bf16, .normalise_first = true, .stored = DType::bf16},
                {{"scores in memory", "rounded as bf16 rounds"}},
                [](const Arithmetic& a) { return a.stored_biased == DType::bf16 && a.weights == DType::bf16; }},
           Kind{"scores stored in f16",
                {.stored = DType::f16},
                {{"scores in memory", "rounded as f16 rounds"}},
                [](const Arithmetic& a) { return a.stored_biased == DType::f16; }},
           Kind{"prescaled",
                {.prescaled = true},
                {{"q times scale before the product", "rounded to f32"}},
                [](const Arithmetic& a) { return a.prescaled_q == DType::f32; }},
           Kind{"prescaled in f16",
                {.input = DType::f16, .prescaled = true, .prescaled_format = DType::f16},
                {{"q times scale before the product", "rounded to f16"}},
                [](const Arithmetic& a) { return a.prescaled_q == DType::f16; }},
       })
    expect_found(kind);
}

TEST(ProbeArithmetic, FindsRoundingsAndTheSmallestNumbers) {
  for (const Kind& kind : {
           Kind{"truncates",
                {.block = 16, .truncates = true},
                {{"rounding of sums", "toward-zero"}, {"order over keys", "not asked"}},
                [](const Arithmetic& a) { return a.rounding == Rounding::toward_zero && !a.blocked_sums; }},
           Kind{"cuts its output",
                {.input = DType::bf16, .block = 16, .cuts = true},
                {{"store of the output", "cut toward zero"}},
                [](const Arithmetic& a) { return a.weights == DType::bf16 && a.weights_in_denominator; }},
           Kind{"cuts its output in f16",
                {.input = DType::f16, .block = 16, .weights = DType::f16, .cuts = true},
                {{"store of the output", "cut toward zero"}},
                [](const Arithmetic& a) { return a.weights == DType::f16 && a.weights_in_denominator; }},
           Kind{"flushes results",
                {.block = 64, .flushes = true},
                {{"numbers below the smallest normal one", "results: 0, inputs: kept"}},
                [](const Arithmetic& a) { return a.flushes_subnormals && !a.flushes_inputs; }},
           Kind{"flushes inputs",
                {.flushes = true, .flushes_inputs = true},
                {{"numbers below the smallest normal one", "results: 0, inputs: read as 0"}},
                [](const Arithmetic& a) { return a.flushes_subnormals && a.flushes_inputs; }},
       })
    expect_found(kind);
}

TEST(ProbeArithmetic, FindsExponentialsAndTheMaximum) {
  for (const Kind& kind : {
           Kind{"online per key",
                {.block = 1},
                {{"block of keys", "1 key"}},
                [](const Arithmetic& a) { return a.block == 1 && a.max == MaxPolicy::running; }},
           Kind{"online, blocks summed apart",
                {.over_keys = Order::sequential, .block = 32, .block_sums = true},
                {{"block of keys", "32 keys"}, {"order over keys", "blocks of 32, each one after another"}},
                [](const Arithmetic& a) { return a.block == 32 && sums_in(a, 32, false); }},
           Kind{"exp2",
                {.block = 32, .exp2 = true},
                {{"exp2", "yes"}, {"maximum folded into exp2", "no"}, {"block of keys", "32 keys"}},
                [](const Arithmetic& a) { return a.base2 && !a.folded_exp2 && a.block == 32; }},
           Kind{"folded exp2",
                {.block = 32, .exp2 = true, .folded = true},
                {{"exp2", "yes"}, {"maximum folded into exp2", "yes"}, {"block of keys", "32 keys"}},
                [](const Arithmetic& a) { return a.base2 && a.folded_exp2 && a.block == 32; }},
           Kind{"an exp of 8 ulp",
                {.exp_ulp = 16},
                {{"error of exp", "up to 8"}},
                [](const Arithmetic& a) { return a.exp_ulp >= 9 && a.exp_ulp <= 12; }},
           Kind{"an exp of 12 bits",
                {.exp_ulp = 4096},
                {{"weights before V", "not told apart: errors as of weights in f16"}},
                [](const Arithmetic& a) { return a.exp_ulp >= 2048 && a.weights == DType::f16; }},
           Kind{"weights in bf16, which hide what exp does",
                {.input = DType::bf16, .block = 16, .weights = DType::bf16},
                {{"error of exp", "not told below 6.1e-05 of it: the rounding of the weights to bf16 hides it"}},
                [](const Arithmetic& a) { return a.exp_ulp == 0 && a.weights == DType::bf16; }},
           Kind{"lazy",
                {.block = 16, .lazy = 8},
                {{"maximum", "lazy: it follows only a rise of more than 6 to 8"}},
                [](const Arithmetic& a) { return a.max == MaxPolicy::lazy && a.lazy_nats == 8; }},
           Kind{"lazy in bf16",
                {.input = DType::bf16, .block = 16, .weights = DType::bf16, .lazy = 8},
                {{"maximum", "lazy: it follows only a rise of more than 6 to 8"}},
                [](const Arithmetic& a) { return a.max == MaxPolicy::lazy && a.lazy_nats == 8; }},
           Kind{"no maximum",
                {.no_maximum = true},
                {{"maximum", "none is taken"}},
                [](const Arithmetic& a) { return a.max == MaxPolicy::none; }},
       })
    expect_found(kind);
}

TEST(ProbeArithmetic, HoldsRightKernelsToWhatItDeclares) {
  if (under_address_sanitizer) GTEST_SKIP() << "minutes, of code that the other tests run as well";
  for (const char* const id : {"builtin:two-pass", "builtin:flash-exp2", "builtin:split-k", "builtin:mixed",
                               "control:three-splits", "control:stored-scores", "control:prescaled-queries"}) {
    const auto kernel = registered(id);
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      const ProbedArithmetic probed = probe_arithmetic(*kernel, dtype);
      for (const ArithmeticFinding& one : probed.findings)
        EXPECT_FALSE(one.contradicts) << id << ' ' << name_of(dtype) << ", " << one.question << ": " << one.found;
      if (!probed.declared_nothing) expect_valid(probed);
      expect_held(*kernel, probed);
    }
  }
}

TEST(ProbeArithmetic, AsksNothingThatTheManifestRulesOut) {
  /// Calls of the kernel beyond its limits.
  class Limited : public MadeKernel {
   public:
    Limited() : MadeKernel("limited", {.block = 16}) {
      Manifest& m = manifest();
      m.head_dims = {64, 128}, m.value_dim_equals_head_dim = true;
      m.keys_multiple = 16, m.max_keys = 512, m.min_keys = 16, m.any_scale = false, m.max_queries = 1;
    }
    Reply run(const Case& c, std::optional<DType> output, bool want_lse) override {
      if (!why_unsupported(manifest(), c).empty()) ++beyond;
      longest = std::max(longest, c.k().shape()[2]);
      return MadeKernel::run(c, output, want_lse);
    }
    int beyond = 0;
    std::int64_t longest = 0;
  } kernel;
  const ProbedArithmetic probed = probe_arithmetic(kernel, DType::f32);
  EXPECT_EQ(kernel.beyond, 0);
  EXPECT_EQ(kernel.longest, 512) << "what is found of few keys is asked again of as many as there may be";
  EXPECT_EQ(probed.declare.block, 16);
  EXPECT_THAT(finding_of(probed, "order over keys").found, Says("one after another"));
  expect_held(kernel, probed);

  MadeKernel masked("masked", {});
  masked.manifest().required = {Feature::mask};
  const ProbedArithmetic none = probe_arithmetic(masked, DType::f32);
  EXPECT_TRUE(none.declared_nothing);
  EXPECT_EQ(none.declare, masked.manifest().arithmetic.usual_for(DType::f32));
  EXPECT_EQ(declaration_of({&none, 1}), "");
  EXPECT_THAT(none.findings.at(0).found, Says("not asked: the plain problem"));
}

TEST(ProbeArithmetic, ContradictsADeclarationThatIsTighter) {
  MadeKernel kernel("f16 sums", {.input = DType::f16, .score = DType::f16, .sums = DType::f16});
  const ProbedArithmetic probed = probe_arithmetic(kernel, DType::f16);
  EXPECT_TRUE(finding_of(probed, "sums over keys").contradicts) << "f32 is assumed";
  EXPECT_THAT(finding_of(probed, "sums over keys").evidence, Says("11 bits, rounded to nearest over 4 keys"));
  kernel.manifest().arithmetic.usual.at(DType::f16) = probed.declare;
  for (const ArithmeticFinding& one : probe_arithmetic(kernel, DType::f16).findings)
    EXPECT_FALSE(one.contradicts) << one.question << ": " << one.found;
}

TEST(ProbeArithmetic, TellsNothingOfAKernelThatDoesNotAnswer) {
  class Silent : public MadeKernel {
   public:
    Silent() : MadeKernel("silent", {}) {}
    Reply run(const Case&, std::optional<DType>, bool) override {
      return {CallStatus::unsupported, "not today", {}, {}};
    }
  } kernel;
  const ProbedArithmetic probed = probe_arithmetic(kernel, DType::f32);
  EXPECT_EQ(probed.declare, kernel.manifest().arithmetic.usual_for(DType::f32));
  EXPECT_THAT(finding_of(probed, "sums over keys").found, Says("not today"));
  for (const ArithmeticFinding& one : probed.findings) EXPECT_FALSE(one.contradicts) << one.question;
}

}  // namespace
}  // namespace attest
