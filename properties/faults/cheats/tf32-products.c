/* Reads q and k with the 11 significant bits of TF32 in its kernel for f32, and says nothing.
   Stands for: lower precision than declared (Wafer's field guide, 2026: precision downgrade).
   Caught by: the oracle. */
#define HONEST_INPUT(x) honest_of_bits((honest_bits(x) + 0x1000) & 0xFFFFE000u)
#include "honest.h"

HONEST_LIBRARY_OF(HONEST_MANIFEST("tf32-products", "[\"f32\"]", ""), honest_attention)
