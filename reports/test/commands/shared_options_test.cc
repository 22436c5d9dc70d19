#include "reports/commands/options/shared_options.h"

#include <gtest/gtest.h>

#include <array>
#include <filesystem>

#include "reports/commands/run_kernels.h"
#include "reports/test/command_line/parsed.h"

namespace attest {
namespace {

/// All that commands share.
struct AllShared : RunOptions {
  std::vector<DType> dtypes;
  int jobs = 0;
  std::uint64_t seed = 0;
  bool alarm = false;
  std::filesystem::path known, baseline;

  void declare(OptionList& list) {
    list.option("--kernel", kernels, kernel_name(), "");
    list.option("--baseline", baseline, baseline_name(), "");
    place.declare(list);
    process.declare(list);
    declare_ci_files(list);
    declare_against(list, against);
    declare_alarm(list, alarm);
    declare_dtypes(list, dtypes);
    declare_jobs(list, jobs);
    declare_known(list, known);
    declare_quiet(list, quiet);
    declare_seed(list, seed);
  }
};

const auto read = parsed<AllShared>;

TEST(SharedOptions, AreReadIntoTheirFields) {
  const AllShared what = read({"--kernel", "builtin:*", "--kernel=exec:python3 a.py --x", "--dtype", "f32,bf16",
                               "--dtype", "f32", "--seed", "18446744073709551615", "--jobs", "3", "--against", "a"});
  EXPECT_EQ(what.kernels, (std::vector<std::string>{"builtin:*", "exec:python3 a.py --x"}));
  EXPECT_EQ(what.dtypes, (std::vector<DType>{DType::f32, DType::bf16}));
  EXPECT_EQ(what.seed, 18446744073709551615U);
  EXPECT_EQ(what.jobs, 3);
  EXPECT_EQ(what.against, "a");
  EXPECT_EQ(read({"--jobs", "5000"}).jobs, 1024);

  const AllShared files =
      read({"--junit", "j", "--sarif", "s", "--comment", "c", "--badge", "v", "--known", "k", "--baseline", "b"});
  EXPECT_EQ(files.ci_files.files, (std::array<std::filesystem::path, report_formats.size()>{"j", "s", "c", "v", ""}));
  EXPECT_EQ(files.known, "k");
  EXPECT_EQ(files.baseline, "b");

  const AllShared fresh = read({"--out", "o", "--overwrite", "--shard", "1/4", "--alarm", "--quiet"});
  EXPECT_EQ(fresh.place.out, "o");
  EXPECT_EQ(fresh.place.shard, (Shard{1, 4}));
  EXPECT_TRUE(fresh.place.overwrite && fresh.quiet && fresh.alarm && !fresh.place.resume);
  const RunPlace more = read({"--resume", "--accept-changed-kernel", "--salvage", "-o", "o"}).place;
  EXPECT_TRUE(more.resume && more.accept_changed_kernel && more.salvage && !more.overwrite);
}

TEST(SharedOptions, NameTheSourceOfAKernelFromItsRepository) {
  for (const char* right : {"mine.c", "src/flash.cu:42", "a:b.cu:1"})
    EXPECT_EQ(read({"--source", right}).source, right);
  for (const char* wrong : {"", ":3", "/src/mine.c", "mine.c:", "mine.c:0", "mine.c:-1", "mine.c:3x", "mine.c:1e3",
                            "mine.c:99999999999999999999", "../mine.c", "src/../../mine.c:3"})
    EXPECT_THROW((void)read({"--source", wrong}), UsageError) << wrong;
}

TEST(SharedOptions, LimitTheProcessesOfKernels) {
  const KernelOptions limits = read({"--timeout", "500ms", "--memory", "1.5GiB", "--in-process"}).process.options();
  EXPECT_EQ(limits.reply, std::chrono::milliseconds(500));
  EXPECT_EQ(limits.first_reply, std::chrono::seconds(60));
  EXPECT_EQ(limits.memory, 3U << 29U);
  EXPECT_TRUE(limits.in_process);
  EXPECT_EQ(read({"--timeout", "2m"}).process.options().first_reply, std::chrono::minutes(2))
      << "the first is never less than the others";
}

TEST(SharedOptions, HaveDefaults) {
  const AllShared o = read({});
  EXPECT_EQ(o.process.options().memory, std::uint64_t{4} << 30U);
  EXPECT_FALSE(o.process.options().reply.has_value()) << "a limit that fits the case";
  EXPECT_FALSE(o.process.options().in_process);
  EXPECT_GE(o.jobs, 1);
  EXPECT_EQ(o.place.shard, (Shard{0, 1}));
  EXPECT_TRUE(o.dtypes.empty() && o.kernels.empty() && o.place.out.empty());
}

TEST(SharedOptions, ReadSizes) {
  EXPECT_EQ(read({"--memory", "none"}).process.options().memory, 0U);
  EXPECT_EQ(read({"--memory", "16777216"}).process.options().memory, 1U << 24U);
  EXPECT_EQ(read({"--memory", "512MiB"}).process.options().memory, 1U << 29U);
  EXPECT_EQ(read({"--memory", "2GB"}).process.options().memory, 2'000'000'000U);
}

}  // namespace
}  // namespace attest
