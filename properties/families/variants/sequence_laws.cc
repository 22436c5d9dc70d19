#include "properties/families/variants/sequence_laws.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "core/problem/fields.h"
#include "core/problem/sequences.h"
#include "core/problem/sight.h"
#include "core/support/printed.h"
#include "properties/arrangement/any_number.h"
#include "properties/arrangement/arguments.h"
#include "properties/language/agree.h"
#include "properties/language/answer.h"
#include "properties/language/domain.h"

namespace attest {

Match match_of_company(const Kernel& kernel, const Case& c) {
  return has_variant(c, packed_variant.name) ? bits_if(kernel, {Claim::batch_invariant})
                                             : bits_if(kernel, {Claim::batch_invariant, Claim::padding_invariant});
}

Verdict same(const Result& left, const Result& right, Match match) {
  return worse_of({agree_in_domain({left, right}, match), agree_in_lse_in_domain({left, right}, match)});
}

std::int64_t some_sequence(const Case& c, std::string_view name) {
  const std::int64_t count = sequence_count(c), first = argument(c, name, count);
  std::int64_t found = first;
  for (std::int64_t n = 0, best = -1; n < count; ++n) {
    const Sequence one = sequence_of(c, (first + n) % count);
    const int good = one.queries == 0 ? 0 : one.keys == 0 ? 1 : 2;
    if (good > best) best = good, found = (first + n) % count;
  }
  return found;
}

namespace {

/// What takes the place of numbers that are not to matter: NaN, or where the kernel does not say that dead ones may
/// hold that, large ones.
std::function<double(double)> poison(const Kernel& kernel, const Case& c, Slot slot) {
  if (kernel.manifest().claims_to(Claim::ignores_dead_values) && argument(c, "poison", 2) == 1)
    return [](double) { return std::numeric_limits<double>::quiet_NaN(); };
  const bool large = slot == Slot::v && argument(c, "large", 2) == 1;
  const double most = format_of(c.v().dtype()).largest / 4 / static_cast<double>(std::max<std::int64_t>(keys_of(c), 1));
  return [large, most](double old) { return any_number(large ? most : old == 0 ? 1 : -old); };
}

}  // namespace

Case with_poison(const Kernel& kernel, const Case& c, Whose whose, std::int64_t s) {
  Case changed = c;
  for (const Slot slot : {Slot::q, Slot::k, Slot::v}) {
    changed[slot] = changed_rows(c, slot, whose, s, poison(kernel, c, slot));
    for (std::int64_t e = 0; e < changed[slot].elements(); ++e)
      if (std::isnan(changed[slot][e])) changed.provenance.non_finite = "yes";
  }
  return changed;
}

Verdict obeys_policy(const Kernel& kernel, const Result& all, std::int64_t s) {
  const FullyMaskedRow policy = kernel.manifest().fully_masked_row;
  if (in_a_proof() || (policy != FullyMaskedRow::nan && policy != FullyMaskedRow::zero)) return {};
  const Result rows = of_sequence(all, s);
  for (std::int64_t e = 0; e < rows.elements(); ++e) {
    const double found = rows.run().out()[rows.origin(e)];
    // A row that has a sink is 0 whatever the policy says of others.
    const Tensor& sinks = rows.run().problem()[Slot::sink];
    const std::int64_t h = rows.run().shape().index_of(rows.origin(e))[1];
    const bool zero = policy == FullyMaskedRow::zero || (sinks.present() && std::isfinite(sinks[h]));
    if (zero ? found == 0 : std::isnan(found)) continue;
    return violated(
        Violation::bound,
        fmt::format("a row of sequence {}, which has no key, is {:.6g}; the manifest's fully_masked_row is {}", s,
                    printed(found), name_of(policy)));
  }
  return {};
}

Verdict same_sequences(const Case& c, const Result& left, const Result& right, Match match) {
  Verdict worst;
  for (std::int64_t s = 0; s < sequence_count(c); ++s)
    worst = worse_of({std::move(worst), same(of_sequence(left, s), of_sequence(right, s), match)});
  return worst;
}

void sometimes_causal(Recipe& r) {
  r.causal = r.seed % 3 == 0 ? Causal::none : r.seed % 3 == 1 ? Causal::top_left : Causal::bottom_right;
}
void several(Recipe& r) {
  r.batch = std::max(r.batch, r.large ? 2 : 2 + static_cast<std::int32_t>((r.seed >> 33) % 3));
}
void at_least_a_key(Recipe& r) {
  r.queries = std::max(r.queries, 1), r.keys = std::max(r.keys, 1);
}

void lengths_of_keys(Recipe& r) {
  const LengthKind others[] = {LengthKind::uniform, LengthKind::edges};
  r.lengths = r.seed % 4 == 0 ? others[(r.seed >> 2) % 2] : LengthKind::keys;
}

}  // namespace attest
