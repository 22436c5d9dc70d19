// Campaign: searches on several threads, each target by a search of its own, findings shrunk and confirmed, and what is
// known handed on every second. It knows no file and no property by name.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/journal/journal.h"
#include "core/kernel/kernel_under_test.h"
#include "core/problem/case_file.h"
#include "fuzz/search.h"
#include "properties/catalogue/property.h"
#include "properties/road/jobs.h"
#include "properties/road/road.h"

namespace attest {

/// Findings kept of one kind of violation in one place (place_of), and of one kind in all, per property, kernel and
/// dtype.
inline constexpr int samples_per_place = 3, samples_per_kind = 12;

/// A finding of an earlier campaign in the same folder.
struct EarlierFinding {
  FindingRecord record;
  std::optional<Case> saved;  ///< nothing where its file is gone
};

struct CampaignPlan {
  std::vector<const Property*> properties;
  const Property* favoured = nullptr;  ///< gets every other turn; nullptr: all take turns
  std::vector<std::unique_ptr<Kernel>> kernels;
  std::vector<DType> dtypes;  ///< empty: every dtype of every kernel
  std::uint64_t seed = 1;
  std::optional<std::int64_t> runs;  ///< per property, kernel and dtype; nothing: until the deadline or `stop`
  Shard shard;                       ///< makes the runs that it takes alone, and breeds from those alone
  int jobs = 1;
  bool libfuzzer = false;  ///< the first job's loop is libFuzzer's: once in a program, where has_libfuzzer()
  Strategy strategy;
  std::optional<std::chrono::steady_clock::time_point> deadline;
  std::function<bool()> stop = [] { return false; };  ///< asked before every call of a kernel
  // What an earlier campaign in the same folder left.
  Journal done;
  std::vector<EarlierFinding> known;
  std::map<Subject, Archive> archives;
};

/// Told of what happens, one thread at a time.
class CampaignObserver {
 public:
  virtual ~CampaignObserver() = default;
  /// A finding and the case that shows it, with the kernel's answer; may name the file it is saved in.
  virtual void found(FindingRecord& finding, AnsweredCase c) = 0;
  /// A finished range of runs, at most half a second long but for the run under way then.
  virtual void batch_done(const BatchRecord& batch) = 0;
  /// Of the waiting thread, every second and once at the end, where there is something new: the archive of a target,
  /// and the worst case that was judged.
  virtual void archive_grew(const Subject& subject, const Archive& archive) = 0;
  virtual void new_worst(const Subject& subject, const Case& c, const Verdict& verdict) = 0;

  struct Status {
    std::int64_t runs = 0;      ///< of this campaign, not of the one it resumes
    std::int64_t cells = 0;     ///< filled, over all targets
    std::int64_t findings = 0;  ///< saved
    double worst = 0;           ///< utilisation of a case that held
  };
  /// Called ten times a second by the waiting thread.
  virtual void tick(const Status& status) = 0;
};

/// The kernels, properties and dtypes that are searched: those whose entry and dtype the kernel has. Statistical
/// properties are left out: a search would find the draw that fails, which is nothing that the kernel did.
[[nodiscard]] std::vector<Subject> subjects_of(const CampaignPlan& plan);

enum class CampaignEnding { complete, out_of_time, stopped };

class Campaign {
 public:
  /// Both must outlive it.
  Campaign(const CampaignPlan& plan, const Road& road, CampaignObserver& observer);
  ~Campaign();
  Campaign(const Campaign&) = delete;
  Campaign& operator=(const Campaign&) = delete;

  /// Runs to an end and returns how. Throws what a thread or the observer threw: UsageError, KernelLoadError.
  CampaignEnding run();

 private:
  struct State;
  struct Stint;
  class Job;
  [[nodiscard]] std::optional<Stint> next_stint();
  void give_back(const Stint& stint, std::int64_t from, double seconds);
  void checkpoint();
  [[nodiscard]] CampaignObserver::Status status();
  [[nodiscard]] bool stopping() const;

  const CampaignPlan& plan_;
  const Road& road_;
  CampaignObserver& observer_;
  std::vector<std::unique_ptr<State>> states_;
  std::vector<std::size_t> turns_;  ///< indices into states_; a favoured one stands there more than once

  std::mutex mutex_;  ///< guards all below, and what is said of the ranges of a State
  std::size_t turn_ = 0;
  std::mutex observing_;  ///< guards the observer
  std::atomic<bool> out_of_time_ = false;
  std::atomic<std::int64_t> runs_ = 0, findings_ = 0;
  Jobs jobs_;  ///< the last member: its threads use all the others
};

}  // namespace attest
