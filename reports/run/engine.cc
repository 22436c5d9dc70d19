#include "reports/run/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <iterator>
#include <new>
#include <numeric>
#include <utility>

#include "properties/generators/stream.h"
#include "properties/road/confirm.h"
#include "properties/road/offered.h"
#include "properties/road/own_kernels.h"
#include "properties/road/shrink_budget.h"
#include "reports/run/interrupt.h"
#include "reports/run/repetition.h"
#include "reports/text/text.h"

namespace attest {

namespace {

bool is_for(const CapturedCase& captured, const Property& property, DType dtype) {
  if (captured.value.dtype() != dtype || captured.value.operation != property.operation) return false;
  return captured.property.empty() || captured.property == property.name;
}

/// Cases before a finding that are tried for what brings it back.
constexpr std::size_t history_kept = 1024;

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
  // What says most about a kernel comes first: a slow one may not come to the others before its time is over.
  std::vector<const Property*> properties;
  for (const bool oracles : {true, false})
    std::ranges::copy_if(plan.properties, std::back_inserter(properties),
                         [&](const Property* property) { return is_oracle(property->name) == oracles; });
  std::vector<Cell> cells;
  for (const Property* property : properties) {
    for (const DType dtype : dtypes) {
      Cell cell{.property = property, .dtype = dtype, .kernels = {}};
      for (std::size_t i = 0; i < plan.kernels.size(); ++i) {
        // A captured case in a dtype that the kernel lacks is skipped with that reason; generated ones are not made.
        if (!plan.captured.empty() || plan.kernels[i]->manifest().takes(dtype)) cell.kernels.push_back(i);
      }
      const bool any_captured = std::ranges::any_of(
          plan.captured, [&](const CapturedCase& captured) { return is_for(captured, *property, dtype); });
      if (!cell.kernels.empty() && (plan.captured.empty() || any_captured)) cells.push_back(std::move(cell));
    }
  }
  return cells;
}

/// What a thread has asked one of its kernels, and how it confirms what it finds there.
struct Engine::Told {
  std::deque<std::pair<const Cell*, std::int64_t>> asked;  ///< the last cases that it was given, the newest last
  Confirmer confirmer;

  void note(const Cell& cell, std::int64_t k) {
    asked.emplace_back(&cell, k);
    if (asked.size() > history_kept) asked.pop_front();
  }
};

/// One thread: its own kernels, and the loop over units.
class Engine::Job {
 public:
  Job(Engine& engine, bool takes_originals) : engine_(engine), kernels_(engine.plan_.kernels, takes_originals) {
    for (const std::unique_ptr<Kernel>& kernel : engine.plan_.kernels)
      told_.push_back({.asked = {}, .confirmer = {engine.road_, [&kernel] { return kernel->clone(); }}});
  }

  void run() {
    try {
      while (const std::optional<Unit> unit = engine_.next_unit()) run_unit(*unit);
    } catch (const Abandoned&) {
      // What the journal holds is whole; the batch in hand is not part of it.
      return;
    }
  }

 private:
  void run_unit(const Unit& unit) {
    // Every kernel sees the same cases, so they are made once.
    const std::int64_t own = (unit.last_k - unit.first_k - 1) / engine_.plan_.shard.count + 1;
    std::vector<std::optional<Case>> cases(static_cast<std::size_t>(own));
    for (const std::size_t index : unit.cell->kernels) {
      const std::int64_t last_k = std::min(unit.last_k, engine_.cases_of(index));
      for (const auto& [from, to] : engine_.open_in(subject_of(*unit.cell, kernels_[index]), unit.first_k, last_k))
        run_batch(unit, index, from, to, cases);
    }
  }

