#include <gtest/gtest.h>

#include <vector>

#include "core/problem/descale.h"
#include "core/problem/fields.h"
#include "core/problem/selection.h"
#include "core/test/cases.h"
#include "core/test/refusal.h"

namespace attest {
namespace {

/// Two entries of two heads, five rows of q and seven keys, all of them 1.
Case ones(DType dtype = DType::bf16) {
  return test::attention_of({.batch = 2, .heads = 2, .queries = 5, .keys = 7},
                            [&](Slot, const Shape& shape) { return test::filled(dtype, shape, [] { return 1.0; }); });
}

Tensor counted(const Shape& shape) {
  Tensor t(DType::f32, shape);
  for (std::int64_t e = 0; e < t.elements(); ++e) t.set(e, 0.25 * static_cast<double>(e + 1));
  return t;
}

Case with_blocks() {
  Case c = ones();
  c[Slot::q_descale] = counted({2, 1, 3}), c.q_descale_block = 2;
  c[Slot::k_descale] = counted({1, c.k().shape()[1], 3}), c.kv_descale_block = 3;
  c[Slot::v_descale] = counted({2, c.k().shape()[1], 1});
  validate(c);
  return c;
}

std::string fault_of(const Case& c) {
  try {
    validate(c);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(Factors, AreThoseOfTheirEntryHeadAndBlock) {
  const Case c = with_blocks();
  EXPECT_EQ(factor_of(c, Slot::q, 1, 1, 3), c[Slot::q_descale].at(1, 0, 1));
  EXPECT_EQ(factor_of(c, Slot::q, 0, 0, 4), c[Slot::q_descale].at(0, 0, 2));
  EXPECT_EQ(factor_of(c, Slot::k, 1, 0, 6), c[Slot::k_descale].at(0, 0, 2));
  EXPECT_EQ(factor_of(c, Slot::v, 1, 0, 6), c[Slot::v_descale].at(1, 0, 0));
  EXPECT_EQ(factor_of(ones(), Slot::v, 1, 0, 6), 1);
  EXPECT_EQ(factors_of(c, Slot::q).least, 0.25);
  EXPECT_EQ(factors_of(c, Slot::q).most, 1.5);
}

TEST(Factors, MultiplyExactly) {
  const Case c = with_blocks();
  for (const Slot tensor : {Slot::q, Slot::k, Slot::v}) {
    const Tensor all = dequantised(c, tensor);
    EXPECT_EQ(all.dtype(), DType::f64);
    for (std::int64_t e = 0; e < all.elements(); ++e) {
      const auto [b, h, i, x] = all.shape().index_of(e);
      ASSERT_EQ(all[e], factor_of(c, tensor, b, h, i));
    }
  }
  EXPECT_EQ(dequantised(ones(), Slot::q), ones().q());
}

TEST(Factors, ComeWithTheRowsThatAreSelected) {
  const Case c = with_blocks();
  EXPECT_EQ(select(c, everything(c)), c);
  Selection s = everything(c);
  s.batch = {1}, s.queries = {4, 1}, s.keys = {6, 0, 3};
  const Case less = select(c, s);
  validate(less);
  EXPECT_EQ(less.q_descale_block, 1);
  EXPECT_EQ(less.kv_descale_block, 1);
  for (std::int64_t i = 0; i < 2; ++i)
    EXPECT_EQ(factor_of(less, Slot::q, 0, 0, i), factor_of(c, Slot::q, 1, 0, s.queries[static_cast<std::size_t>(i)]));
  for (std::int64_t j = 0; j < 3; ++j)
    for (const Slot tensor : {Slot::k, Slot::v})
      EXPECT_EQ(factor_of(less, tensor, 0, 0, j), factor_of(c, tensor, 1, 0, s.keys[static_cast<std::size_t>(j)]));
  s.keys = {};
  EXPECT_EQ(fault_of(select(c, s)), "");
}

TEST(Factors, AreThoseOfTheFirstRowOfAnotherBlock) {
  Case c = with_blocks();
  const Case was = c;
  set_block(c, /*of_rows=*/false, 4);
  validate(c);
  EXPECT_EQ(factor_of(c, Slot::k, 0, 0, 6), factor_of(was, Slot::k, 0, 0, 4));
  EXPECT_EQ(factor_of(c, Slot::q, 0, 0, 3), factor_of(was, Slot::q, 0, 0, 3));
  set_block(c, /*of_rows=*/false, 0);
  EXPECT_EQ(c.kv_descale_block, 0);
  EXPECT_EQ(factor_of(c, Slot::k, 0, 0, 6), factor_of(was, Slot::k, 0, 0, 0));
}

TEST(Factors, AreRefusedWhereTheyAreNone) {
  const auto fault = [](auto change) {
    Case c = with_blocks();
    change(c);
    return fault_of(c);
  };
  EXPECT_EQ(fault([](Case& c) { c[Slot::k_descale].set(1, 0); }),
            "k_descale holds 0 at [0, 0, 1]; a factor is finite and greater than 0");
  EXPECT_EQ(fault([](Case& c) { c[Slot::v_descale].set(0, -1); }),
            "v_descale holds -1 at [0, 0, 0]; a factor is finite and greater than 0");
  EXPECT_EQ(fault([](Case& c) { c[Slot::q_descale] = Tensor(DType::f16, {1, 1, 1}, std::vector<double>{1}); }),
            "q_descale is f16; it must be f32");
  EXPECT_NE(fault([](Case& c) { c.kv_descale_block = 2; }).find("k_descale has shape"), std::string::npos);
  EXPECT_EQ(fault([](Case& c) { c[Slot::q_descale] = Tensor(); }),
            "q_descale_block is 2 without q_descale; it says how many rows have a factor together");
  EXPECT_EQ(fault([](Case& c) { c[Slot::k_descale] = c[Slot::v_descale] = Tensor(); }),
            "kv_descale_block is 3 without k_descale or v_descale; it says how many keys have a factor together");
  Case wide = ones(DType::f64);
  wide[Slot::k_descale] = counted({1, 1, 1});
  EXPECT_EQ(fault_of(wide), "");  // a quarter
  wide[Slot::k_descale].set(0, 0.75);
  EXPECT_EQ(fault_of(wide), "k_descale holds 0.75 at [0, 0, 0] and k is f64, beside which a factor is a power of two");
}

TEST(Factors, StandInCaseFiles) {
  Case c = with_blocks();
  c[Slot::k] = test::filled(DType::i8, c.k().shape(), [] { return -3.0; });
  validate(c);
  EXPECT_EQ(decode_case(encode_case(c), "mine"), c);
  drop_variant(c, descale_variant.name);
  EXPECT_EQ(c.q_descale_block + c.kv_descale_block, 0);
  EXPECT_FALSE(c[Slot::q_descale].present());
}

}  // namespace
}  // namespace attest
