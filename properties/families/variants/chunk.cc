// chunk: keys lie in chunks of C, each from one multiple of C to the next, and a row sees those of the chunk that its
// position is in.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/problem/fields.h"
#include "core/problem/selection.h"
#include "properties/arrangement/arguments.h"
#include "properties/catalogue/property.h"
#include "properties/families/variants/sequence_laws.h"
#include "properties/families/variants/sight_laws.h"
#include "properties/generators/draw.h"
#include "properties/language/agree.h"
#include "properties/language/answer.h"
#include "properties/language/domain.h"
#include "properties/language/not_judged.h"
#include "properties/language/refute.h"
#include "properties/language/weights.h"

namespace attest {
namespace {

using sight_laws::aligned, sight_laws::any_causal_form, sight_laws::same, sight_laws::some_alignment,
    sight_laws::with_one_value;

Case with_chunks(Case c, std::int64_t keys, Causal alignment) {
  c.attention_chunk = keys;
  c.alignment = alignment;
  settle_alignment(c);
  return c;
}

/// Where the chunk begins that a position from 0 on is in.
std::int64_t begin_of_chunk(const Case& c, std::int64_t p) {
  return p - p % c.attention_chunk;
}

// N <= C and 0 <= p_i < C for every row: as without chunks.
Verdict wide(Kernel& kernel, const Case& c) {
  const std::int64_t M = queries_of(c), N = keys_of(c);
  const Causal alignment = some_alignment(kernel, c, chunk_variant);
  if (alignment == Causal::bottom_right && M > N) return excused("a row stands before the first key");
  const std::int64_t rows = alignment == Causal::bottom_right ? N : M;
  const std::int64_t more[] = {0, 1, std::int64_t{1} << 20};
  const std::int64_t keys = std::max({rows, N, std::int64_t{1}}) + more[argument(c, "more", 3)];
  return same(kernel, with_chunks(c, keys, alignment), c, Match::bound);
}

// Refuted: C >= N - 1 is no chunk at the bottom right. Key N - 1, where the last row stands, has a chunk of its own
// then: its weight is 1, and without chunks 1/N.
Verdict wide_is_sharp(Kernel& kernel, const Case& c) {
  const std::vector<Causal>& alignments = kernel.manifest().variants.at(std::string(chunk_variant.name)).alignment;
  if (std::ranges::count(alignments, Causal::bottom_right) == 0)
    return skipped("the manifest's variants.chunk.alignment has no bottom-right");
  const std::int64_t M = queries_of(c), N = keys_of(c);
  return refuted(/*budget=*/1, [&](int) {
    const Case plain = with_one_value(c, N - 1), chunked = with_chunks(plain, N - 1, Causal::bottom_right);
    return Attempt{run(kernel, chunked).queries({M - 1}), run(kernel, plain).queries({M - 1}),
                   fmt::format("M = {}, N = {}, chunks of {} keys at the bottom right, Q = 0, V = 1 at key {} alone", M,
                               N, N - 1, N - 1)};
  });
}

/// The divisors from 2 on.
Indices divisors(std::int64_t number) {
  Indices all;
  for (std::int64_t d = 2; d <= number; ++d)
    if (number % d == 0) all.push_back(d);
  return all;
}

// Refuted: beside a causal form C is the window (C - 1, unbounded). Of a row at a multiple of C the key at its position
// is the first one of its chunk, whose weight is 1; that window shows C - 1 keys before it as well.
Verdict is_no_window(Kernel& kernel, const Case& c) {
  const auto window = kernel.manifest().variants.find(window_variant.name);
  if (window == kernel.manifest().variants.end() || !window->second.left)
    return skipped("the manifest's variants list no window with a left end");
  const std::int64_t M = queries_of(c), N = keys_of(c);
  // The last row that stands at a key.
  const std::int64_t p = (c.causal == Causal::bottom_right ? N : std::min(M, N)) - 1;
  const std::int64_t row = c.causal == Causal::bottom_right ? M - 1 : p;
  const Indices lengths = divisors(p);
  if (lengths.empty()) return skipped("no row stands behind two keys");
  const std::int64_t C = lengths[static_cast<std::size_t>(argument(c, "C", std::ssize(lengths)))];
  return refuted(/*budget=*/1, [&](int) {
    Case plain = with_one_value(c, p);
    plain[Slot::mask] = Tensor();
    Case windowed = plain;
    windowed.window_left = C - 1;
    settle_alignment(windowed);
    return Attempt{run(kernel, with_chunks(plain, C, c.causal)).queries({row}), run(kernel, windowed).queries({row}),
                   fmt::format("M = {}, N = {}, causal {}, chunks of {} keys and a window of ({}, -1), Q = 0, V = 1 at "
                               "key {} alone",
                               M, N, name_of(c.causal), C, C - 1, p)};
  });
}

/// The problem of the rows and the keys of the chunk that begins there.
Case of_chunk(const Case& c, std::int64_t begin) {
  const std::int64_t M = queries_of(c), N = keys_of(c), end = begin + c.attention_chunk;
  const std::int64_t p = position(sight_rule(c), 0, M, N);  // each other row stands a key further
  Selection kept = everything(c);
  kept.queries = sight_laws::range(std::max<std::int64_t>(begin - p, 0), std::min(end - p, M));
  kept.keys = sight_laws::range(begin, std::min(end, N));
  Case part = select(c, kept);
  drop_variant(part, chunk_variant.name);
  return part;
}

// The rows and keys of one chunk are a problem without chunks, and count as they did: from the first key the first row
// and the first key of a chunk stand at its beginning, and from the last key its last row stands at its last key. The
// rows of the first chunk may be fewer, but end where it does.
Verdict split(Kernel& kernel, const Case& c) {
  const std::int64_t M = queries_of(c), N = keys_of(c), p = position(sight_rule(c), 0, M, N);
  // Of the rows that stand at a key.
  const std::int64_t first = std::max<std::int64_t>(p, 0), last = std::min(p + M, N) - 1;
  if (first > last) return excused("no chunk has a row and a key");
  const std::int64_t count = last / c.attention_chunk - first / c.attention_chunk + 1;
  const std::int64_t chosen = argument(c, "chunk", count);
  std::string why;
  for (std::int64_t n = 0; n < count; ++n) {
    const std::int64_t begin = begin_of_chunk(c, first) + (chosen + n) % count * c.attention_chunk;
    const Case part = of_chunk(c, begin);
    why = why_unsupported(kernel.manifest(), part);
    if (!why.empty()) continue;
    const std::int64_t row = std::max<std::int64_t>(begin - p, 0);
    const Result alone = run_with_lse(kernel, part),
                 whole = run_with_lse(kernel, c).queries(sight_laws::range(row, row + queries_of(part)));
    return worse_of({agree({alone, whole}, Match::bound), agree_in_lse_in_domain({alone, whole}, Match::bound)});
  }
  return skipped(std::move(why));
}

// Bottom-right: whole chunks before every row's own may be deleted. The first row that stands at a key is at N - M.
Verdict eviction(Kernel& kernel, const Case& c) {
  return sight_laws::eviction(kernel, c, begin_of_chunk(c, keys_of(c) - queries_of(c)), c.attention_chunk);
}

// Top-left: the keys behind every row's chunk may be deleted. The last row stands at M - 1.
Verdict tail(Kernel& kernel, const Case& c) {
  return sight_laws::tail(kernel, c, begin_of_chunk(c, queries_of(c) - 1) + c.attention_chunk);
}

// lse does not fall when chunks become as many of them each.
Verdict lse_monotone(Kernel& kernel, const Case& c) {
  const std::int64_t C = c.attention_chunk, times = 2 + argument(c, "times", std::max<std::int64_t>(keys_of(c) / C, 1));
  // What holds all keys need not become more than a number that there may be.
  if (C > keys_of(c)) return excused("every chunk of a row holds all keys, or none");
  Case wider = c;
  wider.attention_chunk = C * times;
  return sight_laws::lse_monotone(kernel, c, wider,
                                  fmt::format("as chunks of {} keys become chunks of {}", C, wider.attention_chunk));
}

double& chunk_in(Recipe& r) {
  return argument_in(r.arguments, &Problem::attention_chunk);
}
/// A few keys.
void narrow(Recipe& r) {
  chunk_in(r) = static_cast<double>(1 + (r.seed >> 20) % 9);
}
/// As drawn, or in every other case any number up to half of the keys, so that there are several.
void sometimes_several(Recipe& r) {
  const auto most = static_cast<std::uint64_t>(std::max(r.keys / 2, 1));
  if ((r.seed >> 45) % 2 == 0) chunk_in(r) = static_cast<double>(1 + (r.seed >> 20) % most);
}
/// Beside a window in every third case.
DrawnAttention sometimes_windowed(DrawnAttention drawn) {
  bool windowed = false;
  drawn.where([&](const Recipe& r) { windowed = (r.seed >> 36) % 3 == 0; });
  if (windowed) drawn.windowed();
  return drawn;
}
/// Chunks beside a mask, a causal form and a window, or some of these.
DrawnAttention beside_others(Draw& draw) {
  return sometimes_windowed(
      draw.attention(period_of_tile_laws).where(sometimes_causal).chunked().where(sometimes_several));
}
/// A chunk more of keys than there are rows, at least.
void keys_to_spare(Recipe& r) {
  narrow(r);
  r.queries = std::clamp(r.queries, 1, 64);
  const auto more = static_cast<std::int32_t>(chunk_in(r)) + static_cast<std::int32_t>((r.seed >> 50) % 64);
  r.keys = std::max(r.keys, r.queries + more);
}
/// With this alignment, by a causal form in every third case.
void counted(Recipe& r, Causal alignment) {
  aligned(r, alignment);
  if (r.seed % 3 == 0) r.causal = alignment;
}

constexpr Stated one = defining(hypotheses::chunk, "there is nothing to speak of then"),
                 hides_by_a_number =
                     defining(hypotheses::infinity_to_hide, "-inf is what hides a key in an additive mask"),
                 given_by_the_statement = defining(hypotheses::no_chunk, "the statement gives the chunks");
constexpr std::array chunked{one, hides_by_a_number};
constexpr std::array chunked_alone{one};
constexpr std::array chunked_unmasked{
    one, needed(hypotheses::unmasked, "a mask or a causal form hides keys of the set that is read")};
constexpr std::array with_more{defining(hypotheses::chunk_and_more, "the mask of chunks alone is another statement"),
                               hides_by_a_number};
constexpr std::array without_one{given_by_the_statement};
constexpr std::array sharp{given_by_the_statement,
                           defining(hypotheses::unmasked, "the counterexample has chunks alone"),
                           defining(hypotheses::a_query, "a counterexample needs one"),
                           defining(hypotheses::two_keys, "a counterexample needs two")};
constexpr std::array beside_a_form{given_by_the_statement,
                                   defining(hypotheses::causal_form, "the statement is about one"),
                                   defining(hypotheses::a_query, "a counterexample needs one")};
constexpr std::array evicted{defining(hypotheses::chunks_before_rows, "there is no chunk to delete then")};
constexpr std::array behind{defining(hypotheses::keys_behind_chunks, "there is no key to delete then")};
constexpr std::array outside{defining(hypotheses::row_without_a_chunk, "there is no such row then")};
constexpr std::array late_rows{defining(hypotheses::chunk_behind_a_block, "there is no such row then")};
constexpr std::array square{one, defining(hypotheses::no_causal_form, "the form says how chunks are aligned"),
                            needed(hypotheses::equal_lengths, "the alignments are N - M keys apart")};
constexpr std::array of_one_key{defining(hypotheses::chunk_of_one_key, "the rows see other keys than their own")};
constexpr std::array of_one_query{one, defining(hypotheses::one_query, "the rows of several queries see other keys")};

constexpr std::string_view needs = "attention, chunk", window = "window";

const Property family[] = {
    {.name = "chunk.equals-mask",
     .statement = "C is the boolean mask ⌊j/C⌋ = ⌊p_i/C⌋",
     .source = "+",
     .needs = needs,
     .floating_point = "bound",
     .variant = "chunk",
     .hypotheses = chunked,
     .given = [](Draw& draw) -> Case {
       return draw.attention(period_of_tile_laws).unmasked().chunked().where(sometimes_several);
     },
     .check = sight_laws::equals_mask},
    {.name = "chunk.visible-set",
     .statement = "Q = 0, V = I: weights are 1/|C_i| on C_i and 0 elsewhere, for every declared alignment",
     .source = "+",
     .needs = needs,
     .floating_point = "bound; zeros bitwise",
     .variant = "chunk",
     .hypotheses = chunked_unmasked,
     .given = [](Draw& draw) -> Case {
       return draw.attention().unmasked().where(few_to_read).chunked().where(sometimes_several);
     },
     .check = sight_laws::visible_set},
    {.name = "chunk.wide",
     .statement = "N ≤ C and 0 ≤ p_i < C for every row is no chunk",
     .source = "+",
     .needs = needs,
     .floating_point = "bound",
     .variant = "chunk",
     .under = window,
     .hypotheses = without_one,
     .given = [](Draw& draw) -> Case {
       return sometimes_windowed(draw.attention(period_of_tile_laws).where([](Recipe& r) {
         sometimes_causal(r);
         if (!r.large && r.causal == Causal::bottom_right) r.keys = std::max(r.keys, r.queries);
       }));
     },
     .check = wide},
    {.name = "chunk.wide-is-sharp",
     .statement = "C ≥ N − 1 suffices (bottom-right)",
     .source = "+",
     .needs = needs,
     .floating_point = "counterexample",
     .variant = "chunk",
     .hypotheses = sharp,
     .given = [](Draw& draw) -> Case { return draw.attention().unmasked().at_least(1, 2); },
     .check = wide_is_sharp},
    {.name = "chunk.is-no-window",
     .statement = "beside a causal form, C is the window (C − 1, ∞)",
     .source = "+",
     .needs = "attention, chunk, window",
     .floating_point = "counterexample",
     .variant = "chunk",
     .hypotheses = beside_a_form,
     .given = [](Draw& draw) -> Case { return draw.attention().where(any_causal_form).at_least(3, 3); },
     .check = is_no_window},
    {.name = "chunk.intersects",
     .statement = "chunk ∧ window ∧ mask ∧ causal is their conjunction as one mask",
     .source = "+",
     .needs = needs,
     .floating_point = "bound",
     .variant = "chunk",
     .under = window,
     .wants = wants_a_mask,
     .hypotheses = with_more,
     .given = [](Draw& draw) -> Case {
       return sometimes_windowed(draw.attention(period_of_tile_laws)
                                     .masked()
                                     .where(sometimes_causal)
                                     .where([](Recipe& r) {
                                       if (r.mask == MaskKind::none && r.causal == Causal::none) any_causal_form(r);
                                     })
                                     .chunked()
                                     .where(sometimes_several));
     },
     .check = sight_laws::intersects},
    {.name = "chunk.row-locality",
     .statement = "o_i, lse_i do not depend on k_j, v_j of other chunks",
     .source = "+",
     .needs = needs,
     .floating_point = "as in masked.suppression",
     .variant = "chunk",
     .under = window,
     .hypotheses = chunked_alone,
     .given = [](Draw& draw) -> Case { return beside_others(draw); },
     .check = sight_laws::row_locality},
    {.name = "chunk.slice",
     .statement = "row i is single-query attention over the keys of its chunk without chunks",
     .source = "+",
     .needs = needs,
     .floating_point = "bound",
     .variant = "chunk",
     .under = window,
     .hypotheses = chunked_alone,
     .given = [](Draw& draw) -> Case { return beside_others(draw); },
     .check = sight_laws::slice},
    {.name = "chunk.split",
     .statement =
         "the rows and the keys of one chunk are a problem of their own, without chunks, in the same alignment",
     .source = "+",
     .needs = needs,
     .floating_point = "bound",
     .variant = "chunk",
     .under = window,
     .hypotheses = chunked_alone,
     .given = [](Draw& draw) -> Case { return beside_others(draw); },
     .check = split},
    {.name = "chunk.decode",
     .statement = "M = 1, bottom-right: attention over the last (N − 1) mod C + 1 keys",
     .source = "+",
     .needs = needs,
     .floating_point = "bound",
     .variant = "chunk",
     .under = window,
     .hypotheses = of_one_query,
     .given = [](Draw& draw) -> Case {
       return sometimes_windowed(draw.attention(period_of_tile_laws)
                                     .where([](Recipe& r) { r.queries = 1; })
                                     .chunked()
                                     .where(sometimes_several))
           .where([](Recipe& r) { counted(r, Causal::bottom_right); });
     },
     .check = sight_laws::slice},
    {.name = "chunk.eviction",
     .statement = "bottom-right: deleting whole chunks before every row's own changes nothing",
     .source = "+",
     .needs = needs,
     .floating_point = "bound",
     .variant = "chunk",
     .under = window,
     .hypotheses = evicted,
     .given = [](Draw& draw) -> Case {
       return sometimes_windowed(draw.attention().where(keys_to_spare)).where([](Recipe& r) {
         counted(r, Causal::bottom_right);
       });
     },
     .check = eviction},
    {.name = "chunk.tail",
     .statement = "top-left: deleting keys behind every row's chunk changes nothing",
     .source = "+",
     .needs = needs,
     .floating_point = "bitwise if padding-invariant",
     .variant = "chunk",
     .under = window,
     .hypotheses = behind,
     .given = [](Draw& draw) -> Case {
       return sometimes_windowed(draw.attention().where(keys_to_spare)).where([](Recipe& r) {
         counted(r, Causal::top_left);
       });
     },
     .check = tail},
    {.name = "chunk.lse-monotone",
     .statement = "lse_i does not decrease when C becomes a multiple of itself",
     .source = "+",
     .needs = "attention, chunk, lse",
     .floating_point = "bound",
     .variant = "chunk",
     .under = window,
     .hypotheses = chunked_alone,
     .given = [](Draw& draw) -> Case {
       return sometimes_windowed(
           draw.attention(period_of_tile_laws).where(sometimes_causal).chunked().where([](Recipe& r) {
             // Fewer keys than there are, so that a row can see more.
             const auto keys = static_cast<std::uint64_t>(std::max(r.keys - 1, 1));
             chunk_in(r) = static_cast<double>(1 + (r.seed >> 20) % std::min<std::uint64_t>(keys, 16));
           }));
     },
     .check = lse_monotone},
    {.name = "chunk.empty-row",
     .statement = "p_i < 0 or ⌊p_i/C⌋·C ≥ N: the policy; other rows as if it were deleted",
     .source = "+",
     .needs = needs,
     .floating_point =
         "inside the domain: `nan`, `zero`: bitwise; `uniform`: bound to the mean of V; `error`: rejected",
     .variant = "chunk",
     .under = window,
     .hypotheses = outside,
     .given = [](Draw& draw) -> Case {
       return draw.attention().where(narrow).where([](Recipe& r) {
         r.keys = std::clamp(r.keys, 1, 64);
         r.queries = r.keys + 10 + static_cast<std::int32_t>((r.seed >> 50) % 16);
         // The first rows stand before the keys, or the last ones behind the last chunk of them.
         counted(r, (r.seed >> 1) % 2 == 0 ? Causal::bottom_right : Causal::top_left);
       });
     },
     .check = sight_laws::empty_row},
    {.name = "chunk.leading-blocks",
     .statement = "rows whose chunk begins behind a fully hidden block are finite and within the bound",
     .source = "+",
     .needs = needs,
     .floating_point = "required",
     .variant = "chunk",
     .under = window,
     .hypotheses = late_rows,
     .given = [](Draw& draw) -> Case {
       return sometimes_windowed(draw.attention().where([](Recipe& r) {
                // Of up to 32 keys a chunk, that of key 32 begins at key 16 or later.
                chunk_in(r) = static_cast<double>(1 + (r.seed >> 20) % 32);
                r.keys += 33;
                sometimes_causal(r);
                r.queries =
                    r.causal == Causal::top_left ? std::max(r.queries, 33 + r.queries % 64) : std::max(r.queries, 1);
              }))
           .where([](Recipe& r) {
             argument_in(r.arguments, &Problem::alignment) = static_cast<double>(Causal::bottom_right);
           });
     },
     .check = sight_laws::leading_blocks},
    {.name = "chunk.alignments-agree",
     .statement = "M = N: top-left is bottom-right",
     .source = "+",
     .needs = needs,
     .floating_point = "bitwise if deterministic",
     .variant = "chunk",
     .under = window,
     .hypotheses = square,
     .given = [](Draw& draw) -> Case {
       return sometimes_windowed(draw.attention(period_of_tile_laws)
                                     .where([](Recipe& r) {
                                       r.keys = r.queries;
                                       r.causal = Causal::none;
                                     })
                                     .chunked()
                                     .where(sometimes_several));
     },
     .check = sight_laws::alignments_agree},
    {.name = "chunk.one",
     .statement = "C = 1, M = N: o_i = v_i, lse_i = s_ii",
     .source = "+",
     .needs = needs,
     .floating_point = "bound",
     .variant = "chunk",
     .under = window,
     .hypotheses = of_one_key,
     .given = [](Draw& draw) -> Case {
       return sometimes_windowed(draw.attention(period_of_tile_laws).unmasked().where([](Recipe& r) {
                r.keys = r.queries;
                sometimes_causal(r);
                chunk_in(r) = 1;
              }))
           .where([](Recipe& r) { argument_in(r.arguments, &Problem::alignment) = r.seed % 2 == 0 ? 1.0 : 2.0; });
     },
     .check = sight_laws::one_key},
};

}  // namespace

std::span<const Property> chunk_properties() {
  return family;
}

}  // namespace attest
