// The engine: cases from a source, through properties, to kernels, into the journal, on several threads. It knows no
// property by name.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "attest/journal.h"
#include "attest/kernel_under_test.h"
#include "property.h"
#include "run_folder.h"

namespace attest {

/// The road a case goes: from the properties' library in the program, from fakes in tests. Called from several threads.
struct Road {
  std::function<Case(const Property&, DType, std::uint64_t seed, std::int64_t k)> generate;
  std::function<Case(Case, const Manifest&)> project;
  std::function<Verdict(const Property&, Kernel&, const Case&)> check;
  std::function<Case(const Property&, Kernel&, const Case&, int budget)> shrink;
};
/// Not 0: with the alarm (error_alarm.h) of that failure probability per element.
[[nodiscard]] Road properties_road(double alarm_probability = 0);

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
  Shard shard;
  std::vector<CapturedCase> captured;  ///< not empty: these instead of generated ones
  int jobs = 1;
  bool fail_fast = false;
  std::optional<std::chrono::steady_clock::time_point> deadline;  ///< no batch is begun after it
};

/// The properties, kernels and dtype that share cases.
struct Cell {
  const Property* property;
  DType dtype;
  std::vector<std::size_t> kernels;  ///< indices into Plan::kernels
};
[[nodiscard]] std::vector<Cell> cells_of(const Plan& plan);

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

  /// Cases to be run in all, over every subject; for progress. Those of finished batches count.
  [[nodiscard]] std::int64_t cases_planned() const;

  /// Saves the worst case of a subject (worst_k of its tally) in the run's folder, and that of its alarms, if any.
  void save_worst(const BatchRecord& whole) const;

 private:
  class Job;
  struct Unit {
    const Cell* cell;
    std::int64_t first_k, last_k;
  };
  [[nodiscard]] std::optional<Unit> next_unit();
  [[nodiscard]] bool stopping() const;
  [[nodiscard]] bool takes(const Cell& cell, std::int64_t k) const;
  [[nodiscard]] Case case_of(const Cell& cell, std::int64_t k) const;
  [[nodiscard]] Case arranged(const Case& c, const Manifest& manifest) const;
  void save(Case c, const Subject& subject, std::int64_t k, const std::string& file, const std::string& expected) const;
  [[nodiscard]] std::int64_t first_open(const Subject& subject, std::int64_t first_k, std::int64_t last_k) const;
  [[nodiscard]] bool wants_finding(const Subject& subject, Outcome outcome, std::int64_t k);
  void write(const std::vector<FindingRecord>& findings, const BatchRecord& batch);
  void fail(std::exception_ptr error);

  const Plan& plan_;
  const Road& road_;
  const RunFolder& folder_;
  JournalWriter& journal_;
  Observer& observer_;
  std::vector<Cell> cells_;
  std::int64_t cases_per_cell_;
  std::map<Subject, std::map<std::int64_t, std::int64_t>> done_;  ///< finished ranges: first k → last k

  std::mutex mutex_;  ///< guards all below, the journal and the observer
  std::int64_t next_ = 0;
  std::map<std::pair<Subject, Outcome>, std::vector<std::int64_t>> found_;  ///< k of saved findings, sorted
  std::exception_ptr error_;
  std::atomic<bool> stop_ = false;
  bool out_of_time_ = false, failed_fast_ = false;
};

}  // namespace attest
