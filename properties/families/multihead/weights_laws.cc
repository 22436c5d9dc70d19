// weights: Attn_W and MAttn_W (000), attention of QW_q + 1b_q^T, KW_k + 1b_k^T and VW_v + 1b_v^T.
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "properties/arrangement/any_number.h"
#include "properties/arrangement/arguments.h"
#include "properties/arrangement/multihead_cases.h"
#include "properties/arrangement/unarranged.h"
#include "properties/catalogue/property.h"
#include "properties/families/multihead/multihead_laws.h"
#include "properties/generators/stream.h"
#include "properties/language/agree.h"

namespace attest {
namespace {

// 000: q̂_i = W_q^T q_i + b_q for each row on its own, k̂ and v̂ likewise; then Attn_W(Q,K,V) = Attn_I(Q̂,K̂,V̂).
Verdict row_form(Kernel& kernel, const Case& c) {
  return agree({run(kernel, c), run(kernel, with_tokens_projected(c))}, Match::bound);
}

// q.b_k is added to every score of a row: the output does not depend on b_k.
Verdict key_bias_irrelevant(Kernel& kernel, const Case& c) {
  Case other = c;
  Stream stream(seed_argument(c, "b_k"));
  other[Slot::b_k] = mapped(Tensor(c.dtype(), {c[Slot::w_k].shape()[1]}), [&](std::int64_t, double) {
    return any_number(static_cast<double>(stream.between(-4, 4)));
  });
  return agree({run(kernel, c), run(kernel, other)}, Match::bound);
}

// O(b_v) = O(0) + 1b_v^T, for the weights of a row sum to one.
Verdict value_bias_passes(Kernel& kernel, const Case& c) {
  const Tensor& b_v = c[Slot::b_v];
  Case without = c;
  // As many biases as before: a kernel may know only all or none.
  without[Slot::b_v] = Tensor(c.dtype(), b_v.shape());
  const Result left = run(kernel, c);
  std::vector<double> rows(static_cast<std::size_t>(left.elements()));
  const std::int64_t columns = b_v.elements();
  for (std::size_t e = 0; columns > 0 && e < rows.size(); ++e) rows[e] = b_v[static_cast<std::int64_t>(e) % columns];
  return agree({Numbers(left), Numbers(run(kernel, without)).plus(Numbers(left.shape(), rows))});
}

/// Columns i of W and b times 2^power and the sign, in the order given: W G of a signed, scaled permutation G.
Tensor with_columns(const Tensor& t, const Indices& order, const std::vector<double>& factor) {
  if (!t.present()) return {};
  const auto columns = static_cast<std::int64_t>(order.size());
  Tensor out = t;
  for (std::int64_t e = 0; e < t.elements(); ++e) {
    const auto to = static_cast<std::size_t>(e % columns);
    out.set(e, factor[to] * t[e - e % columns + order[to]]);
  }
  return out;
}

/// Adds `factor` times column `from` to column `to`.
Tensor with_shear(const Tensor& t, std::int64_t columns, std::int64_t from, std::int64_t to, double factor) {
  if (!t.present()) return {};
  return mapped(t, [&](std::int64_t e, double old) {
    return e % columns == to ? old + factor * t[e - e % columns + from] : old;
  });
}

/// Undoing it gives t back: nothing was rounded away.
bool shear_is_exact(const Tensor& t, std::int64_t columns, std::int64_t from, std::int64_t to, double factor) {
  return with_shear(with_shear(t, columns, from, to, factor), columns, from, to, -factor) == t &&
         std::ranges::all_of(t.to_doubles(), [](double x) { return x == std::nearbyint(x) && std::fabs(x) <= 16; });
}

// W_q -> W_q G, W_k -> W_k G^{-T}, biases alike: (q̂G)(k̂G^{-T})^T = q̂k̂^T. G is a permutation with factors ±2^a, which
// rounds nothing, times a shear I + m e_i e_j^T (whose G^{-T} is I - m e_j e_i^T) where all entries are small whole
// numbers.
Verdict reparametrisation(Kernel& kernel, const Case& c) {
  const std::int64_t dk = c[Slot::w_q].shape()[1];
  const Indices order = permutation_argument(c, "order", dk);
  Stream stream(seed_argument(c, "factors"));
  std::vector<double> up, down;
  for (std::int64_t i = 0; i < dk; ++i) {
    const int power = static_cast<int>(stream.between(-2, 2));
    const double sign = stream.one_in(2) ? -1 : 1;
    up.push_back(std::ldexp(sign, power));
    down.push_back(std::ldexp(sign, -power));
  }
  Case other = c;
  const auto changed = [&](const std::vector<double>& q, const std::vector<double>& k) {
    for (const Slot slot : {Slot::w_q, Slot::b_q}) other[slot] = with_columns(c[slot], order, q);
    for (const Slot slot : {Slot::w_k, Slot::b_k}) other[slot] = with_columns(c[slot], order, k);
  };
  changed(up, down);
  const auto came_back = [&](Slot slot, const std::vector<double>& factor) {
    for (std::int64_t e = 0; e < c[slot].elements(); ++e) {
      const auto to = static_cast<std::size_t>(e % dk);
      if (other[slot][e] / factor[to] != c[slot][e - e % dk + order[to]]) return false;
    }
    return true;
  };
  if (!came_back(Slot::w_q, up) || !came_back(Slot::b_q, up) || !came_back(Slot::w_k, down) ||
      !came_back(Slot::b_k, down)) {
    for (std::vector<double>* factor : {&up, &down})
      for (double& x : *factor) x = std::copysign(1.0, x);
    changed(up, down);
  }
  if (dk >= 2) {
    const std::int64_t i = argument(c, "i", dk), j = (i + 1 + argument(c, "j", dk - 1)) % dk;
    const double m = static_cast<double>(1 + argument(c, "m", 3));
    const auto exact = [&](Slot slot, std::int64_t from, std::int64_t to, double factor) {
      return !other[slot].present() || shear_is_exact(other[slot], dk, from, to, factor);
    };
    if (exact(Slot::w_q, i, j, m) && exact(Slot::b_q, i, j, m) && exact(Slot::w_k, j, i, -m) &&
        exact(Slot::b_k, j, i, -m)) {
      for (const Slot slot : {Slot::w_q, Slot::b_q}) other[slot] = with_shear(other[slot], dk, i, j, m);
      for (const Slot slot : {Slot::w_k, Slot::b_k}) other[slot] = with_shear(other[slot], dk, j, i, -m);
    }
  }
  return agree({run(kernel, c), run(kernel, other)}, Match::bound);
}

DrawnMultihead biased(DrawnMultihead drawn) {
  return drawn.where([](Recipe& r) { r.biases = true, r.left_out_biases = 0; });
}

constexpr std::array exact{defining(hypotheses::exact_projections, "the other side starts from the projected tokens")};
constexpr std::array two_rows{defining(hypotheses::two_queries, "one row is changed or deleted and another looked at")};
constexpr std::array two_keys_hidden{defining(hypotheses::two_keys, "a key is hidden and another one stays")};
constexpr std::array counted{needed(hypotheses::unmasked, "a causal form counts rows and keys")};

constexpr auto row_wise = joined(one_plain_head, exact);
constexpr auto other_rows =
    joined(one_plain_head,
           std::array{spare(hypotheses::unmasked, "a mask or a causal form looks at no other query either")}, two_rows);
constexpr auto deleted_rows = joined(one_plain_head, counted, two_rows);
constexpr auto deleted_masked_rows =
    joined(one_plain_head,
           std::array{needed(hypotheses::no_causal_form, "the form counts the rows, and a row is gone")}, two_rows);
constexpr auto without_bias =
    joined(one_plain_head, counted,
           std::array{spare(hypotheses::no_biases, "a bias is added to every row alike: 000 states it for no need")});
constexpr auto with_bias =
    joined(one_plain_head, counted, std::array{defining(hypotheses::biases, "it is biases that it speaks of")});
constexpr auto hidden_keys =
    joined(one_plain_head, two_keys_hidden,
           std::array{needed(hypotheses::hidden_key, "a key that the row sees has a weight", row_without_key)});
constexpr auto deleted_keys = joined(
    one_plain_head, two_keys_hidden,
    std::array{needed(hypotheses::hidden_from_all, "a row that sees the key gives it a weight", rows_without_key)});
constexpr std::array any_key_bias{
    one_plain_head[0], one_plain_head[1], one_plain_head[2],
    needed(hypotheses::no_bias_kv, "b_k is added to every key but the appended one, and moves their scores alone")};
constexpr std::array any_value_bias{one_plain_head[0], needed(hypotheses::identity_output, "b_v passes through W_o"),
                                    one_plain_head[2],
                                    needed(hypotheses::no_bias_kv, "b_v is added to every value but the appended one"),
                                    defining(hypotheses::value_bias, "it is the value bias that it speaks of")};
constexpr std::array reparametrised{
    needed(hypotheses::one_head, "G mixes the columns of heads, whose scores are not added to each other"),
    one_plain_head[1], one_plain_head[2],
    needed(hypotheses::no_bias_kv, "the appended key is not projected, and stays as it was")};

const Property family[] = {
    {.name = "weights.row-form",
     .statement = "q̂_i = W_qᵀq_i + b_q etc. is the row form of QW_q + 1b_qᵀ",
     .source = "000",
     .needs = "multihead",
     .floating_point = "bound",
     .operation = Operation::multihead,
     .hypotheses = row_wise,
     .given = [](Draw& draw) -> Case { return one_head(whole_numbers(draw)); },
     .check = row_form},
    {.name = "weights.query-locality",
     .statement = "o_i does not depend on q_j, j ≠ i",
     .source = "000",
     .needs = "multihead",
     .floating_point = "bitwise if batch-invariant",
     .operation = Operation::multihead,
     .hypotheses = other_rows,
     .given = [](Draw& draw) -> Case { return one_head(small_multihead(draw).unmasked().at_least(2, 0)); },
     .check = query_locality_law},
    {.name = "weights.query-deletion",
     .statement = "as above, with weights",
     .source = "000",
     .needs = "multihead",
     .floating_point = "bitwise if batch-invariant",
     .operation = Operation::multihead,
     .hypotheses = deleted_rows,
     .given = [](Draw& draw) -> Case { return one_head(small_multihead(draw).unmasked().at_least(2, 0)); },
     .check = query_deletion_law},
    {.name = "weights.masked-query-deletion",
     .statement = "as above, with weights",
     .source = "000",
     .needs = "multihead",
     .floating_point = "bitwise if batch-invariant",
     .operation = Operation::multihead,
     .wants = wants_hidden_keys,
     .hypotheses = deleted_masked_rows,
     .given = [](Draw& draw) -> Case { return one_head(small_multihead(draw).masked().at_least(2, 0)); },
     .check = query_deletion_law},
    {.name = "weights.permutation-equivariance",
     .statement = "without biases: Attn_W(R_πQ,R_σK,R_σV) = R_π Attn_W(Q,K,V)",
     .source = "000",
     .needs = "multihead",
     .floating_point = "bound",
     .operation = Operation::multihead,
     .hypotheses = without_bias,
     .given = [](Draw& draw) -> Case { return one_head(without_biases(small_multihead(draw).unmasked())); },
     .check = permutation_law},
    {.name = "weights.permutation-equivariance-with-bias",
     .statement = "it holds with biases too (R_π 1bᵀ = 1bᵀ): the documents' hypothesis is not needed",
     .source = "000 states it only without",
     .needs = "multihead",
     .floating_point = "bound",
     .operation = Operation::multihead,
     .hypotheses = with_bias,
     .given = [](Draw& draw) -> Case { return one_head(biased(small_multihead(draw).unmasked())); },
     .check = permutation_law},
    {.name = "weights.suppression",
     .statement = "as in masked, with weights",
     .source = "000",
     .needs = "multihead",
     .floating_point = "as in masked",
     .operation = Operation::multihead,
     .hypotheses = hidden_keys,
     .given = [](Draw& draw) -> Case { return one_head(two_keys(small_multihead(draw).masked())); },
     .check = suppression_law},
    {.name = "weights.key-value-deletion",
     .statement = "as in masked, with weights",
     .source = "000",
     .needs = "multihead",
     .floating_point = "as in masked",
     .operation = Operation::multihead,
     .hypotheses = deleted_keys,
     .given = [](Draw& draw) -> Case { return one_head(two_keys(small_multihead(draw).masked())); },
     .check = key_value_deletion_law},
    {.name = "weights.key-bias-irrelevant",
     .statement = "without add_bias_kv the output does not depend on b_k",
     .source = "+",
     .needs = "multihead",
     .floating_point = "bound",
     .operation = Operation::multihead,
     .hypotheses = any_key_bias,
     .given = [](Draw& draw) -> Case { return one_head(small_multihead(draw)); },
     .check = key_bias_irrelevant},
    {.name = "weights.value-bias-passes",
     .statement = "without add_bias_kv O(b_v) = O(0) + 1b_vᵀ",
     .source = "+",
     .needs = "multihead",
     .floating_point = "bound",
     .operation = Operation::multihead,
     .hypotheses = any_value_bias,
     .given = [](Draw& draw) -> Case { return one_head(biased(small_multihead(draw))); },
     .check = value_bias_passes},
    {.name = "weights.reparametrisation",
     .statement = "W_q→W_qG, W_k→W_kG^{-T} (biases alike) changes nothing",
     .source = "+",
     .needs = "multihead",
     .floating_point = "bound",
     .operation = Operation::multihead,
     .hypotheses = reparametrised,
     .given = [](Draw& draw) -> Case { return one_head(small_multihead(draw)); },
     .check = reparametrisation},
};

}  // namespace

std::span<const Property> weights_properties() {
  return family;
}

}  // namespace attest
