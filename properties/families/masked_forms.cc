// masked: the forms of a mask and what they are to each other (000, 002, 003; pre-scale and post-scale).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "properties/arrangement/arguments.h"
#include "properties/arrangement/arrange.h"
#include "properties/arrangement/masks.h"
#include "properties/arrangement/multihead_cases.h"
#include "properties/arrangement/within_limits.h"
#include "properties/catalogue/property.h"
#include "properties/families/core_laws.h"
#include "properties/generators/draw.h"
#include "properties/generators/stream.h"
#include "properties/language/agree.h"
#include "properties/language/answer.h"
#include "properties/language/refute.h"

namespace attest {
namespace {

Verdict fixed_length_of(Kernel& kernel, const Case& c) {
  return on_core(kernel, c, fixed_length);
}

// B = 0, or M = 1 everywhere => MAttn_B = Attention.
Verdict zero_mask(Kernel& kernel, const Case& c) {
  const bool boolean = argument(c, "boolean", 2) == 1, full = argument(c, "full", 2) == 1;
  const Shape shape{full ? batch_of(c) : 1, full ? heads_of(c) : 1, queries_of(c), keys_of(c)};
  Case masked = c;
  masked[Slot::mask] = Tensor(boolean ? DType::boolean : c.dtype(), shape);
  masked[Slot::mask] = mapped(masked.mask(), [&](std::int64_t, double) { return boolean ? 1.0 : 0.0; });
  return agree({run(kernel, masked), run(kernel, c)}, bits_in_core(kernel), /*about_bits=*/true);
}

// 002's mask_M (M = 0 becomes -inf) = the additive 0/-inf mask of 000.
Verdict boolean_is_additive(Kernel& kernel, const Case& c) {
  return agree({run(kernel, c), run(kernel, with_additive_mask(c))}, bits_in_core(kernel), /*about_bits=*/true);
}

Case with_convention(Case c, MaskConvention convention) {
  c.mask_convention = convention;
  return c;
}

// softmax((QK^T + B)/sqrt(dk)) = softmax(QK^T/sqrt(dk) + B) for B of 0 and -inf.
Verdict conventions_agree(Kernel& kernel, const Case& c) {
  return agree({run(kernel, with_convention(c, MaskConvention::pre_scale)),
                run(kernel, with_convention(c, MaskConvention::post_scale))},
               bits_in_core(kernel), /*about_bits=*/true);
}

// Refuted: they agree for every finite B. One row, two keys, B = (t, 0); first Q = K = 0, then small whole numbers.
Verdict conventions_differ(Kernel& kernel, const Case& c) {
  const Lengths few = fewest(kernel, {.queries = 1, .keys = 2});
  const Case row = with_queries(without_mask(c), cycled(1, few.queries));
  const Case small = with_batch(with_keys(row, cycled(2, few.keys)), {0});
  return refuted(/*budget=*/24, [&](int n) {
    const double entries[] = {1, -1, 2, -2, 4, -4};
    const double t = entries[n % 6];
    Stream stream(seed_argument(c, "attempt") + static_cast<std::uint64_t>(n));
    const auto whole = [&](std::int64_t, double) { return n < 6 ? 0.0 : static_cast<double>(stream.below(5) - 2); };
    Case tried = small;
    for (const Slot slot : {Slot::q, Slot::k}) tried[slot] = mapped(tried[slot], whole);
    const std::int64_t dv = c.v().shape()[3];
    tried[Slot::v] = mapped(tried.v(), [&](std::int64_t e, double) { return e / dv % 2 == 0 ? 1.0 : 0.0; });
    tried[Slot::mask] = mapped(Tensor(c.dtype(), {1, 1, few.queries, few.keys}),
                               [&](std::int64_t e, double) { return e % few.keys % 2 == 0 ? t : 0.0; });
    return Attempt{run(kernel, with_convention(tried, MaskConvention::pre_scale)),
                   run(kernel, with_convention(tried, MaskConvention::post_scale)),
                   fmt::format("one query and two keys{}, dk = {}, Q and K {}, V = (1, 0), B = ({}, 0)",
                               few.keys > 2 || few.queries > 1 ? ", repeated" : "", c.q().shape()[3],
                               n < 6 ? "zero" : "whole numbers", t)};
  });
}

// The same of many heads: Q = K = 0 by W_q = W_k = 0, and every head passes on the first entry of v's tokens, 1 for the
// first of two and 0 for the second.
Verdict conventions_differ_in_heads(Kernel& kernel, const Case& c) {
  const std::int64_t least = is_self_attention(c) ? 2 : 1, columns = extents_of(c).c_v;
  const Lengths few = fewest(kernel, {.queries = least, .keys = 2});
  const Case rows = with_queries(without_mask(c), cycled(least, few.queries));
  const Case zeros = first_entry_of_values(with_batch(with_keys(rows, cycled(2, few.keys)), {0}));
  return refuted(/*budget=*/6, [&](int n) {
    const double entries[] = {1, -1, 2, -2, 4, -4};
    const double t = entries[n];
    Case tried = zeros;
    tried[Slot::v] = mapped(zeros.v(), [&](std::int64_t e, double) { return e % (2 * columns) == 0 ? 1.0 : 0.0; });
    if (is_self_attention(c)) tried[Slot::q] = tried[Slot::k] = tried.v();
    tried[Slot::mask] = mapped(Tensor(c.dtype(), {1, 1, few.queries, few.keys}),
                               [&](std::int64_t e, double) { return e % few.keys % 2 == 0 ? t : 0.0; });
    return Attempt{run(kernel, with_convention(tried, MaskConvention::pre_scale)),
                   run(kernel, with_convention(tried, MaskConvention::post_scale)),
                   fmt::format("{} heads, two keys, dk = {}, W_q = W_k = 0, V = (1, 0), each row of B = ({}, 0)",
                               c.heads, extents_of(c).dk, t)};
  });
}

/// The case without its causal form, all of it seen: under a boolean mask where it has one, as a kernel may know no
/// other; else without a mask.
Case all_visible(const Case& c) {
  const bool boolean = c.mask().present() && c.mask().dtype() == DType::boolean;
  return boolean ? with_boolean_mask(without_mask(c)) : without_mask(c);
}

// 003: masking = setting the unmasked weights to 0 and renormalising. With Z the sum of the weights that stay, read
// with values of 1 where visible and 0 where hidden: Z o_i = sum over visible j of alpha_ij v_j, alpha unmasked.
// V serves every row, so the keys hidden are those of one row of the mask, from all rows.
Verdict renormalisation(Kernel& kernel, const Case& c) {
  if (queries_of(c) == 0) return {};
  const std::int64_t N = keys_of(c), dv = c.v().shape()[3], i = argument(c, "i", queries_of(c));
  const Case unmasked = without_mask(c);
  Case masked = all_visible(c), rest = unmasked, ones = unmasked;
  std::vector<bool> hides(static_cast<std::size_t>(N));
  for (std::int64_t j = 0; j < N; ++j) {
    hides[static_cast<std::size_t>(j)] = hidden(c, 0, 0, i, j);
    if (hides[static_cast<std::size_t>(j)]) masked = hide(std::move(masked), -1, j);
  }
  const auto visible = [&](std::int64_t e) { return !hides[static_cast<std::size_t>(e / dv % N)]; };
  rest[Slot::v] = mapped(c.v(), [&](std::int64_t e, double old) { return visible(e) ? old : 0.0; });
  ones[Slot::v] = mapped(c.v(), [&](std::int64_t e, double) { return visible(e) ? 1.0 : 0.0; });
  const Numbers o(run(kernel, masked)), Z(run(kernel, ones)), sum(run(kernel, rest));
  return agree({Z.times(o), sum});
}

// The same of a head with projections: Z is read with tokens of 1 where visible in the first entry, which W_v passes on
// to every column.
Verdict renormalisation_of_a_head(Kernel& kernel, const Case& c) {
  if (queries_of(c) == 0) return {};
  const std::int64_t N = keys_of(c), i = argument(c, "i", queries_of(c)), width = extents_of(c).c_v;
  const std::int64_t columns = extents_of(c).dv;
  const Case unmasked = without_mask(c);
  Case masked = all_visible(c), rest = unmasked, ones = unmasked;
  std::vector<bool> hides(static_cast<std::size_t>(N));
  for (std::int64_t j = 0; j < N; ++j) {
    hides[static_cast<std::size_t>(j)] = hidden(c, 0, 0, i, j);
    if (hides[static_cast<std::size_t>(j)]) masked = hide(std::move(masked), -1, j);
  }
  const auto visible = [&](std::int64_t e) { return !hides[static_cast<std::size_t>(e / width % N)]; };
  rest[Slot::v] = mapped(c.v(), [&](std::int64_t e, double old) { return visible(e) ? old : 0.0; });
  ones[Slot::v] = mapped(c.v(), [&](std::int64_t e, double) { return e % width == 0 && visible(e) ? 1.0 : 0.0; });
  ones[Slot::w_v] = mapped(c[Slot::w_v], [&](std::int64_t e, double) { return e < columns ? 1.0 : 0.0; });
  const Numbers o(run(kernel, masked)), Z(run(kernel, ones)), sum(run(kernel, rest));
  return agree({Z.times(o), sum});
}

/// A kind of mask that hides and adds nothing; causal forms stay.
void hide_only(Recipe& r) {
  if (r.mask == MaskKind::none || r.mask == MaskKind::bias || r.mask == MaskKind::alibi ||
      r.mask == MaskKind::finite_sentinel) {
    const MaskKind kinds[] = {MaskKind::random,     MaskKind::first_block, MaskKind::middle_block,
                              MaskKind::last_block, MaskKind::padding,     MaskKind::causal};
    r.mask = kinds[(r.seed >> 16) % 6];
  }
}

constexpr std::array plain{needed(hypotheses::unmasked, "attention under another mask is not attention")};
constexpr std::array two_forms{defining(hypotheses::boolean_mask, "it is a boolean mask that is written as numbers")};
constexpr std::array hiding{
    defining(hypotheses::additive_mask, "the conventions are about what is added"),
    needed(hypotheses::only_hides, "what is added is scaled by one convention and not by the other")};
constexpr std::array differing{
    defining(hypotheses::two_head_columns, "the scale is 1 for dk = 1, and then there is nothing to refute"),
    defining(hypotheses::inverse_root_scale, "with the scale 1 there is nothing to refute"),
    defining(hypotheses::a_query, "a counterexample needs one"),
    defining(hypotheses::two_keys, "the weight of a single key is 1, and then there is nothing to refute")};
constexpr std::array differing_in_heads{
    defining(hypotheses::two_head_columns, "the scale is 1 for dk = 1, and then there is nothing to refute"),
    defining(hypotheses::inverse_root_scale, "with the scale 1 there is nothing to refute"),
    defining(hypotheses::a_query, "a counterexample needs one"),
    defining(hypotheses::two_keys, "the weight of a single key is 1, and then there is nothing to refute")};
constexpr auto renormalised_head =
    joined(defined_for_one_head,
           std::array{defining(hypotheses::no_biases, "a hidden token's value is 0 without b_v"),
                      spare(hypotheses::no_causal_form,
                            "the keys that the form hides from the row are hidden by the check's own mask"),
                      defining(hypotheses::infinity_to_hide, "-inf is what hides a key in an additive mask")});
constexpr std::array renormalised{
    spare(hypotheses::no_causal_form, "the keys that the form hides from the row are hidden by the check's own mask"),
    defining(hypotheses::infinity_to_hide, "-inf is what hides a key in an additive mask")};

const Property family[] = {
    {.name = "masked.fixed-length",
     .statement = "B ties MAttn_B to one M and N: another shape is an error that names both",
     .source = "000 (notes)",
     .needs = "core",
     .floating_point = "required",
     .given = [](Draw& draw) -> Case { return draw.attention(); },
     .check = fixed_length_of},
    {.name = "masked.zero-mask",
     .statement = "B = 0, or M = 1 everywhere, ⇒ MAttn_B = Attention",
     .source = "000 002",
     .needs = "attention",
     .floating_point = "bitwise in the core, bound for a kernel (another code path)",
     .hypotheses = plain,
     .given = [](Draw& draw) -> Case { return draw.attention().unmasked(); },
     .check = zero_mask},
    {.name = "masked.boolean-is-additive",
     .statement = "002's mask_M (M=0 ↦ −∞) equals the additive 0/−∞ mask",
     .source = "002 000",
     .needs = "attention",
     .floating_point = "bitwise in the core, bound for a kernel",
     .wants = wants_hidden_keys,
     .hypotheses = two_forms,
     .given = [](Draw& draw) -> Case {
       return draw.attention().where(hide_only).where([](Recipe& r) { r.boolean_mask = true; });
     },
     .check = boolean_is_additive},
    {.name = "masked.conventions-agree",
     .statement = "pre-scale and post-scale agree when B ∈ {0,−∞}",
     .source = "000 001",
     .needs = "attention",
     .floating_point = "bitwise in the core, bound for a kernel",
     .wants = wants_hidden_keys,
     .hypotheses = hiding,
     .given = [](Draw& draw) -> Case {
       return draw.attention().where(hide_only).where([](Recipe& r) { r.boolean_mask = false; });
     },
     .check = conventions_agree},
    {.name = "masked.conventions-differ",
     .statement = "pre-scale and post-scale agree for every finite B",
     .source = "000 vs 001",
     .needs = "attention",
     .floating_point = "counterexample",
     .hypotheses = differing,
     .given = [](Draw& draw) -> Case {
       return draw.attention().unmasked().at_least(1, 2).where([](Recipe& r) {
         r.dk = std::max(r.dk, 2);
         r.scale = ScaleKind::inverse_root;
       });
     },
     .check = conventions_differ},
    {.name = "masked.renormalisation",
     .statement = "masking = setting the unmasked weights to 0 and renormalising",
     .source = "003",
     .needs = "attention",
     .floating_point = "bound",
     .wants = wants_hidden_keys,
     .hypotheses = renormalised,
     .given = [](Draw& draw) -> Case { return draw.attention().masked().where(hide_only); },
     .check = renormalisation},
    {.name = "masked.multihead-boolean-is-additive",
     .statement = "in every head of MMHAttn 002's mask_M (M=0 ↦ −∞) equals the additive 0/−∞ mask",
     .source = "002 000",
     .needs = "multihead",
     .floating_point = "bitwise in the core, bound for a kernel",
     .operation = Operation::multihead,
     .wants = wants_hidden_keys,
     .hypotheses = two_forms,
     .given = [](Draw& draw) -> Case {
       return small_multihead(draw).where(hide_only).where([](Recipe& r) { r.boolean_mask = true; });
     },
     .check = boolean_is_additive},
    {.name = "masked.multihead-conventions-agree",
     .statement = "in every head of MMHAttn pre-scale and post-scale agree when B ∈ {0,−∞}",
     .source = "000 001",
     .needs = "multihead",
     .floating_point = "bitwise in the core, bound for a kernel",
     .operation = Operation::multihead,
     .wants = wants_hidden_keys,
     .hypotheses = hiding,
     .given = [](Draw& draw) -> Case {
       return small_multihead(draw).where(hide_only).where([](Recipe& r) { r.boolean_mask = false; });
     },
     .check = conventions_agree},
    {.name = "masked.multihead-conventions-differ",
     .statement = "pre-scale and post-scale MMHAttn agree for every finite B",
     .source = "000 vs 001",
     .needs = "multihead",
     .floating_point = "counterexample",
     .operation = Operation::multihead,
     .hypotheses = differing_in_heads,
     .given = [](Draw& draw) -> Case {
       return two_keys(small_multihead(draw).unmasked().at_least(1, 2)).where([](Recipe& r) {
         r.dk = std::max(r.dk, 2);
         r.scale = ScaleKind::inverse_root;
       });
     },
     .check = conventions_differ_in_heads},
    {.name = "masked.multihead-renormalisation",
     .statement = "masking a head with projections = setting its unmasked weights to 0 and renormalising",
     .source = "003",
     .needs = "multihead",
     .floating_point = "bound",
     .operation = Operation::multihead,
     .wants = wants_hidden_keys,
     .hypotheses = renormalised_head,
     .given = [](Draw& draw) -> Case {
       return one_head(without_biases(small_multihead(draw).masked().where(hide_only)));
     },
     .check = renormalisation_of_a_head},
};

}  // namespace

std::span<const Property> masked_form_properties() {
  return family;
}

}  // namespace attest
