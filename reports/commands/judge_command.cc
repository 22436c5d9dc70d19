#include <fmt/format.h>
#include <sys/random.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "core/support/errors.h"
#include "core/support/files.h"
#include "reports/commands/chosen_kernel.h"
#include "reports/commands/commands.h"
#include "reports/commands/run_end.h"
#include "reports/commands/run_kernels.h"
#include "reports/formats/answer.h"
#include "reports/formats/results.h"
#include "reports/judge/judged_cases.h"
#include "reports/judge/judged_kernel.h"
#include "reports/judge/judgement.h"
#include "reports/run/interrupt.h"
#include "reports/run/own_families.h"
#include "reports/run/progress.h"
#include "reports/run/waiting.h"
#include "reports/run_folder/changed_kernel.h"
#include "reports/run_folder/started_in.h"
#include "reports/run_folder/version.h"
#include "reports/text/wrap.h"

namespace attest {
namespace {

struct JudgeOptions {
  std::string kernel, contract, print;
  std::filesystem::path out;
  bool overwrite = false;
  std::optional<std::uint64_t> seed;  ///< of a judgement that is repeated
  int jobs = 1;
  std::optional<std::chrono::milliseconds> time;
  std::filesystem::path json;
  bool no_walls = false;
  bool quiet = false;

  void declare(OptionList& list) {
    list.option("--kernel", kernel, kernel_name(), "the kernel to judge, as attest check takes it: one");
    const Value<std::string> contracts =
        any_text("CONTRACT", [] { return Completions{.words = starter_contracts(), .files = true}; });
    list.option("--contract", contract, contracts,
                "what the kernel must do: a file, or the name of a contract to begin with");
    list.option("--print-contract", print, any_text("NAME", [] { return Completions{.words = starter_contracts()}; }),
                "print a contract to begin with, and judge nothing");
    declare_out(list, out);
    declare_overwrite(list, overwrite);
    list.option("--seed", seed, whole_number<std::uint64_t>(0),
                "judge as an earlier judgement did, whose seed this is; what is given is no secret, and the verdict "
                "says so (default: 64 bits that nobody knows, told at the end)");
    declare_jobs(list, jobs);
    list.option("--time", time, duration(),
                "begin nothing after this long: 20s, 2m; what of the contract was not judged by then makes it no pass");
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
    refuse_if(kernel.empty(), "--kernel is missing; attest judge judges one kernel");
  }
};

/// From the system: nothing that the kernel's process could have seen.
std::uint64_t secret_seed() {
  std::uint64_t seed = 0;
  for (;;) {
    const ssize_t got = ::getrandom(&seed, sizeof seed, 0);
    if (got == static_cast<ssize_t>(sizeof seed)) return seed;
    if (got < 0 && errno != EINTR) throw std::system_error(errno, std::generic_category(), "getrandom");
  }
}

/// A kernel whose calls are counted, its clones' with them.
class CountedKernel final : public ForwardingKernel {
 public:
  CountedKernel(std::unique_ptr<Kernel> kernel, std::shared_ptr<std::atomic<std::int64_t>> calls)
      : ForwardingKernel(std::move(kernel)), calls_(std::move(calls)) {}
  using Kernel::run;
  [[nodiscard]] Reply run(const Case& c, std::optional<DType> output, bool want_lse) override {
    calls_->fetch_add(1, std::memory_order_relaxed);
    return inner().run(c, output, want_lse);
  }
  [[nodiscard]] std::unique_ptr<Kernel> clone() const override {
    return std::make_unique<CountedKernel>(inner().clone(), calls_);
  }

