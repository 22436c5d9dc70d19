#include "properties/language/agree.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "core/kernel/formal.h"
#include "core/kernels/core_functions.h"
#include "core/support/infinity.h"
#include "core/support/printed.h"
#include "properties/language/answer.h"

namespace attest {
namespace {

/// A bound is known to a relative 2^-20; what exceeds it by less is not called a violation.
constexpr double sure = 1 + 0x1p-18;

bool judged(Excuse excuse) {
  return excuse == Excuse::none || excuse == Excuse::vacuous;
}

/// Counts and the worst of what was seen, as a verdict.
class Comparison {
 public:
  void excuse(Excuse why) { ++excused_[static_cast<std::size_t>(why)]; }
  template <class Describe>
  void add(std::int64_t element, long double error, long double allowed, bool vague, Describe&& describe) {
    // NaN and Inf stand for an infinite error, which no tolerance takes.
    const bool exceeds = !(error <= allowed * sure) || std::isinf(error);
    if (!exceeds && vague) return excuse(Excuse::vacuous);
    ++judged_;
    const long double ratio = error == 0 ? 0 : error / allowed;
    const double utilisation = ratio >= 0 ? static_cast<double>(ratio) : infinity;
    if (exceeds) ++violations_;
    if (element_ >= 0 && (exceeds == violated_ ? !(utilisation > utilisation_) : violated_)) return;
    violated_ = exceeds;
    utilisation_ = utilisation;
    error_ = static_cast<double>(error), allowed_ = static_cast<double>(allowed), element_ = element;
    if (exceeds) reason_ = describe();
  }
  [[nodiscard]] Verdict verdict() const {
    Verdict v;
    if (judged_ == 0) {
      const auto most = std::max_element(excused_.begin(), excused_.end());
      if (*most > 0)
        return {.outcome = Outcome::excused,
                .reason = std::string(name_of(static_cast<Excuse>(most - excused_.begin())))};
      return v;  // no element at all: nothing disagrees
    }
    if (violated_) {
      v.outcome = Outcome::violated;
      v.violation = std::isfinite(error_) ? Violation::bound : Violation::not_finite;
    }
    v.utilisation = utilisation_;
    v.error = error_, v.allowed = allowed_, v.element = element_;
    v.reason = reason_;
    if (violations_ > 1) v.reason += fmt::format("; {} more elements disagree", violations_ - 1);
    return v;
  }

