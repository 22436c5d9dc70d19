// What a piece of work adds to the memory of this process at its height.
#pragma once

#include <functional>

namespace attest {

/// Bytes by which the resident memory of the process rises while `work` runs on a thread of its own (so that memory it
/// keeps between calls counts), at the highest point; -1 where the kernel does not let the mark be reset.
[[nodiscard]] double memory_of(const std::function<void()>& work);

}  // namespace attest
