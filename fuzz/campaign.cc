#include "fuzz/campaign.h"

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <limits>
#include <new>
#include <optional>
#include <thread>
#include <utility>

#include "core/kernel/forwarding_kernel.h"
#include "fuzz/level.h"
#include "fuzz/libfuzzer.h"
#include "properties/language/compared.h"
#include "properties/road/case_budget.h"
#include "properties/road/repeat.h"
#include "properties/road/shrink_budget.h"

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

bool has_operation(const Manifest& manifest, Operation operation) {
  return operation == Operation::attention ? manifest.attention : manifest.multihead;
}

/// Is it violated by a kernel that was started afresh?
std::optional<bool> violated_afresh(const Kernel& kernel, const CheckOfKernel& check) {
  return FreshKernels([&] { return kernel.clone(); }, /*most=*/1, std::chrono::seconds(10)).violates(check, {});
}

/// Answers `unsupported` once the campaign is to end, so that shrinking ends at once.
class StoppableKernel final : public ForwardingKernel {
 public:
  StoppableKernel(Kernel& kernel, std::function<bool()> stop) : ForwardingKernel(kernel), stop_(std::move(stop)) {}
  [[nodiscard]] Reply run(const Case& c, std::optional<DType> output, bool want_lse) override {
    if (stop_()) return {.status = CallStatus::unsupported, .message = "the campaign ends", .out = {}, .lse = {}};
    return ForwardingKernel::run(c, output, want_lse);
  }

 private:
  std::function<bool()> stop_;
};

std::string_view kinds_of(const Case& c) {
  return c.provenance.kinds ? *c.provenance.kinds : std::string_view();
}

struct PlannedTarget {
  Target target;
  std::size_t kernel;
};

