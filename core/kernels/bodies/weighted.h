// The core's functions of one head with its projections.
#pragma once

#include "core/definition/position.h"
#include "core/definition/projection.h"
#include "core/kernels/core_numbers.h"

namespace attest::detail {
template <class T>
Values core_weighted(const Case& c) {
  return per_entry<T>(c, [&](const Entries<T>& e, Index b) {
    return mattn_w(e.q(b), e.k(b), e.v(b), head_of(e.weights, 0), scale_of<T>(c), e.masks(b, 0));
  });
}
template <class T>
Values core_weighted_unmasked(const Case& c) {
  return per_entry<T>(c, [&](const Entries<T>& e, Index b) {
    return attn_w(e.q(b), e.k(b), e.v(b), head_of(e.weights, 0), scale_of<T>(c));
  });
}
template <class T>
Values core_weighted_self(const Case& c) {
  return per_entry<T>(c, [&](const Entries<T>& e, Index b) {
    return msattn(e.q(b), head_of(e.weights, 0), scale_of<T>(c), e.masks(b, 0));
  });
}
template <class T>
Values core_weighted_self_unmasked(const Case& c) {
  return per_entry<T>(
      c, [&](const Entries<T>& e, Index b) { return sattn(e.q(b), head_of(e.weights, 0), scale_of<T>(c)); });
}
template <class T>
Values core_unscaled_self(const Case& c) {
  return per_entry<T>(c, [&](const Entries<T>& e, Index b) { return unscaled_sattn(e.q(b), head_of(e.weights, 0)); });
}

template <class T>
void set_weighted_functions(CoreFunctions& f) {
  f.weighted = core_weighted<T>;
  f.weighted_unmasked = core_weighted_unmasked<T>;
  f.weighted_self = core_weighted_self<T>;
  f.weighted_self_unmasked = core_weighted_self_unmasked<T>;
  f.unscaled_self = core_unscaled_self<T>;
}

}  // namespace attest::detail
