"""The command line's options as keyword arguments: which there are the program itself says, in its help."""

import difflib
import os
import re
import subprocess

from attest._errors import AttestError

# What attest.check decides by itself.
_OWN = ("kernel", "quiet", "verbose", "overwrite", "in_process", "property", "dtype", "cases", "seed", "out")
_OPTION = re.compile(r"  (?:-\w, )?--([a-z-]+)(?: (\S+))?")
_HELP_COLUMN = 22

_known = {}


def options_of(program, command="check"):
    """By keyword what stands behind each option of a command: "" for a flag, "FILE", "FILE..." for several in a row."""
    if (program, command) not in _known:
        text = subprocess.run([program, command, "--help"], stdout=subprocess.PIPE, check=True).stdout.decode()
        found = {}
        for line in text.splitlines():
            # Behind the column the help of the option begins, where the option itself leaves room for it.
            option = _OPTION.match(line[:_HELP_COLUMN] if line[_HELP_COLUMN - 1 : _HELP_COLUMN] == " " else line)
            if option:
                found[option[1].replace("-", "_")] = option[2] or ""
        _known[program, command] = found
    return _known[program, command]


def _text(value, keyword):
    if isinstance(value, (str, os.PathLike)):
        return os.fspath(value)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, (tuple, list)) and value and all(isinstance(one, int) for one in value):
        return ",".join(map(str, value))  # a shape
    raise AttestError(f"attest.check: {keyword} is {value!r}, which no option takes")


def words_of(program, options, parameters):
    """Options of attest check for keyword arguments; AttestError, one line, for one that there is not. `parameters`: what
    else attest.check takes, for the nearest name."""
    words = []
    known = options_of(program) if options else {}
    for keyword, value in options.items():
        if keyword not in known or keyword in _OWN:
            open_ones = [name for name in (*known, *parameters) if name not in _OWN or name in parameters]
            near = difflib.get_close_matches(keyword, open_ones, n=1)
            raise AttestError(
                f"attest.check: there is no argument {keyword!r}"
                + (f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(open_ones)}")
            )
        if value is None or value is False:
            continue
        option = "--" + keyword.replace("_", "-")
        if known[keyword] == "":
            if value is not True:
                raise AttestError(f"attest.check: {keyword} is {value!r}; it must be True or False")
            words.append(option)
            continue
        several = isinstance(value, (list, tuple)) and not all(isinstance(one, int) for one in value)
        for one in value if several else (value,):
            words += [option, _text(one, keyword)]
    return words
