// FLINT's multivariate polynomials over the integers and over the rationals with the lifetime of a C++ value.
#pragma once

#include <flint/fmpq_mpoly.h>
#include <flint/fmpz_mpoly.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace attest::symbolic {

/// Polynomials in a fixed number of indeterminates, lexicographic order. Shared by every polynomial of it.
class Ring {
 public:
  explicit Ring(std::size_t room) { fmpq_mpoly_ctx_init(context_, static_cast<slong>(room), ORD_LEX); }
  ~Ring() { fmpq_mpoly_ctx_clear(context_); }
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;
  [[nodiscard]] const fmpz_mpoly_ctx_struct* integers() const { return context_->zctx; }
  [[nodiscard]] const fmpq_mpoly_ctx_struct* rationals() const { return context_; }
  [[nodiscard]] std::size_t room() const { return static_cast<std::size_t>(context_->zctx->minfo->nvars); }

 private:
  fmpq_mpoly_ctx_t context_;
};
using RingPointer = std::shared_ptr<const Ring>;

/// An integer.
class Integer {
 public:
  Integer() { fmpz_init(x_); }
  explicit Integer(slong value) { fmpz_init_set_si(x_, value); }
  ~Integer() { fmpz_clear(x_); }
  Integer(const Integer& other) { fmpz_init_set(x_, other.x_); }
  Integer& operator=(const Integer& other) {
    fmpz_set(x_, other.x_);
    return *this;
  }
  operator fmpz*() { return x_; }
  operator const fmpz*() const { return x_; }

 private:
  fmpz_t x_;
};

/// A rational number.
class Rational {
 public:
  Rational() { fmpq_init(x_); }
  ~Rational() { fmpq_clear(x_); }
  Rational(const Rational& other) {
    fmpq_init(x_);
    fmpq_set(x_, other.x_);
  }
  Rational& operator=(const Rational& other) {
    fmpq_set(x_, other.x_);
    return *this;
  }
  operator fmpq*() { return x_; }
  operator const fmpq*() const { return x_; }
  [[nodiscard]] const fmpz* numerator() const { return fmpq_numref(x_); }
  [[nodiscard]] const fmpz* denominator() const { return fmpq_denref(x_); }

 private:
  fmpq_t x_;
};

/// A polynomial over the integers.
class Polynomial {
 public:
  explicit Polynomial(RingPointer ring) : ring_(std::move(ring)) { fmpz_mpoly_init(x_, context()); }
  Polynomial(RingPointer ring, slong constant) : Polynomial(std::move(ring)) {
    fmpz_mpoly_set_si(x_, constant, context());
  }
  ~Polynomial() { fmpz_mpoly_clear(x_, context()); }
  Polynomial(const Polynomial& other) : Polynomial(other.ring_) { fmpz_mpoly_set(x_, other.x_, context()); }
  Polynomial& operator=(const Polynomial& other) {
    // FLINT allows aliasing, and polynomials of two rings are never assigned to each other.
    if (this != &other) fmpz_mpoly_set(x_, other.x_, context());
    return *this;
  }
  Polynomial(Polynomial&& other) noexcept : Polynomial(other.ring_) { fmpz_mpoly_swap(x_, other.x_, context()); }
  Polynomial& operator=(Polynomial&& other) noexcept {
    fmpz_mpoly_swap(x_, other.x_, context());
    return *this;
  }
  operator fmpz_mpoly_struct*() { return x_; }
  operator const fmpz_mpoly_struct*() const { return x_; }
  [[nodiscard]] const fmpz_mpoly_ctx_struct* context() const { return ring_->integers(); }
  [[nodiscard]] const RingPointer& ring() const { return ring_; }

