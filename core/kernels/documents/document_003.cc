// 003: the notebook's ladder from parameter-free self-attention to causal attention, and both of its multi-head
// classes.
#include <fmt/format.h>

#include "core/definition/matrices.h"
#include "core/definition/position.h"
#include "core/kernels/documents/module.h"

namespace attest {
namespace {

constexpr Index context_length = 16;

/// The learned position table of head `head`, whatever the weights: eighths between -2 and 2, no two rows alike.
template <Scalar T>
Matrix<T> positions(Index head, Index columns) {
  return Matrix<T>::NullaryExpr(context_length, columns, [&](Index i, Index c) {
    const Index eighths = (7 * i + 11 * c + 5 * head + 3 * i * c) % 33 - 16;
    return ScalarTraits<T>::from_double(static_cast<double>(eighths) / 8.0);
  });
}

template <Scalar T>
bool is_identity(const Projection<T>& w) {
  return w.weight.rows() == w.weight.cols() && w.weight == identity<T>(w.weight.rows()) && !w.bias;
}

template <Scalar T>
bool are_equal(const Projection<T>& a, const Projection<T>& b) {
  return a.weight.rows() == b.weight.rows() && a.weight == b.weight;
}

/// The weights of a module with one head and no output projection.
template <Scalar T>
Weights<T> single_head(const attest_multihead_problem& p) {
  if (p.w_o.data != nullptr || p.b_o.data != nullptr) throw NoPlace("has an output projection; the module has none");
  if (p.bias_k.data != nullptr) throw NoPlace("has bias_k and bias_v; the module has no such rows");
  const MultiheadWeights<T> w = weights_of<T>(p);
  return {.q = w.q, .k = w.k, .v = w.v};
}

void require_unscaled(double scale) {
  if (scale != 1.0) throw NoPlace(fmt::format("has scale {}; the module has none", scale));
}

void require_causal(const attest_multihead_problem& p) {
  if (p.causal != ATTEST_CAUSAL_TOP_LEFT) throw NoPlace("is not causal; the module always is");
}

template <Scalar T, class OfX>
std::vector<Matrix<T>> of_entries(const attest_multihead_problem& p, const OfX& of_x) {
  std::vector<Matrix<T>> outputs;
  for (const Matrix<T>& x : entries_at<T>(p.q)) outputs.push_back(of_x(x));
  return outputs;
}

// A* = XX^T, A = softmax(A*), Y = AX.
template <Scalar T>
std::vector<Matrix<T>> no_parameters(const attest_multihead_problem& p) {
  const Weights<T> w = single_head<T>(p);
  require_unscaled(p.scale);
  if (!is_identity(w.q) || !is_identity(w.k) || !is_identity(w.v))
    throw NoPlace("has weights other than the identity; the module has none");
  return of_entries<T>(p, [](const Matrix<T>& x) { return parameter_free(x); });
}

// X' = XU, then the same of X'.
template <Scalar T>
std::vector<Matrix<T>> one_projection(const attest_multihead_problem& p) {
  const Weights<T> w = single_head<T>(p);
  require_unscaled(p.scale);
  if (!are_equal(w.q, w.k) || !are_equal(w.q, w.v) || w.q.bias || w.k.bias || w.v.bias)
    throw NoPlace("has three projections; the module has one, without bias");
  return of_entries<T>(p, [&](const Matrix<T>& x) { return shared_projection(x, w.q.weight); });
}

// softmax(QK^T) V.
template <Scalar T>
std::vector<Matrix<T>> unscaled(const attest_multihead_problem& p) {
  const Weights<T> w = single_head<T>(p);
  require_unscaled(p.scale);
  return of_entries<T>(p, [&](const Matrix<T>& x) { return unscaled_sattn(x, w); });
}

// SelfAttentionV1: softmax(QK^T / sqrt(dk)) V.
template <Scalar T>
std::vector<Matrix<T>> scaled(const attest_multihead_problem& p) {
  const Weights<T> w = single_head<T>(p);
  return of_entries<T>(p, [&](const Matrix<T>& x) { return sattn(x, w, ScalarTraits<T>::from_double(p.scale)); });
}

// SelfAttention: the same of X + P. P has d_out columns and is added to X of d_in: with_positions refuses the rest.
template <Scalar T>
std::vector<Matrix<T>> positioned(const attest_multihead_problem& p) {
  const Weights<T> w = single_head<T>(p);
  const Matrix<T> table = positions<T>(0, w.q.weight.cols());
  return of_entries<T>(
      p, [&](const Matrix<T>& x) { return sattn(with_positions(x, table), w, ScalarTraits<T>::from_double(p.scale)); });
}

// CausalAttention: the same with the causal mask.
template <Scalar T>
std::vector<Matrix<T>> causal(const attest_multihead_problem& p) {
  const Weights<T> w = single_head<T>(p);
  require_causal(p);
  const Matrix<T> table = positions<T>(0, w.q.weight.cols());
  return of_entries<T>(p, [&](const Matrix<T>& x) {
    return msattn(with_positions(x, table), w, ScalarTraits<T>::from_double(p.scale), causal_mask<T>());
  });
}

// MultiHeadAttentionV1: heads of CausalAttention, each with positions of its own, concatenated; W_o has heads*d_in rows
// where the concatenation has heads*d_out columns.
template <Scalar T>
std::vector<Matrix<T>> separate_heads(const attest_multihead_problem& p) {
  require_causal(p);
  if (p.bias_k.data != nullptr) throw NoPlace("has bias_k and bias_v; the module has no such rows");
  const MultiheadWeights<T> w = weights_of<T>(p);
  const Index d_in = w.q.weight.rows(), d_out = w.v.weight.cols() / w.heads;
  if (d_in != d_out) {
    throw UsageError(
        fmt::format("W_o has {0}*{1} rows and the concatenated heads have {0}*{2} columns", w.heads, d_in, d_out));
  }
  std::vector<PositionedHead<T>> heads;
  heads.reserve(static_cast<std::size_t>(w.heads));
  for (Index m = 0; m < w.heads; ++m) heads.push_back({head_of(w, m), positions<T>(m, d_out)});
  return of_entries<T>(p, [&](const Matrix<T>& x) {
    return multihead_v1(x, heads, w.w_o, w.b_o, ScalarTraits<T>::from_double(p.scale), causal_mask<T>());
  });
}

// MultiHeadAttention, by views. (weights @ values) is (head, token, dim), so its transpose(1, 2) swaps token and dim
// where head and token are meant, and flattening to (token, heads*dim) mixes tokens.
// `context` is the context_len that the module was built with. Without a position table nothing else knows of it.
template <Scalar T, Index context>
std::vector<Matrix<T>> views(const attest_multihead_problem& p) {
  if (p.bias_k.data != nullptr) throw NoPlace("has bias_k and bias_v; the module has no such rows");
  const MultiheadWeights<T> w = weights_of<T>(p);
  const Causal causal = causal_of_buffer(static_cast<Causal>(p.causal), context, p.q.shape[1]);
  Mask<T> common = common_mask<T>(p);
  common.positions = {.causal = causal};
  const MaskStack<T> masks = masks_of<T>(p.mask, common);
  const T scale = ScalarTraits<T>::from_double(p.scale);
  std::vector<Matrix<T>> outputs;
  Index b = 0;
  for (const Matrix<T>& x : entries_at<T>(p.q)) {
    std::vector<Mask<T>> of_entry;
    of_entry.reserve(static_cast<std::size_t>(w.heads));
    for (Index m = 0; m < w.heads; ++m) of_entry.push_back(masks(b, m));
    ++b;
    const auto of_heads = HeadMasks<T>::four_d(std::move(of_entry), /*extent_b=*/1, w.heads);
    std::vector<Matrix<T>> dim_token;
    for (const AttentionResult<T>& head : head_outputs(x, x, x, w, scale, of_heads))
      dim_token.push_back(transposed(head.out));
    const Matrix<T> flat = reshaped(above(dim_token), x.rows(), w.v.weight.cols());
    outputs.push_back(join_heads<T>({flat}, w.w_o, w.b_o));
  }
  return outputs;
}

template <Scalar T>
void plain_attention(const attest_problem& p, attest_result& result) {
  for (Index b = 0; b < p.q.shape[0]; ++b) {
    for (Index h = 0; h < p.q.shape[1]; ++h) {
      const Matrix<T> y = attention(matrix_at<T>(p.q, b, h), matrix_at<T>(p.k, b, h), matrix_at<T>(p.v, b, h),
                                    ScalarTraits<T>::from_double(1.0));
      for (Index i = 0; i < y.rows(); ++i)
        for (Index c = 0; c < y.cols(); ++c) store(result.out, offset_in(result.out, b, h, i, c), y(i, c));
    }
  }
}

int run_plain_attention(const attest_problem& p, attest_result& result, std::string& message) {
  if (p.scale != 1.0) {
    message = fmt::format("has scale {}; the module has none", p.scale);
    return ATTEST_UNSUPPORTED;
  }
  try {
    if (dtype_of(p.q) == DType::f64) {
      plain_attention<double>(p, result);
    } else {
      plain_attention<float>(p, result);
    }
  } catch (const UsageError& error) {
    message = error.what();
    return ATTEST_REJECTED;
  }
  return ATTEST_OK;
}

}  // namespace

std::vector<DocumentModule> modules_of_003() {
  Manifest one_head = module_manifest();
  one_head.self_attention_only = true;
  one_head.value_dim_equals_head_dim = true;
  one_head.max_heads = 1;
  Manifest without_scale = one_head;
  without_scale.any_scale = true;
  Manifest without_weights = without_scale;
  without_weights.attention = true;
  Manifest with_table = one_head;
  with_table.max_queries = with_table.max_keys = context_length;
  Manifest causal_only = with_table;
  causal_only.causal = {Causal::top_left};
  Manifest v1 = causal_only;
  v1.max_heads.reset();
  // The last module's mask is the causal one; any other takes the same way through it.
  Manifest by_views = v1;
  by_views.max_queries.reset();
  by_views.max_keys.reset();
  by_views.additive_masks = by_views.bool_masks = true;
  by_views.mask_conventions = {MaskConvention::pre_scale, MaskConvention::post_scale};
  Manifest of_one_token = by_views;
  of_one_token.additive_masks = of_one_token.bool_masks = false;
  return {{.name = "003.parameter-free",
           .summary = "003's self-attention without weights and scale: softmax(XX^T)X",
           .manifest = without_weights,
           .f64 = no_parameters<double>,
           .f32 = no_parameters<float>,
           .attention = run_plain_attention},
          {.name = "003.shared-projection",
           .summary = "003's self-attention with one projection for queries, keys and values, unscaled",
           .manifest = without_scale,
           .f64 = one_projection<double>,
           .f32 = one_projection<float>},
          {.name = "003.unscaled",
           .summary = "003's self-attention with three projections, unscaled",
           .manifest = without_scale,
           .f64 = unscaled<double>,
           .f32 = unscaled<float>},
          {.name = "003.scaled",
           .summary = "003's SelfAttentionV1",
           .manifest = one_head,
           .f64 = scaled<double>,
           .f32 = scaled<float>},
          {.name = "003.positions",
           .summary = "003's SelfAttention: absolute positions are added to X, context length 16",
           .manifest = with_table,
           .f64 = positioned<double>,
           .f32 = positioned<float>},
          {.name = "003.causal",
           .summary = "003's CausalAttention: positions and the causal mask",
           .manifest = causal_only,
           .f64 = causal<double>,
           .f32 = causal<float>},
          {.name = "003.multihead-v1",
           .summary = "003's MultiHeadAttentionV1: causal heads with positions each, W_o sized by d_in",
           .manifest = v1,
           .f64 = separate_heads<double>,
           .f32 = separate_heads<float>},
          {.name = "003.multihead",
           .summary = "003's MultiHeadAttention: the wrong transpose mixes tokens",
           .manifest = by_views,
           .f64 = views<double, as_long_as_the_input>,
           .f32 = views<float, as_long_as_the_input>},
          {.name = "003.multihead-of-one-token",
           .summary = "003's MultiHeadAttention built with context_len = 1: of longer input it hides nothing",
           .manifest = of_one_token,
           .f64 = views<double, 1>,
           .f32 = views<float, 1>}};
}

}  // namespace attest
