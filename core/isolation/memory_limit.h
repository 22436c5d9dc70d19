// How much memory a kernel's process may hold.
//
// The limit is RLIMIT_DATA: private writable memory, which is what a program fills. RLIMIT_AS would count address space
// that is reserved and never used, of which a CUDA or sanitizer runtime takes terabytes as it loads. Memory that a
// process shares (files, memfd, MAP_SHARED) is in neither the one nor, reliably, the other, and is not limited.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace attest::process {

/// Private writable memory of this process in bytes, stack included; 0 where the system does not say.
/// Async-signal-safe.
[[nodiscard]] std::uint64_t memory_held() noexcept;
/// From now on this process may hold `bytes` more than it holds already. 0: no limit.
void limit_own_memory(std::uint64_t bytes);
/// The same of a process just started, which holds next to nothing. One that is gone already is left in peace.
void limit_memory_of(pid_t process, std::uint64_t bytes);

/// "4 GiB", "1.5 MiB", "700 bytes".
[[nodiscard]] std::string size_text(std::uint64_t bytes);
/// Whether a message sounds as if memory had run out: of C++, Python, PyTorch and the C library.
[[nodiscard]] bool tells_of_memory(std::string_view message);

}  // namespace attest::process
