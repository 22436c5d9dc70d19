#include "core/proof/symbolic.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "core/proof/polynomial.h"

namespace attest {
namespace symbolic {

/// Exponents beyond this are refused: what is meant to be proved has none, and FLINT ends the program where one
/// outgrows a machine word.
constexpr slong largest_exponent = 1 << 20;

enum class VariableKind : std::uint8_t { real, positive, atom, logarithm };

struct Variable {
  std::string name;
  VariableKind kind;
};

/// numerator / denominator. The denominator is nonzero at every choice of the indeterminates.
struct Fraction {
  std::weak_ptr<Space> space;  ///< weak, since the space's own tables hold fractions
  Polynomial numerator, denominator;
  std::size_t epoch;  ///< how many refinements of atoms are in the exponents
};
using FractionPointer = std::shared_ptr<const Fraction>;

/// An argument of exp that is independent of the ones before it.
struct Generator {
  FractionPointer argument;
  std::size_t variable;  ///< of the atom exp(argument / parts)
  Integer parts{1};
};
/// Generator k times the common denominator, less multiples of the rows before it: its leading monomial occurs in no
/// later row.
struct EchelonRow {
  RationalPolynomial reduced, leading;
  Rational leading_coefficient;
  std::vector<Rational> coordinates;  ///< in terms of the generators
};
struct Logarithm {
  FractionPointer argument;  ///< denominator 1
  std::size_t variable;
};
/// The exponents of an atom count from now on in powers `stride` times as high.
struct Refinement {
  std::size_t variable;
  Integer stride;
};

/// The ring of one scope, what its indeterminates mean, and the arithmetic of fractions in it.
class Space : public std::enable_shared_from_this<Space> {
 public:
  explicit Space(std::size_t room) : ring_(std::make_shared<const Ring>(room)), common_(ring_, 1) {}

  static std::shared_ptr<Space>& current() {
    static thread_local std::shared_ptr<Space> space;
    return space;
  }
  /// Throws ProofError where there is none.
  static Space& required() {
    if (!current()) throw ProofError("a symbolic number was made outside a SymbolicScope");
    return *current();
  }

  [[nodiscard]] std::size_t size() const { return variables_.size(); }
  [[nodiscard]] Symbolic fresh(std::string name, VariableKind kind) {
    return {ProofKind::number, fraction(generator(add(std::move(name), kind)), Polynomial(ring_, 1))};
  }
  [[nodiscard]] Symbolic fresh_reference() { return fresh(fmt::format("r{}", ++references_), VariableKind::real); }

  /// Exact.
  [[nodiscard]] Symbolic constant(double value) {
    const ProofKind kind = proof::kind_of(value);
    if (kind != ProofKind::number) return {kind, nullptr};
    int exponent = 0;
    const double significand = std::frexp(value, &exponent);
    Integer numerator(static_cast<slong>(std::ldexp(significand, 53))), denominator(1);
    exponent -= 53;
    if (exponent >= 0) {
      fmpz_mul_2exp(numerator, numerator, static_cast<ulong>(exponent));
    } else {
      fmpz_mul_2exp(denominator, denominator, static_cast<ulong>(-exponent));
    }
    return {ProofKind::number, fraction(constant_polynomial(numerator), constant_polynomial(denominator))};
  }

  /// The same value with the exponents of today's atoms.
  [[nodiscard]] FractionPointer today(const FractionPointer& x) {
    if (x->epoch == refinements_.size()) return x;
    const auto refined = [&](const Polynomial& p) {
      std::vector<Integer> shift(ring_->room()), stride(ring_->room(), Integer(1));
      for (std::size_t at = x->epoch; at < refinements_.size(); ++at) {
        Integer& s = stride[refinements_[at].variable];
        fmpz_mul(s, s, refinements_[at].stride);
      }
      // An Integer is one fmpz and nothing else, but FLINT wants an array of fmpz.
      std::vector<fmpz> shifts(shift.size(), 0), strides;
      for (const Integer& s : stride) strides.push_back(*static_cast<const fmpz*>(s));
      Polynomial q(ring_);
      fmpz_mpoly_inflate(q, p, shifts.data(), strides.data(), p.context());
      return q;
    };
    return std::make_shared<const Fraction>(
        Fraction{shared_from_this(), refined(x->numerator), refined(x->denominator), refinements_.size()});
  }

