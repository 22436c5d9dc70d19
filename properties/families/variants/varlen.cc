// varlen: a batch of sequences of lengths of their own, padded or packed: each is as if it were alone.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "core/oracle/oracle.h"
#include "core/problem/fields.h"
#include "core/problem/sequences.h"
#include "core/problem/sight.h"
#include "core/support/printed.h"
#include "properties/arrangement/any_number.h"
#include "properties/arrangement/arguments.h"
#include "properties/arrangement/sequences.h"
#include "properties/catalogue/property.h"
#include "properties/families/variants/sequence_laws.h"
#include "properties/generators/draw.h"
#include "properties/language/agree.h"
#include "properties/language/answer.h"
#include "properties/language/domain.h"
#include "properties/language/not_judged.h"

namespace attest {
namespace {

// Each sequence is as if it were alone.
Verdict equals_separate(Kernel& kernel, const Case& c) {
  const std::int64_t s = some_sequence(c, "s");
  const Sequence own = sequence_of(c, s);
  if (own.queries == 0 || own.keys == 0)
    return {.outcome = Outcome::excused, .reason = "no sequence has a query and a key"};
  const Result together = of_sequence(run_with_lse(kernel, c), s);
  return same(together, run_with_lse(kernel, alone(c, s)), match_of_company(kernel, c));
}

// Another sequence's q, k and v do not matter.
Verdict neighbours_dead(Kernel& kernel, const Case& c) {
  const std::int64_t s = some_sequence(c, "s");
  const Case changed = with_poison(kernel, c, Whose::others, s);
  return same(of_sequence(run_with_lse(kernel, changed), s), of_sequence(run_with_lse(kernel, c), s),
              bits_if(kernel, {Claim::batch_invariant}));
}

// Sequences in another order: outputs in that order.
Verdict order(Kernel& kernel, const Case& c) {
  const Indices moved = permutation_argument(c, "order", sequence_count(c));
  const Result left = run_with_lse(kernel, with_sequences(c, moved)), right = run_with_lse(kernel, c);
  Verdict worst;
  for (std::int64_t s = 0; s < std::ssize(moved); ++s)
    worst =
        worse_of({std::move(worst), same(of_sequence(left, s), of_sequence(right, moved[static_cast<std::size_t>(s)]),
                                         bits_if(kernel, {Claim::batch_invariant}))});
  return worst;
}

// Sequences with no query, no key or neither: the others are as they were, and rows without keys follow the policy.
Verdict empty_sequences(Kernel& kernel, const Case& c) {
  const std::int64_t count = sequence_count(c), first = argument(c, "s", count), which = argument(c, "which", 3),
                     many = 1 + argument(c, "many", 2);
  Case emptied = c;
  Indices gone;
  for (std::int64_t n = 0; n < many; ++n) {
    const std::int64_t s = (first + n) % count;
    const Sequence own = sequence_of(c, s);
    emptied = shortened(emptied, s, which == 1 ? own.queries : 0, which == 0 ? own.keys : 0);
    gone.push_back(s);
  }
  if (which != 0 && kernel.manifest().fully_masked_row == FullyMaskedRow::error)
    return skipped("the manifest's fully_masked_row is error");
  const Result left = run_with_lse(kernel, emptied), right = run_with_lse(kernel, c);
  Verdict worst;
  for (std::int64_t s = 0; s < count; ++s) {
    const bool is_gone = std::ranges::count(gone, s) > 0;
    Verdict one = is_gone ? sequence_of(emptied, s).keys == 0 ? obeys_policy(kernel, left, s) : Verdict()
                          : same(of_sequence(left, s), of_sequence(right, s), match_of_company(kernel, c));
    worst = worse_of({std::move(worst), std::move(one)});
  }
  return worst;
}

/// Those rows of a result of one sequence that are sequence s of a packed case.
Result rows_of(const Result& one, const Case& c, std::int64_t s) {
  const Sequence own = sequence_of(c, s);
  Indices rows;
  for (std::int64_t i = 0; i < own.queries; ++i) rows.push_back(own.first_query + i);
  return one.queries(rows);
}

bool hides_with_a_boolean(const Kernel& kernel, const Case& c) {
  const Manifest& m = kernel.manifest();
  return m.bool_masks && (!m.additive_masks || c.dtype() == DType::f8_e4m3 || argument(c, "boolean", 2) == 1);
}

/// The case with a mask that hides by -inf in a format that has none.
Verdict no_infinity(const Case& c) {
  return skipped(fmt::format("{} has no infinity for a mask that hides", name_of(c.dtype())));
}
bool lacks_infinity(const Case& c, bool boolean) {
  return c.dtype() == DType::f8_e4m3 && !boolean && !(c.mask().present() && c.mask().dtype() == DType::boolean);
}

// Packed sequences are one, with a block-diagonal mask.
Verdict equals_block_mask(Kernel& kernel, const Case& c) {
  const bool boolean = hides_with_a_boolean(kernel, c);
  if (lacks_infinity(c, boolean)) return no_infinity(c);
  const Result left = run_with_lse(kernel, c), right = run_with_lse(kernel, with_block_mask(c, boolean));
  Verdict worst;
  for (std::int64_t s = 0; s < sequence_count(c); ++s)
    worst = worse_of({std::move(worst), same(of_sequence(left, s), rows_of(right, c, s), Match::bound)});
  return worst;
}

// Packed sequences are the padded batch with their lengths.
Verdict equals_padded(Kernel& kernel, const Case& c) {
  if (!kernel.manifest().variants.contains(lengths_variant.name))
    return skipped("the manifest's variants do not list lengths");
  return same_sequences(c, run_with_lse(kernel, c), run_with_lse(kernel, padded(c)),
                        bits_if(kernel, {Claim::batch_invariant, Claim::padding_invariant}));
}

/// Rows of no sequence are 0, where the manifest says so.
Verdict padding_is_zero(const Kernel& kernel, const Result& all) {
  const Case& c = all.run().problem();
  if (in_a_proof() || kernel.manifest().padding_of(c) != Padding::zero) return {};
  const std::int64_t width = all.shape()[3];
  for (const std::int64_t row : padding_rows(c))
    for (std::int64_t e = row * width; e < (row + 1) * width; ++e)
      if (const double found = all.run().out()[e]; !(found == 0))
        return violated(
            Violation::bound,
            fmt::format("row {} of head {} is in no sequence and holds {:.6g}; the manifest says that it is 0",
                        row % queries_of(c), row / queries_of(c), printed(found)));
  return {};
}

// What q, k and v hold in no sequence does not matter; and the output's rows there are what the manifest says.
Verdict padding_dead(Kernel& kernel, const Case& c) {
  const Case changed = with_poison(kernel, c, Whose::nobody, 0);
  const Result left = run_with_lse(kernel, changed), right = run_with_lse(kernel, c);
  const Verdict zero = worse_of({padding_is_zero(kernel, left), padding_is_zero(kernel, right)});
  return worse_of({zero, same_sequences(c, left, right, match_of_dead_values(kernel))});
}

// Positions from the last key are each sequence's own, i + N_b - M_b: the form is the mask that says so.
Verdict alignment(Kernel& kernel, const Case& c) {
  const bool boolean = hides_with_a_boolean(kernel, c);
  if (lacks_infinity(c, boolean)) return no_infinity(c);
  return same_sequences(c, run_with_lse(kernel, c), run_with_lse(kernel, with_positions_as_mask(c, boolean)),
                        Match::bound);
}

// One sequence is the plain call.
Verdict single(Kernel& kernel, const Case& c) {
  const std::int64_t s = some_sequence(c, "s");
  const Sequence own = sequence_of(c, s);
  if (own.queries == 0 || own.keys == 0)
    return {.outcome = Outcome::excused, .reason = "no sequence has a query and a key"};
  const Case plain = alone(c, s);
  const Case one = has_variant(c, packed_variant.name) ? packed(plain) : padded(plain);
  return same(run_with_lse(kernel, one), run_with_lse(kernel, plain), Match::bound);
}

// Lengths of 0, 1, and around tiles in one batch: finite, and within the bound.
Verdict tile_edges(Kernel& kernel, const Case& c) {
  const Reply reply = answer(kernel, c, c.dtype(), /*want_lse=*/true);
  return judge_attention(c, reply.out, reply.lse, kernel.manifest().arithmetic_for(c),
                         {.ignores_dead_values = kernel.manifest().claims_to(Claim::ignores_dead_values)});
}

void two_keys(Recipe& r) {
  r.keys = std::max(r.keys, 2);
}

/// As a packed batch, with no slack, slack of keys, or slack of queries and keys.
Case as_packed(const Case& c) {
  const std::int64_t turn = (queries_of(c) + keys_of(c)) % 3;
  Case one = packed(c, turn / 2, turn);
  restate_variants(one);
  return one;
}
Case as_packed_with_slack(const Case& c) {
  Case one = packed(c, 1 + keys_of(c) % 2, 1 + queries_of(c) % 3);
  restate_variants(one);
  return one;
}
/// With padding: a key of the first sequence's, where lengths leave none.
Case with_padding(Case c) {
  if (has_padding(c)) return c;
  return shortened(c, 0, sequence_of(c, 0).queries, keys_of(c) - 1);
}
/// With a sequence of a query and two keys, where none has queries and keys and not as many of both.
Case with_unequal_lengths(const Case& c) {
  const auto differs = [](const Sequence& s) { return s.queries > 0 && s.keys > 0 && s.queries != s.keys; };
  if (std::ranges::any_of(sequences_of(c), differs)) return c;
  Case other = c;
  if (other[Slot::left_pad].present()) other[Slot::left_pad].set(0, 0);
  return shortened(other, 0, 1, 2);
}

constexpr std::array of_sequences{defining(hypotheses::sequences, "there is nothing to speak of then")};
constexpr std::array of_several{defining(hypotheses::two_sequences, "there is no other sequence then")};
constexpr std::array of_packed{defining(hypotheses::packed, "there is nothing to speak of then")};
constexpr std::array of_padding{defining(hypotheses::sequences, "padding is what is in no sequence"),
                                defining(hypotheses::padding, "there is nothing to speak of then")};
constexpr std::array of_slack{defining(hypotheses::packed, "slack is what no packed sequence has"),
                              defining(hypotheses::padding, "there is nothing to speak of then")};
constexpr std::array of_bottom_right{
    defining(hypotheses::bottom_right_sequence, "all sequences have the same positions then")};

const Property family[] = {
    {.name = "varlen.equals-separate",
     .statement = "sequences together, padded or packed, are each sequence alone",
     .source = "+",
     .needs = "attention, lengths or packed",
     .floating_point = "bound; bitwise if batch-invariant, and padding-invariant where they are padded",
     .variant = "lengths packed",
     .under = "window chunk left_pad sink softcap dropout alibi",
     .hypotheses = of_sequences,
     .given = [](Draw& draw) -> Case {
       return draw.attention(period_of_tile_laws)
           .where(sometimes_causal)
           .where(at_least_a_key)
           .with_later_arguments()
           .of_sequences();
     },
     .check = equals_separate},
    {.name = "varlen.neighbours-dead",
     .statement = "other sequences' q, k and v (NaN, huge) do not matter",
     .source = "+",
     .needs = "attention, lengths or packed",
     .floating_point = "inside the domain: bitwise if batch-invariant; NaN if ignores-dead-values",
     .variant = "lengths packed",
     .under = "window chunk left_pad sink softcap dropout alibi",
     .hypotheses = of_several,
     .given = [](Draw& draw) -> Case {
       return draw.attention(period_of_tile_laws)
           .where(sometimes_causal)
           .where(at_least_a_key)
           .of_sequences()
           .where(several);
     },
     .check = neighbours_dead},
    {.name = "varlen.order",
     .statement = "permuting sequences permutes outputs",
     .source = "+",
     .needs = "attention, lengths or packed",
     .floating_point = "bitwise if batch-invariant",
     .variant = "lengths packed",
     .under = "window chunk left_pad sink softcap dropout alibi",
     .hypotheses = of_several,
     .given = [](Draw& draw) -> Case {
       return draw.attention(period_of_tile_laws)
           .where(sometimes_causal)
           .where(at_least_a_key)
           .of_sequences()
           .where(several);
     },
     .check = order},
    {.name = "varlen.empty-sequences",
     .statement =
         "sequences with no query, no key or neither, first, last, adjacent: the others are unaffected, and rows "
         "without keys follow the policy",
     .source = "+",
     .needs = "attention, lengths or packed",
     .floating_point = "bitwise if batch-invariant, and padding-invariant where they are padded",
     .variant = "lengths packed",
     .under = "window chunk left_pad sink softcap dropout alibi",
     .hypotheses = of_several,
     .given = [](Draw& draw) -> Case {
       return draw.attention(period_of_tile_laws)
           .where(sometimes_causal)
           .where(at_least_a_key)
           .of_sequences()
           .where(several);
     },
     .check = empty_sequences},
    {.name = "varlen.equals-block-mask",
     .statement = "packed sequences are one sequence with a block-diagonal mask",
     .source = "+",
     .needs = "attention, packed, masks",
     .floating_point = "bound",
     .variant = "packed",
     .under = "window chunk left_pad sink softcap dropout",
     .hypotheses = of_packed,
     .given = [](Draw& draw) -> Case {
       return as_packed(
           draw.attention(period_of_tile_laws).where(sometimes_causal).where(at_least_a_key).of_sequences());
     },
     .check = equals_block_mask},
    {.name = "varlen.equals-padded",
     .statement = "packed sequences are the padded batch with their lengths",
     .source = "+",
     .needs = "attention, packed and lengths",
     .floating_point = "bound; bitwise if batch-invariant and padding-invariant",
     .variant = "packed",
     .under = "window chunk left_pad sink softcap dropout alibi",
     .hypotheses = of_packed,
     .given = [](Draw& draw) -> Case {
       return as_packed(
           draw.attention(period_of_tile_laws).where(sometimes_causal).where(at_least_a_key).of_sequences());
     },
     .check = equals_padded},
    {.name = "varlen.padding-dead",
     .statement = "rows and keys behind a length (NaN, huge) do not matter, and the output's rows there are what the "
                  "manifest says",
     .source = "+",
     .needs = "attention, lengths",
     .floating_point = "inside the domain: bitwise if deterministic; NaN if ignores-dead-values",
     .variant = "lengths",
     .under = "window chunk left_pad sink softcap dropout alibi",
     .hypotheses = of_padding,
     .given = [](Draw& draw) -> Case {
       return with_padding(draw.attention(period_of_tile_laws)
                               .where(sometimes_causal)
                               .where(at_least_a_key)
                               .where(two_keys)
                               .of_sequences());
     },
     .check = padding_dead},
    {.name = "varlen.alignment",
     .statement = "bottom-right positions are each sequence's own, i + N_b − M_b",
     .source = "+",
     .needs = "attention, lengths or packed, masks",
     .floating_point = "bound",
     .variant = "lengths packed",
     .under = "window chunk left_pad sink softcap dropout alibi",
     .hypotheses = of_bottom_right,
     .given = [](Draw& draw) -> Case {
       return with_unequal_lengths(draw.attention(period_of_tile_laws)
                                       .where([](Recipe& r) {
                                         r.causal = Causal::bottom_right;
                                         r.keys = std::max(r.keys, 3);
                                         r.queries = std::max(r.queries, 2);
                                       })
                                       .of_sequences());
     },
     .check = alignment},
    {.name = "varlen.slack",
     .statement = "tokens behind the last sequence are neither read nor written",
     .source = "+",
     .needs = "attention, packed",
     .floating_point = "inside the domain: bitwise if deterministic; NaN if ignores-dead-values",
     .variant = "packed",
     .under = "window chunk left_pad sink softcap dropout alibi",
     .hypotheses = of_slack,
     .given = [](Draw& draw) -> Case {
       return as_packed_with_slack(
           draw.attention(period_of_tile_laws).where(sometimes_causal).where(at_least_a_key).of_sequences());
     },
     .check = padding_dead},
    {.name = "varlen.single",
     .statement = "one sequence is the plain call",
     .source = "+",
     .needs = "attention, lengths or packed",
     .floating_point = "bound",
     .variant = "lengths packed",
     .under = "window chunk left_pad sink softcap dropout alibi",
     .hypotheses = of_sequences,
     .given = [](Draw& draw) -> Case {
       return draw.attention(period_of_tile_laws).where(sometimes_causal).where(at_least_a_key).of_sequences();
     },
     .check = single},
    {.name = "varlen.tile-edges",
     .statement = "lengths of 0, 1 and around the ends of tiles in one batch: finite, and within the bound",
     .source = "+",
     .needs = "attention, lengths or packed",
     .floating_point = "bound",
     .variant = "lengths packed",
     .under = "window chunk left_pad sink softcap dropout alibi",
     .hypotheses = of_sequences,
     .given = [](Draw& draw) -> Case {
       return draw.attention(period_of_tile_laws)
           .where(sometimes_causal)
           .where([](Recipe& r) {
             if (r.large) return;
             r.batch = std::max(r.batch, 4);
             r.queries = std::max(r.queries, 20 + static_cast<std::int32_t>((r.seed >> 40) % 60));
             r.keys = std::max(r.keys, 20 + static_cast<std::int32_t>((r.seed >> 48) % 120));
           })
           .of_sequences()
           .where([](Recipe& r) { r.lengths = LengthKind::edges; });
     },
     .check = tile_edges},
};

}  // namespace

std::span<const Property> sequence_properties() {
  return family;
}

}  // namespace attest
