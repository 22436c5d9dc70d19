// 000: the class MHAttn.
#include <fmt/format.h>

#include "attest/layout.h"
#include "module.h"

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

template <Scalar T>
std::vector<Matrix<T>> mhattn_class(const attest_multihead_problem& p) {
  const MultiheadWeights<T> w = weights_of<T>(p);
  // The assert counts dk over all heads, though the class's dk is that of one.
  const Index dk = w.q.weight.cols() / w.heads;
  if (dk % w.heads != 0) throw UsageError(fmt::format("dk is {} and h is {}; h must divide dk", dk, w.heads));
  const T scale = ScalarTraits<T>::from_double(p.scale);
  const MaskStack<T> masks = masks_of<T>(p.mask, p.mask_convention, p.causal);
  const auto queries = entries_at<T>(p.q), keys = entries_at<T>(p.k), values = entries_at<T>(p.v);

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

}  // namespace

std::vector<DocumentModule> modules_of_000() {
  Manifest manifest = module_manifest();
  manifest.additive_masks = true;
  manifest.mask_conventions = {MaskConvention::pre_scale};
  return {{.name = "000.mhattn",
           .summary = "000's class MHAttn: h must divide dk, add_bias_kv and a mask do not go together",
           .manifest = manifest,
           .f64 = mhattn_class<double>,
           .f32 = mhattn_class<float>}};
}

}  // namespace attest
