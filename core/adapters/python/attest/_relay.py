"""The process that attest starts for attest.check: hands its pipes to the process that called it and waits until that is
done with them. It is run by its path, and imports nothing of this package."""

import attest_adapter  # first: it takes standard output for replies

import os  # noqa: E402
import socket  # noqa: E402
import sys  # noqa: E402

_SOCKET = "ATTEST_PYTHON_SOCKET"  # as in _check.py


def main():
    address = os.environ.get(_SOCKET)
    try:
        if not address:
            raise OSError(f"{_SOCKET} is not set")
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(address)
    except OSError as error:
        name = sys.argv[1] if len(sys.argv) > 1 else "the function"
        attest_adapter.refuse(
            f"{name} lives in the Python process that tested it ({error}); run that again with ATTEST_REPLAY=CASE set"
        )
    socket.send_fds(connection, [b"x"], [0, attest_adapter._replies])
    os.close(0)
    os.close(attest_adapter._replies)
    connection.recv(1)


if __name__ == "__main__":
    main()
