// Ledger: what the validation counts, per kernel and regime; merges, and prints as a table.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "core/oracle/oracle.h"
#include "core/test/fleet/emulator.h"
#include "core/test/fleet/regimes.h"

namespace attest::fleet {

/// Checks of one kernel on one regime.
struct Entry {
  std::int64_t checks = 0;      ///< elements of out and rows of lse that were judged
  std::int64_t excused = 0;     ///< elements that were not
  std::int64_t violations = 0;  ///< error above the bound for certain, or not finite
  double worst = 0;             ///< largest error / bound over out
  double worst_lse = 0;         ///< the same over lse
  std::string first_violation;  ///< which element of which case
  Alarm alarm;                  ///< of the checks of out, where the ledger keeps it
  std::string first_alarm;      ///< which element of which case lies beyond the probabilistic bound
  /// How many elements of out had error / bound in [2^-(i+1), 2^-i); the last ones below 2^-39, 0 included.
  std::array<std::int64_t, 40> octaves{};

  void merge(const Entry& other);
  /// Bound over error at the median of out, to a factor of sqrt(2); inf where half the errors are 0.
  [[nodiscard]] double tightness() const;
};

class Ledger {
 public:
  Ledger() = default;
  /// Holds every answer against the probabilistic bound too.
  explicit Ledger(double alarm_probability) : alarm_probability_(alarm_probability) {}

  /// Judges one answer of a kernel that declares `claim`.
  void add(const std::string& kernel, Regime regime, std::uint64_t seed, const Case& c, const Arithmetic& claim,
           const Answer& answer);
  void merge(const Ledger& other);
  [[nodiscard]] const std::map<std::string, std::map<Regime, Entry>>& entries() const { return entries_; }
  [[nodiscard]] Entry total() const;
  /// Largest error / bound of every kernel on every regime, median tightness per kernel, and the totals.
  [[nodiscard]] std::string table() const;
  /// Largest error / probabilistic bound of every kernel on every regime, elements judged, uncovered and beyond.
  [[nodiscard]] std::string alarm_table() const;

 private:
  double alarm_probability_ = 0;
  std::map<std::string, std::map<Regime, Entry>> entries_;
};

}  // namespace attest::fleet
