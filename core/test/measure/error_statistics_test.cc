// Error statistics: their arithmetic, their merging, their way through a journal, and what is measured of a case.
#include "core/measure/error_statistics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <random>
#include <vector>

#include "core/bound/error_bound.h"
#include "core/journal/journal.h"
#include "core/oracle/oracle.h"
#include "core/test/cases.h"
#include "core/test/refusal.h"

namespace attest {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
const double nan_value = std::numeric_limits<double>::quiet_NaN();

TEST(LogCode, RoundsUpByLessThanOnePartIn64AndKeepsTheOrder) {
  EXPECT_EQ(code_of(0.0), 0U);
  EXPECT_EQ(code_of(infinity), infinite_code);
  EXPECT_EQ(code_of(nan_value), infinite_code);
  EXPECT_EQ(size_of_code(infinite_code), infinity);
  // The largest finite number rounds up to infinity, the smallest subnormal to what the smallest code stands for.
  EXPECT_EQ(code_of(std::numeric_limits<double>::max()), infinite_code);
  EXPECT_EQ(code_of(0x1p-1074), 1U);
  std::mt19937_64 random(1);
  double last = 0;
  for (int i = 0; i < 100'000; ++i) {
    const double size =
        std::ldexp(1 + static_cast<double>(random() >> 11) * 0x1p-53, static_cast<int>(random() % 1600) - 1000);
    const double up = size_of_code(code_of(size));
    ASSERT_GE(up, size);
    ASSERT_LE(up, size * (1 + 0x1p-6));
    ASSERT_EQ(code_of(up), code_of(size)) << "what it stands for is the largest with that code";
    ASSERT_EQ(code_of(size) <= code_of(last), up <= size_of_code(code_of(last)));
    last = size;
  }
}

TEST(FixedSum, IsTheSameInAnyOrder) {
  std::mt19937_64 random(2);
  std::vector<double> terms{0.0, -0x1p-41, 0x1p-41, 1 - 0x1p-53, -1 + 0x1p-53, 1e9, -1e-9, 0.5};
  for (int i = 0; i < 1000; ++i)
    terms.push_back(std::ldexp(static_cast<double>(random() % 2001) - 1000, static_cast<int>(random() % 60) - 50));
  FixedSum forwards, parts;
  long double exact = 0;
  for (const double term : terms) forwards.add(term), exact += static_cast<long double>(term);
  std::shuffle(terms.begin(), terms.end(), random);
  for (std::size_t i = 0; i < terms.size(); i += 7) {
    FixedSum part;
    for (std::size_t j = i; j < std::min(i + 7, terms.size()); ++j) part.add(terms[j]);
    parts.merge(part);
  }
  EXPECT_EQ(parts, forwards);
  EXPECT_GE(forwards.fraction, 0);
  EXPECT_LT(forwards.fraction, std::int64_t{1} << 40);
  EXPECT_NEAR(forwards.value(), static_cast<double>(exact), 0x1p-40 * static_cast<double>(terms.size()));
}

TEST(UtilisationBins, EndWhereTheySay) {
  EXPECT_EQ(utilisation_bin(0), 0U);
  EXPECT_EQ(utilisation_bin(infinity), utilisation_bins - 1);
  EXPECT_EQ(utilisation_bin(nan_value), utilisation_bins - 1);
  for (std::size_t bin = 0; bin + 1 < utilisation_bins; ++bin) {
    const double edge = utilisation_edge(bin);
    EXPECT_EQ(utilisation_bin(edge), bin);
    EXPECT_EQ(utilisation_bin(std::nextafter(edge, infinity)), bin + 1);
  }
  EXPECT_EQ(utilisation_edge(0), 0x1p-14);
  EXPECT_EQ(utilisation_edge(56), 1.0) << "what is held and what is violated never share a bin";
  EXPECT_EQ(utilisation_edge(utilisation_bins - 2), 0x1.cp+1);
}

TEST(KeyClasses, AreThoseOfTheTable) {
  const auto classes = [](std::initializer_list<std::int64_t> keys) {
    std::vector<std::size_t> all;
    for (const std::int64_t n : keys) all.push_back(key_class(n));
    return all;
  };
  EXPECT_EQ(classes({0, 1, 2, 16, 17, 64, 65, 1 << 20}), (std::vector<std::size_t>{0, 0, 1, 1, 2, 2, 3, 3}));
}

TEST(Budget, AddsUpToAThousand) {
  EXPECT_EQ(budget_of({1, 1, 1, 1, 1, 1}), (Budget{167, 167, 167, 167, 166, 166}));
  EXPECT_EQ(budget_of({0, 0, 3, 0, 1, 0}), (Budget{0, 0, 750, 0, 250, 0}));
  EXPECT_EQ(budget_of({1e308, 1e308, 0, 0, 0, 0}), (Budget{500, 500})) << "though their sum overflows";
  EXPECT_EQ(budget_of({0x1p-1074, 0, 0, 0, 0, 0}), (Budget{1000}));
  EXPECT_EQ(budget_of({}), Budget{});
  EXPECT_EQ(budget_of({1, infinity, 0, 0, 0, 0}), Budget{});
  EXPECT_EQ(budget_of({1, nan_value, 0, 0, 0, 0}), Budget{});
  EXPECT_EQ(budget_of({nan_value, 1, 0, 0, 0, 0}), Budget{});
  std::mt19937_64 random(3);
  for (int i = 0; i < 20'000; ++i) {
    std::array<double, stage_count> parts{};
    for (double& part : parts) part = std::ldexp(static_cast<double>(random() >> 11), static_cast<int>(random() % 30));
    int sum = 0;
    for (const std::uint16_t share : budget_of(parts)) sum += share;
    ASSERT_EQ(sum, 1000);
  }
}

TEST(Ranges, AreOctaves) {
  EXPECT_EQ(range_octave(0), first_range);
  EXPECT_EQ(range_octave(1e-30), first_range);
  EXPECT_EQ(range_octave(1), 0);
  EXPECT_EQ(range_octave(87.3), 6);
  EXPECT_EQ(range_octave(1e30), last_range);
  EXPECT_EQ(range_octave(infinity), last_range);
}

TEST(Ordinary, AreInputsOfMostTests) {
  const std::string rest = " mask:causal causal:none scale:inverse-root shape:small";
  EXPECT_TRUE(is_ordinary("scores:gaussian values:ones" + rest));
  EXPECT_TRUE(is_ordinary("scores:near-ties values:low-weight-one-hot" + rest));
  EXPECT_FALSE(is_ordinary("scores:gaussian-10 values:ones" + rest));
  EXPECT_FALSE(is_ordinary("scores:gaussian values:huge" + rest));
  EXPECT_FALSE(is_ordinary("scores:gaussian values:ones overrides:yes" + rest));
  EXPECT_FALSE(is_ordinary("scores:gaussian values:ones mask:finite-sentinel scale:inverse-root"));
  EXPECT_FALSE(is_ordinary("scores:gaussian values:ones mask:none scale:one"));
  EXPECT_TRUE(is_ordinary("scores:gaussian values:ones loss:one-hot" + rest));
  EXPECT_FALSE(is_ordinary("scores:gaussian values:ones loss:huge" + rest));
  EXPECT_FALSE(is_ordinary("scores:gaussian values:ones loss:subnormal" + rest));
  EXPECT_FALSE(is_ordinary(""));
}

/// A sample as cases of many kinds leave them.
ErrorSample sample_of(std::int64_t k) {
  std::mt19937_64 random(static_cast<std::uint64_t>(k));
  const auto any = [&](double most) { return most * static_cast<double>(random() >> 11) * 0x1p-53; };
  ErrorSample sample;
  sample.keys = 1 + static_cast<std::int64_t>(random() % 200);
  sample.mask = static_cast<MaskEffect>(random() % 4);
  sample.elements = 1 + static_cast<std::int64_t>(random() % 50);
  for (std::int64_t e = 0; e < sample.elements; ++e) {
    const double utilisation = k % 50 == 3 && e == 0 ? infinity : any(1);
    sample.worst_utilisation = std::max(sample.worst_utilisation, utilisation);
    double& of_kind = utilisation < 0.75 && e % 2 == 0 ? sample.worst_subnormal : sample.worst_normal;
    of_kind = std::max(of_kind, utilisation);
    ++sample.histogram[random() % 2][utilisation_bin(utilisation)];
  }
  sample.worst_error = any(1e-3), sample.worst_ulp = any(100), sample.condition = 1 + any(10);
  sample.scaled_error = any(3), sample.scaled_allowed = any(20);
  sample.bias = any(8) - 4, sample.squares = any(16);
  for (std::size_t i = 0; i < sample.atol.size(); ++i) sample.atol[i] = any(1e-3) / static_cast<double>(i + 1);
  sample.budget = budget_of({any(1), any(1), any(1), any(1), any(1), any(1)});
  sample.score_range = std::ldexp(any(1), static_cast<int>(random() % 40) - 10);
  return sample;
}

std::string words_of(std::int64_t k) {
  constexpr std::array<std::string_view, 3> values{"gaussian", "low-weight-one-hot", "ones"};
  return "scores:" + std::string(k % 3 == 0 ? "heavy" : "gaussian") +
         " mask:none scale:inverse-root values:" + std::string(values[static_cast<std::size_t>(k % 5 % 3)]) +
         " shape:small";
}

TEST(ErrorTable, IsTheSameForAnyOrderOfMerging) {
  ErrorTable whole, forwards, backwards;
  std::vector<ErrorTable> parts(7);
  for (std::int64_t k = 0; k < 700; ++k) {
    whole.add(k, sample_of(k), words_of(k));
    parts[static_cast<std::size_t>(k * k % 7)].add(k, sample_of(k), words_of(k));
  }
  for (const ErrorTable& part : parts) forwards.merge(part);
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) backwards.merge(*part);
  EXPECT_EQ(forwards, whole);
  EXPECT_EQ(backwards, whole);
  // Nothing is lost on the way: elements are counted by class and by sign, cases by class and by kind of scores.
  std::int64_t elements = 0, cases = 0, by_scores = 0, by_sign = 0, ordinary = 0;
  for (const auto& [keys, cell] : whole.ordinary) ordinary += cell.cases;
  std::int64_t expected_ordinary = 0;
  for (std::int64_t k = 0; k < 700; ++k) expected_ordinary += is_ordinary(words_of(k)) ? 1 : 0;
  EXPECT_EQ(ordinary, expected_ordinary);
  EXPECT_GT(ordinary, 100);
  EXPECT_GT(whole.ranges.size(), 10U);
  for (const auto& [key, cell] : whole.cells) {
    elements += cell.elements, cases += cell.cases;
    std::int64_t in_bins = 0;
    for (const std::int64_t count : cell.histogram) in_bins += count;
    EXPECT_EQ(in_bins, cell.elements);
    EXPECT_GE(cell.quantile(0.999), cell.quantile(0.5));
  }
  for (const auto& [key, worst] : whole.scores) by_scores += worst.cases;
  for (const auto& side : whole.signs)
    for (const std::int64_t count : side) by_sign += count;
  EXPECT_EQ(cases, 700);
  EXPECT_EQ(by_scores, 700);
  EXPECT_EQ(by_sign, elements);
}

