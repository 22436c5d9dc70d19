#include "core/oracle/wide_oracle.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "core/oracle/tally.h"
#include "core/oracle/wide_case.h"
#include "core/scalars/wide.h"
#include "core/support/infinity.h"
#include "core/support/printed.h"

namespace attest {
namespace {

/// Bits of the scalar, or of this thread where it is one of intervals.
long bits_of(const WideRounding& rounding) {
  return rounding.unit > 0 ? std::lround(-std::log2(rounding.unit)) : AskedPrecision::bits();
}

/// What is left of a ball beside a bound of a few units.
constexpr long further_bits = 96, doublings = 3;

bool is_required(Excuse excuse) {
  return excuse == Excuse::none || excuse == Excuse::vacuous || excuse == Excuse::infinite;
}

/// Judges elements one by one; what it cannot decide it leaves.
class WideJudge {
 public:
  WideJudge(const Problem& c, const Enclosures& out)
      : out_(out), encloses_(out.unit() == 0), tally_(c), decided_(static_cast<std::size_t>(out.elements()), false) {}

  void judge(std::int64_t e, const detail::WideElement& known, long bits, bool last) {
    const auto at = static_cast<std::size_t>(e);
    if (decided_[at]) return;
    decided_[at] = true;
    if (!is_required(known.excuse)) return tally_.excuse(known.excuse, 1);
    const WideInterval& found = out_[e];
    const double number = middle_of(found), exact = detail::middle(known.exact);
    const bool wide_open = !is_nan(found) && found.lower != found.upper && (isinf(found.lower) || isinf(found.upper));
    if (wide_open) return tally_.excuse(Excuse::infinite, 1);
    if (is_nan(found) || isinf(found.lower))
      return tally_.not_finite(e, number, exact, static_cast<double>(known.allowed.size()), 3);
    if (known.excuse == Excuse::infinite) return tally_.excuse(known.excuse, 1);
    detail::Ball distance;
    set(distance, found);
    arb_sub(distance, distance, known.exact, bits + 64);
    const detail::Mag most(distance);
    detail::Mag least;
    arb_get_mag_lower(least.data(), distance);
    const bool held = encloses_ ? arb_contains_zero(distance) != 0 : most <= known.allowed;
    const bool violated = !held && known.allowed < least;
    if (!held && !violated && !last) {
      decided_[at] = false;
      ++undecided_;
      return;
    }
    if (!violated && known.excuse == Excuse::vacuous) return tally_.excuse(known.excuse, 1);
    // The errors of a mean of intervals are theirs to know: what counts is whether they enclose it.
    const long double error = encloses_ ? least.size() : most.size(), allowed = known.allowed.size();
    detail::Decision d{.outcome = held       ? Outcome::held
                                  : violated ? Outcome::violated
                                             : Outcome::inconclusive,
                       .error = static_cast<double>(error),
                       .allowed = static_cast<double>(allowed),
                       .level = 3};
    const double utilisation = encloses_ && held ? 0 : error == 0 ? 0 : static_cast<double>(error / allowed);
    if (!held) {
      d.said = fmt::format(
          "{} is {:.3g} from the exact {:.17g} in balls of {} bits; {:.3g} is allowed (utilisation "
          "{:.6g})",
          found.lower.str(17), error, printed(exact), bits, allowed, utilisation);
    }
    tally_.add(e, number, exact, d, utilisation);
  }

  [[nodiscard]] std::int64_t take_undecided() { return std::exchange(undecided_, 0); }
  [[nodiscard]] Verdict verdict() const { return tally_.verdict(); }

 private:
  /// Exactly, or around both ends.
  static void set(detail::Ball& ball, const WideInterval& x) {
    if (x.lower == x.upper) {
      arf_set_mpfr(arb_midref(static_cast<arb_ptr>(ball)), x.lower.data());
      return;
    }
    arb_set_interval_mpfr(ball, x.lower.data(), x.upper.data(), Wide::bits() + 64);
  }

  const Enclosures& out_;
  bool encloses_;
  detail::CaseTally tally_;
  std::vector<bool> decided_;
  std::int64_t undecided_ = 0;
};

}  // namespace

std::vector<WideBound> wide_bounds(const Problem& c, const WideRounding& rounding) {
  std::vector<WideBound> bounds(static_cast<std::size_t>(c.out_shape().elements()));
  detail::WideCase problem(c, rounding);
  problem.evaluate(bits_of(rounding) + further_bits, [&](std::int64_t e, const detail::WideElement& known) {
    WideBound& b = bounds[static_cast<std::size_t>(e)];
    b.excuse = known.excuse;
    b.allowed = is_required(known.excuse) ? known.allowed.size() : infinity;
    b.hull = is_required(known.excuse) ? known.hull.size() : infinity;
    b.value = is_required(known.excuse) ? detail::middle(known.exact) : std::nan("");
    b.certificate = is_required(known.excuse) ? detail::middle_error(known.exact) : infinity;
  });
  return bounds;
}

Verdict judge_wide(const Problem& c, const Enclosures& out) {
  WideJudge judge(c, out);
  detail::WideCase problem(c, out.rounding());
  long bits = bits_of(out.rounding()) + further_bits;
  for (long round = 0; round <= doublings; ++round, bits *= 2) {
    problem.evaluate(bits, [&](std::int64_t e, const detail::WideElement& known) {
      judge.judge(e, known, bits, round == doublings);
    });
    if (judge.take_undecided() == 0) break;
  }
  return judge.verdict();
}

}  // namespace attest
