// backward: the backward pass beside forward passes, and beside itself.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "core/problem/fields.h"
#include "core/problem/memory.h"
#include "properties/arrangement/any_number.h"
#include "properties/arrangement/arguments.h"
#include "properties/arrangement/arrange.h"
#include "properties/families/backward/about_gradients.h"
#include "properties/families/backward/directional_derivative.h"
#include "properties/generators/stream.h"
#include "properties/language/balance.h"
#include "properties/language/compared.h"
#include "properties/language/gradients.h"
#include "properties/language/not_judged.h"
#include "properties/language/weights.h"

namespace attest {
namespace {

/// The values w_j of one column and the products w_j k_j, both as the dtype holds them. w_j is a power of two of either
/// sign, or a sign alone where that is not exact. In a proof w_j is any number.
struct Weighted {
  Tensor values, keys;
};
Weighted weighted_keys(const Case& c, std::int64_t column) {
  const Shape &k = c.k().shape(), &v = c.v().shape();
  const auto with = [&](const std::function<double(std::int64_t)>& weight) -> std::optional<Weighted> {
    Weighted w{c.v(), Tensor(c.v().dtype(), k)};
    for (std::int64_t row = 0; row < k[0] * k[1] * k[2]; ++row) {
      const double factor = weight(row);
      w.values.set(row * v[3] + column, factor);
      for (std::int64_t e = row * k[3]; e < (row + 1) * k[3]; ++e) {
        const double product = product_of(factor, c.k()[e]);
        w.keys.set(e, product);
        if (w.keys[e] != product && !in_a_proof()) return std::nullopt;
      }
    }
    return w;
  };
  if (in_a_proof()) return *with([&](std::int64_t row) { return c.v()[row * v[3] + column]; });
  const auto drawn = [&](int most) {
    Stream stream(seed_argument(c, "w"));
    return with([&](std::int64_t) {
      const double power = std::ldexp(1.0, static_cast<int>(stream.between(-most, most)));
      return stream.either(power);
    });
  };
  std::optional<Weighted> w = drawn(2);
  if (!w) w = drawn(0);
  if (!w) throw NoAnswer{excused("the dtype of the values does not hold the keys")};
  return *std::move(w);
}

/// The keys in the dtype of the values.
Tensor keys_as_values(const Case& c) {
  Tensor keys(c.v().dtype(), c.k().shape(), c.k().to_doubles());
  if (!in_a_proof() && keys.to_doubles() != c.k().to_doubles())
    throw NoAnswer{excused("the dtype of the values does not hold the keys")};
  return keys;
}

// dO = e_c in every row: dQ = scale (Attention(Q, K, v_c o K) - o_c o Attention(Q, K, K)), the last one with nothing
// dropped.
Verdict covariance(Kernel& kernel, const Case& c) {
  const std::int64_t dk = c.k().shape()[3], dv = c.v().shape()[3], column = argument(c, "c", dv);
  Weighted weighted = weighted_keys(c, column);
  Case backward = c;
  backward[Slot::v] = std::move(weighted.values);
  backward[Slot::d_out] = mapped(c[Slot::d_out], [&](std::int64_t e, double) { return e % dv == column ? 1.0 : 0.0; });
  const Case forward = forward_of(backward);
  Case of_products = forward, of_keys = forward;
  of_products[Slot::v] = std::move(weighted.keys);
  of_keys[Slot::v] = keys_as_values(c);
  drop_variant(of_keys, dropout_variant.name);
  const BackwardRun run_of_gradients(kernel, backward);
  const Numbers found(run_of_gradients.of(Gradient::q));
  const Numbers products(run(kernel, of_products)), keys(run(kernel, of_keys));
  Indices output;
  for (std::int64_t e = 0; e < found.elements(); ++e) output.push_back(e / dk * dv + column);
  const Numbers own = Numbers(run(kernel, forward)).at(found.shape(), output);
  return gradients_agree(Gradient::q, {found, products.plus(own.times(keys).scaled(-1)).scaled(c.scale)});
}

// dO = 0: dQ = scale gamma Attention(Q, K, K), with nothing dropped, and dV = 0.
Verdict lse_only(Kernel& kernel, const Case& c) {
  const std::int64_t dk = c.k().shape()[3];
  Case silent = c;
  silent[Slot::d_out] = mapped(c[Slot::d_out], [](std::int64_t, double) { return 0.0; });
  Case of_keys = forward_of(c);
  of_keys[Slot::v] = keys_as_values(c);
  drop_variant(of_keys, dropout_variant.name);
  const BackwardRun gradients(kernel, silent);
  return each_gradient(gradients, {Gradient::q, Gradient::v}, [&](Gradient of) -> Verdict {
    if (of == Gradient::v) {
      Zeros zeros;
      zeros.look_at(gradients.of(of), name_of(of));
      return zeros.verdict();
    }
    const Numbers found(gradients.of(of)), keys(run(kernel, of_keys));
    std::vector<double> by_lse_alone;
    by_lse_alone.reserve(static_cast<std::size_t>(found.elements()));
    for (std::int64_t e = 0; e < found.elements(); ++e) by_lse_alone.push_back(c[Slot::d_lse][e / dk]);
    return gradients_agree(of, {found, keys.times(Numbers(found.shape(), by_lse_alone)).scaled(c.scale)});
  });
}

// g_i = e_i for the first rows, and 0 for what is left of more of them: dv_j is the weights of key j.
Verdict dv_is_weights(Kernel& kernel, const Case& c) {
  const std::int64_t M = queries_of(c), dv = c.v().shape()[3], N = keys_of(c), heads = heads_of(c);
  const std::int64_t kv_heads = c.k().shape()[1], group = heads / kv_heads, rows = std::min(M, dv);
  if (N == 0) return skipped("has no key");
  Case unit = c;
  unit[Slot::d_out] = mapped(c[Slot::d_out], [&](std::int64_t e, double) { return e / dv % M == e % dv ? 1.0 : 0.0; });
  const BackwardRun run(kernel, unit);
  const Result of_v = run.of(Gradient::v);
  const WeightBlocks weights = read_weights(kernel, forward_of(c));
  Verdict worst;
  for (std::size_t block = 0; block < weights.blocks.size(); ++block) {
    const Numbers alpha(weights.blocks[block]);
    const std::int64_t first = static_cast<std::int64_t>(block) * weights.width;
    const std::int64_t keys = std::min(weights.width, N - first);
    const Shape shape{batch_of(c), kv_heads, keys, rows};
    Indices own;
    for (std::int64_t e = 0; e < shape.elements(); ++e) {
      const auto [b, kv, j, i] = shape.index_of(e);
      own.push_back(((b * kv_heads + kv) * N + first + j) * dv + i);
    }
    std::optional<Numbers> sum;
    for (std::int64_t g = 0; g < group; ++g) {
      Indices of_head;
      for (std::int64_t e = 0; e < shape.elements(); ++e) {
        const auto [b, kv, j, i] = shape.index_of(e);
        of_head.push_back(((b * heads + kv * group + g) * M + i) * weights.width + j);
      }
      const Numbers part = alpha.at(shape, of_head);
      sum = sum ? sum->plus(part) : part;
    }
    worst = worse_of({std::move(worst), gradients_agree(Gradient::v, {Numbers(of_v.at(shape, own)), *sum})});
  }
  return worst;
}

// The output of a call that asks for lse, as the forward pass before a backward pass does, is that of one that does
// not.
Verdict forward_agrees(Kernel& kernel, const Case& c) {
  const BackwardRun gradients(kernel, c);
  return agree({Numbers(gradients.out(kernel)), Numbers(run(kernel, forward_of(c)))});
}

// <dQ,X> + <dK,Y> + <dV,Z> is the derivative of <dO,O> + <gamma,lse> along X, Y and Z, and so beside a mask and sinks
// that move.
Verdict directional(Kernel& kernel, const Case& c) {
  if (multiplications_of(c) > most_computed_again) return excused("is too large for dual numbers of many digits");
  const BackwardRun run(kernel, c);
  Direction along;
  Balance balance;
  Stream stream(seed_argument(c, "direction"));
  for (const Gradient of : every_gradient) {
    std::vector<double>& direction = along[static_cast<std::size_t>(of)];
    if (has_argument_of(c, of)) direction.assign(static_cast<std::size_t>(c[slot_of(of)].elements()), 0.0);
    if (!run.has(of)) continue;
    const Numbers gradient(run.of(of));
    for (std::int64_t e = 0; e < gradient.elements(); ++e) {
      const double x = static_cast<double>(stream.between(-2, 2));
      direction[static_cast<std::size_t>(e)] = x;
      if (x != 0) balance.add(gradient, e, x);
    }
  }
  const Derivative expected = derivative_of_loss(c, along);
  balance.add_number(expected.value, 1, -1), balance.add_number(expected.rest, 1, -1);
  balance.allow(expected.error);
  WorstBalance worst;
  worst.judge(balance, [] { return std::string("the derivative along a direction"); });
  return worst.verdict();
}

// The same call twice, with a call for another problem between.
Verdict repeatable(Kernel& kernel, const Case& c) {
  Case other = c;
  other[Slot::k] = mapped(c.k(), [](std::int64_t, double old) { return -old; });
  const BackwardRun first(kernel, c), between(kernel, other), second = first.again(kernel);
  const Match match = gradient_bits_if(kernel, {Claim::deterministic});
  return each_gradient(first, [&](Gradient of) { return about(of, agree({second.of(of), first.of(of)}, match)); });
}

// Some of the gradients, asked for without the others.
Verdict subset(Kernel& kernel, const Case& c) {
  const BackwardRun all(kernel, c);
  std::vector<Gradient> there;
  for (const Gradient of : every_gradient)
    if (all.has(of)) there.push_back(of);
  if (there.size() < 2) return skipped("has one gradient, of which none can be left out");
  const std::int64_t parts = (std::int64_t{1} << there.size()) - 2, part = 1 + argument(c, "part", parts);
  GradientChoice some{};
  std::vector<Gradient> chosen;
  for (std::size_t i = 0; i < there.size(); ++i) {
    if ((part >> i & 1) == 0) continue;
    some[static_cast<std::size_t>(there[i])] = true, chosen.push_back(there[i]);
  }
  const BackwardRun run = all.asked_for(kernel, some);
  const Match match = gradient_bits_if(kernel, {Claim::deterministic});
  Verdict worst;
  for (const Gradient of : chosen)
    worst = worse_of({std::move(worst), about(of, agree({run.of(of), all.of(of)}, match))});
  return worst;
}

// Any strides of the same inputs.
Verdict any_strides(Kernel& kernel, const Case& c) {
  Case row_major = c;
  set_layouts(row_major, {});
  const BackwardRun run(kernel, c), other(kernel, row_major);
  return each_gradient(run,
                       [&](Gradient of) { return about(of, agree({run.of(of), other.of(of)}, bits_in_core(kernel))); });
}

/// Few rows, keys and columns.
void small(Recipe& r) {
  const auto at_most = [](std::int32_t& extent, std::int32_t most) {
    if (extent > most) extent = 1 + extent % most;
  };
  at_most(r.batch, 2), at_most(r.queries, 12), at_most(r.keys, 16), at_most(r.dk, 12), at_most(r.dv, 12);
}

// A cap has a derivative of its own.
constexpr std::string_view without_cap = "window chunk lengths packed left_pad sink dropout alibi",
                           without_cap_by_lse = "window chunk lengths packed left_pad sink dropout alibi d_lse";
constexpr std::array of_a_gradient_by_lse{defining(hypotheses::gradients_by_lse, "it is about them")};
constexpr Want wants_layouts[] = {
    {"k under other strides",
     "k-strides:token-major k-strides:packed k-strides:padded-rows k-strides:every-other k-strides:column-major"},
    {"v under other strides",
     "v-strides:token-major v-strides:packed v-strides:padded-rows v-strides:every-other v-strides:column-major"}};
constexpr std::array strided{defining(hypotheses::gradients, "it is about them"),
                             defining(hypotheses::other_strides, "with row-major tensors both sides are one problem")};

const Property family[] = {
    about_gradients(
        {.name = "backward.covariance",
         .statement = "dO = e_c in every row: dQ = scale·(Attention(Q, K, v_c∘K) − o_c∘Attention(Q, K, K)), "
                      "the last with nothing dropped: the backward pass from three forward passes",
         .floating_point = "bound",
         .hypotheses = of_gradients,
         .given = any_with_gradients,
         .check = covariance},
        without_cap),
    about_gradients(
        {.name = "backward.lse-only",
         .statement = "dO = 0: dq_i = scale·γ_i·Attention(q_i, K, K), with nothing dropped, and dV = 0",
         .needs = "attention_backward, d_lse",
         .floating_point = "bound; dV inside the domain: zero bitwise",
         .backward = Backward::of_lse,
         .hypotheses = of_a_gradient_by_lse,
         .given = [](Draw& draw) -> Case { return draw.attention().with_later_arguments().with_gradients_by_lse(); },
         .check = lse_only},
        without_cap_by_lse),
    about_gradients({.name = "backward.dv-is-weights",
                     .statement = "g_i = e_i: dv_j holds the weights of key j, read through V = I",
                     .floating_point = "bound",
                     .hypotheses = of_gradients,
                     .given = [](Draw& draw) -> Case {
                       return draw.attention().where(few_to_read).with_later_arguments().with_gradients();
                     },
                     .check = dv_is_weights}),
    about_gradients(
        {.name = "backward.directional",
         .statement = "⟨dQ,X⟩ + ⟨dK,Y⟩ + ⟨dV,Z⟩ is the derivative of ⟨dO,O⟩ + ⟨γ,lse⟩ along X, Y and Z, and "
                      "along those of a mask and of sinks beside them, by dual numbers through the "
                      "definition's forward pass",
         .floating_point = "bound",
         .hypotheses = of_gradients,
         .given = [](Draw& draw) -> Case {
           return draw.attention().where(small).with_later_arguments().with_gradients();
         },
         .check = directional},
        of_entries),
    about_gradients({.name = "backward.forward-agrees",
                     .statement =
                         "the output of the forward pass that a backward pass is given, which returns lse too, "
                         "is that of one that does not",
                     .floating_point = "bound",
                     .hypotheses = of_gradients,
                     .given = any_with_gradients,
                     .check = forward_agrees}),
    about_gradients({.name = "backward.repeatable",
                     .statement = "the same call twice, with one for another problem between, gives the same bits",
                     .floating_point = "bitwise if deterministic",
                     .hypotheses = of_gradients,
                     .given = any_with_gradients,
                     .check = repeatable}),
    about_gradients({.name = "backward.subset",
                     .statement = "some of the gradients, asked for without the others, are the same",
                     .floating_point = "bitwise if deterministic",
                     .hypotheses = of_gradients,
                     .given = any_with_gradients,
                     .check = subset}),
    about_gradients(
        {.name = "backward.strides",
         .statement = "any strides of the same inputs give the same gradients; memory outside the tensors is "
                      "neither read nor written, and inputs keep their bits (guarded, poisoned)",
         .floating_point = "bound (bitwise in the core); guards bitwise",
         .wants = wants_layouts,
         .hypotheses = strided,
         .given = [](Draw& draw) -> Case { return draw.attention().strided().with_later_arguments().with_gradients(); },
         .check = any_strides}),
};

}  // namespace

std::span<const Property> backward_run_properties() {
  return family;
}

}  // namespace attest
