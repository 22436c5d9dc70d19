// Walls around a kernel's process, tried from within: walls_spy.c does what it is told and says whether it could. Each
// attempt is refused by all walls together and by each of those alone that are to stop it, in both kinds of walls, and
// succeeds where these are left out: so that it is an attempt, and each wall a wall.
#include "core/isolation/walls/walls.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "core/isolation/child.h"
#include "core/isolation/walls/construction.h"
#include "core/isolation/walls/landlock.h"
#include "core/test/isolation/kernel_problem.h"
#include "core/test/isolation/opening.h"
#include "core/test/places.h"
#include "core/test/sanitizers.h"

namespace attest {
namespace {

namespace fs = std::filesystem;
using namespace testing_process;
using testing::HasSubstr;
using testing::Not;

const bool root = ::geteuid() == 0;

/// A folder that anybody may use, which goes with the test.
class Place {
 public:
  Place() : path_(fs::path(testing::TempDir()) / ("walls-" + std::to_string(::getpid()))) {
    fs::create_directories(path_);
    fs::permissions(path_, fs::perms::all);
  }
  ~Place() { fs::remove_all(path_); }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  [[nodiscard]] const fs::path& path() const { return path_; }
  fs::path file(const std::string& name) const {
    fs::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name) << "text";
    fs::permissions(path_ / name, fs::perms(0666));
    return path_ / name;
  }

 private:
  fs::path path_;
};

class WallsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (under_address_sanitizer || under_thread_sanitizer) GTEST_SKIP() << "a sanitizer does not start without /proc";
    if (const std::string why = why_no_walls({}); !why.empty()) GTEST_SKIP() << why;
  }
};

std::unique_ptr<Kernel> opened(const std::string& spec, const Walls& walls) {
  KernelOptions options = patient();
  options.walls = std::make_shared<const Walls>(walls);
  return open_kernel(spec, options);
}

std::unique_ptr<Kernel> spy(const Walls& walls) {
  return opened(test_library_folder() + "/walls_spy.so", walls);
}

/// What the spy says to a command.
std::string told(Kernel& kernel, const std::string& command) {
  Case c = attention_case(DType::f64, {1, 1, 1, 1, static_cast<std::int64_t>(command.size()), 1});
  for (std::size_t i = 0; i < command.size(); ++i)
    c[Slot::q].set(static_cast<std::int64_t>(i), static_cast<double>(command[i]));
  const Reply reply = kernel.run(c);
  return reply.status == CallStatus::failed ? reply.message : "no answer: " + reply.message;
}
std::string told(const Walls& walls, const std::string& command) {
  return told(*spy(walls), command);
}

using enum Wall;

/// Whether this machine makes namespaces; all walls are bare where it does not.
bool has_namespaces() {
  return walls_text({}).find("no namespaces") == std::string::npos;
}

/// Walls of either kind; of the bare one alone where the machine has no other.
std::vector<Walls> both_kinds() {
  std::vector<Walls> kinds{Walls{.left_out = {namespaces}}};
  if (has_namespaces()) kinds.emplace_back();
  return kinds;
}

/// `walls`: each of them alone stops the attempt. Only root's kernels are another user's.
void expect_stopped_by(std::vector<Wall> walls, const std::string& command) {
  SCOPED_TRACE(command);
  if (!root) std::erase(walls, other_user);
  if (!has_namespaces()) std::erase(walls, namespaces);
  EXPECT_THAT(told(Walls{}, command), HasSubstr("refused")) << "all walls";
  EXPECT_THAT(told(Walls{.left_out = {namespaces}}, command), HasSubstr("refused")) << "bare walls";
  for (const Wall one : walls) {
    Walls alone{.left_out = walls};
    std::erase(alone.left_out, one);
    EXPECT_THAT(told(alone, command), HasSubstr("refused")) << "wall " << static_cast<int>(one) << " alone";
  }
  EXPECT_THAT(told(Walls{.left_out = walls}, command), HasSubstr("done")) << "without these walls";
}

std::string own_process() {
  return std::to_string(::getpid());
}

std::array<char, 10> target{};

