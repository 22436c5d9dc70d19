#include "reports/run/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <deque>
#include <limits>
#include <new>
#include <thread>

#include "core/kernels/core_functions.h"
#include "properties/language/compared.h"
#include "properties/road/case_budget.h"
#include "properties/road/repeat.h"
#include "properties/road/shrink_budget.h"
#include "reports/run/repetition.h"
#include "reports/run/watched_kernel.h"

namespace attest {

Road properties_road(double alarm_probability) {
  return {.generate = generate,
          .project = project,
          .check = [alarm_probability](const Property& property, Kernel& kernel,
                                       const Case& c) { return check_case(property, kernel, c, alarm_probability); },
          .shrink = shrink};
}

namespace {

bool has_operation(const Manifest& manifest, Operation operation) {
  return operation == Operation::attention ? manifest.attention : manifest.multihead;
}

bool lists(const Manifest& manifest, DType dtype) {
  return std::ranges::find(manifest.dtypes, dtype) != manifest.dtypes.end();
}

bool is_for(const CapturedCase& captured, const Property& property, DType dtype) {
  if (captured.value.dtype() != dtype || captured.value.operation != property.operation) return false;
  return captured.property.empty() || captured.property == property.name;
}

/// Checks of a violated case once more before it is reported. A hang costs a whole time limit each, a death the start
/// of a process.
std::int64_t repetitions(Violation violation) {
  switch (violation) {
    case Violation::timed_out:
      return 1;
    case Violation::died:
    case Violation::malformed:
      return 2;
    default:
      return 8;
  }
}

/// Checks before a finding that are tried for what brings it back, starts of a kernel that this may cost a job, and how
/// long they may take in all: a process may take seconds to start.
constexpr std::size_t history_kept = 1024;
constexpr int fresh_starts = 2000;
/// Of a kernel that shows as many findings of a kind without having been asked anything before, the others are taken to
/// be like them: of one that is always wrong each would cost the start of a process.
constexpr int enough_afresh = 8;
constexpr std::chrono::seconds fresh_time{60};

/// What costs a kernel its process.
bool is_death(const Verdict& verdict) {
  return verdict.outcome == Outcome::violated &&
         (verdict.violation == Violation::died || verdict.violation == Violation::timed_out ||
          verdict.violation == Violation::malformed);
}

std::string_view kinds_of(const Case& c) {
  return c.provenance.kinds ? *c.provenance.kinds : std::string_view();
}

Subject subject_of(const Cell& cell, const Kernel& kernel) {
  return {std::string(cell.property->name), kernel.id(), std::string(name_of(cell.dtype))};
}

}  // namespace

void add_load_finding(Verdict& verdict, const std::string& finding) {
  const std::string besides = verdict.outcome == Outcome::violated ? "; besides, in this case: " + verdict.reason : "";
  verdict.outcome = Outcome::violated;
  verdict.violation = Violation::failed;
  verdict.reason = finding + besides;
}

std::vector<Cell> cells_of(const Plan& plan) {
  std::vector<DType> dtypes = plan.dtypes;
  if (dtypes.empty()) {
    dtypes = {DType::f64, DType::f32, DType::f16, DType::bf16, DType::f8_e4m3, DType::f8_e5m2};
  }
  std::vector<Cell> cells;
  for (const Property* property : plan.properties) {
    for (const DType dtype : dtypes) {
      Cell cell{.property = property, .dtype = dtype, .kernels = {}};
      for (std::size_t i = 0; i < plan.kernels.size(); ++i) {
        // A captured case in a dtype that the kernel lacks is skipped with that reason; generated ones are not made.
        if (!plan.captured.empty() || lists(plan.kernels[i]->manifest(), dtype)) cell.kernels.push_back(i);
      }
      const bool any_captured = std::ranges::any_of(
          plan.captured, [&](const CapturedCase& captured) { return is_for(captured, *property, dtype); });
      if (!cell.kernels.empty() && (plan.captured.empty() || any_captured)) cells.push_back(std::move(cell));
    }
  }
  return cells;
}

/// One thread: its own kernels, and the loop over units.
class Engine::Job {
 public:
  Job(Engine& engine, bool owns_originals) : engine_(engine), kernels_(engine.plan_.kernels.size()) {
    for (std::size_t i = 0; i < kernels_.size(); ++i) {
      if (owns_originals) kernels_[i].kernel = engine_.plan_.kernels[i].get();
    }
  }

