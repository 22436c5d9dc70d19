#include "core/oracle/tally.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/support/infinity.h"
#include "core/support/printed.h"

namespace attest::detail {
namespace {

/// Error over allowed; 0 when both are 0, inf for NaN.
double utilisation_of(double error, double allowed) {
  if (error == 0) return 0;
  const double ratio = error / allowed;
  return ratio >= 0 ? ratio : infinity;
}

Reach reach_of(const Problem& c) {
  const Shape &q = c.q().shape(), &k = c.k().shape(), &v = c.v().shape();
  if (c.operation == Operation::attention)
    return {.queries = q[2], .keys = k[2], .dk = q[3], .dv = v[3], .heads = q[1], .kv_heads = k[1], .batch = q[0]};
  const std::int64_t heads = c.heads;
  return {.queries = q[1],
          .keys = k[1],
          .dk = c[Slot::w_q].shape()[1] / heads,
          .dv = c[Slot::w_v].shape()[1] / heads,
          .heads = heads,
          .kv_heads = heads,
          .batch = q[0]};
}

}  // namespace

CaseTally::CaseTally(const Problem& c) : CaseTally(c, c.out_shape(), "out") {}
CaseTally::CaseTally(const Problem& c, const Shape& shape, std::string name)
    : shape_(shape), name_(std::move(name)), reach_(reach_of(c)) {}

void CaseTally::not_finite(std::int64_t element, double found, double exact, double allowed, int level) {
  Decision d;
  d.outcome = Outcome::violated;
  d.error = infinity;
  d.allowed = allowed;
  d.level = level;
  add(element, found, exact, d);
}

void CaseTally::add(std::int64_t element, double found, double exact, const Decision& decision) {
  add(element, found, exact, decision,
      std::isfinite(decision.error) ? utilisation_of(decision.error, decision.allowed) : infinity);
}

void CaseTally::add(std::int64_t element, double found, double exact, const Decision& decision, double utilisation) {
  level_ = std::max(level_, decision.level);
  Worst* worst = &worst_held_;
  if (decision.outcome == Outcome::violated) {
    ++violated_;
    worst = &worst_violated_;
  } else if (decision.outcome == Outcome::inconclusive) {
    ++inconclusive_;
    worst = &worst_inconclusive_;
  } else {
    ++held_;
  }
  const bool tied = utilisation == worst->utilisation;
  if (utilisation > worst->utilisation || (tied && before(element, worst->element)))
    *worst = {utilisation, element, found, exact, decision};
}

bool CaseTally::before(std::int64_t first, std::int64_t second) const {
  const std::int64_t width = std::max<std::int64_t>(1, shape_[shape_.rank() - 1]);
  const auto row = [&](std::int64_t element) { return element < 0 ? -1 - element : element / width; };
  if (row(first) != row(second)) return row(first) < row(second);
  return first >= 0 && (second < 0 || first < second);
}

void CaseTally::alarm(const ElementAlarm& bound, double lower, double upper) {
  if (!bound.covered) {
    ++alarm_->uncovered;
    return;
  }
  ++alarm_->elements;
  if (!(lower <= bound.allowed * (1 + 0x1p-20))) ++alarm_->beyond;
  alarm_->worst = std::max(alarm_->worst, utilisation_of(upper, bound.allowed));
}

std::string CaseTally::place_of(std::int64_t element) const {
  const bool lse = element < 0;
  std::int64_t rest = lse ? -1 - element : element;
  if (shape_.rank() == 3) {  // multihead: [batch, M, d_o]
    const std::int64_t k = rest % shape_[2];
    rest /= shape_[2];
    return fmt::format("out[b={}, i={}, k={}]", rest / shape_[1], rest % shape_[1], k);
  }
  if (shape_.rank() == 1) return fmt::format("{}[h={}]", name_, rest);
  std::int64_t k = 0;
  if (!lse) {
    k = rest % shape_[3];
    rest /= shape_[3];
  }
  const std::int64_t i = rest % shape_[2], h = rest / shape_[2] % shape_[1], b = rest / shape_[2] / shape_[1];
  return lse ? fmt::format("lse[b={}, h={}, i={}]", b, h, i)
             : fmt::format("{}[b={}, h={}, i={}, k={}]", name_, b, h, i, k);
}

Verdict CaseTally::verdict() const {
  Verdict v;
  v.level = level_;
  v.alarm = alarm_;
  if (held_ + violated_ > 0) v.reach = reach_;
  const auto describe = [&](const Worst& worst) {
    v.utilisation = std::max(0.0, worst.utilisation);
    v.error = worst.decision.error;
    v.allowed = worst.decision.allowed;
    // A row of the log-sum-exp is no element of out.
    v.element = std::max<std::int64_t>(worst.element, -1);
  };
  if (violated_ > 0) {
    const Worst& worst = worst_violated_;
    v.outcome = Outcome::violated;
    v.violation = worst.element < 0            ? Violation::lse
                  : std::isfinite(worst.found) ? Violation::bound
                                               : Violation::not_finite;
    describe(worst);
    v.reason = fmt::format(
        "{} = {}{}", place_of(worst.element),
        worst.decision.said.empty()
            ? fmt::format("{:.17g}; accepted is [{:.17g}, {:.17g}] (exact {:.17g}, bound {:.6g}, utilisation {:.6g})",
                          printed(worst.found), worst.exact - worst.decision.allowed,
                          worst.exact + worst.decision.allowed, worst.exact, worst.decision.allowed, worst.utilisation)
            : worst.decision.said,
        violated_ > 1 ? fmt::format("; {} more elements are violated", violated_ - 1) : "");
  } else if (inconclusive_ > 0) {
    const Worst& worst = worst_inconclusive_;
    v.outcome = Outcome::inconclusive;
    describe(worst);
    v.reason =
        !worst.decision.said.empty()
            ? fmt::format("{} = {}", place_of(worst.element), worst.decision.said)
            : fmt::format(
                  "{} = {:.17g} is within rounding of the bound {:.17g} at the highest precision (exact {:.17g})",
                  place_of(worst.element), printed(worst.found), worst.decision.allowed, worst.exact);
  } else if (held_ > 0) {
    describe(worst_held_);
  } else {
    std::size_t most = 0;
    for (std::size_t why = 1; why < excused_.size(); ++why)
      if (excused_[why] > excused_[most]) most = why;
    if (most > 0) {
      v.outcome = Outcome::excused;
      v.reason = name_of(static_cast<Excuse>(most));
    }
  }
  return v;
}

}  // namespace attest::detail
