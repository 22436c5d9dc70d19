// Mutation and crossover leave valid cases, reach every part of an input, and follow from the stream alone.
#include "fuzz/mutate.h"

#include <gtest/gtest.h>

#include <set>

#include "core/problem/memory.h"
#include "properties/generators/draw.h"

namespace attest {
namespace {

constexpr DType dtypes[] = {DType::f64, DType::f32, DType::f16, DType::bf16};

TEST(Mutation, LeavesValidCasesAfterAnyNumberOfSteps) {
  for (const char* name : {"attention.oracle", "masked.tail-padding", "multihead.torch-case"}) {
    const Property& property = property_named(name);
    for (const DType dtype : dtypes) {
      const Target target{&property, dtype};
      Stream stream(7);
      Input input = fresh_input(target, stream), other = fresh_input(target, stream);
      for (int n = 0; n < 1500; ++n) {
        if (stream.one_in(64)) input = fresh_input(target, stream);
        if (stream.one_in(16)) other = input;
        input = stream.one_in(8) ? crossed(input, other, stream) : mutated(input, target, stream);
        const Case c = case_of(input, property);
        ASSERT_NO_THROW(validate(c)) << name << " " << name_of(dtype) << " step " << n;
        // What is kept on the disk is the same case.
        const Case kept = case_of(parse_input(bytes_of(input), dtype, property.operation), property);
        ASSERT_EQ(kept.tensors, c.tensors) << name << " step " << n;
        ASSERT_EQ(kept.scale, c.scale);
      }
    }
  }
}

TEST(Mutation, ChangesTheCaseNearlyAlways) {
  const Target target{&property_named("attention.oracle"), DType::f32};
  Stream stream(1);
  int same = 0;
  for (int n = 0; n < 2000; ++n) {
    const Input input = fresh_input(target, stream);
    const Case before = case_of(input, *target.property);
    const Case after = case_of(mutated(input, target, stream), *target.property);
    same += before.tensors == after.tensors && before.scale == after.scale && before.causal == after.causal &&
            before.mask_convention == after.mask_convention && layouts_of(before) == layouts_of(after);
  }
  EXPECT_LT(same, 2000 / 8);
}

TEST(Mutation, ReachesEveryKindAndLength) {
  const Target target{&property_named("attention.oracle"), DType::f32};
  Stream stream(3);
  std::set<ScoreKind> scores;
  std::set<ValueKind> values;
  std::set<MaskKind> masks;
  std::set<std::int64_t> keys;
  Input input;
  for (int n = 0; n < 8000; ++n) {
    input = mutated(input, target, stream);
    scores.insert(input.recipe.scores);
    values.insert(input.recipe.values);
    masks.insert(input.recipe.mask);
    keys.insert(case_of(input, *target.property).k().shape()[2]);
    if (stream.one_in(8)) input = Input();
  }
  EXPECT_EQ(scores.size(), static_cast<std::size_t>(ScoreKind::count));
  EXPECT_EQ(values.size(), static_cast<std::size_t>(ValueKind::count));
  EXPECT_EQ(masks.size(), static_cast<std::size_t>(MaskKind::count));
  for (const std::int64_t length : {1, 2, 7, 8, 15, 16, 17, 33, 63, 64}) EXPECT_TRUE(keys.contains(length)) << length;
}

TEST(Mutation, FollowsFromTheStreamAlone) {
  const Target target{&property_named("attention.oracle"), DType::bf16};
  Stream a(5), b(5);
  Input left = fresh_input(target, a), right = fresh_input(target, b);
  for (int n = 0; n < 200; ++n) {
    left = mutated(left, target, a), right = mutated(right, target, b);
    ASSERT_EQ(bytes_of(left), bytes_of(right));
  }
}

TEST(FreshInput, IsMostlyACaseThatThePropertyDraws) {
  const Property& property = property_named("attention.oracle");
  Stream stream(9);
  int drawn = 0;
  for (int n = 0; n < 1000; ++n) {
    const Input input = fresh_input({&property, DType::f32}, stream);
    if (!input.drawn) continue;
    ++drawn;
    Draw draw(DType::f32, input.recipe.seed);
    ASSERT_EQ(case_of(input, property).tensors, property.given(draw).tensors);
  }
  EXPECT_GT(drawn, 650);
  EXPECT_LT(drawn, 850);
}

}  // namespace
}  // namespace attest
