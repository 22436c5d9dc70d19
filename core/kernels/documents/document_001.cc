// 001: the multi-head SelfAttention with one fused QKV projection, its causal mask and its external one.
#include <fmt/format.h>

#include "core/definition/matrices.h"
#include "core/kernels/documents/module.h"

namespace attest {
namespace {

/// What the external mask is when it reaches the module: 1 where a key may be attended and 0 elsewhere, as numbers or
/// as truth values.
enum class External { numbers, booleans };

/// Entry [b, h] of mask[:, None].masked_fill(mask == 0, -inf). The first is (B,1,N,N) and the second (B,N,N), so that
/// the condition's batch axis lies along the heads: hidden is what mask[h] hides, and elsewhere stands the number of
/// mask[b]. B = 1 serves every batch entry and head. Of truth values -inf is true, so nothing is hidden and 1 is added.
template <Scalar T>
Matrix<T> filled(const std::vector<Matrix<T>>& mask, External external, Index b, Index h) {
  const bool one = mask.size() == 1;
  const Matrix<T>& number = mask[one ? 0 : static_cast<std::size_t>(b)];
  const Matrix<T>& condition = mask[one ? 0 : static_cast<std::size_t>(h)];
  const T nothing = ScalarTraits<T>::from_double(0.0), yes = ScalarTraits<T>::from_double(1.0);
  return Matrix<T>::NullaryExpr(number.rows(), number.cols(), [&](Index i, Index j) {
    if (external == External::booleans) return yes;
    return condition(i, j) == nothing ? ScalarTraits<T>::minus_infinity() : number(i, j);
  });
}

/// of_head(b, h, q, k, v, scale, mask) of each batch entry and head, in order. `context` is the N that the module was
/// built with.
template <Scalar T, External external, Index context, class OfHead>
void for_each_head(const attest_multihead_problem& p, const MultiheadWeights<T>& w, const OfHead& of_head) {
  if (p.bias_k.data != nullptr) throw NoPlace("has bias_k and bias_v; the module has no such rows");
  if (p.mask.data != nullptr && p.mask.shape[1] != 1)
    throw NoPlace("has a mask per head; the module takes one per batch entry");
  const Causal causal = causal_of_buffer(static_cast<Causal>(p.causal), context, p.q.shape[1]);
  const Index batch = p.q.shape[0], heads = w.heads, d = w.q.weight.cols();
  std::vector<Matrix<T>> mask;
  for (Index b = 0; p.mask.data != nullptr && b < p.mask.shape[0]; ++b) mask.push_back(matrix_at<T>(p.mask, b));
  if (mask.size() > 1 && static_cast<Index>(mask.size()) != heads) {
    throw UsageError(
        fmt::format("masks of shape ({0},1,N,N) and ({0},N,N) make ({0},{0},N,N), which does not fit {1} "
                    "heads",
                    mask.size(), heads));
  }

  // One matrix [Q | K | V]; its product with X is split again.
  const Matrix<T> packed =
      pack_qkv(Fused<T>{.q = w.q.weight, .k = w.k.weight, .v = w.v.weight}, heads, Packing::blocks);
  const T scale = ScalarTraits<T>::from_double(p.scale);
  for (Index b = 0; b < batch; ++b) {
    const Fused<T> qkv =
        unpack_qkv(product(matrix_at<T>(p.q, b), packed), heads, d / heads, d / heads, Packing::blocks);
    const auto biased = [&](const Matrix<T>& x, const Projection<T>& of) {
      return split_columns(join_heads<T>({x}, std::nullopt, of.bias), heads);
    };
    const auto q = biased(qkv.q, w.q), k = biased(qkv.k, w.k), v = biased(qkv.v, w.v);
    for (Index h = 0; h < heads; ++h) {
      Mask<T> added;
      added.positions.causal = causal;
      if (!mask.empty()) added.additive = filled(mask, external, b, h);
      const auto at = static_cast<std::size_t>(h);
      of_head(b, h, q[at], k[at], v[at], scale, added);
    }
  }
}

template <Scalar T, External external, Index context>
std::vector<Matrix<T>> self_attention(const attest_multihead_problem& p) {
  const MultiheadWeights<T> w = weights_of<T>(p);
  std::vector<std::vector<Matrix<T>>> heads(static_cast<std::size_t>(p.q.shape[0]));
  for_each_head<T, external, context>(
      p, w,
      [&](Index b, Index, const Matrix<T>& q, const Matrix<T>& k, const Matrix<T>& v, const T& scale,
          const Mask<T>& mask) { heads[static_cast<std::size_t>(b)].push_back(mattn(q, k, v, scale, mask)); });
  std::vector<Matrix<T>> outputs;
  outputs.reserve(heads.size());
  for (const std::vector<Matrix<T>>& of_entry : heads) outputs.push_back(join_heads(of_entry, w.w_o, w.b_o));
  return outputs;
}

/// attn_weights, which forward returns beside the output.
template <Scalar T, External external, Index context>
Tensor weights_in(const attest_multihead_problem& p, DType dtype) {
  const Index heads = p.heads, tokens = p.q.shape[1];
  Tensor weights(dtype, {p.q.shape[0], heads, tokens, tokens});
  for_each_head<T, external, context>(p, weights_of<T>(p),
                                      [&](Index b, Index h, const Matrix<T>& q, const Matrix<T>& k, const Matrix<T>&,
                                          const T& scale, const Mask<T>& mask) {
                                        const Matrix<T> alpha = attention_weights(q, k, scale, mask);
                                        for (Index e = 0; e < tokens * tokens; ++e)
                                          weights.set((b * heads + h) * tokens * tokens + e,
                                                      ScalarTraits<T>::to_double(alpha(e / tokens, e % tokens)));
                                      });
  return weights;
}

template <External external, Index context>
Values returned(const Case& c) {
  const attest_multihead_problem p = c.multihead_problem();
  return c.dtype() == DType::f64 ? weights_in<double, external, context>(p, DType::f64)
                                 : weights_in<float, external, context>(p, DType::f32);
}

}  // namespace

std::vector<DocumentModule> modules_of_001() {
  Manifest manifest = module_manifest();
  manifest.bool_masks = true;
  manifest.causal = {Causal::top_left};
  manifest.value_dim_equals_head_dim = true;
  manifest.self_attention_only = true;
  Manifest without_external = manifest;
  without_external.bool_masks = false;
  return {
      {.name = "001.self-attention",
       .summary = "001's SelfAttention, its external mask given as numbers 0 and 1",
       .manifest = manifest,
       .f64 = self_attention<double, External::numbers, as_long_as_the_input>,
       .f32 = self_attention<float, External::numbers, as_long_as_the_input>,
       .weights = returned<External::numbers, as_long_as_the_input>},
      {.name = "001.self-attention-boolean",
       .summary = "001's SelfAttention, its external mask given as truth values",
       .manifest = manifest,
       .f64 = self_attention<double, External::booleans, as_long_as_the_input>,
       .f32 = self_attention<float, External::booleans, as_long_as_the_input>,
       .weights = returned<External::booleans, as_long_as_the_input>},
      {.name = "001.self-attention-of-one-token",
       .summary = "001's SelfAttention built with N = 1, without an external mask: of longer input it hides nothing",
       .manifest = without_external,
       .f64 = self_attention<double, External::numbers, 1>,
       .f32 = self_attention<float, External::numbers, 1>,
       .weights = returned<External::numbers, 1>}};
}

}  // namespace attest
