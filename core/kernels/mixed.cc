// Keys and values in formats of their own beside the queries', as inference keeps them in a cache.
#include "core/kernels/builtin.h"

namespace attest {

BuiltinKernel mixed_kernel() {
  BuiltinKernel kernel = flash_kernel();
  kernel.name = "mixed";
  kernel.summary = "tiles of keys and values in formats of their own: f16 or bf16 beside f32, f32 beside 16 bits";
  // Sums are in f32, or f64 for f64, which hold every number of these.
  kernel.kv_dtypes = {
      {DType::f64, {{DType::f32, DType::f32}, {DType::f64, DType::bf16}}},
      {DType::f32, {{DType::f16, DType::f16}, {DType::bf16, DType::bf16}, {DType::f16, DType::bf16}}},
      {DType::f16,
       {{DType::f16, DType::bf16}, {DType::f32, DType::f32}, {DType::f8_e4m3, DType::f8_e4m3}, {DType::i8, DType::i8}}},
      {DType::bf16,
       {{DType::f8_e5m2, DType::f16},
        {DType::f32, DType::bf16},
        {DType::f16, DType::f32},
        {DType::i8, DType::f8_e4m3}}}};
  return kernel;
}

}  // namespace attest