TEST(ErrorCell, NamesTheSmallestKOfTheWorstAndItsCondition) {
  ErrorCell cell;
  ErrorSample sample;
  sample.elements = 1;
  sample.worst_utilisation = 0.5, sample.condition = 7, sample.budget = {1000};
  cell.add(9, sample);
  sample.condition = 3, sample.budget = {0, 1000};
  cell.add(4, sample);
  sample.worst_utilisation = 0.25, sample.condition = 100, sample.budget = {0, 0, 1000};
  cell.add(1, sample);
  EXPECT_EQ(cell.worst_k, 4);
  EXPECT_EQ(cell.budget, (Budget{0, 1000}));
  EXPECT_EQ(size_of_code(cell.condition), 3);
  EXPECT_EQ(size_of_code(cell.worst_utilisation), 0.5);
}

TEST(ErrorCell, KeepsTheCaseOfTheWorstErrorBesideThatOfTheWorstUtilisation) {
  const auto sample = [](double error, double utilisation) {
    ErrorSample one;
    one.elements = 1, one.worst_error = error, one.worst_utilisation = utilisation;
    return one;
  };
  ErrorCell first, second, unknown;
  first.add(5, sample(1, 0.75));
  first.add(9, sample(3, 0.5));
  second.add(4, sample(3, 0.25));
  second.add(1, sample(2, 0.125));
  ErrorCell both = first, other_way = second;
  both.merge(second), other_way.merge(first);
  EXPECT_EQ(both, other_way);
  EXPECT_EQ(both.worst_k, 5);
  EXPECT_EQ(both.error_k, 4) << "the first of the two that attain it";
  // A journal of before knows none: what is known of the same error stays, of a larger one there is nothing to name.
  unknown.add(0, sample(3, 0));
  unknown.error_k = -1;
  both.merge(unknown), unknown.merge(other_way);
  EXPECT_EQ(both.error_k, 4);
  EXPECT_EQ(unknown.error_k, 4);
  ErrorCell larger;
  larger.add(0, sample(4, 0));
  larger.error_k = -1;
  both.merge(larger);
  EXPECT_EQ(both.error_k, -1);
  ErrorCell none;
  none.add(7, sample(0, 0));
  EXPECT_EQ(none.error_k, 7);
}

