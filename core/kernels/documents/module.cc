#include "core/kernels/documents/module.h"

#include <fmt/format.h>

namespace attest {

Manifest module_manifest() {
  Manifest manifest;
  manifest.claims = {Claim::deterministic};
  manifest.fully_masked_row = FullyMaskedRow::nan;
  manifest.any_scale = false;
  manifest.attention = false;
  manifest.multihead = true;
  manifest.additive_masks = manifest.bool_masks = false;
  return manifest;
}

Causal causal_of_buffer(Causal causal, Index context, Index tokens) {
  if (causal == Causal::none || tokens <= context) return causal;
  if (context == 1) return Causal::none;
  throw UsageError(fmt::format("a causal mask of {0}x{0} cannot be laid over scores of {1}x{1}", context, tokens));
}

KernelEntry entry_of(const DocumentModule& module) {
  std::string id = fmt::format("document:{}", module.name);
  Manifest manifest = module.manifest;
  manifest.name = id;
  manifest.version = "1";
  manifest.dtypes = {DType::f64, DType::f32};
  for (const DType dtype : manifest.dtypes) manifest.arithmetic.usual[dtype] = universal_arithmetic(dtype, dtype);
  const auto run = [f64 = module.f64, f32 = module.f32](const attest_multihead_problem& p, attest_result& result,
                                                        std::string& message) -> int {
    try {
      if (dtype_of(p.q) == DType::f64) {
        store_entries(f64(p), result.out);
      } else {
        store_entries(f32(p), result.out);
      }
      return ATTEST_OK;
    } catch (const NoPlace& none) {
      message = none.what();
      return ATTEST_UNSUPPORTED;
    } catch (const UsageError& error) {
      message = error.what();
      return ATTEST_REJECTED;
    }
  };
  auto make = [id, manifest, run, attention = module.attention] {
    return function_kernel(id, manifest, attention, run);
  };
  return {.id = std::move(id), .summary = std::string(module.summary), .make = std::move(make)};
}

}  // namespace attest
