// How other projects decide that an attention kernel is right, to be run beside Attest on the same calls.
#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/kernel/values.h"
#include "core/problem/case.h"
#include "core/value/tensor.h"
#include "reports/results/tolerance.h"

namespace attest {

/// One rule; r is the formula in f64, x the output, `plain` the formula in the dtype of the test, each operation
/// rounded to it (sums and softmax in f32), `single` the formula in f32. Of a backward pass the formula is that by
/// which frameworks differentiate the plain formula, one operation after another, and each gradient is an x by itself.
struct OtherRule {
  std::string_view name;
  std::string_view from;     ///< who uses it
  std::string_view formula;  ///< what it accepts
};
inline constexpr std::size_t other_rule_count = 8;
[[nodiscard]] const std::array<OtherRule, other_rule_count>& other_rules();

/// What torch.testing.assert_close allows where nobody says more; nothing of dtypes that it has no row for.
[[nodiscard]] std::optional<Tolerance> pytorch_default(DType dtype);

/// What that would make of the kernel, as far as the run can tell: "PyTorch's 1e-05, 0.016 misses at least 33 and
/// refuses right answers". `ordinary`: of a kernel's ordinary cases. Empty where it is not known.
[[nodiscard]] std::string beside_pytorch(const ToleranceRow& ordinary);

/// Bit n: rule n.
using RuleSet = std::bitset<other_rule_count>;

/// What the rules compare a tensor with, element by element.
struct Compared {
  std::vector<double> exact, single, plain;   ///< row-major
  std::vector<bool> judged, plain_is_finite;  ///< likewise
  Compared() = default;
  explicit Compared(std::size_t size)
      : exact(size), single(size), plain(size), judged(size, false), plain_is_finite(size, false) {}
  /// Judges element e where its reference is finite in the dtype.
  void judge(std::size_t e, DType dtype);
  [[nodiscard]] bool says_something() const;
  /// The rules that reject it.
  [[nodiscard]] RuleSet rejecting(const Tensor& found, DType dtype) const;
};

/// What the rules compare an output with. Rows that see no key, or whose reference is not finite (in the dtype), are
/// left out of every rule: none of them says what they should be. NaN or Inf elsewhere is rejected by every rule.
class Yardstick {
 public:
  /// An attention case in f32, f16 or bf16.
  explicit Yardstick(const Case& c);
  /// Rows that the rules speak of; without any, nothing is rejected.
  [[nodiscard]] bool says_something() const { return compared_.says_something(); }
  /// The rules that reject an output of the case. `out` has its out_shape().
  [[nodiscard]] RuleSet rejecting(const Tensor& out) const { return compared_.rejecting(out, dtype_); }

 private:
  DType dtype_;
  Compared compared_;
};

/// The same of a backward pass: a rule rejects it where it rejects one of its gradients. Of dk and dv all elements are
/// spoken of whose reference is finite.
class GradientYardstick {
 public:
  /// A case in f32, f16 or bf16 that asks for gradients.
  explicit GradientYardstick(const Case& c);
  [[nodiscard]] bool says_something() const;
  /// The rules that reject the gradients; one that is absent is not judged.
  [[nodiscard]] RuleSet rejecting(const std::array<Values, gradient_count>& found) const;

 private:
  DType dtype_;
  std::array<Compared, gradient_count> compared_;
};

}  // namespace attest
