// Verdicts on attention cases, and what else is asked of the oracle about them.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "core/bound/error_alarm.h"
#include "core/oracle/error_meter.h"
#include "core/oracle/oracle.h"
#include "core/oracle/row_oracle.h"
#include "core/oracle/tally.h"
#include "core/support/infinity.h"

namespace attest {
namespace {

using detail::Head;
using detail::RowOracle;

/// Memory kept between cases: a small case must not pay for allocation.
struct Workspace {
  Head head;
  RowOracle oracle;
};
Workspace& workspace() {
  detail::free_flint_caches_at_thread_end();
  thread_local Workspace w;
  return w;
}

Profile profile_for(const Problem& c, const Head& head, const Arithmetic& arithmetic) {
  return profile_of(arithmetic, {.keys = head.keys,
                                 .dk = head.dk,
                                 .scale = head.scale,
                                 .bias = head.bias,
                                 .convention = head.convention,
                                 .mask = c.mask().present() ? c.mask().dtype() : c.dtype()});
}

/// Calls row(its excuse) with each row evaluated, in the order of the output.
template <class Visit>
void for_each_row(const Problem& c, const Arithmetic& arithmetic, bool ignores_dead_values, bool want_lse,
                  long precision, Visit&& row) {
  Workspace& w = workspace();
  const std::int64_t batch = c.q().shape()[0], heads = c.q().shape()[1], queries = c.q().shape()[2];
  const std::int64_t group = heads / c.k().shape()[1];
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t h = 0; h < heads; ++h) {
      w.head.load(c, b, h, h % group != 0);
      const Profile profile = profile_for(c, w.head, arithmetic);
      for (std::int64_t i = 0; i < queries; ++i) {
        row(w.oracle.start(w.head, i, profile, ignores_dead_values, want_lse, precision));
      }
    }
  }
}

/// Judges one number by raising the level until it is decided.
template <class Distance>
detail::Decision decide(RowOracle& oracle, double allowed_at_first, const OracleOptions& options, Distance&& distance) {
  detail::Decision d;
  d.allowed = allowed_at_first;
  for (;;) {
    if (!oracle.certain()) break;
    double lower = 0;
    d.allowed = distance(lower, d.error);
    d.level = oracle.level();
    const double doubt = oracle.doubt();
    if (d.level >= options.first_level) {
      // The utilisation reported is that of the upper end: an enclosure as wide as the bound itself says little, which
      // sends f64 kernels on to double-double.
      const bool sharp = d.level == 3 || d.error - lower <= d.allowed * 0x1p-8;
      const bool held = sharp && d.error <= d.allowed * (1 - doubt);
      if (held || lower > d.allowed * (1 + doubt)) {
        d.outcome = held ? Outcome::held : Outcome::violated;
        return d;
      }
    }
    if (oracle.level() == 3 && oracle.precision() >= options.max_ball_precision) break;
    if (oracle.level() == 1 && oracle.evaluate_double_double()) continue;
    const long bits =
        oracle.level() == 3 ? 2 * oracle.precision() : detail::first_precision(oracle.terms().largest_score);
    if (!oracle.evaluate_balls(bits, options.max_ball_precision)) break;
  }
  d.outcome = Outcome::inconclusive;
  return d;
}

/// One case being judged, row by row.
class AttentionJudge {
 public:
  AttentionJudge(const Problem& c, const Tensor& out, const Tensor& lse, const OracleOptions& options)
      : out_(out), lse_(lse), options_(options), dv_(c.v().shape()[3]), tally_(c) {
    if (alarmed()) tally_.raise_alarms();
    if (options.measure_errors) meter_.emplace(out.dtype());
  }

  /// The next row, as the oracle of this thread has just evaluated it.
  void judge_row(Excuse excuse) {
    const std::int64_t r = row_++;
    if (excuse != Excuse::none) {
      tally_.excuse(excuse, dv_);
      return;
    }
    if (meter_) meter_->note_row(workspace().head, oracle_.row());
    row_alarmed_ = alarmed() && oracle_.certain();
    if (row_alarmed_) oracle_.evaluate_alarm(options_.alarm_probability);
    for (std::int64_t k = 0; k < dv_; ++k) judge_element(r * dv_ + k, k);
    if (meter_) meter_->end_row(oracle_);
    if (lse_.present()) judge_lse(r);
  }

  [[nodiscard]] Verdict verdict(std::int64_t keys) {
    Verdict verdict = tally_.verdict();
    if (meter_) verdict.errors = meter_->take(keys);
    return verdict;
  }

 private:
  [[nodiscard]] bool alarmed() const { return options_.alarm_probability > 0; }

