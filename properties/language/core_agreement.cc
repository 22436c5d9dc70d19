#include "properties/language/core_agreement.h"

#include <fmt/format.h>

#include <cmath>

#include "core/bound/error_bound.h"
#include "core/scalars/wide.h"
#include "core/support/errors.h"
#include "core/support/infinity.h"
#include "core/support/printed.h"
#include "properties/language/answer.h"
#include "properties/language/skip_reasons.h"

namespace attest {
namespace {

/// Sums below are evaluated in double, of fewer than 2^12 terms of one sign: 2^-40 covers their own roundings.
constexpr double evaluated = 1 + 0x1p-40;

}  // namespace

const CoreFunctions* core_of_bits(const Kernel& kernel) {
  const CoreFunctions* const core = core_functions(kernel.id());
  return core != nullptr && core->commutes ? core : nullptr;
}

Verdict about_the_core(const Kernel& kernel) {
  if (core_functions(kernel.id()) != nullptr)
    return {.outcome = Outcome::skipped,
            .reason = fmt::format("{} to the last bit, and on {} the order of factors changes a product",
                                  why_of_the_core, kernel.id())};
  return {.outcome = Outcome::skipped,
          .reason = fmt::format("{}'s own functions, which {} does not have", why_of_the_core, kernel.id())};
}

Verdict same_in_core(const Kernel& kernel, CoreFunction left, const Case& l, CoreFunction right, const Case& r) {
  const CoreFunctions* const core = core_of_bits(kernel);
  if (core == nullptr) return about_the_core(kernel);
  try {
    if (same_bits((core->*left)(l), (core->*right)(r))) return {};
  } catch (const UsageError& refused) {
    return {.outcome = Outcome::skipped, .reason = fmt::format("the core refuses the case: {}", refused.what())};
  }
  return violated(Violation::bits, "not bitwise equal: the core's two functions disagree on the same problem");
}

Verdict agree_in_core(const Values& left, const Values& right, std::span<const long double> allowed) {
  Verdict worst;
  bool judged = left.elements() == 0;
  if (left.shape() != right.shape()) {
    return violated(Violation::shape, fmt::format("one side has shape {}, the other {}", left.shape().to_string(),
                                                  right.shape().to_string()));
  }
  if (left.is<Expressions>()) {
    if (same_bits(left, right)) return {};
    return violated(Violation::bound, "the core's two functions are different formulas on the same problem");
  }
  for (std::int64_t e = 0; e < left.elements(); ++e) {
    const long double most = allowed[static_cast<std::size_t>(e)];
    if (std::isinf(most)) continue;
    judged = true;
    const WideInterval a = left.enclosure(e), b = right.enclosure(e);
    const auto apart = static_cast<long double>(std::max(a.lower - b.upper, b.lower - a.upper));
    const bool finite = !std::isnan(apart) && !is_nan(a) && !is_nan(b);
    const long double error = finite ? std::max<long double>(apart, 0) : infinity;
    Verdict v;
    v.element = e, v.error = static_cast<double>(error), v.allowed = static_cast<double>(most);
    v.utilisation = error == 0 ? 0 : static_cast<double>(error / most);
    if (!(error <= most)) {
      v.outcome = Outcome::violated;
      v.violation = finite ? Violation::bound : Violation::not_finite;
      v.reason =
          fmt::format("element {}: {:.17g} on one side and {:.17g} on the other differ by {:.6g}; {:.6g} is allowed", e,
                      printed(static_cast<double>(a.lower)), printed(static_cast<double>(b.lower)), error, most);
    }
    worst = worse_of({std::move(worst), std::move(v)});
  }
  if (!judged) return {.outcome = Outcome::excused, .reason = "outside the domain"};
  return worst;
}

Verdict equal_in_core(const Values& left, const Values& right) {
  return agree_in_core(left, right, std::vector<long double>(static_cast<std::size_t>(left.elements()), 0));
}

Sized::Sized(std::int64_t r, std::int64_t c)
    : rows(r), columns(c), size(static_cast<std::size_t>(r * c), 0.0), error(size.size(), 0) {}

Sized::Sized(const Tensor& exact, std::int64_t page)
    : Sized(exact.shape()[exact.shape().rank() - 2], exact.shape()[exact.shape().rank() - 1]) {
  for (std::int64_t e = 0; e < rows * columns; ++e)
    size[static_cast<std::size_t>(e)] = std::fabs(exact[page * rows * columns + e]);
}

Sized Sized::transposed() const {
  Sized t(columns, rows);
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      t.size[static_cast<std::size_t>(j * rows + i)] = size[static_cast<std::size_t>(i * columns + j)];
      t.error[static_cast<std::size_t>(j * rows + i)] = error[static_cast<std::size_t>(i * columns + j)];
    }
  }
  return t;
}

