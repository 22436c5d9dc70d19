/* Keeps its scores in bf16 in its kernel for f32, and says so.
   Stands for: lower precision, declared by the kernel itself.
   Manifest: scores stored in bf16.
   Caught by: the contract's arithmetic in place of the manifest's. */
#define HONEST_SCORE(x) honest_from_bf16(honest_to_bf16(x))
#include "honest.h"

HONEST_LIBRARY_OF(HONEST_MANIFEST("scores-in-bf16", "[\"f32\"]", ",\"arithmetic\":{\"scores\":\"bf16\"}"),
                  honest_attention)
