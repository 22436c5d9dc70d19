// Shapes that FlashInfer and flashinfer-bench recorded: what each kind of attention becomes, what is left out and told,
// and what is refused in one line. The files here are written for the test in the formats of those.
#include "reports/run/recorded_shapes.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "core/test/refusal.h"
#include "core/test/says.h"
#include "core/test/temporary_folder.h"

namespace attest {
namespace {

/// A data set that grows as a test writes into it.
class RecordedShapes : public testing::Test {
 protected:
  std::filesystem::path write(const std::string& name, const std::string& text) const {
    const auto file = folder_.path() / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
    return file;
  }
  [[nodiscard]] std::filesystem::path root() const { return folder_.path(); }

  /// `axes`: "batch_size num_qo_heads=32", those with a value fixed.
  std::filesystem::path define(const std::string& op_type, const std::string& name, const std::string& axes,
                               const std::string& tags = {}) const {
    std::string text;
    std::istringstream words(axes);
    for (std::string word; words >> word;) {
      const auto equals = word.find('=');
      text += fmt::format(R"({}"{}": {{"type": "{}"{}}})", text.empty() ? "" : ", ", word.substr(0, equals),
                          equals == std::string::npos ? "var" : "const",
                          equals == std::string::npos ? "" : fmt::format(R"(, "value": {})", word.substr(equals + 1)));
    }
    return write(fmt::format("definitions/{}/{}.json", op_type, name),
                 fmt::format(R"({{"name": "{}", "op_type": "{}", "tags": ["fi_api:some.call"{}], "axes": {{{}}},
                                  "inputs": {{"q": {{"shape": ["batch_size"], "dtype": "bfloat16"}}}},
                                  "outputs": {{}}, "reference": "def run(): pass"}})",
                             name, op_type, tags, text));
  }
  /// `axes` as JSON has them, without braces.
  static std::string call(const std::string& definition, const std::string& axes) {
    return fmt::format(R"({{"definition": "{}", "solution": null, "workload": {{"uuid": "0", "axes": {{{}}},
                            "inputs": {{"q": {{"type": "random"}}}}}}, "evaluation": null}})",
                       definition, axes);
  }
  std::filesystem::path record(const std::string& op_type, const std::string& definition,
                               const std::vector<std::string>& calls) const {
    std::string lines;
    for (const std::string& axes : calls) {
      std::string line = call(definition, axes);
      std::erase(line, '\n');
      lines += line + "\n";
    }
    return write(fmt::format("workloads/{}/{}.jsonl", op_type, definition), lines);
  }
  static std::string texts(const ReadShapes& read) {
    std::string text;
    for (const Extents& e : read.shapes) text += (text.empty() ? "" : " ") + text_of(e);
    return text;
  }
  static std::string notes(const ReadShapes& read) { return fmt::format("{}", fmt::join(read.notes, "\n")); }
  static std::string refused(const std::filesystem::path& path) {
    return refusal([&] { return read_shapes("--shapes", path); });
  }

  static constexpr const char* decode =
      "batch_size num_qo_heads=32 num_kv_heads=4 head_dim=128 num_pages page_size=16 len_indptr num_kv_indices";
  static constexpr const char* ragged =
      "num_qo_heads=16 num_kv_heads=2 head_dim_qk=192 head_dim_vo=128 len_indptr total_q total_kv";

 private:
  test::TemporaryFolder folder_;
};

TEST_F(RecordedShapes, OfAPagedDecodeAreOneQueryOnWholePages) {
  define("gqa_paged", "dec", decode);
  const ReadShapes read =
      read_shapes("--shapes", record("gqa_paged", "dec",
                                     {R"("batch_size": 1, "len_indptr": 2, "num_pages": 9, "num_kv_indices": 7)",
                                      R"("batch_size": 4, "len_indptr": 5, "num_pages": 90, "num_kv_indices": 30)"}));
  // 30 pages of 16 tokens for four sequences.
  EXPECT_EQ(texts(read), "1,32,4,1,112,128 4,32,4,1,120,128");
  EXPECT_THAT(notes(read), Says("2 of 2 calls: the sequences of a batch have their average length"));
}

