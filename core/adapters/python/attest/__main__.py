"""`python -m attest`, and the command `attest` of an installation by pip: the program, with the arguments given."""

import os
import shutil
import sys

from attest import _check


def _name(program):
    """How lines to copy call the program: one word, and found from where it is copied to."""
    started = sys.argv[0]
    if os.path.basename(started) == "__main__.py":
        return program
    found = shutil.which("attest")
    return "attest" if found and os.path.exists(started) and os.path.samefile(found, started) else started


def main():
    try:
        program = _check._program()
    except _check.AttestError as error:
        print(f"attest: {error}", file=sys.stderr)
        return 3
    os.environ.setdefault("ATTEST_COMMAND", _name(program))
    os.execv(program, [program, *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
