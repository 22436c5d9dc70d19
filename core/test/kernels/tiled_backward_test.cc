// Backward passes of tiles, each form of them: against gradients of the core in double, within its own bound, in every
// dtype and form of problem; zeros where nothing is seen; and what does not depend on where tiles end.
#include "core/kernels/backward/tiled_backward.h"

#include <gtest/gtest.h>

#include <cmath>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "core/kernels/backward/builtin_backward.h"
#include "core/kernels/builtin.h"
#include "core/oracle/gradients/gradients.h"
#include "core/problem/sight.h"
#include "core/support/infinity.h"
#include "core/test/cases.h"
#include "core/test/names.h"

namespace attest {
namespace {

struct NamedForm {
  std::string name;
  BackwardForm form;
  /// Whose forward pass it is behind.
  BuiltinKernel (*forward)() = flash_kernel;
};
void PrintTo(const NamedForm& form, std::ostream* out) {
  *out << form.name;
}

std::vector<NamedForm> all_forms() {
  std::vector<NamedForm> forms;
  for (const std::int64_t tile : {16, 64, 128}) {
    const std::string of = " " + std::to_string(tile);
    forms.push_back({"flash" + of, flash_backward(tile)});
    forms.push_back({"unfused" + of, unfused_backward(tile), two_pass_kernel});
    forms.push_back({"split" + of, split_backward(tile, 3), split_k_kernel});
    forms.push_back({"by weights" + of, backward_by_weights(tile), online_kernel});
  }
  forms.push_back({"base 2", {.tile = 16, .base2 = true, .delta_in_sum = true}, flash_exp2_kernel});
  forms.push_back({"scale first", {.tile = 16, .scale_first = true}, lazy_kernel});
  return forms;
}

std::unique_ptr<Kernel> kernel_of(const NamedForm& named) {
  BuiltinKernel kernel = named.forward();
  kernel.backward = named.form;
  return entry_of(kernel).make();
}

/// A problem with gradients by the output, all of its numbers normal.
struct Form {
  std::string name;
  test::CaseSizes sizes;
  Causal causal = Causal::none;
  bool additive_mask = false, bool_mask = false;
  double softcap = 0;
  bool drops = false, sinks = false;
  std::vector<double> kv_lengths{};
  bool by_lse = false;
  bool slopes = false;
};
const std::vector<Form> problems{
    {"one key", {.queries = 1, .keys = 1, .dk = 3, .dv = 2}},
    {"a tile and a part", {.queries = 21, .keys = 37, .dk = 5, .dv = 3}},
    {"more than two tiles", {.queries = 130, .keys = 150, .dk = 4, .dv = 3}},
    {"groups", {.batch = 2, .heads = 6, .queries = 5, .keys = 18, .dk = 3, .dv = 7, .kv_heads = 2}},
    {"additive", {.heads = 2, .queries = 6, .keys = 40, .dk = 4, .dv = 4, .kv_heads = 1}, Causal::none, true},
    {"boolean", {.heads = 2, .queries = 6, .keys = 40, .dk = 4, .dv = 4}, Causal::bottom_right, false, true},
    {"top-left", {.queries = 70, .keys = 70, .dk = 4, .dv = 4}, Causal::top_left},
    {"empty rows", {.queries = 20, .keys = 9, .dk = 4, .dv = 4}, Causal::bottom_right},
    {"cap", {.heads = 2, .queries = 6, .keys = 20, .dk = 4, .dv = 4}, Causal::none, true, false, 2},
    {"dropped", {.heads = 2, .queries = 6, .keys = 20, .dk = 4, .dv = 4}, Causal::none, false, false, 0, true},
    {"sinks",
     {.heads = 2, .queries = 20, .keys = 9, .dk = 4, .dv = 4},
     Causal::bottom_right,
     false,
     false,
     0,
     false,
     true},
    {"lengths",
     {.batch = 2, .queries = 5, .keys = 40, .dk = 4, .dv = 4},
     Causal::none,
     false,
     false,
     0,
     false,
     false,
     {40, 17}},
    {"by lse",
     {.batch = 2, .heads = 2, .queries = 20, .keys = 9, .dk = 4, .dv = 4, .kv_heads = 1},
     Causal::bottom_right,
     false,
     false,
     0,
     false,
     true,
     {9, 0},
     true},
    {"slopes",
     {.batch = 2, .heads = 2, .queries = 20, .keys = 40, .dk = 4, .dv = 4},
     Causal::bottom_right,
     false,
     false,
     0,
     false,
     true,
     {40, 17},
     true,
     true},
    {"slopes of distances",
     {.heads = 2, .queries = 7, .keys = 20, .dk = 4, .dv = 4},
     Causal::none,
     true,
     false,
     2,
     false,
     false,
     {},
     false,
     true},
    {"no query", {.queries = 0, .keys = 3, .dk = 2, .dv = 2}},
};

Case case_of(const Form& f, DType dtype) {
  std::mt19937_64 random(5);
  std::normal_distribution<double> normal;
  const auto next = [&] { return normal(random); };
  Case c = test::attention_of(f.sizes, [&](Slot, const Shape& shape) { return test::filled(dtype, shape, next); });
  c.scale = 1.25 / std::sqrt(static_cast<double>(f.sizes.dk));
  c.causal = f.causal;
  c[Slot::d_out] = test::filled(dtype, c.out_shape(), next);
  if (f.by_lse) c[Slot::d_lse] = test::filled(dtype, {f.sizes.batch, f.sizes.heads, f.sizes.queries}, next);
  const Shape pairs{f.sizes.batch, f.sizes.heads, f.sizes.queries, f.sizes.keys};
  if (f.additive_mask)
    c[Slot::mask] = test::filled(dtype, pairs, [&] { return random() % 4 == 0 ? -infinity : normal(random); });
  const auto flags = [&](std::uint64_t one_in) {
    return test::filled(DType::boolean, pairs, [&] { return random() % one_in == 0 ? 0.0 : 1.0; });
  };
  if (f.bool_mask) c[Slot::mask] = flags(3);
  c.softcap = f.softcap;
  if (f.drops) c.dropout_p = 0.25, c[Slot::keep] = flags(4);
  if (f.slopes) {
    c[Slot::alibi_slopes] = test::filled(DType::f32, {1, f.sizes.heads}, next);
    c.alignment = f.causal == Causal::none ? Causal::bottom_right : f.causal;
  }
  if (f.sinks) c[Slot::sink] = test::filled(DType::f32, {f.sizes.heads}, next);
  if (!f.kv_lengths.empty()) c[Slot::kv_lengths] = Tensor(DType::i32, {std::ssize(f.kv_lengths)}, f.kv_lengths);
  validate(c);
  return c;
}

/// The same numbers in f64.
Case in_double(Case c) {
  for (const Slot slot : {Slot::q, Slot::k, Slot::v, Slot::mask, Slot::d_out, Slot::d_lse}) {
    Tensor& t = c[slot];
    if (!t.present() || t.dtype() == DType::boolean) continue;
    Tensor wide(DType::f64, t.shape());
    for (std::int64_t e = 0; e < t.elements(); ++e) wide.set(e, t[e]);
    t = std::move(wide);
  }
  return c;
}

struct Gradients {
  BackwardInputs given;
  std::array<Tensor, gradient_count> found;
};
Gradients gradients_of(Kernel& kernel, const Case& c) {
  Gradients all;
  Reply forward = kernel.run(forward_of(c), c.dtype(), /*want_lse=*/true);
  EXPECT_EQ(forward.status, CallStatus::ok) << forward.message;
  all.given = {c[Slot::d_out], c[Slot::d_lse], std::move(forward.out.tensor()), std::move(forward.lse.tensor())};
  const Tensor& own_lse = forward.own_lse;
  Reply back = kernel.backward(c, {all.given.out, all.given.lse, all_gradients, own_lse}, c.dtype());
  EXPECT_EQ(back.status, CallStatus::ok) << back.message;
  for (const Gradient one : every_gradient) {
    const auto at = static_cast<std::size_t>(one);
    if (back.status == CallStatus::ok) all.found[at] = std::move(back.gradients[at].tensor());
  }
  return all;
}

constexpr DType dtypes[] = {DType::f64, DType::f32, DType::f16, DType::bf16};

class EveryForm : public testing::TestWithParam<NamedForm> {};

TEST_P(EveryForm, HasTheGradientsOfTheCoreWithinItsBound) {
  const auto kernel = kernel_of(GetParam());
  const auto core = std::move(open_kernels("core:double", {}).front());
  for (const DType dtype : dtypes) {
    std::int64_t elements = 0, tight = 0;
    for (const Form& form : problems) {
      const Case c = case_of(form, dtype);
      const Gradients own = gradients_of(*kernel, c), exact = gradients_of(*core, in_double(c));
      const Manifest& manifest = kernel->manifest();
      const GradientBounds bounds =
          gradient_bounds(forward_of(c), own.given, manifest.arithmetic_for(c), manifest.backward_arithmetic_for(c));
      for (const Gradient one : every_gradient) {
        const auto g = static_cast<std::size_t>(one);
        ASSERT_EQ(own.found[g].elements(), exact.found[g].elements());
        for (std::int64_t e = 0; e < own.found[g].elements(); ++e) {
          const ElementBound& bound = bounds[g][static_cast<std::size_t>(e)];
          if (bound.excuse != Excuse::none && bound.excuse != Excuse::vacuous) continue;
          const double x = own.found[g][e], r = exact.found[g][e];
          ++elements;
          tight += bound.allowed <= 512 * format_of(dtype).unit * (1 + std::fabs(r));
          ASSERT_LE(std::fabs(x - r), bound.allowed + 0x1p-44 * (1 + std::fabs(r)))
              << form.name << " in " << name_of(dtype) << ": " << name_of(one) << " at " << e;
        }
      }
    }
    EXPECT_GT(elements, 5000) << name_of(dtype);
    EXPECT_GT(tight, elements / 2) << name_of(dtype) << ": what is allowed says little";
  }
}

TEST_P(EveryForm, IsZeroForRowsWithoutAKey) {
  const auto kernel = kernel_of(GetParam());
  for (const DType dtype : dtypes) {
    const Case c = case_of(problems[7], dtype);
    const Gradients own = gradients_of(*kernel, c);
    const Tensor& dq = own.found[static_cast<std::size_t>(Gradient::q)];
    // The first eleven of twenty rows see none of nine keys; the next one sees a single one, and its gradient is 0 but
    // for roundings.
    for (std::int64_t i = 0; i < 20; ++i) {
      if (i == 11) continue;
      bool zero = true;
      for (std::int64_t e = 0; e < 4; ++e) zero = zero && dq.at(0, 0, i, e) == 0;
      EXPECT_EQ(zero, i < 11) << i;
    }
  }
}

TEST_P(EveryForm, HasNoGradientWithoutAKey) {
  const Case c = case_of({"no key", {.queries = 3, .keys = 0, .dk = 2, .dv = 2}}, DType::f32);
  const auto kernel = kernel_of(GetParam());
  EXPECT_EQ(gradients_of(*kernel, c).found[0], Tensor(DType::f32, {1, 1, 3, 2}));
}

TEST_P(EveryForm, IsTheSameTwice) {
  const auto kernel = kernel_of(GetParam());
  for (const DType dtype : dtypes) {
    const Case c = case_of(problems[2], dtype);
    EXPECT_EQ(gradients_of(*kernel, c).found, gradients_of(*kernel, c).found) << name_of(dtype);
  }
}

INSTANTIATE_TEST_SUITE_P(TiledBackward, EveryForm, testing::ValuesIn(all_forms()),
                         [](const auto& one) { return test::name_of_test(one.param.name); });

// A key's sums run over rows in their order, wherever a tile of them ends; those of dq over tiles.
TEST(TiledBackward, TilesMoveDqAlone) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const Case c = case_of(problems[2], dtype);
    const auto small = kernel_of({"", backward_by_weights(16)}), large = kernel_of({"", backward_by_weights(128)});
    const Gradients one = gradients_of(*small, c), other = gradients_of(*large, c);
    EXPECT_EQ(one.found[1], other.found[1]);
    EXPECT_EQ(one.found[2], other.found[2]);
    EXPECT_EQ(one.found[0] == other.found[0], dtype != DType::f32) << "bf16 hides the last bits";
  }
}

