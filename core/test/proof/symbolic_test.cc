#include "core/proof/symbolic.h"

#include <gtest/gtest.h>

#include "core/definition/attention.h"
#include "core/definition/softmax.h"
#include "core/test/proof/scopes.h"

namespace attest {
namespace {

using Traits = ScalarTraits<Symbolic>;

class SymbolicNumbers : public ::testing::Test {
 protected:
  SymbolicScope scope;
  Symbolic x = scope.real("x"), y = scope.real("y"), z = scope.real("z"), s = scope.positive("s");
  static Symbolic number(double value) { return Traits::from_double(value); }
  static Symbolic exp(const Symbolic& a) { return Traits::exp(a); }
  static Symbolic log(const Symbolic& a) { return Traits::log(a); }
  static void expect_identical(const Symbolic& a, const Symbolic& b) {
    EXPECT_TRUE(identical(a, b)) << certificate(a, b).text();
  }
  static void expect_different(const Symbolic& a, const Symbolic& b) {
    EXPECT_FALSE(identical(a, b)) << certificate(a, b).text();
  }
};

TEST_F(SymbolicNumbers, AreAFieldOfFractions) {
  expect_identical((x + y) * (x - y), x * x - y * y);
  expect_identical(x / s + y / s, (x + y) / s);
  expect_identical(x / s + y / (s * s + number(1)), (x * s * s + x + y * s) / (s * s * s + s));
  expect_identical((x * s) / s, x);
  expect_identical(number(0.1) * number(10) - number(1), number(0.1 * 0x1p55) * number(10 * 0x1p-55) - number(1));
  expect_different(number(0.1) * number(10), number(1));  // 0.1 is the double, exactly
  expect_different(x * y, x + y);
  expect_different(x / s, x);
  EXPECT_EQ(Traits::to_double(number(-0.375) * number(4)), -1.5);
  EXPECT_EQ(Traits::to_double(x - x), 0.0);
  EXPECT_THROW((void)Traits::to_double(x), NotRepresentable);
}

TEST_F(SymbolicNumbers, KnowTheSignOfSumsOfPositiveTerms) {
  for (const Symbolic& a : {exp(x), s, exp(x) + exp(y), s * s / (exp(x) + number(2)), x * x + number(1),
                            number(0) - (number(-1) - s), exp(x) * y * y + s})
    EXPECT_TRUE(a.is_known_positive());
  for (const Symbolic& a : {x, x * x, exp(x) - number(1), exp(x) - exp(y), number(0), number(-1), x + s})
    EXPECT_FALSE(a.is_known_positive());
  EXPECT_THROW((void)(number(1) / x), NotKnownNonzero);
  EXPECT_THROW((void)(number(1) / (exp(x) - exp(y))), NotKnownNonzero);
  EXPECT_THROW((void)(x / number(0)), NotKnownNonzero);
  EXPECT_THROW((void)(x / (x - x)), NotKnownNonzero);
  expect_identical(number(1) / (number(-1) - exp(x)), number(-1) / (exp(x) + number(1)));
}

TEST_F(SymbolicNumbers, HaveExponentialsOfDependentArgumentsInTheSameAtoms) {
  expect_identical(exp(x + y), exp(x) * exp(y));
  expect_identical(exp(x - y) * exp(y - z), exp(x - z));
  expect_identical(exp(number(0)), number(1));
  expect_identical(exp(number(0) - x), number(1) / exp(x));
  expect_identical(exp(number(3) * x), exp(x) * exp(x) * exp(x));
  expect_identical(exp(number(2)), exp(number(1)) * exp(number(1)));
  expect_identical(exp(x * y * s - x) * exp(x), exp(s * x * y));
  expect_different(exp(x) + exp(y), exp(x + y));
  expect_different(exp(x), exp(y));
  expect_different(exp(x * y), exp(x) * exp(y));
  expect_different(exp(number(1)), number(1));
}

// Echelon form: dependence that no two arguments show alone.
TEST_F(SymbolicNumbers, FindDependenceAmongMany) {
  const Symbolic a = exp(x + y), b = exp(y + z), c = exp(z + x);
  expect_identical(a * b * c, exp(x) * exp(x) * exp(y) * exp(y) * exp(z) * exp(z));
  expect_identical(exp(x - y), c / b);
}

// A root of an atom that older values hold: those follow.
TEST_F(SymbolicNumbers, RefineAtomsWhenARootIsAskedFor) {
  const Symbolic whole = exp(x), sum = exp(x) + exp(y + y), product = exp(x) * exp(y + y);
  const Symbolic half = exp(number(0.5) * x);
  expect_identical(half * half, whole);
  expect_identical(half * half + exp(y) * exp(y), sum);
  expect_identical(half * exp(y), exp(number(0.5) * x + y));
  expect_identical(exp(number(0.75) * x + y) * exp(number(0.25) * x + y), product);
  expect_different(half, whole);
}

// Arguments that are fractions; and exponentials of exponentials.
TEST_F(SymbolicNumbers, TakeFractionsAndExponentialsAsArguments) {
  const Symbolic d = exp(x) + exp(y);
  expect_identical(exp(x / d) * exp(y / d), exp((x + y) / d));
  expect_identical(exp(x / d), exp(x / d - z) * exp(z));
  expect_identical(exp(x / (d * s)) * exp(number(0) - x / (s * d)), number(1));
  expect_identical(exp(exp(x)) * exp(exp(y)), exp(d));
  const Symbolic before = exp(exp(x));
  expect_identical(exp(exp(number(0.5) * x) * exp(number(0.5) * x)), before);
  expect_different(exp(x / d), exp(x));
}

TEST_F(SymbolicNumbers, HaveLogarithmsOfPositiveNumbers) {
  expect_identical(log(exp(x)), x);
  expect_identical(log(exp(x) * exp(y) / exp(z + z)), x + y - z - z);
  expect_identical(log(exp(x + z) + exp(y + z)), z + log(exp(x) + exp(y)));
  expect_identical(exp(log(exp(x) + exp(y))), exp(x) + exp(y));
  expect_identical(exp(log(exp(x) + exp(y)) - log(s) + z), (exp(x) + exp(y)) * exp(z) / s);
  expect_identical(log(number(1)), number(0));
  const Symbolic early = log(exp(x) + exp(y));
  const Symbolic root = exp(number(0.5) * x);
  expect_identical(log(root * root + exp(y)), early);
  expect_different(log(exp(x) + exp(y)), x + y);
  EXPECT_THROW((void)log(x), NotKnownNonzero);
  EXPECT_THROW((void)log(exp(x) - exp(y)), NotKnownNonzero);
  EXPECT_THROW((void)log(number(0)), NotKnownNonzero);
}

TEST_F(SymbolicNumbers, HaveMinusInfinityByItsRulesAlone) {
  const Symbolic hidden = Traits::minus_infinity();
  expect_identical(exp(hidden), number(0));
  for (const Symbolic& a : {hidden + x, x + hidden, hidden - x, hidden * s, exp(x) * hidden, hidden + hidden})
    EXPECT_TRUE(Traits::is_minus_infinity(a));
  EXPECT_TRUE(identical(hidden, number(-HUGE_VAL)));
  EXPECT_FALSE(identical(hidden, x));
  EXPECT_THROW((void)(x - hidden), InfinityMisused);
  EXPECT_THROW((void)(hidden - hidden), InfinityMisused);
  EXPECT_THROW((void)(hidden * x), InfinityMisused);
  EXPECT_THROW((void)(number(0) * hidden), InfinityMisused);
  EXPECT_THROW((void)(number(-1) * hidden), InfinityMisused);
  EXPECT_THROW((void)(hidden * hidden), InfinityMisused);
  EXPECT_THROW((void)(hidden / s), InfinityMisused);
  EXPECT_THROW((void)(s / hidden), InfinityMisused);
  EXPECT_THROW((void)log(hidden), InfinityMisused);
  EXPECT_THROW((void)number(HUGE_VAL), InfinityMisused);
  EXPECT_THROW((void)certificate(hidden, x), InfinityMisused);
  const Symbolic row[] = {x, hidden};
  EXPECT_THROW((void)Traits::reference_point(row), InfinityMisused);
}

TEST_F(SymbolicNumbers, RefuseTheUndefinedWhereverItIsLookedAt) {
  const Symbolic nothing = Traits::undefined();
  EXPECT_THROW((void)(nothing + x), UndefinedUsed);
  EXPECT_THROW((void)(x - nothing), UndefinedUsed);
  EXPECT_THROW((void)(nothing * number(0)), UndefinedUsed);
  EXPECT_THROW((void)(number(0) / nothing), UndefinedUsed);
  EXPECT_THROW((void)exp(nothing), UndefinedUsed);
  EXPECT_THROW((void)log(nothing), UndefinedUsed);
  EXPECT_THROW((void)identical(nothing, nothing), UndefinedUsed);
  EXPECT_THROW((void)(Traits::minus_infinity() + number(std::nan(""))), UndefinedUsed);
  EXPECT_THROW((void)(Matrix<Symbolic>(1, 1)(0, 0) + x), UndefinedUsed);
}

TEST_F(SymbolicNumbers, AreBoundToTheirScope) {
  Symbolic left;
  {
    const SymbolicScope inner;
    left = number(2);
    EXPECT_THROW((void)(left + x), ProofError);
  }
  EXPECT_THROW((void)(left + left), ProofError);
  EXPECT_EQ(Traits::to_double(number(2) + number(2)), 4.0);
  SymbolicScope tiny(/*room=*/2);
  const Symbolic a = tiny.real("a");
  EXPECT_NO_THROW((void)exp(a));
  EXPECT_THROW((void)exp(a * a), ProofTooLarge);
}
TEST_F(SymbolicNumbers, RefusePowersThatNoProofNeeds) {
  const Symbolic e = exp(x), l = log(exp(x) + exp(y));
  EXPECT_THROW((void)exp(number(0x1p21) * x), ProofTooLarge);
  EXPECT_THROW((void)exp(number(-0x1p70) * x), ProofTooLarge);
  EXPECT_THROW((void)exp(number(0x1p-21) * x), ProofTooLarge);
  EXPECT_THROW((void)exp(number(0x1p30) * l), ProofTooLarge);
  const Symbolic f = exp(y);
  EXPECT_THROW((void)exp(number(0.5) * x + number(0x1p-21) * y), ProofTooLarge);
  expect_identical(exp(x + y), e * f);
  expect_identical(exp(x + x), e * e);  // nothing of the refused ones stays behind
}
TEST(SymbolicScopes, AreNeededForConstants) {
  EXPECT_THROW((void)Traits::from_double(1.0), ProofError);
}

TEST_F(SymbolicNumbers, CertifyAnEqualityForAReaderWithAnotherAlgebraSystem) {
  const Symbolic a = exp(x - y), over = exp(x), b = over / (exp(y) + s);
  const SymbolicCertificate c = certificate(a / (a + s), b);
  EXPECT_FALSE(c.identical);
  EXPECT_EQ(c.atoms[0], "E1 = exp(x-y)");
  EXPECT_EQ(c.atoms[1], "E2 = exp(x)");
  EXPECT_EQ(c.left.numerator, "E1");
  EXPECT_EQ(c.left.denominator, "s+E1");
  EXPECT_EQ(c.right.numerator, "E1*E2");
  EXPECT_EQ(c.right.denominator, "s*E1+E2");
  EXPECT_EQ(c.difference, "s*E1^2-s*E1*E2-E1^2*E2+E1*E2");
  EXPECT_EQ(c.positive, (std::vector<std::string>{"s", "E1", "E2"}));
  EXPECT_EQ(certificate(a, exp(x) / exp(y)).difference, "0");
}

// The reference point is a fresh indeterminate each time, and no output depends on it.
TEST_F(SymbolicNumbers, ProveSoftmaxForAnyReferencePoint) {
  const Symbolic row[] = {x, y};
  expect_different(Traits::reference_point(row), Traits::reference_point(row));
  const Vector<Symbolic> in = test::fresh_vector(scope, "u", 3);
  const Vector<Symbolic> weights = softmax(in);
  for (Index j = 0; j < 3; ++j) {
    EXPECT_TRUE(weights(j).is_known_positive());
    expect_identical(weights(j), exp(in(j)) / (exp(in(0)) + exp(in(1)) + exp(in(2))));
  }
  expect_identical(weights(0) + weights(1) + weights(2), number(1));
  const Exponentials<Symbolic> e = exponentials(in);
  expect_identical(e.reference + log(e.sum), log(exp(in(0)) + exp(in(1)) + exp(in(2))));
}

// With sign_test.cc the whole of attention.convex-hull: v_j - c <= 0 for all j makes the output of V - 1c^T at most 0,
// and that output is o - c.
TEST_F(SymbolicNumbers, ProveThatAttentionIsAffineInItsValues) {
  const Matrix<Symbolic> q = test::fresh_matrix(scope, "q", 2, 2), k = test::fresh_matrix(scope, "k", 3, 2),
                         v = test::fresh_matrix(scope, "v", 3, 1);
  Matrix<Symbolic> below = v;
  for (Index j = 0; j < 3; ++j) below(j, 0) = v(j, 0) - x;
  for (const Causal causal : {Causal::none, Causal::bottom_right}) {
    const Mask<Symbolic> mask = causal_mask<Symbolic>(causal);
    const Matrix<Symbolic> whole = mattn(q, k, v, s, mask), shifted = mattn(q, k, below, s, mask);
    for (Index i = 0; i < 2; ++i) {
      expect_identical(shifted(i, 0), whole(i, 0) - x);
      expect_different(shifted(i, 0), whole(i, 0));
    }
  }
}

// Rows beside a fully masked one are proved; the masked one is refused by name.
TEST_F(SymbolicNumbers, LeaveAFullyMaskedRowUndefined) {
  const Matrix<Symbolic> q = test::fresh_matrix(scope, "q", 2, 2), k = test::fresh_matrix(scope, "k", 2, 2),
                         v = test::fresh_matrix(scope, "v", 2, 2);
  BoolMatrix allowed = BoolMatrix::Constant(2, 2, true);
  allowed.row(1).setConstant(false);
  const Matrix<Symbolic> out = mattn(q, k, v, s, boolean_mask<Symbolic>(allowed)), free = attention(q, k, v, s);
  expect_identical(out(0, 0), free(0, 0));
  EXPECT_THROW((void)identical(out(1, 0), free(1, 0)), UndefinedUsed);
}

}  // namespace
}  // namespace attest
