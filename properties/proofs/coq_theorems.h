// The theorems for all sizes that properties/proofs/coq proves of the catalogue's rows.
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace attest {

/// Names of the theorems of a row, "attention_query_deletion" first and its further parts after it; empty where
/// properties/proofs/coq/not_here.txt says why there is none.
[[nodiscard]] std::vector<std::string_view> coq_theorems(std::string_view property);

/// "Coq 8.16.1": what compiled these theorems and found them to rest on no axiom. That is known by
/// properties/proofs/coq/compiled.txt, where its hashes are those of the files that this program was built beside;
/// empty where they are not.
[[nodiscard]] std::string_view coq_that_compiled_them();

}  // namespace attest
