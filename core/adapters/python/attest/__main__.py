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
    return "attest" if found and _is_started(found) else started


def _is_started(program):
    """Whether it is the command that runs this."""
    return os.path.exists(sys.argv[0]) and os.path.samefile(program, sys.argv[0])


def main():
    try:
        program = _check._program()
        if _is_started(program):
            raise _check.AttestError(f"{program} would run itself: there is no program in the package; install it again")
    except _check.AttestError as error:
        print(f"attest: {error}", file=sys.stderr)
        return 3
    os.environ.setdefault("ATTEST_COMMAND", _name(program))
    os.execv(program, [program, *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
