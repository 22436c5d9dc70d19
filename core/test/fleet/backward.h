// Backward passes that compute as they declare, of the fleet's forward kernels, and what they are tried on.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "core/oracle/gradients/gradients.h"
#include "core/test/fleet/fleet.h"
#include "core/test/fleet/validation.h"

namespace attest::fleet {

/// What is wrong with a backward pass on purpose; the defaults are right.
struct BackwardFault {
  bool no_delta = false;                                        ///< D = 0
  double lse_error = 0;                                         ///< added to the log-sum-exp
  double apart_factor = 1;                                      ///< of dP - D
  double scale_factor = 1;                                      ///< of the scale of dq and dk
  bool loses_last_key = false;                                  ///< in dq
  bool loses_last_row = false;                                  ///< in dk and dv
  bool loses_a_head = false;                                    ///< in dk and dv
  bool forgets_dropout = false;                                 ///< in dP
  bool forgets_cap = false;                                     ///< its derivative
  bool caps_mask = false;                                       ///< the gradient by a mask has that derivative, too
  bool mask_of_one_head = false;                                ///< it is that of the first head alone
  bool positive_sink = false;                                   ///< the gradient by a sink lacks its minus
  std::optional<DType> sink_terms_in{};                         ///< a format that is not declared
  bool dk_of_other_rows = false;                                ///< dk with the queries of the row before
  std::optional<DType> delta_in{}, of_weights_in{}, sums_in{};  ///< formats that are not declared
};

struct BackwardEmulation {
  Emulation forward;
  BackwardArithmetic backward;
  bool shuffled = false;  ///< terms of sums over rows and keys arrive in any order
  bool fused = false;     ///< … and are added in one rounding
  BackwardFault fault{};
};

/// Correct kernels; what each declares is what it does.
[[nodiscard]] std::vector<BackwardEmulation> correct_backward_kernels();
[[nodiscard]] BackwardEmulation backward_kernel_named(const std::string& name);

/// The forward pass of each head, as emulate() has it.
[[nodiscard]] Answer emulate_heads(const Emulation& kernel, const Case& c);
/// Of an attention case of one batch entry and one key-value head.
[[nodiscard]] std::array<Tensor, gradient_count> emulate_backward(const BackwardEmulation& kernel, const Case& c,
                                                                  const BackwardInputs& given);

/// How the gradients by the output are drawn.
enum class Loss { gauss, one_hot, cancelling, huge, tiny, zero_rows, heavy, whole_numbers };
inline constexpr int losses = 8;
/// One or two heads of a regime, and gradients by their outputs, and by their log-sum-exps now and then.
struct BackwardCase {
  Case c;
  Tensor d_out, d_lse;
};
[[nodiscard]] BackwardCase draw_backward(Regime regime, Loss loss, DType dtype, std::int64_t heads, const Size& size,
                                         Added added, std::mt19937_64& random);

/// What is counted of kernels held against their bounds.
struct GradientCount {
  std::int64_t checks = 0, excused = 0, vacuous = 0, undecided = 0, violations = 0;
  double worst = 0;
  std::string first_violation;
  Alarm alarm{};
  std::string first_alarm;
  void merge(const GradientCount& other);
};
/// Holds the gradients of one run against the bound.
void check_gradients(const BackwardEmulation& kernel, const BackwardCase& of, const GradientOptions& options,
                     const std::string& name, GradientCount& count);

/// Cases of every regime and loss, each of them tried both ways, at answers only where the kernel takes its weights
/// from them.
struct BackwardEffort {
  std::uint64_t first_seed = 1, seeds = 1;
  std::int64_t most_rows = 6, most_keys = 12, most_columns = 6;
  Added added = Added::nothing;
  void (*profile)(BackwardProfile&) = nullptr;  ///< as of GradientOptions
  double alarm_probability = 0;                 ///< as well
};
[[nodiscard]] GradientCount validate_gradients(const BackwardEmulation& kernel, const BackwardEffort& effort);
/// Climbs towards the largest share of the bound.
[[nodiscard]] GradientCount climb_gradients(const BackwardEmulation& kernel, std::uint64_t seed, std::int64_t steps,
                                            Added added);

}  // namespace attest::fleet
