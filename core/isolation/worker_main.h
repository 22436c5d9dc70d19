// The entry of the process that a shared library under test runs in.
#pragma once

namespace attest {

/// `PROGRAM worker LIBRARY`: loads the library, checks what it exports and its manifest, and serves calls from the
/// process that started it until that one closes the connection (descriptor 3; requests and replies of
/// core/isolation/shared_call.h, the tensors in shared memory on descriptors 4 and 5). A program that calls
/// open_kernels must hand its command line over to this when argv[1] is "worker", or name another program in
/// KernelOptions::worker_program. Returns the exit status: 0 when the connection ends, 2 when it was started by hand.
/// `enclosed`: a call behind which a process runs on, or was not waited for, has failed.
int worker_main(int argc, char** argv, bool enclosed = false);

}  // namespace attest
