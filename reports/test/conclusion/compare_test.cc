// Two runs held against each other: what must be called worse, and what is noise.
#include "reports/conclusion/compare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <random>

#include "core/support/errors.h"
#include "core/support/infinity.h"
#include "reports/conclusion/noise.h"
#include "reports/page/print.h"
#include "reports/sections/sections.h"

namespace attest {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

void count(SubjectFigures& figures, double utilisation) {
  const int bin = utilisation > 0 ? static_cast<int>(std::ceil(4 * std::log2(utilisation))) + 55 : 0;
  ++figures.histogram.at(static_cast<std::size_t>(std::clamp(bin, 0, 63)));
  ++figures.judged, ++figures.cases;
  figures.worst_utilisation = std::max(figures.worst_utilisation, utilisation);
}

/// `cases` utilisations like those of a kernel: products of a scale and the size of a normal number.
SubjectFigures drawn(std::uint64_t seed, int cases, double scale) {
  std::mt19937_64 engine(seed);
  std::normal_distribution<double> normal;
  SubjectFigures figures{.subject = {"attention.oracle", "mine", "f32"}, .verdict = Outcome::held};
  for (int i = 0; i < cases; ++i) count(figures, std::min(scale * std::abs(normal(engine)), 1.0));
  return figures;
}

Figures run_of(std::vector<SubjectFigures> subjects) {
  Figures figures;
  figures.kernels.push_back({.id = "mine",
                             .name = "mine",
                             .dtype = "f32",
                             .arithmetic = "{\"accumulate\":\"f32\"}",
                             .claims = {"batch-invariant", "deterministic"},
                             .drawn = {{"mask:none", 500}},
                             .shapes = {}});
  figures.subjects = std::move(subjects);
  return figures;
}

TEST(Chance, IsOneWithoutGrowthAndBoundsTheHypergeometricTail) {
  EXPECT_EQ(chance_of_growth(10, 100, 10, 100), 1);
  EXPECT_EQ(chance_of_growth(10, 100, 5, 100), 1);
  EXPECT_EQ(chance_of_growth(0, 100, 0, 100), 1);
  EXPECT_EQ(chance_of_growth(0, 0, 5, 100), 1);
  // All of n above the mark are of the second run, of equal size: the chance is below 2^-n, and near it for large runs.
  EXPECT_NEAR(chance_of_growth(0, 1'000'000, 20, 1'000'000), 0x1p-20, 1e-12);
  // Held against the exact tail, by every share of 60 marks among 40 and 20 cases ... of small runs.
  for (int before = 5; before <= 25; before += 5) {
    for (int now = 5; now <= 25; now += 5) {
      for (int all = 1; all <= before + now; all += 3) {
        double tail = 0;
        for (int above = std::min(all, now); above >= std::max(0, all - before); --above) {
          const auto choose = [](int n, int k) {
            return std::exp(std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1));
          };
          tail += choose(now, above) * choose(before, all - above) / choose(before + now, all);
          ASSERT_LE(tail, chance_of_growth(all - above, before, above, now) * (1 + 1e-9))
              << before << " " << now << " " << all << " " << above;
        }
      }
    }
  }
}

TEST(Noise, RunsOfOneKernelNeverDiffer) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const SubjectFigures before = drawn(2 * seed, 800, 0.05), now = drawn(2 * seed + 1, 800, 0.05);
    ASSERT_EQ(grown_beyond(before, now), -1) << seed;
    ASSERT_LE(now.worst_utilisation, worst_expected(before, now.judged)) << seed;
  }
}

TEST(Noise, GrowthByHalfIsSeenAndByATenthIsNone) {
  const SubjectFigures before = drawn(1, 8000, 0.05);
  EXPECT_GE(grown_beyond(before, drawn(2, 8000, 0.075)), 0);
  EXPECT_EQ(grown_beyond(before, drawn(2, 8000, 0.055)), -1);
  EXPECT_EQ(grown_beyond(drawn(2, 8000, 0.075), before), -1);
  // A tenth stays none however many cases show it.
  EXPECT_EQ(grown_beyond(drawn(3, 400'000, 0.05), drawn(4, 400'000, 0.055)), -1);
}

TEST(Noise, AWorstCaseFarFromAllOthersIsSeen) {
  SubjectFigures before = drawn(1, 8000, 0.01), now = drawn(2, 8000, 0.01);
  EXPECT_LT(worst_expected(before, now.judged), 0.3);
  count(now, 0.9);
  EXPECT_GT(now.worst_utilisation, worst_expected(before, now.judged));
  // Where almost all is exact, or something was violated, a single case says nothing.
  SubjectFigures few{.subject = before.subject};
  for (int i = 0; i < 8000; ++i) count(few, i < 19 ? 0.1 : 0);
  EXPECT_EQ(worst_expected(few, 8000), infinity);
  count(before, 1.5);
  EXPECT_EQ(worst_expected(before, now.judged), infinity);
}

