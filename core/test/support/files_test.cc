// Files: read whole, replaced whole or not at all.
#include "core/support/files.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include "core/test/refusal.h"
#include "core/test/temporary_folder.h"

namespace attest {
namespace {

namespace fs = std::filesystem;

class Files : public testing::Test {
 protected:
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(folder_)) found.push_back(entry.path().filename());
    return found;
  }
  [[nodiscard]] static std::string fault_of_writing(const fs::path& file, const std::string& bytes) {
    return refusal([&] { write_file_atomically(file, bytes); });
  }
  [[nodiscard]] static std::string fault_of_reading(const fs::path& file) {
    return refusal([&] { return read_file(file); });
  }

  test::TemporaryFolder temporary_;
  fs::path folder_ = temporary_.path();
};

TEST_F(Files, AreWrittenIntoALinkAndNotInItsPlace) {
  const fs::path target = folder_ / "target";
  const fs::path link = folder_ / "link";
  write_file_atomically(target, "longer than what follows");
  fs::create_symlink("target", link);
  write_file_atomically(link, "new");
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(read_file(target), "new");
  fs::remove(link);
  fs::create_symlink("/dev/full", link);
  EXPECT_THROW(write_file_atomically(link, "new"), UsageError);
  EXPECT_TRUE(fs::is_symlink(link));
}

TEST_F(Files, AreReplacedWhole) {
  const fs::path file = folder_ / "a";
  const std::string bytes = std::string("x\0y\n", 4) + std::string(100'000, 'z');
  write_file_atomically(file, "old");
  EXPECT_EQ(read_file(file), "old");
  write_file_atomically(file, bytes);
  EXPECT_EQ(read_file(file), bytes);
  write_file_atomically(file, "");
  EXPECT_EQ(read_file(file), "");
  EXPECT_EQ(names(), std::vector<std::string>{"a"}) << "no temporary is left";
}

TEST_F(Files, HaveTheUsersPermissions) {
  const mode_t old = ::umask(022);
  write_file_atomically(folder_ / "a", "x");
  ::umask(old);
  EXPECT_EQ(fs::status(folder_ / "a").permissions(),
            fs::perms::owner_read | fs::perms::owner_write | fs::perms::group_read | fs::perms::others_read);
}

TEST_F(Files, AreKeptWhenTheDiskIsFull) {
  const fs::path file = folder_ / "a";
  write_file_atomically(file, "old");
  // A limit on the size of files stands in for a full disk: a write is cut short, the next one fails.
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  auto* const handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = before;
  small.rlim_cur = 1000;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string line = fault_of_writing(file, std::string(5000, 'n'));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(line, "cannot write \"" + file.string() + "\": File too large");
  EXPECT_EQ(read_file(file), "old");
  EXPECT_EQ(names(), std::vector<std::string>{"a"});
}

TEST_F(Files, NameThePlaceThatCannotBeWritten) {
  const fs::path nowhere = folder_ / "none" / "a";
  EXPECT_EQ(fault_of_writing(nowhere, "x"), "cannot write \"" + nowhere.string() + "\": No such file or directory");
  write_file_atomically(folder_ / "file", "x");
  const fs::path under_file = folder_ / "file" / "a";
  EXPECT_EQ(fault_of_writing(under_file, "x"), "cannot write \"" + under_file.string() + "\": Not a directory");
  fs::create_directory(folder_ / "sub");
  EXPECT_EQ(fault_of_writing(folder_ / "sub", "x"),
            "cannot write \"" + (folder_ / "sub").string() + "\": Is a directory");
  EXPECT_EQ(names().size(), 2U) << "no temporary is left";
}

// Of a pipe in a folder nobody may hold the other end; what a shell puts in a command's place ends.
TEST_F(Files, AreNoPipesThatHaveANameAndMayBeOthers) {
  const fs::path pipe = folder_ / "pipe", link = folder_ / "link";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0666), 0);
  fs::create_symlink(pipe, link);
  for (const fs::path& file : {pipe, link})
    EXPECT_EQ(fault_of_reading(file), "cannot read \"" + file.string() + "\": it is a named pipe, not a file");
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ASSERT_EQ(::write(ends[1], "words", 5), 5);
  ::close(ends[1]);
  EXPECT_EQ(read_file("/dev/fd/" + std::to_string(ends[0])), "words");
  ::close(ends[0]);
}

TEST_F(Files, NameThePlaceThatCannotBeRead) {
  const fs::path missing = folder_ / "none";
  EXPECT_EQ(fault_of_reading(missing), "cannot read \"" + missing.string() + "\": No such file or directory");
  EXPECT_EQ(fault_of_reading(folder_), "cannot read \"" + folder_.string() + "\": Is a directory");
  EXPECT_EQ(fault_of_reading("/dev/zero"), "cannot read \"/dev/zero\": it is a device, not a file");
}

}  // namespace
}  // namespace attest
