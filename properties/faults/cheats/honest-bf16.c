/* Honest, in bf16 alone: sums in f32, one rounding at the end.
   Stands for: nothing to catch. */
#include "honest.h"

HONEST_LIBRARY_OF(HONEST_MANIFEST("honest-bf16", "[\"bf16\"]", ""), honest_attention)
