// What an output of another shape looks like.
#include "core/isolation/unfit_output.h"

#include <gtest/gtest.h>

#include "core/test/isolation/kernel_problem.h"

namespace attest {
namespace {

using namespace testing_process;

std::string likeness_of(const Shape& shape, const Case& c) {
  return process::likeness(Tensor(DType::f32, shape), c);
}

TEST(UnfitOutput, LooksLikeAnotherOrderOfAxes) {
  const Case c = attention_case(DType::f32, {2, 3, 5, 7, 4, 6});
  EXPECT_EQ(likeness_of({2, 5, 3, 6}, c), ": it looks like [batch, tokens, heads, dim]");
  EXPECT_EQ(likeness_of({5, 2, 3, 6}, c), ": it looks like [tokens, batch, heads, dim]");
  EXPECT_EQ(likeness_of({2, 3, 6, 5}, c), ": it looks like [batch, heads, dim, tokens]");
  const Case many = multihead_case(DType::f32, {});
  EXPECT_EQ(likeness_of({3, 2, 6}, many), ": it looks like [tokens, batch, channels]");
  // With as many heads as batch entries two orders would do: nothing is guessed.
  EXPECT_EQ(likeness_of({5, 2, 2, 6}, attention_case(DType::f32, {2, 2, 5, 7, 4, 6})), "");
}

TEST(UnfitOutput, LooksLikeOtherTensors) {
  const Case c = attention_case(DType::f32, {2, 3, 5, 7, 4, 6});
  EXPECT_EQ(process::likeness(c.q(), c), ": it is q itself");
  EXPECT_EQ(process::likeness(c.k(), c), ": it is k itself");
  EXPECT_EQ(process::likeness(c.v(), c), ": it is v itself");
  // As many zeros are not.
  EXPECT_EQ(likeness_of({2, 3, 5, 4}, c), "");
  EXPECT_EQ(likeness_of({2, 3, 5, 7}, c), ": it looks like the weights [batch, heads, queries, keys]");
  EXPECT_EQ(likeness_of({2, 3, 7, 6}, c), ": it looks like a row for every key, not for every query");
  EXPECT_EQ(likeness_of({2, 5, 18}, c), ": it looks like [batch, tokens, heads * dim]");
  EXPECT_EQ(likeness_of({6, 5, 6}, c), ": it looks like [batch * heads, tokens, dim]");
  EXPECT_EQ(likeness_of({180}, c), "");
  EXPECT_EQ(likeness_of({}, c), "");
}

}  // namespace
}  // namespace attest
