#include "reports/commands/shared_options.h"

#include <gtest/gtest.h>

#include "core/support/errors.h"
#include "reports/command_line/parse.h"
#include "reports/commands/run_kernels.h"

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
    ci_files.declare(list);
    declare_against(list, against);
    declare_alarm(list, alarm);
    declare_dtypes(list, dtypes);
    declare_jobs(list, jobs);
    declare_known(list, known);
    declare_quiet(list, quiet);
    declare_seed(list, seed);
  }
};

AllShared read(const std::vector<const char*>& words) {
  AllShared seen;
  const Command commands[] = {Command{with_options<AllShared>([&](const AllShared& options) {
                                        seen = options;
                                        return 0;
                                      }),
                                      "all", "", "", ""}};
  std::vector<const char*> line{"attest", "all"};
  line.insert(line.end(), words.begin(), words.end());
  EXPECT_EQ(parse(commands, line).command->run(line), 0);
  return seen;
}

TEST(SharedOptions, AreReadIntoTheirFields) {
  const AllShared o = read({"--kernel",
                            "builtin:*",
                            "--kernel=exec:python3 a.py --x",
                            "--dtype",
                            "f32,bf16",
                            "--dtype",
                            "f32",
                            "--seed",
                            "18446744073709551615",
                            "--jobs",
                            "3",
                            "--out",
                            "o",
                            "--overwrite",
                            "--shard",
                            "1/4",
                            "--timeout",
                            "500ms",
                            "--alarm",
                            "--memory",
                            "1.5GiB",
                            "--in-process",
                            "--quiet",
                            "--junit",
                            "j",
                            "--sarif",
                            "s",
                            "--known",
                            "k",
                            "--baseline",
                            "b"});
  EXPECT_EQ(o.kernels, (std::vector<std::string>{"builtin:*", "exec:python3 a.py --x"}));
  EXPECT_EQ(o.dtypes, (std::vector<DType>{DType::f32, DType::bf16}));
  EXPECT_EQ(o.seed, 18446744073709551615U);
  EXPECT_EQ(o.jobs, 3);
  EXPECT_EQ(o.place.out, "o");
  EXPECT_TRUE(o.place.overwrite && o.quiet && o.alarm && !o.place.resume);
  EXPECT_EQ(o.place.shard, (Shard{1, 4}));
  EXPECT_EQ(o.process.options().reply, std::chrono::milliseconds(500));
  EXPECT_EQ(o.process.options().first_reply, std::chrono::milliseconds(60'000));
  EXPECT_EQ(o.process.options().memory, 3U << 29U);
  EXPECT_TRUE(o.process.options().in_process);
  EXPECT_EQ(o.ci_files.junit, "j");
  EXPECT_EQ(o.ci_files.sarif, "s");
  EXPECT_EQ(o.known, "k");
  EXPECT_EQ(o.baseline, "b");
  const AllShared more = read({"--resume", "--accept-changed-kernel", "--salvage", "-o", "o", "--against", "k",
                               "--timeout", "2m", "--jobs", "5000"});
  EXPECT_TRUE(more.place.resume && more.place.accept_changed_kernel && more.place.salvage && !more.place.overwrite);
  EXPECT_EQ(more.against, "k");
  EXPECT_EQ(more.process.options().first_reply, std::chrono::minutes(2)) << "the first is never less than the others";
  EXPECT_EQ(more.jobs, 1024);
}

TEST(SharedOptions, HaveDefaults) {
  const AllShared o = read({});
  EXPECT_EQ(o.process.options().memory, std::uint64_t{4} << 30U);
  EXPECT_EQ(o.process.options().reply, std::chrono::seconds(10));
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