std::vector<PlannedTarget> targets_of(const CampaignPlan& plan) {
  std::vector<PlannedTarget> targets;
  for (const Property* const property : plan.properties) {
    if (is_statistical(*property)) continue;
    for (std::size_t i = 0; i < plan.kernels.size(); ++i) {
      const Manifest& manifest = plan.kernels[i]->manifest();
      if (!has_operation(manifest, property->operation)) continue;
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

bool is_statistical(const Property& property) {
  return property.floating_point.starts_with("statistical");
}

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
  /// `ended` is told when a loop of libFuzzer is over.
  Job(
      Campaign& campaign, bool owns_originals, std::function<void()> ended = [] {})
      : campaign_(campaign), kernels_(campaign.plan_.kernels.size()), ended_(std::move(ended)) {
    for (std::size_t i = 0; i < kernels_.size() && owns_originals; ++i)
      kernels_[i].kernel = campaign_.plan_.kernels[i].get();
  }

  void run() {
    try {
      while (advance()) run_input(chosen({}));
    } catch (...) {
      campaign_.fail(std::current_exception());
    }
  }

  std::optional<std::vector<std::uint8_t>> next(std::span<const std::uint8_t> of_corpus, std::uint64_t) override {
    try {
      if (advance()) return bytes_of(chosen(of_corpus));
    } catch (...) {
      campaign_.fail(std::current_exception());
    }
    // This object is never destroyed; its kernels must be, or their processes would live on.
    kernels_.clear();
    ended_();
    return std::nullopt;
  }

  void run(std::span<const std::uint8_t> bytes) override {
    try {
      const Target& target = open_->state->search.target();
      run_input(parse_input(bytes, target.dtype, target.property->operation));
    } catch (...) {
      campaign_.fail(std::current_exception());
    }
  }

 private:
  struct Own {
    std::unique_ptr<Kernel> clone;
    Kernel* kernel = nullptr;
  };
  /// The stint under way; run k is the next.
  struct Open {
    Stint stint;
    State* state;
    StoppableKernel kernel;
    BatchRecord batch;
    std::int64_t k;
    Clock::time_point start = Clock::now();
    double finding_seconds = 0;
    bool cut = false;  ///< the campaign ended during a run
  };

  Kernel& kernel(std::size_t index) {
    Own& own = kernels_[index];
    if (own.kernel == nullptr) {
      own.clone = campaign_.plan_.kernels[index]->clone();
      own.kernel = own.clone.get();
    }
    return *own.kernel;
  }

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
                         {kernel(state.kernel), [this] { return campaign_.stopping(); }},
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

  /// The input of the next run.
  Input chosen(std::span<const std::uint8_t> of_corpus) {
    State& state = *open_->state;
    Search::Plan plan;
    {
      const std::lock_guard lock(state.mutex);
      plan = state.search.plan(open_->k, of_corpus);
    }
    return Search::made(std::move(plan), state.search.target());
  }

  void run_input(const Input& input) {
    if (run_one(*open_->state, open_->kernel, open_->k, input, open_->batch.tally, open_->finding_seconds))
      ++open_->k;
    else
      open_->cut = true;
    skip_to_own();
  }

  /// Runs of other shards are finished as far as this one is concerned.
  void skip_to_own() {
    while (!open_->cut && open_->k < open_->stint.last_k && !campaign_.plan_.shard.takes(open_->k)) ++open_->k;
  }

  /// False when the campaign ended meanwhile: the run counts for nothing.
  bool run_one(State& state, Kernel& kernel, std::int64_t k, const Input& input, Tally& tally,
               double& finding_seconds) {
    const Target& target = state.search.target();
    Case c;
    try {
      c = campaign_.road_.project(case_of(input, *target.property), kernel.manifest());
    } catch (const std::bad_alloc&) {
      tally.skip(1, out_of_memory);
      return true;
    }
    const Verdict verdict = campaign_.road_.check(*target.property, kernel, c);
    // An interrupt cuts a wait for a process short: what came then is nothing that the kernel did.
    if (verdict.outcome != Outcome::held && campaign_.stopping()) return false;
    tally.add(k, verdict, kinds_of(c), 0);
    campaign_.runs_.fetch_add(1, std::memory_order_relaxed);
    show_level(state.number, quality_of(*target.property, c, verdict));
    {
      const std::lock_guard lock(state.mutex);
      state.grew = state.search.learn(k, input, c, verdict) || state.grew;
      const bool judged = verdict.outcome == Outcome::held || verdict.outcome == Outcome::violated;
      if (judged && verdict.utilisation > state.worst_known) {
        state.worst_known = verdict.utilisation;
        state.worst.emplace(c, verdict);
      }
    }
    if (verdict.outcome == Outcome::violated || verdict.outcome == Outcome::inconclusive) {
      const Clock::time_point start = Clock::now();
      report(state, kernel, k, c, verdict);
      finding_seconds += seconds_since(start);
    }
    return true;
  }

  /// Shrinks, confirms and hands on what is not known yet.
  void report(State& state, Kernel& kernel, std::int64_t k, const Case& c, const Verdict& verdict) {
    FindingRecord record{state.subject, k, "", verdict};
    const std::string kind(record.kind());
    {
      const std::lock_guard lock(state.mutex);
      if (state.of_kind[kind] >= samples_per_kind || ++state.tried[{kind, place_of(c)}] > samples_per_place) return;
    }
    Case saved = c;
    const bool violated = verdict.outcome == Outcome::violated;
    if (violated) {
      const Property& property = *state.search.target().property;
      const auto check = [&](const Case& of) {
        return [&](Kernel& asked) { return campaign_.road_.check(property, asked, of); };
      };
      const int budget = shrink_budget(verdict.violation);
      const std::int64_t times = budget >= 1000 ? 8 : 1, again = violated_again(check(c), kernel, times);
      const bool comes_back =
          again == times && (budget < 1000 || campaign_.stopping() || violated_afresh(kernel, check(c)) != false);
      if (comes_back && budget > 0) {
        try {
          Case smaller = campaign_.road_.shrink(property, kernel, c, budget);
          const Verdict then = campaign_.road_.check(property, kernel, smaller);
          if (then.outcome == Outcome::violated && !campaign_.stopping()) {
            saved = std::move(smaller);
            record.verdict = then;
          }
        } catch (const std::bad_alloc&) {
          record.verdict.reason += "; memory ran out as it was made smaller";
        }
      }
      // Bred cases follow from what came before: the calls that one takes are not looked for.
      if (!comes_back && !campaign_.stopping()) record.repetition = {.again = again, .of = times};
    }
    record.compared = compared_elements(record.verdict, kernel.manifest());
    {
      const std::lock_guard lock(state.mutex);
      int& here = state.saved[{kind, place_of(saved)}];
      if (here >= samples_per_place || state.of_kind[kind] >= samples_per_kind) return;
      ++here;
      ++state.of_kind[kind];
    }
    campaign_.findings_.fetch_add(1, std::memory_order_relaxed);
    const std::lock_guard lock(campaign_.observing_);
    campaign_.observer_.found(record, std::move(saved));
  }

  Campaign& campaign_;
  std::vector<Own> kernels_;
  std::function<void()> ended_;
  std::optional<Open> open_;
};

Campaign::Campaign(const CampaignPlan& plan, const CampaignRoad& road, CampaignObserver& observer)
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
  const int jobs = std::max(1, plan_.jobs);
  std::mutex waiting;
  std::condition_variable one_ended;
  int running = jobs;
  const auto ended = [&] {
    const std::lock_guard lock(waiting);
    --running;
    one_ended.notify_one();
  };
  {
    std::vector<std::jthread> threads;
    threads.reserve(static_cast<std::size_t>(jobs));
    for (int i = 0; i < jobs; ++i) {
      if (i == 0 && plan_.libfuzzer) {
        // Its thread outlives the campaign, asleep: whatever it touched last, it touches nothing after `ended`.
        auto* const job = new Job(*this, /*owns_originals=*/true, ended);
        std::thread([job, seed = plan_.seed] { run_libfuzzer(*job, seed, most_input_bytes); }).detach();
        continue;
      }
      threads.emplace_back([&, i] {
        Job(*this, /*owns_originals=*/i == 0).run();
        ended();
      });
    }
    Clock::time_point last = Clock::now();
    std::unique_lock lock(waiting);
    while (!one_ended.wait_for(lock, std::chrono::milliseconds(100), [&] { return running == 0; })) {
      lock.unlock();
      try {
        if (seconds_since(last) >= 1) {
          checkpoint();
          last = Clock::now();
        }
        const CampaignObserver::Status now = status();
        const std::lock_guard own(observing_);
        observer_.tick(now);
      } catch (...) {
        fail(std::current_exception());
      }
      lock.lock();
    }
  }
  if (error_) std::rethrow_exception(error_);
  checkpoint();
  {
    const std::lock_guard own(observing_);
    observer_.tick(status());
  }
  if (plan_.stop()) return CampaignEnding::stopped;
  return out_of_time_ ? CampaignEnding::out_of_time : CampaignEnding::complete;
}

bool Campaign::stopping() const {
  return failed_.load(std::memory_order_relaxed) || plan_.stop();
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

void Campaign::fail(std::exception_ptr error) {
  const std::lock_guard lock(mutex_);
  if (!error_) error_ = std::move(error);
  failed_ = true;
}

}  // namespace attest
