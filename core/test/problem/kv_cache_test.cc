// Keys and values in a cache: laid out and read again they are what they were, and a table that is none is refused.
#include "core/problem/kv_cache.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/call/gathered_keys.h"
#include "core/problem/descale.h"
#include "core/problem/fields.h"
#include "core/problem/selection.h"
#include "core/problem/sight.h"
#include "core/test/refusal.h"

namespace attest {
namespace {

Tensor whole(const Shape& shape, const std::vector<double>& values) {
  return {DType::i32, shape, values};
}

/// Two entries of 2 heads and `keys` keys, every number another.
Case numbered(std::int64_t keys) {
  Case c;
  c[Slot::q] = Tensor(DType::f32, {2, 2, 3, 2});
  c[Slot::k] = Tensor(DType::f32, {2, 2, keys, 2});
  c[Slot::v] = Tensor(DType::f32, {2, 2, keys, 3});
  double next = 1;
  for (const Slot slot : {Slot::q, Slot::k, Slot::v})
    for (std::int64_t e = 0; e < c[slot].elements(); ++e) c[slot].set(e, next++);
  c.scale = 0.5;
  return c;
}

Case in_pages_of_two() {
  Case c = numbered(5);
  c[Slot::kv_lengths] = whole({2}, {5, 2});
  return in_pages(c, 2, 3, 11);
}

TEST(KvCache, RoundsUpToWholePagesAndKeepsWhatLengthsNeed) {
  const Case plain = numbered(5), c = in_pages_of_two();
  EXPECT_EQ(keys_of(c), 6);
  EXPECT_EQ(page_size_of(c), 2);
  EXPECT_EQ(c[Slot::page_table].shape(), Shape({2, 3}));
  EXPECT_EQ(columns_needed(c, 0), 3);
  EXPECT_EQ(columns_needed(c, 1), 1);
  EXPECT_EQ(c.pool, 3 + 1 + 3);
  for (std::int64_t j = 0; j < 5; ++j) EXPECT_EQ(c.k().at(0, 1, j, 1), plain.k().at(0, 1, j, 1));
  EXPECT_EQ(c.v().at(1, 0, 1, 2), plain.v().at(1, 0, 1, 2));
  EXPECT_EQ(c.v().at(1, 0, 2, 2), 0) << "no length needs it";
  EXPECT_EQ(refusal([&] { validate(c); }), "");
}

TEST(KvCache, RoundsUpBlocksOfFactorsToo) {
  for (const std::int64_t block : {1, 2, 5}) {
    Case plain = numbered(5);
    const std::int64_t blocks = (5 + block - 1) / block;
    for (const Slot factors : {Slot::k_descale, Slot::v_descale}) {
      plain[factors] = Tensor(DType::f32, {2, 1, blocks});
      for (std::int64_t e = 0; e < 2 * blocks; ++e) plain[factors].set(e, static_cast<double>(e + 1));
    }
    plain[Slot::q_descale] = Tensor(DType::f32, {1, 1, 1}, std::vector<double>{2});
    if (blocks > 1) plain.kv_descale_block = block;
    ASSERT_EQ(refusal([&] { validate(plain); }), "");
    for (const std::int64_t page : {2, 3, 4, 7}) {
      const Case c = in_pages(plain, page, 1, 5);
      EXPECT_EQ(refusal([&] { validate(c); }), "") << "blocks of " << block << ", pages of " << page;
      for (const Slot tensor : {Slot::k, Slot::v})
        for (std::int64_t b = 0; b < 2; ++b)
          for (std::int64_t j = 0; j < 5; ++j)
            EXPECT_EQ(factor_of(c, tensor, b, 1, j), factor_of(plain, tensor, b, 1, j)) << block << " " << page;
    }
  }
}

TEST(KvCache, LaysPagesWhereTheTableSays) {
  const Case c = in_pages_of_two(), laid_out = laid_out_in_cache(c);
  EXPECT_EQ(laid_out.k().shape(), Shape({7, 2, 2, 2}));
  EXPECT_EQ(laid_out.v().shape(), Shape({7, 2, 2, 3}));
  EXPECT_EQ(laid_out.pool, 0);
  for (std::int64_t j = 0; j < 5; ++j) {
    const auto page = static_cast<std::int64_t>(c[Slot::page_table][j / 2]);
    EXPECT_EQ(laid_out.k().at(page, 1, j % 2, 0), c.k().at(0, 1, j, 0)) << j;
  }
  EXPECT_EQ(read_from_cache(laid_out), c);
  // Own kernels gather by themselves.
  const GatheredKeys gathered(laid_out.problem());
  EXPECT_EQ(gathered.problem.variants, static_cast<std::uint32_t>(ATTEST_LENGTHS));
  EXPECT_EQ(gather(gathered.problem.k), c.k());
  EXPECT_EQ(gather(gathered.problem.v), c.v());
}

TEST(KvCache, GivesValuesATableOfTheirOwn) {
  const Case c = in_pages(numbered(6), 2, 1, 5, /*own_values=*/true), laid_out = laid_out_in_cache(c);
  ASSERT_TRUE(c[Slot::page_table_v].present());
  EXPECT_NE(c[Slot::page_table_v], c[Slot::page_table]);
  EXPECT_EQ(read_from_cache(laid_out), c);
  EXPECT_EQ(gather(GatheredKeys(laid_out.problem()).problem.v), c.v());
}

TEST(KvCache, FillsWhatNobodyReadsAsItIsTold) {
  Case c = in_pages_of_two();
  const auto unused = [&](const Provenance::Word& how) {
    c.provenance.unused = how;
    const Case laid_out = laid_out_in_cache(c);
    for (std::int64_t page = 0; page < 7; ++page) {
      bool named = c[Slot::page_table][3] == static_cast<double>(page);
      for (std::int64_t column = 0; column < 3; ++column)
        named = named || c[Slot::page_table][column] == static_cast<double>(page);
      if (!named) return laid_out.k().at(page, 0, 0, 0);
    }
    return 0.0;
  };
  EXPECT_TRUE(std::isnan(unused("nan")));
  EXPECT_TRUE(std::isfinite(unused("other")));
  EXPECT_NE(unused("other"), unused(std::nullopt));
  EXPECT_TRUE(std::isfinite(unused(std::nullopt)));
}

TEST(KvCache, SharesPagesThatHoldTheSameAndNoOthers) {
  Case c = in_pages_of_two();
  const double page = c[Slot::page_table][0];
  c[Slot::page_table].set(3, page);
  const Case apart = laid_out_in_cache(c);
  EXPECT_EQ(apart.k().shape()[0], 8) << "the second has a page behind all others";
  EXPECT_EQ(apart[Slot::page_table][3], 7);
  EXPECT_EQ(gather(GatheredKeys(apart.problem()).problem.k), c.k());
  for (const Slot slot : {Slot::k, Slot::v})
    for (std::int64_t h = 0; h < 2; ++h)
      for (std::int64_t j = 0; j < 2; ++j)
        for (std::int64_t e = 0; e < c[slot].shape()[3]; ++e)
          c[slot].set(c[slot].shape().flat(1, h, j, e), c[slot].at(0, h, j, e));
  const Case shared = laid_out_in_cache(c);
  EXPECT_EQ(shared.k().shape()[0], 7);
  EXPECT_EQ(shared[Slot::page_table], c[Slot::page_table]);
  EXPECT_EQ(read_from_cache(shared), c);
}

TEST(KvCache, GivesAPageToWhatATableNamesNoneFor) {
  Case c = in_pages_of_two();
  c[Slot::page_table].set(4, -1), c[Slot::page_table].set(5, 2147483647);
  c[Slot::kv_lengths].set(1, 6);
  const Case laid_out = laid_out_in_cache(c);
  EXPECT_EQ(laid_out.k().shape()[0], 9);
  EXPECT_EQ(laid_out[Slot::page_table][4], 7);
  EXPECT_EQ(laid_out[Slot::page_table][5], 8);
  EXPECT_EQ(gather(GatheredKeys(laid_out.problem()).problem.k), c.k());
}

TEST(KvCache, LaysEntriesInTheRowsThatTheIndexNames) {
  const Case c = in_cache_rows(numbered(4), 3, 9), laid_out = laid_out_in_cache(c);
  EXPECT_EQ(laid_out.k().shape(), Shape({5, 2, 4, 2}));
  const auto row = static_cast<std::int64_t>(c[Slot::cache_index][1]);
  EXPECT_EQ(laid_out.v().at(row, 1, 3, 2), c.v().at(1, 1, 3, 2));
  EXPECT_EQ(read_from_cache(laid_out), c);
  EXPECT_EQ(gather(GatheredKeys(laid_out.problem()).problem.k), c.k());
  EXPECT_EQ(outside_of_caches(c), numbered(4));
}

/// Two entries of 5 and 3 keys in a cache of 6 slots, of which the last two come with the call.
Case appending() {
  Case c = numbered(6);
  c[Slot::kv_lengths] = whole({2}, {5, 3});
  c.append = 2;
  return c;
}

TEST(KvCache, HasNewKeysApart) {
  const Case c = appending(), laid_out = laid_out_in_cache(c);
  EXPECT_EQ(laid_out.append, 0);
  EXPECT_EQ(laid_out[Slot::kv_lengths], whole({2}, {3, 1}));
  EXPECT_EQ(laid_out[Slot::k_new].shape(), Shape({2, 2, 2, 2}));
  EXPECT_EQ(laid_out[Slot::v_new].shape(), Shape({2, 2, 2, 3}));
  EXPECT_EQ(laid_out[Slot::v_new].at(1, 1, 1, 2), c.v().at(1, 1, 2, 2));
  EXPECT_NE(laid_out.k().at(0, 1, 4, 1), c.k().at(0, 1, 4, 1)) << "nothing stands there yet";
  EXPECT_EQ(laid_out.k().at(0, 1, 5, 1), c.k().at(0, 1, 5, 1)) << "behind the length";
  EXPECT_EQ(laid_out.k().at(1, 0, 0, 0), c.k().at(1, 0, 0, 0));
  EXPECT_EQ(after_the_call(laid_out, Slot::k), c.k());
  EXPECT_EQ(after_the_call(laid_out, Slot::v), c.v());
  EXPECT_EQ(laid_out.problem().variants, static_cast<std::uint32_t>(ATTEST_LENGTHS | ATTEST_APPEND));
  EXPECT_EQ(read_from_cache(laid_out), c);
}

TEST(KvCache, IsWrittenByOwnKernelsWhereverItLies) {
  Case paged = in_pages(appending(), 2, 2, 3), own = in_pages(appending(), 2, 2, 3, /*own_values=*/true),
       rows = in_cache_rows(appending(), 2, 4);
  for (const Case& c : {appending(), paged, own, rows}) {
    ASSERT_EQ(c.append, 2);
    EXPECT_EQ(refusal([&] { validate(c); }), "");
    const Case laid_out = laid_out_in_cache(c);
    const Tensor k = after_the_call(laid_out, Slot::k), v = after_the_call(laid_out, Slot::v);
    EXPECT_NE(laid_out.k(), k);
    const GatheredKeys gathered(laid_out.problem());
    EXPECT_EQ(laid_out.k(), k);
    EXPECT_EQ(laid_out.v(), v);
    EXPECT_EQ(gather(gathered.problem.k), c.k());
    EXPECT_EQ(gather(gathered.problem.v), c.v());
    EXPECT_EQ(gather(gathered.problem.kv_lengths), c[Slot::kv_lengths]);
    EXPECT_EQ(gathered.problem.variants, static_cast<std::uint32_t>(ATTEST_LENGTHS));
    EXPECT_EQ(decode_case(encode_case(c), "it"), c);
  }
}

TEST(KvCache, WritesNoPageThatIsNamedTwice) {
  Case c = in_pages(appending(), 2, 2, 3);
  // Pages of entry 0: keys 0 and 1, 2 and 3, 4 and nobody's; of these the second and the third are written.
  for (const Slot slot : {Slot::k, Slot::v})
    for (std::int64_t h = 0; h < 2; ++h)
      for (std::int64_t j = 0; j < 2; ++j)
        for (std::int64_t e = 0; e < c[slot].shape()[3]; ++e)
          c[slot].set(c[slot].shape().flat(1, h, j, e), c[slot].at(0, h, j, e));
  c[Slot::page_table].set(3, c[Slot::page_table][0]);
  const Case laid_out = laid_out_in_cache(c);
  EXPECT_NE(laid_out[Slot::page_table][3], laid_out[Slot::page_table][0]) << "entry 1 writes to its first page";
  c.append = 1;
  const Case shared = laid_out_in_cache(c);
  EXPECT_EQ(shared[Slot::page_table][3], shared[Slot::page_table][0]) << "and then to its second";
}

TEST(KvCache, HasNoMoreNewKeysThanAnEntryHas) {
  Case c = appending();
  EXPECT_EQ(most_append(c), 3);
  c[Slot::left_pad] = whole({2}, {0, 2});
  EXPECT_EQ(most_append(c), 1);
  EXPECT_EQ(refusal([&] { validate(c); }),
            "append is 2 and the fewest keys of an entry are 1; new keys are among those that kv_lengths counts");
  settle_append(c);
  EXPECT_EQ(c.append, 1);
  EXPECT_EQ(refusal([&] { validate(c); }), "");
  drop_variant(c, "lengths");
  settle_append(c);
  EXPECT_EQ(c.append, 0);
  EXPECT_EQ(outside_of_caches(appending()).append, 0);
}

TEST(KvCache, RefusesNewKeysThatGoNowhere) {
  const Case laid_out = laid_out_in_cache(appending());
  const auto says = [](Case with) { return refusal([&] { static_cast<void>(read_from_cache(std::move(with))); }); };
  Case none = laid_out;
  none[Slot::v_new] = Tensor();
  EXPECT_EQ(says(none), "v_new is missing; k_new and v_new come together");
  Case full = laid_out;
  full[Slot::kv_lengths].set(0, 5);
  EXPECT_EQ(says(full), "kv_lengths holds 5 at [0] and k_new has 2 tokens; there is room for 6 keys");
  full[Slot::kv_lengths].set(0, -1);
  EXPECT_EQ(says(full), "kv_lengths holds -1 at [0] and k_new has 2 tokens; there is room for 6 keys");
  Case nothing = laid_out;
  nothing[Slot::k_new] = Tensor(DType::f32, {2, 2, 0, 2}), nothing[Slot::v_new] = Tensor(DType::f32, {2, 2, 0, 3});
  EXPECT_EQ(says(nothing), "k_new has 0 tokens and v_new 0; both have as many as each other, at least 1");
  Case unknown = laid_out;
  unknown[Slot::kv_lengths] = Tensor();
  EXPECT_EQ(says(unknown), "k_new is present without kv_lengths, which say behind how many keys they are written");
  Case other = laid_out;
  other[Slot::k_new] = Tensor(DType::f64, {2, 2, 2, 2});
  EXPECT_EQ(says(other), "k_new is f64 and k f32; what is appended is as what is there");
  other[Slot::k_new] = Tensor(DType::f32, {2, 1, 2, 2});
  EXPECT_EQ(says(other), "k_new has shape [2, 1, 2, 2]; it must be [batch, kv_heads, L, dk] = [2, 2, L, 2]");
  const Case paged = laid_out_in_cache(in_pages(appending(), 2, 2, 3));
  Case far = paged;
  far[Slot::page_table].set(1, 99);
  EXPECT_EQ(says(far), "a token of k_new goes to page 99; k has 7");
  Case twice = paged;
  twice[Slot::page_table].set(3, paged[Slot::page_table][1]);
  EXPECT_NE(says(twice).find("what a call writes is one entry's"), std::string::npos) << says(twice);
  Case read = paged;
  read[Slot::page_table].set(0, paged[Slot::page_table][1]);
  EXPECT_NE(says(read).find("is named twice, and a call writes into it"), std::string::npos) << says(read);
  Case present = appending();
  present[Slot::k_new] = laid_out[Slot::k_new];
  EXPECT_EQ(refusal([&] { validate(present); }), "k_new is present; a problem has its new keys among the others");
}

TEST(KvCache, TravelsInTheFormOfTheContract) {
  for (const Case& c : {in_pages_of_two(), in_cache_rows(numbered(4), 3, 9), in_pages(numbered(6), 3, 0, 1, true)})
    EXPECT_EQ(decode_case(encode_case(c), "it"), c);
}

TEST(KvCache, GoesWithTheEntriesThatAreSelected) {
  const Case c = in_pages_of_two();
  Selection s = everything(c);
  s.batch = {1, 0, 0};
  const Case three = select(c, s);
  EXPECT_EQ(three[Slot::page_table].shape(), Shape({3, 3}));
  EXPECT_EQ(three[Slot::page_table][0], c[Slot::page_table][3]);
  EXPECT_EQ(refusal([&] { validate(three); }), "");
  s.batch = {0, 1}, s.keys = {0, 1, 2, 3};
  EXPECT_EQ(select(c, s)[Slot::page_table].shape(), Shape({2, 2})) << "whole pages";
  s.keys = {0, 1, 2};
  EXPECT_FALSE(select(c, s)[Slot::page_table].present());
  EXPECT_EQ(select(c, s).pool, 0);
  Selection twice = everything(numbered(4));
  twice.batch = {1, 1};
  const Case rows = select(in_cache_rows(numbered(4), 0, 1), twice);
  EXPECT_NE(rows[Slot::cache_index][0], rows[Slot::cache_index][1]) << "none has a row with another";
}

TEST(KvCache, RefusesATableThatIsNone) {
  const Case c = in_pages_of_two();
  const auto says = [&](const Case& with) { return refusal([&] { validate(with); }); };
  const auto changed = [](Case with, Slot slot, const Tensor& tensor) {
    with[slot] = tensor;
    return with;
  };
  EXPECT_EQ(says(changed(c, Slot::kv_lengths, Tensor())),
            "page_table is present without kv_lengths, which say how many of its keys there are");
  EXPECT_EQ(says(changed(c, Slot::page_table, whole({2, 4}, std::vector<double>(8, 0)))),
            "page_table has 4 columns and there is room for 6 keys; a page has as many as any other, at least 1");
  EXPECT_EQ(says(changed(c, Slot::page_table, Tensor(DType::f32, {2, 3}))), "page_table is f32; it must be i32");
  EXPECT_EQ(says(changed(c, Slot::page_table, whole({2, 3}, {1, -1, 2, 3, 4, 5}))),
            "page_table holds -1 at [0, 1]; pages count from 0");
  EXPECT_EQ(says(changed(c, Slot::page_table, whole({2, 3}, {1, 0, 2, 3, -1, -1}))), "") << "nobody reads these";
  EXPECT_EQ(says(changed(c, Slot::cache_index, whole({2}, {0, 1}))),
            "cache_index is present beside page_table; pages are named by the table alone");
  Case values = numbered(4);
  values[Slot::page_table_v] = whole({2, 2}, {0, 1, 2, 3});
  EXPECT_EQ(says(values), "page_table_v is present without page_table; it is that of v alone");
  EXPECT_EQ(says(changed(numbered(4), Slot::cache_index, whole({2}, {3, 3}))),
            "cache_index holds 3 at [1]; rows count from 0, and two entries of a batch have none together");
}

TEST(KvCache, RefusesMemoryThatDoesNotHoldWhatTheTableSays) {
  const Case laid_out = laid_out_in_cache(in_pages_of_two());
  const auto says = [](Case with) { return refusal([&] { static_cast<void>(read_from_cache(std::move(with))); }); };
  Case far = laid_out;
  far[Slot::page_table].set(1, 9);
  EXPECT_EQ(says(far), "page_table holds 9 at [0, 1]; k has pages 0 to 6");
  Case long_one = laid_out;
  long_one[Slot::kv_lengths].set(0, 7);
  EXPECT_EQ(says(long_one), "kv_lengths holds 7 at [0]; it must be from 0 to columns * page size = 6");
  Case empty = laid_out;
  empty[Slot::k] = Tensor(DType::f32, {7, 2, 0, 2}), empty[Slot::v] = Tensor(DType::f32, {7, 2, 0, 3});
  EXPECT_EQ(says(empty), "k has shape [7, 2, 0, 2]: a page has 0 keys; it must have at least 1");
  Case other = laid_out;
  other[Slot::v] = Tensor(DType::f32, {6, 2, 2, 3});
  EXPECT_EQ(says(other),
            "k has shape [7, 2, 2, 2] and v [6, 2, 2, 3]; of a cache both have as many pages or rows as each other");
  Case rows = laid_out_in_cache(in_cache_rows(numbered(4), 1, 2));
  rows[Slot::cache_index] = whole({2}, {3, 0});
  EXPECT_EQ(says(rows), "cache_index holds 3 at [0]; k has rows 0 to 2");
  rows[Slot::cache_index] = whole({2}, {1, 1});
  EXPECT_EQ(says(rows), "cache_index holds 1 at [1] and before it; two entries of a batch have no row together");
  // One page a million times: a file of kilobytes must not become gigabytes.
  Case amplified = numbered(0);
  amplified[Slot::k] = amplified[Slot::v] = Tensor(DType::f32, {1, 64, 1024, 64});
  amplified[Slot::kv_lengths] = whole({2}, {1, 1});
  amplified[Slot::page_table] = Tensor(DType::i32, {2, 100000});
  EXPECT_NE(says(amplified).find("more than 1073741824 elements are not gathered"), std::string::npos);
}

}  // namespace
}  // namespace attest
