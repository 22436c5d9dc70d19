// Whether a run that goes on is of the same program files as before: two builds of a kernel are two kernels, and a
// verdict is of one.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/journal/journal.h"

namespace attest {

/// Adds to each record the files of its kernel (kernel_files.h), and those of `against`, where that is not empty: its
/// verdicts are of both.
void add_files(std::span<KernelRecord> records, const std::string& against);

/// Holds the records and this program against `earlier`, the journal in the folder `where`. Throws UsageError where a
/// file or attest itself is not what it was, unless that is `accepted`: then the records get the earlier hashes too.
/// Comes back with what is to be noted: that of a kernel the journal does not tell.
[[nodiscard]] std::vector<MetaRecord> refuse_changed_files(const Journal& earlier, std::span<KernelRecord> records,
                                                           bool accepted, const std::string& where);

/// The records whose files have changed since they were made, with the hashes of both; none where none has.
[[nodiscard]] std::vector<KernelRecord> changed_meanwhile(std::span<const KernelRecord> records,
                                                          const std::string& against);

/// What a reader is to know of a kernel's verdicts: "./mine.so changed within this run: …". Empty where nothing did.
[[nodiscard]] std::string changed_text(const KernelRecord& record);
/// The same of attest itself, from the "begin" records of a journal or of several.
[[nodiscard]] std::string changed_program_text(std::span<const MetaRecord> meta);

}  // namespace attest
