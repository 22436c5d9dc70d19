// Manifest: what a kernel supports, how it computes and what it claims (kernel-interface.md, section 3).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/kernel/arithmetic.h"
#include "core/problem/case.h"
#include "core/problem/fully_masked_row.h"
#include "core/support/words.h"

namespace attest {

enum class Claim { deterministic, batch_invariant, padding_invariant, ignores_dead_values };
template <>
struct Words<Claim> {
  static constexpr std::array<std::string_view, 4> names{"deterministic", "batch-invariant", "padding-invariant",
                                                         "ignores-dead-values"};
};

struct Manifest {
  std::string name;
  std::string version;
  std::vector<DType> dtypes;                       ///< input dtypes, never empty
  std::map<DType, std::vector<DType>> out_dtypes;  ///< output dtypes beyond the input's own
  std::map<DType, Arithmetic> arithmetic;          ///< one per dtype, universal where not stated
  std::vector<Claim> claims;
  FullyMaskedRow fully_masked_row = FullyMaskedRow::undeclared;
  bool any_scale = true;   ///< false: "inv-sqrt-dk" only
  bool attention = true;   ///< has the attention entry ("operations")
  bool multihead = false;  ///< has the multihead entry
  bool additive_masks = true;
  bool bool_masks = true;
  std::vector<DType> mask_dtypes;  ///< additive masks in formats other than q's
  std::vector<MaskConvention> mask_conventions{MaskConvention::post_scale};
  std::vector<std::string> arguments;  ///< of later versions of the contract, by their names in fields.h
  std::vector<Causal> causal;          ///< alignments supported beside none
  bool grouped_query = false;
  bool strides = false;
  bool lse = false;
  bool thread_safe = true;
  std::int64_t head_dim_multiple = 1;
  std::optional<std::int64_t> max_head_dim, max_queries, max_keys, max_heads;
  std::int64_t heads_multiple = 1;
  bool value_dim_equals_head_dim = false;  ///< "value_dim": "head_dim" | "any"
  bool self_attention_only = false;        ///< multihead: q, k and v are one tensor
  std::int64_t alignment = 0;              ///< bytes; 0: the element's

  /// It has the entry for it.
  [[nodiscard]] bool has(Operation operation) const {
    return operation == Operation::attention ? attention : multihead;
  }
  /// It lists the dtype for its inputs.
  [[nodiscard]] bool takes(DType dtype) const;
  [[nodiscard]] bool claims_to(Claim claim) const;
  /// The arithmetic of one of `dtypes`; throws std::out_of_range for any other.
  [[nodiscard]] const Arithmetic& arithmetic_for(DType dtype) const;
  [[nodiscard]] bool operator==(const Manifest&) const = default;
};

/// Parses and checks a manifest. Throws UsageError: one line beginning with `source` that names the key, the value and
/// the rule (unknown keys are errors with the nearest known key, contradictions are errors). What is not stated is as
/// in a default Manifest, arithmetic universal, but thread_safe is false. A name twice in one object is an error.
[[nodiscard]] Manifest parse_manifest(std::string_view json, std::string_view source);
/// A complete manifest, as JSON: parse_manifest gives it back equal, where `arithmetic` has one entry per dtype.
[[nodiscard]] std::string to_json(const Manifest& manifest);

/// Empty when the kernel can be asked to run the valid case, else why not ("has 2 queries; the manifest's max_queries
/// is 1"). head_dim_multiple and max_head_dim hold for dk and dv alike. Which scales are 1/sqrt(dk) is
/// is_inverse_root's to say (case.h). The convention of a mask matters only where the mask is
/// additive.
[[nodiscard]] std::string why_unsupported(const Manifest& manifest, const Case& c);

}  // namespace attest
