// PyTorch 1.13's native multi-head attention, the fast path of nn.MultiheadAttention, through its C++ library:
// pytorch:mha-fast without Python.
#include <ATen/ops/_native_multi_head_attention.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>

#include "attest_torch.h"

using attest_torch::Unsupported;
using attest_torch::view;
using attest_torch::view_if_present;

extern "C" const char* attest_kernel_manifest(void) {
  // As in pytorch/pytorch_kernels.py, where each entry has its reason.
  return R"({
    "name": "at::_native_multi_head_attention", "version": "1.13", "dtypes": ["f64", "f32"],
    "arithmetic": {
      "f64": {"exp_ulp": 1, "max": "running", "base2": false, "split_merge": false, "normalise_first": true, "block": 0,
              "division_roundings": 2, "bias_in_sum": false, "prescaled_q": "f64"},
      "f32": {"exp_ulp": 1, "max": "running", "base2": false, "split_merge": false, "normalise_first": true, "block": 0,
              "division_roundings": 2, "bias_in_sum": false, "prescaled_q": "f32"}},
    "claims": ["deterministic"], "fully_masked_row": "nan", "scale": "inv-sqrt-dk", "operations": ["multihead"],
    "masks": [], "causal": [], "strides": true,
    "limits": {"value_dim": "head_dim", "heads_multiple": 2, "self_attention_only": true}})";
}

extern "C" int attest_kernel_multihead(const attest_multihead_problem* p, attest_result* r, char* message,
                                       size_t message_size) {
  return attest_torch::answer(*p, *r, message, message_size, [&] {
    const int64_t width = p->q.shape[2];
    if (p->w_q.shape[1] != width || p->w_v.shape[1] != width) throw Unsupported("has heads*dk = heads*dv = c_q");
    if (p->w_o.data == nullptr || p->w_o.shape[1] != width) throw Unsupported("has an output projection to c_q");
    if (p->bias_k.data != nullptr || p->bias_v.data != nullptr) throw Unsupported("has no add_bias_kv");
    const at::Tensor x = view(p->q), zero = at::zeros({width}, x.options());
    const auto bias = [&](const attest_tensor& b) { return view_if_present(b).value_or(zero); };
    // A linear layer holds the transposes of our weights.
    const auto packed = at::cat({view(p->w_q), view(p->w_k), view(p->w_v)}, 1).t().contiguous();
    const auto packed_bias = at::cat({bias(p->b_q), bias(p->b_k), bias(p->b_v)});
    const auto projection = view(p->w_o).t().contiguous();
    return std::get<0>(at::_native_multi_head_attention(x, x, x, width, p->heads, packed, packed_bias, projection,
                                                        bias(p->b_o), /*mask=*/{}, /*need_weights=*/false));
  });
}
