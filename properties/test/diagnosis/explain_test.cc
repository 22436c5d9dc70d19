// Kernels that are right for another arithmetic than they declare are explained, those that are wrong are not.
#include "properties/diagnosis/explain.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/problem/descale.h"
#include "core/test/cases.h"
#include "properties/arrangement/arrange.h"
#include "properties/test/catalogue/spoilt.h"
#include "properties/test/diagnosis/other_dropout.h"
#include "properties/test/diagnosis/other_scores.h"
#include "properties/test/diagnosis/other_slopes.h"
#include "properties/test/toy_kernels.h"

namespace attest {
namespace {

/// The first violated bounds of a property, shrunk as a run saves them.
std::vector<BeyondBound> violations(Kernel& kernel, DType dtype, std::size_t most, std::int64_t cases = 8000,
                                    std::string_view name = "attention.oracle") {
  const Property& property = *properties_matching(name).at(0);
  std::vector<BeyondBound> found;
  for (std::int64_t k = 0; k < cases && found.size() < most; ++k) {
    const Case c = project(generate(property, dtype, /*run_seed=*/1, k), kernel.manifest());
    if (check_case(property, kernel, c).violation == Violation::bound)
      found.push_back({&property, shrink(property, kernel, c, /*budget=*/100)});
  }
  return found;
}

/// What explains a kernel whose arithmetic in a dtype is declared otherwise.
std::vector<Explanation> told_of(std::string_view id, DType dtype, const std::function<void(Arithmetic&)>& declare) {
  Tampered other = asked_otherwise([](Case&) {}, id);
  declare(other.manifest().arithmetic.usual.at(dtype));
  const std::vector<BeyondBound> cases = violations(other, dtype, 6);
  EXPECT_GE(cases.size(), 3U);
  if (cases.empty()) return {};
  std::vector<Explanation> found = explain(other, cases);
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_GT(found[i].utilisation, 1e-4);
    EXPECT_LE(found[i].utilisation, i == 0 ? 1 : found[i - 1].utilisation);
  }
  return found;
}

/// Is one of them this change of "arithmetic" exactly?
bool names(const std::vector<Explanation>& found, const nlohmann::json& change) {
  return std::ranges::any_of(found,
                             [&](const Explanation& one) { return nlohmann::json::parse(one.declaration) == change; });
}

std::string all_of_them(const std::vector<Explanation>& found) {
  std::string text;
  for (const Explanation& one : found) text += one.words + " " + one.declaration + "; ";
  return text;
}

TEST(Explain, NamesTheWeightsThatWereRounded) {
  const std::vector<Explanation> found = told_of("control:bf16-weights", DType::f32, [](Arithmetic& a) {
    a.weights = DType::f32;
    a.weights_in_denominator = false;
  });
  EXPECT_TRUE(names(found, {{"weights", "bf16"}, {"weights_in_denominator", true}})) << all_of_them(found);
  EXPECT_FALSE(names(found, nlohmann::json::object())) << "a change that changes nothing";
}

TEST(Explain, NamesTheScoresThatWereStored) {
  const std::vector<Explanation> found = told_of("control:stored-scores", DType::bf16, [](Arithmetic& a) {
    a.stored_biased.reset();
    a.stored_scaled.reset();
    a.stored_raw.reset();
  });
  EXPECT_TRUE(names(found, {{"stored", {{"raw", nullptr}, {"scaled", nullptr}, {"biased", "bf16"}}}}))
      << all_of_them(found);
}

TEST(Explain, NamesSumsThatTruncate) {
  const std::vector<Explanation> found =
      told_of("control:truncating", DType::f32, [](Arithmetic& a) { a.rounding = Rounding::nearest; });
  EXPECT_TRUE(names(found, {{"rounding", "toward-zero"}})) << all_of_them(found);
  EXPECT_FALSE(names(found, {{"accumulate", "bf16"}})) << "a larger change than is needed";
}

/// What a row of a kernel in f32 does with its weights and its mask, and where it sums.
struct Habits {
  std::function<double(double)> weight = [](double x) { return x; };
  std::function<double(double)> mask = [](double x) { return x; };
  std::function<double(double)> sum = [](double x) { return static_cast<double>(static_cast<float>(x)); };
  bool sums_rounded = false;  ///< the weights as they multiply V
};

/// Attention with those habits, exact but for the roundings named.
std::unique_ptr<Kernel> habitual(Manifest manifest, const Habits& habits) {
  manifest.thread_safe = true;
  return function_kernel(
      "habitual", std::move(manifest), [habits](const attest_problem& p, attest_result& r, std::string&) {
        const std::int64_t heads = p.q.shape[1], group = heads / p.k.shape[1], keys = p.k.shape[2];
        for (std::int64_t b = 0; b < p.q.shape[0]; ++b)
          for (std::int64_t h = 0; h < heads; ++h)
            for (std::int64_t i = 0; i < p.q.shape[2]; ++i) {
              std::vector<double> s(static_cast<std::size_t>(keys));
              double largest = -INFINITY, total = 0;
              for (std::int64_t j = 0; j < keys; ++j) {
                double& x = s[static_cast<std::size_t>(j)];
                for (std::int64_t c = 0; c < p.q.shape[3]; ++c)
                  x += element(p.q, b, h, i, c) * element(p.k, b, h / group, j, c);
                x *= p.scale;
                if (p.mask.data != nullptr)
                  x += habits.mask(element(p.mask, p.mask.shape[0] == 1 ? 0 : b, p.mask.shape[1] == 1 ? 0 : h, i, j));
                largest = std::max(largest, x);
              }
              for (double& x : s) {
                x = x == -INFINITY ? 0 : std::exp(x - largest);
                const double rounded = habits.weight(x);
                total = habits.sum(total + (habits.sums_rounded ? rounded : x));
                x = rounded;
              }
              for (std::int64_t c = 0; c < p.v.shape[3]; ++c) {
                double o = 0;
                for (std::int64_t j = 0; j < keys; ++j)
                  o = habits.sum(o + s[static_cast<std::size_t>(j)] * element(p.v, b, h / group, j, c));
                const auto dtype = static_cast<DType>(r.out.dtype);
                store_element(r.out.data, dtype, offset_in(r.out, b, h, i, c), round_to(dtype, o / total));
              }
            }
        return ATTEST_OK;
      });
}

Manifest tight(DType dtype) {
  const std::string name(name_of(dtype)), sums = dtype == DType::f64 ? "f64" : "f32";
  return parse_manifest(R"({"name": "habitual", "dtypes": [")" + name + R"("], "masks": ["additive"], "arithmetic": {
    "weights": ")" + sums + R"(", "weights_in_denominator": false, "exp_ulp": 1, "max": "running", "base2": false,
    "split_merge": false, "normalise_first": false, "prescaled_q": null, "bias_in_sum": false, "block": 0,
    "division_roundings": 1}})",
                        "test");
}

