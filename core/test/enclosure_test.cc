// What core on MPFI promises: the interval holds the exact value. The exact value is stood in for by the core on MPFR
// with far more digits.
#include "attest/columns.h"
#include "attest/multihead.h"
#include "test_scalars.h"

namespace attest {
namespace {

using namespace test;

constexpr unsigned interval_digits = 30, reference_digits = 120;

class Enclosure : public ::testing::Test {
 protected:
  std::mt19937_64 random{13};
  PrecisionScope<Interval> intervals_{interval_digits};
  PrecisionScope<Mpfr> numbers_{reference_digits};

  /// Entries with full significands, scores up to about 60: nothing here is exact in either format.
  Matrix<double> doubles(Index rows, Index cols) {
    Matrix<double> a(rows, cols);
    for (Index i = 0; i < rows; ++i)
      for (Index j = 0; j < cols; ++j) a(i, j) = (static_cast<double>(random() >> 11U) * 0x1p-53 - 0.5) * 8.0;
    return a;
  }
  static void expect_encloses(const Matrix<Interval>& found, const Matrix<Mpfr>& exact, double widest) {
    ASSERT_EQ(found.rows(), exact.rows());
    ASSERT_EQ(found.cols(), exact.cols());
    for (Index i = 0; i < found.rows(); ++i) {
      for (Index j = 0; j < found.cols(); ++j) {
        EXPECT_TRUE(ScalarTraits<Interval>::contains(found(i, j), exact(i, j))) << i << ", " << j;
        const auto& ends = *found(i, j).backend().data();
        EXPECT_LE(mpfr_get_d(&ends.right, MPFR_RNDU) - mpfr_get_d(&ends.left, MPFR_RNDD), widest) << i << ", " << j;
      }
    }
  }
};

/// Width that results of magnitude 4 may have as doubles: a thirty-digit interval is at most one double wide.
constexpr double narrow = 1e-14;

TEST_F(Enclosure, HoldsTheExactOutputAndLogSumExp) {
  for (int repeat = 0; repeat < 20; ++repeat) {
    const Matrix<double> q = doubles(3, 4), k = doubles(6, 4), v = doubles(6, 2), b = doubles(3, 6);
    const double tau = 0.3 + 0.01 * repeat;
    const auto run = [&]<class T>(T scale) {
      Mask<T> mask =
          additive_mask(matrix_from<T>(b), repeat % 2 == 0 ? MaskConvention::post_scale : MaskConvention::pre_scale);
      mask.causal = Causal::bottom_right;
      return mattn_lse(matrix_from<T>(q), matrix_from<T>(k), matrix_from<T>(v), scale, mask);
    };
    const AttentionResult<Interval> found = run(Interval(tau));
    const AttentionResult<Mpfr> exact = run(Mpfr(tau));
    expect_encloses(found.out, exact.out, narrow);
    expect_encloses(Matrix<Interval>(found.lse), Matrix<Mpfr>(exact.lse), narrow);
  }
}

// The check can fail: MPFR with the interval's own digits is not exact, and not every one of its results lies inside.
TEST_F(Enclosure, IsTooTightForAnInexactAnswer) {
  const Matrix<double> q = doubles(8, 4), k = doubles(6, 4), v = doubles(6, 8);
  const Matrix<Interval> found =
      attention(matrix_from<Interval>(q), matrix_from<Interval>(k), matrix_from<Interval>(v), Interval(0.3));
  const PrecisionScope<Mpfr> fewer(interval_digits - 4);
  const Matrix<Mpfr> rounded = attention(matrix_from<Mpfr>(q), matrix_from<Mpfr>(k), matrix_from<Mpfr>(v), Mpfr(0.3));
  int outside = 0;
  for (Index i = 0; i < 8; ++i)
    for (Index c = 0; c < 8; ++c) outside += ScalarTraits<Interval>::contains(found(i, c), rounded(i, c)) ? 0 : 1;
  EXPECT_GT(outside, 32);
}

// Inputs with a width: every choice of numbers inside them has its exact attention inside the output, although the
// scores overlap and cannot be ordered.
TEST_F(Enclosure, HoldsTheAttentionOfEveryPointOfWideInputs) {
  const Matrix<double> q = doubles(3, 2), k = doubles(4, 2), v = doubles(4, 2);
  constexpr double radius = 0.125;
  const auto widened = [&](const Matrix<double>& a) {
    Matrix<Interval> wide_one(a.rows(), a.cols());
    for (Index i = 0; i < a.rows(); ++i)
      for (Index j = 0; j < a.cols(); ++j)
        mpfi_interv_d(wide_one(i, j).backend().data(), a(i, j) - radius, a(i, j) + radius);
    return wide_one;
  };
  const auto sampled = [&](const Matrix<double>& a) {
    Matrix<Mpfr> point(a.rows(), a.cols());
    for (Index i = 0; i < a.rows(); ++i)
      for (Index j = 0; j < a.cols(); ++j)
        point(i, j) = Mpfr(a(i, j)) + Mpfr(radius * (static_cast<double>(random() % 3) - 1.0));
    return point;
  };
  const AttentionResult<Interval> found = mattn_lse(widened(q), widened(k), widened(v), Interval(0.25));
  for (int repeat = 0; repeat < 200; ++repeat) {
    const AttentionResult<Mpfr> exact = mattn_lse(sampled(q), sampled(k), sampled(v), Mpfr(0.25));
    expect_encloses(found.out, exact.out, /*widest=*/1e3);
    expect_encloses(Matrix<Interval>(found.lse), Matrix<Mpfr>(exact.lse), /*widest=*/1e3);
  }
}

TEST_F(Enclosure, SurvivesSplittingMergingHeadsAndColumns) {
  const Matrix<double> q = doubles(3, 4), k = doubles(7, 4), v = doubles(7, 2);
  const auto split = [&]<class T>(T scale) {
    const Matrix<T> qs = matrix_from<T>(q), ks = matrix_from<T>(k), vs = matrix_from<T>(v);
    const Mask<T> none;
    PartialAttention<T> merged = partial_attention(qs, ks, vs, scale, none, 0, 2);
    merged = merge(merged, partial_attention(qs, ks, vs, scale, none, 2, 6));
    return finish(merge(merged, partial_attention(qs, ks, vs, scale, none, 6, 7)));
  };
  const AttentionResult<Mpfr> whole =
      mattn_lse(matrix_from<Mpfr>(q), matrix_from<Mpfr>(k), matrix_from<Mpfr>(v), Mpfr(0.3));
  const AttentionResult<Interval> merged = split(Interval(0.3));
  expect_encloses(merged.out, whole.out, narrow);
  expect_encloses(Matrix<Interval>(merged.lse), Matrix<Mpfr>(whole.lse), narrow);

  const Matrix<double> w = doubles(4, 4), w_v = doubles(2, 4), w_o = doubles(4, 3), b_o = doubles(1, 3);
  const auto heads = [&]<class T>(T scale) {
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
  expect_encloses(heads(Interval(0.01)), heads(Mpfr(0.01)), 1e-12);
}

}  // namespace
}  // namespace attest
