// 000: the class MHAttn.
#include "core/kernels/documents/document_000.h"

#include <fmt/format.h>

#include "core/definition/matrices.h"
#include "core/kernels/documents/module.h"

namespace attest {
namespace {

/// The mask as it is added to scores that already have the column of add_bias_kv: M x N to M x (N+1), which broadcasts
/// for N = 1 alone, where the one entry of a row comes to stand at both keys.
template <Scalar T>
Mask<T> broadcast_mask(Mask<T> mask) {
  const Matrix<T>& b = *mask.additive;
  if (b.cols() != 1) {
    throw UsageError(fmt::format("a mask of {} cannot be added to scores of {}x{}: add_bias_kv has appended a key",
                                 size_text(b), b.rows(), b.cols() + 1));
  }
  mask.additive = beside<T>({b, b});
  return mask;
}

/// The problem's mask as attn_mask. Its truth values are those of nn.MultiheadAttention, which the document hands the
/// same mask: true where the contract says false, at hidden keys.
Tensor attn_mask_of(const attest_tensor& mask) {
  Tensor attn_mask = gather(mask);
  if (attn_mask.dtype() != DType::boolean) return attn_mask;
  for (std::int64_t at = 0; at < attn_mask.elements(); ++at) attn_mask.set(at, attn_mask[at] == 0.0 ? 1.0 : 0.0);
  return attn_mask;
}

template <Scalar T>
std::vector<Matrix<T>> mhattn_of_problem(const attest_multihead_problem& p) {
  const MultiheadWeights<T> w = weights_of<T>(p);
  const MaskStack<T> masks =
      p.mask.data == nullptr ? MaskStack<T>() : mhattn_masks<T>(attn_mask_of(p.mask), Index{w.heads});
  return mhattn_class(entries_at<T>(p.q), entries_at<T>(p.k), entries_at<T>(p.v), w,
                      ScalarTraits<T>::from_double(p.scale), masks);
}

}  // namespace

template <Scalar T>
MaskStack<T> mhattn_masks(const Tensor& attn_mask, Index heads) {
  const int rank = attn_mask.shape().rank();
  if (rank < 2 || rank > 4) throw UsageError(fmt::format("attn_mask has {} dimensions; it may have 2, 3 or 4", rank));
  const attest_tensor view = attn_mask.view();
  const auto page = [&](Index a, Index b) {
    return additive_mask(matrix_at<T>(view, a, b), MaskConvention::pre_scale);
  };
  if (rank == 2) return MaskStack<T>::two_d(page(0, 0));
  std::vector<Mask<T>> pages;
  if (rank == 3) {
    const Index count = attn_mask.shape()[0];
    if (count % heads != 0) throw UsageError(fmt::format("attn_mask has {} pages for {} heads", count, heads));
    for (Index at = 0; at < count; ++at) pages.push_back(page(at, 0));
    return MaskStack<T>::three_d(std::move(pages), count / heads, heads);
  }
  for (Index b = 0; b < attn_mask.shape()[0]; ++b)
    for (Index h = 0; h < attn_mask.shape()[1]; ++h) pages.push_back(page(b, h));
  return MaskStack<T>::four_d(std::move(pages), attn_mask.shape()[0], attn_mask.shape()[1]);
}

template <Scalar T>
std::vector<Matrix<T>> mhattn_class(const std::vector<Matrix<T>>& queries, const std::vector<Matrix<T>>& keys,
                                    const std::vector<Matrix<T>>& values, const MultiheadWeights<T>& w, const T& scale,
                                    const MaskStack<T>& masks) {
  // The assert counts dk over all heads, though the class's dk is that of one.
  const Index dk = w.q.weight.cols() / w.heads;
  if (dk % w.heads != 0) throw UsageError(fmt::format("dk is {} and h is {}; h must divide dk", dk, w.heads));
  masks.check(static_cast<Index>(queries.size()), w.heads);

  std::vector<Matrix<T>> outputs;
  for (Index b = 0; b < static_cast<Index>(queries.size()); ++b) {
    const auto entry = static_cast<std::size_t>(b);
    Matrix<T> q = project(queries[entry], w.q), k = project(keys[entry], w.k), v = project(values[entry], w.v);
    if (w.bias_k) {
      k = above<T>({k, w.bias_k->transpose()});
      v = above<T>({v, w.bias_v->transpose()});
    }
    const auto q_heads = split_columns(q, w.heads), k_heads = split_columns(k, w.heads),
               v_heads = split_columns(v, w.heads);
    std::vector<Matrix<T>> heads;
    for (Index m = 0; m < w.heads; ++m) {
      const auto at = static_cast<std::size_t>(m);
      Mask<T> mask = masks(b, m);
      if (mask.additive && w.bias_k) mask = broadcast_mask(std::move(mask));
      heads.push_back(mattn(q_heads[at], k_heads[at], v_heads[at], scale, mask));
    }
    outputs.push_back(join_heads(heads, w.w_o, w.b_o));
  }
  return outputs;
}

template MaskStack<double> mhattn_masks(const Tensor&, Index);
template MaskStack<float> mhattn_masks(const Tensor&, Index);
template std::vector<Matrix<double>> mhattn_class(const std::vector<Matrix<double>>&,
                                                  const std::vector<Matrix<double>>&,
                                                  const std::vector<Matrix<double>>&, const MultiheadWeights<double>&,
                                                  const double&, const MaskStack<double>&);
template std::vector<Matrix<float>> mhattn_class(const std::vector<Matrix<float>>&, const std::vector<Matrix<float>>&,
                                                 const std::vector<Matrix<float>>&, const MultiheadWeights<float>&,
                                                 const float&, const MaskStack<float>&);

std::vector<DocumentModule> modules_of_000() {
  Manifest manifest = module_manifest();
  manifest.additive_masks = true;
  manifest.mask_conventions = {MaskConvention::pre_scale};
  Manifest boolean = module_manifest();
  boolean.bool_masks = true;
  return {{.name = "000.mhattn",
           .summary = "000's class MHAttn: h must divide dk, add_bias_kv and a mask do not go together",
           .manifest = manifest,
           .f64 = mhattn_of_problem<double>,
           .f32 = mhattn_of_problem<float>},
          {.name = "000.mhattn-boolean",
           .summary = "000's class MHAttn, its mask given as truth values: it hides nothing",
           .manifest = boolean,
           .f64 = mhattn_of_problem<double>,
           .f32 = mhattn_of_problem<float>}};
}

}  // namespace attest
