// Definitions of mask.h; see instantiate.h.
#pragma once

#include "core/definition/mask.h"

namespace attest {

template <Scalar T>
void check_mask(const Mask<T>& mask, Index rows, Index keys) {
  const auto check = [&](Index mask_rows, Index mask_keys) {
    if (mask_rows == rows && mask_keys == keys - mask.appended_keys) return;
    const std::string appended =
        mask.appended_keys == 0 ? "" : " (without the " + std::to_string(mask.appended_keys) + " appended)";
    throw UsageError("the mask is " + std::to_string(mask_rows) + "x" + std::to_string(mask_keys) +
                     ", the scores are " + std::to_string(rows) + "x" + std::to_string(keys - mask.appended_keys) +
                     appended + ": a mask fits one number of queries and one of keys");
  };
  if (mask.additive) check(mask.additive->rows(), mask.additive->cols());
  if (mask.allowed) check(mask.allowed->rows(), mask.allowed->cols());
  if (mask.kept) check(mask.kept->rows(), mask.kept->cols());
}

template <Scalar T>
MaskStack<T> MaskStack<T>::two_d(Mask<T> mask) {
  return four_d({std::move(mask)}, 1, 1);
}

template <Scalar T>
MaskStack<T> MaskStack<T>::three_d(std::vector<Mask<T>> pages, Index batch, Index heads) {
  return four_d(std::move(pages), batch, heads);
}

template <Scalar T>
MaskStack<T> MaskStack<T>::four_d(std::vector<Mask<T>> pages, Index extent_b, Index extent_h) {
  if (static_cast<Index>(pages.size()) != extent_b * extent_h) {
    throw UsageError("a mask of " + std::to_string(pages.size()) + " pages cannot be " + std::to_string(extent_b) +
                     "x" + std::to_string(extent_h) + " (batch x heads)");
  }
  MaskStack stack;
  stack.pages_ = std::move(pages);
  stack.batch_ = extent_b;
  stack.heads_ = extent_h;
  return stack;
}

template <Scalar T>
void MaskStack<T>::check(Index batch, Index heads) const {
  if ((batch_ == 1 || batch_ == batch) && (heads_ == 1 || heads_ == heads)) return;
  throw UsageError("the mask is for " + std::to_string(batch_) + " batch entries of " + std::to_string(heads_) +
                   " heads, the problem has " + std::to_string(batch) + " of " + std::to_string(heads) +
                   ": each must be equal or 1");
}

}  // namespace attest
