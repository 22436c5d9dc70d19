// Definitions of multihead.h; see instantiate.h.
#pragma once

#include "core/definition/bodies/projection.h"
#include "core/definition/multihead.h"

namespace attest {

/// The m-th of `heads` equal blocks of columns of a projection.
template <Scalar T>
Projection<T> block_of(const Projection<T>& w, Index heads, Index m) {
  Projection<T> block{.weight = split_columns(w.weight, heads)[static_cast<std::size_t>(m)], .bias = std::nullopt};
  const Index d = block.weight.cols();
  if (w.bias) {
    if (w.bias->size() != w.weight.cols()) {
      throw UsageError("the bias of a " + size_text(w.weight) + " projection has " + std::to_string(w.bias->size()) +
                       " entries: it needs one per column");
    }
    block.bias = w.bias->segment(m * d, d);
  }
  return block;
}

template <Scalar T>
Weights<T> head_of(const MultiheadWeights<T>& w, Index m) {
  return {.q = block_of(w.q, w.heads, m), .k = block_of(w.k, w.heads, m), .v = block_of(w.v, w.heads, m)};
}

/// a with one row below it; none: a.
template <Scalar T>
Matrix<T> append_row(const Matrix<T>& a, const std::optional<Vector<T>>& row) {
  return row ? above<T>({a, row->transpose()}) : a;
}

template <Scalar T>
std::vector<AttentionResult<T>> head_outputs(const Matrix<T>& q, const Matrix<T>& k, const Matrix<T>& v,
                                             const MultiheadWeights<T>& w, const T& scale, const HeadMasks<T>& masks) {
  if (w.bias_k.has_value() != w.bias_v.has_value())
    throw UsageError("one of bias_k and bias_v is given without the other: add_bias_kv needs both");
  masks.check(1, w.heads);
  const std::vector<Matrix<T>> q_heads = split_columns(project(q, w.q), w.heads),
                               k_heads = split_columns(append_row(project(k, w.k), w.bias_k), w.heads),
                               v_heads = split_columns(append_row(project(v, w.v), w.bias_v), w.heads);
  std::vector<AttentionResult<T>> outputs;
  for (Index m = 0; m < w.heads; ++m) {
    const auto at = static_cast<std::size_t>(m);
    if (!w.bias_k) {
      outputs.push_back(mattn_lse(q_heads[at], k_heads[at], v_heads[at], scale, masks(0, m)));
    } else {
      Mask<T> mask = masks(0, m);
      mask.appended_keys += 1;
      outputs.push_back(mattn_lse(q_heads[at], k_heads[at], v_heads[at], scale, mask));
    }
  }
  return outputs;
}

template <Scalar T>
std::vector<Matrix<T>> outputs_of(std::vector<AttentionResult<T>> results) {
  std::vector<Matrix<T>> outputs;
  outputs.reserve(results.size());
  for (AttentionResult<T>& result : results) outputs.push_back(std::move(result.out));
  return outputs;
}

template <Scalar T>
Matrix<T> join_heads(const std::vector<Matrix<T>>& heads, const std::optional<Matrix<T>>& w_o,
                     const std::optional<Vector<T>>& b_o) {
  const Matrix<T> all = beside(heads);
  return plus_bias(w_o ? product(all, *w_o) : all, b_o);
}

template <Scalar T>
Matrix<T> mmhattn(const Matrix<T>& q, const Matrix<T>& k, const Matrix<T>& v, const MultiheadWeights<T>& w,
                  const T& scale, const HeadMasks<T>& masks) {
  return join_heads(outputs_of(head_outputs(q, k, v, w, scale, masks)), w.w_o, w.b_o);
}

template <Scalar T>
Matrix<T> mhattn(const Matrix<T>& q, const Matrix<T>& k, const Matrix<T>& v, const MultiheadWeights<T>& w,
                 const T& scale) {
  return mmhattn(q, k, v, w, scale, HeadMasks<T>());
}

template <Scalar T>
Matrix<T> mmhsattn(const Matrix<T>& x, const MultiheadWeights<T>& w, const T& scale, const HeadMasks<T>& masks) {
  return mmhattn(x, x, x, w, scale, masks);
}

template <Scalar T>
Matrix<T> mhsattn(const Matrix<T>& x, const MultiheadWeights<T>& w, const T& scale) {
  return mhattn(x, x, x, w, scale);
}

template <Scalar T>
Matrix<T> mmhattn_as_sum(const Matrix<T>& q, const Matrix<T>& k, const Matrix<T>& v, const MultiheadWeights<T>& w,
                         const T& scale, const HeadMasks<T>& masks) {
  const std::vector<Matrix<T>> heads = outputs_of(head_outputs(q, k, v, w, scale, masks));
  const Index dv = heads[0].cols();
  const Matrix<T> w_o = w.w_o ? *w.w_o : identity<T>(w.heads * dv);
  Matrix<T> sum;
  for (Index m = 0; m < w.heads; ++m) {
    const Matrix<T> term = product(heads[static_cast<std::size_t>(m)], Matrix<T>(w_o.middleRows(m * dv, dv)));
    if (m == 0) {
      sum = term;
      continue;
    }
    for (Index i = 0; i < sum.rows(); ++i)
      for (Index c = 0; c < sum.cols(); ++c) sum(i, c) = sum(i, c) + term(i, c);
  }
  return plus_bias(std::move(sum), w.b_o);
}

template <Scalar T>
std::vector<Matrix<T>> mmhattn_batch(const std::vector<Matrix<T>>& q, const std::vector<Matrix<T>>& k,
                                     const std::vector<Matrix<T>>& v, const MultiheadWeights<T>& w, const T& scale,
                                     const MaskStack<T>& masks) {
  if (q.size() != k.size() || q.size() != v.size()) {
    throw UsageError("a batch of " + std::to_string(q.size()) + " queries, " + std::to_string(k.size()) + " keys and " +
                     std::to_string(v.size()) + " values: the three must be equal");
  }
  const auto batch = static_cast<Index>(q.size());
  masks.check(batch, w.heads);
  std::vector<Matrix<T>> outputs;
  for (Index b = 0; b < batch; ++b) {
    std::vector<Mask<T>> of_entry;
    of_entry.reserve(static_cast<std::size_t>(w.heads));
    for (Index m = 0; m < w.heads; ++m) of_entry.push_back(masks(b, m));
    const auto at = static_cast<std::size_t>(b);
    outputs.push_back(
        mmhattn(q[at], k[at], v[at], w, scale, HeadMasks<T>::four_d(std::move(of_entry), /*extent_b=*/1, w.heads)));
  }
  return outputs;
}

template <Scalar T>
MultiheadWeights<T> from_torch(const TorchMultihead<T>& torch) {
  const Index d = torch.out_proj_weight.rows();
  const auto third = [&](Index part) -> Matrix<T> {
    const Matrix<T>& all = *torch.in_proj_weight;
    if (all.rows() != 3 * d) {
      throw UsageError("in_proj_weight is " + size_text(all) + " and out_proj_weight " +
                       size_text(torch.out_proj_weight) + ": the first must have three times the rows");
    }
    return all.middleRows(part * d, d).transpose();
  };
  const auto bias = [&](Index part) -> std::optional<Vector<T>> {
    if (!torch.in_proj_bias) return std::nullopt;
    if (torch.in_proj_bias->size() != 3 * d) {
      throw UsageError("in_proj_bias has " + std::to_string(torch.in_proj_bias->size()) + " entries, it needs " +
                       std::to_string(3 * d) + " (3d)");
    }
    return Vector<T>(torch.in_proj_bias->segment(part * d, d));
  };
  const auto matrix = [&](const std::optional<Matrix<T>>& own, Index part) -> Matrix<T> {
    if (torch.in_proj_weight) return third(part);
    if (!own)
      throw UsageError("neither in_proj_weight nor all of q_proj_weight, k_proj_weight, v_proj_weight is given");
    return own->transpose();
  };
  if (torch.heads < 1 || d % torch.heads != 0) {
    throw UsageError("the embedding of " + std::to_string(d) + " is not divisible by " + std::to_string(torch.heads) +
                     " heads");
  }
  MultiheadWeights<T> w;
  w.q = {.weight = matrix(torch.q_proj_weight, 0), .bias = bias(0)};
  w.k = {.weight = matrix(torch.k_proj_weight, 1), .bias = bias(1)};
  w.v = {.weight = matrix(torch.v_proj_weight, 2), .bias = bias(2)};
  w.w_o = transposed(torch.out_proj_weight);
  w.b_o = torch.out_proj_bias;
  w.bias_k = torch.bias_k;
  w.bias_v = torch.bias_v;
  w.heads = torch.heads;
  return w;
}

}  // namespace attest
