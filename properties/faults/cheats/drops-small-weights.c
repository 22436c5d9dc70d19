/* Leaves out weights below a thousandth of the largest.
   Stands for: sparse attention that answers for dense.
   Caught by: the oracle, where many small weights have large values. */
#define HONEST_WEIGHT(x) ((x) < 0x1p-10f ? 0 : (x))
#include "honest.h"

HONEST_LIBRARY("drops-small-weights", honest_attention)