  void run() {
    try {
      while (const std::optional<Unit> unit = engine_.next_unit()) run_unit(*unit);
    } catch (const Abandoned&) {
      // What the journal holds is whole; the batch in hand is not part of it.
      return;
    } catch (...) {
      engine_.fail(std::current_exception());
    }
  }

 private:
  struct Own {
    std::unique_ptr<Kernel> clone;
    Kernel* kernel = nullptr;
    std::deque<std::pair<const Cell*, std::int64_t>> asked;  ///< the last cases that it was given, the newest last
    std::optional<FreshKernels> fresh;                       ///< made at its first finding
    /// Findings, by their kind, that a kernel started afresh showed as well, all so far.
    std::map<Violation, int> shown_afresh{};
  };

  Kernel& kernel(std::size_t index) {
    Own& own = kernels_[index];
    if (own.kernel == nullptr) {
      own.clone = engine_.plan_.kernels[index]->clone();
      own.kernel = own.clone.get();
    }
    return *own.kernel;
  }

  void run_unit(const Unit& unit) {
    // Every kernel sees the same cases, so they are made once.
    const std::int64_t own = (unit.last_k - unit.first_k - 1) / engine_.plan_.shard.count + 1;
    std::vector<std::optional<Case>> cases(static_cast<std::size_t>(own));
    for (const std::size_t index : unit.cell->kernels) run_batch(unit, index, cases);
  }

  void run_batch(const Unit& unit, std::size_t index, std::vector<std::optional<Case>>& cases) {
    const Cell& cell = *unit.cell;
    Kernel& kernel = this->kernel(index);
    BatchRecord batch{subject_of(cell, kernel), unit.first_k, unit.last_k, engine_.plan_.shard, {}};
    batch.last_k = std::min(unit.last_k, engine_.cases_of(index));
    batch.first_k = engine_.first_open(batch.subject, unit.first_k, batch.last_k);
    if (batch.first_k >= batch.last_k) return;
    WatchedKernel watched(kernel, [this] { return engine_.stopping(); });
    std::vector<Found> findings;
    const bool reachable = has_operation(kernel.manifest(), cell.property->operation);
    const GivenUp* given_up = nullptr;
    const auto [index_of_shard, shards] = engine_.plan_.shard;
    const std::int64_t to_own = (index_of_shard - batch.first_k % shards + shards) % shards;
    for (std::int64_t k = batch.first_k + to_own; k < batch.last_k; k += shards) {
      if (!engine_.takes(cell, k)) continue;
      if (engine_.stopping()) throw Abandoned();
      if (!reachable) {
        batch.tally.skip(1, fmt::format("has no {} entry", name_of(cell.property->operation)));
        continue;
      }
      if (given_up == nullptr) {
        given_up = &engine_.given_up(index, cell.dtype, watched, [&](const Cell& of, std::int64_t first) {
          note_asked(kernels_[index], of, first);
        });
      }
      if (given_up->cell != nullptr && (given_up->cell != &cell || k > given_up->behind)) {
        batch.tally.skip(1, given_up->reason);
        continue;
      }
      std::optional<Case>& made = cases[static_cast<std::size_t>((k - unit.first_k) / shards)];
      const std::optional<Case> own_case = engine_.case_for(cell, k, kernel.manifest(), made);
      if (!own_case) {
        batch.tally.skip(1, out_of_memory);
        continue;
      }
      const Case& arranged = *own_case;
      (void)watched.take_sent();
      (void)watched.take_answered();
      Verdict verdict = engine_.road_.check(*cell.property, watched, arranged);
      note_asked(kernels_[index], cell, k);
      // Of no row at all everything is true, and without keys a kernel may refuse: neither says anything of its
      // answers. The core is also looked into by itself.
      const bool answered = watched.take_answered() > 0 || core_functions(kernel.id()) != nullptr;
      if (verdict.outcome == Outcome::held && !answered)
        verdict = {.outcome = Outcome::skipped, .reason = "has nothing that the kernel answered"};
      const bool at_load = engine_.stands_for_loading(cell, index, k);
      if (at_load) add_load_finding(verdict, kernel.load_finding());
      const BitClasses sent = watched.take_sent();
      // Captured cases were not drawn: their words, if any, are of another run, and of what it shrank.
      const bool drawn = engine_.plan_.captured.empty();
      batch.tally.add(k, verdict, drawn ? kinds_of(arranged) : "", drawn ? sent : 0);
      const bool violated = verdict.outcome == Outcome::violated;
      if (!violated && verdict.outcome != Outcome::inconclusive) continue;
      if (engine_.wants_finding(batch.subject, verdict.outcome, k)) {
        findings.push_back(finding(cell, index, watched, batch.subject, k, arranged, verdict, at_load));
      }
      if (!violated || !engine_.plan_.fail_fast) continue;
      batch.last_k = k + 1;
      break;
    }
    engine_.write(findings, batch);
  }

