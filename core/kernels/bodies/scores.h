// The core's functions that stop at the scores or the weights of a multihead case.
#pragma once

#include "core/definition/matrices.h"
#include "core/definition/projection.h"
#include "core/kernels/core_numbers.h"

namespace attest::detail {
template <class T>
Values core_scores(const Case& c) {
  return per_entry_and_head<T>(c, [&](const Entries<T>& e, Index b, Index m) {
    const Weights<T> w = head_of(e.weights, m);
    return masked_scores(project(e.q(b), w.q), project(e.k(b), w.k), scale_of<T>(c));
  });
}
template <class T>
Values core_bilinear_scores(const Case& c) {
  return per_entry_and_head<T>(c, [&](const Entries<T>& e, Index b, Index m) {
    const Weights<T> w = head_of(e.weights, m);
    return bilinear_scores(e.q(b), w.q.weight, w.k.weight, scale_of<T>(c));
  });
}
template <class T>
Values core_multihead_weights(const Case& c) {
  return per_entry_and_head<T>(c, [&](const Entries<T>& e, Index b, Index m) {
    const Weights<T> w = head_of(e.weights, m);
    Matrix<T> keys = project(e.k(b), w.k);
    Mask<T> mask = e.masks(b, m);
    if (e.weights.bias_k) {
      const Index dk = keys.cols();
      keys = above<T>({keys, e.weights.bias_k->transpose().middleCols(m * dk, dk)});
      mask.appended_keys = 1;
    }
    return attention_weights(project(e.q(b), w.q), keys, scale_of<T>(c), mask);
  });
}

template <class T>
void set_score_functions(CoreFunctions& f) {
  f.scores = core_scores<T>;
  f.bilinear_scores = core_bilinear_scores<T>;
  f.multihead_weights = core_multihead_weights<T>;
}

}  // namespace attest::detail
