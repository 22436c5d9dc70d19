// The kernels of a run: opened, held against those that it began with, and as its journal keeps them.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include "reports/commands/options/ci_files.h"
#include "reports/commands/options/shared_options.h"
#include "reports/results/saved_journal.h"
#include "reports/run/against.h"
#include "reports/run_folder/run_folder.h"

namespace attest {

/// What all runs have options for: checks and campaigns.
struct RunOptions {
  std::vector<std::string> kernels;  ///< as typed; empty: the default ones
  RunPlace place;
  KernelProcess process;
  std::string against;  ///< the kernel to compare with; empty: none
  CiFiles ci_files;
  std::string source;  ///< of the kernel, for its alerts; empty: not told
  bool quiet = false;

  /// Where a run's results go beside its folder, and what they say of the kernel's place.
  void declare_ci_files(OptionList& list);
};

struct RunKernels {
  std::vector<std::unique_ptr<Kernel>> kernels;
  std::vector<KernelRecord> records;   ///< of these, and of those that did not start
  std::set<Asked> asked;               ///< what each --kernel names
  std::shared_ptr<OtherKernel> other;  ///< of --against; null without it
  std::vector<MetaRecord> notes;       ///< on limits that were found, and files that changed
};

/// A kernel as journals have it, but for its files.
[[nodiscard]] KernelRecord record_of(const Kernel& kernel);

/// Those of --kernel, each once; without one the generic core beside the kernels that are fast, and PyTorch's where it
/// can be imported. `require` throws where they are none that the run can be of. Where anything throws, a folder that
/// was made for the run goes again; Abandoned after an interrupt: a kernel that was not given the time to start is none
/// that could not.
[[nodiscard]] RunKernels open_run_kernels(const RunOptions& options, const RunFolder& folder, const Journal& earlier,
                                          const std::function<void(RunKernels&)>& require);

/// Writes the first records of a run, or of one that goes on.
void begin_journal(JournalWriter& writer, const RunFolder& folder, const Journal& earlier, const RunRecord& run,
                   const MetaRecord& begin, const RunKernels& open);

/// What came to be known of the kernels beside their cases. It depends on times and jobs, so it is no record of its
/// own.
[[nodiscard]] std::vector<MetaRecord> notes_on(std::span<const std::unique_ptr<Kernel>> kernels);

}  // namespace attest
