// window: a row sees the keys around its position alone, those of [p - left, p + right].
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/kernel/limits.h"
#include "core/oracle/oracle.h"
#include "core/problem/fields.h"
#include "core/support/printed.h"
#include "properties/arrangement/any_number.h"
#include "properties/arrangement/arguments.h"
#include "properties/arrangement/arrange.h"
#include "properties/arrangement/masks.h"
#include "properties/arrangement/within_limits.h"
#include "properties/catalogue/property.h"
#include "properties/families/row_policy.h"
#include "properties/families/variants/not_judged.h"
#include "properties/generators/draw.h"
#include "properties/language/agree.h"
#include "properties/language/answer.h"
#include "properties/language/domain.h"
#include "properties/language/refute.h"
#include "properties/language/weights.h"

namespace attest {
namespace {

const VariantTerms& terms_of(const Kernel& kernel) {
  return kernel.manifest().variants.at(std::string(window_variant.name));
}

Case with_window(Case c, std::int64_t left, std::int64_t right, Causal alignment) {
  c.window_left = left, c.window_right = right;
  c.alignment = alignment;
  settle_alignment(c);
  return c;
}

/// An alignment that the kernel has: the causal form's, where there is one.
Causal some_alignment(const Kernel& kernel, const Case& c) {
  if (c.causal != Causal::none) return c.causal;
  const std::vector<Causal>& all = terms_of(kernel).alignment;
  return all[static_cast<std::size_t>(argument(c, "alignment", std::ssize(all)))];
}

Sight seen_by(const Case& c, std::int64_t i) {
  return sight(sight_rule(c), i, queries_of(c), keys_of(c));
}

Indices range(std::int64_t first, std::int64_t last) {
  Indices all;
  for (std::int64_t i = first; i < last; ++i) all.push_back(i);
  return all;
}

/// Outputs and log-sum-exps.
Verdict same(Kernel& kernel, const Case& left, const Case& right, Match match) {
  const Result one = run_with_lse(kernel, within_reach(kernel, left)),
               other = run_with_lse(kernel, within_reach(kernel, right));
  return worse_of({agree({one, other}, match, match == Match::bits), agree_in_lse({one, other}, match)});
}

/// The keys that the window hides, hidden by the mask; a causal form stays. A boolean mask where that is asked for or
/// there is no other.
Case with_window_as_mask(const Kernel& kernel, const Case& c) {
  const bool boolean = argument(c, "boolean", 2) == 1 || !kernel.manifest().additive_masks;
  Case alone = c;
  alone.causal = Causal::none;
  Case plain = with_causal_as_mask(alone, boolean);
  plain.causal = c.causal;
  return plain;
}

// (L, R, alignment) is the boolean mask p - L <= j <= p + R.
Verdict equals_mask(Kernel& kernel, const Case& c) {
  return same(kernel, c, with_window_as_mask(kernel, c), Match::bound);
}

// Window, mask and causal form are one mask that shows what all of them show.
Verdict intersects(Kernel& kernel, const Case& c) {
  const bool boolean = argument(c, "boolean", 2) == 1 || !kernel.manifest().additive_masks;
  return same(kernel, c, with_causal_as_mask(c, boolean), Match::bound);
}

// Q = 0 and V = I: a row's weights are 1/n on the n keys that it sees, and 0 on the others, which is exactly 0 whatever
// hides them: e^s of a score that is -inf, or a key that is left out.
Verdict visible_set(Kernel& kernel, const Case& c) {
  Case even = c;
  even[Slot::q] = mapped(c.q(), [](std::int64_t, double) { return 0.0; });
  const WeightBlocks weights = read_weights(kernel, even);
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
                     fmt::format("row {} weighs key {}, which its window [{}, {}) hides, with {:.6g}", row, j,
                                 seen_by(c, row).first, seen_by(c, row).last, printed(found.value(e))));
      break;
    }
    worst = worst ? worse_of({std::move(*worst), std::move(one)}) : std::move(one);
  }
  return worst.value_or(Verdict{.outcome = Outcome::excused, .reason = "N = 0: no row sees a key"});
}

