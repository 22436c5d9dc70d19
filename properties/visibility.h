// Which keys a row of a case may attend to: mask and causal form together (kernel-interface.md, section 1).
#pragma once

#include <cstdint>

#include "attest/case.h"

namespace attest {

[[nodiscard]] std::int64_t batch_of(const Case& c);
/// Heads of the queries.
[[nodiscard]] std::int64_t heads_of(const Case& c);
/// M and N; the row of bias_k/bias_v is not counted.
[[nodiscard]] std::int64_t queries_of(const Case& c);
[[nodiscard]] std::int64_t keys_of(const Case& c);

/// True when the mask or the causal form hides key `j` from row `i`. A finite mask entry hides nothing.
[[nodiscard]] bool hidden(const Case& c, std::int64_t batch, std::int64_t head, std::int64_t i, std::int64_t j);

/// The additive mask's entry of row `i` and key `j`; 0 where there is none, or a boolean one.
[[nodiscard]] double bias_of(const Case& c, std::int64_t batch, std::int64_t head, std::int64_t i, std::int64_t j);

/// True when some row sees no key at all (never with bias_k, whose row nothing hides). N = 0 with M > 0 counts.
[[nodiscard]] bool has_fully_masked_row(const Case& c);

}  // namespace attest
