// A process beside this program that outlives it by a moment, and kills what it leaves.
//
// A program that is killed cannot end the kernels it started. PR_SET_PDEATHSIG is about the thread that started a
// child, reaches no grandchild, and comes too late where the parent dies first; the watcher holds one end of a
// connection whose other end closes whatever becomes of us.
#pragma once

#include <sys/types.h>

namespace attest::process {

/// From now on whatever has a mark of ours (descendants.h) is killed when this program ends, however it does. To be
/// called before a child is started; calls after the first do nothing. Where no watcher can be started, nothing
/// watches.
void start_watcher() noexcept;
/// The same of a child and its group, whose members may have lost the mark.
void watch(pid_t child) noexcept;
/// To be called before the child is reaped: afterwards its number may become another's.
void unwatch(pid_t child) noexcept;

}  // namespace attest::process
