// Cases that miss a hypothesis, made of cases that meet it.
#pragma once

#include <cstdint>

#include "core/problem/case.h"
#include "properties/catalogue/hypotheses.h"

namespace attest {

/// The case `met` changed so that it should miss the hypothesis and little else: a mask or causal form put there or
/// taken away, a head or a bias more, tokens told apart. `n` numbers the ways. Unchanged where nobody has said how:
/// then no case is known that misses the hypothesis and leaves anything to say.
[[nodiscard]] Case missing(const Hypothesis& hypothesis, const Case& met, std::uint64_t n);

/// The case with small whole numbers for its own: tensors that are equal stay equal, an identity W_o stays one, a zero
/// b_o stays zero, entries 0 and -inf of a mask stay, and so does the scale. In double nothing of it is ever rounded
/// but what exp is taken of.
[[nodiscard]] Case with_whole_numbers(Case c, std::uint64_t seed);

}  // namespace attest
