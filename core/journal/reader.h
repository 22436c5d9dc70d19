// Journals read record by record.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/journal/journal.h"
#include "core/journal/lines.h"

namespace attest {

/// A batch without its tally.
struct BatchHead {
  Subject subject;
  std::int64_t first_k = 0, last_k = 0;
  Shard shard;
};

using Record = std::variant<RunRecord, MetaRecord, KernelRecord, BatchRecord, BatchHead, FindingRecord, ProofRecord>;

/// What of a journal is asked for.
enum class ReadScope : std::uint8_t {
  whole,    ///< every record
  heads,    ///< every record, but of batches the heads alone, whose tallies are not looked at
  batches,  ///< batches alone; the other lines need to be JSON
};

/// Hands every whole line to the function it is given, and says why it ended; zero bytes are passed where damage is to
/// be salvaged.
using Lines = std::function<LinesEnd(const std::function<void(std::string_view)>&)>;

/// What the reader is to be told of a journal that was read.
struct ReadEnd {
  bool torn = false;               ///< as Journal::torn
  std::vector<std::string> notes;  ///< as Journal::notes
};

/// Hands over the records of the lines, in their order. Throws UsageError "SOURCE, line 12: …" for a line that is
/// wrong, and where no line is a run; with rules.salvage the wrong lines are left out and noted.
ReadEnd read_records(const Lines& lines, std::string_view source, ReadScope scope, const JournalRules& rules,
                     const std::function<void(Record&&)>& use);

/// run.jsonl of a run's folder, else the file itself.
[[nodiscard]] std::filesystem::path journal_file(const std::filesystem::path& file_or_folder);
/// Its lines: of a file that the user named, or of a folder's, which somebody else may have made.
[[nodiscard]] LineFile lines_of_journal(const std::filesystem::path& file_or_folder);

}  // namespace attest
