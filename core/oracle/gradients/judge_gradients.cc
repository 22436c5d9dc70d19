// Verdicts on gradients.
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "core/bound/error_alarm.h"
#include "core/oracle/error_meter.h"
#include "core/oracle/gradients/exact_gradients.h"
#include "core/oracle/gradients/gradients.h"
#include "core/oracle/gradients/group_pass.h"
#include "core/oracle/gradients/portion.h"
#include "core/oracle/rows/ball_row.h"
#include "core/oracle/tally.h"
#include "core/problem/sequences.h"
#include "core/support/infinity.h"

namespace attest {
namespace {

using detail::ArgumentSums;
using detail::Decision;
using detail::for_each_group;
using detail::GradientTask;
using detail::GroupPass;
using detail::Portion;
using detail::row_of_key;
using detail::row_of_query;
using detail::SharedGradients;

constexpr double doubt = 0x1p-20;

GroupPass& this_threads_pass() {
  detail::free_flint_caches_at_thread_end();
  thread_local GroupPass pass;
  return pass;
}

/// Empty where nobody asks: `wanted(gradient)`.
template <class Wanted>
SharedGradients shared_of(const Problem& c, const GradientOptions& options, Wanted&& wanted) {
  SharedGradients shared;
  const auto start = [&](Gradient of, double scale, std::optional<ArgumentSums>& sums) {
    const Tensor& argument = c[slot_of(of)];
    if (!has_argument_of(c, of) || !wanted(of)) return;
    sums.emplace(argument.dtype(), argument.elements(), scale);
    sums->raise_alarms(options.alarm_probability);
  };
  // A cap or a slope makes of every mask one that is added after the scale.
  const bool scaled =
      c.mask_convention == MaskConvention::pre_scale && c.softcap == 0 && !c[Slot::alibi_slopes].present();
  start(Gradient::mask, scaled ? c.scale : 1, shared.mask), start(Gradient::sink, 1, shared.sink);
  return shared;
}

/// visit(gradient, sums) of each that there is.
template <class Visit>
void for_each_shared(SharedGradients& shared, Visit&& visit) {
  if (shared.mask) visit(Gradient::mask, *shared.mask);
  if (shared.sink) visit(Gradient::sink, *shared.sink);
}

/// visit(gradient, flat index of its element, row or key within the group's sequence, head within the group, column) of
/// every element of a group that the pass knows. Keys stand first: where balls are asked for them, rows of q are among
/// these.
template <class Visit>
void for_each_element(const Problem& c, const Sequence& s, const GroupPass& pass, Visit&& visit) {
  const Shape &q = c.q().shape(), &k = c.k().shape(), &v = c.v().shape();
  const std::int64_t kv = pass.first_head() / std::max<std::int64_t>(1, pass.heads());
  for (std::int64_t j = 0; pass.has_keys() && j < s.keys; ++j) {
    const std::int64_t row = row_of_key(c, s, kv, j);
    for (std::int64_t e = 0; e < k[3]; ++e) visit(Gradient::k, row * k[3] + e, j, 0, e);
    for (std::int64_t e = 0; e < v[3]; ++e) visit(Gradient::v, row * v[3] + e, j, 0, e);
  }
  for (std::int64_t h = 0; h < pass.heads(); ++h)
    for (const std::int64_t i : pass.rows(h))
      for (std::int64_t e = 0; e < q[3]; ++e) {
        const std::int64_t row = row_of_query(c, s, pass.first_head() + h, i);
        visit(Gradient::q, row * q[3] + e, i, h, e);
      }
}

ElementBound bound_of(const GroupPass& pass, Gradient of, std::int64_t row, std::int64_t h, std::int64_t e) {
  return of == Gradient::q ? pass.query(h, row, e) : of == Gradient::k ? pass.key(row, e) : pass.value(row, e);
}

/// One case being judged.
class GradientJudge {
 public:
  GradientJudge(const GradientTask& task, const std::array<Tensor, gradient_count>& found)
      : task_(task),
        found_(found),
        tallies_{tally(Gradient::q), tally(Gradient::k), tally(Gradient::v), tally(Gradient::mask),
                 tally(Gradient::sink)},
        shared_(shared_of(task.c, task.options,
                          [&](Gradient of) { return found[static_cast<std::size_t>(of)].present(); })) {
    for (detail::CaseTally& tally : tallies_)
      if (task.options.alarm_probability > 0) tally.raise_alarms();
    for (std::size_t of = 0; task.options.measure_errors && of < meters_.size(); ++of)
      // Tables and tolerances of a run go by its dtype, of a gradient by sinks in f32, too.
      if (found[of].present()) meters_[of].emplace(found[of].dtype(), task.c.dtype());
  }

