#include "core/isolation/child.h"

#include <fcntl.h>
#include <fmt/format.h>
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

#include "core/isolation/adapters.h"
#include "core/isolation/descendants.h"
#include "core/isolation/memory_limit.h"
#include "core/isolation/output.h"
#include "core/isolation/watcher.h"
#include "core/kernel/kernel_under_test.h"
#include "core/problem/case.h"
#include "core/support/folder.h"

namespace attest::process {
namespace {

constexpr int first_descriptor = 10;  // above every number given out in a child

[[noreturn]] void refuse(int error, const char* what) {
  if (const std::string why = why_no_more(error); !why.empty()) throw UsageError(why);
  throw std::system_error(error, std::generic_category(), what);
}

Descriptor moved_up(int fd, const char* what) {
  if (fd < 0) refuse(errno, what);
  if (fd >= first_descriptor) return Descriptor(fd);
  const int high = ::fcntl(fd, F_DUPFD_CLOEXEC, first_descriptor);
  const int error = errno;
  ::close(fd);
  // It says EINVAL where the limit is lower still than the number asked for.
  if (high < 0) refuse(error == EINVAL ? EMFILE : error, what);
  return Descriptor(high);
}

Pair pair_of(const int (&fd)[2], const char* what) {
  Descriptor second(fd[1]);
  Pair pair;
  pair.read = moved_up(fd[0], what);
  if (second.get() < first_descriptor) {
    const int high = ::fcntl(fd[1], F_DUPFD_CLOEXEC, first_descriptor);
    if (high < 0) refuse(errno == EINVAL ? EMFILE : errno, what);
    second = Descriptor(high);  // closes the low number
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

/// The environment of a child: ours, OMP_NUM_THREADS=1 unless set, the adapters for Python and Node.js importable from
/// anywhere, and its mark behind those that this program has itself, as the kernel of another run may run attest.
std::vector<std::string> child_environment(std::string_view own_mark) {
  std::vector<std::string> environment;
  std::string marks(mark_variable);
  bool has_threads = false;
  std::array<std::string, search_paths.size()> folders;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const auto path = std::ranges::find_if(search_paths, [&](const auto& p) { return text.starts_with(p.variable); });
    if (path != search_paths.end()) {
      folders[static_cast<std::size_t>(path - search_paths.begin())] = text.substr(path->variable.size());
      continue;
    }
    if (text.starts_with(mark_variable)) {
      marks = text;
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
  environment.push_back(marks.append(own_mark));
  return environment;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
  result.reserve(strings.size() + 1);
  for (auto& s : strings) result.push_back(s.data());
  result.push_back(nullptr);
  return result;
}

/// What is executed, and with which environment.
Construction line_of(const Launch& launch, std::string_view own_mark) {
  if (!launch.walls) return {launch.argv, child_environment(own_mark)};
  return construct(*launch.walls, {.argv = launch.argv,
                                   .seen = launch.seen,
                                   .memory = launch.memory,
                                   .descriptors = 3 + static_cast<int>(launch.further.size())});
}

/// A file name made of the kernel's id: what is not plain becomes '_', long ids keep their first 80 characters, and no
/// name begins with what hides a file or looks like an option.
std::string file_name_of(std::string_view kernel) {
  std::string name;
  for (const char c : kernel.substr(std::min(kernel.find_first_not_of("./-"), kernel.size())).substr(0, 80)) {
    const bool plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-';
    name += plain ? c : '_';
  }
  return fmt::format("{}-{:08x}.log", name.empty() ? "kernel" : name,
                     static_cast<std::uint32_t>(std::hash<std::string_view>{}(kernel)));
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
  if (::pipe2(fd, O_CLOEXEC) != 0) refuse(errno, "pipe");
  return pair_of(fd, "pipe");
}

Pair make_socket_pair() {
  int fd[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fd) != 0) refuse(errno, "socketpair");
  return pair_of(fd, "socketpair");
}

Descriptor make_memory_file(const char* name) {
  return moved_up(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING), "memfd_create");
}

void seal(const Descriptor& file, int seals) {
  if (::fcntl(file.get(), F_ADD_SEALS, seals | F_SEAL_SEAL) != 0) refuse(errno, "sealing shared memory");
}

Log::Log(const std::filesystem::path& folder, std::string_view kernel) {
  if (folder.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  const std::string name = file_name_of(kernel);
  path_ = folder / name;
  // The folder is a run's, in which somebody else may have put a link.
  const Folder logs(folder, Folder::Last::is_no_link);
  attest::Descriptor log = logs.open_to_append(name, 0666);
  if (!log) {
    const int why = errno;
    if (const std::string none = why_no_more(why); !none.empty()) throw UsageError(none);
    throw UsageError(fmt::format("{}: cannot be written ({}); name another output folder with --out", path_.string(),
                                 std::generic_category().message(why)));
  }
  fd_ = moved_up(log.release(), "open");
  struct stat status{};
  if (::fstat(fd_.get(), &status) == 0) held_ = static_cast<std::uint64_t>(status.st_size);
}

Log::~Log() {
  if (cut_ == 0) return;
  try {
    write(fmt::format("\nattest: {} bytes were cut here; these were the last:\n", cut_ - end_.size()));
  } catch (const std::exception&) {
    return;
  }
  write(end_);
}

void Log::write(std::string_view text) {
  while (!text.empty()) {
    const ssize_t put = ::write(fd_.get(), text.data(), text.size());
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return;  // a full disk is the journal's to tell of
    text.remove_prefix(static_cast<std::size_t>(put));
  }
}

void Log::add(std::string_view text) {
  if (!fd_ || text.empty()) return;
  const std::lock_guard lock(mutex_);
  const std::size_t room = static_cast<std::size_t>(most - std::min(held_, most));
  write(text.substr(0, room));
  held_ += std::min(room, text.size());
  if (text.size() <= room) return;
  text.remove_prefix(room);
  if (cut_ == 0) write("\nattest: this log is full; of what follows only the end is kept\n");
  cut_ += text.size();
  end_.append(text.substr(text.size() - std::min(text.size(), end_bytes)));
  if (end_.size() > end_bytes) end_.erase(0, end_.size() - end_bytes);
}

Child::Child(const Launch& launch) : mark_(launch.walls ? std::string() : new_mark()) {
  start_watcher();
  auto [arguments, environment] = line_of(launch, mark_);
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
  const int error = ::posix_spawnp(&pid_, arguments.front().c_str(), &actions, &attributes, pointers(arguments).data(),
                                   pointers(environment).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    pid_ = -1;
    if (const std::string why = why_no_more(error); !why.empty()) throw UsageError(why);
    throw KernelLoadError(
        fmt::format("{}: cannot be started ({})", launch.argv.front(), std::generic_category().message(error)));
  }
  watch(pid_);
  if (!launch.walls) limit_memory_of(pid_, launch.memory);
  // Not pidfd_open: the declaration of glibc 2.36 is none for C++.
  const auto ended = static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0));
  const int why = ended < 0 ? errno : 0;
  if (why == EMFILE || why == ENFILE) {
    kill();
    throw UsageError(why_no_more(why));
  }
  ended_ = Descriptor(ended);
}

Child::Child(Child&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), mark_(std::move(other.mark_)), ended_(std::move(other.ended_)) {}

Child& Child::operator=(Child&& other) noexcept {
  if (this != &other) {
    kill();
    pid_ = std::exchange(other.pid_, -1);
    mark_ = std::move(other.mark_);
    ended_ = std::move(other.ended_);
  }
  return *this;
}

void Child::kill() {
  if (pid_ > 0) static_cast<void>(end(Clock::time_point::min()));
}

bool Child::has_ended() const {
  siginfo_t info{};
  if (pid_ <= 0) return false;
  // A program around us that ignores SIGCHLD has its children reaped by the system.
  if (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0) return errno == ECHILD;
  return info.si_pid != 0;
}

bool Child::is_stopped() const {
  siginfo_t info{};
  return pid_ > 0 && ::waitid(P_PID, static_cast<id_t>(pid_), &info, WSTOPPED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid != 0;
}

void Child::wait_until(Clock::time_point until, Output* output) const {
  while (!has_ended()) {
    const auto now = Clock::now();
    if (until <= now) return;  // before the difference, which overflows where `until` is the first moment of all
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - now).count();
    std::array<pollfd, 3> ready{{{ended_.get(), POLLIN, 0},
                                 {output == nullptr ? -1 : output->error_source(), POLLIN, 0},
                                 {output == nullptr ? -1 : output->output_source(), POLLIN, 0}}};
    // Where nothing tells of the end it is looked for.
    const std::int64_t most = ended_ ? 1000 : 1;
    static_cast<void>(::poll(ready.data(), ready.size(), static_cast<int>(std::min<std::int64_t>(left, most))));
    if (output != nullptr) output->drain();
    // A zombie that a tracer holds is ready and cannot be reaped.
    constexpr auto moment = std::chrono::milliseconds(1);
    if (ready[0].revents != 0 && !has_ended()) std::this_thread::sleep_for(moment);
  }
}

std::string Child::end(Clock::time_point until, Output* output) {
  if (pid_ <= 0) return "was not running";
  wait_until(until, output);
  const bool ended = has_ended();
  // The unreaped child keeps its number, and the group's, from being used again, so this can hit nobody else. The child
  // itself, too: it may have left the group.
  ::kill(-pid_, SIGKILL);
  if (!ended) ::kill(pid_, SIGKILL);
  unwatch(pid_);
  // What waits for a device that does not answer outlives even that.
  constexpr auto most = std::chrono::seconds(5);
  if (!ended) wait_until(Clock::now() + most, nullptr);
  int status = 0;
  pid_t reaped = 0;
  while ((reaped = ::waitpid(pid_, &status, WNOHANG)) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  ended_.close();
  if (!mark_.empty()) kill_marked(mark_);
  if (reaped == 0) return "was still running, and a kill did not end it";
  return ended ? describe_exit(status) : "was still running";
}

std::string why_no_more(int error) {
  switch (error) {
    case EMFILE:
      return "too many open files (EMFILE): a kernel's process takes eight of them; raise the limit with ulimit -n, or "
             "run fewer --jobs";
    case ENFILE:
      return "the system has no more open files to give (ENFILE); raise the limit fs.file-max, or run fewer --jobs";
    case EAGAIN:
      return "the system gives no more processes (EAGAIN); raise the limit with ulimit -u, or run fewer --jobs";
    case ENOMEM:
      return "the system has no memory for another process (ENOMEM); run fewer --jobs";
    default:
      return {};
  }
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
