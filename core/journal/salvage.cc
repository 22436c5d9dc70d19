#include <fmt/format.h>
#include <sys/file.h>

#include <type_traits>
#include <variant>

#include "core/journal/journal.h"
#include "core/journal/lines.h"
#include "core/journal/reader.h"
#include "core/support/errors.h"
#include "core/support/folder.h"

namespace attest {

std::vector<std::string> salvage_journal(const std::filesystem::path& file, const JournalRules& rules) {
  JournalRules salvaging = rules;
  salvaging.salvage = true;
  const Folder folder(file.has_parent_path() ? file.parent_path() : ".");
  const std::string name = file.filename().string();
  // The lock of a run that writes the file, while this is open.
  const Descriptor locked = folder.open(name);
  if (::flock(locked.number(), LOCK_EX | LOCK_NB) != 0)
    throw UsageError(fmt::format("{}: another run is writing it; salvage it when that has ended", file.string()));
  const std::string text = folder.read(name);
  const Lines lines = [&](const auto& use) { return for_each_line(text, use, /*past_zeros=*/true); };
  std::string sound;
  LineStamper stamper;
  const ReadEnd end = read_records(lines, file.string(), ReadScope::whole, salvaging, [&](Record&& record) {
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
  folder.write(name, sound);
  return end.notes;
}

}  // namespace attest
