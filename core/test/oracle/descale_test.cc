// Factors of q, k and v: the oracle against the definition on 60 digits, and each term of the bound against a kernel
// that needs it.
#include "core/problem/descale.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "core/oracle/oracle.h"
#include "core/problem/fields.h"
#include "core/problem/sight.h"
#include "core/support/infinity.h"
#include "core/test/oracle/variant_bounds.h"

namespace attest {
namespace {

constexpr std::array places{DescalePlace::products, DescalePlace::inputs, DescalePlace::sums, DescalePlace::unstated};

Arithmetic at_place(DescalePlace place, DType dtype = DType::f32) {
  Arithmetic a = plain(dtype);
  a.descale = place;
  return a;
}

Tensor factors(Random& random, const Shape& shape, double octaves) {
  Tensor all(DType::f32, shape);
  for (std::int64_t e = 0; e < all.elements(); ++e) all.set(e, std::exp2(random.normal(octaves)));
  return all;
}

/// Grouped heads, a mask or none, a causal form, a window, a sink, a cap, slopes, lengths or left padding or none, and
/// factors of some of the tensors, for all, heads, entries or blocks.
Case random_case(Random& random, DType dtype, std::int64_t most_keys = 9) {
  const std::int64_t batch = 1 + random.below(2), group = 1 + random.below(2), kv = 1 + random.below(2),
                     M = 1 + random.below(4), N = 1 + random.below(most_keys), dk = 1 + random.below(5);
  Case c;
  c.scale = inverse_root(dk);
  c[Slot::q] = random.tensor(dtype, {batch, kv * group, M, dk}, 2);
  // Whole numbers, as a cache may have them, beside others.
  const DType of_k = random.below(3) == 0 ? DType::i8 : dtype, of_v = random.below(3) == 0 ? DType::i8 : dtype;
  c[Slot::k] = random.tensor(of_k, {batch, kv, N, dk}, of_k == DType::i8 ? 40 : 2);
  c[Slot::v] = random.tensor(of_v, {batch, kv, N, 3}, of_v == DType::i8 ? 40 : 1);
  if (random.below(2) == 0) {
    c[Slot::mask] = random.tensor(dtype, {1, kv * group, M, N}, 1);
    for (std::int64_t e = 0; e < c.mask().elements(); ++e)
      if (random.below(3) == 0) c[Slot::mask].set(e, -infinity);
  }
  if (random.below(2) == 0) c.causal = random.below(2) == 0 ? Causal::top_left : Causal::bottom_right;
  if (random.below(3) == 0) c.window_left = random.below(3);
  if (random.below(3) == 0) c[Slot::sink] = random.tensor(DType::f32, {kv * group}, 3);
  if (random.below(3) == 0) c.softcap = 1 + std::fabs(random.normal(4));
  if (random.below(3) == 0) c[Slot::alibi_slopes] = random.tensor(DType::f32, {1, kv * group}, 0.5);
  if (random.below(4) == 0) {
    const Slot slot = random.below(2) == 0 ? Slot::kv_lengths : Slot::left_pad;
    c[slot] = Tensor(DType::i32, {batch});
    for (std::int64_t b = 0; b < batch; ++b) c[slot].set(b, static_cast<double>(random.below(N + 1)));
  }
  const std::int64_t rows = 1 + random.below(M + 1), keys = 1 + random.below(N + 1);
  const auto blocks = [&](std::int64_t extent, std::int64_t& kept, std::int64_t block) {
    if (random.below(2) == 0) return std::int64_t{1};
    kept = block;
    return (extent + block - 1) / block;
  };
  const auto shape = [&](std::int64_t heads, std::int64_t of) {
    return Shape{random.below(2) == 0 ? batch : 1, random.below(2) == 0 ? heads : 1, of};
  };
  const std::int64_t which = 1 + random.below(7);
  if ((which & 1) != 0) c[Slot::q_descale] = factors(random, shape(kv * group, blocks(M, c.q_descale_block, rows)), 1);
  if ((which & 2) != 0) c[Slot::k_descale] = factors(random, shape(kv, blocks(N, c.kv_descale_block, keys)), 1);
  if ((which & 4) != 0) c[Slot::v_descale] = factors(random, shape(kv, blocks(N, c.kv_descale_block, keys)), 3);
  settle_blocks(c);
  settle_alignment(c);
  validate(c);
  return c;
}

TEST(DescaleOracle, EnclosesTheDefinition) {
  Random random(1);
  int rows = 0;
  for (int n = 0; n < 600; ++n) {
    const Case c = random_case(random, n % 2 == 0 ? DType::f32 : DType::bf16, n % 20 == 0 ? 90 : 9);
    SCOPED_TRACE(n);
    rows += expect_enclosed(c, at_place(places[static_cast<std::size_t>(n % 4)], c.dtype()));
  }
  EXPECT_GT(rows, 1500);
}

TEST(DescaleOracle, AgreesAtEveryLevel) {
  Random random(2);
  for (int n = 0; n < 90; ++n)
    expect_same_at_every_level(random_case(random, DType::f32, n % 10 == 0 ? 90 : 9),
                               at_place(places[static_cast<std::size_t>(n % 4)]));
}

// Rows of q whose bits are equal, in blocks that are not.
TEST(DescaleOracle, TellsEqualQueriesWithOtherFactorsApart) {
  Random random(3);
  Case c;
  const std::int64_t M = 256, N = 256;
  c[Slot::q] = Tensor(DType::f32, {1, 1, M, 4});
  for (std::int64_t e = 0; e < c.q().elements(); ++e) c[Slot::q].set(e, 1);
  c[Slot::k] = random.tensor(DType::f32, {1, 1, N, 4}, 1);
  c[Slot::v] = random.tensor(DType::f32, {1, 1, N, 2}, 1);
  c[Slot::q_descale] = Tensor(DType::f32, {1, 1, 2});
  c[Slot::q_descale].set(0, 1), c[Slot::q_descale].set(1, 2);
  c.q_descale_block = 128;
  validate(c);
  const AttentionBounds bounds = attention_bounds(c, plain(DType::f32), true);
  Tensor out(DType::f32, c.out_shape());
  for (std::int64_t e = 0; e < out.elements(); ++e) out.set(e, bounds.elements[static_cast<std::size_t>(e)].value);
  EXPECT_NE(out[0], out[128 * 2]);
  EXPECT_EQ(judge_attention(c, out, {}, plain(DType::f32)).outcome, Outcome::held);
  for (std::int64_t i = 0; i < M; ++i)
    for (std::int64_t e = 0; e < 2; ++e) out.set(i * 2 + e, bounds.elements[static_cast<std::size_t>(e)].value);
  EXPECT_EQ(judge_attention(c, out, {}, plain(DType::f32)).outcome, Outcome::violated);
}

/// One query of one number, 1, and keys of one number.
struct OneQuery {
  std::vector<double> k, v;
  double q_factor = 0, k_factor = 0, v_factor = 0;  ///< 0: none
  double scale = 1;
  DType dtype = DType::f32;

