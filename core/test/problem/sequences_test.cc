// Sequences: which rows and keys of a problem are of one sequence, and what no sequence has.
#include "core/problem/sequences.h"

#include <gtest/gtest.h>

#include <vector>

#include "core/problem/case.h"
#include "core/problem/fields.h"
#include "core/problem/selection.h"
#include "core/problem/sight.h"
#include "core/test/refusal.h"

namespace attest {
namespace {

Tensor whole(const std::vector<double>& values) {
  return {DType::i32, {static_cast<std::int64_t>(values.size())}, values};
}

Case plain(std::int64_t batch, std::int64_t queries, std::int64_t keys) {
  Case c;
  c[Slot::q] = Tensor(DType::f32, {batch, 2, queries, 3});
  c[Slot::k] = Tensor(DType::f32, {batch, 1, keys, 3});
  c[Slot::v] = Tensor(DType::f32, {batch, 1, keys, 2});
  return c;
}

Case with_lengths() {
  Case c = plain(3, 4, 5);
  c[Slot::q_lengths] = whole({4, 0, 2});
  c[Slot::kv_lengths] = whole({5, 3, 0});
  return c;
}

Case packed_case() {
  Case c = plain(1, 7, 9);
  c[Slot::q_starts] = whole({0, 2, 2, 6});
  c[Slot::kv_starts] = whole({0, 4, 5, 8});
  return c;
}

TEST(Sequences, AreTheEntriesOfAPlainBatch) {
  const std::vector<Sequence> expected{{.entry = 0, .queries = 4, .keys = 5}, {.entry = 1, .queries = 4, .keys = 5}};
  EXPECT_EQ(sequences_of(plain(2, 4, 5)), expected);
  EXPECT_FALSE(has_padding(plain(2, 4, 5)));
  EXPECT_TRUE(padding_rows(plain(2, 4, 5)).empty());
}

TEST(Sequences, AreAsLongAsTheirLengths) {
  const Case c = with_lengths();
  const std::vector<Sequence> expected{{.entry = 0, .queries = 4, .keys = 5},
                                       {.entry = 1, .queries = 0, .keys = 3},
                                       {.entry = 2, .queries = 2, .keys = 0}};
  EXPECT_EQ(sequences_of(c), expected);
  EXPECT_TRUE(has_padding(c));
  // Entry 1 is rows 8 to 15 of the output's two heads, entry 2 16 to 23.
  EXPECT_EQ(padding_rows(c), (std::vector<std::int64_t>{8, 9, 10, 11, 12, 13, 14, 15, 18, 19, 22, 23}));
  Case keys_alone = c;
  keys_alone[Slot::q_lengths] = Tensor();
  EXPECT_EQ(sequence_of(keys_alone, 1), (Sequence{.entry = 1, .queries = 4, .keys = 3}));
  EXPECT_TRUE(padding_rows(keys_alone).empty());
  EXPECT_TRUE(has_padding(keys_alone));
}

TEST(Sequences, StandOneAfterAnotherWherePacked) {
  const Case c = packed_case();
  const std::vector<Sequence> expected{{.first_query = 0, .queries = 2, .first_key = 0, .keys = 4},
                                       {.first_query = 2, .queries = 0, .first_key = 4, .keys = 1},
                                       {.first_query = 2, .queries = 4, .first_key = 5, .keys = 3}};
  EXPECT_EQ(sequences_of(c), expected);
  EXPECT_EQ(padding_rows(c), (std::vector<std::int64_t>{6, 13}));
  EXPECT_EQ(sequence_at(c, 0, 1), expected[0]);
  EXPECT_EQ(sequence_at(c, 0, 2), expected[2]);
  EXPECT_EQ(sequence_at(c, 0, 6), std::nullopt);
}

TEST(Sequences, BeginBehindTheirPaddingOnTheLeft) {
  Case c = with_lengths();
  c[Slot::left_pad] = whole({2, 3, 0});
  const std::vector<Sequence> expected{{.entry = 0, .queries = 4, .first_key = 2, .keys = 3},
                                       {.entry = 1, .queries = 0, .first_key = 3, .keys = 0},
                                       {.entry = 2, .queries = 2, .keys = 0}};
  EXPECT_EQ(sequences_of(c), expected);
  EXPECT_TRUE(hidden(c, 0, 0, 0, 1));
  EXPECT_FALSE(hidden(c, 0, 0, 0, 2));
  // Position 0 is the first key behind the padding, and the last row's the last key.
  c.causal = Causal::top_left;
  EXPECT_TRUE(hidden(c, 0, 0, 0, 3));
  EXPECT_FALSE(hidden(c, 0, 0, 1, 3));
  c.causal = Causal::bottom_right;
  EXPECT_TRUE(hidden(c, 0, 0, 0, 2)) << "4 rows, 3 keys";
  EXPECT_FALSE(hidden(c, 0, 0, 1, 2));
  // Without lengths it goes to the last key.
  Case pad_alone = plain(2, 1, 5);
  pad_alone[Slot::left_pad] = whole({0, 5});
  EXPECT_EQ(sequence_of(pad_alone, 0), (Sequence{.entry = 0, .queries = 1, .keys = 5}));
  EXPECT_EQ(sequence_of(pad_alone, 1), (Sequence{.entry = 1, .queries = 1, .first_key = 5, .keys = 0}));
  EXPECT_TRUE(has_padding(pad_alone));
  EXPECT_TRUE(padding_rows(pad_alone).empty());
  EXPECT_TRUE(has_sequences(pad_alone));
  drop_sequences(pad_alone);
  EXPECT_EQ(pad_alone, plain(2, 1, 5));
  // Of the keys that are left some are padding.
  Selection s = everything(c);
  s.keys = {1, 2, 4};
  EXPECT_EQ(sequence_of(select(c, s), 0), (Sequence{.entry = 0, .queries = 4, .first_key = 1, .keys = 2}));
}

TEST(Sequences, HideEachOthersKeysAndCountPositionsOfTheirOwn) {
  Case c = packed_case();
  EXPECT_FALSE(hidden(c, 0, 0, 0, 3));
  EXPECT_TRUE(hidden(c, 0, 0, 0, 4));
  EXPECT_TRUE(hidden(c, 0, 0, 2, 4));
  EXPECT_FALSE(hidden(c, 0, 0, 2, 5));
  EXPECT_TRUE(hidden(c, 0, 0, 6, 8)) << "slack sees nothing";
  c.causal = Causal::bottom_right;
  // Sequence 0: position 0 + 4 - 2.
  EXPECT_FALSE(hidden(c, 0, 0, 0, 2));
  EXPECT_TRUE(hidden(c, 0, 0, 0, 3));
  // Sequence 2 has 4 rows and 3 keys: its first row sees none, its last all.
  EXPECT_TRUE(hidden(c, 0, 0, 2, 5));
  EXPECT_FALSE(hidden(c, 0, 0, 5, 7));
  EXPECT_TRUE(has_fully_masked_row(c));
  c.causal = Causal::none;
  EXPECT_FALSE(has_fully_masked_row(c));
  EXPECT_TRUE(has_fully_masked_row(with_lengths())) << "entry 2 has rows and no key";
}

TEST(Sequences, AreCountedAgainInWhatIsSelected) {
  const Case c = with_lengths();
  Selection s = everything(c);
  s.batch = {2, 0};
  s.keys = {1, 2, 4};
  const Case some = select(c, s);
  EXPECT_EQ(sequence_of(some, 0), (Sequence{.entry = 0, .queries = 2, .keys = 0}));
  EXPECT_EQ(sequence_of(some, 1), (Sequence{.entry = 1, .queries = 4, .keys = 3}));
  const Case p = packed_case();
  Selection tokens = everything(p);
  tokens.queries = {1, 3, 4, 6};
  tokens.keys = {0, 1, 5, 8};
  const Case fewer = select(p, tokens);
  EXPECT_EQ(fewer[Slot::q_starts], whole({0, 1, 1, 3}));
  EXPECT_EQ(fewer[Slot::kv_starts], whole({0, 2, 2, 3}));
}

TEST(Sequences, AreRefusedWhereTheyCannotBe) {
  const auto changed = [](Case c, Slot slot, const Tensor& tensor) {
    c[slot] = tensor;
    return c;
  };
  const Case lengths = with_lengths(), packed = packed_case();
  const auto says = [](const Case& c) { return refusal([&] { validate(c); }); };
  EXPECT_EQ(says(lengths), "");
  EXPECT_EQ(says(packed), "");
  EXPECT_EQ(says(changed(lengths, Slot::q_lengths, whole({4, 5, 2}))),
            "q_lengths holds 5 at [1]; it must be from 0 to M = 4");
  EXPECT_EQ(says(changed(lengths, Slot::kv_lengths, whole({4, -1, 2}))),
            "kv_lengths holds -1 at [1]; it must be from 0 to N = 5");
  EXPECT_EQ(says(changed(lengths, Slot::kv_lengths, Tensor(DType::f32, {3}))), "kv_lengths is f32; it must be i32");
  EXPECT_EQ(says(changed(lengths, Slot::kv_lengths, whole({4, 1}))),
            "kv_lengths has shape [2]; it must be [batch] = [3]");
  EXPECT_EQ(says(changed(lengths, Slot::q_starts, whole({0, 4}))),
            "q_starts is present without kv_starts; a packed batch has both");
  EXPECT_EQ(says(changed(packed, Slot::kv_starts, Tensor())),
            "q_starts is present without kv_starts; a packed batch has both");
  EXPECT_EQ(says(changed(packed, Slot::q_starts, whole({0, 5, 2, 6}))),
            "q_starts holds 2 at [2] after 5; no sequence ends before it begins");
  EXPECT_EQ(says(changed(packed, Slot::q_starts, whole({1, 5, 5, 6}))),
            "q_starts begins with 1; the first sequence begins at 0");
  EXPECT_EQ(says(changed(packed, Slot::kv_starts, whole({0, 5, 9, 10}))),
            "kv_starts holds 10 at [3]; it must be from 0 to N = 9");
  EXPECT_EQ(says(changed(packed, Slot::kv_lengths, whole({4}))),
            "kv_lengths is present beside q_starts; packed sequences are as long as their starts say");
  EXPECT_EQ(says(changed(packed, Slot::left_pad, whole({1}))),
            "left_pad is present beside q_starts; packed sequences are as long as their starts say");
  EXPECT_EQ(says(changed(lengths, Slot::left_pad, whole({1, 6, 0}))),
            "left_pad holds 6 at [1]; it must be from 0 to N = 5");
  EXPECT_EQ(says(changed(lengths, Slot::left_pad, whole({1, 3, 1}))),
            "left_pad holds 1 at [2] and kv_lengths 0; no more keys are padding than there are");
  EXPECT_EQ(says(changed(lengths, Slot::left_pad, whole({5, 3, 0}))), "");
  Case two = plain(2, 7, 9);
  two[Slot::q_starts] = packed[Slot::q_starts], two[Slot::kv_starts] = packed[Slot::kv_starts];
  EXPECT_EQ(says(two), "q has a batch of 2 beside q_starts; packed sequences stand one after another in a batch of 1");
  EXPECT_EQ(says(changed(lengths, Slot::mask, Tensor(DType::i32, {1, 1, 4, 5}))),
            "mask is i32; it is bool or of a floating dtype");
  EXPECT_EQ(says(changed(lengths, Slot::k, Tensor(DType::i32, {3, 1, 5, 3}))),
            "k is i32; it must be of a floating dtype, or i8");
}

TEST(Sequences, ReachTheCStructureUnderTheirBits) {
  const Case lengths = with_lengths(), packed = packed_case();
  const attest_problem one = lengths.problem(), other = packed.problem(), none = plain(1, 1, 1).problem();
  EXPECT_EQ(one.variants, static_cast<std::uint32_t>(ATTEST_LENGTHS));
  EXPECT_EQ(one.size, sizeof(attest_problem));
  EXPECT_EQ(one.kv_lengths.dtype, ATTEST_I32);
  EXPECT_EQ(static_cast<const std::int32_t*>(one.kv_lengths.data)[1], 3);
  EXPECT_EQ(one.q_starts.data, nullptr);
  EXPECT_EQ(other.variants, static_cast<std::uint32_t>(ATTEST_PACKED));
  EXPECT_EQ(static_cast<const std::int32_t*>(other.q_starts.data)[3], 6);
  EXPECT_EQ(none.variants, 0U);
  EXPECT_EQ(none.size, offsetof(attest_problem, variants));
}

}  // namespace
}  // namespace attest