  static void note_asked(Own& own, const Cell& cell, std::int64_t k) {
    own.asked.emplace_back(&cell, k);
    if (own.asked.size() > history_kept) own.asked.pop_front();
  }

  Found finding(const Cell& cell, std::size_t index, WatchedKernel& kernel, const Subject& subject, std::int64_t k,
                const Case& c, const Verdict& verdict, bool at_load) {
    FindingRecord record{subject, k, case_file_name(subject, fmt::format("k{}", k)), verdict};
    Case saved = c;
    std::vector<Case> before;
    if (at_load) saved.provenance.at_load = "yes";
    // What memory does not suffice for leaves the finding as it is known so far.
    try {
      if (verdict.outcome == Outcome::violated && !at_load) before = repeat(cell, index, kernel, c, record, saved);
      record.compared = compared_elements(record.verdict, kernel.manifest());
    } catch (const std::bad_alloc&) {
      record.verdict.reason += "; memory ran out as it was made smaller";
    }
    return {std::move(record), std::move(saved), std::move(before), name_of(verdict.outcome)};
  }

  /// Checks again what is violated. What comes back is made smaller; of what does not, the calls before it that it
  /// takes are given.
  std::vector<Case> repeat(const Cell& cell, std::size_t index, WatchedKernel& kernel, const Case& c,
                           FindingRecord& record, Case& saved) {
    const Violation violation = record.verdict.violation;
    const auto check = [&](const Case& of) {
      return [&](Kernel& asked) {
        WatchedKernel watched(asked, [this] { return engine_.stopping(); });
        return engine_.road_.check(*cell.property, watched, of);
      };
    };
    // What a kernel keeps between calls is not in the case: one started afresh tells. A death started it afresh.
    FreshKernels& fresh = fresh_of(index);
    const std::int64_t times = repetitions(violation);
    const std::int64_t again = violated_again(check(c), kernel, times);
    std::optional<bool> afresh;
    int& shown = kernels_[index].shown_afresh[violation];
    if (again == times && !is_death(record.verdict) && shown < enough_afresh) {
      afresh = fresh.violates(check(c), {});
      // One that a kernel started afresh does not show has all that follow asked.
      if (afresh) shown = *afresh ? shown + 1 : std::numeric_limits<int>::min() / 2;
    }
    // Only what comes back is shrunk: a kernel that keeps something would be led astray, and kept from what it takes.
    if (again != times || afresh == false) {
      record.repetition = {.again = again, .of = times};
      return name_calls_before(record, saved, calls_it_takes(check(saved), history_of(index, kernel), fresh));
    }
    if (const int budget = shrink_budget(violation); budget > 0) {
      Case smaller = engine_.road_.shrink(*cell.property, kernel, c, budget);
      const Verdict then = engine_.road_.check(*cell.property, kernel, smaller);
      if (then.outcome == Outcome::violated) {
        saved = std::move(smaller);
        record.verdict = then;
      }
    }
    return {};
  }

  FreshKernels& fresh_of(std::size_t index) {
    Own& own = kernels_[index];
    const auto start = [this, index] { return engine_.plan_.kernels[index]->clone(); };
    if (!own.fresh) own.fresh.emplace(start, fresh_starts, fresh_time);
    return *own.fresh;
  }

