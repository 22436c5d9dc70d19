/* Honest: keeps a table of powers of two from call to call, which depends on nothing that it is given.
   Stands for: nothing to catch. A cache is no cheat where what is kept is right for every call. */
#include <math.h>

static double table[64];

/* 2^(n/64) from the table times a polynomial of what is left, in double; rounded once. */
static float exp_by_table(float x) {
  if (!(x > -104)) return x != x ? x : 0;
  const double n = nearbyint((double)x * (64 / M_LN2)), rest = (double)x - n * (M_LN2 / 64);
  const int whole = (int)n;
  return (float)ldexp(table[whole & 63] * (1 + rest * (1 + rest * (0.5 + rest / 6))), whole >> 6);
}
#define HONEST_EXP(x) exp_by_table(x)
#include "honest.h"

static int answer(const attest_problem* p, attest_result* r) {
  if (table[0] == 0)
    for (int i = 0; i < 64; ++i) table[i] = exp2(i / 64.0);
  return honest_attention(p, r);
}

HONEST_LIBRARY("honest-exp-table", answer)
