// Residue: a scalar of the core that evaluates formulas at random points of a finite field. Two formulas that agree
// there are equal for all real inputs, but for an error of probability that the scope computes; two that differ are
// different. For shapes that are too large for Symbolic. (Schwartz 1980, Zippel 1979; two fields for values and
// exponents as in Mirage, Wu et al. 2024, whose single root of unity is replaced by one for each independent
// exponential.)
//
// Drawn: a prime q, uniformly from the primes of [2^55, 2^56); p = 2kq + 1 is the least prime of that form above 2^61,
// below 2^63 (if there is none, q is drawn again, at most 16 times). A value is a formula, a fraction N/D of
// polynomials with integer coefficients in the inputs x and Laurent in the atoms Z, at x uniform modulo p. A formula
// without exponentials is evaluated a second time, modulo q at R random points; those R residues are the fingerprint by
// which arguments of exp are known.
//
// Exponentials. By elimination modulo q the fingerprints of arguments get a basis g_1 .. g_r, with an atom Y_k for
// each, a uniform element of the subgroup of order q modulo p. An argument a = sum c_k g_k has exp(a) = prod Y_k^c_k,
// where c_k is an exponent modulo q: a homomorphism by construction, also for c_k = 1/2. So formulas that are equal by
// exp(a + b) = exp(a) exp(b) have equal residues always, and residues that differ refute. The reference point of a row
// is one more input, drawn anew each time it is asked for.
//
// Hyperbolic tangents. tanh(z) is one more input for each z that the fingerprints show to be neither 0 nor, up to its
// sign, one of those before: tanh(-z) = -tanh(z) is all that is assumed. So what is found equal is equal for any odd
// function; what is equal by more than that, by tanh(2z) = 2 tanh(z)/(1 + tanh(z)^2) say, or beside exponentials of z,
// would be found different. No score is made of two of them with dependent arguments.
//
// The error of "equal". Let a_1 .. a_t be the arguments of exp in the order they come, N_i/D_i with integers D_i (an
// argument with another denominator is refused), H = prod |N_i| |D_i| with |.| the sum of the absolute coefficients.
// (1) Some arguments that are independent over Q look dependent, or a coefficient c_k is taken for another small
//     fraction. Of those independent, an integer minor of at most H is nonzero; if q does not divide it they are
//     independent modulo q, and their fingerprints then are, but for probability sum deg N_i / q (Schwartz-Zippel for
//     the determinant at R >= r points; the scope refuses the R-th generator, so r < R or it throws). A true c_k is a
//     quotient of two minors of at most H; it is read as m/d with |m|, d <= 2^20, wrongly only if q divides a nonzero
//     integer of at most 2^21 H. An integer n has at most log2(n)/55 prime factors above 2^55, and [2^55, 2^56) has
//     more than 2^49 primes (Rosser and Schoenfeld 1962, corollary 3), so with t' = min(t, R)
//       e1 <= 16 (log2 H + t t' (log2 H + 21)) / (55 2^49) + sum deg N_i / 2^55.
//     It depends on what is computed alone, not on what is drawn. The arguments of tangents, which may be fractions,
//     count among them, each as often as there are others before it that it might be taken for.
// (2) Otherwise the residues are those of fractions of low degree. With d the least common denominator of the c_k, the
//     Z_k = Y_k^(1/d) are uniform too and every exponential is a Laurent monomial in them. For unequal N/D and N'/D'
//     the polynomial P = N D' - N' D is not zero, and neither is it modulo p if |N||D'| + |N'||D| < 2^61 (else the
//     scope refuses). Times (Z_1 .. Z_r)^deg it is a polynomial, and by Schwartz-Zippel it vanishes with probability
//       e2 <= deg_x P / 2^61 + (r + 1) deg_Z P / 2^55.
// A scope's error is e1 plus the sum of its e2. Independent scopes multiply; a proof repeats until 2^-60. The draws
// are std::mt19937_64 seeded with 256 bits from std::random_device, in place of truly random ones.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "core/definition/matrix.h"
#include "core/definition/scalar.h"
#include "core/proof/proof.h"
#include "core/proof/sign.h"

