#include "process/child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <thread>

#include "attest/adapters.h"
#include "attest/case.h"
#include "attest/folder.h"
#include "attest/kernel_under_test.h"
#include "attest/visible.h"
#include "fmt/format.h"
#include "process/memory_limit.h"

namespace attest::process {
namespace {

constexpr int first_descriptor = 10;  // above every number given out in a child

Descriptor moved_up(int fd, const char* what) {
  if (fd < 0) throw std::system_error(errno, std::generic_category(), what);
  if (fd >= first_descriptor) return Descriptor(fd);
  const int high = ::fcntl(fd, F_DUPFD_CLOEXEC, first_descriptor);
  const int error = errno;
  ::close(fd);
  if (high < 0) throw std::system_error(error, std::generic_category(), what);
  return Descriptor(high);
}

Pair pair_of(const int (&fd)[2], const char* what) {
  Descriptor second(fd[1]);
  Pair pair;
  pair.read = moved_up(fd[0], what);
  if (second.get() < first_descriptor) {
    second = Descriptor(::fcntl(fd[1], F_DUPFD_CLOEXEC, first_descriptor));  // closes the low number
    if (!second) throw std::system_error(errno, std::generic_category(), what);
  }
  pair.write = std::move(second);
  return pair;
}

/// A variable that names folders to load modules from, and the adapters' folder that is added to it.
struct SearchPath {
  std::string_view variable;
  std::string_view folder;
};
constexpr std::array search_paths{SearchPath{"PYTHONPATH=", "python"}, SearchPath{"NODE_PATH=", "node"}};

/// The environment of a child: ours, OMP_NUM_THREADS=1 unless set, and the adapters for Python and Node.js importable
/// from anywhere.
std::vector<std::string> child_environment() {
  std::vector<std::string> environment;
  bool has_threads = false;
  std::array<std::string, search_paths.size()> folders;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const auto path = std::ranges::find_if(search_paths, [&](const auto& p) { return text.starts_with(p.variable); });
    if (path != search_paths.end()) {
      folders[static_cast<std::size_t>(path - search_paths.begin())] = text.substr(path->variable.size());
      continue;
    }
    has_threads = has_threads || text.starts_with("OMP_NUM_THREADS=");
    environment.emplace_back(text);
  }
  if (!has_threads) environment.emplace_back("OMP_NUM_THREADS=1");
  const auto adapters = adapters_folder();
  for (std::size_t i = 0; i < search_paths.size(); ++i) {
    if (!adapters.empty()) {
      if (!folders[i].empty()) folders[i] += ':';
      folders[i] += (adapters / search_paths[i].folder).string();
    }
    if (!folders[i].empty()) environment.push_back(std::string(search_paths[i].variable) + folders[i]);
  }
  return environment;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
  result.reserve(strings.size() + 1);
  for (auto& s : strings) result.push_back(s.data());
  result.push_back(nullptr);
  return result;
}

/// A file name made of the kernel's id: what is not plain becomes '_', and long ids keep their first 80 characters.
std::string file_name_of(std::string_view kernel) {
  std::string name;
  for (const char c : kernel.substr(0, 80)) {
    const bool plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-';
    name += plain ? c : '_';
  }
  return fmt::format("{}-{:08x}.log", name, static_cast<std::uint32_t>(std::hash<std::string_view>{}(kernel)));
}

}  // namespace

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this != &other) {
    close();
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

void Descriptor::close() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

Pair make_pipe() {
  int fd[2];
  if (::pipe2(fd, O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
  return pair_of(fd, "pipe");
}

Pair make_socket_pair() {
  int fd[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fd) != 0) {
    throw std::system_error(errno, std::generic_category(), "socketpair");
  }
  return pair_of(fd, "socketpair");
}

Descriptor make_memory_file(const char* name) {
  return moved_up(::memfd_create(name, MFD_CLOEXEC), "memfd_create");
}

Log::Log(const std::filesystem::path& folder, std::string_view kernel) {
  if (folder.empty()) {
    fd_ = make_memory_file("attest-log");
    ::fcntl(fd_.get(), F_SETFL, O_APPEND);
    const std::string again = fmt::format("/proc/self/fd/{}", fd_.get());
    output_ = moved_up(::open(again.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC), "open");
    return;
  }
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  const std::string name = file_name_of(kernel);
  path_ = folder / name;
  // The folder is a run's, in which somebody else may have put a link.
  const Folder logs(folder, Folder::Last::is_no_link);
  attest::Descriptor log = logs.open_to_append(name, 0666);
  if (!log) {
    throw UsageError(fmt::format("{}: cannot be written ({}); name another output folder with --out", path_.string(),
                                 std::generic_category().message(errno)));
  }
  fd_ = moved_up(log.release(), "open");
  output_ = moved_up(logs.open_to_append(name, 0666).release(), "open");
}

bool Log::printed() const {
  return ::lseek(output_.get(), 0, SEEK_CUR) > 0;
}

void Log::mark() {
  struct stat status{};
  mark_ = ::fstat(fd_.get(), &status) == 0 ? status.st_size : 0;
}

std::string Log::last_line() const {
  struct stat status{};
  if (::fstat(fd_.get(), &status) != 0) return {};
  constexpr off_t window = 4096;
  const off_t from = std::max(mark_, status.st_size - window);
  if (status.st_size <= from) return {};
  std::string text(static_cast<std::size_t>(status.st_size - from), '\0');
  const ssize_t got = ::pread(fd_.get(), text.data(), text.size(), from);
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  const auto last = text.find_last_not_of(" \t\r\n");
  if (last == std::string::npos) return {};
  text.resize(last + 1);
  if (const auto line = text.find_last_of('\n'); line != std::string::npos) text.erase(0, line + 1);
  if (text.size() > 200) text.resize(200);
  return visible(text);
}

void Log::trim() {
  constexpr off_t limit = 1 << 20;
  struct stat status{};
  if (!path_.empty() || ::fstat(fd_.get(), &status) != 0 || status.st_size < limit) return;
  if (::ftruncate(fd_.get(), 0) == 0) mark_ = 0;
}

Child::Child(const Launch& launch) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  if (launch.standard_input >= 0) {
    posix_spawn_file_actions_adddup2(&actions, launch.standard_input, 0);
  } else {
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  }
  if (launch.standard_error >= 0) {
    posix_spawn_file_actions_adddup2(&actions, launch.standard_error, 2);
  } else {
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  }
  posix_spawn_file_actions_adddup2(&actions, launch.standard_output >= 0 ? launch.standard_output : 2, 1);
  int number = 3;
  for (const int fd : launch.further) posix_spawn_file_actions_adddup2(&actions, fd, number++);
  // Whatever the program that embeds us left open without close-on-exec stays out of the kernel's reach.
  posix_spawn_file_actions_addclosefrom_np(&actions, number);

  sigset_t none;
  sigset_t all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes,
                           static_cast<short>(POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK));
  auto arguments = launch.argv;
  auto environment = child_environment();
  const int error = ::posix_spawnp(&pid_, launch.argv.front().c_str(), &actions, &attributes,
                                   pointers(arguments).data(), pointers(environment).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    pid_ = -1;
    throw KernelLoadError(
        fmt::format("{}: cannot be started ({})", launch.argv.front(), std::generic_category().message(error)));
  }
  limit_memory_of(pid_, launch.memory);
  // Not pidfd_open: the declaration of glibc 2.36 is none for C++.
  ended_ = Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
}

