// What a power cut leaves of a journal: what was put on the disk, and perhaps more.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <random>
#include <thread>
#include <vector>

#include "core/journal/journal.h"
#include "core/problem/case.h"
#include "core/support/files.h"
#include "core/test/temporary_folder.h"

namespace attest {
namespace {

using Clock = std::chrono::steady_clock;

BatchRecord batch_of(std::int64_t number) {
  BatchRecord batch{{"attention.oracle", "builtin:flash", "f32"}, number, number + 1, {}, {}};
  batch.tally.add(number, {.utilisation = 0.25});
  return batch;
}

// A disk that holds what it was last asked to hold. Whatever it holds beyond, of what was written, or zero bytes in its
// place, every batch that was written two periods before is read.
TEST(JournalSync, APowerCutTakesNoBatchThatIsTwoPeriodsOld) {
  const test::TemporaryFolder folder;
  const std::filesystem::path file = folder / "run.jsonl";
  constexpr std::chrono::milliseconds period{100};
  std::atomic<std::int64_t> on_disk = 0, asked = 0;
  const JournalSync sync{.every = period, .sync = [&](int descriptor) {
                           struct stat status{};
                           ::fstat(descriptor, &status);
                           on_disk = status.st_size;
                           ++asked;
                           return 0;
                         }};
  struct Written {
    Clock::time_point when;
    std::int64_t size, on_disk;
  };
  std::vector<Written> written;
  {
    JournalWriter writer(file, sync);
    writer.append(RunRecord{});
    const Clock::time_point end = Clock::now() + 12 * period;
    for (std::int64_t number = 0; Clock::now() < end; ++number) {
      writer.append(batch_of(number));
      written.push_back({Clock::now(), static_cast<std::int64_t>(std::filesystem::file_size(file)), on_disk});
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    // A run that goes on without a new batch has its last one on the disk all the same.
    std::this_thread::sleep_for(10 * period);
    EXPECT_EQ(on_disk, written.back().size);
  }
  EXPECT_GE(asked, 4);
  EXPECT_LE(asked, 14) << "no more than one a period";
  const std::string text = read_file(file);
  std::mt19937 random(1);
  // On a busy machine a thread may come late: that is the machine's time and not the journal's.
  constexpr int busy = 5;
  std::size_t promised = 0;
  for (const Written& now : written) {
    while (promised < written.size() && written[promised].when + busy * 2 * period <= now.when) ++promised;
    EXPECT_LE(promised == 0 ? 0 : written[promised - 1].size, now.on_disk);
    const auto length = std::uniform_int_distribution<std::int64_t>(now.on_disk, now.size)(random);
    if (length == 0) continue;
    std::string left = text.substr(0, static_cast<std::size_t>(length));
    left.append(static_cast<std::size_t>(now.size - length), '\0');
    const Journal read = parse_journal(left, "j");
    EXPECT_GE(read.batches.size(), promised);
  }
  EXPECT_GT(promised, 10U);
}

TEST(JournalSync, ADiskThatRefusesIsSaid) {
  const test::TemporaryFolder folder;
  std::atomic<int> error = EIO;
  JournalWriter writer(folder / "run.jsonl", {.every = std::chrono::milliseconds(1), .sync = [&](int) {
                                                errno = error;
                                                return -1;
                                              }});
  writer.append(RunRecord{});
  std::string said;
  for (int i = 0; i < 1000 && said.empty(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    try {
      writer.append(MetaRecord{"end", {}});
    } catch (const UsageError& refused) {
      said = refused.what();
    }
  }
  EXPECT_NE(said.find("does not come to the disk: Input/output error"), std::string::npos) << said;
}

TEST(JournalSync, WhatIsOnNoDiskIsNotAskedFor) {
  const test::TemporaryFolder folder;
  JournalWriter writer(folder / "run.jsonl", {.every = std::chrono::milliseconds(1), .sync = [](int) {
                                                errno = EINVAL;
                                                return -1;
                                              }});
  for (int i = 0; i < 20; ++i) {
    EXPECT_NO_THROW(writer.append(RunRecord{}));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace
}  // namespace attest
