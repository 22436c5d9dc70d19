// Work that falls into parts of their own, on several threads.
#pragma once

#include <cstddef>
#include <functional>

namespace attest {

/// Calls work(n) once for each n from 0 to count - 1, in that order, on `jobs` threads, each of which takes the next n
/// when it has ended one. After one has thrown no more are begun, and it is thrown here when all have ended.
void in_parallel(std::size_t count, int jobs, const std::function<void(std::size_t)>& work);

}  // namespace attest
