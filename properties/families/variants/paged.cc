// paged: keys and values in pages of a cache, which a table names: what is computed does not depend on where they lie.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/oracle/oracle.h"
#include "core/problem/fields.h"
#include "core/problem/kv_cache.h"
#include "core/problem/memory.h"
#include "core/problem/sequences.h"
#include "core/problem/sight.h"
#include "properties/arrangement/any_number.h"
#include "properties/arrangement/arguments.h"
#include "properties/arrangement/arrange.h"
#include "properties/arrangement/sequences.h"
#include "properties/catalogue/property.h"
#include "properties/families/variants/sequence_laws.h"
#include "properties/generators/draw.h"
#include "properties/language/answer.h"
#include "properties/language/domain.h"
#include "properties/language/not_judged.h"

namespace attest {
namespace {

const VariantTerms& terms_of(const Kernel& kernel) {
  return kernel.manifest().variants.find(paged_variant.name)->second;
}

/// Both tables by the change, which is told what each entry holds and whether somebody reads it.
template <class Change>
Case with_tables(Case c, Change change) {
  const std::int64_t columns = c[Slot::page_table].shape()[1];
  for (const Slot slot : {Slot::page_table, Slot::page_table_v}) {
    if (!c[slot].present()) continue;
    for (std::int64_t e = 0; e < c[slot].elements(); ++e)
      c[slot].set(e, static_cast<double>(
                         change(static_cast<std::int64_t>(c[slot][e]), e % columns < columns_needed(c, e / columns))));
  }
  return c;
}

Verdict same_as(Kernel& kernel, const Case& other, const Case& c, Match match) {
  return same_sequences(c, run_with_lse(kernel, other), run_with_lse(kernel, c), match);
}
Match bits_of_one_machine(const Kernel& kernel) {
  return bits_if(kernel, {Claim::deterministic});
}

// The keys one after another, outside of every cache.
Verdict equals_contiguous(Kernel& kernel, const Case& c) {
  return same_as(kernel, outside_of_caches(c), c, Match::bound);
}

// Pages in other places of the pool, under their new names.
Verdict page_renaming(Kernel& kernel, const Case& c) {
  const Indices names = permutation_argument(c, "pages", c.pool);
  const auto renamed = [&](std::int64_t page, bool) {
    return page >= 0 && page < c.pool ? names[static_cast<std::size_t>(page)] : page;
  };
  return same_as(kernel, with_tables(c, renamed), c, bits_of_one_machine(kernel));
}

/// Other numbers in what no key stands in; NaN where the kernel says that what is dead may hold that.
Case with_other_unused(const Kernel& kernel, Case c) {
  c.provenance.unused = kernel.manifest().claims_to(Claim::ignores_dead_values) ? "nan" : "other";
  return c;
}

// What pages of no table hold does not matter.
Verdict unused_pages_dead(Kernel& kernel, const Case& c) {
  return same_as(kernel, with_other_unused(kernel, c), c, match_of_dead_values(kernel));
}

/// "; slot 1 of page 4 matters, …" of the first slot that no key is in and that changes the answer by itself.
std::string slot_that_matters(Kernel& kernel, const Case& c, const Case& poisoned) {
  const std::int64_t page = page_size_of(c), columns = c[Slot::page_table].shape()[1];
  for (const Sequence& own : sequences_of(c)) {
    for (std::int64_t j = 0; j < columns_needed(c, own.entry) * page; ++j) {
      if (has_key(own, j)) continue;
      Case one = poisoned;
      for (const Slot slot : {Slot::q, Slot::k, Slot::v})
        one[slot] = mapped(c[slot], [&](std::int64_t e, double old) {
          const auto [b, h, row, column] = c[slot].shape().index_of(e);
          return slot != Slot::q && b == own.entry && row == j ? poisoned[slot][e] : old;
        });
      if (same_as(kernel, one, c, match_of_dead_values(kernel)).outcome != Outcome::violated) continue;
      return fmt::format("; slot {} of page {} matters, key {} of sequence {}, {}", j % page,
                         c[Slot::page_table][own.entry * columns + j / page], j, own.entry,
                         j < own.first_key ? fmt::format("whose first key is {}", own.first_key)
                                           : fmt::format("whose length is {}", own.first_key + own.keys));
    }
  }
  return {};
}

// What slots behind a length, and before the first key, hold does not matter.
Verdict tail_slots_dead(Kernel& kernel, const Case& c) {
  const Case poisoned = with_poison(kernel, c, Whose::nobody, 0);
  Verdict verdict = same_as(kernel, poisoned, c, match_of_dead_values(kernel));
  if (verdict.outcome == Outcome::violated && !in_a_proof()) verdict.reason += slot_that_matters(kernel, c, poisoned);
  return verdict;
}

// Entries of a table behind the last page that a length needs are read by nobody.
Verdict table_tail_dead(Kernel& kernel, const Case& c) {
  const bool any = terms_of(kernel).any_table_tail;
  std::int64_t turn = argument(c, "tail", 2);
  const auto changed = [&](std::int64_t page, bool is_read) -> std::int64_t {
    if (is_read) return page;
    if (any) return turn++ % 2 == 0 ? -1 : std::numeric_limits<std::int32_t>::max();
    return c.pool - 1 - std::clamp<std::int64_t>(page, 0, c.pool - 1);
  };
  return same_as(kernel, with_tables(c, changed), c, bits_of_one_machine(kernel));
}

/// Pages of another size that the kernel takes; 0: there is none.
std::int64_t other_page_size(const Kernel& kernel, const Case& c) {
  std::vector<std::int64_t> sizes = terms_of(kernel).page_sizes;
  if (sizes.empty()) sizes = {1, 2, 3, 4, 5, 8, 16, 64};
  std::erase(sizes, page_size_of(c));
  if (sizes.empty()) return 0;
  return sizes[static_cast<std::size_t>(argument(c, "size", std::ssize(sizes)))];
}

// The same tokens in pages of another size.
Verdict page_size(Kernel& kernel, const Case& c) {
  const std::int64_t size = other_page_size(kernel, c);
  if (size == 0) return skipped("the manifest's variants.paged.page_sizes lists one size");
  const Case other = in_pages(outside_of_caches(c), size, 1, seed_argument(c, "table"));
  return same_as(kernel, other, c, Match::bound);
}

/// Judged by the oracle.
Verdict judged(Kernel& kernel, const Case& c) {
  const Reply reply = answer(kernel, c, c.dtype(), /*want_lse=*/true);
  return judge_attention(c, reply.out, reply.lse, kernel.manifest().arithmetic_for(c),
                         {.ignores_dead_values = kernel.manifest().claims_to(Claim::ignores_dead_values)});
}

// Lengths of one key, of whole pages, and of a key more and less.
Verdict boundary(Kernel& kernel, const Case& c) {
  return judged(kernel, c);
}

/// The keys of a column of an entry's table, as those of another.
struct Place {
  std::int64_t entry, column;
};
Case with_page_repeated(Case c, const Place& from, const Place& to) {
  const std::int64_t page = page_size_of(c);
  for (const Slot slot : {Slot::k, Slot::v}) {
    const Tensor old = c[slot];
    const Shape& shape = old.shape();
    for (std::int64_t h = 0; h < shape[1]; ++h)
      for (std::int64_t j = 0; j < page; ++j)
        for (std::int64_t e = 0; e < shape[3]; ++e)
          c[slot].set(shape.flat(to.entry, h, to.column * page + j, e),
                      old.at(from.entry, h, from.column * page + j, e));
  }
  return c;
}
/// Under one name.
Case with_name_repeated(Case c, const Place& from, const Place& to) {
  const std::int64_t columns = c[Slot::page_table].shape()[1];
  for (const Slot slot : {Slot::page_table, Slot::page_table_v})
    if (c[slot].present()) c[slot].set(to.entry * columns + to.column, c[slot][from.entry * columns + from.column]);
  return c;
}

// Two sequences that begin with the same page share it, or have a copy each.
Verdict shared_pages(Kernel& kernel, const Case& c) {
  const std::int64_t batch = batch_of(c), s = argument(c, "s", batch),
                     t = (s + 1 + argument(c, "t", batch - 1)) % batch;
  if (columns_needed(c, s) == 0 || columns_needed(c, t) == 0) return excused("one of the sequences has no page");
  const Case copies = with_page_repeated(c, {s, 0}, {t, 0});
  return same_as(kernel, with_name_repeated(copies, {s, 0}, {t, 0}), copies, bits_of_one_machine(kernel));
}

// A page that stands in a table twice is the keys twice.
Verdict repeated_page(Kernel& kernel, const Case& c) {
  const std::int64_t batch = batch_of(c), first = argument(c, "s", batch);
  for (std::int64_t n = 0; n < batch; ++n) {
    const std::int64_t s = (first + n) % batch;
    if (columns_needed(c, s) < 2) continue;
    const std::int64_t column = 1 + argument(c, "column", columns_needed(c, s) - 1);
    const Case copies = with_page_repeated(c, {s, 0}, {s, column});
    return same_as(kernel, with_name_repeated(copies, {s, 0}, {s, column}), outside_of_caches(copies), Match::bound);
  }
  return excused("no sequence has two pages");
}

// Sequences in another order with their tables.
Verdict batch_permutation(Kernel& kernel, const Case& c) {
  const Indices moved = permutation_argument(c, "order", batch_of(c));
  const Result left = run_with_lse(kernel, with_batch(c, moved)), right = run_with_lse(kernel, c);
  Verdict worst;
  for (std::int64_t s = 0; s < std::ssize(moved); ++s)
    worst =
        worse_of({std::move(worst), same(of_sequence(left, s), of_sequence(right, moved[static_cast<std::size_t>(s)]),
                                         bits_if(kernel, {Claim::batch_invariant}))});
  return worst;
}

/// With more columns in the table, which name pages that nobody reads.
Case with_more_columns(const Case& c, std::int64_t more) {
  const std::int64_t page = page_size_of(c), columns = c[Slot::page_table].shape()[1];
  Case wide = in_pages(outside_of_caches(c), page, 0, 0, c[Slot::page_table_v].present());
  Selection all = everything(wide);
  all.keys = cycled(keys_of(c), keys_of(c) + more * page);
  wide = select(outside_of_caches(wide), all);
  wide[Slot::kv_lengths] = c[Slot::kv_lengths];
  if (c[Slot::left_pad].present()) wide[Slot::left_pad] = c[Slot::left_pad];
  for (const Slot slot : {Slot::page_table, Slot::page_table_v}) {
    if (!c[slot].present()) continue;
    Tensor table(DType::i32, {batch_of(c), columns + more});
    for (std::int64_t e = 0; e < table.elements(); ++e) {
      const std::int64_t b = e / (columns + more), column = e % (columns + more);
      table.set(e, column < columns ? c[slot][b * columns + column] : static_cast<double>(column % c.pool));
    }
    wide[slot] = std::move(table);
  }
  wide.pool = c.pool;
  return wide;
}

// More pages in the pool, and more columns in the table, than anybody needs.
Verdict pool_size(Kernel& kernel, const Case& c) {
  Case larger = c;
  larger.pool += 1 + argument(c, "more", 8);
  const Verdict of_pool = same_as(kernel, larger, c, bits_of_one_machine(kernel));
  const Verdict of_columns = same_as(kernel, with_more_columns(c, 1 + argument(c, "columns", 3)), c,
                                     bits_if(kernel, {Claim::deterministic, Claim::padding_invariant}));
  return worse_of({of_pool, of_columns});
}

// Pages whose numbers take more than 16 bits.
Verdict far_pages(Kernel& kernel, const Case& c) {
  constexpr std::int64_t far = std::int64_t{1} << 16;
  Case away = with_tables(c, [](std::int64_t page, bool) { return page + far; });
  away.pool += far;
  return same_as(kernel, away, c, bits_of_one_machine(kernel));
}

// Pages that do not lie one behind another in memory.
Verdict strides(Kernel& kernel, const Case& c) {
  if (!kernel.manifest().strides) return skipped("the manifest's strides is false");
  // The last of them so far apart that an offset kept in 32 bits is another one.
  constexpr std::array layouts{MemoryLayout::token_major, MemoryLayout::packed, MemoryLayout::padded_rows,
                               MemoryLayout::column_major, MemoryLayout::far_heads};
  const std::int64_t count = std::ssize(layouts) - (kernel.manifest().far_strides ? 0 : 1);
  Case strided = c;
  Layouts of = layouts_of(c);
  of[Slot::k] = layouts[static_cast<std::size_t>(argument(c, "k", count))];
  of[Slot::v] = layouts[static_cast<std::size_t>(argument(c, "v", count))];
  set_layouts(strided, of);
  return same_as(kernel, strided, c, Match::bound);
}

// A sequence of length 0 reads no page and follows the policy, and is nothing to the others.
Verdict empty_sequence(Kernel& kernel, const Case& c) {
  if (kernel.manifest().fully_masked_row == FullyMaskedRow::error)
    return skipped("the manifest's fully_masked_row is error");
  const std::int64_t s = argument(c, "s", batch_of(c));
  Case emptied = c;
  emptied[Slot::kv_lengths].set(s, 0);
  if (emptied[Slot::left_pad].present()) emptied[Slot::left_pad].set(s, 0);
  if (terms_of(kernel).any_table_tail)
    emptied = with_tables(emptied, [](std::int64_t page, bool is_read) { return is_read ? page : -1; });
  const Result left = run_with_lse(kernel, emptied), right = run_with_lse(kernel, c);
  Verdict worst = obeys_policy(kernel, left, s);
  for (std::int64_t other = 0; other < batch_of(c); ++other)
    if (other != s)
      worst = worse_of({std::move(worst), same(of_sequence(left, other), of_sequence(right, other),
                                               bits_if(kernel, {Claim::batch_invariant}))});
  return worst;
}

// A call that reads leaves the pool as it was: whoever called it has looked.
Verdict read_only(Kernel& kernel, const Case& c) {
  static_cast<void>(run_with_lse(kernel, c));
  return {};
}

// Keys under one table and values under another.
Verdict independent_tables(Kernel& kernel, const Case& c) {
  if (!terms_of(kernel).two_tables) return skipped("the manifest's variants.paged.two_tables is false");
  const auto in = [&](bool own) {
    return in_pages(outside_of_caches(c), page_size_of(c), 2, seed_argument(c, "table"), own);
  };
  return same_as(kernel, in(true), in(false), Match::bound);
}

/// Lengths of keys in pages drawn by the recipe's seed.
Case in_drawn_pages(DrawnAttention drawn) {
  std::uint64_t seed = 0;
  bool large = false;
  drawn.where(lengths_of_keys).where([&](Recipe& r) { seed = r.seed, large = r.large; });
  constexpr std::array<std::int64_t, 8> sizes{1, 2, 3, 4, 5, 7, 8, 16};
  constexpr std::array<std::int64_t, 4> large_sizes{16, 32, 64, 256};
  const std::int64_t size = large ? large_sizes[(seed >> 20) % 4] : sizes[(seed >> 20) % 8];
  Case c = in_pages(drawn, size, static_cast<std::int64_t>((seed >> 24) % 4), seed, (seed >> 28) % 4 == 0);
  restate_variants(c);
  return c;
}
DrawnAttention of_pages(Draw& draw) {
  return draw.attention(period_of_tile_laws).where(sometimes_causal).where(at_least_a_key).of_sequences();
}
Case given_pages(Draw& draw) {
  return in_drawn_pages(of_pages(draw));
}
Case given_pages_of_several(Draw& draw) {
  return in_drawn_pages(of_pages(draw).where(several));
}
/// The last page of a sequence has a slot too many.
Case given_tails(Draw& draw) {
  Case c = in_drawn_pages(of_pages(draw).at_least(1, 2));
  const std::int64_t page = page_size_of(c), length = static_cast<std::int64_t>(c[Slot::kv_lengths][0]);
  if (page > 1 && length > 0 && length % page != 0) return c;
  Case other = page > 1 ? c : in_pages(outside_of_caches(c), 3, 1, 7);
  other[Slot::kv_lengths].set(0, 1);
  if (other[Slot::left_pad].present()) other[Slot::left_pad].set(0, 0);
  restate_variants(other);
  return other;
}
/// A sequence that leaves a column of its table unused.
Case given_table_tails(Draw& draw) {
  Case c = given_pages(draw);
  if (columns_needed(c, 0) < c[Slot::page_table].shape()[1]) return c;
  return with_more_columns(c, 1);
}
/// Lengths around the ends of pages.
Case given_boundaries(Draw& draw) {
  Case c = in_drawn_pages(of_pages(draw).where(several).at_least(1, 12));
  const std::int64_t page = page_size_of(c), N = keys_of(c);
  const std::array<std::int64_t, 6> lengths{page - 1, page, page + 1, 1, 2 * page, N};
  for (std::int64_t b = 0; b < batch_of(c); ++b) {
    const std::int64_t length = std::clamp<std::int64_t>(lengths[static_cast<std::size_t>((b + N) % 6)], 0, N);
    c[Slot::kv_lengths].set(b, static_cast<double>(length));
    if (c[Slot::left_pad].present())
      c[Slot::left_pad].set(b, std::min(c[Slot::left_pad][b], static_cast<double>(length)));
  }
  return c;
}
/// So narrow that 2^16 pages are a few megabytes.
Case given_narrow_pages(Draw& draw) {
  Case c = of_pages(draw)
               .where([](Recipe& r) {
                 r.large = false;
                 r.kv_heads = r.heads = std::min(r.heads, 2);
                 r.dk = std::min(r.dk, 4), r.dv = std::min(r.dv, 4);
                 r.keys = std::min(r.keys, 12);
               })
               .where(lengths_of_keys);
  c = in_pages(c, 1 + keys_of(c) % 2, 1, static_cast<std::uint64_t>(keys_of(c)));
  restate_variants(c);
  return c;
}

constexpr std::array of_any_pages{defining(hypotheses::pages, "there is nothing to speak of then")};
constexpr std::array of_several_pages =
    joined(of_any_pages, std::array{defining(hypotheses::two_sequences, "there is no other sequence then")});
constexpr std::array of_tails =
    joined(of_any_pages, std::array{defining(hypotheses::page_tail, "there is no slot that no key is in")});
constexpr std::array of_table_tails = joined(
    of_any_pages, std::array{defining(hypotheses::table_tail, "there is no entry of the table that nobody reads")});

constexpr std::string_view others = "window chunk lengths left_pad sink softcap alibi descale",
                           needs = "attention, paged";

const Property family[] = {
    {.name = "paged.equals-contiguous",
     .statement = "keys and values in pages are the same one after another",
     .source = "+",
     .needs = needs,
     .floating_point = "bound",
     .variant = "paged",
     .under = others,
     .hypotheses = of_any_pages,
     .given = given_pages,
     .check = equals_contiguous},
    {.name = "paged.page-renaming",
     .statement = "permuting the pages of the pool and renaming them in the table changes nothing",
     .source = "+",
     .needs = needs,
     .floating_point = "bitwise if deterministic",
     .variant = "paged",
     .under = others,
     .hypotheses = of_any_pages,
     .given = given_pages,
     .check = page_renaming},
    {.name = "paged.unused-pages-dead",
     .statement = "what pages of no table hold (NaN, other numbers) does not matter",
     .source = "+",
     .needs = needs,
     .floating_point = "bitwise if deterministic; NaN if ignores-dead-values",
     .variant = "paged",
     .under = others,
     .hypotheses = of_any_pages,
     .given = given_pages,
     .check = unused_pages_dead},
    {.name = "paged.tail-slots-dead",
     .statement = "what slots of a page hold that no key is in (NaN, huge) does not matter",
     .source = "+",
     .needs = needs,
     .floating_point = "inside the domain: bitwise if deterministic; NaN if ignores-dead-values",
     .variant = "paged",
     .under = others,
     .hypotheses = of_tails,
     .given = given_tails,
     .check = tail_slots_dead},
    {.name = "paged.table-tail-dead",
     .statement = "entries of the table behind the last page that a length needs are not read (where the manifest says "
                  "any: −1 and 2³¹ − 1 among them)",
     .source = "+",
     .needs = needs,
     .floating_point = "bitwise if deterministic",
     .variant = "paged",
     .under = others,
     .hypotheses = of_table_tails,
     .given = given_table_tails,
     .check = table_tail_dead},
    {.name = "paged.page-size",
     .statement = "the same tokens in pages of another size that the kernel takes are the same",
     .source = "+",
     .needs = needs,
     .floating_point = "bound",
     .variant = "paged",
     .under = others,
     .hypotheses = of_any_pages,
     .given = given_pages,
     .check = page_size},
    {.name = "paged.boundary",
     .statement = "lengths of one key, of whole pages, and of a key more or less: finite, and within the bound",
     .source = "+",
     .needs = needs,
     .floating_point = "bound",
     .variant = "paged",
     .under = others,
     .hypotheses = of_any_pages,
     .given = given_boundaries,
     .check = boundary},
    {.name = "paged.shared-pages",
     .statement = "two sequences that share a page are two with a copy each",
     .source = "+",
     .needs = needs,
     .floating_point = "bitwise if deterministic",
     .variant = "paged",
     .under = others,
     .hypotheses = of_several_pages,
     .given = given_pages_of_several,
     .check = shared_pages},
    {.name = "paged.repeated-page",
     .statement = "a page twice in one table is its keys twice",
     .source = "+",
     .needs = needs,
     .floating_point = "bound",
     .variant = "paged",
     .under = others,
     .hypotheses = of_any_pages,
     .given = [](Draw& draw) -> Case { return in_drawn_pages(of_pages(draw).at_least(1, 20)); },
     .check = repeated_page},
    {.name = "paged.batch-permutation",
     .statement = "permuting sequences with their rows of the table permutes outputs",
     .source = "+",
     .needs = needs,
     .floating_point = "bitwise if batch-invariant",
     .variant = "paged",
     .under = others,
     .hypotheses = of_several_pages,
     .given = given_pages_of_several,
     .check = batch_permutation},
    {.name = "paged.pool-size",
     .statement = "more pages in the pool and more columns in the table change nothing",
     .source = "+",
     .needs = needs,
     .floating_point = "pages: bitwise if deterministic; columns: if padding-invariant too",
     .variant = "paged",
     .under = others,
     .hypotheses = of_any_pages,
     .given = given_pages,
     .check = pool_size},
    {.name = "paged.far-pages",
     .statement = "pages whose numbers take more than 16 bits are like any others",
     .source = "+",
     .needs = needs,
     .floating_point = "bitwise if deterministic",
     .variant = "paged",
     .under = others,
     .hypotheses = of_any_pages,
     .given = given_narrow_pages,
     .check = far_pages},
    {.name = "paged.strides",
     .statement =
         "pages that do not lie one behind another, keys and values interleaved, tokens before heads, or pages "
         "beyond 2³² elements, are the same",
     .source = "+",
     .needs = "attention, paged, strides",
     .floating_point = "bound",
     .variant = "paged",
     .under = others,
     .hypotheses = of_any_pages,
     .given = given_pages,
     .check = strides},
    {.name = "paged.empty-sequence",
     .statement = "a sequence of length 0 reads no page and follows the policy, and the others are unaffected",
     .source = "+",
     .needs = needs,
     .floating_point = "bitwise if batch-invariant",
     .variant = "paged",
     .under = others,
     .hypotheses = of_several_pages,
     .given = given_pages_of_several,
     .check = empty_sequence},
    {.name = "paged.read-only",
     .statement = "the pool's bits are unchanged by a call that reads it",
     .source = "+",
     .needs = needs,
     .floating_point = "bitwise",
     .variant = "paged",
     .under = others,
     .hypotheses = of_any_pages,
     .given = given_pages,
     .check = read_only},
    {.name = "paged.independent-tables",
     .statement = "keys under one table and values under another are those under one",
     .source = "+",
     .needs = needs,
     .floating_point = "bound",
     .variant = "paged",
     .under = others,
     .hypotheses = of_any_pages,
     .given = given_pages,
     .check = independent_tables},
};

}  // namespace

std::span<const Property> paged_properties() {
  return family;
}

}  // namespace attest