  [[nodiscard]] bool is_zero() const { return fmpz_mpoly_is_zero(x_, context()) != 0; }
  [[nodiscard]] bool is_one() const { return fmpz_mpoly_is_one(x_, context()) != 0; }
  [[nodiscard]] bool is_constant() const { return fmpz_mpoly_is_fmpz(x_, context()) != 0; }
  [[nodiscard]] slong terms() const { return fmpz_mpoly_length(x_, context()); }
  /// Coefficient and exponents of term `at`.
  [[nodiscard]] Integer coefficient(slong at) const {
    Integer c;
    fmpz_mpoly_get_term_coeff_fmpz(c, x_, at, context());
    return c;
  }
  [[nodiscard]] std::vector<ulong> exponents(slong at) const {
    std::vector<ulong> e(ring_->room());
    fmpz_mpoly_get_term_exp_ui(e.data(), x_, at, context());
    return e;
  }
  void push(const fmpz* coefficient, const std::vector<ulong>& exponents) {
    fmpz_mpoly_push_term_fmpz_ui(x_, coefficient, exponents.data(), context());
  }
  /// To be called after the last push.
  void sort() {
    fmpz_mpoly_sort_terms(x_, context());
    fmpz_mpoly_combine_like_terms(x_, context());
  }

  friend Polynomial operator+(const Polynomial& a, const Polynomial& b) {
    Polynomial c(a.ring_);
    fmpz_mpoly_add(c, a, b, a.context());
    return c;
  }
  friend Polynomial operator-(const Polynomial& a, const Polynomial& b) {
    Polynomial c(a.ring_);
    fmpz_mpoly_sub(c, a, b, a.context());
    return c;
  }
  friend Polynomial operator*(const Polynomial& a, const Polynomial& b) {
    Polynomial c(a.ring_);
    fmpz_mpoly_mul(c, a, b, a.context());
    return c;
  }
  friend bool operator==(const Polynomial& a, const Polynomial& b) { return fmpz_mpoly_equal(a, b, a.context()) != 0; }
  /// a / b where b divides a; false leaves the quotient unspecified.
  [[nodiscard]] static bool divides(Polynomial& quotient, const Polynomial& a, const Polynomial& b) {
    return fmpz_mpoly_divides(quotient, a, b, a.context()) != 0;
  }
  [[nodiscard]] Polynomial power(ulong n) const {
    Polynomial c(ring_);
    fmpz_mpoly_pow_ui(c, x_, n, context());
    return c;
  }
  /// The greatest monomial with integer coefficient that divides every term; 0 of 0.
  [[nodiscard]] Polynomial term_content() const {
    Polynomial c(ring_);
    fmpz_mpoly_term_content(c, x_, context());
    return c;
  }

 private:
  RingPointer ring_;
  fmpz_mpoly_t x_;
};

/// A polynomial over the rationals, for elimination.
class RationalPolynomial {
 public:
  explicit RationalPolynomial(RingPointer ring) : ring_(std::move(ring)) { fmpq_mpoly_init(x_, context()); }
  explicit RationalPolynomial(const Polynomial& p) : RationalPolynomial(p.ring()) {
    Rational one;
    fmpq_one(one);
    fmpq_mpoly_t unit;
    fmpq_mpoly_init(unit, context());
    fmpq_set(unit->content, one);
    fmpz_mpoly_set(unit->zpoly, p, p.context());
    fmpq_mpoly_reduce(unit, context());
    fmpq_mpoly_swap(x_, unit, context());
    fmpq_mpoly_clear(unit, context());
  }
  ~RationalPolynomial() { fmpq_mpoly_clear(x_, context()); }
  RationalPolynomial(const RationalPolynomial& other) : RationalPolynomial(other.ring_) {
    fmpq_mpoly_set(x_, other.x_, context());
  }
  RationalPolynomial& operator=(const RationalPolynomial&) = delete;
  RationalPolynomial(RationalPolynomial&& other) noexcept : RationalPolynomial(other.ring_) {
    fmpq_mpoly_swap(x_, other.x_, context());
  }
  operator fmpq_mpoly_struct*() { return x_; }
  operator const fmpq_mpoly_struct*() const { return x_; }
  [[nodiscard]] const fmpq_mpoly_ctx_struct* context() const { return ring_->rationals(); }
  [[nodiscard]] bool is_zero() const { return fmpq_mpoly_is_zero(x_, context()) != 0; }

 private:
  RingPointer ring_;
  fmpq_mpoly_t x_;
};

}  // namespace attest::symbolic