  void judge_element(std::int64_t at, std::int64_t k) {
    const double found = load_element(out_.bytes().data(), out_.dtype(), at);
    const Excuse why = oracle_.element(k).excuse;
    if (why == Excuse::overflow) {
      tally_.excuse(why, 1);
    } else if (!std::isfinite(found) && !oracle_.element(k).finite_required) {
      tally_.excuse(Excuse::overflow, 1);
    } else if (!std::isfinite(found)) {
      judge_not_finite(at, k, found);
    } else if (why == Excuse::infinite) {
      tally_.excuse(why, 1);
    } else {
      judge_number(at, k, found);
    }
  }

  /// NaN or Inf where a number is required.
  void judge_not_finite(std::int64_t at, std::int64_t k, double found) {
    tally_.not_finite(at, found, oracle_.value(k), oracle_.element(k).allowed, oracle_.level());
    const detail::Decision d{.outcome = Outcome::violated, .error = infinity, .allowed = oracle_.element(k).allowed};
    if (meter_) meter_->add(oracle_, k, found, d);
    if (options_.element) tell(at, k, found, d);
    if (row_alarmed_) tally_.alarm(oracle_.alarm(k), infinity, infinity);
  }

  void judge_number(std::int64_t at, std::int64_t k, double found) {
    const detail::Decision d = decide(oracle_, oracle_.element(k).allowed, options_, [&](double& lower, double& upper) {
      oracle_.distance(k, found, lower, upper);
      return oracle_.element(k).allowed;
    });
    if (row_alarmed_ && d.outcome != Outcome::inconclusive) {
      double lower = 0, upper = 0;
      oracle_.distance(k, found, lower, upper);
      tally_.alarm(oracle_.alarm(k), lower, upper);
    }
    // Undecided as well: a correct kernel may return the far end of the range of the values, and a vacuous bound is
    // that distance, so that the two may agree to within rounding.
    if (d.outcome != Outcome::violated && oracle_.element(k).excuse == Excuse::vacuous) {
      tally_.excuse(Excuse::vacuous, 1);
      return;
    }
    tally_.add(at, found, oracle_.value(k), d);
    if (meter_ && d.outcome != Outcome::inconclusive) meter_->add(oracle_, k, found, d);
    if (options_.element && d.outcome != Outcome::inconclusive) tell(at, k, found, d);
  }

  void judge_lse(std::int64_t r) {
    const double found = load_element(lse_.bytes().data(), lse_.dtype(), r);
    if (!std::isfinite(found) && dv_ > 0 && !oracle_.element(0).finite_required) {
      tally_.excuse(Excuse::overflow, 1);
    } else if (!std::isfinite(found)) {
      tally_.not_finite(-1 - r, found, oracle_.lse(), oracle_.terms().lse_allowed, oracle_.level());
    } else if (!(oracle_.terms().lse_allowed < infinity)) {
      tally_.excuse(Excuse::infinite, 1);
    } else {
      const detail::Decision d =
          decide(oracle_, oracle_.terms().lse_allowed, options_, [&](double& lower, double& upper) {
            oracle_.lse_distance(found, lower, upper);
            return oracle_.terms().lse_allowed;
          });
      tally_.add(-1 - r, found, oracle_.lse(), d);
    }
  }

  /// Whoever listens hears of a judged element.
  void tell(std::int64_t at, std::int64_t k, double found, const detail::Decision& d) const {
    JudgedElement e{.element = at, .found = found, .lower = infinity, .upper = infinity};
    e.exact = oracle_.value(k), e.certificate = oracle_.certificate(k);
    e.allowed = d.allowed, e.outcome = d.outcome;
    if (std::isfinite(found)) oracle_.distance(k, found, e.lower, e.upper);
    options_.element(e);
  }

  const Tensor& out_;
  const Tensor& lse_;
  const OracleOptions& options_;
  std::int64_t dv_;
  std::int64_t row_ = 0;
  RowOracle& oracle_ = workspace().oracle;
  detail::CaseTally tally_;
  std::optional<detail::ErrorMeter> meter_;
  bool row_alarmed_ = false;
};

}  // namespace

Verdict judge_attention(const Problem& c, const Tensor& out, const Tensor& lse, const Arithmetic& arithmetic,
                        const OracleOptions& options) {
  AttentionJudge judge(c, out, lse, options);
  for_each_row(c, arithmetic, options.ignores_dead_values, lse.present(), options.max_ball_precision,
               [&](Excuse excuse) { judge.judge_row(excuse); });
  return judge.verdict(c.k().shape()[2]);
}

