/* mine.c with a mistake: the scores are one percent too large. */
#include <math.h>
#define expf(x) expf((x) * 1.01f)
#include "../../../starter/mine.c"
