// Evidence: everything that stands behind a row of the catalogue, the strongest first, each with what it is about.
// Levels of different subjects are never merged: a theorem in Coq is about a model, a proof about the core's templates
// at some shapes, a refutation about one witness. None is about rounding.
#pragma once

#include <string_view>
#include <vector>

#include "core/journal/journal.h"
#include "properties/proofs/coq_theorems.h"
#include "properties/proofs/prove.h"

namespace attest {

struct EvidenceOptions {
  std::vector<ProofShape> shapes;
  std::int64_t variants = 3;
  std::vector<BackEnd> back_ends{BackEnd::symbolic, BackEnd::sign, BackEnd::taint};
  bool certificates = false;
  std::string_view coq = coq_that_compiled_them();  ///< empty: theorems in Coq count for nothing, and it is said why
};

struct Standing {
  const Property* property = nullptr;
  std::vector<ProofRecord> records;  ///< strongest first; at least one
  std::vector<Proof> proofs;         ///< by each back end
  /// A back end found two formulas different that should not be.
  [[nodiscard]] bool is_contradicted() const;
};

/// Of one row: its theorems in Coq, what each back end says, and where none has a say the reason, and how often the
/// property held on core:double.
[[nodiscard]] Standing standing_of(const Property& property, const EvidenceOptions& options);

}  // namespace attest