 private:
  std::shared_ptr<std::atomic<std::int64_t>> calls_;
};

RunOptions run_options(const JudgeOptions& options, const Contract& contract) {
  RunOptions run;
  run.kernels = {options.kernel};
  run.quiet = options.quiet;
  run.process.limits.reply = contract.time_limit;
  run.process.limits.first_reply = contract.first_time_limit;
  run.process.limits.memory = contract.memory;
  return run;
}

Road judging_road(const Contract& contract, JudgedShare& share, std::uint64_t seed) {
  Road road = road_judging({.rows = Judging::all_rows});
  road.generate = [cases = JudgedCases(contract, seed)](const Property& property, DType dtype, std::uint64_t,
                                                        std::int64_t k) { return cases(property, dtype, k); };
  road.check = [check = road.check, &share](const Property& property, Kernel& kernel, const Case& c) {
    Verdict verdict = check(property, kernel, c);
    share.add(c, verdict);
    return verdict;
  };
  return road;
}

int judge_kernel(JudgeOptions& options, Arguments line) {
  if (!options.print.empty()) {
    fmt::print("{}", starter_contract(options.print));
    return 0;
  }
  const auto start = std::chrono::steady_clock::now();
  const auto contract = std::make_shared<const Contract>(read_contract(options.contract));
  const std::uint64_t seed = options.seed ? *options.seed : secret_seed();
  const RunRecord run{.seed = seed, .case_files = {}};
  const RunFolder folder(options.out, options.overwrite ? RunFolder::Mode::overwrite : RunFolder::Mode::fresh);
  handle_signals();

  const auto calls = std::make_shared<std::atomic<std::int64_t>>(0);
  const RunOptions opening = run_options(options, *contract);
  RunKernels open = open_run_kernels(opening, folder, {}, [&](RunKernels& opened) {
    if (opened.kernels.size() != 1)
      throw UsageError(
          fmt::format("--kernel {} names {} kernels; attest judge judges one", options.kernel, opened.kernels.size()));
    auto counted = std::make_unique<CountedKernel>(std::move(opened.kernels.front()), calls);
    opened.kernels.front() = std::make_unique<JudgedKernel>(std::move(counted), contract);
    opened.records.front().manifest = record_of(*opened.kernels.front()).manifest;
  });

  Plan plan;
  for (const Property* property : catalogue())
    if (contract->law.has(property->operation)) plan.properties.push_back(property);
  plan.kernels = std::move(open.kernels);
  plan.seed = seed;
  plan.order = seed;
  plan.cases = contract->cases;
  plan.jobs = options.jobs;
  if (options.time) plan.deadline = start + *options.time;
  JournalWriter writer(folder.journal());
  MetaRecord begin = begin_record(line);
  begin.facts["started_in"] = started_in(folder.path());
  begin.facts["contract"] = contract->name;
  begin_journal(writer, folder, {}, run, begin, open);

  JudgedShare share(*contract);
  const Road road = judging_road(*contract, share, seed);
  Progress progress(folder, options.time, options.quiet ? Progress::Says::findings : Progress::Says::progress);
  Engine engine(plan, road, folder, writer, {}, progress);
  progress.plan(engine.cases_planned(), {});
  const Ending ending = engine.run();
  progress.finish();
  for (const KernelRecord& record : changed_meanwhile(open.records, "")) writer.append(record);
  const Journal journal = finish_journal(plan, road, folder, writer, ending, /*compared=*/false, start);
  save_worst_cases(engine, journal);
  const Summary summary = summarise(journal, folder.path());
  const Conclusion conclusion = conclude(summary);
  write_results(folder.path(), journal, summary, conclusion);

  JudgedHow how{.run = folder.path().string(),
                .calls = calls->load(),
                .processes = plan.jobs,
                .seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(),
                .secret = !options.seed,
                .enclosed = is_own(options.kernel) || !options.no_walls};
  const Judgement judgement = judge(*contract, share, summary, conclusion, std::move(how));
  const std::string json = to_json(judgement);
  folder.files().write("judgement.json", json);
  if (!options.json.empty()) write_file_atomically(options.json, json);
  const std::size_t width = terminal_columns();
  fmt::print("{}", share_text(*contract, share));
  fmt::print("{}", text_of(judgement, width));
  if (!options.quiet) {
    fmt::print("{}", causes_text(summary, journal, conclusion, {.folder = folder.path().string(), .width = width}));
    fmt::print("report: {}\n", folder.report().string());
  }
  return exit_status_of(judgement.verdict);
}

}  // namespace

Command judge_command() {
  return {with_options<JudgeOptions>(judge_kernel), "judge", "attest judge --contract FILE --kernel KERNEL [OPTIONS]",
          "Judges a kernel that nobody trusts by a contract that belongs to the judge: with cases from a secret seed, "
          "behind walls, and with every refusal a violation. The first line says how much of the contract was judged.",
          "attest judge --contract flash-bf16 --kernel ./libtheirs.so"};
}

}  // namespace attest
