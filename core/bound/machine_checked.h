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
/// What it does of which a tolerance is proved by machine that has another form than the one core/bound computes
/// (implemented.v states that of the others).
[[nodiscard]] std::vector<std::string_view> proved_in_another_form(const Arithmetic& arithmetic);
/// "proved by machine", "proved by machine, in another form than it is computed in: a, b", or "proved on paper; by
/// machine but for a, b".
[[nodiscard]] std::string proof_text(const Arithmetic& arithmetic);
/// Is nothing that a division before the values loses by underflow seen of weights that are stored after it? (The
/// theorems of such kernels ask for it: divided_first.v.)
[[nodiscard]] bool division_is_unseen(const Arithmetic& arithmetic);

}  // namespace attest
