// The theorems for all sizes that properties/proofs/coq proves of the catalogue's rows.
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace attest {

/// Names of the theorems of a row, "attention_query_deletion" first and its further parts after it; empty where
/// properties/proofs/coq/not_here.txt says why there is none. That they are proved, and of no axiom, is what `ctest -L
/// coq` establishes, not this program.
[[nodiscard]] std::vector<std::string_view> coq_theorems(std::string_view property);

}  // namespace attest
