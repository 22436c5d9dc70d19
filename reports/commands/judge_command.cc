#include <fmt/format.h>
#include <sys/random.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "core/isolation/walls/walls.h"
#include "core/support/errors.h"
#include "core/support/files.h"
#include "properties/faults/cheats.h"
#include "reports/commands/chosen_kernel.h"
#include "reports/commands/commands.h"
#include "reports/commands/run_end.h"
#include "reports/commands/run_kernels.h"
#include "reports/formats/answer.h"
#include "reports/formats/results.h"
#include "reports/judge/captured.h"
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
  std::filesystem::path captured, json;
  std::optional<std::int64_t> timed;  ///< calls of each of the contract's shapes that are timed
  bool no_walls = false, fail_fast = false;
  bool quiet = false;

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

/// Around every kernel that is not Attest's own. Throws UsageError where a machine builds none.
std::shared_ptr<const Walls> walls_for(const JudgeOptions& options, const Contract& contract, const RunFolder& folder) {
  if (options.no_walls || is_own(options.kernel) || !options.captured.empty()) return nullptr;
  auto walls = std::make_shared<Walls>();
  for (const std::filesystem::path& file : contract.files) walls->readable.push_back(std::filesystem::absolute(file));
  // Planted cheats that are programs lie there.
  if (options.kernel.starts_with("cheat:") || options.kernel.starts_with("honest:"))
    walls->readable.emplace_back(cheat_folder());
  walls->hidden.push_back(std::filesystem::absolute(folder.path()));
  walls->most_processes = contract.processes;
  if (const std::string why = why_no_walls(*walls); !why.empty())
    throw UsageError(fmt::format("{}; --no-walls judges without, and calls nothing a pass", why));
  hide_judge();
  return walls;
}

RunOptions run_options(const JudgeOptions& options, const Contract& contract,
                       const std::shared_ptr<const Walls>& walls) {
  RunOptions run;
  run.process.limits.walls = walls;
  run.kernels = {options.kernel};
  run.quiet = options.quiet;
  run.process.limits.reply = contract.time_limit;
  run.process.limits.first_reply = contract.first_time_limit;
  run.process.limits.memory = contract.memory;
  return run;
}

/// What is judged, and how it is asked.
struct Judged {
  RunKernels open;
  Plan plan;
  Road road;
  std::shared_ptr<std::atomic<std::int64_t>> calls = std::make_shared<std::atomic<std::int64_t>>(0);
};

/// `judged` holds an open kernel, which comes under the contract.
void enclose(Judged& judged, const std::string& named, const std::shared_ptr<const Contract>& contract) {
  std::vector<std::unique_ptr<Kernel>>& kernels = judged.open.kernels;
  if (kernels.size() != 1)
    throw UsageError(fmt::format("--kernel {} names {} kernels; attest judge judges one", named, kernels.size()));
  auto counted = std::make_unique<CountedKernel>(std::move(kernels.front()), judged.calls);
  kernels.front() = std::make_unique<JudgedKernel>(std::move(counted), contract);
  judged.open.records.front().manifest = record_of(*kernels.front()).manifest;
}

Judged judged_kernel(const JudgeOptions& options, const std::shared_ptr<const Contract>& contract,
                     const RunFolder& folder, std::uint64_t seed, const std::shared_ptr<const Walls>& walls) {
  Judged judged;
  judged.open = open_run_kernels(run_options(options, *contract, walls), folder, {}, [&](RunKernels& opened) {
    Judged opening{.open = std::move(opened), .plan = {}, .road = {}, .calls = judged.calls};
    enclose(opening, options.kernel, contract);
    opened = std::move(opening.open);
  });
  for (const Property* property : catalogue())
    if (contract->law.has(property->operation)) judged.plan.properties.push_back(property);
  judged.plan.cases = contract->cases;
  judged.plan.order = seed;
  judged.road = road_judging({.rows = Judging::all_rows});
  judged.road.generate = [contract, cases = JudgedCases(*contract, seed)](const Property& property, DType dtype,
                                                                          std::uint64_t, std::int64_t k) {
    return cases(property, dtype, k);
  };
  return judged;
}

Judged judged_answers(const JudgeOptions& options, const Contract& contract) {
  CapturedAnswers captured = captured_answers(options.captured, contract);
  Judged judged;
  for (const Property* property : catalogue())
    if (property->name == "attention.oracle" || property->name == "multihead.oracle")
      judged.plan.properties.push_back(property);
  judged.plan.captured = std::move(captured.cases);
  judged.open.records.push_back(record_of(*captured.kernel));
  judged.open.kernels.push_back(std::move(captured.kernel));
  judged.calls->store(std::ssize(judged.plan.captured));
  judged.road = road_judging({.rows = Judging::by_size});
  return judged;
}

