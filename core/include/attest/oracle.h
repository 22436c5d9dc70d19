// The oracle: the exact answer of a case as a certified enclosure, and the judgement of an output against it and the
// proved bound (error-bounds.md section 5: double with its certificate, then double-double, then Arb balls).
#pragma once

#include <cstdint>
#include <vector>

#include "attest/arithmetic.h"
#include "attest/case.h"
#include "attest/tensor.h"
#include "attest/verdict.h"

namespace attest {

/// How far the oracle may go.
struct OracleOptions {
  int first_level = 0;             ///< 0: chosen from the output's precision; 1 double, 2 double-double, 3 balls
  long max_ball_precision = 4096;  ///< bits; undecided beyond it is inconclusive
  bool want_lse = false;
};

/// Judges `out` (and `lse` where present) of an attention case element by element: passes when error <= bound is certain,
/// violates when error > bound is certain, escalates otherwise. A row outside the domain of definition, with an infinite
/// bound, or with a bound >= max|v - o| (vacuous) is excused; fully masked rows are excused here (masked.fully-masked-row judges the
/// declared policy). NaN or Inf in a row where a finite answer is required is violated. The case's verdict is violated if one row is,
/// else inconclusive if one is, else held if one row was, else excused.
[[nodiscard]] Verdict judge_attention(const Case& c, const Tensor& out, const Tensor& lse, const Arithmetic& arithmetic,
                                      const OracleOptions& options = {});

/// The same for a multihead case (error-bounds.md 1.5 as corrected by 1.7).
[[nodiscard]] Verdict judge_multihead(const Case& c, const Tensor& out, const Arithmetic& arithmetic,
                                      const OracleOptions& options = {});

/// An enclosure [lower, upper] of an exact real number.
struct Enclosure {
  double lower = 0.0;
  double upper = 0.0;
};
/// What is known about one output element, for reports and replay.
struct ElementFacts {
  Enclosure exact;        ///< of the exact value
  double allowed = 0.0;   ///< the bound B (inf: none)
  bool required = true;   ///< inside the domain of definition
};
/// Facts for every element of the case's output, row-major, computed in balls until relative width <= 2^-60 or so.
[[nodiscard]] std::vector<ElementFacts> exact_elements(const Case& c, const Arithmetic& arithmetic);

/// Per row: is a finite answer required (section 2)?
[[nodiscard]] std::vector<bool> finite_required(const Case& c, const Arithmetic& arithmetic);

}  // namespace attest