AttentionBounds attention_bounds(const Problem& c, const Arithmetic& arithmetic, bool ignores_dead_values) {
  AttentionBounds bounds;
  const std::int64_t dv = c.v().shape()[3];
  const OracleOptions options;
  RowOracle& oracle = workspace().oracle;
  for_each_row(c, arithmetic, ignores_dead_values, true, options.max_ball_precision, [&](Excuse excuse) {
    RowBound row;
    row.excuse = excuse == Excuse::none && !oracle.certain() ? Excuse::infinite : excuse;
    row.level = oracle.level();
    const bool known = row.excuse == Excuse::none;
    row.lse = known ? oracle.lse() : excuse == Excuse::fully_masked ? -infinity : std::nan("");
    row.lse_certificate = known ? oracle.lse_certificate() : infinity;
    row.lse_allowed = known ? oracle.terms().lse_allowed * (1 + oracle.doubt()) : infinity;
    row.most_E = known ? oracle.terms().most_E : infinity;
    bounds.rows.push_back(row);
    for (std::int64_t k = 0; k < dv; ++k) {
      ElementBound e;
      e.value = known ? oracle.value(k) : std::nan("");
      e.certificate = known ? oracle.certificate(k) : infinity;
      e.allowed = known ? oracle.element(k).allowed * (1 + oracle.doubt()) : infinity;
      if (known) e.hull = oracle.element(k).hull * (1 + oracle.doubt());
      e.excuse = known ? oracle.element(k).excuse : row.excuse;
      e.finite_required = known && oracle.element(k).finite_required;
      bounds.elements.push_back(e);
    }
  });
  return bounds;
}

std::vector<ElementAlarm> alarm_bounds(const Problem& c, const Arithmetic& arithmetic, double probability,
                                       bool ignores_dead_values) {
  std::vector<ElementAlarm> alarms;
  const std::int64_t dv = c.v().shape()[3];
  const OracleOptions options;
  RowOracle& oracle = workspace().oracle;
  for_each_row(c, arithmetic, ignores_dead_values, false, options.max_ball_precision, [&](Excuse excuse) {
    const bool known = excuse == Excuse::none && oracle.certain();
    if (known) oracle.evaluate_alarm(probability);
    for (std::int64_t k = 0; k < dv; ++k)
      alarms.push_back(known ? oracle.alarm(k) : ElementAlarm{infinity, infinity, false});
  });
  return alarms;
}

std::vector<ElementFacts> exact_elements(const Problem& c, const Arithmetic& arithmetic) {
  std::vector<ElementFacts> facts;
  const std::int64_t dv = c.v().shape()[3];
  const OracleOptions options;
  RowOracle& oracle = workspace().oracle;
  const Head& head = workspace().head;
  for_each_row(c, arithmetic, /*ignores_dead_values=*/true, false, options.max_ball_precision, [&](Excuse excuse) {
    const bool defined = excuse == Excuse::none || excuse == Excuse::overflow;
    const bool bounded = excuse == Excuse::none && oracle.certain();
    std::vector<ElementFacts> row(static_cast<std::size_t>(dv));
    for (std::int64_t k = 0; k < dv; ++k) {
      ElementFacts& f = row[static_cast<std::size_t>(k)];
      f.exact = {std::nan(""), std::nan("")};
      f.allowed = bounded ? oracle.element(k).allowed * (1 + oracle.doubt()) : infinity;
      f.required =
          excuse == Excuse::none && oracle.element(k).excuse != Excuse::overflow && oracle.element(k).finite_required;
    }
    if (defined) {
      detail::BallRow balls;
      const double size = excuse == Excuse::none ? oracle.terms().largest_score : 0x1p1023;
      long bits = detail::first_precision(size);
      for (bool narrow = false; !narrow && bits <= 2 * options.max_ball_precision; bits *= 2) {
        balls.evaluate(head, oracle.row(), std::min(bits, options.max_ball_precision));
        narrow = true;
        for (std::int64_t k = 0; k < dv; ++k) {
          Enclosure& e = row[static_cast<std::size_t>(k)].exact;
          e = {detail::lower_end(balls.o[k]), detail::upper_end(balls.o[k])};
          narrow = narrow && e.upper <= std::nextafter(std::nextafter(e.lower, infinity), infinity);
        }
      }
    }
    facts.insert(facts.end(), row.begin(), row.end());
  });
  return facts;
}

std::vector<bool> finite_required(const Problem& c, const Arithmetic& arithmetic) {
  std::vector<bool> required;
  const std::int64_t dv = c.v().shape()[3];
  const OracleOptions options;
  RowOracle& oracle = workspace().oracle;
  for_each_row(c, arithmetic, false, false, options.max_ball_precision, [&](Excuse excuse) {
    bool all = excuse == Excuse::none;
    for (std::int64_t k = 0; k < dv && all; ++k)
      all = oracle.element(k).excuse != Excuse::overflow && oracle.element(k).finite_required;
    required.push_back(all);
  });
  return required;
}

}  // namespace attest
