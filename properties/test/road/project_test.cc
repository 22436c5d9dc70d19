#include <gtest/gtest.h>

#include <new>
#include <stdexcept>

#include "core/problem/selection.h"
#include "properties/road/case_budget.h"
#include "properties/test/toy_kernels.h"

namespace attest {
namespace {

const Property attention{.name = "test.attention", .given = [](Draw& draw) -> Case { return draw.attention(); }};
const Property torch_case{.name = "test.torch", .operation = Operation::multihead, .given = [](Draw& draw) -> Case {
                            return draw.multihead().torch_case();
                          }};

Manifest multihead_manifest() {
  Manifest manifest = toy_manifest();
  manifest.multihead = true;
  return manifest;
}

TEST(Project, LeavesACaseWithinTheLimitsAlone) {
  for (std::int64_t k = 0; k < 300; ++k) {
    for (const Property* property : {&attention, &torch_case}) {
      const Case c = generate(*property, DType::f32, 1, k);
      const Case same = project(c, multihead_manifest());
      ASSERT_EQ(hash_of(same), hash_of(c));
      ASSERT_EQ(same.provenance, c.provenance);
    }
  }
}

TEST(Project, RenamesTheShapeThatItChanged) {
  Manifest m = toy_manifest();
  m.max_queries = m.max_keys = 8;
  m.max_head_dim = 8;
  int large = 0;
  for (std::int64_t k = 0; k < 300; ++k) {
    const Case c = generate(attention, DType::f32, 1, k);
    const std::string before = c.provenance.kinds.value(), after = project(c, m).provenance.kinds.value();
    large += before.find("shape:large") != std::string::npos;
    EXPECT_EQ(after.find("shape:large"), std::string::npos) << after;
    EXPECT_EQ(after.find("shape:"), after.rfind("shape:")) << after;
    EXPECT_NE(after.find("shape:"), std::string::npos) << after;
    EXPECT_EQ(after.substr(0, after.find("mask:")), before.substr(0, before.find("mask:")));
  }
  EXPECT_GT(large, 5);
}

/// Every drawn case meets the limits after projection, is valid, and is projected to itself.
void expect_supported(const Property& property, const Manifest& manifest) {
  int changed = 0;
  for (std::int64_t k = 0; k < 1000; ++k) {
    const Case c = generate(property, DType::f32, 1, k);
    const Case projected = project(c, manifest);
    ASSERT_NO_THROW(validate(projected)) << "k = " << k;
    ASSERT_EQ(why_unsupported(manifest, projected), "") << "k = " << k;
    ASSERT_EQ(hash_of(project(projected, manifest)), hash_of(projected)) << "k = " << k;
    changed += hash_of(projected) != hash_of(c);
  }
  EXPECT_GE(changed, 100);
}

TEST(Project, MeetsEveryLimitOfShape) {
  Manifest m = multihead_manifest();
  m.head_dim_multiple = 8;
  m.max_head_dim = 64;
  expect_supported(attention, m);
  m.value_dim_equals_head_dim = true;
  m.max_queries = 1;
  m.max_keys = 7;
  expect_supported(attention, m);
  m.grouped_query = false;
  expect_supported(attention, m);
  m.heads_multiple = 2;
  m.max_heads = 2;
  m.any_scale = false;
  expect_supported(attention, m);
  expect_supported(torch_case, m);
  m.self_attention_only = true;
  expect_supported(torch_case, m);
  m.max_queries.reset();
  m.max_keys.reset();
  expect_supported(torch_case, m);
}

TEST(Project, KeepsTheWidthsOfTheTorchCaseTied) {
  Manifest m = multihead_manifest();
  m.head_dim_multiple = 8;
  m.heads_multiple = 2;
  m.self_attention_only = true;
  for (std::int64_t k = 0; k < 300; ++k) {
    const Extents before = extents_of(generate(torch_case, DType::f32, 1, k));
    const Extents e = extents_of(project(generate(torch_case, DType::f32, 1, k), m));
    ASSERT_EQ(before.c_q, before.heads * before.dk);
    ASSERT_EQ(e.c_q, e.heads * e.dk);
    ASSERT_EQ(e.d_o, e.heads * e.dk);
    ASSERT_EQ(e.dk, e.dv);
    ASSERT_EQ(e.c_k, e.c_q);
  }
}

TEST(Project, GivesEachHeadTheKeysItRead) {
  Recipe r;
  r.heads = 4;
  r.kv_heads = 2;
  r.queries = r.keys = r.dk = r.dv = 3;
  const Case grouped = decode(r);
  Manifest m = toy_manifest();
  m.grouped_query = false;
  const Case separate = project(grouped, m);
  ASSERT_EQ(separate.k().shape()[1], 4);
  for (std::int64_t h = 0; h < 4; ++h) {
    for (std::int64_t j = 0; j < 3; ++j) EXPECT_EQ(score(grouped, 0, h, 1, j), score(separate, 0, h, 1, j));
  }
}

TEST(Project, RepeatsColumnsInTurnAndCropsTheLast) {
  Recipe r;
  r.dk = 3;
  r.dv = 20;
  Manifest m = toy_manifest();
  m.head_dim_multiple = 8;
  m.max_head_dim = 16;
  const Case c = decode(r), projected = project(c, m);
  ASSERT_EQ(projected.q().shape()[3], 8);
  ASSERT_EQ(projected.v().shape()[3], 16);
  for (std::int64_t column = 0; column < 8; ++column) EXPECT_EQ(projected.q()[column], c.q()[column % 3]);
  for (std::int64_t column = 0; column < 16; ++column) EXPECT_EQ(projected.v()[column], c.v()[column]);
  EXPECT_EQ(projected.scale, inverse_root(8));
}

/// Skipped with a reason that begins so, and left as it was drawn: nothing was allocated for it.
void expect_over_budget(const Property& property, const Manifest& manifest, std::string_view reason) {
  const auto kernel = toy_kernel(Bug::none, manifest);
  for (std::int64_t k = 0; k < 50; ++k) {
    const Case c = generate(property, DType::f32, 1, k);
    const Case marked = project(c, manifest);
    ASSERT_EQ(hash_of(marked), hash_of(c));
    Property checked = property;
    checked.check = [](Kernel&, const Case&) -> Verdict { throw std::logic_error("checked"); };
    const Verdict verdict = check_case(checked, *kernel, marked);
    ASSERT_EQ(verdict.outcome, Outcome::skipped) << k;
    ASSERT_TRUE(verdict.reason.starts_with(reason)) << verdict.reason;
  }
}

TEST(Project, SkipsWhatLimitsWouldMakeTooLarge) {
  Manifest m = multihead_manifest();
  m.head_dim_multiple = 100000007;
  expect_over_budget(attention, m, "would have ");
  expect_over_budget(torch_case, m, "would have ");
  m.head_dim_multiple = 1;
  m.heads_multiple = std::int64_t{1} << 40;
  expect_over_budget(attention, m, "would have ");
  expect_over_budget(torch_case, m, "would have ");
}

TEST(Project, HasABudgetThatDependsOnNothingButTheCaseAndTheLimits) {
  const Extents drawn{.batch = 1, .heads = 1, .kv_heads = 1, .queries = 8, .keys = 8, .dk = 8, .dv = 8};
  Extents asked = drawn;
  const auto why = [&](Operation operation = Operation::attention) { return why_over_budget(operation, drawn, asked); };
  EXPECT_EQ(why(), "");
  // 32 rows of dk, the scores, and no number more.
  asked.dk = asked.dv = (most_numbers - 64) / 32;
  EXPECT_EQ(why(), "");
  asked.dk += 1;
  EXPECT_EQ(why(), "would have 8388624 numbers within the manifest's limits; a case has at most 8388608");
  // 512 x 512 scores of 1024 multiplications each are 2^28.
  asked = drawn;
  asked.queries = asked.keys = 512;
  asked.dk = asked.dv = 512;
  EXPECT_EQ(why(), "");
  asked.keys = 513;
  EXPECT_EQ(why(), "would take 268959744 multiplications within the manifest's limits; a case takes at most 268435456");
  // What was drawn so large is run as it was drawn.
  EXPECT_EQ(why_over_budget(Operation::attention, asked, asked), "");
  asked.dk = asked.dv = 1024;
  asked.keys = 512;
  EXPECT_NE(why(), "");
  // The weights of a model count.
  Extents model = drawn;
  model.c_q = model.c_k = model.c_v = model.d_o = model.dk = model.dv = 4096;
  EXPECT_EQ(why_over_budget(Operation::attention, drawn, model), "");
  EXPECT_NE(why_over_budget(Operation::multihead, drawn, model), "");
}

TEST(Project, RunsWhatKernelsAskFor) {
  int large = 0;
  for (const std::int64_t multiple : {8, 16, 64, 128, 256, 576}) {
    Manifest m = multihead_manifest();
    m.head_dim_multiple = multiple;
    m.heads_multiple = multiple == 576 ? 16 : multiple == 256 ? 1 : 8;
    int skipped = 0;
    for (std::int64_t k = 0; k < 300; ++k) {
      const Case c = project(generate(attention, DType::f32, 1, k), m);
      skipped += c.provenance.over_budget.has_value();
      large += extents_of(c).dk >= 256;
    }
    EXPECT_LE(skipped, 3) << multiple;
  }
  EXPECT_GT(large, 500);
}

TEST(Check, MakesACaseInconclusiveThatMemoryDoesNotSufficeFor) {
  const auto kernel = toy_kernel(Bug::none);
  const Property greedy{.name = "test.greedy", .given = attention.given, .check = [](Kernel&, const Case&) -> Verdict {
                          throw std::bad_alloc();
                        }};
  const Case c = generate(greedy, DType::f32, 1, 0);
  const Verdict verdict = check_case(greedy, *kernel, c);
  EXPECT_EQ(verdict.outcome, Outcome::inconclusive);
  EXPECT_EQ(verdict.reason, "was not judged: memory ran out; fewer --jobs need less");
  EXPECT_EQ(shrink(greedy, *kernel, c), c);
}

}  // namespace
}  // namespace attest
