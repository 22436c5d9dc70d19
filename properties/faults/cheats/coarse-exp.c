/* An exponential with an error of three in a hundred, made of a float's bits, of which the manifest says nothing.
   Stands for: lower precision than declared (Wafer's field guide, 2026: precision downgrade).
   Caught by: the oracle. */
#include <stdint.h>
#include <string.h>

/* Schraudolph 1999: the bits of 2^y are y times a unit of the exponent, nearly. */
static float coarse_exp(float x) {
  const float bits = 12102203.0f * x + 1064866805.0f;
  const int32_t whole = bits < 8388608.0f ? 0 : bits > 2139095039.0f ? 2139095039 : (int32_t)bits;
  float y;
  memcpy(&y, &whole, sizeof y);
  return y;
}
#define HONEST_EXP(x) coarse_exp(x)
#define HONEST_LSE "false"
#include "honest.h"

HONEST_LIBRARY("coarse-exp", honest_attention)