TEST_F(RecordedShapes, OfARaggedPrefillAreAverages) {
  define("gqa_ragged", "rag", ragged);
  const ReadShapes read = read_shapes("--shapes", record("gqa_ragged", "rag",
                                                         {R"("len_indptr": 4, "total_q": 100, "total_kv": 302)",
                                                          R"("len_indptr": 2, "total_q": 34, "total_kv": 34)"}));
  EXPECT_EQ(texts(read), "3,16,2,34,101,192,128 1,16,2,34,34,192,128");
  EXPECT_THAT(notes(read), Says("1 of 2 calls"));
}

TEST_F(RecordedShapes, OfAPagedPrefillHaveQueriesAndPages) {
  define("gqa_paged", "pre",
         "num_qo_heads=8 num_kv_heads=8 head_dim=64 page_size=1 len_indptr total_q num_kv_indices num_pages");
  EXPECT_EQ(texts(read_shapes("--shapes",
                              record("gqa_paged", "pre", {R"("len_indptr": 3, "total_q": 9, "num_kv_indices": 20)"}))),
            "2,8,8,5,10,64");
}

TEST_F(RecordedShapes, OfSingleSequencesAndOtherLibrariesByTheirNames) {
  define("single_decode", "one", "num_qo_heads=8 num_kv_heads=2 head_dim=64 kv_len");
  record("single_decode", "one", {R"("kv_len": 300)"});
  define("single_prefill", "all", "num_qo_heads=8 num_kv_heads=2 head_dim=64 qo_len kv_len");
  record("single_prefill", "all", {R"("qo_len": 7, "kv_len": 11)"});
  define("trtllm_paged", "trt",
         "num_tokens num_heads=6 num_kv_heads=3 head_dim=64 page_size=32 batch_size "
         "max_pages_per_seq",
         R"(, "stage:decode")");
  record("trtllm_paged", "trt", {R"("num_tokens": 4, "batch_size": 2, "max_pages_per_seq": 3)"});
  define("cudnn_paged", "cud", "batch_size num_pages_per_seq num_heads_qo=4 num_heads_kv=1 head_dim=96 page_size=8");
  record("cudnn_paged", "cud", {R"("batch_size": 5, "num_pages_per_seq": 2)"});
  // Without heads of keys k has those of q.
  define("gqa_ragged", "dsl", "total_q_len total_kv_len num_heads=4 head_dim=32");
  record("gqa_ragged", "dsl", {R"("total_q_len": 3, "total_kv_len": 5)"});
  EXPECT_EQ(texts(read_shapes("--shapes", root())),
            "5,4,1,1,16,96 1,4,4,3,5,32 1,8,2,1,300,64 1,8,2,7,11,64 2,6,3,2,96,64");
}

TEST_F(RecordedShapes, OfADefinitionAloneHaveOurLengths) {
  const ReadShapes decoding = read_shapes("--shapes", define("gqa_paged", "dec", decode));
  ASSERT_EQ(decoding.shapes.size(), 3U);
  for (const Extents& e : decoding.shapes) {
    EXPECT_EQ(e.queries, 1);
    EXPECT_GE(e.keys, 500);
    EXPECT_EQ((std::vector{e.heads, e.kv_heads, e.dk, e.dv}), (std::vector<std::int64_t>{32, 4, 128, 128}));
  }
  EXPECT_THAT(notes(decoding), Says("1 definition without a recorded call", "heads and widths are recorded"));
  const ReadShapes prompts = read_shapes("--shapes", define("gqa_ragged", "rag", ragged));
  ASSERT_EQ(prompts.shapes.size(), 3U);
  for (const Extents& e : prompts.shapes) EXPECT_GT(e.queries, 1);
  EXPECT_EQ(prompts.shapes[0].dv, 128);
  // Tagged as decoding, though it has tokens.
  const ReadShapes tagged = read_shapes(
      "--shapes",
      define("xqa", "xqa", "num_tokens num_heads=6 num_kv_heads=3 head_dim=64 batch_size", R"(, "stage:decode")"));
  EXPECT_EQ(tagged.shapes[0].queries, 1);
  // As many as are guessed at once.
  const ReadShapes guessed =
      read_shapes("--shapes", define("gqa_paged", "ts",
                                     "batch_size seq_len_q=4 num_qo_heads=6 num_kv_heads=3 head_dim=64 num_kv_indices",
                                     R"(, "stage:decode")"));
  EXPECT_EQ(guessed.shapes[2].queries, 4);
}

