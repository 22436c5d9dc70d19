#include "fuzz/campaign.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <new>
#include <optional>
#include <thread>
#include <utility>

#include "fuzz/level.h"
#include "fuzz/libfuzzer.h"
#include "properties/road/case_budget.h"
#include "properties/road/confirm.h"
#include "properties/road/offered.h"
#include "properties/road/own_kernels.h"

namespace attest {
namespace {

using Clock = std::chrono::steady_clock;

/// A stint is as many runs as last about this long; it is cut short after twice the time, so that a killed campaign
/// loses less than a second.
constexpr double stint_seconds = 0.25;
constexpr std::int64_t first_pace = 16, most_pace = 8192;  ///< of one shard

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct PlannedTarget {
  Target target;
  std::size_t kernel;
};

std::vector<PlannedTarget> targets_of(const CampaignPlan& plan) {
  std::vector<PlannedTarget> targets;
  for (const Property* const property : plan.properties) {
    if (property->is_statistical()) continue;
    for (std::size_t i = 0; i < plan.kernels.size(); ++i) {
      const Manifest& manifest = plan.kernels[i]->manifest();
      if (!manifest.has(property->operation)) continue;
      for (const DType dtype : manifest.dtypes) {
        const bool wanted = plan.dtypes.empty() || std::ranges::find(plan.dtypes, dtype) != plan.dtypes.end();
        if (wanted) targets.push_back({{property, dtype}, i});
      }
    }
  }
  return targets;
}

Subject subject_of(const CampaignPlan& plan, const PlannedTarget& planned) {
  return {std::string(planned.target.property->name), plan.kernels[planned.kernel]->id(),
          std::string(name_of(planned.target.dtype))};
}

}  // namespace

std::vector<Subject> subjects_of(const CampaignPlan& plan) {
  std::vector<Subject> subjects;
  for (const PlannedTarget& planned : targets_of(plan)) subjects.push_back(subject_of(plan, planned));
  return subjects;
}

/// One target: its search, its findings, its worst case, and which runs are still to be made.
struct Campaign::State {
  State(const CampaignPlan& plan, const PlannedTarget& planned, std::size_t place)
      : subject(subject_of(plan, planned)),
        number(place),
        kernel(planned.kernel),
        search(planned.target, plan.seed, plan.strategy, plan.shard.count),
        last_k(plan.runs.value_or(std::numeric_limits<std::int64_t>::max() / 2)),
        pace(first_pace * plan.shard.count) {
    if (const auto kept = plan.archives.find(subject); kept != plan.archives.end()) search.take(kept->second);
    for (const BatchRecord& batch : plan.done.batches) {
      if (batch.subject != subject) continue;
      next_k = std::max(next_k, batch.last_k);
      if (batch.tally.worst_k >= 0) worst_known = std::max(worst_known, batch.tally.worst_utilisation);
    }
    for (const EarlierFinding& known : plan.known) {
      if (known.record.subject != subject) continue;
      // Its batch may have died with the campaign: the number is taken.
      next_k = std::max(next_k, known.record.k + 1);
      ++of_kind[std::string(known.record.kind())];
      if (known.saved) ++saved[{std::string(known.record.kind()), place_of(*known.saved)}];
    }
  }

  const Subject subject;
  const std::size_t number;  ///< among those of the campaign
  const std::size_t kernel;

  std::mutex mutex;  ///< guards the search, the findings and the worst case
  Search search;
  bool grew = false;
  std::map<std::pair<std::string, std::string>, int> tried, saved;  ///< by kind and place, found and after shrinking
  std::map<std::string, int> of_kind;                               ///< saved
  double worst_known = -1;
  std::optional<std::pair<Case, Verdict>> worst;  ///< not handed on yet

