// RapidCheck generators of recipes. Their shrinkables have no shrinks: shrinking works on cases, as it must for a case
// that came from a file (shrink.cc).
#pragma once

#include <rapidcheck/Gen.h>
#include <rapidcheck/Random.h>

#include "properties/generators/recipe.h"

namespace attest {

/// Recipes of attention cases. At RapidCheck's nominal size most extents are at most 8, a few lie around the edges of
/// the usual blocks (16 to 128, each +-1), and rarely N is in the thousands; below the nominal size all are at most 8.
[[nodiscard]] rc::Gen<Recipe> attention_recipes(DType dtype);
/// Recipes of multihead cases, general c_q, c_k, c_v, dk, dv, d_o.
[[nodiscard]] rc::Gen<Recipe> multihead_recipes(DType dtype);

/// Kinds near the edges of the domain of definition: huge, offset, below sentinels, underflow, bit classes.
void move_to_the_edge(Recipe& recipe, rc::Random& random);

}  // namespace attest
