// Elements of an output in words: where, how large, exactly.
#pragma once

#include <cstdint>
#include <string>

#include "core/journal/journal.h"
#include "core/value/tensor.h"

namespace attest {

/// The element in one line: "out[0, 0, 2, 1] of a call with 4 keys: found 0.5 (0x1p-1), exact [0.5 (0x1p-1), 0.5
/// (0x1p-1)]".
[[nodiscard]] std::string element_text(const ComparedRecord& element);

/// The number in decimal, at full precision, and in hexadecimal: "0.25 (0x1p-2)".
[[nodiscard]] std::string exact_text(double value);

/// The number in hexadecimal, as "0x1.8p+3", whatever the locale; number_text where it is not finite.
[[nodiscard]] std::string hex_number(double value);

}  // namespace attest
