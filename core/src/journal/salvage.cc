#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <type_traits>
#include <variant>

#include "attest/errors.h"
#include "attest/files.h"
#include "attest/journal.h"
#include "journal/lines.h"
#include "journal/reader.h"

namespace attest {
namespace {

/// The lock that a run holds which is writing the file.
class Lock {
 public:
  explicit Lock(const std::filesystem::path& file) : descriptor_(::open(file.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (descriptor_ < 0 || ::flock(descriptor_, LOCK_EX | LOCK_NB) == 0) return;
    ::close(descriptor_);
    throw UsageError(fmt::format("{}: another run is writing it; salvage it when that has ended", file.string()));
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  ~Lock() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }

 private:
  const int descriptor_;
};

}  // namespace

std::vector<std::string> salvage_journal(const std::filesystem::path& file, const JournalRules& rules) {
  JournalRules salvaging = rules;
  salvaging.salvage = true;
  const Lock lock(file);
  const std::string text = read_file(file);
  const Lines lines = [&](const auto& use) { return for_each_line(text, use, /*past_zeros=*/true); };
  std::string sound;
  LineStamper stamper;
  const ReadEnd end = read_records(lines, file.string(), Reading::whole, salvaging, [&](Record&& record) {
    std::visit(
        [&](const auto& one) {
          using One = std::remove_cvref_t<decltype(one)>;
          // Heads alone are not read. Of the lines of one run the first says all.
          if constexpr (std::is_same_v<One, RunRecord>) {
            if (sound.empty()) sound += stamper.stamp(to_line(one));
          } else if constexpr (!std::is_same_v<One, BatchHead>) {
            sound += stamper.stamp(to_line(one));
          }
        },
        record);
  });
  if (!end.torn) return {};
  write_file_atomically(file, sound);
  return end.notes;
}

}  // namespace attest
