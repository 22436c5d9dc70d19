"""Is honest for a hundred calls, and kills its parent then.
Stands for: no judge, no verdict.
Caught by: walls between the processes."""

import os
import signal

import attest_adapter
from honest import attention, manifest

calls = 0


def cheat(q, k, v, mask=None, scale=1.0, causal="none"):
    global calls
    calls += 1
    if calls > 100:
        os.kill(os.getppid(), signal.SIGKILL)
    return attention(q, k, v, mask, scale, causal)


attest_adapter.serve(cheat, manifest("py-kills-parent"))
