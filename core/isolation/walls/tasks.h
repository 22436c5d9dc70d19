// What counts against a kernel's limit of processes without being the kernel's.
#pragma once

namespace attest::process {

/// Processes and threads that the system counts together with those behind the walls: bubblewrap's own, and where the
/// limit is the user's and not the namespace's (bare walls, Linux before 5.14) all that the user runs now. Root's
/// kernels are users of their own.
[[nodiscard]] int tasks_beside(bool bare, bool root);

}  // namespace attest::process
