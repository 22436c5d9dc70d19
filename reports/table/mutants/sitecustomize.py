"""Python reads this first where its folder is in PYTHONPATH: the module that ATTEST_MUTANT names is read from a file.

ATTEST_MUTANT is MODULE=FILE. Whoever imports the module by its ordinary name, as an adapter does, has the mutant then.
"""

import importlib.abc
import importlib.util
import os
import sys


class Mutated(importlib.abc.MetaPathFinder):
    def __init__(self, module, file):
        self.module, self.file = module, file

    def find_spec(self, name, path=None, target=None):
        return importlib.util.spec_from_file_location(name, self.file) if name == self.module else None


if "ATTEST_MUTANT" in os.environ:
    sys.meta_path.insert(0, Mutated(*os.environ["ATTEST_MUTANT"].split("=", 1)))
