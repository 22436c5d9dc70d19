// Back ends of proofs: what an equality or an inequality between expressions is decided by. Nothing here knows of
// rounding.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "core/proof/expression.h"
#include "core/proof/symbolic.h"
#include "core/support/words.h"

namespace attest {

/// A proof cannot treat what is asked: rounded numbers, an order, a distribution. Nothing is proved, nothing refuted.
class NotTreated : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

enum class BackEnd : std::uint8_t {
  symbolic,      ///< rational functions of the inputs and of independent exponentials: for all real inputs
  finite_field,  ///< the same formulas at random points, for large shapes: with an error of probability
  sign,          ///< signs alone: inequalities with 0
  taint          ///< the same operations on the same inputs: what other inputs hold cannot matter, NaN included
};
template <>
struct Words<BackEnd> {
  static constexpr std::array<std::string_view, 4> names{"symbolic", "finite-field", "sign", "taint"};
};
/// By name; throws UsageError with the nearest one.
[[nodiscard]] BackEnd back_end_from(std::string_view name);

/// Decides about nodes of one ExpressionScope, and holds what it has evaluated of them. All functions throw NotTreated
/// where this back end has no say, and ProofError where a step is not allowed (division by what may be 0, too many
/// indeterminates, …).
class ProofBackEnd {
 public:
  virtual ~ProofBackEnd() = default;
  [[nodiscard]] virtual BackEnd kind() const = 0;
  /// Equal for all real inputs? Of the finite field: but for the error of log2_error().
  [[nodiscard]] virtual bool identical(const ExpressionScope& graph, std::uint32_t a, std::uint32_t b) = 0;
  /// >= 0 for all real inputs, as far as it can tell.
  [[nodiscard]] virtual bool known_nonnegative(const ExpressionScope& graph, std::uint32_t x) = 0;
  [[nodiscard]] virtual bool known_positive(const ExpressionScope& graph, std::uint32_t x) = 0;
  /// What a reader is shown where the two are not identical.
  [[nodiscard]] virtual std::string difference(const ExpressionScope& graph, std::uint32_t a, std::uint32_t b) = 0;
  /// Where the back end writes certificates.
  [[nodiscard]] virtual std::optional<SymbolicCertificate> certificate(const ExpressionScope& graph, std::uint32_t a,
                                                                       std::uint32_t b) = 0;
  /// Repeats what was found identical with other random choices until log2_error() is at most `wanted`. False: a
  /// repetition found two different after all, which is certain. Throws ProofTooLarge where 16 times are not enough.
  [[nodiscard]] virtual bool made_sure(const ExpressionScope& graph, double wanted) = 0;
  /// log2 of the probability that something found identical is not; -inf: none.
  [[nodiscard]] virtual double log2_error() const = 0;
};
[[nodiscard]] std::unique_ptr<ProofBackEnd> make_back_end(BackEnd kind);

}  // namespace attest