  void run_batch(const Unit& unit, std::size_t index, std::int64_t first_k, std::int64_t last_k,
                 std::vector<std::optional<Case>>& cases) {
    const Cell& cell = *unit.cell;
    Kernel& kernel = kernels_[index];
    BatchRecord batch{subject_of(cell, kernel), first_k, last_k, engine_.plan_.shard, {}};
    WatchedKernel watched(kernel, [this] { return engine_.stopping(); });
    std::vector<Found> findings;
    std::vector<MetaRecord> notes;
    std::string rows;
    const auto [index_of_shard, shards] = engine_.plan_.shard;
    const std::int64_t to_own = (index_of_shard - batch.first_k % shards + shards) % shards;
    for (std::int64_t k = batch.first_k + to_own; k < batch.last_k; k += shards) {
      // A batch of a kernel that compiles each shape takes minutes; what is left of it is --resume's.
      if (k >= batch.first_k + shards && engine_.is_late()) {
        batch.last_k = k;
        break;
      }
      if (!engine_.takes(cell, k)) continue;
      std::optional<Case>& made = cases[static_cast<std::size_t>((k - unit.first_k) / shards)];
      const Walked walked = walk_case(cell, index, watched, k, made);
      // Captured cases were not drawn: their words, if any, are of another run, and of what it shrank.
      const bool drawn = engine_.plan_.captured.empty();
      const std::optional<Extents> shape = offered_shape(walked);
      batch.tally.add(k, walked.verdict, drawn ? kinds_of(walked.problem) : "", drawn ? walked.sent : 0,
                      shape ? &*shape : nullptr);
      if (drawn) count_combination(batch.tally, walked);
      if (engine_.plan_.table != nullptr) rows += CaseTable::row(batch.subject, k, walked);
      if (walked.verdict.rows_judged < walked.verdict.rows && !drawn)
        notes.push_back(sample_note(batch.subject, k, walked));
      const bool violated = walked.is(Outcome::violated);
      if (!violated && !walked.is(Outcome::inconclusive)) continue;
      if (engine_.wants_finding(batch.subject, walked.verdict.outcome, k))
        findings.push_back(finding(cell, index, watched, batch.subject, k, walked));
      if (!violated || !engine_.plan_.fail_fast) continue;
      batch.last_k = k + 1;
      break;
    }
    engine_.write(findings, batch, notes, rows);
  }

  /// "mine.safetensors in bf16: 4,096 of 1,048,576 rows judged (--rows all judges them all)".
  MetaRecord sample_note(const Subject& subject, std::int64_t k, const Walked& walked) const {
    const std::string& file = engine_.plan_.captured[static_cast<std::size_t>(k)].file;
    return {"note",
            {{"kernel", subject.kernel},
             {"text", fmt::format("{} in {}: {} (--rows all judges them all)", file, subject.dtype,
                                  rows_text(walked.verdict))}}};
  }

  /// Case k, unless the kernel is given up; with what it did wrong as it was loaded, where it is this case's to say.
  Walked walk_case(const Cell& cell, std::size_t index, WatchedKernel& kernel, std::int64_t k,
                   std::optional<Case>& made) {
    if (cell.property->misses_of(kernel.manifest()).empty()) {
      const GivenUp* const given_up = engine_.given_up(cell.dtype, index, kernel, told_[index]);
      if (given_up != nullptr && (given_up->cell != &cell || k > given_up->behind))
        return {.problem = {}, .verdict = {.outcome = Outcome::skipped, .reason = given_up->reason}};
      told_[index].note(cell, k);
    }
    Walked walked = walk(engine_.road_, *cell.property, kernel, [&] { return engine_.case_of(cell, k, made); });
    if (engine_.stands_for_loading(cell, index, k)) add_load_finding(walked.verdict, kernel.load_finding());
    return walked;
  }

  Found finding(const Cell& cell, std::size_t index, WatchedKernel& kernel, const Subject& subject, std::int64_t k,
                const Walked& walked) {
    const std::string file = case_file_name(subject, called(kernel), fmt::format("k{}", k));
    Finding finding{.record = {subject, k, file, walked.verdict}, .saved = walked.problem};
    if (engine_.stands_for_loading(cell, index, k)) {
      finding.saved.provenance.at_load = "yes";
    } else if (walked.is(Outcome::violated)) {
      told_[index].confirmer.confirm(finding, *cell.property, kernel, [&] { return history_of(index); });
    }
    return found_of(std::move(finding), kernel, walked.verdict.outcome);
  }

  /// The finding with its calls as case files, which it and its case name.
  static Found found_of(Finding finding, WatchedKernel& kernel, Outcome expected) {
    auto& [record, saved, calls] = finding;
    std::vector<Case> before;
    for (const Call& call : calls) {
      before.push_back(call_file(call));
      record.repetition->before.push_back(
          case_file_name(record.subject, called(kernel), fmt::format("k{}-before{}", record.k, before.size())));
    }
    if (record.repetition) note_repetition(record, saved);
    note_compared(record, kernel.manifest());
    Tensor answer = answer_to_keep(finding, kernel);
    return {std::move(record), std::move(saved), std::move(answer), std::move(before), name_of(expected)};
  }

