#include "core/support/files.h"

#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <cerrno>
#include <string>

#include "core/support/descriptor.h"
#include "core/support/errors.h"
#include "core/support/names.h"
#include "core/support/whole_file.h"

namespace attest {
namespace {

/// Writes to what stands at `file` already.
void write_into(const std::filesystem::path& file, std::string_view bytes) {
  Descriptor descriptor(open_again(AT_FDCWD, file.c_str(), O_WRONLY | O_TRUNC));
  if (!descriptor) cannot("write", file, errno);
  int error = write_all(descriptor.number(), bytes);
  if (const int late = descriptor.close(); error == 0) error = late;
  if (error != 0) cannot("write", file, error);
}

/// A pipe in a folder, which may have no other end. Those of a shell are of no folder.
bool is_named_pipe(const std::filesystem::path& file) {
  struct stat standing{};
  struct statfs system{};
  return ::stat(file.c_str(), &standing) == 0 && S_ISFIFO(standing.st_mode) && ::statfs(file.c_str(), &system) == 0 &&
         system.f_type != PIPEFS_MAGIC;
}

}  // namespace

std::string read_file(const std::filesystem::path& file) {
  // Looked at first: to open a pipe that has a name may wait for ever.
  if (is_named_pipe(file)) {
    throw UsageError(fmt::format("cannot read {}: it is a named pipe, not a file", in_quotes(file.native(), 300)));
  }
  const Descriptor descriptor(open_again(AT_FDCWD, file.c_str(), O_RDONLY));
  struct stat status{};
  if (!descriptor || ::fstat(descriptor.number(), &status) != 0) cannot("read", file, errno);
  if (S_ISDIR(status.st_mode)) cannot("read", file, EISDIR);
  // A device has no end to read to; a pipe without a name has (a shell's process substitution, /dev/stdin).
  if (S_ISCHR(status.st_mode) || S_ISBLK(status.st_mode)) {
    throw UsageError(fmt::format("cannot read {}: it is a device, not a file", in_quotes(file.native(), 300)));
  }
  return read_whole(descriptor.number(), file);
}

void write_file_atomically(const std::filesystem::path& file, std::string_view bytes) {
  struct stat standing{};
  if (::lstat(file.c_str(), &standing) == 0 && !S_ISREG(standing.st_mode)) {
    write_into(file, bytes);
    return;
  }
  const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : ".";
  const Descriptor parent(open_again(AT_FDCWD, folder.c_str(), O_PATH | O_DIRECTORY));
  if (!parent) cannot("write", file, errno);
  replace_file(parent.number(), file.filename(), bytes, file);
}

}  // namespace attest
