// Shapes on the command line and in files: what is read, what is refused in one line, and that the words of a journal
// draw the same again.
#include "reports/run/shape_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "core/test/refusal.h"
#include "core/test/says.h"
#include "core/test/temporary_folder.h"
#include "reports/commands/options/shared_options.h"
#include "reports/test/command_line/parsed.h"

namespace attest {
namespace {

TEST(ShapeOptions, AreReadAsTheyStand) {
  EXPECT_EQ(shape_of("--shape", "1,8,2,128,200,64"),
            (Extents{.batch = 1, .heads = 8, .kv_heads = 2, .queries = 128, .keys = 200, .dk = 64, .dv = 64}));
  EXPECT_EQ(shape_of("--shape", "2,3,1,1,65537,192,128").dv, 128);
}

TEST(ShapeOptions, RefuseWhatIsNoShape) {
  const auto refused = [](const char* text) { return refusal([&] { return shape_of("--shape", text); }); };
  for (const char* const text : {"", "1", "1,2,3,4,5", "1,2,1,4,5,6,7,8", "1,2,1,4,5,six", "1,2,1,4,5,6,",
                                 "1,2,1,-4,5,6", "1, 2,1,4,5,6", "99999999999999999999,1,1,1,1,1"})
    EXPECT_THAT(refused(text), Says("it must be B,H,KV,M,N,DK or B,H,KV,M,N,DK,DV in whole numbers")) << text;
  EXPECT_THAT(refused("1,0,0,4,5,6"), Says("every extent must be at least 1"));
  EXPECT_THAT(refused("1,8,3,4,5,6"), Says("H must be a multiple of KV"));
  EXPECT_THAT(refused("1,513,1,4,5,6"), Says("B, H, DK and DV may be 512 at most"));
  EXPECT_THAT(refused("512,512,1,1048576,5,6"), Says("elements at most"));
}

TEST(ShapeOptions, FilesHaveAShapeALine) {
  const test::TemporaryFolder folder;
  const auto file = folder.path() / "shapes";
  const auto with = [&](const char* text) {
    std::ofstream(file) << text;
    return refusal([&] { return shapes_in("--shapes", file); });
  };
  std::ofstream(file) << "# of our model\n1,8,2,128,200,64\n\n 1, 8, 2, 1, 4096, 64   # decoding\r\n";
  const std::vector<Extents> shapes = shapes_in("--shapes", file);
  ASSERT_EQ(shapes.size(), 2U);
  EXPECT_EQ(shapes[1].keys, 4096);
  EXPECT_THAT(with("1,8,2,128,200,64\n1,8\n"), Says("line 2"));
  EXPECT_THAT(with("# nothing\n"), Says("holds no shape"));
}

TEST(ShapeOptions, OfAJournalDrawTheSame) {
  EXPECT_EQ(shape_options(to_string(small_shapes)), " --no-large");
  EXPECT_EQ(shape_options(to_string(default_shapes)), "");
  const Shapes given{.large = LargeCases::all, .given = {shape_of("--shape", "1,8,2,128,200,64,32")}};
  EXPECT_EQ(shape_options(to_string(given)), " --shapes-only --shape 1,8,2,128,200,64,32");
}

TEST(ShapeOptions, LeaveMemoryForEachJob) {
  constexpr double gib = 0x1p30;
  const std::vector<Extents> small{shape_of("--shape", "1,8,2,128,200,64")};
  const std::vector<Extents> large{small[0], shape_of("--shape", "1,8,1,1048576,2,1,128")};
  EXPECT_NO_THROW(refuse_beyond_memory(small, 8, 64, 4 * gib));
  EXPECT_NO_THROW(refuse_beyond_memory(large, 4, 1, 24 * gib));
  EXPECT_THAT(
      refusal([&] { refuse_beyond_memory(large, 4, 2, 24 * gib); }),
      Says("the shape 1,8,1,1048576,2,1,128 takes about 17 GiB in each of 2 jobs, and this machine has 24; give "
           "--jobs 1"));
  EXPECT_THAT(refusal([&] { refuse_beyond_memory(large, 8, 2, 24 * gib); }), Says("give a smaller one"));
}

struct OnlyShapes {
  ShapeOptions shapes;
  void declare(OptionList& list) { shapes.declare(list); }
  void refuse() const { shapes.refuse(); }
};

TEST(ShapeOptions, ExcludeEachOther) {
  const auto read = parsed<OnlyShapes>;
  std::vector<std::string> notes;
  EXPECT_EQ(read({}).shapes.read(notes), default_shapes);
  EXPECT_EQ(read({"--no-large"}).shapes.read(notes), small_shapes);
  EXPECT_EQ(read({"--shapes-only"}).shapes.read(notes).large, LargeCases::all);
  EXPECT_EQ(read({"--shape", "1,1,1,2,3,4", "--shape=1,1,1,5,6,7"}).shapes.read(notes).given.size(), 2U);
  for (const auto& words : {std::vector<const char*>{"--no-large", "--shapes-only"},
                            std::vector<const char*>{"--no-large", "--shape", "1,1,1,1,1,1"}})
    EXPECT_THAT(refusal([&] { return read(words); }), Says("--no-large draws no production shapes"));
}

}  // namespace
}  // namespace attest