TEST_F(RecordedShapes, OfAFolderAreOfItsCallsAndElseOfItsDefinitions) {
  define("gqa_paged", "dec", decode);
  record("gqa_paged", "dec",
         {R"("batch_size": 1, "len_indptr": 2, "num_kv_indices": 7)",
          R"("batch_size": 1, "len_indptr": 2, "num_kv_indices": 7)"});
  define("gqa_ragged", "rag", ragged);
  for (const char* const name : {"n-1", "n-2"}) define("rmsnorm", name, "batch_size hidden_size=4096");
  define("gemm", "g", "M N=4096 K=4096");
  record("gemm", "g", {R"("M": 5)"});
  define("mla_paged", "m", "batch_size num_qo_heads=16 head_dim_ckv=512 head_dim_kpe=64 page_size=1");
  // Of a data set, what stands beside definitions and workloads is not read.
  write("solutions/a/s.json", "no JSON");
  const ReadShapes read = read_shapes("--shapes", root());
  EXPECT_EQ(read.shapes.size(), 4U) << texts(read);
  EXPECT_EQ(text_of(read.shapes[0]), "1,32,4,1,112,128");
  EXPECT_THAT(notes(read),
              Says("4 of 6 definitions are no attention that Attest asks: rmsnorm 2, gemm 1, mla_paged 1\n",
                   "1 definition without a recorded call", root().string()));
  EXPECT_THAT(notes(read), NeverSays("left out", "it has", "n-1"));
}

TEST_F(RecordedShapes, OfADumpLieInOneFolder) {
  const auto text = [&](const std::filesystem::path& file) {
    std::ifstream stream(file);
    return std::string(std::istreambuf_iterator<char>(stream), {});
  };
  const std::string definition = text(define("gqa_paged", "dec", decode));
  write("dump/dec.json", definition);
  write("dump/settings.json", R"({"level": 3})");
  write("dump/broken.txt", "{");
  const ReadShapes read = read_shapes("--shapes", root() / "dump");
  EXPECT_EQ(read.shapes.size(), 3U);
  EXPECT_THAT(notes(read), Says("1 file of JSON is no definition"));
  // Workloads beside their definition.
  std::filesystem::remove_all(root() / "definitions");
  std::string line = call("dec", R"("batch_size": 2, "num_kv_indices": 7)");
  std::erase(line, '\n');
  EXPECT_EQ(texts(read_shapes("--shapes", write("dump/calls.jsonl", line + "\r\n\n"))), "2,32,4,1,56,128");
}

