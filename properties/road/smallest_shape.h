// What the extents of a shrunk finding say of a kernel's tiles.
#pragma once

#include <string>

#include "core/kernel/manifest.h"
#include "core/problem/selection.h"

namespace attest {

/// "from the second key tile of 64 on, a whole query tile of 64", as below.
[[nodiscard]] std::string tiles_text(const Extents& e, const Tiles& tiles);

/// "smallest failing shape found: M 64, N 65 (from the second key tile of 64 on)": where a length is a whole number of
/// tiles, or one more than that, of those that a manifest declares, else of 16 to 512. Empty where neither length is.
/// `e` is of a finding that was made as small as it stays violated.
[[nodiscard]] std::string smallest_shape_text(const Extents& e, const Tiles& tiles);

}  // namespace attest
