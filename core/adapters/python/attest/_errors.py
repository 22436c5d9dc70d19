"""The error of this package."""


class AttestError(Exception):
    """Nothing could be checked: the program is not there, or what it was asked is wrong. One line."""
