/* Rounds scores and weights to bf16 in its kernel for f32, and says nothing.
   Stands for: lower precision than declared (Wafer's field guide, 2026: precision downgrade).
   Caught by: the oracle. */
#define HONEST_SCORE(x) honest_from_bf16(honest_to_bf16(x))
#define HONEST_WEIGHT(x) honest_from_bf16(honest_to_bf16(x))
#include "honest.h"

HONEST_LIBRARY_OF(HONEST_MANIFEST("silent-bf16", "[\"f32\"]", ""), honest_attention)