TEST_F(RecordedShapes, BeyondWhatIsDrawnAreLeftOutAndTold) {
  define("gqa_paged", "dec", decode);
  const auto file =
      record("gqa_paged", "dec",
             {R"("batch_size": 600, "num_kv_indices": 7)", R"("batch_size": 1, "num_kv_indices": 2147483647)",
              R"("batch_size": 1, "num_kv_indices": 0)", R"("batch_size": 0, "num_kv_indices": 1)",
              R"("batch_size": 1, "num_kv_indices": 7)"});
  const ReadShapes read = read_shapes("--shapes", file);
  EXPECT_EQ(texts(read), "1,32,4,1,112,128");
  EXPECT_THAT(notes(read),
              Says("4 shapes left out, the first", "dec.jsonl\":1: 600,32,4,1,1,128 is no shape: B, H, DK"));
  // The heads of keys are known when it is called, and recorded nowhere.
  EXPECT_THAT(refused(write("unknown.json", R"({"name": "u", "op_type": "xqa", "axes": {
      "num_heads_qo": {"type": "const", "value": 8}, "num_kv_heads": {"type": "const", "value": 8},
      "head_dim": {"type": "const"}}})")),
              Says("its width is no fixed axis, as head_dim"));
  const auto run = define("gqa_paged", "run", "num_qo_tokens num_qo_heads=8 num_kv_heads head_dim=64");
  EXPECT_THAT(refused(run), Says("holds no shape of attention", "its key-value heads are no fixed axis"));
}

TEST_F(RecordedShapes, AreThinnedOutEvenly) {
  define("single_decode", "one", "num_qo_heads=8 num_kv_heads=2 head_dim=64 kv_len");
  std::vector<std::string> calls;
  for (int keys = 1; keys <= 1024; ++keys) calls.push_back(fmt::format(R"("kv_len": {})", keys));
  const ReadShapes read = read_shapes("--shapes", record("single_decode", "one", calls));
  ASSERT_EQ(read.shapes.size(), most_recorded_shapes);
  EXPECT_EQ(read.shapes[1].keys, 5);
  EXPECT_EQ(read.shapes.back().keys, 1021);
  EXPECT_THAT(notes(read), Says("256 of 1024 shapes are taken"));
}