  /// +1 or -1 where the polynomial has that sign for all choices of the indeterminates, by the signs of its terms; else
  /// 0. A term with a real indeterminate to an odd power may have any sign; with all of them to even powers it may
  /// vanish, so one term without them is needed.
  [[nodiscard]] int known_sign(const Polynomial& p, bool may_vanish = false) const {
    int sign = 0;
    bool strict = may_vanish;
    for (slong at = 0; at < p.terms(); ++at) {
      const int of_term = fmpz_sgn(p.coefficient(at));
      if (sign != 0 && of_term != sign) return 0;
      sign = of_term;
      bool only_positive = true;
      const std::vector<ulong> exponents = p.exponents(at);
      for (std::size_t v = 0; v < variables_.size(); ++v) {
        if (exponents[v] == 0 || is_positive(v)) continue;
        if (exponents[v] % 2 != 0) return 0;
        only_positive = false;
      }
      strict = strict || only_positive;
    }
    return strict ? sign : 0;
  }
  [[nodiscard]] bool known_positive(const Fraction& x) const {
    return known_sign(x.numerator) * known_sign(x.denominator) > 0;
  }
  [[nodiscard]] bool known_nonnegative(const Fraction& x) const {
    return x.numerator.is_zero() || known_sign(x.numerator, /*may_vanish=*/true) * known_sign(x.denominator) > 0;
  }

  /// numerator / denominator without the monomial that divides both.
  [[nodiscard]] FractionPointer fraction(Polynomial numerator, Polynomial denominator) {
    if (numerator.is_zero()) {
      denominator = Polynomial(ring_, 1);
    } else if (!denominator.is_one()) {
      Polynomial common(ring_);
      fmpz_mpoly_gcd(common, numerator.term_content(), denominator.term_content(), common.context());
      if (!common.is_one()) {
        numerator = exact_quotient(numerator, common);
        denominator = exact_quotient(denominator, common);
      }
      if (fmpz_sgn(denominator.coefficient(0)) < 0) {
        fmpz_mpoly_neg(numerator, numerator, numerator.context());
        fmpz_mpoly_neg(denominator, denominator, denominator.context());
      }
    }
    return std::make_shared<const Fraction>(
        Fraction{shared_from_this(), std::move(numerator), std::move(denominator), refinements_.size()});
  }

  [[nodiscard]] FractionPointer sum(const FractionPointer& left, const FractionPointer& right, bool subtract) {
    const FractionPointer a = today(left), b = today(right);
    const auto combined = [&](const Polynomial& x, const Polynomial& y) { return subtract ? x - y : x + y; };
    if (a->denominator == b->denominator) return fraction(combined(a->numerator, b->numerator), a->denominator);
    // Equal rows of weights share a denominator up to a factor: one division keeps the fractions small.
    Polynomial factor(ring_);
    if (Polynomial::divides(factor, a->denominator, b->denominator))
      return fraction(combined(a->numerator, b->numerator * factor), a->denominator);
    if (Polynomial::divides(factor, b->denominator, a->denominator))
      return fraction(combined(a->numerator * factor, b->numerator), b->denominator);
    return fraction(combined(a->numerator * b->denominator, b->numerator * a->denominator),
                    a->denominator * b->denominator);
  }
  [[nodiscard]] FractionPointer product(const FractionPointer& left, const FractionPointer& right) {
    const FractionPointer a = today(left), b = today(right);
    return fraction(a->numerator * b->numerator, a->denominator * b->denominator);
  }
  [[nodiscard]] FractionPointer quotient(const FractionPointer& left, const FractionPointer& right) {
    const FractionPointer a = today(left), b = today(right);
    if (known_sign(b->numerator) == 0)
      throw NotKnownNonzero("division by " + text(b->numerator) + ", which is not known to be nonzero");
    if (a->denominator == b->denominator) return fraction(a->numerator, b->numerator);
    return fraction(a->numerator * b->denominator, a->denominator * b->numerator);
  }

