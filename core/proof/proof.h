// What the scalars of proofs share: the three kinds of value, the arithmetic of -infinity, and the errors by name. A
// scalar of a proof never answers with a wrong number: where its rules say nothing it throws.
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <limits>
#include <stdexcept>

namespace attest {

/// A step that the rules of a proof do not allow. Nothing is proved, and nothing is refuted.
class ProofError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};
/// Division by, or logarithm of, something that is not known to be nonzero, or positive.
class NotKnownNonzero : public ProofError {
 public:
  using ProofError::ProofError;
};
/// x - (-inf), -inf / x, x / -inf, -inf times something not known to be positive, log(-inf), a reference point among
/// hidden scores, +inf anywhere.
class InfinityMisused : public ProofError {
 public:
  using ProofError::ProofError;
};
/// An output that the documents leave undefined (a fully masked row), or a matrix entry that nothing was assigned to,
/// is looked at.
class UndefinedUsed : public ProofError {
 public:
  using ProofError::ProofError;
};
/// More indeterminates or independent exponentials than the scope has room for, or a bound that no longer says
/// anything.
class ProofTooLarge : public ProofError {
 public:
  using ProofError::ProofError;
};
/// What the scalar has no rule for: a number as double, exp of an exponential in the finite field, ...
class NotRepresentable : public ProofError {
 public:
  using ProofError::ProofError;
};

/// What a value of a proof is. A default-constructed one is undefined, so that Eigen's fresh entries are poison.
enum class ProofKind : std::uint8_t { undefined, minus_infinity, number };

namespace proof {

[[noreturn]] inline void refuse_undefined() {
  throw UndefinedUsed(
      "an undefined value is used: a row whose every key is hidden, or an entry nothing was written to");
}
inline void require_defined(ProofKind a) {
  if (a == ProofKind::undefined) refuse_undefined();
}
[[nodiscard]] inline ProofKind sum(ProofKind a, ProofKind b) {
  require_defined(a), require_defined(b);
  return a == ProofKind::number ? b : a;
}
[[nodiscard]] inline ProofKind difference(ProofKind a, ProofKind b) {
  require_defined(a), require_defined(b);
  if (b == ProofKind::minus_infinity) throw InfinityMisused("x - (-inf): the reference of an empty row is subtracted");
  return a;
}
/// The last two: whether the factors are known to be positive.
[[nodiscard]] inline ProofKind product(ProofKind a, ProofKind b, bool a_positive, bool b_positive) {
  require_defined(a), require_defined(b);
  if (a == ProofKind::number && b == ProofKind::number) return a;
  const bool fits = (a == ProofKind::number && a_positive) || (b == ProofKind::number && b_positive);
  if (!fits) throw InfinityMisused("-inf times something that is not known to be positive");
  return ProofKind::minus_infinity;
}
[[nodiscard]] inline ProofKind quotient(ProofKind a, ProofKind b) {
  require_defined(a), require_defined(b);
  if (a == ProofKind::minus_infinity || b == ProofKind::minus_infinity)
    throw InfinityMisused("a quotient with -inf in it");
  return a;
}
/// Of a constant: which kind a double is; +inf is refused.
[[nodiscard]] inline ProofKind kind_of(double value) {
  if (value != value) return ProofKind::undefined;
  if (value == std::numeric_limits<double>::infinity()) throw InfinityMisused("+inf is no value of a proof");
  return value == -std::numeric_limits<double>::infinity() ? ProofKind::minus_infinity : ProofKind::number;
}

/// What Eigen asks of an entry type that it only stores and moves.
template <class T>
struct EigenTraits : Eigen::GenericNumTraits<double> {
  using Real = T;
  using NonInteger = T;
  using Nested = T;
  using Literal = T;
  enum {
    IsComplex = 0,
    IsInteger = 0,
    IsSigned = 1,
    RequireInitialization = 1,
    ReadCost = 8,
    AddCost = 64,
    MulCost = 64
  };
};

}  // namespace proof
}  // namespace attest
