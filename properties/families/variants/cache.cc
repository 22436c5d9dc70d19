// cache: keys and values in slots of which a length says how many are filled, read by one query at a time or by
// several. The queries are those of the last tokens, so that a call on some of them is one on the cache as it was then.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

#include "core/problem/fields.h"
#include "core/problem/kv_cache.h"
#include "core/problem/selection.h"
#include "core/problem/sequences.h"
#include "core/problem/sight.h"
#include "properties/arrangement/any_number.h"
#include "properties/arrangement/arguments.h"
#include "properties/arrangement/arrange.h"
#include "properties/arrangement/sequences.h"
#include "properties/arrangement/within_limits.h"
#include "properties/catalogue/property.h"
#include "properties/families/split_laws.h"
#include "properties/families/variants/sequence_laws.h"
#include "properties/generators/draw.h"
#include "properties/language/agree.h"
#include "properties/language/answer.h"
#include "properties/language/domain.h"
#include "properties/language/not_judged.h"

namespace attest {
namespace {

/// Behind what is padding on the left, so many keys.
Case with_length(Case c, std::int64_t s, std::int64_t keys) {
  c[Slot::kv_lengths].set(s, static_cast<double>(sequence_of(c, s).first_key + keys));
  return c;
}

/// Rows [first, last) as a call of their own: the same cache, at the length that it had before the tokens of later rows
/// came. A row that a length below 0 would leave without a key sees none at the length 0 either.
Case chunk(const Case& c, std::int64_t first, std::int64_t last) {
  Selection kept = everything(c);
  kept.queries.assign(kept.queries.begin() + first, kept.queries.begin() + last);
  Case one = select(c, kept);
  for (std::int64_t s = 0; s < sequence_count(c); ++s) {
    const Sequence own = sequence_of(c, s);
    const std::int64_t later = std::max<std::int64_t>(own.queries - last, 0);
    one = with_length(std::move(one), s, std::max<std::int64_t>(own.keys - later, 0));
  }
  return one;
}

/// Rows [first, last) by a call of their own and of the call on all of c.
Verdict same_chunk(Kernel& kernel, const Case& c, const Result& whole, std::int64_t first, std::int64_t last) {
  const Result one = run_with_lse(kernel, chunk(c, first, last));
  Verdict worst = excused("no sequence has a query among these");
  for (std::int64_t s = 0; s < sequence_count(c); ++s) {
    Indices rows;
    for (std::int64_t i = first; i < std::min(last, sequence_of(c, s).queries); ++i) rows.push_back(i);
    if (rows.empty()) continue;
    worst = worse_of({std::move(worst), same(of_sequence(one, s), of_sequence(whole, s).queries(rows), Match::bound)});
  }
  return worst;
}

/// From row to row of these, each up to the next.
Verdict same_chunks(Kernel& kernel, const Case& c, const Result& whole, const Indices& ends) {
  Verdict worst = excused("no query");
  for (std::size_t t = 1; t < ends.size(); ++t)
    if (ends[t - 1] < ends[t]) worst = worse_of({std::move(worst), same_chunk(kernel, c, whole, ends[t - 1], ends[t])});
  return worst;
}

// One query at length n is row n - 1 of the causal attention of the n tokens, which no cache holds.
Verdict decode_is_last_row(Kernel& kernel, const Case& c) {
  const std::int64_t s = some_sequence(c, "s");
  const Sequence own = sequence_of(c, s);
  if (own.queries == 0 || own.keys == 0) return excused("no sequence has a query and a key");
  const std::int64_t last = own.queries - 1;
  const Result prefill = run_with_lse(kernel, alone(c, s)).queries({last});
  return same(of_sequence(run_with_lse(kernel, chunk(c, last, last + 1)), s), prefill, Match::bound);
}

// The queries in two or three chunks, each at the length of its last token.
Verdict chunked_prefill(Kernel& kernel, const Case& c) {
  const std::int64_t M = queries_of(c), first = 1 + argument(c, "cut", M - 1), second = 1 + argument(c, "cut2", M - 1);
  const Result whole = run_with_lse(kernel, c);
  return same_chunks(kernel, c, whole, {0, std::min(first, second), std::max(first, second), M});
}

// Token by token: all of a few; else the first, the last and some between.
Verdict incremental(Kernel& kernel, const Case& c) {
  constexpr std::int64_t few = 8, between = 4;
  const std::int64_t M = queries_of(c);
  Indices rows = all_of(std::min(M, few));
  if (M > few) {
    rows = {0, M - 1};
    for (std::int64_t n = 0; n < between; ++n) rows.push_back(argument(c, "row" + std::to_string(n), M));
  }
  const Result whole = run_with_lse(kernel, c);
  Verdict worst = excused("no query");
  for (const std::int64_t i : rows) worst = worse_of({std::move(worst), same_chunk(kernel, c, whole, i, i + 1)});
  return worst;
}

// The last queries at once, two to eight of them, are as many calls on one each.
Verdict speculative(Kernel& kernel, const Case& c) {
  const std::int64_t M = queries_of(c), several = 2 + argument(c, "t", std::min<std::int64_t>(M - 1, 7));
  const Case last = chunk(c, M - several, M);
  const Result together = run_with_lse(kernel, last);
  return same_chunks(kernel, last, together, all_of(several + 1));
}

// One query, which sees every key that is filled: the keys cut wherever, as calls of their own.
Verdict split(Kernel& kernel, const Case& c) {
  return split_merge(kernel, chunk(c, queries_of(c) - 1, queries_of(c)));
}

/// More slots behind the others, as the first ones are; the lengths stay.
Case with_capacity(const Case& c, std::int64_t slots) {
  Selection kept = everything(c);
  kept.keys = cycled(keys_of(c), slots);
  Case larger = select(c, kept);
  larger[Slot::kv_lengths] = c[Slot::kv_lengths];
  larger[Slot::left_pad] = c[Slot::left_pad];
  return larger;
}

// More slots than are filled change nothing, whatever they hold.
Verdict capacity(Kernel& kernel, const Case& c) {
  const std::optional<std::int64_t> slots = keys_within(kernel).from(keys_of(c) + 1 + argument(c, "more", 32));
  if (!slots) return {.outcome = Outcome::skipped, .reason = "the manifest allows no more keys"};
  const Case larger = with_poison(kernel, with_capacity(c, *slots), Whose::nobody, 0);
  const bool bits = kernel.manifest().claims_to(Claim::padding_invariant);
  const Result left = run_with_lse(kernel, larger), right = run_with_lse(kernel, c);
  return same_sequences(c, left, right, bits ? match_of_dead_values(kernel) : Match::bound);
}

/// Other tokens in the slots of sequence s from `first` on.
Case with_other_tokens(const Case& c, std::int64_t s, std::int64_t first) {
  Case other = c;
  const Sequence own = sequence_of(c, s);
  const std::int64_t begin = own.first_key + first, end = own.first_key + own.keys;
  for (const Slot slot : {Slot::k, Slot::v}) {
    const Shape& shape = c[slot].shape();
    other[slot] = mapped(c[slot], [&](std::int64_t e, double old) {
      const auto [b, h, j, column] = shape.index_of(e);
      return b == s && begin <= j && j < end ? any_number(old == 0 ? 1 : -old) : old;
    });
  }
  return other;
}

// A sequence is taken back by some tokens, and goes on with others. What a kernel keeps of the first call must neither
// show in the second, where the old tokens are still in their slots, nor in the third, where others are.
Verdict rollback(Kernel& kernel, const Case& c) {
  const std::int64_t s = some_sequence(c, "s");
  const Sequence own = sequence_of(c, s);
  if (own.queries == 0 || own.keys < 2) return excused("no sequence has a query and two keys");
  const std::int64_t kept = 1 + argument(c, "kept", own.keys - 1);
  const Case back = with_length(c, s, kept), rewritten = with_other_tokens(c, s, kept);
  static_cast<void>(run(kernel, c));
  const Result stale = run_with_lse(kernel, back), onwards = run_with_lse(kernel, rewritten);
  const Result dead = run_with_lse(kernel, with_poison(kernel, back, Whose::nobody, 0)),
               fresh = run_with_lse(kernel, alone(rewritten, s));
  return worse_of({same_sequences(c, stale, dead, match_of_dead_values(kernel)),
                   same(of_sequence(onwards, s), fresh, match_of_company(kernel, c))});
}

/// The sequences other than s as they were.
Verdict others_are_same(const Kernel& kernel, const Result& left, const Result& right, std::int64_t s) {
  Verdict worst = excused("no other sequence has a query");
  for (std::int64_t other = 0; other < sequence_count(right.run().problem()); ++other)
    if (other != s && sequence_of(right.run().problem(), other).queries > 0)
      worst = worse_of({std::move(worst), same(of_sequence(left, other), of_sequence(right, other),
                                               bits_if(kernel, {Claim::batch_invariant}))});
  return worst;
}

// Another length of one entry is nothing to the others.
Verdict independent_lengths(Kernel& kernel, const Case& c) {
  const std::int64_t s = argument(c, "s", sequence_count(c)), keys = sequence_of(c, s).keys,
                     N = keys_of(c) - sequence_of(c, s).first_key;
  if (N == 0) return excused("there is no other length");
  const std::int64_t length = (keys + 1 + argument(c, "length", N)) % (N + 1);
  const Result left = run_with_lse(kernel, with_length(c, s, length)), right = run_with_lse(kernel, c);
  return others_are_same(kernel, left, right, s);
}

// An entry whose cache is empty follows the policy, and is nothing to the others.
Verdict empty(Kernel& kernel, const Case& c) {
  if (kernel.manifest().fully_masked_row == FullyMaskedRow::error)
    return {.outcome = Outcome::skipped, .reason = "the manifest's fully_masked_row is error"};
  const std::int64_t s = some_sequence(c, "s");
  const Result left = run_with_lse(kernel, with_length(c, s, 0)), right = run_with_lse(kernel, c);
  return worse_of({others_are_same(kernel, left, right, s), obeys_policy(kernel, left, s)});
}

/// The keys of every entry from the first slot on.
Case without_left_pad(const Case& c) {
  Case moved = c;
  for (const Slot slot : {Slot::k, Slot::v, Slot::mask, Slot::keep}) {
    if (!c[slot].present()) continue;
    const Shape& shape = c[slot].shape();
    const int of_keys = slot == Slot::mask || slot == Slot::keep ? 3 : 2;
    // A mask that entries have together is not moved by one of them.
    Tensor own(c[slot].dtype(), {batch_of(c), shape[1], shape[2], shape[3]});
    for (std::int64_t e = 0; e < own.elements(); ++e) {
      std::array<std::int64_t, 4> at = own.shape().index_of(e);
      const std::int64_t pad = sequence_of(c, at[0]).first_key;
      std::int64_t& key = at[static_cast<std::size_t>(of_keys)];
      key = (key + pad) % shape[of_keys];
      own.set(e, c[slot].at(shape[0] == 1 ? 0 : at[0], at[1], at[2], at[3]));
    }
    moved[slot] = std::move(own);
  }
  Tensor lengths(DType::i32, {batch_of(c)});
  for (const Sequence& s : sequences_of(c)) lengths.set(s.entry, static_cast<double>(s.keys));
  moved[Slot::kv_lengths] = std::move(lengths);
  moved[Slot::left_pad] = Tensor();
  return moved;
}

// Slots before a sequence's first key: the same without them, and whatever they hold.
Verdict left_pad(Kernel& kernel, const Case& c) {
  const Result padded = run_with_lse(kernel, c);
  Verdict dead = same_sequences(c, run_with_lse(kernel, with_poison(kernel, c, Whose::nobody, 0)), padded,
                                match_of_dead_values(kernel));
  if (!kernel.manifest().variants.contains(lengths_variant.name)) return dead;
  return worse_of(
      {std::move(dead), same_sequences(c, run_with_lse(kernel, without_left_pad(c)), padded, Match::bound)});
}

// Entry b reads the row of the cache that its index names, and no other.
Verdict index(Kernel& kernel, const Case& c) {
  const Result indexed = run_with_lse(kernel, c);
  Case unused = c;
  unused.provenance.unused = kernel.manifest().claims_to(Claim::ignores_dead_values) ? "nan" : "other";
  const Indices rows = permutation_argument(c, "rows", c.pool);
  Case renamed = c;
  renamed[Slot::cache_index] = mapped(c[Slot::cache_index], [&](std::int64_t, double row) {
    return static_cast<double>(rows[static_cast<std::size_t>(row)]);
  });
  const Match bits = bits_if(kernel, {Claim::deterministic});
  const Verdict outside = same_sequences(c, run_with_lse(kernel, outside_of_caches(c)), indexed, Match::bound);
  const Verdict dead = same_sequences(c, run_with_lse(kernel, unused), indexed, match_of_dead_values(kernel));
  return worse_of({worse_of({outside, dead}), same_sequences(c, run_with_lse(kernel, renamed), indexed, bits)});
}

/// Queries of the last tokens, so many of them at least, in a cache with room for more; in one case of eight more than
/// are looked at one by one.
template <std::int32_t queries>
void last_tokens(Recipe& r) {
  r.causal = Causal::bottom_right;
  if (r.large) return;
  const bool many = (r.seed >> 44) % 8 == 0;
  r.queries = std::max(r.queries, many ? 9 + static_cast<std::int32_t>((r.seed >> 48) % 16) : queries);
  r.keys = std::max(r.keys, r.queries + 1 + static_cast<std::int32_t>((r.seed >> 36) % 16));
}
/// Sequences with almost as many keys as queries have as many: their tokens came with these queries.
Case filled(Case c) {
  for (std::int64_t s = 0; s < sequence_count(c); ++s) {
    const Sequence own = sequence_of(c, s);
    if (own.keys >= own.queries || own.queries > 2 * own.keys) continue;
    const std::int64_t length = std::min(own.queries, keys_of(c) - own.first_key);
    c = with_length(std::move(c), s, length);
  }
  return c;
}
template <std::int32_t queries>
Case of_last_tokens(Draw& draw) {
  return filled(draw.attention(period_of_tile_laws).where(last_tokens<queries>).of_sequences().where(lengths_of_keys));
}

/// Any form: what it says does not turn on which keys a row sees of those that are filled.
DrawnAttention of_any_rows(Draw& draw) {
  return draw.attention(period_of_tile_laws)
      .where(sometimes_causal)
      .where(at_least_a_key)
      .of_sequences()
      .where(lengths_of_keys);
}

constexpr std::array of_last{
    defining(hypotheses::key_lengths, "there is nothing to speak of then"),
    defining(hypotheses::bottom_right_form, "positions would not be those of the last tokens")};
constexpr std::array of_last_two =
    joined(of_last, std::array{defining(hypotheses::two_queries, "one query is one chunk, and one call")});
constexpr auto of_last_one = joined(of_last, std::array{defining(hypotheses::a_query, "it is about the last one")});
constexpr std::array of_lengths{defining(hypotheses::key_lengths, "there is nothing to speak of then")};
constexpr std::array of_two_lengths =
    joined(of_lengths, std::array{defining(hypotheses::two_sequences, "there is no other sequence then")});

constexpr std::array of_left_pad{defining(hypotheses::left_pad, "there is nothing to speak of then")};
constexpr std::array of_cache_rows{defining(hypotheses::cache_rows, "there is nothing to speak of then")};

/// Some padding before the first sequence's keys at least.
Case given_left_pad(Draw& draw) {
  Case c = of_any_rows(draw).at_least(1, 2).with_later_arguments().where([](Recipe& r) { r.left_pad = true; });
  if (sequence_of(c, 0).first_key > 0) return c;
  const double length = std::max(c[Slot::kv_lengths].present() ? c[Slot::kv_lengths][0] : 2.0, 2.0);
  if (c[Slot::kv_lengths].present()) c[Slot::kv_lengths].set(0, length);
  c[Slot::left_pad].set(0, 1);
  return c;
}
/// Entries in rows of a larger cache.
Case given_cache_rows(Draw& draw) {
  std::uint64_t seed = 0;
  const Case c = draw.attention(period_of_tile_laws)
                     .where(sometimes_causal)
                     .where(at_least_a_key)
                     .where([&](Recipe& r) {
                       seed = r.seed;
                       if (r.seed % 2 == 0) lengths_of_keys(r);
                     })
                     .where(several);
  Case indexed = in_cache_rows(c, static_cast<std::int64_t>((seed >> 24) % 4), seed);
  restate_variants(indexed);
  return indexed;
}

const Property family[] = {
    {.name = "cache.decode-is-last-row",
     .statement = "M = 1 bottom-right at length n is row n − 1 of the causal prefill of the n tokens",
     .source = "+",
     .needs = "attention, lengths of keys, bottom-right",
     .floating_point = "bound",
     .variant = "lengths",
     .under = "window chunk left_pad sink softcap dropout alibi descale",
     .hypotheses = of_last,
     .given = of_last_tokens<1>,
     .check = decode_is_last_row},
    {.name = "cache.chunked-prefill",
     .statement = "queries in two or three chunks at growing lengths, wherever they are cut, are the whole causal "
                  "prefill",
     .source = "+",
     .needs = "attention, lengths of keys, bottom-right",
     .floating_point = "bound",
     .variant = "lengths",
     .under = "window chunk left_pad sink softcap dropout alibi descale",
     .hypotheses = of_last_two,
     .given = of_last_tokens<2>,
     .check = chunked_prefill},
    {.name = "cache.incremental",
     .statement = "token by token, each at its own length, is the whole causal prefill (of more than 8 tokens the "
                  "first, the last and 4 of all)",
     .source = "+",
     .needs = "attention, lengths of keys, bottom-right",
     .floating_point = "bound",
     .variant = "lengths",
     .under = "window chunk left_pad sink softcap dropout alibi descale",
     .hypotheses = of_last_two,
     .given = of_last_tokens<2>,
     .check = incremental},
    {.name = "cache.speculative",
     .statement = "t + 1 queries at once at length n, 1 ≤ t ≤ 7, are t + 1 single decodes",
     .source = "+",
     .needs = "attention, lengths of keys, bottom-right",
     .floating_point = "bound",
     .variant = "lengths",
     .under = "window chunk left_pad sink softcap dropout alibi descale",
     .hypotheses = of_last_two,
     .given = of_last_tokens<2>,
     .check = speculative},
    {.name = "cache.split",
     .statement =
         "M = 1 at length n is the log-sum-exp-weighted merge of its attentions over up to three runs of the n "
         "keys; a run without a key changes nothing",
     .source = "+",
     .needs = "attention, lengths of keys, bottom-right",
     .floating_point = "bound",
     .variant = "lengths",
     .under = "left_pad sink softcap",
     .hypotheses = of_last_one,
     .given = [](Draw& draw) -> Case {
       return filled(draw.attention(period_of_tile_laws)
                         .where(last_tokens<1>)
                         .with_later_arguments()
                         .of_sequences()
                         .where(lengths_of_keys));
     },
     .check = split},
    {.name = "cache.capacity",
     .statement = "more slots behind the same lengths (NaN, huge) change nothing",
     .source = "+",
     .needs = "attention, lengths of keys",
     .floating_point = "inside the domain: bitwise if padding-invariant and deterministic; NaN if ignores-dead-values",
     .variant = "lengths",
     .under = "window chunk left_pad sink softcap dropout alibi descale",
     .hypotheses = of_lengths,
     .given = [](Draw& draw) -> Case { return of_any_rows(draw); },
     .check = capacity},
    {.name = "cache.rollback",
     .statement = "a shorter length makes the slots behind it dead (NaN, huge); other tokens in them, at the old "
                  "length, are a fresh cache",
     .source = "+",
     .needs = "attention, lengths of keys",
     .floating_point = "inside the domain: dead: bitwise if deterministic, NaN if ignores-dead-values; fresh: bitwise "
                       "if batch- and padding-invariant",
     .variant = "lengths",
     .under = "window chunk left_pad sink softcap dropout alibi descale",
     .hypotheses = of_lengths,
     .given = [](Draw& draw) -> Case { return of_any_rows(draw).at_least(1, 2); },
     .check = rollback},
    {.name = "cache.independent-lengths",
     .statement = "another length of one entry changes that entry only",
     .source = "+",
     .needs = "attention, lengths of keys",
     .floating_point = "inside the domain: bitwise if batch-invariant",
     .variant = "lengths",
     .under = "window chunk left_pad sink softcap dropout alibi descale",
     .hypotheses = of_two_lengths,
     .given = [](Draw& draw) -> Case { return of_any_rows(draw).where(several); },
     .check = independent_lengths},
    {.name = "cache.empty",
     .statement = "rows of an entry of length 0 follow the policy, and the others are unaffected",
     .source = "+",
     .needs = "attention, lengths of keys",
     .floating_point = "inside the domain: bitwise if batch-invariant",
     .variant = "lengths",
     .under = "window chunk left_pad sink softcap dropout alibi descale",
     .hypotheses = of_two_lengths,
     .given = [](Draw& draw) -> Case { return of_any_rows(draw).where(several); },
     .check = empty},
    {.name = "cache.left-pad",
     .statement = "slots before a sequence's first key are dead (NaN, huge), and it is the same as without them",
     .source = "+",
     .needs = "attention, left_pad",
     .floating_point = "dead: inside the domain, bitwise if deterministic, NaN if ignores-dead-values; without: bound",
     .variant = "left_pad",
     .under = "window chunk lengths sink softcap dropout alibi",
     .hypotheses = of_left_pad,
     .given = given_left_pad,
     .check = left_pad},
    {.name = "cache.index",
     .statement =
         "entry b reads row index[b] of the cache alone: other rows (NaN) do not matter, and renaming rows changes "
         "nothing",
     .source = "+",
     .needs = "attention, cache_index",
     .floating_point = "as without a cache: bound; else bitwise if deterministic, NaN if ignores-dead-values",
     .variant = "cache_index",
     .under = "window chunk lengths left_pad sink softcap alibi descale",
     .hypotheses = of_cache_rows,
     .given = given_cache_rows,
     .check = index},
};

}  // namespace

std::span<const Property> cache_properties() {
  return family;
}

}  // namespace attest