  [[nodiscard]] FractionPointer exp(const FractionPointer& x) {
    FractionPointer power = fraction(Polynomial(ring_, 1), Polynomial(ring_, 1));
    FractionPointer argument = without_logarithms(today(x), power);
    if (argument->numerator.is_zero()) return power;
    return product(exponential(argument), power);
  }

  [[nodiscard]] FractionPointer log(const FractionPointer& x) {
    const FractionPointer a = today(x);
    if (!known_positive(*a))
      throw NotKnownNonzero("logarithm of (" + text(a->numerator) + ")/(" + text(a->denominator) +
                            "), which is not known to be positive");
    Polynomial numerator = a->numerator, denominator = a->denominator;
    if (known_sign(numerator) < 0) {
      fmpz_mpoly_neg(numerator, numerator, numerator.context());
      fmpz_mpoly_neg(denominator, denominator, denominator.context());
    }
    Polynomial common(ring_);
    if (fmpz_mpoly_gcd(common, numerator, denominator, common.context()) != 0) {
      Polynomial n = exact_quotient(numerator, common), d = exact_quotient(denominator, common);
      if (known_sign(n) > 0 && known_sign(d) > 0) numerator = n, denominator = d;
    }
    FractionPointer result = fraction(Polynomial(ring_), Polynomial(ring_, 1));
    const auto add_log = [&](Polynomial p, bool subtract) {
      std::vector<ulong> monomial = p.term_content().exponents(0);
      for (std::size_t v = 0; v < monomial.size(); ++v)
        if (v >= variables_.size() || variables_[v].kind != VariableKind::atom) monomial[v] = 0;
      Polynomial atoms(ring_);
      atoms.push(Integer(1), monomial);
      p = exact_quotient(p, atoms);
      for (const Generator& g : generators_) {
        if (monomial[g.variable] == 0) continue;
        Integer n(static_cast<slong>(monomial[g.variable]));
        result =
            sum(result, product(g.argument, fraction(constant_polynomial(n), constant_polynomial(g.parts))), subtract);
      }
      if (!p.is_one()) result = sum(result, logarithm(std::move(p)), subtract);
    };
    add_log(std::move(numerator), /*subtract=*/false);
    add_log(std::move(denominator), /*subtract=*/true);
    return result;
  }

  [[nodiscard]] std::string text(const Polynomial& p) const {
    std::vector<const char*> names;
    names.reserve(ring_->room());
    for (const Variable& v : variables_) names.push_back(v.name.c_str());
    names.resize(ring_->room(), "?");
    char* written = fmpz_mpoly_get_str_pretty(p, names.data(), p.context());
    std::string copy = written;
    flint_free(written);
    return copy;
  }
  [[nodiscard]] std::string text(const FractionPointer& value) {
    const FractionPointer x = today(value);
    return x->denominator.is_one() ? text(x->numerator) : "(" + text(x->numerator) + ")/(" + text(x->denominator) + ")";
  }

  [[nodiscard]] SymbolicCertificate certificate(const FractionPointer& left, const FractionPointer& right) {
    const FractionPointer a = today(left), b = today(right);
    const Polynomial difference = a->numerator * b->denominator - b->numerator * a->denominator;
    SymbolicCertificate c;
    c.identical = difference.is_zero();
    c.left = {text(a->numerator), text(a->denominator)};
    c.right = {text(b->numerator), text(b->denominator)};
    c.difference = text(difference);
    for (std::size_t v = 0; v < variables_.size(); ++v)
      if (is_positive(v)) c.positive.push_back(variables_[v].name);
    for (const Generator& g : generators_) {
      const FractionPointer part = product(g.argument, fraction(Polynomial(ring_, 1), constant_polynomial(g.parts)));
      c.atoms.push_back(variables_[g.variable].name + " = exp(" + text(part) + ")");
    }
    for (const Logarithm& l : logarithms_)
      c.atoms.push_back(variables_[l.variable].name + " = log(" + text(l.argument) + ")");
    return c;
  }
  [[nodiscard]] bool identical(const FractionPointer& left, const FractionPointer& right) {
    const FractionPointer a = today(left), b = today(right);
    if (a->denominator == b->denominator) return a->numerator == b->numerator;
    return a->numerator * b->denominator == b->numerator * a->denominator;
  }