  /// The cases that the kernel was given before the newest one, each as a step that checks it again.
  std::vector<std::function<void(Kernel&)>> history_of(std::size_t index) {
    std::vector<std::function<void(Kernel&)>> steps;
    const auto& asked = told_[index].asked;
    for (std::size_t i = 0; i + 1 < asked.size(); ++i) {
      steps.emplace_back([this, at = asked[i]](Kernel& fresh) {
        WatchedKernel watched(fresh, [this] { return engine_.stopping(); });
        std::optional<Case> made;
        const auto draw = [&] { return engine_.case_of(*at.first, at.second, made); };
        static_cast<void>(walk(engine_.road_, *at.first->property, watched, draw));
      });
    }
    return steps;
  }

  Engine& engine_;
  OwnKernels kernels_;
  std::vector<Told> told_;
};

Engine::Engine(const Plan& plan, const Road& road, const RunFolder& folder, JournalWriter& journal, const Journal& done,
               Observer& observer)
    : plan_(plan),
      road_(plan.captured.empty() ? road : without_projection(road)),
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
    const bool reachable = cell.property->misses_of(plan_.kernels[kernel]->manifest()).empty();
    if (!reachable || std::ranges::find(cell.kernels, kernel) == cell.kernels.end()) continue;
    if (plan_.captured.empty()) return std::pair(i, std::int64_t{0});
    for (std::int64_t k = 0; k < cases_per_cell_; ++k) {
      if (is_for(plan_.captured[static_cast<std::size_t>(k)], *cell.property, cell.dtype)) return std::pair(i, k);
    }
  }
  return std::nullopt;
}

const Engine::GivenUp* Engine::given_up(DType dtype, std::size_t index, WatchedKernel& kernel, Told& told) {
  GivenUp& given_up = given_up_.at({index, dtype});
  const std::lock_guard lock(given_up.mutex);
  if (given_up.known) return given_up.cell == nullptr ? nullptr : &given_up;
  const auto is_asked = [&](const Cell& cell) {
    return cell.dtype == dtype && std::ranges::count(cell.kernels, index) > 0 &&
           cell.property->misses_of(kernel.manifest()).empty();
  };
  const auto cell = std::ranges::find_if(cells_, is_asked);
  int failed = 0, without_answer = 0;
  // Captured cases are few, and each was asked for by name. Of a kernel that takes none of the first cases nothing is
  // known: a run without end has cases without end.
  const bool asks = plan_.captured.empty() && cell != cells_.end();
  const std::int64_t most = asks ? std::min<std::int64_t>(cases_per_cell_, 64) : 0;
  for (std::int64_t k = 0; k < most && failed < failures_until_given_up; ++k) {
    std::optional<Case> made;
    told.note(*cell, k);
    const Walked walked = walk(road_, *cell->property, kernel, [&] { return case_of(*cell, k, made); });
    if (walked.is(Outcome::held)) break;
    if (!walked.is(Outcome::violated)) continue;
    given_up.behind = k;
    ++failed;
    without_answer += is_without_answer(walked.verdict.violation) ? 1 : 0;
  }
  if (failed == failures_until_given_up && 2 * without_answer >= failed) {
    given_up.cell = &*cell;
    given_up.reason =
        fmt::format("not asked: it failed in all of the first cases of {}, mostly without an answer to judge",
                    cell->property->name);
  }
  given_up.known = true;
  return given_up.cell == nullptr ? nullptr : &given_up;
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
  for (int i = 0; i < std::max(1, plan_.jobs); ++i)
    jobs_.start([this, i] { Job(*this, /*takes_originals=*/i == 0).run(); });
  jobs_.wait([this] {
    const std::lock_guard lock(mutex_);
    observer_.tick();
  });
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
  const std::int64_t shards = plan_.shard.count, round = next_ / count;
  const std::int64_t first = start_of(round), behind = start_of(round + 1);
  if (first > (cases_per_cell_ - 1) / shards) return std::nullopt;
  if (is_late()) return std::nullopt;
  const Cell& cell = cell_at(next_++);
  return Unit{&cell, first * shards, behind > cases_per_cell_ / shards ? cases_per_cell_ : behind * shards};
}

std::int64_t Engine::start_of(std::int64_t round) const {
  constexpr std::int64_t first_look = 8;
  const bool may_be_cut = plan_.deadline || plan_.fail_fast;
  if (!may_be_cut || round == 0) return batch_start(round);
  return round == 1 ? first_look : batch_start(round - 1);
}

