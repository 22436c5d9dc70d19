// PyTorch 1.13's scaled dot-product attention through its C++ library, as a shared library: pytorch:sdpa without
// Python.
#include <ATen/ops/_scaled_dot_product_attention.h>

#include "attest_torch.h"

using attest_torch::Unsupported;
using attest_torch::view;

extern "C" const char* attest_kernel_manifest(void) {
  // As in pytorch/pytorch_kernels.py, where each entry has its reason.
  return R"({
    "name": "at::_scaled_dot_product_attention", "version": "1.13", "dtypes": ["f64", "f32", "bf16"],
    "arithmetic": {
      "f64": {"exp_ulp": 1, "max": "running", "base2": false, "split_merge": false, "normalise_first": true, "block": 0,
              "division_roundings": 2, "bias_in_sum": false, "prescaled_q": "f64"},
      "f32": {"exp_ulp": 1, "max": "running", "base2": false, "split_merge": false, "normalise_first": true, "block": 0,
              "division_roundings": 2, "bias_in_sum": false, "prescaled_q": "f32"},
      "bf16": {"exp_ulp": 1, "max": "running", "base2": false, "split_merge": false, "normalise_first": true, "block": 0,
               "division_roundings": 2, "bias_in_sum": false, "prescaled_q": "bf16",
               "stored": {"scaled": "bf16", "biased": "bf16"}, "weights": "bf16", "score_sums": "f32",
               "accumulate": "f32"}},
    "claims": ["deterministic"], "fully_masked_row": "nan", "scale": "inv-sqrt-dk", "operations": ["attention"],
    "masks": ["additive", "bool"], "mask_conventions": ["post-scale"], "causal": ["top-left"], "strides": true})";
}

extern "C" int attest_kernel_attention(const attest_problem* p, attest_result* r, char* message, size_t message_size) {
  return attest_torch::answer(*p, *r, message, message_size, [&] {
    const bool causal = p->causal != ATTEST_CAUSAL_NONE;
    if (causal && p->mask.data != nullptr) throw Unsupported("attn_mask and is_causal exclude each other");
    if (p->k.shape[2] == 0) throw Unsupported("N = 0: zeros there and NaN where every key is hidden");
    const auto mask = attest_torch::view_if_present(p->mask);
    return std::get<0>(at::_scaled_dot_product_attention(view(p->q), view(p->k), view(p->v), mask, /*dropout_p=*/0.0,
                                                         /*need_attn_weights=*/false, causal));
  });
}
