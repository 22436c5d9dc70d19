// What the program says of a kernel beside its verdict: explanations of violated bounds, comparisons with another
// kernel, and probes of what a manifest leaves open.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <regex>

#include "core/support/files.h"
#include "reports/test/json.h"
#include "reports/test/program_checks.h"
#include "reports/test/shell.h"

namespace attest {
namespace {

using fake::Folder;
using testing::AllOf;

TEST(DiagnosisProgram, ExplainsAViolatedBoundBesideIt) {
  const Folder folder;
  if (!has_numpy(folder)) GTEST_SKIP() << "Python has no numpy";
  write_python(folder, "coarse",
               "def attention(q, k, v, scale=1.0):\n"
               "    scores = (q @ k.swapaxes(-1, -2)) * q.dtype.type(scale)\n"
               "    weights = numpy.exp(scores - scores.max(axis=-1, keepdims=True))\n"
               "    total = weights.sum(axis=-1, keepdims=True)\n"
               "    return weights.astype('float16').astype('float32') @ v / total\n",
               "'dtypes': ['f32']");
  const std::string result = output_of(
      folder,
      "$attest check --verbose --kernel 'exec:/usr/bin/python3 coarse.py' --property attention.oracle --cases 200 --out run",
      1);
  // One narrower format may be meant, as tensor cores have it, however far it is from what is declared.
  EXPECT_THAT(result, Says("explained coarse in f32: all 3 saved cases are consistent with weights rounded to f16 "
                           "before they multiply V (",
                           "declare it: \"arithmetic\": {\"f32\": {\"weights\":\"f16\"}}, with a unit ",
                           " times as large, so that a mistake may look the same",
                           "; what goes wrong first: the weights, in "));
  EXPECT_THAT(result, Says("violated attention.oracle by coarse")) << "never instead of it";
  const auto kernel = summary_of(folder, "run")["kernels"][0];
  EXPECT_EQ(kernel["verdict"], "violated");
  const auto& changes = kernel["explanations"][0]["changes"];
  EXPECT_TRUE(std::ranges::any_of(changes, [](const auto& change) {
    return change["arithmetic"] == nlohmann::json{{"weights", "f16"}} && change["utilisation"] <= 1.0;
  })) << changes;
  EXPECT_THAT(read_file(folder / "run/report.html"), Says("all 3 saved cases are consistent with "));
  // Once, whatever is resumed; and in what is drawn from the journal later.
  expect_status(folder,
                "$attest check --kernel 'exec:/usr/bin/python3 coarse.py' --property attention.oracle --cases "
                "264 --resume --out run",
                1);
  EXPECT_EQ(summary_of(folder, "run")["kernels"][0]["explanations"].size(), 1U);
  expect_status(folder, "$attest report run -o again.html");
  EXPECT_THAT(read_file(folder / "again.html"), Says("all 3 saved cases are consistent with "));
  // What no arithmetic excuses.
  const std::string wrong = python_kernel(folder, "wrong", "-1.0");
  const ShellResult mistake = shell(
      folder, "$attest check --verbose --kernel " + wrong + " --property attention.oracle --cases 200 --out wrong-run");
  EXPECT_THAT(mistake.output,
              Says("explained wrong in f64: no arithmetic that a manifest can declare makes all 3 saved "
                   "cases right"));
}

TEST(DiagnosisProgram, NamesNoFormatOfAStageThatIsRight) {
  const Folder folder;
  // Weights that are rounded twice: none of the formats of scores or sums is what is wrong, and none of the weights'.
  if (!has_numpy(folder)) GTEST_SKIP() << "Python has no numpy";
  write_python(folder, "twice",
               "def bf16(x): return attest_adapter.bf16_to_f32(attest_adapter.f32_to_bf16(x))\n"
               "def attention(q, k, v, scale=1.0):\n"
               "    scores = (q @ k.swapaxes(-1, -2)) * q.dtype.type(scale)\n"
               "    weights = numpy.exp(scores - scores.max(axis=-1, keepdims=True))\n"
               "    rounded = bf16(bf16(weights * numpy.float32(1.3)) / numpy.float32(1.3))\n"
               "    return rounded @ v / weights.sum(axis=-1, keepdims=True)\n",
               "'dtypes': ['f32'], 'arithmetic': {'weights': 'bf16', 'weights_in_denominator': False}");
  const std::string result = output_of(
      folder,
      "$attest check --verbose --kernel 'exec:/usr/bin/python3 twice.py' --property attention.oracle --cases 400 --out run",
      1);
  EXPECT_THAT(result, Says("explained twice in f32: what goes wrong first: the weights, in ",
                           "; a mistake, or arithmetic far from what is declared: "));
  EXPECT_THAT(result, NeverSays("denominator")) << "the kernel's own answers refute that";
}

/// A kernel of NumPy whose backward pass has half of D. With the log-sum-exp of the forward pass, or with weights of
/// its own, of which nothing is known at other answers.
void write_with_half_of_delta(const Folder& folder, const std::string& name, bool takes_lse) {
  std::ofstream(folder / (name + ".py"))
      << "import sys\nsys.path.insert(0, '" << source_folder() << "/core/adapters/python')\n"
      << "import attest_adapter\nimport numpy\n"
         "def scores_of(q, k, scale): return (q @ k.swapaxes(-1, -2)) * q.dtype.type(scale)\n"
         "def attention(q, k, v, scale=1.0, want_lse=False):\n"
         "    scores = scores_of(q, k, scale)\n"
         "    most = scores.max(axis=-1, keepdims=True, initial=-numpy.inf)\n"
         "    weights = numpy.exp(scores - most)\n"
         "    total = weights.sum(axis=-1, keepdims=True)\n"
         "    out = weights @ v / total\n"
         "    return (out, (most + numpy.log(total))[..., 0].astype('float64')) if want_lse else out\n"
         "def backward(q, k, v, d_out, out"
      << (takes_lse ? ", lse" : "") << ", scale=1.0):\n"
      << (takes_lse ? "" : "    lse = attention(q, k, v, scale, want_lse=True)[1]\n")
      << "    weights = numpy.exp(scores_of(q, k, scale) - lse.astype(q.dtype)[..., None])\n"
         "    delta = (d_out * out).sum(axis=-1, keepdims=True) * q.dtype.type(0.5)\n"
         "    d_scores = weights * (d_out @ v.swapaxes(-1, -2) - delta) * q.dtype.type(scale)\n"
         "    return d_scores @ k, d_scores.swapaxes(-1, -2) @ q, weights.swapaxes(-1, -2) @ d_out\n"
         "attest_adapter.serve(attention, {'name': '"
      << name << "', 'masks': [], 'dtypes': ['f64'], 'fully_masked_row': 'nan'}, backward=backward)\n";
}

// Asked of the saved cases themselves: the row that judges gradients by the kernel's own answers is not in the run.
TEST(DiagnosisProgram, SaysThatTheBackwardPassIsWrong) {
  const Folder folder;
  if (!has_numpy(folder)) GTEST_SKIP() << "Python has no numpy";
  const auto said_of = [&](const std::string& name) {
    const std::string said = output_of(folder,
                                       fmt::format("$attest check --kernel 'exec:/usr/bin/python3 {0}.py' --property "
                                                   "'backward.oracle-*' --no-large --cases 60 --out {0}",
                                                   name),
                                       1);
    return std::regex_replace(said, std::regex("\\s+"), " ");
  };
  write_with_half_of_delta(folder, "delta", /*takes_lse=*/true);
  EXPECT_THAT(said_of("delta"), Says("why the backward pass: at the out and lse that the kernel itself returned it is "
                                     "wrong, too"));
  EXPECT_EQ(summary_of(folder, "delta")["causes"][0]["by_own_answers"], true);
  write_with_half_of_delta(folder, "stored", /*takes_lse=*/false);
  EXPECT_THAT(said_of("stored"), NeverSays("at the out and lse"));
}

TEST(DiagnosisProgram, LeadsWithWhatMostFindingsAre) {
  const Folder folder;
  // Scores that are not kept small: exp overflows.
  const std::string kernel = python_kernel(folder, "overflows", "1.0)\n    scores = scores + q.dtype.type(705.0");
  if (kernel.empty()) GTEST_SKIP() << "Python has no numpy";
  std::string text = read_file(folder / "overflows.py");
  const std::string shifted = "scores - scores.max(axis=-1, keepdims=True, initial=-numpy.inf)";
  text.replace(text.find(shifted), shifted.size(), "scores");
  std::ofstream(folder / "overflows.py") << text;
  EXPECT_THAT(
      output_of(folder,
                "$attest check --verbose --kernel " + kernel +
                    " --property attention.oracle --property attention.finite --cases 200 --out run",
                1),
      AllOf(Says(" saved violations are NaN or Inf where a finite number is required"), NeverSays("declare it")));
  EXPECT_EQ(summary_of(folder, "run")["kernels"][0]["explanations"][0]["changes"], nlohmann::json::array());
}

TEST(DiagnosisProgram, ComparesTwoKernels) {
  const Folder folder;
  const std::string few = " --dtype f64 --property attention.oracle --cases 200 ";
  EXPECT_THAT(output_of(folder, "$attest check --verbose --kernel builtin:two-pass --against builtin:flash" + few +
                                    "--out right"),
              Says("against builtin:flash"));
  EXPECT_EQ(summary_of(folder, "right")["against"], "builtin:flash");
  const std::string kernel = python_kernel(folder, "wrong", "1.01");
  if (kernel.empty()) GTEST_SKIP() << "Python has no numpy";
  for (const std::string& sides : {kernel + " --against builtin:flash", "builtin:flash --against " + kernel}) {
    expect_status(folder, fmt::format("$attest check --kernel {}{}--overwrite --out run", sides, few), 1);
    const auto summary = summary_of(folder, "run");
    const auto& findings = summary["kernels"][0]["properties"][0]["findings"];
    ASSERT_FALSE(findings.empty());
    const std::string saved = "run/" + findings[0]["case"].get<std::string>();
    EXPECT_THAT(output_of(folder, "$attest replay " + saved, 1), Says("\nagainst "));
    expect_status(folder, "$attest replay " + saved + " --kernel builtin:lazy --against builtin:flash");
  }
  expect_refused("check --kernel builtin:flash --against 'builtin:*'", "it must name one");
  expect_refused("check --kernel builtin:flash --against builtin:flsh", "did you mean \"builtin:flash\"?");
  expect_refused("check --kernel builtin:flash --against builtin:flash --alarm", "exclude each other");
  expect_refused("check --kernel builtin:flash --against ./absent.so", "absent.so", 3);
  EXPECT_EQ(shell(folder, "$attest check --verbose --kernel builtin:two-pass --resume --out right").status, 2)
      << "another question than the run began with";
}

TEST(DiagnosisProgram, ReplaysTheOutputThatTheVerdictIsAbout) {
  const Folder folder;
  const auto kernel = [&](const std::string& name, const std::string& factor) {
    write_python(folder, name,
                 "def attention(q, k, v, scale=1.0, out_dtype=None):\n"
                 "    q, k, v = (x.astype('f4') for x in (q, k, v))\n"
                 "    scores = (q @ k.swapaxes(-1, -2)) * numpy.float32(scale)\n"
                 "    weights = numpy.exp(scores - scores.max(axis=-1, keepdims=True))\n"
                 "    out = weights @ v / weights.sum(axis=-1, keepdims=True)\n"
                 "    return out * numpy.float32(" +
                     factor + ") if out_dtype == 'f32' else out.astype('f2')\n",
                 "'dtypes': ['f16'], 'out_dtypes': ['f32'], 'arithmetic': {'weights': 'f32'}");
    return "--kernel 'exec:/usr/bin/python3 " + name + ".py' ";
  };
  if (!has_numpy(folder)) GTEST_SKIP() << "Python has no numpy";
  const std::string few = "--property attention.oracle --cases 20 --out ";
  // Right in f16; in f32 off by an error that f16 would allow.
  expect_status(folder, "$attest check " + kernel("off", "1.0003") + few + "off", 1);
  const std::string found = summary_of(folder, "off")["kernels"][0]["properties"][0]["findings"][0]["case"];
  const std::string violated = shell(folder, "$attest replay off/" + found).output;
  const std::size_t own = violated.find("\noutput in f16, utilisation 0:"), wide = violated.find("\noutput in f32, ");
  EXPECT_THAT(violated, Says(", of the output in f32\n"));
  EXPECT_LT(own, wide) << violated;
  EXPECT_NE(wide, std::string::npos) << violated;
  EXPECT_THAT(violated, Says("\n0 of ")) << "none of f16's";
  EXPECT_GT(violated.find("    allowed  ± "), wide) << violated;
  // Held, and nearest to the bound of the output in f32: the element beside that bound.
  const std::string held = shell(folder, "$attest replay " + kernel("near", "1.0000012") + "off/" + found).output;
  EXPECT_THAT(held, Says("\nheld\n", ", of the output in f32\n"));
  const auto number_behind = [&](const std::string& words) {
    const std::size_t at = held.find(words);
    return at == std::string::npos ? -1.0 : std::stod(held.substr(at + words.size()));
  };
  EXPECT_GT(number_behind(", allowed "), 0) << held;
  EXPECT_NEAR(number_behind(", allowed ") / number_behind("    allowed  ± "), 1, 0.01) << held;
}

TEST(DiagnosisProgram, ShowsWhatAKernelAnsweredWithoutIt) {
  const Folder folder;
  if (!has_numpy(folder)) GTEST_SKIP() << "Python has no numpy";
  write_python(folder, "last",
               "def attention(q, k, v, scale=1.0):\n"
               "    scores = (q @ k.swapaxes(-1, -2)) * q.dtype.type(scale)\n"
               "    weights = numpy.exp(scores - scores.max(axis=-1, keepdims=True))\n"
               "    out = weights @ v / weights.sum(axis=-1, keepdims=True)\n"
               "    out[:, -1:, :, -1:] += 1\n"
               "    return out\n",
               "'dtypes': ['f32']");
  expect_status(folder,
                "$attest check --kernel 'exec:/usr/bin/python3 last.py' --property attention.oracle --cases 40 "
                "--no-large --out run",
                1);
  // Of the worst case as it was drawn, which has more in it than the smallest.
  EXPECT_THAT(read_file(folder / "run/report.html"), Says("<dt>where</dt><dd>in the worst case ", "<svg class=\"map\"",
                                                          "aria-label=\"Wrong in the worst case: "));
  const std::string found = summary_of(folder, "run")["kernels"][0]["properties"][0]["findings"][0]["case"];
  const std::string with = shell(folder, "$attest replay run/" + found).output;
  std::filesystem::remove(folder / "last.py");
  const ShellResult without = shell(folder, "$attest replay run/" + found);
  EXPECT_EQ(without.status, 3) << without.output;
  EXPECT_THAT(without.output,
              Says("what the kernel answered when the case was saved:\n", " lie outside what is allowed", "last.py"));
  // The same element, with the same numbers.
  const auto element = [](const std::string& text) {
    const std::size_t at = text.find("  out["), end = text.find("allowed  ±", at);
    return at == std::string::npos ? "none" : text.substr(at, text.find('\n', end) - at);
  };
  EXPECT_NE(element(with), "none") << with;
  EXPECT_EQ(element(without.output), element(with));
  // A case by itself says less, and not something else.
  ASSERT_EQ(shell(folder, "cp run/" + found + " alone.safetensors").status, 0);
  const ShellResult alone = shell(folder, "$attest replay alone.safetensors");
  EXPECT_EQ(alone.status, 3);
  EXPECT_EQ(alone.output.find("what the kernel answered"), std::string::npos) << alone.output;
}

TEST(DiagnosisProgram, ProbesWhatAManifestLeavesOpen) {
  const Folder folder;
  EXPECT_THAT(output_of(folder, "$attest probe --kernel builtin:flash -o found.json"), Says("true: may attend"));
  EXPECT_EQ(parsed_json(read_file(folder / "found.json"))["fully_masked_row"], "zero");
  const std::string kernel = python_kernel(folder, "small", "1.0");
  if (kernel.empty()) GTEST_SKIP() << "Python has no numpy";
  EXPECT_THAT(output_of(folder, "$attest probe --kernel " + kernel), Says("A manifest that says what was found:\n{"));
  // Right where a head has one dimension and 1/sqrt(dk) is 1.
  const std::string unscaled =
      output_of(folder, "$attest probe --kernel " + python_kernel(folder, "unscaled", "0.0 + 1.0"), 1);
  EXPECT_THAT(std::regex_replace(unscaled, std::regex("\\s+"), " "),
              Says("CONTRADICTED 1/sqrt(dk) whatever is asked or no scale at all"))
      << "the last column is broken within itself";
  EXPECT_THAT(output_of(folder, "$attest probe --kernel " + python_kernel(folder, "wrong", "-1.0"), 2),
              Says("answers no plain attention problem in f64 right"));
  expect_refused("probe", "attest probe needs --kernel");
  expect_refused("probe --kernel 'builtin:*'", "probe asks one");
  expect_refused("probe --kernel builtin:flsh", "did you mean \"builtin:flash\"?");
  EXPECT_THAT(output_of(folder, "$attest probe --kernel builtin:flash -o /dev/full/x", 2), Says("true: may attend"))
      << "what was found is not lost";
}

}  // namespace
}  // namespace attest
