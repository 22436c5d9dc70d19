// The engine: cases from a source, through properties, to kernels, into the journal, on several threads. It knows no
// property by name.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/journal/journal.h"
#include "core/kernel/kernel_under_test.h"
#include "core/problem/case_file.h"
#include "properties/catalogue/property.h"
#include "properties/road/jobs.h"
#include "properties/road/road.h"
#include "reports/run/case_table.h"
#include "reports/run_folder/run_folder.h"

namespace attest {

/// A case from a file, and the file's name.
struct CapturedCase {
  std::string file;
  Case value;
  std::string property;  ///< the one property it is for; empty: all that take its operation
};

/// What is to be run.
struct Plan {
  std::vector<const Property*> properties;
  std::vector<std::unique_ptr<Kernel>> kernels;
  std::vector<DType> dtypes;  ///< empty: every dtype of every kernel
  std::uint64_t seed = 1;
  std::int64_t cases = 0;  ///< per property, kernel and dtype; of generated cases
  /// Of a kernel on a scalar wider than every dtype, which takes a hundred times as long, the first so many of them.
  std::int64_t most_cases_of_wide = std::numeric_limits<std::int64_t>::max();
  Shard shard;
  std::vector<CapturedCase> captured;  ///< not empty: these instead of generated ones
  int jobs = 1;
  bool fail_fast = false;
  std::string against;  ///< saved with every case: the kernel of road_against; empty: none
  std::optional<std::chrono::steady_clock::time_point> deadline;  ///< no case is begun after it but a batch's first
  /// Where stated, what is next follows from it: an order that nobody knows who does not know the number. Else cells
  /// take turns.
  std::optional<std::uint64_t> order{};
  CaseTable* table = nullptr;  ///< gets a row of each case; null: nobody asked for it
};

/// The properties, kernels and dtype that share cases.
struct Cell {
  const Property* property;
  DType dtype;
  std::vector<std::size_t> kernels;  ///< indices into Plan::kernels
};
[[nodiscard]] std::vector<Cell> cells_of(const Plan& plan);

/// Adds to a verdict what the kernel did wrong as it was loaded (Kernel::load_finding): it is violated then, whatever
/// the case says, which is kept behind it.
void add_load_finding(Verdict& verdict, const std::string& finding);

/// A kernel is not asked any more in a dtype where each of the first cases that were judged, as many as this, is
/// violated, and at least half of them without an output to judge: the call crashed, hung, failed, or answered with
/// another shape or dtype. (A kernel that returns q has the right shape where dk = dv.) What follows is skipped with
/// that reason: it would say the same tens of thousands of times, at the cost of a process's start or a time limit
/// each.
inline constexpr int failures_until_given_up = 8;

/// Told of what happens, one thread at a time.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void batch_done(const BatchRecord& batch) = 0;
  virtual void found(const FindingRecord& finding) = 0;
  /// Called now and then by the waiting thread.
  virtual void tick() = 0;
};

/// How the run came to its end.
enum class Ending { complete, interrupted, out_of_time, failed_fast };

class Engine {
 public:
  /// All must outlive the engine. `done` is what the journal holds already (resuming).
  Engine(const Plan& plan, const Road& road, const RunFolder& folder, JournalWriter& journal, const Journal& done,
         Observer& observer);

  /// Runs to an end and returns how. Throws what a thread threw: UsageError (the folder cannot be written),
  /// KernelLoadError (a further process cannot be started).
  Ending run();

  /// Of a property in a dtype, of all shards.
  [[nodiscard]] std::int64_t cases_of(std::size_t kernel) const;

  /// Cases to be run in all, over every subject; for progress. Those of finished batches count.
  [[nodiscard]] std::int64_t cases_planned() const;

  /// Saves the worst case of a subject (worst_k of its tally) in the run's folder, and that of its alarms, if any.
  void save_worst(const BatchRecord& whole) const;