  // Guarded by the campaign.
  std::int64_t next_k = 0, last_k;
  std::vector<std::pair<std::int64_t, std::int64_t>> given_back;
  std::int64_t pace;
};

struct Campaign::Stint {
  State* state;
  std::int64_t first_k, last_k;
};

/// One thread: its own kernels, and the loop over stints, which is its own or libFuzzer's.
class Campaign::Job final : public FuzzerLoop {
 public:
  Job(Campaign& campaign, bool takes_originals)
      : campaign_(campaign), kernels_(campaign.plan_.kernels, takes_originals) {
    for (const std::unique_ptr<Kernel>& kernel : campaign.plan_.kernels)
      confirmers_.emplace_back(campaign.road_, [&kernel] { return kernel->clone(); });
  }

  void run() {
    while (advance()) {
      if (const std::optional<Input> input = chosen({})) run_input(*input);
    }
  }

  std::optional<std::vector<std::uint8_t>> next(std::span<const std::uint8_t> of_corpus, std::uint64_t) override {
    try {
      while (advance()) {
        if (const std::optional<Input> input = chosen(of_corpus)) return bytes_of(*input);
      }
    } catch (...) {
      campaign_.jobs_.fail(std::current_exception());
    }
    // This object is never destroyed; its kernels must be, or their processes would live on.
    kernels_.end_processes();
    campaign_.jobs_.end_apart();
    return std::nullopt;
  }

  void run(std::span<const std::uint8_t> bytes) override {
    try {
      const Target& target = open_->state->search.target();
      run_input(parse_input(bytes, target.dtype, target.property->operation));
    } catch (...) {
      campaign_.jobs_.fail(std::current_exception());
    }
  }

 private:
  /// The stint under way; run k is the next.
  struct Open {
    Stint stint;
    State* state;
    WatchedKernel kernel;
    BatchRecord batch;
    std::int64_t k;
    Clock::time_point start = Clock::now();
    double finding_seconds = 0;
    bool cut = false;  ///< the campaign ended during a run
  };

  /// Goes on to the next run, closing one stint and opening another where that is due. False: there is none.
  bool advance() {
    if (open_) {
      const bool over = open_->cut || open_->k >= open_->stint.last_k || campaign_.stopping() ||
                        (open_->k > open_->stint.first_k && seconds_since(open_->start) > 2 * stint_seconds);
      if (!over) return true;
      close();
    }
    while (const std::optional<Stint> stint = campaign_.next_stint()) {
      State& state = *stint->state;
      open_.emplace(Open{*stint,
                         &state,
                         WatchedKernel(kernels_[state.kernel], [this] { return campaign_.stopping(); }),
                         {state.subject, stint->first_k, stint->first_k, campaign_.plan_.shard, {}},
                         stint->first_k});
      skip_to_own();
      if (!campaign_.stopping() && open_->k < stint->last_k) return true;
      close();
    }
    return false;
  }

  void close() {
    BatchRecord& batch = open_->batch;
    batch.last_k = open_->k;
    campaign_.give_back(open_->stint, open_->k, seconds_since(open_->start) - open_->finding_seconds);
    if (batch.last_k > batch.first_k) {
      const std::lock_guard lock(campaign_.observing_);
      campaign_.observer_.batch_done(batch);
    }
    open_.reset();
  }

  /// The input of the next run; nothing where memory runs out as it is bred, and that run is over.
  std::optional<Input> chosen(std::span<const std::uint8_t> of_corpus) {
    State& state = *open_->state;
    try {
      Search::Plan plan;
      {
        const std::lock_guard lock(state.mutex);
        plan = state.search.plan(open_->k, of_corpus);
      }
      return Search::made(std::move(plan), state.search.target());
    } catch (const std::bad_alloc&) {
      open_->batch.tally.add(open_->k, {.outcome = Outcome::skipped, .reason = std::string(out_of_memory)}, "");
      campaign_.runs_.fetch_add(1, std::memory_order_relaxed);
      ++open_->k;
      skip_to_own();
      return std::nullopt;
    }
  }

  void run_input(const Input& input) {
    try {
      run_one(*open_, input);
      ++open_->k;
    } catch (const Abandoned&) {
      open_->cut = true;  // the run counts for nothing
    }
    skip_to_own();
  }