 private:
  std::array<std::int64_t, 8> excused_{};
  std::int64_t judged_ = 0, violations_ = 0, element_ = -1;
  bool violated_ = false;
  double utilisation_ = 0, error_ = 0, allowed_ = 0;
  std::string reason_;
};

/// How far two intervals are apart, without 2^132 units of the last bit that Wide keeps: what it rounds itself.
long double gap(const WideInterval& a, const WideInterval& b) {
  const Wide apart = std::max(a.lower - b.upper, b.lower - a.upper);
  const Wide size = abs(a.lower) + abs(a.upper) + abs(b.lower) + abs(b.upper);
  const Wide rest = apart - ldexp(size, 132 - Wide::bits());
  return rest > 0 ? static_cast<long double>(rest) : 0;
}

bool is_finite(const WideInterval& x) {
  return !is_nan(x) && !isinf(x.lower) && !isinf(x.upper);
}

/// An interval that reaches to infinity encloses, and says nothing.
bool says_nothing(const Numbers& n, std::int64_t e) {
  const auto* const wide = n.own().as<Enclosures>();
  return wide != nullptr && (*wide)[e].lower != (*wide)[e].upper && !is_nan((*wide)[e]) && !is_finite((*wide)[e]);
}

/// Of a wide scalar a number beyond the range of double is one too.
bool is_finite(const Numbers& n, std::int64_t e) {
  const auto* const wide = n.own().as<Enclosures>();
  return wide != nullptr ? is_finite((*wide)[e]) : std::isfinite(n.value(e));
}

bool is_formal(const Numbers& n) {
  return n.own().is<Expressions>();
}

bool same_element(const Result& left, const Result& right, std::int64_t e, Match match) {
  const std::int64_t l = left.origin(e), r = right.origin(e);
  if (left.run().out().is<Enclosures>()) {
    const WideInterval x = left.run().out().enclosure(l), y = right.run().out().enclosure(r);
    return (is_nan(x) && is_nan(y)) || (x.lower == y.lower && x.upper == y.upper);
  }
  const Tensor& a = left.run().out();
  const Tensor& b = right.run().out();
  const double x = a[l], y = b[r];
  if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && std::isnan(y);
  if (match == Match::values) return x == y;
  const std::size_t size = size_of(a.dtype());
  return std::memcmp(a.bytes().data() + static_cast<std::size_t>(l) * size,
                     b.bytes().data() + static_cast<std::size_t>(r) * size, size) == 0;
}

/// As formulas: identical, or not, with the difference. Elements that a side leaves undefined are excused.
Verdict identical_formulas(const Numbers& left, const Numbers& right) {
  std::int64_t judged_elements = 0;
  for (std::int64_t e = 0; e < left.elements(); ++e) {
    if (left.excuse(e) != Excuse::none || right.excuse(e) != Excuse::none) continue;
    ++judged_elements;
    const Expression a = left.formal(e), b = right.formal(e);
    if (GenericInputs::current().identical(a, b)) continue;
    Verdict v = violated(Violation::bound, fmt::format("element {}: the difference is not zero", e));
    if (a.kind() == ProofKind::number && b.kind() == ProofKind::number)
      v.reason = fmt::format("element {}: the two sides differ by a multiple of {}", e,
                             GenericInputs::current().difference(a, b));
    v.element = e;
    return v;
  }
  if (judged_elements > 0 || left.elements() == 0) return {};
  return {.outcome = Outcome::excused, .reason = std::string(name_of(Excuse::fully_masked))};
}

/// number - low and high - number as formulas that are not negative; an infinite end is none.
Verdict formally_within(const Numbers& numbers, const Numbers& low, const Numbers& high) {
  GenericInputs& inputs = GenericInputs::current();
  const auto infinite = [](const Numbers& end, std::int64_t e) { return !is_formal(end) && std::isinf(end.value(e)); };
  for (std::int64_t e = 0; e < numbers.elements(); ++e) {
    if (numbers.excuse(e) != Excuse::none) continue;
    const Expression x = numbers.formal(e);
    const bool above = infinite(low, e) || inputs.known_nonnegative(x - low.formal(e));
    if (!above || !(infinite(high, e) || inputs.known_nonnegative(high.formal(e) - x)))
      throw NotTreated(fmt::format("element {}: the signs of the terms do not tell that it is {}", e,
                                   above ? "at most what it must be" : "at least what it must be"));
  }
  return {};
}

/// Judges one pair whose finiteness has been seen to.
void compare(Comparison& comparison, const Numbers& left, const Numbers& right, std::int64_t e, long double apart = 0) {
  const Excuse a = left.excuse(e), b = right.excuse(e);
  if (!judged(a) || !judged(b)) return comparison.excuse(judged(a) ? b : a);
  const double x = left.value(e), y = right.value(e);
  const long double allowed = left.allowed(e) + right.allowed(e);
  const bool wide = left.own().present() || right.own().present();
  const bool finite = is_finite(left, e) && is_finite(right, e);
  if (says_nothing(left, e) || says_nothing(right, e)) return comparison.excuse(Excuse::infinite);
  if (!finite && !(left.finite_required(e) && right.finite_required(e))) return comparison.excuse(Excuse::overflow);
  // Whatever the two are, they would be within it.
  if (finite && std::isinf(apart + allowed)) return comparison.excuse(Excuse::infinite);
  // Rounding of this difference: a relative 2^-53 of it; with the subtraction of `apart` as much again.
  const long double differ = wide ? gap(left.enclosure(e), right.enclosure(e)) : std::fabs(x - y) * (1 - 0x1p-52);
  const long double error = !finite     ? infinity
                            : apart > 0 ? std::max<long double>(0, differ * (1 - 0x1p-52) - apart)
                                        : differ;
  comparison.add(e, error, allowed, a == Excuse::vacuous || b == Excuse::vacuous, [&] {
    if (!finite)
      return fmt::format("element {}: {} on one side and {} on the other; both must be finite", e, printed(x),
                         printed(y));
    return fmt::format(
        "element {}: {:.17g} on one side and {:.17g} on the other differ by {:.6g}; {:.6g} is allowed "
        "({:.6g} + {:.6g}{})",
        e, x, y, differ, apart + allowed, left.allowed(e), right.allowed(e),
        apart > 0 ? fmt::format(", and {:.6g} by the law", apart) : "");
  });
}

/// The elements that a violated verdict is about, of those sides that are elements of an output.
void note_sides(Verdict& v, std::initializer_list<std::reference_wrapper<const Numbers>> sides) {
  if (v.outcome != Outcome::violated || v.element < 0) return;
  for (const Numbers& side : sides) {
    if (std::optional<ComparedElement> element = side.compared(v.element)) v.compared.push_back(*std::move(element));
  }
}

}  // namespace

Match bits_if(const Kernel& kernel, std::initializer_list<Claim> claims) {
  const bool all = std::all_of(claims.begin(), claims.end(), [&](Claim c) { return kernel.manifest().claims_to(c); });
  return all ? Match::bits : Match::bound;
}

bool is_core(const Kernel& kernel) {
  return kernel.id().starts_with("core:");
}

Match bits_in_core(const Kernel& kernel) {
  const CoreFunctions* const core = core_functions(kernel.id());
  return is_core(kernel) && (core == nullptr || core->commutes) ? Match::bits : Match::bound;
}

Verdict agree(Sides sides, Match match, bool about_bits) {
  const auto& [left, right] = sides;
  if (left.shape() != right.shape()) {
    return violated(Violation::shape, fmt::format("one side has shape {}, the other {}", left.shape().to_string(),
                                                  right.shape().to_string()));
  }
  if (left.run().out().is<Expressions>()) return identical_formulas(Numbers(left), Numbers(right));
  std::int64_t same = 0, first = -1;
  for (std::int64_t e = 0; e < left.elements(); ++e) {
    const bool equal = same_element(left, right, e, match);
    same += equal;
    if (!equal && first < 0) first = e;
  }
  Verdict v;
  if (match != Match::bound) {
    if (first < 0) return v;
    const double x = left.compared(first).found, y = right.compared(first).found;
    v = violated(
        Violation::bits,
        fmt::format(
            "not {}: element {} is {:.17g} on one side and {:.17g} on the other, where the kernel "
            "claims the same{}",
            match == Match::bits ? "bitwise equal" : "equal", first, printed(x), printed(y),
            left.elements() - same > 1 ? fmt::format("; {} more elements differ", left.elements() - same - 1) : ""));
    v.error = std::fabs(x - y);
    v.element = first;
    v.compared = {left.compared(first), right.compared(first)};
    return v;
  }
  // Equal numbers are within any bound. NaN on both sides is not agreement: it must have been excused.
  bool numbers = first < 0;
  for (std::int64_t e = 0; e < left.elements() && numbers; ++e) numbers = std::isfinite(left.compared(e).found);
  if (!numbers || left.elements() == 0) v = agree({Numbers(left), Numbers(right)});
  if (about_bits) v.bits_agreed = same, v.bits_compared = left.elements();
  return v;
}

Verdict agree(NumberSides sides) {
  return agree_to_within(sides, {});
}

Verdict agree_to_within(NumberSides sides, std::span<const long double> apart) {
  const auto& [left, right] = sides;
  if (left.elements() != right.elements()) {
    return violated(Violation::shape, fmt::format("one side has shape {}, the other {}", left.shape().to_string(),
                                                  right.shape().to_string()));
  }
  if (is_formal(left) || is_formal(right)) return identical_formulas(left, right);
  Comparison comparison;
  for (std::int64_t e = 0; e < left.elements(); ++e) {
    compare(comparison, left, right, e, apart.empty() ? 0 : apart[static_cast<std::size_t>(e)]);
  }
  Verdict v = comparison.verdict();
  note_sides(v, {left, right});
  return v;
}

Verdict agree_in_lse(Sides sides, Match match) {
  const Run &left = sides.left.run(), &right = sides.right.run();
  if (!left.lse().present() || !right.lse().present()) return {};
  for (std::int64_t row = 0; row < left.lse().elements(); ++row) {
    const double x = left.lse()[row], y = right.lse()[row];
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    double allowed = 0;
    if (match == Match::bound) {
      const RowBound &a = left.row_bound(row), &b = right.row_bound(row);
      if (a.excuse != Excuse::none || b.excuse != Excuse::none) continue;
      allowed = a.lse_allowed + b.lse_allowed;
      if (!(allowed < infinity)) continue;  // there is no bound, and so no number that is asked for
    }
    // The difference itself rounds by a relative 2^-53.
    if (std::fabs(x - y) * (1 - 0x1p-52) <= allowed) continue;
    return violated(Violation::lse, fmt::format("lse {} is {:.17g} on one side and {:.17g} on the other; {:.6g} is "
                                                "allowed",
                                                row, printed(x), printed(y), allowed));
  }
  return {};
}

Verdict positive_formulas(const Numbers& numbers) {
  for (std::int64_t e = 0; e < numbers.elements(); ++e) {
    if (!GenericInputs::current().known_positive(numbers.formal(e)))
      throw NotTreated(fmt::format("element {}: the signs of its terms do not tell that it is positive", e));
  }
  return {};
}

Verdict within(const Numbers& numbers, const Numbers& low, const Numbers& high) {
  if (is_formal(numbers)) return formally_within(numbers, low, high);
  Comparison comparison;
  for (std::int64_t e = 0; e < numbers.elements(); ++e) {
    const Excuse why = numbers.excuse(e);
    if (!judged(why)) {
      comparison.excuse(why);
      continue;
    }
    const double x = numbers.value(e);
    if (says_nothing(numbers, e)) {
      comparison.excuse(Excuse::infinite);
      continue;
    }
    const bool finite = is_finite(numbers, e);
    if (!finite && !numbers.finite_required(e)) {
      comparison.excuse(Excuse::overflow);
      continue;
    }
    const double least = low.value(e), most = high.value(e);
    long double error = infinity, allowed = numbers.allowed(e);
    if (finite) {
      if (const auto* wide = numbers.own().as<Enclosures>()) {
        const Wide below = least - (*wide)[e].upper, above = (*wide)[e].lower - most;
        error = std::max<long double>(0, static_cast<long double>(std::max(below, above)));
      } else {
        error = std::max({least - x, x - most, 0.0});
      }
      allowed += x < least ? low.allowed(e) : high.allowed(e);
      if (std::isinf(allowed)) {
        comparison.excuse(Excuse::infinite);
        continue;
      }
    }
    comparison.add(e, error, allowed, why == Excuse::vacuous, [&] {
      return fmt::format("element {} is {:.17g}; it must lie in [{:.17g}, {:.17g}] to within {:.6g}", e, printed(x),
                         least, most, allowed);
    });
  }
  Verdict v = comparison.verdict();
  note_sides(v, {numbers});
  return v;
}

}  // namespace attest
