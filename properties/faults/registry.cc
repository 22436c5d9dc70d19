#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "core/kernels/backward/builtin_backward.h"
#include "core/problem/fields.h"
#include "properties/faults/catalogue.h"
#include "properties/faults/faults.h"
#include "properties/faults/planted_backward.h"

namespace attest {
namespace {

/// What a make runs in.
std::vector<DType> dtypes_of(const Make& make) {
  if (make.query_tile > 0) return {DType::f32, DType::f16, DType::bf16};
  return {DType::f64, DType::f32, DType::f16, DType::bf16};
}

Manifest manifest_of(std::string_view name, const Make& make, Slip slip, const std::vector<DType>& dtypes, bool lse,
                     const std::optional<BackwardForm>& backward = {}) {
  Manifest manifest;
  manifest.name = std::string(name);
  manifest.version = "1";
  manifest.dtypes = dtypes;
  for (const DType dtype : manifest.dtypes) manifest.arithmetic.usual.emplace(dtype, arithmetic_of(make, dtype));
  manifest.claims = {Claim::deterministic, Claim::ignores_dead_values};
  // Where parts begin depends on N, and padding moves them; whether there are any may depend on M. Those whose mistake
  // this is claim otherwise.
  const bool splits = make.splits > 1 || make.split_tiles > 0;
  if (!splits || slip == Slip("splits-by-length")) manifest.claims.push_back(Claim::padding_invariant);
  if (make.split_tiles == 0 || slip == Slip("parts-by-queries")) manifest.claims.push_back(Claim::batch_invariant);
  manifest.fully_masked_row = FullyMaskedRow::zero;
  manifest.mask_conventions = {MaskConvention::post_scale, MaskConvention::pre_scale};
  manifest.causal = {Causal::top_left, Causal::bottom_right};
  manifest.variants = every_variant();
  VariantTerms& dropout = manifest.variants.find(dropout_variant.name)->second;
  // As each arithmetic above has it.
  dropout.applied = arithmetic_of(make, DType::f32).dropout;
  dropout.own = true;
  manifest.grouped_query = true;
  manifest.strides = true;
  manifest.lse = lse;
  if (backward) {
    manifest.backward = true;
    manifest.backward_terms = terms_of(*backward);
    manifest.backward_terms.dq = slip != Slip("dk-needs-dq");
    for (const DType dtype : dtypes) manifest.arithmetic.backward.emplace(dtype, arithmetic_of(*backward, dtype));
  }
  // A sink tells what the log-sum-exp does: that a whole row's weights are off by a factor before they are divided.
  if (!lse) manifest.variants.erase(std::string(sink_variant.name));
  return manifest;
}

std::unique_ptr<Kernel> kernel_of(const std::string& id, Manifest manifest, const Make& make, Slip slip,
                                  const std::optional<BackwardForm>& backward = {}) {
  KernelFunctions functions;
  // A copy of the function has its own count, so clones share nothing.
  functions.attention = [make, slip, calls = std::int64_t{0}](const attest_problem& problem, attest_result& result,
                                                              std::string& message) mutable {
    return run_planted(make, slip, problem, result, calls++, message);
  };
  if (backward)
    functions.backward = [form = *backward, slip](const attest_backward_problem& problem, attest_gradients& gradients,
                                                  std::string& message) {
      return run_planted_backward(form, slip, problem, gradients, message);
    };
  return function_kernel(id, std::move(manifest), std::move(functions));
}

std::string id_of(const PlantedFault& fault) {
  return "fault:" + std::string(fault.name);
}

}  // namespace

std::span<const PlantedFault> planted_faults() {
  static const std::vector<PlantedFault> all = [] {
    std::vector<PlantedFault> joined = of_kind(FaultKind::masks, faults_of_masks());
    std::ranges::move(of_kind(FaultKind::numbers, faults_of_numbers()), std::back_inserter(joined));
    std::ranges::move(faults_of_tiles(), std::back_inserter(joined));
    std::ranges::move(faults_of_tiled_shapes(), std::back_inserter(joined));
    std::ranges::move(faults_of_windows(), std::back_inserter(joined));
    std::ranges::move(faults_of_chunks(), std::back_inserter(joined));
    std::ranges::move(faults_of_sequences(), std::back_inserter(joined));
    std::ranges::move(faults_of_sinks(), std::back_inserter(joined));
    std::ranges::move(faults_of_softcaps(), std::back_inserter(joined));
    std::ranges::move(faults_of_dropout(), std::back_inserter(joined));
    std::ranges::move(faults_of_alibi(), std::back_inserter(joined));
    std::ranges::move(faults_of_factors(), std::back_inserter(joined));
    std::ranges::move(faults_of_gradients(), std::back_inserter(joined));
    for (PlantedFault& fault : joined)
      if (fault.dtypes.empty()) fault.dtypes = dtypes_of(fault.make);
    return joined;
  }();
  return all;
}

std::vector<KernelEntry> fault_kernels() {
  std::vector<KernelEntry> entries;
  for (const PlantedFault& fault : planted_faults()) {
    entries.push_back(
        {id_of(fault), "wrong on purpose: " + std::string(fault.wrong), [&fault] { return with_fault(fault); }});
  }
  return entries;
}

std::vector<KernelEntry> control_kernels() {
  std::vector<KernelEntry> entries;
  for (const ControlKernel& control : controls()) {
    const std::string id = "control:" + std::string(control.name);
    entries.push_back({id, std::string(control.summary), [&control, id] {
                         return kernel_of(id,
                                          manifest_of(control.name, control.make, Slip(), dtypes_of(control.make), true,
                                                      control.backward),
                                          control.make, Slip(), control.backward);
                       }});
  }
  return entries;
}

std::unique_ptr<Kernel> with_fault(const PlantedFault& fault) {
  Manifest manifest = manifest_of(fault.name, fault.make, fault.slip(), fault.dtypes, fault.lse, fault.backward);
  return kernel_of(id_of(fault), std::move(manifest), fault.make, fault.slip(), fault.backward);
}

std::unique_ptr<Kernel> without_fault(const PlantedFault& fault) {
  const std::string name(fault.name);
  Manifest manifest = manifest_of(name, fault.make, Slip(), fault.dtypes, fault.lse, fault.backward);
  return kernel_of("without:" + name, std::move(manifest), fault.make, Slip(), fault.backward);
}

}  // namespace attest
