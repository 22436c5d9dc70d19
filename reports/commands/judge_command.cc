#include <fmt/format.h>

#include <cstdio>

#include "core/support/files.h"
#include "reports/commands/commands.h"
#include "reports/commands/judge_run.h"
#include "reports/commands/options/shared_options.h"
#include "reports/run/interrupt.h"
#include "reports/text/wrap.h"

namespace attest {
namespace {

struct JudgeOptions : JudgeRequest {
  std::string contract, print;
  std::filesystem::path out, json;
  bool overwrite = false;

  void declare(OptionList& list) {
    list.option("--kernel", kernel, kernel_name(), "the kernel to judge, as attest check takes it: one");
    const Value<std::string> contracts =
        any_text("CONTRACT", [] { return Completions{.words = starter_contracts(), .files = true}; });
    list.option("--contract", contract, contracts,
                "what the kernel must do: a file, or the name of a contract to begin with");
    list.option("--print-contract", print, any_text("NAME", [] { return Completions{.words = starter_contracts()}; }),
                "print a contract to begin with, and judge nothing");
    list.option("--captured", captured, text_naming("a folder", "DIR", files),
                "judge no kernel but these calls of one: case files with its answers, as attest.observe keeps them");
    declare_out(list, out);
    declare_overwrite(list, overwrite);
    list.option("--seed", seed, whole_number<std::uint64_t>(0),
                "judge as an earlier judgement did, whose seed this is; what is given is no secret, and the verdict "
                "says so (default: 64 bits that nobody knows, told at the end)");
    declare_jobs(list, jobs);
    list.option("--time", time, duration(),
                "begin nothing after this long: 20s, 2m; what of the contract was not judged by then makes it no pass");
    list.option("--time-with", timed, whole_number<std::int64_t>(1),
                "time N calls of each of the contract's shapes in their forms, among the judged ones and some of them "
                "judged themselves; copies to the kernel's process and back are in the time");
    list.flag("--fail-fast", fail_fast, "stop at the first violation: it is a fail by then, whatever else there is");
    list.flag("--no-walls", no_walls,
              "let the kernel's process reach what the user can; it is no pass then, whatever it answers");
    list.option("--json", json, file_name(), "write the judgement there, too, as JSON");
    declare_quiet(list, quiet);
  }
  void refuse() const {
    if (!print.empty()) return;
    refuse_if(contract.empty(),
              "--contract is missing; attest judge --print-contract NAME > FILE gives one to begin "
              "with");
    refuse_if(kernel.empty() && captured.empty(), "--kernel is missing; attest judge judges one kernel");
    refuse_if(!kernel.empty() && !captured.empty(),
              "--kernel and --captured exclude each other: captured calls are judged as they were answered");
    refuse_if(timed && !captured.empty(), "--time-with calls a kernel; --captured has none");
    refuse_if(seed && !captured.empty(), "--seed is for cases that are drawn; --captured has its own");
  }
};

int judge_by_contract(JudgeOptions& options, Arguments line) {
  if (!options.print.empty()) {
    fmt::print("{}", starter_contract(options.print));
    return 0;
  }
  const auto contract = std::make_shared<const Contract>(read_contract(options.contract));
  if (!options.quiet)
    for (const std::string& note : contract->notes) fmt::print(stderr, "{}\n", note);
  const RunFolder folder(options.out, options.overwrite ? RunFolder::Mode::overwrite : RunFolder::Mode::fresh);
  handle_signals();
  const Judged judged = judge_run(options, contract, folder, line);
  if (!options.json.empty()) write_file_atomically(options.json, judged.json);
  fmt::print("{}{}", judged.strip, text_of(judged.judgement, terminal_columns()));
  if (!options.quiet) fmt::print("{}report: {}\n", judged.causes, folder.report().string());
  return exit_status_of(judged.judgement.verdict);
}

}  // namespace

Command judge_command() {
  return {with_options<JudgeOptions>(judge_by_contract), "judge",
          "attest judge --contract FILE --kernel KERNEL [OPTIONS]",
          "Judges a kernel that nobody trusts by a contract that belongs to the judge: with cases from a secret seed, "
          "behind walls, and with every refusal a violation. The first line says how much of the contract was judged.",
          "attest judge --contract flash-bf16 --kernel ./libtheirs.so"};
}

}  // namespace attest
