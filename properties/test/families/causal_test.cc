// Each theorem about the causal form, batches and layouts holds for right kernels and goes red for a wrong one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/multiprecision/cpp_int.hpp>
#include <cmath>

#include "core/problem/selection.h"
#include "properties/arrangement/arrange.h"
#include "properties/families/layout_laws.h"
#include "properties/test/catalogue/spoilt.h"
#include "properties/test/property_fixture.h"

namespace attest {
namespace {

TEST(Causal, HoldsForRightKernels) {
  for (const char* const id :
       {"builtin:two-pass", "builtin:flash", "core:double", "core:bfloat16", "core:mpfi", "core:arb"}) {
    const auto kernel = registered(id);
    for (const char* const name : {"causal.no-leak", "causal.first-row", "causal.prefix", "causal.alignment",
                                   "batch.independence", "batch.mask-forms"}) {
      const OutcomeCounts n = tally_of(name, *kernel, 100, kernel->manifest().dtypes.front());
      EXPECT_EQ(n.violated, 0) << id << ' ' << name << ": " << n.reason;
      EXPECT_GE(n.held, 60) << id << ' ' << name << ": " << n.excused << " excused, " << n.skipped << " skipped";
    }
  }
}

TEST(Causal, SeesTheFuture) {
  Tampered ignores = asked_otherwise([](Case& c) {
    c.causal = Causal::none;
    c[Slot::mask] = Tensor();
  });
  for (const char* const name : {"causal.no-leak", "causal.first-row", "causal.prefix"})
    EXPECT_GT(tally_of(name, ignores).violated, 60) << name;
  // One place too far.
  Tampered late = asked_otherwise([](Case& c) {
    if (c.causal == Causal::none) return;
    c = with_causal_written_out(c);
    const std::int64_t N = keys_of(c), M = queries_of(c);
    c[Slot::mask] = mapped(c.mask(), [&](std::int64_t e, double old) { return e % N == e / N % M + 1 ? 0.0 : old; });
  });
  EXPECT_GT(tally_of("causal.no-leak", late).violated, 40);
  EXPECT_GT(tally_of("causal.first-row", late).violated, 60);
}

TEST(Causal, SeesTheOtherAlignment) {
  Tampered exchanged = asked_otherwise([](Case& c) {
    if (c.causal != Causal::none) c.causal = c.causal == Causal::top_left ? Causal::bottom_right : Causal::top_left;
  });
  EXPECT_GT(tally_of("causal.alignment", exchanged).violated, 80);
  // With M = N, and of a prefix, it makes no difference: these properties do not tell.
  EXPECT_EQ(tally_of("batch.independence", exchanged).violated, 0);
}

TEST(Causal, SeesAPrefixThatDiffersInTheLastBit) {
  const auto kernel =
      function_kernel("toy", claiming_manifest(), [](const attest_problem& p, attest_result& r, std::string& m) {
        const int status = toy_attention(Bug::none, p, r, m);
        const auto dtype = static_cast<DType>(r.out.dtype);
        const std::int64_t cells = r.out.shape[0] * r.out.shape[1] * r.out.shape[2] * r.out.shape[3];
        for (std::int64_t e = 0; p.q.shape[2] % 2 == 0 && e < cells; ++e)
          store_element(r.out.data, dtype, e, std::nextafter(load_element(r.out.data, dtype, e), 1e300));
        return status;
      });
  EXPECT_GT(tally_of("causal.prefix", *kernel).violated, 50);
}

TEST(Batch, SeesAnEntryThatDependsOnAnother) {
  // Every entry is answered with the values of the first: `strides of the batch`.
  Tampered first = asked_otherwise([](Case& c) {
    Selection s = everything(c);
    for (std::int64_t& b : s.batch) b = 0;
    c[Slot::v] = select(c, s).v();
  });
  EXPECT_GT(tally_of("batch.independence", first).violated, 40);
}

TEST(Batch, SeesAMaskReadAtTheWrongPlace) {
  // A mask for every head is read as if the heads came first.
  Tampered wrong = asked_otherwise([](Case& c) {
    if (!c.mask().present() || c.mask().shape()[0] * c.mask().shape()[1] == 1) return;
    const Tensor old = c.mask();
    const std::int64_t M = queries_of(c), N = keys_of(c), plane = M * N;
    if (plane == 0) return;
    c[Slot::mask] = mapped(old, [&](std::int64_t e, double) { return old[e / plane * plane + (e + 1) % plane]; });
  });
  EXPECT_GT(tally_of("batch.mask-forms", wrong).violated, 60);
}

using Rational = boost::multiprecision::cpp_rational;

/// Deletes the row and column after the one that is meant.
struct OffByOne : CoreLayout {
  template <class T>
  static Matrix<T> without_row(const Matrix<T>& a, Index i) {
    return attest::without_row(a, (i + 1) % a.rows());
  }
};
struct OffByOneColumn : CoreLayout {
  template <class T>
  static Matrix<T> without_column(const Matrix<T>& a, Index s) {
    return attest::without_column(a, (s + 1) % a.cols());
  }
};
/// [B | A] where [A | B] is meant, after a deletion.
struct Exchanged : CoreLayout {
  template <class T>
  static Matrix<T> beside(const Matrix<T>& a, const Matrix<T>& b) {
    return a.rows() == 3 ? CoreLayout::beside(a, b) : CoreLayout::beside(b, a);
  }
};
/// Deletes nothing of one column, everything else right.
struct KeepsOneColumn : CoreLayout {
  template <class T>
  static Matrix<T> without_row(const Matrix<T>& a, Index i) {
    return a.cols() == 4 ? a : CoreLayout::without_row(a, i);
  }
};
struct RowsFirst : CoreLayout {
  static Index fused(Index a, Index i, Index p) { return i * p + a; }
};

template <class Layout>
std::string broken() {
  Matrix<Rational> a(2, 2), k(3, 2), b(3, 4);
  int next = 1;
  for (Matrix<Rational>* m : {&a, &k, &b})
    for (Index r = 0; r < m->rows(); ++r)
      for (Index c = 0; c < m->cols(); ++c) (*m)(r, c) = Rational(++next, 7);
  return broken_deletion_identity<Layout>(a, k, b, 0, 1, [](const Rational& x, const Rational& y) { return x == y; });
}

TEST(Layout, IdentitiesFailWhereTheyAreBroken) {
  EXPECT_EQ(broken<CoreLayout>(), "");
  EXPECT_EQ(broken<OffByOneColumn>(), "(K^T)^[s] = (K^(s))^T");
  EXPECT_EQ(broken<OffByOne>(), "(K^T)^[s] = (K^(s))^T");
  EXPECT_EQ(broken<KeepsOneColumn>(), "(1_M b^T)^(i) = 1_{M-1} b^T");
  EXPECT_EQ(broken<Exchanged>(), "[A|B]^(i) = [A^(i)|B^(i)]");
  const std::vector<double> memory{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  const auto same = [](double x, double y) { return x == y; };
  EXPECT_EQ((broken_fusion<CoreLayout>(memory, 2, 3, 2, same)), "");
  EXPECT_NE((broken_fusion<RowsFirst>(memory, 2, 3, 2, same)), "");
}

TEST(Causal, HypothesesAreNamed) {
  const auto unmasked = [](Case& c) { c = without_mask(c); };
  const auto ragged = [](Case& c) {
    c = with_keys(with_queries(without_mask(c), {0}), {0, 0});
    c.causal = Causal::bottom_right;
  };
  EXPECT_THAT(why_skipped("causal.no-leak", unmasked), Says("sees key"));
  for (const char* const name : {"causal.first-row", "causal.prefix", "causal.alignment"})
    EXPECT_THAT(why_skipped(name, [](Case& c) { c = with_keys(with_queries(without_mask(c), {0}), {0, 0}); }),
                Says("has no causal form"))
        << name;
  for (const char* const name : {"causal.first-row", "causal.prefix"})
    EXPECT_THAT(why_skipped(name, ragged), Says("is bottom-right with 1 queries and 2 keys")) << name;
  EXPECT_THAT(why_skipped("causal.column-form", ragged), Says("is not top-left"));
  EXPECT_THAT(why_skipped("causal.alignment", [](Case& c) { c = with_keys(with_queries(c, {0}), {0}); }),
              Says("has M = N"));
  EXPECT_THAT(why_skipped("batch.independence", [](Case& c) { c = with_batch(c, {0}); }), Says("one batch entry"));
  EXPECT_THAT(why_skipped("batch.mask-forms", unmasked), Says("has no mask"));
}

}  // namespace
}  // namespace attest