TEST(ErrorCell, BoundsQuantilesFromAbove) {
  ErrorSample sample;
  sample.elements = 1000;
  for (int i = 1; i <= 1000; ++i) ++sample.histogram[0][utilisation_bin(i / 1000.0)];
  sample.worst_utilisation = 1;
  ErrorCell cell;
  cell.add(0, sample);
  EXPECT_GE(cell.quantile(0.999), 0.999);
  EXPECT_GE(cell.quantile(0.3), 0.3);
  EXPECT_LE(cell.quantile(0.3), 0.3 * 1.25);
  EXPECT_EQ(cell.quantile(1.0), 1.0);
  EXPECT_EQ(ErrorCell().quantile(0.5), 0.0);
}

Journal journal_of(std::int64_t first, std::int64_t last, const Shard& shard = {}) {
  Journal journal;
  journal.run = RunRecord{};
  BatchRecord batch{{"attention.oracle", "builtin:flash", "f32"}, first, last, shard, {}};
  for (std::int64_t k = first; k < last; ++k) {
    if (!shard.takes(k)) continue;
    Verdict verdict{.utilisation = 0.25};
    if (k % 9 != 0) verdict.errors = std::make_shared<ErrorSample>(sample_of(k));
    batch.tally.add(k, verdict, k % 4 == 0 ? std::string() : words_of(k));
  }
  journal.batches.push_back(batch);
  return journal;
}

