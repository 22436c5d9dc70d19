// The command line: one table of options (option_table.h) that yields the parser, the help (help.h), the manual page
// and the completion. How a value is read: option_values.h; what must be together: option_rules.h.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/journal/journal.h"
#include "core/kernel/kernel_under_test.h"
#include "core/value/dtype.h"
#include "properties/proofs/formal_case.h"
#include "reports/starter/starter.h"

namespace attest {

enum class Command {
  none,
  init,
  check,
  list,
  replay,
  merge,
  report,
  compare,
  bench,
  audit,
  probe,
  prove,
  fuzz,
  tolerance
};

/// Everything the command line can say. Which fields a command reads is in the table of option_table.cc.
struct Options {
  Command command = Command::none;
  bool help = false;
  bool version = false;
  bool man_page = false;
  bool bash_completion = false;

  std::vector<std::string> kernels;     ///< as typed; empty: the default ones
  std::vector<std::string> properties;  ///< globs; empty: all
  std::vector<DType> dtypes;            ///< empty: all
  std::vector<ProofShape> shapes;       ///< of proofs; empty: all up to up_to
  ProofShape up_to{3, 3, 2, 2, 2};
  std::vector<BackEnd> back_ends;        ///< of proofs; empty: those that need no large shapes
  std::optional<std::int64_t> variants;  ///< of proofs
  std::filesystem::path certificates;    ///< folder for those of proofs; empty: none are kept
  std::string without;                   ///< the hypothesis to take away; empty: none
  std::filesystem::path witnesses;       ///< folder for those against theorems without it; empty: none are kept
  std::optional<std::int64_t> cases;     ///< per property, kernel and dtype; >= 1
  std::optional<double> atol, rtol;      ///< of a tolerance on trial; at least 0, perhaps infinite
  std::optional<std::int64_t> runs;      ///< of a campaign, per property, kernel and dtype; >= 1
  std::vector<std::string> objectives;   ///< of a campaign, as typed; empty: error
  std::uint64_t seed = 1;
  int jobs = 0;               ///< 0: one per core
  bool libfuzzer = false;     ///< of a campaign: its engine
  bool self_test = false;     ///< of a campaign: time to detection on the planted faults
  std::filesystem::path out;  ///< empty: the next free attest-run-NNN
  bool resume = false;
  bool accept_changed_kernel = false;
  bool overwrite = false;
  bool salvage = false;  ///< leave out what is damaged in journals
  Shard shard;
  std::optional<std::chrono::milliseconds> time;
  bool fail_fast = false;
  std::chrono::milliseconds timeout{10'000};  ///< of a process's reply
  std::uint64_t memory = KernelOptions().memory;
  bool in_process = false;
  bool inconclusive_held = false;
  std::vector<std::filesystem::path> case_files;
  std::filesystem::path known;     ///< file of the violations that are expected; empty: none are
  std::filesystem::path baseline;  ///< the run to compare with; empty: none
  std::string against;             ///< the kernel to compare with; empty: none
  bool quiet = false;
  bool alarm = false;  ///< raise the alarm beside the verdict

  Language language = Language::c;           ///< of a new project
  CiService ci_service = CiService::github;  ///< the same

  bool list_kernels = false, list_properties = false, list_dtypes = false;
  bool json = false, markdown = false, csv = false, toml = false;
  std::filesystem::path junit, sarif, summary_file;  ///< to write besides; empty: none

  std::vector<std::filesystem::path>
      inputs;                          ///< positional: DIR of init, CASE of replay, RUN of merge, report and compare
  std::filesystem::path output;        ///< -o
  std::vector<std::string> passed_on;  ///< bench: the arguments for the benchmark programs

  /// For opening kernels: what the command line says of their processes, and the program's interrupt.
  [[nodiscard]] KernelOptions kernel_options() const;
};

/// Parses argv. Throws UsageError: one line with the value, the rule, and the nearest name where one is mistyped.
[[nodiscard]] Options parse_options(int argc, const char* const* argv);

}  // namespace attest
