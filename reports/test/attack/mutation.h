// Bytes changed as accidents and enemies change them.
#pragma once

#include <string>

#include "reports/test/attack/attack.h"

namespace attest::attack {

/// One to three changes: a bit, a byte, a digit, a run of NUL bytes, bytes left out, doubled or moved, the end cut off.
/// Never the bytes it was given.
[[nodiscard]] std::string mutated(std::string bytes, Dice& dice);

}  // namespace attest::attack