Child::Child(Child&& other) noexcept : pid_(std::exchange(other.pid_, -1)), ended_(std::move(other.ended_)) {}

Child& Child::operator=(Child&& other) noexcept {
  if (this != &other) {
    kill();
    pid_ = std::exchange(other.pid_, -1);
    ended_ = std::move(other.ended_);
  }
  return *this;
}

void Child::kill() {
  if (pid_ > 0) static_cast<void>(end(Clock::time_point::min()));
}

bool Child::has_ended() const {
  siginfo_t info{};
  return pid_ > 0 && ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid != 0;
}

bool Child::is_stopped() const {
  siginfo_t info{};
  return pid_ > 0 && ::waitid(P_PID, static_cast<id_t>(pid_), &info, WSTOPPED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid != 0;
}

std::string Child::end(Clock::time_point until) {
  if (pid_ <= 0) return "was not running";
  while (!has_ended() && Clock::now() < until) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const bool ended = has_ended();
  // The unreaped child keeps the group's number from being used again, so this can hit nobody else.
  ::kill(-pid_, SIGKILL);
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  ended_.close();
  return ended ? describe_exit(status) : "was still running";
}

std::string describe_exit(int wait_status) {
  const auto signal_text = [](int number) {
    const char* text = ::sigdescr_np(number);
    return fmt::format("signal {} ({})", number, text == nullptr ? "unknown" : text);
  };
  if (WIFSIGNALED(wait_status)) return "was killed by " + signal_text(WTERMSIG(wait_status));
  const int code = WEXITSTATUS(wait_status);
  // A shell reports the signal that ended its command as 128 + number.
  if (code > 128 && ::sigdescr_np(code - 128) != nullptr) {
    return fmt::format("exited with status {} (as a shell says: {})", code, signal_text(code - 128));
  }
  return fmt::format("exited with status {}", code);
}

}  // namespace attest::process
