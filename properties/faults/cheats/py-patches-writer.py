"""Its function is honest. The adapter's writer is not any more: of tensors as large as the last, every other reply has
the last one's bytes.
Stands for: the harness patched in the process that it shares with the kernel (Wafer's field guide, 2026).
Caught by: a repeated shape with other data."""

import attest_adapter
from honest import attention, manifest

write = attest_adapter.Server.reply
last = {}


def reply(server, outputs):
    _, _, out = outputs[0]
    kept = last.pop((out.shape, out.dtype.str), None)
    if kept is None:
        last[out.shape, out.dtype.str] = out.copy()
    else:
        outputs[0] = (*outputs[0][:2], kept)
    return write(server, outputs)


attest_adapter.Server.reply = reply
attest_adapter.serve(attention, manifest("py-patches-writer"))
