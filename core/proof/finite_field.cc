#include "core/proof/finite_field.h"

#include <flint/fmpq.h>
#include <flint/nmod.h>
#include <flint/nmod_vec.h>
#include <flint/ulong_extras.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <random>
#include <vector>

namespace attest {
namespace finite_field {

constexpr int log2_q = 55, log2_p = 61, log2_primes = 49, draws_of_q = 16, log2_small = 20;

/// Bounds of a polynomial: its degree in the inputs and in the atoms (where exponents may be fractions and negative,
/// the sum of their absolute values), and the sum of the absolute values of its coefficients. Rounded upwards.
struct Bounds {
  double x = 0, z = 0, norm = 1;
  friend Bounds operator*(const Bounds& a, const Bounds& b) { return {a.x + b.x, up(a.z + b.z), up(a.norm * b.norm)}; }
  /// Of a sum or a difference.
  friend Bounds operator+(const Bounds& a, const Bounds& b) {
    return {std::max(a.x, b.x), std::max(a.z, b.z), up(a.norm + b.norm)};
  }
  static double up(double value) { return value * (1 + 0x1p-50); }
};

/// A polynomial that is, or could become, a factor of a denominator.
using Token = std::size_t;
using Residues = std::vector<ulong>;

/// How a value's fingerprint comes of those of its parts.
enum class Origin : std::uint8_t { exponential, opaque, input, constant, sum, difference, product, quotient };

struct Value;
using ValuePointer = std::shared_ptr<const Value>;

/// A fingerprint, and until somebody asks for it what it would come of. Few do: nothing but an argument of exp needs
/// one, and it costs as many residues as a field has room for exponentials.
struct Fingerprint {
  Origin origin = Origin::exponential;
  ulong constant = 0;            ///< modulo q, of a constant
  ValuePointer left{}, right{};  ///< of an operation; dropped once the residues are there
  Residues residues{};           ///< modulo q; empty before
  [[nodiscard]] bool exists() const { return origin != Origin::exponential && origin != Origin::opaque; }
};

/// numerator / product of the denominator's polynomials.
struct Value {
  std::weak_ptr<Field> field;
  ulong residue = 0;                ///< modulo p
  mutable Fingerprint fingerprint;  ///< none where an exponential is in it
  Bounds numerator;
  std::vector<Token> denominator;  ///< ascending, with repetitions
  Token token = 0;                 ///< of the numerator
  SignSet signs;
  /// A logarithm is in it: neither residue nor fingerprint mean anything.
  [[nodiscard]] bool opaque() const { return fingerprint.origin == Origin::opaque; }
};

class Field : public std::enable_shared_from_this<Field> {
 public:
  Field(const FieldSeed& seed, std::size_t room) : seed_(seed), room_(room) {
    std::seed_seq sequence(seed.words.begin(), seed.words.end());
    random_.seed(sequence);
    for (int draw = 0; draw < draws_of_q; ++draw) {
      if (draw_primes()) return;
    }
    throw ProofTooLarge("no pair of primes was found");
  }

  static std::shared_ptr<Field>& current() {
    static thread_local std::shared_ptr<Field> field;
    return field;
  }
  static Field& required() {
    if (!current()) throw ProofError("a residue was made outside a FieldScope");
    return *current();
  }
  [[nodiscard]] const nmod_t& p() const { return p_; }
  [[nodiscard]] const nmod_t& q() const { return q_; }

  [[nodiscard]] ValuePointer input(unsigned signs) {
    return made(below(p_.n), {.origin = Origin::input}, {.x = 1}, {}, SignSet(signs));
  }
  /// significand * 2^exponent
  [[nodiscard]] ValuePointer constant(double value) {
    int exponent = 0;
    auto significand = static_cast<std::int64_t>(std::ldexp(std::frexp(value, &exponent), 53));
    exponent -= 53;
    for (; significand != 0 && significand % 2 == 0; significand /= 2) ++exponent;
    if (significand == 0) exponent = 0;
    const auto residue = [&](const nmod_t& m) {
      const ulong size = static_cast<ulong>(std::abs(significand)) % m.n;
      const ulong power = n_powmod2(exponent < 0 ? n_invmod(2, m.n) : 2, std::abs(exponent), m.n);
      const ulong product = nmod_mul(size, power, m);
      return significand < 0 ? nmod_neg(product, m) : product;
    };
    Bounds bounds{.norm = std::max(std::abs(static_cast<double>(significand)) * std::exp2(std::max(exponent, 0)), 1.0)};
    std::vector<Token> denominator;
    if (exponent < 0) denominator.push_back(token({.norm = std::exp2(-exponent)}, -exponent));
    return made(residue(p_), {.origin = Origin::constant, .constant = residue(q_)}, bounds, std::move(denominator),
                SignSet::of(value));
  }

