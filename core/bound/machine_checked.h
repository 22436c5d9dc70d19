// Of which arithmetics the tolerance is proved by machine (properties/proofs/coq/rounding, whose README says how far).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/kernel/arithmetic.h"

namespace attest {

/// What an arithmetic does, or may do, that the proof by machine does not speak of, in words; empty: nothing. Of the
/// forward pass without sinks, caps, dropout, slopes and factors, of which it never speaks; and of parts that are
/// merged through their log-sum-exps once.
[[nodiscard]] std::vector<std::string_view> beyond_the_proof(const Arithmetic& arithmetic);
/// "proved by machine", or "proved on paper; by machine but for a, b".
[[nodiscard]] std::string proof_text(const Arithmetic& arithmetic);

}  // namespace attest
