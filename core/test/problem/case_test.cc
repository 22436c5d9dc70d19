// Cases: names, views, the rules of kernel-interface.md ("What both sides may rely on"), and the file.
#include "core/problem/case.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>

#include "core/test/cases.h"
#include "core/test/refusal.h"
#include "core/value/safetensors.h"

namespace attest {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// Elements 1, 2, 3, … in f32.
Tensor counting(const Shape& shape, DType dtype = DType::f32) {
  std::int64_t i = 0;
  return test::filled(dtype, shape, [&] { return static_cast<double>(i++ % 7 + 1); });
}

/// batch 2, heads 4, kv_heads 2, M 3, N 5, dk 6, dv 7, an additive mask for every head.
Case attention_case() {
  Case c = test::case_of(
      Operation::attention, {.batch = 2, .heads = 4, .queries = 3, .keys = 5, .dk = 6, .dv = 7, .kv_heads = 2},
      {Slot::q, Slot::k, Slot::v, Slot::mask}, [](Slot, const Shape& shape) { return counting(shape); });
  c[Slot::mask].set(4, -inf);
  c.scale = 1 / std::sqrt(6.0);
  return c;
}

/// batch 2, heads 2, M 3, N 5, c_q 4, c_k 5, c_v 6, dk 3, dv 2, d_o 7, every slot filled.
Case multihead_case() {
  using enum Slot;
  Case c = test::case_of(
      Operation::multihead,
      {.batch = 2, .heads = 2, .queries = 3, .keys = 5, .dk = 3, .dv = 2, .c_q = 4, .c_k = 5, .c_v = 6, .d_o = 7},
      {q, k, v, w_q, w_k, w_v, b_q, b_k, b_v, w_o, b_o, bias_k, bias_v},
      [](Slot, const Shape& shape) { return counting(shape); });
  c[mask] = counting({1, 2, 3, 5});
  c.causal = Causal::bottom_right;
  c.mask_convention = MaskConvention::pre_scale;
  return c;
}

/// The line validate throws; empty when it throws none.
std::string fault_of(const Case& c) {
  return refusal([&] { validate(c); });
}

void expect_fault(const std::function<void(Case&)>& break_it, Case c, const std::string& line) {
  ASSERT_EQ(fault_of(c), "");
  break_it(c);
  EXPECT_EQ(fault_of(c), line);
}

void expect_attention_fault(const std::string& line, const std::function<void(Case&)>& break_it) {
  expect_fault(break_it, attention_case(), line);
}
void expect_multihead_fault(const std::string& line, const std::function<void(Case&)>& break_it) {
  expect_fault(break_it, multihead_case(), line);
}

TEST(Names, GoBothWays) {
  for (const auto e : {MaskConvention::post_scale, MaskConvention::pre_scale}) {
    EXPECT_EQ(named<MaskConvention>(name_of(e)), e);
  }
  for (const auto e : {Causal::none, Causal::top_left, Causal::bottom_right}) EXPECT_EQ(named<Causal>(name_of(e)), e);
  for (const auto e : {Operation::attention, Operation::multihead}) EXPECT_EQ(named<Operation>(name_of(e)), e);
  for (int i = 0; i < slot_count; ++i) {
    EXPECT_EQ(named<Slot>(name_of(static_cast<Slot>(i))), static_cast<Slot>(i));
  }
  EXPECT_EQ(name_of(Slot::bias_v), "bias_v");
  EXPECT_EQ(name_of(Causal::bottom_right), "bottom-right");
  EXPECT_EQ(named<Causal>("top_left"), std::nullopt);
}

TEST(Views, ShowTheCasesMemory) {
  const Case c = attention_case();
  const attest_problem problem = c.problem();
  // Byte for byte as the first version of the contract had it.
  EXPECT_EQ(problem.size, offsetof(attest_problem, variants));
  EXPECT_EQ(problem.size, 344U);
  EXPECT_EQ(problem.variants, 0U);
  EXPECT_EQ(problem.q.data, c.q().bytes().data());
  EXPECT_EQ(problem.v.shape[3], 7);
  EXPECT_EQ(problem.v.stride[2], 7);
  EXPECT_EQ(problem.mask.rank, 4);
  EXPECT_EQ(problem.scale, c.scale);
  Case bare = c;
  bare[Slot::mask] = Tensor();
  EXPECT_EQ(bare.problem().mask.data, nullptr);

  const Case m = multihead_case();
  const attest_multihead_problem all = m.multihead_problem();
  const attest_tensor* const views[] = {&all.q,   &all.k,   &all.v,   &all.mask, &all.w_q, &all.w_k,    &all.w_v,
                                        &all.b_q, &all.b_k, &all.b_v, &all.w_o,  &all.b_o, &all.bias_k, &all.bias_v};
  for (int i = 0; i < original_slots; ++i) {
    EXPECT_EQ(views[i]->data, m[static_cast<Slot>(i)].bytes().data()) << name_of(static_cast<Slot>(i));
  }
  EXPECT_EQ(all.size, sizeof(attest_multihead_problem));
  EXPECT_EQ(all.heads, 2);
  EXPECT_EQ(all.causal, ATTEST_CAUSAL_BOTTOM_RIGHT);
  EXPECT_EQ(all.mask_convention, ATTEST_MASK_PRE_SCALE);
}

TEST(OutShape, IsThatOfTheContract) {
  EXPECT_EQ(attention_case().out_shape(), (Shape{2, 4, 3, 7}));
  Case c = multihead_case();
  EXPECT_EQ(c.out_shape(), (Shape{2, 3, 7}));
  c[Slot::w_o] = Tensor();
  EXPECT_EQ(c.out_shape(), (Shape{2, 3, 4}));
}

TEST(Validate, TakesWhatTheContractAllows) {
  EXPECT_EQ(fault_of(attention_case()), "");
  EXPECT_EQ(fault_of(multihead_case()), "");
  Case c = attention_case();
  for (const Shape& shape : {Shape{1, 1, 3, 5}, Shape{2, 1, 3, 5}, Shape{1, 4, 3, 5}}) {
    c[Slot::mask] = counting(shape);
    EXPECT_EQ(fault_of(c), "");
    c[Slot::mask] = Tensor(DType::boolean, shape);
    EXPECT_EQ(fault_of(c), "");
    c[Slot::mask] = counting(shape, DType::f64);
    EXPECT_EQ(fault_of(c), "");
  }
  c[Slot::q] = counting({2, 4, 0, 6});
  c[Slot::mask] = counting({1, 1, 0, 5});
  EXPECT_EQ(fault_of(c), "") << "M = 0";
  c = attention_case();
  c[Slot::k] = counting({2, 2, 0, 6});
  c[Slot::v] = counting({2, 2, 0, 7});
  c[Slot::mask] = Tensor();
  EXPECT_EQ(fault_of(c), "") << "N = 0";
  c = multihead_case();
  for (const Slot slot : {Slot::w_o, Slot::b_q, Slot::b_k, Slot::b_v, Slot::bias_k, Slot::bias_v, Slot::mask}) {
    c[slot] = Tensor();
  }
  c[Slot::b_o] = counting({4});
  EXPECT_EQ(fault_of(c), "") << "without w_o, d_o is heads*dv";
  for (const DType dtype : {DType::f64, DType::f16, DType::bf16, DType::f8_e4m3, DType::f8_e5m2}) {
    c = attention_case();
    for (const Slot slot : {Slot::q, Slot::k, Slot::v}) c[slot] = counting(c[slot].shape(), dtype);
    EXPECT_EQ(fault_of(c), "") << name_of(dtype);
  }
}

TEST(Validate, NamesWhatAttentionBreaks) {
  expect_attention_fault("k is missing; attention needs q, k and v", [](Case& c) { c[Slot::k] = Tensor(); });
  expect_attention_fault("q has shape [4, 3, 6]; attention needs 4 axes, [batch, heads, M, dk]",
                         [](Case& c) { c[Slot::q] = counting({4, 3, 6}); });
  expect_attention_fault("q has shape [2, 0, 3, 6]: heads is 0; it must be at least 1",
                         [](Case& c) { c[Slot::q] = counting({2, 0, 3, 6}); });
  expect_attention_fault("q has shape [0, 4, 3, 6]: batch is 0; it must be at least 1",
                         [](Case& c) { c[Slot::q] = counting({0, 4, 3, 6}); });
  expect_attention_fault("q has shape [2, 4, 3, 0]: dk is 0; it must be at least 1",
                         [](Case& c) { c[Slot::q] = counting({2, 4, 3, 0}); });
  expect_attention_fault("k has shape [2, 0, 5, 6]: kv_heads is 0; it must be at least 1",
                         [](Case& c) { c[Slot::k] = counting({2, 0, 5, 6}); });
  expect_attention_fault("v has shape [2, 2, 5, 0]: dv is 0; it must be at least 1",
                         [](Case& c) { c[Slot::v] = counting({2, 2, 5, 0}); });
  expect_attention_fault("k has shape [1, 2, 5, 6]; it must be [batch, kv_heads, N, dk] = [2, 2, 5, 6]",
                         [](Case& c) { c[Slot::k] = counting({1, 2, 5, 6}); });
  expect_attention_fault("k has shape [2, 2, 5, 8]; it must be [batch, kv_heads, N, dk] = [2, 2, 5, 6]",
                         [](Case& c) { c[Slot::k] = counting({2, 2, 5, 8}); });
  expect_attention_fault("v has shape [2, 2, 5, 7]; it must be [batch, kv_heads, N, dv] = [2, 2, 0, 7]",
                         [](Case& c) { c[Slot::k] = counting({2, 2, 0, 6}); });
  expect_attention_fault("v has shape [2, 4, 5, 7]; it must be [batch, kv_heads, N, dv] = [2, 2, 5, 7]",
                         [](Case& c) { c[Slot::v] = counting({2, 4, 5, 7}); });
  expect_attention_fault("q has 4 heads and k has 3; the heads of k must divide those of q", [](Case& c) {
    c[Slot::k] = counting({2, 3, 5, 6});
    c[Slot::v] = counting({2, 3, 5, 7});
  });
  expect_attention_fault("w_o is present; attention does not take it (operation multihead does)",
                         [](Case& c) { c[Slot::w_o] = counting({2, 2}); });
  for (const Shape& shape : {Shape{3, 4, 3, 5}, Shape{2, 2, 3, 5}, Shape{2, 4, 1, 5}, Shape{2, 4, 3, 1}}) {
    expect_attention_fault(
        "mask has shape " + shape.to_string() + "; it must be [batch or 1, heads or 1, M, N] = [2 or 1, 4 or 1, 3, 5]",
        [&](Case& c) { c[Slot::mask] = counting(shape); });
  }
  expect_attention_fault("k is bool; it must be of a floating dtype, or i8",
                         [](Case& c) { c[Slot::k] = Tensor(DType::boolean, {2, 2, 5, 6}); });
  expect_attention_fault("q is bool; it must be of a floating dtype", [](Case& c) {
    for (const Slot slot : {Slot::q, Slot::k, Slot::v}) c[slot] = Tensor(DType::boolean, c[slot].shape());
  });
  expect_attention_fault("metadata holds \"scale\", which the case itself states",
                         [](Case& c) { c.provenance.others["scale"] = "1"; });
}

TEST(Validate, NamesBadNumbers) {
  for (const double scale : {0.0, -1.0, inf, -inf, nan}) {
    Case c = attention_case();
    c.scale = scale;
    EXPECT_THAT(fault_of(c), Says("; it must be finite and greater than 0")) << scale;
  }
  expect_attention_fault("mask holds inf at [0, 0, 0, 1]; an entry is finite or -inf", [](Case& c) {
    c[Slot::mask].set(0, -inf);
    c[Slot::mask].set(1, inf);
  });
  expect_attention_fault("mask holds nan at [1, 3, 2, 4]; an entry is finite or -inf", [](Case& c) {
    c[Slot::mask].set(119, nan);
    c.provenance.non_finite = "yes";
  });
  expect_attention_fault("mask holds the byte 2 at [0, 0, 1, 0]; 1 shows a key and 0 hides it", [](Case& c) {
    c[Slot::mask] = Tensor(DType::boolean, {1, 1, 3, 5});
    c[Slot::mask].bytes()[5] = std::byte{2};
  });
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16, DType::f8_e5m2, DType::f8_e4m3}) {
    for (const Slot slot : {Slot::q, Slot::k, Slot::v}) {
      for (const double value : {nan, inf, -inf}) {
        Case c = attention_case();
        for (const Slot each : {Slot::q, Slot::k, Slot::v}) c[each] = counting(c[each].shape(), dtype);
        const std::int64_t last = c[slot].elements() - 1;
        c[slot].set(last, value);
        const std::string line = fault_of(c);
        EXPECT_EQ(line.substr(0, 8), std::string(name_of(slot)) + " holds ") << name_of(dtype) << value;
        EXPECT_THAT(line, Says("inputs are finite unless the metadata says \"non_finite\": \"yes\""));
        c.provenance.non_finite = "no";
        EXPECT_NE(fault_of(c), "");
        c.provenance.non_finite = "yes";
        EXPECT_EQ(fault_of(c), "");
        c.provenance.non_finite.reset();
        c[slot].set(last, format_of(dtype).largest);
        EXPECT_EQ(fault_of(c), "") << "the largest finite value is one";
      }
    }
  }
  expect_multihead_fault("w_o holds nan at [1, 2]; weights, biases and slopes are finite", [](Case& c) {
    c.provenance.non_finite = "yes";
    c[Slot::w_o].set(9, nan);
  });
}

