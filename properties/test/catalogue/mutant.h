// What the woven copies of the family files include: whether a mutant is the chosen one.
#pragma once

#include <string>

namespace attest {

/// Mutant::name of the one that is in force; empty: none.
inline std::string chosen_mutant;

}  // namespace attest