 private:
  [[nodiscard]] bool is_positive(std::size_t v) const {
    return variables_[v].kind == VariableKind::positive || variables_[v].kind == VariableKind::atom;
  }
  [[nodiscard]] std::size_t add(std::string name, VariableKind kind) {
    if (variables_.size() == ring_->room()) {
      throw ProofTooLarge(
          fmt::format("the scope has room for {} indeterminates and {} is one more", ring_->room(), name));
    }
    variables_.push_back({std::move(name), kind});
    return variables_.size() - 1;
  }
  [[nodiscard]] Polynomial generator(std::size_t variable) const {
    Polynomial p(ring_);
    fmpz_mpoly_gen(p, static_cast<slong>(variable), p.context());
    return p;
  }
  [[nodiscard]] Polynomial constant_polynomial(const Integer& value) const {
    Polynomial p(ring_);
    fmpz_mpoly_set_fmpz(p, value, p.context());
    return p;
  }
  [[nodiscard]] static Polynomial exact_quotient(const Polynomial& a, const Polynomial& b) {
    Polynomial quotient(a.ring());
    if (!Polynomial::divides(quotient, a, b)) throw std::logic_error("a common factor does not divide");
    return quotient;
  }

  /// The argument without its terms n [log P], n an integer; each of them multiplies `power` by P^n.
  [[nodiscard]] FractionPointer without_logarithms(const FractionPointer& x, FractionPointer& power) {
    if (!x->denominator.is_constant()) return without_logarithms_beside_fractions(x, power);
    const Integer denominator = x->denominator.coefficient(0);
    Polynomial rest(ring_);
    for (slong at = 0; at < x->numerator.terms(); ++at) {
      const std::vector<ulong> exponents = x->numerator.exponents(at);
      const Integer c = x->numerator.coefficient(at);
      const Logarithm* found = nullptr;
      ulong degree = 0;
      for (const ulong e : exponents) degree += e;
      if (degree == 1 && fmpz_divisible(c, denominator) != 0) {
        for (const Logarithm& l : logarithms_)
          if (exponents[l.variable] == 1) found = &l;
      }
      if (found == nullptr) {
        rest.push(c, exponents);
        continue;
      }
      Integer n;
      fmpz_divexact(n, c, denominator);
      raise(power, *found, n);
    }
    rest.sort();
    return fraction(std::move(rest), x->denominator);
  }
  /// The same where arguments of exponentials, and so logarithms, are fractions: a term n [log P] is n times the
  /// denominator times that indeterminate in the numerator.
  [[nodiscard]] FractionPointer without_logarithms_beside_fractions(const FractionPointer& x, FractionPointer& power) {
    Polynomial rest = x->numerator;
    for (const Logarithm& l : logarithms_) {
      Polynomial factor(ring_);
      for (slong at = 0; at < rest.terms(); ++at) {
        std::vector<ulong> exponents = rest.exponents(at);
        if (exponents[l.variable] == 1) exponents[l.variable] = 0, factor.push(rest.coefficient(at), exponents);
      }
      factor.sort();
      Polynomial n(ring_);
      if (factor.is_zero() || !Polynomial::divides(n, factor, x->denominator) || !n.is_constant()) continue;
      rest = rest - factor * generator(l.variable);
      raise(power, l, n.coefficient(0));
    }
    return fraction(std::move(rest), x->denominator);
  }
  /// power times P^n, of [log P].
  void raise(FractionPointer& power, const Logarithm& l, const Integer& n) {
    refuse_large(n);
    const Polynomial p = today(l.argument)->numerator.power(fmpz_get_ui(absolute(n)));
    power = fmpz_sgn(n) > 0 ? product(power, fraction(p, Polynomial(ring_, 1)))
                            : product(power, fraction(Polynomial(ring_, 1), p));
  }
  static void refuse_large(const Integer& n) {
    if (fmpz_cmpabs(n, Integer(largest_exponent)) > 0)
      throw ProofTooLarge("an exponential or a logarithm is taken to a power, or a root, beyond 2^20");
  }
  [[nodiscard]] static Integer absolute(const Integer& n) {
    Integer a;
    fmpz_abs(a, n);
    return a;
  }

