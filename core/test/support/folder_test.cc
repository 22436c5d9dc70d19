// A folder of somebody else's making: whatever stands in it, nothing outside is read, written or removed, and nothing
// waits.
#include "core/support/folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "core/support/files.h"
#include "core/test/refusal.h"
#include "core/test/temporary_folder.h"

namespace attest {
namespace {

namespace fs = std::filesystem;

class FolderTest : public testing::Test {
 protected:
  void SetUp() override {
    // What waits for the other end of a pipe is ended by the signal.
    ::alarm(60);
    fs::create_directories(run_ / "cases");
    fs::create_directory(root_ / "outside");
    write_file_atomically(secret(), "secret");
  }
  void TearDown() override {
    ::alarm(0);
    EXPECT_EQ(read_file(secret()), "secret");
    EXPECT_EQ(entries(root_ / "outside"), 1U);
    EXPECT_EQ(entries(root_), 2U) << "nothing stands beside the folder";
  }

  [[nodiscard]] fs::path secret() const { return root_ / "outside" / "secret"; }
  [[nodiscard]] static std::size_t entries(const fs::path& folder) {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
  }
  /// Everything that may be done with a file of that name.
  [[nodiscard]] static std::vector<std::function<void()>> acts(const Folder& folder, const std::string& name) {
    return {[&folder, name] { (void)folder.holds(name); }, [&folder, name] { (void)folder.read(name); },
            [&folder, name] { (void)folder.open(name); }, [&folder, name] { (void)folder.open_to_append(name, 0666); },
            [&folder, name] { folder.write(name, "overwritten"); }};
  }

