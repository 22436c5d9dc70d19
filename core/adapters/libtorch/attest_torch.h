// Puts C++ functions over ATen tensors under test: a shared library is this header and a few lines, see attention.cc.
#pragma once

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/from_blob.h>
#include <attest/kernel.h>
#include <attest/known_arguments.h>
#include <c10/core/InferenceMode.h>
#include <c10/util/Optional.h>

#include <cstdio>
#include <exception>
#include <stdexcept>

namespace attest_torch {

/// The function cannot do this problem: it is skipped and counted.
struct Unsupported : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Throws Unsupported for FP8, which ATen has not always known.
inline at::ScalarType type_of(int32_t dtype) {
  switch (dtype) {
    case ATTEST_F64:
      return at::kDouble;
    case ATTEST_F32:
      return at::kFloat;
    case ATTEST_F16:
      return at::kHalf;
    case ATTEST_BF16:
      return at::kBFloat16;
    case ATTEST_BOOL:
      return at::kBool;
    default:
      throw Unsupported("there are no tensors of FP8 here");
  }
}

/// The same memory with the same strides: nothing is copied.
inline at::Tensor view(const attest_tensor& t) {
  const at::IntArrayRef shape(t.shape, static_cast<size_t>(t.rank)), strides(t.stride, static_cast<size_t>(t.rank));
  return at::from_blob(t.data, shape, strides, at::TensorOptions(type_of(t.dtype)));
}

inline c10::optional<at::Tensor> view_if_present(const attest_tensor& t) {
  return t.data == nullptr ? c10::nullopt : c10::optional<at::Tensor>(view(t));
}

/// What a kernel function returns for `compute`, a function without parameters that returns out: copies the answer to
/// r.out, and turns exceptions into a status with a message. One thread, no gradients.
template <class Compute>
int answer(attest_result& r, char* message, size_t message_size, const Compute& compute) {
  try {
    static const bool one_thread = (at::set_num_threads(1), true);
    static_cast<void>(one_thread);
    const c10::InferenceMode inference;
    view(r.out).copy_(compute());
    return ATTEST_OK;
  } catch (const Unsupported& error) {
    snprintf(message, message_size, "%s", error.what());
    return ATTEST_UNSUPPORTED;
  } catch (const std::exception& error) {
    snprintf(message, message_size, "%s", error.what());
    return 3;
  }
}

inline int known_arguments(const attest_problem& p, const attest_result& r, char* message, size_t message_size) {
  return attest_known_arguments(&p, &r, message, message_size);
}
inline int known_arguments(const attest_multihead_problem& p, const attest_result& r, char* message,
                           size_t message_size) {
  return attest_known_multihead_arguments(&p, &r, message, message_size);
}

/// The same, where the problem holds nothing that this was not compiled for; else `unsupported`.
template <class Problem, class Compute>
int answer(const Problem& p, attest_result& r, char* message, size_t message_size, const Compute& compute) {
  const int known = known_arguments(p, r, message, message_size);
  return known == ATTEST_OK ? answer(r, message, message_size, compute) : known;
}

}  // namespace attest_torch
