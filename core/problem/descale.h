// Factors of q, k and v: a problem whose numbers are in formats too narrow for them has their quotients by a factor,
// one for all or for each head, entry of the batch, or block of rows and keys (kernel-interface.md, section 1). What is
// computed is attention of the products, which are exact in a double.
#pragma once

#include <cstdint>

#include "core/problem/problem.h"

namespace attest {

/// That of `tensor`, q, k or v; none of another.
[[nodiscard]] Slot descale_of(Slot tensor);
/// What row `row` of q, or key `row`, of head `head` of the tensor counts times itself; 1 where there is no factor.
[[nodiscard]] double factor_of(const Problem& c, Slot tensor, std::int64_t batch, std::int64_t head, std::int64_t row);
/// The least and the largest of a tensor's factors; both 1 where there is none.
struct Factors {
  double least = 1, most = 1;
};
[[nodiscard]] Factors factors_of(const Problem& c, Slot tensor);
/// Has every row of q, or key, a factor of its own, or so many of them one?
[[nodiscard]] bool has_blocks(const Problem& c, Slot tensor);
/// q, k or v times its factors, in f64; as it is where it has none.
[[nodiscard]] Tensor dequantised(const Problem& c, Slot tensor);
/// One factor for each row of q, or for each key, where there are blocks of them: what is gathered row by row.
void spread_factors(Problem& c, bool of_rows, bool of_keys);
/// So many rows of q, or keys, have a factor together, that of the first of them; 0: all.
void set_block(Problem& c, bool of_rows, std::int64_t block);
/// Blocks that no factor has any longer are none.
void settle_blocks(Problem& c);

}  // namespace attest
