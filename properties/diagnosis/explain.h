// Explanations of violated bounds: what a kernel would have to declare of its arithmetic for its answers to be right.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/kernel/kernel_under_test.h"
#include "core/measure/error_statistics.h"
#include "properties/catalogue/property.h"

namespace attest {

/// A case that a kernel violates by more than its bound (Violation::bound).
struct BeyondBound {
  const Property* property;
  Case value;
};

/// A change of the declared arithmetic under which no case is violated and most of them hold. Never a verdict: a kernel
/// that means to compute so declares it, any other is wrong.
struct Explanation {
  std::string words;        ///< "weights rounded to bf16 before they multiply V"
  std::string declaration;  ///< the keys that change, as JSON of "arithmetic": {"weights":"bf16"}
  /// Those that are stated with a variant, as JSON of "variants": {"dropout":{"applied":"values"}}; empty: none.
  std::string variants{};
  double utilisation = 0;  ///< worst of the cases that hold then; at most 1
  double coarser = 1;  ///< the largest factor by which it makes a unit roundoff, or the error of exp or tanh, larger
  bool one_place = false;  ///< one number is kept in one narrower format, or tanh errs more, and nothing else changes
  /// Of one_place the stage that this number is of: scores, weights or sums; nothing: of several.
  std::optional<Stage> stage = {};
  std::size_t excused = 0;  ///< cases that have no useful bound then; less than half of all
  /// Further cases that have none because all their numbers are as small as what is flushed to 0 then, and whose error
  /// is no larger than that.
  std::size_t flushed = 0;
};

/// All changes of the least size that do so, the one that leaves the least room first; of formats for one place the
/// widest that does. Sums of rounded weights are not among them where the kernel, asked (probe_denominator.h), gives
/// what no such sum can. Sizes: another order or form of the same operations (base 2, splits, sums in any order,
/// flushed or truncated results), one narrower format or, where a case has a softcap, a less accurate tanh (the most
/// accurate that does), a less accurate exp likewise, two narrower formats, one or two of them and at last every step
/// in one format with order and form left open altogether. Empty where nothing that a manifest can declare does: then
/// it is no matter of precision. All cases are of one dtype that the manifest lists, and there is one at least. Cases
/// that hold when they are run again explain nothing and are passed over. Where every case is about gradients the order
/// and formats of the backward pass come first, beside another order or form of the operations that both passes have.
/// Runs the kernel on every case up to some hundred times. Where every case divides what dropout keeps, and is right
/// where nothing is dropped, the arithmetic of weights and sums is none to explain it by: then the only changes are
/// other places for that division. Where every case has slopes, and is right without them, the only changes are other
/// forms of what they add; where every case has factors, and is right by powers of two in their place, other places
/// where these act.
[[nodiscard]] std::vector<Explanation> explain(Kernel& kernel, std::span<const BeyondBound> cases);

}  // namespace attest
