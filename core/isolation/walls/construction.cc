#include "core/isolation/walls/construction.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <ranges>
#include <system_error>

#include "core/isolation/walls/tasks.h"
#include "core/support/errors.h"
#include "core/support/names.h"

namespace attest::process {
namespace {

namespace fs = std::filesystem;

/// Where programs find their libraries: /usr, and what leads into it or is a folder of its own on systems that are not
/// merged. Beside them what the loader and Debian's links through /etc need, and what PyTorch and Node.js do not start
/// without.
constexpr std::array system_folders{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"};
constexpr std::array system_files{"/etc/ld.so.cache", "/etc/alternatives", "/etc/ssl/openssl.cnf", "/proc/cpuinfo"};
constexpr std::array devices{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"};
/// Memory for files of the kernel's own.
constexpr std::array scratch_folders{"/tmp", "/dev/shm"};
constexpr auto scratch_bytes = "67108864";

fs::path true_path(const fs::path& path) {
  std::error_code error;
  fs::path found = fs::canonical(path, error);
  if (error)
    throw UsageError(
        fmt::format("{}: cannot be looked at from behind the walls ({})", in_quotes(path.string()), error.message()));
  return found;
}

/// Beside the folder of a package that pip installed, the libraries that its wheel brings (auditwheel puts them there).
/// kernel-start and kernel-host look for them there, and in a folder of / (.ci/repair_wheel.py).
constexpr auto libraries_of_a_wheel = "attest_attention.libs";

/// Something of this machine and where it is seen.
struct View {
  fs::path file;  ///< its true path
  fs::path inside;
};

/// The whole view of the file system from within.
struct Views {
  std::vector<View> views;
  std::vector<fs::path> hidden;  ///< true paths

  /// Where a path is seen; empty where it is not.
  [[nodiscard]] fs::path inside(const fs::path& path) const {
    if (std::ranges::any_of(hidden, [&](const fs::path& folder) { return is_within(path, folder); })) return {};
    for (const View& view : views) {
      if (path == view.file) return view.inside;
      if (is_within(path, view.file)) return view.inside / path.lexically_relative(view.file);
    }
    return {};
  }
};

/// Empty where the running program is of no wheel: site-packages/attest/program/bin/attest.
fs::path own_libraries() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  const fs::path folder = program.parent_path() / "../../.." / libraries_of_a_wheel;
  return fs::is_directory(folder, error) ? fs::canonical(folder, error) : fs::path();
}

Views views_of(const Walls& walls, const Enclosed& enclosed, Kind kind) {
  Views all;
  for (const fs::path& folder : walls.hidden) all.hidden.push_back(true_path(folder));
  const auto add = [&](const fs::path& path, const fs::path& inside) {
    const fs::path file = true_path(path);
    constexpr std::array closed{"/proc", "/sys", "/dev"};
    if (file == "/" || std::ranges::any_of(closed, [&](const char* folder) { return is_within(file, folder); }))
      throw UsageError(fmt::format("{}: cannot be opened to a kernel behind walls; name the files that it reads",
                                   in_quotes(path.string())));
    for (const fs::path& folder : all.hidden) {
      if (is_within(file, folder))
        throw UsageError(fmt::format("{}: lies in {}, which is hidden from the kernel; move it elsewhere",
                                     in_quotes(path.string()), in_quotes(folder.string())));
    }
    all.views.push_back({file, kind == Kind::bare ? file : inside});
  };
  for (const fs::path& path : walls.readable) add(path, fs::absolute(path).lexically_normal());
  for (const SeenAs& seen : enclosed.seen) add(seen.file, seen.inside);
  if (const fs::path libraries = own_libraries(); !libraries.empty())
    add(libraries, fs::path("/") / libraries_of_a_wheel);
  for (const char* const folder : system_folders) {
    std::error_code error;
    if (fs::is_directory(folder, error) && !fs::is_symlink(folder, error)) all.views.push_back({folder, folder});
  }
  for (const char* const file : system_files) {
    std::error_code error;
    if (fs::exists(file, error)) all.views.push_back({file, file});
  }
  return all;
}

bool has(const Walls& walls, Wall wall) {
  return std::ranges::find(walls.left_out, wall) == walls.left_out.end();
}

/// Users that no system gives to anyone: another one for each process that a judge starts, so that not even two
/// kernels' reach each other.
std::string other_user() {
  static std::atomic<unsigned> count = 0;
  constexpr unsigned first = 0x7000'0000, judges = 1U << 18U, of_a_judge = 1U << 10U;
  return std::to_string(first + static_cast<unsigned>(::getpid()) % judges * of_a_judge + count++ % of_a_judge);
}

void append(std::vector<std::string>& to, std::initializer_list<std::string_view> words) {
  to.insert(to.end(), words.begin(), words.end());
}

/// All of a folder but what is hidden in it: Landlock only ever gives.
void allow_but(const fs::path& path, const std::vector<fs::path>& hidden, std::vector<std::string>& line) {
  if (std::ranges::find(hidden, path) != hidden.end()) return;
  if (std::ranges::none_of(hidden, [&](const fs::path& folder) { return is_within(folder, path); })) {
    append(line, {"--read", path.native()});
    return;
  }
  for (const fs::directory_entry& entry : fs::directory_iterator(path)) allow_but(entry.path(), hidden, line);
}

/// The command line of kernel-start up to its "--".
std::vector<std::string> start_line(const Walls& walls, const Enclosed& enclosed, Kind kind, const Views& views) {
  std::vector<std::string> line{kind == Kind::bare ? kernel_start().native() : "/start"};
  const bool root = ::geteuid() == 0;
  if (root && has(walls, Wall::other_user)) append(line, {"--user", other_user()});
  std::error_code error;
  const fs::path folder = views.inside(fs::current_path(error));
  append(line, {"--folder", !folder.empty() ? folder.native() : kind == Kind::bare ? "/" : "/tmp"});
  append(line, {"--keep", std::to_string(enclosed.descriptors)});
  if (enclosed.memory != 0) append(line, {"--memory", std::to_string(enclosed.memory)});
  if (has(walls, Wall::limits))
    append(line, {"--processes", std::to_string(walls.most_processes + tasks_beside(kind == Kind::bare, root))});
  if (has(walls, Wall::landlock)) {
    for (const View& view : views.views) {
      if (kind == Kind::bare) {
        allow_but(view.file, views.hidden, line);
      } else {
        append(line, {"--read", view.inside.native()});
      }
    }
    for (const char* const device : devices) append(line, {"--write", device});
    if (kind == Kind::namespaces)
      for (const char* const scratch : scratch_folders) append(line, {"--write", scratch});
  }
  if (has(walls, Wall::system_calls)) append(line, {"--calls"});
  if (kind == Kind::bare) append(line, {"--bare"});
  append(line, {"--"});
  return line;
}

/// The folders that lead to a path, which bubblewrap by itself makes root's alone where it binds a file.
void append_parents(std::vector<std::string>& line, const fs::path& path) {
  fs::path folder;
  for (const fs::path& part : path.parent_path()) {
    folder /= part;
    if (folder != "/") append(line, {"--perms", "0755", "--dir", folder.native()});
  }
}

/// bubblewrap's command line. It neither makes a session nor dies with its parent by itself: its whole group is killed
/// (Child, watcher.h), while what dies with a parent dies with the thread that started it.
std::vector<std::string> namespaces_line(const Walls& walls, const Views& views) {
  std::vector<std::string> line{std::string(bubblewrap)};
  append(line, {"--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try",
                "--hostname", "host", "--cap-drop", "ALL"});
  if (::geteuid() == 0) {
    // The process becomes another user of the machine itself, which root of a user namespace would not be.
    if (has(walls, Wall::other_user)) append(line, {"--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"});
  } else {
    append(line, {"--unshare-user", "--uid", "1000", "--gid", "1000"});
  }
  for (const char* const scratch : {"/tmp", "/dev", "/dev/shm"})
    append(line, {"--perms", "1777", "--size", scratch_bytes, "--tmpfs", scratch});
  for (const char* const device : devices) append(line, {"--dev-bind", device, device});
  for (const char* const folder : system_folders) {
    std::error_code error;
    if (fs::is_symlink(folder, error)) append(line, {"--symlink", fs::read_symlink(folder, error).native(), folder});
  }
  for (const View& view : std::views::reverse(views.views)) {
    append_parents(line, view.inside);
    append(line, {"--ro-bind", view.file.native(), view.inside.native()});
  }
  append(line, {"--ro-bind", kernel_start().native(), "/start"});
  for (const View& view : views.views) {
    for (const fs::path& folder : views.hidden) {
      if (!is_within(folder, view.file)) continue;
      const fs::path place = view.inside / folder.lexically_relative(view.file);
      append(line, {"--perms", "0555", "--tmpfs", place.native(), "--remount-ro", place.native()});
    }
  }
  append(line, {"--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/", "--"});
  return line;
}

std::vector<std::string> environment_of(const Enclosed& enclosed, Kind kind) {
  std::vector<std::string> environment{
      "PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8", "HOME=/tmp", "USER=user", "OMP_NUM_THREADS=1",
      "PYTHONDONTWRITEBYTECODE=1"};
  for (const SeenAs& seen : enclosed.seen) {
    if (seen.inside != adapters_inside) continue;
    const fs::path folder = kind == Kind::bare ? seen.file : fs::path(seen.inside);
    environment.push_back("PYTHONPATH=" + (folder / "python").native());
    environment.push_back("NODE_PATH=" + (folder / "node").native());
  }
  return environment;
}

/// An argument, which may be the path of something seen elsewhere.
std::string inside(const std::string& argument, const Enclosed& enclosed, Kind kind) {
  if (kind == Kind::bare || !argument.starts_with('/')) return argument;
  for (const SeenAs& seen : enclosed.seen) {
    if (argument == seen.file) return seen.inside;
    if (is_within(argument, seen.file)) return fs::path(seen.inside) / fs::path(argument).lexically_relative(seen.file);
  }
  return argument;
}

/// A program of this project that is not called by its users: installed, beside the running one, or as it was built.
fs::path program_named(const char* name) {
  std::error_code error;
  const fs::path own = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const fs::path& folder : {own.parent_path() / ATTEST_INSTALLED_PROGRAMS, own, fs::path(ATTEST_BUILT_PROGRAMS)}) {
    if (::access((folder / name).c_str(), X_OK) == 0) return fs::canonical(folder / name, error);
  }
  return {};
}

}  // namespace

bool is_within(const fs::path& path, const fs::path& folder) {
  return std::ranges::mismatch(folder, path).in1 == folder.end();
}

Construction construct(const Walls& walls, const Enclosed& enclosed, Kind kind) {
  if (kernel_start().empty())
    throw UsageError("the program kernel-start, which builds walls, is missing; build or install Attest again");
  const Views views = views_of(walls, enclosed, kind);
  Construction made;
  if (kind == Kind::namespaces) made.argv = namespaces_line(walls, views);
  std::ranges::move(start_line(walls, enclosed, kind, views), std::back_inserter(made.argv));
  for (const std::string& argument : enclosed.argv) made.argv.push_back(inside(argument, enclosed, kind));
  made.environment = environment_of(enclosed, kind);
  return made;
}

fs::path kernel_host() {
  return program_named("kernel-host");
}

fs::path kernel_start() {
  return program_named("kernel-start");
}

}  // namespace attest::process
