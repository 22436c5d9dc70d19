// Cases for proofs: drawn as for a check, brought to a small shape, and every number in them one that stands for any.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/kernel/formal.h"
#include "properties/catalogue/property.h"

namespace attest {

/// M queries, N keys, head dimensions dk and dv, h heads; the documents' names.
struct ProofShape {
  std::int64_t queries = 2, keys = 2, dk = 2, dv = 2, heads = 1;
  [[nodiscard]] bool operator==(const ProofShape&) const = default;
};
/// "3,4,2,2,1": M, N, dk, dv, h.
[[nodiscard]] std::string to_string(const ProofShape& shape);

/// Case k of the property at that shape, as its generator draws masks, causal forms, groups and biases, with every
/// number a double that stands for an indeterminate of `inputs`: "q[0,1,2,0]"; what is one tensor stays one. A tensor
/// whose numbers a hypothesis fixes (W_o = I) keeps them. Nothing where a few tries at drawing it miss the hypotheses
/// or the shape.
[[nodiscard]] std::optional<Case> formal_case(const Property& property, const ProofShape& shape, std::int64_t k,
                                              GenericInputs& inputs);

}  // namespace attest
