#include <fmt/format.h>

#include <cstdio>

#include "core/support/files.h"
#include "properties/diagnosis/probe.h"
#include "reports/commands/chosen_kernel.h"
#include "reports/commands/commands.h"
#include "reports/formats/table.h"
#include "reports/run/interrupt.h"
#include "reports/run/preflight.h"
#include "reports/run/text.h"
#include "reports/run/watched_kernel.h"

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
  const std::unique_ptr<Kernel> kernel = open_chosen_kernel(options, "probe asks one");
  (void)look_before_the_run(std::span(&kernel, 1), {}, Amount());
  WatchedKernel watched(*kernel, interrupt_requested);
  const Probed probed = probe(watched, options.seed);
  if (const std::string finding = kernel->load_finding(); !finding.empty())
    fmt::print(stderr, "violated: {}\n", one_line(finding));
  for (const std::string& note : kernel->notes()) fmt::print(stderr, "note: {}\n", one_line(note));
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
