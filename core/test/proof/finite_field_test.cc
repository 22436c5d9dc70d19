#include "core/proof/finite_field.h"

#include <flint/ulong_extras.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/definition/attention.h"
#include "core/definition/softmax.h"
#include "core/test/definition/specification_checks.h"
#include "core/test/proof/scopes.h"

namespace attest {
namespace {

using Traits = ScalarTraits<Residue>;

/// Any seed will do; this one makes the test the same each time.
FieldSeed seed(std::uint32_t n) {
  FieldSeed s;
  s.words[0] = n;
  return s;
}

class Residues : public ::testing::Test {
 protected:
  FieldScope scope{seed(1)};
  Residue x = scope.real("x"), y = scope.real("y"), z = scope.real("z"), s = scope.positive("s");
  static Residue number(double value) { return Traits::from_double(value); }
  static Residue exp(const Residue& a) { return Traits::exp(a); }
};

TEST(FieldScopes, DrawPrimesOfWhichOneDividesTheOtherLessOne) {
  for (std::uint32_t n = 0; n < 32; ++n) {
    const FieldScope scope(seed(n));
    EXPECT_NE(n_is_prime(scope.p()), 0);
    EXPECT_NE(n_is_prime(scope.q()), 0);
    EXPECT_EQ((scope.p() - 1) % scope.q(), 0U);
    EXPECT_TRUE(scope.q() >> 55U == 1 && scope.p() > (std::uint64_t{1} << 61U));
    EXPECT_EQ(FieldScope(seed(n)).q(), scope.q());
    EXPECT_NE(FieldScope(seed(n + 1)).q(), scope.q());
  }
  EXPECT_NE(FieldSeed::drawn().text(), FieldSeed::drawn().text());
  EXPECT_EQ(seed(10).text(), "0000000a" + std::string(56, '0'));
}

TEST_F(Residues, AreAFieldOfFractions) {
  EXPECT_TRUE(identical((x + y) * (x - y), x * x - y * y));
  EXPECT_TRUE(identical(x / s + y / s, (x + y) / s));
  EXPECT_TRUE(identical(number(0.1875) * number(24), number(4.5)));
  EXPECT_TRUE(identical(number(-0.375) * number(4), number(-1.5)));
  EXPECT_FALSE(identical(number(0.1) * number(10), number(1)));  // 0.1 is the double, exactly
  // Coefficients above 2^61 might vanish modulo p.
  EXPECT_THROW((void)identical(number(0.1) * number(8), number(0.8)), ProofTooLarge);
  EXPECT_FALSE(identical(x * y, x + y));
  EXPECT_FALSE(identical(x, y));
}

TEST_F(Residues, TakeTheRightFromTheLeft) {
  EXPECT_TRUE(identical((x - y) + y, x));
  EXPECT_FALSE(identical(x - y, y - x));
  // The fingerprints too, by which exponentials are known.
  EXPECT_TRUE(identical(exp(x - y) * exp(y), exp(x)));
  EXPECT_TRUE(identical(number(5) - number(3), number(2)));
}

TEST_F(Residues, HaveExponentialsThatTurnSumsIntoProducts) {
  EXPECT_TRUE(identical(exp(x + y), exp(x) * exp(y)));
  EXPECT_TRUE(identical(exp(x - y) * exp(y - z), exp(x - z)));
  EXPECT_TRUE(identical(exp(number(0) - x), number(1) / exp(x)));
  EXPECT_TRUE(identical(exp(x * y * s - x) * exp(x), exp(s * x * y)));
  EXPECT_TRUE(identical(exp(number(0)), number(1)));
  EXPECT_TRUE(identical(exp(x + y) * exp(y + z) * exp(z + x), exp(number(2) * (x + y + z))));
  const Residue half = exp(number(0.5) * x), third = exp(x / number(3));
  EXPECT_TRUE(identical(half * half, exp(x)));
  EXPECT_TRUE(identical(third * third * third, half * half));
  EXPECT_FALSE(identical(third * third, half));
  EXPECT_FALSE(identical(exp(x) + exp(y), exp(x + y)));
  EXPECT_FALSE(identical(exp(x), exp(y)));
  EXPECT_FALSE(identical(exp(x * y), exp(x) * exp(y)));
  EXPECT_FALSE(identical(exp(number(1)), number(1)));
}

TEST_F(Residues, RefuseByName) {
  const Residue hidden = Traits::minus_infinity();
  EXPECT_TRUE(identical(exp(hidden), number(0)));
  EXPECT_TRUE(Traits::is_minus_infinity(hidden * s));
  EXPECT_THROW((void)(x / y), NotKnownNonzero);
  EXPECT_THROW((void)(x / (exp(x) - exp(y))), NotKnownNonzero);
  EXPECT_THROW((void)(x - hidden), InfinityMisused);
  EXPECT_THROW((void)(hidden * x), InfinityMisused);
  EXPECT_THROW((void)(Traits::undefined() * number(0)), UndefinedUsed);
  EXPECT_THROW((void)identical(x + Traits::log(exp(x)) / s, x), NotRepresentable);
  EXPECT_THROW((void)exp(number(0) * Traits::log(s)), NotRepresentable);
  EXPECT_THROW((void)Traits::log(x), NotKnownNonzero);
  EXPECT_THROW((void)exp(exp(x)), NotRepresentable);
  EXPECT_THROW((void)exp(x / s), NotRepresentable);
  EXPECT_THROW((void)Traits::to_double(number(1)), NotRepresentable);
  const Residue row[] = {x, hidden};
  EXPECT_THROW((void)Traits::reference_point(row), InfinityMisused);
  {
    const FieldScope other(seed(2));
    EXPECT_THROW((void)(x + number(1)), ProofError);
  }
  Residue large = x + y + z + s;
  for (int doubling = 0; doubling < 5; ++doubling) large = large * large;
  EXPECT_THROW((void)identical(large, large), ProofTooLarge);  // 4^32 may vanish modulo p
}

// The R-th independent exponential is refused: R fingerprints could not tell it from a combination of the others.
TEST(FieldScopes, RefuseTheExponentialThatFingerprintsCannotTell) {
  FieldScope scope(seed(3), /*room=*/4);
  const Vector<Residue> x = test::fresh_vector(scope, "x", 4);
  for (Index at = 0; at < 3; ++at) EXPECT_NO_THROW((void)Traits::exp(x(at)));
  EXPECT_NO_THROW((void)Traits::exp(x(0) - x(2)));
  EXPECT_THROW((void)Traits::exp(x(3)), ProofTooLarge);
}

// The bound of finite_field.h by hand, for each of its terms.
TEST(FieldScopes, ComputeTheirError) {
  {
    FieldScope scope(seed(4));
    const Residue x = scope.real("x"), y = scope.real("y"), s = scope.positive("s");
    EXPECT_TRUE(identical(x * y, y * x));
    EXPECT_NEAR(scope.log2_error(), 1 - 61, 1e-6);  // degree 2
    EXPECT_TRUE(identical(x / s + y / s, (x + y) / s));
    EXPECT_NEAR(scope.log2_error(), std::log2(3) - 61, 1e-6);  // and degree 1: the denominators are the same
    EXPECT_TRUE(identical(x / s + y / (s * s), (x * s + y) / (s * s)));
    // Degree 5: x/s + y/(ss) is (x ss + y s)/(s ss), and the other side's ss is not known to be the same.
    EXPECT_NEAR(scope.log2_error(), std::log2(3 + 5) - 61, 1e-6);
  }
  FieldScope scope(seed(5));
  const Residue x = scope.real("x"), y = scope.real("y"), two = Traits::from_double(2);
  // One by one: the first of dependent arguments is the generator.
  const Residue first = Traits::exp(x), again = Traits::exp(x), twice = Traits::exp(two * x);
  EXPECT_TRUE(identical(first * again, twice));
  // log2 H = log2|x| + log2|x| + log2|2x| = 1 and three arguments; r = 1, degree 2 in the atoms, degrees 1 + 1 + 1.
  const double e1 = 16 * (1 + 9 * (1 + 21)) / 55.0 * 0x1p-49 + 3 * 0x1p-55, e2 = 2 * 2 * 0x1p-55;
  EXPECT_NEAR(scope.log2_error(), std::log2(e1 + e2), 1e-6);
  // exp(x/2) makes the common denominator 2, and exp(y) is a second atom.
  const Residue second = Traits::exp(y), root = Traits::exp(x / two);
  const Residue both = Traits::exp(y + x / two);
  EXPECT_TRUE(identical(second * root, both));
  // log2 H: x/2 brings 1, and y + x/2 = (2y + x)/2 brings log2 3 + 1. Degree 3/2 in the atoms, r = 2.
  const double heights = 1 + 1 + (std::log2(3) + 1);
  const double next_e1 = 16 * (heights + 36 * (heights + 21)) / 55.0 * 0x1p-49 + 6 * 0x1p-55;
  EXPECT_NEAR(scope.log2_error(), std::log2(next_e1 + e2 + 2 * 3 * 1.5 * 0x1p-55), 1e-6);
  EXPECT_NE(scope.report().find("2 independent exponentials, 2 equalities, error <= 2^-4"), std::string::npos)
      << scope.report();
}

TEST(FiniteField, ProvesAttentionWhereSymbolsWouldBeMany) {
  const test::FieldVerdict verdict = test::proved_in_finite_field([](FieldScope& scope) {
    const Index rows = 3, keys = 16, dk = 8, dv = 2;
    const Matrix<Residue> q = test::fresh_matrix(scope, "q", rows, dk), k = test::fresh_matrix(scope, "k", keys, dk),
                          v = test::fresh_matrix(scope, "v", keys, dv);
    const Residue scale = scope.positive("s");
    const written::Table<Residue> formula =
        written::attention(written::table(q), written::table(k), written::table(v), written::scaled(scale)).out;
    test::Comparison comparison;
    comparison.same(attention(q, k, v, scale), formula, "attention");
    return comparison.entries == rows * dv && comparison.different.empty();
  });
  EXPECT_TRUE(verdict.holds);
  EXPECT_LE(verdict.log2_error, -60) << verdict.runs.back();
  EXPECT_GE(verdict.runs.size(), 2U);
  EXPECT_NE(verdict.runs[0].substr(0, 60), verdict.runs[1].substr(0, 60));
}

TEST(FiniteField, StopsAtTheFirstScopeThatRefutes) {
  const test::FieldVerdict verdict = test::proved_in_finite_field([](FieldScope& scope) {
    const Vector<Residue> x = test::fresh_vector(scope, "x", 2);
    const Vector<Residue> weights = softmax(x);
    return identical(weights(0) + weights(1), Traits::from_double(1)) && identical(weights(0), weights(1));
  });
  EXPECT_FALSE(verdict.holds);
  EXPECT_EQ(verdict.runs.size(), 1U);
}

}  // namespace
}  // namespace attest