TEST_F(RecordedShapes, RefuseDefinitionsThatAreNone) {
  const auto with = [&](const std::string& text) { return refused(write("d.json", text)); };
  EXPECT_THAT(with("B,H"), Says("--shapes", "d.json\": is not JSON", "correct the file"));
  EXPECT_THAT(with(""), Says("is not JSON"));
  EXPECT_THAT(with("[1]"), Says("it must be an object"));
  EXPECT_THAT(with(std::string(100'000, '[')), Says("nests more than 16 levels"));
  EXPECT_THAT(with(R"({"level": 3})"), Says("holds no shape of attention", "1 file of JSON is no definition"));
  EXPECT_THAT(with(R"({"op_type": "gqa_paged", "axes": {}})"), Says("\"name\" is missing"));
  EXPECT_THAT(with(R"({"name": 3, "op_type": "gqa_paged", "axes": {}})"), Says("\"name\" is 3; it must be a string"));
  EXPECT_THAT(with(R"({"name": "a", "op_type": "gqa_paged"})"), Says("\"axes\" is missing"));
  EXPECT_THAT(with(R"({"name": "a", "op_type": "gqa_paged", "axes": {}, "axes": {}})"), Says("twice"));
  EXPECT_THAT(with(R"({"name": "a", "op_type": "gqa_paged", "axes": {}})"), Says("its heads are no fixed axis"));
  const auto axis = [&](const char* text) {
    return with(fmt::format(R"({{"name": "a", "op_type": "gqa_paged", "axes": {{"head_dim": {}}}}})", text));
  };
  // Of what is no attention nothing is held against it.
  EXPECT_THAT(with(R"({"name": "a", "op_type": "rope", "axes": {"head_dim": 128}})"), Says("rope 1"));
  EXPECT_THAT(axis("128"), Says("\"axes\".\"head_dim\" is 128; it must be an object"));
  EXPECT_THAT(axis(R"({"value": 128})"), Says("\"axes\".\"head_dim\".\"type\" is missing"));
  EXPECT_THAT(axis(R"({"type": "let", "value": 128})"), Says("that word is unknown"));
  for (const char* const value : {"0", "-8", "1e30", "128.0", "\"128\"", "99999999999999999999"})
    EXPECT_THAT(axis(fmt::format(R"({{"type": "const", "value": {}}})", value).c_str()),
                Says("\"head_dim\".\"value\" is", "it must be a whole number from 1 to 2147483647"))
        << value;
  EXPECT_THAT(with(std::string(std::size_t{5} << 20U, ' ')), Says("has 5242880 bytes", "4194304 at most"));
  EXPECT_THAT(refused(define("rmsnorm", "n\\u001b[31m", "batch_size")),
              Says("holds no shape of attention; 1 of 1 definition is no attention that Attest asks: rmsnorm 1"));
  EXPECT_THAT(with(R"({"name": "a", "op_type": "x\n\u001b", "axes": {}})"), Says("asks: x\\x0a\\x1b 1"));
}

TEST_F(RecordedShapes, RefuseLinesThatAreNoWorkloads) {
  define("gqa_paged", "dec", decode);
  const auto with = [&](const std::string& line) {
    return refused(write("workloads/gqa_paged/dec.jsonl", "\n" + line + "\n"));
  };
  EXPECT_THAT(with("{]"), Says("dec.jsonl\":2: is not JSON", "correct the line, or take it out"));
  EXPECT_THAT(with("3"), Says("it must be an object"));
  EXPECT_THAT(with("{}"), Says("\"definition\" is missing"));
  EXPECT_THAT(with(R"({"definition": 3})"), Says("\"definition\" is 3"));
  EXPECT_THAT(with(R"({"definition": "dec"})"), Says("\"workload\" is missing"));
  EXPECT_THAT(with(R"({"definition": "dec", "workload": 3})"), Says("\"workload\" is 3; it must be an object"));
  EXPECT_THAT(with(R"({"definition": "dec", "workload": {}})"), Says("\"workload\".\"axes\" is missing"));
  EXPECT_THAT(with(R"({"definition": "../dec", "workload": {"axes": {}}})"),
              Says(":2: there is no definition \"../dec\" here", "definitions/ of the data set"));
  const auto axes = [&](const char* text) {
    return with(fmt::format(R"({{"definition": "dec", "workload": {{"axes": {{{}}}}}}})", text));
  };
  EXPECT_THAT(axes(R"("batch_size": 1)"), Says(":2: \"axes\" has no \"num_kv_indices\"", "leaves open"));
  EXPECT_THAT(axes(R"("head_dim": 64)"), Says("\"axes\".\"head_dim\" is 64; the definition \"dec\" fixes it at 128"));
  for (const char* const value : {"-1", "2147483648", "1.5", "\"7\"", "[7]", "true"})
    EXPECT_THAT(axes(fmt::format(R"("batch_size": {})", value).c_str()),
                Says("\"batch_size\" is", "it must be a whole number from 0 to 2147483647"))
        << value;
  EXPECT_THAT(with(std::string(std::size_t{5} << 20U, 'x')), Says(":2: has 5242880 bytes, a line may have 4194304"));
  const auto large = write("large.jsonl", "");
  std::filesystem::resize_file(large, std::uintmax_t{100} << 20U);
  EXPECT_THAT(refused(large), Says("large.jsonl\": has 104857600 bytes", "67108864 at most", "give a part"));
}

TEST_F(RecordedShapes, RefuseFoldersWithoutAny) {
  std::filesystem::create_directories(root() / "empty");
  EXPECT_THAT(refused(root() / "empty"), Says("holds no shape of attention; it takes definitions and workloads"));
  EXPECT_THAT(refused(root() / "missing.json"), Says("cannot read"));
  write("loop/b.json", "{");
  EXPECT_THAT(refused(root() / "loop"), Says("b.json\": is not JSON"));
  // A link to a folder above does not make it endless.
  std::filesystem::remove(root() / "loop/b.json");
  std::filesystem::create_directory_symlink(root(), root() / "loop/up");
  EXPECT_THAT(refused(root() / "loop"), Says("holds no shape"));
}

}  // namespace
}  // namespace attest
