// What a newcomer's first kernel does wrong, as he meets it: said at once, before a run that ends soon.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "core/journal/journal.h"
#include "core/test/places.h"
#include "reports/test/json.h"
#include "reports/test/program_checks.h"
#include "reports/test/shell.h"

namespace attest {
namespace {

using fake::Folder;
using testing::StartsWith;

/// A kernel in Python, of the body of a function; each of its processes writes a line to `starts`.
void write_kernel(const Folder& folder, const std::string& body) {
  std::ofstream(folder / "mine.py") << "import sys\nsys.path.insert(0, '" + source_folder() +
                                           "/core/adapters/python')\n"
                                           "import attest_adapter, numpy, time\nnumpy.seterr(all='ignore')\n"
                                           "open('starts', 'a').write('once\\n')\n"
                                           "def softmax(x):\n"
                                           "    x = numpy.exp(x - x.max(axis=-1, keepdims=True, initial=-numpy.inf))\n"
                                           "    return x / x.sum(axis=-1, keepdims=True)\n"
                                           "def mine(q, k, v):\n    root = q.dtype.type(q.shape[-1] ** -0.5)\n    "
                                    << body << "\nattest_adapter.serve(mine)\n";
}

class PreflightProgram : public testing::Test {
 protected:
  void SetUp() override {
    if (shell(folder_, "/usr/bin/python3 -c 'import numpy'").status != 0) GTEST_SKIP() << "numpy cannot be imported";
  }
  ShellResult run(const std::string& line) { return shell(folder_, line); }
  /// The default run but for the number of cases.
  ShellResult check(const std::string& body, const std::string& more = "") {
    write_kernel(folder_, body);
    return run(
        "rm -f starts; $attest check --verbose --kernel 'exec:/usr/bin/python3 mine.py' --cases 20 --jobs 1 --out run "
        "--overwrite " +
        more);
  }
  std::ptrdiff_t starts() { return lines_in(read_file(folder_ / "starts")); }
  /// Subjects of which anything was judged.
  std::size_t judged() {
    std::size_t count = 0;
    const auto summary = summary_of(folder_, "run");
    for (const auto& kernel : summary["kernels"]) {
      for (const auto& property : kernel["properties"])
        count += property["violated"].get<std::int64_t>() + property["held"].get<std::int64_t>() > 0 ? 1 : 0;
    }
    return count;
  }
  /// It is said before all else, and no process is lost over it: one for the limits, one for the preflight, one for the
  /// run, and one for each of the first eight findings of a kind, which are tried on a kernel started afresh.
  void expect_said(const std::string& body, const std::string& guess,
                   const std::string& properties = "--property attention.oracle") {
    const ShellResult result = check(body, properties);
    EXPECT_EQ(result.status, 1) << result.output;
    EXPECT_THAT(result.output,
                StartsWith("preflight of exec:/usr/bin/python3 mine.py: its first answer in f64, f32: "));
    EXPECT_THAT(result.output.substr(0, result.output.find('\n')), Says(guess));
    const Journal journal = read_journal(folder_ / "run");
    EXPECT_FALSE(journal.findings.empty());
    EXPECT_LE(starts(), 3 + std::ssize(journal.findings)) << result.output;
    for (const FindingRecord& finding : journal.findings)
      EXPECT_TRUE(std::filesystem::exists(folder_ / ("run/" + finding.case_file)));
  }
  Folder folder_;
};

TEST_F(PreflightProgram, TellsAnAnswerOfAnotherShape) {
  expect_said("return q", "out has the shape [2, 3, 5, 4]; it must be [2, 3, 5, 6]: it is q itself");
}

TEST_F(PreflightProgram, TellsAnotherOrderOfAxes) {
  // It takes heads for tokens, so that the numbers of keys and of queries do not fit each other.
  expect_said("return numpy.einsum('bhqk,bkhd->bqhd', softmax(numpy.einsum('bqhd,bkhd->bhqk', q, k) * root), v)",
              "it looks as if it took q, k and v for [batch, tokens, heads, dim]");
  // It gives its answer back so alone.
  expect_said("return (softmax(q @ k.swapaxes(-1, -2) * root) @ v).swapaxes(1, 2)",
              "out has the shape [2, 5, 3, 6]; it must be [2, 3, 5, 6]: it looks like [batch, tokens, heads, dim]");
}

TEST_F(PreflightProgram, TellsAnExceptionAndAnotherDtype) {
  expect_said("raise KeyError('weights')", "failed: KeyError: 'weights'", /*properties=*/"");
  // One that never answers is asked the first cases of one property in each dtype, and no more.
  EXPECT_EQ(judged(), 2U);
  expect_said("pass", "failed: TypeError: the function returned None; it must return out");
  const ShellResult wider =
      check("return (softmax(q @ k.swapaxes(-1, -2) * root) @ v).astype('f8')", "--property attention.oracle");
  EXPECT_EQ(wider.status, 1);
  EXPECT_THAT(wider.output,
              Says("its first answer in f32: failed: TypeError: the function returned out in float64 where "
                   "float32 is due"));
}

TEST_F(PreflightProgram, TellsNumbersThatAreNone) {
  const ShellResult result =
      check("return numpy.full(q.shape[:-1] + v.shape[-1:], numpy.nan, q.dtype)", "--property 'attention.*'");
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.output, Says("every number of out [2, 3, 5, 6] is NaN or Inf"));
  // Of nearly as many findings as there are properties and dtypes, three of each.
  EXPECT_GT(read_journal(folder_ / "run").findings.size(), 60U);
  EXPECT_LE(starts(), 20);
}

TEST_F(PreflightProgram, SaysHowLongARunTakes) {
  const std::string right = "return softmax(q @ k.swapaxes(-1, -2) * root) @ v";
  write_kernel(folder_, "time.sleep(0.3); " + right);
  const std::string output =
      run("timeout -s INT 6 $attest check --verbose --kernel 'exec:/usr/bin/python3 mine.py' --cases 3000 "
          "--property attention.oracle --jobs 1 --out run")
          .output;
  EXPECT_THAT(output, StartsWith("preflight of exec:/usr/bin/python3 mine.py: a call takes 0.3"));
  EXPECT_THAT(output, Says("so that the 6000 cases of this run take 30 m"));
  // One that is right and quick costs no line.
  EXPECT_THAT(check(right, "--property attention.oracle").output, NeverSays("preflight"));
}

TEST_F(PreflightProgram, LeavesTheRecordsAsTheyAre) {
  ASSERT_EQ(check("return q", "--property attention.oracle").status, 1);
  const auto notes = summary_of(folder_, "run")["notes"];
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_THAT(notes[0]["text"].get<std::string>(), Says("it is q itself"));
  EXPECT_THAT(read_file(folder_ / "run/report.html"), Says("it is q itself"));
  ASSERT_EQ(run("$attest merge run -o merged.jsonl").status, 0);
  EXPECT_THAT(read_file(folder_ / "merged.jsonl"), NeverSays("its first answer"));
}

TEST_F(PreflightProgram, IsSaidByTheOtherCommands) {
  ASSERT_EQ(check("return q", "--property attention.oracle").status, 1);
  const std::string said = "its first answer in ";
  const std::string saved = "run/" + read_journal(folder_ / "run").findings.at(0).case_file;
  const ShellResult replay = run("$attest replay " + saved);
  EXPECT_EQ(replay.status, 1);
  EXPECT_THAT(replay.output, Says(said));
  const std::string kernel = " --kernel 'exec:/usr/bin/python3 mine.py' ";
  EXPECT_THAT(run("$attest probe" + kernel).output, StartsWith("preflight of exec:"));
  const ShellResult fuzz = run("$attest fuzz" + kernel + "--runs 3 --jobs 1 --out campaign");
  EXPECT_EQ(fuzz.status, 1);
  EXPECT_THAT(fuzz.output, StartsWith("preflight of exec:"));
}

// A library is given the memory of out: of another order of axes nothing but the numbers tells.
TEST_F(PreflightProgram, ReadsAnotherOrderOffALibrarysNumbers) {
  const std::string build =
      "sed -i 's/FROM/TO/' mine.c && cc -O1 -shared -fPIC -I " + source_folder() +
      "/core/include -o libmine.so mine.c -lm && $attest check --verbose --kernel ./libmine.so --property "
      "attention.oracle --cases 20 --out run --overwrite";
  const auto built = [&](const std::string& from, const std::string& to) {
    std::string line = build;
    line.replace(line.find("FROM"), 4, from).replace(line.find("TO/"), 2, to);
    return run("cp " + source_folder() + "/reports/starter/mine.c . && " + line);
  };
  const ShellResult right = built("nothing", "nothing");
  EXPECT_EQ(right.status, 0) << right.output;
  EXPECT_THAT(right.output, NeverSays("preflight"));
  const ShellResult swapped = built("out + (head \\* queries + i) \\* value_dim",
                                    "out + ((head \\/ heads * queries + i) * heads + head % heads) * value_dim");
  EXPECT_EQ(swapped.status, 1);
  EXPECT_THAT(swapped.output, StartsWith("preflight of ./libmine.so: its first answer in f32: the numbers of out "
                                         "[2, 3, 5, 6] are wrong: it looks like [batch, tokens, heads, dim] where "
                                         "[batch, heads, tokens, dim] is due\n"));
  const ShellResult unscaled = built("score \\*= scale", "score *= 1");
  EXPECT_THAT(unscaled.output, Says("it looks as if q.k were not multiplied by the scale"));
  const ShellResult failing =
      built("attention((const float\\*)p->q.data", "return 3; attention((const float*)p->q.data");
  EXPECT_EQ(failing.status, 1);
  EXPECT_THAT(failing.output, Says("its first answer in f32: failed: returned status 3"));
  EXPECT_EQ(judged(), 1U);
}

}  // namespace
}  // namespace attest