/// The least ends with which no row's window hides a key.
std::pair<std::int64_t, std::int64_t> wide_ends(const Case& c, Causal alignment) {
  const std::int64_t M = std::max<std::int64_t>(queries_of(c), 1), N = std::max<std::int64_t>(keys_of(c), 1);
  return alignment == Causal::bottom_right ? std::pair(N - 1, M - 1) : std::pair(M - 1, N - 1);
}

// Bottom-right L >= N - 1 and R >= M - 1, top-left L >= M - 1 and R >= N - 1: as no window.
Verdict wide(Kernel& kernel, const Case& c) {
  const VariantTerms& terms = terms_of(kernel);
  const Causal alignment = some_alignment(kernel, c);
  auto [left, right] = wide_ends(c, alignment);
  const std::int64_t more[] = {0, 1, std::int64_t{1} << 20};
  left += more[argument(c, "left", 3)], right += more[argument(c, "right", 3)];
  const std::int64_t ends = argument(c, "ends", 4);  // both ones, half of the time
  if (!terms.left || (terms.right && ends == 2)) left = -1;
  if (!terms.right || (terms.left && ends == 3)) right = -1;
  return same(kernel, with_window(c, left, right, alignment), c, Match::bound);
}

// Refuted: L >= N - 2, or R >= M - 2, or R >= N where M > N + 1, is no window at the bottom right. Q = 0, and V is 1 at
// the key that the first or the last row does not see then, else 0.
Verdict wide_is_sharp(Kernel& kernel, const Case& c) {
  const VariantTerms& terms = terms_of(kernel);
  if (std::ranges::count(terms.alignment, Causal::bottom_right) == 0)
    return {.outcome = Outcome::skipped, .reason = "the manifest's variants.window.alignment has no bottom-right"};
  const std::int64_t M = queries_of(c), N = keys_of(c);
  std::vector<std::pair<std::int64_t, std::int64_t>> ends;
  if (terms.left && N >= 2) ends.emplace_back(N - 2, -1);
  if (terms.right && M >= 2 && N >= 2) ends.emplace_back(-1, M - 2);
  if (terms.right && M > N + 1) ends.emplace_back(-1, N);
  if (ends.empty()) return {.outcome = Outcome::skipped, .reason = "has no window that is wide by less than a key"};
  const auto [left, right] = ends[static_cast<std::size_t>(argument(c, "which", std::ssize(ends)))];
  const std::int64_t lost = left >= 0 ? 0 : N - 1, dv = c.v().shape()[3];
  return refuted(/*budget=*/1, [&](int) {
    Case plain = c;
    plain[Slot::q] = mapped(c.q(), [](std::int64_t, double) { return 0.0; });
    plain[Slot::v] = mapped(c.v(), [&](std::int64_t e, double) { return e / dv % N == lost ? 1.0 : 0.0; });
    const Case windowed = with_window(plain, left, right, Causal::bottom_right);
    Indices rows;  // that see a key, and not the one that is lost
    for (std::int64_t i = 0; i < M; ++i)
      if (const Sight seen = seen_by(windowed, i); seen.first < seen.last && !seen.sees(lost)) rows.push_back(i);
    if (rows.empty()) rows = {left >= 0 ? M - 1 : 0};
    return Attempt{run(kernel, windowed).queries(rows), run(kernel, plain).queries(rows),
                   fmt::format("M = {}, N = {}, a window of ({}, {}) at the bottom right, Q = 0, V = 1 at key {} alone",
                               M, N, left, right, lost)};
  });
}

// A causal form is the window (-1, 0) with its alignment; a left end stays.
Verdict causal_is_right_zero(Kernel& kernel, const Case& c) {
  Case window = c;
  window.alignment = c.causal;
  window.causal = Causal::none;
  window.window_right = 0;
  return same(kernel, c, window, Match::bound);
}