TEST(Journal, KeepsErrorsToTheByte) {
  const Journal journal = journal_of(0, 300);
  const std::string text = to_text(journal);
  const Journal read = parse_journal(text, "text");
  EXPECT_EQ(read.batches[0].tally.errors, journal.batches[0].tally.errors);
  EXPECT_FALSE(read.batches[0].tally.errors.empty());
  EXPECT_EQ(to_text(read), text);
}

TEST(Journal, OfBeforeDoesNotTellSubnormalRoundingApart) {
  std::string text = to_text(journal_of(0, 50));
  const std::size_t begin = text.find(",\"apart\":\"");
  ASSERT_NE(begin, std::string::npos);
  text.erase(begin, text.find('"', begin + 11) + 1 - begin);
  const Journal read = parse_journal(stamped(text), "text");
  for (const auto& [key, cell] : read.batches[0].tally.errors.cells) {
    EXPECT_EQ(cell.worst_normal, cell.worst_utilisation);
    EXPECT_EQ(cell.worst_subnormal, 0U);
  }
}

TEST(Journal, JoinsErrorsOfShardsAndRangesToTheSameBytes) {
  const auto canonical_text = [](const std::vector<Journal>& parts) {
    const std::vector<std::string> sources(parts.size(), "a run");
    return to_text(canonical(parts, sources));
  };
  const std::string whole = canonical_text({journal_of(0, 300)});
  EXPECT_THAT(whole, Says("\"errors\":{\"cells\":[\""));
  EXPECT_EQ(canonical_text({journal_of(100, 300), journal_of(0, 100)}), whole);
  EXPECT_EQ(canonical_text({journal_of(0, 300, {2, 3}), journal_of(0, 300, {0, 3}), journal_of(0, 300, {1, 3})}),
            whole);
}