std::function<double(double)> rounding(DType format) {
  return [format](double x) { return round_to(format, x); };
}

/// The explanations of a kernel whose violations of attention.oracle are saved; each case is violated now.
std::vector<Explanation> told_of_habits(const Manifest& manifest, DType dtype, const Habits& habits) {
  const std::unique_ptr<Kernel> kernel = habitual(manifest, habits);
  const std::vector<BeyondBound> cases = violations(*kernel, dtype, 4);
  EXPECT_GE(cases.size(), 3U);
  return cases.empty() ? std::vector<Explanation>() : explain(*kernel, cases);
}

TEST(Explain, NamesEachPlaceThatAloneSuffices) {
  const auto weights = told_of_habits(tight(DType::f32), DType::f32, {.weight = rounding(DType::bf16)});
  EXPECT_TRUE(names(weights, {{"weights", "bf16"}})) << all_of_them(weights);
  const auto mask = told_of_habits(tight(DType::f32), DType::f32, {.mask = rounding(DType::bf16)});
  EXPECT_TRUE(names(mask, {{"mask_format", "bf16"}})) << all_of_them(mask);
  const auto sums = told_of_habits(tight(DType::bf16), DType::bf16, {.sum = rounding(DType::f16)});
  EXPECT_TRUE(names(sums, {{"accumulate", "f16"}})) << all_of_them(sums);
  for (const auto& found : {weights, mask, sums})
    EXPECT_TRUE(std::ranges::all_of(found, &Explanation::one_place)) << all_of_them(found);
}

