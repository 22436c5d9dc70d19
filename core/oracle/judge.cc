// Verdicts on attention cases.
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "core/bound/loops/inner_loops.h"
#include "core/oracle/error_meter.h"
#include "core/oracle/oracle.h"
#include "core/oracle/rows/sampled_rows.h"
#include "core/oracle/tally.h"
#include "core/oracle/workspace.h"
#include "core/problem/descale.h"
#include "core/problem/sequences.h"
#include "core/support/infinity.h"
#include "core/support/printed.h"
#include "core/support/room.h"

namespace attest {
namespace {

using detail::Head;
using detail::RowOracle;
using detail::workspace;

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

/// Are rows of so much work compared for equal ones?
bool worth_comparing(const Head& head) {
  return head.queries >= 16 && head.keys * (head.dk + head.dv) >= 1024;
}

/// So much worse than the worst one so far may be what is judged as a prefix: a row beyond it is evaluated by itself,
/// so that the worst is named with a bound of its own, and they are few.
constexpr double most_beside_own = 1.125, most_beside_violated = 2;

/// One case being judged.
class AttentionJudge {
 public:
  AttentionJudge(const Problem& c, const Tensor& out, const Tensor& lse, const Arithmetic& arithmetic,
                 const OracleOptions& options)
      : c_(c), out_(out), lse_(lse), arithmetic_(arithmetic), options_(options), dv_(c.v().shape()[3]), tally_(c) {
    if (alarmed()) tally_.raise_alarms();
    if (options.measure_errors) meter_.emplace(out.dtype());
  }

  void judge() {
    const std::int64_t heads = c_.q().shape()[1];
    for (std::int64_t s = 0; s < std::ssize(sequences_); ++s)
      for (std::int64_t h = 0; h < heads; ++h) judge_head(s, h);
  }

  [[nodiscard]] Verdict verdict() {
    Verdict verdict = tally_.verdict();
    verdict.rows_judged = rows_judged_, verdict.rows = rows_of_output();
    if (meter_) verdict.errors = meter_->take(c_.k().shape()[2]);
    return verdict;
  }

 private:
  /// Head h of sequence number s.
  void judge_head(std::int64_t s, std::int64_t h) {
    const Sequence& own = sequences_[static_cast<std::size_t>(s)];
    const std::int64_t heads = c_.q().shape()[1], kv_heads = c_.k().shape()[1], queries = own.queries;
    const std::int64_t head = s * heads + h, wanted = std::min(rows_of_head(head), queries);
    rows_judged_ += wanted;
    if (wanted == 0 && (queries > 0 || sequences_.size() > 1)) return;
    const std::int64_t kv = s * kv_heads + h / (heads / kv_heads);
    head_.load(c_, own, h, kv == loaded_);
    loaded_ = kv;
    profile_ = profile_for(c_, head_, arithmetic_);
    first_row_ = (own.entry * heads + h) * c_.q().shape()[2] + own.first_query;
    // (Rows whose bits are equal may have factors that are not.)
    if (wanted == queries && worth_comparing(head_) && options_.short_cuts != ShortCuts::none &&
        !has_blocks(c_, Slot::q))
      equal_.find(c_, head_);
    else
      equal_.all_differ(head_.queries);
    starts_.clear(), queries_.clear();
    if (wanted == queries)
      find_starts();
    else
      detail::sample_rows(head_, wanted, static_cast<std::uint64_t>(head), starts_);
    for (std::size_t at = 0; at < queries_.size(); ++at) judge_prefixes(std::span(queries_).subspan(at));
    for (std::size_t at = 0; at < starts_.size(); ++at) judge_equal_rows(std::span(starts_).subspan(at));
  }

  /// Those of sequences.
  [[nodiscard]] std::int64_t rows_of_output() const {
    std::int64_t rows = 0;
    for (const Sequence& s : sequences_) rows += s.queries;
    return rows * c_.q().shape()[1];
  }
  /// How many rows of the head are judged: those asked for are shared out evenly.
  [[nodiscard]] std::int64_t rows_of_head(std::int64_t head) const {
    const Shape& q = c_.q().shape();
    const std::int64_t heads = std::ssize(sequences_) * q[1];
    if (options_.rows <= 0 || options_.rows >= rows_of_output()) return q[2];
    const std::int64_t most = options_.rows / heads, rest = options_.rows % heads;
    return most + (head < rest ? 1 : 0);
  }
  [[nodiscard]] bool alarmed() const { return options_.alarm_probability > 0; }