  test::TemporaryFolder temporary_;
  fs::path root_ = temporary_.path(), run_ = root_ / "run";
};

TEST_F(FolderTest, ReadsAndWritesFilesOfItsOwn) {
  const Folder folder(run_);
  EXPECT_FALSE(folder.holds("a"));
  EXPECT_FALSE(folder.holds("archive/a")) << "not even its folder is there";
  EXPECT_EQ(refusal([&] { (void)folder.read("archive/a"); }),
            "cannot read \"" + (run_ / "archive/a").string() + "\": No such file or directory");
  EXPECT_EQ(refusal([&] { folder.write("archive/a", "x"); }),
            "cannot write \"" + (run_ / "archive/a").string() + "\": No such file or directory");
  folder.make_folder("archive");
  folder.make_folder("archive");
  folder.write("archive/a", "one");
  folder.write("archive/a", "three");
  EXPECT_EQ(folder.read("archive/a"), "three");
  EXPECT_EQ(folder.size("archive/a"), 5);
  Descriptor opened = folder.open_to_append("archive/a", 0666);
  ASSERT_TRUE(opened);
  EXPECT_EQ(::write(opened.number(), "!", 1), 1);
  EXPECT_EQ(folder.read("archive/a"), "three!");
  EXPECT_EQ(folder.names(""), (std::vector<std::string>{"archive", "cases"}));
  EXPECT_EQ(folder.names("archive"), std::vector<std::string>{"a"}) << "no temporary is left";
  EXPECT_TRUE(folder.names("logs").empty());
  folder.remove("archive");
  EXPECT_TRUE(folder.holds("archive/a")) << "a folder that is not empty stays";
  folder.remove("archive/a");
  folder.remove("archive/a");
  folder.remove("archive");
  EXPECT_EQ(folder.names(""), std::vector<std::string>{"cases"});
}

TEST_F(FolderTest, RefusesNamesThatLeadOutOfIt) {
  const Folder folder(run_);
  const std::string absolute = secret().string();
  for (const std::string& name : {std::string("../outside/secret"), std::string("cases/../../outside/secret"),
                                  std::string(".."), std::string("."), std::string("cases/.."), std::string("./a"),
                                  std::string("cases//a"), std::string("/"), std::string("cases/"), std::string(),
                                  absolute, std::string("a\0b", 3), std::string("none/../../outside/secret")}) {
    for (const auto& act : acts(folder, name)) EXPECT_THAT(refusal(act), Says("it would lead out of it")) << name;
    EXPECT_THROW(folder.remove(name), UsageError) << name;
    EXPECT_THROW(folder.make_folder(name), UsageError) << name;
    if (!name.empty()) {
      EXPECT_THROW((void)folder.names(name), UsageError) << name;
    }
  }
  EXPECT_EQ(refusal([&] { (void)folder.read("../outside/secret"); }),
            "\"../outside/secret\" is no name of a file in the run folder \"" + run_.string() +
                "\": it would lead out of it");
}

TEST_F(FolderTest, RefusesWhatIsNoFile) {
  const Folder folder(run_);
  const auto put = [&](const std::string& what) {
    const std::string file = (run_ / "cases/a").string();
    if (what == "link") fs::create_symlink(secret(), file);
    if (what == "relative link") fs::create_symlink("../../outside/secret", file);
    if (what == "link within") fs::create_symlink("../b", file);
    if (what == "dangling link") fs::create_symlink(root_ / "outside/new", file);
    if (what == "link to a folder") fs::create_symlink(root_ / "outside", file);
    if (what == "pipe") {
      ASSERT_EQ(::mkfifo(file.c_str(), 0666), 0);
    }
    if (what == "folder") fs::create_directory(file);
    if (what == "device") fs::create_symlink("/dev/zero", file);
    if (what == "socket") {
      const Descriptor socket(::socket(AF_UNIX, SOCK_STREAM, 0));
      sockaddr_un address{};
      address.sun_family = AF_UNIX;
      ASSERT_LT(file.size(), sizeof address.sun_path);
      file.copy(address.sun_path, file.size());
      ASSERT_EQ(::bind(socket.number(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    }
  };
  for (const auto& [what, kind] :
       std::vector<std::pair<std::string, std::string>>{{"link", "a symbolic link"},
                                                        {"relative link", "a symbolic link"},
                                                        {"link within", "a symbolic link"},
                                                        {"dangling link", "a symbolic link"},
                                                        {"link to a folder", "a symbolic link"},
                                                        {"device", "a symbolic link"},
                                                        {"pipe", "a named pipe"},
                                                        {"socket", "a socket"},
                                                        {"folder", "a folder"}}) {
    put(what);
    for (const auto& act : acts(folder, "cases/a")) {
      EXPECT_EQ(refusal(act), "\"" + (run_ / "cases/a").string() + "\" is " + kind +
                                  "; files of a run folder must be regular files; remove it, or put a copy of what is "
                                  "meant in its place")
          << what;
    }
    folder.remove("cases/a");
    EXPECT_TRUE(folder.names("cases").empty()) << "the entry itself may go: " << what;
  }
}

TEST_F(FolderTest, RefusesADevice) {
  // Made by root alone; of /dev itself everybody may try.
  const Folder folder("/dev");
  for (const auto& act : {std::function<void()>([&] { (void)folder.read("zero"); }),
                          std::function<void()>([&] { folder.write("null", "x"); })})
    EXPECT_THAT(refusal(act), Says("is a device; files of a run folder must be regular files"));
}

TEST_F(FolderTest, RefusesFoldersThatAreLinks) {
  fs::remove(run_ / "cases");
  const Folder folder(run_);
  for (const fs::path& target : {root_ / "outside", fs::path("../outside"), root_ / "none", secret()}) {
    fs::create_symlink(target, run_ / "cases");
    const std::string line =
        "\"" + (run_ / "cases").string() +
        "\" is a symbolic link; cases, logs and archive of a run folder must be folders; remove it, "
        "or put a copy of what is meant in its place";
    for (const auto& act : acts(folder, "cases/secret")) EXPECT_EQ(refusal(act), line) << target;
    EXPECT_EQ(refusal([&] { folder.remove("cases/secret"); }), line);
    EXPECT_EQ(refusal([&] { folder.make_folder("cases"); }), line);
    EXPECT_EQ(refusal([&] { (void)folder.names("cases"); }), line);
    EXPECT_EQ(refusal([&] { folder.remove_leftovers("cases", [](std::string_view) { return true; }); }), line);
    fs::remove(run_ / "cases");
  }
}

TEST_F(FolderTest, MayStandBehindALinkThatTheUserChose) {
  const fs::path link = root_ / "outside" / "link";
  fs::create_symlink(run_, link);
  Folder(link).write("a", "x");
  EXPECT_EQ(Folder(link / "").read("a"), "x");
  EXPECT_EQ(read_file(run_ / "a"), "x");
  EXPECT_THAT(refusal([&] { Folder(link, Folder::Last::is_no_link); }), Says("is a symbolic link"));
  EXPECT_EQ(refusal([&] { Folder(run_, Folder::Last::is_no_link); }), "");
  fs::remove(link);
  EXPECT_FALSE(Folder::if_there(root_ / "none").has_value());
  EXPECT_FALSE(Folder::if_there("").has_value());
  EXPECT_EQ(refusal([&] { Folder(root_ / "none"); }),
            "cannot open the folder \"" + (root_ / "none").string() + "\": No such file or directory");
}

TEST_F(FolderTest, StaysWhereItWasOpened) {
  const Folder folder(run_);
  fs::rename(run_, root_ / "moved");
  fs::create_directory_symlink(root_ / "outside", run_);
  folder.write("a", "x");
  EXPECT_EQ(read_file(root_ / "moved" / "a"), "x");
  fs::remove(run_);
  fs::rename(root_ / "moved", run_);
}

TEST_F(FolderTest, AppendsToNoFileOfTwoNames) {
  const Folder folder(run_);
  fs::create_hard_link(secret(), run_ / "log");
  EXPECT_EQ(
      refusal([&] { (void)folder.open_to_append("log", 0666); }),
      "\"" + (run_ / "log").string() +
          "\" has 2 names (hard links), and what is written to it would stand under each; put a copy in its place");
  EXPECT_EQ(folder.read("log"), "secret");
  folder.write("log", "new");
  EXPECT_EQ(folder.read("log"), "new") << "a rename leaves the other name alone";
}

TEST_F(FolderTest, RemovesWhatKilledProcessesLeft) {
  const Folder folder(run_);
  const pid_t dead = ::fork();
  if (dead == 0) ::_exit(0);
  ASSERT_GT(dead, 0);
  ASSERT_EQ(::waitpid(dead, nullptr, 0), dead);
  const std::string ended = std::to_string(dead), own = std::to_string(::getpid()),
                    parent = std::to_string(::getppid());
  const auto temporary = [](const std::string& name, const std::string& process) {
    return name + "." + process + "-3.tmp";
  };
  const std::vector<std::string> stay{temporary("a.txt", ended),
                                      "a.html.tmp",
                                      "a.html.12.tmp",
                                      "a.html.-3.tmp",
                                      "a.html." + ended + "-x.tmp",
                                      "." + ended + "-3",
                                      "a.html.0-3.tmp",
                                      temporary("a.html", parent),
                                      "a.html." + ended + "-3.tmp.x",
                                      "a.html." + ended,
                                      "a.html.99999999999999999999-3.tmp"};
  for (const std::string& name : stay) folder.write(name, "x");
  const std::vector<std::string> go{temporary("a.html", ended), temporary("b.html", own), temporary("c.1.html", ended)};
  for (const std::string& name : go) folder.write(name, "x");
  const Descriptor held = folder.open_to_append(temporary("held.html", ended), 0666);
  ASSERT_EQ(::flock(held.number(), LOCK_EX | LOCK_NB), 0);
  fs::create_symlink(secret(), run_ / temporary("link.html", ended));
  ASSERT_EQ(::mkfifo((run_ / temporary("pipe.html", ended)).c_str(), 0666), 0);
  folder.remove_leftovers("", [](std::string_view name) { return name.ends_with(".html"); });
  const std::vector<std::string> left = folder.names("");
  const auto is_left = [&](const std::string& name) { return std::ranges::find(left, name) != left.end(); };
  for (const std::string& name : stay) EXPECT_TRUE(is_left(name)) << name;
  for (const std::string& name : go) EXPECT_FALSE(is_left(name)) << name;
  for (const char* name : {"held.html", "link.html", "pipe.html"}) EXPECT_TRUE(is_left(temporary(name, ended))) << name;
}

TEST_F(FolderTest, WritesBesideATemporaryOfTheSameProcessNumber) {
  // In a container every run is process 1, or nearly so.
  for (int serial = 0; serial < 200; ++serial)
    std::ofstream(run_ / ("a." + std::to_string(::getpid()) + "-" + std::to_string(serial) + ".tmp")) << "left";
  EXPECT_EQ(refusal([&] { Folder(run_).write("a", "x"); }), "");
  EXPECT_EQ(refusal([&] { write_file_atomically(run_ / "a", "y"); }), "");
  EXPECT_EQ(read_file(run_ / "a"), "y");
}

}  // namespace
}  // namespace attest
