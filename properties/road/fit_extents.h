// Extents that a manifest allows in the place of those of a case: the first part of a projection (project.cc).
#pragma once

#include "core/kernel/manifest.h"
#include "core/problem/case.h"
#include "core/problem/selection.h"

namespace attest {

/// Where a kernel's behaviour may change with a length: its tiles, the parts into which it splits keys, and where a
/// path of its arithmetic begins or ends.
[[nodiscard]] Tiles edges_of(const Manifest& manifest);

/// The nearest extents within the limits of shape: raised where that fits, else lowered. What is tied stays tied where
/// the limits let it: M = N, M < N, M > N, dk = dv, one key-value head a head, widths of a model that are heads * dk.
/// An extent of 0 has nothing to repeat and stays. Where equal lengths are raised, every third case by its seed gets
/// the next allowed length after that, so that there are two tiles to look at. `at_edges`: lengths of an eighth of the
/// cases, by their seed, go to an edge of edges_of, give or take 1.
[[nodiscard]] Extents fitting_extents(const Case& c, const Manifest& manifest, bool at_edges);

/// The case with these extents: indices of every axis cropped, or repeated in turn; heads of a group stay together.
[[nodiscard]] Case with_extents(const Case& c, const Extents& to);

}  // namespace attest