  void judge(const Sequence& s, std::int64_t kv) {
    GroupPass& pass = this_threads_pass();
    pass.run(task_, s, kv, shared_);
    judge_known(s, kv, pass);
  }
  /// So many rows of q of each head alone.
  void judge_rows(const Sequence& s, std::int64_t kv, const std::vector<std::int64_t>& counts) {
    if (std::ranges::all_of(counts, [](std::int64_t count) { return count == 0; })) return;
    GroupPass& pass = this_threads_pass();
    pass.run_rows(task_, s, kv, counts);
    judge_known(s, kv, pass);
  }
  /// After all groups.
  void judge_shared() {
    bits_ = 0;
    for_each_shared(shared_, [&](Gradient of, ArgumentSums& sums) {
      for (std::int64_t at = 0; at < sums.count(); ++at) {
        const auto alarm = [&] { return sums.alarm(at); };
        judge_element(of, at, sums.size(at), sums.bound(at), alarm, [&](long bits) -> const Arb& {
          if (bits != bits_) exact_shared_ = detail::exact_shared_gradients(task_, bits), bits_ = bits;
          const auto e = static_cast<std::size_t>(at);
          return of == Gradient::mask ? exact_shared_.mask[e] : exact_shared_.sink[e];
        });
      }
    });
  }
  [[nodiscard]] std::array<Verdict, gradient_count> verdicts(const Portion& portion) {
    std::array<Verdict, gradient_count> all;
    for (std::size_t of = 0; of < all.size(); ++of) {
      all[of] = tallies_[of].verdict();
      if (meters_[of]) all[of].errors = meters_[of]->take(task_.c.k().shape()[2]);
      if (!found_[of].present()) all[of].outcome = Outcome::skipped;
    }
    for (const Gradient of : gradients_by_inputs) {
      const auto at = static_cast<std::size_t>(of);
      if (found_[at].present()) all[at].rows_judged = portion.judged(of), all[at].rows = portion.all(of);
    }
    return all;
  }

 private:
  [[nodiscard]] detail::CaseTally tally(Gradient of) const {
    return {task_.c, task_.c[slot_of(of)].shape(), std::string(name_of(of))};
  }

  /// What a pass knows of a group.
  void judge_known(const Sequence& s, std::int64_t kv, GroupPass& pass) {
    exact_.clear(), bits_ = 0;
    for_each_element(task_.c, s, pass,
                     [&](Gradient of, std::int64_t at, std::int64_t row, std::int64_t h, std::int64_t e) {
                       if (!found_[static_cast<std::size_t>(of)].present()) return;
                       const double size = pass.size(of, row, h, e);
                       const auto alarm = [&] { return pass.alarm(of, row, h, e); };
                       judge_element(of, at, size, bound_of(pass, of, row, h, e), alarm, [&](long bits) -> const Arb& {
                         if (of == Gradient::q && bits != bits_)
                           return exact_rows_.row(task_, s, pass.first_head() + h, row, bits)(e);
                         if (bits != bits_) exact_ = exact_gradients(task_, s, kv, bits), bits_ = bits;
                         const Gradients<Arb>& page = exact_[static_cast<std::size_t>(h)];
                         return (of == Gradient::q ? page.q : of == Gradient::k ? page.k : page.v)(row, e);
                       });
                     });
    for (std::optional<detail::ErrorMeter>& meter : meters_)
      if (meter) meter->note(pass.adds(), pass.hides());
  }

  /// `size`: of its terms; `alarm_at()`: its probabilistic bound; `ball_at(bits)`: the exact element as a ball.
  template <class AlarmAt, class BallAt>
  void judge_element(Gradient of, std::int64_t at, double size, const ElementBound& bound, AlarmAt&& alarm_at,
                     BallAt&& ball_at) {
    const bool alarmed = task_.options.alarm_probability > 0;
    detail::CaseTally& tally = tallies_[static_cast<std::size_t>(of)];
    const double found = found_[static_cast<std::size_t>(of)][at];
    const bool judged = bound.excuse == Excuse::none, vacuous = bound.excuse == Excuse::vacuous;
    if (!judged && !vacuous) {
      if (alarmed) tally.uncovered(1);
      return tally.excuse(bound.excuse, 1);
    }
    std::optional<detail::ErrorMeter>& meter = meters_[static_cast<std::size_t>(of)];
    if (!std::isfinite(found)) {
      if (meter)
        meter->add_sum(at, found, bound.value,
                       {.outcome = Outcome::violated, .error = infinity, .allowed = bound.allowed}, size);
      if (alarmed) tally.alarm(alarm_at(), infinity, infinity);
      return tally.not_finite(at, found, bound.value, bound.allowed, 1);
    }
    const Decision d = decide(found, bound, ball_at);
    if (alarmed && d.outcome != Outcome::inconclusive) tally.alarm(alarm_at(), d.least, d.error);
    // One whose bound says nothing is violated all the same, and held by nobody.
    if (vacuous && d.outcome != Outcome::violated) return tally.excuse(bound.excuse, 1);
    if (meter && d.outcome != Outcome::inconclusive) meter->add_sum(at, found, bound.value, d, size);
    tally.add(at, found, bound.value, d);
  }