TEST(Explain, NamesFlushingWhereShrunkCasesAreNoLarger) {
  Tampered flushing = answered_otherwise(each_out([](double old) { return std::abs(old) < 0x1p-126 ? 0 : old; }));
  std::vector<BeyondBound> cases = violations(flushing, DType::f32, 4);
  ASSERT_GE(cases.size(), 3U);
  const std::vector<Explanation> found = explain(flushing, cases);
  EXPECT_TRUE(names(found, {{"flushes_subnormals", true}})) << all_of_them(found);
  // Where a flush moves a score by whole nats its bound says nothing, and an error of the values' size is none of one.
  Tampered wrong = answered_otherwise([](Reply& reply) { reply.out.set(0, 0.75); });
  wrong.manifest().lse = false;
  Case c = test::one_query(DType::f32, {0x1p-100}, {0x1p-30, 0}, {1, -1});
  c.scale = 0x1p127;
  const BeyondBound one[] = {{cases.front().property, c}};
  ASSERT_EQ(check_case(*one[0].property, wrong, c).violation, Violation::bound);
  Tampered flushed = answered_otherwise([](Reply& reply) { reply.out.set(0, 0.75); });
  flushed.manifest().lse = false;
  flushed.manifest().arithmetic.usual.at(DType::f32).flushes_subnormals = true;
  ASSERT_EQ(check_case(*one[0].property, flushed, c).outcome, Outcome::excused);
  EXPECT_FALSE(names(explain(wrong, one), {{"flushes_subnormals", true}})) << all_of_them(explain(wrong, one));
}

TEST(Explain, AsksBeforeItSpeaksOfTheDenominator) {
  Manifest manifest = tight(DType::bf16);
  manifest.arithmetic.usual.at(DType::bf16).weights = DType::bf16;
  manifest.out_dtypes[DType::bf16] = {DType::f32};
  const nlohmann::json summed{{"weights_in_denominator", true}};
  const auto twice = told_of_habits(manifest, DType::bf16, {.weight = [](double x) {
                                      const double once = round_to(DType::bf16, x * 1.3);
                                      return round_to(DType::bf16, once / 1.3);
                                    }});
  EXPECT_FALSE(names(twice, summed)) << all_of_them(twice);
  const auto once = told_of_habits(manifest, DType::bf16, {.weight = rounding(DType::bf16), .sums_rounded = true});
  EXPECT_TRUE(names(once, summed)) << all_of_them(once);
}

