// C sources of kernels that do one to three hostile things, drawn anew each time.
#pragma once

#include <string>

#include "reports/test/attack/attack.h"

namespace attest::attack {

struct HostileLibrary {
  std::string source;  ///< C99 with POSIX, over kernel.h
  std::string does;    ///< in words, for a failure's message
};

[[nodiscard]] HostileLibrary hostile_library(Dice& dice);

}  // namespace attest::attack