TEST(Journal, RefusesErrorsThatWereChanged) {
  const std::string text = to_text(journal_of(1, 20));
  const std::size_t cell = text.find("\"cells\":[\"") + 10, scores = text.find("\"scores\":[\"") + 11,
                    ordinary = text.find("\"ordinary\":[\"") + 13, ranges = text.find("\"ranges\":\"") + 10,
                    octaves = text.find("\"octaves\":\"") + 11, signs = text.find("\"signs\":\"") + 9;
  const auto broken = [&](std::size_t at, std::size_t count, std::string_view by) {
    std::string changed = text;
    changed.replace(at, count, by);
    const std::string said = refusal([&] { return parse_journal(stamped(changed), "j"); });
    return said.find("j, line 2: \"errors\"") != std::string::npos;
  };
  EXPECT_TRUE(broken(cell, 1, "4")) << "there are four classes of keys";
  EXPECT_TRUE(broken(cell, 1, "x"));
  EXPECT_TRUE(broken(cell + 2, 1, "7")) << "a mask has four effects";
  EXPECT_TRUE(broken(cell, text.find('"', cell) - cell, "0 0 ones 3 4"));
  EXPECT_TRUE(broken(cell, 0, "0 0 ones 0 4 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 \",\""));
  EXPECT_TRUE(broken(scores, 1, "9"));
  EXPECT_TRUE(broken(scores, 0, "0 heavy 3 4 5\",\""));
  EXPECT_TRUE(broken(octaves, 0, "63 1 1 "));
  EXPECT_TRUE(broken(ranges, 0, "25 1 1 ")) << "beyond the last octave";
  EXPECT_TRUE(broken(ranges, 0, "-9 1 1 "));
  EXPECT_TRUE(broken(ordinary, 1, "4"));
  EXPECT_TRUE(broken(octaves, 0, "3 131009 1 ")) << "beyond the code of infinity";
  EXPECT_TRUE(broken(signs, 0, "65 1 1 "));
  EXPECT_TRUE(broken(signs, 0, "1 -1 1 "));
  const std::size_t error_k = text.find("\"error_k\":\"") + 11;
  EXPECT_TRUE(broken(error_k, 0, "-2 ")) << "-1 is the least: not known";
  EXPECT_TRUE(broken(error_k, 0, "1 ")) << "more than there are lines";
  EXPECT_TRUE(broken(error_k, text.find('"', error_k) - error_k, "1"));
  const std::size_t apart = text.find("\"apart\":\"") + 9;
  EXPECT_TRUE(broken(apart, 0, "1 ")) << "more than two a line";
  EXPECT_TRUE(broken(apart, text.find('"', apart) - apart, "1"));
  EXPECT_TRUE(broken(apart, 0, "-1 0 "));
  EXPECT_FALSE(broken(text.size() - 1, 1, "\n")) << "what was not changed is read";
}

/// What the statistics should say, from balls and from the bounds: another way than the one under test.
struct Expected {
  double worst_error = 0, worst_utilisation = 0, bias = 0, squares = 0;
  std::int64_t elements = 0, too_small = 0;
};

Case small_case() {
  std::uint64_t seed = 0;
  Case c = test::attention_of(
      {.batch = 2, .heads = 2, .queries = 3, .keys = 5, .dk = 4, .dv = 6}, [&](Slot, const Shape& shape) {
        std::mt19937_64 random(++seed);
        return test::filled(DType::f32, shape, [&] { return (static_cast<double>(random() % 4001) - 2000) / 512; });
      });
  c.scale = 0.5;
  return c;
}

/// The exact answer moved by `shift` of what is allowed, and rounded.
Tensor answer_of(const Case& c, const Arithmetic& a, double shift) {
  const std::vector<ElementFacts> facts = exact_elements(c, a);
  Tensor out(DType::f32, c.out_shape());
  for (std::int64_t e = 0; e < out.elements(); ++e) {
    const ElementFacts& f = facts[static_cast<std::size_t>(e)];
    out.set(e, f.exact.lower + shift * (e % 3 == 0 ? 0.5 : 1) * f.allowed);
  }
  return out;
}

Expected expected_of(const Case& c, const Arithmetic& a, const Tensor& out) {
  Expected expected;
  const std::vector<ElementFacts> facts = exact_elements(c, a);
  for (std::int64_t e = 0; e < out.elements(); ++e) {
    const ElementFacts& f = facts[static_cast<std::size_t>(e)];
    const double difference = out[e] - f.exact.lower, share = difference / f.allowed;
    ++expected.elements;
    expected.worst_error = std::max(expected.worst_error, std::abs(difference));
    expected.worst_utilisation = std::max(expected.worst_utilisation, std::abs(share));
    expected.bias += share, expected.squares += share * share;
    if (share < 0) ++expected.too_small;
  }
  return expected;
}