namespace attest {

namespace finite_field {
class Field;
struct Value;
}  // namespace finite_field

/// What a scope draws from.
struct FieldSeed {
  std::array<std::uint32_t, 8> words{};
  [[nodiscard]] static FieldSeed drawn();
  [[nodiscard]] std::string text() const;  ///< 64 hexadecimal digits
};

/// A formula at a random point, -inf, or undefined. Immutable and cheap to copy. All operands of an operation come from
/// the same FieldScope, which must be alive: ProofError otherwise.
class Residue {
 public:
  Residue() = default;  ///< undefined: any use throws UndefinedUsed
  [[nodiscard]] ProofKind kind() const { return kind_; }

  friend Residue operator+(const Residue& a, const Residue& b);
  friend Residue operator-(const Residue& a, const Residue& b);
  friend Residue operator*(const Residue& a, const Residue& b);
  /// Throws NotKnownNonzero unless the signs of b's terms show it to be nonzero.
  friend Residue operator/(const Residue& a, const Residue& b);

 private:
  friend class FieldScope;
  friend struct ScalarTraits<Residue>;
  friend bool identical(const Residue& a, const Residue& b);
  Residue(ProofKind kind, std::shared_ptr<const finite_field::Value> value) : kind_(kind), value_(std::move(value)) {}

  ProofKind kind_ = ProofKind::undefined;
  std::shared_ptr<const finite_field::Value> value_;  ///< of a number
};

/// Whether the residues agree. False: the formulas differ, without doubt. True: they are equal, but for the error of
/// the scope, which this call adds to. Throws ProofTooLarge where coefficients might vanish modulo p.
[[nodiscard]] bool identical(const Residue& a, const Residue& b);

/// One draw of primes, points and atoms. While it lives, constants of this thread are made in it; scopes nest. One
/// thread at a time.
class FieldScope {
 public:
  using Number = Residue;

  /// At most room - 1 independent exponentials: ProofTooLarge.
  explicit FieldScope(const FieldSeed& seed = FieldSeed::drawn(), std::size_t room = 96);
  ~FieldScope();
  FieldScope(const FieldScope&) = delete;
  FieldScope& operator=(const FieldScope&) = delete;

  /// A fresh input: any real number, or any positive one. The names are not kept.
  [[nodiscard]] Residue real(const std::string& name);
  [[nodiscard]] Residue positive(const std::string& name);

  /// log2 of e1 plus the sum of e2 over the calls of identical so far.
  [[nodiscard]] double log2_error() const;
  /// "p = ..., q = ..., seed ..., 12 exponentials, 4 equalities, error <= 2^-41.3"
  [[nodiscard]] std::string report() const;
  [[nodiscard]] std::uint64_t p() const;
  [[nodiscard]] std::uint64_t q() const;

 private:
  std::shared_ptr<finite_field::Field> field_, before_;
};

template <>
struct ScalarTraits<Residue> {
  static constexpr std::string_view name = "finite_field";
  /// Exact. Throws ProofError outside a FieldScope.
  [[nodiscard]] static Residue from_double(double value);
  [[nodiscard]] static double to_double(const Residue&) {
    throw NotRepresentable("a residue is not a number that a double could hold");
  }
  [[nodiscard]] static Residue minus_infinity() { return {ProofKind::minus_infinity, nullptr}; }
  [[nodiscard]] static bool is_minus_infinity(const Residue& x) { return x.kind() == ProofKind::minus_infinity; }
  [[nodiscard]] static Residue undefined() { return {}; }
  /// exp(-inf) = 0. Throws NotRepresentable where the argument holds an exponential or a denominator with an input.
  [[nodiscard]] static Residue exp(const Residue& x);
  /// Throws NotRepresentable where the argument holds an exponential.
  [[nodiscard]] static Residue tanh(const Residue& x);
  /// A number without a residue, so that attention can be run while nobody compares its log-sum-exp: sums, products and
  /// quotients with it are such numbers too, exp and identical throw NotRepresentable. Throws NotKnownNonzero unless x
  /// is known to be positive.
  [[nodiscard]] static Residue log(const Residue& x);
  /// A fresh input each time.
  [[nodiscard]] static Residue reference_point(std::span<const Residue> row);
};

}  // namespace attest

namespace Eigen {
template <>
struct NumTraits<attest::Residue> : attest::proof::EigenTraits<attest::Residue> {};
}  // namespace Eigen
