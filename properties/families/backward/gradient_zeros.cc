// backward: gradients that are 0, because nothing depends on their argument, or because what it changes does not show.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <functional>
#include <vector>

#include "core/problem/sight.h"
#include "core/support/printed.h"
#include "properties/arrangement/any_number.h"
#include "properties/arrangement/arguments.h"
#include "properties/arrangement/arrange.h"
#include "properties/arrangement/masks.h"
#include "properties/families/backward/about_gradients.h"
#include "properties/language/balance.h"
#include "properties/language/gradients.h"
#include "properties/language/not_judged.h"

namespace attest {
namespace {

double nothing(double /*old*/) {
  return 0;
}

// dO = 0 and gamma = 0: every gradient is 0.
Verdict zero_dout(Kernel& kernel, const Case& c) {
  Case zero = c;
  const auto every = [](std::int64_t /*row*/) { return true; };
  zero[Slot::d_out] = with_rows_as(c[Slot::d_out], every, nothing);
  zero[Slot::d_lse] = with_rows_as(c[Slot::d_lse], every, nothing);
  const BackwardRun run(kernel, zero);
  Zeros zeros;
  for (const Gradient gradient : every_gradient)
    if (run.has(gradient)) zeros.look_at(run.of(gradient), name_of(gradient));
  return zeros.verdict();
}

/// Rows of k and v that no row of their heads sees.
Indices unseen_keys(const Case& c) {
  const Shape& k = c.k().shape();
  std::vector<bool> seen(static_cast<std::size_t>(k[0] * k[1] * k[2]), false);
  for (std::int64_t b = 0; b < k[0]; ++b)
    for (std::int64_t h = 0; h < heads_of(c); ++h)
      for (std::int64_t i = 0; i < queries_of(c); ++i)
        for (std::int64_t j = 0; j < k[2]; ++j)
          if (!hidden(c, b, h, i, j)) seen[static_cast<std::size_t>((b * k[1] + kv_head_of(c, h)) * k[2] + j)] = true;
  Indices rows = all_of(std::ssize(seen));
  std::erase_if(rows, [&](std::int64_t row) { return seen[static_cast<std::size_t>(row)]; });
  return rows;
}

/// The elements of these rows, counted over all heads.
Result rows_of(const Result& gradient, const Indices& rows) {
  const std::int64_t columns = gradient.shape()[3];
  Indices elements;
  for (const std::int64_t row : rows)
    for (std::int64_t e = 0; e < columns; ++e) elements.push_back(row * columns + e);
  return gradient.at({std::ssize(elements)}, elements);
}

// A key that no row sees: dk_j = dv_j = 0.
Verdict hidden_keys(Kernel& kernel, const Case& c) {
  const Indices unseen = unseen_keys(c);
  if (unseen.empty()) return skipped("has no key that no row sees");
  const BackwardRun run(kernel, c);
  Zeros zeros;
  for (const Gradient gradient : {Gradient::k, Gradient::v})
    if (run.has(gradient)) zeros.look_at(rows_of(run.of(gradient), unseen), name_of(gradient));
  return zeros.verdict();
}

/// Row i sees no key, in no head.
Case with_empty_row(const Case& c, std::int64_t i) {
  Case empty = c;
  for (std::int64_t j = 0; j < keys_of(c); ++j) empty = hide(std::move(empty), i, j);
  return empty;
}

// A row that sees no key has no part in dk and dv: they are what they are with g_i = 0, another gamma_i and another
// q_i; dq_i is 0, or NaN where the manifest says so.
Verdict masked_row(Kernel& kernel, const Case& c) {
  const std::int64_t i = argument(c, "i", queries_of(c));
  const Case empty = with_empty_row(c, i);
  const BackwardRun run(kernel, empty);
  Verdict own = each_gradient(run, {Gradient::q}, [&](Gradient of) -> Verdict {
    const Result row = run.of(of).queries({i});
    if (in_a_proof()) {
      Zeros zeros;
      zeros.look_at(row, name_of(of));
      return zeros.verdict();
    }
    const bool zero = kernel.manifest().backward_terms.masked_row == MaskedGradient::zero;
    for (std::int64_t e = 0; e < row.elements(); ++e) {
      const AllowedError bound = row.run().bound(row.origin(e));
      const double found = row.run().out()[row.origin(e)];
      if (bound.excuse != Excuse::fully_masked || (zero ? found == 0 : std::isnan(found))) continue;
      return about(of, violated(Violation::bits, fmt::format("a row that sees no key has {} at flat index {}, where "
                                                             "the manifest says {}",
                                                             printed(found), row.origin(e), zero ? "zero" : "nan")));
    }
    return {};
  });
  Case other = empty;
  const auto is_i = [&](std::int64_t row) { return row == i; };
  other[Slot::d_out] = with_rows_as(c[Slot::d_out], is_i, nothing);
  for (const Slot slot : {Slot::q, Slot::d_lse}) other[slot] = with_rows_as(c[slot], is_i, another);
  const BackwardRun without(kernel, other);
  const Match match = match_of_unseen_rows(kernel);
  return worse_of({std::move(own), each_gradient(run, {Gradient::k, Gradient::v}, [&](Gradient of) {
                     return gradients_agree(of, {without.of(of), run.of(of)}, match);
                   })});
}

// dO and gamma in head h alone: dQ and dsigma are 0 but in head h, dk and dv but in the key-value head that h reads.
Verdict head_map(Kernel& kernel, const Case& c) {
  const std::int64_t heads = heads_of(c), h = argument(c, "h", heads), kv_heads = c.k().shape()[1];
  Case one = c;
  for (const Slot slot : of_answers) {
    if (!c[slot].present()) continue;
    const std::int64_t page = c[slot].elements() / (batch_of(c) * heads);
    one[slot] = mapped(c[slot], [&](std::int64_t e, double old) { return e / page % heads == h ? old : 0.0; });
  }
  const BackwardRun run(kernel, one);
  Zeros zeros;
  for (const Gradient gradient : {Gradient::q, Gradient::k, Gradient::v}) {
    const bool of_query = gradient == Gradient::q;
    if (!run.has(gradient) || (!of_query && kv_heads < 2)) continue;
    const Indices others = all_but(of_query ? heads : kv_heads, of_query ? h : kv_head_of(c, h));
    zeros.look_at(run.of(gradient).heads(others), name_of(gradient));
  }
  if (run.has(Gradient::sink)) {
    const Indices others = all_but(heads, h);
    zeros.look_at(run.of(Gradient::sink).at({std::ssize(others)}, others), name_of(Gradient::sink));
  }
  return zeros.verdict();
}

// A column of K that is 0 has dQ = 0 there, and one of Q dK.
Verdict span(Kernel& kernel, const Case& c) {
  const std::int64_t dk = c.q().shape()[3], of_k = argument(c, "of-k", dk), of_q = argument(c, "of-q", dk);
  Case zero = c;
  const auto without = [&](Slot slot, std::int64_t column) {
    zero[slot] = mapped(c[slot], [&](std::int64_t e, double old) { return e % dk == column ? 0.0 : old; });
  };
  without(Slot::k, of_k), without(Slot::q, of_q);
  const BackwardRun run(kernel, zero);
  Zeros zeros;
  if (run.has(Gradient::q)) zeros.look_at(run.of(Gradient::q).columns({of_k}), "dq");
  if (run.has(Gradient::k)) zeros.look_at(run.of(Gradient::k).columns({of_q}), "dk");
  return zeros.verdict();
}

/// Each of these gradients is 0 to within its bound.
Verdict vanish(const BackwardRun& run, std::initializer_list<Gradient> gradients) {
  return each_gradient(run, gradients, [&](Gradient of) {
    const Numbers found(run.of(of));
    const std::vector<double> zeros(static_cast<std::size_t>(found.elements()), 0.0);
    return gradients_agree(of, {found, Numbers(found.shape(), zeros)});
  });
}

/// Row j of each head of k or v in the place of all.
Case with_equal_rows(const Case& c, Slot slot, std::int64_t j) {
  Case equal = c;
  const std::int64_t N = keys_of(c), columns = c[slot].shape()[3];
  equal[slot] = mapped(
      c[slot], [&](std::int64_t e, double) { return c[slot][(e / columns / N * N + j) * columns + e % columns]; });
  return equal;
}

// All v_j equal: dQ = dK = 0, for the output is v whatever the weights are.
Verdict constant_values(Kernel& kernel, const Case& c) {
  const Case equal = with_equal_rows(c, Slot::v, argument(c, "j", keys_of(c)));
  return vanish(BackwardRun(kernel, equal), {Gradient::q, Gradient::k});
}

// All k_j equal: dQ = 0, for all scores of a row move together.
Verdict equal_keys(Kernel& kernel, const Case& c) {
  const Case equal = with_equal_rows(c, Slot::k, argument(c, "j", keys_of(c)));
  return vanish(BackwardRun(kernel, equal), {Gradient::q});
}

// One key: its weight is 1, dQ = dK = 0, and dv = sum_h sum_i g_i.
Verdict one_key(Kernel& kernel, const Case& c) {
  const BackwardRun run(kernel, c);
  Verdict nothing = vanish(run, {Gradient::q, Gradient::k});
  if (!run.has(Gradient::v)) return nothing;
  const Numbers of_v(run.of(Gradient::v));
  const Shape &q = c.q().shape(), &v = c.v().shape();
  WorstBalance worst;
  for (std::int64_t page = 0; page < v[0] * v[1]; ++page)
    for (std::int64_t e = 0; e < v[3]; ++e) {
      Balance balance;
      balance.add(of_v, page * v[3] + e, 1);
      const std::int64_t rows = q[1] / v[1] * q[2];
      for (std::int64_t row = page * rows; row < (page + 1) * rows; ++row) {
        const std::int64_t i = row % q[2], h = row / q[2] % q[1], b = row / q[2] / q[1];
        if (!hidden(c, b, h, i, 0)) balance.add_number(c[Slot::d_out][row * v[3] + e], 1, -1);
      }
      worst.judge(balance, [&] { return fmt::format("dv of key-value head {}, column {}", page, e); });
    }
  return worse_of({std::move(nothing), worst.verdict()});
}

constexpr std::array a_row_without_a_key{
    defining(hypotheses::gradients, "it is about them"),
    defining(hypotheses::no_causal_form, "the mask is what hides the row's keys"),
    defining(hypotheses::a_query_and_a_key, "a query is hidden from every key"),
    defining(hypotheses::infinity_to_hide, "-inf is what hides a key in an additive mask")};
constexpr std::array of_heads{defining(hypotheses::gradients, "it is about them"),
                              defining(hypotheses::two_heads, "one head is looked at and another one is silent")};
constexpr std::array a_key{defining(hypotheses::gradients, "it is about them"),
                           defining(hypotheses::a_query_and_a_key, "there is a key")};
constexpr std::array single{defining(hypotheses::gradients, "it is about them"),
                            needed(hypotheses::one_key, "with two keys the output lies between their values")};

const Property family[] = {
    about_gradients({.name = "backward.zero-dout",
                     .statement = "dO = 0, γ = 0: every gradient is 0",
                     .floating_point = "inside the domain: zero bitwise",
                     .hypotheses = of_gradients,
                     .given = any_with_gradients,
                     .check = zero_dout}),
    about_gradients({.name = "backward.hidden-keys",
                     .statement = "a key that no row sees: dk_j = dv_j = 0",
                     .floating_point = "inside the domain: zero bitwise",
                     .hypotheses = of_gradients,
                     .given = masked_with_gradients,
                     .check = hidden_keys}),
    about_gradients(
        {.name = "backward.masked-row",
         .statement =
             "a row that sees no key: dq_i is 0, or NaN as the manifest says; dK and dV are what they are with "
             "g_i = 0, another γ_i and another q_i",
         .floating_point =
             "zero or NaN bitwise; equal values (+0 equals −0) if deterministic and batch-invariant, else "
             "bound",
         .hypotheses = a_row_without_a_key,
         .given = [](Draw& draw) -> Case {
           return draw.attention().masked().at_least(1, 1).with_later_arguments().with_gradients();
         },
         .check = masked_row},
        without_sink_by_lse),
    about_gradients({.name = "backward.head-map",
                     .statement = "dO and γ in head h alone: dQ and dσ are 0 but in head h, dK and dV but in "
                                  "key-value head ⌊h/G⌋",
                     .floating_point = "inside the domain: zero bitwise",
                     .hypotheses = of_heads,
                     .given = [](Draw& draw) -> Case {
                       return draw.attention()
                           .where([](Recipe& r) {
                             if (r.heads < 2) r.heads = r.kv_heads = 2;
                             if (r.kv_heads < 2 && r.seed % 4 != 0) r.heads = 4, r.kv_heads = 2;
                           })
                           .with_later_arguments()
                           .with_gradients();
                     },
                     .check = head_map}),
    about_gradients({.name = "backward.span",
                     .statement = "a column of 0 in K has dQ = 0 there, and one in Q has dK = 0",
                     .floating_point = "inside the domain: zero bitwise",
                     .hypotheses = of_gradients,
                     .given = any_with_gradients,
                     .check = span}),
    about_gradients({.name = "backward.constant-values",
                     .statement = "all values equal: dQ = dK = 0",
                     .floating_point = "bound around 0",
                     .hypotheses = a_key,
                     .given = [](Draw& draw) -> Case {
                       return draw.attention().at_least(1, 1).with_later_arguments().with_gradients();
                     },
                     .check = constant_values},
                    rows_of_1),
    about_gradients({.name = "backward.equal-keys",
                     .statement = "all keys equal: dQ = 0",
                     .floating_point = "bound around 0",
                     .hypotheses = a_key,
                     .given = [](Draw& draw) -> Case {
                       return draw.attention().at_least(1, 1).with_later_arguments().with_gradients();
                     },
                     .check = equal_keys},
                    without_sink),
    about_gradients(
        {.name = "backward.one-key",
         .statement = "N = 1: dQ = dK = 0, and dv_1 = Σ_h Σ_i g_i over rows that see it",
         .floating_point = "bound around 0",
         .hypotheses = single,
         .given = [](Draw& draw) -> Case {
           return draw.attention().where([](Recipe& r) { r.keys = 1; }).with_later_arguments().with_gradients();
         },
         .check = one_key},
        rows_of_1),
};

}  // namespace

std::span<const Property> backward_zero_properties() {
  return family;
}

}  // namespace attest