  [[nodiscard]] ValuePointer opaque() { return made(0, {.origin = Origin::opaque}, {}, {}, SignSet(SignSet::any)); }
  [[nodiscard]] ValuePointer sum(const ValuePointer& left, const ValuePointer& right, bool subtract) {
    const Value &a = *left, &b = *right;
    if (a.opaque() || b.opaque()) return opaque();
    const Origin origin = subtract ? Origin::difference : Origin::sum;
    const std::vector<Token> common = least_common(a.denominator, b.denominator);
    return made(combined(origin, a.residue, b.residue, p_), of(origin, left, right), over(a, common) + over(b, common),
                common, a.signs + (subtract ? -b.signs : b.signs));
  }
  [[nodiscard]] ValuePointer product(const ValuePointer& left, const ValuePointer& right) {
    const Value &a = *left, &b = *right;
    if (a.opaque() || b.opaque()) return opaque();
    return made(nmod_mul(a.residue, b.residue, p_), of(Origin::product, left, right), a.numerator * b.numerator,
                merged(a.denominator, b.denominator), a.signs * b.signs);
  }
  [[nodiscard]] ValuePointer quotient(const ValuePointer& left, const ValuePointer& right) {
    const Value &a = *left, &b = *right;
    if (!b.signs.within(SignSet::negative | SignSet::positive))
      throw NotKnownNonzero("division by a formula that is not known to be nonzero");
    if (a.opaque()) return opaque();
    // (N/D) / (N'/D'), where what D and D' share cancels.
    std::vector<Token> up = b.denominator, down = a.denominator;
    for (auto at = up.begin(); at != up.end();) {
      const auto same = std::find(down.begin(), down.end(), *at);
      if (same == down.end()) {
        ++at;
      } else {
        down.erase(same);
        at = up.erase(at);
      }
    }
    Bounds numerator = a.numerator;
    for (const Token t : up) numerator = numerator * tokens_[t];
    return made(combined(Origin::quotient, a.residue, b.residue, p_), of(Origin::quotient, left, right), numerator,
                merged(down, {b.token}), a.signs * b.signs);
  }

  /// An odd function of a.
  [[nodiscard]] ValuePointer tangent(const Value& a) {
    refuse_opaque(a);
    if (!a.fingerprint.exists())
      throw NotRepresentable("in the finite field the argument of tanh must be a fraction of the inputs");
    count_argument(a, static_cast<double>(tangents_.size()) + 1);
    const Residues& found = drawn(a);
    Residues negative(found.size());
    _nmod_vec_neg(negative.data(), found.data(), as_length(found.size()), q_);
    if (found == negative) return constant(0);
    for (const auto& [argument, value] : tangents_) {
      if (argument == found) return value;
      if (argument == negative) return sum(constant(0), value, /*subtract=*/true);
    }
    tangents_.emplace_back(found, input(a.signs.bits()));
    return tangents_.back().second;
  }