TEST(JudgeAttention, MeasuresErrorsAsBallsDo) {
  const Case c = small_case();
  const Arithmetic a = universal_arithmetic(DType::f32, DType::f32);
  const std::vector<ElementFacts> facts = exact_elements(c, a);
  for (const double shift : {0.4, -0.4, 0.0}) {
    const Tensor out = answer_of(c, a, shift);
    const Verdict verdict = judge_attention(c, out, {}, a, {.measure_errors = true});
    ASSERT_EQ(verdict.outcome, Outcome::held);
    ASSERT_NE(verdict.errors, nullptr);
    const ErrorSample& s = *verdict.errors;
    const Expected expected = expected_of(c, a, out);
    EXPECT_EQ(s.elements, expected.elements);
    EXPECT_EQ(s.keys, 5);
    EXPECT_EQ(s.mask, MaskEffect::none);
    // An enclosure may be as wide as 2^-8 of what is allowed.
    EXPECT_NEAR(s.worst_utilisation, expected.worst_utilisation, 0x1p-7);
    EXPECT_EQ(s.worst_utilisation, verdict.utilisation);
    EXPECT_GE(s.worst_error, expected.worst_error);
    EXPECT_NEAR(s.bias, expected.bias, 0x1p-7 * static_cast<double>(s.elements));
    EXPECT_NEAR(s.squares, expected.squares, 0x1p-6 * static_cast<double>(s.elements));
    std::int64_t too_small = 0, all = 0;
    for (const std::uint32_t count : s.histogram[1]) too_small += count, all += count;
    for (const std::uint32_t count : s.histogram[0]) all += count;
    EXPECT_EQ(all, s.elements);
    if (shift != 0) {
      EXPECT_EQ(too_small, expected.too_small);
      EXPECT_EQ(s.bias > 0, shift > 0);
    }
    EXPECT_GE(s.condition, 1);
    int budget = 0;
    for (const std::uint16_t share : s.budget) budget += share;
    EXPECT_EQ(budget, 1000);
    EXPECT_GT(s.score_range, 0);
    // No pair of tolerances rejects an element, and a smaller absolute one would.
    for (std::size_t i = 0; i < relative_steps.size(); ++i) {
      const double rtol = relative_steps[i] * 0x1p-24;
      double least = 0;
      for (std::int64_t e = 0; e < out.elements(); ++e) {
        const double exact = facts[static_cast<std::size_t>(e)].exact.upper;
        least = std::max(least, std::abs(out[e] - exact) - rtol * std::abs(exact));
      }
      EXPECT_GE(s.atol[i], least * (1 - 1e-12));
      EXPECT_LE(s.atol[i], least + 0x1p-8 * verdict.allowed + 1e-12);
    }
  }
}

TEST(JudgeAttention, MeasuresUnitsInTheLastPlaceOfTheExactValue) {
  // One key: the answer is its value.
  const auto ulps = [](double value, double found) {
    const Case c = test::one_query(DType::f32, {1}, {1}, {value});
    Tensor out(DType::f32, c.out_shape());
    out.set(0, found);
    const Verdict verdict =
        judge_attention(c, out, {}, universal_arithmetic(DType::f32, DType::f32), {.measure_errors = true});
    return verdict.errors ? verdict.errors->worst_ulp : -1;
  };
  EXPECT_NEAR(ulps(1, 1 + 0x1p-23), 1, 1e-6);
  EXPECT_NEAR(ulps(1, 1 - 0x1p-24), 0.5, 1e-6);
  EXPECT_NEAR(ulps(1.75, 1.75 + 0x1p-22), 2, 1e-6);
  EXPECT_NEAR(ulps(-1024, -1024 - 0x1p-13), 1, 1e-6);
  EXPECT_NEAR(ulps(0x1p-130, 0x1p-130 + 0x1p-149), 1, 1e-3) << "subnormals are 2^-149 apart";
  EXPECT_EQ(ulps(1, nan_value), infinity);
}

TEST(JudgeAttention, MeasuresNothingWhereItIsNotAskedTo) {
  const Case c = small_case();
  const Arithmetic a = universal_arithmetic(DType::f32, DType::f32);
  EXPECT_EQ(judge_attention(c, answer_of(c, a, 0), {}, a).errors, nullptr);
}