  [[nodiscard]] Sight sight_of(std::int64_t i) const { return sight(head_.sight_rule, i, head_.queries, head_.keys); }
  /// Of rows that differ: with a slope no two have one position.
  [[nodiscard]] bool same_sight(std::int64_t i, std::int64_t j) const {
    if (head_.slope != 0) return false;
    const Sight one = sight_of(i), other = sight_of(j);
    return one.first == other.first && one.last == other.last;
  }
  /// The next row that asks the same of the same keys, if the next one of its class does; -1: it does not.
  [[nodiscard]] std::int64_t same_after(std::int64_t row) const {
    const std::int64_t next = equal_.after(row);
    return next >= 0 && same_sight(row, next) ? next : -1;
  }
  /// The rows to evaluate: the first of every class, and those of it that see other keys than the one before them. But
  /// of a class that is worth it, the first one's query alone.
  void find_starts() {
    const bool prefixes = options_.short_cuts == ShortCuts::prefixes && options_.first_level <= 1 &&
                          detail::PrefixRows::worth(head_, profile_);
    for (const std::int64_t first : equal_.first())
      prefixes&& worth_a_pass(first) ? queries_.push_back(first) : start_by_themselves(first);
  }
  void start_by_themselves(std::int64_t first) {
    starts_.push_back(first);
    for (std::int64_t row = first, next = equal_.after(row); next >= 0; row = next, next = equal_.after(row))
      if (!same_sight(row, next)) starts_.push_back(next);
  }
  /// Do the rows of a class see so many keys together that one pass over them costs less, each of them no fewer than
  /// the one before and from the first key on?
  [[nodiscard]] bool worth_a_pass(std::int64_t first) const {
    std::int64_t together = 0, most = 0;
    for (std::int64_t row = first; row >= 0; row = equal_.after(row)) {
      const Sight seen = sight_of(row);
      if (seen.first != 0 || seen.last < most) return false;
      if (seen.last > most) together += seen.last;
      most = seen.last;
    }
    return together >= 4 * most && most >= 64;
  }

  /// The row rows[0] and those that equal it.
  void judge_equal_rows(std::span<const std::int64_t> rows) {
    const Excuse excuse =
        oracle_.start(head_, rows, profile_, options_.ignores_dead_values, lse_.present(), options_.max_ball_precision);
    begin_rows(excuse);
    judge_row(rows[0], excuse);
    for (std::int64_t row = same_after(rows[0]); row >= 0; row = same_after(row)) {
      oracle_.begin_again();
      judge_row(row, excuse);
    }
  }
  void judge_by_itself(std::int64_t row) {
    const Excuse excuse = oracle_.start(head_, std::span(&row, 1), profile_, options_.ignores_dead_values,
                                        lse_.present(), options_.max_ball_precision);
    begin_rows(excuse);
    judge_row(row, excuse);
    // What a row could be the worst by once more is that of its own bound.
    own_held_ = std::max(own_held_, tally_.worst_held());
    own_violated_ = std::max(own_violated_, tally_.worst_violated());
  }

  /// The rows of the class that begins with rows[0].
  void judge_prefixes(std::span<const std::int64_t> rows) {
    std::int64_t least = 0, most = 0;
    for (std::int64_t row = rows[0]; row >= 0; row = equal_.after(row)) {
      most = sight_of(row).last;
      if (least == 0) least = most;
    }
    if (!prefixes_.start(head_, rows, least, most, profile_, options_.ignores_dead_values, lse_.present()))
      return start_by_themselves(rows[0]);
    for (std::int64_t row = rows[0]; row >= 0;) {
      // The rows of one prefix stand together.
      const bool known = prefixes_.go_to(sight_of(row).last);
      if (!known) judge_equal_rows(std::span(&row, 1));
      std::int64_t last = row;
      for (std::int64_t same = row; same >= 0; last = same, same = same_after(same))
        if (known && !judge_prefix(same)) judge_by_itself(same);
      row = equal_.after(last);
    }
  }

  /// Judges row i by what is known of it as a prefix. False, and nothing has been judged, where that does not decide
  /// every element of it, or one may be the worst of the case.
  bool judge_prefix(std::int64_t i) {
    const std::int64_t r = first_row_ + i;
    detail::fit(found_, dv_);
    detail::decode_range(out_, r * dv_, dv_, found_.data());
    double worst = 0;
    const double share = (1 - detail::doubt_double) * (1 - 0x1p-40);
    const bool held = detail::inner_loops().compare(found_.data(), prefixes_.value(), prefixes_.certificate(),
                                                    prefixes_.allowed(), share, dv_, &worst);
    if (held ? !(worst <= most_beside_own * own_held_) : !decided_as_prefix()) return false;
    if (lse_.present() && !lse_held_as_prefix(r)) return false;
    if (alarmed()) tally_.uncovered(dv_);
    const bool as_a_whole = held && worst * (1 + 0x1p-40) < tally_.worst_held();
    if (as_a_whole) tally_.hold(dv_, 1);
    for (std::int64_t k = 0; k < dv_ && !(as_a_whole && !meter_ && !options_.element); ++k)
      take_as_prefix(r * dv_ + k, k, !as_a_whole);
    if (meter_) meter_->end_row(nullptr);
    if (lse_.present()) {
      const double found = load_element(lse_.bytes().data(), lse_.dtype(), r);
      tally_.add(-1 - r, found, prefixes_.lse(), lse_decision(found));
    }
    return true;
  }

