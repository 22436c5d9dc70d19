// How inputs of a campaign are made: fresh ones by the properties' generators, and others from them by small steps.
#pragma once

#include "fuzz/input.h"
#include "properties/generators/stream.h"
#include "properties/road/road.h"

namespace attest {

/// As the property's generator makes them: unguided random. One in four of attention cases is a recipe without what the
/// property arranges, as half of them are where it arranges nothing that a recipe cannot say.
[[nodiscard]] Input fresh_input(const Target& target, Stream& stream);

/// One to four steps away: other extents, kinds, masks or scales, another seed, or other numbers (an element, row or
/// tensor scaled, moved by ulps, copied, exchanged, replaced by a bit class). Cases that are small enough are
/// given by their bits from then on, so that steps add up.
[[nodiscard]] Input mutated(const Input& input, const Target& target, Stream& stream);

/// One or two steps away in extents, kinds, masks, scale, layouts or seed alone, all else as it was where that is small
/// enough.
[[nodiscard]] Input restructured(const Input& input, const Target& target, Stream& stream);

/// Shape, scores, values and mask, each of one of the two.
[[nodiscard]] Input crossed(const Input& a, const Input& b, Stream& stream);

}  // namespace attest
