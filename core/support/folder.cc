#include "core/support/folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <memory>
#include <utility>

#include "core/support/names.h"
#include "core/support/whole_file.h"

namespace attest {
namespace {

enum class Wanted { file, folder };

std::string_view kind_of(mode_t mode) {
  if (S_ISLNK(mode)) return "a symbolic link";
  if (S_ISFIFO(mode)) return "a named pipe";
  if (S_ISSOCK(mode)) return "a socket";
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISREG(mode)) return "a file";
  return "a device";
}

[[noreturn]] void refuse(const std::filesystem::path& file, mode_t mode, Wanted wanted) {
  throw ForeignEntry(fmt::format("{} is {}; {}; remove it, or put a copy of what is meant in its place",
                                 in_quotes(file.native(), 300), kind_of(mode),
                                 wanted == Wanted::file ? "files of a run folder must be regular files"
                                                        : "cases, logs and archive of a run folder must be folders"));
}

void require(const std::filesystem::path& file, mode_t mode, Wanted wanted) {
  if (!(wanted == Wanted::file ? S_ISREG(mode) : S_ISDIR(mode))) refuse(file, mode, wanted);
}

/// What stands there, links not followed; nothing where nothing does.
std::optional<struct stat> standing(int folder, const std::string& name, const std::filesystem::path& shown) {
  struct stat status{};
  if (::fstatat(folder, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0) return status;
  if (errno == ENOENT) return std::nullopt;
  cannot("read", shown, errno);
}

/// Opened without following a link or waiting for a pipe's other end; none, and errno, where the system refuses.
Descriptor open_regular(int folder, const std::string& name, int flags, mode_t mode,
                        const std::filesystem::path& shown) {
  // Looked at first: to open a device may do something already.
  if (const auto before = standing(folder, name, shown)) require(shown, before->st_mode, Wanted::file);
  Descriptor opened(open_again(folder, name.c_str(), flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, mode));
  if (!opened) return opened;
  // Looked at again: it may have been exchanged meanwhile.
  struct stat status{};
  if (::fstat(opened.number(), &status) != 0) cannot("read", shown, errno);
  require(shown, status.st_mode, Wanted::file);
  ::fcntl(opened.number(), F_SETFL, flags & O_APPEND);
  if ((flags & O_APPEND) != 0 && status.st_nlink > 1) {
    throw ForeignEntry(
        fmt::format("{} has {} names (hard links), and what is written to it would stand under each; put a copy in its "
                    "place",
                    in_quotes(shown.native(), 300), status.st_nlink));
  }
  return opened;
}

/// The process that was to rename the temporary, "NAME.PID-SERIAL.tmp", and NAME; nothing where it is none.
struct Leftover {
  std::string_view name;
  pid_t writer = 0;
};
std::optional<Leftover> leftover_of(std::string_view file) {
  constexpr std::string_view end = ".tmp";
  const auto digits = [](std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
  };
  if (!file.ends_with(end)) return std::nullopt;
  file.remove_suffix(end.size());
  const std::size_t dash = file.rfind('-');
  const std::size_t dot = file.rfind('.');
  if (dash == std::string_view::npos || dot == std::string_view::npos || dot > dash) return std::nullopt;
  const std::string_view number = file.substr(dot + 1, dash - dot - 1);
  Leftover leftover{.name = file.substr(0, dot)};
  if (!digits(number) || !digits(file.substr(dash + 1))) return std::nullopt;
  const auto read = std::from_chars(number.data(), number.data() + number.size(), leftover.writer);
  // 0 and less are no processes.
  return read.ec == std::errc() && leftover.writer > 0 ? std::optional(leftover) : std::nullopt;
}

bool runs_elsewhere(pid_t process) {
  return process != ::getpid() && (::kill(process, 0) == 0 || errno == EPERM);
}

}  // namespace

Folder::Folder(std::filesystem::path path, Last last) : path_(std::move(path)) {
  if (path_.empty()) path_ = ".";
  const int no_link = last == Last::is_no_link ? O_NOFOLLOW : 0;
  if (no_link != 0) {
    const auto there = standing(AT_FDCWD, path_.native(), path_);
    if (there) require(path_, there->st_mode, Wanted::folder);
  }
  descriptor_ = Descriptor(open_again(AT_FDCWD, path_.c_str(), O_PATH | O_DIRECTORY | no_link));
  if (!descriptor_) cannot("open the folder", path_, errno);
}

std::optional<Folder> Folder::if_there(const std::filesystem::path& path) {
  std::error_code ignored;
  if (path.empty() || !std::filesystem::is_directory(path, ignored)) return std::nullopt;
  return Folder(path);
}

Folder::Place Folder::place_of(std::string_view name) const {
  Place place{.within = Descriptor(open_again(descriptor_.number(), ".", O_PATH | O_DIRECTORY)), .last = {}};
  if (!place.within) cannot("open the folder", path_, errno);
  std::string_view rest = name;
  for (;;) {
    const std::size_t slash = rest.find('/');
    const std::string part(rest.substr(0, slash));
    if (part.empty() || part == "." || part == ".." || part.find('\0') != std::string::npos) {
      throw UsageError(fmt::format("{} is no name of a file in the run folder {}: it would lead out of it",
                                   in_quotes(name, 300), in_quotes(path_.native(), 300)));
    }
    if (slash == std::string_view::npos) {
      place.last = part;
      return place;
    }
    rest.remove_prefix(slash + 1);
    // The names that follow are checked although a folder is missing.
    if (!place.within) continue;
    const std::filesystem::path folder = shown(name.substr(0, name.size() - rest.size() - 1));
    const auto there = standing(place.within.number(), part, folder);
    if (there) require(folder, there->st_mode, Wanted::folder);
    Descriptor next;
    if (there) next = Descriptor(open_again(place.within.number(), part.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW));
    if (there && !next) cannot("open the folder", folder, errno);
    place.within = std::move(next);
  }
}

Descriptor Folder::open_folder(std::string_view name) const {
  if (name.empty()) return Descriptor(open_again(descriptor_.number(), ".", O_RDONLY | O_DIRECTORY));
  const Place place = place_of(name);
  const auto there = place.within ? standing(place.within.number(), place.last, shown(name)) : std::nullopt;
  if (!there) return {};
  require(shown(name), there->st_mode, Wanted::folder);
  Descriptor opened(
      open_again(place.within.number(), place.last.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK));
  if (!opened) cannot("read", shown(name), errno);
  return opened;
}

std::optional<std::int64_t> Folder::size(std::string_view name) const {
  const Place place = place_of(name);
  const auto there = place.within ? standing(place.within.number(), place.last, shown(name)) : std::nullopt;
  if (!there) return std::nullopt;
  require(shown(name), there->st_mode, Wanted::file);
  return there->st_size;
}

std::vector<std::string> Folder::names(std::string_view folder) const {
  Descriptor opened = open_folder(folder);
  if (!opened) return {};
  const auto close = [](DIR* stream) { ::closedir(stream); };
  const std::unique_ptr<DIR, decltype(close)> stream(::fdopendir(opened.number()), close);
  if (!stream) cannot("read", shown(folder), errno);
  (void)opened.release();  // the stream's now
  std::vector<std::string> found;
  while (const dirent* const entry = ::readdir(stream.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") found.emplace_back(name);
  }
  std::ranges::sort(found);
  return found;
}

std::string Folder::read(std::string_view name) const {
  return read_whole(open(name).number(), shown(name));
}

Descriptor Folder::open(std::string_view name) const {
  const Place place = place_of(name);
  if (!place.within) cannot("read", shown(name), ENOENT);
  Descriptor opened = open_regular(place.within.number(), place.last, O_RDONLY, 0, shown(name));
  if (!opened) cannot("read", shown(name), errno);
  return opened;
}

Descriptor Folder::open_to_append(std::string_view name, mode_t mode) const {
  const Place place = place_of(name);
  if (!place.within) cannot("write", shown(name), ENOENT);
  return open_regular(place.within.number(), place.last, O_RDWR | O_APPEND | O_CREAT, mode, shown(name));
}

void Folder::write(std::string_view name, std::string_view bytes) const {
  const Place place = place_of(name);
  if (!place.within) cannot("write", shown(name), ENOENT);
  const auto there = standing(place.within.number(), place.last, shown(name));
  // A rename would put the file in its place; whoever put a link there meant something by it.
  if (there) require(shown(name), there->st_mode, Wanted::file);
  replace_file(place.within.number(), place.last, bytes, shown(name));
}

void Folder::make_folder(std::string_view name) const {
  const Place place = place_of(name);
  if (!place.within) cannot("make", shown(name), ENOENT);
  if (::mkdirat(place.within.number(), place.last.c_str(), 0777) == 0) return;
  const int error = errno;
  const auto there = standing(place.within.number(), place.last, shown(name));
  if (!there) cannot("make", shown(name), error);
  require(shown(name), there->st_mode, Wanted::folder);
}

void Folder::remove(std::string_view name) const {
  const Place place = place_of(name);
  if (!place.within) return;
  const auto there = standing(place.within.number(), place.last, shown(name));
  if (!there) return;
  // Neither follows a link.
  ::unlinkat(place.within.number(), place.last.c_str(), S_ISDIR(there->st_mode) ? AT_REMOVEDIR : 0);
}

void Folder::remove_leftovers(std::string_view folder, const std::function<bool(std::string_view)>& is_ours) const {
  const Descriptor within = open_folder(folder);
  if (!within) return;
  for (const std::string& name : names(folder)) {
    const std::optional<Leftover> leftover = leftover_of(name);
    if (!leftover || !is_ours(leftover->name) || runs_elsewhere(leftover->writer)) continue;
    struct stat status{};
    if (::fstatat(within.number(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(status.st_mode))
      continue;
    const Descriptor opened(open_again(within.number(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
    // A process on another machine holds the lock while it writes; a file system without locks cannot tell.
    if (opened && ::flock(opened.number(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) continue;
    ::unlinkat(within.number(), name.c_str(), 0);
  }
}

}  // namespace attest