  /// Runs of other shards are finished as far as this one is concerned.
  void skip_to_own() {
    while (!open_->cut && open_->k < open_->stint.last_k && !campaign_.plan_.shard.takes(open_->k)) ++open_->k;
  }

  void run_one(Open& open, const Input& input) {
    State& state = *open.state;
    const Property& property = *state.search.target().property;
    const Walked walked = walk(campaign_.road_, property, open.kernel, [&] { return case_of(input, property); });
    const auto& [c, verdict, sent] = walked;
    const std::optional<Extents> shape = offered_shape(walked);
    open.batch.tally.add(open.k, verdict, kinds_of(c), 0, shape ? &*shape : nullptr);
    count_combination(open.batch.tally, walked);
    campaign_.runs_.fetch_add(1, std::memory_order_relaxed);
    if (walked.is(Outcome::skipped)) return;
    show_level(state.number, quality_of(property, c, verdict));
    {
      const std::lock_guard lock(state.mutex);
      state.grew = state.search.learn(open.k, input, c, verdict) || state.grew;
      const bool judged = walked.is(Outcome::held) || walked.is(Outcome::violated);
      if (judged && verdict.utilisation > state.worst_known) {
        state.worst_known = verdict.utilisation;
        state.worst.emplace(c, verdict);
      }
    }
    if (walked.is(Outcome::violated) || walked.is(Outcome::inconclusive)) {
      const Clock::time_point start = Clock::now();
      report(open, walked);
      open.finding_seconds += seconds_since(start);
    }
  }

  /// Shrinks, confirms and hands on what is not known yet.
  void report(Open& open, const Walked& walked) {
    State& state = *open.state;
    Finding finding{.record = {state.subject, open.k, "", walked.verdict}, .saved = walked.problem};
    const std::string kind(finding.record.kind());
    {
      const std::lock_guard lock(state.mutex);
      if (state.of_kind[kind] >= samples_per_kind ||
          ++state.tried[{kind, place_of(walked.problem)}] > samples_per_place)
        return;
    }
    if (walked.is(Outcome::violated)) {
      try {
        // Bred cases follow from what came before: the calls that one takes are not looked for.
        confirmers_[state.kernel].confirm(finding, *state.search.target().property, open.kernel, {});
      } catch (const Abandoned&) {
        // What is known by now is kept, it may have taken hours; how often it comes back is not.
        finding.record.repetition.reset();
      }
    }
    note_compared(finding.record, open.kernel.manifest());
    Tensor answer;
    try {
      answer = answer_to_keep(finding, open.kernel);
    } catch (const Abandoned&) {
      answer = Tensor();  // nobody waits for it
    }
    {
      const std::lock_guard lock(state.mutex);
      int& here = state.saved[{kind, place_of(finding.saved)}];
      if (here >= samples_per_place || state.of_kind[kind] >= samples_per_kind) return;
      ++here;
      ++state.of_kind[kind];
    }
    campaign_.findings_.fetch_add(1, std::memory_order_relaxed);
    const std::lock_guard lock(campaign_.observing_);
    campaign_.observer_.found(finding.record, {std::move(finding.saved), std::move(answer)});
  }

