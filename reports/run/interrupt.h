// Ctrl-C: the first asks the run to end at its last finished batch, the second ends the program at once.
#pragma once

namespace attest {

/// Handles SIGINT, SIGTERM, SIGQUIT and, unless it is ignored (nohup), SIGHUP from now on. A broken pipe and a
/// file-size limit become errors of the write instead.
void handle_signals();
/// Readable once a signal has asked the run to end (KernelOptions::interrupt); -1 before handle_signals().
[[nodiscard]] int interrupt_descriptor() noexcept;
/// A signal has asked the run to end. Safe from any thread.
[[nodiscard]] bool interrupt_requested() noexcept;

}  // namespace attest
