// Journals read record by record.
#pragma once

#include <functional>
#include <string_view>
#include <variant>

#include "attest/journal.h"
#include "journal/lines.h"

namespace attest {

/// A batch without its tally.
struct BatchHead {
  Subject subject;
  std::int64_t first_k = 0, last_k = 0;
  Shard shard;
};

using Record = std::variant<RunRecord, MetaRecord, KernelRecord, BatchRecord, BatchHead, FindingRecord, ProofRecord>;

/// What of a journal is asked for.
enum class Reading : std::uint8_t {
  whole,    ///< every record
  heads,    ///< every record, but of batches the heads alone, whose tallies are not looked at
  batches,  ///< batches alone; the other lines need to be JSON
};

/// Hands over the records of the lines that `lines` hands over, in their order. Gives what `lines` gives: whether a
/// last line is torn. Throws UsageError "SOURCE, line 12: …" for a line that is wrong, and where no line is a run.
bool read_records(const std::function<bool(const std::function<void(std::string_view)>&)>& lines,
                  std::string_view source, Reading reading, const std::function<void(Record&&)>& use);

/// run.jsonl of a run's folder, else the file itself.
[[nodiscard]] std::filesystem::path journal_file(const std::filesystem::path& file_or_folder);
/// Its lines: of a file that the user named, or of a folder's, which somebody else may have made.
[[nodiscard]] LineFile lines_of_journal(const std::filesystem::path& file_or_folder);

}  // namespace attest