  Campaign& campaign_;
  OwnKernels kernels_;
  std::vector<Confirmer> confirmers_;
  std::optional<Open> open_;
};

Campaign::Campaign(const CampaignPlan& plan, const Road& road, CampaignObserver& observer)
    : plan_(plan), road_(road), observer_(observer) {
  std::vector<std::size_t> favoured, others;
  for (const PlannedTarget& planned : targets_of(plan)) {
    (planned.target.property == plan.favoured ? favoured : others).push_back(states_.size());
    states_.push_back(std::make_unique<State>(plan, planned, states_.size()));
  }
  // Every other turn is a favoured one's.
  const std::size_t rounds = favoured.empty() || others.empty() ? 1 : std::max(favoured.size(), others.size());
  for (std::size_t i = 0; i < rounds && !favoured.empty() && !others.empty(); ++i) {
    turns_.push_back(favoured[i % favoured.size()]);
    turns_.push_back(others[i % others.size()]);
  }
  if (turns_.empty()) turns_ = favoured.empty() ? others : favoured;
}

Campaign::~Campaign() = default;

CampaignEnding Campaign::run() {
  for (int i = 0; i < std::max(1, plan_.jobs); ++i) {
    if (i == 0 && plan_.libfuzzer) {
      // Its thread outlives the campaign, asleep: whatever it touched last, it touches nothing after end_apart().
      auto* const job = new Job(*this, /*takes_originals=*/true);
      jobs_.begin_apart();
      std::thread([job, seed = plan_.seed] { run_libfuzzer(*job, seed, most_input_bytes); }).detach();
      continue;
    }
    jobs_.start([this, i] { Job(*this, /*takes_originals=*/i == 0).run(); });
  }
  Clock::time_point last = Clock::now();
  jobs_.wait([&] {
    if (seconds_since(last) >= 1) {
      checkpoint();
      last = Clock::now();
    }
    const CampaignObserver::Status now = status();
    const std::lock_guard own(observing_);
    observer_.tick(now);
  });
  checkpoint();
  {
    const std::lock_guard own(observing_);
    observer_.tick(status());
  }
  if (plan_.stop()) return CampaignEnding::stopped;
  return out_of_time_ ? CampaignEnding::out_of_time : CampaignEnding::complete;
}

bool Campaign::stopping() const {
  return jobs_.failed() || plan_.stop();
}

std::optional<Campaign::Stint> Campaign::next_stint() {
  const std::lock_guard lock(mutex_);
  if (stopping()) return std::nullopt;
  if (plan_.deadline && Clock::now() >= *plan_.deadline) {
    out_of_time_ = true;
    return std::nullopt;
  }
  for (std::size_t tried = 0; tried < turns_.size(); ++tried) {
    State& state = *states_[turns_[turn_++ % turns_.size()]];
    if (!state.given_back.empty()) {
      const auto [first, last] = state.given_back.back();
      state.given_back.pop_back();
      return Stint{&state, first, last};
    }
    if (state.next_k >= state.last_k) continue;
    const std::int64_t first = state.next_k;
    state.next_k = std::min(first + state.pace, state.last_k);
    return Stint{&state, first, state.next_k};
  }
  return std::nullopt;
}

void Campaign::give_back(const Stint& stint, std::int64_t from, double seconds) {
  const std::lock_guard lock(mutex_);
  State& state = *stint.state;
  if (from < stint.last_k) state.given_back.emplace_back(from, stint.last_k);
  const auto runs = static_cast<double>(from - stint.first_k);
  if (runs < 1) return;
  const double wanted = runs * stint_seconds / std::max(seconds, 1e-6);
  // At most twice as many as the last time: the first cases may have been cheap ones.
  const auto shards = static_cast<double>(plan_.shard.count);
  state.pace = static_cast<std::int64_t>(
      std::clamp(std::min(wanted, 2 * runs), shards, shards * static_cast<double>(most_pace)));
}

void Campaign::checkpoint() {
  for (const std::unique_ptr<State>& state : states_) {
    std::optional<Archive> archive;
    std::optional<std::pair<Case, Verdict>> worst;
    {
      const std::lock_guard lock(state->mutex);
      if (std::exchange(state->grew, false)) archive = state->search.archive();
      worst = std::exchange(state->worst, std::nullopt);
    }
    const std::lock_guard own(observing_);
    if (archive) observer_.archive_grew(state->subject, *archive);
    if (worst) observer_.new_worst(state->subject, worst->first, worst->second);
  }
}

CampaignObserver::Status Campaign::status() {
  CampaignObserver::Status status{.runs = runs_, .cells = 0, .findings = findings_, .worst = 0};
  for (const std::unique_ptr<State>& state : states_) {
    const std::lock_guard lock(state->mutex);
    status.cells += static_cast<std::int64_t>(state->search.archive().entries().size());
    if (!asks_for_finiteness(*state->search.target().property))
      status.worst = std::max(status.worst, state->search.archive().worst());
  }
  return status;
}

}  // namespace attest
