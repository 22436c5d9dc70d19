// The scalars that prove against each other and against numbers: random programs run on Symbolic, on residues and twice
// in 50 digits at random points. Two values of a program are symbolically equal exactly when their residues are, and
// exactly when the numbers are at both points.
#include <gtest/gtest.h>

#include <random>

#include "core/proof/finite_field.h"
#include "core/proof/symbolic.h"
#include "core/scalars/bin_float.h"

namespace attest {
namespace {

/// One value of a program on each scalar.
struct Quad {
  Symbolic symbolic;
  Residue residue;
  BinFloat50 here, there;
};
template <class Operation>
Quad on_each(const Quad& a, const Quad& b, const Operation& operation) {
  return {operation(a.symbolic, b.symbolic), operation(a.residue, b.residue), operation(a.here, b.here),
          operation(a.there, b.there)};
}

class Program {
 public:
  explicit Program(std::uint64_t seed) : random_(seed), field_(seed_of(seed)) {
    for (const char* name : {"x", "y", "z"}) input(symbols_.real(name), field_.real(name));
    input(symbols_.positive("s"), field_.positive("s"));
    positive_.push_back(polynomials_.back());
    for (const double c : {-1.0, 2.0, 0.5}) {
      polynomials_.push_back({ScalarTraits<Symbolic>::from_double(c), ScalarTraits<Residue>::from_double(c), c, c});
      if (c > 0) positive_.push_back(polynomials_.back());
    }
    values_ = polynomials_;
  }

  /// Few values and operations, so that the same value is often reached in two ways.
  void step() {
    const auto sum = [](const auto& a, const auto& b) { return std::decay_t<decltype(a)>(a + b); };
    const auto difference = [](const auto& a, const auto& b) { return std::decay_t<decltype(a)>(a - b); };
    const auto product = [](const auto& a, const auto& b) { return std::decay_t<decltype(a)>(a * b); };
    const auto quotient = [](const auto& a, const auto& b) { return std::decay_t<decltype(a)>(a / b); };
    switch (random_() % 8) {
      case 0:
        return keep(polynomials_, on_each(any(polynomials_), any(polynomials_), sum));
      case 1:
        return keep(polynomials_, on_each(any(polynomials_), any(polynomials_), difference));
      case 2: {
        const auto scaled = static_cast<std::size_t>(random_() % 7), input = static_cast<std::size_t>(random_() % 4);
        return keep(polynomials_, on_each(polynomials_[scaled], polynomials_[input], product));
      }
      case 3:
      case 4: {
        const Quad a = any(polynomials_);
        using boost::multiprecision::exp;
        return keep(positive_, {ScalarTraits<Symbolic>::exp(a.symbolic), ScalarTraits<Residue>::exp(a.residue),
                                exp(a.here), exp(a.there)});
      }
      case 5:
        return keep(positive_, on_each(any(positive_), any(positive_), product));
      case 6:
        return keep(positive_, one_of(any(positive_), any(positive_), random_() % 2, sum, quotient));
      default:
        return values_.push_back(one_of(any(values_), any(positive_), random_() % 3, sum, product, quotient));
    }
  }

  /// Counts pairs by whether they are equal.
  void compare(int& equal, int& different) {
    for (std::size_t a = 0; a < values_.size(); ++a) {
      for (std::size_t b = 0; b < a; ++b) {
        const bool symbolically = identical(values_[a].symbolic, values_[b].symbolic);
        const auto close = [](const BinFloat50& x, const BinFloat50& y) {
          return abs(x - y) <= (abs(x) + abs(y)) * BinFloat50(1e-30) + BinFloat50(1e-30);
        };
        const bool numerically = close(values_[a].here, values_[b].here) && close(values_[a].there, values_[b].there);
        const auto both = [&] { return certificate(values_[a].symbolic, values_[b].symbolic).text(); };
        ASSERT_EQ(symbolically, numerically) << ScalarTraits<BinFloat50>::to_double(values_[a].here) << " and "
                                             << ScalarTraits<BinFloat50>::to_double(values_[b].here) << "\n"
                                             << both();
        ASSERT_EQ(symbolically, identical(values_[a].residue, values_[b].residue)) << both();
        ++(symbolically ? equal : different);
      }
    }
  }

 private:
  static FieldSeed seed_of(std::uint64_t seed) {
    FieldSeed s;
    s.words[0] = static_cast<std::uint32_t>(seed);
    return s;
  }
  /// Positive numbers near 1, for positive inputs too.
  BinFloat50 point() { return BinFloat50(static_cast<double>(random_() % 1000003)) / 1000003 + BinFloat50(0.25); }
  void input(const Symbolic& symbol, const Residue& residue) {
    const BinFloat50 here = point();
    polynomials_.push_back({symbol, residue, here, point()});
  }
  const Quad& any(const std::vector<Quad>& from) { return from[random_() % from.size()]; }
  void keep(std::vector<Quad>& list, const Quad& value) {
    list.push_back(value);
    values_.push_back(value);
  }
  /// The operation of that number.
  template <class First, class... Rest>
  static Quad one_of(const Quad& a, const Quad& b, std::uint64_t which, const First& first, const Rest&... rest) {
    if constexpr (sizeof...(rest) > 0) {
      if (which > 0) return one_of(a, b, which - 1, rest...);
    }
    return on_each(a, b, first);
  }

  std::mt19937_64 random_;
  SymbolicScope symbols_;
  FieldScope field_;
  std::vector<Quad> polynomials_, positive_, values_;
};

TEST(ProvingScalars, AgreeWithEachOtherAndWithNumbersOnRandomPrograms) {
  int equal = 0, different = 0;
  for (std::uint64_t seed = 0; seed < 120 && !HasFatalFailure(); ++seed) {
    Program program(seed);
    for (int step = 0; step < 24; ++step) program.step();
    program.compare(equal, different);
  }
  EXPECT_GT(equal, 150);
  EXPECT_GT(different, 10000);
}

}  // namespace
}  // namespace attest
