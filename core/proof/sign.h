// Sign: a scalar of the core that knows of a number only whether it can be negative, zero or positive. Running the core
// on it proves positivity for all inputs of the given signs, and convex hulls: with every value v_j - c <= 0 the output
// is <= 0, and attention is affine in its values with weights that sum to one.
#pragma once

#include "core/definition/scalar.h"
#include "core/proof/proof.h"

namespace attest {

/// The signs that a number may have: a subset of {-, 0, +}.
class SignSet {
 public:
  static constexpr unsigned negative = 1, zero = 2, positive = 4, any = 7;

  constexpr SignSet() = default;
  constexpr explicit SignSet(unsigned bits) : bits_(bits) {}
  [[nodiscard]] static constexpr SignSet of(double value) {
    return SignSet(value < 0 ? negative : value > 0 ? positive : zero);
  }
  /// No sign outside `allowed` is possible.
  [[nodiscard]] constexpr bool within(unsigned allowed) const { return (bits_ & ~allowed) == 0; }
  [[nodiscard]] constexpr unsigned bits() const { return bits_; }
  friend constexpr bool operator==(SignSet, SignSet) = default;

  /// Of x + y, x y and -x for any x and y of these signs.
  friend constexpr SignSet operator+(SignSet a, SignSet b) {
    unsigned sum = 0;
    for (const unsigned x : {negative, zero, positive})
      for (const unsigned y : {negative, zero, positive})
        if ((a.bits_ & x) != 0 && (b.bits_ & y) != 0) sum |= x == zero ? y : y == zero || x == y ? x : unsigned{any};
    return SignSet(sum);
  }
  friend constexpr SignSet operator*(SignSet a, SignSet b) {
    unsigned product = 0;
    for (const unsigned x : {negative, zero, positive})
      for (const unsigned y : {negative, zero, positive})
        if ((a.bits_ & x) != 0 && (b.bits_ & y) != 0)
          product |= x == zero || y == zero ? zero : x == y ? unsigned{positive} : unsigned{negative};
    return SignSet(product);
  }
  constexpr SignSet operator-() const {
    return SignSet((bits_ & zero) | ((bits_ & negative) != 0 ? positive : 0U) |
                   ((bits_ & positive) != 0 ? negative : 0U));
  }

 private:
  unsigned bits_ = any;
};

/// A number of some sign, -inf, or undefined.
class Sign {
 public:
  Sign() = default;  ///< undefined: any use throws UndefinedUsed
  Sign(ProofKind kind, SignSet signs) : kind_(kind), signs_(signs) {}
  [[nodiscard]] static Sign number(unsigned bits) { return {ProofKind::number, SignSet(bits)}; }

  [[nodiscard]] ProofKind kind() const { return kind_; }
  /// Of a number; throws UndefinedUsed or InfinityMisused otherwise.
  [[nodiscard]] SignSet signs() const {
    proof::require_defined(kind_);
    if (kind_ == ProofKind::minus_infinity) throw InfinityMisused("-inf is asked for its signs as a number");
    return signs_;
  }

  friend Sign operator+(const Sign& a, const Sign& b) { return {proof::sum(a.kind_, b.kind_), a.signs_ + b.signs_}; }
  friend Sign operator-(const Sign& a, const Sign& b) {
    return {proof::difference(a.kind_, b.kind_), a.signs_ + -b.signs_};
  }
  friend Sign operator*(const Sign& a, const Sign& b) {
    return {proof::product(a.kind_, b.kind_, a.signs_.within(SignSet::positive), b.signs_.within(SignSet::positive)),
            a.signs_ * b.signs_};
  }
  /// Throws NotKnownNonzero where b may be zero.
  friend Sign operator/(const Sign& a, const Sign& b) {
    const ProofKind kind = proof::quotient(a.kind_, b.kind_);
    if (!b.signs_.within(SignSet::negative | SignSet::positive))
      throw NotKnownNonzero("division by a number that may be zero");
    return {kind, a.signs_ * b.signs_};
  }

 private:
  ProofKind kind_ = ProofKind::undefined;
  SignSet signs_;  ///< of a number
};

template <>
struct ScalarTraits<Sign> {
  static constexpr std::string_view name = "sign";
  [[nodiscard]] static Sign from_double(double value) { return {proof::kind_of(value), SignSet::of(value)}; }
  [[nodiscard]] static double to_double(const Sign&) { throw NotRepresentable("a sign is not a number of its own"); }
  [[nodiscard]] static Sign minus_infinity() { return {ProofKind::minus_infinity, SignSet(SignSet::negative)}; }
  [[nodiscard]] static bool is_minus_infinity(const Sign& x) { return x.kind() == ProofKind::minus_infinity; }
  [[nodiscard]] static Sign undefined() { return {}; }
  [[nodiscard]] static Sign exp(const Sign& x) {
    proof::require_defined(x.kind());
    return Sign::number(x.kind() == ProofKind::number ? SignSet::positive : SignSet::zero);
  }
  [[nodiscard]] static Sign tanh(const Sign& x) { return {ProofKind::number, x.signs()}; }
  [[nodiscard]] static Sign log(const Sign& x) {
    if (!x.signs().within(SignSet::positive)) throw NotKnownNonzero("logarithm of a number that may not be positive");
    return Sign::number(SignSet::any);
  }
  /// Any number.
  [[nodiscard]] static Sign reference_point(std::span<const Sign> row) {
    for (const Sign& x : row) (void)x.signs();
    return Sign::number(SignSet::any);
  }
};

}  // namespace attest

namespace Eigen {
template <>
struct NumTraits<attest::Sign> : attest::proof::EigenTraits<attest::Sign> {};
}  // namespace Eigen
