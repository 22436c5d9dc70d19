// Problems whose gradients are asked for, and their files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/problem/case.h"
#include "core/problem/selection.h"
#include "core/test/cases.h"
#include "core/test/refusal.h"
#include "core/test/says.h"

namespace attest {
namespace {

Case backward_case() {
  Case c = test::one_query(DType::f32, {1, 2}, {1, 2, 3, 4}, {5, 6});
  c[Slot::d_out] = Tensor(DType::f32, c.out_shape());
  c[Slot::d_out].set(0, 0.5);
  return c;
}

TEST(Gradient, AProblemIsReadAsItWasWritten) {
  const Case c = backward_case();
  EXPECT_TRUE(asks_for_gradients(c));
  EXPECT_EQ(decode_case(encode_case(c), "it"), c);
  EXPECT_FALSE(asks_for_gradients(forward_of(c)));
  EXPECT_NE(encode_case(c).find("attention_backward"), std::string::npos);
  EXPECT_EQ(encode_case(forward_of(c)).find("attention_backward"), std::string::npos);
}

TEST(Gradient, OlderReadersRefuseIt) {
  std::string file = encode_case(backward_case());
  const std::size_t at = file.find(R"("attest":"2")");
  ASSERT_NE(at, std::string::npos);
  file[at + 10] = '1';
  EXPECT_THAT(refusal([&] { return decode_case(file, "it"); }), Says("it must be \"2\""));
}

TEST(Gradient, HasTheShapeAndTheDtypeOfTheOutput) {
  Case c = backward_case();
  c[Slot::d_out] = Tensor(DType::f32, {1, 1, 2, 1});
  EXPECT_THAT(refusal([&] { return validate(c), 0; }), Says("d_out has shape"));
  c[Slot::d_out] = Tensor(DType::f64, c.out_shape());
  EXPECT_THAT(refusal([&] { return validate(c), 0; }), Says("d_out is f64"));
}

TEST(Gradient, ByTheLogSumExpIsReadAsItWasWritten) {
  Case c = backward_case();
  c[Slot::d_lse] = Tensor(DType::f32, {1, 1, 1}, std::vector<double>{0.25});
  EXPECT_EQ(decode_case(encode_case(c), "it"), c);
  EXPECT_FALSE(forward_of(c)[Slot::d_lse].present());
  c[Slot::d_lse] = Tensor(DType::f32, {1, 1, 2});
  EXPECT_THAT(refusal([&] { return validate(c), 0; }), Says("d_lse has shape"));
  c[Slot::d_lse] = Tensor(DType::f64, {1, 1, 1});
  EXPECT_THAT(refusal([&] { return validate(c), 0; }), Says("d_lse is f64"));
  c[Slot::d_lse] = Tensor(DType::f32, {1, 1, 1}), c[Slot::d_out] = Tensor();
  EXPECT_THAT(refusal([&] { return validate(c), 0; }), Says("d_lse without d_out"));
}

TEST(Gradient, GoesWithItsRows) {
  Case c = test::one_query(DType::f32, {1, 2}, {1, 2, 3, 4}, {5, 6});
  c[Slot::q] = Tensor(DType::f32, {1, 1, 3, 2});
  c[Slot::d_out] = Tensor(DType::f32, c.out_shape());
  c[Slot::d_lse] = Tensor(DType::f32, {1, 1, 3});
  for (std::int64_t i = 0; i < 3; ++i)
    for (const Slot slot : {Slot::d_out, Slot::d_lse}) c[slot].set(i, static_cast<double>(i));
  Selection some = everything(c);
  some.queries = {2, 0};
  const Case fewer = select(c, some);
  for (const Slot slot : {Slot::d_out, Slot::d_lse}) EXPECT_EQ(fewer[slot].to_doubles(), (std::vector<double>{2, 0}));
}

}  // namespace
}  // namespace attest
