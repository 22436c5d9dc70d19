#include "core/kernel/manifest.h"

#include <algorithm>
#include <stdexcept>

#include "core/problem/fields.h"

namespace attest {

bool Manifest::takes(DType dtype) const {
  return std::ranges::find(dtypes, dtype) != dtypes.end();
}

std::vector<KvDtypes> Manifest::kv_dtypes_for(DType q) const {
  const auto stated = kv_dtypes.find(q);
  return stated == kv_dtypes.end() ? std::vector{KvDtypes{q, q}} : stated->second;
}

bool Manifest::claims_to(Claim claim) const {
  return std::find(claims.begin(), claims.end(), claim) != claims.end();
}

std::map<std::string, VariantTerms, std::less<>> every_variant() {
  std::map<std::string, VariantTerms, std::less<>> all;
  for (const Variant& variant : {window_variant, lengths_variant, packed_variant, left_pad_variant, paged_variant,
                                 append_variant, cache_index_variant, sink_variant, softcap_variant, dropout_variant,
                                 alibi_variant, chunk_variant, descale_variant})
    all[std::string(variant.name)].padding =
        variant == lengths_variant || variant == packed_variant ? Padding::zero : Padding::undeclared;
  VariantTerms& pages = all[std::string(paged_variant.name)];
  pages.any_table_tail = pages.two_tables = true;
  all[std::string(alibi_variant.name)].per_batch = true;
  VariantTerms& factors = all[std::string(descale_variant.name)];
  factors.per_batch = factors.any_blocks = true;
  factors.dequantised = DescalePlace::sums;
  all[std::string(sink_variant.name)].dtypes = {DType::f32, DType::f16, DType::bf16, DType::f64};
  return all;
}

void state_terms_in_arithmetic(Manifest& manifest) {
  const VariantTerms unstated;
  const auto terms_of = [&](const Variant& variant) -> const VariantTerms& {
    const auto found = manifest.variants.find(variant.name);
    return found == manifest.variants.end() ? unstated : found->second;
  };
  const auto state = [&](Arithmetic& a) {
    a.sink_in_max = terms_of(sink_variant).in_max;
    a.dropout = terms_of(dropout_variant).applied;
    a.slopes = terms_of(alibi_variant).form;
    a.descale = terms_of(descale_variant).dequantised;
    a.lse_of_columns = manifest.lse_convention.of_columns;
    a.lse_without_sink = !terms_of(sink_variant).lse_has_sink;
  };
  for (Arithmetics* const all : {&manifest.arithmetic, &manifest.promises}) {
    for (auto& [dtype, usual] : all->usual) state(usual);
    for (auto& [dtype, paths] : all->paths)
      for (ArithmeticPath& path : paths) state(path.arithmetic);
  }
}

Padding Manifest::padding_of(const Problem& problem) const {
  for (const Variant& variant : {lengths_variant, packed_variant})
    if (const auto found = variants.find(variant.name); found != variants.end() && has_variant(problem, variant.name))
      return found->second.padding;
  return Padding::undeclared;
}

const Arithmetic* Arithmetics::find(const Problem& problem) const {
  const auto found = usual.find(problem.dtype());
  if (found == usual.end()) return nullptr;
  const auto own = paths.find(problem.dtype());
  if (own != paths.end()) {
    const Extents e = extents_of(problem);
    for (const ArithmeticPath& path : own->second)
      if (path.is_taken_by(e)) return &path.arithmetic;
  }
  return &found->second;
}

BackwardArithmetic Manifest::backward_arithmetic_for(const Problem& problem) const {
  const auto stated = arithmetic.backward.find(problem.dtype());
  BackwardArithmetic a =
      stated != arithmetic.backward.end() ? stated->second : universal_backward_arithmetic(arithmetic_for(problem));
  a.weights_from = backward_terms.weights, a.delta = backward_terms.delta;
  return a;
}

const Arithmetic& Manifest::arithmetic_for(const Problem& problem) const {
  if (const Arithmetic* const found = arithmetic.find(problem)) return *found;
  throw std::out_of_range("the manifest does not list the problem's dtype");
}

}  // namespace attest