  [[nodiscard]] ValuePointer exp(const Value& a) {
    const auto constant_denominator = [&](Token t) { return tokens_[t].x == 0 && tokens_[t].z == 0; };
    refuse_opaque(a);
    if (!a.fingerprint.exists() || !std::all_of(a.denominator.begin(), a.denominator.end(), constant_denominator))
      throw NotRepresentable("in the finite field the argument of exp must be a polynomial in the inputs");
    count_argument(a, 1);

    Residues rest = drawn(a);
    Residues coordinates(generators_.size(), 0);
    for (const Generator& row : generators_) {
      if (rest[row.pivot] == 0) continue;
      const ulong c = nmod_mul(rest[row.pivot], row.pivot_inverse, q_);
      _nmod_vec_scalar_addmul_nmod(rest.data(), row.reduced.data(), as_length(room_), nmod_neg(c, q_), q_);
      _nmod_vec_scalar_addmul_nmod(coordinates.data(), row.coordinates.data(), as_length(row.coordinates.size()), c,
                                   q_);
    }
    const auto pivot = std::find_if(rest.begin(), rest.end(), [](ulong x) { return x != 0; });
    if (pivot != rest.end()) {
      if (generators_.size() + 1 >= room_)
        throw ProofTooLarge(fmt::format("more than {} independent exponentials", room_ - 1));
      for (ulong& c : coordinates) c = nmod_neg(c, q_);
      coordinates.push_back(1);
      const ulong inverse = n_invmod(*pivot, q_.n);
      const auto at = static_cast<std::size_t>(pivot - rest.begin());
      // A uniform nonzero element to the power (p - 1)/q: every element of the subgroup has as many roots.
      const ulong atom = power(1 + below(p_.n - 1), (p_.n - 1) / q_.n);
      generators_.push_back({std::move(rest), at, inverse, std::move(coordinates), atom});
      return made(atom, {}, {.z = 1}, {}, SignSet(SignSet::positive));
    }
    ulong value = 1;
    double degree = 0;
    for (std::size_t k = 0; k < coordinates.size(); ++k) {
      if (coordinates[k] == 0) continue;
      value = nmod_mul(value, power(generators_[k].atom, coordinates[k]), p_);
      degree = Bounds::up(degree + size_of_exponent(coordinates[k]));
    }
    return made(value, {}, {.z = degree}, {}, SignSet(SignSet::positive));
  }

  [[nodiscard]] bool identical(const Value& a, const Value& b) {
    refuse_opaque(a), refuse_opaque(b);
    if (a.residue != b.residue) return false;
    const std::vector<Token> common = least_common(a.denominator, b.denominator);
    const Bounds difference = over(a, common) + over(b, common);
    if (!(difference.norm < std::exp2(log2_p)))
      throw ProofTooLarge(fmt::format("coefficients of up to {:.3g} might vanish modulo p", difference.norm));
    const auto atoms = static_cast<double>(generators_.size());
    vanishing_ += std::ldexp(difference.x, -log2_p) +
                  std::ldexp(exponent_denominator_ * (atoms + 1) * difference.z * (1 + 0x1p-40), -log2_q);
    ++equalities_;
    return true;
  }

  [[nodiscard]] double log2_error() const {
    const auto t = static_cast<double>(arguments_);
    const double reading = t * std::min(t, static_cast<double>(room_)) * (log2_heights_ + log2_small + 1);
    const double e1 = std::ldexp(draws_of_q * (log2_heights_ + reading) / log2_q, -log2_primes) +
                      std::ldexp(argument_degrees_, -log2_q);
    return std::log2((e1 + vanishing_) * (1 + 0x1p-30));
  }
  [[nodiscard]] std::string report() const {
    return fmt::format("p = {}, q = {}, seed {}, {} independent exponentials, {} equalities, error <= 2^{:.1f}", p_.n,
                       q_.n, seed_.text(), generators_.size(), equalities_, log2_error());
  }

 private:
  struct Generator {
    Residues reduced;  ///< the fingerprint less multiples of the earlier rows
    std::size_t pivot;
    ulong pivot_inverse;
    Residues coordinates;  ///< of the row, in terms of the generators, modulo q
    ulong atom;            ///< modulo p, of order q
  };

