// window: a row sees the keys around its position alone, those of [p - left, p + right].
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "core/problem/fields.h"
#include "properties/arrangement/arguments.h"
#include "properties/catalogue/property.h"
#include "properties/families/variants/sequence_laws.h"
#include "properties/families/variants/sight_laws.h"
#include "properties/generators/draw.h"
#include "properties/language/agree.h"
#include "properties/language/refute.h"
#include "properties/language/weights.h"

namespace attest {
namespace {

using sight_laws::aligned, sight_laws::any_causal_form, sight_laws::same, sight_laws::seen_by,
    sight_laws::some_alignment, sight_laws::with_one_value;

const VariantTerms& terms_of(const Kernel& kernel) {
  return kernel.manifest().variants.at(std::string(window_variant.name));
}

Case with_window(Case c, std::int64_t left, std::int64_t right, Causal alignment) {
  c.window_left = left, c.window_right = right;
  c.alignment = alignment;
  settle_alignment(c);
  return c;
}

/// The least ends with which no row's window hides a key.
std::pair<std::int64_t, std::int64_t> wide_ends(const Case& c, Causal alignment) {
  const std::int64_t M = std::max<std::int64_t>(queries_of(c), 1), N = std::max<std::int64_t>(keys_of(c), 1);
  return alignment == Causal::bottom_right ? std::pair(N - 1, M - 1) : std::pair(M - 1, N - 1);
}

// Bottom-right L >= N - 1 and R >= M - 1, top-left L >= M - 1 and R >= N - 1: as no window.
Verdict wide(Kernel& kernel, const Case& c) {
  const VariantTerms& terms = terms_of(kernel);
  const Causal alignment = some_alignment(kernel, c, window_variant);
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
  const std::int64_t lost = left >= 0 ? 0 : N - 1;
  return refuted(/*budget=*/1, [&](int) {
    const Case plain = with_one_value(c, lost);
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

// Bottom-right: the keys before every row's window may be deleted.
Verdict eviction(Kernel& kernel, const Case& c) {
  std::int64_t first = keys_of(c);
  for (std::int64_t i = 0; i < queries_of(c); ++i)
    if (const Sight seen = seen_by(c, i); seen.first < seen.last) first = std::min(first, seen.first);
  return sight_laws::eviction(kernel, c, first, /*step=*/1);
}

// Top-left: the keys behind every row's window may be deleted.
Verdict tail(Kernel& kernel, const Case& c) {
  std::int64_t last = 0;
  for (std::int64_t i = 0; i < queries_of(c); ++i)
    if (const Sight seen = seen_by(c, i); seen.first < seen.last) last = std::max(last, seen.last);
  return sight_laws::tail(kernel, c, last);
}

// lse does not fall when an end moves away.
Verdict lse_monotone(Kernel& kernel, const Case& c) {
  const std::int64_t more = 1 + argument(c, "more", std::max<std::int64_t>(keys_of(c), 1));
  const bool left = c.window_left >= 0 && (c.window_right < 0 || argument(c, "end", 2) == 0);
  Case wider = c;
  (left ? wider.window_left : wider.window_right) += more;
  return sight_laws::lse_monotone(kernel, c, wider,
                                  fmt::format("as the {} end moves away by {}", left ? "left" : "right", more));
}

/// Both ends, drawn small: no more keys than a few see each other.
void narrow(Recipe& r) {
  const auto small = [&](int shift) { return static_cast<double>((r.seed >> shift) % 9); };
  argument_in(r.arguments, &Problem::window_left) = small(20);
  argument_in(r.arguments, &Problem::window_right) = (r.seed >> 40) % 4 == 0 ? -1.0 : small(30);
}
/// More keys than the rows' windows hold, and a right end where it hides some.
void keys_to_spare(Recipe& r) {
  narrow(r);
  r.queries = std::clamp(r.queries, 1, 64);
  r.keys = std::max(r.keys, r.queries + 10 + static_cast<std::int32_t>((r.seed >> 50) % 64));
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
                           defining(hypotheses::unmasked, "the counterexample has a window alone"),
                           defining(hypotheses::a_query, "a counterexample needs one")};
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
     .check = sight_laws::equals_mask},
    {.name = "window.visible-set",
     .statement = "Q = 0, V = I: weights are 1/|W_i| on W_i and 0 elsewhere, for every declared side and alignment",
     .source = "+",
     .needs = "attention, window",
     .floating_point = "bound; zeros bitwise",
     .variant = "window",
     .hypotheses = windowed_unmasked,
     .given = [](Draw& draw) -> Case { return draw.attention().unmasked().where(few_to_read).windowed(); },
     .check = sight_laws::visible_set},
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
     .check = sight_laws::intersects},
    {.name = "window.row-locality",
     .statement = "o_i, lse_i do not depend on k_j, v_j outside [p_i − L, p_i + R]",
     .source = "+",
     .needs = "attention, window",
     .floating_point = "as in masked.suppression",
     .variant = "window",
     .hypotheses = windowed_alone,
     .given = [](Draw& draw) -> Case { return draw.attention(period_of_tile_laws).where(sometimes_causal).windowed(); },
     .check = sight_laws::row_locality},
    {.name = "window.slice",
     .statement = "row i is single-query attention over K[p_i − L … p_i + R] without a window",
     .source = "+",
     .needs = "attention, window",
     .floating_point = "bound",
     .variant = "window",
     .hypotheses = windowed_alone,
     .given = [](Draw& draw) -> Case { return draw.attention(period_of_tile_laws).where(sometimes_causal).windowed(); },
     .check = sight_laws::slice},
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
     .check = sight_laws::empty_row},
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
     .check = sight_laws::leading_blocks},
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
     .check = sight_laws::alignments_agree},
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
     .check = sight_laws::one_key},
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
     .check = sight_laws::slice},
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