  /// exp of a number that is not 0 and has no logarithm to take out.
  [[nodiscard]] FractionPointer exponential(const FractionPointer& argument) {
    cover(argument->denominator);
    RationalPolynomial rest(scaled(*argument));
    std::vector<Rational> coordinates = eliminate(rest);
    if (!rest.is_zero()) {
      generators_.push_back({argument, add(fmt::format("E{}", generators_.size() + 1), VariableKind::atom)});
      append_row(std::move(rest), coordinates);
      return fraction(generator(generators_.back().variable), Polynomial(ring_, 1));
    }
    // Refine where a coordinate asks for a root of an atom; all is checked before anything is changed.
    std::vector<Refinement> refinements;
    refinements.reserve(coordinates.size());
    for (std::size_t k = 0; k < coordinates.size(); ++k) {
      const Generator& g = generators_[k];
      fmpq_mul_fmpz(coordinates[k], coordinates[k], g.parts);
      Integer stride, parts;
      fmpz_set(stride, coordinates[k].denominator());
      fmpz_mul(parts, g.parts, stride);
      fmpq_mul_fmpz(coordinates[k], coordinates[k], stride);
      refuse_large(parts);
      refinements.push_back({g.variable, stride});
    }
    bool refined = false;
    for (std::size_t k = 0; k < coordinates.size(); ++k) {
      if (fmpz_is_one(refinements[k].stride) != 0) continue;
      fmpz_mul(generators_[k].parts, generators_[k].parts, refinements[k].stride);
      refinements_.push_back(refinements[k]);
      refined = true;
    }
    if (refined) rebuild();
    std::vector<ulong> up(ring_->room()), down(ring_->room());
    for (std::size_t k = 0; k < coordinates.size(); ++k) {
      Integer n;
      fmpz_set(n, coordinates[k].numerator());
      if (fmpz_is_zero(n) != 0) continue;
      refuse_large(n);
      (fmpz_sgn(n) > 0 ? up : down)[generators_[k].variable] = fmpz_get_ui(absolute(n));
    }
    Polynomial numerator(ring_), denominator(ring_);
    numerator.push(Integer(1), up);
    denominator.push(Integer(1), down);
    return fraction(std::move(numerator), std::move(denominator));
  }

  /// Makes the common denominator a multiple of this one.
  void cover(const Polynomial& denominator) {
    Polynomial factor(ring_);
    if (Polynomial::divides(factor, common_, denominator)) return;
    Polynomial shared(ring_);
    if (fmpz_mpoly_gcd(shared, common_, denominator, shared.context()) == 0) shared = Polynomial(ring_, 1);
    common_ = common_ * exact_quotient(denominator, shared);
    rebuild();
  }
  /// x times the common denominator.
  [[nodiscard]] Polynomial scaled(const Fraction& x) const {
    return x.numerator * exact_quotient(common_, x.denominator);
  }
  /// Subtracts multiples of the rows until no leading monomial of theirs is left; the multiples, summed up as
  /// coordinates in terms of the generators.
  [[nodiscard]] std::vector<Rational> eliminate(RationalPolynomial& x) const {
    std::vector<Rational> coordinates(generators_.size());
    for (const EchelonRow& row : rows_) {
      Rational c;
      fmpq_mpoly_get_coeff_fmpq_monomial(c, x, row.leading, x.context());
      if (fmpq_is_zero(c) != 0) continue;
      fmpq_div(c, c, row.leading_coefficient);
      RationalPolynomial multiple(row.reduced);
      fmpq_mpoly_scalar_mul_fmpq(multiple, row.reduced, c, x.context());
      fmpq_mpoly_sub(x, x, multiple, x.context());
      for (std::size_t k = 0; k < row.coordinates.size(); ++k) fmpq_addmul(coordinates[k], c, row.coordinates[k]);
    }
    return coordinates;
  }
  /// The row of the newest generator, whose eliminated rest and multiples are these.
  void append_row(RationalPolynomial rest, const std::vector<Rational>& multiples) {
    EchelonRow row{.reduced = std::move(rest),
                   .leading = RationalPolynomial(ring_),
                   .leading_coefficient = {},
                   .coordinates = multiples};
    fmpq_mpoly_get_term_monomial(row.leading, row.reduced, 0, row.reduced.context());
    fmpq_mpoly_get_term_coeff_fmpq(row.leading_coefficient, row.reduced, 0, row.reduced.context());
    for (Rational& c : row.coordinates) fmpq_neg(c, c);
    row.coordinates.resize(rows_.size() + 1);
    fmpq_one(row.coordinates.back());
    rows_.push_back(std::move(row));
  }
  /// The rows once more, after the common denominator or an atom has changed.
  void rebuild() {
    for (Generator& g : generators_) g.argument = today(g.argument);
    common_ = today(std::make_shared<const Fraction>(
                        Fraction{shared_from_this(), common_, Polynomial(ring_, 1), common_epoch_}))
                  ->numerator;
    common_epoch_ = refinements_.size();
    rows_.clear();
    for (const Generator& g : generators_) {
      RationalPolynomial rest(scaled(*g.argument));
      const std::vector<Rational> multiples = eliminate(rest);
      append_row(std::move(rest), multiples);
    }
  }