  /// What is decided of column k of the prefix, with errors from above.
  [[nodiscard]] detail::Decision decision_as_prefix(std::int64_t k) const {
    const double found = found_[static_cast<std::size_t>(k)], value = prefixes_.value()[k];
    const double radius = prefixes_.certificate()[k], d = std::fabs(found - value);
    detail::Decision decision{.error = infinity, .allowed = prefixes_.allowed()[k]};
    if (!std::isfinite(found)) {
      if (prefixes_.finite_required()) decision.outcome = Outcome::violated;
      return decision;
    }
    decision.error = d * (1 + 0x1p-50) + radius;
    if (decision.error <= decision.allowed * (1 - detail::doubt_double))
      decision.outcome = Outcome::held;
    else if (d * (1 - 0x1p-50) - radius > decision.allowed * (1 + detail::doubt_double))
      decision.outcome = Outcome::violated;
    return decision;
  }
  /// Is every element of the prefix held or violated for certain, and none of them so much worse than the worst that
  /// its own bound was asked about?
  [[nodiscard]] bool decided_as_prefix() const {
    for (std::int64_t k = 0; k < dv_; ++k) {
      const detail::Decision d = decision_as_prefix(k);
      if (d.outcome == Outcome::inconclusive) return false;
      const bool held = d.outcome == Outcome::held;
      const double beside = held ? most_beside_own * own_held_ : most_beside_violated * own_violated_;
      if (!(d.error <= beside * d.allowed)) return false;
    }
    return true;
  }
  /// `count`: it is not in the tally yet.
  void take_as_prefix(std::int64_t at, std::int64_t k, bool count) {
    const detail::Decision d = decision_as_prefix(k);
    const double found = found_[static_cast<std::size_t>(k)], exact = prefixes_.value()[k];
    if (count) tally_.add(at, found, exact, d);
    if (meter_) meter_->add(at, k, found, exact, d);
    if (!options_.element) return;
    JudgedElement e{.element = at, .found = found, .exact = exact, .certificate = prefixes_.certificate()[k]};
    e.lower = std::fabs(found - exact) * (1 - 0x1p-50) - e.certificate, e.upper = d.error;
    if (!std::isfinite(found)) e.lower = infinity;
    e.allowed = d.allowed, e.outcome = d.outcome;
    options_.element(e);
  }

  [[nodiscard]] detail::Decision lse_decision(double found) const {
    const double error = std::fabs(found - prefixes_.lse()) * (1 + 0x1p-50) + prefixes_.lse_certificate();
    return {.outcome = Outcome::held, .error = error, .allowed = prefixes_.lse_allowed()};
  }
  [[nodiscard]] bool lse_held_as_prefix(std::int64_t r) const {
    const detail::Decision d = lse_decision(load_element(lse_.bytes().data(), lse_.dtype(), r));
    return prefixes_.lse_certificate() <= d.allowed * (0x1p-9 * (1 - 0x1p-20)) &&
           d.error <= d.allowed * (1 - detail::doubt_double) && d.error <= most_beside_own * own_held_ * d.allowed;
  }

  /// What is the same for all the rows that the oracle is the answer to.
  void begin_rows(Excuse excuse) {
    row_alarmed_ = plain_ = false;
    if (excuse != Excuse::none) return;
    if (meter_) meter_->note_row(head_, oracle_.row());
    row_alarmed_ = alarmed() && oracle_.certain();
    if (row_alarmed_) oracle_.evaluate_alarm(options_.alarm_probability);
    plain_ =
        !row_alarmed_ && !options_.element && options_.first_level <= 1 && oracle_.certain() && oracle_.level() == 1;
    for (auto* column : {&found_, &radius_, &allowed_}) detail::fit(*column, dv_);
    for (std::int64_t k = 0; k < dv_ && plain_; ++k) {
      const detail::ElementTerms& e = oracle_.element(k);
      // Sharp enough for decide(), whatever is found within the bound.
      plain_ = e.excuse == Excuse::none && e.allowed > 0 && e.allowed < infinity &&
               e.certificate <= e.allowed * (0x1p-9 * (1 - 0x1p-20));
      allowed_[static_cast<std::size_t>(k)] = e.allowed;
      radius_[static_cast<std::size_t>(k)] = e.certificate;
    }
  }