/// Counts what was judged, and times it where `timed` is not null.
Road counting(Road road, JudgedShare& share, TimedCalls* timed) {
  road.check = [check = std::move(road.check), &share, timed](const Property& property, Kernel& kernel, const Case& c) {
    Verdict verdict = check(property, kernel, c);
    share.add(c, verdict);
    if (timed == nullptr || verdict.outcome != Outcome::held || property.name != "attention.oracle") return verdict;
    return timed->add(kernel, c).value_or(verdict);
  };
  return road;
}

/// Cases of each property that are asked at the end of the time for which a kernel is watched.
constexpr std::int64_t cases_after_a_silence = 32;

/// Nothing where that time is over already. The plan has more cases then, and its first thread asks the same processes.
Ending ask_after_a_silence(Plan& plan, const Road& road, const RunFolder& folder, JournalWriter& writer,
                           Progress& progress, std::chrono::steady_clock::time_point until) {
  if (std::chrono::steady_clock::now() >= until) return Ending::complete;
  while (std::chrono::steady_clock::now() < until) {
    if (interrupt_requested()) return Ending::interrupted;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  writer.sync();
  plan.cases += cases_after_a_silence;
  Engine engine(plan, road, folder, writer, read_journal(folder.path()), progress);
  return engine.run();
}

void print(const Judgement& judgement, const Contract& contract, const JudgedShare& share) {
  fmt::print("{}{}", share_text(contract, share), text_of(judgement, terminal_columns()));
}

int judge_by_contract(JudgeOptions& options, Arguments line) {
  if (!options.print.empty()) {
    fmt::print("{}", starter_contract(options.print));
    return 0;
  }
  const auto start = std::chrono::steady_clock::now();
  const auto contract = std::make_shared<const Contract>(read_contract(options.contract));
  const std::uint64_t seed = options.seed ? *options.seed : secret_seed();
  const RunFolder folder(options.out, options.overwrite ? RunFolder::Mode::overwrite : RunFolder::Mode::fresh);
  handle_signals();
  const std::shared_ptr<const Walls> walls = walls_for(options, *contract, folder);
  Judged judged = options.captured.empty() ? judged_kernel(options, contract, folder, seed, walls)
                                           : judged_answers(options, *contract);
  JudgedShare share(*contract);
  Plan& plan = judged.plan;
  plan.kernels = std::move(judged.open.kernels);
  plan.seed = seed;
  plan.jobs = options.jobs;
  plan.fail_fast = options.fail_fast;
  if (options.time) plan.deadline = start + *options.time;

  JournalWriter writer(folder.journal());
  RunRecord run{.seed = seed, .case_files = {}};
  for (const CapturedCase& one : plan.captured) run.case_files.push_back(one.file);
  MetaRecord begin = begin_record(line);
  begin.facts["started_in"] = started_in(folder.path());
  begin.facts["contract"] = contract->name;
  begin_journal(writer, folder, {}, run, begin, judged.open);
  std::optional<TimedCalls> timed;
  if (options.timed) timed.emplace(*contract, *options.timed, seed);
  const Road road = counting(std::move(judged.road), share, timed ? &*timed : nullptr);
  Progress progress(folder, options.time, options.quiet ? Progress::Says::findings : Progress::Says::progress);
  Engine engine(plan, road, folder, writer, {}, progress);
  progress.plan(engine.cases_planned(), {});
  Ending ending = engine.run();
  if (options.captured.empty() && ending == Ending::complete)
    ending = ask_after_a_silence(plan, road, folder, writer, progress, start + contract->watch);
  progress.finish();
  for (const KernelRecord& record : changed_meanwhile(judged.open.records, "")) writer.append(record);
  const Journal journal = finish_journal(plan, road, folder, writer, ending, /*compared=*/false, start);
  save_worst_cases(engine, journal);
  const Summary summary = summarise(journal, folder.path());
  const Conclusion conclusion = conclude(summary);
  write_results(folder.path(), journal, summary, conclusion);

  JudgedHow how{.run = folder.path().string(),
                .calls = judged.calls->load(),
                .processes = plan.jobs,
                .seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(),
                .secret = !options.seed,
                .enclosed = !options.captured.empty() || is_own(options.kernel) || walls != nullptr,
                .walls = walls ? walls_text(*walls) : "",
                .times = timed ? timed->times() : std::map<ContractCell, CellTime>()};
  const Judgement judgement = judge(*contract, share, summary, conclusion, std::move(how));
  const std::string json = to_json(judgement);
  folder.files().write("judgement.json", json);
  if (!options.json.empty()) write_file_atomically(options.json, json);
  print(judgement, *contract, share);
  if (!options.quiet) {
    fmt::print(
        "{}report: {}\n",
        causes_text(summary, journal, conclusion, {.folder = folder.path().string(), .width = terminal_columns()}),
        folder.report().string());
  }
  return exit_status_of(judgement.verdict);
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
