#include "core/test/fleet/ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "core/bound/error_alarm.h"
#include "core/bound/error_bound.h"

namespace attest::fleet {
namespace {

/// What is known of one exact number, and how far from it an answer may be.
struct Known {
  double value;
  double certificate;
  double allowed;
};

/// The error over the bound, or inf where the answer is no number. Counts a violation if it is certain.
double check(Entry& entry, double found, const Known& known, const std::string& where) {
  ++entry.checks;
  // Accepting is what is tested, so NaN fails; the certificate speaks for the kernel.
  const double error = std::fabs(found - known.value);
  const bool accepted = error - known.certificate <= known.allowed;
  const double ratio =
      std::isfinite(error) ? (error == 0 ? 0.0 : error / known.allowed) : std::numeric_limits<double>::infinity();
  if (!accepted && entry.violations++ == 0) {
    entry.first_violation =
        fmt::format("{}: found {:a} ({}), exact {:a} ({}) within {}, allowed {}, ratio {}", where, found, found,
                    known.value, known.value, known.certificate, known.allowed, ratio);
  }
  return ratio;
}

/// Enters an error into the alarm of an entry. The certificate speaks for the kernel, as it does in a verdict.
void alarm(Entry& entry, double found, const Known& known, const ElementAlarm& bound, const std::string& where) {
  if (!bound.covered) {
    ++entry.alarm.uncovered;
    return;
  }
  ++entry.alarm.elements;
  const double error = std::fabs(found - known.value);
  const bool within = error - known.certificate <= bound.allowed * (1 + 0x1p-20);
  entry.alarm.worst = std::max(entry.alarm.worst, error == 0 ? 0.0 : error / bound.allowed);
  if (!within && entry.alarm.beyond++ == 0) {
    entry.first_alarm =
        fmt::format("{}: found {:a}, exact {:a} within {}, alarmed beyond {}, allowed {}, ratio {}", where, found,
                    known.value, known.certificate, bound.allowed, known.allowed, error / bound.allowed);
  }
}

}  // namespace

void Entry::merge(const Entry& other) {
  checks += other.checks;
  excused += other.excused;
  if (violations == 0) first_violation = other.first_violation;
  violations += other.violations;
  worst = std::max(worst, other.worst);
  worst_lse = std::max(worst_lse, other.worst_lse);
  for (std::size_t i = 0; i < octaves.size(); ++i) octaves[i] += other.octaves[i];
  if (alarm.beyond == 0) first_alarm = other.first_alarm;
  alarm.merge(other.alarm);
}

double Entry::tightness() const {
  std::int64_t left = (std::accumulate(octaves.begin(), octaves.end(), std::int64_t{0}) + 1) / 2;
  for (std::size_t i = 0; i + 1 < octaves.size(); ++i) {
    left -= octaves[i];
    if (left <= 0) return std::exp2(static_cast<double>(i) + 0.5);
  }
  return std::numeric_limits<double>::infinity();
}

void Ledger::add(const std::string& kernel, Regime regime, std::uint64_t seed, const Case& c, const Arithmetic& claim,
                 const Answer& answer) {
  Entry& entry = entries_[kernel][regime];
  const auto where = [&](const char* what, std::size_t at) {
    return fmt::format("{} on {} seed {} (M {}, N {}, dk {}), {} element {}", kernel, name_of(regime), seed,
                       c.q().shape()[2], c.k().shape()[2], c.q().shape()[3], what, at);
  };
  const AttentionBounds bounds = attention_bounds(c, claim, /*ignores_dead_values=*/true);
  // The double level cannot see the errors of an f64 kernel: its exact numbers come from balls.
  const bool needs_balls = claim.accumulate == DType::f64;
  const std::vector<ElementFacts> facts = needs_balls ? exact_elements(c, claim) : std::vector<ElementFacts>{};
  const std::vector<ElementAlarm> alarms =
      alarm_probability_ > 0 ? alarm_bounds(c, claim, alarm_probability_, /*ignores_dead_values=*/true)
                             : std::vector<ElementAlarm>{};
  const auto dv = static_cast<std::size_t>(c.v().shape()[3]);
  for (std::size_t i = 0; i < bounds.rows.size(); ++i) {
    const RowBound& row = bounds.rows[i];
    for (std::size_t at = i * dv; at < (i + 1) * dv; ++at) {
      const ElementBound& element = bounds.elements[at];
      const double found = answer.out[static_cast<std::int64_t>(at)];
      if (element.excuse != Excuse::none || (!element.finite_required && !std::isfinite(found))) {
        ++entry.excused;
        continue;
      }
      Known known{element.value, element.certificate, element.allowed};
      if (needs_balls) {
        const ElementFacts& fact = facts[at];
        const double middle = fact.exact.lower + (fact.exact.upper - fact.exact.lower) / 2;
        known = {middle, fact.exact.upper - fact.exact.lower, fact.allowed};
      }
      const double ratio = check(entry, found, known, where("out", at));
      if (!alarms.empty()) alarm(entry, found, known, alarms[at], where("out", at));
      entry.worst = std::max(entry.worst, ratio);
      const int octave = ratio > 0 ? static_cast<int>(std::clamp(std::floor(-std::log2(ratio)), 0.0, 39.0)) : 39;
      ++entry.octaves[static_cast<std::size_t>(octave)];
    }
    if (row.excuse != Excuse::none || !answer.lse.present()) continue;
    const double lse = answer.lse[static_cast<std::int64_t>(i)];
    if (!std::isfinite(lse) && !bounds.elements[i * dv].finite_required) continue;
    const double ratio = check(entry, lse, {row.lse, row.lse_certificate, row.lse_allowed}, where("lse", i));
    if (!needs_balls) entry.worst_lse = std::max(entry.worst_lse, ratio);
  }
  // The verdict itself, decided by whatever level it takes.
  if (needs_balls) {
    const Verdict verdict = judge_attention(c, answer.out, answer.lse, claim);
    if (verdict.outcome == Outcome::violated && entry.violations++ == 0) {
      entry.first_violation = where("judged", 0) + ": " + verdict.reason;
    }
  }
}

void Ledger::merge(const Ledger& other) {
  for (const auto& [kernel, regimes] : other.entries_) {
    for (const auto& [regime, entry] : regimes) entries_[kernel][regime].merge(entry);
  }
}

Entry Ledger::total() const {
  Entry total;
  for (const auto& [kernel, regimes] : entries_) {
    for (const auto& [regime, entry] : regimes) total.merge(entry);
  }
  return total;
}

std::string Ledger::table() const {
  std::string text = fmt::format("{:28}", "largest error / bound");
  for (int r = 0; r < validated_regimes; ++r) text += fmt::format("{:>11}", name_of(static_cast<Regime>(r)));
  text += fmt::format("{:>11}{:>11}{:>10}{:>10}\n", "lse", "tightness", "checks", "excused");
  for (const auto& [kernel, regimes] : entries_) {
    text += fmt::format("{:28}", kernel);
    Entry whole;
    for (int r = 0; r < validated_regimes; ++r) {
      const auto entry = regimes.find(static_cast<Regime>(r));
      if (entry == regimes.end() || entry->second.checks == 0) {
        text += fmt::format("{:>11}", "-");
        continue;
      }
      text +=
          fmt::format("{:>11}", fmt::format("{:.3g}{}", entry->second.worst, entry->second.violations > 0 ? "!" : ""));
    }
    for (const auto& [regime, entry] : regimes) whole.merge(entry);
    text +=
        fmt::format("{:11.3g}{:11.3g}{:10}{:10}\n", whole.worst_lse, whole.tightness(), whole.checks, whole.excused);
  }
  const Entry all = total();
  text += fmt::format("{} checks, {} excused, {} violations, worst {:.4g}, median tightness {:.3g}\n", all.checks,
                      all.excused, all.violations, all.worst, all.tightness());
  return text;
}

std::string Ledger::alarm_table() const {
  std::string text = fmt::format("{:28}", "largest error / alarm");
  for (int r = 0; r < validated_regimes; ++r) text += fmt::format("{:>11}", name_of(static_cast<Regime>(r)));
  text += fmt::format("{:>10}{:>11}{:>8}\n", "elements", "uncovered", "beyond");
  const auto worst = [](const Entry& entry) {
    if (entry.alarm.elements == 0) return std::string("-");
    return fmt::format("{:.3g}{}", entry.alarm.worst, entry.alarm.beyond > 0 ? "!" : "");
  };
  for (const auto& [kernel, regimes] : entries_) {
    text += fmt::format("{:28}", kernel);
    Entry whole;
    for (int r = 0; r < validated_regimes; ++r) {
      const auto entry = regimes.find(static_cast<Regime>(r));
      text += fmt::format("{:>11}", entry == regimes.end() ? "-" : worst(entry->second));
    }
    for (const auto& [regime, entry] : regimes) whole.merge(entry);
    text += fmt::format("{:10}{:11}{:8}\n", whole.alarm.elements, whole.alarm.uncovered, whole.alarm.beyond);
  }
  return text;
}

}  // namespace attest::fleet
