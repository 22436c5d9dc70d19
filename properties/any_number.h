// What a property draws or computes for itself: particular numbers in a check, numbers that stand for all in a proof.
#pragma once

namespace attest {

/// Is the property being run on a scalar of proofs (formal.h)?
[[nodiscard]] bool in_a_proof();
/// `drawn`; in a proof a double that stands for any real number.
[[nodiscard]] double any_number(double drawn);
/// a + b and a·b, rounded; in a proof doubles that stand for the exact sum and product. -inf as in double.
[[nodiscard]] double sum_of(double a, double b);
[[nodiscard]] double product_of(double a, double b);

}  // namespace attest
