// What a kernel returns for a row of which the mask hides every key (kernel-interface.md, section 2).
#pragma once

#include <array>
#include <string_view>

#include "core/support/words.h"

namespace attest {

enum class FullyMaskedRow { undeclared, nan, zero, uniform, error };

template <>
struct Words<FullyMaskedRow> {
  static constexpr std::array<std::string_view, 5> names{"undeclared", "nan", "zero", "uniform", "error"};
};

}  // namespace attest