/// The case with slopes, whose positions are from the bottom right.
Case sloped_case() {
  Case c = attention_case();
  c[Slot::alibi_slopes] = Tensor(DType::f32, {1, 4}, std::vector<double>{0.5, 0, -0.25, 0x1p-149});
  c.alignment = Causal::bottom_right;
  return c;
}

TEST(Validate, TakesSlopes) {
  Case c = sloped_case();
  EXPECT_EQ(fault_of(c), "");
  c[Slot::alibi_slopes] = counting({2, 4});
  EXPECT_EQ(fault_of(c), "");
  c.causal = Causal::bottom_right;
  EXPECT_EQ(fault_of(c), "");
  c.window_left = 1, c.softcap = 2;
  EXPECT_EQ(fault_of(c), "") << "beside a window and a cap";
  // A mask that is added nowhere has no convention, and what is not there neither.
  c.mask_convention = MaskConvention::pre_scale;
  for (const Tensor& mask : {Tensor(), Tensor(DType::boolean, {1, 1, 3, 5})}) {
    c[Slot::mask] = mask;
    EXPECT_EQ(fault_of(c), "");
  }
}

TEST(Validate, NamesWhatSlopesBreak) {
  const auto expect = [](const std::string& line, const std::function<void(Case&)>& break_it) {
    expect_fault(break_it, sloped_case(), line);
  };
  for (const Shape& shape : {Shape{1, 3}, Shape{3, 4}, Shape{2, 1}})
    expect("alibi_slopes has shape " + shape.to_string() + "; it must be [batch or 1, heads] = [2 or 1, 4]",
           [&](Case& c) { c[Slot::alibi_slopes] = counting(shape); });
  for (const DType dtype : {DType::f64, DType::f16, DType::bf16})
    expect("alibi_slopes is " + std::string(name_of(dtype)) + "; it must be f32",
           [&](Case& c) { c[Slot::alibi_slopes] = counting({1, 4}, dtype); });
  for (const double value : {nan, inf, -inf})
    expect("alibi_slopes holds " +
               std::string(std::isnan(value) ? "nan"
                           : value > 0       ? "inf"
                                             : "-inf") +
               " at [0, 3]; weights, biases and slopes are finite",
           [&](Case& c) {
             c[Slot::alibi_slopes].set(3, value);
             c.provenance.non_finite = "yes";
           });
  expect("alibi_slopes is present beside a pre-scale mask; slopes and masks are added after the scale",
         [](Case& c) { c.mask_convention = MaskConvention::pre_scale; });
  expect("there are ALiBi slopes without an alignment; it is \"top-left\" or \"bottom-right\"",
         [](Case& c) { c.alignment = Causal::none; });
  expect("alignment is bottom-right and causal top-left; ALiBi slopes count positions as the causal form does",
         [](Case& c) { c.causal = Causal::top_left; });
  expect(
      "alignment is bottom-right without any of windows, chunks of keys, ALiBi slopes; it says where their positions count from",
      [](Case& c) { c[Slot::alibi_slopes] = Tensor(); });
}