  /// The cases that the kernel was given before the newest one, each as a step that checks it again.
  std::vector<std::function<void(Kernel&)>> history_of(std::size_t index, const Kernel& kernel) {
    std::vector<std::function<void(Kernel&)>> steps;
    const auto& asked = kernels_[index].asked;
    for (std::size_t i = 0; i + 1 < asked.size(); ++i) {
      steps.emplace_back([this, at = asked[i], &kernel](Kernel& fresh) {
        if (engine_.stopping()) throw Abandoned();
        std::optional<Case> made;
        if (const std::optional<Case> c = engine_.case_for(*at.first, at.second, kernel.manifest(), made))
          static_cast<void>(engine_.road_.check(*at.first->property, fresh, *c));
      });
    }
    return steps;
  }

  /// The calls as case files, which the finding and its case name.
  static std::vector<Case> name_calls_before(FindingRecord& record, Case& saved, const std::vector<Call>& calls) {
    std::vector<Case> before;
    for (const Call& call : calls) {
      before.push_back(call_file(call));
      record.repetition->before.push_back(
          case_file_name(record.subject, fmt::format("k{}-before{}", record.k, before.size())));
    }
    note_repetition(record, saved);
    return before;
  }

  Engine& engine_;
  std::vector<Own> kernels_;
};

Engine::Engine(const Plan& plan, const Road& road, const RunFolder& folder, JournalWriter& journal, const Journal& done,
               Observer& observer)
    : plan_(plan),
      road_(road),
      folder_(folder),
      journal_(journal),
      observer_(observer),
      cells_(cells_of(plan)),
      cases_per_cell_(plan.captured.empty() ? plan.cases : static_cast<std::int64_t>(plan.captured.size())) {
  for (const BatchRecord& batch : done.batches) {
    if (batch.first_k < batch.last_k) done_[batch.subject].emplace(batch.first_k, batch.last_k);
  }
  for (const FindingRecord& finding : done.findings) {
    found_[{finding.subject, finding.verdict.outcome}].push_back(finding.k);
  }
  for (auto& [subject, ks] : found_) std::ranges::sort(ks);
  for (const Cell& cell : cells_) {
    for (const std::size_t index : cell.kernels) given_up_[{index, cell.dtype}];
  }
  for (std::size_t kernel = 0; kernel < plan_.kernels.size(); ++kernel) load_cases_.push_back(load_case_of(kernel));
}

std::optional<std::pair<std::size_t, std::int64_t>> Engine::load_case_of(std::size_t kernel) const {
  if (plan_.kernels[kernel]->load_finding().empty()) return std::nullopt;
  for (std::size_t i = 0; i < cells_.size(); ++i) {
    const Cell& cell = cells_[i];
    const bool reachable = has_operation(plan_.kernels[kernel]->manifest(), cell.property->operation);
    if (!reachable || std::ranges::find(cell.kernels, kernel) == cell.kernels.end()) continue;
    if (plan_.captured.empty()) return std::pair(i, std::int64_t{0});
    for (std::int64_t k = 0; k < cases_per_cell_; ++k) {
      if (is_for(plan_.captured[static_cast<std::size_t>(k)], *cell.property, cell.dtype)) return std::pair(i, k);
    }
  }
  return std::nullopt;
}

const Engine::GivenUp& Engine::given_up(std::size_t index, DType dtype, WatchedKernel& kernel, const Asked& asked) {
  GivenUp& given_up = given_up_.at({index, dtype});
  const std::lock_guard lock(given_up.mutex);
  if (given_up.known) return given_up;
  const auto is_asked = [&](const Cell& cell) {
    return cell.dtype == dtype && std::ranges::count(cell.kernels, index) > 0 &&
           has_operation(kernel.manifest(), cell.property->operation);
  };
  const auto cell = std::ranges::find_if(cells_, is_asked);
  int failed = 0, without_answer = 0;
  // Captured cases are few, and each was asked for by name. Of a kernel that takes none of the first cases nothing is
  // known: a run without end has cases without end.
  const bool asks = plan_.captured.empty() && cell != cells_.end();
  const std::int64_t most = asks ? std::min<std::int64_t>(cases_per_cell_, 64) : 0;
  for (std::int64_t k = 0; k < most && failed < failures_until_given_up; ++k) {
    std::optional<Case> made;
    const std::optional<Case> own_case = case_for(*cell, k, kernel.manifest(), made);
    if (!own_case) continue;
    (void)kernel.take_answered();
    const Verdict verdict = road_.check(*cell->property, kernel, *own_case);
    asked(*cell, k);
    // What is true of no row at all says nothing of a kernel that was not asked.
    if (verdict.outcome == Outcome::held && kernel.take_answered() > 0) break;
    if (verdict.outcome != Outcome::violated) continue;
    given_up.behind = k;
    ++failed;
    without_answer += is_without_answer(verdict.violation) ? 1 : 0;
  }
  if (failed == failures_until_given_up && 2 * without_answer >= failed) {
    given_up.cell = &*cell;
    given_up.reason =
        fmt::format("not asked: it failed in all of the first cases of {}, mostly without an answer to judge",
                    cell->property->name);
  }
  given_up.known = true;
  return given_up;
}

bool Engine::stands_for_loading(const Cell& cell, std::size_t kernel, std::int64_t k) const {
  const auto& place = load_cases_[kernel];
  return place && &cells_[place->first] == &cell && place->second == k;
}

std::int64_t Engine::cases_of(std::size_t kernel) const {
  if (!plan_.captured.empty() || !plan_.kernels[kernel]->is_wide()) return cases_per_cell_;
  return std::min(cases_per_cell_, plan_.most_cases_of_wide);
}

std::int64_t Engine::cases_planned() const {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  std::int64_t all = 0;
  for (const Cell& cell : cells_) {
    for (const std::size_t kernel : cell.kernels) {
      const std::int64_t each = (cases_of(kernel) - plan_.shard.index + plan_.shard.count - 1) / plan_.shard.count;
      if (each > most - all) return most;
      all += std::max<std::int64_t>(each, 0);
    }
  }
  return all;
}

Ending Engine::run() {
  const int jobs = std::max(1, plan_.jobs);
  std::mutex waiting;
  std::condition_variable one_ended;
  int running = jobs;
  {
    std::vector<std::jthread> threads;
    threads.reserve(static_cast<std::size_t>(jobs));
    for (int i = 0; i < jobs; ++i) {
      threads.emplace_back([&, i] {
        Job(*this, /*owns_originals=*/i == 0).run();
        const std::lock_guard lock(waiting);
        --running;
        one_ended.notify_one();
      });
    }
    std::unique_lock lock(waiting);
    while (!one_ended.wait_for(lock, std::chrono::milliseconds(100), [&] { return running == 0; })) {
      const std::lock_guard own(mutex_);
      observer_.tick();
    }
  }
  if (error_) std::rethrow_exception(error_);
  if (interrupt_requested()) return Ending::interrupted;
  if (failed_fast_) return Ending::failed_fast;
  return out_of_time_ ? Ending::out_of_time : Ending::complete;
}

std::optional<Engine::Unit> Engine::next_unit() {
  const std::lock_guard lock(mutex_);
  if (stopping() || cells_.empty()) return std::nullopt;
  // All cells advance together, so that a run cut short has looked at everything a little.
  const auto count = static_cast<std::int64_t>(cells_.size());
  // A shard's batches have as many cases of its own as they would have without shards, so that n shards write no more
  // lines than one run.
  const std::int64_t shards = plan_.shard.count, batch = next_ / count;
  const std::int64_t first = batch_start(batch), behind = batch_start(batch + 1);
  if (first > (cases_per_cell_ - 1) / shards) return std::nullopt;
  if (plan_.deadline && std::chrono::steady_clock::now() >= *plan_.deadline) {
    out_of_time_ = true;
    return std::nullopt;
  }
  const Cell& cell = cells_[static_cast<std::size_t>(next_ % count)];
  ++next_;
  return Unit{&cell, first * shards, behind > cases_per_cell_ / shards ? cases_per_cell_ : behind * shards};
}

bool Engine::stopping() const {
  return stop_.load(std::memory_order_relaxed) || interrupt_requested();
}

bool Engine::takes(const Cell& cell, std::int64_t k) const {
  if (!plan_.shard.takes(k)) return false;
  return plan_.captured.empty() || is_for(plan_.captured[static_cast<std::size_t>(k)], *cell.property, cell.dtype);
}

Case Engine::case_of(const Cell& cell, std::int64_t k) const {
  if (!plan_.captured.empty()) return plan_.captured[static_cast<std::size_t>(k)].value;
  return road_.generate(*cell.property, cell.dtype, plan_.seed, k);
}

Case Engine::arranged(const Case& c, const Manifest& manifest) const {
  // A captured case is judged as it is: what the manifest rules out is skipped, not cropped.
  return plan_.captured.empty() ? road_.project(c, manifest) : c;
}

std::optional<Case> Engine::case_for(const Cell& cell, std::int64_t k, const Manifest& manifest,
                                     std::optional<Case>& made) const {
  try {
    if (!made) made = case_of(cell, k);
    return arranged(*made, manifest);
  } catch (const std::bad_alloc&) {
    return std::nullopt;
  }
}

void Engine::save(Case c, const Subject& subject, std::int64_t k, const std::string& file,
                  const std::string& expected) const {
  c.provenance.property = subject.property;
  c.provenance.kernel = subject.kernel;
  c.provenance.dtype = subject.dtype;
  c.provenance.expected = expected;
  if (!plan_.against.empty()) c.provenance.against = plan_.against;
  if (!plan_.captured.empty()) c.provenance.source = plan_.captured[static_cast<std::size_t>(k)].file;
  folder_.files().write(file, encode_case(c));
}

std::int64_t Engine::first_open(const Subject& subject, std::int64_t first_k, std::int64_t last_k) const {
  const auto ranges = done_.find(subject);
  if (ranges == done_.end()) return first_k;
  for (auto range = ranges->second.find(first_k); range != ranges->second.end() && first_k < last_k;
       range = ranges->second.find(first_k)) {
    first_k = range->second;
  }
  return first_k;
}

bool Engine::wants_finding(const Subject& subject, Outcome outcome, std::int64_t k) {
  const std::lock_guard lock(mutex_);
  std::vector<std::int64_t>& ks = found_[{subject, outcome}];
  const auto place = std::ranges::lower_bound(ks, k);
  if (place != ks.end() && *place == k) return false;
  // Batches end in any order; the smallest k are kept whatever the order was.
  const bool wanted = place - ks.begin() < static_cast<std::ptrdiff_t>(findings_kept);
  if (wanted) ks.insert(place, k);
  return wanted;
}

void Engine::write(std::vector<Found>& findings, const BatchRecord& batch) {
  // Not before their batch is finished, so that one that is given up leaves no file that nothing names, and before
  // the lines that name them.
  for (auto& [record, saved, before, expected] : findings) {
    try {
      for (std::size_t n = 0; n < before.size(); ++n)
        folder_.files().write(record.repetition->before[n], encode_case(before[n]));
      save(std::move(saved), record.subject, record.k, record.case_file, std::string(expected));
    } catch (const std::bad_alloc&) {
      record.verdict.reason += "; memory ran out as its case was saved, which is not there";
    }
  }
  const std::lock_guard lock(mutex_);
  for (const Found& finding : findings) {
    journal_.append(finding.record);
    observer_.found(finding.record);
  }
  journal_.append(batch);
  observer_.batch_done(batch);
  if (plan_.fail_fast && batch.tally.violated > 0) {
    failed_fast_ = true;
    stop_ = true;
  }
}

void Engine::fail(std::exception_ptr error) {
  const std::lock_guard lock(mutex_);
  if (!error_) error_ = std::move(error);
  stop_ = true;
}

void Engine::save_worst(const BatchRecord& whole) const {
  const Tally& tally = whole.tally;
  const bool alarmed = tally.alarm && tally.alarm->all.beyond > 0;
  if (tally.worst_k < 0 && !alarmed) return;
  for (const Cell& cell : cells_) {
    for (const std::size_t index : cell.kernels) {
      const Kernel& kernel = *plan_.kernels[index];
      if (subject_of(cell, kernel) != whole.subject) continue;
      const auto save_as = [&](std::int64_t k, const char* which, const char* expected) {
        std::optional<Case> made;
        std::optional<Case> worst = case_for(cell, k, kernel.manifest(), made);
        if (worst) save(*std::move(worst), whole.subject, k, case_file_name(whole.subject, which), expected);
      };
      if (tally.worst_k >= 0) save_as(tally.worst_k, "worst", tally.worst_utilisation > 1.0 ? "violated" : "held");
      if (alarmed) save_as(tally.alarm->worst_k, "alarm", "held");
      return;
    }
  }
}

}  // namespace attest