  /// Row i of the head, to which the oracle is the answer.
  void judge_row(std::int64_t i, Excuse excuse) {
    const std::int64_t r = first_row_ + i;
    if (excuse == Excuse::fully_masked) judge_masked_row(r);
    if (excuse != Excuse::none) return tally_.excuse(excuse, dv_);
    if (!held_as_a_whole(r)) {
      for (std::int64_t k = 0; k < dv_; ++k) judge_element(r * dv_ + k, k);
    }
    if (meter_) meter_->end_row(&oracle_);
    if (lse_.present()) judge_lse(r);
  }

  /// A row that sees no key is what the kernel declares of it. Its log-sum-exp is -inf, which is what no key adds up
  /// to; beside an output of NaN it may be NaN, too.
  void judge_masked_row(std::int64_t r) {
    const bool nan = options_.fully_masked == FullyMaskedRow::nan;
    if (!nan && options_.fully_masked != FullyMaskedRow::zero) return;
    const auto judge = [&](const Tensor& of, std::int64_t element, std::int64_t at, double due) {
      const double found = load_element(of.bytes().data(), of.dtype(), element);
      if (found == due || (nan && std::isnan(found))) return;
      detail::Decision d{.outcome = Outcome::violated, .error = infinity};
      d.said = fmt::format("{} in a row that sees no key, where the manifest declares {}", printed(found),
                           name_of(options_.fully_masked));
      tally_.add(at, found, due, d);
    };
    const double due = nan ? std::numeric_limits<double>::quiet_NaN() : 0;
    for (std::int64_t k = 0; k < dv_; ++k) judge(out_, r * dv_ + k, r * dv_ + k, due);
    if (lse_.present()) judge(lse_, r, -1 - r, -infinity);
  }

  /// Takes the row if every element of it is held in double, by less than the worst one so far. The last of a
  /// decision's bits do not matter here, since what is near any edge is left to decide().
  bool held_as_a_whole(std::int64_t r) {
    if (!plain_ || dv_ == 0) return false;
    detail::decode_range(out_, r * dv_, dv_, found_.data());
    double worst = 0;
    const double share = (1 - detail::doubt_double) * (1 - 0x1p-40);
    if (!detail::inner_loops().compare(found_.data(), oracle_.values(), radius_.data(), allowed_.data(), share, dv_,
                                       &worst))
      return false;
    if (!(worst * (1 + 0x1p-40) < tally_.worst_held())) return false;
    tally_.hold(dv_, 1);
    for (std::int64_t k = 0; meter_ && k < dv_; ++k) {
      const double found = found_[static_cast<std::size_t>(k)];
      detail::Decision d{.outcome = Outcome::held, .allowed = oracle_.element(k).allowed};
      double lower = 0;
      oracle_.distance(k, found, lower, d.error);
      meter_->add(r * dv_ + k, k, found, oracle_.value(k), d);
    }
    return true;
  }

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
    if (meter_) meter_->add(at, k, found, oracle_.value(k), d);
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
    if (meter_ && d.outcome != Outcome::inconclusive) meter_->add(at, k, found, oracle_.value(k), d);
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

  const Problem& c_;
  const Tensor& out_;
  const Tensor& lse_;
  const Arithmetic& arithmetic_;
  const OracleOptions& options_;
  const std::vector<Sequence> sequences_ = sequences_of(c_);
  Profile profile_;  ///< of the head
  std::int64_t dv_;
  Head& head_ = workspace().head;
  RowOracle& oracle_ = workspace().oracle;
  detail::EqualRows& equal_ = workspace().equal;
  detail::PrefixRows& prefixes_ = workspace().prefixes;
  std::vector<std::int64_t>&starts_ = workspace().starts, &queries_ = workspace().queries;
  std::vector<double>&found_ = workspace().found, &radius_ = workspace().radius, &allowed_ = workspace().allowed;
  detail::CaseTally tally_;
  std::optional<detail::ErrorMeter> meter_;
  std::int64_t loaded_ = -1;  ///< the head of k and v that head_ has
  std::int64_t rows_judged_ = 0;
  std::int64_t first_row_ = 0;  ///< of the head, in the output
  bool row_alarmed_ = false;
  double own_held_ = 0, own_violated_ = 0;  ///< the worst when a row in a class of prefixes was last judged by itself
  bool plain_ = false;  ///< the columns of radius_ and allowed_ say all that there is to say of the rows at hand
};

}  // namespace

Verdict judge_attention(const Problem& c, const Tensor& out, const Tensor& lse, const Arithmetic& arithmetic,
                        const OracleOptions& options) {
  AttentionJudge judge(c, out, lse, arithmetic, options);
  judge.judge();
  return judge.verdict();
}

}  // namespace attest
