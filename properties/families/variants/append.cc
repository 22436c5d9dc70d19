// append: new keys come with a call, which writes them into the cache behind those that it holds and lets its rows see
// them. Whoever makes the call holds the cache against what it must be afterwards, bit for bit
// (core/problem/kv_cache.h), whatever the property; these speak of what is computed, in the cases where appending goes
// wrong.
#include <algorithm>
#include <array>
#include <utility>

#include "core/problem/fields.h"
#include "core/problem/kv_cache.h"
#include "core/problem/sequences.h"
#include "core/problem/sight.h"
#include "properties/arrangement/arguments.h"
#include "properties/catalogue/property.h"
#include "properties/families/variants/sequence_laws.h"
#include "properties/generators/draw.h"
#include "properties/language/answer.h"
#include "properties/language/domain.h"

namespace attest {
namespace {

Case with_all_there(Case c) {
  drop_variant(c, append_variant.name);
  return c;
}

// The call that appends sees what one sees that finds all keys in the cache.
Verdict append(Kernel& kernel, const Case& c) {
  return same_sequences(c, run_with_lse(kernel, c), run_with_lse(kernel, with_all_there(c)), Match::bound);
}

// What the slots hold before, those of the new keys among them, does not matter.
Verdict write(Kernel& kernel, const Case& c) {
  Case other = c;
  other.provenance.unused = kernel.manifest().claims_to(Claim::ignores_dead_values) ? "nan" : "other";
  return same_sequences(c, run_with_lse(kernel, other), run_with_lse(kernel, c), match_of_dead_values(kernel));
}

// New keys that go to two pages.
Verdict paged_append(Kernel& kernel, const Case& c) {
  Case contiguous = outside_of_caches(c);
  contiguous.append = c.append;
  return same_sequences(c, run_with_lse(kernel, c), run_with_lse(kernel, contiguous), Match::bound);
}

/// Of what entries have at least, now and then all: then the cache was empty; else as many keys as queries, or any.
std::int64_t tokens_of(const Case& c, std::uint64_t seed) {
  const std::int64_t most = most_append(c), any = 1 + static_cast<std::int64_t>((seed >> 8) % 64);
  const std::int64_t wanted = seed % 4 == 0 ? most : seed % 4 == 1 ? queries_of(c) : any;
  return std::clamp<std::int64_t>(wanted, std::min<std::int64_t>(most, 1), most);
}

/// Every entry has so many keys at least.
Case given_new_keys(Draw& draw, std::int64_t least) {
  std::uint64_t seed = 0;
  Case c = draw.attention(period_of_tile_laws)
               .where(sometimes_causal)
               .at_least(1, static_cast<std::int32_t>(least))
               .of_sequences()
               .where(lengths_of_keys)
               .where([&](Recipe& r) { seed = r.seed; });
  const auto behind = static_cast<double>(keys_of(c) - least);
  Tensor &lengths = c[Slot::kv_lengths], &pad = c[Slot::left_pad];
  for (std::int64_t b = 0; b < lengths.elements(); ++b) {
    if (pad.present()) pad.set(b, std::min(pad[b], behind));
    lengths.set(b, std::max(lengths[b], (pad.present() ? pad[b] : 0) + static_cast<double>(least)));
  }
  c.append = tokens_of(c, seed >> 32);
  return c;
}
Case given_stated(Draw& draw) {
  Case c = given_new_keys(draw, 1);
  restate_variants(c);
  return c;
}
/// In pages of fewer keys than come, so that each entry's go to two at least.
Case given_pages(Draw& draw) {
  Case c = given_new_keys(draw, 2);
  const std::int64_t tokens = std::max<std::int64_t>(c.append, 2), page = tokens - 1;
  c = in_pages(outside_of_caches(c), page, 2, 1 + static_cast<std::uint64_t>(keys_of(c)));
  c.append = tokens;
  restate_variants(c);
  return c;
}

constexpr std::array of_new_keys{defining(hypotheses::new_keys, "there is nothing to speak of then")};
constexpr std::array of_two_pages{defining(hypotheses::crossed_page, "there is no boundary to cross then")};

const Property family[] = {
    {.name = "cache.append",
     .statement = "append then attend is attention over the concatenation; at a length of 0, over the new keys alone",
     .source = "+",
     .needs = "attention, append",
     .floating_point = "bound; the cache afterwards: bitwise",
     .variant = "append",
     .under = "window chunk lengths left_pad paged cache_index sink softcap alibi descale",
     .hypotheses = of_new_keys,
     .given = given_stated,
     .check = append},
    {.name = "cache.write",
     .statement = "the slots behind the length hold k_new and v_new afterwards, bit for bit, and every other slot is "
                  "unchanged; what they held before (NaN) does not matter",
     .source = "+",
     .needs = "attention, append",
     .floating_point = "the cache afterwards: bitwise; outputs: bitwise if deterministic, NaN if ignores-dead-values",
     .variant = "append",
     .under = "window chunk lengths left_pad paged cache_index sink softcap alibi descale",
     .hypotheses = of_new_keys,
     .given = given_stated,
     .check = write},
    {.name = "cache.paged-append",
     .statement = "an append across a page boundary writes both pages and nothing else, and is that to a cache of one "
                  "piece",
     .source = "+",
     .needs = "attention, append, paged",
     .floating_point = "bound; the cache afterwards: bitwise",
     .variant = "append",
     .under = "window chunk lengths left_pad paged sink softcap alibi descale",
     .hypotheses = of_two_pages,
     .given = given_pages,
     .check = paged_append},
};

}  // namespace

std::span<const Property> append_properties() {
  return family;
}

}  // namespace attest
