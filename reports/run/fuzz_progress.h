// What a campaign says while it goes, and the folder that it fills.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>

#include "core/journal/journal.h"
#include "fuzz/campaign.h"
#include "reports/run_folder/run_folder.h"

namespace attest {

/// File of a subject's archive, relative to the run's folder.
[[nodiscard]] std::string archive_file_name(const Subject& subject);

/// Writes what a campaign hands on into a run's folder, prints its findings, and keeps a line of status.
class FuzzRecorder final : public CampaignObserver {
 public:
  struct Look {
    std::optional<std::chrono::milliseconds> time;  ///< what --time gives the campaign
    bool quiet = false;                             ///< findings only
    std::string against;                            ///< saved with every case; empty: none
    std::map<std::string, std::string> called{};    ///< what kernels are called, by their ids
  };
  FuzzRecorder(const RunFolder& folder, JournalWriter& journal, Look look);
  ~FuzzRecorder() override;
  FuzzRecorder(const FuzzRecorder&) = delete;
  FuzzRecorder& operator=(const FuzzRecorder&) = delete;

  void found(FindingRecord& finding, AnsweredCase c) override;
  void batch_done(const BatchRecord& batch) override;
  void archive_grew(const Subject& subject, const Archive& archive) override;
  void new_worst(const Subject& subject, const Case& c, const Verdict& verdict) override;
  void tick(const Status& status) override;
  /// Removes the line of status.
  void clear();

 private:
  [[nodiscard]] std::string file_of(const Subject& subject, std::string_view which) const;
  void save(AnsweredCase c, const Subject& subject, Outcome expected, const std::string& file) const;

  const RunFolder& folder_;
  JournalWriter& journal_;
  Look look_;
  bool terminal_, drawn_ = false;
  std::chrono::steady_clock::time_point start_, last_line_;
};

/// "12 s  120000 runs  10000/s  310 cells  worst 0.81  2 findings  48 s left"
[[nodiscard]] std::string status_line(const CampaignObserver::Status& status, double seconds,
                                      std::optional<double> seconds_left);

}  // namespace attest
