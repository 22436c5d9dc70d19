// Any bytes are an input and any input is a valid case; bytes and cases come back as they were.
#include "fuzz/input.h"

#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <random>

#include "core/problem/memory.h"
#include "fuzz/mutate.h"

namespace attest {
namespace {

constexpr DType floating[] = {DType::f64, DType::f32, DType::f16, DType::bf16, DType::f8_e4m3, DType::f8_e5m2};

std::vector<std::uint8_t> random_bytes(std::mt19937_64& random) {
  // Lengths around the header and beyond it, and now and then a long one.
  const std::size_t size = random() % 16 == 0 ? random() % 4096 : random() % 192;
  std::vector<std::uint8_t> bytes(size);
  const bool sparse = random() % 4 == 0;
  for (std::uint8_t& byte : bytes)
    byte = sparse && random() % 4 != 0 ? std::uint8_t{0} : static_cast<std::uint8_t>(random());
  return bytes;
}

void expect_same_case(const Case& a, const Case& b) {
  EXPECT_EQ(a.operation, b.operation);
  EXPECT_EQ(a.tensors, b.tensors);
  EXPECT_EQ(a.scale, b.scale);
  EXPECT_EQ(a.causal, b.causal);
  EXPECT_EQ(layouts_of(a), layouts_of(b));
}

TEST(Input, IsAValidCaseWhateverItsBytes) {
  std::mt19937_64 random(1);
  const Property* const properties[] = {&property_named("attention.oracle"), &property_named("masked.tail-padding"),
                                        &property_named("multihead.torch-case")};
  std::map<std::size_t, int> tokens;
  for (int n = 0; n < 30'000; ++n) {
    const Property& property = *properties[random() % 8 == 0 ? 2 : random() % 2];
    const std::vector<std::uint8_t> bytes = random_bytes(random);
    const Input input = parse_input(bytes, floating[random() % 6], property.operation);
    const Case c = case_of(input, property);
    ASSERT_NO_THROW(validate(c)) << "input " << n << " for " << property.name;
    ASSERT_EQ(c.operation, property.operation);
    ASSERT_EQ(c.dtype(), input.recipe.dtype);
    ++tokens[static_cast<std::size_t>(c.k().shape()[property.operation == Operation::attention ? 2 : 1])];
  }
  // Most are small, and all small lengths come.
  for (std::size_t keys = 1; keys <= 8; ++keys) EXPECT_GT(tokens[keys], 1'500) << keys;
}

TEST(Input, GivesItsBytesBack) {
  std::mt19937_64 random(2);
  const Property& property = property_named("attention.oracle");
  for (int n = 0; n < 20'000; ++n) {
    const DType dtype = floating[random() % 6];
    const Input input = parse_input(random_bytes(random), dtype, property.operation);
    const std::vector<std::uint8_t> bytes = bytes_of(input);
    ASSERT_LE(bytes.size(), most_input_bytes);
    const Input again = parse_input(bytes, dtype, property.operation);
    ASSERT_EQ(bytes_of(again), bytes) << "input " << n;
    expect_same_case(case_of(input, property), case_of(again, property));
    if (HasFailure()) FAIL() << "input " << n;
  }
}

/// Of cases that properties draw, nearly all are small enough to be held, and those come back as they were.
void expect_held(std::initializer_list<const char*> names) {
  int held = 0, drawn = 0;
  for (const char* name : names) {
    const Property& property = property_named(name);
    for (const DType dtype : floating) {
      for (std::int64_t k = 0; k < 500; ++k) {
        const Case c = generate(property, dtype, /*run_seed=*/3, k);
        ++drawn;
        const std::optional<Input> input = input_of(c);
        if (!input) continue;
        ++held;
        const Case back = case_of(parse_input(bytes_of(*input), dtype, c.operation), property);
        ASSERT_NO_THROW(validate(back));
        expect_same_case(c, back);
        if (::testing::Test::HasFailure()) FAIL() << property.name << " " << name_of(dtype) << " " << k;
      }
    }
  }
  EXPECT_GT(held, drawn * 9 / 10) << drawn;
}

TEST(Input, HoldsEverySmallAttentionCaseBitByBit) {
  expect_held({"attention.oracle", "masked.tail-padding", "masked.row-shift", "causal.prefix"});
}

TEST(Input, HoldsEverySmallMultiheadCaseBitByBit) {
  expect_held(
      {"multihead.torch-case", "multihead.permutation-equivariance", "multihead.self-permutation-equivariance"});
}

TEST(Input, RefusesWhatItCannotHold) {
  Recipe r;
  r.keys = 4096;
  r.dk = 8;
  EXPECT_FALSE(input_of(decode(r)));
  r.keys = 4;
  Case c = decode(r);
  EXPECT_TRUE(input_of(c));
  c.scale = 0x1p200;
  EXPECT_FALSE(input_of(c));
  c.scale = 1;
  c[Slot::v].set(0, std::numeric_limits<double>::quiet_NaN());
  EXPECT_FALSE(input_of(c));
  // One bias of four.
  Recipe multihead;
  multihead.operation = Operation::multihead;
  multihead.biases = true;
  Case several = decode(multihead);
  EXPECT_TRUE(input_of(several));
  several[Slot::b_k] = Tensor();
  EXPECT_FALSE(input_of(several));
}

TEST(Input, RepeatsBitsThatAreTooFewAndMakesThemFinite) {
  Input input;
  Recipe& r = input.recipe;
  r.queries = 2, r.keys = 3, r.dk = 2, r.dv = 1;
  r.boolean_mask = true;
  const float q[] = {1.5F, std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()};
  const auto* const bytes = reinterpret_cast<const std::byte*>(q);
  input.raw[0].emplace(bytes, bytes + sizeof q);
  input.raw[2].emplace();
  input.raw[3].emplace(std::vector<std::byte>{std::byte{2}, std::byte{3}});
  const Case c = case_of(input, property_named("attention.oracle"));
  ASSERT_NO_THROW(validate(c));
  EXPECT_EQ(c.q()[0], 1.5);
  EXPECT_EQ(std::abs(c.q()[1]), format_of(DType::f32).largest);
  EXPECT_EQ(c.q()[2], -format_of(DType::f32).largest);
  EXPECT_EQ(c.q()[3], 1.5);
  EXPECT_EQ(c.v()[0], 0.0);
  EXPECT_EQ(c.mask()[0], 0.0);
  EXPECT_EQ(c.mask()[1], 1.0);
}

TEST(Input, LimitsTheWorkOfACase) {
  Input input;
  for (std::int32_t* const extent : {&input.recipe.batch, &input.recipe.heads, &input.recipe.queries,
                                     &input.recipe.keys, &input.recipe.dk, &input.recipe.dv}) {
    *extent = 60'000;
  }
  const Case c = case_of(input, property_named("attention.oracle"));
  ASSERT_NO_THROW(validate(c));
  const Shape &q = c.q().shape(), &v = c.v().shape();
  EXPECT_LE(q[0] * q[1] * q[2] * v[2] * (q[3] + v[3]), most_work);
}

TEST(Input, LimitsTheProjectionsOfACase) {
  // One query and one key: the work of attention is small.
  Input input;
  Recipe& r = input.recipe;
  r.operation = Operation::multihead;
  r.output_projection = true;
  r.batch = r.queries = r.keys = 1;
  r.heads = 512, r.dk = r.dv = 64;
  r.c_q = r.c_k = r.c_v = r.d_o = 512;
  const Case c = case_of(input, property_named("multihead.oracle"));
  ASSERT_NO_THROW(validate(c));
  std::int64_t weights = 0;
  for (const Slot slot : {Slot::w_q, Slot::w_k, Slot::w_v, Slot::w_o}) weights += c[slot].elements();
  EXPECT_GT(weights, most_projections / 8);
  EXPECT_LE(weights, most_projections);
}

}  // namespace
}  // namespace attest
