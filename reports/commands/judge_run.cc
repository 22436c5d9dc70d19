#include "reports/commands/judge_run.h"

#include <fmt/format.h>
#include <sys/random.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <map>
#include <system_error>
#include <thread>
#include <utility>

#include "core/isolation/walls/walls.h"
#include "core/support/errors.h"
#include "properties/faults/cheats.h"
#include "reports/commands/run_end.h"
#include "reports/commands/run_kernels.h"
#include "reports/formats/answer.h"
#include "reports/formats/results.h"
#include "reports/judge/captured.h"
#include "reports/judge/judged_cases.h"
#include "reports/judge/judged_kernel.h"
#include "reports/run/interrupt.h"
#include "reports/run/own_families.h"
#include "reports/run/progress.h"
#include "reports/run_folder/changed_kernel.h"
#include "reports/run_folder/started_in.h"
#include "reports/run_folder/version.h"
#include "reports/text/wrap.h"

namespace attest {
namespace {

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

/// Behind the walls of a judge who is root a kernel is a user of its own, who reads what everybody may. Throws
/// UsageError for what is not so.
void refuse_unreadable(const std::filesystem::path& path) {
  namespace fs = std::filesystem;
  if (::geteuid() != 0) return;
  std::error_code error;
  const fs::path whole = fs::canonical(path, error);
  if (error) return;  // told of by whoever opens it
  for (fs::path part = whole; !part.empty(); part = part.parent_path()) {
    const fs::file_status status = fs::status(part, error);
    const bool is_folder = fs::is_directory(status);
    const fs::perms asked = (is_folder ? fs::perms::others_exec : fs::perms::none) |
                            (part == whole ? fs::perms::others_read : fs::perms::none);
    if ((status.permissions() & asked) != asked) {
      throw UsageError(
          fmt::format("{} may be read by its owner alone, and behind the walls of root a kernel is another "
                      "user: chmod o+r{} it, or judge as an ordinary user",
                      part.string(), is_folder ? "x" : ""));
    }
    if (part == part.root_path()) break;
  }
}

/// Around every kernel that is not Attest's own. Throws UsageError where a machine builds none.
std::shared_ptr<const Walls> walls_for(const JudgeRequest& request, const Contract& contract, const RunFolder& folder) {
  if (request.no_walls || is_own(request.kernel) || !request.captured.empty()) return nullptr;
  auto walls = std::make_shared<Walls>();
  for (const std::filesystem::path& file : contract.files) {
    walls->readable.push_back(std::filesystem::absolute(file));
    refuse_unreadable(walls->readable.back());
  }
  if (request.kernel.find('/') != std::string::npos && !request.kernel.starts_with("exec:"))
    refuse_unreadable(request.kernel);
  // Planted cheats that are programs lie there.
  if (request.kernel.starts_with("cheat:") || request.kernel.starts_with("honest:"))
    walls->readable.emplace_back(cheat_folder());
  walls->hidden.push_back(std::filesystem::absolute(folder.path()));
  walls->most_processes = contract.processes;
  if (const std::string why = why_no_walls(*walls); !why.empty())
    throw UsageError(fmt::format("{}; --no-walls judges without, and calls nothing a pass", why));
  hide_judge();
  return walls;
}

RunOptions run_options(const JudgeRequest& request, const Contract& contract,
                       const std::shared_ptr<const Walls>& walls) {
  RunOptions run;
  run.process.limits.walls = walls;
  run.kernels = {request.kernel};
  run.quiet = request.quiet;
  run.process.limits.reply = contract.time_limit;
  run.process.limits.first_reply = contract.first_time_limit;
  run.process.limits.memory = contract.memory;
  return run;
}

/// What is asked, and how.
struct Asking {
  RunKernels open;
  Plan plan;
  Road road;
  std::shared_ptr<std::atomic<std::int64_t>> calls = std::make_shared<std::atomic<std::int64_t>>(0);
};

/// `asking` holds an open kernel, which comes under the contract.
void enclose(Asking& asking, const std::string& named, const std::shared_ptr<const Contract>& contract) {
  std::vector<std::unique_ptr<Kernel>>& kernels = asking.open.kernels;
  if (kernels.size() != 1)
    throw UsageError(fmt::format("--kernel {} names {} kernels; attest judge judges one", named, kernels.size()));
  auto counted = std::make_unique<CountedKernel>(std::move(kernels.front()), asking.calls);
  kernels.front() = std::make_unique<JudgedKernel>(std::move(counted), contract);
  asking.open.records.front().manifest = record_of(*kernels.front()).manifest;
}

Asking asking_kernel(const JudgeRequest& request, const std::shared_ptr<const Contract>& contract,
                     const RunFolder& folder, std::uint64_t seed, const std::shared_ptr<const Walls>& walls) {
  Asking asking;
  asking.open = open_run_kernels(run_options(request, *contract, walls), folder, {}, [&](RunKernels& opened) {
    Asking opening{.open = std::move(opened), .plan = {}, .road = {}, .calls = asking.calls};
    enclose(opening, request.kernel, contract);
    opened = std::move(opening.open);
  });
  for (const Property* property : catalogue())
    if (property->misses_of(contract->law).empty()) asking.plan.properties.push_back(property);
  asking.plan.cases = contract->cases;
  asking.plan.order = seed;
  asking.road = road_judging({.rows = Judging::all_rows});
  asking.road.generate = [contract, cases = JudgedCases(*contract, seed)](const Property& property, DType dtype,
                                                                          std::uint64_t, std::int64_t k) {
    return cases(property, dtype, k);
  };
  return asking;
}

Asking asking_nobody(const JudgeRequest& request, const Contract& contract) {
  CapturedAnswers captured = captured_answers(request.captured, contract);
  Asking asking;
  for (const Property* property : catalogue())
    if (property->name == "attention.oracle" || property->name == "multihead.oracle")
      asking.plan.properties.push_back(property);
  asking.plan.captured = std::move(captured.cases);
  asking.open.records.push_back(record_of(*captured.kernel));
  asking.open.kernels.push_back(std::move(captured.kernel));
  asking.calls->store(std::ssize(asking.plan.captured));
  asking.road = road_judging({.rows = Judging::by_size});
  return asking;
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

/// How often all cells are asked once more because the definition said nothing of a case of one.
constexpr int rounds_of_cells = 3;

/// What a judgement asks, at first and again: a plan that grows.
struct Inquiry {
  Plan& plan;
  const Road& road;
  const RunFolder& folder;
  JournalWriter& writer;
  Progress& progress;

  /// `more` cases of each property; the plan's first thread asks the same processes.
  Ending ask(std::int64_t more) const {
    writer.sync();
    plan.cases += more;
    Engine engine(plan, road, folder, writer, read_journal(folder.path()), progress);
    return engine.run();
  }
};

/// A case that was drawn for a cell may be one of which the definition says nothing, and a right kernel would be
/// undecided by the luck of a seed. What a kernel refuses, a second case would not mend.
Ending ask_cells_again(const Inquiry& inquiry, const Contract& contract, const JudgedShare& share) {
  Ending ending = Ending::complete;
  for (int round = 0; round < rounds_of_cells && ending == Ending::complete && share.lacks_an_answer(); ++round)
    ending = inquiry.ask(most_cells_of_a_dtype(contract));
  return ending;
}

/// Nothing where that time is over already.
Ending ask_after_a_silence(const Inquiry& inquiry, std::chrono::steady_clock::time_point until) {
  if (std::chrono::steady_clock::now() >= until) return Ending::complete;
  while (std::chrono::steady_clock::now() < until) {
    if (interrupt_requested()) return Ending::interrupted;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return inquiry.ask(cases_after_a_silence);
}

}  // namespace

Judged judge_run(const JudgeRequest& request, const std::shared_ptr<const Contract>& contract, const RunFolder& folder,
                 std::span<const char* const> line) {
  const auto start = std::chrono::steady_clock::now();
  const std::uint64_t seed = request.seed ? *request.seed : secret_seed();
  std::shared_ptr<const Walls> walls;
  Asking asking;
  try {
    walls = walls_for(request, *contract, folder);
    asking = request.captured.empty() ? asking_kernel(request, contract, folder, seed, walls)
                                      : asking_nobody(request, *contract);
  } catch (...) {
    folder.discard_if_empty();
    throw;
  }
  JudgedShare share(*contract);
  Plan& plan = asking.plan;
  plan.kernels = std::move(asking.open.kernels);
  plan.seed = seed;
  plan.jobs = request.jobs;
  plan.fail_fast = request.fail_fast;
  if (request.time) plan.deadline = start + *request.time;

  JournalWriter writer(folder.journal());
  RunRecord run{.seed = seed, .case_files = {}};
  for (const CapturedCase& one : plan.captured) run.case_files.push_back(one.file);
  MetaRecord begin = begin_record(line);
  begin.facts["started_in"] = started_in(folder.path());
  begin.facts["contract"] = contract->name;
  begin_journal(writer, folder, {}, run, begin, asking.open);
  std::optional<TimedCalls> timed;
  if (request.timed) timed.emplace(*contract, *request.timed, seed);
  const Road road = counting(std::move(asking.road), share, timed ? &*timed : nullptr);
  Progress progress(folder, request.time, request.quiet ? Progress::Says::nothing : Progress::Says::progress);
  Engine engine(plan, road, folder, writer, {}, progress);
  progress.plan(engine.cases_planned(), {});
  Ending ending = engine.run();
  if (request.captured.empty()) {
    const Inquiry inquiry{plan, road, folder, writer, progress};
    if (ending == Ending::complete) ending = ask_cells_again(inquiry, *contract, share);
    if (ending == Ending::complete) ending = ask_after_a_silence(inquiry, start + contract->watch);
  }
  progress.finish();
  for (const KernelRecord& record : changed_meanwhile(asking.open.records, "")) writer.append(record);
  const Journal journal = finish_journal(plan, road, folder, writer, ending, /*compared=*/false, start);
  save_worst_cases(engine, journal);
  const Summary summary = summarise(journal, folder.path());
  const Conclusion conclusion = conclude(summary);
  write_results(folder.path(), journal, summary, conclusion);

  JudgedHow how{.run = folder.path().string(),
                .calls = asking.calls->load(),
                .processes = plan.jobs,
                .seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(),
                .secret = !request.seed,
                .enclosed = !request.captured.empty() || is_own(request.kernel) || walls != nullptr,
                .walls = walls ? walls_text(*walls) : "",
                .times = timed ? timed->times() : std::map<ContractCell, CellTime>(),
                .outside = request.captured.empty() ? JudgedShare::Skipped() : share.skipped()};
  Judged judged{.judgement = judge(*contract, share, summary, conclusion, std::move(how)),
                .strip = share_text(*contract, share, terminal_columns()),
                .causes = causes_text(summary, journal, conclusion,
                                      {.folder = folder.path().string(), .width = terminal_columns()})};
  judged.json = to_json(judged.judgement);
  // The summary, which has the causes themselves, ends here.
  for (CauseWords& cause : judged.judgement.causes) cause.cause = nullptr;
  folder.files().write("judgement.json", judged.json);
  return judged;
}

}  // namespace attest
