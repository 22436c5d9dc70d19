// Who looks at a SIGSEGV before all others: whether it is an access to a page at the edge of a tensor.
#pragma once

namespace attest {

class GuardedMemory;

/// From now on an access of this program to a protected page at the edge of a tensor of `memory` is handed to its
/// take_fault; what that does not take goes to the handler that was there before, which is the usual end. False: too
/// many are watched already. Any thread.
[[nodiscard]] bool watch_edges_of(GuardedMemory& memory);
/// Before its end. No handler looks at it afterwards.
void ignore_edges_of(GuardedMemory& memory);
/// Returns once every handler that looked at watched memory has done so: what is not armed any more may change then.
void wait_for_edge_faults();

}  // namespace attest
