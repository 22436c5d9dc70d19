// What the program says of a kernel beside its verdict: explanations of violated bounds, comparisons with another
// kernel, and probes of what a manifest leaves open.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/support/files.h"
#include "reports/test/program_checks.h"
#include "reports/test/shell.h"

namespace attest {
namespace {

using fake::Folder;

TEST(DiagnosisProgram, ExplainsAViolatedBoundBesideIt) {
  const Folder folder;
  std::ofstream(folder / "coarse.py") << "import sys\nsys.path.insert(0, '" ATTEST_SOURCE_DIR
                                         "/core/adapters/python')\nimport attest_adapter\nimport numpy\n"
                                         "def attention(q, k, v, scale=1.0):\n"
                                         "    scores = (q @ k.swapaxes(-1, -2)) * q.dtype.type(scale)\n"
                                         "    weights = numpy.exp(scores - scores.max(axis=-1, keepdims=True))\n"
                                         "    total = weights.sum(axis=-1, keepdims=True)\n"
                                         "    return weights.astype('float16').astype('float32') @ v / total\n"
                                         "attest_adapter.serve(attention, {'name': 'coarse', 'dtypes': ['f32'], "
                                         "'masks': [], 'fully_masked_row': 'nan'})\n";
  if (shell(folder, "/usr/bin/python3 -c 'import numpy'").status != 0) GTEST_SKIP() << "Python has no numpy";
  const ShellResult result = shell(
      folder,
      "$attest check --kernel 'exec:/usr/bin/python3 coarse.py' --property attention.oracle --cases 200 --out run");
  EXPECT_EQ(result.status, 1) << result.output;
  // One narrower format may be meant, as tensor cores have it, however far it is from what is declared.
  for (const char* const part :
       {"explained coarse in f32: all 3 saved cases are consistent with weights rounded to f16 before they multiply V "
        "(",
        "declare it: \"arithmetic\": {\"f32\": {\"weights\":\"f16\"}}, with a unit ",
        " times as large, so that a mistake may look the same", "; what goes wrong first: the weights, in "})
    EXPECT_NE(result.output.find(part), std::string::npos) << part << "\n" << result.output;
  EXPECT_NE(result.output.find("violated attention.oracle by coarse"), std::string::npos) << "never instead of it";
  const auto kernel = summary_of(folder, "run")["kernels"][0];
  EXPECT_EQ(kernel["verdict"], "violated");
  const auto& changes = kernel["explanations"][0]["changes"];
  EXPECT_TRUE(std::ranges::any_of(changes, [](const auto& change) {
    return change["arithmetic"] == nlohmann::json{{"weights", "f16"}} && change["utilisation"] <= 1.0;
  })) << changes;
  EXPECT_NE(read_file(folder / "run/report.html").find("all 3 saved cases are consistent with "), std::string::npos);
  // Once, whatever is resumed; and in what is drawn from the journal later.
  EXPECT_EQ(shell(folder,
                  "$attest check --kernel 'exec:/usr/bin/python3 coarse.py' --property attention.oracle --cases "
                  "264 --resume --out run")
                .status,
            1);
  EXPECT_EQ(summary_of(folder, "run")["kernels"][0]["explanations"].size(), 1U);
  EXPECT_EQ(shell(folder, "$attest report run -o again.html").status, 0);
  EXPECT_NE(read_file(folder / "again.html").find("all 3 saved cases are consistent with "), std::string::npos);
  // What no arithmetic excuses.
  const std::string wrong = python_kernel(folder, "wrong", "-1.0");
  const ShellResult mistake =
      shell(folder, "$attest check --kernel " + wrong + " --property attention.oracle --cases 200 --out wrong-run");
  EXPECT_NE(mistake.output.find("explained wrong in f64: no arithmetic that a manifest can declare makes all 3 saved "
                                "cases right"),
            std::string::npos)
      << mistake.output;
}

TEST(DiagnosisProgram, NamesNoFormatOfAStageThatIsRight) {
  const Folder folder;
  // Weights that are rounded twice: none of the formats of scores or sums is what is wrong, and none of the weights'.
  std::ofstream(folder / "twice.py")
      << "import sys\nsys.path.insert(0, '" ATTEST_SOURCE_DIR
         "/core/adapters/python')\nimport attest_adapter\nimport numpy\n"
         "def bf16(x): return attest_adapter.bf16_to_f32(attest_adapter.f32_to_bf16(x))\n"
         "def attention(q, k, v, scale=1.0):\n"
         "    scores = (q @ k.swapaxes(-1, -2)) * q.dtype.type(scale)\n"
         "    weights = numpy.exp(scores - scores.max(axis=-1, keepdims=True))\n"
         "    rounded = bf16(bf16(weights * numpy.float32(1.3)) / numpy.float32(1.3))\n"
         "    return rounded @ v / weights.sum(axis=-1, keepdims=True)\n"
         "attest_adapter.serve(attention, {'name': 'twice', 'dtypes': ['f32'], 'masks': "
         "[],\n    'fully_masked_row': 'nan', 'arithmetic': {'weights': 'bf16', "
         "'weights_in_denominator': False}})\n";
  if (shell(folder, "/usr/bin/python3 -c 'import numpy'").status != 0) GTEST_SKIP() << "Python has no numpy";
  const ShellResult result = shell(
      folder,
      "$attest check --kernel 'exec:/usr/bin/python3 twice.py' --property attention.oracle --cases 400 --out run");
  EXPECT_EQ(result.status, 1) << result.output;
  EXPECT_NE(result.output.find("explained twice in f32: what goes wrong first: the weights, in "), std::string::npos)
      << result.output;
  EXPECT_NE(result.output.find("; a mistake, or arithmetic far from what is declared: "), std::string::npos)
      << result.output;
  EXPECT_EQ(result.output.find("denominator"), std::string::npos) << "the kernel's own answers refute that";
}

TEST(DiagnosisProgram, LeadsWithWhatMostFindingsAre) {
  const Folder folder;
  // Scores that are not kept small: exp overflows.
  const std::string kernel = python_kernel(folder, "overflows", "1.0)\n    scores = scores + q.dtype.type(705.0");
  if (kernel.empty()) GTEST_SKIP() << "Python has no numpy";
  std::string text = read_file(folder / "overflows.py");
  const std::string shifted = "scores - scores.max(axis=-1, keepdims=True)";
  text.replace(text.find(shifted), shifted.size(), "scores");
  std::ofstream(folder / "overflows.py") << text;
  const ShellResult result =
      shell(folder, "$attest check --kernel " + kernel +
                        " --property attention.oracle --property attention.finite --cases 200 --out run");
  EXPECT_EQ(result.status, 1) << result.output;
  EXPECT_NE(result.output.find(" saved violations are NaN or Inf where a finite number is required"), std::string::npos)
      << result.output;
  EXPECT_EQ(result.output.find("declare it"), std::string::npos) << result.output;
  EXPECT_EQ(summary_of(folder, "run")["kernels"][0]["explanations"][0]["changes"], nlohmann::json::array());
}

TEST(DiagnosisProgram, ComparesTwoKernels) {
  const Folder folder;
  const std::string few = " --dtype f64 --property attention.oracle --cases 200 ";
  const ShellResult right =
      shell(folder, "$attest check --kernel builtin:two-pass --against builtin:flash" + few + "--out right");
  EXPECT_EQ(right.status, 0) << right.output;
  EXPECT_NE(right.output.find("against builtin:flash"), std::string::npos) << right.output;
  EXPECT_EQ(summary_of(folder, "right")["against"], "builtin:flash");
  const std::string kernel = python_kernel(folder, "wrong", "1.01");
  if (kernel.empty()) GTEST_SKIP() << "Python has no numpy";
  for (const std::string& sides : {kernel + " --against builtin:flash", "builtin:flash --against " + kernel}) {
    const ShellResult result =
        shell(folder, fmt::format("$attest check --kernel {}{}--overwrite --out run", sides, few));
    EXPECT_EQ(result.status, 1) << result.output;
    const auto summary = summary_of(folder, "run");
    const auto& findings = summary["kernels"][0]["properties"][0]["findings"];
    ASSERT_FALSE(findings.empty());
    const std::string saved = "run/" + findings[0]["case"].get<std::string>();
    const ShellResult replay = shell(folder, "$attest replay " + saved);
    EXPECT_EQ(replay.status, 1) << replay.output;
    EXPECT_NE(replay.output.find("\nagainst "), std::string::npos) << replay.output;
    EXPECT_EQ(shell(folder, "$attest replay " + saved + " --kernel builtin:lazy --against builtin:flash").status, 0);
  }
  expect_refused("check --kernel builtin:flash --against 'builtin:*'", "it must name one");
  expect_refused("check --kernel builtin:flash --against builtin:flsh", "did you mean \"builtin:flash\"?");
  expect_refused("check --kernel builtin:flash --against builtin:flash --alarm", "exclude each other");
  expect_refused("check --kernel builtin:flash --against ./absent.so", "absent.so", 3);
  EXPECT_EQ(shell(folder, "$attest check --kernel builtin:two-pass --resume --out right").status, 2)
      << "another question than the run began with";
}

TEST(DiagnosisProgram, ReplaysTheOutputThatTheVerdictIsAbout) {
  const Folder folder;
  const auto kernel = [&](const std::string& name, const std::string& factor) {
    std::ofstream(folder / (name + ".py"))
        << "import sys\nsys.path.insert(0, '" ATTEST_SOURCE_DIR
           "/core/adapters/python')\nimport attest_adapter\nimport numpy\n"
           "def attention(q, k, v, scale=1.0, out_dtype=None):\n"
           "    q, k, v = (x.astype('f4') for x in (q, k, v))\n"
           "    scores = (q @ k.swapaxes(-1, -2)) * numpy.float32(scale)\n"
           "    weights = numpy.exp(scores - scores.max(axis=-1, keepdims=True))\n"
           "    out = weights @ v / weights.sum(axis=-1, keepdims=True)\n"
           "    return out * numpy.float32("
        << factor
        << ") if out_dtype == 'f32' else out.astype('f2')\n"
           "attest_adapter.serve(attention, {'name': 'wide', 'dtypes': ['f16'], 'out_dtypes': ['f32'],\n"
           "    'masks': [], 'fully_masked_row': 'nan', 'arithmetic': {'weights': 'f32'}})\n";
    return "--kernel 'exec:/usr/bin/python3 " + name + ".py' ";
  };
  if (shell(folder, "/usr/bin/python3 -c 'import numpy'").status != 0) GTEST_SKIP() << "Python has no numpy";
  const std::string few = "--property attention.oracle --cases 20 --out ";
  // Right in f16; in f32 off by an error that f16 would allow.
  EXPECT_EQ(shell(folder, "$attest check " + kernel("off", "1.0003") + few + "off").status, 1);
  const std::string found = summary_of(folder, "off")["kernels"][0]["properties"][0]["findings"][0]["case"];
  const std::string violated = shell(folder, "$attest replay off/" + found).output;
  const std::size_t own = violated.find("\noutput in f16, utilisation 0:"), wide = violated.find("\noutput in f32, ");
  EXPECT_NE(violated.find(", of the output in f32\n"), std::string::npos) << violated;
  EXPECT_LT(own, wide) << violated;
  EXPECT_NE(wide, std::string::npos) << violated;
  EXPECT_NE(violated.find("\n0 of "), std::string::npos) << "none of f16's\n" << violated;
  EXPECT_GT(violated.find("    allowed  ± "), wide) << violated;
  // Held, and nearest to the bound of the output in f32: the element beside that bound.
  const std::string held = shell(folder, "$attest replay " + kernel("near", "1.0000012") + "off/" + found).output;
  EXPECT_NE(held.find("\nheld\n"), std::string::npos) << held;
  EXPECT_NE(held.find(", of the output in f32\n"), std::string::npos) << held;
  const auto number_behind = [&](const std::string& words) {
    const std::size_t at = held.find(words);
    return at == std::string::npos ? -1.0 : std::stod(held.substr(at + words.size()));
  };
  EXPECT_GT(number_behind(", allowed "), 0) << held;
  EXPECT_NEAR(number_behind(", allowed ") / number_behind("    allowed  ± "), 1, 0.01) << held;
}

TEST(DiagnosisProgram, ProbesWhatAManifestLeavesOpen) {
  const Folder folder;
  const ShellResult right = shell(folder, "$attest probe --kernel builtin:flash -o found.json");
  EXPECT_EQ(right.status, 0) << right.output;
  EXPECT_NE(right.output.find("true: may attend"), std::string::npos) << right.output;
  EXPECT_EQ(nlohmann::json::parse(read_file(folder / "found.json"))["fully_masked_row"], "zero");
  const std::string kernel = python_kernel(folder, "small", "1.0");
  if (kernel.empty()) GTEST_SKIP() << "Python has no numpy";
  const ShellResult own = shell(folder, "$attest probe --kernel " + kernel);
  EXPECT_EQ(own.status, 0) << own.output;
  EXPECT_NE(own.output.find("A manifest that says what was found:\n{"), std::string::npos) << own.output;
  // Right where a head has one dimension and 1/sqrt(dk) is 1.
  const ShellResult unscaled =
      shell(folder, "$attest probe --kernel " + python_kernel(folder, "unscaled", "0.0 + 1.0"));
  EXPECT_EQ(unscaled.status, 1) << unscaled.output;
  EXPECT_NE(unscaled.output.find("CONTRADICTED  1/sqrt(dk) whatever is asked or no scale at all"), std::string::npos)
      << unscaled.output;
  const ShellResult wrong = shell(folder, "$attest probe --kernel " + python_kernel(folder, "wrong", "-1.0"));
  EXPECT_EQ(wrong.status, 2) << wrong.output;
  EXPECT_NE(wrong.output.find("answers no plain attention problem in f64 right"), std::string::npos) << wrong.output;
  expect_refused("probe", "attest probe needs --kernel");
  expect_refused("probe --kernel 'builtin:*'", "probe asks one");
  expect_refused("probe --kernel builtin:flsh", "did you mean \"builtin:flash\"?");
  const ShellResult nowhere = shell(folder, "$attest probe --kernel builtin:flash -o /dev/full/x");
  EXPECT_EQ(nowhere.status, 2);
  EXPECT_NE(nowhere.output.find("true: may attend"), std::string::npos) << "what was found is not lost";
}

}  // namespace
}  // namespace attest
