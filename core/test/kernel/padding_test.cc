// What no sequence has of gradients: a backward pass may leave it as it was, and nobody sees what is there.
#include "core/kernel/padding.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/kernel/kernel_under_test.h"
#include "core/problem/sight.h"
#include "core/test/cases.h"
#include "core/test/replies.h"

namespace attest {
namespace {

using Elements = std::vector<std::int64_t>;

Tensor whole(const std::vector<double>& numbers) {
  Tensor t(DType::i32, Shape{std::ssize(numbers)});
  for (std::int64_t e = 0; e < t.elements(); ++e) t.set(e, numbers[static_cast<std::size_t>(e)]);
  return t;
}

Case case_of(std::int64_t batch, std::int64_t queries, std::int64_t keys) {
  const auto ones = [](Slot, const Shape& shape) { return test::filled(DType::f64, shape, [] { return 1.0; }); };
  Case c = test::attention_of({.batch = batch, .heads = 2, .queries = queries, .keys = keys, .kv_heads = 1}, ones);
  c[Slot::d_out] = ones(Slot::d_out, {batch, 2, queries, 1});
  return c;
}
/// Entry 0 has three rows and two keys of three, entry 1 one row and no key.
Case with_lengths() {
  Case c = case_of(2, 3, 3);
  c[Slot::q_lengths] = whole({3, 1}), c[Slot::kv_lengths] = whole({2, 0});
  return c;
}
/// Two sequences of one row and one key each, and a row and a key behind them.
Case packed() {
  Case c = case_of(1, 3, 3);
  c[Slot::q_starts] = whole({0, 1, 2}), c[Slot::kv_starts] = whole({0, 1, 2});
  return c;
}

TEST(PaddingOfGradients, IsWhatNoSequenceHas) {
  for (const Gradient gradient : every_gradient) EXPECT_EQ(padding_of(case_of(2, 3, 3), gradient), Elements());
  Case c = with_lengths();
  EXPECT_EQ(padding_of(c, Gradient::q), (Elements{7, 8, 10, 11}));
  EXPECT_EQ(padding_of(c, Gradient::k), (Elements{2, 3, 4, 5}));
  EXPECT_EQ(padding_of(c, Gradient::v), (Elements{2, 3, 4, 5}));
  EXPECT_EQ(padding_of(c, Gradient::mask), Elements()) << "there is none";
  c[Slot::left_pad] = whole({1, 0});
  EXPECT_EQ(padding_of(c, Gradient::k), (Elements{0, 2, 3, 4, 5}));
  EXPECT_EQ(padding_of(packed(), Gradient::q), (Elements{2, 5}));
  EXPECT_EQ(padding_of(packed(), Gradient::v), (Elements{2}));
}

TEST(PaddingOfGradients, OfAMaskIsARowAndAKeyThatNoSequenceHasBothOf) {
  Case c = with_lengths();
  c[Slot::mask] = Tensor(DType::f64, {2, 1, 3, 3});
  EXPECT_EQ(padding_of(c, Gradient::mask), (Elements{2, 5, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17}));
  // One mask for both entries: what either has is no padding.
  c[Slot::mask] = Tensor(DType::f64, {1, 1, 3, 3});
  EXPECT_EQ(padding_of(c, Gradient::mask), (Elements{2, 5, 8}));
  c = packed();
  c[Slot::mask] = Tensor(DType::f64, {1, 2, 3, 3}), c[Slot::sink] = Tensor(DType::f32, {2});
  EXPECT_EQ(padding_of(c, Gradient::mask), (Elements{1, 2, 3, 5, 6, 7, 8, 10, 11, 12, 14, 15, 16, 17}));
  EXPECT_EQ(padding_of(c, Gradient::sink), Elements());
  c[Slot::mask] = Tensor(DType::boolean, {1, 2, 3, 3});
  EXPECT_EQ(padding_of(c, Gradient::mask), Elements()) << "a mask of choices has no gradient";
}

/// A backward pass that writes a 7 wherever `writes(gradient, element)`.
template <class Writes>
Reply reply_of(const Case& c, const Writes& writes, const GradientChoice& wanted = all_gradients) {
  Manifest manifest;
  manifest.name = "test", manifest.dtypes = {DType::f64}, manifest.lse = manifest.backward = true;
  KernelFunctions functions;
  functions.backward = [&](const attest_backward_problem&, attest_gradients& g, std::string&) {
    for (const auto& [gradient, view] : {std::pair{Gradient::q, &g.dq}, {Gradient::k, &g.dk}, {Gradient::v, &g.dv}}) {
      for (std::int64_t e = 0; view->data != nullptr && e < c[slot_of(gradient)].elements(); ++e)
        if (writes(gradient, e)) static_cast<double*>(view->data)[e] = 7;
    }
    return ATTEST_OK;
  };
  const Tensor lse(DType::f64, {batch_of(c), 2, queries_of(c)});
  return function_kernel("test:it", manifest, functions)->backward(c, {c[Slot::d_out], lse, wanted, {}}, DType::f64);
}

bool is_padding(const Case& c, Gradient gradient, std::int64_t e) {
  return std::ranges::binary_search(padding_of(c, gradient), e);
}

TEST(PaddingOfGradients, NeedNotBeWrittenAndIsNotSeen) {
  for (const Case& c : {with_lengths(), packed(), case_of(2, 3, 3)}) {
    const Reply without = reply_of(c, [&](Gradient of, std::int64_t e) { return !is_padding(c, of, e); });
    ASSERT_EQ(without.status, CallStatus::ok) << without.message;
    const Reply with = reply_of(c, [](Gradient, std::int64_t) { return true; });
    ASSERT_EQ(with.status, CallStatus::ok) << with.message;
    for (const Gradient of : gradients_by_inputs) {
      const auto at = static_cast<std::size_t>(of);
      for (std::int64_t e = 0; e < c[slot_of(of)].elements(); ++e)
        EXPECT_EQ(without.gradients[at][e], is_padding(c, of, e) ? 0 : 7) << name_of(of) << e;
      EXPECT_EQ(with.gradients[at].tensor(), without.gradients[at].tensor()) << name_of(of);
    }
  }
}

TEST(PaddingOfGradients, IsNotSeenOfOneThatIsAskedForAlone) {
  for (const Case& c : {with_lengths(), packed()}) {
    for (const Gradient alone : gradients_by_inputs) {
      GradientChoice wanted{};
      wanted[static_cast<std::size_t>(alone)] = true;
      const Reply reply = reply_of(c, [](Gradient, std::int64_t) { return true; }, wanted);
      ASSERT_EQ(reply.status, CallStatus::ok) << reply.message;
      for (const Gradient of : every_gradient) {
        const Values& found = reply.gradients[static_cast<std::size_t>(of)];
        EXPECT_EQ(found.present(), of == alone);
        for (std::int64_t e = 0; e < found.elements(); ++e) EXPECT_EQ(found[e], is_padding(c, of, e) ? 0 : 7);
      }
    }
  }
}

TEST(PaddingOfGradients, IsNoExcuseForWhatASequenceHas) {
  for (const Case& c : {with_lengths(), packed(), case_of(2, 3, 3)}) {
    for (const Gradient hole : gradients_by_inputs) {
      for (std::int64_t at = 0; at < c[slot_of(hole)].elements(); ++at) {
        const Reply reply = reply_of(c, [&](Gradient of, std::int64_t e) { return of != hole || e != at; });
        if (is_padding(c, hole, at)) {
          EXPECT_EQ(reply.status, CallStatus::ok) << reply.message;
          continue;
        }
        EXPECT_EQ(reply.status, CallStatus::failed);
        EXPECT_NE(reply.message.find("left 1 of"), std::string::npos) << reply.message;
        EXPECT_TRUE(reply.message.ends_with("flat index " + std::to_string(at))) << reply.message;
      }
    }
  }
}

}  // namespace
}  // namespace attest
