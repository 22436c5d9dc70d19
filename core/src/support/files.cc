#include "attest/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

#include "attest/errors.h"
#include "attest/names.h"

namespace attest {
namespace {

std::string reason_of(int error) {
  return std::generic_category().message(error);
}

[[noreturn]] void cannot(std::string_view verb, const std::filesystem::path& file, int error) {
  throw UsageError(fmt::format("cannot {} {}: {}", verb, in_quotes(file.native(), 300), reason_of(error)));
}

/// A file descriptor that closes itself.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  [[nodiscard]] int number() const { return number_; }
  /// Closes now, to learn of errors that only close reports. 0 or errno.
  int close() {
    const int result = ::close(std::exchange(number_, -1));
    return result == 0 ? 0 : errno;
  }

 private:
  int number_;
};

int open_again(const char* name, int flags, mode_t mode = 0) {
  for (;;) {
    const int number = ::open(name, flags | O_CLOEXEC, mode);
    if (number >= 0 || errno != EINTR) return number;
  }
}

/// Writes all of it. 0 or errno.
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

/// Writes to what stands at `file` already.
void write_into(const std::filesystem::path& file, std::string_view bytes) {
  Descriptor descriptor(open_again(file.c_str(), O_WRONLY | O_TRUNC));
  if (descriptor.number() < 0) cannot("write", file, errno);
  int error = write_all(descriptor.number(), bytes);
  if (const int late = descriptor.close(); error == 0) error = late;
  if (error != 0) cannot("write", file, error);
}

}  // namespace

std::string read_file(const std::filesystem::path& file) {
  const Descriptor descriptor(open_again(file.c_str(), O_RDONLY));
  struct stat status{};
  if (descriptor.number() < 0 || ::fstat(descriptor.number(), &status) != 0) cannot("read", file, errno);
  if (S_ISDIR(status.st_mode)) cannot("read", file, EISDIR);
  // A device has no end to read to; a pipe has (a shell's process substitution).
  if (S_ISCHR(status.st_mode) || S_ISBLK(status.st_mode)) {
    throw UsageError(fmt::format("cannot read {}: it is a device, not a file", in_quotes(file.native(), 300)));
  }
  try {
    std::string bytes;
    // One byte more, so that the end is found without growing.
    if (S_ISREG(status.st_mode)) bytes.resize(static_cast<std::size_t>(status.st_size) + 1);
    if (const int error = read_all(descriptor.number(), bytes); error != 0) cannot("read", file, error);
    return bytes;
  } catch (const std::bad_alloc&) {
    cannot("read", file, ENOMEM);
  } catch (const std::length_error&) {
    cannot("read", file, EFBIG);
  }
}

void write_file_atomically(const std::filesystem::path& file, std::string_view bytes) {
  struct stat standing{};
  if (::lstat(file.c_str(), &standing) == 0 && !S_ISREG(standing.st_mode)) {
    write_into(file, bytes);
    return;
  }
  static std::atomic<unsigned> serial{0};
  const std::string& name = file.native();
  const std::string temporary = fmt::format("{}.{}-{}.tmp", name, ::getpid(), serial++);
  Descriptor descriptor(open_again(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0666));
  if (descriptor.number() < 0) cannot("write", file, errno);
  int error = write_all(descriptor.number(), bytes);
  if (error == 0 && ::fsync(descriptor.number()) != 0) error = errno;
  if (const int late = descriptor.close(); error == 0) error = late;
  if (error == 0 && ::rename(temporary.c_str(), name.c_str()) != 0) error = errno;
  if (error != 0) {
    ::unlink(temporary.c_str());
    cannot("write", file, error);
  }
  // The rename itself must reach the disk too. Some file systems refuse fsync on a folder; the data is safe by then.
  const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : ".";
  const Descriptor parent(open_again(folder.c_str(), O_RDONLY | O_DIRECTORY));
  if (parent.number() >= 0) ::fsync(parent.number());
}

}  // namespace attest
