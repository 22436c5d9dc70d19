// multihead: what happens to heads and packings of MHAttn and MMHAttn (000, 001, 002, 003).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "agree.h"
#include "any_number.h"
#include "arguments.h"
#include "attest/projection.h"
#include "multihead_cases.h"
#include "property.h"

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

std::span<const Property> multihead_head_properties() {
  return family;
}

}  // namespace attest