TEST(JudgeAttention, TellsMasksThatHideFromMasksThatAdd) {
  const auto effect = [](const std::vector<double>& mask, Causal causal) {
    Case c = small_case();
    std::vector<double> rows;
    for (int row = 0; row < 3; ++row) rows.insert(rows.end(), mask.begin(), mask.end());
    if (!mask.empty()) c[Slot::mask] = Tensor(DType::f32, {1, 1, 3, 5}, rows);
    c.causal = causal;
    const Arithmetic a = universal_arithmetic(DType::f32, DType::f32);
    const Verdict verdict = judge_attention(c, answer_of(c, a, 0), {}, a, {.measure_errors = true});
    return verdict.errors ? std::optional(verdict.errors->mask) : std::nullopt;
  };
  EXPECT_EQ(effect({}, Causal::none), MaskEffect::none);
  EXPECT_EQ(effect({0, 0, 0, 0, 0}, Causal::none), MaskEffect::none);
  EXPECT_EQ(effect({0, 1, 0, 0, 0}, Causal::none), MaskEffect::bias);
  EXPECT_EQ(effect({0, -infinity, 0, 0, 0}, Causal::none), MaskEffect::hidden);
  EXPECT_EQ(effect({0, -infinity, 1, 0, 0}, Causal::none), MaskEffect::both);
  EXPECT_EQ(effect({}, Causal::top_left), MaskEffect::hidden);
}

/// Of one row with two keys of the same score, so that the answer lies halfway between two values of f16.
Verdict judged_mean(double a, double b, double found) {
  Case c = test::attention_of({.batch = 1, .heads = 1, .queries = 1, .keys = 2, .dk = 1, .dv = 1},
                              [](Slot, const Shape& shape) { return Tensor(DType::f16, shape); });
  c[Slot::v].set(0, a), c[Slot::v].set(1, b);
  c.scale = 1;
  Tensor out(DType::f16, c.out_shape());
  out.set(0, found);
  return judge_attention(c, out, {}, universal_arithmetic(DType::f16, DType::f16), {.measure_errors = true});
}

TEST(JudgeAttention, TellsSubnormalRoundingApart) {
  // Units of the subnormals: no format holds 8.5 of them, and a right kernel may give 8.
  constexpr double unit = 0x1p-24;
  const Verdict rounded = judged_mean(8 * unit, 9 * unit, 8 * unit);
  ASSERT_EQ(rounded.outcome, Outcome::held) << rounded.reason;
  EXPECT_GT(rounded.errors->worst_subnormal, 0.5);
  EXPECT_EQ(rounded.errors->worst_subnormal, rounded.utilisation);
  EXPECT_EQ(rounded.errors->worst_normal, 0);
  const Verdict wrong = judged_mean(8 * unit, 9 * unit, 11 * unit);
  ASSERT_EQ(wrong.outcome, Outcome::violated);
  EXPECT_EQ(wrong.errors->worst_subnormal, 0) << "what is wrong is never apart";
  EXPECT_EQ(wrong.errors->worst_normal, wrong.utilisation);
  const Verdict normal = judged_mean(1, 1 + 0x1p-10, 1);
  ASSERT_EQ(normal.outcome, Outcome::held);
  EXPECT_GT(normal.errors->worst_normal, 0.25);
  EXPECT_EQ(normal.errors->worst_subnormal, 0);
  // What cancels to next to nothing has a sum to answer for, beside which its rounding is nothing.
  const Verdict cancelled = judged_mean(1, -1, 0x1p-13);
  ASSERT_EQ(cancelled.outcome, Outcome::held);
  EXPECT_GT(cancelled.errors->worst_normal, 0);
  EXPECT_EQ(cancelled.errors->worst_subnormal, 0);
}

TEST(JudgeAttention, TakesWrongAnswersOutOfTheTolerancesAlone) {
  const Case c = small_case();
  const Arithmetic a = universal_arithmetic(DType::f32, DType::f32);
  Tensor out = answer_of(c, a, 0);
  const double right = judge_attention(c, out, {}, a, {.measure_errors = true}).errors->atol[0];
  out.set(0, out[0] + 1);
  const Verdict verdict = judge_attention(c, out, {}, a, {.measure_errors = true});
  ASSERT_EQ(verdict.outcome, Outcome::violated);
  EXPECT_GE(verdict.errors->worst_error, 1 - 1e-6);
  EXPECT_LE(verdict.errors->atol[0], right) << "a wrong answer must not widen what is suggested for right ones";
  out.set(0, nan_value);
  EXPECT_EQ(judge_attention(c, out, {}, a, {.measure_errors = true}).errors->worst_utilisation, infinity);
}

}  // namespace
}  // namespace attest