// As atomics may: another loss is another order, and dq another in its last bits.
TEST(TiledBackward, AnOrderIsDrawnFromTheInputs) {
  const Case c = case_of(problems[2], DType::f32);
  BackwardForm in_order = flash_backward(16);
  in_order.drawn_order = false;
  const Gradients drawn = gradients_of(*kernel_of({"", flash_backward(16)}), c);
  const Gradients ordered = gradients_of(*kernel_of({"", in_order}), c);
  EXPECT_NE(drawn.found[0], ordered.found[0]);
  EXPECT_EQ(drawn.found[1], ordered.found[1]);
}

// In f32 1 - p is 0 then, and 1/(1 - p) is not finite; no kept weight needs it.
TEST(TiledBackward, HasNoGradientOfWeightsThatAreAllDropped) {
  Case c = case_of(problems[1], DType::f32);
  c.dropout_p = 0x1.fffffffffffffp-1;
  c[Slot::keep] = Tensor(DType::boolean, {1, 1, 21, 37});
  const Gradients own = gradients_of(*kernel_of({"", unfused_backward(16), two_pass_kernel}), c);
  for (const Gradient one : gradients_by_inputs) {
    const Tensor& t = own.found[static_cast<std::size_t>(one)];
    EXPECT_EQ(t, Tensor(DType::f32, t.shape())) << name_of(one);
  }
}

