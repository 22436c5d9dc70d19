// Cases whose tensors stand against protected pages: how often they are drawn, and what becomes of one that finds
// something.
#include <gtest/gtest.h>

#include <array>

#include "core/problem/edge.h"
#include "properties/test/toy_kernels.h"

namespace attest {
namespace {

TEST(EdgeCases, PutsHalfOfAllCasesAgainstPagesEachEndAsOften) {
  std::array<int, 3> counts{};
  Recipe r;
  for (r.seed = 0; r.seed < 4000; ++r.seed) {
    const Case c = decode(r);
    ASSERT_EQ(edge_of(decode(r)), edge_of(c));
    ++counts[static_cast<std::size_t>(edge_of(c))];
  }
  EXPECT_NEAR(counts[static_cast<std::size_t>(Edge::front)], 1000, 120);
  EXPECT_NEAR(counts[static_cast<std::size_t>(Edge::behind)], 1000, 120);
}

/// Reads the number past the last of k, or before the first of it, and does nothing with it.
std::unique_ptr<Kernel> reads_past(bool behind) {
  return function_kernel("past", toy_manifest(), [behind](const attest_problem& p, attest_result& r, std::string& m) {
    const attest_tensor& k = p.k;
    std::int64_t last = 0;
    for (int axis = 0; axis < k.rank; ++axis) last += (k.shape[axis] - 1) * k.stride[axis];
    const std::int64_t elements = k.shape[0] * k.shape[1] * k.shape[2] * k.shape[3];
    const std::int64_t size = static_cast<std::int64_t>(size_of(static_cast<DType>(k.dtype)));
    const volatile char seen =
        static_cast<const volatile char*>(k.data)[behind ? (elements == 0 ? 0 : size * (last + 1)) : -1];
    static_cast<void>(seen);
    return toy_attention(Bug::none, p, r, m);
  });
}

TEST(EdgeCases, FindsADiscardedReadShrinksItAndFindsItAgain) {
  for (const bool behind : {false, true}) {
    const auto kernel = reads_past(behind);
    int found = 0;
    for (std::int64_t k = 0; k < 40; ++k) {
      const Case c = project(generate(toy_property, DType::f32, 1, k), kernel->manifest());
      const Verdict verdict = check_case(toy_property, *kernel, c);
      const bool at_edge = edge_of(c) == (behind ? Edge::behind : Edge::front);
      ASSERT_EQ(verdict.violation == Violation::failed, at_edge) << k << verdict.reason;
      if (!at_edge || ++found > 3) continue;
      EXPECT_NE(verdict.reason.find(behind ? "byte 0 after the end of k" : "byte 1 before the start of k"),
                std::string::npos)
          << verdict.reason;
      const Case small = shrink(toy_property, *kernel, c);
      EXPECT_EQ(edge_of(small), edge_of(c));
      EXPECT_LE(small.k().elements(), 1);
      const Case again = decode_case(encode_case(small), "saved");
      EXPECT_EQ(check_case(toy_property, *kernel, again).violation, Violation::failed);
    }
    EXPECT_GT(found, 3);
  }
}

}  // namespace
}  // namespace attest
