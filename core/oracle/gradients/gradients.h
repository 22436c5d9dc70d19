// The oracle of the backward pass: the exact gradients of a problem as certified enclosures, and the judgement of a
// kernel's gradients against them and the proved bound (gradient-bounds.md).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/bound/backward_profile.h"
#include "core/bound/error_alarm.h"
#include "core/bound/error_bound.h"
#include "core/kernel/backward_arithmetic.h"
#include "core/measure/verdict.h"
#include "core/oracle/oracle.h"
#include "core/problem/case.h"
#include "core/value/tensor.h"

namespace attest {

/// What a backward pass is given beside the problem. Any dtype.
struct BackwardInputs {
  Tensor d_out;     ///< the gradient by the output, in its shape
  Tensor d_lse;     ///< that by the log-sum-exp, [batch, heads, M]; absent: 0
  Tensor out, lse;  ///< the output and the log-sum-exp that the kernel's own forward pass returned
};

/// What gradients are held against: those of the definition, however the forward pass went, of which the bound takes
/// the errors as they were; or the same formulas at the output and log-sum-exp that were returned, which says which
/// half of a kernel is wrong.
enum class GradientsAt { definition, answers };

struct GradientOptions {
  GradientsAt at = GradientsAt::definition;
  /// As of OracleOptions.
  bool ignores_dead_values = false;
  long max_ball_precision = 4096;  ///< bits
  /// Measure the errors of the judged elements (Verdict::errors); judge_gradients only.
  bool measure_errors = false;
  /// Not 0: judge about so many rows, for cases that are too large to be judged as a whole (portion.h);
  /// judge_gradients only.
  std::int64_t rows = 0;
  /// As of OracleOptions, of dq, dk and dv; elements of other gradients are counted as uncovered.
  double alarm_probability = 0;
  // For tests, which show what difference it makes.
  bool balls_only = false;                      ///< nothing is decided by doubles
  void (*profile)(BackwardProfile&) = nullptr;  ///< changes what bounds are made of
};

/// A gradient's elements, row-major.
using GradientBounds = std::array<std::vector<ElementBound>, gradient_count>;

/// Exact values and bounds of the gradients of a valid attention problem, in double.
[[nodiscard]] GradientBounds gradient_bounds(const Problem& c, const BackwardInputs& given, const Arithmetic& forward,
                                             const BackwardArithmetic& backward, const GradientOptions& options = {});

/// The probabilistic bounds of the same elements, of options.alarm_probability.
using GradientAlarms = std::array<std::vector<ElementAlarm>, gradient_count>;
[[nodiscard]] GradientAlarms gradient_alarms(const Problem& c, const BackwardInputs& given, const Arithmetic& forward,
                                             const BackwardArithmetic& backward, const GradientOptions& options);

/// Of each gradient that the problem has, which says what the gradients by its output are (Slot::d_out, d_lse), the
/// definition's elements, row-major: certified, the ends two doubles apart at most, or 2^-200 of what is 0, where
/// max_ball_precision is enough. NaN where nothing is defined. In balls, so of small problems.
using GradientEnclosures = std::array<std::vector<Enclosure>, gradient_count>;
[[nodiscard]] GradientEnclosures gradient_enclosures(const Problem& c);

/// Judges each element of `found`, a tensor in its argument's shape or absent (not asked for; its verdict is skipped),
/// as judge_attention does those of an output. A row without a key is excused, with what it would add to others; a row
/// outside the domain (its 5) excuses the gradients by its keys and values too. `element` is a flat index into that
/// gradient, rows are those of that gradient.
[[nodiscard]] std::array<Verdict, gradient_count> judge_gradients(const Problem& c, const BackwardInputs& given,
                                                                  const std::array<Tensor, gradient_count>& found,
                                                                  const Arithmetic& forward,
                                                                  const BackwardArithmetic& backward,
                                                                  const GradientOptions& options = {});

}  // namespace attest