TEST(TiledBackward, HasNoCachesAndNoFactors) {
  const Case c = case_of(problems[0], DType::f32);
  attest_problem forward = forward_of(c).problem();
  attest_backward_problem problem{};
  problem.forward = &forward;
  attest_gradients gradients{};
  for (const std::uint32_t variant : {ATTEST_PAGED, ATTEST_APPEND, ATTEST_CACHE_INDEX, ATTEST_DESCALE}) {
    forward.variants = variant;
    std::string message;
    EXPECT_EQ(run_backward(flash_backward(16), problem, gradients, message), ATTEST_UNSUPPORTED);
    EXPECT_EQ(message, "its backward pass has no caches and no factors");
  }
  forward.variants = 0, forward.q.dtype = ATTEST_F8_E4M3;
  std::string message;
  EXPECT_EQ(run_backward(flash_backward(16), problem, gradients, message), ATTEST_UNSUPPORTED);
  EXPECT_EQ(message, "runs in f64, f32, f16 and bf16");
}

TEST(TiledBackward, SaysWhatItsFormIs) {
  const BackwardTerms flash = terms_of(flash_backward(16)), unfused = terms_of(unfused_backward(16)),
                      split = terms_of(split_backward(16, 4));
  EXPECT_TRUE(flash.excluded.empty());
  EXPECT_TRUE(flash.claims.empty()) << "of an order that is drawn";
  EXPECT_EQ(unfused.claims.size(), 4U);
  EXPECT_EQ(split.claims.size(), 3U) << "parts begin elsewhere where keys are padded";
  EXPECT_FALSE(unfused.uses_lse);
  EXPECT_FALSE(unfused.uses_out);
  EXPECT_EQ(arithmetic_of(flash_backward(16), DType::bf16).group_partials, DType::bf16);
  EXPECT_EQ(arithmetic_of(unfused_backward(16), DType::f16).of_weights, DType::f16);
  EXPECT_EQ(arithmetic_of(split_backward(16, 4), DType::f16).of_weights, DType::f32);
}

}  // namespace
}  // namespace attest