TEST(Explain, NamesATanhOfFewBits) {
  OtherScores coarse = of_another_cap(
      [](double t, double cap) { return capped_at(t, cap) * (1 + 0x1p-11 * std::sin(12345 * t / cap)); });
  const std::vector<BeyondBound> cases = violations(coarse, DType::f32, 4, /*cases=*/20'000);
  ASSERT_GE(cases.size(), 3U);
  const std::vector<Explanation> found = explain(coarse, cases);
  const auto tanh = std::ranges::find_if(
      found, [](const Explanation& one) { return nlohmann::json::parse(one.declaration).contains("tanh"); });
  ASSERT_NE(tanh, found.end()) << all_of_them(found);
  EXPECT_TRUE(tanh->words.starts_with("a tanh that errs by 2^-")) << all_of_them(found);
  EXPECT_LE(nlohmann::json::parse(tanh->declaration)["tanh"]["relative"], 0x1p-10);
  EXPECT_GT(tanh->coarser, 100);
  EXPECT_TRUE(tanh->one_place);
  EXPECT_EQ(tanh->stage, Stage::scores);
  EXPECT_TRUE(
      names(found, {{"stored", {{"raw", nullptr}, {"scaled", nullptr}, {"capped", "f16"}, {"biased", nullptr}}}}))
      << "which looks the same: " << all_of_them(found);
}

TEST(Explain, DoesNotExcuseAMistake) {
  // A scale that is 1 % too large, a sign, an answer that is not one.
  Tampered scaled = asked_otherwise([](Case& c) { c.scale *= 1.01; });
  Tampered negated = answered_otherwise(each_out([](double old) { return -old; }));
  for (Tampered* wrong : {&scaled, &negated}) {
    const std::vector<BeyondBound> cases = violations(*wrong, DType::f64, 6);
    ASSERT_EQ(cases.size(), 6U);
    const std::vector<Explanation> found = explain(*wrong, cases);
    EXPECT_TRUE(found.empty()) << all_of_them(found);
  }
}

/// Cases that drop weights, with bounds that the kernel violates.
std::vector<BeyondBound> violations_with_dropout(Kernel& kernel, DType dtype, std::size_t most) {
  const Property &drawn = property_named("dropout.none"), &property = property_named("attention.oracle");
  std::vector<BeyondBound> found;
  for (std::int64_t k = 0; k < 2000 && found.size() < most; ++k) {
    Case c = project(generate(drawn, dtype, /*run_seed=*/1, k), kernel.manifest());
    if (check_case(property, kernel, c).violation == Violation::bound) found.push_back({&property, std::move(c)});
  }
  EXPECT_EQ(found.size(), most);
  return found;
}

/// A 1/(1 - p) in bf16 looks as weights in bf16 do; without dropout no weight is off.
TEST(Explain, SaysNothingOfWeightsWhereDropoutIsWrong) {
  OtherDropout wrong([](Case& c) {
    const double gain = round_to(DType::bf16, 1 / (1 - c.dropout_p));
    c[Slot::v] = mapped(c.v(), [&](std::int64_t, double old) { return gain * old; });
    c.dropout_p = 0;
  });
  const std::vector<Explanation> found = explain(wrong, violations_with_dropout(wrong, DType::f32, 6));
  EXPECT_TRUE(found.empty()) << all_of_them(found);
}

/// Who rounds V times 1/(1 - p) to its format may say so, beside weights of more bits.
TEST(Explain, NamesValuesThatDropoutMultiplies) {
  OtherDropout values([](Case& c) {
    const double gain = 1 / (1 - c.dropout_p);
    c[Slot::v] = mapped(c.v(), [&](std::int64_t, double old) { return round_to(DType::bf16, gain * old); });
    c.dropout_p = 0;
  });
  values.manifest().arithmetic.usual.at(DType::bf16).weights = DType::f32;
  const Property& property = property_named("attention.oracle");
  // 1.6 and 1.4 become 205/128 and 179/128, and their difference is off by more than it is rounded.
  std::vector<BeyondBound> cases;
  for (const double value : {1.0, 2.0, 4.0}) {
    Case c = test::one_query(DType::bf16, {1}, {1, 1}, {value, -0.875 * value});
    c[Slot::keep] = Tensor(DType::boolean, {1, 1, 1, 2}, std::vector<double>{1, 1});
    c.dropout_p = 0.375;
    cases.push_back({&property, std::move(c)});
    ASSERT_EQ(check_case(property, values, cases.back().value).violation, Violation::bound) << value;
  }
  const std::vector<Explanation> found = explain(values, cases);
  ASSERT_EQ(found.size(), 1U) << all_of_them(found);
  EXPECT_EQ(found[0].variants, R"({"dropout":{"applied":"values"}})");
  EXPECT_EQ(found[0].declaration, "{}");
  EXPECT_FALSE(found[0].one_place);
}

/// A last row behind 4096 keys, of one slope and another seed each time.
std::vector<BeyondBound> far_rows(Causal causal) {
  std::vector<BeyondBound> cases;
  for (std::uint32_t state : {1U, 2U, 3U}) {
    const auto next = [&] {
      state = state * 1664525U + 1013904223U;
      return static_cast<double>(state >> 8U) * 0x1p-23 - 1;
    };
    Case c = test::attention_of({.keys = 4096, .dk = 2, .dv = 2},
                                [&](Slot, const Shape& shape) { return test::filled(DType::f32, shape, next); });
    c.causal = causal, c.alignment = Causal::bottom_right;
    constexpr double slope = 7.7;
    c[Slot::alibi_slopes] = Tensor(DType::f32, {1, 1}, std::vector<double>{slope});
    // The key before the last one counts as much as that.
    c[Slot::q].set(0, 1), c[Slot::q].set(1, 0);
    c[Slot::k].set(4094 * 2, (slope + next()) / c.scale), c[Slot::k].set(4095 * 2, 0);
    cases.push_back({&property_named("attention.oracle"), std::move(c)});
  }
  return cases;
}

/// Sums with slope·4095 are rounded to 2^-10, and those with the distance of a key that counts to 2^-21.
TEST(Explain, NamesSlopesThatMultiplyPlaces) {
  Tampered column = asked_otherwise([](Case&) {}, "builtin:flash");
  column.manifest().arithmetic.usual.at(DType::f32).slopes = SlopeForm::distance;
  column.manifest().lse = false;
  const std::vector<BeyondBound> cases = far_rows(Causal::bottom_right);
  for (const BeyondBound& one : cases)
    ASSERT_EQ(check_case(*one.property, column, one.value).violation, Violation::bound);
  const std::vector<Explanation> found = explain(column, cases);
  const auto named = std::ranges::find(found, R"({"alibi":{"form":"column"}})", &Explanation::variants);
  ASSERT_NE(named, found.end()) << all_of_them(found);
  EXPECT_EQ(named->declaration, "{}");
  EXPECT_FALSE(named->one_place);
}

/// Slopes in bf16 look as scores in a narrower format do; without slopes no score is off.
TEST(Explain, SaysNothingOfScoresWhereSlopesAreWrong) {
  OtherSlopes wrong(another_slope([](const Tensor& slopes, const Case&, std::int64_t entry, std::int64_t h) {
    return round_to(DType::bf16, slopes.at(entry, h));
  }));
  const std::vector<BeyondBound> cases = far_rows(Causal::none);
  for (const BeyondBound& one : cases)
    ASSERT_EQ(check_case(*one.property, wrong, one.value).violation, Violation::bound);
  EXPECT_TRUE(explain(wrong, cases).empty());
}

/// Keys in bf16 that one factor multiplies, which is no power of 2.
std::vector<BeyondBound> multiplied_keys() {
  std::vector<BeyondBound> cases;
  for (std::uint32_t state : {1U, 2U, 3U}) {
    const auto next = [&] {
      state = state * 1664525U + 1013904223U;
      return static_cast<double>(state >> 8U) * 0x1p-23 - 1;
    };
    Case c = test::attention_of({.queries = 64, .keys = 16, .dk = 8, .dv = 2},
                                [&](Slot, const Shape& shape) { return test::filled(DType::bf16, shape, next); });
    c[Slot::k_descale] = test::filled(DType::f32, {1, 1, 1}, [&] { return 13.7 + next(); });
    cases.push_back({&property_named("attention.oracle"), std::move(c)});
  }
  return cases;
}

TEST(Explain, NamesKeysThatAreRoundedOnceTheirFactorsHaveMultipliedThem) {
  Tampered inputs = asked_otherwise([](Case& c) {
    if (!c[Slot::k_descale].present()) return;
    c[Slot::k] = mapped(c.k(), [of = dequantised(c, Slot::k)](std::int64_t e, double) { return of[e]; });
    c[Slot::k_descale] = Tensor();
  });
  inputs.manifest().arithmetic.usual.at(DType::bf16).descale = DescalePlace::sums;
  inputs.manifest().lse = false;
  const std::vector<BeyondBound> cases = multiplied_keys();
  for (const BeyondBound& one : cases)
    ASSERT_EQ(check_case(*one.property, inputs, one.value).violation, Violation::bound);
  const std::vector<Explanation> found = explain(inputs, cases);
  const auto named = std::ranges::find(found, R"({"descale":{"applied":"inputs"}})", &Explanation::variants);
  ASSERT_NE(named, found.end()) << all_of_them(found);
  EXPECT_EQ(named->declaration, "{}");
}

/// A factor is taken for a power of two, and those that are some are right.
TEST(Explain, SaysNothingOfScoresWhereFactorsAreWrong) {
  Tampered wrong = asked_otherwise([](Case& c) {
    if (c[Slot::k_descale].present())
      c[Slot::k_descale].set(0, std::exp2(std::round(std::log2(c[Slot::k_descale][0]))));
  });
  wrong.manifest().lse = false;
  const std::vector<BeyondBound> cases = multiplied_keys();
  for (const BeyondBound& one : cases)
    ASSERT_EQ(check_case(*one.property, wrong, one.value).violation, Violation::bound);
  EXPECT_TRUE(explain(wrong, cases).empty());
}

/// One query, `keys` keys of equal scores, and one value throughout.
Case constant(DType dtype, std::int64_t keys, double value) {
  const auto count = static_cast<std::size_t>(keys);
  return test::one_query(dtype, {0}, std::vector<double>(count), std::vector<double>(count, value));
}

/// What explains gradients of a kernel whose backward pass is declared otherwise.
std::vector<Explanation> told_of_gradients(std::string_view id, std::string_view property, DType dtype,
                                           const std::function<void(BackwardArithmetic&)>& declare) {
  Tampered other = asked_otherwise([](Case&) {}, id);
  declare(other.manifest().arithmetic.backward.at(dtype));
  const std::vector<BeyondBound> cases = violations(other, dtype, 4, 30000, property);
  EXPECT_GE(cases.size(), 2U) << id;
  return cases.empty() ? std::vector<Explanation>() : explain(other, cases);
}

TEST(Explain, NamesSumsOfGradientsInTheDtype) {
  const auto as_it_is = [](BackwardArithmetic&) {};
  for (const auto& [id, property] : {std::pair("fault:dk-sums-in-the-dtype", "backward.oracle-dk"),
                                     std::pair("fault:dq-in-the-dtype-between-tiles", "backward.oracle-dq")}) {
    const std::vector<Explanation> found = told_of_gradients(id, property, DType::f16, as_it_is);
    EXPECT_TRUE(names(found, {{"backward", {{"accumulate", "f16"}}}})) << id << all_of_them(found);
    for (const Explanation& one : found) {
      if (names({one}, {{"backward", {{"accumulate", "f16"}}}})) {
        EXPECT_EQ(one.coarser, 0x1p13);
      }
    }
  }
}

TEST(Explain, NamesWhatABackwardPassStores) {
  struct Row {
    const char *kernel, *property;
    std::function<void(BackwardArithmetic&)> declare;
    nlohmann::json change;
  };
  const DType wide = DType::f32;
  const Row rows[] = {
      {"builtin:flash",
       "backward.oracle-dv",
       [&](BackwardArithmetic& a) { a.weights = wide; },
       {{"stored", {{"weights", "f16"}, {"dp", "f32"}, {"ds", "f16"}}}}},
      {"builtin:flash",
       "backward.oracle-dk",
       [&](BackwardArithmetic& a) { a.of_scores = wide; },
       {{"stored", {{"weights", "f16"}, {"dp", "f32"}, {"ds", "f16"}}}}},
      {"builtin:lazy",
       "backward.oracle-dk",
       [](BackwardArithmetic& a) { a.scale_before_rounding = false; },
       {{"scale_before_rounding", true}}},
  };
  for (const auto& [kernel, property, declare, change] : rows) {
    const std::vector<Explanation> found = told_of_gradients(kernel, property, DType::f16, declare);
    EXPECT_TRUE(names(found, {{"backward", change}})) << kernel << property << change << ": " << all_of_them(found);
  }
}

TEST(Explain, DoesNotExcuseAMistakeInABackwardPass) {
  for (const auto& [id, property] : {std::pair("fault:dq-not-scaled", "backward.oracle-dq"),
                                     std::pair("fault:dk-scaled-twice", "backward.oracle-dk"),
                                     std::pair("fault:dk-dv-without-the-last-query", "backward.oracle-dv")}) {
    const std::vector<Explanation> found = told_of_gradients(id, property, DType::f32, [](BackwardArithmetic&) {});
    EXPECT_TRUE(found.empty()) << id << all_of_them(found);
  }
}

TEST(Explain, NeedsMoreThanBoundsThatSayNothing) {
  // Scores of 2^40 and a few: in f32 they may be in any order, so that any answer would do.
  Tampered wrong = answered_otherwise([](Reply& reply) { reply.out.set(0, 0.75); });
  wrong.manifest().lse = false;
  const Property& property = *properties_matching("attention.oracle").at(0);
  std::vector<BeyondBound> cases;
  for (const double lead : {2.0, 3.0, 4.0}) {
    cases.push_back({&property, test::one_query(DType::f64, {0x1p36, 1}, {16, 0, 16, lead, 16, 1}, {1, -1, 0.5})});
    ASSERT_EQ(check_case(property, wrong, cases.back().value).violation, Violation::bound);
  }
  const std::vector<Explanation> found = explain(wrong, cases);
  EXPECT_TRUE(found.empty()) << all_of_them(found);
}

TEST(Explain, IsRefutedByOneCase) {
  Tampered other = answered_otherwise(
      [](Reply& reply) {
        if (reply.out.elements() == 1 && reply.out[0] == 0.8125) reply.out.set(0, -0.8125);
      },
      "control:bf16-weights");
  Arithmetic& declared = other.manifest().arithmetic.usual.at(DType::f32);
  declared.weights = DType::f32;
  declared.weights_in_denominator = false;
  std::vector<BeyondBound> cases = violations(other, DType::f32, 6);
  ASSERT_GE(cases.size(), 4U);
  ASSERT_FALSE(explain(other, cases).empty());
  cases.push_back({cases.front().property, constant(DType::f32, 1, 0.8125)});
  EXPECT_TRUE(explain(other, cases).empty());
}

TEST(Explain, SaysNothingOfCasesThatHold) {
  const auto kernel = registered("builtin:flash");
  const Property& property = *properties_matching("attention.oracle").at(0);
  const BeyondBound holds[] = {{&property, generate(property, DType::f32, 1, 0)}};
  EXPECT_TRUE(explain(*kernel, holds).empty());
}

}  // namespace
}  // namespace attest