  /// Counts an argument of a function towards the error, its degree so many times.
  void count_argument(const Value& a, double times) {
    ++arguments_;
    log2_heights_ += std::log2(a.numerator.norm);
    argument_degrees_ += times * a.numerator.x;
    for (const Token t : a.denominator) {
      log2_heights_ += std::log2(tokens_[t].norm);
      argument_degrees_ += times * tokens_[t].x;
    }
  }
  static void refuse_opaque(const Value& a) {
    if (a.opaque()) throw NotRepresentable("a logarithm has no residue");
  }
  /// Uniform in 0 .. n - 1: the upper word of draw * n, where the lower one is not below 2^64 modulo n (Lemire 2019).
  [[nodiscard]] ulong below(ulong n) {
    for (;;) {
      ulong upper = 0, lower = 0;
      umul_ppmm(upper, lower, random_(), n);
      if (lower >= n || lower >= (0 - n) % n) return upper;
    }
  }
  [[nodiscard]] bool draw_primes() {
    constexpr ulong least_q = ulong{1} << log2_q, least_p = ulong{1} << log2_p;
    ulong q = 0;
    do q = least_q + below(least_q);
    while (n_is_prime(q) == 0);
    for (ulong k = (least_p - 1) / (2 * q) + 1; 2 * k * q + 1 < 4 * least_p; ++k) {
      if (n_is_prime(2 * k * q + 1) == 0) continue;
      nmod_init(&p_, 2 * k * q + 1);
      nmod_init(&q_, q);
      return true;
    }
    return false;
  }
  [[nodiscard]] ulong power(ulong base, ulong exponent) const {
    return n_powmod2_ui_preinv(base, exponent, p_.n, p_.ninv);
  }
  /// |m|/d of the small fraction that a coordinate is modulo q; counts d into the common denominator.
  [[nodiscard]] double size_of_exponent(ulong c) {
    fmpz_t residue, modulus, bound;
    fmpz_init_set_ui(residue, c), fmpz_init_set_ui(modulus, q_.n), fmpz_init_set_ui(bound, ulong{1} << log2_small);
    fmpq_t fraction;
    fmpq_init(fraction);
    const bool small = fmpq_reconstruct_fmpz_2(fraction, residue, modulus, bound, bound) != 0;
    const double m = std::abs(fmpz_get_d(fmpq_numref(fraction))), d = fmpz_get_d(fmpq_denref(fraction));
    fmpq_clear(fraction);
    fmpz_clear(residue), fmpz_clear(modulus), fmpz_clear(bound);
    if (!small) throw ProofTooLarge("an exponential is no small power of the independent ones");
    const auto least =
        static_cast<double>(std::lcm(static_cast<std::int64_t>(exponent_denominator_), static_cast<std::int64_t>(d)));
    if (least > 0x1p40) throw ProofTooLarge("the roots of exponentials have too large a common denominator");
    exponent_denominator_ = least;
    return Bounds::up(m / d);
  }

