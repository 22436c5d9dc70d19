// What must agree between the two sides of a law: bits where the kernel claims them, else the sum of the two bounds.
#pragma once

#include <initializer_list>
#include <span>

#include "core/kernel/kernel_under_test.h"
#include "core/measure/verdict.h"
#include "properties/language/numbers.h"
#include "properties/language/result.h"

namespace attest {

/// bound: |left - right| <= allowed + allowed. bits: the same bits (any NaN equals any NaN). values: equal as numbers
/// (+0 equals -0).
enum class Match { bound, bits, values };

/// bits where the kernel claims all of these, else bound.
[[nodiscard]] Match bits_if(const Kernel& kernel, std::initializer_list<Claim> claims);
/// bits for the core ("core:…") where CoreFunctions::commutes, bound for every other kernel (another code path).
[[nodiscard]] Match bits_in_core(const Kernel& kernel);

/// Is the kernel the generic core on one of its scalars?
[[nodiscard]] bool is_core(const Kernel& kernel);

/// The two sides of a law. Written in braces, agree({run(…), run(…)}, …), where the left side is run before the right
/// one with every compiler; the order of two function arguments is the compiler's choice, and with it which side's
/// refusal decides. It lives for the call.
struct Sides {
  const Result& left;
  const Result& right;
};
struct NumberSides {
  const Numbers& left;
  const Numbers& right;
};

/// Compares two results of one shape, element by element. An element that either side excuses (fully masked, outside
/// the domain, without a bound) is not judged within the bound; all of them are where bits must agree. NaN or Inf is a
/// violation where both sides must be finite. Excused when no element was judged. With Match::bound the verdict tells
/// how many bits agreed all the same, where the law is about bits for kernels that claim it (`about_bits`).
[[nodiscard]] Verdict agree(Sides sides, Match match, bool about_bits = false);
[[nodiscard]] Verdict agree(NumberSides sides);
/// The same of two that may lie apart[e] apart in exact arithmetic: error and utilisation are of what their difference
/// has beyond that. Where the law is an inequality that a right kernel attains, they would say nothing else.
[[nodiscard]] Verdict agree_to_within(NumberSides sides, std::span<const long double> apart);

/// The log-sum-exps of two runs on cases of the same shape: bits with Match::bits (any NaN equals any NaN), else to
/// within what both are allowed, in rows that have a bound. Held where one of them has none.
[[nodiscard]] Verdict agree_in_lse(Sides sides, Match match);

/// Formulas of a proof that are positive for all reals, by the signs of their terms: > 0 in exact arithmetic.
[[nodiscard]] Verdict positive_formulas(const Numbers& numbers);

/// Each element within [low, high] to within what it is allowed; NaN is a violation where finiteness is required.
[[nodiscard]] Verdict within(const Numbers& numbers, const Numbers& low, const Numbers& high);

}  // namespace attest
