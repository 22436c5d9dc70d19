// Expressions: what is one node and what is not, and what each back end of proofs makes of them.
#include "core/proof/expression.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/definition/attention.h"
#include "core/proof/evaluation.h"
#include "core/proof/finite_field.h"
#include "core/proof/proof_back_end.h"
#include "core/support/errors.h"
#include "core/test/refusal.h"

namespace attest {
namespace {

using Traits = ScalarTraits<Expression>;

class Expressions : public ::testing::Test {
 protected:
  ExpressionScope scope;
  Expression x = scope.real("x"), y = scope.real("y"), s = scope.positive("s");
  static Expression number(double value) { return Traits::from_double(value); }
  static Expression exp(const Expression& a) { return Traits::exp(a); }
  Matrix<Expression> matrix(const std::string& name, Index rows, Index columns) {
    Matrix<Expression> m(rows, columns);
    for (Index i = 0; i < rows; ++i)
      for (Index j = 0; j < columns; ++j) m(i, j) = scope.real(name + std::to_string(i) + std::to_string(j));
    return m;
  }
};

TEST_F(Expressions, AreOneNodeForTheSameOperationsInTheSameOrder) {
  EXPECT_EQ((x + y).node(), (x + y).node());
  EXPECT_NE((x + y).node(), (y + x).node());
  EXPECT_NE((x + y).node(), (x - y).node());
  EXPECT_EQ(number(0.0).node(), number(-0.0).node());
  EXPECT_NE(scope.real("x").node(), x.node()) << "another input of the same name";
  const std::vector<Expression> row{x, y}, other{y, x};
  EXPECT_EQ(Traits::reference_point(row).node(), Traits::reference_point(row).node());
  EXPECT_NE(Traits::reference_point(row).node(), Traits::reference_point(other).node());
  EXPECT_NE(Traits::reference_point(std::vector{x}).node(), Traits::reference_point(std::vector{x, x}).node());
  // Also when there are so many that the table has grown.
  const std::uint32_t before = exp(x * y).node();
  Expression sum = x;
  for (int i = 0; i < 5000; ++i) sum = sum + y;
  EXPECT_EQ(exp(x * y).node(), before);
}

TEST_F(Expressions, KnowInfinityAndWhatIsUndefined) {
  const Expression hidden = Traits::minus_infinity();
  EXPECT_EQ((hidden + x).kind(), ProofKind::minus_infinity);
  EXPECT_EQ((s * hidden).kind(), ProofKind::minus_infinity);
  EXPECT_EQ((exp(x) * s * hidden).kind(), ProofKind::minus_infinity);
  EXPECT_THROW(static_cast<void>(x * hidden), InfinityMisused);
  EXPECT_THROW(static_cast<void>(x - hidden), InfinityMisused);
  EXPECT_THROW(static_cast<void>(hidden / x), InfinityMisused);
  EXPECT_EQ(exp(hidden).node(), number(0).node());
  EXPECT_THROW(static_cast<void>(Traits::log(hidden)), InfinityMisused);
  EXPECT_THROW(static_cast<void>(Traits::reference_point(std::vector{x, hidden})), InfinityMisused);
  EXPECT_THROW(static_cast<void>(Expression() + x), UndefinedUsed);
  EXPECT_THROW(static_cast<void>(Expression().node()), UndefinedUsed);
  EXPECT_THROW(static_cast<void>(number(std::numeric_limits<double>::infinity())), InfinityMisused);
}

TEST_F(Expressions, EvaluateToWhatTheCoreComputesOnTheScalarItself) {
  const Matrix<Expression> q = matrix("q", 2, 2), k = matrix("k", 3, 2), v = matrix("v", 3, 2);
  const Matrix<Expression> written = attention<Expression>(q, k, v, s);
  SymbolicScope symbols(64);
  NodeMap places;
  Evaluation<SymbolicScope> evaluation(scope, symbols, places);
  const auto evaluated = [&](const Matrix<Expression>& m) {
    Matrix<Symbolic> out(m.rows(), m.cols());
    for (Index i = 0; i < m.rows(); ++i)
      for (Index j = 0; j < m.cols(); ++j) out(i, j) = evaluation.at(m(i, j).node());
    return out;
  };
  const Matrix<Symbolic> direct =
      attention<Symbolic>(evaluated(q), evaluated(k), evaluated(v), evaluation.at(s.node()));
  const Matrix<Symbolic> out = evaluated(written);
  for (Index i = 0; i < 2; ++i)
    for (Index c = 0; c < 2; ++c) {
      EXPECT_TRUE(identical(out(i, c), direct(i, c))) << i << c;
      EXPECT_FALSE(identical(out(i, c), direct(1 - i, c))) << i << c;
    }
}

TEST_F(Expressions, AreDecidedByEachBackEnd) {
  const Expression square = (x + y) * (x + y), expanded = x * x + number(2) * x * y + y * y;
  const Expression product = exp(x) * exp(y), of_sum = exp(x + y);
  for (const BackEnd kind : {BackEnd::symbolic, BackEnd::finite_field}) {
    const std::unique_ptr<ProofBackEnd> back_end = make_back_end(kind);
    const auto same = [&](const Expression& a, const Expression& b) {
      return back_end->identical(scope, a.node(), b.node());
    };
    EXPECT_TRUE(same(square, expanded)) << name_of(kind);
    EXPECT_FALSE(same(square, expanded + number(0x1p-30))) << name_of(kind);
    EXPECT_TRUE(same(product, of_sum)) << name_of(kind);
    EXPECT_FALSE(same(product, exp(x - y))) << name_of(kind);
    EXPECT_TRUE(same(exp(x) / (exp(x) + exp(y)), number(1) / (number(1) + exp(y - x)))) << name_of(kind);
    EXPECT_THROW(static_cast<void>(same(number(1) / x, number(1) / x)), NotKnownNonzero) << name_of(kind);
    EXPECT_TRUE(back_end->made_sure(scope, -200));
    EXPECT_LE(back_end->log2_error(), -200);
  }
}

TEST_F(Expressions, AddUpTheErrorsOfAllFieldsAndMultiplyThoseOfPasses) {
  // exp(x) exp(y) = exp(x + y) for so many x and y of their own, so that each pair has a field of its own.
  const auto error_of = [&](int pairs, double wanted) {
    const std::unique_ptr<ProofBackEnd> field = make_back_end(BackEnd::finite_field);
    for (int pair = 0; pair < pairs; ++pair) {
      const Expression a = scope.real("a"), b = scope.real("b");
      EXPECT_TRUE(field->identical(scope, (exp(a) * exp(b)).node(), exp(a + b).node()));
    }
    EXPECT_TRUE(field->made_sure(scope, wanted));
    return field->log2_error();
  };
  // One point modulo p < 2^63 cannot tell more surely than this; atoms are drawn from fewer than 2^56.
  const double one = error_of(1, 0);
  EXPECT_GT(one, -63);
  EXPECT_LT(one, -20);
  EXPECT_NEAR(error_of(64, 0), one + 6, 1e-3);
  EXPECT_NEAR(error_of(1, -60), std::ceil(-60 / one) * one, 1e-3) << "as many passes as it takes";
}

TEST_F(Expressions, HaveRoomForExponentialsThatTheTwoSidesDoNotShare) {
  // Seven independent ones in a sum, where half of them is what a field is first drawn for.
  Expression forwards = number(0), backwards = number(0);
  std::vector<Expression> terms;
  for (int i = 0; i < 7; ++i) terms.push_back(exp(scope.real("a")));
  for (std::size_t i = 0; i < terms.size(); ++i) {
    forwards = forwards + terms[i];
    backwards = backwards + terms[terms.size() - 1 - i];
  }
  const std::unique_ptr<ProofBackEnd> field = make_back_end(BackEnd::finite_field);
  EXPECT_TRUE(field->identical(scope, forwards.node(), backwards.node()));
  EXPECT_FALSE(field->identical(scope, forwards.node(), (backwards + terms[0]).node()));
  EXPECT_TRUE(field->made_sure(scope, -60));
  EXPECT_LE(field->log2_error(), -60);
}

TEST_F(Expressions, HaveSignsAsFarAsTheirTermsTell) {
  struct Row {
    Expression number;
    bool nonnegative, positive, by_signs;
  };
  const Row rows[] = {{exp(x), true, true, true},
                      {s * exp(x) + number(1), true, true, true},
                      {x * x, true, false, false},  // signs do not know that both are one x
                      {number(0), true, false, true},
                      {exp(x) - number(1), false, false, false},
                      {x, false, false, false},
                      {exp(x) - exp(x), true, false, false},
                      {number(1) - exp(x) / (exp(x) + exp(y)), true, true, false}};
  const auto symbolic = make_back_end(BackEnd::symbolic), sign = make_back_end(BackEnd::sign);
  for (const Row& row : rows) {
    const std::uint32_t node = row.number.node();
    EXPECT_EQ(symbolic->known_nonnegative(scope, node), row.nonnegative) << &row - rows;
    EXPECT_EQ(symbolic->known_positive(scope, node), row.positive) << &row - rows;
    EXPECT_EQ(sign->known_nonnegative(scope, node), row.by_signs) << &row - rows;
  }
  EXPECT_THROW(static_cast<void>(sign->identical(scope, x.node(), x.node())), NotTreated);
  const auto field = make_back_end(BackEnd::finite_field), taint = make_back_end(BackEnd::taint);
  EXPECT_THROW(static_cast<void>(field->known_positive(scope, s.node())), NotTreated);
  EXPECT_THROW(static_cast<void>(taint->known_nonnegative(scope, s.node())), NotTreated);
}

TEST_F(Expressions, AreTheSameByTaintOnlyWhenComputedAlike) {
  const auto taint = make_back_end(BackEnd::taint);
  EXPECT_TRUE(taint->identical(scope, exp(x + y).node(), exp(x + y).node()));
  EXPECT_THROW(static_cast<void>(taint->identical(scope, (x + y).node(), (y + x).node())), NotTreated);
  EXPECT_THROW(static_cast<void>(taint->identical(scope, x.node(), scope.real("x").node())), NotTreated);
}

TEST(BackEnds, HaveNames) {
  for (const char* const name : {"symbolic", "finite-field", "sign", "taint"})
    EXPECT_EQ(name_of(back_end_from(name)), name);
  EXPECT_THAT(refusal([] { return back_end_from("finite-feild"); }), Says("did you mean \"finite-field\"?"));
}

}  // namespace
}  // namespace attest