  [[nodiscard]] static ulong combined(Origin origin, ulong x, ulong y, const nmod_t& m) {
    switch (origin) {
      case Origin::sum:
        return nmod_add(x, y, m);
      case Origin::difference:
        return nmod_sub(x, y, m);
      case Origin::product:
        return nmod_mul(x, y, m);
      case Origin::quotient:
        if (y == 0) throw ProofError("a denominator is zero at a random point: draw again");
        return nmod_mul(x, n_invmod(y, m.n), m);
      default:
        throw ProofError("no operation on residues");
    }
  }
  /// None where one part has none.
  [[nodiscard]] static Fingerprint of(Origin origin, const ValuePointer& left, const ValuePointer& right) {
    if (!left->fingerprint.exists() || !right->fingerprint.exists()) return {};
    return {.origin = origin, .left = left, .right = right};
  }
  /// The fingerprint's residues, found now for it and for all its parts that had none, inputs drawn.
  [[nodiscard]] const Residues& drawn(const Value& root) {
    std::vector<const Value*> open{&root};
    while (!open.empty()) {
      const Value& value = *open.back();
      Fingerprint& print = value.fingerprint;
      if (!print.residues.empty()) {
        open.pop_back();
      } else if (print.origin == Origin::constant) {
        print.residues.assign(room_, print.constant);
      } else if (print.origin == Origin::input) {
        print.residues.resize(room_);
        for (ulong& point : print.residues) point = below(q_.n);
      } else if (print.left->fingerprint.residues.empty()) {
        open.push_back(print.left.get());
      } else if (print.right->fingerprint.residues.empty()) {
        open.push_back(print.right.get());
      } else {
        const Residues &x = print.left->fingerprint.residues, &y = print.right->fingerprint.residues;
        Residues residues(room_);
        if (print.origin == Origin::sum) {
          _nmod_vec_add(residues.data(), x.data(), y.data(), as_length(room_), q_);
        } else if (print.origin == Origin::difference) {
          _nmod_vec_sub(residues.data(), x.data(), y.data(), as_length(room_), q_);
        } else {
          for (std::size_t at = 0; at < room_; ++at) residues[at] = combined(print.origin, x[at], y[at], q_);
        }
        print.residues = std::move(residues);
        print.left.reset(), print.right.reset();
      }
    }
    return root.fingerprint.residues;
  }
  [[nodiscard]] static std::vector<Token> merged(const std::vector<Token>& a, const std::vector<Token>& b) {
    std::vector<Token> all;
    std::merge(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(all));
    return all;
  }
  /// Each as often as it is in the one that has it more often.
  [[nodiscard]] static std::vector<Token> least_common(const std::vector<Token>& a, const std::vector<Token>& b) {
    std::vector<Token> all;
    std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(all));
    return all;
  }
  /// Bounds of the numerator of a over the denominator `common`, a multiple of its own.
  [[nodiscard]] Bounds over(const Value& a, const std::vector<Token>& common) const {
    std::vector<Token> missing;
    std::set_difference(common.begin(), common.end(), a.denominator.begin(), a.denominator.end(),
                        std::back_inserter(missing));
    Bounds bounds = a.numerator;
    for (const Token t : missing) bounds = bounds * tokens_[t];
    return bounds;
  }
  /// A new polynomial with these bounds; the same one for each power of two.
  [[nodiscard]] Token token(const Bounds& bounds, int log2_of_constant = 0) {
    if (log2_of_constant != 0) {
      const auto known = std::find_if(powers_of_two_.begin(), powers_of_two_.end(),
                                      [&](const auto& power) { return power.first == log2_of_constant; });
      if (known != powers_of_two_.end()) return known->second;
      powers_of_two_.emplace_back(log2_of_constant, tokens_.size());
    }
    tokens_.push_back(bounds);
    return tokens_.size() - 1;
  }
  [[nodiscard]] ValuePointer made(ulong residue, Fingerprint fingerprint, const Bounds& numerator,
                                  std::vector<Token> denominator, SignSet signs) {
    return std::make_shared<const Value>(Value{.field = weak_from_this(),
                                               .residue = residue,
                                               .fingerprint = std::move(fingerprint),
                                               .numerator = numerator,
                                               .denominator = std::move(denominator),
                                               .token = token(numerator),
                                               .signs = signs});
  }
  [[nodiscard]] static slong as_length(std::size_t size) { return static_cast<slong>(size); }

  FieldSeed seed_;
  std::size_t room_;
  std::mt19937_64 random_;
  nmod_t p_{}, q_{};
  std::vector<Bounds> tokens_;
  std::vector<std::pair<int, Token>> powers_of_two_;
  std::vector<Generator> generators_;
  std::vector<std::pair<Residues, ValuePointer>> tangents_;  ///< by the fingerprints of their arguments
  double exponent_denominator_ = 1;                          ///< least common one of the coordinates
  std::size_t arguments_ = 0, equalities_ = 0;
  double log2_heights_ = 0, argument_degrees_ = 0;
  double vanishing_ = 0;  ///< the sum of e2
};

}  // namespace finite_field

using finite_field::Field;

namespace {

/// The field of one value, and of two. Throws ProofError where it has ended or they differ.
std::shared_ptr<Field> field_of(const finite_field::Value& a) {
  std::shared_ptr<Field> field = a.field.lock();
  if (!field) throw ProofError("a residue is used after its FieldScope has ended");
  return field;
}
std::shared_ptr<Field> field_of(const finite_field::Value& a, const finite_field::Value& b) {
  std::shared_ptr<Field> field = field_of(a);
  if (field != field_of(b)) throw ProofError("two residues come from different scopes");
  return field;
}

}  // namespace

FieldSeed FieldSeed::drawn() {
  std::random_device device;
  FieldSeed seed;
  for (std::uint32_t& word : seed.words) word = device();
  return seed;
}
std::string FieldSeed::text() const {
  return fmt::format("{:08x}", fmt::join(words, ""));
}

