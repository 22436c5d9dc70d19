// What FLINT keeps for a thread.
#pragma once

namespace attest::detail {

/// Has what FLINT caches for this thread freed when the thread ends. Thread-local objects that hold balls are made
/// after the first call, so that they are destroyed before.
void free_flint_caches_at_thread_end();

}  // namespace attest::detail
