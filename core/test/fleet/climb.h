// A hill climb that tries to push a correct kernel over its bound.
#pragma once

#include <cstdint>
#include <random>

#include "core/test/fleet/ledger.h"
#include "core/test/fleet/validation.h"

namespace attest::fleet {

/// Another number for an element of a tensor, finite in its dtype; the same where it finds none.
[[nodiscard]] double changed(const Tensor& tensor, std::int64_t at, std::mt19937_64& random);

/// Starts from small cases of every regime, changes one number at a time (bits, powers of two, copies, signs, the
/// scale, what variants have) and keeps what does not lower error / bound. `steps` evaluations, entered into the
/// ledger. Deterministic.
void climb(const Emulation& kernel, std::uint64_t seed, std::int64_t steps, Ledger& ledger,
           Added added = Added::nothing);

}  // namespace attest::fleet
