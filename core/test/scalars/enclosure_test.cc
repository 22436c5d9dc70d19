// What the core on MPFI and on Arb promises: the enclosure holds the exact value. The exact value is stood in for by
// the core on MPFR with far more digits.
#include "core/definition/columns.h"
#include "core/definition/multihead.h"
#include "core/test/definition/other_forms.h"
#include "core/test/definition/test_scalars.h"
#include "core/test/scalars/contains.h"

namespace attest {
namespace {

using namespace test;

constexpr unsigned interval_digits = 30, reference_digits = 120;

/// Width of an enclosure, rounded up.
double width_of(const Interval& x) {
  const auto& ends = *x.backend().data();
  return mpfr_get_d(&ends.right, MPFR_RNDU) - mpfr_get_d(&ends.left, MPFR_RNDD);
}
double width_of(const Arb& x) {
  return 2 * mag_get_d(arb_radref(x.ball()));
}

void make_enclosure(Interval& x, double middle, double radius) {
  mpfi_interv_d(x.backend().data(), middle - radius, middle + radius);
}
void make_enclosure(Arb& x, double middle, double radius) {
  x = Arb(middle);
  mag_set_d(arb_radref(x.ball()), radius);
}

template <class T>
class Enclosure : public ::testing::Test {
 protected:
  std::mt19937_64 random{13};
  PrecisionScope<T> enclosures_{interval_digits};
  PrecisionScope<Mpfr> numbers_{reference_digits};