// o_i and lse_i do not depend on k_j and v_j outside of [p - L, p + R].
Verdict row_locality(Kernel& kernel, const Case& c) {
  const std::int64_t M = queries_of(c), N = keys_of(c);
  if (M == 0) return {};
  const std::int64_t i = argument(c, "i", M);
  const Sight seen = seen_by(c, i);
  Indices rows;  // that see no more than row i does
  for (std::int64_t r = 0; r < M; ++r)
    if (const Sight other = seen_by(c, r); seen.first <= other.first && other.last <= seen.last) rows.push_back(r);
  if (seen.first == 0 && seen.last == N)
    return {.outcome = Outcome::excused, .reason = "the row's window hides no key"};
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

/// The keys [first, last), where the manifest lets a problem have so many.
std::optional<Indices> keys_allowed(const Kernel& kernel, std::int64_t first, std::int64_t last) {
  const AllowedExtents allowed = keys_within(kernel);
  return last > first && allowed.has(last - first) ? std::optional(range(first, last)) : std::nullopt;
}

Verdict no_such_length(std::int64_t keys) {
  return {.outcome = Outcome::skipped, .reason = fmt::format("the manifest allows no problem of {} keys", keys)};
}

// Row i is attention over the keys of its window alone; a single query's, at the bottom right, are the last L + 1.
Verdict slice(Kernel& kernel, const Case& c) {
  if (queries_of(c) == 0) return {};
  const std::int64_t i = argument(c, "i", queries_of(c));
  const Sight seen = seen_by(c, i);
  if (seen.first == seen.last) return {.outcome = Outcome::excused, .reason = "the row's window holds no key"};
  const std::optional<Indices> keys = keys_allowed(kernel, seen.first, seen.last);
  if (!keys) return no_such_length(seen.last - seen.first);
  Case plain = c;
  drop_positions(plain);
  return agree({run(kernel, c).queries({i}), run_rows(kernel, with_keys(plain, *keys), {i})}, Match::bound);
}

/// A length from `least` to `most` that the manifest allows, of the case's own choice.
std::optional<std::int64_t> some_length(const Kernel& kernel, const Case& c, std::int64_t least, std::int64_t most) {
  const AllowedExtents allowed = keys_within(kernel);
  const std::int64_t count = most - least + 1, start = argument(c, "kept", count);
  for (std::int64_t n = 0; n < count; ++n)
    if (const std::int64_t length = least + (start + n) % count; length > 0 && allowed.has(length)) return length;
  return std::nullopt;
}

// Bottom-right: the keys before every row's window may be deleted.
Verdict eviction(Kernel& kernel, const Case& c) {
  const std::int64_t M = queries_of(c), N = keys_of(c);
  std::int64_t first = N;
  for (std::int64_t i = 0; i < M; ++i)
    if (const Sight seen = seen_by(c, i); seen.first < seen.last) first = std::min(first, seen.first);
  const std::optional<std::int64_t> kept = some_length(kernel, c, std::max<std::int64_t>(N - first, 1), N - 1);
  if (!kept) return no_such_length(N - 1);
  return same(kernel, with_keys(c, range(N - *kept, N)), c, Match::bound);
}

// Top-left: the keys behind every row's window may be deleted.
Verdict tail(Kernel& kernel, const Case& c) {
  const std::int64_t M = queries_of(c), N = keys_of(c);
  std::int64_t last = 0;
  for (std::int64_t i = 0; i < M; ++i)
    if (const Sight seen = seen_by(c, i); seen.first < seen.last) last = std::max(last, seen.last);
  const std::optional<std::int64_t> kept = some_length(kernel, c, std::max<std::int64_t>(last, 1), N - 1);
  if (!kept) return no_such_length(N - 1);
  const Case shorter = with_keys(c, range(0, *kept));
  const Match match = bits_if(kernel, {Claim::padding_invariant});
  const Result left = run_with_lse(kernel, within_reach(kernel, shorter)), right = run_with_lse(kernel, c);
  return worse_of({agree_in_domain({left, right}, match), agree_in_lse({left, right}, Match::bound)});
}

// p + R < 0 or p - L >= N: the policy of a row without keys; the other rows are as if it were deleted.
Verdict empty_row(Kernel& kernel, const Case& c) {
  const std::int64_t M = queries_of(c);
  Indices empty;
  for (std::int64_t i = 0; i < M; ++i)
    if (const Sight seen = seen_by(c, i); seen.first == seen.last) empty.push_back(i);
  if (kernel.manifest().fully_masked_row == FullyMaskedRow::error) return rejects(kernel, c);
  const std::int64_t i = empty[static_cast<std::size_t>(argument(c, "i", std::ssize(empty)))];
  const Result o = run_with_lse(kernel, c);
  Verdict policy = obeys_row_policy(kernel, c, o, i);
  // The first ones are deleted at the bottom right and the last ones at the top left, which moves no other row.
  const bool bottom = c.alignment == Causal::bottom_right;
  std::int64_t gone = 0;
  while (gone < M && seen_by(c, bottom ? gone : M - 1 - gone).first == seen_by(c, bottom ? gone : M - 1 - gone).last)
    ++gone;
  const Indices rows = bottom ? range(gone, M) : range(0, M - gone);
  if (gone == 0 || rows.empty()) return policy;
  const Case others = with_queries(c, rows);
  if (!why_unsupported(kernel.manifest(), others).empty()) return policy;
  return worse_of(
      {std::move(policy), agree({o.queries(rows), run(kernel, others)}, bits_if(kernel, {Claim::batch_invariant}),
                                /*about_bits=*/true)});
}

// Rows whose first key lies behind a block that they do not see: finite, and within the bound.
Verdict leading_blocks(Kernel& kernel, const Case& c) {
  const Reply reply = answer(kernel, c);
  return judge_attention(c, reply.out, reply.lse, kernel.manifest().arithmetic_for(c),
                         {.ignores_dead_values = kernel.manifest().claims_to(Claim::ignores_dead_values)});
}

// M = N: top-left is bottom-right.
Verdict alignments_agree(Kernel& kernel, const Case& c) {
  if (std::ssize(terms_of(kernel).alignment) < 2)
    return {.outcome = Outcome::skipped, .reason = "the manifest's variants.window.alignment lists one alone"};
  Case other = c;
  other.alignment = c.alignment == Causal::top_left ? Causal::bottom_right : Causal::top_left;
  return same(kernel, c, other, bits_if(kernel, {Claim::deterministic}));
}

// L = R = 0 and M = N: o_i = v_i and lse_i = s_ii.
Verdict zero_zero(Kernel& kernel, const Case& c) {
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

// lse does not fall when an end moves away.
Verdict lse_monotone(Kernel& kernel, const Case& c) {
  if (std::string why = why_no_lse(kernel.manifest(), c); !in_a_proof() && !why.empty())
    return {.outcome = Outcome::skipped, .reason = std::move(why)};
  const std::int64_t more = 1 + argument(c, "more", std::max<std::int64_t>(keys_of(c), 1));
  const bool left = c.window_left >= 0 && (c.window_right < 0 || argument(c, "end", 2) == 0);
  Case wider = c;
  (left ? wider.window_left : wider.window_right) += more;
  const Result narrow = run_with_lse(kernel, c), wide = run_with_lse(kernel, within_reach(kernel, wider));
  if (!in_a_proof() && !narrow.run().lse().present())
    return {.outcome = Outcome::skipped, .reason = "a scalar that no dtype holds answers no lse"};
  const std::int64_t rows = batch_of(c) * heads_of(c) * queries_of(c);
  bool any = false;
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t i = row % queries_of(c);
    const Sight seen = seen_by(c, i), more_seen = seen_by(wider, i);
    if (seen.first == seen.last || (seen.first == more_seen.first && seen.last == more_seen.last)) continue;
    if (in_a_proof()) {
      // e^lse is the sum of e^s over the keys that are seen: more of them, more terms, and each is positive.
      using Traits = ScalarTraits<Expression>;
      const Expression less = Traits::exp(narrow.run().formal_lse()[row]),
                       all = Traits::exp(wide.run().formal_lse()[row]);
      const Numbers one(Shape{1}, std::vector<double>{0.0});
      const Verdict positive = positive_formulas(one.formally([&](std::int64_t) { return all - less; }));
      if (positive.outcome != Outcome::held) return positive;
      any = true;
      continue;
    }
    const RowBound &a = narrow.run().row_bound(row), &b = wide.run().row_bound(row);
    if (a.excuse != Excuse::none || b.excuse != Excuse::none) continue;
    any = true;
    const double x = narrow.run().lse()[row], y = wide.run().lse()[row];
    if ((x - y) * (1 - 0x1p-52) <= a.lse_allowed + b.lse_allowed) continue;
    return violated(Violation::lse, fmt::format("lse {} falls from {:.17g} to {:.17g} as the {} end moves away by {}",
                                                row, printed(x), printed(y), left ? "left" : "right", more));
  }
  if (any) return {};
  return {.outcome = Outcome::excused, .reason = "no row sees more keys by it"};
}

/// Both ends, drawn small: no more keys than a few see each other.
void narrow(Recipe& r) {
  const auto small = [&](int shift) { return static_cast<double>((r.seed >> shift) % 9); };
  argument_in(r.arguments, &Problem::window_left) = small(20);
  argument_in(r.arguments, &Problem::window_right) = (r.seed >> 40) % 4 == 0 ? -1.0 : small(30);
}
void aligned(Recipe& r, Causal alignment) {
  r.causal = Causal::none;
  argument_in(r.arguments, &Problem::alignment) = static_cast<double>(alignment);
}
/// More keys than the rows' windows hold, and a right end where it hides some.
void keys_to_spare(Recipe& r) {
  narrow(r);
  r.queries = std::clamp(r.queries, 1, 64);
  r.keys = std::max(r.keys, r.queries + 10 + static_cast<std::int32_t>((r.seed >> 50) % 64));
}
void any_causal_form(Recipe& r) {
  r.causal = r.seed % 2 == 0 ? Causal::top_left : Causal::bottom_right;
}
void sometimes_causal(Recipe& r) {
  r.causal = r.seed % 3 == 0 ? Causal::none : r.seed % 3 == 1 ? Causal::top_left : Causal::bottom_right;
}

constexpr std::array windowed{defining(hypotheses::window, "there is nothing to speak of then"),
                              defining(hypotheses::infinity_to_hide, "-inf is what hides a key in an additive mask")};
constexpr std::array windowed_alone{defining(hypotheses::window, "there is nothing to speak of then")};
constexpr std::array windowed_unmasked{
    defining(hypotheses::window, "there is nothing to speak of then"),
    needed(hypotheses::unmasked, "a mask or a causal form hides keys of the set that is read")};
constexpr std::array with_more{defining(hypotheses::window_and_more, "the mask of a window alone is another statement"),
                               defining(hypotheses::infinity_to_hide, "-inf is what hides a key in an additive mask")};
constexpr std::array without_one{defining(hypotheses::no_window, "the statement gives the windows")};
constexpr std::array sharp{defining(hypotheses::no_window, "the statement gives the windows"),
                           defining(hypotheses::unmasked, "the counterexample has a window alone")};
constexpr std::array causal_alone{defining(hypotheses::causal_form, "the statement is about one")};
constexpr std::array evicted{defining(hypotheses::keys_before_windows, "there is no key to delete then")};
constexpr std::array behind{defining(hypotheses::keys_behind_windows, "there is no key to delete then")};
constexpr std::array outside{defining(hypotheses::row_outside_the_keys, "there is no such row then")};
constexpr std::array late_rows{defining(hypotheses::row_behind_a_block, "there is no such row then")};
constexpr std::array square{defining(hypotheses::window, "there is nothing to speak of then"),
                            defining(hypotheses::no_causal_form, "the form says how the window is aligned"),
                            needed(hypotheses::equal_lengths, "the alignments are N - M keys apart")};
constexpr std::array of_one_key{defining(hypotheses::window_of_one_key, "the rows see other keys than their own")};
constexpr std::array of_one_query{defining(hypotheses::window, "there is nothing to speak of then"),
                                  defining(hypotheses::one_query, "the rows of several queries see other keys")};

const Property family[] = {
    {.name = "window.equals-mask",
     .statement = "(L, R, alignment) is the boolean mask p_i − L ≤ j ≤ p_i + R",
     .source = "+",
     .needs = "attention, window",
     .floating_point = "bound",
     .variant = "window",
     .hypotheses = windowed,
     .given = [](Draw& draw) -> Case { return draw.attention(period_of_tile_laws).unmasked().windowed(); },
     .check = equals_mask},
    {.name = "window.visible-set",
     .statement = "Q = 0, V = I: weights are 1/|W_i| on W_i and 0 elsewhere, for every declared side and alignment",
     .source = "+",
     .needs = "attention, window",
     .floating_point = "bound; zeros bitwise",
     .variant = "window",
     .hypotheses = windowed_unmasked,
     .given = [](Draw& draw) -> Case { return draw.attention().unmasked().windowed(); },
     .check = visible_set},
    {.name = "window.wide",
     .statement = "bottom-right L ≥ N − 1 and R ≥ M − 1 (top-left L ≥ M − 1, R ≥ N − 1) is no window",
     .source = "+",
     .needs = "attention, window",
     .floating_point = "bound",
     .variant = "window",
     .hypotheses = without_one,
     .given = [](Draw& draw) -> Case { return draw.attention(period_of_tile_laws); },
     .check = wide},
    {.name = "window.wide-is-sharp",
     .statement = "L ≥ N − 2, or R ≥ M − 2, or R ≥ N where M > N + 1, suffices (bottom-right)",
     .source = "+",
     .needs = "attention, window",
     .floating_point = "counterexample",
     .variant = "window",
     .hypotheses = sharp,
     .given = [](Draw& draw) -> Case { return draw.attention().unmasked().at_least(2, 2); },
     .check = wide_is_sharp},
    {.name = "window.causal-is-right-zero",
     .statement = "causal is the window (∞, 0) with the same alignment",
     .source = "+",
     .needs = "attention, window",
     .floating_point = "bound",
     .variant = "window",
     .hypotheses = causal_alone,
     .given = [](Draw& draw) -> Case {
       return draw.attention(period_of_tile_laws).where(any_causal_form).where([](Recipe& r) {
         if (r.seed / 2 % 2 == 0)
           argument_in(r.arguments, &Problem::window_left) = static_cast<double>(r.seed >> 8 & 15);
       });
     },
     .check = causal_is_right_zero},
    {.name = "window.intersects",
     .statement = "window ∧ mask ∧ causal is their conjunction as one mask",
     .source = "+",
     .needs = "attention, window",
     .floating_point = "bound",
     .variant = "window",
     .wants = wants_a_mask,
     .hypotheses = with_more,
     .given = [](Draw& draw) -> Case {
       return draw.attention(period_of_tile_laws)
           .masked()
           .where(sometimes_causal)
           .where([](Recipe& r) {
             if (r.mask == MaskKind::none && r.causal == Causal::none) any_causal_form(r);
           })
           .windowed();
     },
     .check = intersects},
    {.name = "window.row-locality",
     .statement = "o_i, lse_i do not depend on k_j, v_j outside [p_i − L, p_i + R]",
     .source = "+",
     .needs = "attention, window",
     .floating_point = "as in masked.suppression",
     .variant = "window",
     .hypotheses = windowed_alone,
     .given = [](Draw& draw) -> Case { return draw.attention(period_of_tile_laws).where(sometimes_causal).windowed(); },
     .check = row_locality},
    {.name = "window.slice",
     .statement = "row i is single-query attention over K[p_i − L … p_i + R] without a window",
     .source = "+",
     .needs = "attention, window",
     .floating_point = "bound",
     .variant = "window",
     .hypotheses = windowed_alone,
     .given = [](Draw& draw) -> Case { return draw.attention(period_of_tile_laws).where(sometimes_causal).windowed(); },
     .check = slice},
    {.name = "window.eviction",
     .statement = "bottom-right: deleting keys j < N − M − L, which no row sees, changes nothing",
     .source = "+",
     .needs = "attention, window",
     .floating_point = "bound",
     .variant = "window",
     .hypotheses = evicted,
     .given = [](Draw& draw) -> Case {
       return draw.attention().where(keys_to_spare).where([](Recipe& r) { aligned(r, Causal::bottom_right); });
     },
     .check = eviction},
    {.name = "window.tail",
     .statement = "top-left: deleting keys j > M − 1 + R, which no row sees, changes nothing",
     .source = "+",
     .needs = "attention, window",
     .floating_point = "bitwise if padding-invariant",
     .variant = "window",
     .hypotheses = behind,
     .given = [](Draw& draw) -> Case {
       return draw.attention().where(keys_to_spare).where([](Recipe& r) {
         aligned(r, Causal::top_left);
         double& right = argument_in(r.arguments, &Problem::window_right);
         right = std::max(right, 0.0);
       });
     },
     .check = tail},
    {.name = "window.empty-row",
     .statement = "p_i + R < 0 or p_i − L ≥ N: the policy; other rows as if it were deleted",
     .source = "+",
     .needs = "attention, window",
     .floating_point =
         "inside the domain: `nan`, `zero`: bitwise; `uniform`: bound to the mean of V; `error`: rejected",
     .variant = "window",
     .hypotheses = outside,
     .given = [](Draw& draw) -> Case {
       return draw.attention().where(narrow).where([](Recipe& r) {
         r.keys = std::clamp(r.keys, 1, 64);
         r.queries = r.keys + 10 + static_cast<std::int32_t>((r.seed >> 50) % 16);
         aligned(r, r.seed % 2 == 0 ? Causal::bottom_right : Causal::top_left);
         // The first rows lie before the keys by a right end, the last ones behind them by a left end.
         if (r.seed % 2 == 0)
           argument_in(r.arguments, &Problem::window_right) = static_cast<double>((r.seed >> 30) % 9);
       });
     },
     .check = empty_row},
    {.name = "window.leading-blocks",
     .statement = "rows whose first visible key lies behind a fully hidden block are finite and within the bound",
     .source = "+",
     .needs = "attention, window",
     .floating_point = "required",
     .variant = "window",
     .hypotheses = late_rows,
     .given = [](Draw& draw) -> Case {
       return draw.attention().where(keys_to_spare).where([](Recipe& r) {
         r.keys += 32;
         sometimes_causal(r);
         argument_in(r.arguments, &Problem::alignment) = static_cast<double>(Causal::bottom_right);
         if (r.causal == Causal::top_left) r.queries = std::max(r.queries, 32 + r.queries % 64);
       });
     },
     .check = leading_blocks},
    {.name = "window.alignments-agree",
     .statement = "M = N: top-left is bottom-right",
     .source = "+",
     .needs = "attention, window",
     .floating_point = "bitwise if deterministic",
     .variant = "window",
     .hypotheses = square,
     .given = [](Draw& draw) -> Case {
       return draw.attention(period_of_tile_laws)
           .where([](Recipe& r) {
             r.keys = r.queries;
             r.causal = Causal::none;
           })
           .windowed();
     },
     .check = alignments_agree},
    {.name = "window.zero-zero",
     .statement = "L = R = 0, M = N: o_i = v_i, lse_i = s_ii",
     .source = "+",
     .needs = "attention, window",
     .floating_point = "bound",
     .variant = "window",
     .hypotheses = of_one_key,
     .given = [](Draw& draw) -> Case {
       return draw.attention(period_of_tile_laws).unmasked().where([](Recipe& r) {
         r.keys = r.queries;
         sometimes_causal(r);
         argument_in(r.arguments, &Problem::window_left) = argument_in(r.arguments, &Problem::window_right) = 0;
         argument_in(r.arguments, &Problem::alignment) = r.seed % 2 == 0 ? 1.0 : 2.0;
       });
     },
     .check = zero_zero},
    {.name = "window.decode",
     .statement = "M = 1, bottom-right: attention over the last L + 1 keys",
     .source = "+",
     .needs = "attention, window",
     .floating_point = "bound",
     .variant = "window",
     .hypotheses = of_one_query,
     .given = [](Draw& draw) -> Case {
       return draw.attention(period_of_tile_laws)
           .where([](Recipe& r) {
             r.queries = 1;
             sometimes_causal(r);
             if (r.causal == Causal::top_left) r.causal = Causal::bottom_right;
           })
           .windowed()
           .where([](Recipe& r) { argument_in(r.arguments, &Problem::alignment) = 2.0; });
     },
     .check = slice},
    {.name = "window.lse-monotone",
     .statement = "lse_i does not decrease when L or R grows",
     .source = "+",
     .needs = "attention, window, lse",
     .floating_point = "bound",
     .variant = "window",
     .hypotheses = windowed_alone,
     .given = [](Draw& draw) -> Case {
       return draw.attention(period_of_tile_laws).where(sometimes_causal).windowed().where([](Recipe& r) {
         // Every other window is so narrow that whatever there is lies outside of it.
         if (r.seed % 2 != 0) return;
         argument_in(r.arguments, &Problem::window_left) = static_cast<double>((r.seed >> 20) % 2);
         argument_in(r.arguments, &Problem::window_right) = static_cast<double>((r.seed >> 24) % 3) - 1;
       });
     },
     .check = lse_monotone},
};

}  // namespace

std::span<const Property> window_properties() {
  return family;
}

}  // namespace attest