TEST(Compare, EqualRunsDoNotDiffer) {
  const Figures run = run_of({drawn(1, 500, 0.05)});
  const Comparison same = compare(run, run);
  EXPECT_THAT(same.differences, IsEmpty());
  EXPECT_EQ(same.subjects, 1);
}

/// What is said of the second run, where the first is a whole one.
std::string said(const Figures& now, const Figures& before = run_of({drawn(1, 500, 0.05)})) {
  return changes_text(compare(before, now));
}

TEST(Compare, WhatIsMissingIsWorse) {
  EXPECT_EQ(said({}), "WORSE mine in f32: is not part of this run any more\n");
  EXPECT_EQ(said(run_of({})), "WORSE attention.oracle by mine in f32: is not checked any more\n");
  Figures now = run_of({drawn(1, 400, 0.05)});
  EXPECT_THAT(said(now), HasSubstr("WORSE mine in f32: 1 properties had fewer cases than in the baseline, as "
                                   "attention.oracle: 400 instead of 500"));
  now = run_of({drawn(1, 400, 0.05)});
  now.subjects[0].cases = 500;
  EXPECT_THAT(said(now), HasSubstr("WORSE attention.oracle by mine in f32: 400 of 500 cases were judged"));
  now.subjects[0] = drawn(1, 493, 0.05), now.subjects[0].cases = 500;
  EXPECT_THAT(said(now), HasSubstr("493 of 500 cases were judged")) << "the same cases";
  now.seed = 2;
  EXPECT_EQ(said(now), "") << "other cases";
  now = run_of({drawn(1, 500, 0.05)});
  now.kernels[0].drawn = {{"mask:padding", 500}};
  EXPECT_EQ(said(now), "WORSE mine in f32: no judged case has \"mask:none\" any more; 500 of the baseline had\n");
  now.kernels[0].drawn = {{"mask:none", 1}};
  now.kernels[0].claims = {"deterministic"};
  EXPECT_EQ(said(now), "WORSE mine in f32: does not claim to be \"batch-invariant\" any more\n");
}

TEST(Compare, AClassOfShapesThatIsJudgedNoMoreIsWorse) {
  const Extents large{.batch = 1, .heads = 2, .kv_heads = 2, .queries = 128, .keys = 200, .dk = 64, .dv = 64};
  Extents small = large;
  small.queries = small.keys = 5;
  Figures before = run_of({drawn(1, 800, 0.05)}), now = before;
  for (int i = 0; i < 20; ++i) before.kernels[0].shapes.add(large, true), before.kernels[0].shapes.add(small, true);
  EXPECT_THAT(said(now), IsEmpty()) << "shapes are not recorded";
  const auto told = [&] { return changes_text(compare(before, now)); };
  EXPECT_THAT(told(), IsEmpty()) << "not recorded any more: a run of an older version";
  now.kernels[0].shapes.add(small, true);
  EXPECT_THAT(told(),
              HasSubstr("WORSE mine in f32: no case of these shapes is judged any more, by M x N, of as many in "
                        "the baseline: M 65..128, N 129..512 (20)\n"));
  // Asked of it and not judged is gone as well.
  now.kernels[0].shapes.add(large, false);
  EXPECT_THAT(told(), HasSubstr("M 65..128, N 129..512 (20)"));
  now.kernels[0].shapes.add(large, true);
  EXPECT_THAT(told(), IsEmpty());
}