TEST(Validate, NamesWhatMultiheadBreaks) {
  expect_multihead_fault("w_k is missing; multihead needs q, k, v, w_q, w_k and w_v",
                         [](Case& c) { c[Slot::w_k] = Tensor(); });
  expect_multihead_fault("sink is present; multihead does not take it (operation attention does)",
                         [](Case& c) { c[Slot::sink] = counting({2}); });
  expect_multihead_fault("heads is 0; it must be at least 1", [](Case& c) { c.heads = 0; });
  expect_multihead_fault("w_q has 6 columns, which 4 heads do not divide; head h owns an equal share of them",
                         [](Case& c) { c.heads = 4; });
  expect_multihead_fault("w_v has 4 columns, which 3 heads do not divide; head h owns an equal share of them",
                         [](Case& c) { c.heads = 3; });
  expect_multihead_fault("w_k has shape [5, 4]; it must be [c_k, heads*dk] = [5, 6]",
                         [](Case& c) { c[Slot::w_k] = counting({5, 4}); });
  expect_multihead_fault("w_q has shape [5, 6]; it must be [c_q, heads*dk] = [4, 6]",
                         [](Case& c) { c[Slot::w_q] = counting({5, 6}); });
  expect_multihead_fault("w_v has shape [5, 4]; it must be [c_v, heads*dv] = [6, 4]",
                         [](Case& c) { c[Slot::w_v] = counting({5, 4}); });
  expect_multihead_fault("w_o has shape [6, 7]; it must be [heads*dv, d_o] = [4, 7]",
                         [](Case& c) { c[Slot::w_o] = counting({6, 7}); });
  expect_multihead_fault("b_o has shape [7]; it must be [d_o] = [4]", [](Case& c) { c[Slot::w_o] = Tensor(); });
  expect_multihead_fault("b_q has shape [4]; it must be [heads*dk] = [6]",
                         [](Case& c) { c[Slot::b_q] = counting({4}); });
  expect_multihead_fault("b_k has shape [4]; it must be [heads*dk] = [6]",
                         [](Case& c) { c[Slot::b_k] = counting({4}); });
  expect_multihead_fault("b_v has shape [6]; it must be [heads*dv] = [4]",
                         [](Case& c) { c[Slot::b_v] = counting({6}); });
  expect_multihead_fault("bias_k is present without bias_v; the appended row needs both",
                         [](Case& c) { c[Slot::bias_v] = Tensor(); });
  expect_multihead_fault("bias_v has shape [6]; it must be [heads*dv] = [4]",
                         [](Case& c) { c[Slot::bias_v] = counting({6}); });
  expect_multihead_fault(
      "mask has shape [1, 1, 3, 6]; it must be [batch or 1, heads or 1, M, N] = [2 or 1, 2 or 1, 3, 5]",
      [](Case& c) { c[Slot::mask] = counting({1, 1, 3, 6}); });
  expect_multihead_fault("v has shape [2, 4, 6]; it must be [batch, N, c_v] = [2, 5, 6]",
                         [](Case& c) { c[Slot::v] = counting({2, 4, 6}); });
  expect_multihead_fault("w_q has shape [4, 0]: heads*dk is 0; it must be at least 1",
                         [](Case& c) { c[Slot::w_q] = counting({4, 0}); });
  expect_multihead_fault(
      "b_q is f16 and q is f32; all tensors have one dtype, but a mask, and k and v of an attention "
      "problem",
      [](Case& c) { c[Slot::b_q] = counting({6}, DType::f16); });
}