CoreRounding rounding_of(const Values& numbers) {
  const auto* const tensor = numbers.as<Tensor>();
  if (tensor == nullptr) {
    const auto* const wide = numbers.as<Enclosures>();
    if (wide == nullptr) return {.largest = infinity};
    return {.unit = wide->unit(), .largest = infinity, .conversions = wide->rounding().exact_inputs ? 0.0 : 2.0};
  }
  const Format& format = format_of(tensor->dtype());
  return {.unit = format.unit, .underflow = format.min_subnormal, .largest = format.largest};
}

namespace {

/// (1 + u)^count - 1, the roundings of the factors to the scalar among them.
long double chain_of(const CoreRounding& rounding, double count) {
  return std::expm1((count + rounding.conversions) * std::log1p(rounding.unit));
}

/// What may overflow has no bound, and nothing that is made of it, however small it becomes.
void note_overflow(Sized& page, std::size_t e, const CoreRounding& rounding) {
  // NaN is of a sum in which 0 stood beside what overflows.
  if (!(2 * (page.size[e] + page.error[e]) <= rounding.largest)) page.error[e] = infinity;
}

}  // namespace

Sized times(const Sized& a, const Sized& b, const CoreRounding& rounding) {
  Sized c(a.rows, b.columns);
  const long double chain = chain_of(rounding, static_cast<double>(a.columns));
  for (std::int64_t i = 0; i < c.rows; ++i) {
    for (std::int64_t j = 0; j < c.columns; ++j) {
      const auto at = static_cast<std::size_t>(i * c.columns + j);
      long double computed = 0;
      for (std::int64_t l = 0; l < a.columns; ++l) {
        const auto p = static_cast<std::size_t>(i * a.columns + l), q = static_cast<std::size_t>(l * b.columns + j);
        c.size[at] += a.size[p] * b.size[q];
        computed += (a.size[p] + a.error[p]) * (b.size[q] + b.error[q]);
        c.error[at] += a.error[p] * b.size[q] + a.size[p] * b.error[q] + a.error[p] * b.error[q];
      }
      c.error[at] += chain * computed + 2 * static_cast<double>(a.columns) * rounding.underflow;
      c.error[at] *= evaluated, c.size[at] *= evaluated;
      note_overflow(c, at, rounding);
    }
  }
  return c;
}

Sized times(const Sized& a, double scale, const CoreRounding& rounding) {
  Sized c = a;
  const long double chain = chain_of(rounding, 2);
  for (std::size_t e = 0; e < c.size.size(); ++e) {
    c.error[e] =
        (scale * (a.error[e] + chain * (a.size[e] + a.error[e])) + rounding.underflow * (1 + a.size[e] + a.error[e])) *
        evaluated;
    c.size[e] = scale * a.size[e] * evaluated;
    if (scale > rounding.largest) c.error[e] = infinity;
    note_overflow(c, e, rounding);
  }
  return c;
}

void allow(std::vector<long double>& allowed, const Sized& page) {
  allowed.insert(allowed.end(), page.error.begin(), page.error.end());
}

}  // namespace attest