TEST(Compare, AReachThatShrinksIsWorseOnTheSameCasesAndToldOnOthers) {
  const auto reaching = [](const std::optional<Reach>& reach, int cases = 1000) {
    SubjectFigures one = drawn(1, cases, 0.1);
    one.reach = reach;
    return run_of({one});
  };
  const Reach far{320, 8192, 256, 64, 8, 2, 1};
  const auto with = [&](std::int64_t Reach::* extent, std::int64_t value) {
    Reach other = far;
    other.*extent = value;
    return other;
  };
  EXPECT_THAT(compare(reaching(far), reaching(far)).differences, IsEmpty());
  for (const auto& [name, extent] : reach_members) {
    if (far.*extent == 1) continue;
    const Comparison smaller = compare(reaching(far), reaching(with(extent, far.*extent - 1)));
    ASSERT_EQ(smaller.differences.size(), 1U) << name;
    EXPECT_EQ(smaller.differences[0].direction, Direction::worse) << name;
    EXPECT_EQ(smaller.differences[0].what, "coverage");
    EXPECT_THAT(compare(reaching(with(extent, far.*extent - 1)), reaching(far)).differences, IsEmpty()) << name;
  }
  const Figures shorter = reaching(with(&Reach::keys, 512));
  EXPECT_EQ(
      compare(reaching(far), shorter).differences.at(0).words,
      "was judged against the exact answer up to M 320, N 512, dk 256, 8 heads only; in the baseline up to M 320, "
      "N 8192, dk 256, 8 heads");
  // Other cases have other extents by chance.
  Figures other = shorter;
  other.seed = 2;
  ASSERT_EQ(compare(reaching(far), other).differences.size(), 1U);
  EXPECT_EQ(compare(reaching(far), other).differences[0].direction, Direction::neither);
  other = reaching(with(&Reach::keys, 4096));
  other.seed = 2;
  EXPECT_THAT(compare(reaching(far), other).differences, IsEmpty());
  // Of runs from before it was kept nothing is known.
  EXPECT_THAT(compare(reaching(std::nullopt), reaching(far)).differences, IsEmpty());
  EXPECT_THAT(compare(reaching(far), reaching(std::nullopt)).differences, IsEmpty());
}

TEST(Compare, VerdictsBecomeWorseAwayFromHeld) {
  const std::array order{Outcome::held, Outcome::skipped, Outcome::inconclusive, Outcome::violated};
  for (std::size_t i = 0; i < order.size(); ++i) {
    for (std::size_t j = 0; j < order.size(); ++j) {
      Figures before = run_of({drawn(1, 500, 0.05)}), now = before;
      before.subjects[0].verdict = order[i], now.subjects[0].verdict = order[j];
      const Comparison result = compare(before, now);
      EXPECT_EQ(result.count(Direction::worse), i < j ? 1 : 0);
      EXPECT_EQ(result.count(Direction::better), i > j ? 1 : 0);
    }
  }
}

TEST(Compare, ErrorsAndTheWorstCaseAreToldInWords) {
  EXPECT_THAT(said(run_of({drawn(2, 500, 0.5)})),
              HasSubstr("WORSE attention.oracle by mine in f32: errors grew by more than 19 %: "));
  EXPECT_THAT(said(run_of({drawn(2, 500, 0.005)})),
              HasSubstr("BETTER attention.oracle by mine in f32: errors shrank by more than 19 %: "));
  SubjectFigures far = drawn(2, 499, 0.05);
  count(far, 0.99);
  EXPECT_THAT(said(run_of({far})), HasSubstr("WORSE attention.oracle by mine in f32: worst utilisation 0.99, in the "
                                             "baseline 0."));
}

TEST(Compare, AViolationIsToldOnce) {
  Figures now = run_of({drawn(2, 500, 0.9)});
  count(now.subjects[0], 8);
  now.subjects[0].verdict = Outcome::violated;
  EXPECT_EQ(said(now), "WORSE attention.oracle by mine in f32: was held and is violated\n");
}

TEST(Compare, UnderAnotherArithmeticErrorsAreComparedAndNotUtilisations) {
  Figures before = run_of({drawn(1, 500, 0.5)}), now = run_of({drawn(1, 500, 0.005)});
  before.subjects[0].octaves[3] = {code_of(4.0), code_of(10.0)};
  now.subjects[0].octaves[3] = {code_of(7.9), code_of(1000.0)};
  now.kernels[0].arithmetic = "{\"accumulate\":\"f16\"}";
  EXPECT_THAT(said(now, before), HasSubstr("NOTE mine in f32: declares another arithmetic"));
  EXPECT_EQ(compare(before, now).differences.size(), 1U);
  now.subjects[0].octaves[3].error = code_of(8.5);
  EXPECT_THAT(said(now, before), HasSubstr("with 8 to 15 keys errors reach 8.5 u sum |weight v|, in the baseline 4"));
}

TEST(Compare, FindsAKernelUnderAnotherPathByItsName) {
  const Figures before = run_of({drawn(1, 500, 0.05)});
  Figures now = before;
  now.kernels[0].id = "/elsewhere/mine", now.subjects[0].subject.kernel = "/elsewhere/mine";
  EXPECT_THAT(compare(before, now).differences, IsEmpty());
  now.kernels[0].dtype = "f16", now.subjects[0].subject.dtype = "f16";
  EXPECT_EQ(said(now),
            "WORSE mine in f32: is not part of this run any more\nNOTE mine in f16: is not part of the baseline\n");
}

