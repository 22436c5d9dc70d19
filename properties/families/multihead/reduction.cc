// reduction: the functions of 000 as special cases of MMHAttn ("Code").
#include <array>
#include <cmath>

#include "properties/arrangement/multihead_cases.h"
#include "properties/catalogue/property.h"
#include "properties/families/multihead/multihead_laws.h"
#include "properties/language/agree.h"
#include "properties/language/answer.h"
#include "properties/language/core_agreement.h"

namespace attest {
namespace {

Case with_zero_mask(Case c) {
  c[Slot::mask] = Tensor(c.dtype(), {1, 1, queries_of(c), keys_of(c)});
  return c;
}

// MHAttn(Q,K,V) = MMHAttn_0(Q,K,V).
Verdict mh_is_mmh_zero_mask(Kernel& kernel, const Case& c) {
  return worse_of(
      {same_in_core(kernel, &CoreFunctions::multihead_unmasked, c, &CoreFunctions::multihead, with_zero_mask(c)),
       zero_mask_law(kernel, c)});
}

// MAttn_W,B(Q,K,V) = MMHAttn_B(Q,K,V) with h = 1, W_o = I, b_o = 0. Adding 0 times the other columns makes +0 of -0, so
// that only numbers are compared where W_o is written out; a row with Inf or NaN in it does not survive 0 times it.
Verdict masked_weights_is_mmh_h1(Kernel& kernel, const Case& c) {
  Case absent = c, stated = c;
  absent[Slot::w_o] = absent[Slot::b_o] = Tensor();
  const std::int64_t dv = c[Slot::w_v].shape()[1];
  stated[Slot::w_o] = identity_tensor(c.dtype(), dv);
  stated[Slot::b_o] = Tensor(c.dtype(), {dv});
  const Verdict core = same_in_core(kernel, &CoreFunctions::weighted, absent, &CoreFunctions::multihead, absent);
  const Result left = run(kernel, absent), right = run(kernel, stated);
  if (core_of_bits(kernel) == nullptr) return agree({left, right}, Match::bound);
  const Verdict numbers = agree({left, right}, Match::values);
  if (numbers.outcome == Outcome::held || std::isfinite(numbers.error)) return worse_of({core, numbers});
  return worse_of({core, agree({left, right}, Match::bound)});
}

// Attn_W(Q,K,V) = MAttn_W,0(Q,K,V).
Verdict weights_is_masked_zero_mask(Kernel& kernel, const Case& c) {
  return worse_of(
      {same_in_core(kernel, &CoreFunctions::weighted_unmasked, c, &CoreFunctions::weighted, with_zero_mask(c)),
       zero_mask_law(kernel, c)});
}

/// F(X) = F(X,X,X): the core's two functions, and a kernel asked both ways.
Verdict is_of_itself(Kernel& kernel, const Case& c, CoreFunction self, CoreFunction general) {
  return worse_of({same_in_core(kernel, self, c, general, c), is_cross_attention_law(kernel, c)});
}

// SAttn(X) = Attn_W(X,X,X).
Verdict self(Kernel& kernel, const Case& c) {
  return is_of_itself(kernel, c, &CoreFunctions::weighted_self_unmasked, &CoreFunctions::weighted_unmasked);
}
// MSAttn_B(X) = MAttn_W,B(X,X,X).
Verdict masked_self(Kernel& kernel, const Case& c) {
  return is_of_itself(kernel, c, &CoreFunctions::weighted_self, &CoreFunctions::weighted);
}
// MHSAttn(X) = MHAttn(X,X,X).
Verdict mh_self(Kernel& kernel, const Case& c) {
  return is_of_itself(kernel, c, &CoreFunctions::multihead_self_unmasked, &CoreFunctions::multihead_unmasked);
}
// MMHSAttn_B(X) = MMHAttn_B(X,X,X).
Verdict mmh_self(Kernel& kernel, const Case& c) {
  return is_of_itself(kernel, c, &CoreFunctions::multihead_self, &CoreFunctions::multihead);
}

constexpr std::string_view grade = "bitwise in the core, bound for a kernel";

// MMHAttn_B is MAttn_W,B of the same W, whatever else there is.
Verdict as_one_plain_head(Kernel& kernel, const Case& c) {
  Case plain = c;
  plain.heads = 1;
  for (const Slot slot : {Slot::w_o, Slot::b_o, Slot::bias_k, Slot::bias_v}) plain[slot] = Tensor();
  return agree({run(kernel, c), run(kernel, plain)}, Match::bound);
}

/// The general function of three tokens and the one of X differ as soon as K is not X.
template <CoreFunction self, CoreFunction general>
constexpr Stated one_X =
    needed(hypotheses::self_attention, "K and V other than X give other outputs", equal_in_core<self, general>);
constexpr std::array no_form{
    defining(hypotheses::no_causal_form,
             "a kernel is asked for attention in general with one more query, which the form counts")};
constexpr std::array both_unmasked{
    defining(hypotheses::unmasked, "both sides are forms without a mask; the masked forms have a row of their own")};
constexpr std::array plain{needed(hypotheses::unmasked, "attention under another mask is not attention")};

constexpr std::array one_head_only{
    needed(hypotheses::one_head, "heads have weights each of their own", as_one_plain_head),
    needed(hypotheses::identity_output, "W_o acts on the output", as_one_plain_head),
    needed(hypotheses::no_output_bias, "b_o is added to the output", as_one_plain_head),
    needed(hypotheses::no_bias_kv, "the appended key takes weight from the others", as_one_plain_head)};
constexpr auto plain_weights = joined(one_plain_head, plain);
constexpr auto own_weights =
    joined(one_plain_head, std::array{one_X<&CoreFunctions::weighted_self_unmasked, &CoreFunctions::weighted_unmasked>},
           both_unmasked);
constexpr auto own_masked_weights =
    joined(one_plain_head, std::array{one_X<&CoreFunctions::weighted_self, &CoreFunctions::weighted>}, no_form);
constexpr auto own_heads = joined(
    std::array{one_X<&CoreFunctions::multihead_self_unmasked, &CoreFunctions::multihead_unmasked>}, both_unmasked);
constexpr auto own_masked_heads =
    joined(std::array{one_X<&CoreFunctions::multihead_self, &CoreFunctions::multihead>}, no_form);

const Property family[] = {
    {.name = "reduction.mh-is-mmh-zero-mask",
     .statement = "MHAttn(Q,K,V) = MMHAttn_B(Q,K,V) with B = 0",
     .source = "000",
     .needs = "multihead",
     .floating_point = grade,
     .operation = Operation::multihead,
     .hypotheses = plain,
     .given = [](Draw& draw) -> Case { return small_multihead(draw).unmasked(); },
     .check = mh_is_mmh_zero_mask},
    {.name = "reduction.masked-weights-is-mmh-h1",
     .statement = "MAttn_W,B(Q,K,V) = MMHAttn_B(Q,K,V) with h = 1, W_o = I, b_o = 0",
     .source = "000",
     .needs = "multihead",
     .floating_point = grade,
     .operation = Operation::multihead,
     .wants = wants_hidden_keys,
     .hypotheses = one_head_only,
     .given = [](Draw& draw) -> Case { return one_head(small_multihead(draw)); },
     .check = masked_weights_is_mmh_h1},
    {.name = "reduction.weights-is-masked-zero-mask",
     .statement = "Attn_W(Q,K,V) = MAttn_W,B(Q,K,V) with B = 0",
     .source = "000",
     .needs = "multihead",
     .floating_point = grade,
     .operation = Operation::multihead,
     .hypotheses = plain_weights,
     .given = [](Draw& draw) -> Case { return one_head(small_multihead(draw).unmasked()); },
     .check = weights_is_masked_zero_mask},
    {.name = "reduction.self",
     .statement = "SAttn(X) = Attn_W(X,X,X)",
     .source = "000",
     .needs = "multihead",
     .floating_point = grade,
     .operation = Operation::multihead,
     .hypotheses = own_weights,
     .given = [](Draw& draw) -> Case { return one_head(self_attention(small_multihead(draw).unmasked(), 0)); },
     .check = self},
    {.name = "reduction.masked-self",
     .statement = "MSAttn_B(X) = MAttn_W,B(X,X,X)",
     .source = "000",
     .needs = "multihead",
     .floating_point = grade,
     .operation = Operation::multihead,
     .wants = wants_hidden_keys,
     .hypotheses = own_masked_weights,
     .given = [](Draw& draw) -> Case { return one_head(self_attention(small_multihead(draw).masked(), 0)); },
     .check = masked_self},
    {.name = "reduction.mh-self",
     .statement = "MHSAttn(X) = MHAttn(X,X,X)",
     .source = "000",
     .needs = "multihead",
     .floating_point = grade,
     .operation = Operation::multihead,
     .hypotheses = own_heads,
     .given = [](Draw& draw) -> Case { return self_attention(small_multihead(draw).unmasked(), 0); },
     .check = mh_self},
    {.name = "reduction.mmh-self",
     .statement = "MMHSAttn_B(X) = MMHAttn_B(X,X,X)",
     .source = "000",
     .needs = "multihead",
     .floating_point = grade,
     .operation = Operation::multihead,
     .wants = wants_hidden_keys,
     .hypotheses = own_masked_heads,
     .given = [](Draw& draw) -> Case { return self_attention(small_multihead(draw).masked(), 0); },
     .check = mmh_self},
};

}  // namespace

std::span<const Property> reduction_properties() {
  return family;
}

}  // namespace attest
