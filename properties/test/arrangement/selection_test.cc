#include "core/problem/selection.h"

#include <gtest/gtest.h>

#include "properties/test/inspect.h"
#include "properties/test/toy_kernels.h"

namespace attest {
namespace {

Recipe recipe_of(Operation operation, std::uint64_t seed) {
  Recipe r;
  r.operation = operation;
  r.seed = seed;
  r.batch = 2;
  r.heads = r.kv_heads = 3;
  r.queries = 4;
  r.keys = 5;
  r.dk = 2;
  r.dv = 3;
  r.c_q = 4;
  r.c_k = 5;
  r.c_v = 6;
  r.d_o = 7;
  r.biases = r.key_value_bias = true;
  r.mask = MaskKind::random;
  r.mask_per_batch = r.mask_per_head = true;
  return r;
}

TEST(Select, EverythingIsTheCaseItself) {
  for (const Operation operation : {Operation::attention, Operation::multihead}) {
    const Case c = decode(recipe_of(operation, 1));
    EXPECT_EQ(hash_of(select(c, everything(c))), hash_of(c));
  }
}

TEST(Select, GathersTheChosenOfAttention) {
  const Case c = decode(recipe_of(Operation::attention, 2));
  Selection s = everything(c);
  s.batch = {1};
  s.heads = s.kv_heads = {2, 0};
  s.queries = {3};
  s.keys = {4, 4, 0};
  const Case chosen = select(c, s);
  validate(chosen);
  for (std::int64_t h = 0; h < 2; ++h) {
    for (std::int64_t j = 0; j < 3; ++j) {
      EXPECT_EQ(score(chosen, 0, h, 0, j), score(c, 1, h == 0 ? 2 : 0, 3, j == 2 ? 0 : 4));
      for (std::int64_t column = 0; column < 3; ++column) {
        EXPECT_EQ(chosen.v()[(h * 3 + j) * 3 + column],
                  c.v()[((1 * 3 + (h == 0 ? 2 : 0)) * 5 + (j == 2 ? 0 : 4)) * 3 + column]);
      }
    }
  }
}

TEST(Select, MovesTheColumnsOfAHeadTogether) {
  const Case c = decode(recipe_of(Operation::multihead, 3));
  Selection s = everything(c);
  s.heads = {2};
  s.dk = {1};
  s.dv = {2, 0};
  s.d_o = {6};
  const Case chosen = select(c, s);
  validate(chosen);
  EXPECT_EQ(chosen.heads, 1);
  for (std::int64_t i = 0; i < 4; ++i) EXPECT_EQ(chosen[Slot::w_q][i], c[Slot::w_q][i * 6 + 5]);
  for (std::int64_t i = 0; i < 6; ++i) EXPECT_EQ(chosen[Slot::w_v][i * 2], c[Slot::w_v][i * 9 + 8]);
  EXPECT_EQ(chosen[Slot::w_o][0], c[Slot::w_o][8 * 7 + 6]);
  EXPECT_EQ(chosen[Slot::w_o][1], c[Slot::w_o][6 * 7 + 6]);
  EXPECT_EQ(chosen[Slot::bias_k][0], c[Slot::bias_k][5]);
  EXPECT_EQ(chosen[Slot::b_v][1], c[Slot::b_v][6]);
  EXPECT_EQ(chosen.mask().shape(), (Shape{2, 1, 4, 5}));
}

TEST(Select, KeepsTheScaleOfTheDefinitionAndNoOther) {
  Case c = decode(recipe_of(Operation::attention, 4));
  Selection s = everything(c);
  s.dk = {0};
  EXPECT_EQ(select(c, s).scale, 1.0);
  c.scale = 0.25;
  EXPECT_EQ(select(c, s).scale, 0.25);
}

}  // namespace
}  // namespace attest
