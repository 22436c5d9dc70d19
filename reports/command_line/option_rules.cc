#include "reports/command_line/option_rules.h"

#include <fmt/format.h>

#include "core/support/errors.h"
#include "reports/command_line/option_table.h"

namespace attest {

void refuse_contradictions(const Options& options) {
  if (options.resume && options.overwrite) throw UsageError("--resume and --overwrite exclude each other; give one");
  const bool begins = options.command == Command::check || options.command == Command::fuzz;
  if (options.salvage && begins && !options.resume)
    throw UsageError("--salvage is for a run that goes on; give --resume with it");
  if (options.resume && options.out.empty())
    throw UsageError("--resume needs --out, the folder of the run to go on with");
  if (options.accept_changed_kernel && !options.resume && begins)
    throw UsageError("--accept-changed-kernel is about a run that goes on; give it with --resume");
  if (!options.case_files.empty() && (options.cases || options.time)) {
    throw UsageError(
        fmt::format("--case judges the files given; {} is for generated cases", options.cases ? "--cases" : "--time"));
  }
  if (!options.known.empty() && options.fail_fast) {
    throw UsageError(
        "--known and --fail-fast exclude each other: the first violation may be one that is expected; give one");
  }
  if (!options.baseline.empty() && options.fail_fast) {
    throw UsageError(
        "--baseline and --fail-fast exclude each other: a run that stops early covers less than any baseline; give "
        "one");
  }
  if (!options.baseline.empty() && options.shard.count > 1) {
    throw UsageError(
        "--baseline and --shard exclude each other: a part covers less than the whole; attest merge the parts, then "
        "attest compare");
  }
  if (!options.baseline.empty() && (options.json || options.csv))
    throw UsageError("--baseline is for the page; attest compare BASELINE RUN --json writes the comparison");
  if (options.alarm && !options.against.empty()) {
    throw UsageError(
        "--alarm and --against exclude each other: the alarm is about the distance from the exact result; give one");
  }
  if (options.without.empty() && !options.witnesses.empty())
    throw UsageError("--witness keeps the witnesses of --without; give a hypothesis with it");
  if (!options.without.empty() && (!options.shapes.empty() || !options.certificates.empty())) {
    throw UsageError(fmt::format("--without draws small cases of its own; {} is for proofs",
                                 options.shapes.empty() ? "--certificate" : "--shape"));
  }
  if (options.self_test && (!options.junit.empty() || !options.sarif.empty())) {
    throw UsageError(fmt::format("--self-test measures the search and judges no kernel; {} is for campaigns",
                                 options.junit.empty() ? "--sarif" : "--junit"));
  }
  const bool lists_more = options.list_kernels || options.list_dtypes || !options.list_properties;
  if (options.markdown && lists_more)
    throw UsageError("--markdown is for properties; use attest list --properties --markdown");
  if (options.csv && options.json) throw UsageError("--csv and --json exclude each other; give one");
  if (options.toml && (options.csv || options.json)) {
    throw UsageError(fmt::format("--toml and {} exclude each other; give one", options.csv ? "--csv" : "--json"));
  }
  if (options.markdown && options.json) throw UsageError("--markdown and --json exclude each other; give one");
}

void refuse_missing(const Options& options) {
  if (options.command == Command::init && (options.inputs.size() != 1 || options.inputs.front().empty())) {
    throw UsageError(fmt::format("attest init takes one DIR, the folder to write into{}",
                                 options.inputs.empty()       ? ""
                                 : options.inputs.size() == 1 ? ", not an empty name"
                                                              : fmt::format(", not {}", options.inputs.size())));
  }
  if (options.command == Command::replay && options.inputs.size() != 1) {
    throw UsageError(fmt::format("attest replay takes one CASE file, not {}", options.inputs.size()));
  }
  if (options.command == Command::fuzz && options.kernels.empty() && !options.self_test)
    throw UsageError("attest fuzz needs --kernel KERNEL, the kernel to search");
  if (options.command == Command::probe && options.kernels.empty())
    throw UsageError("attest probe needs --kernel KERNEL, the kernel to ask");
  if (options.command == Command::tolerance) {
    if (!options.atol || !options.rtol)
      throw UsageError(fmt::format("attest tolerance needs {} too; 0 is one", options.atol ? "--rtol" : "--atol"));
    if (options.kernels.empty())
      throw UsageError("attest tolerance needs --kernel KERNEL, whose right answers are tried");
  }
  if (options.command == Command::compare && options.inputs.size() != 2)
    throw UsageError(
        fmt::format("attest compare takes two RUNs, the earlier one first, not {}", options.inputs.size()));
  if (options.command != Command::merge && options.command != Command::report) return;
  const std::string_view name = row_of(options.command).name;
  if (options.inputs.empty())
    throw UsageError(fmt::format("attest {} needs a RUN: a run folder or a journal file", name));
  if (options.output == "-") throw UsageError("-o is \"-\"; it must name a file");
  // Where a report goes follows from its RUN.
  if (options.output.empty() && options.command == Command::merge)
    throw UsageError("attest merge needs -o FILE, the file to write");
}

}  // namespace attest