const Cell& Engine::cell_at(std::int64_t place) {
  const auto count = static_cast<std::int64_t>(cells_.size());
  const auto in_round = static_cast<std::size_t>(place % count);
  if (!plan_.order) return cells_[in_round];
  if (in_round == 0) {
    Stream stream(*plan_.order + static_cast<std::uint64_t>(place));
    round_.resize(cells_.size());
    std::iota(round_.begin(), round_.end(), std::size_t{0});
    for (std::size_t left = round_.size(); left > 1; --left)
      std::swap(round_[left - 1], round_[static_cast<std::size_t>(stream.below(static_cast<std::int64_t>(left)))]);
  }
  return cells_[round_[in_round]];
}

bool Engine::is_late() {
  if (!plan_.deadline || std::chrono::steady_clock::now() < *plan_.deadline) return false;
  out_of_time_ = true;
  return true;
}

bool Engine::stopping() const {
  return stop_.load(std::memory_order_relaxed) || jobs_.failed() || interrupt_requested();
}

bool Engine::takes(const Cell& cell, std::int64_t k) const {
  if (!plan_.shard.takes(k)) return false;
  return plan_.captured.empty() || is_for(plan_.captured[static_cast<std::size_t>(k)], *cell.property, cell.dtype);
}

const Case& Engine::case_of(const Cell& cell, std::int64_t k, std::optional<Case>& made) const {
  if (!made) {
    made = plan_.captured.empty() ? road_.generate(*cell.property, cell.dtype, plan_.seed, k)
                                  : plan_.captured[static_cast<std::size_t>(k)].value;
  }
  return *made;
}

void Engine::save(AnsweredCase c, const Subject& subject, std::int64_t k, const std::string& file,
                  const std::string& expected) const {
  Provenance& of = c.value.provenance;
  of.property = subject.property;
  of.kernel = subject.kernel;
  of.dtype = subject.dtype;
  of.expected = expected;
  if (!plan_.against.empty()) of.against = plan_.against;
  if (!plan_.captured.empty()) of.source = plan_.captured[static_cast<std::size_t>(k)].file;
  folder_.files().write(file, encode_case(c));
}

std::vector<std::pair<std::int64_t, std::int64_t>> Engine::open_in(const Subject& subject, std::int64_t first_k,
                                                                   std::int64_t last_k) const {
  std::vector<std::pair<std::int64_t, std::int64_t>> open;
  if (const auto ranges = done_.find(subject); ranges != done_.end()) {
    auto range = ranges->second.upper_bound(first_k);
    if (range != ranges->second.begin()) --range;
    for (; range != ranges->second.end() && range->first < last_k; ++range) {
      if (range->first > first_k) open.emplace_back(first_k, range->first);
      first_k = std::max(first_k, range->second);
    }
  }
  if (first_k < last_k) open.emplace_back(first_k, last_k);
  return open;
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

void Engine::write(std::vector<Found>& findings, const BatchRecord& batch, const std::vector<MetaRecord>& notes,
                   const std::string& rows) {
  // Not before their batch is finished, so that one that is given up leaves no file that nothing names, and before
  // the lines that name them.
  for (auto& [record, saved, answer, before, expected] : findings) {
    try {
      for (std::size_t n = 0; n < before.size(); ++n)
        folder_.files().write(record.repetition->before[n], encode_case(before[n]));
      save({std::move(saved), std::move(answer)}, record.subject, record.k, record.case_file, std::string(expected));
    } catch (const std::bad_alloc&) {
      record.verdict.reason += "; memory ran out as its case was saved, which is not there";
    }
  }
  const std::lock_guard lock(mutex_);
  for (const Found& finding : findings) {
    journal_.append(finding.record);
    observer_.found(finding.record);
  }
  for (const MetaRecord& note : notes) journal_.append(note);
  if (plan_.table != nullptr) plan_.table->append(rows);
  journal_.append(batch);
  observer_.batch_done(batch);
  if (plan_.fail_fast && batch.tally.violated > 0) {
    failed_fast_ = true;
    stop_ = true;
  }
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
        try {
          Case worst = road_.project(case_of(cell, k, made), kernel.manifest());
          Tensor answer =
              tally.violated > 0 && !interrupt_requested() ? answer_of(*plan_.kernels[index], worst) : Tensor();
          save({std::move(worst), std::move(answer)}, whole.subject, k,
               case_file_name(whole.subject, called(kernel), which), expected);
        } catch (const std::bad_alloc&) {
          return;  // it was judged, and is not saved
        }
      };
      if (tally.worst_k >= 0) save_as(tally.worst_k, "worst", tally.worst_utilisation > 1.0 ? "violated" : "held");
      if (alarmed) save_as(tally.alarm->worst_k, "alarm", "held");
      return;
    }
  }
}

}  // namespace attest