TEST_F(WallsTest, KeepTheJudgesMemory) {
  const std::string where = own_process() + " " + std::to_string(reinterpret_cast<std::uintptr_t>(target.data()));
  expect_stopped_by({namespaces, landlock, other_user}, "memory " + where);
  EXPECT_STREQ(target.data(), "ninebytes");
  target.fill('\0');
  expect_stopped_by({namespaces, landlock, system_calls, other_user}, "vmwrite " + where);
  EXPECT_STREQ(target.data(), "ninebytes");
  target.fill('\0');
  static_cast<void>(told({}, "memory " + where));
  static_cast<void>(told({}, "vmwrite " + where));
  EXPECT_STREQ(target.data(), "");
}

TEST_F(WallsTest, KeepOtherProcesses) {
  const std::string process = own_process();
  expect_stopped_by({namespaces, landlock, system_calls, other_user}, "ptrace " + process);
  expect_stopped_by({namespaces, system_calls, landlock, other_user}, "signal " + process);
  expect_stopped_by({namespaces, system_calls}, "owner " + process);
  expect_stopped_by({namespaces, system_calls}, "long-owner " + process);
  expect_stopped_by({namespaces, system_calls, other_user}, "limit " + process);
  expect_stopped_by({namespaces, system_calls}, "pidfd " + process);
  expect_stopped_by({namespaces, system_calls}, "peer");
  expect_stopped_by({namespaces, landlock}, "read /proc/" + process + "/cmdline");
  expect_stopped_by({namespaces, landlock}, "read /proc/self/maps");
  expect_stopped_by({system_calls}, "namespace");
  if (root) expect_stopped_by({other_user}, "root");
}

TEST_F(WallsTest, KeepFiles) {
  const Place place;
  const fs::path file = place.file("run/journal");
  expect_stopped_by({namespaces, landlock}, "read " + file.string());
  expect_stopped_by({namespaces, landlock}, "write " + file.string());
  expect_stopped_by({namespaces, landlock}, "list " + place.path().string());
  expect_stopped_by({namespaces, landlock}, "write " + (place.path() / "new").string());
  expect_stopped_by({namespaces, system_calls, other_user}, "chmod " + file.string());
  fs::permissions(file.parent_path(), fs::perms::all);
  expect_stopped_by({namespaces, landlock}, "unlink " + file.string());
  const fs::path shared = "/dev/shm/walls-" + own_process();
  std::ofstream(shared) << "text";
  expect_stopped_by({namespaces, landlock}, "read " + shared.string());
  fs::remove(shared);
  for (const char* const path : {"/etc/passwd", "/etc/hostname", "/sys/kernel/uevent_seqnum", "/proc/version"}) {
    if (!fs::exists(path)) continue;
    expect_stopped_by({namespaces, landlock}, std::string("read ") + path);
  }
}

TEST_F(WallsTest, KeepTheirOwnFilesAsTheyAre) {
  if (!has_namespaces()) GTEST_SKIP() << walls_text({});
  for (const std::vector<Wall>& left_out : {std::vector<Wall>{}, {landlock}, {landlock, other_user}}) {
    const auto kernel = spy(Walls{.left_out = left_out});
    for (const char* const folder : {"/", "/usr/", "/dev/", "/kernel/", "/etc/", "/proc/"})
      EXPECT_THAT(told(*kernel, std::string("write ") + folder + "new"), HasSubstr("refused")) << folder;
    for (const char* const folder : {"/tmp/", "/dev/shm/"})
      EXPECT_THAT(told(*kernel, std::string("write ") + folder + "new"), HasSubstr("done")) << folder;
    // Nobody else's are there.
    EXPECT_THAT(told(*spy(Walls{.left_out = left_out}), "read /tmp/new"), HasSubstr("No such file"));
  }
}

