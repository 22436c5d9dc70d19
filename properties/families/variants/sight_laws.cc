#include "properties/families/variants/sight_laws.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/kernel/formal.h"
#include "core/kernel/limits.h"
#include "core/oracle/oracle.h"
#include "core/support/printed.h"
#include "properties/arrangement/any_number.h"
#include "properties/arrangement/arguments.h"
#include "properties/arrangement/arrange.h"
#include "properties/arrangement/masks.h"
#include "properties/arrangement/within_limits.h"
#include "properties/families/row_policy.h"
#include "properties/generators/later_arguments.h"
#include "properties/language/answer.h"
#include "properties/language/domain.h"
#include "properties/language/not_judged.h"
#include "properties/language/weights.h"

namespace attest::sight_laws {
namespace {

bool has_boolean_mask(const Kernel& kernel, const Case& c) {
  return argument(c, "boolean", 2) == 1 || !kernel.manifest().additive_masks;
}

/// Q = 0.
Case with_even_weights(Case c) {
  c[Slot::q] = mapped(c.q(), [](std::int64_t, double) { return 0.0; });
  return c;
}

Case with_sight_as_mask(const Kernel& kernel, const Case& c) {
  Case alone = c;
  alone.causal = Causal::none;
  Case plain = with_causal_as_mask(alone, has_boolean_mask(kernel, c));
  plain.causal = c.causal;
  return plain;
}

}  // namespace

Sight seen_by(const Case& c, std::int64_t i) {
  return sight(sight_rule(c), i, queries_of(c), keys_of(c));
}

Indices range(std::int64_t first, std::int64_t last) {
  Indices all;
  for (std::int64_t i = first; i < last; ++i) all.push_back(i);
  return all;
}

Causal some_alignment(const Kernel& kernel, const Case& c, const Variant& variant) {
  if (c.causal != Causal::none) return c.causal;
  if (c.alignment != Causal::none) return c.alignment;
  const std::vector<Causal>& all = kernel.manifest().variants.at(std::string(variant.name)).alignment;
  return all[static_cast<std::size_t>(argument(c, "alignment", std::ssize(all)))];
}

Case with_one_value(const Case& c, std::int64_t key) {
  const std::int64_t N = keys_of(c), dv = c.v().shape()[3];
  Case plain = with_even_weights(c);
  plain[Slot::v] = mapped(c.v(), [&](std::int64_t e, double) { return e / dv % N == key ? 1.0 : 0.0; });
  return plain;
}

Verdict same(Kernel& kernel, const Case& left, const Case& right, Match match) {
  const Result one = run_with_lse(kernel, within_reach(kernel, left)),
               other = run_with_lse(kernel, within_reach(kernel, right));
  return worse_of({agree({one, other}, match, match == Match::bits), agree_in_lse({one, other}, match)});
}

Verdict equals_mask(Kernel& kernel, const Case& c) {
  return same(kernel, c, with_sight_as_mask(kernel, c), Match::bound);
}

Verdict intersects(Kernel& kernel, const Case& c) {
  return same(kernel, c, with_causal_as_mask(c, has_boolean_mask(kernel, c)), Match::bound);
}

// The weight of a hidden key is exactly 0 whatever hides it: e^s of a score that is -inf, or a key that is left out.
Verdict visible_set(Kernel& kernel, const Case& c) {
  const WeightBlocks weights = read_weights(kernel, with_even_weights(c));
  const std::int64_t M = queries_of(c);
  std::optional<Verdict> worst;
  for (std::int64_t block = 0; block < std::ssize(weights.blocks); ++block) {
    const Result& read = weights.blocks[static_cast<std::size_t>(block)];
    std::vector<double> exact, slack;
    std::vector<std::int64_t> hidden_keys;
    for (std::int64_t e = 0; e < read.elements(); ++e) {
      const Sight seen = seen_by(c, e / weights.width % M);
      const std::int64_t j = block * weights.width + e % weights.width;
      const bool sees = seen.sees(j);
      exact.push_back(sees ? inverse_of(count_of(seen.last - seen.first)) : 0.0);
      // 1/n is rounded.
      slack.push_back(sees ? exact.back() * 0x1p-53 : 0.0);
      if (!sees && j < keys_of(c) && seen.first < seen.last) hidden_keys.push_back(e);
    }
    const Numbers found(read);
    Verdict one = agree({in_a_proof() ? found : found.loosened(slack), Numbers(read.shape(), exact)});
    for (const std::int64_t e : hidden_keys) {
      if (in_a_proof() || found.value(e) == 0 || found.excuse(e) != Excuse::none) continue;
      const std::int64_t row = e / weights.width % M, j = block * weights.width + e % weights.width;
      one = violated(Violation::bound,
                     fmt::format("row {} sees the keys [{}, {}) and weighs key {} with {:.6g}", row,
                                 seen_by(c, row).first, seen_by(c, row).last, j, printed(found.value(e))));
      break;
    }
    worst = worst ? worse_of({std::move(*worst), std::move(one)}) : std::move(one);
  }
  return worst.value_or(excused("N = 0: no row sees a key"));
}

Verdict row_locality(Kernel& kernel, const Case& c) {
  const std::int64_t M = queries_of(c), N = keys_of(c);
  if (M == 0) return {};
  const std::int64_t i = argument(c, "i", M);
  const Sight seen = seen_by(c, i);
  Indices rows;  // that see no more than row i does
  for (std::int64_t r = 0; r < M; ++r)
    if (const Sight other = seen_by(c, r); seen.first <= other.first && other.last <= seen.last) rows.push_back(r);
  if (seen.first == 0 && seen.last == N) return excused("the row's position hides no key");
  const bool dead = std::cmp_equal(rows.size(), M) && argument(c, "poison", 2) == 1;
  const bool large = argument(c, "large", 2) == 1;
  const double most = format_of(c.v().dtype()).largest / 4 / static_cast<double>(N);
  Case changed = c;
  for (const Slot slot : {Slot::k, Slot::v}) {
    const std::int64_t width = c[slot].shape()[3];
    changed[slot] = mapped(c[slot], [&](std::int64_t e, double old) {
      if (seen.sees(e / width % N)) return old;
      if (dead) return std::numeric_limits<double>::quiet_NaN();
      return any_number(slot == Slot::v && large ? most : -old);
    });
  }
  if (dead) changed.provenance.non_finite = "yes";
  Match match = match_of_dead_values(kernel);
  if (dead && bits_if(kernel, {Claim::ignores_dead_values}) == Match::bound) match = Match::bound;
  const Result left = run_with_lse(kernel, changed).queries(rows), right = run_with_lse(kernel, c).queries(rows);
  return worse_of({agree_in_domain({left, right}, match), agree_in_lse_in_domain({left, right}, match)});
}

namespace {

/// The keys [first, last), where the manifest lets a problem have so many.
std::optional<Indices> keys_allowed(const Kernel& kernel, std::int64_t first, std::int64_t last) {
  const AllowedExtents allowed = keys_within(kernel);
  return last > first && allowed.has(last - first) ? std::optional(range(first, last)) : std::nullopt;
}

Verdict no_such_length(std::int64_t keys) {
  return skipped(fmt::format("the manifest allows no problem of {} keys", keys));
}

}  // namespace

Verdict slice(Kernel& kernel, const Case& c) {
  if (queries_of(c) == 0) return {};
  const std::int64_t i = argument(c, "i", queries_of(c));
  const Sight seen = seen_by(c, i);
  if (seen.first == seen.last) return excused("the row's position shows it no key");
  const std::optional<Indices> keys = keys_allowed(kernel, seen.first, seen.last);
  if (!keys) return no_such_length(seen.last - seen.first);
  Case plain = c;
  drop_positions(plain);
  return agree({run(kernel, c).queries({i}), run_rows(kernel, with_keys(plain, *keys), {i})}, Match::bound);
}

namespace {

/// `most`, or less by a whole multiple of `step`, but no less than `least`: a length that the manifest allows, of the
/// case's own choice.
std::optional<std::int64_t> some_length(const Kernel& kernel, const Case& c, std::int64_t least, std::int64_t most,
                                        std::int64_t step) {
  const AllowedExtents allowed = keys_within(kernel);
  const std::int64_t count = (most - least) / step + 1, start = argument(c, "kept", count);
  for (std::int64_t n = 0; n < count; ++n)
    if (const std::int64_t length = most - (count - 1 - (start + n) % count) * step; length > 0 && allowed.has(length))
      return length;
  return std::nullopt;
}

}  // namespace

Verdict eviction(Kernel& kernel, const Case& c, std::int64_t first, std::int64_t step) {
  const std::int64_t N = keys_of(c);
  const std::optional<std::int64_t> kept = some_length(kernel, c, std::max<std::int64_t>(N - first, 1), N - step, step);
  if (!kept) return no_such_length(N - step);
  return same(kernel, with_keys(c, range(N - *kept, N)), c, Match::bound);
}

Verdict tail(Kernel& kernel, const Case& c, std::int64_t last) {
  const std::int64_t N = keys_of(c);
  const std::optional<std::int64_t> kept = some_length(kernel, c, std::max<std::int64_t>(last, 1), N - 1, /*step=*/1);
  if (!kept) return no_such_length(N - 1);
  const Case shorter = with_keys(c, range(0, *kept));
  const Match match = bits_if(kernel, {Claim::padding_invariant});
  const Result left = run_with_lse(kernel, within_reach(kernel, shorter)), right = run_with_lse(kernel, c);
  return worse_of({agree_in_domain({left, right}, match), agree_in_lse({left, right}, Match::bound)});
}

Verdict empty_row(Kernel& kernel, const Case& c) {
  const std::int64_t M = queries_of(c);
  const auto is_empty = [&](std::int64_t i) {
    const Sight seen = seen_by(c, i);
    return seen.first == seen.last;
  };
  Indices empty;
  for (std::int64_t i = 0; i < M; ++i)
    if (is_empty(i)) empty.push_back(i);
  if (kernel.manifest().fully_masked_row == FullyMaskedRow::error) return rejects(kernel, c);
  const std::int64_t i = empty[static_cast<std::size_t>(argument(c, "i", std::ssize(empty)))];
  const Result o = run_with_lse(kernel, c);
  Verdict policy = obeys_row_policy(kernel, c, o, i);
  // The first ones are deleted at the bottom right and the last ones at the top left, which moves no other row.
  const bool bottom = c.alignment == Causal::bottom_right;
  std::int64_t gone = 0;
  while (gone < M && is_empty(bottom ? gone : M - 1 - gone)) ++gone;
  const Indices rows = bottom ? range(gone, M) : range(0, M - gone);
  if (gone == 0 || rows.empty()) return policy;
  const Case others = with_queries(c, rows);
  if (!why_unsupported(kernel.manifest(), others).empty()) return policy;
  return worse_of(
      {std::move(policy), agree({o.queries(rows), run(kernel, others)}, bits_if(kernel, {Claim::batch_invariant}),
                                /*about_bits=*/true)});
}

Verdict leading_blocks(Kernel& kernel, const Case& c) {
  const Reply reply = answer(kernel, c);
  return judge_attention(c, reply.out, reply.lse, kernel.manifest().arithmetic_for(c),
                         {.ignores_dead_values = kernel.manifest().claims_to(Claim::ignores_dead_values)});
}

Verdict alignments_agree(Kernel& kernel, const Case& c) {
  Case other = c;
  other.alignment = c.alignment == Causal::top_left ? Causal::bottom_right : Causal::top_left;
  other = within_reach(kernel, std::move(other));
  return same(kernel, c, other, bits_if(kernel, {Claim::deterministic}));
}

Verdict one_key(Kernel& kernel, const Case& c) {
  const Shape& v = c.v().shape();
  const std::int64_t heads = heads_of(c), group = heads / v[1], M = queries_of(c);
  std::vector<double> own;
  for (std::int64_t b = 0; b < v[0]; ++b)
    for (std::int64_t h = 0; h < heads; ++h)
      for (std::int64_t e = 0; e < M * v[3]; ++e) own.push_back(c.v()[(b * v[1] + h / group) * v[2] * v[3] + e]);
  const Result o = run_with_lse(kernel, c);
  Verdict verdict = agree({Numbers(o), Numbers({v[0], heads, M, v[3]}, own)});
  const Tensor& lse = o.run().lse();
  for (std::int64_t row = 0; lse.present() && row < lse.elements(); ++row) {
    const RowBound& bound = o.run().row_bound(row);
    if (bound.excuse != Excuse::none) continue;
    const Score score = score_of(c, row / M / heads, row / M % heads, row % M, row % M);
    if (std::fabs(lse[row] - score.value) * (1 - 0x1p-52) <= bound.lse_allowed + score.error) continue;
    return worse_of({std::move(verdict),
                     violated(Violation::lse, fmt::format("lse {} over one key is {:.17g}, and its score {:.17g}", row,
                                                          lse[row], score.value))});
  }
  return verdict;
}

Verdict lse_monotone(Kernel& kernel, const Case& narrow, const Case& wide, std::string_view how) {
  if (std::string why = why_no_lse(kernel.manifest(), narrow); !in_a_proof() && !why.empty())
    return skipped(std::move(why));
  const Result few = run_with_lse(kernel, narrow), all = run_with_lse(kernel, within_reach(kernel, wide));
  if (!in_a_proof() && !few.run().lse().present()) return skipped("a scalar that no dtype holds answers no lse");
  const std::int64_t rows = batch_of(narrow) * heads_of(narrow) * queries_of(narrow);
  bool any = false;
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t i = row % queries_of(narrow);
    const Sight seen = seen_by(narrow, i), more_seen = seen_by(wide, i);
    if (seen.first == seen.last || (seen.first == more_seen.first && seen.last == more_seen.last)) continue;
    if (in_a_proof()) {
      // e^lse is the sum of e^s over the keys that are seen: more of them, more terms, and each is positive.
      using Traits = ScalarTraits<Expression>;
      const Expression &fewer = few.run().formal_lse()[row], &larger = all.run().formal_lse()[row];
      // A mask may hide all of them, or those that are more.
      if (fewer.kind() == ProofKind::undefined || GenericInputs::current().identical(fewer, larger)) continue;
      const Expression less = Traits::exp(fewer), more = Traits::exp(larger);
      const Numbers one(Shape{1}, std::vector<double>{0.0});
      const Verdict positive = positive_formulas(one.formally([&](std::int64_t) { return more - less; }));
      if (positive.outcome != Outcome::held) return positive;
      any = true;
      continue;
    }
    const RowBound &a = few.run().row_bound(row), &b = all.run().row_bound(row);
    if (a.excuse != Excuse::none || b.excuse != Excuse::none) continue;
    any = true;
    const double x = few.run().lse()[row], y = all.run().lse()[row];
    if ((x - y) * (1 - 0x1p-52) <= a.lse_allowed + b.lse_allowed) continue;
    return violated(Violation::lse,
                    fmt::format("lse {} falls from {:.17g} to {:.17g} {}", row, printed(x), printed(y), how));
  }
  if (any) return {};
  return excused("no row sees more keys by it");
}

void aligned(Recipe& r, Causal alignment) {
  r.causal = Causal::none;
  argument_in(r.arguments, &Problem::alignment) = static_cast<double>(alignment);
}

void any_causal_form(Recipe& r) {
  r.causal = r.seed % 2 == 0 ? Causal::top_left : Causal::bottom_right;
}

}  // namespace attest::sight_laws
