// A finding as a script: what may stand in it, what is refused, and that every bit of the input survives.
#include "reports/formats/reproducer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <sstream>

#include "core/kernels/kernel_families.h"
#include "core/support/json_writer.h"
#include "core/test/cases.h"
#include "core/test/says.h"
#include "properties/faults/faults.h"
#include "reports/formats/reproducer_text.h"
#include "reports/test/fakes.h"
#include "reports/test/shell.h"

namespace attest {
namespace {

using testing::Eq;

constexpr double infinity = std::numeric_limits<double>::infinity();

const Property& oracle() {
  return property_named("attention.oracle");
}

std::unique_ptr<Kernel> kernel_named(const std::string& name) {
  [[maybe_unused]] static const bool planted = (add_kernel_family(fault_kernels), true);
  return std::move(open_kernels(name, {}).front());
}

/// Two keys of one column; the answer is 1.5, and zero is wrong.
Case two_keys(DType dtype = DType::f32) {
  return test::one_query(dtype, {0.0}, {0.0, 0.0}, {1.0, 2.0});
}

Verdict violated_by(Violation violation) {
  Verdict verdict;
  verdict.outcome = Outcome::violated;
  verdict.violation = violation;
  return verdict;
}

Reproducer of_zeros(const Case& c) {
  return reproducer_of(c, oracle(), violated_by(Violation::bound), *kernel_named("fault:all-zeros"), "--script x");
}

std::string refusal_of(const Case& c, const std::string& kernel, const Verdict& verdict,
                       const Property& property = oracle()) {
  try {
    (void)reproducer_of(c, property, verdict, *kernel_named(kernel), "--script x");
  } catch (const UsageError& refused) {
    EXPECT_THAT(refused.what(), testing::AllOf(testing::StartsWith("--script x: "), NeverSays("\n")));
    return refused.what();
  }
  return "(made)";
}

TEST(Reproducer, HasTheLanguageOfItsSuffix) {
  EXPECT_EQ(script_language_of("a/b.py"), ScriptLanguage::python);
  for (const char* name : {"b.c", "b.cc", "b.cpp"}) EXPECT_EQ(script_language_of(name), ScriptLanguage::c) << name;
  for (const char* name : {"b", ".py", "b.PY", "b.py.txt", "b.h", ""})
    EXPECT_FALSE(script_language_of(name).has_value()) << name;
}

TEST(Reproducer, NamesTheElementsThatAreWrong) {
  Case c = test::one_query(DType::f32, {0.0}, {0.0, 0.0}, {1, 0, 1, 2, 3, 1, 0, 1, 2, 3});
  const Reproducer made = of_zeros(c);
  EXPECT_EQ(made.wrong_in_all, 4);
  EXPECT_EQ(made.elements, 5);
  ASSERT_EQ(made.wrong.size(), most_wrong_elements);
  EXPECT_EQ(made.wrong[0].element, 0);
  // The second column is zero, and so is the answer.
  EXPECT_EQ(made.wrong[1].element, 2);
  EXPECT_EQ(made.wrong[1].found, 0.0);
  EXPECT_EQ(made.wrong[1].exact.lower, 1.0);
  EXPECT_GT(made.wrong[1].allowed, 0);
  EXPECT_LT(made.wrong[1].allowed, 1e-5);
}

TEST(Reproducer, IsOfTheSideOfALawThatIsWrongByItself) {
  // The answer to the case itself is zero, as the kernel says.
  const Case right = test::one_query(DType::f32, {0.0}, {0.0}, {0.0});
  Verdict verdict = violated_by(Violation::bound);
  verdict.compared = {{std::make_shared<const Case>(right), 0, 0.0},
                      {std::make_shared<const Case>(two_keys()), 0, 0.0}};
  const Reproducer made = reproducer_of(right, oracle(), verdict, *kernel_named("fault:all-zeros"), "--script x");
  EXPECT_EQ(made.problem, static_cast<const Problem&>(two_keys()));
  EXPECT_THAT(refusal_of(right, "builtin:two-pass", verdict), Says("each of which is within its bound"));
}

TEST(Reproducer, RefusesWhatAScriptCannotShow) {
  const std::string right = "builtin:two-pass";
  EXPECT_THAT(refusal_of(two_keys(), right, violated_by(Violation::lse)), Says("log-sum-exp"));
  EXPECT_THAT(refusal_of(two_keys(), right, violated_by(Violation::bits)), Says("bits that differ"));
  EXPECT_THAT(refusal_of(two_keys(), right, violated_by(Violation::bound)),
              Says("no element", "hand on the case file"));
  Case strided = two_keys();
  strided.provenance.strides = "q=every-other";
  EXPECT_THAT(refusal_of(strided, right, violated_by(Violation::bound)), Says("row-major"));
  Case multihead;
  multihead.operation = Operation::multihead;
  EXPECT_THAT(refusal_of(multihead, right, violated_by(Violation::bound), property_named("multihead.oracle")),
              Says("multihead.oracle", "multi-head"));
}

TEST(Reproducer, RefusesWhatIsTooLargeToRead) {
  int next = 0;
  const auto counted = [&](std::int64_t keys) {
    return test::attention_of({.keys = keys, .dk = 1, .dv = 1}, [&](Slot, const Shape& shape) {
      return test::filled(DType::f32, shape, [&] { return 1.0 + (next++ % 1000); });
    });
  };
  const Verdict verdict = violated_by(Violation::bound);
  // One query, and a key and a value each.
  EXPECT_THAT(refusal_of(counted(2047), "fault:all-zeros", verdict), Eq("(made)"));
  EXPECT_THAT(refusal_of(counted(2048), "fault:all-zeros", verdict), Says("4,097 numbers", "4,096 are the most"));
  // Ones cost nothing to write down.
  const auto ones = [](std::int64_t queries, std::int64_t keys) {
    return test::attention_of({.queries = queries, .keys = keys, .dk = 1, .dv = 1}, [](Slot, const Shape& shape) {
      return test::filled(DType::f32, shape, [] { return 1.0; });
    });
  };
  EXPECT_THAT(refusal_of(ones(1, 10'000), "fault:all-zeros", verdict), Eq("(made)"));
  EXPECT_THAT(refusal_of(ones(4096, 4096), "fault:all-zeros", verdict), Says("33,554,432 multiplications"));
  EXPECT_THAT(refusal_of(ones(1, 600'000), "fault:all-zeros", verdict), Says("1,200,001 numbers"));
  Case backward = ones(512, 512);
  EXPECT_THAT(refusal_of(backward, "fault:all-zeros", verdict), Eq("(made)"));
  backward[Slot::d_out] = backward.q();
  EXPECT_THAT(refusal_of(backward, "fault:all-zeros", verdict),
              Says("524,288 multiplications, and 262,144 are the most"));
}

TEST(Reproducer, RoundsWhatIsRightToTheDigitsThatAreCertain) {
  EXPECT_EQ(certain_digits({0.5, 0.5}), "0.5");
  EXPECT_EQ(certain_digits({-0.0, -0.0}), "0");
  EXPECT_EQ(certain_digits({0x1.5555555555555p-2, 0x1.5555555555556p-2}), "0.333333333333333");
  EXPECT_EQ(certain_digits({0x1.fffffffffffffp-1, 0x1.0000000000001p0}), "1");
  EXPECT_EQ(certain_digits({1.24, 1.26}), "1");
}

TEST(Reproducer, WritesRunsInTheirPlace) {
  Tensor tensor(DType::f32, {1, 1, 1, 24});
  EXPECT_EQ(runs_of(tensor).size(), 1U);
  EXPECT_TRUE(is_told_by_runs(tensor, runs_of(tensor)));
  tensor.set(7, -0.0);
  EXPECT_EQ(runs_of(tensor).size(), 3U) << "-0 is another number";
  Case c = test::one_query(DType::f32, std::vector<double>(24, 0.0), std::vector<double>(24, 0.0), {1.0});
  c[Slot::q] = tensor;
  const std::string python = script_of(of_zeros(c), ScriptLanguage::python);
  EXPECT_THAT(python, Says("\nq = ([0.0] * 7 + [-0.0] + [0.0] * 16)\n", "\nk = [0.0] * 24\n"));
  EXPECT_THAT(script_of(of_zeros(c), ScriptLanguage::c),
              Says("q_runs[] = {{7, 0x0p+0f}, {1, -0x0p+0f}, {16, 0x0p+0f}};"));
}

/// Numbers of a format as bits: zeros of both signs, subnormals, the largest, infinities, NaNs of several payloads.
std::vector<std::uint64_t> awkward_bits(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return {0,
              1ULL << 63U,
              1,
              0x000fffffffffffff,
              0x7fefffffffffffff,
              0x3fb999999999999a,
              0xbff0000000000001,
              0x7ff0000000000000,
              0xfff0000000000000,
              0x7ff8000000000000,
              0x7ff0000000000001,
              0xfff8000000000123};
    case DType::f32:
      return {0,          0x80000000, 1,          0x007fffff, 0x7f7fffff, 0x3dcccccd,
              0xbf800001, 0x7f800000, 0xff800000, 0x7fc00000, 0x7f800001, 0xffc00123};
    case DType::f16:
      return {0, 0x8000, 1, 0x03ff, 0x7bff, 0x2e66, 0xbc01, 0x7c00, 0xfc00, 0x7e00, 0x7c01, 0xfe12};
    case DType::bf16:
      return {0, 0x8000, 1, 0x007f, 0x7f7f, 0x3dcd, 0xbf81, 0x7f80, 0xff80, 0x7fc0, 0x7f81, 0xffd2};
    case DType::f8_e5m2:
      return {0, 0x80, 1, 3, 0x7b, 0x2e, 0xbd, 0x7c, 0xfc, 0x7e, 0x7d, 0xff};
    default:
      return {0, 0x80, 1, 7, 0x7e, 0x1d, 0xb9, 0x38, 0xb8, 0x7f, 0xff, 0x08};
  }
}

/// A script that holds those bits in q, none of which it has to read, in each element or in long runs.
Reproducer awkward(DType dtype, std::int64_t repeated, bool with_nan) {
  const std::vector<std::uint64_t> bits = awkward_bits(dtype);
  const std::size_t kinds = with_nan ? bits.size() : 9, size = size_of(dtype);
  Tensor q(dtype, {1, 1, 1, static_cast<std::int64_t>(kinds) * repeated});
  for (std::size_t e = 0; e < static_cast<std::size_t>(q.elements()); ++e)
    std::memcpy(q.bytes().data() + e * size, &bits[e / static_cast<std::size_t>(repeated)], size);
  Case c = test::one_query(dtype, std::vector<double>(static_cast<std::size_t>(q.elements()), 0.0),
                           std::vector<double>(static_cast<std::size_t>(q.elements()), 0.0), {1.0});
  c[Slot::q] = q;
  return {.problem = c,
          .output = dtype,
          .wrong = {{.element = 0, .found = std::nullopt, .exact = {1, 1}, .allowed = 0.125}},
          .wrong_in_all = 1,
          .elements = 1,
          .ended = {},
          .kernel = "k",
          .name = "k",
          .version = {},
          .property = "p",
          .replay = {},
          .comes_and_goes = {}};
}

std::string with(std::string text, const std::string& part, const std::string& instead) {
  const std::size_t at = text.find(part);
  EXPECT_NE(at, std::string::npos) << part << " in\n" << text;
  return at == std::string::npos ? text : text.replace(at, part.size(), instead);
}

/// The elements of q in hexadecimal, as a script sees them.
std::string seen_by_c(const fake::Folder& folder, const Reproducer& made) {
  const std::string count = std::to_string(made.problem.q().elements());
  std::ofstream(folder / "x.c") << with(
      script_of(made, ScriptLanguage::c), "  return 0;\n}",
      "  for (int e = 0; e < " + count +
          "; ++e) {\n    uint64_t bits = 0;\n    memcpy(&bits, &q[e], sizeof q[0]);\n    printf(\"%llx \", "
          "(unsigned long long)bits);\n  }\n  fflush(stdout);\n  _Exit(0);\n}");
  return output_of(folder,
                   "sed -i '1i #include <stdlib.h>' x.c && cc -std=c99 -Wall -Wextra -Werror x.c -o x -lm && ./x");
}

std::string bits_in_words(const Tensor& tensor) {
  std::ostringstream words;
  for (std::int64_t e = 0; e < tensor.elements(); ++e) words << std::hex << bits_of(tensor, e) << ' ';
  return words.str();
}

class ReproducerOf : public testing::TestWithParam<DType> {};

TEST_P(ReproducerOf, KeepsEveryBitInC) {
  const fake::Folder folder;
  for (const std::int64_t repeated : {1, 20}) {
    for (const bool with_nan : {false, true}) {
      const Reproducer made = awkward(GetParam(), repeated, with_nan);
      EXPECT_EQ(seen_by_c(folder, made), bits_in_words(made.problem.q())) << repeated << with_nan;
    }
  }
}

TEST_P(ReproducerOf, KeepsEveryBitInPython) {
  const fake::Folder folder;
  for (const std::int64_t repeated : {1, 20}) {
    for (const bool with_nan : {false, true}) {
      const Reproducer made = awkward(GetParam(), repeated, with_nan);
      const Tensor& q = made.problem.q();
      const bool told_in_bits = has_unusual_nan(q);
      EXPECT_EQ(told_in_bits, with_nan);
      // Numbers as the doubles that they are; a NaN is but a NaN there, and its bits stand beside it.
      const std::string shown = told_in_bits ? "print(*(f'{b:x}' for b in q_bits), '')\n"
                                               "print(*(x.hex() for x in q))\nsys.exit(0)\ntry:\n    out = kernel()"
                                             : "print(*(x.hex() for x in q))\nsys.exit(0)\ntry:\n    out = kernel()";
      std::ofstream(folder / "x.py") << with(script_of(made, ScriptLanguage::python), "try:\n    out = kernel()",
                                             shown);
      std::ostringstream wanted;
      if (told_in_bits) wanted << bits_in_words(q) << "\n";
      std::string values;
      for (const double x : q.to_doubles()) values += "float('" + number_text(x) + "').hex(), ";
      std::ofstream(folder / "wanted.py") << "print(" << values << ")\n";
      wanted << output_of(folder, "/usr/bin/python3 wanted.py");
      EXPECT_EQ(output_of(folder, "/usr/bin/python3 x.py"), wanted.str()) << repeated << with_nan;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Dtypes, ReproducerOf,
                         testing::Values(DType::f64, DType::f32, DType::f16, DType::bf16, DType::f8_e4m3,
                                         DType::f8_e5m2),
                         [](const auto& param) { return std::string(name_of(param.param)); });

/// Neither wrong nor right: a traceback's status would be that of what is wrong.
TEST(Reproducer, EndsOtherwiseWhereTheKernelDoesNotRun) {
  const fake::Folder folder;
  const std::string script = script_of(awkward(DType::f32, 1, false), ScriptLanguage::python);
  std::ofstream(folder / "x.py") << with(script, "try:\n    out = kernel()",
                                         "def kernel():\n    import no_such_module\n\ntry:\n    out = kernel()");
  EXPECT_THAT(output_of(folder, "/usr/bin/python3 x.py", 2), Says("the kernel did not run: ModuleNotFoundError("));
}

TEST(Reproducer, KeepsWordsOfKernelsInComments) {
  Reproducer made = of_zeros(two_keys());
  const std::string hostile = "HOSTILE\"\"\"\n */ '); \r\nHOSTILE\u202e %s %n ?\?/ \\";
  made.kernel = made.name = made.version = made.ended = made.property = made.replay = made.comes_and_goes = hostile;
  made.property = "p";
  made.comes_and_goes.clear();
  for (const ScriptLanguage language : {ScriptLanguage::python, ScriptLanguage::c}) {
    std::istringstream script(script_of(made, language));
    int lines = 0;
    for (std::string line; std::getline(script, line);) {
      if (line.find("HOSTILE") == std::string::npos) continue;
      ++lines;
      EXPECT_TRUE(line.starts_with(language == ScriptLanguage::python ? "# " : "// ")) << line;
      EXPECT_FALSE(line.ends_with("\\")) << line;
      EXPECT_THAT(line, NeverSays("\u202e", "\r"));
    }
    EXPECT_EQ(lines, 3);
  }
}

TEST(Reproducer, WritesThePyTorchCallOut) {
  Reproducer made = of_zeros(two_keys());
  made.name = "torch.nn.functional._scaled_dot_product_attention";
  made.kernel = "pytorch:sdpa";
  made.version = "1.13.1";
  const auto python = [&] { return script_of(made, ScriptLanguage::python); };
  EXPECT_THAT(python(), Says("functional._scaled_dot_product_attention(q_, k_, v_, None, 0.0, False, False)[0]",
                             "q_ = torch.tensor(q, dtype=torch.float32).reshape(B, H, M, dk)\n"));
  made.problem.scale = 0.25;
  EXPECT_THAT(python(), Says("return None")) << "1.13 has no scale";
  made.version = "2.5.1";
  EXPECT_THAT(python(), Says("functional.scaled_dot_product_attention(q_, k_, v_, attn_mask=None, is_causal=False, "
                             "scale=scale)\n"));
  made.problem.causal = Causal::top_left;
  EXPECT_THAT(python(), Says("is_causal=True"));
  made.problem[Slot::mask] = Tensor(DType::boolean, {1, 1, 1, 2});
  EXPECT_THAT(python(), Says("return None")) << "it takes no mask beside the causal form";
  made.problem.causal = Causal::none;
  EXPECT_THAT(python(), Says("mask_ = torch.tensor(mask, dtype=torch.bool).reshape(1, 1, M, N)", "attn_mask=mask_"));
  made.problem.mask_convention = MaskConvention::pre_scale;
  EXPECT_THAT(python(), Says("attn_mask=mask_")) << "a boolean mask has no convention";
  made.problem[Slot::mask] = Tensor(DType::f32, {1, 1, 1, 2});
  EXPECT_THAT(python(), Says("return None")) << "it adds behind the scale";
  made.problem.mask_convention = MaskConvention::post_scale;
  made.problem.causal = Causal::bottom_right;
  EXPECT_THAT(python(), Says("return None"));
  made.problem.causal = Causal::none;
  made.kernel = "exec:python3 sdpa_backends.py flash --device cuda";
  EXPECT_THAT(python(), Says("return None")) << "the manifest says what it is";
  made.name = "scaled_dot_product_attention, flash on cuda";
  EXPECT_THAT(python(), Says("with sdpa_kernel([SDPBackend.FLASH_ATTENTION]):\n        out = ", ".to(\"cuda\")"));
}

TEST(Reproducer, WritesGroupedHeadsOutForPyTorch) {
  Case c = test::attention_of({.heads = 4, .keys = 2, .dk = 1, .dv = 1, .kv_heads = 2}, [](Slot, const Shape& shape) {
    return test::filled(DType::bf16, shape, [] { return 1.0; });
  });
  Reproducer made = of_zeros(c);
  made.kernel = "pytorch:sdpa";
  made.version = "2.6.0";
  EXPECT_THAT(script_of(made, ScriptLanguage::python), Says(", enable_gqa=True)", "dtype=torch.bfloat16"));
  made.version = "1.13.1";
  EXPECT_THAT(script_of(made, ScriptLanguage::python), Says("return None"));
}

/// One query of two keys whose value is gradient enough.
Case with_gradients() {
  Case c = two_keys();
  c[Slot::d_out] = Tensor(DType::f32, c.out_shape(), std::vector<double>{1});
  return c;
}
const Property& oracle_of_dk() {
  return property_named("backward.oracle-dk");
}

TEST(Reproducer, IsOfTheGradientThatTheFindingIsAbout) {
  Case c = with_gradients();
  c[Slot::q].set(0, 1), c[Slot::k].set(0, 0.5), c.scale = 0.5;
  const auto kernel = kernel_named("fault:dk-scaled-twice");
  const Verdict found = check_case(oracle_of_dk(), *kernel, c);
  ASSERT_EQ(found.outcome, Outcome::violated);
  const Reproducer made = reproducer_of(c, oracle_of_dk(), found, *kernel, "--script x");
  EXPECT_EQ(made.gradient, Gradient::k);
  EXPECT_EQ(made.elements, 2);
  EXPECT_EQ(made.wrong_in_all, 2);
  ASSERT_EQ(made.wrong.size(), 2U);
  EXPECT_EQ(made.wrong[found.compared[0].element == 0 ? 0 : 1].found, found.compared[0].found);
  // Weights and values alone: half of each value's distance from the mean, by keys of opposite signs.
  EXPECT_EQ(made.wrong[0].exact.lower, -made.wrong[1].exact.upper);
  // Of another property the first gradient that is wrong.
  const auto other = kernel_named("fault:dq-not-scaled");
  EXPECT_EQ(reproducer_of(c, oracle_of_dk(), violated_by(Violation::bound), *other, "--script x").gradient,
            Gradient::q);
  EXPECT_THAT(refusal_of(c, "builtin:flash", found, oracle_of_dk()),
              Says("backward pass gives no number that is wrong"));
}

TEST(Reproducer, PrefersTheGradientOfTheFinding) {
  int next = 0;
  const auto numbered = [&](const Shape& shape) {
    return test::filled(DType::f32, shape, [&] { return (next++ * 37 % 11 - 5) / 4.0; });
  };
  Case c = test::attention_of({.heads = 2, .keys = 3, .dk = 1, .dv = 1, .kv_heads = 1},
                              [&](Slot, const Shape& shape) { return numbered(shape); });
  c[Slot::d_out] = numbered(c.out_shape());
  // Both gradients are wrong; that by k comes first.
  const auto kernel = kernel_named("fault:dk-dv-averaged-over-the-group");
  for (const auto& [name, of] : {std::pair{"backward.oracle-dv", Gradient::v}, {"backward.oracle-dk", Gradient::k}}) {
    const Property& property = property_named(name);
    const Verdict found = check_case(property, *kernel, c);
    ASSERT_EQ(found.outcome, Outcome::violated) << name;
    EXPECT_EQ(reproducer_of(c, property, found, *kernel, "--script x").gradient, of);
  }
}

TEST(Reproducer, WritesGradientsOutForPyTorch) {
  Reproducer made = of_zeros(two_keys());
  made.problem = with_gradients(), made.gradient = Gradient::v,
  made.wrong = {{.element = 1, .found = 0, .exact = {1, 1}}};
  made.kernel = "exec:python3 sdpa_backends.py math";
  made.name = "scaled_dot_product_attention, math on cpu, and its gradients";
  made.version = "2.13.0";
  const auto python = [&] { return script_of(made, ScriptLanguage::python); };
  EXPECT_THAT(python(),
              Says("# dv is a loss's gradient by v, of which d_out is the gradient by out\n", "\nd_out = [1.0]\n",
                   "d_out_ = torch.tensor(d_out, dtype=torch.float32).reshape(B, H, M, dv)\n",
                   "argument.requires_grad_()", "        (gradient,) = torch.autograd.grad(out, v_, d_out_)\n",
                   "    return gradient.double()", "    ((0, 0, 1, 0), 1, 0.0, \"1\", "));
  made.problem[Slot::d_lse] = Tensor(DType::f32, {1, 1, 1}, std::vector<double>{1});
  EXPECT_THAT(python(), Says("return None", "d_lse that by each row's log-sum-exp", "return dv as a flat list"));
}

TEST(Reproducer, SaysThatACallGaveNoAnswer) {
  Reproducer made = of_zeros(two_keys());
  made.wrong.front().found.reset();
  made.ended = "died: signal 11";
  EXPECT_THAT(script_of(made, ScriptLanguage::python),
              Says("# its call gave no output: \"died: signal 11\"", "((0, 0, 0, 0), 0, None, \"1.5\", "));
  EXPECT_THAT(script_of(made, ScriptLanguage::c), Says("{0, 0, 0, 0, NAN, 0x1.8p+0, ", "no answer; 1.5; "));
  made.wrong.front().allowed = infinity;
  EXPECT_THAT(script_of(made, ScriptLanguage::python), Says("None, \"1.5\", inf)"));
}

}  // namespace
}  // namespace attest
