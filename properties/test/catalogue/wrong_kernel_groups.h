// The groups that wrong_kernels.h lists, a source for each, and the noise that several are made of.
#pragma once

#include <cstdint>
#include <vector>

#include "core/problem/case.h"
#include "properties/test/catalogue/wrong_kernels.h"

namespace attest {

/// Of a whole call; of whether its tensors lie under strides too.
[[nodiscard]] std::uint64_t hash_of_call(const Case& c);
/// From 1/4 to 1, of either sign.
[[nodiscard]] double noise_of(std::uint64_t hash);

/// "looks-at …" and "wrong-at …"
[[nodiscard]] std::vector<WrongKernel> noisy_kernels();
[[nodiscard]] std::vector<WrongKernel> mistaken_kernels();
/// Right but for windows.
[[nodiscard]] std::vector<WrongKernel> mistaken_windows();
/// Right but for sinks.
[[nodiscard]] std::vector<WrongKernel> mistaken_sinks();
/// Right but for caps.
[[nodiscard]] std::vector<WrongKernel> mistaken_softcaps();
/// Right but for dropout.
[[nodiscard]] std::vector<WrongKernel> mistaken_dropouts();
/// Right but for slopes.
[[nodiscard]] std::vector<WrongKernel> mistaken_alibi();
/// Right but for sequences of lengths of their own.
[[nodiscard]] std::vector<WrongKernel> mistaken_sequences();
/// Right but for a cache of keys and values.
[[nodiscard]] std::vector<WrongKernel> mistaken_caches();
/// Right but for where keys and values lie in one.
[[nodiscard]] std::vector<WrongKernel> mistaken_pages();

}  // namespace attest
