// A case in words and numbers, for people.
#pragma once

#include <string>

#include "core/problem/case.h"

namespace attest {

/// The case, a line each for the scalars and every tensor: name, dtype, shape, and all of its numbers, shortest decimal
/// form that reads back the same, where it has at most `most` of them ("q f32 [1, 1, 1, 2]: [[[[0, 1]]]]"), else how
/// many.
[[nodiscard]] std::string describe(const Case& c, std::int64_t most = 64);

}  // namespace attest