  /// [log P], P known to be positive and no atom divides it.
  [[nodiscard]] FractionPointer logarithm(Polynomial p) {
    for (Logarithm& l : logarithms_) {
      l.argument = today(l.argument);
      if (l.argument->numerator == p) return fraction(generator(l.variable), Polynomial(ring_, 1));
    }
    const std::size_t variable = add(fmt::format("L{}", logarithms_.size() + 1), VariableKind::logarithm);
    logarithms_.push_back({fraction(std::move(p), Polynomial(ring_, 1)), variable});
    return fraction(generator(variable), Polynomial(ring_, 1));
  }

  RingPointer ring_;
  std::vector<Variable> variables_;
  std::vector<Generator> generators_;
  std::vector<EchelonRow> rows_;
  std::vector<Logarithm> logarithms_;
  std::vector<Refinement> refinements_;
  Polynomial common_;  ///< multiple of every denominator of an argument of exp
  std::size_t common_epoch_ = 0;
  std::size_t references_ = 0;
};

}  // namespace symbolic

using symbolic::Space;

namespace {

/// The space of one number, and of two. Throws ProofError where it has ended or they differ.
std::shared_ptr<Space> space_of(const symbolic::Fraction& a) {
  std::shared_ptr<Space> space = a.space.lock();
  if (!space) throw ProofError("a symbolic number is used after its SymbolicScope has ended");
  return space;
}
std::shared_ptr<Space> space_of(const symbolic::Fraction& a, const symbolic::Fraction& b) {
  std::shared_ptr<Space> space = space_of(a);
  if (space != space_of(b)) throw ProofError("two symbolic numbers come from different scopes");
  return space;
}

}  // namespace

bool Symbolic::is_known_positive() const {
  return kind_ == ProofKind::number && space_of(*value_)->known_positive(*value_);
}

bool Symbolic::is_known_nonnegative() const {
  return kind_ == ProofKind::number && space_of(*value_)->known_nonnegative(*value_);
}

Symbolic operator+(const Symbolic& a, const Symbolic& b) {
  const ProofKind kind = proof::sum(a.kind_, b.kind_);
  if (kind != ProofKind::number) return {kind, nullptr};
  return {kind, space_of(*a.value_, *b.value_)->sum(a.value_, b.value_, /*subtract=*/false)};
}
Symbolic operator-(const Symbolic& a, const Symbolic& b) {
  const ProofKind kind = proof::difference(a.kind_, b.kind_);
  if (kind != ProofKind::number) return {kind, nullptr};
  return {kind, space_of(*a.value_, *b.value_)->sum(a.value_, b.value_, /*subtract=*/true)};
}
Symbolic operator*(const Symbolic& a, const Symbolic& b) {
  if (a.kind_ == ProofKind::number && b.kind_ == ProofKind::number)
    return {ProofKind::number, space_of(*a.value_, *b.value_)->product(a.value_, b.value_)};
  return {proof::product(a.kind_, b.kind_, a.is_known_positive(), b.is_known_positive()), nullptr};
}
Symbolic operator/(const Symbolic& a, const Symbolic& b) {
  const ProofKind kind = proof::quotient(a.kind_, b.kind_);
  return {kind, space_of(*a.value_, *b.value_)->quotient(a.value_, b.value_)};
}

bool identical(const Symbolic& a, const Symbolic& b) {
  proof::require_defined(a.kind()), proof::require_defined(b.kind());
  if (a.kind() != ProofKind::number || b.kind() != ProofKind::number) return a.kind() == b.kind();
  return space_of(*a.value_, *b.value_)->identical(a.value_, b.value_);
}

SymbolicCertificate certificate(const Symbolic& a, const Symbolic& b) {
  proof::require_defined(a.kind()), proof::require_defined(b.kind());
  if (a.kind() != ProofKind::number || b.kind() != ProofKind::number)
    throw InfinityMisused("a certificate is about two numbers, and one of them is -inf");
  return space_of(*a.value_, *b.value_)->certificate(a.value_, b.value_);
}

std::string SymbolicCertificate::text() const {
  std::string all = fmt::format(
      "left  = ({})\n      / ({})\nright = ({})\n      / ({})\nleft.num*right.den - right.num*left.den = {}\n",
      left.numerator, left.denominator, right.numerator, right.denominator, difference);
  for (const std::string& atom : atoms) all += atom + "\n";
  all += fmt::format("positive: {}\n", fmt::join(positive, ", "));
  return all;
}

SymbolicScope::SymbolicScope(std::size_t room) : space_(std::make_shared<Space>(room)), before_(Space::current()) {
  Space::current() = space_;
}
SymbolicScope::~SymbolicScope() {
  Space::current() = before_;
}
Symbolic SymbolicScope::real(const std::string& name) {
  return space_->fresh(name, symbolic::VariableKind::real);
}
Symbolic SymbolicScope::positive(const std::string& name) {
  return space_->fresh(name, symbolic::VariableKind::positive);
}
std::size_t SymbolicScope::size() const {
  return space_->size();
}

Symbolic ScalarTraits<Symbolic>::from_double(double value) {
  return Space::required().constant(value);
}
double ScalarTraits<Symbolic>::to_double(const Symbolic& x) {
  proof::require_defined(x.kind());
  if (x.kind() == ProofKind::minus_infinity) return -std::numeric_limits<double>::infinity();
  const symbolic::Fraction& f = *x.value_;
  if (!f.numerator.is_constant() || !f.denominator.is_constant())
    throw NotRepresentable(space_of(f)->text(x.value_) + " is not a number that a double could hold");
  if (f.numerator.is_zero()) return 0.0;
  symbolic::Rational q;
  fmpq_set_fmpz_frac(q, f.numerator.coefficient(0), f.denominator.coefficient(0));
  return fmpq_get_d(q);
}
Symbolic ScalarTraits<Symbolic>::exp(const Symbolic& x) {
  proof::require_defined(x.kind());
  if (x.kind() == ProofKind::minus_infinity) return from_double(0.0);
  return {ProofKind::number, space_of(*x.value_)->exp(x.value_)};
}
Symbolic ScalarTraits<Symbolic>::log(const Symbolic& x) {
  proof::require_defined(x.kind());
  if (x.kind() == ProofKind::minus_infinity) throw InfinityMisused("log(-inf)");
  return {ProofKind::number, space_of(*x.value_)->log(x.value_)};
}
Symbolic ScalarTraits<Symbolic>::reference_point(std::span<const Symbolic> row) {
  for (const Symbolic& x : row) {
    proof::require_defined(x.kind());
    if (x.kind() == ProofKind::minus_infinity) throw InfinityMisused("a reference point among hidden scores");
  }
  return space_of(*row.front().value_)->fresh_reference();
}

}  // namespace attest
