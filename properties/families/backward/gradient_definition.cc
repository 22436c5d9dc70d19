// backward: the gradients of a loss by q, k and v, from that by the output, against the exact ones.
#include <fmt/format.h>

#include <array>
#include <cmath>

#include "core/support/printed.h"
#include "properties/families/backward/about_gradients.h"
#include "properties/language/gradients.h"
#include "properties/language/not_judged.h"

namespace attest {
namespace {

/// One gradient at the definition, or all of them. At the answers, of a kernel that forms its weights anew from the
/// log-sum-exp that it returned: whatever that is, these are the gradients.
template <auto gradient_or_at>
Verdict oracle_as(Kernel& kernel, const Case& c, const Judging& judging) {
  return BackwardRun(kernel, c).judged(gradient_or_at, judging.rows_of(c), judging.alarm);
}

template <auto gradient_or_at>
Verdict oracle(Kernel& kernel, const Case& c) {
  return oracle_as<gradient_or_at>(kernel, c, {});
}

/// Those that must be finite by the bound.
Verdict finite(Kernel& kernel, const Case& c) {
  const BackwardRun run(kernel, c);
  bool any = false;
  Verdict worst = each_gradient(run, [&](Gradient of) -> Verdict {
    const Result gradient = run.of(of);
    for (std::int64_t e = 0; e < gradient.elements(); ++e) {
      const AllowedError bound = gradient.run().bound(e);
      if (!bound.finite_required || is_of_row(bound.excuse)) continue;
      any = true;
      if (const double found = gradient.run().out()[e]; !std::isfinite(found))
        return about(of, violated(Violation::not_finite, fmt::format("non-finite: flat index {} is {}; a finite value "
                                                                     "is required",
                                                                     e, printed(found))));
    }
    return {};
  });
  if (any || worst.outcome != Outcome::held) return worst;
  return excused("no gradient lies inside the domain");
}

/// Neither dk nor dv is a multiple of 8, and they are not the same.
void odd_head_dims(Recipe& r) {
  const auto odd = [](std::int32_t columns) { return columns % 8 == 0 ? columns + 1 + columns / 8 % 7 : columns; };
  r.dk = odd(r.dk), r.dv = odd(r.dv);
  if (r.dk == r.dv) r.dv += r.dv % 8 == 7 ? 2 : 1;
}

/// Where sums overflow and products underflow.
constexpr Want wants_edges[] = {
    {"scores near the edge of the domain",
     "scores:huge scores:offset scores:below-sentinels scores:underflow-edges scores:bit-classes"},
    {"huge values", "values:huge values:bit-classes"}};

constexpr std::array of_odd_dims{
    defining(hypotheses::gradients, "it is about them"),
    defining(hypotheses::odd_head_dims, "what a kernel does with whole blocks of columns is the oracle's row")};

constexpr std::array of_sinks{defining(hypotheses::gradients, "it is about them"),
                              defining(hypotheses::sink, "it is about the gradient by it")};

/// Shapes of tiles among them, as laws of tiles draw them.
Case of_tiles_with_gradients(Draw& draw) {
  return draw.attention(period_of_gradients).with_later_arguments().with_gradients();
}

const Property family[] = {
    about_gradients({.name = "backward.oracle-dq",
                     .statement = "dQ lies within the bound of the definition's exact gradient",
                     .floating_point = "bound",
                     .hypotheses = of_gradients,
                     .given = of_tiles_with_gradients,
                     .check = oracle<Gradient::q>,
                     .check_as = oracle_as<Gradient::q>}),
    about_gradients({.name = "backward.oracle-dk",
                     .statement = "dK lies within the bound of the definition's exact gradient",
                     .floating_point = "bound",
                     .hypotheses = of_gradients,
                     .given = of_tiles_with_gradients,
                     .check = oracle<Gradient::k>,
                     .check_as = oracle_as<Gradient::k>}),
    about_gradients({.name = "backward.oracle-dv",
                     .statement = "dV lies within the bound of the definition's exact gradient",
                     .floating_point = "bound",
                     .hypotheses = of_gradients,
                     .given = of_tiles_with_gradients,
                     .check = oracle<Gradient::v>,
                     .check_as = oracle_as<Gradient::v>}),
    about_gradients({.name = "backward.oracle-dmask",
                     .statement = "dB lies within the bound of the exact dS, added up over the entries and heads that "
                                  "share the mask",
                     .needs = "attention_backward, additive masks",
                     .floating_point = "bound",
                     .hypotheses = of_masks,
                     .given = biased_with_gradients,
                     .check = oracle<Gradient::mask>,
                     .check_as = oracle_as<Gradient::mask>}),
    about_gradients({.name = "backward.oracle-dsink",
                     .statement = "dσ_h lies within the bound of the exact −Σ_i p^σ_i (D_i − γ_i) over the rows of all "
                                  "entries, p^σ the sink's share",
                     .needs = "attention_backward, sink",
                     .floating_point = "bound",
                     .variant = "sink",
                     .hypotheses = of_sinks,
                     .given = [](Draw& draw) -> Case {
                       return draw.attention().with_later_arguments().with_sinks().with_gradients();
                     },
                     .check = oracle<Gradient::sink>,
                     .check_as = oracle_as<Gradient::sink>},
                    without_sink_by_lse),
    about_gradients({.name = "backward.given",
                     .statement = "the same at the kernel's own lse and out, whatever they are",
                     .floating_point = "bound",
                     .backward = Backward::from_lse,
                     .hypotheses = of_gradients,
                     .given = any_with_gradients,
                     .check = oracle<GradientsAt::answers>,
                     .check_as = oracle_as<GradientsAt::answers>}),
    about_gradients(
        {.name = "backward.head-dims",
         .statement =
             "dQ, dK and dV lie within the bound of the exact gradients where dk and dv differ and neither is a multiple "
             "of 8",
         .floating_point = "bound",
         .hypotheses = of_odd_dims,
         .given = [](Draw& draw) -> Case {
           return draw.attention().where(odd_head_dims).with_later_arguments().with_gradients();
         },
         .check = oracle<GradientsAt::definition>,
         .check_as = oracle_as<GradientsAt::definition>}),
    about_gradients({.name = "backward.finite",
                     .statement = "inside the domain (gradient-bounds.md, 5) the gradients are finite",
                     .floating_point = "required",
                     .wants = wants_edges,
                     .hypotheses = of_gradients,
                     .given = [](Draw& draw) -> Case {
                       return draw.attention().near_the_edge().with_later_arguments().with_gradients();
                     },
                     .check = finite}),
};

}  // namespace

std::span<const Property> backward_properties() {
  return family;
}

}  // namespace attest
