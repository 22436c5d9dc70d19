// The package attest in a user's tests, with the program behind it. Skipped where Python lacks numpy.
#include <gtest/gtest.h>

#include <fstream>

#include "core/test/places.h"
#include "reports/test/program_checks.h"
#include "reports/test/shell.h"

namespace attest {
namespace {

/// A test in Python: attention with the scale times `factor`, and what is done with it.
void write_test(const fake::Folder& folder, const std::string& factor, const std::string& rest) {
  std::ofstream(folder / "test_mine.py")
      << "import sys\nsys.path.insert(0, '" + source_folder() +
             "/core/adapters/python')\n"
             "import attest\nimport numpy\nnumpy.seterr(all='ignore')\n"
             "def made(factor):\n"
             "    def mine(q, k, v, scale=1.0):\n"
             "        scores = (q @ k.swapaxes(-1, -2)) * q.dtype.type(scale * factor)\n"
             "        largest = scores.max(axis=-1, keepdims=True, initial=-numpy.inf)\n"
             "        weights = numpy.exp(scores - largest)\n"
             "        return weights @ v / weights.sum(axis=-1, keepdims=True)\n"
             "    return mine\n"
             "mine = made("
      << factor << ")\nnan = {'fully_masked_row': 'nan'}\n"
      << rest;
}

class PythonModule : public testing::Test {
 protected:
  void SetUp() override {
    if (shell(folder_, "/usr/bin/python3 -c 'import numpy'").status != 0) GTEST_SKIP() << "numpy cannot be imported";
    std::filesystem::create_directory(folder_ / "tmp");
  }
  /// Runs a shell line with the module's surroundings set.
  ShellResult run(const std::string& line) {
    return shell(folder_, "export ATTEST_PROGRAM=\"$attest\" TMPDIR=\"$PWD/tmp\" PYTHONDONTWRITEBYTECODE=1; " + line);
  }
  /// What stands behind the first "replay: ".
  static std::string replay_line(const std::string& output) {
    const std::size_t at = output.find("replay: ATTEST_REPLAY=");
    if (at == std::string::npos) return "false";
    return output.substr(at + 8, output.find('\n', at) - at - 8);
  }
  fake::Folder folder_;
};

TEST_F(PythonModule, HoldsARightFunctionAndLeavesNothing) {
  write_test(folder_, "1.0",
             "summary = attest.check(mine, dtypes=[numpy.float32, 'f64'], cases=10, manifest=nan)\n"
             "print(summary['verdict'], [kernel['dtype'] for kernel in summary['kernels']])\n");
  const ShellResult result = run("/usr/bin/python3 test_mine.py 2> errors; echo ended with $?; ls tmp; cat errors");
  EXPECT_EQ(result.output, "held ['f64', 'f32']\nended with 0\n");
}

TEST_F(PythonModule, GetsLargeTensorsInSharedMemory) {
  write_test(folder_, "1.0",
             "seen = set()\n"
             "def watched(q, k, v, scale=1.0):\n"
             "    memory = q\n"
             "    while isinstance(memory, (numpy.ndarray, memoryview)):\n"
             "        memory = memory.obj if isinstance(memory, memoryview) else memory.base\n"
             "    seen.add((q.nbytes >= 1 << 19, type(memory).__name__))\n"
             "    return mine(q, k, v, scale)\n"
             "attest.check(watched, dtypes='f32', properties='attention.oracle', cases=4, manifest=nan,\n"
             "             arguments=['--shapes-only', '--shape', '1,4,4,256,512,128', '--shape', '1,1,1,8,8,8'])\n"
             "print(sorted(seen))\n");
  const ShellResult result = run("/usr/bin/python3 test_mine.py 2> errors || cat errors");
  EXPECT_EQ(result.output, "[(False, 'bytearray'), (True, 'mmap')]\n");
}

TEST_F(PythonModule, RaisesWithTheFindingAndALineThatReplaysIt) {
  const std::string check = "attest.check(mine, dtypes='f64', properties='attention.oracle', cases=40, manifest=nan)\n";
  write_test(folder_, "1.01", check);
  const ShellResult result = run("/usr/bin/python3 test_mine.py");
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.output, Says("AssertionError: mine: violated: attention.oracle in f64\n"
                                  "VIOLATED attention.oracle by mine in f64",
                                  "; accepted is [", "report: "));
  // Copied, the line judges that case alone; with the mistake mended it passes.
  const std::string line = replay_line(result.output);
  const ShellResult again = run(line);
  EXPECT_EQ(again.status, 1) << again.output;
  EXPECT_THAT(again.output, Says("\nreproduced"));
  EXPECT_THAT(again.output, NeverSays("VIOLATED"));
  write_test(folder_, "1.0", check);
  const ShellResult mended = run(line);
  EXPECT_EQ(mended.status, 0) << mended.output;
  // Of another function nothing is judged, and without the test's process there is nothing to run.
  write_test(folder_, "1.01", "mine.__name__ = 'other'\n" + check);
  EXPECT_EQ(run(line).output, "");
  const ShellResult alone = run("$attest replay tmp/attest-run-*/cases/*worst.safetensors");
  EXPECT_EQ(alone.status, 3);
  EXPECT_THAT(alone.output, Says("run that again with ATTEST_REPLAY=CASE set"));
}

TEST_F(PythonModule, NamesTheTestInPytest) {
  if (run("/usr/bin/python3 -c 'import pytest'").status != 0) GTEST_SKIP() << "pytest cannot be imported";
  write_test(folder_, "1.01",
             "def test_mine():\n"
             "    attest.check(mine, dtypes=['f32'], properties=['attention.oracle'], cases=40, manifest=nan)\n");
  const ShellResult result = run("/usr/bin/python3 -m pytest -q -p no:cacheprovider test_mine.py");
  EXPECT_EQ(result.status, 1);
  const std::string line = replay_line(result.output);
  EXPECT_TRUE(line.ends_with(" /usr/bin/python3 -m pytest test_mine.py::test_mine")) << line;
  EXPECT_THAT(run(line + " -p no:cacheprovider").output, Says("reproduced"));
}

TEST_F(PythonModule, TakesWhatTheFunctionDoesForAFinding) {
  write_test(folder_, "1.0",
             "def raising(q, k, v, scale=1.0): raise KeyError('weights')\n"
             "def wider(q, k, v, scale=1.0): return mine(q, k, v, scale).astype('f8')\n"
             "def lacking(q, k, v, scale=1.0): raise attest.Unsupported('not this one')\n"
             "for function in raising, wider, lacking:\n"
             "    try: attest.check(function, dtypes='f32', properties='attention.oracle', cases=40, manifest=nan)\n"
             "    except (AssertionError, attest.AttestError) as error: print(type(error).__name__, error)\n");
  const std::string output = run("/usr/bin/python3 test_mine.py 2> errors").output;
  EXPECT_THAT(output, Says("AssertionError raising: violated", "KeyError: 'weights'", "AssertionError wider: violated",
                           "the function returned out in float64 where float32 is due",
                           "AttestError nothing could be checked: "));
}

TEST_F(PythonModule, SaysBeforeTheRunWhatTheFirstAnswerIs) {
  write_test(folder_, "1.0",
             "try: attest.check(lambda q, k, v: q, cases=20)\n"
             "except AssertionError as error: print(error)\n");
  const ShellResult result = run("/usr/bin/python3 test_mine.py 2> errors; cat errors");
  const std::string line =
      "preflight of <lambda>: its first answer in f64, f32: malformed reply: out has the shape [2, 3, 5, 4]; it must "
      "be "
      "[2, 3, 5, 6]: it is q itself\n";
  EXPECT_TRUE(result.output.starts_with("<lambda>: violated: ")) << result.output;
  EXPECT_THAT(result.output, Says("\nnote: " + line.substr(line.find("its first")) + "VIOLATED "));
  EXPECT_EQ(read_file(folder_ / "errors"), line);
}

TEST_F(PythonModule, RefusesMisuseInOneLine) {
  write_test(folder_, "1.0",
             "for wanted in {'cases': 0}, {'dtypes': ['f31']}, {'properties': 'nothing'}, {'program': '/nowhere'}:\n"
             "    try: attest.check(mine, **{'cases': 5, **wanted})\n"
             "    except (attest.AttestError, OSError) as error: print(error)\n");
  const ShellResult result = run("/usr/bin/python3 test_mine.py; ls tmp");
  EXPECT_EQ(lines_in(result.output), 4) << result.output;
  EXPECT_THAT(result.output, Says("--cases is 0; it must be at least 1", "f31", "\"nothing\"", "/nowhere"));
}

TEST_F(PythonModule, SaysWhatCannotBeServed) {
  write_test(folder_, "1.0",
             "import sys\nsys.modules['torch'] = None\n"  // as where torch is not installed
             "def told(function, **wrong):\n"
             "    try: attest.check(function, cases=5, dtypes='f32', manifest=nan, **wrong)\n"
             "    except Exception as error: print(f'{type(error).__name__}: {error}')\n"
             "told(None)\ntold(mine, framework='paddle')\ntold(mine, bf16='f16')\ntold('mine')\n"
             "told(mine, framework='torch')\n");
  const ShellResult result = run("/usr/bin/python3 test_mine.py; ls tmp");
  EXPECT_EQ(result.output,
            "AttestError: attest.check: there is nothing to call; give an attention function, multihead=, or both\n"
            "AttestError: attest.check: framework is 'paddle'; it must be 'numpy', 'torch', 'jax' or "
            "'cupy'\n"
            "AttestError: attest.check: bf16 is 'f16'; it must be 'f32' or 'bits'\n"
            "AttestError: attest.check: the function is 'mine'; it must be callable\n"
            "ModuleNotFoundError: import of torch halted; None in sys.modules\n");
}

TEST_F(PythonModule, TakesTorchTensors) {
  if (run("/usr/bin/python3 -c 'import torch'").status != 0) GTEST_SKIP() << "torch cannot be imported";
  write_test(folder_, "1.0",
             "import torch\n"
             "def attention(factor):\n"
             "    return lambda q, k, v, scale=1.0: torch.softmax(q @ k.mT * (scale * factor), -1) @ v\n"
             "def verdict(factor):\n"
             "    try: return attest.check(attention(factor), framework='torch', dtypes=[torch.float32], cases=20,\n"
             "                             properties='attention.oracle', manifest=nan)['verdict']\n"
             "    except AssertionError as error: return str(error).splitlines()[0]\n"
             "print(verdict(1.0))\nprint(verdict(1.01))\n");
  EXPECT_EQ(run("/usr/bin/python3 test_mine.py").output, "held\n<lambda>: violated: attention.oracle in f32\n");
}

}  // namespace
}  // namespace attest
