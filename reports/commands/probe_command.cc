#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <optional>

#include "core/support/errors.h"
#include "core/support/files.h"
#include "properties/diagnosis/probe.h"
#include "properties/road/watched_kernel.h"
#include "reports/commands/commands.h"
#include "reports/commands/options/chosen_kernel.h"
#include "reports/formats/table.h"
#include "reports/judge/contract.h"
#include "reports/run/interrupt.h"
#include "reports/run/preflight.h"
#include "reports/text/text.h"
#include "reports/text/wrap.h"

namespace attest {
namespace {

std::string table_of_answers(const Probed& probed) {
  std::vector<std::vector<std::string>> rows{{"question", "declared", "", "found"}};
  for (const ProbeAnswer& answer : probed.answers) {
    const char* const mark = answer.contradicts ? "CONTRADICTED" : answer.beyond ? "more" : "";
    rows.push_back({answer.question, answer.declared, mark, one_line(answer.found)});
  }
  return columns(rows, {false, false, false, false}, terminal_columns());
}

/// What was asked and what came out, a paragraph each, where that says more than the table.
std::string evidence_of(const Probed& probed) {
  std::string text;
  for (const ProbeAnswer& answer : probed.answers) {
    if (answer.evidence.empty()) continue;
    text += labelled("", fmt::format("{}: {}. {}", answer.question, one_line(answer.found), one_line(answer.evidence)),
                     2, terminal_columns());
  }
  return text.empty() ? text : "\nHow it was found:\n" + text;
}

/// The object for the manifest's "arithmetic".
std::string declaration_text(const Probed& probed) {
  const std::string declaration = declaration_of(probed.arithmetics);
  if (declaration.empty()) return {};
  return fmt::format("\nDeclare this, as \"arithmetic\" in the manifest:\n{}\n", declaration);
}

struct ProbeOptions {
  std::optional<std::string> kernel;
  KernelProcess process;
  std::uint64_t seed = 1;
  std::vector<DType> dtypes;
  std::filesystem::path output;    ///< empty: standard output
  std::filesystem::path contract;  ///< empty: none

  void declare(OptionList& list) {
    list.option("--kernel", kernel, kernel_name(), "the kernel to ask, as attest check takes it");
    process.declare(list);
    list.option("--seed", seed, whole_number<std::uint64_t>(0),
                "the numbers of the questions follow from it (default: 1)");
    list.option("--dtype", dtypes, dtype_list(),
                "whose arithmetic is asked, one or several with commas (default: f32 where the kernel takes it)");
    list.option("-o,--output", output, any_text("FILE", files), "write the manifest there instead of showing it");
    list.option("--contract", contract, file_name(),
                "write a contract there, for attest judge, that asks other kernels for what this one does");
  }
  void refuse() const { refuse_if(!kernel, "attest probe needs --kernel KERNEL, the kernel to ask"); }
};

int probe_kernel(const ProbeOptions& options) {
  handle_signals();
  const std::unique_ptr<Kernel> kernel = open_chosen_kernel(*options.kernel, options.process, "probe asks one");
  (void)look_before_the_run(std::span(&kernel, 1), {}, Amount());
  WatchedKernel watched(*kernel, interrupt_requested);
  const Probed probed = probe(watched, options.seed, options.dtypes);
  if (const std::string finding = kernel->load_finding(); !finding.empty())
    fmt::print(stderr, "{}", wrapped("violated: " + one_line(finding), terminal_columns()));
  for (const std::string& note : kernel->notes())
    fmt::print(stderr, "{}", wrapped("note: " + one_line(note), terminal_columns()));
  fmt::print("{}{}", table_of_answers(probed), evidence_of(probed));
  const std::string manifest = to_json(probed.manifest) + "\n";
  if (options.output.empty()) {
    fmt::print("\nA manifest that says what was found:\n{}", manifest);
  } else {
    write_file_atomically(options.output, manifest);
    fmt::print("\nmanifest: {}\n", options.output.string());
  }
  fmt::print("{}", declaration_text(probed));
  if (!options.contract.empty()) {
    write_file_atomically(options.contract, contract_of(probed.manifest, declaration_of(probed.arithmetics)));
    fmt::print("\ncontract: {}\n", options.contract.string());
  }
  return probed.contradicted() ? 1 : 0;
}

}  // namespace

Command probe_command() {
  return {
      with_options<ProbeOptions>(probe_kernel), "probe", "attest probe --kernel KERNEL [OPTIONS]",
      "Asks an attention kernel what its manifest leaves open: mask polarity and convention, causal alignment, "
      "rows without a key, the conventions of windows and chunks, head mapping, strides, lengths, log-sum-exp, the "
      "arithmetic (formats and order of sums, rounding of weights, blocks, exp), which claims hold. Prints what was "
      "found and how, and a manifest that says so. Exit 1 when the kernel does other than its manifest offers.",
      "attest probe --kernel ./libmine.so -o manifest.json"};
}

}  // namespace attest
