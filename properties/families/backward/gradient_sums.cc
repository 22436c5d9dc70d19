// backward: sums over gradients that are known without them.
#include <fmt/format.h>

#include <array>
#include <string>

#include "core/problem/sight.h"
#include "properties/families/backward/about_gradients.h"
#include "properties/language/balance.h"
#include "properties/language/gradients.h"
#include "properties/language/not_judged.h"

namespace attest {
namespace {

/// A key-value head of a batch entry, and the query heads that read it.
struct Group {
  std::int64_t entry, kv, first_head, last_head;
  [[nodiscard]] std::string words() const { return fmt::format("entry {}, key-value head {}", entry, kv); }
};
template <class Visit>
void for_each_group(const Case& c, Visit&& visit) {
  const Shape &q = c.q().shape(), &k = c.k().shape();
  const std::int64_t group = q[1] / k[1];
  for (std::int64_t b = 0; b < k[0]; ++b)
    for (std::int64_t kv = 0; kv < k[1]; ++kv) visit(Group{b, kv, kv * group, (kv + 1) * group});
}

/// visit(flat index of the first element of each row of the group in q, out or d_out, head, row).
template <class Visit>
void for_each_query(const Group& of, const Shape& shape, Visit&& visit) {
  for (std::int64_t h = of.first_head; h < of.last_head; ++h)
    for (std::int64_t i = 0; i < shape[2]; ++i) visit(((of.entry * shape[1] + h) * shape[2] + i) * shape[3], h, i);
}
/// The same of each row in k or v.
template <class Visit>
void for_each_key(const Group& of, const Shape& shape, Visit&& visit) {
  for (std::int64_t j = 0; j < shape[2]; ++j) visit(((of.entry * shape[1] + of.kv) * shape[2] + j) * shape[3]);
}

// Sum_h Q_h^T dQ_h = dK^T K: scores see Q and K only through their products, so Q(1 + eX) and K(1 - eX^T) move nothing.
Verdict gauge(Kernel& kernel, const Case& c) {
  const BackwardRun run(kernel, c);
  const Numbers of_q(run.of(Gradient::q)), of_k(run.of(Gradient::k));
  const std::int64_t dk = c.q().shape()[3];
  WorstBalance worst;
  for_each_group(c, [&](const Group& group) {
    for (std::int64_t one = 0; one < dk; ++one)
      for (std::int64_t other = 0; other < dk; ++other) {
        Balance balance;
        for_each_query(group, c.q().shape(), [&](std::int64_t row, std::int64_t, std::int64_t) {
          balance.add(of_q, row + other, c.q()[row + one]);
        });
        for_each_key(group, c.k().shape(),
                     [&](std::int64_t row) { balance.add(of_k, row + one, c.k()[row + other], -1); });
        worst.judge(balance, [&] { return fmt::format("{}, columns {} and {}", group.words(), one, other); });
      }
  });
  return worst.verdict();
}

// V^T dV = Sum_h O_h^T dO_h, both Sum_ij alpha_ij v_j g_i^T.
Verdict value_gauge(Kernel& kernel, const Case& c) {
  const BackwardRun run(kernel, c);
  const Numbers of_v(run.of(Gradient::v)), out(run.out(kernel));
  const std::int64_t dv = c.v().shape()[3];
  WorstBalance worst;
  for_each_group(c, [&](const Group& group) {
    for (std::int64_t one = 0; one < dv; ++one)
      for (std::int64_t other = 0; other < dv; ++other) {
        Balance balance;
        for_each_key(group, c.v().shape(), [&](std::int64_t row) { balance.add(of_v, row + other, c.v()[row + one]); });
        for_each_query(group, c.out_shape(), [&](std::int64_t row, std::int64_t, std::int64_t) {
          balance.add(out, row + one, c[Slot::d_out][row + other], -1);
        });
        worst.judge(balance, [&] { return fmt::format("{}, columns {} and {}", group.words(), one, other); });
      }
  });
  return worst.verdict();
}

// The traces of both: <Q, dQ> = <K, dK> and <V, dV> = <O, dO>.
Verdict euler(Kernel& kernel, const Case& c) {
  const BackwardRun run(kernel, c);
  const auto add_all = [](Balance& balance, const Numbers& numbers, const Tensor& factors, std::int64_t row, int sign) {
    for (std::int64_t e = row; e < row + factors.shape()[3]; ++e) balance.add(numbers, e, factors[e], sign);
  };
  Verdict verdict = skipped("the manifest's backward.gradients list neither dv nor dq and dk");
  if (run.has(Gradient::q) && run.has(Gradient::k)) {
    const Numbers of_q(run.of(Gradient::q)), of_k(run.of(Gradient::k));
    WorstBalance worst;
    for_each_group(c, [&](const Group& group) {
      Balance balance;
      for_each_query(group, c.q().shape(),
                     [&](std::int64_t row, std::int64_t, std::int64_t) { add_all(balance, of_q, c.q(), row, 1); });
      for_each_key(group, c.k().shape(), [&](std::int64_t row) { add_all(balance, of_k, c.k(), row, -1); });
      worst.judge(balance, [&] { return group.words() + ", of q and k"; });
    });
    verdict = worst.verdict();
  }
  if (!run.has(Gradient::v)) return verdict;
  const Numbers of_v(run.of(Gradient::v)), out(run.out(kernel));
  WorstBalance worst;
  for_each_group(c, [&](const Group& group) {
    Balance balance;
    for_each_key(group, c.v().shape(), [&](std::int64_t row) { add_all(balance, of_v, c.v(), row, 1); });
    for_each_query(group, c.out_shape(), [&](std::int64_t row, std::int64_t, std::int64_t) {
      add_all(balance, out, c[Slot::d_out], row, -1);
    });
    worst.judge(balance, [&] { return group.words() + ", of v and the output"; });
  });
  return worse_of({std::move(verdict), worst.verdict()});
}

bool sees_a_key(const Case& c, std::int64_t b, std::int64_t h, std::int64_t i) {
  for (std::int64_t j = 0; j < keys_of(c); ++j)
    if (!hidden(c, b, h, i, j)) return true;
  return false;
}

// Sum_j dv_j = sum_h sum_i g_i over rows that see a key.
Verdict dv_sums_to_do(Kernel& kernel, const Case& c) {
  const BackwardRun run(kernel, c);
  const Numbers of_v(run.of(Gradient::v));
  WorstBalance worst;
  for_each_group(c, [&](const Group& group) {
    std::vector<std::int64_t> seeing;
    for_each_query(group, c.out_shape(), [&](std::int64_t row, std::int64_t h, std::int64_t i) {
      if (sees_a_key(c, group.entry, h, i)) seeing.push_back(row);
    });
    for (std::int64_t e = 0; e < c.v().shape()[3]; ++e) {
      Balance balance;
      for_each_key(group, c.v().shape(), [&](std::int64_t row) { balance.add(of_v, row + e, 1); });
      for (const std::int64_t row : seeing) balance.add_number(c[Slot::d_out][row + e], 1, -1);
      worst.judge(balance, [&] { return fmt::format("{}, column {}", group.words(), e); });
    }
  });
  return worst.verdict();
}

// Sum_j dk_j = 0: a softmax does not see what is added to all of its scores.
Verdict dk_sums_to_zero(Kernel& kernel, const Case& c) {
  const BackwardRun run(kernel, c);
  const Numbers of_k(run.of(Gradient::k));
  WorstBalance worst;
  for_each_group(c, [&](const Group& group) {
    for (std::int64_t e = 0; e < c.k().shape()[3]; ++e) {
      Balance balance;
      for_each_key(group, c.k().shape(), [&](std::int64_t row) { balance.add(of_k, row + e, 1); });
      worst.judge(balance, [&] { return fmt::format("{}, column {}", group.words(), e); });
    }
  });
  return worst.verdict();
}

// Sum_j dB_ij = 0: a softmax does not see what is added to all scores of a row.
Verdict mask_rows_sum_to_zero(Kernel& kernel, const Case& c) {
  const BackwardRun run(kernel, c);
  const Numbers of_mask(run.of(Gradient::mask));
  const std::int64_t keys = of_mask.shape()[3];
  WorstBalance worst;
  for (std::int64_t row = 0; row * keys < of_mask.elements(); ++row) {
    Balance balance;
    for (std::int64_t j = 0; j < keys; ++j) balance.add(of_mask, row * keys + j, 1);
    worst.judge(balance, [&] { return fmt::format("row {} of all of the mask's", row); });
  }
  return worst.verdict();
}

/// Scores far from 0, each by as much as most others of its row or by tens more or less.
void far_scores(Recipe& r) {
  constexpr ScoreKind kinds[] = {ScoreKind::offset, ScoreKind::below_sentinels, ScoreKind::spread, ScoreKind::dominant};
  r.scores = kinds[(r.seed >> 24) % 4];
}

constexpr Want wants_far_scores[] = {
    {"scores far from 0", "scores:offset scores:below-sentinels scores:spread scores:dominant"}};

const Property family[] = {
    about_gradients({.name = "backward.gauge",
                     .statement = "Σ_h Q_hᵀ dQ_h = dKᵀ K: scores see Q and K through their products alone",
                     .floating_point = "bound",
                     .hypotheses = of_gradients,
                     .given = any_with_gradients,
                     .check = gauge}),
    about_gradients({.name = "backward.value-gauge",
                     .statement = "Vᵀ dV = Σ_h O_hᵀ dO_h",
                     .floating_point = "bound",
                     .hypotheses = of_gradients,
                     .given = any_with_gradients,
                     .check = value_gauge}),
    about_gradients({.name = "backward.euler",
                     .statement = "⟨Q,dQ⟩ = ⟨K,dK⟩ and ⟨V,dV⟩ = ⟨O,dO⟩ over the heads of a group",
                     .floating_point = "bound",
                     .hypotheses = of_gradients,
                     .given = any_with_gradients,
                     .check = euler}),
    about_gradients({.name = "backward.dv-sums-to-do",
                     .statement = "Σ_j dv_j = Σ_h Σ_i g_i over rows that see a key",
                     .floating_point = "bound",
                     .hypotheses = of_gradients,
                     .given = any_with_gradients,
                     .check = dv_sums_to_do},
                    rows_of_1),
    about_gradients({.name = "backward.consistent-scores",
                     .statement = "the same at scores far from 0: the weights are of the scores that lse is of",
                     .floating_point = "bound",
                     .wants = wants_far_scores,
                     .hypotheses = of_gradients,
                     .given = [](Draw& draw) -> Case {
                       return draw.attention().where(far_scores).with_later_arguments().with_gradients();
                     },
                     .check = dv_sums_to_do},
                    rows_of_1),
    about_gradients({.name = "backward.dk-sums-to-zero",
                     .statement = "Σ_j dk_j = 0",
                     .floating_point = "bound around 0",
                     .hypotheses = of_gradients,
                     .given = any_with_gradients,
                     .check = dk_sums_to_zero},
                    sums_of_scores),
    about_gradients({.name = "backward.ds-rows-sum-to-zero",
                     .statement = "Σ_j dB_ij = 0",
                     .needs = "attention_backward, additive masks",
                     .floating_point = "bound around 0",
                     .hypotheses = of_masks,
                     .given = biased_with_gradients,
                     .check = mask_rows_sum_to_zero},
                    without_sink),
};

}  // namespace

std::span<const Property> backward_sum_properties() {
  return family;
}

}  // namespace attest
