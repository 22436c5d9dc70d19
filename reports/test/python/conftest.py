"""Puts the package of this tree before any other."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../../core/adapters/python"))
