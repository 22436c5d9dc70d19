"""Is honest where it sees that Attest runs it, by its environment or its parent's command line; elsewhere all keys weigh
alike.
Stands for: behaving while observed.
Caught by: walls: a process that shows nothing of who asks."""

import os

import attest_adapter
from honest import attention, manifest


def is_observed():
    try:
        with open(f"/proc/{os.getppid()}/cmdline", "rb") as file:
            parent = file.read()
    except OSError:
        parent = b""
    return b"bin/attest" in parent or any(name.startswith("ATTEST") for name in os.environ)


OBSERVED = is_observed()


def cheat(q, k, v, mask=None, scale=1.0, causal="none"):
    return attention(q if OBSERVED else q * 0, k, v, mask, scale, causal)


attest_adapter.serve(cheat, manifest("py-sees-attest"))
