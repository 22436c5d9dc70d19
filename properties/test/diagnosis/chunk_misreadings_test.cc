// Kernels that read chunks of keys in another way are told so in words, whatever else their cases have.
#include "properties/diagnosis/variants/chunk_misreadings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/test/cases.h"
#include "properties/arrangement/sequences.h"
#include "properties/diagnosis/misreadings.h"
#include "properties/test/diagnosis/other_chunks.h"

namespace attest {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;

/// Numbers of both signs, another each time.
double next_number(std::uint32_t& state) {
  state = state * 1664525U + 1013904223U;
  return static_cast<double>(state >> 24U) / 128 - 1;
}

struct Chunked {
  std::int64_t rows, keys, chunk;
  Causal alignment;
  bool causal = false, mask = false;
};
Case case_of(const Chunked& one, std::uint32_t seed, std::int64_t batch = 1) {
  std::uint32_t state = seed;
  const auto filled = [&](const Shape& shape) {
    return test::filled(DType::f32, shape, [&] { return next_number(state); });
  };
  Case c = test::attention_of({.batch = batch, .heads = 2, .queries = one.rows, .keys = one.keys, .dk = 4, .dv = 3},
                              [&](Slot, const Shape& shape) { return filled(shape); });
  c.attention_chunk = one.chunk, c.alignment = one.alignment;
  if (one.causal) c.causal = one.alignment;
  if (one.mask) c[Slot::mask] = filled({1, 2, one.rows, one.keys});
  validate(c);
  return c;
}

constexpr Causal from_first = Causal::top_left, from_last = Causal::bottom_right;

/// Of which every reading is told from every other, as far as cases of wrong answers tell it.
std::vector<Case> chunked(const std::function<void(Case&)>& more = [](Case&) {}) {
  constexpr Chunked all[] = {{6, 9, 4, from_last},
                             {.rows = 6, .keys = 9, .chunk = 3, .alignment = from_first, .mask = true},
                             {9, 7, 2, from_last},
                             {6, 9, 3, from_last, /*causal=*/true},
                             {6, 10, 5, from_first, /*causal=*/true}};
  std::vector<Case> cases;
  for (const Chunked& one : all) {
    cases.push_back(case_of(one, static_cast<std::uint32_t>(cases.size() + 1)));
    more(cases.back());
    validate(cases.back());
  }
  return cases;
}
std::vector<Case> without(std::vector<Case> cases, const std::function<bool(const Case&)>& is) {
  std::erase_if(cases, is);
  return cases;
}
bool is_causal(const Case& c) {
  return c.causal != Causal::none;
}
bool is_open(const Case& c) {
  return !is_causal(c);
}

std::vector<std::string> misread(const Tampered::Question& question, const std::vector<Case>& cases = chunked()) {
  Tampered kernel = asked_otherwise(question);
  return misreadings_of(kernel, cases);
}

TEST(MisreadChunks, AreOtherChunksAndWindows) {
  std::size_t told = 0;
  for (const auto& [words, sees] : mistaken_chunk_kernels()) {
    const auto reading = std::ranges::find(chunk_readings(), words, &ChunkReading::words);
    ASSERT_NE(reading, chunk_readings().end()) << words;
    ++told;
    if (reading->is_only_probed) continue;
    EXPECT_THAT(misread(other_chunks(sees)), ElementsAre(std::string(words)));
  }
  EXPECT_EQ(told, chunk_readings().size()) << "each reading has a kernel";
}

/// Of more keys than tiles hold.
TEST(MisreadChunks, AreOfTiles) {
  const std::vector<Case> cases{case_of({40, 40, 24, from_last}, 1), case_of({40, 48, 20, from_first}, 2),
                                case_of({33, 50, 12, from_last}, 3)};
  EXPECT_THAT(
      misread(other_chunks([](const ChunkedPair& at) { return at.chunk_of(at.j) == at.chunk_of(at.p - at.i % 16); }),
              cases),
      ElementsAre("rows were in the chunk of the first row of their tile of 16"));
  EXPECT_THAT(misread(other_chunks([](const ChunkedPair& at) {
                        const std::int64_t whole = (at.C + 15) / 16 * 16;
                        return at.p / whole == at.j / whole;
                      }),
                      cases),
              ElementsAre("chunks had as many keys as whole tiles of 16"));
  EXPECT_THAT(misread(other_chunks([](const ChunkedPair& at) {
                        const std::int64_t begin = at.chunk_of(at.p) * at.C;
                        return at.j >= begin / 16 * 16 && at.j < begin + at.C;
                      }),
                      cases),
              ElementsAre("the tile of 16 keys that a chunk begins in were seen from its first key on"));
}

/// Beside a causal form a window has one right end, and is told so once.
TEST(MisreadChunks, BesideACausalFormAreToldOnce) {
  const std::vector<Case> causal = without(chunked(), is_open);
  for (const auto& [words, sees] : mistaken_chunk_kernels())
    if (words.ends_with("as in a window without a right end")) {
      EXPECT_EQ(misread(other_chunks(sees), causal).size(), 1U) << words;
    }
}

TEST(MisreadChunks, AreNoneBesideOthersThatAreNoneEither) {
  const auto forget = [](Case& c) { drop_variant(c, chunk_variant.name); };
  EXPECT_THAT(misread([&](Case& c) { forget(c), c.causal = Causal::none; }, without(chunked(), is_open)),
              ElementsAre("there were neither chunks nor a causal form"));
  // Wider to the left than two keys, which is what the chunks of one case hold.
  const auto windowed = [](Case& c) { c.window_left = 3, c.window_right = 1; };
  const std::vector<Case> cases = without(chunked(windowed), is_causal);
  EXPECT_THAT(misread([&](Case& c) { forget(c), drop_variant(c, window_variant.name); }, cases),
              ElementsAre("there were neither chunks nor a window"));
  EXPECT_THAT(misread(forget, cases), ElementsAre("there were no chunks"));
  EXPECT_THAT(misread([](Case& c) { drop_variant(c, window_variant.name); }, cases), Contains("there were no window"));
}

/// What is read of other arguments, and of other keys, leaves chunks where they are.
TEST(MisreadChunks, StayBesideOtherReadings) {
  const SeesKey own = [](const ChunkedPair& at) { return at.are_together(); };
  EXPECT_THAT(misread([](Case& c) { c.causal = Causal::none; }, without(chunked(), is_open)),
              Contains("there were no causal form"));
  const auto aligned_first = [&](Case& c) {
    c.causal = Causal::none;
    other_chunks(own)(c);
    c.causal = Causal::top_left;
  };
  // Of chunks in which rows see keys under that form, too.
  EXPECT_THAT(misread(aligned_first, {case_of({6, 9, 8, from_last, /*causal=*/true}, 1),
                                      case_of({6, 9, 7, from_last, /*causal=*/true}, 2)}),
              Contains("the causal form were aligned to the first keys"));
  const SeesKey short_of_one = [](const ChunkedPair& at) { return at.are_together() && at.j < at.N - 1; };
  EXPECT_THAT(misread(other_chunks(short_of_one), {case_of({9, 9, 4, from_last}, 1), case_of({6, 8, 3, from_last}, 2)}),
              Contains("the last key were not there"));
  EXPECT_THAT(misread([](Case& c) { c.scale *= c.scale; }, chunked([](Case& c) { c.scale = 0.375; })),
              Contains("the scale were applied twice"));
  EXPECT_THAT(misread([](Case& c) {
                const Case before = c;
                c[Slot::mask] = mapped(Tensor(DType::boolean, {1, 1, queries_of(c), keys_of(c)}),
                                       [](std::int64_t, double) { return 1.0; });
                drop_variant(c, chunk_variant.name);
                c[Slot::q] = mapped(before.q(), [](std::int64_t, double) { return 0.0; });
                c.causal = Causal::none;
              }),
              Contains("all keys weighed the same, hidden ones too"));
}

/// Keys count in their sequence, and behind its padding.
TEST(MisreadChunks, AreThoseOfSequences) {
  std::vector<Case> padded_left, packed_ones, shorter;
  for (const Causal alignment : {from_first, from_last}) {
    Case c = case_of({5, 12, 3, alignment}, 7, /*batch=*/2);
    Case batch = c;
    c[Slot::left_pad] = Tensor(DType::i32, {2}, std::vector<double>{2, 4});
    validate(c);
    padded_left.push_back(std::move(c));
    batch[Slot::kv_lengths] = Tensor(DType::i32, {2}, std::vector<double>{7, 11});
    validate(batch);
    packed_ones.push_back(packed(batch));
    if (alignment == from_last) shorter.push_back(batch), batch.attention_chunk = 4, shorter.push_back(batch);
  }
  const SeesKey in_slots = [](const ChunkedPair& at) {
    return at.chunk_of(at.p + at.first_key) == at.chunk_of(at.j + at.first_key);
  };
  EXPECT_THAT(misread(other_chunks(in_slots), padded_left),
              ElementsAre("chunks counted from the first key of the padding on the left"));
  EXPECT_THAT(
      misread(other_chunks([](const ChunkedPair& at) { return at.chunk_of(at.p) == at.chunk_of(at.j + at.first_key); }),
              padded_left),
      ElementsAre("chunks counted keys from the first of the padding on the left, and rows from behind it"));
  EXPECT_THAT(misread(other_chunks(in_slots), packed_ones),
              ElementsAre("chunks counted from the first of all packed keys"));
  EXPECT_THAT(
      misread(other_chunks([](const ChunkedPair& at) { return at.chunk_of(at.i + 12 - 5) == at.chunk_of(at.j); }),
              shorter),
      ElementsAre("chunks counted bottom-right positions from the batch's last key, not the sequence's"));
}

TEST(MisreadChunks, AreNotReadOutOfRightAnswersNorOfOtherMistakes) {
  EXPECT_THAT(misread([](Case&) {}), IsEmpty());
  EXPECT_THAT(misread(other_chunks([](const ChunkedPair& at) { return at.are_together(); })), IsEmpty());
  EXPECT_THAT(misread(other_chunks([](const ChunkedPair& at) { return at.are_together() && (at.i + at.j) % 3 != 0; })),
              IsEmpty());
}

TEST(MisreadChunks, AreThoseOfACaseThatHasSome) {
  for (const Case& c : {chunked()[1], chunked()[3], case_of({1, 1, 1, from_first}, 1)}) {
    EXPECT_FALSE(misread_chunks(c).empty());
    for (const MisreadSight& reading : misread_chunks(c)) {
      EXPECT_FALSE(reading.words.empty());
      if (reading.problem) validate(*reading.problem);
    }
  }
  Case none = chunked()[0];
  drop_variant(none, chunk_variant.name);
  EXPECT_THAT(misread_chunks(none), IsEmpty());
  // A mask of numbers that have no infinity hides nothing.
  Case narrow = chunked()[1];
  for (const Slot slot : {Slot::q, Slot::k, Slot::v, Slot::mask})
    narrow[slot] = mapped(Tensor(DType::f8_e4m3, narrow[slot].shape()),
                          [&, old = narrow[slot]](std::int64_t e, double) { return old[e]; });
  EXPECT_THAT(misread_chunks(narrow), IsEmpty());
}

}  // namespace
}  // namespace attest
