// What a run says while it goes: a bar on a terminal, lines otherwise, findings as they come.
#pragma once

#include <chrono>
#include <optional>
#include <set>
#include <string>

#include "reports/run/engine.h"

namespace attest {

/// Which findings are printed as they come: one of each subject, and a dozen in all. One bug breaks many properties,
/// and everything is in the journal and the report.
class PrintedFindings {
 public:
  static constexpr std::size_t most = 12;
  /// What to print of a finding: itself, that there are more (once), or nothing.
  [[nodiscard]] std::string text_of(const FindingRecord& finding, const std::string& folder);
  /// What to print at the end: that there are more, where some were passed over and it was not said.
  [[nodiscard]] std::string rest();

 private:
  std::set<Subject> printed_;
  bool passed_over_ = false, said_ = false;
};

class Progress final : public Observer {
 public:
  enum class Says {
    nothing,
    findings,  ///< and nothing else
    progress,  ///< with the first finding in it
    all
  };
  /// Until all cases are done or `time` has passed.
  Progress(const RunFolder& folder, std::optional<std::chrono::milliseconds> time, Says says);
  ~Progress() override;
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void batch_done(const BatchRecord& batch) override;
  void found(const FindingRecord& finding) override;
  void tick() override;
  /// `planned` cases in all. Those of an earlier run of the same folder are part of the whole, not of the rate.
  void plan(std::int64_t planned, const Journal& earlier);
  /// Removes the bar.
  void clear();
  /// Removes the bar and says what was not printed.
  void finish();

 private:
  /// Share of the run that is done, 0 to 1, and the seconds left (-1: not known yet).
  struct Status {
    double part;
    double seconds_left;
  };
  [[nodiscard]] Status status() const;
  [[nodiscard]] std::string line(const Status& status) const;

  std::string folder_;
  PrintedFindings printed_;
  std::int64_t planned_ = 0;
  std::optional<std::chrono::milliseconds> time_;
  Says says_;
  bool terminal_;
  std::string first_found_;  ///< "attention.oracle in bf16"; empty: nothing yet
  bool drawn_ = false;
  std::int64_t done_ = 0, earlier_ = 0, violated_ = 0;
  std::chrono::steady_clock::time_point start_, last_line_;
};

/// One finding as it is printed: what, where, found and allowed, and the line that replays it.
[[nodiscard]] std::string describe(const FindingRecord& finding, const std::string& folder);

/// "3 m 20 s"
[[nodiscard]] std::string duration_text(double seconds);

}  // namespace attest
