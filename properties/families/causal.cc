// causal: what lies ahead of a row does not reach it (001, 002, 003), and where the triangle starts.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/kernel/limits.h"
#include "properties/arrangement/any_number.h"
#include "properties/arrangement/arguments.h"
#include "properties/arrangement/arrange.h"
#include "properties/arrangement/masks.h"
#include "properties/arrangement/multihead_cases.h"
#include "properties/catalogue/property.h"
#include "properties/families/core_laws.h"
#include "properties/generators/draw.h"
#include "properties/language/agree.h"
#include "properties/language/answer.h"
#include "properties/language/core_agreement.h"
#include "properties/language/domain.h"

namespace attest {
namespace {

/// Columns of q, k or v: of a head, or of tokens.
std::int64_t width_of(const Tensor& t) {
  return t.shape()[t.shape().rank() - 1];
}

// 001, 003: o_i is independent of k_j and v_j for j > i, and of x_j: with "x" the later queries change too. Keys that
// no row sees may hold NaN.
Verdict no_leak(Kernel& kernel, const Case& c) {
  if (queries_of(c) == 0) return {};
  const std::int64_t M = queries_of(c), N = keys_of(c);
  const bool multihead = c.operation == Operation::multihead, one_tensor = multihead && is_self_attention(c);
  const Indices last = last_visible(c);
  const std::int64_t least = std::max<std::int64_t>(1, *std::min_element(last.begin(), last.end()) + 1);
  if (least >= N) return {.outcome = Outcome::excused, .reason = "every row sees the last key"};
  // Keys from t on change; judged are the rows that see none of them.
  const std::int64_t t = least + argument(c, "t", N - least);
  Indices rows;
  // A token of one tensor for all three is its row's query too.
  for (std::int64_t i = 0; i < (one_tensor ? t : M); ++i)
    if (last[static_cast<std::size_t>(i)] < t) rows.push_back(i);
  if (rows.empty()) return {.outcome = Outcome::excused, .reason = "every row sees a later token"};
  const bool dead = std::cmp_equal(rows.size(), M) && argument(c, "poison", 2) == 1;
  const bool queries_too = one_tensor || argument(c, "x", 2) == 1;
  const bool large = !one_tensor && argument(c, "large", 2) == 1;
  // Values reach the sum as they are, tokens by way of a projection, which must not overflow.
  const double largest = format_of(c.v().dtype()).largest;
  const double most = (multihead ? std::sqrt(largest) : largest / 4) / static_cast<double>(N);
  Case changed = c;
  for (const Slot slot : {Slot::k, Slot::v}) {
    const std::int64_t width = width_of(c[slot]);
    changed[slot] = mapped(c[slot], [&](std::int64_t e, double old) {
      if (e / width % N < t) return old;
      if (dead) return std::numeric_limits<double>::quiet_NaN();
      return any_number(slot == Slot::v && large ? most : -old);
    });
  }
  if (dead) changed.provenance.non_finite = "yes";
  if (one_tensor) {
    changed[Slot::q] = changed[Slot::v] = changed.k();
  } else if (queries_too) {
    const std::int64_t width = width_of(c.q());
    changed[Slot::q] = mapped(c.q(), [&](std::int64_t e, double old) {
      return std::binary_search(rows.begin(), rows.end(), e / width % M) ? old : any_number(-old);
    });
  }
  Match match = match_of_dead_values(kernel);
  if (queries_too && bits_if(kernel, {Claim::batch_invariant}) == Match::bound) match = Match::bound;
  if (dead && bits_if(kernel, {Claim::ignores_dead_values}) == Match::bound) match = Match::bound;
  return agree_in_domain({run(kernel, changed).queries(rows), run(kernel, c).queries(rows)}, match);
}

// Top-left, or M = N: the first row sees the first key alone, o_1 = v_1.
Verdict first_row(Kernel& kernel, const Case& c) {
  if (queries_of(c) == 0) return {};
  if (keys_of(c) == 0) return {.outcome = Outcome::excused, .reason = "N = 0: there is no first key"};
  const Shape& v = c.v().shape();
  const std::int64_t heads = heads_of(c), group = heads / v[1];
  std::vector<double> first;
  for (std::int64_t b = 0; b < v[0]; ++b)
    for (std::int64_t h = 0; h < heads; ++h)
      for (std::int64_t x = 0; x < v[3]; ++x) first.push_back(c.v()[((b * v[1] + h / group) * v[2]) * v[3] + x]);
  return agree({Numbers(run(kernel, c).queries({0})), Numbers({v[0], heads, 1, v[3]}, first)});
}

Tensor in_double(const Tensor& t) {
  return t.present() ? Tensor(DType::f64, t.shape(), t.to_doubles()) : Tensor();
}

// The same for every head: the first row of the output is (v_1 W_v + b_v) W_o + b_o. Whole numbers, exact in double.
Verdict first_row_of_heads(Kernel& kernel, const Case& c) {
  if (queries_of(c) == 0) return {};
  if (keys_of(c) == 0) return {.outcome = Outcome::excused, .reason = "N = 0: there is no first key"};
  const Tensor& v = c.v();
  const std::int64_t batch = batch_of(c), width = width_of(v), N = keys_of(c);
  Tensor first(DType::f64, {batch, 1, width});
  for (std::int64_t e = 0; e < first.elements(); ++e) first.set(e, v[e / width * N * width + e % width]);
  bool exact = true;
  Tensor row = projected(first, in_double(c[Slot::w_v]), in_double(c[Slot::b_v]), exact);
  if (c[Slot::w_o].present()) {
    row = projected(row, in_double(c[Slot::w_o]), in_double(c[Slot::b_o]), exact);
  } else if (const Tensor& b_o = c[Slot::b_o]; b_o.present()) {
    const std::int64_t width_of_bias = std::max<std::int64_t>(1, b_o.elements());
    row = mapped(row, [&](std::int64_t e, double old) { return sum_of(old, b_o[e % width_of_bias]); });
  }
  if (!exact) return {.outcome = Outcome::excused, .reason = "the first row is not exact in double"};
  return agree({Numbers(run(kernel, c).queries({0})), Numbers(row.shape(), row.to_doubles())});
}

// 002's M_ij = 1 iff i <= j on columns is 001's tau' <= tau on rows.
Verdict column_form_of(Kernel& kernel, const Case& c) {
  return on_core(kernel, c, column_form);
}

/// How many tokens a prefix may have within the limits: from 1 to M of them, but not M alone where M is more than 1.
Indices prefix_lengths(const Kernel& kernel, const Case& c) {
  const Manifest& m = kernel.manifest();
  const std::int64_t M = queries_of(c), N = keys_of(c);
  Indices lengths;
  for (std::int64_t t = 1; t <= M; ++t) {
    const bool allowed = allowed_queries(m).has(t) && allowed_keys(m).has(std::min(t, N));
    if (allowed && (t <= N || !m.same_lengths)) lengths.push_back(t);
  }
  if (M > 1 && lengths == Indices{M}) lengths.clear();
  return lengths;
}

// Top-left, or M = N: the first t rows are what attention over the first t queries and keys gives.
Verdict prefix(Kernel& kernel, const Case& c) {
  if (queries_of(c) == 0) return {};
  const Indices lengths = prefix_lengths(kernel, c);
  if (lengths.empty()) {
    return {.outcome = Outcome::skipped,
            .reason = fmt::format("has {} queries and {} keys; the manifest allows no shorter prefix", queries_of(c),
                                  keys_of(c))};
  }
  const std::int64_t t = lengths[static_cast<std::size_t>(argument(c, "t", std::ssize(lengths)))];
  const Case shorter = with_keys(with_queries(c, all_of(t)), all_of(std::min(t, keys_of(c))));
  return agree_in_domain({run(kernel, c).queries(all_of(t)), run(kernel, shorter)},
                         bits_if(kernel, {Claim::batch_invariant, Claim::padding_invariant}));
}

// M != N: key j is visible to row i iff j <= i (top-left), j <= i + N - M (bottom-right); written out as a mask.
Verdict alignment(Kernel& kernel, const Case& c) {
  const bool boolean = argument(c, "boolean", 2) == 1 || !kernel.manifest().additive_masks;
  return agree({run(kernel, c), run(kernel, with_causal_as_mask(c, boolean))}, Match::bound);
}

void causal_form(Recipe& r) {
  r.causal = r.seed % 2 == 0 ? Causal::top_left : Causal::bottom_right;
}
/// A causal form on top of the mask, or the triangle as the mask.
void causal_somehow(Recipe& r) {
  causal_form(r);
  if (r.causal == Causal::bottom_right) r.queries = std::max(r.queries, 2);
  if (r.seed / 2 % 3 != 0) return;
  r.queries = std::max(r.queries, 2);
  r.mask = MaskKind::causal;
  r.causal = Causal::none;
}
void from_the_start(Recipe& r) {
  causal_form(r);
  if (r.causal == Causal::bottom_right) r.keys = r.queries;
}
void only_bias(Recipe& r) {
  if (r.mask != MaskKind::bias && r.mask != MaskKind::alibi) r.mask = MaskKind::none;
}

// o_i is independent of k_j and v_j for j > i, counted from the bottom right where there are more keys.
Verdict independent_of_later_keys(Kernel& kernel, const Case& c) {
  const std::int64_t M = queries_of(c), N = keys_of(c), shift = std::max<std::int64_t>(0, N - M);
  const std::int64_t t = 1 + argument(c, "t", N - 1);
  Indices rows;
  for (std::int64_t i = 0; i < M && i + shift < t; ++i) rows.push_back(i);
  Case changed = c;
  for (const Slot slot : {Slot::k, Slot::v}) {
    const std::int64_t width = width_of(c[slot]);
    changed[slot] = mapped(c[slot], [&](std::int64_t e, double old) { return e / width % N < t ? old : 1 - old; });
  }
  return agree({run(kernel, changed).queries(rows), run(kernel, c).queries(rows)}, Match::bound);
}

// Attention under 002's mask M_ij = 1 iff i <= j on columns.
Verdict columns_of_002(Kernel& kernel, const Case& c) {
  const CoreFunctions* const core = core_of_bits(kernel);
  if (core == nullptr) return about_the_core(kernel);
  const std::int64_t n = keys_of(c);
  if (queries_of(c) != n) return {.outcome = Outcome::skipped, .reason = "002's mask is square"};
  const Tensor allowed =
      mapped(Tensor(DType::boolean, {n, n}), [&](std::int64_t e, double) { return e / n <= e % n ? 1.0 : 0.0; });
  return equal_in_core(core->attention_columns(c, allowed), core->attention(c));
}

constexpr std::array no_leaks{
    needed(hypotheses::causal_mask, "a row that sees a later key depends on it", independent_of_later_keys),
    defining(hypotheses::two_keys, "one key is looked at and another one changed")};
constexpr std::array from_the_first_token{
    defining(hypotheses::first_key_visible, "a first row that sees no key has no output"),
    needed(hypotheses::top_left_or_square, "at the bottom right the first row of fewer queries sees more than one key"),
    needed(hypotheses::causal_form, "the first row sees all keys then"),
    needed(hypotheses::no_bias_kv, "no causal form hides the appended key"),
    defining(hypotheses::exact_projections, "the other side starts from the projected tokens")};
constexpr std::array from_the_first_key{
    defining(hypotheses::first_key_visible, "a first row that sees no key has no output"),
    needed(hypotheses::top_left_or_square, "at the bottom right the first row of fewer queries sees more than one key"),
    needed(hypotheses::causal_form, "the first row sees all keys then")};
constexpr std::array columns{
    needed(hypotheses::plain_top_left, "rows that see other keys than the columns' mask has", columns_of_002)};
constexpr std::array prefixes{
    needed(hypotheses::top_left_or_square, "at the bottom right a row of fewer queries sees other keys"),
    needed(hypotheses::causal_form, "a row sees keys that the prefix does not have")};
constexpr std::array aligned{defining(hypotheses::lengths_differ, "both alignments are one and the same then"),
                             defining(hypotheses::causal_form, "there is nothing to align then"),
                             defining(hypotheses::infinity_to_hide, "-inf is what hides a key in an additive mask")};

const Property family[] = {
    {.name = "causal.no-leak",
     .statement = "with the causal mask o_i is independent of k_j, v_j (and x_j) for j > i",
     .source = "001 003",
     .needs = "attention",
     .floating_point = "as in masked.suppression; with x_j as well, bound unless batch-invariant",
     .hypotheses = no_leaks,
     .given = [](Draw& draw) -> Case {
       return draw.attention(period_of_tile_laws).at_least(0, 2).where(causal_somehow);
     },
     .check = no_leak},
    {.name = "causal.first-row",
     .statement = "top-left (or M = N): o_1 = v_1",
     .source = "+",
     .needs = "attention",
     .floating_point = "bound",
     .hypotheses = from_the_first_key,
     .given = [](Draw& draw) -> Case { return draw.attention().where(from_the_start).where(only_bias); },
     .check = first_row},
    {.name = "causal.column-form",
     .statement = "002's M_ij = 1 iff i ≤ j (columns) is 001's τ' ≤ τ (rows)",
     .source = "002 001",
     .needs = "core",
     .floating_point = "bitwise",
     .hypotheses = columns,
     .given = [](Draw& draw) -> Case {
       return draw.attention().unmasked().where([](Recipe& r) {
         r.keys = r.queries;
         r.causal = Causal::top_left;
       });
     },
     .check = column_form_of},
    {.name = "causal.prefix",
     .statement = "top-left (or M = N): causal attention of a prefix is the prefix of causal attention (what a KV "
                  "cache relies on)",
     .source = "+",
     .needs = "attention",
     .floating_point = "bitwise if batch- and padding-invariant",
     .hypotheses = prefixes,
     .given = [](Draw& draw) -> Case { return draw.attention(period_of_tile_laws).where(from_the_start); },
     .check = prefix},
    {.name = "causal.alignment",
     .statement = "for M ≠ N the alignment (top-left or bottom-right) is the declared one",
     .source = "+",
     .needs = "attention",
     .floating_point = "bound",
     .hypotheses = aligned,
     .given = [](Draw& draw) -> Case {
       return draw.attention().where(causal_form).where([](Recipe& r) {
         if (r.keys == r.queries) ++r.keys;
       });
     },
     .check = alignment},
    {.name = "causal.multihead-no-leak",
     .statement =
         "with the causal mask in every head row i of MMHAttn is independent of token j of K and V (and of X in "
         "self-attention) for j > i",
     .source = "001 003",
     .needs = "multihead",
     .floating_point = "as in masked.suppression; with x_j as well, bound unless batch-invariant",
     .operation = Operation::multihead,
     .hypotheses = no_leaks,
     .given = [](Draw& draw) -> Case { return two_keys(small_multihead(draw).where(causal_somehow)); },
     .check = no_leak},
    {.name = "causal.multihead-first-row",
     .statement = "top-left (or M = N): the first row of MMHAttn is (v_1W_v + b_v)W_o + b_o",
     .source = "+",
     .needs = "multihead",
     .floating_point = "bound",
     .operation = Operation::multihead,
     .hypotheses = from_the_first_token,
     .given = [](Draw& draw) -> Case {
       return whole_numbers(draw).where(from_the_start).where(only_bias).where([](Recipe& r) {
         r.key_value_bias = false;
       });
     },
     .check = first_row_of_heads},
    {.name = "causal.multihead-prefix",
     .statement = "top-left (or M = N): causal MMHAttn of a prefix of the tokens is the prefix of causal MMHAttn",
     .source = "+",
     .needs = "multihead",
     .floating_point = "bitwise if batch- and padding-invariant",
     .operation = Operation::multihead,
     .hypotheses = prefixes,
     .given = [](Draw& draw) -> Case { return small_multihead(draw).where(from_the_start); },
     .check = prefix},
    {.name = "causal.multihead-alignment",
     .statement = "for M ≠ N the alignment (top-left or bottom-right) of every head is the declared one",
     .source = "+",
     .needs = "multihead",
     .floating_point = "bound",
     .operation = Operation::multihead,
     .hypotheses = aligned,
     .given = [](Draw& draw) -> Case {
       return small_multihead(draw).where(causal_form).where([](Recipe& r) {
         r.self_attention = false;
         if (r.keys == r.queries) ++r.keys;
       });
     },
     .check = alignment},
};

}  // namespace

std::span<const Property> causal_properties() {
  return family;
}

}  // namespace attest