TEST(Validate, RefusesSizesThatOnlyAHostileFileHas) {
  Case c = attention_case();
  c[Slot::mask] = Tensor();
  c[Slot::q] = counting({2, std::int64_t{1} << 24, 0, 6});
  EXPECT_EQ(fault_of(c), "batch 2 times heads 16777216 is more than 16777216");
  c[Slot::q] = counting({2, 4, 0, std::int64_t{1} << 31});
  EXPECT_EQ(fault_of(c), "q has shape [2, 4, 0, 2147483648]; an axis is at most 2147483647 long");
  c = attention_case();
  c[Slot::mask] = Tensor();
  c[Slot::k] = counting({2, 2, 0, 6});
  c[Slot::v] = counting({2, 2, 0, 2147483647});
  EXPECT_EQ(fault_of(c), "the output [2, 4, 3, 2147483647] has more than 4294967296 elements");
}

// The set that manifests, hypotheses and selections all go by: what double can make of 1/sqrt(dk), nothing farther.
TEST(Case, TakesAScaleForInverseRootHoweverItWasComputed) {
  for (std::int64_t dk = 1; dk <= 4096; ++dk) {
    const auto d = static_cast<double>(dk);
    const auto wide = static_cast<double>(1 / std::sqrt(static_cast<long double>(dk)));
    for (const double scale : {inverse_root(dk), wide, std::sqrt(1 / d), std::pow(d, -0.5)}) {
      EXPECT_TRUE(is_inverse_root(scale, dk)) << dk << ", " << scale;
    }
    EXPECT_FALSE(is_inverse_root(wide * (1 - 0x1.8p-51), dk)) << dk;
    EXPECT_FALSE(is_inverse_root(wide * (1 + 0x1.8p-51), dk)) << dk;
    EXPECT_FALSE(is_inverse_root(-wide, dk));
  }
  for (const double scale :
       {0.0, 1e-200, 1e200, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_FALSE(is_inverse_root(scale, 1)) << scale;
  }
}

}  // namespace
}  // namespace attest
