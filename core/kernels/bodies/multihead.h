// The core's functions of all heads, and the other ways to them: PyTorch's parameters, a sum, 003's class.
#pragma once

#include "core/definition/multihead.h"
#include "core/definition/position.h"
#include "core/kernels/core_numbers.h"

namespace attest::detail {
template <class T>
Values core_multihead(const Case& c) {
  return per_entry<T>(c, [&](const Entries<T>& e, Index b) {
    return mmhattn(e.q(b), e.k(b), e.v(b), e.weights, scale_of<T>(c), e.masks_of_entry(b));
  });
}
template <class T>
TorchMultihead<T> torch_of(const MultiheadWeights<T>& w, bool packed) {
  TorchMultihead<T> torch;
  const Index d = w.q.weight.cols();
  if (packed) {
    torch.in_proj_weight = Matrix<T>(3 * d, w.q.weight.rows());
    *torch.in_proj_weight << w.q.weight.transpose(), w.k.weight.transpose(), w.v.weight.transpose();
  } else {
    torch.q_proj_weight = w.q.weight.transpose();
    torch.k_proj_weight = w.k.weight.transpose();
    torch.v_proj_weight = w.v.weight.transpose();
  }
  if (w.q.bias) {
    torch.in_proj_bias = Vector<T>(3 * d);
    *torch.in_proj_bias << *w.q.bias, *w.k.bias, *w.v.bias;
  }
  torch.out_proj_weight = w.w_o->transpose();
  torch.out_proj_bias = w.b_o;
  torch.bias_k = w.bias_k;
  torch.bias_v = w.bias_v;
  torch.heads = w.heads;
  return torch;
}
template <class T>
Values core_multihead_torch(const Case& c, bool packed) {
  return per_entry<T>(c, [&](const Entries<T>& e, Index b) {
    return mmhattn(e.q(b), e.k(b), e.v(b), from_torch(torch_of(e.weights, packed)), scale_of<T>(c),
                   e.masks_of_entry(b));
  });
}
template <class T>
Values core_multihead_as_sum(const Case& c) {
  return per_entry<T>(c, [&](const Entries<T>& e, Index b) {
    return mmhattn_as_sum(e.q(b), e.k(b), e.v(b), e.weights, scale_of<T>(c), e.masks_of_entry(b));
  });
}
template <class T>
Values core_multihead_unmasked(const Case& c) {
  return per_entry<T>(
      c, [&](const Entries<T>& e, Index b) { return mhattn(e.q(b), e.k(b), e.v(b), e.weights, scale_of<T>(c)); });
}
template <class T>
Values core_multihead_self(const Case& c) {
  return per_entry<T>(c, [&](const Entries<T>& e, Index b) {
    return mmhsattn(e.q(b), e.weights, scale_of<T>(c), e.masks_of_entry(b));
  });
}
template <class T>
Values core_multihead_self_unmasked(const Case& c) {
  return per_entry<T>(c, [&](const Entries<T>& e, Index b) { return mhsattn(e.q(b), e.weights, scale_of<T>(c)); });
}
template <class T>
Values core_multihead_v1(const Case& c, const std::vector<Tensor>& positions) {
  return per_entry<T>(c, [&](const Entries<T>& e, Index b) {
    std::vector<PositionedHead<T>> heads;
    for (Index m = 0; m < e.weights.heads; ++m) {
      heads.push_back({.weights = head_of(e.weights, m), .positions = std::nullopt});
      if (!positions.empty()) heads.back().positions = matrix_of<T>(positions.at(static_cast<std::size_t>(m)));
    }
    return multihead_v1(e.q(b), heads, e.weights.w_o, e.weights.b_o, scale_of<T>(c), e.masks(b, 0));
  });
}

template <class T>
void set_multihead_functions(CoreFunctions& f) {
  f.multihead = core_multihead<T>;
  f.multihead_torch = core_multihead_torch<T>;
  f.multihead_as_sum = core_multihead_as_sum<T>;
  f.multihead_unmasked = core_multihead_unmasked<T>;
  f.multihead_self = core_multihead_self<T>;
  f.multihead_self_unmasked = core_multihead_self_unmasked<T>;
  f.multihead_v1 = core_multihead_v1<T>;
}

}  // namespace attest::detail
