// backward: what becomes of gradients where dO, Q, K, V or scores are scaled, moved or added up.
#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "properties/arrangement/any_number.h"
#include "properties/arrangement/arguments.h"
#include "properties/arrangement/arrange.h"
#include "properties/arrangement/masks.h"
#include "properties/arrangement/shifted.h"
#include "properties/families/backward/about_gradients.h"
#include "properties/generators/stream.h"
#include "properties/language/gradients.h"
#include "properties/language/not_judged.h"

namespace attest {
namespace {

/// dO and gamma as sums of two: of each element one part is 0, or both are half of it.
struct TwoLosses {
  Case one, other, sum;
};
TwoLosses two_losses(const Case& c) {
  TwoLosses two{c, c, c};
  Stream stream(seed_argument(c, "parts"));
  for (const Slot slot : of_answers) {
    if (!c[slot].present()) continue;
    Tensor &one = two.one[slot], &other = two.other[slot];
    for (std::int64_t e = 0; e < one.elements(); ++e) {
      const double g = c[slot][e];
      if (in_a_proof()) {
        other.set(e, any_number(1));
        two.sum[slot].set(e, sum_of(g, other[e]));
        continue;
      }
      const std::int64_t how = stream.below(3);
      one.set(e, how == 0 ? g : how == 1 ? 0 : g / 2);
      other.set(e, g - one[e]);
      if (one[e] + other[e] != g) one.set(e, g), other.set(e, 0);
    }
  }
  return two;
}

// The gradients of (dO_1 + dO_2, gamma_1 + gamma_2) are the sums of those of both.
Verdict linear_in_dout(Kernel& kernel, const Case& c) {
  const TwoLosses two = two_losses(c);
  const BackwardRun one(kernel, two.one), other(kernel, two.other), sum(kernel, two.sum);
  return each_gradient(sum, [&](Gradient of) {
    return gradients_agree(of, {Numbers(sum.of(of)), Numbers(one.of(of)).plus(Numbers(other.of(of)))});
  });
}

/// -1, half of the time, or ±2^k: what tensors are multiplied by. In a proof any number but 0.
double drawn_factor(const Case& c) {
  const int k = static_cast<int>(argument(c, "k", 7)) - 3;
  const double sign = argument(c, "sign", 2) == 1 ? -1 : 1;
  if (in_a_proof()) return product_of(sign, any_positive_number());
  return k == 0 || argument(c, "sign-alone", 2) == 1 ? -1 : std::ldexp(sign, k);
}
/// By the factor; of what it does not scale exactly by -1, and then the factor is that.
Case scaled(const Case& c, std::initializer_list<std::pair<Slot, int>> powers, double& factor) {
  const auto by = [&](double x) {
    Case other = c;
    bool exact = true;
    for (const auto& [slot, power] : powers) {
      if (!c[slot].present()) continue;
      const double each = power > 0 ? x : inverse_of(x);
      if (in_a_proof()) {
        other[slot] = mapped(c[slot], [&](std::int64_t, double old) { return product_of(old, each); });
      } else {
        exact = multiply(other[slot], [each](std::int64_t) { return each; }) && exact;
      }
    }
    return std::pair(std::move(other), exact);
  };
  auto [other, exact] = by(factor);
  if (exact) return std::move(other);
  factor = -1;
  return by(factor).first;
}

/// A gradient of the scaled problem is factor^power of the plain one's. Signs are exact in all arithmetics, and powers
/// of two where nothing underflows, which bounds know.
Verdict scale_by(Kernel& kernel, const Case& c, const Case& other, double factor,
                 const std::array<int, gradient_count>& powers) {
  const BackwardRun run(kernel, c), changed(kernel, other);
  const Match match = gradient_bits_if(kernel, {Claim::deterministic});
  return each_gradient(run, [&](Gradient of) {
    const int power = powers[static_cast<std::size_t>(of)];
    const double each = power == 0 ? 1 : power > 0 ? factor : inverse_of(factor);
    return gradients_scale(of, {changed.of(of), run.of(of)}, each, factor == -1 ? match : Match::bound);
  });
}

// dO -> f dO, gamma -> f gamma: all gradients times f.
Verdict scaling(Kernel& kernel, const Case& c) {
  double factor = drawn_factor(c);
  const Case other = scaled(c, {{Slot::d_out, 1}, {Slot::d_lse, 1}}, factor);
  return scale_by(kernel, c, other, factor, {1, 1, 1, 1, 1});
}

// Q -> f Q, K -> K/f: dQ/f, f dK, and dV as it was.
Verdict query_key_exchange(Kernel& kernel, const Case& c) {
  double factor = drawn_factor(c);
  const Case other = scaled(c, {{Slot::q, 1}, {Slot::k, -1}}, factor);
  return scale_by(kernel, c, other, factor, {-1, 1, 0, 0, 0});
}

// V -> f V, dO -> dO/f: dQ and dK as they were, dV/f.
Verdict value_scaling(Kernel& kernel, const Case& c) {
  double factor = drawn_factor(c);
  const Case other = scaled(c, {{Slot::v, 1}, {Slot::d_out, -1}}, factor);
  return scale_by(kernel, c, other, factor, {0, 0, -1, 0, 0});
}

// dQ(scale, Q) = scale dQ(1, scale Q), and dK and dV are those of the latter.
Verdict scale(Kernel& kernel, const Case& c) {
  Case before = c, after = c;
  after.scale = 1;
  if (in_a_proof()) {
    after[Slot::q] = mapped(c.q(), [&](std::int64_t, double x) { return product_of(x, c.scale); });
  } else {
    before.scale = std::ldexp(1.0, std::ilogb(c.scale));
    if (!multiply(after[Slot::q], [&](std::int64_t) { return before.scale; }))
      return excused("Q times the scale is not exact");
  }
  const BackwardRun run(kernel, before), moved(kernel, after);
  return each_gradient(run, {Gradient::q, Gradient::k, Gradient::v}, [&](Gradient of) {
    return gradients_scale(of, {run.of(of), moved.of(of)}, of == Gradient::q ? before.scale : 1, Match::bound);
  });
}

/// The same gradients, to within both bounds.
Verdict same_gradients(Kernel& kernel, const Case& one, const Case& other) {
  const BackwardRun run(kernel, one), changed(kernel, other);
  return each_gradient(run,
                       [&](Gradient of) { return gradients_agree(of, {changed.of(of), run.of(of)}, Match::bound); });
}

// k_j -> k_j + c changes no gradient.
Verdict key_translation(Kernel& kernel, const Case& c) {
  const TwoCases keys = translated(c, Slot::k);
  return same_gradients(kernel, keys.before, keys.after);
}

// v_j -> v_j + c changes no gradient.
Verdict value_translation(Kernel& kernel, const Case& c) {
  const TwoCases values = translated(c, Slot::v);
  return same_gradients(kernel, values.before, values.after);
}

// A constant added to row i of B changes no gradient.
Verdict row_shift(Kernel& kernel, const Case& c) {
  const TwoCases row = with_row_shifted(c, argument(c, "i", queries_of(c)));
  return same_gradients(kernel, row.before, row.after);
}

// dV does not depend on V.
Verdict dv_ignores_values(Kernel& kernel, const Case& c) {
  Case other = c;
  other[Slot::v] = mapped(c.v(), [&](std::int64_t e, double old) { return any_number(e % 2 == 0 ? -old : old / 2); });
  const BackwardRun run(kernel, c), changed(kernel, other);
  return gradients_agree(Gradient::v, {changed.of(Gradient::v), run.of(Gradient::v)}, Match::bound);
}

// A column of V where dO is 0: dQ and dK do not depend on it.
Verdict value_columns(Kernel& kernel, const Case& c) {
  const std::int64_t dv = c.v().shape()[3], column = argument(c, "column", dv);
  Case silent = c;
  silent[Slot::d_out] = mapped(c[Slot::d_out], [&](std::int64_t e, double old) { return e % dv == column ? 0 : old; });
  Case other = silent;
  other[Slot::v] =
      mapped(c.v(), [&](std::int64_t e, double old) { return e % dv == column ? any_number(-old / 2) : old; });
  return same_gradients(kernel, silent, other);
}

constexpr auto scaled_scores = std::to_array<Stated>(
    {defining(hypotheses::gradients, "it is about them"),
     needed(hypotheses::added_after_scale, "a mask that is scaled with the products is another one at the scale 1")});

constexpr auto a_shifted_row = std::to_array<Stated>(
    {defining(hypotheses::gradients, "it is about them"),
     defining(hypotheses::a_query_and_a_key, "a row's scores are moved"),
     defining(hypotheses::infinity_for_a_mask, "what a boolean mask hides is written as -inf beside the number")});

const Property family[] = {
    about_gradients({.name = "backward.linear-in-dout",
                     .statement = "the gradients of dO₁ + dO₂ and γ₁ + γ₂ are the sums of those of both",
                     .floating_point = "bound",
                     .hypotheses = of_gradients,
                     .given = any_with_gradients,
                     .check = linear_in_dout}),
    about_gradients({.name = "backward.scaling",
                     .statement = "dO → f·dO, γ → f·γ: every gradient times f",
                     .floating_point = "bound; equal values for f = −1 if deterministic",
                     .hypotheses = of_gradients,
                     .given = any_with_gradients,
                     .check = scaling}),
    about_gradients({.name = "backward.query-key-exchange",
                     .statement = "Q → f·Q, K → K/f: dQ/f, f·dK and dV",
                     .floating_point = "bound; equal values for f = −1 if deterministic",
                     .hypotheses = of_gradients,
                     .given = any_with_gradients,
                     .check = query_key_exchange}),
    about_gradients({.name = "backward.value-scaling",
                     .statement = "V → f·V, dO → dO/f: dQ, dK and dV/f",
                     .floating_point = "bound; equal values for f = −1 if deterministic",
                     .hypotheses = of_gradients,
                     .given = any_with_gradients,
                     .check = value_scaling}),
    about_gradients({.name = "backward.scale",
                     .statement = "dQ(scale, Q) = scale·dQ(1, scale·Q), and dK and dV are those of the latter",
                     .floating_point = "bound",
                     .hypotheses = scaled_scores,
                     .given = [](Draw& draw) -> Case {
                       return draw.attention()
                           .where([](Recipe& r) { r.convention = MaskConvention::post_scale; })
                           .with_later_arguments()
                           .with_gradients();
                     },
                     .check = scale}),
    about_gradients({.name = "backward.key-translation",
                     .statement = "k_j → k_j + c for one c changes no gradient",
                     .floating_point = "bound",
                     .hypotheses = of_gradients,
                     .given = any_with_gradients,
                     .check = key_translation},
                    sums_of_scores),
    about_gradients({.name = "backward.value-translation",
                     .statement = "v_j → v_j + c for one c changes no gradient",
                     .floating_point = "bound",
                     .hypotheses = of_gradients,
                     .given = any_with_gradients,
                     .check = value_translation},
                    rows_of_1),
    about_gradients({.name = "backward.row-shift",
                     .statement = "a constant added to row i of B changes no gradient",
                     .floating_point = "bound",
                     .hypotheses = a_shifted_row,
                     .given = [](Draw& draw) -> Case {
                       return draw.attention().masked().at_least(1, 1).with_later_arguments().with_gradients();
                     },
                     .check = row_shift},
                    without_sink),
    about_gradients({.name = "backward.dv-ignores-values",
                     .statement = "dV does not depend on V",
                     .floating_point = "bound",
                     .hypotheses = of_gradients,
                     .given = any_with_gradients,
                     .check = dv_ignores_values}),
    about_gradients({.name = "backward.value-columns",
                     .statement = "no gradient depends on a column of V where dO is 0",
                     .floating_point = "bound",
                     .hypotheses = of_gradients,
                     .given = any_with_gradients,
                     .check = value_columns}),
};

}  // namespace

std::span<const Property> backward_scaling_properties() {
  return family;
}

}  // namespace attest
