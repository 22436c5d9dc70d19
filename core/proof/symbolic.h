// Symbolic: a scalar of the core whose values are formulas, so that running the core on it proves what the core
// computes for all real inputs at once.
//
// A value is a fraction of two polynomials with integer coefficients (FLINT, fmpz_mpoly) in indeterminates: the inputs,
// the reference points of rows, one atom for each independent exponential, and one for each logarithm.
//
// Exponentials. The arguments of exp span a vector space over Q. A basis of it is kept, g_1 .. g_r, with an atom
// E_k = exp(g_k / D_k) for each. A new argument that is independent of the basis joins it with a fresh atom. A
// dependent one is a = sum c_k g_k, and exp(a) is the Laurent monomial of the E_k with the exponents c_k D_k; where one
// of them is not an integer, D_k is multiplied by its denominator d and the old atom is the d-th power of the new one
// in every value that holds it. Dependence is decided by elimination over the monomials of the arguments. Arguments
// that are fractions are brought to one common denominator L first: multiplication by L is injective and linear, so it
// keeps dependence. exp(a + b) = exp(a) exp(b) and exp > 0 are all that is assumed.
//
// Logarithms. log(E^m P / Q), with E^m the monomial of atoms in it and P, Q known to be positive and without a common
// factor, is sum m_k g_k / D_k + [log P] - [log Q] with an indeterminate for each different polynomial; and
// exp(a + n [log P]) = exp(a) P^n for integers n.
//
// Why equality here is equality for all reals. Choose any real numbers for the inputs (positive ones where that was
// declared) and for the reference points, and give each E_k the value exp(g_k / D_k) and each [log P] the value ln P.
// That is a homomorphism from polynomials in the indeterminates to real numbers. Every denominator was known to be
// nonzero at all such choices when it was made, since a sum of positive terms is positive, so the homomorphism extends
// to the fractions, and each operation here is the operation on the numbers. Two fractions that are equal as rational
// functions (N D' - N' D = 0 as a polynomial) therefore have equal values at every choice. This uses neither that the
// g_k are independent nor anything about transcendence. The converse, that fractions which differ as rational functions
// differ as real functions, needs it: atoms of arguments that are linearly independent over Q are algebraically
// independent (Ax 1971 for functions, Lindemann for constants). It holds while no logarithm occurs; nothing proved
// here rests on it.
//
// A proof needs shapes with N >= 2 and dk >= 2: at N = 1 or dk = 1 false statements become true.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/definition/matrix.h"
#include "core/definition/scalar.h"
#include "core/proof/proof.h"

namespace attest {

namespace symbolic {
class Space;
struct Fraction;
}  // namespace symbolic

/// A formula, -inf, or undefined. Values are immutable and cheap to copy. All operands of an operation come from the
/// same SymbolicScope, which must be alive: ProofError otherwise.
class Symbolic {
 public:
  Symbolic() = default;  ///< undefined: any use throws UndefinedUsed

  [[nodiscard]] ProofKind kind() const { return kind_; }
  /// > 0 for all reals, by the signs of the terms: sums of positive coefficients times positive indeterminates and
  /// squares.
  [[nodiscard]] bool is_known_positive() const;
  /// >= 0 for all reals in the same way; 0 is.
  [[nodiscard]] bool is_known_nonnegative() const;

  friend Symbolic operator+(const Symbolic& a, const Symbolic& b);
  friend Symbolic operator-(const Symbolic& a, const Symbolic& b);
  friend Symbolic operator*(const Symbolic& a, const Symbolic& b);
  friend Symbolic operator/(const Symbolic& a, const Symbolic& b);  ///< throws NotKnownNonzero

 private:
  friend class symbolic::Space;
  friend class SymbolicScope;
  friend struct ScalarTraits<Symbolic>;
  friend bool identical(const Symbolic& a, const Symbolic& b);
  friend struct SymbolicCertificate certificate(const Symbolic& a, const Symbolic& b);
  Symbolic(ProofKind kind, std::shared_ptr<const symbolic::Fraction> value) : kind_(kind), value_(std::move(value)) {}

  ProofKind kind_ = ProofKind::undefined;
  std::shared_ptr<const symbolic::Fraction> value_;  ///< of a number
};

/// Whether a and b are the same rational function of the indeterminates: equal for all reals, see above. Both -inf:
/// true. Throws UndefinedUsed where one is undefined.
[[nodiscard]] bool identical(const Symbolic& a, const Symbolic& b);

/// What a reader needs to check an equality without this program: both sides and what the atoms stand for.
struct SymbolicCertificate {
  struct Side {
    std::string numerator, denominator;
  };
  bool identical = false;
  Side left, right;
  std::string difference;             ///< left.numerator * right.denominator - right.numerator * left.denominator
  std::vector<std::string> positive;  ///< names of the indeterminates that are positive: declared ones and atoms
  std::vector<std::string> atoms;     ///< "E1 = exp(q00*k00 - r1)", "L1 = log(E1 + E2)"
  [[nodiscard]] std::string text() const;
};
/// Of two numbers; throws UndefinedUsed or InfinityMisused otherwise.
[[nodiscard]] SymbolicCertificate certificate(const Symbolic& a, const Symbolic& b);

/// The indeterminates of one proof. While it lives, constants and indeterminates of this thread are made in it; scopes
/// nest. One thread at a time.
class SymbolicScope {
 public:
  using Number = Symbolic;

  /// Room for so many indeterminates, atoms and reference points included; one more throws ProofTooLarge.
  explicit SymbolicScope(std::size_t room = 128);
  ~SymbolicScope();
  SymbolicScope(const SymbolicScope&) = delete;
  SymbolicScope& operator=(const SymbolicScope&) = delete;

  /// A fresh indeterminate: any real number, or any positive one. Names are for reading and should differ.
  [[nodiscard]] Symbolic real(const std::string& name);
  [[nodiscard]] Symbolic positive(const std::string& name);

  /// How many indeterminates there are: inputs, reference points, atoms.
  [[nodiscard]] std::size_t size() const;

 private:
  std::shared_ptr<symbolic::Space> space_, before_;
};

template <>
struct ScalarTraits<Symbolic> {
  static constexpr std::string_view name = "symbolic";
  /// Exact. Throws ProofError outside a SymbolicScope.
  [[nodiscard]] static Symbolic from_double(double value);
  /// Of a constant; anything else throws NotRepresentable.
  [[nodiscard]] static double to_double(const Symbolic& x);
  [[nodiscard]] static Symbolic minus_infinity() { return {ProofKind::minus_infinity, nullptr}; }
  [[nodiscard]] static bool is_minus_infinity(const Symbolic& x) { return x.kind() == ProofKind::minus_infinity; }
  /// Poison: whoever looks at it gets UndefinedUsed. Rows beside a fully masked one can still be proved.
  [[nodiscard]] static Symbolic undefined() { return {}; }
  [[nodiscard]] static Symbolic exp(const Symbolic& x);  ///< exp(-inf) = 0
  [[nodiscard]] static Symbolic log(const Symbolic& x);  ///< throws NotKnownNonzero unless x is known to be positive
  /// A fresh indeterminate each time: what is proved holds for any reference point, the maximum among them.
  [[nodiscard]] static Symbolic reference_point(std::span<const Symbolic> row);
};

}  // namespace attest

namespace Eigen {
template <>
struct NumTraits<attest::Symbolic> : attest::proof::EigenTraits<attest::Symbolic> {};
}  // namespace Eigen