TEST_F(WallsTest, ShowWhatIsReadableAndNothingHidden) {
  const Place place;
  const fs::path file = place.file("weights/w"), journal = place.file("weights/run/journal");
  const fs::path run = journal.parent_path();
  fs::permissions(run, fs::perms::all);
  for (Walls walls : both_kinds()) {
    walls.readable = {place.path()};
    EXPECT_THAT(told(walls, "read " + file.string()), HasSubstr("done"));
    EXPECT_THAT(told(walls, "read " + journal.string()), HasSubstr("done"));
    EXPECT_THAT(told(walls, "write " + file.string()), HasSubstr("refused"));
    walls.hidden = {run};
    EXPECT_THAT(told(walls, "read " + file.string()), HasSubstr("done"));
    EXPECT_THAT(told(walls, "read " + journal.string()), HasSubstr("refused"));
    EXPECT_THAT(told(walls, "list " + run.string()), HasSubstr("refused"));
    EXPECT_THAT(told(walls, "write " + (run / "new").string()), HasSubstr("refused"));
  }
}

TEST_F(WallsTest, ShowALibraryNothingBesideItButLibraries) {
  const Place place;
  const fs::path library = place.path() / "spy.so", journal = place.file("run/journal");
  fs::copy_file(test_library_folder() + "/walls_spy.so", library);
  place.file("libother.so.1");
  place.file("notes");
  for (Walls walls : both_kinds()) {
    const fs::path beside = walls.left_out.empty() && has_namespaces() ? fs::path("/kernel") : place.path();
    const auto read = [&](const char* name) {
      return told(*opened(library, walls), "read " + (beside / name).string());
    };
    EXPECT_THAT(read("libother.so.1"), HasSubstr("done"));
    EXPECT_THAT(read("notes"), HasSubstr("refused"));
    walls.readable = {place.path()};
    EXPECT_THAT(read("notes"), HasSubstr("done"));
    EXPECT_THAT(read("run/journal"), HasSubstr("done"));
    walls.hidden = {journal.parent_path()};
    EXPECT_THAT(read("notes"), HasSubstr("done"));
    EXPECT_THAT(read("run/journal"), HasSubstr("refused"));
  }
}

TEST_F(WallsTest, RefuseWhatCannotBeKeptTo) {
  const Place place;
  const fs::path within = place.file("run/library.so");
  EXPECT_THAT(why_no_walls({.readable = {"/"}}), HasSubstr("cannot be opened to a kernel"));
  EXPECT_THAT(why_no_walls({.readable = {"/proc/self"}}), HasSubstr("cannot be opened to a kernel"));
  EXPECT_THAT(why_no_walls({.readable = {"/nowhere/at/all"}}), HasSubstr("/nowhere/at/all"));
  EXPECT_THAT(why_no_walls({.hidden = {"/nowhere/at/all"}}), HasSubstr("/nowhere/at/all"));
  EXPECT_THAT(why_no_walls({.readable = {within}, .hidden = {within.parent_path()}}), HasSubstr("hidden"));
  EXPECT_EQ(why_no_walls({.readable = {within}}), "");
}

/// A listening socket of this process.
class Listener {
 public:
  explicit Listener(int family) : fd_(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0)) {}
  ~Listener() { ::close(fd_); }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  template <class Address>
  bool at(const Address& address, socklen_t size) const {
    return ::bind(fd_, reinterpret_cast<const sockaddr*>(&address), size) == 0 && ::listen(fd_, 100) == 0;
  }
  [[nodiscard]] int port() const {
    sockaddr_in own{};
    socklen_t size = sizeof own;
    return ::getsockname(fd_, reinterpret_cast<sockaddr*>(&own), &size) == 0 ? ntohs(own.sin_port) : 0;
  }

 private:
  int fd_;
};

TEST_F(WallsTest, KeepTheNetwork) {
  const Listener internet(AF_INET);
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_TRUE(internet.at(any, sizeof any));
  std::vector<Wall> walls{namespaces, system_calls};
  if (process::landlock::abi() >= 4) walls.push_back(landlock);
  expect_stopped_by(walls, "connect " + std::to_string(internet.port()));

  const Listener local(AF_UNIX);
  const std::string name = "walls-" + own_process();
  sockaddr_un abstract{};
  abstract.sun_family = AF_UNIX;
  std::memcpy(abstract.sun_path + 1, name.data(), name.size());
  ASSERT_TRUE(local.at(abstract, static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size())));
  if (process::landlock::abi() >= process::landlock::keeps_signals && walls.size() == 2) walls.push_back(landlock);
  if (process::landlock::abi() < process::landlock::keeps_signals) std::erase(walls, landlock);
  expect_stopped_by(walls, "abstract " + name);
}

