/* Exponentials of the scores as they are, cut off at 40: right while all scores of a row are below it.
   Stands for: a softmax that tests on normal random inputs do not overflow.
   Caught by: the oracle, at large scores. */
#define HONEST_SCORE(x) ((x) > 40 ? 40 : (x))
#include "honest.h"

HONEST_LIBRARY("exp-without-maximum", honest_attention)