  template <class BallAt>
  [[nodiscard]] Decision decide(double found, const ElementBound& bound, BallAt&& ball_at) const {
    Decision d;
    d.allowed = bound.allowed;
    const auto decided = [&](double lower, double upper, bool sharp) {
      d.error = upper, d.least = lower;
      const bool held = sharp && upper <= d.allowed * (1 - doubt);
      if (!held && !(lower > d.allowed * (1 + doubt))) return false;
      d.outcome = held ? Outcome::held : Outcome::violated;
      return true;
    };
    const double apart = std::fabs(found - bound.value);
    const bool sharp = bound.certificate <= d.allowed * 0x1p-8;
    if (!task_.options.balls_only &&
        decided(apart - bound.certificate, apart * (1 + 0x1p-50) + bound.certificate, sharp))
      return d;
    d.level = 3;
    for (long bits = 128; bits <= task_.options.max_ball_precision; bits *= 2) {
      detail::Ball difference;
      const Arb& exact = ball_at(bits);
      if (exact.is_undefined()) break;
      arb_set_d(difference, found);
      arb_sub(difference, difference, exact.ball(), bits + 64);
      const double lower = detail::lower_size(difference), upper = detail::upper_size(difference);
      if (decided(lower, upper, /*sharp=*/true)) return d;
    }
    d.outcome = Outcome::inconclusive;
    return d;
  }

  const GradientTask& task_;
  const std::array<Tensor, gradient_count>& found_;
  std::array<detail::CaseTally, gradient_count> tallies_;
  std::array<std::optional<detail::ErrorMeter>, gradient_count> meters_;
  SharedGradients shared_;
  std::vector<Gradients<Arb>> exact_;  ///< of the group, to bits_
  detail::ExactQueryRows exact_rows_;
  detail::ExactSharedGradients exact_shared_;
  long bits_ = 0;
};

}  // namespace

GradientBounds gradient_bounds(const Problem& c, const BackwardInputs& given, const Arithmetic& forward,
                               const BackwardArithmetic& backward, const GradientOptions& options) {
  const GradientTask task{c, given, forward, backward, options};
  GradientBounds all;
  ElementBound padding;
  padding.excuse = Excuse::padding;
  for (const Gradient of : every_gradient)
    if (has_argument_of(c, of))
      all[static_cast<std::size_t>(of)].assign(static_cast<std::size_t>(c[slot_of(of)].elements()), padding);
  SharedGradients shared = shared_of(c, {}, [](Gradient) { return true; });
  for_each_group(c, [&](const Sequence& s, std::int64_t kv) {
    GroupPass& pass = this_threads_pass();
    pass.run(task, s, kv, shared);
    for_each_element(c, s, pass, [&](Gradient of, std::int64_t at, std::int64_t row, std::int64_t h, std::int64_t e) {
      all[static_cast<std::size_t>(of)][static_cast<std::size_t>(at)] = bound_of(pass, of, row, h, e);
    });
  });
  for_each_shared(shared, [&](Gradient of, const ArgumentSums& sums) {
    for (std::int64_t at = 0; at < sums.count(); ++at)
      all[static_cast<std::size_t>(of)][static_cast<std::size_t>(at)] = sums.bound(at);
  });
  return all;
}

GradientAlarms gradient_alarms(const Problem& c, const BackwardInputs& given, const Arithmetic& forward,
                               const BackwardArithmetic& backward, const GradientOptions& options) {
  const GradientTask task{c, given, forward, backward, options};
  GradientAlarms all;
  for (const Gradient of : every_gradient)
    if (has_argument_of(c, of))
      all[static_cast<std::size_t>(of)].assign(static_cast<std::size_t>(c[slot_of(of)].elements()), {});
  SharedGradients shared = shared_of(c, options, [](Gradient) { return true; });
  for_each_group(c, [&](const Sequence& s, std::int64_t kv) {
    GroupPass& pass = this_threads_pass();
    pass.run(task, s, kv, shared);
    for_each_element(c, s, pass, [&](Gradient of, std::int64_t at, std::int64_t row, std::int64_t h, std::int64_t e) {
      all[static_cast<std::size_t>(of)][static_cast<std::size_t>(at)] = pass.alarm(of, row, h, e);
    });
  });
  for_each_shared(shared, [&](Gradient of, ArgumentSums& sums) {
    for (std::int64_t at = 0; at < sums.count(); ++at)
      all[static_cast<std::size_t>(of)][static_cast<std::size_t>(at)] = sums.alarm(at);
  });
  return all;
}

std::array<Verdict, gradient_count> judge_gradients(const Problem& c, const BackwardInputs& given,
                                                    const std::array<Tensor, gradient_count>& found,
                                                    const Arithmetic& forward, const BackwardArithmetic& backward,
                                                    const GradientOptions& options) {
  const GradientTask task{c, given, forward, backward, options};
  GradientJudge judge(task, found);
  GradientChoice wanted{};
  std::ranges::transform(found, wanted.begin(), &Tensor::present);
  const Portion portion(c, options.rows, wanted);
  std::int64_t number = 0;
  for (const Sequence& s : sequences_of(c)) {
    for (std::int64_t kv = 0; kv < c.k().shape()[1]; ++kv)
      if (portion.is_whole(number, kv))
        judge.judge(s, kv);
      else
        judge.judge_rows(s, kv, portion.rows_of(number, kv));
    ++number;
  }
  judge.judge_shared();
  return judge.verdicts(portion);
}

}  // namespace attest