TEST_F(WallsTest, KeepSharedSegments) {
  const key_t key = 0x57000000 | static_cast<key_t>(::getpid() & 0xffffff);
  const int segment = ::shmget(key, 4096, IPC_CREAT | IPC_EXCL | 0666);
  ASSERT_GE(segment, 0);
  expect_stopped_by({namespaces, system_calls}, "segment " + std::to_string(key));
  ::shmctl(segment, IPC_RMID, nullptr);
}

// The calls of another machine's numbers, which a filter of this one's would not know, end the process.
TEST_F(WallsTest, KeepOtherMachinesCalls) {
#ifdef __x86_64__
  const auto died = [](const Walls& walls, const std::string& command) {
    return told(walls, command).find("(Bad system call)") != std::string::npos;
  };
  for (const Walls& walls : both_kinds()) {
    EXPECT_TRUE(died(walls, "socket-of-x32"));
    EXPECT_TRUE(died(walls, "socket-of-i386"));
  }
  EXPECT_FALSE(died({.left_out = {system_calls}}, "socket-of-x32"));
  EXPECT_FALSE(died({.left_out = {system_calls}}, "socket-of-i386"));
#else
  GTEST_SKIP() << "this machine has one set of numbers";
#endif
}

TEST_F(WallsTest, LimitProcesses) {
  const std::string many = "processes 200", some = "processes 20";
  for (Walls walls : both_kinds()) {
    EXPECT_THAT(told(walls, some), HasSubstr("done"));
    EXPECT_THAT(told(walls, many), HasSubstr("refused"));
    walls.left_out.push_back(limits);
    EXPECT_THAT(told(walls, many), HasSubstr("done"));
  }
}

std::vector<pid_t> processes_named(const std::string& name) {
  std::vector<pid_t> all;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    std::string found;
    if (std::ifstream file(entry.path() / "comm"); std::getline(file, found) && found == name)
      all.push_back(static_cast<pid_t>(std::stol(entry.path().filename())));
  }
  return all;
}

