// The elements that a violated verdict is about, with what is exact there.
#pragma once

#include <vector>

#include "core/journal/journal.h"
#include "core/kernel/kernel_under_test.h"

namespace attest {

/// The elements of Verdict::compared, each with the certified enclosure of its exact value where the call was one of
/// attention and small enough to be computed again in a moment: which side of a law is wrong is then seen.
[[nodiscard]] std::vector<ComparedRecord> compared_elements(const Verdict& verdict, const Manifest& manifest);

/// The verdict on `out`, the kernel's answer to `c`, with the element that it calls wrong as the one compared.
[[nodiscard]] Verdict with_element(Verdict verdict, const Case& c, const Values& out);

/// Multiplications of a case that is computed again for people to read.
inline constexpr std::int64_t most_computed_again = 20'000;
/// Those of an attention case.
[[nodiscard]] std::int64_t multiplications_of(const Case& c);

}  // namespace attest
