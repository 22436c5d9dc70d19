// multihead: MMHAttn is its definition, [O_1|…|O_h] W_o + b_o, at every shape (000).
#include "properties/families/multihead/multihead_oracle.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "core/bound/error_bound.h"
#include "core/oracle/oracle.h"
#include "core/problem/memory.h"
#include "core/support/printed.h"
#include "properties/arrangement/multihead_cases.h"
#include "properties/catalogue/property.h"
#include "properties/families/multihead/returned_weights.h"
#include "properties/generators/draw.h"
#include "properties/language/agree.h"
#include "properties/language/answer.h"
#include "properties/language/compared.h"
#include "properties/language/own_precision.h"

namespace attest {

Verdict judged_multihead(Kernel& kernel, const Case& c) {
  const Manifest& manifest = kernel.manifest();
  const Reply reply = answer(kernel, c);
  return and_at_own_precision(
      with_element(judge_multihead(c, reply.out, manifest.arithmetic_for(c),
                                   {.ignores_dead_values = manifest.claims_to(Claim::ignores_dead_values)}),
                   c, reply.out),
      kernel, c);
}

namespace {

Verdict promised(Kernel& kernel, const Case& c) {
  const Manifest& manifest = kernel.manifest();
  const Arithmetic* const promise = manifest.promises.find(c);
  if (promise == nullptr) return without_a_promise(c);
  const Reply reply = answer(kernel, c);
  return with_element(
      judge_multihead(c, reply.out, *promise, {.ignores_dead_values = manifest.claims_to(Claim::ignores_dead_values)}),
      c, reply.out);
}

/// Every element of a row inside the domain of definition is finite.
Verdict finite(Kernel& kernel, const Case& c) {
  const Manifest& manifest = kernel.manifest();
  const AttentionBounds bounds =
      multihead_bounds(c, manifest.arithmetic_for(c), manifest.claims_to(Claim::ignores_dead_values));
  const Reply reply = answer(kernel, c);
  bool any = false;
  for (std::size_t e = 0; e < bounds.elements.size(); ++e) {
    if (!bounds.elements[e].finite_required) continue;
    any = true;
    const double found = reply.out[static_cast<std::int64_t>(e)];
    if (std::isfinite(found)) continue;
    Verdict verdict =
        violated(Violation::not_finite,
                 fmt::format("non-finite: element {} is {}; a finite value is required", e, printed(found)));
    verdict.element = static_cast<std::int64_t>(e);
    return with_element(std::move(verdict), c, reply.out);
  }
  if (any || bounds.elements.empty()) return {};
  return {.outcome = Outcome::excused, .reason = "no row lies inside the domain of definition"};
}

// +: any strides of the same values, weights and biases included, give the same output.
Verdict any_strides(Kernel& kernel, const Case& c) {
  Case row_major = c;
  set_layouts(row_major, {});
  return agree({run(kernel, c), run(kernel, std::move(row_major))}, bits_in_core(kernel), /*about_bits=*/true);
}

/// PyTorch's own tests and most modules' are about neither.
constexpr Want wants_masks[] = {
    {"a mask",
     "mask:random mask:first-block mask:middle-block mask:last-block mask:padding mask:whole-row mask:whole-head "
     "mask:causal mask:bias mask:alibi mask:finite-sentinel"},
    {"a causal form", "causal:top-left causal:bottom-right"}};
constexpr Want wants_layouts[] = {
    {"tokens under other strides",
     "q-strides:token-major q-strides:packed q-strides:padded-rows q-strides:every-other q-strides:column-major"},
    {"weights under other strides", "w_q-strides:padded-rows w_q-strides:every-other w_q-strides:column-major"},
    {"out under other strides",
     "out-strides:token-major out-strides:packed out-strides:padded-rows out-strides:every-other "
     "out-strides:column-major"}};

/// Finite masks and the pre-scale convention more often than elsewhere: together they are 000's own form of a mask.
void with_every_convention(Recipe& r) {
  if ((r.seed >> 36) % 6 == 0) r.mask = (r.seed >> 40) % 2 == 0 ? MaskKind::bias : MaskKind::alibi;
  if (r.mask != MaskKind::none && (r.seed >> 33) % 3 == 0) r.convention = MaskConvention::pre_scale;
}

constexpr std::array without_appended_key{defining(hypotheses::no_bias_kv, "001's module appends no key")};
constexpr std::array strided{defining(hypotheses::other_strides, "with row-major tensors both sides are one problem")};

const Property family[] = {
    {.name = "multihead.finite",
     .statement = "inside the domain of definition (error-bounds.md, 2) the output is finite",
     .source = "+",
     .needs = "multihead",
     .floating_point = "required",
     .operation = Operation::multihead,
     .given = [](Draw& draw) -> Case { return draw.multihead().near_the_edge(); },
     .check = finite},
    {.name = "multihead.strides",
     .statement = "any strides of the same tokens, weights and biases give the same output; memory outside the tensors "
                  "is neither read nor written (guarded, poisoned)",
     .source = "+",
     .needs = "multihead, strides",
     .floating_point = "bound (bitwise in the core); guards bitwise",
     .operation = Operation::multihead,
     .wants = wants_layouts,
     .hypotheses = strided,
     .given = [](Draw& draw) -> Case { return draw.multihead().strided(); },
     .check = any_strides},
    {.name = "multihead.oracle",
     .statement = "MMHAttn(Q,K,V) = [O_1|…|O_h]W_o + b_o lies within its error bound of the exact value, for free c_q, "
                  "c_k, c_v, dk, dv and d_o, every scale, bias, mask form and convention",
     .source = "000 001 002 003 004",
     .needs = "multihead",
     .floating_point = "bound",
     .operation = Operation::multihead,
     .under = "any",
     .wants = wants_masks,
     .given = [](Draw& draw) -> Case {
       return draw.multihead(2 * period_of_definition)
           .where(with_every_convention)
           .sometimes_aliased()
           .with_later_arguments();
     },
     .check = judged_multihead},
    {.name = "multihead.promised",
     .statement = "MMHAttn(Q,K,V) lies within the error bound of the arithmetic that the manifest promises",
     .source = "+",
     .needs = "multihead, promises",
     .floating_point = "bound of the promise",
     .operation = Operation::multihead,
     .wants = wants_masks,
     .given = [](Draw& draw) -> Case { return draw.multihead(2 * period_of_definition).where(with_every_convention); },
     .check = promised},
    {.name = "multihead.returned-weights",
     .statement =
         "the weights that a module returns beside its output are the softmax rows of every head, 0 where a key "
         "is hidden, and [α_1V_1|…|α_hV_h]W_o + b_o is the output",
     .source = "001",
     .needs = "returned weights: the core and 001's module",
     .floating_point = "bound; zeros bitwise",
     .operation = Operation::multihead,
     .wants = wants_hidden_keys,
     .hypotheses = without_appended_key,
     .given = [](Draw& draw) -> Case {
       // Half of the cases are as 001's module is: of one X, often causal, with heads as wide as their values.
       return small_multihead(draw).where([](Recipe& r) {
         r.key_value_bias = false;
         if ((r.seed >> 28) % 2 == 0) return;
         r.self_attention = true;
         r.dv = r.dk;
         if ((r.seed >> 29) % 4 == 0) r.causal = Causal::top_left;
       });
     },
     .check = returned_weights_law},
};

}  // namespace

std::span<const Property> multihead_oracle_properties() {
  return family;
}

}  // namespace attest
