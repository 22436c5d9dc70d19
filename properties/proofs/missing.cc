#include "properties/proofs/missing.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "properties/arrangement/arrange.h"
#include "properties/arrangement/multihead_cases.h"
#include "properties/generators/stream.h"

namespace attest {
namespace {

using Edit = Case (*)(const Case& met, std::uint64_t n);

/// A mask of the kind: what hides leaves every row a key.
Tensor drawn_mask(const Case& c, std::uint64_t n, bool boolean) {
  const std::int64_t M = queries_of(c), N = keys_of(c);
  Stream stream(n);
  Tensor mask(boolean ? DType::boolean : c.dtype(), {1, 1, M, N});
  for (std::int64_t i = 0; i < M; ++i) {
    const std::int64_t kept = stream.below(N);
    for (std::int64_t j = 0; j < N; ++j) {
      const bool hides = j != kept && stream.one_in(3);
      const double added = static_cast<double>(stream.between(-2, 2));
      mask.set(i * N + j, boolean ? (hides ? 0.0 : 1.0) : hides ? -std::numeric_limits<double>::infinity() : added);
    }
  }
  return mask;
}

Case with_causal_form(const Case& met, std::uint64_t n) {
  Case c = met;
  c.causal = n % 2 == 0 ? Causal::top_left : Causal::bottom_right;
  settle_alignment(c);
  return c;
}

Case masked_somehow(const Case& met, std::uint64_t n) {
  if (n % 2 == 0) return with_causal_form(met, n / 2);
  Case c = met;
  c[Slot::mask] = drawn_mask(c, n, n / 2 % 2 == 0);
  c.mask_convention = n / 4 % 2 == 0 ? MaskConvention::pre_scale : MaskConvention::post_scale;
  return c;
}

Case with_a_pre_scale_mask(const Case& met, std::uint64_t n) {
  Case c = met;
  c[Slot::mask] = drawn_mask(c, n, /*boolean=*/false);
  c.mask_convention = MaskConvention::pre_scale;
  return c;
}

Case without_causal_form(const Case& met, std::uint64_t) {
  Case c = met;
  c.causal = Causal::none;
  return c;
}

Case bottom_right_with_more_keys(const Case& c, std::uint64_t) {
  Case more = with_keys(c, cycled(keys_of(c), queries_of(c) + 1));
  more.causal = Causal::bottom_right;
  return more;
}

Case with_a_finite_entry(const Case& met, std::uint64_t n) {
  Case c = with_additive_mask(met);
  Tensor& mask = c[Slot::mask];
  // At times more than twice any cap.
  mask.set(Stream(n).below(mask.elements()), std::ldexp(2.0, static_cast<int>(n % 10)));
  return c;
}

Case with_a_head_more(const Case& c, std::uint64_t) {
  Case more = with_heads(c, {0, 0});
  if (more[Slot::w_o].present()) more[Slot::w_o] = identity_tensor(c.dtype(), more[Slot::w_v].shape()[1]);
  if (more[Slot::b_o].present()) more[Slot::b_o] = Tensor(c.dtype(), {more[Slot::w_v].shape()[1]});
  return more;
}

Case with_an_output_projection(const Case& met, std::uint64_t) {
  Case c = met;
  const std::int64_t d = c[Slot::w_v].shape()[1];
  c[Slot::w_o] = identity_tensor(c.dtype(), d);
  // Told apart from the identity; with_whole_numbers draws the rest.
  c[Slot::w_o].set(0, 2);
  return c;
}

Tensor ones(const Case& c, std::int64_t elements) {
  return mapped(Tensor(c.dtype(), {elements}), [](std::int64_t, double) { return 1.0; });
}

Case with_an_output_bias(const Case& met, std::uint64_t) {
  Case c = met;
  c[Slot::b_o] = ones(c, c.out_shape()[2]);
  return c;
}

Case with_bias_kv(const Case& met, std::uint64_t) {
  Case c = met;
  c[Slot::bias_k] = ones(c, c[Slot::w_k].shape()[1]);
  c[Slot::bias_v] = ones(c, c[Slot::w_v].shape()[1]);
  return c;
}

Case with_biases(const Case& met, std::uint64_t) {
  Case c = met;
  c[Slot::b_q] = ones(c, c[Slot::w_q].shape()[1]);
  c[Slot::b_k] = ones(c, c[Slot::w_k].shape()[1]);
  c[Slot::b_v] = ones(c, c[Slot::w_v].shape()[1]);
  return c;
}

/// Whatever two tensors were, they are no longer equal.
void tell_apart(Tensor& a, const Tensor& b) {
  if (a.elements() > 0 && a == b) a.set(0, a[0] + 1);
}

Case with_other_keys(const Case& met, std::uint64_t) {
  Case c = met;
  tell_apart(c[Slot::k], c.q());
  tell_apart(c[Slot::v], c.q());
  return c;
}

Case with_other_projections(const Case& met, std::uint64_t) {
  Case c = met;
  tell_apart(c[Slot::w_k], c[Slot::w_q]);
  return c;
}

Case with_wider_values(const Case& c, std::uint64_t) {
  Selection s = everything(c);
  s.dv = cycled(static_cast<std::int64_t>(s.dv.size()), static_cast<std::int64_t>(s.dv.size()) + 1);
  return select(c, s);
}

struct Row {
  const Hypothesis* hypothesis;
  Edit edit;
};
constexpr Row edits[] = {
    {&hypotheses::unmasked, masked_somehow},
    {&hypotheses::no_causal_form, with_causal_form},
    {&hypotheses::added_after_scale, with_a_pre_scale_mask},
    {&hypotheses::causal_mask, [](const Case& c, std::uint64_t) { return without_mask(c); }},
    {&hypotheses::causal_form, without_causal_form},
    {&hypotheses::plain_top_left, without_causal_form},
    {&hypotheses::top_left_or_square, bottom_right_with_more_keys},
    {&hypotheses::equal_lengths,
     [](const Case& c, std::uint64_t) { return with_keys(c, cycled(keys_of(c), keys_of(c) + 1)); }},
    {&hypotheses::only_hides, with_a_finite_entry},
    {&hypotheses::one_key, [](const Case& c, std::uint64_t) { return with_keys(c, {0, 0}); }},
    {&hypotheses::one_head, with_a_head_more},
    {&hypotheses::identity_output, with_an_output_projection},
    {&hypotheses::no_output_bias, with_an_output_bias},
    {&hypotheses::no_bias_kv, with_bias_kv},
    {&hypotheses::no_biases, with_biases},
    {&hypotheses::self_attention, with_other_keys},
    {&hypotheses::one_projection, with_other_projections},
    {&hypotheses::equal_widths, with_wider_values},
    {&hypotheses::output_projection,
     [](const Case& met, std::uint64_t) {
       Case c = met;
       c[Slot::w_o] = c[Slot::b_o] = Tensor();
       return c;
     }},
    {&hypotheses::unscaled,
     [](const Case& met, std::uint64_t) {
       Case c = met;
       c.scale = 0.5;
       return c;
     }},
};

/// Draws a, b and d again; those that were equal are equal afterwards.
void refill(Case& c, Slot a, Slot b, Slot d, Stream& stream) {
  const bool ab = c[a] == c[b], ad = c[a] == c[d], bd = c[b] == c[d];
  for (const Slot slot : {a, b, d})
    c[slot] = mapped(c[slot], [&](std::int64_t, double) { return static_cast<double>(stream.between(-2, 2)); });
  if (ab) c[b] = c[a];
  if (ad) c[d] = c[a];
  if (bd) c[d] = c[b];
}

}  // namespace

Case missing(const Hypothesis& hypothesis, const Case& met, std::uint64_t n) {
  const auto* const found = std::ranges::find(edits, &hypothesis, &Row::hypothesis);
  return found == std::end(edits) ? met : found->edit(met, n);
}

Case with_whole_numbers(Case c, std::uint64_t seed) {
  Stream stream(seed);
  const auto whole = [&](std::int64_t, double) { return static_cast<double>(stream.between(-2, 2)); };
  refill(c, Slot::q, Slot::k, Slot::v, stream);
  if (c.operation == Operation::multihead) {
    refill(c, Slot::w_q, Slot::w_k, Slot::w_v, stream);
    for (const Slot slot : {Slot::b_q, Slot::b_k, Slot::b_v, Slot::bias_k, Slot::bias_v})
      c[slot] = mapped(c[slot], whole);
    if (!is_identity(c[Slot::w_o])) c[Slot::w_o] = mapped(c[Slot::w_o], whole);
    if (!hypotheses::no_output_bias.misses(c).empty()) c[Slot::b_o] = mapped(c[Slot::b_o], whole);
  }
  if (c.mask().present() && c.mask().dtype() != DType::boolean) {
    c[Slot::mask] = mapped(c.mask(), [&](std::int64_t, double old) {
      return old == 0 || std::isinf(old) ? old : stream.either(static_cast<double>(stream.between(1, 2)));
    });
  }
  return c;
}

}  // namespace attest