/// Waits for some seconds until there are so many.
std::size_t processes_named(const std::string& name, std::size_t wanted) {
  for (int i = 0; i < 100 && processes_named(name).size() != wanted; ++i) ::usleep(20'000);
  return processes_named(name).size();
}

/// How many processes a kernel leaves behind that leaves its group and its session.
std::size_t left_behind(std::vector<Wall> left_out) {
  static int count = 0;
  const std::string name = "spy" + own_process() + "-" + std::to_string(++count);
  {
    const auto kernel = spy(Walls{.left_out = std::move(left_out)});
    EXPECT_THAT(told(*kernel, "daemon " + name), HasSubstr("done"));
    EXPECT_EQ(processes_named(name, 1), 1U);
  }
  const std::size_t left = processes_named(name, 0);
  for (const pid_t process : processes_named(name)) ::kill(process, SIGKILL);
  return left;
}

TEST_F(WallsTest, LeaveNoProcessBehind) {
  EXPECT_EQ(left_behind({}), 0U);
  EXPECT_EQ(left_behind({namespaces}), 0U);
  EXPECT_EQ(left_behind({system_calls}), has_namespaces() ? 0U : 1U);
  EXPECT_EQ(left_behind({namespaces, system_calls}), 1U);
}

TEST_F(WallsTest, NameNobody) {
  if (!has_namespaces()) GTEST_SKIP() << walls_text({});
  ::setenv("ATTEST_SECRET", "attest", 1);
  const auto kernel = spy({});
  ::unsetenv("ATTEST_SECRET");
  for (const char* const command : {"environment", "names"}) {
    const std::string answer = told(*kernel, command);
    EXPECT_THAT(answer, HasSubstr("done"));
    EXPECT_THAT(answer, Not(testing::ContainsRegex("[Aa][Tt][Tt][Ee][Ss][Tt]"))) << command;
  }
  EXPECT_THAT(told(*kernel, "names"), HasSubstr("/host worker /kernel/walls_spy.so"));
  // The loader holds no descriptor open: standard ones, the connection, the tensors.
  EXPECT_THAT(told(*kernel, "descriptors"), HasSubstr("done 0 1 2 3 4 "));
  EXPECT_THAT(told(*kernel, "descriptors"), Not(HasSubstr("5")));
}

TEST_F(WallsTest, MakeEachOfRootsKernelsAUserOfItsOwn) {
  const std::string one = told(Walls{}, "user"), other = told(Walls{}, "user");
  EXPECT_THAT(one, Not(testing::AnyOf(HasSubstr("done 0"), HasSubstr("refused"))));
  if (!root) return;
  EXPECT_NE(one, other);
}

TEST_F(WallsTest, LetAKernelComputeInBothKinds) {
  for (const Walls& walls : both_kinds()) {
    const auto kernel = opened(library("good"), walls);
    const Case c = attention_case(DType::f64, {2, 2, 100, 100, 64, 64});
    for (int call = 0; call < 2; ++call) {
      const Reply reply = kernel->run(c);
      ASSERT_EQ(reply.status, CallStatus::ok) << reply.message;
      EXPECT_LE(largest_difference(reply.out, attention_answer(c)), 1e-12);
    }
  }
}

TEST_F(WallsTest, TellHowAKernelDied) {
  const auto kernel = opened(library("crashes"), {});
  const Case c = attention_case(DType::f64, {});
  EXPECT_EQ(kernel->run(c).status, CallStatus::ok);
  const Reply died = kernel->run(c);
  EXPECT_EQ(died.status, CallStatus::died);
  EXPECT_THAT(died.message, Says("signal 11", "null pointer"));
  EXPECT_EQ(kernel->run(c).status, CallStatus::ok);
}

std::string python_spy() {
  return "exec:/usr/bin/python3 " + source_folder() + "/core/test/isolation/walls_spy.py";
}

TEST_F(WallsTest, StandAroundPrograms) {
  const fs::path script = source_folder() + "/core/test/isolation/walls_spy.py";
  const Place place;
  const fs::path file = place.file("run/journal");
  for (Walls walls : both_kinds()) {
    const bool bare = !walls.left_out.empty();
    SCOPED_TRACE(bare);
    walls.readable = {script};
    const auto kernel = opened(python_spy(), walls);
    EXPECT_THAT(told(*kernel, "open('" + script.string() + "').read(3)"), HasSubstr("done"));
    EXPECT_THAT(told(*kernel, "open('" + file.string() + "').read()"), HasSubstr("refused"));
    EXPECT_THAT(told(*kernel, "open('" + file.string() + "', 'w')"), HasSubstr("refused"));
    EXPECT_THAT(told(*kernel, "open('/proc/" + own_process() + "/mem', 'r+b')"), HasSubstr("refused"));
    EXPECT_THAT(told(*kernel, "open('/proc/" + own_process() + "/cmdline').read()"), HasSubstr("refused"));
    EXPECT_THAT(told(*kernel, "os.kill(" + own_process() + ", 23)"), HasSubstr("refused"));
    EXPECT_THAT(told(*kernel, "socket.socket()"), HasSubstr("refused"));
    EXPECT_THAT(told(*kernel, "os.stat('/proc/self/fd/9')"), HasSubstr("refused"));
    EXPECT_THAT(told(*kernel, "subprocess.run('true', shell=True).returncode"), HasSubstr("done 0"));
    EXPECT_THAT(told(*kernel, "len(bytearray(5 << 30))"), HasSubstr("refused"));
    const std::string environment = told(*kernel, "dict(os.environ)");
    EXPECT_THAT(environment, HasSubstr("OMP_NUM_THREADS"));
    if (!bare) {
      EXPECT_THAT(environment, Not(testing::ContainsRegex("[Aa][Tt][Tt][Ee][Ss][Tt]")));
      EXPECT_THAT(told(*kernel, "os.getcwd()"), HasSubstr("done /tmp"));
      EXPECT_THAT(told(*kernel, "open('/tmp/own', 'w').write('text')"), HasSubstr("done 4"));
      EXPECT_THAT(told(*kernel, "open('/tmp/own', 'w').truncate(1 << 27)"), HasSubstr("refused"));
    }
    // Too large for one write into a pipe, and larger than what otherwise goes through files.
    Case add = attention_case(DType::f64, {1, 1, 1, 1, 3, 300'000});
    for (int i = 0; i < 3; ++i) add[Slot::q].set(i, "add"[i]);
    const Reply reply = kernel->run(add);
    ASSERT_EQ(reply.status, CallStatus::ok) << reply.message;
    EXPECT_TRUE(std::ranges::equal(reply.out.tensor().bytes(), add[Slot::v].bytes()));
  }
}

/// What has come from elsewhere does not run without /proc, if it minds.
void expect_runs(const std::string& spec, const std::vector<fs::path>& readable, bool right) {
  for (Walls walls : both_kinds()) {
    SCOPED_TRACE(walls_text(walls));
    walls.readable = readable;
    std::unique_ptr<Kernel> kernel;
    try {
      kernel = opened(spec, walls);
    } catch (const KernelLoadError& error) {
      if (std::string_view(error.what()).find("cannot be imported") != std::string_view::npos) GTEST_SKIP();
      FAIL() << error.what();
    }
    const Case c = attention_case(DType::f32, {});
    const Reply reply = kernel->run(c);
    ASSERT_EQ(reply.status, CallStatus::ok) << reply.message;
    EXPECT_LE(right ? largest_difference(reply.out, attention_answer(c)) : 0.0, 1e-5);
  }
}

TEST_F(WallsTest, LetPyTorchCompute) {
  expect_runs("pytorch:sdpa", {}, true);
}

TEST_F(WallsTest, LetNodeCompute) {
  if (!fs::exists("/usr/bin/node")) GTEST_SKIP() << "there is no Node.js";
  const fs::path top = source_folder(), script = top / "core/test/isolation/adapter_kernels.js";
  expect_runs("exec:/usr/bin/node " + script.string() + " echo", {script, top / "core/adapters/node"}, false);
}

TEST_F(WallsTest, KeepTheFolderThatCanBeRead) {
  const fs::path before = fs::current_path(), folder = source_folder() + "/core/test/isolation";
  fs::current_path(folder);
  const auto kernel = opened("exec:/usr/bin/python3 walls_spy.py", {.readable = {folder}});
  EXPECT_THAT(told(*kernel, "os.getcwd()"), HasSubstr("done " + fs::canonical(folder).string()));
  fs::current_path(before);
}

TEST_F(WallsTest, AreNamedInOneLine) {
  const std::string text = walls_text({});
  EXPECT_THAT(text, HasSubstr(" system calls refused"));
  EXPECT_THAT(text, HasSubstr("at most 64 processes"));
  EXPECT_THAT(text, Not(HasSubstr("\n")));
  const std::string bare = walls_text({.left_out = {namespaces}});
  EXPECT_THAT(bare, HasSubstr("no namespaces ("));
}

/// A process of the same user, with all that a kernel without walls could do.
bool another_process_writes(std::array<char, 10>& into) {
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string path = "/proc/" + std::to_string(parent) + "/mem";
    const int fd = ::open(path.c_str(), O_RDWR);
    const auto at = static_cast<off_t>(reinterpret_cast<std::uintptr_t>(into.data()));
    ::_exit(fd >= 0 && ::pwrite(fd, "ninebytes", 9, at) == 9 ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(Judge, IsHiddenFromItsOwnUser) {
  if (root) GTEST_SKIP() << "root may write to every process";
  // In a process of its own, as there is no way back.
  const pid_t judge = ::fork();
  if (judge == 0) {
    if (!another_process_writes(target)) ::_exit(1);
    hide_judge();
    if (another_process_writes(target)) ::_exit(2);
    // It starts kernels as before.
    const bool walls = why_no_walls({}).empty();
    ::_exit(walls && told({}, "user").find("done") == std::string::npos ? 3 : 0);
  }
  int status = 0;
  ::waitpid(judge, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace attest
