// The oracle: the exact answer of a case as a certified enclosure, and the judgement of an output against it and the
// proved bound (error-bounds.md section 5: double with its certificate, then double-double, then Arb balls).
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/bound/error_bound.h"
#include "core/kernel/arithmetic.h"
#include "core/measure/verdict.h"
#include "core/problem/fully_masked_row.h"
#include "core/problem/problem.h"
#include "core/value/tensor.h"

namespace attest {

/// An element of out that was held or violated.
struct JudgedElement {
  std::int64_t element = 0;  ///< flat row-major index
  double found = 0;
  double exact = 0, certificate = 0;  ///< proved: the exact answer is within `certificate` of `exact`
  double lower = 0, upper = 0;        ///< the error lies between them; both inf for NaN or Inf found
  double allowed = 0;                 ///< the bound B
  Outcome outcome = Outcome::held;
};

/// Which rows are evaluated together.
enum class ShortCuts {
  none,        ///< every row by itself
  equal_rows,  ///< those that ask the same of the same keys
  prefixes     ///< those, and causal rows of one query
};

/// How far the oracle may go.
struct OracleOptions {
  int first_level = 0;             ///< 0: chosen by what is undecided; 1 double, 2 double-double, 3 balls at the least
  long max_ball_precision = 4096;  ///< bits; undecided beyond it is inconclusive
  /// The kernel claims that hidden keys and values, whatever they hold, do not matter. Without the claim a row is
  /// excused when a hidden key's score may overflow, or its value is not finite: score + (-inf) and 0 * value are then
  /// NaN.
  bool ignores_dead_values = false;
  /// What the kernel declares of a row that sees no key, and whose hidden scores and values do not matter: where that
  /// is NaN or 0 another answer is violated; judge_attention only.
  FullyMaskedRow fully_masked = FullyMaskedRow::undeclared;
  /// Not 0: the failure probability per element of the alarm of error_alarm.h, which judge_attention then raises beside
  /// its verdict, for every finite bound, vacuous ones included; not for lse.
  double alarm_probability = 0;
  /// Measure the errors of the judged elements (Verdict::errors); judge_attention only.
  bool measure_errors = false;
  /// Not 0: judge no more rows of the output than these, the same share of each head (sampled_rows.h): for cases of
  /// which hardly a row repeats and that are too large to be judged as a whole. Any row may be judged without the
  /// others (attention.query-deletion). judge_attention only.
  std::int64_t rows = 0;
  /// Told of every judged element of out: row by row as the output has them, but that rows of a head that ask the same
  /// of the same keys follow the first of them; judge_attention only.
  std::function<void(const JudgedElement&)> element = nullptr;
  /// For tests, which show what difference it makes.
  ShortCuts short_cuts = ShortCuts::prefixes;
};

/// Judges `out` (and `lse` where present) of an attention case element by element: passes when error <= bound is
/// certain, violates when error > bound is certain, escalates otherwise. A row outside the domain of definition, with
/// an infinite bound, or with a vacuous one (ElementBound::excuse) is excused, and so is a fully masked row that
/// is as declared. NaN or Inf where a finite answer is required is violated, a vacuous or infinite bound
/// notwithstanding. The case is violated if one element is, else inconclusive if one is, else
/// held if one was judged (or there is none), else excused. Utilisation, error and element are those of the worst
/// judged element, of the worst violated one where there is one; `element` is -1 - row when that was the row's lse.
///
/// Rows that ask the same of the same keys are evaluated once. Causal rows of one query are evaluated as prefixes of
/// one another, with a bound that is proved of them as well and at most about twice as large as their own
/// (error-bounds.md 5.1): a row that could be the worst of the case, or that it does not decide, is evaluated by
/// itself. No alarm is raised of them; they are counted as uncovered. `out` has the case's out_shape(); its dtype is
/// the arithmetic's output.
[[nodiscard]] Verdict judge_attention(const Problem& c, const Tensor& out, const Tensor& lse,
                                      const Arithmetic& arithmetic, const OracleOptions& options = {});

/// The same for a multihead case (error-bounds.md 1.5 as corrected by 1.7).
[[nodiscard]] Verdict judge_multihead(const Problem& c, const Tensor& out, const Arithmetic& arithmetic,
                                      const OracleOptions& options = {});

/// An enclosure [lower, upper] of an exact real number.
struct Enclosure {
  double lower = 0.0;
  double upper = 0.0;
};
/// What is known about one output element, for reports and replay.
struct ElementFacts {
  Enclosure exact;       ///< of the exact value; NaN where there is none (fully masked, NaN among the inputs)
  double allowed = 0.0;  ///< the bound B (inf: none)
  bool required = true;  ///< inside the domain of definition
};
/// Facts for every element of an attention case's output, or of some rows of it, row-major, computed in balls: the
/// enclosure's ends are neighbouring doubles or closer than 2^-60 relatively.
[[nodiscard]] std::vector<ElementFacts> exact_elements(const Problem& c, const Arithmetic& arithmetic,
                                                       AskedRows rows = {});

/// Per row: is a finite answer required (section 2)? Of an attention case; batch * heads * M.
[[nodiscard]] std::vector<bool> finite_required(const Problem& c, const Arithmetic& arithmetic);

}  // namespace attest
