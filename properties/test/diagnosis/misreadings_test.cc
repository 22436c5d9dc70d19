// Planted faults that are another problem in the place of the one that was asked are told so, and kernels that are
// wrong in another way are not.
#include "properties/diagnosis/misreadings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "core/problem/fields.h"
#include "core/problem/kv_cache.h"
#include "core/test/cases.h"
#include "properties/arrangement/arrange.h"
#include "properties/catalogue/property.h"
#include "properties/test/catalogue/tampered.h"

namespace attest {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

/// Of the first violated cases of a property, as they were drawn.
std::vector<std::string> misread(std::string_view name, DType dtype = DType::f32, std::size_t most = 12,
                                 std::string_view drawn_for = "attention.oracle") {
  const auto kernel = registered(name);
  const Property& property = property_named(drawn_for);
  std::vector<Case> cases;
  for (std::int64_t k = 0; k < 9000 && cases.size() < most; ++k) {
    Case c = project(generate(property, dtype, 1, k), kernel->manifest());
    if (check_case(property, *kernel, c).outcome == Outcome::violated) cases.push_back(std::move(c));
  }
  EXPECT_EQ(cases.size(), most) << name;
  return misreadings_of(*kernel, cases);
}

TEST(Misreadings, OfMasks) {
  EXPECT_THAT(misread("fault:mask-of-first-head"), ElementsAre("every head had the mask of the first"));
  EXPECT_THAT(misread("fault:mask-of-first-batch"), ElementsAre("every batch entry had the mask of the first"));
  EXPECT_THAT(misread("fault:mask-axes-exchanged"), ElementsAre("batch entries and heads of the mask were exchanged"));
  EXPECT_THAT(misread("fault:bool-mask-inverted"), ElementsAre("true hid a key"));
  EXPECT_THAT(misread("fault:bool-mask-added"), ElementsAre("the boolean mask were added to the scores"));
  EXPECT_THAT(misread("fault:mask-transposed-when-square"), ElementsAre("rows and columns of the mask were exchanged"));
  EXPECT_THAT(misread("fault:mask-of-kv-head"), ElementsAre("a head had the mask of its key-value head's number"));
  EXPECT_THAT(misread("fault:mask-misses-last-key"), Contains("the last column of the mask were not there"));
  EXPECT_THAT(misread("fault:float-mask-hides-what-is-not-zero"),
              ElementsAre("whatever is not 0 in the mask hid a key"));
  EXPECT_THAT(misread("fault:bias-sign"),
              ElementsAre("what the mask adds between -8 and 0 were added with the other sign"));
  EXPECT_THAT(misread("fault:padding-rounded-up"),
              ElementsAre("the keys that a row sees were rounded up to a multiple of 4, from the second on"));
}

TEST(Misreadings, OfSequences) {
  EXPECT_THAT(misread("fault:key-lengths-ignored"), ElementsAre("the lengths of keys were ignored"));
  EXPECT_THAT(misread("fault:key-length-of-the-first-sequence"),
              ElementsAre("every sequence had as many keys as the first"));
  EXPECT_THAT(misread("fault:key-length-of-the-queries"), ElementsAre("a sequence had as many keys as queries"));
  EXPECT_THAT(misread("fault:a-key-too-many-in-sequences"),
              ElementsAre("a sequence had a key more, the one behind its last"));
  EXPECT_THAT(misread("fault:last-key-of-sequences-lost", DType::f32, 12, "varlen.equals-separate"),
              ElementsAre("the last key of a sequence were not there"));
  EXPECT_THAT(misread("fault:keys-to-the-end-of-the-tile", DType::f32, 12, "varlen.equals-separate"),
              Contains("the last tile of 16 keys of a sequence were seen as a whole"));
  EXPECT_THAT(misread("fault:keys-by-the-starts-of-queries"), ElementsAre("packed keys began where the queries do"));
  EXPECT_THAT(misread("fault:positions-from-the-padded-end", DType::f32, 12, "varlen.alignment"),
              ElementsAre("bottom-right positions counted from the batch's last key, not the sequence's"));
  EXPECT_THAT(misread("fault:positions-of-tokens-among-all", DType::f32, 12, "varlen.alignment"),
              ElementsAre("the positions of packed tokens were those among all of them"));
}

/// What a length of keys in pages is taken for, of a table's row with so many columns.
using OtherLength = std::function<std::int64_t(std::int64_t length, std::int64_t page, std::int64_t columns)>;
std::vector<std::string> misread_pages(const OtherLength& other) {
  Tampered kernel = asked_otherwise([&](Case& c) {
    if (!c[Slot::page_table].present()) return;
    Case laid_out = laid_out_in_cache(c);
    const std::int64_t page = laid_out.k().shape()[2], columns = laid_out[Slot::page_table].shape()[1];
    laid_out[Slot::kv_lengths] = mapped(laid_out[Slot::kv_lengths], [&](std::int64_t, double length) {
      return static_cast<double>(other(static_cast<std::int64_t>(length), page, columns));
    });
    c = outside_of_caches(read_from_cache(std::move(laid_out)));
  });
  const Property& property = property_named("paged.equals-contiguous");
  std::vector<Case> cases;
  for (std::int64_t k = 0; k < 2000 && cases.size() < 12; ++k) {
    Case c = project(generate(property, DType::f32, 1, k), kernel.manifest());
    const bool plain = !has_variant(c, left_pad_variant.name) && !has_variant(c, append_variant.name);
    if (plain && check_case(property, kernel, c).outcome == Outcome::violated) cases.push_back(std::move(c));
  }
  EXPECT_EQ(cases.size(), 12);
  return misreadings_of(kernel, cases);
}

TEST(Misreadings, OfPages) {
  EXPECT_THAT(misread_pages([](std::int64_t length, std::int64_t page, std::int64_t) {
                return length % page == 0 ? length : length + 1;
              }),
              Contains("the slot behind a sequence's last key were a key of it"));
  EXPECT_THAT(misread_pages([](std::int64_t length, std::int64_t page, std::int64_t columns) {
                return std::min(length + 1, columns * page);
              }),
              Contains("the slot behind a sequence's last key were a key of it, on the next page as well"));
  EXPECT_THAT(misread_pages([](std::int64_t length, std::int64_t page, std::int64_t) {
                return (length + page - 1) / page * page;
              }),
              Contains("the last page of a sequence were read as a whole"));
  EXPECT_THAT(misread_pages([](std::int64_t length, std::int64_t page, std::int64_t) {
                return length > page ? length / page * page : length;
              }),
              Contains("a page that is not full were not there"));
}

TEST(Misreadings, OfCausalForms) {
  EXPECT_THAT(misread("fault:top-left-for-bottom-right"),
              ElementsAre("the causal form were aligned to the first keys"));
  EXPECT_THAT(misread("fault:bottom-right-for-top-left"), ElementsAre("the causal form were aligned to the last keys"));
  EXPECT_THAT(misread("fault:causal-dropped-for-one-query"), Contains("there were no causal form"));
  EXPECT_THAT(misread("fault:causal-by-blocks"),
              ElementsAre("a causal row saw its block of 4 keys to the end, from the second block on"));
  EXPECT_THAT(misread("fault:window-of-48"), ElementsAre("a row saw no keys more than 48 back"));
}

/// Each of the conventions that other libraries mean by the word.
TEST(Misreadings, OfWindows) {
  EXPECT_THAT(misread("fault:window-left-exclusive"),
              ElementsAre("the window's left end were exclusive, as where a window of W keys counts the query's own"));
  EXPECT_THAT(misread("fault:window-left-one-too-many"), ElementsAre("the window reached one key further to the left"));
  EXPECT_THAT(misread("fault:window-right-exclusive"), ElementsAre("the window's right end were exclusive"));
  EXPECT_THAT(misread("fault:window-side-becomes-length"),
              ElementsAre("an end of the window that is not there were one of N keys, and one of N or more not there"));
  EXPECT_THAT(misread("fault:window-of-zero-is-none"), ElementsAre("an end of 0 keys were no end"));
  EXPECT_THAT(misread("fault:window-without-an-end-is-zero"),
              ElementsAre("an end that is not there were one of 0 keys"));
  EXPECT_THAT(misread("fault:window-right-end-ignored"), ElementsAre("the window had no right end"));
  EXPECT_THAT(misread("fault:window-left-end-ignored-beside-causal"), Contains("the window had no left end"));
  EXPECT_THAT(misread("fault:window-made-causal", DType::f32, 30),
              ElementsAre("the window ended at the row's own position"));
  EXPECT_THAT(misread("fault:window-of-one-end-made-symmetric"),
              ElementsAre("a window of one end had the same on the other side"));
  EXPECT_THAT(misread("fault:window-opens-the-causal-form", DType::f32, 12, "window.intersects"),
              ElementsAre("the window showed as many keys behind the causal diagonal as before it"));
  EXPECT_THAT(misread("fault:window-ignored-without-mask"), ElementsAre("there were no window"));
  EXPECT_THAT(misread("fault:window-ignored-without-causal"), ElementsAre("there were no window"));
  EXPECT_THAT(misread("fault:window-and-causal-form-dropped"),
              ElementsAre("there were neither a window nor a causal form"));
  EXPECT_THAT(misread("fault:window-replaces-the-mask"), ElementsAre("the mask were not there"));
}

TEST(Misreadings, OfPositionsInWindows) {
  EXPECT_THAT(misread("fault:window-top-left-for-bottom-right"),
              ElementsAre("the window were aligned to the first keys"));
  EXPECT_THAT(misread("fault:window-bottom-right-for-top-left"),
              ElementsAre("the window were aligned to the last keys"));
  EXPECT_THAT(misread("fault:window-shift-has-the-other-sign"), ElementsAre("the window of row i stood at i + M - N"));
  EXPECT_THAT(misread("fault:window-left-end-of-first-row"),
              Contains("the windows of all rows began where that of the first does"));
  EXPECT_THAT(misread("fault:window-keeps-the-last-keys"),
              ElementsAre("only as many of the last keys were there as the window of one row holds"));
}

/// Of cases with a window that counts from the last key: other readings do not move it.
TEST(Misreadings, BesideWindows) {
  const auto beside_windows = [](std::string_view name) {
    const auto kernel = registered(name);
    const Property& property = property_named("attention.oracle");
    std::vector<Case> cases;
    for (std::int64_t k = 0; k < 250'000 && cases.size() < 8; ++k) {
      Case c = project(generate(property, DType::f32, 1, k), kernel->manifest());
      if ((c.window_left >= 0 || c.window_right >= 0) && c.alignment == Causal::bottom_right &&
          check_case(property, *kernel, c).outcome == Outcome::violated)
        cases.push_back(std::move(c));
    }
    EXPECT_EQ(cases.size(), 8U) << name;
    return misreadings_of(*kernel, cases);
  };
  EXPECT_THAT(beside_windows("fault:top-left-for-bottom-right"),
              ElementsAre("the causal form were aligned to the first keys"));
  EXPECT_THAT(beside_windows("fault:last-key-of-a-residue"), Contains("the last key were not there"));
  EXPECT_THAT(beside_windows("fault:mean-of-values"), Contains("all keys weighed the same, hidden ones too"));
}

TEST(Misreadings, OfChunks) {
  const auto of_chunks = [](std::string_view fault) { return misread(fault, DType::f32, 12, "chunk.equals-mask"); };
  EXPECT_THAT(of_chunks("fault:chunk-read-as-window"),
              Contains("a row saw its own key and the C - 1 before it, as in a window"));
  EXPECT_THAT(of_chunks("fault:chunk-boundary-one-early"),
              Contains("a row were in the chunk of the key behind its own, that of (p + 1) / C"));
  EXPECT_THAT(of_chunks("fault:chunk-boundary-one-late"),
              Contains("a row were in the chunk of the key before its own, that of (p - 1) / C"));
  EXPECT_THAT(of_chunks("fault:chunk-start-exclusive"), Contains("a row did not see the first key of its chunk"));
  EXPECT_THAT(of_chunks("fault:chunk-end-inclusive"), Contains("a row saw the first key behind its chunk, too"));
  EXPECT_THAT(of_chunks("fault:chunk-without-a-right-end"), Contains("a row saw all keys behind its chunk, too"));
  EXPECT_THAT(of_chunks("fault:chunk-made-causal"),
              Contains("a row saw nothing of its chunk behind its own key, as under a causal form"));
  EXPECT_THAT(of_chunks("fault:chunk-by-a-mask-of-bits"),
              Contains("a chunk began at p & ~(C - 1), which is right of a C that is a power of 2"));
  EXPECT_THAT(of_chunks("fault:chunk-ignored-without-mask"), Contains("there were no chunks"));
  EXPECT_THAT(of_chunks("fault:chunk-top-left-for-bottom-right"),
              Contains("positions in chunks counted from the first keys, without N - M"));
  EXPECT_THAT(of_chunks("fault:chunk-bottom-right-for-top-left"),
              Contains("positions in chunks counted from the last keys, as i + N - M"));
  const auto beside_others = [](std::string_view fault) { return misread(fault, DType::f32, 12, "chunk.intersects"); };
  EXPECT_THAT(beside_others("fault:chunk-drops-the-causal-form"), Contains("there were no causal form"));
  EXPECT_THAT(beside_others("fault:chunk-replaces-the-window"), Contains("there were no window"));
  EXPECT_THAT(beside_others("fault:chunk-replaces-the-mask"), Contains("the mask were not there"));
  EXPECT_THAT(beside_others("fault:chunk-ignored-beside-a-window"), Contains("there were no chunks"));
}

TEST(Misreadings, OfBatchEntriesColumnsAndWeights) {
  EXPECT_THAT(misread("fault:third-batch-reads-second"),
              ElementsAre("batch entry 2 (counted from 0) read the keys and values of the one before"));
  EXPECT_THAT(misread("fault:last-query-of-a-residue"), ElementsAre("the last query were the one before it"));
  EXPECT_THAT(misread("fault:last-value-column"), ElementsAre("the last column of v were the one before it"));
  EXPECT_THAT(misread("fault:value-width-of-keys"),
              ElementsAre("columns of v from dk on were read again from the first"));
  EXPECT_THAT(misread("fault:key-position-zero"), Contains("the last key were zeros"));
  EXPECT_THAT(misread("fault:all-zeros"), Contains("all values were 0"));
  EXPECT_THAT(misread("fault:uniform-weights"), ElementsAre("all visible keys weighed the same"));
  EXPECT_THAT(misread("fault:mean-of-values"), ElementsAre("all keys weighed the same, hidden ones too"));
}

/// What is no other problem of the whole case is one of each of its rows.
TEST(Misreadings, OfSingleRows) {
  EXPECT_THAT(misread("fault:hidden-is-minus-1e4"), ElementsAre("hidden keys had the score -10000, and not -inf"));
  EXPECT_THAT(misread("fault:hidden-adds-minus-1e4"),
              ElementsAre("-10000, and not -inf, were added to the scores of hidden keys"));
  EXPECT_THAT(misread("fault:output-not-rescaled"),
              ElementsAre("the output so far were not rescaled where the maximum rises, in steps of 16 keys"));
  EXPECT_THAT(misread("fault:sum-not-rescaled"),
              ElementsAre("the sum of weights so far were not rescaled where the maximum rises, in steps of 8 keys"));
  EXPECT_THAT(misread("fault:merge-ignores-sums"),
              ElementsAre("2 parts were merged by their maxima, without the sums of their weights"));
}

TEST(Misreadings, OfNumbers) {
  EXPECT_THAT(misread("fault:no-maximum"),
              ElementsAre("no maximum were subtracted from scores, and exp overflows beyond 88.7, in f32"));
  EXPECT_THAT(misread("fault:reference-stays-at-first"),
              ElementsAre("the first score, and not the maximum, were subtracted from scores, and exp overflows beyond "
                          "88.7, in f32"));
  EXPECT_THAT(misread("fault:lse-base-two"), ElementsAre("the log-sum-exp were to base 2"));
  EXPECT_THAT(misread("fault:lse-without-maximum"),
              ElementsAre("the log-sum-exp were that of scores less their maximum"));
}

/// A little beyond the bound nearly the same problem fits, too: who rounds away what the last key adds may not be said
/// to leave it out.
TEST(Misreadings, AreNotReadOutOfWhatIsALittleWrong) {
  // The last of three keys has the weight e^score / 2, and moves the answer from 1 by twice that.
  const auto cases_of = [](double score) {
    return std::vector{test::one_query(DType::f32, {1}, {0, 0, score}, {1, 1, -1}),
                       test::one_query(DType::f32, {1}, {0, 0, score - 0.125}, {1, 1, -1})};
  };
  Tampered ones = answered_otherwise(each_out([](double) { return 1.0; }));
  for (const Case& c : cases_of(-13.5)) {
    const Verdict verdict = check_case(property_named("attention.oracle"), ones, c);
    EXPECT_EQ(verdict.outcome, Outcome::violated);
    EXPECT_LT(verdict.utilisation, 4);
  }
  EXPECT_THAT(misreadings_of(ones, cases_of(-13.5)), IsEmpty());
  EXPECT_THAT(misreadings_of(ones, cases_of(-5)), Contains("the last key were not there"));
}

TEST(Misreadings, AreNotSeenInWhatIsNoOtherProblem) {
  for (const char* name : {"fault:small-growth-not-rescaled", "fault:coarse-exp", "fault:exp-clamped"})
    EXPECT_THAT(misread(name), IsEmpty()) << name;
}

TEST(Misreadings, AreNotLookedForInRightAnswers) {
  const auto kernel = registered("builtin:flash");
  std::vector<Case> cases;
  cases.reserve(20);
  for (std::int64_t k = 0; k < 20; ++k)
    cases.push_back(project(generate(property_named("attention.oracle"), DType::f32, 1, k), kernel->manifest()));
  EXPECT_THAT(misreadings_of(*kernel, cases), IsEmpty());
}

/// Numbers of both signs, another each time.
double next_number(std::uint32_t& state) {
  state = state * 1664525U + 1013904223U;
  return static_cast<double>(state >> 24U) / 128 - 1;
}

/// Of 65 columns all sizes up to 64 leave out the last, and none is more likely than the others.
TEST(Misreadings, NameAllSizesThatAreTheSameProblem) {
  std::uint32_t state = 1;
  std::vector<Case> cases;
  cases.reserve(3);
  for (int i = 0; i < 3; ++i)
    cases.push_back(test::attention_of({.queries = 2, .keys = 5, .dk = 65, .dv = 3}, [&](Slot, const Shape& shape) {
      return test::filled(DType::f32, shape, [&] { return next_number(state); });
    }));
  EXPECT_THAT(misreadings_of(*registered("fault:head-dim-in-sixty-fours"), cases),
              ElementsAre("columns of q and k behind the last whole 2, 4, 8, 16, 32 or 64 were not there",
                          "q and k had 64 columns at most"));
}

/// Where one size can be told from another by no answer, at most one can be meant, and none is said to be.
TEST(Misreadings, AreNotNamedWhereSizesAreOtherProblems) {
  // Beside a key of zeros nothing is left of weights of e^-200, be there one such key or many: 0 is right for them all.
  const auto keys_of = [](int number) {
    return test::one_query(DType::f32, {static_cast<double>(number)}, std::vector<double>(5, -200.0 / number),
                           {1, -1, 1, 1, 1});
  };
  const std::vector<Case> cases{keys_of(1), keys_of(2), keys_of(3)};
  Tampered nought = answered_otherwise(each_out([](double) { return 0.0; }));
  ASSERT_EQ(check_case(property_named("attention.oracle"), nought, cases[0]).outcome, Outcome::violated);
  EXPECT_THAT(misreadings_of(nought, cases), Not(Contains(testing::HasSubstr("keys of zeros"))));
}

/// Of one query and one key much is the same, and a mask that hides the key leaves nothing to judge by.
TEST(Misreadings, AreNotReadOutOfWhatSaysNothing) {
  Case c;
  c[Slot::q] = c[Slot::k] = c[Slot::v] =
      mapped(Tensor(DType::f32, {1, 1, 1, 1}), [](std::int64_t, double) { return 1.0; });
  c[Slot::mask] = mapped(Tensor(DType::boolean, {1, 1, 1, 1}), [](std::int64_t, double) { return 1.0; });
  EXPECT_THAT(misreadings_of(*registered("builtin:flash"), std::vector{c}), IsEmpty()) << "it is right";
  const auto inverted = registered("fault:bool-mask-inverted");
  ASSERT_EQ(check_case(property_named("attention.oracle"), *inverted, c).outcome, Outcome::violated);
  EXPECT_THAT(misreadings_of(*inverted, std::vector{c}), IsEmpty()) << "a row without a key may be anything";
}

}  // namespace
}  // namespace attest
