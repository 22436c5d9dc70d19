#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "core/journal/journal.h"
#include "core/journal/lines.h"
#include "core/problem/case.h"
#include "core/support/folder.h"
#include "core/support/whole_file.h"

namespace attest {
namespace {

/// A file that is new is on the disk when its name is, and the name of a folder that may be new too. Some file systems
/// refuse fsync on a folder.
void sync_folders_of(const std::filesystem::path& file) {
  const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : ".";
  for (const std::filesystem::path& one : {folder, folder / ".."}) {
    const int descriptor = ::open(one.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) continue;
    (void)!::fsync(descriptor);
    ::close(descriptor);
  }
}

}  // namespace

/// The thread that puts on the disk what another one writes.
class JournalWriter::Syncer {
 public:
  Syncer(int descriptor, JournalSync how) : descriptor_(descriptor), how_(std::move(how)) {
    if (!how_.sync) how_.sync = ::fdatasync;
    // Signals are for the threads that were there before.
    sigset_t all, before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_BLOCK, &all, &before);
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  void note_written() { dirty_ = true; }
  void sync() {
    dirty_ = false;
    // What is no file, or on no disk, cannot be asked for.
    while (how_.sync(descriptor_) != 0 && errno != EINVAL && errno != EROFS && errno != ENOSYS) {
      if (errno == EINTR) continue;
      error_ = errno;
      return;
    }
  }
  /// 0 or errno.
  [[nodiscard]] int error() const { return error_; }

 private:
  void run(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (!stop.stop_requested()) {
      wake_.wait_for(lock, stop, how_.every, [] { return false; });
      if (dirty_) sync();
    }
  }

  const int descriptor_;
  JournalSync how_;
  std::atomic<bool> dirty_ = false;
  std::atomic<int> error_ = 0;
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::jthread thread_;
};

JournalWriter::JournalWriter(const std::filesystem::path& file, JournalSync sync) : file_(file) {
  errno = ENOENT;
  if (const std::optional<Folder> folder = Folder::if_there(file.has_parent_path() ? file.parent_path() : "."))
    descriptor_ = folder->open_to_append(file.filename().native(), 0644).release();
  if (descriptor_ < 0) {
    throw UsageError(fmt::format("{}: cannot be written: {}; choose another folder with --out", file.string(),
                                 std::strerror(errno)));
  }
  const auto refuse = [&](const std::string& why) {
    ::close(descriptor_);
    throw UsageError(fmt::format("{}: {}", file.string(), why));
  };
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0)
    refuse("another run is writing it; choose another folder with --out");
  if (::lseek(descriptor_, 0, SEEK_END) > 0) {
    // Of this very file, whatever stands under its name by now.
    ::lseek(descriptor_, 0, SEEK_SET);
    const std::string text = read_whole(descriptor_, file);
    const std::size_t whole = readable_size(text);
    // The line of zero bytes may have its newline.
    const std::size_t end = text.find('\n', whole);
    if (end != std::string::npos && text.find('\n', end + 1) != std::string::npos)
      refuse("lines stand behind zero bytes, which a power cut leaves; --salvage keeps those that are sound");
    if (whole != text.size() && ::ftruncate(descriptor_, static_cast<off_t>(whole)) != 0)
      refuse(fmt::format("its torn last line cannot be cut off: {}", std::strerror(errno)));
    if (whole > 0) {
      const std::string_view lines = std::string_view(text).substr(0, whole - 1);
      const std::optional<std::int64_t> last = number_of_line(lines.substr(lines.rfind('\n') + 1));
      wants_run_ = !last;
      stamper_ = LineStamper(last.value_or(0));
    }
  } else {
    sync_folders_of(file);
  }
  try {
    syncer_ = std::make_unique<Syncer>(descriptor_, std::move(sync));
  } catch (const std::system_error& error) {
    refuse(fmt::format("no thread can be started that puts it on the disk: {}", error.code().message()));
  }
}

JournalWriter::~JournalWriter() {
  syncer_.reset();
  ::close(descriptor_);
}

void JournalWriter::append_line(std::string_view line) {
  if (const int error = syncer_->error(); error != 0) {
    throw UsageError(fmt::format("{}: does not come to the disk: {}; --resume goes on with what did", file_.string(),
                                 std::strerror(error)));
  }
  const LineStamper before_line = stamper_;
  const std::string bytes = stamper_.stamp(line);
  const off_t before = ::lseek(descriptor_, 0, SEEK_END);
  ssize_t written = -1;
  do {
    written = ::write(descriptor_, bytes.data(), bytes.size());
  } while (written < 0 && errno == EINTR);
  if (written == static_cast<ssize_t>(bytes.size())) {
    wants_run_ = false;
    syncer_->note_written();
    return;
  }
  stamper_ = before_line;
  // A short write is what a full disk gives; the reason comes with the next byte.
  int reason = errno;
  if (written >= 0) {
    reason = ::write(descriptor_, bytes.data() + written, 1) < 0 ? errno : ENOSPC;
    // Cut the part off; where even that fails, the line lacks its newline and readers ignore it.
    if (before >= 0) (void)!::ftruncate(descriptor_, before);
  }
  throw UsageError(fmt::format("{}: cannot be written: {}; what stands in it is whole, and --resume continues it",
                               file_.string(), std::strerror(reason)));
}

void JournalWriter::sync() {
  syncer_->sync();
}

}  // namespace attest
