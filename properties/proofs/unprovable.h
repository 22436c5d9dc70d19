// Rows of the catalogue that no back end of proofs can treat, and why.
#pragma once

#include <string_view>

namespace attest {

/// Why the row says nothing that a proof over the real numbers could establish; empty: a back end may try.
[[nodiscard]] std::string_view why_unprovable(std::string_view property);

}  // namespace attest
