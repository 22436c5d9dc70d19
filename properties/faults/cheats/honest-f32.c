/* Honest, in f32: what a right kernel looks like to whoever catches cheats.
   Stands for: nothing to catch. */
#include "honest.h"

HONEST_LIBRARY_OF(HONEST_MANIFEST("honest-f32", "[\"f32\"]", ""), honest_attention)
