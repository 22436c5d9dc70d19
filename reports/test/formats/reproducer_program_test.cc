// replay --script: what is found in a wrong kernel, run without Attest by Python and by a C compiler, with the call
// left out, with a wrong one and with a right one put in.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "core/test/cases.h"
#include "core/test/says.h"
#include "reports/test/program_checks.h"

namespace attest {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// A file with a part exchanged that stands in it.
void exchange(const std::filesystem::path& file, const std::string& part, const std::string& instead) {
  std::string text = read_file(file);
  const std::size_t at = text.find(part);
  ASSERT_NE(at, std::string::npos) << part << " in\n" << text;
  std::ofstream(file) << text.replace(at, part.size(), instead);
}

/// Puts a call into a script that fills out, of `M` rows and so on, with `value` of b, h, i and d.
void call_in_python(const std::filesystem::path& file, const std::string& value) {
  exchange(file, "    return None\n",
           "    return [" + value + " for b in range(B) for h in range(H) for i in range(M) for d in range(dv)]\n");
}
void call_in_c(const std::filesystem::path& file, const std::string& value) {
  exchange(file, "  return 0;\n}",
           "  for (int b = 0; b < B; ++b)\n    for (int h = 0; h < H; ++h)\n      for (int i = 0; i < M; ++i)\n"
           "        for (int d = 0; d < dv; ++d) out[((b * H + h) * M + i) * dv + d] = (" +
               value + ");\n  return 1;\n}");
  exchange(file, "// Put your call here",
           "static long double exact(int b, int h, int i, int d);\n// Put your call here");
}

const std::string strict = "cc -std=c99 -Wall -Wextra -Wpedantic -Werror ";

/// What both scripts of a finding say, the call left out: 1 is their exit status.
std::string said_by_python(const fake::Folder& folder, const std::string& name, int status = 1) {
  return output_of(folder, "/usr/bin/python3 " + name + ".py", status);
}
std::string said_by_c(const fake::Folder& folder, const std::string& name, int status = 1) {
  return output_of(folder, strict + name + ".c -o " + name + ".out -lm || exit 99; ./" + name + ".out", status);
}

TEST(ReproducerScript, ShowsAFindingWithoutAttest) {
  const fake::Folder folder;
  expect_status(folder,
                "$attest check --kernel fault:interleaved-groups --dtype f32 --property attention.oracle --cases 100 "
                "--quiet --out run",
                1);
  EXPECT_THAT(output_of(folder, "$attest replay run", 1), HasSubstr("\n--script FILE.py or FILE.c writes this down"));
  for (const char* file : {"x.py", "x.c", "x.cc"})
    EXPECT_THAT(output_of(folder, std::string("$attest replay run --script ") + file, 1),
                AllOf(HasSubstr(std::string("\nwrote ") + file), testing::EndsWith("\nreproduced\n")));
  // A value of another head's is found, and both say so.
  const std::string python = said_by_python(folder, "x");
  EXPECT_THAT(python, Says("out[0, 1, 0, 0]: attest saw ", ", right ", ", allowed +- ", ": WRONG\n"));
  EXPECT_THAT(said_by_c(folder, "x"), Says("out[0, 1, 0, 0]: attest saw ", ", right ", ", allowed +- ", ": WRONG\n"));
  expect_status(folder, "c++ -std=c++17 -Wall -Wextra -Werror x.cc -o x.out -lm || exit 99; ./x.out", 1);

  const std::filesystem::path py = folder / "x.py", c = folder / "x.c";
  const std::string stub_in_python = read_file(py), stub_in_c = read_file(c);
  call_in_python(py, "float(exact(b, h, i, d))");
  EXPECT_THAT(said_by_python(folder, "x", 0), AllOf(Says(": found ", ": right\n"), NeverSays("WRONG")));
  call_in_c(c, "(float)exact(b, h, i, d)");
  EXPECT_THAT(said_by_c(folder, "x", 0), AllOf(Says(": found ", ": right\n"), NeverSays("WRONG")));
  for (const std::string wrong : {"2.5", "nan", "inf"}) {
    std::ofstream(py) << stub_in_python;
    call_in_python(py, wrong);
    EXPECT_THAT(said_by_python(folder, "x"), Says(": found " + wrong + ", right ", "WRONG"));
    std::ofstream(c) << stub_in_c;
    call_in_c(c, wrong == "nan" ? "NAN" : wrong == "inf" ? "INFINITY" : wrong);
    EXPECT_THAT(said_by_c(folder, "x"), Says(": found ", "WRONG"));
  }
}

TEST(ReproducerScript, ShowsAFindingAboutGradients) {
  const fake::Folder folder;
  expect_status(folder,
                "$attest check --kernel fault:dk-dv-averaged-over-the-group --dtype f32 --property backward.oracle-dv "
                "--cases 100 --quiet --out run",
                1);
  EXPECT_THAT(output_of(folder, "$attest replay run", 1), Says("\n--script FILE.py writes this down"));
  EXPECT_THAT(output_of(folder, "$attest replay run --script x.c 2>&1", 2),
              Says("--script \"x.c\": the finding is about gradients", "in Python alone"));
  EXPECT_FALSE(std::filesystem::exists(folder / "x.c"));
  EXPECT_THAT(output_of(folder, "$attest replay run --script x.py", 1), Says("\nwrote x.py"));
  EXPECT_THAT(said_by_python(folder, "x"), Says("dv[0, 0, 0, 0]: attest saw ", ", right ", ": WRONG\n"));
  const std::filesystem::path py = folder / "x.py";
  const std::string stub = read_file(py);
  const auto call = [&](const std::string& value) {
    std::ofstream(py) << stub;
    exchange(py, "    return None\n",
             "    return [" + value + " for b in range(B) for kv in range(KV) for j in range(N) for d in range(dv)]\n");
  };
  call("float(exact(b, kv, j, d))");
  EXPECT_THAT(said_by_python(folder, "x", 0), AllOf(Says(": found ", ": right\n"), NeverSays("WRONG")));
  for (const std::string wrong : {"250.5", "nan", "inf"}) {
    call(wrong);
    EXPECT_THAT(said_by_python(folder, "x"), Says(": found " + wrong + ", right ", "WRONG"));
  }
}

/// The law puts NaN into a hidden key and its value; the kernel multiplies them by zero.
TEST(ReproducerScript, IsOfTheCallOfALawAndReadsNoHiddenNumber) {
  const fake::Folder folder;
  if (!has_numpy(folder)) GTEST_SKIP() << "Python has no numpy";
  Case c = test::one_query(DType::f32, {1.0}, {1.0, 3.0}, {2.0, 4.0});
  c[Slot::mask] = Tensor(DType::boolean, {1, 1, 1, 2}, std::vector<double>{1, 0});
  c.provenance.property = "masked.suppression";
  c.provenance.arguments = "i=0 s=1 poison=3";
  save_case(c, folder / "case.safetensors");
  write_python(folder, "dead",
               "def attention(q, k, v, scale=1.0, mask=None):\n"
               "    scores = q @ k.swapaxes(-1, -2) * q.dtype.type(scale)\n"
               "    if mask is not None:\n"
               "        scores = numpy.where(mask, scores, q.dtype.type(-numpy.inf))\n"
               "    weights = numpy.exp(scores - scores.max(axis=-1, keepdims=True))\n"
               "    return weights @ v / weights.sum(axis=-1, keepdims=True)\n",
               "'dtypes': ['f32'], 'claims': ['ignores-dead-values'], **{'masks': ['bool']}");
  const std::string replay = "$attest replay case.safetensors --kernel 'exec:/usr/bin/python3 dead.py' --script ";
  expect_status(folder, replay + "x.py", 1);
  expect_status(folder, replay + "x.c", 1);
  EXPECT_THAT(read_file(folder / "x.py"), Says("\nk = [1.0, nan]\n", "\nv = [2.0, nan]\n", "\nmask = [True, False]\n"));
  EXPECT_THAT(said_by_python(folder, "x"), Says("attest saw nan, right 2.0 (Attest: 2)"));
  EXPECT_THAT(said_by_c(folder, "x"), Says("attest saw nan, right 2 (Attest: 2)"));
}

/// What the script computes by itself is what Attest proved, only where it hides what the case hides.
void expect_hides(Case c, const std::string& words, const std::string& condition) {
  SCOPED_TRACE(words);
  const fake::Folder folder;
  c.scale = 1;
  c.provenance.property = "attention.oracle";
  save_case(c, folder / "case.safetensors");
  for (const char* file : {"x.py", "x.c"})
    expect_status(folder, std::string("$attest replay case.safetensors --kernel fault:all-zeros --script ") + file, 1);
  for (const char* file : {"x.py", "x.c"}) EXPECT_THAT(read_file(folder / file), Says(words, condition));
  const std::string said = said_by_python(folder, "x");
  static const std::regex both(R"re(right (\S+) \(Attest: (\S+)\))re");
  int compared = 0;
  for (std::sregex_iterator at(said.begin(), said.end(), both), end; at != end; ++at, ++compared)
    EXPECT_NEAR(std::stod((*at)[1]), std::stod((*at)[2]), 1e-9) << said;
  EXPECT_GT(compared, 0) << said;
  EXPECT_THAT(said_by_c(folder, "x"), Says("WRONG"));
  // Where it is off, C's own answer is not believed.
  call_in_c(folder / "x.c", "(float)exact(b, h, i, d)");
  EXPECT_THAT(said_by_c(folder, "x", 0), NeverSays("WRONG"));
}

/// So many rows and keys, and numbers that differ from one to the next.
Case steps_of(std::int64_t queries, std::int64_t keys) {
  double last = 0;
  return test::attention_of({.queries = queries, .keys = keys}, [&](Slot, const Shape& shape) {
    return test::filled(DType::f32, shape, [&] { return last = last > 6 ? 0.5 : last + 0.75; });
  });
}

TEST(ReproducerScript, HidesWhatAWindowHides) {
  struct Window {
    std::int64_t left, right;
    Causal alignment;
    std::string words, condition;
    Causal causal = Causal::none;
  };
  const std::int64_t widest = 0x7fffffff;
  const Window windows[] = {
      {1, -1, Causal::top_left, "window from the top left: row i sees key j where -1 <= j - i\n", "i - j > 1"},
      {0, 1, Causal::bottom_right, "where 0 <= j - (i + N - M) <= 1\n", "j - (i + N - M) > 1"},
      {-1, 0, Causal::bottom_right, "where j - (i + N - M) <= 0\n", "j - (i + N - M) > 0"},
      {1, widest, Causal::bottom_right, "where -1 <= j - (i + N - M) <= 2147483647\n", "i + N - M - j > 1"},
      {widest, 1, Causal::top_left, "where -2147483647 <= j - i <= 1\n", "j - i > 1"},
      {1, -1, Causal::bottom_right, "where -1 <= j - (i + N - M)\n", "j > i + N - M", Causal::bottom_right}};
  for (const Window& window : windows) {
    Case c = steps_of(3, 5);
    c.causal = window.causal;
    c.window_left = window.left, c.window_right = window.right, c.alignment = window.alignment;
    expect_hides(std::move(c), window.words, window.condition);
  }
}

TEST(ReproducerScript, HidesWhatIsInOtherChunks) {
  struct Chunks {
    std::int64_t length, queries;
    Causal alignment;
    std::string words, condition;
    Causal causal = Causal::none;
  };
  const Chunks all[] = {
      {2, 3, Causal::top_left,
       "chunks of 2 keys from the top left: row i sees key j where floor(j / 2) = floor(i / 2)\n",
       "j - j % 2 != i - i % 2"},
      {3, 3, Causal::bottom_right,
       "chunks of 3 keys from the bottom right: row i sees key j where floor(j / 3) = floor((i + N - M) / 3)\n",
       "j - j % 3 != i + N - M - (i + N - M) % 3"},
      {3, 3, Causal::bottom_right, "floor((i + N - M) / 3)\n", "j > i + N - M", Causal::bottom_right},
      {0x7fffffff, 3, Causal::bottom_right, "chunks of 2147483647 keys", "j - j % 2147483647 != "},
      // The first rows are before the keys.
      {4, 7, Causal::bottom_right, "floor((i + N - M) / 4)\n", "i + N - M < 0"}};
  for (const Chunks& chunks : all) {
    Case c = steps_of(chunks.queries, 5);
    c.causal = chunks.causal, c.attention_chunk = chunks.length, c.alignment = chunks.alignment;
    expect_hides(std::move(c), chunks.words, chunks.condition);
  }
}

TEST(ReproducerScript, IsRefusedInOneLine) {
  const fake::Folder folder;
  write_case(folder / "case.safetensors", 0.5);
  std::ofstream(folder / "there.py") << "mine";
  const std::string wrong = "$attest replay case.safetensors --kernel fault:all-zeros --script ";
  EXPECT_THAT(one_line_of(folder, wrong + "x.txt", 2), Says("--script is \"x.txt\"", "ends in .py, .c, .cc or .cpp"));
  EXPECT_THAT(one_line_of(folder, wrong + "x", 2), Says("--script is \"x\""));
  EXPECT_THAT(one_line_of(folder, wrong + "no/x.py", 2), Says("no folder to stand in: make \"no\" first"));
  EXPECT_THAT(one_line_of(folder, wrong + "there.py", 2), Says("\"there.py\" is there already", "another file"));
  EXPECT_EQ(read_file(folder / "there.py"), "mine");
  EXPECT_THAT(output_of(folder, "$attest replay case.safetensors --kernel builtin:flash --script x.py", 2),
              Says("attest: --script \"x.py\": the case is held now"));
  expect_status(folder, "test ! -e x.py");
}

TEST(ReproducerScript, HasTheInputOfACallThatEndsTheKernel) {
  const fake::Folder folder;
  write_case(folder / "case.safetensors", 0.5);
  std::ofstream(folder / "dies.py") << "import sys, os\nsys.path.insert(0, '" + source_folder() +
                                           "/core/adapters/python')\nimport attest_adapter\n"
                                           "def attention(q, k, v, scale=1.0):\n    os._exit(7)\n"
                                           "attest_adapter.serve(attention, {'name': 'dies', 'dtypes': ['f32']})\n";
  if (!has_numpy(folder)) GTEST_SKIP() << "Python has no numpy";
  const std::string replay = "$attest replay case.safetensors --kernel 'exec:/usr/bin/python3 dies.py' --script ";
  expect_status(folder, replay + "x.py", 1);
  expect_status(folder, replay + "x.c", 1);
  EXPECT_THAT(read_file(folder / "x.py"), Says("# its call gave no output: \"died: "));
  EXPECT_THAT(said_by_python(folder, "x"), Says("attest saw None, right ", "WRONG"));
  EXPECT_THAT(said_by_c(folder, "x"), Says("WRONG"));
}

}  // namespace
}  // namespace attest
