// What a property draws or computes for itself: particular numbers in a check, numbers that stand for all in a proof.
#pragma once

#include <cstdint>

namespace attest {

/// Is the property being run on a scalar of proofs (formal.h)?
[[nodiscard]] bool in_a_proof();
/// `drawn`; in a proof a double that stands for any real number.
[[nodiscard]] double any_number(double drawn);
/// a + b and a·b, rounded; in a proof doubles that stand for the exact sum and product. -inf as in double.
[[nodiscard]] double sum_of(double a, double b);
[[nodiscard]] double product_of(double a, double b);
/// 1/a, rounded; in a proof a double that stands for it, to be compared only where a is known to be nonzero.
[[nodiscard]] double inverse_of(double a);
/// n as a number of the theorem: in a proof none of the particular ones (GenericInputs::particular).
[[nodiscard]] double count_of(std::int64_t n);

/// In a proof: doubles that stand for any positive number, e^a and ln a.
[[nodiscard]] double any_positive_number();
[[nodiscard]] double exponential_of(double a);
[[nodiscard]] double logarithm_of(double a);
/// tanh a, rounded; in a proof a double that stands for it.
[[nodiscard]] double tangent_of(double a);

}  // namespace attest