 private:
  class Job;
  struct Told;
  struct Unit {
    const Cell* cell;
    std::int64_t first_k, last_k;
  };
  /// A finding with the case that is saved of it, and what is expected of that one.
  struct Found {
    FindingRecord record;
    Case saved;
    Tensor answer;             ///< what the kernel answered to it; not present where it was not asked or gave none
    std::vector<Case> before;  ///< the calls that it takes before it, as record.repetition names them
    std::string_view expected;
  };
  /// Whether a kernel is given up in a dtype. It follows from the plan and the kernel alone, so that jobs, shards and
  /// resumed runs agree: whoever comes first asks, whatever cases are its own.
  struct GivenUp {
    std::mutex mutex;
    bool known = false;
    const Cell* cell = nullptr;  ///< of the cases that it was asked; nullptr: it is not given up
    std::int64_t behind = 0;     ///< the last of them
    std::string reason;
  };
  [[nodiscard]] std::optional<Unit> next_unit();
  /// Null where the kernel is asked.
  [[nodiscard]] const GivenUp* given_up(DType dtype, std::size_t index, WatchedKernel& kernel, Told& told);
  /// The first k of a round. A run that may be cut short begins with a few cases of everything.
  [[nodiscard]] std::int64_t start_of(std::int64_t round) const;
  /// The cell of a place in the run's order: in each round every cell has one.
  [[nodiscard]] const Cell& cell_at(std::int64_t place);
  [[nodiscard]] bool stopping() const;
  /// The deadline is over; the run then ends out of time.
  [[nodiscard]] bool is_late();
  [[nodiscard]] bool takes(const Cell& cell, std::int64_t k) const;
  [[nodiscard]] std::optional<std::pair<std::size_t, std::int64_t>> load_case_of(std::size_t kernel) const;
  [[nodiscard]] bool stands_for_loading(const Cell& cell, std::size_t kernel, std::int64_t k) const;
  /// Case k of the cell, drawn into `made` where it is not there yet.
  [[nodiscard]] const Case& case_of(const Cell& cell, std::int64_t k, std::optional<Case>& made) const;
  void save(AnsweredCase c, const Subject& subject, std::int64_t k, const std::string& file,
            const std::string& expected) const;
  /// Which parts of a range of k no finished batch has.
  [[nodiscard]] std::vector<std::pair<std::int64_t, std::int64_t>> open_in(const Subject& subject, std::int64_t first_k,
                                                                           std::int64_t last_k) const;
  [[nodiscard]] bool wants_finding(const Subject& subject, Outcome outcome, std::int64_t k);
  void write(std::vector<Found>& findings, const BatchRecord& batch, const std::vector<MetaRecord>& notes,
             const std::string& rows);

  const Plan& plan_;
  const Road road_;
  const RunFolder& folder_;
  JournalWriter& journal_;
  Observer& observer_;
  std::vector<Cell> cells_;
  std::int64_t cases_per_cell_;
  /// By kernel: the case that what is to be said of its loading is said at, its first whatever the jobs and shards;
  /// nothing where there is nothing to be said.
  std::vector<std::optional<std::pair<std::size_t, std::int64_t>>> load_cases_;
  std::map<std::pair<std::size_t, DType>, GivenUp> given_up_;     ///< of every kernel and dtype of cells_
  std::map<Subject, std::map<std::int64_t, std::int64_t>> done_;  ///< finished ranges: first k → last k

  std::mutex mutex_;  ///< guards all below, the journal and the observer
  std::int64_t next_ = 0;
  std::vector<std::size_t> round_;  ///< cells in the order of this round, where the plan states one
  std::map<std::pair<Subject, Outcome>, std::vector<std::int64_t>> found_;  ///< k of saved findings, sorted
  std::atomic<bool> stop_ = false;
  bool failed_fast_ = false;
  std::atomic<bool> out_of_time_ = false;
  Jobs jobs_;  ///< the last member: its threads use all the others
};

}  // namespace attest