Residue operator+(const Residue& a, const Residue& b) {
  const ProofKind kind = proof::sum(a.kind_, b.kind_);
  if (kind != ProofKind::number) return {kind, nullptr};
  return {kind, field_of(*a.value_, *b.value_)->sum(a.value_, b.value_, /*subtract=*/false)};
}
Residue operator-(const Residue& a, const Residue& b) {
  const ProofKind kind = proof::difference(a.kind_, b.kind_);
  if (kind != ProofKind::number) return {kind, nullptr};
  return {kind, field_of(*a.value_, *b.value_)->sum(a.value_, b.value_, /*subtract=*/true)};
}
Residue operator*(const Residue& a, const Residue& b) {
  const auto positive = [](const Residue& x) {
    return x.kind_ == ProofKind::number && x.value_->signs.within(SignSet::positive);
  };
  const ProofKind kind = proof::product(a.kind_, b.kind_, positive(a), positive(b));
  if (kind != ProofKind::number) return {kind, nullptr};
  return {kind, field_of(*a.value_, *b.value_)->product(a.value_, b.value_)};
}
Residue operator/(const Residue& a, const Residue& b) {
  const ProofKind kind = proof::quotient(a.kind_, b.kind_);
  return {kind, field_of(*a.value_, *b.value_)->quotient(a.value_, b.value_)};
}
bool identical(const Residue& a, const Residue& b) {
  proof::require_defined(a.kind()), proof::require_defined(b.kind());
  if (a.kind() != ProofKind::number || b.kind() != ProofKind::number) return a.kind() == b.kind();
  return field_of(*a.value_, *b.value_)->identical(*a.value_, *b.value_);
}

FieldScope::FieldScope(const FieldSeed& seed, std::size_t room)
    : field_(std::make_shared<Field>(seed, room)), before_(Field::current()) {
  Field::current() = field_;
}
FieldScope::~FieldScope() {
  Field::current() = before_;
}
Residue FieldScope::real(const std::string&) {
  return {ProofKind::number, field_->input(SignSet::any)};
}
Residue FieldScope::positive(const std::string&) {
  return {ProofKind::number, field_->input(SignSet::positive)};
}
double FieldScope::log2_error() const {
  return field_->log2_error();
}
std::string FieldScope::report() const {
  return field_->report();
}
std::uint64_t FieldScope::p() const {
  return field_->p().n;
}
std::uint64_t FieldScope::q() const {
  return field_->q().n;
}

Residue ScalarTraits<Residue>::from_double(double value) {
  const ProofKind kind = proof::kind_of(value);
  if (kind != ProofKind::number) return {kind, nullptr};
  return {kind, Field::required().constant(value)};
}
Residue ScalarTraits<Residue>::exp(const Residue& x) {
  proof::require_defined(x.kind());
  if (x.kind() == ProofKind::minus_infinity) return from_double(0.0);
  return {ProofKind::number, field_of(*x.value_)->exp(*x.value_)};
}
Residue ScalarTraits<Residue>::tanh(const Residue& x) {
  proof::require_defined(x.kind());
  if (x.kind() == ProofKind::minus_infinity) throw InfinityMisused("tanh(-inf)");
  return {ProofKind::number, field_of(*x.value_)->tangent(*x.value_)};
}
Residue ScalarTraits<Residue>::log(const Residue& x) {
  proof::require_defined(x.kind());
  if (x.kind() == ProofKind::minus_infinity) throw InfinityMisused("log(-inf)");
  if (!x.value_->signs.within(SignSet::positive))
    throw NotKnownNonzero("logarithm of a formula that is not known to be positive");
  return {ProofKind::number, field_of(*x.value_)->opaque()};
}
Residue ScalarTraits<Residue>::reference_point(std::span<const Residue> row) {
  for (const Residue& x : row) {
    proof::require_defined(x.kind());
    if (x.kind() == ProofKind::minus_infinity) throw InfinityMisused("a reference point among hidden scores");
  }
  return {ProofKind::number, field_of(*row.front().value_)->input(SignSet::any)};
}

}  // namespace attest
