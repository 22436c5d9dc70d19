// Arb's own header, wherever it stands: since FLINT 3 Arb is a part of FLINT, before that a library of its own. FLINT 3
// declares conversions to and from MPFR only to those who include MPFR first.
#pragma once

#include <mpfr.h>

#if __has_include(<flint/arb.h>)
#include <flint/arb.h>
#else
#include <arb.h>
#endif
