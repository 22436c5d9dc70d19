#include "core/support/whole_file.h"

#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <new>
#include <stdexcept>
#include <system_error>

#include "core/support/descriptor.h"
#include "core/support/errors.h"
#include "core/support/names.h"

namespace attest {
namespace {

/// Reads to the end of the file. 0 or errno.
int read_all(int number, std::string& bytes) {
  std::size_t size = 0;
  for (;;) {
    if (size == bytes.size()) bytes.resize(std::max<std::size_t>(size * 2, 65536));
    const ssize_t got = ::read(number, bytes.data() + size, bytes.size() - size);
    if (got < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  bytes.resize(size);
  return 0;
}

}  // namespace

int open_again(int folder, const char* name, int flags, mode_t mode) {
  for (;;) {
    const int number = ::openat(folder, name, flags | O_CLOEXEC, mode);
    if (number >= 0 || errno != EINTR) return number;
  }
}

std::string reason_of(int error) {
  if (error == EMFILE) return "too many open files (EMFILE); raise the limit with ulimit -n, or run fewer --jobs";
  return std::generic_category().message(error);
}

void cannot(std::string_view verb, const std::filesystem::path& file, int error) {
  throw UsageError(fmt::format("cannot {} {}: {}", verb, in_quotes(file.native(), 300), reason_of(error)));
}

std::string read_whole(int number, const std::filesystem::path& shown) {
  struct stat status{};
  if (::fstat(number, &status) != 0) cannot("read", shown, errno);
  try {
    std::string bytes;
    // One byte more, so that the end is found without growing.
    if (S_ISREG(status.st_mode)) bytes.resize(static_cast<std::size_t>(status.st_size) + 1);
    if (const int error = read_all(number, bytes); error != 0) cannot("read", shown, error);
    return bytes;
  } catch (const std::bad_alloc&) {
    cannot("read", shown, ENOMEM);
  } catch (const std::length_error&) {
    cannot("read", shown, EFBIG);
  }
}

int write_all(int number, std::string_view bytes) {
  // Linux writes at most 2^31 - 4096 bytes a call.
  constexpr std::size_t most = std::size_t{1} << 30;
  while (!bytes.empty()) {
    const ssize_t written = ::write(number, bytes.data(), std::min(bytes.size(), most));
    if (written < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

void replace_file(int folder, const std::string& name, std::string_view bytes, const std::filesystem::path& shown) {
  static std::atomic<unsigned> serial{0};
  std::string temporary;
  Descriptor descriptor;
  // In a container a process often has the number of one that was killed there, and left its temporary.
  do {
    temporary = fmt::format("{}.{}-{}.tmp", name, ::getpid(), serial++);
    descriptor = Descriptor(open_again(folder, temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0666));
  } while (!descriptor && errno == EEXIST);
  if (!descriptor) cannot("write", shown, errno);
  // Tells whoever tidies the folder that somebody writes it. A file system without locks is none to fail for.
  (void)!::flock(descriptor.number(), LOCK_EX | LOCK_NB);
  int error = write_all(descriptor.number(), bytes);
  if (error == 0 && ::fsync(descriptor.number()) != 0) error = errno;
  // Renamed while it is locked; what close reports late, fsync has reported before.
  if (error == 0 && ::renameat(folder, temporary.c_str(), folder, name.c_str()) != 0) error = errno;
  if (error != 0) {
    ::unlinkat(folder, temporary.c_str(), 0);
    cannot("write", shown, error);
  }
  // The rename itself must reach the disk too. Some file systems refuse fsync on a folder; the data is safe by then.
  const Descriptor parent(open_again(folder, ".", O_RDONLY | O_DIRECTORY));
  if (parent) ::fsync(parent.number());
}

}  // namespace attest
