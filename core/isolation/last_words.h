// What the process of a library says of a signal that ends it.
#pragma once

#include <cstdint>

namespace attest::process {

/// What this process is doing, for a signal that comes in the middle of it.
enum class Stage : int { starting, loading, manifest, call, between_calls };
void enter(Stage stage) noexcept;

/// From now on SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT send one packet to the process that asked
/// (SharedKind::death: what the kernel was doing, and where it went outside its tensors) before they end this one. A
/// kernel that installs handlers of its own keeps them, and dies without a word. `memory`: the limit in bytes, 0: none.
void tell_last_words(std::uint64_t memory);

}  // namespace attest::process