TEST(Compare, HoldsEachKernelAgainstItself) {
  Figures before = run_of({drawn(1, 500, 0.05), drawn(1, 500, 0.5)});
  before.kernels.push_back(before.kernels[0]);
  before.kernels[1].id = "other", before.subjects[1].subject.kernel = "other";
  Figures now = before;
  std::swap(now.kernels[0], now.kernels[1]);
  EXPECT_THAT(compare(before, now).differences, IsEmpty()) << "of one name, but each has its id";
  // Without ids there is no telling which of two kernels of one name it is.
  now.kernels[0].id = "a", now.kernels[1].id = "b";
  EXPECT_EQ(compare(before, now).count(Direction::worse), 2);
}

TEST(Compare, OfCampaignsOnlyTheWorstCase) {
  Figures before = run_of({drawn(1, 500, 0.05)}), now = run_of({drawn(1, 100, 0.5)});
  before.bred = now.bred = true;
  before.subjects[0].worst_utilisation = 0.4, now.subjects[0].worst_utilisation = 0.49;
  EXPECT_EQ(said(now, before), "");
  now.subjects[0].worst_utilisation = 0.6;
  EXPECT_EQ(said(now, before),
            "WORSE attention.oracle by mine in f32: worst known utilisation 0.6, in the baseline 0.4\n");
}

TEST(Compare, RefusesWhatCannotBeCompared) {
  const Figures run = run_of({drawn(1, 500, 0.05)});
  Figures other = run;
  other.bred = true;
  EXPECT_THROW((void)compare(run, other), UsageError);
  other = run, other.against = "builtin:flash";
  EXPECT_THROW((void)compare(run, other), UsageError);
  EXPECT_THROW((void)compare({}, run), UsageError) << "a baseline of nothing guards nothing";
}

TEST(Compare, ManyChangesAreCut) {
  Figures before = run_of({}), now = run_of({});
  for (int i = 0; i < 30; ++i) {
    SubjectFigures one = drawn(1, 50, 0.05);
    one.subject.property = "p" + std::to_string(i);
    before.subjects.push_back(one);
  }
  const std::string text = changes_text(compare(before, now));
  EXPECT_EQ(std::ranges::count(text, '\n'), 21);
  EXPECT_THAT(text, HasSubstr("WORSE and 10 more\n"));
  EXPECT_THAT(changes_json(compare(before, now)), HasSubstr("\"worse\":30,\"better\":0,\"subjects\":0"));
}

TEST(Compare, PageEscapesWhatKernelsSay) {
  Figures before = run_of({drawn(1, 500, 0.05)}), now = run_of({drawn(1, 500, 0.5)});
  before.kernels[0].name = now.kernels[0].name = "<b>x";
  Comparison comparison = compare(before, now);
  comparison.baseline = "a&b.json";
  const std::string html = html_of(changes_page({{}, {}, "", conclude({}, {.changes = comparison})}));
  EXPECT_EQ(html.find("<b>x"), std::string::npos);
  EXPECT_THAT(html, HasSubstr("Against <code>a&amp;b.json</code>: 2 worse, 0 better, of 1 properties"));
  EXPECT_THAT(html, HasSubstr("<tr data-kernel=\"&lt;b&gt;x f32\" data-property=\"attention.oracle\">"));
  EXPECT_THAT(html, HasSubstr("<table class=\"sortable\">"));
}

TEST(Compare, TheBandOfNoiseIsThatOfTheComparison) {
  Figures before = run_of({drawn(1, 500, 0.05)}), now = run_of({drawn(1, 500, 0.5)});
  const std::string noise =
      " between two runs of one kernel: errors count as grown only by a factor of 1.19 or more, where chance does that "
      "in less than 1 of 100000000 comparisons; a worst case only beyond what chance exceeds in 1 of 100000";
  EXPECT_EQ(in_words(compare(before, before)).noise, "Nothing lies beyond the noise" + noise + ".");
  EXPECT_EQ(in_words(compare(before, now)).noise, "The noise" + noise + ".");
  now.kernels[0].arithmetic = "another";
  EXPECT_EQ(in_words(compare(before, now)).noise,
            "The noise" + noise + "; where another arithmetic is declared, errors only by more than a factor of 2.");
  before.bred = now.bred = true;
  EXPECT_THAT(in_words(compare(before, now)).noise, HasSubstr("by more than a factor of 1.25."));
}

}  // namespace
}  // namespace attest