  /// Entries with full significands, scores up to about 60: nothing here is exact in either format.
  Matrix<double> doubles(Index rows, Index cols) {
    Matrix<double> a(rows, cols);
    for (Index i = 0; i < rows; ++i)
      for (Index j = 0; j < cols; ++j) a(i, j) = (static_cast<double>(random() >> 11U) * 0x1p-53 - 0.5) * 8.0;
    return a;
  }
  static void expect_encloses(const Matrix<T>& found, const Matrix<Mpfr>& exact, double widest) {
    ASSERT_EQ(found.rows(), exact.rows());
    ASSERT_EQ(found.cols(), exact.cols());
    for (Index i = 0; i < found.rows(); ++i) {
      for (Index j = 0; j < found.cols(); ++j) {
        EXPECT_TRUE(test::contains(found(i, j), exact(i, j))) << i << ", " << j;
        EXPECT_LE(width_of(found(i, j)), widest) << i << ", " << j;
      }
    }
  }
};

using Enclosures = ::testing::Types<Interval, Arb>;
TYPED_TEST_SUITE(Enclosure, Enclosures, ScalarNames);

/// Width that results of magnitude 4 may have as doubles: a thirty-digit interval is at most one double wide.
constexpr double narrow = 1e-14;

TYPED_TEST(Enclosure, HoldsTheExactOutputAndLogSumExp) {
  using Ball = TypeParam;
  for (int repeat = 0; repeat < 20; ++repeat) {
    const Matrix<double> q = this->doubles(3, 4), k = this->doubles(6, 4), v = this->doubles(6, 2),
                         b = this->doubles(3, 6);
    const double tau = 0.3 + 0.01 * repeat;
    const auto run = [&]<class T>(const T& scale) {
      Mask<T> mask =
          additive_mask(matrix_from<T>(b), repeat % 2 == 0 ? MaskConvention::post_scale : MaskConvention::pre_scale);
      mask.positions.causal = Causal::bottom_right;
      return mattn_lse(matrix_from<T>(q), matrix_from<T>(k), matrix_from<T>(v), scale, mask);
    };
    const AttentionResult<Ball> found = run(Ball(tau));
    const AttentionResult<Mpfr> exact = run(Mpfr(tau));
    this->expect_encloses(found.out, exact.out, narrow);
    this->expect_encloses(Matrix<Ball>(found.lse), Matrix<Mpfr>(exact.lse), narrow);
  }
}

// The check can fail: MPFR with the interval's own digits is not exact, and not every one of its results lies inside.
TYPED_TEST(Enclosure, IsTooTightForAnInexactAnswer) {
  using Ball = TypeParam;
  const Matrix<double> q = this->doubles(8, 4), k = this->doubles(6, 4), v = this->doubles(6, 8);
  const Matrix<Ball> found = attention(matrix_from<Ball>(q), matrix_from<Ball>(k), matrix_from<Ball>(v), Ball(0.3));
  const PrecisionScope<Mpfr> fewer(interval_digits - 4);
  const Matrix<Mpfr> rounded = attention(matrix_from<Mpfr>(q), matrix_from<Mpfr>(k), matrix_from<Mpfr>(v), Mpfr(0.3));
  int outside = 0;
  for (Index i = 0; i < 8; ++i)
    for (Index c = 0; c < 8; ++c) outside += test::contains(found(i, c), rounded(i, c)) ? 0 : 1;
  EXPECT_GT(outside, 32);
}

// Inputs with a width: every choice of numbers inside them has its exact attention inside the output, although the
// scores overlap and cannot be ordered.
TYPED_TEST(Enclosure, HoldsTheAttentionOfEveryPointOfWideInputs) {
  using Ball = TypeParam;
  const Matrix<double> q = this->doubles(3, 2), k = this->doubles(4, 2), v = this->doubles(4, 2);
  constexpr double radius = 0.125;
  const auto widened = [&](const Matrix<double>& a) {
    Matrix<Ball> wide_one(a.rows(), a.cols());
    for (Index i = 0; i < a.rows(); ++i)
      for (Index j = 0; j < a.cols(); ++j) make_enclosure(wide_one(i, j), a(i, j), radius);
    return wide_one;
  };
  const auto sampled = [&](const Matrix<double>& a) {
    Matrix<Mpfr> point(a.rows(), a.cols());
    for (Index i = 0; i < a.rows(); ++i)
      for (Index j = 0; j < a.cols(); ++j)
        point(i, j) = Mpfr(a(i, j)) + Mpfr(radius * (static_cast<double>(this->random() % 3) - 1.0));
    return point;
  };
  const AttentionResult<Ball> found = mattn_lse(widened(q), widened(k), widened(v), Ball(0.25));
  for (int repeat = 0; repeat < 200; ++repeat) {
    const AttentionResult<Mpfr> exact = mattn_lse(sampled(q), sampled(k), sampled(v), Mpfr(0.25));
    this->expect_encloses(found.out, exact.out, /*widest=*/1e3);
    this->expect_encloses(Matrix<Ball>(found.lse), Matrix<Mpfr>(exact.lse), /*widest=*/1e3);
  }
}

TYPED_TEST(Enclosure, SurvivesSplittingMergingHeadsAndColumns) {
  using Ball = TypeParam;
  const Matrix<double> q = this->doubles(3, 4), k = this->doubles(7, 4), v = this->doubles(7, 2);
  const auto split = [&]<class T>(const T& scale) {
    const Matrix<T> qs = matrix_from<T>(q), ks = matrix_from<T>(k), vs = matrix_from<T>(v);
    const Mask<T> none;
    PartialAttention<T> merged = partial_attention(qs, ks, vs, scale, none, 0, 2);
    merged = merge(merged, partial_attention(qs, ks, vs, scale, none, 2, 6));
    return finish(merge(merged, partial_attention(qs, ks, vs, scale, none, 6, 7)));
  };
  const AttentionResult<Mpfr> whole =
      mattn_lse(matrix_from<Mpfr>(q), matrix_from<Mpfr>(k), matrix_from<Mpfr>(v), Mpfr(0.3));
  const AttentionResult<Ball> merged = split(Ball(0.3));
  this->expect_encloses(merged.out, whole.out, narrow);
  this->expect_encloses(Matrix<Ball>(merged.lse), Matrix<Mpfr>(whole.lse), narrow);

  const Matrix<double> w = this->doubles(4, 4), w_v = this->doubles(2, 4), w_o = this->doubles(4, 3),
                       b_o = this->doubles(1, 3);
  const auto heads = [&]<class T>(const T& scale) {
    MultiheadWeights<T> weights{.q = {matrix_from<T>(w), {}},
                                .k = {matrix_from<T>(w), {}},
                                .v = {matrix_from<T>(w_v), {}},
                                .w_o = matrix_from<T>(w_o),
                                .b_o = {},
                                .bias_k = {},
                                .bias_v = {},
                                .heads = 2};
    weights.b_o = Vector<T>(matrix_from<T>(b_o).row(0).transpose());
    return mhattn(matrix_from<T>(q), matrix_from<T>(k), matrix_from<T>(v), weights, scale);
  };
  this->expect_encloses(heads(Ball(0.01)), heads(Mpfr(0.01)), 1e-12);
}

}  // namespace
}  // namespace attest
