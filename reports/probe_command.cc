#include <fmt/format.h>

#include <cstdio>

#include "attest/errors.h"
#include "attest/files.h"
#include "attest/names.h"
#include "commands.h"
#include "interrupt.h"
#include "probe.h"
#include "table.h"
#include "text.h"
#include "watched_kernel.h"

namespace attest {
namespace {

std::string table_of_answers(const Probed& probed) {
  std::vector<std::vector<std::string>> rows{{"question", "declared", "", "found"}};
  for (const ProbeAnswer& answer : probed.answers) {
    const char* const mark = answer.contradicts ? "CONTRADICTED" : answer.beyond ? "more" : "";
    rows.push_back({answer.question, answer.declared, mark, one_line(answer.found)});
  }
  return columns(rows, {false, false, false, false});
}

}  // namespace

int probe_command(const Options& options) {
  handle_signals();
  std::vector<std::unique_ptr<Kernel>> kernels;
  try {
    kernels = open_kernels(options.kernels.front(), options.kernel_options());
  } catch (const KernelLoadError&) {
    // A kernel that was not given the time to start is none that could not.
    if (interrupt_requested()) throw Abandoned();
    throw;
  }
  if (kernels.size() != 1) {
    throw UsageError(fmt::format("--kernel {} matches {} kernels; probe asks one", in_quotes(options.kernels.front()),
                                 kernels.size()));
  }
  WatchedKernel watched(*kernels.front(), interrupt_requested);
  const Probed probed = probe(watched, options.seed);
  if (const std::string finding = kernels.front()->load_finding(); !finding.empty())
    fmt::print(stderr, "violated: {}\n", one_line(finding));
  for (const std::string& note : kernels.front()->notes()) fmt::print(stderr, "note: {}\n", one_line(note));
  fmt::print("{}", table_of_answers(probed));
  const std::string manifest = to_json(probed.manifest) + "\n";
  if (options.output.empty()) {
    fmt::print("\nA manifest that says what was found:\n{}", manifest);
  } else {
    write_file_atomically(options.output, manifest);
    fmt::print("\nmanifest: {}\n", options.output.string());
  }
  return probed.contradicted() ? 1 : 0;
}

}  // namespace attest