  [[nodiscard]] Case made() const {
    const auto n = static_cast<std::int64_t>(k.size());
    Case c;
    c.scale = scale;
    c[Slot::q] = Tensor(dtype, {1, 1, 1, 1}, std::vector<double>{1});
    c[Slot::k] = Tensor(dtype, {1, 1, n, 1}, k);
    c[Slot::v] = Tensor(dtype, {1, 1, n, 1}, v);
    const std::pair<Slot, double> all[] = {
        {Slot::q_descale, q_factor}, {Slot::k_descale, k_factor}, {Slot::v_descale, v_factor}};
    for (const auto& [slot, factor] : all)
      if (factor != 0) c[slot] = Tensor(DType::f32, {1, 1, 1}, std::vector<double>{factor});
    validate(c);
    return c;
  }
};

double single(double x) {
  return static_cast<double>(static_cast<float>(x));
}

/// The output where the scores are these, in double: what is left is what they err by.
double output_of(const std::vector<double>& scores, const std::vector<double>& values) {
  const double most = *std::ranges::max_element(scores);
  double sum = 0, out = 0;
  for (std::size_t j = 0; j < scores.size(); ++j) {
    const double w = std::exp(scores[j] - most);
    sum += w, out += w * values[j];
  }
  return out / sum;
}

/// Everything but what the factors make is as good as exact.
Arithmetic factors_alone(DescalePlace place, DType dtype = DType::f32) {
  Arithmetic a = at_place(place, dtype);
  a.accumulate = a.weights = a.output = DType::f64;
  a.exp_ulp = 0x1p-20;
  return a;
}

Used larger(const Used& a, const Used& b) {
  return {std::max(a.as_it_is, b.as_it_is), std::max(a.changed, b.changed)};
}

TEST(DescaleBound, NeedsTheRoundingsOfProducts) {
  Random random(4);
  Used most;
  for (int turn = 0; turn < 400; ++turn) {
    OneQuery query{.k = {},
                   .v = {1, 0},
                   .q_factor = single(1 + std::fabs(random.normal(0.3))),
                   .k_factor = single(1 + std::fabs(random.normal(0.3)))};
    const double level = single(60 + random.normal(5));
    query.k = {level, single(level * (1 + random.normal(0.001)))};
    std::vector<double> scores;
    scores.reserve(query.k.size());
    for (const double k : query.k)
      scores.push_back(static_cast<double>(static_cast<float>(k) * static_cast<float>(query.q_factor) *
                                           static_cast<float>(query.k_factor)));
    most = larger(most, used(query.made(), factors_alone(DescalePlace::products), output_of(scores, query.v),
                             [](Profile& p) { p.u_factors = p.u_s = p.th_scale = 0; }));
  }
  EXPECT_LE(most.as_it_is, 1);
  EXPECT_GT(most.as_it_is, 0.1);
  EXPECT_GT(most.changed, 1);
}

TEST(DescaleBound, NeedsTheRoundingOfKeys) {
  Random random(5);
  Used most;
  for (int turn = 0; turn < 400; ++turn) {
    OneQuery query{.k = {}, .v = {1, 0}, .k_factor = single(1 + std::fabs(random.normal(0.3))), .dtype = DType::bf16};
    const double level = round_to(DType::bf16, 20 + random.normal(5));
    query.k = {level, round_to(DType::bf16, level * (1 + random.normal(0.02)))};
    std::vector<double> scores;
    scores.reserve(query.k.size());
    for (const double k : query.k) scores.push_back(round_to(DType::bf16, k * query.k_factor));
    most = larger(most, used(query.made(), factors_alone(DescalePlace::inputs, DType::bf16), output_of(scores, query.v),
                             [](Profile& p) { p.u_qpre = 0; }));
  }
  EXPECT_LE(most.as_it_is, 1);
  EXPECT_GT(most.as_it_is, 0.2);
  EXPECT_GT(most.changed, 1);
}

TEST(DescaleBound, NeedsTheRoundingOfValues) {
  Random random(6);
  Used most;
  for (int turn = 0; turn < 400; ++turn) {
    OneQuery query{.k = {0},
                   .v = {round_to(DType::bf16, 1 + std::fabs(random.normal(0.3)))},
                   .v_factor = single(1 + std::fabs(random.normal(0.3))),
                   .dtype = DType::bf16};
    const double found = round_to(DType::bf16, query.v[0] * query.v_factor);
    most = larger(most, used(query.made(), factors_alone(DescalePlace::inputs, DType::bf16), found,
                             [](Profile& p) { p.u_drop = 0; }));
  }
  EXPECT_LE(most.as_it_is, 1);
  EXPECT_GT(most.as_it_is, 0.4);
  EXPECT_GT(most.changed, 1);
}

TEST(DescaleBound, NeedsTheRoundingOfTheOutputsProduct) {
  Random random(7);
  Used most;
  Arithmetic a = at_place(DescalePlace::products);
  a.output = DType::f32;
  for (int turn = 0; turn < 400; ++turn) {
    const OneQuery query{.k = {0},
                         .v = {single(1 + std::fabs(random.normal(0.3)))},
                         .v_factor = single(1 + std::fabs(random.normal(0.3)))};
    const double found = single(query.v[0] * query.v_factor);
    most = larger(most, used(query.made(), a, found,
                             [](Profile& p) { p.u_drop = p.u_gained = p.u_a = p.eps_exp = p.u_e = 0, p.c_div = 0; }));
  }
  EXPECT_LE(most.as_it_is, 1);
  EXPECT_GT(most.as_it_is, 0.05);
  EXPECT_GT(most.changed, 1);
}

// A product that underflows before a factor makes it a number again.
TEST(DescaleBound, NeedsWhatAFactorMakesOfAnUnderflow) {
  Arithmetic half = factors_alone(DescalePlace::products, DType::f16);
  half.score_sums = DType::f16;
  OneQuery query{.k = {0x1p-14, 0}, .v = {1, 0}, .k_factor = 0x1p10, .dtype = DType::f16};
  Case c = query.made();
  c[Slot::q].set(0, 0x1p-11);  // the product is half of the least number
  const Used u = used(c, half, output_of({0, 0}, query.v),
                      [](Profile& p) { p.lam_s = 0x1p-25, p.lam_scale = 0x1p-25, p.lam_raw = 0; });
  EXPECT_LE(u.as_it_is, 1);
  EXPECT_GT(u.changed, 1);
}

// A weight that a small factor has multiplied is stored as a subnormal number.
TEST(DescaleBound, NeedsWhatAFactorMakesOfTheUnderflowOfWeights) {
  Arithmetic stored = factors_alone(DescalePlace::products, DType::f16);
  stored.weights = DType::f16;
  const OneQuery query{.k = {0}, .v = {1}, .v_factor = 0x1.2p-23, .dtype = DType::f16};
  const double found = round_to(DType::f16, query.v_factor);
  ASSERT_NE(found, query.v_factor);
  const Used u = used(query.made(), stored, found, [](Profile& p) { p.lam_p = 0x1p-25; });
  EXPECT_LE(u.as_it_is, 1);
  EXPECT_GT(u.changed, 1);
}

// The same of values: they are multiplied where they were subnormal.
TEST(DescaleBound, NeedsTheUnderflowOfValues) {
  const OneQuery query{.k = {0}, .v = {0x1.8p-14}, .v_factor = 0x1p-11, .dtype = DType::f16};
  const double found = round_to(DType::f16, query.v[0] * query.v_factor);
  ASSERT_NE(found, query.v[0] * query.v_factor);
  const Used u =
      used(query.made(), factors_alone(DescalePlace::inputs, DType::f16), found, [](Profile& p) { p.lam_drop = 0; });
  EXPECT_LE(u.as_it_is, 1);
  EXPECT_GT(u.changed, 1);
}

// What no factor makes small again before the sum of products has left its format, and what one makes too large.
TEST(DescaleBound, ExcusesWhatLeavesTheRange) {
  const auto excuse = [](OneQuery query, DescalePlace place, DType sums) {
    query.dtype = DType::f16;
    Case c = query.made();
    c[Slot::q].set(0, 256);
    Arithmetic a = factors_alone(place, DType::f16);
    a.score_sums = sums;
    const AttentionBounds bounds = attention_bounds(c, a);
    return is_of_row(bounds.rows[0].excuse) ? bounds.rows[0].excuse : bounds.elements[0].excuse;
  };
  // 256 * 512 is no number of f16; a kernel that multiplies keys first has 256 * 1.
  OneQuery query{.k = {512, 0}, .v = {1, 0}, .k_factor = 0x1p-9};
  EXPECT_EQ(excuse(query, DescalePlace::products, DType::f16), Excuse::overflow);
  EXPECT_EQ(excuse(query, DescalePlace::inputs, DType::f16), Excuse::none);
  EXPECT_EQ(excuse(query, DescalePlace::products, DType::f32), Excuse::none);
  // A key, and a value, that is no number of f16 once it is multiplied.
  query = {.k = {512, 0}, .v = {1, 0}, .k_factor = 0x1p8, .scale = 0x1p-14};
  EXPECT_EQ(excuse(query, DescalePlace::inputs, DType::f32), Excuse::overflow);
  EXPECT_EQ(excuse(query, DescalePlace::products, DType::f32), Excuse::none);
  query = {.k = {1, 0}, .v = {512, 0}, .v_factor = 0x1p8};
  EXPECT_EQ(excuse(query, DescalePlace::inputs, DType::f32), Excuse::overflow);
  EXPECT_EQ(excuse(query, DescalePlace::products, DType::f32), Excuse::none);
}

// Of what is multiplied twice nobody says that it is exact.
TEST(DescaleBound, IsNeverThatOfExactProducts) {
  OneQuery query{.k = {3, -2}, .v = {1, 0}, .k_factor = 1};
  const auto bound = [](const Case& c) { return attention_bounds(c, at_place(DescalePlace::products)).rows[0].most_E; };
  const double with = bound(query.made());
  query.k_factor = 0;
  EXPECT_GT(with, bound(query.made()));
}

}  // namespace
}  // namespace attest
