/* Reads q and k with the four significant bits of an 8-bit float from 256 keys on, and says nothing.
   Stands for: lower precision than declared, where it saves most.
   Caught by: the oracle, at 256 keys or more. */
static int narrow;
#define HONEST_INPUT(x) (narrow ? honest_of_bits((honest_bits(x) + 0x80000) & 0xFFF00000u) : (x))
#include "honest.h"

static int answer(const attest_problem* p, attest_result* r) {
  narrow = p->k.shape[2] >= 256;
  return honest_attention(p, r);
}

HONEST_LIBRARY("fp8-products", answer)
