#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <string>

#include "attest/case.h"
#include "attest/folder.h"
#include "attest/journal.h"
#include "support/whole_file.h"

namespace attest {

JournalWriter::JournalWriter(const std::filesystem::path& file) : file_(file) {
  errno = ENOENT;
  if (const std::optional<Folder> folder = Folder::if_there(file.has_parent_path() ? file.parent_path() : "."))
    descriptor_ = folder->open_to_append(file.filename().native(), 0644).release();
  if (descriptor_ < 0) {
    throw UsageError(fmt::format("{}: cannot be written: {}; choose another folder with --out", file.string(),
                                 std::strerror(errno)));
  }
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
    ::close(descriptor_);
    throw UsageError(fmt::format("{}: another run is writing it; choose another folder with --out", file.string()));
  }
  const off_t size = ::lseek(descriptor_, 0, SEEK_END);
  if (size <= 0) return;
  // Of this very file, whatever stands under its name by now.
  ::lseek(descriptor_, 0, SEEK_SET);
  const std::string text = read_whole(descriptor_, file);
  const std::size_t whole = text.rfind('\n') + 1;  // npos + 1 == 0: not one whole line
  if (whole != text.size() && ::ftruncate(descriptor_, static_cast<off_t>(whole)) != 0) {
    const int reason = errno;
    ::close(descriptor_);
    throw UsageError(fmt::format("{}: its torn last line cannot be cut off: {}", file.string(), std::strerror(reason)));
  }
}

JournalWriter::~JournalWriter() {
  ::close(descriptor_);
}

void JournalWriter::append_line(std::string_view line) {
  const off_t before = ::lseek(descriptor_, 0, SEEK_END);
  ssize_t written = -1;
  do {
    written = ::write(descriptor_, line.data(), line.size());
  } while (written < 0 && errno == EINTR);
  if (written == static_cast<ssize_t>(line.size())) return;
  // A short write is what a full disk gives; the reason comes with the next byte.
  int reason = errno;
  if (written >= 0) {
    reason = ::write(descriptor_, line.data() + written, 1) < 0 ? errno : ENOSPC;
    // Cut the part off; where even that fails, the line lacks its newline and readers ignore it.
    if (before >= 0) (void)!::ftruncate(descriptor_, before);
  }
  throw UsageError(fmt::format("{}: cannot be written: {}; what stands in it is whole, and --resume continues it",
                               file_.string(), std::strerror(reason)));
}

void JournalWriter::sync() {
  (void)!::fsync(descriptor_);
}

}  // namespace attest
