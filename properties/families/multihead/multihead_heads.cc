// multihead: what happens to heads and packings of MHAttn and MMHAttn (000, 001, 002, 003).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "core/definition/projection.h"
#include "properties/arrangement/any_number.h"
#include "properties/arrangement/arguments.h"
#include "properties/arrangement/arrange.h"
#include "properties/arrangement/multihead_cases.h"
#include "properties/catalogue/property.h"
#include "properties/language/agree.h"
#include "properties/language/answer.h"

namespace attest {
namespace {

/// Widths as torch.nn.MultiheadAttention has them; then a kernel may know no others.
bool tied(const Case& c) {
  const Extents e = extents_of(c);
  return c[Slot::w_o].present() && e.dk == e.dv && e.c_q == e.heads * e.dk && e.d_o == e.c_q;
}

/// [O_1 | … | O_h]: the case without W_o and b_o, or with W_o = I.
Case side_by_side(Case c) {
  c[Slot::w_o] = tied(c) ? identity_tensor(c.dtype(), c[Slot::w_o].shape()[0]) : Tensor();
  c[Slot::b_o] = Tensor();
  return c;
}

/// O_h of head h alone, [batch, M, dv]. Where widths are tied, the first of as many copies of it.
Result head_alone(Kernel& kernel, const Case& c, std::int64_t h) {
  const Indices heads(tied(c) ? static_cast<std::size_t>(c.heads) : 1, h);
  Case alone = with_heads(side_by_side(c), heads);
  if (alone[Slot::w_o].present()) alone[Slot::w_o] = side_by_side(c)[Slot::w_o];
  return run(kernel, alone).columns(all_of(extents_of(c).dv));
}

/// 1 b_o^T in a shape of rows.
Numbers output_bias(const Case& c, const Shape& shape) {
  const Tensor& b_o = c[Slot::b_o];
  std::vector<double> rows(static_cast<std::size_t>(shape.elements()), 0.0);
  for (std::size_t e = 0; b_o.present() && e < rows.size(); ++e)
    rows[e] = b_o[static_cast<std::int64_t>(e) % b_o.elements()];
  return {shape, rows};
}

// 002: [O_1|…|O_h] W_o + b_o = sum_h O_h W_o^h + b_o. Each term is asked with the other blocks of W_o zero.
Verdict concat_is_sum(Kernel& kernel, const Case& c) {
  const Extents e = extents_of(c);
  const Result whole = run(kernel, c);
  Numbers sum = output_bias(c, whole.shape());
  for (std::int64_t h = 0; h < e.heads; ++h) {
    Case term = c;
    // As many biases as before: a kernel may know only all or none.
    if (c[Slot::b_o].present()) term[Slot::b_o] = Tensor(c.dtype(), c[Slot::b_o].shape());
    term[Slot::w_o] =
        mapped(c[Slot::w_o], [&](std::int64_t at, double old) { return at / e.d_o / e.dv == h ? old : 0.0; });
    sum = Numbers(run(kernel, term)).plus(sum);
  }
  return agree({Numbers(whole), sum});
}

// 000, 003: W = [W_1|…|W_h], one product and views of it, is h separate heads.
Verdict fused_projection(Kernel& kernel, const Case& c) {
  const Extents e = extents_of(c);
  const std::int64_t h = argument(c, "h", e.heads);
  Indices columns = all_of(e.dv);
  for (std::int64_t& column : columns) column += h * e.dv;
  return agree({run(kernel, side_by_side(c)).columns(columns), head_alone(kernel, c, h)}, Match::bound);
}

// 003: MultiHeadAttentionV1 without positions: each head on its own, [O_1|…|O_h] W_o + b_o.
Verdict v1_is_fused(Kernel& kernel, const Case& c) {
  const Extents e = extents_of(c);
  const Result whole = run(kernel, c);
  const std::vector<double> w_o = c[Slot::w_o].to_doubles();
  Numbers sum = output_bias(c, whole.shape());
  for (std::int64_t h = 0; h < e.heads; ++h) {
    const std::span<const double> block(w_o.data() + h * e.dv * e.d_o, static_cast<std::size_t>(e.dv * e.d_o));
    sum = Numbers(head_alone(kernel, c, h)).times(block, e.dv, e.d_o).plus(sum);
  }
  return agree({Numbers(whole), sum});
}

/// The weights of every head as the kernel has them, read like attention's through values that are columns of the
/// identity: token j is e_(j - first), and W_v passes on the first `width` entries to each head.
struct HeadWeights {
  std::int64_t width = 1;
  std::vector<Result> blocks;  ///< [batch, M, heads*dv], or wider where widths are tied; weight j of head h at h*dv + j
};
HeadWeights read_head_weights(Kernel& kernel, const Case& c) {
  const Extents e = extents_of(c);
  HeadWeights weights;
  weights.width = std::min(e.c_v, e.dv);
  Case read = side_by_side(c);
  if (c[Slot::b_v].present()) read[Slot::b_v] = Tensor(c.dtype(), c[Slot::b_v].shape());
  const std::int64_t columns = e.heads * e.dv;
  read[Slot::w_v] = mapped(c[Slot::w_v], [&](std::int64_t at, double) {
    return at / columns < weights.width && at / columns == at % columns % e.dv ? 1.0 : 0.0;
  });
  for (std::int64_t first = 0; first < e.keys; first += weights.width) {
    read[Slot::v] = mapped(c.v(), [&](std::int64_t at, double) {
      const std::int64_t j = at / e.c_v % e.keys - first;
      return j >= 0 && j < weights.width && at % e.c_v == j ? 1.0 : 0.0;
    });
    weights.blocks.push_back(run(kernel, read));
  }
  return weights;
}

/// Weights of keys first … of head h in one batch entry, [1, M, width].
Numbers weights_of(const HeadWeights& weights, const Extents& e, std::size_t block, std::int64_t b, std::int64_t h) {
  Indices columns = all_of(weights.width);
  for (std::int64_t& column : columns) column += h * e.dv;
  return Numbers(weights.blocks[block].batch({b}).columns(columns));
}

Verdict no_keys() {
  return {.outcome = Outcome::excused, .reason = std::string(name_of(Excuse::fully_masked))};
}

// 000, 003, 004: O_h = alpha_h V_h for each head, alpha_h from the same kernel through V = I; then W_o and b_o.
Verdict expectation_of_heads(Kernel& kernel, const Case& c) {
  if (keys_of(c) == 0) return no_keys();
  const Extents e = extents_of(c);
  const HeadWeights alpha = read_head_weights(kernel, c);
  const Result out = run(kernel, c);
  bool exact = true;
  const Tensor values = projected(c.v(), c[Slot::w_v], c[Slot::b_v], exact);
  std::vector<double> into = c[Slot::w_o].to_doubles();
  if (!c[Slot::w_o].present()) into = identity_tensor(DType::f64, e.heads * e.dv).to_doubles();
  const std::int64_t d_o = out.shape()[2];
  Verdict worst{.outcome = Outcome::skipped};
  for (std::int64_t b = 0; b < e.batch; ++b) {
    const Result whole = out.batch({b});
    Numbers sum = output_bias(c, whole.shape());
    for (std::int64_t h = 0; h < e.heads; ++h) {
      const std::span<const double> block(into.data() + h * e.dv * d_o, static_cast<std::size_t>(e.dv * d_o));
      for (std::size_t part = 0; part < alpha.blocks.size(); ++part) {
        const std::int64_t first = static_cast<std::int64_t>(part) * alpha.width;
        std::vector<double> v(static_cast<std::size_t>(alpha.width * e.dv), 0.0);
        for (std::int64_t j = 0; j < std::min(alpha.width, e.keys - first); ++j)
          for (std::int64_t k = 0; k < e.dv; ++k)
            v[static_cast<std::size_t>(j * e.dv + k)] = values[((b * e.keys + first + j) * e.heads + h) * e.dv + k];
        sum = weights_of(alpha, e, part, b, h).times(v, alpha.width, e.dv).times(block, e.dv, d_o).plus(sum);
      }
    }
    worst = worse_of({std::move(worst), agree({sum, Numbers(whole)})});
  }
  return worst;
}

// 004: each row of alpha_h is a probability distribution over the keys.
Verdict conditional_probability_of_heads(Kernel& kernel, const Case& c) {
  if (keys_of(c) == 0) return no_keys();
  const Extents e = extents_of(c);
  const HeadWeights alpha = read_head_weights(kernel, c);
  const auto all = [](const Shape& shape, double value) {
    return Numbers(shape, std::vector<double>(static_cast<std::size_t>(shape.elements()), value));
  };
  const std::vector<double> ones(static_cast<std::size_t>(alpha.width), 1.0);
  Verdict worst{.outcome = Outcome::skipped};
  for (std::int64_t b = 0; b < e.batch; ++b) {
    for (std::int64_t h = 0; h < e.heads; ++h) {
      Numbers sum;
      for (std::size_t part = 0; part < alpha.blocks.size(); ++part) {
        const Numbers weights = weights_of(alpha, e, part, b, h);
        worst = worse_of({std::move(worst), within(weights, all(weights.shape(), 0), all(weights.shape(), 1))});
        const Numbers some = weights.times(ones, alpha.width, 1);
        sum = part == 0 ? some : sum.plus(some);
      }
      worst = worse_of({std::move(worst), agree({sum, all(sum.shape(), 1)})});
    }
  }
  return worst;
}

Matrix<double> matrix_of(const Tensor& t, std::int64_t page = 0) {
  const int rank = t.shape().rank();
  Matrix<double> m(t.shape()[rank - 2], t.shape()[rank - 1]);
  for (Index i = 0; i < m.rows(); ++i)
    for (Index j = 0; j < m.cols(); ++j) m(i, j) = t[(page * m.rows() + i) * m.cols() + j];
  return m;
}

void store_page(Tensor& t, std::int64_t page, const Matrix<double>& m) {
  for (Index i = 0; i < m.rows(); ++i)
    for (Index j = 0; j < m.cols(); ++j) t.set((page * m.rows() + i) * m.cols() + j, m(i, j));
}

/// a b; in a proof its entries stand for the exact ones.
Matrix<double> exact_product(const Matrix<double>& a, const Matrix<double>& b) {
  if (!in_a_proof()) return product<double>(a, b);
  Matrix<double> c = Matrix<double>::Zero(a.rows(), b.cols());
  for (Index i = 0; i < a.rows(); ++i)
    for (Index j = 0; j < b.cols(); ++j)
      for (Index l = 0; l < a.cols(); ++l) c(i, j) = sum_of(c(i, j), product_of(a(i, l), b(l, j)));
  return c;
}

// 001: X W, W_{(m B a) i} of 001's formula or [Q|K|V] of its code, then split, is the three products.
Verdict packed_qkv(Kernel& kernel, const Case& c) {
  const Extents e = extents_of(c);
  const Packing packing = argument(c, "packing", 2) == 0 ? Packing::interleaved : Packing::blocks;
  const Matrix<double> packed = pack_qkv<double>(
      {.q = matrix_of(c[Slot::w_q]), .k = matrix_of(c[Slot::w_k]), .v = matrix_of(c[Slot::w_v])}, e.heads, packing);
  Case split = with_tokens_projected(c);
  for (std::int64_t b = 0; b < e.batch; ++b) {
    const Fused<double> parts =
        unpack_qkv<double>(exact_product(matrix_of(c.q(), b), packed), e.heads, e.dk, e.dv, packing);
    store_page(split[Slot::q], b, parts.q);
    store_page(split[Slot::k], b, parts.k);
    store_page(split[Slot::v], b, parts.v);
  }
  return agree({run(kernel, c), run(kernel, split)}, Match::bound);
}

DrawnMultihead one_width(DrawnMultihead drawn) {
  return drawn.where([](Recipe& r) { r.dv = r.dk; });
}

DrawnMultihead without_bias_kv(DrawnMultihead drawn) {
  return drawn.where([](Recipe& r) { r.key_value_bias = false; });
}

constexpr std::array projected_sum{
    defining(hypotheses::output_projection, "it is the row blocks of W_o that are summed over")};
constexpr std::array packed{
    needed(hypotheses::self_attention, "one product is of one X"),
    needed(hypotheses::no_biases, "a product alone adds no bias"),
    defining(hypotheses::equal_widths, "001's formula has one extent for the columns of all three"),
    defining(hypotheses::exact_projections, "the other side starts from the projected tokens")};
constexpr std::array separate_heads{
    spare(hypotheses::self_attention, "each head takes queries, keys and values as they come"),
    defining(hypotheses::output_projection, "it is W_o that follows the concatenation"),
    spare(hypotheses::equal_widths, "each head has its own columns of W_v, however many"),
    spare(hypotheses::no_bias_kv, "each head has its own columns of the appended row")};

/// Every weight is read by what the kernel makes of a value of its own: the lengths of production shapes would take as
/// many calls.
DrawnMultihead for_weights(DrawnMultihead drawn) {
  static constexpr std::int32_t most = 17;
  return without_bias_kv(std::move(drawn)).where([](Recipe& r) {
    r.queries = std::min(r.queries, most);
    r.keys = std::min(r.keys, most);
  });
}

constexpr std::array weighted_values{
    needed(hypotheses::no_bias_kv, "the appended key has a weight too, and a value that no token has"),
    defining(hypotheses::exact_projections, "the other side weighs the projected values")};
constexpr std::array weights_of_tokens{
    needed(hypotheses::no_bias_kv, "the appended key has the weight that is missing from the sum")};

const Property weights[] = {
    {.name = "attention.multihead-expectation",
     .statement = "in every head of MMHAttn, masked or not, o_i = E[v(q_i)] with P(v(q_i)=v_j) = α_ij: reading α from "
                  "the same kernel through V = I, [α_1V_1|…|α_hV_h]W_o + b_o equals the output",
     .source = "000 003 004",
     .needs = "multihead",
     .floating_point = "bound",
     .operation = Operation::multihead,
     .hypotheses = weighted_values,
     .given = [](Draw& draw) -> Case { return for_weights(whole_numbers(draw)); },
     .check = expectation_of_heads},
    {.name = "attention.multihead-conditional-probability",
     .statement = "each row of every head's α, masked or not, is a probability distribution over the keys",
     .source = "004",
     .needs = "multihead",
     .floating_point = "bound",
     .operation = Operation::multihead,
     .hypotheses = weights_of_tokens,
     .given = [](Draw& draw) -> Case { return for_weights(small_multihead(draw)); },
     .check = conditional_probability_of_heads},
};

const Property family[] = {
    {.name = "multihead.concat-is-sum",
     .statement = "[O_1|…|O_h]W_o + b_o = Σ_h O_h W_o^h + b_o",
     .source = "002 000 001 003 004",
     .needs = "multihead",
     .floating_point = "bound",
     .operation = Operation::multihead,
     .hypotheses = projected_sum,
     .given = [](Draw& draw) -> Case { return with_output(small_multihead(draw)); },
     .check = concat_is_sum},
    {.name = "multihead.fused-projection",
     .statement = "W = [W_1|…|W_h] and views = h separate heads",
     .source = "000 003",
     .needs = "multihead",
     .floating_point = "bound",
     .operation = Operation::multihead,
     .given = [](Draw& draw) -> Case { return small_multihead(draw, /*least_heads=*/2); },
     .check = fused_projection},
    {.name = "multihead.packed-qkv",
     .statement = "one product with W_{(μBa)i} (per-head interleaved, 001's formula) or [Q|K|V] blocks (001's code), "
                  "then split = separate products; 001 takes dk = dv",
     .source = "001",
     .needs = "multihead",
     .floating_point = "bound",
     .operation = Operation::multihead,
     .hypotheses = packed,
     .given = [](Draw& draw) -> Case { return self_attention(without_biases(one_width(whole_numbers(draw))), 0); },
     .check = packed_qkv},
    {.name = "multihead.v1-is-fused",
     .statement = "h heads of width d_h without position tables, concatenated, then W_o (and b_o) = the view form with "
                  "the same weights",
     .source = "003",
     .needs = "multihead",
     .floating_point = "bound; the notebook's own code fails it, see below",
     .operation = Operation::multihead,
     .hypotheses = separate_heads,
     .given = [](Draw& draw) -> Case {
       return self_attention(without_bias_kv(with_output(one_width(small_multihead(draw)))), 0);
     },
     .check = v1_is_fused},
};

}  // namespace

std::span<const Property> multihead_weight_properties() {
  return weights;
}

std::span<const Property> multihead_head_properties() {
  return family;
}

}  // namespace attest
